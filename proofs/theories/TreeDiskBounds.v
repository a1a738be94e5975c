(** Every node that the disk has in memory or in a page of the newest checkpoint is bounded, if there is a key
for each block of the disk. *)
From LogDisk Require LogStructuredDiskReading LogStructuredDiskInvariant.
From LogDisk Require TreeIndexMaps.
From LogDisk Require Export TreeIndexBounds.
From LogDisk Require Import TreeDisk TreeDiskPages TreeDiskRefinement TreeDiskTheorem.
Import TreeIndex(index, trees, named, middle, next_mba).

Section Bounds.
Context {V : Type} `{Value V} (K : design) (bits levels : nat).
Notation M := (tree_disk (V:=V) K bits levels).
Notation kept_trees := (kept_trees bits (S levels)).
Implicit Types (c : state V) (r : record V) (i : checkpoint).

(** The trees of a checkpoint are kept, and its pages are written. *)
Definition pages_kept (pgs : gmap nat SharedTree.node) i : Prop :=
  kept_trees (trees (loaded pgs i)) ∧ ∀ p, p ∈ targets (saved_pages i) → is_Some (pgs !! p).

Lemma pages_kept_same pgs pgs' i : (∀ p, p ∈ targets (saved_pages i) → pgs' !! p = pgs !! p) →
  pages_kept pgs i → pages_kept pgs' i.
Proof.
  intros Hsame [Hh Hp]. split; [by rewrite (loaded_same pgs)|]. intros p Hin. rewrite Hsame by done.
  by apply Hp.
Qed.

(** What holds in a state whose disk has no more blocks than there are keys. *)
Record kept_state c : Prop := KeptState {
  kept_keys : size c ≤ 2 ^ (bits * S levels);
  kept_log r : r ∈ log (dev c) → within (size c) r;
  kept_pending r : pending c = Some (Operation r) → within (size c) r;
  kept_current : kept_trees (trees (current (mem c)));
  kept_newest i : newest (dev c) = Some i → pages_kept (pages (dev c)) i;
  kept_nodes i : nodes (mem c) = Some i → pages_kept (pages (dev c)) i;
}.

Lemma faultless_within blocks (d : disk V) r : faults blocks d r = [] → within blocks r.
Proof. destruct r; simpl; try done; case_decide as Hf; try done; unfold fits in Hf; lia. Qed.

Definition first_checkpoint : checkpoint :=
  Checkpoint (TreeIndex.without_nodes (first_index levels)) {[0 := 0]} 0 0.

Lemma first_loaded : loaded {[0 := first_node]} first_checkpoint = first_index levels.
Proof.
  destruct (TreeIndexMaps.represents_checkpoint bits _ _ (TreeIndexMaps.represents_nothing bits levels))
    as (_ & _ & Enodes & _).
  unfold loaded. assert (omap (({[0 := first_node]} : gmap nat _) !!.) (saved_pages first_checkpoint) =
    SharedTree.nodes (trees (first_index levels))) as ->.
  { simpl. erewrite omap_singleton_Some by apply lookup_singleton. symmetry. exact Enodes. }
  unfold first_checkpoint. simpl. unfold TreeIndex.without_nodes, TreeIndex.with_nodes.
  unfold first_index, TreeIndex.with_trees. simpl. by destruct (TreeIndex.act _ _).
Qed.

Lemma kept_initial blocks : blocks ≤ 2 ^ (bits * S levels) → kept_state (initial levels blocks).
Proof.
  intros Hblocks. pose proof (checkpoint_kept bits _ _ (kept_create bits levels)) as Hfirst.
  split; simpl; try done.
  - by intros r ?%elem_of_nil.
  - intros i [= <-]. split; [change (kept_trees (trees (loaded {[0 := first_node]} first_checkpoint)))|].
    + by rewrite first_loaded.
    + simpl. intros p [n [_ <-]%lookup_singleton_Some]%LogStructuredDiskReading.elem_of_targets.
      rewrite lookup_singleton. by eexists.
Qed.

Lemma newest_replaced (s : devices V) o i : newest (replace_older o s) = Some i → newest s = Some i ∨ o =
  Some i.
Proof.
  unfold newest, replace_older. destruct s as [be lo fl [a|] [b|] sg pg], o as [j|]; simpl;
    repeat (case_decide; simpl); naive_solver lia.
Qed.

Lemma replaced_log (s : devices V) o : log (replace_older o s) = log s.
Proof. unfold replace_older. destruct (slot_a s), (slot_b s); try case_decide; done. Qed.

Lemma replaced_pages (s : devices V) o : pages (replace_older o s) = pages s.
Proof. unfold replace_older. destruct (slot_a s), (slot_b s); try case_decide; done. Qed.

Lemma carry_out_kept r (y : memory V) blocks : kept_trees (trees (current y)) → within blocks r →
  blocks ≤ 2 ^ (bits * S levels) → kept_trees (trees (current (carry_out bits r y))).
Proof.
  intros Hy Hr Hblocks. pose proof (reindex_kept bits _ blocks r _ Hy Hr Hblocks) as Hi. unfold carry_out.
  by destruct (TreeIndex.reindex bits r (current y)).
Qed.

Lemma perform_kept c a es c' : sound K → paged (trees (current (mem c))) (pages (dev c)) (page_of (mem c)) →
  kept_state c → perform K bits levels a c = Some (es, c') → kept_state c'.
Proof.
  intros HK Hpaged Hc. pose proof Hc as [Hkeys Hlog Hpend Hcur Hnew Hnodes].
  assert (kept_trees (trees (TreeIndex.no_index levels))) as Hnone by apply kept_create.
  destruct a as [r| | |r e|from lba count|from lba count e| |g xs|g|vs g|g|t n|places| |n|keep torn garbage
    lost| | | |]; simpl; intros Ha.
  - (* Submit *) apply when_Some in Ha as [(_ & _ & Hr) [= _ <-]]. split; simpl; try done.
    + intros r' [?| ->%elem_of_list_singleton]%elem_of_app; [by apply Hlog|by eapply faultless_within].
    + intros r' [= <-]. by eapply faultless_within.
  - (* LogAppend *) apply when_Some in Ha as [_ [= _ <-]]. by split.
  - (* Acknowledge *) destruct (pending c) as [[r|]|] eqn:Hq; [|done..].
    apply when_Some in Ha as [_ [= _ <-]]. split; simpl; try done.
    + apply (carry_out_kept _ _ (size c)); [done|by apply Hpend|done].
    + intros i. unfold carry_out. destruct (TreeIndex.reindex bits r (current (mem c))). apply Hnodes.
  - (* Refuse *) by apply when_Some in Ha as [_ [= _ <-]].
  - (* Read *) destruct (view_of _ from); [|done]. by apply when_Some in Ha as [_ [= _ <-]].
  - (* RefuseRead *) by apply when_Some in Ha as [_ [= _ <-]].
  - (* Flush *) apply when_Some in Ha as [_ [= _ <-]]. by split.
  - (* Destage *) apply when_Some in Ha as [_ [= _ <-]]. by split.
  - (* Seal *) apply when_Some in Ha as [_ [= _ <-]]. by split.
  - (* Clean *) apply when_Some in Ha as [_ [= _ <-]]. unfold clean. destruct (chunks_in _ _); by split.
  - (* Free *) apply when_Some in Ha as [_ [= _ <-]]. by split.
  - (* Reclaim *) unfold reclaim in Ha. pose proof (proj2 HK ReclaimUnreachable) as Hrule.
    destruct (obeys K ReclaimUnreachable); [|done].
    destruct (SharedTree.reclaim t n (trees (current (mem c)))) as [s'|] eqn:Hs'; simpl in Ha; [|done].
    apply when_Some in Ha as [_ [= _ <-]]. split; simpl; try done.
    by eapply (reclaim_kept _ _ _ _ _ _ Hcur Hs').
  - (* CheckpointNodes *) apply when_Some in Ha as [(_ & _ & _ & Hdup & Hlen & Hfree) [= _ <-]].
    rewrite Forall_forall in Hfree.
    set (s := trees (current (mem c))) in *. set (on := page_of (mem c)) in *.
    set (pgs := pages (dev c)) in *.
    assert (∀ p, p ∈ places → p ∉ targets on) as Hon by (intros p ?; by apply Hfree).
    assert (∀ n p nd, on !! n = Some p → SharedTree.nodes s !! n = Some nd → pgs !! p = Some nd) as Hin.
    { intros n p nd Hn Hnd. by apply (Hpaged _ _ Hn). }
    pose proof (written_on (SharedTree.nodes s) pgs on places Hdup Hlen Hon Hin) as Hw.
    pose proof (written_other (SharedTree.nodes s) pgs on places Hlen) as Hother.
    pose proof (written_loads (SharedTree.nodes s) pgs on places Hdup Hlen Hon Hin) as Hl.
    assert (SharedTree.nodes (TreeIndex.act SharedTree.Checkpoint s) = SharedTree.nodes s) as Enodes.
    { unfold TreeIndex.act. simpl. destruct (inv_live (kept_inv _ _ _ Hcur)) as [l Hlive]. by rewrite Hlive. }
    pose proof (checkpoint_kept _ _ _ Hcur) as Hend. split; simpl; try done.
    + intros i Hi. apply (pages_kept_same pgs); [|by apply Hnew]. intros p Hp. apply Hother. intros Hpl.
      destruct (Hfree _ Hpl) as [_ Hrule]. apply Hrule; [by apply (proj2 HK)|].
      unfold pinned_pages. change (newest (dev c) = Some i) in Hi. rewrite Hi. simpl. set_solver.
    + intros i [= <-]. split.
      * unfold loaded, dirty. simpl. fold s on pgs. rewrite Hl, <- Enodes.
        by destruct (TreeIndex.act SharedTree.Checkpoint s).
      * simpl. intros p [n Hn]%LogStructuredDiskReading.elem_of_targets.
        destruct (Hw _ _ Hn) as (nd & _ & Hp). by exists nd.
  - (* CheckpointCommit *) destruct (nodes (mem c)) as [i|] eqn:Hi; [|done].
    apply when_Some in Ha as [_ [= _ <-]].
    split; simpl; rewrite ?replaced_log, ?replaced_pages; try done.
    intros j [Hj|[= <-]]%newest_replaced; [by apply Hnew|by apply Hnodes].
  - (* Truncate *) destruct (if obeys K TruncateAfterCommit then _ else _); [|done].
    apply when_Some in Ha as [_ [= _ <-]]. split; simpl; try done.
    intros r Hr. apply Hlog. rewrite <-(take_drop (n - begins (dev c)) (log (dev c))).
    apply elem_of_app. by right.
  - (* Crash *) apply when_Some in Ha as [_ [= _ <-]]. unfold crash.
    set (s := if torn then replace_older None (dev c) else dev c).
    set (durable := from_option (targets ∘ saved_pages) ∅ (newest (dev c))).
    assert (log s = log (dev c) ∧ pages s = pages (dev c)) as [El Ep].
    { unfold s. destruct torn; [|done]. by rewrite replaced_log, replaced_pages. }
    assert (∀ i, newest s = Some i → newest (dev c) = Some i) as Enew.
    { unfold s. destruct torn; [|done]. intros i Hi. by destruct (newest_replaced _ _ _ Hi). }
    split; simpl; rewrite ?El, ?Ep; try done.
    + intros r Hr. apply Hlog. rewrite <-(take_drop (keep - begins s) (log (dev c))).
      apply elem_of_app. by left.
    + change (∀ i, newest s = Some i → pages_kept (filter (λ e, e.1 ∈ durable) (pages (dev c)) ∪ lost) i).
      intros i Hi%Enew. apply (pages_kept_same (pages (dev c))); [|by apply Hnew]. intros p Hp.
      destruct (proj2 (Hnew _ Hi) _ Hp) as [nd Hnd]. rewrite Hnd. apply lookup_union_Some_l.
      apply map_filter_lookup_Some. split; [done|]. unfold durable. by rewrite Hi.
  - (* Restart *) apply when_Some in Ha as [_ [= _ <-]]. by split.
  - (* Load *) destruct (newest (dev c)) as [i|] eqn:Hi; [|done].
    apply when_Some in Ha as [_ [= _ <-]]. split; simpl; try done; [by apply Hnew|].
    intros j. change (newest (dev c) = Some j → pages_kept (pages (dev c)) j). rewrite Hi. apply Hnew.
  - (* Replay *) destruct (log (dev c) !! _) as [r|] eqn:Hr; [|done].
    apply when_Some in Ha as [_ [= _ <-]]. split; simpl; try done.
    + apply (carry_out_kept _ _ (size c)); [done| |done]. apply Hlog. by eapply elem_of_list_lookup_2.
    + intros i. unfold carry_out. destruct (TreeIndex.reindex bits r (current (mem c))). apply Hnodes.
  - (* Recover *) apply when_Some in Ha as [_ [= _ <-]]. by split.
Qed.

Lemma shows_kept c a tr c' : sound K → stands_for bits c a → LogStructuredDiskInvariant.invariant K a →
  kept_state c → shows M c tr c' → kept_state c'.
Proof.
  intros HK Hc Hinv Hb Hrun. revert a Hc Hinv Hb.
  induction Hrun as [c|c es c1 tr c2 Hm _ IH]; intros a Hc Hinv Hb; [done|].
  destruct (matches_follows K bits levels _ _ _ _ HK Hc Hinv Hm) as (a1 & Ha1 & Hc1).
  destruct Hc as (ps & sa & sb & m & ns & [_ _ _ _ _ _ _ _ Hpg]), Hm as [act Hact].
  eapply (IH a1 Hc1); [by eapply LogStructuredDiskInvariant.steps_invariant|by eapply perform_kept].
Qed.

Lemma reached_kept blocks tr c : sound K → blocks ≤ 2 ^ (bits * S levels) →
  shows M (initial levels blocks) tr c → kept_state c.
Proof.
  intros HK Hblocks. apply (shows_kept _ _ _ _ HK (initial_stands bits levels blocks)
    (LogStructuredDiskInvariant.initial_invariant K blocks) (kept_initial _ Hblocks)).
Qed.

(** The trees in memory, and those of the newest checkpoint. *)
Theorem trees_kept blocks tr c : sound K → blocks ≤ 2 ^ (bits * S levels) →
  shows M (initial levels blocks) tr c →
  kept_trees (trees (current (mem c))) ∧
  ∀ i, newest (dev c) = Some i → kept_trees (trees (loaded (pages (dev c)) i)).
Proof.
  intros HK Hblocks Hrun. destruct (reached_kept _ _ _ HK Hblocks Hrun) as [_ _ _ Hcur Hnew _].
  split; [done|]. intros i Hi. by apply Hnew.
Qed.
End Bounds.
