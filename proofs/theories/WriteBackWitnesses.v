(** Executions of the disks with write-back, computed: their theorems are not vacuous, and need what they
assume. *)
From stdpp Require Import gmap strings.
From LogDisk Require ProvedTreeDiskExecution ProvedDiskLongRecords.
From LogDisk Require Import VirtualDisk Checker CheckerCorrect Medium Codec ByteBlocks ProvedDisk
  ProvedDiskInvariant ProvedDiskRequests ProvedDiskMachine ProvedDiskExecution ProvedTreeDiskTheorem.
From LogDisk Require Import DiskMachine WriteBack WriteBackPlaces WriteBackDisk.

#[local] Existing Instances behind_the_log tears_dec zeroes sealed_tears_dec.
Local Instance small_eq_dec : EqDecision (@block small) := (_ : EqDecision (list byte)).
Local Instance forgetful_eq_dec : EqDecision (@block forgetful) := (_ : EqDecision (list nat)).
Local Instance colliding_eq_dec : EqDecision (@block colliding) := (_ : EqDecision (list byte)).

Local Open Scope string_scope.

(** A disk of four blocks, with a log of four records and eight places. Three blocks may be delayed. *)
Definition shape_of_delayed : geometry := Geometry 4 4 2 8 2 2.

Definition delayed_life : list (@event_in_life small (@delaying_upkeep upkeep)) :=
  [Ask (DoWrite 4 [data 1]) []; Ask (DoSnapshot "") [];  (* no such block, no such name *)
   Ask (DoWrite 0 [data 1]) []; Ask (DoWrite 1 [data 2]) []; Ask (DoWrite 0 [data 3]) [];
   Ask (DoRead Live 0 3) [];                       (* the newest data *)
   CutUpkeep (Below Collect) 0 KeepAll; Ask (DoRead Live 0 3) [];  (* all are lost *)
   AskGroup [(0, [data 1]); (1, [data 2])] []; Ask (DoRead Live 0 3) [];
   Ask (DoSnapshot "s") [];                        (* while writes are delayed, it is not taken *)
   Keep (Drain [0; 1]); Ask (DoSnapshot "s") [];   (* the snapshot has them *)
   Ask (DoWrite 0 [data 4]) []; Ask (DoRead (Named "s") 0 2) [];
   Ask DoFlush [0]; Ask DoFlush [2];               (* the first place is in use *)
   CutUpkeep (Below Collect) 0 LoseAll; Ask (DoRead Live 0 2) [];  (* what was flushed survives *)
   Ask (DoWrite 2 [data 5]) []; Ask (DoWrite 2 [data 6]) [];
   CutIn DoFlush [3; 4] 4 KeepAll;                 (* the writes survive *)
   Ask (DoRead Live 0 3) []; Ask (DoRead (Named "t") 0 1) [];
   Ask (DoWrite 1 [data 7]) []; CutUpkeep (Drain [5]) 3 TearOnly;  (* the record without its data *)
   Ask (DoRead Live 0 3) [];
   Ask (DoWrite 2 [data 13]) []; Keep (Drain [6]);
   CutUpkeep (Below Collect) 0 LoseAll; Ask (DoRead Live 2 1) [];  (* what was drained survives *)
   AskGroup [(0, [data 1; data 2]); (2, [data 3; data 4])] [];     (* too many: none is delayed *)
   Keep (Below Checkpoint); Keep (Below Collect);
   Ask (DoWrite 1 [data 8]) [];                    (* no room for three more: both are written *)
   Keep (Drain [5]); Ask (DoWrite 0 [data 9; data 10; data 11]) [3; 4; 7];
   Keep (Below Collect); Ask (DoWrite 3 [data 12]) [];
   Keep (Below (Clean [(0, 6)])); Ask DoFlush [6]; (* the place was kept for the delayed write *)
   Ask DoRestart []; Ask (DoRead Live 0 4) []].

Definition delayed_shows : list (event (@block small)) :=
  [Write 4 [data 1] (Refused OutOfRange); Snapshot "" (Refused BadRequest);
   Write 0 [data 1] Ok; Write 1 [data 2] Ok; Write 0 [data 3] Ok;
   Read Live 0 3 Ok [data 3; data 2; data 0];
   Crash CutShort; Crash Ok; Read Live 0 3 Ok [data 0; data 0; data 0];
   Write 0 [data 1] Ok; Write 1 [data 2] Ok; Read Live 0 3 Ok [data 1; data 2; data 0];
   Snapshot "s" UnknownOutcome; Snapshot "s" Ok; Write 0 [data 4] Ok; Read (Named "s") 0 2 Ok [data 1;
     data 2];
   Flush UnknownOutcome; Flush Ok; Crash CutShort; Crash Ok; Read Live 0 2 Ok [data 4; data 2];
   Write 2 [data 5] Ok; Write 2 [data 6] Ok; Flush CutShort; Crash Ok;
   Read Live 0 3 Ok [data 4; data 2; data 6]; Read (Named "t") 0 1 (Refused NoSuchSnapshot) [];
   Write 1 [data 7] Ok; Crash CutShort; Crash Ok; Read Live 0 3 Ok [data 4; data 2; data 6];
   Write 2 [data 13] Ok; Crash CutShort; Crash Ok; Read Live 2 1 Ok [data 13];
   Write 1 [data 8] Ok; Write 0 [data 9; data 10; data 11] Ok; Write 3 [data 12] Ok; Flush Ok;
   Restart Ok; Read Live 0 4 Ok [data 9; data 10; data 11; data 12]].

Theorem write_back_life_exists :
  ∃ x x', fresh (@write_back_disk small _ 3) 4 x ∧ shows (write_back_disk 3) x delayed_shows x'.
Proof.
  apply (life_shows (D := write_back_programs 3) (0, 0) shape_of_delayed delayed_life); [|by vm_compute].
  apply small_unread; simpl; lia.
Qed.

(** ** The profile: an answered write may be lost, so this is not [Ack] *)

Theorem write_back_is_not_ack : @blocks_laws small ∧ ¬ implements (@write_back_disk small _ 3) Ack.
Proof.
  split; [apply small_laws|]. intros Himp. destruct write_back_life_exists as (x&x'&Hx&Hs).
  specialize (Himp _ _ _ _ Hx Hs). apply check_correct in Himp. by vm_compute in Himp.
Qed.

(** ** Blocks that do not give back what was put in, and digests that collide *)

Theorem write_back_round_trip_needed : ¬ implements (@write_back_disk forgetful _ 3) Prefix.
Proof.
  intros Himp. destruct (@life_shows forgetful _ _ _ _ _ _ (write_back_programs 3) (0, 0)
    (Geometry 10 4 2 6 2 2)
    [Ask (DoWrite 9 [one]) []; Keep (Drain [0]); Ask DoRestart []; Ask (DoRead Live 9 1) []]
    [Write 9 [one] Ok; Restart Ok; Read Live 9 1 Ok [zero]]) as (x&x'&Hx&Hshows);
    [apply small_unread; simpl; lia|by vm_compute|].
  specialize (Himp _ _ _ _ Hx Hshows). apply check_correct in Himp. by vm_compute in Himp.
Qed.

Definition unverified_delayed {U} : list (@event_in_life colliding (@delaying_upkeep U)) :=
  [Ask (DoWrite 0 [seven]) []; Ask DoFlush [0]; Ask (DoWrite 0 [seven; seven]) [];
   CutIn DoFlush [1; 2] 4 TearOnly; Ask (DoRead Live 0 1) []].
Definition unverified_delayed_shows : list (event (@block colliding)) :=
  [Write 0 [seven] Ok; Flush Ok; Write 0 [seven; seven] Ok; Flush CutShort; Crash Ok;
   Read Live 0 1 Ok [zero_block]].

Theorem write_back_digest_needed : ¬ implements (@write_back_disk colliding _ 3) Prefix.
Proof.
  intros Himp. destruct (@life_shows colliding _ _ _ _ _ _ (write_back_programs 3) (0, 0) shape_of_small
    unverified_delayed unverified_delayed_shows)
    as (x&x'&Hx&Hshows); [apply small_unread; simpl; lia|by vm_compute|].
  specialize (Himp _ _ _ _ Hx Hshows). apply check_correct in Himp. by vm_compute in Himp.
Qed.

(** With trees. *)
Theorem write_back_tree_round_trip_needed : ¬ implements (@write_back_tree_disk forgetful _ 3 1) Prefix.
Proof.
  intros Himp. destruct (@life_shows forgetful _ _ _ _ _ _ (write_back_tree_programs 3 1) (3, 15)
    (Geometry 10 4 4 6 2 2)
    [Ask (DoWrite 9 [one]) []; Keep (Drain [0]); Ask DoRestart []; Ask (DoRead Live 9 1) []]
    [Write 9 [one] Ok; Restart Ok; Read Live 9 1 Ok [zero]]) as (x&x'&Hx&Hshows);
    [apply small_unread; simpl; lia|by vm_compute|].
  specialize (Himp _ _ _ _ Hx Hshows). apply check_correct in Himp. by vm_compute in Himp.
Qed.

Theorem write_back_tree_digest_needed : ¬ implements (@write_back_tree_disk colliding _ 3 1) Prefix.
Proof.
  intros Himp. destruct (@life_shows colliding _ _ _ _ _ _ (write_back_tree_programs 3 1) (1, 15)
    ProvedTreeDiskExecution.shape_of_trees unverified_delayed unverified_delayed_shows)
    as (x&x'&Hx&Hshows); [apply small_unread; simpl; lia|by vm_compute|].
  specialize (Himp _ _ _ _ Hx Hshows). apply check_correct in Himp. by vm_compute in Himp.
Qed.

(** ** What a flush needs to be answered [Ok] *)

Definition flush_answer (fl : option (list (event (@block small)))) : option answer :=
  shown ← fl; match last shown with Some (Flush r) => Some r | _ => None end.

(** A log of one record, and a slot of one block: the maps of two snapshots with long names do not go
into it. *)
Definition narrow_slot (n : name) : list (@event_in_life small (@delaying_upkeep upkeep)) :=
  [Ask (DoSnapshot (long_name 97)) []; Ask (DoSnapshot n) []; Ask (DoWrite 0 [data 1]) []; Ask DoFlush [0]].
Theorem flush_needs_a_slot :
  flush_answer (life (write_back_programs 3) (0, 0) (Geometry 4 1 1 8 2 3) (narrow_slot "s")) = Some Ok ∧
  flush_answer (life (write_back_programs 3) (0, 0) (Geometry 4 1 1 8 2 3)
    (narrow_slot (long_name 98))) = Some UnknownOutcome.
Proof. by vm_compute. Qed.

(** How many places there are is how many blocks may be delayed: two places, of which one is in use, have no
room for two blocks; a write that is not delayed takes places too; and what is free is counted again. *)
Definition with_places (n : nat) (es : list (@event_in_life small (@delaying_upkeep upkeep))) :
    option (list (event (@block small))) := life (write_back_programs 3) (0, 0) (Geometry 4 4 2 n 2 2) es.
Theorem room_needed :
  with_places 2 [Ask (DoWrite 0 [data 1]) []; Ask DoFlush [0]; Ask (DoWrite 1 [data 2; data 3]) [1]] =
    Some [Write 0 [data 1] Ok; Flush Ok; Write 1 [data 2; data 3] (Refused NoSpace)] ∧
  with_places 4 [Ask (DoWrite 0 [data 1]) []; Keep (Drain [0]); Ask (DoWrite 1 [data 2; data 3; data 4]) [1;
    2; 3];
      Ask (DoWrite 0 [data 5]) []] =
    Some [Write 0 [data 1] Ok; Write 1 [data 2; data 3; data 4] Ok; Write 0 [data 5] (Refused NoSpace)] ∧
  with_places 6 [Ask (DoWrite 0 [data 1; data 2; data 3]) []; Ask DoFlush [0; 1; 2]; Keep (Drain []);
      Ask (DoWrite 0 [data 4; data 5; data 6]) []] =
    Some [Write 0 [data 1; data 2; data 3] Ok; Flush Ok; Write 0 [data 4; data 5; data 6] Ok].
Proof. by vm_compute. Qed.

(** A record of six words goes into a block. With a log of two blocks one block may be delayed, with one of
four six, with one of nine as many as there are free places. *)
Theorem log_bounds_room :
  (λ g, match execute (@format ProvedDiskLongRecords.tiny g) (Medium (λ _, zero_block) []) with
        | (Some y, _) => Some (delay_room (H := ProvedDiskLongRecords.tiny) 9 y) | _ => None
        end) <$> [Geometry 4 2 4 8 2 2; Geometry 4 4 4 8 2 2; Geometry 4 9 4 8 2 2] =
    [Some 1; Some 6; Some 8].
Proof. by vm_compute. Qed.

(** Two places, of which one is in use, the other one free: if a block may move there while a write is
delayed, no place is left for the write. *)
Definition moved_meanwhile {U} (collect : U) (clean : list (nat * nat) → U) :
    list (@event_in_life small (@delaying_upkeep U)) :=
  [Ask (DoWrite 0 [data 1]) []; Ask DoFlush [0]; Keep (Below collect); Ask (DoWrite 1 [data 2]) [];
   Keep (Below (clean [(0, 1)])); Keep (Below collect); Ask DoFlush [1]].
Theorem spared_places_needed :
  let disk := λ spares, write_back proved_programs shape (delay_room (H := small) 3) spares in
  flush_answer (life (disk spares_places) (0, 0) (Geometry 4 4 2 2 2 2) (moved_meanwhile Collect Clean)) =
    Some Ok ∧
  flush_answer (life (disk (λ _, true)) (0, 0) (Geometry 4 4 2 2 2 2) (moved_meanwhile Collect Clean)) =
    Some UnknownOutcome.
Proof. by vm_compute. Qed.

Theorem tree_spared_places_needed :
  let disk := λ spares, write_back (tree_programs 1) ProvedTreeDisk.shape (tree_delay_room (H := small) 3)
    spares in
  let happens := moved_meanwhile (ProvedTreeDisk.Keep Collect) (λ ms, ProvedTreeDisk.Keep (Clean ms)) in
  flush_answer (life (disk tree_spares_places) (1, 15) (Geometry 4 4 6 2 2 2) happens) = Some Ok ∧
  flush_answer (life (disk (λ _, true)) (1, 15) (Geometry 4 4 6 2 2 2) happens) = Some UnknownOutcome.
Proof. by vm_compute. Qed.
