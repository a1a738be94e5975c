(** Progress of the disk that is served, on a leg: every request that waits is answered after a bounded number
of turns, with whole maps and with trees, as on one device ([ServedDiskProgress.v]), while devices fail
between any two turns and enough members are left ([weather]), and however often the power failed before. *)
From stdpp Require Import gmap strings relations.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec ProvedDisk ProvedDiskInvariant
  ProvedDiskRequests ProvedDiskBounds ProvedDiskMachine ProvedDiskRefinement ProvedDiskAnswers.
From LogDisk Require Import ProvedTreeDiskInvariant ProvedTreeDiskRequests ProvedTreeDiskBounds
  ProvedTreeDiskTheorem ProvedTreeDiskAnswers.
From LogDisk Require Import RequestProgress Progress ServedDiskScheduler ServedDiskPower ServedDiskPrograms.
From LogDisk Require Import Devices Leg LegCorrect LegRefine LegProgress LegDiskMachine LegDiskRefinement
  LegDiskShape LegDiskProgress.
From LogDisk Require DiskMachine DiskMachineShape.
Import DiskMachine(programs, crash_safe_programs, run_request, run_group, run_upkeep).
Import DiskMachineShape(only, only_safe, represents_as).

Local Notation job := (job nat).

Section Leg.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type} (D : programs Y U).
Variables (size count : nat).
Context (places_for : Y → nat → option (list nat)) (collecting : U).
Local Notation machine := (machine C Y).
Local Notation control := (control C Y).
Implicit Types (x : array C) (y : Y) (q : request) (ms h : list nat) (z : machine) (j : job).

(** A job at these places. *)
Definition performing j y ms (c : bool) (places : list nat) : control :=
  match j with
  | Single _ q => Busy q (on_leg size ms c (run_request D y places q))
  | Together ws => Group ws.*2 (on_leg size ms c (run_group D y places ws.*2))
  end.

(** What the scheduler of the disk does for a job. *)
Inductive job_turn : job → machine → list outcome → machine → Prop :=
  | Begins j y ms c places x h :
      places_for y (blocks_of_job j) = Some places →
      job_turn j (Idle y ms c, x, h) [] (performing j y ms c places, x, h)
  | CollectsOnce j y ms c x h :
      places_for y (blocks_of_job j) = None →
      job_turn j (Idle y ms c, x, h) [] (Upkeep (on_leg size ms c (run_upkeep D y collecting)), x, h)
  | BeginsCollected j y ms c x h :    (* with whatever places there are *)
      job_turn j (Upkeep (Finish (ms, c, y)), x, h) []
        (performing j y ms c (default [] (places_for y (blocks_of_job j))), x, h)
  | PerformsOne id q p x p' x' h :
      array_io p x p' x' → job_turn (Single id q) (Busy q p, x, h) [] (Busy q p', x', h)
  | PerformsTogether ws p x p' x' h :
      array_io p x p' x' → job_turn (Together ws) (Group ws.*2 p, x, h) [] (Group ws.*2 p', x', h)
  | EndsOne id q ms c y r data x h :
      job_turn (Single id q) (Busy q (Finish (ms, c, (y, r, data))), x, h) [Some [(r, data)]]
        (Idle y ms c, x, h)
  | EndsTogether ws ms c y x h :
      job_turn (Together ws) (Group ws.*2 (Finish (ms, c, (y, true))), x, h)
        [Some (replicate (length ws) (Ok, []))] (Idle y ms c, x, h)
  | EndsRefused ws ms c y x h :
      job_turn (Together ws) (Group ws.*2 (Finish (ms, c, (y, false))), x, h) [None] (Idle y ms c, x, h).

(** Each turn is one or two moves of the machine. *)
Lemma job_turn_lives j z os z' : job_turn j z os z' → ∃ tr, lives D size count z tr z'.
Proof.
  assert (∀ y ms c places x h, lives D size count (Idle y ms c, x, h) [] (performing j y ms c places, x, h))
    as Hperform.
  { intros y ms c places x h. apply lives_one. destruct j; by constructor. }
  destruct 1; try (eexists; apply lives_one; by econstructor); [by eexists|].
  eexists. eapply lives_step; [by constructor|apply Hperform].
Qed.

Definition is_idle z : Prop := ∃ y ms c x h, z = (Idle y ms c, x, h).

Context (represents : Y → contents block → disk block → Prop).
Context (admissible : Y → request → Prop) (ios : request → nat) (together : nat → nat).
Context {laws : cutting_laws count}
  (programs_end : ends_any_request D size places_for collecting represents admissible ios together).
Local Notation turns := (turns_to_end ios together (ios_on count)).
Local Notation ios_of_job := (ios_of_job ios together).

Lemma proper_length ms : proper count ms → length ms ≤ count.
Proof.
  intros [Hdup Hbound]. rewrite <-(seq_length count 0). apply submseteq_length, NoDup_submseteq; [done|].
  intros i Hi. apply elem_of_seq. pose proof (Hbound i Hi). lia.
Qed.

Lemma performing_ends (well : answer → Prop) j y f d ms c x h places :
  represents y f d → each_up ms (reads_as size f) x → members x = ms → proper count ms →
  (∀ id q, j = Single id q →
    (∀ r, well r) ∨ admissible y q ∧ planned places_for y q = Some places ∧ well Ok) →
  ends_well (weather count) (job_turn j) (ends_as is_idle well j) (ios_on count (ios_of_job j) + 1)
    (performing j y ms c places, x, h).
Proof.
  intros Hy Hx Hms Hproper Hwell. destruct j as [id q|ws]; simpl.
  - apply (machine_ends count (job_turn (Single id q)) _ (Busy q) _ _ (λ r _, well r.2.1.2));
      [done| | | |lia|].
    + intros. by eapply PerformsOne.
    + intros p x2 h2 es z2 Hstep. destruct p; [done|..]; inversion Hstep; simplify_eq; eauto.
    + intros [[ms2 c2] [[y2 r] data]] x2 h2 Hr [[c3 x3] h3] [Hc3 H3]%weather_tolerable. simpl in Hc3, H3.
      subst c3. specialize (Hr _ H3). simpl in Hr. split; [do 2 eexists; by eapply EndsOne|].
      intros es z2 Hstep. left. inversion Hstep; simplify_eq.
      * match goal with H : array_io (Finish _) _ _ _ |- _ => inversion H end.
      * split; [by do 5 eexists|by do 2 eexists].
    + eapply (ends_on_leg size count _ _ _ _ (Medium f []));
        [by eapply any_within|done..|by apply proper_length|].
      intros x2 ms2 c2 Hgranted _. simpl. destruct (Hwell id q eq_refl) as [?|(Hq&Hplan&?)]; [done|].
      by rewrite (any_answered _ _ _ _ _ _ _ _ programs_end y f d places q).
  - apply (machine_ends count (job_turn (Together ws)) _ (Group ws.*2) _ _ (λ _ _, True));
      [done| | | |lia|].
    + intros. by eapply PerformsTogether.
    + intros p x2 h2 es z2 Hstep. destruct p; [done|..]; inversion Hstep; simplify_eq; eauto.
    + intros [[ms2 c2] [y2 all]] x2 h2 _ [[c3 x3] h3] [Hc3 H3]%weather_tolerable. simpl in Hc3, H3.
      subst c3. split; [destruct all; do 2 eexists; [by apply EndsTogether|by apply EndsRefused]|].
      intros es z2 Hstep. left. inversion Hstep; simplify_eq.
      * match goal with H : array_io (Finish _) _ _ _ |- _ => inversion H end.
      * split; [by do 5 eexists|]. by right.
      * split; [by do 5 eexists|by left].
    + eapply (ends_on_leg size count _ _ _ _ (Medium f [])); [by eapply any_group_within|done..| |done].
      by apply proper_length.
Qed.

Lemma idle_job_ends (well : answer → Prop) j y f d ms c x h :
  represents y f d → each_up ms (reads_as size f) x → members x = ms → proper count ms →
  (∀ id q, j = Single id q → (∀ r, well r) ∨ admissible y q ∧ well Ok) →
  ends_well (weather count) (job_turn j) (ends_as is_idle well j) (turns j) (Idle y ms c, x, h).
Proof.
  intros Hy Hx Hms Hproper Hwell.
  assert (turns j = 3 + ios_on count (ios_of_job j)) as -> by by destruct j.
  intros [[c1 x1] h1] [Hc [H1 _]]%weather_tolerable. simpl in Hc, H1. subst c1.
  apply (each_up_fails _ _ _ _ H1) in Hx. destruct H1 as (Hm1&_&_). rewrite Hms in Hm1.
  destruct (places_for y (blocks_of_job j)) as [places|] eqn:Hplan.
  { split; [do 2 eexists; by apply Begins|]. intros os z Hz. right.
    inversion Hz; simplify_eq; try (by destruct j). split; [done|].
    eapply ends_well_more; [|eapply performing_ends; try done]; [lia|].
    intros id q ->. destruct (Hwell id q eq_refl) as [?|[? ?]]; [by left|by right]. }
  destruct (any_collected _ _ _ _ _ _ _ _ programs_end y f d Hy) as (y'&Hcollect&Hy'&Hadm).
  split; [do 2 eexists; by apply CollectsOnce|]. intros os z Hz. right.
  inversion Hz; simplify_eq. split; [done|]. rewrite Hcollect. cbn [on_leg].
  intros [[c2 x2] h2] [Hc [H2 _]]%weather_tolerable. simpl in Hc, H2. subst c2.
  apply (each_up_fails _ _ _ _ H2) in Hx. destruct H2 as (Hm2&_&_). rewrite Hm1 in Hm2.
  split; [do 2 eexists; apply BeginsCollected|]. intros os z Hz2. right. inversion Hz2; simplify_eq.
  split; [done|]. eapply ends_well_more; [|eapply performing_ends; try done]; [lia|].
  intros id q ->. destruct (Hwell id q eq_refl) as [?|[[Hq' [places Hplaces]]%Hadm Hok]]; [by left|right].
  split_and!; [done| |done]. unfold planned in *. simpl. by rewrite Hplaces.
Qed.

(** ** Every request that waits *)

Variables (most : nat) (z0 : machine).
Context (represented : ∀ tr y ms c x h, lives D size count z0 tr (Idle y ms c, x, h) →
  ∃ f d, represents y f d ∧ each_up ms (reads_as size f) x ∧ members x = ms ∧ proper count ms).

(** Nothing is under way, after anything that may have happened. *)
Definition reached_idle z : Prop := (∃ tr, lives D size count z0 tr z) ∧ is_idle z.

Lemma weather_lives z z1 : weather count z z1 → ∃ tr, lives D size count z tr z1.
Proof.
  intros [Hz _]. induction Hz as [z|z z1 z2 Hone _ [tr IH]]; [by eexists; constructor|].
  destruct (one_fails_is_move D size count _ _ Hone) as [es Hes]. eexists. by eapply lives_step.
Qed.

Lemma weather_idle z z1 : is_idle z → weather count z z1 → is_idle z1.
Proof.
  intros (y&ms&c&x&h&->) [Hz _]%weather_tolerable. destruct z1 as [[c1 x1] h1]. simpl in Hz. subst c1.
  by do 5 eexists.
Qed.

Lemma reached_idle_weather z z1 : reached_idle z → weather count z z1 → reached_idle z1.
Proof.
  intros [[tr Hz] Hidle] H1. destruct (weather_lives _ _ H1) as [tr1 Htr1].
  split; [eexists; by eapply lives_app|by eapply weather_idle].
Qed.

Lemma weather_trans z z1 z2 : weather count z z1 → weather count z1 z2 → weather count z z2.
Proof. intros [H1 _] (H2&Henough&Hagreed). split; [by etrans|done]. Qed.

Lemma reached_job_ends (well : answer → Prop) j z : reached_idle z →
  (∀ id q, j = Single id q → (∀ r, well r) ∨
    well Ok ∧ ∀ y ms c x h, z = (Idle y ms c, x, h) → admissible y q) →
  ends_well (weather count) (job_turn j) (ends_as reached_idle well j) (turns j) z.
Proof.
  intros [[tr Hz] (y&ms&c&x&h&->)] Hwell.
  apply (ends_well_keeping _ _ (ends_as is_idle well j) _ (λ z, ∃ tr, lives D size count z0 tr z)).
  - intros z1 z2 [tr1 H1] [tr2 H2]%weather_lives. eexists. by eapply lives_app.
  - intros z1 es z2 [tr1 H1] [tr2 H2]%job_turn_lives. eexists. by eapply lives_app.
  - intros es z1 [Hidle Hend] Hreached. by split.
  - by eexists.
  - destruct (represented _ _ _ _ _ _ Hz) as (f&d&Hy&Hx&Hms&Hproper).
    apply (idle_job_ends well j y f d); try done. intros id q Hj.
    destruct (Hwell id q Hj) as [?|[? Hq]]; [by left|right]. split; [by eapply Hq|done].
Qed.

(** When the disk begins the request [q] alone, [q] is within the stated sizes. *)
Definition within_sizes (id : nat) q (s : server machine) : Prop :=
  ∀ js y ms c x h, begun s = Single id q :: js → disk_behind s = (Idle y ms c, x, h) → admissible y q.

(** ** Power cuts *)

Definition is_open z : bool := match z.1.1 with Off | Lost | Recovery _ _ => false | _ => true end.
Definition moves_to z z' : Prop := ∃ es, move D size count z es z'.
Definition is_off z : Prop := z.1.1 = Off.

(** The power fails. While it is off, devices fail and come back. *)
Definition power_fails z z' : Prop := ¬ is_off z ∧
  ∃ z1, moves_to z z1 ∧ is_off z1 ∧ rtc (λ a b, moves_to a b ∧ is_off b) z1 z'.

(** It is off, or too few members answered, after anything that may have happened. *)
Definition reached_closed z : Prop := (∃ tr, lives D size count z0 tr z) ∧ (z.1.1 = Off ∨ z.1.1 = Lost).

Lemma power_fails_off z z' : power_fails z z' → is_off z' ∧ ∃ tr, lives D size count z tr z'.
Proof.
  intros (_&z1&[es Hes]&Hoff&Hmore).
  assert (is_off z' ∧ ∃ tr, lives D size count z1 tr z') as [? [tr Htr]].
  { clear Hes. induction Hmore as [z1|z1 z2 z3 [[es2 H2] Hoff2] _ IH].
    { split; [done|]. eexists. constructor. }
    destruct (IH Hoff2) as [? [tr Htr]].
    split; [done|]. eexists. by eapply lives_step. }
  split; [done|]. eexists. by eapply lives_step.
Qed.

(** [z0] is a disk; anything may have happened to it. It is served while nothing is under way, or is opened
first; then there were any turns and any power cuts. *)
Definition leg_in_power :=
  in_power job_turn (next_job most) is_open (recovery_turn D size) (weather count) power_fails reached_idle
    reached_closed.

(** The scheduler of the queue is [next_job], that of the disk is as above. *)
Definition leg_replies_to_all : Prop :=
  replies_despite_cuts job_turn (next_job most) is_open (recovery_turn D size) (weather count) power_fails
    reached_idle reached_closed (turns_to_recover size count (ios DoRestart)) within_sizes
    (turns_begun ios together (ios_on count)) (turns_to_reply ios together most (ios_on count)).

Local Notation under_way := (under_way job_turn (weather count) reached_idle ios together (ios_on count)).

Lemma all_jobs_end j z : reached_idle z →
  ends_well (weather count) (job_turn j) (ends_as reached_idle any_answer j) (turns j) z.
Proof. intros Hz. apply reached_job_ends; [done|]. by left. Qed.

Lemma leg_serves_all :
  replies_to_all job_turn (next_job most) (weather count) under_way within_sizes
    (turns_begun ios together (ios_on count)) (turns_to_reply ios together most (ios_on count)).
Proof.
  intros s id q Hway. pose proof all_jobs_end as Hjobs.
  assert (∀ n n', n ≤ n' → ios_on count n ≤ ios_on count n') as Hon.
  { intros n n' Hn. unfold ios_on. by apply Nat.mul_le_mono_r. }
  pose proof (next_job_fair most ios together (ios_on count)
    (write_ios _ _ _ _ _ _ _ _ programs_end) (together_more _ _ _ _ _ _ _ _ programs_end) Hon) as Hfair.
  assert (∀ z z1 (js : list job) (w : list (nat * request)) (a : list reply), reached_idle z →
    weather count z z1 → (True : Prop) →
    ends_well (weather count) (job_turn (Single id q)) (ends_as reached_idle any_answer (Single id q))
      (turns_alone ios (ios_on count) q) z) as Hmine.
  { intros z z1 js w a Hz _ _. by apply (Hjobs (Single id q)). }
  split; [intros i Hi; split|intros Hin; by eapply begun_under_way_ends];
    (eapply under_way_ends; [exact Hjobs| | |exact reached_idle_weather|exact Hfair|exact Hway|exact Hi]).
  - exact Hmine.
  - done.
  - intros z z1 js w a Hz Hz1 Hwithin. apply (reached_job_ends _ (Single id q)); [done|].
    intros id' q' [= <- <-]. right. split; [done|]. intros y ms c x h ->.
    apply weather_tolerable in Hz1 as [Hc _]. destruct z1 as [[c1 x1] h1]. simpl in Hc. subst c1.
    by eapply Hwithin.
  - done.
Qed.

(** What may be left on the devices is what recovery finds. *)
Context (recovers : ∀ tr c x h, lives D size count z0 tr (c, x, h) → c = Off ∨ c = Lost →
  ∃ T M, holds size count T M x ∧ ∀ f, may_leave M f → recovers_within D size (ios DoRestart) f).

Lemma reached_recovery_ends z : reached_closed z →
  ends_well (weather count) (recovery_turn D size) (λ _, reached_idle)
    (turns_to_recover size count (ios DoRestart)) z.
Proof.
  destruct z as [[c x] h]. intros [[tr Hz] Hc]. destruct (recovers _ _ _ _ Hz Hc) as (T&M&Hx&HM).
  apply (ends_well_keeping _ _ open_again _ (λ z, ∃ tr, lives D size count z0 tr z)).
  - intros z1 z2 [tr1 H1] [tr2 H2]%weather_lives. eexists. by eapply lives_app.
  - intros z1 es z2 [tr1 H1] H2. eexists. eapply lives_app; [exact H1|].
    by apply lives_one, recovery_turn_is_move.
  - intros es z1 (y&ms&c1&x1&->) Hreached. split; [done|by do 5 eexists].
  - by eexists.
  - eapply ends_well_more; [|by eapply (recovery_ends D size count (ios DoRestart) c T M x h Hc Hx)].
    pose proof (proper_length _ (holds_proper _ _ _ _ _ Hx)). unfold turns_to_recover, opening_ios, ios_on.
    repeat (apply Nat.add_le_mono || apply Nat.mul_le_mono); lia.
Qed.

Lemma leg_serves_despite_cuts : leg_replies_to_all.
Proof.
  apply (all_replies_despite_cuts _ _ _ _ _ _ _ _ _) with (reached := λ z, ∃ tr, lives D size count z0 tr z)
    (way := under_way).
  - intros j z os z'. by destruct 1; try destruct j.
  - intros z es z'. by destruct 1.
  - intros z z' [Hc _]%weather_tolerable. unfold is_open. by rewrite Hc.
  - intros z [Hz (y&ms&c&x&h&->)]. by split.
  - intros z [Hz Hc]. split; [|done]. unfold is_open. by destruct Hc as [->| ->].
  - intros z1 z2 [tr1 H1] [tr2 H2]%weather_lives. eexists. by eapply lives_app.
  - intros j z1 es z2 [tr1 H1] [tr2 H2]%job_turn_lives. eexists. by eapply lives_app.
  - intros z1 es z2 [tr1 H1] H2. eexists. eapply lives_app; [exact H1|].
    by apply lives_one, recovery_turn_is_move.
  - intros z es z' Hturn Hz Ho. split; [done|]. destruct Hturn; try done. by do 5 eexists.
  - intros z1 z2 [tr1 H1] [Hoff [tr2 H2]]%power_fails_off. split; [|by left]. eexists. by eapply lives_app.
  - exact weather_trans.
  - exact reached_recovery_ends.
  - intros z w a Hz. by apply ready_under_way; [apply all_jobs_end|].
  - intros s s1. by apply under_way_weather; [apply reached_idle_weather|apply weather_trans].
  - intros s s1 es s2. by apply under_way_turn;
      [apply all_jobs_end|apply reached_idle_weather|apply weather_trans].
  - apply leg_serves_all.
  - intros z z' w w' a a' i Hi [more ->]. unfold turns_to_reply, turns_begun, turns_before. simpl.
    by rewrite take_app_le by lia.
Qed.
End Leg.

(** ** The disks *)

Section Shaped.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : programs Y U) (trees : nat * nat) (g : geometry).
Context (shape : Y → geometry) (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).
Context (Hsafe : crash_safe_programs (only D trees g) shape represents recoverable).

(** When nothing is under way, memory and members are a disk of this shape. *)
Lemma shaped_on_leg {C} `{!cutting block C} size count {laws : cutting_laws count} z0 tr y ms c x h :
  formatted_as D count trees g size z0 → lives D size count z0 tr (Idle y ms c, x, h) →
  ∃ f d, represents_as g shape represents y f d ∧ each_up ms (reads_as size f) x ∧ members x = ms ∧
    proper count ms.
Proof.
  intros Hz%formatted_only Hlives%(lives_only D count trees g).
  destruct (reached_related _ size count _ _ _ (only_safe _ _ _ _ _ _ Hsafe) _ _ _ _ Hz Hlives)
    as (v&S&Hserves&_).
  destruct Hserves as (f&d&_&[Hholds Hx]&Hms&_&Hy). exists f, d. rewrite <-Hms.
  split_and!; [done|exact Hx|done|by eapply holds_proper].
Qed.

(** When it is off, or too few members answered, recovery finds a disk of this shape. *)
Lemma shaped_recovers {C} `{!cutting block C} size count {laws : cutting_laws count} n z0 tr c x h :
  (∀ f d, recoverable g d f → recovers_within D size n f) →
  formatted_as D count trees g size z0 → lives D size count z0 tr (c, x, h) → c = Off ∨ c = Lost →
  ∃ T M, holds size count T M x ∧ ∀ f, may_leave M f → recovers_within D size n f.
Proof.
  intros Hfinds Hz%formatted_only Hlives%(lives_only D count trees g) Hc.
  destruct (reached_recoverable _ size count _ _ _ _ _ _ _ _ _ (only_safe _ _ _ _ _ _ Hsafe) Hz Hlives Hc)
    as (T&M&g'&Hx&HM). exists T, M. split; [done|].
  intros f Hf. destruct (HM f Hf) as (d&->&Hd). by eapply Hfinds.
Qed.
End Shaped.

Section Disks.
Context `{!blocks, !blocks_laws} {torn : tearing block} (trees : nat * nat) (g : geometry).

(** With whole maps, *)
Theorem whole_map_leg_replies {C} `{!cutting block C} size count most z {laws : cutting_laws count} :
  formatted_as proved_programs count trees g size z → device_blocks g ≤ size →
  leg_replies_to_all proved_programs size count places_for Collect admissible (request_ios g) (change_ios g)
    most z.
Proof.
  intros Hz Hsize. eapply (leg_serves_despite_cuts _ _ _ _ _ _ _ _ _ (maps_end g size Hsize)).
  - intros. by eapply shaped_on_leg; [apply (maps_safe_only trees g)|..].
  - intros tr c x h Hlives Hc.
    apply (shaped_recovers _ trees g _ _ _ (maps_safe_only trees g) size count _ z tr c x h); [|done..].
    intros f d Hf. by eapply maps_recover.
Qed.

(** and with trees. *)
Theorem tree_leg_replies {C} `{!cutting block C} bits size count most z {laws : cutting_laws count} :
  formatted_as (tree_programs bits) count trees g size z → tree_device_blocks g trees ≤ size →
  leg_replies_to_all (tree_programs bits) size count tree_places_for (T.Keep Collect)
    (tree_admissible bits size) (tree_request_ios_of trees g bits) (tree_change_ios_of trees g) most z.
Proof.
  intros Hz Hsize. eapply (leg_serves_despite_cuts _ _ _ _ _ _ _ _ _ (trees_end trees g size bits Hsize)).
  - intros. by eapply shaped_on_leg; [by apply tree_programs_safe_of|..].
  - intros tr c x h Hlives Hc. apply (shaped_recovers _ trees g _ _ _
      (tree_programs_safe_of bits trees g ltac:(done)) size count _ z tr c x h); [|done..].
    intros f d Hf. by eapply tree_recovers.
Qed.
End Disks.
