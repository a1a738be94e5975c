------------------------ MODULE MCVirtualDiskSteps -------------------------
(***************************************************************************)
(* Every step of the contract on a small disk, printed: the state, the     *)
(* request, its answer, the state after it.  `make model-tests` makes      *)
(* tests of an engine from them: what an engine answers has to be one of   *)
(* the answers that are printed here.                                      *)
(***************************************************************************)
EXTENDS VirtualDisk, TLC

CONSTANT Depth      \* Of how many steps the histories are that are needed.

VARIABLE said       \* The last request, its answer, and the data that came with it.

Names == Name \union {"?"}      \* With one that is no legal name.

Some == 1 .. Size       \* How many blocks a request may have.

Say(request, r, data) == said' = <<request, r, data>>

DoWrite == \E lba \in 0 .. Size, data \in Data, r \in Answers :
    Write(lba, data, r) /\ Say([op |-> "write", lba |-> lba, tags |-> data], r, <<>>)

DoUnmap == \E lba \in 0 .. Size, count \in Some, r \in Answers :
    Unmap(lba, count, r) /\ Say([op |-> "unmap", lba |-> lba, count |-> count], r, <<>>)

DoRead == \E view \in {Live} \union Names, lba \in 0 .. Size, count \in Some, r \in Answers \ {"cut"} :
    \E data \in IF r = "ok" THEN [1 .. count -> Value] ELSE {<<>>} :
        /\ Read(view, lba, count, r, data)
        /\ Say([op |-> "read", lba |-> lba, count |-> count, view |-> view], r, data)

DoSnapshot == \E name \in Names, r \in Answers :
    Snapshot(name, r) /\ Say([op |-> "snapshot", name |-> name], r, <<>>)

DoDelete == \E name \in Names, r \in Answers :
    Delete(name, r) /\ Say([op |-> "delete", name |-> name], r, <<>>)

DoRevert == \E name \in Names, r \in Answers :
    Revert(name, r) /\ Say([op |-> "revert", name |-> name], r, <<>>)

DoFlush == \E r \in Answers : Flush(r) /\ Say([op |-> "flush"], r, <<>>)

DoRestart == \E r \in Answers : Restart(r) /\ Say([op |-> "restart"], r, <<>>)

DoCrash == \E r \in Answers : Crash(r) /\ Say([op |-> "crash"], r, <<>>)

Start == Init /\ said = <<>>

Step == DoWrite \/ DoUnmap \/ DoRead \/ DoSnapshot \/ DoDelete \/ DoRevert \/ DoFlush \/ DoRestart \/ DoCrash
----------------------------------------------------------------------------
Printed ==          \* Holds; TLC asks it of every step.
    PrintT(ToString(<<vars, said', vars'>>))

Unsaid == vars      \* No action reads `said`.

Shallow ==          \* Tests are no longer than that.
    TLCGet("level") <= Depth
=============================================================================
