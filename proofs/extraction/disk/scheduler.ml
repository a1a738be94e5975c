(* Where data goes, and when to checkpoint, to collect and to clean. Nothing here is trusted: the proved
   programs check each proposal. Data fills the holes of one segment after the other, the emptiest first. *)

open Proved_core

let is_free = Maps.is_free
let in_use = Maps.in_use

type t = {
  mutable free_in : int array;  (* free places in each segment, as far as is known; [||] if it is not *)
  mutable found : int list array;  (* which ones they were when they were counted *)
  mutable total : int;  (* their sum *)
  mutable at : int;  (* the segment that is being filled *)
  mutable holes : int list;  (* the free places that are left in it *)
  mutable collected : bool;  (* for the write that comes next *)
  mutable cleaned : bool;
}

let create () = { free_in = [||]; found = [||]; total = 0; at = 0; holes = []; collected = false; cleaned = false }
let forget s = s.free_in <- [||]; s.holes <- []
let width y = max 1 (Maps.shape y).segment_blocks
let segment y place = place / width y
let places_of y g = List.init (min (width y) ((Maps.shape y).data_blocks - (g * width y))) (fun i ->
  (g * width y) + i)

(* The places that are free. They are asked for in the order of the map, a trie from the lowest bit on: the nodes
   on the way to one are near those on the way to the next. *)
let all_free y =
  let places = (Maps.shape y).data_blocks in
  let found = Bytes.make (places + 1) ' ' in
  let rec visit key step =
    if step <= places then (visit key (2 * step); visit (key + step) (2 * step))
    else if 0 < key && key <= places && is_free y (key - 1) then Bytes.set found key 'f' in
  visit 0 1;
  fun place -> Bytes.get found (place + 1) = 'f'

(* Counts the free places, where they are not known. *)
let count s y =
  if s.free_in = [||] then begin
    let segments = ((Maps.shape y).data_blocks + width y - 1) / width y in
    let is_free = all_free y in
    s.found <- Array.init segments (fun g -> List.filter is_free (places_of y g));
    s.free_in <- Array.map List.length s.found;
    s.total <- Array.fold_left ( + ) 0 s.free_in
  end

let free_places s y = count s y; s.total
let is_empty y g free = free = List.length (places_of y g)

let any_empty_segment s y =
  count s y;
  let found = ref false in
  Array.iteri (fun g free -> if is_empty y g free then found := true) s.free_in;
  !found

(* The segment with the most free places. *)
let emptiest s =
  let best = ref 0 in
  Array.iteri (fun g free -> if free > s.free_in.(!best) then best := g) s.free_in;
  !best

(* `n` free places: of the segment that is being filled, then of the emptiest ones. Fewer where there are no
   more. *)
let rec places s y n =
  match s.holes with
  | _ when n = 0 -> []
  | place :: rest ->
      s.holes <- rest;
      s.free_in.(s.at) <- s.free_in.(s.at) - 1;
      s.total <- s.total - 1;
      place :: places s y (n - 1)
  | [] when free_places s y <= 0 -> []
  | [] ->
      s.at <- emptiest s;
      s.holes <- s.found.(s.at);
      s.found.(s.at) <- [];
      if s.holes = [] then begin
        s.total <- s.total - s.free_in.(s.at);  (* the count was wrong *)
        s.free_in.(s.at) <- 0
      end;
      places s y n

let propose s y n =
  s.collected <- false;
  s.cleaned <- false;
  places s y n

(* A request was refused for no fault of its places. *)
let give_back s proposed =
  if s.free_in <> [||] then begin
    s.holes <- proposed @ s.holes;
    s.free_in.(s.at) <- s.free_in.(s.at) + List.length proposed;
    s.total <- s.total + List.length proposed
  end

(* Moves that empty the segment with the least in it into holes of the others. *)
let moves s y =
  count s y;
  let used = Array.make (Array.length s.free_in) [] in
  List.iter (fun (mba, place) -> let g = segment y place in used.(g) <- (mba, place) :: used.(g)) (in_use y);
  let victim = ref None in
  Array.iteri (fun g chunks ->
      let better = match !victim with None -> true | Some v -> List.length chunks < List.length used.(v) in
      if chunks <> [] && g <> s.at && better then victim := Some g) used;
  match !victim with
  | None -> []
  | Some v ->
      let chunks = List.filteri (fun i _ -> i < 200) used.(v) in
      let holes = ref [] and missing = ref (List.length chunks) in
      Array.iteri (fun g free ->
          if g <> v && g <> s.at && !missing > 0 && not (is_empty y g free) then begin
            let found = List.filteri (fun i _ -> i < !missing) (List.filter (is_free y) (places_of y g)) in
            missing := !missing - List.length found;
            holes := !holes @ found
          end) s.free_in;
      List.mapi (fun i hole -> (fst (List.nth chunks i), hole)) !holes

let log_is_full y = let first, next = Maps.log y in next - first >= (Maps.shape y).log_blocks

(* What to do before a write of `n` blocks; asked again after each upkeep. *)
let wanted s y n =
  if log_is_full y then Some Checkpoint
  else if n = 0 then None
  else if (not s.collected) && free_places s y < n then begin
    s.collected <- true;
    Some Collect
  end
  else if s.collected && (not s.cleaned) && free_places s y > n + (2 * width y) && not (any_empty_segment s y)
  then begin
    s.cleaned <- true;
    match moves s y with [] -> None | found -> Some (Clean found)
  end
  else None

(* How many steps of walks come before a write of `n` blocks: all that are left before a checkpoint, where there
   are many walks, and where there is no room. *)
let steps s y n =
  let many = 32 in
  if log_is_full y || List.length (Maps.walks y) > many || (n > 0 && free_places s y < n) then 100_000 else 64
