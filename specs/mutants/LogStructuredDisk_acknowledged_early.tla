--------------- MODULE LogStructuredDisk_acknowledged_early ---------------
\* an operation is acknowledged although a power cut may still undo it
EXTENDS MCLogStructuredDisk

BrokenAtOnce == TRUE
===========================================================================
