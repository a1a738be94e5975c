---------------- MODULE LogStructuredDisk_counters_of_live ----------------
\* recovery counts what the live view has in a segment
EXTENDS MCLogStructuredDisk

BrokenRecount(s) == Cardinality(Housed(Newest.middle, s) \intersect Range(Newest.maps.live))
===========================================================================
