(* Mirrors, or a leg with parity: a file per device, `device-0` and so on, and the file `members`, which is the
   record of Devices.v. A device that fails is a file that is not there, that is too short, or that gives an error. A
   block that does not have its digests, or that gives an error of the medium, is one that the device cannot read. *)

open Proved_core

exception Lost  (* no member answers, or too few *)
exception Past_end
exception Damaged of string  (* what is wrong with the files of the disk *)
exception Older of string

let damaged format = Printf.ksprintf (fun text -> raise (Damaged text)) format

(* What the file `members` says. With parity, [whole] is the first block of which devices have pieces. *)
type record = {
  size : int;  (* blocks of each device *)
  count : int;
  id : int64;  (* of the disk *)
  parity : int; whole : int; members : int list; clean : bool }

type t = {
  folder : string;
  record : record;  (* as it was when the disk was opened *)
  layout : Pieces.t;
  devices : Device.t option array;  (* none: it does not answer *)
  mutable members : int list;  (* as the proved programs last returned them *)
  mutable clean : bool;
  mutable lost : bool;  (* no member answered: memory does not count until the disk is opened again *)
  cut_after : int option ref;
  sync : bool;
  mutable gone : Device.t list;  (* for the counters *)
}

let record_file folder = Filename.concat folder "members"
let device_file folder i = Filename.concat folder (Printf.sprintf "device-%d" i)
let pulled folder i = device_file folder i ^ ".failed"
let exists folder =
  let one_of_them name = name = "members" || String.length name > 7 && String.sub name 0 7 = "device-" in
  try Array.exists one_of_them (Sys.readdir folder) with Sys_error _ -> false

(* A new file takes the place of the old one at once. *)
let write_record ~sync folder { size; count; id; parity; whole; members; clean } =
  let path = record_file folder in
  let fresh = path ^ ".new" in
  let out = open_out_bin fresh in
  Printf.fprintf out "blocks %d\ndevices %d\ndisk %016Lx\nparity %d from block %d\nmembers %s\nclean %b\n"
    size count id parity whole (String.concat " " (List.map string_of_int members)) clean;
  flush out;
  if sync then Unix.fsync (Unix.descr_of_out_channel out);
  close_out out;
  Unix.rename fresh path;
  if sync then Device.sync_parent fresh

let read_record folder =
  let path = record_file folder in
  if not (Sys.file_exists path) then damaged "%s is missing" path;
  let file = open_in_bin path in
  let text = Fun.protect ~finally:(fun () -> close_in file) (fun () -> really_input_string file (in_channel_length file)) in
  let scanned format use = try Some (Scanf.sscanf text format use) with Scanf.Scan_failure _ | End_of_file | Failure _ -> None in
  let found = scanned "blocks %d devices %d disk %Lx parity %d from block %d members %s@\nclean %B"
    (fun size count id parity whole members clean ->
      let numbers = List.filter (( <> ) "") (String.split_on_char ' ' members) in
      { size; count; id; parity; whole; members = List.map int_of_string numbers; clean }) in
  match found with
  | Some r when r.size > 0 && r.parity >= 0 && r.count > r.parity && (r.parity = 0 || r.whole >= 3)
      && List.for_all (fun i -> 0 <= i && i < r.count) r.members -> r
  | _ when List.mem (scanned "blocks %_d devices %_d %s" Fun.id) [ Some "sealed"; Some "clean" ] -> raise (Older folder)
  | _ -> damaged "%s is damaged" path

let count set = Array.length set.devices
let identity set = Seals.identity set.record.id

let lose set i =
  let gone device =
    set.gone <- device :: set.gone; try Device.close device with Unix.Unix_error _ -> ()
  in
  Option.iter gone set.devices.(i);
  set.devices.(i) <- None

(* An I/O on a device; none if it does not answer. *)
let attempt set i io =
  match set.devices.(i) with
  | None -> None
  | Some device -> ( try Some (io device) with Unix.Unix_error _ | Device.Cut_off -> lose set i; None)

(* The piece of a block on a device; none if it cannot be read. *)
let read_piece set i address device =
  match Device.read device address with
  | bytes ->
      let piece = Seals.opened ~identity:(identity set i) address ~length:(Pieces.length set.layout address) bytes in
      if piece = None then device.unreadable <- device.unreadable + 1;
      Option.map Bytes_blocks.to_block piece
  | exception Unix.Unix_error (EIO, _, _) -> device.unreadable <- device.unreadable + 1; None

(* The record as it is, but for the members. *)
let write_members set members clean =
  write_record ~sync:set.sync set.folder { set.record with members; clean }

let rec run set = function
  | Finish result -> result
  | Stop -> set.lost <- true; raise Lost
  | PastEnd -> raise Past_end
  | ReadFrom (i, a, next) -> run set (next (attempt set i (read_piece set i a)))
  | WriteTo (i, a, block, next) ->
      let sealed () = Seals.sealed ~identity:(identity set i) a (Bytes_blocks.of_block block) in
      run set (next (attempt set i (fun d -> Device.write d a (sealed ())) <> None))
  | FlushOf (i, next) -> run set (next (attempt set i Device.flush <> None))
  | SetMembers (members, clean, next) ->
      write_members set members clean;
      run set next
  | AssumeThat (_, next) -> run set next

let remember set ((members, clean), result) = set.members <- members; set.clean <- clean; result

let over set program = on_leg set.layout.code set.record.size set.members set.clean program

let medium set =
  { Maps.run = (fun ?last:_ program ->
      if set.lost then raise Lost else remember set (run set (over set program)));
    pipeline = None }

let settle set =
  let members, clean = run set (settle_leg set.layout.code set.record.size (count set) set.members set.clean) in
  remember set ((members, clean), ())

(* Nothing but repairs is unflushed between two requests: who opens the disk next need not compare the members. *)
let rest set =
  Array.iteri (fun i d -> if Option.fold ~none:false ~some:(fun d -> d.Device.unflushed <> []) d then
    ignore (attempt set i Device.flush)) set.devices;
  if not (set.clean || set.lost) then
    remember set (run set (SetMembers (set.members, true, Finish ((set.members, true), ()))))

(* A file that is too short is a device that does not answer. One of another place is not touched. *)
let open_device set i path =
  match Device.open_file ~sync:set.sync ~cut_after:set.cut_after ~extent:(Pieces.extent set.layout) path with
  | exception Unix.Unix_error _ -> None
  | device ->
      let at, length = Pieces.extent set.layout (set.record.size - 1) and superblock = Bytes.create (snd (device.extent 0)) in
      let refused format = Device.close device; damaged format in
      if (Unix.fstat device.file).st_size < at + length then (Device.close device; None)
      else match Device.(seek device 0; transfer Unix.read device.file superblock 0 (Bytes.length superblock)) with
        | exception Unix.Unix_error _ -> Some device
        | () -> match Seals.owner 0 superblock with
          | None -> Some device  (* it is new, or its superblock has rotted *)
          | Some owner when owner = identity set i -> Some device
          | Some owner -> match List.find_opt (fun j -> owner = identity set j) (List.init (count set) Fun.id) with
            | Some j -> refused "%s is device %d of this disk" path j
            | None -> refused "%s is a device of another disk" path

(* The disk, once its members are equal. *)
let recover set =
  let { members; clean; _ } : record = read_record set.folder in
  let program members clean = over { set with members; clean } Maps.program_to_recover in
  let memory = remember set (run set (open_leg set.layout.code set.record.size members clean program)) in
  set.lost <- false;
  Engine.with_memory (medium set) memory

(* Devices answer, and none of them can read the first block. *)
let without_superblock set =
  let answers i = attempt set i (read_piece set i 0) in
  let found = List.filter_map answers (List.init (count set) Fun.id) in
  found <> [] && List.for_all (( = ) None) found

let without_devices ~sync folder ({ count; parity; whole; members; clean; _ } as record) =
  let layout = if parity = 0 then Pieces.mirrors else Pieces.raid ~whole ~data:(count - parity) ~parity in
  { folder; record; layout; devices = Array.make count None; members; clean; lost = false;
    cut_after = ref None; sync; gone = [] }

let open_set ?(sync = true) folder =
  let set = without_devices ~sync folder (read_record folder) in
  Array.iteri (fun i _ -> set.devices.(i) <- open_device set i (device_file folder i)) set.devices;
  set

let close set = Array.iteri (fun i _ -> lose set i) set.devices

(* A new file, whose blocks do not have their digests yet. *)
let new_device set i =
  let extent = Pieces.extent set.layout in
  let device = Device.open_file ~sync:set.sync ~fresh:set.record.size ~cut_after:set.cut_after ~extent (device_file set.folder i) in
  set.devices.(i) <- Some device;
  device

(* Every block of a device is zeroes, with their digests. *)
let blank set i device =
  for a = 0 to set.record.size - 1 do
    let block = Bytes.make (Pieces.length set.layout a) '\000' in
    Device.store device [ (a, Seals.sealed ~identity:(identity set i) a block) ]
  done

(* With parity, superblock, headers and log are whole on every device. *)
let create ?(sync = true) ?(parity = 0) folder ~count form =
  let id = Random.State.(int64 (make_self_init ()) Int64.max_int) and members = List.init count Fun.id in
  let whole = if parity = 0 then 0 else 3 + form.Maps.geometry.log_blocks in
  let record = { size = Maps.blocks_of form; count; id; parity; whole; members; clean = false } in
  let set = without_devices ~sync folder record in
  try
    List.iter (fun i -> blank set i (new_device set i)) members;
    write_record ~sync folder record;
    (set, Engine.format (medium set) form)
  with problem -> close set; raise problem

(* ** What happens to devices *)

let fail set i = lose set i; if Sys.file_exists (device_file set.folder i) then
    Unix.rename (device_file set.folder i) (pulled set.folder i)

let return set i =
  let away = pulled set.folder i and there = device_file set.folder i in
  if set.devices.(i) = None then begin
    set.devices.(i) <- open_device set i (if Sys.file_exists away then away else there);
    if Sys.file_exists away then Unix.rename away there
  end

(* Why a new device may not take its place; none if it may. *)
let needed set i =
  let { members; _ } : record = read_record set.folder in
  if not (List.mem i members) then None
  else if set.devices.(i) <> None then Some (Printf.sprintf "device %d is a member: fail it first" i)
  else if List.length members > set.layout.code.fewest then None
  else Some (Printf.sprintf "device %d is needed: too few others have all data" i)

(* It leaves the record first. Raises Lost where too few members are left: what it held is gone. *)
let replace set i =
  let { members; clean; _ } : record = read_record set.folder in
  let members = List.filter (( <> ) i) members in
  write_members set members clean;
  set.members <- members;
  lose set i;
  List.iter (fun path -> if Sys.file_exists path then Sys.remove path)
    [ device_file set.folder i; pulled set.folder i ];
  ignore (new_device set i);
  if List.length members < set.layout.code.fewest then begin set.lost <- true; raise Lost end
