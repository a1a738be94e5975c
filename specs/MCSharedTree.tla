--------------------------- MODULE MCSharedTree ----------------------------
(***************************************************************************)
(* What TLC needs to exhaust SharedTree: bounds, and states told apart by  *)
(* what matters only.                                                      *)
(***************************************************************************)
EXTENDS SharedTree

CONSTANTS
    Epochs,     \* How many epochs there may be,
    Views,      \* how many views at once, deleted ones included,
    Unsaved     \* and how many images for a crash to choose from.

(* Whatever is asked is answered, and a write has one block: fewer steps of the contract to try. *)
Ok == {"ok"}
OneBlock == [1 .. 1 -> Value]

Never ==            \* In the place of what a model leaves out.
    /\ FALSE
    /\ UNCHANGED vars

(* Bounds histories, not the design: nothing in it counts any of these. *)
Few ==
    /\ maps.live <= Epochs
    /\ Cardinality(DOMAIN maps.view) <= Views
    /\ Cardinality(survivors) <= Unsaved

(* Two states are the same if they differ in where nodes are, in which name a snapshot has and in    *)
(* which images `survivors` holds: no guard asks for these, `survivors` grows or starts again, and a *)
(* place and an epoch of birth tell which node it is.                                                *)
Canonical ==
    LET Branch(m, v, lba) ==
            [h \in Height |->
                IF Passed(m, v, lba, h) THEN <<>>
                ELSE LET a == At(Root(m, v), lba, h)
                     IN  IF a = Nil THEN <<>> ELSE <<node[a].born, node[a].data>>]
        Normal(m) ==
            <<[v \in DOMAIN m.view |-> <<m.view[v].parent, [lba \in LBA |-> Branch(m, v, lba)]>>],
              {m.names[n] : n \in DOMAIN m.names}, m.queue, m.cursor, Cardinality(m.free)>>
    IN  <<Normal(maps), Normal(saved), Cardinality(limbo), Cardinality(survivors)>>
=============================================================================
