------------------- MODULE RedoLogChain_holes_not_merged --------------------
\* a consolidation merges data and not what was unmapped, and old data comes back
EXTENDS MCRedoLogChain

BrokenMerge ==
    \E j \in job :
        /\ j.done # LBA
        /\ LET lba == CHOOSE l \in LBA \ j.done : \A k \in LBA \ j.done : l <= k
               below == data[j.lower][lba]
               above == data[j.upper][lba]
           IN  /\ data' = CASE j.way = "up" /\ above = Absent -> [data EXCEPT ![j.upper][lba] = below]
                            [] j.way = "down" /\ above \notin {Absent, Zero}
                                                              -> [data EXCEPT ![j.lower][lba] = above]
                            [] OTHER                          -> data
               /\ job' = {[j EXCEPT !.done = @ \union {lba}]}
        /\ chain' = chain
=============================================================================
