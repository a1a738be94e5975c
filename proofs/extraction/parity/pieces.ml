(* The codes of LegCode.v. Of the blocks from `whole` on each device has a piece, of the others each has all. *)

open Proved_core

type t = { whole : int; bytes : int; parity : int; code : (block, block) cutting }

let block_bytes = Bytes_blocks.block_bytes
let () = Field.product := byte_product

let length t address = if address < t.whole then block_bytes else t.bytes

(* Where the piece of a block stands in the file of a device, with its digests. *)
let extent t address =
  let block = Seals.bytes block_bytes and piece = Seals.bytes t.bytes in
  if address < t.whole then (address * block, block)
  else ((t.whole * block) + ((address - t.whole) * piece), piece)

let mirrors = { whole = max_int; bytes = block_bytes; parity = 0; code = mirrors Bytes_blocks.(to_block zero) }

(* The last result again, for the same argument: every device asks for its piece of one block. *)
let memo f =
  let last = ref None in
  fun x -> match !last with
    | Some (y, result) when y == x -> result
    | _ -> let result = f x in last := Some (x, result); result

let raid ~whole ~data ~parity =
  let bytes = (block_bytes + data - 1) / data and code = Proved_core.raid in
  let part block i =
    let piece = Field.zeroes bytes in
    Bytes.blit block (i * bytes) piece 0 (max 0 (min bytes (block_bytes - (i * bytes))));
    piece in
  let cut block = List.init data (part (Bytes_blocks.of_block block))
  and glue pieces = Bytes_blocks.to_block (Bytes.sub (Bytes.concat Bytes.empty pieces) 0 block_bytes)
  and raid = code bytes parity data in
  let code = of_code Tearing (fun a -> whole <= a) { raid with parity = memo raid.parity } (memo cut) glue in
  let stored = function Inl block -> block | Inr piece -> Bytes_blocks.to_block piece
  and found a x = if a < whole then Inl x else Inr (Bytes_blocks.of_block x) in
  { whole; bytes; parity; code = { needed = code.needed; fewest = code.fewest;
      piece = (fun a i block -> stored (code.piece a i block));
      joined = (fun a got -> code.joined a (List.map (fun (i, x) -> (i, found a x)) got)) } }
