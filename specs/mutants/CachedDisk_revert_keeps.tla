---------------------- MODULE CachedDisk_revert_keeps -----------------------
\* a revert leaves in the cache what live was before
EXTENDS MCCachedDisk

BrokenEmptied == UNCHANGED <<cache, fill, copy>>
=============================================================================
