----------------- MODULE LogStructuredDisk_replayed_over ------------------
\* recovery takes for free what only snapshots have in a segment
EXTENDS MCLogStructuredDisk

BrokenInUse(s) == Housed(Newest.middle, s) \intersect Range(Newest.maps.live) # {}
===========================================================================
