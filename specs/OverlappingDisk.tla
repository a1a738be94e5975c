-------------------------- MODULE OverlappingDisk --------------------------
(***************************************************************************)
(* The contract for requests that overlap.  A request is called, is in     *)
(* flight, takes effect in one or more steps of VirtualDisk, and is        *)
(* answered.  The answers are right if and only if some order of these     *)
(* steps makes them right; each step lies between call and answer, so      *)
(* what was answered before something else was called stands before it.    *)
(*                                                                         *)
(* A power cut ends what is in flight: each step of it was taken before    *)
(* the cut, or never is.  What survives then is what VirtualDisk says.     *)
(*                                                                         *)
(* VirtualDisk is the sequential object: every behaviour here is one of    *)
(* VirtualDisk's, seen through the steps that requests take.               *)
(*                                                                         *)
(* Left out: operations that are sent alone (create, restart, devices).    *)
(* How to break it: let Reply not wait for `left` to be empty, or let     *)
(* PowerCut keep `flight`; then run MCOverlappingDisk.                     *)
(***************************************************************************)
EXTENDS VirtualDisk, TLC

CONSTANTS
    Id,         \* The numbers of requests: as many as may be in flight at once.
    Request,    \* What may be requested: records with `op` and the arguments of the action.
    Atomic      \* What is one step: "request", or "block" of a read, a write or an unmap.

VARIABLE
    flight      \* id -> [request, left, r, data, known]: the requests in flight.

overlap == <<vars, flight>>

ASSUME Atomic \in {"request", "block"}

Whole == -1     \* The step that a request takes as a whole; else its steps are offsets of blocks.
Nothing == [l \in {} |-> Zero]
----------------------------------------------------------------------------
Count(q) == IF q.op = "write" THEN Cardinality(DOMAIN q.data) ELSE q.count

Steps(q) ==
    IF Atomic = "block" /\ q.op \in {"read", "write", "unmap"} THEN 0 .. Count(q) - 1 ELSE {Whole}

\* One step of the contract: all of the request, or one block of it. `data` is what a read returns.
Effect(q, step, r, data) ==
    CASE q.op = "write"    -> IF step = Whole THEN Write(q.lba, q.data, r)
                              ELSE Write(q.lba + step, [i \in {1} |-> q.data[step + 1]], r)
      [] q.op = "unmap"    -> IF step = Whole THEN Unmap(q.lba, q.count, r)
                              ELSE Unmap(q.lba + step, 1, r)
      [] q.op = "read"     -> IF step = Whole THEN Read(q.view, q.lba, q.count, r, data)
                              ELSE Read(q.view, q.lba + step, 1, r, data)
      [] q.op = "flush"    -> Flush(r)
      [] q.op = "snapshot" -> Snapshot(q.name, r)
      [] q.op = "delete"   -> Delete(q.name, r)
      [] q.op = "revert"   -> Revert(q.name, r)

Returned(q, step) ==    \* What a read may return now: one function of 1 .. count for each step.
    IF q.op # "read" \/ (q.view # Live /\ q.view \notin DOMAIN disk.snaps)
       \/ ~Fits(q.lba, q.count)
    THEN {Nothing}
    ELSE LET first == IF step = Whole THEN q.lba ELSE q.lba + step
             count == IF step = Whole THEN q.count ELSE 1
         IN  {[i \in 1 .. count |-> View(disk, q.view)[first + i - 1]]}
----------------------------------------------------------------------------
Call(id, q) ==
    /\ power
    /\ id \notin DOMAIN flight
    /\ flight' = flight @@ id :> [request |-> q, left |-> Steps(q), r |-> "ok",
                                  data |-> Nothing, known |-> TRUE]
    /\ UNCHANGED vars

Take(id, step) ==       \* The request, or one block of it, takes effect.
    LET f == flight[id]
    IN  /\ id \in DOMAIN flight
        /\ step \in f.left
        /\ \E data \in Returned(f.request, step) :
            /\ Effect(f.request, step, "ok", data)
            /\ flight' = [flight EXCEPT
                    ![id].left = @ \ {step},
                    ![id].data = IF step = Whole \/ data = Nothing THEN data
                                 ELSE (step + 1 :> data[1]) @@ @]

Refuse(id, r) ==        \* A refusal is one step of the whole request.
    LET f == flight[id]
    IN  /\ id \in DOMAIN flight
        /\ f.left = Steps(f.request)
        /\ r \notin {"ok", "unknown-outcome", "cut"}
        /\ Effect(f.request, Whole, r, Nothing)
        /\ flight' = [flight EXCEPT ![id].left = {}, ![id].r = r]

Reply(id) ==          \* The request is answered, with what its steps came to.
    /\ id \in DOMAIN flight
    /\ flight[id].known
    /\ flight[id].left = {}
    /\ flight' = [i \in DOMAIN flight \ {id} |-> flight[i]]
    /\ UNCHANGED vars

AnswerUnknown(id) ==    \* "unknown-outcome": what is left is taken later, or never.
    /\ id \in DOMAIN flight
    /\ flight[id].known
    /\ flight' = [flight EXCEPT ![id].known = FALSE]
    /\ UNCHANGED vars

Forget(id) ==           \* Nothing more comes of a request whose outcome is unknown.
    /\ id \in DOMAIN flight
    /\ ~flight[id].known
    /\ flight' = [i \in DOMAIN flight \ {id} |-> flight[i]]
    /\ UNCHANGED vars

PowerCut ==             \* What is in flight is never answered, and takes no further step.
    /\ power
    /\ Crash("cut")
    /\ flight' = [i \in {} |-> flight[i]]

Recover == ~power /\ Crash("ok") /\ UNCHANGED flight
----------------------------------------------------------------------------
OverlapInit == Init /\ flight = [i \in {} |-> 0]

OverlapNext ==
    \/ \E id \in Id :
        \/ \E q \in Request : Call(id, q)
        \/ \E step \in {Whole} \union 0 .. Size : Take(id, step)
        \/ \E r \in Answers : Refuse(id, r)
        \/ Reply(id) \/ AnswerUnknown(id) \/ Forget(id)
    \/ PowerCut \/ Recover

OverlapSpec == OverlapInit /\ [][OverlapNext]_overlap
----------------------------------------------------------------------------
FlightOK ==
    /\ DOMAIN flight \subseteq Id
    /\ \A id \in DOMAIN flight : flight[id].left \subseteq Steps(flight[id].request)
    /\ ~power => flight = [i \in {} |-> 0]

THEOREM OverlapSpec => Spec     \* VirtualDisk's.
=============================================================================
