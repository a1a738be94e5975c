(* Looks for an order of requests that overlap. Nothing here is trusted: [Checker.check_order]
   confirms what is proposed, or does not (OverlappingDiskProposals.v). So this may be wrong, and
   may give up. It follows one possible world, and goes back where it gets stuck:

   - A step that changes the disk is taken when an answer asks for it. Before it, those in flight
     that it may need are tried.
   - A read or a refusal that fits is taken at once; a flush is taken when it is called.
   - A step after which a later answer cannot come true is not taken. What that answer reads must be
     on the live disk, or in a snapshot that may be reverted to, or in what a power cut may leave,
     or it must still be written. *)

open Checker

type step = {
  step : int step_of;
  called : int; (* the moment of its call *)
  answered : int; (* the moment of its answer; [max_int]: it has none *)
}

type node = {
  at : int; (* the moments before this one have passed *)
  flight : step list;
  world : int world;
  devices : devices;
  ready : bool; (* what the next power cut may leave agrees with what is read after it *)
  trail : proposal list; (* the newest first *)
}

(* What is read after a power cut, of what nothing that is called after it may have changed. *)
type image = {
  blocks : (int * int) list; (* block and value *)
  views : (string * int * int) list; (* the same of a snapshot *)
  known : (string * bool) list; (* whether a snapshot is there *)
}

let looked_at = 8 (* of the answers that tell of a block or a name: the first of them *)
let read_ahead = 2000 (* moments after a power cut that tell what it left *)

(* Steps tried, at most. A history of 1,000 requests takes 1,200 at the median. *)
let least_work = 10_000
let work_per_moment = 10

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
  any_revert : step list;
  deletes : (string, step list) Hashtbl.t;
  presence : (string, (bool * step) array) Hashtbl.t; (* whether an answer needs the snapshot *)
  crashes : int list; (* the moments of power cuts that may undo something *)
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
  let snapshots = Hashtbl.create 7 and reverts = Hashtbl.create 7 and any_revert = ref [] in
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
    | Event (Revert (name, Ok)) ->
        add reverts name x;
        any_revert := x :: !any_revert
    | _ -> ()
  in
  Array.iter (List.iter note) called_at;
  let crashes = ref [] in
  if profile <> Ack then
    Array.iteri
      (fun at -> function Alone (Event (Crash _)) -> crashes := at :: !crashes | _ -> ())
      moments;
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
    any_revert = !any_revert;
    deletes;
    presence = arrays presence snd;
    crashes = List.rev !crashes;
    images;
  }

(* Whether the step has not been taken, and may be. *)
let free node x =
  x.called >= node.at
  || (x.answered >= node.at && List.exists (fun y -> y.step.number = x.step.number) node.flight)

(* Whether one of these steps may come before the answer of [o]. *)
let may_come node o = List.exists (fun y -> y.called < o.answered && free node y)

let crash_ahead facts node o = List.exists (fun at -> at >= node.at && at < o.answered) facts.crashes

let rec may_be choices value = function
  | Known v -> v = value
  | Open i -> (
      match plookup (key i) choices with
      | Some { base; others } -> List.mem value others || may_be choices value base
      | None -> false)

let may_hold world blocks block value = may_be world.choices value (cell_at 0 blocks (key block))

(* The first item, in the order of answers, that has not been passed. *)
let from node by items =
  let rec find low high =
    if low = high then low
    else
      let middle = (low + high) / 2 in
      if (by items.(middle)).answered < node.at then find (middle + 1) high else find low middle
  in
  find 0 (Array.length items)

(* A step in flight that has to overwrite the value before [o] is called. *)
let lost_before node block value o =
  List.exists
    (fun x ->
      x.answered < o.called
      && List.exists (fun (b, v) -> b = block && v <> value) (writes x.step.takes))
    node.flight

let restored facts node o block value (snaps : (string * int cell pmap) list) =
  List.exists
    (fun (name, blocks) ->
      may_hold node.world blocks block value && may_come node o (multi facts.reverts name))
    snaps

let left facts node o block value =
  crash_ahead facts node o
  && List.exists
       (fun y ->
         may_hold node.world y.kept.live_blocks block value
         || List.mem value (Option.value (plookup (key block) y.since) ~default:[])
         || restored facts node o block value y.kept.snap_blocks)
       node.world.leftovers

(* Whether the live disk may hold the value when [o] is taken. *)
let within_reach facts node o block value =
  let seen = node.world.seen in
  (may_hold node.world seen.live_blocks block value
  && ((not (lost_before node block value o)) || may_come node o facts.any_revert))
  || may_come node o (multi facts.writers (block, value))
  || restored facts node o block value seen.snap_blocks
  || left facts node o block value

let live_fits facts node block (value, o) = (not (free node o)) || within_reach facts node o block value

let named_fits facts node name block (value, o) =
  (not (free node o))
  || (match find name node.world.seen.snap_blocks with
     | Some blocks -> may_hold node.world blocks block value
     | None -> false)
  || List.exists
       (fun s -> s.called < o.answered && free node s && within_reach facts node s block value)
       (multi facts.snapshots name)
  || crash_ahead facts node o
     && List.exists
          (fun y ->
            match find name y.kept.snap_blocks with
            | Some blocks -> may_hold node.world blocks block value
            | None -> false)
          node.world.leftovers

(* The answers that come first agree. *)
let first_fit node items fits =
  let length = Array.length items in
  let rec look i left = i >= length || left = 0 || (fits items.(i) && look (i + 1) (left - 1)) in
  look (from node snd items) looked_at

(* Whether what tells that the snapshot is there, or is not, may still come true. *)
let presence_fits facts node name =
  let there shape = find name shape.snap_blocks <> None in
  let now = there node.world.seen in
  match Hashtbl.find_opt facts.presence name with
  | None -> true
  | Some items ->
      first_fit node items (fun (needed, o) ->
          needed = now
          || (not (free node o))
          || List.exists
               (fun x -> x.step.number <> o.step.number && x.called < o.answered && free node x)
               (multi (if needed then facts.snapshots else facts.deletes) name)
          || crash_ahead facts node o
             && List.exists (fun y -> there y.kept = needed) node.world.leftovers)

let names facts =
  List.sort_uniq compare (Hashtbl.fold (fun (name, _) _ names -> name :: names) facts.named [])

(* Whether all that is read of the block later may still come true, as far as one looks. [gone]: what
   it held. *)
let block_fits facts names node gone block =
  let items table key = Option.value (Hashtbl.find_opt table key) ~default:[||] in
  let value_fits table key fits =
    let items = items table key in
    let i = from node Fun.id items in
    i >= Array.length items || fits items.(i)
  in
  first_fit node (items facts.live block) (live_fits facts node block)
  && List.for_all
       (fun name -> first_fit node (items facts.named (name, block)) (named_fits facts node name block))
       names
  &&
  match gone with
  | Some (Known value) ->
      value_fits facts.live_value (block, value) (fun o -> live_fits facts node block (value, o))
      && List.for_all
           (fun name ->
             value_fits facts.named_value (name, block, value) (fun o ->
                 named_fits facts node name block (value, o)))
           names
  | _ -> true

(* ** What a power cut has to leave, under prefix *)

let next_image facts node =
  Option.bind
    (List.find_opt (fun at -> at >= node.at) facts.crashes)
    (fun at -> Option.map (fun image -> (at, image)) (Hashtbl.find_opt facts.images at))

let agrees world image y =
  let view name = find name y.kept.snap_blocks in
  List.for_all (fun (block, value) -> may_hold world y.kept.live_blocks block value) image.blocks
  && List.for_all (fun (name, there) -> (view name <> None) = there) image.known
  && List.for_all
       (fun (name, block, value) ->
         match view name with Some blocks -> may_hold world blocks block value | None -> false)
       image.views

let told = function Event (WriteThrough _) -> true | _ -> false

(* The node, which came from [before] by this entry, with [ready]. *)
let readied facts before node entry =
  match next_image facts node with
  | None -> node
  | Some (_, image) -> (
      let agrees = agrees node.world image in
      match (deed_of entry, entry, node.world.leftovers) with
      | Looks, _, _ when node.at = before.at -> node
      | (Sets _ | Snaps _ | Drops _ | Reverts), entry, newest :: _ when not (told entry) ->
          { node with ready = before.ready || agrees newest }
      | _, _, left -> { node with ready = List.exists agrees left })

(* The next power cut may leave what is read after it, or will. *)
let cut_fits facts node =
  node.ready
  ||
  match next_image facts node with
  | None -> true
  | Some (at, image) ->
      let cut =
        { step = { number = -1; of0 = -1; due = true; takes = Hint Ok }; called = at; answered = at }
      in
      let from blocks =
        List.for_all
          (fun (block, value) ->
            may_hold node.world blocks block value
            || may_come node cut (multi facts.writers (block, value)))
          image.blocks
      in
      let seen = node.world.seen in
      let view name = find name seen.snap_blocks in
      (from seen.live_blocks
      || List.exists
           (fun (name, blocks) -> may_come node cut (multi facts.reverts name) && from blocks)
           seen.snap_blocks)
      && List.for_all
           (fun (name, there) ->
             (view name <> None) = there
             || may_come node cut (multi (if there then facts.snapshots else facts.deletes) name))
           image.known
      && List.for_all
           (fun (name, block, value) ->
             (match view name with
             | Some blocks -> may_hold node.world blocks block value
             | None -> false)
             || may_come node cut (multi facts.snapshots name))
           image.views

let held world block = Some (cell_at 0 world.seen.live_blocks (key block))

(* Whether the node, which came from [before] by this entry, may still lead to an order. *)
let fits facts names before node entry =
  let check block = block_fits facts names node (held before.world block) block in
  let all () =
    let rec go block = block >= node.world.blocks_count || (check block && go (block + 1)) in
    go 0 && Hashtbl.fold (fun name _ fits -> fits && presence_fits facts node name) facts.presence true
  in
  cut_fits facts node
  &&
  match entry with
  | Event (Read (_, lba, count, Ok, _)) ->
      before.world.choices == node.world.choices
      || List.for_all check (List.init count (fun i -> lba + i))
  | entry -> (
      match deed_of entry with
      | Looks -> true
      | Sets (lba, count) -> List.for_all check (List.init count (fun i -> lba + i))
      | _ -> all ())

exception Gave_up

(* An order of the history that starts with [Create]; an empty one if none was found. *)
let order granularity profile tolerates history =
  let most = least_work + (work_per_moment * List.length history) in
  let facts = facts granularity profile (List.tl history) in
  let names = names facts in
  let last = Array.length facts.moments in
  let work = ref 0 in
  let worlds node entry =
    incr work;
    if !work > most then raise Gave_up;
    entry_worlds Int.equal 0 profile tolerates node.devices entry node.world
  in
  let without x = List.filter (fun y -> y.step.number <> x.step.number) in
  let took x i world node =
    {
      node with
      world;
      flight = without x node.flight;
      trail = TakeStep (x.step.number, i) :: node.trail;
    }
  in
  (* What looks at the disk, and fits it as it is. *)
  let rec looked node =
    let fitting x =
      deed_of x.step.takes = Looks
      && match worlds node x.step.takes with
         | [ world ] -> world.choices == node.world.choices
         | _ -> false
    in
    match List.find_opt fitting node.flight with
    | None -> node
    | Some x -> looked (took x 0 node.world node)
  in
  let take node x () =
    List.to_seq (List.mapi (fun i world -> (i, world)) (worlds node x.step.takes))
    |> Seq.filter_map (fun (i, world) ->
           let next = readied facts node (took x i world node) x.step.takes in
           if fits facts names node next x.step.takes then Some (looked next) else None)
    |> fun seq -> seq ()
  in
  let passed node = { node with at = node.at + 1; trail = NextMoment 0 :: node.trail } in
  let alone node entry () =
    List.to_seq (List.mapi (fun i world -> (i, world)) (worlds node entry))
    |> Seq.filter_map (fun (i, world) ->
           let next =
             {
               at = node.at + 1;
               world;
               devices = devices_after tolerates node.devices entry;
               flight = (if ends entry then [] else node.flight);
               ready = false;
               trail = NextMoment i :: node.trail;
             }
           in
           let next = readied facts node next entry in
           if fits facts names node next entry then Some next else None)
    |> fun seq -> seq ()
  in
  let by_answer a b = compare a.answered b.answered in
  let children node =
    match facts.moments.(node.at) with
    | Called (_, entry) ->
        let steps = facts.called_at.(node.at) in
        let next = passed { node with flight = node.flight @ steps } in
        let next =
          match steps with
          | [ x ] when is_flush entry -> (
              match worlds next x.step.takes with [ world ] ->
                  readied facts next (took x 0 world next) x.step.takes
              | _ -> next)
          | _ -> next
        in
        Seq.return (looked next)
    | Answered id -> (
        match List.find_opt (fun x -> x.step.due && x.step.of0 = id) node.flight with
        | None -> Seq.return (passed node)
        | Some x ->
            let steps = List.map (fun y -> y.step) node.flight in
            let needed = ahead (List.length steps) profile steps [ x.step ] in
            let others =
              List.filter
                (fun y ->
                  y.step.number <> x.step.number
                  && List.exists (fun z -> z.number = y.step.number) needed)
                node.flight
              |> List.stable_sort by_answer
            in
            Seq.flat_map (take node) (List.to_seq (x :: others)))
    | Alone entry ->
        let others = List.stable_sort by_answer node.flight in
        let more = if quiet entry (List.map (fun y -> y.step.takes) node.flight) then [] else others in
        Seq.append (alone node entry) (Seq.flat_map (take node) (List.to_seq more))
  in
  let rec search = function
    | [] -> []
    | seq :: rest -> (
        match seq () with
        | Seq.Nil -> search rest
        | Seq.Cons (node, _) when node.at = last -> List.rev node.trail
        | Seq.Cons (node, more) -> search (children node :: more :: rest))
  in
  match history with
  | Alone (Event (Create blocks) as created) :: _ -> (
      let world = fresh_world blocks in
      let start = { at = 0; flight = []; world; devices = all_good; ready = false; trail = [] } in
      let start = readied facts start start created in
      if last = 0 then [] else try search [ Seq.return start ] with Gave_up | Stack_overflow -> [])
  | _ -> []
