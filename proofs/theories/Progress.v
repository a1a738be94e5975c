(** Progress: a machine that a scheduler drives comes to a good end in a bounded number of turns, whatever
happens between the turns. *)
From stdpp Require Import list.

Section Progress.
Context {M E : Type}.
Context (weather : M → M → Prop).           (* what may happen to the machine between two turns *)
Context (turn : M → list E → M → Prop).     (* what its scheduler does next, and what that shows *)
Context (good : list E → M → Prop).         (* the end: what the last turn shows, and where it leads *)

(** At most [n] turns: each is possible, shows nothing before the last one, and the last one is good. *)
Fixpoint ends_well (n : nat) (z : M) : Prop :=
  match n with
  | 0 => False
  | S n => ∀ z1, weather z z1 →
      (∃ es z2, turn z1 es z2) ∧ ∀ es z2, turn z1 es z2 → good es z2 ∨ es = [] ∧ ends_well n z2
  end.

Lemma ends_well_more n n' z : n ≤ n' → ends_well n z → ends_well n' z.
Proof.
  revert n' z. induction n as [|n IH]; intros n' z Hn Hz; [done|]. destruct n' as [|n']; [lia|].
  intros z1 H1. destruct (Hz z1 H1) as [Hturn Hall]. split; [done|].
  intros es z2 [?|[-> Hrest]]%Hall; [by left|right]. split; [done|]. apply IH; [lia|done].
Qed.

(** It promises more than safety does: a machine that cannot go on has no progress, and neither has one on
which no turn is good, such as one that refuses everything. *)
Lemma no_progress_blocked n z : weather z z → (∀ es z', ¬ turn z es z') → ¬ ends_well n z.
Proof.
  intros Hz Hno. destruct n as [|n]; [by intros []|]. intros Hends.
  destruct (Hends z Hz) as [(es&z'&Hturn) _]. by eapply Hno.
Qed.

Lemma no_progress_refusing (seen : M → Prop) n z :
  (∀ z, seen z → weather z z ∧ ∀ es z', turn z es z' → ¬ good es z' ∧ seen z') → seen z → ¬ ends_well n z.
Proof.
  intros Hseen. revert z. induction n as [|n IH]; intros z Hz Hends; [done|].
  destruct (Hseen z Hz) as [Hcalm Hno]. destruct (Hends z Hcalm) as [(es&z'&Hturn) Hall].
  destruct (Hno es z' Hturn) as [Hbad Hz']. destruct (Hall es z' Hturn) as [|[_ Hrest]]; [done|].
  by apply (IH z').
Qed.

(** A way on which nothing good happens, or that ends where the machine cannot go on, is enough. *)
Lemma no_progress_on_a_way (seen : M → Prop) n z :
  (∀ z, seen z → ∃ z1, weather z z1 ∧
    ((∀ es z', ¬ turn z1 es z') ∨ ∃ es z', turn z1 es z' ∧ ¬ good es z' ∧ seen z')) →
  seen z → ¬ ends_well n z.
Proof.
  intros Hseen. revert z. induction n as [|n IH]; intros z Hz Hends; [done|].
  destruct (Hseen z Hz) as (z1&H1&Hnext). destruct (Hends z1 H1) as [(es&z'&Hturn) Hall].
  destruct Hnext as [Hno|(es'&z2&Hturn'&Hbad&Hz2)]; [by eapply Hno|].
  destruct (Hall es' z2 Hturn') as [|[_ Hrest]]; [done|]. by apply (IH z2).
Qed.
End Progress.

(** What no weather and no turn changes is true in the end too. *)
Lemma ends_well_keeping {M E} (weather : M → M → Prop) (turn : M → list E → M → Prop)
    (good better : list E → M → Prop) (kept : M → Prop) n z :
  (∀ z z1, kept z → weather z z1 → kept z1) → (∀ z es z1, kept z → turn z es z1 → kept z1) →
  (∀ es z, good es z → kept z → better es z) →
  kept z → ends_well weather turn good n z → ends_well weather turn better n z.
Proof.
  intros Hweather Hturn Hend. revert z. induction n as [|n IH]; intros z Hz Hends; [done|].
  intros z1 H1. destruct (Hends z1 H1) as [Hsome Hall]. split; [done|]. intros es z2 H2.
  assert (kept z2) as Hz2 by eauto.
  destruct (Hall es z2 H2) as [Hg|[-> Hrest]]; [left; by apply Hend|right; split; [done|by apply IH]].
Qed.
