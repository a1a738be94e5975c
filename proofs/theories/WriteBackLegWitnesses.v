(** Executions of disks with write-back on a leg, computed: their theorems are not vacuous, and need what they
assume, and that the delayed writes are kept while too few members answer. *)
From stdpp Require Import gmap strings vector.
From LogDisk Require Import VirtualDisk RecordedTrace RecordedImplementation Checker CheckerCorrect Medium
  Codec
  ByteBlocks ProvedDisk.
From LogDisk Require Import ProvedDiskRequests ProvedDiskInvariant ProvedDiskMachine ProvedDiskExecution.
From LogDisk Require Import OverlappingDiskQueue SplitFlush DiskMachine Devices Leg LegCode LegDiskMachine
  LegDiskExecution.
From LogDisk Require Parity ProvedTreeDiskTheorem.
From LogDisk Require Import LegDiskRaid(two_pieces, content, without_parity, tears_from, tears_from_unread).
From LogDisk Require Import WriteBack WriteBackPlaces WriteBackLeg WriteBackLegDisk.

Section Scripts.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type} (D : programs Y U).
Context (shape_of : Y → geometry) (room_of : Y → nat) (spares_places : U → bool) (size count : nat).
Local Notation delaying := (write_back D shape_of room_of spares_places).
Local Notation control := (control C (Y * delay)).
Local Notation disk := (write_back_leg D shape_of room_of spares_places size count).

(** What happens next. *)
Inductive choice :=
  | Asks (q : request) (places : list nat)
  | Keeps (u : @delaying_upkeep U)
  | Settles
  | Ends                       (* what is under way runs to its end *)
  | Runs (ios : nat)           (* or so many I/Os of it *)
  | Fails (i : nat)
  | FailsLater (i : nat)       (* all that was written to it stays *)
  | Returns (i : nat)
  | Reopens
  | Cuts | Starts.             (* the power *)

Definition failing_later (i : nat) (x : array C) : array C :=
  put_device x i (Device false (Medium (read_block (store (device_at x i))) [])).

Definition begun (e : choice) (c : control) (x : array C) : option (control * array C) :=
  match e, c with
  | Asks q places, Idle y ms cl => Some (Busy q (on_leg size ms cl (run_request delaying y places q)), x)
  | Keeps u, Idle y ms cl => Some (Upkeep (on_leg size ms cl (run_upkeep delaying y u)), x)
  | Settles, Idle y ms cl => Some (Settling y (settle_leg size count ms cl), x)
  | Reopens, Lost => Some (Recovery true (reopen delaying size x), x)
  | Starts, Off => Some (Recovery false (reopen delaying size x), x)
  | Runs n, Busy q p => let '(p, x) := ran_partly n p x in Some (Busy q p, x)
  | Runs n, Upkeep p => let '(p, x) := ran_partly n p x in Some (Upkeep p, x)
  | _, _ => None
  end.

(** The end of a program. *)
Definition ended (c : control) (x : array C) : option (list (entry block) * (control * array C)) :=
  match c with
  | Busy q p =>
      match ran p x with
      | (Finish (ms, cl, (y, r, bs)), x) => Some ([Event (event_of q r bs)], (Idle y ms cl, x))
      | (Stop, x) => Some ([when_lost q], (Lost, x))
      | _ => None
      end
  | Upkeep p =>
      match ran p x with
      | (Finish (ms, cl, y), x) => Some ([], (Idle y ms cl, x))
      | (Stop, x) => Some ([], (Lost, x))
      | _ => None
      end
  | Settling y p =>
      match ran p x with (Finish (ms, cl), x) => Some ([Settle Ok], (Idle y ms cl, x)) | _ => None end
  | Recovery on p =>
      let shown := if on : bool then [] else [Event (Crash Ok)] in
      match ran p x with
      | (Finish (ms, cl, Some y), x) => Some (shown, (Idle y ms cl, x))
      | (Stop, x) => Some (shown, (Lost, x))
      | _ => None
      end
  | Lost => None
  | _ => None
  end.

Definition chosen (e : choice) (c : control) (x : array C) :
    option (list (entry block) * (control * array C)) :=
  match e with
  | Ends => ended c x
  | Fails i => if decide (i < count) then
      if powered c then Some ([Fail i Ok], (c, failing i x)) else None else None
  | FailsLater i => if decide (i < count) then
      if powered c then Some ([Fail i Ok], (c, failing_later i x)) else None else None
  | Returns i => if decide (i < count) then
      match c with Idle _ _ _ | Lost => Some ([Return i Ok], (c, comes_back i x)) | _ => None end else None
  | Cuts => if powered c then Some (when_cut c, (Off, powerless x)) else None
  | Asks q _ => match c with
      | Lost => Some ([when_lost q], (Lost, x)) | _ => z ← begun e c x; Some ([], z) end
  | _ => z ← begun e c x; Some ([], z)
  end.

Fixpoint life (es : list choice) (c : control) (x : array C) (k : delay) : option (list (entry block)) :=
  match es with
  | [] => Some []
  | e :: es =>
      '(shown, (c', x')) ← chosen e c x;
      let c' := put_back k c c' in rest ← life es c' x' (kept_in c' k); Some (shown ++ rest)
  end.

Notation move := (LegDiskMachine.move delaying size count).
Notation shows := (recorded_shows disk).

Lemma quiet c x k c' x' tr z :
  move (c, x, []) [] (c', x', []) → put_back k c c' = c' → kept_in c' k = k →
  shows (c', x', [], k) tr z → shows (c, x, [], k) tr z.
Proof.
  intros Hm Hput Hkept Hz. change tr with ([] ++ tr). eapply recorded_shows_step; [by apply Keeping|].
  by rewrite Hput, Hkept.
Qed.

(** What runs on runs in the same way. *)
Lemma shows_ran {A} (into : array_program C A → control) (p : array_program C A) x k tr z :
  (∀ p x p' x', array_io p x p' x' → move (into p, x, []) [] (into p', x', [])) →
  (∀ p p', put_back k (into p) (into p') = into p') → (∀ p, kept_in (into p) k = k) →
  shows (into (ran p x).1, (ran p x).2, [], k) tr z → shows (into p, x, [], k) tr z.
Proof.
  intros Hio Hput Hkept. revert x.
  induction p as [r| | |i a q IH|i a b q IH|i q IH|ms c q IH|[] q IH]; intros x; simpl; try done;
    try destruct (up (device_at x i)) eqn:Hup; intros Hz;
    (eapply quiet; [apply Hio|apply Hput|apply Hkept|by apply IH]); by constructor; auto; left.
Qed.
Lemma shows_ran_partly {A} (into : array_program C A → control) n (p : array_program C A) x k tr z :
  (∀ p x p' x', array_io p x p' x' → move (into p, x, []) [] (into p', x', [])) →
  (∀ p p', put_back k (into p) (into p') = into p') → (∀ p, kept_in (into p) k = k) →
  shows (into (ran_partly n p x).1, (ran_partly n p x).2, [], k) tr z → shows (into p, x, [], k) tr z.
Proof.
  intros Hio Hput Hkept. revert p x. induction n as [|n IH]; intros p x; [by destruct p|].
  destruct p as [r| | |i a q1|i a b q1|i q1|ms c q1|[] q1]; simpl; try done;
    try destruct (up (device_at x i)) eqn:Hup; intros Hz;
    (eapply quiet; [apply Hio|apply Hput|apply Hkept|by apply IH]); by constructor; auto; left.
Qed.

Lemma begun_shows e c x k c' x' tr z : begun e c x = Some (c', x') →
  shows (put_back k c c', x', [], kept_in (put_back k c c') k) tr z →
  k = kept_in c k → shows (c, x, [], k) tr z.
Proof.
  intros Hbegun Hz Hk. assert (∀ c1 x1, move (c, x, []) [] (c1, x1, []) → c' = c1 → x' = x1 →
    shows (c, x, [], k) tr z) as Hone.
  { intros c1 x1 Hm <- <-. change tr with ([] ++ tr). eapply recorded_shows_step; [by apply Keeping|done]. }
  destruct e as [q places|u| | |ios|i|i|i| | |], c as [y ms cl|q1 p|ws p|p|y p| | |on p]; try done;
    simpl in Hbegun.
  - injection Hbegun as <- <-. eapply Hone; [by apply Call|done..].
  - injection Hbegun as <- <-. eapply Hone; [by apply Maintain|done..].
  - injection Hbegun as <- <-. eapply Hone; [by apply StartSettle|done..].
  - eapply (shows_ran_partly (Busy q1) ios); [by constructor|done..|].
    destruct (ran_partly ios p x) as [p1 x1]. injection Hbegun as <- <-. exact Hz.
  - eapply (shows_ran_partly Upkeep ios); [by constructor|done..|].
    destruct (ran_partly ios p x) as [p1 x1]. injection Hbegun as <- <-. exact Hz.
  - injection Hbegun as <- <-. eapply Hone; [by apply Reopen|done..].
  - injection Hbegun as <- <-. eapply Hone; [by apply PowerOn|done..].
Qed.

Lemma ended_shows c x k shown c' x' tr z : ended c x = Some (shown, (c', x')) →
  shows (put_back k c c', x', [], kept_in (put_back k c c') k) tr z → shows (c, x, [], k) (shown ++ tr) z.
Proof.
  assert (∀ c1 x1, move (c1, x1, []) shown (c', x', []) → put_back k c1 c' = put_back k c c' →
    shows (put_back k c c', x', [], kept_in (put_back k c c') k) tr z → shows (c1, x1, [], k) (shown ++ tr) z)
    as Hlast.
  { intros c1 x1 Hm Hput Hz. eapply recorded_shows_step; [by apply Keeping|]. by rewrite Hput. }
  intros Hended Hz. destruct c as [y ms cl|q p|ws p|p|y p| | |on p]; try done; simpl in Hended.
  - eapply (shows_ran (Busy q)); [by constructor|done..|].
    destruct (ran p x) as [[[[ms1 cl1] [[y1 r] bs]]| | | | | | |] x1]; try done; injection Hended as <- <- <-;
      (eapply Hlast; [constructor|done|exact Hz]).
  - eapply (shows_ran Upkeep); [by constructor|done..|].
    destruct (ran p x) as [[[[ms1 cl1] y1]| | | | | | |] x1]; try done; injection Hended as <- <- <-;
      (eapply Hlast; [constructor|done|exact Hz]).
  - eapply (shows_ran (Settling y)); [by constructor|done..|].
    destruct (ran p x) as [[[ms1 cl1]| | | | | | |] x1]; try done; injection Hended as <- <- <-.
    eapply Hlast; [constructor|done|exact Hz].
  - eapply (shows_ran (Recovery on)); [by constructor|by destruct on|done|].
    destruct (ran p x) as [[[[ms1 cl1] [y1|]]| | | | | | |] x1]; try done; injection Hended as <- <- <-.
    + pose proof (Recovered delaying size count on ms1 cl1 y1 x1 []) as Hm. simpl in Hm.
        rewrite app_nil_r in Hm.
      eapply Hlast; [exact Hm|by destruct on, y1|exact Hz].
    + pose proof (RecoveryStops delaying size count on x1 []) as Hm. simpl in Hm. rewrite app_nil_r in Hm.
      eapply Hlast; [exact Hm|by destruct on|exact Hz].
Qed.

Lemma chosen_shows e c x k shown c' x' tr z : chosen e c x = Some (shown, (c', x')) → k = kept_in c k →
  shows (put_back k c c', x', [], kept_in (put_back k c c') k) tr z → shows (c, x, [], k) (shown ++ tr) z.
Proof.
  intros Hchosen Hk Hz.
  assert (∀ c1 x1 (shown : list (entry block)), move (c, x, []) shown (c1, x1, []) → c' = c1 → x' = x1 →
    shows (c, x, [], k) (shown ++ tr) z) as Hone.
  { intros c1 x1 shown1 Hm <- <-. eapply recorded_shows_step; [by apply Keeping|done]. }
  assert (∀ e, (z ← begun e c x; Some ([], z)) = Some (shown, (c', x')) → shows (c, x, [], k) (shown ++ tr) z)
    as Hbegun.
  { intros e1 ([c1 x1]&Hb&[= <- <- <-])%bind_Some. simpl. by eapply begun_shows. }
  destruct e as [q places|u| | |ios|i|i|i| | |]; cbn [chosen] in Hchosen; try (exact (Hbegun _ Hchosen)).
  - destruct c; try (exact (Hbegun (Asks q places) Hchosen)). injection Hchosen as <- <- <-. eapply Hone;
      [apply LostAnswer|done..].
  - by eapply ended_shows.
  - destruct (decide _) as [Hi|]; [|done]. destruct (powered c) eqn:Hon; [|done].
    injection Hchosen as <- <- <-.
    pose proof (DeviceFails delaying size count c i x (failing i x) [] Hi) as Hm. rewrite Hon in Hm.
    eapply Hone; [apply Hm|done..]. eexists. split; [|done]. eexists. split; [|done]. intros a. by left; left.
  - destruct (decide _) as [Hi|]; [|done]. destruct (powered c) eqn:Hon; [|done].
    injection Hchosen as <- <- <-.
    pose proof (DeviceFails delaying size count c i x (failing_later i x) [] Hi) as Hm. rewrite Hon in Hm.
    eapply Hone; [apply Hm|done..]. eexists. split; [|done]. eexists. split; [|done]. intros a. left.
    apply read_may_hold.
  - destruct (decide _) as [Hi|]; [|done]. destruct c; try done; injection Hchosen as <- <- <-;
      (eapply Hone; [by constructor|done..]).
  - destruct (powered c) eqn:Hon; [|done]. injection Hchosen as <- <- <-.
    eapply Hone; [apply PowerCut; [by left|apply loses_powerless]|done..].
Qed.

Lemma kept_twice (c : control) k : kept_in c k = kept_in c (kept_in c k).
Proof. by destruct c. Qed.

Lemma life_shows es c x k tr : life es c x k = Some tr → k = kept_in c k → ∃ z, shows (c, x, [], k) tr z.
Proof.
  revert c x k tr. induction es as [|e es IH]; simpl; intros c x k tr.
  { intros [= <-] _. eexists. constructor. }
  intros ([shown [c' x']]&Hchosen&Hlife)%bind_Some Hk.
  apply bind_Some in Hlife as (rest&(z&Hz)%IH&[= <-]); [|apply kept_twice]. exists z. by eapply chosen_shows.
Qed.

(** From devices that held nothing but zeroes. *)
Definition life_of (trees : nat * nat) (g : geometry) (es : list choice) : option (list (entry block)) :=
  match complete (on_leg size (seq 0 count) false (run_format delaying trees g))
    (whole count (λ _, zero_block)) with
  | (Some (ms, cl, Some y), x) => life es (Idle y ms cl) x y.2
  | _ => None
  end.

Lemma life_of_shows trees g es tr : ProvedDiskInvariant.torn_unread g → life_of trees g es = Some tr →
  ∃ z z', recorded_fresh disk (disk_blocks g) z ∧ shows z tr z'.
Proof.
  unfold life_of. intros Hg. destruct (complete _ _) as [[[[ms cl] [y|]]|] x] eqn:Hnew; try done.
  intros (z&Hz)%life_shows; [|done]. exists (Idle y ms cl, x, [], y.2), z. split; [|done].
  split; [|done]. by exists trees, g, (λ _, zero_block), ms, cl, y, x.
Qed.
End Scripts.

Local Open Scope string_scope.

Local Instance mirrored `{blocks} : cutting block block := mirrors zero_block.
#[local] Existing Instance untorn.
Local Instance small_eq_dec : EqDecision (@block small) := (_ : EqDecision (list byte)).
Local Instance forgetful_eq_dec : EqDecision (@block forgetful) := (_ : EqDecision (list nat)).
(** Two devices of 20 blocks; three blocks may be delayed. *)
Definition whole_maps : recorded_implementation (@block small) := write_back_leg_disk 3 20 2.

(** ** A life with everything in it *)

Definition delayed_on_mirrors : list (@choice _ upkeep) :=
  [Asks (DoWrite 0 [data 1; data 2]) []; Ends; Asks (DoRead Live 0 2) []; Ends;
   Keeps (Drain [0; 1]); Ends; Asks (DoSnapshot "s") []; Ends;
   Asks (DoWrite 0 [data 3]) []; Ends; Asks (DoRevert "s") []; Ends;    (* a write is delayed: it waits *)
   Fails 0; Asks DoFlush [2]; Ends;                         (* degraded *)
   Keeps (Drain []); Ends; Asks (DoWrite 1 [data 4]) []; Ends;          (* what is free is counted again *)
   Asks DoFlush [3]; Runs 1; Fails 1; Ends; Asks (DoRead Live 0 2) [];  (* nobody answers, in a drain *)
   Returns 1; Reopens; Ends; Asks (DoRead Live 0 2) []; Ends;           (* what was answered is there *)
   Asks DoFlush [4]; Ends; Returns 0; Settles; Ends;
   Keeps (Drain []); Ends; Asks (DoWrite 0 [data 5]) []; Ends; Asks DoFlush [5]; Runs 3;
   Cuts; Starts; Ends; Asks (DoRead Live 0 2) []; Ends;     (* the power cut comes in a drain *)
   Asks (DoRead (Named "s") 0 2) []; Ends].

Definition delayed_on_mirrors_shows : list (entry (@block small)) :=
  [Event (Write 0 [data 1; data 2] Ok); Event (Read Live 0 2 Ok [data 1; data 2]); Event (Snapshot "s" Ok);
   Event (Write 0 [data 3] Ok); Event (Revert "s" UnknownOutcome); Fail 0 Ok; Event (Flush Ok);
   Event (Write 1 [data 4] Ok); Fail 1 Ok; Event (Flush UnknownOutcome);
   Event (Read Live 0 2 (Refused DataLost) []); Return 1 Ok; Event (Read Live 0 2 Ok [data 3; data 4]);
   Event (Flush Ok); Return 0 Ok; Settle Ok; Event (Write 0 [data 5] Ok);
   Event (Flush CutShort); Event (Crash Ok); Event (Read Live 0 2 Ok [data 3; data 4]);
   Event (Read (Named "s") 0 2 Ok [data 1; data 2])].

Theorem delayed_on_mirrors_exists : ∃ z z',
  recorded_fresh whole_maps 4 z ∧ recorded_shows whole_maps z delayed_on_mirrors_shows z'.
Proof.
  apply (life_of_shows proved_programs shape (delay_room (H := small) 3) spares_places 20 2
    (0, 0) shape_of_small
    delayed_on_mirrors); [apply untorn_unread|]. by vm_compute.
Qed.

(** ** The profile: an answered write may be lost with the power, so this is not [Ack] *)

Lemma not_implemented `{!blocks, EqDecision block} {C} `{!cutting block C} {torn : tearing block} {Y U}
    (D : programs Y U) shape_of room_of spares size count p tolerates trees g es tr :
  ProvedDiskInvariant.torn_unread g →
  life_of D shape_of room_of spares size count trees g es = Some tr →
  ¬ admits_recorded p tolerates (Event (Create (disk_blocks g)) :: tr) →
  ¬ implements_recorded (write_back_leg D shape_of room_of spares size count) p tolerates.
Proof.
  intros Hg Hlife Hno Himp. destruct (life_of_shows _ _ _ _ _ _ _ _ _ _ Hg Hlife) as (z&z'&Hz&Hs).
  by apply Hno, (Himp _ z _ z').
Qed.

Theorem write_back_leg_is_not_ack : ¬ implements_recorded whole_maps Ack 1.
Proof.
  eapply (not_implemented proved_programs _ _ _ 20 2 Ack 1 (0, 0) shape_of_small
    [Asks (DoWrite 0 [data 1]) []; Ends; Cuts; Starts; Ends; Asks (DoRead Live 0 1) []; Ends]);
    [apply untorn_unread|by vm_compute|]. intros Had%check_recorded_correct. by vm_compute in Had.
Qed.

(** ** Blocks that do not give back what was put in: a nine comes back as an eight *)

Definition forgotten {U} : list (@choice forgetful U) :=
  [Asks (DoWrite 9 [one]) []; Ends; Asks DoFlush [0]; Ends; Cuts; Starts; Ends; Asks (DoRead Live 9 1) [];
    Ends].

Theorem write_back_leg_round_trip_needed :
  ¬ implements_recorded (@write_back_leg_disk forgetful _ _ _ 3 20 2) Prefix 1.
Proof.
  eapply (not_implemented proved_programs _ _ _ 20 2 Prefix 1 (0, 0) (Geometry 10 4 2 6 2 2) forgotten);
    [apply untorn_unread|by vm_compute|]. intros Had%check_recorded_correct. by vm_compute in Had.
Qed.

Theorem write_back_tree_leg_round_trip_needed :
  ¬ implements_recorded (@write_back_tree_leg_disk forgetful _ _ _ 3 40 2 1) Prefix 1.
Proof.
  eapply (not_implemented (ProvedTreeDiskTheorem.tree_programs 1) _ _ _ 40 2 Prefix 1 (3, 15)
    (Geometry 10 4 4 6 2 2) forgotten);
    [apply untorn_unread|by vm_compute|]. intros Had%check_recorded_correct. by vm_compute in Had.
Qed.

(** ** The delayed writes are kept while too few members answer

Without it the machine forgets them with the rest of its memory, and no power failed. *)
Definition forgets_delayed : list (@happening small (@block small) (@delaying_upkeep upkeep)) :=
  [LegDiskExecution.Asks (DoWrite 0 [data 1]) []; LegDiskExecution.Fails 0; LegDiskExecution.Fails 1;
   LegDiskExecution.Asks DoFlush [0]; LegDiskExecution.Returns 0; LegDiskExecution.Returns 1; Opens;
   LegDiskExecution.Asks (DoRead Live 0 1) []].
Definition forgets_delayed_shows : list (entry (@block small)) :=
  [Event (Write 0 [data 1] Ok); Fail 0 Ok; Fail 1 Ok; Event (Flush UnknownOutcome); Return 0 Ok; Return 1 Ok;
   Event (Read Live 0 1 Ok [data 0])].

Theorem delayed_writes_must_be_kept :
  let delaying := write_back proved_programs shape (delay_room (H := small) 3) spares_places in
  (∃ z z', LegDiskMachine.formatted delaying 20 2 4 z ∧ lives delaying 20 2 z forgets_delayed_shows z') ∧
  ¬ admits_recorded Prefix 1 (Event (Create 4) :: forgets_delayed_shows).
Proof.
  split.
  - apply (leg_life_lives (write_back proved_programs shape (delay_room (H := small) 3) spares_places)
      20 2 (0, 0)
      shape_of_small forgets_delayed); [apply untorn_unread|by vm_compute].
  - intros Had%check_recorded_correct. by vm_compute in Had.
Qed.

(** ** What a flush needs to be answered [Ok]: that the disk was not lost while writes were delayed

The drain happened, but nobody answered any more: the same writes need places a second time. *)
Definition lost_in_a_drain : list (@choice small upkeep) :=
  [Asks (DoWrite 0 [data 1; data 2]) []; Ends; Keeps (Drain [0; 1]); Runs 7; Fails 0; FailsLater 1; Ends;
   Returns 1; Reopens; Ends; Asks (DoRead Live 0 2) []; Ends; Asks DoFlush [2; 3]; Ends].
Theorem lost_drain_needs_places :
  let shown := λ places, @life_of small _ mirrored _ _ proved_programs shape (delay_room (H := small) 3)
    spares_places 20 2 (0, 0)
    (Geometry 4 4 2 places 2 2) lost_in_a_drain in
  let start := [Event (Write 0 [data 1; data 2] Ok); Fail 0 Ok; Fail 1 Ok; Return 1 Ok;
    Event (Read Live 0 2 Ok [data 1; data 2])] in
  shown 2 = Some (start ++ [Event (Flush UnknownOutcome)])%list ∧
  shown 4 = Some (start ++ [Event (Flush Ok)])%list.
Proof. by vm_compute. Qed.

(** ** Parity that is not the sum of the data *)

Local Instance two_pieces_eq_dec : EqDecision (@block two_pieces) :=
  (_ : EqDecision (vec (vec Parity.byte 40) 2)).

Definition one_fails {U} : list (@choice two_pieces U) :=
  [Asks (DoWrite 0 [content 1]) []; Ends; Asks DoFlush [0]; Ends; Fails 0; Asks (DoRead Live 0 1) []; Ends].

Theorem write_back_leg_code_needed :
  ¬ implements_recorded (@write_back_leg_disk two_pieces _ without_parity (tears_from 5) 3 20 3) Prefix 1.
Proof.
  eapply (@not_implemented two_pieces _ _ without_parity (tears_from 5) _ _ proved_programs _ _ _ 20 3
    Prefix 1
    (0, 0) shape_of_small one_fails); [by apply tears_from_unread|by vm_compute|].
  intros Had%check_recorded_correct. by vm_compute in Had.
Qed.

Theorem write_back_tree_leg_code_needed :
  ¬ implements_recorded (@write_back_tree_leg_disk two_pieces _ without_parity (tears_from 5) 3 40 3 1)
    Prefix 1.
Proof.
  eapply (@not_implemented two_pieces _ _ without_parity (tears_from 5) _ _
    (ProvedTreeDiskTheorem.tree_programs 1)
    _ _ _ 40 3 Prefix 1 (1, 15) (Geometry 4 2 6 8 2 2) one_fails);
    [by apply tears_from_unread|by vm_compute|].
  intros Had%check_recorded_correct. by vm_compute in Had.
Qed.

(** Behind a queue. *)
Theorem served_write_back_leg_round_trip_needed :
  ¬ implements_overlapping (@write_back_leg_disk forgetful _ _ _ 3 20 2) Prefix 1.
Proof. by intros ?%queue_exact%write_back_leg_round_trip_needed. Qed.

Theorem served_write_back_leg_code_needed :
  ¬ implements_overlapping (@write_back_leg_disk two_pieces _ without_parity (tears_from 5) 3 20 3) Prefix 1.
Proof. by intros ?%queue_exact%write_back_leg_code_needed. Qed.
