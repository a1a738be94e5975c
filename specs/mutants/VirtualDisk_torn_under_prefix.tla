-------------------- MODULE VirtualDisk_torn_under_prefix --------------------
\* under prefix a power cut leaves some blocks of a write and not others
EXTENDS MCVirtualDisk

BrokenBuffered(d) ==
    {[i EXCEPT !.live = [l \in DOMAIN @ |-> @[l] \union {d.live[l]}]] : i \in survivors}
=============================================================================
