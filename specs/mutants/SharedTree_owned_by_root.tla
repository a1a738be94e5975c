---------------------- MODULE SharedTree_owned_by_root ----------------------
\* once live has copied a root, what hangs under it is taken for live's own
EXTENDS MCSharedTree

BrokenOwned(a) ==
    LET root == Root(maps, maps.live)
    IN  a # Nil /\ root # Nil /\ node[root].born = maps.live
=============================================================================
