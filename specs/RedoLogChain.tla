--------------------------- MODULE RedoLogChain ----------------------------
(***************************************************************************)
(* A virtual disk as a chain of redo logs: a base and, for each snapshot,  *)
(* a delta that holds what was written since (VMFSsparse, SEsparse,        *)
(* vSANsparse; qcow2 with backing files).  A read takes the topmost layer  *)
(* that has the block.  A revert makes a tree of the chain: views share    *)
(* the lower layers.                                                       *)
(*                                                                         *)
(* A layer that no view ends in, and on which only one other layer stands, *)
(* is consolidated with that one, one block per step.  Upwards: the upper  *)
(* layer takes the blocks that it lacks, and the lower layer is removed.   *)
(* Downwards: the lower layer takes all blocks of the upper one, which is  *)
(* removed.  Writes, other snapshots and crashes come in between; after a  *)
(* crash it begins again, maybe the other way.                             *)
(*                                                                         *)
(* Under "block" a write waits in the cache of the device until a flush:   *)
(* after a power cut each block of a layer holds what it held at the last  *)
(* flush, or anything written to it since.  Snapshot operations and the    *)
(* last step of a consolidation flush.                                     *)
(*                                                                         *)
(* Left out: grains and their tables, space, and the parts of a write and  *)
(* of the last step of a consolidation, which are atomic here.             *)
(*                                                                         *)
(* How to break it: let Redone leave `done` alone, let Lone ask only       *)
(* whether a view ends there, or let Drop not flush; then run              *)
(* MCRedoLogChain.                                                         *)
(***************************************************************************)
EXTENDS Integers, Sequences, typedefs

CONSTANTS
    \* @type: Int;
    Size,       \* How many blocks the disk has.
    \* @type: Set(Int);
    Value,      \* What a block may hold.
    \* @type: Int;
    Zero,       \* What a block holds that was never written, or was unmapped.
    \* @type: Set(Str);
    Name,       \* The names that a snapshot may have.
    \* @type: Int;
    Absent,     \* What a layer has of a block that was not written to it.
    \* @type: Int;
    Layers,     \* How many layers there may be.
    \* @type: Str;
    Profile     \* What a crash keeps: "ack" or "block".

VARIABLES       \* On disk.
    \* @type: Int -> Int -> Int;
    data,       \* layer -> LBA -> Value or Absent: what is read.
    \* @type: Int -> Int -> Set(Int);
    media,      \* layer -> LBA -> the values of which a power cut would leave one.
    \* @type: Str -> Seq(Int);
    chain       \* Live or a snapshot's name -> the layers that it reads through, base first.

VARIABLES       \* In memory.
    \* @type: Set($rcJob);
    job         \* The consolidation: {}, or {[way, lower, upper, done]}; done: the LBAs dealt with.

vars == <<data, media, chain, job>>

Live == "(live)"    \* How a read names the live view.
LBA == 0 .. Size - 1
Layer == 1 .. Layers
Empty == [lba \in LBA |-> Absent]

ASSUME Zero \in Value /\ Absent \notin Value /\ Live \notin Name
ASSUME Profile \in {"ack", "block"}
----------------------------------------------------------------------------
\* @type: Seq(Int) => Int;
Top(layers) == layers[Len(layers)]

\* @type: Seq(Int) => Set(Int);
Within(layers) == {layers[i] : i \in DOMAIN layers}

\* @type: (Str -> Seq(Int)) => Set(Int);
Used(chains) == UNION {Within(chains[v]) : v \in DOMAIN chains}

\* @type: (Seq(Int), Int) => Int;
Block(layers, lba) ==       \* The chain read path.
    LET having == {i \in DOMAIN layers : data[layers[i]][lba] # Absent}
    IN  IF having = {} THEN Zero
        ELSE data[layers[CHOOSE i \in having : \A j \in having : j <= i]][lba]

Image(v) == [lba \in LBA |-> Block(chain[v], lba)]

Snapshots == DOMAIN chain \ {Live}

\* @type: (Seq(Int), Int) => Set(Int);
Outcomes(layers, lba) ==    \* What a read may return after a power cut.
    LET found == [i \in DOMAIN layers |->
            IF \A j \in DOMAIN layers : j > i => Absent \in media[layers[j]][lba]
            THEN media[layers[i]][lba] \ {Absent} ELSE {}]
        none == \A i \in DOMAIN layers : Absent \in media[layers[i]][lba]
    IN  UNION {found[i] : i \in DOMAIN found} \union (IF none THEN {Zero} ELSE {})

Contract == INSTANCE VirtualDisk WITH
    Holds <- 0, power <- TRUE,
    disk <- [live |-> Image(Live), snaps |-> [n \in Snapshots |-> Image(n)]],
    survivors <- {[live |-> [lba \in LBA |-> Outcomes(chain[Live], lba)],
                   snaps |-> [n \in Snapshots |-> Image(n)]]}
----------------------------------------------------------------------------
(* The device's cache.                                                     *)

\* @type: (Int -> Int -> Int) => (Int -> Int -> Set(Int));
Durable(layers) == [i \in Layer |-> [lba \in LBA |-> {layers[i][lba]}]]

Put(layer, lba, value) ==   \* A block of a layer is written.
    /\ data' = [data EXCEPT ![layer][lba] = value]
    /\ media' = IF Profile = "block" THEN [media EXCEPT ![layer][lba] = @ \union {value}] ELSE Durable(data')

Flush ==
    /\ media' = Durable(data)
    /\ UNCHANGED <<data, chain, job>>
----------------------------------------------------------------------------
(* Reads and writes.  Zeroes are unmapped, and have to hide what is below. *)

Redone(lba) ==      \* The consolidation, once a block of live has changed.
    {[j EXCEPT !.done = IF j.upper = Top(chain[Live]) THEN @ \ {lba} ELSE @] : j \in job}

Change(lba, value) ==
    /\ Put(Top(chain[Live]), lba, value)
    /\ job' = Redone(lba)

Write(lba, value) ==
    /\ value # Zero
    /\ Change(lba, value)
    /\ chain' = chain

Unmap(lba) ==
    /\ Change(lba, Zero)
    /\ chain' = chain

Read(view, lba, value) ==
    /\ view \in DOMAIN chain
    /\ value = Block(chain[view], lba)
    /\ UNCHANGED vars
----------------------------------------------------------------------------
(* Snapshots.  A layer that no view reads through any more is forgotten,   *)
(* and with it a consolidation that it was part of.  All is flushed.       *)

\* @type: (Str -> Seq(Int), Set(Int)) => Bool;
Rechain(chains, emptied) ==
    LET kept == Used(chains) \ emptied
    IN  /\ chain' = chains
        /\ data' = [i \in Layer |-> IF i \in kept THEN data[i] ELSE Empty]
        /\ media' = Durable(data')
        /\ job' = {j \in job : {j.lower, j.upper} \subseteq kept}

Fresh == CHOOSE i \in Layer \ Used(chain) : \A j \in Layer \ Used(chain) : i <= j

Snapshot(name) ==
    /\ name \notin DOMAIN chain
    /\ Layer \ Used(chain) # {}
    /\ Rechain([v \in DOMAIN chain \union {name} |->
                    CASE v = Live -> Append(chain[Live], Fresh)
                      [] v = name -> chain[Live]
                      [] OTHER    -> chain[v]], {})

Delete(name) ==
    /\ name \in Snapshots
    /\ Rechain([v \in DOMAIN chain \ {name} |-> chain[v]], {})

Revert(name) ==             \* Live's own layer is emptied, and stands on the snapshot.
    /\ name \in Snapshots
    /\ LET top == Top(chain[Live])
       IN  Rechain([chain EXCEPT ![Live] = Append(chain[name], top)], {top})
----------------------------------------------------------------------------
(* Consolidation.                                                          *)

Lone(lower, upper) ==       \* Nobody but what stands on `upper` needs `lower`.
    \A v \in DOMAIN chain : \A i \in DOMAIN chain[v] :
        chain[v][i] = lower => i < Len(chain[v]) /\ chain[v][i + 1] = upper

Consolidate(way) ==         \* It begins.
    /\ job = {}
    /\ \E lower, upper \in Used(chain) :
        /\ lower # upper
        /\ Lone(lower, upper)
        /\ job' = {[way |-> way, lower |-> lower, upper |-> upper, done |-> {}]}
    /\ UNCHANGED <<data, media, chain>>

Merge ==                    \* One block.
    \E j \in job :
        /\ j.done # LBA
        /\ LET lba == CHOOSE l \in LBA \ j.done : \A k \in LBA \ j.done : l <= k
               below == data[j.lower][lba]
               above == data[j.upper][lba]
           IN  /\ CASE j.way = "up" /\ above = Absent   -> Put(j.upper, lba, below)
                    [] j.way = "down" /\ above # Absent -> Put(j.lower, lba, above)
                    [] OTHER                            -> UNCHANGED <<data, media>>
               /\ job' = {[j EXCEPT !.done = @ \union {lba}]}
        /\ chain' = chain

Drop ==                     \* It ends.
    \E j \in job :
        /\ j.done = LBA
        /\ LET gone == IF j.way = "up" THEN j.lower ELSE j.upper
               Stays(layer) == layer # gone
           IN  Rechain([v \in DOMAIN chain |-> SelectSeq(chain[v], Stays)], {})

Crash ==
    /\ data' \in {d \in [Layer -> [LBA -> Value \union {Absent}]] :
                    \A i \in Layer, lba \in LBA : d[i][lba] \in media[i][lba]}
    /\ media' = Durable(data')
    /\ job' = {}
    /\ chain' = chain
----------------------------------------------------------------------------
Init ==
    /\ data = [i \in Layer |-> Empty]
    /\ media = Durable(data)
    /\ chain = [v \in {Live} |-> <<1>>]
    /\ job = {}

Next ==
    \/ \E lba \in LBA :
        \/ \E value \in Value : Write(lba, value)
        \/ Unmap(lba)
    \/ \E name \in Name : Snapshot(name) \/ Delete(name) \/ Revert(name)
    \/ \E way \in {"up", "down"} : Consolidate(way)
    \/ Merge
    \/ Drop
    \/ Flush
    \/ Crash

Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
TypeOK ==
    /\ data \in [Layer -> [LBA -> Value \union {Absent}]]
    /\ \A i \in Layer, lba \in LBA :
        data[i][lba] \in media[i][lba] /\ media[i][lba] \subseteq Value \union {Absent}
    /\ Live \in DOMAIN chain /\ Snapshots \subseteq Name
    /\ \A v \in DOMAIN chain :
        /\ chain[v] # <<>> /\ Within(chain[v]) \subseteq Layer
        /\ \A i, j \in DOMAIN chain[v] : chain[v][i] = chain[v][j] => i = j
    /\ \A j \in job : /\ j.way \in {"up", "down"} /\ j.done \subseteq LBA
                      /\ {j.lower, j.upper} \subseteq Used(chain)

Frozen ==       \* Only live's top and a consolidation's two layers change.
    [][\A i \in Used(chain) \ {Top(chain[Live])} :
        data'[i] # data[i] => i \notin Used(chain)' \/ \E j \in job : i \in {j.lower, j.upper}]_vars

Tops ==         \* Live writes to a layer of its own.
    \A n \in Snapshots : Top(chain[Live]) \notin Within(chain[n])

Flushes ==      \* A flush leaves nothing in doubt.
    ~ ENABLED (Flush /\ media' # Durable(data))

Refines == Contract!Spec

Obeys ==        \* And each action does what the contract's of its name does.
    [][/\ \A lba \in LBA :
            /\ \A value \in Value : Write(lba, value) => Contract!Write(lba, [i \in {1} |-> value], "ok")
            /\ Unmap(lba) => Contract!Unmap(lba, 1, "ok")
       /\ \A name \in Name :
            /\ Snapshot(name) => Contract!Snapshot(name, "ok")
            /\ Delete(name) => Contract!Delete(name, "ok")
            /\ Revert(name) => Contract!Revert(name, "ok")
       /\ Flush => Contract!Flush("ok")
       /\ Crash => Contract!Crash("ok")]_vars

THEOREM Spec => Refines /\ Obeys /\ [](TypeOK /\ Tops) /\ Frozen
=============================================================================
