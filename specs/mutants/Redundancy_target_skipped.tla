--------------------- MODULE Redundancy_target_skipped ----------------------
\* a write goes past a component that is being rebuilt, below its frontier too
EXTENDS MCRedundancy

BrokenWrite(s, value) ==
    /\ Writable
    /\ piece' = [c \in Component |->
                    IF c \in In({"active"}) THEN [piece[c] EXCEPT ![s] = value] ELSE piece[c]]
    /\ missed' = [c \in Component |-> IF c \in Reachable THEN missed[c] \ {s} ELSE missed[c] \union {s}]
    /\ state' = CaughtUp(missed')
    /\ UNCHANGED <<spare, away, on, clock, copy>>
=============================================================================
