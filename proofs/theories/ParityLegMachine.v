(** The machine that runs a leg with parity, and the device of blocks that it is to whoever uses it. *)
From stdpp Require Import list.
From LogDisk Require Import Medium Mirrors ParityLeg.

Section Machine.
Context {B C A : Type} `{cutting B C} {torn : tearing}.
Variables (size count : nat).    (* blocks of the leg, devices *)

(** ** What is shown *)

Inductive happening :=
  | Ran (p : program B A) (r : A)            (* a program ended with [r] *)
  | PowerFails (p : option (program B A))    (* in a program, if one was under way *)
  | IsLost (p : option (program B A))        (* fewer members answer than are needed: the same *)
  | Opened
  | Settled
  | Fails (i : nat)
  | ComesBack (i : nat).                     (* as it was, or another one in its place *)

(** ** The device of blocks *)

(** Devices that do not answer, and that came back and have not been copied to since. *)
Record standing := Standing { absent : list nat; stale : list nat }.
Definition nobody : standing := Standing [] [].
Definition standing_after (t : standing) (e : happening) : standing :=
  match e with
  | Fails i => Standing (i :: absent t) (stale t)
  | ComesBack i => Standing (filter (λ j, j ≠ i) (absent t)) (i :: stale t)
  | Settled => Standing (absent t) []
  | _ => t
  end.
(** More of the devices are absent or stale than the code can do without. *)
Definition too_many (t : standing) : Prop :=
  count < fewest + length (filter (λ i, i ∈ absent t ++ stale t) (seq 0 count)).

(** What the device may be after some I/Os of a program. *)
Fixpoint begun (p : program B A) (M M' : medium B) : Prop :=
  M' = M ∨
  match p with
  | Done _ => False
  | ReadBlock a k => begun (k (read_block M a)) M M'
  | WriteBlock a b k => begun k (write_block M a b) M'
  | FlushBlocks k => begun k (flush_blocks M) M'
  end.
Definition left_by (p : program B A) (M : medium B) (f : contents B) : Prop :=
  ∃ M', begun p M M' ∧ may_leave M' f.

(** It is on; or down, and then [R] says what may be found when it is opened. *)
Inductive block_device := On (M : medium B) | Down (R : contents B → Prop).
Definition interrupted (v : block_device) (o : option (program B A)) : block_device :=
  match v, o with
  | On M, Some p => Down (left_by p M)
  | On M, None => Down (may_leave M)
  | Down R, _ => Down R
  end.

Definition device_step (t : standing) (v : block_device) (e : happening) (v' : block_device) : Prop :=
  match e with
  | Ran p r => ∃ M, v = On M ∧ execute p M = (r, (execute p M).2) ∧ v' = On (execute p M).2
  | PowerFails o => v' = interrupted v o
  | IsLost o => too_many t ∧ v' = interrupted v o
  | Opened => ∃ R f, v = Down R ∧ R f ∧ v' = On (Medium f [])
  | Settled | Fails _ | ComesBack _ => v' = v
  end.
Inductive device_run : standing → block_device → list happening → block_device → Prop :=
  | device_nil t v : device_run t v [] v
  | device_cons t v e v' es v'' :
      device_step t v e v' → device_run (standing_after t e) v' es v'' → device_run t v (e :: es) v''.

(** ** The leg *)

Inductive control :=
  | Idle (ms : list nat) (c : bool)
  | Busy (p : program B A) (q : array_program C (list nat * bool * A))
  | Settling (q : array_program C (list nat * bool))
  | Closed    (* the power is off, or too few members answer *)
  | Opening (q : array_program C (list nat * bool)).

Definition machine : Type := control * array C.
Definition under_way (c : control) : option (program B A) :=
  match c with Busy p _ => Some p | _ => None end.

Definition device_fails (i : nat) (x x' : array C) : Prop :=
  ∃ d, down (device_at x i) d ∧ x' = put_device x i d.
Definition others (i : nat) (ms : list nat) : list nat := filter (λ j, j ≠ i) ms.

Inductive move : machine → list happening → machine → Prop :=
  | Call ms c p x : move (Idle ms c, x) [] (Busy p (on_leg size ms c p), x)
  | Settle ms c x : move (Idle ms c, x) [] (Settling (settle_leg size count ms c), x)
  | Open x :
      move (Closed, x) [] (Opening (open_leg size (members x) (clean x) (λ ms c, Finish (ms, c))), x)
  (* one I/O *)
  | BusyIo p q x q' x' : array_io q x q' x' → move (Busy p q, x) [] (Busy p q', x')
  | SettlingIo q x q' x' : array_io q x q' x' → move (Settling q, x) [] (Settling q', x')
  | OpeningIo q x q' x' : array_io q x q' x' → move (Opening q, x) [] (Opening q', x')
  (* the end *)
  | BusyEnds p ms c r x : move (Busy p (Finish (ms, c, r)), x) [Ran p r] (Idle ms c, x)
  | SettlingEnds ms c x : move (Settling (Finish (ms, c)), x) [Settled] (Idle ms c, x)
  | OpeningEnds ms c x : move (Opening (Finish (ms, c)), x) [Opened] (Idle ms c, x)
  (* too few members answer *)
  | BusyStops p x : move (Busy p Stop, x) [IsLost (Some p)] (Closed, x)
  | SettlingStops x : move (Settling Stop, x) [IsLost None] (Closed, x)
  | OpeningStops x : move (Opening Stop, x) [IsLost None] (Closed, x)
  (* the power, at any moment *)
  | PowerCut c x x' : loses_power x x' → move (c, x) [PowerFails (under_way c)] (Closed, x')
  (* devices *)
  | DeviceFails c i x x' : i < count → device_fails i x x' → move (c, x) [Fails i] (c, x')
  | Replaced ms c i f x :                (* with any content; the record goes first *)
      i < count → fewest ≤ length (others i ms) →
      move (Idle ms c, x) [ComesBack i]
        (Idle (others i ms) c, put_device (Array (device_at x) (others i ms) c) i (Device true (Medium f [])))
  | Returned i x :                       (* it may still be a member *)
      i < count →
      move (Closed, x) [ComesBack i] (Closed, put_device x i (Device true (store (device_at x i)))).

(** New devices: all have their pieces of [f]. *)
Definition new_leg (f : contents B) : machine :=
  (Idle (seq 0 count) true,
    Array (λ i, Device true (Medium (λ a, piece a i (f a)) [])) (seq 0 count) true).

Inductive lives : machine → list happening → machine → Prop :=
  | lives_nil z : lives z [] z
  | lives_step z es z' tr z'' : move z es z' → lives z' tr z'' → lives z (es ++ tr) z''.
End Machine.
