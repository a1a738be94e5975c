---- MODULE Lamp ----
EXTENDS Naturals, Sequences, TLC
VARIABLES on, seen, idle
vars == <<on, seen, idle>>
Init == on = FALSE /\ seen = <<>> /\ idle = {"x y"}
Press == on' = ~on /\ seen' = (IF Len(seen) < 2 THEN Append(seen, [lamp |-> on, at |-> (3 :> Len(seen)) ]) ELSE <<>>) /\ UNCHANGED idle
Rest == on /\ UNCHANGED vars
Stop == Len(seen) < 2 /\ Press
Spec == Init /\ [][Press]_vars /\ WF_vars(Press)
Lazy == Init /\ [][Press]_vars
Short == Init /\ [][Stop]_vars
Never == Len(seen) < 2
StaysOn == <>[]on
Grows == [][Len(seen') > Len(seen)]_vars
TurnsOn == <>on
====
