(* The dialogue of the conformance kit: one JSON object per line on stdin, one answer per line on stdout. *)

open Proved_core
module J = Yojson.Safe

exception Bad of string

let bad format = Printf.ksprintf (fun text -> raise (Bad text)) format
let largest = 1 lsl 53

type t = { path : string; random : Random.State.t; records : int; mutable disk : Engine.t option;
  mutable off : Device.t option  (* the device, after a power cut: what was in memory is gone *) }

let integer key message =
  match J.Util.member key message with
  | `Int n when n >= 0 && n <= largest -> n
  | _ -> bad "%s must be an integer from 0 to 2^53" key

let text key message = match J.Util.member key message with `String s -> s | _ ->
  bad "%s must be a string" key

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

let hello =
  ok [ ("name", `String "proved-disk"); ("version", `String "1"); ("crash_profile", `String "ack");
       ("block_size", `Int Bytes_blocks.block_bytes); ("capabilities", `List (List.map (fun n -> `String n)
          [ "unmap"; "flush"; "snapshot"; "delete"; "revert"; "crash"; "restart"; "clean"; "fua" ])) ]

let disk state = match state.disk with Some disk -> disk | None -> bad "there is no disk: create comes first"

let device state =
  match state.disk, state.off with Some disk, _ -> Some disk.Engine.device | None, off -> off

let switch_off state = state.off <- device state; state.disk <- None
let close state = Option.iter Device.close (device state); state.disk <- None; state.off <- None

let create state blocks =
  if blocks < 1 || blocks > 1 lsl 24 then bad "a disk has 1 to 2^24 blocks";
  close state;
  if Sys.file_exists state.path then Sys.remove state.path;
  let shape = Plan.shape ~blocks ~segment_blocks:8 ~segments:None ~records:state.records
    ~snapshots:Plan.default_snapshots in
  state.disk <- Some (Engine.format (Device.open_file ~sync:false ~fresh:true state.path) shape)

(* The power fails, and comes back. Recovery is cut short too where the request says so. *)
let crash state =
  let device = match device state with Some device -> device | None -> bad "create comes first" in
  switch_off state;
  Device.power_cut device state.random;
  state.disk <- Some (Engine.recover device);
  state.off <- None

let counters disk =
  let d = disk.Engine.device in
  `Assoc [ ("device_reads", `Int d.reads); ("device_writes", `Int d.writes);
    ("device_flushes", `Int d.flushes) ]

(* What can be asked of a disk, whoever has it open. *)
let operation disk message =
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
  | "stats" -> ok [ ("counters", counters disk) ]
  | other -> refusal "unsupported" (Printf.sprintf "there is no request %S" other)

let request state message =
  match text "op" message with
  | "hello" -> hello
  | "bye" -> ok []
  | "create" -> create state (integer "blocks" message); ok []
  | "restart" -> answered (Engine.perform (disk state) DoRestart)
  | "crash" -> crash state; ok []
  | _ -> operation (disk state) message

(* A request may say `"cut":{"after":n,"seed":s}`: the power fails at the n-th device write or flush from then
   on. *)
let with_cut state message =
  match J.Util.member "cut" message, device state with
  | `Null, _ | _, None -> request state message
  | cut, Some device ->
      device.cut_after <- Some (integer "after" cut);
      Fun.protect ~finally:(fun () -> device.cut_after <- None) (fun () -> request state message)

let understood perform line =
  try
    match J.from_string line with
    | `Assoc _ as message -> perform message
    | _ -> bad "a request is one JSON object on a line"
  with
  | Bad reason -> refusal "bad-request" reason
  | Yojson.Json_error reason -> refusal "bad-request" reason
  | J.Util.Type_error (reason, _) -> refusal "bad-request" reason

let answer state line =
  try understood (with_cut state) line with
  | Device.Power_cut -> switch_off state; refusal "unknown-outcome" "the power was cut; crash comes next"

let rec converse state =
  match input_line stdin with
  | exception End_of_file -> ()
  | line ->
      print_endline (J.to_string (answer state line));
      let ends = try J.Util.member "op" (J.from_string line) = `String "bye" with _ -> false in
      if not ends then converse state

(* On a disk that lasts where `disk` is its file, else on one in a temporary file in `folder`. *)
let serve ~disk ~log ~folder ~records ~seed =
  let random = Random.State.make [| seed |] in
  match disk with
  | Some path ->
      let state = { path; random; records; off = None;
        disk = Some (Engine.recover (Device.open_file ?log path)) } in
      Fun.protect ~finally:(fun () -> close state) (fun () -> converse state)
  | None ->
      let state = { path = Filename.temp_file ~temp_dir:folder "proved-disk-" ".blocks"; random; records;
        disk = None; off = None } in
      Fun.protect ~finally:(fun () -> close state; Sys.remove state.path) (fun () -> converse state)
