---------------------- MODULE CachedDisk_resize_keeps -----------------------
\* a resize keeps the slots that it can, whose tags now mean other blocks
EXTENDS MCCachedDisk

BrokenResize(slots) ==
    /\ slots # Slots(cache)
    /\ DOMAIN copy = {}
    /\ cache' = [i \in 0 .. slots - 1 |-> IF i \in DOMAIN cache THEN cache[i] ELSE {}]
    /\ UNCHANGED <<disk, fill, copy>>
=============================================================================
