(** What the final results assume, and the counterexamples to what is left of them without a hypothesis:
nothing. *)
From LogDisk Require Import Theorems TreeTheorems WriteBackTheorems RotTheorems.
From LogDisk Require VirtualDiskWitnesses OverlappingDiskWitnesses LogStructuredDiskWitnesses
  SharedTreeExamples.
From LogDisk Require Parity RedundancyWitnesses CompositionWitnesses.
From LogDisk Require TreeDiskWitnesses TreeBlocksWitnesses SharedTreeCursor TreeStoreWitnesses
  ProvedTreeDiskExecution TreeLegDiskExecution.
From LogDisk Require ByteBlocks ProvedDiskExecution ProvedDiskLongRecords.
From LogDisk Require LegDiskExecution LegDiskRaid LegDiskRot LegDiskProgressWitnesses LegDiskResync
  TreeRecoveryWitnesses PipelinedDiskWitnesses PipelinedServer
  PipelinedProgressWitnesses ServedDiskExecution WriteBackWitnesses WriteBackServed WriteBackLegWitnesses
  ServedDiskProgressWitnesses ServedDiskPowerWitnesses.

Import LogStructured Trees Forest Codes Legs Whole Running OnBlocks OnDevice RunningTrees Delayed Rotten.

(** A bundle has the assumptions of all its items. (A tuple has them too, but its type repeats the
types of its items again and again, and takes three times as long to check.) *)
Inductive bundle : Prop :=
  | nothing
  | also {A : Type} (item : A) (rest : bundle).
Notation "[ 'all' 'of' x ; .. ; y ]" := (also x .. (also y nothing) ..).

Definition all_theorems :=
  [all of @read_after_snapshot; @read_after_write; @frame; @flushed_survives; @simulation_implements;
   @checker_exact; @recorded_checker_exact; @verdict_exact; @overlapping_checker_exact;
   @overlapping_verdict_exact; @overlapping_order_exact; @blocks_judged_apart; @queue_implements;
   @queue_exact; @snapshot_promise_used; @snapshot_promise_needs_no_delete; @snapshot_promise_needs_profile;
   @frame_promise_needs_profile; @write_promise_needs_profile; @disk_read_after_snapshot;
   @disk_read_after_snapshot_kept; @disk_flushed_snapshot_stays; @disk_refines_contract;
   @checkpoint_and_suffix; @recovery_brings_back; @recovery_ends; @replay_idempotent;
   @silent_step_invisible; @destage_invisible; @clean_invisible; @cleaned_is_dead; @free_holds_nothing;
   @clean_gains; @cleaning_ends; @execution_exists; @every_rule_needed; @nothing_dangles; @nothing_leaks;
   @reclaim_exact; @deletion_exact; @deletion_every_schedule; @frees_once; @neighbour_test_exact;
   @chain_test_exact; @chain_test_needs_chain; @update_spares_others; @update_shares_rest; @lookup_exact;
   @cost_constant; @cost_ignores_snapshots; @snapshot_constant; @tree_disk_refines_contract;
   @tree_disk_read_after_snapshot; @tree_disk_keeps_exactly; @tree_disk_walks_end; @tree_disk_execution;
   @tree_pages_rule_needed; @bytes_are_a_field; @two_generates; @raid5_any_one; @raid6_any_two;
   @degraded_read; @layouts_are_good; @any_m_failures; @read_available; @any_failures; @stale_never_read;
   @repair_stops_restored; @redundancy_restored; @rebuild_waits; @degraded_at_once; @one_use_per_device;
   @legs_suffice; @disk_over_legs_refines_contract; @disk_over_raid6_refines_contract; @composed_execution;
   @proved_disk_refines_contract; @torn_sealed; @sectors_tear_unread; @served_disk_refines_contract;
     @leg_disk_refines_contract;
   @mirrored_disk_refines_contract; @raid_disk_refines_contract; @served_leg_disk_refines_contract;
   @served_mirrored_disk_refines_contract; @served_raid_disk_refines_contract; @leg_requests_answered;
   @leg_groups_performed; @leg_recovery_ends; @leg_resync_ends; @leg_upkeep_ends; @served_requests_answered;
   @served_leg_requests_answered; @served_mirrored_requests_answered; @served_raid_requests_answered;
   @server_run_is_queue_run; @leg_server_run_is_queue_run; @flush_begins_and_ends;
   @pipelined_disk_refines_contract; @served_pipelined_disk_refines_contract;
   @pipelined_server_run_is_queue_run; @pipelined_requests_answered; @progress_needs_turns;
   @progress_needs_good_turns; @bytes_round_trip; @codecs_round_trip; @refusal_has_reason; @surplus_ignored;
   @update_cost; @group_cost; @long_update_cost; @long_group_cost; @read_cost; @write_is_taken;
   @group_is_taken; @long_group_is_taken; @used_at_most_mapped; @proved_disk_execution;
   @proved_disk_hypotheses_hold; @long_records_execution; @served_disk_execution;
   @pipelined_disk_execution; @served_mirrored_disk_execution; @mirrored_disk_execution;
   @raid5_disk_execution; @raid6_disk_execution;
   @tree_nodes_fit; @tree_roots_bounded; @tree_cursors_bounded; @tree_disk_changes; @tree_codecs_round_trip;
   @tree_checkpoint_recovers; @tree_checkpoint_ends; @tree_checkpoint_cost; @tree_new_nodes;
   @tree_pages_suffice; @tree_store_execution; @proved_tree_disk_refines_contract;
   @served_tree_disk_refines_contract; @pipelined_tree_disk_refines_contract;
   @served_pipelined_tree_disk_refines_contract; @proved_tree_disk_read_after_snapshot;
   @proved_tree_disk_keeps_exactly; @proved_tree_disk_walks_end; @proved_tree_disk_update_cost;
   @proved_tree_disk_long_update_cost;
   @proved_tree_disk_checkpoint_cost; @proved_tree_disk_recovery_ends; @proved_tree_disk_execution;
   @tree_leg_disk_refines_contract; @mirrored_tree_disk_refines_contract; @raid_tree_disk_refines_contract;
   @served_tree_leg_disk_refines_contract; @served_mirrored_tree_disk_refines_contract;
   @served_raid_tree_disk_refines_contract; @tree_leg_disk_read_after_snapshot;
   @tree_leg_disk_keeps_exactly; @tree_leg_disk_walks_end; @tree_leg_requests_answered;
   @tree_leg_recovery_ends; @tree_leg_resync_ends; @tree_leg_upkeep_ends; @served_tree_requests_answered;
   @pipelined_tree_requests_answered;
   @served_tree_leg_requests_answered; @served_mirrored_tree_requests_answered;
   @served_raid_tree_requests_answered; @mirrored_tree_disk_execution;
   @raid5_tree_disk_execution; @raid6_tree_disk_execution; @served_raid5_tree_disk_execution;
   @write_back_disk_refines_contract; @write_back_tree_disk_refines_contract;
   @served_write_back_disk_refines_contract; @served_write_back_tree_disk_refines_contract;
   @write_back_leg_disk_refines_contract; @write_back_tree_leg_disk_refines_contract;
   @write_back_mirrored_disk_refines_contract; @write_back_raid_disk_refines_contract;
   @served_write_back_leg_disk_refines_contract;
   @write_back_flush_answered; @write_back_tree_flush_answered; @write_back_leg_flush_answered;
   @write_back_tree_leg_flush_answered; @write_back_lost_leg_flush_answered;
   @write_back_lost_tree_leg_flush_answered; @write_back_disk_execution; @write_back_mirrored_disk_execution;
   @read_repairs; @rotten_reads_happen; @rotten_disk_execution; @rotten_tree_disk_execution;
   @rotten_raid5_disk_execution].

(** The counterexamples of the README: one hypothesis or rule dropped from each theorem. *)
Import VirtualDiskWitnesses LogStructuredDiskWitnesses SharedTreeExamples Parity RedundancyWitnesses
  CompositionWitnesses.
Definition all_counterexamples :=
  [all of @VirtualDiskWitnesses.snapshot_needs_no_delete; @snapshot_needs_profile;
   @read_after_write_needs_spares;
   @read_after_write_needs_profile; @frame_needs_spares; @frame_needs_profile; @flushed_needs_spares;
   @simulation_needs_moves; @rolled_back_by_prefix; @rolled_back_not_by_ack; @device_examples_hold;
   @limit_gives_up; @snapshot_needs_reclaim_unreachable; @prefix_snapshot_needs_flush;
   @LogStructuredDiskWitnesses.snapshot_needs_no_delete; @unflushed_snapshot_goes; @every_rule_needed;
   @prefix_is_not_ack; @checkpoint_needs_sound; @recovery_needs_sound; @recovery_needs_reached;
   @replay_needs_log; @silent_step_needs_sound; @segments_must_be_free; @clean_gains_needed;
   @dangling_needs_reachable; @unburied_leaks; @reclaim_needs_held; @root_first_leaks; @freed_again_needs_run;
   @birth_stamp_needed; @children_are_not_enough; @one_successor_is_not_enough; @ownership_by_older_snapshot;
   @ownership_by_parent; @update_copies_path; @lookup_needs_length; @cost_needs_mapped; @cost_needs_no_revert;
   @write_touches_nodes; @TreeDiskWitnesses.tree_rules_needed; @TreeDiskWitnesses.tree_snapshot_needs_rules;
   @TreeDiskWitnesses.tree_snapshot_needs_flush; @TreeDiskWitnesses.tree_snapshot_needs_no_delete;
   @TreeDiskWitnesses.tree_space_needs_rules; @TreeDiskWitnesses.tree_space_needs_walks;
   @TreeDiskWitnesses.tree_walks_need_a_walk; @zero_is_no_power; @raid5_two_lost; @raid6_three_lost;
   @raid6_256_data; @not_good_enough; @too_many_failures; @wrong_code_reads_wrong; @active_is_read;
   @admitted_without_resync; @no_spare; @failure_before_restored; @unreached_rebuild; @unreached_placement;
   @legs_suffice_needs_good; @disk_over_legs_needs_sound; @disk_over_legs_needs_good;
   @disk_over_raid6_needs_255; @ProvedDiskExecution.round_trip_needed;
   @ProvedDiskExecution.seal_needed;
   @ProvedDiskExecution.digest_needed; @ProvedDiskExecution.durable_drop_needed; @ByteBlocks.collision;
   @ByteBlocks.no_sectors; @ByteBlocks.no_words; @ByteBlocks.word_too_large;
     @ProvedDiskExecution.refusals_happen;
   @LegDiskRaid.code_needed; @LegDiskRaid.tearing_needed; @LegDiskExecution.record_needed;
   @LegDiskExecution.round_trip_needed_on_mirrors; @LegDiskProgressWitnesses.small_devices_block;
   @LegDiskProgressWitnesses.snapshots_run_out;
   @LegDiskProgressWitnesses.tree_snapshots_run_out; @LegDiskProgressWitnesses.groups_need_places;
   @LegDiskProgressWitnesses.tree_groups_need_places;
   @LegDiskProgressWitnesses.recovery_needs_a_member; @LegDiskResync.resync_needs_members;
   @LegDiskProgressWitnesses.upkeep_needs_devices; @LegDiskProgressWitnesses.tree_upkeep_needs_devices;
   @ProvedDiskExecution.full_disk_refuses; @ProvedDiskExecution.full_log_costs_more;
   @ProvedDiskLongRecords.body_digest_needed; @ProvedDiskLongRecords.long_records_need_room;
   @OverlappingDiskWitnesses.overlapping_examples_hold; @OverlappingDiskWitnesses.overlapping_limit_gives_up;
   @OverlappingDiskWitnesses.apart_needs_profile; @OverlappingDiskWitnesses.queue_needs_contract;
   @TreeBlocksWitnesses.nodes_need_keys; @TreeBlocksWitnesses.roots_need_walks_done;
   @SharedTreeCursor.wide_walks_have_long_cursors; @TreeBlocksWitnesses.cuts_are_no_changes;
   @TreeStoreWitnesses.walks_must_not_go_back; @TreeStoreWitnesses.torn_header_forgets;
   @TreeStoreWitnesses.used_pages_are_refused; @TreeStoreWitnesses.first_checkpoint_writes_all;
   @TreeStoreWitnesses.one_page_is_too_few; @ProvedTreeDiskExecution.tree_round_trip_needed;
   @ProvedTreeDiskExecution.tree_digest_needed;
   @ProvedTreeDiskExecution.tree_machine_snapshot_needs_no_delete; @ProvedTreeDiskExecution.walks_free_nodes;
   @ProvedTreeDiskExecution.steps_need_a_walk; @ProvedTreeDiskExecution.full_log_writes_nodes;
   @ProvedTreeDiskExecution.small_slots_refuse; @ProvedTreeDiskExecution.few_pages_refuse;
   @TreeLegDiskExecution.tree_round_trip_needed_on_mirrors;
   @TreeLegDiskExecution.tree_record_needed; @TreeLegDiskExecution.tree_code_needed;
   @TreeLegDiskExecution.tree_tearing_needed; @TreeLegDiskExecution.tree_leg_snapshot_needs_no_delete;
   @TreeLegDiskExecution.walks_free_nodes_on_legs; @TreeLegDiskExecution.steps_on_legs_need_a_walk;
   @TreeRecoveryWitnesses.tree_recovery_needs_a_member; @TreeRecoveryWitnesses.tree_recovery_needs_devices;
   @TreeRecoveryWitnesses.tree_disk_recovery_needs_a_disk;
   @TreeRecoveryWitnesses.tree_disk_recovery_needs_digests;
   @ServedDiskExecution.served_round_trip_needed;
   @ServedDiskExecution.served_digest_needed;
   @ServedDiskExecution.served_tree_round_trip_needed;
   @ServedDiskExecution.served_tree_digest_needed;
   @ServedDiskExecution.served_round_trip_needed_on_mirrors;
   @ServedDiskExecution.served_tree_round_trip_needed_on_mirrors;
   @ServedDiskExecution.served_code_needed;
   @ServedDiskExecution.served_tree_code_needed;
   @ServedDiskExecution.served_tearing_needed;
   @ServedDiskExecution.served_tree_tearing_needed;
   @ServedDiskExecution.served_record_needed;
   @ServedDiskExecution.served_tree_record_needed;
   @ServedDiskProgressWitnesses.newest_first_starves;
   @ServedDiskProgressWitnesses.tree_newest_first_starves;
   @ServedDiskProgressWitnesses.newest_first_starves_on_mirrors;
   @ServedDiskProgressWitnesses.tree_newest_first_starves_on_mirrors;
   @ServedDiskProgressWitnesses.served_snapshots_run_out;
   @ServedDiskProgressWitnesses.tree_served_snapshots_run_out;
   @ServedDiskProgressWitnesses.served_snapshots_run_out_on_mirrors;
   @ServedDiskProgressWitnesses.tree_served_snapshots_run_out_on_mirrors;
   @ServedDiskProgressWitnesses.served_small_devices_block;
   @ServedDiskProgressWitnesses.tree_served_small_devices_block;
   @ServedDiskProgressWitnesses.served_requests_need_members;
   @ServedDiskProgressWitnesses.tree_served_requests_need_members;
   @ServedDiskProgressWitnesses.served_requests_need_digests;
   @ServedDiskProgressWitnesses.tree_served_requests_need_digests;
   @ServedDiskPowerWitnesses.served_power_must_stay;
   @ServedDiskPowerWitnesses.tree_served_power_must_stay;
   @ServedDiskPowerWitnesses.served_power_must_stay_on_mirrors;
   @ServedDiskPowerWitnesses.tree_served_power_must_stay_on_mirrors;
   @ServedDiskPowerWitnesses.served_recovery_needs_members;
   @ServedDiskPowerWitnesses.tree_served_recovery_needs_members;
   @ServedDiskPowerWitnesses.served_recovery_needs_a_disk;
   @ServedDiskPowerWitnesses.tree_served_recovery_needs_a_disk;
   @ServedDiskPowerWitnesses.served_recovery_needs_digests;
   @ServedDiskPowerWitnesses.tree_served_recovery_needs_digests;
   @ServedDiskPowerWitnesses.refusing_to_open_is_no_progress;
   @ServedDiskPowerWitnesses.tree_refusing_to_open_is_no_progress;
   @ServedDiskPowerWitnesses.refusing_requests_is_no_progress;
   @PipelinedDiskWitnesses.later_is_volatile; @PipelinedDiskWitnesses.spare_places_needed;
   @PipelinedDiskWitnesses.pipelined_round_trip_needed; @PipelinedDiskWitnesses.pipelined_digest_needed;
   @PipelinedDiskWitnesses.pipelined_tree_round_trip_needed;
   @PipelinedDiskWitnesses.pipelined_tree_digest_needed;
   @PipelinedServer.served_spare_places_needed;
   @PipelinedServer.served_pipelined_round_trip_needed; @PipelinedServer.served_pipelined_digest_needed;
   @PipelinedServer.served_pipelined_tree_round_trip_needed;
   @PipelinedServer.served_pipelined_tree_digest_needed;
   @PipelinedProgressWitnesses.pipelined_snapshots_run_out;
   @PipelinedProgressWitnesses.tree_pipelined_snapshots_run_out;
   @PipelinedProgressWitnesses.pipelined_requests_need_digests;
   @PipelinedProgressWitnesses.tree_pipelined_requests_need_digests;
   @WriteBackWitnesses.write_back_is_not_ack; @WriteBackWitnesses.write_back_round_trip_needed;
   @WriteBackWitnesses.write_back_digest_needed; @WriteBackWitnesses.write_back_tree_round_trip_needed;
   @WriteBackWitnesses.write_back_tree_digest_needed; @WriteBackWitnesses.flush_needs_a_slot;
   @WriteBackWitnesses.spared_places_needed; @WriteBackWitnesses.tree_spared_places_needed;
   @WriteBackServed.served_write_back_round_trip_needed; @WriteBackServed.served_write_back_digest_needed;
   @WriteBackServed.served_write_back_tree_round_trip_needed;
   @WriteBackServed.served_write_back_tree_digest_needed;
   @WriteBackLegWitnesses.write_back_leg_is_not_ack; @WriteBackLegWitnesses.write_back_leg_round_trip_needed;
   @WriteBackLegWitnesses.write_back_tree_leg_round_trip_needed;
   @WriteBackLegWitnesses.delayed_writes_must_be_kept; @WriteBackLegWitnesses.write_back_leg_code_needed;
   @WriteBackLegWitnesses.write_back_tree_leg_code_needed;
   @WriteBackLegWitnesses.served_write_back_leg_round_trip_needed;
   @WriteBackLegWitnesses.served_write_back_leg_code_needed;
   @WriteBackLegWitnesses.lost_drain_needs_places;
   @LegDiskRot.rot_must_be_noticed; @LegDiskRot.tree_rot_must_be_noticed;
   @LegDiskRot.readable_pieces_needed; @LegDiskRot.tree_readable_pieces_needed;
   @LegDiskRot.nothing_repairs_it].
Definition everything := [all of all_theorems; all_counterexamples].
Print Assumptions everything.
