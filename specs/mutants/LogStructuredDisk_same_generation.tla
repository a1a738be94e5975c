---------------- MODULE LogStructuredDisk_same_generation -----------------
\* recovery does not begin a new generation
EXTENDS MCLogStructuredDisk

BrokenNextGeneration == generation
===========================================================================
