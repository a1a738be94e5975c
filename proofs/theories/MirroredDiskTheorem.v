(** The theorem about the disk on mirrors.

The machine of [MirroredDiskMachine.v] runs the programs of [ProvedDisk.v] on [count] devices of [size]
  blocks.
Every trace that it shows, with its operations on devices, is one that the contract admits under [Ack] for a
disk that tolerates [count - 1] failures: wrong data are never read, and data are said to be lost only while
all devices have failed, or one was replaced while all others had.

What the machine may meet:
- what [ProvedDiskTheorem.v] names, with any part of what each device had not flushed lost on its own;
- a device that fails between any two I/Os, or while the power is off, and then answers nothing;
- its return with what it had, or its replacement by any other device, between two requests;
- a resync of all devices that are no members, with any of these in it.

What is assumed beyond [ProvedDiskTheorem.v]: the record of the members does not fail and is written whole
([Mirrors.v]), and devices hold the same when the disk is made. An I/O past the end of the devices would stop
the machine: that there is none is not proved. *)
From LogDisk Require Import VirtualDisk RecordedTrace Codec MirroredDiskMachine MirroredDiskRefinement.

Theorem mirrored_disk_refines_contract `{blocks} size count n z tr z' :
  blocks_laws → formatted size count n z → lives size count z tr z' →
  admits_recorded Ack (count - 1) (Event (Create n) :: tr).
Proof. intros laws. by apply mirrored_disk_refines. Qed.
