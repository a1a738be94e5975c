(** The disks on one device with write-back: with whole maps, and with trees. At most [most] blocks are
delayed, no more than there are free places, and no more than go into the log. *)
From stdpp Require Import gmap strings.
From LogDisk Require ProvedTreeDisk.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk DiskMachine ProvedDiskMachine
  ProvedTreeDiskTheorem.
From LogDisk Require Import WriteBack WriteBackPlaces.

Section Disks.
Context `{!blocks} {torn : tearing block} (most : nat).

Definition write_back_programs : programs (memory * delay) (delaying_upkeep (U := upkeep)) :=
  write_back proved_programs shape (delay_room most) spares_places.
Definition write_back_disk : implementation block := disk_machine write_back_programs.

Definition write_back_tree_programs (bits : nat) :
    programs (ProvedTreeDisk.memory * delay) (delaying_upkeep (U := ProvedTreeDisk.upkeep)) :=
  write_back (tree_programs bits) ProvedTreeDisk.shape (tree_delay_room most) tree_spares_places.
Definition write_back_tree_disk (bits : nat) : implementation block :=
  disk_machine (write_back_tree_programs bits).
End Disks.
