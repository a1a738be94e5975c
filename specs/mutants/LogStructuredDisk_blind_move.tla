------------------- MODULE LogStructuredDisk_blind_move -------------------
\* the middle map takes the new place of a chunk that was dropped meanwhile
EXTENDS MCLogStructuredDisk

BrokenLanded(i) == TRUE
===========================================================================
