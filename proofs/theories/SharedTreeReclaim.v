(** Who else holds a node, and why the tests of a walk find out; a step of reclaim keeps the invariant. *)
From LogDisk Require Export SharedTreeWrite.

(** * The tests *)

(** If anyone else reaches a node that was born after the parent was taken, then a child or a sibling does. *)
Lemma neighbour s j c n nd : inv s → claims s !! j = Some c → reaches (nodes s) (root c) n →
  nodes s !! n = Some nd → parent c < birth nd → ∀ j0 c0, claims s !! j0 = Some c0 → j0 ≠ j →
  reaches (nodes s) (root c0) n → ∃ j' c', claims s !! j' = Some c' ∧ j' ≠ j ∧ reaches (nodes s) (root c') n ∧
  (parent c' = parent c ∨ j = View (parent c')) ∧ (j' = j0 ∨ is_view j' = true).
Proof.
  intros I Hj Hr Hn Hb.
  assert (∀ v c0, claims s !! View v = Some c0 → View v ≠ j → reaches (nodes s) (root c0) n →
    ∃ j' c', claims s !! j' = Some c' ∧ j' ≠ j ∧ reaches (nodes s) (root c') n ∧
      (parent c' = parent c ∨ j = View (parent c')) ∧ is_view j' = true) as Hview.
  { intros v. induction (lt_wf v) as [v _ IH]. intros c0 Hj0 Hne Hr0.
    destruct (decide (birth nd ≤ parent c0)) as [Hold|].
    - destruct (inv_birth I Hj0 Hr0 Hn Hold) as (p&Hp&Hrp).
      destruct (decide (j = View (parent c0))) as [->|Hne'].
      + exists (View v), c0. by split_and!; try right.
      + destruct (inv_view I Hj0) as ([Hlt _]&_). by apply (IH _ Hlt p).
    - exists (View v), c0. split_and!; try done. left. eapply (inv_sibling I); try done. lia. }
  intros j0 c0 Hj0 Hne Hr0. destruct (decide (birth nd ≤ parent c0)) as [Hold|].
  - destruct (inv_birth I Hj0 Hr0 Hn Hold) as (p&Hp&Hrp).
    destruct (decide (j = View (parent c0))) as [->|Hne'].
    + exists j0, c0. split_and!; try done; [by right|by left].
    + destruct (Hview _ _ Hp) as (j'&c'&?); [done..|]. exists j', c'. naive_solver.
  - exists j0, c0. split_and!; try done; [left|by left]. eapply (inv_sibling I); try done. lia.
Qed.

(** Deleting a snapshot: nobody else reaches a node of it iff it passes the birth test against the parent, and
the neighbour test against the children and the siblings. *)
Lemma delete_test s v c n nd : inv s → claims s !! View v = Some c → reaches (nodes s) (root c) n →
  nodes s !! n = Some nd →
  (∀ j' c', claims s !! j' = Some c' → j' ≠ View v → ¬ reaches (nodes s) (root c') n) ↔ parent c < birth nd ∧
  ∀ j' c', claims s !! j' = Some c' → j' ≠ View v → parent c' = v ∨ parent c' = parent c →
  ¬ reaches (nodes s) (root c') n.
Proof.
  intros I Hv Hr Hn. split.
  - intros Hnone. split; [|naive_solver]. destruct (decide (parent c < birth nd)); [done|exfalso].
    destruct (inv_birth I Hv Hr Hn) as (p&Hp&?); [lia|]. eapply Hnone; [done| |done].
    destruct (inv_view I Hv). injection 1. lia.
  - intros [Hb Hnear] j0 c0 Hj0 Hne Hr0.
    destruct (neighbour _ _ _ _ _ I Hv Hr Hn Hb _ _ Hj0 Hne Hr0) as (j'&c'&?&?&?&[|[= ->]]&_); naive_solver.
Qed.

Lemma some_sibling_spec s j p test : some_sibling s j p test = true ↔ ∃ j' c', claims s !! j' = Some c' ∧
  j' ≠ j ∧ parent c' = p ∧ test j' c' = true.
Proof.
  unfold some_sibling. rewrite existsb_exists. split.
  - intros ([j' c']&Hin%elem_of_list_In%elem_of_map_to_list&Ht). simpl in *.
    rewrite !andb_true_iff, negb_true_iff, bool_decide_eq_false, Nat.eqb_eq in Ht. naive_solver.
  - intros (j'&c'&Hj&?&?&?). exists (j', c'). split; [by apply elem_of_list_In, elem_of_map_to_list|]. simpl.
    rewrite !andb_true_iff, negb_true_iff, bool_decide_eq_false, Nat.eqb_eq. done.
Qed.

Lemma kept_spec s t c n nd : inv s → claims s !! Dying t = Some c → reaches (nodes s) (root c) n →
  nodes s !! n = Some nd →
  kept s t c n nd = true ↔ ∃ v c', claims s !! View v = Some c' ∧ reaches (nodes s) (root c') n.
Proof.
  intros I Ht Hr Hn. unfold kept. rewrite orb_true_iff, Nat.leb_le, some_sibling_spec. split.
  - intros [Hb|(j'&c'&Hj'&_&_&[Hv ?%(meets_spec (inv_tidy I))]%andb_true_iff)].
    + destruct (inv_birth I Ht Hr Hn Hb) as (p&?&?). eauto.
    + destruct j' as [v|]; [eauto|done].
  - intros (v&c'&Hv&Hr'). destruct (decide (birth nd ≤ parent c)) as [|Hb]; [by left|right].
    destruct (neighbour s (Dying t) c n nd I Ht Hr Hn ltac:(lia) _ _ Hv ltac:(done) Hr')
      as (j'&c''&Hj'&Hne&Hr''&[Hp|[=]]&Hor). exists j', c''. split_and!; try done.
    apply andb_true_iff. split; [by destruct Hor as [->|]|]. by apply (meets_spec (inv_tidy I)).
Qed.

(** A step of the walk frees a node iff no other claim holds it. *)
Lemma reclaim_test s t c n nd : inv s → claims s !! Dying t = Some c → reaches (nodes s) (root c) n →
  nodes s !! n = Some nd → kept s t c n nd || disputed s t c n = false ↔ ∀ j' c', claims s !! j' = Some c' →
  j' ≠ Dying t → ¬ has_node (nodes s) c' n.
Proof.
  intros I Ht Hr Hn. rewrite <- not_true_iff_false, orb_true_iff, (kept_spec _ _ _ _ _ I Ht Hr Hn).
  unfold disputed. rewrite some_sibling_spec. split.
  - intros Hnot j' c' Hj' Hne Hh. apply Hnot. destruct j' as [v|t'].
    + left. exists v, c'. by destruct Hh.
    + pose proof Hh as [Hr' _]. destruct (decide (birth nd ≤ parent c)).
      { left. destruct (inv_birth I Ht Hr Hn) as (p&?&?); [lia|eauto]. }
      destruct (neighbour s (Dying t) c n nd I Ht Hr Hn ltac:(lia) _ _ Hj' Hne Hr')
        as (j''&c''&Hj''&?&Hr''&[Hp|[=]]&[->|Hv]).
      * right. exists (Dying t'), c'. assert (c'' = c') as -> by congruence. split_and!; try done.
        simpl. by apply (is_held_spec (inv_tidy I)).
      * left. destruct j'' as [v|]; [eauto|done].
  - intros Hnone [(v&c'&Hv&Hr')|(j'&c'&Hj'&Hne&Hp&[_ ?%(is_held_spec (inv_tidy I))]%andb_true_iff)].
    + eapply (Hnone (View v)); [done|done|]. by eapply view_has_node.
    + by eapply Hnone.
Qed.

(** * The step *)

Lemma reaches_between H e nx h r a b ad bd : tidy H e nx h → reaches h r a → reaches h r b →
  h !! a = Some ad → h !! b = Some bd → place ad `prefix_of` place bd → reaches h a b.
Proof. intros T [p Hp] [q Hq] Ha Hb [l Hl]. destruct (descend_root _ _ _ _ Hp) as [rd Hr].
  destruct (descend_place T _ _ _ _ _ Hp Hr Ha) as [Hpa _], (descend_place T _ _ _ _ _ Hq Hr Hb) as [Hpb _].
  rewrite Hpb, Hpa, <- app_assoc in Hl. apply app_inv_head in Hl as ->. rewrite descend_app, Hp in Hq.
  by exists l. Qed.

Lemma finished_below c p q : finished c p → p `prefix_of` q → finished c q.
Proof. unfold finished. rewrite !Exists_exists. intros (l&?&?) ?. exists l. split; [done|]. by etrans. Qed.

Lemma finish_spec c nd p : finished (finish c nd) p ↔ place nd `prefix_of` p ∨ finished c p.
Proof.
  unfold finished, finish. simpl. rewrite Exists_cons, !Exists_exists.
  setoid_rewrite elem_of_list_filter. split.
  - intros [?|(q&[_ Hq]&?)]; [by left|right; by exists q].
  - intros [?|(q&Hq&Hp)]; [by left|]. destruct (decide (place nd `prefix_of` q)).
    + left. by etrans.
    + right. by exists q.
Qed.

(** Once the kids are finished, so is all below. *)
Lemma kids_done H e nx h c n nd m md : tidy H e nx h → kids_finished h c nd = true →
  reaches h (root c) n → h !! n = Some nd → reaches h n m → m ≠ n → h !! m = Some md → finished c (place md).
Proof.
  intros T Hkids Hr Hn [[|d p] Hp] Hne Hm; [by apply descend_nil in Hp as [-> _]|].
  apply descend_cons_inv in Hp as (nd'&i&Hn'&Hd&Hp). assert (nd' = nd) as -> by congruence.
  destruct (descend_root _ _ _ _ Hp) as [id Hi]. destruct (descend_place T _ _ _ _ _ Hp Hi Hm) as [Hpm _].
  unfold kids_finished in Hkids. rewrite forallb_forall in Hkids. specialize (Hkids (d, i)).
  rewrite <- elem_of_list_In, elem_of_map_to_list, negb_true_iff, <- not_true_iff_false in Hkids.
  specialize (Hkids Hd). simpl in Hkids. rewrite (is_held_spec T) in Hkids.
  eapply finished_below; [|by rewrite Hpm; apply prefix_app_r].
  destruct (is_finished c (place id)) eqn:E; [by apply is_finished_spec|]. exfalso. apply Hkids. split.
  - eapply reaches_kid; eauto.
  - exists id. split; [done|]. rewrite <- is_finished_spec. by rewrite E.
Qed.

(** What reclaim does, case by case. *)
Lemma reclaim_cases s s' t n : inv s → reclaim t n s = Some s' →
  ∃ c, claims s !! Dying t = Some c ∧
  ((¬ has_node (nodes s) c (root c) ∧ s' = with_claims s (delete (Dying t) (claims s))) ∨
   ∃ nd, nodes s !! n = Some nd ∧ has_node (nodes s) c n ∧
     let cs := <[Dying t := finish c nd]> (claims s) in
     ((kept s t c n nd = true ∨ (kids_finished (nodes s) c nd = true ∧ disputed s t c n = true)) ∧
       s' = with_claims s cs) ∨
     (kept s t c n nd || disputed s t c n = false ∧ kids_finished (nodes s) c nd = true ∧
       s' = State (height s) (delete n (nodes s)) (next s) (epoch s) cs)).
Proof.
  intros I. unfold reclaim. destruct (claims s !! Dying t) as [c|]; simpl; [|done]. intros Hs. exists c.
  split; [done|]. pose proof (is_held_spec (inv_tidy I) c) as Hheld.
  destruct (is_held (nodes s) c (root c)) eqn:Hroot; simpl in Hs.
  - right. destruct (nodes s !! n) as [nd|]; simpl in Hs; [|done]. exists nd. split; [done|].
    destruct (is_held (nodes s) c n) eqn:Hn; simpl in Hs; [|done]. apply Hheld in Hn. split; [done|].
    destruct (kept s t c n nd); [left; split; [by left|congruence]|].
    destruct (kids_finished (nodes s) c nd); simpl in Hs; [|done].
    destruct (disputed s t c n); [left; split; [by right|congruence]|right]. split_and!;
      [done|done|congruence].
  - left. split; [|congruence]. rewrite <- Hheld. by rewrite Hroot.
Qed.

(** What it leaves as it is. *)
Lemma reclaim_same s s' t n : inv s → reclaim t n s = Some s' →
  (height s', next s', epoch s') = (height s, next s, epoch s) ∧
    (∀ j, j ≠ Dying t → claims s' !! j = claims s !! j) ∧
  (nodes s' = nodes s ∨ nodes s' = delete n (nodes s)).
Proof.
  intros I Hs. destruct (reclaim_cases _ _ _ _ I Hs) as (c&_&[[_ ->]|(nd&_&_&[[_ ->]|(_&_&->)])]); simpl;
    (split_and!; [done|intros; by rewrite ?lookup_delete_ne, ?lookup_insert_ne|auto]).
Qed.

Lemma reclaim_spares_views s s' t n v c : inv s → reclaim t n s = Some s' → claims s !! View v = Some c →
  claims s' !! View v = Some c ∧ (∀ p, descend (nodes s') (root c) p = descend (nodes s) (root c) p) ∧
  ∀ m, reaches (nodes s) (root c) m → nodes s' !! m = nodes s !! m.
Proof.
  intros I Hs Hv. destruct (reclaim_same _ _ _ _ I Hs) as (_&Hother&_). rewrite Hother by done. split;
    [done|].
  assert (∀ m, reaches (nodes s) (root c) m → nodes s' !! m = nodes s !! m) as Hsame.
  { intros m Hm. destruct (reclaim_cases _ _ _ _ I Hs)
    as (c'&Ht&[[_ ->]|(nd&Hn&[Hr _]&[[_ ->]|(Htest&_&->)])]); try done.
    apply lookup_delete_ne. intros <-. rewrite (reclaim_test _ _ _ _ _ I Ht Hr Hn) in Htest.
    eapply (Htest (View v)); [done..|]. by eapply view_has_node. }
  split; [|done]. destruct (inv_view I Hv) as (_&_&[? Hc]&_). intros p.
  apply (descend_agree (reaches (nodes s) (root c))); [|done|by apply reaches_refl].
  intros m md d k Hm Hmd Hd. eapply reaches_kid; eauto.
Qed.

Lemma inv_free s t c n nd : inv s → claims s !! Dying t = Some c → nodes s !! n = Some nd →
  has_node (nodes s) c n →
  kept s t c n nd || disputed s t c n = false → kids_finished (nodes s) c nd = true →
  inv (State (height s) (delete n (nodes s)) (next s) (epoch s) (<[Dying t := finish c nd]> (claims s))).
Proof.
  intros I Ht Hn [Hr _] Htest Hkids. rewrite (reclaim_test _ _ _ _ _ I Ht Hr Hn) in Htest.
  pose proof (inv_tidy I) as T. set (h := nodes s) in *. set (cs := <[_ := _]> _).
  assert (∀ v c0, claims s !! View v = Some c0 → ¬ reaches h (root c0) n) as Hno.
  { intros v c0 Hv Hr'. eapply (Htest (View v)); [done|done|]. by eapply view_has_node. }
  assert (∀ v, cs !! View v = claims s !! View v) as Hview by (intros; by apply lookup_insert_ne).
  assert (∀ j c', cs !! j = Some c' → ∃ c0, claims s !! j = Some c0 ∧ parent c' = parent c0 ∧
    root c' = root c0) as Hfrom.
  { intros j c' [[<- <-]|[_ Hj]]%lookup_insert_Some; [by exists c|by exists c']. }
  split; simpl; try (by apply I).
  - by apply tidy_delete.
  - rewrite Hview. apply (inv_live I).
  - intros v c0 Hv. rewrite Hview in Hv. destruct (inv_view I Hv) as (?&?&[[rd' Hrd'] Hc]&rd&Hrd&?&?).
    specialize (Hno _ _ Hv). split; [done|]. split; [done|].
    assert (root c0 ≠ n) by (intros <-; apply Hno, reaches_refl; eauto). split.
    + split; [rewrite lookup_delete_ne by done; eauto|].
      intros m md d i Hm%reaches_delete_inv [_ Hmd]%lookup_delete_Some Hd. fold h in Hc.
      assert (is_Some (h !! i)) by eauto. rewrite lookup_delete_ne; [done|]. intros <-. apply Hno.
      by eapply reaches_kid.
    + exists rd. rewrite lookup_delete_ne by done. done.
  - intros t' c' Ht'. destruct (Hfrom _ _ Ht') as (c0&Hc0&->&->). destruct (inv_dying I Hc0) as (?&?&?&Hb).
    split_and!; try done. intros md [_ Hmd]%lookup_delete_Some. by apply Hb.
  - intros j c' Hj. destruct (Hfrom _ _ Hj) as (c0&Hc0&->&_). rewrite Hview. by apply (inv_parent I (j := j)).
  - intros j c' m md Hj Hm%reaches_delete_inv [_ Hmd]%lookup_delete_Some Hb.
    destruct (Hfrom _ _ Hj) as (c0&Hc0&Hp&Hr0). rewrite Hp, Hr0, Hview in *.
    destruct (inv_birth I Hc0 Hm Hmd Hb) as (p&Hpv&?). exists p. split; [done|].
    apply reaches_delete; [by eapply Hno|done].
  - intros j c' j' c'' m md Hj Hj' Hm%reaches_delete_inv Hm'%reaches_delete_inv [_ Hmd]%lookup_delete_Some.
    destruct (Hfrom _ _ Hj) as (c0&Hc0&Hp&Hr0), (Hfrom _ _ Hj') as (c1&Hc1&Hp'&Hr1).
    rewrite Hr0 in Hm. rewrite Hr1 in Hm'. rewrite Hp, Hp'. by apply (inv_sibling I j _ j' _ m md).
  - intros m. simpl. intros [md [Hne Hm]%lookup_delete_Some].
    destruct (inv_held I (n := m)) as (j&c0&Hj&Hrm&md'&Hmd'&Hnot); [eauto|]. fold h in Hrm, Hmd'.
    assert (md' = md) as -> by congruence.
    (* Whoever holds [m] does not come to it through [n]. *)
    assert (reaches (delete n h) (root c0) m) as Hkeep.
    { destruct Hrm as [p Hp]. exists p. apply descend_delete; [done|]. intros p1 p2 -> Hp1. apply Hnot.
      rewrite descend_app, Hp1 in Hp. simpl in Hp. assert (reaches h n m) as Hnm by by exists p2.
      destruct (decide (j = Dying t)) as [->|Hnt].
      - assert (c0 = c) as -> by congruence. by eapply kids_done.
      - destruct (reaches_place T _ _ _ _ Hnm Hn Hm) as [q Hq].
        eapply finished_below; [|by rewrite Hq; apply prefix_app_r].
        destruct (is_finished c0 (place nd)) eqn:E; [by apply is_finished_spec|].
        exfalso. apply (Htest _ _ Hj Hnt). split; [by exists p1|]. exists nd. split; [done|].
        rewrite <- is_finished_spec. by rewrite E. }
    destruct (decide (j = Dying t)) as [->|Hnt].
    + assert (c0 = c) as -> by congruence. exists (Dying t), (finish c nd). split; [apply lookup_insert|].
      split; [done|]. exists md. split; [by apply lookup_delete_Some|]. rewrite finish_spec. intros [Hpre|?];
        [|done].
      apply Hnot. eapply (kids_done _ _ _ h c n nd m md); try done. by eapply reaches_between.
    + exists j, c0. split; [by unfold cs; rewrite lookup_insert_ne|]. split; [done|]. exists md. split;
      [|done].
      by apply lookup_delete_Some.
Qed.

Lemma inv_reclaim s s' t n : inv s → reclaim t n s = Some s' → inv s'.
Proof.
  intros I Hs. pose proof (inv_tidy I) as T.
  destruct (reclaim_cases _ _ _ _ I Hs) as (c&Ht&[[Hroot ->]|(nd&Hn&Hh&[[Hwhy ->]|(?&?&->)])]);
    [| |by apply inv_free].
  - eapply inv_finish; try done.
    + intros j Hj. by apply lookup_delete_ne.
    + intros c'. by rewrite lookup_delete.
    + intros m (Hrm&md&Hm&Hnot). exfalso. pose proof Hrm as [p Hp].
      destruct (descend_root _ _ _ _ Hp) as [rd Hr].
      apply Hroot. split; [apply reaches_refl; eauto|]. exists rd. split; [done|]. intros Hf. apply Hnot.
      destruct (descend_place T _ _ _ _ _ Hp Hr Hm) as [Hpm _].
      eapply finished_below; [done|]. rewrite Hpm. by apply prefix_app_r.
  - eapply inv_finish; try done.
    + intros j Hj. by apply lookup_insert_ne.
    + intros c'. rewrite lookup_insert. by intros [= <-].
    + intros m (Hrm&md&Hm&Hnot). destruct (decide (place nd `prefix_of` place md)) as [Hpre|Hpre].
      * destruct Hh as [Hrn _]. pose proof (reaches_between _ _ _ _ _ _ _ _ _ T Hrn Hrm Hn Hm Hpre) as Hnm.
        destruct Hwhy as [Hk|[Hk Hd]].
        -- apply (kept_spec _ _ _ _ _ I Ht Hrn Hn) in Hk as (v&c'&Hv&Hr'). exists (View v), c'.
           split; [by rewrite lookup_insert_ne|]. eapply view_has_node; [done..|]. by eapply reaches_trans.
        -- destruct (decide (m = n)) as [->|Hne]; [|destruct Hnot;
           by apply (kids_done _ _ _ _ c n nd m md T)].
           unfold disputed in Hd. apply some_sibling_spec in Hd as (j'&c'&Hj'&Hne&_&[_ Hh']%andb_true_iff).
           exists j', c'. rewrite lookup_insert_ne by done. split; [done|]. by apply (is_held_spec T).
      * exists (Dying t), (finish c nd). rewrite lookup_insert. split; [done|]. split; [done|]. exists md.
        split; [done|]. rewrite finish_spec. naive_solver.
Qed.

(** * Every reachable state *)

Lemma inv_step s s' a : inv s → apply a s = Some s' → inv s'.
Proof. intros I Ha. destruct a; [..|by eapply inv_reclaim|by eapply inv_crash]; simpl in Ha.
  1-2: invert_apply; by (done || eapply inv_update).
  all: eauto using inv_snapshot, inv_delete, inv_revert, inv_checkpoint. Qed.

Lemma inv_run s s' history : inv s → run s history = Some s' → inv s'.
Proof. revert s. induction history as [|a history IH]; intros s I; simpl; [by intros [= <-]|].
  destruct (apply a s) as [s1|] eqn:Ha; simpl; [|done]. apply IH. by eapply inv_step. Qed.

Lemma reachable_inv s : reachable s → inv s.
Proof. intros (levels&history&Hrun). eapply inv_run; [|done]. apply inv_create. Qed.
