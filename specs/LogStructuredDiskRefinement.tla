-------------------- MODULE LogStructuredDiskRefinement ---------------------
(***************************************************************************)
(* The refinement of VirtualDisk by LogStructuredDisk.  The contract's     *)
(* disk is what the views read as; without power, it is the disk that      *)
(* recovery would build from the media.  The survivors are the disks that  *)
(* recovery would build, one for each set of records in flight that a      *)
(* power cut may leave.                                                    *)
(*                                                                         *)
(* The contract is of one request at a time.  Two steps go beyond it.      *)
(* Hardens: what might be lost no longer can be, before anybody asked.     *)
(* Cuts: a power cut interrupts several requests in flight; each happened, *)
(* in the order of the log, or none from some record on.                   *)
(***************************************************************************)
EXTENDS LogStructuredDiskProperties

\* @type: ($disk, Int -> $lsdPlace, Int -> Int) => $disk;
Contents(views, map, banked) ==     \* What views read as, their chunks being in `map` or `banked`.
    LET means(m) ==
            CASE m = Hole             -> Zero
              [] m \in DOMAIN banked  -> banked[m]
              [] m \in DOMAIN map     -> data[map[m]]
              [] OTHER                -> Nothing
    IN  [live  |-> [l \in LBA |-> means(views.live[l])],
         snaps |-> [n \in DOMAIN views.snaps |-> [l \in LBA |-> means(views.snaps[n][l])]]]

Durable ==      \* The number of the last record that no power cut can undo.
    CHOOSE e \in Newest.from .. Newest.from + Cardinality(DOMAIN log) :
        /\ \A p \in Newest.from + 1 .. e : p \in DOMAIN log /\ Good(log[p], p)
        /\ e + 1 \in DOMAIN log => ~ Good(log[e + 1], e + 1)

\* @type: Int => $disk;
Recovered(e) == \* The disk that recovery makes if it replays the records up to e.
    LET start == Newest.from
        image[p \in start .. e] ==
            IF p = start THEN Contents(Newest.maps, Newest.middle, Empty(Zero))
            ELSE Edited(image[p - 1], At(p), At(p).value, Zero)
    IN  image[e]

Doubtful ==     \* The number of the last record in flight, as far as recovery could reach.
    CHOOSE e \in Durable .. Durable + Cardinality(DOMAIN tail) :
        /\ Durable + 1 .. e \subseteq DOMAIN tail
        /\ e + 1 \notin DOMAIN tail

power == phase = "up"

disk == IF power THEN Contents(maps, middle, bank)
        ELSE Recovered(IF Profile = "ack" THEN Durable ELSE Doubtful)

\* @type: $disk => $image;
Exactly(d) == [live |-> [l \in LBA |-> {d.live[l]}], snaps |-> d.snaps]

survivors ==
    LET last == IF Profile = "ack" /\ power THEN Durable ELSE Doubtful
    IN  {Exactly(Recovered(e)) : e \in Durable .. last}

Contract == INSTANCE VirtualDisk WITH Holds <- 0

contract == <<disk, survivors, power>>

Agreement ==    \* What is read is what recovery would find if all is left that is in flight.
    power => disk = Recovered(IF Profile = "ack" THEN Durable ELSE Doubtful)
----------------------------------------------------------------------------
(* Steps of the contract.                                                  *)

\* @type: Int => (Int -> Int);
One(value) == [i \in {1} |-> value]     \* The data of a write of one block.

\* @type: $lsdRecord => Bool;
Happens(r) ==   \* The contract's action of that name.
    CASE r.op = "write"    -> Contract!Write(r.lba, One(r.value), "ok")
      [] r.op = "unmap"    -> Contract!Unmap(r.lba, 1, "ok")
      [] r.op = "snapshot" -> Contract!Snapshot(r.name, "ok")
      [] r.op = "delete"   -> Contract!Delete(r.name, "ok")
      [] r.op = "revert"   -> Contract!Revert(r.name, "ok")

\* @type: ($disk, $lsdRecord) => $disk;
Effect(d, r) == \* What it makes of a disk.
    CASE r.op = "write"    -> Contract!Written(d, r.lba, One(r.value))
      [] r.op = "unmap"    -> Contract!Unmapped(d, r.lba, 1)
      [] r.op = "snapshot" -> Contract!Snapshotted(d, r.name)
      [] r.op = "delete"   -> Contract!Deleted(d, r.name)
      [] r.op = "revert"   -> Contract!Reverted(d, r.name)

Hardens ==
    /\ UNCHANGED <<disk, power>>
    /\ survivors' \subseteq survivors /\ Exactly(disk) \in survivors'

Cuts ==
    LET image[p \in end .. LastPlace] == IF p = end THEN disk ELSE Effect(image[p - 1], tail[p])
    IN  /\ disk' = disk /\ power' = FALSE
        /\ survivors' = IF AtOnce THEN survivors
                        ELSE survivors \union {Exactly(image[p]) : p \in DOMAIN image}

Step ==         \* A step, by what it does to the records in flight and to the power.
    CASE power /\ ~ power'                      -> Cuts
      [] ~ power /\ power'                      -> Contract!Crash("ok")
      [] power /\ DOMAIN tail' # DOMAIN tail /\ DOMAIN tail \subseteq DOMAIN tail' ->
            IF AtOnce THEN Happens(tail'[NextPlace]) ELSE UNCHANGED contract
      [] power /\ tail' # tail                  -> IF AtOnce THEN Hardens ELSE Happens(tail[end + 1])
      [] OTHER                                  -> UNCHANGED contract

Refines == Contract!Init /\ [][Step]_vars
----------------------------------------------------------------------------
(* And each action does what it is called.                                 *)

Submits(op, lba, value, name) ==    \* One record is put in flight, and it says this.
    /\ DOMAIN tail' = DOMAIN tail \union {NextPlace}
    /\ \A p \in DOMAIN tail : tail'[p] = tail[p]
    /\ LET r == tail'[NextPlace]
       IN  /\ r.op = op /\ r.whole
           /\ op \in {"write", "unmap"} => r.lba = lba
           /\ op = "write" => r.value = value
           /\ op \notin {"write", "unmap"} => r.name = name

\* @type: Int => Bool;
Flushed(last) ==    \* No power cut can undo what happened before the flush began.
    /\ survivors \subseteq {Exactly(Recovered(e)) : e \in {x \in Newest.from .. Doubtful : x >= last}}
    /\ DOMAIN tail = {} => Contract!Flush("ok")

Obeys ==
    [][/\ \A l \in LBA :
            /\ \A v \in Value : Write(l, v) => Submits("write", l, v, "")
            /\ Unmap(l) => Submits("unmap", l, Zero, "")
       /\ \A n \in Name :
            /\ Snapshot(n) => Submits("snapshot", 0, Zero, n)
            /\ Delete(n) => Submits("delete", 0, Zero, n)
            /\ Revert(n) => Submits("revert", 0, Zero, n)
       /\ LogAppend => end + 1 \in DOMAIN tail \ DOMAIN tail'
       /\ BeginFlush => \E last \in flushes' : last >= IF AtOnce THEN Doubtful ELSE Durable
       /\ EndFlush => \A last \in flushes \ flushes' : Flushed(last)
       /\ \A l \in LBA, view \in {Live} \union Name :
            BeginRead(view, l) => \E r \in reads' : r.value = Contract!View(disk, view)[l]
       ]_vars
=============================================================================
