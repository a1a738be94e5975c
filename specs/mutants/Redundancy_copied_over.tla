----------------------- MODULE Redundancy_copied_over -----------------------
\* what was fetched is stored over a write that came in between
EXTENDS MCRedundancy

BrokenResync(c) ==
    \E x \in copy :
        /\ x.to = c
        /\ piece' = [piece EXCEPT ![c][x.stripe] = x.value]
        /\ missed' = [missed EXCEPT ![c] = @ \ {x.stripe}]
        /\ state' = CaughtUp(missed')
        /\ copy' = {}
        /\ UNCHANGED <<spare, away, on, clock>>
=============================================================================
