(* What a search has tried: where it comes to a second time by another order, it need not go on. Not
   trusted: see propose.ml. *)

open Checker
open Facts
open Lookahead

(* What stands for a node: nodes with the same number are taken for one. *)
let mix a b =
  let h = (a lxor (b * 0x9E3779B97F4A7C1)) * 0x2545F4914F6CDD1D in
  h lxor (h lsr 29)

let sum of_one = List.fold_left (fun total item -> total + of_one item) 0
let of_cell = function Known value -> value | Open i -> -1 - i

(* A block that holds zeroes is as one that was never written. *)
let of_blocks blocks =
  sum
    (fun (block, cell) -> if cell = Known 0 then 0 else mix block (of_cell cell))
    (pto_list blocks)

let of_shape shape =
  mix (of_blocks shape.live_blocks)
    (sum (fun (name, blocks) -> mix (Hashtbl.hash name) (of_blocks blocks)) shape.snap_blocks)

let of_leftover y =
  let of_block (block, values) = sum (mix block) (List.sort_uniq compare values) in
  mix (of_shape y.kept) (sum of_block (pto_list y.since))

let of_choices choices =
  sum
    (fun (i, { base; others }) -> List.fold_left mix (mix i (of_cell base)) others)
    (pto_list choices)

(* Of what a power cut may leave: under prefix, what agrees with what is read after it. *)
let of_leftovers facts node =
  let different leftovers = sum Fun.id (List.sort_uniq compare (List.map of_leftover leftovers)) in
  let { leftovers; _ } = node.world in
  match next_image facts node with
  | Some (_, image) -> different (List.filter (agrees node.world image) leftovers)
  | None when List.exists (fun at -> at >= node.at) facts.crashes -> different leftovers
  | None -> 0

(* The nodes, and what stands for the choices of the last one: few steps change these. *)
type tried = {
  nodes : (int, unit) Hashtbl.t;
  mutable choices : int choice pmap;
  mutable of_these : int;
}

let nothing () = { nodes = Hashtbl.create 1024; choices = PLeaf; of_these = of_choices PLeaf }

(* Whether the node has not been tried; now it has. *)
let is_new facts tried node =
  if node.world.choices != tried.choices then begin
    tried.choices <- node.world.choices;
    tried.of_these <- of_choices node.world.choices
  end;
  let this =
    List.fold_left mix node.at
      [
        sum (fun x -> mix 1 x.step.number) node.flight;
        of_shape node.world.seen;
        of_leftovers facts node;
        tried.of_these;
        Bool.to_int node.ready;
      ]
  in
  (not (Hashtbl.mem tried.nodes this)) && (Hashtbl.add tried.nodes this (); true)
