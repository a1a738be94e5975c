------------------------- MODULE MCOverlappingDisk -------------------------
(***************************************************************************)
(* The promises of OverlappingDisk, stated a second time: over the calls   *)
(* and answers alone, as who sends requests sees them.  No step of a       *)
(* request appears below, only what was answered before what was called.   *)
(*                                                                         *)
(* Every id is used once, so a behaviour has as many requests as ids.  A   *)
(* write writes one block, and each value is written by one request, so a  *)
(* value tells which write it came from.                                   *)
(***************************************************************************)
EXTENDS OverlappingDisk

CONSTANT InFlight   \* How many requests are in flight at most.

VARIABLES
    past,       \* The calls and answers, oldest first: [id, what, request, r, data].
    cuts        \* How many power cuts there were.

mc == <<overlap, past, cuts>>

Blocks == 0 .. Size - 1

MCRequest ==
    [op : {"write"}, lba : Blocks, data : [{1} -> Value \ {Zero}]]
    \union [op : {"read"}, view : {Live} \union Name, lba : {0}, count : {Size}]
    \union [op : {"snapshot"}, name : Name]
    \union [op : {"flush"}]

MCUnflushed == {q \in MCRequest : q.op # "flush"}   \* Under `ack` a flush makes no difference.
----------------------------------------------------------------------------
Told(id, what, r, data) ==
    past' = Append(past, [id |-> id, what |-> what, request |-> flight'[id].request,
                          r |-> r, data |-> data])

Called == {past[i].id : i \in {j \in DOMAIN past : past[j].what = "call"}}

Written_(v) == \E i \in DOMAIN past : past[i].request.op = "write" /\ past[i].request.data[1] = v

DoCall(id, q) ==    \* Ids and values in ascending order: the rest is the same by other names.
    /\ id \notin Called
    /\ \A i \in Id : i < id => i \in Called
    /\ Cardinality(DOMAIN flight) < InFlight
    /\ q.op = "write" => /\ ~Written_(q.data[1])
                         /\ \A v \in Value \ {Zero} : v < q.data[1] => Written_(v)
    /\ Call(id, q)
    /\ Told(id, "call", "", Nothing)
    /\ UNCHANGED cuts

DoReply(id) ==
    /\ id \in DOMAIN flight
    /\ Reply(id)
    /\ past' = Append(past, [id |-> id, what |-> "answer", request |-> flight[id].request,
                             r |-> flight[id].r, data |-> flight[id].data])
    /\ UNCHANGED cuts

DoPowerCut ==
    /\ cuts = 0
    /\ PowerCut
    /\ past' = Append(past, [id |-> 0, what |-> "cut", request |-> [op |-> "crash"],
                             r |-> "", data |-> Nothing])
    /\ cuts' = cuts + 1

MCInit == OverlapInit /\ past = <<>> /\ cuts = 0

MCNext ==
    \/ \E id \in Id :
        \/ \E q \in Request : DoCall(id, q)
        \/ DoReply(id)
        \/ /\ \/ \E step \in {Whole} \union Blocks : Take(id, step)
              \/ \E r \in {"snapshot-exists", "no-such-snapshot"} : Refuse(id, r)
           /\ UNCHANGED <<past, cuts>>
    \/ DoPowerCut
    \/ Recover /\ UNCHANGED <<past, cuts>>

MCSpec == MCInit /\ [][MCNext]_mc
----------------------------------------------------------------------------
Position(id, what) ==
    LET at == {i \in DOMAIN past : past[i].id = id /\ past[i].what = what}
    IN  IF at = {} THEN 1000 ELSE CHOOSE i \in at : TRUE

Before(a, b) == Position(a, "answer") < Position(b, "call")

Of(id) == past[Position(id, "call")].request

Writes == {id \in Called : Of(id).op = "write"}

Answered(op) == {id \in Called : Of(id).op = op /\ Position(id, "answer") < 1000
                                 /\ past[Position(id, "answer")].r = "ok"}

Shows(content, w) == content[Of(w).lba] = Of(w).data[1]

\* The content has what w wrote, or what came in its place later or meanwhile.
HasWrite(content, w) ==
    \/ Shows(content, w)
    \/ \E other \in Writes : Of(other).lba = Of(w).lba /\ Shows(content, other) /\ ~Before(other, w)

\* A cut of the whole disk between a call and an answer: complete, not from the future, consistent.
Consistent(content, id) ==
    /\ \A w \in Writes :
        /\ Before(w, id) => HasWrite(content, w)
        /\ Before(id, w) => ~Shows(content, w)
        /\ Shows(content, w) => \A earlier \in Writes : Before(earlier, w) => HasWrite(content, earlier)
    /\ \A l \in Blocks : content[l] # Zero => \E w \in Writes : Of(w).lba = l /\ Shows(content, w)

SnapshotIsAConsistentCut ==
    cuts = 0 => \A s \in Answered("snapshot") : Consistent(disk.snaps[Of(s).name], s)

\* A read of the whole disk is one too, if a request is one step.
ReadIsAConsistentCut ==
    Atomic = "request" /\ cuts = 0 =>
        \A id \in Answered("read") : Of(id).view = Live =>
            Consistent([l \in Blocks |-> past[Position(id, "answer")].data[l + 1]], id)

\* What a read of a snapshot shows is the cut that the snapshot is, whatever was written since.
SnapshotReadsAsTaken ==
    cuts = 0 =>
        \A id \in Answered("read"), s \in Answered("snapshot") : Of(id).view = Of(s).name =>
            Consistent([l \in Blocks |-> past[Position(id, "answer")].data[l + 1]], s)

Refused(r) == {id \in Called : Position(id, "answer") < 1000 /\ past[Position(id, "answer")].r = r}

\* A snapshot is refused for another one of its name; a read for a snapshot that was not there.
RefusalsAreDue ==
    /\ \A id \in Refused("snapshot-exists") : \E other \in Called \ {id} :
        Of(other).op = "snapshot" /\ Of(other).name = Of(id).name /\ ~Before(id, other)
    /\ cuts = 0 => \A id \in Refused("no-such-snapshot"), s \in Answered("snapshot") :
        Of(id).view = Of(s).name => ~Before(s, id)

\* A snapshot reads alike for ever: two reads of it agree.
SnapshotsStay ==
    \A a, b \in Answered("read") :
        Of(a).view # Live /\ Of(a).view = Of(b).view /\ Len(past) > 0 =>
            past[Position(a, "answer")].data = past[Position(b, "answer")].data

CutAt == Position(0, "cut")

Durable(w) ==       \* No power cut may take it back.
    \/ Profile = "ack" /\ Position(w, "answer") < CutAt
    \/ \E f \in Answered("flush") : Before(w, f) /\ Position(f, "answer") < CutAt

\* A flush covers what was answered before it was called; under `ack` everything answered is covered.
NothingDurableIsLost ==
    power /\ cuts = 1 /\ Len(past) = CutAt =>
        \A w \in Writes : Durable(w) => HasWrite(disk.live, w)

\* Under `prefix` what survives is a cut of the history as well.
WhatSurvivesIsConsistent ==
    power /\ cuts = 1 /\ Len(past) = CutAt /\ Profile # "block" /\ Atomic = "request" =>
        \A w \in Writes : Shows(disk.live, w) =>
            \A earlier \in Writes : Before(earlier, w) => HasWrite(disk.live, earlier)

\* Under `ack` a power cut does not take back what a read has shown, though its write was cut.
WhatWasReadStays ==
    power /\ cuts = 1 /\ Len(past) = CutAt /\ Profile = "ack" =>
        \A id \in Answered("read"), w \in Writes :
            Of(id).view = Live /\ past[Position(id, "answer")].data[Of(w).lba + 1] = Of(w).data[1]
                => HasWrite(disk.live, w)

Sequential == Spec  \* VirtualDisk's: what requests take are its steps.
=============================================================================
