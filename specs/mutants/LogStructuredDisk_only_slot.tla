------------------- MODULE LogStructuredDisk_only_slot --------------------
\* a checkpoint is written over the newest one
EXTENDS MCLogStructuredDisk

BrokenOlder == Newer
===========================================================================
