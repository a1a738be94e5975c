(* The dialogue of the conformance kit with a disk on mirrors: devices fail, come back, are replaced. *)

open Proved_core

type t = { folder : string; random : Random.State.t; records : int; trees : bool; profile : string; count : int; parity : int;
  mutable set : Mirror_set.t option;
  mutable kept : delay option;  (* with write-back: what was delayed when the last member was lost *)
  mutable disk : Engine.t option  (* none while no member answers, and after a power cut *) }

let set state =
  match state.set with Some set -> set | None -> Adapter.bad "there is no disk: create comes first"

let close state = Option.iter Mirror_set.close state.set; state.set <- None; state.kept <- None; state.disk <- None

let create state blocks =
  let form = Adapter.form ~trees:state.trees ~records:state.records blocks ~on_legs:true in
  close state;
  Array.iter (fun name -> Sys.remove (Filename.concat state.folder name)) (Sys.readdir state.folder);
  let set, disk = Mirror_set.create ~sync:false ~parity:state.parity state.folder ~count:state.count form in
  state.set <- Some set; state.disk <- Some (Adapter.opened state.profile disk)

(* Every device that there was, for the counters. *)
let devices set = set.Mirror_set.gone @ List.filter_map Fun.id (Array.to_list set.Mirror_set.devices)

let each_device set action = Array.iter (Option.iter action) set.Mirror_set.devices

(* The memory is forgotten with the last member, but for what is delayed: that was answered. *)
let forget state = Option.iter (fun disk -> state.kept <- disk.Engine.delay) state.disk; state.disk <- None

(* The disk as recovery finds it; none while no member answers. *)
let reopen state =
  forget state;
  state.disk <- (try Some (Adapter.opened ?kept:state.kept state.profile (Mirror_set.recover (set state)))
    with Mirror_set.Lost -> None)

(* With the power goes all of it. *)
let power_off state = state.disk <- None; state.kept <- None

let crash state =
  power_off state;
  each_device (set state) (fun d -> Device.power_cut d state.random);
  reopen state

let lost = Adapter.refusal "data-lost" "no device that has all data answers"
let unknown = Adapter.refusal "unknown-outcome" "no device that has all data answers"

let unless_lost state answer action =
  match state.disk with
  | None -> answer
  | Some disk -> ( try action disk with Mirror_set.Lost -> forget state; answer)

let device state message =
  let i = Adapter.integer "device" message in
  if i < state.count then i else Adapter.bad "there are devices 0 to %d" (state.count - 1)

(* A device that fails loses any part of what it had not flushed. *)
let fail state i =
  let set = set state in
  Option.iter (fun d -> Device.power_cut d state.random) set.devices.(i);
  Mirror_set.fail set i

let settle state =
  if state.disk = None || (set state).lost then reopen state;
  unless_lost state lost (fun _ -> Mirror_set.settle (set state); Adapter.ok [])

let operation state message =
  let op = Adapter.text "op" message in
  let hint = List.mem op [ "clean"; "checkpoint"; "stats" ] and set = set state in
  unless_lost state (if op = "read" then lost else if hint then Adapter.ok [] else unknown) (fun disk ->
      Adapter.operation ~devices:(fun () -> devices set) disk message)

let request state message =
  let ok = Adapter.ok [] in
  match Adapter.text "op" message with
  | "hello" ->
      let tolerates = if state.parity > 0 then state.parity else state.count - 1 in
      Adapter.hello ~more:[ "device" ] ~devices:[ ("devices", `Int state.count); ("tolerates", `Int tolerates) ] state.profile
  | "bye" -> ok
  | "create" -> create state (Adapter.integer "blocks" message); ok
  | "crash" -> crash state; ok
  | "fail" -> fail state (device state message); ok
  | "return" ->
      Mirror_set.return (set state) (device state message);
      if state.disk = None || (set state).lost then reopen state; ok
  | "replace" ->
      let i = device state message in
      fail state i;
      (try Mirror_set.replace (set state) i with Mirror_set.Lost -> forget state); ok
  | "tick" -> ok
  | "settle" -> settle state
  | "restart" -> unless_lost state unknown (fun disk -> Adapter.answered (Engine.perform disk DoRestart))
  | _ -> operation state message

let answer state message =
  let cut_after = Option.map (fun set -> set.Mirror_set.cut_after) state.set in
  try Adapter.with_cut cut_after (request state) message with
  | Device.Power_cut -> power_off state; Adapter.cut_short

(* On a new disk in a temporary folder. *)
let serve ~folder ~records ~trees ~profile ~seed ~parity ~count =
  let folder = Filename.concat folder (Printf.sprintf "proved-disk-%d-%d" (Unix.getpid ()) seed) in
  Unix.mkdir folder 0o700;
  let state = { folder; random = Random.State.make [| seed |]; records; trees; profile; count; parity; set = None; kept = None; disk = None } in
  Fun.protect ~finally:(fun () ->
      close state;
      Array.iter (fun name -> Sys.remove (Filename.concat folder name)) (Sys.readdir folder);
      Unix.rmdir folder)
    (fun () -> Adapter.converse (answer state))
