(** Progress of the disk that is served, on one device: every request that waits is answered after a bounded
number of turns, with whole maps and with trees. [ServedLegProgress.v] proves the same of a disk on a leg.

The scheduler of the queue is [next_job] ([ServedDiskScheduler.v]). For each job the scheduler of the disk
proposes the first free places. Where they are too few, it collects once. Then the job begins, and is refused
if there are still too few. So no request keeps the others waiting, whatever it asks for.

Between two turns requests arrive, and what programs assume of digests is true. The power may have failed any
number of times before, also while the disk was opened; it stays on from then on. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskBounds
  ProvedDiskMachine ProvedDiskRefinement ProvedDiskRequests ProvedDiskAnswers.
From LogDisk Require Import ProvedTreeDiskInvariant ProvedTreeDiskRequests ProvedTreeDiskBounds
  ProvedTreeDiskTheorem ProvedTreeDiskAnswers.
From LogDisk Require Import RequestProgress Progress ServedDiskScheduler ServedDiskPower ServedDiskPrograms.
From LogDisk Require DiskMachine DiskMachineShape DiskMachineProgress.
Import DiskMachine(programs, crash_safe_programs, run_request, run_group, run_upkeep).
Import DiskMachineShape(only, only_safe, represents_as).

Local Notation job := (job nat).

Section Device.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : programs Y U) (size : nat).
Context (places_for : Y → nat → option (list nat)) (collecting : U).
Import DiskMachine(control, machine, Idle, Busy, Group, Upkeep, move, disk_machine).
Local Notation machine := (machine Y).
Implicit Types (y : Y) (q : request) (m : medium block) (z : machine) (j : job).

Definition performing_here j y (places : list nat) : control Y :=
  match j with
  | Single _ q => Busy q (run_request D y places q)
  | Together ws => Group ws.*2 (run_group D y places ws.*2)
  end.

(** What the scheduler of the disk does for a job. *)
Inductive device_turn : job → machine → list outcome → machine → Prop :=
  | BeginsHere j y places m :
      places_for y (blocks_of_job j) = Some places →
      device_turn j (Idle y, m) [] (performing_here j y places, m)
  | CollectsHere j y m :
      places_for y (blocks_of_job j) = None →
      device_turn j (Idle y, m) [] (Upkeep (run_upkeep D y collecting), m)
  | BeginsCollectedHere j y m :
      device_turn j (Upkeep (Done y), m) []
        (performing_here j y (default [] (places_for y (blocks_of_job j))), m)
  | PerformsOneHere id q p m p' m' :
      io p m = Some (p', m') → device_turn (Single id q) (Busy q p, m) [] (Busy q p', m')
  | PerformsTogetherHere ws p m p' m' :
      io p m = Some (p', m') → device_turn (Together ws) (Group ws.*2 p, m) [] (Group ws.*2 p', m')
  | EndsOneHere id q y r data m :
      device_turn (Single id q) (Busy q (Done (y, r, data)), m) [Some [(r, data)]] (Idle y, m)
  | EndsTogetherHere ws y m :
      device_turn (Together ws) (Group ws.*2 (Done (y, true)), m) [Some (replicate (length ws) (Ok, []))]
        (Idle y, m)
  | EndsRefusedHere ws y m :
      device_turn (Together ws) (Group ws.*2 (Done (y, false)), m) [None] (Idle y, m).

Lemma device_turn_shows j z os z' : device_turn j z os z' → ∃ tr, shows (disk_machine D) z tr z'.
Proof.
  assert (∀ y places m, move D (Idle y, m) [] (performing_here j y places, m)) as Hperform.
  { intros y places m. destruct j; by constructor. }
  assert (∀ z es z', move D z es z' → ∃ tr, shows (disk_machine D) z tr z') as Hone.
  { intros z1 es z2 Hmove. eexists. by apply shows_one. }
  destruct 1.
  - eapply Hone, Hperform.
  - eapply Hone, (DiskMachine.Maintain D).
  - eexists. eapply shows_step; [exact (DiskMachine.UpkeepEnds D y m)|]. apply shows_one, Hperform.
  - by eapply Hone, (DiskMachine.BusyIo D).
  - by eapply Hone, (DiskMachine.GroupIo D).
  - eapply Hone, (DiskMachine.Answer D).
  - eapply Hone, (DiskMachine.GroupAnswer D).
  - eapply Hone, (DiskMachine.GroupRefused D).
Qed.

Definition is_idle_here z : Prop := ∃ y m, z = (Idle y, m).

Context (represents : Y → contents block → disk block → Prop).
Context (admissible : Y → request → Prop) (ios : request → nat) (together : nat → nat).
Context (programs_end : ends_any_request D size places_for collecting represents admissible ios together).
Local Notation turns := (turns_to_end ios together (λ n, n)).
Local Notation ios_of_job := (ios_of_job ios together).
Local Notation assumed := DiskMachineProgress.assumed.
Local Notation recovery_turn := (DiskMachineProgress.recovery_turn D).

Lemma performing_here_ends (well : answer → Prop) j y f d places :
  represents y f d →
  (∀ id q, j = Single id q →
    (∀ r, well r) ∨ admissible y q ∧ planned places_for y q = Some places ∧ well Ok) →
  ends_well assumed (device_turn j) (ends_as is_idle_here well j) (ios_of_job j + 1)
    (performing_here j y places, Medium f []).
Proof.
  intros Hy Hwell. destruct j as [id q|ws]; simpl.
  - apply (DiskMachineProgress.machine_ends (device_turn (Single id q)) _ (Busy q) size);
      [done| | | |by eapply any_within].
    + intros. by apply PerformsOneHere.
    + intros p m2 es z2 Hstep. destruct p; [done|..]; inversion Hstep; simplify_eq; eauto.
    + intros Hgranted z2 [-> _]. assert (well (execute (run_request D y places q) (Medium f [])).1.1.2) as Hr.
      { destruct (Hwell id q eq_refl) as [?|(Hq&Hplan&?)]; [done|].
        by rewrite (any_answered _ _ _ _ _ _ _ _ programs_end y f d places q). }
      destruct (execute _ _) as [[[y2 r] data] m2]. simpl in *.
      split; [do 2 eexists; by apply EndsOneHere|].
      intros es z3 Hstep. left. inversion Hstep; simplify_eq.
      split; [by do 2 eexists|by do 2 eexists].
  - apply (DiskMachineProgress.machine_ends (device_turn (Together ws)) _ (Group ws.*2) size);
      [done| | | |by eapply any_group_within].
    + intros. by apply PerformsTogetherHere.
    + intros p m2 es z2 Hstep. destruct p; [done|..]; inversion Hstep; simplify_eq; eauto.
    + intros _ z2 [-> _]. destruct (execute _ _) as [[y2 all] m2]. simpl in *.
      split; [destruct all; do 2 eexists; [by apply EndsTogetherHere|by apply EndsRefusedHere]|].
      intros es z3 Hstep. left. inversion Hstep; simplify_eq.
      * split; [by do 2 eexists|by right].
      * split; [by do 2 eexists|by left].
Qed.

Lemma idle_job_ends_here (well : answer → Prop) j y f d :
  represents y f d → (∀ id q, j = Single id q → (∀ r, well r) ∨ admissible y q ∧ well Ok) →
  ends_well assumed (device_turn j) (ends_as is_idle_here well j) (turns j) (Idle y, Medium f []).
Proof.
  intros Hy Hwell. assert (turns j = 3 + ios_of_job j) as -> by by destruct j.
  intros z1 [-> _]. destruct (places_for y (blocks_of_job j)) as [places|] eqn:Hplan.
  { split; [do 2 eexists; by apply BeginsHere|]. intros os z Hz. right.
    inversion Hz; simplify_eq; try (by destruct j). split; [done|].
    eapply ends_well_more; [|eapply performing_here_ends; try done]; [lia|].
    intros id q ->. destruct (Hwell id q eq_refl) as [?|[? ?]]; [by left|by right]. }
  destruct (any_collected _ _ _ _ _ _ _ _ programs_end y f d Hy) as (y'&Hcollect&Hy'&Hadm).
  split; [do 2 eexists; by apply CollectsHere|]. intros os z Hz. right.
  inversion Hz; simplify_eq. split; [done|]. rewrite Hcollect.
  intros z2 [-> _]. split; [do 2 eexists; apply BeginsCollectedHere|].
  intros os z Hz2. right. inversion Hz2; simplify_eq.
  split; [done|]. eapply ends_well_more; [|eapply performing_here_ends; try done]; [lia|].
  intros id q ->. destruct (Hwell id q eq_refl) as [?|[[Hq' [places Hplaces]]%Hadm Hok]]; [by left|right].
  split_and!; [done| |done]. unfold planned in *. simpl. by rewrite Hplaces.
Qed.

(** ** Every request that waits *)

Variables (most : nat) (z0 : machine).
Context (represented : ∀ tr y m, shows (disk_machine D) z0 tr (Idle y, m) →
  ∃ f d, m = Medium f [] ∧ represents y f d).

Definition reached_idle_here z : Prop := (∃ tr, shows (disk_machine D) z0 tr z) ∧ is_idle_here z.

Lemma reached_idle_assumed z z1 : reached_idle_here z → assumed z z1 → reached_idle_here z1.
Proof. by intros Hz [-> _]. Qed.

Lemma assumed_trans z z1 z2 : assumed z z1 → assumed z1 z2 → assumed z z2.
Proof. by intros [-> _] H2. Qed.

Lemma reached_job_ends_here (well : answer → Prop) j z : reached_idle_here z →
  (∀ id q, j = Single id q → (∀ r, well r) ∨ well Ok ∧ ∀ y m, z = (Idle y, m) → admissible y q) →
  ends_well assumed (device_turn j) (ends_as reached_idle_here well j) (turns j) z.
Proof.
  intros [[tr Hz] (y&m&->)] Hwell.
  apply (ends_well_keeping _ _ (ends_as is_idle_here well j) _ (λ z, ∃ tr, shows (disk_machine D) z0 tr z)).
  - by intros z1 z2 H1 [-> _].
  - intros z1 es z2 [tr1 H1] [tr2 H2]%device_turn_shows. eexists. by eapply shows_app.
  - intros es z1 [Hidle Hend] Hreached. by split.
  - by eexists.
  - destruct (represented _ _ _ Hz) as (f&d&->&Hy).
    apply (idle_job_ends_here well j y f d); try done. intros id q Hj.
    destruct (Hwell id q Hj) as [?|[? Hq]]; [by left|right]. split; [by eapply Hq|done].
Qed.

Definition within_sizes_here (id : nat) q (s : server machine) : Prop :=
  ∀ js y m, begun s = Single id q :: js → disk_behind s = (Idle y, m) → admissible y q.

(** *** Power cuts *)

Definition is_open_here z : bool :=
  match z.1 with DiskMachine.Off | DiskMachine.Recovery _ => false | _ => true end.
Definition power_fails_here z z' : Prop :=
  z.1 ≠ DiskMachine.Off ∧ z'.1 = DiskMachine.Off ∧ ∃ es, move D z es z'.
Definition reached_off z : Prop := (∃ tr, shows (disk_machine D) z0 tr z) ∧ z.1 = DiskMachine.Off.

(** [z0] is a disk; anything may have happened to it. It is served while nothing is under way, or is opened
first; then there were any turns and any power cuts. *)
Definition device_in_power :=
  in_power device_turn (next_job most) is_open_here recovery_turn assumed power_fails_here reached_idle_here
    reached_off.

(** Recovery takes two turns, and one for each I/O. *)
Definition device_replies_to_all : Prop :=
  replies_despite_cuts device_turn (next_job most) is_open_here recovery_turn assumed power_fails_here
    reached_idle_here reached_off (2 + ios DoRestart) within_sizes_here
    (turns_begun ios together (λ n, n)) (turns_to_reply ios together most (λ n, n)).

Local Notation under_way := (under_way device_turn assumed reached_idle_here ios together (λ n, n)).

Lemma all_jobs_end_here j z : reached_idle_here z →
  ends_well assumed (device_turn j) (ends_as reached_idle_here any_answer j) (turns j) z.
Proof. intros Hz. apply reached_job_ends_here; [done|]. by left. Qed.

Lemma device_serves_all :
  replies_to_all device_turn (next_job most) assumed under_way within_sizes_here
    (turns_begun ios together (λ n, n)) (turns_to_reply ios together most (λ n, n)).
Proof.
  intros s id q Hway. pose proof all_jobs_end_here as Hjobs.
  pose proof (next_job_fair most ios together (λ n, n) (write_ios _ _ _ _ _ _ _ _ programs_end)
    (together_more _ _ _ _ _ _ _ _ programs_end) (λ n n' Hn, Hn)) as Hfair.
  assert (∀ z z1 (js : list job) (w : list (nat * request)) (a : list reply), reached_idle_here z →
    assumed z z1 → (True : Prop) →
    ends_well assumed (device_turn (Single id q)) (ends_as reached_idle_here any_answer (Single id q))
      (turns_alone ios (λ n, n) q) z) as Hmine.
  { intros z z1 js w a Hz _ _. by apply (Hjobs (Single id q)). }
  split; [intros i Hi; split|intros Hin; by eapply begun_under_way_ends];
    (eapply under_way_ends; [exact Hjobs| | |exact reached_idle_assumed|exact Hfair|exact Hway|exact Hi]).
  - exact Hmine.
  - done.
  - intros z z1 js w a Hz [-> _] Hwithin. apply (reached_job_ends_here _ (Single id q)); [done|].
    intros id' q' [= <- <-]. right. split; [done|]. intros y m ->. by eapply Hwithin.
  - done.
Qed.

(** What is left on the device is what recovery finds. *)
Context (recovers : ∀ tr m, shows (disk_machine D) z0 tr (DiskMachine.Off, m) →
  ∃ f, m = Medium f [] ∧ recovers_within D size (ios DoRestart) f).

Lemma one_move_shows z es z' tr :
  shows (disk_machine D) z0 tr z → move D z es z' → ∃ tr', shows (disk_machine D) z0 tr' z'.
Proof. intros Hz Hmove. eexists. eapply shows_app; [exact Hz|by apply shows_one]. Qed.

Lemma reached_recovery_ends_here z : reached_off z →
  ends_well assumed recovery_turn (λ _, reached_idle_here) (2 + ios DoRestart) z.
Proof.
  destruct z as [c m]. intros [[tr Hz] Hc]. simpl in Hc. subst c. destruct (recovers _ _ Hz) as (f&->&Hf).
  apply (ends_well_keeping _ _ DiskMachineProgress.open_again _ (λ z, ∃ tr, shows (disk_machine D) z0 tr z)).
  - by intros z1 z2 H1 [-> _].
  - intros z1 es z2 [tr1 H1] H2%DiskMachineProgress.recovery_turn_is_move. by eapply one_move_shows.
  - intros es z1 [_ (y&m1&->)] Hreached. split; [done|by do 2 eexists].
  - by eexists.
  - by apply (DiskMachineProgress.recovery_ends D size).
Qed.

Lemma device_serves_despite_cuts : device_replies_to_all.
Proof.
  apply (all_replies_despite_cuts _ _ _ _ _ _ _ _ _) with
    (reached := λ z, ∃ tr, shows (disk_machine D) z0 tr z) (way := under_way).
  - intros j z os z'. by destruct 1; try destruct j.
  - intros z es z'. by destruct 1.
  - by intros z z' [-> _].
  - intros z [Hz (y&m&->)]. by split.
  - intros z [Hz Hc]. split; [|done]. unfold is_open_here. by rewrite Hc.
  - by intros z1 z2 H1 [-> _].
  - intros j z1 os z2 [tr1 H1] [tr2 H2]%device_turn_shows. eexists. by eapply shows_app.
  - intros z1 es z2 [tr1 H1] H2%DiskMachineProgress.recovery_turn_is_move. by eapply one_move_shows.
  - intros z es z' Hturn Hz Ho. split; [done|]. destruct Hturn; try done. by do 2 eexists.
  - intros z1 z2 [tr1 H1] (_&Hoff&[es H2]). split; [by eapply one_move_shows|done].
  - exact assumed_trans.
  - exact reached_recovery_ends_here.
  - intros z w a Hz. by apply ready_under_way; [apply all_jobs_end_here|].
  - intros s s1. by apply under_way_weather; [apply reached_idle_assumed|apply assumed_trans].
  - intros s s1 es s2. by apply under_way_turn;
      [apply all_jobs_end_here|apply reached_idle_assumed|apply assumed_trans].
  - apply device_serves_all.
  - intros z z' w w' a a' i Hi [more ->]. unfold turns_to_reply, turns_begun, turns_before. simpl.
    by rewrite take_app_le by lia.
Qed.
End Device.

(** ** The disks *)

Section Shaped.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : programs Y U) (trees : nat * nat) (g : geometry).
Context (shape : Y → geometry) (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).
Context (Hsafe : crash_safe_programs (only D trees g) shape represents recoverable).

(** When nothing is under way, memory and the device are a disk of this shape. *)
Lemma shaped_on_device z0 tr y m :
  DiskMachineShape.formatted_as D trees g z0 →
  shows (DiskMachine.disk_machine D) z0 tr (DiskMachine.Idle y, m) →
  ∃ f d, m = Medium f [] ∧ represents_as g shape represents y f d.
Proof.
  intros Hz%DiskMachineShape.formatted_only Hshows%(DiskMachineShape.shows_only D trees g).
  by destruct (DiskMachine.idle_represents _ _ _ _ (only_safe _ _ _ _ _ _ Hsafe) _ _ _ _ _ Hz Hshows)
    as (f&d&->&Hy); exists f, d.
Qed.

(** When it is off, recovery finds a disk of this shape. *)
Lemma shaped_recovers_here n size z0 tr m :
  (∀ f d, recoverable g d f → recovers_within D size n f) →
  DiskMachineShape.formatted_as D trees g z0 →
  shows (DiskMachine.disk_machine D) z0 tr (DiskMachine.Off, m) →
  ∃ f, m = Medium f [] ∧ recovers_within D size n f.
Proof.
  intros Hfinds Hz%DiskMachineShape.formatted_only Hshows%(DiskMachineShape.shows_only D trees g).
  destruct (DiskMachineProgress.off_recoverable _ _ _ _ _ _ _ _ (only_safe _ _ _ _ _ _ Hsafe) Hz Hshows)
    as (f&g'&d&->&->&Hd). exists f. split; [done|by eapply Hfinds].
Qed.
End Shaped.

Section Disks.
Context `{!blocks, !blocks_laws} {torn : tearing block} (trees : nat * nat) (g : geometry).

(** With whole maps, *)
Theorem whole_map_device_replies most z :
  DiskMachineShape.formatted_as proved_programs trees g z →
  device_replies_to_all proved_programs places_for Collect admissible (request_ios g) (change_ios g) most z.
Proof.
  intros Hz. eapply (device_serves_despite_cuts _ (device_blocks g) _ _ _ _ _ _ (maps_end g _ (le_n _))).
  - intros. by eapply shaped_on_device; [apply (maps_safe_only trees g)|..].
  - intros tr m. apply shaped_recovers_here with (1 := maps_safe_only trees g); [|done].
    intros f d Hf. by eapply maps_recover.
Qed.

(** and with trees. *)
Theorem tree_device_replies bits most z :
  DiskMachineShape.formatted_as (tree_programs bits) trees g z →
  device_replies_to_all (tree_programs bits) tree_places_for (T.Keep Collect)
    (tree_admissible bits (tree_device_blocks g trees))
    (tree_request_ios_of trees g bits) (tree_change_ios_of trees g) most z.
Proof.
  intros Hz.
  eapply (device_serves_despite_cuts _ (tree_device_blocks g trees) _ _ _ _ _ _
    (trees_end trees g _ bits (le_n _))).
  - intros. by eapply shaped_on_device; [by apply tree_programs_safe_of|..].
  - intros tr m. eapply shaped_recovers_here; [by apply tree_programs_safe_of| |done].
    intros f d Hf. by eapply tree_recovers.
Qed.
End Disks.
