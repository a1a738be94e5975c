-------------------- MODULE CachedDisk_write_misses_copy --------------------
\* a write while the machine moves does not reach the copy of its cache
EXTENDS MCCachedDisk

BrokenChanged(lba, value) ==
    /\ cache' = Kept(cache, lba, value)
    /\ copy' = copy
    /\ fill' = {f \in fill : f.lba # lba}
=============================================================================
