(** Destage, cleaning and the other steps inside change no view; what is dead holds nothing; cleaning ends. *)
From LogDisk Require Import LogStructuredDisk LogStructuredDiskReading LogStructuredDiskInvariant.

Section Cleaning.
Context {V : Type} `{Value V}.
Implicit Types (K : design) (r : record V) (c : state V) (vs : gset nat) (g x : nat) (xs : list nat).

(** What Clean asks for. *)
Definition may_clean K c vs g : Prop :=
  vs ≠ ∅ ∧ set_Forall (λ v, table (mem c) !! v = Some Sealed) vs ∧
  (let xs := chunks_in vs (middle (current (mem c))) in
   xs = [] ∨ table (mem c) !! g = None ∧ length xs ≤ width K ∧ (obeys K CleanGains → 2 ≤ base.size vs)).

(** ** Invisible *)

(** A step that shows nothing, while the disk runs, changes no view. *)
Theorem silent_step_invisible K c c' : sound K → reached K c → at_phase c = Running → step K c [] c' →
  at_phase c' = Running → same_disk (seen c') (seen c).
Proof.
  intros HK Hc Hp Hstep Hp'. pose proof (reached_step _ _ _ _ Hc Hstep) as Hc'.
  apply (reached_invariant _ _ HK) in Hc. apply (reached_invariant _ _ HK) in Hc'.
  rewrite (seen_after K c), (seen_after K c') by (done || by rewrite ?Hp, ?Hp').
  destruct (current_holds _ _ Hc) as (Happ & _); [by rewrite Hp|].
  enough (applied (mem c') = applied (mem c) ∧
    take (applied (mem c)) (history c') = take (applied (mem c)) (history c)) as [-> ->] by done.
  remember [] as es eqn:Hes. destruct Hstep; try done; try congruence.
  - split; [done|]. rewrite history_submit. apply take_app_le. by rewrite history_length.
  - unfold clean. by destruct (chunks_in _ _).
  - by destruct (commit_same i c) as (-> & _).
  - by rewrite history_truncate.
Qed.

(** Destage, by itself, in any phase; so also in the middle of recovery. *)
Theorem destage_invisible K c g xs : sound K → reached K c → at_phase c ≠ Off → table (mem c) !! g = None →
  NoDup xs → Forall (λ x, is_Some (bank (mem c) !! x)) xs → same_disk (seen (place g xs c)) (seen c).
Proof.
  intros HK Hc Hp Hg Hdup Hxs. apply (reached_invariant _ _ HK) in Hc.
  assert (invariant K (place g xs c)) as Hplace.
  { apply place_invariant; [done..|]. intros x Hx. left. by apply (proj1 (Forall_forall _ _) Hxs). }
  by rewrite (seen_after K c), (seen_after K (place g xs c)).
Qed.

Lemma may_clean_invariant K c vs g : invariant K c → at_phase c ≠ Off → may_clean K c vs g →
  invariant K (clean vs g c).
Proof. intros Hc Hp (_ & Hvs & Hxs). apply clean_invariant; [done..|]. destruct Hxs as [?|[? _]]; auto. Qed.

(** Cleaning too. *)
Theorem clean_invisible K c vs g :
  sound K → reached K c → at_phase c ≠ Off → may_clean K c vs g → same_disk (seen (clean vs g c)) (seen c).
Proof.
  intros HK Hc Hp Hmay. apply (reached_invariant _ _ HK) in Hc.
  pose proof (may_clean_invariant _ _ _ _ Hc Hp Hmay) as Hclean.
  rewrite (seen_after K c), (seen_after K (clean vs g c)); try done;
    unfold clean; destruct (chunks_in _ _); done.
Qed.

(** ** What is dead or free holds nothing *)

(** Into a free segment neither the middle map nor a checkpoint that may ever be loaded leads. *)
Theorem free_holds_nothing K c g : sound K → reached K c → at_phase c ≠ Off → table (mem c) !! g = None →
  g ∉ segments_of (current (mem c)) ∧ g ∉ pinned c.
Proof.
  intros HK Hc Hp Hg. apply (reached_invariant _ _ HK) in Hc.
  destruct (current_holds _ _ Hc Hp) as (_ & _ & Ht).
  destruct (newest_holds _ _ Hc) as (i & Hi & _ & _ & Hkept). destruct (Hkept Hp) as [_ Hk].
  split; [intros Hin; destruct (Ht _ Hin); congruence|].
  unfold pinned. rewrite Hi, elem_of_union. simpl. intros [Hin|Hin].
  - destruct (Hk _ Hin); congruence.
  - destruct (nodes (mem c)) as [j|] eqn:Hj; simpl in Hin; [|by apply elem_of_empty in Hin].
    destruct (nodes_hold _ _ Hc j i Hj Hi) as (_ & _ & _ & Hk'). destruct (Hk' _ Hin); congruence.
Qed.

(** A victim is dead as soon as it is cleaned, and the middle map has no way into it. *)
Theorem cleaned_is_dead K c vs g v : sound K → reached K c → at_phase c ≠ Off → may_clean K c vs g → v ∈ vs →
  table (mem (clean vs g c)) !! v = Some Dead ∧ v ∉ segments_of (current (mem (clean vs g c))).
Proof.
  intros HK Hc Hp Hmay Hv. apply (reached_invariant _ _ HK) in Hc.
  pose proof (may_clean_invariant _ _ _ _ Hc Hp Hmay) as Hclean.
  assert (table (mem (clean vs g c)) !! v = Some Dead) as Hdead.
  { unfold clean. destruct (chunks_in _ _); simpl; by apply lookup_union_Some_l, lookup_gset_to_gmap_Some. }
  split; [done|]. intros Hin. destruct (current_holds _ _ Hclean) as (_ & _ & Ht).
  { unfold clean. by destruct (chunks_in _ _). }
  destruct (Ht _ Hin); congruence.
Qed.

(** ** Cleaning ends *)

Definition used (t : gmap nat usage) : gset nat := dom (filter (λ e, e.2 ≠ Dead) t).
(** The segments that are open or sealed. *)
Definition in_use c : nat := base.size (used (table (mem c))).

Definition is_destage c c' : Prop := ∃ g xs, c' = place g xs c.

Lemma elem_of_used t g : g ∈ used t ↔ ∃ u, t !! g = Some u ∧ u ≠ Dead.
Proof. unfold used. rewrite elem_of_dom. unfold is_Some. by setoid_rewrite map_filter_lookup_Some. Qed.

Lemma used_bury vs t : used (gset_to_gmap Dead vs ∪ t) ≡ used t ∖ vs.
Proof. intros g. rewrite elem_of_difference, !elem_of_used. setoid_rewrite lookup_union_Some_raw.
  setoid_rewrite lookup_gset_to_gmap_Some. setoid_rewrite lookup_gset_to_gmap_None. naive_solver. Qed.

Lemma used_insert g u t : u ≠ Dead → used (<[g := u]> t) ≡ {[g]} ∪ used t.
Proof. intros Hu h. rewrite elem_of_union, elem_of_singleton, !elem_of_used.
  setoid_rewrite lookup_insert_Some. destruct (decide (h = g)); naive_solver. Qed.

Lemma in_use_place c g xs : in_use (place g xs c) ≤ S (in_use c).
Proof. unfold in_use. simpl. rewrite used_insert, size_union_alt, size_singleton by done.
  apply le_n_S, subseteq_size. set_solver. Qed.

(** Every Clean leaves fewer segments in use. *)
Theorem clean_gains K c vs g : sound K → may_clean K c vs g → in_use (clean vs g c) < in_use c.
Proof.
  intros [_ Hrules] (Hne & Hvs & Hxs). assert (vs ⊆ used (table (mem c))) as Hsub.
  { intros v Hv. apply elem_of_used. exists Sealed. split; [by apply Hvs|done]. }
  pose proof (subseteq_size _ _ Hsub) as Hle.
  assert (base.size vs ≠ 0) as Hsize by (by intros ?%size_empty_inv%leibniz_equiv).
  unfold clean. destruct (chunks_in vs (middle (current (mem c)))) as [|x xs] eqn:E.
  - unfold in_use. simpl. rewrite used_bury, size_difference by done. lia.
  - destruct Hxs as [?|(Hg & _ & Hgain)]; [done|]. specialize (Hgain (Hrules _)).
    unfold in_use. simpl. rewrite used_bury, used_insert by done.
    rewrite size_difference by set_solver. rewrite size_union_alt, size_singleton.
    pose proof (subseteq_size (used (table (mem c)) ∖ {[g]}) (used (table (mem c))) ltac:(set_solver)). lia.
Qed.

(** Only Destage brings more of them into use. *)
Lemma only_destage_uses K c es c' :
  sound K → step K c es c' → at_phase c ≠ Off → at_phase c' ≠ Off → in_use c' ≤ in_use c ∨ is_destage c c'.
Proof.
  intros HK Hstep Hp Hp'. destruct Hstep; try (left; done); try done.
  - right. by eexists _, _.
  - left. unfold in_use. simpl. rewrite used_insert by done. apply subseteq_size.
    intros h Hh. apply elem_of_union in Hh as [Hh|Hh]; [|done]. apply elem_of_singleton in Hh as ->.
    apply elem_of_used. eauto.
  - left. apply Nat.lt_le_incl. apply (clean_gains K); [done|]. by split.
  - left. unfold in_use. simpl. apply subseteq_size. intros h Hh. apply elem_of_used in Hh as (u & Hu & ?).
    apply lookup_delete_Some in Hu as [_ Hu]. apply elem_of_used. eauto.
Qed.

(** A run without a power cut, in which Clean took place [n] times and Destage [d] times; anything
else may go on between them. *)
Inductive upkeep K : nat → nat → state V → state V → Prop :=
  | upkeep_nil c : upkeep K 0 0 c c
  | upkeep_clean n d c vs g c2 :
      at_phase c ≠ Off → may_clean K c vs g → upkeep K n d (clean vs g c) c2 → upkeep K (S n) d c c2
  | upkeep_destage n d c c1 c2 : is_destage c c1 → step K c [] c1 → upkeep K n d c1 c2 → upkeep K n (S d) c c2
  | upkeep_other n d c es c1 c2 :
      step K c es c1 → ¬ is_destage c c1 → at_phase c ≠ Off → at_phase c1 ≠ Off →
      upkeep K n d c1 c2 → upkeep K n d c c2.

(** So cleaning ends, unless destage keeps filling segments: each Clean is paid for. *)
Theorem cleaning_ends K n d c c' : sound K → upkeep K n d c c' → n ≤ in_use c + d.
Proof.
  intros HK Hrun. induction Hrun as [c|n d c vs g c2 Hp Hmay _ IH|n d c c1 c2 (g & xs & ->) Hstep _ IH
    |n d c es c1 c2 Hstep Hno Hp Hp1 _ IH].
  - lia.
  - pose proof (clean_gains _ _ _ _ HK Hmay). lia.
  - pose proof (in_use_place c g xs). lia.
  - destruct (only_destage_uses _ _ _ _ HK Hstep Hp Hp1); [lia|done].
Qed.

End Cleaning.
