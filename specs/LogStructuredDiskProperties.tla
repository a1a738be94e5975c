-------------------- MODULE LogStructuredDiskProperties ---------------------
(***************************************************************************)
(* The invariants and the liveness properties of LogStructuredDisk.        *)
(* LogStructuredDiskRefinement says what it implements.                    *)
(***************************************************************************)
EXTENDS LogStructuredDisk

(* Types.                                                                  *)

RecordType ==
    [op : {"write", "unmap", "snapshot", "delete", "revert"}, lba : LBA, value : Value,
     name : Name \union {""}, generation : 0 .. generation, whole : {TRUE}]

\* @type: $disk => Bool;
MapsOK(views) ==
    /\ DOMAIN views.live = LBA /\ Range(views.live) \subseteq MBA \union {Hole}
    /\ DOMAIN views.snaps \subseteq Name
    /\ \A n \in DOMAIN views.snaps :
        DOMAIN views.snaps[n] = LBA /\ Range(views.snaps[n]) \subseteq MBA \union {Hole}

\* @type: $lsdCheckpoint => Bool;
CheckpointOK(c) ==
    /\ c.serial >= 0 /\ c.from >= 0 /\ 0 <= c.generation /\ c.generation <= generation
    /\ MapsOK(c.maps)
    /\ DOMAIN c.middle \subseteq MBA /\ Range(c.middle) \subseteq PBA
    /\ c.orphans \subseteq MBA

TypeOK ==
    /\ generation >= 1 /\ end >= 0
    /\ Range(log) \union Range(tail) \subseteq RecordType
    /\ \A p \in DOMAIN log \union DOMAIN tail : p >= 1
    /\ data \in [PBA -> Value \union {Nothing}]
    /\ CheckpointOK(checkpoints[1]) /\ CheckpointOK(checkpoints[2]) /\ CheckpointOK(pending)
    /\ unflushed \subseteq Segment
    /\ phase \in {"up", "down", "replay"}
    /\ MapsOK(maps)
    /\ DOMAIN middle \subseteq MBA /\ Range(middle) \subseteq PBA
    /\ DOMAIN bank \subseteq MBA /\ Range(bank) \subseteq Value
    /\ orphans \subseteq MBA
    /\ state \in [Segment -> {"free", "open", "sealed", "dead"}]
    /\ usage \in [Segment -> 0 .. Stripe]
    /\ DOMAIN stripe \subseteq 1 .. Stripe /\ Range(stripe) \subseteq MBA
    /\ \A r \in reads : r.place \in PBA /\ r.value \in Value
    /\ \A last \in flushes : last >= 0
    /\ Cardinality(reads) <= Readers /\ Cardinality(flushes) <= Flushers
----------------------------------------------------------------------------
(* Chunks and segments.                                                    *)

NoDanglingAddress ==    \* What a view refers to is in the bank, or in a segment in use and readable there.
    \A m \in Referred(maps) \union orphans :
        \/ m \in DOMAIN bank
        \/ /\ m \in DOMAIN middle
           /\ data[middle[m]] # Nothing
           /\ state[middle[m][1]] = "sealed"

NoLeak ==       \* Every chunk is a view's, or on its way out; every segment in use has chunks, or is open.
    /\ DOMAIN middle \union DOMAIN bank = Referred(maps) \union orphans
    /\ Referred(maps) \intersect orphans = {}
    /\ \A s \in Segment : state[s] = "sealed" <=> usage[s] > 0
    /\ Cardinality({s \in Segment : state[s] = "open"}) = IF DOMAIN stripe = {} THEN 0 ELSE 1

UsageExact ==
    \A s \in Segment : usage[s] = Cardinality(Housed(middle, s))

OnePlaceEach ==     \* No two chunks have the same place.
    \A m, n \in DOMAIN middle : middle[m] = middle[n] => m = n

\* @type: $lsdCheckpoint => Bool;
Whole(c) ==     \* All that the checkpoint says is stored is durable and left alone.
    \A m \in Referred(c.maps) :
        /\ m \in DOMAIN c.middle
        /\ data[c.middle[m]] # Nothing
        /\ phase = "up" => state[c.middle[m][1]] \in {"sealed", "dead"}

CheckpointsWhole ==     \* So it is of the one that recovery would load, and of the one that is being written.
    /\ Whole(Newest) /\ Whole(pending)
    /\ \A p \in Range(Newest.middle) : p[1] \notin unflushed

ReadsStand ==       \* What a read was to find is there until it has been read.
    \A r \in reads : data[r.place] = r.value
----------------------------------------------------------------------------
(* The log.                                                                *)

Places == {Newest.from + i : i \in 1 .. LogSize}     \* Of the records that recovery can reach.

Exists(n, e) == \* Is there a snapshot n once the records up to e have happened?
    LET about == {p \in Places : p <= e /\ At(p).op \in {"snapshot", "delete"} /\ At(p).name = n}
    IN  IF about = {} THEN n \in DOMAIN Newest.maps.snaps
        ELSE \E p \in about : At(p).op = "snapshot" /\ \A q \in about : q <= p

Replayable ==   \* The records after the newest checkpoint fit to it: no snapshot is taken twice, none is missing.
    phase = "up" => \A p \in Places : p <= LastPlace =>
        /\ At(p).op = "snapshot" => ~ Exists(At(p).name, p - 1)
        /\ At(p).op \in {"delete", "revert"} => Exists(At(p).name, p - 1)
----------------------------------------------------------------------------
(* Space.                                                                  *)

RoomForAll == Cardinality(Waiting \union Rest) + Coming <= Room(Cardinality(FreeSegments))

Cleanable ==    \* On a disk at rest every segment that is not full can be cleaned.
    \A s \in Segment :
        /\ phase = "up" /\ DOMAIN bank = {} /\ DOMAIN tail = {} /\ orphans = {}
        /\ FreeSegments # {} /\ state[s] = "sealed" /\ usage[s] < Stripe
        => ENABLED Clean(s)

Completable ==  \* A segment that was cleaned in part can be cleaned to its end, whatever came between.
    phase = "up" /\ Rest # {} => \E s \in Segment : Rest \subseteq Moving(s) /\ ENABLED Clean(s)

Admitted ==     \* If the log is empty and there is a segment to spare, every operation is taken.
    phase = "up" /\ Retained = {} /\ DOMAIN tail = {} =>
        /\ DOMAIN bank = {} /\ Cardinality(FreeSegments) > 1 =>
            \A l \in LBA, v \in Value : ENABLED Write(l, v)
        /\ \A l \in LBA : ENABLED Unmap(l)
        /\ \A n \in Name :
            IF n \in DOMAIN maps.snaps THEN ENABLED Delete(n) /\ ENABLED Revert(n) ELSE ENABLED Snapshot(n)

Unhindered ==   \* Requests in flight hold up no flush, no read and no checkpoint.
    phase = "up" =>
        /\ Cardinality(flushes) < Flushers => ENABLED BeginFlush
        /\ (\E last \in flushes : last <= end) => ENABLED EndFlush
        /\ reads # {} => ENABLED EndRead
        /\ pending = NoCheckpoint /\ Referred(maps) \subseteq DOMAIN middle => ENABLED Freeze
        /\ DOMAIN stripe = {} /\ Waiting # {} /\ Rest = {} =>
            /\ Coming <= Room(Cardinality(FreeSegments) - 2) => \E s \in Segment : ENABLED Open(s)
            /\ Coming = 0 => (\E s \in Segment : ENABLED Open(s) \/ ENABLED Clean(s)) \/ ENABLED Reclaim
        /\ pending # NoCheckpoint /\ pending.from <= end => ENABLED CheckpointNodes \/ ENABLED CheckpointCommit

NothingIdle ==  \* No operation is accepted and forgotten: each leaves a record; nor is an answer given twice.
    /\ ~ ENABLED (Operation /\ tail' = tail)
    /\ ~ ENABLED (EndRead /\ reads' = reads)
    /\ ~ ENABLED (EndFlush /\ flushes' = flushes)
    /\ ~ ENABLED (Reclaim /\ orphans' = orphans)
----------------------------------------------------------------------------
(* Steps.                                                                  *)

AtRest ==       \* Without power, and in recovery, nothing is under way.
    phase # "up" =>
        /\ unflushed = {} /\ DOMAIN stripe = {} /\ pending = NoCheckpoint
        /\ reads = {} /\ flushes = {}

OnlyReplay ==   \* Recovery loads, replays one record a step, and comes up: it does nothing else meanwhile.
    [][/\ phase = "down" => phase' = "replay" /\ end' = Newest.from
       /\ phase = "replay" /\ phase' = "replay" => end' = end + 1
       /\ phase # "up" => UNCHANGED <<checkpoints, data, unflushed>> \/ phase' = "down"]_vars

FullStays ==    \* Nothing is gained by moving what is in a full segment.
    [][\A s \in Segment : usage[s] = Stripe => (DOMAIN bank' \ DOMAIN bank) \intersect Housed(middle, s) = {}]_vars

OneDropped ==   \* However many chunks a view held that goes, a step drops one at most: Reclaim, one by one.
    [][phase' # "down" =>
        Cardinality((DOMAIN middle \union DOMAIN bank) \ (DOMAIN middle' \union DOMAIN bank')) <= 1]_vars
----------------------------------------------------------------------------
(* Liveness, once operations and crashes have ended.                       *)

RecoveryEnds == phase # "up" ~> phase = "up"

CleaningEnds ==     \* A segment is left once all that is used in it is on the move.
    \A s \in Segment :
        (state[s] = "sealed" /\ Housed(middle, s) \subseteq DOMAIN bank) ~> state[s] # "sealed"

ReclaimEnds == orphans # {} ~> orphans = {}

LogReturns == Retained # {} ~> Retained = {}      \* A checkpoint comes, and what it holds is truncated.

SpaceReturns == \A s \in Segment : state[s] = "dead" ~> state[s] = "free"

RequestsEnd == (reads # {} ~> reads = {}) /\ (flushes # {} ~> flushes = {})
=============================================================================
