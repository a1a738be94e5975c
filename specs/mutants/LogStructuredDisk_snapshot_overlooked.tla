-------------- MODULE LogStructuredDisk_snapshot_overlooked ---------------
\* what live lets go of is dropped although a snapshot needs it
EXTENDS MCLogStructuredDisk

BrokenLost(new) == (Range(maps.live) \ Range(new.live)) \ {Hole}
===========================================================================
