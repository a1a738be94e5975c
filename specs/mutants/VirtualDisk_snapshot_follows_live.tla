------------------ MODULE VirtualDisk_snapshot_follows_live ------------------
\* a write reaches the snapshots as well
EXTENDS MCVirtualDisk

BrokenWritten(d, lba, data) ==
    LET over(f) == [l \in DOMAIN f |-> IF l >= lba /\ l < lba + Len(data) THEN data[l - lba + 1] ELSE f[l]]
    IN  [live |-> over(d.live), snaps |-> [n \in DOMAIN d.snaps |-> over(d.snaps[n])]]
=============================================================================
