--------------- MODULE LogStructuredDisk_orphans_not_saved ----------------
\* a checkpoint forgets which chunks are still to be reclaimed
EXTENDS MCLogStructuredDisk

BrokenImage ==
    [serial |-> NextSerial, from |-> end, generation |-> generation,
     maps |-> maps, middle |-> middle, orphans |-> {}]
===========================================================================
