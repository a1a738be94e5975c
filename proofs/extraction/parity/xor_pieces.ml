(* RAID-5 as a cutting of Leg.v: of the blocks from `whole` on each device has a piece, the last device
   their sum; of the others each has all. The proofs ask that all pieces but one give the block back
   (`cutting_laws`); LegCode.v proves it of vectors of bytes. *)

open Proved_core

type t = { whole : int; bytes : int; code : (block, block) cutting }

let block_bytes = Bytes_blocks.block_bytes

(* Where the piece of a block stands in the file of a device. *)
let extent t address =
  if address < t.whole then Device.whole_blocks address
  else ((t.whole * block_bytes) + ((address - t.whole) * t.bytes), t.bytes)

let mirrors = { whole = max_int; bytes = block_bytes; code = mirrors (Bytes_blocks.to_block Bytes_blocks.zero) }

let add sum piece =
  Bytes.iteri (fun i byte -> Bytes.set_uint8 sum i (Bytes.get_uint8 sum i lxor Char.code byte)) piece

let raid5 ~whole ~data =
  let bytes = (block_bytes + data - 1) / data in
  let total pieces = let sum = Bytes.make bytes '\000' in List.iter (add sum) pieces; sum in
  let part block i =
    let piece = Bytes.make bytes '\000' in
    Bytes.blit block (i * bytes) piece 0 (min bytes (block_bytes - (i * bytes)));
    piece in
  let piece address i block =
    if address < whole then block
    else
      let block = Bytes_blocks.of_block block in
      Bytes_blocks.to_block (if i < data then part block i else total (List.init data (part block))) in
  let joined address got =
    if address < whole then snd (List.hd got)
    else
      let got = List.map (fun (i, piece) -> (i, Bytes_blocks.of_block piece)) got in
      let missing = lazy (total (List.map snd got)) in
      let at i = match List.assoc_opt i got with Some piece -> piece | None -> Lazy.force missing in
      Bytes_blocks.to_block (Bytes.sub (Bytes.concat Bytes.empty (List.init data at)) 0 block_bytes) in
  { whole; bytes; code = { piece; joined; needed = (fun address -> if address < whole then 1 else data); fewest = data } }
