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
    /\ \A lba \in LBA, value \in Value : value # Zero => ENABLED Write(lba, value)
    /\ \A name \in Name :
        IF name \in DOMAIN disk.snaps THEN ENABLED (Delete(name) /\ name \notin DOMAIN disk'.snaps)
        ELSE ENABLED (Snapshot(name) /\ name \in DOMAIN disk'.snaps)

(* Nor does the cache do anything for nothing: what is there is not fetched, moved or made anew. *)
NothingIdle ==
    /\ ~ ENABLED (Fill /\ (fill' = fill \/ cache' = cache))
    /\ \A lba \in LBA : ENABLED Fetch(lba) <=> fill = {} /\ Hit(cache, lba) = {}
    /\ \A slot \in DOMAIN cache : ~ ENABLED (Evict(slot) /\ cache' = cache)
    /\ \A slot \in DOMAIN copy : ~ ENABLED (CopySlot(slot) /\ copy' = copy)
    /\ ~ ENABLED (Move /\ copy' = copy)
    /\ \A slots \in 1 .. MaxSlots : ENABLED Resize(slots) => slots # Slots(cache) /\ ENABLED (Resize(slots) /\ Slots(cache') = slots)

(* A migration ends before another begins, and a cache that moves keeps its size. *)
OneMigration ==
    /\ ENABLED Move <=> DOMAIN copy = {}
    /\ ENABLED Arrive <=> DOMAIN copy # {}
    /\ (\E slots \in 1 .. MaxSlots : ENABLED Resize(slots)) <=> DOMAIN copy = {}

(* Nothing of a host that is lost comes to the next one. *)
HostIsLost == ~ ENABLED (Crash /\ (fill' # {} \/ copy' # Cold(0) \/ \E i \in DOMAIN cache' : cache'[i] # {}))
=============================================================================
