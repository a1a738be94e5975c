------------------------ MODULE Redundancy_impatient ------------------------
\* an absent component is rebuilt elsewhere before the repair timer has run out
EXTENDS MCRedundancy

BrokenDue(c) == state[c] \in {"absent", "degraded"}
=============================================================================
