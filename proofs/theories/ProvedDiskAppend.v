(** Reading, and putting a record into the log: whenever the power fails, the disk is as before or as after.
*)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps.

Section Append.
Context `{!blocks, !blocks_laws} {torn : tearing}.
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

Lemma safe_represents P y f d :
  represents y f d → (∀ f, recoverable (shape y) d f → P f) → safe P (Medium f []).
Proof.
  intros Hy HP f' Hf'. apply HP. exists y. split; [done|]. eapply represents_ext;
    [|done]. by apply leaves_stable.
Qed.

(** The record is in the log. *)
Lemma represents_logged y f f' d d' r fr b :
  represents y f d → well_formed (apply r (current y)) fr → agrees (shape y) f (apply r (current y)) d' →
  placed (logged y r fr) → pack (put log_codec (next_record y, r)) = Some b → has_room y = true →
  f' (log_address (shape y) (next_record y)) = b →
  (∀ a, a ≠ log_address (shape y) (next_record y) → f' a = f a) →
  represents (logged y r fr) f' d'.
Proof.
  intros [(m0&rs&[Hsuper (len&Hlen&Hheader&Hbody) Hother Hlog Hstale Hfits Hpos Hwhole]&Hnext&Hcur&_) _]
    Hwf Hag Hplaced Hb Hroom Hnew Hold.
  apply bool_decide_eq_true_1 in Hroom. apply (pack_unpack log_codec) in Hb; [|apply log_round_trips].
  pose proof (log_address_bound (shape y) (next_record y) Hpos) as Hbound.
  split; [|split; [done|]].
  - exists m0, (rs ++ [r]). split; [|split].
    + split; simpl.
      * rewrite Hold; [done|unfold superblock; lia].
      * exists len. split; [done|]. rewrite Hold by (pose proof (header_address_bound (slot y)); lia). split;
        [done|].
        rewrite <-Hbody. f_equal. apply list_fmap_ext.
          intros i a (j&(->&Hj)%lookup_seq&->)%list_lookup_fmap_Some.
        apply Hold. unfold body_address. lia.
      * intros h. rewrite Hold by (pose proof (header_address_bound (negb (slot y))); lia). apply Hother.
      * intros i r'. rewrite lookup_app_Some. intros [Hi|[Hi Hr']].
        -- assert (i < length rs) by by eapply lookup_lt_Some. rewrite Hold; [by apply Hlog|].
           apply log_address_distinct. lia.
        -- apply list_lookup_singleton_Some in Hr' as [? ->].
           replace (first_record y + i) with (next_record y) by lia.
           by rewrite Hnew.
      * intros i n r'. rewrite app_length. simpl.
        destruct (decide (log_address (shape y) i = log_address (shape y) (next_record y))) as [->|Hi].
        -- rewrite Hnew, Hb. intros [= <- <-]. lia.
        -- rewrite Hold by done. intros ?%Hstale. lia.
      * rewrite app_length. simpl. lia.
      * done.
      * done.
    + simpl. rewrite app_length. simpl. lia.
    + split; [|done]. simpl. unfold replayed. rewrite foldl_app. simpl. by rewrite Hcur.
  - eapply agrees_frame; [|done]. intros a (x&p&_&_&->). apply Hold. simpl. unfold data_address. lia.
Qed.

Lemma crash_safe_record {A} P (Q : A → medium block → Prop) y r fr b k f d d' :
  represents y f d → well_formed (apply r (current y)) fr → agrees (shape y) f (apply r (current y)) d' →
  placed (logged y r fr) → pack (put log_codec (next_record y, r)) = Some b → has_room y = true →
  (∀ f, recoverable (shape y) d f → P f) → (∀ f, recoverable (shape y) d' f → P f) →
  (∀ f', represents (logged y r fr) f' d' → crash_safe P Q k (Medium f' [])) →
  crash_safe P Q (WriteBlock (log_address (shape y) (next_record y)) b (FlushBlocks k)) (Medium f []).
Proof.
  intros Hy Hwf Hag Hplaced Hb Hroom HP HP' Hk. apply crash_safe_commit.
  { destruct Hy as [(m0&rs&Hdur&_) _]. apply (log_whole _ _ _ _ _ _ _ Hdur), log_address_bound.
    by eapply log_positive. }
  - intros f' Hold [Hsame|Hnew].
    + apply HP. exists y. split; [done|]. eapply represents_ext; [|done]. intros a.
      by destruct (decide (a = log_address (shape y) (next_record y))) as [->|]; [|apply Hold].
    + apply HP'. eexists. split; [|by eapply represents_logged]. done.
  - intros f' Hnew Hold. apply Hk. by eapply represents_logged.
Qed.

Lemma crash_safe_append {A} P (Q : A → medium block → Prop) y r places data fr refused k f d d' :
  represents y f d → take_free places (free y) = Some fr → length places = length data →
  (∀ x p, middle (apply r (current y)) !! x = Some p → middle (current y) !! x = Some p ∨ p ∈ places) →
  (∀ f, recoverable (shape y) d f → P f) → (∀ f, recoverable (shape y) d' f → P f) →
  (∀ f', (∀ p b, (p, b) ∈ zip places data → f' (data_address (shape y) p) = b) →
     (∀ a, needed y a → f' a = f a) →
     well_formed (apply r (current y)) fr ∧ agrees (shape y) f' (apply r (current y)) d') →
  crash_safe P Q refused (Medium f []) →
  (∀ f', represents (logged y r fr) f' d' → crash_safe P Q k (Medium f' [])) →
  crash_safe P Q (append y r places data refused k) (Medium f []).
Proof.
  intros Hy Hfree Hlen Hmoved HP HP' Happly Hrefused Hk. unfold append.
  assert (placed (logged y r fr)) as Hplaced.
  { destruct Hy as [(m0&rs&_&_&_&Hmid&Hbelow) _]. apply take_free_some in Hfree as (_&Hin&Hless).
    split; simpl.
    - intros x p [Hp|Hp]%Hmoved; [by eapply Hmid|]. by apply Hbelow, Hin.
    - intros p Hp. apply Hbelow. destruct (free y !! p) eqn:Hnone; [by eexists|].
      rewrite (Hless p Hnone) in Hp. by destruct Hp. }
  destruct (pack _) as [b|] eqn:Hb; [|done]. destruct (has_room y) eqn:Hroom; [|done].
  assert (crash_safe P Q (write_all (zip (data_address (shape y) <$> places) data) (FlushBlocks
    (WriteBlock (log_address (shape y) (next_record y)) b (FlushBlocks k)))) (Medium f [])) as Hwrite.
  { set (g := shape y) in *. apply take_free_some in Hfree as (Hdup&Hin&_).
    assert ((zip (data_address g <$> places) data).*1 = data_address g <$> places) as Haddresses.
    { apply fst_zip. rewrite fmap_length. lia. }
    apply crash_safe_write_flush with (S := λ a, ¬ needed y a).
    - intros f' Hf'. apply HP. exists y. split; [done|]. eapply represents_frame; [|done].
      intros a Ha. apply Hf'. tauto.
    - intros a. rewrite Haddresses. intros (p&->&Hp)%elem_of_list_fmap. eapply free_not_needed; [done|].
      by apply Hin.
    - rewrite Haddresses. apply NoDup_fmap_2; [|done]. intros p p'. apply data_address_inj.
    - intros f' Hnew Hold. assert (∀ a, needed y a → f' a = f a) as Hneeded.
      { intros a Ha. apply Hold. rewrite Haddresses. intros (p&->&Hp)%elem_of_list_fmap.
        eapply free_not_needed; [done| |done]. by apply Hin. }
      destruct (Happly f') as [Hwf Hag]; [|done|].
      { intros p b' (i&Hi)%elem_of_list_lookup. apply Hnew, elem_of_list_lookup. exists i.
        apply lookup_zip_with_Some in Hi as (p'&b''&[= <- <-]&Hp&Hb').
        apply lookup_zip_with_Some. exists (data_address g p), b'. by rewrite list_lookup_fmap, Hp. }
      apply (crash_safe_record P Q y r fr b k f' d d'); try done. by eapply represents_frame. }
  destruct places as [|p places]; [|done]. destruct data; [|done].
  destruct (Happly f) as [Hwf Hag]; [by intros ?? ?%elem_of_nil|done|].
    by apply (crash_safe_record P Q y r fr b k f d d').
Qed.

End Append.
