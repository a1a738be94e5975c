---------------------------- MODULE APRedundancy ----------------------------
(***************************************************************************)
(* Why Redundancy is right, however long it runs: an inductive invariant.  *)
(* It holds at first (--init=Init --inv=IndInv --length=0), every step     *)
(* keeps it (--init=IndInv --inv=IndInv --length=1), and it implies what   *)
(* Redundancy promises (--init=IndInv --inv=Safety --length=0); each with  *)
(* --cinit=ConstInit.  TLC checks the same with APRedundancy.cfg: there    *)
(* every state that satisfies it is an initial one.                        *)
(***************************************************************************)
EXTENDS Redundancy

ConstInit ==
    /\ K = 2
    /\ M = 1
    /\ Device = {"d1_OF_DEVICE", "d2_OF_DEVICE", "d3_OF_DEVICE", "d4_OF_DEVICE"}
    /\ Timer = 2
    /\ Stripes = 2
    /\ Value = {0, 1}
    /\ Zero = 0
    /\ Junk = 9

Lacks ==        \* The state tells what may be missed.
    \A c \in Component :
        /\ state[c] = "active" => missed[c] = {}
        /\ state[c] \in {"stale", "resyncing"} => missed[c] # {}
        /\ state[c] # "absent" => clock[c] = 0

Underway ==     \* What is on its way is needed no more, or is right.
    \A x \in copy :
        /\ state[x.to] \in {"active", "resyncing"}
        /\ x.stripe \in missed[x.to] => x.value = Stored(x.stripe)

Agree ==        \* InSync, of any two: Apalache may choose another component each time that Stored is asked.
    \A c, d \in Component : \A s \in StripeNumber \ (missed[c] \union missed[d]) : piece[c][s] = piece[d][s]

Whole ==        \* A component that lacks nothing of a stripe holds a piece of one.
    \A c \in Component : \A s \in StripeNumber \ missed[c] : piece[c][s] # Junk

IndInv ==       \* In the order in which it is cheapest to enumerate.
    /\ on \in [Component -> Device]
    /\ spare \in SUBSET Device
    /\ away \in SUBSET Device
    /\ Apart
    /\ state \in [Component -> {"active", "absent", "degraded", "stale", "resyncing"}]
    /\ missed \in [Component -> SUBSET StripeNumber]
    /\ clock \in [Component -> 0 .. Timer]
    /\ Lacks
    /\ Recoverable
    /\ piece \in [Component -> [StripeNumber -> Value \union {Junk}]]
    /\ Agree
    /\ Whole
    /\ copy \in {{}} \union
            {{[to |-> c, stripe |-> s, value |-> v]} : c \in Component, s \in StripeNumber, v \in Value}
    /\ Underway

Safety == InSync /\ NeverStale /\ Recoverable /\ Served /\ Apart
=============================================================================
