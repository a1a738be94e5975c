---------------------------- MODULE MCLoggedTree ----------------------------
(***************************************************************************)
(* What TLC needs to exhaust LoggedTree.                                   *)
(***************************************************************************)
EXTENDS LoggedTree

CONSTANT Epochs     \* How many epochs there may be.

(* Whatever is asked is answered, and a write has one block: fewer steps of the contract to try. *)
Ok == {"ok", "cut"}
OneBlock == [1 .. 1 -> Value]

(* Bounds histories, not the design: nothing in it counts epochs. *)
Few == epoch <= Epochs
=============================================================================
