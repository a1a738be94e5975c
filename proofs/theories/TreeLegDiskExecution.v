(** Executions of the proved disk with trees on legs, computed: its theorems are not vacuous, and need their
hypotheses. *)
From stdpp Require Import gmap strings vector.
From LogDisk Require ProvedTreeDiskExecution.
From LogDisk Require Import Parity VirtualDisk RecordedTrace Checker CheckerCorrect Medium Codec ByteBlocks
  ProvedDisk ProvedDiskRequests ProvedDiskInvariant ProvedDiskExecution ProvedTreeDiskInvariant
  ProvedTreeDiskTheorem.
From LogDisk Require Import Devices Leg LegCode LegDiskMachine LegDiskExecution LegDiskRaid.
Import ProvedTreeDiskExecution(shape_of_trees).
Local Open Scope string_scope.

Local Instance mirrored `{blocks} : cutting block block := mirrors zero_block.
#[local] Existing Instance untorn.
Local Notation D := (tree_programs 1).

(** ** A life with everything in it, on mirrors: two devices of 40 blocks, 15 of them pages *)

(** Steps of walks: of which, and at which nodes. *)
Definition walked {B C} (l : list (nat * nat)) : list (@LegDiskExecution.happening B C T.upkeep) :=
  (λ e, Keeps (T.Walk e.1 e.2)) <$> l.
Definition to_the_end : list (nat * nat) :=
  [(1, 0); (1, 0); (7, 3); (7, 6); (7, 2); (7, 1); (7, 1); (19, 9); (19, 12); (19, 8); (19, 7); (19, 7);
   (10, 6); (10, 6); (22, 3); (22, 6); (22, 2); (22, 1); (22, 1)].

Definition until_the_deletion : list (@LegDiskExecution.happening small (@block small) T.upkeep) :=
  [Asks (DoWrite 0 [data 1; data 2]) [0; 1]; Asks (DoSnapshot "s") [];
   AsksAll [(0, [data 7]); (1, [data 8])] [2; 4];
   CutsAll [(0, [data 5]); (1, [data 6])] [3; 5] 6;    (* device 0 has the record, device 1 does not *)
   Asks (DoRead Live 0 2) [];
   CutsUpkeep (T.Keep Checkpoint) 5;    (* both have some nodes, one that device 0 has device 1 has not *)
   Fails 0; Asks (DoWrite 0 [data 4]) [6]; Keeps (T.Keep Checkpoint);    (* degraded *)
   Fails 1; Asks (DoRead Live 0 1) []; Returns 0; Opens; Asks (DoRead Live 0 1) [];
     (* the nodes that are back are stale *)
   Returns 1; Opens; Asks (DoRead Live 0 2) []; Settles;
   Fails 1; Asks (DoRead (Named "s") 0 2) []; Asks (DoDelete "s") []].

Definition everything_on_mirrors : list (@LegDiskExecution.happening small (@block small) T.upkeep) :=
  until_the_deletion
  ++ walked (take 4 to_the_end) ++ [CutsUpkeep (T.Walk 7 2) 0]   (* the walks begin again *)
  ++ walked to_the_end ++
  [Keeps (T.Keep Collect); Asks (DoWrite 1 [data 9]) [0];        (* where the snapshot had its data *)
   Returns 1; Settles; Fails 0; Asks (DoRead Live 0 2) []].

Definition everything_on_mirrors_shows : list (entry (@block small)) :=
  [Event (Write 0 [data 1; data 2] Ok); Event (Snapshot "s" Ok);
   Event (Write 0 [data 7] Ok); Event (Write 1 [data 8] Ok);
   Event (Write 0 [data 5] UnknownOutcome); Event (Write 1 [data 6] UnknownOutcome); Event (Crash CutShort);
   Event (Crash Ok); Event (Read Live 0 2 Ok [data 5; data 6]);
   Event (Crash CutShort); Event (Crash Ok);
   Fail 0 Ok; Event (Write 0 [data 4] Ok);
   Fail 1 Ok; Event (Read Live 0 1 (Refused DataLost) []); Return 0 Ok;
   Event (Read Live 0 1 (Refused DataLost) []);
   Return 1 Ok; Event (Read Live 0 2 Ok [data 4; data 6]); Settle Ok;
   Fail 1 Ok; Event (Read (Named "s") 0 2 Ok [data 1; data 2]); Event (Delete "s" Ok);
   Event (Crash CutShort); Event (Crash Ok); Event (Write 1 [data 9] Ok);
   Return 1 Ok; Settle Ok; Fail 0 Ok; Event (Read Live 0 2 Ok [data 4; data 9])].

Theorem mirrored_tree_life_exists : ∃ z z',
  formatted D 40 2 4 z ∧ lives D 40 2 z everything_on_mirrors_shows z'.
Proof.
  apply (leg_life_lives D 40 2 (1, 15) shape_of_trees everything_on_mirrors);
    [apply ProvedDiskInvariant.untorn_unread|by vm_compute].
Qed.

(** Once the walks are done, the disk keeps the nodes of the live view, and its data: of twelve nodes and five
places, four and two. Before that, all. *)
Definition kept_after (es : list (@LegDiskExecution.happening small (@block small) T.upkeep)) :
    option (nat * nat) :=
  match whole_life D 40 2 (1, 15) shape_of_trees es with
  | Some (_, (Idle y _ _, _)) => Some ((T.node_count y).1, length (T.in_use y))
  | _ => None
  end.
Theorem walks_free_nodes_on_legs :
  kept_after until_the_deletion = Some (12, 5) ∧
  kept_after (until_the_deletion ++ walked to_the_end)%list = Some (4, 2).
Proof. by vm_compute. Qed.

(** What is no walk has no step. *)
Theorem steps_on_legs_need_a_walk :
  match @whole_life small _ mirrored _ _ D 40 2 (1, 15) shape_of_trees [] with
  | Some (_, (Idle y _ _, _)) => T.walks y = [] ∧ ProvedTreeMaps.walk 1 (T.next_step y 1) (T.current y) = None
  | _ => False
  end.
Proof. by vm_compute. Qed.

(** A snapshot that is deleted, and taken again under its name, reads otherwise. *)
Theorem tree_leg_snapshot_needs_no_delete : ∃ z z', formatted D 40 2 4 z ∧
  lives D 40 2 z ([] ++ Event (Read Live 0 1 Ok [data 0]) :: Event (Snapshot "s" Ok) ::
    (Event <$> [Delete "s" Ok; Write 0 [data 1] Ok; Snapshot "s" Ok]) ++
    [Event (Read (Named "s") 0 1 Ok [data 1])]) z'.
Proof.
  apply (leg_life_lives D 40 2 (1, 15) shape_of_trees [Asks (DoRead Live 0 1) []; Asks (DoSnapshot "s") [];
    Asks (DoDelete "s") []; Asks (DoWrite 0 [data 1]) [0]; Asks (DoSnapshot "s") [];
    Asks (DoRead (Named "s") 0 1) []]); [apply ProvedDiskInvariant.untorn_unread|by vm_compute].
Qed.

(** A record that forgets who was dropped. *)
Theorem tree_record_needed : with_an_old_record D 40 (1, 15) shape_of_trees = Some stale_read ∧
  ¬ admits_recorded Ack 1 (Event (Create 4) :: stale_read).
Proof. split; [by vm_compute|apply stale_read_is_wrong]. Qed.

(** Blocks that do not give back what was put in. *)
Theorem tree_round_trip_needed_on_mirrors : ¬ (∀ z z' tr, formatted D 40 2 10 z → lives D 40 2 z tr z' →
  admits_recorded Ack 1 (Event (Create (V := @block forgetful) 10) :: tr)).
Proof. by apply (forgotten_is_wrong D 40 (3, 15) (Geometry 10 4 4 6 2 2)); [|vm_compute]. Qed.

(** ** On RAID-5 and RAID-6: nodes are stripes too *)

Definition everything_on_raid5 : list (happening T.upkeep) :=
  [Asks (DoWrite 0 [content 1; content 2]) [0; 1]; Asks (DoSnapshot "s") [];
   Cuts (DoWrite 0 [content 3]) [2] 2;         (* device 0 has a piece of a node *)
   Asks (DoRead Live 0 2) [];
   Fails 0; Asks (DoWrite 0 [content 4]) [4]; Asks (DoRead Live 0 2) [];    (* degraded *)
   Breaks (DoWrite 1 [content 5]) [5] 6 2;     (* device 2 loses its piece of a node or of the data *)
   Asks (DoRead Live 0 2) []; Returns 0; Opens; Asks (DoRead Live 0 2) [];  (* what is back is stale *)
   Returns 2; Opens; Asks (DoRead Live 0 2) []; Settles;
   Gets 1 (inr Parity.zeroes); Asks (DoRead Live 0 2) []; Settles; Keeps (T.Keep Checkpoint);
   Fails 2; Cuts DoFlush [] 0;                 (* the nodes are read back without device 2 *)
   Asks (DoRead Live 0 2) []; Asks (DoRead (Named "s") 0 2) []].

Definition everything_on_raid5_shows : list (entry (@block two_pieces)) :=
  [Event (Write 0 [content 1; content 2] Ok); Event (Snapshot "s" Ok);
   Event (Write 0 [content 3] CutShort); Event (Crash Ok);
   Event (Read Live 0 2 Ok [content 1; content 2]);
   Fail 0 Ok; Event (Write 0 [content 4] Ok); Event (Read Live 0 2 Ok [content 4; content 2]);
   Fail 2 Ok; Event (Write 1 [content 5] UnknownOutcome);
   Event (Read Live 0 2 (Refused DataLost) []); Return 0 Ok; Event (Read Live 0 2 (Refused DataLost) []);
   Return 2 Ok; Event (Read Live 0 2 Ok [content 4; content 2]); Settle Ok;
   Replace 1 Ok; Event (Read Live 0 2 Ok [content 4; content 2]); Settle Ok;
   Fail 2 Ok; Event (Flush CutShort); Event (Crash Ok);
   Event (Read Live 0 2 Ok [content 4; content 2]);
   Event (Read (Named "s") 0 2 Ok [content 1; content 2])].

Theorem raid5_tree_life_exists : ∃ z z',
  @formatted two_pieces _ (raid_of_two 1 5) (tears_from 5) _ _ D 40 3 4 z ∧
  @lives two_pieces _ (raid_of_two 1 5) (tears_from 5) _ _ D 40 3 z everything_on_raid5_shows z'.
Proof. by apply (raid_life_lives D 1 40 (1, 15) shape_of_trees everything_on_raid5); [|vm_compute]. Qed.

Theorem raid6_tree_life_exists : ∃ z z',
  @formatted two_pieces _ (raid_of_two 2 5) (tears_from 5) _ _ D 40 4 4 z ∧
  @lives two_pieces _ (raid_of_two 2 5) (tears_from 5) _ _ D 40 4 z everything_on_raid6_shows z'.
Proof. by apply (raid_life_lives D 2 40 (1, 15) shape_of_trees everything_on_raid6); [|vm_compute]. Qed.

(** Parity that is not the sum of the data. *)
Theorem tree_code_needed : ∃ z z',
  @formatted two_pieces _ without_parity (tears_from 5) _ _ D 40 3 4 z ∧
  @lives two_pieces _ without_parity (tears_from 5) _ _ D 40 3 z wrong_without_parity z' ∧
  ¬ admits_recorded Ack 1 (Event (Create 4) :: wrong_without_parity).
Proof. by apply (wrong_code D 40 (1, 15) shape_of_trees); [..|vm_compute]. Qed.

(** Blocks of several pieces that are thought not to tear. *)
Theorem tree_tearing_needed : ∃ z z',
  @formatted two_pieces _ (raid_of_two 1 0) untorn _ _ D 40 3 4 z ∧
  @lives two_pieces _ (raid_of_two 1 0) untorn _ _ D 40 3 z torn_record_shows z' ∧
  ¬ admits_recorded Ack 1 (Event (Create 4) :: torn_record_shows).
Proof. by apply (torn_is_wrong D 40 (1, 15) shape_of_trees 20); [|vm_compute]. Qed.
