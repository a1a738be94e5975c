---------------------------- MODULE APSharedTree ----------------------------
(***************************************************************************)
(* Why SharedTree is right, however long it runs: an inductive invariant   *)
(* that tells why the birth test and the neighbour test suffice.  It holds *)
(* at first (--init=Init --inv=IndInv --length=0), it implies what the     *)
(* spec promises (--init=Start --inv=Safety --length=0), and each action   *)
(* keeps both halves of it, what it says of the maps now and of those that *)
(* the checkpoint keeps (--init=StartNow --next=Reclaim --inv=Now          *)
(* --length=1, and so on: models.toml); --cinit=Four, =Six or =Two.        *)
(* It is about states of at most three views; epochs are any integers.     *)
(* TLC checks that it holds in the states of MCSharedTreeInvariant.        *)
(*                                                                         *)
(* To Apalache a walk from a root is dear, and comparing integers is not:  *)
(* so the walks are done once, into a list of who holds what, and the      *)
(* invariant compares the records of that list.                            *)
(***************************************************************************)
EXTENDS SharedTree

Constants ==
    /\ Fanout = 1
    /\ Value = {0, 1}
    /\ Zero = 0
    /\ Name = {"a"}
    /\ Profile = "prefix"

Four == Leaves = 1 /\ Address = 1 .. 4 /\ Constants
Six == Leaves = 1 /\ Address = 1 .. 6 /\ Constants     \* A path that a snapshot holds, and a copy of it.
Two == Leaves = 2 /\ Address = 1 .. 6 /\ Constants

(* Of either m, `maps` or `saved`.                                         *)

Birth(a) == IF a = Nil THEN Nil ELSE node[a].born

\* @type: ($stMaps, Int) => Set($stHeld);
Level(m, h) ==  \* The nodes of that height by holder: the node, its birth, that of the node over it; the parent.
    LET \* @type: (Int, Int) => $stHeld;
        Entry(v, lba) ==
            LET a == IF Passed(m, v, lba, h) THEN Nil ELSE At(Root(m, v), lba, h)
            IN  [view |-> v, last |-> lba, height |-> h, node |-> a, born |-> Birth(a),
                 over |-> IF h = 2 THEN Birth(a) ELSE Birth(At(Root(m, v), lba, h + 1)),
                 parent |-> Parent(m, v, lba, h)]
    IN  {x \in {Entry(v, lba) : v \in DOMAIN m.view, lba \in {l \in LBA : Last(l, h) = l}} : x.node # Nil}

\* @type: $stMaps => Set($stHeld);
Holdings(m) ==  \* The holders of nodes.  A place is named by the last block under it.
    Level(m, 0) \union Level(m, 1) \union Level(m, 2)

\* @type: $stMaps => Bool;
Family(m) ==    \* A tree of views, which go on from older ones: each is live, a snapshot, or waits, once.
    LET queued == {m.queue[i] : i \in DOMAIN m.queue}
        named == {m.names[n] : n \in DOMAIN m.names}
    IN  /\ DOMAIN m.view = {m.live} \union named \union queued
        /\ m.live \notin named \union queued
        /\ named \intersect queued = {}
        /\ \A i, j \in DOMAIN m.queue : m.queue[i] = m.queue[j] => i = j
        /\ \A i, j \in DOMAIN m.names : m.names[i] = m.names[j] => i = j
        /\ \A v \in DOMAIN m.view :
            /\ Nil < v /\ v <= m.live
            /\ m.view[v].parent < v
            /\ m.view[v].parent \in DOMAIN m.view \union {Nil}
        /\ m.cursor \in LBA
        /\ m.queue = <<>> => m.cursor = 0

\* @type: ($stMaps, Set($stHeld), Set(Int)) => Bool;
Sound(m, held, unused) ==
    /\ Family(m)
    \* A node has one place, and refers to older ones.
    /\ \A x, y \in held : x.node = y.node => x.last = y.last /\ x.height = y.height
    /\ \A x \in held : x.node \in Address /\ Nil < x.born /\ x.born <= x.over /\ x.born <= x.view
    \* The birth test: what a view holds was born while it was live, or its parent holds it.
    /\ \A x \in held : x.born <= x.parent => \E y \in held : y.view = x.parent /\ y.node = x.node
    \* The neighbour test: views that hold a node which their parents do not have one parent.
    /\ \A x, y \in held : x.node = y.node /\ x.born > x.parent /\ y.born > y.parent => x.parent = y.parent
    /\ {x.node : x \in held} = Address \ unused

Between ==      \* Nothing is given out that a crash goes back to.
    /\ saved.live <= maps.live
    /\ maps.free \intersect limbo = {}
    /\ maps.free \subseteq saved.free

\* @type: Set($stHeld) => Bool;
Frozen(kept) == \A x \in kept : x.born < saved.live     \* Nor is any of it live's to change.

IndInv ==
    LET now == Holdings(maps)
        kept == Holdings(saved)
    IN  Sound(maps, now, maps.free \union limbo) /\ Sound(saved, kept, saved.free) /\ Between /\ Frozen(kept)

(* Its halves, to be asked after a step: without LET, Apalache asks for each conjunct by itself.           *)
Now == Sound(maps, Holdings(maps), maps.free \union limbo) /\ Between
Kept == Sound(saved, Holdings(saved), saved.free) /\ Frozen(Holdings(saved))

Safety == Exact /\ Durable /\ Named /\ Downwards
----------------------------------------------------------------------------
(* Any state of at most three views, as far as types go.  What survivors   *)
(* holds, no guard and no promise here asks.                               *)

\* @type: $stMaps => Bool;
Any(m) ==
    \E live \in Int, cursor \in LBA, free \in SUBSET Address,
       older \in [1 .. 2 -> Int], some \in SUBSET (1 .. 2),
       root \in [0 .. 2 -> Address \union {Nil}], parent \in [0 .. 2 -> Int],
       names \in SUBSET Name, named \in [Name -> Int],
       waits \in [1 .. 2 -> Int], waiting \in 0 .. 2 :
        LET Nth(v) == CASE v = older[1] -> 1 [] v = older[2] -> 2 [] OTHER -> 0
        IN  /\ older[1] < older[2] /\ older[2] < live
            /\ m = [live |-> live, cursor |-> cursor, free |-> free,
                    view |-> [v \in {live} \union {older[i] : i \in some} |->
                                [root |-> root[Nth(v)], parent |-> parent[Nth(v)]]],
                    names |-> [n \in names |-> named[n]],
                    queue |-> SubSeq(<<waits[1], waits[2]>>, 1, waiting)]

Anything ==
    /\ \E born \in [Address -> Int], data \in [Address -> Value], kids \in [Address -> [Slot -> Address \union {Nil}]] :
        node = [a \in Address |-> [born |-> born[a], data |-> data[a], kids |-> kids[a]]]
    /\ Any(maps)
    /\ Any(saved)
    /\ limbo \in SUBSET Address
    /\ survivors = {}

Start == Anything /\ IndInv

(* An action needs no more than one half of it, and what is between them.  *)

StartNow ==
    /\ Anything
    /\ LET now == Holdings(maps) IN Sound(maps, now, maps.free \union limbo)
    /\ Between

StartKept ==
    /\ Anything
    /\ LET kept == Holdings(saved) IN Sound(saved, kept, saved.free) /\ Frozen(kept)
    /\ Between
----------------------------------------------------------------------------
(* The actions, each by itself.  What the checkpoint keeps is of `saved`   *)
(* and `node` alone, which only writes, unmaps and checkpoints change.     *)

Writes == \E lba \in LBA, value \in Value : Write(lba, value)
Unmaps == \E lba \in LBA : Unmap(lba)
Snapshots == \E name \in Name : Snapshot(name)
Deletes == \E name \in Name : Delete(name)
Reverts == \E name \in Name : Revert(name)
=============================================================================
