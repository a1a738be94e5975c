------------------ MODULE VirtualDisk_revert_drops_snapshots ------------------
\* a revert deletes the snapshots
EXTENDS MCVirtualDisk

BrokenReverted(d, name) == [live |-> d.snaps[name], snaps |-> <<>>]
=============================================================================
