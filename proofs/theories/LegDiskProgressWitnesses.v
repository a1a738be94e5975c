(** What progress needs, computed on mirrors: devices that are too small block the disk, one that has no
snapshot left refuses, and while no member answers recovery does not end. *)
From stdpp Require Import gmap strings relations.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec ByteBlocks ProvedDisk ProvedDiskRequests
  ProvedDiskMachine ProvedDiskExecution ProvedDiskProgress ProvedDiskBounds ProvedTreeDiskInvariant
  ProvedTreeDiskBounds ProvedTreeDiskTheorem Devices Leg LegCorrect LegCode RequestProgress LegProgress
  LegDiskMachine LegDiskExecution LegDiskUpkeep ProvedDiskAnswers
  ProvedTreeDiskAnswers LegDiskProgress LegDiskGroups TreeLegDiskProgress Progress.
Import DiskMachine(programs, run_request, run_upkeep, run_format).
Local Open Scope string_scope.

Local Instance mirrored `{blocks} : cutting block block := mirrors zero_block.
#[local] Existing Instance untorn.

Section Calm.
Context `{!blocks} {Y U : Type} (D : programs Y U) (places_for : Y → nat →
    option (list nat)) (collecting : U).
Local Notation machine := (machine block Y).
Implicit Types x : array block.

(** A program as it goes while nothing fails; nothing, where [calm] is not true on the way. *)
Fixpoint calmly {A} (calm : array block → bool) (p : array_program block A) x :
    option (array_program block A * array block) :=
  if calm x then
    match p with
    | Finish _ | Stop | PastEnd => Some (p, x)
    | ReadFrom i a k => calmly calm (k (answer_of_read x i a)) x
    | WriteTo i a b k =>
        if up (device_at x i) then calmly calm (k true) (written x i a b) else calmly calm (k false) x
    | FlushOf i k =>
        if up (device_at x i) then calmly calm (k true) (flushed x i) else calmly calm (k false) x
    | SetMembers ms c k => calmly calm k (Array (device_at x) ms c)
    | AssumeThat φ k => if φ then calmly calm k x else None
    end
  else None.

Lemma calmly_ends {A E} (weather : machine → machine → Prop) (step : machine → list E → machine → Prop) good
    (under_way : array_program block A → control block Y) calm p x p' x' (h : list nat) n :
  (∀ c x, calm x = true → all_agreed c → weather (c, x, h) (c, x, h)) →
  (∀ p x p' x', array_io p x p' x' → step (under_way p, x, h) [] (under_way p', x', h)) →
  (∀ p x, ¬ good [] (under_way p, x, h)) → (∀ p, agreed p → all_agreed (under_way p)) →
  calmly calm p x = Some (p', x') → ends_well weather step good n (under_way p, x, h) →
  calm x' = true ∧ ∃ n', ends_well weather step good n' (under_way p', x', h).
Proof.
  intros Hcalm Hgo Hno Hagreed. assert (∀ n p x p' x', ends_well weather step good n (under_way p, x, h) →
    calm x = true → agreed p → array_io p x p' x' → ∃ n', ends_well weather step good n' (under_way p', x',
      h)) as Hone.
  { clear -Hcalm Hgo Hno Hagreed. intros [|n] p x p' x' Hends Hx Hp Hio; [done|].
    destruct (Hends _ (Hcalm _ _ Hx (Hagreed _ Hp))) as [_ Hall].
    destruct (Hall [] _ (Hgo _ _ _ _ Hio)) as [Hg|[_ Hrest]]; [by apply Hno in Hg|by exists n]. }
  revert n x. induction p as [r| | |i a k IH|i a b k IH|i k IH|ms c k IH|[] k IH]; simpl; intros n x;
    destruct (calm x) eqn:Hx; try done; try (by intros [= <- <-]; eauto).
  - intros Hp Hends. destruct (Hone _ _ _ _ _ Hends Hx I (read_io i a k x)) as [n1 H1]. by eapply IH.
  - destruct (up (device_at x i)) eqn:Hup; intros Hp Hends.
    + destruct (Hone _ _ _ _ _ Hends Hx I (write_io i a b k x Hup)) as [n1 H1]. by eapply IH.
    + destruct (Hone _ _ _ _ _ Hends Hx I (no_write_io i a b k x x Hup (or_introl eq_refl))) as [n1 H1].
      by eapply IH.
  - destruct (up (device_at x i)) eqn:Hup; intros Hp Hends.
    + destruct (Hone _ _ _ _ _ Hends Hx I (flush_io i k x Hup)) as [n1 H1]. by eapply IH.
    + destruct (Hone _ _ _ _ _ Hends Hx I (no_flush_io i k x Hup)) as [n1 H1]. by eapply IH.
  - intros Hp Hends. destruct (Hone _ _ _ _ _ Hends Hx I (record_io ms c k x)) as [n1 H1]. by eapply IH.
  - intros Hp Hends. destruct (Hone _ _ _ _ _ Hends Hx eq_refl (assume_io k x)) as [n1 H1]. by eapply IH.
Qed.

Definition somebody_up x : bool := existsb (λ i, up (device_at x i)) (members x).

Lemma somebody_up_calm count (c : control block Y) x h :
  somebody_up x = true → all_agreed c → weather count (c, x, h) (c, x, h).
Proof.
  intros (i&Hi%elem_of_list_In&Hup)%existsb_exists Hc. split; [apply rtc_refl|]. split; [|done].
  assert (i ∈ up_members x) as Hin by by apply elem_of_list_filter. unfold enough. simpl in *.
  destruct (up_members x); [by apply elem_of_nil in Hin|simpl; lia].
Qed.

(** What the request comes to while nothing fails. *)
Definition comes_to (size : nat) (q : request) (y : Y) ms c x :
    option (array_program block (list nat * bool * (Y * answer * list block)) * array block) :=
  if somebody_up x then
    match planned places_for y q with
    | Some places => calmly somebody_up (on_leg size ms c (run_request D y places q)) x
    | None => None
    end
  else None.

Local Notation turn size := (turn D size places_for collecting).

Lemma comes_to_ends size count q y ms c x p x' n :
  comes_to size q y ms c x = Some (p, x') →
  ends_well (weather count) (turn size q) (answered_ok q) n (Idle y ms c, x, []) →
  somebody_up x' = true ∧ ∃ n', ends_well (weather count) (turn size q) (answered_ok q) n' (Busy q p, x', []).
Proof.
  unfold comes_to. destruct (somebody_up x) eqn:Hx; [|done]. destruct (planned _ y q) as [places|] eqn:Hplan;
    [|done].
  intros Hp Hends. destruct n as [|n]; [done|].
  destruct (Hends _ (somebody_up_calm count (Idle y ms c) _ _ Hx I)) as [_ Hall].
  destruct (Hall _ _ (Calls D size places_for collecting q y ms c places x [] Hplan)) as [[? [=]]|[_ Hrest]].
  eapply (calmly_ends (weather count)); [| | | |exact Hp|exact Hrest].
  - intros. by apply somebody_up_calm.
  - intros. by apply Performs.
  - by intros ?? [? [=]].
  - done.
Qed.

(** The request is never answered well, in whatever number of turns: *)
Definition stuck (size : nat) (q : request) (y : Y) (ms : list nat) (c : bool) x : Prop :=
  ∀ n, ¬ ends_well (weather 2) (turn size q) (answered_ok q) n (Idle y ms c, x, []).

(** if its program goes past the end of the devices, *)
Lemma past_end_stuck size q y ms c x x' : comes_to size q y ms c x = Some (PastEnd, x') →
    stuck size q y ms c x.
Proof.
  intros Hcomes n Hends. destruct (comes_to_ends _ _ _ _ _ _ _ _ _ _ Hcomes Hends) as [Hup [n' Hn']].
  revert Hn'. apply no_progress_blocked; [by apply somebody_up_calm|].
  intros es z Hturn. inversion Hturn; subst.
  match goal with H : array_io PastEnd _ _ _ |- _ => inversion H end.
Qed.

(** and if it refuses. *)
Lemma refused_stuck size q y ms c x ms1 c1 y1 e read x' :
  comes_to size q y ms c x = Some (Finish (ms1, c1, (y1, Refused e, read)), x') → stuck size q y ms c x.
Proof.
  intros Hcomes n Hends. destruct (comes_to_ends _ _ _ _ _ _ _ _ _ _ Hcomes Hends) as [Hup [[|n'] Hn']];
    [done|].
  destruct (Hn' _ (somebody_up_calm 2 (Busy _ (Finish _)) _ _ Hup I)) as [_ Hall].
  destruct (Hall _ _ (Answers D size places_for collecting q ms1 c1 y1 (Refused e) read x' []))
    as [[read' Hr]|[Hr _]]; [|done].
  exfalso. injection Hr as Hr. by destruct q.
Qed.

(** Writes are never performed where no collection finds places for them. *)
Lemma collecting_stuck (collected : Y → Y) size ws y ms c x :
  (∀ y, run_upkeep D y collecting = Done (collected y)) → (∀ y, collected (collected y) = collected y) →
  planned_group places_for y ws = None → planned_group places_for (collected y) ws = None →
  somebody_up x = true → ws ≠ [] →
  ∀ n, ¬ ends_well (weather 2) (group_turn D size places_for collecting ws) (group_ok ws) n
    (Idle y ms c, x, []).
Proof.
  intros Hcollect Hagain Hfirst Hthen Hup Hws n.
  apply (no_progress_refusing _ _ _ (λ z, ∃ y', planned_group places_for y' ws = None ∧
    collected y' = collected y ∧ (z = (Idle y' ms c, x, []) ∨ z = (Upkeep (Finish (ms, c, y')), x, [])))).
  - intros z (y'&Hnone&Hy'&[-> | ->]); (split; [by apply somebody_up_calm|]); intros es z' Hturn;
      inversion Hturn; subst; try (by simplify_eq); (split; [by destruct ws|]).
    + exists (collected y'). rewrite Hcollect, Hagain, Hy'. split_and!; [done|done|by right].
    + exists y'. split_and!; [done|done|by left].
  - exists y. split_and!; [done|done|by left].
Qed.

(** A new disk on two devices. *)
Definition born (trees : nat * nat) (size : nat) (g : geometry) :
    option (Y * list nat * bool * array block) :=
  match complete (on_leg size (seq 0 2) false (run_format D trees g))
    (@whole _ _ mirrored 2 (λ _, zero_block)) with
  | (Some (ms, c, Some y), x) => Some (y, ms, c, x)
  | _ => None
  end.

Lemma born_formatted trees size g y ms c x :
  born trees size g = Some (y, ms, c, x) → formatted D size 2 (disk_blocks g) (Idle y ms c, x, []).
Proof.
  unfold born. destruct (complete _ _) as [[[[ms1 c1] [y1|]]|] x1] eqn:Hend; try done. intros [= <- <- <- <-].
  exists trees, g, (λ _, zero_block), ms1, c1, y1, x1. split_and!;
    [done|apply ProvedDiskInvariant.untorn_unread|done|done].
Qed.
End Calm.

Definition admissible_here `{!blocks} (y : memory) (q : request) : bool :=
  bool_decide (faults_of y q = []) && negb (one_too_many y q) &&
  bool_decide (base.size (used_places (current y) (newest y)) + length (data_of q) ≤ data_blocks (shape y)) &&
  bool_decide (length (data_of q) + 72 ≤ sealed_words) &&
  bool_decide (256 ≤ limit ∧ length (data_of q) + 72 < limit ∧ disk_blocks (shape y) < limit ∧
    data_blocks (shape y) < limit ∧ next_record y < limit) && has_room y.

Lemma admissible_here_exact `{!blocks} y q : admissible_here y q = true → admissible y q.
Proof.
  unfold admissible_here. rewrite !andb_true_iff, !bool_decide_eq_true, negb_true_iff.
  intros [[[[[? ?] ?] Hwords] ?] Hroom]. split; [done..|split; [by left|done]|left].
  unfold request_blocks, blocks_for. by rewrite decide_True by lia.
Qed.

Local Notation D := proved_programs.
Local Notation formatted := (@formatted small _ mirrored untorn _ _ D).
Local Notation reopen := (@reopen small _ mirrored _ _ D).
Local Notation lives := (@lives small _ mirrored untorn _ _ D).
Local Notation recovery_turn := (@recovery_turn small _ mirrored untorn _ _ D).

Local Notation born_with_trees := (@born small _ _ (tree_programs 1) (1, 15) 40).
Local Notation comes_to_with_trees := (comes_to (tree_programs 1) tree_places_for).
Local Notation stuck_with_trees := (stuck (tree_programs 1) tree_places_for (T.Keep Collect)).
Local Notation born_with_maps := (@born small _ _ D (0, 0)).
Local Notation comes_to_with_maps := (comes_to D places_for).
Local Notation stuck_with_maps := (stuck D places_for Collect).

(** ** Devices that are too small: an I/O past their end is never answered *)

Definition one_block : request := @DoWrite small 0 [data 1].

Definition blocked_on_small_devices : bool :=
  match born_with_maps 8 shape_of_small with
  | Some (y, ms, c, x) => admissible_here y one_block &&
      match comes_to_with_maps 8 one_block y ms c x with Some (PastEnd, _) => true | _ => false end
  | None => false
  end.

Theorem small_devices_block : ∃ y ms c x, formatted 8 2 4 (Idle y ms c, x, []) ∧ admissible y one_block ∧
  stuck_with_maps 8 one_block y ms c x.
Proof.
  assert (blocked_on_small_devices = true) as Hb by by vm_compute. unfold blocked_on_small_devices in Hb.
  destruct (born_with_maps 8 shape_of_small) as [[[[y ms] c] x]|] eqn:Hborn; [|done].
  apply andb_true_iff in Hb as [Hadm Hb].
  exists y, ms, c, x. split; [by apply born_formatted in Hborn|]. split; [by apply admissible_here_exact|].
  destruct (comes_to_with_maps _ _ _ _ _ _) as [[[] x']|] eqn:Hcomes; try done. by eapply past_end_stuck.
Qed.

(** ** A request that is not admissible is refused *)

Definition one_snapshot : request := @DoSnapshot small "s".

Definition refused_without_snapshots : bool :=
  match born_with_maps 20 (Geometry 4 2 2 6 2 0) with
  | Some (y, ms, c, x) => bool_decide (device_blocks (shape y) ≤ 20) &&
      match comes_to_with_maps 20 one_snapshot y ms c x with
      | Some (Finish (_, _, (_, Refused NoSpace, _)), _) => true
      | _ => false
      end
  | None => false
  end.

Theorem snapshots_run_out : ∃ y ms c x, formatted 20 2 4 (Idle y ms c, x, []) ∧ device_blocks (shape y) ≤ 20 ∧
  stuck_with_maps 20 one_snapshot y ms c x.
Proof.
  assert (refused_without_snapshots = true) as Hb by by vm_compute. unfold refused_without_snapshots in Hb.
  destruct (born_with_maps 20 _) as [[[[y ms] c] x]|] eqn:Hborn; [|done].
  apply andb_true_iff in Hb as [Hsize Hb].
  apply bool_decide_eq_true in Hsize. exists y, ms, c, x. split; [by apply born_formatted in Hborn|]. split;
    [done|].
  destruct (comes_to_with_maps _ _ _ _ _ _) as [[[[[ms1 c1] [[y1 [|[]| |]] read]]| | | | | | |] x']|]
    eqn:Hcomes; try done.
  by eapply refused_stuck.
Qed.

(** With trees too. *)
Definition refused_by_trees : bool :=
  match born_with_trees (Geometry 4 2 6 8 2 0) with
  | Some (y, ms, c, x) =>
      bool_decide (tree_device_blocks (T.shape y) (T.tree_size y) ≤ 40) &&
      match comes_to_with_trees 40 one_snapshot y ms c x with
      | Some (Finish (_, _, (_, Refused NoSpace, _)), _) => true
      | _ => false
      end
  | None => false
  end.

Theorem tree_snapshots_run_out : ∃ y ms c x,
  LegDiskMachine.formatted (cutting0 := mirrored) (torn := untorn) (@tree_programs small 1) 40 2 4
    (Idle y ms c, x, []) ∧
  tree_device_blocks (T.shape y) (T.tree_size y) ≤ 40 ∧
  stuck_with_trees 40 one_snapshot y ms c x.
Proof.
  assert (refused_by_trees = true) as Hb by by vm_compute. unfold refused_by_trees in Hb.
  destruct (born_with_trees _) as [[[[y ms] c] x]|] eqn:Hborn; [|done].
  apply andb_true_iff in Hb as [Hsize Hb].
  apply bool_decide_eq_true in Hsize. exists y, ms, c, x. split; [by apply born_formatted in Hborn|].
  split; [done|].
  destruct (comes_to_with_trees _ _ _ _ _ _) as [[[[[ms1 c1] [[y1 [|[]| |]] read]]| | | | | | |] x']|]
    eqn:Hcomes;
    try done.
  by eapply refused_stuck.
Qed.

(** ** Writes that need more places than there are: the scheduler collects again and again *)

Definition two_writes : list (nat * list (@block small)) := [(0, [data 1]); (2, [data 2])].

Local Notation plan_group := (planned_group places_for).
Definition no_places_for_two : bool :=
  match born_with_maps 20 (Geometry 4 2 2 1 2 2) with
  | Some (y, ms, c, x) => bool_decide (device_blocks (shape y) ≤ 20) && somebody_up x &&
      bool_decide (plan_group y two_writes = None) && bool_decide (plan_group (collect y) two_writes = None)
  | None => false
  end.

Theorem groups_need_places : ∃ y ms c x,
  formatted 20 2 4 (Idle y ms c, x, []) ∧ device_blocks (shape y) ≤ 20 ∧
  ∀ n, ¬ ends_well (weather 2) (group_turn D 20 places_for Collect two_writes) (group_ok two_writes) n
    (Idle y ms c, x, []).
Proof.
  assert (no_places_for_two = true) as Hb by by vm_compute. unfold no_places_for_two in Hb.
  destruct (born_with_maps 20 _) as [[[[y ms] c] x]|] eqn:Hborn; [|done].
  apply andb_true_iff in Hb as [[[Hsize Hup]%andb_true_iff Hfirst]%andb_true_iff Hagain].
  apply bool_decide_eq_true in Hsize, Hfirst, Hagain. exists y, ms, c, x.
  split; [by apply born_formatted in Hborn|]. split; [done|]. by apply (collecting_stuck D _ _ collect).
Qed.

(** With trees too. *)
Local Notation tree_plan_group := (planned_group tree_places_for).
Definition no_places_on_trees : bool :=
  match born_with_trees (Geometry 4 2 6 1 2 2) with
  | Some (y, ms, c, x) => bool_decide (tree_device_blocks (T.shape y) (T.tree_size y) ≤ 40) && somebody_up
    x &&
      bool_decide (tree_plan_group y two_writes = None) &&
      bool_decide (tree_plan_group (T.collect y) two_writes = None)
  | None => false
  end.

Theorem tree_groups_need_places : ∃ y ms c x,
  LegDiskMachine.formatted (cutting0 := mirrored) (torn := untorn) (@tree_programs small 1) 40 2 4
    (Idle y ms c, x, []) ∧
  tree_device_blocks (T.shape y) (T.tree_size y) ≤ 40 ∧
  ∀ n, ¬ ends_well (weather 2) (group_turn (tree_programs 1) 40 tree_places_for (T.Keep Collect) two_writes)
    (group_ok two_writes) n (Idle y ms c, x, []).
Proof.
  assert (no_places_on_trees = true) as Hb by by vm_compute. unfold no_places_on_trees in Hb.
  destruct (born_with_trees _) as [[[[y ms] c] x]|] eqn:Hborn; [|done].
  apply andb_true_iff in Hb as [[[Hsize Hup]%andb_true_iff Hfirst]%andb_true_iff Hagain].
  apply bool_decide_eq_true in Hsize, Hfirst, Hagain. exists y, ms, c, x.
  split; [by apply born_formatted in Hborn|]. split; [done|]. by apply (collecting_stuck _ _ _ T.collect).
Qed.

(** ** Recovery waits for a member *)

Definition all_fail {B} (x : array B) : array B :=
  let failed d := Device false (Medium (stable (store d)) []) in
  put_device (put_device x 0 (failed (device_at x 0))) 1 (failed (device_at x 1)).

Lemma one_device_fails `{!blocks} {Y} count (c : control block Y) (x : array block) h i : i < count →
  one_fails count (c, x, h) (c, put_device x i (Device false (Medium (stable (store (device_at x i))) [])),
    if powered c then h else i :: h).
Proof.
  intros Hi. exists i. eexists. split; [done|]. split; [|done]. eexists. split; [|done]. eexists. split;
    [|done].
  intros a. by left; left.
Qed.

Section NoMember.
Context `{!blocks} {Y U : Type} (D : programs Y U) (size : nat).

Definition stops_without_members (x : array block) : bool :=
  let x := all_fail (powerless x) in
  match calmly (λ _, true) (LegDiskMachine.reopen D size x) x with Some (Stop, _) => true | _ => false end.

Lemma stopped_stuck (good : list (entry block) → machine block Y → Prop) x :
  stops_without_members x = true → (∀ p x h, ¬ good [] (Recovery false p, x, h)) →
  ∀ n, ¬ ends_well (rtc (one_fails 2)) (LegDiskProgress.recovery_turn D size) good n (Off, powerless x, []).
Proof.
  intros Hb Hno n Hends. unfold stops_without_members in Hb. destruct n as [|n]; [done|].
  destruct (Hends (Off, all_fail (powerless x), [1; 0])) as [_ Hall].
  { eapply rtc_l; [apply (one_device_fails 2 Off _ [] 0); lia|].
    eapply rtc_l; [|apply rtc_refl]. exact (one_device_fails 2 Off (put_device (powerless x) 0 _) [0] 1
      ltac:(lia)). }
  destruct (Hall _ _ (Begins D size _ _)) as [[]%Hno|[_ Hrest]].
  destruct (calmly _ (LegDiskMachine.reopen D size _) _) as [[[] x']|] eqn:Hcalmly; try done.
  assert (true = true ∧ ∃ n', ends_well (rtc (one_fails 2)) (LegDiskProgress.recovery_turn D size) good n'
    (Recovery false Stop, x', [1; 0])) as [_ [n' Hn']].
  { eapply (calmly_ends (rtc (one_fails 2)) _ good (Recovery false) (λ _, true));
      [| | | |exact Hcalmly|exact Hrest]; try done.
    intros. by apply Recovers. }
  revert Hn'. apply no_progress_blocked; [apply rtc_refl|]. intros es z Hturn. inversion Hturn; subst.
  match goal with H : array_io Stop _ _ _ |- _ => inversion H end.
Qed.
End NoMember.

Definition stops_with_maps : bool :=
  match born_with_maps 20 shape_of_small with
  | Some (_, _, _, x) => stops_without_members D 20 x
  | None => false
  end.

Theorem recovery_needs_a_member : ∃ z (x : array (@block small)) tr,
  formatted 20 2 4 z ∧ lives 20 2 z tr (Off, x, []) ∧
  ∀ n, ¬ ends_well (rtc (one_fails 2)) (recovery_turn 20) open_again n (Off, x, []).
Proof.
  assert (stops_with_maps = true) as Hb by by vm_compute. unfold stops_with_maps in Hb.
  destruct (born_with_maps 20 shape_of_small) as [[[[y ms] c] x]|] eqn:Hborn; [|done].
  exists (Idle y ms c, x, []), (powerless x). eexists. split; [by apply born_formatted in Hborn|]. split.
  { eapply lives_step; [|constructor]. apply PowerCut; [by left|apply loses_powerless]. }
  apply stopped_stuck; [done|]. by intros ??? (?&?&?&?&[=]).
Qed.

(** ** Upkeep on devices that are too small: an I/O past their end is never answered *)

Definition upkeep_past_end {Y U} (D : programs Y U) (size : nat) (trees : nat * nat) (g : geometry)
    (es : list (@happening small (@block small) U)) (u : U) : bool :=
  match whole_life D size 2 trees g es with
  | Some (_, (Idle y ms c, x)) =>
      somebody_up x && match calmly somebody_up (on_leg size ms c (run_upkeep D y u)) x with
                       | Some (PastEnd, _) => true | _ => false end
  | _ => false
  end.

Definition upkeep_never_ends {Y U} (D : @programs small Y U) (size : nat) (u : U) (y : Y) ms c
    (x : array (@block small)) : Prop :=
  ∀ n, ¬ ends_well (weather 2) (upkeep_turn (cutting0 := mirrored) D size u) idle_again n
    (Idle y ms c, x, []).

Lemma past_end_unending {Y U} (D : @programs small Y U) size trees g es u :
  upkeep_past_end D size trees g es u = true → ∃ z tr y ms c x,
    LegDiskMachine.formatted (cutting0 := mirrored) (torn := untorn) D size 2 (disk_blocks g) z ∧
    LegDiskMachine.lives (cutting0 := mirrored) D size 2 z tr (Idle y ms c, x, []) ∧
    upkeep_never_ends D size u y ms c x.
Proof.
  unfold upkeep_past_end, whole_life. destruct (complete _ _) as [[[[ms0 c0] [y0|]]|] x0] eqn:Hend; try done.
  destruct (happens D size 2 es (Idle y0 ms0 c0) x0) as [[tr [[y ms c| | | | | | |] x]]|] eqn:Hlife; try done.
  intros [Hup Hcalm]%andb_true_iff. apply happens_lives in Hlife.
  exists (Idle y0 ms0 c0, x0, []), tr, y, ms, c, x. split_and!; [|done|].
  { exists trees, g, (λ _, zero_block), ms0, c0, y0, x0. split_and!;
    [done|apply ProvedDiskInvariant.untorn_unread|done|done]. }
  intros [|n] Hends; [done|].
  destruct (Hends _ (somebody_up_calm 2 (Idle y ms c) _ _ Hup I)) as [_ Hall].
  destruct (Hall _ _ (Undertakes D size u y ms c x [])) as [[_ (?&?&?&?&?&[=])]|[_ Hrest]].
  destruct (calmly _ _ _) as [[[] x1]|] eqn:Hpast; try done.
  eapply (calmly_ends (weather 2) (upkeep_turn D size u) idle_again Upkeep) in Hrest as [Hup' [n' Hn']];
    [| | | | |exact Hpast].
  - revert Hn'. apply no_progress_blocked; [by apply somebody_up_calm|].
    intros es' z Hturn. inversion Hturn; subst.
    match goal with H : array_io PastEnd _ _ _ |- _ => inversion H end.
  - intros. by apply somebody_up_calm.
  - intros. by apply Maintains.
  - by intros ?? [_ (?&?&?&?&?&[=])].
  - done.
Qed.

Theorem upkeep_needs_devices : ∃ z tr y ms c x, formatted 7 2 4 z ∧ lives 7 2 z tr (Idle y ms c, x, []) ∧
  upkeep_never_ends D 7 Checkpoint y ms c x.
Proof. by apply (past_end_unending D 7 (0, 0) shape_of_small []); vm_compute. Qed.

(** With trees, once there is a node that is new. *)
Theorem tree_upkeep_needs_devices : ∃ z tr y ms c x,
  LegDiskMachine.formatted (cutting0 := mirrored) (torn := untorn) (@tree_programs small 1) 26 2 4 z ∧
  LegDiskMachine.lives (cutting0 := mirrored) (tree_programs 1) 26 2 z tr (Idle y ms c, x, []) ∧
  upkeep_never_ends (tree_programs 1) 26 (T.Keep Checkpoint) y ms c x.
Proof.
  by apply (past_end_unending (tree_programs 1) 26 (1, 15) (Geometry 4 2 6 8 2 2)
    [Asks (DoWrite 0 [data 1]) [0]]); vm_compute.
Qed.
