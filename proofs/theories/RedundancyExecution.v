(** A leg at work, computed under RAID-5: a component misses a write, comes back and is resynced; then another
is rebuilt on a spare. Only definitions are needed here, so a mistake in one of them shows here first. *)
From LogDisk Require Import Parity Redundancy.

Notation code := (raid5 (n := 1) 2).
Definition old_data := byte_block <$> [one; two].
Definition new_data := byte_block <$> [two; one].

(** What stripe 0 reads as after the actions, on three components and a spare, device 3. *)
Definition read_after (acts : list action) : option (list (vec byte 1)) :=
  l ← run code 1 2 acts (new_leg code 1); read code l 0.

Definition missed_write : list action :=
  [Write 0 old_data; Put 0 0; Put 1 0; Put 2 0; Acknowledge 0; Fail 1 Absent;
   Write 0 new_data; Put 0 0; Put 2 0; Acknowledge 0; Return 1].
Definition resynced : list action := missed_write ++ [Resync 1 0].
Definition rebuilding : list action := resynced ++ [Fail 0 Degraded; Rebuild 0 3].

(** Component 1 is back and lacks the write: it is not read, and cannot stand in for another. *)
Example missed_write_reads : read_after missed_write = Some new_data /\
  read_after (missed_write ++ [Fail 0 Absent]) = None.
Proof. by vm_compute. Qed.

(** It may once it is resynced. *)
Example resynced_reads : read_after (resynced ++ [Fail 0 Absent]) = Some new_data.
Proof. by vm_compute. Qed.

(** So may component 0, which began anew on the spare. *)
Example rebuilt_reads : read_after (rebuilding ++ [Fail 2 Absent]) = None /\
  read_after (rebuilding ++ [Resync 0 0; Fail 2 Absent]) = Some new_data.
Proof. by vm_compute. Qed.
