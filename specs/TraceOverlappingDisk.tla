------------------------ MODULE TraceOverlappingDisk ------------------------
(***************************************************************************)
(* Is a recorded trace whose requests overlap a behaviour of               *)
(* OverlappingDisk?  The lines of a trace are its calls and answers, in    *)
(* the order in which they came.  A request takes effect between the two,  *)
(* by steps that are the module's own actions.  Many traces are followed   *)
(* in one run; all have one crash profile, each its own granularity.       *)
(*                                                                         *)
(*   OverlappingDisk           line                                        *)
(*   -----------------------   ------------------------------------------  *)
(*   Call                      {"op": "call", "asked": the event}          *)
(*   Take, Refuse              none: as late as can be, before an answer;  *)
(*                             a write with fua is TraceVirtualDisk's      *)
(*   Reply, AnswerUnknown      {"op": "answer", "call": its line}          *)
(*   PowerCut, Recover         the event crash                             *)
(*   an action of VirtualDisk  an event that is sent alone                 *)
(*                                                                         *)
(* The id of a request is the line of its call, which says what will be    *)
(* answered.  What is taken before a request is answered is only what has  *)
(* to stand before it, directly or through others (Ahead): the rest        *)
(* commutes with it, and can be taken later.                               *)
(*                                                                         *)
(* What no answer can tell apart is one:                                   *)
(* - A value that nobody reads is Unseen.                                  *)
(* - Under "prefix" a power cut leaves one of many images.  Which it will  *)
(*   be is chosen when the image comes up (Chosen), and kept.              *)
(* - Under "block" a block holds one of many values after a power cut.     *)
(*   Until it is read it holds a token, and `open` says what that may be.  *)
(*                                                                         *)
(* Left out: what has more steps than TLC is given (the Java property      *)
(* "most"); TLC then says that it gave the trace up.                       *)
(*                                                                         *)
(* How to break it: change a tag in a trace; it is followed to there.      *)
(***************************************************************************)
EXTENDS OverlappingDisk, TraceVirtualDisk

VARIABLE
    open        \* token -> what it may stand for: values, and older tokens.

Line == Events[next]

Asked(id) == Events[id].asked

Said(id) == Result(Asked(id))
----------------------------------------------------------------------------
(* What there is in each trace, found once.                                *)

Requests(t) == {i \in DOMAIN Traces[t].events : Traces[t].events[i].op = "call"}

Seen ==     \* The values that are read.
    [t \in DOMAIN Traces |-> UNION {
        LET e == Traces[t].events[i].asked
        IN  IF e.op = "read" /\ Result(e) = "ok" THEN {e.result.tags[n] : n \in DOMAIN e.result.tags} ELSE {} :
        i \in Requests(t)}]

LastCrash ==    \* The line of the last power cut; 0 if there is none.
    [t \in DOMAIN Traces |->
        LET cuts == {i \in DOMAIN Traces[t].events : Traces[t].events[i].op = "crash"}
        IN  IF cuts = {} THEN 0 ELSE CHOOSE i \in cuts : \A j \in cuts : j <= i]

CutAhead == next <= LastCrash[trace]
----------------------------------------------------------------------------
(* The trace's choices, in place of the specs'.                            *)

Unseen == -2

ByBlock == "atomic" \in DOMAIN Hello /\ Hello.atomic = "block"

TraceSteps(q) ==    \* Of a request past the end that is not refused, blocks within the disk may be changed.
    IF ByBlock /\ q.op \in {"read", "write", "unmap"} /\ (q.unsure \/ Fits(q.lba, Count(q)))
    THEN {step \in 0 .. Count(q) - 1 : q.lba + step \in LBA}
    ELSE {Whole}

Anything(d) == 0    \* How much is held, where nothing is promised.

Chosen(d, left) ==  \* Happens, with one image of those that may survive, if ever it matters.
    /\ disk' = d
    /\ power' = power
    /\ IF CutAhead THEN \E image \in left : survivors' = {image}
       ELSE survivors' = IF Exactly(d) \in left THEN {Exactly(d)} ELSE left

Token(l) == -10 - next * Cardinality(LBA) - l

Undecided(image) == {l \in DOMAIN image.live : Cardinality(image.live[l]) > 1}

Tokens(image) ==    \* In place of Resolutions.
    {[live |-> [l \in DOMAIN image.live |->
                    IF l \in Undecided(image) THEN Token(l) ELSE CHOOSE v \in image.live[l] : TRUE],
      snaps |-> image.snaps]}

RECURSIVE Bound(_, _, _)
Bound(held, value, o) ==    \* The ways in which what is held is that value.
    IF held \notin DOMAIN o THEN (IF held = value THEN {o} ELSE {})
    ELSE UNION {Bound(x, value, [o EXCEPT ![held] = {x}]) : x \in o[held]}

RECURSIVE AllBound(_, _, _, _)
AllBound(data, tags, places, o) ==
    IF places = {} THEN {o}
    ELSE LET i == CHOOSE p \in places : TRUE
         IN  UNION {AllBound(data, tags, places \ {i}, b) : b \in Bound(data[i], tags[i], o)}
----------------------------------------------------------------------------
(* Which steps may have to stand before which.                             *)

Effective(id) == Said(id) \in {"ok", "cut", "unknown-outcome"}    \* It may have happened.

Changing(id) == Effective(id) /\ Asked(id).op \notin {"read", "flush"}

Mattering(id) == Changing(id) \/ Said(id) \notin {"cut", "unknown-outcome"}

Names(id) ==
    LET e == Asked(id)
    IN  IF e.op = "read" THEN {ViewOf(e)} \ {Live}
        ELSE IF "name" \in DOMAIN e THEN {e.name} ELSE {}

Blocks(s) ==        \* The blocks of the live view that a step reads or changes.
    LET q == flight[s[1]].request
    IN  CASE ~Effective(s[1])                     -> {}
          [] q.op \in {"snapshot", "revert"}      -> LBA
          [] q.op \in {"flush", "delete"}         -> {}
          [] q.op = "read" /\ ViewOf(Asked(s[1])) # Live -> {}
          [] s[2] = Whole                         -> q.lba .. q.lba + Count(q) - 1
          [] OTHER                                -> {q.lba + s[2]}

Ordered(s) == Asked(s[1]).op \in {"flush", "snapshot", "delete", "revert"}

Conflict(s, t) ==
    /\ Changing(s[1]) \/ Changing(t[1])
    /\ \/ Names(s[1]) \intersect Names(t[1]) # {}
       \/ Blocks(s) \intersect Blocks(t) # {}
       \/ /\ CutAhead /\ Profile # "ack"    \* Does it matter to what survives?
          /\ Asked(s[1]).op # "read" /\ Asked(t[1]).op # "read"
          /\ Profile = "prefix" \/ Ordered(s) \/ Ordered(t)

Left == {s \in (DOMAIN flight) \X ({Whole} \union LBA) : s[2] \in flight[s[1]].left /\ Mattering(s[1])}

RECURSIVE Ahead(_, _)
Ahead(found, rest) ==
    LET more == {t \in rest : \E s \in found : Conflict(s, t)}
    IN  IF more = {} THEN found ELSE Ahead(found \union more, rest \ more)
----------------------------------------------------------------------------
(* Calls, effects, answers.                                                *)

TagOrUnseen(tag) == IF tag \in Seen[trace] THEN tag ELSE Unseen

AsRequest(e) ==
    LET unsure == Result(e) \in {"cut", "unknown-outcome"}
    IN
    CASE e.op = "write"              -> [op |-> e.op, lba |-> e.lba, data |-> [i \in DOMAIN e.tags |-> TagOrUnseen(e.tags[i])],
                                         unsure |-> unsure]
      [] e.op = "read"               -> [op |-> e.op, view |-> ViewOf(e), lba |-> e.lba, count |-> e.count, unsure |-> unsure]
      [] e.op = "unmap"              -> [op |-> e.op, lba |-> e.lba, count |-> e.count, unsure |-> unsure]
      [] e.op = "flush"              -> [op |-> e.op]
      [] OTHER                       -> [op |-> e.op, name |-> e.name]

Finished(id) == flight' = [flight EXCEPT ![id].left = {}]

Matching(id, step) ==       \* What a read found is what it answered.
    LET tags == Asked(id).result.tags
        data == flight'[id].data
    IN  IF Asked(id).op # "read" THEN open' = open
        ELSE /\ Len(tags) = Asked(id).count
             /\ open' \in AllBound(data, tags, IF step = Whole THEN DOMAIN tags ELSE {step + 1}, open)

TakeThrough(id, step) ==    \* A write that is durable when it is answered; if it never is, it may be.
    LET q == flight[id].request
        lba == IF step = Whole THEN q.lba ELSE q.lba + step
        data == IF step = Whole THEN q.data ELSE [i \in {1} |-> q.data[step + 1]]
    IN  /\ step \in flight[id].left
        /\ WriteThrough(lba, data, IF Said(id) = "ok" THEN "ok" ELSE "unknown-outcome")
        /\ flight' = [flight EXCEPT ![id].left = @ \ {step}]
        /\ open' = open

Effects(id, step) ==
    CASE Effective(id) /\ Through(Asked(id)) /\ (Said(id) = "ok" \/ Profile = "prefix") -> TakeThrough(id, step)
      [] Effective(id)                                    -> Take(id, step) /\ Matching(id, step)
      [] Said(id) = "data-lost" /\ Asked(id).op = "read"  -> Lost(Asked(id)) /\ Finished(id) /\ open' = open
      [] Said(id) = "unsupported"                         -> Unsupported(Asked(id)) /\ Finished(id) /\ open' = open
      [] OTHER                                            -> Refuse(id, Said(id)) /\ open' = open

FollowCall == Call(next, AsRequest(Line.asked)) /\ next' = next + 1 /\ open' = open

FollowAnswer ==
    LET id == Line.call
        first == CHOOSE step \in flight[id].left : \A other \in flight[id].left : step <= other
    IN  CASE Said(id) = "unknown-outcome" -> AnswerUnknown(id) /\ next' = next + 1 /\ open' = open
          [] flight[id].left = {}         -> Reply(id) /\ next' = next + 1 /\ open' = open
          [] OTHER -> /\ \E s \in Ahead({<<id, first>>}, Left) : Effects(s[1], s[2])
                      /\ next' = next

Possible(s) ==
    /\ Changing(s[1])
    /\ "lba" \in DOMAIN Asked(s[1]) /\ s[2] = Whole => Fits(Asked(s[1]).lba, Count(flight[s[1]].request))

FollowCrash ==      \* What is in flight takes effect, or never does; then the power is gone.
    \/ /\ power
       /\ LET able == {s \in Left : Possible(s)}
              onlyAdds == Profile = "block" /\ \A s \in able : ~Ordered(s)    \* More may survive of each, nothing less.
          IN  \/ /\ \E s \in IF onlyAdds /\ able # {} THEN {CHOOSE s \in able : TRUE} ELSE able : Effects(s[1], s[2])
                 /\ next' = next
              \/ (onlyAdds => able = {}) /\ PowerCut /\ next' = next /\ open' = open
    \/ /\ ~power
       /\ IF Result(Line) = "ok" THEN Recover ELSE Crash(Result(Line)) /\ flight' = flight
       /\ next' = next + 1
       /\ open' = IF power' /\ Profile = "block"
                  THEN LET image == CHOOSE i \in survivors : TRUE
                       IN  open @@ [t \in {Token(l) : l \in Undecided(image)} |->
                                        image.live[CHOOSE l \in LBA : Token(l) = t]]
                  ELSE open

FollowAlone ==
    /\ IF Result(Line) = "unsupported" THEN Unsupported(Line) ELSE Step(Line, Result(Line))
    /\ next' = next + 1
    /\ UNCHANGED <<flight, open>>
----------------------------------------------------------------------------
OverlappingInit == TraceInit /\ flight = [i \in {} |-> 0] /\ open = [t \in {} |-> {}]

OverlappingNext ==
    /\ next <= Len(Events)
    /\ trace' = trace
    /\ CASE Line.op = "call"   -> FollowCall
         [] Line.op = "answer" -> FollowAnswer
         [] Line.op = "crash"  -> FollowCrash
         [] OTHER              -> FollowAlone

OverlappingSpec == OverlappingInit /\ [][OverlappingNext]_<<overlap, trace, next, open>>
=============================================================================
