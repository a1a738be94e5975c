(** The proved disk keeps the contract. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskAppend
  ProvedDiskRecovery ProvedDiskRequests ProvedDiskMachine.

Section Refinement.
Context `{!blocks, !blocks_laws} {torn : tearing block}.
Implicit Types (f : contents block) (d : disk block) (q : request).

(** ** A new disk *)

(** It assumes nothing. *)
Lemma granted_format g m : granted (format g) m.
Proof.
  unfold format. destruct (pack _); [|done]. destruct (pack_many _ _); [|done].
  destruct (seal _); [|done]. destruct (decide _); [|done]. by apply granted_write_all.
Qed.

Lemma format_represents g f y m :
  torn_unread g →
  execute (format g) (Medium f []) = (Some y, m) → ∃ f', m = Medium f' [] ∧ shape y = g ∧
    represents y f' blank.
Proof.
  intros Hwhole Hex.
  assert (crash_safe (λ _, True) (λ r m, ∀ y, r = Some y → ∃ f', m = Medium f' [] ∧ shape y = g ∧
    represents y f' blank) (format g) (Medium f [])) as Hsafe.
  2:{ apply crash_safe_execute in Hsafe; [|apply granted_format]. rewrite Hex in Hsafe. by apply Hsafe. }
  clear Hex y m. assert (∀ m, crash_safe (λ _, True) (λ r m, ∀ y, r = Some y → ∃ f', m = Medium f' [] ∧
    shape y = g ∧
    represents y f' blank) (Done None) m) as Hnone by by intros m; split.
  unfold format. destruct (pack (put superblock_codec g)) as [super|] eqn:Hsuper; [|done].
  destruct (pack_many _ _) as [bs|] eqn:Hbs; [|done].
  destruct (seal (put header_codec _)) as [header|] eqn:Hheader; [|done]. destruct (decide _) as [Hpos|];
    [|done].
  apply pack_unpack in Hsuper; [|apply superblock_round_trips].
  apply pack_many_unpack in Hbs as [Hlen Hmaps]; [|apply maps_round_trips].
  apply seal_unseal in Hheader; [|apply header_round_trips].
  set (image := super :: header :: blank_block :: replicate (log_blocks g) blank_block ++ bs).
  assert ((zip (seq 0 (length image)) image).*1 = seq 0 (length image)) as Haddresses.
  { apply fst_zip. by rewrite seq_length. }
  apply crash_safe_write_flush with (S := λ _, True); [done|done|rewrite Haddresses; apply NoDup_seq|].
  intros f' Hnew _. split; [done|]. intros y [= <-]. exists f'. split; [done|]. split; [done|].
  assert (∀ a b, image !! a = Some b → f' a = b) as Hat.
  { intros a b Hb. apply Hnew, elem_of_list_lookup_2 with a.
    by rewrite lookup_zip_with, lookup_seq_lt, Hb by by eapply lookup_lt_Some. }
  assert (∀ i, f' (log_address g i) = blank_block) as Hlog.
  { intros i. apply Hat. unfold log_address, image. simpl. rewrite lookup_app_l.
    - apply lookup_replicate_2. apply Nat.mod_upper_bound. lia.
    - rewrite replicate_length. apply Nat.mod_upper_bound. lia. }
  split; [|split].
  - exists no_maps, []. split; [|split_and!; [done|done|split; [done|apply collected_below]|split]]; try done.
    2:{ split; [constructor|by intros ? ?%elem_of_nil]. }
    2:{ by intros ? ?%elem_of_nil. }
    split; simpl; [split; simpl|..].
    + by rewrite (Hat superblock super).
    + exists (length bs). rewrite (Hat 1 header) by done. split; [done|]. split; [done|]. rewrite <-Hmaps.
      f_equal.
      apply list_eq. intros i. rewrite !list_lookup_fmap. destruct (bs !! i) as [b|] eqn:Hb.
      * pose proof (lookup_lt_Some _ _ _ Hb). rewrite lookup_seq_lt by done. simpl. f_equal. apply Hat.
        unfold image, body_address. simpl. rewrite lookup_app_r; rewrite replicate_length; [|lia].
        by replace (log_blocks g + 0 + i - log_blocks g) with i by lia.
      * apply lookup_ge_None_1 in Hb. by rewrite lookup_ge_None_2 by (by rewrite seq_length).
    + intros [n x]. rewrite (Hat 2 blank_block) by done. intros ->%blank_number. simpl. lia.
    + done.
    + intros old r rest Hrs. by destruct old.
    + intros i n r. rewrite Hlog. intros ->%blank_record. rewrite ?total_nil. lia.
    + rewrite ?total_nil. lia.
    + done.
    + done.
    + lia.
  - intros x (vm&l&[->|[n Hn]]&Hx); simpl in *; by rewrite lookup_empty in *.
  - split; [done|]. intros n. simpl. rewrite lookup_empty. constructor.
Qed.

(** ** Every step *)

Lemma proved_programs_safe : crash_safe_programs proved_programs shape represents recoverable.
Proof.
  split.
  - intros y f d Hy. by apply (safe_represents _ y f d).
  - intros y f d places q. apply crash_safe_perform.
  - intros y f d places ws. apply crash_safe_write_group.
  - intros y f d u. apply crash_safe_maintain.
  - intros g f d Hf. eapply crash_safe_recover; [done..|]. intros y f' Hy Hshape. split.
    + apply (safe_represents _ y f' d); [done|]. by rewrite Hshape.
    + exists y. split; [done|]. by exists f'.
  - intros trees g f y m. apply format_represents.
Qed.

Lemma proved_disk_refines : implements proved_disk Ack.
Proof. apply (disk_machine_refines _ _ _ _ proved_programs_safe). Qed.

End Refinement.
