------------------------- MODULE LogStructuredDisk -------------------------
(***************************************************************************)
(* A log-structured virtual disk, in the small steps between which the     *)
(* power may fail.  It implements VirtualDisk: LogStructuredDiskRefinement.*)
(*                                                                         *)
(* An operation is a record of the durable log.  A write gives its block a *)
(* fresh MBA, whose data waits in the bank until Destage writes a segment. *)
(* The middle map says where the data of an MBA is, so that the cleaner    *)
(* moves a chunk without touching a logical map: it puts the chunk back    *)
(* into the bank.  A checkpoint makes the maps durable, and the log before *)
(* it can go; a segment which that checkpoint needs cannot.  Recovery      *)
(* loads the newest checkpoint and replays the log, one record a step.     *)
(*                                                                         *)
(* The media lose what was written and not flushed: of the records in      *)
(* flight any subset is left, some of them torn, and of the segments       *)
(* nothing.  Under "ack" an operation happens when its record is durable,  *)
(* and one is in flight at a time; under "prefix" it happens at once.      *)
(*                                                                         *)
(* Two operations of the contract are no actions here.  Read changes       *)
(* nothing: what it returns is `disk` in LogStructuredDiskRefinement.      *)
(* Restart is Flush, Crash, and recovery, which then loses nothing.        *)
(*                                                                         *)
(* Left out: how views share the nodes of their maps, and how it is found  *)
(* out what only a deleted view held (SharedTree); mirrors, parity and     *)
(* failing devices (Redundancy); which segment is best cleaned and when.   *)
(* The engine's `open` record is `generation` here, and its MBAs, which    *)
(* only grow, are the least that nothing uses.                             *)
(*                                                                         *)
(* How to break it: let Pinned forget `pending`, let CheckpointNodes not   *)
(* flush the segments, or let Recover not raise `generation`.  The modules *)
(* in mutants/ do such things, one each.                                   *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, typedefs

CONSTANTS
    \* @type: Int;
    Size,           \* How many blocks the disk has.
    \* @type: Set(Int);
    Value,          \* What a block may hold.
    \* @type: Int;
    Zero,           \* What a block holds that was never written, or was unmapped.
    \* @type: Set(Str);
    Name,           \* The names that a snapshot may have.
    \* @type: Str;
    Profile,        \* What a crash keeps: "ack" or "prefix".
    \* @type: Int;
    Nothing,        \* What is read from a place of the media that holds nothing whole.
    \* @type: Int;
    Segments,       \* How many segments the capacity leg has.
    \* @type: Int;
    Stripe,         \* How many chunks a segment takes.
    \* @type: Int;
    LogSize         \* How many records the durable log takes.

VARIABLES           \* On the media.
    \* @type: Int -> $lsdRecord;
    log,            \* Sequence number -> record: what each place of the durable log holds.
    \* @type: $lsdPlace -> Int;
    data,           \* PBA -> what is there.
    \* @type: Int -> $lsdCheckpoint;
    checkpoints,    \* The two checkpoint slots.
    \* @type: Int;
    generation      \* How often the log was opened; every record carries it.

VARIABLES           \* On the way to the media: a power cut may undo it.
    \* @type: Int -> $lsdRecord;
    tail,           \* Sequence number -> record: the records in flight.
    \* @type: Set(Int);
    unflushed       \* The segments written since the last flush.

VARIABLES           \* In memory: a power cut loses it.
    \* @type: Str;
    phase,          \* "up", "down" (no power) or "replay" (recovery).
    \* @type: Int;
    end,            \* The sequence number of the last record that is durable and applied.
    \* @type: $disk;
    maps,           \* The logical maps: [live |-> LBA -> MBA, snaps |-> name -> LBA -> MBA].
    \* @type: Int -> $lsdPlace;
    middle,         \* The middle map, MBA -> PBA.
    \* @type: Int -> Int;
    bank,           \* MBA -> data that waits to be destaged.
    \* @type: Set(Int);
    orphans,        \* MBAs that no view refers to any more; Reclaim will drop them.
    \* @type: Int -> Int;
    usage,          \* Segment -> how many chunks of the middle map are there.
    \* @type: Int -> Str;
    state,          \* Segment -> "free", "open", "sealed" or "dead".
    \* @type: Int -> Int;
    stripe,         \* Slot -> MBA: what is being written into the open segment.
    \* @type: $lsdCheckpoint;
    pending         \* The checkpoint being written, or NoCheckpoint.

media    == <<log, data, checkpoints, generation>>
inFlight == <<tail, unflushed>>
chunks   == <<middle, bank, orphans, usage, state>>
vars     == <<media, inFlight, phase, end, maps, chunks, stripe, pending>>

ASSUME Zero \in Value /\ Nothing \notin Value
ASSUME Profile \in {"ack", "prefix"}

LBA == 0 .. Size - 1
Segment == 1 .. Segments
PBA == Segment \X (1 .. Stripe)
MBA == 1 .. 2 * Stripe * Segments + LogSize + 1     \* One more than can be in use at a time.
Room(n) == n * Stripe       \* How many chunks n segments take.
Hole == 0       \* What a map says of a block that has no chunk.
----------------------------------------------------------------------------
(* Partial functions and sets of numbers.                                  *)

\* @type: b => (a -> b);
Empty(value) == [x \in {} |-> value]    \* Of no argument; `value` is of the type of its values.

\* @type: (a -> b, Set(a)) => (a -> b);
Only(f, S) == [x \in DOMAIN f \intersect S |-> f[x]]

\* @type: (a -> b, Set(a)) => (a -> b);
Without(f, S) == [x \in DOMAIN f \ S |-> f[x]]

\* @type: (a -> b, a -> b) => (a -> b);
Over(g, f) == [x \in DOMAIN f \union DOMAIN g |-> IF x \in DOMAIN g THEN g[x] ELSE f[x]]

InOrder(S) ==       \* 1 .. |S| -> S, the least first, of a set that fits into a segment.
    [i \in {j \in 1 .. Stripe : j <= Cardinality(S)} |-> CHOOSE x \in S : Cardinality({y \in S : y <= x}) = i]

\* @type: (a -> b) => Set(b);
Range(f) == {f[x] : x \in DOMAIN f}

Least(S) == CHOOSE x \in S : \A y \in S : x <= y
----------------------------------------------------------------------------
(* Records, and what they do to the views: to maps, and to what maps mean. *)

Record(op, lba, value, name) ==
    [op |-> op, lba |-> lba, value |-> value, name |-> name,
     generation |-> generation, whole |-> TRUE]

\* @type: $lsdRecord => $lsdRecord;
Torn(r) == [r EXCEPT !.value = Nothing, !.whole = FALSE]

\* @type: ($disk, $lsdRecord, Int, Int) => $disk;
Edited(views, r, new, hole) ==
    CASE r.op = "write"    -> [views EXCEPT !.live[r.lba] = new]
      [] r.op = "unmap"    -> [views EXCEPT !.live[r.lba] = hole]
      [] r.op = "snapshot" -> [views EXCEPT !.snaps = [n \in DOMAIN @ \union {r.name} |->
                                IF n = r.name THEN views.live ELSE @[n]]]
      [] r.op = "delete"   -> [views EXCEPT !.snaps = Without(@, {r.name})]
      [] r.op = "revert"   -> [views EXCEPT !.live = views.snaps[r.name]]

\* @type: $disk => Set(Int);
Referred(views) ==      \* The MBAs that the maps `views` refer to.
    (Range(views.live) \union UNION {Range(views.snaps[n]) : n \in DOMAIN views.snaps}) \ {Hole}
----------------------------------------------------------------------------
(* Chunks and segments.                                                    *)

FreeSegments == {s \in Segment : state[s] = "free"}

\* @type: (Int -> $lsdPlace, Int) => Set(Int);
Housed(map, s) == {m \in DOMAIN map : map[m][1] = s}    \* The chunks that `map` has in segment s.

\* @type: (Int -> $lsdPlace, Set(Int)) => Bool;
House(map, sealing) ==      \* The middle map becomes `map`; usage and states follow.
    /\ middle' = map
    /\ usage' = [s \in Segment |-> usage[s] + Cardinality(Housed(map, s) \ Housed(middle, s))
                                            - Cardinality(Housed(middle, s) \ Housed(map, s))]
    /\ state' = [s \in Segment |->
        IF s \in sealing \/ state[s] = "sealed"
        THEN IF usage'[s] = 0 THEN "dead" ELSE "sealed"
        ELSE state[s]]

Fresh == Least(MBA \ (DOMAIN bank \union DOMAIN middle \union Range(stripe)))

Waiting == DOMAIN bank \ (orphans \union Range(stripe))     \* The chunks that need a place.

\* @type: $disk => Set(Int);
Lost(new) == Referred(maps) \ Referred(new)     \* What no view refers to once the maps are `new`.

Unbanked(gone) == Without(bank, gone)           \* The bank without the MBAs `gone`.

\* @type: ($lsdRecord, Set(Int)) => Set(Int);
Dropped(r, lost) ==     \* Which of the lost chunks the record r itself drops.  The others are orphans.
    IF r.op \in {"write", "unmap"} THEN lost ELSE {}

\* @type: $lsdRecord => Bool;
Apply(r) ==     \* What a write or an unmap replaces is dropped; a view that goes leaves orphans.
    LET new == Edited(maps, r, Fresh, Hole)
        dropped == Dropped(r, Lost(new))
        written == [m \in {x \in {Fresh} : r.op = "write"} |-> r.value]
    IN  /\ maps' = new
        /\ bank' = Over(written, Unbanked(dropped))
        /\ House(Without(middle, dropped), {})
        /\ orphans' = orphans \union (Lost(new) \ dropped)
----------------------------------------------------------------------------
(* Checkpoints.                                                            *)

\* @type: $disk;
Blank == [live |-> [l \in LBA |-> Hole], snaps |-> Empty([l \in LBA |-> Hole])]

\* @type: $lsdCheckpoint;
NoCheckpoint ==     \* Nothing, or a slot that is not whole.
    [serial |-> 0, from |-> 0, generation |-> 0, maps |-> Blank, middle |-> Empty(<<0, 0>>),
     orphans |-> {}]

Newer == IF checkpoints[1].serial > checkpoints[2].serial THEN 1 ELSE 2     \* Which slot it is.

Older == 3 - Newer      \* The slot that the next checkpoint is written to.

Newest == checkpoints[Newer]    \* The checkpoint that recovery would load.

NextSerial == Newest.serial + 1

Image ==        \* The checkpoint that would be written now.
    [serial |-> NextSerial, from |-> end, generation |-> generation,
     maps |-> maps, middle |-> middle, orphans |-> orphans \intersect DOMAIN middle]

AllHoused == Referred(maps) \subseteq DOMAIN middle     \* No view depends on the bank, nor so on the log.

FlushLeaves == {}       \* The segments which the checkpoint's flush leaves unflushed.

Forgettable == Newest.from      \* Up to where the log may be truncated.

Pinned ==       \* The segments that a checkpoint needs which recovery may load.
    {p[1] : p \in Range(Newest.middle) \union Range(pending.middle)}
----------------------------------------------------------------------------
(* The durable log.  A place of it is good if it holds a whole record that *)
(* is not older than the one before it: what an earlier generation left    *)
(* behind a place that was lost must not come back.                        *)

At(p) == IF p \in DOMAIN tail THEN tail[p] ELSE log[p]

GenerationAt(p) == IF p = Newest.from THEN Newest.generation ELSE At(p).generation

\* @type: ($lsdRecord, Int) => Bool;
Good(r, p) == r.whole /\ r.generation >= GenerationAt(p - 1)

Readable(p) ==      \* What may be read at place p after a power cut.
    (IF p \in DOMAIN tail THEN {tail[p], Torn(tail[p])} ELSE {})
        \union (IF p \in DOMAIN log THEN {log[p]} ELSE {})

NextPlace == end + Cardinality(DOMAIN tail) + 1     \* Where the next record goes.

NextGeneration == generation + 1

Kept == {p \in DOMAIN log : p <= end}   \* The places that hold records which cannot be overwritten.
----------------------------------------------------------------------------
(* The operations.                                                         *)

AtOnce == Profile = "prefix"            \* Does an operation happen when it is submitted?

Settled == AtOnce \/ DOMAIN tail = {}       \* Is there none in flight that is still to happen?

\* @type: $lsdRecord => Bool;
Submit(r) ==     \* The record goes to the log.
    /\ Settled
    /\ Cardinality(Kept \union DOMAIN tail) < LogSize
    /\ tail' = Over([p \in {NextPlace} |-> r], tail)
    /\ IF AtOnce THEN Apply(r) ELSE UNCHANGED <<maps, chunks>>
    /\ UNCHANGED <<media, unflushed, phase, end, stripe, pending>>

HasRoom ==      \* One free segment is kept for the cleaner.
    Cardinality(DOMAIN bank \ Range(stripe)) < Stripe * (Cardinality(FreeSegments) - 1)

Write(lba, value) == phase = "up" /\ HasRoom /\ Submit(Record("write", lba, value, ""))

Unmap(lba) == phase = "up" /\ Submit(Record("unmap", lba, Zero, ""))

Snapshot(name) ==
    /\ phase = "up"
    /\ name \notin DOMAIN maps.snaps
    /\ Submit(Record("snapshot", 0, Zero, name))

Delete(name) ==
    /\ phase = "up"
    /\ name \in DOMAIN maps.snaps
    /\ Submit(Record("delete", 0, Zero, name))

Revert(name) ==
    /\ phase = "up"
    /\ name \in DOMAIN maps.snaps
    /\ Submit(Record("revert", 0, Zero, name))

LogAppend ==       \* What is in flight becomes durable.
    /\ phase = "up"
    /\ DOMAIN tail # {}
    /\ log' = Over(tail, log)
    /\ tail' = Without(tail, DOMAIN tail)
    /\ end' = end + Cardinality(DOMAIN tail)
    /\ IF AtOnce THEN UNCHANGED <<maps, chunks>> ELSE Apply(tail[end + 1])
    /\ UNCHANGED <<data, checkpoints, generation, unflushed, phase, stripe, pending>>

Flush == phase = "up" /\ DOMAIN tail = {} /\ UNCHANGED vars     \* Answered once nothing is in flight.
----------------------------------------------------------------------------
(* Segments.                                                               *)

Fits(n) == IF n < Room(1) THEN n ELSE Room(1)

Choices == SUBSET Waiting       \* What a segment may be opened for.

Open(s) ==      \* A full-stripe write into a free segment begins, of as much as waits and fits.
    /\ phase = "up"
    /\ Settled
    /\ DOMAIN stripe = {}
    /\ Waiting # {}
    /\ FreeSegments # {} /\ s = Least(FreeSegments)
    /\ \E chosen \in Choices :
        /\ Cardinality(chosen) = Fits(Cardinality(Waiting))
        /\ stripe' = InOrder(chosen)
    /\ state' = [state EXCEPT ![s] = "open"]
    /\ UNCHANGED <<media, inFlight, phase, end, maps, middle, bank, orphans, usage, pending>>

Landed(i) == stripe[i] \in DOMAIN bank      \* Was it not dropped while it was being written?

Destage ==      \* The full-stripe write is complete.
    LET s == CHOOSE x \in Segment : state[x] = "open"
        landed == {i \in DOMAIN stripe : Landed(i)}
        moved == {stripe[i] : i \in landed}
        \* @type: Int -> $lsdPlace;
        places == [m \in moved |-> <<s, CHOOSE i \in landed : stripe[i] = m>>]
    IN  /\ phase = "up"
        /\ DOMAIN stripe # {}
        /\ data' = [p \in PBA |->
            CASE p[1] # s -> data[p]
              [] p[2] \in DOMAIN stripe /\ stripe[p[2]] \in DOMAIN bank -> bank[stripe[p[2]]]
              [] OTHER -> Nothing]
        /\ unflushed' = unflushed \union {s}
        /\ House(Over(places, middle), {s})
        /\ bank' = Without(bank, moved)
        /\ stripe' = Empty(Hole)
        /\ UNCHANGED <<log, checkpoints, generation, tail, phase, end, maps, orphans, pending>>

Copy(m) == data[middle[m]]      \* What the cleaner reads to move m.

Moving(s) == Housed(middle, s) \ (orphans \union DOMAIN bank)     \* What has to move out of s.

Clean(s) ==     \* What lives in s moves: it goes through the bank again.
    LET moving == Moving(s)
    IN  /\ phase = "up"
        /\ Settled
        /\ state[s] = "sealed"
        /\ usage[s] < Room(1)
        /\ moving # {}
        /\ Cardinality(Waiting \union moving) <= Room(Cardinality(FreeSegments))
        /\ bank' = Over([m \in moving |-> Copy(m)], bank)
        /\ UNCHANGED <<media, inFlight, phase, end, maps, middle, orphans, usage, state, stripe,
                       pending>>

Reclaimable == orphans

Reclaim ==      \* One chunk that a lost view held, and no view needs, is dropped.
    /\ phase = "up"
    /\ \E m \in Reclaimable :
        /\ orphans' = orphans \ {m}
        /\ bank' = Unbanked({m})
        /\ House(Without(middle, {m}), {})
    /\ UNCHANGED <<media, inFlight, phase, end, maps, stripe, pending>>

Free(s) ==       \* A dead segment becomes free, and is trimmed.
    /\ phase = "up"
    /\ state[s] = "dead"
    /\ s \notin Pinned
    /\ state' = [state EXCEPT ![s] = "free"]
    /\ data' = [p \in PBA |-> IF p[1] = s THEN Nothing ELSE data[p]]
    /\ unflushed' = unflushed \ {s}
    /\ UNCHANGED <<log, checkpoints, generation, tail, phase, end, maps, middle, bank, orphans,
                   usage, stripe, pending>>
----------------------------------------------------------------------------
(* Checkpoint.                                                             *)

CheckpointNodes ==      \* The maps are written and all is flushed; the older slot is given up.
    /\ phase = "up"
    /\ pending = NoCheckpoint
    /\ DOMAIN tail = {}
    /\ AllHoused
    /\ pending' = Image
    /\ checkpoints' = [checkpoints EXCEPT ![Older] = NoCheckpoint]
    /\ unflushed' = FlushLeaves
    /\ UNCHANGED <<log, data, generation, tail, phase, end, maps, chunks, stripe>>

CheckpointCommit ==     \* Its slot is written and flushed.
    /\ phase = "up"
    /\ pending # NoCheckpoint
    /\ checkpoints' = [checkpoints EXCEPT ![Older] = pending]
    /\ pending' = NoCheckpoint
    /\ UNCHANGED <<log, data, generation, inFlight, phase, end, maps, chunks, stripe>>

Truncate ==     \* The log forgets what the newest checkpoint holds.
    /\ phase = "up"
    /\ \E p \in DOMAIN log : p <= Forgettable
    /\ log' = [p \in {q \in DOMAIN log : q > Forgettable} |-> log[p]]
    /\ UNCHANGED <<data, checkpoints, generation, inFlight, phase, end, maps, chunks, stripe, pending>>
----------------------------------------------------------------------------
(* Crash and recovery.                                                     *)

Crash ==        \* Which records in flight are left is found out by reading them.
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
    /\ UNCHANGED <<media, inFlight, bank, stripe, pending>>

Replay ==
    /\ phase = "replay"
    /\ \E r \in Readable(end + 1) : Good(r, end + 1) /\ Apply(r)
    /\ end' = end + 1
    /\ UNCHANGED <<media, inFlight, phase, stripe, pending>>

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
        /\ UNCHANGED <<data, checkpoints, unflushed, end, maps, chunks, stripe, pending>>
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

Operation ==
    \/ \E l \in LBA : Unmap(l) \/ \E v \in Value : Write(l, v)
    \/ \E n \in Name : Snapshot(n) \/ Delete(n) \/ Revert(n)

Internal ==
    \/ \E s \in Segment : Open(s) \/ Clean(s) \/ Free(s)
    \/ Destage \/ Reclaim
    \/ CheckpointNodes \/ CheckpointCommit \/ Truncate
    \/ Load \/ Replay

Next == Operation \/ LogAppend \/ Flush \/ Internal \/ Crash \/ Recover

Spec == Init /\ [][Next]_vars

Fairness ==     \* What the disk does by itself it does in the end, but it need not clean.
    /\ WF_vars(LogAppend)
    /\ WF_vars(\E s \in Segment : Open(s)) /\ WF_vars(Destage)
    /\ WF_vars(Reclaim)
    /\ WF_vars(\E s \in Segment : Free(s))
    /\ WF_vars(CheckpointNodes) /\ WF_vars(CheckpointCommit) /\ WF_vars(Truncate)
    /\ WF_vars(Load) /\ WF_vars(Replay \/ Recover)
----------------------------------------------------------------------------
(* Invariants.                                                             *)

RecordType ==
    [op : {"write", "unmap", "snapshot", "delete", "revert"}, lba : LBA, value : Value,
     name : Name \union {""}, generation : 0 .. generation, whole : {TRUE}]

TypeOK ==
    /\ Range(log) \union Range(tail) \subseteq RecordType
    /\ data \in [PBA -> Value \union {Nothing}]
    /\ unflushed \subseteq Segment
    /\ phase \in {"up", "down", "replay"}
    /\ Range(middle) \subseteq PBA
    /\ Range(bank) \subseteq Value
    /\ state \in [Segment -> {"free", "open", "sealed", "dead"}]
    /\ usage \in [Segment -> 0 .. Stripe]

NoDanglingAddress ==    \* What a view refers to is in the bank, or in a segment in use and readable there.
    \A m \in Referred(maps) \union orphans :
        \/ m \in DOMAIN bank
        \/ /\ m \in DOMAIN middle
           /\ data[middle[m]] # Nothing
           /\ state[middle[m][1]] = "sealed"

CheckpointsWhole ==     \* What a checkpoint refers to that recovery may load is durable and left alone.
    \A c \in {Newest, pending} :
        \A m \in Referred(c.maps) :
            /\ m \in DOMAIN c.middle
            /\ data[c.middle[m]] # Nothing
            /\ c.middle[m][1] \notin unflushed
            /\ phase = "up" => state[c.middle[m][1]] \in {"sealed", "dead"}

NoLeak ==       \* Every chunk is a view's, or on its way out; every segment in use has chunks.
    /\ DOMAIN middle \union DOMAIN bank = Referred(maps) \union orphans
    /\ Referred(maps) \intersect orphans = {}
    /\ \A s \in Segment : state[s] = "sealed" <=> usage[s] > 0

UsageExact ==
    \A s \in Segment : usage[s] = Cardinality(Housed(middle, s))

OnePlaceEach ==     \* No two chunks have the same place.
    \A m, n \in DOMAIN middle : middle[m] = middle[n] => m = n

RoomForAll == Cardinality(Waiting) <= Room(Cardinality(FreeSegments))

Movable ==      \* Space can always be made: the disk is never wedged.
    \E s \in Segment :
        state[s] \in {"free", "open", "dead"} \/ Housed(middle, s) \subseteq DOMAIN bank \union orphans
----------------------------------------------------------------------------
(* Liveness, once operations and crashes have ended.                       *)

RecoveryEnds == phase # "up" ~> phase = "up"

CleaningEnds ==     \* A segment is left once all that lives in it is on the move.
    \A s \in Segment :
        (state[s] = "sealed" /\ Housed(middle, s) \subseteq DOMAIN bank) ~> state[s] # "sealed"

ReclaimEnds == orphans # {} ~> orphans = {}

SpaceReturns == \A s \in Segment : state[s] = "dead" ~> state[s] = "free"
=============================================================================
