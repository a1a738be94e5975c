-------------------- MODULE MCLogStructuredDiskInductive --------------------
(***************************************************************************)
(* Does every step keep the invariant of APLogStructuredDisk?  TLC takes   *)
(* one step from each of a sample of the states of a tiny disk that        *)
(* satisfy it, reachable or not.  A sample, for there are too many: which  *)
(* one follows from TLC's seed, which is fixed.                            *)
(***************************************************************************)
EXTENDS APLogStructuredDisk, Randomization

VARIABLE taken      \* Has the step been taken?

Some == 3           \* How many are drawn of the checkpoints, and of the memories.

Partial(S, T) == UNION {[U -> T] : U \in SUBSET S}

Address == 1 .. 2

Views == [live : [LBA -> Address \union {Hole}], snaps : Partial(Name, [LBA -> Address \union {Hole}])]

Houses == {map \in Partial(Address, PBA) : \A m, n \in DOMAIN map : map[m] = map[n] => m = n}

Checkpoint(serial) ==
    {c \in [serial : {serial}, from : 0 .. serial - 1, generation : {1}, maps : Views,
            middle : Houses, orphans : SUBSET Address] :
        /\ DOMAIN c.middle \subseteq Referred(c.maps) \union c.orphans
        /\ c.orphans \subseteq DOMAIN c.middle
        /\ Referred(c.maps) \intersect c.orphans = {}}

Memory ==
    {m \in [maps : Views, middle : Houses, bank : Partial(Address, {Zero}), orphans : SUBSET Address] :
        /\ DOMAIN m.middle \union DOMAIN m.bank = Referred(m.maps) \union m.orphans
        /\ Referred(m.maps) \intersect m.orphans = {}}

Drawn(S) == IF Cardinality(S) > Some THEN RandomSubset(Some, S) ELSE S

Ops == [op : {"write", "unmap"} \union (IF Name = {} THEN {} ELSE {"snapshot", "delete", "revert"}),
        lba : {0}, value : {Zero}, name : Name \union {""}, generation : {1}, whole : {TRUE}]

Sample ==
    /\ generation = 1
    /\ checkpoints \in {[i \in 1 .. 2 |-> IF i = 1 THEN c ELSE NoCheckpoint] : c \in
            Drawn({x \in Checkpoint(1) : Referred(x.maps) \subseteq DOMAIN x.middle})}
    /\ pending \in {NoCheckpoint} \union Drawn(Checkpoint(2))
    /\ phase \in (IF pending.serial > 0 THEN {"up"} ELSE {"up", "replay", "down"})
    /\ log \in Partial({1}, Ops)
    /\ tail \in Partial({1}, Ops)
    /\ end \in 0 .. 1
    /\ flushes = {}
    /\ Logged
    /\ \E m \in (IF phase = "down" THEN {[maps |-> Blank, middle |-> Empty(<<0, 0>>), bank |-> Empty(Zero),
                                           orphans |-> {}]}
                 ELSE Drawn(Memory)) :
        maps = m.maps /\ middle = m.middle /\ bank = m.bank /\ orphans = m.orphans
    /\ usage = [s \in Segment |-> Cardinality(Housed(middle, s))]
    /\ \E idle \in [Segment -> {"free", "open", "dead"}] :
        state = [s \in Segment |-> IF usage[s] > 0 THEN "sealed" ELSE idle[s]]
    /\ stripe \in Partial(1 .. Stripe, 1 .. 3)
    /\ phase = "down" \/ Opened
    /\ phase = "down" => DOMAIN stripe = {} /\ \A s \in Segment : state[s] = "free"
    /\ data = [p \in PBA |-> IF p \in Range(middle) \union Range(Newest.middle) \union Range(pending.middle)
                             THEN Zero ELSE Nothing]
    /\ reads \in {{}} \union {{[place |-> p, value |-> Zero]} : p \in {q \in PBA : data[q] = Zero}}
    /\ phase = "down" \/ \A s \in Pinned : state[s] \in {"sealed", "dead"}
    /\ unflushed \in SUBSET (Segment \ Pinned)
    /\ IndInv
    /\ taken = FALSE

Step == ~ taken /\ taken' = TRUE /\ Next
=============================================================================
