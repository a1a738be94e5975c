(** A checkpoint, and recovery, of the proved disk with trees: whenever the power fails, the disk is as it
was. *)
From stdpp Require Import gmap strings.
From LogDisk Require TreeStore TreeStoreTheorem TreeBlocks TreeIndexBounds TreeIndexMaps SharedTree.
From LogDisk Require Import VirtualDisk Medium Codec ProvedTreeMaps.
From LogDisk Require Import ProvedDisk ProvedDiskInvariant ProvedDiskMaps ProvedDiskAppend ProvedDiskRecovery.
From LogDisk Require Import ProvedTreeDiskInvariant.
Import ProvedTreeDisk(page_address, layout_of, beside, beside_codec, beside_of, maps_of, tree_superblock).
Import TreeIndex(trees, named).

Section Recovery.
Context `{!blocks, !blocks_laws} {torn : tearing block} (bits : nat).
Implicit Types (f : contents block) (d : disk block) (P : contents block → Prop) (y : T.memory).
Notation tree_represents := (tree_represents bits).
Notation tree_recoverable_of := (tree_recoverable_of bits).
Notation format_of size s0 on x0 := (trees_format bits size s0 on x0).
Notation held_by y s0 x0 := (trees_format bits (T.tree_size y) s0 (T.pages y) x0).

(** ** Checkpoints *)

(** What a checkpoint leaves alone: superblock, log, and the data that are needed. *)
Lemma spared_log g f f' places sl n : TreeStore.spared (layout_of g) f places sl f' → 0 < log_blocks g →
  f' (log_address g n) = f (log_address g n).
Proof.
  intros Hf Hpos. pose proof (log_address_bound g n Hpos) as Hn. apply Hf.
  - intros [(p & _ & Ha)|(i & Hi & Ha)]; simpl in Ha.
    + unfold page_address, data_address in Ha. lia.
    + unfold body_address in Ha. lia.
  - simpl. pose proof (header_address_bound sl). lia.
Qed.

Lemma spared_superblock g f f' places sl : TreeStore.spared (layout_of g) f places sl f' →
  f' superblock = f superblock.
Proof.
  intros Hf. unfold superblock. apply Hf.
  - intros [(p & _ & Ha)|(i & Hi & Ha)]; simpl in Ha; [unfold page_address, data_address in Ha|
      unfold body_address in Ha]; lia.
  - simpl. pose proof (header_address_bound sl). lia.
Qed.

Lemma spared_data g f f' places sl p : TreeStore.spared (layout_of g) f places sl f' → p < data_blocks g →
  f' (data_address g p) = f (data_address g p).
Proof.
  intros Hf Hp. apply Hf.
  - intros [(q & _ & Ha)|(i & Hi & Ha)]; simpl in Ha; [unfold page_address, data_address in Ha; lia|].
    unfold body_address, data_address in Ha. simpl in Hi. destruct sl; lia.
  - simpl. pose proof (header_address_bound sl). unfold data_address. lia.
Qed.

(** Where data are that are needed. *)
Lemma needed_places {F : checkpoint_format} (z : memory) f d a : represents z f d → data_needed z a →
  ∃ p, p < data_blocks (shape z) ∧ a = data_address (shape z) p.
Proof.
  intros [(m0&rs&_&_&_&[Hmid _]&Hconf) _] [(x&p&_&Hp&->)|(p&Hp&->)]; exists p; (split; [|done]).
  - by eapply Hmid.
  - by apply (newest_proper _ _ _ Hconf).
Qed.

(** The trees as they are now, with what is on pages: of those that the newest checkpoint saved. *)
Lemma trees_now size s0 on x0 (z : memory) f d t : @represents _ (format_of size s0 on x0) torn z f d →
  changed bits s0 t →
  TreeIndexBounds.kept_trees bits (SharedTree.height s0) s0 ∧
  TreeIndexBounds.kept_trees bits (SharedTree.height s0) (trees (views t)) ∧
  TreeBlocks.in_blocks (λ p, f (page_address (shape z) p)) (trees (views t)) on.
Proof.
  intros Hz (history & Hh & Hrun). destruct (tree_holds _ _ _ _ _ _ _ _ Hz) as [m0 Hheld].
  destruct (trees_stored _ _ _ _ _ _ _ _ _ _ _ Hheld) as (_ & Hin & _ & Hkept). split; [done|].
  by eapply (TreeStoreTheorem.run_in_blocks bits).
Qed.

(** A checkpoint uses no pages but those that there are. *)
Lemma pages_placed s on places all : (∀ n p, on !! n = Some p → p < all) → Forall (λ p, p < all) places →
  ∀ n p, TreeBlocks.placed_on s on places !! n = Some p → p < all.
Proof.
  intros Hon Hplaces n p [Hn|[_ [Hn _]%map_filter_lookup_Some]]%lookup_union_Some_raw; [|by eapply Hon].
  rewrite Forall_forall in Hplaces. apply elem_of_list_to_map_2, elem_of_zip_r in Hn. by apply Hplaces.
Qed.

Lemma free_pages_below all on n : Forall (λ p, p < all) (T.free_pages all on n).
Proof.
  apply Forall_forall. intros p (i & Hp & _)%elem_of_take.
  apply elem_of_list_lookup_2, elem_of_list_In, filter_In in Hp as [Hp%elem_of_list_In%elem_of_seq _]. lia.
Qed.

(** After a checkpoint the device holds its trees. *)
Lemma committed_represents s0 x0 m y f f' d places :
  let z := TreeStore.checkpointed (T.store_of y) places in
  Forall (λ p, p < T.page_blocks y) places →
  @represents _ (held_by y s0 x0) torn (with_maps y m) f d →
  changed bits s0 (T.current y) → trees_show bits (T.current y) m →
  TreeStore.stored beside_codec (layout_of (T.shape y)) bits (SharedTree.height s0) f' (TreeStore.trees z)
    (TreeStore.pages z) (TreeStore.beside z) (TreeStore.serial z) (TreeStore.slot z) →
  TreeStore.spared (layout_of (T.shape y)) f places (TreeStore.slot z) f' →
  tree_represents (T.committed y z) f' d.
Proof.
  intros z Hplaces Hy Hc Ht Hstored Hspared.
  destruct (tree_holds _ _ _ _ _ _ _ _ Hy) as [m0 Hheld0].
  destruct (trees_now _ _ _ _ _ _ _ _ Hy Hc) as (Hkept0 & Hkept & _).
  pose proof Hy as [(m1&rs&Hdur&Hnext&Hcur&[Hmid Hbelow]&_) [Hwf Hag]].
  pose proof (log_positive _ _ _ _ _ _ _ Hdur) as Hpos.
  destruct Hheld0 as [Hsuper _ _ _ Hkeys Hheight Hpages].
  assert (T.current (T.committed y z) = end_epoch (T.current y)) as Ecur by done.
  pose proof (end_epoch_shown bits _ _ Ht) as Hend.
  pose proof Hstored as (_ & _ & _ & Hkept1).
  assert (SharedTree.height (TreeStore.trees z) = SharedTree.height s0) as Eheight.
  { by destruct (TreeIndexBounds.kept_bounded _ _ _ Hkept1) as [-> _]. }
  assert (∀ x, reachable m x → is_Some (ProvedTreeMaps.places (T.current y) !! x)) as Hknown.
  { intros x. by apply (reachable_known bits). }
  assert (trees_show bits (end_epoch (T.current y)) (middle_to m (ProvedTreeMaps.places (T.current y))))
    as Hshown by (by apply (shows_forgetting bits _ _ Hend)).
  exists (TreeStore.trees z), (TreeStore.beside z), (middle_to m (ProvedTreeMaps.places (T.current y))).
  split; [|split; [exact (changed_not bits (T.current (T.committed y z)))|by rewrite Ecur]].
  assert (ProvedTreeMaps.places (T.current y) ⊆ middle m) as Hsub by apply Ht.
  assert (holds_trees bits (T.tree_size y) (TreeStore.trees z) (TreeStore.pages z) (TreeStore.beside z)
    (T.shape y) f' (TreeStore.slot z) (TreeStore.serial z) (T.next_record y)
    (middle_to m (ProvedTreeMaps.places (T.current y)))) as Hheld.
  { split; [|by rewrite Eheight|done| |by rewrite Eheight|by rewrite Eheight|by eapply pages_placed].
    - by erewrite spared_superblock.
    - pose proof (TreeIndexMaps.rep_middle _ _ _ (shows_views _ _ _ Ht)) as Hmiddle. simpl in Hmiddle.
      unfold end_epoch, TreeIndex.with_trees in Hshown. rewrite Hmiddle in Hshown. exact Hshown. }
  split; [|split].
  - exists (middle_to m (ProvedTreeMaps.places (T.current y))), [].
    split_and!; simpl; [|by rewrite Nat.add_0_r|done|..].
    + split; simpl; try done; try lia.
      * intros old r rest Hrs. by destruct old.
      * intros i n r. erewrite spared_log by done. intros Hn.
        apply (at_stale _ _ _ _ _ _ _ Hdur) in Hn. rewrite ?total_nil. simpl in *. lia.
      * rewrite total_nil. lia.
      * apply (log_unread _ _ _ _ _ _ _ Hdur).
      * pose proof (log_numbered _ _ _ _ _ _ _ Hdur). simpl in *. lia.
    + split; simpl; [|done]. intros x p Hp. eapply Hmid. by eapply lookup_weaken.
    + split; simpl; try done; [split; [constructor|by intros ? ?%elem_of_nil]|by intros ? ?%elem_of_nil].
  - by apply middle_well_formed.
  - eapply agrees_frame; [|by eapply middle_agrees]. intros a (x&p&_&Hp&->). simpl in Hp.
    eapply spared_data; [done|]. eapply Hmid. by eapply lookup_weaken.
Qed.

Lemma crash_safe_tree_checkpoint {A} P (Q : A → medium block → Prop) y k f d :
  tree_represents y f d → (∀ f, tree_recoverable_of (T.tree_size y) (T.shape y) d f → P f) →
  (∀ y' f', tree_represents y' f' d → T.shape y' = T.shape y → T.tree_size y' = T.tree_size y →
    crash_safe P Q (k y') (Medium f' [])) →
  crash_safe P Q (T.checkpoint y k) (Medium f []).
Proof.
  intros (s0 & x0 & m & Hy & Hc & Ht) HP Hk. unfold T.checkpoint.
  set (places := T.free_pages _ _ _).
  assert (Forall (λ p, p < T.page_blocks y) places) as Hplaces by apply free_pages_below.
  set (z := TreeStore.checkpointed (T.store_of y) places).
  destruct (tree_holds _ _ _ _ _ _ _ _ Hy) as [m0 Hheld].
  destruct (trees_now _ _ _ _ _ _ _ _ Hy Hc) as (_ & Hkept & Hin).
  pose proof Hy as [(m1&rs&Hdur&_) _]. pose proof (log_positive _ _ _ _ _ _ _ Hdur) as Hpos.
  pose proof (trees_stored _ _ _ _ _ _ _ _ _ _ _ Hheld) as Hstored. simpl in Hstored.
  apply (TreeStore.checkpoint_safe beside_codec (layout_of (T.shape y)) bits (SharedTree.height s0)
    (layout_apart _) beside_round_trips) with (s0 := s0) (x0 := x0); simpl; try done.
  - intros s. pose proof (header_address_bound s).
    destruct (log_unread _ _ _ _ _ _ _ Hdur (header_address s)) as [? Hno]; [simpl; lia|].
    split; [done|]. intros b Hb. apply Hno; [done|]. unfold superblock. lia.
  - intros f' Hs Hspared. apply HP. exists s0, (T.pages y), x0, (with_maps y m).
    split; [done|left].
    apply (represents_held (F := held_by y s0 x0)) with f; [| | |exact Hy].
    + intros m2 [? _ ? ? ? ? ?]. split; try done. by erewrite spared_superblock.
    + intros n. by eapply spared_log.
    + intros a Ha. destruct (needed_places _ _ _ _ Hy Ha) as (p & Hp & ->). by eapply spared_data.
  - intros f' Hs Hspared. apply HP.
    apply (tree_recoverable_represents bits (T.committed y z)). by eapply committed_represents.
  - rewrite decide_True by done. apply Hk; [|done..]. by exists s0, x0, m.
  - intros f' Hs _ Hspared. rewrite decide_False by lia. apply (Hk (T.committed y z)); [|done..].
    by eapply committed_represents.
Qed.

Lemma crash_safe_tree_room {A} P (Q : A → medium block → Prop) n y k f d :
  tree_represents y f d → (∀ f, tree_recoverable_of (T.tree_size y) (T.shape y) d f → P f) →
  (∀ y' f', tree_represents y' f' d → T.shape y' = T.shape y → T.tree_size y' = T.tree_size y →
    crash_safe P Q (k y') (Medium f' [])) →
  crash_safe P Q (T.with_room n y k) (Medium f []).
Proof.
  intros Hy HP Hk. unfold T.with_room. destruct (T.room_for y n);
    [by apply Hk|by eapply crash_safe_tree_checkpoint].
Qed.

(** ** Recovery *)

Lemma crash_safe_tree_recover {A} P (Q : A → medium block → Prop) size g f d k :
  tree_recoverable_of size g d f → (∀ f, tree_recoverable_of size g d f → P f) →
  (∀ y' f', tree_represents y' f' d → T.shape y' = g → T.tree_size y' = size →
    crash_safe P Q (k (Some y')) (Medium f' [])) →
  crash_safe P Q (T.recover bits k) (Medium f []).
Proof.
  intros (s0 & on & x0 & z & <- & Hz) HP Hk.
  assert (safe P (Medium f [])) as Hsafe.
  { apply (@safe_recoverable _ (format_of size s0 on x0) torn (shape z) d P f); [by exists z|].
    intros f' Hf'. apply HP. by exists s0, on, x0. }
  assert (∃ m0, holds_trees bits size s0 on x0 (shape z) f (slot z) (serial z) (first_record z) m0 ∧
    torn_unread (shape z)) as (m0 & [Hsuper Hstored Hfirst Hshown Hkeys Hheight Hpages] & Hwhole).
  { destruct (@recoverable_holds _ (format_of size s0 on x0) torn z f d Hz) as [m0 Hm0]. exists m0.
    split; [exact Hm0|]. destruct Hz as [[(m1&rs&Hdur&_) _]|[[(m1&rs&Hdur&_) _] _]]; apply Hdur. }
  unfold T.recover. split; [done|]. unfold read_block. simpl. rewrite Hsuper.
  apply (TreeStore.recover_safe beside_codec (layout_of (shape z)) bits (SharedTree.height s0)) with
    (s := s0) (on := on) (x := x0) (n := serial z) (sl := slot z); [done|done|].
  intros on' Hsub Hstored'. simpl.
  assert (∀ m1, holds_trees bits size s0 on x0 (shape z) f (slot z) (serial z) (first_record z) m1 →
    holds_trees bits size s0 on' x0 (shape z) f (slot z) (serial z) (first_record z) m1) as Hheld.
  { intros m1 [? _ ? ? ? ? ?]. split; try done. intros m p Hp. by eapply Hpages, lookup_weaken. }
  assert (@represents _ (format_of size s0 on' x0) torn z f d ∨
    @unconfirmed _ (format_of size s0 on' x0) torn z f d) as Hz'.
  { destruct Hz as [Hz|Hz]; [left|right].
    - by apply (represents_held (F := format_of size s0 on x0)) with f.
    - by apply (unconfirmed_held (F := format_of size s0 on x0)). }
  clear Hz Hheld Hstored Hstored'. rewrite Hfirst.
  apply (@crash_safe_log _ _ (format_of size s0 on' x0) torn _ _ P Q _ _ z f d); [done|..].
  - intros f' Hf'. apply HP. by exists s0, on', x0.
  - intros f' m1 rs Hheld Hy Hin Hcur. simpl. apply Hk; [|done..].
    destruct Hheld as [_ Hstored _ Hshown1 _]. destruct Hstored as (_ & _ & _ & Hkept).
    set (t := foldl _ _ rs).
    assert (trees_show bits t (current z)) as Ht.
    { rewrite Hcur. by apply records_shown. }
    exists s0, x0, (current z). split; [|split; [|done]].
    + apply (represents_free z f' d); [done|..]; simpl.
      * eapply tree_collected_well_formed; [done|]. apply Hy.
      * apply tree_collected_below.
      * intros p. apply tree_collected_kept.
    + eapply (records_changed bits (SharedTree.height s0)); [done|done|
        exact (changed_not bits (maps_of s0 x0))|done|done].
Qed.
End Recovery.
