----------------------- MODULE SharedTree_wrong_root ------------------------
\* a snapshot records the root that the checkpoint has, not the one that live has by now
EXTENDS MCSharedTree

BrokenBegin(root, parent) ==
    [v \in DOMAIN maps.view \union {maps.live + 1} |->
        CASE v = maps.live + 1 -> [root |-> root, parent |-> parent]
          [] v = maps.live     -> [maps.view[v] EXCEPT !.root = Root(saved, saved.live)]
          [] OTHER             -> maps.view[v]]
=============================================================================
