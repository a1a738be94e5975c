(** What the contract promises, over whole traces: a read sees the last write, nothing else is touched, and a
snapshot reads for ever as the live disk read when it was taken. *)
From LogDisk Require Import VirtualDisk.

Section VirtualDiskProperties.
Context {V : Type} `{Value V}.
Implicit Types (p : profile) (s : state V) (e : event V) (d : disk V) (i : image V) (n : name) (r : answer).

(** ** A power cut may leave things as they are

While there is power, the disk is one of those that would survive; under [Ack] it is the only one, under
[Block] every image may be it. *)
Definition current p s : Prop :=
  power s = true →
  (p = Ack → survivors s = [exactly (now s)]) ∧
  (p = Block → ∀ i, i ∈ survivors s → ∀ l, live (now s) l ∈ may_hold i l) ∧
  ∃ i, i ∈ survivors s ∧ resolves i (now s).

Lemma resolves_exactly d : resolves (exactly d) d.
Proof. split; [|done]. intros l. left. Qed.

Lemma current_exactly p blocks d pw : current p (State blocks d [exactly d] pw).
Proof.
  intros _. split_and!; cbn; [done| |].
  - intros _ i ->%elem_of_list_singleton l. left.
  - exists (exactly d). split; [left|apply resolves_exactly].
Qed.

Lemma current_exactly_cons blocks d is pw : current Prefix (State blocks d (exactly d :: is) pw).
Proof. intros _. split_and!; [done..|]. exists (exactly d). split; [left|apply resolves_exactly]. Qed.

Lemma answered_current p s r faults excuses d left s' : current p s → answered s r faults excuses d left s' →
  (current p (happens s d left)) → current p s'.
Proof. intros Hc [Hp Ha] Hd.
  destruct r as [|c| |]; [by destruct Ha as [_ ->]|by destruct Ha as [_ ->]| |by subst].
  by destruct Ha as [->|[_ ->]]. Qed.

Lemma current_buffered p s lba data : current p s → power s = true →
  current p (happens s (written (now s) lba data) (buffered p s (written (now s) lba data))).
Proof.
  intros Hc Hp. destruct p; [apply current_exactly|apply current_exactly_cons|].
  destruct (Hc Hp) as (_ & _ & i & Hi & Hl & Hs). intros _. split_and!; cbn; [done| |].
  - intros _ j (k & -> & _)%elem_of_list_fmap l. left.
  - exists (may_also_hold (written (now s) lba data) i). split; [apply elem_of_list_fmap; eauto|].
    split; [|done]. intros l. left.
Qed.

Lemma written_held s lba data i l : live (now s) l ∈ may_hold i l →
  live (written (now s) lba data) l ∈ may_hold (forced lba data i) l.
Proof. intros Hl. cbn. destruct (data_at lba data l); [left|done]. Qed.

Lemma current_through p s told lba data : current p s → power s = true →
  let d := written (now s) lba data in current p (happens s d (written_through p s told d lba data)).
Proof.
  intros Hc Hp d. pose proof (current_buffered p s lba data Hc Hp) as Hb. fold d in Hb.
  destruct (Hc Hp) as (_ & Hall & i & Hi & Hl & Hs).
  assert (∃ j, j ∈ forced lba data <$> survivors s ∧ resolves j d) as (j & Hj & Hjd).
  { exists (forced lba data i). split; [apply elem_of_list_fmap; eauto|].
    split; [|done]. intros l. by apply written_held. }
  destruct p, told; try exact Hb; intros _; (split_and!; [done| |]); try done.
  - eauto.
  - exists j. split; [apply elem_of_app; by left|done].
  - intros _ k (k0 & -> & Hk)%elem_of_list_fmap l. by apply written_held, Hall.
  - eauto.
Qed.

Lemma current_recorded p s d : current p (happens s d (recorded p s d)).
Proof. destruct p; [apply current_exactly|apply current_exactly_cons|apply current_exactly]. Qed.

Lemma step_current p s e s' : current p s → step p s e s' → current p s'.
Proof.
  intros Hc Hstep.
  destruct e as [blocks|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r];
    cbn in Hstep;
    try (eapply answered_current; [done|exact Hstep|];
      first [apply current_recorded|apply current_exactly|destruct Hstep as [Hp _];
        first [by apply current_buffered|by apply current_through]]).
  - subst. apply current_exactly.
  - destruct Hstep as [Ha _]. eapply answered_current; [done|exact Ha|]. intros Hp. by apply Hc.
  - destruct r; try done; [|by subst]. destruct Hstep as (i & d & _ & _ & ->). apply current_exactly.
Qed.

Lemma current_run p s tr s' : current p s → run p s tr s' → current p s'.
Proof. intros Hc Hrun. induction Hrun; eauto using step_current. Qed.

(** ** What a block of a view holds, and what can change it *)

Definition has_value (from : target) (l : nat) (v : V) s : Prop :=
  ∃ f, view_of (now s) from = Some f ∧ f l = v.

(** It holds that in every image of a list. *)
Definition images_hold (from : target) (l : nat) (v : V) (is : list (image V)) : Prop :=
  ∀ i, i ∈ is →
    match from with
    | Live => ∀ u, u ∈ may_hold i l → u = v
    | Named n => ∃ f, with_snaps i !! n = Some f ∧ f l = v
    end.

(** It does, and if [after_crash] would after a power cut. *)
Definition stands (after_crash : bool) (from : target) (l : nat) (v : V) s : Prop :=
  has_value from l v s ∧ (after_crash = true → images_hold from l v (survivors s)).

Definition refused r : bool := match r with Refused _ => true | _ => false end.

(** An event that leaves block [l] of a view alone; a crash is another matter. *)
Definition spares (from : target) (l : nat) e : Prop :=
  match e, from with
  | Create _, _ => False
  | Write lba data r, Live | WriteThrough lba data _ r, Live => refused r = true ∨ data_at lba data l = None
  | Unmap lba count r, Live => refused r = true ∨ ¬ (lba ≤ l < lba + count)
  | Revert _ r, Live => refused r = true
  | Delete n r, Named n' => n ≠ n' ∨ refused r = true
  | _, _ => True
  end.

Definition no_crash e : Prop := e ≠ Crash Ok.

Lemma unmapped_spares d lba count l : ¬ (lba ≤ l < lba + count) → live (unmapped d lba count) l = live d l.
Proof. intros Hl. cbn. unfold data_at. case_decide; [|done]. rewrite lookup_ge_None_2; [done|].
  rewrite replicate_length. lia. Qed.

Lemma taken_snaps s n : taken (now s) n = [] → snaps (now s) !! n = None.
Proof. unfold taken. destruct (valid_name n); [|done]. case_decide as Hs; [done|]. intros _.
by apply eq_None_not_Some. Qed.

(** ** What the survivors of an operation say of a block that it spares *)

Lemma images_hold_exactly from l v z d pw left :
  has_value from l v (State z d left pw) → images_hold from l v [exactly d].
Proof. intros (f & Hf & Hv) i ->%elem_of_list_singleton. destruct from; cbn in *; [|by exists f].
  injection Hf as ->. by intros u ->%elem_of_list_singleton. Qed.
Lemma images_hold_app from l v is is' :
  images_hold from l v is → images_hold from l v is' → images_hold from l v (is ++ is').
Proof. intros H1 H2 i [Hi|Hi]%elem_of_app; [exact (H1 i Hi)|exact (H2 i Hi)]. Qed.

Lemma stands_answered b from l v s r faults excuses d left s' :
  stands b from l v s → answered s r faults excuses d left s' →
  (refused r = false → faults = [] → has_value from l v (happens s d left) ∧
    (b = true → images_hold from l v left)) →
  stands b from l v s'.
Proof.
  intros Hh [_ Ha] Hd. destruct r as [|c| |]; cbn in Hd.
  - destruct Ha as [? ->]. by apply Hd.
  - by destruct Ha as [_ ->].
  - destruct Ha as [->|[? ->]]; [done|]. by apply Hd.
  - subst s'. split; [apply Hh|]. intros Hb. apply images_hold_app; [|exact (proj2 Hh Hb)].
    destruct faults; [by apply Hd|by intros i ?%elem_of_nil].
Qed.

Lemma buffered_hold p from l v s d : stands true from l v s → has_value from l v (State (size s) d [] true) →
  snaps d = snaps (now s) → images_hold from l v (buffered p s d).
Proof.
  intros [Hh Hi] Hd Hsn. specialize (Hi eq_refl). pose proof (images_hold_exactly _ _ _ _ _ _ _ Hd) as Hx.
  destruct p; cbn; [done|by apply (images_hold_app _ _ _ [_])|].
  intros i' (i & -> & Hin)%elem_of_list_fmap. specialize (Hi i Hin). destruct from; cbn; [|done].
  intros u [->|?]%elem_of_cons; [|auto]. destruct Hd as (f & [= <-] & ?). done.
Qed.

Lemma through_hold p told from l v s lba data : let d := written (now s) lba data in
  stands true from l v s → has_value from l v (State (size s) d [] true) →
  images_hold from l v (written_through p s told d lba data).
Proof.
  intros d Hst Hd. pose proof (buffered_hold p from l v s d Hst Hd eq_refl) as Hb. destruct Hst as [Hh Hi].
  assert (images_hold from l v (forced lba data <$> survivors s)) as Hf.
  { intros j (i & -> & Hin)%elem_of_list_fmap. specialize (Hi eq_refl i Hin). destruct from; [|done].
    destruct Hd as (f & [= <-] & Hd). cbn in Hd |- *.
    destruct (data_at lba data l); [by intros u ->%elem_of_list_singleton|done]. }
  destruct p, told; try done. by apply images_hold_app.
Qed.

Lemma recorded_hold p from l v s d :
  stands true from l v s → has_value from l v (State (size s) d [] true) →
  images_hold from l v (recorded p s d).
Proof. intros [Hh Hi] Hd. specialize (Hi eq_refl). pose proof (images_hold_exactly _ _ _ _ _ _ _ Hd).
  destruct p; cbn; [done|by apply (images_hold_app _ _ _ [_])|done]. Qed.

Lemma stands_step b p from l v s e s' :
  stands b from l v s → spares from l e → b = true ∨ no_crash e → step p s e s' → stands b from l v s'.
Proof.
  intros Hst Hsp Hnc Hstep. pose proof Hst as [Hh Hi].
  assert (∀ r faults excuses d left, answered s r faults excuses d left s' →
    (refused r = false → faults = [] → has_value from l v (State (size s) d [] true)) →
    (b = true → has_value from l v (State (size s) d [] true) → images_hold from l v left) →
      stands b from l v s') as Hans.
  { intros r faults excuses d left Ha Hd Hl. eapply stands_answered; [done|exact Ha|]. intros Hr Hf.
    specialize (Hd Hr Hf). split; [done|auto]. }
  assert (b = true → stands true from l v s) as Hdur by (by intros ->). pose proof Hh as (f & Hf & Hv).
  destruct e as [blocks|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from' lba count r data|r];
    cbn in Hstep, Hsp;
    try done;
    try (eapply Hans; [exact Hstep| |by intros; (apply buffered_hold || apply recorded_hold || apply
      through_hold); auto];
      intros Hr Hfaults; destruct from as [|n']; cbn in *; try by exists f);
    try (eapply Hans; [exact Hstep|by exists f|by intros _; apply images_hold_exactly]).
  - eexists. split; [done|]. cbn. destruct Hsp as [?|Hsp]; [congruence|]. by rewrite Hsp; injection Hf as ->.
  - eexists. split; [done|]. cbn. destruct Hsp as [?|Hsp]; [congruence|]. by rewrite Hsp; injection Hf as ->.
  - exists (live (unmapped (now s) lba count)). split; [done|].
    destruct Hsp as [?|Hsp]; [congruence|]. rewrite unmapped_spares by done. by injection Hf as ->.
  - exists f. split; [|done]. cbn. apply taken_snaps in Hfaults. rewrite lookup_insert_ne; [done|congruence].
  - exists f. split; [|done]. cbn. destruct Hsp as [?|?]; [|congruence]. by rewrite lookup_delete_ne.
  - congruence.
  - destruct Hstep as [Ha _]. eapply Hans; [exact Ha|by exists f|]. auto.
  - destruct r; try done; [|by subst s'; split].
    destruct Hstep as (i & d & Hin & [Hl Hs] & ->), Hnc as [->|?]; [|done]. specialize (Hi eq_refl i Hin).
    assert (has_value from l v (State (size s) d [exactly d] true)) as Hd.
    { destruct from; cbn in *; [exists (live d); split; [done|by apply Hi, Hl]|]. unfold has_value. cbn.
      by rewrite Hs. }
    split; [done|]. intros _. by eapply images_hold_exactly.
Qed.

Lemma stands_run b p from l v s tr s' :
  stands b from l v s → Forall (spares from l) tr → b = true ∨ Forall no_crash tr → run p s tr s' →
    stands b from l v s'.
Proof. intros Hh Hsp Hnc Hrun. induction Hrun as [|s e s1 tr s2 Hstep _ IH]; [done|].
  apply Forall_cons in Hsp as [? ?]. rewrite Forall_cons in Hnc.
  apply IH; [eapply stands_step; [done..| |done]|done|]; destruct Hnc as [?|[? ?]]; auto. Qed.

(** What a view holds it goes on to hold; under [Ack] it is always durable. *)
Lemma has_value_run p from l v s tr s' : current p s → power s = true → has_value from l v s →
  Forall (spares from l) tr → p = Ack ∨ Forall no_crash tr → run p s tr s' → has_value from l v s'.
Proof.
  intros Hs Hp Hh Hsp [->|Hnc] Hrun.
  - apply (stands_run true Ack from l v s tr s'); auto. split;
    [done|]. intros _. destruct (Hs Hp) as [Hset _].
    rewrite (Hset eq_refl). destruct s. by eapply images_hold_exactly.
  - apply (stands_run false p from l v s tr s'); auto. by split.
Qed.

Lemma run_inv p s e tr s' : run p s (e :: tr) s' → ∃ s1, step p s e s1 ∧ run p s1 tr s'.
Proof. inversion 1; subst. eauto. Qed.

Lemma run_single p s e s' : run p s [e] s' → step p s e s'.
Proof. intros (s1 & ? & Hrun)%run_inv. by inversion Hrun; subst. Qed.

Lemma read_has_value p s from lba count data s' : step p s (Read from lba count Ok data) s' → power s = true ∧
  s' = s ∧ ∀ k v, data !! k = Some v → k < count ∧ has_value from (lba + k) v s.
Proof. intros [[Hp [_ ->]] Hread]. destruct (Hread eq_refl) as (f & Hf & ->).
  split_and!; [done|by destruct s|]. intros k v Hk.
  apply list_lookup_fmap_inv in Hk as (x & -> & [-> ?]%lookup_seq). split; [done|]. by exists f. Qed.

Lemma has_value_read p s from lba count data s' k v :
  step p s (Read from lba count Ok data) s' → k < count → has_value from (lba + k) v s → data !! k = Some v.
Proof.
  intros [_ Hread] Hk (f & Hf & Hv). destruct (Hread eq_refl) as (f' & Hf' & ->).
  assert (f' = f) as -> by congruence. rewrite list_lookup_fmap, lookup_seq_lt by done. cbn. by rewrite Hv.
Qed.

Lemma has_value_reread p s from l v v' s' :
  step p s (Read from l 1 Ok [v']) s' → has_value from l v s → v' = v.
Proof. intros Hread Hh. rewrite <-(Nat.add_0_r l) in Hh.
  pose proof (has_value_read _ _ _ _ _ _ _ 0 v Hread ltac:(lia) Hh) as Hv. cbn in Hv. congruence. Qed.

(** ** Over whole traces *)

Lemma admits_created p e before tr : admits p (before ++ e :: tr) → (∀ blocks, e ≠ Create blocks) →
  ∃ s, current p s ∧ ∃ s1, step p s e s1 ∧ ∃ s2, run p s1 tr s2.
Proof. intros (blocks & rest & s & Heq & Hrun) Hne.
  destruct before as [|e0 before]; [injection Heq as -> _; by edestruct Hne|]. injection Heq as -> <-.
  apply run_app in Hrun as (s0 & Hrun0 & (s1 & He & Hrun)%run_inv). exists s0. split; [|eauto].
  eapply current_run, Hrun0. apply current_exactly. Qed.

(** Frame: a block of a view reads the same until an event changes it; under [Ack] crashes do not count. *)
Theorem frame p from l v v' before tr : Forall (spares from l) tr → p = Ack ∨ Forall no_crash tr →
  admits p (before ++ Read from l 1 Ok [v] :: tr ++ [Read from l 1 Ok [v']]) → v' = v.
Proof.
  intros Hsp Hcase (s0 & Hset & s1 & Hread & s & (s2 & Hrun & Hread'%run_single)%run_app)%admits_created;
    [|done].
  apply read_has_value in Hread as (Hp & -> & Hh). destruct (Hh 0 v eq_refl) as [_ H0].
  rewrite Nat.add_0_r in H0.
  apply (has_value_reread _ _ _ _ _ _ _ Hread'). by eapply has_value_run.
Qed.

(** Read after write: a block reads as the last write left it; under [Ack] crashes do not count. *)
Theorem read_after_write p lba data l v v' before tr : data_at lba data l = Some v →
  Forall (spares Live l) tr → p = Ack ∨ Forall no_crash tr →
  admits p (before ++ Write lba data Ok :: tr ++ [Read Live l 1 Ok [v']]) → v' = v.
Proof.
  intros Hdata Hsp Hcase (s0 & Hset & s1 & Hwrite & s &
    (s2 & Hrun & Hread'%run_single)%run_app)%admits_created; [|done].
  apply (has_value_reread _ _ _ _ _ _ _ Hread'). eapply (has_value_run p); [|..|exact Hrun]; [|..|done|done].
  - by eapply step_current.
  - by destruct Hwrite as [Hp [_ ->]].
  - destruct Hwrite as [_ [_ ->]]. eexists. split; [done|]. cbn. by rewrite Hdata.
Qed.

(** A flush makes all that was acknowledged durable, under any profile. *)
Theorem flushed_survives p from l v v' before tr : Forall (spares from l) tr →
  admits p (before ++ Read from l 1 Ok [v] :: Flush Ok :: tr ++ [Read from l 1 Ok [v']]) → v' = v.
Proof.
  intros Hsp (s0 & _ & s1 & Hread & s & (s2 & Hflush & Hrun)%run_inv)%admits_created; [|done].
  apply run_app in Hrun as (s3 & Hrun & Hread'%run_single).
  apply read_has_value in Hread as (Hp & -> & Hh). destruct (Hh 0 v eq_refl) as [_ H0].
  rewrite Nat.add_0_r in H0.
  apply (has_value_reread _ _ _ _ _ _ _ Hread'). apply (stands_run true p from l v s2 tr s3); auto.
  destruct Hflush as [_ [_ ->]]. split; [done|]. intros _. destruct s0. by eapply images_hold_exactly.
Qed.

(** An event that does not delete the snapshot [n]. *)
Definition keeps n e : Prop :=
  match e with Create _ => False | Delete n' r => n' ≠ n ∨ refused r = true | _ => True end.

(** Whatever follows but its deletion, a snapshot reads as the live disk read when it was taken. Under
[Prefix] a crash before the next flush may lose the snapshot, and show an older one of its name. *)
Theorem snapshot_reads_for_ever p n lba count data data' before tr :
  p ≠ Prefix ∨ Forall no_crash tr ∨ (∃ tr', tr = Flush Ok :: tr') → Forall (keeps n) tr →
  admits p (before ++ Read Live lba count Ok data :: Snapshot n Ok :: tr ++ [Read (Named n)
    lba count Ok data']) →
  data' = data.
Proof.
  intros Hcase Hkeeps (s0 & _ & s1 & Hread & s & (s2 & Hsnap & Hrun)%run_inv)%admits_created; [|done].
  apply run_app in Hrun as (s3 & Hrun1 & Hread'%run_single).
  assert (s1 = s0) as -> by (by apply read_has_value in Hread as (_ & -> & _)).
  assert (∀ l, has_value (Named n) l (live (now s0) l) s2) as Hh.
  { destruct Hsnap as [_ [_ ->]]. intros l. exists (live (now s0)).
    by rewrite <-(lookup_insert (snaps (now s0)) n). }
  assert (∀ l, Forall (spares (Named n) l) tr) as Hsp.
  { intros l. eapply Forall_impl; [exact Hkeeps|]. by intros []. }
  assert (∀ l, has_value (Named n) l (live (now s0) l) s3) as H3.
  { intros l. destruct Hcase as [Hp|[Hnc|[tr' ->]]].
    - apply (stands_run true p _ _ _ s2 tr s3); auto. split; [done|]. destruct Hsnap as [_ [_ ->]].
      destruct p; [|done|]; intros _; (eapply images_hold_exactly; apply Hh).
    - apply (stands_run false p _ _ _ s2 tr s3); auto. by split.
    - apply run_inv in Hrun1 as (s2' & Hflush & Hrun1). specialize (Hsp l).
      apply Forall_cons in Hsp as [_ Hsp].
      apply (stands_run true p _ _ _ s2' tr' s3); auto. destruct Hflush as [_ [_ ->]]. split;
        [apply Hh|]. intros _.
      destruct s2. eapply images_hold_exactly, Hh. }
  destruct Hread as [_ Hread], Hread' as [_ Hread'].
  destruct (Hread eq_refl) as (f & [= <-] & ->), (Hread' eq_refl) as (f' & Hf' & ->).
  apply list_fmap_ext. intros k x _. destruct (H3 x) as (f'' & Hf'' & Hx). congruence.
Qed.

End VirtualDiskProperties.
