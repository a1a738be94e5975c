---------------------------- MODULE CachedDisk -----------------------------
(***************************************************************************)
(* A host-side read cache over a disk (vSphere Flash Read Cache): write-   *)
(* through, direct-mapped, and gone with the host.  A block can only be in *)
(* the slot of its address modulo the number of slots; the quotient is the *)
(* slot's tag.  A miss reads the disk in one step and fills the slot in    *)
(* another.  A virtual machine migrates with its cache, copied a slot a    *)
(* step, or without.                                                       *)
(*                                                                         *)
(* Left out: how the disk keeps what it promises (it is the contract), and *)
(* which slots are worth keeping: any may be evicted at any time.          *)
(*                                                                         *)
(* How to break it: let Changed keep what is on its way, or Resize what is *)
(* cached; then run MCCachedDisk.                                          *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, typedefs

CONSTANTS
    \* @type: Int;
    Size,       \* How many blocks the disk has.
    \* @type: Set(Int);
    Value,      \* What a block may hold.
    \* @type: Int;
    Zero,       \* What a block holds that was never written, or was unmapped.
    \* @type: Set(Str);
    Name,       \* The names that a snapshot may have.
    \* @type: Int;
    MaxSlots    \* How many slots a cache may have.

VARIABLES       \* The disk.
    \* @type: $disk;
    disk        \* The contract's: [live |-> LBA -> Value, snaps |-> name -> LBA -> Value].

VARIABLES       \* The host.
    \* @type: $cdCache;
    cache,      \* slot -> {}, or {[tag, value]}.
    \* @type: Set({ lba: Int, value: Int });
    fill        \* A miss on its way into the cache: {}, or {[lba, value]}.

VARIABLES       \* The host that the virtual machine moves to, while it moves.
    \* @type: $cdCache;
    copy        \* slot -> {}, or {[tag, value]}; no slot when it does not move.

vars == <<disk, cache, fill, copy>>

LBA == 0 .. Size - 1

\* @type: Int => $cdCache;
Cold(slots) == [i \in {j \in 0 .. MaxSlots - 1 : j < slots} |-> {}]

\* @type: $cdCache => Int;
Slots(c) == Cardinality(DOMAIN c)   \* How many slots a cache has.
----------------------------------------------------------------------------
\* @type: ($cdCache, Int) => Int;
Slot(c, lba) == lba % Slots(c)

\* @type: ($cdCache, Int) => Int;
Tag(c, lba) == lba \div Slots(c)

\* @type: ($cdCache, Int) => Set(Int);
Hit(c, lba) == {x.value : x \in {y \in c[Slot(c, lba)] : y.tag = Tag(c, lba)}}

Seen ==         \* What live reads as.
    [lba \in LBA |-> IF Hit(cache, lba) = {} THEN disk.live[lba] ELSE CHOOSE v \in Hit(cache, lba) : TRUE]

Image == [live |-> Seen, snaps |-> disk.snaps]

Contract == INSTANCE VirtualDisk WITH
    Profile <- "ack", Holds <- 0, power <- TRUE, disk <- Image,
    survivors <- {[live |-> [lba \in LBA |-> {Seen[lba]}], snaps |-> disk.snaps]}

\* @type: ($cdCache, Int, Int) => $cdCache;
Updated(c, lba, value) ==   \* A cache once a block has changed.
    [i \in DOMAIN c |-> IF i = Slot(c, lba)
                        THEN {[x EXCEPT !.value = IF x.tag = Tag(c, lba) THEN value ELSE @] : x \in c[i]}
                        ELSE c[i]]

Changed(lba, value) ==      \* Written through: what is cached follows, what is on its way is dropped.
    /\ cache' = Updated(cache, lba, value)
    /\ copy' = IF DOMAIN copy = {} THEN copy ELSE Updated(copy, lba, value)
    /\ fill' = {f \in fill : f.lba # lba}

Emptied ==                  \* All of it may be stale.
    /\ cache' = Cold(Slots(cache))
    /\ copy' = [i \in DOMAIN copy |-> {}]
    /\ fill' = {}

Same == UNCHANGED <<cache, fill, copy>>
----------------------------------------------------------------------------
Write(lba, value) ==    \* Zeroes are unmapped.
    /\ value # Zero
    /\ disk' = [disk EXCEPT !.live[lba] = value]
    /\ Changed(lba, value)

Unmap(lba) ==
    /\ disk' = [disk EXCEPT !.live[lba] = Zero]
    /\ Changed(lba, Zero)

Snapshot(name) ==
    /\ name \notin DOMAIN disk.snaps
    /\ disk' = [disk EXCEPT !.snaps = [n \in DOMAIN @ \union {name} |->
                                        IF n = name THEN disk.live ELSE @[n]]]
    /\ Same

Delete(name) ==
    /\ name \in DOMAIN disk.snaps
    /\ disk' = [disk EXCEPT !.snaps = [n \in DOMAIN @ \ {name} |-> @[n]]]
    /\ Same

Revert(name) ==
    /\ name \in DOMAIN disk.snaps
    /\ disk' = [disk EXCEPT !.live = disk.snaps[name]]
    /\ Emptied

Read(lba, value) ==
    /\ value = Seen[lba]
    /\ UNCHANGED vars
----------------------------------------------------------------------------
(* The cache.                                                              *)

Fetch(lba) ==
    /\ Hit(cache, lba) = {}
    /\ fill = {}
    /\ fill' = {[lba |-> lba, value |-> disk.live[lba]]}
    /\ UNCHANGED <<disk, cache, copy>>

Fill ==
    \E f \in fill :
        /\ cache' = [cache EXCEPT ![Slot(cache, f.lba)] = {[tag |-> Tag(cache, f.lba), value |-> f.value]}]
        /\ fill' = {}
        /\ UNCHANGED <<disk, copy>>

Evict(slot) ==
    /\ slot \in DOMAIN cache
    /\ cache[slot] # {}
    /\ cache' = [cache EXCEPT ![slot] = {}]
    /\ UNCHANGED <<disk, fill, copy>>

Resize(slots) ==        \* Slots and tags come to mean other blocks.
    /\ slots # Slots(cache)
    /\ DOMAIN copy = {}
    /\ cache' = Cold(slots)
    /\ UNCHANGED <<disk, fill, copy>>

Crash ==                \* The host is lost, and its cache with it.
    /\ cache' = Cold(Slots(cache))
    /\ fill' = {}
    /\ copy' = Cold(0)
    /\ disk' = disk
----------------------------------------------------------------------------
(* Migration.                                                              *)

Move ==                 \* It begins.
    /\ DOMAIN copy = {}
    /\ copy' = Cold(Slots(cache))
    /\ UNCHANGED <<disk, cache, fill>>

CopySlot(slot) ==       \* With the cache: as many slots as there is time for.
    /\ slot \in DOMAIN copy
    /\ cache[slot] # {}
    /\ copy[slot] # cache[slot]
    /\ copy' = [copy EXCEPT ![slot] = cache[slot]]
    /\ UNCHANGED <<disk, cache, fill>>

Arrive ==               \* It ends, and what was on its way to the old host is of no use.
    /\ DOMAIN copy # {}
    /\ cache' = copy
    /\ copy' = Cold(0)
    /\ fill' = {}
    /\ disk' = disk
----------------------------------------------------------------------------
Init ==
    /\ disk = [live |-> [lba \in LBA |-> Zero], snaps |-> [n \in {} |-> [lba \in LBA |-> Zero]]]
    /\ cache = Cold(MaxSlots)
    /\ fill = {}
    /\ copy = Cold(0)

Next ==
    \/ \E lba \in LBA :
        \/ \E value \in Value : Write(lba, value)
        \/ Unmap(lba)
        \/ Fetch(lba)
    \/ \E name \in Name : Snapshot(name) \/ Delete(name) \/ Revert(name)
    \/ Fill
    \/ \E slot \in 0 .. MaxSlots - 1 : Evict(slot) \/ CopySlot(slot)
    \/ \E slots \in 1 .. MaxSlots : Resize(slots)
    \/ Move
    \/ Arrive
    \/ Crash

Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
\* @type: $cdCache => Bool;
CacheOK(c) ==
    /\ DOMAIN c = {i \in 0 .. MaxSlots - 1 : i < Slots(c)}
    /\ \A i \in DOMAIN c :
        /\ Cardinality(c[i]) <= 1
        /\ \A x \in c[i] : x.tag \in 0 .. Size - 1 /\ x.value \in Value

TypeOK ==
    /\ DOMAIN disk.live = LBA /\ DOMAIN disk.snaps \subseteq Name
    /\ \A lba \in LBA : disk.live[lba] \in Value
    /\ \A n \in DOMAIN disk.snaps : DOMAIN disk.snaps[n] = LBA /\ \A lba \in LBA : disk.snaps[n][lba] \in Value
    /\ CacheOK(cache) /\ CacheOK(copy)
    /\ Slots(cache) \in 1 .. MaxSlots /\ Slots(copy) \in {0, Slots(cache)}
    /\ Cardinality(fill) <= 1
    /\ \A f \in fill : f.lba \in LBA /\ f.value \in Value

Coherent ==     \* Whatever is cached, or on its way, is what the disk has.
    /\ \A lba \in LBA : Hit(cache, lba) \subseteq {disk.live[lba]}
    /\ \A f \in fill : f.value = disk.live[f.lba]
    /\ DOMAIN copy # {} => \A lba \in LBA : Hit(copy, lba) \subseteq {disk.live[lba]}

Refines == Contract!Spec

Obeys ==        \* And each action does what the contract's of its name does.
    [][/\ \A lba \in LBA :
            /\ \A value \in Value : Write(lba, value) => Contract!Write(lba, [i \in {1} |-> value], "ok")
            /\ Unmap(lba) => Contract!Unmap(lba, 1, "ok")
       /\ \A name \in Name :
            /\ Snapshot(name) => Contract!Snapshot(name, "ok")
            /\ Delete(name) => Contract!Delete(name, "ok")
            /\ Revert(name) => Contract!Revert(name, "ok")
       /\ Crash => Contract!Crash("ok")]_vars

THEOREM Spec => Refines /\ Obeys /\ [](TypeOK /\ Coherent)
=============================================================================
