---------------------------- MODULE MirroredLog ----------------------------
(***************************************************************************)
(* The durable log and the two checkpoint slots on mirrors.  Mirrors fail  *)
(* and come back, and the power fails, too.  It implements DurableLog:     *)
(* what was durable is found again, and what recovery did not find never   *)
(* comes back.                                                             *)
(*                                                                         *)
(* - The log is a ring.  A record says its sequence number, its generation *)
(*   and which record before it was the last to be flushed.  A power cut   *)
(*   loses or tears any of what was not flushed, on each mirror by itself. *)
(* - Recovery takes the newest checkpoint and each next record from any    *)
(*   current mirror, and writes it to the others.  Each opening begins a   *)
(*   generation, with a record that is flushed before any other is         *)
(*   written.  Recovery then never takes what an earlier one did not find. *)
(* - If a record is missing, and one behind it says that it was flushed,   *)
(*   then it was damaged: the log stays closed.                            *)
(* - The membership record says which device each mirror is on, and which  *)
(*   mirrors are current.  It counts once a majority of the voters has it. *)
(*   The operation that changed it waits for that.  `Others` vote and hold *)
(*   nothing but the record: the witness of two mirrors, and members that  *)
(*   have no part in the performance leg.                                  *)
(* - A membership record that was put on a minority may turn up later.     *)
(*   So to open the log is to begin a term.  First a majority promises the *)
(*   term, so that no two openings use the same one, even if the first was *)
(*   cut short and the second does not see it.  Then the record that was   *)
(*   found is put on a majority under the new term, before anything is     *)
(*   changed.  Where all voters are there and agree, no other record can   *)
(*   exist, and the term goes on.                                          *)
(* - A mirror that was away lacks what was written meanwhile.  It becomes  *)
(*   current after a checkpoint whose slot was written to it, too, in a    *)
(*   generation whose first record is durable: then recovery takes none of *)
(*   the old records that the mirror still has.                            *)
(*                                                                         *)
(* Left out: what the operations do and what the checkpoint refers to      *)
(* (LogStructuredDisk), copying nodes and chunks to a mirror that is back  *)
(* (Redundancy), records of several places, the two copies of a membership *)
(* record on each device (a copy that is torn leaves the other one).       *)
(*                                                                         *)
(* How to break it: let Begin not flush, let Open keep the term that it    *)
(* found, or let Load heal no slot; then run MCMirroredLog.                *)
(***************************************************************************)
EXTENDS MirroredLogMembers
----------------------------------------------------------------------------
(* The log and the slots, while it is up.                                  *)

At(d, sequence) ==      \* What a device has where that record goes.
    IF Slot(sequence) \in DOMAIN ringCache[d] THEN ringCache[d][Slot(sequence)] ELSE ring[d][Slot(sequence)]

SlotAt(d, i) == IF i \in DOMAIN slotCache[d] THEN slotCache[d][i] ELSE slots[d][i]

Put(on, r) ==
    ringCache' = [d \in Device |-> IF d \in on THEN Over([p \in {Slot(r.sequence)} |-> r], ringCache[d]) ELSE ringCache[d]]

PutSlot(on, checkpoint) ==
    slotCache' = [d \in Device |->
        IF d \in on THEN Over([i \in {checkpoint.number % 2} |-> checkpoint], slotCache[d]) ELSE slotCache[d]]

FlushRing(on) ==
    /\ ring' = [d \in Device |-> IF d \in on THEN Over(ringCache[d], ring[d]) ELSE ring[d]]
    /\ ringCache' = [d \in Device |-> IF d \in on THEN Empty ELSE ringCache[d]]

FlushSlots(on) ==
    /\ slots' = [d \in Device |-> IF d \in on THEN Over(slotCache[d], slots[d]) ELSE slots[d]]
    /\ slotCache' = [d \in Device |-> IF d \in on THEN Empty ELSE slotCache[d]]

HasRoom == log.sequence - newest.sequence < Size

Made(kind, op, generation) ==
    [kind |-> kind, sequence |-> log.sequence, generation |-> generation, flushed |-> log.flushed, op |-> op]

Begin ==                \* A generation; its record is flushed before any other is written.
    /\ Ready("up")
    /\ log.begun = "no" /\ HasRoom
    /\ Put(On(Reachable), Made("open", 0, log.generation + 1))
    /\ log' = [log EXCEPT !.sequence = @ + 1, !.generation = @ + 1, !.begun = "written"]
    /\ UNCHANGED <<ring, slots, slotCache, book, world, phase, members, newest, pending, took, contents, history>>

Submit ==               \* The record of an operation goes to every mirror that can be reached.
    /\ Ready("up")
    /\ log.begun = "yes" /\ HasRoom
    /\ issued' = issued + 1
    /\ Put(On(Reachable), Made("op", issued', log.generation))
    /\ log' = [log EXCEPT !.sequence = @ + 1]
    /\ contents' = Append(contents, issued')
    /\ held' = Append(held, issued')
    /\ UNCHANGED <<ring, slots, slotCache, book, world, phase, members, newest, pending, took, durable, saved>>

LogAppend ==            \* All mirrors have flushed.
    /\ Ready("up")
    /\ log.flushed < log.sequence - 1
    /\ FlushRing(On(Reachable))
    /\ log' = [log EXCEPT !.flushed = log.sequence - 1, !.begun = IF @ = "written" THEN "yes" ELSE @]
    /\ durable' = Len(held)
    /\ UNCHANGED <<slots, slotCache, book, world, phase, members, newest, pending, took, contents, held, saved, issued>>

CheckpointNodes ==      \* All is flushed, and the slot is being written.
    /\ Ready("up")
    /\ pending = NoCheckpoint
    /\ log.flushed = log.sequence - 1
    /\ pending' = [number |-> newest.number + 1, sequence |-> log.sequence, generation |-> log.generation,
                   contents |-> contents]
    /\ PutSlot(On(Reachable), pending')
    /\ took' = Reachable
    /\ UNCHANGED <<ring, slots, ringCache, book, world, phase, members, log, newest, contents, history>>

CheckpointCommit ==     \* The slot is flushed: what it holds is no longer needed in the log.
    /\ Ready("up")
    /\ pending # NoCheckpoint
    /\ FlushSlots(On(Reachable))
    /\ newest' = pending
    /\ pending' = NoCheckpoint
    /\ saved' = Len(pending.contents)
    /\ UNCHANGED <<ring, ringCache, book, world, phase, members, log, took, contents, held, durable, issued>>
----------------------------------------------------------------------------
(* Opening.                                                                *)

Open ==                 \* More than half of those that the newest record names are there, and one of them is current.
    /\ phase = "down"
    /\ \E r \in Found :
        LET there == {c \in Member : r.on[c] \in here}
            votersThere == {r.on[c] : c \in there} \union (Others \intersect here)
        IN  /\ \A s \in Found : Later(r, s)
            /\ Majority(Cardinality(votersThere))
            /\ there \intersect r.current # {}
            /\ IF \A v \in {r.on[c] : c \in Member} \union Others : v \in here /\ book[v] = r
               THEN record' = r /\ untold' = {} /\ phase' = "load"
               ELSE /\ record' = [r EXCEPT !.promise = 1 + Promised({r} \union {book[v] : v \in votersThere})]
                    /\ untold' = votersThere
                    /\ phase' = "promising"
            /\ state' = [c \in Member |-> CASE c \notin there     -> "absent"
                                            [] c \in r.current    -> "active"
                                            [] OTHER              -> "stale"]
    /\ votes' = 0
    /\ UNCHANGED <<media, book, world, log, newest, pending, took, contents, history>>

Load ==                 \* The newest checkpoint of all current mirrors is written where it is not.
    /\ Ready("load")
    /\ LET slotsThere == {SlotAt(d, i) : d \in On(Active), i \in 0 .. 1}
           best == CHOOSE s \in slotsThere : \A t \in slotsThere : s.number >= t.number
       IN  /\ newest' = best
           /\ PutSlot({d \in On(Active) : SlotAt(d, best.number % 2) # best}, best)
    /\ phase' = "loaded"
    /\ UNCHANGED <<ring, slots, ringCache, book, world, members, log, pending, took, contents, history>>

Loaded ==               \* It is flushed, and members found missing are on record.
    /\ Ready("loaded")
    /\ FlushSlots(On(Active))
    /\ contents' = newest.contents
    /\ log' = [sequence |-> newest.sequence, generation |-> newest.generation, flushed |-> 0, begun |-> "no"]
    /\ took' = {} /\ pending' = NoCheckpoint
    /\ phase' = "replay"
    /\ IF record.current = Active THEN UNCHANGED members ELSE Save(record.on, state)
    /\ UNCHANGED <<ring, ringCache, book, world, newest, history>>

IsNext(r) ==
    /\ r.sequence = log.sequence
    /\ \/ r.generation = log.generation
       \/ r.kind = "open" /\ r.generation > log.generation

Candidates == {r \in {At(d, log.sequence) : d \in On(Active)} : IsNext(r)}

Replay ==               \* One record: it is written where it is not, and happens again.
    /\ Ready("replay")
    /\ HasRoom
    /\ \E r \in Candidates :
        /\ Put({d \in On(Active) : At(d, log.sequence) # r}, r)
        /\ contents' = IF r.kind = "op" THEN Append(contents, r.op) ELSE contents
        /\ log' = [log EXCEPT !.sequence = @ + 1, !.generation = r.generation]
    /\ UNCHANGED <<ring, slots, slotCache, book, world, phase, members, newest, pending, took, history>>

Behind == {At(d, s) : d \in On(Active), s \in 0 .. Size - 1}    \* All that the ring holds.

Vouched ==              \* A record behind the end says that the missing one was flushed.
    \E r \in Behind :
        r.sequence > log.sequence /\ r.generation >= log.generation /\ r.flushed >= log.sequence

Ended == Candidates = {} \/ ~ HasRoom

Recover ==              \* No current mirror has the next record.
    /\ Ready("replay")
    /\ Ended
    /\ ~ Vouched
    /\ FlushRing(On(Active))
    /\ log' = [log EXCEPT !.flushed = log.sequence - 1]
    /\ phase' = "up"
    /\ held' = contents /\ durable' = Len(contents) /\ saved' = Len(newest.contents)
    /\ UNCHANGED <<slots, slotCache, book, world, members, newest, pending, took, contents, issued>>

Refuse ==               \* It was damaged: the log stays closed.
    /\ Ready("replay")
    /\ Ended /\ Vouched
    /\ phase' = "damaged"
    /\ UNCHANGED <<media, book, world, members, log, newest, pending, took, contents, history>>
----------------------------------------------------------------------------
(* What happens to it.                                                     *)

Fate == {"lost", "kept", "torn"}

Fates(records) == [records -> Fate]

SlotFates(checkpoints) == [checkpoints -> Fate]

Left(fate, old, new, torn) == CASE fate = "lost" -> old [] fate = "kept" -> new [] fate = "torn" -> torn

Forgotten ==            \* What memory is once it is lost.
    /\ phase' = "down"
    /\ record' = [term |-> 0, number |-> 0, promise |-> 0, on |-> [c \in Member |-> c], current |-> {}]
    /\ state' = [c \in Member |-> "absent"]
    /\ untold' = {} /\ votes' = 0
    /\ log' = [sequence |-> 0, generation |-> 0, flushed |-> 0, begun |-> "no"]
    /\ pending' = NoCheckpoint /\ took' = {} /\ contents' = <<>>

Crash ==                \* The power fails: any of what was not flushed is lost or torn, on each device by itself.
    /\ phase # "down"
    /\ LET records == UNION {{d} \X DOMAIN ringCache[d] : d \in Device}
           checkpoints == UNION {{d} \X DOMAIN slotCache[d] : d \in Device}
       IN  /\ \E fate \in Fates(records) :
                ring' = [d \in Device |-> [p \in DOMAIN ring[d] |->
                    IF <<d, p>> \in records THEN Left(fate[<<d, p>>], ring[d][p], ringCache[d][p], Nothing)
                    ELSE ring[d][p]]]
           /\ \E fate \in SlotFates(checkpoints) :
                slots' = [d \in Device |-> [i \in 0 .. 1 |->
                    IF <<d, i>> \in checkpoints THEN Left(fate[<<d, i>>], slots[d][i], slotCache[d][i], NoCheckpoint)
                    ELSE slots[d][i]]]
    /\ ringCache' = [d \in Device |-> Empty] /\ slotCache' = [d \in Device |-> Empty]
    /\ Forgotten
    /\ newest' = First
    /\ trouble' = [trouble EXCEPT !.crashes = @ + 1]
    /\ UNCHANGED <<book, here, history>>

Pull(v) ==              \* A device goes, with power of its own: it keeps what it was given.
    /\ v \in here
    /\ here' = here \ {v}
    /\ trouble' = [trouble EXCEPT !.pulls = @ + 1]
    /\ IF v \in Device THEN FlushRing({v}) /\ FlushSlots({v}) ELSE UNCHANGED media
    /\ UNCHANGED <<book, memory, history>>

Insert(v) ==            \* And comes back; while the power is off in the place of another.
    /\ v \in Voter \ here
    /\ LET inPlace == {d \in here \intersect Device : v \in Device /\ Place[d] = Place[v]}
       IN  /\ inPlace = {} \/ phase = "down"
           /\ here' = (here \ inPlace) \union {v}
    /\ UNCHANGED <<media, book, trouble, memory, history>>

Damage(d, p) ==         \* A record decays on one device.
    /\ p \notin DOMAIN ringCache[d]
    /\ ring[d][p] # Nothing
    /\ ring' = [ring EXCEPT ![d][p] = Nothing]
    /\ trouble' = [trouble EXCEPT !.damages = @ + 1]
    /\ UNCHANGED <<slots, ringCache, slotCache, book, here, memory, history>>
----------------------------------------------------------------------------
Init ==
    /\ ring = [d \in Device |-> BlankRing]
    /\ slots = [d \in Device |-> [i \in 0 .. 1 |-> IF i = 1 /\ d \in Member THEN First ELSE NoCheckpoint]]
    /\ ringCache = [d \in Device |-> Empty] /\ slotCache = [d \in Device |-> Empty]
    /\ book = [v \in Voter |-> IF v \in Member \union Others THEN Founding ELSE [Founding EXCEPT !.term = 0, !.promise = 0]]
    /\ here = Member \union Others
    /\ phase = "up" /\ record = Founding /\ state = [c \in Member |-> "active"]
    /\ untold = {} /\ votes = 0
    /\ log = [sequence |-> 1, generation |-> 0, flushed |-> 0, begun |-> "no"]
    /\ newest = First /\ pending = NoCheckpoint /\ took = {} /\ contents = <<>>
    /\ held = <<>> /\ durable = 0 /\ saved = 0 /\ issued = 0
    /\ trouble = [crashes |-> 0, pulls |-> 0, spares |-> 0, damages |-> 0]

Work ==                 \* What the engine does.
    \/ Tell \/ Counted
    \/ \E c \in Member : Fail(c) \/ Return(c) \/ Activate(c)
    \/ Begin \/ Submit \/ LogAppend \/ CheckpointNodes \/ CheckpointCommit
    \/ Open \/ Load \/ Loaded \/ Replay \/ Recover \/ Refuse

Trouble ==              \* What happens to it.
    \/ Crash
    \/ \E d \in Device, p \in 0 .. Size - 1 : Damage(d, p)
    \/ \E v \in Voter : Pull(v) \/ Insert(v)
    \/ \E c \in Member, d \in Device : Replace(c, d)

Next == Work \/ Trouble
Spec == Init /\ [][Next]_vars
=============================================================================
