(** The disk with shared trees on blocks: each of its nodes goes into one block, and what a checkpoint has
beside its nodes grows with the number of views and walks. *)
From LogDisk Require TreeIndexMaps.
From LogDisk Require Import TreeDiskBounds Codec TreeBlocks TreeRoots.
From LogDisk Require Import TreeDisk TreeDiskRefinement TreeDiskTheorem.
Import TreeIndex(trees, named).

Section Results.
Context {V : Type} `{Value V} (K : design) (bits levels blocks : nat).
Notation M := (tree_disk (V:=V) K bits levels).
Context (sound_design : sound K) (enough_keys : blocks ≤ 2 ^ (bits * S levels)).
Implicit Types (c : state V) (on : gmap nat nat).

Theorem nodes_fit `{!Codec.blocks} `{!blocks_laws} tr c on n nd : 1 + 4 * 2 ^ bits ≤ words → 2 ^ bits <
  limit →
  shows M (initial levels blocks) tr c → small_numbers (trees (current (mem c))) on →
  SharedTree.nodes (trees (current (mem c))) !! n = Some nd →
  base.size (SharedTree.kids nd) ≤ 2 ^ bits ∧
  ∃ b, pack (kids_words (trees (current (mem c))) on nd) = Some b ∧
    unpack kids_codec b = Some (entry (trees (current (mem c))) on <$> SharedTree.kids nd).
Proof.
  intros Hwords Hlimit Hrun Hsmall Hn.
  destruct (trees_kept K bits levels blocks tr c) as [Hkept _]; [done..|]. split.
  - destruct (kept_bounded _ _ _ Hkept) as [_ Hb]. by eapply bounded_size, Hb.
  - by eapply node_fits.
Qed.

Theorem roots_bounded tr c on : shows M (initial levels blocks) tr c →
  length (put roots_codec (roots_of (trees (current (mem c))) on)) ≤
    4 + base.size (SharedTree.claims (trees (current (mem c)))) * (11 + levels) +
    cursors (trees (current (mem c))) ∧
  (no_walks c → cursors (trees (current (mem c))) = 0 ∧
    base.size (SharedTree.claims (trees (current (mem c)))) ≤ 1 + base.size (named (current (mem c)))).
Proof.
  intros Hrun. destruct (trees_kept K bits levels blocks tr c) as [Hkept _]; [done..|].
  set (i := current (mem c)) in *. split.
  { pose proof (roots_words bits (S levels) (trees i) on Hkept) as Hw.
    replace (10 + S levels) with (11 + levels) in Hw by lia. done. }
  intros Hnone. pose proof (kept_inv _ _ _ Hkept) as I. split; [by apply no_cursors|].
  assert (reached K bits levels c) as Hc by by exists blocks, tr.
  destruct (reached_stands _ _ _ _ sound_design Hc) as (a & _ & ps & sa & sb & m & ns & Hm%matches_current).
  destruct (TreeIndexMaps.rep_disk _ _ _ Hm) as (d & (_ & _ & Hdom & _) & Hd).
  assert (length (map_to_list (SharedTree.claims (trees i))).*1 ≤
    length (inl (SharedTree.epoch (trees i)) :: (inl <$> (map_to_list (named i)).*2) : list (nat + nat))) as
      Hl.
  { apply submseteq_length, NoDup_submseteq; [apply NoDup_fst_map_to_list|].
    intros [v|t] ([j cl] & E & Hj%elem_of_map_to_list)%elem_of_list_fmap; simpl in E; subst j;
      [|by rewrite Hnone in Hj].
    destruct (decide (v = SharedTree.epoch (trees i))) as [->|Hne]; [by left|right].
    destruct (TreeIndexMaps.agrees_named _ _ _ _ _ Hd v) as [n Hn]; [apply Hdom; by eauto|].
    apply elem_of_list_fmap. exists v. split; [done|]. apply elem_of_list_fmap. exists (n, v).
    split; [done|]. by apply elem_of_map_to_list. }
  simpl in Hl. rewrite !fmap_length in Hl. exact Hl.
Qed.

(** What a step of the disk does to its trees, while the power stays on, is a history of changes: of those
after which a checkpoint on a device may follow. *)
Theorem steps_are_changes tr c a es c' : shows M (initial levels blocks) tr c →
  perform K bits levels a c = Some (es, c') → at_phase c' ≠ Off → a ≠ Load →
  ∃ history, Forall (of_record bits) history ∧
    SharedTree.run (trees (current (mem c))) history = Some (trees (current (mem c'))).
Proof.
  intros Hrun Ha Hon Hload.
  destruct (reached_kept K bits levels blocks tr c) as [Hkeys Hlog Hpend Hkept _ _]; [done..|].
  pose proof (kept_bounded _ _ _ Hkept) as [Hheight _].
  assert (current (mem c') = current (mem c) → ∃ history, Forall (of_record bits) history ∧
    SharedTree.run (trees (current (mem c))) history = Some (trees (current (mem c')))) as Hsame.
  { intros ->. by exists []. }
  assert (∀ r, within (size c) r → current (mem c') = current (carry_out bits r (mem c)) →
    ∃ history, Forall (of_record bits) history ∧
    SharedTree.run (trees (current (mem c))) history = Some (trees (current (mem c')))) as Hrecord.
  { intros r Hr ->. destruct (reindex_run bits _ (size c) r (current (mem c)) Hheight Hr Hkeys)
      as (history & Hh & E). exists history. split; [done|]. rewrite E. unfold carry_out.
    by destruct (TreeIndex.reindex bits r (current (mem c))). }
  destruct a as [r| | |r e|from lba count|from lba count e| |g xs|g|vs g|g|t n|places| |n|keep torn garbage
    lost| | | |]; simpl in Ha; try done.
  - by apply when_Some in Ha as [_ [= _ <-]]; apply Hsame.
  - by apply when_Some in Ha as [_ [= _ <-]]; apply Hsame.
  - destruct (pending c) as [[r|]|] eqn:Hq; [|done..]. apply when_Some in Ha as [_ [= _ <-]].
    apply (Hrecord r); [by apply Hpend|done].
  - by apply when_Some in Ha as [_ [= _ <-]]; apply Hsame.
  - destruct (view_of _ from); [|done]. by apply when_Some in Ha as [_ [= _ <-]]; apply Hsame.
  - by apply when_Some in Ha as [_ [= _ <-]]; apply Hsame.
  - by apply when_Some in Ha as [_ [= _ <-]]; apply Hsame.
  - apply when_Some in Ha as [_ [= _ <-]]. by exists [].
  - by apply when_Some in Ha as [_ [= _ <-]]; apply Hsame.
  - apply when_Some in Ha as [_ [= _ <-]]. unfold clean. destruct (chunks_in _ _); by exists [].
  - by apply when_Some in Ha as [_ [= _ <-]]; apply Hsame.
  - unfold reclaim in Ha. pose proof (proj2 sound_design ReclaimUnreachable) as Hrule.
    destruct (obeys K ReclaimUnreachable); [|done].
    destruct (SharedTree.reclaim t n (trees (current (mem c)))) as [s'|] eqn:Hs'; simpl in Ha; [|done].
    apply when_Some in Ha as [_ [= _ <-]]. exists [SharedTree.Reclaim t n].
    split; [by repeat constructor|]. simpl. by rewrite Hs'.
  - apply when_Some in Ha as [_ [= _ <-]]. exists [SharedTree.Checkpoint].
    split; [by repeat constructor|]. simpl. unfold TreeIndex.act. simpl.
    by destruct (SharedTreeInvariant.inv_live (kept_inv _ _ _ Hkept)) as [lc ->].
  - destruct (nodes (mem c)); [|done]. by apply when_Some in Ha as [_ [= _ <-]]; apply Hsame.
  - destruct (if obeys K TruncateAfterCommit then _ else _); [|done].
    by apply when_Some in Ha as [_ [= _ <-]]; apply Hsame.
  - by apply when_Some in Ha as [_ [= _ <-]].
  - by apply when_Some in Ha as [_ [= _ <-]].
  - destruct (log (dev c) !! _) as [r|] eqn:Hr; [|done]. apply when_Some in Ha as [_ [= _ <-]].
    apply (Hrecord r); [|done]. apply Hlog. by eapply elem_of_list_lookup_2.
  - by apply when_Some in Ha as [_ [= _ <-]]; apply Hsame.
Qed.
End Results.
