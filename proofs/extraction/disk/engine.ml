(* A disk: runs the proved programs, on a device or on mirrors, and asks the scheduler for its proposals. *)

open Proved_core
exception Not_a_disk

type t = {
  medium : Maps.medium;
  mutable memory : Maps.t;
  mutable delay : delay option;  (* with write-back, the profiles `prefix` and `block`: the delayed writes *)
  scheduler : Scheduler.t;
  deleted : (string, unit) Hashtbl.t;  (* an entry per deletion of a snapshot, since the disk is open *)
}

(* A program, one block I/O after the other. Its last flush is only begun, if `last` says so of the result. *)
let flush last device = function
  | Done result -> (match Option.bind last (fun last -> last result) with
      | Some may -> Device.begin_flush device may
      | None -> Device.flush device)
  | _ -> Device.flush device

let rec run ?last device = function
  | Done result -> result
  | ReadBlock (address, next) -> run ?last device (next (Bytes_blocks.to_block (Device.read device address)))
  | WriteBlock (address, block, next) -> Device.write device address (Bytes_blocks.of_block block);
      run ?last device next
  | FlushBlocks next -> flush last device next; run ?last device next
  | Assume (_, next) -> run ?last device next  (* that digests do not collide *)

let on ?(pipeline = false) device =
  { Maps.run = (fun ?last program -> run ?last device program);
    pipeline = (if pipeline then Some device else None) }

let with_memory medium = function
  | Some memory -> { medium; memory; delay = None; scheduler = Scheduler.create (); deleted = Hashtbl.create 8 }
  | None -> raise Not_a_disk

let recover medium = with_memory medium (medium.Maps.run Maps.program_to_recover)
let format medium form = with_memory medium (Maps.format medium form)

(* What was delayed while the power stayed on still is. *)
let write_back ?kept disk =
  let none = Maps.nothing_delayed disk.memory in
  disk.delay <- Some (Option.fold ~none ~some:(fun kept -> delayed_again Bytes_blocks.blocks kept none) kept);
  disk
let keep disk (memory, delay) = disk.memory <- memory; disk.delay <- Some delay

let maintain disk upkeep =
  (match disk.delay with
  | None -> disk.memory <- Maps.maintain disk.medium disk.memory upkeep
  | Some delay -> keep disk (Maps.delaying_maintain disk.medium (disk.memory, delay) (Below upkeep)));
  if upkeep <> Checkpoint then Scheduler.forget disk.scheduler

(* What the scheduler wants done before so many blocks are written. *)
let rec prepare ?(rounds = 8) disk blocks =
  disk.memory <- Maps.walk disk.memory (Scheduler.steps disk.scheduler disk.memory blocks);
  if rounds > 0 then
    Option.iter (fun upkeep -> maintain disk upkeep; prepare ~rounds:(rounds - 1) disk blocks)
      (Scheduler.wanted disk.scheduler disk.memory blocks)

(* All delayed writes in one record. Where the scheduler finds no places, the first free ones are enough. *)
let rec drain ?(looked = false) disk =
  match disk.delay with
  | Some delay when delay.delayed <> [] ->
      let blocks = blocks_delayed Bytes_blocks.blocks delay in
      prepare disk blocks;
      let places = (if looked then Maps.first_free else Scheduler.propose disk.scheduler) disk.memory blocks in
      keep disk (Maps.delaying_maintain disk.medium (disk.memory, delay) (Drain places));
      if looked then Scheduler.forget disk.scheduler
      else drain ~looked:true disk
  | _ -> ()

let may_delay disk request =
  match request, disk.delay with
  | DoWrite (lba, data), Some delay -> Maps.may_delay disk.memory delay lba data
  | _ -> false

(* Where there is no room for a write, but there seem to be places: they are counted again. *)
let count_again disk blocks =
  match disk.delay with
  | Some delay when blocks > 0 && Scheduler.free_places disk.scheduler disk.memory >= blocks ->
      keep disk (Maps.delaying_maintain disk.medium (disk.memory, delay) (Drain []))
  | _ -> ()

let run_request ahead disk places request =
  match disk.delay with
  | None -> let (memory, answer), data = Maps.perform ~ahead disk.medium disk.memory places request in
      disk.memory <- memory; (answer, data)
  | Some delay -> let (x, answer), data = Maps.delaying_request disk.medium (disk.memory, delay) places request in
      keep disk x; (answer, data)

(* Where the scheduler finds no room, the proved code looks itself: `write_is_taken` says that it finds it. *)
let rec perform ?(ahead = false) ?(looked = false) disk request =
  let blocks () = match request with
    | DoWrite (_, data) when not (may_delay disk request) -> List.length data | _ -> 0 in
  (match request with
  | DoRead _ -> ()
  | DoWrite _ when blocks () = 0 -> ()
  | DoFlush | DoRestart -> drain disk
  | _ -> drain disk; count_again disk (blocks ()); prepare disk (blocks ()));
  let blocks = blocks () in
  let places = (if looked then Maps.first_free else Scheduler.propose disk.scheduler) disk.memory blocks in
  let answer, data = run_request ahead disk places request in
  (match request with DoDelete name -> Hashtbl.add disk.deleted name () | _ -> ());
  match answer with
  | Refused NoSpace when blocks > 0 && not looked ->
      if disk.delay <> None then maintain disk Checkpoint;  (* the record of a drain has many places *)
      maintain disk Collect; perform ~ahead ~looked:true disk request
  | Refused (OutOfRange | NoSuchSnapshot | SnapshotExists | BadRequest) ->
      Scheduler.give_back disk.scheduler places; (answer, data)
  | _ -> if answer <> Ok || looked || request = DoRestart then Scheduler.forget disk.scheduler; (answer, data)

(* Several writes in one record; false if none of them was performed. The same: `group_is_taken`. *)
let rec write_group ?(ahead = false) ?(looked = false) disk writes =
  let blocks = List.fold_left (fun sum (_, data) -> sum + List.length data) 0 writes in
  List.compare_length_with writes 1 > 0 && match disk.delay with
  | Some delay -> let x, all = Maps.delaying_group disk.medium (disk.memory, delay) writes in keep disk x; all
  | None ->
    prepare disk blocks;
    let places = (if looked then Maps.first_free else Scheduler.propose disk.scheduler) disk.memory blocks in
    let memory, all = Maps.write_group ~ahead disk.medium disk.memory places writes in disk.memory <- memory;
    if looked || not all then Scheduler.forget disk.scheduler;
    all || not looked && (maintain disk Collect; write_group ~ahead ~looked:true disk writes)

(* As much of cleaning as the scheduler finds to do. *)
let clean disk =
  drain disk; maintain disk Collect;
  match Scheduler.moves disk.scheduler disk.memory with
  | [] -> ()
  | moves -> maintain disk (Clean moves); maintain disk Collect
