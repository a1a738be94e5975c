(* A disk on a device: runs the proved programs, and asks the scheduler for its proposals. *)

open Proved_core

exception Not_a_disk

type t = {
  device : Device.t;
  mutable memory : memory;
  scheduler : Scheduler.t;
  deleted : (string, unit) Hashtbl.t;  (* an entry per deletion of a snapshot, since the disk is open *)
}

(* A program, one block I/O after the other. *)
let rec run device = function
  | Done result -> result
  | ReadBlock (address, next) -> run device (next (Bytes_blocks.to_block (Device.read device address)))
  | WriteBlock (address, block, next) -> Device.write device address (Bytes_blocks.of_block block);
      run device next
  | FlushBlocks next -> Device.flush device; run device next

let with_memory device = function
  | Some memory -> { device; memory; scheduler = Scheduler.create (); deleted = Hashtbl.create 8 }
  | None -> raise Not_a_disk

let recover device = with_memory device (run device (recover Bytes_blocks.blocks (fun found -> Done found)))
let format device geometry = with_memory device (run device (format Bytes_blocks.blocks geometry))

let maintain disk upkeep =
  disk.memory <- run disk.device (maintain Bytes_blocks.blocks disk.memory upkeep);
  if upkeep <> Checkpoint then Scheduler.forget disk.scheduler

let perform disk request =
  let blocks = match request with DoWrite (_, data) -> List.length data | _ -> 0 in
  let changes = match request with DoRead _ | DoFlush | DoRestart -> false | _ -> true in
  let rec prepare rounds =
    if rounds > 0 then
      Option.iter (fun upkeep -> maintain disk upkeep; prepare (rounds - 1))
        (Scheduler.wanted disk.scheduler disk.memory blocks)
  in
  if changes then prepare 8;
  let places = if blocks = 0 then [] else Scheduler.propose disk.scheduler disk.memory blocks in
  let (memory, answer), data = run disk.device (perform Bytes_blocks.blocks disk.memory places request) in
  disk.memory <- memory;
  (match request with DoDelete name -> Hashtbl.add disk.deleted name () | _ -> ());
  (match answer with
  | Ok when request <> DoRestart -> ()
  | Refused (OutOfRange | NoSuchSnapshot | SnapshotExists | BadRequest) ->
      Scheduler.give_back disk.scheduler places
  | _ -> Scheduler.forget disk.scheduler);
  (answer, data)

(* As much of cleaning as the scheduler finds to do. *)
let clean disk =
  maintain disk Collect;
  match Scheduler.moves disk.scheduler disk.memory with
  | [] -> ()
  | moves -> maintain disk (Clean moves); maintain disk Collect
