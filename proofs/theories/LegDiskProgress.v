(** Progress of a disk on a leg: as long as enough members answer, every request within the stated sizes is
answered [Ok] after a bounded number of turns, and so does recovery end, while other devices fail between any
two I/Os. This holds as long as what programs assume is true: of digests ([Codec.v]), and that of no block
more pieces are unreadable than the code can do without ([Leg.v]).

The scheduler is named: it proposes places, or asks for an upkeep that finds some first ([planned]). For the
disk with whole maps these are the first free places, and a collection ([ProvedDiskAnswers.v]);
[TreeLegDiskProgress.v] has the disk with trees. *)
From stdpp Require Import gmap strings relations.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec ProvedDisk ProvedDiskInvariant
  ProvedDiskMaps ProvedDiskAppend ProvedDiskRecovery ProvedDiskRequests ProvedDiskProgress ProvedDiskBounds
  ProvedDiskAnswers Devices Leg LegCorrect LegRefine RequestProgress LegProgress.
From LogDisk Require Import ProvedDiskMachine ProvedDiskRefinement LegDiskMachine LegDiskRefinement Progress.
Import DiskMachine(programs, crash_safe_programs, run_request, run_upkeep).

Section Machine.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type} (D : programs Y U).
Variables (size count : nat).
Local Notation machine := (machine C Y).
Local Notation control := (control C Y).
Implicit Types (x : array C) (h : list nat) (z : machine).

(** ** What may happen meanwhile *)

(** A device fails. *)
Definition one_fails z z' : Prop :=
  ∃ i x', i < count ∧ device_fails i z.1.2 x' ∧
    z' = (z.1.1, x', if powered z.1.1 then z.2 else i :: z.2).
(** What is assumed next is true. *)
Definition agreed {A} (p : array_program C A) : Prop :=
  match p with AssumeThat φ _ => φ = true | _ => True end.
Definition all_agreed (c : control) : Prop :=
  match c with
  | Busy _ p => agreed p
  | Group _ p => agreed p
  | Upkeep p => agreed p
  | Settling _ p => agreed p
  | Recovery _ p => agreed p
  | _ => True
  end.
(** Any of them do, but enough members are left. *)
Definition weather z z' : Prop := rtc one_fails z z' ∧ enough z'.1.2 ∧ all_agreed z'.1.1.

Lemma one_fails_is_move z z' : one_fails z z' → ∃ es, move D size count z es z'.
Proof. destruct z as [[c x] h]. intros (i&x'&Hi&Hx&->). eexists. by constructor. Qed.

Lemma weather_tolerable z z' : weather z z' → z'.1.1 = z.1.1 ∧ tolerable z.1.2 z'.1.2.
Proof.
  intros (Hz&Hs&_). assert (z'.1.1 = z.1.1 ∧ fails z.1.2 z'.1.2) as [? ?]; [|by split].
  clear Hs. induction Hz as [z|z z1 z2 (i&x'&_&Hx&->) _ [IH1 IH2]]; [by split; [|apply fails_refl]|].
  split; [done|]. eapply fails_trans; [by eapply device_fails_fails|done].
Qed.

(** ** I/O *)

Lemma array_io_possible {A} (p : array_program C A) x : agreed p →
  match p with Finish _ | Stop | PastEnd => True | _ => ∃ p' x', array_io p x p' x' end.
Proof.
  intros Hp. destruct p as [r| | |i a k|i a b k|i k|ms c k|[] k]; try done;
    try (by do 2 eexists; constructor);
    destruct (up (device_at x i)) eqn:Hup; do 2 eexists;
      first [by apply write_io|by apply flush_io|by apply no_flush_io|by apply no_write_io; [|left]].
Qed.

Lemma array_ends_io {A} n (Q : A → array C → Prop) p x x1 :
  array_ends n Q p x → tolerable x x1 →
  match p with
  | Finish r => Q r x1
  | Stop | PastEnd => False
  | _ => ∃ n', n = S n' ∧ ∀ p' x', array_io p x1 p' x' → array_ends n' Q p' x'
  end.
Proof.
  intros Hp H1. destruct p as [r| | |i a k|i a b k|i k|ms c k|φ k]; specialize (Hp x1 H1); simpl in Hp;
    try done;
    (destruct n as [|n]; [done|]; exists n; split; [done|]); intros p' x' Hio; inversion Hio; subst;
      repeat match goal with H : up _ = _ |- _ => rewrite H in Hp; clear H end;
      first [exact Hp|by apply Hp].
Qed.

(** A program that is under way ends, and then the machine does. *)
Lemma machine_ends {A E} (step : machine → list E → machine → Prop) good
    (under_way : array_program C A → control) n n' (Q : A → array C → Prop) p x h :
  (∀ p, all_agreed (under_way p) → agreed p) →
  (∀ p x p' x' h, array_io p x p' x' → step (under_way p, x, h) [] (under_way p', x', h)) →
  (∀ p x h es z, step (under_way p, x, h) es z → match p with
     | Finish _ => True
     | _ => ∃ p' x', array_io p x p' x' ∧ es = [] ∧ z = (under_way p', x', h) end) →
  (∀ r x h, (∀ x1, tolerable x x1 → Q r x1) → ends_well weather step good n' (under_way (Finish r), x, h)) →
  0 < n' → array_ends n Q p x → ends_well weather step good (n + n') (under_way p, x, h).
Proof.
  intros Hagreed Hgo Hstep Hend Hpos. revert p x h. induction n as [n IH] using lt_wf_ind. intros p x h Hp.
  assert (∀ x1, tolerable x x1 → agreed p → match p with Finish _ => True | _ => ∃ n1, n = S n1 ∧
    (∃ p' x', array_io p x1 p' x') ∧ ∀ p' x', array_io p x1 p' x' → array_ends n1 Q p' x' end) as Hio.
  { intros x1 H1 Ha. pose proof (array_ends_io _ _ _ _ _ Hp H1) as Hio.
    pose proof (array_io_possible p x1 Ha). destruct p; try done; destruct Hio as (n1&->&?); by exists n1. }
  assert ((∃ r, p = Finish r) ∨ ∀ x1, tolerable x x1 → agreed p → ∃ n1, n = S n1 ∧
    (∃ p' x', array_io p x1 p' x') ∧ ∀ p' x', array_io p x1 p' x' → array_ends n1 Q p' x') as [[r ->]|Hio'].
  { destruct p; [left; by eexists|right; exact Hio..]. }
  { apply ends_well_more with n'; [lia|]. apply Hend. intros x1 H1.
    exact (array_ends_io _ _ _ _ _ Hp H1). }
  destruct (n + n') as [|k] eqn:Hk; [lia|]. intros [[c1 x1] h1] Hz1. pose proof Hz1 as (_&_&Ha).
  apply weather_tolerable in Hz1 as [Hc H1]. simpl in Hc, H1, Ha. subst c1. apply Hagreed in Ha.
  destruct (Hio' x1 H1 Ha) as (n1&->&(p'&x'&Hone)&Hall). split; [do 2 eexists; by apply Hgo|].
  intros es z Hz. right. pose proof (Hstep _ _ _ _ _ Hz) as Hz'.
  assert (∃ p' x', array_io p x1 p' x' ∧ es = [] ∧ z = (under_way p', x', h1)) as (p2&x2&Htwo&->&->).
  { destruct p; try done. inversion Hone. }
  split; [done|]. replace k with (n1 + n') by lia. apply IH; [lia|by apply Hall].
Qed.

(** ** Recovery: the power returns, or a member does *)

Inductive recovery_turn : machine → list (entry block) → machine → Prop :=
  | Begins x h : recovery_turn (Off, x, h) [] (Recovery false (reopen D size x), x, h)
  | Reopens x h : recovery_turn (Lost, x, h) [] (Recovery true (reopen D size x), x, h)
  | Recovers on p x p' x' h :
      array_io p x p' x' → recovery_turn (Recovery on p, x, h) [] (Recovery on p', x', h)
  | Opens (on : bool) ms c y x h :
      recovery_turn (Recovery on (Finish (ms, c, Some y)), x, h)
        ((if on then [] else [Event (Crash Ok)]) ++ told h) (Idle y ms c, x, []).

Lemma recovery_turn_is_move z es z' : recovery_turn z es z' → move D size count z es z'.
Proof. destruct 1; by constructor. Qed.

End Machine.

(** ** Requests, under a scheduler that is named *)

Section Requests.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type} (D : programs Y U).
Variables (size count : nat).
Context (places_for : Y → nat → option (list nat)) (collecting : U).
Local Notation machine := (machine C Y).
Local Notation planned := (planned places_for).
Implicit Types (x : array C) (y : Y) (q : request) (ms h : list nat) (z : machine).

(** What the scheduler does with the request [q]. *)
Inductive turn q : machine → list (entry block) → machine → Prop :=
  | Collects y ms c x h :
      planned y q = None →
      turn q (Idle y ms c, x, h) [] (Upkeep (on_leg size ms c (run_upkeep D y collecting)), x, h)
  | Collected ms c y x h : turn q (Upkeep (Finish (ms, c, y)), x, h) [] (Idle y ms c, x, h)
  | Calls y ms c places x h :
      planned y q = Some places →
      turn q (Idle y ms c, x, h) [] (Busy q (on_leg size ms c (run_request D y places q)), x, h)
  | Performs p x p' x' h : array_io p x p' x' → turn q (Busy q p, x, h) [] (Busy q p', x', h)
  | Answers ms c y r data x h :
      turn q (Busy q (Finish (ms, c, (y, r, data))), x, h) [Event (event_of q r data)] (Idle y ms c, x, h).

Lemma turn_is_move q z es z' : turn q z es z' → move D size count z es z'.
Proof. destruct 1; by constructor. Qed.

Definition answered_ok q (es : list (entry block)) (_ : machine) : Prop :=
  ∃ data, es = [Event (event_of q Ok data)].

(** Four turns, and those of [n] I/Os: each block I/O is at most two on each member, and one more. *)
Definition turns_of (w n : nat) : nat := 4 + ios_on w n.

Context (shape : Y → geometry) (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).
Context (admissible : Y → request → Prop) (ios : Y → request → nat).

Context {laws : cutting_laws count} 
  (answers : answers_admissible D size places_for collecting represents admissible ios).

Lemma planned_ends y f d ms c x h q places :
  represents y f d → admissible y q → planned y q = Some places →
  each_up ms (reads_as size f) x → members x = ms → proper count ms →
  ends_well (weather count) (turn q) (answered_ok q) (S (ios_on (length ms) (ios y q) + 1))
    (Idle y ms c, x, h).
Proof.
  intros Hy Hq Hplan Hx Hms Hproper [[c1 x1] h1] [Hc [H1 _]]%weather_tolerable.
  simpl in Hc, H1. subst c1.
  apply (each_up_fails _ _ _ _ H1) in Hx. destruct H1 as (Hm1&_&_). rewrite Hms in Hm1.
  split; [do 2 eexists; by apply Calls|]. intros es z Hz. right. inversion Hz; simplify_eq. split; [done|].
  apply (machine_ends count (turn q) (answered_ok q) (Busy q) _ _ (λ r _, r.2.1.2 = Ok)); [done| | | |lia|].
  - intros. by apply Performs.
  - intros p x2 h2 es z2 Hstep. destruct p; [done|..]; inversion Hstep; subst; eauto.
  - intros [[ms2 c2] [[y2 r] data]] x2 h2 Hr [[c3 x3] h3] [Hc3 H3]%weather_tolerable. simpl in Hc3, H3.
    subst c3.
    specialize (Hr _ H3). simpl in Hr. subst r. split; [do 2 eexists; by apply Answers|].
    intros es z2 Hstep. left. inversion Hstep; subst; [|by eexists].
    match goal with H : array_io (Finish _) _ _ _ |- _ => inversion H end.
  - eapply (ends_on_leg size count _ _ _ _ (Medium f [])); [|done..|].
    + by eapply planned_within.
    + intros x2 ms2 c2 ? _. by eapply planned_answered.
Qed.

Lemma request_ends y f d ms c x h q :
  represents y f d → admissible y q → each_up ms (reads_as size f) x → members x = ms → proper count ms →
  ends_well (weather count) (turn q) (answered_ok q) (turns_of (length ms) (ios y q)) (Idle y ms c, x, h).
Proof.
  intros Hy Hq Hx Hms Hproper. unfold turns_of. destruct (planned y q) as [places|] eqn:Hplan.
  { eapply ends_well_more; [|by eapply planned_ends]. lia. }
  destruct (collected_planned _ _ _ _ _ _ _ answers y f d q Hy Hq Hplan)
    as (y'&Hcollect&Hy'&Hq'&[places Hplaces]&Hios).
  intros [[c1 x1] h1] [Hc [H1 _]]%weather_tolerable. simpl in Hc, H1. subst c1.
  apply (each_up_fails _ _ _ _ H1) in Hx. destruct H1 as (Hm1&_&_). rewrite Hms in Hm1.
  split; [do 2 eexists; by apply Collects|]. intros es z Hz. right. inversion Hz; simplify_eq. split; [done|].
  rewrite Hcollect. cbn [on_leg].
  intros [[c2 x2] h2] [Hc [H2 _]]%weather_tolerable. simpl in Hc, H2. subst c2.
  apply (each_up_fails _ _ _ _ H2) in Hx. destruct H2 as (Hm2&_&_). rewrite Hm1 in Hm2.
  split; [do 2 eexists; apply Collected|]. intros es z Hz2. right. inversion Hz2; simplify_eq. split; [done|].
  eapply ends_well_more; [|by eapply (planned_ends y')]. rewrite Hios. lia.
Qed.

(** In every state that is reached. *)
Theorem requests_are_answered n z tr y ms c x h q :
  crash_safe_programs D shape represents recoverable →
  formatted D size count n z → lives D size count z tr (Idle y ms c, x, h) → admissible y q →
  ends_well (weather count) (turn q) (answered_ok q) (turns_of (length ms) (ios y q)) (Idle y ms c, x, h).
Proof.
  intros Hsafe Hz Hlives Hq.
  destruct (reached_related D size count _ _ _ Hsafe _ _ _ _ Hz Hlives) as (v&S&Hserves&_).
  destruct Hserves as (f&d&_&[Hholds Hreads]&<-&_&Hy). eapply request_ends; try done.
  split; [by eapply holds_distinct|]. intros i. by eapply holds_bound.
Qed.
End Requests.

(** ** Recovery, of whichever programs *)

Section Recovery.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type} (D : programs Y U).
Variables (size count : nat).
Context {laws : cutting_laws count}.
Local Notation reopen := (reopen D size).
Implicit Types (x : array C) (h : list nat).

Definition open_again (es : list (entry block)) (z : machine C Y) : Prop :=
  ∃ y ms c x, z = (Idle y ms c, x, []).

(** Two turns, those of opening the leg, and those of [n] I/Os. *)
Definition turns_to_recover (w n : nat) : nat := 2 + opening_ios size w + ios_on w n.

Lemma holds_proper T M x : holds size count T M x → proper count (members x).
Proof. intros Hx. split; [by eapply holds_distinct|]. intros i. by eapply holds_bound. Qed.

Lemma reopen_ends n (on : bool) T M x h :
  holds size count T M x → (∀ f, may_leave M f → recovers_within D size n f) →
  ends_well (weather count) (recovery_turn D size) open_again
    (opening_ios size (length (members x)) + ios_on (length (members x)) n + 1)
    (Recovery on (reopen x), x, h).
Proof.
  intros Hx HM. pose proof (holds_proper _ _ _ Hx) as Hproper. destruct Hx as [Hwithin Hclean _ _ _ _].
  apply (machine_ends count (recovery_turn D size) open_again (Recovery on) _ _ (λ r _, is_Some r.2));
    [done| | | |lia|].
  - intros. by apply Recovers.
  - intros p x2 h2 es z2 Hstep. destruct p; [done|..]; inversion Hstep; subst; eauto.
  - intros [[ms2 c2] r] x2 h2 Hr [[c3 x3] h3] [Hc3 H3]%weather_tolerable. simpl in Hc3, H3. subst c3.
    destruct (Hr _ H3) as [y Hy]. simpl in Hy. subst r. split; [do 2 eexists; by apply Opens|].
    intros es z2 Hstep. left. inversion Hstep; subst; [|by do 4 eexists].
    match goal with H : array_io (Finish _) _ _ _ |- _ => inversion H end.
  - unfold LegDiskMachine.reopen. apply (ends_opened size count _ _ _ M); try done.
    intros f y ms' c Hf Hy Hms Hs. destruct (HM f Hf) as [Hn Hfound].
    pose proof (sublist_length _ _ Hs) as Hlen.
    eapply (ends_on_leg size count _ _ _ _ (Medium f [])); try done.
    + by eapply sublist_proper.
    + intros. by apply Hfound.
Qed.

(** From when the power returns, or a member does. *)
Lemma recovery_ends n c T M x h :
  c = Off ∨ c = Lost → holds size count T M x →
  (0 < length (members x) → ∀ f, may_leave M f → recovers_within D size n f) →
  ends_well (weather count) (recovery_turn D size) open_again (turns_to_recover (length (members x)) n)
    (c, x, h).
Proof.
  intros Hc Hx HM [[c1 x1] h1] [Hc1 [H1 Hs]]%weather_tolerable. simpl in Hc1, H1, Hs. subst c1.
  assert (∀ f, may_leave M f → recovers_within D size n f) as Hall.
  { apply HM. pose proof (needed_bounds (count := count) superblock).
    pose proof (filter_length (λ i, up (device_at x1 i) = true) (members x1)) as Hlen.
    unfold enough, up_members in Hs. destruct H1 as (Hm&_&_). rewrite Hm in *. lia. }
  pose proof (holds_fails size count _ _ _ _ H1 Hx) as Hx1. destruct H1 as (Hm&_&_). unfold turns_to_recover.
  destruct Hc as [-> | ->].
  - split; [do 2 eexists; apply Begins|]. intros es z1 Hz1. right. inversion Hz1; subst. split; [done|].
    eapply ends_well_more; [|by eapply reopen_ends]. rewrite Hm. lia.
  - split; [do 2 eexists; apply Reopens|]. intros es z1 Hz1. right. inversion Hz1; subst. split; [done|].
    eapply ends_well_more; [|by eapply reopen_ends]. rewrite Hm. lia.
Qed.

(** Once it is off, or too few members answer, what may be left is what recovery finds. *)
Lemma reached_recoverable shape represents recoverable n z tr c x h :
  crash_safe_programs D shape represents recoverable →
  formatted D size count n z → lives D size count z tr (c, x, h) → c = Off ∨ c = Lost →
  ∃ T M g, holds size count T M x ∧ ∀ f, may_leave M f → ∃ d, recoverable g d f.
Proof.
  intros Hsafe Hz Hlives Hc.
  destruct (reached_related D size count _ _ _ Hsafe _ _ _ _ Hz Hlives) as (v&S&Hserves&_).
  destruct Hc as [-> | ->].
  - destruct Hserves as (g&M&HM&Hx). exists (failed v ++ h), M, g. split; [done|].
    intros f (d&_&Hd)%HM. by exists d.
  - destruct Hserves as (g&(M&HM&Hx)&_). exists (failed v ++ h), M, g. split; [done|].
    intros f (d&_&Hd)%HM. by exists d.
Qed.
End Recovery.

(** ** The disk with whole maps *)

Section Progress.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block}.
Variables (size count : nat).
Local Notation machine := (machine C memory).
Local Notation D := proved_programs.
Local Notation reopen := (reopen D size).
Implicit Types (x : array C) (y : memory) (q : request) (ms h : list nat) (z : machine).
Context `{!blocks_laws} {laws : cutting_laws count}.

(** ** Recovery *)

Definition recovery_turns (w : nat) : nat := turns_to_recover size w (2 * size + 4).

(** ** Every state that is reached *)

Theorem whole_map_requests_are_answered n z tr y ms c x h q :
  formatted D size count n z → lives D size count z tr (Idle y ms c, x, h) → device_blocks (shape y) ≤ size →
  admissible y q →
  ends_well (weather count) (turn D size places_for Collect q) (answered_ok q)
    (turns_of (length ms) (request_ios (shape y) q)) (Idle y ms c, x, h).
Proof.
  intros Hz Hlives Hsize Hq.
  apply (requests_are_answered D size count places_for Collect shape represents recoverable (fits_here size)
    (λ y, request_ios (shape y)) (answers_here size) n z tr); [apply proved_programs_safe|done|done|by split].
Qed.

(** The disk is as large as a member's superblock says. *)
Definition devices_suffice x : Prop := ∀ i g, i ∈ members x →
  unpack superblock_codec (joined superblock [(i, read_block (store (device_at x i)) superblock)]) = Some g →
  device_blocks g ≤ size.

Lemma found_sizes T M x g :
  0 < size → holds size count T M x → (∀ f, may_leave M f → ∃ d, recoverable g d f) →
  0 < length (members x) →
  devices_suffice x → device_blocks g ≤ size.
Proof.
  intros Hpos Hholds HR Hmembers Hsize.
  destruct (members x) as [|i rest] eqn:Hms; [simpl in Hmembers; lia|].
  assert (i ∈ members x) as Hi by (rewrite Hms; by left).
  apply (Hsize i); [done|].
  assert (∀ f d, recoverable g d f → unpack superblock_codec (f superblock) = Some g ∧
    ¬ tears superblock) as
    Hsuper.
  { intros f1 d1 (y&<-&Hy). destruct (recoverable_holds _ _ _ Hy) as [m0 Hheld].
    split; [exact (at_superblock _ _ _ _ _ _ Hheld)|].
    destruct Hy as [[(m1&rs&Hdur&_) _]|[[(m1&rs&Hdur&_) _] _]];
      apply (log_unread _ _ _ _ _ _ _ Hdur); unfold superblock; lia. }
  set (f := read_block M). assert (may_leave M f) as Hf by (intros a; left; apply read_may_hold).
  destruct (HR f Hf) as (d&Hy). destruct (Hsuper f d Hy) as [_ Hwhole].
  destruct (holds_within _ _ _ _ _ Hholds i Hi superblock _ Hpos (read_may_hold _ _)) as [[? _]|(b&Hb&->)];
    [done|].
  assert (joined superblock [(i, piece superblock i b)] = b) as ->.
  { apply (joined_pieces (count := count) superblock b [i]); [apply NoDup_singleton| |].
    - intros j ->%elem_of_list_singleton. by eapply holds_bound.
    - by destruct (tears_or_whole (count := count) superblock). }
  set (f' := λ a, if decide (a = superblock) then b else f a).
  assert (may_leave M f') as Hf'.
  { intros a. unfold f'. destruct (decide (a = superblock)) as [->|]; [done|apply Hf]. }
  destruct (HR f' Hf') as (d'&Hy'). by apply (Hsuper f' d').
Qed.

Theorem recovery_is_finished n z tr c x h :
  formatted D size count n z → lives D size count z tr (c, x, h) → c = Off ∨ c = Lost → 0 < size →
  devices_suffice x →
  ends_well (weather count) (recovery_turn D size) open_again (recovery_turns (length (members x))) (c, x, h).
Proof.
  intros Hz Hlives Hc Hpos Hsize.
  destruct (reached_recoverable D size count _ _ _ _ _ _ _ _ _ proved_programs_safe Hz Hlives Hc)
    as (T&M&g&Hx&HM).
  apply (recovery_ends D size count (2 * size + 4) c T M x h Hc Hx). intros Hmembers f Hf.
  pose proof (found_sizes T M x g Hpos Hx HM Hmembers Hsize) as Hg. destruct (HM f Hf) as (d&Hd). split.
  - eapply (runs_within_more _ (recovery_ios g + 0)); [|by eapply within_recover].
    unfold recovery_ios, log_ios, device_blocks in *. lia.
  - by eapply recover_finds.
Qed.

End Progress.
