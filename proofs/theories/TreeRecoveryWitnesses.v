(** What progress of recovery of the disk with trees needs, computed: on a leg a member that answers, and
devices that are large enough; on one device that there is a disk, and that what is assumed of digests is
true. *)
From stdpp Require Import gmap strings relations.
From LogDisk Require TreeStore TreeBlocks TreeIndexBounds ProvedTreeMaps.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec ByteBlocks ProvedDisk ProvedDiskInvariant
  ProvedDiskRequests ProvedDiskExecution ProvedDiskProgress.
From LogDisk Require Import ProvedTreeDiskInvariant ProvedTreeDiskRecovery ProvedTreeDiskCost
  ProvedTreeDiskBounds ProvedTreeDiskTheorem ProvedTreeDiskExecution.
From LogDisk Require Import Devices Leg LegCorrect LegCode LegDiskMachine LegDiskRefinement LegDiskShape
  LegDiskExecution
  LegDiskProgress LegDiskProgressWitnesses ProvedTreeDiskAnswers TreeLegDiskProgress TreeLegDiskRecovery
  Progress.
From LogDisk Require DiskMachine DiskMachineShape DiskMachineProgress ProvedTreeDiskProgress.
Import TreeIndex(trees).

Local Instance mirrored `{blocks} : cutting block block := mirrors zero_block.
#[local] Existing Instance untorn.
Section Calm.
Context `{!blocks} {A : Type}.
Implicit Types (p : array_program block A) (x : array block).

Lemma calmly_calm calm p x r : calmly calm p x = Some r → calm x = true.
Proof. by destruct p; simpl; destruct (calm x). Qed.

Lemma calmly_ran calm p x r : calmly calm p x = Some r → ran p x = r.
Proof.
  revert x. induction p as [a| | |i a k IH|i a b k IH|i k IH|ms c k IH|[] k IH]; intros x; simpl;
    destruct (calm x); try done; try destruct (up (device_at x i)); try (by intros [= <-]); by apply IH.
Qed.
End Calm.

Section Reached.
Context `{!blocks} {Y U : Type} (D : DiskMachine.programs Y U).
Variables (trees : nat * nat) (size : nat) (g : geometry).
Implicit Types x : array block.
Notation formatted_as z := (formatted_as (cutting0 := mirrored) (torn := untorn) D 2 trees g size z).
Notation lives := (lives (cutting0 := mirrored) (torn := untorn) D size 2).

Lemma born_as y ms c x : born D trees size g = Some (y, ms, c, x) →
  formatted_as (Idle y ms c, x, []).
Proof.
  unfold born. destruct (complete _ _) as [[[[ms1 c1] [y1|]]|] x1] eqn:Hend; try discriminate.
  intros [= <- <- <- <-]. exists (λ _, zero_block), ms1, c1, y1, x1. split_and!;
    [apply ProvedDiskInvariant.untorn_unread|done|done].
Qed.

(** A new disk, off. *)
Lemma born_off y ms c x : born D trees size g = Some (y, ms, c, x) →
  ∃ z tr, formatted_as z ∧ lives z tr (Off, powerless x, []).
Proof.
  intros Hborn. exists (Idle y ms c, x, []), ([Event (Crash CutShort)] ++ []). split; [by apply born_as|].
  eapply lives_step; [|constructor].
  apply (PowerCut D size 2 (Idle y ms c)); [by left|apply loses_powerless].
Qed.

(** A life and a power cut: the devices then, and what opens again while nothing fails. *)
Definition opened (es : list (@happening _ block U)) :
    option (array block * (Y * list nat * bool * array block)) :=
  match born D trees size g with
  | Some (y, ms, c, x) =>
      match happens D size 2 es (Idle y ms c) x with
      | Some (_, (Idle _ _ _, x)) =>
          match calmly somebody_up (LegDiskMachine.reopen D size (powerless x)) (powerless x) with
          | Some (Finish (ms, c, Some y), x') => Some (x, (y, ms, c, x'))
          | _ => None
          end
      | _ => None
      end
  | None => None
  end.

Lemma opened_lives es x y ms c x' : opened es = Some (x, (y, ms, c, x')) → ∃ z tr,
  formatted_as z ∧ lives z tr (Off, powerless x, []) ∧
  lives z (tr ++ [Event (Crash Ok)]) (Idle y ms c, x', []) ∧
  ∀ good n, (∀ p x h, ¬ good [] (Recovery false p, x, h)) →
    ends_well (weather 2) (recovery_turn D size) good n (Off, powerless x, []) →
    good [Event (Crash Ok)] (Idle y ms c, x', []).
Proof.
  unfold opened. destruct (born _ _ _ _) as [[[[y0 ms0] c0] x0]|] eqn:Hborn; [|discriminate].
  destruct (happens _ _ _ _ _ _) as [[tr [[y1 ms1 c1| | | | | | |] x1]]|] eqn:Hlife; try discriminate.
  destruct (calmly _ _ _) as [[[[[ms2 c2] [y2|]]| | | | | | |] x2]|] eqn:Hcalmly; try discriminate.
  intros [= <- <- <- <- <-]. pose proof (calmly_ran _ _ _ _ Hcalmly) as Hran.
  assert (lives (Idle y0 ms0 c0, x0, []) (tr ++ [Event (Crash CutShort)]) (Off, powerless x1, [])) as Hoff.
  { eapply lives_app; [by eapply happens_lives|].
    apply lives_one, (PowerCut D size 2 (Idle y1 ms1 c1)); [by left|apply loses_powerless]. }
  assert (lives (Off, powerless x1, []) [Event (Crash Ok)] (Idle y2 ms2 c2, x2, [])) as Hon.
  { eapply lives_quiet; [apply PowerOn|]. apply lives_opening. unfold after_opening. by rewrite Hran. }
  exists (Idle y0 ms0 c0, x0, []), (tr ++ [Event (Crash CutShort)]).
  split_and!; [by apply born_as|done|by eapply lives_app|].
  intros good n Hno Hends. pose proof (calmly_calm _ _ _ _ Hcalmly) as Hup. destruct n as [|n]; [done|].
  destruct (Hends _ (somebody_up_calm 2 Off _ _ Hup I)) as [_ Hall].
  destruct (Hall _ _ (Begins D size _ _)) as [[]%Hno|[_ Hrest]].
  destruct (calmly_ends (weather 2) (recovery_turn D size) good (Recovery false) somebody_up _ _ _ _ []
    n (λ c x, somebody_up_calm 2 c x []) (λ p x p' x', Recovers D size false p x p' x' [])
    (λ p x, Hno p x []) (λ p Hp, Hp) Hcalmly Hrest) as [Hup2 [[|n'] Hn']]; [done|].
  destruct (Hn' _ (somebody_up_calm 2 (Recovery false (Finish (ms2, c2, Some y2))) _ _ Hup2 I)) as [_ Hall2].
  by destruct (Hall2 _ _ (Opens D size false ms2 c2 y2 x2 [])) as [?|[[=] _]].
Qed.

Lemma reached_represents shape represents recoverable z tr y ms c x :
  DiskMachine.crash_safe_programs D shape represents recoverable → formatted_as z →
  lives z tr (Idle y ms c, x, []) → ∃ f d, represents y f d.
Proof.
  intros Hsafe Hz%formatted_as_formatted Hlives.
  by eapply (leg_idle_represents D size 2 _ _ _ Hsafe (laws := mirrors_laws zero_block 2 ltac:(lia))).
Qed.
End Reached.

Local Notation D := (@tree_programs small 1).
Local Notation sized := (1, 15).    (* two levels of nodes, and pages *)
Local Notation on_mirrors size := (@answers_again small _ mirrored untorn 1 size 2 sized shape_of_trees).

Lemma never_opening size p x h : ¬ on_mirrors size [] (Recovery false p, x, h).
Proof. by intros (?&?&?&?&[=]&_). Qed.

(** ** Recovery waits for a member *)

Definition stops_with_trees : bool :=
  match born D sized 40 shape_of_trees with
  | Some (_, _, _, x) => stops_without_members D 40 x
  | None => false
  end.

Theorem tree_recovery_needs_a_member : ∃ z (x : array (@block small)) tr,
  formatted_as (cutting0 := mirrored) (torn := untorn) D 2 sized shape_of_trees 40 z ∧
  lives (cutting0 := mirrored) D 40 2 z tr (Off, x, []) ∧ tree_device_blocks shape_of_trees sized ≤ 40 ∧
  ∀ n, ¬ ends_well (rtc (one_fails 2)) (recovery_turn D 40) (on_mirrors 40) n (Off, x, []).
Proof.
  assert (stops_with_trees = true) as Hb by by vm_compute. unfold stops_with_trees in Hb.
  destruct (born D sized 40 shape_of_trees) as [[[[y ms] c] x]|] eqn:Hborn; [|discriminate Hb].
  destruct (born_off D _ _ _ _ _ _ _ Hborn) as (z&tr&Hz&Hlives). exists z, (powerless x), tr.
  split_and!; [exact Hz|exact Hlives|vm_compute; lia|].
  apply stopped_stuck; [exact Hb|apply never_opening].
Qed.

(** ** Devices that are too small: the disk opens, but a checkpoint that it needs goes past their end *)

Definition full_log : list (@happening small (@block small) T.upkeep) :=
  [Asks (DoWrite 0 [data 1]) [0]; Asks (DoWrite 1 [data 2]) [1]].
Definition another_block : request := @DoWrite small 0 [data 3].

(** All that [tree_admissible] asks for but that the trees are as they should be. *)
Definition tree_admissible_here `{!blocks} (y : T.memory) (q : request) : bool :=
  bool_decide (T.faults_of y q = []) && negb (T.one_too_many y q) &&
  bool_decide (base.size (T.used_places (T.current y) (T.newest y)) + length (data_of q) ≤
    data_blocks (T.shape y)) &&
  bool_decide (length (data_of q) + 72 ≤ sealed_words) &&
  bool_decide (256 ≤ limit ∧ length (data_of q) + 72 < limit ∧ disk_blocks (T.shape y) < limit ∧
    data_blocks (T.shape y) < limit ∧ T.next_record y < limit) &&
  bool_decide (0 < log_blocks (T.shape y)) &&
  bool_decide ((1 + 4 * 2 ^ 1 ≤ words ∧ 2 ^ 1 < limit) ∧ (S (T.serial y) < limit ∧
    slot_blocks (T.shape y) < limit)) &&
  let s := trees (ProvedTreeMaps.views (T.current y)) in let z := next_checkpoint y in
  bool_decide (SharedTree.next s < limit ∧ SharedTree.epoch s < limit) &&
  forallb (λ e, bool_decide (SharedTree.data e.2 < limit)) (map_to_list (SharedTree.nodes s)) &&
  forallb (λ e, bool_decide (e.2 < limit)) (map_to_list (TreeStore.pages z)) &&
  forallb (λ w, bool_decide (w < limit)) (root_words y) &&
  bool_decide (length (root_words y) ≤ slot_blocks (T.shape y) * words) &&
  bool_decide (length (new_nodes y) + length (map_to_list (T.pages y)) ≤ T.page_blocks y).

Lemma tree_admissible_here_exact `{!blocks, !blocks_laws} y f d q size : tree_represents 1 y f d →
  tree_device_blocks (T.shape y) (T.tree_size y) ≤ size →
  tree_admissible_here y q = true → tree_admissible 1 size y q.
Proof.
  intros Hy Hsize. unfold tree_admissible_here. cbv zeta.
  rewrite !andb_true_iff, !bool_decide_eq_true, negb_true_iff.
  intros [[[[[[[? ?] ?] Hwords] ?] ?] [? ?]] [[[[[[? ?] Hdata] Hpages] Hroots] ?] ?]].
  split; try done; [split; [by left|done]|]. right.
  split; [unfold ProvedDiskAnswers.request_blocks, blocks_for; by rewrite decide_True by lia|].
  split; try done.
  - destruct Hy as (s0&x0&m&Hy&Hc&_). destruct (trees_now _ _ _ _ _ _ _ _ _ Hy Hc) as (_&Hkept&_).
    destruct (TreeIndexBounds.kept_bounded _ _ _ Hkept) as [Hh _]. simpl. by rewrite Hh.
  - split; [done|done| |].
    + intros n nd Hn%elem_of_map_to_list%elem_of_list_In. rewrite forallb_forall in Hdata.
      by apply Hdata, bool_decide_eq_true in Hn.
    + intros n p Hn%elem_of_map_to_list%elem_of_list_In. rewrite forallb_forall in Hpages.
      by apply Hpages, bool_decide_eq_true in Hn.
  - apply Forall_forall. intros w Hw%elem_of_list_In. rewrite forallb_forall in Hroots.
    by apply Hroots, bool_decide_eq_true in Hw.
Qed.

Definition blocked_when_open : bool :=
  match opened D sized 26 shape_of_trees full_log with
  | Some (_, (y, ms, c, x)) => tree_admissible_here y another_block &&
      match comes_to D tree_places_for 26 another_block y ms c x with
      | Some (PastEnd, _) => true
      | _ => false
      end
  | None => false
  end.

Theorem tree_recovery_needs_devices : ∃ z (x : array (@block small)) tr,
  formatted_as (cutting0 := mirrored) (torn := untorn) D 2 sized shape_of_trees 26 z ∧
  lives (cutting0 := mirrored) D 26 2 z tr (Off, x, []) ∧
  ∀ n, ¬ ends_well (weather 2) (recovery_turn D 26) (on_mirrors 26) n (Off, x, []).
Proof.
  assert (blocked_when_open = true) as Hb by by vm_compute. unfold blocked_when_open in Hb.
  destruct (opened D sized 26 shape_of_trees full_log) as [[x [[[y ms] c] x']]|] eqn:Hopened;
    [|discriminate Hb].
  apply andb_true_iff in Hb as [Hadm Hb].
  destruct (comes_to D tree_places_for 26 another_block y ms c x') as [[[] x3]|] eqn:Hcomes;
    try discriminate Hb.
  destruct (opened_lives D _ _ _ _ _ _ _ _ _ Hopened) as (z&tr&Hz&Hoff&Hon&Hgood).
  exists z, (powerless x), tr. split_and!; [exact Hz|exact Hoff|]. intros n Hends.
  destruct (Hgood _ _ (never_opening 26) Hends) as (y'&ms'&c'&x''&[= <- <- <- <-]&Hg&Hsized&Hq).
  destruct (reached_represents D sized 26 shape_of_trees _ _ _ _ _ _ _ _ _ (tree_programs_safe 1 small_laws)
    Hz Hon) as (f&d&Hy).
  pose proof small_laws as laws.
  refine (past_end_stuck D tree_places_for (T.Keep Collect) _ _ _ _ _ _ _ Hcomes _
    (Hq another_block (tree_admissible_here_exact y f d _ _ Hy _ Hadm))). by rewrite Hg, Hsized.
Qed.

(** ** One device *)

Section OneDevice.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : DiskMachine.programs Y U).
Local Notation machine := (DiskMachine.machine Y).
Local Notation turn := (DiskMachineProgress.recovery_turn D).
Import DiskMachine(Recovery, Off, run_recovery).
Import DiskMachineLives(partly).

Lemma formatted_from trees g f y m : execute (DiskMachine.run_format D trees g) (Medium f []) = (Some y, m) →
  torn_unread g → DiskMachineShape.formatted_as D trees g (DiskMachine.Idle y, m).
Proof. intros Hy Hwhole. exists f, y. by rewrite Hy. Qed.

(** Recovery as it goes, until it cannot. *)
Lemma partly_ends (weather : machine → machine → Prop) (good : list (event block) → machine → Prop) k n p m :
  (∀ p m r, io p m = Some r → weather (Recovery p, m) (Recovery p, m)) → (∀ p m, ¬ good [] (Recovery p, m)) →
  ends_well weather turn good n (Recovery p, m) →
  ∃ n', ends_well weather turn good n' (Recovery (partly k p m).2, (partly k p m).1).
Proof.
  intros Hcalm Hno. revert n p m. induction k as [|k IH]; intros n p m Hends; simpl; [by exists n|].
  destruct (io p m) as [[p' m']|] eqn:Hio; [|by exists n]. destruct n as [|n]; [done|].
  destruct (Hends _ (Hcalm _ _ _ Hio)) as [_ Hall].
  destruct (Hall _ _ (DiskMachineProgress.Recovers D _ _ _ _ Hio)) as [[]%Hno|[_ Hrest]]. by eapply IH.
Qed.

Lemma recovery_stuck (weather : machine → machine → Prop) (good : list (event block) → machine → Prop) k n m :
  weather (Off, m) (Off, m) →
  (∀ p m r, io p m = Some r → weather (Recovery p, m) (Recovery p, m)) → (∀ p m, ¬ good [] (Recovery p, m)) →
  (∀ p m', partly k (run_recovery D) m = (m', p) →
    weather (Recovery p, m') (Recovery p, m') ∧ ∀ es z, ¬ turn (Recovery p, m') es z) →
  ¬ ends_well weather turn good n (Off, m).
Proof.
  intros Hoff Hcalm Hno Hend Hends. destruct n as [|n]; [done|]. destruct (Hends _ Hoff) as [_ Hall].
  destruct (Hall _ _ (DiskMachineProgress.Begins D m)) as [[]%Hno|[_ Hrest]].
  apply (partly_ends _ _ k _ _ _ Hcalm Hno) in Hrest as [n' Hn'].
  destruct (partly k _ m) as [m' p] eqn:Hp. destruct (Hend _ _ eq_refl) as [Hz Hturn].
  by apply (no_progress_blocked _ _ _ _ _ Hz Hturn) in Hn'.
Qed.

(** It found no disk, or waits for what is not true. *)
Definition found_no_disk k m : bool :=
  match (partly k (run_recovery D) m).2 with Done None => true | _ => false end.
Definition waits k m : bool :=
  match (partly k (run_recovery D) m).2 with Assume false _ => true | _ => false end.

Lemma no_disk_stuck good k n m : (∀ p m, ¬ good [] (Recovery p, m)) → found_no_disk k m = true →
  ¬ ends_well DiskMachineProgress.assumed turn good n (Off, m).
Proof.
  intros Hno Hb. apply (recovery_stuck _ _ k); [done| |done|].
  - intros p m1 r Hio. split; [done|]. by destruct p as [| | | |[] q].
  - unfold found_no_disk in Hb. intros p m1 Hp. rewrite Hp in Hb. simpl in Hb.
    destruct p as [[y|]| | | |]; try discriminate Hb. split; [done|]. intros es z Hz.
    inversion Hz; subst. done.
Qed.

Lemma waits_stuck good k n m : (∀ p m, ¬ good [] (Recovery p, m)) → waits k m = true →
  ¬ ends_well (λ z z', z' = z) turn good n (Off, m).
Proof.
  intros Hno Hb. apply (recovery_stuck _ _ k); [done|done|done|].
  unfold waits in Hb. intros p m1 Hp. rewrite Hp in Hb. simpl in Hb. split; [done|].
  destruct p as [| | | |[] q]; try discriminate Hb. intros es z Hz. inversion Hz; subst. done.
Qed.
End OneDevice.

Local Notation recovery_turn_of B := (@DiskMachineProgress.recovery_turn B _ _ (@tree_programs B 1)).
Local Notation answers_of B := (@ProvedTreeDiskProgress.answers_again B 1 sized shape_of_trees).

Lemma answers_later `{!blocks} p m : ¬ answers_of _ [] (DiskMachine.Recovery p, m).
Proof. by intros [[=] _]. Qed.

(** A device that holds no disk never answers. *)
Theorem tree_disk_recovery_needs_a_disk n :
  ¬ ends_well DiskMachineProgress.assumed (recovery_turn_of small) (answers_of small) n
    (DiskMachine.Off, Medium (λ _, zero_block) []).
Proof. apply (no_disk_stuck _ _ 1); [apply answers_later|by vm_compute]. Qed.

(** Blocks of which no digest may be taken: recovery does not go on where it takes one. *)
Definition undigested : blocks := byte_blocks 1 80 2 (λ _, (0, 0)) (λ _, false).
Lemma undigested_laws : @blocks_laws undigested.
Proof. apply byte_blocks_laws; [lia|lia|by intros ????|]. by intros ?; simpl; lia. Qed.

Definition waits_for_a_digest : bool :=
  match execute (DiskMachine.run_format (@tree_programs undigested 1) sized shape_of_trees)
    (Medium (λ _, zero_block) []) with
  | (Some y, m) => waits (@tree_programs undigested 1) 100 (Medium (read_block m) [])
  | _ => false
  end.

Theorem tree_disk_recovery_needs_digests : @blocks_laws undigested ∧ ∃ z tr m,
  DiskMachineShape.formatted_as (@tree_programs undigested 1) sized shape_of_trees z ∧
  shows (DiskMachine.disk_machine (@tree_programs undigested 1)) z tr (DiskMachine.Off, m) ∧
  ∀ n, ¬ ends_well (λ z z', z' = z) (recovery_turn_of undigested) (answers_of undigested) n
    (DiskMachine.Off, m).
Proof.
  split; [apply undigested_laws|]. assert (waits_for_a_digest = true) as Hb by by vm_compute.
  unfold waits_for_a_digest in Hb.
  destruct (execute (DiskMachine.run_format _ sized shape_of_trees) _) as [[y|] m] eqn:Hformat;
    [|discriminate Hb].
  exists (DiskMachine.Idle y, m), ([Crash CutShort] ++ []), (Medium (read_block m) []). split_and!.
  - apply (formatted_from _ _ _ _ _ _ Hformat). apply ProvedDiskInvariant.untorn_unread.
  - eapply shows_step; [|constructor]. apply (DiskMachine.PowerCut _ (DiskMachine.Idle y)); [done|].
    intros a. left. apply read_may_hold.
  - intros n. exact (waits_stuck _ _ 100 n _ answers_later Hb).
Qed.
