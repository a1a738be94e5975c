----------------------- MODULE MirroredLogProperties ------------------------
(***************************************************************************)
(* The properties of MirroredLog, and its refinement of DurableLog.        *)
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

RecordHeld ==                \* A majority of the voters has the record that memory goes by.
    phase \notin {"down", "promising", "assembled"} /\ ~ Saving =>
        2 * Cardinality({v \in VotersOf(record) : book[v] = record}) > Voters

OneRecord ==            \* There is at most one record of a term and number.
    \A v, w \in Voter :
        book[v].term = book[w].term /\ book[v].number = book[w].number =>
            book[v].on = book[w].on /\ book[v].current = book[w].current

OnRecord ==             \* Members taken for current are on record as current, and there is one.
    /\ Active \subseteq record.current
    /\ phase # "down" => record.current # {}

Supported ==            \* An opening has a current mirror to load the log from.
    phase \in {"promising", "assembled", "load", "loaded", "replay"} => Active # {}

Voting ==               \* Voters are told as long as the log is assembled, and none is while it is down.
    /\ phase \in {"promising", "assembled"} => Saving
    /\ phase = "down" => ~ Saving

AsNew(r, s) == IF r.term = s.term THEN r.number >= s.number ELSE r.term > s.term

NotHeldUp ==            \* No record waits for an absent member; members that are back return; the log can be opened.
    /\ Saving /\ Answering => ENABLED (Tell \/ Counted)
    /\ phase = "up" /\ ~ Saving => \A c \in Member :
        state[c] = "absent" /\ record.on[c] \in here => ENABLED <<Return(c)>>_vars
    /\ phase = "down" => \A r \in Found :
        /\ \A s \in Found : AsNew(r, s)
        /\ 2 * Cardinality(VotersOf(r) \intersect here) > Voters
        /\ \E c \in r.current : r.on[c] \in here
        => ENABLED Open
----------------------------------------------------------------------------
(* Opening, and other steps.                                               *)

Faithful ==             \* To open the log changes nothing that is on record, but for the term.
    [][phase = "down" /\ phase' # "down" =>
        \E r \in Found : /\ record'.on = r.on /\ record'.current = r.current
                         /\ \A other \in Found : AsNew(r, other)]_vars

Assembled ==            \* It is opened only where more than half of the voters are there.
    [][phase = "down" /\ phase' # "down" =>
        2 * Cardinality(VotersOf(record') \intersect here) > Voters]_vars

Follows ==              \* Phase -> the phases that may come next, besides "down".
    [down |-> {"promising", "load"}, promising |-> {"assembled"}, assembled |-> {"load"}, load |-> {"loaded"},
     loaded |-> {"replay"}, replay |-> {"up", "damaged"}, up |-> {}, damaged |-> {}]

InTurn ==               \* It is opened in this order, and until it is up no operation happens or is lost.
    [][/\ phase' \in {phase, "down"} \union Follows[phase]
       /\ phase' # "up" => UNCHANGED history]_vars

Closed ==               \* It is closed by a power cut, for want of votes, or for want of a current mirror.
    [][phase # "down" /\ phase' = "down" =>
        trouble'.crashes > trouble.crashes \/ Saving \/ Active' = {}]_vars

NotInVain ==            \* No record is written but for a change, and no term is begun where all voters agree.
    [][/\ record' # record => <<phase, state, record.on>>' # <<phase, state, record.on>>
       /\ phase = "down" /\ phase' = "promising" => \A r \in Found :
            (\A other \in Found : AsNew(r, other)) => \E v \in VotersOf(r) : v \notin here \/ book[v] # r]_vars

OneAtATime ==           \* While voters are told a record, another one follows only because a member fails.
    [][Saving /\ record' # record =>
        phase' # phase \/ \E c \in Reachable : state'[c] = "absent"]_vars

Replaced ==             \* A new device is there and on record, and its mirror is not current.
    [][\A c \in Member, d \in Device :
        Replace(c, d) => /\ d \in here'
                         /\ record'.on = [record.on EXCEPT ![c] = d]
                         /\ c \notin record'.current /\ state'[c] = "stale"]_vars
----------------------------------------------------------------------------
Contract == INSTANCE DurableLog WITH LogSize <- Size

Refines == Contract!Spec

THEOREM Spec =>
    /\ Refines /\ Faithful /\ Assembled /\ InTurn /\ Closed /\ NotInVain /\ OneAtATime /\ Replaced
    /\ [](TypeOK /\ Remembered /\ Mirrored /\ Unharmed)
    /\ [](RecordHeld /\ OneRecord /\ OnRecord /\ Supported /\ Voting /\ NotHeldUp)
=============================================================================
