------------------------- MODULE MirroredLogMembers -------------------------
(***************************************************************************)
(* The state of MirroredLog, and its members: which of them are current,   *)
(* how a majority of the voters records that, and how members leave, come  *)
(* back, are replaced and become current again.                            *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Member,     \* The mirrors.
    Device,     \* The devices that they may be on, at first each mirror on the device of its name.
    Place,      \* Device -> the place that it is put into: two devices of one place are never there together.
    Others,     \* Voters that hold the membership record and no log.
    Size        \* How many records the ring takes.

VARIABLES       \* On the media, and in the caches of the devices.
    ring,       \* Device -> place in the ring -> record.
    slots,      \* Device -> 0 or 1 -> checkpoint.
    ringCache,  \* Device -> place -> record: what was not flushed.
    slotCache,  \* Device -> slot -> checkpoint: the same.
    book,       \* Voter -> membership record.
    here        \* The devices and other voters that are there.

VARIABLES       \* In memory.
    phase,      \* "down", "promising", "assembled", "load", "loaded", "replay", "up" or "damaged".
    record,     \* The newest membership record: [term, number, promise |-> the newest term that its voter
                \* promised, on |-> member -> device, current |-> members].
    state,      \* Member -> "active", "absent" or "stale".
    untold,     \* The voters that do not have the record yet,
    votes,      \* and how many have it, while it is being put on them; else 0.
    log,        \* [sequence, generation |-> of the next record, flushed, begun |-> "no", "written" or "yes"].
    newest,     \* The newest checkpoint that counts.
    pending,    \* The one that is being written, or NoCheckpoint.
    took,       \* The members that have the slot of `newest`, and all that was logged since it was written.
    contents    \* The operations that happened, as memory has them.

VARIABLES       \* History, for the refinement only: DurableLog's.
    held, durable, saved, issued

VARIABLE        \* History, for models that bound it.
    trouble     \* How often what happened: [crashes, pulls, spares, damages].

media   == <<ring, slots, ringCache, slotCache>>
members == <<record, state, untold, votes>>
memory  == <<phase, members, log, newest, pending, took, contents>>
history == <<held, durable, saved, issued>>
world   == <<here, trouble>>
vars    == <<media, book, world, memory, history>>

Voter == Device \union Others
Voters == Cardinality(Member) + Cardinality(Others)     \* How many have a vote at a time.
Slot(sequence) == sequence % Size                       \* Where in the ring a record is.
----------------------------------------------------------------------------
Empty == [x \in {} |-> x]

Over(f, g) == [x \in DOMAIN f \union DOMAIN g |-> IF x \in DOMAIN f THEN f[x] ELSE g[x]]

Least(numbers) == CHOOSE n \in numbers : \A m \in numbers : n <= m

Nothing == [kind |-> "nothing", sequence |-> 0, generation |-> 0, flushed |-> 0, op |-> 0]  \* Torn, or never written.

NoCheckpoint == [number |-> 0, sequence |-> 0, generation |-> 0, contents |-> <<>>]

First == [NoCheckpoint EXCEPT !.number = 1, !.sequence = 1]     \* The checkpoint of a new disk.
----------------------------------------------------------------------------
(* Members.                                                                *)

In(states) == {c \in Member : state[c] \in states}

Active == In({"active"})

Reachable == In({"active", "stale"})

On(some) == {record.on[c] : c \in some}     \* Their devices.

Answering == On(Reachable) \subseteq here

Saving == votes > 0 \/ untold # {}          \* Until the record counts, nothing else is done.

Ready(in) == phase = in /\ ~ Saving /\ Answering /\ Active # {}

Save(on, now) ==        \* Begin to write a new record, of the states `now`, to all reachable voters.
    /\ record' = [record EXCEPT !.number = @ + 1, !.on = on, !.current = {c \in Member : now[c] = "active"}]
    /\ state' = now
    /\ untold' = {on[c] : c \in {d \in Member : now[d] # "absent"}} \union Others
    /\ votes' = 0

Tell ==                 \* One voter after the other.
    /\ untold # {}
    /\ LET v == Least(untold)
       IN  /\ v \in here \union Others
           /\ untold' = untold \ {v}
           /\ book' = IF v \in here
                      THEN [book EXCEPT ![v] = IF phase = "promising" THEN [@ EXCEPT !.promise = record.promise] ELSE record]
                      ELSE book
           /\ votes' = IF v \in here THEN votes + 1 ELSE votes
    /\ UNCHANGED <<media, world, phase, record, state, log, newest, pending, took, contents, history>>

Majority(n) == 2 * n > Voters

Counted ==              \* The record counts; or too few have it, and nothing may go on.
    /\ untold = {} /\ votes > 0
    /\ votes' = 0
    /\ phase' = CASE ~ Majority(votes)    -> "down"
                  [] phase = "promising"  -> "assembled"
                  [] phase = "assembled"  -> "load"
                  [] OTHER                -> phase
    /\ IF phase' = "assembled"      \* The term is promised: now the record itself.
       THEN /\ record' = [record EXCEPT !.term = record.promise, !.number = 0]
            /\ untold' = On(Reachable) \union Others
       ELSE UNCHANGED <<record, untold>>
    /\ UNCHANGED <<media, book, world, state, log, newest, pending, took, contents, history>>

Later(r, s) == r.term > s.term \/ (r.term = s.term /\ r.number >= s.number)

Found == {book[v] : v \in here}     \* The membership records that there are.

Greatest(numbers) == CHOOSE n \in numbers : \A m \in numbers : n >= m

Promised(records) == Greatest({r.promise : r \in records} \union {r.term : r \in records})

Founding == [term |-> 1, number |-> 0, promise |-> 1, on |-> [c \in Member |-> c], current |-> Member]

Leave(c) ==             \* It has no part in what is being written.
    /\ took' = took \ {c}
    /\ UNCHANGED <<log, newest, pending, contents>>

Fail(c) ==              \* A device does not answer: that is on record before anything else is written.
    /\ phase \notin {"down", "damaged"}
    /\ c \in Reachable /\ record.on[c] \notin here
    /\ LET now == [state EXCEPT ![c] = "absent"]
           left == \E d \in Member : now[d] = "active"
       IN  IF left /\ phase \notin {"promising", "assembled"}
           THEN Save(record.on, now) /\ phase' = phase
           ELSE /\ state' = now         \* No change goes under a term that does not count yet: Loaded sees to it.
                /\ untold' = IF left THEN untold \ {record.on[c]} ELSE {}
                /\ votes' = IF left THEN votes ELSE 0
                /\ phase' = IF left \/ (phase = "up" /\ ~ Saving) THEN phase ELSE "down"
                /\ UNCHANGED record
    /\ Leave(c)
    /\ UNCHANGED <<media, book, world, history>>

Return(c) ==            \* What it lacks is on record; or nothing was written since it left.
    /\ phase = "up" /\ ~ Saving
    /\ state[c] = "absent" /\ record.on[c] \in here
    /\ state' = [state EXCEPT ![c] = IF c \in record.current THEN "active" ELSE "stale"]
    /\ took' = took \ {c}
    /\ UNCHANGED <<media, book, world, phase, record, untold, votes, log, newest, pending, contents, history>>

BlankRing == [p \in 0 .. Size - 1 |-> Nothing]

Replace(c, d) ==        \* A new device takes the place of one that is gone, and is empty.
    /\ Ready("up")
    /\ state[c] = "absent"
    /\ d \notin On(Member)
    /\ here' = {e \in here : e \in Others \/ Place[e] # Place[d]} \union {d}
    /\ On(Reachable) \subseteq here'
    /\ ring' = [ring EXCEPT ![d] = BlankRing]
    /\ slots' = [slots EXCEPT ![d] = [i \in 0 .. 1 |-> NoCheckpoint]]
    /\ ringCache' = [ringCache EXCEPT ![d] = Empty] /\ slotCache' = [slotCache EXCEPT ![d] = Empty]
    /\ Save([record.on EXCEPT ![c] = d], [state EXCEPT ![c] = "stale"])
    /\ Leave(c)
    /\ trouble' = [trouble EXCEPT !.spares = @ + 1]
    /\ UNCHANGED <<book, phase, history>>

Activate(c) ==          \* It lacks nothing, and nothing that it has kept can count.
    /\ Ready("up")
    /\ state[c] = "stale"
    /\ c \in took /\ pending = NoCheckpoint
    /\ log.begun = "yes"
    /\ Save(record.on, [state EXCEPT ![c] = "active"])
    /\ UNCHANGED <<media, book, world, phase, log, newest, pending, took, contents, history>>
=============================================================================
