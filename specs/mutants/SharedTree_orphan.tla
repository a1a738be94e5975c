------------------------- MODULE SharedTree_orphan --------------------------
\* a snapshot that has children loses its name and is never reclaimed
EXTENDS MCSharedTree

BrokenDelete(name) ==
    /\ name \in DOMAIN maps.names
    /\ maps' = [maps EXCEPT !.names = [n \in DOMAIN @ \ {name} |-> @[n]],
                            !.queue = IF \E v \in DOMAIN maps.view : maps.view[v].parent = maps.names[name]
                                      THEN @ ELSE Append(@, maps.names[name])]
    /\ UNCHANGED <<node, saved, limbo>>
    /\ Survives(Disk(maps)')
=============================================================================
