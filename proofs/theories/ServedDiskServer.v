(** The server whose progress is proved is the queue whose safety is proved: every run of it is a run of the
queue of [OverlappingDiskQueue.v] in front of the disk. So the theorems of [ServedDiskTheorem.v] are about
what this server does.

A power cut may come at any moment: what waits is lost, and what is under way is cut short, or of unknown
outcome ([cut_told]). The server goes on when the disk is open again. Nobody calls meanwhile: the server that
runs opens the disk before it listens.

In the queue a call says already how it will be answered. So the history of a run is known from its end
([history_of]): a request is called as it is answered later, or as one that is never answered. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk RecordedTrace RecordedImplementation Medium Codec ProvedDisk
  ProvedDiskRequests.
From LogDisk Require Import OverlappingDisk OverlappingDiskQueue ServedDiskScheduler ServedDiskProgress
  ServedLegProgress.
From LogDisk Require Import ServedDiskTheorem Leg LegDiskMachine.
From LogDisk Require DiskMachine.

Section Server.
Context `{!blocks, !EqDecision block}.
Implicit Types (id : nat) (q : request) (es : list (entry block)) (h : list (moment block)).

(** ** Runs *)

Inductive happening :=
  | Arrives id q
  | Replied id (r : answer) (data : list block)
  | Happened (en : entry block)    (* a failure of a device *)
  | PowerFailed (es : list (entry block)).    (* and what was told until the disk was open again *)
Implicit Types hs : list happening.

(** How a request is answered later. *)
Fixpoint answer_in hs id : answer * list block :=
  match hs with
  | [] | PowerFailed _ :: _ => (CutShort, [])
  | Replied id' r data :: hs => if decide (id' = id) then (r, data) else answer_in hs id
  | _ :: hs => answer_in hs id
  end.

Definition event_in hs id q : event block := event_of q (answer_in hs id).1 (answer_in hs id).2.

Fixpoint history_of hs : list (moment block) :=
  match hs with
  | [] => []
  | Arrives id q :: hs => Called id (Event (event_in hs id q)) :: history_of hs
  | Replied id _ _ :: hs => Answered id :: history_of hs
  | Happened en :: hs => Alone en :: history_of hs
  | PowerFailed es :: hs => (Alone <$> es) ++ history_of hs
  end.

Context (M : recorded_implementation block).
Local Notation server := (server (recorded_inside M)).
Implicit Types (s : server) (z : recorded_inside M).
Context (job_turn : job nat → recorded_inside M → list outcome → recorded_inside M → Prop).
Context (next : list (nat * request) → option (job nat * list (nat * request))).

(** Whoever waits for an answer. *)
Definition pending s : list (nat * request) := concat (requests_of <$> begun s) ++
  ServedDiskScheduler.waiting s.

Definition told (r : reply) : happening := Replied (reply_to r) (reply_answer r) (reply_data r).

(** What a power cut shows, and what is told of it: a request that was performed alone is cut short, each of
several writes is of unknown outcome. [es] is shown until the disk is open again. *)
Inductive cut_told : list (job nat) → list (entry block) → list (entry block) → list (entry block) → Prop :=
  | cut_one id q js r es :
      cut_told (Single id q :: js) [Event (event_of q CutShort [])] (Event (Crash r) :: es)
        (Event (Crash r) :: es)
  | cut_together ws js es :
      cut_told (Together ws :: js) ((Event <$> writes_shown ws.*2 UnknownOutcome) ++ [Event (Crash CutShort)])
        es (Event (Crash CutShort) :: es)
  | cut_idle js es : cut_told js [Event (Crash CutShort)] es (Event (Crash CutShort) :: es)
  | cut_settling js es : cut_told js [Settle CutShort] es (Settle CutShort :: es).

(** A run, and what happened in it. A request that arrives has a number of its own, and is no restart.
Whatever the disk does between two turns is no power cut. No answer is that of a power cut. When the power
fails, what waits is lost, and the server begins anew when the disk is open. *)
Inductive server_run : server → list happening → server → Prop :=
  | run_ends s : server_run s [] s
  | run_turn s s1 new hs s2 :
      server_turn job_turn next s [] s1 → replies s1 = replies s ++ new →
      Forall (λ r, reply_answer r ≠ CutShort) new →
      server_run s1 hs s2 → server_run s ((told <$> new) ++ hs) s2
  | run_ahead z js w w' j a hs s2 :    (* it takes the next job before those that have begun have ended *)
      next w = Some (j, w') →
      server_run (Server z (js ++ [j]) w' a) hs s2 → server_run (Server z js w a) hs s2
  | run_arrives z js w a id q hs s2 :
      q ≠ DoRestart → id ∉ (pending (Server z js w a)).*1 →
      server_run (Server z js (w ++ [(id, q)]) a) hs s2 → server_run (Server z js w a) (Arrives id q :: hs) s2
  | run_meanwhile z z1 es js w a hs s2 :
      recorded_shows M z es z1 → Forall (λ en, ends en = false) es →
      server_run (Server z1 js w a) hs s2 → server_run (Server z js w a) ((Happened <$> es) ++ hs) s2
  | run_cut z cut_es z1 es z2 js w a all hs s2 :
      recorded_moves M z cut_es z1 → recorded_shows M z1 es z2 → cut_told js cut_es es all →
      server_run (Server z2 [] [] []) hs s2 → server_run (Server z js w a) (PowerFailed all :: hs) s2.

(** ** Runs of the queue *)

Implicit Types w : list (nat * event block).

(** How entries of the disk are told: to who waits, or to everybody. *)
Inductive told_as : list (entry block) → list (nat * event block) → list (moment block) →
    list (nat * event block) → Prop :=
  | told_none w : told_as [] w [] w
  | told_one id e es w1 w2 h w :
      OverlappingDisk.answer_of (Event e) ≠ CutShort → told_as es (w1 ++ w2) h w →
      told_as (Event e :: es) (w1 ++ (id, e) :: w2) (Answered id :: h) w
  | told_all en es w h w' :
      ends en = false → told_as es w h w' → told_as (en :: es) w (Alone en :: h) w'.

Lemma told_as_app es1 es2 w h w' : told_as (es1 ++ es2) w h w' →
  ∃ h1 w1 h2, h = h1 ++ h2 ∧ told_as es1 w h1 w1 ∧ told_as es2 w1 h2 w'.
Proof.
  revert w h. induction es1 as [|en es1 IH]; intros w h Ht; [exists [], w, h; split_and!;
    [done|constructor|done]|].
  inversion Ht as [|id e es w1 w2 h1 w3 He Hrest|en1 es w1 h1 w2 Hen Hrest]; subst;
    apply IH in Hrest as (h2&w4&h3&->&H1&H2).
  - exists (Answered id :: h2), w4, h3. split_and!; [done|by constructor|done].
  - exists (Alone en :: h2), w4, h3. split_and!; [done|by constructor|done].
Qed.

Local Notation runs := (queue_run (one_by_one M)).

Lemma queue_run_app k1 h1 tr1 k2 h2 tr2 k3 : runs k1 h1 tr1 k2 → runs k2 h2 tr2 k3 →
  runs k1 (h1 ++ h2) (tr1 ++ tr2) k3.
Proof.
  induction 1 as [q|q h tr q' h' tr' q'' Hstep _ IH]; intros H2; [done|].
  rewrite <-!(assoc_L (++)). eapply queue_more; [exact Hstep|by apply IH].
Qed.

(** What is shown in one move is told entry by entry. *)
Lemma entries_told z es w h w' : told_as es w h w' →
  runs (Queue (M := one_by_one M) (z, es) w []) h es (Queue (M := one_by_one M) (z, []) w' []).
Proof.
  induction 1 as [w|id e es w1 w2 h w He _ IH|en es w h w' Hen _ IH]; [constructor| |].
  - apply (queue_more _ _ [] [Event e] (Queue (M := one_by_one M) (z, es) (w1 ++ w2) [id])).
    { apply queue_serve; [done|by constructor]. }
    apply (queue_more _ _ [Answered id] [] (Queue (M := one_by_one M) (z, es) (w1 ++ w2) [])); [|done].
    apply (queue_answer _ _ _ [] []).
  - apply (queue_more _ _ [Alone en] [en] (Queue (M := one_by_one M) (z, es) w [])); [|done].
    pose proof (queue_alone (one_by_one M) (z, en :: es) (z, es) w [] en (tells _ _ _ _)) as Halone.
    by rewrite Hen in Halone.
Qed.

Lemma shows_told z es z' w h w' : recorded_shows M z es z' → told_as es w h w' →
  ∃ tr, runs (Queue (M := one_by_one M) (z, []) w []) h tr (Queue (M := one_by_one M) (z', []) w' []).
Proof.
  intros Hz. revert w h. induction Hz as [z|z es z1 tr z2 Hmove _ IH]; intros w h Ht.
  { inversion Ht; subst. eexists. constructor. }
  apply told_as_app in Ht as (h1&w1&h2&->&H1&H2). destruct (IH _ _ H2) as [tr2 Htr2].
  exists (es ++ tr2). eapply queue_run_app; [|exact Htr2].
  apply (queue_more _ _ [] [] (Queue (M := one_by_one M) (z1, es) w [])); [by constructor; constructor|].
  by apply entries_told.
Qed.

(** Power cuts: all of it is told to everybody, and who waits is lost. *)
Lemma entries_told_to_all z es w : ∃ w',
  runs (Queue (M := one_by_one M) (z, es) w []) (Alone <$> es) es (Queue (M := one_by_one M) (z, []) w' []) ∧
  (w = [] ∨ Exists (λ en, ends en = true) es → w' = []).
Proof.
  revert w. induction es as [|en es IH]; intros w.
  { exists w. split; [constructor|]. intros [?|Hno%Exists_nil]; done. }
  pose proof (queue_alone (one_by_one M) (z, en :: es) (z, es) w [] en (tells _ _ _ _)) as Halone.
  destruct (ends en) eqn:Hen.
  - destruct (IH []) as (w'&Hrun&Hw'). exists w'. split; [by eapply (queue_more _ _ [Alone en] [en])|].
    intros _. apply Hw'. by left.
  - destruct (IH w) as (w'&Hrun&Hw'). exists w'. split; [by eapply (queue_more _ _ [Alone en] [en])|].
    intros [?|Hes%Exists_cons]; apply Hw'; [by left|right]. destruct Hes as [?|?]; [congruence|done].
Qed.

Lemma shows_told_to_all z es z' w : recorded_shows M z es z' → ∃ tr w',
  runs (Queue (M := one_by_one M) (z, []) w []) (Alone <$> es) tr (Queue (M := one_by_one M) (z', []) w' []) ∧
  (w = [] ∨ Exists (λ en, ends en = true) es → w' = []).
Proof.
  intros Hz. revert w. induction Hz as [z|z es z1 tr z2 Hmove _ IH]; intros w.
  { exists [], w. split; [constructor|]. intros [?|Hno%Exists_nil]; done. }
  destruct (entries_told_to_all z1 es w) as (w1&H1&Hw1). destruct (IH w1) as (tr2&w2&H2&Hw2).
  exists (es ++ tr2), w2. rewrite fmap_app. split.
  - eapply queue_run_app; [|exact H2].
    apply (queue_more _ _ [] [] (Queue (M := one_by_one M) (z1, es) w []));
      [by constructor; constructor|done].
  - rewrite Exists_app. intros [?|[?|?]]; apply Hw2; [left; apply Hw1; by left|left; apply Hw1; by right|by
      right].
Qed.

(** The first entry that is shown may be told before the others. *)
Lemma shows_first z en es z' : recorded_shows M z (en :: es) z' → ∃ z1 rest more,
  recorded_shows (one_by_one M) (z, []) [en] (z1, rest) ∧ recorded_shows M z1 more z' ∧ es = rest ++ more.
Proof.
  intros Hz. remember (en :: es) as all eqn:Hall. revert Hall.
  induction Hz as [z|z es1 z1 tr z2 Hmove Hrest IH]; [done|]. intros Hall.
  destruct es1 as [|en1 es1].
  - destruct (IH Hall) as (z3&rest&more&Hone&Hmore&->). exists z3, rest, more. split_and!; [|done..].
    eapply (recorded_shows_step (one_by_one M) (z, []) []); [by constructor|exact Hone].
  - injection Hall as -> <-. exists z1, es1, tr. split_and!; [|done..].
    eapply (recorded_shows_step (one_by_one M) (z, []) [] (z1, en :: es1)); [by constructor|].
    eapply (recorded_shows_step (one_by_one M) _ [en]); [by constructor|constructor].
Qed.

Lemma event_of_answer q r data : OverlappingDisk.answer_of (Event (event_of q r data)) = r.
Proof. by destruct q. Qed.

(** Requests that are called as ones that are never answered. *)
Definition as_cut (xs : list (nat * request)) : list (nat * event block) :=
  (λ x, (x.1, event_of x.2 CutShort [])) <$> xs.

(** A power cut while several writes are performed: each of them is told, to who waits for it. *)
Lemma writes_told z ws es w others : w ≡ₚ as_cut (requests_of (Together ws)) ++ others →
  ∃ w', runs (Queue (M := one_by_one M) (z, (Event <$> writes_shown ws.*2 UnknownOutcome) ++ es) w []) []
    (Event <$> writes_shown ws.*2 UnknownOutcome) (Queue (M := one_by_one M) (z, es) w' []).
Proof.
  revert w. induction ws as [|[id [lba data]] ws IH]; intros w Hw; [exists w; constructor|].
  assert ((id, Write lba data CutShort) ∈ w) as (w1&w2&->)%elem_of_list_split by (rewrite Hw; by left).
  simpl in Hw. rewrite <-Permutation_middle in Hw. apply Permutation_cons_inv in Hw.
  destruct (IH (w1 ++ w2) Hw) as [w' Hw']. exists w'.
  eapply (queue_more _ _ [] [Event (Write lba data UnknownOutcome)] _ []); [|exact Hw'].
  by apply (queue_serve_unanswered (one_by_one M) _ _ w1 w2 [] id (Write lba data UnknownOutcome));
    [|constructor].
Qed.

(** The server begins anew after a power cut. *)
Lemma cut_run z cut_es z1 es z2 js all w others :
  recorded_moves M z cut_es z1 → recorded_shows M z1 es z2 → cut_told js cut_es es all →
  w ≡ₚ as_cut (concat (requests_of <$> js)) ++ others →
  ∃ tr, runs (Queue (M := one_by_one M) (z, []) w []) (Alone <$> all) tr
    (Queue (M := one_by_one M) (z2, []) [] []).
Proof.
  intros Hmove Hshows Htold Hw.
  assert (∀ en, ends en = true → cut_es = [en] → all = en :: es →
    ∃ tr, runs (Queue (M := one_by_one M) (z, []) w []) (Alone <$> all) tr
      (Queue (M := one_by_one M) (z2, []) [] [])) as Halone.
  { intros en Hen -> ->. destruct (shows_told_to_all z ([en] ++ es) z2 w) as (tr&w'&Hrun&Hnil).
    { by eapply recorded_shows_step. }
    rewrite Hnil in Hrun; [by exists tr|]. right. apply Exists_cons. by left. }
  destruct Htold as [id q js r es|ws js es|js es|js es];
    [| |by apply (Halone (Event (Crash CutShort)))|by apply (Halone (Settle CutShort))].
  - destruct (shows_first _ _ _ _ Hshows) as (z3&rest&more&Hone&Hmore&->).
    destruct (entries_told_to_all z3 rest []) as (w1&H1&Hw1). rewrite Hw1 in H1 by by left.
    destruct (shows_told_to_all _ _ _ [] Hmore) as (tr&w2&H2&Hw2). rewrite Hw2 in H2 by by left.
    eexists. rewrite fmap_cons, fmap_app.
    apply (queue_more _ _ [] [] (Queue (M := one_by_one M) (z1, [Event (event_of q CutShort [])]) w []));
      [by constructor; constructor|].
    eapply (queue_more _ _ [Alone (Event (Crash r))]); [|by eapply queue_run_app].
    eapply (queue_cut_serving (one_by_one M) _ (z1, []) _ w [] id);
      [|by rewrite event_of_answer|constructor|done].
    rewrite Hw. by left.
  - destruct (writes_told z1 ws [Event (Crash CutShort)] w (as_cut (concat (requests_of <$> js)) ++ others))
      as [w1 H1].
    { rewrite Hw, fmap_cons. cbn [concat]. unfold as_cut. by rewrite fmap_app, <-(assoc_L (++)). }
    destruct (entries_told_to_all z1 [Event (Crash CutShort)] w1) as (w2&H2&Hw2).
    rewrite Hw2 in H2 by (right; apply Exists_cons; by left).
    destruct (shows_told_to_all _ _ _ [] Hshows) as (tr&w3&H3&Hw3). rewrite Hw3 in H3 by by left.
    eexists. eapply (queue_more _ _ [] [] (Queue (M := one_by_one M) (z1, _) w []));
      [by constructor; constructor|].
    eapply (queue_run_app _ []); [exact H1|].
    eapply (queue_run_app _ [Alone (Event (Crash CutShort))]); [exact H2|exact H3].
Qed.

(** ** The run of the queue *)

(** What a job shows, and that it answers all its requests. *)
Definition shown_by (j : job nat) (os : list outcome) : list (entry block) :=
  match os with
  | [Some answers] =>
      zip_with (λ (x : nat * request) (a : answer * list block), Event (event_of x.2 a.1 a.2)) (requests_of j)
        answers
  | _ => []
  end.
Context (job_shown : ∀ j z os z', job_turn j z os z' → recorded_shows M z (shown_by j os) z').
Context (job_answers : ∀ j z answers z', job_turn j z [Some answers] z' →
  length answers = length (requests_of j)).
Context (next_waits : ∀ l j l', next l = Some (j, l') → l ≡ₚ requests_of j ++ l').

Definition as_called hs (x : nat * request) : nat * event block := (x.1, event_in hs x.1 x.2).
Definition replied_as (x : nat * request) (a : answer * list block) : happening := Replied x.1 a.1 a.2.

Lemma as_called_ids hs xs : (as_called hs <$> xs).*1 = xs.*1.
Proof. rewrite <-list_fmap_compose. by apply list_fmap_ext. Qed.

Lemma requests_each_alone (ws : list (nat * (nat * list block))) : concat (requests_of <$> each_alone ws) =
  requests_of (Together ws).
Proof. induction ws as [|x ws IH]; [done|]. simpl. f_equal. exact IH. Qed.

(** Those who are answered leave the queue. *)
Lemma replies_told xs (answers : list (answer * list block)) rest hs w :
  length answers = length xs → NoDup (xs ++ rest).*1 → Forall (λ a, a.1 ≠ CutShort) answers →
  w ≡ₚ as_called (zip_with replied_as xs answers ++ hs) <$> (xs ++ rest) →
  ∃ w', told_as (zip_with (λ (x : nat * request) (a : answer * list block),
      Event (event_of x.2 a.1 a.2)) xs answers) w (Answered <$> xs.*1) w' ∧
    w' ≡ₚ as_called hs <$> rest.
Proof.
  revert answers w. induction xs as [|[id q] xs IH]; intros [|[r data] answers] w Hlen Hdup Hcut Hw; try done.
  { exists w. split; [constructor|done]. }
  simpl in Hlen. apply Forall_cons in Hcut as [Hr Hcut]. cbn [app fmap list_fmap fst] in Hdup.
  apply NoDup_cons in Hdup as [Hid Hdup]. cbn [app fmap list_fmap zip_with] in *.
  assert (as_called (replied_as (id, q) (r, data) :: zip_with replied_as xs answers ++ hs) (id, q) =
    (id, event_of q r data)) as Hfirst.
  { unfold as_called, event_in. simpl. by rewrite decide_True. }
  assert (as_called (replied_as (id, q) (r, data) :: zip_with replied_as xs answers ++ hs) <$> (xs ++ rest) =
    as_called (zip_with replied_as xs answers ++ hs) <$> (xs ++ rest)) as Hothers.
  { apply list_fmap_ext. intros i [id' q'] Hx. unfold as_called, event_in. simpl.
    rewrite decide_False; [done|]. intros <-. apply Hid, elem_of_list_fmap. exists (id, q').
    split; [done|]. by eapply elem_of_list_lookup_2. }
  cbn [app zip_with] in Hw. rewrite Hfirst, Hothers in Hw.
  assert ((id, event_of q r data) ∈ w) as (w1&w2&->)%elem_of_list_split by (rewrite Hw; by left).
  rewrite <-Permutation_middle in Hw. apply Permutation_cons_inv in Hw.
  destruct (IH answers (w1 ++ w2)) as (w'&Hw'&Hperm); [lia|done..|].
  exists w'. split; [|done]. constructor; [by rewrite event_of_answer|done].
Qed.

Lemma told_replies j answers : told <$> replies_of j answers = zip_with replied_as (requests_of j) answers.
Proof.
  unfold replies_of. revert answers.
  induction (requests_of j) as [|x xs IH]; intros [|a answers]; [done..|]. simpl. by rewrite IH.
Qed.

Lemma history_told xs (answers : list (answer * list block)) hs : length answers = length xs →
  history_of (zip_with replied_as xs answers ++ hs) = (Answered <$> xs.*1) ++ history_of hs.
Proof.
  revert answers. induction xs as [|x xs IH]; intros [|a answers] Hlen; try done. simpl in *.
  rewrite IH; [done|lia].
Qed.

Lemma told_to_all es w : Forall (λ en, ends en = false) es → told_as es w (Alone <$> es) w.
Proof. induction 1 as [|en es Hen _ IH]; by constructor. Qed.

Lemma answer_meanwhile es hs id : answer_in ((Happened <$> es) ++ hs) id = answer_in hs id.
Proof. by induction es. Qed.

Lemma history_meanwhile es hs : history_of ((Happened <$> es) ++ hs) = (Alone <$> es) ++ history_of hs.
Proof. induction es as [|en es IH]; [done|]. simpl. f_equal. exact IH. Qed.

Local Notation behind s := (disk_behind s, @nil (entry block)).

Theorem server_run_queue s hs s' w : server_run s hs s' → NoDup (pending s).*1 →
  w ≡ₚ as_called hs <$> pending s →
  ∃ tr w', runs (Queue (M := one_by_one M) (behind s) w []) (history_of hs) tr (Queue (M :=
    one_by_one M) (behind s') w' []).
Proof.
  intros Hrun. revert w. induction Hrun as [s|s s1 new hs s2 Hturn Hnew Hcut _ IH|
    z js w0 w1 j a hs s2 Hnext _ IH|z js w0 a id q hs s2 Hq Hid _ IH
    |z z1 es js w0 a hs s2 Hz Hes _ IH|z cut_es z1 es z2 js w0 a all hs s2 Hmove Hz Htold _ IH];
    intros w Hdup Hw.
  - exists [], w. constructor.
  - assert (∀ z z' w1, recorded_shows M z [] z' →
      ∃ tr, runs (Queue (M := one_by_one M) (z, []) w1 []) [] tr (Queue (M :=
        one_by_one M) (z', []) w1 [])) as Hquiet.
    { intros z z' w1 Hz. eapply shows_told; [exact Hz|constructor]. }
    inversion Hturn as [z j w0 w1 a Hnext|z j js w0 a z' Hj|z j js w0 a answers z' Hj|z ws js w0 a z' Hj];
      subst;
      cbn [replies disk_behind] in *.
    + assert (new = []) as -> by (by eapply app_inv_head; rewrite app_nil_r).
      assert (pending (Server z [] w0 a) ≡ₚ pending (Server z [j] w1 a)) as Hsame.
      { unfold pending. simpl. rewrite app_nil_r. by apply next_waits. }
      apply IH; [by rewrite <-Hsame|]. by rewrite <-Hsame.
    + assert (new = []) as -> by (by eapply app_inv_head; rewrite app_nil_r).
      destruct (Hquiet _ _ w (job_shown _ _ _ _ Hj)) as [tr1 H1].
      destruct (IH w Hdup Hw) as (tr2&w2&H2). exists (tr1 ++ tr2), w2. by eapply (queue_run_app _ []).
    + apply app_inv_head in Hnew. subst new. rewrite told_replies in *.
      assert (pending (Server z (j :: js) w0 a) =
        requests_of j ++ pending (Server z' js w0 (a ++ replies_of j answers))) as Hpending.
      { unfold pending. simpl. by rewrite (assoc_L (++)). }
      rewrite Hpending in *. pose proof (job_answers _ _ _ _ Hj) as Hlen.
      destruct (replies_told (requests_of j) answers _ hs w Hlen Hdup) as (w1&Htold&Hw1); [|done|].
      { clear -Hcut Hlen. unfold replies_of in Hcut. revert answers Hcut Hlen.
        induction (requests_of j) as [|x xs IH]; intros [|b answers] Hcut Hlen; try done.
        simpl in *. apply Forall_cons in Hcut as [? ?]. constructor; [done|]. apply IH; [done|lia]. }
      destruct (shows_told _ _ _ _ _ _ (job_shown _ _ _ _ Hj) Htold) as [tr1 H1].
      destruct (IH w1) as (tr2&w2&H2); [|done|].
      { rewrite fmap_app in Hdup. by apply NoDup_app in Hdup as (_&_&?). }
      exists (tr1 ++ tr2), w2. rewrite history_told by done. by eapply queue_run_app.
    + assert (new = []) as -> by (by eapply app_inv_head; rewrite app_nil_r).
      assert (pending (Server z (Together ws :: js) w0 a) = pending (Server z' (each_alone ws ++ js) w0 a))
        as Hsame.
      { unfold pending. cbn [begun ServedDiskScheduler.waiting]. rewrite fmap_app, concat_app.
        by rewrite requests_each_alone. }
      destruct (Hquiet _ _ w (job_shown _ _ _ _ Hj)) as [tr1 H1].
      destruct (IH w) as (tr2&w2&H2); [by rewrite <-Hsame|by rewrite <-Hsame|].
      exists (tr1 ++ tr2), w2. by eapply (queue_run_app _ []).
  - assert (pending (Server z js w0 a) ≡ₚ pending (Server z (js ++ [j]) w1 a)) as Hsame.
    { unfold pending. simpl. rewrite fmap_app, concat_app, <-(assoc_L (++)). simpl. rewrite app_nil_r.
      f_equiv. by apply next_waits. }
    apply IH; [by rewrite <-Hsame|]. by rewrite <-Hsame.
  - assert (pending (Server z js (w0 ++ [(id, q)]) a) = pending (Server z js w0 a) ++ [(id, q)]) as Hpending.
    { unfold pending. simpl. by rewrite (assoc_L (++)). }
    destruct (IH (w ++ [(id, event_in hs id q)])) as (tr&w2&H2).
    + rewrite Hpending, fmap_app. apply NoDup_app. split_and!; [done| |by apply NoDup_singleton].
      by intros id' Hid' ->%elem_of_list_singleton.
    + rewrite Hpending, fmap_app, Hw. done.
    + exists tr, w2. cbn [history_of].
      assert (id ∉ w.*1 ++ []) as Hnew by (rewrite app_nil_r, Hw, as_called_ids; exact Hid).
      assert (queues_up (event_in hs id q)) as Hqueues by (unfold event_in; by destruct q).
      exact (queue_more _ _ _ [] _ _ tr _ (queue_call _ _ _ _ id _ Hqueues Hnew) H2).
  - destruct (shows_told _ _ _ _ _ _ Hz (told_to_all es w Hes)) as [tr1 H1].
    destruct (IH w) as (tr2&w2&H2); [done| |].
    + rewrite Hw. apply reflexive_eq, list_fmap_ext. intros i x _. unfold as_called, event_in.
      by rewrite answer_meanwhile.
    + exists (tr1 ++ tr2), w2. rewrite history_meanwhile. by eapply queue_run_app.
  - destruct (cut_run z cut_es z1 es z2 js all w (as_cut w0) Hmove Hz Htold) as [tr1 H1].
    { rewrite Hw. unfold as_cut. by rewrite <-fmap_app. }
    destruct (IH []) as (tr2&w2&H2); [constructor|done|].
    exists (tr1 ++ tr2), w2. by eapply queue_run_app.
Qed.
End Server.

(** ** The disks *)

Lemma short_writes_permute `{!blocks} {A} room (w : list (A * request)) :
  w ≡ₚ requests_of (Together (short_writes room w).1) ++ (short_writes room w).2.
Proof.
  revert room. induction w as [|[id q] w IH]; intros room; [done|]. cbn [short_writes].
  destruct (short_write room q) as [[lba data]|] eqn:Hq; cbn [fst snd].
  - apply short_write_some in Hq as [-> _]. simpl. f_equiv. apply IH.
  - rewrite <-Permutation_middle. f_equiv. apply IH.
Qed.

Lemma next_job_permutes `{!blocks} {A} most (w : list (A * request)) j w' :
  next_job most w = Some (j, w') → w ≡ₚ requests_of j ++ w'.
Proof.
  destruct w as [|[id q] rest]; [done|]. cbn [next_job].
  destruct (short_write most q) as [[lba data]|] eqn:Hq; [|by intros [= <- <-]].
  apply short_write_some in Hq as [-> _]. cbn [snd].
  pose proof (short_writes_permute (most - length data) rest) as Hrest.
  destruct (short_writes (most - length data) rest).1 as [|y more]; intros [= <- <-]; [done|].
  simpl. f_equiv. exact Hrest.
Qed.

(** What one of several writes shows. *)
Lemma writes_shown_by `{!blocks} (ws : list (nat * (nat * list block))) :
  shown_by (Together ws) [Some (replicate (length ws) (Ok, []))] = Event <$> writes_shown ws.*2 Ok.
Proof.
  simpl. induction ws as [|x ws IH]; [done|]. simpl. f_equal. exact IH.
Qed.

Section Leg.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type}
  (D : DiskMachine.programs Y
  U).
Context (size count most : nat) (places_for : Y → nat → option (list nat)) (collecting : U).
Local Notation turn := (job_turn D size places_for collecting).

Lemma leg_job_shown j z os z' : turn j z os z' → recorded_shows (leg_disk D size count) z (shown_by j os) z'.
Proof.
  intros Hturn. apply leg_disk_lives.
  assert (∀ j y ms c places x h,
    lives D size count (Idle y ms c, x, h) [] (performing D size j y ms c places, x, h)) as Hperform.
  { intros j1 y ms c places x h. apply lives_one. destruct j1; by constructor. }
  destruct Hturn; try rewrite writes_shown_by; try (apply lives_one; by econstructor); [apply Hperform|].
  eapply (lives_step _ _ _ _ []); [by constructor|apply Hperform].
Qed.

Lemma leg_job_answers j z answers z' : turn j z [Some answers] z' → length answers = length (requests_of j).
Proof.
  intros Hturn. inversion Hturn; subst; [done|]. by rewrite replicate_length; simpl; rewrite fmap_length.
Qed.

(** What may happen between two turns is one of the things that may happen in a run. *)
Lemma leg_weather_shows z z1 : LegDiskProgress.weather count z z1 → powered z.1.1 = true → ∃ es,
  recorded_shows (leg_disk D size count) z es z1 ∧ Forall (λ en, ends en = false) es.
Proof.
  intros [Hz _]. induction Hz as [z|z z1 z2 (i&x'&Hi&Hx&->) _ IH]; intros Hon; [exists []; split;
    constructor|].
  destruct IH as (es&Hes&Hall); [done|]. exists (Fail i Ok :: es). split; [|by constructor].
  eapply (recorded_shows_step (leg_disk D size count) z [Fail i Ok]); [|exact Hes].
  destruct z as [[c x] h]. simpl in *. pose proof (DeviceFails D size count c i x x' h Hi Hx) as Hmove.
  by rewrite Hon in *.
Qed.

(** What is under way is the first job that has begun. *)
Definition doing (js : list (job nat)) (z : machine C Y) : Prop :=
  match z.1.1 with
  | Busy q _ => ∃ id js', js = Single id q :: js'
  | Group ws _ => ∃ xs js', js = Together xs :: js' ∧ ws = xs.*2
  | _ => True
  end.

Lemma doing_turn s es s1 : server_turn turn (next_job most) s es s1 →
  doing (begun s) (disk_behind s) → doing (begun s1) (disk_behind s1).
Proof.
  destruct 1 as [z j w w' a Hnext|z j js w a z' Hj|z j js w a answers z' Hj|z ws js w a z' Hj]; simpl.
  - unfold doing. destruct z.1.1; try done; [by intros (?&?&?)|by intros (?&?&?&?)].
  - intros _. inversion Hj; subst; unfold doing; simpl; try done; try (by do 2 eexists);
      destruct j; simpl; by do 2 eexists.
  - intros _. by inversion Hj; subst.
  - intros _. by inversion Hj; subst.
Qed.

(** When the disk is open again, the power cut was told. *)
Lemma opening_told z es z' : lives D size count z es z' →
  z.1.1 = Off ∨ (∃ p, z.1.1 = Recovery false p) → is_open z' = true →
  ∃ r es', es = Event (Crash r) :: es'.
Proof.
  induction 1 as [z|z es z1 tr z2 Hmove _ IH]; intros Hz Ho.
  { unfold is_open in Ho. by destruct Hz as [Hz|[p Hz]]; rewrite Hz in Ho. }
  destruct Hmove; simpl in Hz; destruct Hz as [Hz|[p1 Hz]]; simplify_eq; simpl; try (by do 2 eexists);
    try (apply IH; simpl; by eauto).
Qed.

(** So each power cut is told as [cut_told] says. *)
Lemma leg_cut_told js z es z1 es2 z2 : doing js z → ¬ is_off z → move D size count z es z1 → is_off z1 →
  lives D size count z1 es2 z2 → is_open z2 = true → ∃ all, cut_told js es es2 all.
Proof.
  intros Hdoing Hon Hmove Hoff Hlives Ho.
  destruct (opening_told _ _ _ Hlives (or_introl Hoff) Ho) as (r&es'&->).
  unfold is_off in *. destruct Hmove; simpl in *; try done.
  destruct c; simpl in *; try (by eexists; constructor).
  - destruct Hdoing as (id&js'&->). eexists. constructor.
  - destruct Hdoing as (xs&js'&->&->). eexists. constructor.
Qed.

Theorem leg_server_run `{!EqDecision block} z hs s :
  server_run (leg_disk D size count) turn (next_job most) (Server z [] [] []) hs s →
  ∃ tr k, queue_run (OverlappingDiskQueue.one_by_one (leg_disk D size count)) (in_front _ z) (history_of
    hs) tr k.
Proof.
  intros Hrun. destruct (server_run_queue (leg_disk D size count) turn (next_job most) leg_job_shown
    leg_job_answers
    (next_job_permutes most) _ _ _ [] Hrun) as (tr&w&Hk); [constructor|done|]. by eauto.
Qed.
End Leg.

Section Device.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : DiskMachine.programs Y U) (most : nat).
Context (places_for : Y → nat → option (list nat)) (collecting : U).
Import DiskMachine(Idle, disk_machine).
Local Notation turn := (device_turn D places_for collecting).

Lemma device_job_shown j z os z' :
  turn j z os z' → recorded_shows (disk_machine D) z (shown_by j os) z'.
Proof.
  assert (∀ z es z', DiskMachine.move D z es z' → recorded_shows (disk_machine D) z (Event <$> es) z') as
    Hone.
  { intros z1 es z2 Hmove. apply shows_as_recorded. by apply shows_one. }
  assert (∀ j y places m, recorded_shows (disk_machine D) (Idle y, m) [] (performing_here D j y places, m))
    as Hperform.
  { intros j1 y places m. apply (Hone _ []). destruct j1; by constructor. }
  destruct 1; try rewrite writes_shown_by.
  - apply Hperform.
  - apply (Hone _ []), (DiskMachine.Maintain D).
  - eapply (recorded_shows_app _ _ [] _ []); [|apply Hperform]. apply (Hone _ []), (DiskMachine.UpkeepEnds D).
  - by apply (Hone _ []), (DiskMachine.BusyIo D).
  - by apply (Hone _ []), (DiskMachine.GroupIo D).
  - apply (Hone _ [_]), (DiskMachine.Answer D).
  - apply Hone, (DiskMachine.GroupAnswer D).
  - apply (Hone _ []), (DiskMachine.GroupRefused D).
Qed.

Lemma device_job_answers j z answers z' :
  turn j z [Some answers] z' → length answers = length (requests_of j).
Proof.
  intros Hturn. inversion Hturn; subst; [done|]. by rewrite replicate_length; simpl; rewrite fmap_length.
Qed.

(** What is under way is the first job that has begun. *)
Definition doing_here (js : list (job nat)) (z : DiskMachine.machine Y) : Prop :=
  match z.1 with
  | DiskMachine.Busy q _ => ∃ id js', js = Single id q :: js'
  | DiskMachine.Group ws _ => ∃ xs js', js = Together xs :: js' ∧ ws = xs.*2
  | _ => True
  end.

Lemma doing_turn_here s es s1 : server_turn turn (next_job most) s es s1 →
  doing_here (begun s) (disk_behind s) → doing_here (begun s1) (disk_behind s1).
Proof.
  destruct 1 as [z j w w' a Hnext|z j js w a z' Hj|z j js w a answers z' Hj|z ws js w a z' Hj]; simpl.
  - unfold doing_here. destruct z.1; try done; [by intros (?&?&?)|by intros (?&?&?&?)].
  - intros _. inversion Hj; subst; unfold doing_here; simpl; try done; try (by do 2 eexists);
      destruct j; simpl; by do 2 eexists.
  - intros _. by inversion Hj; subst.
  - intros _. by inversion Hj; subst.
Qed.

Lemma opening_told_here z es z' : VirtualDisk.shows (disk_machine D) z es z' →
  z.1 = DiskMachine.Off ∨ (∃ p, z.1 = DiskMachine.Recovery p) → is_open_here z' = true →
  ∃ r es', es = Crash r :: es'.
Proof.
  induction 1 as [z|z es z1 tr z2 Hmove _ IH]; intros Hz Ho.
  { unfold is_open_here in Ho. by destruct Hz as [Hz|[p Hz]]; rewrite Hz in Ho. }
  destruct Hmove; simpl in Hz; destruct Hz as [Hz|[p1 Hz]]; simplify_eq; simpl; try (by do 2 eexists);
    try (apply IH; simpl; by eauto).
Qed.

Lemma device_cut_told js z es z1 es2 z2 :
  doing_here js z → z.1 ≠ DiskMachine.Off → DiskMachine.move D z es z1 → z1.1 = DiskMachine.Off →
  VirtualDisk.shows (disk_machine D) z1 es2 z2 → is_open_here z2 = true →
  ∃ all, cut_told js (Event <$> es) (Event <$> es2) all.
Proof.
  intros Hdoing Hon Hmove Hoff Hshows Ho.
  destruct (opening_told_here _ _ _ Hshows (or_introl Hoff) Ho) as (r&es'&->).
  destruct Hmove; simpl in *; try done.
  destruct c; simpl in *; try (by eexists; constructor).
  - destruct Hdoing as (id&js'&->). eexists. constructor.
  - destruct Hdoing as (xs&js'&->&->). eexists. rewrite fmap_app. constructor.
Qed.

Theorem device_server_run `{!EqDecision block} z hs s :
  server_run (disk_machine D) turn (next_job most) (Server z [] [] []) hs s →
  ∃ tr k, queue_run (OverlappingDiskQueue.one_by_one (disk_machine D)) (in_front (disk_machine D) z)
    (history_of hs) tr k.
Proof.
  intros Hrun. destruct (server_run_queue (disk_machine D) turn (next_job most) device_job_shown
    device_job_answers
    (next_job_permutes most) _ _ _ [] Hrun) as (tr&w&Hk); [constructor|done|]. by eauto.
Qed.
End Device.
