(* How requests, answers and errors are spelled. *)

open Proved_core

let code = function
  | OutOfRange -> "out-of-range"
  | NoSuchSnapshot -> "no-such-snapshot"
  | SnapshotExists -> "snapshot-exists"
  | BadRequest -> "bad-request"
  | NoSpace -> "no-space"
  | DataLost -> "data-lost"
  | Unsupported -> "unsupported"

let explained = function
  | OutOfRange -> "the request reaches past the end of the disk, or has no blocks"
  | NoSuchSnapshot -> "there is no snapshot of this name"
  | SnapshotExists -> "there is a snapshot of this name already"
  | BadRequest -> "a snapshot's name is 1 to 64 of letters, digits, '.', '_' and '-'"
  | NoSpace -> "there is no room for it"
  | DataLost -> "data is lost"
  | Unsupported -> "this disk cannot do that"

let split text =
  let size = Bytes_blocks.block_bytes in
  List.init (String.length text / size) (fun i ->
    Bytes_blocks.to_block (Bytes.of_string (String.sub text (i * size) size)))

let joined blocks = Bytes.unsafe_to_string (Bytes.concat Bytes.empty (List.map Bytes_blocks.of_block blocks))
