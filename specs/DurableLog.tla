---------------------------- MODULE DurableLog -----------------------------
(***************************************************************************)
(* The durable log as LogStructuredDisk assumes it: a sequence of          *)
(* operations.  A power cut leaves a prefix of it, with at least the       *)
(* durable operations.  Operations in a checkpoint count as well, so this  *)
(* module does not show where the checkpoint ends and the log begins.      *)
(*                                                                         *)
(* An operation is a number that is used once: an operation that a power   *)
(* cut has undone can never be taken for another one that comes later.     *)
(*                                                                         *)
(* MirroredLog implements it on mirrors that fail.                         *)
(***************************************************************************)
EXTENDS Integers, Sequences

CONSTANT
    LogSize     \* How many operations the log takes beyond those that a checkpoint holds.

VARIABLES
    held,       \* The operations, in the order in which they happened.
    durable,    \* How many of them, the first ones, a power cut leaves for certain.
    saved,      \* How many of them, the first ones, a checkpoint holds.
    issued      \* How many operations were ever submitted.

vars == <<held, durable, saved, issued>>
----------------------------------------------------------------------------
Submit ==       \* The next operation happens.  It is not durable yet.
    /\ Len(held) - saved < LogSize
    /\ issued' = issued + 1
    /\ held' = Append(held, issued')
    /\ UNCHANGED <<durable, saved>>

LogAppend ==    \* All that happened is durable.
    /\ durable' = Len(held)
    /\ UNCHANGED <<held, saved, issued>>

CheckpointCommit ==     \* A checkpoint holds some more, all of them durable.
    /\ \E n \in saved .. durable : saved' = n
    /\ UNCHANGED <<held, durable, issued>>

Crash ==        \* A power cut, and recovery: the first ones are left, for good.
    /\ \E n \in durable .. Len(held) :
        /\ held' = SubSeq(held, 1, n)
        /\ durable' = n
    /\ \E n \in saved .. durable' : saved' = n      \* A checkpoint that was being written may count.
    /\ issued' = issued

Init == held = <<>> /\ durable = 0 /\ saved = 0 /\ issued = 0

Next == Submit \/ LogAppend \/ CheckpointCommit \/ Crash

Spec == Init /\ [][Next]_vars
----------------------------------------------------------------------------
TypeOK ==
    /\ held \in Seq(1 .. issued)
    /\ saved \in 0 .. durable
    /\ durable \in 0 .. Len(held)

InOrder == \A i, j \in DOMAIN held : i < j => held[i] < held[j]
=============================================================================
