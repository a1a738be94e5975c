----------------------- MODULE SharedTree_chain_lost ------------------------
\* the children of a deleted view are cut off from their ancestors, which they still share with
EXTENDS MCSharedTree

BrokenForget(v) ==
    [w \in DOMAIN maps.view \ {v} |->
        [maps.view[w] EXCEPT !.parent = IF @ = v THEN Nil ELSE @]]
=============================================================================
