------------------- MODULE LogStructuredDisk_no_reserve -------------------
\* writes may take the last free segment, which the cleaner needs
EXTENDS MCLogStructuredDisk

BrokenHasRoom == Cardinality(Waiting) < Stripe * Cardinality(FreeSegments)
===========================================================================
