(** Blocks that rot on a leg, computed: the theorem about mirrors is not vacuous where a device can read
nothing, and it needs that what has rotted is noticed, and that of no block too many pieces are unreadable. *)
From stdpp Require Import gmap strings vector relations.
From LogDisk Require Parity ProvedTreeDiskExecution.
From LogDisk Require Import VirtualDisk RecordedTrace CheckerCorrect Medium Codec ByteBlocks ProvedDisk.
From LogDisk Require Import ProvedDiskRequests ProvedDiskInvariant ProvedDiskMachine ProvedDiskExecution.
From LogDisk Require Import ProvedTreeDiskTheorem Devices Leg LegCode LegRepair LegDiskMachine
  LegDiskExecution LegDiskRaid.
Import ProvedTreeDiskExecution(shape_of_trees).
Import DiskMachine(programs, run_request, run_format).

Section Scripts.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type} (D : programs Y U).
Variables (size count : nat) (rotten : nat → nat → bool).
Local Notation lives := (lives D size count).

Definition all_up (x : array C) : Prop := ∀ i, up (device_at x i) = true.

Lemma goes_up {A} (p : array_program C A) rot x : all_up x → all_up (goes p rot x).2.
Proof.
  revert rot x. induction p as [r| | |i a k IH|i a b k IH|i k IH|ms c k IH|[] k IH]; simpl; intros rot x Hx;
    try done; apply IH; try done; intros j; simpl; by destruct (decide (j = i)).
Qed.

Lemma complete_up {A} (p : array_program C A) x : all_up x → all_up (complete p x).2.
Proof.
  revert x. induction p as [r| | |i a k IH|i a b k IH|i k IH|ms c k IH|[] k IH]; simpl; intros x Hx; try done;
    rewrite ?Hx; apply IH; try done; intros j; simpl; by destruct (decide (j = i)).
Qed.

Lemma powerless_up x : all_up x → all_up (powerless x).
Proof. intros Hx i. apply Hx. Qed.

Lemma lives_goes {A} (into : array_program C A → control C Y) p rot x :
  (∀ p x p' x', array_io p x p' x' → move D size count (into p, x, []) [] (into p', x', [])) → all_up x →
  lives (into p, x, []) [] (into (goes p rot x).1.1, (goes p rot x).2, []).
Proof.
  intros Hio Hx. pose proof (goes_by_ios p rot x Hx) as Hgoes. revert Hgoes.
  generalize (goes p rot x) as z. intros z Hgoes.
  change (into p, x, @nil nat) with (into (p, x).1, (p, x).2, @nil nat).
  change (lives (into (p, x).1, (p, x).2, []) [] (into (z.1.1, z.2).1, (z.1.1, z.2).2, [])).
  induction Hgoes as [|z1 z2 z3 H1 _ IH]; [constructor|]. eapply lives_quiet; [by apply Hio|done].
Qed.

(** Requests while the blocks that are [rotten] cannot be read; [None] is a power cut, and the disk is
opened. *)
Fixpoint asks_of_rotten (es : list (option (request * list nat))) (y : Y) ms (cl : bool) (x : array C) :
    option (list (entry block) * (Y * list nat * bool * array C)) :=
  match es with
  | [] => Some ([], (y, ms, cl, x))
  | Some (q, places) :: es =>
      match goes (on_leg size ms cl (run_request D y places q)) rotten x with
      | (Finish (ms, cl, (y, r, data)), _, x) =>
          '(shown, z) ← asks_of_rotten es y ms cl x; Some (Event (event_of q r data) :: shown, z)
      | _ => None
      end
  | None :: es =>
      match goes (reopen D size (powerless x)) rotten (powerless x) with
      | (Finish (ms, cl, Some y), _, x) =>
          '(shown, z) ← asks_of_rotten es y ms cl x; Some (Event (Crash CutShort) :: Event (Crash Ok) ::
            shown, z)
      | _ => None
      end
  end.

Lemma asks_of_rotten_lives es y ms cl x shown y' ms' cl' x' : all_up x →
  asks_of_rotten es y ms cl x = Some (shown, (y', ms', cl', x')) →
  lives (Idle y ms cl, x, []) shown (Idle y' ms' cl', x', []).
Proof.
  revert y ms cl x shown. induction es as [|[[q places]|] es IH]; simpl; intros y ms cl x shown Hx.
  { intros [= <- <- <- <- <-]. constructor. }
  - set (p := on_leg size ms cl (run_request D y places q)).
    pose proof (lives_goes (Busy q) p rotten x) as Hgoes. pose proof (goes_up p rotten x Hx) as Hx1.
    destruct (goes p rotten x) as [[[[[ms1 cl1] [[y1 r] data]]| | | | | | |] rot1] x1]; try done.
    intros ([shown1 z]&Hrest&[= <- ->])%bind_Some. simpl in *. eapply lives_quiet;
      [apply (Call D _ _ y ms cl q places)|].
    change (Event (event_of q r data) :: shown1) with ([] ++ [Event (event_of q r data)] ++ shown1).
    eapply lives_app; [apply Hgoes; [|done]; by constructor|]. eapply lives_app; [apply lives_one;
      constructor|].
    by apply IH.
  - pose proof (powerless_up x Hx) as Hpower. set (p := reopen D size (powerless x)).
    pose proof (lives_goes (Recovery false) p rotten (powerless x)) as Hgoes.
    pose proof (goes_up p rotten _ Hpower) as Hx1.
    destruct (goes p rotten (powerless x)) as [[[[[ms1 cl1] [y1|]]| | | | | | |] rot1] x1]; try done.
    intros ([shown1 z]&Hrest&[= <- ->])%bind_Some. simpl in *.
    change (lives (Idle y ms cl, x, []) ([Event (Crash CutShort)] ++ [] ++ [] ++ [Event (Crash Ok)] ++ shown1)
      (Idle y' ms' cl', x', [])).
    eapply lives_app; [apply lives_one, (PowerCut D size count (Idle y ms cl)); [by left|apply
      loses_powerless]|].
    eapply lives_app; [apply lives_one, PowerOn|]. eapply lives_app; [apply Hgoes; [|done]; by constructor|].
    eapply lives_app; [|by apply IH].
    pose proof (Recovered D size count false ms1 cl1 y1 x1 []) as Hm. by apply lives_one.
Qed.

(** A life on new devices, of which then one fails. *)
Definition rotten_life trees g es es' : option (list (entry block)) :=
  match complete (on_leg size (seq 0 count) false (run_format D trees g)) (whole count (λ _, zero_block)) with
  | (Some (ms, c, Some y), x) =>
      '(shown, (y, ms, c, x)) ← asks_of_rotten es y ms c x;
      '(rest, _) ← happens D size count es' (Idle y ms c) x; Some (shown ++ rest)
  | _ => None
  end.

Lemma rotten_life_lives trees g es es' tr : torn_unread g → rotten_life trees g es es' = Some tr →
  ∃ z z', formatted D size count (disk_blocks g) z ∧ lives z tr z'.
Proof.
  intros Hwhole. unfold rotten_life.
  set (p := on_leg size (seq 0 count) false (run_format D trees g)).
  assert (all_up (complete p (whole count (λ _, zero_block))).2) as Hup by by apply complete_up.
  destruct (complete p _) as [[[[ms c] [y|]]|] x] eqn:Hend; try done.
  intros ([shown [[[y1 ms1] c1] x1]]&Hasks%asks_of_rotten_lives&Hrest)%bind_Some; [|done].
  apply bind_Some in Hrest as ([rest [c2 x2]]&Hhappens%happens_lives&[= <-]).
  exists (Idle y ms c, x, []), (c2, x2, []). split; [|by eapply lives_app].
  by exists trees, g, (λ _, zero_block), ms, c, y, x.
Qed.
End Scripts.

Local Open Scope string_scope.
Local Existing Instance mirrored.
#[local] Existing Instance untorn.
Local Notation D := proved_programs.
Local Notation D_trees := (tree_programs 1).

(** ** Device 0 can read nothing, until what it has is written again; then device 1 fails *)

Definition first_rots : nat → nat → bool := λ i _, bool_decide (i = 0).
Definition asked_of_rotten : list (option (request * list nat)) :=
  [Some (DoWrite 0 [data 1; data 2], [0; 1]); Some (DoSnapshot "s", []); Some (DoRead Live 0 2, []);
   Some (DoWrite 0 [data 3], [2]); None; Some (DoRead Live 0 2, [])].
Definition rotten_shows : list (entry (@block small)) :=
  [Event (Write 0 [data 1; data 2] Ok); Event (Snapshot "s" Ok); Event (Read Live 0 2 Ok [data 1; data 2]);
   Event (Write 0 [data 3] Ok); Event (Crash CutShort); Event (Crash Ok);
   Event (Read Live 0 2 Ok [data 3; data 2]); Fail 1 Ok; Event (Read Live 0 2 Ok [data 3; data 2]);
   Event (Read (Named "s") 0 2 Ok [data 1; data 2])].

Theorem rotten_life_exists : ∃ z z', formatted D 20 2 4 z ∧ lives D 20 2 z rotten_shows z'.
Proof.
  apply (rotten_life_lives D 20 2 first_rots (0, 0) shape_of_small asked_of_rotten
    [Fails 1; Asks (DoRead Live 0 2) []; Asks (DoRead (Named "s") 0 2) []]); [apply untorn_unread|].
  by vm_compute.
Qed.

(** With trees, whose nodes rot too. *)
Theorem rotten_tree_life_exists : ∃ z z', formatted D_trees 40 2 4 z ∧ lives D_trees 40 2 z rotten_shows z'.
Proof.
  apply (rotten_life_lives D_trees 40 2 first_rots (1, 15) shape_of_trees asked_of_rotten
    [Fails 1; Asks (DoRead Live 0 2) []; Asks (DoRead (Named "s") 0 2) []]); [apply untorn_unread|].
  by vm_compute.
Qed.

(** On RAID-5 each block is computed from the pieces of devices 1 and 2. *)
Definition asked_of_rotten_raid : list (option (request * list nat)) :=
  [Some (DoWrite 0 [content 1; content 2], [0; 1]); Some (DoRead Live 0 2, []);
   Some (DoWrite 0 [content 3], [2]); None; Some (DoRead Live 0 2, [])].
Definition rotten_raid_shows : list (entry (@block two_pieces)) :=
  [Event (Write 0 [content 1; content 2] Ok); Event (Read Live 0 2 Ok [content 1; content 2]);
   Event (Write 0 [content 3] Ok); Event (Crash CutShort); Event (Crash Ok);
   Event (Read Live 0 2 Ok [content 3; content 2]); Fail 1 Ok; Event (Read Live 0 2 Ok [content 3;
     content 2])].

Theorem rotten_raid_life_exists : ∃ z z',
  @formatted two_pieces _ (raid_of_two 1 5) (tears_from 5) _ _ D 20 3 4 z ∧
  @lives two_pieces _ (raid_of_two 1 5) (tears_from 5) _ _ D 20 3 z rotten_raid_shows z'.
Proof.
  apply (@rotten_life_lives two_pieces _ (raid_of_two 1 5) (tears_from 5) _ _ D 20 3 first_rots (0, 0)
    shape_of_small asked_of_rotten_raid [Fails 1; Asks (DoRead Live 0 2) []]); [|by vm_compute].
  apply tears_from_unread. simpl. lia.
Qed.

(** ** A device that reads what has rotted as if it had been written *)

Local Instance small_eq_dec : EqDecision (@block small) := (_ : EqDecision (list byte)).
Definition rotted (x : array (@block small)) : array block :=
  put_device x 0 (Device true (Medium (λ a,
    let b := read_block (store (device_at x 0)) a in if decide (b = data 1) then data 9 else b) [])).
Definition reads_unnoticed {Y U} (D : programs Y U) (size : nat) (trees : nat * nat) (g : geometry) :
    option (list (entry (@block small))) :=
  match complete (on_leg size [0; 1] false (run_format D trees g))
    (@whole small _ mirrored 2 (λ _, zero_block)) with
  | (Some (ms, c, Some y), x) =>
      '(e1, (c, x)) ← happens_once D size 2 (Asks (DoWrite 0 [data 1]) [0]) (Idle y ms c) x;
      '(e2, _) ← happens_once D size 2 (Asks (DoRead Live 0 1) []) c (rotted x);
      Some (e1 ++ e2)%list
  | _ => None
  end.
Definition rot_shown : list (entry (@block small)) :=
  [Event (Write 0 [data 1] Ok); Event (Read Live 0 1 Ok [data 9])].

Lemma rot_shown_is_wrong : ¬ admits_recorded Ack 1 (Event (Create 4) :: rot_shown).
Proof. intros Had%check_recorded_correct. by vm_compute in Had. Qed.

Theorem rot_must_be_noticed : reads_unnoticed D 20 (0, 0) shape_of_small = Some rot_shown ∧
  ¬ admits_recorded Ack 1 (Event (Create 4) :: rot_shown).
Proof. split; [by vm_compute|apply rot_shown_is_wrong]. Qed.

Theorem tree_rot_must_be_noticed : reads_unnoticed D_trees 40 (1, 15) shape_of_trees = Some rot_shown ∧
  ¬ admits_recorded Ack 1 (Event (Create 4) :: rot_shown).
Proof. split; [by vm_compute|apply rot_shown_is_wrong]. Qed.

(** ** Both devices cannot read a block, and the program goes on: data are lost, and no device failed *)

Fixpoint daring {C A} (p : array_program C A) : array_program C A :=
  match p with
  | AssumeThat _ k => daring k
  | Finish r => Finish r
  | Stop => Stop
  | PastEnd => PastEnd
  | ReadFrom i a k => ReadFrom i a (λ r, daring (k r))
  | WriteTo i a b k => WriteTo i a b (λ r, daring (k r))
  | FlushOf i k => FlushOf i (λ r, daring (k r))
  | SetMembers ms c k => SetMembers ms c (daring k)
  end.
Definition reads_too_much_rot {Y U} (D : programs Y U) (size : nat) (trees : nat * nat) (g : geometry) :
    option (list (entry (@block small))) :=
  match complete (on_leg size [0; 1] false (run_format D trees g))
    (@whole small _ mirrored 2 (λ _, zero_block)) with
  | (Some (ms, c, Some y), x) =>
      '(e1, (c, x)) ← happens_once D size 2 (Asks (DoWrite 0 [data 1]) [0]) (Idle y ms c) x;
      match c with
      | Idle y ms c =>
          match goes (daring (on_leg size ms c (run_request D y [] (DoRead Live 0 1)))) (λ _ _, true) x with
          | (Stop, _, _) => Some (e1 ++ [when_lost (DoRead Live 0 1)])%list
          | _ => None
          end
      | _ => None
      end
  | _ => None
  end.
Definition too_much_rot_shown : list (entry (@block small)) :=
  [Event (Write 0 [data 1] Ok); Event (Read Live 0 1 (Refused DataLost) [])].

Lemma too_much_rot_is_wrong : ¬ admits_recorded Ack 1 (Event (Create 4) :: too_much_rot_shown).
Proof. intros Had%check_recorded_correct. by vm_compute in Had. Qed.

Theorem readable_pieces_needed : reads_too_much_rot D 20 (0, 0) shape_of_small = Some too_much_rot_shown ∧
  ¬ admits_recorded Ack 1 (Event (Create 4) :: too_much_rot_shown).
Proof. split; [by vm_compute|apply too_much_rot_is_wrong]. Qed.

Theorem tree_readable_pieces_needed :
  reads_too_much_rot D_trees 40 (1, 15) shape_of_trees = Some too_much_rot_shown ∧
  ¬ admits_recorded Ack 1 (Event (Create 4) :: too_much_rot_shown).
Proof. split; [by vm_compute|apply too_much_rot_is_wrong]. Qed.

(** A block of which no device can read its piece is not repaired. *)
Theorem nothing_repairs_it (x : array (@block small)) (k : @block small → program block nat) :
  (goes (on_leg 20 [0; 1] false (ReadBlock 7 k)) (λ _ _, true) x).1 = (AssumeThat false Stop, λ _ _, true).
Proof. reflexivity. Qed.
