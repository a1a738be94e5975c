(** The machine of [DiskMachine.v] with the programs of [ProvedDisk.v]. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant.
From LogDisk Require Export DiskMachine.

Section Machine.
Context `{!blocks} {torn : tearing}.

Definition proved_programs : programs memory upkeep := Programs perform write_group maintain (recover Done).

(** A new disk of so many blocks: a device that held anything, formatted. Its records do not tear. *)
Definition formatted (n : nat) (x : machine memory) : Prop :=
  ∃ g f y, disk_blocks g = n ∧ whole_records g ∧ (execute (format g) (Medium f [])).1 = Some y ∧
    x = (Idle y, (execute (format g) (Medium f [])).2).

Definition proved_disk : implementation block := disk_machine proved_programs formatted.
End Machine.
