(** The proved disk keeps the contract. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskAppend
  ProvedDiskRecovery ProvedDiskRequests ProvedDiskMachine.

Section Refinement.
Context `{!blocks, !blocks_laws} {torn : tearing}.
Implicit Types (f : contents block) (d : disk block) (q : request).

(** ** A new disk *)

(** It assumes nothing. *)
Lemma granted_format g m : granted (format g) m.
Proof.
  unfold format. destruct (pack _); [|done]. destruct (pack _); [|done]. destruct (pack_many _ _); [|done].
  destruct (pack _); [|done]. destruct (decide _); [|done]. by apply granted_write_all.
Qed.

Lemma format_represents g f y m :
  whole_records g →
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
  destruct (pack [0]) as [empty|] eqn:Hempty; [|done]. destruct (pack_many _ _) as [bs|] eqn:Hbs; [|done].
  destruct (pack (put header_codec _)) as [header|] eqn:Hheader; [|done]. destruct (decide _) as [Hpos|];
    [|done].
  apply pack_unpack in Hsuper; [|apply superblock_round_trips].
    apply pack_prefix in Hempty as (_&rest&Hempty).
  apply pack_many_unpack in Hbs as [Hlen Hmaps]; [|apply maps_round_trips].
  apply pack_unpack in Hheader; [|apply header_round_trips].
  set (image := super :: header :: empty :: replicate (log_blocks g) empty ++ bs).
  assert ((zip (seq 0 (length image)) image).*1 = seq 0 (length image)) as Haddresses.
  { apply fst_zip. by rewrite seq_length. }
  apply crash_safe_write_flush with (S := λ _, True); [done|done|rewrite Haddresses; apply NoDup_seq|].
  intros f' Hnew _. split; [done|]. intros y [= <-]. exists f'. split; [done|]. split; [done|].
  assert (∀ a b, image !! a = Some b → f' a = b) as Hat.
  { intros a b Hb. apply Hnew, elem_of_list_lookup_2 with a.
    by rewrite lookup_zip_with, lookup_seq_lt, Hb by by eapply lookup_lt_Some. }
  assert (∀ i, f' (log_address g i) = empty) as Hlog.
  { intros i. apply Hat. unfold log_address, image. simpl. rewrite lookup_app_l.
    - apply lookup_replicate_2. apply Nat.mod_upper_bound. lia.
    - rewrite replicate_length. apply Nat.mod_upper_bound. lia. }
  split; [|split].
  - exists no_maps, []. split; [|split_and!; [done|done|split; [done|apply collected_below]|split]]; try done.
    2:{ split; [constructor|by intros ? ?%elem_of_nil]. }
    2:{ by intros ? ?%elem_of_nil. }
    split; simpl.
    + by rewrite (Hat superblock super).
    + exists (length bs). rewrite (Hat 1 header) by done. split; [done|]. split; [done|]. rewrite <-Hmaps.
      f_equal.
      apply list_eq. intros i. rewrite !list_lookup_fmap. destruct (bs !! i) as [b|] eqn:Hb.
      * pose proof (lookup_lt_Some _ _ _ Hb). rewrite lookup_seq_lt by done. simpl. f_equal. apply Hat.
        unfold image, body_address. simpl. rewrite lookup_app_r; rewrite replicate_length; [|lia].
        by replace (log_blocks g + 0 + i - log_blocks g) with i by lia.
      * apply lookup_ge_None_1 in Hb. by rewrite lookup_ge_None_2 by (by rewrite seq_length).
    + intros h. rewrite (Hat 2 empty) by done. unfold unpack. rewrite Hempty. simpl.
      repeat (destruct rest as [|? rest]; simpl; [done|]). intros [= <-]. simpl. lia.
    + done.
    + intros i n r. rewrite Hlog. unfold unpack. rewrite Hempty. cbn [log_codec both get number app].
      match goal with |- context [match ?e with _ => _ end] => destruct e as [[]|] end; simpl; [|done].
      intros [= <- _]. lia.
    + lia.
    + done.
    + done.
    + lia.
  - intros x (vm&l&[->|[n Hn]]&Hx); simpl in *; by rewrite lookup_empty in *.
  - split; [done|]. intros n. simpl. rewrite lookup_empty. constructor.
Qed.

(** ** Every step *)

Definition related (x : machine) (s : state block) : Prop :=
  let m := x.2 in
  match x.1 with
  | Idle y => ∃ f d, m = Medium f [] ∧ represents y f d ∧ s = settled (disk_blocks (shape y)) d
  | Busy q p => ∃ g d, s = settled (disk_blocks g) d ∧ crash_safe (crash_outcome g s q) (answers g s q) p m
  | Group ws p => ∃ g d, s = settled (disk_blocks g) d ∧
      crash_safe (group_outcome g d ws) (group_ends g d ws) p m
  | Upkeep p => ∃ g d, s = settled (disk_blocks g) d ∧ crash_safe (recoverable g d) (keeps g d) p m
  | Off => ∃ g f d, m = Medium f [] ∧ size s = disk_blocks g ∧ exactly d ∈ survivors s ∧ recoverable g d f
  | Recovery p => ∃ g d, size s = disk_blocks g ∧ exactly d ∈ survivors s ∧
      crash_safe (recoverable g d) (λ r m, ∃ y, r = Some y ∧ keeps g d y m) p m
  end.

(** Writes of a group, performed. *)
Lemma group_run g d ws r : in_range g ws → r = Ok ∨ r = UnknownOutcome →
  run Ack (settled (disk_blocks g) d) (writes_shown ws r) (settled (disk_blocks g) (written_all d ws)).
Proof.
  intros Hws Hr. revert d. induction Hws as [|[lba data] ws Hfit _ IH]; intros d; [constructor|].
  econstructor; [|apply IH]. split; [done|]. unfold out_of_range. simpl. rewrite decide_True by done.
  destruct Hr as [->| ->]; [done|by right].
Qed.

(** Not performed. *)
Lemma group_idle n d ws : run Ack (settled n d) (writes_shown ws UnknownOutcome) (settled n d).
Proof. induction ws; [constructor|]. econstructor; [|done]. split; [done|by left]. Qed.

(** Performed or not, as what survived of them says. *)
Lemma group_unknown g d ws f : group_outcome g d ws f → ∃ d',
  run Ack (settled (disk_blocks g) d) (writes_shown ws UnknownOutcome) (settled (disk_blocks g) d') ∧
  recoverable g d' f.
Proof.
  intros [?|[? ?]]; [exists d|exists (written_all d ws)]; split; try done;
    [apply group_idle|apply group_run; by auto].
Qed.

Lemma related_cut c m s f : related (c, m) s → c ≠ Off → may_leave m f →
  ∃ s', run Ack s (shown_by_cut c) s' ∧ related (Off, Medium f []) s'.
Proof.
  assert (∀ s s' e, step Ack s e s' → run Ack s [e] s') as Hone by (intros; econstructor; [done|constructor]).
  destruct c as [y|q p|ws p|p| |p]; unfold related; simpl; intros Hrel Hon Hf.
  - destruct Hrel as (f0&d&->&Hy&->). eexists. split; [by apply Hone|].
    exists (shape y), f, d. split_and!; [done|done|by left|]. apply recoverable_represents.
    eapply represents_ext; [|done]. by apply leaves_stable.
  - destruct Hrel as (g&d&->&Hp%crash_safe_now). destruct (Hp f Hf) as (d'&Hd'&Hrec).
    destruct (step_cut_short _ _ _ _ Hd') as (s'&?&?&?). exists s'. split;
      [by apply Hone|]. by exists g, f, d'.
  - destruct Hrel as (g&d&->&Hp%crash_safe_now).
    destruct (group_unknown _ _ _ _ (Hp f Hf)) as (d'&Hrun&Hrec).
    exists (cut (settled (disk_blocks g) d') []).
    split; [apply run_app; eexists; split; [done|by apply Hone]|].
    exists g, f, d'. split_and!; [done|done|by left|done].
  - destruct Hrel as (g&d&->&Hp%crash_safe_now). eexists. split; [by apply Hone|].
    exists g, f, d. split_and!; [done|done|by left|by apply Hp].
  - done.
  - destruct Hrel as (g&d&Hsize&Hd&Hp%crash_safe_now). eexists. split; [by apply Hone|].
    exists g, f, d. split_and!; [done|done|done|by apply Hp].
Qed.

Lemma proved_disk_refines : implements proved_disk Ack.
Proof.
  apply (forward_simulation proved_disk Ack related).
  - intros n x (g&f&y&Hn&Hwhole&Hy&->). destruct (execute _ _) as [r m] eqn:Hex. simpl in *. subst r.
    apply format_represents in Hex as (f'&->&Hshape&Hrep); [|done]. exists f', blank.
    split; [done|]. split; [done|].
    by rewrite Hshape, Hn.
  - assert (∀ s s' e, step Ack s e s' → run Ack s [e] s') as Hone by (intros; econstructor;
    [done|constructor]).
    intros x s es x' Hrel Hmove. destruct Hmove as [y m q places|y m ws places|y m u
      |q p m p' m' Hio|ws p m p' m' Hio|p m p' m' Hio|p m p' m' Hio|q y r data m|ws y m|ws y m|y m
      |c m f Hon Hf|m|y m]; unfold related in Hrel; simpl in Hrel.
    + destruct Hrel as (f&d&->&Hy&->). eexists. split; [constructor|]. exists (shape y), d. split; [done|].
      by apply crash_safe_perform.
    + destruct Hrel as (f&d&->&Hy&->). eexists. split; [constructor|]. exists (shape y), d. split; [done|].
      by apply crash_safe_write_group.
    + destruct Hrel as (f&d&->&Hy&->). eexists. split; [constructor|]. exists (shape y), d. split; [done|].
      by apply crash_safe_maintain.
    + destruct Hrel as (g&d&->&Hp). eexists. split; [constructor|]. exists g, d. split; [done|].
      by eapply crash_safe_io.
    + destruct Hrel as (g&d&->&Hp). eexists. split; [constructor|]. exists g, d. split; [done|].
      by eapply crash_safe_io.
    + destruct Hrel as (g&d&->&Hp). eexists. split; [constructor|]. exists g, d. split; [done|].
      by eapply crash_safe_io.
    + destruct Hrel as (g&d&?&?&Hp). eexists. split; [constructor|]. exists g, d. split_and!; [done..|].
      by eapply crash_safe_io.
    + destruct Hrel as (g&d&->&_&f'&d'&->&<-&Hrep&Hstep). eexists. split; [by apply Hone|]. by exists f', d'.
    + destruct Hrel as (g&d&->&_&f'&->&<-&Hall&Hrep). eexists.
      split; [apply group_run; [by apply Hall|by left]|]. by exists f', (written_all d ws).
    + destruct Hrel as (g&d&->&_&f'&->&<-&_&Hrep). eexists. split; [constructor|]. by exists f', d.
    + destruct Hrel as (g&d&->&_&f'&->&<-&Hrep). eexists. split; [constructor|]. by exists f', d.
    + by eapply related_cut.
    + destruct Hrel as (g&f&d&->&Hsize&Hd&Hf). exists s. split; [constructor|]. exists g, d.
      split_and!; [done..|]. eapply crash_safe_recover; [done..|].
      intros y' f' Hy' Hshape. split.
      * apply (safe_represents _ y' f' d); [done|]. by rewrite Hshape.
      * exists y'. split; [done|]. by exists f'.
    + destruct Hrel as (g&d&Hsize&Hd&_&y'&[= <-]&f&->&<-&Hy). exists (settled (disk_blocks (shape y)) d).
      split.
      * apply Hone. exists (exactly d), d. split_and!; [done| |by rewrite Hsize]. split;
        [|done]. intros l. by left.
      * by exists f, d.
Qed.

End Refinement.
