----------------------------- MODULE ReadRepair -----------------------------
(***************************************************************************)
(* Copies that decay: reading, scrub, and which copy is right.             *)
(*                                                                         *)
(* - A chunk or a node does not contain its checksum: the pointer to it    *)
(*   does.  A copy that has this checksum is right, wherever it is; the    *)
(*   others are rewritten from it, and nothing else is.                    *)
(* - No pointer leads to a checkpoint slot, a label or a membership        *)
(*   record: each copy has a number and a checksum of its own.  The newest *)
(*   whole copy is right, and is copied to the others before anything      *)
(*   relies on it.                                                         *)
(* - Scrub reads a place in one step and rewrites it in another.  The      *)
(*   place may have been written meanwhile: then there is nothing to do.   *)
(*                                                                         *)
(* Of each of the two kinds there is one here: block 0 of the contract is  *)
(* a place for chunks, block 1 a record that has a number.                 *)
(*                                                                         *)
(* Left out: parity (any k pieces give a stripe: Redundancy), and devices  *)
(* that fail (Redundancy, MirroredLog).                                    *)
(*                                                                         *)
(* How to break it: let Repair not ask whether the place was written since *)
(* it was read, or let Open take any whole copy; then run MCReadRepair.    *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
    Copy,       \* The components that have a copy.
    Value,      \* What a block may hold.
    Zero,       \* What it holds at first.
    Rotten      \* What a copy is that has decayed: its checksum fits nothing.

VARIABLES
    chunk,      \* Copy -> value: the place for chunks.
    sum,        \* The value whose checksum the map has.
    record,     \* Copy -> 0 or 1 -> [number, value]: two slots, written in turn.
    newest,     \* The record as memory has it.
    repair,     \* A rewrite of a chunk's copy on its way: {} or {[to, value, sum]}.
    phase,      \* "up", "down" or "found": the newest copy is found, and is not on all of them yet.
    answer,     \* What was read last, or Rotten.
    written     \* History: the record that counts, and one that a power cut may have left.

vars == <<chunk, sum, record, newest, repair, phase, answer, written>>

Blocks == [l \in 0 .. 1 |-> IF l = 0 THEN sum ELSE written.value]

Contract == INSTANCE VirtualDisk WITH
    Holds <- 0, Size <- 2, Name <- {}, Profile <- "ack", power <- phase = "up",
    disk <- [live |-> Blocks, snaps |-> [n \in {} |-> Blocks]],
    survivors <- {[live |-> [l \in 0 .. 1 |-> {IF l = 0 THEN sum ELSE value}], snaps |-> [n \in {} |-> Blocks]] :
                    value \in {written.value} \union written.maybe}
----------------------------------------------------------------------------
(* Chunks.                                                                 *)

Verifies(value) == value = sum          \* Its checksum is the one that the map has.

Write(value) ==         \* A new chunk, on all copies.
    /\ phase = "up"
    /\ chunk' = [c \in Copy |-> value]
    /\ sum' = value
    /\ answer' = Rotten
    /\ UNCHANGED <<record, newest, repair, phase, written>>

Read(value) ==          \* From the first copy that fits; those that were tried before it are rewritten.
    /\ phase = "up"
    /\ \E c \in Copy :
        /\ Verifies(chunk[c])
        /\ answer' = value /\ value = chunk[c]
        /\ \E tried \in SUBSET {d \in Copy : ~ Verifies(chunk[d])} :
            chunk' = [d \in Copy |-> IF d \in tried THEN chunk[c] ELSE chunk[d]]
    /\ UNCHANGED <<sum, record, newest, repair, phase, written>>

Scrub(c) ==             \* It finds a copy that is wrong, and one that is right.
    /\ phase = "up"
    /\ repair = {}
    /\ ~ Verifies(chunk[c])
    /\ \E d \in Copy : Verifies(chunk[d]) /\ repair' = {[to |-> c, value |-> chunk[d], sum |-> sum]}
    /\ UNCHANGED <<chunk, sum, record, newest, phase, written, answer>>

Repair ==               \* It rewrites the wrong one, unless the place was written meanwhile.
    /\ phase = "up"
    /\ \E r \in repair :
        chunk' = IF r.sum = sum THEN [chunk EXCEPT ![r.to] = r.value] ELSE chunk
    /\ repair' = {}
    /\ UNCHANGED <<sum, record, newest, phase, written, answer>>
----------------------------------------------------------------------------
(* The record that has a number.                                           *)

Whole(r) == r.value # Rotten

Found == {record[c][i] : c \in Copy, i \in 0 .. 1}

Holds(c) == record[c][newest.number % 2] = newest

WriteRecord(value) ==
    /\ phase = "up"
    /\ newest' = [number |-> newest.number + 1, value |-> value]
    /\ record' = [c \in Copy |-> [record[c] EXCEPT ![newest'.number % 2] = newest']]
    /\ written' = [value |-> value, maybe |-> {}]
    /\ UNCHANGED <<chunk, sum, repair, phase, answer>>

CutShort(value) ==      \* The power fails while it is written: some copies have it.
    /\ phase = "up"
    /\ \E reached \in SUBSET Copy :
        record' = [c \in Copy |-> IF c \notin reached THEN record[c]
            ELSE [record[c] EXCEPT ![(newest.number + 1) % 2] = [number |-> newest.number + 1, value |-> value]]]
    /\ phase' = "down"
    /\ repair' = {}
    /\ written' = [written EXCEPT !.maybe = {value}]
    /\ UNCHANGED <<chunk, sum, newest, answer>>

Crash ==
    /\ phase # "down"
    /\ phase' = "down"
    /\ repair' = {}
    /\ UNCHANGED <<chunk, sum, record, newest, written, answer>>

Open ==                 \* The newest copy that is whole.
    /\ phase = "down"
    /\ \E r \in Found :
        /\ Whole(r)
        /\ \A s \in Found : Whole(s) => r.number >= s.number
        /\ newest' = r
    /\ phase' = "found"
    /\ UNCHANGED <<chunk, sum, record, repair, written, answer>>

Spread ==               \* It is on all copies before anything relies on it.
    /\ phase = "found"
    /\ record' = [c \in Copy |-> [record[c] EXCEPT ![newest.number % 2] = newest]]
    /\ phase' = "up"
    /\ written' = [value |-> newest.value, maybe |-> {}]
    /\ UNCHANGED <<chunk, sum, newest, repair, answer>>

ScrubRecord(c) ==       \* A copy that is not the newest is rewritten.
    /\ phase = "up"
    /\ ~ Holds(c)
    /\ record' = [record EXCEPT ![c][newest.number % 2] = newest]
    /\ UNCHANGED <<chunk, sum, newest, repair, phase, written, answer>>
----------------------------------------------------------------------------
(* Decay, of one copy at a time.                                           *)

Rot(c) ==
    /\ \A d \in Copy : chunk[d] # Rotten
    /\ chunk' = [chunk EXCEPT ![c] = Rotten]
    /\ UNCHANGED <<sum, record, newest, repair, phase, written, answer>>

RotRecord(c, i) ==
    /\ phase = "up"
    /\ \A d \in Copy, j \in 0 .. 1 : Whole(record[d][j])
    /\ record' = [record EXCEPT ![c][i].value = Rotten]
    /\ UNCHANGED <<chunk, sum, newest, repair, phase, written, answer>>
----------------------------------------------------------------------------
Init ==
    /\ chunk = [c \in Copy |-> Zero]
    /\ sum = Zero
    /\ newest = [number |-> 1, value |-> Zero]
    /\ record = [c \in Copy |-> [i \in 0 .. 1 |-> IF i = 1 THEN newest ELSE [newest EXCEPT !.number = 0]]]
    /\ answer = Rotten
    /\ repair = {}
    /\ phase = "up"
    /\ written = [value |-> Zero, maybe |-> {}]

Next ==
    \/ \E value \in Value : Write(value) \/ Read(value) \/ WriteRecord(value) \/ CutShort(value)
    \/ \E c \in Copy : Scrub(c) \/ ScrubRecord(c) \/ Rot(c)
    \/ \E c \in Copy, i \in 0 .. 1 : RotRecord(c, i)
    \/ Repair \/ Crash \/ Open \/ Spread

Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
(* What it promises.                                                       *)

TypeOK ==
    /\ chunk \in [Copy -> Value \union {Rotten}]
    /\ \A r \in Found : r.value \in Value \union {Rotten}
    /\ answer \in Value \union {Rotten}
    /\ Cardinality(repair) <= 1
    /\ phase \in {"up", "down", "found"}

OneLeft ==      \* Neither reading nor scrub destroys the last right copy.
    /\ \E c \in Copy : Verifies(chunk[c])
    /\ phase # "down" => \E c \in Copy : Holds(c)

Newest ==       \* While it is up, nothing is newer than what memory has.
    phase = "up" =>
        /\ \A r \in Found : r.number <= newest.number
        /\ newest.value = written.value

Refines == Contract!Spec

Obeys ==        \* And each action does what the contract's of its name does.
    [][\A value \in Value :
        /\ Write(value) => Contract!Write(0, [i \in {1} |-> value], "ok")
        /\ WriteRecord(value) => Contract!Write(1, [i \in {1} |-> value], "ok")
        /\ Read(value) => Contract!Read(Contract!Live, 0, 1, "ok", [i \in {1} |-> value])]_vars

THEOREM Spec => Refines /\ Obeys /\ [](TypeOK /\ OneLeft /\ Newest)
=============================================================================
