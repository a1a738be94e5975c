--------------- MODULE LogStructuredDisk_append_after_torn ----------------
\* what is appended after recovery goes behind the torn tail, where no recovery comes
EXTENDS MCLogStructuredDisk

BrokenNextPlace == CHOOSE p \in end .. end + LogSize + 1 :
    /\ p > end + Cardinality(DOMAIN tail)
    /\ p \notin DOMAIN log \union DOMAIN tail
    /\ \A q \in DOMAIN log \union DOMAIN tail : q < p
===========================================================================
