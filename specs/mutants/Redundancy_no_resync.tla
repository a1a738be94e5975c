------------------------ MODULE Redundancy_no_resync ------------------------
\* a component is active as soon as its device has returned
EXTENDS MCRedundancy

BrokenReturn(device) ==
    \E c \in In({"absent"}) :
        /\ on[c] = device
        /\ state' = [state EXCEPT ![c] = "active"]
        /\ clock' = [clock EXCEPT ![c] = 0]
        /\ UNCHANGED <<devices, on, missed, copy>>
=============================================================================
