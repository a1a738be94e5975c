(** What it is to implement the contract of recorded traces ([RecordedTrace.v]).

A recorded implementation is a transition system, as an [implementation] of [VirtualDisk.v] is. Its steps show
entries of a recorded trace: the contract's events, and operations on devices. It implements the contract, for
a number of failures that it tolerates, if the contract admits every trace that it shows.

An [implementation] is such a system without devices ([as_recorded]). *)
From LogDisk Require Import VirtualDisk RecordedTrace.

Record recorded_implementation (V : Type) := RecordedImplementation {
  recorded_inside : Type;
  recorded_fresh : nat → recorded_inside → Prop;            (** what [Create blocks] may build *)
  recorded_moves : recorded_inside → list (entry V) → recorded_inside → Prop;
}.
Global Arguments RecordedImplementation {_} _ _ _. Global Arguments recorded_inside {_} _.
Global Arguments recorded_fresh {_} _ _ _. Global Arguments recorded_moves {_} _ _ _ _.

Inductive recorded_shows {V} (M : recorded_implementation V) (c : recorded_inside M) :
    list (entry V) → recorded_inside M → Prop :=
  | recorded_shows_nil : recorded_shows M c [] c
  | recorded_shows_step es c' tr c'' :
      recorded_moves M c es c' → recorded_shows M c' tr c'' → recorded_shows M c (es ++ tr) c''.

Lemma recorded_shows_app {V} (M : recorded_implementation V) c tr c' tr' c'' :
  recorded_shows M c tr c' → recorded_shows M c' tr' c'' → recorded_shows M c (tr ++ tr') c''.
Proof.
  intros H1. revert tr' c''. induction H1 as [|c es c' tr c'' Hm _ IH]; intros tr' y Hy; [done|].
  rewrite <-(assoc_L (++)). econstructor; [exact Hm|]. by apply IH.
Qed.

Lemma recorded_shows_one {V} (M : recorded_implementation V) c es c' :
  recorded_moves M c es c' → recorded_shows M c es c'.
Proof. intros Hm. rewrite <-(app_nil_r es). econstructor; [exact Hm|constructor]. Qed.

Definition implements_recorded {V} `{Value V} (M : recorded_implementation V) (p : profile)
    (tolerates : nat) : Prop :=
  ∀ blocks c tr c', recorded_fresh M blocks c → recorded_shows M c tr c' →
    admits_recorded p tolerates (Event (Create blocks) :: tr).

(** ** Without devices *)

Definition as_recorded {V} (M : implementation V) : recorded_implementation V :=
  RecordedImplementation (inside M) (fresh M) (λ c es c', ∃ tr, es = Event <$> tr ∧ moves M c tr c').
Coercion as_recorded : implementation >-> recorded_implementation.

Lemma shows_as_recorded {V} (M : implementation V) c tr c' :
  shows M c tr c' → recorded_shows M c (Event <$> tr) c'.
Proof.
  induction 1 as [c|c es c1 tr c2 Hm _ IH]; [constructor|]. rewrite fmap_app.
  apply (recorded_shows_step M c _ c1); [by exists es|done].
Qed.

Lemma as_recorded_shows {V} (M : implementation V) c es c' :
  recorded_shows M c es c' → ∃ tr, es = Event <$> tr ∧ shows M c tr c'.
Proof.
  induction 1 as [c|c es c1 tr c2 (es1&->&Hm) _ (tr1&->&Hs)]; [exists []; split; [done|constructor]|].
  exists (es1 ++ tr1). rewrite fmap_app. split; [done|by econstructor].
Qed.

(** Whatever implements the contract does so for any number of failures: none of its devices fails. *)
Lemma implements_as_recorded {V} `{Value V} (M : implementation V) p tolerates :
  implements M p → implements_recorded M p tolerates.
Proof.
  intros HM blocks c es c' Hc (tr&->&Hs)%as_recorded_shows.
  apply (admits_recorded_events p tolerates (Create blocks :: tr)). by eapply HM.
Qed.
