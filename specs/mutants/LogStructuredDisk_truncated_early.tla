---------------- MODULE LogStructuredDisk_truncated_early -----------------
\* the log is truncated once a checkpoint is begun
EXTENDS MCLogStructuredDisk

BrokenForgettable == IF pending = NoCheckpoint THEN Newest.from ELSE pending.from
===========================================================================
