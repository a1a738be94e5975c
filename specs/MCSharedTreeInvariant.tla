----------------------- MODULE MCSharedTreeInvariant -----------------------
(* The invariant of APSharedTree, in the states of MCSharedTree.           *)
EXTENDS MCSharedTree, APSharedTree
=============================================================================
