(** The server in front of a disk with a pipeline ([PipelinedMachine.v]): while the last flush of a job is
under way, it takes the next job of those that wait, and the disk runs it. The first job is answered when its
flush has ended. A run of this server is a run of the queue ([ServedDiskServer.v]), and the disk keeps the
contract, so what is served is the contract for requests that overlap. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk RecordedTrace RecordedImplementation Medium Codec ProvedDisk
  ProvedDiskRequests.
From LogDisk Require Import OverlappingDisk OverlappingDiskQueue ServedDiskScheduler ServedDiskProgress
  ServedDiskServer ServedDiskTheorem SplitFlush PipelinedMachine PipelinedDisk PipelinedDiskWitnesses.
From LogDisk Require Import ProvedDiskExecution.
Import DiskMachine(programs, Busy, Group).

Section Server.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : programs Y U) (spare : Y → nat → bool).
Context (places_for : Y → nat → option (list nat)) (collecting : U) (most : nat).
Implicit Types (j : job nat).

(** What is done for a job, and meanwhile for the next one. *)
Inductive pipeline_turn : job nat → pipeline Y → list outcome → pipeline Y → Prop :=
  | TurnsAlone j x os x' :
      device_turn D places_for collecting j x os x' → pipeline_turn j (OneJob x) os (OneJob x')
  | TurnsToFlush j x c y next w :
      pipeline_move D spare (OneJob x) [] (TwoJobs c y next w) →
      pipeline_turn j (OneJob x) [] (TwoJobs c y next w)
  | TurnsNext j c y next w next' w' :
      pipeline_move D spare (TwoJobs c y next w) [] (TwoJobs c y next' w') →
      pipeline_turn j (TwoJobs c y next w) [] (TwoJobs c y next' w')
  | EndsOneFlushed id q p y data next w :
      last_flush (Busy q p) = Some ([event_of q Ok data], y) →
      pipeline_turn (Single id q) (TwoJobs (Busy q p) y next w) [Some [(Ok, data)]]
        (OneJob (next, end_flush w))
  | EndsTogetherFlushed ws p y next w :
      last_flush (Group ws.*2 p) = Some (writes_shown ws.*2 Ok, y) →
      pipeline_turn (Together ws) (TwoJobs (Group ws.*2 p) y next w)
        [Some (replicate (length ws) (Ok, []))] (OneJob (next, end_flush w)).

Lemma pipeline_job_shown j x os x' :
  pipeline_turn j x os x' → recorded_shows (pipelined D spare) x (shown_by j os) x'.
Proof.
  assert (∀ x es x', pipeline_move D spare x es x' →
    recorded_shows (pipelined D spare) x (Event <$> es) x') as Hone.
  { intros x1 es x2 Hmove. apply shows_as_recorded. by apply (shows_one (pipelined D spare)). }
  destruct 1 as [j x os x' Hturn|j x c y next w Hmove|j c y next w next' w' Hmove|id q p y data next w Hlast
    |ws p y next w Hlast].
  - apply device_job_shown, as_recorded_shows in Hturn as (tr&->&Hs).
    apply (shows_as_recorded (pipelined D spare)). by apply shows_pipelined.
  - by apply (Hone _ []).
  - by apply (Hone _ []).
  - apply (Hone _ [_]). by apply FlushEnds.
  - rewrite writes_shown_by. apply Hone. by apply FlushEnds.
Qed.

Lemma pipeline_job_answers j x answers x' :
  pipeline_turn j x [Some answers] x' → length answers = length (requests_of j).
Proof.
  inversion 1; subst; [by eapply device_job_answers|done|].
  rewrite replicate_length. simpl. by rewrite fmap_length.
Qed.

Theorem pipelined_server_run `{!EqDecision block} x hs s :
  server_run (pipelined D spare) pipeline_turn (next_job most) (Server x [] [] []) hs s →
  ∃ tr k, queue_run (OverlappingDiskQueue.one_by_one (pipelined D spare)) (in_front (pipelined D spare) x)
    (history_of hs) tr k.
Proof.
  intros Hrun. destruct (server_run_queue (pipelined D spare) pipeline_turn (next_job most) pipeline_job_shown
    pipeline_job_answers (next_job_permutes most) _ _ _ [] Hrun) as (tr&w&Hk); [constructor|done|]. by eauto.
Qed.
End Server.

Theorem served_pipelined_disk_refines `{blocks, EqDecision block} {torn : tearing block} n c h tr q :
  blocks_laws → fresh pipelined_disk n c →
  queue_run (OverlappingDiskQueue.one_by_one pipelined_disk) (in_front pipelined_disk c) h tr q →
  admits_overlapping ByRequest Ack 0 (Alone (Event (Create n)) :: h).
Proof. intros laws. by apply served_device, pipelined_disk_refines. Qed.

Theorem served_pipelined_tree_disk_refines `{blocks, EqDecision block} {torn : tearing block} bits n c
    h tr q :
  blocks_laws → fresh (pipelined_tree_disk bits) n c →
  queue_run (OverlappingDiskQueue.one_by_one (pipelined_tree_disk bits))
    (in_front (pipelined_tree_disk bits) c) h tr q →
  admits_overlapping ByRequest Ack 0 (Alone (Event (Create n)) :: h).
Proof. intros laws. by apply served_device, pipelined_tree_disk_refines. Qed.

(** ** What they need: blocks that give back what was put in, digests, and places that are spare *)

Local Instance forgetful_eq_dec : EqDecision (@block forgetful) := (_ : EqDecision (list nat)).
Local Instance colliding_eq_dec : EqDecision (@block colliding) := (_ : EqDecision (list ByteBlocks.byte)).
Local Instance small_eq_dec : EqDecision (@block small) := (_ : EqDecision (list ByteBlocks.byte)).
#[local] Existing Instance behind_the_log.

Theorem served_pipelined_round_trip_needed : ¬ implements_overlapping (@pipelined_disk forgetful _) Ack 0.
Proof. by intros ?%served_device_implements%pipelined_round_trip_needed. Qed.

Theorem served_pipelined_digest_needed : ¬ implements_overlapping (@pipelined_disk colliding _) Ack 0.
Proof. by intros ?%served_device_implements%pipelined_digest_needed. Qed.

Theorem served_pipelined_tree_round_trip_needed :
  ¬ implements_overlapping (@pipelined_tree_disk forgetful _ 1) Ack 0.
Proof. by intros ?%served_device_implements%pipelined_tree_round_trip_needed. Qed.

Theorem served_pipelined_tree_digest_needed :
  ¬ implements_overlapping (@pipelined_tree_disk colliding _ 1) Ack 0.
Proof. by intros ?%served_device_implements%pipelined_tree_digest_needed. Qed.

Theorem served_spare_places_needed :
  ¬ implements_overlapping (pipelined (@ProvedDiskMachine.proved_programs small) (λ _ _, true)) Ack 0.
Proof. intros Hall%served_device_implements. by apply spare_places_needed. Qed.
