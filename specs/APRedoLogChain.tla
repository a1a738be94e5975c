--------------------------- MODULE APRedoLogChain ---------------------------
(* RedoLogChain in Apalache: bounded checks, e.g. of Tops.                 *)
EXTENDS RedoLogChain

ConstInit ==
    /\ Size = 2
    /\ Value = {0, 1}
    /\ Zero = 0
    /\ Name = {"a", "b"}
    /\ Absent = 9
    /\ Layers = 4
=============================================================================
