---------------------- MODULE Redundancy_corrupt_kept -----------------------
\* what a component lacks is fetched from any component, itself included: the wrong one is kept
EXTENDS MCRedundancy

BrokenGiven(s) == piece[CHOOSE c \in Reachable : \A d \in Reachable : missed[d] \subseteq missed[c]][s]
=============================================================================
