-------------- MODULE LogStructuredDisk_failed_commit_leaks ---------------
\* after a checkpoint that failed, what it had flushed stays in use
EXTENDS MCLogStructuredDisk

BrokenInUse(s) == \E p \in PBA : p[1] = s /\ data[p] # Nothing
===========================================================================
