(** What progress of the disk that is served asks of its programs, and that those of whole maps and of trees
have it: whatever is asked for, a program ends after a bounded number of I/Os, and a request within the stated
sizes is answered [Ok] at the places that are planned. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskAppend ProvedDiskRecovery ProvedDiskRequests ProvedDiskProgress ProvedDiskBounds RequestProgress
  ProvedDiskMachine ProvedDiskRefinement ProvedDiskAnswers.
From LogDisk Require Import ProvedTreeDiskInvariant ProvedTreeDiskRecovery ProvedTreeDiskRequests
  ProvedTreeDiskBounds ProvedTreeDiskTheorem ProvedTreeDiskAnswers ServedDiskScheduler.
From LogDisk Require DiskMachine DiskMachineShape.
Import DiskMachine(programs, crash_safe_programs, run_request, run_group, run_upkeep).
Import DiskMachineShape(only, only_safe, represents_as).

(** ** What is asked of the programs *)

Section Programs.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : programs Y U) (size : nat).
Context (places_for : Y → nat → option (list nat)) (collecting : U).
Context (represents : Y → contents block → disk block → Prop).
Context (admissible : Y → request → Prop) (ios : request → nat) (together : nat → nat).

(** Whatever is asked for, and wherever it is to go, a program ends after so many I/Os; a collection needs
none. A request within the stated sizes, at the places that are planned, is answered [Ok]. *)
Record ends_any_request : Prop := {
  any_within y f d places q : represents y f d →
    runs_within size (ios q) (run_request D y places q) (Medium f []);
  any_group_within y f d places ws : represents y f d →
    runs_within size (together (length (blocks_of ws))) (run_group D y places ws) (Medium f []);
  any_collected y f d : represents y f d → ∃ y', run_upkeep D y collecting = Done y' ∧ represents y' f d ∧
    ∀ q, admissible y q → admissible y' q ∧ is_Some (planned places_for y' q);
  any_answered y f d places q : represents y f d → admissible y q → planned places_for y q = Some places →
    granted (run_request D y places q) (Medium f []) →
    (execute (run_request D y places q) (Medium f [])).1.1.2 = Ok;
  write_ios lba data : ios (DoWrite lba data) = together (length data);
  together_more n n' : n ≤ n' → together n ≤ together n';
}.
End Programs.

(** ** Bounds *)

Section Bounds.
Context `{!blocks} (ios : request → nat) (together : nat → nat) (most : nat).

Definition ios_of_job (j : job nat) : nat :=
  match j with Single _ q => ios q | Together ws => together (length (blocks_of ws.*2)) end.

(** The jobs that have begun; and the requests before the one at [i], and this one. *)
Definition turns_begun (on : nat → nat) {Z} (s : server Z) : nat :=
  sum_list (turns_of_job ios together on <$> begun s).
Definition turns_to_reply (on : nat → nat) {Z} (s : server Z) (i : nat) : nat :=
  turns_begun on s + turns_before (turns_for most ios together on) (waiting s) i.
End Bounds.

(** ** The disks *)

Section Shaped.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : programs Y U) (trees : nat * nat) (g : geometry).
Context (shape : Y → geometry) (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).

(** Programs that format fewer disks are as safe. *)
Lemma safe_only : crash_safe_programs D shape represents recoverable →
  crash_safe_programs (only D trees g) shape represents recoverable.
Proof.
  intros Hall. split; try apply Hall. intros size' g' f y m Hwhole. simpl.
  destruct (decide _) as [[-> ->]|]; [by apply Hall|done].
Qed.
End Shaped.

Section Disks.
Context `{!blocks, !blocks_laws} {torn : tearing block} (trees : nat * nat) (g : geometry).

(** I/Os of changes of so many blocks, with whole maps. *)
Definition change_ios (n : nat) : nat := slot_blocks g + data_ios n + 6.

Lemma maps_end size : device_blocks g ≤ size →
  ends_any_request proved_programs size places_for Collect (represents_as g shape represents) admissible
    (request_ios g) change_ios.
Proof.
  intros Hsize. split.
  - intros y f d places q [Hg Hy]. rewrite <-Hg in *. by eapply within_perform.
  - intros y f d places ws [Hg Hy].
    assert (change_ios (length (blocks_of ws)) = group_ios (shape y) ws) as ->.
    { unfold change_ios, group_ios. by rewrite Hg. }
    eapply within_write_group; [done|by rewrite Hg].
  - intros y f d [Hg Hy]. exists (collect y). split; [done|].
      split; [split; [done|by apply represents_collected]|].
    intros q Hq. by apply admissible_collected.
  - intros y f d places q [_ Hy]. by eapply plan_answered.
  - done.
  - intros n n' Hn%data_ios_more. unfold change_ios. lia.
Qed.

Lemma maps_recover size f d : device_blocks g ≤ size → recoverable g d f →
  recovers_within proved_programs size (request_ios g DoRestart) f.
Proof.
  intros Hsize Hf. split; [|by eapply recover_finds]. cbn [request_ios].
  rewrite <-(Nat.add_0_r (recovery_ios g)). by eapply within_recover.
Qed.

(** With trees, from the shape and the size of the trees. *)
Definition tree_change_ios_of (n : nat) : nat := trees.2 + slot_blocks g + 6 + data_ios n.
Definition tree_request_ios_of bits (q : request) : nat :=
  match q with
  | DoRead _ _ count => count
  | DoFlush => 0
  | DoRestart => tree_recovery_ios bits g trees
  | _ => tree_change_ios_of (length (data_of q))
  end.

Lemma trees_end size bits : tree_device_blocks g trees ≤ size →
  ends_any_request (tree_programs bits) size tree_places_for (T.Keep Collect)
    (represents_as g T.shape (tree_represents_of bits trees)) (tree_admissible bits size)
    (tree_request_ios_of bits) tree_change_ios_of.
Proof.
  intros Hsize. split.
  - intros y f d places q (Hg&Htrees&Hy).
    assert (tree_request_ios_of bits q = tree_request_ios bits y q) as ->.
    { unfold tree_request_ios_of, tree_request_ios, tree_change_ios_of, tree_change_ios, T.page_blocks.
      by rewrite Hg, Htrees. }
    eapply within_tree_perform; [done|]. by rewrite Hg, Htrees.
  - intros y f d places ws (Hg&Htrees&Hy).
    assert (tree_change_ios_of (length (blocks_of ws)) = tree_group_ios y ws) as ->.
    { unfold tree_group_ios, tree_change_ios_of, tree_change_ios, T.page_blocks. by rewrite Hg, Htrees. }
    eapply within_tree_group; [done|]. by rewrite Hg, Htrees.
  - intros y f d (Hg&Htrees&Hy). exists (T.collect y). split; [done|].
    split; [split; [done|split; [done|by apply tree_represents_collected]]|].
    intros q [Hfaults Hone Hroom Hsizes Hlog Hdevices].
    split; [split; try done; by apply collected_goes_on|]. by apply tree_places_after_collection.
  - intros y f d places q (_&_&Hy). by eapply tree_plan_answered.
  - done.
  - intros n n' Hn%data_ios_more. unfold tree_change_ios_of. lia.
Qed.

Lemma maps_safe_only :
  crash_safe_programs (only proved_programs trees g) ProvedDisk.shape represents recoverable.
Proof. apply safe_only, proved_programs_safe. Qed.
End Disks.
