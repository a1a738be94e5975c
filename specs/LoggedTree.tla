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
(* - An increment is a checkpoint that writes no nodes.  It writes one     *)
(*   page: what blocks were written since the newest checkpoint was        *)
(*   frozen, and their values.  Its slot has the roots of the last whole   *)
(*   checkpoint and the pages of all increments since, in order.  It ends  *)
(*   no epoch and frees no page.  The views have to be those of the slot.  *)
(* - The page of an increment is in use until a whole checkpoint counts.   *)
(* - Recovery finds the free pages by a walk from the newest checkpoint.   *)
(*   Then it writes to the live tree what its increments say, and replays  *)
(*   the log, one write or record per step.  It writes nothing to the      *)
(*   media, so after a power cut during recovery the same work is done     *)
(*   again.                                                                *)
(*                                                                         *)
(* Left out: how reclaim finds what only one view held, and frees it in    *)
(* steps (SharedTree); records in flight and mirrors (MirroredLog); chunks *)
(* and segments (LogStructuredDisk); unmaps and reverts; an increment that *)
(* takes several pages.                                                    *)
(*                                                                         *)
(* How to break it: let CheckpointCommit free `limbo` too, or let          *)
(* CheckpointFreeze begin no epoch; then run MCLoggedTree.  Or let         *)
(* IncrementFreeze retire `limbo`; then run MCLoggedTree-increments.       *)
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
    disk,       \* Page -> node: [born, kids |-> LBA -> page, value, puts |-> LBA -> value, in an increment].
    before,     \* Page -> node: what a page held that was written since the last flush.
    slot,       \* The newest checkpoint: [live, snaps |-> roots, epoch, increments |-> a sequence of pages].
    log         \* The operations behind its position: a sequence.

VARIABLES       \* In memory.
    phase,      \* "up", "down" or "replay".
    maps,       \* The roots: [live, snaps].
    cache,      \* Page -> node: what is not on the media yet.
    epoch,      \* Live changes a node in place if it was born in it.
    free,       \* Pages to give out.
    limbo,      \* Pages freed since the last whole checkpoint was frozen, or loaded.
    changed,    \* LBA -> value: what was written since the newest checkpoint was frozen.
    pending,    \* The checkpoint on its way: {} or {[live, snaps, epoch, increments, from, retired, todo]}.
    replayed    \* How many steps of its work recovery has done.

VARIABLE        \* History, for the refinement only.
    seen        \* The disk as users know it.

media  == <<disk, before, slot, log>>
memory == <<phase, maps, cache, epoch, free, limbo, changed, pending, replayed>>
vars   == <<media, memory, seen>>

Nil == 0        \* No page.
LBA == 0 .. Size - 1
NoKids == [l \in LBA |-> Nil]
Empty == [x \in {} |-> Zero]       \* No page, or no block.
BlankPage == [born |-> 0, kids |-> NoKids, value |-> Zero, puts |-> Empty]

Over(f, g) == [x \in DOMAIN f \union DOMAIN g |-> IF x \in DOMAIN f THEN f[x] ELSE g[x]]

Least(numbers) == CHOOSE p \in numbers : \A q \in numbers : p <= q
Greatest(numbers) == CHOOSE p \in numbers : \A q \in numbers : p >= q
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

Logged(c) == {c.increments[i] : i \in DOMAIN c.increments}     \* The pages of the increments of a checkpoint.

Saved(c) ==         \* What a checkpoint reads as: the newest increment that has a block says what it holds.
    LET having(l) == {i \in DOMAIN c.increments : l \in DOMAIN disk[c.increments[i]].puts}
        image == Image(disk, c.live)
        block(l) == IF having(l) = {} THEN image[l] ELSE disk[c.increments[Greatest(having(l))]].puts[l]
    IN  [Disk(disk, c) EXCEPT !.live = [l \in LBA |-> block(l)]]

Contract == INSTANCE VirtualDisk WITH
    Profile <- "ack", Holds <- 0, disk <- seen, survivors <- {[live |-> [l \in LBA |-> {seen.live[l]}], snaps |-> seen.snaps]},
    power <- phase = "up"
----------------------------------------------------------------------------
(* Operations, as they happen and as they are replayed.                    *)

Owned(p) == p # Nil /\ Nodes[p].born = epoch

Leaf(lba) == IF maps.live = Nil THEN Nil ELSE Nodes[maps.live].kids[lba]

Copies(lba) == Cardinality({n \in {1, 2} : ~Owned(<<maps.live, Leaf(lba)>>[n])})   \* The pages that a write takes.

Write(lba, value) ==        \* The path to the block is copied, but for the nodes that live owns.
    LET root == maps.live
        leaf == Leaf(lba)
        newLeaf == IF Owned(leaf) THEN leaf ELSE Least(free)
        newRoot == IF Owned(root) THEN root ELSE Least(free \ {newLeaf})
        kids == IF root = Nil THEN NoKids ELSE Nodes[root].kids
        new == [p \in {newLeaf, newRoot} |->
                    IF p = newRoot THEN [BlankPage EXCEPT !.born = epoch, !.kids = [kids EXCEPT ![lba] = newLeaf]]
                    ELSE [BlankPage EXCEPT !.born = epoch, !.value = value]]
    IN  /\ Cardinality(free) >= Copies(lba)
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

Changed(r) == IF r.op = "write" THEN Over([l \in {r.lba} |-> r.value], changed) ELSE changed

Submit(r) ==                \* The operation is in the log, durable, and happens.
    /\ phase = "up"
    /\ Len(log) < LogSize
    /\ Apply(r)
    /\ log' = Append(log, r)
    /\ changed' = Changed(r)
    /\ seen' = Disk(With(cache'), maps')
    /\ UNCHANGED <<disk, before, slot, phase, pending, replayed>>

Record(op, lba, value, name) == [op |-> op, lba |-> lba, value |-> value, name |-> name]
----------------------------------------------------------------------------
(* Checkpoints: whole ones, and increments of them.                        *)

CheckpointFreeze ==         \* Of the maps, and of a position of the log.
    /\ phase = "up"
    /\ pending = {}
    /\ pending' = {[live |-> maps.live, snaps |-> maps.snaps, epoch |-> epoch, increments |-> <<>>,
                    from |-> Len(log), retired |-> limbo, todo |-> DOMAIN cache]}
    /\ epoch' = epoch + 1
    /\ limbo' = {}
    /\ changed' = Empty
    /\ UNCHANGED <<media, phase, maps, cache, free, replayed, seen>>

IncrementFreeze ==          \* Of what was written, and of a position of the log.  Views are those of the slot.
    /\ phase = "up"
    /\ pending = {}
    /\ changed # Empty
    /\ maps.snaps = slot.snaps
    /\ free # {}
    /\ LET page == Least(free) IN
        /\ cache' = Over([p \in {page} |-> [BlankPage EXCEPT !.puts = changed]], cache)
        /\ free' = free \ {page}
        /\ pending' = {[live |-> slot.live, snaps |-> slot.snaps, epoch |-> slot.epoch,
                        increments |-> Append(slot.increments, page),
                        from |-> Len(log), retired |-> {}, todo |-> {page}]}
    /\ changed' = Empty
    /\ UNCHANGED <<media, phase, maps, epoch, limbo, replayed, seen>>

WriteNode(p) ==             \* One of the nodes that it froze, or the page of the increment.
    /\ phase = "up"
    /\ \E c \in pending :
        /\ p \in c.todo
        /\ pending' = {[c EXCEPT !.todo = @ \ {p}]}
    /\ disk' = [disk EXCEPT ![p] = cache[p]]
    /\ before' = Over([q \in {p} |-> disk[p]], before)
    /\ UNCHANGED <<slot, log, phase, maps, cache, epoch, free, limbo, changed, replayed, seen>>

CheckpointNodes ==          \* All of them are flushed.
    /\ phase = "up"
    /\ \E c \in pending : c.todo = {}
    /\ DOMAIN before # {}
    /\ before' = Empty
    /\ cache' = [p \in DOMAIN cache \ DOMAIN before |-> cache[p]]
    /\ UNCHANGED <<disk, slot, log, phase, maps, epoch, free, limbo, changed, pending, replayed, seen>>

CheckpointCommit ==         \* Its slot is durable, the log before its position goes.
    /\ phase = "up"
    /\ before = Empty
    /\ \E c \in pending :
        /\ c.todo = {}
        /\ slot' = [live |-> c.live, snaps |-> c.snaps, epoch |-> c.epoch, increments |-> c.increments]
        /\ log' = SubSeq(log, c.from + 1, Len(log))
        /\ free' = free \union c.retired \union (Logged(slot) \ Logged(c))
    /\ pending' = {}
    /\ UNCHANGED <<disk, before, phase, maps, cache, epoch, limbo, changed, replayed, seen>>
----------------------------------------------------------------------------
(* Crash and recovery.                                                     *)

Crash ==        \* Of the pages written since the last flush any are left.
    /\ phase # "down"
    /\ phase' = "down"
    /\ \E lost \in SUBSET DOMAIN before :
        disk' = [p \in Page |-> IF p \in lost THEN before[p] ELSE disk[p]]
    /\ before' = Empty /\ cache' = Empty /\ changed' = Empty
    /\ maps' = [live |-> Nil, snaps |-> [n \in {} |-> Nil]]
    /\ epoch' = 0 /\ free' = {} /\ limbo' = {} /\ pending' = {} /\ replayed' = 0
    /\ UNCHANGED <<slot, log, seen>>

Load ==         \* Memory is what the newest checkpoint says; free is what it does not refer to.
    /\ phase = "down"
    /\ phase' = "replay"
    /\ maps' = [live |-> slot.live, snaps |-> slot.snaps]
    /\ epoch' = slot.epoch + 1
    /\ free' = Page \ (Held(disk, slot) \union Logged(slot))
    /\ UNCHANGED <<media, cache, limbo, changed, pending, replayed, seen>>

Increments ==   \* What they say, as writes in order.
    LET of(i) == [page |-> slot.increments[(i - 1) \div Size + 1], lba |-> (i - 1) % Size]
        puts == SelectSeq([i \in 1 .. Size * Len(slot.increments) |-> of(i)], LAMBDA w : w.lba \in DOMAIN disk[w.page].puts)
    IN  [i \in DOMAIN puts |-> Record("write", puts[i].lba, disk[puts[i].page].puts[puts[i].lba], "")]

Work == Increments \o log       \* What recovery has to do.

Replay ==       \* Only what the log says is a change since the newest checkpoint.
    /\ phase = "replay"
    /\ replayed < Len(Work)
    /\ LET r == Work[replayed + 1] IN
        /\ Apply(r)
        /\ changed' = IF replayed < Len(Increments) THEN changed ELSE Changed(r)
    /\ replayed' = replayed + 1
    /\ UNCHANGED <<media, phase, pending, seen>>

Recover ==
    /\ phase = "replay"
    /\ replayed = Len(Work)
    /\ phase' = "up"
    /\ replayed' = 0
    /\ seen' = Disk(Nodes, maps)
    /\ UNCHANGED <<media, maps, cache, epoch, free, limbo, changed, pending>>
----------------------------------------------------------------------------
Init ==
    /\ disk = [p \in Page |-> BlankPage]
    /\ before = Empty
    /\ slot = [live |-> Nil, snaps |-> [n \in {} |-> Nil], epoch |-> 1, increments |-> <<>>]
    /\ log = <<>>
    /\ phase = "up"
    /\ maps = [live |-> Nil, snaps |-> [n \in {} |-> Nil]]
    /\ cache = Empty
    /\ epoch = 2
    /\ free = Page
    /\ limbo = {}
    /\ changed = Empty
    /\ pending = {}
    /\ replayed = 0
    /\ seen = [live |-> [l \in LBA |-> Zero], snaps |-> [n \in {} |-> NoKids]]

DoWrite(lba, value) == Submit(Record("write", lba, value, ""))
DoSnapshot(name) == Submit(Record("snapshot", 0, Zero, name))
DoDelete(name) == Submit(Record("delete", 0, Zero, name))

Next ==
    \/ \E lba \in LBA, value \in Value : DoWrite(lba, value)
    \/ \E name \in Name : DoSnapshot(name) \/ DoDelete(name)
    \/ CheckpointFreeze \/ IncrementFreeze \/ CheckpointNodes \/ CheckpointCommit
    \/ \E p \in Page : WriteNode(p)
    \/ Crash \/ Load \/ Replay \/ Recover

Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
(* What it promises.                                                       *)

Pages == Page \union {Nil}

PutsOK(puts) == DOMAIN puts \subseteq LBA /\ \A l \in DOMAIN puts : puts[l] \in Value

NodeOK(n) == n.born >= 0 /\ n.kids \in [LBA -> Pages] /\ n.value \in Value /\ PutsOK(n.puts)

MapsOK(m) ==        \* Of memory, of the slot, or of the checkpoint on its way.
    m.live \in Pages /\ DOMAIN m.snaps \subseteq Name /\ \A n \in DOMAIN m.snaps : m.snaps[n] \in Pages

CheckpointOK(c) == MapsOK(c) /\ c.epoch >= 1 /\ \A i \in DOMAIN c.increments : c.increments[i] \in Page

TypeOK ==
    /\ DOMAIN disk = Page /\ \A p \in Page : NodeOK(disk[p])
    /\ DOMAIN before \subseteq Page /\ \A p \in DOMAIN before : NodeOK(before[p])
    /\ DOMAIN cache \subseteq Page /\ \A p \in DOMAIN cache : NodeOK(cache[p])
    /\ MapsOK(maps) /\ CheckpointOK(slot) /\ epoch >= 0 /\ PutsOK(changed)
    /\ Len(log) <= LogSize /\ replayed \in 0 .. Len(Work)
    /\ \A i \in DOMAIN log : log[i].op \in {"write", "snapshot", "delete"}
    /\ phase \in {"up", "down", "replay"}
    /\ free \subseteq Page /\ limbo \subseteq Page
    /\ Cardinality(pending) <= 1
    /\ \A c \in pending :
        /\ CheckpointOK(c) /\ c.from \in 0 .. Len(log)
        /\ c.retired \subseteq Page /\ c.todo \subseteq Page

Retired == UNION {c.retired : c \in pending}

InUse == Logged(slot) \union UNION {Logged(c) : c \in pending}

Exact ==        \* Every page is held by a view, of an increment, freed or free, and only one of these.
    phase # "down" =>
        /\ Held(Nodes, maps) \union InUse = Page \ (free \union limbo \union Retired)
        /\ Held(Nodes, maps) \intersect InUse = {}
        /\ free \intersect (limbo \union Retired) = {}

Durable ==      \* What the newest checkpoint refers to is flushed, and never given out or written.
    LET saved == Held(disk, slot) \union Logged(slot)
    IN  /\ saved \intersect DOMAIN before = {}
        /\ phase # "down" => saved \intersect (free \union DOMAIN cache) = {}

RoomToReplay == \* Recovery never lacks pages.
    phase = "replay" /\ replayed < Len(Work) =>
        LET r == Work[replayed + 1] IN r.op = "write" => Cardinality(free) >= Copies(r.lba)

FrozenSlot ==   \* What the newest checkpoint reads as changes only when another one counts.
    [][slot' = slot => Saved(slot)' = Saved(slot)]_vars

Refines == Contract!Spec

Obeys ==        \* And each action does what the contract's of its name does.
    [][/\ \A lba \in LBA, value \in Value : DoWrite(lba, value) => Contract!Write(lba, [i \in {1} |-> value], "ok")
       /\ \A name \in Name : DoSnapshot(name) => Contract!Snapshot(name, "ok")
       /\ \A name \in Name : DoDelete(name) => Contract!Delete(name, "ok")
       /\ Recover => Contract!Crash("ok")]_vars

THEOREM Spec => Refines /\ Obeys /\ FrozenSlot /\ [](TypeOK /\ Exact /\ Durable /\ RoomToReplay)
=============================================================================
