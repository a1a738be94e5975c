(** Steps that do not conflict may change places: what the one order allows the other allows.

[allows s t]: the state [t] allows whatever [s] allows. They read the same, and [t] has whatever a power cut
may leave of [s]. *)
From stdpp Require Import pmap.
From LogDisk Require Import VirtualDisk VirtualDiskProperties RecordedTrace OverlappingDisk
    OverlappingDiskChecker.

Section Swaps.
Context {V : Type} `{Value V}.
Implicit Types (s t : state V) (d : disk V) (i : image V) (en a b : entry V).

(** ** States that allow what others allow *)

Definition same_view (f g : view V) : Prop := ∀ l, f l = g l.
Definition same_snaps (m m' : gmap name (view V)) : Prop := ∀ n, option_Forall2 same_view (m !! n) (m' !! n).
Definition same_disk d d' : Prop := same_view (live d) (live d') ∧ same_snaps (snaps d) (snaps d').
Definition image_within i i' : Prop :=
  (∀ l v, v ∈ may_hold i l → v ∈ may_hold i' l) ∧ same_snaps (with_snaps i) (with_snaps i').
Definition images_within (is is' : list (image V)) : Prop := ∀ i, i ∈ is → ∃ i', i' ∈ is' ∧ image_within i i'.
Definition allows s t : Prop :=
  size s = size t ∧ power s = power t ∧ same_disk (now s) (now t) ∧ images_within (survivors s) (survivors t).

Lemma same_snaps_refl m : same_snaps m m.
Proof. intros n. destruct (m !! n); constructor. by intros l. Qed.
Lemma same_disk_refl d : same_disk d d.
Proof. split; [by intros l|apply same_snaps_refl]. Qed.
Lemma image_within_refl i : image_within i i.
Proof. split; [done|apply same_snaps_refl]. Qed.
Lemma images_within_refl is : images_within is is.
Proof. intros i Hi. exists i. split; [done|apply image_within_refl]. Qed.
Lemma allows_refl s : allows s s.
Proof. split_and!; [done|done|apply same_disk_refl|apply images_within_refl]. Qed.

Lemma exactly_within d d' : same_disk d d' → image_within (exactly d) (exactly d').
Proof. intros [Hl Hs]. split; [|done]. intros l v. cbn. by rewrite Hl. Qed.
Lemma within_cons i i' is is' : image_within i i' → images_within is is' → images_within (i :: is) (i' ::
    is').
Proof. intros Hi His j [->|Hj]%elem_of_cons; [exists i'|destruct (His _ Hj) as (j' & ? & ?); exists j'];
  (split; [by constructor|done]). Qed.
Lemma within_one i i' : image_within i i' → images_within [i] [i'].
Proof. intros. apply within_cons; [done|]. by intros ? ?%elem_of_nil. Qed.
Lemma within_app is1 is2 is1' is2' :
  images_within is1 is1' → images_within is2 is2' → images_within (is1 ++ is2) (is1' ++ is2').
Proof. intros H1 H2 i [(j & ? & ?)%H1|(j & ? & ?)%H2]%elem_of_app; exists j; rewrite elem_of_app; auto. Qed.

Lemma same_written d d' lba data : same_disk d d' → same_disk (written d lba data) (written d' lba data).
Proof. intros [Hl Hs]. split; [|done]. intros l. cbn. by rewrite Hl. Qed.
Lemma same_snapshotted d d' n : same_disk d d' → same_disk (snapshotted d n) (snapshotted d' n).
Proof. intros [Hl Hs]. split; [done|]. intros a. cbn. destruct (decide (n = a)) as [->|?].
  - rewrite !lookup_insert. by constructor.
  - rewrite !lookup_insert_ne by done. apply Hs. Qed.
Lemma same_deleted d d' n : same_disk d d' → same_disk (deleted d n) (deleted d' n).
Proof. intros [Hl Hs]. split; [done|]. intros a. cbn. destruct (decide (n = a)) as [->|?].
  - rewrite !lookup_delete. by constructor.
  - rewrite !lookup_delete_ne by done. apply Hs. Qed.
Lemma same_reverted d d' n : same_disk d d' → same_disk (reverted d n) (reverted d' n).
Proof. intros [Hl Hs]. split; [|done]. intros l. cbn. destruct (Hs n); cbn; auto. Qed.

Lemma same_is_some d d' n : same_disk d d' → is_Some (snaps d !! n) ↔ is_Some (snaps d' !! n).
Proof. intros [_ Hs]. destruct (Hs n); split; intros [? ?]; eauto; done. Qed.
Lemma same_missing d d' n : same_disk d d' → missing d n = missing d' n.
Proof. intros Hd. unfold missing. destruct (valid_name n); [|done]. pose proof (same_is_some _ _ n Hd).
  repeat case_decide; naive_solver. Qed.
Lemma same_taken d d' n : same_disk d d' → VirtualDisk.taken d n = VirtualDisk.taken d' n.
Proof. intros Hd. unfold VirtualDisk.taken. destruct (valid_name n); [|done]. pose proof (same_is_some _ _ n
    Hd).
  repeat case_decide; naive_solver. Qed.
Lemma same_missing_view d d' from : same_disk d d' → missing_view d from = missing_view d' from.
Proof. destruct from; [done|]. apply same_missing. Qed.

Lemma within_buffered p s t d d' :
  same_disk d d' → images_within (survivors s) (survivors t) →
  images_within (buffered p s d) (buffered p t d').
Proof.
  intros Hd Hi. destruct p; cbn.
  - by apply within_one, exactly_within.
  - apply within_cons; [by apply exactly_within|done].
  - intros i (j & -> & (j' & Hj' & Hm & Hs)%Hi)%elem_of_list_fmap.
    eexists. split; [apply elem_of_list_fmap; by exists j'|]. split; [|done]. intros l v. cbn.
    destruct Hd as [Hl _]. rewrite Hl, !elem_of_cons. intros [?|?]; [by left|right; by apply Hm].
Qed.
Lemma forced_within i i' lba data : image_within i i' → image_within (forced lba data i) (forced lba data i').
Proof. intros [Hm Hs]. split; [|done]. intros l v. specialize (Hm l v). cbn. by destruct (data_at lba data l).
Qed.
Lemma within_fmap (f g : image V → image V) is is' :
  (∀ i i', image_within i i' → image_within (f i) (g i')) → images_within is is' →
  images_within (f <$> is) (g <$> is').
Proof. intros Hf Hi i (j & -> & (j' & Hj' & ?)%Hi)%elem_of_list_fmap. exists (g j').
  split; [apply elem_of_list_fmap; eauto|auto]. Qed.
Lemma within_through p s t told d d' lba data :
  same_disk d d' → images_within (survivors s) (survivors t) →
  images_within (written_through p s told d lba data) (written_through p t told d' lba data).
Proof.
  intros Hd Hi. pose proof (within_buffered p _ _ _ _ Hd Hi) as Hb.
  assert (images_within (forced lba data <$> survivors s) (forced lba data <$> survivors t)) as Hf.
  { apply within_fmap; [|done]. intros. by apply forced_within. }
  destruct p, told; try done. by apply within_app.
Qed.
Lemma within_recorded p s t d d' :
  same_disk d d' → images_within (survivors s) (survivors t) →
  images_within (recorded p s d) (recorded p t d').
Proof. intros Hd Hi. destruct p; cbn; try (by apply within_one, exactly_within).
  apply within_cons; [by apply exactly_within|done]. Qed.

Lemma answered_mono s t r faults excuses d d' left left' s' :
  allows s t → same_disk d d' → images_within left left' →
  answered s r faults excuses d left s' → ∃ t', answered t r faults excuses d' left' t' ∧ allows s' t'.
Proof.
  intros (Hz & Hp & Hn & Hi) Hd Hl [Hpw Ha]. rewrite Hp in Hpw.
  assert (allows (happens s d left) (happens t d' left')) by done.
  destruct r as [|c| |].
  - destruct Ha as [-> ->]. exists (happens t d' left'). by split_and!.
  - destruct Ha as [? ->]. exists t. by split_and!.
  - destruct Ha as [->|[-> ->]]; [exists t|exists (happens t d' left')]; (split; [split|]); auto. by
      split_and!.
  - subst s'. eexists. split; [by split|]. split_and!; [done|done|done|]. cbn.
    apply within_app; [|done]. destruct faults; [done|apply images_within_refl].
Qed.

Lemma step_mono p s t e s' : allows s t → step p s e s' → ∃ t', step p t e t' ∧ allows s' t'.
Proof.
  intros Hst. pose proof Hst as (Hz & Hp & Hn & Hi).
  assert (∀ lba count, out_of_range s lba count = out_of_range t lba count) as Hr.
  { intros. unfold out_of_range. by rewrite Hz. }
  destruct e as [blocks|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r]; cbn;
    rewrite ?Hr, ?(same_taken (now s) (now t)), ?(same_missing (now s) (now t)),
      ?(same_missing_view (now s) (now t)) by done.
  - intros ->. eexists. split; [done|apply allows_refl].
  - intros. eapply answered_mono; [done|by apply same_written|..|done].
    apply within_buffered; [by apply same_written|done].
  - intros. eapply answered_mono; [done|by apply same_written|..|done].
    apply within_through; [by apply same_written|done].
  - intros. eapply answered_mono; [done|by apply same_written|..|done].
    apply within_buffered; [by apply same_written|done].
  - intros. eapply answered_mono; [done|by apply same_snapshotted|..|done].
    apply within_recorded; [by apply same_snapshotted|done].
  - intros. eapply answered_mono; [done|by apply same_deleted|..|done].
    apply within_recorded; [by apply same_deleted|done].
  - intros. eapply answered_mono; [done|by apply same_reverted|..|done].
    apply within_recorded; [by apply same_reverted|done].
  - intros. eapply answered_mono; [done|done|..|done]. by apply within_one, exactly_within.
  - intros. eapply answered_mono; [done|done|..|done]. by apply within_one, exactly_within.
  - intros [Ha Hok]. destruct (answered_mono _ _ _ _ _ _ _ _ _ _ Hst Hn Hi Ha) as (t' & ? & ?).
    exists t'. split; [split; [done|]|done]. intros ->. destruct (Hok eq_refl) as (v & Hv & ->).
    destruct Hn as [Hlive Hs]. destruct from as [|n]; cbn in *.
    + eexists. split; [done|]. apply list_fmap_ext. intros ? ? ?. injection Hv as <-. apply Hlive.
    + specialize (Hs n). rewrite Hv in Hs. inversion Hs as [? v' Hvv|]; subst. exists v'. split; [done|].
      apply list_fmap_ext. auto.
  - destruct r; try done.
    + intros (i & d & (i' & Hi' & Hm & Hs)%Hi & [Hl Heq] & ->).
      set (d' := Disk (live d) (with_snaps i')).
      assert (same_disk d d') by (split; [done|cbn; by rewrite Heq]).
      exists (State (size t) d' [exactly d'] true). split.
      * exists i', d'. split_and!; [done| |done]. split; [|done]. intros l. apply Hm, Hl.
      * split_and!; [done|done|done|]. by apply within_one, exactly_within.
    + intros ->. eexists. split; [done|]. by split_and!.
Qed.

Lemma entry_mono p tolerates v s t en s' :
  allows s t → entry_step p tolerates v s en s' → ∃ t', entry_step p tolerates v t en t' ∧ allows s' t'.
Proof.
  intros Hst. pose proof Hst as (Hz & Hp & Hn & Hi).
  assert (∀ r, outside s r s' → ∃ t', outside t r t' ∧ allows s' t') as Hout.
  { intros r [Hpw ->]. eexists. split; [split; [by rewrite <-Hp|done]|]. by destruct r. }
  destruct en as [e|d r|d r|d r|r|r]; cbn; try apply Hout. intros [Hs|Hl].
  - destruct (step_mono _ _ _ _ _ Hst Hs) as (t' & ? & ?). exists t'. by split; [left|].
  - destruct e as [| | | | | | | | |from lba count [|[]| |] data|]; try done. destruct Hl as (Hb & Hpw & ->).
    exists t. split; [right|done]. split; [done|]. split; [by rewrite <-Hp|done].
Qed.

(** That a trace may go on from a state. *)
Definition runs p tolerates v s (es : list (entry V)) : Prop := ∃ s', recorded_run p tolerates v s es s'.

Lemma runs_cons p tolerates v s en es : runs p tolerates v s (en :: es) ↔
  ∃ s', entry_step p tolerates v s en s' ∧ runs p tolerates (devices_after tolerates v en) s' es.
Proof.
  split.
  - intros [s2 Hr]. inversion Hr; subst. eexists. split; [done|]. by eexists.
  - intros (s1 & ? & s2 & ?). exists s2. by econstructor.
Qed.

Lemma runs_mono p tolerates es : ∀ v s t, allows s t → runs p tolerates v s es → runs p tolerates v t es.
Proof.
  induction es as [|en es IH]; intros v s t Hst Hr.
  - exists t. constructor.
  - apply runs_cons in Hr as (s1 & Hs & Hr). destruct (entry_mono _ _ _ _ _ _ _ Hst Hs) as (t1 & ? & ?).
    apply runs_cons. exists t1. eauto.
Qed.

(** ** What a step needs, and what it does *)

Definition met (r : answer) (faults excuses : list code) : Prop :=
  match r with Ok => faults = [] | Refused c => c ∈ faults ∨ faults = [] ∧ c ∈ excuses | _ => False end.

Definition suited tolerates (v : devices) s en : Prop :=
  match en with
  | Event (Write lba data r) | Event (WriteThrough lba data _ r) => met r (out_of_range s lba (length
    data)) [NoSpace]
  | Event (Unmap lba count r) => met r (out_of_range s lba count) [NoSpace]
  | Event (Snapshot n r) => met r (VirtualDisk.taken (now s) n) [NoSpace]
  | Event (Delete n r) => met r (missing (now s) n) []
  | Event (Revert n r) => met r (missing (now s) n) [NoSpace]
  | Event (Flush r) | Event (Restart r) => met r [] []
  | Event (Read from lba count r data) =>
      met r (out_of_range s lba count ++ missing_view (now s) from) [] ∧
      (r = Ok → ∃ f, view_of (now s) from = Some f ∧ data = f <$> seq lba count) ∨
      r = Refused DataLost ∧ beyond tolerates v = true
  | _ => True
  end.

Definition act p s en : state V :=
  match en with
  | Event (Write lba data Ok) => let d := written (now s) lba data in happens s d (buffered p s d)
  | Event (WriteThrough lba data told Ok) =>
      let d := written (now s) lba data in happens s d (written_through p s told d lba data)
  | Event (Unmap lba count Ok) => let d := unmapped (now s) lba count in happens s d (buffered p s d)
  | Event (Snapshot n Ok) => let d := snapshotted (now s) n in happens s d (recorded p s d)
  | Event (Delete n Ok) => let d := deleted (now s) n in happens s d (recorded p s d)
  | Event (Revert n Ok) => let d := reverted (now s) n in happens s d (recorded p s d)
  | Event (Flush Ok) | Event (Restart Ok) => happens s (now s) [exactly (now s)]
  | _ => s
  end.

Lemma happens_same s : happens s (now s) (survivors s) = s.
Proof. by destruct s. Qed.

Lemma entry_act p tolerates v s en s' : deed_of en ≠ Other →
  entry_step p tolerates v s en s' ↔ power s = true ∧ suited tolerates v s en ∧ s' = act p s en.
Proof.
  intros Hd. destruct en as [e|d r|d r|d r|r|r]; try done.
  - destruct e as [blocks|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r];
    try done;
      destruct r; try done; cbn; unfold answered, loses; rewrite ?happens_same; try naive_solver.
    destruct c; naive_solver.
  - destruct r; try done; cbn; unfold outside; naive_solver.
Qed.

Lemma act_power p s en : power (act p s en) = power s.
Proof. destruct en as [[| ? ? []| ? ? ? []| ? ? []| ? []| ? []| ? []|[]|[]| |]| | | | |]; done. Qed.
Lemma act_size p s en : size (act p s en) = size s.
Proof. destruct en as [[| ? ? []| ? ? ? []| ? ? []| ? []| ? []| ? []|[]|[]| |]| | | | |]; done. Qed.

(** ** What one step leaves alone of what another sees *)

Definition alike_for (b : entry V) s t : Prop :=
  size s = size t ∧
  (∀ n, sees_name b = Some n → snaps (now s) !! n = snaps (now t) !! n) ∧
  (∀ lba count l, sees_live b = Some (lba, count) → lba ≤ l < lba + count →
    live (now s) l = live (now t) l).

Lemma suited_alike tolerates v b s t : deed_of b ≠ Other → alike_for b s t → suited tolerates v s b →
  suited tolerates v t b.
Proof.
  intros Hd (Hz & Hn & Hl).
  assert (∀ lba count, out_of_range s lba count = out_of_range t lba count) as Hr.
  { intros. unfold out_of_range. by rewrite Hz. }
  assert (∀ n, sees_name b = Some n → missing (now s) n = missing (now t) n) as Hm.
  { intros n Hs. unfold missing. by rewrite (Hn n Hs). }
  assert (∀ n, sees_name b = Some n → VirtualDisk.taken (now s) n = VirtualDisk.taken (now t) n) as Ht.
  { intros n Hs. unfold VirtualDisk.taken. by rewrite (Hn n Hs). }
  destruct b as [e|d r|d r|d r|r|r]; try done.
  destruct e as [blocks|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r];
    try done; cbn in *;
    rewrite ?Hr; try done; try (by rewrite Ht); try (by rewrite Hm).
  intros [[Hmet Hok]|?]; [left|by right]. destruct from as [|n]; cbn in *.
  - split; [done|]. intros ->. destruct (Hok eq_refl) as (f & Hf & ->). injection Hf as <-.
    eexists. split; [done|]. apply list_fmap_ext. intros i l [-> Hi]%lookup_seq.
    apply (Hl lba count); [done|lia].
  - rewrite <-Hm by done. split; [done|]. rewrite <-Hn by done. done.
Qed.

Lemma meets_spec lba count lba' count' l :
  lba ≤ l < lba + count → lba' ≤ l < lba' + count' → meets lba count lba' count' = true.
Proof. intros. unfold meets. apply andb_true_iff. rewrite !less_lt. lia. Qed.

Lemma data_at_none lba (data : list V) l : ¬ (lba ≤ l < lba + length data) → data_at lba data l = None.
Proof. intros. unfold data_at. case_decide; [|done]. apply lookup_ge_None_2. lia. Qed.

Lemma act_alike p a b s : spoils (deed_of a) b = false → alike_for b s (act p s a).
Proof.
  intros Hs. split; [by rewrite act_size|].
  assert (∀ lba data lba' count l, (∀ lba' count, sees_live b = Some (lba', count) →
      meets lba (length data) lba' count = false) →
    sees_live b = Some (lba', count) → lba' ≤ l < lba' + count →
    live (now s) l = live (written (now s) lba data) l) as Hw.
  { intros lba data lba' count l Hm Hb Hl. cbn. rewrite data_at_none; [done|]. intros Hl'.
    specialize (Hm _ _ Hb). by rewrite (meets_spec _ _ _ _ l) in Hm. }
  destruct a as [e|d r|d r|d r|r|r]; try done.
  destruct e as [blocks|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r];
    try done;
    destruct r; try done; cbn in Hs |- *; (split; [intros m Hm|intros lba' count' l Hb Hl]); try done.
  - eapply Hw; [|done..]. intros ? ? Heq. by rewrite Heq in Hs.
  - eapply Hw; [|done..]. intros ? ? Heq. by rewrite Heq in Hs.
  - unfold unmapped. eapply Hw; [|done..]. intros ? ? Heq. rewrite Heq in Hs. by rewrite replicate_length.
  - rewrite Hm in Hs. case_decide; [done|]. by rewrite lookup_insert_ne.
  - rewrite Hm in Hs. case_decide; [done|]. by rewrite lookup_delete_ne.
  - by rewrite Hb in Hs.
Qed.

Lemma alike_sym b s t : alike_for b s t → alike_for b t s.
Proof. intros (? & Hn & Hl). split_and!; [done|intros; symmetry; by apply Hn|].
  intros. symmetry. by eapply Hl. Qed.

(** ** Two steps in either order *)

Lemma act_current p tolerates v s en : current p s → power s = true → suited tolerates v s en →
  deed_of en ≠ Other → current p (act p s en).
Proof.
  intros Hc Hp Hg Hd. assert (entry_step p tolerates v s en (act p s en)) as Hs by (by apply entry_act).
  destruct en as [e| | | | |]; try done; try (by destruct r). destruct Hs as [Hs|Hl]; [by eapply
      step_current|].
  destruct e as [| | | | | | | | |? ? ? [|[]| |] ?|]; try done.
Qed.

(** Under [Ack] what survives is the disk as it is. *)
Lemma act_ack s en : current Ack s → power s = true → deed_of en ≠ Other →
  survivors (act Ack s en) = [exactly (now (act Ack s en))].
Proof.
  intros Hc Hp Hd. destruct (Hc Hp) as (Hs & _). specialize (Hs eq_refl).
  destruct en as [[| ? ? []| ? ? ? []| ? ? []| ? []| ? []| ? []|[]|[]|? ? ? []|[]]| | | |[]|[]]; done.
Qed.

(** A write or an unmap: what becomes of an image under [Block], if it is durable at once and if it is not. *)
Definition leaves_of (at_once : bool) lba data d i : image V :=
  if at_once then forced lba data i else may_also_hold d i.
Definition data_of (lba : nat) (data : list V) (at_once : bool) p s : state V :=
  let d := written (now s) lba data in
  happens s d (match p with Ack => [exactly d] | Prefix => survivors s | Block =>
    leaves_of at_once lba data d <$> survivors s end).

Lemma written_comm d lba data lba' data' : meets lba (length data) lba' (length data') = false →
  same_view (live (written (written d lba data) lba' data')) (live (written (written d lba' data') lba data)).
Proof.
  intros Hm l. cbn. destruct (decide (lba ≤ l < lba + length data)) as [Hl|Hl].
  - rewrite (data_at_none lba' data'); [done|]. intros Hl'.
    by rewrite (meets_spec _ _ _ _ l) in Hm.
  - rewrite (data_at_none lba data) by done. done.
Qed.

Lemma data_comm p s lba data u lba' data' u' : p ≠ Prefix → current p s → power s = true →
  meets lba (length data) lba' (length data') = false →
  allows (data_of lba' data' u' p (data_of lba data u p s)) (data_of lba data u p (data_of lba' data' u' p
    s)).
Proof.
  intros Hp Hc Hpw Hm. pose proof (written_comm (now s) _ _ _ _ Hm) as Hw.
  assert (same_disk (written (written (now s) lba data) lba' data') (written (written (now s) lba' data')
    lba data)) as Hd by (split; [done|apply same_snaps_refl]).
  split_and!; [done..|]. destruct p; [|done|].
  - by apply within_one, exactly_within.
  - cbn. rewrite <-!list_fmap_compose. intros i (k & -> & Hk)%elem_of_list_fmap.
    eexists. split; [apply elem_of_list_fmap; by exists k|].
    destruct (Hc Hpw) as (_ & Hb & _). specialize (Hb eq_refl k Hk).
    split; [|destruct u, u'; apply same_snaps_refl]. intros l v. specialize (Hb l). specialize (Hw l).
    assert (data_at lba data l = None ∨ data_at lba' data' l = None) as Hone.
    { destruct (decide (lba ≤ l < lba + length data)) as [Hl|Hl]; [right|by left; apply data_at_none].
      apply data_at_none. intros Hl'. by rewrite (meets_spec _ _ _ _ l) in Hm. }
    destruct u, u'; cbn; destruct (data_at lba data l), (data_at lba' data' l); cbn;
      rewrite ?elem_of_cons; naive_solver.
Qed.

(** A step may come after a flush instead of before it. *)
Lemma act_flush p s a : deed_of a ≠ Other →
  allows (act p (act p s a) (Event (Restart Ok))) (act p (act p s (Event (Restart Ok))) a).
Proof.
  intros Ha. assert (∀ d i is, image_within (exactly d) i → images_within [exactly d] (i :: is)) as Hone.
  { intros d i is Hi j ->%elem_of_list_singleton. exists i. by split; [left|]. }
  assert (∀ d lba data, image_within (exactly (written d lba data)) (may_also_hold (written d lba data)
    (exactly d)))
    as Hbuf.
  { intros d lba data. split; [|apply same_snaps_refl]. intros l u ->%elem_of_list_singleton. left. }
  assert (∀ d lba data, image_within (exactly (written d lba data)) (forced lba data (exactly d))) as Hfor.
  { intros d lba data. split; [|apply same_snaps_refl]. intros l u ->%elem_of_list_singleton. cbn.
    destruct (data_at lba data l); left. }
  assert (∀ d, image_within (exactly d) (exactly d)) as Hx by (intros; apply image_within_refl).
  destruct a as [[|lba data []|lba data told []|lba count []|n []|n []|n []|[]|[]|? ? ? []|[]]| |
    | |[]|[]]; try done;
    try (apply allows_refl); split_and!; try done; try apply same_disk_refl; destruct p; try destruct told;
    apply Hone; first [apply Hx|apply Hbuf|apply Hfor].
Qed.

(** What a step does is its deed, however it is spelled. *)
Lemma act_looks p s a : deed_of a = Looks → act p s a = s.
Proof. by destruct a as [[| ? ? []| ? ? ? []| ? ? []| ? []| ? []| ? []|[]|[]| |]| | | | |]. Qed.
Lemma act_flushes p s a : deed_of a = Flushes → act p s a = act p s (Event (Restart Ok)).
Proof. by destruct a as [[| ? ? []| ? ? ? []| ? ? []| ? []| ? []| ? []|[]|[]|? ? ? []|]| | | |[]|[]]. Qed.
Lemma act_snaps p s a n : deed_of a = Snaps n → act p s a = act p s (Event (Snapshot n Ok)).
Proof. destruct a as [[| ? ? []| ? ? ? []| ? ? []| ? []| ? []| ? []|[]|[]|? ? ? []|]| | | |[]|[]]; try done.
  by intros [= ->]. Qed.
Lemma act_drops p s a n : deed_of a = Drops n → act p s a = act p s (Event (Delete n Ok)).
Proof. destruct a as [[| ? ? []| ? ? ? []| ? ? []| ? []| ? []| ? []|[]|[]|? ? ? []|]| | | |[]|[]]; try done.
  by intros [= ->]. Qed.
Lemma act_reverts p a : deed_of a = Reverts → ∃ n, ∀ s, act p s a = act p s (Event (Revert n Ok)).
Proof. destruct a as [[| ? ? []| ? ? ? []| ? ? []| ? []| ? []| n []|[]|[]|? ? ? []|]| | | |[]|[]]; try done.
  intros _. by exists n. Qed.
Lemma act_sets p a lba count : p ≠ Prefix → deed_of a = Sets lba count →
  ∃ data u, length data = count ∧ ∀ s, act p s a = data_of lba data u p s.
Proof.
  intros Hp. destruct a as [[|? data []|? data told []| ? n []| ? []| ? []| ? []|[]|[]|? ? ? []|]| |
    | |[]|[]];
    try done; intros [= -> <-].
  - exists data, false. split; [done|]. by destruct p.
  - exists data, told. split; [done|]. by destruct p, told.
  - exists (replicate n zero), false. rewrite replicate_length. split; [done|]. by destruct p.
Qed.

Lemma act_comm p tolerates v s a b : hurries p (deed_of b) (deed_of a) = false → current p s →
  power s = true →
  suited tolerates v s a → suited tolerates v s b →
  allows (act p (act p s a) b) (act p (act p s b) a).
Proof.
  intros Hcl Hc Hp Hga Hgb.
  destruct (decide (deed_of a = Looks)) as [Ha|Ha]; [rewrite !(act_looks _ _ a) by done; apply allows_refl|].
  destruct (decide (deed_of b = Looks)) as [Hb|Hb]; [rewrite !(act_looks _ _ b) by done; apply allows_refl|].
  destruct (decide (deed_of b = Flushes)) as [Hf|Hf].
  { rewrite !(act_flushes _ _ b) by done. apply act_flush. intros Heq. rewrite Heq, Hf in Hcl. done. }
  assert (p ≠ Prefix) as Hnp.
  { intros ->. by destruct (deed_of b), (deed_of a). }
  destruct (deed_of b) as [| |lba' count'|n'|n'| |] eqn:Hdb, (deed_of a) as [| |lba count|n|n| |] eqn:Hda;
    try done;
    try (by destruct p).
  - destruct p; [|done..]. destruct (act_sets Ack b lba' count') as (data' & u' & <- & Hb'); [done..|].
    rewrite !(act_flushes _ _ a) by done. rewrite !Hb'. apply allows_refl.
  - destruct (act_sets p a lba count) as (data & u & <- & Ha'); [done..|].
    destruct (act_sets p b lba' count') as (data' & u' & <- & Hb'); [done..|]. rewrite !Ha', !Hb'.
    apply data_comm; [done..|]. destruct p; [|done|]; cbn in Hcl; unfold meets in *; by rewrite andb_comm.
  - destruct p; [|done..]. destruct (act_sets Ack b lba' count') as (data' & u' & <- & Hb'); [done..|].
    rewrite !(act_drops _ _ a n) by done. rewrite !Hb'. apply allows_refl.
  - rewrite !(act_snaps _ _ b n'), !(act_flushes _ _ a) by done. destruct p; [|done|]; apply allows_refl.
  - rewrite !(act_drops _ _ b n'), !(act_flushes _ _ a) by done. destruct p; [|done|]; apply allows_refl.
  - rewrite !(act_drops _ _ b n') by done.
    destruct (act_sets p a lba count) as (data & u & <- & Ha'); [done..|]. rewrite !Ha'.
    split_and!; [done|done|apply same_disk_refl|]. destruct p; [apply images_within_refl|done|]. cbn.
    apply within_one. split; [|destruct u; apply same_snaps_refl]. intros l w. cbn.
    intros ->%elem_of_list_singleton. destruct u; cbn; [|left]. destruct (data_at lba data l); left.
  - destruct (act_reverts p b Hdb) as [n Hb']. rewrite !Hb', !(act_flushes _ _ a) by done.
    destruct p; [|done|]; apply allows_refl.
Qed.

Theorem swap p tolerates v s a b s1 s2 : needs p b a = false → deed_of a ≠ Other → deed_of b ≠ Other →
  current p s → entry_step p tolerates v s a s1 → entry_step p tolerates v s1 b s2 →
  ∃ t1 t2, entry_step p tolerates v s b t1 ∧ entry_step p tolerates v t1 a t2 ∧ allows s2 t2.
Proof.
  unfold needs. intros Hcon Ha Hb Hc H1 H2. apply orb_false_iff in Hcon as [[Hba Hab]%orb_false_iff Hcl].
  apply entry_act in H1 as (Hp & Hga & ->); [|done]. apply entry_act in H2 as (_ & Hgb & ->); [|done].
  assert (suited tolerates v s b) as Hgb'.
  { eapply suited_alike; [done|apply alike_sym; by apply act_alike|done]. }
  exists (act p s b), (act p (act p s b) a). split_and!.
  - by apply entry_act.
  - apply entry_act; [done|]. rewrite act_power. split_and!; [done| |done].
    eapply suited_alike; [done|by apply act_alike|done].
  - by eapply act_comm.
Qed.

End Swaps.
