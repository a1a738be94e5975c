------------------------ MODULE LogStructuredDiskLog ------------------------
(***************************************************************************)
(* The state of LogStructuredDisk, the records of its durable log, and     *)
(* which of them recovery may trust.                                       *)
(*                                                                         *)
(* A record describes one operation.  Its place in the log is its sequence *)
(* number.  A record in flight (`tail`) is not flushed: a power cut may    *)
(* leave it, lose it or tear it.  Each time the log is opened it gets a    *)
(* new generation.  Recovery stops at a record of an older generation than *)
(* the record before it: such a record was left behind by an earlier       *)
(* power cut.                                                              *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, typedefs

CONSTANTS
    \* @type: Int;
    Size,           \* The number of blocks of the disk.
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
    Segments,       \* The number of segments of the capacity leg.
    \* @type: Int;
    Stripe,         \* The number of chunks per segment.
    \* @type: Int;
    LogSize,        \* The number of records that the durable log takes.
    \* @type: Int;
    Readers,        \* The number of reads that may be in flight.
    \* @type: Int;
    Flushers        \* The number of flushes that may be in flight.

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
    end,            \* The sequence number of the last durable record; under "ack" it is applied, too.
    \* @type: $disk;
    maps,           \* The logical maps: [live |-> LBA -> MBA, snaps |-> name -> LBA -> MBA].
    \* @type: Int -> $lsdPlace;
    middle,         \* The middle map, MBA -> PBA.
    \* @type: Int -> Int;
    bank,           \* MBA -> data that waits to be destaged.
    \* @type: Set(Int);
    orphans,        \* MBAs that no view refers to any more; Reclaim drops them.
    \* @type: Int -> Int;
    usage,          \* Segment -> the number of chunks that the middle map has there.
    \* @type: Int -> Str;
    state,          \* Segment -> "free", "open", "sealed" or "dead".
    \* @type: Int -> Int;
    stripe,         \* Slot -> MBA: what is being written into the open segment.
    \* @type: $lsdCheckpoint;
    pending,        \* The checkpoint being written: the frozen maps.
    \* @type: Set($lsdRead);
    reads,          \* The reads in flight: where each reads, and what was there when it began.
    \* @type: Set(Int);
    flushes         \* The flushes in flight: the last record that each waits for.

media    == <<log, data, checkpoints, generation>>
inFlight == <<tail, unflushed>>
chunks   == <<middle, bank, orphans, usage, state>>
requests == <<reads, flushes>>
vars     == <<media, inFlight, phase, end, maps, chunks, stripe, pending, requests>>

ASSUME Zero \in Value /\ Nothing \notin Value
ASSUME Profile \in {"ack", "prefix"}

LBA == 0 .. Size - 1
Segment == 1 .. Segments
PBA == Segment \X (1 .. Stripe)
MBA == 1 .. 2 * Stripe * Segments + LogSize + 1     \* One more than can be in use at a time.
Room(n) == n * Stripe       \* The number of chunks that n segments take.
Hole == 0       \* What a map says of a block that has no chunk.
Live == "(live)"    \* How a read names the live view.
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

\* @type: (a -> b) => Set(b);
Range(f) == {f[x] : x \in DOMAIN f}

Least(S) == CHOOSE x \in S : \A y \in S : x <= y

Greatest(S) == CHOOSE x \in S : \A y \in S : y <= x
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

\* @type: $disk;
Blank == [live |-> [l \in LBA |-> Hole], snaps |-> Empty([l \in LBA |-> Hole])]
----------------------------------------------------------------------------
(* Checkpoints.                                                            *)

\* @type: $lsdCheckpoint;
NoCheckpoint ==     \* Nothing, or a slot that is not whole.
    [serial |-> 0, from |-> 0, generation |-> 0, maps |-> Blank, middle |-> Empty(<<0, 0>>),
     orphans |-> {}]

Newer == IF checkpoints[1].serial > checkpoints[2].serial THEN 1 ELSE 2     \* The slot of the newest.

Older == 3 - Newer      \* The slot that the next checkpoint is written to.

Newest == checkpoints[Newer]    \* The checkpoint that recovery would load.

NextSerial == Newest.serial + 1

Pinned ==       \* The segments that a checkpoint needs, or that a read in flight reads.
    {p[1] : p \in Range(Newest.middle) \union Range(pending.middle)} \union {r.place[1] : r \in reads}
----------------------------------------------------------------------------
(* The durable log.  A place of it is good if it holds a whole record that *)
(* is not older than the one before it.                                    *)

AtOnce == Profile = "prefix"    \* Does an operation happen when it is submitted, or when its record is durable?

At(p) == IF p \in DOMAIN tail THEN tail[p] ELSE log[p]

GenerationAt(p) == IF p = Newest.from THEN Newest.generation ELSE At(p).generation

\* @type: ($lsdRecord, Int) => Bool;
Good(r, p) == r.whole /\ r.generation >= GenerationAt(p - 1)

Readable(p) ==      \* What may be read at place p after a power cut.
    (IF p \in DOMAIN tail THEN {tail[p], Torn(tail[p])} ELSE {})
        \union (IF p \in DOMAIN log THEN {log[p]} ELSE {})

LastPlace == end + Cardinality(DOMAIN tail)     \* Of the last record that was submitted.

NextPlace == LastPlace + 1      \* Of the next record.

Applied == IF AtOnce THEN LastPlace ELSE end    \* The last record that is in the maps.

NextGeneration == generation + 1

Retained == {p \in DOMAIN log : p <= end}   \* The places that hold records which must not be overwritten.

Forgettable == Newest.from      \* Up to where the log may be truncated.

Coming ==       \* The number of chunks that the records in flight will add.
    IF AtOnce THEN 0 ELSE Cardinality({p \in DOMAIN tail : p > end /\ tail[p].op = "write"})

Known(name) ==  \* Does the snapshot exist once all that is in flight has happened?
    LET about == {p \in DOMAIN tail : tail[p].op \in {"snapshot", "delete"} /\ tail[p].name = name}
    IN  IF about = {} THEN name \in DOMAIN maps.snaps ELSE tail[Greatest(about)].op = "snapshot"
=============================================================================
