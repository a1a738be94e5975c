(** Progress of the disk that is served: every request that waits is answered after a bounded number of turns,
on one device and on a leg, with whole maps and with trees.

The scheduler of the queue is [next_job] ([ServedDiskScheduler.v]). For each job the scheduler of the disk
proposes the first free places. Where they are too few, it collects once. Then the job begins, and is refused
if there are still too few. So no request keeps the others waiting, whatever it asks for.

Between two turns requests arrive. On a leg devices fail, and enough members are left ([weather]). As
elsewhere, this holds as long as what programs assume of digests is true. *)
From stdpp Require Import gmap strings relations.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec ProvedDisk ProvedDiskInvariant
  ProvedDiskMaps ProvedDiskAppend ProvedDiskRecovery ProvedDiskRequests ProvedDiskProgress ProvedDiskBounds
  ProvedDiskMachine ProvedDiskRefinement.
From LogDisk Require Import RequestProgress Progress ServedDiskScheduler.
From LogDisk Require Import Devices Leg LegCorrect LegRefine LegProgress LegDiskMachine LegDiskRefinement
  LegDiskShape LegDiskProgress LegDiskGroups.
From LogDisk Require DiskMachine DiskMachineShape DiskMachineProgress.
From LogDisk Require Import ProvedTreeDiskInvariant ProvedTreeDiskRecovery ProvedTreeDiskRequests
  ProvedTreeDiskBounds ProvedTreeDiskTheorem TreeLegDiskProgress.
Import DiskMachine(programs, crash_safe_programs, run_request, run_group, run_upkeep).
Import DiskMachineShape(only, only_safe, represents_as).

Local Notation job := (job nat).

(** ** What is asked of the programs *)

Section Programs.
Context `{!blocks} {torn : tearing} {Y U : Type} (D : programs Y U) (size : nat).
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

(** ** On a leg *)

Section Leg.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing} {Y U : Type} (D : programs Y U).
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
      job_turn (Single id q) (Busy q (Finish (ms, c, (y, r, data))), x, h) [Some [(r, data)]] (Idle y ms c,
        x, h)
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

Definition ios_of_job j : nat :=
  match j with Single _ q => ios q | Together ws => together (length (blocks_of ws.*2)) end.

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

(** The jobs that have begun; and the requests before the one at [i], and this one. *)
Definition turns_begun (on : nat → nat) {Z} (s : server Z) : nat :=
  sum_list (turns_of_job ios together on <$> begun s).
Definition turns_to_reply (on : nat → nat) {Z} (s : server Z) (i : nat) : nat :=
  turns_begun on s + turns_before (turns_for most ios together on) (waiting s) i.

(** The disk [z0] is served: it was idle, after anything that may have happened, then there were any turns. *)
Definition leg_in_service := in_service job_turn (next_job most) (weather count) reached_idle.

(** The scheduler of the queue is [next_job], that of the disk is as above. *)
Definition leg_replies_to_all : Prop :=
  replies_to_all job_turn (next_job most) (weather count) leg_in_service within_sizes
    (turns_begun (ios_on count)) (turns_to_reply (ios_on count)).

Lemma leg_serves_all : leg_replies_to_all.
Proof.
  intros s id q Hs.
  assert (∀ j z, reached_idle z →
    ends_well (weather count) (job_turn j) (ends_as reached_idle any_answer j) (turns j) z) as Hjobs.
  { intros j z Hz. apply reached_job_ends; [done|]. by left. }
  assert (∀ n n', n ≤ n' → ios_on count n ≤ ios_on count n') as Hon.
  { intros n n' Hn. unfold ios_on. by apply Nat.mul_le_mono_r. }
  pose proof (next_job_fair most ios together (ios_on count)
    (write_ios _ _ _ _ _ _ _ _ programs_end) (together_more _ _ _ _ _ _ _ _ programs_end) Hon) as Hfair.
  pose proof (in_service_under_way _ _ _ _ _ _ _ Hjobs reached_idle_weather weather_trans s Hs) as Hway.
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
End Leg.

(** ** On one device *)

Section Device.
Context `{!blocks} {torn : tearing} {Y U : Type} (D : programs Y U) (size : nat).
Context (places_for : Y → nat → option (list nat)) (collecting : U).
Import DiskMachine(control, machine, Idle, Busy, Group, Upkeep, move, disk_machine).
Local Notation machine := (machine Y).
Implicit Types (y : Y) (q : request) (m : medium block) (z : machine) (j : job).

Definition performing_here j y (places : list nat) : control Y :=
  match j with
  | Single _ q => Busy q (run_request D y places q)
  | Together ws => Group ws.*2 (run_group D y places ws.*2)
  end.

(** What the scheduler of the disk does for a job, as on a leg. *)
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

Definition device_in_service := in_service device_turn (next_job most) assumed reached_idle_here.

Definition device_replies_to_all : Prop :=
  replies_to_all device_turn (next_job most) assumed device_in_service within_sizes_here
    (turns_begun ios together (λ n, n)) (turns_to_reply ios together most (λ n, n)).

Lemma device_serves_all : device_replies_to_all.
Proof.
  intros s id q Hs.
  assert (∀ j z, reached_idle_here z →
    ends_well assumed (device_turn j) (ends_as reached_idle_here any_answer j) (turns j) z) as Hjobs.
  { intros j z Hz. apply reached_job_ends_here; [done|]. by left. }
  pose proof (next_job_fair most ios together (λ n, n) (write_ios _ _ _ _ _ _ _ _ programs_end)
    (together_more _ _ _ _ _ _ _ _ programs_end) (λ n n' Hn, Hn)) as Hfair.
  pose proof (in_service_under_way _ _ _ _ _ _ _ Hjobs reached_idle_assumed assumed_trans s Hs) as Hway.
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
End Device.

(** ** The disks *)

Section Shaped.
Context `{!blocks} {torn : tearing} {Y U : Type} (D : programs Y U) (trees : nat * nat) (g : geometry).
Context (shape : Y → geometry) (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).
Context (Hsafe : crash_safe_programs (only D trees g) shape represents recoverable).

(** When nothing is under way, memory and members are a disk of this shape, *)
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

(** or memory and the device are. *)
Lemma shaped_on_device z0 tr y m :
  DiskMachineShape.formatted_as D trees g z0 →
  shows (DiskMachine.disk_machine D) z0 tr (DiskMachine.Idle y, m) →
  ∃ f d, m = Medium f [] ∧ represents_as g shape represents y f d.
Proof.
  intros Hz%DiskMachineShape.formatted_only Hshows%(DiskMachineShape.shows_only D trees g).
  by destruct (DiskMachine.idle_represents _ _ _ _ (only_safe _ _ _ _ _ _ Hsafe) _ _ _ _ _ Hz Hshows)
    as (f&d&->&Hy); exists f, d.
Qed.

(** Programs that format fewer disks are as safe. *)
Lemma safe_only : crash_safe_programs D shape represents recoverable →
  crash_safe_programs (only D trees g) shape represents recoverable.
Proof.
  intros Hall. split; try apply Hall. intros size' g' f y m Hwhole. simpl.
  destruct (decide _) as [[-> ->]|]; [by apply Hall|done].
Qed.
End Shaped.

Section Disks.
Context `{!blocks, !blocks_laws} {torn : tearing} (trees : nat * nat) (g : geometry).

(** I/Os of changes of so many blocks, with whole maps. *)
Definition change_ios (n : nat) : nat := slot_blocks g + n + 6.

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
  - unfold change_ios. lia.
Qed.

(** With trees, from the shape and the size of the trees. *)
Definition tree_change_ios_of (n : nat) : nat := trees.2 + slot_blocks g + 6 + n.
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
  - unfold tree_change_ios_of. lia.
Qed.

(** With whole maps, *)
Lemma maps_safe_only :
  crash_safe_programs (only proved_programs trees g) ProvedDisk.shape represents recoverable.
Proof. apply safe_only, proved_programs_safe. Qed.

Theorem whole_map_leg_replies {C} `{!cutting block C} size count most z {laws : cutting_laws count} :
  formatted_as proved_programs count trees g size z → device_blocks g ≤ size →
  leg_replies_to_all proved_programs size count places_for Collect admissible (request_ios g) change_ios
    most z.
Proof.
  intros Hz Hsize. eapply (leg_serves_all _ _ _ _ _ _ _ _ _ (maps_end size Hsize)).
  intros. by eapply shaped_on_leg; [apply maps_safe_only|..].
Qed.

Theorem whole_map_device_replies most z :
  DiskMachineShape.formatted_as proved_programs trees g z →
  device_replies_to_all proved_programs places_for Collect admissible (request_ios g) change_ios most z.
Proof.
  intros Hz. eapply (device_serves_all _ (device_blocks g) _ _ _ _ _ _ (maps_end _ (le_n _))).
  intros. by eapply shaped_on_device; [apply maps_safe_only|..].
Qed.

(** and with trees. *)
Theorem tree_leg_replies {C} `{!cutting block C} bits size count most z {laws : cutting_laws count} :
  formatted_as (tree_programs bits) count trees g size z → tree_device_blocks g trees ≤ size →
  leg_replies_to_all (tree_programs bits) size count tree_places_for (T.Keep Collect)
    (tree_admissible bits size) (tree_request_ios_of bits) tree_change_ios_of most z.
Proof.
  intros Hz Hsize. eapply (leg_serves_all _ _ _ _ _ _ _ _ _ (trees_end size bits Hsize)).
  intros. by eapply shaped_on_leg; [by apply tree_programs_safe_of|..].
Qed.

Theorem tree_device_replies bits most z :
  DiskMachineShape.formatted_as (tree_programs bits) trees g z →
  device_replies_to_all (tree_programs bits) tree_places_for (T.Keep Collect)
    (tree_admissible bits (tree_device_blocks g trees))
    (tree_request_ios_of bits) tree_change_ios_of most z.
Proof.
  intros Hz.
  eapply (device_serves_all _ (tree_device_blocks g trees) _ _ _ _ _ _ (trees_end _ bits (le_n _))).
  intros. by eapply shaped_on_device; [by apply tree_programs_safe_of|..].
Qed.
End Disks.
