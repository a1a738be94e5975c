(** Progress of resync: as long as enough members answer, it ends after a bounded number of turns, and
[Settle] is answered [Ok], while other devices fail between any two I/Os. A device that does not answer, or
fails while it is copied to, is left out. *)
From stdpp Require Import gmap.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec DiskMachine Devices Leg LegCorrect
  LegProgress LegDiskMachine LegDiskRefinement LegDiskProgress Progress.
Import ProvedDisk(geometry).

(** ** The program *)

Section Program.
Context {B C A : Type} `{cutting B C} {torn : tearing B} (size : nat).
Context (Q : A → array C → Prop).
Implicit Types (x : array C) (ms : list nat).

Definition copy_ios (w n : nat) : nat := n * (2 * w + 2) + 1.
Definition resync_ios (w devices : nat) : nat := devices * (copy_ios w size + 1).

Lemma ends_copy_to w n i j ms c x k :
  members x = ms → length ms ≤ w →
  (∀ x ms ok, members x = ms → length ms ≤ w → array_ends n Q (k ms ok) x) →
  array_ends (copy_ios w j + n) Q (copy_to i j ms c k) x.
Proof.
  unfold copy_ios. intros Hms Hw Hk. revert ms x Hms Hw. induction j as [|j IH]; intros ms x Hms Hw.
  - intros x1 [(Hm&_&_) _]. simpl. destruct (up (device_at x1 i)); (apply Hk; [simpl; congruence|done]).
  - apply array_ends_more with (2 * length ms + S (S (j * (2 * w + 2) + 1 + n))); [simpl;
    lia|]. simpl copy_to.
    apply (ends_gather Q _ (λ _, True) (λ _ _, True)); rewrite ?Nat.add_0_r; try done.
    intros y ms' bad got _ Hy Hsub _ _ _ x1 [(Hm&_&_) _].
    assert (length ms' ≤ w) as Hlen by (apply sublist_length in Hsub; simpl in Hsub; lia).
    destruct (up (device_at x1 i)).
    + apply IH; [simpl; congruence|done].
    + intros x2 Hx2. apply array_ends_more with n; [lia|]. apply Hk; [|done].
      destruct Hx2 as [->|(?&_&->)]; simpl; congruence.
Qed.

Lemma ends_resync w n todo ms c x k :
  members x = ms → length ms + length todo ≤ w →
  (∀ x ms, members x = ms → array_ends n Q (k ms) x) →
  array_ends (resync_ios w (length todo) + n) Q (resync size todo ms c k) x.
Proof.
  unfold resync_ios. intros Hms Hw Hk. revert ms x Hms Hw.
  induction todo as [|i todo IH]; intros ms x Hms Hw; [by apply Hk|]. simpl in Hw |- *.
  set (rest := length todo * (copy_ios w size + 1)) in *.
  apply array_ends_more with (copy_ios (length ms) size + (S (rest + n))).
  { unfold copy_ios. nia. }
  apply ends_copy_to; [done|done|]. intros y ms' ok Hy Hlen. destruct ok.
  - intros x1 _. apply IH; [done|]. rewrite app_length. simpl. lia.
  - apply array_ends_more with (rest + n); [lia|]. apply IH; [done|lia].
Qed.
End Program.

(** ** The machine *)

Section Resync.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type} (D : programs Y U).
Variables (size count : nat).
Context {laws : cutting_laws count}.
Local Notation machine := (machine C Y).
Implicit Types (x : array C) (y : Y) (ms h : list nat) (z : machine).

Inductive settle_turn : machine → list (entry block) → machine → Prop :=
  | Starts y ms c x h : settle_turn (Idle y ms c, x, h) [] (Settling y (settle_leg size count ms c), x, h)
  | Copies y p x p' x' h : array_io p x p' x' → settle_turn (Settling y p, x, h) [] (Settling y p', x', h)
  | Ends y ms c x h : settle_turn (Settling y (Finish (ms, c)), x, h) [Settle Ok] (Idle y ms c, x, h).

Lemma settle_turn_is_move z es z' : settle_turn z es z' → move D size count z es z'.
Proof. destruct 1; by constructor. Qed.

Definition settled_ok (es : list (entry block)) (_ : machine) : Prop := es = [Settle Ok].

(** Two turns, and those of the I/Os: a block that is copied is read from each member at most, and written. *)
Definition settle_turns (w : nat) : nat := 2 + resync_ios size (w + count) count.

Lemma settling_ends y ms c x h :
  members x = ms →
  ends_well (weather count) settle_turn settled_ok (settle_turns (length ms)) (Idle y ms c, x, h).
Proof.
  intros Hms [[c1 x1] h1] [Hc [(Hm&_&_) _]]%weather_tolerable. simpl in Hc, Hm. subst c1.
  split; [do 2 eexists; apply Starts|]. intros es z Hz. right. inversion Hz; subst. split; [done|].
  rewrite (Nat.add_comm 1). apply (machine_ends _ settle_turn settled_ok (Settling y) _ _ (λ _ _, True)).
  - done.
  - intros. by apply Copies.
  - intros p x2 h2 es z Hstep. destruct p; [done|..]; inversion Hstep; subst; eauto.
  - intros [ms2 c2] x2 h2 _ [[c3 x3] h3] [Hc3 _]%weather_tolerable. simpl in Hc3. subst c3.
    split; [do 2 eexists; apply Ends|]. intros es z Hstep. left. inversion Hstep; subst; [|done].
    match goal with H : array_io (Finish _) _ _ _ |- _ => inversion H end.
  - lia.
  - unfold settle_leg. set (todo := filter _ _).
    assert (length todo ≤ count) as Htodo.
    { unfold todo. etrans; [apply filter_length|]. by rewrite seq_length. }
    apply array_ends_more with (resync_ios size (length (members x1) + count) (length todo) + 0).
    { rewrite Hm. unfold resync_ios. nia. }
    apply (ends_resync size); [done|rewrite Hm; lia|]. by intros x2 ms2 _ x3 _.
Qed.

Theorem resync_ends (shape : Y → geometry) represents recoverable n z tr y ms c x h :
  crash_safe_programs D shape represents recoverable →
  formatted D size count n z → lives D size count z tr (Idle y ms c, x, h) →
  ends_well (weather count) settle_turn settled_ok (settle_turns (length ms)) (Idle y ms c, x, h).
Proof.
  intros Hsafe Hz Hlives.
  destruct (reached_related D size count _ _ _ Hsafe _ _ _ _ Hz Hlives) as (v&S&(f&d&_&_&Hms&_)&_).
  by apply settling_ends.
Qed.

(** Where memory knows of no member there is none to copy from. *)
Theorem resync_needs_members n y x :
  0 < size → enough x →
  ¬ ends_well (weather count) settle_turn settled_ok n ((Idle y [] false, x, []) : machine).
Proof.
  intros Hsize Hx. assert (∀ (c : control C Y) h, all_agreed c → weather count (c, x, h) (c, x, h)) as Hcalm.
  { intros. by split_and!. }
  assert (settle_leg size count [] false = @Stop C _) as Hstop.
  { pose proof (needed_bounds (count := count) (pred size)). pose proof (fewest_bound (count := count)).
    assert (seq 0 count = 0 :: seq 1 (pred count)) as Hseq.
    { assert (0 < count) as Hcount by lia. clear -Hcount. destruct count; [lia|done]. }
    unfold settle_leg. rewrite Hseq, filter_cons_True by apply not_elem_of_nil. cbn [resync].
    rewrite <-(Nat.succ_pred size) by lia. simpl. unfold read_from. destruct (needed _); [lia|]. simpl.
    by rewrite decide_True by lia. }
  destruct n as [|n]; [by intros []|]. intros Hends.
  destruct (Hends _ (Hcalm (Idle _ _ _) _ I)) as [_ Hall].
  destruct (Hall _ _ (Starts y [] false x [])) as [[=]|[_ Hrest]].
  rewrite Hstop in Hrest. revert Hrest. apply no_progress_blocked; [by apply Hcalm|].
  intros es z Hz. inversion Hz; subst. match goal with H : array_io Stop _ _ _ |- _ => inversion H end.
Qed.
End Resync.
