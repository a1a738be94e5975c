(** The machine of [DiskMachine.v] with the programs of [ProvedDisk.v]. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant.
From LogDisk Require Export DiskMachine.

Section Machine.
Context `{!blocks} {torn : tearing block}.

Definition proved_programs : programs memory upkeep :=
  Programs perform write_group maintain (recover Done) (λ _, format).

Definition proved_disk : implementation block := disk_machine proved_programs.
End Machine.
