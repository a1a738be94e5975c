(** Write-back on a leg: the machine of [LegDiskMachine.v] with the programs of [WriteBack.v].

One thing is added. While too few members answer, a disk on a leg forgets its memory, without a power cut; but
the delayed writes were answered, and must not go. So what was delayed when nothing was under way last is kept
([kept_in]), and is delayed again when the disk opens with the power still on ([put_back]). A drain that was
under way may have happened or not: writing the same again does no harm. Everything else that changes
something is performed while nothing is delayed.

Operations on devices need no drain: they say nothing of what is in memory, and leave what the members hold
together. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk RecordedTrace RecordedImplementation Medium Codec ProvedDisk.
From LogDisk Require Import SplitFlush DiskMachine Devices Leg LegDiskMachine WriteBack.

Section Machine.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type} (D : programs Y U).
Context (shape_of : Y → geometry) (room_of : Y → nat) (spares_places : U → bool) (size count : nat).
Local Notation delaying := (write_back D shape_of room_of spares_places).
Local Notation control := (control C (Y * delay)).

(** The last component: what was delayed when nothing was under way last. *)
Definition keeping_machine : Type := LegDiskMachine.machine C (Y * delay) * delay.

Definition kept_in (c : control) (k : delay) : delay :=
  match c with Idle x _ _ => x.2 | Off => no_delay | _ => k end.

(** The disk opens with the power still on. *)
Definition put_back (k : delay) (c c' : control) : control :=
  match c, c' with
  | Recovery true _, Idle (y, z) ms cl => Idle (y, delayed_again k z) ms cl
  | _, _ => c'
  end.

Inductive keeping_move : keeping_machine → list (entry block) → keeping_machine → Prop :=
  | Keeping c x h k es c' x' h' :
      LegDiskMachine.move delaying size count (c, x, h) es (c', x', h') →
      keeping_move (c, x, h, k) es (put_back k c c', x', h', kept_in (put_back k c c') k).

Definition keeping_formatted (n : nat) (s : keeping_machine) : Prop :=
  LegDiskMachine.formatted delaying size count n s.1 ∧ s.2 = kept_in s.1.1.1 s.2.

Definition write_back_leg : recorded_implementation block :=
  RecordedImplementation keeping_machine keeping_formatted keeping_move.
End Machine.
Global Arguments keeping_machine {_} _ _.

(** ** Programs that do the same I/Os, and end with another result *)

Section Mapped.
Context {B C : Type} `{!cutting B C}.

Fixpoint mapped {A A'} (f : A → A') (p : array_program C A) (p' : array_program C A') : Prop :=
  match p, p' with
  | Finish r, Finish r' => r' = f r
  | Stop, Stop | PastEnd, PastEnd => True
  | ReadFrom i a k, ReadFrom i' a' k' => i' = i ∧ a' = a ∧ ∀ r, mapped f (k r) (k' r)
  | WriteTo i a b k, WriteTo i' a' b' k' => i' = i ∧ a' = a ∧ b' = b ∧ ∀ ok, mapped f (k ok) (k' ok)
  | FlushOf i k, FlushOf i' k' => i' = i ∧ ∀ ok, mapped f (k ok) (k' ok)
  | SetMembers ms c k, SetMembers ms' c' k' => ms' = ms ∧ c' = c ∧ mapped f k k'
  | AssumeThat φ k, AssumeThat φ' k' => φ' = φ ∧ mapped f k k'
  | _, _ => False
  end.

Context {A A' : Type} (f : A → A').

Lemma mapped_without ms c k k' :
  (∀ ms, mapped f (k ms) (k' ms)) →
  mapped f (without ms c (k ms)) (without ms c (k' ms)).
Proof. intros Hk. unfold without. destruct (decide _); [|done]. by split_and!. Qed.

Lemma mapped_gather n kept todo got bad c a lost lost' k k' :
  (∀ ms, mapped f (lost ms) (lost' ms)) → (∀ ms bad b, mapped f (k ms bad b) (k' ms bad b)) →
  mapped f (gather n kept todo got bad c a lost k) (gather n kept todo got bad c a lost' k').
Proof.
  intros Hlost Hk. revert n kept got bad. induction todo as [|i todo IH]; intros [|n] kept got bad; simpl;
    try done; [by destruct (decide _)|]. split_and!; [done..|]. intros [[p|]|]; [apply IH..|].
  unfold without. destruct (decide _); [|done]. split_and!; [done..|]. apply IH.
Qed.

Lemma mapped_repair bad kept todo c a b k k' :
  (∀ ms, mapped f (k ms) (k' ms)) → mapped f (repair bad kept todo c a b k) (repair bad kept todo c a b k').
Proof.
  intros Hk. revert kept. induction todo as [|i todo IH]; intros kept; simpl; [done|].
  destruct (decide _); [|done]. split_and!; [done..|]. intros []; [done|]. unfold without.
  destruct (decide _); [|done]. by split_and!.
Qed.

Lemma mapped_write_to kept todo a b k k' :
  (∀ ms, mapped f (k ms) (k' ms)) → mapped f (write_to kept todo a b k) (write_to kept todo a b k').
Proof.
  intros Hk. revert kept. induction todo as [|i todo IH]; intros kept; simpl; [done|].
  split_and!; [done..|]. intros []; [done|]. unfold without. destruct (decide _); [|done]. by split_and!.
Qed.

Lemma mapped_flush_of kept todo c k k' :
  (∀ ms, mapped f (k ms) (k' ms)) → mapped f (flush_of kept todo c k) (flush_of kept todo c k').
Proof.
  intros Hk. revert kept. induction todo as [|i todo IH]; intros kept; simpl; [done|].
  split_and!; [done..|]. intros []; [done|]. unfold without. destruct (decide _); [|done]. by split_and!.
Qed.

Lemma mapped_equalize n ms k k' :
  (∀ ms, mapped f (k ms) (k' ms)) → mapped f (equalize n ms k) (equalize n ms k').
Proof.
  intros Hk. revert ms. induction n as [|n IH]; intros ms; simpl; [done|].
  apply mapped_gather; [done|]. intros. by apply mapped_write_to.
Qed.

Lemma mapped_open size ms c k k' :
  (∀ ms c, mapped f (k ms c) (k' ms c)) → mapped f (open_leg size ms c k) (open_leg size ms c k').
Proof.
  intros Hk. unfold open_leg. destruct c; [done|]. apply mapped_equalize. intros. by apply mapped_flush_of.
Qed.
End Mapped.

(** A program whose result is changed. *)
Lemma mapped_on_leg {B C} `{!cutting B C} {A A'} (g : A → A') size ms c (p : program B A) :
  mapped (λ r, (r.1, g r.2)) (on_leg size ms c p) (on_leg size ms c (then_ p (λ r, Done (g r)))).
Proof.
  revert ms c. induction p as [r|a k IH|a b k IH|k IH|φ k IH]; intros ms c; simpl.
  - done.
  - destruct (decide _); [|done]. apply mapped_gather; [done|]. intros. by apply mapped_repair.
  - destruct (decide _); [|done]. unfold unclean. destruct c; [split_and!; [done..|]|];
      by apply mapped_write_to.
  - by apply mapped_flush_of.
  - by split.
Qed.

Section Io.
Context {C A A' : Type} {shreds : torn_pieces C} (f : A → A').

(** An I/O of the one is an I/O of the other. *)
Lemma mapped_io (p : array_program C A) (p' q' : array_program C A') x x' :
  mapped f p p' → array_io p' x q' x' → ∃ q, array_io p x q x' ∧ mapped f q q'.
Proof.
  intros Hp Hio. destruct Hio as [i a k x|i a k x Hup|i a b k x Hup|i a b k x x' Hup Hx|i k x Hup|i k x Hup|
    ms c k x|k x]; destruct p; simpl in Hp; try done.
  - destruct Hp as (->&->&Hp). eexists. split; [constructor|apply Hp].
  - destruct Hp as (->&->&Hp). eexists. split; [by constructor|apply Hp].
  - destruct Hp as (->&->&->&Hp). eexists. split; [by constructor|apply Hp].
  - destruct Hp as (->&->&->&Hp). eexists. split; [by constructor|apply Hp].
  - destruct Hp as (->&Hp). eexists. split; [by constructor|apply Hp].
  - destruct Hp as (->&Hp). eexists. split; [by constructor|apply Hp].
  - destruct Hp as (->&->&Hp). eexists. split; [by constructor|apply Hp].
  - destruct Hp as (<-&Hp). eexists. split; [by constructor|apply Hp].
Qed.

Lemma mapped_finish (p : array_program C A) r' : mapped f p (Finish r') → ∃ r, p = Finish r ∧ r' = f r.
Proof. destruct p as [r| | | | | | |]; simpl; try done. intros ->. by exists r. Qed.
Lemma mapped_stop (p : array_program C A) : mapped f p Stop → p = Stop.
Proof. by destruct p. Qed.
Lemma mapped_complete (p : array_program C A) (p' : array_program C A') x : mapped f p p' →
  complete p' x = (f <$> (complete p x).1, (complete p x).2).
Proof.
  revert p' x. induction p as [r| | |i a k IH|i a b k IH|i k IH|ms c k IH|φ k IH]; intros [] x Hp;
    simpl in Hp; try done; simpl.
  - by subst.
  - destruct Hp as (->&->&Hp). by apply IH.
  - destruct Hp as (->&->&->&Hp). destruct (up _); by apply IH.
  - destruct Hp as (->&Hp). destruct (up _); by apply IH.
  - destruct Hp as (->&->&Hp). by apply IH.
  - destruct Hp as (->&Hp). destruct φ; [by apply IH|done].
Qed.
End Io.
