(* Blocks as OCaml's bytes, for the class `blocks` of Codec.v: words of 64 bits, little end first. The proofs
   ask that words below `limit` that were put into a block are read back; ByteBlocks.v proves it of lists of
   bytes. *)

let block_bytes = 4096
let words = block_bytes / 8
let zero = Bytes.make block_bytes '\000'

let of_words values =
  let block = Bytes.make block_bytes '\000' in
  List.iteri (fun i value -> Bytes.set_int64_le block (8 * i) (Int64.of_int value)) values;
  block

(* The sign is left out, so that no block gives a negative number. *)
let to_words block =
  List.init words (fun i -> Int64.to_int (Bytes.get_int64_le block (8 * i)) land max_int)

let to_block : Bytes.t -> Proved_core.block = Obj.repr
let of_block : Proved_core.block -> Bytes.t = Obj.obj

let blocks : Proved_core.blocks =
  { words; limit = max_int; zero_block = to_block zero;
    of_words = (fun values -> to_block (of_words values));
    to_words = (fun block -> to_words (of_block block)) }
