(* Whether the answers of a history may still come true after some of its steps. Not trusted: see
   propose.ml. *)

open Checker
open Facts

type node = {
  at : int; (* the moments before this one have passed *)
  flight : step list;
  world : int world;
  devices : devices;
  ready : bool; (* what the next power cut may leave agrees with what is read after it *)
  trail : proposal list; (* the newest first *)
}

let looked_at = 8 (* of the answers that tell of a block or a name: the first of them *)

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

(* Whether a step in flight has to overwrite the value before this moment; a revert overwrites all. *)
let lost_until node block value moment =
  List.exists
    (fun x ->
      x.answered < moment
      && (deed_of x.step.takes = Reverts
         || List.exists (fun (b, v) -> b = block && v <> value) (writes x.step.takes)))
    node.flight

(* Whether a snapshot may be taken that [o] sees reverted to. *)
let comes_back facts node o =
  Hashtbl.fold
    (fun name reverts found ->
      found || (may_come node o reverts && may_come node o (multi facts.snapshots name)))
    facts.reverts false

(* Whether the live disk, if it holds the value, may hold it at this moment, before [o]. *)
let stays facts node o block value moment =
  (not (lost_until node block value moment)) || comes_back facts node o

let restored facts node o block value (snaps : (string * int cell pmap) list) =
  List.exists
    (fun (name, blocks) ->
      may_hold node.world blocks block value && may_come node o (multi facts.reverts name))
    snaps

(* The last step that has not been taken, and that must be before the power cut, after which that
   leaves only what is on the disk then, or comes later. *)
let barrier facts node crash =
  let before x = x.answered < crash && free node x in
  let later found x = if found = None || (Option.get found).called < x.called then Some x else found in
  match Hashtbl.find_opt facts.barriers crash with
  | Some x when before x -> Some x
  | _ ->
      List.filter (fun x -> facts.is_barrier x && before x) node.flight |> List.fold_left later None

let left facts node o block value =
  match List.find_opt (fun at -> at >= node.at) facts.crashes with
  | Some crash when crash < o.answered -> (
      match barrier facts node crash with
      | Some x ->
          may_hold node.world node.world.seen.live_blocks block value
          && not (lost_until node block value x.called)
      | None ->
          List.exists
            (fun y ->
              may_hold node.world y.kept.live_blocks block value
              || List.mem value (Option.value (plookup (key block) y.since) ~default:[])
              || restored facts node o block value y.kept.snap_blocks)
            node.world.leftovers)
  | _ -> false

(* Whether the live disk may hold the value when [o] is taken. *)
let within_reach facts node o block value =
  let seen = node.world.seen in
  (may_hold node.world seen.live_blocks block value && stays facts node o block value o.called)
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

(* What could not come true any more, the last time. *)
type conflict =
  | Nothing
  | Of_block of int
  | Of_image of int list (* blocks of what a power cut leaves *)
  | Of_name of string

let conflict = ref Nothing

(* Whether the step may mend it. *)
let helps x =
  let writes_to blocks =
    deed_of x.step.takes = Reverts
    || List.exists (fun (block, _) -> List.mem block blocks) (writes x.step.takes)
  in
  match !conflict with
  | Nothing -> false
  | Of_block block -> writes_to [ block ]
  | Of_image blocks -> writes_to blocks
  | Of_name name -> (
      match deed_of x.step.takes with Snaps other | Drops other -> other = name | _ -> false)

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
      let held blocks (block, value) = may_hold node.world blocks block value in
      let comes blocks (block, value) =
        held blocks (block, value) || may_come node cut (multi facts.writers (block, value))
      in
      let seen = node.world.seen in
      let view name = find name seen.snap_blocks in
      let without fits = List.filter (fun item -> not (fits seen.live_blocks item)) image.blocks in
      let called y = if told y.step.takes then 0 else y.called in
      let soonest item =
        List.filter (free node) (multi facts.writers item) |> List.map called |> List.fold_left min at
      in
      let no_sooner = List.fold_left (fun last item -> max last (soonest item)) 0 (without held) in
      let will_hold blocks (block, value) =
        comes blocks (block, value)
        && (stays facts node cut block value no_sooner
           || may_come node cut (multi facts.writers (block, value)))
      in
      let late = without will_hold in
      let or_conflict what fits = fits || (conflict := what (); false) in
      or_conflict (fun () -> Of_image (List.map fst late))
        (late = []
        || List.exists
             (fun (name, blocks) ->
               may_come node cut (multi facts.reverts name) && List.for_all (comes blocks) image.blocks)
             seen.snap_blocks)
      && List.for_all
           (fun (name, there) ->
             or_conflict
               (fun () -> Of_name name)
               ((view name <> None) = there
               || may_come node cut (multi (if there then facts.snapshots else facts.deletes) name)))
           image.known
      && List.for_all
           (fun (name, block, value) ->
             or_conflict
               (fun () -> Of_name name)
               ((match view name with
                | Some blocks -> held blocks (block, value)
                | None -> false)
               || may_come node cut (multi facts.snapshots name)))
           image.views

let held world block = Some (cell_at 0 world.seen.live_blocks (key block))

(* Whether the node, which came from [before] by this entry, may still lead to an order. *)
let fits facts names before node entry =
  let check block =
    block_fits facts names node (held before.world block) block || (conflict := Of_block block; false)
  in
  let all () =
    let rec go block = block >= node.world.blocks_count || (check block && go (block + 1)) in
    let present name = presence_fits facts node name || (conflict := Of_name name; false) in
    go 0 && Hashtbl.fold (fun name _ fits -> fits && present name) facts.presence true
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
