--------------------- MODULE Redundancy_unmap_forgotten ---------------------
\* that a component missed an unmap is not written down
EXTENDS MCRedundancy

BrokenUnmap(s) ==
    /\ Writable
    /\ piece' = [c \in Component |-> IF c \in Reachable THEN [piece[c] EXCEPT ![s] = Zero] ELSE piece[c]]
    /\ missed' = [c \in Component |-> IF c \in Reachable THEN missed[c] \ {s} ELSE missed[c]]
    /\ state' = CaughtUp(missed')
    /\ UNCHANGED <<spare, away, on, clock, copy>>
=============================================================================
