(** Disks of one shape on a leg, as in [DiskMachineShape.v]: what a new disk is like, it is like for ever. *)
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec ProvedDisk ProvedDiskInvariant.
From LogDisk Require Import Devices Leg LegDiskMachine.
From LogDisk Require DiskMachineShape.
Import DiskMachine(programs, run_request, run_group, run_upkeep, run_format).
Import DiskMachineShape(only, format_only).

Section Shape.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type} (D : programs Y U).
Variables (count : nat) (trees : nat * nat) (g : geometry) (size : nat).
Local Notation only := (only D trees g).
Implicit Types (z : machine C Y).

(** A new disk of shape [g], with [trees] of this size. *)
Definition formatted_as z : Prop := ∃ f ms c y x, torn_unread g ∧
  complete (on_leg size (seq 0 count) false (run_format D trees g)) (whole count f) =
    (Some (ms, c, Some y), x) ∧
  z = (Idle y ms c, x, []).

Lemma formatted_as_formatted z : formatted_as z → formatted D size count (disk_blocks g) z.
Proof. intros (f&ms&c&y&x&?&?&->). by exists trees, g, f, ms, c, y, x. Qed.

Lemma formatted_only z : formatted_as z → formatted only size count (disk_blocks g) z.
Proof.
  intros (f&ms&c&y&x&?&?&->). exists trees, g, f, ms, c, y, x. by rewrite (format_only D trees g).
Qed.

Lemma move_only z es z' : move D size count z es z' → move only size count z es z'.
Proof.
  destruct 1; try (by econstructor); [apply (Call only)|apply (CallGroup only)|apply (Maintain only)|
    apply (Reopen only)|apply (PowerOn only)].
Qed.

Lemma lives_only z tr z' : lives D size count z tr z' → lives only size count z tr z'.
Proof. induction 1; [constructor|]. econstructor; [by apply move_only|done]. Qed.
End Shape.
