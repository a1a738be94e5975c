--------------------------- MODULE APVirtualDisk ----------------------------
(***************************************************************************)
(* Why the contract makes sense, however long it runs: what the disk is,   *)
(* is one of what a power cut may leave, in each crash profile.  It holds  *)
(* at first (--init=Init --inv=IndInv --length=0), and every step keeps it *)
(* (--init=Start --next=SmallNext --inv=IndInv --length=1); --cinit=Ack,   *)
(* Prefix or Block.  Apalache does not list the functions of a set, so     *)
(* what the contract says of any size is said here of two blocks.  At most *)
(* three images survive at first: an image that is not the disk's is never *)
(* looked at together with another, so two of them would do.               *)
(***************************************************************************)
EXTENDS VirtualDisk

Small ==
    /\ Size = 2
    /\ Value = {0, 1}
    /\ Zero = 0
    /\ Name = {"a"}
    /\ Holds = 1

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

Blocks == 0 .. 1

\* @type: (Str -> Int -> Int) => Bool;
SnapsOK(snaps) ==
    /\ DOMAIN snaps \subseteq Name
    /\ \A n \in DOMAIN snaps : DOMAIN snaps[n] = Blocks /\ \A l \in Blocks : snaps[n][l] \in Value

\* @type: $image => Bool;
ImageOK(image) ==
    /\ DOMAIN image.live = Blocks /\ SnapsOK(image.snaps)
    /\ \A l \in Blocks : image.live[l] # {} /\ image.live[l] \subseteq Value

IndInv ==
    /\ DOMAIN disk.live = Blocks /\ SnapsOK(disk.snaps)
    /\ \A l \in Blocks : disk.live[l] \in Value
    /\ survivors # {}
    /\ \A image \in survivors : ImageOK(image)
    /\ power => \E image \in survivors : disk.snaps = image.snaps /\ \A l \in Blocks : disk.live[l] \in image.live[l]

Images == 1 .. 3

Start ==        \* Any state that satisfies it, with so many images.
    /\ power \in BOOLEAN
    /\ \E live \in [Blocks -> Value], names \in SUBSET Name, snap \in [Name \X Blocks -> Value] :
        disk = [live |-> live, snaps |-> [n \in names |-> [l \in Blocks |-> snap[<<n, l>>]]]]
    /\ \E left \in SUBSET Images, live \in [Images \X Blocks -> SUBSET Value],
          names \in [Images -> SUBSET Name], snap \in [Images \X Blocks -> Value] :
        survivors = {[live |-> [l \in Blocks |-> live[<<i, l>>]],
                      snaps |-> [n \in names[i] |-> [l \in Blocks |-> snap[<<i, l>>]]]] : i \in left}
    /\ IndInv
=============================================================================
