---------------------------- MODULE VirtualDisk ----------------------------
(***************************************************************************)
(* The contract of a virtual disk with snapshots: what its clients may     *)
(* rely on, however it is built.                                           *)
(*                                                                         *)
(* The state of a disk is what its live view and each of its snapshots     *)
(* read as.  Every operation is an action that takes its answer `r` as its *)
(* last argument: "ok", an error code, "unknown-outcome" (it happened      *)
(* whole or not at all, and nobody knows), or "cut" (the power failed      *)
(* before it answered).                                                    *)
(*                                                                         *)
(* `survivors` is a set of images: a power cut leaves one of them.  In an  *)
(* image each block of the live view has a set of values, and holds one of *)
(* these, whatever the other blocks hold.  The crash profiles differ in    *)
(* how an operation changes `survivors`: "ack" keeps every answered        *)
(* operation; "prefix" keeps the first ones of the operations since the    *)
(* last flush; "block" keeps any value that a block had since the last     *)
(* flush or snapshot operation.                                            *)
(*                                                                         *)
(* Left out: devices and their failures (Redundancy), requests that        *)
(* overlap in time (OverlappingDisk), and how a disk does all this         *)
(* (LogStructuredDisk).                                                    *)
(*                                                                         *)
(* How to break it: let Flush keep `survivors`; then run MCVirtualDisk     *)
(* with MCVirtualDisk-tiny-prefix.cfg.  Or let Cut leave only `left`; then *)
(* run MCVirtualDisk.  It states the same promises over the history.       *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, typedefs

CONSTANTS
    \* @type: Int;
    Size,       \* How many blocks the disk has; an LBA is one of 0 .. Size - 1.
    \* @type: Set(Int);
    Value,      \* What a block may hold.
    \* @type: Int;
    Zero,       \* What a block holds that was never written, or was unmapped.
    \* @type: Set(Str);
    Name,       \* The names that a snapshot may have.
    \* @type: Str;
    Profile,    \* What a crash keeps: "ack", "prefix" or "block".
    \* @type: Int;
    Holds       \* How many blocks the disk has room for; 0 if it promises nothing.

VARIABLES
    \* @type: $disk;
    disk,       \* The disk: [live |-> LBA -> Value, snaps |-> name -> LBA -> Value].
    \* @type: Set($image);
    survivors,  \* The images of which a power cut now would leave one.
    \* @type: Bool;
    power       \* FALSE between a power cut and the end of recovery.

vars == <<disk, survivors, power>>

ASSUME Zero \in Value
ASSUME Profile \in {"ack", "prefix", "block"}

Live == "(live)"    \* How a read names the live view; no snapshot may be called that.
----------------------------------------------------------------------------
(* Disks, and what each operation makes of one.                            *)

Blank(size) ==
    LET zeroes == [l \in 0 .. size - 1 |-> Zero]
    IN  [live |-> zeroes, snaps |-> [n \in {} |-> zeroes]]

LBA == DOMAIN disk.live

Fits(lba, count) == lba \in LBA /\ lba + count - 1 \in LBA

\* @type: ($disk, Str) => Int -> Int;
View(d, view) == IF view = Live THEN d.live ELSE d.snaps[view]

\* @type: ($disk, Int, Int -> Int) => $disk;
Written(d, lba, data) ==
    [d EXCEPT !.live = [l \in DOMAIN @ |->
        IF l - lba + 1 \in DOMAIN data THEN data[l - lba + 1] ELSE @[l]]]

\* @type: ($disk, Int, Int) => $disk;
Unmapped(d, lba, count) ==
    [d EXCEPT !.live = [l \in DOMAIN @ |->
        IF l >= lba /\ l < lba + count THEN Zero ELSE @[l]]]

\* @type: ($disk, Str) => $disk;
Snapshotted(d, name) ==
    [d EXCEPT !.snaps = [n \in DOMAIN @ \union {name} |->
        IF n = name THEN d.live ELSE @[n]]]

\* @type: ($disk, Str) => $disk;
Deleted(d, name) ==
    [d EXCEPT !.snaps = [n \in DOMAIN @ \ {name} |-> @[n]]]

\* @type: ($disk, Str) => $disk;
Reverted(d, name) == [d EXCEPT !.live = d.snaps[name]]

\* @type: $disk => Int;
Held(d) ==      \* The number of blocks that all views together hold, none of them shared.
    LET views == {Live} \union DOMAIN d.snaps
    IN  Cardinality({b \in views \X DOMAIN d.live : View(d, b[1])[b[2]] # Zero})
----------------------------------------------------------------------------
(* What survives a power cut.                                              *)

\* @type: $disk => $image;
Exactly(d) == [live |-> [l \in DOMAIN d.live |-> {d.live[l]}], snaps |-> d.snaps]

\* @type: $image => Set($disk);
Resolutions(image) ==   \* The disks that an image may turn out to be.
    {[live |-> f, snaps |-> image.snaps] :
        f \in {g \in [DOMAIN image.live -> Value] : \A l \in DOMAIN g : g[l] \in image.live[l]}}

\* @type: $disk => Set($image);
Buffered(d) ==      \* The survivors once the disk is d by a write or an unmap.
    CASE Profile = "ack"    -> {Exactly(d)}
      [] Profile = "prefix" -> survivors \union {Exactly(d)}
      [] Profile = "block"  ->
            {[i EXCEPT !.live = [l \in DOMAIN @ |-> @[l] \union {d.live[l]}]] : i \in survivors}

\* @type: (Int, Int -> Int) => Set($image);
Forced(lba, data) ==    \* The survivors, once data is durable in all of them.
    {[i EXCEPT !.live = [l \in DOMAIN @ |->
        IF l - lba + 1 \in DOMAIN data THEN {data[l - lba + 1]} ELSE @[l]]] : i \in survivors}

\* @type: $disk => Set($image);
Recorded(d) ==      \* The survivors once the disk is d by a snapshot operation.
    IF Profile = "prefix" THEN survivors \union {Exactly(d)} ELSE {Exactly(d)}
----------------------------------------------------------------------------
(* Answers.  A request that has faults must be refused, with one of them   *)
(* as the code.  A request without a fault may be refused only with a code *)
(* in `excuses`.  A refusal changes nothing.  The only excuse is           *)
(* "no-space", where what the disk holds and what the request adds exceed  *)
(* `Holds`.                                                                *)

Happens(d, left) == disk' = d /\ survivors' = left /\ power' = power

NothingHappens == Happens(disk, survivors)

Cut(left) == disk' = disk /\ survivors' = survivors \union left /\ power' = FALSE

Answer(r, faults, excuses, d, left) ==
    /\ power
    /\ IF faults # {}
       THEN \/ r \in faults \union {"unknown-outcome"} /\ NothingHappens
            \/ r = "cut" /\ Cut({})
       ELSE \/ r \in {"ok", "unknown-outcome"} /\ Happens(d, left)
            \/ r \in excuses \union {"unknown-outcome"} /\ NothingHappens
            \/ r = "cut" /\ Cut(left)

Crowded(more) ==    \* May there be no room for so many blocks more?
    IF Held(disk) + more > Holds THEN {"no-space"} ELSE {}

OutOfRange(lba, count) == IF Fits(lba, count) THEN {} ELSE {"out-of-range"}

Missing(name) ==
    CASE name \notin Name               -> {"bad-request", "no-such-snapshot"}
      [] name \notin DOMAIN disk.snaps  -> {"no-such-snapshot"}
      [] OTHER                          -> {}

Taken(name) ==
    CASE name \notin Name               -> {"bad-request"}
      [] name \in DOMAIN disk.snaps     -> {"snapshot-exists"}
      [] OTHER                          -> {}
----------------------------------------------------------------------------
(* The operations.                                                         *)

\* @type: (Int, Int -> Int, Str) => Bool;
Write(lba, data, r) ==
    LET faults == OutOfRange(lba, Cardinality(DOMAIN data))
        d == Written(disk, lba, data)
    IN  Answer(r, faults, Crowded(Cardinality(DOMAIN data)), d, Buffered(d))

\* @type: (Int, Int -> Int, Str) => Bool;
\* A write that is durable when it is answered; until then it may be. Nothing else becomes durable.
WriteThrough(lba, data, r) ==
    LET faults == OutOfRange(lba, Cardinality(DOMAIN data))
        d == Written(disk, lba, data)
        left == IF r = "ok" THEN Forced(lba, data) ELSE Forced(lba, data) \union Buffered(d)
    IN  Answer(r, faults, Crowded(Cardinality(DOMAIN data)), d, left)

Unmap(lba, count, r) ==
    LET faults == OutOfRange(lba, count)
        d == Unmapped(disk, lba, count)
    IN  Answer(r, faults, Crowded(1), d, Buffered(d))

Snapshot(name, r) ==
    LET d == Snapshotted(disk, name)
    IN  Answer(r, Taken(name), Crowded(1), d, Recorded(d))

Delete(name, r) ==      \* Never for want of space: it is how space is made.
    LET d == Deleted(disk, name)
    IN  Answer(r, Missing(name), {}, d, Recorded(d))

Revert(name, r) ==
    LET d == Reverted(disk, name)
    IN  Answer(r, Missing(name), Crowded(1), d, Recorded(d))

Flush(r) == Answer(r, {}, {}, disk, {Exactly(disk)})

Restart(r) == Answer(r, {}, {}, disk, {Exactly(disk)})

\* @type: (Str, Int, Int, Str, Int -> Int) => Bool;
Read(view, lba, count, r, data) ==
    LET faults == OutOfRange(lba, count) \union (IF view = Live THEN {} ELSE Missing(view))
    IN  /\ Answer(r, faults, {}, disk, survivors)
        /\ r = "ok" => data = [i \in 1 .. count |-> View(disk, view)[lba + i - 1]]

Crash(r) ==     \* A power cut, and recovery, which another power cut may cut short.
    \/ /\ r = "ok"
       /\ \E image \in survivors : disk' \in Resolutions(image)
       /\ survivors' = {Exactly(disk')}
       /\ power' = TRUE
    \/ /\ r = "cut"
       /\ Cut({})

Create(size) ==
    /\ disk' = Blank(size)
    /\ survivors' = {Exactly(Blank(size))}
    /\ power' = TRUE
----------------------------------------------------------------------------
Init ==
    /\ disk = Blank(Size)
    /\ survivors = {Exactly(Blank(Size))}
    /\ power = TRUE

Answers == {"ok", "unknown-outcome", "cut", "out-of-range", "no-such-snapshot",
            "snapshot-exists", "bad-request", "no-space"}

Data == UNION {[1 .. n -> Value] : n \in 1 .. Size}

Next ==
    \E r \in Answers :
        \/ \E lba \in 0 .. Size :
            \/ \E data \in Data : Write(lba, data, r)
            \/ \E count \in 1 .. Size : Unmap(lba, count, r)
        \/ \E name \in Name : Snapshot(name, r) \/ Delete(name, r) \/ Revert(name, r)
        \/ Flush(r) \/ Restart(r) \/ Crash(r)
        \/ \E lba \in 0 .. Size, data \in Data : WriteThrough(lba, data, r)

\* Read is not in Next: it changes nothing, and a power cut during it is Crash("cut").  Nor is Create, which
\* begins a trace.

Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
Disks ==
    LET views == [0 .. Size - 1 -> Value]
    IN  [live : views, snaps : UNION {[names -> views] : names \in SUBSET Name}]

TypeOK ==
    /\ disk \in Disks
    /\ \A image \in survivors : Resolutions(image) \subseteq Disks
    /\ power \in BOOLEAN

Current == power => \E image \in survivors : disk \in Resolutions(image)

THEOREM Spec => [](TypeOK /\ Current)
=============================================================================
