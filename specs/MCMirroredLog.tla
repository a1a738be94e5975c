--------------------------- MODULE MCMirroredLog ---------------------------
(***************************************************************************)
(* What TLC needs to exhaust MirroredLog: how often things go wrong.       *)
(***************************************************************************)
EXTENDS MirroredLogProperties

CONSTANTS
    Operations, \* How many operations there may be,
    Checkpoints,    \* checkpoints,
    Crashes,    \* power cuts,
    Pulls,      \* devices that go,
    Spares,     \* devices that are replaced,
    Damages,    \* records that decay,
    Whole,      \* and whether another current mirror then has the record whole.
    Steady      \* Voters that never go.

(* Bounds histories, not the design: nothing in it counts any of these. *)
Few ==
    /\ issued' <= Operations
    /\ newest'.number <= Checkpoints + 1
    /\ trouble'.crashes <= Crashes
    /\ trouble'.pulls <= Pulls
    /\ trouble'.spares <= Spares
    /\ trouble'.damages <= Damages
    /\ Steady \subseteq here'

(* TLC checks the invariants also in the states that Few leaves out.  So most of these are not made at all. *)
FewTroubles ==
    \/ Crash
    \/ \E d \in Device, p \in IF Damages > 0 THEN 0 .. Size - 1 ELSE {} : Damage(d, p)
    \/ \E v \in Voter \ Steady : Pull(v)
    \/ \E v \in Voter : Insert(v)
    \/ \E c \in Member, d \in IF Spares > 0 THEN Device ELSE {} : Replace(c, d)

FewFates(written) == IF trouble.crashes < Crashes THEN [written -> Fate] ELSE {}

(* While the log is being opened nobody looks whether a device has come back: it might as well come later. *)
Unhurried == here' \ here # {} => phase \in {"down", "up"} /\ ~ Saving

(* A record decays where another current mirror has it: that is one failure at a time. *)
Tolerable ==
    Whole /\ trouble'.damages > trouble.damages => \A d \in Device, p \in 0 .. Size - 1 :
        Damage(d, p) => \E c \in Active : record.on[c] \in here \ {d} /\ ring[record.on[c]][p] = ring[d][p]

(* The third device goes where the first one was. *)
SamePlace == [d \in Device |-> IF d = 3 THEN 1 ELSE d]
OwnPlace == [d \in Device |-> d]
=============================================================================
