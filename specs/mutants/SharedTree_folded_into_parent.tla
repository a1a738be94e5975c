------------------- MODULE SharedTree_folded_into_parent --------------------
\* what a deleted snapshot held is folded into its parent, an older snapshot, which changes
EXTENDS MCSharedTree

BrokenForget(v) ==
    [w \in DOMAIN maps.view \ {v} |->
        IF w = maps.view[v].parent THEN [maps.view[w] EXCEPT !.root = maps.view[v].root]
        ELSE [maps.view[w] EXCEPT !.parent = IF @ = v THEN maps.view[v].parent ELSE @]]
=============================================================================
