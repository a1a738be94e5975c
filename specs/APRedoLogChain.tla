--------------------------- MODULE APRedoLogChain ---------------------------
(***************************************************************************)
(* Why RedoLogChain is right, however long it runs: the chains are a tree, *)
(* and what a consolidation has dealt with reads alike without the layer   *)
(* that will go.  It holds at first (--init=Init --inv=IndInv --length=0), *)
(* every step keeps it (--init=Start --inv=IndInv --length=1), and it      *)
(* implies what the spec promises (--init=Start --inv=Safety --length=0);  *)
(* --cinit=ConstInit.  TLC takes every step from every state that          *)
(* satisfies it: RedoLogChain-induction.                                   *)
(***************************************************************************)
EXTENDS RedoLogChain

ConstInit ==
    /\ Size = 1
    /\ Value = {0, 1}
    /\ Zero = 0
    /\ Name = {"a"}
    /\ Absent = 9
    /\ Layers = 3
    /\ Profile = "ack"

Tree ==         \* What stands below a layer is the same in all chains.
    \A v, w \in DOMAIN chain : \A i \in DOMAIN chain[v], j \in DOMAIN chain[w] :
        chain[v][i] = chain[w][j] => i = j /\ \A k \in DOMAIN chain[v] : k <= i => chain[v][k] = chain[w][k]

\* @type: ($rcJob, Int) => Bool;
Dealt(j, lba) ==    \* The block reads alike without the layer that goes.
    LET below == data[j.lower][lba]
        above == data[j.upper][lba]
    IN  IF j.way = "up" THEN above # Absent \/ below = Absent ELSE above = Absent \/ below = above

Consolidating ==
    \A j \in job :
        /\ j.lower # j.upper
        /\ Lone(j.lower, j.upper)
        /\ \A lba \in j.done : Dealt(j, lba)

IndInv ==
    /\ TypeOK
    /\ Tops /\ Tree /\ Consolidating
    /\ media = Durable(data)
    /\ \A i \in Layer : i \in Used(chain) \/ data[i] = Empty

Safety ==       \* To end a consolidation changes no view.
    /\ Tops
    /\ \A j \in job : j.done = LBA =>
        LET gone == IF j.way = "up" THEN j.lower ELSE j.upper
            Stays(layer) == layer # gone
        IN  \A v \in DOMAIN chain, lba \in LBA : Block(SelectSeq(chain[v], Stays), lba) = Block(chain[v], lba)
----------------------------------------------------------------------------
\* @type: (Int, Int, Int, Int) => Seq(Int);
Chain(a, b, c, n) == SubSeq(<<a, b, c>>, 1, n)

Chains == {Chain(a, b, c, n) : a \in Layer, b \in Layer, c \in Layer, n \in 1 .. 3}

Jobs == [way : {"up", "down"}, lower : Layer, upper : Layer, done : SUBSET LBA]

Start ==        \* Any state that satisfies it, with three layers at most.
    /\ \E live \in Chains, names \in SUBSET Name : \E name \in (IF names = {} THEN {live} ELSE Chains) :
        chain = [v \in {Live} \union names |-> IF v = Live THEN live ELSE name]
    /\ Tops /\ Tree
    /\ \E d \in [Layer -> [LBA -> Value \union {Absent}]] : data = d /\ media = Durable(d)
    /\ \A i \in Layer : i \in Used(chain) \/ data[i] = Empty
    /\ job \in {{}} \union {{j} : j \in Jobs}
    /\ IndInv
=============================================================================
