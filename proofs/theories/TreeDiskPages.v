(** The nodes of a checkpoint stand in pages, and a page is written again only when no checkpoint that may be
loaded refers to it: so what is loaded is what was saved. *)
From LogDisk Require LogStructuredDiskReading.
From LogDisk Require TreeIndexMaps.
From LogDisk Require Import TreeDisk.
Import TreeIndex(index, trees, named, middle, next_mba).
Import TreeIndexLeaves(spares_old).

Implicit Types (s : SharedTree.state) (pgs : gmap nat SharedTree.node) (on : gmap nat nat) (n p : nat).

(** Nodes that have a page are in it as they are in memory, and were born in an epoch that has ended. *)
Definition paged s pgs on : Prop := ∀ n p, on !! n = Some p → n < SharedTree.next s ∧
  ∀ nd, SharedTree.nodes s !! n = Some nd → pgs !! p = Some nd ∧ SharedTree.birth nd < SharedTree.epoch s.

(** No change of the trees but a checkpoint touches them. *)
Lemma paged_spares s s' pgs on : spares_old s s' → paged s pgs on → paged s' pgs on.
Proof.
  intros (Hnext & Hepoch & Hold) Hon n p Hn. destruct (Hon _ _ Hn) as [Hlt Hnd]. split; [lia|].
  intros nd' Hnd'. destruct (Hold _ _ Hlt Hnd') as (nd & Hs & E). destruct (Hnd _ Hs) as [Hp Hb].
  rewrite (E Hb). split; [done|lia].
Qed.

Lemma loaded_same pgs pgs' i : (∀ p, p ∈ targets (saved_pages i) → pgs' !! p = pgs !! p) →
  loaded pgs' i = loaded pgs i.
Proof.
  intros Hsame. unfold loaded. f_equal. apply map_eq. intros n. rewrite !lookup_omap.
  destruct (saved_pages i !! n) as [p|] eqn:Hn; [|done]. simpl. apply Hsame.
  apply LogStructuredDiskReading.elem_of_targets. by exists n.
Qed.

Lemma lookup_zip_map {A} (xs : list nat) (ys : list A) x y : NoDup xs → length xs = length ys →
  (list_to_map (zip xs ys) : gmap nat A) !! x = Some y ↔ ∃ k, xs !! k = Some x ∧ ys !! k = Some y.
Proof.
  intros Hdup Hlen. rewrite <-elem_of_list_to_map by (by rewrite fst_zip by lia).
  rewrite elem_of_list_lookup. setoid_rewrite lookup_zip_with_Some. naive_solver.
Qed.

Lemma lookup_zip_map_None {A} (xs : list nat) (ys : list A) x : length xs = length ys → x ∉ xs →
  (list_to_map (zip xs ys) : gmap nat A) !! x = None.
Proof. intros Hlen Hx. apply not_elem_of_list_to_map_1. by rewrite fst_zip by lia. Qed.

Section writing.
Context (h : gmap nat SharedTree.node) (pgs : gmap nat SharedTree.node) (on : gmap nat nat) (places : list
nat).
Let ns := map_to_list (filter (λ e, on !! e.1 = None) h).
Let on' := list_to_map (zip ns.*1 places) ∪ filter (λ e, is_Some (h !! e.1)) on.
Let pgs' := list_to_map (zip places ns.*2) ∪ pgs.
Hypothesis Hdup : NoDup places. Hypothesis Hlen : length places = length ns.
Hypothesis Hfree : ∀ p, p ∈ places → p ∉ targets on.
Hypothesis Hon : ∀ n p nd, on !! n = Some p → h !! n = Some nd → pgs !! p = Some nd.

Lemma written_other p : p ∉ places → pgs' !! p = pgs !! p.
Proof. intros Hp. unfold pgs'. rewrite lookup_union_r; [done|]. apply lookup_zip_map_None; [|done].
  by rewrite fmap_length. Qed.

Lemma written_on n p : on' !! n = Some p → ∃ nd, h !! n = Some nd ∧ pgs' !! p = Some nd.
Proof.
  unfold on'. rewrite lookup_union_Some_raw. intros [Hn|[_ Hn]].
  - apply lookup_zip_map in Hn as (k & Hk & Hp); [|apply NoDup_fst_map_to_list|by rewrite fmap_length].
    rewrite list_lookup_fmap in Hk. destruct (ns !! k) as [[n' nd]|] eqn:Hnk;
      [|done]. simpl in Hk. simplify_eq.
    exists nd. split.
    + assert ((n, nd) ∈ ns) as Hin by (by eapply elem_of_list_lookup_2).
      apply elem_of_map_to_list, map_filter_lookup_Some in Hin as [? _]. done.
    + unfold pgs'. apply lookup_union_Some_l. apply lookup_zip_map; [done|by rewrite fmap_length|].
      exists k. by rewrite list_lookup_fmap, Hnk.
  - apply map_filter_lookup_Some in Hn as [Hn [nd Hnd]]. simpl in Hnd. exists nd. split; [done|].
    rewrite written_other; [by eapply Hon|]. intros Hp. eapply Hfree; [done|].
    apply LogStructuredDiskReading.elem_of_targets. by exists n.
Qed.

Lemma written_all n nd : h !! n = Some nd → is_Some (on' !! n).
Proof.
  intros Hn. unfold on'. rewrite lookup_union_is_Some. destruct (on !! n) as [p|] eqn:Hp.
  - right. exists p. apply map_filter_lookup_Some. split; [done|]. simpl. by exists nd.
  - left. assert ((n, nd) ∈ ns) as Hin by (apply elem_of_map_to_list, map_filter_lookup_Some; done).
    apply elem_of_list_lookup in Hin as [k Hk].
    destruct (lookup_lt_is_Some_2 places k) as [p Hpk]; [rewrite Hlen; by eapply lookup_lt_Some|].
    exists p. apply lookup_zip_map; [apply NoDup_fst_map_to_list|by rewrite fmap_length|].
    exists k. by rewrite list_lookup_fmap, Hk.
Qed.

(** What is read from the pages is what was written. *)
Lemma written_loads : omap (pgs' !!.) on' = h.
Proof.
  apply map_eq. intros n. rewrite lookup_omap. destruct (on' !! n) as [p|] eqn:Hn; simpl.
  - destruct (written_on _ _ Hn) as (nd & -> & ->). done.
  - destruct (h !! n) as [nd|] eqn:Hnd; [|done]. destruct (written_all _ _ Hnd) as [? ?]. congruence.
Qed.
End writing.
