----------------- MODULE RedoLogChain_dropped_before_merged -----------------
\* the layer goes once a consolidation has begun, before all of it was merged
EXTENDS MCRedoLogChain

BrokenDrop ==
    \E j \in job :
        LET gone == IF j.way = "up" THEN j.lower ELSE j.upper
            Stays(layer) == layer # gone
        IN  Rechain([v \in DOMAIN chain |-> SelectSeq(chain[v], Stays)], {})
=============================================================================
