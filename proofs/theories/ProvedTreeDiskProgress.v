(** Progress of the disk with trees on one device: after a power cut recovery ends after a bounded number of
turns, and then every request within the stated sizes is answered. *)
From stdpp Require Import gmap.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant DiskMachine
  DiskMachineShape DiskMachineProgress.
From LogDisk Require Import ProvedTreeDiskInvariant ProvedTreeDiskRecovery ProvedTreeDiskRequests
  ProvedTreeDiskBounds ProvedTreeDiskTheorem ProvedTreeDiskAnswers Progress.

Section Progress.
Context `{!blocks, !blocks_laws} {torn : tearing block} (bits : nat) (trees : nat * nat) (g : geometry).
Local Notation D := (tree_programs bits).
Local Notation only := (only D trees g).
Local Notation size := (tree_device_blocks g trees).
Local Notation turn := (DiskMachineProgress.turn D tree_places_for (T.Keep Collect)).
Implicit Types (y : T.memory) (z : machine T.memory).

(** Open, as it was formatted, and every request within the stated sizes is answered. *)
Definition answers_again (es : list (event block)) z : Prop := es = [Crash Ok] ∧ ∃ y m,
  z = (Idle y, m) ∧ T.shape y = g ∧ T.tree_size y = trees ∧
  ∀ q, tree_admissible bits size y q →
    ends_well assumed (turn q) (DiskMachineProgress.answered_ok q) (4 + tree_request_ios bits y q) z.

Theorem tree_disk_recovery_ends z tr m :
  formatted_as D trees g z → shows (disk_machine D) z tr (Off, m) →
  ends_well assumed (DiskMachineProgress.recovery_turn D) answers_again (2 + tree_recovery_ios bits g trees)
    (Off, m).
Proof.
  intros Hz Hshows.
  pose proof (only_safe _ _ _ _ _ _ (tree_programs_safe_of bits trees g ltac:(done))) as Hsafe.
  apply formatted_only in Hz.
  apply (ends_well_keeping _ _ DiskMachineProgress.open_again _
    (λ z', ∃ tr', shows (disk_machine D) z tr' z')).
  - by intros z1 z2 H1 [-> _].
  - intros z1 es z2 [tr1 H1] H2. eexists. eapply shows_app; [exact H1|].
    by apply shows_one, DiskMachineProgress.recovery_turn_is_move.
  - intros es z1 [-> (y&m1&->)] [tr1 H1]. split; [done|].
    destruct (idle_represents _ _ _ _ Hsafe _ _ _ _ _ Hz (shows_only D trees g _ _ _ H1))
      as (f&d&->&Hg&Htrees&Hy).
    exists y, (Medium f []). split_and!; [done..|]. intros q Hq.
    by eapply DiskMachineProgress.request_ends; [apply (trees_answer bits size)|..].
  - by eexists.
  - destruct (DiskMachineProgress.off_recoverable only _ _ _ _ _ _ _ Hsafe Hz
      (shows_only D trees g _ _ _ Hshows)) as (f&g'&d&->&->&Hd).
    apply (DiskMachineProgress.recovery_ends D size). by eapply tree_recovers.
Qed.
End Progress.
