--------------------- MODULE LogStructuredDiskSegments ----------------------
(***************************************************************************)
(* Chunks and segments of LogStructuredDisk: how a record changes the      *)
(* maps, and the background work of the disk on its chunks.                *)
(*                                                                         *)
(* A segment is free, then open while its one full-stripe write is in      *)
(* flight, then sealed, then dead when nothing in it is used, then free    *)
(* again.  A dead segment is freed only when nothing can still read it:    *)
(* neither a checkpoint that recovery may load, nor a read in flight       *)
(* (`Pinned`).                                                             *)
(*                                                                         *)
(* Space can always be freed (`Movable`): there is a segment whose chunks  *)
(* fit into the other free segments, together with all chunks that wait.   *)
(* No segment is opened if `Movable` would not hold afterwards.  So the    *)
(* last free segment is opened only for chunks whose move leaves another   *)
(* segment empty.                                                          *)
(***************************************************************************)
EXTENDS LogStructuredDiskLog

FreeSegments == {s \in Segment : state[s] = "free"}

InOrder(S) ==       \* 1 .. |S| -> S, the least first, of a set that fits into a segment.
    [i \in {j \in 1 .. Stripe : j <= Cardinality(S)} |-> CHOOSE x \in S : Cardinality({y \in S : y <= x}) = i]

\* @type: (Int -> $lsdPlace, Int) => Set(Int);
Housed(map, s) == {m \in DOMAIN map : map[m][1] = s}    \* The chunks that `map` has in segment s.

\* @type: (Int -> $lsdPlace, Set(Int)) => Bool;
House(map, sealing) ==      \* The middle map becomes `map`; usage and states follow.
    /\ middle' = map
    /\ usage' = [s \in Segment |-> usage[s] + Cardinality(Housed(map, s) \ Housed(middle, s))
                                            - Cardinality(Housed(middle, s) \ Housed(map, s))]
    /\ state' = [s \in Segment |->
        IF s \in sealing \/ state[s] = "sealed"
        THEN IF usage'[s] = 0 THEN "dead" ELSE "sealed"
        ELSE state[s]]

Fresh == Least(MBA \ (DOMAIN bank \union DOMAIN middle \union Range(stripe)))

Reclaimable == orphans       \* What Reclaim may drop next.

Waiting == DOMAIN bank \ (Reclaimable \union Range(stripe))     \* The chunks that need a place.

Moving(s) == Housed(middle, s) \ (orphans \union DOMAIN bank)     \* What has to move out of s.

Rest ==         \* What is left to move out of a segment that was cleaned in part.
    UNION {Moving(s) : s \in {x \in Segment : state[x] = "sealed" /\ Housed(middle, x) \intersect DOMAIN bank # {}}}

HasRoom ==      \* Is there room for one more chunk?  One free segment is kept for the cleaner.
    Cardinality(DOMAIN bank \ Range(stripe)) + Coming < Room(Cardinality(FreeSegments) - 1)

Movable ==      \* All that needs a place, and all that is in some segment, fits into the other free segments.
    \E s \in Segment :
        LET inside == Housed(middle, s) \ (orphans \union Range(stripe))
        IN  /\ state[s] # "open"
            /\ Cardinality(Waiting \union Rest \union inside) + Coming <= Room(Cardinality(FreeSegments \ {s}))
----------------------------------------------------------------------------
(* What a record does to the maps and to the chunks.                       *)

\* @type: $disk => Set(Int);
Lost(new) == Referred(maps) \ Referred(new)     \* What no view refers to once the maps are `new`.

Unbanked(gone) == Without(bank, gone)           \* The bank without the MBAs `gone`.

\* @type: ($lsdRecord, Set(Int)) => Set(Int);
Dropped(r, lost) ==     \* The lost chunks that the record r itself drops.  The others become orphans.
    IF r.op \in {"write", "unmap"} THEN lost ELSE {}

\* @type: $lsdRecord => Bool;
Apply(r) ==     \* What a write or an unmap replaces is dropped; a view that goes leaves orphans.
    LET new == Edited(maps, r, Fresh, Hole)
        dropped == Dropped(r, Lost(new))
        written == [m \in {x \in {Fresh} : r.op = "write"} |-> r.value]
    IN  /\ maps' = new
        /\ bank' = Over(written, Unbanked(dropped))
        /\ House(Without(middle, dropped), {})
        /\ orphans' = orphans \union (Lost(new) \ dropped)
----------------------------------------------------------------------------
(* Destage.                                                                *)

InOneSegment(n) == IF n < Room(1) THEN n ELSE Room(1)    \* As many of n chunks as one segment takes.

Choices == SUBSET Waiting       \* What a segment may be opened for.

Open(s) ==      \* A full-stripe write into a free segment begins, of as much as waits and fits.
    /\ phase = "up"
    /\ DOMAIN stripe = {}
    /\ Waiting # {}
    /\ FreeSegments # {} /\ s = Least(FreeSegments)
    /\ \E chosen \in Choices :
        /\ Cardinality(chosen) = InOneSegment(Cardinality(Waiting))
        /\ stripe' = InOrder(chosen)
    /\ state' = [state EXCEPT ![s] = "open"]
    /\ UNCHANGED <<media, inFlight, phase, end, maps, middle, bank, orphans, usage, pending, requests>>
    /\ Movable'     \* Room that others count on is not wasted.

Landed(i) == stripe[i] \in DOMAIN bank      \* Was it not dropped while it was being written?

Destage ==      \* The full-stripe write is complete.
    LET s == CHOOSE x \in Segment : state[x] = "open"
        landed == {i \in DOMAIN stripe : Landed(i)}
        moved == {stripe[i] : i \in landed}
        \* @type: Int -> $lsdPlace;
        places == [m \in moved |-> <<s, CHOOSE i \in landed : stripe[i] = m>>]
    IN  /\ phase = "up"
        /\ DOMAIN stripe # {}
        /\ data' = [p \in PBA |->
            CASE p[1] # s -> data[p]
              [] p[2] \in DOMAIN stripe /\ stripe[p[2]] \in DOMAIN bank -> bank[stripe[p[2]]]
              [] OTHER -> Nothing]
        /\ unflushed' = unflushed \union {s}
        /\ House(Over(places, middle), {s})
        /\ bank' = Without(bank, moved)
        /\ stripe' = Empty(Hole)
        /\ UNCHANGED <<log, checkpoints, generation, tail, phase, end, maps, orphans, pending, requests>>
----------------------------------------------------------------------------
(* Cleaner, reclaim.                                                       *)

Copy(m) == data[middle[m]]      \* What the cleaner reads to move m.

Parts(s) == SUBSET Moving(s) \ {{}}     \* What one step may move out of s.

Clean(s) ==     \* Some of what is used in s moves: it goes through the bank again.
    /\ phase = "up"
    /\ state[s] = "sealed"
    /\ usage[s] < Room(1)
    /\ Rest \subseteq Moving(s)     \* One segment after the other.
    /\ Cardinality(Waiting \union Moving(s)) + Coming <= Room(Cardinality(FreeSegments))
    /\ \E moving \in Parts(s) :
        bank' = Over([m \in moving |-> Copy(m)], bank)
    /\ UNCHANGED <<media, inFlight, phase, end, maps, middle, orphans, usage, state, stripe,
                   pending, requests>>

Reclaim ==      \* Chunks that only deleted views had are dropped, one a step.
    /\ phase = "up"
    /\ \E m \in Reclaimable :
        /\ orphans' = orphans \ {m}
        /\ bank' = Unbanked({m})
        /\ House(Without(middle, {m}), {})
    /\ UNCHANGED <<media, inFlight, phase, end, maps, stripe, pending, requests>>

Free(s) ==       \* A dead segment becomes free, and is trimmed.
    /\ phase = "up"
    /\ state[s] = "dead"
    /\ s \notin Pinned
    /\ state' = [state EXCEPT ![s] = "free"]
    /\ data' = [p \in PBA |-> IF p[1] = s THEN Nothing ELSE data[p]]
    /\ unflushed' = unflushed \ {s}
    /\ UNCHANGED <<log, checkpoints, generation, tail, phase, end, maps, middle, bank, orphans,
                   usage, stripe, pending, requests>>
=============================================================================
