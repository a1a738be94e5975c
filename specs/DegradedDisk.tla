---------------------------- MODULE DegradedDisk ----------------------------
(***************************************************************************)
(* LogStructuredDisk on a capacity leg whose components fail and come back *)
(* at any step: segments are written, cleaned and freed while the leg is   *)
(* degraded or catches up, and the power fails too.  A segment is a stripe *)
(* of Redundancy.  The cleaner reads from the leg: `Copy <- FromLeg` in    *)
(* the config.                                                             *)
(*                                                                         *)
(* Left out: the performance leg, which fails in MirroredLog; what a power *)
(* cut leaves of a stripe that was not flushed, since nothing refers to it.*)
(*                                                                         *)
(* How to break it: let Trimmed take a segment that is dead and not yet    *)
(* free; then run MCDegradedDisk.                                          *)
(***************************************************************************)
EXTENDS LogStructuredDiskRefinement

CONSTANTS K, M, Device, Timer, Junk     \* Redundancy's.

VARIABLES piece, spare, away, on, health, missed, clock, copy  \* Redundancy's, whose `state` is `health` here.

leg == <<piece, spare, away, on, health, missed, clock, copy>>

Filling == [1 .. Stripe -> Value \union {Nothing}]     \* What a segment may hold.

Unwritten == [i \in 1 .. Stripe |-> Nothing]

Leg == INSTANCE Redundancy WITH state <- health, Stripes <- Segments, Value <- Filling, Zero <- Unwritten

InLeg(s) == s - 1       \* Which stripe a segment is.

FromLeg(m) == Leg!Given(InLeg(middle[m][1]))[middle[m][2]]  \* The chunk m, as the leg gives it.

HeldBy(c, place) == piece[c][InLeg(place[1])][place[2]]     \* What a component holds in the place of a chunk.

Served(s) == Leg!Enough(Leg!Readable(InLeg(s)))
----------------------------------------------------------------------------
Written ==              \* Destage: to all components that can be reached.
    LET s == CHOOSE x \in Segment : state[x] = "open"
    IN  Destage /\ Leg!Write(InLeg(s), [i \in 1 .. Stripe |-> data'[<<s, i>>]])

Cleaned(s) == Served(s) /\ Clean(s) /\ UNCHANGED leg

Trimmed(s) == Free(s) /\ Leg!Unmap(InLeg(s))    \* Who missed it need not be given it any more.

PowerCut == Crash /\ copy' = {} /\ UNCHANGED <<piece, spare, away, on, health, missed, clock>>

Itself ==               \* What else the disk does by itself.
    /\ \/ \E s \in Segment : Open(s)
       \/ Reclaim \/ LogAppend
       \/ Freeze \/ CheckpointNodes \/ CheckpointCommit \/ Truncate
       \/ Load \/ Replay \/ Recover
    /\ UNCHANGED leg

Asked == Operation /\ UNCHANGED leg

Fails(d, mode) == Leg!Fail(d, mode) /\ UNCHANGED vars

Returns(d) == Leg!Return(d) /\ UNCHANGED vars

Replaced(d) == Leg!Replace(d) /\ UNCHANGED vars

Ticks == Leg!Tick /\ UNCHANGED vars

Rebuilds(c) == Leg!Rebuild(c) /\ UNCHANGED vars

Fetches(c) == Leg!Fetch(c) /\ UNCHANGED vars

Resyncs(c) == Leg!Resync(c) /\ UNCHANGED vars

AllActive ==            \* The leg at first, of what the segments hold.
    /\ piece = [c \in Leg!Component |->
        [t \in Leg!StripeNumber |-> [i \in 1 .. Stripe |-> data[<<t + 1, i>>]]]]
    /\ on = [c \in Leg!Component |-> c]
    /\ spare = Device \ Leg!Component /\ away = {}
    /\ health = [c \in Leg!Component |-> "active"]
    /\ missed = [c \in Leg!Component |-> {}]
    /\ clock = [c \in Leg!Component |-> 0]
    /\ copy = {}

Unasked ==
    \/ Written \/ PowerCut \/ Itself
    \/ \E s \in Segment : Cleaned(s) \/ Trimmed(s)
    \/ \E d \in Device :
        \/ \E mode \in {"absent", "degraded"} : Fails(d, mode)
        \/ Returns(d) \/ Replaced(d)
    \/ Ticks
    \/ \E c \in Leg!Component : Rebuilds(c) \/ Fetches(c) \/ Resyncs(c)

NextOnLeg == Unasked \/ Asked
----------------------------------------------------------------------------
Needed ==               \* The places that the maps, or a checkpoint that recovery may load, refer to.
    Range(middle) \union Range(Newest.middle)

Intact ==               \* Wherever they may be read, they hold what the disk stored there.
    \A place \in Needed : \A c \in Leg!Readable(InLeg(place[1])) : HeldBy(c, place) = data[place]

Tolerated ==            \* While no more fail than the layout tolerates, they can be read.
    Cardinality(Leg!Failed) <= M => \A place \in Needed : Served(place[1])

LegHolds == Leg!NeverStale /\ Leg!InSync /\ Leg!Recoverable /\ Leg!Apart
=============================================================================
