(** The disks with write-back on a leg: with whole maps, and with trees; on any leg, on mirrors and with
parity; also behind a queue. *)
From stdpp Require Import gmap strings vector.
From LogDisk Require Parity ProvedTreeDisk.
From LogDisk Require Import VirtualDisk RecordedTrace RecordedImplementation Medium Codec ProvedDisk.
From LogDisk Require Import ProvedDiskMachine ProvedDiskRefinement ProvedTreeDiskTheorem.
From LogDisk Require Import OverlappingDisk OverlappingDiskQueue.
From LogDisk Require Import DiskMachine Leg LegCorrect LegCode WriteBack WriteBackPlaces WriteBackLeg
  WriteBackLegRefinement.

Section Disks.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} (most size count : nat).

Definition write_back_leg_disk : recorded_implementation block :=
  write_back_leg proved_programs shape (delay_room most) spares_places size count.
Definition write_back_tree_leg_disk (bits : nat) : recorded_implementation block :=
  write_back_leg (tree_programs bits) ProvedTreeDisk.shape (tree_delay_room most) tree_spares_places size
    count.

Context {laws : cutting_laws count} (pf : profile) (buffers : pf ≠ Ack).

Theorem write_back_leg_disk_refines :
  blocks_laws → implements_recorded write_back_leg_disk pf (count - fewest).
Proof using laws buffers.
  intros blocks_come_back. by apply (write_back_leg_refines _ _ _ _ _ _ _ _ proved_programs_safe).
Qed.

Theorem write_back_tree_leg_disk_refines bits :
  blocks_laws → implements_recorded (write_back_tree_leg_disk bits) pf (count - fewest).
Proof using laws buffers.
  intros blocks_come_back.
  by apply (write_back_leg_refines _ _ _ _ _ _ _ _ (tree_programs_safe bits blocks_come_back)).
Qed.
End Disks.

(** Behind a queue. *)
Theorem served_write_back_leg_disk_refines `{!blocks, EqDecision block} {C} `{!cutting block C}
    {torn : tearing block} most size count pf :
  blocks_laws → cutting_laws count → pf ≠ Ack →
  implements_overlapping (write_back_leg_disk most size count) pf (count - fewest) ∧
  ∀ bits, implements_overlapping (write_back_tree_leg_disk most size count bits) pf (count - fewest).
Proof.
  intros laws code buffers. split; [|intros bits]; apply queue_exact;
    [by apply write_back_leg_disk_refines|by apply write_back_tree_leg_disk_refines].
Qed.

(** On mirrors, *)
Theorem write_back_mirrored_disk_refines `{!blocks} {torn : tearing block} most size count pf :
  let code := mirrors zero_block in
  blocks_laws → 0 < count → pf ≠ Ack →
  implements_recorded (write_back_leg_disk (cutting0 := code) most size count) pf (count - 1) ∧
  ∀ bits, implements_recorded (write_back_tree_leg_disk (cutting0 := code) most size count bits) pf
    (count - 1).
Proof.
  intros code laws Hcount buffers. pose proof (mirrors_laws zero_block count Hcount).
  split; [by apply (write_back_leg_disk_refines (cutting0 := code))|].
  intros bits. by apply (write_back_tree_leg_disk_refines (cutting0 := code)).
Qed.

(** and with parity. *)
Theorem write_back_raid_disk_refines `{!blocks} {torn : tearing block} {decided : ∀ a, Decision (tears a)}
    bytes k m (cut : block → vec (vec Parity.byte bytes) k) glue most size pf :
  let code := raid_leg bytes k m cut glue in
  blocks_laws → (∀ b, glue (cut b) = b) → 1 ≤ k → 1 ≤ m ≤ 2 → (m = 2 → k ≤ 255) → pf ≠ Ack →
  implements_recorded (write_back_leg_disk (cutting0 := code) most size (k + m)) pf m ∧
  ∀ bits, implements_recorded (write_back_tree_leg_disk (cutting0 := code) most size (k + m) bits) pf m.
Proof.
  intros code laws Hglue Hk Hm Hb buffers. pose proof (raid_leg_laws bytes k m cut glue Hglue Hk Hm Hb).
  pose proof (write_back_leg_disk_refines (cutting0 := code) most size (k + m)) as Hwhole.
  pose proof (write_back_tree_leg_disk_refines (cutting0 := code) most size (k + m)) as Htrees.
  simpl in Hwhole, Htrees. replace (k + m - k) with m in Hwhole, Htrees by lia.
  split; [by apply Hwhole|]. intros bits. by apply Htrees.
Qed.
