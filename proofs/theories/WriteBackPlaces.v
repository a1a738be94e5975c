(** How many blocks may be delayed, and which upkeep uses places that are free ([WriteBack.v]). *)
From stdpp Require Import gmap.
From LogDisk Require ProvedTreeDisk.
From LogDisk Require Import Codec ProvedDisk.

Definition delay_room_of (most : nat) (fr : gmap nat ()) : nat := min most (length (map_to_list fr)).

Section Places.
Context `{!blocks}.

Definition delay_room (most : nat) (y : memory) : nat := delay_room_of most (free y).
Definition tree_delay_room (most : nat) (y : ProvedTreeDisk.memory) : nat :=
  delay_room_of most (ProvedTreeDisk.free y).

Definition moves_data (u : upkeep) : bool := match u with Clean _ => true | _ => false end.
Definition tree_moves_data (u : ProvedTreeDisk.upkeep) : bool :=
  match u with ProvedTreeDisk.Keep u => moves_data u | _ => false end.
End Places.
