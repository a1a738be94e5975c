---------------------------- MODULE Redundancy -----------------------------
(***************************************************************************)
(* One leg of the disk: stripes of k data and m parity components, each    *)
(* component on a device of its own, and devices that fail and return at   *)
(* any step.  The performance leg is a mirror, so k = 1; the capacity leg  *)
(* has k > 1.  Stripes are written whole.  Parity is abstract: any k       *)
(* components that hold the same version of a stripe give the stripe, so a *)
(* component's piece is written down as the stripe that it is a piece of.  *)
(*                                                                         *)
(* A component is active, absent (its device may come back: the repair     *)
(* timer runs), degraded (it will not: rebuild at once), stale (back, but  *)
(* it missed writes) or resyncing (catching up, or being rebuilt on        *)
(* another device).  `missed` has the stripes that it still lacks,         *)
(* unmapped ones included; when a rebuild begins, these are all.  The      *)
(* lowest such stripe is the frontier; each stripe is fetched from the     *)
(* others in one step and stored in another, and writes and failures come  *)
(* in between.                                                             *)
(*                                                                         *)
(* Writes are admitted only while k components lack nothing.  Otherwise    *)
(* the only components left could be ones that each lack something.  The   *)
(* durable log is on m + 1 components, so one of the k has it.             *)
(*                                                                         *)
(* Left out: devices that lie (checksums are the engine's), writes that    *)
(* stop half way (the log does not refer to such a stripe), spares that    *)
(* fail while they are spare.                                              *)
(*                                                                         *)
(* How to break it: let Readable take any resyncing component, or let      *)
(* Resync store what it fetched though a write came first; then run        *)
(* MCRedundancy.                                                           *)
(***************************************************************************)
EXTENDS Integers, FiniteSets, typedefs

CONSTANTS
    \* @type: Int;
    K,          \* How many components give a stripe.
    \* @type: Int;
    M,          \* How many more there are: the failures that it tolerates.
    \* @type: Set($rdDevice);
    Device,     \* The devices; those beyond K + M are spares.
    \* @type: Int;
    Timer,      \* How many ticks a component may be absent before it is rebuilt elsewhere.
    \* @type: Int;
    Stripes,    \* How many stripes there are.
    \* @type: Set(Int);
    Value,      \* What a stripe may hold.
    \* @type: Int;
    Zero,       \* What a stripe holds that was never written, or was unmapped.
    \* @type: Int;
    Junk        \* What a device holds where this leg has written nothing.

VARIABLES       \* The devices.
    \* @type: Int -> Int -> Int;
    piece,      \* component -> stripe -> the stripe of which its device holds a piece.
    \* @type: Set($rdDevice);
    spare,      \* Devices that wait to be used.
    \* @type: Set($rdDevice);
    away        \* Devices out of use that may come back.

VARIABLES       \* The leg.
    \* @type: Int -> $rdDevice;
    on,         \* component -> its device.
    \* @type: Int -> Str;
    state,      \* component -> "active", "absent", "degraded", "stale" or "resyncing".
    \* @type: Int -> Set(Int);
    missed,     \* component -> the stripes that it lacks.
    \* @type: Int -> Int;
    clock,      \* component -> for how many ticks it has been absent.
    \* @type: Set($rdCopy);
    copy        \* A stripe on its way to a component: {} or {[to, stripe, value]}.

devices == <<piece, spare, away>>
leg == <<on, state, missed, clock, copy>>
vars == <<devices, leg>>

Component == 1 .. K + M
StripeNumber == 0 .. Stripes - 1

ASSUME Zero \in Value /\ Junk \notin Value
ASSUME Cardinality(Device) >= K + M
----------------------------------------------------------------------------
In(states) == {c \in Component : state[c] \in states}

\* @type: Set(Int) => Bool;
Enough(components) == Cardinality(components) >= K

Reachable == In({"active", "stale", "resyncing"})

Readable(s) ==      \* Where a stripe may be read.
    In({"active"}) \union {c \in In({"resyncing"}) : s \notin missed[c]}

Given(s) == piece[CHOOSE c \in Readable(s) : TRUE][s]   \* What a read gives; any k give the same.

Stored(s) == piece[CHOOSE c \in Component : s \notin missed[c]][s]

NoSnaps == [n \in {} |-> [s \in StripeNumber |-> Zero]]

Contract == INSTANCE VirtualDisk WITH   \* A reliable store: no snapshot, no power cut.
    Size <- Stripes, Name <- {}, Profile <- "ack", Holds <- 0, power <- TRUE,
    disk <- [live |-> [s \in StripeNumber |-> Stored(s)], snaps |-> NoSnaps],
    survivors <- {[live |-> [s \in StripeNumber |-> {Stored(s)}], snaps |-> NoSnaps]}
----------------------------------------------------------------------------
(* Reads and writes.                                                       *)

\* @type: (Int -> Set(Int)) => Int -> Str;
CaughtUp(lacks) ==      \* The states once the components lack only that.
    [c \in Component |-> IF c \in In({"stale", "resyncing"}) /\ lacks[c] = {} THEN "active" ELSE state[c]]

Writable ==     \* Those that lack nothing are enough to read what is written, after any return.
    Enough(In({"active"}))

Put(s, value, reached) ==
    /\ piece' = [c \in Component |-> IF c \in reached THEN [piece[c] EXCEPT ![s] = value] ELSE piece[c]]
    /\ missed' = [c \in Component |-> IF c \in reached THEN missed[c] \ {s} ELSE missed[c] \union {s}]
    /\ state' = CaughtUp(missed')
    /\ UNCHANGED <<spare, away, on, clock, copy>>

Write(s, value) ==
    /\ Writable
    /\ Put(s, value, Reachable)

Unmap(s) ==
    /\ Writable
    /\ Put(s, Zero, Reachable)

Read(s, value) ==
    /\ Enough(Readable(s))
    /\ value = Given(s)
    /\ UNCHANGED vars
----------------------------------------------------------------------------
(* Failures.                                                               *)

Fail(device, mode) ==
    \E c \in Component :
        /\ on[c] = device
        /\ c \in Reachable \/ (c \in In({"absent"}) /\ mode = "degraded")
        /\ state' = [state EXCEPT ![c] = mode]
        /\ clock' = [clock EXCEPT ![c] = 0]
        /\ copy' = {x \in copy : x.to # c}
        /\ UNCHANGED <<devices, on, missed>>

Return(device) ==
    \/ \E c \in In({"absent"}) :
        /\ on[c] = device
        /\ state' = [state EXCEPT ![c] = IF missed[c] = {} THEN "active" ELSE "stale"]
        /\ clock' = [clock EXCEPT ![c] = 0]
        /\ UNCHANGED <<devices, on, missed, copy>>
    \/ /\ device \in away       \* Its component is elsewhere by now.
       /\ away' = away \ {device}
       /\ spare' = spare \union {device}
       /\ UNCHANGED <<piece, leg>>

Waited(c) == clock[c] >= Timer

Elapsed == 1    \* From one tick to the next.

Tick ==
    /\ \E c \in In({"absent"}) : ~ Waited(c)
    /\ clock' = [c \in Component |->
                    IF state[c] = "absent" /\ ~ Waited(c) THEN clock[c] + Elapsed ELSE clock[c]]
    /\ UNCHANGED <<devices, on, state, missed, copy>>
----------------------------------------------------------------------------
(* Repair.                                                                 *)

Due(c) == state[c] = "degraded" \/ (state[c] = "absent" /\ Waited(c))

Begin(c, device) ==     \* From nothing; Fetch and Resync do the rest.
    /\ \A s \in StripeNumber : Enough(Readable(s))
    /\ piece' = [piece EXCEPT ![c] = [s \in StripeNumber |-> Junk]]
    /\ on' = [on EXCEPT ![c] = device]
    /\ state' = [state EXCEPT ![c] = "resyncing"]
    /\ missed' = [missed EXCEPT ![c] = StripeNumber]
    /\ clock' = [clock EXCEPT ![c] = 0]
    /\ copy' = copy

Rebuild(c) ==           \* Begins, on a spare.
    /\ Due(c)
    /\ \E device \in spare :
        /\ Begin(c, device)
        /\ spare' = spare \ {device}
    /\ away' = IF state[c] = "absent" THEN away \union {on[c]} ELSE away

Replace(device) ==      \* A new device takes the place of one that will not come back.
    \/ /\ \E c \in In({"degraded"}) : on[c] = device /\ Begin(c, device)
       /\ UNCHANGED <<spare, away>>
    \/ /\ device \notin spare \union away \union {on[c] : c \in Component}
       /\ spare' = spare \union {device}
       /\ UNCHANGED <<piece, away, leg>>

Frontier(c) == CHOOSE s \in missed[c] : \A t \in missed[c] : s <= t

Fetch(c) ==
    /\ c \in In({"stale", "resyncing"})
    /\ copy = {}
    /\ LET s == Frontier(c)
       IN  /\ Enough(Readable(s))
           /\ copy' = {[to |-> c, stripe |-> s, value |-> Given(s)]}
    /\ state' = [state EXCEPT ![c] = "resyncing"]
    /\ UNCHANGED <<devices, on, missed, clock>>

Resync(c) ==            \* One stripe; unless a write came first, which is newer.
    \E x \in copy :
        /\ x.to = c
        /\ piece' = IF x.stripe \in missed[c]
                    THEN [piece EXCEPT ![c][x.stripe] = x.value] ELSE piece
        /\ missed' = [missed EXCEPT ![c] = @ \ {x.stripe}]
        /\ state' = CaughtUp(missed')
        /\ copy' = {}
        /\ UNCHANGED <<spare, away, on, clock>>
----------------------------------------------------------------------------
Init ==
    /\ piece = [c \in Component |-> [s \in StripeNumber |-> Zero]]
    /\ on \in {f \in [Component -> Device] : \A c, d \in Component : c # d => f[c] # f[d]}
    /\ spare = Device \ {on[c] : c \in Component}
    /\ away = {}
    /\ state = [c \in Component |-> "active"]
    /\ missed = [c \in Component |-> {}]
    /\ clock = [c \in Component |-> 0]
    /\ copy = {}

Next ==
    \/ \E s \in StripeNumber :
        \/ \E value \in Value : Write(s, value)
        \/ Unmap(s)
    \/ \E d \in Device :
        \/ \E mode \in {"absent", "degraded"} : Fail(d, mode)
        \/ Return(d)
        \/ Replace(d)
    \/ Tick
    \/ \E c \in Component : Rebuild(c) \/ Fetch(c) \/ Resync(c)

Repairs ==      \* What Settle waits for: repair does not stop while there is something to do.
    /\ WF_vars(Tick)
    /\ \A c \in Component : WF_vars(Rebuild(c)) /\ WF_vars(Fetch(c)) /\ WF_vars(Resync(c))

Spec == Init /\ [][Next]_vars /\ Repairs
----------------------------------------------------------------------------
(* What it promises.                                                       *)

InSync ==       \* A component that lacks nothing of a stripe holds a piece of its last write.
    \A c \in Component : \A s \in StripeNumber \ missed[c] : piece[c][s] = Stored(s)

NeverStale ==   \* What may be read is in sync.
    \A s \in StripeNumber : \A c \in Readable(s) : s \notin missed[c] /\ c \in Reachable

TypeOK ==
    /\ piece \in [Component -> [StripeNumber -> Value \union {Junk}]]
    /\ spare \in SUBSET Device /\ away \in SUBSET Device
    /\ on \in [Component -> Device]
    /\ state \in [Component -> {"active", "absent", "degraded", "stale", "resyncing"}]
    /\ missed \in [Component -> SUBSET StripeNumber]
    /\ clock \in [Component -> 0 .. Timer]
    /\ \A x \in copy : x.to \in Component /\ x.stripe \in StripeNumber /\ x.value \in Value
    /\ Cardinality(copy) <= 1

Recoverable ==  \* Every stripe is where k components do not lack it, reachable or not.
    \A s \in StripeNumber : Enough({c \in Component : s \notin missed[c]})

Failed ==       \* What counts against tolerance: it cannot be reached, or it lacks something.
    {c \in Component : c \notin Reachable \/ missed[c] # {}}

Served ==       \* Within tolerance everything can be read, and written.
    Cardinality(Failed) <= M => Writable /\ \A s \in StripeNumber : Enough(Readable(s))

Returns ==      \* If all devices are back, all can be read, whatever had failed and in what order.
    Reachable = Component => \A s \in StripeNumber : Enough(Readable(s))

Apart ==        \* No device has two uses.
    /\ \A c, d \in Component : c # d => on[c] # on[d]
    /\ (spare \union away) \intersect {on[c] : c \in Component} = {}
    /\ spare \intersect away = {}

Prompt ==       \* What is degraded is rebuilt at once: as soon as there is a device, and data to read.
    \A c \in In({"degraded"}) :
        spare # {} /\ (\A s \in StripeNumber : Enough(Readable(s))) => ENABLED Rebuild(c)

Patient ==      \* What is absent is rebuilt elsewhere no sooner than the repair timer says.
    [][\A c \in Component :
        on'[c] # on[c] => state[c] = "degraded" \/ (state[c] = "absent" /\ clock[c] >= Timer)]_vars

Timed ==        \* The repair timer runs for what is absent, from 0.
    \A c \in Component : state[c] # "absent" => clock[c] = 0

Reusable ==     \* A device that was only absent may be used again, and no other that was given up.
    [][\A c \in Component : on'[c] # on[c] => (on[c] \in away' <=> state[c] = "absent")]_vars

Refines == Contract!Spec

Obeys ==        \* And each action does what the contract's of its name does.
    [][\A s \in StripeNumber :
        /\ \A value \in Value : Write(s, value) => Contract!Write(s, [i \in {1} |-> value], "ok")
        /\ Unmap(s) => Contract!Unmap(s, 1, "ok")]_vars

Redundant == \A c \in Component : state[c] = "active"

THEOREM Spec =>
    /\ Refines /\ Obeys
    /\ [](TypeOK /\ InSync /\ NeverStale /\ Recoverable /\ Served /\ Returns /\ Apart /\ Prompt /\ Timed)
    /\ Patient /\ Reusable
=============================================================================
