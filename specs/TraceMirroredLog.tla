-------------------------- MODULE TraceMirroredLog --------------------------
(***************************************************************************)
(* Is what the engine did to its log, its checkpoint slots and its members *)
(* a behaviour of MirroredLog?  Every step is an action of that module,    *)
(* narrowed to what the line says; one line is as many steps as it takes.  *)
(* The lines are made of the engine's events, and of what the kit did to   *)
(* devices (conformance/judging/oracles/journal.py).                       *)
(*                                                                         *)
(*   MirroredLog          lines                                            *)
(*   ------------------   -----------------------------------------------  *)
(*   Begin, Submit        submit: a record is about to be written          *)
(*   (none)               append: where it is, and on which mirrors        *)
(*   LogAppend            begin, log_append; else the next record that     *)
(*                        says `flushed`, checkpoint_nodes, a clean close  *)
(*   CheckpointNodes      freeze gives the position, checkpoint_nodes the  *)
(*                        time                                             *)
(*   CheckpointCommit     checkpoint_commit                                *)
(*   Crash                crash; a clean close has flushed before          *)
(*   Open                 open: the members as the engine found them       *)
(*   (none enabled)       shut: the engine refused to open                 *)
(*   Load, Loaded         load, loaded                                     *)
(*   Replay               found: a record, and which mirrors have it whole *)
(*   Recover              recover                                          *)
(*   Pull, Insert, Fail,  pull, insert, left, return, replace, active      *)
(*   Return, Replace,                                                      *)
(*   Activate                                                              *)
(*   Tell, Counted        behind each of these, until the record counts    *)
(*                                                                         *)
(* When the power fails, no event says which unflushed writes the media    *)
(* kept.  A line `crash` has it from what recovery found later.            *)
(*                                                                         *)
(* Where the engine's steps differ from the spec's:                        *)
(* - A record is as long as it has to be: what fits is counted in bytes.   *)
(*   A record's place is its sequence number, and the ring is as long as   *)
(*   the trace.                                                            *)
(* - A checkpoint is of the position at which its maps were frozen.  What  *)
(*   was logged since is still needed.                                     *)
(* - The engine needs as many active members as the capacity leg.  With    *)
(*   fewer it puts no failure on record, and writes nothing.               *)
(* - It puts the record on the voters again where something changes that   *)
(*   MirroredLog leaves out: spares, members with no part in the log.      *)
(* - It may begin a term though all voters agree: a change that MirroredLog*)
(*   leaves out was cut short.                                             *)
(*                                                                         *)
(* Left out: which mirror has which slot, but for the number that is       *)
(* loaded; what comes after a command about devices that was cut short.    *)
(*                                                                         *)
(* How to break it: leave out a device of an append event.                 *)
(***************************************************************************)
EXTENDS MirroredLogProperties, TraceFile, TLC

VARIABLES
    trace,      \* Which of the traces this is.
    next,       \* The line that is to be matched next.
    frozen,     \* The sequence number with which the log goes on behind the frozen checkpoint.
    starts      \* Sequence number -> byte of the log at which its record begins; of the next one, too.

following == <<trace, next, frozen, starts>>

Header == Traces[trace].header

Lines == Traces[trace].events

Line == Lines[next]

Range(s) == {s[i] : i \in DOMAIN s}

Length(s) == Cardinality(DOMAIN s)
----------------------------------------------------------------------------
(* The engine's sizes and choices, in place of the spec's: constants, so   *)
(* that all traces of a run have the same mirrors and voters.              *)

Shape == Traces[1].header

TraceMember == 1 .. Shape.mirrors

TraceDevice == UNION {Range(Traces[t].header.devices) : t \in DOMAIN Traces}

TraceOthers == Range(Shape.others)

TracePlace == [d \in TraceDevice |-> d % Shape.place]     \* A replacement has the number of its device, and more.

TraceSize == 2 + Greatest({Traces[t].header.last : t \in DOMAIN Traces})

TraceSlot(sequence) == sequence

TraceHasRoom == TRUE        \* InRoom is asked where the length is known.

TracePromised(records) == Line.term - 1

TraceFates(records) ==
    LET kept == {<<d, found[1]>> : d \in TraceDevice, found \in Range(Line.found)}
        whole(d, s) == \E found \in Range(Line.found) : found[1] = s /\ d \in Range(found[2])
    IN  {[r \in records |-> IF r \in kept /\ whole(r[1], r[2]) THEN "kept" ELSE "lost"]}

TraceSlotFates(checkpoints) ==
    {[c \in checkpoints |-> IF slotCache[c[1]][c[2]].number = Line.slot THEN "kept" ELSE "lost"]}
----------------------------------------------------------------------------
(* The log.                                                                *)

Here(d) == At(d, Line.sequence)

Quiet == UNCHANGED <<frozen, starts>>

Unflushed == log.flushed < log.sequence - 1

Late ==         \* The line says that a flush came before it.
    CASE Line.event = "submit"           -> Line.flushed > log.flushed
      [] Line.event = "checkpoint_nodes" -> Unflushed
      [] Line.event = "crash"            -> phase = "up" /\ Line.close /\ Unflushed
      [] OTHER                           -> FALSE

InRoom == Line.position + Line.bytes - starts[newest.sequence] <= Header.log

Placed ==       \* It begins where the record before it ends.
    /\ Line.sequence \in DOMAIN starts /\ Line.position = starts[Line.sequence]
    /\ InRoom
    /\ starts' = Over([s \in {Line.sequence + 1} |-> Line.position + Line.bytes], starts)
    /\ frozen' = frozen

FollowSubmit ==
    /\ Quiet
    /\ Line.sequence = log.sequence /\ Line.flushed = log.flushed
    /\ IF Line.op = "open" THEN Begin /\ Line.generation = log'.generation
       ELSE Submit /\ Line.generation = log.generation

FollowAppend ==
    /\ Line.sequence < log.sequence
    /\ Placed
    /\ Range(Line.devices) = On(Reachable)
    /\ \A d \in On(Reachable) : Here(d).sequence = Line.sequence /\ Here(d).generation = Line.generation
    /\ UNCHANGED vars

FollowBegin == Quiet /\ log.begun = "written" /\ Line.generation = log.generation /\ LogAppend

FollowLogAppend == Quiet /\ Line.sequence = log.sequence - 1 /\ LogAppend

FollowFreeze ==
    /\ Line.sequence \in newest.sequence .. log.sequence
    /\ frozen' = Line.sequence
    /\ UNCHANGED <<vars, starts>>

Since(d) == {s \in frozen .. log.sequence - 1 : At(d, s).sequence = s}      \* What a device has of it.

Operations == {s \in frozen .. log.sequence - 1 : \E d \in On(Active) : At(d, s).kind = "op"}

FollowNodes ==      \* CheckpointNodes, of the position that was frozen.
    /\ Quiet
    /\ Ready("up")
    /\ pending = NoCheckpoint
    /\ Line.number = newest.number + 1
    /\ pending' = [number |-> newest.number + 1, sequence |-> frozen, generation |-> log.generation,
                   contents |-> SubSeq(contents, 1, Len(contents) - Cardinality(Operations))]
    /\ PutSlot(On(Reachable), pending')
    /\ took' = {c \in Reachable : Cardinality(Since(record.on[c])) = log.sequence - frozen}
    /\ UNCHANGED <<ring, slots, ringCache, book, world, phase, members, log, newest, contents, history>>

FollowCommit == Quiet /\ Line.number = pending.number /\ CheckpointCommit
----------------------------------------------------------------------------
(* Opening.                                                                *)

FollowCrash == Quiet /\ IF phase = "down" THEN UNCHANGED vars ELSE Crash

Newer(r) == \A s \in Found : Later(r, s)

There(r) == {c \in Member : r.on[c] \in here}

VotersThere(r) == {r.on[c] : c \in There(r)} \union (Others \intersect here)

Unanimous(r) == \A v \in {r.on[c] : c \in Member} \union Others : v \in here /\ book[v] = r

Renewed ==          \* Open, where all voters agree, and a term is begun nevertheless.
    \E r \in Found :
        /\ Newer(r) /\ Unanimous(r)
        /\ There(r) \intersect r.current # {}
        /\ record' = [r EXCEPT !.promise = Line.term]
        /\ untold' = VotersThere(r)
        /\ phase' = "promising"
        /\ state' = [c \in Member |-> IF c \in r.current THEN "active" ELSE "stale"]
        /\ votes' = 0
        /\ UNCHANGED <<media, book, world, log, newest, pending, took, contents, history>>

AsFound(c) ==
    /\ record'.on[c] = Line.on[c]
    /\ state'[c] = IF Line.states[c] \in {"active", "stale"} THEN Line.states[c] ELSE "absent"

FollowOpen ==
    /\ Quiet
    /\ phase = "down"
    /\ Open \/ Renewed
    /\ IF phase' = "load" THEN Line.term = record'.term
       ELSE \A v \in here \intersect Voter : Line.term > book[v].term /\ Line.term > book[v].promise
    /\ \A c \in Member : AsFound(c)

FollowShut ==       \* No majority of the voters is there, or none that is current.
    /\ Quiet
    /\ phase = "down"
    /\ \A r \in Found : Newer(r) => ~ Majority(Cardinality(VotersThere(r))) \/ There(r) \intersect r.current = {}
    /\ UNCHANGED vars

FollowLoad == Quiet /\ Load /\ Line.number = newest'.number /\ Line.sequence = newest'.sequence

FollowLoaded == Quiet /\ Loaded

FollowFound ==
    /\ Line.sequence = log.sequence
    /\ Placed
    /\ Range(Line.devices) = {d \in On(Active) : IsNext(Here(d)) /\ Here(d).generation = Line.generation}
    /\ Line.devices # <<>>
    /\ Replay
    /\ Line.generation = log'.generation

FollowRecover == Quiet /\ Recover
----------------------------------------------------------------------------
(* Members.                                                                *)

Forgone(c) ==       \* Too few are left to put it on record.
    /\ c \in Reachable /\ record.on[c] \notin here
    /\ state' = [state EXCEPT ![c] = "absent"]
    /\ took' = took \ {c}
    /\ UNCHANGED <<media, book, world, phase, record, untold, votes, log, newest, pending, contents, history>>

Resaved ==          \* What changed is left out of MirroredLog.
    /\ phase = "up"
    /\ Save(record.on, state)
    /\ UNCHANGED <<media, book, world, phase, log, newest, pending, took, contents, history>>

FollowReturn == Return(Line.member) /\ state'[Line.member] = Line.state

Follow ==
    CASE Late                              -> Quiet /\ LogAppend
      [] Line.event = "submit"             -> FollowSubmit
      [] Line.event = "append"             -> FollowAppend
      [] Line.event = "begin"              -> FollowBegin
      [] Line.event = "log_append"         -> FollowLogAppend
      [] Line.event = "freeze"             -> FollowFreeze
      [] Line.event = "checkpoint_nodes"   -> FollowNodes
      [] Line.event = "checkpoint_commit"  -> FollowCommit
      [] Line.event = "crash"              -> FollowCrash
      [] Line.event = "open"               -> FollowOpen
      [] Line.event = "shut"               -> FollowShut
      [] Line.event = "load"               -> FollowLoad
      [] Line.event = "loaded"             -> FollowLoaded
      [] Line.event = "found"              -> FollowFound
      [] Line.event = "recover"            -> FollowRecover
      [] Line.event = "pull"               -> Quiet /\ Line.voter \in Voter /\ IF Line.voter \in here THEN Pull(Line.voter) ELSE UNCHANGED vars
      [] Line.event = "insert"             -> Quiet /\ IF Line.voter \in here THEN UNCHANGED vars ELSE Insert(Line.voter)
      [] Line.event = "left"               -> Quiet /\ IF Line.saved THEN Fail(Line.member) ELSE Forgone(Line.member)
      [] Line.event = "return"             -> Quiet /\ FollowReturn
      [] Line.event = "replace"            -> Quiet /\ Replace(Line.member, Line.device)
      [] Line.event = "active"             -> Quiet /\ Activate(Line.member)
      [] Line.event = "save"               -> Quiet /\ Resaved
----------------------------------------------------------------------------
TraceInit ==
    /\ trace \in DOMAIN Traces
    /\ next = 1 /\ frozen = 1 /\ starts = [s \in {1} |-> 0]
    /\ ring = [d \in Device |-> BlankRing]
    /\ slots = [d \in Device |-> [i \in 0 .. 1 |-> IF i = 1 /\ d \in Member THEN First ELSE NoCheckpoint]]
    /\ ringCache = [d \in Device |-> Empty] /\ slotCache = [d \in Device |-> Empty]
    /\ LET r == [Founding EXCEPT !.term = Header.term, !.promise = Header.term]
       IN  book = [v \in Voter |-> IF v \in Member \union Others THEN r ELSE [r EXCEPT !.number = -1]]
    /\ here = Member \union Others
    /\ phase = "down" /\ record = Founding /\ state = [c \in Member |-> "absent"]
    /\ untold = {} /\ votes = 0
    /\ log = [sequence |-> 0, generation |-> 0, flushed |-> 0, begun |-> "no"]
    /\ newest = First /\ pending = NoCheckpoint /\ took = {} /\ contents = <<>>
    /\ held = <<>> /\ durable = 0 /\ saved = 0 /\ issued = 0
    /\ trouble = [crashes |-> 0, pulls |-> 0, spares |-> 0, damages |-> 0]

TraceNext ==
    /\ next <= Length(Lines)
    /\ trace' = trace
    /\ IF Saving
       THEN (Tell \/ Counted) /\ Quiet /\ next' = IF untold' = {} /\ votes' = 0 THEN next + 1 ELSE next
       ELSE Follow /\ next' = IF Late \/ untold' # {} THEN next ELSE next + 1

View == <<trace, next, phase, untold, votes, log>>      \* There is one way to go on: the rest follows.

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, following>>

Progress == Reached(trace, next)    \* A constraint that always holds: TLC asks it of every state.
=============================================================================
