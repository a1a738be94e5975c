--------------------------- MODULE RecordedWrites ---------------------------
(***************************************************************************)
(* The contents that one record of the durable log may have.               *)
(*                                                                         *)
(* - Several writes that were in flight together.  They happen one after   *)
(*   another; after a power cut all of them happened, or none.             *)
(* - A large write.  Its data is written to a free segment and flushed     *)
(*   there before the record, which names the segment.  A power cut before *)
(*   the record leaves a segment that nothing refers to.                   *)
(* - A segment is used again only if neither the maps refer to it, nor the *)
(*   newest checkpoint, nor any record that recovery might replay, though  *)
(*   later records have overwritten what it holds.                         *)
(*                                                                         *)
(* The log as a whole is DurableLog: of what was not flushed a power cut   *)
(* leaves the first records.  Here each request is one operation of it.    *)
(*                                                                         *)
(* Left out: mirrors (MirroredLog), the bank and the cleaner, the steps of *)
(* a checkpoint (LogStructuredDisk).                                       *)
(*                                                                         *)
(* How to break it: let PlaceSubmit not wait for the flush, or let Free    *)
(* forget the log; then run MCRecordedWrites.                              *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Size,       \* How many blocks there are.
    Zero,       \* What a block holds that was never written: each write has a value of its own.
    Segment,    \* The segments: numbers.  A large write is of one block here, and fills one.
    Nothing,    \* What is read from a segment that was not flushed.
    LogSize     \* How many records the log takes.

VARIABLES       \* On the media.
    log,        \* The records behind the checkpoint: [id, writes |-> <<[lba, value, segment]>>].
    data,       \* Segment -> what is there.
    saved       \* The checkpoint: the maps as they were, and how many operations it holds.

VARIABLES       \* On the way there.
    tail,       \* The records in flight.
    unflushed,  \* The segments written since the last flush.
    placing     \* A large write whose record is still to come: {} or {[lba, value, segment]}.

VARIABLES       \* In memory.
    up,         \* FALSE between a power cut and the end of recovery.
    maps        \* LBA -> [value, segment]: the value waits in memory, unless a segment is named.

VARIABLES       \* History, for the refinement only: DurableLog's; and what each operation wrote.
    held, durable, issued, asked

vars == <<log, data, saved, tail, unflushed, placing, up, maps, held, durable, issued, asked>>

LBA == 0 .. Size - 1
InMemory == 0       \* No segment.

Contract == INSTANCE DurableLog WITH saved <- saved.count
----------------------------------------------------------------------------
RECURSIVE Applied(_, _), AllApplied(_, _), Asked(_, _)

Applied(m, writes) ==       \* The maps once the writes have happened, one after another.
    IF writes = <<>> THEN m
    ELSE LET w == Head(writes)
         IN  Applied([m EXCEPT ![w.lba] = [value |-> w.value, segment |-> w.segment]], Tail(writes))

AllApplied(m, records) ==
    IF records = <<>> THEN m ELSE AllApplied(Applied(m, Head(records).writes), Tail(records))

Asked(blocks, ids) ==       \* What the disk reads as once these operations have happened.
    IF ids = <<>> THEN blocks
    ELSE LET writes == asked[Head(ids)]
             Last(l) == {i \in DOMAIN writes : writes[i].lba = l}
             Newest(l) == CHOOSE i \in Last(l) : \A j \in Last(l) : i >= j
         IN  Asked([l \in LBA |-> IF Last(l) = {} THEN blocks[l] ELSE writes[Newest(l)].value], Tail(ids))

Content(place) == IF place.segment = InMemory THEN place.value ELSE data[place.segment]

Named(m) == {m[l].segment : l \in LBA}

NamedIn(records) == UNION {{w.segment : w \in {r.writes[i] : i \in DOMAIN r.writes}} :
                            r \in {records[i] : i \in DOMAIN records}}

Free ==                     \* The segments that may be written.
    Segment \ (Named(maps) \union Named(saved.maps) \union NamedIn(log) \union NamedIn(tail)
                \union {p.segment : p \in placing})

HasRoom == Len(log) + Len(tail) < LogSize
----------------------------------------------------------------------------
Submit(writes) ==           \* The record goes to the log, and its writes happen.
    /\ up /\ HasRoom
    /\ issued' = issued + 1
    /\ tail' = Append(tail, [id |-> issued', writes |-> writes])
    /\ maps' = Applied(maps, writes)
    /\ held' = Append(held, issued')
    /\ asked' = Append(asked, writes)
    /\ UNCHANGED <<log, data, saved, unflushed, up, durable>>

Block(lba, value) == [lba |-> lba, value |-> value, segment |-> InMemory]

WriteTwo(l, k) ==           \* Two writes that were in flight together, of the same block perhaps.
    /\ Submit(<<Block(l, 2 * issued + 1), Block(k, 2 * issued + 2)>>)
    /\ placing' = placing

Place(lba) ==               \* A large write goes to a free segment.
    /\ up
    /\ placing = {}
    /\ \E s \in Free :
        /\ placing' = {[lba |-> lba, value |-> 0 - issued - 1, segment |-> s]}
        /\ data' = [data EXCEPT ![s] = 0 - issued - 1]
        /\ unflushed' = unflushed \union {s}
    /\ UNCHANGED <<log, saved, tail, up, maps, held, durable, issued, asked>>

PlaceFlush ==
    /\ up
    /\ unflushed # {}
    /\ unflushed' = {}
    /\ UNCHANGED <<log, data, saved, tail, placing, up, maps, held, durable, issued, asked>>

PlaceSubmit ==              \* Only now its record.
    /\ \E p \in placing : p.segment \notin unflushed /\ Submit(<<p>>)
    /\ placing' = {}

LogAppend ==
    /\ up
    /\ tail # <<>>
    /\ log' = log \o tail
    /\ tail' = <<>>
    /\ durable' = Len(held)
    /\ UNCHANGED <<data, saved, unflushed, placing, up, maps, held, issued, asked>>

CheckpointCommit ==
    /\ up
    /\ tail = <<>> /\ log # <<>>
    /\ saved' = [maps |-> maps, count |-> Len(held)]
    /\ log' = <<>>
    /\ UNCHANGED <<data, tail, unflushed, placing, up, maps, held, durable, issued, asked>>

Crash ==                    \* The first records in flight are left, and no segment that was not flushed.
    /\ up
    /\ \E n \in 0 .. Len(tail) : log' = log \o SubSeq(tail, 1, n)
    /\ data' = [s \in Segment |-> IF s \in unflushed THEN Nothing ELSE data[s]]
    /\ up' = FALSE
    /\ tail' = <<>> /\ unflushed' = {} /\ placing' = {}
    /\ maps' = saved.maps
    /\ UNCHANGED <<saved, held, durable, issued, asked>>

Recover ==                  \* Each record happens again, whole.
    /\ ~ up
    /\ maps' = AllApplied(saved.maps, log)
    /\ held' = SubSeq(held, 1, saved.count + Len(log))
    /\ durable' = Len(held')
    /\ up' = TRUE
    /\ UNCHANGED <<log, data, saved, tail, unflushed, placing, issued, asked>>
----------------------------------------------------------------------------
Fresh == [l \in LBA |-> [value |-> Zero, segment |-> InMemory]]

Init ==
    /\ log = <<>> /\ tail = <<>>
    /\ data = [s \in Segment |-> Nothing]
    /\ maps = Fresh /\ saved = [maps |-> Fresh, count |-> 0]
    /\ unflushed = {} /\ placing = {}
    /\ up = TRUE
    /\ held = <<>> /\ durable = 0 /\ issued = 0 /\ asked = <<>>

Next ==
    \/ \E l, k \in LBA : WriteTwo(l, k)
    \/ \E l \in LBA : Place(l)
    \/ PlaceFlush \/ PlaceSubmit \/ LogAppend \/ CheckpointCommit \/ Crash \/ Recover

Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
(* What it promises.                                                       *)

Places == Segment \union {InMemory}

MapsOK(m) == DOMAIN m = LBA /\ \A l \in LBA : m[l].segment \in Places

WriteOK(w) == w.lba \in LBA /\ w.segment \in Places

RecordsOK(records) ==
    \A i \in DOMAIN records :
        records[i].id \in 1 .. issued /\ \A j \in DOMAIN records[i].writes : WriteOK(records[i].writes[j])

TypeOK ==
    /\ RecordsOK(log) /\ RecordsOK(tail) /\ Len(log) + Len(tail) <= LogSize
    /\ DOMAIN data = Segment
    /\ MapsOK(maps) /\ MapsOK(saved.maps) /\ saved.count \in 0 .. issued
    /\ unflushed \subseteq Segment
    /\ Cardinality(placing) <= 1 /\ \A w \in placing : WriteOK(w)
    /\ up \in BOOLEAN
    /\ Len(asked) = issued

Right ==        \* Reads return what the operations that count have written, whole and in their order.
    up => \A l \in LBA : Content(maps[l]) = Asked([k \in LBA |-> Zero], held)[l]

Intact ==       \* Every segment that recovery may need is flushed, and holds what was written there.
    \A s \in (Named(saved.maps) \union NamedIn(log) \union NamedIn(tail)) \ {InMemory} :
        s \notin unflushed /\ data[s] # Nothing

Refines == Contract!Spec

THEOREM Spec => Refines /\ [](TypeOK /\ Right /\ Intact)
=============================================================================
