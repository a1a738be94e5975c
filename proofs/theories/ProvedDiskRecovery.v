(** A checkpoint, recovery, and a new disk: whenever the power fails, the disk is as it was. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskAppend.

Section Log.
Context `{!blocks, !blocks_laws, !checkpoint_format} {torn : tearing block}.
Implicit Types (f : contents block) (d : disk block) (P : contents block → Prop).

(** ** The log *)

(** What replay has found after the records [rs]. *)
Definition found_of {M} (step : log_record → M → M) (fst : nat) (x : M) (rs : list logged_record) : found M :=
  Found (fst + total rs) (foldl (λ x r, step r.1 x) x rs) (newest_of rs).
Definition without_last (rs : list logged_record) : list logged_record := take (pred (length rs)) rs.

Lemma start_found {M} (step : log_record → M → M) fst x :
  Found fst x [] = found_of step fst x [] ∧ found_of step fst x [] = found_of step fst x (without_last []).
Proof. split; [|done]. unfold found_of. by rewrite total_nil, Nat.add_0_r. Qed.

Lemma before_snoc (rs : list logged_record) r : without_last (rs ++ [r]) = rs.
Proof. unfold without_last. rewrite app_length, Nat.add_1_r. apply take_app. Qed.

Lemma found_snoc {M} (step : log_record → M → M) fst x rs r dg k : size_of r = k →
  found_of step fst x (rs ++ [(r, dg)]) =
  Found (k + found_next (found_of step fst x rs)) (step r (found_maps (found_of step fst x rs)))
    (places_of r).
Proof.
  intros <-. unfold found_of, newest_of. rewrite total_snoc, last_snoc, foldl_app. simpl. f_equal. lia.
Qed.

Lemma digest_snoc rs r dg : digest_of (rs ++ [(r, dg)]) = dg.
Proof. unfold digest_of. by rewrite last_snoc. Qed.

(** The records [rs] stand in the log, one behind the other. *)
Definition stand (g : geometry) f (fst : nat) (rs : list logged_record) : Prop :=
  (∀ old r rest, rs = old ++ r :: rest → lies_at g f (fst + total old) r ∧ in_bounds g r.1) ∧
  total rs ≤ log_blocks g.

Lemma durable_stand g f s ser fst m0 rs : durable g f s ser fst m0 rs → stand g f fst rs.
Proof.
  intros Hdur. split; [|apply Hdur]. intros old r rest Hrs. split; [by eapply at_log|].
  apply (log_bounded _ _ _ _ _ _ _ Hdur (length old)). by rewrite Hrs, list_lookup_middle.
Qed.

Lemma no_head g r : in_bounds g r → head_of r = None.
Proof. by destruct r. Qed.

Section Replaying.
Context {M A : Type} (P : contents block → Prop) (Q : A → medium block → Prop) (step : log_record → M → M).
Context (x : M) (g : geometry) (f : contents block) (fst : nat) (rs : list logged_record).
Context (k : found M → found M → nat * nat → program block A).
Local Notation replay_from fuel old :=
  (replay step g fuel (found_of step fst x (without_last old)) (found_of step fst x old) (digest_of old) k).

(** Replay comes to the end of the records. *)
Lemma crash_safe_replay : stand g f fst rs → safe P (Medium f []) →
  crash_safe P Q (replay_from (log_blocks g - length rs) rs) (Medium f []) →
  ∀ rest old fuel, rs = old ++ rest → fuel = log_blocks g - length old →
  crash_safe P Q (replay_from fuel old) (Medium f []).
Proof.
  intros [Hstand Hfits] HP Hk. induction rest as [|r rest IH]; intros old fuel Hrs Hfuel.
  - rewrite app_nil_r in Hrs. by subst.
  - pose proof (length_total rs) as Hlen. rewrite Hrs, app_length in Hlen at 1. simpl in Hlen.
    destruct (Hstand _ _ _ Hrs) as [Hlies Hbounds].
    destruct fuel as [|fuel]; [lia|]. cbn [replay]. split; [done|]. unfold read_block. cbn [unflushed overlay
      stable]. specialize (IH (old ++ [r]) fuel). rewrite before_snoc in IH.
    destruct r as [r dg]. rewrite digest_snoc in IH.
    pose proof (size_positive r) as Hsize. unfold lies_at in Hlies. cbn [Datatypes.fst snd] in Hlies, Hbounds.
    cbn [found_of found_next].
    destruct (pred (size_of r)) as [|bodies] eqn:Hbodies.
    + rewrite Hlies, decide_True, (no_head _ _ Hbounds) by done.
      rewrite (found_snoc step fst x old r dg 1) in IH by lia. apply IH; [by rewrite Hrs, <-(assoc_L (++))|].
      rewrite app_length. simpl. lia.
    + destruct Hlies as [Hlies Hgathered]. rewrite Hlies, decide_True by done. cbn [head_of].
      apply crash_safe_read_all; [done|]. split; [done|]. intros _. fold (bodies_at g f (fst + total old)
        (S bodies)). rewrite decide_True, Hgathered by done.
      rewrite (found_snoc step fst x old r dg (S (S bodies))) in IH by lia.
      apply IH; [by rewrite Hrs, <-(assoc_L (++))|]. rewrite app_length. simpl. lia.
Qed.
End Replaying.

(** The log is replayed on [x], whatever that is, and its newest record confirmed or dropped. *)
Lemma crash_safe_log {M A} P (Q : A → medium block → Prop) (step : log_record → M → M) x y f d k :
  represents y f d ∨ unconfirmed y f d → (∀ f, recoverable (shape y) d f → P f) →
  (∀ f' m0 rs, holds_checkpoint (shape y) f (slot y) (serial y) (first_record y) m0 → represents y f' d →
    (∀ i r, rs !! i = Some r → in_bounds (shape y) r.1) → current y = replayed m0 rs →
    crash_safe P Q (k (Found (next_record y) (foldl (λ x r, step r.1 x) x rs) (newest y))) (Medium f' [])) →
  crash_safe P Q (replay step (shape y) (log_blocks (shape y)) (Found (first_record y) x [])
    (Found (first_record y) x []) (digest []) (λ before now dg, confirm (shape y) before now dg k))
    (Medium f []).
Proof.
  intros Hrec HP Hk. assert (recoverable (shape y) d f) as Hr by by exists y.
  pose proof (safe_recoverable _ _ _ _ Hr HP) as Hsafe. set (g := shape y) in *.
  set (confirming := λ before now dg, confirm g before now dg k).
  (* from the end of the records on *)
  assert (∀ rs, stand g f (first_record y) rs →
    crash_safe P Q (replay step g (log_blocks g - length rs)
      (found_of step (first_record y) x (without_last rs)) (found_of step (first_record y) x rs)
      (digest_of rs) confirming) (Medium f []) →
    crash_safe P Q (replay step g (log_blocks g) (Found (first_record y) x []) (Found (first_record y) x [])
      (digest []) confirming) (Medium f [])) as Hstart.
  { intros rs Hstand Hc.
    pose proof (crash_safe_replay P Q step x g f _ rs confirming Hstand Hsafe Hc rs [] (log_blocks g) eq_refl)
      as Hreplay.
    destruct (start_found step (first_record y) x) as [-> Heq]. rewrite Heq at 1. apply Hreplay. simpl. lia. }
  (* no record behind them *)
  assert (∀ m0 rs, durable g f (slot y) (serial y) (first_record y) m0 rs →
    crash_safe P Q (confirming (found_of step (first_record y) x (without_last rs))
      (found_of step (first_record y) x rs) (digest_of rs)) (Medium f []) →
    crash_safe P Q (replay step g (log_blocks g) (Found (first_record y) x []) (Found (first_record y) x [])
      (digest []) confirming) (Medium f [])) as Hends.
  { intros m0 rs Hdur Hc. apply (Hstart rs); [by eapply durable_stand|].
    destruct (log_blocks g - length rs) as [|fuel]; [done|]. split; [done|].
    unfold read_block. cbn [unflushed overlay stable found_of found_next].
    destruct (unseal _ _) as [[n [r dg]]|] eqn:Hn; [|done].
    rewrite decide_False; [done|]. apply (at_stale _ _ _ _ _ _ _ Hdur) in Hn. lia. }
  (* the newest record is there *)
  assert (∀ f' m0 rs, represents y f' d → (∀ i r, rs !! i = Some r → in_bounds g r.1) →
    holds_checkpoint g f (slot y) (serial y) (first_record y) m0 →
    next_record y = first_record y + total rs → current y = replayed m0 rs → confirmed y f' rs →
    safe P (Medium f' []) →
    crash_safe P Q (confirming (found_of step (first_record y) x (without_last rs))
      (found_of step (first_record y) x rs) (digest_of rs)) (Medium f' [])) as Hconfirms.
  { intros f' m0 rs Hy Hin Hheld Hnext Hcur [Hnewest _ _ Hthere] Hsafe'.
    unfold confirming, confirm. apply crash_safe_read_all; [done|]. split; [done|].
    intros _. cbn [found_of found_newest]. rewrite Hnewest in Hthere. rewrite decide_True by done.
    unfold found_of. rewrite <-Hnext, <-Hnewest. by apply (Hk f' m0). }
  destruct Hrec as [Hy|Hy].
  { pose proof Hy as [(m0&rs&Hdur&Hnext&Hcur&_&Hconf) _]. apply (Hends _ _ Hdur).
    apply (Hconfirms f m0); try done; apply Hdur. }
  pose proof Hy as [Hblanked Hwithout].
  assert (0 < log_blocks g ∧ torn_unread g) as [Hpos Hunread].
  { destruct Hblanked as [(m0&rs&Hdur&_) _]. split; apply Hdur. }
  destruct (Hunread (log_address g (next_record y))) as [Hwhole Htorn]; [by apply log_address_bound|].
  assert (∀ k, has_room y = true → (∀ f', represents y f' d → (∀ a, f' a = blanked y f a) →
    crash_safe P Q k (Medium f' [])) → crash_safe P Q
      (WriteBlock (log_address g (next_record y)) blank_block (FlushBlocks k)) (Medium f [])) as Hdrop.
  { intros k' Hroom Hk'. assert (∀ f', (∀ a, a ≠ log_address g (next_record y) → f' a = f a) →
      no_record (f' (log_address g (next_record y))) → represents y f' d) as Hdropped.
    { intros f' Hold Hnone. apply (represents_no_record y (blanked y f)); [done|done| |done].
      intros a _ Ha. unfold blanked. fold g. by rewrite decide_False, Hold. }
    apply crash_safe_commit.
    - done.
    - intros f' Hold Hla. apply HP. exists y. split; [done|]. destruct Hla as [Hla|[Hla|Hla]].
      + right. eapply unconfirmed_ext; [|done]. intros a.
        by destruct (decide (a = log_address g (next_record y))) as [->|]; [|apply Hold].
      + left. apply Hdropped; [done|]. rewrite Hla. apply blank_record.
      + left. apply Hdropped; [done|]. apply unsealed_record, Htorn; [done|].
        pose proof (log_address_bound g (next_record y) Hpos). unfold superblock. lia.
    - intros f' Hla Hold. apply Hk'.
      + apply Hdropped; [done|]. rewrite Hla. apply blank_record.
      + intros a. unfold blanked. fold g. destruct (decide _) as [->|]; [done|by apply Hold]. }
  destruct Hwithout as [(m0&rs&r&Hdur&Hnext&Hcur&Hnewest&_&Hno)|(bodies&db&dg&Hhead&Hroom&Hno)].
  - apply (Hends _ _ Hdur). unfold confirming, confirm. apply crash_safe_read_all; [done|]. split; [done|].
    intros Hcompared. rewrite before_snoc. cbn [found_of found_newest found_next] in *.
    unfold newest_of, digest_of in *. rewrite last_snoc in *. rewrite decide_False by by apply Hno.
    unfold found_of. rewrite <-Hnext. apply Hdrop.
    + pose proof (log_fits _ _ _ _ _ _ _ Hdur) as Hfits. rewrite total_snoc in Hfits.
      pose proof (size_positive r.1). apply bool_decide_eq_true_2. unfold g in *. lia.
    + intros f' Hy' _. unfold newest_of. rewrite <-Hnewest. apply (Hk f' m0); try done; [apply Hdur|].
      intros i r' Hi. eapply (log_bounded _ _ _ _ _ _ _ Hdur), lookup_app_l_Some, Hi.
  - pose proof Hblanked as [(m0&rs&Hdur&Hnext&Hcur&_&Hconf) _].
    apply bool_decide_eq_true_1 in Hroom.
    assert (holds_checkpoint g f (slot y) (serial y) (first_record y) m0) as Hheld.
    { eapply holds_same; [|apply Hdur]. intros a Ha. unfold blanked. rewrite decide_False; [done|].
      by eapply checkpoint_no_log. }
    apply (Hstart rs).
    + destruct (durable_stand _ _ _ _ _ _ _ Hdur) as [Hstand Hfits]. split; [|done].
      intros old r rest Hrs. destruct (Hstand _ _ _ Hrs) as [Hlies ?]. split; [|done].
      eapply (lies_before _ _ _ _ rs 1); [done|unfold g in *; lia| |done]. intros i Hi.
      unfold blanked. fold g. rewrite decide_False; [done|]. intros Heq. apply Hi. exists 0.
      split; [lia|]. by rewrite Nat.add_0_r, <-Hnext.
    + pose proof (length_total rs) as Hlen.
      destruct (log_blocks g - length rs) as [|fuel] eqn:Hfuel; [unfold g in *; lia|]. split; [done|].
      unfold read_block. cbn [unflushed overlay stable found_of found_next]. rewrite <-Hnext. fold g in Hhead.
      rewrite Hhead, decide_True by done. cbn [head_of]. apply crash_safe_read_all; [done|].
      fold (bodies_at g f (next_record y) bodies). split; [done|]. intros Hc.
      rewrite decide_False by by apply Hno. apply Hdrop.
      * apply bool_decide_eq_true_2. unfold g in *. lia.
      * intros f' Hy' Hf'. apply (Hconfirms f' m0); try done; [apply Hdur| |].
        -- eapply confirmed_frame; [|done]. intros p _. apply Hf'.
        -- by eapply safe_represents.
Qed.

Lemma recoverable_holds y f d : represents y f d ∨ unconfirmed y f d →
  ∃ m0, holds_checkpoint (shape y) f (slot y) (serial y) (first_record y) m0.
Proof.
  intros [[(m0&rs&Hdur&_) _]|[[(m0&rs&Hdur&_) _] _]]; exists m0; [apply Hdur|].
  eapply holds_same; [|apply Hdur]. intros a Ha. unfold blanked. rewrite decide_False; [done|].
  eapply checkpoint_no_log; [done|apply Hdur].
Qed.

(** What is free may be looked up again. *)
Definition with_free (y : memory) (fr : gmap nat ()) : memory :=
  Memory (shape y) (current y) fr (next_record y) (first_record y) (serial y) (slot y) (newest y).

Lemma represents_free y f d fr : represents y f d → well_formed (current y) fr →
  (∀ p, is_Some (fr !! p) → p < data_blocks (shape y)) → (∀ p, p ∈ newest y → fr !! p = None) →
  represents (with_free y fr) f d.
Proof.
  intros [(m0&rs&?&?&?&[Hmid _]&[? ? ? ?]) [_ Hag]] Hwf Hbelow Hkept. split; [|done].
  exists m0, rs. by split_and!.
Qed.
End Log.

Section Recovery.
Context `{!blocks, !blocks_laws} {torn : tearing block}.
Implicit Types (f : contents block) (d : disk block) (P : contents block → Prop).

(** ** Checkpoints *)

Lemma other_body_not_needed y f d i : represents y f d → i < slot_blocks (shape y) →
  ¬ needed y (body_address (shape y) (negb (slot y)) i).
Proof.
  intros [(m0&rs&Hdur&_) _] Hi. pose proof (log_positive _ _ _ _ _ _ _ Hdur) as Hpos.
  intros [[[n Heq]|[Hlow|(j&?&Heq)]]|[(x&p&_&_&Heq)|(p&_&Heq)]];
    [pose proof (log_address_bound (shape y) n Hpos)|..]; unfold body_address, data_address in *;
      [lia|lia|..];
    destruct (slot y); simpl in *; lia.
Qed.

Lemma body_address_inj g s i j : body_address g s i = body_address g s j → i = j.
Proof. unfold body_address. lia. Qed.

(** The body of the other slot is written, and flushed. *)
Definition checkpointed (y : memory) : memory :=
  Memory (shape y) (forgotten (current y)) (free y) (next_record y) (next_record y) (S (serial y))
    (negb (slot y)) [].

Lemma represents_checkpointed y f f' d bs header :
  represents y f d → length bs ≤ slot_blocks (shape y) →
    unpack_many maps_codec bs = Some (forgotten (current y)) →
  unseal header_codec header = Some (S (serial y), (next_record y, length bs)) →
  f <$> (body_address (shape y) (negb (slot y)) <$> seq 0 (length bs)) = bs →
  f' (header_address (negb (slot y))) = header →
  (∀ a, a ≠ header_address (negb (slot y)) → f' a = f a) →
  represents (checkpointed y) f' d.
Proof.
  intros [(m0&rs&[[Hsuper (len&Hlen&Hheader&Hbody) Hother] Hin Hlog Hstale Hfits Hpos Hwhole Hnum]&Hnext&Hcur&
    [Hmid Hbelow]&_) [Hwf Hag]] Hbs Hmaps Hhead Hf Hnew Hold.
  pose proof (header_address_bound (negb (slot y))) as Hbound.
  assert (header_address (slot y) ≠ header_address (negb (slot y))) by by destruct (slot y).
  split; [|split].
  - exists (forgotten (current y)), [].
    split; [|split_and!; [by rewrite Nat.add_0_r|done|split; [|done]|split]]; try done.
    2:{ intros x p Hp%used_middle_some. by eapply Hmid. }
    2:{ split; [constructor|by intros ? ?%elem_of_nil]. }
    2:{ by intros ? ?%elem_of_nil. }
    split; simpl; [split; simpl|..].
    + rewrite Hold; [done|unfold superblock; lia].
    + exists (length bs). split; [done|]. rewrite Hnew, Hhead. split; [done|]. rewrite <-Hmaps. f_equal.
      etransitivity; [|exact Hf].
      apply list_fmap_ext. intros i a (j&(->&Hj)%lookup_seq&->)%list_lookup_fmap_Some. apply Hold.
      unfold body_address. lia.
    + rewrite negb_involutive. intros h. rewrite Hold by done. rewrite Hheader. intros [= <-]. simpl. lia.
    + done.
    + intros old r rest Hrs. by destruct old.
    + intros i n r. rewrite Hold by (pose proof (log_address_bound (shape y) i Hpos); lia). intros ?%Hstale.
      rewrite ?total_nil. lia.
    + rewrite ?total_nil. lia.
    + done.
    + done.
    + lia.
  - by apply forgotten_well_formed.
  - eapply agrees_frame; [|by eapply forgotten_agrees]. intros a (x&p&_&_&->). apply Hold. simpl.
    unfold data_address. lia.
Qed.

(** What tearing leaves of a header is none. *)
Lemma torn_header y f d s : represents y f d →
  ¬ tears (header_address s) ∧ ∀ b, tears_to (header_address s) b → unsealed b = None.
Proof.
  intros [(m0&rs&Hdur&_) _]. pose proof (header_address_bound s).
  destruct (log_unread _ _ _ _ _ _ _ Hdur (header_address s)) as [? Hno]; [lia|]. split; [done|].
  intros b Hb. apply Hno; [done|]. unfold superblock. lia.
Qed.

(** The other slot may be without a header. *)
Lemma represents_without_header y f f' d :
  represents y f d → (∀ a, a ≠ header_address (negb (slot y)) → f' a = f a) →
  unseal header_codec (f' (header_address (negb (slot y)))) = None → represents y f' d.
Proof.
  intros Hy Hold Hnone. pose proof (header_address_bound (negb (slot y))) as Hbound.
  apply (represents_moved y f); [| | |done].
  - intros m0 [Hsuper (len&Hlen&Hheader&Hbody) Hother]. split.
    + by rewrite Hold by (unfold superblock; lia).
    + exists len. rewrite Hold by by destruct (slot y). split; [done|]. split; [done|]. rewrite <-Hbody.
      f_equal. apply list_fmap_ext. intros i a (j&(->&Hj)%lookup_seq&->)%list_lookup_fmap_Some. apply Hold.
      unfold body_address. lia.
    + intros h. by rewrite Hnone.
  - destruct Hy as [(m0&rs&Hdur&_) _]. intros n. apply Hold.
    pose proof (log_address_bound (shape y) n (log_positive _ _ _ _ _ _ _ Hdur)). lia.
  - intros a Ha. apply Hold.
    assert (∃ p, a = data_address (shape y) p) as [p ->].
    { destruct Ha as [(x&p&_&_&->)|(p&_&->)]; by exists p. }
    unfold data_address. lia.
Qed.

Lemma crash_safe_checkpoint {A} P (Q : A → medium block → Prop) y k f d :
  represents y f d → (∀ f, recoverable (shape y) d f → P f) →
  (∀ y' f', represents y' f' d → shape y' = shape y → crash_safe P Q (k y') (Medium f' [])) →
  crash_safe P Q (checkpoint y k) (Medium f []).
Proof.
  intros Hy HP Hk. unfold checkpoint. fold (forgotten (current y)).
  destruct (pack_many _ _) as [bs|] eqn:Hbs; [|by apply (Hk y)].
  destruct (seal _) as [header|] eqn:Hheader; [|by apply (Hk y)].
  apply pack_many_unpack in Hbs as [Hlen Hmaps]; [|apply maps_round_trips].
  apply seal_unseal in Hheader; [|apply header_round_trips].
  set (addresses := body_address (shape y) (negb (slot y)) <$> seq 0 (length bs)).
  assert ((zip addresses bs).*1 = addresses) as Haddresses.
  { apply fst_zip. unfold addresses. rewrite fmap_length, seq_length. lia. }
  assert (∀ a, a ∈ addresses → ¬ needed y a) as Hfree.
  { intros a (i&->&Hi%elem_of_seq)%elem_of_list_fmap. eapply other_body_not_needed; [done|lia]. }
  apply crash_safe_write_flush with (S := λ a, ¬ needed y a).
  - intros f' Hf'. apply HP, recoverable_represents. eapply represents_frame; [|done]. intros a Ha.
    apply Hf'. tauto.
  - intros a. rewrite Haddresses. apply Hfree.
  - rewrite Haddresses. apply NoDup_fmap_2; [|apply NoDup_seq]. intros i j. apply body_address_inj.
  - intros f1 Hnew1 Hold1. rewrite Haddresses in Hold1.
    assert (represents y f1 d) as Hy1.
    { eapply represents_frame; [|done]. intros a Ha. apply Hold1. intros Hin. by apply (Hfree a). }
    assert (f1 <$> addresses = bs) as Hbody.
    { apply list_eq. intros i. rewrite list_lookup_fmap. destruct (addresses !! i) as [a|] eqn:Ha; simpl.
      - destruct (lookup_lt_is_Some_2 bs i) as [b Hb].
        { apply lookup_lt_Some in Ha. unfold addresses in Ha. by rewrite fmap_length, seq_length in Ha. }
        rewrite Hb. f_equal. apply Hnew1, elem_of_list_lookup_2 with i. by rewrite lookup_zip_with, Ha, Hb.
      - symmetry. apply lookup_ge_None_2. apply lookup_ge_None_1 in Ha. unfold addresses in Ha.
        by rewrite fmap_length, seq_length in Ha. }
    destruct (torn_header y f d (negb (slot y)) Hy) as [Hwhole Htorn].
    apply crash_safe_commit.
    + done.
    + intros f2 Hold2 [Hsame|[Hnew2|Hno]].
      * apply HP, recoverable_represents. eapply represents_ext; [|done]. intros a.
        by destruct (decide (a = header_address (negb (slot y)))) as [->|]; [|apply Hold2].
      * apply HP, (recoverable_represents (checkpointed y)).
        apply (represents_checkpointed y f1 f2 d bs header); done.
      * apply HP, recoverable_represents, (represents_without_header y f1); [done|done|]. by apply unread,
        Htorn.
    + intros f2 Hnew2 Hold2. apply Hk; [|done]. apply (represents_checkpointed y f1 f2 d bs header); done.
Qed.

(** ** Recovery *)

Lemma newer_found g f s ser fst m0 len :
  holds_maps g f s ser fst m0 → unseal header_codec (f (header_address s)) = Some (ser, (fst, len)) →
  newer (unseal header_codec (f 1)) (unseal header_codec (f 2)) = Some (s, (ser, (fst, len))).
Proof.
  intros [_ _ Hother] Hheader. destruct s; simpl in *; rewrite Hheader.
  - destruct (unseal header_codec (f 1)) as [h|]; simpl; [|done].
    by rewrite decide_True by (by apply (Hother h)).
  - destruct (unseal header_codec (f 2)) as [h|]; simpl; [|done]. rewrite decide_False; [done|].
    specialize (Hother h eq_refl). lia.
Qed.

Lemma represents_collected y f d : represents y f d → represents (collect y) f d.
Proof.
  intros Hy. apply represents_free; [done|..].
  - destruct Hy as [_ [Hwf _]]. by eapply collected_well_formed.
  - apply collected_below.
  - intros p. apply collected_kept.
Qed.

Lemma crash_safe_recover {A} P (Q : A → medium block → Prop) g f d k :
  recoverable g d f → (∀ f, recoverable g d f → P f) →
  (∀ y' f', represents y' f' d → shape y' = g → crash_safe P Q (k (Some y')) (Medium f' [])) →
  crash_safe P Q (recover k) (Medium f []).
Proof.
  intros Hrec HP Hk. pose proof (safe_recoverable g d P f Hrec HP) as HPf.
  destruct Hrec as (y&<-&Hy). destruct (recoverable_holds _ _ _ Hy) as [m0 Hheld].
  pose proof Hheld as [Hsuper (len&Hlen&Hheader&Hbody) _].
  simpl. split; [done|]. unfold read_block. simpl. rewrite Hsuper. split; [done|split; [done|]].
  unfold read_block. simpl. rewrite (newer_found _ _ _ _ _ _ _ Hheld Hheader).
  apply crash_safe_read_all; [done|]. rewrite Hbody. apply (crash_safe_log _ _ _ _ y f d _ Hy HP).
  intros f' m1 rs [_ (len'&_&Hheader'&Hbody') _] Hy' _ Hcur. simplify_eq.
  change (foldl _ m0 rs) with (replayed m0 rs). rewrite <-Hcur.
  apply Hk; [|done]. by apply represents_collected.
Qed.

End Recovery.
