(** What maps, a bank and segments read as, and what leaves that unchanged. *)
From LogDisk Require Import LogStructuredDisk.

(** ** Sets of what is referred to *)

Lemma elem_of_targets {A} `{Countable A} {K} `{Countable K} (f : gmap K A) x :
  x ∈ targets f ↔ ∃ k, f !! k = Some x.
Proof.
  unfold targets. rewrite elem_of_list_to_set, elem_of_list_fmap.
  split; [intros ([k y] & -> & Hk%elem_of_map_to_list); eauto|intros [k Hk%elem_of_map_to_list];
    by exists (k, x)].
Qed.

Lemma elem_of_reachable m x :
  x ∈ reachable m ↔ (∃ l, live_map m !! l = Some x) ∨ ∃ n vm l, snap_maps m !! n = Some vm ∧ vm !! l = Some x.
Proof.
  unfold reachable. rewrite elem_of_union, elem_of_targets, elem_of_union_list. apply or_iff_compat_l. split.
  - intros (X & HX & Hx). apply elem_of_list_fmap in HX as (vm & -> & Hvm).
    apply elem_of_list_fmap in Hvm as ([n vm'] & -> & Hn). apply elem_of_map_to_list in Hn.
    apply elem_of_targets in Hx as [l Hl]. eauto.
  - intros (n & vm & l & Hn & Hl). exists (targets vm). rewrite elem_of_targets. split; [|by exists l].
    apply elem_of_list_fmap. exists vm. split; [done|]. apply elem_of_list_fmap. exists (n, vm).
    by rewrite elem_of_map_to_list.
Qed.

Lemma elem_of_segments_of m g : g ∈ segments_of m ↔ ∃ x i, middle m !! x = Some (g, i).
Proof. unfold segments_of. rewrite elem_of_map. setoid_rewrite elem_of_targets.
  split; [intros ([g' i] & -> & x & Hx); eauto|intros (x & i & Hx); exists (g, i); eauto]. Qed.

Section Reading.
Context {V : Type} `{Value V}.
Implicit Types (r : record V) (m : maps) (g x : nat) (d e : disk V) (b : gmap nat V) (f : nat → option V).

(** ** Disks that read alike *)

Lemma same_disk_alt d e :
  same_disk d e ↔ same_view (live d) (live e) ∧ ∀ n, option_Forall2 same_view (snaps d !! n) (snaps e !! n).
Proof.
  split.
  - intros Hsame. split; [|intros n; apply (Hsame (Named n))]. specialize (Hsame Live). by inversion Hsame.
  - intros [Hl Hs] [|n]; [by constructor|apply Hs].
Qed.

Global Instance same_view_equiv : Equivalence (same_view (V:=V)).
Proof. split; [intros v l|intros v w Hv l|intros u v w H1 H2 l]; [done|by rewrite Hv|by rewrite H1]. Qed.

Global Instance same_disk_equiv : Equivalence (same_disk (V:=V)).
Proof.
  split.
  - intros d from. destruct (view_of d from); by constructor.
  - intros d e Hd from. specialize (Hd from). destruct Hd; by constructor.
  - intros d1 d2 d3 H1 H2 from. specialize (H1 from). specialize (H2 from).
    destruct H1 as [v w Hvw|]; inversion H2; constructor. by etrans.
Qed.

Lemma same_disk_snap d e n : same_disk d e → is_Some (snaps d !! n) ↔ is_Some (snaps e !! n).
Proof. intros Hd. apply same_disk_alt in Hd as [_ Hd]. destruct (Hd n); split; intros [? ?]; eauto; done. Qed.

Lemma view_by_ext f f' vm : (∀ l x, vm !! l = Some x → f' x = f x) → same_view (view_by f' vm) (view_by f vm).
Proof. intros Hf l. unfold view_by. destruct (vm !! l) eqn:E; simpl; [|done]. by rewrite (Hf _ _ E). Qed.

Lemma disk_by_ext f f' m : (∀ x, x ∈ reachable m → f' x = f x) → same_disk (disk_by f' m) (disk_by f m).
Proof.
  intros Hf. apply same_disk_alt. split; simpl.
  - apply view_by_ext. intros l x Hx. apply Hf, elem_of_reachable. eauto.
  - intros n. rewrite !lookup_fmap. destruct (snap_maps m !! n) eqn:E; simpl; constructor.
    apply view_by_ext. intros l x Hx. apply Hf, elem_of_reachable. eauto 10.
Qed.

(** ** A record does to the maps what the contract does to the disk *)

Lemma effect_same r d e : same_disk d e → same_disk (effect r d) (effect r e).
Proof.
  rewrite !same_disk_alt. intros [Hl Hs].
  assert (∀ lba data, same_view (live (written d lba data)) (live (written e lba data))) as Hw.
  { intros lba data l. simpl. destruct (data_at lba data l); [done|apply Hl]. }
  destruct r as [lba data|lba count|n|n|n]; simpl; [split; [apply Hw|done]|split; [apply Hw|done]|..];
    (split; [|intros n']).
  - done.
  - destruct (decide (n = n')) as [->|]; [rewrite !lookup_insert;
      by constructor|by rewrite !lookup_insert_ne].
  - done.
  - destruct (decide (n = n')) as [->|]; [rewrite !lookup_delete; constructor|by rewrite !lookup_delete_ne].
  - destruct (Hs n); done.
  - done.
Qed.

Lemma faults_same blocks r d e : same_disk d e → faults blocks d r = faults blocks e r.
Proof.
  intros Hd. destruct r as [| |n|n|n]; try done; simpl; unfold taken, missing;
    destruct (valid_name n); try done;
    destruct (decide (is_Some (snaps d !! n))), (decide (is_Some (snaps e !! n))); try done;
    by rewrite (same_disk_snap d e n) in *.
Qed.

Lemma remap_effect f f' r m : (∀ x, x ∈ reachable m → f' x = f x) →
  (∀ x v, banked r m !! x = Some v → f' x = Some v) →
  same_disk (disk_by f' (remap r m)) (effect r (disk_by f m)).
Proof.
  intros Hold Hnew. pose proof (disk_by_ext f f' m Hold) as Hm. pose proof Hm as [Hl Hs]%same_disk_alt.
  simpl in *.
  destruct r as [lba data|lba count|n|n|n]; simpl; [apply same_disk_alt; simpl; split; [|apply Hs]..| | |].
  - intros l. specialize (Hl l). unfold view_by, data_at in *. rewrite lookup_union, lookup_map_seq.
    destruct (decide (lba ≤ l)) as [Hle|Hle].
    + rewrite option_guard_True by done. destruct (data !! (l - lba)) as [v|] eqn:Hv.
      * rewrite lookup_seq_lt by (by apply lookup_lt_Some in Hv).
        destruct (live_map m !! l); simpl; (rewrite (Hnew (next_mba m + (l - lba)) v); [done|]; simpl;
          rewrite lookup_map_seq, option_guard_True by lia; by replace (_ + _ - _) with (l - lba) by lia).
      * rewrite lookup_seq_ge by (by apply lookup_ge_None in Hv).
        destruct (live_map m !! l) eqn:E; simpl in *; done.
    + rewrite option_guard_False by done. destruct (live_map m !! l) eqn:E; simpl in *; done.
  - intros l. specialize (Hl l). unfold view_by, data_at in *.
    destruct (decide (lba ≤ l < lba + count)) as [Hin|Hout].
    + rewrite map_filter_lookup_None_2 by (right; intros x _; simpl; lia).
      rewrite decide_True by lia. by rewrite lookup_replicate_2 by lia.
    + assert ((if decide (lba ≤ l) then replicate count (zero (V:=V)) !! (l - lba) else None) = None) as ->.
      { destruct (decide (lba ≤ l)); [|done]. apply lookup_replicate_None. lia. }
      simpl. rewrite <- Hl. f_equal. f_equal. destruct (live_map m !! l) as [x|] eqn:E.
      * by apply map_filter_lookup_Some_2.
      * apply map_filter_lookup_None_2. by left.
  - unfold disk_by. simpl. rewrite fmap_insert. exact (effect_same (RSnapshot n) _ _ Hm).
  - unfold disk_by. simpl. rewrite fmap_delete. exact (effect_same (RDelete n) _ _ Hm).
  - pose proof (effect_same (RRevert n) _ _ Hm) as He. unfold disk_by. simpl in *. unfold reverted in *.
    simpl in *.
    rewrite !lookup_fmap in *. by destruct (snap_maps m !! n).
Qed.

(** ** Maps, bank and segments that hold a disk: nothing dangles *)

Record whole m b (segs : gmap nat (list V)) : Prop := {
  whole_reachable x : x ∈ reachable m → is_Some (b !! x) ∨ is_Some (middle m !! x);
  whole_stored x a : middle m !! x = Some a → is_Some (stored segs a);
  whole_next x : x ∈ reachable m ∨ is_Some (b !! x) ∨ is_Some (middle m !! x) → x < next_mba m;
}.

Definition maps_hold m b segs d : Prop := whole m b segs ∧ same_disk (disk_by (chunk b (middle m) segs) m) d.

Lemma whole_chunk m b segs x :
  whole m b segs → is_Some (b !! x) ∨ is_Some (middle m !! x) → is_Some (chunk b (middle m) segs x).
Proof. intros Hw Hx. unfold chunk. destruct (b !! x); [by eexists|]. destruct Hx as [[? ?]|[a Ha]]; [done|].
  rewrite Ha. simpl. by apply (whole_stored _ _ _ Hw x). Qed.

Lemma chunk_segments m b segs segs' x :
  (∀ g, g ∈ segments_of m → segs' !! g = segs !! g) → chunk b (middle m) segs' x = chunk b (middle m) segs x.
Proof. intros Hsegs. unfold chunk. destruct (b !! x); [done|].
  destruct (middle m !! x) as [[g i]|] eqn:E; simpl; [|done]. unfold stored. simpl. rewrite Hsegs; [done|].
  apply elem_of_segments_of. eauto. Qed.

Lemma maps_hold_segments m b segs segs' d :
  (∀ g, g ∈ segments_of m → segs' !! g = segs !! g) → maps_hold m b segs d → maps_hold m b segs' d.
Proof.
  intros Hsegs [[H1 H2 H3] Hd]. split; [split|].
  - done.
  - intros x [g i] Hx. destruct (H2 _ _ Hx) as [v Hv]. exists v. unfold stored in *. simpl in *.
    rewrite Hsegs; [done|]. apply elem_of_segments_of. eauto.
  - done.
  - etrans; [|done]. apply disk_by_ext. intros x _. by apply chunk_segments.
Qed.

Lemma reachable_remap r m x : x ∈ reachable (remap r m) → x ∈ reachable m ∨ is_Some (banked r m !! x).
Proof.
  rewrite !elem_of_reachable.
  destruct r as [lba data|lba count|n|n|n]; simpl; intros [[l Hl]|(n' & vm & l & Hn & Hl)]; try (by eauto 10).
  - rewrite lookup_union_Some_raw in Hl. destruct Hl as [Hl|[_ Hl]]; [|by eauto]. right.
    apply lookup_map_seq_Some in Hl as [_ Hl]. apply lookup_seq in Hl as [-> Hlt].
    apply lookup_map_seq_is_Some. 1: exact zero. lia.
  - apply map_filter_lookup_Some in Hl as [Hl _]. eauto.
  - destruct (decide (n = n')) as [->|].
    + rewrite lookup_insert in Hn. simplify_eq. eauto.
    + rewrite lookup_insert_ne in Hn by done. eauto 10.
  - apply lookup_delete_Some in Hn as [_ Hn]. eauto 10.
  - destruct (snap_maps m !! n) eqn:E; simpl in Hl; eauto 10.
Qed.

Lemma banked_fresh r m x v : banked r m !! x = Some v → next_mba m ≤ x < next_mba (remap r m).
Proof. destruct r; simpl; try (by rewrite lookup_empty). intros Hx. apply lookup_map_seq_Some in Hx as [? Hx].
  apply lookup_lt_Some in Hx. lia. Qed.

Lemma middle_remap r m : middle (remap r m) = middle m.
Proof. by destruct r. Qed.

Lemma maps_hold_carry_out r m b segs d : maps_hold m b segs d →
  maps_hold (remap r m) (banked r m ∪ b) segs (effect r d).
Proof.
  intros [Hw Hd]. pose proof Hw as [H1 H2 H3]. split; [split|].
  - intros x Hx. rewrite middle_remap, lookup_union_is_Some.
    apply reachable_remap in Hx as [Hx|Hx]; [|by auto]. destruct (H1 _ Hx); auto.
  - rewrite middle_remap. done.
  - intros x. rewrite middle_remap, lookup_union_is_Some. intros Hx.
    assert (x < next_mba m ∨ is_Some (banked r m !! x)) as [Hlt|[v Hv]].
    { destruct Hx as [Hx|[[Hx|Hx]|Hx]]; auto. apply reachable_remap in Hx as [?|?]; auto. }
    + destruct r; simpl; lia.
    + apply banked_fresh in Hv. lia.
  - etrans; [|by apply effect_same, Hd]. rewrite middle_remap. apply remap_effect; unfold chunk.
    + intros x Hx. rewrite lookup_union. destruct (banked r m !! x) eqn:Hb; [|by destruct (b !! x)].
      apply banked_fresh in Hb. assert (x < next_mba m) by auto. lia.
    + intros x v Hv. by rewrite (lookup_union_Some_l _ _ _ _ Hv).
Qed.

(** ** Moving chunks, and dropping what nothing refers to *)

Lemma placed_keys g (xs : list nat) : (imap (λ i x, (x, (g, i))) xs).*1 = xs.
Proof. apply list_eq. intros i. rewrite list_lookup_fmap, list_lookup_imap. by destruct (xs !! i). Qed.

Lemma lookup_placed g xs x a : NoDup xs → placed g xs !! x = Some a ↔ ∃ i, xs !! i = Some x ∧ a = (g, i).
Proof. intros Hxs. unfold placed.
  rewrite <- elem_of_list_to_map, elem_of_lookup_imap by (by rewrite placed_keys). naive_solver. Qed.

Lemma placed_None g xs x : x ∉ xs → placed g xs !! x = None.
Proof. intros Hx. apply not_elem_of_list_to_map_1. by rewrite placed_keys. Qed.

Section Place.
Variables (m : maps) (b : gmap nat V) (segs : gmap nat (list V)) (g : nat) (xs : list nat).
Let f := chunk b (middle m) segs. Let m' := with_middle m (placed g xs ∪ middle m).
Let b' := filter (λ kv, kv.1 ∉ xs) b. Let segs' := <[g := (λ x, default zero (f x)) <$> xs]> segs.
Hypothesis Hdup : NoDup xs. Hypothesis Hfree : g ∉ segments_of m. Hypothesis Hwhole : whole m b segs.
Hypothesis Hxs : ∀ x, x ∈ xs → is_Some (b !! x) ∨ is_Some (middle m !! x).

Lemma middle_place x a :
  middle m' !! x = Some a ↔ (∃ i, xs !! i = Some x ∧ a = (g, i)) ∨ x ∉ xs ∧ middle m !! x = Some a.
Proof.
  simpl. rewrite lookup_union_Some_raw, lookup_placed by done. split.
  - intros [?|[Hn ?]]; [by left|]. destruct (decide (x ∈ xs)) as [Hx|]; [|by right].
    apply elem_of_list_lookup in Hx as [i Hi]. exfalso.
    assert (placed g xs !! x = Some (g, i)) by (apply lookup_placed; eauto). congruence.
  - intros [?|[Hn ?]]; [by left|]. right. split; [by apply placed_None|done].
Qed.

Lemma chunk_place x : is_Some (b !! x) ∨ is_Some (middle m !! x) → chunk b' (middle m') segs' x = f x.
Proof.
  intros Hx. destruct (decide (x ∈ xs)) as [Hin|Hout].
  - destruct (whole_chunk _ _ _ _ Hwhole Hx) as [v Hv]. unfold chunk at 1, b'.
    rewrite (map_filter_lookup_None_2 _ b) by (right; intros v' _; simpl; by auto).
    apply elem_of_list_lookup in Hin as [i Hi].
    rewrite (proj2 (middle_place x (g, i))) by eauto. simpl. unfold stored, segs'. simpl.
    rewrite lookup_insert. simpl. rewrite list_lookup_fmap, Hi. simpl. unfold f. by rewrite Hv.
  - unfold f, chunk. assert (b' !! x = b !! x) as ->.
    { unfold b'. destruct (b !! x) eqn:E; [by apply map_filter_lookup_Some_2|].
      apply map_filter_lookup_None_2. by left. }
    destruct (b !! x) eqn:E; [done|]. destruct Hx as [[? ?]|[[h i] Ha]]; [done|].
    rewrite (proj2 (middle_place x (h, i))), Ha by auto. simpl. unfold stored, segs'. simpl.
    rewrite lookup_insert_ne; [done|]. intros ->. apply Hfree, elem_of_segments_of. eauto.
Qed.

Lemma maps_hold_place d : maps_hold m b segs d → maps_hold m' b' segs' d.
Proof.
  intros [_ Hd]. pose proof Hwhole as [H1 H2 H3].
  assert (∀ x, is_Some (b !! x) ∨ is_Some (middle m !! x) →
    is_Some (b' !! x) ∨ is_Some (middle m' !! x)) as Hkept.
  { intros x Hx. destruct (decide (x ∈ xs)) as [Hin|Hout].
    - right. apply elem_of_list_lookup in Hin as [i Hi]. exists (g, i). apply middle_place. eauto.
    - destruct Hx as [[v Hv]|[a Ha]].
      + left. exists v. by apply map_filter_lookup_Some_2.
      + right. exists a. apply middle_place. auto. }
  split; [split|].
  - intros x Hx. apply Hkept, H1, Hx.
  - intros x a Ha. apply middle_place in Ha as [(i & Hi & ->)|[Hout Ha]].
    + unfold stored, segs'. simpl. rewrite lookup_insert. simpl. rewrite list_lookup_fmap, Hi. by eexists.
    + destruct (H2 _ _ Ha) as [v Hv]. exists v. unfold stored, segs' in *. rewrite lookup_insert_ne; [done|].
      intros ->. apply Hfree, elem_of_segments_of. exists x, a.2. by destruct a.
  - intros x [Hx|[[v Hv]|[a Ha]]]; simpl; apply H3.
    + by left.
    + apply map_filter_lookup_Some in Hv as [Hv _]. right; left. by eexists.
    + apply middle_place in Ha as [(i & Hi & ->)|[_ Ha]]; [|right; right; by eexists].
      right. apply Hxs. by eapply elem_of_list_lookup_2.
  - etrans; [|exact Hd]. change (same_disk (disk_by (chunk b' (middle m') segs') m) (disk_by f m)).
    apply disk_by_ext. intros x Hx. apply chunk_place, H1, Hx.
Qed.

Lemma segments_of_place h : h ∈ segments_of m' → h = g ∨ h ∈ segments_of m.
Proof. rewrite !elem_of_segments_of. intros (x & i & Hx).
  apply middle_place in Hx as [(? & ? & [= -> ->])|[_ ?]]; eauto. Qed.
End Place.

Lemma maps_hold_reclaim x m b segs d : x ∉ reachable m → maps_hold m b segs d →
  maps_hold (with_middle m (delete x (middle m))) (delete x b) segs d.
Proof.
  intros Hx [[H1 H2 H3] Hd].
  assert (∀ y, y ∈ reachable m → delete x b !! y = b !! y ∧
    delete x (middle m) !! y = middle m !! y) as Hsame.
  { intros y Hy. rewrite !lookup_delete_ne by (by intros ->). done. }
  split; [split|]; simpl.
  - intros y Hy. destruct (Hsame y Hy) as [-> ->]. by apply H1.
  - intros y a Ha. apply lookup_delete_Some in Ha as [_ Ha]. eauto.
  - intros y [Hy|[[? Hy]|[? Hy]]]; apply H3; [by left|..]; apply lookup_delete_Some in Hy as [_ Hy]; eauto.
  - etrans; [|exact Hd].
    change (same_disk (disk_by (chunk (delete x b) (delete x (middle m)) segs) m) (disk_by (chunk b (middle
      m) segs) m)). apply disk_by_ext. intros y Hy. unfold chunk. by destruct (Hsame y Hy) as [-> ->].
Qed.

Lemma segments_of_reclaim x m g : g ∈ segments_of (with_middle m (delete x (middle m))) → g ∈ segments_of m.
Proof. rewrite !elem_of_segments_of. intros (y & i & Hy). simpl in Hy.
  apply lookup_delete_Some in Hy as [_ Hy]. eauto. Qed.

Lemma elem_of_chunks_in vs (mid : gmap nat pba) x : x ∈ chunks_in vs mid ↔ ∃ a, mid !! x = Some a ∧ a.1 ∈ vs.
Proof.
  unfold chunks_in. rewrite elem_of_list_fmap. split.
  - intros ([y a] & -> & Ha). apply elem_of_map_to_list, map_filter_lookup_Some in Ha as [? ?]. eauto.
  - intros (a & Ha & Hv). exists (x, a). split; [done|].
    by apply elem_of_map_to_list, map_filter_lookup_Some_2.
Qed.

Lemma NoDup_chunks_in vs (mid : gmap nat pba) : NoDup (chunks_in vs mid).
Proof. apply NoDup_fst_map_to_list. Qed.

End Reading.
