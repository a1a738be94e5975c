(** Executions of the disks with a pipeline, computed: their theorems are not vacuous, and need what they
assume. *)
From stdpp Require Import gmap strings.
From LogDisk Require ProvedTreeDiskExecution.
From LogDisk Require Import VirtualDisk Checker CheckerCorrect Medium Codec ByteBlocks ProvedDisk
  ProvedDiskInvariant ProvedDiskRequests ProvedDiskMachine ProvedDiskExecution ProvedTreeDiskTheorem.
From LogDisk Require Import SplitFlush PipelinedMachine PipelinedDisk.

Section Scripts.
Context `{!blocks} {torn : tearing block} {decided : ∀ a, Decision (tears a)} {left_over : remains}.
Context {sealed_tears : ∀ a, Decision (tears_to a torn_block)}.
Context {Y U : Type} (D : programs Y U) (spare : Y → nat → bool).
Local Notation disk := (pipelined D spare).

(** As many I/Os of the next program as are given, as far as it may go during the flush. *)
Fixpoint partly_meanwhile {A} (may : nat → bool) (ios : nat) (p : program block A) (w : flushing block) :
    program block A * flushing block :=
  match ios with
  | 0 => (p, w)
  | S ios => match io_meanwhile may p w with
             | Some (p, w) => partly_meanwhile may ios p w | None => (p, w) end
  end.

(** Writes, of which the last flush is under way after so many I/Os, and the next ones that run meanwhile, as
far as they may go in so many I/Os. *)
Record two_groups := TwoGroups {
  first_writes : list (nat * list block); first_places : list nat; first_ios : nat;
  next_writes : list (nat * list block); next_places : list nat; next_ios : nat;
}.

Inductive pipelined_event :=
  | Plainly (e : @event_in_life _ U)
  | BothEnd (g : two_groups)
  | CutInBoth (g : two_groups) (l : loss).    (* during the flush *)

Definition overlapped (g : two_groups) (y : Y) (m : medium block) :
    option (list (event block) * (program block (Y * bool) * flushing block)) :=
  let '(m1, p1) := partly (first_ios g) (run_group D y (first_places g) (first_writes g)) m in
  match last_flush (Group (first_writes g) p1) with
  | Some (es, y1) => Some (es, partly_meanwhile (spare y1) (next_ios g)
      (run_group D y1 (next_places g) (next_writes g)) (begin_flush m1))
  | None => None
  end.

Definition live_pipelined (e : pipelined_event) (y : Y) (m : medium block) :
    option (list (event block) * (Y * medium block)) :=
  match e with
  | Plainly e => live_once D e y m
  | BothEnd g =>
      '(es, (p, w)) ← overlapped g y m; '(y2, all, m2) ← ended p (end_flush w);
      Some (es ++ if all : bool then writes_shown (next_writes g) Ok else [], (y2, m2))
  | CutInBoth g l =>
      '(_, (_, w)) ← overlapped g y m; x ← switched_on D (left_by l (meanwhile w));
      Some (writes_shown (first_writes g) UnknownOutcome ++ [Crash CutShort; Crash Ok], x)
  end.

Fixpoint pipelined_on (es : list pipelined_event) (y : Y) (m : medium block) : option (list (event block)) :=
  match es with
  | [] => Some []
  | e :: es => '(shown, (y, m)) ← live_pipelined e y m; rest ← pipelined_on es y m; Some (shown ++ rest)
  end.

Definition pipelined_life (trees : nat * nat) (g : geometry) (es : list pipelined_event) :
    option (list (event block)) :=
  match execute (run_format D trees g) (Medium (λ _, zero_block) []) with
  | (Some y, m) => pipelined_on es y m
  | _ => None
  end.

Lemma quietly x x1 tr x2 : pipeline_move D spare x [] x1 → shows disk x1 tr x2 → shows disk x tr x2.
Proof. intros Hmove Hs. by apply (shows_step disk x []) with x1. Qed.

Lemma shows_meanwhile c y ws ios p w p' w' : partly_meanwhile (spare y) ios p w = (p', w') →
  shows disk (TwoJobs c y (Group ws p) w) [] (TwoJobs c y (Group ws p') w').
Proof.
  revert p w. induction ios as [|ios IH]; intros p w; simpl; [intros [= -> ->]; constructor|].
  destruct (io_meanwhile (spare y) p w) as [[p1 w1]|] eqn:Hio; [|intros [= -> ->]; constructor].
  intros Hrest. eapply quietly; [|by apply IH]. apply NextIo. by constructor.
Qed.

Lemma shows_overlapped g y m es p w : overlapped g y m = Some (es, (p, w)) → ∃ c1 y1,
  last_flush c1 = Some (es, y1) ∧ shown_by_cut c1 = writes_shown (first_writes g) UnknownOutcome ++
    [Crash CutShort] ∧
  shows disk (OneJob (Idle y, m)) [] (TwoJobs c1 y1 (Group (next_writes g) p) w).
Proof.
  unfold overlapped. destruct (partly _ _ m) as [m1 p1] eqn:Hpartly.
  destruct (last_flush _) as [[es1 y1]|] eqn:Hlast; [|done]. intros [= <- Hmeanwhile].
  exists (Group (first_writes g) p1), y1. split_and!; [done..|].
  eapply quietly; [apply Moves, (CallGroup D y m (first_writes g) (first_places g))|].
  change (@nil (event block)) with (@nil (event block) ++ []). eapply (shows_app disk).
  - apply shows_pipelined. pose proof (shows_partly (D := D) (Group (first_writes g)) (first_ios g)
      (run_group D y (first_places g) (first_writes g)) m) as Hs. rewrite Hpartly in Hs. apply Hs.
    by constructor.
  - eapply quietly; [by apply (FlushBegins D spare _ _ es1 y1)|].
    eapply quietly; [apply NextTurns; intros m2; apply (CallGroup D y1 m2 (next_writes g) (next_places g))|].
    by eapply shows_meanwhile.
Qed.

Lemma live_pipelined_shows e y m tr y' m' : live_pipelined e y m = Some (tr, (y', m')) →
  shows disk (OneJob (Idle y, m)) tr (OneJob (Idle y', m')).
Proof.
  destruct e as [e|g|g l]; simpl.
  - intros Hlife%live_once_shows. by apply shows_pipelined.
  - intros ([es [p w]]&(c1&y1&Hlast&_&Hs)%shows_overlapped&Hrest)%bind_Some.
    apply bind_Some in Hrest as ([[y2 all] m2]&Hend&[= <- <- <-]).
    apply (shows_app disk _ [] _ _ _ Hs).
    eapply (shows_step disk); [by apply FlushEnds|]. apply shows_pipelined.
    change (if all : bool then writes_shown (next_writes g) Ok else [])
      with ([] ++ if all : bool then writes_shown (next_writes g) Ok else []).
    eapply shows_app; [eapply (shows_ended (Group (next_writes g))); [by constructor|exact Hend]|].
    apply shows_one. destruct all; constructor.
  - intros ([es [p w]]&(c1&y1&Hlast&Hcut&Hs)%shows_overlapped&Hrest)%bind_Some.
    apply bind_Some in Hrest as ([y2 m2]&Hon&[= <- <- <-]).
    assert (writes_shown (first_writes g) UnknownOutcome ++ [Crash CutShort; Crash Ok] =
      shown_by_cut c1 ++ [Crash Ok]) as -> by by rewrite Hcut, <-(assoc_L (++)).
    apply (shows_app disk _ [] _ _ _ Hs).
    apply (shows_step disk _ _ (OneJob (Off, Medium (stable (left_by l (meanwhile w))) []))).
    + apply CutMeanwhile, survives_left.
    + apply shows_pipelined. pose proof (shows_switched_on (D := D) _ _ _ Hon) as Hsw. by destruct l.
Qed.

Lemma pipelined_life_shows trees g es tr : torn_unread g → pipelined_life trees g es = Some tr →
  ∃ x x', fresh disk (disk_blocks g) x ∧ shows disk x tr x'.
Proof.
  unfold pipelined_life. intros Hg. destruct (execute _ _) as [[y|] m] eqn:Hex; [|done]. intros Hlife.
  exists (OneJob (Idle y, m)).
  assert (∃ x, shows disk (OneJob (Idle y, m)) tr x) as [x Hx].
  { clear Hex. revert y m tr Hlife.
    induction es as [|e es IH]; simpl; intros y m tr; [intros [= <-]; eexists; constructor|].
    intros ([shown [y1 m1]]&Honce%live_pipelined_shows&Hrest)%bind_Some.
    apply bind_Some in Hrest as (rest&(x&Hx)%IH&[= <-]). exists x. by eapply (shows_app disk). }
  exists x. split; [|done]. exists (Idle y, m). split; [done|].
  exists trees, g, (λ _, zero_block), y. by rewrite Hex.
Qed.
End Scripts.

#[local] Existing Instances behind_the_log tears_dec zeroes sealed_tears_dec.
Local Instance small_eq_dec : EqDecision (@block small) := (_ : EqDecision (list byte)).

(** A log of four records. *)
Definition longer_log : geometry := Geometry 4 4 2 6 2 2.

(** Two writes; while their flush is under way the data of a third one goes to its place, and waits there for
the end of the flush, though it would go on ([next_ios]). Then power cuts during the flush: with all that was
written, the first write happened, and the next one did not; with torn data, neither did. *)
Definition two_in_flight : list (@pipelined_event small upkeep) :=
  [Plainly (Ask (DoWrite 0 [data 7]) [5]);
   BothEnd (TwoGroups [(0, [data 1]); (1, [data 2])] [0; 1] 4 [(2, [data 3])] [2] 9);
   Plainly (Ask (DoRead Live 0 4) []);
   CutInBoth (TwoGroups [(0, [data 4])] [3] 3 [(1, [data 5])] [4] 9) KeepAll;
   Plainly (Ask (DoRead Live 0 4) []); Plainly (Keep Checkpoint);
   CutInBoth (TwoGroups [(0, [data 6])] [4] 3 [(1, [data 8])] [5] 9) TearOnly;
   Plainly (Ask (DoRead Live 0 4) [])].
Definition two_in_flight_shows : list (event (@block small)) :=
  [Write 0 [data 7] Ok; Write 0 [data 1] Ok; Write 1 [data 2] Ok; Write 2 [data 3] Ok;
   Read Live 0 4 Ok [data 1; data 2; data 3; data 0];
   Write 0 [data 4] UnknownOutcome; Crash CutShort; Crash Ok;
   Read Live 0 4 Ok [data 4; data 2; data 3; data 0];
   Write 0 [data 6] UnknownOutcome; Crash CutShort; Crash Ok;
   Read Live 0 4 Ok [data 4; data 2; data 3; data 0]].

Theorem pipelined_life_exists :
  ∃ x x', fresh (@pipelined_disk small _) 4 x ∧ shows pipelined_disk x two_in_flight_shows x'.
Proof.
  apply (pipelined_life_shows proved_programs spare_address (0, 0) longer_log two_in_flight);
    [|by vm_compute].
  apply small_unread; simpl; lia.
Qed.

(** ** What is written during a flush is not covered by it *)

Theorem later_is_volatile : ∃ (w : flushing nat) f a,
  may_leave (torn := untorn) (end_flush w) f ∧ f a ≠ read_block (meanwhile w) a.
Proof. exists (Flushing (λ _, 0) [] [(0, 1)]), (λ _, 0), 0. split; [by intros a; left; left|done]. Qed.

(** ** What is spare *)

(** If the next writes may write their record too, the power may leave it, and lose the data of the writes
before: recovery compares those of the newest record only. *)
Definition record_in_flight : list (@pipelined_event small upkeep) :=
  [Plainly (Ask (DoWrite 0 [data 7]) [5]);
   CutInBoth (TwoGroups [(0, [data 1])] [0] 3 [(1, [data 2])] [1] 3) (LoseAt (data_address longer_log 0));
   Plainly (Ask (DoRead Live 0 1) [])].
Definition record_in_flight_shows : list (event (@block small)) :=
  [Write 0 [data 7] Ok; Write 0 [data 1] UnknownOutcome; Crash CutShort; Crash Ok;
   Read Live 0 1 Ok [data 0]].

Theorem spare_places_needed : @blocks_laws small ∧
  ¬ implements (pipelined (@proved_programs small) (λ _ _, true)) Ack.
Proof.
  split; [apply small_laws|]. intros Himp.
  destruct (pipelined_life_shows proved_programs (λ _ _, true) (0, 0) longer_log record_in_flight
    record_in_flight_shows) as (x&x'&Hx&Hs); [apply small_unread; simpl; lia|by vm_compute|].
  specialize (Himp _ _ _ _ Hx Hs). apply check_correct in Himp. by vm_compute in Himp.
Qed.

(** ** Blocks and digests: as without a pipeline *)

Theorem pipelined_round_trip_needed : ¬ implements (@pipelined_disk forgetful _) Ack.
Proof. intros Himp. by apply round_trip_needed, (pipelined_implements _ spare_address). Qed.

Theorem pipelined_digest_needed : ¬ implements (@pipelined_disk colliding _) Ack.
Proof. intros Himp. by apply digest_needed, (pipelined_implements _ spare_address). Qed.

Theorem pipelined_tree_round_trip_needed : ¬ implements (@pipelined_tree_disk forgetful _ 1) Ack.
Proof.
  intros Himp. by apply ProvedTreeDiskExecution.tree_round_trip_needed,
    (pipelined_implements _ tree_spare_address).
Qed.

Theorem pipelined_tree_digest_needed : ¬ implements (@pipelined_tree_disk colliding _ 1) Ack.
Proof.
  intros Himp. by apply ProvedTreeDiskExecution.tree_digest_needed,
    (pipelined_implements _ tree_spare_address).
Qed.
