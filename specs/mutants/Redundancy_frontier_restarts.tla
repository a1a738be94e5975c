-------------------- MODULE Redundancy_frontier_restarts --------------------
\* a write to a resyncing component's leg sets its frontier back to the beginning
EXTENDS MCRedundancyHeals

BrokenPut(s, value, reached) ==
    /\ piece' = [c \in Component |-> IF c \in reached THEN [piece[c] EXCEPT ![s] = value] ELSE piece[c]]
    /\ missed' = [c \in Component |-> CASE state[c] = "resyncing" -> Stripe
                                       [] c \in reached          -> missed[c] \ {s}
                                       [] OTHER                  -> missed[c] \union {s}]
    /\ state' = CaughtUp(missed')
    /\ UNCHANGED <<spare, away, on, clock, copy>>
=============================================================================
