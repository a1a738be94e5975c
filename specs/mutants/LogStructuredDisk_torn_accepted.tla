----------------- MODULE LogStructuredDisk_torn_accepted ------------------
\* recovery replays a torn record
EXTENDS MCLogStructuredDisk

BrokenGood(r, p) == r.generation >= GenerationAt(p - 1)
===========================================================================
