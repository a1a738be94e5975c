---------------------------- MODULE MCLoggedTree ----------------------------
(***************************************************************************)
(* What TLC needs to exhaust LoggedTree.                                   *)
(***************************************************************************)
EXTENDS LoggedTree

CONSTANTS
    Epochs,         \* How many epochs there may be.
    Chain           \* How many increments of one whole checkpoint there may be.

(* Whatever is asked is answered, and a write has one block: fewer steps of the contract to try. *)
Ok == {"ok", "cut"}
OneBlock == [1 .. 1 -> Value]

(* Bounds histories, not the design: nothing in it counts epochs or increments. *)
Few == epoch <= Epochs /\ \A c \in {slot} \union pending : Len(c.increments) <= Chain

Read ==         \* The pages that a view, the newest checkpoint or the one on its way refers to.
    (IF phase = "down" THEN {} ELSE Held(Nodes, maps))
    \union Held(disk, slot) \union Logged(slot)
    \union UNION {Held(Nodes, c) \union Logged(c) : c \in pending}

(* Leaves out what the other pages hold: nothing reads them before they are written.  What a page held before it was
   written is left out too: if a power cut brings it back, nothing refers to the page (Durable).  What is on the media
   and in the cache is shown twice, since a mistake may make them differ. *)
Shown == <<[p \in Read |-> Nodes[p]], [p \in Read \intersect DOMAIN before |-> disk[p]],
           DOMAIN cache, DOMAIN before, slot, log,
           phase, maps, epoch, free, limbo, changed, pending, replayed, seen>>

(* Histories that begin with a whole checkpoint: a block was written with zeroes, and nothing after it.  A blank disk
   would need more epochs to come to increments of a checkpoint that has a snapshot. *)
InitWhole ==
    /\ disk = [p \in Page |-> CASE p = 1 -> [BlankPage EXCEPT !.born = 2]
                                [] p = 2 -> [BlankPage EXCEPT !.born = 2, !.kids[0] = 1]
                                [] OTHER -> BlankPage]
    /\ before = Empty
    /\ slot = [live |-> 2, snaps |-> [n \in {} |-> Nil], epoch |-> 2, increments |-> <<>>]
    /\ log = <<>>
    /\ phase = "up"
    /\ maps = [live |-> 2, snaps |-> [n \in {} |-> Nil]]
    /\ cache = Empty
    /\ epoch = 3
    /\ free = Page \ {1, 2}
    /\ limbo = {}
    /\ changed = Empty
    /\ pending = {}
    /\ replayed = 0
    /\ seen = [live |-> [l \in LBA |-> Zero], snaps |-> [n \in {} |-> NoKids]]

SpecWhole == InitWhole /\ [][Next]_vars
=============================================================================
