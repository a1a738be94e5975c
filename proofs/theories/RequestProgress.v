(** What progress asks of the programs of a disk, on one device: that a program ends after a bounded number of
I/Os, that requests are answered [Ok] at the places that a scheduler plans, and that recovery finds a disk.

The machine on one device ([DiskMachineProgress.v]) and the one on a leg ([LegDiskProgress.v]) both ask
this. *)
From stdpp Require Import list.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk DiskMachine.

(** At most [n] steps on one device, with all I/Os below [size], as long as what is assumed is true. *)
Fixpoint runs_within {B A} (size n : nat) (p : program B A) (m : medium B) {struct p} : Prop :=
  match p, n with
  | Done _, _ => True
  | ReadBlock a k, S n => a < size ∧ runs_within size n (k (read_block m a)) m
  | WriteBlock a b k, S n => a < size ∧ runs_within size n k (write_block m a b)
  | FlushBlocks k, S n => runs_within size n k (flush_blocks m)
  | Assume φ k, S n => φ = true → runs_within size n k m
  | _, 0 => False
  end.

Lemma runs_within_more {B A} size n n' (p : program B A) m :
  n ≤ n' → runs_within size n p m → runs_within size n' p m.
Proof.
  revert n n' m. induction p as [r|a k IH|a b k IH|k IH|φ k IH]; intros [|n] [|n'] m Hn; simpl; try done;
    try lia.
  - intros [? Hk]. split; [done|]. eapply IH; [|exact Hk]. lia.
  - intros [? Hk]. split; [done|]. eapply IH; [|exact Hk]. lia.
  - apply IH. lia.
  - intros Hk Hφ. eapply IH; [|by apply Hk]. lia.
Qed.

Section Requests.
Context `{!blocks} {Y U : Type} (D : programs Y U) (size : nat).
(** Where so many blocks go; nothing, if [collecting] is asked for first. *)
Context (places_for : Y → nat → option (list nat)) (collecting : U).
Implicit Types (y : Y) (q : request) (f : contents block) (d : disk block).

Definition planned y q : option (list nat) := places_for y (length (data_of q)).

(** A request within the stated sizes, at the places that are planned, takes so many I/Os and is answered
[Ok]; and places are found once they are collected. *)
Context (represents : Y → contents block → disk block → Prop).
Context (admissible : Y → request → Prop) (ios : Y → request → nat).

Record answers_admissible : Prop := {
  planned_within y f d q places : represents y f d → admissible y q → planned y q = Some places →
    runs_within size (ios y q) (run_request D y places q) (Medium f []);
  planned_answered y f d q places : represents y f d → admissible y q → planned y q = Some places →
    granted (run_request D y places q) (Medium f []) →
    (execute (run_request D y places q) (Medium f [])).1.1.2 = Ok;
  collected_planned y f d q : represents y f d → admissible y q → planned y q = None →
    ∃ y', run_upkeep D y collecting = Done y' ∧ represents y' f d ∧ admissible y' q ∧
      is_Some (planned y' q) ∧ ios y' q = ios y q;
}.

(** The same of several writes at once. *)
Definition planned_group y (ws : list (nat * list block)) : option (list nat) :=
  places_for y (length (blocks_of ws)).

Context (admissible_group : Y → list (nat * list block) → Prop)
  (group_ios : Y → list (nat * list block) → nat).

Record performs_admissible : Prop := {
  group_within y f d ws places :
    represents y f d → admissible_group y ws → planned_group y ws = Some places →
    runs_within size (group_ios y ws) (run_group D y places ws) (Medium f []);
  group_performed y f d ws places :
    represents y f d → admissible_group y ws → planned_group y ws = Some places →
    (execute (run_group D y places ws) (Medium f [])).1.2 = true;
  group_collected y f d ws : represents y f d → admissible_group y ws → planned_group y ws = None →
    ∃ y', run_upkeep D y collecting = Done y' ∧ represents y' f d ∧ admissible_group y' ws ∧
      is_Some (planned_group y' ws) ∧ group_ios y' ws = group_ios y ws;
}.

(** What stands on the device is a disk, and recovery takes at most [n] I/Os to find it. *)
Definition recovers_within (n : nat) f : Prop :=
  runs_within size n (run_recovery D) (Medium f []) ∧
  (granted (run_recovery D) (Medium f []) → is_Some (execute (run_recovery D) (Medium f [])).1).
End Requests.
