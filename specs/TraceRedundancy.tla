-------------------------- MODULE TraceRedundancy --------------------------
(***************************************************************************)
(* Do the engine's events about devices form a behaviour of Redundancy?    *)
(* Every step is an action of that module, narrowed to what the event      *)
(* says; one event is as many steps as it takes.  Each leg of a trace is   *)
(* followed by itself, many of them in one run, whatever their layout: K,  *)
(* M and Timer are in the header of each.                                  *)
(*                                                                         *)
(*   Redundancy       events                                               *)
(*   --------------   ---------------------------------------------------  *)
(*   Write            write; submit, of a record of the log                *)
(*   Read             read                                                 *)
(*   Unmap            checkpoint_commit, of what it does not refer to      *)
(*   Fail, Return     fail, return; members, when the disk is opened       *)
(*   Replace          replace; a spare that is new, or is back             *)
(*   Rebuild          rebuild                                              *)
(*   Fetch, Resync    resync                                               *)
(*   Tick             the request of that name                             *)
(*   (none)           missed, active: what must hold by then; resync of    *)
(*                    the other leg; cut, a command that the power ended   *)
(*                                                                         *)
(* A stripe is its address: a segment of the capacity leg; a page of the   *)
(* performance leg that holds a node or a checkpoint slot; and each record *)
(* of the log, by its sequence number below 0.  What it holds is the line  *)
(* that wrote it.                                                          *)
(*                                                                         *)
(* Where the engine's steps differ from the spec's:                        *)
(* - While all are active, writes and reads are not told: they change      *)
(*   nothing that the spec could tell from what was before.                *)
(* - The engine takes more stripes for missed than were (all that were     *)
(*   born since the last checkpoint that the component saw), and copies    *)
(*   them.  So a component may be active here while it is still resynced   *)
(*   there, never the other way round: that is what missed and active are  *)
(*   held to.                                                              *)
(* - Of what a component missed, the engine copies only what lives.  The   *)
(*   rest is unmapped by the checkpoint that comes before it is active.    *)
(* - Stripes are copied in the order of their births, not of addresses.    *)
(* - A part of a stripe that one component has can be read there, however  *)
(*   many others are gone.                                                 *)
(* - A member resyncs as one, so a component does when the member's other  *)
(*   leg has begun to copy.                                                *)
(* - Opening the disk makes members that were catching up leave and        *)
(*   return, and carries out what was put on record before the power       *)
(*   failed.                                                               *)
(* - A failure beyond what the layout tolerates is not put on record.  Who *)
(*   opens the disk then finds a device missing, and calls it absent.      *)
(* - A device that is replaced while it is absent is degraded first.       *)
(* - A spare may go: it fails, or a member takes it that has no part in    *)
(*   this leg.  That alone is no action of Redundancy.                     *)
(*                                                                         *)
(* Left out: what a power cut does to writes that were not flushed, since  *)
(* nothing refers to them; reads of the log and of slots; what happens     *)
(* across a restart while more are gone than the layout tolerates.         *)
(*                                                                         *)
(* How to break it: leave out a resync event; it is followed to the event  *)
(* active behind it.                                                       *)
(***************************************************************************)
EXTENDS Redundancy, TraceFile, TLC

VARIABLES
    trace,      \* Which of the traces this is: a leg of one.
    next,       \* The line that is to be matched next.
    part,       \* How many steps of it are done.
    needed,     \* The stripes that the newest checkpoint refers to, once it counts.
    ailing,     \* The devices of all members that are not active, whatever leg they serve.
    untold,     \* The devices whose failure is not on record: too few were left to write it.
    broken      \* The device that a command was about when the power ended it: {} or {device}.

following == <<trace, next, part, needed, ailing, untold, broken>>

Header == Traces[trace].header

Lines == Traces[trace].events

Line == Lines[next]

Range(s) == {s[i] : i \in DOMAIN s}

Length(s) == Cardinality(DOMAIN s)
----------------------------------------------------------------------------
(* The engine's sizes and choices, in place of the spec's.                 *)

Nothing == -1

TraceComponent == 1 .. Header.components

TraceEnough(components) == Cardinality(components) >= Header.k

TraceStripe == Range(Header.stripes)    \* All that the trace speaks of.

TraceWaited(c) == clock[c] >= Header.timer

TraceElapsed == Line.seconds

EngineFrontier(c) == Line.stripe
----------------------------------------------------------------------------
(* Devices.                                                                *)

At(device) == {c \in Component : on[c] = device}    \* One component, or none.

Elsewhere(device) ==    \* Another member's, which has no part in this leg.
    Header.leg = "performance" /\ device \notin spare \union away /\ At(device) = {}

Gone(device) ==         \* A spare fails, or is used elsewhere.
    /\ device \in spare
    /\ spare' = spare \ {device}
    /\ UNCHANGED <<piece, away, leg>>

Spare(device) == IF device \in away THEN Return(device) ELSE Replace(device)

FollowFail ==
    CASE Elsewhere(Line.device)  -> UNCHANGED vars
      [] Line.device \in spare   -> Gone(Line.device)
      [] OTHER                   -> Fail(Line.device, Line.mode)

FollowReturn ==
    CASE Line.state = "spare"    -> Spare(Line.device)
      [] Elsewhere(Line.device)  -> UNCHANGED vars
      [] OTHER                   -> /\ Return(Line.device)
                                    /\ Line.state = "active" => \A c \in At(Line.device) : state'[c] = "active"

FollowReplace ==
    CASE Line.state = "spare"                        -> Spare(Line.device)
      [] Elsewhere(Line.device)                      -> UNCHANGED vars
      [] At(Line.device) \intersect In({"absent"}) # {} -> Fail(Line.device, "degraded")
      [] OTHER                                       -> Replace(Line.device)

FollowRebuild ==
    IF Elsewhere(Line.device) THEN Gone(Line.onto)
    ELSE \E c \in At(Line.device) : Rebuild(c) /\ on'[c] = Line.onto

FollowTick == Tick \/ (~ ENABLED Tick /\ UNCHANGED vars)
----------------------------------------------------------------------------
(* The disk is opened: step by step until all is as it was found.          *)

Found(c) == Line.members[c][2]

AsFound(c) ==
    /\ on[c] = Line.members[c][1]
    /\ state[c] = Found(c) \/ (state[c] = "active" /\ Found(c) = "stale")

Forgotten(c) ==     \* Its failure was not on record: it is only missing.
    /\ state' = [state EXCEPT ![c] = "absent"]
    /\ clock' = [clock EXCEPT ![c] = 0]
    /\ UNCHANGED <<devices, on, missed, copy>>

Reopened(c) ==
    CASE on[c] # Line.members[c][1]                            -> Rebuild(c) /\ on'[c] = Line.members[c][1]
      [] Found(c) = "active" /\ c \in In({"stale", "resyncing"}) -> FALSE
      [] Found(c) # "degraded" /\ c \in In({"absent"})         -> Return(on[c])
      [] Found(c) # "degraded" /\ c \in In({"degraded"}) /\ on[c] \in untold -> Forgotten(c)
      [] Found(c) = "stale" /\ c \in In({"degraded"})          -> Replace(on[c])  \* By a command that was cut.
      [] OTHER                                                 -> Fail(on[c], IF Found(c) = "degraded"
                                                                              THEN "degraded" ELSE "absent")

SparesFound ==
    LET found == IF "spares" \in DOMAIN Line THEN Range(Line.spares) ELSE spare   \* Older traces do not say.
        taken == {m[1] : m \in Range(Line.members)}     \* By a member, of either leg.
    IN  /\ (spare \ (found \union taken)) \union (found \ spare) \subseteq broken \union untold
        /\ spare' = found
        /\ away' = away \ found
        /\ UNCHANGED <<piece, leg>>

FollowMembers ==
    LET others == {c \in Component : ~ AsFound(c)}
    IN  IF others = {} THEN SparesFound
        ELSE part < 4 * Cardinality(Component) /\ Reopened(CHOOSE c \in others : \A d \in others : c <= d)
----------------------------------------------------------------------------
(* Stripes.                                                                *)

Used == Range(Line.devices)

Holders(s) == {on[c] : c \in Readable(s)}

FollowRead ==
    /\ \A s \in Range(Line.stripes) :
        /\ Used # {} /\ Used \subseteq Holders(s)
        /\ Cardinality(Used) > 1 => Read(s, Given(s))
    /\ UNCHANGED vars

FollowWrite ==
    /\ Used = {on[c] : c \in Reachable}
    /\ Write(Line.stripes[part + 1], next)

FollowSubmit == Write(- Line.sequence, next)

FollowMissed ==
    /\ \A c \in At(Line.device) : missed[c] \intersect Range(Line.living) \subseteq Range(Line.stripes)
    /\ UNCHANGED vars

FollowBegun ==      \* The other leg of the member was copied to.
    /\ state' = [c \in Component |-> IF c \in In({"stale"}) /\ on[c] = Line.device THEN "resyncing" ELSE state[c]]
    /\ UNCHANGED <<devices, on, missed, clock, copy>>

FollowResync ==
    \E c \in At(Line.device) :
        IF part = 1 THEN Resync(c)
        ELSE /\ Used \subseteq Holders(Line.stripe)
             /\ Enough({d \in Component : on[d] \in Used})
             /\ IF state[c] = "active" THEN UNCHANGED vars ELSE Fetch(c)

Copied == Line.leg = Header.leg     \* Is it this leg that was copied to?

FollowActive ==
    /\ \A c \in At(Line.device) : state[c] = "active"
    /\ UNCHANGED vars
----------------------------------------------------------------------------
(* Checkpoints.                                                            *)

Referred ==
    IF Header.leg = "capacity" THEN {pair[1] : pair \in Range(Line.usage)}
    ELSE Range(Line.pages) \union {Line.number % 2}

Unneeded == UNION {missed[c] : c \in Reachable} \ needed

FollowCommit == IF Unneeded = {} THEN UNCHANGED vars ELSE Unmap(CHOOSE s \in Unneeded : TRUE)
----------------------------------------------------------------------------
Last ==         \* Is the next step of the line its last?
    CASE Line.event = "members"           -> \A c \in Component : AsFound(c)
      [] Line.event = "replace"           -> Line.state = "spare" \/ At(Line.device) \intersect In({"absent"}) = {}
      [] Line.event = "write"             -> part + 1 = Length(Line.stripes)
      [] Line.event = "resync"            -> ~ Copied \/ part = 1 \/ At(Line.device) \subseteq In({"active"})
      [] Line.event = "checkpoint_commit" -> Unneeded = {}
      [] OTHER                            -> TRUE

Follow ==
    CASE Line.event = "members"           -> FollowMembers
      [] Line.event = "fail"              -> FollowFail
      [] Line.event = "return"            -> FollowReturn
      [] Line.event = "replace"           -> FollowReplace
      [] Line.event = "rebuild"           -> FollowRebuild
      [] Line.event = "tick"              -> FollowTick
      [] Line.event = "cut"               -> UNCHANGED vars
      [] Line.event = "missed"            -> FollowMissed
      [] Line.event = "resync"            -> IF Copied THEN FollowResync ELSE FollowBegun
      [] Line.event = "active"            -> FollowActive
      [] Line.event = "read"              -> FollowRead
      [] Line.event = "write"             -> FollowWrite
      [] Line.event = "submit"            -> FollowSubmit
      [] Line.event = "checkpoint_nodes"  -> UNCHANGED vars
      [] Line.event = "checkpoint_commit" -> FollowCommit

----------------------------------------------------------------------------
(* The members, of both legs.                                              *)

Ailing ==       \* After the line.
    CASE Line.event = "members"                          -> {m[1] : m \in {x \in Range(Line.members) : x[2] # "active"}}
      [] Line.event = "fail" /\ Line.device \notin spare -> ailing \union {Line.device}
      [] Line.event = "return" /\ Line.state = "active"  -> ailing \ {Line.device}
      [] Line.event = "active"                           -> ailing \ {Line.device}
      [] Line.event = "rebuild"                          -> (ailing \ {Line.device}) \union {Line.onto}
      [] OTHER                                           -> ailing

Untold ==       \* A change is on record once enough members are left.
    CASE Cardinality(Ailing) <= Header.components - Header.k -> {}
      [] Line.event = "members"                              -> {}
      [] Line.event = "fail"                                 -> untold \union {Line.device}
      [] OTHER                                               -> untold
----------------------------------------------------------------------------
TraceInit ==
    /\ trace \in DOMAIN Traces
    /\ next = 1 /\ part = 0 /\ needed = {} /\ ailing = {} /\ untold = {} /\ broken = {}
    /\ piece = [c \in Component |-> [s \in StripeNumber |-> Zero]]
    /\ on = [c \in Component |-> c - 1]
    /\ spare = Header.members .. Header.devices - 1
    /\ away = {}
    /\ state = [c \in Component |-> "active"]
    /\ missed = [c \in Component |-> {}]
    /\ clock = [c \in Component |-> 0]
    /\ copy = {}

TraceNext ==
    /\ next <= Length(Lines)
    /\ trace' = trace
    /\ Follow
    /\ needed' = IF Line.event = "checkpoint_nodes" THEN Referred ELSE needed
    /\ ailing' = IF Last THEN Ailing ELSE ailing
    /\ untold' = IF Last THEN Untold ELSE untold
    /\ broken' = CASE Line.event = "cut"             -> {Line.device}
                   [] Line.event = "members" /\ Last -> {}
                   [] OTHER                          -> broken
    /\ next' = IF Last THEN next + 1 ELSE next
    /\ part' = IF Last THEN 0 ELSE part + 1

View == <<trace, next, part>>   \* There is one way to go on: the rest follows.

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, following>>

Progress == Reached(trace, next)    \* A constraint that always holds: TLC asks it of every state.
=============================================================================
