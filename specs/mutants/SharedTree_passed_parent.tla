---------------------- MODULE SharedTree_passed_parent ----------------------
\* a write leaves what it replaces to its parent's deletion, which has passed the block: a leak
EXTENDS MCSharedTree

BrokenParent(m, v, lba, h) == m.view[v].parent
=============================================================================
