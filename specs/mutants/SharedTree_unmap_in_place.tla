--------------------- MODULE SharedTree_unmap_in_place ----------------------
\* an unmap punches its hole into the leaf as it stands, and the snapshot sees it
EXTENDS MCSharedTree

BrokenUnmap(lba) ==
    LET leaf == At(Root(maps, maps.live), lba, 1)
    IN  /\ At(Root(maps, maps.live), lba, 0) # Nil
        /\ node' = [node EXCEPT ![leaf].kids[lba % Fanout] = Nil]
        /\ limbo' = limbo \union GivenUp(maps, maps.live, lba, {0})
        /\ UNCHANGED <<maps, saved>>
        /\ Survives(Disk(maps)')
=============================================================================
