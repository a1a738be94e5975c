---------------- MODULE LogStructuredDisk_older_generation ----------------
\* a checkpoint does not say which generation it is of
EXTENDS MCLogStructuredDisk

BrokenImage ==
    [serial |-> NextSerial, from |-> end, generation |-> 0,
     maps |-> maps, middle |-> middle, orphans |-> orphans \intersect DOMAIN middle]
===========================================================================
