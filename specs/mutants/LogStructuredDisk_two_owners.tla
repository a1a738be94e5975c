------------------- MODULE LogStructuredDisk_two_owners -------------------
\* a view that goes takes along what it shares with another
EXTENDS MCLogStructuredDisk

BrokenLost(new) ==
    (Referred(maps) \ Referred(new))
        \union UNION {Range(maps.snaps[n]) \ {Hole} : n \in DOMAIN maps.snaps \ DOMAIN new.snaps}
===========================================================================
