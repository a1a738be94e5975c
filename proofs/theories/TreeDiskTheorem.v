(** The log-structured disk with shared trees as its maps keeps the contract; its snapshots stay; it keeps the
data that its views map and no others; its walks end.

Assumed: the design obeys its rules, that a walk asks who else holds a node among them ([sound]).  A record of
the log and a checkpoint are one atomic block each, as in [LogStructuredDisk]. *)
From LogDisk Require LogStructuredDiskReading LogStructuredDiskInvariant LogStructuredDiskRefinement.
From LogDisk Require VirtualDiskProperties SharedTreeDeletion TreeIndexMaps.
From LogDisk Require Export TreeDisk TreeDiskPages TreeDiskRefinement.
Import TreeIndex(index, trees, named, middle, next_mba) TreeIndexMaps(represents).

Section Results.
Context {V : Type} `{Value V} (K : design) (bits levels : nat).
Notation M := (tree_disk (V:=V) K bits levels).
Implicit Types (c : state V) (x : nat).

(** A state that the disk reaches, by any history. *)
Definition reached c : Prop := ∃ blocks tr, shows M (initial levels blocks) tr c.

Lemma initial_stands blocks :
  stands_for bits (initial levels blocks) (LogStructuredDisk.initial (V:=V) blocks).
Proof.
  destruct (TreeIndexMaps.represents_checkpoint bits _ _ (TreeIndexMaps.represents_nothing bits levels))
    as (Hfirst & _ & Enodes & Eepoch & Enext). fold (first_index levels) in Hfirst.
  assert (names_all (first_index levels) (∅ : gmap nat V)) as Hnone by apply (names_nothing levels).
  assert (paged (trees (first_index levels)) {[0 := first_node]} {[0 := 0]}) as Hpaged.
  { intros n p [<- <-]%lookup_singleton_Some.
    change (trees (first_index levels)) with
      (TreeIndex.act SharedTree.Checkpoint (trees (TreeIndex.no_index levels))).
    rewrite Enodes, Eepoch, Enext. simpl.
    split; [lia|]. intros nd [_ <-]%lookup_singleton_Some. split; [apply lookup_singleton|simpl; lia]. }
  set (i := Checkpoint (TreeIndex.without_nodes (first_index levels)) {[0 := 0]} 0 0).
  assert (loaded {[0 := first_node]} i = first_index levels) as Eload.
  { unfold loaded. assert (omap (({[0 := first_node]} : gmap nat _) !!.) (saved_pages i) =
      SharedTree.nodes (trees (first_index levels))) as ->.
    { simpl. erewrite omap_singleton_Some by apply lookup_singleton. symmetry. exact Enodes. }
    unfold i. simpl. unfold TreeIndex.without_nodes, TreeIndex.with_nodes.
    unfold first_index, TreeIndex.with_trees. simpl. by destruct (TreeIndex.act _ _). }
  assert (same_checkpoint (V := V) bits {[0 := first_node]} i (LogStructuredDisk.Checkpoint no_maps 0 0)) as
    Hsame.
  { split; rewrite ?Eload; try done.
    intros p [n Hn]%LogStructuredDiskReading.elem_of_targets. simpl in Hn. apply lookup_singleton_Some in Hn
      as [_ <-].
    rewrite lookup_singleton. by eexists. }
  exists [], (Some (LogStructuredDisk.Checkpoint no_maps 0 0)), None, no_maps, None.
  split; try done; by constructor.
Qed.

Lemma shows_follows c a tr c' : sound K → stands_for bits c a → LogStructuredDiskInvariant.invariant K a →
  shows M c tr c' → ∃ a', steps K a tr a' ∧ stands_for bits c' a'.
Proof.
  intros HK Hc Hinv Hrun. revert a Hc Hinv. induction Hrun as [c|c es c1 tr c2 Hm _ IH]; intros a Hc Hinv.
  - exists a. split; [constructor|done].
  - destruct (matches_follows K bits levels _ _ _ _ HK Hc Hinv Hm) as (a1 & Ha1 & Hc1).
    destruct (IH a1 Hc1) as (a2 & Ha2 & Hc2); [by eapply LogStructuredDiskInvariant.steps_invariant|].
    exists a2. split; [by eapply LogStructuredDiskInvariant.steps_app|done].
Qed.

Lemma reached_stands c : sound K → reached c → ∃ a, LogStructuredDiskInvariant.reached K a ∧ stands_for bits
  c a.
Proof.
  intros HK (blocks & tr & Hrun).
  destruct (shows_follows _ _ _ _ HK (initial_stands blocks) (LogStructuredDiskInvariant.initial_invariant K
    blocks)
    Hrun) as (a & Ha & Hc). exists a. split; [by exists blocks, tr|done].
Qed.

Theorem refines_contract : sound K → implements M (promises K).
Proof.
  intros HK blocks c tr c' -> Hrun.
  destruct (shows_follows _ _ _ _ HK (initial_stands blocks) (LogStructuredDiskInvariant.initial_invariant K
    blocks)
    Hrun) as (a & Ha & _). by eapply (LogStructuredDiskRefinement.refines_contract K HK).
Qed.

(** Whatever follows but its deletion, power cuts, cleaning and reclaim included, a snapshot reads as the live
view read when it was taken. *)
Theorem read_after_snapshot blocks c n lba count (data data' : list V) before tr : sound K →
  promises K = Ack ∨ Forall VirtualDiskProperties.no_crash tr ∨ (∃ tr', tr = VirtualDisk.Flush Ok :: tr') →
  Forall (VirtualDiskProperties.keeps n) tr →
  shows M (initial levels blocks) (before ++ VirtualDisk.Read Live lba count Ok data :: Snapshot n Ok ::
    tr ++ [VirtualDisk.Read (Named n) lba count Ok data']) c →
  data' = data.
Proof.
  intros HK Hp Hkeep Hrun. eapply (VirtualDiskProperties.snapshot_reads_for_ever (promises K) n lba count
    data data' (Create blocks :: before) tr); [|done|].
  - destruct Hp as [->|[?|?]]; auto.
  - by eapply (refines_contract HK blocks _ _ _ eq_refl).
Qed.

(** ** Space *)

(** The data that the disk keeps, in its bank or in a segment. *)
Definition keeps c x : Prop := is_Some (bank (mem c) !! x) ∨ is_Some (middle (current (mem c)) !! x).

(** The MBAs that the live view, or a snapshot, maps. *)
Definition maps_to c x : Prop := ∃ from v l,
  TreeIndex.epoch_of (current (mem c)) from = Some v ∧ TreeIndex.mba_of bits (current (mem c)) v l = Some x.

Definition no_walks c : Prop := ∀ t, SharedTree.claims (trees (current (mem c))) !! inr t = None.

(** Nothing that a view maps is lost; and once the walks are done, nothing else is kept. *)
Theorem keeps_exactly c x : sound K → reached c → at_phase c ≠ Off →
  (maps_to c x → keeps c x) ∧ (no_walks c → keeps c x → maps_to c x).
Proof.
  intros HK Hc Hp. destruct (reached_stands _ HK Hc) as (a & Ha & ps & sa & sb & m & ns & [-> _ _ _ _ Hm
    Hall _ _]).
  pose proof (LogStructuredDiskInvariant.reached_invariant _ _ HK Ha) as Hinv.
  destruct (LogStructuredDiskInvariant.current_holds _ _ Hinv Hp) as (_ & [Hw _] & _). simpl in Hw.
  assert (maps_to c x ↔ x ∈ reachable m) as Hmaps.
  { rewrite LogStructuredDiskReading.elem_of_reachable. split.
    - intros ([|n] & v & l & Hv & Hl); simpl in Hv.
      + injection Hv as <-. left. exists l. by rewrite <-(TreeIndexMaps.represents_live bits (current (mem
        c))).
      + right. pose proof (TreeIndexMaps.represents_snap bits _ _ n Hm) as Hn. rewrite Hv in Hn.
        destruct (snap_maps m !! n) as [vm|] eqn:E; [|done]. exists n, vm, l. by rewrite <-Hn.
    - intros [[l Hl]|(n & vm & l & Hn & Hl)].
      + exists Live, (SharedTree.epoch (trees (current (mem c)))), l. split; [done|].
        by rewrite (TreeIndexMaps.represents_live bits _ m).
      + pose proof (TreeIndexMaps.represents_snap bits _ _ n Hm) as Hs. rewrite Hn in Hs.
        destruct (named _ !! n) as [v|] eqn:E; [|done]. exists (Named n), v, l. by rewrite Hs. }
  rewrite Hmaps. unfold keeps. rewrite (TreeIndexMaps.rep_middle _ _ _ Hm). split.
  - apply (LogStructuredDiskReading.whole_reachable _ _ _ Hw).
  - intros Hwalks Hx. apply (TreeIndexMaps.represents_reachable bits (current (mem c))); [done|done|].
    apply Hall. by rewrite (TreeIndexMaps.rep_middle _ _ _ Hm).
Qed.

(** Walks end: each has a step, and each step leaves less to do. *)
Theorem walks_end c t : sound K → reached c → at_phase c ≠ Off →
  is_Some (SharedTree.claims (trees (current (mem c))) !! inr t) →
  (∃ n, is_Some (perform K bits levels (Reclaim t n) c)) ∧
  ∀ n es c', perform K bits levels (Reclaim t n) c = Some (es, c') →
    base.size (SharedTreeDeletion.work (trees (current (mem c')))) <
    base.size (SharedTreeDeletion.work (trees (current (mem c)))).
Proof.
  intros HK Hc Hp Ht. destruct (reached_stands _ HK Hc) as (a & _ & ps & sa & sb & m & ns & [_ _ _ _ _ Hm _
    _ _]).
  pose proof (TreeIndexLeaves.chunks_inv _ _ _ (TreeIndexMaps.rep_chunks _ _ _ Hm)) as I.
  pose proof (proj2 HK ReclaimUnreachable) as Hrule. simpl. unfold reclaim.
  destruct (obeys K ReclaimUnreachable); [|done]. split.
  - destruct (SharedTreeDeletion.walk_goes_on _ t I Ht) as [n [s' Hs']]. exists n. rewrite Hs'. simpl.
    unfold when. by rewrite decide_True.
  - intros n es c'. destruct (SharedTree.reclaim t n _) as [s'|] eqn:Hs'; simpl; [|done].
    intros [_ [= _ <-]]%when_Some. simpl. by eapply SharedTreeDeletion.reclaim_falls.
Qed.
End Results.
