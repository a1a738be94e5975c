--------------------------- MODULE APVirtualDisk ----------------------------
(***************************************************************************)
(* VirtualDisk in Apalache: bounded checks of Current, of each profile.    *)
(* Apalache does not list the functions of a set, so what the contract     *)
(* says of any size is said here of two blocks.                            *)
(***************************************************************************)
EXTENDS VirtualDisk

Small ==
    /\ Size = 2
    /\ Value = {0, 1}
    /\ Zero = 0
    /\ Name = {"a"}

Ack == Small /\ Profile = "ack"

Prefix == Small /\ Profile = "prefix"

Block == Small /\ Profile = "block"

Pair(i, v, w) == [l \in {i, i + 1} |-> IF l = i THEN v ELSE w]

\* @type: $image => Set($disk);
TwoBlocks(image) ==     \* Resolutions
    {[live |-> Pair(0, v, w), snaps |-> image.snaps] : v \in image.live[0], w \in image.live[1]}

SmallNext ==
    \E r \in Answers :
        \/ \E lba \in 0 .. Size, v, w \in Value : Write(lba, [i \in {1} |-> v], r) \/ Write(lba, Pair(1, v, w), r)
        \/ \E lba \in 0 .. Size, count \in 1 .. Size : Unmap(lba, count, r)
        \/ \E name \in Name : Snapshot(name, r) \/ Delete(name, r) \/ Revert(name, r)
        \/ Flush(r) \/ Restart(r)
        \/ r = "cut" /\ Crash(r)
        \/ /\ r = "ok"        \* Crash
           /\ \E image \in survivors : disk' \in TwoBlocks(image)
           /\ survivors' = {Exactly(disk')}
           /\ power' = TRUE

SmallCurrent == power => \E image \in survivors : disk \in TwoBlocks(image)
=============================================================================
