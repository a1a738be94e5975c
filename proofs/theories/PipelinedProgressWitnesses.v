(** What progress of the server with a pipeline needs. A server that never takes the next job during a flush
is one of them, so whatever keeps the server without a pipeline from answering keeps it, too. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk Progress ServedDiskScheduler ServedDiskPower
  ServedDiskProgress ServedDiskProgressWitnesses LegDiskProgressWitnesses TreeRecoveryWitnesses.
From LogDisk Require Import ProvedDiskMachine ProvedDiskExecution ProvedTreeDiskTheorem
  ProvedTreeDiskExecution
  ProvedDiskAnswers ProvedTreeDiskAnswers PipelinedMachine SparePlaces PipelinedProgress.
From LogDisk Require DiskMachineProgress DiskMachineShape.
Import DiskMachine(programs, machine).

Section Alone.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : programs Y U) (spare : Y → nat → bool).
Context (places_for : Y → nat → option (list nat)) (collecting : U) (most longest : nat).
Context (weather : machine Y → machine Y → Prop) (weather_same : ∀ z z1, weather z z1 → z1 = z).
Local Notation turn := (pipelined_turn D spare places_for collecting most longest).
Local Notation serves := (server_turn (device_turn D places_for collecting) (next_job most)).

Lemma alone_ends well id q n k z js w a :
  ends_well (pipelined_weather weather (λ _, True)) turn (is_answered well id q) n
    (Server (OneJob z, k) js w a) →
  ends_well (server_weather weather (λ _, True)) serves (is_answered well id q) n (Server z js w a).
Proof.
  revert k z js w a. induction n as [|n IH]; intros k z js w a Hends; [done|].
  intros s1 Hs1. pose proof Hs1 as Hcalm. inversion Hs1 as [? z1 ? ? more ? Hz1 _]; subst.
  pose proof (weather_same _ _ Hz1) as ->.
  destruct (Hends (Server (OneJob z, k) js (w ++ more) a)) as [Hsome Hall]; [by split; [constructor|]|].
  split.
  - destruct Hsome as (es&p&Hturn). inversion Hturn; subst; [by do 2 eexists|].
    do 2 eexists. by apply GoesOn.
  - intros es [z2 js2 w2 a2] Hturn. assert (es = []) as -> by by destruct Hturn.
    destruct (Hall [] (Server (OneJob z2, k) js2 w2 a2)) as [Hg|[_ Hrest]]; [by apply TurnAlone|by left|].
    right. split; [done|by eapply IH].
Qed.

Lemma never_pipelined (well : answer → Prop) q z : is_open_here z = true →
  never_on_device D places_for collecting weather (next_job most) well q z → ∀ n k,
  ¬ ends_well (pipelined_weather weather (λ _, True)) turn (is_answered well 0 q) n
    (Server (OneJob z, k) [] [(0, q)] []).
Proof.
  intros Ho Hnever n k Hends%alone_ends. apply (Hnever n).
  eapply (open_ends_iff _ _ is_open_here (DiskMachineProgress.recovery_turn D)); [| | |done|exact Hends].
  - intros j z1 os z2. by destruct 1; try destruct j.
  - intros z1 es z2. by destruct 1.
  - by intros z1 z2 ->%weather_same.
Qed.
End Alone.

#[local] Existing Instance untorn.
Local Notation assumed := DiskMachineProgress.assumed.

(** The request that waits is never answered so. *)
Definition never_answered `{!blocks} {torn : tearing block} {Y U} (D : programs Y U) spare places_for
  collecting
    weather (well : answer → Prop) q z : Prop := ∀ longest n k,
  ¬ ends_well (pipelined_weather weather (λ _, True)) (pipelined_turn D spare places_for collecting 10
    longest)
    (is_answered well 0 q) n (Server (OneJob z, k) [] [(0, q)] []).

Lemma formatted_open `{!blocks} {torn : tearing block} {Y U} (D : programs Y U) trees g z :
  DiskMachineShape.formatted_as D trees g z → is_open_here z = true.
Proof. by intros (f&y&_&_&->). Qed.

Theorem pipelined_snapshots_run_out : ∃ z,
  DiskMachineShape.formatted_as (@proved_programs small) (0, 0) (Geometry 4 2 2 6 2 0) z ∧
  never_answered (@proved_programs small) spare_address places_for Collect assumed (λ r, r = Ok)
    one_snapshot z.
Proof.
  destruct served_snapshots_run_out as (z&Hz&Hnever). exists z. split; [done|]. intros longest n k.
  apply never_pipelined; [by intros ?? [-> _]|by eapply formatted_open|exact Hnever].
Qed.

Theorem tree_pipelined_snapshots_run_out : ∃ z,
  DiskMachineShape.formatted_as (@tree_programs small 1) (1, 15) (Geometry 4 2 6 8 2 0) z ∧
  never_answered (@tree_programs small 1) tree_spare_address tree_places_for (ProvedTreeDisk.Keep Collect)
    assumed
    (λ r, r = Ok) one_snapshot z.
Proof.
  destruct tree_served_snapshots_run_out as (z&Hz&Hnever). exists z. split; [done|]. intros longest n k.
  apply never_pipelined; [by intros ?? [-> _]|by eapply formatted_open|exact Hnever].
Qed.

Theorem pipelined_requests_need_digests : @blocks_laws undigested ∧ ∃ z,
  DiskMachineShape.formatted_as (@proved_programs undigested) (0, 0) shape_of_small z ∧
  never_answered (@proved_programs undigested) spare_address places_for Collect (λ z z', z' = z) (λ _, True)
    undigested_block z.
Proof.
  destruct served_requests_need_digests as [? (z&Hz&Hnever)]. split; [done|]. exists z. split; [done|].
  intros longest n k. apply never_pipelined; [done|by eapply formatted_open|exact Hnever].
Qed.

Theorem tree_pipelined_requests_need_digests : @blocks_laws undigested ∧ ∃ z,
  DiskMachineShape.formatted_as (@tree_programs undigested 1) (1, 15) shape_of_trees z ∧
  never_answered (@tree_programs undigested 1) tree_spare_address tree_places_for (ProvedTreeDisk.Keep
    Collect)
    (λ z z', z' = z) (λ _, True) undigested_block z.
Proof.
  destruct tree_served_requests_need_digests as [? (z&Hz&Hnever)]. split; [done|]. exists z. split; [done|].
  intros longest n k. apply never_pipelined; [done|by eapply formatted_open|exact Hnever].
Qed.
