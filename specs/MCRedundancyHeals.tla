------------------------- MODULE MCRedundancyHeals -------------------------
(***************************************************************************)
(* Redundancy with failures that it tolerates and that end: then, with     *)
(* spares enough, it is redundant again, whatever is written meanwhile.    *)
(* What is being resynced or rebuilt may fail again, and another may fail  *)
(* meanwhile, as long as k components are left that lack nothing.          *)
(***************************************************************************)
EXTENDS Redundancy

CONSTANT Failures   \* How many failures there are.

VARIABLE failed     \* How many there were.

EndingFail(device, mode) ==
    /\ failed < Failures
    /\ Fail(device, mode)
    /\ Cardinality(Failed') <= M
    /\ failed' = failed + 1

EndingNext ==
    \/ \E d \in Device, mode \in {"absent", "degraded"} : EndingFail(d, mode)
    \/ /\ failed' = failed
       /\ \/ \E s \in StripeNumber : Unmap(s) \/ \E value \in Value : Write(s, value)
          \/ \E d \in Device : Return(d)
          \/ Tick
          \/ \E c \in Component : Rebuild(c) \/ Fetch(c) \/ Resync(c)

EndingInit ==
    /\ Init
    /\ \A c \in Component : on[c] = c      \* No symmetry here: which devices it begins with does not matter.
    /\ failed = 0

EndingSpec == EndingInit /\ [][EndingNext]_<<vars, failed>> /\ Repairs

Heals == <>[]Redundant
=============================================================================
