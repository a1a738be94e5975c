----------------------- MODULE MirroredLogProperties ------------------------
(***************************************************************************)
(* What MirroredLog promises, and what it implements.                      *)
(***************************************************************************)
EXTENDS MirroredLog

(* Types.                                                                  *)

Phase == {"down", "promising", "assembled", "load", "loaded", "replay", "up", "damaged"}

RecordOK(r) == r.kind \in {"nothing", "open", "op"} /\ r.sequence >= 0 /\ r.flushed < r.sequence + 1

CheckpointOK(c) == c.number >= 0 /\ c.sequence >= 0 /\ c.generation >= 0

BookOK(r) ==
    /\ r.term >= 0 /\ r.number >= 0 /\ r.promise >= r.term
    /\ r.on \in [Member -> Device] /\ r.current \subseteq Member

TypeOK ==
    /\ \A d \in Device :
        /\ DOMAIN ring[d] = 0 .. Size - 1 /\ DOMAIN slots[d] = 0 .. 1
        /\ DOMAIN ringCache[d] \subseteq DOMAIN ring[d] /\ DOMAIN slotCache[d] \subseteq DOMAIN slots[d]
        /\ \A p \in DOMAIN ring[d] : RecordOK(ring[d][p])
        /\ \A p \in DOMAIN ringCache[d] : RecordOK(ringCache[d][p])
        /\ \A i \in DOMAIN slots[d] : CheckpointOK(slots[d][i])
        /\ \A i \in DOMAIN slotCache[d] : CheckpointOK(slotCache[d][i])
    /\ DOMAIN book = Voter /\ \A v \in Voter : BookOK(book[v])
    /\ here \subseteq Voter
    /\ phase \in Phase
    /\ BookOK(record)
    /\ state \in [Member -> {"active", "absent", "stale"}]
    /\ untold \subseteq Voter /\ votes \in 0 .. Voters
    /\ log.sequence >= 0 /\ log.generation >= 0 /\ log.flushed >= 0 /\ log.begun \in {"no", "written", "yes"}
    /\ CheckpointOK(newest) /\ CheckpointOK(pending)
    /\ took \subseteq Member
----------------------------------------------------------------------------
(* The log.                                                                *)

Remembered == phase = "up" => contents = held

Durable(d) ==           \* The device has the newest checkpoint, and every record behind it that is durable.
    /\ slots[d][newest.number % 2] = newest
    /\ \A s \in newest.sequence .. log.flushed : ring[d][Slot(s)].sequence = s

Mirrored ==             \* Every current mirror has all that is durable, unless it has decayed.
    phase = "up" /\ trouble.damages = 0 => \A c \in Active : Durable(record.on[c])

Unharmed == phase # "damaged"   \* Within tolerance the log is never taken for damaged.

NotSilently ==          \* What was durable is given up only where nothing says that it was.
    [][phase = "replay" /\ phase' = "up" /\ Len(contents) < durable =>
        ~ \E r \in Behind : r.sequence > log.sequence /\ r.flushed >= log.sequence]_vars
----------------------------------------------------------------------------
(* Members.                                                                *)

VotersOf(r) == {r.on[c] : c \in Member} \union Others

Known ==                \* A majority of the voters has the record that memory goes by.
    phase \notin {"down", "promising", "assembled"} /\ ~ Saving =>
        2 * Cardinality({v \in VotersOf(record) : book[v] = record}) > Voters

OneRecord ==            \* Of one term and number there is one record, whoever wrote it, and however few have it.
    \A v, w \in Voter :
        book[v].term = book[w].term /\ book[v].number = book[w].number =>
            book[v].on = book[w].on /\ book[v].current = book[w].current

OnRecord == Active \subseteq record.current     \* Nobody is taken for current who is not on record as current.

Supported ==            \* Whoever opens the log has a current mirror to load it from.
    phase \in {"promising", "assembled", "load", "loaded", "replay"} => Active # {}

NotHeldUp ==            \* A voter that is away holds up no record, and a log that may be opened can be.
    /\ Saving /\ Answering => ENABLED (Tell \/ Counted)
    /\ phase = "down" => \A r \in Found :
        /\ \A s \in Found : Later(r, s)
        /\ 2 * Cardinality(VotersOf(r) \intersect here) > Voters
        /\ \E c \in r.current : r.on[c] \in here
        => ENABLED Open
----------------------------------------------------------------------------
(* Opening, and other steps.                                               *)

Faithful ==             \* To open the log changes nothing that is on record, but for the term.
    [][phase = "down" /\ phase' # "down" =>
        \E r \in Found : /\ record'.on = r.on /\ record'.current = r.current
                         /\ \A other \in Found : Later(r, other)]_vars

Assembled ==            \* It is opened only where more than half of the voters are there.
    [][phase = "down" /\ phase' # "down" =>
        2 * Cardinality(VotersOf(record') \intersect here) > Voters]_vars

Follows ==              \* Phase -> the phases that may come next, besides "down".
    [down |-> {"promising", "load"}, promising |-> {"assembled"}, assembled |-> {"load"}, load |-> {"loaded"},
     loaded |-> {"replay"}, replay |-> {"up", "damaged"}, up |-> {}, damaged |-> {}]

InTurn == [][phase' \in {phase, "down"} \union Follows[phase]]_vars    \* It is opened in this order.

Replaced ==             \* A new device is on record, and its mirror is not current.
    [][\A c \in Member, d \in Device :
        Replace(c, d) => /\ record'.on = [record.on EXCEPT ![c] = d]
                         /\ c \notin record'.current /\ state'[c] = "stale"]_vars
----------------------------------------------------------------------------
Contract == INSTANCE DurableLog WITH Room <- Size

Refines == Contract!Spec

THEOREM Spec =>
    /\ Refines /\ Faithful /\ Assembled /\ InTurn /\ Replaced
    /\ [](TypeOK /\ Remembered /\ Mirrored /\ Unharmed)
    /\ [](Known /\ OneRecord /\ OnRecord /\ Supported /\ NotHeldUp)
=============================================================================
