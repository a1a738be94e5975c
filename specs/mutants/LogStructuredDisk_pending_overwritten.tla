-------------- MODULE LogStructuredDisk_pending_overwritten ---------------
\* a dead segment is free although a checkpoint that is being written needs it
EXTENDS MCLogStructuredDisk

BrokenPinned == {p[1] : p \in Range(Newest.middle)}
===========================================================================
