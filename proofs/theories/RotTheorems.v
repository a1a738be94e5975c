(** What is proved, as in [Theorems.v]: of blocks that rot on a leg.

A device of a leg has each block, or its piece of it, with digests. Where they are not right it cannot read
the block ([Some None] in [Devices.v]), and every theorem about a disk on a leg (16 to 18, 20, 21) holds
whenever devices cannot read blocks, any of them, between any two I/Os and in recovery and resync too. What is
assumed of it:
- what has rotted is not read as a block ([rot_must_be_noticed]);
- of no block more pieces are missing than the code can do without: unreadable, or on devices that are no
  members. Where they are, a program of [Leg.v] goes no further ([AssumeThat]), unless too few members are
  left anyway. The disk that runs answers then that data are lost, until it is opened again; opening it
  leaves the block as it is. Of that nothing is said. *)
From stdpp Require Import gmap strings relations.
From LogDisk Require Import VirtualDisk RecordedTrace.
From LogDisk Require Medium Codec ProvedDiskMachine Devices Leg LegCorrect.
From LogDisk Require LegCode LegRepair LegDiskMachine LegDiskExecution LegDiskRaid LegDiskRot
  ProvedTreeDiskTheorem.

Module Rotten.
Import Medium Codec ProvedDiskMachine Devices Leg LegCorrect LegRepair.

(** 24. Read-repair. While all members answer, and enough of them can read their pieces of a block, a read
of it goes on with the block, and each member that was asked for its piece and could not read it has it again.
Nothing else changes on any device, and no other block becomes unreadable by it. *)
Theorem read_repairs {B C A} `{cutting B C} {torn : tearing B} size count rotten x a b ms c
    (k : B → program B A) :
  cutting_laws count → a < size → NoDup ms → (∀ i, i ∈ ms → i < count) →
  (∀ i, i ∈ ms → read_block (store (device_at x i)) a = piece a i b) →
  needed a ≤ length (readable rotten a ms) →
  ∃ rotten' x', goes (on_leg size ms c (ReadBlock a k)) rotten x = goes (on_leg size ms c (k b)) rotten' x' ∧
    (∀ i, i ∈ asked rotten a (needed a) ms → rotten' i a = false) ∧
    (∀ i a', rotten i a' = false → rotten' i a' = false) ∧
    (∀ i a', read_block (store (device_at x' i)) a' = read_block (store (device_at x i)) a').
Proof. intros laws. by apply (LegRepair.read_repairs size count). Qed.

(** 24. [goes] is one way that the machine of [LegDiskMachine.v] may go: its I/Os are those of the machine. *)
Theorem rotten_reads_happen {C A} {shreds : torn_pieces C} (p : array_program C A) rotten (x : array C) :
  (∀ i, up (device_at x i) = true) →
  rtc (λ z z', array_io z.1 z.2 z'.1 z'.2) (p, x) ((goes p rotten x).1.1, (goes p rotten x).2).
Proof. apply goes_by_ios. Qed.

(** 12. An execution on two mirrors, of which one can read nothing until it is written again: requests, a
power cut and recovery; then the other one fails. With whole maps, *)
Theorem rotten_disk_execution : ∃ z z',
  LegDiskMachine.formatted (cutting0 := LegDiskExecution.mirrored) (torn := untorn) proved_programs 20 2 4 z ∧
  LegDiskMachine.lives (cutting0 := LegDiskExecution.mirrored) (torn := untorn) proved_programs 20 2 z
    LegDiskRot.rotten_shows z'.
Proof. apply LegDiskRot.rotten_life_exists. Qed.

(** with trees, whose nodes rot too, *)
Theorem rotten_tree_disk_execution : ∃ z z',
  LegDiskMachine.formatted (cutting0 := LegDiskExecution.mirrored) (torn := untorn)
    (ProvedTreeDiskTheorem.tree_programs 1) 40 2 4 z ∧
  LegDiskMachine.lives (cutting0 := LegDiskExecution.mirrored) (torn := untorn)
    (ProvedTreeDiskTheorem.tree_programs 1) 40 2 z LegDiskRot.rotten_shows z'.
Proof. apply LegDiskRot.rotten_tree_life_exists. Qed.

(** and on RAID-5, where what one device cannot read is computed from the others. *)
Theorem rotten_raid5_disk_execution : ∃ z z',
  LegDiskMachine.formatted (cutting0 := LegDiskRaid.raid_of_two 1 5) (torn := LegDiskRaid.tears_from 5)
    proved_programs 20 3 4 z ∧
  LegDiskMachine.lives (cutting0 := LegDiskRaid.raid_of_two 1 5) (torn := LegDiskRaid.tears_from 5)
    proved_programs 20 3 z LegDiskRot.rotten_raid_shows z'.
Proof. apply LegDiskRot.rotten_raid_life_exists. Qed.
End Rotten.
