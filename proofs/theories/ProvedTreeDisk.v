(** The proved disk whose maps are shared trees, as programs over block I/O.

Requests, log and data are those of [ProvedDisk.v]. A checkpoint writes the nodes that no page has, one block
each, to pages that the newest checkpoint does not use, and the roots, with what stands beside the trees, to
the slot that is not in use ([TreeStore.v]). Recovery reads the nodes back, and replays the log on the trees.

A walk frees what no view has any more, one node in a step. It needs no I/O: it is begun again from the newest
checkpoint after a power cut. *)
From stdpp Require Import gmap strings.
From LogDisk Require ProvedDisk TreeStore.
From LogDisk Require Import VirtualDisk Medium Codec ProvedTreeMaps.
From Coq Require Import PeanoNat.    (* last: extraction knows its names *)
Import ProvedDisk(geometry, disk_blocks, log_blocks, slot_blocks, data_blocks, most_snapshots, log_record(..),
  request(..), superblock, header_address, body_address, data_address, found(..), data_of, no_room, exceeds).
Import TreeIndex(trees, named, next_mba).

Record memory := Memory {
  shape : geometry;
  current : tree_maps;
  pages : gmap nat nat;   (* node -> page: what the newest checkpoint uses *)
  free : gmap nat ();     (* places that nothing refers to: not all of them, until they are collected *)
  next_record : nat;      (* the number of the next log record *)
  first_record : nat;     (* of the first behind the newest checkpoint *)
  serial : nat;           (* of the newest checkpoint *)
  slot : bool;            (* where it is *)
  newest : list nat;      (* the places of the newest record in the log *)
  tree_size : nat * nat;  (* levels of nodes, less one; and the pages that there are *)
}.
Definition page_blocks (y : memory) : nat := (tree_size y).2.

(** ** Where things stand *)

(** Pages stand behind the data. *)
Definition page_address (g : geometry) (p : nat) : nat := data_address g (data_blocks g + p).
Definition layout_of (g : geometry) : TreeStore.layout :=
  TreeStore.Layout header_address (body_address g) (page_address g) (slot_blocks g).

(** Beside the trees: where the log goes on, the names of snapshots, the middle map, the next MBA. *)
Definition beside : Type := nat * (gmap name nat * (gmap nat nat * nat)).
Definition beside_codec : codec beside :=
  both number (both (finite_map text number) (both (finite_map number number) number)).
Definition beside_of (first : nat) (t : tree_maps) : beside :=
  (first, (named (views t), (places t, next_mba (views t)))).
Definition maps_of (s : SharedTree.state) (x : beside) : tree_maps :=
  TreeMaps (TreeIndex.Index s x.2.1 ∅ x.2.2.2) x.2.2.1.

(** The shape of the disk, and the size of its trees. *)
Definition tree_superblock : codec (geometry * (nat * nat)) :=
  both (ProvedDisk.superblock_codec_of "proved-disk trees 5"%string) (both number number).

(** ** Which places are in use *)

Definition used_places (t : tree_maps) (kept : list nat) : gmap nat () :=
  foldl (λ u e, <[e.2 := ()]> u) (foldr (λ p u, <[p := ()]> u) ∅ kept) (map_to_list (places t)).
Definition collected (g : geometry) (t : tree_maps) (kept : list nat) : gmap nat () :=
  ProvedDisk.unused (used_places t kept) (data_blocks g) ∅.

(** The first [n] of so many pages that the newest checkpoint does not use; fewer, where there are no more. *)
Definition free_pages (all : nat) (on : gmap nat nat) (n : nat) : list nat :=
  let used : gmap nat () := foldl (λ u e, <[e.2 := ()]> u) ∅ (map_to_list on) in
  take n (List.filter (λ p, match used !! p with Some _ => false | None => true end)
    (seq 0 (all `min` (n + length (map_to_list on))))).

Section Programs.
Context `{blocks} (bits : nat).

(** ** Checkpoint and recovery *)

Definition store_of (y : memory) : TreeStore.memory beside :=
  TreeStore.Memory _ (trees (views (current y))) (pages y) (beside_of (next_record y) (current y)) (serial y)
    (slot y).

(** The memory after a checkpoint. *)
Definition committed (y : memory) (z : TreeStore.memory beside) : memory :=
  Memory (shape y)
    (TreeMaps (TreeIndex.with_trees (TreeStore.trees z) (views (current y))) (places (current y)))
    (TreeStore.pages z) (free y) (next_record y) (next_record y) (TreeStore.serial z) (TreeStore.slot z) []
    (tree_size y).

(** [k] goes on with the memory, the old one if nodes or roots do not fit, or too few pages are left. *)
Definition checkpoint {A} (y : memory) (k : memory → program block A) : program block A :=
  let new := length (TreeBlocks.unwritten (trees (views (current y))) (pages y)) in
  TreeStore.checkpoint beside_codec (layout_of (shape y)) (store_of y)
    (free_pages (page_blocks y) (pages y) new)
    (λ z, k (if decide (TreeStore.serial z = serial y) then y else committed y z)).

Definition room_for (y : memory) (k : nat) : bool :=
  bool_decide (k + (next_record y - first_record y) ≤ log_blocks (shape y)).
Definition has_room (y : memory) : bool := room_for y 1.
Definition with_room {A} (k : nat) (y : memory) (then_ : memory → program block A) : program block A :=
  if room_for y k then then_ y else checkpoint y then_.

(** [k] goes on with the memory; with nothing if this is no disk. *)
Definition recover {A} (k : option memory → program block A) : program block A :=
  ReadBlock superblock (λ b,
    match unpack tree_superblock b with
    | None => k None
    | Some (g, size) =>
        TreeStore.recover beside_codec (layout_of g) (λ z,
          match z with
          | None => k None
          | Some z =>
              let fst := (TreeStore.beside z).1 in
              let start := Found fst (maps_of (TreeStore.trees z) (TreeStore.beside z)) [] in
              ProvedDisk.replay (apply_record bits) g (log_blocks g) start start (digest []) (λ before now d,
                ProvedDisk.confirm g before now d (λ r, let 'Found n t ps := r in
                  k (Some (Memory g t (TreeStore.pages z) (collected g t ps) n fst (TreeStore.serial z)
                    (TreeStore.slot z) ps size))))
          end)
    end).

(** ** Requests *)

Definition outcome : Type := memory * answer * list block.

Definition misses (t : tree_maps) (n : name) : list code :=
  if valid_name n then match named (views t) !! n with Some _ => [] | None => [NoSuchSnapshot] end
  else [BadRequest].
Definition clashes (t : tree_maps) (n : name) : list code :=
  if valid_name n then match named (views t) !! n with Some _ => [SnapshotExists] | None => [] end
  else [BadRequest].

Definition faults_of (y : memory) (q : request) : list code :=
  match q with
  | DoWrite lba data => exceeds (shape y) lba (length data)
  | DoUnmap lba count => exceeds (shape y) lba count
  | DoSnapshot n => clashes (current y) n
  | DoDelete n | DoRevert n => misses (current y) n
  | DoFlush | DoRestart => []
  | DoRead from lba count =>
      exceeds (shape y) lba count ++ match from with Live => [] | Named n => misses (current y) n end
  end.

Definition one_too_many (y : memory) (q : request) : bool :=
  match q with
  | DoSnapshot _ => bool_decide (most_snapshots (shape y) ≤ length (map_to_list (named (views (current y)))))
  | _ => false
  end.

(** The memory once [r] is in the log; [fr] is free then. *)
Definition logged (y : memory) (r : log_record) (fr : gmap nat ()) : memory :=
  Memory (shape y) (apply_record bits r (current y)) (pages y) fr (ProvedDisk.size_of r + next_record y)
    (first_record y)
    (serial y) (slot y) (ProvedDisk.places_of r) (tree_size y).

Definition update (y : memory) (places : list nat) (q : request) : program block outcome :=
  let refused := Done (y, no_room q, []) in
  if one_too_many y q then refused else
  ProvedDisk.update_log (shape y) (next_record y) (room_for y) (free y) places q refused
    (λ r fr, Done (logged y r fr, Ok, [])).

(** A request; [places] is where the scheduler proposes that its data go. *)
Definition perform (y : memory) (places : list nat) (q : request) : program block outcome :=
  match faults_of y q with
  | e :: _ => Done (y, Refused e, [])
  | [] =>
      match q with
      | DoRead from lba count =>
          ProvedDisk.read_places (shape y) (place_at bits (current y) from <$> seq lba count)
            (λ bs, Done (y, Ok, bs))
      | DoFlush => Done (y, Ok, [])
      | DoRestart =>
          recover (λ r, Done (match r with Some y' => (y', Ok, []) | None => (y, UnknownOutcome, []) end))
      | _ =>
          let places := take (length (data_of q)) places in
          with_room (ProvedDisk.size_for q places) y (λ y, update y places q)
      end
  end.

(** Several writes in one record. *)
Definition write_group (y : memory) (places : list nat) (ws : list (nat * list block)) :
    program block (memory * bool) :=
  with_room (ProvedDisk.size_of (ProvedDisk.record_of_group places ws)) y (λ y,
    ProvedDisk.group_log (shape y) (next_record y) (room_for y) (free y) places ws (Done (y, false))
      (λ r fr, Done (logged y r fr, true))).

(** ** Upkeep, which the scheduler asks for *)

Inductive upkeep :=
  | Keep (u : ProvedDisk.upkeep)
  | Walk (w n : nat).    (* a step of the walk [w], at node [n] *)

Definition with_maps (y : memory) (t : tree_maps) (fr : gmap nat ()) : memory :=
  Memory (shape y) t (pages y) fr (next_record y) (first_record y) (serial y) (slot y) (newest y)
    (tree_size y).

Definition collect (y : memory) : memory :=
  with_maps y (current y) (collected (shape y) (current y) (newest y)).
Definition walk_on (y : memory) (w n : nat) : memory :=
  match walk w n (current y) with Some t => with_maps y t (free y) | None => y end.

Definition maintain (y : memory) (u : upkeep) : program block memory :=
  match u with
  | Keep ProvedDisk.Checkpoint => checkpoint y Done
  | Keep ProvedDisk.Collect => Done (collect y)
  | Keep (ProvedDisk.Clean moves) => with_room (ProvedDisk.size_of (LogMove moves)) y (λ y,
      ProvedDisk.move_log (shape y) (next_record y) (room_for y) (free y) (places (current y)) moves (Done y)
        (λ r fr, Done (logged y r fr)))
  | Walk w n => Done (walk_on y w n)
  end.

(** ** A new disk, whatever the device held *)

(** There are [S levels] levels of nodes, enough for the blocks of the disk, and so many pages. *)
Definition format (size : nat * nat) (g : geometry) : program block (option memory) :=
  let levels := size.1 in
  let t := end_epoch (no_trees levels) in
  let y := Memory g t {[0 := 0]} (collected g t []) 1 1 1 false [] size in
  match pack (put tree_superblock (g, size)), pack (put TreeBlocks.kids_codec ∅),
    pack_many (slot_blocks g) (put (TreeStore.body_codec beside_codec)
      (TreeBlocks.roots_of (trees (views t)) (pages y), beside_of 1 t)) with
  | Some super, Some node, Some bs =>
      match seal (put TreeStore.header_codec (1, length bs)) with
      | Some header =>
          if decide (0 < log_blocks g ∧ 0 < size.2 ∧ disk_blocks g ≤ 2 ^ (bits * S levels)) then
            let image := super :: header :: blank_block :: replicate (log_blocks g) blank_block ++ bs in
            write_all ((page_address g 0, node) :: zip (seq 0 (length image)) image)
              (FlushBlocks (Done (Some y)))
          else Done None
      | None => Done None
      end
  | _, _, _ => Done None
  end.
End Programs.

(** ** What the scheduler may ask *)

Definition is_free (y : memory) (p : nat) : bool := bool_decide (is_Some (free y !! p)).
Definition first_free (y : memory) (n : nat) : list nat := take n (map_to_list (free y)).*1.
Definition in_use (y : memory) : list (nat * nat) := map_to_list (places (current y)).

(** The walks that are left. *)
Definition walks (y : memory) : list nat :=
  omap (λ e, match e.1 with inl _ => None | inr w => Some w end)
    (map_to_list (SharedTree.claims (trees (views (current y))))).

(** Where the walk [w] goes on: down from [n], to a node that somebody else holds or whose kids are
finished. *)
Fixpoint next_node (s : SharedTree.state) (w : nat) (c : SharedTree.claim) (fuel n : nat) : nat :=
  match fuel, SharedTree.nodes s !! n with
  | S fuel, Some nd =>
      if SharedTree.kept s w c n nd then n else
      match List.find (λ e, SharedTree.is_held (SharedTree.nodes s) c e.2) (map_to_list (SharedTree.kids
        nd)) with
      | Some e => next_node s w c fuel e.2
      | None => n
      end
  | _, _ => n
  end.
Definition next_step (y : memory) (w : nat) : nat :=
  let s := trees (views (current y)) in
  match SharedTree.claims s !! inr w with
  | Some c => next_node s w c (S (SharedTree.height s)) (SharedTree.root c)
  | None => 0
  end.

(** How many blocks a view maps, for whoever lists the disk. *)
Fixpoint mapped_below (h : gmap nat SharedTree.node) (levels n : nat) : nat :=
  match levels, h !! n with
  | S levels, Some nd => foldl (λ c e, c + mapped_below h levels e.2) 0 (map_to_list (SharedTree.kids nd))
  | 0, Some _ => 1
  | _, None => 0
  end.
Definition mapped_by (y : memory) (v : nat) : nat :=
  let s := trees (views (current y)) in
  match SharedTree.claims s !! inl v with
  | Some c => mapped_below (SharedTree.nodes s) (SharedTree.height s) (SharedTree.root c)
  | None => 0
  end.
Definition listing (y : memory) : list (name * nat) :=
  (λ e, (e.1, mapped_by y e.2)) <$> map_to_list (named (views (current y))).
Definition live_blocks (y : memory) : nat := mapped_by y (SharedTree.epoch (trees (views (current y)))).
(** Nodes in memory, and those of the newest checkpoint. *)
Definition node_count (y : memory) : nat * nat :=
  (length (map_to_list (SharedTree.nodes (trees (views (current y))))), length (map_to_list (pages y))).

(** ** For OCaml, under names that [ProvedDisk.v] does not have *)

Definition tree_memory := memory.
Definition tree_upkeep := upkeep.
Definition tree_perform := @perform.
Definition tree_group := @write_group.
Definition tree_maintain := @maintain.
Definition tree_recover := @recover.
Definition tree_format := @format.
Definition tree_shape := shape.
Definition tree_log (y : memory) : nat * nat := (first_record y, next_record y).
Definition tree_slot (y : memory) : nat * bool := (serial y, slot y).
Definition tree_is_free := is_free.
Definition tree_first_free := first_free.
Definition tree_in_use := in_use.
Definition tree_listing := listing.
Definition tree_live_blocks := live_blocks.
