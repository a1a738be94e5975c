------------------------ MODULE APLogStructuredDisk -------------------------
(***************************************************************************)
(* Why LogStructuredDisk is right, however long it runs: an invariant that *)
(* every step keeps, for the profile "ack".  It holds at first             *)
(* (--init=Init --inv=IndInv --length=0), every step keeps it              *)
(* (--init=IndInv --inv=IndInv --length=1), and it implies what the spec   *)
(* promises (--init=IndInv --inv=Safety --length=0); --cinit=ConstInit.    *)
(* TLC takes the step from a sample of the states of a tiny disk that      *)
(* satisfy it, reachable or not: MCLogStructuredDiskInductive.             *)
(***************************************************************************)
EXTENDS LogStructuredDisk

ConstInit ==
    /\ Size = 1
    /\ Value = {0, 1}
    /\ Zero = 0
    /\ Name = {"s"}
    /\ Profile = "ack"
    /\ Nothing = -1
    /\ Segments = 2
    /\ Stripe = 1
    /\ LogSize = 2

Safety == NoDanglingAddress /\ CheckpointsWhole /\ NoLeak /\ UsageExact /\ OnePlaceEach
----------------------------------------------------------------------------
Last ==         \* The last record on the media that recovery can reach.
    Newest.from + Cardinality({p \in DOMAIN log : p > Newest.from})

InDoubt == Last + Cardinality(DOMAIN tail)

Exists(n, e) == \* Is there a snapshot n once the records up to e have happened?
    LET about == {p \in Newest.from + 1 .. e : At(p).op \in {"snapshot", "delete"} /\ At(p).name = n}
    IN  IF about = {} THEN n \in DOMAIN Newest.maps.snaps
        ELSE \E p \in about : At(p).op = "snapshot" /\ \A q \in about : q <= p

Logged ==       \* No gap, nothing torn, no generation after a later one, and every record can be replayed.
    /\ {p \in DOMAIN log : p > Newest.from} = Newest.from + 1 .. Last
    /\ DOMAIN tail = Last + 1 .. InDoubt
    /\ InDoubt <= Last + 1
    /\ \A p \in Newest.from + 1 .. InDoubt :
        LET r == At(p)
        IN  /\ r.whole /\ r.value \in Value /\ r.lba \in LBA
            /\ r.op \in {"write", "unmap", "snapshot", "delete", "revert"}
            /\ GenerationAt(p - 1) <= r.generation /\ r.generation <= generation
            /\ r.op = "snapshot" => r.name \in Name /\ ~ Exists(r.name, p - 1)
            /\ r.op \in {"delete", "revert"} => Exists(r.name, p - 1)
    /\ CASE phase = "up"     -> end = Last
         [] phase = "replay" -> end \in Newest.from .. InDoubt
         [] OTHER            -> end = 0

\* @type: $lsdCheckpoint => Bool;
Consistent(c) ==    \* A checkpoint houses what its views refer to and what is to be reclaimed, and no more.
    /\ DOMAIN c.maps.live = LBA /\ DOMAIN c.maps.snaps \subseteq Name
    /\ \A n \in DOMAIN c.maps.snaps : DOMAIN c.maps.snaps[n] = LBA
    /\ DOMAIN c.middle = Referred(c.maps) \union c.orphans
    /\ Referred(c.maps) \intersect c.orphans = {}
    /\ \A m \in DOMAIN c.middle :
        /\ m > 0
        /\ c.middle[m] \in PBA
        /\ data[c.middle[m]] \in Value
        /\ c.middle[m][1] \notin unflushed
        /\ phase # "down" => state[c.middle[m][1]] \in {"sealed", "dead"}
        /\ \A n \in DOMAIN c.middle : c.middle[m] = c.middle[n] => m = n

Checkpointed == \* One slot is good; the other is given up while a checkpoint is being written.
    /\ Newest.serial > 0
    /\ checkpoints[Older].serial < Newest.serial
    /\ Newest.generation <= generation
    /\ Consistent(Newest)
    /\ IF pending.serial = 0 THEN pending = NoCheckpoint
       ELSE /\ phase = "up"
            /\ pending.serial = Newest.serial + 1
            /\ pending.from \in Newest.from .. end
            /\ pending.generation \in GenerationAt(pending.from) .. generation
            /\ \A p \in pending.from + 1 .. InDoubt : At(p).generation >= pending.generation
            /\ DOMAIN pending.maps.snaps = {n \in Name : Exists(n, pending.from)}
            /\ Consistent(pending)

Accounted ==    \* In memory, every chunk has its place, and every segment its state and its usage.
    /\ DOMAIN maps.live = LBA /\ \A n \in DOMAIN maps.snaps : DOMAIN maps.snaps[n] = LBA
    /\ DOMAIN maps.snaps = {n \in Name : Exists(n, end)}
    /\ DOMAIN middle \union DOMAIN bank = Referred(maps) \union orphans
    /\ Referred(maps) \intersect orphans = {}
    /\ \A m \in DOMAIN bank : m > 0 /\ bank[m] \in Value
    /\ \A m \in DOMAIN middle :
        /\ m > 0
        /\ middle[m] \in PBA
        /\ data[middle[m]] \in Value
        /\ state[middle[m][1]] = "sealed"
    /\ OnePlaceEach
    /\ UsageExact
    /\ \A s \in Segment : state[s] = "sealed" <=> usage[s] > 0

Opened ==       \* One segment is open, if any; a chunk that was dropped on its way into it has no place.
    /\ DOMAIN stripe = 1 .. Cardinality(DOMAIN stripe)
    /\ Cardinality(DOMAIN stripe) <= Stripe
    /\ Cardinality({s \in Segment : state[s] = "open"}) = IF DOMAIN stripe = {} THEN 0 ELSE 1
    /\ \A i, j \in DOMAIN stripe : stripe[i] = stripe[j] => i = j
    /\ \A i \in DOMAIN stripe : stripe[i] > 0 /\ (stripe[i] \in DOMAIN middle => stripe[i] \in DOMAIN bank)

Erased ==       \* What a power cut leaves of the memory.
    /\ maps = Blank
    /\ DOMAIN middle = {} /\ DOMAIN bank = {} /\ orphans = {} /\ DOMAIN stripe = {}
    /\ \A s \in Segment : usage[s] = 0 /\ state[s] = "free"

IndInv ==
    /\ phase \in {"up", "down", "replay"}
    /\ Logged
    /\ Checkpointed
    /\ IF phase = "down" THEN Erased ELSE Accounted /\ Opened
    /\ phase # "up" => unflushed = {} /\ DOMAIN stripe = {}
=============================================================================
