(** The theorem about the disk on a leg: on mirrors, or with parity ([LegCode.v]).

The machine of [LegDiskMachine.v] runs the programs of [ProvedDisk.v] on [count] devices, any [fewest] of
which give back a disk of [size] blocks. Every trace that it shows, with its operations on devices, is one
that the contract admits under [Ack] for a disk that tolerates [count - fewest] failures: wrong data are never
read, and data are said to be lost only while more devices have failed, or after one was replaced while they
had.

What the machine may meet:
- what [ProvedDiskTheorem.v] names, with any part of what each device had not flushed lost on its own; so of a
  block of several pieces anything may be left, and no such block is one of superblock, headers and log;
- a device that fails between any two I/Os, or while the power is off, and then answers nothing;
- its return with what it had, or its replacement by any other device, between two requests;
- a resync of all devices that are no members, with any of these in it.

What is assumed beyond [ProvedDiskTheorem.v], whose hypothesis on digests is about blocks as the leg gives
them back: the code gives back what was cut into pieces ([cutting_laws]),
the record of the members does not fail and is written whole ([Devices.v]), and devices have the pieces of the
same blocks when the disk is made. An I/O past the end of the devices would stop the machine: that there is
none is not proved. *)
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec Leg LegCorrect LegDiskMachine
  LegDiskRefinement.

Theorem leg_disk_refines_contract `{blocks} {C} `{cutting block C} {torn : tearing} size count n z tr z' :
  blocks_laws → cutting_laws count → formatted size count n z → lives size count z tr z' →
  admits_recorded Ack (count - fewest) (Event (Create n) :: tr).
Proof. intros laws code. by apply leg_disk_refines. Qed.
