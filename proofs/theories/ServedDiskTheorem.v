(** The theorems about the disk that is served ([build/proved-disk serve]): the disk on one device or on a
leg, with whole maps or with trees, behind a queue.

Requests of many clients wait in a queue. The machine performs one at a time, or several writes at once
([one_by_one]: it shows what became of them one after the other). Answers are sent later, or are lost with
the power. [admits_overlapping] is the contract of [OverlappingDisk.v]: there is an order of what took effect,
each request between its call and its answer, that the contract admits under [Ack]. A request is one step of
this order ([ByRequest]).

What the machine may meet, and what is assumed, is what the theorem about the disk without the queue says
([ProvedDiskTheorem.v], [LegDiskTheorem.v]). On a leg this is more than the power:
- a device fails at any moment: while requests wait, while one or several are performed, while the power is
  off. It returns, is replaced, or is copied to between two requests of the machine, while others wait;
- while too few members answer, a read may be answered [DataLost], and any other request with an unknown
  outcome. The contract allows [DataLost] only while more devices have failed than the leg tolerates. Several
  writes at once end so too, and a power cut in them leaves each of unknown outcome.

Each theorem follows from [queue_exact]: behind a queue a disk implements the contract for requests that
overlap if and only if it implements the contract. *)
From stdpp Require Import vector.
From LogDisk Require Parity.
From LogDisk Require Import VirtualDisk RecordedTrace RecordedImplementation Medium Codec.
From LogDisk Require Import OverlappingDisk OverlappingDiskQueue.
From LogDisk Require Import DiskMachine ProvedDiskMachine ProvedDiskRefinement ProvedDiskTheorem
  ProvedTreeDiskTheorem.
From LogDisk Require Import Leg LegCorrect LegCode LegDiskMachine LegDiskRefinement LegDiskTheorem.

(** ** On one device *)

Lemma served_device `{Value V, EqDecision V} (M : implementation V) p n c h tr q :
  implements M p → fresh M n c → queue_run (one_by_one M) (in_front M c) h tr q →
  admits_overlapping ByRequest p 0 (Alone (Event (Create n)) :: h).
Proof. intros HM Hc. by eapply (queue_exact M), Hc; apply implements_as_recorded. Qed.

Lemma served_device_implements `{Value V, EqDecision V} (M : implementation V) p :
  implements_overlapping M p 0 → implements M p.
Proof.
  intros HM%queue_exact n c tr c' Hc Hs%shows_as_recorded.
  by apply (admits_recorded_events p 0 (Create n :: tr)), (HM n c _ c').
Qed.

Theorem served_disk_refines_contract `{blocks, EqDecision block} {torn : tearing block} n c h tr q :
  blocks_laws → fresh proved_disk n c → queue_run (one_by_one proved_disk) (in_front proved_disk c) h tr q →
  admits_overlapping ByRequest Ack 0 (Alone (Event (Create n)) :: h).
Proof. intros laws. by apply served_device, proved_disk_refines_contract. Qed.

Theorem served_tree_disk_refines_contract `{blocks, EqDecision block} {torn : tearing block} bits n c h tr q :
  blocks_laws → fresh (proved_tree_disk bits) n c →
  queue_run (one_by_one (proved_tree_disk bits)) (in_front (proved_tree_disk bits) c) h tr q →
  admits_overlapping ByRequest Ack 0 (Alone (Event (Create n)) :: h).
Proof. intros laws. by apply served_device, proved_tree_disk_refines_contract. Qed.

(** ** On a leg *)

Section Leg.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block}.
Context {Y U : Type} (D : programs Y U) (size count : nat).

(** The machine of [LegDiskMachine.v], as what may stand behind a queue. *)
Definition leg_disk : recorded_implementation block :=
  RecordedImplementation (machine C Y) (formatted D size count) (move D size count).

Lemma leg_disk_lives z tr z' : recorded_shows leg_disk z tr z' ↔ lives D size count z tr z'.
Proof.
  split.
  - induction 1 as [z|z es z1 tr z2 Hm _ IH]; [constructor|]. by apply (lives_step D size count z es z1).
  - induction 1 as [z|z es z1 tr z2 Hm _ IH]; [constructor|].
    by apply (recorded_shows_step leg_disk z es z1).
Qed.

Context `{!EqDecision block}.

(** Whatever number of failures it tolerates. *)
Lemma served_leg tolerates :
  (∀ n z tr z', formatted D size count n z → lives D size count z tr z' →
    admits_recorded Ack tolerates (Event (Create n) :: tr)) →
  implements_overlapping leg_disk Ack tolerates.
Proof.
  intros Hall. apply queue_exact. intros n z tr z' Hz Hlives.
  apply (Hall n z tr z' Hz). by apply leg_disk_lives.
Qed.

(** Any disk whose programs are crash safe, on any leg. *)
Lemma served_leg_disk_refines shape represents recoverable :
  crash_safe_programs D shape represents recoverable → cutting_laws count →
  implements_overlapping leg_disk Ack (count - fewest).
Proof. intros Hsafe code. apply served_leg. by eapply leg_disk_refines. Qed.
End Leg.

(** On mirrors, *)
Lemma served_on_mirrors `{!blocks, !EqDecision block} {torn : tearing block} {Y U} (D : programs Y U) shape
    represents recoverable size count :
  let code := mirrors zero_block in
  crash_safe_programs D shape represents recoverable → 0 < count →
  implements_overlapping (leg_disk (cutting0 := code) D size count) Ack (count - 1).
Proof.
  intros code Hsafe Hcount. apply (served_leg (cutting0 := code)). intros n z tr z'.
  by eapply refines_on_mirrors.
Qed.

(** and with parity. *)
Lemma served_on_raid `{!blocks, !EqDecision block} {torn : tearing block} {decided : ∀ a, Decision (tears a)}
    {Y U}
    (D : programs Y U) shape represents recoverable bytes k m (cut : block → vec (vec Parity.byte bytes) k)
    glue size :
  crash_safe_programs D shape represents recoverable → (∀ b, glue (cut b) = b) → 1 ≤ k → 1 ≤ m ≤ 2 →
  (m = 2 → k ≤ 255) →
  implements_overlapping (leg_disk (cutting0 := raid_leg bytes k m cut glue) D size (k + m)) Ack m.
Proof.
  intros Hsafe Hglue Hk Hm Hb. apply (served_leg (cutting0 := raid_leg bytes k m cut glue)).
  intros n z tr z'. by eapply refines_on_raid.
Qed.
