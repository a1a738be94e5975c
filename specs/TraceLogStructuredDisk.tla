----------------------- MODULE TraceLogStructuredDisk -----------------------
(***************************************************************************)
(* Is what happened inside the engine, by its events, a behaviour of       *)
(* LogStructuredDisk?  Every step is an action of that module, narrowed to *)
(* what the event says; one event is as many steps as it takes.  Many      *)
(* traces are followed in one run, each from an initial state of its own.  *)
(*                                                                         *)
(*   LogStructuredDisk    events                                           *)
(*   ------------------   -----------------------------------------------  *)
(*   Write ... Revert     submit: a record is written to the log.  Under   *)
(*                        "prefix" it is the step of `apply`               *)
(*   LogAppend            "prefix": log_append, all that is in flight is   *)
(*                        flushed.  "ack": apply, of a record that         *)
(*                        log_append said to be flushed                    *)
(*   Apply (in these)     apply: which MBAs it made, and which it dropped  *)
(*   Open, Destage        destage                                          *)
(*   Clean, Reclaim       clean, reclaim                                   *)
(*   Freeze               freeze: the bank has been destaged               *)
(*   CheckpointNodes      checkpoint_nodes: all nodes are written, and the *)
(*                        segments are flushed                             *)
(*   CheckpointCommit     checkpoint_commit                                *)
(*   Truncate             truncate                                         *)
(*   Free                 free                                             *)
(*   Crash, Load          load, whatever came before it                    *)
(*   Replay, Recover      replay and apply, recover                        *)
(*   BeginRead, EndRead   no event: a read is answered with what the maps  *)
(*                        led to at one moment between call and answer     *)
(*   BeginFlush, EndFlush no event: the call, and the answer: by then all  *)
(*                        is flushed that was submitted before the call    *)
(*                                                                         *)
(* Where requests overlap (header: trace 2), a trace has a line for each   *)
(* call and for each answer.  A change is answered when its record has     *)
(* been applied, and under "ack" flushed; what was refused has no record.  *)
(*                                                                         *)
(* Where the engine's steps differ from the spec's:                        *)
(* - A record has many blocks, of one write or of several (`extents`).  It *)
(*   is as many records of the spec, and a power cut leaves all or none of *)
(*   them, which is one way the spec may go: under "ack" they are appended *)
(*   one by one.                                                           *)
(* - MBAs only grow, and a segment is filled in the order in which chunks  *)
(*   came to wait.  The spec takes the least of equals.                    *)
(* - A deleted view keeps its chunks until reclaim has come to them, even  *)
(*   if live overwrites them, and the cleaner moves them meanwhile.  In    *)
(*   the spec they are orphans, and only what a view refers to moves.  So  *)
(*   what is overwritten may become an orphan while a view is `retired`.   *)
(* - A step of the cleaner asks for the room of what it moves itself: more *)
(*   than one segment may be cleaned in part at a time (Rest).             *)
(* - The segment that is kept for the cleaner may be in use by what it     *)
(*   moves: a write is refused for want of room for new chunks only.       *)
(* - A large write fills segments before its record is in the log.  Here   *)
(*   its chunks pass through the bank, and are Placed at once.  The log    *)
(*   needs such a segment until a checkpoint has come.                     *)
(* - The spec opens the least free segment, since free segments are alike. *)
(*   The engine opens the least that it knows: of more than 1,024 segments *)
(*   it learns the others some time after an opening.  Such a trace is     *)
(*   rejected.                                                             *)
(*                                                                         *)
(* Left out: how large a record is (LogSize); what generation it is of,    *)
(* which comes out as what is replayed.                                    *)
(*                                                                         *)
(* How to break it: change a number in an event; it is followed to there.  *)
(***************************************************************************)
EXTENDS LogStructuredDisk, TraceFile, Sequences, TLC

VARIABLES
    trace,      \* Which of the traces this is.
    next,       \* The line that is to be matched next: a request, or an event inside it.
    part,       \* How many steps of it are done.
    request,    \* The line of the request that the last record is of, or the next will be.
    flying,     \* Line of a request in flight -> its record's number or 0, the last record before
                \* it, and what it may have read.
    queue,      \* The lines of the records that are written or replayed, and not yet applied.
    durable,    \* The number of the last record that was flushed.
    sequence,   \* The next record's sequence number.
    retired,    \* Is there a view that is deleted and not reclaimed?
    placing,    \* The segments that large writes in flight have filled.
    placed      \* The segments that large writes filled since the newest checkpoint.

following ==
    <<trace, next, part, request, flying, queue, durable, sequence, retired, placing, placed>>

Lines == Traces[trace].events

Line == Lines[next]

Geometry == Traces[trace].header.geometry

Length(s) == Cardinality(DOMAIN s)

Is(event) == "event" \in DOMAIN Line /\ Line.event = event

Before(steps) == part < steps     \* Is the line not done yet?
----------------------------------------------------------------------------
(* The engine's choices, in place of the spec's.                           *)

TraceLBA == 0 .. Geometry.blocks - 1

TraceSegment == 1 .. Geometry.segments

TracePBA == TraceSegment \X (1 .. Geometry.stripe)

TraceRoom(n) == n * Geometry.stripe

Unwritten == -1

InTrace(segment) == segment + 1     \* The engine counts from 0.

Overlapping == Traces[trace].header.trace = 2

Block == part   \* Which block of a record the next step deals with, the first being 0.

Asked == IF Is("submit") THEN next ELSE Head(queue)     \* The line of that record.

Unknown ==      \* An MBA that nothing uses, for what was never said.
    1 + Cardinality(DOMAIN bank) + CHOOSE m \in DOMAIN middle \union {0} : \A n \in DOMAIN middle : n <= m

EngineFresh == IF Is("apply") /\ Block + 1 \in DOMAIN Line.mbas THEN Line.mbas[Block + 1] ELSE Unknown

EngineRecord(op, lba, value, name) ==
    [op |-> op, lba |-> lba, value |-> value, name |-> name,
     generation |-> generation, whole |-> TRUE, sequence |-> Lines[Asked].sequence]

EngineDropped(r, lost) ==
    CASE r.op \notin {"write", "unmap"} -> {}
      [] Is("apply")                    -> lost \intersect Range(Line.dropped)
      [] OTHER                          -> lost

EngineFreeSegments == {s \in TraceSegment : state[s] = "free"} \ placing

EngineHasRoom ==
    Cardinality(DOMAIN bank \ DOMAIN middle) + Coming
        < Room(Cardinality({s \in TraceSegment : state[s] = "free"}) - 1)

EngineWaiting == DOMAIN bank \ Range(stripe)

EngineChoices == LET chosen == Range(Line.mbas) IN IF chosen \subseteq Waiting THEN {chosen} ELSE {}

EngineOrder(S) == Line.mbas

EngineMoving(s) == Range(Line.mbas)

EngineParts(s) == {Range(Line.mbas)}

EngineRest == {}

EngineReclaimable == IF Before(Length(Line.mbas)) THEN {Line.mbas[part + 1]} \intersect orphans ELSE {}

EnginePinned == {p[1] : p \in Range(Newest.middle) \union Range(pending.middle)} \union placed

NothingLeft(lost) == {{}}   \* Beyond the end of the log: whatever is left there, the engine must not replay.
(* The same as in the spec, in words that take TLC less time: what differs *)
(* is all that is looked at.                                               *)

FastOver(g, f) == g @@ f

FastWithout(f, S) == IF S \intersect DOMAIN f = {} THEN f ELSE [x \in DOMAIN f \ S |-> f[x]]

Settling(map, old) == {m \in DOMAIN map : m \notin DOMAIN old \/ old[m][1] # map[m][1]}

FastHouse(map, sealing) ==
    IF map = middle /\ sealing = {} THEN UNCHANGED <<middle, usage, state>>
    ELSE \E came \in {Settling(map, middle)}, went \in {Settling(middle, map)} :
        LET live(s) == usage[s] + Cardinality({m \in came : map[m][1] = s})
                                - Cardinality({m \in went : middle[m][1] = s})
        IN  /\ middle' = map
            /\ usage' = [s \in Segment |-> live(s)]
            /\ state' = [s \in Segment |->
                IF s \in sealing \/ state[s] = "sealed"
                THEN IF live(s) = 0 THEN "dead" ELSE "sealed"
                ELSE state[s]]

FastLost(new) ==
    LET left == {maps.live[l] : l \in {x \in LBA : new.live[x] # maps.live[x]}}
                    \union UNION {Range(maps.snaps[n]) : n \in DOMAIN maps.snaps \ DOMAIN new.snaps}
        held(m, map) == \E l \in LBA : map[l] = m
    IN  {m \in left \ {Hole} : ~ held(m, new.live) /\ \A n \in DOMAIN new.snaps : ~ held(m, new.snaps[n])}
----------------------------------------------------------------------------
(* Operations.  What is read is what the maps lead to.                     *)

Meant(m) ==
    CASE m = Hole             -> Zero
      [] m \in DOMAIN bank    -> bank[m]
      [] m \in DOMAIN middle  -> data[middle[m]]
      [] OTHER                -> Nothing

Found(q) ==     \* What a read that takes place now returns: nothing, if there is no such view or block.
    LET live == "view" \notin DOMAIN q
        map == IF live THEN maps.live ELSE maps.snaps[q.view]
    IN  IF (live \/ q.view \in DOMAIN maps.snaps) /\ q.lba + q.count <= Geometry.blocks
        THEN [i \in 1 .. q.count |-> Meant(map[q.lba + i - 1])]
        ELSE <<>>

Blocks(r) == IF "count" \in DOMAIN r THEN r.count ELSE 1    \* How many records of the spec it is.

RECURSIVE InExtents(_, _, _)
InExtents(extents, i, b) ==     \* Block b of all from extent i on, each an LBA and a number of blocks.
    IF b < extents[i][2] THEN extents[i][1] + b ELSE InExtents(extents, i + 1, b - extents[i][2])

BlockOf(r, b) ==        \* Where block b of a record is.
    IF "extents" \in DOMAIN r THEN InExtents(r.extents, 1, b) ELSE r.lba + b

Called == [record |-> 0, since |-> sequence - 1, found |-> {}]

RequestOf(n) == IF "call" \in DOMAIN Lines[n] THEN Lines[n].call ELSE Lines[n]

Whose == IF Is("submit") /\ "request" \in DOMAIN Line THEN Line.request ELSE request

AsRequested(r) ==
    LET q == RequestOf(Whose)
    IN  /\ q.op = r.op
        /\ r.op = "unmap" => q.lba = r.lba
        /\ r.op = "write" =>
            /\ Length(q.tags) = r.count
            /\ {BlockOf(r, b) : b \in 0 .. r.count - 1} = q.lba .. q.lba + r.count - 1
        /\ r.op = "unmap" => q.count = r.count
        /\ r.op \in {"snapshot", "delete", "revert"} => q.name = r.name

Read ==         \* The requests in flight: the reads among them may take place now.
    [n \in DOMAIN flying |->
        IF RequestOf(n).op = "read" THEN [flying[n] EXCEPT !.found = @ \union {Found(RequestOf(n))}] ELSE flying[n]]

Submitted(r) ==     \* Its next block.
    CASE r.op = "write"    -> LET l == BlockOf(r, Block) q == RequestOf(Whose)
                              IN  Write(l, q.tags[l - q.lba + 1])
      [] r.op = "unmap"    -> Unmap(r.lba + Block)
      [] r.op = "snapshot" -> Snapshot(r.name)
      [] r.op = "delete"   -> Delete(r.name)
      [] r.op = "revert"   -> Revert(r.name)

Matches(r, s) ==    \* Is the spec's record s the next block of r?
    /\ s.op = r.op
    /\ s.sequence = r.sequence
    /\ s.op \in {"write", "unmap"} => s.lba = BlockOf(r, Block)
    /\ s.op \notin {"write", "unmap"} => s.name = r.name

Happening(r) ==     \* One step of the operation of a record.
    CASE phase = "replay" -> end + 1 \in DOMAIN log \union DOMAIN tail /\ Matches(r, At(end + 1)) /\ Replay
      [] AtOnce           -> Submitted(r)
      [] OTHER            -> LogAppend

Placed(s, chunks_) ==       \* The chunks were in segment s, in this order, before their record was in the log.
    LET places == [m \in Range(chunks_) |-> <<s, CHOOSE i \in DOMAIN chunks_ : chunks_[i] = m>>]
    IN  /\ state[s] = "free"
        /\ Range(chunks_) \subseteq DOMAIN bank
        /\ data' = [p \in PBA |-> IF p[1] = s THEN bank[chunks_[p[2]]] ELSE data[p]]
        /\ House(Over(places, middle), {s})
        /\ bank' = Without(bank, Range(chunks_))
        /\ UNCHANGED <<log, checkpoints, generation, inFlight, phase, end, maps, orphans, stripe, pending, requests>>

OnRecord(last) ==       \* No record is left out or comes twice.  It will be applied, unless it only opens the log.
    /\ Line.sequence = sequence
    /\ sequence' = IF last THEN sequence + 1 ELSE sequence
    /\ queue' = IF Line.op = "open" \/ ~ last THEN queue ELSE Append(queue, next)

FollowSubmit(last) ==
    /\ phase = "up"
    /\ AtOnce => queue = <<>>
    /\ IF Line.op = "open" THEN UNCHANGED <<vars, flying>>
       ELSE /\ Whose \in DOMAIN flying
            /\ flying[Whose].record = 0
            /\ AsRequested(Line)
            /\ IF AtOnce THEN UNCHANGED vars ELSE Submitted(Line)
            /\ flying' = IF last THEN [flying EXCEPT ![Whose].record = Line.sequence] ELSE flying
    /\ OnRecord(last)
    /\ UNCHANGED <<durable, retired, placing, placed>>

FollowLogAppend ==
    /\ Line.sequence = sequence - 1
    /\ durable' = Line.sequence
    /\ IF AtOnce THEN queue = <<>> /\ LogAppend ELSE queue # <<>> /\ UNCHANGED vars
    /\ UNCHANGED <<flying, queue, sequence, retired, placing, placed>>

FollowReplay ==
    /\ phase = "replay"
    /\ queue = <<>>
    /\ OnRecord(TRUE)
    /\ UNCHANGED <<vars, flying, durable, retired, placing, placed>>

FollowApply(last) ==
    LET r == Lines[Head(queue)]
        n == Blocks(r)
        segment == InTrace(Line.segments[part - n + 1])
        first == (part - n) * Room(1)
    IN  /\ phase = "up" /\ ~ AtOnce => r.sequence <= durable
        /\ part = 0 =>
            /\ Length(Line.mbas) = IF r.op = "write" THEN r.count ELSE 0
            /\ Range(Line.mbas) \intersect (DOMAIN bank \union DOMAIN middle) = {}
        /\ IF Before(n) THEN Happening(r) /\ UNCHANGED <<placing, placed>>
           ELSE /\ Placed(segment, [i \in 1 .. Room(1) |-> Line.mbas[first + i]])
                /\ placing' = placing \ {segment}
                /\ placed' = placed \union {segment}
        /\ flying' = IF part = 0 THEN Read ELSE flying
        /\ queue' = IF last THEN Tail(queue) ELSE queue
        /\ retired' = (retired \/ r.op \in {"delete", "revert"})
        /\ last => Range(Line.dropped) \intersect (DOMAIN bank' \union DOMAIN middle') = {}
        /\ ~ retired' => orphans' = {}
        /\ UNCHANGED <<durable, sequence>>

FollowPlace ==
    LET filled == {InTrace(s) : s \in Range(Line.segments)}
    IN  /\ filled \subseteq FreeSegments \ Pinned
        /\ placing' = placing \union filled
        /\ UNCHANGED <<vars, flying, queue, durable, sequence, retired, placed>>
----------------------------------------------------------------------------
(* What happens by itself.                                                 *)

InUsage(counts) == {<<InTrace(counts[i][1]), counts[i][2]>> : i \in DOMAIN counts}

Counted == {<<s, usage[s]>> : s \in {x \in Segment : usage[x] > 0}}

Quiet == UNCHANGED <<flying, queue, durable, sequence, retired, placing, placed>>

FollowDestage ==
    /\ Quiet
    /\ IF part = 0 THEN Cardinality(Range(Line.mbas)) = Length(Line.mbas) /\ Open(InTrace(Line.segment))
       ELSE Destage

Movables(s) == Housed(middle, s) \ DOMAIN bank

FollowClean ==
    LET s == InTrace(Line.segment)
    IN  /\ Quiet
        /\ Range(Line.mbas) \subseteq Movables(s)
        /\ Length(Line.mbas) < Line.most => Movables(s) \ Range(Line.mbas) \subseteq Range(Line.unreadable)
        /\ IF Line.mbas = <<>> THEN UNCHANGED vars ELSE Clean(s)

FollowReclaim(last) ==
    /\ IF Line.mbas = <<>> THEN UNCHANGED vars ELSE Reclaim
    /\ retired' = (Line.left > 0 \/ ~ last)
    /\ ~ retired' => orphans' = {}
    /\ UNCHANGED <<flying, queue, durable, sequence, placing, placed>>

FollowFreeze ==
    /\ Quiet
    /\ Line.sequence = IF queue = <<>> THEN sequence ELSE Lines[Head(queue)].sequence
    /\ Line.number = NextSerial
    /\ InUsage(Line.usage) = Counted
    /\ Freeze

FollowNodes == Quiet /\ Line.number = pending.serial /\ WriteNodes

FollowCommit ==
    /\ pending.serial = Line.number
    /\ CheckpointCommit
    /\ placed' = {}
    /\ UNCHANGED <<flying, queue, durable, sequence, retired, placing>>

FollowTruncate == Quiet /\ IF \E p \in DOMAIN log : p <= Forgettable THEN Truncate ELSE UNCHANGED vars
----------------------------------------------------------------------------
(* Crash and recovery.                                                     *)

FollowLoad ==
    IF phase = "up" /\ AtOnce /\ queue # <<>>
    THEN /\ Happening(Lines[Head(queue)])       \* It was being written: it is in flight.
         /\ queue' = IF Before(Blocks(Lines[Head(queue)]) - 1) THEN queue ELSE <<>>
         /\ UNCHANGED <<flying, durable, sequence, retired, placing, placed>>
    ELSE IF phase = "up" /\ ~ AtOnce /\ \E p \in DOMAIN tail : tail[p].sequence <= durable
    THEN Quiet /\ LogAppend    \* What was flushed is not lost, though it was not applied yet.
    ELSE IF pending # NoCheckpoint /\ pending.serial = Line.number
    THEN FollowCommit       \* It was being written, and is whole.
    ELSE IF phase # "down"
    THEN /\ Crash
         /\ placing' = {} /\ placed' = {} /\ queue' = <<>> /\ flying' = Empty(0) /\ durable' = 0
         /\ UNCHANGED <<sequence, retired>>
    ELSE /\ Line.number = Newest.serial
         /\ Load
         /\ InUsage(Line.usage) = Counted'
         /\ sequence' = Line.sequence
         /\ retired' = (Line.deleted > 0)
         /\ ~ retired' => orphans' = {}
         /\ UNCHANGED <<flying, queue, durable, placing, placed>>

FollowRecover ==
    /\ queue = <<>>
    /\ Line.checkpoint = Newest.serial
    /\ Recover
    /\ durable' = sequence - 1
    /\ UNCHANGED <<flying, queue, sequence, retired, placing, placed>>
----------------------------------------------------------------------------
(* Requests: one is called and answered at once, or it is in flight.       *)

FollowRequest ==
    /\ request' = IF queue = <<>> THEN next ELSE request
    /\ flying' = IF Overlapping THEN flying ELSE [n \in {next} |-> Called]
    /\ Line.op = "read" /\ "result" \in DOMAIN Line /\ Line.result.ok => Line.result.tags = Found(Line)
    /\ UNCHANGED <<vars, queue, durable, sequence, retired, placing, placed>>

FollowCall ==
    /\ flying' = flying @@ (next :> Called)
    /\ UNCHANGED <<vars, request, queue, durable, sequence, retired, placing, placed>>

Happened(n) == \A i \in DOMAIN queue : Lines[queue[i]].sequence > n     \* Are the records up to n applied?

Durable(n) == Happened(n) /\ (AtOnce => n <= durable)

Right(q, r) ==      \* May the request q be answered as it was?  r is what is known of it.
    CASE q.op = "read" /\ q.result.ok     -> q.result.tags \in r.found
      [] q.op = "read"                    -> q.result.error = "no-such-snapshot" => <<>> \in r.found
      [] q.op = "flush"                   -> q.result.ok => Durable(r.since)
      [] q.result.ok                      -> /\ r.record # 0
                                             /\ Happened(r.record)
                                             /\ "fua" \in DOMAIN q /\ q.fua => Durable(r.record)
      [] OTHER                            -> q.result.error # "unknown-outcome" => r.record = 0

FollowAnswer ==
    LET n == Line.answer
    IN  /\ n \in DOMAIN flying
        /\ Right(Lines[n].call, Read[n])
        /\ flying' = Without(flying, {n})
        /\ UNCHANGED <<vars, request, queue, durable, sequence, retired, placing, placed>>
----------------------------------------------------------------------------
StepsOf(e) ==       \* How many steps a line takes.  A load takes as many as there was to undo.
    CASE e.event = "submit"  -> IF AtOnce \/ e.op = "open" THEN 1 ELSE Blocks(e)
      [] e.event = "apply"   -> Blocks(Lines[Head(queue)]) + Length(e.segments)
      [] e.event = "log_append" -> IF AtOnce THEN part + Cardinality(DOMAIN tail) ELSE 1
      [] e.event = "destage" -> 2
      [] e.event = "reclaim" -> IF e.mbas = <<>> THEN 1 ELSE Length(e.mbas)
      [] e.event = "load"    -> IF phase = "down" THEN part + 1 ELSE part + 2
      [] OTHER               -> 1

Follow(last) ==
    CASE Line.event = "submit"            -> FollowSubmit(last)
      [] Line.event = "log_append"        -> FollowLogAppend
      [] Line.event = "apply"             -> FollowApply(last)
      [] Line.event = "place"             -> FollowPlace
      [] Line.event = "destage"           -> FollowDestage
      [] Line.event = "clean"             -> FollowClean
      [] Line.event = "reclaim"           -> FollowReclaim(last)
      [] Line.event = "free"              -> Quiet /\ Free(InTrace(Line.segment))
      [] Line.event = "freeze"            -> FollowFreeze
      [] Line.event = "checkpoint_nodes"  -> FollowNodes
      [] Line.event = "checkpoint_commit" -> FollowCommit
      [] Line.event = "truncate"          -> FollowTruncate
      [] Line.event = "load"              -> FollowLoad
      [] Line.event = "replay"            -> FollowReplay
      [] Line.event = "recover"           -> FollowRecover

TraceInit ==
    /\ trace \in DOMAIN Traces
    /\ next = 1 /\ part = 0 /\ request = 1 /\ flying = Empty(0) /\ queue = <<>>
    /\ durable = 0 /\ sequence = 1 /\ retired = FALSE /\ placing = {} /\ placed = {}
    /\ Init

TraceNext ==
    /\ next <= Length(Lines)
    /\ trace' = trace
    /\ IF "event" \notin DOMAIN Line
       THEN /\ next' = next + 1 /\ part' = 0
            /\ CASE "call" \in DOMAIN Line   -> FollowCall
                 [] "answer" \in DOMAIN Line -> FollowAnswer
                 [] OTHER                    -> FollowRequest
       ELSE LET last == part + 1 = StepsOf(Line)
            IN  /\ Line.event = "apply" => queue # <<>>
                /\ Follow(last)
                /\ request' = Whose
                /\ next' = IF last THEN next + 1 ELSE next
                /\ part' = CASE last -> 0
                             [] Line.event = "load" /\ queue' = <<>> -> 0
                             [] OTHER -> part + 1

View == <<trace, next, part, queue, phase, end, pending.serial, DOMAIN log>>    \* There is one way of going on.

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, following>>

Progress == Reached(trace, next)    \* A constraint that always holds: TLC asks it of every state.
=============================================================================
