-------------------- MODULE Redundancy_missed_forgotten ---------------------
\* what a component missed is forgotten when its device returns: silently stale
EXTENDS MCRedundancy

BrokenReturn(device) ==
    \E c \in In({"absent"}) :
        /\ on[c] = device
        /\ state' = [state EXCEPT ![c] = "active"]
        /\ missed' = [missed EXCEPT ![c] = {}]
        /\ clock' = [clock EXCEPT ![c] = 0]
        /\ UNCHANGED <<devices, on, copy>>
=============================================================================
