---------------------------- MODULE MCVirtualDisk ----------------------------
(***************************************************************************)
(* The promises of VirtualDisk, stated a second time and in another way:   *)
(* over the history.  The contract keeps images and says what a power cut  *)
(* makes of them; here the operations are written down as they are         *)
(* answered, and everything is replayed from the disk as it was before.    *)
(* Where the two disagree, on a small disk, TLC finds the shortest way     *)
(* there.                                                                  *)
(*                                                                         *)
(* Left out: what VirtualDisk leaves out.  How to break it: see mutants/.  *)
(***************************************************************************)
EXTENDS VirtualDisk

CONSTANT MaxLog     \* How long a history may become: it multiplies states, and no promise needs a long one.

VARIABLES
    base,       \* The disk as it was created, or as the last power cut left it.
    log,        \* The operations that happened to it since, oldest first.
    mark,       \* How many of them no power cut can take back.
    flight,     \* <<the request that the power cut interrupted>>, or <<>>.
    said        \* The last request, and its answer.

history == <<base, log, mark, flight>>
all == <<vars, history, said>>
----------------------------------------------------------------------------
(* Replay, backwards: what a block reads as is for the last operation that *)
(* had a say in it to tell.                                                *)

Blocks == 0 .. Size - 1

Covers(op, l) ==
    CASE op.op \in {"write", "through"} -> l - op.lba \in 0 .. Len(op.data) - 1
      [] op.op = "unmap"  -> l - op.lba \in 0 .. op.count - 1
      [] op.op = "revert" -> TRUE
      [] OTHER            -> FALSE

RECURSIVE ReadsAs(_, _, _)
ReadsAs(h, view, l) ==
    IF h = <<>>
    THEN IF view = Live THEN base.live[l] ELSE base.snaps[view][l]
    ELSE LET op == h[Len(h)]
             earlier == SubSeq(h, 1, Len(h) - 1)
         IN  IF view = Live /\ Covers(op, l)
             THEN CASE op.op \in {"write", "through"} -> op.data[l - op.lba + 1]
                    [] op.op = "unmap"  -> Zero
                    [] op.op = "revert" -> ReadsAs(earlier, op.name, l)
             ELSE IF op.op = "snapshot" /\ op.name = view
             THEN ReadsAs(earlier, Live, l)
             ELSE ReadsAs(earlier, view, l)

Exists(h, name) ==
    LET last == {i \in DOMAIN h : h[i].op \in {"snapshot", "delete"} /\ h[i].name = name}
    IN  IF last = {} THEN name \in DOMAIN base.snaps
        ELSE h[CHOOSE i \in last : \A j \in last : j <= i].op = "snapshot"

Replay(h) ==
    [live |-> [l \in Blocks |-> ReadsAs(h, Live, l)],
     snaps |-> [n \in {x \in Name : Exists(h, x)} |-> [l \in Blocks |-> ReadsAs(h, n, l)]]]
----------------------------------------------------------------------------
(* Why a request is refused.                                              *)

Reasons(op) ==
    CASE op.op \in {"write", "through"} -> IF op.lba + Len(op.data) > Size THEN {"out-of-range"} ELSE {}
      [] op.op = "unmap" -> IF op.lba + op.count > Size THEN {"out-of-range"} ELSE {}
      [] op.op \in {"snapshot", "delete", "revert"} /\ op.name \notin Name ->
            {"bad-request"} \union IF op.op = "snapshot" THEN {} ELSE {"no-such-snapshot"}
      [] op.op = "snapshot" -> IF Exists(log, op.name) THEN {"snapshot-exists"} ELSE {}
      [] op.op \in {"delete", "revert"} -> IF Exists(log, op.name) THEN {} ELSE {"no-such-snapshot"}
      [] OTHER -> {}

Full(op) ==         \* Do the views together hold what was promised, with what the request adds?
    LET views == {Live} \union {n \in Name : Exists(log, n)}
        held == {b \in views \X Blocks : ReadsAs(log, b[1], b[2]) # Zero}
    IN  Cardinality(held) + (IF op.op \in {"write", "through"} THEN Len(op.data) ELSE 1) > Holds
----------------------------------------------------------------------------
(* What the crash profile allows a power cut to leave.                     *)

Buffering(op) == op.op \in {"write", "through", "unmap"}

Pins(op) ==         \* No power cut takes back what was answered up to here.
    \/ Profile = "ack"
    \/ op.op \in {"flush", "restart"}
    \/ Profile = "block" /\ ~Buffering(op)

Prefix(n) == SubSeq(log, 1, n)

\* A write through that was answered is there, whatever is not; one of unknown outcome may be.
Through == {i \in DOMAIN log : log[i].op = "through"}

Sure == {i \in Through : log[i].sure}

RECURSIVE Only(_, _)
Only(n, picked) ==      \* The history up to n, and after it what was picked.
    IF n = Len(log) THEN log
    ELSE LET h == Only(n + 1, picked)
         IN  IF n + 1 \in picked THEN h ELSE SubSeq(h, 1, n) \o SubSeq(h, n + 2, Len(h))

Prefixes ==         \* The history up to a point, and what was written through.
    UNION {{Only(n, Sure \union some) : some \in SUBSET Through} : n \in mark .. Len(log)}

FlownThrough == flight # <<>> /\ flight[1].op = "through"

Block ==            \* Each block its value at the last flush or write through, or one written since.
    LET h == IF flight # <<>> /\ Buffering(flight[1]) THEN log \o flight ELSE log
        values == [l \in Blocks |-> {ReadsAs(SubSeq(h, 1, n), Live, l) :
                        n \in {m \in mark .. Len(h) : \A i \in Sure : Covers(log[i], l) => i <= m}}]
        snaps == Replay(log).snaps
    IN  {[live |-> f, snaps |-> snaps] :
            f \in {g \in [Blocks -> Value] : \A l \in Blocks : g[l] \in values[l]}}

Allowed ==
    {Replay(log \o flight)} \union
    CASE Profile = "ack"    -> {Replay(log)}
      [] Profile = "prefix" -> {Replay(h) : h \in Prefixes}
                               \union IF FlownThrough THEN {Replay(h \o flight) : h \in Prefixes} ELSE {}
      [] Profile = "block"  -> Block
----------------------------------------------------------------------------
(* The contract's actions, with the history written down as they answer.   *)

Happened(r) == r = "ok" \/ (r = "unknown-outcome" /\ vars' # vars)

Tell(op, r) ==
    /\ said' = [request |-> op, answer |-> r]
    /\ base' = base
    /\ log' = IF Happened(r) /\ op.op \notin {"flush", "restart"} THEN Append(log, op) ELSE log
    /\ mark' = IF Happened(r) /\ Pins(op) THEN Len(log') ELSE mark
    /\ flight' = IF r = "cut" /\ Reasons(op) = {} THEN <<op>> ELSE flight

LogHasRoom == Len(log) < MaxLog

Names == Name \union {"?"}      \* With one that is no legal name.

DoWrite == LogHasRoom /\ \E lba \in 0 .. Size, data \in Data, r \in Answers :
    Write(lba, data, r) /\ Tell([op |-> "write", lba |-> lba, data |-> data], r)

DoWriteThrough == LogHasRoom /\ \E lba \in 0 .. Size, data \in Data, r \in Answers :
    /\ WriteThrough(lba, data, r)
    /\ IF Profile = "ack"    \* Where every write is durable, it is one like any other.
       THEN Tell([op |-> "write", lba |-> lba, data |-> data], r)
       ELSE Tell([op |-> "through", lba |-> lba, data |-> data, sure |-> r = "ok"], r)

DoUnmap == LogHasRoom /\ \E lba \in 0 .. Size, count \in 1 .. Size, r \in Answers :
    Unmap(lba, count, r) /\ Tell([op |-> "unmap", lba |-> lba, count |-> count], r)

DoSnapshot == LogHasRoom /\ \E name \in Names, r \in Answers :
    Snapshot(name, r) /\ Tell([op |-> "snapshot", name |-> name], r)

DoDelete == LogHasRoom /\ \E name \in Names, r \in Answers :
    Delete(name, r) /\ Tell([op |-> "delete", name |-> name], r)

DoRevert == LogHasRoom /\ \E name \in Names, r \in Answers :
    Revert(name, r) /\ Tell([op |-> "revert", name |-> name], r)

DoFlush == \E r \in Answers : Flush(r) /\ Tell([op |-> "flush"], r)

DoRestart == \E r \in Answers : Restart(r) /\ Tell([op |-> "restart"], r)

DoCrash ==      \* A new history begins with what recovery found.
    /\ Crash("ok")
    /\ base' = disk' /\ log' = <<>> /\ mark' = 0 /\ flight' = <<>>
    /\ said' = [request |-> [op |-> "crash"], answer |-> "ok"]

DoCutRecovery ==    \* Of a disk that is down: to cut the power of an idle one is to cut a flush short.
    /\ ~power
    /\ Crash("cut")
    /\ UNCHANGED history
    /\ said' = [request |-> [op |-> "crash"], answer |-> "cut"]

MCInit ==
    /\ Init
    /\ base = Blank(Size) /\ log = <<>> /\ mark = 0 /\ flight = <<>>
    /\ said = [request |-> [op |-> "create"], answer |-> "ok"]

MCNext ==
    \/ DoWrite \/ DoWriteThrough \/ DoUnmap \/ DoSnapshot \/ DoDelete \/ DoRevert
    \/ DoFlush \/ DoRestart \/ DoCrash \/ DoCutRecovery

MCSpec == MCInit /\ [][MCNext]_all
----------------------------------------------------------------------------
(* The promises.                                                           *)

\* Every view reads as the history says: unmapped blocks as zeroes, a snapshot as live read when it was taken.
ReadsAreRight ==
    power => \A view \in {Live} \union Names, lba \in -1 .. Size, count \in 1 .. Size :
        LET there == (view = Live \/ Exists(log, view)) /\ lba >= 0 /\ lba + count <= Size
            right == [i \in 1 .. count |-> ReadsAs(log, view, lba + i - 1)]
        IN  \A data \in [1 .. count -> Value] :
                ENABLED Read(view, lba, count, "ok", data) <=> there /\ data = right

\* A snapshot is what live was when it was taken, and no operation changes it.
SnapshotsStay == [][
    said'.request.op # "crash" =>
        \A n \in DOMAIN disk'.snaps :
            disk'.snaps[n] = IF n \in DOMAIN disk.snaps THEN disk.snaps[n] ELSE disk.live]_all

UnmapZeroes == [][
    said'.request.op = "unmap" /\ said'.answer = "ok" =>
        \A l \in Blocks : Covers(said'.request, l) => disk'.live[l] = Zero]_all

\* What was written before a flush, and by nothing since, is what a power cut leaves.
FlushedStays == [][
    said'.request.op = "crash" /\ said'.answer = "ok" =>
        LET since == SubSeq(log, mark + 1, Len(log)) \o flight
        IN  /\ \A l \in Blocks :
                (\A i \in DOMAIN since : ~Covers(since[i], l)) =>
                    disk'.live[l] = ReadsAs(Prefix(mark), Live, l)
            /\ (\A i \in DOMAIN since : since[i].op \notin {"snapshot", "delete"}) =>
                    disk'.snaps = Replay(Prefix(mark)).snaps]_all

\* What was written through, and by nothing since, is what a power cut leaves.
WrittenThroughStays == [][
    said'.request.op = "crash" /\ said'.answer = "ok" =>
        \A i \in Sure, l \in Blocks :
            LET since == SubSeq(log, i + 1, Len(log)) \o flight
            IN  Covers(log[i], l) /\ (\A j \in DOMAIN since : ~Covers(since[j], l)) =>
                    disk'.live[l] = log[i].data[l - log[i].lba + 1]]_all

CrashLeavesOnlyAllowed == [][
    said'.request.op = "crash" /\ said'.answer = "ok" => disk' \in Allowed]_all

\* Nor may the contract be too strict: an engine may do anything that its profile allows.
CrashMayLeaveAllAllowed ==
    Allowed \subseteq UNION {Resolutions(image) : image \in survivors}

\* Whatever ought to be done may be, and is refused for a reason.
AnswersAreDue == [][
    LET op == said'.request
        r == said'.answer
    IN  \/ r \in {"unknown-outcome", "cut"}
        \/ r \in Reasons(op)
        \/ r = "ok" /\ Reasons(op) = {}
        \/ r = "no-space" /\ Reasons(op) = {} /\ op.op \in {"write", "through", "unmap", "snapshot", "revert"} /\ Full(op)]_all

\* What nobody knows may not have happened.
UnknownMayBeNothing ==
    power => \A lba \in Blocks, v \in Value :
        ENABLED (Write(lba, [i \in {1} |-> v], "unknown-outcome") /\ UNCHANGED vars)

\* What was promised is all: beyond it a disk may say that there is no room.
NoSpaceIsExcused ==
    power => \A lba \in Blocks, v \in Value :
        Full([op |-> "write", lba |-> lba, data |-> <<v>>]) =>
            ENABLED (Write(lba, <<v>>, "no-space") /\ UNCHANGED vars)

RecoveryBringsPower == [][
    said'.request.op = "crash" /\ said'.answer = "ok" => power']_all

FailedChangesNothing == [][
    said'.answer \notin {"ok", "unknown-outcome", "cut"} => UNCHANGED <<vars, history>>]_all
----------------------------------------------------------------------------
(* No action reads `said`; properties of steps see it before the view forgets it. *)
Unsaid == <<vars, history>>
=============================================================================
