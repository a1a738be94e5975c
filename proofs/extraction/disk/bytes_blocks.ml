(* Blocks as OCaml's bytes, for the class `blocks` of Codec.v: words of 64 bits, little end first. The proofs
   ask that words below `limit` that were put into a block are read back; ByteBlocks.v proves it of lists of
   bytes.

   A log record has a digest of its data: two words of 61 bits, from digest_blocks.c, which recovery compares with
   what a power cut left. Each sector of a record or a header has the digest of the whole. The proofs assume that
   what is digested has different digests. It does not collide by accident; whoever chooses the data can make it. *)

let block_bytes = 4096
let words, sectors = block_bytes / 8, block_bytes / 512
let zero = Bytes.make block_bytes '\000'

let of_words_in bytes values =
  let block = Bytes.make bytes '\000' in
  List.iteri (fun i value -> Bytes.set_int64_le block (8 * i) (Int64.of_int value)) values;
  block
let of_words = of_words_in block_bytes

(* The sign is left out, so that no block gives a negative number. *)
let to_words block =
  List.init words (fun i -> Int64.to_int (Bytes.get_int64_le block (8 * i)) land max_int)

let to_block : Bytes.t -> Proved_core.block = Obj.repr
let of_block : Proved_core.block -> Bytes.t = Obj.obj

external digest_keys : unit -> unit = "digest_keys" [@@noalloc]
external digest_block : Bytes.t -> Bytes.t -> unit = "digest_block" [@@noalloc]
let () = digest_keys ()

let digest blocks =
  let sums = of_words_in 16 [ List.length blocks; List.length blocks ] in
  List.iter (fun block -> digest_block (of_block block) sums) blocks;
  let word i = Int64.to_int (Bytes.get_int64_le sums (8 * i)) in
  (word 0, word 1)

let blocks : Proved_core.blocks =
  { words; sectors; limit = max_int; zero_block = to_block zero; digest; compared = (fun _ -> true);
    of_words = (fun values -> to_block (of_words values));
    to_words = (fun block -> to_words (of_block block)) }
