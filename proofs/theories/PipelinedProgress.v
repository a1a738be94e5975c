(** Progress of the server with a pipeline ([PipelinedServer.v]): every request that waits is answered after a
bounded number of turns, as without a pipeline ([ServedDiskProgress.v]), if a flush takes a bounded number of
turns.

A server with a flush under way has a shadow: the server without a pipeline as it is once the flush has ended.
Each turn is one of the shadow, but for those in which a flush begins, which are two, and those in which it
ends, which are none. So progress of the shadow is progress of the server. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk RecordedImplementation Medium Codec ProvedDisk ProvedDiskInvariant
  ProvedDiskRequests
  Progress.
From LogDisk Require Import RequestProgress ProvedDiskBounds ProvedDiskAnswers ProvedDiskMachine
  ProvedDiskRefinement
  ProvedTreeDiskInvariant ProvedTreeDiskRequests ProvedTreeDiskBounds ProvedTreeDiskTheorem
    ProvedTreeDiskAnswers.
From LogDisk Require Import ServedDiskScheduler ServedDiskPower ServedDiskPrograms ServedDiskProgress
  ServedDiskServer SplitFlush PipelinedMachine PipelinedDisk PipelinedServer.
From LogDisk Require DiskMachineProgress DiskMachineShape.
Import DiskMachine(programs, control, machine, Idle, Busy, Group).
Import DiskMachineProgress(assumed).

Section Shadow.
Context {S P E : Type}.
Context (W : S → S → Prop) (T : S → list E → S → Prop) (G : S → Prop).
Context (W' : P → P → Prop) (T' : P → list E → P → Prop) (G' : P → Prop).
(** How many turns the flush under way may take, if there is one; and the most that one takes. *)
Context (shadow : P → S) (flight : P → option nat) (most : nat) (ok : P → Prop).
Context (ok_weather : ∀ p p1, ok p → W' p p1 → ok p1) (ok_turn : ∀ p es p1, ok p → T' p es p1 → ok p1).
Context (ok_most : ∀ p k, ok p → flight p = Some k → k ≤ most).
Context (weather_shadow : ∀ p p1, W' p p1 → W (shadow p) (shadow p1) ∧ flight p1 = flight p).
Context (turn_shadow : ∀ p es p1, ok p → T' p es p1 → es = [] ∧
  match flight p, flight p1 with
  | None, None => T (shadow p) [] (shadow p1)
  | None, Some _ => ∃ s, T (shadow p) [] s ∧ W s s ∧ T s [] (shadow p1)
  | Some k, Some k1 => k = Datatypes.S k1 ∧ T (shadow p) [] (shadow p1)
  | Some _, None => shadow p1 = shadow p
  end).
Context (turn_possible : ∀ p, ok p → is_Some (flight p) ∨ (∃ es s, T (shadow p) es s) → ∃ es p1, T' p es p1).
Context (weather_trans : ∀ s s1 s2, W s s1 → W s1 s2 → W s s2).
Context (good_weather : ∀ s s1, G s → W s s1 → G s1) (good_turn : ∀ s es s1, G s → T s es s1 → G s1).
Context (good_now : ∀ p, flight p = None → G (shadow p) → G' p).

Local Notation ends := (ends_well W T (λ _, G)).
Local Notation ends' := (ends_well W' T' (λ _, G')).

(** What the shadow has answered is answered when the flush ends. *)
Lemma owed_ends k p : ok p → flight p = Some k → G (shadow p) → ends' (Datatypes.S k) p.
Proof.
  revert p. induction k as [|k IH]; intros p Hok Hk Hg p1 H1;
    destruct (weather_shadow _ _ H1) as [Hw Hk1]; rewrite Hk in Hk1;
    assert (G (shadow p1)) as Hg1 by eauto; assert (ok p1) as Hok1 by eauto;
    (split; [apply turn_possible; [done|left; by rewrite Hk1]|]);
    intros es p2 H2; destruct (turn_shadow _ _ _ Hok1 H2) as [-> Hs]; rewrite Hk1 in Hs;
    destruct (flight p2) as [k2|] eqn:Hk2.
  - by destruct Hs as [? _].
  - left. apply good_now; [done|]. by rewrite Hs.
  - destruct Hs as [[= <-] Hs]. right. split; [done|]. apply IH; eauto.
  - left. apply good_now; [done|]. by rewrite Hs.
Qed.

Lemma shadow_ends n : ∀ p, ok p → ends n (shadow p) →
  ends' (n + most + match flight p with None => 1 | Some _ => 2 end) p.
Proof.
  induction n as [n IH] using lt_wf_ind.
  assert (∀ p, ok p → flight p = None → ends n (shadow p) → ends' (n + most + 1) p) as Hidle.
  { intros p Hok Hk Hends. destruct n as [|n]; [done|]. simpl. intros p1 H1.
    destruct (weather_shadow _ _ H1) as [Hw Hk1]. rewrite Hk in Hk1. destruct (Hends _ Hw) as [Hsome Hall].
    assert (ok p1) as Hok1 by eauto.
    split; [apply turn_possible; [done|by right]|]. intros es p2 H2.
    assert (ok p2) as Hok2 by eauto.
    destruct (turn_shadow _ _ _ Hok1 H2) as [-> Hs]. rewrite Hk1 in Hs.
    destruct (flight p2) as [k2|] eqn:Hk2.
    - destruct Hs as (s&Hs1&Hww&Hs2). right. split; [done|]. pose proof (ok_most _ _ Hok2 Hk2) as Hmost.
      destruct (Hall _ _ Hs1) as [Hg|[_ Hrest]].
      { eapply ends_well_more; [|by eapply owed_ends; eauto]. lia. }
      destruct n as [|n]; [done|]. destruct (Hrest _ Hww) as [_ Hall2].
      destruct (Hall2 _ _ Hs2) as [Hg|[_ Hrest2]].
      { eapply ends_well_more; [|by eapply owed_ends]. lia. }
      pose proof (IH n ltac:(lia) p2 Hok2 Hrest2) as Hp2. rewrite Hk2 in Hp2.
      eapply ends_well_more; [|exact Hp2]. lia.
    - destruct (Hall _ _ Hs) as [Hg|[_ Hrest]]; [left; by apply good_now|right]. split; [done|].
      pose proof (IH n ltac:(lia) p2 Hok2 Hrest) as Hp2. rewrite Hk2 in Hp2. exact Hp2. }
  intros p Hok Hends. destruct (flight p) as [k|] eqn:Hk; [|by apply Hidle].
  destruct n as [|n]; [done|]. rewrite <-plus_n_Sm. intros p1 H1.
  destruct (weather_shadow _ _ H1) as [Hw Hk1]. rewrite Hk in Hk1. destruct (Hends _ Hw) as [_ Hall].
  assert (ok p1) as Hok1 by eauto.
  split; [apply turn_possible; [done|left; by rewrite Hk1]|]. intros es p2 H2.
  assert (ok p2) as Hok2 by eauto.
  destruct (turn_shadow _ _ _ Hok1 H2) as [-> Hs]. rewrite Hk1 in Hs. right. split; [done|].
  destruct (flight p2) as [k2|] eqn:Hk2.
  - destruct Hs as [Hless Hs]. pose proof (ok_most _ _ Hok2 Hk2).
    destruct (Hall _ _ Hs) as [Hg|[_ Hrest]].
    + eapply ends_well_more; [|by eapply owed_ends]. lia.
    + pose proof (IH n ltac:(lia) p2 Hok2 Hrest) as Hp2. rewrite Hk2 in Hp2.
      eapply ends_well_more; [|exact Hp2]. lia.
  - apply Hidle; [done..|]. rewrite Hs. intros s2 Hs2. apply Hends. by eapply weather_trans.
Qed.
End Shadow.

(** ** The server *)

Section Server.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : programs Y U) (spare : Y → nat → bool).
Context (places_for : Y → nat → option (list nat)) (collecting : U) (most longest : nat).
Local Notation device_turn := (device_turn D places_for collecting).
Local Notation serves := (server_turn device_turn (next_job most)).
Local Notation disk := (pipeline Y * nat)%type.    (* with the turns that the flush under way may still take
  *)
Implicit Types (s : server (machine Y)) (p : server disk) (j : job nat) (js : list (job nat)).
Implicit Types (w : list (nat * request)) (a : list reply).

(** What is answered at the end of the flush. *)
Definition flushed_answers (c : control Y) : list (answer * list block) :=
  match c with
  | Busy _ (FlushBlocks (Done (_, r, data))) => [(r, data)]
  | Group ws _ => replicate (length ws) (Ok, [])
  | _ => []
  end.

(** As without a pipeline; or a flush begins, or ends; or a turn of the next job while it is under way, which
may take [longest] turns. *)
Inductive pipelined_turn : server disk → list () → server disk → Prop :=
  | TurnAlone z k js w a z' js' w' a' :
      serves (Server z js w a) [] (Server z' js' w' a') →
      pipelined_turn (Server (OneJob z, k) js w a) [] (Server (OneJob z', k) js' w' a')
  | FlushStarts c m k j js w a c1 y es :
      last_flush c = Some (es, y) → device_turn j (c, m) [] (c1, flush_blocks m) →
      device_turn j (c1, flush_blocks m) [Some (flushed_answers c)] (Idle y, flush_blocks m) →
      pipelined_turn (Server (OneJob (c, m), k) (j :: js) w a) []
        (Server (TwoJobs c y (Idle y) (begin_flush m), longest) (j :: js) w a)
  | TurnNext c y next wf k j j' js w a next' wf' :
      pipeline_move D spare (TwoJobs c y next wf) [] (TwoJobs c y next' wf') →
      device_turn j' (next, end_flush wf) [] (next', end_flush wf') →
      pipelined_turn (Server (TwoJobs c y next wf, S k) (j :: j' :: js) w a) []
        (Server (TwoJobs c y next' wf', k) (j :: j' :: js) w a)
  | TakesNext c y next wf k j j' w w' a :
      next_job most w = Some (j', w') →
      pipelined_turn (Server (TwoJobs c y next wf, S k) [j] w a) []
        (Server (TwoJobs c y next wf, k) [j; j'] w' a)
  | FlushStops c y next wf k j js w a :
      pipelined_turn (Server (TwoJobs c y next wf, k) (j :: js) w a) []
        (Server (OneJob (next, end_flush wf), k) js w (a ++ replies_of j (flushed_answers c))).

(** The server as it is once the flush has ended. *)
Definition shadow p : server (machine Y) :=
  match p with
  | Server (OneJob z, _) js w a => Server z js w a
  | Server (TwoJobs c _ next wf, _) (j :: js) w a =>
      Server (next, end_flush wf) js w (a ++ replies_of j (flushed_answers c))
  | Server (TwoJobs _ _ next wf, _) [] w a => Server (next, end_flush wf) [] w a
  end.
Definition flight p : option nat :=
  match (disk_behind p).1 with OneJob _ => None | TwoJobs _ _ _ _ => Some (disk_behind p).2 end.
(** The job whose flush is under way is the first. *)
Definition in_order p : Prop :=
  match p with
  | Server (OneJob _, _) _ _ _ => True
  | Server (TwoJobs c y _ _, k) js _ _ =>
      ∃ j js', js = j :: js' ∧ k ≤ longest ∧ ∀ next wf,
        pipeline_turn D spare places_for collecting j (TwoJobs c y next wf) [Some (flushed_answers c)]
          (OneJob (next, end_flush wf))
  end.

(** Requests arrive, and what may happen to the disk: that what its program assumes is true. *)
Definition pipelined_weather (weather : machine Y → machine Y → Prop) (within : server (machine Y) → Prop)
    p p1 : Prop :=
  server_weather (λ x x1, x1 = x) (λ _, True) p p1 ∧ server_weather weather within (shadow p) (shadow p1).

Lemma serves_replies s es s1 : serves s es s1 → ∃ new, replies s1 = replies s ++ new ∧ ∀ a,
  serves (Server (disk_behind s) (begun s) (waiting s) a) es
    (Server (disk_behind s1) (begun s1) (waiting s1) (a ++ new)).
Proof.
  destruct 1 as [z j w w' a Hnext|z j js w a z' Hj|z j js w a answers z' Hj|z ws js w a z' Hj]; simpl.
  - exists []. split; [by rewrite app_nil_r|]. intros b. rewrite app_nil_r. by apply Takes.
  - exists []. split; [by rewrite app_nil_r|]. intros b. rewrite app_nil_r. by apply GoesOn.
  - exists (replies_of j answers). split; [done|]. intros b. by apply Replies.
  - exists []. split; [by rewrite app_nil_r|]. intros b. rewrite app_nil_r. by apply Parts.
Qed.

(** It answers its job when it ends. *)
Lemma flush_answers j c m c1 y es next wf : last_flush c = Some (es, y) →
  device_turn j (c, m) [] (c1, flush_blocks m) →
  pipeline_turn D spare places_for collecting j (TwoJobs c y next wf) [Some (flushed_answers c)]
    (OneJob (next, end_flush wf)).
Proof.
  intros Hlast Hturn. inversion Hturn; subst; try done.
  - assert (∃ data, p = FlushBlocks (Done (y, Ok, data)) ∧ q ≠ DoRestart) as (data&->&Hq).
    { destruct q, p as [|?|?|[[[? []] ?]| | | |]|]; try done; injection Hlast as <- ->; by eexists. }
    apply EndsOneFlushed. by destruct q.
  - assert (p = FlushBlocks (Done (y, true))) as ->.
    { destruct p as [|?|?|[[? []]| | | |]|]; try done. by injection Hlast as <- ->. }
    simpl. rewrite fmap_length. by apply EndsTogetherFlushed.
Qed.

Lemma in_order_weather weather within p p1 : in_order p → pipelined_weather weather within p p1 → in_order p1.
Proof. intros Hp [Hw _]. destruct Hw as [x x1 js w more a Hx _]. subst x1. exact Hp. Qed.

Lemma in_order_turn p es p1 : in_order p → pipelined_turn p es p1 → in_order p1.
Proof.
  intros Hp. destruct 1 as [z k js w a z' js' w' a' Hs|c m k j js w a c1 y es Hlast H1 H2
    |c y next wf k j j' js w a next' wf' Hmove Hs|c y next wf k j j' w w' a Hnext|c y next wf k j js w a];
    simpl in *; try done.
  - exists j, js. split_and!; [done..|]. intros next wf. by eapply flush_answers.
  - destruct Hp as (j1&js1&[= <- <-]&Hk&Hends). exists j, (j' :: js). split_and!; [done|lia|done].
  - destruct Hp as (j1&js1&[= <- <-]&Hk&Hends). exists j, [j']. split_and!; [done|lia|done].
Qed.

(** What it does is what the server of [PipelinedServer.v] does: so its runs are runs of the queue. *)
Definition without_flight p : server (pipeline Y) :=
  Server (disk_behind p).1 (begun p) (waiting p) (replies p).

Lemma turn_is_run p es p1 : in_order p → pipelined_turn p es p1 →
  ∃ new, replies p1 = replies p ++ new ∧ (Forall (λ r, reply_answer r ≠ CutShort) new →
    server_run (pipelined D spare) (pipeline_turn D spare places_for collecting) (next_job most)
      (without_flight p) (told <$> new) (without_flight p1)).
Proof.
  assert (∀ (s s1 : server (pipeline Y)) new, server_turn (pipeline_turn D spare places_for collecting)
    (next_job most) s [] s1 →
    replies s1 = replies s ++ new → Forall (λ r, reply_answer r ≠ CutShort) new →
    server_run (pipelined D spare) (pipeline_turn D spare places_for collecting) (next_job most) s
      (told <$> new) s1) as Hone.
  { intros s s1 new Hturn Hnew Hall. rewrite <-(app_nil_r (told <$> new)).
    eapply run_turn; [done..|]. constructor. }
  intros Hp. destruct 1 as [z k js w a z' js' w' a' Hs|c m k j js w a c1 y es Hlast H1 H2
    |c y next wf k j j' js w a next' wf' Hmove Hs|c y next wf k j j' w w' a Hnext|c y next wf k j js w a];
    unfold without_flight; simpl.
  - pose proof Hs as (new&Ha&_)%serves_replies. simpl in Ha. exists new. split; [done|]. intros Hnew.
    apply Hone; [|done|done]. inversion Hs; subst.
    + by apply Takes.
    + apply GoesOn. by apply TurnsAlone.
    + apply Replies. by apply TurnsAlone.
    + apply Parts. by apply TurnsAlone.
  - exists []. split; [by rewrite app_nil_r|]. intros Hnew. apply Hone; [|by rewrite app_nil_r|done].
    apply GoesOn, TurnsToFlush. by eapply FlushBegins.
  - exists []. split; [by rewrite app_nil_r|]. intros Hnew. apply Hone; [|by rewrite app_nil_r|done].
    by apply GoesOn, TurnsNext.
  - exists []. split; [by rewrite app_nil_r|]. intros _.
    refine (run_ahead (pipelined D spare) (pipeline_turn D spare places_for collecting) (next_job most)
      (TwoJobs c y next wf) [j] w w' j' a [] _ Hnext _). constructor.
  - destruct Hp as (j1&js1&[= <- <-]&_&Hends). eexists. split; [done|]. intros Hnew.
    apply Hone; [|done|done]. apply Replies, Hends.
Qed.

Section Progress.
Context (within : server (machine Y) → Prop) (well : answer → Prop) (id : nat) (q : request).
(** What is asked of a server is asked when its disk is idle. *)
Context (within_idle : ∀ s, (∀ y m, disk_behind s ≠ (Idle y, m)) → within s).
Local Notation answered s := (is_answered well id q [] s).

Lemma weather_of_shadow p p1 : pipelined_weather assumed within p p1 →
  server_weather assumed within (shadow p) (shadow p1) ∧ flight p1 = flight p.
Proof. intros [Hw Hs]. split; [done|]. destruct Hw as [x x1 js w more a Hx _]. by subst x1. Qed.

Lemma turn_of_shadow p es p1 : in_order p → pipelined_turn p es p1 → es = [] ∧
  match flight p, flight p1 with
  | None, None => serves (shadow p) [] (shadow p1)
  | None, Some _ => ∃ s, serves (shadow p) [] s ∧ server_weather assumed within s s ∧ serves s [] (shadow p1)
  | Some k, Some k1 => k = S k1 ∧ serves (shadow p) [] (shadow p1)
  | Some _, None => shadow p1 = shadow p
  end.
Proof.
  intros _. destruct 1 as [z k js w a z' js' w' a' Hs|c m k j js w a c1 y es Hlast H1 H2
    |c y next wf k j j' js w a next' wf' Hmove Hs|c y next wf k j j' w w' a Hnext|c y next wf k j js w a];
    (split; [done|]); unfold flight; simpl.
  - done.
  - exists (Server (c1, flush_blocks m) (j :: js) w a). split_and!; [by apply GoesOn| |by apply Replies].
    pose proof (passes assumed within (c1, flush_blocks m) (c1, flush_blocks m) (j :: js) w [] a) as Hp.
    rewrite !app_nil_r in Hp. apply Hp.
    + split; [done|]. by inversion H2.
    + apply within_idle. intros y' m' [= Heq _]. simpl in Heq. subst c1. by inversion H2.
  - split; [done|]. by apply GoesOn.
  - split; [done|]. by apply Takes.
  - done.
Qed.

Lemma turn_is_possible p : in_order p → is_Some (flight p) ∨ (∃ es s, serves (shadow p) es s) →
  ∃ es p1, pipelined_turn p es p1.
Proof.
  destruct p as [[[z|c y next wf] k] js w a]; unfold flight; simpl.
  - intros _ [[? [=]]|(es&s&Hs)]. assert (es = []) as -> by by destruct Hs.
    destruct s as [z' js' w' a']. exists [], (Server (OneJob z', k) js' w' a'). by apply TurnAlone.
  - intros (j&js'&->&_) _. do 2 eexists. apply FlushStops.
Qed.

Lemma server_weather_trans s s1 s2 : server_weather assumed within s s1 → server_weather assumed within s1
  s2 →
  server_weather assumed within s s2.
Proof.
  intros [z z1 js w more a [-> Hz] _] H2. inversion H2 as [? z2 ? ? more2 ? [-> Hz2] Hin]; subst.
  rewrite <-(assoc_L (++)) in *. by constructor.
Qed.

Lemma answered_weather s s1 : answered s → server_weather assumed within s s1 → answered s1.
Proof. intros Hs H1. by destruct H1. Qed.

Lemma answered_turn s es s1 : answered s → serves s es s1 → answered s1.
Proof.
  intros (r&data&Hr&Hin) (new&Ha&_)%serves_replies. exists r, data. split; [done|]. rewrite Ha.
  apply elem_of_app. by left.
Qed.

Lemma answered_now p : flight p = None → answered (shadow p) → answered p.
Proof. by destruct p as [[[z|c y next wf] k] js w a]. Qed.

Lemma pipelined_ends n p : in_order p →
  ends_well (server_weather assumed within) serves (is_answered well id q) n (shadow p) →
  ends_well (pipelined_weather assumed within) pipelined_turn (is_answered well id q) (n + longest + 2) p.
Proof.
  intros Hp Hends. eapply ends_well_more; [|eapply (shadow_ends (server_weather assumed within) serves
    (λ s, answered s) (pipelined_weather assumed within) pipelined_turn (λ p, answered p) shadow flight
      longest in_order)].
  - instantiate (1 := n). destruct (flight p); lia.
  - apply in_order_weather.
  - apply in_order_turn.
  - intros [[[z|c y next wf] k1] js w a] k Hp1; unfold flight; simpl; [done|]. intros [= <-].
    by destruct Hp1 as (?&?&_&?&_).
  - apply weather_of_shadow.
  - apply turn_of_shadow.
  - apply turn_is_possible.
  - apply server_weather_trans.
  - apply answered_weather.
  - apply answered_turn.
  - apply answered_now.
  - done.
  - exact Hends.
Qed.

Lemma pipelined_owed k p : in_order p → flight p = Some k → answered (shadow p) →
  ends_well (pipelined_weather assumed within) pipelined_turn (is_answered well id q) (S k) p.
Proof.
  intros Hp Hk Hs. eapply (owed_ends (server_weather assumed within) serves
    (λ s, answered s) (pipelined_weather assumed within) pipelined_turn (λ p, answered p) shadow flight
      in_order);
    [apply in_order_weather|apply in_order_turn|apply weather_of_shadow|apply turn_of_shadow
    |apply turn_is_possible|apply answered_weather|apply answered_turn|apply answered_now|done..].
Qed.
End Progress.
End Server.

(** ** Every request that waits *)

Section Answers.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : programs Y U) (spare : Y → nat → bool) (size :
  nat).
Context (places_for : Y → nat → option (list nat)) (collecting : U).
Context (represents : Y → contents block → disk block → Prop).
Context (admissible : Y → request → Prop) (ios : request → nat) (together : nat → nat).
Context (programs_end : ends_any_request D size places_for collecting represents admissible ios together).
Variables (most longest : nat) (z0 : machine Y).
Context (represented : ∀ tr y m, VirtualDisk.shows (DiskMachine.disk_machine D) z0 tr (Idle y, m) →
  ∃ f d, m = Medium f [] ∧ represents y f d).
Local Notation turn := (pipelined_turn D spare places_for collecting most longest).
Local Notation weather := (pipelined_weather assumed).
Local Notation in_order := (in_order D spare places_for collecting longest).
Local Notation under_way := (under_way (device_turn D places_for collecting) assumed (reached_idle_here D
  z0) ios
  together (λ n, n)).
Implicit Types (p : server (pipeline Y * nat)).

(** The disk had nothing under way; then any turns, with whatever happens between them. *)
Inductive in_pipelined_service : server (pipeline Y * nat) → Prop :=
  | begins_idle k w a : is_idle_here z0 → in_pipelined_service (Server (OneJob z0, k) [] w a)
  | meets_weather p p1 : in_pipelined_service p → weather (λ _, True) p p1 → in_pipelined_service p1
  | works_on p p1 es p2 :
      in_pipelined_service p → weather (λ _, True) p p1 → turn p1 es p2 → in_pipelined_service p2.

Local Notation jobs_end := (all_jobs_end_here D size places_for collecting represents admissible ios together
  programs_end z0 represented).

Lemma under_way_step s s1 s2 es : under_way s → server_weather assumed (λ _, True) s s1 →
  server_turn (device_turn D places_for collecting) (next_job most) s1 es s2 → under_way s2.
Proof. by apply under_way_turn; [apply jobs_end|apply reached_idle_assumed|apply assumed_trans]. Qed.

Lemma in_service_way p : in_pipelined_service p → in_order p ∧ under_way (shadow p).
Proof.
  induction 1 as [k w a Hz|p p1 _ [Hp Hway] Hw|p p1 es p2 _ [Hp Hway] Hw Hturn].
  - split; [done|]. apply ready_under_way; [apply jobs_end|]. split; [|done]. eexists. constructor.
  - split; [by eapply in_order_weather|]. destruct Hw as [_ Hw].
    by eapply under_way_weather; [apply reached_idle_assumed|apply assumed_trans|exact Hway|].
  - assert (in_order p1) as Hp1 by by eapply in_order_weather.
    split; [by eapply in_order_turn|]. destruct Hw as [_ Hw].
    pose proof (turn_of_shadow D spare places_for collecting most longest (λ _, True) (λ _ _, I) _ _ _ Hp1
      Hturn)
      as [_ Hs].
    destruct (flight p1) as [k1|], (flight p2) as [k2|].
    + destruct Hs as [_ Hs]. by eapply under_way_step.
    + rewrite Hs. by eapply under_way_weather; [apply reached_idle_assumed|apply assumed_trans|exact Hway|].
    + destruct Hs as (s1&Hs1&Hw1&Hs2). eapply under_way_step; [|exact Hw1|exact Hs2].
      by eapply under_way_step.
    + by eapply under_way_step.
Qed.

(** Each request that waits is answered after at most so many turns; and [Ok], as long as it is within the
stated sizes when the disk begins it; a flush takes at most [longest] of them. *)
Definition pipelined_replies p : Prop := ∀ id q,
  (∀ i, waiting p !! i = Some (id, q) →
    let turns := turns_to_reply ios together most (λ n, n) (shadow p) i + longest + 2 in
    ends_well (weather (λ _, True)) turn (is_answered (λ _, True) id q) turns p ∧
    ends_well (weather (within_sizes_here admissible id q)) turn (is_answered (λ r, r = Ok) id q) turns p) ∧
  ((id, q) ∈ concat (requests_of <$> begun p) →
    ends_well (weather (λ _, True)) turn (is_answered (λ _, True) id q)
      (turns_begun ios together (λ n, n) (shadow p) + longest + 2) p).

Lemma replied_in id q xs (answers : list (answer * list block)) : length answers = length xs →
  (id, q) ∈ xs → ∃ r data, Reply id q r data ∈ zip_with (λ x a, Reply x.1 x.2 a.1 a.2) xs answers.
Proof.
  revert answers. induction xs as [|x xs IH]; intros [|[r data] answers] Hlen Hin; try done.
  { by apply elem_of_nil in Hin. }
  apply elem_of_cons in Hin as [<-|Hin]; [exists r, data; by left|].
  destruct (IH answers ltac:(simpl in *; lia) Hin) as (r'&data'&?). exists r', data'. by right.
Qed.

Lemma pipelined_serves_all p : in_pipelined_service p → pipelined_replies p.
Proof.
  intros [Hp Hway]%in_service_way id q.
  destruct (device_serves_all D size places_for collecting represents admissible ios together programs_end
    most z0
    represented (shadow p) id q Hway) as [Hwaits Hbegun].
  assert (waiting (shadow p) = waiting p) as Hsame.
  { destruct p as [[[z|c y next wf] k] [|j js] w a]; done. }
  rewrite Hsame in Hwaits. split.
  - intros i Hi. destruct (Hwaits i Hi) as [Hany Hok]. split; apply pipelined_ends; try done.
    intros s Hs js y m _ Heq. by destruct (Hs y m).
  - intros Hin. destruct p as [[[z|c y next wf] k] js w a]; [by apply pipelined_ends; auto|].
    destruct Hp as (j&js'&->&Hk&Hends). pose proof (pipeline_job_answers _ _ _ _ _ _ _ _ (Hends next wf)) as
      Hlen.
    simpl in Hin. apply elem_of_app in Hin as [Hin|Hin].
    + destruct (replied_in id q _ _ Hlen Hin) as (r&data&Hr).
      eapply ends_well_more; [|eapply (pipelined_owed _ _ _ _ _ _ (λ _, True) (λ _, True) id q (λ _ _, I) k)].
      * lia.
      * by exists j, js'.
      * done.
      * exists r, data. split; [done|]. simpl. apply elem_of_app. by right.
    + apply pipelined_ends; [done|by exists j, js'|]. by apply Hbegun.
Qed.
End Answers.

(** ** The disks, in every state that they reach, power cuts included *)

Section Reached.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : programs Y U) (spare : Y → nat → bool).
Context (trees : nat * nat) (g : geometry).
Context (shape : Y → geometry) (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).
Local Notation only := (DiskMachineShape.only D trees g).
Context (Hsafe : DiskMachine.crash_safe_programs only shape represents recoverable).
Context (Hframed : framed_programs D spare shape represents recoverable).
Local Notation represents_as := (DiskMachineShape.represents_as g shape represents).
Local Notation recoverable_as := (DiskMachineShape.recoverable_as g recoverable).
Local Notation related := (DiskMachine.related shape represents_as recoverable_as).

Lemma framed_only : framed_programs only spare shape represents_as recoverable_as.
Proof.
  split.
  - intros y f d places q [Hg Hy] Hq. eapply framed_mono; [|by apply (framed_request _ _ _ _ _ Hframed)].
    intros f' (d'&Hd'&Hf'). by exists d'.
  - intros y f d places ws [Hg Hy]. eapply framed_mono; [|by apply (framed_group _ _ _ _ _ Hframed)].
    intros f' [Hf'|[Hws Hf']]; [by left|by right].
Qed.

Lemma pipelined_only x tr x' :
  VirtualDisk.shows (pipelined D spare) x tr x' → VirtualDisk.shows (pipelined only spare) x tr x'.
Proof.
  induction 1 as [|x es x1 tr x2 Hmove _ IH]; [constructor|].
  apply (shows_step (pipelined only spare) x es x1); [|done].
  destruct Hmove; try (by econstructor); constructor; [by apply DiskMachineShape.move_only|].
  intros m. by apply DiskMachineShape.move_only.
Qed.

Lemma related_shows z tr z' s : related z s → VirtualDisk.shows (DiskMachine.disk_machine D) z tr z' →
  ∃ s', related z' s'.
Proof.
  intros Hz Hs%(DiskMachineShape.shows_only D trees g). revert s Hz.
  induction Hs as [z|z es z1 tr z2 Hmove _ IH]; intros s Hz; [by exists s|].
  destruct (DiskMachine.related_move only shape represents_as recoverable_as
    (DiskMachineShape.only_safe _ _ _ _ _ _ Hsafe) _ _ _ _ Hz Hmove) as (s1&_&Hz1). by eapply IH.
Qed.

Lemma pipelined_related z tr z' : DiskMachineShape.formatted_as D trees g z →
  VirtualDisk.shows (pipelined D spare) (OneJob z) tr (OneJob z') → ∃ s, related z' s.
Proof.
  intros Hz%DiskMachineShape.formatted_only Hs%pipelined_only.
  pose proof (DiskMachineShape.only_safe _ _ _ _ _ _ Hsafe) as Hsafe'.
  destruct (DiskMachine.formatted_blank _ _ _ _ Hsafe' _ _ Hz) as (y&f&->&Hn&Hrep).
  assert (∀ x tr x' s, VirtualDisk.shows (pipelined only spare) x tr x' →
    pipeline_related spare shape represents_as recoverable_as x s →
    ∃ s', pipeline_related spare shape represents_as recoverable_as x' s') as Hall.
  { intros x1 tr1 x2 s Hshows. revert s.
    induction Hshows as [x|x es x3 tr3 x4 Hmove _ IH]; intros s Hx; [by exists s|].
    destruct (pipeline_related_move only spare shape represents_as recoverable_as Hsafe' framed_only _ _ _ _
      Hx
      Hmove) as (s1&_&Hx1). by eapply IH. }
  destruct (Hall _ _ _ (settled (disk_blocks (shape y)) blank) Hs) as (s&Hrel&_); [|by exists s].
  split; [|done]. by exists f, blank.
Qed.

Context (size : nat) (places_for : Y → nat → option (list nat)) (collecting : U).
Context (admissible : Y → request → Prop) (ios : request → nat) (together : nat → nat).
Context (programs_end : ends_any_request D size places_for collecting represents_as admissible ios together).
Context (finds : ∀ f d, recoverable g d f → RequestProgress.recovers_within D size (ios DoRestart) f).

(** However it came there: if the disk is off it opens in so many turns, and if it has nothing under way every
request that waits is answered, as long as the power stays on. *)
Definition pipelined_replies_to_all (most longest : nat) (x : pipeline Y) : Prop :=
  ∀ tr z, VirtualDisk.shows (pipelined D spare) x tr (OneJob z) →
  (z.1 = DiskMachine.Off → ends_well assumed (DiskMachineProgress.recovery_turn D)
    DiskMachineProgress.open_again (2 + ios DoRestart) z) ∧
  ∀ p, in_pipelined_service D spare places_for collecting most longest z p →
    pipelined_replies D spare places_for collecting admissible ios together most longest p.

Theorem pipelined_device_replies most longest z : DiskMachineShape.formatted_as D trees g z →
  pipelined_replies_to_all most longest (OneJob z).
Proof.
  intros Hz tr z1 Hs. destruct (pipelined_related _ _ _ Hz Hs) as [s Hrel]. split.
  - destruct z1 as [c m]. simpl. intros ->. destruct Hrel as (g'&f&d&Hm&_&_&[-> Hd]). simpl in Hm. subst m.
    apply (DiskMachineProgress.recovery_ends D size). by eapply finds.
  - intros p. apply (pipelined_serves_all D spare size places_for collecting represents_as admissible ios
    together
      programs_end most longest z1).
    intros tr2 y m Hs2. destruct (related_shows _ _ _ _ Hrel Hs2) as (s2&f&d&Hm&Hy&_). simpl in Hm.
    by exists f, d.
Qed.
End Reached.

Section Disks.
Context `{!blocks, !blocks_laws} {torn : tearing block} (trees : nat * nat) (g : geometry).

(** With whole maps, *)
Theorem whole_map_pipelined_replies most longest z :
  DiskMachineShape.formatted_as proved_programs trees g z →
  pipelined_replies_to_all proved_programs spare_address places_for Collect admissible (request_ios g)
    (change_ios g) most longest (OneJob z).
Proof.
  apply (pipelined_device_replies _ _ trees g _ _ _ (maps_safe_only trees g) maps_framed (device_blocks g) _
    _ _ _
    _ (maps_end g _ (le_n _))).
  intros f d Hf. by eapply maps_recover.
Qed.

(** and with trees. *)
Theorem tree_pipelined_replies bits most longest z :
  DiskMachineShape.formatted_as (tree_programs bits) trees g z →
  pipelined_replies_to_all (tree_programs bits) tree_spare_address tree_places_for (T.Keep Collect)
    (tree_admissible bits (tree_device_blocks g trees)) (tree_request_ios_of trees g bits)
    (tree_change_ios_of trees g) most longest (OneJob z).
Proof.
  apply (pipelined_device_replies _ _ trees g _ _ _ (tree_programs_safe_of bits trees g _) (trees_framed
    bits trees)
    (tree_device_blocks g trees) _ _ _ _ _ (trees_end trees g _ bits (le_n _))).
  intros f d Hf. by eapply tree_recovers.
Qed.
End Disks.
