------------------- MODULE LogStructuredDisk_stale_copy -------------------
\* the cleaner moves what is cached for the block, which is as the checkpoint has it
EXTENDS MCLogStructuredDisk

BrokenCopy(m) ==
    LET cached == {Newest.maps.live[l] : l \in {k \in LBA : maps.live[k] = m}} \intersect DOMAIN Newest.middle
    IN  data[IF cached = {} THEN middle[m] ELSE Newest.middle[Least(cached)]]
===========================================================================
