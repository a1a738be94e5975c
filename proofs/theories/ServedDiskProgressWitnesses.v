(** What progress of the disk that is served needs, on one device and on two mirrors, with whole maps and with
trees: a scheduler that takes the oldest request, members that answer, devices that are large enough, requests
within the stated sizes, digests that are what is assumed of them. *)
From stdpp Require Import gmap strings relations.
From LogDisk Require Import VirtualDisk Medium Codec ByteBlocks ProvedDisk ProvedDiskRequests
  ProvedDiskMachine ProvedDiskExecution ProvedDiskBounds ProvedTreeDiskInvariant ProvedTreeDiskBounds
  ProvedTreeDiskTheorem ProvedTreeDiskExecution.
From LogDisk Require Import Progress ServedDiskScheduler ServedDiskPower ServedDiskProgress ServedLegProgress.
From LogDisk Require Import Devices Leg LegCorrect LegCode RequestProgress LegProgress LegDiskMachine
  LegDiskShape LegDiskExecution LegDiskProgress LegDiskProgressWitnesses ProvedDiskAnswers
    ProvedTreeDiskAnswers
  TreeRecoveryWitnesses.
From LogDisk Require DiskMachine DiskMachineShape DiskMachineProgress.
Import DiskMachine(programs, run_request, run_format).
Local Open Scope string_scope.

Local Instance mirrored `{blocks} : cutting block block := mirrors zero_block.
#[local] Existing Instance untorn.

(** ** Another scheduler: the newest request first *)

Definition newest_first `{blocks} (w : list (nat * request)) :
    option (job nat * list (nat * request)) :=
  match reverse w with [] => None | (id, q) :: rest => Some (Single id q, reverse rest) end.

Lemma newest_taken `{blocks} w id q : newest_first (w ++ [(id, q)]) = Some (Single id q, w).
Proof. unfold newest_first. by rewrite reverse_snoc, reverse_involutive. Qed.

Section Server.
Context `{!blocks} {Z : Type} (job_turn : job nat → Z → list outcome → Z → Prop) (weather : Z → Z → Prop).
Context (next : list (nat * request) → option (job nat * list (nat * request))).
Local Notation W := (server_weather weather (λ _, True)).
Local Notation T := (server_turn job_turn next).

Lemma all_calm z js w a : weather z z → W (Server z js w a) (Server z js w a).
Proof. intros Hz. rewrite <-(app_nil_r w) at 2. by apply passes. Qed.

Definition unanswered_in q (a : list reply) : Prop := ∀ r data, Reply 0 q r data ∉ a.

(** Others arrive for ever, one after the other, and are answered. *)
Lemma newest_starves (well : answer → Prop) q z z1 : next = newest_first →
  weather z z → weather z1 z1 →
  job_turn (Single 1 DoFlush) z [] z1 → job_turn (Single 1 DoFlush) z1 [Some [(Ok, [])]] z →
  ∀ n, ¬ ends_well W T (is_answered well 0 q) n (Server z [] [(0, q)] []).
Proof.
  intros -> Hz Hz1 Hbegins Hends n.
  apply (no_progress_on_a_way _ _ _ (λ s, ∃ a, unanswered_in q a ∧
    (s = Server z [] [(0, q)] a ∨ s = Server z [Single 1 DoFlush] [(0, q)] a ∨
     s = Server z1 [Single 1 DoFlush] [(0, q)] a))).
  - assert (∀ es (z : Z) js w a, unanswered_in q a → ¬ is_answered well 0 q es (Server z js w a)) as Hnot.
    { intros es z' js w a Ha (r&data&_&Hin). by apply (Ha r data). }
    intros s (a&Ha&[->|[->| ->]]).
    + exists (Server z [] ([(0, q)] ++ [(1, DoFlush)]) a). split; [by apply passes|right].
      do 2 eexists. split; [apply Takes, newest_taken|]. split; [by apply Hnot|]. exists a. split; [done|].
        auto.
    + exists (Server z [Single 1 DoFlush] [(0, q)] a). split; [by apply all_calm|right].
      do 2 eexists. split; [by apply GoesOn|]. split; [by apply Hnot|]. exists a. split; [done|]. auto.
    + exists (Server z1 [Single 1 DoFlush] [(0, q)] a). split; [by apply all_calm|right].
      assert (unanswered_in q (a ++ replies_of (Single 1 DoFlush) [(Ok, [])])) as Ha'.
      { intros r data [Hin|Hin%elem_of_list_singleton]%elem_of_app; [by apply (Ha r data)|done]. }
      do 2 eexists. split; [by eapply Replies|]. split; [by apply Hnot|]. eexists. split; [exact Ha'|by left].
  - exists []. split; [by intros r data ?%elem_of_nil|by left].
Qed.

(** The disk does not go on. *)
Lemma job_stuck (good : list () → server Z → Prop) j js w z n : weather z z →
  (∀ os z', ¬ job_turn j z os z') → ¬ ends_well W T good n (Server z (j :: js) w []).
Proof.
  intros Hz Hno. apply no_progress_blocked; [by apply all_calm|].
  intros es s Hs. inversion Hs; subst; eapply Hno; eassumption.
Qed.

(** A request is begun. *)
Lemma begins_then (well : answer → Prop) q z z1 n : next [(0, q)] = Some (Single 0 q, []) → weather z z →
  job_turn (Single 0 q) z [] z1 → (∀ n, ¬ ends_well W T (is_answered well 0 q) n (Server z1 [Single 0 q] []
    [])) →
  ¬ ends_well W T (is_answered well 0 q) n (Server z [] [(0, q)] []).
Proof.
  intros Hnext Hz Hbegins Hthen.
  assert (∀ es (s : server Z), replies s = [] → ¬ is_answered well 0 q es s) as Hnot.
  { intros es s Hs (?&?&_&Hin). rewrite Hs in Hin. by apply elem_of_nil in Hin. }
  destruct n as [|n]; [by intros []|]. intros Hends.
  destruct (Hends _ (all_calm _ _ _ _ Hz)) as [_ Hall].
  destruct (Hall _ _ (Takes _ _ _ _ _ _ _ Hnext)) as [Hg|[_ Hrest]]; [by apply Hnot in Hg|].
  destruct n as [|n]; [done|]. destruct (Hrest _ (all_calm _ _ _ _ Hz)) as [_ Hall1].
  destruct (Hall1 _ _ (GoesOn _ _ _ _ _ _ _ _ Hbegins)) as [Hg|[_ Hrest1]]; [by apply Hnot in Hg|].
  by eapply Hthen.
Qed.

(** It is refused, and nothing else is left to do. *)
Lemma refused_for_ever q z z1 r data n : r ≠ Ok → next [] = None → weather z z → weather z1 z1 →
  job_turn (Single 0 q) z [Some [(r, data)]] z1 →
  ¬ ends_well W T (is_answered (λ r, r = Ok) 0 q) n (Server z [Single 0 q] [] []).
Proof.
  intros Hr Hnext Hz Hz1 Hends Hn. destruct n as [|n]; [done|].
  destruct (Hn _ (all_calm _ _ _ _ Hz)) as [_ Hall].
  destruct (Hall _ _ (Replies _ _ _ _ _ _ _ _ _ Hends)) as [(?&?&->&[= <- <-]%elem_of_list_singleton)|
    [_ Hrest]];
    [done|].
  revert Hrest. apply no_progress_blocked; [by apply all_calm|].
  intros es s Hs. inversion Hs; subst. congruence.
Qed.
End Server.

Lemma flush_at_once `{!blocks} y places : run_request proved_programs y places DoFlush = Done (y, Ok, []).
Proof. done. Qed.

(** ** On one device *)

Section Device.
Context `{!blocks} {Y U : Type} (D : programs Y U) (places_for : Y → nat →
  option (list nat)) (collecting : U).
Import DiskMachine(Idle, Busy).
Local Notation device_turn := (device_turn D places_for collecting).
Local Notation assumed := DiskMachineProgress.assumed.
Implicit Types (y : Y) (m : medium block) (q : request).

Lemma device_begins id q y m places p : places_for y (length (data_of q)) = Some places →
  run_request D y places q = p → device_turn (Single id q) (Idle y, m) [] (Busy q p, m).
Proof. intros Hplaces <-. by apply (BeginsHere _ _ _ (Single id q)). Qed.

Lemma device_newest_starves (well : answer → Prop) q y m places :
  places_for y 0 = Some places → run_request D y places DoFlush = Done (y, Ok, []) →
  ∀ n, ¬ ends_well (server_weather assumed (λ _, True)) (server_turn device_turn newest_first)
    (is_answered well 0 q) n (Server (Idle y, m) [] [(0, q)] []).
Proof.
  intros Hplaces Hflush.
  apply (newest_starves _ _ _ _ _ _ (Busy DoFlush (Done (y, Ok, [])), m)); [done..|by eapply device_begins|].
  apply EndsOneHere.
Qed.

(** Refused at once. *)
Lemma device_refused q y m y1 e data places :
  next_job 10 [(0, q)] = Some (Single 0 q, []) → places_for y (length (data_of q)) = Some places →
  run_request D y places q = Done (y1, Refused e, data) →
  ∀ n, ¬ ends_well (server_weather assumed (λ _, True)) (server_turn device_turn (next_job 10))
    (is_answered (λ r, r = Ok) 0 q) n (Server (Idle y, m) [] [(0, q)] []).
Proof.
  intros Hq Hplaces Hrun n. eapply begins_then; [exact Hq|by split|by eapply device_begins|].
  clear n. intros n. eapply refused_for_ever; [| | | |apply EndsOneHere]; [done|done|by split|by split].
Qed.

(** It waits for what is not true of a digest. *)
Lemma device_waits (well : answer → Prop) q y m k places :
  next_job 10 [(0, q)] = Some (Single 0 q, []) → places_for y (length (data_of q)) = Some places →
  run_request D y places q = Assume false k →
  ∀ n, ¬ ends_well (server_weather (λ z z', z' = z) (λ _, True)) (server_turn device_turn (next_job 10))
    (is_answered well 0 q) n (Server (Idle y, m) [] [(0, q)] []).
Proof.
  intros Hq Hplaces Hrun n. eapply begins_then; [done|done|by eapply device_begins|].
  clear n. intros n. apply job_stuck; [done|]. intros os z Hz. inversion Hz; subst. done.
Qed.
End Device.

(** ** On mirrors *)

Section Leg.
Context `{!blocks} {Y U : Type} (D : programs Y U) (places_for : Y → nat →
  option (list nat)) (collecting : U).
Context (size : nat).
Local Notation job_turn := (job_turn D size places_for collecting).
Local Notation machine := (machine block Y).
Implicit Types (y : Y) (x : array block) (q : request) (z : machine).

Lemma leg_begins id q y ms c x h places p : places_for y (length (data_of q)) = Some places →
  on_leg size ms c (run_request D y places q) = p → job_turn (Single id q) (Idle y ms c, x, h) [] (Busy q p,
    x, h).
Proof. intros Hplaces <-. by apply (ServedLegProgress.Begins _ _ _ _ (Single id q)). Qed.

Lemma leg_newest_starves (well : answer → Prop) q y ms c x places :
  places_for y 0 = Some places → run_request D y places DoFlush = Done (y, Ok, []) → somebody_up x = true →
  ∀ n, ¬ ends_well (server_weather (weather 2) (λ _, True)) (server_turn job_turn newest_first)
    (is_answered well 0 q) n (Server (Idle y ms c, x, []) [] [(0, q)] []).
Proof.
  intros Hplaces Hflush Hup.
  apply (newest_starves _ _ _ _ _ _ (Busy DoFlush (Finish (ms, c, (y, Ok, []))), x, [])); [done| | |..].
  - by apply somebody_up_calm.
  - by apply somebody_up_calm.
  - eapply leg_begins; [done|]. by rewrite Hflush.
  - apply EndsOne.
Qed.

(** A program as it goes while nothing fails. *)
Lemma calmly_goes {A} calm (p : array_program block A) x p' x' : calmly calm p x = Some (p', x') →
  calm x' = true ∧ rtc (λ a b, calm a.2 = true ∧ agreed a.1 ∧ array_io a.1 a.2 b.1 b.2) (p, x) (p', x').
Proof.
  revert x. induction p as [r| | |i a k IH|i a b k IH|i k IH|ms c k IH|[] k IH]; simpl; intros x;
    destruct (calm x) eqn:Hx; try done; try (by intros [= <- <-]; split; [|apply rtc_refl]);
    try destruct (up (device_at x i)) eqn:Hup; intros Hp; apply IH in Hp as [Hcalm Hrest]; (split; [done|]);
    (eapply rtc_l; [|exact Hrest]); simpl; (split; [done|]); (split; [done|]);
    first [by apply write_io|by apply flush_io|by apply no_flush_io|by apply no_write_io;
      [|left]|by constructor].
Qed.

Context (weather : machine → machine → Prop) (calm : array block → bool).
Context (calm_weather : ∀ (c : control block Y) x, calm x = true → all_agreed c →
  weather (c, x, []) (c, x, [])).
Local Notation W := (server_weather weather (λ _, True)).
Local Notation T := (server_turn job_turn (next_job 10)).

Lemma busy_goes (well : answer → Prop) q p x p' x' n : calmly calm p x = Some (p', x') →
  ends_well W T (is_answered well 0 q) n (Server (Busy q p, x, []) [Single 0 q] [] []) →
  calm x' = true ∧
  ∃ n', ends_well W T (is_answered well 0 q) n' (Server (Busy q p', x', []) [Single 0 q] [] []).
Proof.
  intros [Hcalm Hgoes]%calmly_goes Hends. split; [done|].
  remember (p, x) as px eqn:Hpx. remember (p', x') as px' eqn:Hpx'. revert p x n Hpx Hends.
  induction Hgoes as [px0|px0 [p1 x1] px1 (Hup&Hagreed&Hio) _ IH]; intros p x n -> Hends; [simplify_eq;
    by exists n|].
  simpl in *. destruct n as [|n]; [done|].
  destruct (Hends _ (all_calm _ _ _ _ _ (calm_weather (Busy q p) x Hup Hagreed))) as [_ Hall].
  destruct (Hall _ _ (GoesOn _ _ _ _ _ _ _ _ (PerformsOne D size places_for collecting 0 q _ _ _ _ [] Hio)))
    as [(?&?&_&[]%elem_of_nil)|[_ Hrest]].
  by eapply (IH Hpx').
Qed.

Lemma begun_goes (well : answer → Prop) q y ms c x places p' x' n :
  next_job 10 [(0, q)] = Some (Single 0 q, []) → places_for y (length (data_of q)) = Some places →
  calmly calm (on_leg size ms c (run_request D y places q)) x = Some (p', x') →
  (calm x' = true → ∀ n,
    ¬ ends_well W T (is_answered well 0 q) n (Server (Busy q p', x', []) [Single 0 q] [] [])) →
  ¬ ends_well W T (is_answered well 0 q) n (Server (Idle y ms c, x, []) [] [(0, q)] []).
Proof.
  intros Hnext Hplaces Hgoes Hthen.
  assert (calm x = true) as Hx by (by eapply calmly_calm).
  eapply begins_then; [done|by apply calm_weather|by eapply leg_begins|]. clear n. intros n Hends.
  destruct (busy_goes _ _ _ _ _ _ _ Hgoes Hends) as [Hx' [n' Hn']]. by eapply Hthen.
Qed.

(** A program that stops, or that goes past the end of the devices, is never answered. *)
Lemma stopped_for_ever (well : answer → Prop) q p x n : p = Stop ∨ p = PastEnd → calm x = true →
  ¬ ends_well W T (is_answered well 0 q) n (Server (Busy q p, x, []) [Single 0 q] [] []).
Proof.
  intros Hp Hx. apply job_stuck; [apply calm_weather; [done|by destruct Hp as [->| ->]]|].
  intros os z Hz. inversion Hz; subst; destruct Hp as [Hp|Hp]; try done; subst;
    match goal with H : array_io _ _ _ _ |- _ => inversion H end.
Qed.

Lemma leg_refused q x ms c y e data n : calm x = true →
  ¬ ends_well W T (is_answered (λ r, r = Ok) 0 q) n
    (Server (Busy q (Finish (ms, c, (y, Refused e, data))), x, []) [Single 0 q] [] []).
Proof.
  intros Hx. eapply refused_for_ever; [| | | |apply EndsOne]; try done; by apply calm_weather.
Qed.
End Leg.

(** ** The disks *)

Definition new_device `{!blocks} {Y U} (D : programs Y U) trees g : option (Y * medium block) :=
  match execute (run_format D trees g) (Medium (λ _, zero_block) []) with
  | (Some y, m) => Some (y, m)
  | _ => None
  end.

Lemma new_device_formatted `{!blocks} {Y U} (D : programs Y U) trees g y m :
  new_device D trees g = Some (y, m) → DiskMachineShape.formatted_as D trees g (DiskMachine.Idle y, m).
Proof.
  unfold new_device. destruct (execute _ _) as [[y1|] m1] eqn:Hy; try done. intros [= <- <-].
  apply (formatted_from D _ _ _ _ _ Hy). apply ProvedDiskInvariant.untorn_unread.
Qed.

Lemma taken_alone `{!blocks} b : next_job 10 [(0, DoWrite 0 [b])] = Some (Single 0 (DoWrite 0 [b]), []).
Proof. done. Qed.

(** The request that waits on a disk that is served is never answered so. *)
Definition never_on_device `{!blocks} {Y U} (D : programs Y U) places_for collecting weather next
    (well : answer → Prop) q z : Prop := ∀ n,
  ¬ ends_well (server_weather weather (λ _, True))
    (power_turn (device_turn D places_for collecting) next is_open_here (DiskMachineProgress.recovery_turn D))
    (is_answered well 0 q) n (Server z [] [(0, q)] []).
Definition never_on_mirrors `{!blocks} {Y U} (D : programs Y U) size places_for collecting weather next
    (well : answer → Prop) q (z : machine block Y) : Prop := ∀ n,
  ¬ ends_well (server_weather weather (λ _, True))
    (power_turn (job_turn D size places_for collecting) next is_open (recovery_turn D size))
    (is_answered well 0 q) n (Server z [] [(0, q)] []).

(** While it is open, there is nothing else to do than to serve. *)
Lemma never_while_open `{!blocks} {Y U} (D : programs Y U) places_for collecting
    (weather : DiskMachine.machine Y → DiskMachine.machine Y → Prop) next (well : answer → Prop) q z :
  is_open_here z = true → (∀ z z', weather z z' → z'.1 = z.1) →
  (∀ n, ¬ ends_well (server_weather weather (λ _, True)) (server_turn (device_turn D places_for collecting)
    next) (is_answered well 0 q) n (Server z [] [(0, q)] [])) →
  never_on_device D places_for collecting weather next well q z.
Proof.
  intros Ho Hweather Hnever n Hends. apply (Hnever n).
  eapply (open_ends_iff _ _ is_open_here (DiskMachineProgress.recovery_turn D)); [| | |done|exact Hends].
  - intros j z1 os z2. by destruct 1; try destruct j.
  - intros z1 es z2. by destruct 1.
  - intros z1 z2 H12. unfold is_open_here. by rewrite (Hweather _ _ H12).
Qed.

Lemma never_while_open_on_mirrors `{!blocks} {Y U} (D : programs Y U) size places_for collecting
    (weather : machine block Y → machine block Y → Prop) next (well : answer → Prop) q z :
  is_open z = true → (∀ z z', weather z z' → z'.1.1 = z.1.1) →
  (∀ n, ¬ ends_well (server_weather weather (λ _, True)) (server_turn (job_turn D size places_for collecting)
    next) (is_answered well 0 q) n (Server z [] [(0, q)] [])) →
  never_on_mirrors D size places_for collecting weather next well q z.
Proof.
  intros Ho Hweather Hnever n Hends. apply (Hnever n).
  eapply (open_ends_iff _ _ is_open (recovery_turn D size)); [| | |done|exact Hends].
  - intros j z1 os z2. by destruct 1; try destruct j.
  - intros z1 es z2. by destruct 1.
  - intros z1 z2 H12. unfold is_open. by rewrite (Hweather _ _ H12).
Qed.

Lemma failures_keep_control `{!blocks} {Y} count (z z' : machine block Y) :
  rtc (one_fails count) z z' → z'.1.1 = z.1.1.
Proof. induction 1 as [|z z1 z2 (i&x'&_&_&->) _ IH]; [done|]. by rewrite IH. Qed.

Lemma weather_keeps_control `{!blocks} {Y} count (z z' : machine block Y) :
  weather count z z' → z'.1.1 = z.1.1.
Proof. intros [Hz _]. by eapply failures_keep_control. Qed.

Local Notation assumed := DiskMachineProgress.assumed.
Local Notation maps_on_device := (never_on_device (@proved_programs small) places_for Collect).
Local Notation trees_on_device := (never_on_device (@tree_programs small 1) tree_places_for (T.Keep Collect)).
Local Notation maps_on_mirrors size := (never_on_mirrors (@proved_programs small) size places_for Collect).
Local Notation trees_on_mirrors size :=
  (never_on_mirrors (@tree_programs small 1) size tree_places_for (T.Keep Collect)).
Local Notation maps_formatted := (DiskMachineShape.formatted_as (@proved_programs small) (0, 0)).
Local Notation trees_formatted := (DiskMachineShape.formatted_as (@tree_programs small 1) (1, 15)).
Local Notation maps_formatted_on_mirrors g size z := (LegDiskShape.formatted_as (cutting0 := mirrored)
  (torn := untorn) (@proved_programs small) 2 (0, 0) g size z).
Local Notation trees_formatted_on_mirrors g size z := (LegDiskShape.formatted_as (cutting0 := mirrored)
  (torn := untorn) (@tree_programs small 1) 2 (1, 15) g size z).
Local Notation any := (λ _ : answer, True).

(** *** A scheduler that takes the newest request starves the oldest one *)

Theorem newest_first_starves : ∃ z, maps_formatted shape_of_small z ∧
  maps_on_device assumed newest_first any one_block z.
Proof.
  destruct (new_device (@proved_programs small) (0, 0) shape_of_small) as [[y m]|] eqn:Hnew;
    [|by vm_compute in Hnew].
  exists (DiskMachine.Idle y, m). split; [by apply new_device_formatted|].
  apply never_while_open; [done|by intros ?? [-> _]|].
  by refine (device_newest_starves _ _ _ any one_block y m [] _ _).
Qed.

Theorem tree_newest_first_starves : ∃ z, trees_formatted shape_of_trees z ∧
  trees_on_device assumed newest_first any one_block z.
Proof.
  destruct (new_device (@tree_programs small 1) (1, 15) shape_of_trees) as [[y m]|] eqn:Hnew;
    [|by vm_compute in Hnew].
  exists (DiskMachine.Idle y, m). split; [by apply new_device_formatted|].
  apply never_while_open; [done|by intros ?? [-> _]|].
  by refine (device_newest_starves _ _ _ any one_block y m [] _ _).
Qed.

Definition up_when_new {Y U} (D : @programs small Y U) trees size g : bool :=
  match born D trees size g with Some (_, _, _, x) => somebody_up x | None => false end.

Theorem newest_first_starves_on_mirrors : ∃ z, maps_formatted_on_mirrors shape_of_small 20 z ∧
  maps_on_mirrors 20 (weather 2) newest_first any one_block z.
Proof.
  assert (up_when_new proved_programs (0, 0) 20 shape_of_small = true) as Hup by by vm_compute.
  unfold up_when_new in Hup. destruct (born _ _ _ _) as [[[[y ms] c] x]|] eqn:Hborn; [|done].
  exists (Idle y ms c, x, []). split; [by apply born_as|].
  apply never_while_open_on_mirrors; [done|apply weather_keeps_control|].
  by refine (leg_newest_starves _ _ _ _ any one_block y ms c x [] _ _ _).
Qed.

Theorem tree_newest_first_starves_on_mirrors : ∃ z, trees_formatted_on_mirrors shape_of_trees 40 z ∧
  trees_on_mirrors 40 (weather 2) newest_first any one_block z.
Proof.
  assert (up_when_new (@tree_programs small 1) (1, 15) 40 shape_of_trees = true) as Hup by by vm_compute.
  unfold up_when_new in Hup. destruct (born _ _ _ _) as [[[[y ms] c] x]|] eqn:Hborn; [|done].
  exists (Idle y ms c, x, []). split; [by apply born_as|].
  apply never_while_open_on_mirrors; [done|apply weather_keeps_control|].
  by refine (leg_newest_starves _ _ _ _ any one_block y ms c x [] _ _ _).
Qed.

(** *** A request that is not within the stated sizes is refused *)

Definition refused_when_new {Y U} (D : @programs small Y U) trees g q : bool :=
  match new_device D trees g with
  | Some (y, _) => match run_request D y [] q with Done (_, Refused _, _) => true | _ => false end
  | None => false
  end.

Lemma refused_on_device {Y U} (D : @programs small Y U) places_for collecting trees g q :
  refused_when_new D trees g q = true → next_job 10 [(0, q)] = Some (Single 0 q, []) →
  (∀ y, places_for y (length (data_of q)) = Some []) →
  ∃ z, DiskMachineShape.formatted_as D trees g z ∧
    never_on_device D places_for collecting assumed (next_job 10) (λ r, r = Ok) q z.
Proof.
  intros Hb Hnext Hplaces. unfold refused_when_new in Hb.
  destruct (new_device D trees g) as [[y m]|] eqn:Hnew; [|done].
  destruct (run_request D y [] q) as [[[y1 [|e| |]] data]| | | |] eqn:Hrun; try done.
  exists (DiskMachine.Idle y, m). split; [by apply new_device_formatted|].
  apply never_while_open; [done|by intros ?? [-> _]|].
  by refine (device_refused _ _ _ q y m y1 e data [] _ _ _).
Qed.

Theorem served_snapshots_run_out : ∃ z, maps_formatted (Geometry 4 2 2 6 2 0) z ∧
  maps_on_device assumed (next_job 10) (λ r, r = Ok) one_snapshot z.
Proof. by apply refused_on_device; [vm_compute|..]. Qed.

Theorem tree_served_snapshots_run_out : ∃ z, trees_formatted (Geometry 4 2 6 8 2 0) z ∧
  trees_on_device assumed (next_job 10) (λ r, r = Ok) one_snapshot z.
Proof. by apply refused_on_device; [vm_compute|..]. Qed.

(** What becomes of a request on a new disk on mirrors, while the devices are [calm]. *)
Definition goes_when_new {Y U} (D : @programs small Y U) (calm : array (@block small) →
  bool) change trees size g
    q places (P : array_program (@block small) (list nat * bool * (Y * answer * list (@block small))) →
      bool) :
    bool :=
  match born D trees size g with
  | Some (y, ms, c, x) =>
      match calmly calm (on_leg size ms c (run_request D y places q)) (change x) with
      | Some (p, x') => calm x' && P p
      | None => false
      end
  | None => false
  end.

Definition is_refused {Y} (p : array_program (@block small) (list nat * bool * (Y * answer * list (@block
  small)))) :
    bool :=
  match p with Finish (_, _, (_, Refused _, _)) => true | _ => false end.
Definition is_stopped {A} (p : array_program (@block small) A) : bool :=
  match p with Stop | PastEnd => true | _ => false end.

Lemma refused_on_mirrors {Y U} (D : @programs small Y U) places_for collecting trees size g q :
  goes_when_new D somebody_up id trees size g q [] is_refused = true →
  next_job 10 [(0, q)] = Some (Single 0 q, []) → (∀ y, places_for y (length (data_of q)) = Some []) →
  ∃ z, LegDiskShape.formatted_as (cutting0 := mirrored) (torn := untorn) D 2 trees g size z ∧
    never_on_mirrors D size places_for collecting (weather 2) (next_job 10) (λ r, r = Ok) q z.
Proof.
  intros Hb Hnext Hplaces. unfold goes_when_new in Hb.
  destruct (born D trees size g) as [[[[y ms] c] x]|] eqn:Hborn; [|done].
  destruct (calmly _ _ _) as [[p x']|] eqn:Hgoes; [|done]. apply andb_true_iff in Hb as [_ Hb].
  exists (Idle y ms c, x, []). split; [by apply born_as|].
  apply never_while_open_on_mirrors; [done|apply weather_keeps_control|]. intros n.
  destruct p as [[[ms1 c1] [[y1 [|e| |]] data]]| | | | | | |]; try done.
  eapply (begun_goes D places_for collecting size (weather 2) somebody_up);
    [|done|by apply Hplaces|exact Hgoes|].
  - intros. by apply somebody_up_calm.
  - intros Hx' n'. apply (leg_refused _ _ _ _ _ somebody_up); [|done]. intros. by apply somebody_up_calm.
Qed.

Theorem served_snapshots_run_out_on_mirrors : ∃ z, maps_formatted_on_mirrors (Geometry 4 2 2 6 2 0) 20 z ∧
  maps_on_mirrors 20 (weather 2) (next_job 10) (λ r, r = Ok) one_snapshot z.
Proof. by apply refused_on_mirrors; [vm_compute|..]. Qed.

Theorem tree_served_snapshots_run_out_on_mirrors : ∃ z,
  trees_formatted_on_mirrors (Geometry 4 2 6 8 2 0) 40 z ∧
  trees_on_mirrors 40 (weather 2) (next_job 10) (λ r, r = Ok) one_snapshot z.
Proof. by apply refused_on_mirrors; [vm_compute|..]. Qed.

(** *** Devices that are too small: an I/O past their end is never answered *)

Lemma stopped_on_mirrors {Y U} (D : @programs small Y U) places_for collecting
    (weather : machine (@block small) Y → machine (@block small) Y →
      Prop) calm change size q places y ms c x p
    x' :
  (∀ (c : control (@block small) Y) x, calm x = true → all_agreed c → weather (c, x, []) (c, x, [])) →
  (∀ y, weather (Idle y ms c, x, []) (Idle y ms c, change x, [])) →
  (∀ z1 z2 z3, weather z1 z2 → weather z2 z3 → weather z1 z3) → (∀ z z', weather z z' → z'.1.1 = z.1.1) →
  next_job 10 [(0, q)] = Some (Single 0 q, []) → places_for y (length (data_of q)) = Some places →
  calmly calm (on_leg size ms c (run_request D y places q)) (change x) = Some (p, x') →
  is_stopped p = true →
  never_on_mirrors D size places_for collecting weather (next_job 10) any q (Idle y ms c, x, []).
Proof.
  intros Hcalm Hchange Htrans Hcontrol Hnext Hplaces Hgoes Hstopped.
  apply never_while_open_on_mirrors; [done..|]. intros n Hends.
  assert (p = Stop ∨ p = PastEnd) as Hp by (destruct p; auto; done).
  destruct n as [|n]; [done|]. revert Hends.
  intros Hends. assert (ends_well (server_weather weather (λ _, True))
    (server_turn (job_turn D size places_for collecting) (next_job 10)) (is_answered any 0 q) (S n)
    (Server (Idle y ms c, change x, []) [] [(0, q)] [])) as Hafter.
  { intros s Hs. inversion Hs as [? z1 ? ? more ? Hz1 _]; subst. apply Hends. apply passes; [|done].
    by eapply Htrans. }
  revert Hafter. eapply (begun_goes D places_for collecting size weather calm); [done..|].
  intros Hx' n'. by apply (stopped_for_ever _ _ _ _ _ calm).
Qed.

Lemma devices_needed {Y U} (D : @programs small Y U) places_for collecting trees size g es :
  match born D trees size g with
  | Some (y0, ms0, c0, x0) =>
      match happens D size 2 es (Idle y0 ms0 c0) x0 with
      | Some (_, (Idle y ms c, x)) =>
          match places_for y 1 with
          | Some places =>
              match calmly somebody_up (on_leg size ms c (run_request D y places one_block)) x with
              | Some (p, _) => is_stopped p
              | None => false
              end
          | None => false
          end
      | _ => false
      end
  | None => false
  end = true →
  ∃ z0 tr z, LegDiskShape.formatted_as (cutting0 := mirrored) (torn := untorn) D 2 trees g size z0 ∧
    LegDiskMachine.lives (cutting0 := mirrored) D size 2 z0 tr z ∧ is_idle z ∧
    never_on_mirrors D size places_for collecting (weather 2) (next_job 10) any one_block z.
Proof.
  intros Hb. destruct (born _ _ _ _) as [[[[y0 ms0] c0] x0]|] eqn:Hborn; [|done].
  destruct (happens _ _ _ _ _ _) as [[tr [[y ms c| | | | | | |] x]]|] eqn:Hlife; try done.
  destruct (places_for y 1) as [places|] eqn:Hplaces; [|done].
  destruct (calmly _ _ _) as [[p x']|] eqn:Hgoes; [|done].
  exists (Idle y0 ms0 c0, x0, []), tr, (Idle y ms c, x, []).
  split; [by apply born_as|]. split; [by eapply happens_lives|]. split; [by do 5 eexists|].
  assert (somebody_up x = true) as Hup by (by eapply calmly_calm).
  eapply (stopped_on_mirrors _ _ _ _ somebody_up id); [..|exact Hplaces|exact Hgoes|exact Hb].
  - intros. by apply somebody_up_calm.
  - intros y'. by apply (somebody_up_calm 2 (Idle y' ms c)).
  - apply weather_trans.
  - apply weather_keeps_control.
  - apply taken_alone.
Qed.

Theorem served_small_devices_block : ∃ z0 tr z, maps_formatted_on_mirrors shape_of_small 8 z0 ∧
  LegDiskMachine.lives (cutting0 := mirrored) (@proved_programs small) 8 2 z0 tr z ∧ is_idle z ∧
  maps_on_mirrors 8 (weather 2) (next_job 10) any one_block z.
Proof. apply (devices_needed _ _ _ _ _ _ []). by vm_compute. Qed.

(** With trees, once a checkpoint writes nodes. *)
Theorem tree_served_small_devices_block : ∃ z0 tr z, trees_formatted_on_mirrors shape_of_trees 26 z0 ∧
  LegDiskMachine.lives (cutting0 := mirrored) (@tree_programs small 1) 26 2 z0 tr z ∧ is_idle z ∧
  trees_on_mirrors 26 (weather 2) (next_job 10) any one_block z.
Proof. apply (devices_needed _ _ _ _ _ _ full_log). by vm_compute. Qed.

(** *** While no member answers a request is not answered *)

Lemma members_needed {Y U} (D : @programs small Y U) places_for collecting trees size g :
  match born D trees size g with
  | Some (y, ms, c, x) =>
      match places_for y 1 with
      | Some places =>
          match calmly (λ _, true) (on_leg size ms c (run_request D y places one_block)) (all_fail x) with
          | Some (p, _) => is_stopped p
          | None => false
          end
      | None => false
      end
  | None => false
  end = true →
  ∃ z, LegDiskShape.formatted_as (cutting0 := mirrored) (torn := untorn) D 2 trees g size z ∧
    never_on_mirrors D size places_for collecting (rtc (one_fails 2)) (next_job 10) any one_block z.
Proof.
  intros Hb. destruct (born _ _ _ _) as [[[[y ms] c] x]|] eqn:Hborn; [|done].
  destruct (places_for y 1) as [places|] eqn:Hplaces; [|done].
  destruct (calmly _ _ _) as [[p x']|] eqn:Hgoes; [|done].
  exists (Idle y ms c, x, []). split; [by apply born_as|].
  eapply (stopped_on_mirrors _ _ _ _ (λ _, true) all_fail); [..|exact Hplaces|exact Hgoes|exact Hb].
  - intros. apply rtc_refl.
  - intros y'. eapply rtc_l; [apply (one_device_fails 2 (Idle y' ms c) _ [] 0); lia|].
    eapply rtc_l; [|apply rtc_refl]. exact (one_device_fails 2 (Idle y' ms c) (put_device x 0 _) [] 1
      ltac:(lia)).
  - intros z1 z2 z3 H1 H2. by etrans.
  - apply failures_keep_control.
  - apply taken_alone.
Qed.

Theorem served_requests_need_members : ∃ z, maps_formatted_on_mirrors shape_of_small 20 z ∧
  maps_on_mirrors 20 (rtc (one_fails 2)) (next_job 10) any one_block z.
Proof. apply members_needed. by vm_compute. Qed.

Theorem tree_served_requests_need_members : ∃ z, trees_formatted_on_mirrors shape_of_trees 40 z ∧
  trees_on_mirrors 40 (rtc (one_fails 2)) (next_job 10) any one_block z.
Proof. apply members_needed. by vm_compute. Qed.

(** *** Where what is assumed of a digest is not true, the program does not go on *)

Definition undigested_block : request := @DoWrite undigested 0 [zero_block].

Lemma digests_needed {Y U} (D : @programs undigested Y U) places_for collecting trees g :
  match new_device D trees g with
  | Some (y, _) =>
      match places_for y 1 with
      | Some places =>
          match run_request D y places undigested_block with Assume false _ => true | _ => false end
      | None => false
      end
  | None => false
  end = true →
  ∃ z, DiskMachineShape.formatted_as D trees g z ∧
    never_on_device D places_for collecting (λ z z', z' = z) (next_job 10) any undigested_block z.
Proof.
  intros Hb. destruct (new_device D trees g) as [[y m]|] eqn:Hnew; [|done].
  destruct (places_for y 1) as [places|] eqn:Hplaces; [|done].
  destruct (run_request D y places undigested_block) as [| | | |[] k] eqn:Hrun; try done.
  exists (DiskMachine.Idle y, m). split; [by apply new_device_formatted|].
  apply never_while_open; [done|by intros ?? ->|].
  refine (device_waits _ _ _ any undigested_block y m k places _ _ _); [apply taken_alone|done|done].
Qed.

Theorem served_requests_need_digests : @blocks_laws undigested ∧ ∃ z,
  DiskMachineShape.formatted_as (@proved_programs undigested) (0, 0) shape_of_small z ∧
  never_on_device (@proved_programs undigested) places_for Collect (λ z z', z' = z) (next_job 10) any
    undigested_block z.
Proof. split; [apply undigested_laws|]. apply digests_needed. by vm_compute. Qed.

Theorem tree_served_requests_need_digests : @blocks_laws undigested ∧ ∃ z,
  DiskMachineShape.formatted_as (@tree_programs undigested 1) (1, 15) shape_of_trees z ∧
  never_on_device (@tree_programs undigested 1) tree_places_for (T.Keep Collect) (λ z z', z' = z)
    (next_job 10) any undigested_block z.
Proof. split; [apply undigested_laws|]. apply digests_needed. by vm_compute. Qed.
