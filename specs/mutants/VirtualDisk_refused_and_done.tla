--------------------- MODULE VirtualDisk_refused_and_done ---------------------
\* a refusal for want of space happens all the same
EXTENDS MCVirtualDisk

BrokenNothing == \E d \in Disks : disk' = d /\ survivors' = survivors /\ power' = power
=============================================================================
