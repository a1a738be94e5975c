---------------------------- MODULE APCachedDisk ----------------------------
(* CachedDisk in Apalache: bounded checks of Coherent.                     *)
EXTENDS CachedDisk

ConstInit ==
    /\ Size = 2
    /\ Value = {0, 1}
    /\ Zero = 0
    /\ Name = {"a"}
    /\ MaxSlots = 2
=============================================================================
