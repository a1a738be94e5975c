--------------------- MODULE RedoLogChain_unmap_exposes ---------------------
\* an unmap takes the block out of the top delta, and what is below shows through
EXTENDS MCRedoLogChain

BrokenUnmap(lba) ==
    /\ data' = [data EXCEPT ![Top(chain[Live])][lba] = Absent]
    /\ job' = Redone(lba)
    /\ chain' = chain
=============================================================================
