(** How many blocks may be delayed, and which upkeep leaves the free places as they are ([WriteBack.v]). *)
From stdpp Require Import gmap.
From LogDisk Require ProvedTreeDisk.
From LogDisk Require Import Codec ProvedDisk.

Section Places.
Context `{!blocks}.

(** Blocks of writes whose record goes into the log: into one block of it, or into all. *)
Definition most_in_log (g : geometry) : nat :=
  if decide (log_blocks g ≤ 2) then PeanoNat.Nat.div (sealed_words - 6) 2
  else PeanoNat.Nat.div ((log_blocks g - 2) * body_words) 2 - 2.

(** No more than [most], than go into the log, and than there are free places. *)
Definition delay_room_of (most : nat) (g : geometry) (fr : gmap nat ()) : nat :=
  min (min most (most_in_log g)) (length (map_to_list fr)).
Definition delay_room (most : nat) (y : memory) : nat := delay_room_of most (shape y) (free y).
Definition tree_delay_room (most : nat) (y : ProvedTreeDisk.memory) : nat :=
  delay_room_of most (ProvedTreeDisk.shape y) (ProvedTreeDisk.free y).

Definition spares_places (u : upkeep) : bool := match u with Checkpoint => true | _ => false end.
Definition tree_spares_places (u : ProvedTreeDisk.upkeep) : bool :=
  match u with ProvedTreeDisk.Keep u => spares_places u | ProvedTreeDisk.Walk _ _ => true end.
End Places.
