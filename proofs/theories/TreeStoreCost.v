(** What a checkpoint writes: the nodes that are new since the last one, and the roots.
A block that was written
or unmapped meanwhile makes at most one node new for each level of its tree. *)
From LogDisk Require Import TreeIndexBounds.
From LogDisk Require TreeIndexLeaves ProvedDiskProgress.
From LogDisk Require Import Medium Codec TreeBlocks TreeRoots TreeStore.
Import LogStructuredDisk(targets).
Import ProvedDiskProgress(cost, execute_write_all).

Section Cost.
Context `{!blocks} `{!blocks_laws} {A : Type} (beside_codec : codec A) (l : layout).
Implicit Types (y : memory A) (places : list nat).

(** A proposal that is taken: as many pages as there are new nodes, which the newest checkpoint does not
use. *)
Definition proper_places y places : Prop :=
  length places = length (unwritten (trees y) (pages y)) ∧ NoDup places ∧
  Forall (λ p, p ∉ targets (pages y)) places.

(** Words go into as few blocks as they need. *)
Lemma pack_many_some n ws : Forall (λ w, w < limit) ws → length ws ≤ n * words → ∃ bs,
  pack_many n ws = Some bs ∧ length bs ≤ S (length ws / words).
Proof.
  pose proof words_positive as Hpos.
  revert ws. induction n as [|n IH]; intros ws Hsmall Hlen; simpl in Hlen.
  { destruct ws; [|simpl in Hlen; lia]. exists []. split; [done|simpl; lia]. }
  destruct (decide (ws = [])) as [->|Hne]; [exists []; split; [done|simpl; lia]|].
  destruct (pack_small (take words ws)) as [b Hb]; [rewrite take_length; lia|by apply Forall_take|].
  destruct (IH (drop words ws)) as (bs & Hbs & Hk); [by apply Forall_drop|rewrite drop_length; lia|].
  exists (b :: bs). split; [simpl; destruct ws; [done|]; by rewrite Hb, Hbs|]. simpl.
  rewrite drop_length in Hk. destruct (decide (words ≤ length ws)) as [Hle|].
  - pose proof (Nat.div_add (length ws - words) 1 words). rewrite Nat.mul_1_l in *.
    replace (length ws - words + words) with (length ws) in * by lia. lia.
  - assert (drop words ws = []) as E by (apply drop_ge; lia). rewrite E in Hbs.
    destruct n; simpl in Hbs; injection Hbs as <-; simpl; lia.
Qed.

Theorem checkpoint_cost bits levels y places m : kept_trees bits levels (trees y) →
  1 + 4 * 2 ^ bits ≤ words → 2 ^ bits < limit → proper_places y places →
  let y' := checkpointed y places in
  small_numbers (trees y) (pages y') → serial y' < limit → slot_blocks l < limit →
  let ws := put (body_codec beside_codec) (roots_of (trees y') (pages y'), beside y) in
  Forall (λ w, w < limit) ws → length ws ≤ slot_blocks l * words →
  (execute (checkpoint beside_codec l y places Done) m).1 = y' ∧ ∃ k, k ≤ S (length ws / words) ∧
  cost (checkpoint beside_codec l y places Done) m =
    (0, length (unwritten (trees y) (pages y)) + k + 1, 2).
Proof.
  intros Hkept Hwords Hlimit Hplaces y' Hsmall Hserial Hslot ws Hws Hfits.
  pose proof Hplaces as (Hlen & _ & _).
  destruct (pack_many_some _ _ Hws Hfits) as (body & Hbody & Hk).
  apply pack_many_prefix in Hbody as Hblen. destruct Hblen as [Hblen _]. unfold ws in Hbody.
  unfold checkpoint. fold y'. rewrite decide_True by done.
  destruct (mapM (λ e, pack (kids_words (trees y) (pages y') e.2)) (unwritten (trees y) (pages y)))
    as [nodes|] eqn:Hnodes.
  2:{ apply mapM_None, Exists_exists in Hnodes as ([n nd] & (Hn & _ & _)%elem_of_unwritten & Hnone).
      destruct (node_fits bits levels (trees y) (pages y') n nd) as (b & Hb & _); [done..|].
      cbv beta in Hnone. change (n, nd).2 with nd in Hnone. by rewrite Hb in Hnone. }
  rewrite Hbody. rewrite (seal_some (put header_codec (serial y', length body))).
  2:{ pose proof (Nat.pow_nonzero 2 bits). pose proof two_words_fit. simpl. lia. }
  2:{ simpl. repeat constructor; [done|lia]. }
  match goal with |- context [write_all ?ws ?p] => destruct (execute_write_all ws p m) as (m' & -> & ->) end.
  split; [done|]. exists (length body). split; [done|]. simpl. apply mapM_Some in Hnodes.
  pose proof (Forall2_length _ _ _ Hnodes) as Hnlen.
  rewrite zip_with_length, !app_length, !fmap_length, seq_length. f_equal. f_equal. lia.
Qed.
End Cost.

(** ** New nodes *)

Local Instance node_eq_dec : EqDecision node := ltac:(solve_decision).

Lemma length_NoDup_bounded {X} `{EqDecision X} (g : X → nat) xs k : NoDup xs → (∀ x, x ∈ xs → g x < k) →
  (∀ x x', x ∈ xs → x' ∈ xs → g x = g x' → x = x') → length xs ≤ k.
Proof.
  intros Hdup Hlt Hinj. rewrite <- (fmap_length g xs), <- (seq_length k 0).
  apply submseteq_length, NoDup_submseteq.
  - by apply NoDup_fmap_2_strong.
  - intros i (x & -> & Hx)%elem_of_list_fmap. apply elem_of_seq. specialize (Hlt _ Hx). lia.
Qed.

Lemma length_filters {X} (P : X → Prop) `{∀ x, Decision (P x)} l :
  length l = length (filter P l) + length (filter (λ x, ¬ P x) l).
Proof.
  induction l as [|x l IH]; [done|]. rewrite !filter_cons. destruct (decide (P x)) as [Hx|Hx].
  - rewrite decide_False by tauto. simpl. lia.
  - rewrite decide_True by done. simpl. lia.
Qed.

(** Pages for the nodes of the newest checkpoint and for the new ones are enough: a proposal is found. *)
Theorem pages_suffice `{!blocks} {A} (y : memory A) n :
  size (pages y) + length (unwritten (trees y) (pages y)) ≤ n →
  ∃ places, proper_places y places ∧ Forall (λ p, p < n) places.
Proof.
  intros Hn. set (used := targets (pages y)). set (free := filter (λ p, p ∉ used) (seq 0 n)).
  assert (NoDup free) as Hdup by apply NoDup_filter, NoDup_seq.
  assert (length (filter (λ p, ¬ (p ∉ used)) (seq 0 n)) ≤ size (pages y)) as Hused.
  { unfold size, map_size. rewrite <- (fmap_length snd (map_to_list (pages y))).
    apply submseteq_length, NoDup_submseteq; [apply NoDup_filter, NoDup_seq|].
    intros p [Hp _]%elem_of_list_filter. by apply (elem_of_list_to_set (C := gset nat)), dec_stable. }
  pose proof (length_filters (λ p, p ∉ used) (seq 0 n)) as Hall. rewrite seq_length in Hall.
  fold free in Hall.
  exists (take (length (unwritten (trees y) (pages y))) free). split; [split_and!|].
  - rewrite take_length. lia.
  - rewrite <- (take_drop (length (unwritten (trees y) (pages y))) free) in Hdup.
    by apply NoDup_app in Hdup as [? _].
  - apply Forall_take, Forall_forall. by intros p [? _]%elem_of_list_filter.
  - apply Forall_take, Forall_forall. intros p [_ [_ ?]%elem_of_seq]%elem_of_list_filter. lia.
Qed.

(** The nodes that an action makes new are on the path of its key, at most one for each level. *)
Lemma update_unwritten s s' k x on : inv s → length k = height s → update k x s = Some s' →
  length (unwritten s' on) ≤ length (unwritten s on) + height s.
Proof.
  intros I Hk Hu. destruct (TreeIndexLeaves.update_same I Hk Hu) as [Hh He].
  pose proof (inv_update _ _ _ _ I Hk Hu) as I'. destruct (update_spec _ _ _ _ I Hk Hu) as (c&r&dr&U).
  pose proof (upd_put _ _ _ _ _ _ _ U) as P.
  set (old := filter (λ e, nodes s !! e.1 = Some e.2) (unwritten s' on)).
  set (new := filter (λ e, nodes s !! e.1 ≠ Some e.2) (unwritten s' on)).
  assert (length (unwritten s' on) = length old + length new) as ->.
  { apply (length_filters (λ e, nodes s !! e.1 = Some e.2)). }
  assert (NoDup (unwritten s' on)) as Hdup by apply NoDup_map_to_list.
  assert (length old ≤ length (unwritten s on)) as Hold.
  { apply submseteq_length, NoDup_submseteq; [by apply NoDup_filter|].
    intros [n nd] [Hn Hin]%elem_of_list_filter. simpl in Hn. apply elem_of_unwritten in Hin as (_ & Hon & Hl).
    apply elem_of_unwritten. by rewrite Hh in Hl. }
  assert (length new ≤ height s) as Hnew; [|lia].
  assert (∀ n nd, (n, nd) ∈ new → nodes s' !! n = Some nd ∧ place nd `prefix_of` k ∧ birth nd = epoch s' ∧
    length (place nd) < height s) as Hpath.
  { intros n nd [Hn Hin]%elem_of_list_filter. simpl in Hn. apply elem_of_unwritten in Hin as (Hn' & _ & Hl).
    rewrite Hh in Hl. destruct (put_frame _ _ _ _ _ _ _ _ _ _ _ _ P n) as [E|(q & Hq & _ & Hborn)];
    [congruence|].
    destruct (Hborn _ Hn') as [Hb Hp]. simpl in Hp.
    split_and!; [done|by rewrite Hp|by rewrite He|done]. }
  apply (length_NoDup_bounded (λ e, length (place e.2))); [by apply NoDup_filter| |].
  - intros [n nd] Hin. by apply (Hpath n nd).
  - intros [n nd] [n' nd'] (Hn & Hp & Hb & _)%Hpath (Hn' & Hp' & Hb' & _)%Hpath Hl. simpl in Hl.
    assert (place nd = place nd') as E.
    { destruct Hp as [z Hz], Hp' as [z' Hz']. rewrite Hz in Hz'. by apply app_inj_1 in Hz' as [? _]. }
    pose proof (TreeIndexLeaves.live_born _ _ _ I' Hn Hb) as H1.
    pose proof (TreeIndexLeaves.live_born _ _ _ I' Hn' Hb') as H2. rewrite E in H1. congruence.
Qed.

Lemma unwritten_fewer s s' on : height s' = height s → nodes s' ⊆ nodes s →
  length (unwritten s' on) ≤ length (unwritten s on).
Proof.
  intros Hh Hsub. apply submseteq_length, NoDup_submseteq; [apply NoDup_map_to_list|].
  intros [n nd] (Hn & Hon & Hl)%elem_of_unwritten. apply elem_of_unwritten. rewrite Hh in Hl.
  split_and!; [by eapply lookup_weaken|done..].
Qed.

(** The blocks that an action writes or unmaps. *)
Definition changes (a : action) : nat := match a with Write _ _ | Unmap _ => 1 | _ => 0 end.

Lemma apply_unwritten a s s' on : inv s → apply a s = Some s' → height s' = height s ∧
  length (unwritten s' on) ≤ length (unwritten s on) + changes a * height s.
Proof.
  intros I Ha. assert (∀ k x, length k = height s → update k x s = Some s' → height s' = height s ∧
    length (unwritten s' on) ≤ length (unwritten s on) + 1 * height s) as Hupdate.
  { intros k x Hk Hu. rewrite Nat.mul_1_l. split; [by eapply TreeIndexLeaves.update_same|].
    by eapply update_unwritten. }
  assert (nodes s' = nodes s → height s' = height s → height s' = height s ∧
    length (unwritten s' on) ≤ length (unwritten s on) + changes a * height s) as Hsame.
  { intros Hn Hh. split; [done|]. pose proof (unwritten_fewer s s' on Hh). rewrite Hn in *.
    assert (length (unwritten s' on) ≤ length (unwritten s on)) by auto. lia. }
  destruct a as [k x|k| |v|v| |t n|t ps]; simpl in Ha.
  - destruct (Nat.eqb_spec (length k) (height s)); [|done]. by eapply Hupdate.
  - destruct (Nat.eqb_spec (length k) (height s)); [|done].
    destruct (read s (epoch s) k); [by eapply Hupdate|]. injection Ha as <-. by apply Hsame.
  - destruct (claims s !! _); simpl in Ha; [|done]. injection Ha as <-. by apply Hsame.
  - destruct (v =? epoch s); [done|]. destruct (claims s !! _); simpl in Ha; [|done].
    injection Ha as <-. by apply Hsame.
  - destruct (v =? epoch s); [done|]. destruct (claims s !! View v); simpl in Ha; [|done].
    destruct (claims s !! _); simpl in Ha; [|done]. injection Ha as <-. by apply Hsame.
  - destruct (claims s !! _); simpl in Ha; [|done]. injection Ha as <-. by apply Hsame.
  - destruct (reclaim_same _ _ _ _ I Ha) as ([= Hh _ _] & _ & Hn). split; [done|].
    assert (nodes s' ⊆ nodes s) as Hsub by (destruct Hn as [->| ->]; [done|apply delete_subseteq]).
    pose proof (unwritten_fewer s s' on Hh Hsub). lia.
  - destruct (claims s !! _); simpl in Ha; [|done]. destruct (forallb _ _); [|done].
    injection Ha as <-. by apply Hsame.
Qed.

(** What is new after any history since a checkpoint. *)
Theorem new_nodes history s s' on : inv s → all_in_blocks s on → run s history = Some s' →
  length (unwritten s' on) ≤ sum_list (changes <$> history) * height s.
Proof.
  intros I Hall Hrun. assert (length (unwritten s on) = 0) as Hnone.
  { destruct (unwritten s on) as [|[n nd] es] eqn:E; [done|]. exfalso.
    assert ((n, nd) ∈ unwritten s on) as (Hn & Hon & Hl)%elem_of_unwritten by (rewrite E; by left).
    destruct (Hall n nd) as [p Hp]; [done|by apply bool_decide_pack|congruence]. }
  cut (length (unwritten s' on) ≤ length (unwritten s on) + sum_list (changes <$> history) * height s);
  [lia|].
  clear Hall Hnone. revert s I Hrun. induction history as [|a history IH]; intros s I Hrun; simpl in Hrun.
  - injection Hrun as <-. simpl. lia.
  - destruct (apply a s) as [s1|] eqn:Ha; simpl in Hrun; [|done].
    destruct (apply_unwritten a s s1 on I Ha) as [Hh Hle].
    specialize (IH s1 (inv_step _ _ _ I Ha) Hrun). rewrite Hh in IH. rewrite fmap_cons. simpl.
    rewrite Nat.mul_add_distr_r. lia.
Qed.
