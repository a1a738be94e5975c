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

(* Recovers the disk. While it is open, requests about its devices are answered too. *)
let opened_mirrors ~sync ~profile folder action =
  let set = Mirror_set.open_set ~sync folder in
  let close () = Fun.protect ~finally:(fun () -> Mirror_set.close set) (fun () -> Mirror_set.rest set) in
  match Adapter.opened profile (Mirror_set.recover set) with
  | exception problem -> Mirror_set.close set; raise problem
  | disk ->
      let state = { Mirror_adapter.folder; random = Random.State.make_self_init (); records = 0; trees = false; profile;
        kept = None; count = Mirror_set.count set; parity = set.layout.parity; set = Some set; disk = Some disk } in
      let answer message =
        match Adapter.text "op" message with
        | "fail" | "return" | "replace" | "settle" ->
            let answer = Mirror_adapter.request state message in
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
  if not (Mirror_set.exists folder) then raise (Sys_error (folder ^ " holds no disk on mirrors or with parity"));
  let set = Mirror_set.open_set folder in
  Fun.protect ~finally:(fun () -> Mirror_set.close set) (fun () -> action set)

let device set = function
  | Some i when i >= 0 && i < Mirror_set.count set -> i
  | _ -> raise (Sys_error (Printf.sprintf "DEVICE is a number from 0 to %d" (Mirror_set.count set - 1)))

let settle folder =
  with_set folder (fun set -> ignore (Mirror_set.recover set); Mirror_set.settle set; Mirror_set.rest set)

let count_unreadable set i device =
  device.Device.unreadable <- 0;
  for a = 0 to set.Mirror_set.size - 1 do ignore Mirror_set.(attempt set i (read_piece set a)) done;
  Printf.printf "device %d: %d unreadable blocks\n" i device.unreadable

(* Repairs as if the process had been killed: the next opening reads every block, and writes all its pieces again. *)
let scrub folder =
  with_set folder (fun set ->
      ignore (Mirror_set.recover set);
      Array.iteri (fun i -> Option.iter (count_unreadable set i)) set.Mirror_set.devices;
      Mirror_set.(remember set (run set (SetMembers (set.members, false, Finish ((set.members, false), ())))));
      ignore (Mirror_set.recover set);
      Mirror_set.rest set)

let status folder =
  with_set folder (fun set ->
      let _, _, clean, members = Mirror_set.read_record folder in
      Array.iteri (fun i device ->
          Printf.printf "device %d: %s\n" i
            (match device, List.mem i members with
            | Some _, true -> "member"
            | Some _, false -> "stale: settle makes it a member"
            | None, _ -> "does not answer")) set.Mirror_set.devices;
      if not clean then print_endline "not closed cleanly: the next opening makes the members equal")

let all =
  [ ("fail", "Let DEVICE fail.",
      fun folder i -> with_set folder (fun set -> Mirror_set.fail set (device set i)));
    ("return", "Bring DEVICE back as it was.",
      fun folder i -> with_set folder (fun set -> Mirror_set.return set (device set i)));
    ("replace", "Put a new, empty device in the place of DEVICE.",
      fun folder i -> with_set folder (fun set -> Mirror_set.replace set (device set i)));
    ("settle", "Resync every stale device that answers.", fun folder _ -> settle folder);
    ("scrub", "Count the blocks that each device cannot read, and write all blocks again.", fun folder _ -> scrub folder);
    ("status", "Show the state of each device.", fun folder _ -> status folder) ]

(* Where [guarded] says what to do about mistakes. *)
let term (guarded, act) =
  let folder = Arg.(required & pos 0 (some string) None & info [] ~docv:"DIR" ~doc:"The folder of the disk.") in
  let device = Arg.(value & pos 1 (some int) None & info [] ~docv:"DEVICE" ~doc:"Number of the device, from 0.") in
  Term.(const (fun folder device -> guarded folder (fun () -> act folder device)) $ folder $ device)

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
