---------------------- MODULE RedoLogChain_burst_lost -----------------------
\* a write to a block that the consolidation has dealt with is not dealt with again, and is lost
EXTENDS MCRedoLogChain

BrokenRedone(lba) == job
=============================================================================
