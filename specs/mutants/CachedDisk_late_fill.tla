------------------------ MODULE CachedDisk_late_fill ------------------------
\* a miss that was on its way fills the cache after a write, with what was before
EXTENDS MCCachedDisk

BrokenChanged(lba, value) ==
    /\ cache' = Kept(cache, lba, value)
    /\ copy' = IF DOMAIN copy = {} THEN copy ELSE Kept(copy, lba, value)
    /\ fill' = fill
=============================================================================
