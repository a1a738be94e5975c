------------- MODULE LogStructuredDisk_checkpoint_overwritten -------------
\* a dead segment is free at once, whatever the newest checkpoint needs
EXTENDS MCLogStructuredDisk

BrokenPinned == {p[1] : p \in Range(pending.middle)}
===========================================================================
