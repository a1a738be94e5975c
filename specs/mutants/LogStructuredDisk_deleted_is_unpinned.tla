-------------- MODULE LogStructuredDisk_deleted_is_unpinned ---------------
\* a checkpoint pins only what its views need that are not deleted since
EXTENDS MCLogStructuredDisk

BrokenPinned ==
    LET still(c) == Range(c.maps.live)
            \union UNION {Range(c.maps.snaps[n]) : n \in DOMAIN c.maps.snaps \intersect DOMAIN maps.snaps}
    IN  UNION {{c.middle[m][1] : m \in still(c) \intersect DOMAIN c.middle} : c \in {Newest, pending}}
===========================================================================
