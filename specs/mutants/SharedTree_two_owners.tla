----------------------- MODULE SharedTree_two_owners ------------------------
\* what was freed is given out before the checkpoint: after a crash it has two owners
EXTENDS MCSharedTree

BrokenFresh == First(maps.free \union limbo)
=============================================================================
