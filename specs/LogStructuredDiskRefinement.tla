-------------------- MODULE LogStructuredDiskRefinement ---------------------
(***************************************************************************)
(* What LogStructuredDisk implements: VirtualDisk, by way of what recovery *)
(* would find.  The contract's disk is what the views read as; without     *)
(* power, what recovery would make of the media.  The survivors are what   *)
(* it would make of each set of records in flight that a power cut leaves. *)
(***************************************************************************)
EXTENDS LogStructuredDisk

\* @type: ($disk, Int -> $lsdPlace, Int -> Int) => $disk;
Contents(views, map, banked) ==     \* What views read as, their chunks being in `map` or `banked`.
    LET means(m) ==
            CASE m = Hole             -> Zero
              [] m \in DOMAIN banked  -> banked[m]
              [] m \in DOMAIN map     -> data[map[m]]
              [] OTHER                -> Nothing
    IN  [live  |-> [l \in LBA |-> means(views.live[l])],
         snaps |-> [n \in DOMAIN views.snaps |-> [l \in LBA |-> means(views.snaps[n][l])]]]

Durable ==      \* The number of the last record that no power cut can undo.
    CHOOSE e \in Newest.from .. Newest.from + Cardinality(DOMAIN log) :
        /\ \A p \in Newest.from + 1 .. e : p \in DOMAIN log /\ Good(log[p], p)
        /\ e + 1 \in DOMAIN log => ~ Good(log[e + 1], e + 1)

\* @type: Int => $disk;
Recovered(e) == \* The disk that recovery makes if it replays the records up to e.
    LET start == Newest.from
        image[p \in start .. e] ==
            IF p = start THEN Contents(Newest.maps, Newest.middle, Empty(Zero))
            ELSE Edited(image[p - 1], At(p), At(p).value, Zero)
    IN  image[e]

Doubtful ==     \* The number of the last record in flight, as far as recovery could reach.
    CHOOSE e \in Durable .. Durable + Cardinality(DOMAIN tail) :
        /\ Durable + 1 .. e \subseteq DOMAIN tail
        /\ e + 1 \notin DOMAIN tail

power == phase = "up"

disk == IF power THEN Contents(maps, middle, bank)
        ELSE Recovered(IF Profile = "ack" THEN Durable ELSE Doubtful)

survivors ==
    LET last == IF Profile = "ack" /\ power THEN Durable ELSE Doubtful
        \* @type: $disk => $image;
        exactly(d) == [live |-> [l \in LBA |-> {d.live[l]}], snaps |-> d.snaps]
    IN  {exactly(Recovered(e)) : e \in Durable .. last}

Contract == INSTANCE VirtualDisk

Refinement == Contract!Spec

Agreement ==    \* What is read is what recovery would find if all is left that is in flight.
    power => disk = Recovered(IF Profile = "ack" THEN Durable ELSE Doubtful)

InternalStepsHide ==     \* Only operations, LogAppend and Recover change the tail, and only they show.
    [][tail' = tail => disk' = disk /\ (power' = power => survivors' = survivors)]_vars
=============================================================================
