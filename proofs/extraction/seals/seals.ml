(* What a device of a leg holds of a block or of a piece: sectors of 512 bytes. The last 8 bytes of a sector are a digest of
   the others, of where it stands, and of the device. A power cut leaves each sector as it was or as it was written: that is
   read. What has rotted, was written to another place, or stands on another device, is not: the proofs take it that such a
   block is unreadable. *)

let sector = 512
let data = sector - 8
let sectors length = (length + data - 1) / data
let bytes length = sectors length * sector  (* that so many bytes take *)

(* Of a device: its disk, a random number, and its own number, below 64. *)
let identity disk device = Int64.logxor disk (Int64.of_int (device lsl 56))

let place i address = Int64.of_int ((address * 16) + i + 1)
let word sealed i n = Bytes.get_int64_le sealed ((i * sector) + (8 * n))
let words = data / 8
let fold x = Int64.(logxor x (shift_right_logical x 32))  (* twice is once and back *)

(* Each step is one to one, so that two sectors which differ in one word, or in the device, have different digests. *)
let digest sealed i ~identity address =
  let sum = ref (Int64.logxor identity (place i address)) in
  for n = 0 to words - 1 do
    sum := fold Int64.(mul (logxor !sum (word sealed i n)) 0x9E3779B97F4A7C15L)
  done;
  !sum

(* The same steps backwards, with the inverse of the factor: of which device a sector has the digest. *)
let owner_of_sector sealed i address =
  let sum = ref (word sealed i words) in
  for n = words - 1 downto 0 do
    sum := Int64.(logxor (mul (fold !sum) 0xF1DE83E19937733DL) (word sealed i n))
  done;
  Int64.logxor !sum (place i address)

let sealed ~identity address block =
  let length = Bytes.length block in
  let result = Bytes.make (bytes length) '\000' in
  for i = 0 to sectors length - 1 do
    Bytes.blit block (i * data) result (i * sector) (min data (length - (i * data)));
    Bytes.set_int64_le result ((i * sector) + data) (digest result i ~identity address)
  done;
  result

(* None if a sector does not have its digest. *)
let opened ~identity address ~length sealed =
  let block = Bytes.create length in
  let rec all i =
    i = sectors length
    || Int64.equal (word sealed i words) (digest sealed i ~identity address)
       && (Bytes.blit sealed (i * sector) block (i * data) (min data (length - (i * data))); all (i + 1)) in
  if all 0 then Some block else None

(* The device of which all sectors have the digest. *)
let owner address sealed =
  let first = owner_of_sector sealed 0 address in
  let same i = Int64.equal (owner_of_sector sealed i address) first in
  if List.for_all same (List.init (Bytes.length sealed / sector) Fun.id) then Some first else None
