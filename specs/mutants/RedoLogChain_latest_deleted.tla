-------------------- MODULE RedoLogChain_latest_deleted ---------------------
\* deleting the latest snapshot throws away its layer, which live still stands on
EXTENDS MCRedoLogChain

BrokenDelete(name) ==
    /\ name \in Snapshots
    /\ LET Stays(layer) == layer # Top(chain[name])
       IN  Rechain([v \in DOMAIN chain \ {name} |->
                IF v = Live THEN SelectSeq(chain[v], Stays) ELSE chain[v]], {})
=============================================================================
