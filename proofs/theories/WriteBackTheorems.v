(** What is proved, as in [Theorems.v]: of the disks with write-back.

A write is answered before it is on the device, as long as no more than [most] blocks are delayed. A flush
puts all delayed writes on the device, in one log record; so does an upkeep, which comes before every other
request that changes something ([WriteBack.v]). The machine, what it may meet and what is assumed are those
of [ProvedDiskTheorem.v], of programs that do this. *)
From stdpp Require Import gmap strings vector.
From LogDisk Require Import VirtualDisk RecordedTrace RecordedImplementation OverlappingDisk.
From LogDisk Require Medium Codec ProvedDisk OverlappingDiskQueue DiskMachine ProvedDiskAnswers ProvedTreeDisk
  ProvedTreeDiskCost ProvedTreeDiskBounds ProvedTreeDiskTheorem ProvedDiskExecution ProvedDiskBounds
  ProvedDiskMachine LegDiskMachine LegDiskProgress Progress.
From LogDisk Require WriteBack WriteBackDisk WriteBackRefinement WriteBackServed WriteBackProgress
  WriteBackWitnesses.
From LogDisk Require Parity Leg LegCorrect LegCode WriteBackLegDisk WriteBackLegProgress
  WriteBackLegWitnesses.

Module Delayed.
Import Medium Codec ProvedDisk WriteBackDisk.

(** 23. After a power cut there is what a prefix of the operations made, which has all that was answered
before the last flush, and every snapshot operation that was answered. So it is the contract under both
profiles that allow this: [Prefix], and [Block]. With whole maps, *)
Theorem write_back_disk_refines_contract `{blocks} {torn : tearing block} most p :
  blocks_laws → p ≠ Ack → implements (write_back_disk most) p.
Proof. intros laws buffers. by apply WriteBackRefinement.write_back_disk_refines. Qed.

(** and with trees; *)
Theorem write_back_tree_disk_refines_contract `{blocks} {torn : tearing block} most bits p :
  blocks_laws → p ≠ Ack → implements (write_back_tree_disk most bits) p.
Proof. intros laws buffers. by apply WriteBackRefinement.write_back_tree_disk_refines. Qed.

(** also behind a queue. *)
Theorem served_write_back_disk_refines_contract `{blocks, EqDecision block} {torn : tearing block} most
    p n c h tr q :
  let disk := write_back_disk most in blocks_laws → p ≠ Ack → fresh disk n c →
  OverlappingDiskQueue.queue_run (OverlappingDiskQueue.one_by_one disk)
    (OverlappingDiskQueue.in_front disk c) h tr q →
  admits_overlapping ByRequest p 0 (Alone (Event (Create n)) :: h).
Proof. apply WriteBackServed.served_write_back_disk_refines. Qed.

Theorem served_write_back_tree_disk_refines_contract `{blocks, EqDecision block} {torn : tearing block}
    most bits p n c h tr q :
  let disk := write_back_tree_disk most bits in blocks_laws → p ≠ Ack → fresh disk n c →
  OverlappingDiskQueue.queue_run (OverlappingDiskQueue.one_by_one disk)
    (OverlappingDiskQueue.in_front disk c) h tr q →
  admits_overlapping ByRequest p 0 (Alone (Event (Create n)) :: h).
Proof. apply WriteBackServed.served_write_back_tree_disk_refines. Qed.

(** 23. On a leg of several devices. The machine and what it may meet are those of [LegDiskTheorem.v]: devices
fail between any two I/Os, come back, are replaced and copied to, and blocks rot. While too few members answer
the machine forgets its memory, but keeps what is delayed ([WriteBackLeg.v]). With whole maps, *)
Import Leg LegCorrect LegCode WriteBackLegDisk.

Theorem write_back_leg_disk_refines_contract `{blocks} {C} `{cutting block C} {torn : tearing block} most size
    count p :
  blocks_laws → cutting_laws count → p ≠ Ack →
  implements_recorded (write_back_leg_disk most size count) p (count - fewest).
Proof. intros laws code buffers. by apply WriteBackLegDisk.write_back_leg_disk_refines. Qed.

(** and with trees. *)
Theorem write_back_tree_leg_disk_refines_contract `{blocks} {C} `{cutting block C} {torn : tearing block} most
    size count bits p :
  blocks_laws → cutting_laws count → p ≠ Ack →
  implements_recorded (write_back_tree_leg_disk most size count bits) p (count - fewest).
Proof. intros laws code buffers. by apply WriteBackLegDisk.write_back_tree_leg_disk_refines. Qed.

(** Both on mirrors, *)
Theorem write_back_mirrored_disk_refines_contract `{blocks} {torn : tearing block} most size count p :
  let code := mirrors zero_block in
  blocks_laws → 0 < count → p ≠ Ack →
  implements_recorded (write_back_leg_disk (cutting0 := code) most size count) p (count - 1) ∧
  ∀ bits, implements_recorded (write_back_tree_leg_disk (cutting0 := code) most size count bits) p
    (count - 1).
Proof. apply WriteBackLegDisk.write_back_mirrored_disk_refines. Qed.

(** and with parity. *)
Theorem write_back_raid_disk_refines_contract `{blocks} {torn : tearing block}
    {decided : ∀ a, Decision (tears a)} bytes k m (cut : block → vec (vec Parity.byte bytes) k) glue most
      size p :
  let code := raid_leg bytes k m cut glue in
  blocks_laws → (∀ b, glue (cut b) = b) → 1 ≤ k → 1 ≤ m ≤ 2 → (m = 2 → k ≤ 255) → p ≠ Ack →
  implements_recorded (write_back_leg_disk (cutting0 := code) most size (k + m)) p m ∧
  ∀ bits, implements_recorded (write_back_tree_leg_disk (cutting0 := code) most size (k + m) bits) p m.
Proof. apply WriteBackLegDisk.write_back_raid_disk_refines. Qed.

(** Both behind a queue. *)
Theorem served_write_back_leg_disk_refines_contract `{blocks, EqDecision block} {C} `{cutting block C}
    {torn : tearing block} most size count p :
  blocks_laws → cutting_laws count → p ≠ Ack →
  OverlappingDiskQueue.implements_overlapping (write_back_leg_disk most size count) p (count - fewest) ∧
  ∀ bits, OverlappingDiskQueue.implements_overlapping (write_back_tree_leg_disk most size count bits) p
    (count - fewest).
Proof. apply WriteBackLegDisk.served_write_back_leg_disk_refines. Qed.

(** 23. Places are left for all that is delayed. Whatever happened to the disk, power cuts too: if nothing is
under way, a flush is answered [Ok], with the first free places, and nothing is delayed then. The record of
the delayed writes and its numbers are below the limit of words, and the maps go into a slot. *)
Theorem write_back_flush_answered `{blocks} {torn : tearing block} most n c tr y z m :
  let disk := write_back_disk most in
  blocks_laws → fresh disk n c → shows disk c tr (DiskMachine.Idle (y, z), m) →
  ProvedDiskAnswers.small_group (shape y) (next_record y) (reverse (WriteBack.delayed z)) →
  WriteBackProgress.maps_fit y →
  let o := (execute (DiskMachine.run_request (write_back_programs most) (y, z)
    (first_free y (WriteBack.blocks_delayed z)) DoFlush) m).1 in o.1.2 = Ok ∧ WriteBack.delayed o.1.1.2 = [].
Proof. apply WriteBackProgress.flush_is_answered. Qed.

Theorem write_back_tree_flush_answered `{blocks} {torn : tearing block} most bits n c tr y z m :
  let disk := write_back_tree_disk most bits in
  blocks_laws → fresh disk n c → shows disk c tr (DiskMachine.Idle (y, z), m) →
  ProvedDiskAnswers.small_group (ProvedTreeDisk.shape y) (ProvedTreeDisk.next_record y)
    (reverse (WriteBack.delayed z)) →
  ProvedTreeDiskCost.goes_into_slot bits y →
  let o := (execute (DiskMachine.run_request (write_back_tree_programs most bits) (y, z)
    (ProvedTreeDisk.first_free y (WriteBack.blocks_delayed z)) DoFlush) m).1 in
  o.1.2 = Ok ∧ WriteBack.delayed o.1.1.2 = [].
Proof. apply WriteBackProgress.tree_flush_is_answered. Qed.

(** On a leg. The run is one in which enough members always answered ([never_lost]); then, whatever fails
while they do, a flush is answered [Ok] after a bounded number of turns, with the first free places, on
devices that are large enough. A disk that was lost while writes were delayed may need more places for them
than it has ([lost_drain_needs_places]). *)
Theorem write_back_leg_flush_answered `{blocks} {C} `{cutting block C} {torn : tearing block} most size count
    n m y z ms c x h k :
  blocks_laws → cutting_laws count → recorded_fresh (write_back_leg_disk most size count) n m →
  WriteBackLegProgress.never_lost ProvedDiskMachine.proved_programs size count shape
    (WriteBackPlaces.delay_room most) WriteBackPlaces.spares_places m (LegDiskMachine.Idle (y, z) ms c, x,
      h, k) →
  ProvedDiskBounds.device_blocks (shape y) ≤ size →
  ProvedDiskAnswers.small_group (shape y) (next_record y) (reverse (WriteBack.delayed z)) →
  WriteBackProgress.maps_fit y →
  Progress.ends_well (LegDiskProgress.weather count)
    (LegDiskProgress.turn (write_back_programs most) size (WriteBackLegProgress.flush_places first_free)
      (WriteBack.Drain []) DoFlush)
    (LegDiskProgress.answered_ok DoFlush)
    (LegDiskProgress.turns_of (length ms)
      (ProvedDiskBounds.group_ios (shape y) (reverse (WriteBack.delayed z))))
    (LegDiskMachine.Idle (y, z) ms c, x, h).
Proof. intros laws code. by apply WriteBackLegProgress.leg_flush_is_answered. Qed.

Theorem write_back_tree_leg_flush_answered `{blocks} {C} `{cutting block C} {torn : tearing block} most size
    count bits n m y z ms c x h k :
  blocks_laws → cutting_laws count → recorded_fresh (write_back_tree_leg_disk most size count bits) n m →
  WriteBackLegProgress.never_lost (ProvedTreeDiskTheorem.tree_programs bits) size count ProvedTreeDisk.shape
    (WriteBackPlaces.tree_delay_room most) WriteBackPlaces.tree_spares_places m
    (LegDiskMachine.Idle (y, z) ms c, x, h, k) →
  ProvedTreeDiskBounds.tree_device_blocks (ProvedTreeDisk.shape y) (ProvedTreeDisk.tree_size y) ≤ size →
  ProvedDiskAnswers.small_group (ProvedTreeDisk.shape y) (ProvedTreeDisk.next_record y)
    (reverse (WriteBack.delayed z)) →
  ProvedTreeDiskCost.goes_into_slot bits y →
  Progress.ends_well (LegDiskProgress.weather count)
    (LegDiskProgress.turn (write_back_tree_programs most bits) size
      (WriteBackLegProgress.flush_places ProvedTreeDisk.first_free) (WriteBack.Drain []) DoFlush)
    (LegDiskProgress.answered_ok DoFlush)
    (LegDiskProgress.turns_of (length ms)
      (ProvedTreeDiskBounds.tree_group_ios y (reverse (WriteBack.delayed z))))
    (LegDiskMachine.Idle (y, z) ms c, x, h).
Proof. intros laws code. by apply WriteBackLegProgress.tree_leg_flush_is_answered. Qed.

(** In any run, also after the disk was lost, in a drain too: if there are places for what is delayed, and the
log has room for it ([drainable_now]), a flush is answered [Ok] so. *)
Theorem write_back_lost_leg_flush_answered `{blocks} {C} `{cutting block C} {torn : tearing block} most size
    count n m tr y z ms c x h k :
  let disk := write_back_leg_disk most size count in
  blocks_laws → cutting_laws count → recorded_fresh disk n m →
  recorded_shows disk m tr (LegDiskMachine.Idle (y, z) ms c, x, h, k) →
  WriteBack.blocks_delayed z ≤ WriteBackProgress.drainable_now y →
  ProvedDiskBounds.device_blocks (shape y) ≤ size →
  ProvedDiskAnswers.small_group (shape y) (next_record y) (reverse (WriteBack.delayed z)) →
  WriteBackProgress.maps_fit y →
  Progress.ends_well (LegDiskProgress.weather count)
    (LegDiskProgress.turn (write_back_programs most) size (WriteBackLegProgress.flush_places first_free)
      (WriteBack.Drain []) DoFlush)
    (LegDiskProgress.answered_ok DoFlush)
    (LegDiskProgress.turns_of (length ms)
      (ProvedDiskBounds.group_ios (shape y) (reverse (WriteBack.delayed z))))
    (LegDiskMachine.Idle (y, z) ms c, x, h).
Proof. intros disk laws code. by apply WriteBackLegProgress.leg_flush_finds_places. Qed.

Theorem write_back_lost_tree_leg_flush_answered `{blocks} {C} `{cutting block C} {torn : tearing block} most
    size count bits n m tr y z ms c x h k :
  let disk := write_back_tree_leg_disk most size count bits in
  blocks_laws → cutting_laws count → recorded_fresh disk n m →
  recorded_shows disk m tr (LegDiskMachine.Idle (y, z) ms c, x, h, k) →
  WriteBack.blocks_delayed z ≤ WriteBackProgress.tree_drainable_now y →
  ProvedTreeDiskBounds.tree_device_blocks (ProvedTreeDisk.shape y) (ProvedTreeDisk.tree_size y) ≤ size →
  ProvedDiskAnswers.small_group (ProvedTreeDisk.shape y) (ProvedTreeDisk.next_record y)
    (reverse (WriteBack.delayed z)) →
  ProvedTreeDiskCost.goes_into_slot bits y →
  Progress.ends_well (LegDiskProgress.weather count)
    (LegDiskProgress.turn (write_back_tree_programs most bits) size
      (WriteBackLegProgress.flush_places ProvedTreeDisk.first_free) (WriteBack.Drain []) DoFlush)
    (LegDiskProgress.answered_ok DoFlush)
    (LegDiskProgress.turns_of (length ms)
      (ProvedTreeDiskBounds.tree_group_ios y (reverse (WriteBack.delayed z))))
    (LegDiskMachine.Idle (y, z) ms c, x, h).
Proof. intros disk laws code. by apply WriteBackLegProgress.tree_leg_flush_finds_places. Qed.

(** 12. An execution: delayed writes are read, and lost with the power; a snapshot has them, and what was
flushed survives; power cuts come in drains, of which one leaves all writes and the other one none; a
scheduler proposes a place in use, and a cleaning that would take a place of delayed writes. *)
Theorem write_back_disk_execution : ∃ x x',
  fresh (@write_back_disk ProvedDiskExecution.small ProvedDiskExecution.behind_the_log 3) 4 x ∧
  shows (write_back_disk 3) x WriteBackWitnesses.delayed_shows x'.
Proof. apply WriteBackWitnesses.write_back_life_exists. Qed.

(** And one on two mirrors: the last device fails in a drain, and what was answered is there when it is
  back; a
drain on one device; a resync; a power cut in a drain. *)
Theorem write_back_mirrored_disk_execution : ∃ z z',
  recorded_fresh WriteBackLegWitnesses.whole_maps 4 z ∧
  recorded_shows WriteBackLegWitnesses.whole_maps z WriteBackLegWitnesses.delayed_on_mirrors_shows z'.
Proof. apply WriteBackLegWitnesses.delayed_on_mirrors_exists. Qed.
End Delayed.
