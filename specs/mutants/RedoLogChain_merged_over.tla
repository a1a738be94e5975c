---------------------- MODULE RedoLogChain_merged_over ----------------------
\* consolidation up copies the lower block over one that was written to the upper layer
EXTENDS MCRedoLogChain

BrokenMerge ==
    \E j \in job :
        /\ j.done # LBA
        /\ LET lba == CHOOSE l \in LBA \ j.done : \A k \in LBA \ j.done : l <= k
               below == data[j.lower][lba]
               above == data[j.upper][lba]
           IN  /\ data' = CASE j.way = "up" /\ below # Absent   -> [data EXCEPT ![j.upper][lba] = below]
                            [] j.way = "down" /\ above # Absent -> [data EXCEPT ![j.lower][lba] = above]
                            [] OTHER                            -> data
               /\ job' = {[j EXCEPT !.done = @ \union {lba}]}
        /\ chain' = chain
=============================================================================
