--------------------- MODULE RedoLogChain_second_child ----------------------
\* a layer that two others stand on is consolidated with one of them
EXTENDS MCRedoLogChain

BrokenLone(lower, upper) ==
    /\ \A v \in DOMAIN chain : Top(chain[v]) # lower
    /\ \E v \in DOMAIN chain : \E i \in 1 .. Len(chain[v]) - 1 :
        chain[v][i] = lower /\ chain[v][i + 1] = upper
=============================================================================
