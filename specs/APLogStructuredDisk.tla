------------------------ MODULE APLogStructuredDisk -------------------------
(***************************************************************************)
(* Why LogStructuredDisk is right, however long it runs: an invariant that *)
(* every step keeps, for the profile "ack".  Segments have two chunks, so  *)
(* that there is something to clean.  It holds at first                    *)
(* (--init=Init --inv=IndInv --length=0), every action keeps it            *)
(* (--init=Start --next=Cleans --inv=IndInv --length=1, and so on), and it *)
(* implies what the spec promises (--init=Start --inv=Safety --length=0);  *)
(* --cinit=ConstInit.  TLC takes the step from a sample of the states of a *)
(* tiny disk that satisfy it, reachable or not:                            *)
(* MCLogStructuredDiskInductive.                                           *)
(***************************************************************************)
EXTENDS LogStructuredDiskProperties

ConstInit ==
    /\ Size = 1
    /\ Value = {0, 1}
    /\ Zero = 0
    /\ Name = {"s"}
    /\ Profile = "ack"
    /\ Nothing = -1
    /\ Segments = 2
    /\ Stripe = 2
    /\ LogSize = 1
    /\ Readers = 1
    /\ Flushers = 1

Safety ==
    /\ NoDanglingAddress /\ CheckpointsWhole /\ NoLeak /\ UsageExact /\ OnePlaceEach /\ ReadsStand
    /\ MBA \ (DOMAIN bank \union DOMAIN middle \union Range(stripe)) # {}
----------------------------------------------------------------------------
Last ==         \* The last record on the media that recovery can reach.
    Newest.from + Cardinality({p \in DOMAIN log : p > Newest.from})

InDoubt == Last + Cardinality(DOMAIN tail)

Logged ==       \* No gap, nothing torn, no generation after a later one, and every record can be replayed.
    /\ \A p \in DOMAIN log : p <= Last /\ (p < Last => p + 1 \in DOMAIN log)
    /\ \A p \in DOMAIN tail : Last < p /\ p <= InDoubt
    /\ Cardinality(DOMAIN log \union DOMAIN tail) <= LogSize
    /\ \A p \in Places : p <= InDoubt =>
        LET r == At(p)
        IN  /\ r.whole /\ r.value \in Value /\ r.lba \in LBA
            /\ r.op \in {"write", "unmap", "snapshot", "delete", "revert"}
            /\ GenerationAt(p - 1) <= r.generation /\ r.generation <= generation
            /\ r.op = "snapshot" => r.name \in Name /\ ~ Exists(r.name, p - 1)
            /\ r.op \in {"delete", "revert"} => Exists(r.name, p - 1)
    /\ CASE phase = "up"     -> end = Last /\ \A p \in DOMAIN tail : tail[p].generation = generation
         [] phase = "replay" -> Newest.from <= end /\ end <= InDoubt
         [] OTHER            -> end = 0

\* @type: $lsdCheckpoint => Bool;
Consistent(c) ==    \* What a checkpoint houses is of its views, or is to be reclaimed; nobody overwrites it.
    /\ DOMAIN c.maps.live = LBA /\ DOMAIN c.maps.snaps \subseteq Name
    /\ \A n \in DOMAIN c.maps.snaps : DOMAIN c.maps.snaps[n] = LBA
    /\ DOMAIN c.middle \subseteq Referred(c.maps) \union c.orphans
    /\ c.orphans \subseteq DOMAIN c.middle
    /\ Referred(c.maps) \intersect c.orphans = {}
    /\ \A m \in DOMAIN c.middle :
        /\ m \in MBA
        /\ c.middle[m] \in PBA
        /\ data[c.middle[m]] \in Value
        /\ phase # "down" => state[c.middle[m][1]] \in {"sealed", "dead"}
        /\ \A n \in DOMAIN c.middle : c.middle[m] = c.middle[n] => m = n

Checkpointed == \* One slot is good; the other is given up while a checkpoint is being written.
    /\ Newest.serial > 0
    /\ checkpoints[Older].serial < Newest.serial
    /\ Newest.generation <= generation
    /\ Consistent(Newest)
    /\ OnMedia(Newest) /\ Referred(Newest.maps) \subseteq DOMAIN Newest.middle
    /\ IF pending.serial = 0 THEN pending = NoCheckpoint
       ELSE /\ phase = "up"
            /\ pending.serial = Newest.serial + 1
            /\ Newest.from <= pending.from /\ pending.from <= end
            /\ GenerationAt(pending.from) <= pending.generation /\ pending.generation <= generation
            /\ \A p \in Places : pending.from < p /\ p <= InDoubt => At(p).generation >= pending.generation
            /\ DOMAIN pending.maps.snaps = {n \in Name : Exists(n, pending.from)}
            /\ Consistent(pending) /\ Referred(pending.maps) \subseteq DOMAIN pending.middle

Accounted ==    \* In memory, every chunk has its place, and every segment its state and its usage.
    /\ DOMAIN maps.live = LBA /\ \A n \in DOMAIN maps.snaps : DOMAIN maps.snaps[n] = LBA
    /\ DOMAIN maps.snaps = {n \in Name : Exists(n, end)}
    /\ DOMAIN middle \union DOMAIN bank = Referred(maps) \union orphans
    /\ Referred(maps) \intersect orphans = {}
    /\ \A m \in DOMAIN bank : m \in MBA /\ bank[m] \in Value
    /\ \A m \in DOMAIN middle :
        /\ m \in MBA
        /\ middle[m] \in PBA
        /\ data[middle[m]] \in Value
        /\ state[middle[m][1]] = "sealed"
    /\ OnePlaceEach
    /\ UsageExact
    /\ \A s \in Segment : state[s] = "sealed" <=> usage[s] > 0

Opened ==       \* One segment is open, if any; a chunk that was dropped on its way into it has no place.
    /\ DOMAIN stripe = {i \in 1 .. Stripe : i <= Cardinality(DOMAIN stripe)}
    /\ Cardinality({s \in Segment : state[s] = "open"}) = IF DOMAIN stripe = {} THEN 0 ELSE 1
    /\ \A i, j \in DOMAIN stripe : stripe[i] = stripe[j] => i = j
    /\ \A i \in DOMAIN stripe : stripe[i] \in MBA /\ (stripe[i] \in DOMAIN middle => stripe[i] \in DOMAIN bank)

Roomy ==        \* MBAs do not run out: what is only in the bank was written while there was room, or is being replayed.
    LET homeless == Cardinality(DOMAIN bank \ (DOMAIN middle \union Range(stripe)))
    IN  IF phase = "replay" THEN homeless <= end - Newest.from
        ELSE homeless + Coming <= LogSize + Stripe * (Segments - 1)

Requested ==    \* What a read is to find is there, and stays.
    /\ Cardinality(reads) <= Readers /\ Cardinality(flushes) <= Flushers
    /\ \A r \in reads :
        /\ r.place \in PBA /\ data[r.place] = r.value /\ r.value \in Value
        /\ state[r.place[1]] \in {"sealed", "dead"}
    /\ \A last \in flushes : last <= LastPlace

Erased ==       \* What a power cut leaves of the memory.
    /\ maps = Blank
    /\ DOMAIN middle = {} /\ DOMAIN bank = {} /\ orphans = {} /\ DOMAIN stripe = {}
    /\ reads = {} /\ flushes = {}
    /\ \A s \in Segment : usage[s] = 0 /\ state[s] = "free"

IndInv ==
    /\ phase \in {"up", "down", "replay"}
    /\ Logged
    /\ Checkpointed
    /\ IF phase = "down" THEN Erased ELSE Accounted /\ Opened /\ Roomy /\ Requested
    /\ phase # "up" => unflushed = {} /\ DOMAIN stripe = {} /\ reads = {} /\ flushes = {}
----------------------------------------------------------------------------
(* Any state there is, as far as types go; numbers without bound.  Copies of the maps: in memory (0), in *)
(* the checkpoint slots (1 and 2) and in the checkpoint that is being written (3).                       *)

Copies == 0 .. 3

Offset == 1 - LogSize .. LogSize    \* Where the records are, by distance from the newest checkpoint.

Anything ==
    /\ generation \in Int
    /\ phase \in {"up", "down", "replay"}
    /\ end \in Int
    /\ unflushed \in SUBSET Segment
    /\ data \in [PBA -> Value \union {Nothing}]
    /\ usage \in [Segment -> Int]
    /\ \E some \in BOOLEAN, place \in PBA, value \in Value :
        reads = {r \in {[place |-> place, value |-> value]} : some}
    /\ \E some \in BOOLEAN, last \in Int : flushes = {x \in {last} : some}
    /\ state \in [Segment -> {"free", "open", "sealed", "dead"}]
    /\ \E banked \in SUBSET MBA, value \in [MBA -> Value] : bank = [m \in banked |-> value[m]]
    /\ \E slots \in SUBSET (1 .. Stripe), m \in [1 .. Stripe -> MBA] : stripe = [i \in slots |-> m[i]]
    /\ \E live \in [Copies -> [LBA -> MBA \union {Hole}]],
          names \in [Copies -> SUBSET Name], snap \in [Copies -> [Name \X LBA -> MBA \union {Hole}]],
          housed \in [Copies -> SUBSET MBA], place \in [Copies -> [MBA -> PBA]],
          orphan \in [Copies -> SUBSET MBA],
          serial \in [Copies -> Int], from \in [Copies -> Int], opened \in [Copies -> Int] :
        LET views(i) == [live |-> live[i], snaps |-> [n \in names[i] |-> [l \in LBA |-> snap[i][<<n, l>>]]]]
            house(i) == [m \in housed[i] |-> place[i][m]]
            checkpoint(i) == [serial |-> serial[i], from |-> from[i], generation |-> opened[i],
                              maps |-> views(i), middle |-> house(i), orphans |-> orphan[i]]
        IN  /\ maps = views(0) /\ middle = house(0) /\ orphans = orphan[0]
            /\ checkpoints = [i \in 1 .. 2 |-> checkpoint(i)]
            /\ pending = checkpoint(3)
    /\ \E logged \in SUBSET Offset, sent \in SUBSET Offset,
          op \in [Offset -> {"write", "unmap", "snapshot", "delete", "revert"}], lba \in [Offset -> LBA],
          value \in [Offset -> Value], name \in [Offset -> Name \union {""}],
          opened \in [Offset -> Int], whole \in [Offset -> BOOLEAN] :
        LET record(i) == [op |-> op[i], lba |-> lba[i], value |-> value[i], name |-> name[i],
                          generation |-> opened[i], whole |-> whole[i]]
        IN  /\ log = [p \in {Newest.from + i : i \in logged} |-> record(p - Newest.from)]
            /\ tail = [p \in {Newest.from + i : i \in sent} |-> record(p - Newest.from)]

Start == Anything /\ IndInv
----------------------------------------------------------------------------
(* Parts of Next.  Apalache checks each by itself, and each other action.  *)

Opens == \E s \in Segment : Open(s)

Cleans == \E s \in Segment : Clean(s)

Frees == Reclaim \/ \E s \in Segment : Free(s)
=============================================================================
