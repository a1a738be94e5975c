(** Progress of the disk with trees on a leg: as long as enough members answer, every request within the
stated sizes is answered [Ok] after a bounded number of turns, while other devices fail between any two
I/Os. The scheduler is that of [LegDiskProgress.v]: the first free places, collected first where they are
too few. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec ProvedDisk ProvedDiskInvariant.
From LogDisk Require Import ProvedTreeDiskInvariant ProvedTreeDiskBounds ProvedTreeDiskTheorem
  ProvedTreeDiskAnswers.
From LogDisk Require Import Devices Leg LegCorrect RequestProgress LegProgress LegDiskMachine LegDiskProgress
  LegDiskGroups Progress.

Section Progress.
Context `{!blocks, !blocks_laws} {C : Type} `{!cutting block C} {torn : tearing block}
  (bits size count : nat).
Implicit Types (y : T.memory) (q : request).
Local Notation D := (tree_programs bits).
Local Notation tree_admissible := (tree_admissible bits size).
Local Notation tree_admissible_group := (tree_admissible_group bits size).
Local Notation trees_answer := (trees_answer bits size).
Local Notation trees_perform := (trees_perform bits size).
Context {laws : cutting_laws count}.

Theorem tree_requests_are_answered n z tr y ms c x h q :
  formatted D size count n z → lives D size count z tr (Idle y ms c, x, h) → tree_admissible y q →
  ends_well (weather count) (turn D size tree_places_for (T.Keep Collect) q) (answered_ok q)
    (turns_of (length ms) (tree_request_ios bits y q)) (Idle y ms c, x, h).
Proof.
  intros Hz Hlives Hq. eapply requests_are_answered; [done|exact trees_answer|by apply
    tree_programs_safe|done..].
Qed.

Theorem tree_groups_are_performed n z tr y ms c x h ws :
  formatted D size count n z → lives D size count z tr (Idle y ms c, x, h) → tree_admissible_group y ws →
  ends_well (weather count) (group_turn D size tree_places_for (T.Keep Collect) ws) (group_ok ws)
    (turns_of (length ms) (tree_group_ios y ws)) (Idle y ms c, x, h).
Proof.
  intros Hz Hlives Hws.
  eapply groups_are_performed; [done|exact trees_perform|by apply tree_programs_safe|done..].
Qed.
End Progress.
