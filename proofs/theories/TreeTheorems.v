(** What is proved, as in [Theorems.v]: of shared trees on blocks, and of the disk that runs with them as its
maps. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk RecordedTrace RecordedImplementation OverlappingDisk.
From LogDisk Require VirtualDiskProperties TreeDiskTheorem TreeDiskBlocks SharedTreeCursor TreeStoreTheorem
  TreeStoreCost TreeStoreWitnesses.
From LogDisk Require DiskMachineShape DiskMachineProgress ProvedDiskProgress ProvedDiskExecution
  ProvedTreeDiskTheorem ProvedTreeDiskCost ProvedTreeDiskProgress ProvedTreeDiskExecution.
From LogDisk Require LegCode LegDiskTheorem LegDiskRaid LegDiskShape LegDiskProgress LegDiskGroups
  LegDiskResync Progress ProvedTreeDiskAnswers TreeLegDiskTheorem TreeLegDiskProgress TreeLegDiskRecovery
    TreeLegDiskExecution.
From LogDisk Require OverlappingDiskQueue ServedDiskTheorem ServedDiskExecution LegDiskUpkeep
  ServedDiskScheduler ServedDiskPrograms ServedDiskProgress ServedLegProgress PipelinedDisk PipelinedServer
  PipelinedProgress.

(** ** Shared trees on blocks

Theorems about every state that the disk with shared trees reaches, where there is a key for each block of
it. *)
Module OnBlocks.
Import Codec TreeDisk TreeDiskTheorem TreeIndex(trees, named).

(** 19. A node has at most one kid for each digit, and goes into one block, whose codec reads it back: with
digits of 6 bits, into 257 words. *)
Theorem tree_nodes_fit {V} `{Value V} K bits levels n `{blocks, !blocks_laws} tr (c : state V) on m nd :
  sound K → n ≤ 2 ^ (bits * S levels) → 1 + 4 * 2 ^ bits ≤ words → 2 ^ bits < limit →
  shows (tree_disk K bits levels) (initial levels n) tr c →
  TreeBlocks.small_numbers (trees (current (mem c))) on →
  SharedTree.nodes (trees (current (mem c))) !! m = Some nd →
  base.size (SharedTree.kids nd) ≤ 2 ^ bits ∧
  ∃ b, pack (TreeBlocks.kids_words (trees (current (mem c))) on nd) = Some b ∧
    unpack TreeBlocks.kids_codec b =
      Some (TreeBlocks.entry (trees (current (mem c))) on <$> SharedTree.kids nd).
Proof. intros. by eapply TreeDiskBlocks.nodes_fit. Qed.

(** 19. What a checkpoint has of the trees beside their nodes grows with the number of views and of walks, and
with how far these have come. Where no walk is left, that is a number of words for each view. *)
Theorem tree_roots_bounded {V} `{Value V} K bits levels n tr (c : state V) on :
  sound K → n ≤ 2 ^ (bits * S levels) → shows (tree_disk K bits levels) (initial levels n) tr c →
  length (put TreeRoots.roots_codec (TreeBlocks.roots_of (trees (current (mem c))) on)) ≤
    4 + base.size (SharedTree.claims (trees (current (mem c)))) * (11 + levels) +
    TreeRoots.cursors (trees (current (mem c))) ∧
  (no_walks c → TreeRoots.cursors (trees (current (mem c))) = 0 ∧
    base.size (SharedTree.claims (trees (current (mem c)))) ≤ 1 + base.size (named (current (mem c)))).
Proof. intros. by eapply TreeDiskBlocks.roots_bounded. Qed.

(** 19. A walk that goes through one subtree after the other, from the bottom up, has a short cursor: at most
a place for each digit of each level on its way. *)
Theorem tree_cursors_bounded fan c nd : SharedTreeCursor.goes_deep fan c nd →
  NoDup (SharedTree.done (SharedTree.finish c nd)) ∧
  length (SharedTree.done (SharedTree.finish c nd)) ≤ S (S (length (SharedTree.place nd)) * fan).
Proof. apply SharedTreeCursor.cursor_bounded. Qed.

(** 19. Whatever a step of this disk does to its trees while the power stays on (operations, walks,
checkpoints,
replay of the log) is a history of changes, after which a checkpoint on a device may follow (below). *)
Theorem tree_disk_changes {V} `{Value V} K bits levels n tr (c : state V) a es c' :
  sound K → n ≤ 2 ^ (bits * S levels) → shows (tree_disk K bits levels) (initial levels n) tr c →
  perform K bits levels a c = Some (es, c') → at_phase c' ≠ Off → a ≠ Load →
  ∃ history, Forall (TreeIndexBounds.of_record bits) history ∧
    SharedTree.run (trees (current (mem c))) history = Some (trees (current (mem c'))).
Proof. intros. by eapply TreeDiskBlocks.steps_are_changes. Qed.

Theorem tree_codecs_round_trip : round_trips TreeBlocks.kids_codec ∧ round_trips TreeRoots.roots_codec.
Proof. split; [apply TreeBlocks.kids_round_trips|apply TreeRoots.roots_round_trips]. Qed.

End OnBlocks.

Module OnDevice.
Import Codec Medium TreeStore TreeStoreTheorem TreeStoreWitnesses.

(** 19. The trees on a device of blocks, as programs of reads, writes and flushes. A device holds a checkpoint
([stored]); then come any changes of the trees and of what stands beside them, then another checkpoint, with
any proposal of pages. Wherever the power cuts it short, recovery brings back what the checkpoint before
had, or what this one has, and a checkpoint may follow. Any subset of what is not flushed survives; nodes and
roots may tear to anything, headers to what does not unseal. Recovery writes nothing. *)
Theorem tree_checkpoint_recovers `{blocks, !blocks_laws} {torn : tearing block} {A} (c : codec A) l bits
    levels
    f s0 on (x0 : A) n sl history s x places p m f' :
  apart l → round_trips c → torn_headers_unread l →
  stored c l bits levels f s0 on x0 n sl →
  Forall (TreeIndexBounds.of_record bits) history → SharedTree.run s0 history = Some s →
  goes_to (checkpoint c l (Memory _ s on x n sl) places Done) (Medium f []) p m → may_leave m f' →
  recovers_to c l bits levels f' s0 x0 n sl ∨
  recovers_to c l bits levels f' (TreeIndex.act SharedTree.Checkpoint s) x (S n) (negb sl).
Proof. intros ???. by apply checkpoint_recovers. Qed.

(** 19. And where nothing cuts it short, it is taken, and the device holds it, or nothing has changed.
It leaves
alone what is not its own: the log, and data. *)
Theorem tree_checkpoint_ends `{blocks, !blocks_laws} {torn : tearing block} {A} (c : codec A) l bits levels
    f s0 on (x0 : A) n sl history s x places :
  apart l → round_trips c → torn_headers_unread l →
  stored c l bits levels f s0 on x0 n sl →
  Forall (TreeIndexBounds.of_record bits) history → SharedTree.run s0 history = Some s →
  let y := Memory _ s on x n sl in let y' := checkpointed y places in
  let r := execute (checkpoint c l y places Done) (Medium f []) in r = (y, Medium f []) ∨
  r.1 = y' ∧ ∃ f', r.2 = Medium f' [] ∧
    stored c l bits levels f' (TreeIndex.act SharedTree.Checkpoint s) (TreeStore.pages y') x (S n) (negb sl) ∧
    ∀ a, ¬ touched l places (negb sl) a → a ≠ header_at l (negb sl) → f' a = f a.
Proof. intros ???. by apply checkpoint_ends. Qed.

(** 19. A checkpoint writes the new nodes, as many blocks as the roots and what stands beside them need, and a
header; and waits for two flushes. The proposal is taken if it has as many pages as there are new nodes, none
that the newest checkpoint uses, if the roots go into a slot, and numbers into words. *)
Theorem tree_checkpoint_cost `{blocks, !blocks_laws} {A} (c : codec A) l bits levels (y : memory A) places m :
  TreeIndexBounds.kept_trees bits levels (TreeStore.trees y) → 1 + 4 * 2 ^ bits ≤ words → 2 ^ bits < limit →
  TreeStoreCost.proper_places y places → let y' := checkpointed y places in
  TreeBlocks.small_numbers (TreeStore.trees y) (TreeStore.pages y') → serial y' < limit →
  slot_blocks l < limit →
  let ws := put (body_codec c) (TreeBlocks.roots_of (TreeStore.trees y') (TreeStore.pages y'), beside y) in
  Forall (λ w, w < limit) ws → length ws ≤ slot_blocks l * words →
  (execute (checkpoint c l y places Done) m).1 = y' ∧ ∃ k, k ≤ S (length ws / words) ∧
  ProvedDiskProgress.cost (checkpoint c l y places Done) m =
    (0, length (TreeBlocks.unwritten (TreeStore.trees y) (TreeStore.pages y)) + k + 1, 2).
Proof. apply TreeStoreCost.checkpoint_cost. Qed.

(** 19. New nodes are at most one for each level and each block that was written or unmapped since the last
checkpoint, however large the disk is. *)
Theorem tree_new_nodes history s s' on :
  SharedTreeInvariant.inv s → TreeBlocks.all_in_blocks s on → SharedTree.run s history = Some s' →
  length (TreeBlocks.unwritten s' on) ≤ sum_list (TreeStoreCost.changes <$> history) * SharedTree.height s.
Proof. apply TreeStoreCost.new_nodes. Qed.

(** 19. As many pages are enough as the newest checkpoint has nodes, and there are new ones. *)
Theorem tree_pages_suffice `{blocks} {A} (y : memory A) n :
  base.size (TreeStore.pages y) + length (TreeBlocks.unwritten (TreeStore.trees y) (TreeStore.pages y)) ≤ n →
  ∃ places, TreeStoreCost.proper_places y places ∧ Forall (λ p, p < n) places.
Proof. apply TreeStoreCost.pages_suffice. Qed.

(** 12. An execution: a new device, writes, snapshots, a deletion, half of a walk, a checkpoint of 9 block
writes
and 2 flushes, and a recovery. *)
Theorem tree_store_execution :
  summary <$> made.1 = Some (1, 7, None, [None; None; None; None]) ∧
  (SharedTree.birth <$> SharedTree.nodes (changed some_changes) !! 3) = None ∧
  summary (saved some_changes six).1 = (2, 9, None, [Some 2; None; Some 2; Some 3]) ∧
  found_of some_changes six = Some (2, 9, None, [Some 2; None; Some 2; Some 3]) ∧
  ProvedDiskProgress.cost (checkpoint number (plain 8) (before some_changes) six Done) made.2 = (0, 9, 2).
Proof. apply TreeStoreWitnesses.tree_store_execution. Qed.
End OnDevice.

(** ** The disk that runs, with trees as its maps *)
Module RunningTrees.
Import Medium Codec ProvedDisk ProvedTreeMaps ProvedTreeDiskTheorem TreeLegDiskTheorem TreeLegDiskProgress.
Import ProvedTreeDiskAnswers LegDiskProgress LegDiskGroups ProvedTreeDisk(upkeep(..)) ProvedTreeDiskBounds.

(** 19. One machine that runs ([build/proved-disk create --trees]): its maps are the shared trees, and its
programs are those of block I/O: log and data as in 13, a checkpoint writes the new nodes to pages, the roots
and the middle map to a slot, recovery reads the nodes back and replays the log. It keeps the contract under
[Ack]: power cuts between any two block I/Os, also in a checkpoint and in recovery; blocks tear, headers and
records to what does not unseal; whatever the scheduler proposes, steps of walks among it. The hypotheses are
those of 13. *)
Theorem proved_tree_disk_refines_contract `{blocks} {torn : tearing block} bits :
  blocks_laws → implements (proved_tree_disk bits) Ack.
Proof. apply ProvedTreeDiskTheorem.proved_tree_disk_refines_contract. Qed.

(** 16. And served to many clients, as the disk of 13. *)
Theorem served_tree_disk_refines_contract `{blocks, EqDecision block} {torn : tearing block} bits n c h tr q :
  blocks_laws → fresh (proved_tree_disk bits) n c →
  OverlappingDiskQueue.queue_run (OverlappingDiskQueue.one_by_one (proved_tree_disk bits))
    (OverlappingDiskQueue.in_front (proved_tree_disk bits) c) h tr q →
  admits_overlapping ByRequest Ack 0 (Alone (Event (Create n)) :: h).
Proof. apply ServedDiskTheorem.served_tree_disk_refines_contract. Qed.

(** 22. And with a pipeline, as the disk with whole maps. *)
Theorem pipelined_tree_disk_refines_contract `{blocks} {torn : tearing block} bits :
  blocks_laws → implements (PipelinedDisk.pipelined_tree_disk bits) Ack.
Proof. intros laws. apply PipelinedDisk.pipelined_tree_disk_refines. Qed.

Theorem served_pipelined_tree_disk_refines_contract `{blocks, EqDecision block} {torn : tearing block} bits
    n c h tr q :
  blocks_laws → fresh (PipelinedDisk.pipelined_tree_disk bits) n c →
  OverlappingDiskQueue.queue_run (OverlappingDiskQueue.one_by_one (PipelinedDisk.pipelined_tree_disk bits))
    (OverlappingDiskQueue.in_front (PipelinedDisk.pipelined_tree_disk bits) c) h tr q →
  admits_overlapping ByRequest Ack 0 (Alone (Event (Create n)) :: h).
Proof. apply PipelinedServer.served_pipelined_tree_disk_refines. Qed.

(** 19. Read after snapshot through all of it. *)
Theorem proved_tree_disk_read_after_snapshot `{blocks} {torn : tearing block} bits n x x' name lba count
    (data data' : list block) before tr :
  blocks_laws → fresh (proved_tree_disk bits) n x → Forall (VirtualDiskProperties.keeps name) tr →
  shows (proved_tree_disk bits) x
    (before ++ Read Live lba count Ok data :: Snapshot name Ok ::
     tr ++ [Read (Named name) lba count Ok data']) x' → data' = data.
Proof. apply ProvedTreeDiskTheorem.proved_tree_disk_read_after_snapshot. Qed.

(** 19. Space: what a view maps has a place; once no walk is left, nothing else has. *)
Theorem proved_tree_disk_keeps_exactly `{blocks} {torn : tearing block} bits y x :
  blocks_laws → idle_memory bits y →
  (view_maps bits y x → is_Some (places (ProvedTreeDisk.current y) !! x)) ∧
  (ProvedTreeDisk.walks y = [] → is_Some (places (ProvedTreeDisk.current y) !! x) → view_maps bits y x).
Proof. apply ProvedTreeDiskTheorem.proved_tree_disk_keeps_exactly. Qed.

(** 19. Walks end: the step that the named scheduler proposes for a walk that is left can be taken, and each
step, of whichever walk, leaves less to do. *)
Theorem proved_tree_disk_walks_end `{blocks} {torn : tearing block} bits y w :
  blocks_laws → idle_memory bits y → w ∈ ProvedTreeDisk.walks y →
  is_Some (walk w (ProvedTreeDisk.next_step y w) (ProvedTreeDisk.current y)) ∧
  ∀ n t, walk w n (ProvedTreeDisk.current y) = Some t →
    base.size (SharedTreeDeletion.work (TreeIndex.trees (views t))) <
    base.size (SharedTreeDeletion.work (TreeIndex.trees (views (ProvedTreeDisk.current y)))).
Proof. apply ProvedTreeDiskTheorem.proved_tree_disk_walks_end. Qed.

(** 19. A write of [n] blocks costs [n + 1] block writes and one flush, as with maps that are whole: no node
is
written. *)
Theorem proved_tree_disk_update_cost `{blocks} bits y ps q m :
  ProvedTreeDiskCost.goes_into_log y ps q →
  ProvedDiskProgress.cost (ProvedTreeDisk.perform bits y ps q) m = (0, S (length (ProvedDisk.data_of q)), 1).
Proof. apply ProvedTreeDiskCost.tree_update_cost. Qed.

(** However many blocks. *)
Theorem proved_tree_disk_long_update_cost `{blocks} bits y ps q r fr m :
  ProvedTreeDisk.faults_of y q = [] → ProvedTreeDisk.one_too_many y q = false →
  ProvedDisk.record_of q ps = Some r → ProvedDisk.take_free ps (ProvedTreeDisk.free y) = Some fr →
  length ps = length (ProvedDisk.data_of q) →
  ProvedDiskProgress.record_goes (ProvedTreeDiskInvariant.with_maps y ProvedDisk.no_maps) r
    (ProvedDisk.data_of q) →
  ProvedTreeDisk.room_for y (ProvedDisk.size_of r) = true →
  ProvedDiskProgress.cost (ProvedTreeDisk.perform bits y ps q) m =
    (0, ProvedDisk.size_of r + length (ProvedDisk.data_of q), 1).
Proof. apply ProvedTreeDiskCost.tree_long_update_cost. Qed.

(** 19. A checkpoint writes each node that is new since the last one, the [n] words of the roots with what
stands beside them, and a header, in two flushes; if they go into a slot, numbers into words, and pages are
left. *)
Theorem proved_tree_disk_checkpoint_cost `{blocks, !blocks_laws} bits y m :
  ProvedTreeDiskCost.goes_into_slot bits y → ∃ k, k ≤ S (length (ProvedTreeDiskCost.root_words y) / words) ∧
  ProvedDiskProgress.cost (ProvedTreeDisk.checkpoint y Done) m =
    (0, length (ProvedTreeDiskCost.new_nodes y) + k + 1, 2).
Proof. apply ProvedTreeDiskCost.tree_disk_checkpoint_cost. Qed.

(** 19. Recovery ends, after any power cut, also one in recovery. It takes two turns, and as many as
[tree_recovery_ios] says of the shape of the disk and the size of its trees, which are those of the new disk
for ever. Then every request within the stated sizes is answered ok ([answers_again]). The power stays on
meanwhile, and what is assumed of digests is true ([assumed]). *)
Theorem proved_tree_disk_recovery_ends `{blocks} {torn : tearing block} bits trees g x tr m :
  blocks_laws → DiskMachineShape.formatted_as (tree_programs bits) trees g x →
  shows (proved_tree_disk bits) x tr (DiskMachine.Off, m) →
  Progress.ends_well DiskMachineProgress.assumed (DiskMachineProgress.recovery_turn (tree_programs bits))
    (ProvedTreeDiskProgress.answers_again bits trees g) (2 + tree_recovery_ios bits g trees)
    (DiskMachine.Off, m).
Proof. intros laws. by eapply ProvedTreeDiskProgress.tree_disk_recovery_ends. Qed.

(** 12. An execution: cuts in a write, in a checkpoint after some of its nodes and between its flushes, in
recovery, in a walk, and in writes at once; a deletion, its walks, and its data's place used again. *)
Import ProvedDiskExecution(small, behind_the_log).
Theorem proved_tree_disk_execution : ∃ x x',
  fresh (@proved_tree_disk small behind_the_log 1) 4 x ∧
  shows (@proved_tree_disk small behind_the_log 1) x ProvedTreeDiskExecution.everything_shows x'.
Proof. apply ProvedTreeDiskExecution.tree_life_exists. Qed.

(** 20. One machine with shared trees, on a leg of several devices ([build/proved-disk create --trees
--mirrors N], [--raid5 N], [--raid6 N]): the programs of 19 on the leg of 17. Checkpoints write nodes to pages
on all members, recovery reads nodes from those that answer; with parity a node is a stripe. The hypotheses
are those of 17. *)
Import Leg LegDiskMachine.
Theorem tree_leg_disk_refines_contract `{blocks} {C} `{cutting block C} {torn : tearing block} bits size
    count n
    z tr z' :
  blocks_laws → LegCorrect.cutting_laws count →
  formatted (tree_programs bits) size count n z → lives (tree_programs bits) size count z tr z' →
  admits_recorded Ack (count - fewest) (Event (Create n) :: tr).
Proof. apply TreeLegDiskTheorem.tree_leg_disk_refines_contract. Qed.

(** 20. On mirrors, *)
Theorem mirrored_tree_disk_refines_contract `{blocks} {torn : tearing block} bits size count n z tr z' :
  let code := LegCode.mirrors zero_block in
  blocks_laws → 0 < count →
  formatted (cutting0 := code) (tree_programs bits) size count n z →
  lives (cutting0 := code) (tree_programs bits) size count z tr z' →
  admits_recorded Ack (count - 1) (Event (Create n) :: tr).
Proof. intros code laws. by eapply LegDiskTheorem.refines_on_mirrors, tree_programs_safe. Qed.

(** 20. and on RAID-5 ([m] = 1) and RAID-6 ([m] = 2). *)
Theorem raid_tree_disk_refines_contract `{blocks} {torn : tearing block} {decided : ∀ a, Decision (tears a)}
    bits
    bytes k m (cut : block → vec (vec Parity.byte bytes) k) glue size n z tr z' :
  blocks_laws → (∀ b, glue (cut b) = b) → 1 ≤ k → 1 ≤ m ≤ 2 → (m = 2 → k ≤ 255) →
  let code := LegCode.raid_leg bytes k m cut glue in
  formatted (cutting0 := code) (tree_programs bits) size (k + m) n z →
  lives (cutting0 := code) (tree_programs bits) size (k + m) z tr z' →
  admits_recorded Ack m (Event (Create n) :: tr).
Proof. intros laws. by eapply LegDiskTheorem.refines_on_raid, tree_programs_safe. Qed.

(** 16. And served to many clients: on any leg, *)
Import ServedDiskTheorem(leg_disk).
Theorem served_tree_leg_disk_refines_contract `{blocks, EqDecision block} {C} `{cutting block C}
    {torn : tearing block} bits size count n z h tr q :
  let M := leg_disk (tree_programs bits) size count in
  blocks_laws → LegCorrect.cutting_laws count → formatted (tree_programs bits) size count n z →
  OverlappingDiskQueue.queue_run (OverlappingDiskQueue.one_by_one M) (OverlappingDiskQueue.in_front M z) h tr
    q →
  admits_overlapping ByRequest Ack (count - fewest) (Alone (Event (Create n)) :: h).
Proof.
  intros M laws code Hz. eapply ServedDiskTheorem.served_leg_disk_refines; [|done..].
  by apply tree_programs_safe.
Qed.

(** 16. on mirrors, *)
Theorem served_mirrored_tree_disk_refines_contract `{blocks, EqDecision block} {torn : tearing block} bits
    size count n z h tr q :
  let code := LegCode.mirrors zero_block in
  let M := leg_disk (cutting0 := code) (tree_programs bits) size count in
  blocks_laws → 0 < count → formatted (cutting0 := code) (tree_programs bits) size count n z →
  OverlappingDiskQueue.queue_run (OverlappingDiskQueue.one_by_one M) (OverlappingDiskQueue.in_front M z) h tr
    q →
  admits_overlapping ByRequest Ack (count - 1) (Alone (Event (Create n)) :: h).
Proof.
  intros code M laws Hcount Hz. eapply ServedDiskTheorem.served_on_mirrors; [|done..].
  by apply tree_programs_safe.
Qed.

(** 16. and on RAID-5 ([m] = 1) and RAID-6 ([m] = 2). *)
Theorem served_raid_tree_disk_refines_contract `{blocks, EqDecision block} {torn : tearing block}
    {decided : ∀ a, Decision (tears a)} bits bytes k m (cut : block → vec (vec Parity.byte bytes) k) glue size
    n z h tr q :
  let code := LegCode.raid_leg bytes k m cut glue in
  let M := leg_disk (cutting0 := code) (tree_programs bits) size (k + m) in
  blocks_laws → (∀ b, glue (cut b) = b) → 1 ≤ k → 1 ≤ m ≤ 2 → (m = 2 → k ≤ 255) →
  formatted (cutting0 := code) (tree_programs bits) size (k + m) n z →
  OverlappingDiskQueue.queue_run (OverlappingDiskQueue.one_by_one M) (OverlappingDiskQueue.in_front M z) h tr
    q →
  admits_overlapping ByRequest Ack m (Alone (Event (Create n)) :: h).
Proof.
  intros code M laws Hglue Hk Hm Hb Hz. eapply ServedDiskTheorem.served_on_raid; [|done..].
  by apply tree_programs_safe.
Qed.

(** 20. Read after snapshot through all of it: while devices fail, come back, are replaced and copied to. *)
Theorem tree_leg_disk_read_after_snapshot `{blocks} {C} `{cutting block C} {torn : tearing block} bits size
    count n
    z z' name lba count' (data data' : list block) before tr :
  blocks_laws → LegCorrect.cutting_laws count → formatted (tree_programs bits) size count n z →
  Forall (RecordedSnapshots.keeps_snapshot name) tr →
  lives (tree_programs bits) size count z
    (before ++ Event (Read Live lba count' Ok data) :: Event (Snapshot name Ok) ::
     tr ++ [Event (Read (Named name) lba count' Ok data')]) z' → data' = data.
Proof. apply TreeLegDiskTheorem.tree_leg_disk_read_after_snapshot. Qed.

(** 20. Space, as in 19. *)
Theorem tree_leg_disk_keeps_exactly `{blocks} {C} `{cutting block C} {torn : tearing block} bits size count y
    x :
  blocks_laws → LegCorrect.cutting_laws count → idle_on_leg bits size count y →
  (view_maps bits y x → is_Some (places (ProvedTreeDisk.current y) !! x)) ∧
  (ProvedTreeDisk.walks y = [] → is_Some (places (ProvedTreeDisk.current y) !! x) → view_maps bits y x).
Proof. apply TreeLegDiskTheorem.tree_leg_disk_keeps_exactly. Qed.

(** 20. Walks end, as in 19. *)
Theorem tree_leg_disk_walks_end `{blocks} {C} `{cutting block C} {torn : tearing block} bits size count y w :
  blocks_laws → LegCorrect.cutting_laws count → idle_on_leg bits size count y → w ∈ ProvedTreeDisk.walks y →
  is_Some (walk w (ProvedTreeDisk.next_step y w) (ProvedTreeDisk.current y)) ∧
  ∀ n t, walk w n (ProvedTreeDisk.current y) = Some t →
    base.size (SharedTreeDeletion.work (TreeIndex.trees (views t))) <
    base.size (SharedTreeDeletion.work (TreeIndex.trees (views (ProvedTreeDisk.current y)))).
Proof. apply TreeLegDiskTheorem.tree_leg_disk_walks_end. Qed.

(** 20. Requests within the stated sizes are answered, and several writes at once performed, as in 18: new
nodes go into pages and roots into a slot ([tree_admissible]). A checkpoint takes an I/O for each page,
recovery one for each node of each claim, of no more claims than a slot has words ([tree_request_ios]). *)
Theorem tree_leg_requests_answered `{blocks} {C} `{cutting block C} {torn : tearing block} bits size count n
    z tr
    y ms c x h :
  blocks_laws → LegCorrect.cutting_laws count → formatted (tree_programs bits) size count n z →
  lives (tree_programs bits) size count z tr (Idle y ms c, x, h) →
  (∀ q, tree_admissible bits size y q →
   Progress.ends_well (weather count) (turn (tree_programs bits) size tree_places_for (Keep Collect) q)
     (answered_ok q) (turns_of (length ms) (tree_request_ios bits y q)) (Idle y ms c, x, h)) ∧
  ∀ ws, tree_admissible_group bits size y ws →
   Progress.ends_well (weather count) (group_turn (tree_programs bits) size tree_places_for (Keep Collect) ws)
     (group_ok ws) (turns_of (length ms) (tree_group_ios y ws)) (Idle y ms c, x, h).
Proof. by split; intros; [eapply tree_requests_are_answered|eapply tree_groups_are_performed]. Qed.

(** 20. Recovery ends, after any power cut and where too few members answered, while other devices fail and
enough members are left. It takes the turns of opening the leg, and those of the I/Os of 19. Then every
request within the stated sizes is answered ok ([answers_again]), if the devices are as large as the disk. *)
Theorem tree_leg_recovery_ends `{blocks} {C} `{cutting block C} {torn : tearing block} bits size count trees
    g z tr
    c x h :
  blocks_laws → LegCorrect.cutting_laws count →
  LegDiskShape.formatted_as (tree_programs bits) count trees g size z →
  lives (tree_programs bits) size count z tr (c, x, h) → c = Off ∨ c = Lost →
  tree_device_blocks g trees ≤ size →
  Progress.ends_well (weather count) (recovery_turn (tree_programs bits) size)
    (TreeLegDiskRecovery.answers_again bits size count trees g)
    (turns_to_recover size (length (Devices.members x)) (tree_recovery_ios bits g trees)) (c, x, h).
Proof. intros ?? Hz Hlives. by eapply TreeLegDiskRecovery.tree_recovery_is_finished. Qed.

(** 20. Resync ends, as in 18. *)
Theorem tree_leg_resync_ends `{blocks} {C} `{cutting block C} {torn : tearing block} bits size count n z tr y
    ms c x
    h :
  blocks_laws → LegCorrect.cutting_laws count →
  formatted (tree_programs bits) size count n z →
  lives (tree_programs bits) size count z tr (Idle y ms c, x, h) →
  Progress.ends_well (LegDiskProgress.weather count) (LegDiskResync.settle_turn size count)
    LegDiskResync.settled_ok (LegDiskResync.settle_turns size count (length ms)) (Idle y ms c, x, h).
Proof. intros laws ? Hz Hlives. by eapply LegDiskResync.resync_ends; [|by apply tree_programs_safe|..]. Qed.

(** 20. Upkeep ends, as in 18; steps of walks too. *)
Theorem tree_leg_upkeep_ends `{blocks} {C} `{cutting block C} {torn : tearing block} bits size count n z tr y
    ms c x
    h u :
  blocks_laws → LegCorrect.cutting_laws count →
  formatted (tree_programs bits) size count n z →
  lives (tree_programs bits) size count z tr (Idle y ms c, x, h) →
  tree_device_blocks (ProvedTreeDisk.shape y) (ProvedTreeDisk.tree_size y) ≤ size →
  Progress.ends_well (weather count) (LegDiskUpkeep.upkeep_turn (tree_programs bits) size u)
    LegDiskUpkeep.idle_again (LegDiskUpkeep.upkeep_turns (length ms) (tree_upkeep_ios y u))
    (Idle y ms c, x, h).
Proof. intros ??. by apply LegDiskUpkeep.tree_upkeep_is_finished. Qed.

(** 21. And served, every request that waits in the queue has its turn, also after power cuts, as with whole
maps: on one device, *)
Import ServedDiskPrograms ServedDiskProgress ServedLegProgress.
Theorem served_tree_requests_answered `{blocks} {torn : tearing block} bits trees g most z :
  blocks_laws → DiskMachineShape.formatted_as (tree_programs bits) trees g z →
  device_replies_to_all (tree_programs bits) tree_places_for (Keep Collect)
    (tree_admissible bits (tree_device_blocks g trees)) (tree_request_ios_of trees g bits)
    (tree_change_ios_of trees g) most z.
Proof. intros ?. apply tree_device_replies. Qed.

(** 22. also with a pipeline, *)
Theorem pipelined_tree_requests_answered `{blocks} {torn : tearing block} bits trees g most longest z :
  blocks_laws → DiskMachineShape.formatted_as (tree_programs bits) trees g z →
  PipelinedProgress.pipelined_replies_to_all (tree_programs bits) SparePlaces.tree_spare_address
    tree_places_for
    (Keep Collect) (tree_admissible bits (tree_device_blocks g trees)) (tree_request_ios_of trees g bits)
    (tree_change_ios_of trees g) most longest (PipelinedMachine.OneJob z).
Proof. intros ?. apply PipelinedProgress.tree_pipelined_replies. Qed.

(** 21. on any leg, *)
Theorem served_tree_leg_requests_answered `{blocks} {C} `{cutting block C} {torn : tearing block} bits size
    count
    trees g most z :
  blocks_laws → LegCorrect.cutting_laws count →
  LegDiskShape.formatted_as (tree_programs bits) count trees g size z → tree_device_blocks g trees ≤ size →
  leg_replies_to_all (tree_programs bits) size count tree_places_for (Keep Collect) (tree_admissible bits
    size)
    (tree_request_ios_of trees g bits) (tree_change_ios_of trees g) most z.
Proof. intros ??. by apply tree_leg_replies. Qed.

(** 21. on mirrors, *)
Theorem served_mirrored_tree_requests_answered `{blocks} {torn : tearing block} bits size count trees g most
    z :
  let code := LegCode.mirrors zero_block in
  blocks_laws → 0 < count →
  LegDiskShape.formatted_as (cutting0 := code) (tree_programs bits) count trees g size z →
  tree_device_blocks g trees ≤ size →
  leg_replies_to_all (cutting0 := code) (tree_programs bits) size count tree_places_for (Keep Collect)
    (tree_admissible bits size) (tree_request_ios_of trees g bits) (tree_change_ios_of trees g) most z.
Proof.
  intros code laws Hcount. apply (tree_leg_replies trees g (cutting0 := code)).
  by apply LegCode.mirrors_laws.
Qed.

(** 21. and on RAID-5 ([m] = 1) and RAID-6 ([m] = 2). *)
Theorem served_raid_tree_requests_answered `{blocks} {torn : tearing block}
    {decided : ∀ a, Decision (tears a)} bits
    bytes k m (cut : block → vec (vec Parity.byte bytes) k) glue size trees g most z :
  let code := LegCode.raid_leg bytes k m cut glue in
  blocks_laws → (∀ b, glue (cut b) = b) → 1 ≤ k → 1 ≤ m ≤ 2 → (m = 2 → k ≤ 255) →
  LegDiskShape.formatted_as (cutting0 := code) (tree_programs bits) (k + m) trees g size z →
  tree_device_blocks g trees ≤ size →
  leg_replies_to_all (cutting0 := code) (tree_programs bits) size (k + m) tree_places_for (Keep Collect)
    (tree_admissible bits size) (tree_request_ios_of trees g bits) (tree_change_ios_of trees g) most z.
Proof.
  intros code laws Hglue Hk Hm Hb. apply (tree_leg_replies trees g (cutting0 := code)).
  by apply LegCode.raid_leg_laws.
Qed.

(** 12. An execution on two mirrors: writes that a power cut has on one device only, a checkpoint that it
leaves half written on both, a degraded write and a checkpoint, all devices gone, one that comes back with
stale nodes, the right one, resync; a deletion, its walks begun again after a power cut, its data's place used
again, another resync, and the loss of the device that was never stale. *)
Import LegDiskRaid.
Theorem mirrored_tree_disk_execution : ∃ z z',
  formatted (cutting0 := TreeLegDiskExecution.mirrored) (torn := Medium.untorn)
    (@tree_programs small 1) 40 2 4 z ∧
  lives (cutting0 := TreeLegDiskExecution.mirrored) (torn := Medium.untorn) (tree_programs 1) 40 2 z
    TreeLegDiskExecution.everything_on_mirrors_shows z'.
Proof. apply TreeLegDiskExecution.mirrored_tree_life_exists. Qed.

(** 12. And on RAID-5, where nodes are stripes: one that a power cut tears, one that is read back without a
device; and on RAID-6. *)
Theorem raid5_tree_disk_execution : ∃ z z',
  formatted (cutting0 := raid_of_two 1 5) (torn := tears_from 5) (tree_programs 1) 40 3 4 z ∧
  lives (cutting0 := raid_of_two 1 5) (torn := tears_from 5) (tree_programs 1) 40 3 z
    TreeLegDiskExecution.everything_on_raid5_shows z'.
Proof. apply TreeLegDiskExecution.raid5_tree_life_exists. Qed.

Theorem raid6_tree_disk_execution : ∃ z z',
  formatted (cutting0 := raid_of_two 2 5) (torn := tears_from 5) (tree_programs 1) 40 4 4 z ∧
  lives (cutting0 := raid_of_two 2 5) (torn := tears_from 5) (tree_programs 1) 40 4 z
    everything_on_raid6_shows z'.
Proof. apply TreeLegDiskExecution.raid6_tree_life_exists. Qed.

(** 12. And served on RAID-5: a snapshot is taken while a write waits; the power fails, devices fail, come
back and are replaced, while requests wait. *)
Theorem served_raid5_tree_disk_execution : ServedDiskExecution.served_shows
  (leg_disk (cutting0 := raid_of_two 1 5) (torn := tears_from 5) (tree_programs 1) 40 3) 4
  ServedDiskExecution.raid5_shows.
Proof. apply ServedDiskExecution.served_raid5_life_exists. Qed.
End RunningTrees.
