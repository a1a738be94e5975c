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

(* While the log is being opened nobody looks whether a device has come back: it might as well come later. *)
Unhurried == here' \ here # {} => phase \in {"down", "up"} /\ ~ Saving

(* A record decays where another current mirror has it: that is one failure at a time. *)
Tolerable ==
    \A d \in Device, p \in 0 .. Size - 1 :
        Whole /\ Damage(d, p) => \E c \in Active : record.on[c] \in here \ {d} /\ ring[record.on[c]][p] = ring[d][p]

(* The third device goes where the first one was. *)
SamePlace == [d \in Device |-> IF d = 3 THEN 1 ELSE d]
OwnPlace == [d \in Device |-> d]
=============================================================================
