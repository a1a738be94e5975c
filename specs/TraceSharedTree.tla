-------------------------- MODULE TraceSharedTree --------------------------
(***************************************************************************)
(* Do the trees of the engine, by its events, keep the rules of            *)
(* SharedTree?  After each action the engine reports which nodes were      *)
(* created, changed and freed, and the views.  Each step is an action of   *)
(* SharedTree, narrowed to that, and everything that SharedTree promises   *)
(* has to hold behind it.                                                  *)
(*                                                                         *)
(*   SharedTree       event `tree`, by its `action`                        *)
(*   --------------   ---------------------------------------------------  *)
(*   Write, Unmap     merge: any number of them                            *)
(*   Snapshot, Delete, Revert, Reclaim     those                           *)
(*   Checkpoint       freeze, then the event checkpoint_commit             *)
(*   Crash            load                                                 *)
(*                                                                         *)
(* Where the engine's steps differ from the spec's:                        *)
(* - A tree has as many levels as it needs, and its nodes are split.  So   *)
(*   what a view holds is found by a walk (WalkHeld), and a step of        *)
(*   reclaim may pass several blocks.                                      *)
(* - What is written waits in memory, and is merged into the trees later,  *)
(*   in the order in which it came.  Until a view is merged, it `changes`, *)
(*   and whoever is based on it has the same root.                         *)
(* - The snapshot is the new view and live the old one.  Views are named   *)
(*   by numbers, and their epochs are told: `taken`.                       *)
(* - A checkpoint is frozen at one moment and counts at a later one.  Both *)
(*   the frozen one and the durable one keep their nodes meanwhile.        *)
(* - A checkpoint may be an increment of the last whole one (LoggedTree):  *)
(*   it writes no nodes.  A crash takes the trees back to the whole one,   *)
(*   then the increment's changes are merged.                              *)
(* - A node that no checkpoint can refer to is free at once.               *)
(* - The other maps of the engine have nodes among these: `others`, each   *)
(*   of which only one map refers to.                                      *)
(*                                                                         *)
(* Left out: chunks (TraceLogStructuredDisk); what a block reads as (the   *)
(* contract); whether nodes of the other maps are changed in place.        *)
(*                                                                         *)
(* How to break it: leave a page out of `freed`; it is followed to there.  *)
(***************************************************************************)
EXTENDS SharedTree, TraceFile, TLC

VARIABLES
    trace,      \* Which of the traces this is.
    next,       \* The line that is to be matched next.
    number,     \* Of the newest durable checkpoint.
    taken,      \* View -> the time when it stopped being live; of live, 0.
    changing,   \* The views that still change: live, and those into which changes wait to be merged.
    frozen      \* The checkpoint that is being written: {} or {[number, maps]}.

following == <<trace, next, number, taken, changing, frozen>>

Lines == Traces[trace].events

Line == Lines[next]

Range(s) == {s[i] : i \in DOMAIN s}

Listed(S) == {a \in S : TRUE}   \* The same set, and the same function, which TLC works out once
Mapped(f) == f @@ <<>>          \* and not whenever it is asked.
----------------------------------------------------------------------------
(* The engine's trees, in place of the spec's.                             *)

TracePages == UNION {Range(Traces[t].header.pages) : t \in DOMAIN Traces}

Behind == 2147483647    \* Behind every block.

RECURSIVE Below(_, _, _, _)
Below(nodes, a, low, end) ==    \* The nodes from a on that lead to blocks from `low` on; a ends before `end`.
    IF a = Nil \/ end <= low THEN {}
    ELSE IF nodes[a].level = 0 THEN {a}
    ELSE LET n == nodes[a]
             EndOf(i) == IF i < Len(n.keys) THEN n.keys[i + 1] ELSE end
         IN  {a} \union UNION {Below(nodes, n.kids[i], low, EndOf(i)) : i \in DOMAIN n.kids}

WalkHeld(m) == UNION {m.tree[v] : v \in DOMAIN m.tree} \union m.others     \* A tree is walked once, when it is told of.

Ignored(d) == survivors' = survivors    \* What a crash may leave is the contract's.
----------------------------------------------------------------------------
(* What is told.                                                           *)

Checkpoints == {saved} \union {f.maps : f \in frozen}      \* The checkpoints whose nodes are needed.

Needed == Listed(UNION {Held(m) : m \in Checkpoints})

InUse == Listed(Address \ (maps.free \union limbo))

AsNode(x) == [born |-> x[2], level |-> x[3], keys |-> x[4], kids |-> x[5]]

News == Mapped([a \in {x[1] : x \in Range(Line.nodes)} |-> AsNode(CHOOSE x \in Range(Line.nodes) : x[1] = a)])

Nodes == LET news == News IN IF news = <<>> THEN node ELSE news @@ node

Others ==               \* Pages with nodes of the other maps.
    IF Line.action = "load" THEN Range(Line.others)
    ELSE Listed((maps.others \ Range(Line.left)) \union Range(Line.others))

Told(used, needed) ==   \* The views, and the pages that are free where these are in use and needed.
    LET views == Range(Line.views)
        nodes == Nodes
        head == IF Line.deleted = <<>> THEN Nil ELSE Line.deleted[1]
        Of(v) == CHOOSE x \in views : x.id = v
        named == {x \in views : x.name # ""}
    IN  [live |-> (CHOOSE x \in views : x.live).id,
         view |-> Mapped([v \in {x.id : x \in views} |-> [root |-> Of(v).root, parent |-> Of(v).parent]]),
         names |-> [n \in {x.name : x \in named} |-> (CHOOSE x \in named : x.name = n).id],
         queue |-> Line.deleted,
         cursor |-> IF head = Nil THEN 0 ELSE Of(head).cursor,
         tree |-> Mapped([v \in {x.id : x \in views} |->
                    Listed(Below(nodes, Of(v).root, IF v = head THEN Of(v).cursor ELSE 0, Behind))]),
         others |-> Others,
         free |-> Listed(Address \ (used \union needed))]

Spoken ==               \* What the spec has no variable for.
    /\ changing' = {x.id : x \in {y \in Range(Line.views) : y.changes}}
    /\ taken' = Mapped([v \in {x.id : x \in Range(Line.views)} |-> (CHOOSE x \in Range(Line.views) : x.id = v).taken])
    /\ \A x \in Range(Line.views) : x.cursor > 0 => Line.deleted # <<>> /\ x.id = Line.deleted[1]

Written == {x[1] : x \in Range(Line.nodes)}

NowInUse == Listed((InUse \ (Range(Line.freed) \union maps.others)) \union Written \union Others)
----------------------------------------------------------------------------
(* The rules.                                                              *)

Untouchable ==          \* What others than live hold, and the checkpoints.
    Listed(Needed \union UNION {maps.tree[v] : v \in DOMAIN maps.view \ changing})

Changed == {x[1] : x \in {y \in Range(Line.nodes) : node[y[1]] # AsNode(y)}}

NoneChanged ==          \* What was not in memory may be told of again.
    Changed = {} /\ Written \subseteq InUse

TreeOwned == Changed \intersect Untouchable = {}    \* A node that is changed in place, nobody but live holds.

TreeFresh(used) ==      \* A page that is taken was free.  It may have gone from one map to another one since.
    LET came == Others \ maps.others
        went == used \intersect (maps.others \ Others)
    IN  /\ used \intersect limbo = {}
        /\ (came \union went) \intersect Needed = {}

Settled ==              \* A view that no longer changes keeps its tree.
    \A v \in (DOMAIN maps.view \ changing) \intersect DOMAIN maps'.view :
        maps'.view[v].root = maps.view[v].root /\ v \notin changing' /\ taken'[v] = taken[v]

ByBirth ==              \* What is no younger than the parent, the parent holds: the test of Shared.
    \A v \in DOMAIN maps.view :
        LET p == maps.view[v].parent
            passed == maps.cursor > 0 /\ p = Head(maps.queue)       \* In part, by reclaim.
        IN  p \in DOMAIN maps.view /\ ~ passed =>
                {a \in maps.tree[v] : node[a].born <= taken[p]} \subseteq maps.tree[p]

Promised == Exact /\ Durable /\ Named /\ ByBirth

Stepped ==              \* The state that is told.
    LET used == NowInUse
        needed == Needed
    IN  /\ TreeOwned
        /\ TreeFresh(used)
        /\ node' = Nodes
        /\ maps' = Told(used, needed)
        /\ limbo' = Listed(needed \ used)
        /\ Spoken
        /\ Settled
        /\ UNCHANGED <<saved, survivors, number>>
----------------------------------------------------------------------------
(* The actions.                                                            *)

Quiet == frozen' = frozen

Parents(m) == [v \in DOMAIN m.view |-> m.view[v].parent]

SameViews ==
    /\ Parents(maps') = Parents(maps)
    /\ maps'.names = maps.names /\ maps'.live = maps.live
    /\ maps'.queue = maps.queue /\ maps'.cursor = maps.cursor

FollowMerge == Stepped /\ SameViews

FollowSnapshot ==       \* The spec's, but that the snapshot is the view that has a new name.
    \E name \in {x.name : x \in Range(Line.views)} \ DOMAIN maps.names, s \in {x.id : x \in Range(Line.views)} :
        /\ s \notin DOMAIN maps.view
        /\ NoneChanged
        /\ Stepped
        /\ maps' = [maps EXCEPT
                !.view = [v \in DOMAIN @ \union {s} |->
                    CASE v = s         -> @[maps.live]
                      [] v = maps.live -> [@[v] EXCEPT !.parent = s]
                      [] OTHER         -> @[v]],
                !.tree = [v \in DOMAIN @ \union {s} |-> IF v = s THEN @[maps.live] ELSE @[v]],
                !.names = [n \in DOMAIN @ \union {name} |-> IF n = name THEN s ELSE @[n]]]

FollowDelete ==
    /\ NoneChanged
    /\ \E name \in DOMAIN maps.names : Delete(name)
    /\ maps' = Told(NowInUse, Needed)
    /\ Spoken /\ Settled /\ number' = number

FollowRevert ==
    \E name \in DOMAIN maps.names :
        LET s == maps.names[name]
        IN  /\ NoneChanged
            /\ Stepped
            /\ maps' = [maps EXCEPT
                    !.live = maps'.live,
                    !.view = [v \in DOMAIN @ \union {maps'.live} |->
                        IF v = maps'.live THEN [root |-> @[s].root, parent |-> s] ELSE @[v]],
                    !.tree = [v \in DOMAIN @ \union {maps'.live} |-> @[IF v = maps'.live THEN s ELSE v]],
                    !.queue = Append(@, maps.live)]
            /\ maps'.live \notin DOMAIN maps.view

FollowReclaim ==        \* The cursor moves on, or the view is gone.
    LET v == Head(maps.queue)
    IN  /\ maps.queue # <<>>
        /\ NoneChanged
        /\ Stepped
        /\ maps'.names = maps.names /\ maps'.live = maps.live
        /\ \/ /\ maps'.queue = maps.queue /\ maps'.cursor > maps.cursor
              /\ maps'.view = maps.view
           \/ /\ maps'.queue = Tail(maps.queue)
              /\ maps'.view = Forget(v)

FollowFreeze ==
    /\ frozen = {}
    /\ Stepped /\ SameViews
    /\ changing' = {maps'.live}
    /\ frozen' = {[number |-> Line.number, maps |-> [maps' EXCEPT !.free = Listed(Address \ Held(maps'))]]}

FollowCommit ==
    \E f \in frozen :
        /\ f.number = Line.number
        /\ number' = f.number
        /\ saved' = f.maps
        /\ maps' = [maps EXCEPT !.free = Listed(Address \ (InUse \union Held(f.maps)))]
        /\ limbo' = Listed(Held(f.maps) \ InUse)
        /\ frozen' = {}
        /\ UNCHANGED <<node, survivors, taken, changing>>

FollowIncrement ==      \* It has the roots of the newest checkpoint that wrote nodes, and changes of live beside.
    /\ Line.whole = number
    /\ UNCHANGED <<vars, number, taken, changing, frozen>>

Whole == {f \in frozen : f.number = Line.number}      \* It was being written, and is whole.

FollowLoad ==           \* Memory is what the checkpoint was.
    LET restored == IF Whole = {} THEN saved ELSE (CHOOSE f \in Whole : TRUE).maps
        found == Told(Listed(Range(Line.held) \union Others), {})
    IN  /\ Whole = {} => Line.number = number
        /\ Range(Line.held) = Held(restored) \ restored.others
        /\ Nodes = node
        /\ found.others = restored.others
        /\ Range(found.queue) = Range(restored.queue) /\ found.cursor = restored.cursor
        /\ found.cursor > 0 => Head(found.queue) = Head(restored.queue)
        /\ found.live = restored.live /\ found.names = restored.names /\ found.view = restored.view
        /\ Spoken
        /\ maps' = found /\ saved' = found /\ number' = Line.number
        /\ limbo' = {} /\ frozen' = {}
        /\ UNCHANGED <<node, survivors>>

FollowCreate ==         \* A new disk: nothing was known of it.
    /\ Spoken
    /\ node' = Nodes
    /\ maps' = Told(Listed(Range(Line.held) \union Others), {})
    /\ saved' = maps' /\ number' = Line.number
    /\ limbo' = {} /\ frozen' = {}
    /\ survivors' = survivors

Follow ==
    CASE Line.event = "checkpoint_commit" -> IF Line.whole = Line.number THEN FollowCommit ELSE FollowIncrement
      [] Line.action = "merge"            -> FollowMerge /\ Quiet
      [] Line.action = "snapshot"         -> FollowSnapshot /\ Quiet
      [] Line.action = "delete"           -> FollowDelete /\ Quiet
      [] Line.action = "revert"           -> FollowRevert /\ Quiet
      [] Line.action = "reclaim"          -> FollowReclaim /\ Quiet
      [] Line.action = "freeze"           -> FollowFreeze
      [] Line.action = "load"             -> IF number = 0 THEN FollowCreate ELSE FollowLoad
----------------------------------------------------------------------------
Nowhere ==
    [live |-> Nil, view |-> [v \in {} |-> Nil], tree |-> [v \in {} |-> {}], names |-> [n \in {} |-> Nil], queue |-> <<>>, cursor |-> 0,
     others |-> {}, free |-> Address]

TraceInit ==
    /\ trace \in DOMAIN Traces
    /\ next = 1 /\ number = 0 /\ frozen = {} /\ changing = {}
    /\ taken = [v \in {} |-> 0]
    /\ node = [a \in Address |-> [born |-> 0, level |-> 0, keys |-> <<>>, kids |-> <<>>]]
    /\ maps = Nowhere /\ saved = Nowhere
    /\ limbo = {}
    /\ survivors = {}

TraceNext ==
    /\ next <= Len(Lines)
    /\ Follow
    /\ Promised'
    /\ trace' = trace
    /\ next' = next + 1

View == <<trace, next>>     \* There is one way to go on: the rest follows.

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, following>>

Progress == Reached(trace, next)    \* A constraint that always holds: TLC asks it of every state.
=============================================================================
