(* Where data goes, and when to checkpoint, to collect and to clean.
   Nothing here is trusted: the proved programs
   check each proposal. Data fills one segment after the other, the emptiest first. *)

open Proved_core

type t = {
  mutable free_in : int array;  (* free places in each segment, as far as is known; [||] if it is not *)
  mutable at : int;  (* the segment that is being filled *)
}

let create () = { free_in = [||]; at = 0 }
let forget s = s.free_in <- [||]
let width y = max 1 y.shape.segment_blocks
let segment y place = place / width y
let places_of y g = List.init (min (width y) (y.shape.data_blocks - (g * width y))) (fun i ->
  (g * width y) + i)

(* Counts the free places, where they are not known. *)
let count s y =
  if s.free_in = [||] then begin
    let segments = (y.shape.data_blocks + width y - 1) / width y in
    s.free_in <- Array.init segments (fun g -> List.length (List.filter (is_free y) (places_of y g)))
  end

let free_places s y = count s y; Array.fold_left ( + ) 0 s.free_in
let is_empty y g free = free = List.length (places_of y g)

let empty_segments s y =
  count s y;
  let found = ref 0 in
  Array.iteri (fun g free -> if is_empty y g free then incr found) s.free_in;
  !found

(* The segment with the most free places. *)
let emptiest s =
  let best = ref 0 in
  Array.iteri (fun g free -> if free > s.free_in.(!best) then best := g) s.free_in;
  !best

(* `n` free places: of the segment that is being filled, then of the emptiest ones.
   Fewer where there are no more. *)
let rec propose s y n =
  count s y;
  if n = 0 || Array.length s.free_in = 0 then []
  else begin
    if s.free_in.(s.at) = 0 then s.at <- emptiest s;
    let g = s.at in
    if s.free_in.(g) = 0 then []
    else begin
      let found = List.filteri (fun i _ -> i < n) (List.filter (is_free y) (places_of y g)) in
      let taken = List.length found in
      (* Places that are proposed are taken; what the count says beyond them was wrong, or is used up. *)
      s.free_in.(g) <- (if taken < n then 0 else s.free_in.(g) - taken);
      found @ propose s y (n - taken)
    end
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

let log_is_full y = y.next_record - y.first_record >= y.shape.log_blocks

(* What to do before a write of `n` blocks, step by step: `step` says how many steps were taken. *)
let wanted s y n step =
  if log_is_full y then Some Checkpoint
  else if n = 0 || step > 4 then None
  else if step = 0 && (free_places s y < n || (s.free_in.(s.at) = 0 && empty_segments s y = 0))
    then Some Collect
  else if step = 1 && empty_segments s y = 0 && free_places s y > n + (2 * width y) then
    match moves s y with [] -> None | found -> Some (Clean found)
  else if step = 2 then Some Collect
  else None
