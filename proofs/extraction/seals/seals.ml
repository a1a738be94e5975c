(* What a device of a leg holds of a block or of a piece: sectors of 512 bytes. The last 8 bytes of a sector are a digest of
   the others and of where it stands. A power cut leaves each sector as it was or as it was written: that is read. What has
   rotted, or was written to another place, is not: the proofs take it that such a block is unreadable. *)

let sector = 512
let data = sector - 8
let sectors length = (length + data - 1) / data
let bytes length = sectors length * sector  (* that so many bytes take *)

(* Each step is one to one, so that two sectors which differ in one word have different digests. *)
let digest sealed i address =
  let sum = ref (Int64.of_int ((address * 16) + i + 1)) in
  for word = 0 to (data / 8) - 1 do
    let x = Int64.(mul (logxor !sum (Bytes.get_int64_le sealed ((i * sector) + (8 * word)))) 0x9E3779B97F4A7C15L) in
    sum := Int64.(logxor x (shift_right_logical x 32))
  done;
  !sum

let sealed address block =
  let length = Bytes.length block in
  let result = Bytes.make (bytes length) '\000' in
  for i = 0 to sectors length - 1 do
    Bytes.blit block (i * data) result (i * sector) (min data (length - (i * data)));
    Bytes.set_int64_le result ((i * sector) + data) (digest result i address)
  done;
  result

(* None if a sector does not have its digest. *)
let opened address ~length sealed =
  let block = Bytes.create length in
  let rec all i =
    i = sectors length
    || Int64.equal (Bytes.get_int64_le sealed ((i * sector) + data)) (digest sealed i address)
       && (Bytes.blit sealed (i * sector) block (i * data) (min data (length - (i * data))); all (i + 1)) in
  if all 0 then Some block else None
