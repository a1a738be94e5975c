(** Every request and every upkeep of the proved disk with trees, whenever the power fails in it; and a new
disk. *)
From stdpp Require Import gmap strings.
From LogDisk Require TreeStore TreeStoreTheorem TreeBlocks TreeRoots TreeIndexBounds TreeIndexMaps SharedTree.
From LogDisk Require Import VirtualDisk Medium Codec ProvedTreeMaps.
From LogDisk Require Import ProvedDisk ProvedDiskInvariant ProvedDiskMaps ProvedDiskAppend ProvedDiskRecovery
  ProvedDiskRequests DiskMachine.
From LogDisk Require Import ProvedTreeDiskInvariant ProvedTreeDiskRecovery.
Import ProvedTreeDisk(page_address, layout_of, beside, beside_codec, beside_of, maps_of, tree_superblock).
Import TreeIndex(trees, named).

Section Requests.
Context `{!blocks, !blocks_laws} {torn : tearing block} (bits : nat).
Implicit Types (f : contents block) (d : disk block) (q : request) (y : T.memory).
Notation tree_represents := (tree_represents bits).
Notation held_by y s0 x0 := (trees_format bits (T.tree_size y) s0 (T.pages y) x0).

(** ** What memory makes of a request *)

Lemma names_shown y m n : trees_show bits (T.current y) m →
  T.misses (T.current y) n = misses m n ∧ T.clashes (T.current y) n = clashes m n.
Proof.
  intros Ht. unfold T.misses, T.clashes, misses, clashes. pose proof (named_shown bits _ _ n Ht) as Hn.
  destruct (valid_name n); [|done].
  destruct (named (views (T.current y)) !! n), (snap_maps m !! n) as [vm|]; try done; exfalso.
  - by destruct (proj1 Hn (ex_intro _ _ eq_refl)).
  - by destruct (proj2 Hn (ex_intro _ vm eq_refl)).
Qed.

Lemma faults_shown y m q : trees_show bits (T.current y) m → T.faults_of y q = faults_of (with_maps y m) q.
Proof.
  intros Ht. destruct q as [lba data|lba count|n|n|n| | |[|n] lba count]; simpl; try done;
    try (by apply names_shown). f_equal. by apply names_shown.
Qed.

Lemma tree_agrees y f d : tree_represents y f d → ∃ m, trees_show bits (T.current y) m ∧
  agrees (T.shape y) f m d.
Proof. intros (s0 & x0 & m & (_ & _ & Hag) & _ & Ht). by exists m. Qed.

Lemma tree_faults y f d q : tree_represents y f d → let s := settled (disk_blocks (T.shape y)) d in
  match T.faults_of y q with e :: _ => e ∈ faults s q | [] => faults s q = [] end.
Proof.
  intros (m & Ht & Hag)%tree_agrees. rewrite (faults_shown y m q Ht).
  apply (faults_exact (with_maps y m) f d q Hag).
Qed.

(** A record in the log, on the trees. *)
Lemma tree_logged s0 x0 y m f f' d d' r fr : @represents _ (held_by y s0 x0) torn (with_maps y
    m) f d →
  changed bits s0 (T.current y) → trees_show bits (T.current y) m → in_bounds (T.shape y) r →
  @represents _ (held_by y s0 x0) torn (ProvedDisk.logged (with_maps y m) r fr) f' d' →
  tree_represents (T.logged bits y r fr) f' d'.
Proof.
  intros Hy Hc Ht Hr Hy'. exists s0, x0, (apply r m). split; [exact Hy'|].
  split; [|by apply apply_record_shown].
  destruct (tree_holds _ _ _ _ _ _ _ _ Hy) as [m0 [_ Hstored _ _ Hkeys _ _]].
  eapply (apply_record_changed bits (SharedTree.height s0)); [exact Hkeys|apply Hstored|done|done|exact Hr].
Qed.

(** ** Requests. They leave the size of trees as it is. *)

Context (size : nat * nat).
Definition tree_represents_of y f d : Prop := T.tree_size y = size ∧ tree_represents y f d.
Notation tree_recoverable := (tree_recoverable_of bits size).
Notation outcome_left := (outcome_left tree_recoverable).
Notation answered_with := (answered_with T.shape tree_represents_of).
Notation writes_left := (writes_left tree_recoverable).
Notation writes_end := (writes_end T.shape tree_represents_of).
Notation kept_as := (kept_as T.shape tree_represents_of).

Lemma tree_safe_of y f d (P : contents block → Prop) :
  tree_represents_of y f d → (∀ f, tree_recoverable (T.shape y) d f → P f) → safe P (Medium f []).
Proof. intros [<- Hy]. by apply tree_safe. Qed.

Lemma outcomes_now s q : now s ∈ outcomes s q.
Proof. unfold outcomes. destruct (faults s q); [right|]; left. Qed.

Lemma crash_safe_tree_update y f d places q :
  tree_represents_of y f d → let s := settled (disk_blocks (T.shape y)) d in
  faults s q = [] → is_Some (record_of q places) →
  crash_safe (outcome_left (T.shape y) s q) (answered_with (T.shape y) s q) (T.update bits y places q)
    (Medium f []).
Proof.
  intros Hy s Hnone [r0 Hr0].
  assert (∀ d' f, d' = d ∨ d' = effect q d → tree_recoverable (T.shape y) d' f →
    outcome_left (T.shape y) s q f) as HP.
  { intros d' f' Hd' Hf'. exists d'. split; [|done]. unfold outcomes. rewrite Hnone. subst s. simpl.
    set_solver. }
  assert (crash_safe (outcome_left (T.shape y) s q) (answered_with (T.shape y) s q) (Done (y, no_room q, []))
    (Medium f [])) as Hrefused.
  { split; [eapply tree_safe_of; [done|]; eauto|]. exists f, d. split_and!; [done..|]. apply step_answered.
    - split; [done|]. destruct q; simpl in *; try done.
      all: try (split; [right; split; [done|by left]|done]). by left.
    - intros from lba count ->. done. }
  unfold T.update. destruct (T.one_too_many y q); [done|].
  destruct Hy as [Hsize (s0 & x0 & m & Hy & Hc & Ht)].
  apply (@crash_safe_update_log _ _ torn (held_by y s0 x0) _ _ _ (with_maps y m) f d); simpl.
  - done.
  - done.
  - intros f' Hf'. apply (HP d); [by left|]. rewrite <-Hsize. by exists s0, (T.pages y), x0.
  - intros f' Hf'. apply (HP (effect q d)); [by right|]. rewrite <-Hsize. by exists s0, (T.pages y), x0.
  - done.
  - intros r fr f' _ Hr Hy'.
    assert (tree_represents_of (T.logged bits y r fr) f' (effect q d)) as Hnew
      by (split; [done|by eapply tree_logged]).
    split; [eapply tree_safe_of; [done|]; eauto|]. exists f', (effect q d). split_and!; [done..|].
    apply step_answered; [|by intros ??? ->]. by split.
Qed.

Lemma crash_safe_tree_perform y f d places q :
  tree_represents_of y f d → let s := settled (disk_blocks (T.shape y)) d in
  crash_safe (outcome_left (T.shape y) s q) (answered_with (T.shape y) s q) (T.perform bits y places q)
    (Medium f []).
Proof.
  intros Hy s.
  assert (∀ f, tree_recoverable (T.shape y) d f → outcome_left (T.shape y) s q f) as Hbefore.
  { intros f' Hf'. exists d. split; [apply (outcomes_now s q)|done]. }
  pose proof (tree_safe_of y f d _ Hy Hbefore) as Hsafe.
  pose proof (tree_faults y f d q (proj2 Hy)) as Hfaults. fold s in Hfaults. simpl in Hfaults.
  unfold T.perform. destruct (T.faults_of y q) as [|e es].
  2:{ split; [done|]. exists f, d. split_and!; [done..|]. apply step_answered; [|done].
      split; [done|]. split; [by left|done]. }
  set (proposed := take (length (data_of q)) places).
  assert (is_Some (record_of q proposed) → crash_safe (outcome_left (T.shape y) s q)
    (answered_with (T.shape y) s q) (T.with_room (size_for q proposed) y (λ y, T.update bits y proposed q))
    (Medium f [])) as
      Hupdate.
  { intros Hr. destruct Hy as [Hsize Hy]. eapply crash_safe_tree_room; [done|by rewrite Hsize|].
    intros y1 f1 Hy1 Hshape Hsize1. rewrite Hsize in Hsize1.
    pose proof (crash_safe_tree_update y1 f1 d proposed q (conj Hsize1 Hy1)) as Hu. rewrite Hshape in Hu.
    by apply Hu. }
  destruct q as [lba data|lba count|n|n|n| | |from lba count]; try (apply Hupdate; by eexists).
  - split; [done|]. exists f, d. split_and!; [done..|]. by apply step_answered.
  - destruct Hy as [Hsize Hy].
    eapply crash_safe_tree_recover; [by apply tree_recoverable_represents|by rewrite Hsize|].
    intros y' f' Hy' Hshape Hsize'. rewrite Hsize in Hsize'. apply (conj Hsize') in Hy'.
    split; [by apply (tree_safe_of y' f' d); [|rewrite Hshape]|]. exists f', d.
    split_and!; [done..|]. by apply step_answered.
  - destruct Hy as [Hsize (s0 & x0 & m & Hy & Hc & Ht)].
    assert (place_at bits (T.current y) from <$> seq lba count =
      place_of m (map_of m from) <$> seq lba count) as ->.
    { apply list_fmap_ext. intros i l _. by apply place_at_shown. }
    apply (@crash_safe_read_view _ torn (held_by y s0 x0) _ _ _ (with_maps y m) f d); try done.
    intros v Hv. split; [done|]. exists f, d. split_and!; [done|done|split; [done|by exists s0, x0, m]|].
    apply step_answered; [by split|]. intros ? ? ? [= <- <- <-] _. by exists v.
Qed.

(** ** Several writes in one record *)

Lemma crash_safe_tree_group_log y f d places ws : tree_represents_of y f d →
  crash_safe (writes_left (T.shape y) d ws) (writes_end (T.shape y) d ws)
    (group_log (T.shape y) (T.next_record y) (T.room_for y) (T.free y) places ws
      (Done (y, false)) (λ r fr, Done (T.logged bits y r fr, true))) (Medium f []).
Proof.
  intros Hy. assert (crash_safe (writes_left (T.shape y) d ws) (writes_end (T.shape y) d ws) (Done (y, false))
    (Medium f [])) as Hnone.
  { split; [eapply tree_safe_of; [done|by left]|]. by exists f. }
  destruct Hy as [Hsize (s0 & x0 & m & Hy & Hc & Ht)].
  apply (@crash_safe_group_log _ _ torn (held_by y s0 x0) _ _ _ (with_maps y m) f d); simpl.
  - done.
  - intros f' Hf'. left. rewrite <-Hsize. by exists s0, (T.pages y), x0.
  - intros Hws f' Hf'. right. split; [done|]. rewrite <-Hsize. by exists s0, (T.pages y), x0.
  - done.
  - intros r fr f' Hr Hws Hy'.
    assert (tree_represents_of (T.logged bits y r fr) f' (written_all d ws)) as Hnew
      by (split; [done|by eapply tree_logged]).
    split; [eapply tree_safe_of; [done|]; by right|]. by exists f'.
Qed.

Lemma crash_safe_tree_group y f d places ws : tree_represents_of y f d →
  crash_safe (writes_left (T.shape y) d ws) (writes_end (T.shape y) d ws) (T.write_group bits y places ws)
    (Medium f []).
Proof.
  intros [Hsize Hy]. unfold T.write_group. eapply crash_safe_tree_room; [done|rewrite Hsize; by left|].
  intros y1 f1 Hy1 <- Hsize1. apply crash_safe_tree_group_log. split; [congruence|done].
Qed.

(** ** Upkeep *)

Lemma kept_done y f d : tree_represents_of y f d →
  crash_safe (tree_recoverable (T.shape y) d) (kept_as (T.shape y) d) (Done y) (Medium f []).
Proof. intros Hy. split; [by eapply tree_safe_of|by exists f]. Qed.

Lemma crash_safe_tree_maintain y f d u : tree_represents_of y f d →
  crash_safe (tree_recoverable (T.shape y) d) (kept_as (T.shape y) d) (T.maintain bits y u) (Medium f []).
Proof.
  intros [Hsize Hy]. destruct u as [[| |moves]|w n]; simpl.
  - eapply crash_safe_tree_checkpoint; [done|by rewrite Hsize|]. intros y' f' Hy' <- Hsize'.
    apply kept_done. split; [congruence|done].
  - apply (kept_done (T.collect y) f d). split; [done|]. by apply tree_represents_collected.
  - eapply crash_safe_tree_room; [done|by rewrite Hsize|]. intros y1 f1 Hy1 <- Hsize1.
    rewrite Hsize in Hsize1. pose proof (kept_done _ _ _ (conj Hsize1 Hy1)) as Hno.
    destruct Hy1 as (s0 & x0 & m & Hy1 & Hc & Ht).
    apply (@crash_safe_move_log _ _ torn (held_by y1 s0 x0) _ _ _ (with_maps y1 m) f1 d); simpl.
    + done.
    + apply Ht.
    + intros f' Hf'. rewrite <-Hsize1. by exists s0, (T.pages y1), x0.
    + done.
    + intros fr f' Hy'. apply (kept_done (T.logged bits y1 (LogMove moves) fr)). split; [done|].
      by eapply tree_logged.
  - assert (T.shape (T.walk_on y w n) = T.shape y) as Hshape.
    { unfold T.walk_on. by destruct (walk w n (T.current y)). }
    rewrite <-Hshape. apply kept_done. split; [|by apply tree_represents_walk].
    unfold T.walk_on. by destruct (walk w n (T.current y)).
Qed.

End Requests.

(** ** A new disk *)

Section NewDisk.
Context `{!blocks, !blocks_laws} {torn : tearing block} (bits : nat).
Notation tree_represents := (tree_represents bits).

Lemma granted_tree_format size g m : granted (T.format bits size g) m.
Proof.
  unfold T.format. cbv zeta. repeat (case_match; try done). by apply granted_write_all.
Qed.

Lemma tree_format_represents size g f y m : torn_unread g →
  execute (T.format bits size g) (Medium f []) = (Some y, m) → ∃ f', m = Medium f' [] ∧ T.shape y = g ∧
    T.tree_size y = size ∧ tree_represents y f' blank.
Proof.
  intros Hwhole Hex.
  assert (crash_safe (λ _, True) (λ r m, ∀ y, r = Some y → ∃ f', m = Medium f' [] ∧ T.shape y = g ∧
    T.tree_size y = size ∧ tree_represents y f' blank) (T.format bits size g) (Medium f [])) as Hsafe.
  2:{ apply crash_safe_execute in Hsafe; [|apply granted_tree_format]. rewrite Hex in Hsafe.
      by apply Hsafe. }
  clear Hex y m. assert (∀ m, crash_safe (λ _, True) (λ r m, ∀ y, r = Some y → ∃ f', m = Medium f' [] ∧
    T.shape y = g ∧ T.tree_size y = size ∧ tree_represents y f' blank) (Done None) m) as Hnone
    by by intros m; split.
  unfold T.format. set (levels := size.1). set (t := end_epoch (no_trees levels)). cbv zeta.
  destruct (pack (put tree_superblock (g, size))) as [super|] eqn:Hsuper; [|done].
  destruct (pack (put TreeBlocks.kids_codec ∅)) as [node|] eqn:Hnode; [|done].
  destruct (pack_many _ _) as [bs|] eqn:Hbs; [|done].
  destruct (seal (put TreeStore.header_codec _)) as [header|] eqn:Hheader; [|done].
  destruct (decide _) as [(Hpos&Hsome&Hkeys)|]; [|done].
  apply pack_unpack in Hsuper; [|apply tree_superblock_round_trips].
  apply pack_unpack in Hnode; [|apply TreeBlocks.kids_round_trips].
  apply pack_many_unpack in Hbs as [Hlen Hbody];
    [|by apply both_round_trips; [apply TreeRoots.roots_round_trips|apply beside_round_trips]].
  apply seal_unseal in Hheader; [|by apply both_round_trips].
  set (image := super :: header :: blank_block :: replicate (log_blocks g) blank_block ++ bs).
  assert (length image = 3 + log_blocks g + length bs) as Himage.
  { unfold image. simpl. by rewrite app_length, replicate_length. }
  set (ws := (page_address g 0, node) :: zip (seq 0 (length image)) image).
  assert (ws.*1 = page_address g 0 :: seq 0 (length image)) as Haddresses.
  { unfold ws. simpl. by rewrite fst_zip by (by rewrite seq_length). }
  apply crash_safe_write_flush with (S := λ _, True); [done|done|..].
  { fold ws. rewrite Haddresses. apply NoDup_cons. split; [|apply NoDup_seq].
    intros [_ Ha]%elem_of_seq. unfold page_address, data_address in Ha. lia. }
  intros f' Hnew _. fold ws in Hnew. split; [done|]. intros y [= <-]. exists f'. do 3 (split; [done|]).
  assert (f' (page_address g 0) = node) as Hpage by (apply Hnew; by left).
  assert (∀ a b, image !! a = Some b → f' a = b) as Hat.
  { intros a b Hb. apply Hnew. right. apply elem_of_list_lookup_2 with a.
    by rewrite lookup_zip_with, lookup_seq_lt, Hb by by eapply lookup_lt_Some. }
  assert (∀ i, f' (log_address g i) = blank_block) as Hlog.
  { intros i. apply Hat. unfold log_address, image. simpl. rewrite lookup_app_l.
    - apply lookup_replicate_2. apply Nat.mod_upper_bound. lia.
    - rewrite replicate_length. apply Nat.mod_upper_bound. lia. }
  assert (trees_show bits t no_maps) as Ht by apply end_epoch_shown, shows_nothing.
  assert (TreeIndexBounds.kept_trees bits (S levels) (trees (views t))) as Hkept.
  { apply TreeIndexBounds.checkpoint_kept, TreeIndexBounds.kept_create. }
  assert (SharedTree.height (trees (views t)) = S levels) as Hheight by done.
  destruct (TreeStoreTheorem.new_trees_blocks (λ p, f' (page_address g p)) levels) as [Hin Hall].
  { simpl. by rewrite Hpage. }
  assert (holds_trees bits size (trees (views t)) {[0 := 0]} (beside_of 1 t) g f' false 1 1 no_maps) as Hheld.
  { split; [by rewrite (Hat superblock super)| |done|done|by rewrite Hheight|done|].
    2:{ by intros n p [<- <-]%lookup_singleton_Some. }
    rewrite Hheight. split; [|by split_and!]. exists (length bs). split; [done|]. split.
    - simpl. rewrite (Hat 1 header), (Hat 2 blank_block), Hheader by done.
      destruct (unseal _ blank_block) as [[n len]|] eqn:Hn; [|done]. by apply blank_number in Hn as ->.
    - etransitivity; [|exact Hbody]. f_equal.
      apply list_eq. intros i. rewrite !list_lookup_fmap. destruct (bs !! i) as [b|] eqn:Hb.
      + pose proof (lookup_lt_Some _ _ _ Hb). rewrite lookup_seq_lt by done. simpl. f_equal. apply Hat.
        unfold image, body_address. simpl. rewrite lookup_app_r; rewrite replicate_length; [|lia].
        by replace (log_blocks g + 0 + i - log_blocks g) with i by lia.
      + apply lookup_ge_None_1 in Hb. by rewrite lookup_ge_None_2 by (by rewrite seq_length). }
  exists (trees (views t)), (beside_of 1 t), no_maps. split; [|split; [apply changed_not|done]].
  split; [|split].
  - exists no_maps, [].
    split_and!; [|done|done|split; [done|apply tree_collected_below]|split]; try done.
    2:{ split; [constructor|by intros ? ?%elem_of_nil]. }
    2:{ by intros ? ?%elem_of_nil. }
    split; simpl; try done; try lia.
    + intros old r rest Hrs. by destruct old.
    + intros i n r. rewrite Hlog. intros ->%blank_record. lia.
    + rewrite total_nil. lia.
  - intros x (vm&l&[->|[n Hn]]&Hx); simpl in *; by rewrite lookup_empty in *.
  - split; [done|]. intros n. simpl. rewrite lookup_empty. constructor.
Qed.
End NewDisk.
