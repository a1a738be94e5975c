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

(* Refinement hides a step that does nothing: what is asked for can also come about. *)
Granted ==
    /\ \A lba \in LBA, value \in Value : value # Zero => ENABLED Write(lba, value)
    /\ \A name \in Name :
        IF name \in Snapshots
        THEN ENABLED (Delete(name) /\ name \notin DOMAIN chain') /\ ENABLED Revert(name)
        ELSE Layer \ Used(chain) # {} => ENABLED (Snapshot(name) /\ name \in DOMAIN chain')

(* A consolidation goes on, ends with a layer less, and ends before another begins. *)
NothingIdle ==
    /\ ~ ENABLED ((\E way \in {"up", "down"} : Consolidate(way)) /\ (job # {} \/ job' = {}))
    /\ ENABLED Merge <=> \E j \in job : j.done # LBA
    /\ ~ ENABLED (Merge /\ job' = job)
    /\ ENABLED Drop <=> \E j \in job : j.done = LBA
    /\ ~ ENABLED (Drop /\ (job' # {} \/ Used(chain') = Used(chain)))

(* A power cut ends it. *)
CutShort == ~ ENABLED (Crash /\ job' # {})
=============================================================================
