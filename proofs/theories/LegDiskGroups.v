(** Progress of several writes at once, on a leg: as long as enough members answer they are performed after a
bounded number of turns, while other devices fail between any two I/Os. The scheduler is that of
[LegDiskProgress.v]. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec ProvedDisk ProvedDiskInvariant
  ProvedDiskMaps ProvedDiskAppend ProvedDiskRecovery ProvedDiskRequests ProvedDiskProgress
  ProvedDiskBounds ProvedDiskAnswers Devices Leg LegCorrect LegRefine RequestProgress LegProgress.
From LogDisk Require Import ProvedDiskMachine ProvedDiskRefinement LegDiskMachine LegDiskRefinement Progress
  LegDiskProgress.
Import DiskMachine(programs, crash_safe_programs, run_group, run_upkeep).

(** ** Under a scheduler that is named *)

Section Groups.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type} (D : programs Y U).
Variables (size count : nat).
Context (places_for : Y → nat → option (list nat)) (collecting : U).
Local Notation machine := (machine C Y).
Implicit Types (x : array C) (y : Y) (ms h : list nat) (ws : list (nat * list block)).

Local Notation planned_group := (planned_group places_for).

(** What the scheduler does with the writes [ws]. *)
Inductive group_turn ws : machine → list (entry block) → machine → Prop :=
  | CollectsFirst y ms c x h :
      planned_group y ws = None →
      group_turn ws (Idle y ms c, x, h) [] (Upkeep (on_leg size ms c (run_upkeep D y collecting)), x, h)
  | CollectedFirst ms c y x h : group_turn ws (Upkeep (Finish (ms, c, y)), x, h) [] (Idle y ms c, x, h)
  | CallsAll y ms c places x h :
      planned_group y ws = Some places →
      group_turn ws (Idle y ms c, x, h) [] (Group ws (on_leg size ms c (run_group D y places ws)), x, h)
  | PerformsAll p x p' x' h : array_io p x p' x' → group_turn ws (Group ws p, x, h) [] (Group ws p', x', h)
  | AnswersAll ms c y x h :
      group_turn ws (Group ws (Finish (ms, c, (y, true))), x, h) (Event <$> writes_shown ws Ok)
        (Idle y ms c, x, h).

Lemma group_turn_is_move ws z es z' : group_turn ws z es z' → move D size count z es z'.
Proof. destruct 1; by constructor. Qed.

Definition group_ok ws (es : list (entry block)) (_ : machine) : Prop := es = Event <$> writes_shown ws Ok.

(** What is asked of the programs, as for one request ([RequestProgress.v]). *)
Context (shape : Y → geometry) (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).
Context (admissible : Y → list (nat * list block) → Prop) (ios : Y → list (nat * list block) → nat).

Context {laws : cutting_laws count}
  (performs : performs_admissible D size places_for collecting represents admissible ios).

Lemma planned_group_ends y f d ms c x h ws places :
  represents y f d → admissible y ws → planned_group y ws = Some places →
  each_up ms (reads_as size f) x → members x = ms → proper count ms →
  ends_well (weather count) (group_turn ws) (group_ok ws) (S (ios_on (length ms) (ios y ws) + 1))
    (Idle y ms c, x, h).
Proof.
  intros Hy Hws Hplan Hx Hms Hproper [[c1 x1] h1] [Hc [H1 _]]%weather_tolerable.
  simpl in Hc, H1. subst c1.
  apply (each_up_fails _ _ _ _ H1) in Hx. destruct H1 as (Hm1&_&_). rewrite Hms in Hm1.
  split; [do 2 eexists; by apply CallsAll|]. intros es z Hz. right. inversion Hz; simplify_eq. split; [done|].
  apply (machine_ends _ (group_turn ws) (group_ok ws) (Group ws) _ _ (λ r _, r.2.2 = true));
    [done| | | |lia|].
  - intros. by apply PerformsAll.
  - intros p x2 h2 es z2 Hstep. destruct p; [done|..]; inversion Hstep; subst; eauto.
  - intros [[ms2 c2] [y2 all]] x2 h2 Hr [[c3 x3] h3] [Hc3 H3]%weather_tolerable. simpl in Hc3, H3. subst c3.
    specialize (Hr _ H3). simpl in Hr. subst all. split; [do 2 eexists; by apply AnswersAll|].
    intros es z2 Hstep. left. inversion Hstep; subst; [|done].
    match goal with H : array_io (Finish _) _ _ _ |- _ => inversion H end.
  - eapply (ends_on_leg size count _ _ _ _ (Medium f [])); [|done..|].
    + by eapply group_within.
    + intros x2 ms2 c2 _ _. by eapply group_performed.
Qed.

Lemma group_ends_well y f d ms c x h ws :
  represents y f d → admissible y ws → each_up ms (reads_as size f) x → members x = ms → proper count ms →
  ends_well (weather count) (group_turn ws) (group_ok ws) (turns_of (length ms) (ios y ws)) (Idle y ms c,
    x, h).
Proof.
  intros Hy Hws Hx Hms Hproper. unfold turns_of. destruct (planned_group y ws) as [places|] eqn:Hplan.
  { eapply ends_well_more; [|by eapply planned_group_ends]. lia. }
  destruct (group_collected _ _ _ _ _ _ _ performs y f d ws Hy Hws Hplan)
    as (y'&Hcollect&Hy'&Hws'&[places Hplaces]&Hios).
  intros [[c1 x1] h1] [Hc [H1 _]]%weather_tolerable. simpl in Hc, H1. subst c1.
  apply (each_up_fails _ _ _ _ H1) in Hx. destruct H1 as (Hm1&_&_). rewrite Hms in Hm1.
  split; [do 2 eexists; by apply CollectsFirst|]. intros es z Hz. right. inversion Hz; simplify_eq.
  split; [done|]. rewrite Hcollect. cbn [on_leg].
  intros [[c2 x2] h2] [Hc [H2 _]]%weather_tolerable. simpl in Hc, H2. subst c2.
  apply (each_up_fails _ _ _ _ H2) in Hx. destruct H2 as (Hm2&_&_). rewrite Hm1 in Hm2.
  split; [do 2 eexists; apply CollectedFirst|]. intros es z Hz2. right. inversion Hz2; simplify_eq.
  split; [done|]. eapply ends_well_more; [|by eapply (planned_group_ends y')]. rewrite Hios. lia.
Qed.

(** In every state that is reached. *)
Theorem groups_are_performed n z tr y ms c x h ws :
  crash_safe_programs D shape represents recoverable →
  formatted D size count n z → lives D size count z tr (Idle y ms c, x, h) → admissible y ws →
  ends_well (weather count) (group_turn ws) (group_ok ws) (turns_of (length ms) (ios y ws)) (Idle y ms c,
    x, h).
Proof.
  intros Hsafe Hz Hlives Hws.
  destruct (reached_related D size count _ _ _ Hsafe _ _ _ _ Hz Hlives) as (v&S&Hserves&_).
  destruct Hserves as (f&d&_&[Hholds Hreads]&<-&_&Hy). eapply group_ends_well; try done.
  by eapply holds_proper.
Qed.
End Groups.

(** ** The disk with whole maps *)

Section Maps.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block}.
Variables (size count : nat).
Local Notation D := proved_programs.
Implicit Types (x : array C) (y : memory) (ms h : list nat) (ws : list (nat * list block)).

Context `{!blocks_laws} {laws : cutting_laws count}.

Theorem whole_map_groups_are_performed n z tr y ms c x h ws :
  formatted D size count n z → lives D size count z tr (Idle y ms c, x, h) →
  device_blocks (shape y) ≤ size → admissible_group y ws →
  ends_well (weather count) (group_turn D size places_for Collect ws) (group_ok ws)
    (turns_of (length ms) (group_ios (shape y) ws)) (Idle y ms c, x, h).
Proof.
  intros Hz Hlives Hsize Hws.
  apply (groups_are_performed D size count places_for Collect shape represents recoverable _
    (λ y, group_ios (shape y)) (maps_perform size) n z tr); [apply proved_programs_safe|done|done|by split].
Qed.
End Maps.
