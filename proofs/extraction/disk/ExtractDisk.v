(** The proved disk as OCaml. Every mapping is trusted: it says which OCaml value stands for which Coq one.

Numbers are OCaml's integers (63 bits): what comes from outside is checked to be far below 2^62, and what is
counted (records, MBAs) grows by at most a few thousand per request. Names are OCaml's strings. *)
From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlNativeString.
From stdpp Require Import strings numbers.
From LogDisk Require Import ProvedTreeDisk ProvedDisk Leg Parity LegCode ServedDiskScheduler SparePlaces
  SplitFlush DiskMachine WriteBack WriteBackPlaces.

Extract Inlined Constant Compare_dec.le_dec => "(fun (a : int) b -> a <= b)".
Extract Inlined Constant Compare_dec.lt_dec => "(fun (a : int) b -> a < b)".
Extract Inlined Constant Nat.eq_dec => "Int.equal".
Extract Inlined Constant numbers.Nat.eq_dec => "Int.equal".
Extract Inlined Constant string_eq_dec => "Stdlib.String.equal".
Extract Inlined Constant Ascii.nat_of_ascii => "Stdlib.Char.code".
Extract Inlined Constant Ascii.ascii_of_nat => "(fun n -> Stdlib.Char.chr (n land 255))".
Extract Inlined Constant length => "Stdlib.List.length".

(* Only the stack and the speed: the definitions recur as deep as a list is long, and count in unary. *)
Extract Inlined Constant app => "(fun a b -> Stdlib.List.rev_append (Stdlib.List.rev a) b)".
Extract Inlined Constant list_omap => "Stdlib.List.filter_map".
Extract Inlined Constant PeanoNat.Nat.modulo => "(fun a b -> if b = 0 then a else a mod b)".
Extract Inlined Constant PeanoNat.Nat.div => "(fun a b -> if b = 0 then 0 else a / b)".
Extract Inlined Constant PeanoNat.Nat.pow => "(let rec pow a b = if b = 0 then 1 else a * pow a (b - 1) in pow)".
Extract Constant Pos.of_succ_nat =>
  "(let rec positive n =
      if n = 1 then XH else if n land 1 = 0 then XO (positive (n lsr 1)) else XI (positive (n lsr 1)) in
    fun n -> positive (n + 1))".
Extract Constant Pos.to_nat =>
  "(let rec number p = match p with XH -> 1 | XO p -> 2 * number p | XI p -> 2 * number p + 1 in number)".

(* A piece of a block is bytes, and a byte of the field a number. *)
Extract Inductive Parity.byte => "int" [ "Field.byte" ] "Field.bits".
Extract Inductive Vector.t => "Field.piece" [ "Field.none" "Field.none" ] "Field.none".
Extract Constant plus => "(fun _ -> Field.plus)".
Extract Constant times_byte => "(fun _ -> Field.times)".
Extract Constant zeroes => "Field.zeroes".
Definition byte_product := mul.

(* Operations of maps call each other, and not through records of them. *)
Extraction Inline base.lookup base.insert base.delete base.alter base.partial_alter base.singletonM base.empty base.fmap
  base.omap fin_maps.map_to_list fin_maps.map_insert fin_maps.map_delete gmap.gmap_lookup gmap.gmap_partial_alter
  pmap.Plookup pmap.Ppartial_alter pmap.pmap_car gmap.gmap_car.

Extraction "proved_core.ml" perform write_group maintain recover format first_free is_free in_use listing live_blocks
  on_leg open_leg settle_leg mirrors of_code raid byte_product tree_memory tree_upkeep tree_perform tree_group
  tree_maintain tree_recover tree_format tree_shape tree_log tree_slot tree_is_free tree_first_free tree_in_use
  tree_listing tree_live_blocks walks next_step walk_on node_count next_job
  spare_address tree_spare_address then_ delaying_request delaying_group delaying_maintain nothing_delayed
  delayed_again may_delay blocks_delayed delay_room tree_delay_room spares_places.
