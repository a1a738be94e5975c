(* Pieces of blocks for Parity.v: vectors of bytes of GF(2^8), each a number. *)

type 'a piece = Bytes.t

let byte (a, b, c, d, e, f, g, h) =
  List.fold_right (fun bit n -> Bool.to_int bit + (2 * n)) [ a; b; c; d; e; f; g; h ] 0
let bits use n =
  let bit i = (n lsr i) land 1 = 1 in
  use (bit 0) (bit 1) (bit 2) (bit 3) (bit 4) (bit 5) (bit 6) (bit 7)

let zeroes bytes = Bytes.make bytes '\000'
let plus x y =
  let sum = Bytes.copy x and words = Bytes.length x / 8 in
  for i = 0 to words - 1 do
    Bytes.set_int64_ne sum (8 * i) (Int64.logxor (Bytes.get_int64_ne x (8 * i)) (Bytes.get_int64_ne y (8 * i)))
  done;
  for i = 8 * words to Bytes.length x - 1 do Bytes.(set_uint8 sum i (get_uint8 x i lxor get_uint8 y i)) done;
  sum

let product : (int -> int -> int) ref = ref (fun _ _ -> 0)  (* of two bytes: the proved one *)
let tables = Array.init 256 (fun a -> lazy (Bytes.init 256 (fun b -> Char.chr (!product a b))))
let times a x =
  let table = Lazy.force tables.(a) and result = Bytes.copy x in
  for i = 0 to Bytes.length x - 1 do  (* an index is below the length, a byte below 256 *)
    Bytes.unsafe_set result i (Bytes.unsafe_get table (Char.code (Bytes.unsafe_get x i)))
  done;
  result
