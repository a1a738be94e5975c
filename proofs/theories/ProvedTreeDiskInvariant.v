(** What a device holds of the proved disk with trees, and what memory knows of it.

It is what [ProvedDiskInvariant.v] says of the disk with maps, with another way to hold a checkpoint. The maps
themselves are nowhere: the trees show them. *)
From stdpp Require Import gmap strings.
From LogDisk Require TreeStore TreeBlocks TreeIndexBounds TreeIndexMaps SharedTree.
From LogDisk Require Import VirtualDisk Medium Codec ProvedTreeMaps.
From LogDisk Require Import ProvedDisk ProvedDiskInvariant ProvedDiskMaps ProvedDiskAppend ProvedDiskRecovery.
From LogDisk Require ProvedTreeDisk.
Import ProvedTreeDisk(page_address, layout_of, beside, beside_codec, beside_of, maps_of, tree_superblock).
Import TreeIndex(trees).
Module T := ProvedTreeDisk.

(** ** Where things stand *)

Lemma layout_apart g : TreeStore.apart (layout_of g).
Proof.
  unfold layout_of, page_address, body_address, data_address. split; simpl.
  - by intros [] [].
  - intros [] i [] j ? ?; simpl; intros; split; done || lia.
  - intros p q. lia.
  - intros [] i []; simpl; lia.
  - intros p []; simpl; lia.
  - intros p [] i ?; lia.
Qed.

Lemma beside_round_trips : round_trips beside_codec.
Proof.
  repeat first [apply both_round_trips | apply finite_map_round_trips];
    auto using number_round_trips, text_round_trips.
Qed.

Lemma tree_superblock_round_trips : round_trips tree_superblock.
Proof.
  apply both_round_trips; [|by apply both_round_trips]. apply mapped_round_trips; [|by intros []].
  apply both_round_trips; [apply text_round_trips|apply many_round_trips, number_round_trips].
Qed.

(** ** A checkpoint *)

Section Format.
Context `{!blocks} (bits : nat).
Context (size : nat * nat) (s0 : SharedTree.state) (on : gmap nat nat) (x0 : beside).
Implicit Types f : contents block.

(** The newest checkpoint has the trees [s0], of this size, whose nodes are on the pages [on], and [x0] beside
them. *)
Record holds_trees (g : geometry) f (s : bool) (ser fst : nat) (m : maps) : Prop := {
  trees_superblock : unpack tree_superblock (f superblock) = Some (g, size);
  trees_stored : TreeStore.stored beside_codec (layout_of g) bits (SharedTree.height s0) f s0 on x0 ser s;
  trees_first : x0.1 = fst;
  trees_shown : trees_show bits (maps_of s0 x0) m;
  trees_keys : disk_blocks g ≤ 2 ^ (bits * SharedTree.height s0);
  trees_height : SharedTree.height s0 = S size.1;
  trees_pages n p : on !! n = Some p → p < size.2;
}.

Definition trees_address (g : geometry) (s : bool) (a : nat) : Prop :=
  a = superblock ∨ TreeStore.needed (layout_of g) on s a.

Lemma holds_trees_same g f f' s ser fst m : (∀ a, trees_address g s a → f' a = f a) →
  holds_trees g f s ser fst m → holds_trees g f' s ser fst m.
Proof.
  intros Hf [Hsuper Hstored Hfst Hshown Hkeys Hheight Hpages]. split; try done.
  - rewrite Hf; [done|by left].
  - eapply TreeStore.stored_same; [|done]. intros a Ha. apply Hf. by right.
Qed.

Lemma trees_no_log g s a n : trees_address g s a → 0 < log_blocks g → a ≠ log_address g n.
Proof.
  intros Ha Hpos. pose proof (log_address_bound g n Hpos).
  destruct Ha as [->|[[b ->]|[(i & Hi & ->)|(m & p & _ & ->)]]]; simpl.
  - unfold superblock. lia.
  - pose proof (header_address_bound b). lia.
  - unfold body_address. lia.
  - unfold page_address, data_address. lia.
Qed.

Lemma trees_no_data g s a p : trees_address g s a → p < data_blocks g → a ≠ data_address g p.
Proof.
  unfold data_address. intros [->|[[b ->]|[(i & Hi & ->)|(m & q & _ & ->)]]] Hp; simpl in *.
  - unfold superblock. lia.
  - pose proof (header_address_bound b). lia.
  - unfold body_address. destruct s; lia.
  - unfold page_address, data_address. lia.
Qed.

Definition trees_format : checkpoint_format :=
  CheckpointFormat _ holds_trees trees_address holds_trees_same trees_no_log trees_no_data.
End Format.

(** ** Formats *)

Section Formats.
Context `{!blocks, !blocks_laws} {torn : tearing block} {F F' : checkpoint_format}.
Implicit Types (f : contents block) (d : disk block).

(** What is held in one way, and also in another. *)
Lemma represents_held y f f' d :
  (∀ m0, @holds_checkpoint _ F (shape y) f (slot y) (serial y) (first_record y) m0 →
    @holds_checkpoint _ F' (shape y) f' (slot y) (serial y) (first_record y) m0) →
  (∀ n, f' (log_address (shape y) n) = f (log_address (shape y) n)) → (∀ a, data_needed y a → f' a = f a) →
  @represents _ F torn y f d → @represents _ F' torn y f' d.
Proof.
  intros Hheld Hlog Hf [(m0&rs&[Hheld0 Hin Hat Hstale Hfits Hpos Hwhole Hnum]&?&?&?&Hconf) [Hwf Hag]].
  split; [|split; [done|]].
  - exists m0, rs. split_and!; try done.
    + split; try done; [by apply Hheld|..].
      * intros old r rest Hrs. apply (lies_at_same _ f); [by intros|by eapply Hat].
      * intros i n r. rewrite Hlog. apply Hstale.
    + eapply confirmed_frame; [|done]. intros p Hp. apply Hf. right. by exists p.
  - eapply agrees_frame; [|done]. intros a Ha. apply Hf. by left.
Qed.

Lemma unconfirmed_held y f d :
  (∀ m0, @holds_checkpoint _ F (shape y) f (slot y) (serial y) (first_record y) m0 →
    @holds_checkpoint _ F' (shape y) f (slot y) (serial y) (first_record y) m0) →
  @unconfirmed _ F torn y f d → @unconfirmed _ F' torn y f d.
Proof.
  intros Hheld [Hy Hwithout].
  split; [|destruct Hwithout as
    [(m0&rs&r&[Hheld0 Hin Hat Hstale Hfits Hpos Hwhole Hnum]&?&?&?&?&Hno)|Hbodies]; [left|by right];
    exists m0, rs, r; split_and!; try done; split; by auto].
  eapply represents_held; [|done|done|exact Hy]. intros m1 Hm1.
  assert (0 < log_blocks (shape y)) as Hpos.
  { destruct Hy as [(m2&rs&Hdur&_) _]. apply Hdur. }
  assert (∀ (G : checkpoint_format) a, @checkpoint_address _ G (shape y) (slot y) a → blanked y f a = f a)
    as Hsame.
  { intros G a Ha. unfold blanked. rewrite decide_False; [done|]. by eapply checkpoint_no_log. }
  eapply holds_same; [intros a Ha; by apply Hsame in Ha|]. apply Hheld.
  eapply holds_same; [|exact Hm1]. intros a Ha. symmetry. by apply Hsame in Ha.
Qed.
End Formats.

(** ** Memory *)

(** Memory as it would be with the maps [m]. *)
Definition with_maps (y : T.memory) (m : maps) : memory :=
  Memory (T.shape y) m (T.free y) (T.next_record y) (T.first_record y) (T.serial y) (T.slot y) (T.newest y).

Section Invariant.
Context `{!blocks, !blocks_laws} {torn : tearing block} (bits : nat).
Implicit Types (f : contents block) (d : disk block) (P : contents block → Prop) (y : T.memory).

(** How a device holds the newest checkpoint of which memory [y] knows. *)
Local Notation held_by y s0 x0 := (trees_format bits (T.tree_size y) s0 (T.pages y) x0).

(** Memory [y] and a device that holds [f] are the disk [d]. *)
Definition tree_represents y f d : Prop := ∃ s0 x0 m,
  @represents _ (held_by y s0 x0) torn (with_maps y m) f d ∧
  changed bits s0 (T.current y) ∧ trees_show bits (T.current y) m.

(** What recovery finds is the disk [d], with trees of this size. *)
Definition tree_recoverable_of (size : nat * nat) (g : geometry) d f : Prop := ∃ s0 on x0,
  @recoverable _ (trees_format bits size s0 on x0) torn g d f.
Definition tree_recoverable (g : geometry) d f : Prop := ∃ size, tree_recoverable_of size g d f.

Lemma tree_recoverable_represents y f d :
  tree_represents y f d → tree_recoverable_of (T.tree_size y) (T.shape y) d f.
Proof.
  intros (s0 & x0 & m & Hy & _). exists s0, (T.pages y), x0.
  by apply (@recoverable_represents _ (held_by y s0 x0) torn (with_maps y m)).
Qed.

Lemma tree_safe y f d P :
  tree_represents y f d → (∀ f, tree_recoverable_of (T.tree_size y) (T.shape y) d f → P f) →
  safe P (Medium f []).
Proof.
  intros (s0 & x0 & m & Hy & _) HP.
  apply (@safe_represents _ (held_by y s0 x0) torn P (with_maps y m) f d Hy).
  intros f' Hf'. apply HP. by exists s0, (T.pages y), x0.
Qed.

(** The checkpoint that the device holds. *)
Lemma tree_holds size s0 on x0 (z : memory) f d :
  @represents _ (trees_format bits size s0 on x0) torn z f d →
  ∃ m0, holds_trees bits size s0 on x0 (shape z) f (slot z) (serial z) (first_record z) m0.
Proof. intros [(m0 & rs & Hdur & _) _]. exists m0. apply Hdur. Qed.

(** The middle map may forget what no view refers to. *)
Definition middle_to (m : maps) (mid : gmap nat nat) : maps :=
  Maps (live_map m) (snap_maps m) mid (next_mba m).

Lemma middle_well_formed m fr mid : (∀ x, reachable m x → is_Some (mid !! x)) → mid ⊆ middle m →
  well_formed m fr → well_formed (middle_to m mid) fr.
Proof.
  intros Hall Hsub Hwf x Hx. destruct (Hwf x Hx) as (?&p&Hp&Hfree). split; [done|]. exists p.
  split; [|done]. destruct (Hall x Hx) as [p' Hp']. simpl. rewrite Hp'.
  eapply lookup_weaken in Hp'; [|exact Hsub]. congruence.
Qed.

Lemma middle_agrees g f m mid d : (∀ x, reachable m x → is_Some (mid !! x)) → mid ⊆ middle m →
  agrees g f m d → agrees g f (middle_to m mid) d.
Proof.
  intros Hall Hsub [Hlive Hsnaps].
  assert (∀ vm l, is_view m vm → value g f (middle_to m mid) vm l = value g f m vm l) as Hvalue.
  { intros vm l Hvm. apply value_same; [done| |done]. intros x Hx. destruct (Hall x Hx) as [p Hp]. simpl.
    rewrite Hp. symmetry. by eapply lookup_weaken. }
  split.
  - intros l. rewrite Hlive. symmetry. apply Hvalue. by left.
  - intros n. specialize (Hsnaps n). simpl. destruct (snap_maps m !! n) as [vm|] eqn:Hvm;
      inversion_clear Hsnaps as [? v Hv|]; constructor.
    intros l. rewrite Hv. symmetry. apply Hvalue. right. eauto.
Qed.

(** ** Free places *)

Lemma used_places_in t kept p : p ∈ kept ∨ (∃ x, places t !! x = Some p) → is_Some (T.used_places t kept !!
    p).
Proof.
  unfold T.used_places.
  assert (∀ (es : list (nat * nat)) (u : gmap nat ()), is_Some (u !! p) ∨ p ∈ es.*2 →
    is_Some (foldl (λ u e, <[e.2 := ()]> u) u es !! p)) as Hes.
  { induction es as [|e es IH]; intros u Hp; simpl.
    - destruct Hp as [?|?%elem_of_nil]; done.
    - apply IH. destruct (decide (p = e.2)) as [->|Hne]; [left; rewrite lookup_insert; by eexists|].
      rewrite lookup_insert_ne by done. destruct Hp as [?|[?|?]%elem_of_cons]; [by left|done|by right]. }
  intros Hp. apply Hes. destruct Hp as [Hp|[x Hx]].
  - left. clear Hes. induction Hp as [p kept|p p' kept _ IH]; simpl; [rewrite lookup_insert; by eexists|].
    destruct (decide (p = p')) as [->|]; [rewrite lookup_insert; by eexists|by rewrite lookup_insert_ne].
  - right. apply elem_of_list_fmap. exists (x, p). split; [done|]. by apply elem_of_map_to_list.
Qed.

Lemma tree_collected_kept g t kept p : p ∈ kept → T.collected g t kept !! p = None.
Proof. intros Hp. apply unused_free; [apply used_places_in; by left|apply lookup_empty]. Qed.

Lemma tree_collected_below g t kept p : is_Some (T.collected g t kept !! p) → p < data_blocks g.
Proof. intros [[? Hp]|?]%unused_below; [by rewrite lookup_empty in Hp|done]. Qed.

Lemma tree_collected_well_formed g t m kept fr : trees_show bits t m → well_formed m fr →
  well_formed m (T.collected g t kept).
Proof.
  intros Ht Hwf x Hx. destruct (Hwf x Hx) as (?&p&Hp&_). split; [done|]. exists p. split; [done|].
  apply unused_free; [|apply lookup_empty]. apply used_places_in. right. exists x.
  destruct (reachable_known bits t m x Ht Hx) as [p' Hp']. rewrite Hp'. f_equal.
  eapply lookup_weaken in Hp'; [|apply Ht]. congruence.
Qed.

Lemma tree_represents_collected y f d : tree_represents y f d → tree_represents (T.collect y) f d.
Proof.
  intros (s0 & x0 & m & Hy & Hc & Ht). exists s0, x0, m. split; [|done].
  apply (represents_free (with_maps y m) f d); [done|..].
  - eapply tree_collected_well_formed; [done|]. apply Hy.
  - apply tree_collected_below.
  - intros p. apply tree_collected_kept.
Qed.

(** ** Walks *)

Lemma tree_represents_walk y f d w n : tree_represents y f d → tree_represents (T.walk_on y w n) f d.
Proof.
  intros (s0 & x0 & m & Hy & Hc & Ht). unfold T.walk_on.
  destruct (walk w n (T.current y)) as [t|] eqn:Hw; [|by exists s0, x0, m].
  exists s0, x0, m. split; [done|]. split; [by eapply walk_changed|by eapply walk_shown].
Qed.
End Invariant.
