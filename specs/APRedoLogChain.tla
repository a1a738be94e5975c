--------------------------- MODULE APRedoLogChain ---------------------------
(* RedoLogChain in Apalache: bounded checks, e.g. of Tops.                 *)
EXTENDS RedoLogChain

ConstInit ==
    /\ Size = 1
    /\ Value = {0, 1}
    /\ Zero = 0
    /\ Name = {"a"}
    /\ Absent = 9
    /\ Layers = 3
=============================================================================
