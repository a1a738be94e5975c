----------------------- MODULE SharedTree_no_siblings -----------------------
\* only children are asked; after a revert, and a deletion, siblings share what no parent holds
EXTENDS MCSharedTree

BrokenNear(m, v, lba, h) ==
    {w \in DOMAIN m.view \ {v} : ~Passed(m, w, lba, h) /\ Parent(m, w, lba, h) = v}
=============================================================================
