---------------------------- MODULE SharedTree -----------------------------
(***************************************************************************)
(* The logical maps as copy-on-write trees that share nodes: who may       *)
(* change a node in place, and who frees it.                               *)
(*                                                                         *)
(* A tree is a root, its leaves, and their chunks of data; a chunk is      *)
(* shared and freed as any node is.  Time is cut into epochs: a snapshot,  *)
(* a revert and a checkpoint each begin a new one.  A node carries the     *)
(* epoch of its birth; a view is named by the last epoch in which it was   *)
(* live, so the live view is named by the current one.  Views form a tree: *)
(* the parent of a view is the snapshot that it went on from.              *)
(*                                                                         *)
(* - Ownership: the live view changes a node in place iff it was born in   *)
(*   this epoch.  A snapshot or the checkpoint may refer to an older one.  *)
(* - Freeing: a node that a view gives up is held by the parent iff it was *)
(*   born no later than the parent's epoch; by a child, or by a sibling,   *)
(*   iff a walk to the same place meets it there.  Else no view holds it.  *)
(*   On a chain there are no siblings.  They come from a revert: if the    *)
(*   snapshot that was reverted to is deleted, the views that came from it *)
(*   share nodes without it.                                               *)
(* - Deletion: a deleted view waits in a queue, and is reclaimed in steps. *)
(*   It does not hold what lies wholly below its cursor.                   *)
(* - Durability: a freed node is used again only after a checkpoint.       *)
(*                                                                         *)
(* Left out: trees of more levels (the rules do not mention the height),   *)
(* the steps of a checkpoint and the log that saves what came after it     *)
(* (LogStructuredDisk): here a crash goes back to the checkpoint.          *)
(*                                                                         *)
(* How to break it: drop the sibling from Near, or let Owned say that live *)
(* owns what was born after its parent; then run MCSharedTree.             *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, typedefs

CONSTANTS
    \* @type: Int;
    Leaves,     \* How many leaves a root has.
    \* @type: Int;
    Fanout,     \* How many chunks a leaf has.
    \* @type: Set(Int);
    Value,      \* What a block may hold.
    \* @type: Int;
    Zero,       \* What a block holds that no chunk stands for.
    \* @type: Set(Str);
    Name,       \* The names that a snapshot may have.
    \* @type: Set(Int);
    Address,    \* Where a node may be: positive integers.
    \* @type: Str;
    Profile     \* What a crash keeps: "prefix"; or, where there is none, "ack".

VARIABLES       \* On disk, and in the cache of it.
    \* @type: Int -> $stNode;
    node,       \* What stands at an address: [born |-> epoch, kids |-> index -> address, data |-> Value].
    \* @type: $stMaps;
    saved       \* The newest durable checkpoint: what `maps` was then.

VARIABLES       \* In memory.
    \* @type: $stMaps;
    maps,       \* live: the current epoch, which names the live view.  view: epoch -> [root, parent].
                \* names: a snapshot's name -> epoch.  queue: the deleted views.  cursor: the first
                \* block that is not reclaimed of the head of the queue.  free: addresses to give out.
    \* @type: Set(Int);
    limbo       \* Addresses freed since the checkpoint, which may still refer to them.

VARIABLES       \* History, for the refinement only.
    \* @type: Set($image);
    survivors   \* What a crash may leave: the contract's.

vars == <<node, saved, maps, limbo, survivors>>

Nil == 0        \* No address, and no epoch.
Size == Leaves * Fanout
LBA == 0 .. Size - 1
Height == 0 .. 2    \* Of a chunk, a leaf, a root.
Slot == 0 .. Size - 1   \* More than a node of any height needs: all nodes are alike.
NoKids == [i \in Slot |-> Nil]

ASSUME Zero \in Value
ASSUME Profile \in {"prefix", "ack"}
ASSUME \A a \in Address : a > Nil
----------------------------------------------------------------------------
(* A walk.                                                                 *)

Kid(a, i) == IF a = Nil THEN Nil ELSE node[a].kids[i]

At(root, lba, h) ==     \* The node of height h on the way from a root to a block.
    LET leaf == Kid(root, lba \div Fanout)
    IN  CASE h = 2 -> root
          [] h = 1 -> leaf
          [] h = 0 -> Kid(leaf, lba % Fanout)

Image(root) ==          \* What a tree reads as.
    [lba \in LBA |-> LET a == At(root, lba, 0) IN IF a = Nil THEN Zero ELSE node[a].data]

Last(lba, h) ==         \* The last block under that node.
    CASE h = 2 -> Size - 1
      [] h = 1 -> (lba \div Fanout) * Fanout + Fanout - 1
      [] h = 0 -> lba
----------------------------------------------------------------------------
(* Who holds a node.  In all of this m is `maps` or `saved`.               *)

\* @type: ($stMaps, Int) => Int;
Root(m, v) == m.view[v].root

\* @type: ($stMaps, Int, Int, Int) => Bool;
Passed(m, v, lba, h) ==     \* The cursor has passed that node: v, deleted, holds it no more.
    /\ m.queue # <<>>
    /\ v = Head(m.queue)
    /\ Last(lba, h) < m.cursor

\* @type: ($stMaps, Int, Int, Int) => Int;
Parent(m, v, lba, h) ==     \* The nearest ancestor that has not been reclaimed there.
    LET p == m.view[v].parent
    IN  IF p # Nil /\ Passed(m, p, lba, h) THEN m.view[p].parent ELSE p

\* @type: ($stMaps, Int, Int, Int) => Set(Int);
Near(m, v, lba, h) ==       \* The children and the siblings of v there.
    {w \in DOMAIN m.view \ {v} :
        /\ ~Passed(m, w, lba, h)
        /\ Parent(m, w, lba, h) \in {v, Parent(m, v, lba, h)}}

\* @type: ($stMaps, Int, Int, Int) => Bool;
Shared(m, v, lba, h) ==     \* Another view holds the node that v holds there.
    LET a == At(Root(m, v), lba, h)
    IN  \/ node[a].born <= Parent(m, v, lba, h)
        \/ \E w \in Near(m, v, lba, h) : At(Root(m, w), lba, h) = a

\* @type: ($stMaps, Int, Int, Set(Int)) => Set(Int);
GivenUp(m, v, lba, heights) ==      \* What to free when v gives up those nodes.
    {At(Root(m, v), lba, h) : h \in {i \in heights :
        At(Root(m, v), lba, i) # Nil /\ ~Shared(m, v, lba, i)}}
----------------------------------------------------------------------------
(* The contract that this refines.                                         *)

\* @type: $stMaps => $disk;
Disk(m) ==
    [live |-> Image(Root(m, m.live)),
     snaps |-> [n \in DOMAIN m.names |-> Image(Root(m, m.names[n]))]]

Contract == INSTANCE VirtualDisk WITH
    Holds <- 0, disk <- Disk(maps), power <- TRUE

\* @type: $disk => Bool;
Survives(d) == survivors' = Contract!Recorded(d)
----------------------------------------------------------------------------
(* Writes.  The path to the block is copied, save the nodes that live owns.*)
(* A chunk is never changed: each write has a fresh one.                   *)

Owned(a) == a # Nil /\ node[a].born = maps.live

First(addresses) == CHOOSE a \in addresses : \A b \in addresses : a <= b

Fresh == First(maps.free)       \* For a chunk.

Copy(a, slot, kid) ==           \* A node with one kid replaced.
    LET kids == IF a = Nil THEN NoKids ELSE node[a].kids
    IN  [born |-> maps.live, kids |-> [kids EXCEPT ![slot] = kid], data |-> Zero]

Put(lba, chunk, value) ==
    LET root == At(Root(maps, maps.live), lba, 2)
        leaf == At(Root(maps, maps.live), lba, 1)
        room == maps.free \ {chunk}
        newLeaf == IF Owned(leaf) THEN leaf ELSE First(room)
        newRoot == IF Owned(root) THEN root ELSE First(room \ {newLeaf})
        replaced == {h \in Height : \/ h = 0
                                    \/ h = 1 /\ newLeaf # leaf
                                    \/ h = 2 /\ newRoot # root}
    IN  /\ Cardinality(maps.free) >= Cardinality(Height)
        /\ node' = [a \in Address |->
                CASE a = newRoot -> Copy(root, lba \div Fanout, newLeaf)
                  [] a = newLeaf -> Copy(leaf, lba % Fanout, chunk)
                  [] a = chunk   -> [born |-> maps.live, kids |-> NoKids, data |-> value]
                  [] OTHER       -> node[a]]
        /\ limbo' = limbo \union GivenUp(maps, maps.live, lba, replaced)
        /\ maps' = [maps EXCEPT !.view[maps.live].root = newRoot,
                                !.free = @ \ {newRoot, newLeaf, chunk}]
        /\ saved' = saved
        /\ Survives(Disk(maps)')

Write(lba, value) ==        \* Zeroes are unmapped.
    /\ value # Zero
    /\ LET chunk == Fresh IN Put(lba, chunk, value)

Unmap(lba) ==
    /\ At(Root(maps, maps.live), lba, 0) # Nil
    /\ Put(lba, Nil, Zero)
----------------------------------------------------------------------------
(* Snapshots: roots and epochs, no node.                                   *)

Begin(root, parent) ==      \* The views, with the live view of a new epoch.
    [v \in DOMAIN maps.view \union {maps.live + 1} |->
        IF v = maps.live + 1 THEN [root |-> root, parent |-> parent] ELSE maps.view[v]]

Snapshot(name) ==
    /\ name \notin DOMAIN maps.names
    /\ maps' = [maps EXCEPT !.live = @ + 1,
                            !.view = Begin(Root(maps, maps.live), maps.live),
                            !.names = [n \in DOMAIN @ \union {name} |->
                                        IF n = name THEN maps.live ELSE @[n]]]
    /\ UNCHANGED <<node, saved, limbo>>
    /\ Survives(Disk(maps)')

Delete(name) ==
    /\ name \in DOMAIN maps.names
    /\ maps' = [maps EXCEPT !.names = [n \in DOMAIN @ \ {name} |-> @[n]],
                            !.queue = Append(@, maps.names[name])]
    /\ UNCHANGED <<node, saved, limbo>>
    /\ Survives(Disk(maps)')

Revert(name) ==     \* What was live is deleted.
    /\ name \in DOMAIN maps.names
    /\ LET s == maps.names[name]
       IN  maps' = [maps EXCEPT !.live = @ + 1,
                                !.view = Begin(Root(maps, s), s),
                                !.queue = Append(@, maps.live)]
    /\ UNCHANGED <<node, saved, limbo>>
    /\ Survives(Disk(maps)')
----------------------------------------------------------------------------
(* Reclaim: one block of the first view that waits, or all the blocks under*)
(* a node that others hold.  A node goes with its last block, and the view *)
(* with its root.                                                          *)

End(v, lba) ==      \* The last block of the step that begins at lba.
    LET NotAlone(h) == At(Root(maps, v), lba, h) = Nil \/ Shared(maps, v, lba, h)
    IN  Last(lba, CASE NotAlone(2) -> 2 [] ~NotAlone(2) /\ NotAlone(1) -> 1 [] OTHER -> 0)

Forget(v) ==    \* The views without v, whose children go to its parent.
    [w \in DOMAIN maps.view \ {v} |->
        [maps.view[w] EXCEPT !.parent = IF @ = v THEN maps.view[v].parent ELSE @]]

Reclaim ==
    /\ maps.queue # <<>>
    /\ LET v == Head(maps.queue)
           end == End(v, maps.cursor)
       IN  /\ limbo' = limbo \union GivenUp(maps, v, end, {h \in Height : Last(end, h) = end})
           /\ maps' = IF end < Size - 1
                      THEN [maps EXCEPT !.cursor = end + 1]
                      ELSE [maps EXCEPT !.cursor = 0, !.queue = Tail(@), !.view = Forget(v)]
    /\ UNCHANGED <<node, saved, survivors>>
----------------------------------------------------------------------------
(* Checkpoint and crash.                                                   *)

Checkpoint ==
    /\ saved' = [maps EXCEPT !.live = @ + 1,
                             !.view = [v \in (DOMAIN @ \ {maps.live}) \union {maps.live + 1} |->
                                        IF v = maps.live + 1 THEN @[maps.live] ELSE @[v]],
                             !.free = @ \union limbo]
    /\ maps' = saved'
    /\ limbo' = {}
    /\ node' = node
    /\ survivors' = {Contract!Exactly(Disk(maps))}

Crash ==
    /\ maps' = saved
    /\ limbo' = {}
    /\ UNCHANGED <<node, saved>>
    /\ survivors' = {Contract!Exactly(Disk(saved))}
----------------------------------------------------------------------------
\* @type: $stMaps;
Empty == [live |-> 1, view |-> [v \in {1} |-> [root |-> Nil, parent |-> Nil]],
          names |-> [n \in {} |-> Nil], queue |-> <<>>, cursor |-> 0, free |-> Address]

Init ==
    /\ node = [a \in Address |-> [born |-> Nil, kids |-> NoKids, data |-> Zero]]
    /\ maps = Empty
    /\ saved = Empty
    /\ limbo = {}
    /\ survivors = {Contract!Exactly(Disk(Empty))}

Next ==
    \/ \E lba \in LBA :
        \/ \E value \in Value : Write(lba, value)
        \/ Unmap(lba)
    \/ \E name \in Name : Snapshot(name) \/ Delete(name) \/ Revert(name)
    \/ Reclaim
    \/ Checkpoint
    \/ Crash

Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
(* What it promises.                                                       *)

\* @type: $stMaps => Bool;
MapsOK(m) ==
    /\ \A v \in DOMAIN m.view :
        /\ Nil < v /\ v <= m.live
        /\ m.view[v].root \in Address \union {Nil} /\ m.view[v].parent \in DOMAIN m.view \union {Nil}
    /\ DOMAIN m.names \subseteq Name /\ \A n \in DOMAIN m.names : m.names[n] \in DOMAIN m.view
    /\ \A i \in DOMAIN m.queue : m.queue[i] \in DOMAIN m.view
    /\ m.cursor \in LBA /\ m.free \subseteq Address

TypeOK ==
    /\ DOMAIN node = Address
    /\ \A a \in Address :
        /\ Nil <= node[a].born /\ node[a].data \in Value
        /\ DOMAIN node[a].kids = Slot /\ \A i \in Slot : node[a].kids[i] \in Address \union {Nil}
    /\ MapsOK(maps) /\ MapsOK(saved)
    /\ limbo \subseteq Address

\* @type: ($stMaps, Int) => Set(<<Int, Int>>);
Places(m, v) == {p \in LBA \X Height : ~Passed(m, v, p[1], p[2])}

\* @type: $stMaps => Set(Int);
Held(m) == UNION {{At(Root(m, v), p[1], p[2]) : p \in Places(m, v)} : v \in DOMAIN m.view} \ {Nil}

Exact ==        \* Every address is in use, freed or free; and in use is exactly what a view holds.
    /\ Held(maps) = Address \ (maps.free \union limbo)
    /\ maps.free \intersect limbo = {}

Durable ==      \* Nothing that the checkpoint refers to is given out.
    /\ Held(saved) \intersect maps.free = {}
    /\ maps.free \subseteq saved.free

Named ==        \* Every view is live, a snapshot, or waits to be reclaimed: once, all of them.
    /\ DOMAIN maps.view = {maps.live} \union {maps.names[n] : n \in DOMAIN maps.names}
                                       \union {maps.queue[i] : i \in DOMAIN maps.queue}
    /\ Cardinality(DOMAIN maps.view) = 1 + Cardinality(DOMAIN maps.names) + Len(maps.queue)

Downwards ==    \* No node is older than the nodes it refers to: a view that shares a node shares all below it.
    \A v \in DOMAIN maps.view : \A p \in Places(maps, v) :
        LET a == At(Root(maps, v), p[1], p[2])
        IN  p[2] < 2 /\ a # Nil => node[a].born <= node[At(Root(maps, v), p[1], p[2] + 1)].born

FrozenNodes ==  \* What a snapshot or the checkpoint holds is never changed in place.
    [][\A a \in Held(saved) \union Held([maps EXCEPT !.view = [v \in DOMAIN @ \ {maps.live} |-> @[v]]]) :
        node'[a] = node[a]]_vars

FreedOnce ==    \* What is freed was in use, and no view holds it any more.
    [][limbo' # {} => (limbo' \ limbo) \subseteq Held(maps) \ Held(maps)']_vars

FreeSnapshots ==    \* A snapshot operation touches no node.
    [][maps'.names # maps.names /\ maps' # saved => UNCHANGED <<node, limbo, maps.free>>]_vars

Refines == Contract!Spec

Obeys ==        \* And each action does what the contract's of its name does.
    [][/\ \A lba \in LBA :
            /\ \A value \in Value : Write(lba, value) => Contract!Write(lba, [i \in {1} |-> value], "ok")
            /\ Unmap(lba) => Contract!Unmap(lba, 1, "ok")
       /\ \A name \in Name :
            /\ Snapshot(name) => Contract!Snapshot(name, "ok")
            /\ Delete(name) => Contract!Delete(name, "ok")
            /\ Revert(name) => Contract!Revert(name, "ok")
       /\ Checkpoint => Contract!Flush("ok")
       /\ Crash => Contract!Crash("ok")]_vars

THEOREM Spec =>
    /\ Refines /\ Obeys
    /\ [](TypeOK /\ Exact /\ Durable /\ Named /\ Downwards)
    /\ FrozenNodes /\ FreedOnce /\ FreeSnapshots
=============================================================================
