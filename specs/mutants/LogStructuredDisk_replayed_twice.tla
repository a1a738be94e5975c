----------------- MODULE LogStructuredDisk_replayed_twice -----------------
\* a checkpoint lets recovery replay records that it holds already
EXTENDS MCLogStructuredDisk

BrokenImage ==
    [serial |-> NextSerial, from |-> Newest.from, generation |-> Newest.generation,
     maps |-> maps, middle |-> middle, orphans |-> orphans \intersect DOMAIN middle]
===========================================================================
