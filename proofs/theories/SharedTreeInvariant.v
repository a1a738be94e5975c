(** What holds in every reachable state, and why each action but an update and a step of reclaim keeps it. *)
From LogDisk Require Export SharedTreeUpdate.

(** Takes apart why an action could be taken. *)
Ltac invert_apply := repeat match goal with
  | E : (_ ← ?o; _) = Some _ |- _ => destruct o eqn:?; simpl in E; [|done]
  | E : match ?o with _ => _ end = Some _ |- _ => destruct o eqn:?; try done
  | E : Some _ = Some _ |- _ => injection E as <-
  | E : (_ =? _) = true |- _ => apply Nat.eqb_eq in E
  | E : (_ =? _) = false |- _ => apply Nat.eqb_neq in E
  end.

Record inv (s : state) : Prop := Inv {
  inv_height : 0 < height s;
  inv_epoch : 0 < epoch s;
  inv_tidy : tidy (height s) (epoch s) (next s) (nodes s);
  inv_live : is_Some (claims s !! View (epoch s));
  inv_view v c : claims s !! View v = Some c →
    parent c < v ≤ epoch s ∧ done c = [] ∧ closed (nodes s) (root c) ∧
    ∃ nd, nodes s !! root c = Some nd ∧ place nd = [] ∧ birth nd ≤ v;
  inv_dying t c : claims s !! Dying t = Some c →
    t < next s ∧ parent c < epoch s ∧ root c < next s ∧
    ∀ nd, nodes s !! root c = Some nd → birth nd < epoch s;
  inv_parent j c : claims s !! j = Some c → parent c = 0 ∨ is_Some (claims s !! View (parent c));
  (** The birth test: what a claim reaches and was born no later than its parent, the parent reaches. *)
  inv_birth j c n nd : claims s !! j = Some c → reaches (nodes s) (root c) n → nodes s !! n = Some nd →
    birth nd ≤ parent c → ∃ p, claims s !! View (parent c) = Some p ∧ reaches (nodes s) (root p) n;
  (** The neighbour test: the claims that reach a node born after their parents are siblings. *)
  inv_sibling j c j' c' n nd : claims s !! j = Some c → claims s !! j' = Some c' →
    reaches (nodes s) (root c) n → reaches (nodes s) (root c') n → nodes s !! n = Some nd →
    parent c < birth nd → parent c' < birth nd → parent c = parent c';
  inv_held : no_leak s;
}.
Global Arguments inv_height {s} _. Global Arguments inv_epoch {s} _. Global Arguments inv_tidy {s} _.
Global Arguments inv_live {s} _. Global Arguments inv_view {s} _ {v c} _.
  Global Arguments inv_dying {s} _ {t c} _.
Global Arguments inv_parent {s} _ {j c} _. Global Arguments inv_birth {s} _ {j c n nd} _ _ _ _.
Global Arguments inv_sibling {s} _ j c j' c' n nd. Global Arguments inv_held {s} _ {n} _.

Lemma parent_below s j c : inv s → claims s !! j = Some c → parent c < epoch s.
Proof. intros I Hj. destruct j as [v|t]; [apply (inv_view I) in Hj|apply (inv_dying I) in Hj]; lia. Qed.

Lemma view_birth s v c n nd : inv s → claims s !! View v = Some c →
  reaches (nodes s) (root c) n → nodes s !! n = Some nd → birth nd ≤ v.
Proof. intros I Hv Hr Hn. destruct (inv_view I Hv) as (_&_&_&rd&Hrd&_&?).
  destruct Hr as [p Hp]. pose proof (descend_place (inv_tidy I) _ _ _ _ _ Hp Hrd Hn). lia. Qed.

Lemma fresh_ticket s : inv s → claims s !! Dying (next s) = None.
Proof. intros I. destruct (claims s !! _) as [c|] eqn:E; [|done]. apply (inv_dying I) in E. lia. Qed.

Lemma fresh_view s : inv s → claims s !! View (S (epoch s)) = None.
Proof. intros I. destruct (claims s !! _) as [c|] eqn:E; [|done]. apply (inv_view I) in E. lia. Qed.

Lemma has_node_fresh h c n : reaches h (root c) n → done c = [] → has_node h c n.
Proof. intros Hr Hd. split; [done|]. destruct (reaches_exists _ _ _ Hr) as [nd ?]. exists nd. split; [done|].
  unfold finished. rewrite Hd. by intros ?%Exists_nil. Qed.

(** A claim that is a view holds all that it reaches. *)
Lemma view_has_node s v c n : inv s → claims s !! View v = Some c →
  reaches (nodes s) (root c) n → has_node (nodes s) c n.
Proof. intros I Hv Hr. apply has_node_fresh; [done|]. by destruct (inv_view I Hv) as (_&?&_). Qed.

(** Nodes unchanged, claims changed: what has to be shown. *)
Lemma inv_claims s e nx cs :
  inv s → epoch s ≤ e → next s ≤ nx →
  is_Some (cs !! View e) →
  (∀ v c, cs !! View v = Some c → parent c < v ≤ e ∧ done c = [] ∧
     ∃ v' c', claims s !! View v' = Some c' ∧ v' ≤ v ∧ root c' = root c) →
  (∀ t c, cs !! Dying t = Some c → t < nx ∧ parent c < e ∧
     ∃ j c', claims s !! j = Some c' ∧ root c' = root c ∧ (j = View (epoch s) → epoch s < e)) →
  (∀ j c, cs !! j = Some c → parent c = 0 ∨ is_Some (cs !! View (parent c))) →
  (∀ j c n nd, cs !! j = Some c → reaches (nodes s) (root c) n → nodes s !! n = Some nd →
     birth nd ≤ parent c → ∃ p, cs !! View (parent c) = Some p ∧ reaches (nodes s) (root p) n) →
  (∀ j c j' c' n nd, cs !! j = Some c → cs !! j' = Some c' →
     reaches (nodes s) (root c) n → reaches (nodes s) (root c') n → nodes s !! n = Some nd →
     parent c < birth nd → parent c' < birth nd → parent c = parent c') →
  (∀ j c n, claims s !! j = Some c → has_node (nodes s) c n → ∃ j' c', cs !! j' = Some c' ∧
    has_node (nodes s) c' n) →
  inv (State (height s) (nodes s) nx e cs).
Proof.
  intros I He Hn Hlive Hview Hdying Hpar Hbirth Hsib Hheld. split; simpl; try done.
  - apply (inv_height I).
  - pose proof (inv_epoch I). lia.
  - by eapply tidy_mono; [apply (inv_tidy I)|..].
  - intros v c Hv. destruct (Hview _ _ Hv) as (?&?&v'&c'&Hv'&?&<-). split; [done|]. split; [done|].
    destruct (inv_view I Hv') as (_&_&?&rd&?&?&?). split; [done|]. exists rd. split_and!; [done..|lia].
  - intros t c Ht. destruct (Hdying _ _ Ht) as (?&?&j&c'&Hj&<-&Hlast). split; [done|]. split; [done|].
    destruct j as [v|t'].
    + destruct (inv_view I Hj) as (?&_&_&rd&Hrd&_&?). split.
      * destruct (tidy_node (inv_tidy I) Hrd). lia.
      * intros nd Hnd. assert (nd = rd) as -> by congruence.
        destruct (decide (v = epoch s)) as [->|]; [specialize (Hlast eq_refl)|]; lia.
    + destruct (inv_dying I Hj) as (_&_&?&Hb). split; [lia|]. intros nd Hnd. specialize (Hb _ Hnd). lia.
  - intros n Hnd. destruct (inv_held I Hnd) as (j&c&Hj&Hc). simpl. eauto.
Qed.

Lemma inv_create levels : inv (create levels).
Proof.
  assert (∀ j c, claims (create levels) !! j = Some c → j = View 1 ∧ c = Claim 0 0 []) as Hcl.
  { intros j c Hj. cbn in Hj. by apply lookup_singleton_Some in Hj as [<- <-]. }
  assert (∀ n nd, nodes (create levels) !! n = Some nd → n = 0 ∧ nd = Node 1 [] ∅ 0) as Hnd.
  { intros n nd Hn. cbn in Hn. by apply lookup_singleton_Some in Hn as [<- <-]. }
  split; simpl; try lia.
  - split.
    + intros n nd [-> ->]%Hnd. simpl. lia.
    + intros n nd d m [-> ->]%Hnd Hd. cbn in Hd. by apply lookup_empty_Some in Hd.
    + intros n nd d m md [-> ->]%Hnd Hd. cbn in Hd. by apply lookup_empty_Some in Hd.
  - rewrite lookup_singleton. eauto.
  - intros v c [[= ->] ->]%Hcl. simpl. split; [lia|]. split; [done|]. split.
    + split; [rewrite lookup_singleton; eauto|]. intros n nd d m _ [-> ->]%Hnd Hd. cbn in Hd.
      by apply lookup_empty_Some in Hd.
    + exists (Node 1 [] ∅ 0). cbn. by rewrite lookup_singleton.
  - by intros t c [? _]%Hcl.
  - intros j c [-> ->]%Hcl. by left.
  - intros j c n nd [-> ->]%Hcl _ [-> ->]%Hnd. simpl. lia.
  - by intros j c j' c' n nd [-> ->]%Hcl [-> ->]%Hcl.
  - intros n [nd [-> ->]%Hnd]. exists (View 1), (Claim 0 0 []). split; [apply lookup_singleton|].
    apply has_node_fresh; [|done]. apply reaches_refl. simpl. rewrite lookup_singleton. eauto.
Qed.

(** An epoch ends: live moves, or is left to a walk, and a new live view may begin on the root of its parent.
*)
Lemma inv_moved s nx cs : inv s → next s ≤ nx → is_Some (cs !! View (S (epoch s))) →
  (∀ j c, cs !! j = Some c →
    (∃ j0, claims s !! j0 = Some c ∧ (j = j0 ∨ j0 = View (epoch s) ∧
       match j with View v => v = S (epoch s) | Dying t => t < nx end)) ∨
    (j = View (S (epoch s)) ∧ done c = [] ∧
     ∃ p, claims s !! View (parent c) = Some p ∧ cs !! View (parent c) = Some p ∧ root c = root p)) →
  (∀ v p, claims s !! View v = Some p → v ≠ epoch s → cs !! View v = Some p) →
  (∀ j c, claims s !! j = Some c → ∃ j', cs !! j' = Some c) →
  inv (State (height s) (nodes s) nx (S (epoch s)) cs).
Proof.
  intros I Hn Hlive Hfrom Hviews Hkept. pose proof (inv_epoch I).
  assert (∀ j c n nd, cs !! j = Some c → reaches (nodes s) (root c) n → nodes s !! n = Some nd →
    parent c < birth nd →
    ∃ j0, claims s !! j0 = Some c) as Hold.
  { intros j c n nd [(j0&?&_)|(->&_&p&Hp&_&Hr)]%Hfrom Hrn Hnd Hb; [eauto|]. rewrite Hr in Hrn.
    pose proof (view_birth _ _ _ _ _ I Hp Hrn Hnd). lia. }
  apply inv_claims; try (done || lia).
  - intros v c [(j0&Hj0&Hm)|([= ->]&?&p&Hp&_&Hr)]%Hfrom.
    + destruct Hm as [<-|[-> ->]]; destruct (inv_view I Hj0) as (?&?&_);
        (split; [lia|]; split; [done|]; eexists _, c; split_and!; [done|lia|done]).
    + destruct (inv_view I Hp) as (?&_). split; [lia|]. split; [done|]. exists (parent c), p.
      split_and!; [done|lia|done].
  - intros t c [(j0&Hj0&Hm)|([=]&_)]%Hfrom. pose proof (parent_below _ _ _ I Hj0). destruct Hm as [<-|[-> ?]].
    + destruct (inv_dying I Hj0) as (?&_). split; [lia|]. split; [lia|]. by exists (Dying t), c.
    + split; [done|]. split; [lia|]. exists (View (epoch s)), c. split_and!; [done|done|lia].
  - intros j c [(j0&Hj0&_)|(->&_&p&_&Hp&_)]%Hfrom; [|right; eauto]. pose proof (parent_below _ _ _ I Hj0).
    destruct (inv_parent I Hj0) as [|[p Hp]]; [by left|right]. exists p. apply Hviews; [done|lia].
  - intros j c n nd [(j0&Hj0&_)|(->&_&p&_&Hp&Hr)]%Hfrom Hrn Hnd Hb; [|exists p; by rewrite <- Hr].
    pose proof (parent_below _ _ _ I Hj0). destruct (inv_birth I Hj0 Hrn Hnd Hb) as (p&Hp&?).
    exists p. split; [apply Hviews; [done|lia]|done].
  - intros j c j' c' n nd Hj Hj' Hr Hr' Hnd Hb Hb'.
    destruct (Hold _ _ _ _ Hj Hr Hnd Hb), (Hold _ _ _ _ Hj' Hr' Hnd Hb'). by eapply (inv_sibling I).
  - intros j c n Hj ?. destruct (Hkept _ _ Hj) as [j' ?]. eauto.
Qed.

Lemma inv_snapshot s s' : inv s → apply Snapshot s = Some s' → inv s'.
Proof.
  intros I. simpl. destruct (claims s !! View (epoch s)) as [l|] eqn:Hl; simpl; [|done]. intros [= <-].
  pose proof (fresh_view _ I). set (cs := <[_ := _]> _).
  assert (∀ j c, claims s !! j = Some c → cs !! j = Some c) as Hto.
  { intros j c Hj. unfold cs. rewrite lookup_insert_ne; [done|congruence]. }
  apply inv_moved; eauto; [unfold cs; rewrite lookup_insert; eauto|].
  intros j c [[<- <-]|[_ Hj]]%lookup_insert_Some; [right|by left; eauto]. simpl. split_and!; eauto.
Qed.

Lemma inv_checkpoint s s' : inv s → apply Checkpoint s = Some s' → inv s'.
Proof.
  intros I. simpl. destruct (claims s !! View (epoch s)) as [l|] eqn:Hl; simpl; [|done]. intros [= <-].
  pose proof (fresh_view _ I). set (cs := <[_ := _]> _).
  assert (∀ j c, claims s !! j = Some c → j ≠ View (epoch s) → cs !! j = Some c) as Hto.
  { intros j c Hj Hne. unfold cs. rewrite lookup_insert_ne, lookup_delete_ne; congruence. }
  assert (cs !! View (S (epoch s)) = Some l) by apply lookup_insert. apply inv_moved; eauto.
  - intros j c [[<- <-]|[_ [_ Hj]%lookup_delete_Some]]%lookup_insert_Some; left; eauto.
  - intros v p Hv Hne. apply Hto; congruence.
  - intros j c Hj. destruct (decide (j = View (epoch s))) as [->|]; [|eauto]. exists (View (S (epoch s))).
    congruence.
Qed.

Lemma inv_revert s s' v : inv s → apply (Revert v) s = Some s' → inv s'.
Proof.
  intros I. simpl. destruct (Nat.eqb_spec v (epoch s)) as [|Hve]; [done|].
  destruct (claims s !! View v) as [g|] eqn:Hg; simpl; [|done].
  destruct (claims s !! View (epoch s)) as [l|] eqn:Hl; simpl; [|done]. intros [= <-].
  pose proof (fresh_view _ I). pose proof (fresh_ticket _ I). set (cs := <[_ := _]> _).
  assert (∀ j c, claims s !! j = Some c → j ≠ View (epoch s) → cs !! j = Some c) as Hto.
  { intros j c Hj Hne. unfold cs. rewrite !lookup_insert_ne, lookup_delete_ne; congruence. }
  assert (cs !! Dying (next s) = Some l) by (unfold cs; rewrite lookup_insert_ne by done;
    apply lookup_insert).
  apply inv_moved; eauto.
  - unfold cs. rewrite lookup_insert. eauto.
  - intros j c [[<- <-]|[_ [[<- <-]|[_ [_ Hj]%lookup_delete_Some]]%lookup_insert_Some]]%lookup_insert_Some;
    [right|left..].
    + simpl. split_and!; [done..|]. exists g. split_and!; [done|apply Hto; [done|congruence]|done].
    + exists (View (epoch s)). auto with lia.
    + eauto.
  - intros w p Hw Hne. apply Hto; congruence.
  - intros j c Hj. destruct (decide (j = View (epoch s))) as [->|]; [|eauto]. exists (Dying (next s)).
    congruence.
Qed.

Lemma inv_delete s s' v : inv s → apply (Delete v) s = Some s' → inv s'.
Proof.
  intros I. simpl. destruct (v =? epoch s) eqn:Hve; [done|]. apply Nat.eqb_neq in Hve.
  destruct (claims s !! View v) as [g|] eqn:Hg; simpl; [|done]. intros [= <-].
  pose proof (fresh_ticket _ I) as Hft. set (cs := <[_ := _]> _). set (P := parent g) in *.
  pose proof (inv_view I Hg) as (Hgv&Hgd&_). fold P in Hgv.
  (* Each claim that there is now, there was, under a parent that is now [P] if it was [v]. *)
  assert (∀ j c, cs !! j = Some c → ∃ j0 c0,
    claims s !! j0 = Some c0 ∧ root c = root c0 ∧ done c = done c0 ∧
      parent c = (if parent c0 =? v then P else parent c0) ∧
    ((j = Dying (next s) ∧ j0 = View v) ∨ (j = j0 ∧ j ≠ View v))) as Hfrom.
  { intros j c [[<- <-]|[_ Hj]]%lookup_insert_Some.
    - exists (View v), g. split_and!; try done; [|naive_solver].
      change (parent g) with P. destruct (Nat.eqb_spec P v); [lia|done].
    - apply lookup_fmap_Some in Hj as (c0&<-&[? Hj]%lookup_delete_Some). exists j, c0. split_and!; try done.
      naive_solver. }
  assert (∀ j c0, claims s !! j = Some c0 → j ≠ View v → cs !! j = Some (reparent v P c0)) as Hto.
  { intros j c0 Hj Hne. unfold cs. rewrite lookup_insert_ne by (intros <-; congruence).
    rewrite lookup_fmap, lookup_delete_ne, Hj by done. done. }
  assert (∀ c0, (if parent c0 =? v then P else parent c0) ≠ v) as Hpv.
  { intros c0. destruct (Nat.eqb_spec (parent c0) v); lia. }
  apply inv_claims; try (done || lia).
  - destruct (inv_live I) as [l Hl]. erewrite Hto; [eauto|done|]. by injection 1.
  - intros w c Hw. destruct (Hfrom _ _ Hw) as (j0&c0&Hj0&Hroot&Hdone&Hpar&[[[=] _]|[<- _]]).
    destruct (inv_view I Hj0) as (?&?&_). split; [|split; [congruence|naive_solver]].
    rewrite Hpar. destruct (Nat.eqb_spec (parent c0) v); lia.
  - intros t c Ht. destruct (Hfrom _ _ Ht) as (j0&c0&Hj0&Hroot&Hdone&Hpar&Hj). assert (t < S (next s)).
    { destruct Hj as [[[= ->] _]|[<- _]]; [lia|]. apply (inv_dying I) in Hj0. lia. }
    pose proof (parent_below _ _ _ I Hj0). split; [done|]. split; [rewrite Hpar; destruct (_ =? _); lia|].
    exists j0, c0. split_and!; [done|done|]. destruct Hj as [[_ ->]|[<- _]]; [|done]. injection 1; intros;
      lia.
  - intros j c Hj. destruct (Hfrom _ _ Hj) as (j0&c0&Hj0&_&_&->&_).
    assert ((if parent c0 =? v then P else parent c0) = 0 ∨
            is_Some (claims s !! View (if parent c0 =? v then P else parent c0))) as [|[p Hp]]; [|by left|].
    + destruct (Nat.eqb_spec (parent c0) v); [apply (inv_parent I Hg)|apply (inv_parent I Hj0)].
    + right. erewrite Hto; [eauto|done|]. injection 1. apply Hpv.
  - intros j c n nd Hj Hr Hn Hb. destruct (Hfrom _ _ Hj) as (j0&c0&Hj0&Hroot&_&Hpar&_).
    rewrite Hroot in Hr. rewrite Hpar in *.
    assert (∃ p, claims s !! View (if parent c0 =? v then P else parent c0) = Some p ∧
                 reaches (nodes s) (root p) n) as (p&Hp&?).
    { destruct (Nat.eqb_spec (parent c0) v) as [E|]; [|by eapply (inv_birth I)].
      destruct (inv_birth I Hj0 Hr Hn) as (g'&Hg'&?); [lia|]. rewrite E in Hg'.
      assert (g' = g) as -> by congruence. by eapply (inv_birth I). }
    exists (reparent v P p). split; [|done]. apply Hto; [done|]. injection 1. apply Hpv.
  - assert (∀ j c n nd, cs !! j = Some c → reaches (nodes s) (root c) n → nodes s !! n = Some nd →
    parent c < birth nd →
      ∃ j0 c0, claims s !! j0 = Some c0 ∧ parent c = (if parent c0 =? v then P else parent c0) ∧
        parent c0 < birth nd ∧ reaches (nodes s) (root c0) n) as Htop.
    { intros j c n nd Hj Hr Hn Hb. destruct (Hfrom _ _ Hj) as (j0&c0&Hj0&Hroot&_&Hpar&_). rewrite Hroot in Hr.
      destruct (decide (birth nd ≤ parent c0)).
      - destruct (inv_birth I Hj0 Hr Hn) as (g'&Hg'&?); [lia|].
        destruct (Nat.eqb_spec (parent c0) v) as [E|]; [|lia]. rewrite E in Hg'.
        assert (g' = g) as -> by congruence. exists (View v), g. fold P. rewrite Hpar in *.
        split_and!; [done| |lia|done]. destruct (Nat.eqb_spec P v); lia.
      - exists j0, c0. split_and!; [done|done|lia|done]. }
    intros j c j' c' n nd Hj Hj' Hr Hr' Hn Hb Hb'.
    destruct (Htop _ _ _ _ Hj Hr Hn Hb) as (j0&c0&?&->&?&?),
      (Htop _ _ _ _ Hj' Hr' Hn Hb') as (j1&c1&?&->&?&?).
    by rewrite (inv_sibling I j0 c0 j1 c1 n nd).
  - intros j c n Hj Hc. destruct (decide (j = View v)) as [->|].
    + assert (c = g) as -> by congruence. exists (Dying (next s)), g. split; [apply lookup_insert|done].
    + exists j, (reparent v P c). split; [by apply Hto|done].
Qed.

(** A dying claim comes to hold other nodes: what it held, something still holds. *)
Lemma inv_finish s t c cs : inv s → claims s !! Dying t = Some c →
  (∀ j, j ≠ Dying t → cs !! j = claims s !! j) →
  (∀ c', cs !! Dying t = Some c' → parent c' = parent c ∧ root c' = root c) →
  (∀ n, has_node (nodes s) c n → ∃ j' c', cs !! j' = Some c' ∧ has_node (nodes s) c' n) →
  inv (with_claims s cs).
Proof.
  intros I Ht Hother Hsame Hheld.
  assert (∀ v, cs !! View v = claims s !! View v) as Hview by (intros; by apply Hother).
  assert (∀ j c', cs !! j = Some c' → ∃ c0, claims s !! j = Some c0 ∧ parent c' = parent c0 ∧
    root c' = root c0) as Hfrom.
  { intros j c' Hj. destruct (decide (j = Dying t)) as [->|].
    - exists c. split; [done|]. by apply Hsame.
    - exists c'. by rewrite <- Hother. }
  apply inv_claims; try (done || lia).
  - rewrite Hview. apply (inv_live I).
  - intros v c' Hv. rewrite Hview in Hv. destruct (inv_view I Hv) as (?&?&_). naive_solver.
  - intros t' c' Ht'. destruct (Hfrom _ _ Ht') as (c0&Hc0&Hp&Hr). rewrite Hp, Hr.
    destruct (inv_dying I Hc0) as (?&?&_). split_and!; try done. by exists (Dying t'), c0.
  - intros j c' Hj. destruct (Hfrom _ _ Hj) as (c0&Hc0&->&_). rewrite Hview. by apply (inv_parent I (j := j)).
  - intros j c' n nd Hj. destruct (Hfrom _ _ Hj) as (c0&Hc0&->&->). rewrite Hview. by apply (inv_birth I (j :=
    j)).
  - intros j c' j' c'' n nd Hj Hj'. destruct (Hfrom _ _ Hj) as (c0&Hc0&->&->),
    (Hfrom _ _ Hj') as (c1&Hc1&->&->).
    by apply (inv_sibling I j _ j').
  - intros j c' n Hj Hh. destruct (decide (j = Dying t)) as [->|].
    + assert (c' = c) as -> by congruence. by apply Hheld.
    + exists j, c'. by rewrite Hother.
Qed.

Lemma inv_crash s s' t ps : inv s → apply (Crash t ps) s = Some s' → inv s'.
Proof.
  intros I. simpl. destruct (claims s !! Dying t) as [c|] eqn:Ht; simpl; [|done].
  destruct (forallb _ _) eqn:Hps; [|done]. intros [= <-]. apply (inv_finish s t c); [done..| | |].
  - intros j Hj. by apply lookup_insert_ne.
  - intros c'. rewrite lookup_insert. by intros [= <-].
  - intros n [Hr (nd&Hn&Hnot)]. eexists (Dying t), _. split; [apply lookup_insert|]. split; [done|].
    exists nd. split; [done|]. unfold finished in *. simpl. rewrite Exists_exists. intros (q&Hq&?).
    apply Hnot, Exists_exists. exists q. split; [|done]. rewrite forallb_forall in Hps. specialize (Hps q).
    rewrite bool_decide_eq_true in Hps. by apply Hps, elem_of_list_In.
Qed.
