---------------------- MODULE SharedTree_stale_parent -----------------------
\* the children of a view that is gone are still tested against it: what it shared leaks
EXTENDS MCSharedTree

BrokenForget(v) == [w \in DOMAIN maps.view \ {v} |-> maps.view[w]]
=============================================================================
