(** Deletion frees exactly what nothing else reaches, once, and comes to an end. *)
From LogDisk Require Export SharedTreeReclaim.

(** * What a walk frees *)

Definition freed (s s' : state) (n : id) : Prop := is_Some (nodes s !! n) ∧ nodes s' !! n = None.

(** A step frees its node iff no other claim holds it, and frees nothing else. *)
Lemma reclaim_frees s s' t c n : inv s → reclaim t n s = Some s' → claims s !! Dying t = Some c →
  has_node (nodes s) c n →
  (freed s s' n ↔ ∀ j c', claims s !! j = Some c' → j ≠ Dying t → ¬ has_node (nodes s) c' n) ∧
    ∀ m, freed s s' m → m = n.
Proof.
  intros I Hs Ht Hh. pose proof Hh as (Hr&nd&Hn&Hnot). rewrite <- (reclaim_test _ _ _ _ _ I Ht Hr Hn).
  destruct (reclaim_cases _ _ _ _ I Hs) as (c'&Ht'&Hcase). assert (c' = c) as -> by congruence.
  destruct Hcase as [[Hroot _]|(nd'&Hn'&_&[[Hwhy ->]|(Htest&_&->)])].
  - exfalso. pose proof Hr as [p Hp]. destruct (descend_root _ _ _ _ Hp) as [rd Hrd]. apply Hroot.
    split; [apply reaches_refl; eauto|]. exists rd. split; [done|]. intros Hf. apply Hnot.
    destruct (descend_place (inv_tidy I) _ _ _ _ _ Hp Hrd Hn) as [-> _].
    eapply finished_below; [done|]. by apply prefix_app_r.
  - assert (nd' = nd) as -> by congruence. unfold freed. simpl. split; [|intros m [[? ?] ?]; congruence].
    rewrite orb_false_iff. split; [intros [[? ?] ?]; congruence|].
    intros [? ?]; destruct Hwhy as [|[_ ?]]; congruence.
  - assert (nd' = nd) as -> by congruence. unfold freed. simpl. rewrite lookup_delete.
    split; [by split; [|intros _; split; [exists nd|]]|]. intros m [[? ?] Hgone].
    destruct (decide (m = n)); [done|]. rewrite lookup_delete_ne in Hgone by done. congruence.
Qed.

(** With nothing left to reclaim, the heap is exactly what the views reach. *)
Lemma reclaimed_exact s : inv s → (∀ t, claims s !! Dying t = None) →
  ∀ n, is_Some (nodes s !! n) ↔ ∃ v c, claims s !! View v = Some c ∧ reaches (nodes s) (root c) n.
Proof.
  intros I Hnone n. split.
  - intros (j&c&Hj&Hr&_)%(inv_held I). destruct j as [v|t]; [eauto|congruence].
  - intros (v&c&_&Hr). by eapply reaches_exists.
Qed.

(** * Nothing is freed twice, whatever crashes *)

Lemma next_step s s' a : inv s → apply a s = Some s' →
  next s ≤ next s' ∧ ∀ n, is_Some (nodes s' !! n) → is_Some (nodes s !! n) ∨ next s ≤ n.
Proof.
  assert (∀ k x, inv s → length k = height s → update k x s = Some s' →
    next s ≤ next s' ∧ ∀ n, is_Some (nodes s' !! n) → is_Some (nodes s !! n) ∨ next s ≤ n) as Hupdate.
  { intros k x I Hk Hu. destruct (update_spec _ _ _ _ I Hk Hu) as (c&r&dr&U).
    pose proof (upd_put _ _ _ _ _ _ _ U) as P.
    split; [rewrite (upd_state _ _ _ _ _ _ _ U); simpl; lia|]. intros n Hn.
    destruct (put_frame _ _ _ _ _ _ _ _ _ _ _ _ P n) as [Hs|(q&_&[->|(nd&Hnd&_)]&_)].
    - left. by rewrite <- Hs.
    - right. lia.
    - left. by exists nd. }
  intros I Ha. destruct a as [k x|k| |v|v| |t n|t ps]; simpl in Ha;
    try (invert_apply; first [by eapply Hupdate|split; [simpl; lia|by intros; left]]).
  destruct (reclaim_same _ _ _ _ I Ha) as ([= _ -> _]&_&[->| ->]); (split; [done|]); [by intros; left|].
  intros m [md [_ ?]%lookup_delete_Some]. left. by exists md.
Qed.

Lemma absent_run s s' history n : inv s → run s history = Some s' → n < next s → nodes s !! n = None →
  nodes s' !! n = None.
Proof.
  revert s. induction history as [|a history IH]; intros s I; simpl; [by intros [= <-]|].
  destruct (apply a s) as [s1|] eqn:Ha; simpl; [|done]. intros Hrun Hlt Hn.
  destruct (next_step _ _ _ I Ha) as [Hnext Hnew]. apply (IH s1); [by eapply inv_step|done|lia|].
  destruct (nodes s1 !! n) as [nd|] eqn:E; [|done]. destruct (Hnew n) as [[? ?]|]; [eauto|congruence|lia].
Qed.

Lemma freed_once s a s1 history s2 b s3 n : inv s → apply a s = Some s1 → freed s s1 n →
  run s1 history = Some s2 → apply b s2 = Some s3 → ¬ freed s2 s3 n.
Proof. intros I Ha [[nd Hn] Hgone] Hrun Hb [[md Hm] _]. assert (nodes s2 !! n = None); [|congruence].
  eapply absent_run; [by eapply inv_step|done| |done]. destruct (next_step _ _ _ I Ha) as [Hnext _].
  apply (tidy_node (inv_tidy I)) in Hn. lia. Qed.

(** * The walks come to an end *)

(** What is left to do: each dying claim, and each node that one holds. *)
Definition work (s : state) : gset (nat * option id) :=
  list_to_set (jc ← map_to_list (claims s);
    match jc.1 with
    | View _ => []
    | Dying t => (t, None) :: (nn ← map_to_list (nodes s);
        if is_held (nodes s) jc.2 nn.1 then [(t, Some nn.1)] else [])
    end).

Lemma elem_of_work s t o : inv s →
  (t, o) ∈ work s ↔ ∃ c, claims s !! Dying t = Some c ∧ ∀ n, o = Some n → has_node (nodes s) c n.
Proof.
  intros I. unfold work. rewrite elem_of_list_to_set, elem_of_list_bind. split.
  - intros ([j c]&Hin&Hj%elem_of_map_to_list). simpl in Hin. destruct j as [v|t'];
    [by apply elem_of_nil in Hin|].
    apply elem_of_cons in Hin as [[= -> ->]|Hin]; [by exists c|].
    apply elem_of_list_bind in Hin as ([m md]&Hin&Hm). simpl in Hin.
    destruct (is_held (nodes s) c m) eqn:E; [|by apply elem_of_nil in Hin].
    apply elem_of_list_singleton in Hin as [= -> ->]. exists c. split; [done|]. intros n [= <-].
    by apply (is_held_spec (inv_tidy I)).
  - intros (c&Hc&Hh). exists (Dying t, c). split; [|by apply elem_of_map_to_list]. simpl. destruct o as [n|];
    [|left].
    right. specialize (Hh n eq_refl). pose proof Hh as (_&nd&Hn&_).
    apply elem_of_list_bind. exists (n, nd). split; [|by apply elem_of_map_to_list]. simpl.
    apply (is_held_spec (inv_tidy I)) in Hh. rewrite Hh. by apply elem_of_list_singleton.
Qed.

Lemma reclaim_falls s s' t n : inv s → reclaim t n s = Some s' → size (work s') < size (work s).
Proof.
  intros I Hs. pose proof (inv_reclaim _ _ _ _ I Hs) as I'. apply subset_size.
  destruct (reclaim_same _ _ _ _ I Hs) as (_&Hother&Hheap).
  assert (∃ c, claims s !! Dying t = Some c ∧
    ((¬ has_node (nodes s) c (root c) ∧ claims s' !! Dying t = None) ∨
    (has_node (nodes s) c n ∧ ∃ nd, nodes s !! n = Some nd ∧
      claims s' !! Dying t = Some (finish c nd)))) as (c&Ht&Hthis).
  { destruct (reclaim_cases _ _ _ _ I Hs) as (c&Ht&[[? ->]|(nd&Hn&Hh&[[_ ->]|(_&_&->)])]); exists c;
    (split; [done|]); simpl;
      [left; by rewrite lookup_delete|right; rewrite lookup_insert; eauto..]. }
  assert (∀ c0 c1 m, root c1 = root c0 → (∀ p, finished c0 p → finished c1 p) → has_node (nodes s') c1 m →
    has_node (nodes s) c0 m) as Hless.
  { intros c0 c1 m Hr Hf (Hm&md&Hmd&Hnot). rewrite Hr in Hm. destruct Hheap as [E|E]; rewrite E in *.
    - split; [done|]. exists md. split; [done|]. intros ?. by apply Hnot, Hf.
    - split; [by eapply reaches_delete_inv|]. exists md. apply lookup_delete_Some in Hmd as [_ ?].
      split; [done|]. intros ?. by apply Hnot, Hf. }
  split.
  - intros [t' o]. rewrite !elem_of_work by done. intros (c1&Hc1&Hheld). destruct (decide (t' = t)) as [->|].
    + destruct Hthis as [[_ ?]|(_&nd&Hn&Hc)]; [congruence|]. assert (c1 = finish c nd) as -> by congruence.
      exists c. split; [done|]. intros m Hm. eapply (Hless c (finish c nd)); [done| |by apply Hheld].
      intros p Hp. apply finish_spec. by right.
    + rewrite Hother in Hc1 by congruence. exists c1. split; [done|]. intros m Hm. eapply Hless; [done|done|].
      by apply Hheld.
  - intros Hsub. destruct Hthis as [[_ Hnone]|(Hhn&nd&Hn&Hc)].
    + assert ((t, None) ∈ work s') as Hin by (apply Hsub; apply elem_of_work; [done|by exists c]).
      apply elem_of_work in Hin as (c1&Hc1&_); [|done]. congruence.
    + assert ((t, Some n) ∈ work s') as Hin.
      { apply Hsub. apply elem_of_work; [done|]. exists c. split; [done|]. by intros ? [= <-]. }
      apply elem_of_work in Hin as (c1&Hc1&Hh1); [|done]. assert (c1 = finish c nd) as -> by congruence.
      destruct (Hh1 n eq_refl) as (_&md&Hmd&Hnot). apply Hnot, finish_spec. left.
      destruct Hheap as [E|E]; rewrite E in Hmd; [by assert (md = nd) as -> by congruence|].
      by rewrite lookup_delete in Hmd.
Qed.

Lemma unfinished_kid h c nd : kids_finished h c nd = false → ∃ d m, kids nd !! d = Some m ∧
  is_held h c m = true.
Proof. unfold kids_finished. setoid_rewrite <- elem_of_map_to_list.
  induction (map_to_list (kids nd)) as [|[d m] l IH]; simpl; [done|].
  destruct (is_held h c m) eqn:E; simpl; [intros _; exists d, m; split; [left|done]|]. intros (d'&m'&?&?)%IH.
  exists d', m'. split; [by right|done]. Qed.

Lemma walk_goes_on s t : inv s → is_Some (claims s !! Dying t) → ∃ n, is_Some (reclaim t n s).
Proof.
  intros I [c Ht]. pose proof (inv_tidy I) as T. unfold reclaim. rewrite Ht. simpl.
  destruct (is_held (nodes s) c (root c)) eqn:Hroot; [|exists 0; simpl; eauto]. simpl.
  assert (∀ i n, height s ≤ i + match nodes s !! n with Some nd => length (place nd) | None => 0 end →
    is_held (nodes s) c n = true → ∃ n nd, nodes s !! n = Some nd ∧ is_held (nodes s) c n = true ∧
      kids_finished (nodes s) c nd = true) as Hdeep.
  { intros i. induction i as [|i IH]; intros n Hi Hn; pose proof Hn as (Hr&nd&Hnd&_)%(is_held_spec T);
    rewrite Hnd in Hi;
      (destruct (kids_finished (nodes s) c nd) eqn:Hk; [by eauto|]);
      (assert (∃ d m, kids nd !! d = Some m ∧ is_held (nodes s) c m = true) as (d&m&Hd&Hm);
        [apply (unfinished_kid _ _ _ Hk)|]).
    - destruct (tidy_edge T Hnd Hd). lia.
    - apply (IH m); [|done]. pose proof Hm as (_&md&Hmd&_)%(is_held_spec T). rewrite Hmd.
      destruct (tidy_kid T Hnd Hd Hmd) as [-> _]. rewrite app_length. simpl. lia. }
  destruct (Hdeep (height s) (root c)) as (n&nd&Hn&Hh&Hk); [lia|done|]. exists n. rewrite Hn. simpl.
  rewrite Hh, Hk. simpl. destruct (kept s t c n nd); [eauto|]. destruct (disputed s t c n); eauto.
Qed.

(** From any state, steps of reclaim alone lead to one where what is left is exactly what the views reached.
*)
Lemma reclaim_ends s : inv s → ∃ history s', run s history = Some s' ∧
  (∀ a, a ∈ history → ∃ t n, a = Reclaim t n) ∧ (∀ t, claims s' !! Dying t = None) ∧
  (∀ v c, claims s !! View v = Some c → claims s' !! View v = Some c) ∧ ∀ n, is_Some (nodes s' !! n) ↔
  ∃ v c, claims s !! View v = Some c ∧ reaches (nodes s) (root c) n.
Proof.
  remember (size (work s)) as i eqn:Hi. revert s Hi. induction (lt_wf i) as [i _ IH]. intros s -> I.
  destruct (decide (Exists (λ jc, is_view jc.1 = false) (map_to_list (claims s))))
    as [([j c]&Hj%elem_of_map_to_list&Hd)%Exists_exists|Hnone].
  - destruct j as [|t]; [done|]. destruct (walk_goes_on s t I) as (n&s1&Hs1); [eauto|].
    destruct (IH _ (reclaim_falls _ _ _ _ I Hs1) s1 eq_refl) as (history&s'&Hrun&Hall&Hend&Hviews&Hexact);
      [by eapply inv_reclaim|].
    exists (Reclaim t n :: history), s'. split_and!; [simpl; by rewrite Hs1| |done| |].
    + intros a [->|?]%elem_of_cons; eauto.
    + intros v c' Hv. by apply Hviews, (reclaim_spares_views _ _ _ _ _ _ I Hs1).
    + intros m. rewrite Hexact. destruct (reclaim_same _ _ _ _ I Hs1) as (_&Hother&_).
      split; intros (v&c'&Hv&Hr); [rewrite Hother in Hv by done|];
        destruct (reclaim_spares_views _ _ _ _ _ _ I Hs1 Hv) as (?&Hsame&_); exists v, c'; (split; [done|]);
        destruct Hr as [p Hp]; exists p; first [by rewrite Hsame|by rewrite <- Hsame].
  - assert (∀ t, claims s !! Dying t = None) as Hend.
    { intros t. destruct (claims s !! Dying t) as [c|] eqn:E; [|done]. exfalso. apply Hnone.
      apply Exists_exists. exists (Dying t, c). split; [by apply elem_of_map_to_list|done]. }
    exists [], s. split_and!; try done.
    + by intros a ?%elem_of_nil.
    + by apply reclaimed_exact.
Qed.

(** Whatever the order of the steps of reclaim: they end, they go on until no walk is left, and then what is
left is exactly what the views reached. *)
Lemma every_schedule history s s' : inv s → run s history = Some s' →
  (∀ a, a ∈ history → ∃ t n, a = Reclaim t n) →
  length history ≤ size (work s) ∧
  ((∃ t, is_Some (claims s' !! Dying t)) → ∃ t n, is_Some (apply (Reclaim t n) s')) ∧
  ((∀ t, claims s' !! Dying t = None) → ∀ n, is_Some (nodes s' !! n) ↔
    ∃ v c, claims s !! View v = Some c ∧ reaches (nodes s) (root c) n).
Proof.
  revert s. induction history as [|a history IH]; simpl; intros s I Hrun Hall.
  - injection Hrun as <-. split_and!; [lia| |].
    + intros [t Ht]. destruct (walk_goes_on s t I Ht) as [n Hn]. by exists t, n.
    + intros Hend. by apply reclaimed_exact.
  - destruct (Hall a) as (t&n&->); [by left|].
    apply bind_Some in Hrun as (s1&Hs1&Hrun). simpl in Hs1.
    destruct (IH s1) as (Hlen&Hon&Hexact); [by eapply inv_reclaim|done|intros; apply Hall; by right|].
    pose proof (reclaim_falls _ _ _ _ I Hs1). split_and!; [lia|done|]. intros Hend m. rewrite (Hexact Hend).
    destruct (reclaim_same _ _ _ _ I Hs1) as (_&Hother&_).
    split; intros (v&c'&Hv&Hr); [rewrite Hother in Hv by done|];
      destruct (reclaim_spares_views _ _ _ _ _ _ I Hs1 Hv) as (?&Hsame&_); exists v, c'; (split; [done|]);
      destruct Hr as [p Hp]; exists p; first [by rewrite Hsame|by rewrite <- Hsame].
Qed.

(** * Chains *)

(** On a chain no two views have the same parent. *)
Definition chain (s : state) : Prop :=
  ∀ v v' c c', claims s !! View v = Some c → claims s !! View v' = Some c' → parent c = parent c' → v = v'.

Lemma chain_step s s' a : inv s → chain s → apply a s = Some s' → (∀ v, a ≠ Revert v) → chain s'.
Proof.
  assert (∀ k x, inv s → chain s → length k = height s → update k x s = Some s' → chain s') as Hupdate.
  { intros k x I Hchain Hk Hu. destruct (update_spec _ _ _ _ I Hk Hu) as (c&r&dr&U).
    assert (∀ v c', claims s' !! View v = Some c' → ∃ c0, claims s !! View v = Some c0 ∧
      parent c0 = parent c') as Hfrom.
    { intros v c' [[[= ->] ->]|[[[=] _]|[_ ?]]]%(updated_claims U); [|eauto].
      exists c. split; [apply (upd_live _ _ _ _ _ _ _ U)|done]. }
    intros v v' c1 c2 (c3&?&?)%Hfrom (c4&?&?)%Hfrom ?. eapply Hchain; [done..|congruence]. }
  intros I Hchain Ha Hnot. destruct a; simpl in Ha; [invert_apply..| |invert_apply]; try by eapply Hupdate.
  - done.
  - intros v v' c0 c'. simpl. assert (∀ w cw, claims s !! View w = Some cw → parent cw < epoch s) as Hlt
      by (intros w cw Hw; by eapply parent_below).
    intros [[[= <-] <-]|[? Hv]]%lookup_insert_Some [[[= <-] <-]|[? Hv']]%lookup_insert_Some; simpl;
      [done| | |by eapply Hchain].
    + specialize (Hlt _ _ Hv'). lia.
    + specialize (Hlt _ _ Hv). lia.
  - rename select (claims s !! View v = Some _) into Hg.
    match type of Hg with _ = Some ?x => rename x into g end.
    assert (∀ w cw, (<[Dying (next s):=g]> (reparent v (parent g) <$> delete (View v) (claims s)))
      !! View w = Some cw →
      ∃ c0, claims s !! View w = Some c0 ∧ w ≠ v ∧
        parent cw = (if parent c0 =? v then parent g else parent c0)) as Hfrom.
    { intros w cw [[[=] _]|[_ Hw]]%lookup_insert_Some.
      apply lookup_fmap_Some in Hw as (c0&<-&[? Hw]%lookup_delete_Some).
      exists c0. split_and!; [done|congruence|done]. }
    intros w w' c c' (c0&Hw&?&->)%Hfrom (c0'&Hw'&?&->)%Hfrom.
    destruct (Nat.eqb_spec (parent c0) v), (Nat.eqb_spec (parent c0') v); intros Hp.
    + by eapply Hchain; [done..|congruence].
    + by rewrite (Hchain _ _ _ _ Hg Hw' Hp) in *.
    + by rewrite (Hchain _ _ _ _ Hw Hg Hp) in *.
    + by eapply Hchain.
  - by destruct (Hnot v).
  - rename select (claims s !! _ = Some _) into Hl. intros v v' c0 c'. simpl.
    intros [[[= <-] <-]|[? [? Hv]%lookup_delete_Some]]%lookup_insert_Some
      [[[= <-] <-]|[? [? Hv']%lookup_delete_Some]]%lookup_insert_Some Hp; [done| | |by eapply Hchain].
    + by rewrite (Hchain _ _ _ _ Hl Hv' Hp) in *.
    + by rewrite (Hchain _ _ _ _ Hv Hl Hp) in *.
  - destruct (reclaim_same _ _ _ _ I Ha) as (_&Hother&_). intros v v' c c'. rewrite !Hother by done.
    apply Hchain.
  - intros v v' c0 c'. simpl. rewrite !lookup_insert_ne by done. apply Hchain.
Qed.

(** A history without a revert keeps the views on a chain. *)
Lemma chain_run levels history s : run (create levels) history = Some s → (∀ v, Revert v ∉ history) → chain s.
Proof.
  assert (∀ s0, inv s0 → chain s0 → run s0 history = Some s → (∀ v, Revert v ∉ history) → chain s) as Hrun.
  { induction history as [|a history IH]; intros s0 I Hchain Hs Hnot; simpl in Hs; invert_apply; [done|].
    eapply IH; [by eapply inv_step| |done|intros v ?; apply (Hnot v); by right].
    eapply chain_step; [done..|]. intros v ->. apply (Hnot v). left. }
  apply Hrun; [apply inv_create|]. intros v v' c c' Hv Hv' _. cbn in Hv, Hv'.
  apply lookup_singleton_Some in Hv as [[= <-] _], Hv' as [[= <-] _]. done.
Qed.

(** There the neighbour test may leave out siblings: parent and successor tell whether another view reaches a
node. *)
Lemma chain_test_exact levels history s v c n nd :
  run (create levels) history = Some s → (∀ w, Revert w ∉ history) →
  claims s !! View v = Some c → reaches (nodes s) (root c) n → nodes s !! n = Some nd →
  (∀ w c', claims s !! View w = Some c' → w ≠ v → ¬ reaches (nodes s) (root c') n) ↔
  parent c < birth nd ∧ ∀ w c', claims s !! View w = Some c' → parent c' = v →
    ¬ reaches (nodes s) (root c') n.
Proof.
  intros Hrun Hnot. pose proof (inv_run _ _ _ (inv_create _) Hrun) as I.
  pose proof (chain_run _ _ _ Hrun Hnot) as Hchain. intros Hv Hr Hn. split.
  - intros Hnone. split.
    + destruct (decide (parent c < birth nd)); [done|exfalso].
      destruct (inv_birth I Hv Hr Hn) as (p&Hp&?); [lia|]. eapply Hnone; [done| |done].
      destruct (inv_view I Hv). lia.
    + intros v' c' Hv' Hp. eapply Hnone; [done|]. destruct (inv_view I Hv'). lia.
  - intros [Hb Hnear] v0 c0 Hv0 Hne Hr0.
    destruct (neighbour _ _ _ _ _ I Hv Hr Hn Hb _ _ Hv0 ltac:(congruence) Hr0) as (j'&c'&Hj'&Hne'&Hr'&Hp&Hor).
    assert (∃ v', j' = View v') as [v' ->]. { destruct Hor as [->|]; [eauto|]. destruct j'; [eauto|done]. }
    destruct Hp as [Hp|[= ->]]; [|by eapply Hnear]. apply Hne'. by rewrite (Hchain _ _ _ _ Hj' Hv Hp).
Qed.

(** Deleting a snapshot: in the end, what is left is what the other views reached. *)
Lemma deletion_exact s s1 v : inv s → apply (Delete v) s = Some s1 → ∃ history s2, run s1 history = Some s2 ∧
  (∀ a, a ∈ history → ∃ t n, a = Reclaim t n) ∧ (∀ t, claims s2 !! Dying t = None) ∧
  ∀ n, is_Some (nodes s2 !! n) ↔ ∃ w c, w ≠ v ∧ claims s !! View w = Some c ∧ reaches (nodes s) (root c) n.
Proof.
  intros I Hs. pose proof (inv_step _ _ _ I Hs) as I1. simpl in Hs. invert_apply.
  destruct (reclaim_ends _ I1) as (history&s2&Hrun&Hall&Hend&_&Hexact).
  exists history, s2. split_and!; try done. intros n. rewrite Hexact. simpl. split.
  - intros (w&c'&[[[=] _]|[_ Hw]]%lookup_insert_Some&Hr).
    apply lookup_fmap_Some in Hw as (c0&<-&[? Hw]%lookup_delete_Some).
    exists w, c0. split_and!; [congruence|done|done].
  - intros (w&c'&Hne&Hw&Hr). eexists w, (reparent v _ c'). split; [|done].
    by rewrite lookup_insert_ne, lookup_fmap, lookup_delete_ne, Hw by congruence.
Qed.

(** For every schedule: so many steps at most, none is stuck before the end, and the end is exact. *)
Lemma deletion_every_schedule s s1 v : inv s → apply (Delete v) s = Some s1 → ∃ most, ∀ history s2,
  run s1 history = Some s2 → (∀ a, a ∈ history → ∃ t n, a = Reclaim t n) → length history ≤ most ∧
  ((∃ t, is_Some (claims s2 !! Dying t)) → ∃ t n, is_Some (apply (Reclaim t n) s2)) ∧
  ((∀ t, claims s2 !! Dying t = None) →
    ∀ n, is_Some (nodes s2 !! n) ↔ ∃ w c, w ≠ v ∧ claims s !! View w = Some c ∧ reaches (nodes s) (root c) n).
Proof.
  intros I Hs. pose proof (inv_step _ _ _ I Hs) as I1. exists (size (work s1)). intros history s2 Hrun Hall.
  destruct (every_schedule history s1 s2 I1 Hrun Hall) as (Hlen&Hon&Hexact). split_and!; [done|done|].
  intros Hend n. rewrite (Hexact Hend). simpl in Hs. invert_apply. simpl. split.
  - intros (w&c'&[[[=] _]|[_ Hw]]%lookup_insert_Some&Hr).
    apply lookup_fmap_Some in Hw as (c0&<-&[? Hw]%lookup_delete_Some).
    exists w, c0. split_and!; [congruence|done|done].
  - intros (w&c'&Hne&Hw&Hr). eexists w, (reparent v _ c'). split; [|done].
    by rewrite lookup_insert_ne, lookup_fmap, lookup_delete_ne, Hw by congruence.
Qed.
