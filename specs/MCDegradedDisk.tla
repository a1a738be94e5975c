--------------------------- MODULE MCDegradedDisk ---------------------------
(***************************************************************************)
(* A model of DegradedDisk, too large to exhaust: a disk whose blocks are  *)
(* all written and in a checkpoint, left alone while it cleans.  Serial    *)
(* numbers go round, as in MCLogStructuredDisk, and power cuts are few.    *)
(* MCDegradedDisk-near takes one block, and no more steps than it takes to *)
(* clean a segment and free it while a component fails and catches up.     *)
(* MCDegradedDisk-real is for simulation: a disk that is written, with     *)
(* snapshots, under prefix.                                                *)
(***************************************************************************)
EXTENDS MCLogStructuredDisk, DegradedDisk

Given(l) == IF l % 2 = 0 THEN Zero ELSE CHOOSE v \in Value : v # Zero   \* What block l was written with.

HalfWritten ==          \* HalfFull, of blocks that differ.
    LET places == [m \in 1 .. Size |-> <<1 + (m - 1) \div (Stripe - 1), 1 + ((m - 1) % (Stripe - 1))>>]
        views == [Blank EXCEPT !.live = [l \in LBA |-> l + 1]]
    IN  /\ generation = 1
        /\ log = Empty(Record("unmap", 0, Zero, "")) /\ tail = log
        /\ data = [p \in PBA |-> IF p \in Range(places) THEN Given((CHOOSE m \in DOMAIN places : places[m] = p) - 1)
                                 ELSE Nothing]
        /\ checkpoints = [i \in 1 .. 2 |->
            IF i = 1 THEN [NoCheckpoint EXCEPT !.serial = 1, !.maps = views, !.middle = places]
            ELSE NoCheckpoint]
        /\ unflushed = {} /\ phase = "up" /\ end = 0
        /\ maps = views /\ middle = places /\ bank = Empty(Zero) /\ orphans = {}
        /\ usage = [s \in Segment |-> Cardinality(Housed(places, s))]
        /\ state = [s \in Segment |-> IF usage[s] > 0 THEN "sealed" ELSE "free"]
        /\ stripe = Empty(Hole) /\ pending = NoCheckpoint /\ reads = {} /\ flushes = {}

Begins == HalfWritten /\ AllActive

AloneSpec == Begins /\ [][Unasked /\ generation' <= Crashes + 1]_<<vars, leg>>

AskedSpec == Begins /\ [][NextOnLeg]_<<vars, leg>>     \* With operations, and any number of power cuts.

(* What comes together with a failure is told once each: see Tells.        *)
ASSUME TLCSet(2, {})

TellsFailures ==
    LET new == {f \in Features : Leg!Failed # {}} \ TLCGet(2)
    IN  new # {} => TLCSet(2, TLCGet(2) \union new) /\ \A f \in new : PrintT(<<"reached", {"failures", f}>>)

(* A bound, since there are too many states: all that is at most so near.  *)
Near == TLCGet("level") < 12

Reading(l) ==           \* What block l reads as.
    LET m == maps.live[l] IN IF m \in DOMAIN bank THEN bank[m] ELSE FromLeg(m)

Stays ==                \* Every block reads as it was written, once the disk is up and within tolerance.
    phase = "up" /\ Cardinality(Leg!Failed) <= M => \A l \in LBA : Reading(l) = Given(l)

=============================================================================
