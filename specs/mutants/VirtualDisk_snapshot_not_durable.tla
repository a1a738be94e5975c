------------------- MODULE VirtualDisk_snapshot_not_durable -------------------
\* under block a snapshot is answered before it is durable
EXTENDS MCVirtualDisk

BrokenRecorded(d) == survivors \union {Exactly(d)}
=============================================================================
