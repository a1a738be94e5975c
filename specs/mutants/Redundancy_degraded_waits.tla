--------------------- MODULE Redundancy_degraded_waits ----------------------
\* the repair timer holds back the rebuild of a degraded component too
EXTENDS MCRedundancy

BrokenDue(c) == state[c] \in {"absent", "degraded"} /\ clock[c] = Timer
=============================================================================
