(* What a history tells of orders: who writes a value, which answers tell what was there, what a power
   cut has left. Not trusted: see propose.ml. *)

open Checker

type step = {
  step : int step_of;
  called : int; (* the moment of its call *)
  answered : int; (* the moment of its answer; [max_int]: it has none *)
}

(* What is read after a power cut, of what nothing that is called after it may have changed. *)
type image = {
  blocks : (int * int) list; (* block and value *)
  views : (string * int * int) list; (* the same of a snapshot *)
  known : (string * bool) list; (* whether a snapshot is there *)
}

let read_ahead = 2000 (* moments after a power cut that tell what it left *)

type facts = {
  moments : int moment array;
  called_at : step list array; (* by moment *)
  live : (int, (int * step) array) Hashtbl.t; (* block -> what reads of it return, by answer *)
  live_value : (int * int, step array) Hashtbl.t; (* the reads of one value *)
  named : (string * int, (int * step) array) Hashtbl.t; (* the same of a snapshot *)
  named_value : (string * int * int, step array) Hashtbl.t;
  writers : (int * int, step list) Hashtbl.t; (* block and value -> what may write it *)
  snapshots : (string, step list) Hashtbl.t;
  reverts : (string, step list) Hashtbl.t;
  deletes : (string, step list) Hashtbl.t;
  presence : (string, (bool * step) array) Hashtbl.t; (* whether an answer needs the snapshot *)
  crashes : int list; (* the moments of power cuts that may undo something *)
  is_barrier : step -> bool;
  barriers : (int, step) Hashtbl.t; (* the last one that is answered before the power cut *)
  images : (int, image) Hashtbl.t; (* by the moment of the power cut, under prefix *)
}

let multi table key = Option.value (Hashtbl.find_opt table key) ~default:[]
let add table key x = Hashtbl.replace table key (x :: multi table key)

(* What a step writes: block and value. *)
let writes = function
  | Event (Write (lba, data, Ok)) | Event (WriteThrough (lba, data, _, Ok)) ->
      List.mapi (fun i value -> (lba + i, value)) data
  | Event (Unmap (lba, count, Ok)) -> List.init count (fun i -> (lba + i, 0))
  | _ -> []

(* Whether the answer tells that the snapshot is there. *)
let tells = function
  | Event (Read (Named name, _, _, Ok, _))
  | Event (Delete (name, Ok))
  | Event (Revert (name, Ok))
  | Event (Snapshot (name, Refused SnapshotExists)) ->
      Some (name, true)
  | Event (Read (Named name, _, _, Refused NoSuchSnapshot, _))
  | Event (Delete (name, Refused NoSuchSnapshot))
  | Event (Revert (name, Refused NoSuchSnapshot))
  | Event (Snapshot (name, Ok)) ->
      Some (name, false)
  | _ -> None

let arrays table by =
  let sorted = Hashtbl.create (Hashtbl.length table) in
  Hashtbl.iter
    (fun key items ->
      let items = Array.of_list items in
      Array.sort (fun a b -> compare (by a).answered (by b).answered) items;
      Hashtbl.replace sorted key items)
    table;
  sorted

let image moments called_at crash =
  let touched = Hashtbl.create 7 and touched_names = Hashtbl.create 7 and reverted = ref false in
  let steps = Hashtbl.create 97 in
  let rec go at image =
    if at >= min (Array.length moments) (crash + read_ahead) then image
    else
      match moments.(at) with
      | Alone (Event (Create _)) -> image
      | Alone _ -> go (at + 1) image
      | Called (id, _) ->
          let touch x =
            List.iter (fun (block, _) -> Hashtbl.replace touched block ()) (writes x.step.takes);
            match deed_of x.step.takes with
            | Reverts -> reverted := true
            | Snaps name | Drops name -> add touched_names name x.step.number
            | _ -> ()
          in
          List.iter touch called_at.(at);
          Hashtbl.replace steps id called_at.(at);
          go (at + 1) image
      | Answered id ->
          let learn image x =
            let image =
              match tells x.step.takes with
              | Some (name, there)
                when x.step.due && List.for_all (( = ) x.step.number) (multi touched_names name) ->
                  { image with known = (name, there) :: image.known }
              | _ -> image
            in
            match x.step.takes with
            | Event (Read (Live, lba, _, Ok, data)) when not !reverted ->
                let found = List.mapi (fun i value -> (lba + i, value)) data in
                let found = List.filter (fun (block, _) -> not (Hashtbl.mem touched block)) found in
                { image with blocks = found @ image.blocks }
            | Event (Read (Named name, lba, _, Ok, data)) when not (Hashtbl.mem touched_names name) ->
                let found = List.mapi (fun i value -> (name, lba + i, value)) data in
                { image with views = found @ image.views }
            | _ -> image
          in
          go (at + 1) (List.fold_left learn image (multi steps id))
  in
  let { blocks; views; known } = go (crash + 1) { blocks = []; views = []; known = [] } in
  {
    blocks = List.sort_uniq compare blocks;
    views = List.sort_uniq compare views;
    known = List.sort_uniq compare known;
  }

let facts granularity profile moments =
  let moments = Array.of_list moments in
  let answers = Hashtbl.create 97 in
  Array.iteri (fun at -> function Answered id -> Hashtbl.replace answers id at | _ -> ()) moments;
  let number = ref 0 in
  let called_at =
    Array.mapi
      (fun called -> function
        | Called (id, entry) ->
            let steps = steps_of granularity !number id entry in
            number := !number + List.length steps;
            let answered = Option.value (Hashtbl.find_opt answers id) ~default:max_int in
            let put step = { step; called; answered = (if step.due then answered else max_int) } in
            List.map put steps
        | _ -> [])
      moments
  in
  let live = Hashtbl.create 97 and named = Hashtbl.create 97 and writers = Hashtbl.create 97 in
  let live_value = Hashtbl.create 97 and named_value = Hashtbl.create 97 in
  let snapshots = Hashtbl.create 7 and reverts = Hashtbl.create 7 in
  let deletes = Hashtbl.create 7 and presence = Hashtbl.create 7 in
  let note x =
    List.iter (fun place -> add writers place x) (writes x.step.takes);
    if x.step.due then
      Option.iter (fun (name, there) -> add presence name (there, x)) (tells x.step.takes);
    match x.step.takes with
    | Event (Read (Live, lba, _, Ok, data)) ->
        List.iteri
          (fun i value ->
            add live (lba + i) (value, x);
            add live_value (lba + i, value) x)
          data
    | Event (Read (Named name, lba, _, Ok, data)) ->
        List.iteri
          (fun i value ->
            add named (name, lba + i) (value, x);
            add named_value (name, lba + i, value) x)
          data
    | Event (Snapshot (name, Ok)) -> add snapshots name x
    | Event (Delete (name, Ok)) -> add deletes name x
    | Event (Revert (name, Ok)) -> add reverts name x
    | _ -> ()
  in
  Array.iter (List.iter note) called_at;
  let crashes = ref [] in
  if profile <> Ack then
    Array.iteri
      (fun at -> function Alone (Event (Crash _)) -> crashes := at :: !crashes | _ -> ())
      moments;
  let is_barrier x =
    x.step.due
    &&
    match deed_of x.step.takes with
    | Flushes -> true
    | Snaps _ | Drops _ | Reverts -> profile = Block
    | _ -> false
  in
  let barriers = Hashtbl.create 7 in
  let note_barrier x at =
    match Hashtbl.find_opt barriers at with
    | Some y when y.called >= x.called -> ()
    | _ -> if x.answered < at then Hashtbl.replace barriers at x
  in
  let next_cut x = List.find_opt (fun at -> at > x.called) (List.rev !crashes) in
  Array.iter
    (List.iter (fun x -> if is_barrier x then Option.iter (note_barrier x) (next_cut x)))
    called_at;
  let images = Hashtbl.create 7 in
  if profile = Prefix then
    List.iter (fun at -> Hashtbl.replace images at (image moments called_at at)) !crashes;
  {
    moments;
    called_at;
    live = arrays live snd;
    live_value = arrays live_value Fun.id;
    named = arrays named snd;
    named_value = arrays named_value Fun.id;
    writers;
    snapshots;
    reverts;
    deletes;
    presence = arrays presence snd;
    crashes = List.rev !crashes;
    is_barrier;
    barriers;
    images;
  }
