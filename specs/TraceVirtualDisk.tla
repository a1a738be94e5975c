-------------------------- MODULE TraceVirtualDisk --------------------------
(***************************************************************************)
(* Is a recorded trace a behaviour of VirtualDisk?  Every event takes one  *)
(* step, and the step is the contract's own action, so that an accepted    *)
(* trace refines it by construction.  Many traces are followed in one run, *)
(* each from an initial state of its own; all have one crash profile.      *)
(*                                                                         *)
(*   VirtualDisk           trace                                           *)
(*   -------------------   ----------------------------------------------  *)
(*   the action            op                                              *)
(*   lba, count            lba, count (a write's count: the length of tags)*)
(*   WriteThrough          a write with fua                                *)
(*   data of Write         tags                                            *)
(*   data of Read          result.tags                                     *)
(*   view                  view; without one, Live                         *)
(*   name                  name                                            *)
(*   size of Create        blocks                                          *)
(*   r                     "ok" if result.ok, else result.error;           *)
(*                         "cut" if result is null                         *)
(*   Profile               hello.crash_profile ("ack" if it is null)       *)
(*   Holds                 0: what a target promises is judged elsewhere   *)
(*   Name                  the legal ones among the strings in the traces  *)
(*   Value, Zero           the integers; 0                                 *)
(*                                                                         *)
(* One property of devices is judged: data may be lost only while more of  *)
(* them have failed than the target tolerates.                             *)
(*                                                                         *)
(* How to break it: change a tag in a trace; it is followed to there.      *)
(***************************************************************************)
EXTENDS VirtualDisk, TraceFile, FiniteSets

VARIABLES
    trace,      \* Which of the traces this is.
    next        \* The event that is to be matched next.

Hello == Traces[trace].header.hello

Events == Traces[trace].events

Result(e) ==
    CASE "result" \notin DOMAIN e -> "cut"
      [] e.result.ok              -> "ok"
      [] OTHER                    -> e.result.error

ViewOf(e) == IF "view" \in DOMAIN e THEN e.view ELSE Live
----------------------------------------------------------------------------
(* What a crash left, found by reading ahead.                              *)
(*                                                                         *)
(* Under "block" an image has as many resolutions as there are choices of  *)
(* a value for each block that was written since the flush: too many.  But *)
(* no action compares what two blocks hold, or moves it to another LBA.  So*)
(* follow what the block holds after the crash through the events to come: *)
(* `sure` are the places where it is, whatever the answers left open,      *)
(* `maybe` those where it may be.  Read in a sure place, it is what was    *)
(* read, or this very event cannot be matched.  Until then only the values *)
(* read in a place where it may be can make a difference, and all others   *)
(* are alike: one stands for them.  Nothing is accepted or rejected, or    *)
(* rejected at another event, than with all resolutions.                   *)

Durable == "(durable)"      \* The place from which a power cut takes it.

Shows(e, l) == e.op = "read" /\ Result(e) = "ok" /\ l - e.lba \in 0 .. e.count - 1

Changes(e, l) ==
    \/ e.op = "write" /\ l - e.lba \in 0 .. Len(e.tags) - 1
    \/ e.op = "unmap" /\ l - e.lba \in 0 .. e.count - 1

Through(e) == e.op = "write" /\ "fua" \in DOMAIN e /\ e.fua

Copied(places, from, to) == IF from \in places THEN places \union {to} ELSE places \ {to}

Moved(places, e, l) ==      \* Where it is once the event has happened, if it was there.
    CASE e.op \in {"write", "unmap"}   ->
                IF ~Changes(e, l) THEN places ELSE IF Through(e) THEN places \ {Live, Durable} ELSE places \ {Live}
      [] e.op \in {"flush", "restart"} -> Copied(places, Live, Durable)
      [] e.op = "snapshot"             -> Copied(Copied(places, Live, e.name), Live, Durable)
      [] e.op = "delete"               -> Copied(places \ {e.name}, Live, Durable)
      [] e.op = "revert"               -> Copied(Copied(places, e.name, Live), e.name, Durable)
      [] e.op = "crash"                -> Copied(places, Durable, Live)
      [] OTHER                         -> places

Any(values) == IF values = {} THEN {} ELSE {CHOOSE v \in values : TRUE}

RECURSIVE Candidates(_, _, _, _, _, _)
Candidates(i, l, values, sure, maybe, read) ==
    IF i > Len(Events) \/ maybe = {} THEN read \union Any(values \ read)
    ELSE LET e == Events[i]
             r == Result(e)
             value == e.result.tags[l - e.lba + 1]
             now == read \union ({value} \intersect values)
             kept == IF Changes(e, l) THEN sure \ {Live, Durable} ELSE Moved(sure, e, l)
         IN  IF Shows(e, l)
             THEN IF ViewOf(e) \in sure THEN (IF now = {} THEN Any(values) ELSE now)
                  ELSE Candidates(i + 1, l, values, sure, maybe, IF ViewOf(e) \in maybe THEN now ELSE read)
             ELSE IF r = "ok"
             THEN Candidates(i + 1, l, values, kept, Moved(maybe, e, l), read)
             ELSE IF r \in {"cut", "unknown-outcome"}
             THEN Candidates(i + 1, l, values, sure \intersect kept, maybe \union Moved(maybe, e, l), read)
             ELSE Candidates(i + 1, l, values, sure, maybe, read)

RECURSIVE Choices(_, _, _)
Choices(f, open, candidates) ==     \* The functions that are f, but for one of the candidates where it is open.
    IF open = {} THEN {f}
    ELSE LET l == CHOOSE x \in open : TRUE
         IN  UNION {Choices([f EXCEPT ![l] = v], open \ {l}, candidates) : v \in candidates[l]}

ReadAhead(image) ==                 \* In place of Resolutions.
    LET candidates == [l \in DOMAIN image.live |-> 
            IF Cardinality(image.live[l]) = 1 THEN image.live[l]
            ELSE Candidates(next + 1, l, image.live[l], {Live, Durable}, {Live, Durable}, {})]
        some == [l \in DOMAIN image.live |-> CHOOSE v \in candidates[l] : TRUE]
        open == {l \in DOMAIN image.live : Cardinality(candidates[l]) > 1}
    IN  {[live |-> f, snaps |-> image.snaps] : f \in Choices(some, open, candidates)}
----------------------------------------------------------------------------
(* Devices: which have failed, which of those are back but not settled, and *)
(* which may be back, since the answer left that open.                      *)

RECURSIVE Devices(_)
Devices(n) ==       \* After the first n events.
    IF n = 0 THEN [failed |-> {}, back |-> {}, asked |-> {}, lost |-> FALSE]
    ELSE LET before == Devices(n - 1)
             e == Events[n]
             r == Result(e)
             tolerated == IF "tolerates" \in DOMAIN Hello THEN Hello.tolerates ELSE 0
             inDoubt == r \in {"cut", "unknown-outcome"}
             failed == before.failed \union {e.device}
             \* Within tolerance a refusal says that it is back, if it may have come back before.
             repeated == e.device \in before.asked /\ Cardinality(before.failed) <= tolerated /\ ~before.lost
             Brought(all) ==
                CASE e.device \notin all.failed -> all
                  [] inDoubt                    -> [all EXCEPT !.asked = @ \union {e.device}]
                  [] r = "ok" \/ repeated       -> [all EXCEPT !.back = @ \union {e.device}]
                  [] OTHER                      -> all
         IN  CASE e.op = "fail" ->
                    [before EXCEPT !.failed = failed, !.back = @ \ {e.device}, !.asked = @ \ {e.device}]
               [] e.op = "replace" /\ (r = "ok" \/ inDoubt) ->
                    Brought([before EXCEPT !.failed = failed,
                                           !.lost = @ \/ Cardinality(failed) > tolerated])
               [] e.op \in {"return", "replace"} -> Brought(before)
               [] e.op = "settle" /\ r = "ok" ->
                    [before EXCEPT !.failed = @ \ before.back, !.back = {}]
               [] OTHER -> before

BeyondTolerance ==
    LET devices == Devices(next - 1)
        tolerated == IF "tolerates" \in DOMAIN Hello THEN Hello.tolerates ELSE 0
    IN  devices.lost \/ Cardinality(devices.failed) > tolerated
----------------------------------------------------------------------------
(* One event, one action.                                                  *)

Hint(r) ==          \* What the disk reads as does not depend on it, but the power may fail meanwhile.
    /\ power
    /\ IF r = "cut" THEN Crash("cut") ELSE UNCHANGED vars

Step(e, r) ==
    CASE Through(e)        -> WriteThrough(e.lba, e.tags, r)
      [] e.op = "write"    -> Write(e.lba, e.tags, r)
      [] e.op = "unmap"    -> Unmap(e.lba, e.count, r)
      [] e.op = "read"     -> Read(ViewOf(e), e.lba, e.count, r, IF r = "ok" THEN e.result.tags ELSE <<>>)
      [] e.op = "snapshot" -> Snapshot(e.name, r)
      [] e.op = "delete"   -> Delete(e.name, r)
      [] e.op = "revert"   -> Revert(e.name, r)
      [] e.op = "flush"    -> Flush(r)
      [] e.op = "restart"  -> Restart(r)
      [] e.op = "crash"    -> Crash(r)
      [] e.op = "create"   -> r = "ok" /\ Create(e.blocks)
      [] OTHER             -> Hint(r)

Lost(e) ==          \* Too many devices have failed for the data to be read.
    /\ e.op = "read"
    /\ BeyondTolerance
    /\ power
    /\ UNCHANGED vars

Unsupported(e) ==   \* A capability that the target did not declare, or a hint.
    /\ e.op \notin {"create", "write", "read"}
    /\ \/ e.op \in {"clean", "scrub"}
       \/ \A i \in DOMAIN Hello.capabilities : Hello.capabilities[i] # e.op
    /\ power
    /\ UNCHANGED vars
----------------------------------------------------------------------------
TraceInit ==
    /\ Init
    /\ trace \in DOMAIN Traces
    /\ next = 1

TraceNext ==
    /\ next <= Len(Events)
    /\ next' = next + 1
    /\ trace' = trace
    /\ LET e == Events[next]
           r == Result(e)
       IN  CASE r = "data-lost" /\ e.op = "read" -> Lost(e)
             [] r = "unsupported"               -> Unsupported(e)
             [] OTHER                           -> Step(e, r)

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, trace, next>>

Progress == Reached(trace, next)    \* A constraint that always holds: TLC asks it of every state.
=============================================================================
