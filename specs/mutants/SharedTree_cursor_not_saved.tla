-------------------- MODULE SharedTree_cursor_not_saved ---------------------
\* a checkpoint saves what a deletion freed and not how far it came: resumed, it frees that twice
EXTENDS MCSharedTree

BrokenCheckpoint ==
    /\ maps' = [maps EXCEPT !.live = @ + 1,
                            !.view = [v \in (DOMAIN @ \ {maps.live}) \union {maps.live + 1} |->
                                        IF v = maps.live + 1 THEN @[maps.live] ELSE @[v]],
                            !.free = @ \union limbo]
    /\ saved' = [maps' EXCEPT !.cursor = 0]
    /\ limbo' = {}
    /\ node' = node
    /\ survivors' = {Contract!Exactly(Disk(maps))}
=============================================================================
