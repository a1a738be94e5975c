(** The theorems of trees on a device are not vacuous, and need what they ask for: an execution, and
hypotheses
dropped, computed. *)
From LogDisk Require Import TreeIndexBounds.
From LogDisk Require ProvedDiskProgress.
From LogDisk Require Import Medium Codec ByteBlocks TreeBlocks TreeRoots TreeStore TreeStoreTheorem
TreeStoreCost.

(** Blocks of 64 words of one byte, no digests; two headers, two slots of [n] blocks, then pages. *)
Local Instance small_blocks : blocks := byte_blocks 1 64 1 (λ _, (0, 0)) (λ _, false).

Definition plain (n : nat) : layout :=
  Layout (λ s, if s then 1 else 0) (λ s i, 2 + (if s then n else 0) + i) (λ p, 2 + 2 * n + p) n.

Lemma plain_apart n : apart (plain n).
Proof. split; simpl; intros; repeat case_match; try lia; try done; split; done || lia. Qed.

Definition made : option (memory nat) * medium block :=
  execute (format number (plain 8) 1 7) (Medium (λ _, zero_block) []).
Definition y0 : memory nat := Memory _ (new_trees 1) {[0 := 0]} 7 1 false.

(** After some changes, a checkpoint of the trees with 9 beside them, and what is recovered then. *)
Definition changed (history : list action) : state := default (new_trees 1) (run (new_trees 1) history).
Definition before (history : list action) : memory nat := Memory _ (changed history) {[0 := 0]} 9 1 false.
Definition saved (history : list action) (places : list nat) : memory nat * medium block :=
  execute (checkpoint number (plain 8) (before history) places Done) (Medium (read_block made.2) []).
Definition found_again (m : medium block) : option (memory nat) :=
  (execute (recover number (plain 8) Done) (Medium (read_block m) [])).1.

(** Writes and snapshots, the deletion of a snapshot, and a walk that has freed a chunk of what is still
there. *)
Definition some_changes : list action :=
  [Write [0; 0] 1; Write [0; 1] 5; Snapshot; Write [0; 0] 2; Snapshot; Write [1; 1] 3; Delete 2; Reclaim 7 3;
   Reclaim 13 3].

(** What recovery finds of some changes: the number of the checkpoint, what stood beside the trees, node 3,
and
two reads of snapshot 3 and of the live view. *)
Definition summary (y : memory nat) : nat * nat * option nat * list (option nat) :=
  (serial y, beside y, birth <$> nodes (trees y) !! 3,
   [read (trees y) 3 [0; 0]; read (trees y) 3 [1; 1]; read (trees y) (epoch (trees y)) [0; 0];
    read (trees y) (epoch (trees y)) [1; 1]]).
Definition found_of (history : list action) (places : list nat) :=
  summary <$> found_again (saved history places).2.

Definition six : list nat := [1; 2; 3; 4; 5; 6].

(** A checkpoint, and what recovery finds: the snapshot and the live view, and not the chunk that was freed.
*)
Theorem tree_store_execution : summary <$> made.1 = Some (1, 7, None, [None; None; None; None]) ∧
  (birth <$> nodes (changed some_changes) !! 3) = None ∧
  summary (saved some_changes six).1 = (2, 9, None, [Some 2; None; Some 2; Some 3]) ∧
  found_of some_changes six = Some (2, 9, None, [Some 2; None; Some 2; Some 3]) ∧
  ProvedDiskProgress.cost (checkpoint number (plain 8) (before some_changes) six Done) made.2 = (0, 9, 2).
Proof. split_and!; by vm_compute. Qed.

(** [checkpoint_recovers] with a crash of the trees that puts a walk back behind what it has freed: recovery
finds
a chunk again that is not there. *)
Definition put_back : list action := some_changes ++ [SharedTree.Crash 13 []].

Theorem walks_must_not_go_back :
  (birth <$> nodes (changed put_back) !! 3) = None ∧
  summary (saved put_back six).1 = (2, 9, None, [Some 2; None; Some 2; Some 3]) ∧
  found_of put_back six = Some (2, 9, Some 0, [Some 2; None; Some 2; Some 3]).
Proof. split_and!; by vm_compute. Qed.

(** And where what is left of a torn header unseals, it may hold a number that no checkpoint has had. *)
Theorem torn_header_forgets : is_Some (found_again made.2) ∧
  found_again (write_block made.2 (header_at (plain 8) true) (sealed [200; 0])) = None.
Proof. split; [|by vm_compute]. destruct (found_again made.2) eqn:E; [by eexists|by vm_compute in E]. Qed.

(** [checkpoint_cost] with a page that the newest checkpoint uses: the proposal is not taken. *)
Theorem used_pages_are_refused :
  length (unwritten (changed some_changes) {[0 := 0]}) = 6 ∧
  summary (saved some_changes [0; 1; 2; 3; 4; 5]).1 = (1, 9, None, [Some 2; None; Some 2; Some 3]).
Proof. split_and!; by vm_compute. Qed.

(** [new_nodes] where not all nodes have a page: one is new without any change. *)
Theorem first_checkpoint_writes_all : length (unwritten (new_trees 1) ∅) = 1.
Proof. by vm_compute. Qed.

(** [pages_suffice] with a page less: the only one is the root's, and a write needs another. *)
Theorem one_page_is_too_few : let y := Memory _ (default (new_trees 0) (run (new_trees 0) [Write [0] 1]))
    {[0 := 0]} 7 1 false in
  size (pages y) + length (unwritten (trees y) (pages y)) = 2 ∧
  ¬ ∃ places, proper_places y places ∧ Forall (λ p, p < 1) places.
Proof.
  intros y. assert (length (unwritten (trees y) (pages y)) = 1 ∧ elements (LogStructuredDisk.targets (pages
  y)) = [0])
    as [Hlen Hused] by (split; by vm_compute).
  split; [by vm_compute|]. intros (places & (Hl & _ & Hfree) & Hlow). rewrite Hlen in Hl.
  destruct places as [|p [|]]; try done. rewrite Forall_singleton in Hfree.
  rewrite Forall_singleton in Hlow. apply Hfree, elem_of_elements. rewrite Hused.
  apply elem_of_list_singleton.
  lia.
Qed.
