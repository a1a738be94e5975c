(** Executions of the proved disk, computed: the theorem is not vacuous, and it needs its hypothesis. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import OverlappingDisk OverlappingDiskCorrect OverlappingDiskQueue.
From LogDisk Require Import VirtualDisk Checker CheckerCorrect RecordedTrace Medium Codec ByteBlocks
  ProvedDisk
  ProvedDiskProgress ProvedDiskInvariant ProvedDiskRequests ProvedDiskMachine.
From LogDisk Require Export DiskMachineLives.
Section Scripts.
Context `{!blocks} {torn : tearing} {decided : ∀ a, Decision (tears a)} {left_over : remains}.
Notation live_on := (live_on proved_programs).
Notation live_once := (live_once proved_programs).
Notation switched_on := (switched_on proved_programs).

(** Behind a queue it shows the same, if each request is sent alone. *)
Local Notation told := (one_by_one proved_disk).

Lemma queue_app q h tr q1 h' tr' q2 :
  queue_run told q h tr q1 → queue_run told q1 h' tr' q2 → queue_run told q (h ++ h') (tr ++ tr') q2.
Proof. induction 1; intros Hq; [done|]. rewrite <-!(assoc_L (++)). econstructor; [done|auto]. Qed.

Lemma served_alone x tr x' : shows proved_disk x tr x' → Forall (λ e, ends (Event e) = false) tr →
  queue_run told (in_front proved_disk x) (Alone ∘ Event <$> tr) tr (in_front proved_disk x').
Proof.
  induction 1 as [x|x es x1 tr x2 Hm _ IH]; intros Hends; [constructor|].
  apply Forall_app in Hends as [Hes Htr]. rewrite fmap_app. eapply queue_app; [|by apply IH].
  apply (queue_more _ _ [] [] (Queue (M := told) (x1, es) [] [])); [by constructor; constructor|].
  clear -Hes. induction Hes as [|e es He _ IH]; [constructor|].
  apply (queue_more _ _ [Alone (Event e)] [e] (Queue (M := told) (x1, es) [] [])); [|done].
  constructor; [done|constructor].
Qed.
(** ** Writes in flight behind a queue, and a power cut while they are performed together *)

Local Notation waits x w d := (Queue (M := told) x w d).

Lemma served_quiet x tr x' w d :
  shows proved_disk x tr x' → tr = [] → queue_run told (waits (x, []) w d) [] [] (waits (x', []) w d).
Proof.
  induction 1 as [x|x es x1 tr x2 Hm _ IH]; [constructor|]. intros [-> Htr]%app_eq_nil.
  apply (queue_more _ _ [] [] (waits (x1, []) w d)); [by constructor; constructor|by apply IH].
Qed.

(** A step that shows events of requests that wait: they are served. *)
Lemma served_events x es ids more d :
  length ids = length es → Forall (λ e, answer_of (Event e) ≠ CutShort) es →
  queue_run told (waits (x, es ++ more) (zip ids es) d) [] es (waits (x, more) [] (reverse ids ++ d)).
Proof.
  intros Hlen Hes. revert ids d Hlen.
  induction Hes as [|e es He _ IH]; intros [|id ids] d [=]; [constructor|].
  apply (queue_more _ _ [] [e] (waits (x, es ++ more) (zip ids es) (id :: d))).
  - by apply (queue_serve told (x, e :: es ++ more) _ [] (zip ids es)); [|constructor].
  - rewrite reverse_cons, <-(assoc_L (++)). by apply IH.
Qed.

Lemma served_move x es more x' ids d : move proved_programs x (es ++ more) x' →
  length ids = length es → Forall (λ e, answer_of (Event e) ≠ CutShort) es →
  queue_run told (waits (x, []) (zip ids es) d) [] es (waits (x', more) [] (reverse ids ++ d)).
Proof.
  intros Hm Hlen Hes. apply (queue_more _ _ [] [] (waits (x', es ++ more) (zip ids es) d)).
  - by constructor; constructor.
  - by apply served_events.
Qed.

Lemma writes_length ws r : length (writes_shown ws r) = length ws.
Proof. apply fmap_length. Qed.

Lemma writes_answered ws r : r ≠ CutShort → Forall (λ e, answer_of (Event e) ≠ CutShort) (writes_shown ws r).
Proof. intros Hr. apply Forall_fmap. by induction ws; constructor. Qed.

Lemma served_group y m ws places ids d y' m' : length ids = length ws →
  ended (write_group y places ws) m = Some ((y', true), m') →
  queue_run told (waits ((Idle y, m), []) (zip ids (writes_shown ws Ok)) d) [] (writes_shown ws Ok)
    (waits ((Idle y', m'), []) [] (reverse ids ++ d)).
Proof.
  intros Hlen Hex. set (w := zip ids _).
  apply (queue_app _ [] [] (waits ((Group ws (Done (y', true)), m'), []) w d) []).
  - apply (served_quiet _ []); [|done]. eapply shows_quiet; [by apply (CallGroup _ _ _ ws places)|].
    eapply (shows_ended (Group ws)); [by constructor|exact Hex].
  - apply (served_move _ (writes_shown ws Ok) []);
      [rewrite app_nil_r; apply GroupAnswer|by rewrite writes_length|by apply writes_answered].
Qed.

Lemma served_group_cut y m ws places ids ios y' m' : length ids = length ws →
  switched_on (left_by KeepAll (partly ios (write_group y places ws) m).1) = Some (y', m') →
  queue_run told (waits ((Idle y, m), []) (zip ids (writes_shown ws UnknownOutcome)) [])
    [Alone (Event (Crash CutShort)); Alone (Event (Crash Ok))]
    (writes_shown ws UnknownOutcome ++ [Crash CutShort; Crash Ok]) (in_front proved_disk (Idle y', m')).
Proof.
  intros Hlen Hon. set (p := partly ios (write_group y places ws) m) in *.
  set (w := zip ids _). apply (queue_app _ [] [] (waits ((Group ws p.2, p.1), []) w []) _ (_ ++ _)).
  { apply (served_quiet _ []); [|done]. eapply shows_quiet; [by apply (CallGroup _ _ _ ws places)|].
    apply (shows_partly (Group ws) ios). by constructor. }
  set (done := reverse ids ++ []).
  apply (queue_app _ [] _ (waits ((Off, left_by KeepAll p.1), [Crash CutShort]) [] done) _ [_; _]).
  { apply (served_move _ (writes_shown ws UnknownOutcome) [_]);
      [by apply (cut (Group ws p.2))|by rewrite writes_length|by apply writes_answered]. }
  apply (queue_more _ _ [_] [Crash CutShort] (waits ((Off, left_by KeepAll p.1), []) [] [])).
  { by constructor; constructor. }
  unfold switched_on in Hon. destruct (ended _ _) as [[[y1|] m1]|] eqn:Hex; simplify_eq.
  apply (queue_app _ [] [] (waits ((Recovery (Done (Some y')), m'), []) [] []) [_] [Crash Ok]).
  - apply (served_quiet _ []); [|done]. eapply shows_quiet; [constructor|].
    eapply (shows_ended Recovery); [by constructor|exact Hex].
  - apply (queue_more _ _ [] [] (waits ((Idle y', m'), [Crash Ok]) [] [])).
    { by constructor; constructor; constructor. }
    apply (queue_more _ _ [_] [Crash Ok] (waits ((Idle y', m'), []) [] []) [] []); [|constructor].
    by constructor; constructor.
Qed.

Lemma told_events x es tr z : shows told (x, []) tr z → shows told (x, es) (es ++ tr) z.
Proof.
  intros Htr. induction es as [|e es IH]; [done|].
  apply (shows_step told _ [e] (x, es)); [constructor|done].
Qed.

Lemma told_shows x tr x' : shows proved_disk x tr x' → shows told (x, []) tr (x', []).
Proof.
  induction 1 as [x|x es x1 tr x2 Hm _ IH]; [constructor|].
  apply (shows_step told _ [] (x1, es)); [by constructor|by apply told_events].
Qed.

(** The power fails in a request that is performed alone. *)
Lemma served_cut y m q places id ios y' m' :
  switched_on (left_by KeepAll (partly ios (perform y places q) m).1) = Some (y', m') →
  queue_run told (waits ((Idle y, m), []) [(id, event_of q CutShort [])] []) [Alone (Event (Crash Ok))]
    [event_of q CutShort []; Crash Ok] (in_front proved_disk (Idle y', m')).
Proof.
  intros Hon. set (p := partly ios (perform y places q) m) in *. set (w := [_]).
  apply (queue_app _ [] [] (waits ((Busy q p.2, p.1), []) w []) [_] [_; _]).
  { apply (served_quiet _ []); [|done]. eapply shows_quiet; [by apply (Call _ _ _ q places)|].
    apply (shows_partly (Busy q) ios). by constructor. }
  apply (queue_more _ _ [] [] (waits ((Off, left_by KeepAll p.1), [event_of q CutShort []]) w []) [_] [_; _]).
  { constructor. constructor. by apply (cut (Busy q p.2)). }
  apply (queue_more _ _ [_] [_; _] (in_front proved_disk (Idle y', m')) [] []); [|constructor].
  eapply queue_cut_serving; [by left|by destruct q|constructor|]. by apply told_shows, shows_switched_on.
Qed.

(** Two writes in flight are performed together and answered. The power fails while two more are, after so
many I/Os, and then in a write that is performed alone. A read ends it. *)
Definition served_life (g : geometry) (a b c d e : nat * list block) (p1 p2 p3 : list nat)
    (ios ios' count : nat) : option (list block) :=
  match execute (format g) (Medium (λ _, zero_block) []) with
  | (Some y, m) =>
      match ended (write_group y p1 [a; b]) m with
      | Some ((y, true), m) =>
          '(y, m) ← switched_on (left_by KeepAll (partly ios (write_group y p2 [c; d]) m).1);
          '(y, m) ← switched_on (left_by KeepAll (partly ios' (perform y p3 (DoWrite e.1 e.2)) m).1);
          match ended (perform y [] (DoRead Live 0 count)) m with
          | Some ((_, Ok, data), _) => Some data
          | _ => None
          end
      | _ => None
      end
  | _ => None
  end.

Definition served_history (a b c d e : nat * list block) (count : nat) (data : list block) :
    list (moment block) :=
  let called id w r := Called id (Event (Write w.1 w.2 r)) in
  [called 0 a Ok; called 1 b Ok; Answered 0; Answered 1; called 2 c UnknownOutcome; called 3 d UnknownOutcome;
   Alone (Event (Crash CutShort)); Alone (Event (Crash Ok)); called 4 e CutShort; Alone (Event (Crash Ok));
   Alone (Event (Read Live 0 count Ok data))].

Lemma served_life_shows g a b c d e p1 p2 p3 ios ios' count data :
  whole_records g → served_life g a b c d e p1 p2 p3 ios ios' count = Some data → ∃ x tr q,
    fresh proved_disk (disk_blocks g) x ∧
    queue_run told (in_front proved_disk x) (served_history a b c d e count data) tr q.
Proof.
  unfold served_life. intros Hg. destruct (execute (format g) _) as [[y|] m] eqn:Hformat; [|done].
  destruct (ended (write_group y p1 _) m) as [[[y1 []] m1]|] eqn:Hgroup; try done.
  intros ([y' m']&Hon&([y2 m2]&Hon'&Hread)%bind_Some)%bind_Some.
  destruct (ended (perform y2 _ _) m2) as [[[[y3 []] data'] m3]|] eqn:Hperform; simplify_eq.
  assert (∀ x e1 e2 id, queues_up e1 → queues_up e2 → queue_run told (in_front proved_disk x)
    [Called id (Event e1); Called (S id) (Event e2)] []
    (waits (x, []) (zip [id; S id] [e1; e2]) [])) as Hcalls.
  { intros x e1 e2 id H1 H2. apply (queue_more _ _ [_] [] (waits (x, []) [(id, e1)] []) [_] []).
    - apply (queue_call told _ [] []); [done|by apply not_elem_of_nil].
    - apply (queue_more _ _ [_] [] (waits (x, []) [(id, e1); (S id, e2)] []) [] []); [|constructor].
      apply (queue_call told _ [(id, e1)] []); [done|]. simpl. intros Hin%elem_of_list_singleton. lia. }
  eexists (Idle y, m), _, _. split; [exists (0, 0), g, (λ _, zero_block), y; simpl; by rewrite Hformat|].
  unfold served_history. cbv zeta.
  eapply (queue_app _ [_; _] []); [by apply (Hcalls _ (Write _ _ _) (Write _ _ _))|].
  eapply (queue_app _ []); [by apply (served_group y m [a; b] p1 [0; 1])|].
  eapply (queue_more _ _ [_] []); [by apply (queue_answer told _ [] [1] [])|].
  eapply (queue_more _ _ [_] []); [by apply (queue_answer told _ [] [] [])|].
  eapply (queue_app _ [_; _] []); [by apply (Hcalls _ (Write _ _ _) (Write _ _ _))|].
  eapply (queue_app _ [_; _]); [by apply (served_group_cut y1 m1 [c; d] p2 [2; 3] ios)|].
  eapply (queue_more _ _ [_] []).
  { apply (queue_call told _ [] [] 4 (Write _ _ _)); [done|apply not_elem_of_nil]. }
  eapply (queue_app _ [_] [_; _]); [by apply (served_cut y' m' (DoWrite e.1 e.2) p3 4 ios')|].
  apply (served_alone _ [Read Live 0 count Ok data] (Idle y3, m3)); [|by repeat constructor].
  apply (live_once_shows (Ask (DoRead Live 0 count) [])).
  unfold outcome in *. simpl. by rewrite Hperform.
Qed.
End Scripts.

Local Open Scope string_scope.

(** ** A life with everything in it *)

(** Blocks of 80 words of one byte; four blocks, a log of two records, six places. Whatever may tear does, and
reads as zeroes then. Of a block that is digested only the first byte is not zero, and below fifteen; so a
number is a digest of three blocks. *)
Definition first_byte (b : list byte) : nat :=
  match b with [] => 0 | c :: _ => Ascii.nat_of_ascii c end.
Definition padded_byte (b : nat) : list byte := Ascii.ascii_of_nat b :: replicate 79 Ascii.zero.
Definition number_of {B} (first : B → nat) (bs : list B) : nat := foldr (λ b n, S (first b) + 16 * n) 0 bs.
Definition digest_by {B} (first : B → nat) (bs : list B) : nat * nat :=
  let n := number_of first bs in (n `mod` 256, n `div` 256 `mod` 256).
Definition few_bytes (bs : list (list byte)) : bool :=
  bool_decide (length bs ≤ 3) &&
  forallb (λ b, bool_decide (first_byte b < 15) && bool_decide (b = padded_byte (first_byte b))) bs.
Definition small : blocks := byte_blocks 1 80 (digest_by first_byte) few_bytes.
Definition data (b : nat) : @block small := padded_byte b.

Lemma number_below {B} (first : B → nat) bs :
  Forall (λ b, first b < 15) bs → length bs ≤ 3 → number_of first bs < 4096.
Proof.
  intros Hbs Hlen. assert (number_of first bs < 16 ^ length bs) as Hless.
  { clear Hlen. induction Hbs as [|b bs Hb _ IH]; simpl in *; lia. }
  pose proof (Nat.pow_le_mono_r 16 (length bs) 3). simpl in *. lia.
Qed.

Lemma number_injective {B} (first : B → nat) xs ys :
  Forall (λ b, first b < 15) xs → Forall (λ b, first b < 15) ys →
  number_of first xs = number_of first ys → first <$> xs = first <$> ys.
Proof.
  intros Hxs. revert ys. induction Hxs as [|x xs Hx _ IH]; intros [|y ys] Hys; simpl; try done; try lia.
  apply Forall_cons in Hys as [Hy Hys]. intros Heq.
  assert (first x = first y ∧ number_of first xs = number_of first ys) as [-> ?] by lia.
  f_equal. by apply IH.
Qed.

Lemma digest_by_injective {B} (first : B → nat) xs ys :
  Forall (λ b, first b < 15) xs → Forall (λ b, first b < 15) ys → length xs ≤ 3 → length ys ≤ 3 →
  digest_by first xs = digest_by first ys → first <$> xs = first <$> ys.
Proof.
  unfold digest_by. cbv zeta. intros Hxs Hys Hx Hy [Hlow Hhigh]%pair_equal_spec.
  apply number_injective; [done..|].
  pose proof (number_below first xs Hxs Hx) as Hnx. pose proof (number_below first ys Hys Hy) as Hny.
  set (n := number_of first xs) in *. set (m := number_of first ys) in *.
  assert (n `div` 256 < 256 ∧ m `div` 256 < 256) as [? ?] by (split; apply Nat.div_lt_upper_bound; lia).
  rewrite !(Nat.mod_small (_ `div` _)) in Hhigh by done.
  rewrite (Nat.div_mod n 256), (Nat.div_mod m 256) by done. congruence.
Qed.

Lemma small_laws : @blocks_laws small.
Proof.
  assert (∀ bs, few_bytes bs = true → length bs ≤ 3 ∧ Forall (λ b, first_byte b < 15) bs ∧
    bs = padded_byte <$> (first_byte <$> bs)) as Hfew.
  { intros bs [Hlen%bool_decide_eq_true Hbs]%andb_true_iff. split; [done|]. clear Hlen.
    induction bs as [|b bs IH]; [done|]. cbn [forallb] in Hbs.
    apply andb_true_iff in Hbs as [[Hb%bool_decide_eq_true Heq%bool_decide_eq_true]%andb_true_iff Hbs].
    destruct (IH Hbs) as [Hall Heqs]. split; [by constructor|]. rewrite !fmap_cons. by f_equal. }
  apply byte_blocks_laws; [lia| |].
  - intros xs ys (Hx&Hxs&Heqx)%Hfew (Hy&Hys&Heqy)%Hfew Hd.
    apply digest_by_injective in Hd; [|done..]. by rewrite Heqx, Heqy, Hd.
  - intros bs. split; apply Nat.mod_upper_bound; done.
Qed.

Local Instance behind_the_log : tearing := le 7.
Local Instance tears_dec a : Decision (tears a) := le_dec 7 a.
Local Instance zeroes `{blocks} : remains := zero_block.
Definition shape_of_small : geometry := Geometry 4 2 2 6 2 2.
Lemma small_whole g : log_blocks g ≤ 4 → whole_records g.
Proof. intros Hg a Ha Ht. unfold tears, behind_the_log in Ht. lia. Qed.

Definition everything : list (@event_in_life small upkeep) :=
  [Ask (DoWrite 0 [data 1; data 2]) [0; 1]; Ask (DoSnapshot "s") [];
   CutIn (DoWrite 0 [data 3]) [2] 6 LoseAll;     (* a checkpoint comes first; data and record are lost *)
   CutIn (DoWrite 0 [data 3]) [2] 3 TearOnly;    (* the record survives, its data do not: it is dropped *)
   CutIn (DoWrite 0 [data 4]) [2] 3 KeepAll;     (* both survive, though they were not flushed *)
   Ask (DoRead Live 0 2) []; Ask (DoRead (Named "s") 0 2) [];
   CutUpkeep Checkpoint 2 KeepAll; CutUpkeep Checkpoint 3 KeepAll; CutRecovery 3 LoseAll;
   Keep (Clean [(0, 5)]); Ask (DoRead (Named "s") 0 1) []; Ask (DoDelete "s") []; Keep Collect;
   Ask (DoWrite 1 [data 6; data 7; data 8]) [0; 5; 3];
   Ask (DoWrite 1 [data 9]) [0];               (* the scheduler is wrong: the place is in use *)
   Ask (DoWrite 1 [data 9]) [4]; Keep Collect;
   AskGroup [(0, [data 10]); (1, [data 11])] [1; 3];           (* a place in use: none is performed *)
   AskGroup [(0, [data 10]); (1, [data 11])] [1; 0]; Keep Collect;
   CutInGroup [(2, [data 12]); (0, [data 13])] [4; 2] 4 LoseAll;  (* they are lost *)
   CutInGroup [(2, [data 12]); (0, [data 13])] [4; 2] 4 TearOnly; (* without their data *)
   Ask (DoRead Live 0 4) [];
   CutInGroup [(2, [data 12]); (0, [data 13])] [4; 2] 4 KeepAll; (* they survive *)
   Ask DoRestart []; Ask (DoRead Live 0 4) []].

Definition everything_shows : list (event (@block small)) :=
  [Write 0 [data 1; data 2] Ok; Snapshot "s" Ok;
   Write 0 [data 3] CutShort; Crash Ok; Write 0 [data 3] CutShort; Crash Ok;
   Write 0 [data 4] CutShort; Crash Ok;
   Read Live 0 2 Ok [data 4; data 2]; Read (Named "s") 0 2 Ok [data 1; data 2];
   Crash CutShort; Crash Ok; Crash CutShort; Crash Ok; Crash CutShort; Crash CutShort; Crash Ok;
   Read (Named "s") 0 1 Ok [data 1]; Delete "s" Ok;
   Write 1 [data 6; data 7; data 8] Ok;
   Write 1 [data 9] (Refused NoSpace);
   Write 1 [data 9] Ok; Write 0 [data 10] Ok; Write 1 [data 11] Ok;
   Write 2 [data 12] UnknownOutcome; Write 0 [data 13] UnknownOutcome; Crash CutShort; Crash Ok;
   Write 2 [data 12] UnknownOutcome; Write 0 [data 13] UnknownOutcome; Crash CutShort; Crash Ok;
   Read Live 0 4 Ok [data 10; data 11; data 7; data 8];
   Write 2 [data 12] UnknownOutcome; Write 0 [data 13] UnknownOutcome; Crash CutShort; Crash Ok;
   Restart Ok; Read Live 0 4 Ok [data 13; data 11; data 12; data 8]].

Theorem life_exists : ∃ x x', fresh (@proved_disk small _) 4 x ∧ shows proved_disk x everything_shows x'.
Proof.
  apply (life_shows (D := proved_programs) (0, 0) shape_of_small everything); [|by vm_compute].
  apply small_whole; simpl; lia.
Qed.

(** Of the writes that the power cut short, those that were performed together happened: their record
survived. *)
Definition served_shows : list (moment (@block small)) :=
  served_history (0, [data 1]) (1, [data 2]) (0, [data 3]) (2, [data 4]) (1, [data 5]) 3
    [data 3; data 2; data 4].

Theorem served_life_exists : ∃ x tr q, fresh (@proved_disk small _) 4 x ∧
  queue_run (one_by_one proved_disk) (in_front proved_disk x) served_shows tr q.
Proof.
  apply (served_life_shows shape_of_small _ _ _ _ _ [0; 1] [2; 3] [4] 4 1); [|by vm_compute].
  apply small_whole; simpl; lia.
Qed.

(** ** Blocks that do not give back what was put in *)

(** A nine comes back as an eight. *)
Definition forgetful : blocks :=
  {| block := list nat; words := 80; limit := 256; of_words := fmap (λ w, if decide (w = 9) then 8 else w);
     to_words := id; zero_block := []; digest := λ bs, (length bs, 0);
     compared := λ bs, bool_decide (bs = [] ∨ bs = [[1]]) |}.

Definition one : @block forgetful := [1].
Local Instance forgetful_eq_dec : EqDecision (@block forgetful) := (_ : EqDecision (list nat)).

Definition forgotten_life : list (@event_in_life forgetful upkeep) :=
  [Ask (DoWrite 9 [one]) [0]; Ask DoRestart []; Ask (DoRead Live 9 1) []].
Definition forgotten_shows : list (event (@block forgetful)) :=
  [Write 9 [one] Ok; Restart Ok; Read Live 9 1 Ok [zero]].

Lemma forgotten_life_shows :
  ∃ x x', fresh (@proved_disk forgetful _) 10 x ∧ shows proved_disk x forgotten_shows x'.
Proof.
  apply (life_shows (D := proved_programs) (0, 0) (Geometry 10 4 2 6 2 2) forgotten_life); [|by vm_compute].
  apply small_whole; simpl; lia.
Qed.

Theorem round_trip_needed : ¬ implements (@proved_disk forgetful _) Ack.
Proof.
  intros Himp. destruct forgotten_life_shows as (x&x'&Hx&Hshows).
  specialize (Himp _ _ _ _ Hx Hshows). apply check_correct in Himp. by vm_compute in Himp.
Qed.

(** Nor does a queue in front of it help. *)
Theorem served_round_trip_needed : ∃ x h tr q, fresh (@proved_disk forgetful _) 10 x ∧
  queue_run (one_by_one proved_disk) (in_front proved_disk x) h tr q ∧
  ¬ admits_overlapping ByRequest Ack 0 (Alone (Event (Create 10)) :: h).
Proof.
  destruct forgotten_life_shows as (x&x'&Hx&Hshows).
  exists x, (Alone ∘ Event <$> forgotten_shows), forgotten_shows, (in_front proved_disk x').
  split_and!; [done| |].
  - apply served_alone; [done|]. by repeat constructor.
  - rewrite <-(check_overlapping_correct (λ _ _, 0)). vm_compute. discriminate.
Qed.

(** ** Digests that collide, or a record that is dropped but not for good *)

(** Every list of blocks has the same digest: nothing is verified. *)
Definition colliding : blocks := byte_blocks 1 80 (λ _, (0, 0)) (λ _, true).
Local Instance colliding_eq_dec : EqDecision (@block colliding) := (_ : EqDecision (list byte)).
Definition seven : @block colliding := padded_byte 7.

Definition unverified_life : list (@event_in_life colliding upkeep) :=
  [Ask (DoWrite 0 [seven]) [0]; CutIn (DoWrite 0 [seven; seven]) [1; 2] 4 TearOnly;
   Ask (DoRead Live 0 1) []].
Definition unverified_shows : list (event (@block colliding)) :=
  [Write 0 [seven] Ok; Write 0 [seven; seven] CutShort; Crash Ok; Read Live 0 1 Ok [zero_block]].

(** A record without its data is taken for one that has them. *)
Theorem digest_needed : ¬ implements (@proved_disk colliding _) Ack.
Proof.
  intros Himp. destruct (@life_shows colliding _ _ _ _ _ proved_programs (0, 0) shape_of_small unverified_life
    unverified_shows)
    as (x&x'&Hx&Hshows); [apply small_whole; simpl; lia|by vm_compute|].
  specialize (Himp _ _ _ _ Hx Hshows). apply check_correct in Himp. by vm_compute in Himp.
Qed.

(** A recovery that writes nothing. *)
Fixpoint reading_only {A} (p : program (@block small) A) : program (@block small) A :=
  match p with
  | Done x => Done x
  | ReadBlock a k => ReadBlock a (λ b, reading_only (k b))
  | WriteBlock _ _ k => reading_only k
  | FlushBlocks k => reading_only k
  | Assume φ k => Assume φ (reading_only k)
  end.
Definition reads_on (m : medium (@block small)) : option (memory * medium (@block small)) :=
  match ended (reading_only (recover Done)) m with Some (Some y, m) => Some (y, m) | _ => None end.

(** A write loses its data, and so its record is dropped. Another one puts the same data into the same place,
and loses its record. *)
Definition dropped_in_memory : option (list (event (@block small))) :=
  match execute (format shape_of_small) (Medium (λ _, zero_block) []) with
  | (Some y, m) =>
      '(y, m) ← reads_on (left_by TearOnly (partly 3 (perform y [0] (@DoWrite small 0 [data 7])) m).1);
      '(o, m') ← ended (perform y [] (DoRead Live 0 1)) m;
      '(y, m) ← reads_on (left_by KeepAll (partly 2 (perform y [0] (DoWrite 1 [data 7])) m).1);
      '(o', _) ← ended (perform y [] (DoRead Live 0 1)) m;
      Some [Write 0 [data 7] CutShort; Crash Ok; Read Live 0 1 o.1.2 o.2;
        Write 1 [data 7] CutShort; Crash Ok; Read Live 0 1 o'.1.2 o'.2]
  | _ => None
  end.
Definition revived : list (event (@block small)) :=
  [Write 0 [data 7] CutShort; Crash Ok; Read Live 0 1 Ok [data 0];
   Write 1 [data 7] CutShort; Crash Ok; Read Live 0 1 Ok [data 7]].
Local Instance small_eq_dec : EqDecision (@block small) := (_ : EqDecision (list byte)).

(** The first write comes to life. *)
Theorem durable_drop_needed : dropped_in_memory = Some revived ∧ ¬ admits Ack (Create 4 :: revived).
Proof. split; [by vm_compute|]. intros Had%check_correct. by vm_compute in Had. Qed.

(** ** A log that tears: of a record in flight the power leaves another one *)

Section Torn.
Local Instance behind_the_headers : tearing := le 3.
Local Instance torn_dec a : Decision (tears a) := le_dec 3 a.
Local Instance another_record : @remains small :=
  default zero_block (pack (put log_codec (2, (LogUnmap 0 4, @digest small [])))).

Definition torn_life : list (@event_in_life small upkeep) :=
  [Ask (DoWrite 0 [data 1]) [0]; CutIn (DoWrite 1 [data 2]) [1] 3 LoseAll; Ask (DoRead Live 0 1) []].
Definition torn_shows : list (event (@block small)) :=
  [Write 0 [data 1] Ok; Write 1 [data 2] CutShort; Crash Ok; Read Live 0 1 Ok [zero_block]].

(** The machine is a new disk but for that. *)
Theorem whole_records_needed : ∃ y m x, execute (format shape_of_small) (Medium (λ _, zero_block) []) =
    (Some y, m) ∧ shows proved_disk (Idle y, m) torn_shows x ∧
  ¬ admits Ack (Create (disk_blocks shape_of_small) :: torn_shows).
Proof.
  assert (life proved_programs (0, 0) shape_of_small torn_life = Some torn_shows) as Hlife by by vm_compute.
  unfold life in Hlife. destruct (execute _ _) as [[y|] m] eqn:Hex; [|done].
  apply live_on_shows in Hlife as [x Hx]. exists y, m, x. split_and!; [done|done|].
  intros Had%check_correct. by vm_compute in Had.
Qed.
End Torn.

(** ** What refusals and costs depend on *)

Definition device_of (g : geometry) : option memory * medium (@block small) :=
  execute (@format small g) (Medium (λ _, zero_block) []).

Definition answer_on (g : geometry) (places : list nat) (q : @request small) : option answer :=
  match device_of g with (Some y, m) => Some (execute (perform y places q) m).1.1.2 | _ => None end.
Definition cost_on {A} g (places : list nat) (q : @request small) (then_ : memory → program block A) :
    option (nat * nat * nat) :=
  match device_of g with
  | (Some y, m) => let '(o, m') := execute (perform y places q) m in Some (cost (then_ o.1.1) m')
  | _ => None
  end.

(** A place that does not exist, where another one would do, and a snapshot too many. *)
Theorem refusals_happen :
  answer_on shape_of_small [7] (DoWrite 0 [data 1]) = Some (Refused NoSpace) ∧
  answer_on shape_of_small [0] (DoWrite 0 [data 1]) = Some Ok ∧
  answer_on (Geometry 4 2 2 6 2 0) [] (DoSnapshot "s") = Some (Refused NoSpace).
Proof. by vm_compute. Qed.

(** One place, and two blocks to write: the first free places are not enough. *)
Theorem full_disk_refuses :
  match device_of (Geometry 4 2 2 1 2 2) with
  | (Some y, m) =>
      (execute (perform (collect y) (first_free (collect y) 2) (@DoWrite small 0 [data 1; data 2])) m).1.1.2 =
      Refused NoSpace ∧
      (execute (write_group (collect y) (first_free (collect y) 2) [(0, [data 1]); (2, [data 2])]) m).1.2 =
      false
  | _ => False
  end.
Proof. by vm_compute. Qed.

(** With a full log a write costs a checkpoint too, and so do several at once. *)
Theorem full_log_costs_more :
  let one := λ y, perform y [3] (DoWrite 0 [data 1]) in
  let two := λ y, write_group y [3; 4] [(0, [data 1]); (2, [data 2])] in
  cost_on (Geometry 4 2 2 6 2 2) [0] (DoWrite 0 [data 1]) one = Some (0, 2, 1) ∧
  cost_on (Geometry 4 2 2 6 2 2) [0] (DoWrite 0 [data 1]) two = Some (0, 3, 1) ∧
  cost_on (Geometry 4 1 2 6 2 2) [0] (DoWrite 0 [data 1]) one = Some (0, 4, 3) ∧
  cost_on (Geometry 4 1 2 6 2 2) [0] (DoWrite 0 [data 1]) two = Some (0, 5, 3).
Proof. by vm_compute. Qed.
