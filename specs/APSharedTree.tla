---------------------------- MODULE APSharedTree ----------------------------
(***************************************************************************)
(* Why SharedTree is right, however long it runs: an invariant that tells  *)
(* why the birth test and the neighbour test suffice.  TLC checks that it  *)
(* holds in every state of a small model (MCSharedTreeInvariant).          *)
(***************************************************************************)
EXTENDS SharedTree

ConstInit ==
    /\ Leaves = 2
    /\ Fanout = 1
    /\ Value = {0, 1}
    /\ Zero = 0
    /\ Name = {"a", "b"}
    /\ Address = 1 .. 8
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
            DOMAIN node[Mine(m, v, p)].kids = 0 .. (IF p[2] = 2 THEN Leaves ELSE Fanout) - 1
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
Sound(m) == Formed(m) /\ OnePlace(m) /\ Born(m) /\ Family(m)

Checkpointed == \* What a crash goes back to is sound, and none of it is live's to change.
    /\ Sound(saved)
    /\ saved.live <= maps.live
    /\ Held(saved) = Address \ saved.free
    /\ \A a \in Held(saved) : node[a].born < saved.live

IndInv == Sound(maps) /\ Checkpointed /\ Exact /\ Durable /\ Named /\ Downwards
=============================================================================
