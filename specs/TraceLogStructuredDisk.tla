----------------------- MODULE TraceLogStructuredDisk -----------------------
(***************************************************************************)
(* Is what happened inside the engine, by its events, a behaviour of       *)
(* LogStructuredDisk?  Every step is an action of that module, narrowed to *)
(* what the event says; one event is as many steps as it takes.  Many      *)
(* traces are followed in one run, each from an initial state of its own.  *)
(*                                                                         *)
(*   LogStructuredDisk    events                                           *)
(*   ------------------   -----------------------------------------------  *)
(*   Write ... Revert     submit: a record is written to the log           *)
(*   LogAppend            log_append: it is flushed; as many steps as      *)
(*                        there are records in flight                      *)
(*   Apply (in these)     apply: which MBAs it made, and which it dropped  *)
(*   Open, Destage        destage                                          *)
(*   Clean, Reclaim       clean, reclaim                                   *)
(*   Freeze               freeze: all chunks are housed                    *)
(*   CheckpointNodes      checkpoint_nodes: all nodes are written, and the *)
(*                        segments are flushed                             *)
(*   CheckpointCommit     checkpoint_commit                                *)
(*   Truncate             truncate                                         *)
(*   Free                 free                                             *)
(*   Crash, Load          load, whatever came before it                    *)
(*   Replay, Recover      replay and apply, recover                        *)
(*   BeginRead, EndRead   no event: a read is one request, and is answered *)
(*                        with what the maps lead to                       *)
(*   BeginFlush, EndFlush no event: a flush is log_append and its answer   *)
(*                                                                         *)
(* Where the engine's steps differ from the spec's:                        *)
(* - A record has many blocks, of one write or of several (`extents`).  It *)
(*   is as many records of the spec, and a power cut leaves all or none of *)
(*   them, which is one way the spec may go: under "ack" they are appended *)
(*   one by one.                                                           *)
(* - Whether a record that was being written when the power failed is left *)
(*   is not known before the log is replayed.  So both are followed.       *)
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
(*                                                                         *)
(* Left out: how large a record is (LogSize); what generation it is of,    *)
(* which comes out as what is replayed.                                    *)
(*                                                                         *)
(* How to break it: change a number in an event; it is followed to there.  *)
(***************************************************************************)
EXTENDS LogStructuredDisk, TraceFile, TLC

VARIABLES
    trace,      \* Which of the traces this is.
    next,       \* The line that is to be matched next: a request, or an event inside it.
    part,       \* How many steps of it are done.
    request,    \* The line of the request that `asked` is of, or the next will be.
    asked,      \* The line of the record that is being written or replayed, not yet applied; or 0.
    durable,    \* Has it been flushed?
    sequence,   \* The next record's sequence number.
    retired,    \* Is there a view that is deleted and not reclaimed?
    placed      \* The segments that large writes filled since the newest checkpoint.

following == <<trace, next, part, request, asked, durable, sequence, retired, placed>>

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

Block ==        \* Which block of a record the next step deals with, the first being 0.
    IF phase = "up" /\ ~ AtOnce THEN part \div 2 ELSE part

Unknown ==      \* An MBA that nothing uses, for what was never said.
    1 + Cardinality(DOMAIN bank) + CHOOSE m \in DOMAIN middle \union {0} : \A n \in DOMAIN middle : n <= m

EngineFresh == IF Is("apply") /\ Block + 1 \in DOMAIN Line.mbas THEN Line.mbas[Block + 1] ELSE Unknown

EngineRecord(op, lba, value, name) ==
    [op |-> op, lba |-> lba, value |-> value, name |-> name,
     generation |-> generation, whole |-> TRUE, sequence |-> Lines[asked].sequence]

EngineDropped(r, lost) ==
    CASE r.op \notin {"write", "unmap"} -> {}
      [] Is("apply")                    -> lost \intersect Range(Line.dropped)
      [] OTHER                          -> lost

EngineHasRoom ==
    Cardinality(DOMAIN bank \ DOMAIN middle) < Room(Cardinality(FreeSegments) - 1)

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
(* Operations.                                                             *)

Blocks(r) == IF "count" \in DOMAIN r THEN r.count ELSE 1    \* How many records of the spec it is.

RECURSIVE InExtents(_, _, _)
InExtents(extents, i, b) ==     \* Block b of all from extent i on, each an LBA and a number of blocks.
    IF b < extents[i][2] THEN extents[i][1] + b ELSE InExtents(extents, i + 1, b - extents[i][2])

BlockOf(r, b) ==        \* Where block b of a record is.
    IF "extents" \in DOMAIN r THEN InExtents(r.extents, 1, b) ELSE r.lba + b

AsRequested(r) ==
    LET q == Lines[request]
    IN  /\ q.op = r.op
        /\ r.op = "unmap" => q.lba = r.lba
        /\ r.op = "write" =>
            /\ Length(q.tags) = r.count
            /\ {BlockOf(r, b) : b \in 0 .. r.count - 1} = q.lba .. q.lba + r.count - 1
        /\ r.op = "unmap" => q.count = r.count
        /\ r.op \in {"snapshot", "delete", "revert"} => q.name = r.name

Submitted(r) ==     \* Its next block.
    CASE r.op = "write"    -> LET l == BlockOf(r, Block) q == Lines[request]
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
      [] part % 2 = 0     -> Submitted(r)
      [] OTHER            -> LogAppend

Steps(r) == IF phase = "up" /\ ~ AtOnce THEN 2 * Blocks(r) ELSE Blocks(r)

Placed(s, chunks_) ==       \* The chunks were in segment s, in this order, before their record was in the log.
    LET places == [m \in Range(chunks_) |-> <<s, CHOOSE i \in DOMAIN chunks_ : chunks_[i] = m>>]
    IN  /\ state[s] = "free"
        /\ Range(chunks_) \subseteq DOMAIN bank
        /\ data' = [p \in PBA |-> IF p[1] = s THEN bank[chunks_[p[2]]] ELSE data[p]]
        /\ House(Over(places, middle), {s})
        /\ bank' = Without(bank, Range(chunks_))
        /\ UNCHANGED <<log, checkpoints, generation, inFlight, phase, end, maps, orphans, stripe, pending, requests>>

Numbered ==     \* No record is left out or comes twice.
    Line.sequence = sequence /\ sequence' = sequence + 1

OnRecord ==     \* The record will be applied, unless it only opens the log.
    asked' = IF Line.op = "open" THEN 0 ELSE next

FollowSubmit ==
    /\ phase = "up"
    /\ asked = 0
    /\ Line.op = "open" \/ AsRequested(Line)
    /\ Numbered
    /\ OnRecord
    /\ durable' = FALSE
    /\ UNCHANGED <<vars, retired, placed>>

FollowLogAppend ==
    /\ Line.sequence = sequence - 1
    /\ durable' = TRUE
    /\ IF AtOnce THEN asked = 0 /\ LogAppend ELSE asked # 0 /\ UNCHANGED vars
    /\ UNCHANGED <<asked, sequence, retired, placed>>

FollowReplay ==
    /\ phase = "replay"
    /\ asked = 0
    /\ Numbered
    /\ OnRecord
    /\ UNCHANGED <<vars, durable, retired, placed>>

FollowApply(last) ==
    LET r == Lines[asked]
        n == Steps(r)
        segment == InTrace(Line.segments[part - n + 1])
        first == (part - n) * Room(1)
    IN  /\ asked # 0
        /\ phase = "up" /\ ~ AtOnce => durable
        /\ part = 0 =>
            /\ Length(Line.mbas) = IF r.op = "write" THEN r.count ELSE 0
            /\ Range(Line.mbas) \intersect (DOMAIN bank \union DOMAIN middle) = {}
        /\ IF Before(n) THEN Happening(r) /\ placed' = placed
           ELSE /\ Placed(segment, [i \in 1 .. Room(1) |-> Line.mbas[first + i]])
                /\ placed' = placed \union {segment}
        /\ asked' = IF last THEN 0 ELSE asked
        /\ retired' = (retired \/ r.op \in {"delete", "revert"})
        /\ last => Range(Line.dropped) \intersect (DOMAIN bank' \union DOMAIN middle') = {}
        /\ ~ retired' => orphans' = {}
        /\ UNCHANGED <<durable, sequence>>

FollowPlace ==
    /\ \A i \in DOMAIN Line.segments : state[InTrace(Line.segments[i])] = "free" /\ InTrace(Line.segments[i]) \notin Pinned
    /\ UNCHANGED <<vars, asked, durable, sequence, retired, placed>>
----------------------------------------------------------------------------
(* What happens by itself.                                                 *)

InUsage(counts) == {<<InTrace(counts[i][1]), counts[i][2]>> : i \in DOMAIN counts}

Counted == {<<s, usage[s]>> : s \in {x \in Segment : usage[x] > 0}}

Quiet == UNCHANGED <<asked, durable, sequence, retired, placed>>

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
    /\ UNCHANGED <<asked, durable, sequence, placed>>

FollowFreeze ==
    /\ Quiet
    /\ Line.number = NextSerial
    /\ InUsage(Line.usage) = Counted
    /\ Freeze

FollowNodes == Quiet /\ Line.number = pending.serial /\ WriteNodes

FollowCommit ==
    /\ pending.serial = Line.number
    /\ CheckpointCommit
    /\ placed' = {}
    /\ UNCHANGED <<asked, durable, sequence, retired>>

FollowTruncate == Quiet /\ IF \E p \in DOMAIN log : p <= Forgettable THEN Truncate ELSE UNCHANGED vars
----------------------------------------------------------------------------
(* Crash and recovery.                                                     *)

Undecided == phase = "up" /\ asked # 0      \* A record was being written, or was written, when the power failed.

FollowLoad ==
    IF Undecided
    THEN \/ /\ part = 0 /\ ~ AtOnce /\ ~ durable
            /\ asked' = 0
            /\ UNCHANGED <<vars, durable, sequence, retired, placed>>
         \/ /\ Happening(Lines[asked])
            /\ asked' = IF Before(Steps(Lines[asked]) - 1) THEN asked ELSE 0
            /\ UNCHANGED <<durable, sequence, retired, placed>>
    ELSE IF pending # NoCheckpoint /\ pending.serial = Line.number
    THEN FollowCommit       \* It was being written, and is whole.
    ELSE IF phase # "down"
    THEN Crash /\ placed' = {} /\ asked' = 0 /\ UNCHANGED <<durable, sequence, retired>>
    ELSE /\ Line.number = Newest.serial
         /\ Load
         /\ InUsage(Line.usage) = Counted'
         /\ sequence' = Line.sequence
         /\ retired' = (Line.deleted > 0)
         /\ ~ retired' => orphans' = {}
         /\ UNCHANGED <<asked, durable, placed>>

FollowRecover == Quiet /\ asked = 0 /\ Line.checkpoint = Newest.serial /\ Recover
----------------------------------------------------------------------------
(* Requests: what is read is what the maps lead to.                        *)

Meant(m) ==
    CASE m = Hole             -> Zero
      [] m \in DOMAIN bank    -> bank[m]
      [] m \in DOMAIN middle  -> data[middle[m]]
      [] OTHER                -> Nothing

FollowRequest ==
    LET view == IF "view" \in DOMAIN Line THEN {Line.view} ELSE {}
        map == IF view = {} THEN maps.live ELSE maps.snaps[Line.view]
    IN  /\ Quiet
        /\ UNCHANGED vars
        /\ request' = IF asked = 0 THEN next ELSE request
        /\ Line.op = "read" /\ "result" \in DOMAIN Line /\ Line.result.ok =>
            /\ view \subseteq DOMAIN maps.snaps
            /\ Line.result.tags = [i \in 1 .. Line.count |-> Meant(map[Line.lba + i - 1])]
----------------------------------------------------------------------------
StepsOf(e) ==       \* How many steps a line takes.  A load takes as many as there was to undo.
    CASE e.event = "apply"   -> Steps(Lines[asked]) + Length(e.segments)
      [] e.event = "log_append" -> IF AtOnce THEN part + Cardinality(DOMAIN tail) ELSE 1
      [] e.event = "destage" -> 2
      [] e.event = "reclaim" -> IF e.mbas = <<>> THEN 1 ELSE Length(e.mbas)
      [] e.event = "load"    -> IF phase = "down" THEN part + 1 ELSE part + 2
      [] OTHER               -> 1

Follow(last) ==
    CASE Line.event = "submit"            -> FollowSubmit
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
    /\ next = 1 /\ part = 0 /\ request = 1 /\ asked = 0
    /\ durable = FALSE /\ sequence = 1 /\ retired = FALSE /\ placed = {}
    /\ Init

TraceNext ==
    /\ next <= Length(Lines)
    /\ trace' = trace
    /\ IF "op" \in DOMAIN Line /\ "event" \notin DOMAIN Line
       THEN FollowRequest /\ next' = next + 1 /\ part' = 0
       ELSE LET last == part + 1 = StepsOf(Line)
            IN  /\ Line.event = "apply" => asked # 0
                /\ Follow(last)
                /\ request' = request
                /\ next' = IF last THEN next + 1 ELSE next
                /\ part' = CASE last -> 0
                             [] Line.event = "load" /\ asked' = 0 -> 0
                             [] OTHER -> part + 1

View == <<trace, next, part, asked, phase, end, pending.serial, DOMAIN log>>   \* Two ways of going on differ in the log.

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, following>>

Progress == Reached(trace, next)    \* A constraint that always holds: TLC asks it of every state.
=============================================================================
