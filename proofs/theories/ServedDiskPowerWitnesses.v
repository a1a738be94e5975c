(** What progress of the disk that is served needs when the power fails: that the power stays on at last, that
what is opened is a disk, members that answer, digests that are what is assumed of them. And machines that do
not have it: one that refuses to open, and one that refuses every request. *)
From stdpp Require Import gmap strings relations.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec ProvedDisk ProvedDiskInvariant
  ProvedDiskRequests ProvedDiskMachine ProvedDiskExecution ProvedDiskBounds ProvedTreeDiskInvariant
  ProvedTreeDiskBounds ProvedTreeDiskTheorem ProvedTreeDiskExecution.
From LogDisk Require Import Progress ServedDiskScheduler ServedDiskPower ServedDiskPrograms ServedDiskProgress
  ServedLegProgress ServedDiskProgressWitnesses.
From LogDisk Require Import Devices Leg LegCorrect LegCode RequestProgress LegProgress LegDiskMachine
  LegDiskShape LegDiskExecution LegDiskProgress LegDiskProgressWitnesses ProvedDiskAnswers
  ProvedTreeDiskAnswers TreeRecoveryWitnesses.
From LogDisk Require DiskMachine DiskMachineShape DiskMachineProgress.
Import DiskMachine(programs, Programs, run_request, run_group, run_upkeep, run_recovery, run_format).

Local Instance mirrored `{blocks} : cutting block block := mirrors zero_block.
#[local] Existing Instance untorn.

(** ** Any server *)

Section Server.
Context `{!blocks} {Z E : Type} (job_turn : job nat → Z → list outcome → Z → Prop).
Context (next : list (nat * request) → option (job nat * list (nat * request))).
Context (is_open : Z → bool) (recovery_turn : Z → list E → Z → Prop) (weather : Z → Z → Prop).
Local Notation power_turn := (power_turn job_turn next is_open recovery_turn).
Implicit Types (s : server Z) (z : Z).

Lemma is_calm z js w a : weather z z → server_weather weather (λ _, True) (Server z js w a) (Server z js w a).
Proof. intros Hz. rewrite <-(app_nil_r w) at 2. by apply passes. Qed.

Context (recovery_quiet : ∀ z es z', recovery_turn z es z' → is_open z' = true ∨ es = []).

(** Nobody is answered by a disk that does not open. *)
Lemma answered_when_open (well : answer → Prop) q n z w : is_open z = false →
  (∀ z z', weather z z' → is_open z' = is_open z) →
  ends_well (server_weather weather (λ _, True)) power_turn (is_answered well 0 q) n (Server z [] w []) →
  ends_well weather recovery_turn (λ _ z', is_open z' = true) n z.
Proof.
  intros Ho Hweather. revert z Ho. induction n as [|n IH]; intros z Ho Hends; [done|]. intros z1 Hz1.
  assert (is_open z1 = false) as Ho1 by by rewrite (Hweather _ _ Hz1).
  destruct (Hends (Server z1 [] w [])) as [(es&s2&Hsome) Hall].
  { rewrite <-(app_nil_r w) at 2. by apply passes. }
  split.
  { inversion Hsome as [? ? ? Ho2|? es2 z2 ? ? Hturn]; subst; [simpl in Ho2; congruence|by do 2 eexists]. }
  intros es2 z2 Hturn. destruct (is_open z2) eqn:Ho2; [by left|right].
  destruct (recovery_quiet _ _ _ Hturn) as [?| ->]; [congruence|]. split; [done|].
  destruct (Hall _ _ (OpensDisk _ _ _ _ _ _ _ w [] Hturn)) as [(r&data&_&[]%elem_of_nil)|[_ ?]].
  by apply IH.
Qed.

(** Power cuts, any number of them, at any moment. *)
Context (cut : Z → Z → Prop).
Definition power_may_fail s s' : Prop := server_weather weather (λ _, True) s s' ∨ power_cut cut s s'.

Lemma power_must_stay (off : Z → Prop) good n z w a :
  (∀ z, off z → weather z z ∧ ∃ z1 es, recovery_turn z es z1 ∧ ∃ z2, cut z1 z2 ∧ off z2) →
  (off z ∧ w = [] ∧ a = [] ∨ ∃ z1, cut z z1 ∧ off z1) →
  (∀ z1 z2 es, off z1 → recovery_turn z1 es z2 → ¬ good [] (Server z2 [] [] [])) →
  ¬ ends_well power_may_fail power_turn good n (Server z [] w a).
Proof.
  intros Hoff Hz Hno. apply (no_progress_on_a_way _ _ _ (λ s, ∃ z js w a, s = Server z js w a ∧
    (off z ∧ js = [] ∧ w = [] ∧ a = [] ∨ ∃ z1, cut z z1 ∧ off z1))).
  - intros s (z2&js&w2&a2&->&Hz2).
    assert (∃ z1, power_may_fail (Server z2 js w2 a2) (Server z1 [] [] []) ∧ off z1) as (z1&Hmay&Hz1).
    { destruct Hz2 as [(Hz2&->&->&->)|(z1&Hcut&Hz1)]; [exists z2|exists z1; split; [by right;
      constructor|done]].
      split; [left; apply is_calm; by apply Hoff|done]. }
    exists (Server z1 [] [] []). split; [done|right].
    destruct (Hoff _ Hz1) as (_&z3&es&Hturn&Hagain). exists [], (Server z3 [] [] []).
    split; [by eapply OpensDisk|]. split; [by eapply Hno|]. exists z3, [], [], []. split; [done|by right].
  - exists z, [], w, a. split; [done|]. destruct Hz as [(?&?&?)|?]; [by left|by right].
Qed.
End Server.

(** ** The power must stay on at last *)

Section Device.
Context `{!blocks} {Y U : Type} (D : programs Y U).
Context (places_for : Y → nat → option (list nat)) (collecting : U).
Import DiskMachine(Idle, Off, Recovery, machine).
Local Notation recovery_turn := (DiskMachineProgress.recovery_turn D).
Local Notation assumed := DiskMachineProgress.assumed.
Local Notation turn := (power_turn (device_turn D places_for collecting) (next_job 10) is_open_here
  recovery_turn).

Lemma device_can_be_cut c (m : medium block) : c ≠ Off →
  power_fails_here D (c, m) (Off, Medium (read_block m) []).
Proof.
  intros Hc. split; [done|]. split; [done|]. eexists. apply DiskMachine.PowerCut; [done|].
  intros a. left. apply read_may_hold.
Qed.

Definition always_cut (z : machine Y) (good : list () → server (machine Y) → Prop) w : Prop := ∀ n,
  ¬ ends_well (power_may_fail assumed (power_fails_here D)) turn good n (Server z [] w []).

Lemma device_always_cut good c m w : c ≠ Off ∨ w = [] → (∀ p m, ¬ good [] (Server (Recovery p, m) [] [] [])) →
  always_cut (c, m) good w.
Proof.
  intros Hc Hno n. apply (power_must_stay _ _ _ _ _ _ (λ z, z.1 = Off)).
  - intros [c1 m1] Hc1. simpl in Hc1. subst c1. split; [done|]. do 2 eexists. split; [by constructor|].
    eexists. split; [by apply device_can_be_cut|done].
  - destruct c; try (right; eexists; split; [by apply device_can_be_cut|done]). left. by destruct Hc.
  - intros [c1 m1] z2 es Hc1 Hturn. simpl in Hc1. subst c1. inversion Hturn; subst. apply Hno.
Qed.

(** A disk that is off. *)
Lemma device_never_opens (weather : machine Y → machine Y → Prop) (well : answer → Prop) q m :
  (∀ z z', weather z z' → z'.1 = z.1) →
  (∀ n, ¬ ends_well weather recovery_turn (λ _ z, is_open_here z = true) n (Off, m)) →
  never_on_device D places_for collecting weather (next_job 10) well q (Off, m).
Proof.
  intros Hweather Hno n Hends. apply (Hno n). eapply answered_when_open; [|done| |exact Hends].
  - intros z es z'. destruct 1; first [by right|by left].
  - intros z z' Hz. unfold is_open_here. by rewrite (Hweather _ _ Hz).
Qed.
End Device.

Section Leg.
Context `{!blocks} {Y U : Type} (D : programs Y U).
Context (places_for : Y → nat → option (list nat)) (collecting : U).
Context (size : nat).
Local Notation machine := (machine block Y).
Local Notation recovery_turn := (recovery_turn D size).
Local Notation turn := (power_turn (job_turn D size places_for collecting) (next_job 10) is_open
  recovery_turn).

Lemma leg_can_be_cut c (x : array block) h : powered c = true ∨ (∃ p, c = Recovery false p) →
  power_fails D size 2 (c, x, h) (Off, powerless x, h).
Proof.
  intros Hc. split.
  { intros Hoff. unfold is_off in Hoff. simpl in Hoff. subst c. by destruct Hc as [?|[? ?]]. }
  eexists. split; [eexists; by apply PowerCut, loses_powerless|]. split; [done|]. apply rtc_refl.
Qed.

Definition leg_always_cut (z : machine) (good : list () → server machine → Prop) w : Prop := ∀ n,
  ¬ ends_well (power_may_fail (weather 2) (power_fails D size 2)) turn good n (Server z [] w []).

Lemma powerless_up (x : array block) : somebody_up (powerless x) = somebody_up x.
Proof. done. Qed.

Lemma leg_always_cut_on good c (x : array block) h w :
  powered c = true ∨ c = Off ∧ w = [] → somebody_up x = true →
  (∀ p x h, ¬ good [] (Server (Recovery false p, x, h) [] [] [])) → leg_always_cut (c, x, h) good w.
Proof.
  intros Hc Hup Hno n. apply (power_must_stay _ _ _ _ _ _ (λ z, z.1.1 = Off ∧ somebody_up z.1.2 = true)).
  - intros [[c1 x1] h1] [Hc1 Hx1]. simpl in Hc1, Hx1. subst c1. split; [by apply somebody_up_calm|].
    do 2 eexists. split; [by constructor|]. eexists. split; [apply leg_can_be_cut; right; by eexists|done].
  - destruct Hc as [Hc|[-> ->]]; [right|by left]. eexists. split; [apply leg_can_be_cut; by left|done].
  - intros [[c1 x1] h1] z2 es [Hc1 _] Hturn. simpl in Hc1. subst c1. inversion Hturn; subst. apply Hno.
Qed.

(** A disk that is off. *)
Lemma leg_never_opens (weather : machine → machine → Prop) (well : answer → Prop) q (x : array block) h :
  (∀ z z', weather z z' → z'.1.1 = z.1.1) →
  (∀ n, ¬ ends_well weather recovery_turn (λ _ z, is_open z = true) n (Off, x, h)) →
  never_on_mirrors D size places_for collecting weather (next_job 10) well q (Off, x, h).
Proof.
  intros Hweather Hno n Hends. apply (Hno n). eapply answered_when_open; [|done| |exact Hends].
  - intros z es z'. destruct 1; first [by right|by left].
  - intros z z' Hz. unfold is_open. by rewrite (Hweather _ _ Hz).
Qed.
End Leg.

Local Notation assumed := DiskMachineProgress.assumed.
Local Notation any := (λ _ : answer, True).
Local Notation maps_formatted := (DiskMachineShape.formatted_as (@proved_programs small) (0, 0)).
Local Notation trees_formatted := (DiskMachineShape.formatted_as (@tree_programs small 1) (1, 15)).
Local Notation maps_formatted_on_mirrors g size z := (LegDiskShape.formatted_as (cutting0 := mirrored)
  (torn := untorn) (@proved_programs small) 2 (0, 0) g size z).
Local Notation trees_formatted_on_mirrors g size z := (LegDiskShape.formatted_as (cutting0 := mirrored)
  (torn := untorn) (@tree_programs small 1) 2 (1, 15) g size z).

(** A new disk that is served with a request in its queue, if the power may fail for ever: the request is
never answered, and once it is off the disk never opens. *)
Lemma device_unanswered {Y U} (D : @programs small Y U) places_for collecting trees g :
  is_Some (new_device D trees g) →
  ∃ z tr m, DiskMachineShape.formatted_as D trees g z ∧
    shows (DiskMachine.disk_machine D) z tr (DiskMachine.Off, m) ∧
    always_cut D places_for collecting z (is_answered any 0 one_block) [(0, one_block)] ∧
    always_cut D places_for collecting (DiskMachine.Off, m) (λ _ s, is_open_here (disk_behind s) = true) [].
Proof.
  intros [[y m] Hnew].
  exists (DiskMachine.Idle y, m), ([Crash CutShort] ++ []), (Medium (read_block m) []). split_and!.
  - by apply new_device_formatted.
  - eapply shows_step; [|constructor]. apply (DiskMachine.PowerCut _ (DiskMachine.Idle y)); [done|].
    intros a. left. apply read_may_hold.
  - apply device_always_cut; [by left|]. by intros p m1 (?&?&_&?%elem_of_nil).
  - apply device_always_cut; [by right|]. by intros p m1 [=].
Qed.

Theorem served_power_must_stay : ∃ z tr m, maps_formatted shape_of_small z ∧
  shows (DiskMachine.disk_machine (@proved_programs small)) z tr (DiskMachine.Off, m) ∧
  always_cut (@proved_programs small) places_for Collect z (is_answered any 0 one_block) [(0, one_block)] ∧
  always_cut (@proved_programs small) places_for Collect (DiskMachine.Off, m)
    (λ _ s, is_open_here (disk_behind s) = true) [].
Proof. apply device_unanswered. vm_compute; by eexists. Qed.

Theorem tree_served_power_must_stay : ∃ z tr m, trees_formatted shape_of_trees z ∧
  shows (DiskMachine.disk_machine (@tree_programs small 1)) z tr (DiskMachine.Off, m) ∧
  always_cut (@tree_programs small 1) tree_places_for (T.Keep Collect) z (is_answered any 0 one_block)
    [(0, one_block)] ∧
  always_cut (@tree_programs small 1) tree_places_for (T.Keep Collect) (DiskMachine.Off, m)
    (λ _ s, is_open_here (disk_behind s) = true) [].
Proof. apply device_unanswered. vm_compute; by eexists. Qed.

Lemma mirrors_unanswered {Y U} (D : @programs small Y U) places_for collecting trees size g :
  up_when_new D trees size g = true →
  ∃ z tr x, LegDiskShape.formatted_as (cutting0 := mirrored) (torn := untorn) D 2 trees g size z ∧
    LegDiskMachine.lives (cutting0 := mirrored) D size 2 z tr (Off, x, []) ∧
    leg_always_cut D places_for collecting size z (is_answered any 0 one_block) [(0, one_block)] ∧
    leg_always_cut D places_for collecting size (Off, x, []) (λ _ s, is_open (disk_behind s) = true) [].
Proof.
  unfold up_when_new. destruct (born D trees size g) as [[[[y ms] c] x]|] eqn:Hborn; [|done]. intros Hup.
  exists (Idle y ms c, x, []), ([Event (Crash CutShort)] ++ []), (powerless x). split_and!.
  - by apply born_as.
  - eapply lives_step; [|constructor].
    apply (PowerCut D size 2 (Idle y ms c)); [by left|apply loses_powerless].
  - apply leg_always_cut_on; [by left|done|]. by intros p x1 h (?&?&_&?%elem_of_nil).
  - apply leg_always_cut_on; [by right|by rewrite powerless_up|]. by intros p x1 h [=].
Qed.

Theorem served_power_must_stay_on_mirrors : ∃ z tr x, maps_formatted_on_mirrors shape_of_small 20 z ∧
  LegDiskMachine.lives (cutting0 := mirrored) (@proved_programs small) 20 2 z tr (Off, x, []) ∧
  leg_always_cut (@proved_programs small) places_for Collect 20 z (is_answered any 0 one_block)
    [(0, one_block)] ∧
  leg_always_cut (@proved_programs small) places_for Collect 20 (Off, x, [])
    (λ _ s, is_open (disk_behind s) = true) [].
Proof. apply mirrors_unanswered. by vm_compute. Qed.

Theorem tree_served_power_must_stay_on_mirrors : ∃ z tr x, trees_formatted_on_mirrors shape_of_trees 40 z ∧
  LegDiskMachine.lives (cutting0 := mirrored) (@tree_programs small 1) 40 2 z tr (Off, x, []) ∧
  leg_always_cut (@tree_programs small 1) tree_places_for (T.Keep Collect) 40 z (is_answered any 0 one_block)
    [(0, one_block)] ∧
  leg_always_cut (@tree_programs small 1) tree_places_for (T.Keep Collect) 40 (Off, x, [])
    (λ _ s, is_open (disk_behind s) = true) [].
Proof. apply mirrors_unanswered. by vm_compute. Qed.

(** ** After a power cut, while no member answers, nobody is answered *)

Lemma members_needed_to_open {Y U} (D : @programs small Y U) places_for collecting trees size g :
  match born D trees size g with Some (_, _, _, x) => stops_without_members D size x | None => false end
    = true →
  ∃ z tr x, LegDiskShape.formatted_as (cutting0 := mirrored) (torn := untorn) D 2 trees g size z ∧
    LegDiskMachine.lives (cutting0 := mirrored) D size 2 z tr (Off, x, []) ∧
    never_on_mirrors D size places_for collecting (rtc (one_fails 2)) (next_job 10) any one_block
      (Off, x, []).
Proof.
  intros Hb. destruct (born D trees size g) as [[[[y ms] c] x]|] eqn:Hborn; [|done].
  destruct (born_off D _ _ _ _ _ _ _ Hborn) as (z&tr&Hz&Hlives). exists z, tr, (powerless x).
  split_and!; [done|done|]. apply leg_never_opens; [apply failures_keep_control|].
  apply stopped_stuck; [done|]. by intros p x1 h [=].
Qed.

Theorem served_recovery_needs_members : ∃ z tr x, maps_formatted_on_mirrors shape_of_small 20 z ∧
  LegDiskMachine.lives (cutting0 := mirrored) (@proved_programs small) 20 2 z tr (Off, x, []) ∧
  never_on_mirrors (@proved_programs small) 20 places_for Collect (rtc (one_fails 2)) (next_job 10) any
    one_block (Off, x, []).
Proof. apply members_needed_to_open. by vm_compute. Qed.

Theorem tree_served_recovery_needs_members : ∃ z tr x, trees_formatted_on_mirrors shape_of_trees 40 z ∧
  LegDiskMachine.lives (cutting0 := mirrored) (@tree_programs small 1) 40 2 z tr (Off, x, []) ∧
  never_on_mirrors (@tree_programs small 1) 40 tree_places_for (T.Keep Collect) (rtc (one_fails 2))
    (next_job 10) any one_block (Off, x, []).
Proof. apply members_needed_to_open. by vm_compute. Qed.

(** ** On a device that holds no disk nobody is answered *)

Lemma no_disk_unanswered {Y U} (D : @programs small Y U) places_for collecting m :
  found_no_disk D 1 m = true →
  never_on_device D places_for collecting assumed (next_job 10) any one_block (DiskMachine.Off, m).
Proof.
  intros Hb. apply device_never_opens; [by intros ?? [-> _]|]. intros n.
  by apply (no_disk_stuck _ _ 1); [intros ?? [=]|].
Qed.

Theorem served_recovery_needs_a_disk :
  never_on_device (@proved_programs small) places_for Collect assumed (next_job 10) any one_block
    (DiskMachine.Off, Medium (λ _, zero_block) []).
Proof. apply no_disk_unanswered. by vm_compute. Qed.

Theorem tree_served_recovery_needs_a_disk :
  never_on_device (@tree_programs small 1) tree_places_for (T.Keep Collect) assumed (next_job 10) any
    one_block (DiskMachine.Off, Medium (λ _, zero_block) []).
Proof. apply no_disk_unanswered. by vm_compute. Qed.

(** ** Where what is assumed of a digest is not true, recovery does not go on *)

Lemma digests_needed_to_open {Y U} (D : @programs undigested Y U) places_for collecting trees g :
  match new_device D trees g with
  | Some (_, m) => waits D 100 (Medium (read_block m) [])
  | None => false
  end = true →
  ∃ z tr m, DiskMachineShape.formatted_as D trees g z ∧
    shows (DiskMachine.disk_machine D) z tr (DiskMachine.Off, m) ∧
    never_on_device D places_for collecting (λ z z', z' = z) (next_job 10) any undigested_block
      (DiskMachine.Off, m).
Proof.
  intros Hb. destruct (new_device D trees g) as [[y m]|] eqn:Hnew; [|done].
  exists (DiskMachine.Idle y, m), ([Crash CutShort] ++ []), (Medium (read_block m) []). split_and!.
  - by apply new_device_formatted.
  - eapply shows_step; [|constructor]. apply (DiskMachine.PowerCut _ (DiskMachine.Idle y)); [done|].
    intros a. left. apply read_may_hold.
  - apply device_never_opens; [by intros ?? ->|]. intros n.
    by apply (waits_stuck _ _ 100); [intros ?? [=]|].
Qed.

Theorem served_recovery_needs_digests : @blocks_laws undigested ∧ ∃ z tr m,
  DiskMachineShape.formatted_as (@proved_programs undigested) (0, 0) shape_of_small z ∧
  shows (DiskMachine.disk_machine (@proved_programs undigested)) z tr (DiskMachine.Off, m) ∧
  never_on_device (@proved_programs undigested) places_for Collect (λ z z', z' = z) (next_job 10) any
    undigested_block (DiskMachine.Off, m).
Proof. split; [apply undigested_laws|]. apply digests_needed_to_open. by vm_compute. Qed.

Theorem tree_served_recovery_needs_digests : @blocks_laws undigested ∧ ∃ z tr m,
  DiskMachineShape.formatted_as (@tree_programs undigested 1) (1, 15) shape_of_trees z ∧
  shows (DiskMachine.disk_machine (@tree_programs undigested 1)) z tr (DiskMachine.Off, m) ∧
  never_on_device (@tree_programs undigested 1) tree_places_for (T.Keep Collect) (λ z z', z' = z)
    (next_job 10) any undigested_block (DiskMachine.Off, m).
Proof. split; [apply undigested_laws|]. apply digests_needed_to_open. by vm_compute. Qed.

(** ** A machine that refuses does not have this progress *)

(** It refuses to open: recovery ends, and there is no disk. *)
Definition refusing_to_open `{!blocks} {Y U} (D : programs Y U) : programs Y U :=
  Programs (run_request D) (run_group D) (run_upkeep D) (Done None) (run_format D).

(** It opens, and refuses whatever is asked for. *)
Definition refusing_requests `{!blocks} {Y U} (D : programs Y U) : programs Y U :=
  Programs (λ y _ _, Done (y, Refused NoSpace, [])) (λ y _ _, Done (y, false)) (run_upkeep D) (run_recovery D)
    (run_format D).

Lemma refusing_to_open_fails {Y U} (D : @programs small Y U) places_for collecting admissible ios together
    most trees g :
  is_Some (new_device D trees g) →
  ∃ z, DiskMachineShape.formatted_as (refusing_to_open D) trees g z ∧
    ¬ device_replies_to_all (refusing_to_open D) places_for collecting admissible ios together most z.
Proof.
  intros [[y m] Hnew]. exists (DiskMachine.Idle y, m).
  split; [by apply (new_device_formatted (refusing_to_open D) trees g)|]. intros Hall.
  destruct (Hall (Server (DiskMachine.Off, Medium (read_block m) []) [] [] [])) as [Hopens _].
  { apply starts. right. split; [|done]. eexists. eapply shows_step; [|constructor].
    apply (DiskMachine.PowerCut _ (DiskMachine.Idle y)); [done|]. intros a. left. apply read_may_hold. }
  specialize (Hopens eq_refl 0). revert Hopens. generalize (1 * (2 + ios DoRestart)). intros n Hends.
  revert Hends. apply (no_progress_on_a_way _ _ _ (λ ks, ks.1 = 0 ∧ ∃ m, 
    ks.2 = Server (DiskMachine.Off, m) [] [] [] ∨
    ks.2 = Server (DiskMachine.Recovery (Done None), m) [] [] [])).
  - intros [k s] [Hk (m1&Hs)]. simpl in Hk, Hs. subst k.
    exists (0, s). split.
    { constructor. destruct Hs as [->| ->]; by apply is_calm. }
    destruct Hs as [->| ->]; [right|left].
    + exists [], (0, Server (DiskMachine.Recovery (Done None), m1) [] [] []).
      split; [|split; [by intros [=]|]].
      * split; [done|]. eapply OpensDisk, (DiskMachineProgress.Begins (refusing_to_open D)).
      * split; [done|]. exists m1. by right.
    + intros es [k s] [_ Hturn]. simpl in Hturn. inversion Hturn as [? ? ? Ho|? ? ? ? ? Hrec]; subst; [done|].
      by inversion Hrec.
  - split; [done|]. eexists. by left.
Qed.

Theorem refusing_to_open_is_no_progress : ∃ z,
  DiskMachineShape.formatted_as (refusing_to_open (@proved_programs small)) (0, 0) shape_of_small z ∧
  ¬ device_replies_to_all (refusing_to_open (@proved_programs small)) places_for Collect admissible
    (@request_ios small shape_of_small) (@change_ios small shape_of_small) 10 z.
Proof. apply refusing_to_open_fails. vm_compute. by eexists. Qed.

Theorem tree_refusing_to_open_is_no_progress : ∃ z,
  DiskMachineShape.formatted_as (refusing_to_open (@tree_programs small 1)) (1, 15) shape_of_trees z ∧
  ¬ device_replies_to_all (refusing_to_open (@tree_programs small 1)) tree_places_for (T.Keep Collect)
    (tree_admissible 1 (tree_device_blocks shape_of_trees (1, 15)))
    (@tree_request_ios_of small (1, 15) shape_of_trees 1)
    (@tree_change_ios_of small (1, 15) shape_of_trees) 10 z.
Proof. apply refusing_to_open_fails. vm_compute. by eexists. Qed.

Lemma refusing_requests_fails {Y U} (D : @programs small Y U) places_for collecting
    (admissible : Y → request → Prop) ios together trees g y m q places :
  new_device D trees g = Some (y, m) → next_job 10 [(0, q)] = Some (Single 0 q, []) →
  places_for y (length (data_of q)) = Some places → admissible y q →
  ∃ z, DiskMachineShape.formatted_as (refusing_requests D) trees g z ∧
    ¬ device_replies_to_all (refusing_requests D) places_for collecting admissible ios together 10 z.
Proof.
  intros Hnew Hq Hplaces Hadm. exists (DiskMachine.Idle y, m).
  split; [by apply (new_device_formatted (refusing_requests D) trees g)|]. intros Hall.
  destruct (Hall (Server (DiskMachine.Idle y, m) [] [(0, q)] [])) as [_ Hreplies].
  { apply starts. left. split; [eexists; constructor|by do 2 eexists]. }
  destruct (Hreplies 0 q) as [Hwaits _]. destruct (Hwaits 0 eq_refl) as [_ Hends].
  clear -Hends Hq Hplaces Hadm.
  set (refused := DiskMachine.Busy q (Done (y, Refused NoSpace, []))).
  revert Hends. apply (no_progress_on_a_way _ _ _ (λ s,
    s = Server (DiskMachine.Idle y, m) [] [(0, q)] [] ∨
    s = Server (DiskMachine.Idle y, m) [Single 0 q] [] [] ∨
    s = Server (refused, m) [Single 0 q] [] [] ∨
    s = Server (DiskMachine.Idle y, m) [] [] [Reply 0 q (Refused NoSpace) []])); [|by left].
  assert (∀ c js w a, within_sizes_here admissible 0 q (Server (c, m) js w a) →
    DiskMachineProgress.all_agreed c →
    server_weather assumed (within_sizes_here admissible 0 q) (Server (c, m) js w a) (Server (c, m) js w a))
    as Hcalm.
  { intros c js w a Hwithin Hc. rewrite <-(app_nil_r w) at 2. apply passes; [done|]. by rewrite app_nil_r. }
  intros s Hs. exists s. split.
  { destruct Hs as [->|[->|[->| ->]]]; apply Hcalm; try done; intros js y1 m1 Hjs [=]; by subst. }
  destruct Hs as [->|[->|[->| ->]]]; [right|right|right|left].
  - do 2 eexists. split; [apply Serves; [done|by apply Takes]|]. split; [|by right; left].
    by intros (r&data&_&?%elem_of_nil).
  - do 2 eexists. split; [apply Serves; [done|]; eapply GoesOn; by apply (BeginsHere _ _ _ (Single 0 q))|].
    split; [|by right; right; left]. by intros (r&data&_&?%elem_of_nil).
  - do 2 eexists. split; [apply Serves; [done|]; eapply Replies, EndsOneHere|].
    split; [|by right; right; right]. by intros (r&data&->&[=]%elem_of_list_singleton).
  - intros es s2 Hturn. inversion Hturn as [? ? ? _ Hserves|? ? ? ? ? Hrec]; subst; [inversion Hserves|].
    + done.
    + inversion Hrec.
Qed.

Definition admitted_when_new : bool :=
  match new_device (@proved_programs small) (0, 0) shape_of_small with
  | Some (y, _) => admissible_here y one_block && bool_decide (is_Some (places_for y 1))
  | None => false
  end.

Theorem refusing_requests_is_no_progress : ∃ z,
  DiskMachineShape.formatted_as (refusing_requests (@proved_programs small)) (0, 0) shape_of_small z ∧
  ¬ device_replies_to_all (refusing_requests (@proved_programs small)) places_for Collect admissible
    (@request_ios small shape_of_small) (@change_ios small shape_of_small) 10 z.
Proof.
  assert (admitted_when_new = true) as Hb by by vm_compute. unfold admitted_when_new in Hb.
  destruct (new_device _ _ _) as [[y m]|] eqn:Hnew; [|done].
  apply andb_true_iff in Hb as [Hadm [places Hplaces]%bool_decide_eq_true].
  eapply refusing_requests_fails; [done|apply taken_alone|done|by apply admissible_here_exact].
Qed.
