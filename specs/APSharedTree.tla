---------------------------- MODULE APSharedTree ----------------------------
(***************************************************************************)
(* Why SharedTree is right, however long it runs: an inductive invariant   *)
(* that tells why the birth test and the neighbour test suffice.  It holds *)
(* at first (--init=Init --inv=IndInv --length=0), every step keeps it     *)
(* (--init=Start --inv=IndInv --length=1), and it implies what the spec    *)
(* promises (--init=Start --inv=Safety --length=0); --cinit=ConstInit.     *)
(* It is about states of at most three views; epochs are any integers.     *)
(* TLC checks that it holds in the states of MCSharedTreeInvariant.        *)
(***************************************************************************)
EXTENDS SharedTree

ConstInit ==
    /\ Leaves = 2
    /\ Fanout = 1
    /\ Value = {0, 1}
    /\ Zero = 0
    /\ Name = {"a"}
    /\ Address = 1 .. 6
    /\ Profile = "prefix"

\* @type: ($stMaps, Int, <<Int, Int>>) => Int;
Mine(m, v, p) == At(Root(m, v), p[1], p[2])     \* What v holds at a place.

\* @type: ($stMaps, Int, <<Int, Int>>) => Int;
Above(m, v, p) == Parent(m, v, p[1], p[2])

\* @type: $stMaps => Bool;
Formed(m) ==    \* Views go on from older ones; nodes have the kids that their height has.
    /\ m.live \in DOMAIN m.view
    /\ \A v \in DOMAIN m.view :
        /\ v <= m.live
        /\ m.view[v].parent < v
        /\ m.view[v].parent \in DOMAIN m.view \union {Nil}
        /\ \A p \in Places(m, v) : p[2] > 0 /\ Mine(m, v, p) # Nil =>
            DOMAIN node[Mine(m, v, p)].kids =
                CASE p[2] = 2 -> 0 .. Leaves - 1 [] p[2] = 1 -> 0 .. Fanout - 1
    /\ m.cursor \in LBA
    /\ m.queue = <<>> => m.cursor = 0

\* @type: $stMaps => Bool;
OnePlace(m) ==  \* A node has one place in whatever trees.
    \A v, w \in DOMAIN m.view : \A p \in Places(m, v), q \in Places(m, w) :
        Mine(m, v, p) # Nil /\ Mine(m, v, p) = Mine(m, w, q) =>
            p[2] = q[2] /\ Last(p[1], p[2]) = Last(q[1], q[2])

\* @type: $stMaps => Bool;
Born(m) ==      \* What a view holds was born while it was live, or its parent holds it: the birth test.
    \A v \in DOMAIN m.view : \A p \in Places(m, v) :
        LET a == Mine(m, v, p)
        IN  a # Nil =>
            /\ node[a].born <= v
            /\ node[a].born <= Above(m, v, p) => a = Mine(m, Above(m, v, p), p)

\* @type: $stMaps => Bool;
Family(m) ==    \* Views that hold a node which their parents do not have one parent: the neighbour test.
    \A v, w \in DOMAIN m.view : \A p \in Places(m, v) \intersect Places(m, w) :
        LET a == Mine(m, v, p)
            Top(u) == node[a].born > Above(m, u, p)
        IN  a # Nil /\ a = Mine(m, w, p) /\ Top(v) /\ Top(w) => Above(m, v, p) = Above(m, w, p)

\* @type: $stMaps => Bool;
NamedAll(m) ==  \* Named, of either.
    LET queued == {m.queue[i] : i \in DOMAIN m.queue}
        named == {m.names[n] : n \in DOMAIN m.names}
    IN  /\ DOMAIN m.view = {m.live} \union named \union queued
        /\ Cardinality(DOMAIN m.view) = 1 + Cardinality(DOMAIN m.names) + Len(m.queue)

\* @type: $stMaps => Bool;
Older(m) ==     \* Downwards, of either.
    \A v \in DOMAIN m.view : \A p \in Places(m, v) :
        p[2] < 2 /\ Mine(m, v, p) # Nil =>
            node[Mine(m, v, p)].born <= node[Mine(m, v, <<p[1], p[2] + 1>>)].born

\* @type: $stMaps => Bool;
Sound(m) ==
    /\ Held(m) \subseteq Address
    /\ Formed(m) /\ NamedAll(m)
    /\ OnePlace(m) /\ Born(m) /\ Family(m) /\ Older(m)

Checkpointed == \* What a crash goes back to is sound, and none of it is live's to change.
    /\ Sound(saved)
    /\ saved.live <= maps.live
    /\ Held(saved) = Address \ saved.free
    /\ \A a \in Held(saved) : node[a].born < saved.live

IndInv == Sound(maps) /\ Checkpointed /\ Exact /\ Durable

Safety == Exact /\ Durable /\ Named /\ Downwards
----------------------------------------------------------------------------
(* Any state of at most three views, as far as types go: `maps` (1) and    *)
(* `saved` (2).  What survivors holds, no guard and no promise here asks.  *)

Anything ==
    /\ \E born \in [Address -> Int], data \in [Address -> Value],
          slots \in [Address -> {{}, 0 .. Leaves - 1, 0 .. Fanout - 1}],
          kid \in [Address \X (0 .. Size - 1) -> Address \union {Nil}] :
        node = [a \in Address |->
            [born |-> born[a], data |-> data[a], kids |-> [i \in slots[a] |-> kid[<<a, i>>]]]]
    /\ \E live \in [1 .. 2 -> Int], cursor \in [1 .. 2 -> Int], free \in [1 .. 2 -> SUBSET Address],
          epoch \in [(1 .. 2) \X (1 .. 3) -> Int], parent \in [(1 .. 2) \X (1 .. 3) -> Int],
          root \in [(1 .. 2) \X (1 .. 3) -> Address \union {Nil}],
          names \in [1 .. 2 -> SUBSET Name], taken \in [(1 .. 2) \X Name -> Int],
          waits \in [(1 .. 2) \X (1 .. 2) -> Int], waiting \in [1 .. 2 -> 0 .. 2] :
        LET Views(i) ==
                [v \in {epoch[<<i, j>>] : j \in 1 .. 3} |->
                    LET j == CHOOSE x \in 1 .. 3 : epoch[<<i, x>>] = v
                    IN  [root |-> root[<<i, j>>], parent |-> parent[<<i, j>>]]]
            Queue(i) == SubSeq(<<waits[<<i, 1>>], waits[<<i, 2>>]>>, 1, waiting[i])
            Maps(i) == [live |-> live[i], view |-> Views(i), names |-> [n \in names[i] |-> taken[<<i, n>>]],
                        queue |-> Queue(i), cursor |-> cursor[i], free |-> free[i]]
        IN  maps = Maps(1) /\ saved = Maps(2)
    /\ limbo \in SUBSET Address
    /\ survivors = {}

Start == Anything /\ IndInv
=============================================================================
