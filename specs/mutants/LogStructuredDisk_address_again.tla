----------------- MODULE LogStructuredDisk_address_again ------------------
\* an MBA is given out again while its data waits in the bank
EXTENDS MCLogStructuredDisk

BrokenFresh ==
    LET used == DOMAIN middle
    IN  Least((1 .. Cardinality(used) + 1) \ used)
===========================================================================
