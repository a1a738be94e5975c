------------------------ MODULE MCLogStructuredDisk ------------------------
(***************************************************************************)
(* What TLC needs to exhaust LogStructuredDisk: a view, and bounds for     *)
(* liveness; and what a model says of itself (Tells).                      *)
(*                                                                         *)
(* The view.  Nothing in the spec depends on which MBA, segment or slot it *)
(* is (a choice among them is any, or the least of equals), on how large a *)
(* number is, or on what nothing refers to: data outside the middle maps,  *)
(* records before the newest checkpoint, the older slot.  So the view says *)
(* what each segment holds for whom, and leaves all these out.  The run    *)
(* LogStructuredDisk-plain does without, and finds the same.               *)
(***************************************************************************)
EXTENDS LogStructuredDiskRefinement, TLC

Rank(g) ==      \* A generation, by how many of those in use are lower.  None matters under "ack".
    LET used == {r.generation : r \in Range(log) \union Range(tail)}
                    \union {generation, Newest.generation, pending.generation}
    IN  IF Profile = "ack" THEN 0 ELSE Cardinality({x \in used : x < g})

Records(places) ==
    [p \in {q - Newest.from : q \in DOMAIN places} |->
        [places[p + Newest.from] EXCEPT !.generation = Rank(@)]]

Referrers(views, m) ==
    <<{l \in LBA : views.live[l] = m},
      {v \in (DOMAIN views.snaps) \X LBA : views.snaps[v[1]][v[2]] = m}>>

InMemory(m) ==
    <<Referrers(maps, m), m \in orphans, m \in Range(stripe),
      IF m \in DOMAIN bank THEN bank[m] ELSE Nothing>>

Saved(c, p) ==
    {<<Referrers(c.maps, m), m \in c.orphans>> : m \in {x \in DOMAIN c.middle : c.middle[x] = p}}

Chunk(p) ==
    <<data[p], {InMemory(m) : m \in {x \in DOMAIN middle : middle[x] = p}},
      Saved(Newest, p), Saved(pending, p), {r.value : r \in {x \in reads : x.place = p}}>>

Contained(s) ==
    LET used == Range(middle) \union Range(Newest.middle) \union Range(pending.middle)
                    \union {r.place : r \in reads}
    IN  {Chunk(p) : p \in {q \in used : q[1] = s}}

(* Leaves out what no action depends on: see above. *)
View ==
    <<phase,
      Records(Only(log, {p \in DOMAIN log : p > Newest.from})),
      Records(tail),
      Cardinality(Retained),
      IF phase = "down" THEN 0 ELSE end - Newest.from,
      Rank(generation),
      <<Rank(Newest.generation), DOMAIN Newest.maps.snaps, Cardinality(Newest.orphans)>>,
      IF pending.serial = 0 THEN <<>>
      ELSE <<pending.from - Newest.from, Rank(pending.generation), DOMAIN pending.maps.snaps,
             Cardinality(pending.orphans)>>,
      DOMAIN maps.snaps,
      {IF last <= end THEN 0 ELSE last - end : last \in flushes},
      Cardinality(orphans),
      Cardinality(DOMAIN stripe),
      {<<state[s], usage[s], s \in unflushed, Contained(s)>> : s \in Segment},
      Cardinality(FreeSegments),
      Cardinality({s \in Segment : state[s] = "dead"}),
      {InMemory(m) : m \in DOMAIN bank \ DOMAIN middle}>>

(* Nothing is unmapped, and no zero written: half as many states.  What an *)
(* unmap gives up, a write gives up as well; other models unmap.           *)
NeverZeroed == \A p \in DOMAIN tail' : tail'[p].op \in {"write", "unmap"} => tail'[p].value # Zero
----------------------------------------------------------------------------
(* What comes together in one state.  Tells is no property: it is always   *)
(* TRUE, and prints each pair of features once, when TLC first reaches it. *)
(* models.toml lists them (`reaches`), so that a model that is said to     *)
(* have two chunks has them.                                               *)

Features ==
    {f \in {"blocks", "chunks", "cleaner", "recovery", "snapshots"} :
        CASE f = "blocks"    -> \E l, k \in LBA : l # k /\ Hole \notin {maps.live[l], maps.live[k]}
          [] f = "chunks"    -> Cardinality(Referred(maps)) > 1
          [] f = "cleaner"   -> DOMAIN bank \intersect DOMAIN middle # {}    \* A chunk is on the move.
          [] f = "recovery"  -> phase = "replay" /\ end > Newest.from
          [] f = "snapshots" -> DOMAIN maps.snaps # {}}

Together == {S \in SUBSET Features : Cardinality(S) \in {1, 2}}

ASSUME TLCSet(1, {})    \* What has been told.

Tells ==
    LET new == Together \ TLCGet(1)
    IN  new # {} => TLCSet(1, TLCGet(1) \union new) /\ \A S \in new : PrintT(<<"reached", S>>)
----------------------------------------------------------------------------
(* Liveness, of histories with so many operations and crashes.  No view.   *)
(* Serial numbers go round: checkpoints do not end.                        *)

Operations == 2

Crashes == 1

RoundSerial == (Newest.serial % 3) + 1

RoundNewer ==
    CASE checkpoints[1].serial = 0 -> 2
      [] checkpoints[2].serial = 0 -> 1
      [] OTHER -> IF checkpoints[1].serial = (checkpoints[2].serial % 3) + 1 THEN 1 ELSE 2

Ends ==
    /\ \A p \in DOMAIN tail' : p <= Operations
    /\ phase' = "down" /\ phase = "up" => generation <= Crashes

BoundedSpec == Init /\ [][Next /\ Ends]_vars

LiveSpec == BoundedSpec /\ Fairness

(* From a disk of which each segment in use has one chunk to spare, all of *)
(* it in the checkpoint.  It is left alone, and cleans; or there are three *)
(* writes, too, and no power cut.                                          *)

Filled == Size          \* How many blocks have a chunk at first.

OneSegment == Stripe - 1

HalfFull ==
    LET places == [m \in 1 .. Filled |-> <<1 + (m - 1) \div (Stripe - 1), 1 + ((m - 1) % (Stripe - 1))>>]
        views == [Blank EXCEPT !.live = [l \in LBA |-> IF l < Filled THEN l + 1 ELSE Hole]]
    IN  /\ generation = 1
        /\ log = Empty(Record("unmap", 0, Zero, "")) /\ tail = log
        /\ data = [p \in PBA |-> IF p \in Range(places) THEN Zero ELSE Nothing]
        /\ checkpoints = [i \in 1 .. 2 |->
            IF i = 1 THEN [NoCheckpoint EXCEPT !.serial = 1, !.maps = views, !.middle = places]
            ELSE NoCheckpoint]
        /\ unflushed = {} /\ phase = "up" /\ end = 0
        /\ maps = views /\ middle = places /\ bank = Empty(Zero) /\ orphans = {}
        /\ usage = [s \in Segment |-> Cardinality(Housed(places, s))]
        /\ state = [s \in Segment |-> IF usage[s] > 0 THEN "sealed" ELSE "free"]
        /\ stripe = Empty(Hole) /\ pending = NoCheckpoint /\ reads = {} /\ flushes = {}

HalfFullSpec == HalfFull /\ [][Internal \/ Crash \/ Recover]_vars

ThreeWrites ==      \* First of the blocks that have no chunk.
    NextPlace <= 3 /\ \E v \in Value : Write((Filled + NextPlace - 1) % Size, v)

HalfFullWritten == HalfFull /\ [][ThreeWrites \/ LogAppend \/ Internal]_vars

HalfFullLiveSpec == HalfFullWritten /\ Fairness

Liveness ==
    <>[][~ Crash]_vars =>
        RecoveryEnds /\ CleaningEnds /\ ReclaimEnds /\ LogReturns /\ SpaceReturns /\ RequestsEnd
----------------------------------------------------------------------------
(* Liveness of space, of a disk that cleans when a write is refused and    *)
(* nothing is about to be freed, and that opens a segment when it is full  *)
(* or nothing more can be cleaned into it.  Else it might move one chunk   *)
(* from segment to segment for ever.                                       *)

Refused == ~ HasRoom /\ \A s \in Segment : state[s] # "dead"

Patient == Cardinality(Waiting) >= Stripe \/ ~ (Refused /\ \E s \in Segment : ENABLED Clean(s))

CleanWhenRefused(s) == Refused /\ Clean(s)

OpenPatiently(s) == Patient /\ Open(s)

SpaceNext ==
    \/ Operation /\ \A p \in DOMAIN tail' : p <= Operations + 1
    \/ LogAppend \/ Destage \/ Reclaim \/ Freeze \/ CheckpointNodes \/ CheckpointCommit \/ Truncate
    \/ \E s \in Segment : CleanWhenRefused(s) \/ OpenPatiently(s) \/ Free(s)

SpaceSpec ==
    /\ Init /\ [][SpaceNext]_vars
    /\ WF_vars(LogAppend) /\ WF_vars(Destage) /\ WF_vars(Reclaim)
    /\ WF_vars(Freeze) /\ WF_vars(CheckpointNodes) /\ WF_vars(CheckpointCommit) /\ WF_vars(Truncate)
    /\ WF_vars(\E s \in Segment : OpenPatiently(s)) /\ WF_vars(\E s \in Segment : Free(s))
    /\ \A s \in Segment : SF_vars(CleanWhenRefused(s))

Admission == []<>HasRoom    \* A refused write is admitted again: few enough chunks are in use.
=============================================================================
