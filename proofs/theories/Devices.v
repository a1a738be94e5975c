(** Several devices of blocks, each of which may fail, and programs over them.

A device also may answer that it cannot read a block: each block stands there with a digest, and what has
rotted does not have the right one. It may answer so at any time, and of any block. Nothing else is said of
it: what the block held is not read.

A record says which devices are members: they have every block that was flushed. It stands on a witness: a
place of its own that does not fail, is read when the power returns, and is written whole. *)
From stdpp Require Import list.
From LogDisk Require Import Medium.

(** What tearing may leave, on a device, at an address. *)
Class torn_pieces {B : Type} := torn_piece : nat → nat → B → Prop.
Global Arguments torn_pieces : clear implicits.

Section Devices.
Context {B : Type} {shreds : torn_pieces B}.

(** A device that is not [up] answers nothing. What it held is still there when it comes back. *)
Record device := Device { up : bool; store : medium B }.
Record array := Array { device_at : nat → device; members : list nat; clean : bool }.

Definition put_device (x : array) (i : nat) (d : device) : array :=
  Array (λ j, if decide (j = i) then d else device_at x j) (members x) (clean x).

(** What is left on device [i] of what it had not flushed: any part of it, and of a block what tearing
leaves. *)
Definition may_keep (i : nat) (m : medium B) (f : contents B) : Prop :=
  ∀ a, may_hold m a (f a) ∨ torn_piece i a (f a) ∧ rewritten m a.
(** A device fails. *)
Definition down (i : nat) (d d' : device) : Prop :=
  ∃ f, may_keep i (store d) f ∧ d' = Device false (Medium f []).
(** Any of the devices fail. *)
Definition fails (x x' : array) : Prop :=
  members x' = members x ∧ clean x' = clean x ∧
  ∀ i, device_at x' i = device_at x i ∨ down i (device_at x i) (device_at x' i).
(** The power fails: every device loses any part of what it had not flushed, and blocks tear. *)
Definition loses_power (x x' : array) : Prop :=
  members x' = members x ∧ clean x' = clean x ∧
  ∀ i, ∃ f, may_keep i (store (device_at x i)) f ∧ device_at x' i = Device (up (device_at x i)) (Medium f []).

(** ** Programs over several devices *)

Inductive array_program {A : Type} :=
  | Finish (r : A)
  | Stop                                        (* no member answers *)
  | PastEnd                                     (* a block that the devices do not have *)
  | ReadFrom (i a : nat) (k : option (option B) → array_program)   (* [Some None]: unreadable *)
  | WriteTo (i a : nat) (b : B) (k : bool → array_program)
  | FlushOf (i : nat) (k : bool → array_program)
  | SetMembers (ms : list nat) (c : bool) (k : array_program)
  | AssumeThat (φ : bool) (k : array_program).  (* as [Assume] in [Medium.v] *)
Arguments array_program : clear implicits.

Definition answer_of_read (x : array) (i a : nat) : option (option B) :=
  if up (device_at x i) then Some (Some (read_block (store (device_at x i)) a)) else None.
Definition written (x : array) (i a : nat) (b : B) : array :=
  put_device x i (Device true (write_block (store (device_at x i)) a b)).
Definition flushed (x : array) (i : nat) : array :=
  put_device x i (Device true (flush_blocks (store (device_at x i)))).
(** A write that was not answered may have happened, or tears. *)
Definition maybe_written (x : array) (i a : nat) (b : B) (x' : array) : Prop :=
  x' = x ∨ ∃ f, may_keep i (Medium (stable (store (device_at x i))) [(a, b)]) f ∧
    x' = put_device x i (Device false (Medium f [])).

(** One step of such a program: an I/O, or an assumption. *)
Inductive array_io {A} : array_program A → array → array_program A → array → Prop :=
  | read_io i a k x : array_io (ReadFrom i a k) x (k (answer_of_read x i a)) x
  | unread_io i a k x : up (device_at x i) = true → array_io (ReadFrom i a k) x (k (Some None)) x
  | write_io i a b k x : up (device_at x i) = true → array_io (WriteTo i a b k) x (k true) (written x i a b)
  | no_write_io i a b k x x' : up (device_at x i) = false → maybe_written x i a b x' →
      array_io (WriteTo i a b k) x (k false) x'
  | flush_io i k x : up (device_at x i) = true → array_io (FlushOf i k) x (k true) (flushed x i)
  | no_flush_io i k x : up (device_at x i) = false → array_io (FlushOf i k) x (k false) x
  | record_io ms c k x : array_io (SetMembers ms c k) x k (Array (device_at x) ms c)
  | assume_io k x : array_io (AssumeThat true k) x k x.

(** The whole program, while nothing fails. *)
Fixpoint complete {A} (p : array_program A) (x : array) : option A * array :=
  match p with
  | Finish r => (Some r, x)
  | Stop | PastEnd => (None, x)
  | ReadFrom i a k => complete (k (answer_of_read x i a)) x
  | WriteTo i a b k => if up (device_at x i) then complete (k true) (written x i a b) else complete (k false)
    x
  | FlushOf i k => if up (device_at x i) then complete (k true) (flushed x i) else complete (k false) x
  | SetMembers ms c k => complete k (Array (device_at x) ms c)
  | AssumeThat φ k => if φ then complete k x else (None, x)
  end.

End Devices.

Arguments device : clear implicits. Arguments array : clear implicits.
Arguments array_program : clear implicits.

Section Safe.
Context {B : Type} {shreds : torn_pieces B}.
Implicit Types (x : array B) (m : medium B) (f : contents B).

(** ** Whenever devices fail, [P] is true of the array; [Q] in the end; [S] where no member answers *)

Fixpoint array_safe {A} (P : array B → Prop) (Q : A → array B → Prop) (S : array B → Prop)
    (p : array_program B A) (x : array B) : Prop :=
  ∀ x1, fails x x1 → P x1 ∧
  match p with
  | Finish r => Q r x1
  | Stop => S x1
  | PastEnd => True
  | ReadFrom i a k => array_safe P Q S (k (answer_of_read x1 i a)) x1 ∧
      (up (device_at x1 i) = true → array_safe P Q S (k (Some None)) x1)
  | WriteTo i a b k =>
      if up (device_at x1 i) then array_safe P Q S (k true) (written x1 i a b)
      else ∀ x2, maybe_written x1 i a b x2 → array_safe P Q S (k false) x2
  | FlushOf i k =>
      if up (device_at x1 i) then array_safe P Q S (k true) (flushed x1 i) else array_safe P Q S (k false) x1
  | SetMembers ms c k => array_safe P Q S k (Array (device_at x1) ms c)
  | AssumeThat φ k => φ = true → array_safe P Q S k x1
  end.

Lemma kept_stable i (f f' : contents B) : may_keep i (Medium f []) f' → ∀ a, f' a = f a.
Proof. intros Hf a. by destruct (Hf a) as [[|?%elem_of_nil]|[_ ?%not_rewritten]]. Qed.

Lemma kept_after i (f' : contents B) m f : may_keep i m f → may_keep i (Medium f []) f' → may_keep i m f'.
Proof. intros Hf Hf' a. rewrite (kept_stable i f f') by done. apply Hf. Qed.

Lemma survives_kept i m (f : contents B) : survives m f → may_keep i m f.
Proof. intros Hf a. left. apply Hf. Qed.

(** What fails in the middle of a write may have all of it. *)
Lemma maybe_all_written x i a b : maybe_written x i a b (put_device x i
  (Device false (Medium (λ a', if decide (a' = a) then b else stable (store (device_at x i)) a') []))).
Proof.
  right. eexists. split; [|done]. apply survives_kept. intros a'. simpl.
  destruct (decide (a' = a)) as [->|]; [right; by left|by left].
Qed.

Lemma fails_refl x : fails x x.
Proof. split_and!; [done|done|by left]. Qed.

Lemma fails_trans x1 x2 x3 : fails x1 x2 → fails x2 x3 → fails x1 x3.
Proof.
  intros (Hm&Hc&Hd) (Hm'&Hc'&Hd'). split_and!; [congruence..|]. intros i.
  destruct (Hd' i) as [->|(f'&Hf'&->)]; [apply Hd|]. right. exists f'. split; [|done].
  destruct (Hd i) as [<-|(f&Hf&Heq)]; [done|]. rewrite Heq in Hf'. by eapply kept_after.
Qed.

Section Programs.
Context {A : Type} (P : array B → Prop) (Q : A → array B → Prop) (S : array B → Prop).

Lemma array_safe_fails (p : array_program B A) x x1 :
  array_safe P Q S p x → fails x x1 → array_safe P Q S p x1.
Proof. destruct p; simpl; intros Hp H1 x2 H2; apply Hp; by eapply fails_trans. Qed.

Lemma array_safe_now (p : array_program B A) x : array_safe P Q S p x → P x.
Proof. intros Hp. destruct p; apply (Hp x (fails_refl x)). Qed.

Lemma array_safe_io (p : array_program B A) x p' x' :
  array_safe P Q S p x → array_io p x p' x' → array_safe P Q S p' x'.
Proof.
  intros Hp Hio. destruct Hio as
    [i a k x|i a k x Hup|i a b k x Hup|i a b k x x' Hup Hx'|i k x Hup|i k x Hup|ms c k x|k x];
    destruct (Hp x (fails_refl x)) as [_ Hk]; simpl in Hk; try rewrite Hup in Hk;
      first [exact Hk|by apply Hk].
Qed.

Lemma array_safe_complete (p : array_program B A) x r :
  array_safe P Q S p x → (complete p x).1 = Some r → Q r (complete p x).2.
Proof.
  revert x. induction p as [r'| | |i a k IH|i a b k IH|i k IH|ms c k IH|φ k IH]; simpl; intros x Hp Hr;
    destruct (Hp x (fails_refl x)) as [_ Hk]; try done.
  - by simplify_eq.
  - by apply IH; [apply Hk|].
  - destruct (up _); [by apply IH|]. apply IH; [|done]. apply Hk. by left.
  - destruct (up _); by apply IH.
  - by apply IH.
  - destruct φ; [|done]. by apply IH; [apply Hk|].
Qed.
End Programs.

Lemma array_safe_mono {A} (P P' : array B → Prop) (Q Q' : A → array B → Prop) (S S' : array B → Prop)
    (p : array_program B A) x :
  (∀ x, P x → P' x) → (∀ r x, Q r x → Q' r x) → (∀ x, S x → S' x) →
  array_safe P Q S p x → array_safe P' Q' S' p x.
Proof.
  intros HP HQ HS. revert x. induction p as [r'| | |i a k IH|i a b k IH|i k IH|ms c k IH|φ k IH]; simpl;
    intros x Hp x1 H1; destruct (Hp x1 H1) as [? Hk]; split; auto;
    first [by destruct Hk; auto|by destruct (up _); auto].
Qed.

(** [E] is what else is known of the devices; it does not depend on the record. *)
Definition lasting (E : array B → Prop) : Prop :=
  (∀ x x1, fails x x1 → E x → E x1) ∧ (∀ x ms c, E x → E (Array (device_at x) ms c)).

Lemma lasting_and (E E' : array B → Prop) : lasting E → lasting E' → lasting (λ x, E x ∧ E' x).
Proof. intros [? ?] [? ?]. split; intros; naive_solver. Qed.

Lemma distinct_middle (kept : list nat) i rest :
  NoDup (kept ++ i :: rest) → i ∉ kept ∧ i ∉ rest ∧ NoDup (kept ++ rest).
Proof.
  rewrite !NoDup_app, NoDup_cons. intros (Hk&Hd&Hi&Hr). split_and!; try done.
  - intros Hin. by apply (Hd i Hin), elem_of_list_here.
  - intros j Hj Hj'. apply (Hd j Hj). by right.
Qed.

End Safe.
