(** The disks with write-back behind a queue: the contract for requests that overlap, with the profiles
[Prefix] and [Block]. After a power cut there is a prefix of the order of what took effect, which has all that
was answered before the last flush was called. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk RecordedTrace RecordedImplementation Medium Codec ByteBlocks.
From LogDisk Require Import OverlappingDisk OverlappingDiskQueue ServedDiskTheorem.
From LogDisk Require Import ProvedDiskExecution WriteBackDisk WriteBackRefinement WriteBackWitnesses.

Theorem served_write_back_disk_refines `{blocks, EqDecision block} {torn : tearing block} most pf n c h
    tr q :
  blocks_laws → pf ≠ Ack → fresh (write_back_disk most) n c →
  queue_run (one_by_one (write_back_disk most)) (in_front (write_back_disk most) c) h tr q →
  admits_overlapping ByRequest pf 0 (Alone (Event (Create n)) :: h).
Proof. intros laws buffers. by apply served_device, write_back_disk_refines. Qed.

Theorem served_write_back_tree_disk_refines `{blocks, EqDecision block} {torn : tearing block} most bits
    pf n c h tr q :
  blocks_laws → pf ≠ Ack → fresh (write_back_tree_disk most bits) n c →
  queue_run (one_by_one (write_back_tree_disk most bits)) (in_front (write_back_tree_disk most bits) c)
    h tr q →
  admits_overlapping ByRequest pf 0 (Alone (Event (Create n)) :: h).
Proof. intros laws buffers. by apply served_device, write_back_tree_disk_refines. Qed.

(** ** What they need *)

Local Instance forgetful_eq_dec : EqDecision (@block forgetful) := (_ : EqDecision (list nat)).
Local Instance colliding_eq_dec : EqDecision (@block colliding) := (_ : EqDecision (list byte)).
#[local] Existing Instance behind_the_log.

Theorem served_write_back_round_trip_needed :
  ¬ implements_overlapping (@write_back_disk forgetful _ 3) Prefix 0.
Proof. by intros ?%served_device_implements%write_back_round_trip_needed. Qed.

Theorem served_write_back_digest_needed :
  ¬ implements_overlapping (@write_back_disk colliding _ 3) Prefix 0.
Proof. by intros ?%served_device_implements%write_back_digest_needed. Qed.

Theorem served_write_back_tree_round_trip_needed :
  ¬ implements_overlapping (@write_back_tree_disk forgetful _ 3 1) Prefix 0.
Proof. by intros ?%served_device_implements%write_back_tree_round_trip_needed. Qed.

Theorem served_write_back_tree_digest_needed :
  ¬ implements_overlapping (@write_back_tree_disk colliding _ 3 1) Prefix 0.
Proof. by intros ?%served_device_implements%write_back_tree_digest_needed. Qed.
