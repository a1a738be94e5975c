------------------ MODULE RedoLogChain_parent_still_named -------------------
\* a layer is merged into one that a snapshot still reads through: the older snapshot changes
EXTENDS MCRedoLogChain

BrokenLone(lower, upper) ==
    \E v \in DOMAIN chain : \E i \in 1 .. Len(chain[v]) - 1 :
        chain[v][i] = lower /\ chain[v][i + 1] = upper
=============================================================================
