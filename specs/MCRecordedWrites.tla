-------------------------- MODULE MCRecordedWrites --------------------------
(***************************************************************************)
(* What TLC needs to exhaust RecordedWrites.                               *)
(***************************************************************************)
EXTENDS RecordedWrites

CONSTANT Operations \* How many operations there may be.

(* Bounds histories, not the design: nothing in it counts operations. *)
Few == issued <= Operations
=============================================================================
