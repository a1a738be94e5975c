-------------------------- MODULE MCRedoLogChain ---------------------------
(***************************************************************************)
(* What TLC needs to exhaust RedoLogChain.                                 *)
(***************************************************************************)
EXTENDS RedoLogChain, TLC

(* Whatever is asked is answered, and a write has one block: fewer steps of the contract to try. *)
Ok == {"ok"}
OneBlock == [1 .. 1 -> Value]

(* No action asks which name a snapshot has.  For safety only. *)
Alike == Permutations(Name)
=============================================================================
