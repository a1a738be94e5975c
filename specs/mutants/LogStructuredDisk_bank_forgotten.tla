----------------- MODULE LogStructuredDisk_bank_forgotten -----------------
\* a checkpoint is taken while a view still depends on the bank
EXTENDS MCLogStructuredDisk

BrokenAllHoused == TRUE
===========================================================================
