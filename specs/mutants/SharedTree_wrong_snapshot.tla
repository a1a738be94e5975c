--------------------- MODULE SharedTree_wrong_snapshot ----------------------
\* live takes for its own what was born after its parent, though another snapshot shares it
EXTENDS MCSharedTree

BrokenOwned(a) == a # Nil /\ node[a].born > maps.view[maps.live].parent
=============================================================================
