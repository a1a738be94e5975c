(** A disk on a leg whose programs are crash safe keeps the profiles [Prefix] and [Block] with write-back.

Each move of the machine with write-back is a move of the same machine without it ([stands]), or none: a
delayed write is in memory, and a drain is a group of writes. What that machine may have come to is known
([LegDiskRefinement.v]); [WriteBackContract.v] says what may be shown then. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk RecordedTrace RecordedImplementation Medium Codec.
From LogDisk Require Import ProvedDisk(geometry, disk_blocks, request(..)).
From LogDisk Require Import ProvedDiskMaps ProvedDiskRequests SplitFlush DiskMachine Devices Leg LegCorrect
  LegRefine LegDiskMachine LegDiskRefinement.
From LogDisk Require Import WriteBack WriteBackRefinement WriteBackContract WriteBackLeg.

Section Refinement.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type}.
Context (D : programs Y U) (size count : nat).
Context (shape : Y → geometry) (room_of : Y → nat) (spares_places : U → bool).
Context (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).
Context (programs_safe : crash_safe_programs D shape represents recoverable) {laws : cutting_laws count}.
Context (pf : profile) (buffers : pf ≠ Ack).
Implicit Types (x : array C) (b s : state block) (d : disk block) (y : Y) (z k : delay) (q : request).
Implicit Types (B S : state block → Prop) (v : devices) (h ms : list nat) (ws : list (nat * list block)).
Local Notation spare := (count - fewest).
Local Notation below_machine := (LegDiskMachine.machine C Y).
Local Notation related := (LegDiskRefinement.related size count shape represents recoverable).
Local Notation after := (LegDiskRefinement.after count).
Local Notation devices_by := (LegDiskRefinement.devices_by count).
Local Notation delaying := (write_back D shape room_of spares_places).

(** ** The machine below *)

Definition is_read q : Prop := match q with DoRead _ _ _ => True | _ => False end.

(** What is answered from memory alone. *)
Definition from_memory y k q z (r : answer) : Prop :=
  match r with
  | Ok => q = DoFlush ∧ delayed k = [] ∧ z = k ∨
      ∃ lba bs, q = DoWrite lba bs ∧ may_delay shape y k lba bs = true ∧ z = delay_write k lba bs
  | UnknownOutcome => z = k
  | _ => False
  end.
Definition drained k (o : Y * bool) : Y * delay := (o.1, if o.2 then Delay _ [] ∅ (room k) else k).
Definition with_result {A A'} (g : A → A') (r : list nat * bool * A) : list nat * bool * A' := (r.1, g r.2).

Inductive stands k : control C Y → control C (Y * delay) → Prop :=
  | stands_idle y ms c : stands k (Idle y ms c) (Idle (y, k) ms c)
  | stands_answered y ms c q z r :
      from_memory y k q z r → stands k (Idle y ms c) (Busy q (Finish (ms, c, (y, z, r, []))))
  | stands_busy q p p' :
      delayed k = [] ∨ is_read q → mapped (with_result (performed_below room_of k q)) p p' →
      stands k (Busy q p) (Busy q p')
  | stands_flush p p' :
      mapped (with_result (λ o, (drained k o, if o.2 then Ok else UnknownOutcome, []))) p p' →
      stands k (Group (reverse (delayed k)) p) (Busy DoFlush p')
  | stands_drain p p' :
      mapped (with_result (drained k)) p p' → stands k (Group (reverse (delayed k)) p) (Upkeep p')
  | stands_group y ms c ws z (all : bool) :
      (if all then delay_all shape y k ws = Some z else z = k) →
      stands k (Idle y ms c) (Group ws (Finish (ms, c, (y, z, all))))
  | stands_kept y ms c z :
      z = k ∨ delayed k = [] ∧ z = nothing_delayed room_of y →
      stands k (Idle y ms c) (Upkeep (Finish (ms, c, (y, z))))
  | stands_upkeep p p' :
      mapped (with_result (λ y, (y, counted_again room_of y k))) p p' → stands k (Upkeep p) (Upkeep p')
  | stands_settling y p : stands k (Settling y p) (Settling (y, k) p)
  | stands_lost : stands k Lost Lost
  | stands_off : delayed k = [] → stands k Off Off     (* with the power goes what was delayed *)
  | stands_recovery (on : bool) p p' :
      (on = false → delayed k = []) → mapped (with_result (opened room_of)) p p' →
        stands k (Recovery on p) (Recovery on p').

Definition sound_delay k : Prop := newest_right k ∧ (delayed k = [] → newest_data k = ∅).

Definition both (z : keeping_machine C Y) v S : Prop :=
  let '(c, x, h, k) := z in ∃ cb B, stands k cb c ∧ related (cb, x, h) v B ∧ sound_delay k ∧
    ∀ b, B b → power b = powered cb → ∃ s, S s ∧ covers k b s.

Definition reached v S (es : list (entry block)) s' : Prop :=
  ∃ s, S s ∧ recorded_run pf spare v s es s'.

Lemma stands_powered k cb c : stands k cb c → powered cb = powered c.
Proof. by destruct 1. Qed.

(** ** How requests, groups and upkeep begin *)

Lemma drain_is {A} y k places (result : Y * delay → bool → A) :
  delayed k = [] ∧ drain D y k places result = Done (result (y, k) true) ∨
  drain D y k places result =
    then_ (run_group D y places (reverse (delayed k))) (λ o, Done (result (drained k o) o.2)).
Proof. unfold drain. destruct (delayed k); [by left|by right]. Qed.

Lemma request_begins y k ms c places q :
  stands k (Idle y ms c) (Busy q (on_leg size ms c (run_request delaying (y, k) places q))) ∨
  stands k (Busy q (on_leg size ms c (run_request D y places q)))
    (Busy q (on_leg size ms c (run_request delaying (y, k) places q))) ∨
  stands k (Group (reverse (delayed k)) (on_leg size ms c (run_group D y places (reverse (delayed k)))))
    (Busy q (on_leg size ms c (run_request delaying (y, k) places q))).
Proof.
  assert (delayed k = [] ∨ is_read q → stands k (Busy q (on_leg size ms c (run_request D y places q)))
    (Busy q (on_leg size ms c (below D room_of y k places q)))) as Hbelow.
  { intros Hq. apply stands_busy; [done|]. apply mapped_on_leg. }
  assert (stands k (Idle y ms c) (Busy q (on_leg size ms c (when_drained D room_of y k places q))) ∨
    stands k (Busy q (on_leg size ms c (run_request D y places q)))
      (Busy q (on_leg size ms c (when_drained D room_of y k places q)))) as Hdrained.
  { unfold when_drained. destruct (delayed k) eqn:Hk; [right; apply Hbelow; by left|].
    left. by apply stands_answered. }
  destruct q as [lba bs|lba n|n|n|n| | |from lba n]; try tauto.
  - simpl. destruct (may_delay _ _ _ _ _) eqn:Hmay; [|tauto]. left. apply stands_answered. simpl. eauto 10.
  - cbn [run_request write_back delaying_request].
    destruct (drain_is y k places (λ (o : Y * delay) (all : bool), (o, if all then Ok else UnknownOutcome,
      @nil block)))
      as [[Hk ->]| ->].
    + left. apply stands_answered. simpl. by left.
    + right. right. apply stands_flush. apply mapped_on_leg.
  - right. left. apply Hbelow. by right.
Qed.

Lemma group_begins y k ms c places ws :
  stands k (Idle y ms c) (Group ws (on_leg size ms c (run_group delaying (y, k) places ws))).
Proof.
  simpl. unfold delaying_group. simpl. destruct (delay_all _ _ _ _) eqn:Hall; simpl; by apply stands_group.
Qed.

Lemma upkeep_begins y k ms c u :
  stands k (Idle y ms c) (Upkeep (on_leg size ms c (run_upkeep delaying (y, k) u))) ∨
  (∃ places, stands k (Group (reverse (delayed k)) (on_leg size ms c (run_group D y places
      (reverse (delayed k))))) (Upkeep (on_leg size ms c (run_upkeep delaying (y, k) u)))) ∨
  ∃ u', stands k (Upkeep (on_leg size ms c (run_upkeep D y u')))
    (Upkeep (on_leg size ms c (run_upkeep delaying (y, k) u))).
Proof.
  destruct u as [places|u]; simpl.
  - destruct (drain_is y k places (λ (o : Y * delay) _, o)) as [[Hk ->]| ->].
    + left. rewrite Hk. apply stands_kept. by right.
    + destruct (delayed k) as [|w ws] eqn:Hk; [left; apply stands_kept; by right|]. rewrite <-Hk.
      right. left. exists places. apply stands_drain. apply mapped_on_leg.
  - destruct (match delayed k with [] => true | _ => spares_places u end).
    + right. right. exists u. apply stands_upkeep. apply mapped_on_leg.
    + left. apply stands_kept. by left.
Qed.

(** ** A step of both *)

(** Of the states of the contract below, only those count whose power and size are the machine's. *)
Definition fits_machine (cb : control C Y) b : Prop :=
  power b = powered cb ∧
  match cb with Idle y _ _ => VirtualDisk.size b = disk_blocks (shape y) | _ => True end.

Lemma related_fits cb x h v B : related (cb, x, h) v B →
  related (cb, x, h) v (λ b, B b ∧ fits_machine cb b).
Proof.
  intros (Hs&?&?). split; [|done]. unfold fits_machine. destruct cb;
    try (eapply (serves_mono size count); [|exact Hs]; by split).
  simpl in *. destruct Hs as (f&d&Hd&?). by exists f, d.
Qed.

Lemma step_below x h k v S (cb cb' : control C Y) B es (c' : control C (Y * delay)) x' h' k'
    (shown : list (entry block)) :
  related (cb, x, h) v B → (∀ b, B b → power b = powered cb → ∃ s, S s ∧ covers k b s) →
  LegDiskMachine.move D size count (cb, x, h) es (cb', x', h') → stands k' cb' c' → sound_delay k' →
  devices_by v es = devices_by v shown →
  (∀ b s b', power b = powered cb → covers k b s → recorded_run Ack spare v b es b' →
    power b' = powered cb' → ∃ s', recorded_run pf spare v s shown s' ∧ covers k' b' s') →
  both (c', x', h', k') (devices_by v shown) (reached v S shown).
Proof.
  intros Hrel HB Hmove Hstands Hk Hdevices Hshown.
  pose proof (related_move D size count shape represents recoverable programs_safe _ _ _ Hmove _ _
    (related_fits _ _ _ _ _ Hrel)) as Hrel'.
  exists cb', (after v (λ b, B b ∧ fits_machine cb b) es). rewrite <-Hdevices. split_and!; try done.
  intros b' (b&[Hb [Hpower _]]&Hrun) Hpower'. destruct (HB b Hb Hpower) as (s&Hs&Hc).
  destruct (Hshown b s b' Hpower Hc Hrun Hpower') as (s'&?&?). exists s'. split; [by exists s|done].
Qed.

(** Nothing happens below. *)
Lemma step_above (c' : control C (Y * delay)) x h k v S (cb : control C Y) B k'
    (shown : list (entry block)) :
  related (cb, x, h) v B → (∀ b, B b → power b = powered cb → ∃ s, S s ∧ covers k b s) →
  stands k' cb c' → sound_delay k' → devices_by v shown = v →
  (∀ b s, fits_machine cb b → covers k b s → ∃ s', recorded_run pf spare v s shown s' ∧ covers k' b s') →
  both (c', x, h, k') (devices_by v shown) (reached v S shown).
Proof.
  intros Hrel HB Hstands Hk Hdevices Hshown. rewrite Hdevices.
  exists cb, (λ b, B b ∧ fits_machine cb b). split_and!; [done|by apply related_fits|done|].
  intros b [Hb Hfit] Hpower. destruct (HB b Hb Hpower) as (s&Hs&Hc).
  destruct (Hshown b s Hfit Hc) as (s'&?&?). exists s'. split; [by exists s|done].
Qed.

Lemma run_one (p : profile) v s e s' : entry_step p spare v s e s' → recorded_run p spare v s [e] s'.
Proof. intros. econstructor; [done|constructor]. Qed.
Lemma one_run v b e b' : recorded_run Ack spare v b [e] b' → entry_step Ack spare v b e b'.
Proof. inversion 1 as [|? ? ? ? Hstep Hrest]; subst. by inversion Hrest; subst. Qed.
Lemma no_run v b b' : recorded_run Ack spare v b [] b' → b' = b.
Proof. by inversion 1. Qed.

(** ** A drain: the group of writes happens whole, or not at all *)

Definition maybe_all B ws (on : bool) b' : Prop := ∃ n d e,
  B (settled n d) ∧ (e = d ∨ e = written_all d ws) ∧
    b' = if on then settled n e else cut (settled n e) [].

Lemma drain_done ws ms c y x h v B :
  related (Group ws (Finish (ms, c, (y, true))), x, h) v B →
  related (Idle y ms c, x, h) v (λ b', ∃ n d, B (settled n d) ∧ b' = settled n (written_all d ws)).
Proof.
  intros (Hs&Hfine&Hh). simpl in Hs.
  destruct Hs as (g&d&Hs&(M&(f&->&<-&Hrange&Hrep)&Hm&Hms&Hc)%runs_ends). cbn [fst snd] in *.
  split; [|done]. exists f, (written_all d ws). split_and!; try done. eauto.
Qed.

Lemma drain_stops ws x h v B :
  related (Group ws Stop, x, h) v B → related (Lost, x, h) v (maybe_all B ws true).
Proof.
  intros (Hs&Hfine&Hh). simpl in Hs. rewrite Hh in * by done.
  destruct Hs as (g&d&Hs&Hp%runs_stops). pose proof (stopped_too_many _ _ _ _ _ Hp Hfine) as Hmany.
  split; [|done]. exists g. split; [|done]. eapply protects_mono; [|exact (proj1 Hp)].
  intros f [Hf|[_ Hf]]; eexists; (split; [|exact Hf]); exists (disk_blocks g), d; eauto.
Qed.

Lemma drain_cut ws p x x' h v B :
  related (Group ws p, x, h) v B → loses_power x x' → related (Off, x', h) v (maybe_all B ws false).
Proof.
  intros (Hs&Hfine&Hh) Hx'. simpl in Hs. destruct Hs as (g&d&Hs&Hp%runs_now). split; [|split; [|done]].
  - exists g. eapply protects_mono; [|by eapply protects_power].
    assert (∀ e f, e = d ∨ e = written_all d ws → recoverable g e f →
      survivor recoverable g (maybe_all B ws false) f) as Hleft.
    { intros e f He Hf. exists e. split; [|done]. exists (cut (settled (disk_blocks g) e) []).
      split_and!; [|done|done|by left]. by exists (disk_blocks g), d, e. }
    intros f [Hf|[_ Hf]]; by eapply Hleft; [|exact Hf]; auto.
  - eapply fine_up; [|done]. intros i. destruct Hx' as (_&_&Hd). by destruct (Hd i) as (f&_&->).
Qed.

Lemma maybe_all_covers B k ws (on : bool) S b' :
  sound_delay k → ws = reverse (delayed k) → (∀ b, B b → power b = true → ∃ s, S s ∧ covers k b s) →
  maybe_all B ws on b' → ∃ s, S s ∧ ∃ b, covers k b s ∧ power b = true ∧ b' = if on then b else cut b [].
Proof.
  intros [Hright _] -> HB (n&d&e&Hd&He&->). destruct (HB _ Hd eq_refl) as (s&Hs&Hc). exists s. split; [done|].
  exists (settled n e). split_and!; [|done|by destruct on]. destruct He as [->| ->]; [done|].
  by apply (maybe_drained_covers k (settled n d) s).
Qed.

(** Too few members answer: more have failed than the leg tolerates. *)
Lemma lost_beyond x h v B : related (Lost, x, h) v B → beyond spare v = true.
Proof.
  intros (Hs&_&Hh). simpl in Hs. rewrite Hh in * by done. destruct Hs as (g&_&Hmany).
  by apply too_many_beyond.
Qed.

(** ** What is answered *)

Lemma sound_nothing n : sound_delay (Delay _ [] ∅ n).
Proof. split; [|done]. intros d l. simpl. by rewrite lookup_empty. Qed.
Lemma sound_write k lba bs : sound_delay k → sound_delay (delay_write k lba bs).
Proof. intros [Hk _]. split; [by apply delay_right|done]. Qed.

Lemma answered_from_memory k v b s y q z r :
  sound_delay k → from_memory y k q z r → covers k b s → power b = true →
  VirtualDisk.size b = disk_blocks (shape y) →
  ∃ s', recorded_run pf spare v s [Event (event_of q r [])] s' ∧ covers z b s'.
Proof.
  intros [_ Hempty] Hr Hc Hon Hsize. destruct r; simpl in Hr; try done.
  - destruct Hr as [(->&Hk&->)|(lba&bs&->&Hmay&->)].
    + destruct (flush_covers spare pf k v b s Hc (Hempty Hk) Hon) as (s'&Hs'&?). exists s'.
      split; [by apply run_one|done].
    + unfold may_delay in Hmay. apply andb_true_iff in Hmay as [Hfits%bool_decide_eq_true _].
      destruct (delay_covers spare pf buffers k v b s lba bs Hc Hon) as (s'&Hs'&?); [by rewrite Hsize|].
      exists s'. split; [by apply run_one|done].
  - subst z. exists s. split; [|done]. apply run_one. by eapply unknown_covers.
Qed.

Lemma delay_all_sound y k z ws : delay_all shape y k ws = Some z → sound_delay k → sound_delay z.
Proof.
  revert k. induction ws as [|[lba bs] ws IH]; simpl; intros k; [by intros [= <-]|].
  destruct (may_delay _ _ _ _ _); [|done]. intros Hall Hk. by eapply IH, sound_write.
Qed.

Lemma delay_all_covers k z v b s y ws :
  delay_all shape y k ws = Some z → sound_delay k → covers k b s → power b = true →
  VirtualDisk.size b = disk_blocks (shape y) →
  ∃ s', recorded_run pf spare v s (Event <$> writes_shown ws Ok) s' ∧ covers z b s'.
Proof.
  intros Hall Hk Hc Hon Hsize. revert k s Hall Hk Hc.
  induction ws as [|[lba bs] ws IH]; simpl; intros k s; [intros [= <-]; exists s; split; [constructor|done]|].
  destruct (may_delay _ _ _ _ _) eqn:Hmay; [|done]. intros Hall Hk Hc.
  destruct (answered_from_memory k v b s y (DoWrite lba bs) (delay_write k lba bs) Ok) as (s1&Hs1&Hc1);
    try done; [simpl; eauto 10|].
  destruct (IH _ s1 Hall (sound_write _ _ _ Hk) Hc1) as (s'&Hs'&?). exists s'. split; [|done].
  inversion Hs1 as [|? ? ? ? Hstep Hrest]; subst. inversion Hrest; subst. by econstructor.
Qed.

(** What the disk below answered. *)
Definition read_over k q (r : answer) (bs : list block) : list block :=
  match q, r with DoRead Live lba _, Ok => with_newest k lba bs | _, _ => bs end.
Lemma performed_is k q y r bs :
  performed_below room_of k q (y, r, bs) =
  (y, if uses_places q then nothing_delayed room_of y else k, r, read_over k q r bs).
Proof. destruct q as [| | | | | | |[|n] lba count']; try done; by destruct r. Qed.

Lemma answered_below k v b s b' q r bs :
  delayed k = [] ∨ is_read q → sound_delay k → covers k b s →
  recorded_run Ack spare v b [Event (event_of q r bs)] b' →
  ∃ s', recorded_run pf spare v s [Event (event_of q r (read_over k q r bs))] s' ∧ covers k b' s'.
Proof.
  intros Hq [_ Hempty] Hc Hrun%one_run.
  assert ((∃ from lba n, q = DoRead from lba n) ∨ ∀ from lba n, q ≠ DoRead from lba n)
    as [(from&lba&n&->)|Hno] by (destruct q; eauto 10).
  - destruct (read_covers spare pf k v b s from lba n r bs b' Hc Hrun) as (s'&?&?).
    exists s'. split; [|done]. apply run_one. by destruct from, r.
  - assert (delayed k = []) as Hk.
    { destruct Hq; [done|]. destruct q as [| | | | | | |from lba n]; [done..|by destruct (Hno from lba n)]. }
    assert (step Ack b (event_of q r []) b') as Hstep.
    { destruct Hrun as [Hrun|Hlost];
        (destruct q as [| | | | | | |from lba n]; [done..|by destruct (Hno from lba n)]). }
    destruct (step_covers pf buffers k b s q r b' Hc (Hempty Hk) Hno Hstep) as (s'&Hs'&?).
    exists s'. split; [|done]. apply run_one. left.
    destruct q as [| | | | | | |from lba n]; [done..|by destruct (Hno from lba n)].
Qed.

Lemma covers_counted k z b s : sound_delay k → z = k ∨ delayed k = [] ∧ (∃ n, z = Delay _ [] ∅ n) →
  covers k b s → covers z b s ∧ sound_delay z.
Proof.
  intros Hk [->|[Hnone [n ->]]] Hc; [done|]. split; [|apply sound_nothing].
  apply (covers_newest k); [|by left|done]. by rewrite (proj2 Hk Hnone).
Qed.
(** ** Every step *)

(** The machine below does what the other one does, and only devices are spoken of. *)
Lemma step_devices x h k v S (cb cb' : control C Y) B es (c' : control C (Y * delay)) x' h' :
  related (cb, x, h) v B → (∀ b, B b → power b = powered cb → ∃ s, S s ∧ covers k b s) →
  LegDiskMachine.move D size count (cb, x, h) es (cb', x', h') → Forall of_devices es → stands k cb' c' →
  sound_delay k → both (c', x', h', k) (devices_by v es) (reached v S es).
Proof.
  intros Hrel HB Hmove Hes Hstands Hk. eapply step_below; try done. intros. by eapply devices_covers.
Qed.

(** Too few members answer a request that is asked of a disk that is lost. *)
Lemma lost_answers q x h k v S B :
  related (Lost, x, h) v B → (∀ b, B b → power b = true → ∃ s, S s ∧ covers k b s) → sound_delay k →
  both (Lost, x, h, k) (devices_by v [when_lost q]) (reached v S [when_lost q]).
Proof.
  intros Hrel HB Hk. apply (step_above _ x h k v S Lost B); [done|done|constructor|done|by destruct q|].
  intros b s [Hon _] Hc. simpl in Hon. exists s. split; [|done]. apply run_one.
    pose proof (covers_power _ _ _ Hc).
  destruct q; try (by eapply (unknown_covers spare pf k v b s)). right. split; [by eapply lost_beyond|].
  split; [congruence|done].
Qed.

Lemma power_is_cut c x x' h k v S :
  both (c, x, h, k) v S → powered c = true ∨ (∃ p, c = Recovery false p) → loses_power x x' →
  both (Off, x', h, no_delay) (devices_by v (when_cut c)) (reached v S (when_cut c)).
Proof.
  intros (cb&B&Hst&Hrel&Hk&HB) Hc Hx. pose proof (stands_powered _ _ _ Hst) as Hpowered.
  assert (powered cb = true ∨ ∃ p, cb = Recovery false p) as Hcb.
  { destruct Hc as [Hc|[p ->]]; [left; congruence|]. right. inversion Hst; subst. by eexists. }
  assert (∀ es shown, when_cut cb = es → devices_by v es = devices_by v shown →
    (∀ b s b', power b = powered cb → covers k b s → recorded_run Ack spare v b es b' →
      ∃ s', recorded_run pf spare v s shown s' ∧ covers k b' s') →
    both (Off, x', h, no_delay) (devices_by v shown) (reached v S shown)) as Hcut.
  { intros es shown <- Hdevices Hshown. eapply step_below;
      [exact Hrel|exact HB|by apply PowerCut|by constructor|apply sound_nothing|done|].
    intros b s b' Hon Hcov Hrun Hoff. destruct (Hshown b s b' Hon Hcov Hrun) as (s'&?&?). exists s'.
    split; [done|]. by apply (covers_off k). }
  assert (∀ shown, cb = Group (reverse (delayed k)) (match cb with Group _ p => p | _ => Stop end) →
    devices_by v shown = v →
    (∀ b s, power b = true → covers k b s → ∃ s', recorded_run pf spare v s shown s' ∧
      covers k (cut b []) s') →
    both (Off, x', h, no_delay) (devices_by v shown) (reached v S shown)) as Hgroup.
  { intros shown Heq Hdevices Hshown. rewrite Heq in Hrel.
    pose proof (drain_cut _ _ _ _ _ _ _ Hrel Hx) as Hoff. rewrite Hdevices.
    exists Off, (maybe_all B (reverse (delayed k)) false). split; [by constructor|].
    split; [done|]. split; [apply sound_nothing|].
    intros b' Hb' _. rewrite Heq in HB.
    destruct (maybe_all_covers B k _ false S b' Hk eq_refl HB Hb') as (s&Hs&b&Hcov&Hon&->).
    destruct (Hshown b s Hon Hcov) as (s'&?&?). exists s'. split; [by exists s|by apply (covers_off k)]. }
  assert (∀ b s, covers k b s → ∃ s', recorded_run pf spare v s [Event (Crash CutShort)] s' ∧
    covers k (cut b []) s') as Hcrash.
  { intros b s Hcov. exists (cut s []). split; [apply run_one; by left|by eapply covers_cut]. }
  assert (∀ b b', recorded_run Ack spare v b [Event (Crash CutShort)] b' → b' = cut b []) as Hcrashed.
  { intros b b' [Hrun|[]]%one_run. exact Hrun. }
  destruct Hst as [y ms c|y ms c q z r Hr|q p p' Hq Hp|p p' Hp|p p' Hp|y ms c ws z all Hall|y ms c z Hz|
    p p' Hp
    |y p| |Hnone|on p p' Hnone Hp]; cbn [when_cut] in *.
  - apply (Hcut [Event (Crash CutShort)]); [done..|]. intros b s b' _ Hcov ->%Hcrashed. by apply Hcrash.
  - apply (Hcut [Event (Crash CutShort)]); [done|by destruct q|]. intros b s b' Hon Hcov ->%Hcrashed.
    destruct (cut_short_covers pf k b s q Hcov Hon) as (s'&?&?). exists s'. split; [|done]. apply run_one.
    by left.
  - apply (Hcut [Event (event_of q CutShort [])]); [done..|]. intros b s b' Hon Hcov Hrun.
    destruct (answered_below k v b s b' q CutShort [] Hq Hk Hcov Hrun) as (s'&Hs'&?).
    exists s'. split; [|done]. by destruct q as [| | | | | | |[|n] lba count'].
  - apply Hgroup; [done..|]. intros b s Hon Hcov.
    destruct (cut_short_covers pf k b s DoFlush Hcov Hon) as (s'&?&?). exists s'. split; [|done].
    apply run_one. by left.
  - apply Hgroup; [done..|]. intros b s _. apply Hcrash.
  - apply (Hcut [Event (Crash CutShort)]); [done|by rewrite devices_by_app, devices_by_writes|].
    intros b s b' Hon Hcov ->%Hcrashed. destruct (Hcrash b s Hcov) as (s'&?&?). exists s'. split; [|done].
    eapply recorded_run_app; [by eapply unknown_writes_covers|]. by rewrite devices_by_writes.
  - apply (Hcut [Event (Crash CutShort)]); [done..|]. intros b s b' _ Hcov ->%Hcrashed. by apply Hcrash.
  - apply (Hcut [Event (Crash CutShort)]); [done..|]. intros b s b' _ Hcov ->%Hcrashed. by apply Hcrash.
  - apply (Hcut [Settle CutShort]); [done..|]. intros b s b' _ Hcov Hrun.
    eapply devices_covers; [|done..]. by repeat constructor.
  - apply (Hcut [Event (Crash CutShort)]); [done..|]. intros b s b' _ Hcov ->%Hcrashed. by apply Hcrash.
  - by destruct Hcb as [|[? ?]].
  - apply (Hcut [Event (Crash CutShort)]); [done..|]. intros b s b' _ Hcov ->%Hcrashed. by apply Hcrash.
Qed.

(** The delayed writes are on the members. *)
Lemma drain_ends ms cl y x h k v S B (all : bool) :
  related (Group (reverse (delayed k)) (Finish (ms, cl, (y, all))), x, h) v B → sound_delay k →
  (∀ b, B b → power b = true → ∃ s, S s ∧ covers k b s) →
  ∃ B', related (Idle y ms cl, x, h) v B' ∧ sound_delay (drained k (y, all)).2 ∧
    ∀ b, B' b → power b = true → ∃ s, S s ∧ covers (drained k (y, all)).2 b s.
Proof.
  intros Hrel Hk HB. destruct all; simpl.
  - exists (λ b', ∃ n d, B (settled n d) ∧ b' = settled n (written_all d (reverse (delayed k)))).
    split; [by apply drain_done|]. split; [apply sound_nothing|].
    intros b' (n&d&Hd&->) _. destruct (HB _ Hd eq_refl) as (s&Hs&Hc). exists s. split; [done|].
    by apply (drained_covers k _ (settled n d) s); [|apply Hk|..].
  - exists (after v (λ b, B b ∧ fits_machine (Group (reverse (delayed k))
      (Finish (ms, cl, (y, false)))) b) []).
    split; [|split; [done|]].
    + pose proof (GroupRefused D size count (reverse (delayed k)) ms cl y x h) as Hmove.
      by apply (related_move D size count shape represents recoverable programs_safe _ _ _ Hmove v),
        related_fits.
    + intros b (b0&[Hb0 _]&->%no_run) Hon. by apply HB.
Qed.

Lemma counted_sound k z : sound_delay k → z = k ∨ delayed k = [] ∧ (∃ n, z = Delay _ [] ∅ n) → sound_delay z.
Proof. intros Hk [->|[_ [n ->]]]; [done|apply sound_nothing]. Qed.

Lemma both_ends c x h k v S es cb B :
  stands k cb c → related (cb, x, h) v B → sound_delay k →
  (∀ b, B b → power b = powered cb → ∃ s, S s ∧ covers k b s) → devices_by v es = v →
  (∀ b s, B b → covers k b s → power b = powered cb → ∃ s', recorded_run pf spare v s es s' ∧
    covers k b s') →
  both (c, x, h, k) (devices_by v es) (reached v S es).
Proof.
  intros Hst Hrel Hk HB -> Hes. exists cb, B. split_and!; try done. intros b Hb Hon.
  destruct (HB b Hb Hon) as (s&Hs&Hc). destruct (Hes b s Hb Hc Hon) as (s'&?&?). exists s'.
  split; [by exists s|done].
Qed.

(** A request is answered, *)
Lemma request_answered q y z ms cl r bs x h k v S :
  both (Busy q (Finish (ms, cl, (y, z, r, bs))), x, h, k) v S →
  both (Idle (y, z) ms cl, x, h, z) (devices_by v [Event (event_of q r bs)])
    (reached v S [Event (event_of q r bs)]).
Proof.
  intros (cb&B&Hst&Hrel&Hk&HB).
  assert (∀ q r bs, devices_by v [Event (event_of q r bs)] = v) as Hv by by intros [].
  inversion Hst as [|y0 ms0 c0 q0 z0 r0 Hr|q0 p p' Hq Hp|p p' Hp| | | | | | | |]; subst.
  - eapply step_above; [exact Hrel|exact HB|constructor| |by rewrite Hv|].
    + destruct r; simpl in Hr; try done; [|by subst].
      destruct Hr as [(_&_&->)|(lba&bs&_&_&->)]; [done|by apply sound_write].
    + intros b s [Hon Hsize] Hc. by eapply answered_from_memory.
  - apply mapped_finish in Hp as ([[ms0 c0] [[y0 r0] bs0]]&->&Heq). unfold with_result in Heq.
    cbn [fst snd] in Heq. rewrite performed_is in Heq. simplify_eq.
    eapply step_below; [exact Hrel|exact HB|by apply Answer|constructor| |by rewrite !Hv|].
    + destruct (uses_places q); [apply sound_nothing|done].
    + intros b s b' Hon Hc Hrun Hon'. destruct (answered_below k v b s b' q r0 bs0 Hq Hk Hc Hrun) as (s'&?&?).
      exists s'. split; [done|]. destruct (uses_places q) eqn:Huses; [|done].
      apply (covers_newest k); [|by left|done]. apply Hk. destruct Hq as [|Hq]; [done|]. by destruct q.
  - apply mapped_finish in Hp as ([[ms0 c0] [y0 all]]&->&Heq). unfold with_result in Heq.
    cbn [fst snd] in Heq. unfold drained in Heq. cbn [fst snd] in Heq. simplify_eq.
    destruct (drain_ends _ _ _ _ _ _ _ _ _ _ Hrel Hk HB) as (B'&Hrel'&Hk'&HB'). simpl in Hk', HB'.
    eapply both_ends; [constructor|exact Hrel'|done|exact HB'|done|].
    intros b s _ Hc Hon. simpl in Hon. destruct all.
    + destruct (flush_covers spare pf _ v b s Hc eq_refl Hon) as (s'&?&?). exists s'.
      split; [by apply run_one|done].
    + exists s. split; [|done]. apply run_one. by apply (unknown_covers spare pf k v b s DoFlush).
Qed.

(** or not, since too few members answer. *)
Lemma request_stops q x h k v S :
  both (Busy q Stop, x, h, k) v S →
  both (Lost, x, h, k) (devices_by v [when_lost q]) (reached v S [when_lost q]).
Proof.
  intros (cb&B&Hst&Hrel&Hk&HB).
  assert (devices_by v [when_lost q] = v) as Hv by by destruct q.
  inversion Hst as [| |q0 p p' Hq Hp|p p' Hp| | | | | | | |]; subst.
  - apply mapped_stop in Hp as ->.
    eapply step_below; [exact Hrel|exact HB|by apply BusyStops|constructor|done|done|].
    intros b s b' Hon Hc Hrun Hon'.
    destruct (answered_below k v b s b' q (match q with DoRead _ _ _ => Refused DataLost | _ => UnknownOutcome
      end) [] Hq Hk Hc Hrun) as (s'&Hs'&?).
    exists s'. split; [|done]. by destruct q as [| | | | | | |[|n] lba count'].
  - apply mapped_stop in Hp as ->. pose proof (drain_stops _ _ _ _ _ Hrel) as Hrel'.
    rewrite Hv. exists Lost, (maybe_all B (reverse (delayed k)) true). split_and!; [constructor|done|done|].
    intros b' Hb' _. destruct (maybe_all_covers B k _ true S b' Hk eq_refl HB Hb') as (s&Hs&b&Hc&Hon&->).
    exists s. split; [|done]. exists s. split; [done|]. apply run_one.
    by apply (unknown_covers spare pf k v b s DoFlush).
Qed.

(** Upkeep ends, *)
Lemma upkeep_ends y z ms cl x h k v S :
  both (Upkeep (Finish (ms, cl, (y, z))), x, h, k) v S →
  both (Idle (y, z) ms cl, x, h, z) (devices_by v []) (reached v S []).
Proof.
  intros (cb&B&Hst&Hrel&Hk&HB).
  inversion Hst as [| | | |p p' Hp| |y0 ms0 c0 z0 Hz|p p' Hp| | | |]; subst.
  - apply mapped_finish in Hp as ([[ms0 c0] [y0 all]]&->&Heq). unfold with_result, drained in Heq.
    cbn [fst snd] in Heq. simplify_eq.
    destruct (drain_ends _ _ _ _ _ _ _ _ _ _ Hrel Hk HB) as (B'&Hrel'&Hk'&HB').
    eapply both_ends; [constructor|exact Hrel'|done|exact HB'|done|].
    intros b s _ Hc _. exists s. split; [constructor|done].
  - assert (z = k ∨ delayed k = [] ∧ (∃ n, z = Delay _ [] ∅ n)) as Hcount
      by (destruct Hz as [->|[? ->]]; [by left|right; split; [done|by eexists]]).
    eapply step_above; [exact Hrel|exact HB|constructor|by eapply counted_sound|done|].
    intros b s _ Hc. exists s. split; [constructor|by eapply covers_counted].
  - apply mapped_finish in Hp as ([[ms0 c0] y0]&->&Heq). unfold with_result in Heq. cbn [fst snd] in Heq.
    simplify_eq.
    assert (counted_again room_of y0 k = k ∨ delayed k = [] ∧ (∃ n, counted_again room_of y0 k =
      Delay _ [] ∅ n)) as Hcount.
    { unfold counted_again. destruct (delayed k); [right; split; [done|by eexists]|by left]. }
    eapply step_below; [exact Hrel|exact HB|by apply UpkeepEnds|constructor|by eapply counted_sound|done|].
    intros b s b' _ Hc ->%no_run _. exists s. split; [constructor|by eapply covers_counted].
Qed.

(** or too few members answer. *)
Lemma upkeep_stops x h k v S :
  both (Upkeep Stop, x, h, k) v S → both (Lost, x, h, k) (devices_by v []) (reached v S []).
Proof.
  intros (cb&B&Hst&Hrel&Hk&HB). inversion Hst as [| | | |p p' Hp| | |p p' Hp| | | |]; subst.
  - apply mapped_stop in Hp as ->. pose proof (drain_stops _ _ _ _ _ Hrel) as Hrel'.
    exists Lost, (maybe_all B (reverse (delayed k)) true). split_and!; [constructor|done|done|].
    intros b' Hb' _. destruct (maybe_all_covers B k _ true S b' Hk eq_refl HB Hb') as (s&Hs&b&Hc&Hon&->).
    exists s. split; [|done]. exists s. split; [done|constructor].
  - apply mapped_stop in Hp as ->. eapply step_devices; [exact Hrel|exact HB|by constructor|done|constructor|
      done].
Qed.

Lemma group_answers ws y z ms cl x h k v S :
  both (Group ws (Finish (ms, cl, (y, z, true))), x, h, k) v S →
  both (Idle (y, z) ms cl, x, h, z) (devices_by v (Event <$> writes_shown ws Ok))
    (reached v S (Event <$> writes_shown ws Ok)).
Proof.
  intros (cb&B&Hst&Hrel&Hk&HB). inversion Hst; subst.
  eapply step_above; [exact Hrel|exact HB|constructor|by eapply delay_all_sound|
    by rewrite devices_by_writes|].
  intros b s [Hon Hsize] Hc. by eapply delay_all_covers.
Qed.

(** The disk opens: what was delayed is delayed again, if the power stayed on. *)
Lemma recovery_ends (on : bool) ms cl y z x h k v S :
  let p := Finish (ms, cl, Some (y, z)) in
  let c' := put_back k (Recovery on p) (Idle (y, z) ms cl) in
  let es := (if on then [] else [Event (Crash Ok)]) ++ told h in
  both (Recovery on p, x, h, k) v S → both (c', x, [], kept_in c' k) (devices_by v es) (reached v S es).
Proof.
  intros p c' es (cb&B&Hst&Hrel&Hk&HB). subst p. inversion Hst as [| | | | | | | | | | |on0 p p' Hnone Hp];
    subst.
  apply mapped_finish in Hp as ([[ms0 c0] [y0|]]&->&Heq); unfold with_result in Heq;
    cbn [fst snd opened] in Heq;
    [|done]. injection Heq as <- <- <- ->.
  set (z' := if on then delayed_again k (nothing_delayed room_of y) else nothing_delayed room_of y).
  assert (c' = Idle (y, z') ms cl) as -> by (subst c' z'; by destruct on).
  assert (sound_delay z') as Hz'.
  { subst z'. destruct on; [|apply sound_nothing]. unfold delayed_again.
    destruct (delayed k) as [|w ws] eqn:Hd; [apply sound_nothing|]. split; [|done].
    intros d l. simpl. rewrite <-Hd. apply Hk. }
  assert (Forall of_devices (told h : list (entry block))) as Htold by by apply Forall_fmap, Forall_true.
  eapply step_below; [exact Hrel|exact HB|by apply Recovered|constructor|done|done|].
  intros b s b' Hon Hc Hrun Hon'. subst es. destruct on; simpl in Hrun.
  - destruct (devices_covers spare pf k v _ b s b' Htold Hc Hrun) as (s'&?&Hc'). exists s'. split; [done|].
    apply (covers_newest k); [..|done]; subst z'; unfold delayed_again;
      destruct (delayed k) eqn:Hd; [by apply Hk|done|by left|by right].
  - inversion Hrun as [|en b1 tr b2 Hstep Hrest]; subst. destruct Hstep as [Hcrash|[]].
    destruct (crash_covers pf k z' b s b1 Hc eq_refl eq_refl Hcrash) as (s1&Hs1&Hc1).
    destruct (devices_covers spare pf z' v _ b1 s1 b' Htold Hc1 Hrest) as (s'&?&?). exists s'. split; [|done].
    econstructor; [by left|done].
Qed.

Lemma both_kept c x h k v S : c = Off ∨ kept_in c k = k → both (c, x, h, k) v S →
  both (c, x, h, kept_in c k) v S.
Proof.
  intros [->| ->]; [|done]. intros (cb&B&Hst&Hrel&Hk&HB). inversion Hst; subst. exists Off, B.
  split; [by constructor|]. split; [done|]. split; [apply sound_nothing|]. intros b Hb Hoff.
  destruct (HB b Hb Hoff) as (s&Hs&Hc). exists s. split; [done|]. by apply (covers_off k).
Qed.

Lemma put_back_other k (c c' : control C (Y * delay)) :
  (∀ (o : Y * delay) ms cl, c' ≠ Idle o ms cl) → put_back k c c' = c'.
Proof.
  intros Hno. destruct c as [| | | | | | |[]], c' as [[y1 z1] ms1 cl1| | | | | | |]; try done.
  by destruct (Hno (y1, z1) ms1 cl1).
Qed.

Lemma keeping_related m es m' v S :
  keeping_move D shape room_of spares_places size count m es m' → both m v S →
  both m' (devices_by v es) (reached v S es).
Proof.
  intros [c x h k es' c' x' h' Hmove].
  inversion Hmove as [[y z] ms cl q places x0 h0|[y z] ms cl ws places x0 h0|[y z] ms cl u x0 h0|
    [y z] ms cl x0 h0
    |[y z] ms cl x0 h0
    |q p x0 p' x1 h0 Hio|ws p x0 p' x1 h0 Hio|p x0 p' x1 h0 Hio|[y z] p x0 p' x1 h0 Hio|on p x0 p' x1 h0 Hio
    |q ms cl [y z] r data x0 h0|ws ms cl [y z] x0 h0|ws ms cl [y z] x0 h0|ms cl [y z] x0 h0|[y z] ms cl x0 h0
    |on ms cl [y z] x0 h0
    |q x0 h0|ws x0 h0|x0 h0|[y z] x0 h0|on x0 h0|q x0 h0|x0 h0|x0 h0|[y z] ms cl x0 h0|x0 h0|
      c0 x0 x1 h0 Hc Hx'
    |x0 h0|c0 i x0 x1 h0 Hi Hx'|[y z] ms cl i x0 h0 Hi|i x0 h0 Hi|i x0 h0 Hi|[y z] ms cl i f x0 h0 Hi Hms
    |[y z] ms cl i f x0 h0 Hi Hms|i f x0 h0 Hi]; subst; rewrite ?put_back_other by done;
    cbn [put_back kept_in snd]; intros Hboth;
    pose proof Hboth as (cb&B&Hst&Hrel&Hk&HB).
  - inversion Hst; subst. destruct (request_begins y z ms cl places q) as [Hb|[Hb|Hb]].
    + eapply step_above; [exact Hrel|exact HB|exact Hb|done|done|].
      intros b s _ Hc. exists s. split; [constructor|done].
    + eapply step_devices; [exact Hrel|exact HB|eapply Call|done|exact Hb|done].
    + eapply step_devices; [exact Hrel|exact HB|eapply CallGroup|done|exact Hb|done].
  - inversion Hst; subst. eapply step_above; [exact Hrel|exact HB|apply (group_begins y z ms cl places ws)|
      done|done|].
    intros b s _ Hc. exists s. split; [constructor|done].
  - inversion Hst; subst. destruct (upkeep_begins y z ms cl u) as [Hb|[[places Hb]|[u' Hb]]].
    + eapply step_above; [exact Hrel|exact HB|exact Hb|done|done|].
      intros b s _ Hc. exists s. split; [constructor|done].
    + eapply step_devices; [exact Hrel|exact HB|eapply CallGroup|done|exact Hb|done].
    + eapply step_devices; [exact Hrel|exact HB|eapply Maintain|done|exact Hb|done].
  - inversion Hst; subst. eapply step_devices; [exact Hrel|exact HB|by apply StartSettle|done|constructor|
      done].
  - inversion Hst; subst. eapply step_devices; [exact Hrel|exact HB|by apply Rest|done|constructor|done].
  - inversion Hst as [| |q0 p0 p1 Hq Hp|p0 p1 Hp| | | | | | | |]; subst; [inversion Hio|..].
    + destruct (mapped_io _ _ _ _ _ _ Hp Hio) as (p2&?&?).
      eapply step_devices; [exact Hrel|exact HB|by apply BusyIo|done|by constructor|done].
    + destruct (mapped_io _ _ _ _ _ _ Hp Hio) as (p2&?&?).
      eapply step_devices; [exact Hrel|exact HB|by apply GroupIo|done|by constructor|done].
  - inversion Hst; subst. inversion Hio.
  - inversion Hst as [| | | |p0 p1 Hp| |y0 ms0 c0 z0 Hz|p0 p1 Hp| | | |]; subst; [|inversion Hio|].
    + destruct (mapped_io _ _ _ _ _ _ Hp Hio) as (p2&?&?).
      eapply step_devices; [exact Hrel|exact HB|by apply GroupIo|done|by constructor|done].
    + destruct (mapped_io _ _ _ _ _ _ Hp Hio) as (p2&?&?).
      eapply step_devices; [exact Hrel|exact HB|by apply UpkeepIo|done|by constructor|done].
  - inversion Hst; subst. eapply step_devices; [exact Hrel|exact HB|by apply SettleIo|done|constructor|done].
  - inversion Hst as [| | | | | | | | | | |on0 p0 p1 Hnone Hp]; subst.
    destruct (mapped_io _ _ _ _ _ _ Hp Hio) as (p2&?&?).
    eapply step_devices; [exact Hrel|exact HB|by apply RecoveryIo|done|by constructor|done].
  - by apply request_answered with k.
  - by apply group_answers with k.
  - inversion Hst; subst. eapply step_above; [exact Hrel|exact HB|constructor|done|done|].
    intros b s _ Hc. exists s. split; [constructor|done].
  - by apply upkeep_ends with k.
  - inversion Hst; subst. eapply step_devices; [exact Hrel|exact HB|by apply Settled|by repeat constructor|
      constructor|done].
  - by apply recovery_ends.
  - by apply request_stops.
  - inversion Hst.
  - by apply upkeep_stops.
  - inversion Hst; subst. eapply step_devices; [exact Hrel|exact HB|by apply SettleStops|
      by repeat constructor|
      constructor|done].
  - inversion Hst as [| | | | | | | | | | |on0 p0 p1 Hnone Hp]; subst. apply mapped_stop in Hp as ->.
    eapply step_below; [exact Hrel|exact HB|by apply RecoveryStops|constructor|done|done|].
    intros b s b' _ Hc Hrun _. assert (Forall of_devices (told h : list (entry block))) as Htold
      by by apply Forall_fmap, Forall_true.
    destruct on; simpl in Hrun; [by eapply devices_covers|].
    inversion Hrun as [|en b1 tr b2 Hstep Hrest]; subst. destruct Hstep as [Hcrash|[]].
    destruct (crash_covers pf k k b s b1 Hc (proj2 Hk (Hnone eq_refl)) (Hnone eq_refl) Hcrash)
      as (s1&Hs1&Hc1).
    destruct (devices_covers spare pf k v _ b1 s1 b' Htold Hc1 Hrest) as (s'&?&?). exists s'.
    split; [|done]. econstructor; [by left|done].
  - inversion Hst; subst. by eapply lost_answers.
  - inversion Hst; subst. eapply step_devices; [exact Hrel|exact HB|by apply LostSettle|by repeat constructor|
      constructor|done].
  - inversion Hst; subst. eapply step_devices; [exact Hrel|exact HB|by apply Reopen|done| |done].
    constructor; [done|]. apply mapped_open. intros. apply mapped_on_leg.
  - inversion Hst; subst. eapply step_devices; [exact Hrel|exact HB|by apply IdleHint|by repeat constructor|
      constructor|done].
  - inversion Hst; subst. eapply step_devices; [exact Hrel|exact HB|by apply LostHint|by repeat constructor|
      constructor|done].
  - by eapply power_is_cut.
  - inversion Hst; subst. eapply step_devices; [exact Hrel|exact HB|by apply PowerOn|done| |done].
    constructor; [done|]. apply mapped_open. intros. apply mapped_on_leg.
  - assert (put_back k c' c' = c') as -> by by destruct c' as [| | | | | | |[]].
    pose proof (stands_powered _ _ _ Hst) as Hpowered. rewrite <-Hpowered.
    apply both_kept; [inversion Hst; subst; by auto|].
    eapply step_devices; [exact Hrel|exact HB|by apply DeviceFails| |done|done].
    destruct (powered cb); by repeat constructor.
  - inversion Hst; subst. eapply step_devices; [exact Hrel|exact HB|by apply IdleReturn|by repeat constructor|
      constructor|done].
  - inversion Hst; subst. eapply step_devices; [exact Hrel|exact HB|by apply LostReturn|by repeat constructor|
      constructor|done].
  - apply (both_kept Off _ _ k); [by left|]. inversion Hst; subst.
    eapply step_devices; [exact Hrel|exact HB|by apply OffReturn|done|by constructor|done].
  - inversion Hst; subst. eapply step_devices; [exact Hrel|exact HB|by apply IdleReplace|
      by repeat constructor|
      constructor|done].
  - inversion Hst; subst. eapply step_devices; [exact Hrel|exact HB|by apply LastReplace|
      by repeat constructor|
      constructor|done].
  - inversion Hst; subst. eapply step_devices; [exact Hrel|exact HB|by apply LostReplace|
      by repeat constructor|
      constructor|done].
Qed.

(** ** Every trace *)

Lemma new_delay n (c : control C (Y * delay)) x h k :
  keeping_formatted D shape room_of spares_places size count n (c, x, h, k) →
  both (c, x, h, k) all_good (eq (created n)).
Proof.
  intros [(trees&g&f&ms&cl&[y z]&x1&<-&Hwhole&Hend&[= -> -> ->]) Hk]. simpl in Hk. subst k.
  pose proof (mapped_on_leg (opened room_of) size (seq 0 count) false (run_format D trees g)) as Hmapped.
  rewrite (mapped_complete _ _ _ _ Hmapped) in Hend.
  destruct (complete (on_leg size (seq 0 count) false (run_format D trees g)) (whole count f))
    as [[[[ms1 cl1] [y1|]]|] x2] eqn:Hbelow; simpl in Hend; try done. injection Hend as <- <- <- <- <-.
  exists (Idle y1 ms1 cl1), (eq (created (disk_blocks g))). split; [constructor|].
  split; [|split; [apply sound_nothing|]].
  - apply (formatted_related D size count shape represents recoverable programs_safe).
    by exists trees, g, f, ms1, cl1, y1, x2.
  - intros b <- _. exists (created (disk_blocks g)). split; [done|].
    apply (covers_newest no_delay); [done|by left|]. apply covers_created.
Qed.

Lemma both_some m v S : both m v S → ∃ s, S s.
Proof.
  destruct m as [[[c x] h] k]. intros (cb&B&_&Hrel%related_fits&_&HB). destruct Hrel as [Hserves _].
  apply serves_some in Hserves as (b&Hb&[Hon _]). destruct (HB b Hb Hon) as (s&?&_). by exists s.
Qed.

Lemma keeping_traces m es m' v S :
  recorded_shows (write_back_leg D shape room_of spares_places size count) m es m' → both m v S →
  ∃ s s', S s ∧ recorded_run pf spare v s es s'.
Proof.
  intros Hshows. revert v S. induction Hshows as [m|m es m1 tr m2 Hmove _ IH]; intros v S Hboth.
  - destruct (both_some _ _ _ Hboth) as [s Hs]. exists s, s. split; [done|constructor].
  - destruct (IH _ _ (keeping_related _ _ _ _ _ Hmove Hboth)) as (s1&s'&(s&Hs&Hrun)&Hrest).
    exists s, s'. split; [done|]. by eapply recorded_run_app.
Qed.

Lemma both_shown m es m' v S :
  recorded_shows (write_back_leg D shape room_of spares_places size count) m es m' → both m v S →
  ∃ v' S', both m' v' S'.
Proof.
  intros Hshows. revert v S. induction Hshows as [m|m es m1 tr m2 Hmove _ IH]; intros v S Hboth; [by eauto|].
  by eapply IH, keeping_related.
Qed.

Theorem write_back_leg_refines :
  implements_recorded (write_back_leg D shape room_of spares_places size count) pf spare.
Proof.
  intros n [[[c x] h] k] tr m' Hnew%new_delay Hshows.
  destruct (keeping_traces _ _ _ _ _ Hshows Hnew) as (s&s'&<-&Hrun). by exists n, tr, s'.
Qed.
End Refinement.
