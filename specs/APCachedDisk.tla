---------------------------- MODULE APCachedDisk ----------------------------
(***************************************************************************)
(* Why CachedDisk is right, however long it runs: what is cached is what   *)
(* the disk has, and every step keeps it so.  It holds at first            *)
(* (--init=Init --inv=IndInv --length=0), every step keeps it              *)
(* (--init=Start --inv=IndInv --length=1), and it implies what reads need  *)
(* (--init=Start --inv=Safety --length=0); --cinit=ConstInit.              *)
(***************************************************************************)
EXTENDS CachedDisk

ConstInit ==
    /\ Size = 3
    /\ Value = {0, 1}
    /\ Zero = 0
    /\ Name = {"a"}
    /\ MaxSlots = 2

IndInv == TypeOK /\ Coherent

Safety == Seen = disk.live      \* What live reads as is what the disk has.

\* @type: (Int, Int -> Int, Int -> Int, Set(Int)) => $cdCache;
Cache(slots, tag, value, full) ==
    [i \in {j \in 0 .. MaxSlots - 1 : j < slots} |->
        IF i \in full THEN {[tag |-> tag[i], value |-> value[i]]} ELSE {}]

Slot0 == 0 .. MaxSlots - 1

Anything ==     \* Any state there is, as far as types go.
    /\ \E live \in [LBA -> Value], names \in SUBSET Name, snap \in [Name \X LBA -> Value] :
        disk = [live |-> live, snaps |-> [n \in names |-> [l \in LBA |-> snap[<<n, l>>]]]]
    /\ \E slots \in 1 .. MaxSlots, moving \in BOOLEAN,
          tag, other \in [Slot0 -> LBA], value, second \in [Slot0 -> Value], full, begun \in SUBSET Slot0 :
        /\ cache = Cache(slots, tag, value, full)
        /\ copy = Cache(IF moving THEN slots ELSE 0, other, second, begun)
    /\ \E some \in BOOLEAN, lba \in LBA, value \in Value :
        fill = {f \in {[lba |-> lba, value |-> value]} : some}

Start == Anything /\ IndInv
=============================================================================
