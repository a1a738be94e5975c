(** Reading, and putting a record into the log: whenever the power fails, the disk is as before or as after.
*)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps.

Section Append.
Context `{!blocks, !blocks_laws, !checkpoint_format} {torn : tearing block}.
Implicit Types (f : contents block) (d : disk block) (P : contents block → Prop).

Lemma crash_safe_read_all {A} P (Q : A → medium block → Prop) addresses f k :
  safe P (Medium f []) → crash_safe P Q (k (f <$> addresses)) (Medium f []) →
  crash_safe P Q (read_all addresses k) (Medium f []).
Proof. intros HP. revert k. induction addresses; simpl; intros k Hk; [done|]. split;
  [done|]. by apply IHaddresses. Qed.

Definition read_from (g : geometry) f (p : option nat) : block :=
  match p with Some p => f (data_address g p) | None => zero_block end.

Lemma crash_safe_read_places {A} P (Q : A → medium block → Prop) g places f k :
  safe P (Medium f []) → crash_safe P Q (k (read_from g f <$> places)) (Medium f []) →
  crash_safe P Q (read_places g places k) (Medium f []).
Proof.
  intros HP. revert k. induction places as [|[p|] places IH]; simpl; intros k Hk; [done| |by apply IH].
  split; [done|]. by apply IH.
Qed.

Lemma represents_ext y f f' d : (∀ a, f' a = f a) → represents y f d → represents y f' d.
Proof. intros Hf. by apply represents_frame. Qed.

Lemma recoverable_represents y f d : represents y f d → recoverable (shape y) d f.
Proof. intros Hy. exists y. split; [done|by left]. Qed.

Lemma unconfirmed_ext y f f' d : (∀ a, f' a = f a) → unconfirmed y f d → unconfirmed y f' d.
Proof.
  intros Hf [Hy (m0&rs&r&Hdur&?&?&?&?&Hno)]. split.
  - eapply represents_ext; [|done]. intros a. unfold blanked. by destruct (decide _).
  - exists m0, rs, r. rewrite (blocks_at_frame _ f) by (by intros; apply Hf).
    split_and!; try done. apply (durable_frame _ f); [by intros; apply Hf|done].
Qed.

Lemma recoverable_ext g f f' d : (∀ a, f' a = f a) → recoverable g d f → recoverable g d f'.
Proof.
  intros Hf (y&Hg&[Hy|Hy]); exists y; (split; [done|]); [left|right];
    [by eapply represents_ext|by eapply unconfirmed_ext].
Qed.

Lemma safe_recoverable g d P f : recoverable g d f → (∀ f, recoverable g d f → P f) → safe P (Medium f []).
Proof. intros Hf HP f' Hf'. apply HP. eapply recoverable_ext; [|done]. by apply leaves_stable. Qed.

Lemma safe_represents P y f d :
  represents y f d → (∀ f, recoverable (shape y) d f → P f) → safe P (Medium f []).
Proof. intros Hy. apply safe_recoverable. by apply recoverable_represents. Qed.

(** ** A record goes into the log *)

(** Nothing but the block of the next record changes. *)
Lemma durable_next g f f' s ser fst m0 rs :
  let a := log_address g (fst + length rs) in
  (∀ n r, unseal log_codec (f' a) = Some (n, r) → n < fst + length rs) →
  length rs < log_blocks g → (∀ a', fixed_address g s a' → a' ≠ a → f' a' = f a') →
  durable g f s ser fst m0 rs → durable g f' s ser fst m0 rs.
Proof.
  intros a Hnew Hroom Hold [Hheld Hin Hlog Hstale Hfits Hpos Hwhole Hnum]. split; try done.
  - eapply holds_same; [|done]. intros a' Ha'. apply Hold; [by right|]. by eapply checkpoint_no_log.
  - intros i r Hi. assert (i < length rs) by by eapply lookup_lt_Some. rewrite Hold; [by apply Hlog| |].
    + left. by eexists.
    + apply log_address_distinct. lia.
  - intros i n r. destruct (decide (log_address g i = a)) as [->|Hi]; [by apply Hnew|].
    rewrite Hold; [by apply Hstale|left; by eexists|done].
Qed.

Lemma durable_logged g f f' s ser fst m0 rs r :
  let a := log_address g (fst + length rs) in
  unseal log_codec (f' a) = Some (fst + length rs, r) → in_bounds g r.1 →
  length rs < log_blocks g → (∀ a', fixed_address g s a' → a' ≠ a → f' a' = f a') →
  durable g f s ser fst m0 rs → durable g f' s ser fst m0 (rs ++ [r]).
Proof.
  intros a Hnew Hbounds Hroom Hold [Hheld Hin Hlog Hstale Hfits Hpos Hwhole Hnum]. split; try done.
  - eapply holds_same; [|done]. intros a' Ha'. apply Hold; [by right|]. by eapply checkpoint_no_log.
  - intros i r'. rewrite lookup_app_Some. intros [?|[_ [_ ->]%list_lookup_singleton_Some]]; [by eapply
    Hin|done].
  - intros i r'. rewrite lookup_app_Some. intros [Hi|[Hi Hr']].
    + assert (i < length rs) by by eapply lookup_lt_Some. rewrite Hold; [by apply Hlog| |].
      * left. by eexists.
      * apply log_address_distinct. lia.
    + apply list_lookup_singleton_Some in Hr' as [? ->].
      replace (fst + i) with (fst + length rs) by lia. exact Hnew.
  - intros i n r'. rewrite app_length. simpl. destruct (decide (log_address g i = a)) as [->|Hi].
    + rewrite Hnew. intros [= <- <-]. lia.
    + rewrite Hold; [|left; by eexists|done]. intros ?%Hstale. lia.
  - rewrite app_length. simpl. lia.
Qed.

(** A block that holds no record of the log, and cannot be taken for one. *)
Definition no_record (b : block) : Prop := ∀ n r, unseal log_codec b = Some (n, r) → n = 0.

Lemma blank_record : no_record blank_block.
Proof. intros n r. apply blank_number. Qed.

Lemma unsealed_record b : unsealed b = None → no_record b.
Proof. intros Hb n r. by rewrite unread. Qed.

(** All but the block of the next record is as it was, and there is none. *)
Lemma represents_blanked y f f' d :
  represents y f d → has_room y = true →
  (∀ a, needed y a → a ≠ log_address (shape y) (next_record y) → f' a = f a) →
  no_record (f' (log_address (shape y) (next_record y))) → represents y f' d.
Proof.
  intros [(m0&rs&Hdur&Hnext&Hcur&Hplaced&Hconf) [Hwf Hag]] Hroom%bool_decide_eq_true_1 Hold Hblank.
  pose proof (log_positive _ _ _ _ _ _ _ Hdur) as Hpos.
  pose proof (log_numbered _ _ _ _ _ _ _ Hdur) as Hnum.
  split; [|split; [done|]].
  - exists m0, rs. split_and!; try done.
    + rewrite Hnext in *. apply (durable_next _ f); [|lia|intros a ? ?; apply Hold; [by left|done]|done].
      intros n r ->%Hblank. lia.
    + eapply confirmed_frame; [|done]. intros p Hp. apply Hold; [right; right; by exists p|].
      by apply data_not_log.
  - eapply agrees_frame; [|done]. intros a (x&p&Hx&Hp&->).
    apply Hold; [right; left; by exists x, p|]. by apply data_not_log.
Qed.

(** A record with all of its data. *)
Lemma represents_logged y f f' d d' r fr dg :
  represents y f d → has_room y = true →
  well_formed (apply r (current y)) fr → agrees (shape y) f' (apply r (current y)) d' →
  placed (logged y r fr) → proper_places (shape y) (places_of r) → (∀ p, p ∈ places_of r → fr !! p = None) →
  digest (blocks_at (shape y) f' (places_of r)) = dg → in_bounds (shape y) r →
  unseal log_codec (f' (log_address (shape y) (next_record y))) = Some (next_record y, (r, dg)) →
  (∀ a, needed y a → a ≠ log_address (shape y) (next_record y) → f' a = f a) →
  represents (logged y r fr) f' d'.
Proof.
  intros [(m0&rs&Hdur&Hnext&Hcur&_) _] Hroom%bool_decide_eq_true_1 Hwf Hag Hplaced Hproper Hkept Hthere
    Hbounds Hnew Hold.
  split; [|by split]. exists m0, (rs ++ [(r, dg)]). split_and!.
  - simpl. rewrite Hnext in *. apply (durable_logged _ f); try done; [lia|].
    intros a Ha. apply Hold. by left.
  - simpl. rewrite app_length. simpl. lia.
  - simpl. unfold replayed. rewrite foldl_app. simpl. by rewrite Hcur.
  - done.
  - split; simpl; try done; [by unfold newest_of; rewrite last_snoc|].
    unfold digest_of. by rewrite last_snoc.
Qed.

Lemma crash_safe_append {A} P (Q : A → medium block → Prop) y r data fr refused k f d d' :
  let places := places_of r in
  represents y f d → take_free places (free y) = Some fr → length places = length data →
  in_bounds (shape y) r →
  (∀ x p, middle (apply r (current y)) !! x = Some p → middle (current y) !! x = Some p ∨ p ∈ places) →
  (∀ f, recoverable (shape y) d f → P f) → (∀ f, recoverable (shape y) d' f → P f) →
  (∀ f', (∀ p b, (p, b) ∈ zip places data → f' (data_address (shape y) p) = b) →
     (∀ a, used_address (shape y) (current y) a → f' a = f a) →
     well_formed (apply r (current y)) fr ∧ agrees (shape y) f' (apply r (current y)) d') →
  crash_safe P Q refused (Medium f []) →
  (∀ f', represents (logged y r fr) f' d' → crash_safe P Q k (Medium f' [])) →
  crash_safe P Q (append y r data refused k) (Medium f []).
Proof.
  intros places Hy Hfree Hlen Hbounds Hmoved HP HP' Happly Hrefused Hk. unfold append, append_log.
  split; [by apply (safe_represents _ y f d)|]. intros Hcompared.
  destruct (seal _) as [b|] eqn:Hb; [|done]. destruct (has_room y) eqn:Hroom; [|done].
  apply (seal_unseal log_codec) in Hb; [|apply log_round_trips].
  assert (0 < log_blocks (shape y) ∧ ¬ tears (log_address (shape y) (next_record y)) ∧
    ∀ b, tears_to (log_address (shape y) (next_record y)) b → no_record b) as (Hpos&Hwhole&Htorn).
  { destruct Hy as [(m0&rs&Hdur&_) _]. pose proof (log_positive _ _ _ _ _ _ _ Hdur). split; [done|].
    destruct (log_unread _ _ _ _ _ _ _ Hdur (log_address (shape y) (next_record y))) as [? Hno];
      [by apply log_address_bound|]. split; [done|]. intros b' Hb'.
    pose proof (log_address_bound (shape y) (next_record y)) as Hlow. apply unsealed_record, Hno; [done|].
    specialize (Hlow ltac:(done)). unfold superblock. lia. }
  pose proof (take_free_some _ _ _ Hfree) as (Hdup&Hin&Hless).
  pose proof Hy as [(_&_&_&_&_&[Hmid Hbelow]&_) _].
  assert (placed (logged y r fr)) as Hplaced.
  { split; simpl.
    - intros x p [Hp|Hp]%Hmoved; [by eapply Hmid|]. by apply Hbelow, Hin.
    - intros p Hp. apply Hbelow. destruct (free y !! p) eqn:Hnone; [by eexists|].
      rewrite (Hless p Hnone) in Hp. by destruct Hp. }
  assert (proper_places (shape y) places) as Hproper by (split; [done|]; intros p Hp; by apply Hbelow, Hin).
  set (g := shape y) in *. set (la := log_address g (next_record y)) in *.
  set (ws := zip (data_address g <$> places) data).
  assert (ws.*1 = data_address g <$> places) as Haddresses by (apply fst_zip; rewrite fmap_length; lia).
  assert (∀ a, a ∈ ws.*1 → ¬ needed y a ∧ a ≠ la) as Hunneeded.
  { intros a. rewrite Haddresses. intros (p&->&Hp)%elem_of_list_fmap. split; [|by apply data_not_log].
    eapply free_not_needed; [done|]. by apply Hin. }
  assert (∀ f', (∀ a, a ∉ ws.*1 → f' a = f a) → represents y f' d) as Hbefore.
  { intros f' Hf'. eapply represents_frame; [|done]. intros a Ha. apply Hf'. by intros [? _]%Hunneeded. }
  assert (∀ f', (∀ a, a ∉ ws.*1 → a ≠ la → f' a = f a) → f' la = b → blocks_at g f' places = data →
    represents (logged y r fr) f' d') as Hafter.
  { intros f' Hold Hnew Hdata.
    assert (∀ a, needed y a → a ≠ la → f' a = f a) as Hneeded.
    { intros a Ha. apply Hold. by intros [? _]%Hunneeded. }
    destruct (Happly f') as [Hwf Hag].
    - intros p b' (i&(p'&b''&[= <- <-]&Hp&Hb')%lookup_zip_with_Some)%elem_of_list_lookup.
      rewrite <-Hdata in Hb'. unfold blocks_at in Hb'. rewrite !list_lookup_fmap, Hp in Hb'. by simplify_eq/=.
    - intros a Ha. apply Hneeded; [by right; left|]. destruct Ha as (x&p&_&_&->). by apply data_not_log.
    - apply (represents_logged y f f' d d' r fr (digest data)); try done;
        [intros p Hp; by apply Hin|fold g places; by rewrite Hdata|]. fold g la. by rewrite Hnew. }
  apply crash_safe_write_all with (S := λ a, a ∈ ws.*1); [|done|by intros ? ?%elem_of_nil|].
  { intros f' Hf'. by apply HP, recoverable_represents, Hbefore. }
  rewrite app_nil_r. simpl. split; [|split].
  - eapply safe_within with (S := λ a, a ∈ ws.*1).
    + intros f' Hf'. by apply HP, recoverable_represents, Hbefore.
    + intros a. by rewrite fmap_reverse, elem_of_reverse.
  - intros f' Hf'. assert (∀ a, a ∉ ws.*1 → a ≠ la → f' a = f a) as Hold.
    { intros a Ha Hla. destruct (may_be_in _ _ _ (Hf' a)) as [|Hw]; [done|]. simpl in Hw.
      apply elem_of_cons in Hw as [|Hw]; [done|]. destruct Ha. by rewrite fmap_reverse, elem_of_reverse in
        Hw. }
    assert (f' la = f la ∨ f' la = b ∨ no_record (f' la)) as Hla.
    { destruct (Hf' la) as [[|Hw]|[[? _]|[? _]]]; [by left|right; left|done|by right; right; apply Htorn].
      simpl in Hw. apply elem_of_cons in Hw as [[= ->]|Hw]; [done|]. rewrite elem_of_reverse in Hw.
      destruct (Hunneeded la) as [_ ?]; [|done]. apply elem_of_list_fmap. by exists (la, f' la). }
    assert (∀ f2, (∀ a, a ∉ ws.*1 → a ≠ la → f2 a = f a) → no_record (f2 la) → represents y f2 d) as Hnone.
    { intros f2 Hold2 Hno. apply (represents_blanked y f); try done. intros a Ha Hne. apply Hold2; [|done].
      by intros [? _]%Hunneeded. }
    destruct Hla as [Hla|[Hla|Hla]].
    { apply HP, recoverable_represents, Hbefore. intros a Ha. destruct (decide (a = la)) as [->|]; [done|].
      by apply Hold. }
    2:{ by apply HP, recoverable_represents, Hnone. }
    set (bs := blocks_at g f' places).
    assert (digest bs = digest data ∧ compared bs = true ∨
      (compared bs = true → digest bs ≠ digest data)) as [[Hsame Hbs]|Hother].
    { destruct (compared bs); [|by right]. destruct (decide (digest bs = digest data)); [by left|by right]. }
    + apply HP', (recoverable_represents (logged y r fr)), Hafter; try done. by apply digest_injective.
    + apply HP. exists y. split; [done|]. right. split.
      * apply Hnone; unfold blanked.
        -- intros a Ha Hne. rewrite decide_False by done. by apply Hold.
        -- rewrite decide_True by done. apply blank_record.
      * destruct Hy as [(m0&rs&Hdur&Hnext&Hcur&_&Hconf) _]. exists m0, rs, (r, digest data).
        apply bool_decide_eq_true_1 in Hroom. split_and!; try done; [|by apply (newest_known _ _ _ Hconf)].
        fold g in Hdur. apply (durable_logged _ f); try done.
        -- rewrite <-Hnext. fold g la. by rewrite Hla.
        -- unfold g in *. lia.
        -- intros a Ha. rewrite <-Hnext. fold g la. intros Hne. apply Hold; [|done].
           intros [Hno _]%Hunneeded. apply Hno. by left.
  - apply Hk, Hafter; unfold read_block; simpl.
    + intros a Ha Hne. rewrite decide_False by done. apply overlay_out.
      by rewrite fmap_reverse, elem_of_reverse.
    + by rewrite decide_True.
    + unfold blocks_at. apply list_eq. intros i. rewrite !list_lookup_fmap.
      destruct (places !! i) as [p|] eqn:Hp; simpl.
      * destruct (lookup_lt_is_Some_2 data i) as [b' Hb'].
        { rewrite <-Hlen. by eapply lookup_lt_Some. }
        rewrite Hb'. f_equal. rewrite decide_False by (intros Heq; by apply (data_not_log g p) in Heq).
        apply overlay_in.
        { fold places ws. rewrite fmap_reverse, reverse_Permutation, Haddresses. apply NoDup_fmap_2; [|done].
          intros p1 p2. apply data_address_inj. }
        apply elem_of_reverse, elem_of_list_lookup. exists i. apply lookup_zip_with_Some.
        exists (data_address g p), b'. fold places. by rewrite list_lookup_fmap, Hp.
      * symmetry. apply lookup_ge_None. apply lookup_ge_None in Hp. lia.
Qed.

End Append.
