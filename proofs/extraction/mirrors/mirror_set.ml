(* Mirrors, or a leg with parity: a file per device, `device-0` and so on, and the file `members`, which is the
   record of Devices.v. A device that fails is a file that is not there, or that gives an error. A block that
   does not have its digests, or that gives an error of the medium, is one that the device cannot read. *)

open Proved_core

exception Lost  (* no member answers, or too few *)
exception Past_end

type t = {
  folder : string;
  size : int;  (* blocks of each device *)
  layout : Pieces.t;
  devices : Device.t option array;  (* none: it does not answer *)
  mutable members : int list;  (* as the proved programs last returned them *)
  mutable clean : bool;
  mutable lost : bool;  (* no member answered: memory does not count until the disk is opened again *)
  cut_after : int option ref;
  sync : bool;
  mutable gone : Device.t list;  (* for the counters *)
}

let record folder = Filename.concat folder "members"
let device_file folder i = Filename.concat folder (Printf.sprintf "device-%d" i)
let pulled folder i = device_file folder i ^ ".failed"
let exists folder = Sys.file_exists (record folder)

(* A new file takes the place of the old one at once. *)
let write_file ~sync path text =
  let fresh = path ^ ".new" in
  let out = open_out_bin fresh in
  output_string out text;
  flush out;
  if sync then Unix.fsync (Unix.descr_of_out_channel out);
  close_out out;
  Unix.rename fresh path;
  if sync then Device.sync_parent fresh

let write_record ~sync folder ~size ~count members clean =
  write_file ~sync (record folder)
    (Printf.sprintf "blocks %d\ndevices %d\nsealed\nclean %b\nmembers %s\n" size count clean
       (String.concat " " (List.map string_of_int members)))

let read_record folder =
  let file = open_in_bin (record folder) in
  Fun.protect ~finally:(fun () -> close_in file) (fun () ->
      try
        Scanf.bscanf (Scanf.Scanning.from_channel file) "blocks %d devices %d sealed clean %B members %s@\n"
          (fun size count clean members ->
            let numbers = List.filter (( <> ) "") (String.split_on_char ' ' members) in
            (size, count, clean, List.map int_of_string numbers))
      with Scanf.Scan_failure _ | End_of_file | Failure _ -> raise Engine.Not_a_disk)

let count set = Array.length set.devices

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
let read_piece set address device =
  match Device.read device address with
  | bytes ->
      let piece = Seals.opened address ~length:(Pieces.length set.layout address) bytes in
      if piece = None then device.unreadable <- device.unreadable + 1;
      Option.map Bytes_blocks.to_block piece
  | exception Unix.Unix_error (EIO, _, _) -> device.unreadable <- device.unreadable + 1; None

let rec run set = function
  | Finish result -> result
  | Stop -> set.lost <- true; raise Lost
  | PastEnd -> raise Past_end
  | ReadFrom (i, a, next) -> run set (next (attempt set i (read_piece set a)))
  | WriteTo (i, a, block, next) ->
      run set (next (attempt set i (fun d -> Device.write d a (Seals.sealed a (Bytes_blocks.of_block block))) <> None))
  | FlushOf (i, next) -> run set (next (attempt set i Device.flush <> None))
  | SetMembers (members, clean, next) ->
      write_record ~sync:set.sync set.folder ~size:set.size ~count:(count set) members clean;
      run set next
  | AssumeThat (_, next) -> run set next

let remember set ((members, clean), result) = set.members <- members; set.clean <- clean; result

let over set program = on_leg set.layout.code set.size set.members set.clean program

let medium set =
  { Maps.run = (fun ?last:_ program ->
      if set.lost then raise Lost else remember set (run set (over set program)));
    pipeline = None }

let settle set =
  let members, clean = run set (settle_leg set.layout.code set.size (count set) set.members set.clean) in
  remember set ((members, clean), ())

(* Nothing but repairs is unflushed between two requests: who opens the disk next need not compare the members. *)
let rest set =
  Array.iteri (fun i d -> if Option.fold ~none:false ~some:(fun d -> d.Device.unflushed <> []) d then
    ignore (attempt set i Device.flush)) set.devices;
  if not (set.clean || set.lost) then
    remember set (run set (SetMembers (set.members, true, Finish ((set.members, true), ()))))

(* With parity: the first block of which devices have pieces. *)
let code_file folder = Filename.concat folder "parity"
let layout_of folder count =
  if not (Sys.file_exists (code_file folder)) then Pieces.mirrors
  else
    let file = open_in_bin (code_file folder) in
    Fun.protect ~finally:(fun () -> close_in file) (fun () ->
        try Scanf.bscanf (Scanf.Scanning.from_channel file) "pieces from %d parity %d" (fun whole parity ->
            Pieces.raid ~whole ~data:(count - parity) ~parity)
        with Scanf.Scan_failure _ | End_of_file | Failure _ -> raise Engine.Not_a_disk)

let open_device ~sync ~cut_after ~layout folder i =
  try Some (Device.open_file ~sync ~cut_after ~extent:(Pieces.extent layout) (device_file folder i))
  with Unix.Unix_error _ -> None

(* The disk, once its members are equal. *)
let recover set =
  let _, _, clean, members = read_record set.folder in
  let program members clean = over { set with members; clean } Maps.program_to_recover in
  let memory = remember set (run set (open_leg set.layout.code set.size members clean program)) in
  set.lost <- false;
  Engine.with_memory (medium set) memory

let open_set ?(sync = true) folder =
  let size, count, clean, members = read_record folder in
  let cut_after = ref None and layout = layout_of folder count in
  { folder; size; layout; devices = Array.init count (open_device ~sync ~cut_after ~layout folder); members; clean;
    lost = false; cut_after; sync; gone = [] }

let close set = Array.iteri (fun i _ -> lose set i) set.devices

(* Every block of a device is zeroes, with their digests. *)
let blank layout size device =
  for a = 0 to size - 1 do
    Device.store device [ (a, Seals.sealed a (Bytes.make (Pieces.length layout a) '\000')) ]
  done

(* With parity, superblock, headers and log are whole on every device. *)
let create ?(sync = true) ?(parity = 0) folder ~count form =
  let size = Maps.blocks_of form in
  if parity > 0 then
    write_file ~sync (code_file folder) (Printf.sprintf "pieces from %d parity %d\n" (3 + form.Maps.geometry.log_blocks) parity);
  let members = List.init count Fun.id and layout = layout_of folder count in
  let new_device i =
    let device = Device.open_file ~sync ~fresh:size ~extent:(Pieces.extent layout) (device_file folder i) in
    Fun.protect ~finally:(fun () -> Device.close device) (fun () -> blank layout size device) in
  List.iter new_device members;
  write_record ~sync folder ~size ~count members false;
  let set = open_set ~sync folder in
  (set, Engine.format (medium set) form)

(* ** What happens to devices *)

let fail set i = lose set i; if Sys.file_exists (device_file set.folder i) then
    Unix.rename (device_file set.folder i) (pulled set.folder i)

let return set i =
  if Sys.file_exists (pulled set.folder i) then Unix.rename (pulled set.folder i) (device_file set.folder i);
  if set.devices.(i) = None then
    set.devices.(i) <- open_device ~sync:set.sync ~cut_after:set.cut_after ~layout:set.layout set.folder i

(* It leaves the record first. Raises Lost where too few members are left: what it held is gone. *)
let replace set i =
  let _, _, clean, recorded = read_record set.folder in
  let members = List.filter (( <> ) i) recorded in
  write_record ~sync:set.sync set.folder ~size:set.size ~count:(count set) members clean;
  set.members <- members;
  lose set i;
  List.iter (fun path -> if Sys.file_exists path then Sys.remove path)
    [ device_file set.folder i; pulled set.folder i ];
  let path = device_file set.folder i in
  set.devices.(i) <-
    Some (Device.open_file ~sync:set.sync ~fresh:set.size ~cut_after:set.cut_after ~extent:(Pieces.extent set.layout) path);
  if List.length members < set.layout.code.fewest then begin set.lost <- true; raise Lost end
