----------------------- MODULE CachedDisk_unmap_keeps -----------------------
\* an unmap goes to the disk and not to the cache
EXTENDS MCCachedDisk

BrokenUnmap(lba) ==
    /\ disk' = [disk EXCEPT !.live[lba] = Zero]
    /\ UNCHANGED <<cache, fill, copy>>
=============================================================================
