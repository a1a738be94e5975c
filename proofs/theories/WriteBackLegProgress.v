(** On a leg a flush is answered [Ok] while enough members answer: a drain finds places for what is delayed,
as on one device ([WriteBackProgress.v]), after a bounded number of turns, while other devices fail between
any two I/Os.

A disk that was lost while writes were delayed may have drained them before nobody answered any more. Then
the same writes need places a second time: a flush is answered [Ok] if there are as many. *)
From stdpp Require Import gmap strings.
From LogDisk Require ProvedTreeDisk ProvedTreeDiskCost ProvedTreeDiskBounds ProvedTreeDiskInvariant
  WriteBackContract.
From LogDisk Require Import VirtualDisk RecordedTrace RecordedImplementation Medium Codec ProvedDisk
  ProvedDiskInvariant ProvedDiskRequests ProvedDiskBounds ProvedDiskAnswers RequestProgress.
From LogDisk Require Import SplitFlush DiskMachine Devices Leg LegCorrect LegProgress LegDiskMachine
  LegDiskRefinement Progress LegDiskProgress ProvedDiskMachine ProvedDiskRefinement ProvedTreeDiskTheorem.
From LogDisk Require Import WriteBack WriteBackPlaces WriteBackDisk WriteBackProgress WriteBackLeg
  WriteBackLegRefinement WriteBackLegDisk.
Import LegDiskMachine.

(** ** What a program on a leg ends with, whatever it reads and whoever answers *)

Section Ends.
Context {B C A : Type} `{!cutting B C} {shreds : torn_pieces C} (R : A → Prop).
Implicit Types k : list nat → array_program C A.

Fixpoint array_ends_in (p : array_program C A) : Prop :=
  match p with
  | Finish r => R r
  | Stop | PastEnd => True
  | ReadFrom _ _ k => ∀ r, array_ends_in (k r)
  | WriteTo _ _ _ k => ∀ ok, array_ends_in (k ok)
  | FlushOf _ k => ∀ ok, array_ends_in (k ok)
  | SetMembers _ _ k | AssumeThat _ k => array_ends_in k
  end.

Lemma ends_without ms c k : (∀ ms, array_ends_in (k ms)) → array_ends_in (without ms c (k ms)).
Proof. intros Hk. unfold without. destruct (decide _); [apply Hk|done]. Qed.

Lemma ends_gather n kept todo got bad c a lost (k : list nat → list nat → B → array_program C A) :
  (∀ ms, array_ends_in (lost ms)) → (∀ ms bad b, array_ends_in (k ms bad b)) →
  array_ends_in (gather n kept todo got bad c a lost k).
Proof.
  intros Hlost Hk. revert n kept got bad. induction todo as [|i todo IH]; intros [|n] kept got bad; simpl;
    try done; [by destruct (decide _); simpl|]. intros [[p|]|]; [apply IH..|].
  unfold without. destruct (decide _); [|done]. apply IH.
Qed.

Lemma ends_repair bad kept todo c a b k : (∀ ms, array_ends_in (k ms)) →
  array_ends_in (repair bad kept todo c a b k).
Proof.
  intros Hk. revert kept. induction todo as [|i todo IH]; intros kept; simpl; [done|].
  destruct (decide _); [|done]. intros []; [done|]. unfold without. by destruct (decide _); simpl.
Qed.

Lemma ends_write_to kept todo a b k : (∀ ms, array_ends_in (k ms)) → array_ends_in (write_to kept todo a b k).
Proof.
  intros Hk. revert kept. induction todo as [|i todo IH]; intros kept; simpl; [done|].
  intros []; [done|]. unfold without. by destruct (decide _); simpl.
Qed.

Lemma ends_flush_of kept todo c k : (∀ ms, array_ends_in (k ms)) → array_ends_in (flush_of kept todo c k).
Proof.
  intros Hk. revert kept. induction todo as [|i todo IH]; intros kept; simpl; [done|].
  intros []; [done|]. unfold without. by destruct (decide _); simpl.
Qed.

Lemma ends_open size ms c (k : list nat → bool → array_program C A) : (∀ ms c, array_ends_in (k ms c)) →
  array_ends_in (open_leg size ms c k).
Proof.
  intros Hk. unfold open_leg. destruct c; [done|].
  assert (∀ n k ms, (∀ ms, array_ends_in (k ms)) → array_ends_in (equalize n ms k)) as Hequal.
  { intros n k' ms' Hk'. revert ms'. induction n as [|n IH]; intros ms'; simpl; [done|].
    apply ends_gather; [done|]. intros. by apply ends_write_to. }
  apply Hequal. intros. by apply ends_flush_of.
Qed.

Lemma array_ends_in_io (p p' : array_program C A) x x' : array_ends_in p → array_io p x p' x' →
  array_ends_in p'.
Proof. by intros Hp Hio; destruct Hio; simpl in Hp. Qed.
End Ends.

Lemma ends_on_leg {B C A} `{!cutting B C} (R : A → Prop) size ms c (p : program B A) :
  ends_in R p → array_ends_in (λ r, R r.2) (on_leg size ms c p).
Proof.
  revert ms c. induction p as [r|a k IH|a b k IH|k IH|φ k IH]; intros ms c Hp; simpl in *.
  - done.
  - destruct (decide _); [|done]. apply ends_gather; [done|]. intros. apply ends_repair. intros. by apply IH.
  - destruct (decide _); [|done]. unfold unclean. destruct c; simpl; apply ends_write_to; intros; by apply IH.
  - apply ends_flush_of. intros. by apply IH.
  - by apply IH.
Qed.

(** ** The room for delayed writes is there, as long as the disk was not lost *)

Section Room.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type} (D : programs Y U).
Context (size count : nat) (shape_of : Y → geometry) (room_of : Y → nat) (spares_places : U → bool)
  (bound : Y → nat).
Local Notation delaying := (write_back D shape_of room_of spares_places).
Local Notation keeping_move := (keeping_move D shape_of room_of spares_places size count).
Local Notation roomy := (roomy shape_of bound).
Context (kept : keeps_places D shape_of room_of spares_places bound).

(** Enough members answered all the time. *)
Inductive never_lost : keeping_machine C Y → keeping_machine C Y → Prop :=
  | never_lost_here m : never_lost m m
  | never_lost_step m es m1 m2 :
      keeping_move m es m1 → m1.1.1.1 ≠ Lost → never_lost m1 m2 → never_lost m m2.

Definition roomy_leg (c : control C (Y * delay)) : Prop :=
  match c with
  | Idle o _ _ | Settling o _ => roomy o
  | Busy _ p => array_ends_in (λ r, roomy r.2.1.1) p
  | Group _ p => array_ends_in (λ r, roomy r.2.1) p
  | Upkeep p => array_ends_in (λ r, roomy r.2) p
  | Lost => False
  | Off => True
  | Recovery on p => on = false ∧ array_ends_in (λ r, ∀ o, r.2 = Some o → roomy o) p
  end.

Lemma roomy_leg_move c x h es c' x' h' : LegDiskMachine.move delaying size count (c, x, h) es (c', x', h') →
  c' ≠ Lost → roomy_leg c → roomy_leg c'.
Proof.
  inversion 1; subst; simpl; intros Hlost Hc; try done; try (by eapply array_ends_in_io);
    try (by destruct Hlost).
  - apply (ends_on_leg (λ o : delayed_outcome, roomy o.1.1)). eapply roomy_request; [exact kept|exact Hc].
  - apply (ends_on_leg (λ o : Y * delay * bool, roomy o.1)). by eapply roomy_group.
  - apply (ends_on_leg (λ o : Y * delay, roomy o)). eapply roomy_maintain; [exact kept|exact Hc].
  - destruct Hc as [-> Hc]. split; [done|]. by eapply array_ends_in_io.
  - destruct Hc as [_ Hc]. by apply Hc.
  - split; [done|]. apply ends_open. intros.
    apply (ends_on_leg (λ r : option (Y * delay), ∀ o, r = Some o → roomy o)).
    eapply ends_in_then; [apply ends_anyhow|]. intros r _ o.
    eapply roomy_opened, kept.
Qed.

Lemma never_lost_roomy m m' : never_lost m m' → roomy_leg m.1.1.1 → roomy_leg m'.1.1.1.
Proof.
  induction 1 as [m|m es m1 m2 Hmove Hlost _ IH]; [done|]. intros Hm. apply IH.
  destruct Hmove as [c x h k es c' x' h' Hmove]. simpl in *.
  assert (put_back k c c' = c') as Heq.
  { destruct c as [| | | | | | |[] p]; try done. by destruct Hm. }
  rewrite Heq in *. by eapply roomy_leg_move.
Qed.

Context (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).
Context (programs_safe : crash_safe_programs D shape_of represents recoverable) {laws : cutting_laws count}.

(** Whatever happened: when nothing is under way, there is a disk on the members, and what is delayed is
within it. *)
Theorem idle_on_leg n m tr y z ms c x h k :
  keeping_formatted D shape_of room_of spares_places size count n m →
  recorded_shows (write_back_leg D shape_of room_of spares_places size count) m tr
    (Idle (y, z) ms c, x, h, k) →
  in_range (shape_of y) (delayed z) ∧ members x = ms ∧ proper count ms ∧
    ∃ f d, represents y f d ∧ each_up ms (reads_as size f) x.
Proof.
  intros Hnew Hrun. destruct m as [[[c0 x0] h0] k0].
  pose proof (new_delay D size count shape_of room_of spares_places represents recoverable programs_safe
    _ _ _ _ _ Hnew) as Hboth.
  destruct (both_shown D size count shape_of room_of spares_places represents recoverable programs_safe
    Prefix ltac:(done) _ _ _ _ _ Hrun Hboth) as (v&S&cb&B&Hst&Hrel%related_fits&_&HB). inversion Hst; subst.
  split.
  - pose proof Hrel as [Hserves _]. apply serves_some in Hserves as (b&Hb&Hon&Hsize).
    destruct (HB b Hb Hon) as (s&_&Hc).
    unfold in_range. rewrite <-Hsize. by apply (WriteBackContract.covers_fits z b s Hc).
  - destruct Hrel as [(f&d&_&[Hholds Hreads]&<-&_&Hy) _].
    split; [done|]. split; [split; [by eapply holds_distinct|intros i; by eapply holds_bound]|].
    by exists f, d.
Qed.

Lemma never_lost_shows m m' : never_lost m m' →
  ∃ tr, recorded_shows (write_back_leg D shape_of room_of spares_places size count) m tr m'.
Proof.
  induction 1 as [m|m es m1 m2 Hmove _ _ [tr Htr]]; [exists []; constructor|].
  exists (es ++ tr). by econstructor.
Qed.

(** If the disk was never lost, there are places for it. *)
Lemma always_roomy_on_leg n m o ms c x h k :
  keeping_formatted D shape_of room_of spares_places size count n m → never_lost m (Idle o ms c, x, h, k) →
  blocks_delayed o.2 ≤ bound o.1.
Proof.
  intros Hnew Hrun. assert (roomy o) as [_ ?]; [|lia]. apply (never_lost_roomy _ _ Hrun).
  destruct m as [[[c0 x0] h0] k0], Hnew as [(trees&g&f&ms0&cl0&o0&x1&_&_&Hend&[= -> -> ->]) _]. simpl.
  pose proof (mapped_on_leg (opened room_of) size (seq 0 count) false (run_format D trees g)) as Hmapped.
  rewrite (mapped_complete _ _ _ _ Hmapped) in Hend.
  destruct (complete _ _) as [[[[ms1 cl1] r]|] x2]; simpl in Hend; [|done]. injection Hend as _ _ Hr _.
  by eapply roomy_opened; [exact kept|].
Qed.
End Room.

(** ** A flush *)

Lemma runs_within_then {B A A'} size n (p : program B A) (g : A → A') m :
  runs_within size n p m → runs_within size n (then_ p (λ o, Done (g o))) m.
Proof.
  revert n m. induction p as [r|a k IH|a b k IH|k IH|φ k IH]; intros [|n] m; simpl; try done;
    try (intros [? ?]; split; [done|]); by auto.
Qed.

Section Flush.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type} (D : programs Y U).
Context (size count : nat) (shape_of : Y → geometry) (room_of : Y → nat) (spares_places : U → bool)
  (bound : Y → nat).
Context (kept : keeps_places D shape_of room_of spares_places bound).
Context (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).
Context (programs_safe : crash_safe_programs D shape_of represents recoverable) {laws : cutting_laws count}.
Local Notation delaying := (write_back D shape_of room_of spares_places).

(** The places that the scheduler proposes: the first that are free, as many as are needed. *)
Context (first_places : Y → nat → list nat) (group_ios : Y → list (nat * list block) → nat)
  (fitting : Y → delay → Prop).
Definition flush_places (o : Y * delay) (n : nat) : option (list nat) :=
  Some (first_places o.1 (blocks_delayed o.2 + n)).
Definition fits_to_flush (o : Y * delay) (q : request) : Prop := q = DoFlush ∧ fitting o.1 o.2.

Context (within : ∀ y f d z places ws, represents y f d → fitting y z →
  runs_within size (group_ios y ws) (run_group D y places ws) (Medium f [])).
Context (flushes : ∀ y z f d m, represents y f d → in_range (shape_of y) (delayed z) →
  blocks_delayed z ≤ bound y → fitting y z →
  (execute (run_request delaying (y, z) (first_places y (blocks_delayed z)) DoFlush) m).1.1.2 = Ok).

Lemma flush_answers : answers_admissible delaying size flush_places (Drain [])
  (λ o f d, represents o.1 f d ∧ in_range (shape_of o.1) (delayed o.2) ∧ blocks_delayed o.2 ≤ bound o.1)
  fits_to_flush
  (λ o _, group_ios o.1 (reverse (delayed o.2))).
Proof.
  split.
  - intros [y z] f d q places [Hy _] [-> Hfit] _. simpl in *.
    destruct (drain_is D y z places (λ (o : Y * delay) (all : bool), (o, if all then Ok else UnknownOutcome,
      @nil block))) as [[_ ->]| ->].
    + by destruct (group_ios _ _).
    + apply runs_within_then. by eapply within.
  - intros [y z] f d q places (Hy&Hrange&Hroom) [-> Hfit] [= <-] _. rewrite Nat.add_0_r. by eapply flushes.
  - done.
Qed.

Theorem flush_on_leg n m tr y z ms c x h k :
  keeping_formatted D shape_of room_of spares_places size count n m →
  recorded_shows (write_back_leg D shape_of room_of spares_places size count) m tr
    (Idle (y, z) ms c, x, h, k) →
  blocks_delayed z ≤ bound y → fitting y z →
  ends_well (weather count) (turn delaying size flush_places (Drain []) DoFlush) (answered_ok DoFlush)
    (turns_of (length ms) (group_ios y (reverse (delayed z)))) (Idle (y, z) ms c, x, h).
Proof.
  intros Hnew Hrun Hroom Hfit.
  destruct (idle_on_leg D size count shape_of room_of spares_places represents recoverable programs_safe
    _ _ _ _ _ _ _ _ _ _ Hnew Hrun) as (Hrange&Hms&Hproper&f&d&Hy&Hup).
  by apply (request_ends delaying size count flush_places (Drain []) _ _ _ flush_answers (y, z) f d ms c x h
    DoFlush).
Qed.
End Flush.

(** ** Both disks *)

Section Disks.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} (most size count bits : nat).
Context {laws : cutting_laws count}.

(** In any run, if there are places for what is delayed. *)
Theorem leg_flush_finds_places n m tr y z ms c x h k :
  blocks_laws → recorded_fresh (write_back_leg_disk most size count) n m →
  recorded_shows (write_back_leg_disk most size count) m tr (Idle (y, z) ms c, x, h, k) →
  blocks_delayed z ≤ drainable_now y →
  device_blocks (shape y) ≤ size → small_group (shape y) (next_record y) (reverse (delayed z)) → maps_fit y →
  ends_well (weather count) (turn (write_back_programs most) size (flush_places first_free) (Drain [])
    DoFlush)
    (answered_ok DoFlush) (turns_of (length ms) (group_ios (shape y) (reverse (delayed z))))
    (Idle (y, z) ms c, x, h).
Proof.
  intros blocks_come_back Hnew Hrun Hroom Hsize Hsmall Hfit.
  apply (flush_on_leg proved_programs size count shape (delay_room most) spares_places drainable_now
    represents recoverable proved_programs_safe first_free (λ y, group_ios (shape y))
    (λ y z, device_blocks (shape y) ≤ size ∧ small_group (shape y) (next_record y) (reverse (delayed z)) ∧
      maps_fit y)) with n m tr k; try done.
  - intros y' f d z' places ws Hy [? _]. by eapply within_write_group.
  - intros y' z' f d m' Hy Hrange Hroom' (_&?&?). by eapply (roomy_flush most).
Qed.

(** There are, if the disk was never lost. *)
Theorem leg_flush_is_answered n m y z ms c x h k :
  blocks_laws → recorded_fresh (write_back_leg_disk most size count) n m →
  never_lost proved_programs size count shape (delay_room most) spares_places m (Idle (y, z) ms c, x, h, k) →
  device_blocks (shape y) ≤ size → small_group (shape y) (next_record y) (reverse (delayed z)) → maps_fit y →
  ends_well (weather count) (turn (write_back_programs most) size (flush_places first_free) (Drain [])
    DoFlush)
    (answered_ok DoFlush) (turns_of (length ms) (group_ios (shape y) (reverse (delayed z))))
    (Idle (y, z) ms c, x, h).
Proof.
  intros laws' Hnew Hrun. destruct (never_lost_shows _ _ _ _ _ _ _ _ Hrun) as [tr Hshows].
  eapply leg_flush_finds_places; [done..|].
  by apply (always_roomy_on_leg _ _ _ _ _ _ _ (whole_keeps_places most) _ _ _ _ _ _ _ _ Hnew Hrun).
Qed.

Theorem tree_leg_flush_finds_places n m tr y z ms c x h k :
  blocks_laws → recorded_fresh (write_back_tree_leg_disk most size count bits) n m →
  recorded_shows (write_back_tree_leg_disk most size count bits) m tr (Idle (y, z) ms c, x, h, k) →
  blocks_delayed z ≤ tree_drainable_now y →
  ProvedTreeDiskBounds.tree_device_blocks (ProvedTreeDisk.shape y) (ProvedTreeDisk.tree_size y) ≤ size →
  small_group (ProvedTreeDisk.shape y) (ProvedTreeDisk.next_record y) (reverse (delayed z)) →
  ProvedTreeDiskCost.goes_into_slot bits y →
  ends_well (weather count)
    (turn (write_back_tree_programs most bits) size (flush_places ProvedTreeDisk.first_free) (Drain [])
      DoFlush)
    (answered_ok DoFlush)
    (turns_of (length ms) (ProvedTreeDiskBounds.tree_group_ios y (reverse (delayed z))))
    (Idle (y, z) ms c, x, h).
Proof.
  intros blocks_come_back Hnew Hrun Hroom Hsize Hsmall Hfit.
  apply (flush_on_leg (tree_programs bits) size count ProvedTreeDisk.shape (tree_delay_room most)
    tree_spares_places tree_drainable_now
    (ProvedTreeDiskInvariant.tree_represents bits) _ (tree_programs_safe bits blocks_come_back)
    ProvedTreeDisk.first_free ProvedTreeDiskBounds.tree_group_ios
    (λ y z, ProvedTreeDiskBounds.tree_device_blocks (ProvedTreeDisk.shape y) (ProvedTreeDisk.tree_size y) ≤
      size ∧
      small_group (ProvedTreeDisk.shape y) (ProvedTreeDisk.next_record y) (reverse (delayed z)) ∧
      ProvedTreeDiskCost.goes_into_slot bits y)) with n m tr k; try done.
  - intros y' f d z' places ws Hy [? _]. by eapply ProvedTreeDiskBounds.within_tree_group.
  - intros y' z' f d m' Hy Hrange Hroom' (_&?&?). by eapply (roomy_tree_flush most bits).
Qed.

Theorem tree_leg_flush_is_answered n m y z ms c x h k :
  blocks_laws → recorded_fresh (write_back_tree_leg_disk most size count bits) n m →
  never_lost (tree_programs bits) size count ProvedTreeDisk.shape (tree_delay_room most) tree_spares_places m
    (Idle (y, z) ms c, x, h, k) →
  ProvedTreeDiskBounds.tree_device_blocks (ProvedTreeDisk.shape y) (ProvedTreeDisk.tree_size y) ≤ size →
  small_group (ProvedTreeDisk.shape y) (ProvedTreeDisk.next_record y) (reverse (delayed z)) →
  ProvedTreeDiskCost.goes_into_slot bits y →
  ends_well (weather count)
    (turn (write_back_tree_programs most bits) size (flush_places ProvedTreeDisk.first_free) (Drain [])
      DoFlush)
    (answered_ok DoFlush)
    (turns_of (length ms) (ProvedTreeDiskBounds.tree_group_ios y (reverse (delayed z))))
    (Idle (y, z) ms c, x, h).
Proof.
  intros laws' Hnew Hrun. destruct (never_lost_shows _ _ _ _ _ _ _ _ Hrun) as [tr Hshows].
  eapply tree_leg_flush_finds_places; [done..|].
  by apply (always_roomy_on_leg _ _ _ _ _ _ _ (trees_keep_places most bits) _ _ _ _ _ _ _ _ Hnew Hrun).
Qed.
End Disks.
