(** Where the next writes may put their data while the flush of the writes before is under way: the addresses
of the places that are free in memory then ([PipelinedDisk.v]). *)
From stdpp Require Import gmap.
From LogDisk Require ProvedTreeDisk.
From LogDisk Require Import Medium ProvedDisk.

Definition free_address (g : geometry) (fr : gmap nat ()) (a : nat) : bool :=
  if decide (data_address g 0 ≤ a) then bool_decide (is_Some (fr !! (a - data_address g 0))) else false.

Definition spare_address (y : memory) : nat → bool := free_address (shape y) (free y).
Definition tree_spare_address (y : ProvedTreeDisk.memory) : nat → bool :=
  free_address (ProvedTreeDisk.shape y) (ProvedTreeDisk.free y).
