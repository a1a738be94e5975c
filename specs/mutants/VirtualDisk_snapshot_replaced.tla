-------------------- MODULE VirtualDisk_snapshot_replaced --------------------
\* a snapshot takes the place of one of the same name
EXTENDS MCVirtualDisk

BrokenTaken(name) == IF name \notin Name THEN {"bad-request"} ELSE {}
=============================================================================
