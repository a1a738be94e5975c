(** What holds in every state that a sound design reaches. *)
From LogDisk Require Import LogStructuredDisk LogStructuredDiskReading.

Section Invariant.
Context {V : Type} `{Value V}.
Implicit Types (K : design) (r : record V) (c : state V) (h : list (record V)) (i : checkpoint) (g x : nat).

(** ** Histories *)

(** Each record was without fault where it stands. *)
Definition valid (blocks : nat) h : Prop := ∀ k r, h !! k = Some r → faults blocks (after (take k h)) r = [].

Lemma after_take_S h k r : h !! k = Some r → after (take (S k) h) = effect r (after (take k h)).
Proof. intros Hk. unfold after. by rewrite (take_S_r _ _ _ Hk), foldl_app. Qed.

Lemma valid_take blocks h n : valid blocks h → valid blocks (take n h).
Proof. intros Hv k r Hk. apply lookup_take_Some in Hk as [Hk Hlt]. rewrite take_take, Nat.min_l by lia.
  by apply Hv. Qed.

Lemma valid_snoc blocks h r : valid blocks h → faults blocks (after h) r = [] → valid blocks (h ++ [r]).
Proof.
  intros Hv Hr k r' Hk. apply lookup_app_Some in Hk as [Hk|[Hge Hk]].
  - rewrite take_app_le by (apply lookup_lt_Some in Hk; lia). by apply Hv.
  - apply list_lookup_singleton_Some in Hk as [Hk ->]. by rewrite take_app_alt by lia.
Qed.

Lemma history_length c : length (history c) = logged c.
Proof. unfold history, logged. by rewrite app_length. Qed.

Lemma history_submit r c : history (submit r c) = history c ++ [r].
Proof. unfold history. simpl. by rewrite (assoc_L (++)). Qed.

Lemma history_truncate n c : history (truncate n c) = history c.
Proof. unfold history at 1. simpl. by rewrite take_drop. Qed.

Lemma replace_older_same (o : option checkpoint) (s : devices V) :
  past (replace_older o s) = past s ∧ log (replace_older o s) = log s ∧
  flushed (replace_older o s) = flushed s ∧ segments (replace_older o s) = segments s.
Proof. unfold replace_older. destruct s as [pa lo fl [a|] [b|] sg]; simpl; try done. by case_decide. Qed.

Lemma commit_same i c : history (commit i c) = history c ∧ first (commit i c) = first c ∧
  logged (commit i c) = logged c ∧ flushed (dev (commit i c)) = flushed (dev c) ∧
    segments (dev (commit i c)) = segments (dev c).
Proof. unfold history, first, logged. simpl.
  by destruct (replace_older_same (Some i) (dev c)) as (-> & -> & -> & ->). Qed.

(** ** The invariant *)

Definition checkpoint_holds h segs i : Prop :=
  upto i ≤ length h ∧ maps_hold (saved i) ∅ segs (after (take (upto i) h)).

(** No segment that [i] refers to is open or free. *)
Definition usage_kept (t : gmap nat usage) i : Prop :=
  ∀ g, g ∈ segments_of (saved i) → t !! g = Some Sealed ∨ t !! g = Some Dead.

Record invariant K c : Prop := Invariant {
  log_valid : valid (size c) (history c);
  log_flushed : first c ≤ flushed (dev c) ≤ logged c;
  newest_holds : ∃ i, newest (dev c) = Some i ∧ first c ≤ upto i ≤ flushed (dev c)
    ∧ checkpoint_holds (history c) (segments (dev c)) i
    ∧ (at_phase c ≠ Off → upto i ≤ applied (mem c) ∧ usage_kept (table (mem c)) i);
  nodes_hold i j : nodes (mem c) = Some i → newest (dev c) = Some j → number j < number i
    ∧ upto j ≤ upto i ≤ applied (mem c)
    ∧ checkpoint_holds (history c) (segments (dev c)) i ∧ usage_kept (table (mem c)) i;
  memory_lost : at_phase c = Off → mem c = no_memory;
  current_holds : at_phase c ≠ Off → applied (mem c) ≤ logged c
    ∧ maps_hold (current (mem c)) (bank (mem c)) (segments (dev c))
        (after (take (applied (mem c)) (history c)))
    ∧ ∀ g, g ∈ segments_of (current (mem c)) → table (mem c) !! g = Some Open ∨ table (mem c) !! g = Some
      Sealed;
  pending_is : match pending c with
    | None => at_phase c = Running → applied (mem c) = logged c
    | Some (Operation r) =>
        at_phase c = Running ∧ logged c = S (applied (mem c)) ∧ history c !! applied (mem c) = Some r
    | Some Reopen => at_phase c ≠ Running
    end;
  recovery_flushed : at_phase c ≠ Running → flushed (dev c) = logged c;
  acknowledged_flushed : promises K ≠ Prefix → at_phase c = Running → applied (mem c) ≤ flushed (dev c);
}.

Lemma seen_after K c :
  invariant K c → at_phase c ≠ Off → same_disk (seen c) (after (take (applied (mem c)) (history c))).
Proof. intros Hinv Hp. by destruct (current_holds _ _ Hinv Hp) as (_ & [_ Hd] & _). Qed.

Lemma seen_idle K c :
  invariant K c → at_phase c = Running → pending c = None → same_disk (seen c) (after (history c)).
Proof. intros Hinv Hp Hq. pose proof (pending_is _ _ Hinv) as Happ. rewrite Hq in Happ.
  rewrite (seen_after K c), Happ by (done || by rewrite Hp). rewrite take_ge; [done|].
  by rewrite history_length. Qed.

Lemma checkpoint_snoc h segs i r : checkpoint_holds h segs i → checkpoint_holds (h ++ [r]) segs i.
Proof. intros [Hle Hh]. split; [rewrite app_length; lia|]. by rewrite take_app_le by done. Qed.

Lemma checkpoint_segments h segs segs' i : (∀ g, g ∈ segments_of (saved i) → segs' !! g = segs !! g) →
  checkpoint_holds h segs i → checkpoint_holds h segs' i.
Proof. intros Hsegs [Hle Hh]. split; [done|]. by eapply maps_hold_segments. Qed.

Lemma initial_invariant K blocks : invariant K (initial blocks).
Proof.
  assert (maps_hold no_maps ∅ ∅ (blank (V:=V))) as Hblank.
  { split; [split|].
    - intros x Hx. apply elem_of_reachable in Hx as [(l & Hl)|(n & vm & l & Hn & _)]; simpl in *;
        by rewrite lookup_empty in *.
    - intros x a. simpl. by rewrite lookup_empty.
    - intros x [Hx|[[? Hx]|[? Hx]]]; simpl in *; [|by rewrite lookup_empty in Hx..].
      apply elem_of_reachable in Hx as [(l & Hl)|(n & vm & l & Hn & _)]; simpl in *;
        by rewrite lookup_empty in *.
    - apply same_disk_alt. simpl. split; [by intros l|]. intros n. rewrite lookup_fmap, !lookup_empty.
      constructor. }
  assert (∀ g, g ∈ segments_of no_maps → False) as Hnone.
  { intros g Hg. apply elem_of_segments_of in Hg as (x & i & Hx). simpl in Hx.
    by rewrite lookup_empty in Hx. }
  split; simpl; try done.
  - exists (Checkpoint no_maps 0 0). split_and!; try done; simpl; try lia; by intros g Hg%Hnone.
Qed.

(** ** Each step keeps it *)

Lemma submit_invariant K c r : invariant K c → at_phase c = Running → pending c = None →
  faults (size c) (seen c) r = [] → invariant K (submit r c).
Proof.
  intros Hinv Hp Hq Hr. pose proof (seen_idle _ _ Hinv Hp Hq) as Hseen.
  destruct Hinv as [Hvalid Hfl (i & Hnew & Hup & Hi & Hkept) Hnodes Hlost Hcur Hpend Hrec Hack].
  rewrite Hq in Hpend. specialize (Hpend Hp).
  assert (logged (submit r c) = S (logged c)) as Hl by (rewrite <-!history_length, history_submit, app_length;
    simpl; lia).
  split; rewrite ?history_submit, ?Hl.
  - apply valid_snoc; [done|]. by rewrite <- (faults_same _ _ _ _ Hseen).
  - simpl. change (first (submit r c)) with (first c). lia.
  - exists i. split_and!; try done; try (by apply Hup). by apply checkpoint_snoc.
  - intros j k Hj Hk. destruct (Hnodes j k Hj Hk) as (? & ? & ? & ?). simpl. split_and!; try done; try lia.
    by apply checkpoint_snoc.
  - done.
  - intros _. destruct Hcur as (Happ & Hh' & Ht); [by rewrite Hp|]. simpl. split_and!; [lia| |done].
    rewrite take_app_le by (rewrite history_length; lia). done.
  - simpl. split_and!; [done|by rewrite Hpend|]. rewrite Hpend, <- history_length.
    by apply list_lookup_middle.
  - simpl. by rewrite Hp.
  - done.
Qed.

Lemma log_append_invariant K c : invariant K c → at_phase c ≠ Off → invariant K (log_append c).
Proof.
  intros [Hvalid Hfl (i & Hnew & Hup & Hi & Hkept) Hnodes Hlost Hcur Hpend Hrec Hack] Hp. split; try done.
  - simpl. change (first (log_append c)) with (first c). change (logged (log_append c)) with (logged c). lia.
  - exists i. split_and!; try done; try (by apply Hup). simpl. lia.
  - intros _ Hrun. simpl. by apply Hcur.
Qed.

Lemma carry_out_invariant K c r q :
  invariant K c → at_phase c ≠ Off → history c !! applied (mem c) = Some r →
  (at_phase c = Running → q = None ∧ logged c = S (applied (mem c)) ∧
    (promises K ≠ Prefix → flushed (dev c) = logged c)) →
  (at_phase c = Recovering → q = pending c) →
  invariant K (State (size c) (at_phase c) q (dev c) (carry_out r (mem c))).
Proof.
  intros [Hvalid Hfl (i & Hnew & Hup & Hi & Hkept) Hnodes Hlost Hcur Hpend Hrec Hack] Hp Hr Hq Hq'.
  destruct Hcur as (Happ & Hh & Ht); [done|].
  assert (S (applied (mem c)) ≤ logged c) as Hlt by (apply lookup_lt_Some in Hr;
    by rewrite history_length in Hr). split; try done; simpl.
  - exists i. split_and!; try done; try (by apply Hup). intros _. destruct (Hkept Hp). split; [lia|done].
  - intros j k Hj Hk. destruct (Hnodes j k Hj Hk) as (? & ? & ? & ?). simpl. split_and!; try done; lia.
  - intros _. split_and!; [done| |].
    + change (history (State _ _ _ (dev c) _)) with (history c). rewrite (after_take_S _ _ _ Hr).
      by apply maps_hold_carry_out.
    + intros g. unfold segments_of. rewrite middle_remap. apply Ht.
  - destruct (at_phase c) eqn:E; [done| |].
    + rewrite Hq' by done. destruct (pending c) as [[r'|]|]; try done. by destruct Hpend.
    + destruct (Hq eq_refl) as (-> & Hl & _). by intros _.
  - intros Hk Hrun. destruct (Hq Hrun) as (_ & Hl & Hf). rewrite Hf by done. lia.
Qed.

Lemma place_invariant K c g xs : invariant K c → at_phase c ≠ Off → table (mem c) !! g = None → NoDup xs →
  (∀ x, x ∈ xs → is_Some (bank (mem c) !! x) ∨ is_Some (middle (current (mem c)) !! x)) →
  invariant K (place g xs c).
Proof.
  intros [Hvalid Hfl (i & Hnew & Hup & Hi & Hkept) Hnodes Hlost Hcur Hpend Hrec Hack] Hp Hg Hdup Hxs.
  destruct Hcur as (Happ & Hh & Ht); [done|].
  assert (∀ j, usage_kept (table (mem c)) j → g ∉ segments_of (saved j)) as Hfree.
  { intros j Hj Hin. destruct (Hj _ Hin); congruence. }
  assert (∀ j, usage_kept (table (mem c)) j → usage_kept (<[g := Open]> (table (mem c))) j) as Htable.
  { intros j Hj g' Hg'. rewrite lookup_insert_ne; [by apply Hj|]. intros ->. by eapply Hfree. }
  assert (∀ j h, usage_kept (table (mem c)) j → checkpoint_holds h (segments (dev c)) j →
    checkpoint_holds h (segments (dev (place g xs c))) j) as Hstay.
  { intros j h Hj. apply checkpoint_segments. intros g' Hg'. simpl. rewrite lookup_insert_ne; [done|].
    intros ->. by eapply Hfree. }
  assert (g ∉ segments_of (current (mem c))) as Hcurfree by (intros Hin; destruct (Ht _ Hin); congruence).
  split; try done.
  - exists i. destruct (Hkept Hp). split_and!; try done; try (by apply Hup). { by apply Hstay. } intros _.
    auto.
  - intros j k Hj Hk. destruct (Hnodes j k Hj Hk) as (? & ? & ? & ?). simpl.
    split_and!; auto; try lia; try (by apply Hstay).
  - intros _. split_and!; [done| |].
    + destruct Hh as [Hw Hd]. by apply maps_hold_place.
    + intros g' Hg'. apply segments_of_place in Hg'; [|done]. simpl.
      destruct (decide (g = g')) as [->|]; [rewrite lookup_insert; auto|]. rewrite lookup_insert_ne by done.
      destruct Hg' as [->|Hg']; [done|]. by apply Ht.
Qed.

Lemma table_invariant K c t : invariant K c → at_phase c ≠ Off →
  (∀ g, g ∈ segments_of (current (mem c)) → t !! g = Some Open ∨ t !! g = Some Sealed) →
  (∀ j, newest (dev c) = Some j ∨ nodes (mem c) = Some j → usage_kept (table (mem c)) j → usage_kept t j) →
  invariant K (with_memory c (with_table (mem c) t)).
Proof.
  intros [Hvalid Hfl (i & Hnew & Hup & Hi & Hkept) Hnodes Hlost Hcur Hpend Hrec Hack] Hp Ht Hold.
  split; try done.
  - exists i. destruct (Hkept Hp). split_and!; try done; try (by apply Hup). intros _. auto.
  - intros j k Hj Hk. destruct (Hnodes j k Hj Hk) as (? & ? & ? & ?). simpl. split_and!; auto; lia.
  - intros _. destruct (Hcur Hp) as (? & ? & ?). by split_and!.
Qed.

Lemma bury_invariant K c vs :
  invariant K c → at_phase c ≠ Off → set_Forall (λ v, table (mem c) !! v = Some Sealed) vs →
  chunks_in vs (middle (current (mem c))) = [] → invariant K (bury vs c).
Proof.
  intros Hinv Hp Hvs Hxs. apply table_invariant; [done..| |].
  - intros g Hg. rewrite lookup_union_r; [by apply (current_holds _ _ Hinv)|].
    apply lookup_gset_to_gmap_None. intros Hin. apply elem_of_segments_of in Hg as (x & i & Hx).
    assert (x ∈ chunks_in vs (middle (current (mem c)))) as Hx' by (apply elem_of_chunks_in; eauto).
    rewrite Hxs in Hx'. by apply elem_of_nil in Hx'.
  - intros j _ Hj g Hg. destruct (decide (g ∈ vs)).
    + right. apply lookup_union_Some_l. by apply lookup_gset_to_gmap_Some.
    + rewrite lookup_union_r by (by apply lookup_gset_to_gmap_None). by apply Hj.
Qed.

Lemma chunks_in_place K c vs g :
  invariant K c → g ∉ vs →
  let xs := chunks_in vs (middle (current (mem c))) in
  chunks_in vs (middle (current (mem (place g xs c)))) = [].
Proof.
  intros Hinv Hg xs. apply elem_of_nil_inv. intros x Hx. apply elem_of_chunks_in in Hx as (a & Ha & Hv).
  apply (middle_place (current (mem c)) g xs) in Ha as [(i & Hi & ->)|[Hout Ha]];
    [done| |apply NoDup_chunks_in]. apply Hout, elem_of_chunks_in. eauto.
Qed.

Lemma clean_invariant K c vs g :
  invariant K c → at_phase c ≠ Off → set_Forall (λ v, table (mem c) !! v = Some Sealed) vs →
  chunks_in vs (middle (current (mem c))) = [] ∨ table (mem c) !! g = None → invariant K (clean vs g c).
Proof.
  intros Hinv Hp Hvs Hg. unfold clean.
  destruct (chunks_in vs (middle (current (mem c)))) as [|x xs'] eqn:Hxs; [by apply bury_invariant|].
  destruct Hg as [|Hg]; [done|]. rewrite <- Hxs.
  assert (g ∉ vs) as Hgvs by (intros Hin; specialize (Hvs _ Hin); simpl in Hvs; congruence).
  apply bury_invariant; simpl; [|done| |].
  - apply place_invariant; [done..|apply NoDup_chunks_in|]. intros y Hy.
    apply elem_of_chunks_in in Hy as (a & Ha & _). right. by eexists.
  - intros v Hv. rewrite lookup_insert_ne; [by apply Hvs|]. by intros ->.
  - by eapply chunks_in_place.
Qed.

Lemma reclaim_invariant K c x :
  invariant K c → at_phase c ≠ Off → x ∉ reachable (current (mem c)) → invariant K (reclaim x c).
Proof. intros [Hvalid Hfl Hnewest Hnodes Hlost Hcur Hpend Hrec Hack] Hp Hx. split; try done. intros _.
  destruct (Hcur Hp) as (? & ? & Ht). split_and!; [done|by apply maps_hold_reclaim|]. intros g Hg.
  by apply Ht, segments_of_reclaim in Hg || (apply segments_of_reclaim in Hg; by apply Ht). Qed.

Lemma write_nodes_invariant K c : invariant K c → at_phase c ≠ Off → bank (mem c) = ∅ →
  set_Forall (λ g, table (mem c) !! g = Some Sealed) (segments_of (current (mem c))) →
  invariant K (write_nodes c).
Proof.
  intros [Hvalid Hfl (i & Hnew & Hup & Hi & Hkept) Hnodes Hlost Hcur Hpend Hrec Hack] Hp Hb Hs.
  destruct (Hcur Hp) as (Happ & Hh & Ht). destruct (Hkept Hp) as [Hle Hk]. split; try done.
  - exists i. by split_and!; try apply Hup.
  - intros j k Hj Hk'. change (newest (dev (write_nodes c))) with (newest (dev c)) in Hk'. simplify_eq.
    simpl in Hj. injection Hj as <-. simpl. rewrite Hnew. simpl. split_and!; try lia.
    + split; [by rewrite history_length|]. simpl. by rewrite <- Hb.
    + intros g Hg. left. by apply Hs.
Qed.

Lemma newest_replace_older (s : devices V) i j :
  newest s = Some j → number j < number i → newest (replace_older (Some i) s) = Some i.
Proof.
  unfold newest, replace_older. destruct s as [pa lo fl [a|] [b|] sg]; simpl; intros Hj Hlt; try case_decide;
    simplify_eq; simpl; try case_decide; done || lia.
Qed.

Lemma newest_torn (s : devices V) : newest (replace_older None s) = newest s.
Proof.
  unfold newest, replace_older. destruct s as [pa lo fl [a|] [b|] sg]; simpl; try done. by case_decide.
Qed.

Lemma commit_invariant K c i : invariant K c → at_phase c ≠ Off → nodes (mem c) = Some i →
  upto i ≤ flushed (dev c) → invariant K (commit i c).
Proof.
  intros [Hvalid Hfl (j & Hnew & Hup & Hj & Hkept) Hnodes Hlost Hcur Hpend Hrec Hack] Hp Hi Hle.
  destruct (Hnodes _ _ Hi Hnew) as (Hnum & [Hji Happ] & Hok & Hk).
  destruct (commit_same i c) as (Hh & Hfi & Hl & Efl & Esg). split; rewrite ?Hh, ?Hl, ?Hfi, ?Efl, ?Esg;
    try done.
  exists i. split_and!; try done; try lia. by eapply newest_replace_older.
Qed.

Lemma truncate_invariant K c i n :
  invariant K c → newest (dev c) = Some i → first c ≤ n ≤ upto i → invariant K (truncate n c).
Proof.
  intros [Hvalid Hfl (j & Hnew & Hup & Hj & Hkept) Hnodes Hlost Hcur Hpend Hrec Hack] Hi Hn.
  assert (logged (truncate n c) = logged c) as Hl by (by rewrite <-!history_length, history_truncate).
  simplify_eq. destruct Hj as [Hjl Hj].
  assert (first (truncate n c) = n) as Hfi by (unfold first; simpl; rewrite take_length; lia).
  split; rewrite ?history_truncate, ?Hl, ?Hfi; try done; simpl; try lia.
  exists j. split_and!; try done; try lia.
Qed.

Lemma history_crash keep torn garbage c :
  first c ≤ keep → history (crash keep torn garbage c) = take keep (history c).
Proof. intros Hle. unfold history, crash. simpl.
  destruct (replace_older_same None (dev c)) as (Epa & Elo & _).
  rewrite take_app_ge by (unfold first in Hle; lia). by destruct torn; rewrite ?Epa, ?Elo. Qed.

Lemma crash_invariant K c keep torn garbage :
  invariant K c → flushed (dev c) ≤ keep ≤ logged c → invariant K (crash keep torn garbage c).
Proof.
  intros [Hvalid Hfl (i & Hnew & Hup & [Hle Hi] & Hkept) Hnodes Hlost Hcur Hpend Hrec Hack] Hkeep.
  assert (history (crash keep torn garbage c) = take keep (history c)) as Hh by (apply history_crash; lia).
  assert (logged (crash keep torn garbage c) = keep) as Hl.
  { rewrite <- history_length, Hh, take_length, history_length. lia. }
  assert (past (if torn then replace_older None (dev c) else dev c) = past (dev c) ∧
    segments (if torn then replace_older None (dev c) else dev c) = segments (dev c)) as [Epa Esg].
  { destruct torn; [|done]. by destruct (replace_older_same None (dev c)) as (? & _ & _ & ?). }
  assert (first (crash keep torn garbage c) = first c) as Hfi by (unfold first; simpl; by rewrite Epa).
  split; rewrite ?Hh, ?Hl, ?Hfi; simpl; try done.
  - by apply valid_take.
  - lia.
  - exists i. split_and!; try done; try lia.
    + rewrite <- Hnew. destruct torn; [|done]. exact (newest_torn (dev c)).
    + rewrite Esg. split; [rewrite take_length; lia|]. rewrite take_take, Nat.min_l by lia.
      eapply maps_hold_segments; [|exact Hi]. intros g Hg.
      assert (is_Some (segments (dev c) !! g)) as [data Hdata].
      { apply elem_of_segments_of in Hg as (x & sl & Hx). destruct Hi as [Hw _].
        destruct (whole_stored _ _ _ Hw _ _ Hx) as [v Hv]. unfold stored in Hv. simpl in Hv.
        by destruct (segments (dev c) !! g). }
      rewrite Hdata. apply lookup_union_Some_l, map_filter_lookup_Some_2; [done|]. simpl.
      destruct (decide (at_phase c = Off)) as [Hoff|Hon].
      * rewrite (Hlost Hoff). simpl; by rewrite lookup_empty.
      * destruct (Hkept Hon) as [_ Hk]. by destruct (Hk _ Hg) as [-> | ->].
Qed.

Lemma restart_invariant K c : invariant K c → at_phase c = Running → pending c = None →
  invariant K (State (size c) Off (Some Reopen) (dev (log_append c)) no_memory).
Proof.
  intros [Hvalid Hfl (i & Hnew & Hup & Hi & Hkept) Hnodes Hlost Hcur Hpend Hrec Hack] Hp Hq.
  split; try done; simpl.
  - change (first (State _ _ _ _ _)) with (first c). change (logged (State _ _ _ _ _)) with (logged c). lia.
  - exists i. split_and!; try done; [apply Hup|lia].
Qed.

Lemma load_invariant K c i :
  invariant K c → at_phase c = Off → newest (dev c) = Some i → invariant K (load (upto i) i c).
Proof.
  intros [Hvalid Hfl (j & Hnew & Hup & [Hle Hj] & Hkept) Hnodes Hlost Hcur Hpend Hrec Hack] Hp Hi.
  simplify_eq. rewrite history_length in Hle.
  assert (∀ g, g ∈ segments_of (saved j) → table (mem (load (upto j) j c)) !! g = Some Sealed) as Ht.
  { intros g Hg. simpl. by apply lookup_gset_to_gmap_Some. }
  assert (applied (mem (load (upto j) j c)) = upto j) as Happ by (simpl; lia). split; rewrite ?Happ; try done.
  - exists j. split; [done|]. split; [exact Hup|]. split; [split; [by rewrite history_length|exact Hj]|].
    intros _. split; [done|]. intros g Hg. left. by apply Ht.
  - intros _. split_and!; [done..|]. intros g Hg. right. by apply Ht.
  - simpl. destruct (pending c) as [[r|]|]; [|done..]. destruct Hpend as [? _]. congruence.
  - simpl. intros _. apply Hrec. by rewrite Hp.
Qed.

Lemma recover_invariant K c : invariant K c → at_phase c = Recovering → logged c ≤ applied (mem c) →
  invariant K (State (size c) Running None (dev c) (mem c)).
Proof.
  intros [Hvalid Hfl (i & Hnew & Hup & Hi & Hkept) Hnodes Hlost Hcur Hpend Hrec Hack] Hp Hle.
  destruct Hcur as (Happ & Hh & Ht); [by rewrite Hp|]. destruct Hkept as [Hia Hk]; [by rewrite Hp|].
  split; try done; simpl.
  - exists i. by split_and!; try apply Hup.
  - intros _. change (applied (mem c) = logged c). lia.
  - intros _ _. rewrite Hrec by (by rewrite Hp). done.
Qed.

Theorem step_invariant K c es c' : sound K → invariant K c → step K c es c' → invariant K c'.
Proof.
  intros [_ Hrules] Hinv Hstep. pose proof (pending_is _ _ Hinv) as Hpend. step_cases Hstep; try exact Hinv.
  - by apply submit_invariant.
  - by apply log_append_invariant.
  - rewrite Hq in Hpend. destruct Hpend as (_ & Hl & Hr). unfold acknowledge.
    apply carry_out_invariant; [done|by rewrite Hp|done| |by rewrite Hp].
    intros _. split_and!; [done..|]. auto.
  - apply log_append_invariant; [done|by rewrite Hp].
  - apply place_invariant; [done..|]. intros x Hx. left. by apply (proj1 (Forall_forall _ _) Hxs).
  - apply table_invariant; [done..| |].
    + intros g' Hg'. destruct (decide (g = g')) as [->|]; [rewrite lookup_insert; auto|].
      rewrite lookup_insert_ne by done. by apply (current_holds _ _ Hinv).
    + intros j _ Hj g' Hg'. destruct (decide (g = g')) as [->|]; [rewrite lookup_insert; auto|].
      rewrite lookup_insert_ne by done. by apply Hj.
  - apply clean_invariant; [done..|]. destruct Hg as [?|[? _]]; auto.
  - apply table_invariant; [done..| |].
    + intros g' Hg'. destruct (current_holds _ _ Hinv Hp) as (_ & _ & Ht). specialize (Ht _ Hg').
      rewrite lookup_delete_ne; [done|]. intros ->. destruct Ht; congruence.
    + intros j Hj Hkept g' Hg'. rewrite lookup_delete_ne; [by apply Hkept|]. intros ->.
      apply (Hfree (Hrules _)). unfold pinned. destruct Hj as [-> | ->]; simpl; set_solver.
  - apply reclaim_invariant; auto.
  - apply write_nodes_invariant; auto.
  - apply commit_invariant; auto.
  - destruct Hi as [Hi|[Hno _]]; [by eapply truncate_invariant|]. by destruct Hno.
  - by apply crash_invariant.
  - by apply restart_invariant.
  - pose proof (Hrules ReplayAfterCheckpoint) as Hrule. destruct (obeys K ReplayAfterCheckpoint); [|done].
    by apply load_invariant.
  - apply carry_out_invariant; [done|by rewrite Hp| |by rewrite Hp|done].
    unfold history. rewrite lookup_app_r by (by unfold first in Hfi). exact Hr.
  - by apply recover_invariant.
Qed.

Theorem steps_invariant K c tr c' : sound K → invariant K c → steps K c tr c' → invariant K c'.
Proof. intros HK Hinv Hsteps. induction Hsteps as [|c es c1 tr c2 Hstep _ IH]; [done|]. apply IH.
  by eapply step_invariant. Qed.

(** A state that the design reaches, by any history. *)
Definition reached K c : Prop := ∃ blocks tr, steps K (initial blocks) tr c.

Corollary reached_invariant K c : sound K → reached K c → invariant K c.
Proof. intros HK (blocks & tr & Hsteps). eapply steps_invariant; [done| |done]. apply initial_invariant. Qed.

Lemma steps_app K c tr1 c1 tr2 c2 : steps K c tr1 c1 → steps K c1 tr2 c2 → steps K c (tr1 ++ tr2) c2.
Proof. intros Hsteps1 Hsteps2. induction Hsteps1 as [|c es c' tr c'' Hstep _ IH]; [done|].
  rewrite <- (assoc_L (++)). econstructor; [done|]. by apply IH. Qed.

Lemma reached_steps K c tr c' : reached K c → steps K c tr c' → reached K c'.
Proof. intros (blocks & tr' & Hsteps) ?. exists blocks, (tr' ++ tr). by eapply steps_app. Qed.

Lemma reached_step K c es c' : reached K c → step K c es c' → reached K c'.
Proof. intros Hc Hstep. eapply (reached_steps _ _ (es ++ [])); [done|]. econstructor; [done|constructor]. Qed.

End Invariant.
