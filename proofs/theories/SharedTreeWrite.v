(** An update of the live view keeps the invariant, and changes no node that another claim reaches. *)
From LogDisk Require Export SharedTreeInvariant.

(** What every update does, in terms of the state before and after. *)
Record updated (s s' : state) (c : claim) (k : path) (x : option nat) (r : id) (dropped : option id) : Prop :=
  Updated {
  upd_live : claims s !! View (epoch s) = Some c;
  upd_put : put_ok (height s) (epoch s) (next s) (nodes s) x (next s) (Some (root c)) [] k (nodes s') (Some r)
    dropped;
  upd_state : s' = State (height s) (nodes s') (next s + S (length k)) (epoch s)
    (bury (next s) (parent c) dropped (<[View (epoch s) := Claim (parent c) r []]> (claims s)));
}.

Lemma live_placed s c : inv s → claims s !! View (epoch s) = Some c → placed (nodes s) (Some (root c)) [].
Proof. intros I Hc r [= <-]. destruct (inv_view I Hc) as (_&_&?&rd&Hr&?&_). split; [done|]. intros nd Hn.
  by assert (nd = rd) as -> by congruence. Qed.

Lemma update_spec s s' k x : inv s → length k = height s → update k x s = Some s' →
  ∃ c r dropped, updated s s' c k x r dropped.
Proof.
  intros I Hk. unfold update, update_since. destruct (claims s !! View (epoch s)) as [c|] eqn:Hc; simpl;
    [|done].
  pose proof (put_spec (height s) (epoch s) (next s) (nodes s) x (inv_tidy I) (inv_epoch I) k
    (next s) (Some (root c)) [] (le_n _) (live_placed _ _ I Hc) Hk) as Hput.
  destruct (put _ _ _ _ _ _ _ _) as [[h' o'] dropped]. intros [= <-]. pose proof (inv_height I).
  pose proof (put_top _ _ _ _ _ _ _ _ _ _ _ _ Hput) as Htop.
  destruct o' as [r|]; [|destruct Htop as [-> _]; simpl in Hk; lia]. by exists c, r, dropped.
Qed.

Section update.
  Context {s s' : state} {c : claim} {k : path} {x : option nat} {r : id} {dropped : option id}.
  Context (I : inv s) (U : updated s s' c k x r dropped).
  Let h := nodes s. Let h' := nodes s'. Let e := epoch s. Let P := upd_put _ _ _ _ _ _ _ U.

  (** A node is old when no update can change it. *)
  Definition old_node (s : state) (n : id) : Prop :=
    n < next s ∧ ∀ nd, nodes s !! n = Some nd → birth nd < epoch s.

  Lemma old_kid n nd d m : old_node s n → h !! n = Some nd → kids nd !! d = Some m → old_node s m.
  Proof. intros [_ Hb] Hn Hd. specialize (Hb _ Hn). split; [by eapply (tidy_edge (inv_tidy I))|].
    intros md Hm. destruct (tidy_kid (inv_tidy I) Hn Hd Hm). lia. Qed.

  Lemma old_same n : old_node s n → h' !! n = h !! n.
  Proof. intros [Hn Hb].
    destruct (put_frame _ _ _ _ _ _ _ _ _ _ _ _ P n) as [|(q&_&[?|(nd&Hnd&?&_)]&_)]; [done|lia|].
    specialize (Hb _ Hnd). lia. Qed.

  Lemma old_descend n p : old_node s n → descend h' n p = descend h n p.
  Proof.
    intros Hn. apply (descend_agree (old_node s)); [intros; by eapply old_kid|by apply old_same|done].
  Qed.

  Lemma old_reaches n m : old_node s n → reaches h' n m ↔ reaches h n m.
  Proof. intros Hn. unfold reaches. by setoid_rewrite old_descend. Qed.

  Lemma old_reached n m : old_node s n → reaches h n m → old_node s m.
  Proof. intros [_ Hb] [p Hp].
    destruct (descend_root _ _ _ _ Hp) as [nd Hn], (descend_exists _ _ _ _ Hp) as [md Hm].
    split; [by apply (tidy_node (inv_tidy I) Hm)|]. intros md' Hm'.
    pose proof (descend_place (inv_tidy I) _ _ _ _ _ Hp Hn Hm'). specialize (Hb _ Hn). lia. Qed.

  Lemma old_root j c0 : claims s !! j = Some c0 → j ≠ View e → old_node s (root c0).
  Proof.
    intros Hj Hne. destruct j as [v|t].
    - destruct (inv_view I Hj) as (?&_&_&rd&Hr&_&?). split; [by apply (tidy_node (inv_tidy I) Hr)|].
      intros nd Hn. assert (nd = rd) as -> by congruence. assert (v ≠ e) by congruence. unfold e in *. lia.
    - destruct (inv_dying I Hj) as (_&_&?&?). done.
  Qed.

  (** Copy-on-write: what another claim reaches is neither changed nor reached in another way. *)
  Lemma other_reaches j c0 n : claims s !! j = Some c0 → j ≠ View e →
    (reaches h' (root c0) n ↔ reaches h (root c0) n) ∧ (reaches h (root c0) n → h' !! n = h !! n).
  Proof. intros Hj Hne. pose proof (old_root _ _ Hj Hne) as Ho. split; [by apply old_reaches|]. intros Hr.
    by eapply old_same, old_reached. Qed.

  Lemma dropped_old m : dropped = Some m → old_node s m ∧ reaches h (root c) m ∧ is_Some (h !! m).
  Proof.
    intros (Hq&nd&Hm&?)%(put_dropped _ _ _ _ _ _ _ _ _ _ _ _ P). destruct Hq as [q Hq]. split_and!.
    - split; [by apply (tidy_node (inv_tidy I) Hm)|]. intros md Hm'. unfold h in *.
      by assert (md = nd) as -> by congruence.
    - by exists q.
    - by eexists.
  Qed.

  Lemma live_reaches n nd : reaches h' r n → h' !! n = Some nd →
    (next s ≤ n ∧ birth nd = e) ∨ (reaches h (root c) n ∧ ∃ nd0, h !! n = Some nd0 ∧ birth nd0 = birth nd).
  Proof.
    intros [q Hq] Hn. change (descend_from h' (Some r) q = Some n) in Hq.
    assert (descend_from h (Some (root c)) q = Some n ∨ ∃ i, n = next s + i) as Hcases.
    { destruct (decide (q `prefix_of` k)) as [Hp|Hp].
      - destruct (put_on_path _ _ _ _ _ _ _ _ _ _ _ _ P _ _ Hp Hq) as [[-> _]|[? _]]; eauto.
      - left. by rewrite <- (put_off_path _ _ _ _ _ _ _ _ _ _ _ _ P). }
    destruct (put_frame _ _ _ _ _ _ _ _ _ _ _ _ P n) as [Hs|(q'&_&Hold&Hnew)].
    - right. fold h h' in Hs. rewrite Hn in Hs. split; [|by exists nd]. destruct Hcases as [|[i ->]];
      [by exists q|].
      symmetry in Hs. apply (tidy_node (inv_tidy I)) in Hs. lia.
    - destruct (Hnew _ Hn) as [Hb _]. destruct Hold as [->|(nd0&Hn0&Hb0&_)].
      + left. split; [lia|done].
      + right. destruct Hcases as [Hc|[i ->]].
        * split; [by exists q|]. exists nd0. split; [done|congruence].
        * apply (tidy_node (inv_tidy I)) in Hn0. lia.
  Qed.

  Lemma updated_claims j c' : claims s' !! j = Some c' →
    (j = View e ∧ c' = Claim (parent c) r []) ∨
    (j = Dying (next s) ∧ ∃ m, dropped = Some m ∧ c' = Claim (parent c) m []) ∨
    (j ≠ View e ∧ claims s !! j = Some c').
  Proof.
    rewrite (upd_state _ _ _ _ _ _ _ U). simpl. unfold bury. fold e. destruct dropped as [m|].
    - intros [[<- <-]|[_ [[<- <-]|[? Hj]]%lookup_insert_Some]]%lookup_insert_Some; naive_solver.
    - intros [[<- <-]|[? Hj]]%lookup_insert_Some; naive_solver.
  Qed.

  Lemma updated_live : claims s' !! View e = Some (Claim (parent c) r []).
  Proof. rewrite (upd_state _ _ _ _ _ _ _ U). simpl. unfold bury. fold e.
    destruct dropped; [rewrite lookup_insert_ne by done|]; apply lookup_insert. Qed.

  Lemma updated_other j : j ≠ View e → is_Some (claims s !! j) → claims s' !! j = claims s !! j.
  Proof.
    intros Hne Hsome. rewrite (upd_state _ _ _ _ _ _ _ U). simpl. unfold bury. fold e.
      destruct dropped as [m|].
    - rewrite !lookup_insert_ne; [done|done|]. intros <-. rewrite (fresh_ticket _ I) in Hsome.
      by destruct Hsome.
    - by rewrite !lookup_insert_ne.
  Qed.

  Lemma updated_dropped m : dropped = Some m → claims s' !! Dying (next s) = Some (Claim (parent c) m []).
  Proof. intros Hm. rewrite (upd_state _ _ _ _ _ _ _ U). simpl. rewrite Hm. apply lookup_insert. Qed.

  (** Whatever a claim reaches now is fresh, or a claim with the same parent reached it before. *)
  Lemma updated_reaches j c' n nd : claims s' !! j = Some c' → reaches h' (root c') n → h' !! n = Some nd →
    (j = View e ∧ next s ≤ n ∧ birth nd = e) ∨
    ∃ j0 c0 nd0, claims s !! j0 = Some c0 ∧ parent c0 = parent c' ∧ reaches h (root c0) n ∧
      h !! n = Some nd0 ∧ birth nd0 = birth nd.
  Proof.
    intros [[-> ->]|[[-> (m&Hm&->)]|[Hne Hj]]]%updated_claims Hr Hn; simpl in *.
    - destruct (live_reaches _ _ Hr Hn) as [[??]|(?&nd0&?&?)]; [by left|right].
      exists (View e), c, nd0. split_and!; try done. apply (upd_live _ _ _ _ _ _ _ U).
    - right. destruct (dropped_old _ Hm) as (Ho&Hcm&_). rewrite old_reaches in Hr by done.
      exists (View e), c, nd. split_and!; try done.
      + apply (upd_live _ _ _ _ _ _ _ U).
      + by eapply reaches_trans.
      + rewrite <- old_same; [done|]. by eapply old_reached.
    - right. destruct (other_reaches _ _ n Hj Hne) as [Heq Hsame]. rewrite Heq in Hr.
      exists j, c', nd. split_and!; try done. by rewrite <- Hsame.
  Qed.

  Lemma inv_updated : inv s'.
  Proof.
    pose proof (upd_live _ _ _ _ _ _ _ U) as Hlive. fold e in Hlive.
    assert (height s' = height s ∧ epoch s' = e ∧ next s' = next s + S (length k)) as (Hh&He&Hnx)
      by (by rewrite (upd_state _ _ _ _ _ _ _ U)). destruct (inv_view I Hlive) as (Hpar&_).
    split; rewrite ?Hh, ?He, ?Hnx; fold h'.
    - apply (inv_height I).
    - apply (inv_epoch I).
    - apply (put_tidy _ _ _ _ _ _ _ _ _ _ _ _ P).
    - rewrite updated_live. eauto.
    - intros v c' [[[= ->] ->]|[[[=] _]|[Hne Hv]]]%updated_claims; simpl.
      + split; [lia|]. split; [done|]. split; [by apply (put_closed _ _ _ _ _ _ _ _ _ _ _ _ P)|].
        destruct (put_top _ _ _ _ _ _ _ _ _ _ _ _ P) as (nd&?&?&?). exists nd. split_and!;
          try done. unfold e. lia.
      + destruct (inv_view I Hv) as (?&?&[[rd Hr] Hc]&rd'&Hr'&?&?). pose proof (old_root _ _ Hv Hne) as Ho.
        split; [done|]. split; [done|]. split.
        * split; [rewrite old_same by done; eauto|]. intros n nd d m Hn Hnd Hd.
          rewrite old_reaches in Hn by done. pose proof (old_reached _ _ Ho Hn) as Hno.
          rewrite old_same in Hnd by done. rewrite old_same by (by eapply old_kid). eauto.
        * exists rd'. rewrite old_same by done. done.
    - intros t c' [[[=] _]|[[[= ->] (m&Hm&->)]|[Hne Ht]]]%updated_claims; simpl.
      + destruct (dropped_old _ Hm) as ([? Hb]&_). split_and!; [lia|lia|lia|]. intros nd Hn. apply Hb.
        rewrite <- old_same; done.
      + destruct (inv_dying I Ht) as (?&?&?&Hb). split_and!; [lia|done|lia|]. intros nd Hn. apply Hb.
        rewrite <- old_same; [done|]. by eapply (old_root (Dying t)).
    - intros j c' Hj. assert (∃ j0 c0, claims s !! j0 = Some c0 ∧ parent c0 = parent c') as (j0&c0&Hj0&<-).
      { apply updated_claims in Hj as [[-> ->]|[[-> (m&Hm&->)]|[Hne Hj]]]; simpl; eauto. }
      destruct (inv_parent I Hj0) as [|Hp]; [by left|right]. rewrite updated_other; [done| |done].
      pose proof (parent_below _ _ _ I Hj0). unfold e. injection 1. lia.
    - intros j c' n nd Hj Hr Hn Hb.
      destruct (updated_reaches _ _ _ _ Hj Hr Hn) as [(->&_&Hbe)|(j0&c0&nd0&Hj0&Hp&Hr0&Hn0&Hb0)].
      + exfalso. rewrite updated_live in Hj. injection Hj as <-. simpl in Hb. lia.
      + rewrite <- Hp in *. destruct (inv_birth I Hj0 Hr0 Hn0) as (p&Hpv&?); [lia|].
        assert ((View (parent c0) : nat + nat) ≠ View e).
        { pose proof (parent_below _ _ _ I Hj0). unfold e. injection 1. lia. }
        exists p. rewrite updated_other by eauto. split; [done|]. by eapply other_reaches.
    - intros j c1 j' c2 n nd Hj Hj' Hr Hr' Hn Hb Hb'.
      destruct (updated_reaches _ _ _ _ Hj Hr Hn) as [(->&?&_)|(j0&c0&nd0&Hj0&Hp&Hr0&Hn0&Hb0)],
        (updated_reaches _ _ _ _ Hj' Hr' Hn) as [(->&?&_)|(j0'&c0'&nd0'&Hj0'&Hp'&Hr0'&Hn0'&Hb0')].
      + congruence.
      + apply (tidy_node (inv_tidy I)) in Hn0'. lia.
      + apply (tidy_node (inv_tidy I)) in Hn0. lia.
      + unfold h in *. assert (nd0' = nd0) as -> by congruence. rewrite <- Hp, <- Hp'.
        apply (inv_sibling I j0 c0 j0' c0' n nd0); done || lia.
    - intros n Hsome. fold h' in Hsome |- *. destruct (decide (next s ≤ n)) as [Hge|Hlt].
      + destruct (put_fresh _ _ _ _ _ _ _ _ _ _ _ _ P n Hge Hsome) as [q Hq].
        eexists _, _. split; [apply updated_live|]. apply has_node_fresh; [by exists q|done].
      + assert (is_Some (h !! n)) as Hold.
        { destruct (put_frame _ _ _ _ _ _ _ _ _ _ _ _ P n) as [Hs|(q&_&[?|(nd&?&_)]&_)]; [|lia|by exists nd].
          unfold h; by rewrite <- Hs. }
        destruct (inv_held I Hold) as (j&c0&Hj&Hc0). destruct (decide (j = View e)) as [->|Hne].
        * assert (c0 = c) as -> by congruence. destruct Hc0 as [[q Hq] _].
          destruct (put_lost _ _ _ _ _ _ _ _ _ _ _ _ P q n Hq) as [Hq'|[Hgone|(m&q1&q2&Hm&->&Hq1&Hq2)]].
          -- eexists _, _. split; [apply updated_live|]. apply has_node_fresh; [by exists q|done].
          -- fold h' in Hgone. rewrite Hgone in Hsome. by destruct Hsome.
          -- eexists _, _. split; [by apply updated_dropped|]. apply has_node_fresh; [|done]. simpl.
             apply old_reaches; [by apply dropped_old|]. by exists q2.
        * exists j, c0. rewrite updated_other by eauto. split; [done|]. destruct Hc0 as (Hr&nd&Hnd&Hnot).
          destruct (other_reaches _ _ n Hj Hne) as [Heq Hsame]. split; [by apply Heq|].
          exists nd. split; [|done]. by rewrite Hsame.
  Qed.
End update.

Lemma inv_update s s' k x : inv s → length k = height s → update k x s = Some s' → inv s'.
Proof. intros I Hk Hu. destruct (update_spec _ _ _ _ I Hk Hu) as (c&r&dr&U). by eapply inv_updated. Qed.

Lemma update_spares_others s s' k x j c n : inv s → length k = height s → update k x s = Some s' →
  claims s !! j = Some c → j ≠ View (epoch s) →
  (reaches (nodes s') (root c) n ↔ reaches (nodes s) (root c) n) ∧
  (reaches (nodes s) (root c) n → nodes s' !! n = nodes s !! n).
Proof. intros I Hk Hu. destruct (update_spec _ _ _ _ I Hk Hu) as (c0&r&dr&U). by apply (other_reaches I U).
  Qed.

Lemma update_shares_rest s s' k x c c' q : inv s → length k = height s → update k x s = Some s' →
  claims s !! View (epoch s) = Some c → claims s' !! View (epoch s) = Some c' → ¬ q `prefix_of` k →
  descend (nodes s') (root c') q = descend (nodes s) (root c) q.
Proof. intros I Hk Hu Hc Hc' Hq. destruct (update_spec _ _ _ _ I Hk Hu) as (c0&r&dr&U).
  rewrite (updated_live U) in Hc'. injection Hc' as <-. rewrite (upd_live _ _ _ _ _ _ _ U) in Hc.
  injection Hc as <-. apply (put_off_path _ _ _ _ _ _ _ _ _ _ _ _ (upd_put _ _ _ _ _ _ _ U) _ Hq). Qed.
