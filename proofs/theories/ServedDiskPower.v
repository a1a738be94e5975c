(** Power cuts of the disk that is served, and why every request that is called after the last of them is
answered.

A power cut may come at any moment. Whatever waited is lost then, and so is what was under way: the queue is
empty. When the power is back, the disk opens first ([recovery_turn]); requests may arrive meanwhile, and
wait. Then the server goes on as [ServedDiskScheduler.v] says. The power may fail again while the disk opens,
any number of times.

A request that waits, wherever the server stands, is answered after a bounded number of turns if the power
stays on from then on: those of opening, and those of [ServedDiskScheduler.v]. The disk is any machine that
ends each job and opens in a bounded number of turns; [ServedDiskProgress.v] and [ServedLegProgress.v] have
the disks. *)
From stdpp Require Import list.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk Progress ServedDiskScheduler.

Section Power.
Context `{!blocks} {Z E : Type}.
Local Notation job := (job nat).
Local Notation server := (server Z).
Implicit Types (z : Z) (j : job) (s : server) (q : request) (w : list (nat * request)) (id k n : nat).

Context (job_turn : job → Z → list outcome → Z → Prop).
Context (next : list (nat * request) → option (job * list (nat * request))).
(** The disk is open; what is done until it is. *)
Context (is_open : Z → bool) (recovery_turn : Z → list E → Z → Prop).
(** What may happen between two turns while the power is on; and a power cut, with all that may happen until
the power is back. *)
Context (weather : Z → Z → Prop) (cut : Z → Z → Prop).

Local Notation calm := (server_weather weather (λ _, True)).
Local Notation serves := (server_turn job_turn next).

(** The server opens the disk first. *)
Inductive power_turn : server → list () → server → Prop :=
  | Serves s es s' : is_open (disk_behind s) = true → serves s es s' → power_turn s es s'
  | OpensDisk z es z' w a : recovery_turn z es z' → power_turn (Server z [] w a) [] (Server z' [] w a).

(** The server begins anew: who waited is lost, and nobody was answered yet. *)
Inductive power_cut : server → server → Prop :=
  | fails z z' js w a : cut z z' → power_cut (Server z js w a) (Server z' [] [] []).

(** At most so many power cuts more, each of them at any moment. *)
Inductive storm : nat * server → nat * server → Prop :=
  | goes_by k s s' : calm s s' → storm (k, s) (k, s')
  | strikes k s s1 ks : power_cut s s1 → storm (k, s1) ks → storm (S k, s) ks.
Definition storm_turn (ks : nat * server) (es : list ()) (ks' : nat * server) : Prop :=
  ks'.1 = ks.1 ∧ power_turn ks.2 es ks'.2.
Definition opened (_ : list ()) (ks : nat * server) : Prop := is_open (disk_behind ks.2) = true.

(** What is served: the disk had nothing under way, or it was closed and nobody opened it; then any turns and
any power cuts, with whatever happens between them. *)
Context (ready closed : Z → Prop).
Inductive in_power : server → Prop :=
  | starts z w a : ready z ∨ closed z → in_power (Server z [] w a)
  | waits s s1 : in_power s → calm s s1 → in_power s1
  | goes_on s s1 es s2 : in_power s → calm s s1 → power_turn s1 es s2 → in_power s2
  | is_cut s s1 : in_power s → power_cut s s1 → in_power s1.

(** The most turns until the disk is open. *)
Context (to_open : nat).
Definition turns_to_open s : nat := if is_open (disk_behind s) then 0 else to_open.

(** However often the power fails, if it does so [k] times more at most, a disk that is not open is open after
at most [S k * to_open] turns. And as long as the power does not fail again, each request that waits is
answered after at most so many turns, whatever it asks for; and [Ok], as long as it is within the stated sizes
when the disk begins it. *)
Definition replies_despite_cuts (sized : nat → request → server → Prop) (turns_begun : server → nat)
    (turns : server → nat → nat) : Prop := ∀ s, in_power s →
  (is_open (disk_behind s) = false → ∀ k, ends_well storm storm_turn opened (S k * to_open) (k, s)) ∧
  ∀ id q,
  (∀ i, waiting s !! i = Some (id, q) →
    ends_well calm power_turn (is_answered (λ _, True) id q) (turns_to_open s + turns s i) s ∧
    ends_well (server_weather weather (sized id q)) power_turn (is_answered (λ r, r = Ok) id q)
      (turns_to_open s + turns s i) s) ∧
  ((id, q) ∈ concat (requests_of <$> begun s) →
    ends_well calm power_turn (is_answered (λ _, True) id q) (turns_begun s) s).

(** ** Why *)

(** Jobs are performed on a disk that is open, and leave it open; nothing but power cuts closes it. *)
Context (job_open : ∀ j z os z', job_turn j z os z' → is_open z = true ∧ is_open z' = true).
Context (recovery_closed : ∀ z es z', recovery_turn z es z' → is_open z = false).
Context (weather_open : ∀ z z', weather z z' → is_open z' = is_open z).

Lemma serves_open s es s' :
  serves s es s' → is_open (disk_behind s) = true → is_open (disk_behind s') = true.
Proof. destruct 1 as [|?????? Hj|??????? Hj|?????? Hj]; [done|..]; intros _; apply (job_open _ _ _ _ Hj). Qed.

Lemma calm_open within s s' :
  server_weather weather within s s' → is_open (disk_behind s') = is_open (disk_behind s).
Proof. destruct 1 as [z z' js w more a Hz _]. by apply weather_open. Qed.

(** While it is open, there is nothing else to do than to serve. *)
Lemma open_turn s es s' : is_open (disk_behind s) = true → power_turn s es s' ↔ serves s es s'.
Proof.
  intros Ho. split; [|by constructor]. destruct 1 as [|z es z' w a Hc%recovery_closed]; [done|].
  simpl in Ho. congruence.
Qed.

Lemma open_ends_iff within G n s : is_open (disk_behind s) = true →
  ends_well (server_weather weather within) serves G n s ↔
  ends_well (server_weather weather within) power_turn G n s.
Proof.
  revert s. induction n as [|n IH]; intros s Ho; [done|]. simpl.
  split; intros Hs s1 H1; destruct (Hs s1 H1) as [(es&s2&Hsome) Hall];
    assert (is_open (disk_behind s1) = true) as Ho1 by (by rewrite (calm_open _ _ _ H1)).
  - split; [exists es, s2; by apply open_turn|]. intros es3 s3 H3%open_turn; [|done].
    destruct (Hall _ _ H3) as [?|[? ?]]; [by left|right]. split; [done|].
    apply IH; [by eapply serves_open|done].
  - split; [exists es, s2; by apply open_turn|]. intros es3 s3 H3.
    destruct (Hall es3 s3) as [?|[? ?]]; [by apply open_turn|by left|right]. split; [done|].
    apply IH; [by eapply serves_open|done].
Qed.

Context (reached : Z → Prop).
Context (ready_open : ∀ z, ready z → is_open z = true ∧ reached z).
Context (closed_reached : ∀ z, closed z → is_open z = false ∧ reached z).
Context (reached_weather : ∀ z z', reached z → weather z z' → reached z').
Context (reached_job : ∀ j z os z', reached z → job_turn j z os z' → reached z').
Context (reached_recovery : ∀ z es z', reached z → recovery_turn z es z' → reached z').
Context (recovered_ready : ∀ z es z', recovery_turn z es z' → reached z' → is_open z' = true → ready z').
Context (cut_closed : ∀ z z', reached z → cut z z' → closed z').
Context (weather_trans : ∀ z z1 z2, weather z z1 → weather z1 z2 → weather z z2).
Context (recovery_ends : ∀ z, closed z → ends_well weather recovery_turn (λ _, ready) to_open z).

(** The disk opens; then the server goes on. *)
Lemma opening_lifts within G n k z w a :
  is_open z = false → reached z → ends_well weather recovery_turn (λ _, ready) n z →
  (∀ z' w', ready z' → w `prefix_of` w' →
    ends_well (server_weather weather within) power_turn G k (Server z' [] w' a)) →
  ends_well (server_weather weather within) power_turn G (n + k) (Server z [] w a).
Proof.
  revert z w. induction n as [|n IH]; intros z w Ho Hz Hends Hthen; [done|].
  intros s1 Hs1. inversion Hs1 as [? z1 ? ? more ? Hz1 Hwithin]; subst.
  destruct (Hends z1 Hz1) as [(es&z2&Hsome) Hall]. split; [do 2 eexists; by eapply OpensDisk|].
  assert (is_open z1 = false) as Ho1 by by rewrite (weather_open _ _ Hz1).
  assert (w `prefix_of` w ++ more) as Hmore by by apply prefix_app_r.
  intros es3 s3 Hs3. right. inversion Hs3 as [? ? ? Ho3|? es2 z3 ? ? Hturn]; subst;
    [simpl in Ho3; congruence|]. split; [done|].
  assert (reached z3) as Hz3 by eauto.
  assert (ready z3 ∨ is_open z3 = false ∧ ends_well weather recovery_turn (λ _, ready) n z3)
    as [Hready|[Ho3 Hrest]].
  { destruct (Hall _ _ Hturn) as [?|[_ ?]]; [by left|].
    destruct (is_open z3) eqn:Ho3; [left; by eapply recovered_ready|by right]. }
  - eapply ends_well_more; [apply (Nat.le_add_l k n)|by apply Hthen].
  - apply IH; [done..|]. intros z' w' Hz' Hw'. apply Hthen; [done|]. by etrans.
Qed.

(** However often the power fails meanwhile. *)
Lemma storm_ends k n z w a :
  n ≤ to_open → is_open z = false → reached z → ends_well weather recovery_turn (λ _, ready) n z →
  ends_well storm storm_turn opened (k * to_open + n) (k, Server z [] w a).
Proof.
  revert n z w a. induction k as [|k IHk]; intros n; induction n as [|n IHn]; intros z w a Hn Ho Hz Hends;
    try done; rewrite <-plus_n_Sm; intros ks1 H1.
  1, 2: inversion H1 as [k1 s s1 Hs1|k1 s s1 ks2 Hcut Hstorm]; subst.
  1, 2: inversion Hs1 as [? z2 ? ? more ? Hz2 _]; subst; destruct (Hends z2 Hz2) as [(es&z3&Hsome) Hall].
  1, 2: assert (is_open z2 = false) as Ho2 by by rewrite (weather_open _ _ Hz2).
  1, 2: split; [eexists [], (_, Server z3 [] (w ++ more) a); split; [done|by eapply OpensDisk]|].
  1, 2: intros es4 [k4 s4] [Hk4 Hs4]; simpl in Hk4, Hs4; subst k4.
  1, 2: inversion Hs4 as [? ? ? Ho4|? es5 z4 ? ? Hturn]; subst; [simpl in Ho4; congruence|].
  1, 2: assert (reached z4) as Hz4 by eauto.
  1, 2: destruct (is_open z4) eqn:Ho4; [by left|right; split; [done|]].
  1, 2: destruct (Hall _ _ Hturn) as [[Hbad _]%ready_open|[_ Hrest]]; [congruence|].
  1, 2: apply IHn; [lia|done..].
  inversion Hcut as [? z4 ? ? ? Hz4]; subst. pose proof (cut_closed _ _ Hz Hz4) as Hclosed.
  destruct (closed_reached _ Hclosed) as [Ho4 Hreached].
  pose proof (IHk to_open z4 [] [] (le_n _) Ho4 Hreached (recovery_ends _ Hclosed)) as Hagain.
  destruct (k * to_open + to_open) as [|m] eqn:Hm; [done|].
  destruct (Hagain _ Hstorm) as [Hsome Hall]. split; [done|]. intros es ks5 H5.
  destruct (Hall _ _ H5) as [?|[? ?]]; [by left|right]. split; [done|]. eapply ends_well_more; [|done]. lia.
Qed.

(** What the server has begun is under way ([way]); and then each request that waits is answered. *)
Context (way : server → Prop).
Context (way_ready : ∀ z w a, ready z → way (Server z [] w a)).
Context (way_calm : ∀ s s1, way s → calm s s1 → way s1).
Context (way_turn : ∀ s s1 es s2, way s → calm s s1 → serves s1 es s2 → way s2).

Definition in_power_way s : Prop := reached (disk_behind s) ∧
  if is_open (disk_behind s) then way s
  else begun s = [] ∧ ∃ n, n ≤ to_open ∧ ends_well weather recovery_turn (λ _, ready) n (disk_behind s).

Lemma closed_way z w a : closed z → in_power_way (Server z [] w a).
Proof.
  intros Hz. destruct (closed_reached z Hz) as [Ho Hr]. split; [done|]. simpl. rewrite Ho.
  split; [done|]. exists to_open. split; [done|by apply recovery_ends].
Qed.

Lemma calm_way s s1 : in_power_way s → calm s s1 → in_power_way s1.
Proof.
  intros [Hr Hs] Hs1. pose proof (calm_open _ _ _ Hs1) as Ho. unfold in_power_way. rewrite Ho.
  inversion Hs1 as [z z1 js w more a Hz1 _]; subst. simpl in *. split; [by eapply reached_weather|].
  destruct (is_open z); [by eapply way_calm|]. destruct Hs as (Hjs&n&Hn&Hends). split; [done|].
  exists n. split; [done|]. destruct n as [|n]; [done|]. intros z2 Hz2. apply Hends. by eapply weather_trans.
Qed.

Lemma in_power_has_way s : in_power s → in_power_way s.
Proof.
  induction 1 as [z w a [Hz|Hz]|s s1 _ IH Hs1|s s1 es s2 _ IH Hs1 Hs2|s s1 _ IH Hs1].
  - destruct (ready_open z Hz) as [Ho Hr]. split; [done|]. simpl. rewrite Ho. by apply way_ready.
  - by apply closed_way.
  - by eapply calm_way.
  - destruct Hs2 as [s1 es s2 Ho Hs2|z es z' w a Hturn].
    + pose proof (serves_open _ _ _ Hs2 Ho) as Ho2. pose proof (calm_way _ _ IH Hs1) as [Hr1 _].
      destruct IH as [_ Hs]. rewrite <-(calm_open _ _ _ Hs1), Ho in Hs. unfold in_power_way. rewrite Ho2.
      split; [|by eapply way_turn].
      destruct Hs2 as [|?????? Hj|??????? Hj|?????? Hj]; [done|..]; by eapply reached_job.
    + destruct (calm_way _ _ IH Hs1) as [Hr _]. simpl in Hr. pose proof (recovery_closed _ _ _ Hturn) as Ho.
      inversion Hs1 as [z0 ? ? w0 more ? Hz0 _]; subst. destruct IH as [_ Hs]. simpl in Hs.
      rewrite <-(weather_open _ _ Hz0), Ho in Hs. destruct Hs as (_&[|n]&Hn&Hends); [done|].
      assert (reached z') as Hr' by eauto. split; [done|]. simpl.
      destruct (is_open z') eqn:Ho'; [by eapply way_ready, recovered_ready|]. split; [done|].
      exists n. split; [lia|]. destruct (Hends _ Hz0) as [_ Hall].
      destruct (Hall _ _ Hturn) as [[Hbad _]%ready_open|[_ Hrest]]; [congruence|done].
  - destruct Hs1 as [z z' js w a Hz]. apply closed_way. eapply cut_closed; [apply IH|done].
Qed.

(** Whatever replies while the power is on. *)
Context (sized : nat → request → server → Prop) (turns_begun : server → nat) (turns : server → nat → nat).
Context (way_replies : replies_to_all job_turn next weather way sized turns_begun turns).
Context (turns_waiting : ∀ z z' w w' a a' i, i < length w → w `prefix_of` w' →
  turns (Server z' [] w' a') i = turns (Server z [] w a) i).

Theorem all_replies_despite_cuts : replies_despite_cuts sized turns_begun turns.
Proof.
  intros s [Hr Hs]%in_power_has_way. unfold turns_to_open. destruct (is_open (disk_behind s)) eqn:Ho.
  - split; [done|]. intros id q. destruct (way_replies s id q Hs) as [Hwaits Hbegun].
    split; [|by intros ?; apply open_ends_iff; auto].
    intros i Hi. destruct (Hwaits i Hi). by split; apply open_ends_iff.
  - destruct s as [z js w a]. simpl in *. destruct Hs as (->&n&Hn&Hends). split.
    + intros _ k. eapply ends_well_more; [|by eapply storm_ends]. lia.
    + intros id q. split; [|by intros ?%elem_of_nil]. intros i Hi.
      assert (∀ within good, (∀ z' w', ready z' → w `prefix_of` w' →
          ends_well (server_weather weather within) power_turn good (turns (Server z [] w a) i)
            (Server z' [] w' a)) →
        ends_well (server_weather weather within) power_turn good (to_open + turns (Server z [] w a) i)
          (Server z [] w a)) as Hopens.
      { intros within good Hthen. eapply ends_well_more; [|by eapply opening_lifts]. lia. }
      pose proof (lookup_lt_Some _ _ _ Hi) as Hlen.
      split; apply Hopens; intros z' w' Hz' Hw'; apply open_ends_iff; try by apply ready_open.
      all: rewrite <-(turns_waiting z z' w w' a a i Hlen Hw').
      all: destruct (way_replies (Server z' [] w' a) id q (way_ready _ _ _ Hz')) as [Hwaits _].
      all: destruct Hw' as [more ->]; destruct (Hwaits i) as [Hany Hok]; [by apply lookup_app_l_Some|done].
Qed.

(** This is more than what is said without power cuts. *)
Theorem despite_cuts_is_more :
  replies_despite_cuts sized turns_begun turns →
  replies_to_all job_turn next weather (in_service job_turn next weather ready) sized turns_begun turns.
Proof.
  intros Hall s id q Hs.
  assert (in_power s ∧ is_open (disk_behind s) = true) as [Hin Ho].
  { induction Hs as [z w a Hz|s s1 _ [IH Ho] Hs1|s s1 es s2 _ [IH Ho] Hs1 Hs2].
    - split; [by constructor; left|by apply ready_open].
    - split; [by eapply waits|by rewrite (calm_open _ _ _ Hs1)].
    - rewrite <-(calm_open _ _ _ Hs1) in Ho.
      split; [eapply goes_on; [done..|by constructor]|by eapply serves_open]. }
  destruct (Hall s Hin) as [_ Hq]. destruct (Hq id q) as [Hwaits Hbegun].
  unfold turns_to_open in Hwaits. rewrite Ho in Hwaits. split.
  - intros i Hi. destruct (Hwaits i Hi). by split; apply open_ends_iff.
  - intros Hi. apply open_ends_iff; auto.
Qed.
End Power.
