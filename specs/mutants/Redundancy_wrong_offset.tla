---------------------- MODULE Redundancy_wrong_offset -----------------------
\* what was fetched is stored where another stripe belongs
EXTENDS MCRedundancy

BrokenResync(c) ==
    \E x \in copy :
        /\ x.to = c
        /\ piece' = [piece EXCEPT ![c][(x.stripe + 1) % Stripes] = x.value]
        /\ missed' = [missed EXCEPT ![c] = @ \ {x.stripe}]
        /\ state' = CaughtUp(missed')
        /\ copy' = {}
        /\ UNCHANGED <<spare, away, on, clock>>
=============================================================================
