--------------------- MODULE Redundancy_partly_is_whole ---------------------
\* a component that has something is taken for one that has everything
EXTENDS MCRedundancy

BrokenCaughtUp(lacks) ==
    [c \in Component |-> IF c \in In({"stale", "resyncing"}) /\ lacks[c] # Stripe THEN "active" ELSE state[c]]
=============================================================================
