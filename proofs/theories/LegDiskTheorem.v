(** The theorem about the disk on a leg: on mirrors, or with parity ([LegCode.v]).

The machine of [LegDiskMachine.v] runs the programs of [ProvedDisk.v] on [count] devices, any [fewest] of
which give back a disk of [size] blocks. Every trace that it shows, with its operations on devices, is one
that the contract admits under [Ack] for a disk that tolerates [count - fewest] failures: wrong data are never
read, and data are said to be lost only while more devices have failed, or after one was replaced while they
had.

What the machine may meet:
- what [ProvedDiskTheorem.v] names, with any part of what each device had not flushed lost on its own, and
  torn on its own, when the power or the device fails; so of a block of several pieces anything may be left,
  and no such block is one of superblock, headers and log;
- a device that fails between any two I/Os, or while the power is off, and then answers nothing;
- its return with what it had, or its replacement by any other device, between two requests;
- a device that answers, and cannot read a block, any one and at any time, since it has rotted;
- a resync of all devices that are no members, with any of these in it.

What is assumed beyond [ProvedDiskTheorem.v], whose hypothesis on digests is about blocks as the leg gives
them back: the code gives back what was cut into pieces ([cutting_laws]),
the record of the members does not fail and is written whole ([Devices.v]), devices have the pieces of the
same blocks when the disk is made, what has rotted is not read, and of no block more pieces are unreadable
than the code can do without ([Leg.v]). An I/O past the end of the devices would stop the machine;
[LegDiskProgress.v] and [LegDiskUpkeep.v] say when there is none. *)
From stdpp Require Import vector.
From LogDisk Require Parity.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec ProvedDisk ProvedDiskMachine
  ProvedDiskRefinement.
From LogDisk Require Import Leg LegCorrect LegCode LegDiskMachine LegDiskRefinement.

Theorem leg_disk_refines_contract `{blocks} {C} `{cutting block C} {torn : tearing block} size count n z tr
    z' :
  blocks_laws → cutting_laws count →
  formatted proved_programs size count n z → lives proved_programs size count z tr z' →
  admits_recorded Ack (count - fewest) (Event (Create n) :: tr).
Proof. intros laws code. eapply leg_disk_refines; [apply proved_programs_safe|done]. Qed.

(** ** Any disk whose programs are crash safe, on mirrors and with parity *)

Lemma refines_on_mirrors `{blocks} {torn : tearing block} {Y U} (D : programs Y U) shape represents
    recoverable size count n z tr z' :
  let code := mirrors zero_block in
  crash_safe_programs D shape represents recoverable → 0 < count →
  formatted (cutting0 := code) D size count n z → lives (cutting0 := code) D size count z tr z' →
  admits_recorded Ack (count - 1) (Event (Create n) :: tr).
Proof.
  intros code Hsafe Hcount Hz Hlives.
  by eapply (leg_disk_refines (cutting0 := code) D size count _ _ _ Hsafe (laws := mirrors_laws _ _ Hcount)).
Qed.

Lemma refines_on_raid `{blocks} {torn : tearing block} {decided : ∀ a, Decision (tears a)} {Y U}
    (D : programs Y U) shape represents recoverable bytes k m (cut : block → vec (vec Parity.byte bytes) k)
    glue size n z tr z' :
  crash_safe_programs D shape represents recoverable → (∀ b, glue (cut b) = b) → 1 ≤ k → 1 ≤ m ≤ 2 →
  (m = 2 → k ≤ 255) →
  let code := raid_leg bytes k m cut glue in
  formatted (cutting0 := code) D size (k + m) n z → lives (cutting0 := code) D size (k + m) z tr z' →
  admits_recorded Ack m (Event (Create n) :: tr).
Proof.
  intros Hsafe Hglue Hk Hm Hb code Hz Hlives.
  pose proof (leg_disk_refines (cutting0 := code) D size (k + m) _ _ _ Hsafe
    (laws := raid_leg_laws bytes k m cut glue Hglue Hk Hm Hb) n z tr z' Hz Hlives) as Had.
  simpl in Had. by replace (k + m - k) with m in Had by lia.
Qed.
