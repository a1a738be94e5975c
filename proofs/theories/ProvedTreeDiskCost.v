(** What the proved disk with trees costs: a write as much as with maps, a checkpoint no more than is new. *)
From stdpp Require Import gmap strings.
From LogDisk Require TreeStore TreeStoreCost TreeBlocks TreeIndexBounds.
From LogDisk Require LogStructuredDiskReading.
From LogDisk Require Import VirtualDisk Medium Codec ProvedTreeMaps.
From LogDisk Require Import ProvedDisk ProvedDiskInvariant ProvedDiskProgress ProvedTreeDiskInvariant.
Import ProvedTreeDisk(layout_of, beside, beside_codec).
Import TreeIndex(trees).
Import LogStructuredDisk(targets).

(** ** Pages *)

Lemma filter_lengths {A} (f : A → bool) l :
  length (List.filter f l) + length (List.filter (λ x, negb (f x)) l) = length l.
Proof. induction l as [|x l IH]; simpl; [done|]. destruct (f x); simpl; lia. Qed.

Lemma used_in (es : list (nat * nat)) (u : gmap nat ()) p :
  is_Some (foldl (λ u e, <[e.2 := ()]> u) u es !! p) ↔ is_Some (u !! p) ∨ p ∈ es.*2.
Proof.
  revert u. induction es as [|e es IH]; intros u; simpl.
  - split; [by left|intros [?|?%elem_of_nil]; done].
  - rewrite IH, elem_of_cons. destruct (decide (p = e.2)) as [->|Hne].
    + rewrite lookup_insert. split; [intros _; right; by left|intros _; left; by eexists].
    + rewrite lookup_insert_ne by done. naive_solver.
Qed.

(** The pages that a checkpoint looks up are enough if there are so many, and none that the newest one
uses. *)
Theorem free_pages_proper all on n : n + length (map_to_list on) ≤ all → let ps := T.free_pages all on n in
  length ps = n ∧ NoDup ps ∧ Forall (λ p, p ∉ targets on) ps.
Proof.
  intros Hall. cbv zeta. unfold T.free_pages. rewrite Nat.min_r by done. clear Hall all.
  set (used := foldl _ _ _).
  set (f := λ p, match used !! p with Some _ => false | None => true end).
  set (all := seq 0 (n + length (map_to_list on))).
  assert (∀ p, f p = false ↔ p ∈ (map_to_list on).*2) as Hf.
  { intros p. unfold f. pose proof (used_in (map_to_list on) ∅ p) as Hu. rewrite lookup_empty in Hu.
    fold used in Hu. destruct (used !! p).
    - split; [intros _|done]. destruct (proj1 Hu) as [[? ?]|?]; [by eexists|done|done].
    - split; [done|]. intros Hp. destruct (proj2 Hu (or_intror Hp)) as [? ?]. done. }
  assert (NoDup (List.filter f all)) as Hdup.
  { apply NoDup_ListNoDup, List.NoDup_filter, NoDup_ListNoDup, NoDup_seq. }
  split_and!.
  - rewrite take_length. apply Nat.min_l.
    pose proof (filter_lengths f all) as Hlen. unfold all at 3 in Hlen. rewrite seq_length in Hlen.
    assert (length (List.filter (λ p, negb (f p)) all) ≤ length (map_to_list on).*2) as Hless.
    { apply submseteq_length, NoDup_submseteq.
      - apply NoDup_ListNoDup, List.NoDup_filter, NoDup_ListNoDup, NoDup_seq.
      - intros p Hp%elem_of_list_In%filter_In. destruct Hp as [_ Hp]. apply Hf. by destruct (f p). }
    rewrite fmap_length in Hless. lia.
  - rewrite <-(take_drop n (List.filter f all)) in Hdup. by apply NoDup_app in Hdup as [? _].
  - apply Forall_forall. intros p Hp%elem_of_take Ht. destruct Hp as (i & Hp & _).
    apply elem_of_list_lookup_2, elem_of_list_In, filter_In in Hp as [_ Hp].
    apply LogStructuredDiskReading.elem_of_targets in Ht as [m Hm].
    assert (f p = false) as Hno; [|congruence]. apply Hf, elem_of_list_fmap. exists (m, p).
    split; [done|]. by apply elem_of_map_to_list.
Qed.

Section Costs.
Context `{!blocks, !blocks_laws} (bits : nat).
Implicit Types y : T.memory.

(** ** Requests *)

(** The request is one that changes a view, its places are free, distinct and as many as its data, its
record is no
longer than a block, and the log has room. *)
Definition goes_into_log y places q : Prop := ∃ r fr,
  T.faults_of y q = [] ∧ T.one_too_many y q = false ∧ record_of q places = Some r ∧
  take_free places (T.free y) = Some fr ∧ length places = length (data_of q) ∧
  is_Some (seal (put log_codec (T.next_record y, (r, digest (data_of q))))) ∧ T.has_room y = true.

(** A write of [n] blocks costs [n] block writes, those of its record, and one flush, whatever snapshots there
are; so does another change, without data. No node is written. *)
Theorem tree_long_update_cost y places q r fr m :
  T.faults_of y q = [] → T.one_too_many y q = false → record_of q places = Some r →
  take_free places (T.free y) = Some fr → length places = length (data_of q) →
  record_goes (with_maps y no_maps) r (data_of q) → T.room_for y (size_of r) = true →
  cost (T.perform bits y places q) m = (0, size_of r + length (data_of q), 1).
Proof.
  intros Hfaults Hone Hr Hfree Hlen Hgoes Hroom. unfold T.perform. rewrite Hfaults, (take_ge places)
    by lia.
  assert (size_for q places = size_of r) as Hsize by (unfold size_for; by rewrite Hr).
  assert (cost (T.with_room (size_for q places) y (λ y, T.update bits y places q)) m =
    (0, size_of r + length (data_of q), 1)) as Hcost.
  { unfold T.with_room. rewrite Hsize, Hroom. unfold T.update, update_log.
    rewrite Hone, Hr, Hfree, decide_True by done.
    destruct (execute_append (with_maps y no_maps) r (data_of q) (Done (y, no_room q, []) : program block
      T.outcome)
      (Done (T.logged bits y r fr, Ok, [])) m) as (m' & _ & Hcost); [done|done|by eapply record_length|].
    unfold append in Hcost. cbn [with_maps shape next_record] in Hcost.
    change (room_for (with_maps y no_maps)) with (T.room_for y) in Hcost.
    unfold T.outcome in *. by apply Hcost. }
  by destruct q; simplify_eq/=.
Qed.

Theorem tree_update_cost y places q m : goes_into_log y places q →
  cost (T.perform bits y places q) m = (0, S (length (data_of q)), 1).
Proof.
  intros (r&fr&Hfaults&Hone&Hr&Hfree&Hlen&Hfits&Hroom).
  destruct (fits_goes (with_maps y no_maps) r (data_of q) Hfits) as [Hsize Hgoes].
  rewrite (tree_long_update_cost y places q r fr) by (by rewrite ?Hsize). by rewrite Hsize.
Qed.

(** ** Checkpoints *)

Lemma checkpoint_cost_of {A B C} (c : codec A) l (y : TreeStore.memory A) places m
    (k : TreeStore.memory A → program block B) (k' : TreeStore.memory A → program block C) :
  (∀ z m, cost (k z) m = (0, 0, 0)) → (∀ z m, cost (k' z) m = (0, 0, 0)) →
  cost (TreeStore.checkpoint c l y places k) m = cost (TreeStore.checkpoint c l y places k') m.
Proof.
  intros Hk Hk'. unfold TreeStore.checkpoint. repeat case_match; rewrite ?Hk, ?Hk'; try done.
  match goal with |- cost (write_all ?ws ?p) _ = cost (write_all _ ?p') _ =>
    destruct (execute_write_all ws p m) as (m1 & _ & ->); destruct (execute_write_all ws p' m) as (m2 & _ &
      ->)
    end.
  simpl. by rewrite Hk, Hk'.
Qed.

(** The nodes that are new since the last checkpoint, and the words of the next one: roots, with what stands
beside
the trees. *)
Definition new_nodes y : list (nat * SharedTree.node) :=
  TreeBlocks.unwritten (trees (views (T.current y))) (T.pages y).
Definition next_checkpoint y : TreeStore.memory beside :=
  TreeStore.checkpointed (T.store_of y) (T.free_pages (T.page_blocks y) (T.pages y) (length (new_nodes y))).
Definition root_words y : list nat :=
  put (TreeStore.body_codec beside_codec)
    (TreeBlocks.roots_of (TreeStore.trees (next_checkpoint y)) (TreeStore.pages (next_checkpoint y)),
     TreeStore.beside (T.store_of y)).

(** Nodes go into blocks, the words into a slot, and numbers into words; there are pages for the new nodes
beside those that the newest checkpoint uses. *)
Record goes_into_slot y : Prop := {
  trees_kept : let s := trees (views (T.current y)) in
    TreeIndexBounds.kept_trees bits (SharedTree.height s) s;
  nodes_fit : 1 + 4 * 2 ^ bits ≤ words ∧ 2 ^ bits < limit;
  numbers_fit : TreeBlocks.small_numbers (trees (views (T.current y))) (TreeStore.pages (next_checkpoint y));
  header_fits : S (T.serial y) < limit ∧ slot_blocks (T.shape y) < limit;
  words_small : Forall (λ w, w < limit) (root_words y);
  words_fit : length (root_words y) ≤ slot_blocks (T.shape y) * words;
  pages_left : length (new_nodes y) + length (map_to_list (T.pages y)) ≤ T.page_blocks y;
}.

(** A checkpoint writes each new node, the blocks of the roots, and a header; in two flushes. *)
Theorem tree_disk_checkpoint_cost y m : goes_into_slot y → ∃ k, k ≤ S (length (root_words y) / words) ∧
  cost (T.checkpoint y Done) m = (0, length (new_nodes y) + k + 1, 2).
Proof.
  intros [Hkept [Hwords Hlimit] Hsmall [Hserial Hslot] Hws Hfits Hpages].
  destruct (TreeStoreCost.checkpoint_cost beside_codec (layout_of (T.shape y)) bits _ (T.store_of y)
    (T.free_pages (T.page_blocks y) (T.pages y) (length (new_nodes y))) m Hkept Hwords Hlimit)
    as (_ & k & Hk & Hcost); try done;
    [by apply free_pages_proper|].
  exists k. split; [done|]. etransitivity; [|exact Hcost]. by apply checkpoint_cost_of.
Qed.
End Costs.
