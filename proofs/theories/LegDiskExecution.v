(** Executions of a proved disk on a leg, computed. On mirrors, of the one whose maps are whole: its theorem
is not vacuous, and it needs the record of the members, and blocks that give back what was put in. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk RecordedTrace Checker CheckerCorrect Medium Codec ByteBlocks
  ProvedDisk.
From LogDisk Require Import ProvedDiskRequests ProvedDiskInvariant ProvedDiskMachine ProvedDiskExecution.
From LogDisk Require Import Devices Leg LegCode LegDiskMachine.
Import DiskMachine(programs, run_request, run_group, run_upkeep, run_format).

(** ** Programs and devices that do as they are told *)

Section Runs.
Context {C A : Type}.

(** The whole program, or so many I/Os of it. *)
Fixpoint ran (p : array_program C A) (x : array C) : array_program C A * array C :=
  match p with
  | Finish _ | Stop | PastEnd => (p, x)
  | ReadFrom i a k => ran (k (answer_of_read x i a)) x
  | WriteTo i a b k => if up (device_at x i) then ran (k true) (written x i a b) else ran (k false) x
  | FlushOf i k => if up (device_at x i) then ran (k true) (flushed x i) else ran (k false) x
  | SetMembers ms c k => ran k (Array (device_at x) ms c)
  | AssumeThat φ k => if φ then ran k x else (p, x)
  end.
Fixpoint ran_partly (n : nat) (p : array_program C A) (x : array C) :
    array_program C A * array C :=
  match n, p with
  | 0, _ | _, (Finish _ | Stop | PastEnd) => (p, x)
  | S n, ReadFrom i a k => ran_partly n (k (answer_of_read x i a)) x
  | S n, WriteTo i a b k =>
      if up (device_at x i) then ran_partly n (k true) (written x i a b) else ran_partly n (k false) x
  | S n, FlushOf i k =>
      if up (device_at x i) then ran_partly n (k true) (flushed x i) else ran_partly n (k false) x
  | S n, SetMembers ms c k => ran_partly n k (Array (device_at x) ms c)
  | S n, AssumeThat φ k => if φ then ran_partly n k x else (p, x)
  end.

(** Device 0 keeps what it had not flushed, the others lose it. *)
Definition powerless (x : array C) : array C :=
  Array (λ i, Device (up (device_at x i))
    (Medium (if decide (i = 0) then read_block (store (device_at x i)) else stable (store (device_at x i)))
      []))
    (members x) (clean x).
Definition failing (i : nat) (x : array C) : array C :=
  put_device x i (Device false (Medium (stable (store (device_at x i))) [])).
End Runs.

Section Scripts.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type} (D : programs Y U).
Variables (size count : nat).
Local Notation control := (control C Y).
Local Notation reopen := (reopen D size).

(** What happens to a machine that is idle, or lost. *)
Inductive happening :=
  | Asks (q : request) (places : list nat)
  | AsksAll (ws : list (nat * list block)) (places : list nat)    (* several writes at once *)
  | Keeps (u : U)
  | Fails (i : nat)
  | Returns (i : nat)
  | Gets (i : nat) (p : C)                  (* another device, with [p] everywhere *)
  | Settles
  | Breaks (q : request) (places : list nat) (ios i : nat)  (* after so many I/Os of it, the device fails *)
  | Cuts (q : request) (places : list nat) (ios : nat)    (* in a request, after so many I/Os *)
  | CutsAll (ws : list (nat * list block)) (places : list nat) (ios : nat)
  | CutsUpkeep (u : U) (ios : nat)
  | Opens.

Definition after_opening (on : bool) (x : array C) : option (list (entry block) * (control * array C)) :=
  let shown := if on then [] else [Event (Crash Ok)] in
  match ran (reopen x) x with
  | (Finish (ms, c, Some y), x) => Some (shown, (Idle y ms c, x))
  | (Stop, x) => Some (shown, (Lost, x))
  | _ => None
  end.

Definition happens_once (e : happening) (c : control) (x : array C) :
    option (list (entry block) * (control * array C)) :=
  match e, c with
  | Asks q places, Idle y ms cl =>
      match ran (on_leg size ms cl (run_request D y places q)) x with
      | (Finish (ms, cl, (y, r, data)), x) => Some ([Event (event_of q r data)], (Idle y ms cl, x))
      | (Stop, x) => Some ([when_lost q], (Lost, x))
      | _ => None
      end
  | Asks q _, Lost => Some ([when_lost q], (Lost, x))
  | AsksAll ws places, Idle y ms cl =>
      match ran (on_leg size ms cl (run_group D y places ws)) x with
      | (Finish (ms, cl, (y, true)), x) => Some (Event <$> writes_shown ws Ok, (Idle y ms cl, x))
      | _ => None
      end
  | Keeps u, Idle y ms cl =>
      match ran (on_leg size ms cl (run_upkeep D y u)) x with
      | (Finish (ms, cl, y), x) => Some ([], (Idle y ms cl, x))
      | (Stop, x) => Some ([], (Lost, x))
      | _ => None
      end
  | Fails i, (Idle _ _ _ | Lost) => if decide (i < count) then Some ([Fail i Ok], (c, failing i x)) else None
  | Returns i, (Idle _ _ _ | Lost) => if decide (i < count) then Some ([Return i Ok], (c,
    comes_back i x)) else None
  | Gets i p, Idle y ms cl =>
      if decide (i < count ∧ fewest ≤ length (others i ms)) then
        Some ([Replace i Ok], (Idle y (others i ms) cl, replaced i (λ _, p) (others i ms) cl x))
      else None
  | Breaks q places ios i, Idle y ms cl =>
      let z := ran_partly ios (on_leg size ms cl (run_request D y places q)) x in
      if decide (i < count) then
        match ran z.1 (failing i z.2) with
        | (Finish (ms, cl, (y, r, data)), x) =>
            Some ([Fail i Ok; Event (event_of q r data)], (Idle y ms cl, x))
        | (Stop, x) => Some ([Fail i Ok; when_lost q], (Lost, x))
        | _ => None
        end
      else None
  | Settles, Idle y ms cl =>
      match ran (settle_leg size count ms cl) x with
      | (Finish (ms, cl), x) => Some ([Settle Ok], (Idle y ms cl, x))
      | _ => None
      end
  | Cuts q places ios, Idle y ms cl =>
      let x := powerless (ran_partly ios (on_leg size ms cl (run_request D y places q)) x).2 in
      '(shown, z) ← after_opening false x; Some (Event (event_of q CutShort []) :: shown, z)
  | CutsAll ws places ios, Idle y ms cl =>
      let x := powerless (ran_partly ios (on_leg size ms cl (run_group D y places ws)) x).2 in
      '(shown, z) ← after_opening false x;
      Some (((Event <$> writes_shown ws UnknownOutcome) ++ [Event (Crash CutShort)]) ++ shown, z)
  | CutsUpkeep u ios, Idle y ms cl =>
      let x := powerless (ran_partly ios (on_leg size ms cl (run_upkeep D y u)) x).2 in
      '(shown, z) ← after_opening false x; Some (Event (Crash CutShort) :: shown, z)
  | Opens, Lost => after_opening true x
  | _, _ => None
  end.

(** What is shown, and the machine in the end. *)
Fixpoint happens (es : list happening) (c : control) (x : array C) :
    option (list (entry block) * (control * array C)) :=
  match es with
  | [] => Some ([], (c, x))
  | e :: es =>
      '(shown, (c, x)) ← happens_once e c x; '(rest, z) ← happens es c x; Some (shown ++ rest, z)
  end.

Notation lives := (lives D size count).
Notation move := (move D size count).

Lemma lives_quiet z z' tr z'' : move z [] z' → lives z' tr z'' → lives z tr z''.
Proof. intros Hm Htr. change tr with ([] ++ tr). by econstructor. Qed.

Lemma lives_ran {A} (into : array_program C A → control) (p : array_program C A) x :
  (∀ p x p' x', array_io p x p' x' → move (into p, x, []) [] (into p', x', [])) →
  lives (into p, x, []) [] (into (ran p x).1, (ran p x).2, []).
Proof.
  intros Hio. revert x. induction p as [r| | |i a k IH|i a b k IH|i k IH|ms c k IH|[] k IH]; intros x; simpl;
    try constructor; try destruct (up (device_at x i)) eqn:Hup;
    (eapply lives_quiet; [apply Hio|apply IH]); by constructor; auto; left.
Qed.

Lemma lives_ran_partly {A} (into : array_program C A → control) n (p : array_program C A) x :
  (∀ p x p' x', array_io p x p' x' → move (into p, x, []) [] (into p', x', [])) →
  lives (into p, x, []) [] (into (ran_partly n p x).1, (ran_partly n p x).2, []).
Proof.
  intros Hio. revert p x. induction n as [|n IH]; intros p x; [destruct p; constructor|].
  destruct p as [r| | |i a k|i a b k|i k|ms c k|[] k]; simpl; try constructor;
    try destruct (up (device_at x i)) eqn:Hup;
    (eapply lives_quiet; [apply Hio|apply IH]); by constructor; auto; left.
Qed.

Lemma loses_powerless (x : array C) : loses_power x (powerless x).
Proof.
  split_and!; [done|done|]. intros i. simpl. eexists. split; [|done]. apply survives_kept.
  destruct (decide (i = 0)); [|by left]. intros a. apply read_may_hold.
Qed.

Lemma lives_opening (on : bool) x shown c' x' :
  after_opening on x = Some (shown, (c', x')) → lives (Recovery on (reopen x), x, []) shown (c', x', []).
Proof.
  unfold after_opening. pose proof (lives_ran (Recovery on) (reopen x) x) as Hran.
  destruct (ran _ x) as [[[[ms c] [y|]]| | | | | | |] x1]; try done; intros [= <- <- <-];
    change (if on then [] else [Event (Crash Ok)]) with ([] ++ (if on then [] else [@Event block (Crash
      Ok)]));
    (eapply lives_app; [apply Hran; by constructor|]).
  - pose proof (Recovered D size count on ms c y x1 []) as Hm. simpl in Hm. rewrite app_nil_r in Hm.
    by apply lives_one.
  - pose proof (RecoveryStops D size count on x1 []) as Hm. simpl in Hm. rewrite app_nil_r in Hm.
    by apply lives_one.
Qed.

Lemma happens_once_lives e c x shown c' x' :
  happens_once e c x = Some (shown, (c', x')) → lives (c, x, []) shown (c', x', []).
Proof.
  assert (∀ i x, i < count → ∀ c, powered c = true →
    lives (c, x, []) [Fail i Ok] (c, failing i x, [])) as Hfail.
  { clear x. intros i x Hi c1 Hc. pose proof (DeviceFails D size count c1 i x (failing i x) [] Hi) as Hm.
    rewrite Hc in Hm.
    apply lives_one, Hm. eexists. split; [|done]. eexists. split; [|done]. intros a. by left; left. }
  destruct e as [q places|ws places|u|i|i|i p| |q places ios i|q places ios|ws places ios|u ios|],
    c as [y ms cl| | | | | | |];
    simpl; try done.
  - pose proof (lives_ran (Busy q) (on_leg size ms cl (run_request D y places q)) x) as Hran.
    destruct (ran _ x) as [[[[ms1 c1] [[y1 r] data]]| | | | | | |] x1]; try done; intros [= <- <- <-];
      (eapply lives_quiet; [constructor|]); simpl in Hran.
    + change [Event (event_of q r data)] with ([] ++ [Event (event_of q r data)]).
      eapply lives_app; [apply Hran; by constructor|]. apply lives_one. constructor.
    + change [when_lost q] with ([] ++ [when_lost q]).
      eapply lives_app; [apply Hran; by constructor|]. apply lives_one. constructor.
  - intros [= <- <- <-]. apply lives_one. constructor.
  - pose proof (lives_ran (Group ws) (on_leg size ms cl (run_group D y places ws)) x) as Hran.
    destruct (ran _ x) as [[[[ms1 c1] [y1 []]]| | | | | | |] x1]; try done. intros [= <- <- <-].
    eapply lives_quiet; [apply (CallGroup D _ _ y ms cl ws places)|].
    match goal with |- LegDiskMachine.lives _ _ _ _ ?tr _ => change tr with ([] ++ tr) end.
    eapply lives_app; [apply Hran; by constructor|]. apply lives_one, GroupAnswer.
  - pose proof (lives_ran Upkeep (on_leg size ms cl (run_upkeep D y u)) x) as Hran.
    destruct (ran _ x) as [[[[ms1 c1] y1]| | | | | | |] x1]; try done; intros [= <- <- <-];
      (eapply lives_quiet; [apply (Maintain D _ _ y ms cl u)|]);
      change [] with ([] ++ @nil (entry block)) at 2;
      (eapply lives_app; [apply Hran; by constructor|]); apply lives_one; constructor.
  - destruct (decide _); [|done]. intros [= <- <- <-]. by apply Hfail.
  - destruct (decide _); [|done]. intros [= <- <- <-]. by apply Hfail.
  - destruct (decide _); [|done]. intros [= <- <- <-]. apply lives_one. by constructor.
  - destruct (decide _); [|done]. intros [= <- <- <-]. apply lives_one. by constructor.
  - destruct (decide _) as [[Hi Hfew]|]; [|done]. intros [= <- <- <-]. apply lives_one. by constructor.
  - pose proof (lives_ran (Settling y) (settle_leg size count ms cl) x) as Hran.
    destruct (ran _ x) as [[[ms1 c1]| | | | | | |] x1]; try done. intros [= <- <- <-].
    eapply lives_quiet; [apply StartSettle|]. change [Settle Ok] with ([] ++ [@Settle block Ok]).
    eapply lives_app; [apply Hran; by constructor|]. apply lives_one. constructor.
  - set (z := ran_partly ios _ x). destruct (decide (i < count)) as [Hi|]; [|done].
    pose proof (lives_ran (Busy q) z.1 (failing i z.2)) as Hran.
    assert (∀ tr z', lives (Busy q z.1, failing i z.2, []) tr z' →
      lives (Idle y ms cl, x, []) (Fail i Ok :: tr) z') as Hbusy.
    { intros tr z' Hz. eapply lives_quiet; [apply (Call D _ _ y ms cl q places)|].
      change (Fail i Ok :: tr) with ([] ++ [Fail i Ok] ++ tr).
      eapply lives_app; [apply (lives_ran_partly (Busy q) ios); by constructor|].
      eapply lives_app; [by apply (Hfail i z.2 Hi (Busy q z.1))|exact Hz]. }
    destruct (ran z.1 _) as [[[[ms1 c1] [[y1 r] data]]| | | | | | |] x1]; try done; intros [= <- <- <-];
      apply Hbusy; simpl in Hran.
    + change [Event (event_of q r data)] with ([] ++ [Event (event_of q r data)]).
      eapply lives_app; [apply Hran; by constructor|]. apply lives_one. constructor.
    + change [when_lost q] with ([] ++ [when_lost q]).
      eapply lives_app; [apply Hran; by constructor|]. apply lives_one. constructor.
  - intros ([shown1 [c1 x1]]&Hopen%lives_opening&[= <- <- <-])%bind_Some. eapply lives_quiet; [constructor|].
    change (Event (event_of q CutShort []) :: shown1) with ([] ++ [Event (event_of q CutShort [])] ++ shown1).
    eapply lives_app; [apply (lives_ran_partly (Busy q) ios); by constructor|].
    eapply lives_app; [|eapply lives_quiet; [apply PowerOn|exact Hopen]].
    apply lives_one. eapply (PowerCut D size count (Busy q _)); [by left|apply loses_powerless].
  - intros ([shown1 [c1 x1]]&Hopen%lives_opening&[= <- <- <-])%bind_Some.
    eapply lives_quiet; [apply (CallGroup D _ _ y ms cl ws places)|].
    match goal with |- LegDiskMachine.lives _ _ _ _ ?tr _ => change tr with ([] ++ tr) end.
    eapply lives_app; [apply (lives_ran_partly (Group ws) ios); by constructor|].
    eapply lives_app; [|eapply lives_quiet; [apply PowerOn|exact Hopen]].
    apply lives_one. eapply (PowerCut D size count (Group ws _)); [by left|apply loses_powerless].
  - intros ([shown1 [c1 x1]]&Hopen%lives_opening&[= <- <- <-])%bind_Some.
    eapply lives_quiet; [apply (Maintain D _ _ y ms cl u)|].
    change (Event (Crash CutShort) :: shown1) with ([] ++ [@Event block (Crash CutShort)] ++ shown1).
    eapply lives_app; [apply (lives_ran_partly Upkeep ios); by constructor|].
    eapply lives_app; [|eapply lives_quiet; [apply PowerOn|exact Hopen]].
    apply lives_one. eapply (PowerCut D size count (Upkeep _)); [by left|apply loses_powerless].
  - intros Hopen%lives_opening. eapply lives_quiet; [apply Reopen|exact Hopen].
Qed.

Lemma happens_lives es c x tr c' x' : happens es c x = Some (tr, (c', x')) →
  lives (c, x, []) tr (c', x', []).
Proof.
  revert c x tr c' x'. induction es as [|e es IH]; simpl; intros c x tr c' x'.
  { intros [= <- <- <-]. constructor. }
  intros ([shown [c1 x1]]&Honce%happens_once_lives&Hrest)%bind_Some.
  apply bind_Some in Hrest as ([rest [c2 x2]]&Hz%IH&[= <- <- <-]). by eapply lives_app.
Qed.

(** A life on new devices. *)
Definition whole_life (trees : nat * nat) (g : geometry) (es : list happening) :
    option (list (entry block) * (control * array C)) :=
  match complete (on_leg size (seq 0 count) false (run_format D trees g))
    (whole count (λ _, zero_block)) with
  | (Some (ms, c, Some y), x) => happens es (Idle y ms c) x
  | _ => None
  end.

Definition leg_life (trees : nat * nat) (g : geometry) (es : list happening) : option (list (entry block)) :=
  fst <$> whole_life trees g es.

Lemma leg_life_lives trees g es tr : torn_unread g → leg_life trees g es = Some tr →
  ∃ z z', formatted D size count (disk_blocks g) z ∧ lives z tr z'.
Proof.
  intros Hwhole ([tr' [c' x']]&Hlife&->)%fmap_Some. unfold whole_life in Hlife. simpl.
  destruct (complete _ _) as [[[[ms c] [y|]]|] x] eqn:Hend; try done.
  apply happens_lives in Hlife. exists (Idle y ms c, x, []), (c', x', []). split; [|done].
  by exists trees, g, (λ _, zero_block), ms, c, y, x.
Qed.
End Scripts.

Local Open Scope string_scope.

Local Instance mirrored `{blocks} : cutting block block := mirrors zero_block.
#[local] Existing Instance untorn.
Local Notation D := proved_programs.

(** ** A life with everything in it: two devices of 20 blocks *)

Definition everything_on_mirrors : list (@happening small (@block small) upkeep) :=
  [Asks (DoWrite 0 [data 1; data 2]) [0; 1]; Asks (DoSnapshot "s") [];
   AsksAll [(0, [data 7]); (1, [data 8])] [2; 4];
   CutsAll [(0, [data 5]); (1, [data 6])] [3; 5] 6;    (* device 0 has the record, device 1 does not *)
   Asks (DoRead Live 0 2) [];
   Cuts (DoWrite 0 [data 3]) [2] 1;           (* device 0 has a block of a checkpoint, device 1 does not *)
   Fails 0; Asks (DoWrite 0 [data 4]) [4];    (* degraded *)
   Fails 1; Asks (DoRead Live 0 1) []; Returns 0; Opens; Asks (DoRead Live 0 1) [];
     (* what is back is stale *)
   Returns 1; Opens; Asks (DoRead Live 0 2) []; Settles;
   Fails 1; Asks (DoRead Live 0 2) []; Asks (DoRead (Named "s") 0 2) []].

Definition everything_on_mirrors_shows : list (entry (@block small)) :=
  [Event (Write 0 [data 1; data 2] Ok); Event (Snapshot "s" Ok);
   Event (Write 0 [data 7] Ok); Event (Write 1 [data 8] Ok);
   Event (Write 0 [data 5] UnknownOutcome); Event (Write 1 [data 6] UnknownOutcome); Event (Crash CutShort);
   Event (Crash Ok); Event (Read Live 0 2 Ok [data 5; data 6]);
   Event (Write 0 [data 3] CutShort); Event (Crash Ok);
   Fail 0 Ok; Event (Write 0 [data 4] Ok);
   Fail 1 Ok; Event (Read Live 0 1 (Refused DataLost) []); Return 0 Ok;
   Event (Read Live 0 1 (Refused DataLost) []);
   Return 1 Ok; Event (Read Live 0 2 Ok [data 4; data 6]); Settle Ok;
   Fail 1 Ok; Event (Read Live 0 2 Ok [data 4; data 6]); Event (Read (Named "s") 0 2 Ok [data 1; data 2])].

Theorem mirrored_life_exists : ∃ z z', formatted D 20 2 4 z ∧ lives D 20 2 z everything_on_mirrors_shows z'.
Proof.
  apply (leg_life_lives D 20 2 (0, 0) shape_of_small everything_on_mirrors); [apply untorn_unread|].
  by vm_compute.
Qed.

(** ** A record that forgets who was dropped *)

(** Device 0 misses a write. The record says again that it is a member; it comes back, and the disk opens. *)
Definition with_an_old_record {Y U} (D : programs Y U) (size : nat) (trees : nat * nat) (g : geometry) :
    option (list (entry (@block small))) :=
  match complete (on_leg size [0; 1] false (run_format D trees g))
    (@whole small _ mirrored 2 (λ _, zero_block)) with
  | (Some (ms, c, Some y), x) =>
      '(e1, (c, x)) ← happens_once D size 2 (Asks (DoWrite 0 [data 1]) [0]) (Idle y ms c) x;
      '(e2, (c, x)) ← happens_once D size 2 (Fails 0) c x;
      '(e3, (c, x)) ← happens_once D size 2 (Asks (DoWrite 0 [data 4]) [1]) c x;
      '(_, (c, x)) ← after_opening D size true (comes_back 0 (Array (device_at x) [0; 1] (clean x)));
      '(e4, _) ← happens_once D size 2 (Asks (DoRead Live 0 1) []) c x;
      Some (e1 ++ e2 ++ e3 ++ Return 0 Ok :: e4)%list
  | _ => None
  end.
Definition stale_read : list (entry (@block small)) :=
  [Event (Write 0 [data 1] Ok); Fail 0 Ok; Event (Write 0 [data 4] Ok); Return 0 Ok;
   Event (Read Live 0 1 Ok [data 1])].

Local Instance small_eq_dec : EqDecision (@block small) := (_ : EqDecision (list byte)).

Lemma stale_read_is_wrong : ¬ admits_recorded Ack 1 (Event (Create 4) :: stale_read).
Proof. intros Had%check_recorded_correct. by vm_compute in Had. Qed.

Theorem record_needed : with_an_old_record D 20 (0, 0) shape_of_small = Some stale_read ∧
  ¬ admits_recorded Ack 1 (Event (Create 4) :: stale_read).
Proof. split; [by vm_compute|apply stale_read_is_wrong]. Qed.

(** ** Blocks that do not give back what was put in: a nine comes back as an eight *)
Definition forgotten_on_mirrors {U} : list (@happening forgetful (@block forgetful) U) :=
  [Asks (DoWrite 9 [one]) [0]; Cuts DoFlush [] 0; Asks (DoRead Live 9 1) []].
Definition forgotten_on_mirrors_shows : list (entry (@block forgetful)) :=
  [Event (Write 9 [one] Ok); Event (Flush CutShort); Event (Crash Ok); Event (Read Live 9 1 Ok [zero])].
Local Instance forgetful_eq_dec : EqDecision (@block forgetful) := (_ : EqDecision (list nat)).

Lemma forgotten_is_wrong {Y U} (D : programs Y U) size trees g :
  disk_blocks g = 10 → leg_life D size 2 trees g forgotten_on_mirrors = Some forgotten_on_mirrors_shows →
  ¬ (∀ z z' tr, formatted D size 2 10 z → lives D size 2 z tr z' →
    admits_recorded Ack 1 (Event (Create (V := @block forgetful) 10) :: tr)).
Proof.
  intros Hg Hlife Hall. apply leg_life_lives in Hlife as (z&z'&Hz&Hlives); [|apply untorn_unread].
  rewrite Hg in Hz. specialize (Hall _ _ _ Hz Hlives). apply check_recorded_correct in Hall.
  by vm_compute in Hall.
Qed.

Theorem round_trip_needed_on_mirrors : ¬ (∀ z z' tr, formatted D 20 2 10 z → lives D 20 2 z tr z' →
  admits_recorded Ack 1 (Event (Create (V := @block forgetful) 10) :: tr)).
Proof. by apply (forgotten_is_wrong D 20 (0, 0) (Geometry 10 4 2 6 2 2)); [|vm_compute]. Qed.
