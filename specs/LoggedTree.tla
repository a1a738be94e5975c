----------------------------- MODULE LoggedTree -----------------------------
(***************************************************************************)
(* The tree under the log: logical maps as copy-on-write nodes in pages,   *)
(* checkpoints of them that are written while operations go on, and a log  *)
(* that is replayed over the pages of the newest checkpoint, though pages  *)
(* were freed and used again since.                                        *)
(*                                                                         *)
(* - A checkpoint freezes the maps and a position of the log.  What it     *)
(*   froze belongs to an epoch that is over: a node is changed in place    *)
(*   only in the epoch of its birth, else it is copied.                    *)
(* - Its nodes are written one by one and flushed, then its slot counts,   *)
(*   then the log before its position is forgotten.                        *)
(* - A page that was freed before the freeze may be used again once the    *)
(*   checkpoint counts.  One that was freed after it has to wait for the   *)
(*   next one: this one refers to it.                                      *)
(* - Recovery finds the free pages by a walk from the newest checkpoint,   *)
(*   and replays one record a step.  It writes nothing, so after a power   *)
(*   cut during recovery the same work is done again.                      *)
(*                                                                         *)
(* Left out: how reclaim finds what only one view held, and frees it in    *)
(* steps (SharedTree); records in flight and mirrors (MirroredLog); chunks *)
(* and segments (LogStructuredDisk); unmaps and reverts.                   *)
(*                                                                         *)
(* How to break it: let CheckpointCommit free `limbo` too, or let Freeze   *)
(* begin no epoch; then run MCLoggedTree.                                  *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Size,       \* How many blocks there are, each in a leaf of its own under the root.
    Value,      \* What a block may hold.
    Zero,       \* What a block holds that was never written.
    Name,       \* The names that a snapshot may have.
    Page,       \* Where a node may be: positive integers.
    LogSize     \* How many records the log takes.

VARIABLES       \* On the media.
    disk,       \* Page -> node: [born, kids |-> LBA -> page, value].
    before,     \* Page -> node: what a page held that was written since the last flush.
    slot,       \* The newest checkpoint: [live, snaps |-> roots, epoch].
    log         \* The operations behind its position: a sequence.

VARIABLES       \* In memory.
    phase,      \* "up", "down" or "replay".
    maps,       \* The roots: [live, snaps].
    cache,      \* Page -> node: what is not on the media yet.
    epoch,      \* Live changes a node in place if it was born in it.
    free,       \* Pages to give out.
    limbo,      \* Pages freed since the newest checkpoint was frozen, or loaded.
    pending,    \* The checkpoint on its way: {} or {[live, snaps, epoch, from, retired, todo]}.
    replayed    \* How many records recovery has replayed.

VARIABLE        \* History, for the refinement only.
    seen        \* The disk as users know it.

media  == <<disk, before, slot, log>>
memory == <<phase, maps, cache, epoch, free, limbo, pending, replayed>>
vars   == <<media, memory, seen>>

Nil == 0        \* No page.
LBA == 0 .. Size - 1
NoKids == [l \in LBA |-> Nil]
BlankPage == [born |-> 0, kids |-> NoKids, value |-> Zero]
Empty == [x \in {} |-> BlankPage]

Over(f, g) == [x \in DOMAIN f \union DOMAIN g |-> IF x \in DOMAIN f THEN f[x] ELSE g[x]]

Least(pages) == CHOOSE p \in pages : \A q \in pages : p <= q
----------------------------------------------------------------------------
(* Trees.  `nodes` is what each page holds.                                *)

With(new) == [p \in Page |-> IF p \in DOMAIN new THEN new[p] ELSE disk[p]]

Nodes == With(cache)

Tree(nodes, root) ==        \* The pages of a tree.
    IF root = Nil THEN {} ELSE ({root} \union {nodes[root].kids[l] : l \in LBA}) \ {Nil}

Roots(m) == {m.live} \union {m.snaps[n] : n \in DOMAIN m.snaps}

Held(nodes, m) == UNION {Tree(nodes, root) : root \in Roots(m)}

Image(nodes, root) ==
    [l \in LBA |-> IF root = Nil \/ nodes[root].kids[l] = Nil THEN Zero ELSE nodes[nodes[root].kids[l]].value]

Disk(nodes, m) == [live |-> Image(nodes, m.live), snaps |-> [n \in DOMAIN m.snaps |-> Image(nodes, m.snaps[n])]]

Contract == INSTANCE VirtualDisk WITH
    Profile <- "ack", Holds <- 0, disk <- seen, survivors <- {[live |-> [l \in LBA |-> {seen.live[l]}], snaps |-> seen.snaps]},
    power <- phase = "up"
----------------------------------------------------------------------------
(* Operations, as they happen and as they are replayed.                    *)

Owned(p) == p # Nil /\ Nodes[p].born = epoch

Write(lba, value) ==        \* The path to the block is copied, but for the nodes that live owns.
    LET root == maps.live
        leaf == IF root = Nil THEN Nil ELSE Nodes[root].kids[lba]
        newLeaf == IF Owned(leaf) THEN leaf ELSE Least(free)
        newRoot == IF Owned(root) THEN root ELSE Least(free \ {newLeaf})
        kids == IF root = Nil THEN NoKids ELSE Nodes[root].kids
        new == [p \in {newLeaf, newRoot} |->
                    IF p = newRoot THEN [born |-> epoch, kids |-> [kids EXCEPT ![lba] = newLeaf], value |-> Zero]
                    ELSE [born |-> epoch, kids |-> NoKids, value |-> value]]
    IN  /\ Cardinality(free) >= 2
        /\ cache' = Over(new, cache)
        /\ maps' = [maps EXCEPT !.live = newRoot]
        /\ free' = free \ {newLeaf, newRoot}
        /\ epoch' = epoch

Snapshot(name) ==           \* A root, and an epoch: what live has is shared from now on.
    /\ name \notin DOMAIN maps.snaps
    /\ maps' = [maps EXCEPT !.snaps = [n \in DOMAIN @ \union {name} |-> IF n = name THEN maps.live ELSE @[n]]]
    /\ epoch' = epoch + 1
    /\ UNCHANGED <<cache, free>>

Delete(name) ==
    /\ name \in DOMAIN maps.snaps
    /\ maps' = [maps EXCEPT !.snaps = [n \in DOMAIN @ \ {name} |-> @[n]]]
    /\ UNCHANGED <<cache, free, epoch>>

Apply(r) ==                 \* What no view holds any more is freed.
    /\ CASE r.op = "write"    -> Write(r.lba, r.value)
         [] r.op = "snapshot" -> Snapshot(r.name)
         [] r.op = "delete"   -> Delete(r.name)
    /\ limbo' = limbo \union (Held(Nodes, maps) \ Held(With(cache'), maps'))

Submit(r) ==                \* The operation is in the log, durable, and happens.
    /\ phase = "up"
    /\ Len(log) < LogSize
    /\ Apply(r)
    /\ log' = Append(log, r)
    /\ seen' = Disk(With(cache'), maps')
    /\ UNCHANGED <<disk, before, slot, phase, pending, replayed>>

Record(op, lba, value, name) == [op |-> op, lba |-> lba, value |-> value, name |-> name]
----------------------------------------------------------------------------
(* Checkpoints.                                                            *)

CheckpointFreeze ==         \* Of the maps, and of a position of the log.
    /\ phase = "up"
    /\ pending = {}
    /\ pending' = {[live |-> maps.live, snaps |-> maps.snaps, epoch |-> epoch, from |-> Len(log),
                    retired |-> limbo, todo |-> DOMAIN cache]}
    /\ epoch' = epoch + 1
    /\ limbo' = {}
    /\ UNCHANGED <<media, phase, maps, cache, free, replayed, seen>>

WriteNode(p) ==             \* One of the nodes that it froze.
    /\ phase = "up"
    /\ \E c \in pending :
        /\ p \in c.todo
        /\ pending' = {[c EXCEPT !.todo = @ \ {p}]}
    /\ disk' = [disk EXCEPT ![p] = cache[p]]
    /\ before' = Over([q \in {p} |-> disk[p]], before)
    /\ UNCHANGED <<slot, log, phase, maps, cache, epoch, free, limbo, replayed, seen>>

CheckpointNodes ==          \* All of them are flushed.
    /\ phase = "up"
    /\ \E c \in pending : c.todo = {}
    /\ DOMAIN before # {}
    /\ before' = Empty
    /\ cache' = [p \in DOMAIN cache \ DOMAIN before |-> cache[p]]
    /\ UNCHANGED <<disk, slot, log, phase, maps, epoch, free, limbo, pending, replayed, seen>>

CheckpointCommit ==         \* Its slot is durable, the log before its position goes.
    /\ phase = "up"
    /\ before = Empty
    /\ \E c \in pending :
        /\ c.todo = {}
        /\ slot' = [live |-> c.live, snaps |-> c.snaps, epoch |-> c.epoch]
        /\ log' = SubSeq(log, c.from + 1, Len(log))
        /\ free' = free \union c.retired
    /\ pending' = {}
    /\ UNCHANGED <<disk, before, phase, maps, cache, epoch, limbo, replayed, seen>>
----------------------------------------------------------------------------
(* Crash and recovery.                                                     *)

Crash ==        \* Of the pages written since the last flush any are left.
    /\ phase # "down"
    /\ phase' = "down"
    /\ \E lost \in SUBSET DOMAIN before :
        disk' = [p \in Page |-> IF p \in lost THEN before[p] ELSE disk[p]]
    /\ before' = Empty /\ cache' = Empty
    /\ maps' = [live |-> Nil, snaps |-> [n \in {} |-> Nil]]
    /\ epoch' = 0 /\ free' = {} /\ limbo' = {} /\ pending' = {} /\ replayed' = 0
    /\ UNCHANGED <<slot, log, seen>>

Load ==         \* Memory is what the newest checkpoint says; free is what it does not refer to.
    /\ phase = "down"
    /\ phase' = "replay"
    /\ maps' = [live |-> slot.live, snaps |-> slot.snaps]
    /\ epoch' = slot.epoch + 1
    /\ free' = Page \ Held(disk, slot)
    /\ UNCHANGED <<media, cache, limbo, pending, replayed, seen>>

Replay ==
    /\ phase = "replay"
    /\ replayed < Len(log)
    /\ Apply(log[replayed + 1])
    /\ replayed' = replayed + 1
    /\ UNCHANGED <<media, phase, pending, seen>>

Recover ==
    /\ phase = "replay"
    /\ replayed = Len(log)
    /\ phase' = "up"
    /\ replayed' = 0
    /\ seen' = Disk(Nodes, maps)
    /\ UNCHANGED <<media, maps, cache, epoch, free, limbo, pending>>
----------------------------------------------------------------------------
Init ==
    /\ disk = [p \in Page |-> BlankPage]
    /\ before = Empty
    /\ slot = [live |-> Nil, snaps |-> [n \in {} |-> Nil], epoch |-> 1]
    /\ log = <<>>
    /\ phase = "up"
    /\ maps = [live |-> Nil, snaps |-> [n \in {} |-> Nil]]
    /\ cache = Empty
    /\ epoch = 2
    /\ free = Page
    /\ limbo = {}
    /\ pending = {}
    /\ replayed = 0
    /\ seen = [live |-> [l \in LBA |-> Zero], snaps |-> [n \in {} |-> NoKids]]

DoWrite(lba, value) == Submit(Record("write", lba, value, ""))
DoSnapshot(name) == Submit(Record("snapshot", 0, Zero, name))
DoDelete(name) == Submit(Record("delete", 0, Zero, name))

Next ==
    \/ \E lba \in LBA, value \in Value : DoWrite(lba, value)
    \/ \E name \in Name : DoSnapshot(name) \/ DoDelete(name)
    \/ CheckpointFreeze \/ CheckpointNodes \/ CheckpointCommit
    \/ \E p \in Page : WriteNode(p)
    \/ Crash \/ Load \/ Replay \/ Recover

Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
(* What it promises.                                                       *)

Pages == Page \union {Nil}

NodeOK(n) == n.born >= 0 /\ n.kids \in [LBA -> Pages] /\ n.value \in Value

MapsOK(m) ==        \* Of memory, of the slot, or of the checkpoint on its way.
    m.live \in Pages /\ DOMAIN m.snaps \subseteq Name /\ \A n \in DOMAIN m.snaps : m.snaps[n] \in Pages

TypeOK ==
    /\ DOMAIN disk = Page /\ \A p \in Page : NodeOK(disk[p])
    /\ DOMAIN before \subseteq Page /\ \A p \in DOMAIN before : NodeOK(before[p])
    /\ DOMAIN cache \subseteq Page /\ \A p \in DOMAIN cache : NodeOK(cache[p])
    /\ MapsOK(maps) /\ MapsOK(slot) /\ slot.epoch >= 1 /\ epoch >= 0
    /\ Len(log) <= LogSize /\ replayed \in 0 .. Len(log)
    /\ \A i \in DOMAIN log : log[i].op \in {"write", "snapshot", "delete"}
    /\ phase \in {"up", "down", "replay"}
    /\ free \subseteq Page /\ limbo \subseteq Page
    /\ Cardinality(pending) <= 1
    /\ \A c \in pending :
        /\ MapsOK(c) /\ c.epoch >= 1 /\ c.from \in 0 .. Len(log)
        /\ c.retired \subseteq Page /\ c.todo \subseteq Page

Retired == UNION {c.retired : c \in pending}

Exact ==        \* Every page is held by a view, freed or free, and only one of these.
    phase # "down" =>
        /\ Held(Nodes, maps) = Page \ (free \union limbo \union Retired)
        /\ free \intersect (limbo \union Retired) = {}

Durable ==      \* What the newest checkpoint refers to is flushed, and never given out or written.
    LET saved == Held(disk, slot)
    IN  /\ saved \intersect DOMAIN before = {}
        /\ phase # "down" => saved \intersect (free \union DOMAIN cache) = {}

RoomToReplay == \* Recovery never lacks pages.
    phase = "replay" /\ replayed < Len(log) /\ log[replayed + 1].op = "write" => Cardinality(free) >= 2

FrozenSlot ==   \* What the newest checkpoint reads as changes only when another one counts.
    [][slot' = slot => Disk(disk, slot)' = Disk(disk, slot)]_vars

Refines == Contract!Spec

Obeys ==        \* And each action does what the contract's of its name does.
    [][/\ \A lba \in LBA, value \in Value : DoWrite(lba, value) => Contract!Write(lba, [i \in {1} |-> value], "ok")
       /\ \A name \in Name : DoSnapshot(name) => Contract!Snapshot(name, "ok")
       /\ \A name \in Name : DoDelete(name) => Contract!Delete(name, "ok")
       /\ Recover => Contract!Crash("ok")]_vars

THEOREM Spec => Refines /\ Obeys /\ FrozenSlot /\ [](TypeOK /\ Exact /\ Durable /\ RoomToReplay)
=============================================================================
