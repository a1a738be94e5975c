(** Walking down a heap: what a path reaches, and which changes of the heap leave that alone. *)
From LogDisk Require Export SharedTree.

(** A heap is tidy when numbers are given out once, and every edge leads one digit down to a node that is no
    younger than the node it leaves. *)
Record tidy (H e nx : nat) (h : heap) : Prop := Tidy {
  tidy_node n nd : h !! n = Some nd → n < nx ∧ 1 ≤ birth nd ≤ e;
  tidy_edge n nd d m : h !! n = Some nd → kids nd !! d = Some m → m < nx ∧ length (place nd) < H;
  tidy_kid n nd d m md : h !! n = Some nd → kids nd !! d = Some m → h !! m = Some md →
    place md = place nd ++ [d] ∧ birth md ≤ birth nd;
}.
Global Arguments tidy_node {H e nx h} _ {n nd} _. Global Arguments tidy_edge {H e nx h} _ {n nd d m} _ _.
Global Arguments tidy_kid {H e nx h} _ {n nd d m md} _ _ _.

Lemma tidy_mono H e e' nx nx' h : tidy H e nx h → e ≤ e' → nx ≤ nx' → tidy H e' nx' h.
Proof.
  intros [T1 T2 T3] He Hn. split; [| |done].
  - intros n nd ?%T1. lia.
  - intros n nd d m H1 H2. destruct (T2 _ _ _ _ H1 H2). lia.
Qed.

Lemma descend_cons h n d q nd m :
  h !! n = Some nd → kids nd !! d = Some m → descend h n (d :: q) = descend h m q.
Proof. intros H1 H2. simpl. by rewrite H1; simpl; rewrite H2. Qed.

Lemma descend_nil h n n' : descend h n [] = Some n' ↔ n' = n ∧ is_Some (h !! n).
Proof. simpl. destruct (h !! n); simpl; split; [naive_solver| |done|]; intros [-> [? [=]]]; done. Qed.

Lemma descend_cons_inv h n d q n' : descend h n (d :: q) = Some n' → ∃ nd m, h !! n = Some nd ∧
  kids nd !! d = Some m ∧ descend h m q = Some n'.
Proof. simpl. destruct (h !! n) as [nd|]; simpl; [|done].
  destruct (kids nd !! d) as [m|] eqn:E; simpl; [|done]. intros Hm. by exists nd, m. Qed.

Lemma descend_exists h n p n' : descend h n p = Some n' → is_Some (h !! n').
Proof.
  revert n. induction p as [|d q IH]; intros n.
  - by intros [-> ?]%descend_nil.
  - intros (?&?&?&?&?)%descend_cons_inv. eauto.
Qed.

Lemma descend_root h n p n' : descend h n p = Some n' → is_Some (h !! n).
Proof. destruct p; simpl; destruct (h !! n); by eauto. Qed.

Lemma descend_app h n p q : descend h n (p ++ q) = (m ← descend h n p; descend h m q).
Proof.
  revert n. induction p as [|d p IH]; intros n.
  - cbn [app]. destruct (h !! n) as [nd|] eqn:E.
    + assert (descend h n [] = Some n) as -> by (by apply descend_nil; eauto). done.
    + simpl. destruct q; simpl; by rewrite E.
  - simpl. destruct (h !! n) as [nd|]; simpl; [|done]. destruct (kids nd !! d); simpl; [|done]. apply IH.
Qed.

Lemma reaches_refl h n : is_Some (h !! n) → reaches h n n.
Proof. intros. exists []. by apply descend_nil. Qed.

Lemma reaches_trans h a b c : reaches h a b → reaches h b c → reaches h a c.
Proof. intros [p H1] [q H2]. exists (p ++ q). by rewrite descend_app, H1. Qed.

Lemma reaches_kid h a n nd d m :
  reaches h a n → h !! n = Some nd → kids nd !! d = Some m → is_Some (h !! m) → reaches h a m.
Proof. intros Ha Hn Hd Hm. eapply reaches_trans; [done|]. exists [d]. erewrite descend_cons by done.
  by apply descend_nil. Qed.

Lemma reaches_exists h a n : reaches h a n → is_Some (h !! n).
Proof. intros [p ?]. by eapply descend_exists. Qed.

Section tidy.
  Context {H e nx : nat} {h : heap} (T : tidy H e nx h).

  Lemma descend_place r p n rd nd : descend h r p = Some n → h !! r = Some rd → h !! n = Some nd →
    place nd = place rd ++ p ∧ birth nd ≤ birth rd.
  Proof.
    revert r rd. induction p as [|d q IH]; intros r rd Hp Hr Hn.
    - apply descend_nil in Hp as [-> _]. rewrite app_nil_r. assert (rd = nd) as -> by congruence. done.
    - apply descend_cons_inv in Hp as (rd'&m&Hr'&Hd&Hp). assert (rd' = rd) as -> by congruence.
      destruct (descend_root _ _ _ _ Hp) as [md Hm]. destruct (IH _ _ Hp Hm Hn) as [-> ?].
      destruct (tidy_kid T Hr Hd Hm) as [-> ?]. rewrite <- app_assoc. split; [done|lia].
  Qed.

  Lemma reaches_place r n rd nd :
    reaches h r n → h !! r = Some rd → h !! n = Some nd → ∃ p, place nd = place rd ++ p.
  Proof. intros [p Hp] ??. exists p. by eapply descend_place. Qed.

  (** The neighbour test is right. *)
  Lemma meets_spec r n : meets h r n = true ↔ reaches h r n.
  Proof.
    unfold meets. split.
    - destruct (h !! r) as [rd|], (h !! n) as [nd|]; try done. intros ?%bool_decide_eq_true. by eexists.
    - intros [p Hp]. destruct (descend_root _ _ _ _ Hp) as [rd Hr], (descend_exists _ _ _ _ Hp) as [nd Hn].
      rewrite Hr, Hn. destruct (descend_place _ _ _ _ _ Hp Hr Hn) as [-> _].
      rewrite drop_app. by apply bool_decide_eq_true.
  Qed.

  Lemma is_finished_spec c p : is_finished c p = true ↔ finished c p.
  Proof. unfold is_finished, finished. rewrite existsb_exists, Exists_exists.
    setoid_rewrite <- elem_of_list_In. setoid_rewrite bool_decide_eq_true. done. Qed.

  Lemma is_held_spec c n : is_held h c n = true ↔ has_node h c n.
  Proof. unfold is_held, has_node. rewrite andb_true_iff, meets_spec. apply and_iff_compat_l.
    destruct (h !! n) as [nd|]; [|naive_solver].
    rewrite negb_true_iff, <- not_true_iff_false, is_finished_spec. naive_solver. Qed.
End tidy.

(** A change that spares a set of nodes closed under edges spares every walk that starts in it. *)
Lemma descend_agree (P : id → Prop) h h' :
  (∀ m md d k, P m → h !! m = Some md → kids md !! d = Some k → P k) → (∀ m, P m → h' !! m = h !! m) →
  ∀ p r, P r → descend h' r p = descend h r p.
Proof.
  intros Hclosed Hsame p. induction p as [|d q IH]; intros r Hr; simpl; rewrite (Hsame _ Hr); [done|].
  destruct (h !! r) as [nd|] eqn:E; simpl; [|done]. destruct (kids nd !! d) eqn:E'; simpl; [|done]. eauto.
Qed.

Lemma descend_delete_inv h n r p m : descend (delete n h) r p = Some m → descend h r p = Some m.
Proof.
  revert r. induction p as [|d q IH]; intros r.
  - rewrite !descend_nil. intros [-> [nd [_ ?]%lookup_delete_Some]]. eauto.
  - intros (nd&k&[_ H1]%lookup_delete_Some&H2&?%IH)%descend_cons_inv. by erewrite descend_cons.
Qed.

Lemma descend_delete h n r p m : descend h r p = Some m → (∀ p1 p2, p = p1 ++ p2 → descend h r p1 ≠ Some n) →
  descend (delete n h) r p = Some m.
Proof.
  revert r. induction p as [|d q IH]; intros r Hp Hn.
  - assert (r ≠ n) as Hr.
    { intros ->. apply (Hn [] []); [done|]. apply descend_nil in Hp as [-> ?]. by apply descend_nil. }
    apply descend_nil in Hp as [-> [nd ?]]. apply descend_nil. split;
      [done|]. exists nd. by apply lookup_delete_Some.
  - assert (r ≠ n) as Hr.
    { intros ->. apply (Hn [] (d :: q)); [done|]. apply descend_nil. split; [done|]. by eapply descend_root. }
    apply descend_cons_inv in Hp as (nd&k&H1&H2&H3).
    erewrite (descend_cons _ _ _ _ nd) by (done || by apply lookup_delete_Some). apply IH; [done|].
    intros p1 p2 ->. specialize (Hn (d :: p1) p2 eq_refl). by erewrite descend_cons in Hn.
Qed.

Lemma reaches_delete_inv h n r m : reaches (delete n h) r m → reaches h r m.
Proof. intros [p ?]. exists p. by eapply descend_delete_inv. Qed.

Lemma reaches_delete h n r m : ¬ reaches h r n → reaches h r m → reaches (delete n h) r m.
Proof. intros Hn [p Hp]. exists p. apply descend_delete; [done|]. intros ?? -> ?. apply Hn. by eexists. Qed.
