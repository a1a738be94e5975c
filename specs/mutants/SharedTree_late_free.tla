------------------------ MODULE SharedTree_late_free ------------------------
\* a checkpoint gives out what was freed but stays to free it again at the next
EXTENDS MCSharedTree

BrokenCheckpoint ==
    /\ saved' = [maps EXCEPT !.live = @ + 1,
                             !.view = [v \in (DOMAIN @ \ {maps.live}) \union {maps.live + 1} |->
                                        IF v = maps.live + 1 THEN @[maps.live] ELSE @[v]],
                             !.free = @ \union limbo]
    /\ maps' = saved'
    /\ UNCHANGED <<node, limbo>>
    /\ survivors' = {Contract!Exactly(Disk(maps))}
=============================================================================
