---------------------------- MODULE MCReadRepair ----------------------------
(***************************************************************************)
(* What TLC needs to exhaust ReadRepair.                                   *)
(***************************************************************************)
EXTENDS ReadRepair

CONSTANT Records    \* How many records there may be.

(* Whatever is asked is answered, and a write has one block: fewer steps of the contract to try. *)
Ok == {"ok", "cut"}
OneBlock == [1 .. 1 -> Value]

(* Bounds histories, not the design: nothing in it counts records. *)
Few == newest.number <= Records
=============================================================================
