--------------------- MODULE Redundancy_half_built_read ---------------------
\* a component that is being rebuilt is read above its frontier too
EXTENDS MCRedundancy

BrokenReadable(s) == In({"active", "resyncing"})
=============================================================================
