(* The dialogue of the conformance kit: one JSON object per line on stdin, one answer per line on stdout. *)

open Proved_core
module J = Yojson.Safe
exception Bad of string
let bad format = Printf.ksprintf (fun text -> raise (Bad text)) format
let largest = 1 lsl 53

type t = { path : string; random : Random.State.t; records : int; trees : bool; profile : string; mutable device : Device.t option;
  mutable disk : Engine.t option  (* none after a power cut: what was in memory is gone *) }

let integer key message =
  match J.Util.member key message with
  | `Int n when n >= 0 && n <= largest -> n
  | _ -> bad "%s must be an integer from 0 to 2^53" key

let text key message = match J.Util.member key message with `String s -> s | _ -> bad "%s must be a string" key

let data message =
  match Base64.decode (text "data" message) with
  | Ok decoded when decoded <> "" && String.length decoded mod Bytes_blocks.block_bytes = 0 ->
      Words.split decoded
  | _ -> bad "data must be base64 of whole blocks"

let view message = match J.Util.member "view" message with `Null -> Live | _ -> Named (text "view" message)

let refusal error message = `Assoc [ ("ok", `Bool false); ("error", `String error);
  ("message", `String message) ]
let ok fields = `Assoc (("ok", `Bool true) :: fields)

let answered = function
  | Proved_core.Ok, [] -> ok []
  | Proved_core.Ok, blocks -> ok [ ("data", `String (Base64.encode_string (Words.joined blocks))) ]
  | Refused code, _ -> refusal (Words.code code) (Words.explained code)
  | (UnknownOutcome | CutShort), _ -> refusal "unknown-outcome" "it happened whole or not at all"

let hello ?(more = []) ?(devices = []) profile =
  let can = [ "unmap"; "flush"; "snapshot"; "delete"; "revert"; "crash"; "restart"; "clean" ] in
  ok (devices @ [ ("name", `String "proved-disk"); ("version", `String Version.version); ("crash_profile", `String profile);
       ("block_size", `Int Bytes_blocks.block_bytes);
       ("capabilities", `List (List.map (fun name -> `String name) (can @ (if profile = "ack" then [ "fua" ] else []) @ more))) ])

let disk state = match state.disk with Some disk -> disk | None -> bad "there is no disk: create comes first"
let close state = Option.iter Device.close state.device; state.disk <- None; state.device <- None

let form ~trees ~records blocks ~on_legs =
  if blocks < 1 || blocks > 1 lsl 24 then bad "a disk has 1 to 2^24 blocks";
  Plan.form ~trees ~on_legs ~blocks ~segment_blocks:8 ~segments:None ~records ~snapshots:Plan.default_snapshots

let opened ?kept profile disk = if profile = "ack" then disk else Engine.write_back ?kept disk

let create state blocks =
  let form = form ~trees:state.trees ~records:state.records blocks ~on_legs:false in
  close state;
  if Sys.file_exists state.path then Sys.remove state.path;
  let device = Device.open_file ~sync:false ~fresh:(Maps.blocks_of form) state.path in
  state.device <- Some device;
  state.disk <- Some (opened state.profile (Engine.format (Engine.on device) form))

(* The power fails, and comes back. Recovery is cut short too where the request says so. *)
let crash state =
  let device = match state.device with Some device -> device | None -> bad "create comes first" in
  state.disk <- None;
  Device.power_cut device state.random;
  state.disk <- Some (opened state.profile (Engine.recover (Engine.on device)))

let counters devices =
  let sum name count = (name, `Int (List.fold_left (fun sum d -> sum + count d) 0 devices)) in
  `Assoc [ sum "device_reads" (fun d -> d.Device.reads); sum "device_writes" (fun d -> d.Device.writes);
    sum "device_flushes" (fun d -> d.Device.flushes); sum "unreadable_blocks" (fun d -> d.Device.unreadable) ]

(* What can be asked of a disk, whoever has it open. *)
let operation ~devices disk message =
  let perform q = answered (Engine.perform disk q) in
  match text "op" message with
  | "write" -> perform (DoWrite (integer "lba" message, data message))
  | "read" -> perform (DoRead (view message, integer "lba" message, integer "count" message))
  | "unmap" -> perform (DoUnmap (integer "lba" message, integer "count" message))
  | "snapshot" -> perform (DoSnapshot (text "name" message))
  | "delete" -> perform (DoDelete (text "name" message))
  | "revert" -> perform (DoRevert (text "name" message))
  | "flush" -> perform DoFlush
  | "clean" -> Engine.clean disk; ok []
  | "checkpoint" -> Engine.maintain disk Checkpoint; ok []
  | "stats" -> ok [ ("counters", counters (devices ())) ]
  | other -> refusal "unsupported" (Printf.sprintf "there is no request %S" other)

let request state message =
  match text "op" message with
  | "hello" -> hello state.profile
  | "bye" -> ok []
  | "create" -> create state (integer "blocks" message); ok []
  | "restart" -> answered (Engine.perform (disk state) DoRestart)
  | "crash" -> crash state; ok []
  | _ -> operation ~devices:(fun () -> Option.to_list state.device) (disk state) message

(* A request may say `"cut":{"after":n,"seed":s}`: the power fails at the n-th device write or flush from then
   on. *)
let with_cut cut_after request message =
  match J.Util.member "cut" message, cut_after with
  | `Null, _ | _, None -> request message
  | cut, Some after ->
      after := Some (integer "after" cut);
      Fun.protect ~finally:(fun () -> after := None) (fun () -> request message)

let understood perform line =
  try
    match J.from_string line with
    | `Assoc _ as message -> perform message
    | _ -> bad "a request is one JSON object on a line"
  with
  | Bad reason -> refusal "bad-request" reason
  | Yojson.Json_error reason | J.Util.Type_error (reason, _) -> refusal "bad-request" reason
  | Device.Cut_off -> refusal "data-lost" "the file ends before the disk does"

let rec converse answer =
  match input_line stdin with
  | exception End_of_file -> ()
  | line ->
      print_endline (J.to_string (understood answer line));
      let ends = try J.Util.member "op" (J.from_string line) = `String "bye" with _ -> false in
      if not ends then converse answer

let cut_short = refusal "unknown-outcome" "the power was cut; crash comes next"

let answer state message =
  let cut_after = Option.map (fun d -> d.Device.cut_after) state.device in
  try with_cut cut_after (request state) message with Device.Power_cut -> state.disk <- None; cut_short

(* On a disk that lasts where `disk` is its file, else on one in a temporary file in `folder`. *)
let serve ~disk ~log ~folder ~records ~trees ~profile ~seed =
  let random = Random.State.make [| seed |] and device = Option.map (Device.open_file ?log) disk in
  let path, remove = match disk with Some path -> (path, ignore) | None ->
    (Filename.temp_file ~temp_dir:folder "proved-disk-" ".blocks", Sys.remove) in
  let disk = Option.map (fun device -> opened profile (Engine.recover (Engine.on device))) device in
  let state = { path; random; records; trees; profile; device; disk } in
  Fun.protect ~finally:(fun () -> close state; remove path) (fun () -> converse (answer state))
