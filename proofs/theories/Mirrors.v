(** Mirrors: one device of blocks made of several that hold the same, of which all but one may fail.

A record says which devices are members: they have every block that was flushed. A block is read from the
first member that answers, and written and flushed on all of them. A member that does not answer is dropped
from the record before anything else happens, but never the last one: then the disk stops. Between a power cut
and a flush, members may differ in what was not flushed; so whoever opens the mirrors first makes them equal,
unless the record says that they were left [clean].

The record stands on a witness: a place of its own that does not fail, is read when the power returns, and is
written whole. *)
From stdpp Require Import list.
From LogDisk Require Import Medium.

Section Mirrors.
Context {B : Type}.

(** ** Devices that fail *)

(** A device that is not [up] answers nothing. What it held is still there when it comes back. *)
Record device := Device { up : bool; store : medium B }.
Record array := Array { device_at : nat → device; members : list nat; clean : bool }.

Definition put_device (x : array) (i : nat) (d : device) : array :=
  Array (λ j, if decide (j = i) then d else device_at x j) (members x) (clean x).

(** A device fails: of what it had not flushed any part is lost. *)
Definition down (d d' : device) : Prop := ∃ f, survives (store d) f ∧ d' = Device false (Medium f []).
(** Any of the devices fail. *)
Definition fails (x x' : array) : Prop :=
  members x' = members x ∧ clean x' = clean x ∧
  ∀ i, device_at x' i = device_at x i ∨ down (device_at x i) (device_at x' i).
(** The power fails: every device loses any part of what it had not flushed. *)
Definition loses_power (x x' : array) : Prop :=
  members x' = members x ∧ clean x' = clean x ∧
  ∀ i, ∃ f, survives (store (device_at x i)) f ∧ device_at x' i = Device (up (device_at x i)) (Medium f []).

(** ** Programs over several devices *)

Inductive array_program {A : Type} :=
  | Finish (r : A)
  | Stop                                        (* no member answers *)
  | PastEnd                                     (* a block that the devices do not have *)
  | ReadFrom (i a : nat) (k : option B → array_program)
  | WriteTo (i a : nat) (b : B) (k : bool → array_program)
  | FlushOf (i : nat) (k : bool → array_program)
  | SetMembers (ms : list nat) (c : bool) (k : array_program).
Arguments array_program : clear implicits.

Definition answer_of_read (x : array) (i a : nat) : option B :=
  if up (device_at x i) then Some (read_block (store (device_at x i)) a) else None.
Definition written (x : array) (i a : nat) (b : B) : array :=
  put_device x i (Device true (write_block (store (device_at x i)) a b)).
Definition flushed (x : array) (i : nat) : array :=
  put_device x i (Device true (flush_blocks (store (device_at x i)))).
(** A write that was not answered may have happened. *)
Definition maybe_written (x : array) (i a : nat) (b : B) (x' : array) : Prop :=
  x' = x ∨ x' = put_device x i
    (Device false (Medium (λ a', if decide (a' = a) then b else stable (store (device_at x i)) a') [])).

(** One I/O of such a program. *)
Inductive array_io {A} : array_program A → array → array_program A → array → Prop :=
  | read_io i a k x : array_io (ReadFrom i a k) x (k (answer_of_read x i a)) x
  | write_io i a b k x : up (device_at x i) = true → array_io (WriteTo i a b k) x (k true) (written x i a b)
  | no_write_io i a b k x x' : up (device_at x i) = false → maybe_written x i a b x' →
      array_io (WriteTo i a b k) x (k false) x'
  | flush_io i k x : up (device_at x i) = true → array_io (FlushOf i k) x (k true) (flushed x i)
  | no_flush_io i k x : up (device_at x i) = false → array_io (FlushOf i k) x (k false) x
  | record_io ms c k x : array_io (SetMembers ms c k) x k (Array (device_at x) ms c).

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
  end.

(** ** The mirrors as one device *)

(** [k] goes on with the members that are left. *)
Definition without {A} (ms : list nat) (c : bool) (k : array_program A) : array_program A :=
  match ms with [] => Stop | _ => SetMembers ms c k end.

Fixpoint read_from {A} (ms : list nat) (c : bool) (a : nat) (k : list nat → B → array_program A) :
    array_program A :=
  match ms with
  | [] => Stop
  | i :: rest =>
      ReadFrom i a (λ r, match r with Some b => k ms b | None => without rest c (read_from rest c a k) end)
  end.

Fixpoint write_to {A} (kept todo : list nat) (a : nat) (b : B) (k : list nat → array_program A) :
    array_program A :=
  match todo with
  | [] => k kept
  | i :: rest =>
      WriteTo i a b (λ ok, if ok then write_to (kept ++ [i]) rest a b k
        else without (kept ++ rest) false (write_to kept rest a b k))
  end.

Fixpoint flush_of {A} (kept todo : list nat) (c : bool) (k : list nat → array_program A) : array_program A :=
  match todo with
  | [] => k kept
  | i :: rest =>
      FlushOf i (λ ok, if ok then flush_of (kept ++ [i]) rest c k
        else without (kept ++ rest) c (flush_of kept rest c k))
  end.

(** Before the first write the record says that members may differ. *)
Definition unclean {A} (ms : list nat) (c : bool) (k : array_program A) : array_program A :=
  if c then SetMembers ms false k else k.

Variable size : nat.    (* blocks of each device *)

(** A program for one device, on mirrors with the members [ms]. *)
Fixpoint mirrored {A} (ms : list nat) (c : bool) (p : program B A) : array_program (list nat * bool * A) :=
  match p with
  | Done r => Finish (ms, c, r)
  | ReadBlock a k =>
      if decide (a < size) then read_from ms c a (λ ms b, mirrored ms c (k b)) else PastEnd
  | WriteBlock a b k =>
      if decide (a < size) then unclean ms c (write_to [] ms a b (λ ms, mirrored ms false k)) else PastEnd
  | FlushBlocks k => flush_of [] ms c (λ ms, mirrored ms c k)
  end.

(** The first member's blocks below [n] go to the others. *)
Fixpoint equalize {A} (n : nat) (ms : list nat) (k : list nat → array_program A) : array_program A :=
  match n with
  | 0 => k ms
  | S n => read_from ms false n (λ ms b, write_to (take 1 ms) (drop 1 ms) n b (λ ms, equalize n ms k))
  end.

(** The power is back, and the record read. *)
Definition opened {A} (ms : list nat) (c : bool) (k : list nat → bool → array_program A) : array_program A :=
  if c then k ms true else equalize size ms (λ ms, flush_of [] ms false (λ ms, k ms false)).

(** Device [i] gets all blocks below [n]; [k] goes on with what is recorded, and whether it has them. *)
Fixpoint copy_to {A} (i n : nat) (ms : list nat) (c : bool) (k : list nat → bool → array_program A) :
    array_program A :=
  match n with
  | 0 => FlushOf i (λ ok, k ms ok)
  | S n => read_from ms c n (λ ms b, WriteTo i n b (λ ok, if ok then copy_to i n ms c k else k ms false))
  end.

(** Every device that is no member becomes one, if it answers. *)
Fixpoint resync {A} (todo : list nat) (ms : list nat) (c : bool) (k : list nat → array_program A) :
    array_program A :=
  match todo with
  | [] => k ms
  | i :: todo =>
      copy_to i size ms c (λ ms ok,
        if ok then SetMembers (ms ++ [i]) c (resync todo (ms ++ [i]) c k) else resync todo ms c k)
  end.

Definition settle (count : nat) (ms : list nat) (c : bool) : array_program (list nat * bool) :=
  resync (filter (λ i, i ∉ ms) (seq 0 count)) ms c (λ ms, Finish (ms, c)).

End Mirrors.

Arguments device : clear implicits. Arguments array : clear implicits.
Arguments array_program : clear implicits.
