(** What is proved of the log-structured disk. [K] is a design: what it promises ([Ack] or [Prefix]), the width
of a segment, and the rules it obeys; [sound K] says that it obeys all of them. [reached K c]: some history,
crashes and recoveries included, leads to state [c].

Refinement (LogStructuredDiskRefinement.v)
- [refines_contract]: a sound design implements the contract, for the crash profile that it promises.  Power
  may fail in any state: in the middle of an operation, of a checkpoint, of recovery, any number of times.

Recovery (LogStructuredDiskRecovery.v)
- [checkpoint_and_suffix]: the newest checkpoint, with the records that the log holds behind it applied, is
  the disk that the whole history makes.
- [recovery_brings_back]: recovery loses no record, and what it brings back is what the history makes,
  however often it was cut short and whatever was destaged, cleaned or checkpointed meanwhile.
- [recovery_ends]: from every state without power there is a way to a running one.
- [load_again]: replay is idempotent: cut short after any number of records, recovery starts again from the
  same checkpoint, the same memory and the same log.

Read after snapshot, over whole runs (LogStructuredDiskSnapshots.v)
- [read_after_snapshot_ack]: under [Ack], whatever follows other than deleting it, a snapshot reads as the
  live disk read when it was taken.
- [durable_snapshot_unchanged]: under either profile, a snapshot that has been flushed reads ever after,
  until it is deleted, as it did then.
- [read_after_snapshot]: under either profile, a snapshot reads as the live disk did when it was taken as
  long as no crash loses its record.

Destage and cleaning (LogStructuredDiskCleaning.v)
- [silent_step_invisible]: while the disk runs, no step inside it (submit, flush, destage, seal, clean,
  free, reclaim, checkpoint, truncate) changes a view.
- [destage_invisible], [clean_invisible]: nor do these two in the middle of recovery.
- [cleaned_is_dead], [dead_holds_nothing], [free_holds_nothing]: a victim is dead as soon as it is cleaned;
  no view refers to what lies in a dead segment; into a free one no checkpoint leads either.
- [clean_gains]: every Clean leaves fewer segments in use.
- [cleaning_ends]: without a power cut, there are at most as many Cleans as segments in use at the start and
  Destages since.

Not vacuous (LogStructuredDiskWitnesses.v)
- [execution_exists]: a computed execution with a power cut in the middle of a write and of a checkpoint, a
  torn slot, a recovery cut short, a clean, a free, a snapshot deleted and a restart, for both profiles.
- [flush_before_acknowledge_needed], [seal_before_checkpoint_needed], [log_before_checkpoint_needed],
  [truncate_after_commit_needed], [free_after_checkpoint_needed], [replay_after_checkpoint_needed],
  [reclaim_unreachable_needed]: a design that obeys all rules but this one does not implement the contract.
- [prefix_is_not_ack]: one that promises [Prefix] does not implement [Ack].
- [snapshot_needs_reclaim_unreachable], [prefix_snapshot_needs_flush], [snapshot_needs_no_delete]: what read
  after snapshot asks for is needed.
- [clean_gains_needed]: without [CleanGains], cleaning goes on for ever. *)
From LogDisk Require Export LogStructuredDiskRefinement LogStructuredDiskRecovery LogStructuredDiskSnapshots
  LogStructuredDiskCleaning LogStructuredDiskWitnesses.
