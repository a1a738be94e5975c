---------------- MODULE LogStructuredDisk_move_before_data ----------------
\* a checkpoint holds the new places of chunks that are still being written
EXTENDS MCLogStructuredDisk

BrokenImage ==
    LET into(s) == [m \in Range(stripe) |-> <<s, CHOOSE i \in DOMAIN stripe : stripe[i] = m>>]
        moved == into(CHOOSE s \in Segment : state[s] = "open" \/ DOMAIN stripe = {})
    IN  [serial |-> NextSerial, from |-> end, generation |-> generation, maps |-> maps,
         middle |-> Over(moved, middle), orphans |-> orphans \intersect DOMAIN middle]
===========================================================================
