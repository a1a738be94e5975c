(** Executions of the disk that is served, computed: the theorems of [ServedDiskTheorem.v] are not vacuous,
and need their hypotheses.

What the machine shows is computed as in the executions without a queue; a script says what the queue does
meanwhile ([acted]). *)
From stdpp Require Import gmap strings vector.
From LogDisk Require Parity ProvedTreeDiskExecution TreeLegDiskExecution.
From LogDisk Require Import VirtualDisk RecordedTrace RecordedImplementation Checker CheckerCorrect Medium
  Codec ByteBlocks ProvedDisk ProvedDiskRequests ProvedDiskInvariant ProvedDiskMachine ProvedDiskExecution
  ProvedTreeDiskInvariant ProvedTreeDiskTheorem.
From LogDisk Require Import Devices Leg LegCorrect LegCode LegDiskMachine LegDiskExecution LegDiskRaid.
From LogDisk Require Import OverlappingDisk OverlappingDiskQueue OverlappingDiskQueueRuns ServedDiskTheorem.
Import ProvedTreeDiskExecution(shape_of_trees).
Import DiskMachine(programs, disk_machine).
Local Open Scope string_scope.

Local Instance small_eq_dec : EqDecision (@block small) := (_ : EqDecision (list ByteBlocks.byte)).
Local Instance two_pieces_eq_dec : EqDecision (@block two_pieces) :=
  (_ : EqDecision (vec (vec Parity.byte 40) 2)).
Local Instance forgetful_eq_dec : EqDecision (@block forgetful) := (_ : EqDecision (list nat)).
Local Instance colliding_eq_dec : EqDecision (@block colliding) := (_ : EqDecision (list ByteBlocks.byte)).

(** A history that the queue shows in front of a new disk of so many blocks. *)
Definition served_shows {V} (M : recorded_implementation V) (blocks : nat) (h : list (moment V)) : Prop :=
  ∃ c tr q, recorded_fresh M blocks c ∧ queue_run (one_by_one M) (in_front M c) h tr q.

(** ** On one device *)

(** Two writes in flight are performed together and answered. A third one is performed, and its answer is lost
with the power, which fails while two more are performed together, and again in a write that is performed
alone. The two happened: their record survived. A read ends it. *)
Definition device_life : list (@event_in_life small upkeep) :=
  [AskGroup [(0, [data 1]); (1, [data 2])] [0; 1]; Ask (DoWrite 3 [data 6]) [5];
   CutInGroup [(0, [data 3]); (2, [data 4])] [2; 3] 9 KeepAll;
   CutIn (DoWrite 1 [data 5]) [4] 1 KeepAll; Ask (DoRead Live 0 4) []].
Definition device_script : list (queue_act (@block small)) :=
  [Calls 0 (Write 0 [data 1] Ok); Calls 1 (Write 1 [data 2] Ok); Calls 2 (Write 3 [data 6] CutShort);
   Serves 0; Serves 0; Answers 1; Answers 0; ServesUnanswered 0;
   Calls 3 (Write 0 [data 3] UnknownOutcome); Calls 4 (Write 2 [data 4] UnknownOutcome); Serves 0; Serves 0;
   Tells; Tells; Calls 5 (Write 1 [data 5] CutShort); CutsServing 0;
   Calls 6 (Read Live 0 4 Ok [data 3; data 2; data 4; data 6]); Serves 0; Answers 0].
Definition device_shows : list (moment (@block small)) :=
  [Called 0 (Event (Write 0 [data 1] Ok)); Called 1 (Event (Write 1 [data 2] Ok));
   Called 2 (Event (Write 3 [data 6] CutShort)); Answered 0; Answered 1;
   Called 3 (Event (Write 0 [data 3] UnknownOutcome)); Called 4 (Event (Write 2 [data 4] UnknownOutcome));
   Alone (Event (Crash CutShort)); Alone (Event (Crash Ok));
   Called 5 (Event (Write 1 [data 5] CutShort)); Alone (Event (Crash Ok));
   Called 6 (Event (Read Live 0 4 Ok [data 3; data 2; data 4; data 6])); Answered 6].

#[local] Existing Instances behind_the_log tears_dec zeroes sealed_tears_dec.

Lemma device_runs {Y U} (D : programs Y U) trees g es acts h : @torn_unread small _ g →
  (tr ← life D trees g es; acted acts [] [] (Event <$> tr)) = Some h →
  served_shows (disk_machine (H := small) D) (disk_blocks g) h.
Proof.
  intros Hg (tr&Hlife&Hacts)%bind_Some. apply life_shows in Hlife as (x&x'&Hx&Hs); [|done].
  apply shows_as_recorded in Hs. eapply acted_in_front in Hacts as (tr'&q&Hq); [|exact Hs].
  by exists x, tr', q.
Qed.

Theorem served_life_exists : served_shows (@proved_disk small _) 4 device_shows.
Proof.
  apply (device_runs proved_programs (0, 0) shape_of_small device_life device_script); [|by vm_compute].
  apply small_unread; simpl; lia.
Qed.

(** ** On a leg *)

Lemma leg_runs `{!blocks, !EqDecision block} {C} `{!cutting block C} {torn : tearing block} {Y U}
    (D : programs Y U) size count trees g es acts h : torn_unread g →
  (tr ← leg_life D size count trees g es; acted acts [] [] tr) = Some h →
  served_shows (leg_disk D size count) (disk_blocks g) h.
Proof.
  intros Hg (tr&Hlife&Hacts)%bind_Some. apply leg_life_lives in Hlife as (z&z'&Hz&Hs); [|done].
  apply leg_disk_lives in Hs. eapply acted_in_front in Hacts as (tr'&q&Hq); [|exact Hs].
  by exists z, tr', q.
Qed.

Section Mirrors.
Local Instance mirrored `{blocks} : cutting block block := mirrors zero_block.
#[local] Existing Instance untorn.

(** Two writes in flight are performed together. Device 0 fails in the third one, while a read waits. Device 1
fails: a read is answered that its data are lost, a write is of unknown outcome. It comes back, while a read
waits. The power fails while two writes are performed together and one waits; the two happened, since their
record survived. Device 0 comes back and is copied to, and what is read then is read from it alone. *)
Definition mirrors_life : list (@LegDiskExecution.happening small (@block small) upkeep) :=
  [AsksAll [(0, [data 1]); (1, [data 2])] [0; 1]; Breaks (DoWrite 2 [data 3]) [2] 2 0;
   Asks (DoRead Live 0 3) []; Fails 1; Asks (DoRead Live 0 1) []; Asks (DoWrite 0 [data 4]) [4];
   Returns 1; Opens; Asks (DoRead Live 0 3) [];
   CutsAll [(0, [data 5]); (1, [data 6])] [3; 5] 12; Asks (DoRead Live 0 3) [];
   Returns 0; Settles; Fails 1; Asks (DoRead Live 0 3) []].
Definition mirrors_script : list (queue_act (@block small)) :=
  [Calls 0 (Write 0 [data 1] Ok); Calls 1 (Write 1 [data 2] Ok); Calls 2 (Write 2 [data 3] Ok);
   Calls 3 (Read Live 0 3 Ok [data 1; data 2; data 3]); Serves 0; Serves 0; Answers 1;
   Tells; Serves 0; Answers 0; Calls 4 (Read Live 0 1 (Refused DataLost) []); Serves 0; Answers 1; Answers 0;
   Calls 5 (Write 0 [data 4] UnknownOutcome); Tells; Serves 0; Serves 0; Answers 0; Answers 0;
   Calls 6 (Read Live 0 3 Ok [data 1; data 2; data 3]); Tells; Serves 0; Answers 0;
   Calls 7 (Write 0 [data 5] UnknownOutcome); Calls 8 (Write 2 [data 9] CutShort);
   Calls 9 (Write 1 [data 6] UnknownOutcome); Serves 0; Serves 1; Tells; Tells;
   Calls 10 (Read Live 0 3 Ok [data 5; data 6; data 3]); Serves 0; Tells; Answers 0;
   Calls 11 (Read Live 0 3 Ok [data 5; data 6; data 3]); Tells; Tells; Serves 0; Answers 0].
Definition mirrors_shows : list (moment (@block small)) :=
  [Called 0 (Event (Write 0 [data 1] Ok)); Called 1 (Event (Write 1 [data 2] Ok));
   Called 2 (Event (Write 2 [data 3] Ok)); Called 3 (Event (Read Live 0 3 Ok [data 1; data 2; data 3]));
   Answered 0; Alone (Fail 0 Ok); Answered 2; Called 4 (Event (Read Live 0 1 (Refused DataLost) []));
   Answered 1; Answered 3; Called 5 (Event (Write 0 [data 4] UnknownOutcome)); Alone (Fail 1 Ok);
   Answered 5; Answered 4; Called 6 (Event (Read Live 0 3 Ok [data 1; data 2; data 3]));
   Alone (Return 1 Ok); Answered 6; Called 7 (Event (Write 0 [data 5] UnknownOutcome));
   Called 8 (Event (Write 2 [data 9] CutShort)); Called 9 (Event (Write 1 [data 6] UnknownOutcome));
   Alone (Event (Crash CutShort)); Alone (Event (Crash Ok));
   Called 10 (Event (Read Live 0 3 Ok [data 5; data 6; data 3])); Alone (Return 0 Ok); Answered 10;
   Called 11 (Event (Read Live 0 3 Ok [data 5; data 6; data 3])); Alone (Settle Ok); Alone (Fail 1 Ok);
   Answered 11].

Theorem served_mirrors_life_exists : served_shows (leg_disk proved_programs 20 2) 4 mirrors_shows.
Proof.
  apply (leg_runs proved_programs 20 2 (0, 0) shape_of_small mirrors_life mirrors_script);
    [apply ProvedDiskInvariant.untorn_unread|by vm_compute].
Qed.
End Mirrors.

(** With trees on RAID-5: a snapshot is taken while a write waits that the power cuts then. Device 0 fails in
the next one, a second device while a read waits; it comes back. The first one is copied to, another device
takes the place of a third while a deletion waits. *)
Definition raid5_life : list (happening T.upkeep) :=
  [AsksAll [(0, [content 1]); (1, [content 2])] [0; 1]; Asks (DoSnapshot "s") [];
   Cuts (DoWrite 0 [content 3]) [2] 2; Breaks (DoWrite 0 [content 4]) [4] 3 0; Asks (DoRead Live 0 2) [];
   Fails 2; Asks (DoRead Live 0 2) []; Returns 2; Opens; Asks (DoRead Live 0 2) [];
   Returns 0; Settles; Gets 1 (inr Parity.zeroes); Settles; Fails 2; Asks (DoRead (Named "s") 0 2) [];
   Asks (DoDelete "s") []].
Definition raid5_script : list (queue_act (@block two_pieces)) :=
  let reads r data := Read Live 0 2 r data in
  [Calls 0 (Write 0 [content 1] Ok); Calls 1 (Snapshot "s" Ok); Calls 2 (Write 0 [content 3] CutShort);
   Calls 3 (Write 1 [content 2] Ok); Serves 0; Serves 2; Serves 0; Answers 2; Answers 0; Answers 0;
   CutsServing 0; Calls 4 (Write 0 [content 4] Ok); Calls 5 (reads Ok [content 4; content 2]); Tells;
   Serves 0; Serves 0; Calls 6 (reads (Refused DataLost) []); Tells; Serves 0; Answers 0; Answers 0;
   Answers 0; Calls 7 (reads Ok [content 4; content 2]); Tells; Serves 0; Answers 0; Tells; Tells;
   Calls 8 (Delete "s" Ok); Tells; Tells; Calls 9 (Read (Named "s") 0 2 Ok [content 1; content 2]); Tells;
   Serves 1; Serves 0; Answers 0; Answers 0].
Definition raid5_shows : list (moment (@block two_pieces)) :=
  let reads r data := Event (Read Live 0 2 r data) in
  [Called 0 (Event (Write 0 [content 1] Ok)); Called 1 (Event (Snapshot "s" Ok));
   Called 2 (Event (Write 0 [content 3] CutShort)); Called 3 (Event (Write 1 [content 2] Ok));
   Answered 0; Answered 1; Answered 3; Alone (Event (Crash Ok));
   Called 4 (Event (Write 0 [content 4] Ok)); Called 5 (reads Ok [content 4; content 2]);
   Alone (Fail 0 Ok); Called 6 (reads (Refused DataLost) []); Alone (Fail 2 Ok);
   Answered 6; Answered 5; Answered 4; Called 7 (reads Ok [content 4; content 2]); Alone (Return 2 Ok);
   Answered 7; Alone (Return 0 Ok); Alone (Settle Ok); Called 8 (Event (Delete "s" Ok));
   Alone (Replace 1 Ok); Alone (Settle Ok); Called 9 (Event (Read (Named "s") 0 2 Ok [content 1; content 2]));
   Alone (Fail 2 Ok); Answered 8; Answered 9].

Theorem served_raid5_life_exists :
  served_shows (@leg_disk two_pieces _ (raid_of_two 1 5) (tears_from 5) _ _ (tree_programs 1) 40 3) 4
    raid5_shows.
Proof.
  apply (leg_runs (cutting0 := raid_of_two 1 5) (torn := tears_from 5) (tree_programs 1) 40 3 (1, 15)
    shape_of_trees raid5_life raid5_script); [|by vm_compute].
  apply tears_from_unread. simpl. lia.
Qed.

(** ** What the theorems need: a queue in front of the disk does not help *)

Lemma served_is_wrong `{!blocks, !EqDecision block} {C} `{!cutting block C} {torn : tearing block} {Y U}
    (D : programs Y U) size count tolerates n z tr z' :
  formatted D size count n z → lives D size count z tr z' →
  ¬ admits_recorded Ack tolerates (Event (Create n) :: tr) →
  ¬ implements_overlapping (leg_disk D size count) Ack tolerates.
Proof.
  intros Hz Hlives Hwrong HM%queue_exact. apply Hwrong, (HM n z tr z' Hz). by apply leg_disk_lives.
Qed.

(** Words that come back as others. *)
Theorem served_round_trip_needed : ¬ implements_overlapping (@proved_disk forgetful _) Ack 0.
Proof. by intros ?%served_device_implements%round_trip_needed. Qed.

Theorem served_tree_round_trip_needed : ¬ implements_overlapping (@proved_tree_disk forgetful _ 1) Ack 0.
Proof. by intros ?%served_device_implements%ProvedTreeDiskExecution.tree_round_trip_needed. Qed.

(** Digests that collide. *)
Theorem served_digest_needed : ¬ implements_overlapping (@proved_disk colliding _) Ack 0.
Proof. by intros ?%served_device_implements%digest_needed. Qed.

Theorem served_tree_digest_needed : ¬ implements_overlapping (@proved_tree_disk colliding _ 1) Ack 0.
Proof. by intros ?%served_device_implements%ProvedTreeDiskExecution.tree_digest_needed. Qed.

(** On mirrors. *)
Theorem served_round_trip_needed_on_mirrors :
  ¬ implements_overlapping (leg_disk (cutting0 := LegDiskExecution.mirrored) (H := forgetful)
    (torn := Medium.untorn) proved_programs 20 2) Ack 1.
Proof.
  intros HM%queue_exact. apply round_trip_needed_on_mirrors. intros z z' tr Hz Hlives.
  apply (HM 10 z tr z' Hz). by apply leg_disk_lives.
Qed.

Theorem served_tree_round_trip_needed_on_mirrors :
  ¬ implements_overlapping (leg_disk (cutting0 := TreeLegDiskExecution.mirrored) (H := forgetful)
    (torn := Medium.untorn) (tree_programs 1) 40 2) Ack 1.
Proof.
  intros HM%queue_exact. apply TreeLegDiskExecution.tree_round_trip_needed_on_mirrors.
  intros z z' tr Hz Hlives.
  apply (HM 10 z tr z' Hz). by apply leg_disk_lives.
Qed.

(** A code that does not give back what was cut. *)
Theorem served_code_needed : ¬ implements_overlapping
  (@leg_disk two_pieces _ without_parity (tears_from 5) _ _ proved_programs 20 3) Ack 1.
Proof. destruct code_needed as (z&z'&Hz&Hlives&Hwrong). by eapply served_is_wrong. Qed.

Theorem served_tree_code_needed : ¬ implements_overlapping
  (@leg_disk two_pieces _ without_parity (tears_from 5) _ _ (tree_programs 1) 40 3) Ack 1.
Proof.
  destruct TreeLegDiskExecution.tree_code_needed as (z&z'&Hz&Hlives&Hwrong). by eapply served_is_wrong.
Qed.

(** Blocks of several pieces that are thought not to tear. *)
Theorem served_tearing_needed : ¬ implements_overlapping
  (@leg_disk two_pieces _ (raid_of_two 1 0) untorn _ _ proved_programs 20 3) Ack 1.
Proof. destruct tearing_needed as (z&z'&Hz&Hlives&Hwrong). by eapply served_is_wrong. Qed.

Theorem served_tree_tearing_needed : ¬ implements_overlapping
  (@leg_disk two_pieces _ (raid_of_two 1 0) untorn _ _ (tree_programs 1) 40 3) Ack 1.
Proof.
  destruct TreeLegDiskExecution.tree_tearing_needed as (z&z'&Hz&Hlives&Hwrong). by eapply served_is_wrong.
Qed.

(** A record of the members that forgets who was dropped. *)
Theorem served_record_needed :
  with_an_old_record proved_programs 20 (0, 0) shape_of_small = Some stale_read ∧
  ¬ admits_overlapping ByRequest Ack 1 (Alone <$> Event (Create 4) :: stale_read).
Proof. split; [apply record_needed|]. intros Had%admits_alone. by apply stale_read_is_wrong. Qed.

Theorem served_tree_record_needed :
  with_an_old_record (tree_programs 1) 40 (1, 15) shape_of_trees = Some stale_read ∧
  ¬ admits_overlapping ByRequest Ack 1 (Alone <$> Event (Create 4) :: stale_read).
Proof.
  split; [apply TreeLegDiskExecution.tree_record_needed|]. intros Had%admits_alone.
  by apply stale_read_is_wrong.
Qed.
