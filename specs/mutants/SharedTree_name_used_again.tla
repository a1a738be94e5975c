--------------------- MODULE SharedTree_name_used_again ---------------------
\* a name that is used again finds the deleted snapshot, which still waits to be reclaimed
EXTENDS MCSharedTree

BrokenSnapshot(name) ==
    /\ name \notin DOMAIN maps.names
    /\ LET id == IF maps.queue = <<>> THEN maps.live ELSE Head(maps.queue)
       IN  maps' = [maps EXCEPT !.live = @ + 1,
                                !.view = Begin(Root(maps, maps.live), maps.live),
                                !.names = [n \in DOMAIN @ \union {name} |-> IF n = name THEN id ELSE @[n]]]
    /\ UNCHANGED <<node, saved, limbo>>
    /\ Survives(Disk(maps)')
=============================================================================
