(** What is proved: each final result in prose, in Coq, and by one line from where it is proved. What they
assume is printed by [Assumptions.v]: nothing. For all sizes and all histories; numbers are those of the
README. [TreeTheorems.v] goes on with shared trees on blocks, [WriteBackTheorems.v] with write-back,
[RotTheorems.v] with blocks that rot.

Coq's axioms are not all that a theorem rests on. What the machines of the proved disk take for granted of
devices, sectors, digests and the record of the members is in the prose of [ProvedDiskTheorem.v],
[LegDiskTheorem.v] and [RotTheorems.v]. What runs around the programs, and is trusted, is in the README under
"What is trusted", and line by line in docs/proved-disk.md. *)
From Coq Require Field_theory.
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk VirtualDiskProperties VirtualDiskWitnesses.
From LogDisk Require Import RecordedTrace RecordedImplementation Checker CheckerCorrect.
From LogDisk Require Import OverlappingDisk OverlappingDiskChecker OverlappingDiskProposals.
From LogDisk Require OverlappingDiskCorrect OverlappingDiskBlocks OverlappingDiskQueue.
From LogDisk Require LogStructuredDiskRefinement LogStructuredDiskRecovery LogStructuredDiskSnapshots
  LogStructuredDiskCleaning.
From LogDisk Require Parity RedundancyHistory RedundancyRepair RedundancyPlacement Composition
  CompositionAtWork LogStructuredDiskWitnesses SharedTreeExamples.
From LogDisk Require TreeDiskTheorem TreeDiskWitnesses.
From LogDisk Require ByteBlocks ProvedDiskTheorem ProvedDiskProgress ProvedDiskExecution
  ProvedDiskLongRecords.
From LogDisk Require LegCode LegDiskTheorem LegDiskExecution LegDiskRaid ProvedDiskAnswers LegDiskProgress
  LegDiskGroups LegDiskResync Progress.
From LogDisk Require ServedDiskTheorem ServedDiskExecution LegDiskUpkeep ServedDiskScheduler
  ServedDiskPower ServedDiskPrograms ServedDiskProgress ServedLegProgress ServedDiskServer
  DiskMachineShape LegDiskShape.
From LogDisk Require SplitFlush PipelinedMachine PipelinedDisk PipelinedServer PipelinedDiskWitnesses
  PipelinedProgress.

(** ** The contract *)

(** 1. Read after snapshot. Whatever follows but its deletion (writes, unmaps, other snapshots and their
deletion, reverts, flushes, restarts, and crashes), a snapshot reads as the live disk read when it was taken.
Under [Prefix] this holds from the next flush on, or without a crash. *)
Theorem read_after_snapshot {V} `{Value V} p n lba count (data data' : list V) before tr :
  p ≠ Prefix ∨ Forall no_crash tr ∨ (∃ tr', tr = Flush Ok :: tr') → Forall (keeps n) tr →
  admits p (before ++ Read Live lba count Ok data :: Snapshot n Ok :: tr ++ [Read (Named n)
    lba count Ok data']) → data' = data.
Proof. apply snapshot_reads_for_ever. Qed.

(** 2. Read after write. A block reads as the last write left it; under [Ack] after any number of crashes. *)
Theorem read_after_write {V} `{Value V} p lba data l (v v' : V) before tr :
  data_at lba data l = Some v → Forall (spares Live l) tr → p = Ack ∨ Forall no_crash tr →
  admits p (before ++ Write lba data Ok :: tr ++ [Read Live l 1 Ok [v']]) → v' = v.
Proof. apply VirtualDiskProperties.read_after_write. Qed.

(** 2. Frame. A block of a view reads the same until an event changes it: other blocks and other views are
left alone. *)
Theorem frame {V} `{Value V} p from l (v v' : V) before tr : Forall (spares from l) tr → p = Ack ∨
  Forall no_crash tr → admits p (before ++ Read from l 1 Ok [v] :: tr ++ [Read from l 1 Ok [v']]) → v' = v.
Proof. apply VirtualDiskProperties.frame. Qed.

(** 2. What a flush acknowledged survives any crash, under every profile. *)
Theorem flushed_survives {V} `{Value V} p from l (v v' : V) before tr : Forall (spares from l) tr →
  admits p (before ++ Read from l 1 Ok [v] :: Flush Ok :: tr ++ [Read from l 1 Ok [v']]) → v' = v.
Proof. apply VirtualDiskProperties.flushed_survives. Qed.

(** Forward simulation is enough to implement the contract. *)
Theorem simulation_implements {V} `{Value V} (M : implementation V) p (R : inside M → state V → Prop) :
  (∀ blocks c, fresh M blocks c → R c (created blocks)) →
  (∀ c s es c', R c s → moves M c es c' → ∃ s', run p s es s' ∧ R c' s') → implements M p.
Proof. apply forward_simulation. Qed.

(** ** The checker *)

(** 11. The checker accepts a trace if and only if the contract admits it, for the three crash profiles;
unknown outcomes, operations cut short and recoveries cut short included. *)
Theorem checker_exact {V} `{EqDecision V, Value V} p (tr : list (event V)) : check p tr = true ↔ admits p tr.
Proof. apply check_correct. Qed.

(** 11. So too for recorded traces, with the operations on devices and hints that the contract does not speak
of. *)
Theorem recorded_checker_exact {V} `{EqDecision V, Value V} p tolerates (tr : list (entry V)) :
  check_recorded p tolerates tr = true ↔ admits_recorded p tolerates tr.
Proof. apply check_recorded_correct. Qed.

(** 11. The event that a verdict names is the first that the contract does not allow; only where the caller
limits how many disks are followed may there be no verdict. *)
Theorem verdict_exact {V} `{EqDecision V, Value V} p tolerates most (tr : list (entry V)) :
  match judge p tolerates most tr with
  | Accepted _ => admits_recorded p tolerates tr
  | Rejected i _ => ¬ admits_recorded p tolerates (take (S i) tr) ∧
      (0 < i → admits_recorded p tolerates (take i tr))
  | Undecided _ => is_Some most
  end.
Proof. apply judge_correct. Qed.

(** 15. Requests that overlap: the checker accepts a history if and only if an order of what took effect
exists in which the contract admits it; by request and by block, for the three crash profiles, with power cuts
while requests are in flight. [weigh] is only for speed. *)
Theorem overlapping_checker_exact {V} `{EqDecision V, Value V} weigh g p tolerates (h : list (moment V)) :
  check_overlapping weigh g p tolerates h = true ↔ admits_overlapping g p tolerates h.
Proof. apply OverlappingDiskCorrect.check_overlapping_correct. Qed.

(** 15. The moment that a verdict names is the first up to which no order exists; only where the caller limits
the work may there be no verdict. *)
Theorem overlapping_verdict_exact {V} `{EqDecision V, Value V} weigh g p tolerates work
    (h : list (moment V)) :
  match judge_overlapping weigh g p tolerates work h with
  | Fit => admits_overlapping g p tolerates h
  | Unfit i => ¬ admits_overlapping g p tolerates (take (S i) h) ∧
      (0 < i → admits_overlapping g p tolerates (take i h))
  | Unknown _ => is_Some work
  end.
Proof. apply OverlappingDiskCorrect.judge_overlapping_correct. Qed.

(** 15. An order that somebody proposes is confirmed only if it shows that the contract admits the history;
and whatever the contract admits, some proposal shows. *)
Theorem overlapping_order_exact {V} `{EqDecision V, Value V} g p tolerates (h : list (moment V)) :
  (∃ todo, check_order g p tolerates h todo = true) ↔ admits_overlapping g p tolerates h.
Proof. apply check_order_correct. Qed.

(** 15. Blocks are judged apart. The contract admits a history if and only if instants can be fixed for the
steps that blocks share (the [line]), such that it admits the shared steps as far as no data is looked at, and
each block by itself has an order of its own steps between these instants, on a disk of one block. *)
Theorem blocks_judged_apart {V} `{EqDecision V, Value V} g p tolerates blocks (h : list (moment V)) :
  p ≠ Prefix → Forall OverlappingDiskBlocks.is_fair h →
  admits_overlapping g p tolerates (Alone (Event (Create blocks)) :: h) ↔
  ∃ line, OverlappingDiskBlocks.fixes g blocks 0 [] h line ∧
    @admits_recorded unit OverlappingDiskColumns.no_data p tolerates
      (Event (Create blocks) :: OverlappingDiskBlocks.shared_steps line) ∧ ∀ b, b < blocks → ∃ es,
      OverlappingDiskBlocks.interleaves [] (OverlappingDiskBlocks.column blocks b line) es ∧
      admits_recorded p tolerates (Event (Create 1) :: es).
Proof. apply OverlappingDiskBlocks.blocks_apart. Qed.

(** 16. Whatever implements the contract, run one request at a time behind a queue, implements the contract
for requests that overlap. Its devices may fail meanwhile, and the answer of a request that was performed may
be lost with the power. *)
Theorem queue_implements {V} `{EqDecision V, Value V} (M : recorded_implementation V) p tolerates blocks c h
    tr q :
  implements_recorded M p tolerates → recorded_fresh M blocks c →
  OverlappingDiskQueue.queue_run M (OverlappingDiskQueue.Queue c [] []) h tr q →
  admits_overlapping ByRequest p tolerates (Alone (Event (Create blocks)) :: h).
Proof. apply OverlappingDiskQueue.queue_implements. Qed.

(** 16. And nothing else does, even if it performs several requests at once. *)
Theorem queue_exact {V} `{EqDecision V, Value V} (M : recorded_implementation V) p tolerates :
  OverlappingDiskQueue.implements_overlapping M p tolerates ↔ implements_recorded M p tolerates.
Proof. apply OverlappingDiskQueue.queue_exact. Qed.

(** 12. The contract's promises are used by some trace, and each of their hypotheses is needed: without it, a
trace that the contract admits breaks the conclusion. *)
Theorem snapshot_promise_used : ∃ before tr data, Forall (keeps s) tr ∧ data ≠ [0; 0] ∧
  admits Ack (before ++ Read Live 0 2 Ok data :: Snapshot s Ok :: tr ++ [Read (Named s) 0 2 Ok data]).
Proof. apply snapshot_is_used. Qed.

Theorem snapshot_promise_needs_no_delete : ∃ before tr data data',
  admits Ack (before ++ Read Live 0 1 Ok data :: Snapshot s Ok :: tr ++ [Read (Named s) 0 1 Ok data']) ∧
    data' ≠ data.
Proof. apply snapshot_needs_no_delete. Qed.

Theorem snapshot_promise_needs_profile : ∃ before tr data data', Forall (keeps s) tr ∧
  admits Prefix (before ++ Read Live 0 1 Ok data :: Snapshot s Ok :: tr ++ [Read (Named s) 0 1 Ok data'])
  ∧ data' ≠ data.
Proof. apply snapshot_needs_profile. Qed.

Theorem frame_promise_needs_profile : ∀ p, p ≠ Ack → ∃ before tr v v', Forall (spares Live 0) tr ∧
  admits p (before ++ Read Live 0 1 Ok [v] :: tr ++ [Read Live 0 1 Ok [v']]) ∧ v' ≠ v.
Proof. apply frame_needs_profile. Qed.

Theorem write_promise_needs_profile : ∀ p, p ≠ Ack → ∃ before tr v v', Forall (spares Live 0) tr ∧
  admits p (before ++ Write 0 [v] Ok :: tr ++ [Read Live 0 1 Ok [v']]) ∧ v' ≠ v.
Proof. apply read_after_write_needs_profile. Qed.

(** ** The log-structured disk

For any design that obeys its rules and promises [Ack] or [Prefix] ([sound]), in any state it reaches. *)
Module LogStructured.
Import LogStructuredDisk LogStructuredDiskInvariant LogStructuredDiskCleaning LogStructuredDiskSnapshots.

(** 1. Read after snapshot, for the disk itself: whatever it does afterwards (operations, destage, cleaning,
checkpoints, reclaim, power cuts at any step, recoveries) but delete the snapshot, it reads as live did. *)
Theorem disk_read_after_snapshot {V} `{Value V} K (c0 c1 c2 : state V) tr n :
  sound K → promises K = Ack → reached K c0 → step K c0 [VirtualDisk.Snapshot n Ok] c1 →
  steps K c1 tr c2 → spares n tr → at_phase c2 = Running → reads_as c2 n (live (seen c0)).
Proof. apply read_after_snapshot_ack. Qed.

(** 1. Where a power cut may lose what was not flushed ([Prefix]): while the log keeps the snapshot's record.
*)
Theorem disk_read_after_snapshot_kept {V} `{Value V} K (c0 c1 c2 : state V) tr n : sound K → reached K c0 →
  step K c0 [VirtualDisk.Snapshot n Ok] c1 → steps_within K (λ c, applied (mem c1) ≤ logged c) c1 tr c2 →
  spares n tr → at_phase c2 = Running → reads_as c2 n (live (seen c0)).
Proof. apply read_after_snapshot. Qed.

(** 1. Once flushed, it survives anything. *)
Theorem disk_flushed_snapshot_stays {V} `{Value V} K (c c' : state V) tr n v :
  sound K → reached K c → at_phase c = Running → applied (mem c) ≤ flushed (dev c) → reads_as c n v →
  steps K c tr c' → spares n tr → at_phase c' = Running → reads_as c' n v.
Proof. apply durable_snapshot_unchanged. Qed.

(** 3. Every trace that the log-structured disk shows, the contract admits: crashes at any step, and in
recovery any number of times. *)
Theorem disk_refines_contract {V} `{Value V} K : sound K →
  implements (log_structured_disk (V := V) K) (promises K).
Proof. apply LogStructuredDiskRefinement.refines_contract. Qed.

(** 3. The newest checkpoint and the log behind it stand for the whole history: replaying them is a full
replay. *)
Theorem checkpoint_and_suffix {V} `{Value V} K (c : state V) i :
  sound K → reached K c → newest (dev c) = Some i →
  same_disk (foldl (λ d r, effect r d) (LogStructuredDiskRecovery.checkpoint_disk c i)
    (drop (upto i - first c) (log (dev c)))) (after (history c)).
Proof. apply LogStructuredDiskRecovery.checkpoint_and_suffix. Qed.

(** 3. Recovery, however often it is cut short, brings back exactly what the durable log says; and it can end.
*)
Theorem recovery_brings_back {V} `{Value V} K (c c' : state V) :
  sound K → reached K c → at_phase c ≠ Running → LogStructuredDiskRecovery.recovery K c c' →
  history c' = history c ∧ (at_phase c' = Running → same_disk (seen c') (after (history c))).
Proof. apply LogStructuredDiskRecovery.recovery_brings_back. Qed.

Theorem recovery_ends {V} `{Value V} K (c : state V) : sound K → reached K c → at_phase c ≠ Running →
  ∃ c', LogStructuredDiskRecovery.recovery K c c' ∧ at_phase c' = Running.
Proof. apply LogStructuredDiskRecovery.recovery_ends. Qed.

(** 3. Replay is idempotent: cut short after any number of records, it starts again from the same place. *)
Theorem replay_idempotent {V} `{Value V} (c : state V) n i rs keep garbage :
  let c1 := foldl (λ c r, replay r c) (load n i c) rs in
  let c2 := crash keep false garbage c1 in logged c1 ≤ keep →
  newest (dev c2) = newest (dev c) ∧ mem (load n i c2) = mem (load n i c) ∧ history c2 = history c.
Proof. apply LogStructuredDiskRecovery.load_again. Qed.

(** 4. No step that shows nothing changes a view: destage, seal, clean, free, reclaim, checkpoint, truncate.
*)
Theorem silent_step_invisible {V} `{Value V} K (c c' : state V) : sound K → reached K c →
  at_phase c = Running → step K c [] c' → at_phase c' = Running → same_disk (seen c') (seen c).
Proof. apply LogStructuredDiskCleaning.silent_step_invisible. Qed.

Theorem destage_invisible {V} `{Value V} K (c : state V) g xs :
  sound K → reached K c → at_phase c ≠ Off → table (mem c) !! g = None → NoDup xs →
  Forall (λ x, is_Some (bank (mem c) !! x)) xs → same_disk (seen (place g xs c)) (seen c).
Proof. apply LogStructuredDiskCleaning.destage_invisible. Qed.

Theorem clean_invisible {V} `{Value V} K (c : state V) vs g :
  sound K → reached K c → at_phase c ≠ Off → may_clean K c vs g → same_disk (seen (clean vs g c)) (seen c).
Proof. apply LogStructuredDiskCleaning.clean_invisible. Qed.

(** 4. A cleaned segment is dead, and nothing in it is reachable; nothing needs a free one, checkpoints
included. *)
Theorem cleaned_is_dead {V} `{Value V} K (c : state V) vs g v :
  sound K → reached K c → at_phase c ≠ Off → may_clean K c vs g → v ∈ vs →
  table (mem (clean vs g c)) !! v = Some Dead ∧ v ∉ segments_of (current (mem (clean vs g c))).
Proof. apply LogStructuredDiskCleaning.cleaned_is_dead. Qed.

Theorem free_holds_nothing {V} `{Value V} K (c : state V) g : sound K → reached K c → at_phase c ≠ Off →
  table (mem c) !! g = None → g ∉ segments_of (current (mem c)) ∧ g ∉ pinned c.
Proof. apply LogStructuredDiskCleaning.free_holds_nothing. Qed.

(** 4. Cleaning ends: each one leaves fewer segments in use. *)
Theorem clean_gains {V} `{Value V} K (c : state V) vs g :
  sound K → may_clean K c vs g → in_use (clean vs g c) < in_use c.
Proof. apply LogStructuredDiskCleaning.clean_gains. Qed.

Theorem cleaning_ends {V} `{Value V} K n d (c c' : state V) : sound K → upkeep K n d c c' → n ≤ in_use c + d.
Proof. apply LogStructuredDiskCleaning.cleaning_ends. Qed.

(** 12. An execution with a power cut in the middle of a write and of a checkpoint, a recovery cut short, a
cleaning and the deletion of a snapshot; and without any one of its rules, the design does not keep the
contract. *)
Import LogStructuredDiskWitnesses.
Theorem execution_exists p : p = Ack ∨ p = Prefix →
  ∃ c, steps (by_the_rules p 2) (initial 4) execution_shows c ∧ at_phase c = Running.
Proof. apply LogStructuredDiskWitnesses.execution_exists. Qed.

Theorem every_rule_needed r : r ≠ CleanGains →
  ∃ p, (p = Ack ∨ p = Prefix) ∧ ¬ implements (log_structured_disk (V := nat) (breaking r p 2)) p.
Proof. apply LogStructuredDiskWitnesses.every_rule_needed. Qed.
End LogStructured.

(** ** Shared trees

In any state that any history of writes, unmaps, snapshots, deletions, reverts, checkpoints, steps of reclaim
and crashes reaches, whatever the tree of snapshots. *)
Module Trees.
Import SharedTree SharedTreeInvariant SharedTreeReclaim SharedTreeDeletion SharedTreeLookup SharedTreeCost.
Import SharedTreeExamples.

(** 5. No dangling reference and no leak: what is stored is held, by a view or by a deletion under way. *)
Theorem nothing_dangles s : reachable s → no_dangling s.
Proof. intros I%reachable_inv v c Hv. by destruct (inv_view I Hv) as (_&_&[? ?]&_). Qed.

Theorem nothing_leaks s : reachable s → no_leak s.
Proof. intros I%reachable_inv. exact (@inv_held _ I). Qed.

(** 5. Deletion frees exactly what nothing else reaches: a step of it frees a node if and only if nobody else
holds it, and in the end of some schedule what is left is what the other views reach. *)
Theorem reclaim_exact s s' t c n : reachable s → apply (Reclaim t n) s = Some s' →
  claims s !! Dying t = Some c → has_node (nodes s) c n →
  (freed s s' n ↔ ∀ j c', claims s !! j = Some c' → j ≠ Dying t → ¬ has_node (nodes s) c' n) ∧
  ∀ m, freed s s' m → m = n.
Proof. intros I%reachable_inv. by apply reclaim_frees. Qed.

Theorem deletion_exact s s1 v : reachable s → apply (Delete v) s = Some s1 →
  ∃ history s2, run s1 history = Some s2 ∧ (∀ a, a ∈ history → ∃ t n, a = Reclaim t n) ∧
    (∀ t, claims s2 !! Dying t = None) ∧
    ∀ n, is_Some (nodes s2 !! n) ↔ ∃ w c, w ≠ v ∧ claims s !! View w = Some c ∧ reaches (nodes s) (root c) n.
Proof. intros I%reachable_inv. by apply SharedTreeDeletion.deletion_exact. Qed.

(** 5. So it is for every schedule of reclaim: it has so many steps at most, it can go on until no deletion is
under way, and then what is left is what the other views reach. *)
Theorem deletion_every_schedule s s1 v : reachable s → apply (Delete v) s = Some s1 → ∃ most, ∀ history s2,
  run s1 history = Some s2 → (∀ a, a ∈ history → ∃ t n, a = Reclaim t n) → length history ≤ most ∧
  ((∃ t, is_Some (claims s2 !! Dying t)) → ∃ t n, is_Some (apply (Reclaim t n) s2)) ∧
  ((∀ t, claims s2 !! Dying t = None) →
    ∀ n, is_Some (nodes s2 !! n) ↔ ∃ w c, w ≠ v ∧ claims s !! View w = Some c ∧ reaches (nodes s) (root c) n).
Proof. intros I%reachable_inv. by apply SharedTreeDeletion.deletion_every_schedule. Qed.

(** 5. Nothing is freed twice, though crashes set walks back to any earlier point. *)
Theorem frees_once s a s1 history s2 b s3 n : reachable s → apply a s = Some s1 → freed s s1 n →
  run s1 history = Some s2 → apply b s2 = Some s3 → ¬ freed s2 s3 n.
Proof. intros I%reachable_inv. by apply freed_once. Qed.

(** 5. Nobody else reaches a node of a view if and only if it was born after the parent was taken and neither
a child nor a sibling reaches it. Without reverts siblings may be left out: parent and successor are enough.
*)
Theorem neighbour_test_exact s v c n nd : reachable s → claims s !! View v = Some c →
  reaches (nodes s) (root c) n → nodes s !! n = Some nd →
  (∀ j c', claims s !! j = Some c' → j ≠ View v → ¬ reaches (nodes s) (root c') n) ↔ parent c < birth nd ∧
  ∀ j c', claims s !! j = Some c' → j ≠ View v → parent c' = v ∨ parent c' = parent c →
  ¬ reaches (nodes s) (root c') n.
Proof. intros I%reachable_inv. by apply delete_test. Qed.

Theorem chain_test_exact levels history s v c n nd :
  run (create levels) history = Some s → (∀ w, Revert w ∉ history) →
  claims s !! View v = Some c → reaches (nodes s) (root c) n → nodes s !! n = Some nd →
  (∀ w c', claims s !! View w = Some c' → w ≠ v → ¬ reaches (nodes s) (root c') n) ↔
  parent c < birth nd ∧ ∀ w c', claims s !! View w = Some c' → parent c' = v →
    ¬ reaches (nodes s) (root c') n.
Proof. apply SharedTreeDeletion.chain_test_exact. Qed.

(** 5, 12. With reverts they are not: a node that passes that test is reached by a view that is neither. *)
Theorem chain_test_needs_chain : reachable cut ∧ ∃ c n nd other,
  claims cut !! View 3 = Some c ∧ reaches (nodes cut) (root c) n ∧ nodes cut !! n = Some nd ∧
    parent c < birth nd ∧
  (∀ v c', claims cut !! View v = Some c' → parent c' ≠ 3) ∧
  claims cut !! View 5 = Some other ∧ reaches (nodes cut) (root other) n.
Proof. apply children_are_not_enough. Qed.

(** 6. An update changes no node that another view reaches, and off its path live shares the nodes that it
had. *)
Theorem update_spares_others s s' k x j c n : reachable s → length k = height s → update k x s = Some s' →
  claims s !! j = Some c → j ≠ View (epoch s) →
  (reaches (nodes s') (root c) n ↔ reaches (nodes s) (root c) n) ∧
  (reaches (nodes s) (root c) n → nodes s' !! n = nodes s !! n).
Proof. intros I%reachable_inv. by apply SharedTreeWrite.update_spares_others. Qed.

Theorem update_shares_rest s s' k x c c' q : reachable s → length k = height s → update k x s = Some s' →
  claims s !! View (epoch s) = Some c → claims s' !! View (epoch s) = Some c' → ¬ q `prefix_of` k →
  descend (nodes s') (root c') q = descend (nodes s) (root c) q.
Proof. intros I%reachable_inv. by apply SharedTreeWrite.update_shares_rest. Qed.

(** 6. A lookup in the tree is a lookup in the map that it stands for: live, and each snapshot. *)
Theorem lookup_exact levels history s : run (create levels) history = Some s → let d := disk_run history in
  (∀ k, length k = height s → read s (epoch s) k = live d !! k) ∧
  ∀ v m k, snaps d !! v = Some m → length k = height s → read s v k = m !! k.
Proof. intros (_&?&_&?)%stands_run. done. Qed.

(** 7. A read and a write of a mapped block cost a constant; of any block the same whatever snapshots there
are. Taking a snapshot touches no node: all that it writes is its record. These costs are counts of nodes by
definition; 14 and 19 count the I/Os of executions. *)
Theorem cost_constant s k x : reachable s → read s (epoch s) k = Some x →
  read_cost s (epoch s) k = Cost (S (length k)) 0 0 ∧ write_cost s k = Cost (S (length k)) 0 1.
Proof. intros _ Hr. unfold read_cost, write_cost. by rewrite (depth_mapped _ _ _ _ Hr). Qed.

Theorem cost_ignores_snapshots levels history s k : run (create levels) history = Some s →
  Forall (λ a, no_revert a = true) history → length k = height s →
  ∃ s0, run (create levels) (filter (λ a, writes a = true) history) = Some s0 ∧
    write_cost s k = write_cost s0 k ∧ read_cost s (epoch s) k = read_cost s0 (epoch s0) k.
Proof. apply SharedTreeCost.cost_ignores_snapshots. Qed.

Theorem snapshot_constant s s' : apply Snapshot s = Some s' → nodes s' = nodes s ∧ next s' = next s.
Proof. simpl. intros. by invert_apply. Qed.
End Trees.

(** ** Shared trees as the maps of the log-structured disk

One machine: log, bank, segments, cleaner and checkpoints of the log-structured disk, and in place of its
maps the shared trees, reclaimed by walks that ask the parent and the siblings of what was deleted. For any
design that obeys its rules ([sound]), for keys of any length and digits of any size. *)
Module Forest.
Import TreeDisk TreeDiskTheorem.

(** 19. Every trace that this disk shows, the contract admits. *)
Theorem tree_disk_refines_contract {V} `{Value V} K bits levels : sound K →
  implements (tree_disk (V := V) K bits levels) (promises K).
Proof. apply refines_contract. Qed.

(** 19. Read after snapshot through all of it: writes that copy paths, snapshots that share roots, reverts,
deletions, walks, destage, cleaning, checkpoints that write nodes to pages, power cuts and recoveries. *)
Theorem tree_disk_read_after_snapshot {V} `{Value V} K bits levels blocks c n lba count (data data' : list V)
    before tr : sound K →
  promises K = Ack ∨ Forall no_crash tr ∨ (∃ tr', tr = VirtualDisk.Flush Ok :: tr') →
  Forall (VirtualDiskProperties.keeps n) tr →
  shows (tree_disk K bits levels) (initial levels blocks)
    (before ++ VirtualDisk.Read Live lba count Ok data ::
    Snapshot n Ok :: tr ++ [VirtualDisk.Read (Named n) lba count Ok data']) c → data' = data.
Proof. apply TreeDiskTheorem.read_after_snapshot. Qed.

(** 19. Space: the disk keeps the data that a view maps; and once no walk is left, no others. *)
Theorem tree_disk_keeps_exactly {V} `{Value V} K bits levels (c : state V) x :
  sound K → reached K bits levels c → at_phase c ≠ Off →
  (maps_to bits c x → TreeDiskTheorem.keeps c x) ∧
  (no_walks c → TreeDiskTheorem.keeps c x → maps_to bits c x).
Proof. apply keeps_exactly. Qed.

(** 19. Walks end: while one is left it has a step, and each step, of whichever walk, leaves less to do. *)
Theorem tree_disk_walks_end {V} `{Value V} K bits levels (c : state V) t :
  sound K → reached K bits levels c → at_phase c ≠ Off →
  is_Some (SharedTree.claims (TreeIndex.trees (current (mem c))) !! inr t) →
  (∃ n, is_Some (perform K bits levels (Reclaim t n) c)) ∧
  ∀ n es c', perform K bits levels (Reclaim t n) c = Some (es, c') →
    base.size (SharedTreeDeletion.work (TreeIndex.trees (current (mem c')))) <
    base.size (SharedTreeDeletion.work (TreeIndex.trees (current (mem c)))).
Proof. apply walks_end. Qed.

(** 12. An execution with power cuts, a recovery cut short, cleaning, a deletion and a revert, at whose end
only the data of what views map are kept, and 21 nodes have used 12 pages; and without the rule that a page
is not written again while a checkpoint that may be loaded refers to it, the same steps show wrong data. *)
Theorem tree_disk_execution p : p = Ack ∨ p = Prefix →
  ∃ c, shows (tree_disk (by_the_rules p 2) 1 1) (initial 1 4) TreeDiskWitnesses.execution_shows c ∧
    at_phase c = Running ∧ TreeDiskWitnesses.ends_small c.
Proof. apply TreeDiskWitnesses.execution_exists. Qed.

Theorem tree_pages_rule_needed :
  (∃ c, shows (tree_disk (by_the_rules Ack 2) 1 1) (initial 1 2)
    (TreeDiskWitnesses.reused_page_shows [6; 9]) c) ∧
  ∃ c, shows (tree_disk (breaking FreeAfterCheckpoint Ack 2) 1 1) (initial 1 2)
    (TreeDiskWitnesses.reused_page_shows [6; 0]) c.
Proof. apply TreeDiskWitnesses.tree_pages_needed. Qed.
End Forest.

(** ** Parity *)
Module Codes.
Import Parity RedundancyCode.

(** 8. Bytes, with GF(2^8)'s addition and multiplication, are a field, by computation; 2 generates it. *)
Theorem bytes_are_a_field : Field_theory.field_theory zero one add mul add id (λ a b, mul a (inv b)) inv eq.
Proof. apply gf_field. Qed.

Theorem two_generates a : a ≠ zero → ∃ i, i < 255 ∧ a = power two i.
Proof. apply generator_generates. Qed.

(** 8. RAID-5 and RAID-6 reconstruct any one and any two lost components of a stripe; blocks of any size [n].
*)
Theorem raid5_any_one n k (d : list (vec byte n)) i :
  length d = k → decode (raid5 k) (without [i] (stripe (raid5 k) d)) = Some d.
Proof. apply Parity.raid5_any_one. Qed.

Theorem raid6_any_two n k (d : list (vec byte n)) i j :
  k <= 255 → length d = k → decode (raid6 k) (without [i; j] (stripe (raid6 k) d)) = Some d.
Proof. apply Parity.raid6_any_two. Qed.

(** 8. What a degraded read returns: of a stripe with at most m components gone, the block that was written.
*)
Theorem degraded_read {V} (c : code V) gone d i : good c → length d = data_count c →
  length gone <= parity_count c → decode c (without gone (stripe c d)) ≫= (.!! i) = d !! i.
Proof. apply Parity.degraded_read. Qed.

(** 8. All three layouts are good codes: what is lost within tolerance comes back, and beyond it nothing wrong
does. *)
Theorem layouts_are_good {V} (z : V) m n k :
  good (mirror z m) ∧ good (raid5 (n := n) k) ∧ (k <= 255 → good (raid6 (n := n) k)).
Proof. split; [apply mirror_good|split; [apply raid5_good|apply raid6_good]]. Qed.
End Codes.

(** ** Redundancy

A leg with any good code, of any number of stripes, from new, through any actions: writes a component at a
time, crashes, failures, returns, replacements, ticks, steps of resync and rebuild. *)
Module Legs.
Import RedundancyCode Redundancy RedundancyCorrect RedundancyHistory RedundancyRepair RedundancyPlacement.

(** 9. With at most m failures, at any steps, every stripe that is not being written reads as a store that
never fails; with more, it does or the read says that data is lost. *)
Theorem any_m_failures {V} (c : code V) size repair_delay n acts l :
  good c → run c size repair_delay acts (new_leg c n) = Some l → failures acts <= parity_count c →
  ∃ st, store_run c (new_store c) acts st ∧ ∀ s, open l !! s = None → read c l s = Some (stripe_of st s).
Proof. intros. by eapply RedundancyHistory.any_m_failures. Qed.

(** 9. It is the failures of now that count, not those since birth: while at most m components are not active,
every read is answered with the last write. *)
Theorem read_available {V} (c : code V) size repair_delay n acts l : good c →
  run c size repair_delay acts (new_leg c n) = Some l → inactive (components l) <= parity_count c →
  ∃ st, store_run c (new_store c) acts st ∧ ∀ s, open l !! s = None → read c l s = Some (stripe_of st s).
Proof. intros. by eapply RedundancyHistory.read_available_now. Qed.

Theorem any_failures {V} (c : code V) size repair_delay n acts l : good c →
  run c size repair_delay acts (new_leg c n) = Some l → ∃ st, store_run c (new_store c) acts st ∧
  ∀ s, open l !! s = None → read c l s = Some (stripe_of st s) ∨ read c l s = None.
Proof. intros. by eapply RedundancyHistory.any_failures. Qed.

(** 9. A stale component is never read: what components hold that are not active makes no difference. Reads
are defined so; that they are right nevertheless is [any_failures]. *)
Theorem stale_never_read {V} (c : code V) l l' s :
  Forall2 (λ x y, state x = state y ∧ (state x = Active →
    strip c x s = strip c y s)) (components l) (components l') → read c l s = read c l' s.
Proof. apply RedundancyHistory.stale_never_read. Qed.

(** 9. Repair ends, and when it can go no further every component is active: any m more failures are
tolerated. *)
Theorem repair_stops_restored {V} (c : code V) size repair_delay l st acts l' :
  good c → refines c size l st → repairable c repair_delay l → Forall repairs acts →
    run c size repair_delay acts l = Some l' →
  (∀ a, repairs a → act c size repair_delay a l' = None) →
  inactive (components l') = 0 ∧ refines c size l' st ∧ length acts <= work_left size l.
Proof. intros. by eapply RedundancyRepair.repair_stops_restored. Qed.

Theorem redundancy_restored {V} (c : code V) size repair_delay l st acts l' : good c → refines c size l st →
  inactive (components l) = 0 → run c size repair_delay acts l = Some l' → failures acts <= parity_count c →
  ∃ st', store_run c st acts st' ∧ ∀ s, open l' !! s = None → read c l' s = Some (stripe_of st' s).
Proof. intros. by eapply RedundancyRepair.redundancy_restored. Qed.

(** 9. What is absent is not rebuilt before the repair timer has run out; what is degraded can be rebuilt at
once. *)
Theorem rebuild_waits {V} (c : code V) size repair_delay n acts l i d l' :
  run c size repair_delay acts (new_leg c n) = Some l → act c size repair_delay (Rebuild i d) l = Some l' →
  ∃ x, components l !! i = Some x ∧ (state x = Degraded ∨ state x = Absent ∧
    ∃ before after, acts = before ++ Fail (home x) Absent :: after ∧ repair_delay <= ticks after).
Proof. apply RedundancyRepair.rebuild_waits. Qed.

Theorem degraded_at_once {V} (c : code V) size repair_delay l i x d e l1 :
  components l !! i = Some x → on_device l d = Some (i, x) → e ∈ spares l →
  act c size repair_delay (Fail d Degraded) l = Some l1 → is_Some (act c size repair_delay (Rebuild i e) l1).
Proof. apply RedundancyRepair.degraded_at_once. Qed.

(** 9. No device ever has two uses. *)
Theorem one_use_per_device {V} (c : code V) size repair_delay n acts l :
  run c size repair_delay acts (new_leg c n) = Some l → placed l.
Proof. apply RedundancyPlacement.one_use_per_device. Qed.
End Legs.

(** ** Composition *)
Module Whole.
Import LogStructuredDisk CompositionLegs CompositionPerformance Composition RedundancyCode.

(** 10. Whatever disk implements the contract over two reliable stores implements it over legs whose devices
fail, return, are replaced and rebuilt at any steps. *)
Theorem legs_suffice {V P C} `{Value V} (cp : code P) (cc : code C)
  stripes_p stripes_c repair_delay spare_count D p :
  good cp → good cc → implements (over_stores cp cc D) p →
  implements (over_legs cp cc stripes_p stripes_c repair_delay spare_count D) p.
Proof. apply CompositionLegs.legs_suffice. Qed.

(** 10. So the log-structured disk refines the contract, its log and checkpoints on a mirrored performance
leg, its segments on a capacity leg with any good code; on RAID-6, say. A step that would need lost data does
not take place; by 9, within tolerance there is none. *)
Theorem disk_over_legs_refines_contract {V} `{Value V} K m room (cc : code V)
  stripes_p stripes_c repair_delay spare_count : sound K → good cc →
  implements (over_legs (mirror Blank m) cc stripes_p stripes_c repair_delay spare_count
    (log_structured_client K cc room)) (promises K).
Proof. apply disk_over_legs. Qed.

Theorem disk_over_raid6_refines_contract {n} w k room stripes_p stripes_c repair_delay spare_count p :
  p = Ack ∨ p = Prefix → k <= 255 →
  let zeroes := Parity.zeroes : vec Parity.byte n in
  implements (H := zeroes) (over_legs (mirror Blank 2) (Parity.raid6 k) stripes_p stripes_c repair_delay
    spare_count (log_structured_client (H := zeroes) (by_the_rules p w) (Parity.raid6 k) room)) p.
Proof. apply raid6_disk. Qed.

(** 12. An execution over three mirrors and RAID-6 with a failure in the middle of a write of each leg,
crashes in the middle of a write and of recovery, a rebuild, a cleaning and the deletion of a snapshot. *)
Import CompositionExecution CompositionAtWork.
Theorem composed_execution p : p = Ack ∨ p = Prefix →
  ∃ x, shows (over_legs (mirror Blank 2) (Parity.raid6 2) 6 6 2 1
    (log_structured_client (H := Parity.zeroes) (by_the_rules p 2) (Parity.raid6 2) 3))
    (new_disk 2 (Parity.raid6 2) 1 4) composed_shows x.
Proof. apply CompositionAtWork.composed_execution. Qed.
End Whole.

(** ** The disk that runs

[build/proved-disk] is extracted from it: log, checkpoints, snapshots, cleaning and recovery over block I/O.
*)
Module Running.
Import Medium Codec ByteBlocks ProvedDisk ProvedDiskMachine Sectors.

(** 13. It keeps the contract under [Ack]: power cuts between any two block I/Os, also in recovery; of what is
not flushed any subset of blocks survives, and blocks tear: data and the maps of a checkpoint to anything, a
header or a record to what does not unseal (so a new disk is said to be, [torn_unread]); whatever the
scheduler proposes. The hypotheses, [blocks_laws]: words that were put into a block are read back; and no two
lists of blocks in [compared] have the same digest. The set is any; the machine takes digests of its members
alone. So this is true of every run in which no two lists of blocks that are digested collide. *)
Theorem proved_disk_refines_contract `{blocks} {torn : tearing block} : blocks_laws → implements proved_disk
    Ack.
Proof. apply ProvedDiskTheorem.proved_disk_refines_contract. Qed.

(** 13. Where sectors are written whole, a block that a power cut tears is the one that was there, whatever
that is, one that was written, or it does not unseal: if the blocks that were written are sealed, and what is
read back is compared with them. So nothing that sectors leave of a header or a record unseals. *)
Theorem torn_sealed `{blocks} old news b : blocks_laws →
  (∀ new, new ∈ news → is_Some (unsealed new) ∧ comparable new) → comparable b → torn_between old news b →
  same_sectors b old ∨ (∃ new, new ∈ news ∧ same_sectors b new) ∨ unsealed b = None.
Proof. intros laws. apply Sectors.torn_sealed. Qed.

Theorem sectors_tear_unread `{blocks} (data : nat → Prop) g : blocks_laws →
  (∀ a, data a → 3 + log_blocks g ≤ a) → ProvedDiskInvariant.torn_unread (torn := sectors_tear data) g.
Proof. intros laws. apply Sectors.sectors_tear_unread. Qed.

(** 16. And served to many clients: their requests wait in a queue, and the machine performs one at a time, or
several writes at once ([one_by_one] shows what became of each). *)
Theorem served_disk_refines_contract `{blocks, EqDecision block} {torn : tearing block} n c h tr q :
  blocks_laws → fresh proved_disk n c →
  OverlappingDiskQueue.queue_run (OverlappingDiskQueue.one_by_one proved_disk)
    (OverlappingDiskQueue.in_front proved_disk c) h tr q →
  admits_overlapping ByRequest Ack 0 (Alone (Event (Create n)) :: h).
Proof. apply ServedDiskTheorem.served_disk_refines_contract. Qed.

(** 17. On a leg of several devices: a block is cut into pieces, one for each device, and any [needed] of them
give it back. While devices fail, come back, are replaced and copied to, the contract admits every trace, with
its operations on devices, of a disk that tolerates the failure of all devices but [fewest]. So data are never
wrong, and are said to be lost only beyond that. Devices tear what they had not flushed, each on its own. *)
Import Leg LegDiskMachine.
Theorem leg_disk_refines_contract `{blocks} {C} `{cutting block C} {torn : tearing block} size count n z tr
    z' :
  blocks_laws → LegCorrect.cutting_laws count →
  formatted proved_programs size count n z → lives proved_programs size count z tr z' →
  admits_recorded Ack (count - fewest) (Event (Create n) :: tr).
Proof. apply LegDiskTheorem.leg_disk_refines_contract. Qed.

(** Mirrors: every device has each block whole, and all but one may fail. *)
Theorem mirrored_disk_refines_contract `{blocks} {torn : tearing block} size count n z tr z' :
  let code := LegCode.mirrors zero_block in
  blocks_laws → 0 < count →
  formatted (cutting0 := code) proved_programs size count n z →
  lives (cutting0 := code) proved_programs size count z tr z' →
  admits_recorded Ack (count - 1) (Event (Create n) :: tr).
Proof.
  intros code laws.
  eapply LegDiskTheorem.refines_on_mirrors, ProvedDiskRefinement.proved_programs_safe.
Qed.

(** RAID-5 ([m] = 1) and RAID-6 ([m] = 2): blocks of which anything may be left are stripes of [k] pieces of
so many bytes, and parity; every device has the others whole. *)
Theorem raid_disk_refines_contract `{blocks} {torn : tearing block} {decided : ∀ a, Decision (tears a)} bytes
    k m
    (cut : block → vec (vec Parity.byte bytes) k) glue size n z tr z' :
  blocks_laws → (∀ b, glue (cut b) = b) → 1 ≤ k → 1 ≤ m ≤ 2 → (m = 2 → k ≤ 255) →
  let code := LegCode.raid_leg bytes k m cut glue in
  formatted (cutting0 := code) proved_programs size (k + m) n z →
  lives (cutting0 := code) proved_programs size (k + m) z tr z' →
  admits_recorded Ack m (Event (Create n) :: tr).
Proof. intros laws. eapply LegDiskTheorem.refines_on_raid, ProvedDiskRefinement.proved_programs_safe. Qed.

(** 16. Served to many clients, on a leg ([leg_disk] is the machine of 17). Devices fail at any moment, also
while requests wait or are performed; they return, are replaced and copied to while requests wait. While too
few members answer, a read may be answered that its data are lost, and other requests with an unknown outcome,
several writes at once too. The contract allows an answer that data are lost only while more devices failed
than the leg tolerates. *)
Import ServedDiskTheorem(leg_disk).
Theorem served_leg_disk_refines_contract `{blocks, EqDecision block} {C} `{cutting block C}
    {torn : tearing block}
    size count n z h tr q :
  let M := leg_disk proved_programs size count in
  blocks_laws → LegCorrect.cutting_laws count → formatted proved_programs size count n z →
  OverlappingDiskQueue.queue_run (OverlappingDiskQueue.one_by_one M) (OverlappingDiskQueue.in_front M z) h tr
    q →
  admits_overlapping ByRequest Ack (count - fewest) (Alone (Event (Create n)) :: h).
Proof.
  intros M laws code Hz. eapply ServedDiskTheorem.served_leg_disk_refines; [|done..].
  apply ProvedDiskRefinement.proved_programs_safe.
Qed.

(** 16. On mirrors, *)
Theorem served_mirrored_disk_refines_contract `{blocks, EqDecision block} {torn : tearing block} size count n
    z h tr q :
  let code := LegCode.mirrors zero_block in
  let M := leg_disk (cutting0 := code) proved_programs size count in
  blocks_laws → 0 < count → formatted (cutting0 := code) proved_programs size count n z →
  OverlappingDiskQueue.queue_run (OverlappingDiskQueue.one_by_one M) (OverlappingDiskQueue.in_front M z) h tr
    q →
  admits_overlapping ByRequest Ack (count - 1) (Alone (Event (Create n)) :: h).
Proof.
  intros code M laws Hcount Hz. eapply ServedDiskTheorem.served_on_mirrors; [|done..].
  apply ProvedDiskRefinement.proved_programs_safe.
Qed.

(** 16. and on RAID-5 ([m] = 1) and RAID-6 ([m] = 2). *)
Theorem served_raid_disk_refines_contract `{blocks, EqDecision block} {torn : tearing block}
    {decided : ∀ a, Decision (tears a)} bytes k m (cut : block → vec (vec Parity.byte bytes) k) glue size n z
    h tr q :
  let code := LegCode.raid_leg bytes k m cut glue in
  let M := leg_disk (cutting0 := code) proved_programs size (k + m) in
  blocks_laws → (∀ b, glue (cut b) = b) → 1 ≤ k → 1 ≤ m ≤ 2 → (m = 2 → k ≤ 255) →
  formatted (cutting0 := code) proved_programs size (k + m) n z →
  OverlappingDiskQueue.queue_run (OverlappingDiskQueue.one_by_one M) (OverlappingDiskQueue.in_front M z) h tr
    q →
  admits_overlapping ByRequest Ack m (Alone (Event (Create n)) :: h).
Proof.
  intros code M laws Hglue Hk Hm Hb Hz. eapply ServedDiskTheorem.served_on_raid; [|done..].
  apply ProvedDiskRefinement.proved_programs_safe.
Qed.

(** 18. Progress, with devices that fail between any two I/Os, as long as [fewest] members answer. [ends_well]
says: at most so many turns, each of them possible, the last one with the end that is named. The scheduler is
[plan]: it proposes the first free places, and collects first where they are too few.

A request within the stated sizes ([admissible]) is answered [Ok]: it takes four turns, and one turn and four
more for each of [length ms] members for each step of the request ([request_ios]): a piece is read or is not,
a member is dropped, a piece is repaired, a member is dropped. As long as no digest is taken of blocks that
are not in [compared], and of no block more pieces are unreadable than the code can do without. *)
Import ProvedDiskAnswers LegDiskProgress LegDiskGroups LegDiskResync Progress.
Theorem leg_requests_answered `{blocks} {C} `{cutting block C} {torn : tearing block} size count n z tr y ms
    c x h
    q :
  blocks_laws → LegCorrect.cutting_laws count →
  formatted proved_programs size count n z → lives proved_programs size count z tr (Idle y ms c, x, h) →
  ProvedDiskBounds.device_blocks (shape y) ≤ size → admissible y q →
  ends_well (weather count) (turn proved_programs size places_for Collect q) (answered_ok q)
    (turns_of (length ms) (ProvedDiskBounds.request_ios (shape y) q)) (Idle y ms c, x, h).
Proof. intros ??. by apply whole_map_requests_are_answered. Qed.

(** 18. Several writes at once within the stated sizes ([admissible_group]) are performed, all of them: the
bound is that of one request with as many I/Os ([group_ios]). *)
Theorem leg_groups_performed `{blocks} {C} `{cutting block C} {torn : tearing block} size count n z tr y ms c
    x h
    ws :
  blocks_laws → LegCorrect.cutting_laws count →
  formatted proved_programs size count n z → lives proved_programs size count z tr (Idle y ms c, x, h) →
  ProvedDiskBounds.device_blocks (shape y) ≤ size → admissible_group y ws →
  ends_well (weather count) (group_turn proved_programs size places_for Collect ws) (group_ok ws)
    (turns_of (length ms) (ProvedDiskBounds.group_ios (shape y) ws)) (Idle y ms c, x, h).
Proof. intros ??. by apply whole_map_groups_are_performed. Qed.

(** 18. Recovery ends, after a power cut and where too few members answered, and the disk is open. *)
Theorem leg_recovery_ends `{blocks} {C} `{cutting block C} {torn : tearing block} size count n z tr c x h :
  blocks_laws → LegCorrect.cutting_laws count →
  formatted proved_programs size count n z → lives proved_programs size count z tr (c, x, h) →
  c = Off ∨ c = Lost → 0 < size → devices_suffice size x →
  ends_well (weather count) (recovery_turn proved_programs size) open_again
    (recovery_turns size (length (Devices.members x))) (c, x, h).
Proof. intros ?? Hz Hlives. by eapply recovery_is_finished. Qed.

(** 18. Resync ends, whichever other devices fail meanwhile, and [Settle] is answered [Ok]. *)
Theorem leg_resync_ends `{blocks} {C} `{cutting block C} {torn : tearing block} size count n z tr y ms c x h :
  blocks_laws → LegCorrect.cutting_laws count →
  formatted proved_programs size count n z → lives proved_programs size count z tr (Idle y ms c, x, h) →
  ends_well (weather count) (settle_turn size count) settled_ok (settle_turns size count (length ms))
    (Idle y ms c, x, h).
Proof. intros ?? Hz Hlives. by eapply resync_ends; [|apply ProvedDiskRefinement.proved_programs_safe|..]. Qed.

(** 18. And so does upkeep, whatever the scheduler asks for between two requests: a checkpoint, a collection,
or a cleaning with any moves. *)
Theorem leg_upkeep_ends `{blocks} {C} `{cutting block C} {torn : tearing block} size count n z tr y ms c x h
    u :
  blocks_laws → LegCorrect.cutting_laws count →
  formatted proved_programs size count n z → lives proved_programs size count z tr (Idle y ms c, x, h) →
  ProvedDiskBounds.device_blocks (shape y) ≤ size →
  ends_well (weather count) (LegDiskUpkeep.upkeep_turn proved_programs size u) LegDiskUpkeep.idle_again
    (LegDiskUpkeep.upkeep_turns (length ms) (ProvedDiskBounds.upkeep_ios (shape y) u)) (Idle y ms c, x, h).
Proof. intros ??. by apply LegDiskUpkeep.whole_map_upkeep_is_finished. Qed.

(** 21. Progress of the disk that is served: every request that waits in the queue has its turn. The server is
[ServedDiskScheduler.server]: a disk, the jobs that have begun, and the requests that wait, the oldest first.
The scheduler of the queue is [next_job], which the server runs: the oldest request, or, if that is a write of
at most [most] blocks, all such writes that wait, up to [most] blocks, performed together. Writes that are
refused together are performed one by one. For each job the disk collects at most once, and then the job
begins, with the first free places. So a request that cannot be performed does not keep others waiting.

The conclusion ([replies_despite_cuts]) is about a new disk of shape [g], after any life that ends where
nothing is under way or the power is off, then any turns of the server and any power cuts ([in_power]). A
power cut comes at any moment. What waited and what was under way is lost; the server opens the disk again,
and requests may arrive meanwhile.
- A disk that is closed is open after a bounded number of turns ([to_open]), counted anew for each power cut.
  If the power fails [k] times more at most, also while the disk is opened, [S k * to_open] turns are enough.
- From wherever the server stands, if the power does not fail again, each request that waits is answered after
  at most [turns_to_reply] turns, and [to_open] more if the disk is closed, whatever it asks for, and whatever
  the others ask for. So every request that is called after the last power cut is answered. These are the
  turns of the jobs that have begun ([turns_begun]), of the requests before it and of its own ([turns_for]: a
  short write may bring up to [most] others with it). It is answered [Ok], as long as it is within the stated
  sizes ([admissible]) when the disk begins it alone. If its job has begun already, [turns_begun] turns are
  enough for an answer.

Between any two turns other requests arrive. On one device a turn is an I/O at most, and what is assumed of
digests is true. *)
Import ServedDiskPrograms ServedDiskProgress ServedLegProgress.
Theorem served_requests_answered `{blocks} {torn : tearing block} trees g most z :
  blocks_laws → DiskMachineShape.formatted_as proved_programs trees g z →
  device_replies_to_all proved_programs places_for Collect admissible (ProvedDiskBounds.request_ios g)
    (change_ios g) most z.
Proof. intros ?. apply whole_map_device_replies. Qed.

(** 21. On a leg devices fail between any two turns, as long as [fewest] members answer, and the devices are
as large as the disk. While the power is off they fail and come back. An I/O takes at most four turns on
each device and one more; opening the leg copies its blocks first. *)
Theorem served_leg_requests_answered `{blocks} {C} `{cutting block C} {torn : tearing block} size count trees
    g most
    z :
  blocks_laws → LegCorrect.cutting_laws count →
  LegDiskShape.formatted_as proved_programs count trees g size z →
  ProvedDiskBounds.device_blocks g ≤ size →
  leg_replies_to_all proved_programs size count places_for Collect admissible (ProvedDiskBounds.request_ios g)
    (change_ios g) most z.
Proof. intros ??. by apply whole_map_leg_replies. Qed.

(** 21. On mirrors one of them is enough. *)
Theorem served_mirrored_requests_answered `{blocks} {torn : tearing block} size count trees g most z :
  let code := LegCode.mirrors zero_block in
  blocks_laws → 0 < count →
  LegDiskShape.formatted_as (cutting0 := code) proved_programs count trees g size z →
  ProvedDiskBounds.device_blocks g ≤ size →
  leg_replies_to_all (cutting0 := code) proved_programs size count places_for Collect admissible
    (ProvedDiskBounds.request_ios g) (change_ios g) most z.
Proof.
  intros code laws Hcount. apply (whole_map_leg_replies trees g (cutting0 := code)).
  by apply LegCode.mirrors_laws.
Qed.

(** 21. On RAID-5 ([m] = 1) and RAID-6 ([m] = 2) [m] may be gone. *)
Theorem served_raid_requests_answered `{blocks} {torn : tearing block} {decided : ∀ a, Decision (tears a)}
    bytes k m
    (cut : block → vec (vec Parity.byte bytes) k) glue size trees g most z :
  let code := LegCode.raid_leg bytes k m cut glue in
  blocks_laws → (∀ b, glue (cut b) = b) → 1 ≤ k → 1 ≤ m ≤ 2 → (m = 2 → k ≤ 255) →
  LegDiskShape.formatted_as (cutting0 := code) proved_programs (k + m) trees g size z →
  ProvedDiskBounds.device_blocks g ≤ size →
  leg_replies_to_all (cutting0 := code) proved_programs size (k + m) places_for Collect admissible
    (ProvedDiskBounds.request_ios g) (change_ios g) most z.
Proof.
  intros code laws Hglue Hk Hm Hb. apply (whole_map_leg_replies trees g (cutting0 := code)).
  by apply LegCode.raid_leg_laws.
Qed.

(** 21. This server is the queue of 16: every run of it ([server_run]: turns, requests that arrive, failures
of devices, power cuts after which the disk is opened again) is a run of the queue in front of the disk,
whatever programs the disk runs. Its history is [history_of]: a request is called as it is answered later.
What a power cut shows is about the job under way ([cut_told]); it is so on these machines
([ServedDiskServer.leg_cut_told]). So what is proved of the queue, that it implements the contract for
requests that overlap, is true of what this server does. *)
Theorem server_run_is_queue_run `{blocks, EqDecision block} {torn : tearing block} {Y U}
    (D : DiskMachine.programs Y U) places_for collecting most z happened s :
  let M := DiskMachine.disk_machine D in
  ServedDiskServer.server_run M (device_turn D places_for collecting) (ServedDiskScheduler.next_job most)
    (ServedDiskScheduler.Server z [] [] []) happened s →
  ∃ tr k, OverlappingDiskQueue.queue_run (OverlappingDiskQueue.one_by_one M)
    (OverlappingDiskQueue.in_front M z) (ServedDiskServer.history_of happened) tr k.
Proof. intros M Hrun. by eapply ServedDiskServer.device_server_run. Qed.

Theorem leg_server_run_is_queue_run `{blocks, EqDecision block} {C} `{cutting block C} {torn : tearing block}
    {Y U}
    (D : DiskMachine.programs Y U) size count places_for collecting most z happened s :
  let M := leg_disk D size count in
  ServedDiskServer.server_run M (job_turn D size places_for collecting) (ServedDiskScheduler.next_job most)
    (ServedDiskScheduler.Server z [] [] []) happened s →
  ∃ tr k, OverlappingDiskQueue.queue_run (OverlappingDiskQueue.one_by_one M)
    (OverlappingDiskQueue.in_front M z) (ServedDiskServer.history_of happened) tr k.
Proof. intros M Hrun. by eapply ServedDiskServer.leg_server_run. Qed.

(** 22. A flush begins and ends: what was written before it began is durable when it has ended, and before,
any subset survives. Where nothing is written meanwhile, it is the flush of one step. *)
Theorem flush_begins_and_ends {B} {torn : Medium.tearing B} :
  (∀ m : Medium.medium B, SplitFlush.end_flush (SplitFlush.begin_flush m) = Medium.flush_blocks m) ∧
  (∀ (w : SplitFlush.flushing B) f a,
    a ∉ (SplitFlush.later w).*1 → Medium.may_leave (SplitFlush.end_flush w) f →
    f a = Medium.read_block (SplitFlush.meanwhile w) a) ∧
  ∀ (w : SplitFlush.flushing B) f,
    (∀ a, f a = SplitFlush.held w a ∨ (a, f a) ∈ SplitFlush.covered w ∨ (a, f a) ∈ SplitFlush.later w) →
    Medium.may_leave (SplitFlush.meanwhile w) f.
Proof.
  split; [apply SplitFlush.flush_at_once|].
  split; [apply SplitFlush.covered_durable|apply SplitFlush.meanwhile_volatile].
Qed.

(** 22. The disk with a pipeline ([PipelinedMachine.v]): while the last flush of a request, or of several
writes at once, is under way, the next job runs: it reads, and writes its data to places that were free
before. For anything else, its log record too, it waits for the end of the flush, and nothing of it is shown
before. A power cut may leave any subset of what both wrote. It keeps the contract, *)
Theorem pipelined_disk_refines_contract `{blocks} {torn : tearing block} :
  blocks_laws → implements PipelinedDisk.pipelined_disk Ack.
Proof. intros laws. apply PipelinedDisk.pipelined_disk_refines. Qed.

(** also behind a queue, *)
Theorem served_pipelined_disk_refines_contract `{blocks, EqDecision block} {torn : tearing block} n c h tr q :
  blocks_laws → fresh PipelinedDisk.pipelined_disk n c →
  OverlappingDiskQueue.queue_run (OverlappingDiskQueue.one_by_one PipelinedDisk.pipelined_disk)
    (OverlappingDiskQueue.in_front PipelinedDisk.pipelined_disk c) h tr q →
  admits_overlapping ByRequest Ack 0 (Alone (Event (Create n)) :: h).
Proof. apply PipelinedServer.served_pipelined_disk_refines. Qed.

(** and every run of the server that takes the next job during a flush is a run of this queue. *)
Theorem pipelined_server_run_is_queue_run `{blocks, EqDecision block} {torn : tearing block} {Y U}
    (D : DiskMachine.programs Y U) spare places_for collecting most x happened s :
  let M := PipelinedMachine.pipelined D spare in
  ServedDiskServer.server_run M (PipelinedServer.pipeline_turn D spare places_for collecting)
    (ServedDiskScheduler.next_job most) (ServedDiskScheduler.Server x [] [] []) happened s →
  ∃ tr k, OverlappingDiskQueue.queue_run (OverlappingDiskQueue.one_by_one M)
    (OverlappingDiskQueue.in_front M x) (ServedDiskServer.history_of happened) tr k.
Proof. intros M Hrun. by eapply PipelinedServer.pipelined_server_run. Qed.

(** 22. And as on the server of 21, each request that waits is answered after a bounded number of turns: at
most [longest] more than there, and two, if a flush under way takes at most [longest] turns of the next job.
[Ok], as long as it is within the stated sizes when the disk begins it. This is so in every state that the
disk comes to, with any number of power cuts, also during a flush: if it is off, it opens in a bounded number
of turns; and once it has nothing under way, whoever waits then or calls later is answered, if the power
stays on. *)
Theorem pipelined_requests_answered `{blocks} {torn : tearing block} trees g most longest z :
  blocks_laws → DiskMachineShape.formatted_as proved_programs trees g z →
  PipelinedProgress.pipelined_replies_to_all proved_programs SparePlaces.spare_address places_for Collect
    admissible (ProvedDiskBounds.request_ios g) (change_ios g) most longest (PipelinedMachine.OneJob z).
Proof. intros ?. apply PipelinedProgress.whole_map_pipelined_replies. Qed.

(** 12. This is more than safety: a machine that cannot go on does not have it, and neither does one whose
turns are never good, such as one that refuses everything. *)
Theorem progress_needs_turns {M E} (weather : M → M → Prop) (turn : M → list E → M → Prop) good n z :
  weather z z → (∀ es z', ¬ turn z es z') → ¬ Progress.ends_well weather turn good n z.
Proof. apply Progress.no_progress_blocked. Qed.

Theorem progress_needs_good_turns {M E} (weather : M → M → Prop) (turn : M → list E → M → Prop)
    (good : list E → M → Prop) (seen : M → Prop) n z :
  (∀ z, seen z → weather z z ∧ ∀ es z', turn z es z' → ¬ good es z' ∧ seen z') → seen z →
  ¬ Progress.ends_well weather turn good n z.
Proof. apply Progress.no_progress_refusing. Qed.

(** 13. What was put into blocks is read back: words as bytes, with any digest that does not collide; log
records, headers, superblock and maps as words. *)
Theorem bytes_round_trip width n s d c :
  0 < s → 3 * s ≤ n → collision_free d c → digests_below d (256 ^ width) →
  @blocks_laws (byte_blocks width n s d c).
Proof. apply byte_blocks_laws. Qed.

Theorem codecs_round_trip :
  round_trips log_codec ∧ round_trips header_codec ∧ round_trips superblock_codec ∧ round_trips maps_codec.
Proof.
  split_and!; [apply ProvedDiskRecords.log_round_trips|apply ProvedDiskInvariant.header_round_trips|
    apply ProvedDiskInvariant.superblock_round_trips|apply ProvedDiskInvariant.maps_round_trips].
Qed.

(** 14. Every refusal has a reason. A request that changes a view is answered [Ok] unless: it has a fault; it
is one snapshot too many; its places are not free, distinct and as many as its data; its record is longer than
a block; or the log is full and the maps do not go into a slot. *)
Import ProvedDiskProgress.
Theorem refusal_has_reason `{blocks} y places q r fr m :
  faults_of y q = [] → one_too_many y q = false → record_of q places = Some r →
  take_free places (free y) = Some fr → length places = length (data_of q) →
  record_fits y r (data_of q) → log_can_go_on y →
  (execute (perform y places q) m).1.1.2 = Ok.
Proof. apply ProvedDiskProgress.refusal_has_reason. Qed.

(** 14. Of the places that a scheduler proposes, no more count than a request has data. So a wrong proposal
can only make the disk refuse writes. *)
Theorem surplus_ignored `{blocks} y places q :
  perform y places q = perform y (take (length (data_of q)) places) q.
Proof. apply ProvedDiskProgress.surplus_ignored. Qed.

(** 14. Costs, counted from executions (block reads, writes, flushes): with room in the log a write of n
blocks costs n + 1 writes and 1 flush, another change 1 and 1, whatever snapshots there are; a read of n
blocks n reads at most. *)
Theorem update_cost `{blocks} y places q r fr m :
  faults_of y q = [] → one_too_many y q = false → record_of q places = Some r →
  take_free places (free y) = Some fr → length places = length (data_of q) →
  record_fits y r (data_of q) → has_room y = true →
  cost (perform y places q) m = (0, S (length (data_of q)), 1).
Proof. apply ProvedDiskProgress.update_cost. Qed.

(** Several writes at once, of n blocks together, cost n + 1 writes and 1 flush for all of them. *)
Theorem group_cost `{blocks} y places ws fr m : let bs := blocks_of ws in
  Forall (λ w, fits (disk_blocks (shape y)) w.1 (length w.2)) ws → length places = length bs →
  take_free places (free y) = Some fr → record_fits y (LogGroup (zip bs.*1 places)) bs.*2 →
    has_room y = true →
  (execute (write_group y places ws) m).1.2 = true ∧
  cost (write_group y places ws) m = (0, S (length bs), 1).
Proof. apply ProvedDiskProgress.group_cost. Qed.

(** However many blocks: a record that is longer than a block takes several of the log. They are written with
the data, and flushed with them: one flush for all. *)
Theorem long_update_cost `{blocks} y places q r fr m :
  faults_of y q = [] → one_too_many y q = false → record_of q places = Some r →
  take_free places (free y) = Some fr → length places = length (data_of q) →
  record_goes y r (data_of q) → room_for y (size_of r) = true →
  cost (perform y places q) m = (0, size_of r + length (data_of q), 1).
Proof. apply ProvedDiskProgress.long_update_cost. Qed.

Theorem long_group_cost `{blocks} y places ws fr m :
  let bs := blocks_of ws in let r := LogGroup (zip bs.*1 places) in
  Forall (λ w, fits (disk_blocks (shape y)) w.1 (length w.2)) ws → length places = length bs →
  take_free places (free y) = Some fr → record_goes y r bs.*2 → room_for y (size_of r) = true →
  (execute (write_group y places ws) m).1.2 = true ∧
  cost (write_group y places ws) m = (0, size_of r + length bs, 1).
Proof. apply ProvedDiskProgress.long_group_cost. Qed.

Theorem read_cost `{blocks} y places from lba count m :
  ∃ n, n ≤ count ∧ cost (perform y places (DoRead from lba count)) m = (n, 0, 0).
Proof. apply ProvedDiskProgress.read_cost. Qed.

(** A write is refused for want of space only where there is none: after a collection, with the first free
places, it is answered [Ok] if the places in use leave room for it. Its record goes into a block, numbers are
below the limit of words, and the log has room or the maps go into a slot. *)
Theorem write_is_taken `{blocks} y lba data m :
  let n := length data in let g := shape y in let y' := collect y in digests_below digest limit →
  fits (disk_blocks g) lba n → base.size (used_places (current y) (newest y)) + n ≤ data_blocks g →
  n + 7 ≤ sealed_words → n + 1 < limit → disk_blocks g < limit → data_blocks g < limit → next_record y <
    limit →
  ProvedDiskProgress.log_can_go_on y →
  (execute (perform y' (first_free y' n) (DoWrite lba data)) m).1.1.2 = Ok.
Proof. apply ProvedDiskProgress.write_is_taken. Qed.

(** And so are several writes at once, of n blocks together. Their record has two numbers per block. *)
Theorem group_is_taken `{blocks} y ws m :
  let n := length (blocks_of ws) in let g := shape y in let y' := collect y in digests_below digest limit →
  Forall (λ w, fits (disk_blocks g) w.1 (length w.2)) ws →
  base.size (used_places (current y) (newest y)) + n ≤ data_blocks g → 2 * n + 6 ≤ sealed_words →
  256 ≤ limit → 2 * n < limit → disk_blocks g < limit → data_blocks g < limit → next_record y < limit →
  ProvedDiskProgress.log_can_go_on y →
  (execute (write_group y' (first_free y' n) ws) m).1.2 = true.
Proof. apply ProvedDiskProgress.group_is_taken. Qed.

(** And so are writes of any number of blocks: their record takes so many blocks of the log. *)
Theorem long_group_is_taken `{blocks} y ws m :
  let n := length (blocks_of ws) in let g := shape y in let y' := collect y in
  digests_below digest limit → Forall (λ w, fits (disk_blocks g) w.1 (length w.2)) ws →
  base.size (used_places (current y) (newest y)) + n ≤ data_blocks g → 9 ≤ sealed_words →
  256 ≤ limit → 2 * n < limit → disk_blocks g < limit → data_blocks g < limit → next_record y < limit →
  blocks_for (2 * n + 3) < limit → ProvedDiskProgress.log_can_go_on_for (blocks_for (2 * n + 3)) y →
  (execute (write_group y' (first_free y' n) ws) m).1.2 = true.
Proof. apply ProvedDiskProgress.long_group_is_taken. Qed.

(** No more places are in use than blocks are mapped, by all views together, and the newest record has. After
a checkpoint there is none. *)
Theorem used_at_most_mapped m kept :
  base.size (used_places m kept) ≤ ProvedDiskProgress.mapped m + length kept.
Proof. apply ProvedDiskProgress.used_at_most_mapped. Qed.

(** 12. An execution with power cuts in a write, in a checkpoint and in recovery, a record and a header that
tear, a record that survives without its data and is dropped, one that survives with them though nothing was
flushed, a cleaning, a deletion, and a scheduler that proposes a place in use. *)
Theorem proved_disk_execution : ∃ x x',
  fresh (@proved_disk ProvedDiskExecution.small ProvedDiskExecution.behind_the_log) 4 x ∧
  shows proved_disk x ProvedDiskExecution.everything_shows x'.
Proof. apply ProvedDiskExecution.life_exists. Qed.

(** The hypotheses are true of its blocks and digests. *)
Theorem proved_disk_hypotheses_hold : @blocks_laws ProvedDiskExecution.small.
Proof. apply ProvedDiskExecution.small_laws. Qed.

(** And one with records that take two blocks of the log, which power cuts leave without their bodies, without
their heads, torn, without their data, and whole. The hypotheses are true of its blocks and digests. *)
Theorem long_records_execution : @blocks_laws ProvedDiskLongRecords.tiny ∧ ∃ x x',
  fresh (@proved_disk ProvedDiskLongRecords.tiny ProvedDiskLongRecords.behind_the_log) 4 x ∧
  shows proved_disk x ProvedDiskLongRecords.long_life_shows x'.
Proof. split; [apply ProvedDiskLongRecords.tiny_laws|apply ProvedDiskLongRecords.long_life_exists]. Qed.

(** And served: two writes in flight that are performed together and answered, a third one whose answer is
lost with the power, a power cut while two more are performed, which both happened, one in a write that is
performed alone, which did not, and a read. *)
Theorem served_disk_execution : ServedDiskExecution.served_shows
  (@proved_disk ProvedDiskExecution.small ProvedDiskExecution.behind_the_log) 4
  ServedDiskExecution.device_shows.
Proof. apply ServedDiskExecution.served_life_exists. Qed.

(** And with a pipeline: the data of the next write go to their place during a flush. Power cuts come then: of
the two, the first one happened if its data and its record survived, and the next one did not. *)
Theorem pipelined_disk_execution : ∃ x x',
  fresh (@PipelinedDisk.pipelined_disk ProvedDiskExecution.small ProvedDiskExecution.behind_the_log) 4 x ∧
  shows PipelinedDisk.pipelined_disk x PipelinedDiskWitnesses.two_in_flight_shows x'.
Proof. apply PipelinedDiskWitnesses.pipelined_life_exists. Qed.

(** And on two mirrors: while requests wait a device fails, the other one too, data are lost and a write is of
unknown outcome; it comes back, the power fails while writes are performed together, a resync. *)
Theorem served_mirrored_disk_execution : ServedDiskExecution.served_shows
  (leg_disk (cutting0 := LegDiskExecution.mirrored) (torn := Medium.untorn) proved_programs 20 2) 4
  ServedDiskExecution.mirrors_shows.
Proof. apply ServedDiskExecution.served_mirrors_life_exists. Qed.

(** And on two mirrors: writes that are performed together, a power cut while two more are, which both
happened since one device has their record; a degraded write, all devices gone, one that comes back stale, the
other one, resync, and the loss of the device that was never stale. *)
Theorem mirrored_disk_execution : ∃ z z',
  LegDiskMachine.formatted (cutting0 := LegDiskExecution.mirrored) (torn := Medium.untorn)
    proved_programs 20 2 4 z ∧
  LegDiskMachine.lives (cutting0 := LegDiskExecution.mirrored) (torn := Medium.untorn) proved_programs 20 2 z
    LegDiskExecution.everything_on_mirrors_shows z'.
Proof. apply LegDiskExecution.mirrored_life_exists. Qed.

(** And on RAID-5 over three devices, of a checkpoint that a power cut tears, a degraded write, a write in
which one device too many fails, which is dropped since its data are not whole, one that comes back stale, the
right one, another device in the place of one, and the loss of a device that was never replaced. *)
Import LegDiskRaid.
Theorem raid5_disk_execution : ∃ z z',
  LegDiskMachine.formatted (cutting0 := raid_of_two 1 5) (torn := tears_from 5) proved_programs 20 3 4 z ∧
  LegDiskMachine.lives (cutting0 := raid_of_two 1 5) (torn := tears_from 5) proved_programs 20 3 z
    everything_on_raid5_shows z'.
Proof. apply LegDiskRaid.raid5_life_exists. Qed.

(** And on RAID-6 over four: a degraded write while two devices are gone, a third, and resync. *)
Theorem raid6_disk_execution : ∃ z z',
  LegDiskMachine.formatted (cutting0 := raid_of_two 2 5) (torn := tears_from 5) proved_programs 20 4 4 z ∧
  LegDiskMachine.lives (cutting0 := raid_of_two 2 5) (torn := tears_from 5) proved_programs 20 4 z
    everything_on_raid6_shows z'.
Proof. apply LegDiskRaid.raid6_life_exists. Qed.
End Running.
