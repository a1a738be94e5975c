--------------------------- MODULE MCRedundancy ----------------------------
(***************************************************************************)
(* What TLC needs to exhaust Redundancy.                                   *)
(***************************************************************************)
EXTENDS Redundancy, TLC

(* Whatever is asked is answered, and a write has one block: fewer steps of the contract to try. *)
Ok == {"ok"}
OneBlock == [1 .. 1 -> Value]

(* No action asks which device it is.  For safety only. *)
Alike == Permutations(Device)

(* Without symmetry: to begin with other devices is to call them otherwise. *)
InOrder == Init /\ \A c \in Component : on[c] = c
=============================================================================
