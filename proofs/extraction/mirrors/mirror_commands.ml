(* Disks that last, on one device or on mirrors, and the commands that only mirrors have. *)

open Cmdliner

(* An engine goes on with what recovery found. A snapshot that is gone by then was deleted. *)
let renew disk { Engine.memory; delay; _ } =
  let left = Maps.listing memory in
  List.iter (fun (name, _) -> if not (List.mem_assoc name left) then Hashtbl.add disk.Engine.deleted name ())
    (Maps.listing disk.memory);
  disk.memory <- memory;
  disk.delay <- delay;
  Scheduler.forget disk.scheduler

let check_superblocks set =
  if Mirror_set.without_superblock set then
    Mirror_set.damaged "data-lost: no device of %s has a superblock that can be read" set.folder

let recovered set = try Mirror_set.recover set with Mirror_set.Lost -> check_superblocks set; raise Mirror_set.Lost

(* The contract leaves open what happens to a device that is still needed: here it is kept. *)
let refuse_needed set i = Option.iter (Adapter.bad "%s") (Mirror_set.needed set i)

(* Recovers the disk. While it is open, requests about its devices are answered too. *)
let opened_mirrors ~sync ~profile folder action =
  let set = Mirror_set.open_set ~sync folder in
  let close () = Fun.protect ~finally:(fun () -> Mirror_set.close set) (fun () -> Mirror_set.rest set) in
  match Adapter.opened profile (recovered set) with
  | exception problem -> Mirror_set.close set; raise problem
  | disk ->
      let state = { Mirror_adapter.folder; random = Random.State.make_self_init (); records = 0; trees = false; profile;
        kept = None; count = Mirror_set.count set; parity = set.layout.parity; set = Some set; disk = Some disk } in
      let answer message =
        match Adapter.text "op" message with
        | "fail" | "return" | "replace" | "settle" as op ->
            if op = "replace" then refuse_needed set (Mirror_adapter.device state message);
            let answer = try Mirror_adapter.request state message with Mirror_set.Damaged reason -> Adapter.bad "%s" reason in
            Option.iter (renew disk) state.disk;
            state.disk <- Option.map (fun _ -> disk) state.disk;
            answer
        | _ -> Mirror_adapter.operation state message
      in
      action ~answer ~close disk

let opened_device ~sync ~pipeline ~profile ?log file action =
  let device = Device.open_file ~sync ?log file in
  let close () = Device.close device in
  match Adapter.opened profile (Engine.recover (Engine.on ~pipeline device)) with
  | disk -> action ~answer:(Adapter.operation ~devices:(fun () -> [ device ]) disk) ~close disk
  | exception problem -> close (); raise problem

(* What to do: with requests in lines, in the end, and with the disk. *)
let opened ~sync ~pipeline ~profile ?log ~file folder action =
  if not (Mirror_set.exists folder) then opened_device ~sync ~pipeline ~profile ?log file action
  else opened_mirrors ~sync ~profile folder action

let with_set folder action =
  if not (Mirror_set.exists folder) then begin
    Unix.(close (openfile (Filename.concat folder "blocks") [ O_RDONLY ] 0));
    Adapter.bad "%s is on one device" folder
  end;
  let set = Mirror_set.open_set folder in
  Fun.protect ~finally:(fun () -> Mirror_set.close set) (fun () -> action set)

(* What each device is, and whether all are members. *)
let status_of set =
  let { Mirror_set.members; _ } : Mirror_set.record = Mirror_set.read_record set.Mirror_set.folder in
  let state i = function
    | Some _ when List.mem i members -> "member"
    | Some _ -> "stale: settle makes it a member"
    | None when Sys.file_exists (Mirror_set.device_file set.folder i) -> "does not answer: its file is too short, or cannot be used"
    | None -> "does not answer" in
  let states = Array.to_list (Array.mapi state set.devices) in
  (states, List.for_all (( = ) "member") states)

let show = List.iteri (Printf.printf "device %d: %s\n")

let settle set =
  ignore (recovered set); Mirror_set.settle set; Mirror_set.rest set;
  let states, whole = status_of set in
  if not whole then show states;
  whole

let count_unreadable set i = function
  | None -> Printf.printf "device %d: does not answer: not scrubbed\n" i
  | Some device ->
      device.Device.unreadable <- 0;
      for a = 0 to set.Mirror_set.record.size - 1 do ignore Mirror_set.(attempt set i (read_piece set i a)) done;
      Printf.printf "device %d: %d unreadable blocks\n" i device.unreadable

(* Repairs as if the process had been killed: the next opening reads every block, and writes all its pieces again. *)
let scrub set =
  ignore (recovered set);
  Array.iteri (count_unreadable set) set.Mirror_set.devices;
  Mirror_set.(remember set (run set (SetMembers (set.members, false, Finish ((set.members, false), ())))));
  ignore (recovered set);
  Mirror_set.rest set;
  snd (status_of set)

let status set =
  check_superblocks set;
  let states, whole = status_of set in
  show states;
  if not set.Mirror_set.clean then print_endline "not closed cleanly: the next opening makes the members equal";
  whole

let return set i =
  Mirror_set.return set i;
  if set.Mirror_set.devices.(i) = None then Adapter.bad "device %d does not answer" i

(* What is done to one device, and to all of them: false if not all are members then. *)
let of_one =
  [ ("fail", "Let DEVICE fail.", Mirror_set.fail);
    ("return", "Bring DEVICE back as it was.", return);
    ("replace", "Put a new, empty device in the place of DEVICE, which has failed.",
      fun set i -> refuse_needed set i; Mirror_set.replace set i) ]
let of_all =
  [ ("settle", "Resync every stale device that answers.", settle);
    ("scrub", "Count the blocks that each device cannot read, and write all blocks again.", scrub);
    ("status", "Show the state of each device.", status) ]

let folder = Arg.(required & pos 0 (some string) None & info [] ~docv:"DIR" ~doc:"The folder of the disk.")
let device = Arg.(required & pos 1 (some int) None & info [] ~docv:"DEVICE" ~doc:"Number of the device, from 0.")

(* Where [guarded] says what to do about mistakes. *)
let term_of_one guarded act =
  let on set i =
    if i < 0 || i >= Mirror_set.count set then Adapter.bad "there are devices 0 to %d" (Mirror_set.count set - 1);
    act set i in
  Term.(const (fun folder i -> guarded folder (fun () -> with_set folder (fun set -> on set i))) $ folder $ device)
let term_of_all guarded act =
  let status folder = guarded folder (fun () -> with_set folder act) in
  Term.(const (fun folder -> if not (status folder) then (flush stdout; Stdlib.exit 1)) $ folder)

let devices least option doc =
  let parse text = match int_of_string_opt text with
    | Some n when n >= least && n <= 16 -> Result.Ok n
    | _ -> Result.Error (`Msg (Printf.sprintf "%S is not a number from %d to 16" text least)) in
  Arg.(value & opt (some (conv (parse, Format.pp_print_int))) None & info [ option ] ~docv:"N" ~doc)

(* On how many devices, and how many of them parity; none for one device. *)
let layout =
  let mirrors = devices 1 "mirrors" "Keep the data on N devices, of which all but one may fail."
  and raid5 = devices 3 "raid5" "Keep the data on N devices with parity, of which one may fail."
  and raid6 = devices 4 "raid6" "Keep the data on N devices with parity, of which two may fail." in
  let chosen mirrors raid5 raid6 = match mirrors, raid5, raid6 with
    | Some count, None, None -> `Ok (Some (count, 0))
    | None, Some count, None -> `Ok (Some (count, 1))
    | None, None, Some count -> `Ok (Some (count, 2))
    | None, None, None -> `Ok None
    | _ -> `Error (true, "--mirrors, --raid5 and --raid6 exclude each other") in
  Term.(ret (const chosen $ mirrors $ raid5 $ raid6))
