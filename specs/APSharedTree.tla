---------------------------- MODULE APSharedTree ----------------------------
(***************************************************************************)
(* Why SharedTree is right, however long it runs: an inductive invariant   *)
(* that tells why the birth test and the neighbour test suffice.  It holds *)
(* at first (--init=Init --inv=IndInv --length=0), every step keeps it     *)
(* (--init=Start --inv=IndInv --length=1), and it implies what the spec    *)
(* promises (--init=Start --inv=Safety --length=0); --cinit=One, or =Two.  *)
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

One == Leaves = 1 /\ Address = 1 .. 4 /\ Constants
Two == Leaves = 2 /\ Address = 1 .. 6 /\ Constants

(* Of either m, `maps` or `saved`.                                         *)

\* @type: ($stMaps, Int, Int, Int) => $stHeld;
Entry(m, v, lba, h) ==  \* What v holds there: the node, its birth, that of the node over it; v's parent there.
    LET a == IF Passed(m, v, lba, h) THEN Nil ELSE At(Root(m, v), lba, h)
        Birth(b) == IF a = Nil THEN Nil ELSE node[b].born
    IN  [view |-> v, last |-> lba, height |-> h, node |-> a, born |-> Birth(a),
         over |-> Birth(IF h = 2 THEN a ELSE At(Root(m, v), lba, h + 1)), parent |-> Parent(m, v, lba, h)]

\* @type: $stMaps => Set($stHeld);
Holdings(m) ==          \* Who holds what.  A place is named by the last block under it.
    LET places == {p \in LBA \X Height : Last(p[1], p[2]) = p[1]}
    IN  {x \in {Entry(m, v, p[1], p[2]) : v \in DOMAIN m.view, p \in places} : x.node # Nil}

\* @type: $stMaps => Bool;
Family(m) ==    \* A tree of views, which go on from older ones: each is live, a snapshot, or waits, once.
    LET queued == {m.queue[i] : i \in DOMAIN m.queue}
        named == {m.names[n] : n \in DOMAIN m.names}
    IN  /\ DOMAIN m.view = {m.live} \union named \union queued
        /\ Cardinality(DOMAIN m.view) = 1 + Cardinality(DOMAIN m.names) + Len(m.queue)
        /\ \A v \in DOMAIN m.view :
            /\ Nil < v /\ v <= m.live
            /\ m.view[v].parent < v
            /\ m.view[v].parent \in DOMAIN m.view \union {Nil}
        /\ m.cursor \in LBA
        /\ m.queue = <<>> => m.cursor = 0

\* @type: Set($stHeld) => Bool;
Trees(held) ==
    /\ \A x, y \in held : x.node = y.node => x.last = y.last /\ x.height = y.height     \* A node has one place.
    /\ \A x \in held :
        /\ x.node \in Address
        /\ Nil < x.born /\ x.born <= x.over /\ x.born <= x.view
        \* The birth test: what a view holds was born while it was live, or its parent holds it.
        /\ x.born <= x.parent => \E y \in held : y.view = x.parent /\ y.node = x.node
    \* The neighbour test: views that hold a node which their parents do not have one parent.
    /\ \A x, y \in held : x.node = y.node /\ x.born > x.parent /\ y.born > y.parent => x.parent = y.parent

IndInv ==
    LET now == Holdings(maps)
        kept == Holdings(saved)
    IN  /\ Family(maps) /\ Trees(now)
        /\ {x.node : x \in now} = Address \ (maps.free \union limbo)
        /\ maps.free \intersect limbo = {}
        \* What a crash goes back to: none of it is live's to change, and none is given out.
        /\ Family(saved) /\ Trees(kept)
        /\ saved.live <= maps.live
        /\ \A x \in kept : x.born < saved.live
        /\ {x.node : x \in kept} = Address \ saved.free
        /\ maps.free \subseteq saved.free

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
=============================================================================
