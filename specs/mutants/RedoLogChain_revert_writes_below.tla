------------------ MODULE RedoLogChain_revert_writes_below ------------------
\* after a revert live goes on in the snapshot's own layer
EXTENDS MCRedoLogChain

BrokenRevert(name) ==
    /\ name \in Snapshots
    /\ Rechain([chain EXCEPT ![Live] = chain[name]], {})
=============================================================================
