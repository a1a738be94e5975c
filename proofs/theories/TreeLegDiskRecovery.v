(** Progress of recovery of the disk with trees on a leg: after a power cut, and where too few members
answered, recovery ends after a bounded number of turns, and then every request within the stated sizes is
answered, while other devices fail between any two I/Os and enough members are left.

The bound is that of the disk as it was formatted: its shape, and the size of its trees. Nothing that happens
changes them ([LegDiskShape.v]). *)
From stdpp Require Import gmap relations.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec ProvedDisk ProvedDiskInvariant.
From LogDisk Require Import ProvedTreeDiskInvariant ProvedTreeDiskRecovery ProvedTreeDiskRequests
  ProvedTreeDiskBounds ProvedTreeDiskTheorem.
From LogDisk Require Import Devices Leg LegCorrect RequestProgress LegProgress LegDiskMachine
  LegDiskRefinement LegDiskProgress LegDiskShape ProvedTreeDiskAnswers TreeLegDiskProgress Progress.
From LogDisk Require DiskMachineShape.
Import DiskMachineShape(only, only_safe).

Section Recovery.
Context `{!blocks, !blocks_laws} {C : Type} `{!cutting block C} {torn : tearing block}
  (bits size count : nat).
Context {laws : cutting_laws count} (trees : nat * nat) (g : geometry).
Local Notation D := (tree_programs bits).
Local Notation only := (only D trees g).
Local Notation shaped := (DiskMachineShape.represents_as g T.shape (tree_represents_of bits trees)).
Implicit Types (x : array C) (h : list nat) (z : machine C T.memory).

(** Open, as it was formatted, and every request within the stated sizes is answered. *)
Definition answers_again (es : list (entry block)) z : Prop := ∃ y ms c x,
  z = (Idle y ms c, x, []) ∧ T.shape y = g ∧ T.tree_size y = trees ∧
  ∀ q, tree_admissible bits (tree_device_blocks g trees) y q →
    ends_well (weather count) (turn D size tree_places_for (T.Keep Collect) q) (answered_ok q)
      (turns_of (length ms) (tree_request_ios bits y q)) z.

Theorem tree_recovery_is_finished z tr c x h :
  formatted_as D count trees g size z → lives D size count z tr (c, x, h) → c = Off ∨ c = Lost →
  tree_device_blocks g trees ≤ size →
  ends_well (weather count) (recovery_turn D size) answers_again
    (turns_to_recover size (length (members x)) (tree_recovery_ios bits g trees)) (c, x, h).
Proof.
  intros Hz Hlives Hc Hsize.
  pose proof (only_safe _ _ _ _ _ _ (tree_programs_safe_of bits trees g ltac:(done))) as Hsafe.
  apply (ends_well_keeping _ _ open_again _ (λ z', ∃ tr', lives D size count z tr' z')).
  - intros z1 z2 [tr1 H1] (H2&_&_). revert tr1 H1. clear -H2.
    induction H2 as [z1|z1 z2 z3 H2 _ IH]; [eauto|]. intros tr1 H1.
    destruct (one_fails_is_move D size count _ _ H2) as [es Hes]. by eapply IH, lives_app, lives_one.
  - intros z1 es z2 [tr1 H1] H2. eexists. eapply lives_app; [exact H1|].
    by apply lives_one, recovery_turn_is_move.
  - intros es z1 (y&ms&c1&x1&->) [tr1 H1].
    destruct (leg_idle_represents only size count _ _ _ Hsafe _ _ _ _ _ _ _ _
      (formatted_only D count trees g size z Hz) (lives_only D count trees g size _ _ _ H1))
      as (f&d&Hg&Htrees&_).
    exists y, ms, c1, x1. split_and!; [done..|]. intros q [? ? ? ? ? _].
    apply (tree_requests_are_answered bits size count (disk_blocks g) z tr1); [|done|].
    + by apply (formatted_as_formatted D count trees g size).
    + split; try done. by rewrite Hg, Htrees.
  - by eexists.
  - destruct (reached_recoverable only size count _ _ _ _ _ _ _ _ _ Hsafe
      (formatted_only D count trees g size z Hz) (lives_only D count trees g size _ _ _ Hlives) Hc)
      as (S&M&g'&Hx&HM).
    apply (recovery_ends D size count _ c S M x h Hc Hx). intros _ f Hf.
    destruct (HM f Hf) as (d&->&Hd). by eapply tree_recovers.
Qed.
End Recovery.
