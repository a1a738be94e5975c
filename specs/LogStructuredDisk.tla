------------------------- MODULE LogStructuredDisk -------------------------
(***************************************************************************)
(* A log-structured virtual disk, in the small steps between which the     *)
(* power may fail.  It implements VirtualDisk: LogStructuredDiskRefinement.*)
(*                                                                         *)
(* An operation is a record of the durable log.  A write gives its block a *)
(* fresh MBA (middle block address): the name of its data, the chunk, for  *)
(* the chunk's whole life.  The chunk waits in memory, in the bank, until  *)
(* Destage writes a segment.  The logical map of a view is LBA -> MBA; the *)
(* middle map is MBA -> PBA, the chunk's place in a segment.  So the       *)
(* cleaner moves a chunk without a change of a logical map: it puts the    *)
(* chunk back into the bank.  A checkpoint makes the maps durable; then    *)
(* the log before it can be truncated.  Recovery loads the newest          *)
(* checkpoint and replays the log, one record a step.                      *)
(*                                                                         *)
(* No action needs an idle disk.  A flush waits only for the records that  *)
(* were submitted before it (BeginFlush, EndFlush).  A read pins the       *)
(* segment that it reads (BeginRead, EndRead).  A checkpoint               *)
(* freezes the maps and a position of the log at a moment at which each    *)
(* chunk has a place (Freeze); its nodes are written while operations go   *)
(* on (CheckpointNodes); then it is committed, and the log is truncated to *)
(* the frozen position.                                                    *)
(*                                                                         *)
(* After a power cut, replay puts the chunks of the replayed records back  *)
(* into the bank.  None of them was in a segment that the checkpoint       *)
(* refers to, as those were written before it froze.  So there is as much  *)
(* room for them as when they were written.                                *)
(*                                                                         *)
(* A power cut loses what was written and not flushed: of the records in   *)
(* flight any subset is left, some of them torn; of the segments nothing   *)
(* is left.  Under "ack" an operation takes effect when its record is      *)
(* durable; under "prefix" at once.  Several records may be in flight.     *)
(*                                                                         *)
(* Restart is no action of its own: it is a flush, a Crash that loses      *)
(* nothing, and recovery.                                                  *)
(*                                                                         *)
(* Left out: how views share the nodes of their maps, and how reclaim      *)
(* finds what only a deleted view held (SharedTree); mirrors, parity and   *)
(* failing devices (Redundancy); which segment is best cleaned and when.   *)
(* The engine's `open` record is `generation` here.  The engine's MBAs     *)
(* only grow; here a fresh MBA is the least that nothing uses.             *)
(*                                                                         *)
(* Some operators are separate only so that a model can replace them:      *)
(* TraceLogStructuredDisk restricts Choices, Parts, Reclaimable, Leftovers *)
(* and others to what the engine did; the models of liveness replace Newer *)
(* and NextSerial.                                                         *)
(*                                                                         *)
(* The parts: LogStructuredDiskLog (state, records), ...Segments (chunks,  *)
(* destage, cleaner), this module (operations, checkpoint, recovery), and  *)
(* ...Properties (what always holds).                                      *)
(*                                                                         *)
(* How to break it: let Pinned forget `pending`, let CheckpointCommit not  *)
(* ask OnMedia, or let Recover not raise `generation`.  More such changes  *)
(* are in mutants/LogStructuredDisk.toml.                                  *)
(***************************************************************************)
EXTENDS LogStructuredDiskSegments
----------------------------------------------------------------------------
(* The operations.                                                         *)

\* @type: $lsdRecord => Bool;
Submit(r) ==     \* The record goes to the log.
    /\ Cardinality(Retained \union DOMAIN tail) < LogSize
    /\ tail' = Over([p \in {NextPlace} |-> r], tail)
    /\ IF AtOnce THEN Apply(r) ELSE UNCHANGED <<maps, chunks>>
    /\ UNCHANGED <<media, unflushed, phase, end, stripe, pending, requests>>

Write(lba, value) == phase = "up" /\ HasRoom /\ Submit(Record("write", lba, value, ""))

Unmap(lba) == phase = "up" /\ Submit(Record("unmap", lba, Zero, ""))

Snapshot(name) == phase = "up" /\ ~ Known(name) /\ Submit(Record("snapshot", 0, Zero, name))

Delete(name) == phase = "up" /\ Known(name) /\ Submit(Record("delete", 0, Zero, name))

Revert(name) == phase = "up" /\ Known(name) /\ Submit(Record("revert", 0, Zero, name))

LogAppend ==       \* The first record in flight becomes durable.
    LET p == end + 1
    IN  /\ phase = "up"
        /\ p \in DOMAIN tail
        /\ log' = Over(Only(tail, {p}), log)
        /\ tail' = Without(tail, {p})
        /\ end' = p
        /\ IF AtOnce THEN UNCHANGED <<maps, chunks>> ELSE Apply(tail[p])
        /\ UNCHANGED <<data, checkpoints, generation, unflushed, phase, stripe, pending, requests>>

BeginFlush ==   \* It waits for what has been submitted, and for nothing that comes later.
    /\ phase = "up"
    /\ Cardinality(flushes) < Flushers
    /\ flushes' = flushes \union {LastPlace}
    /\ UNCHANGED <<media, inFlight, phase, end, maps, chunks, stripe, pending, reads>>

EndFlush ==     \* One is answered.
    /\ phase = "up"
    /\ \E last \in flushes :
        /\ last <= end
        /\ flushes' = flushes \ {last}
    /\ UNCHANGED <<media, inFlight, phase, end, maps, chunks, stripe, pending, reads>>

\* @type: (Str, Int) => Int;
Mapped(view, lba) == IF view = Live THEN maps.live[lba] ELSE maps.snaps[view][lba]

BeginRead(view, lba) ==     \* It is known where the block is.  A chunk in the bank is answered at once.
    LET m == Mapped(view, lba)
    IN  /\ phase = "up"
        /\ view \in {Live} \union DOMAIN maps.snaps
        /\ Cardinality(reads) < Readers
        /\ m \in DOMAIN middle \ DOMAIN bank
        /\ reads' = reads \union {[place |-> middle[m], value |-> data[middle[m]]]}
        /\ UNCHANGED <<media, inFlight, phase, end, maps, chunks, stripe, pending, flushes>>

EndRead ==      \* One is answered with what is in its place.
    /\ phase = "up"
    /\ \E r \in reads : reads' = reads \ {r}
    /\ UNCHANGED <<media, inFlight, phase, end, maps, chunks, stripe, pending, flushes>>
----------------------------------------------------------------------------
(* Checkpoint.                                                             *)

Image ==        \* The checkpoint of this moment.
    [serial |-> NextSerial, from |-> Applied, generation |-> generation,
     maps |-> maps, middle |-> middle, orphans |-> orphans \intersect DOMAIN middle]

Freeze ==       \* A checkpoint begins: of the maps, and of the position in the log, as they are now.
    /\ phase = "up"
    /\ pending = NoCheckpoint
    /\ Referred(maps) \subseteq DOMAIN middle    \* Each chunk has a place.
    /\ pending' = Image
    /\ checkpoints' = [checkpoints EXCEPT ![Older] = NoCheckpoint]
    /\ UNCHANGED <<log, data, generation, inFlight, phase, end, maps, chunks, stripe, requests>>

\* @type: $lsdCheckpoint => Bool;
OnMedia(c) ==   \* Are the segments that the checkpoint needs flushed?
    \A p \in Range(c.middle) : p[1] \notin unflushed

WriteNodes ==
    /\ unflushed' = {}
    /\ UNCHANGED <<media, tail, phase, end, maps, chunks, stripe, pending, requests>>

CheckpointNodes ==      \* The nodes of the frozen maps are written, and the segments are flushed.
    /\ phase = "up"
    /\ pending # NoCheckpoint
    /\ ~ OnMedia(pending)
    /\ WriteNodes

CheckpointCommit ==     \* Its nodes are complete.  Its slot is written and flushed.
    /\ phase = "up"
    /\ pending # NoCheckpoint
    /\ OnMedia(pending)
    /\ pending.from <= end
    /\ checkpoints' = [checkpoints EXCEPT ![Older] = pending]
    /\ pending' = NoCheckpoint
    /\ UNCHANGED <<log, data, generation, inFlight, phase, end, maps, chunks, stripe, requests>>

Truncate ==     \* The log forgets what the newest checkpoint holds.
    /\ phase = "up"
    /\ \E p \in DOMAIN log : p <= Forgettable
    /\ log' = [p \in {q \in DOMAIN log : q > Forgettable} |-> log[p]]
    /\ UNCHANGED <<data, checkpoints, generation, inFlight, phase, end, maps, chunks, stripe, pending, requests>>
----------------------------------------------------------------------------
(* Crash and recovery.                                                     *)

Crash ==        \* Reading finds out which records in flight are left.
    /\ phase # "down"
    /\ phase' = "down"
    /\ data' = [p \in PBA |-> IF p[1] \in unflushed THEN Nothing ELSE data[p]]
    /\ unflushed' = {}
    /\ end' = 0
    /\ maps' = Blank
    /\ middle' = Empty(<<0, 0>>) /\ bank' = Empty(Zero) /\ orphans' = {}
    /\ usage' = [s \in Segment |-> 0]
    /\ state' = [s \in Segment |-> "free"]
    /\ stripe' = Empty(Hole)
    /\ pending' = NoCheckpoint
    /\ reads' = {} /\ flushes' = {}
    /\ UNCHANGED <<log, checkpoints, generation, tail>>

Recount(s) == Cardinality(Housed(Newest.middle, s))

InUse(s) == Housed(Newest.middle, s) # {}

Load ==         \* Memory is what the newest checkpoint says.
    /\ phase = "down"
    /\ phase' = "replay"
    /\ end' = Newest.from
    /\ maps' = Newest.maps
    /\ middle' = Newest.middle
    /\ orphans' = Newest.orphans
    /\ usage' = [s \in Segment |-> Recount(s)]
    /\ state' = [s \in Segment |-> IF InUse(s) THEN "sealed" ELSE "free"]
    /\ UNCHANGED <<media, inFlight, bank, stripe, pending, requests>>

Replay ==
    /\ phase = "replay"
    /\ \E r \in Readable(end + 1) : Good(r, end + 1) /\ Apply(r)
    /\ end' = end + 1
    /\ UNCHANGED <<media, inFlight, phase, stripe, pending, requests>>

\* @type: Set(Int) => Set(Set(Int));
Leftovers(lost) == SUBSET lost      \* What may be left of the records beyond the end of the log.

Recover ==      \* There is no good record at the next place.  Beyond it, some may be left.
    LET p == end + 1
        lost == {q \in DOMAIN tail : q > end}
    IN  /\ phase = "replay"
        /\ p \in DOMAIN log \ DOMAIN tail => ~ Good(log[p], p)
        /\ \E left \in Leftovers(lost \ {p}) : log' = Over(Without(tail, lost \ left), log)
        /\ tail' = Without(tail, DOMAIN tail)
        /\ generation' = NextGeneration
        /\ phase' = "up"
        /\ UNCHANGED <<data, checkpoints, unflushed, end, maps, chunks, stripe, pending, requests>>
----------------------------------------------------------------------------
Init ==
    /\ generation = 1
    /\ log = Empty(Record("unmap", 0, Zero, ""))
    /\ data = [p \in PBA |-> Nothing]
    /\ checkpoints = [i \in 1 .. 2 |-> [NoCheckpoint EXCEPT !.serial = 2 - i]]
    /\ tail = Empty(Record("unmap", 0, Zero, ""))
    /\ unflushed = {}
    /\ phase = "up"
    /\ end = 0
    /\ maps = Blank
    /\ middle = Empty(<<0, 0>>)
    /\ bank = Empty(Zero)
    /\ orphans = {}
    /\ usage = [s \in Segment |-> 0]
    /\ state = [s \in Segment |-> "free"]
    /\ stripe = Empty(Hole)
    /\ pending = NoCheckpoint
    /\ reads = {}
    /\ flushes = {}

Operation ==
    \/ \E l \in LBA : Unmap(l) \/ \E v \in Value : Write(l, v)
    \/ \E n \in Name : Snapshot(n) \/ Delete(n) \/ Revert(n)

Request ==
    \/ BeginFlush \/ EndFlush
    \/ \E l \in LBA, view \in {Live} \union Name : BeginRead(view, l)
    \/ EndRead

Internal ==
    \/ \E s \in Segment : Open(s) \/ Clean(s) \/ Free(s)
    \/ Destage \/ Reclaim
    \/ Freeze \/ CheckpointNodes \/ CheckpointCommit \/ Truncate
    \/ Load \/ Replay

Next == Operation \/ Request \/ LogAppend \/ Internal \/ Crash \/ Recover

Spec == Init /\ [][Next]_vars

CleanOn == DOMAIN bank # {} /\ \E s \in Segment : Clean(s)

Fairness ==     \* What the disk does by itself it does in the end.  It need not clean but for what waits.
    /\ WF_vars(LogAppend)
    /\ WF_vars(EndFlush) /\ WF_vars(EndRead)
    /\ WF_vars(\E s \in Segment : Open(s)) /\ WF_vars(Destage)
    /\ WF_vars(Reclaim) /\ WF_vars(CleanOn)
    /\ WF_vars(\E s \in Segment : Free(s))
    /\ WF_vars(Freeze) /\ WF_vars(CheckpointNodes) /\ WF_vars(CheckpointCommit) /\ WF_vars(Truncate)
    /\ WF_vars(Load) /\ WF_vars(Replay \/ Recover)
=============================================================================
