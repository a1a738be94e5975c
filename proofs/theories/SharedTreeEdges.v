(** Edges that lead nowhere: what a walk reaches and no longer finds, it has finished. So the nodes of a heap
are found again from the roots of its claims, past what their walks have finished. *)
From LogDisk Require Export SharedTreeReclaim.

Definition edges_finished (s : state) : Prop := ∀ j c n nd d m, claims s !! j = Some c →
  reaches (nodes s) (root c) n → nodes s !! n = Some nd → kids nd !! d = Some m → nodes s !! m = None →
  finished c (place nd ++ [d]).

Lemma view_edges s v c n nd d m : inv s → claims s !! View v = Some c → reaches (nodes s) (root c) n →
  nodes s !! n = Some nd → kids nd !! d = Some m → nodes s !! m = None → finished c (place nd ++ [d]).
Proof. intros I Hv Hr Hn Hd Hm. destruct (inv_view I Hv) as (_&_&[_ Hc]&_).
  destruct (Hc _ _ _ _ Hr Hn Hd). congruence. Qed.

(** Views have no such edges, so only dying claims are to be looked at. *)
Lemma edges_dying s : inv s → (∀ t c n nd d m, claims s !! Dying t = Some c → reaches (nodes s) (root c) n →
  nodes s !! n = Some nd → kids nd !! d = Some m → nodes s !! m = None → finished c (place nd ++ [d])) →
  edges_finished s.
Proof. intros I Hs [v|t] c n nd d m; [by apply view_edges|by apply Hs]. Qed.

(** Claims change, each being one that there was. *)
Lemma edges_moved s s' : edges_finished s → nodes s' = nodes s →
  (∀ j c, claims s' !! j = Some c → ∃ j0 c0, claims s !! j0 = Some c0 ∧ root c = root c0 ∧ done c = done c0) →
  edges_finished s'.
Proof.
  intros Hs Hn Hfrom j c n nd d m Hj. rewrite Hn. destruct (Hfrom _ _ Hj) as (j0&c0&Hj0&->&Hd).
  unfold finished. rewrite Hd. by apply (Hs j0 c0).
Qed.

Lemma edges_update s s' k x : inv s → edges_finished s → length k = height s → update k x s = Some s' →
  edges_finished s'.
Proof.
  intros I Hs Hk Hu. destruct (update_spec _ _ _ _ I Hk Hu) as (c&r&dr&U).
  apply edges_dying; [by eapply inv_updated|]. intros t c' n nd d m Ht Hr Hn Hd Hm.
  assert (old_node s (root c') ∧ ∀ n nd d m, reaches (nodes s) (root c') n → nodes s !! n = Some nd →
    kids nd !! d = Some m → nodes s !! m = None → finished c' (place nd ++ [d])) as [Ho Hold].
  { apply (updated_claims U) in Ht as [[[=] _]|[[_ (m'&Hm'&->)]|[Hne Ht]]]; simpl.
    - destruct (dropped_old I U _ Hm') as (Ho&Hcm&_). split; [done|].
      intros n' nd' d' i Hr' Hn' Hd' Hi. pose proof (upd_live _ _ _ _ _ _ _ U) as Hlive.
      destruct (inv_view I Hlive) as (_&_&[_ Hc]&_).
      destruct (Hc n' nd' d' i) as [? ?]; [by eapply reaches_trans|done|done|congruence].
    - split; [by eapply (old_root I (Dying t))|]. intros n' nd' d' i. by apply (Hs (Dying t)). }
  rewrite (old_reaches I U) in Hr by done. pose proof (old_reached I _ _ Ho Hr) as Hno.
  rewrite (old_same U) in Hn by done. rewrite (old_same U) in Hm by (by eapply (old_kid I)).
  by eapply Hold.
Qed.

Lemma edges_reclaim s s' t n : inv s → edges_finished s → reclaim t n s = Some s' → edges_finished s'.
Proof.
  intros I Hs Ha. pose proof (inv_tidy I) as T.
  destruct (reclaim_cases _ _ _ _ I Ha) as (c&Ht&[[_ ->]|(nd&Hn&Hh&Hcases)]).
  { intros j c0 a ad d m Hj. simpl in *. apply lookup_delete_Some in Hj as [_ Hj]. by apply (Hs j). }
  assert (∀ j c', <[Dying t := finish c nd]> (claims s) !! j = Some c' → ∃ c0, claims s !! j = Some c0 ∧
    root c' = root c0 ∧ ∀ p, finished c0 p → finished c' p) as Hfrom.
  { intros j c' [[<- <-]|[_ Hj]]%lookup_insert_Some; [exists c|by exists c'].
    split_and!; [done..|]. intros p Hp. apply finish_spec. by right. }
  destruct Hcases as [[_ ->]|(Htest&_&->)]; intros j c' a ad d m Hj; simpl in *.
  { destruct (Hfrom _ _ Hj) as (c0&Hj0&->&Hf). intros. by eapply Hf, (Hs j). }
  destruct (Hfrom _ _ Hj) as (c0&Hj0&->&Hf). intros Hr%reaches_delete_inv [_ Had]%lookup_delete_Some Hd Hm.
  destruct (decide (m = n)) as [->|Hne]; [|rewrite lookup_delete_ne in Hm by done; by eapply Hf, (Hs j)].
  destruct (tidy_kid T Had Hd Hn) as [<- _]. destruct (decide (j = Dying t)) as [->|Hnt].
  - rewrite lookup_insert in Hj. injection Hj as <-. apply finish_spec. by left.
  - rewrite lookup_insert_ne in Hj by done. assert (c' = c0) as -> by congruence.
    destruct (is_finished c0 (place nd)) eqn:E; [by apply is_finished_spec|]. exfalso.
    rewrite (reclaim_test _ _ _ _ _ I Ht (proj1 Hh) Hn) in Htest. apply (Htest _ _ Hj0 Hnt). split.
    + eapply reaches_kid; eauto.
    + exists nd. split; [done|]. rewrite <- is_finished_spec. by rewrite E.
Qed.

(** Every action keeps this, but a crash that puts a walk back. *)
Lemma edges_step s s' a : inv s → edges_finished s → (∀ t ps, a ≠ Crash t ps) → apply a s = Some s' →
  edges_finished s'.
Proof.
  intros I Hs Hnot Ha. destruct a as [k x|k| |v|v| |t n|t ps]; simpl in Ha.
  - destruct (Nat.eqb_spec (length k) (height s)); [|done]. by eapply edges_update.
  - destruct (Nat.eqb_spec (length k) (height s)); [|done].
    destruct (read s (epoch s) k); [by eapply edges_update|by injection Ha as <-].
  - destruct (claims s !! _) as [l|] eqn:Hl; simpl in Ha; [|done]. injection Ha as <-.
    eapply edges_moved; [done|done|]. simpl. destruct (inv_view I Hl) as (_&Hdone&_).
    intros j c [[_ <-]|[_ Hj]]%lookup_insert_Some; [exists (View (epoch s)), l|by exists j, c]. by simpl.
  - destruct (v =? epoch s); [done|]. destruct (claims s !! View v) as [g|] eqn:Hg; simpl in Ha; [|done].
    injection Ha as <-. eapply edges_moved; [done|done|]. simpl.
    intros j c [[_ <-]|[_ Hj]]%lookup_insert_Some; [by exists (View v), g|].
    apply lookup_fmap_Some in Hj as (c0&<-&[_ Hj]%lookup_delete_Some). by exists j, c0.
  - destruct (v =? epoch s); [done|]. destruct (claims s !! View v) as [g|] eqn:Hg; simpl in Ha; [|done].
    destruct (claims s !! View (epoch s)) as [l|] eqn:Hl; simpl in Ha; [|done].
    injection Ha as <-. eapply edges_moved; [done|done|]. simpl. destruct (inv_view I Hg) as (_&Hdone&_).
    intros j c [[_ <-]|[_ [[_ <-]|[_ [_ Hj]%lookup_delete_Some]]%lookup_insert_Some]]%lookup_insert_Some;
      [by exists (View v), g|by exists (View (epoch s)), l|by exists j, c].
  - destruct (claims s !! _) as [l|] eqn:Hl; simpl in Ha; [|done]. injection Ha as <-.
    eapply edges_moved; [done|done|]. simpl.
    intros j c [[_ <-]|[_ [_ Hj]%lookup_delete_Some]]%lookup_insert_Some;
      [by exists (View (epoch s)), l|by exists j, c].
  - by eapply edges_reclaim.
  - by destruct (Hnot t ps).
Qed.

Lemma edges_create levels : edges_finished (create levels).
Proof.
  intros j c n nd d m _ _ Hn Hd _. cbn in Hn. apply lookup_singleton_Some in Hn as [_ <-].
  cbn in Hd. by rewrite lookup_empty in Hd.
Qed.
