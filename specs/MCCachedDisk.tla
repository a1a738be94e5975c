--------------------------- MODULE MCCachedDisk ----------------------------
(***************************************************************************)
(* What TLC needs to exhaust CachedDisk.                                   *)
(***************************************************************************)
EXTENDS CachedDisk

(* Whatever is asked is answered, and a write has one block: fewer steps of the contract to try. *)
Ok == {"ok"}
OneBlock == [1 .. 1 -> Value]

(* Refinement, as it is decided fastest: most steps leave what the contract sees as it is. *)
RefinesInOrder == Contract!Init /\ [][UNCHANGED Image \/ Contract!Next]_vars

(* Refinement hides a step that does nothing: what is asked for can also come about. *)
Granted ==
    \A name \in Name :
        IF name \in DOMAIN disk.snaps THEN ENABLED (Delete(name) /\ name \notin DOMAIN disk'.snaps)
        ELSE ENABLED (Snapshot(name) /\ name \in DOMAIN disk'.snaps)
=============================================================================
