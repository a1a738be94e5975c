----------------------- MODULE Redundancy_log_cleared -----------------------
\* when one component has caught up, what the absent ones missed is forgotten as well
EXTENDS MCRedundancy

BrokenResync(c) ==
    \E x \in copy :
        /\ x.to = c
        /\ piece' = IF x.stripe \in missed[c]
                    THEN [piece EXCEPT ![c][x.stripe] = x.value] ELSE piece
        /\ missed' = [d \in Component |-> missed[d] \ {x.stripe}]
        /\ state' = CaughtUp(missed')
        /\ copy' = {}
        /\ UNCHANGED <<spare, away, on, clock>>
=============================================================================
