--------------------------- MODULE MCCachedDisk ----------------------------
(***************************************************************************)
(* What TLC needs to exhaust CachedDisk.                                   *)
(***************************************************************************)
EXTENDS CachedDisk

(* Whatever is asked is answered, and a write has one block: fewer steps of the contract to try. *)
Ok == {"ok"}
OneBlock == [1 .. 1 -> Value]
=============================================================================
