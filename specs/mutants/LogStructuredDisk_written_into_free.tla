--------------- MODULE LogStructuredDisk_written_into_free ----------------
\* a segment that was just written is still taken for free
EXTENDS MCLogStructuredDisk

BrokenHouse(map, sealing) ==
    /\ middle' = map
    /\ usage' = [s \in Segment |-> Cardinality(Housed(map, s))]
    /\ state' = [s \in Segment |->
        CASE s \in sealing -> "free"
          [] state[s] = "sealed" /\ usage'[s] = 0 -> "dead"
          [] OTHER -> state[s]]
===========================================================================
