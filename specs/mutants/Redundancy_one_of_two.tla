----------------------- MODULE Redundancy_one_of_two ------------------------
\* a write is acknowledged once some component has it, and nothing is said of the others
EXTENDS MCRedundancy

BrokenWrite(s, value) ==
    \E c \in Reachable :
        /\ Writable
        /\ piece' = [piece EXCEPT ![c][s] = value]
        /\ missed' = [d \in Component |-> IF d \in Reachable THEN missed[d] \ {s} ELSE missed[d] \union {s}]
        /\ state' = CaughtUp(missed')
        /\ UNCHANGED <<spare, away, on, clock, copy>>
=============================================================================
