(** What holds in every reachable state, and why each action but an update and a step of reclaim keeps it. *)
From LogDisk Require Import SharedTree SharedTreePaths SharedTreeUpdate.

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

Lemma parent_below s j c : inv s → claims s !! j = Some c → parent c < epoch s.
Proof. intros I Hj. destruct j as [v|t]; [apply (inv_view _ I) in Hj|apply (inv_dying _ I) in Hj]; lia. Qed.

Lemma view_birth s v c n nd : inv s → claims s !! View v = Some c →
  reaches (nodes s) (root c) n → nodes s !! n = Some nd → birth nd ≤ v.
Proof.
  intros I Hv Hr Hn. destruct (inv_view _ I _ _ Hv) as (_&_&_&rd&Hrd&_&?).
  pose proof (reaches_birth (inv_tidy _ I) _ _ _ _ Hr Hrd Hn). lia.
Qed.

Lemma dying_birth s t c n nd : inv s → claims s !! Dying t = Some c →
  reaches (nodes s) (root c) n → nodes s !! n = Some nd → birth nd < epoch s.
Proof.
  intros I Ht Hr Hn. destruct (inv_dying _ I _ _ Ht) as (_&_&_&Hb). pose proof Hr as [p Hp].
  destruct (descend_root _ _ _ _ Hp) as [rd Hrd].
  pose proof (reaches_birth (inv_tidy _ I) _ _ _ _ Hr Hrd Hn). specialize (Hb _ Hrd). lia.
Qed.

Lemma fresh_ticket s : inv s → claims s !! Dying (next s) = None.
Proof. intros I. destruct (claims s !! _) as [c|] eqn:E; [|done]. apply (inv_dying _ I) in E. lia. Qed.

Lemma fresh_view s : inv s → claims s !! View (S (epoch s)) = None.
Proof. intros I. destruct (claims s !! _) as [c|] eqn:E; [|done]. apply (inv_view _ I) in E. lia. Qed.

Lemma holds_fresh h c n : reaches h (root c) n → done c = [] → holds h c n.
Proof.
  intros Hr Hd. split; [done|]. destruct (reaches_exists _ _ _ Hr) as [nd ?]. exists nd. split; [done|].
  unfold finished. rewrite Hd. by intros ?%Exists_nil.
Qed.

(** A claim that is a view holds all that it reaches. *)
Lemma view_holds s v c n : inv s → claims s !! View v = Some c →
  reaches (nodes s) (root c) n → holds (nodes s) c n.
Proof. intros I Hv Hr. apply holds_fresh; [done|]. by destruct (inv_view _ I _ _ Hv) as (_&?&_). Qed.

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
  (∀ j c n, claims s !! j = Some c → holds (nodes s) c n → ∃ j' c', cs !! j' = Some c' ∧ holds (nodes s) c' n) →
  inv (State (height s) (nodes s) nx e cs).
Proof.
  intros I He Hn Hlive Hview Hdying Hpar Hbirth Hsib Hheld. split; simpl; try done.
  - apply (inv_height _ I).
  - pose proof (inv_epoch _ I). lia.
  - by eapply tidy_mono; [apply (inv_tidy _ I)|..].
  - intros v c Hv. destruct (Hview _ _ Hv) as (?&?&v'&c'&Hv'&?&<-). split; [done|]. split; [done|].
    destruct (inv_view _ I _ _ Hv') as (_&_&?&rd&?&?&?). split; [done|]. exists rd. split_and!; [done..|lia].
  - intros t c Ht. destruct (Hdying _ _ Ht) as (?&?&j&c'&Hj&<-&Hlast). split; [done|]. split; [done|].
    destruct j as [v|t'].
    + destruct (inv_view _ I _ _ Hj) as (?&_&_&rd&Hrd&_&?). split.
      * destruct (tidy_node _ _ _ _ (inv_tidy _ I) _ _ Hrd). lia.
      * intros nd Hnd. assert (nd = rd) as -> by congruence.
        destruct (decide (v = epoch s)) as [->|]; [specialize (Hlast eq_refl)|]; lia.
    + destruct (inv_dying _ I _ _ Hj) as (_&_&?&Hb). split; [lia|]. intros nd Hnd. specialize (Hb _ Hnd). lia.
  - intros n Hnd. destruct (inv_held _ I _ Hnd) as (j&c&Hj&Hc). simpl. eauto.
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
    + split; [rewrite lookup_singleton; eauto|]. intros n nd d m _ [-> ->]%Hnd Hd. cbn in Hd. by apply lookup_empty_Some in Hd.
    + exists (Node 1 [] ∅ 0). cbn. by rewrite lookup_singleton.
  - by intros t c [? _]%Hcl.
  - intros j c [-> ->]%Hcl. by left.
  - intros j c n nd [-> ->]%Hcl _ [-> ->]%Hnd. simpl. lia.
  - by intros j c j' c' n nd [-> ->]%Hcl [-> ->]%Hcl.
  - intros n [nd [-> ->]%Hnd]. exists (View 1), (Claim 0 0 []). split; [apply lookup_singleton|].
    apply holds_fresh; [|done]. apply reaches_refl. simpl. rewrite lookup_singleton. eauto.
Qed.

Lemma inv_snapshot s s' : inv s → apply Snapshot s = Some s' → inv s'.
Proof.
  intros I. simpl. destruct (claims s !! View (epoch s)) as [l|] eqn:Hl; simpl; [|done]. intros [= <-].
  pose proof (fresh_view _ I) as Hf. pose proof (inv_epoch _ I).
  assert (∀ j, j ≠ View (S (epoch s)) → <[View (S (epoch s)) := Claim (epoch s) (root l) []]> (claims s) !! j = claims s !! j)
    as Hold by (intros; by apply lookup_insert_ne).
  apply inv_claims; try (done || lia).
  - rewrite lookup_insert. eauto.
  - intros v c [[[= <-] <-]|[_ Hv]]%lookup_insert_Some; simpl.
    + split; [lia|]. split; [done|]. exists (epoch s), l. split_and!; [done|lia|done].
    + destruct (inv_view _ I _ _ Hv) as (?&?&_). split; [lia|]. split; [done|]. eauto.
  - intros t c [[[=] _]|[_ Ht]]%lookup_insert_Some. destruct (inv_dying _ I _ _ Ht) as (?&?&_).
    split; [done|]. split; [lia|]. exists (Dying t), c. done.
  - intros j c Hj. assert (is_Some (claims s !! View (parent c)) ∨ parent c = 0) as [Hp|]; [| |by left].
    + apply lookup_insert_Some in Hj as [[_ <-]|[_ Hj]]; [left; simpl; eauto|].
      destruct (inv_parent _ I _ _ Hj); eauto.
    + right. rewrite Hold; [done|]. intros E. rewrite E, Hf in Hp. by destruct Hp.
  - intros j c n nd [[<- <-]|[_ Hj]]%lookup_insert_Some Hr Hn Hb.
    + simpl in *. exists l. split; [|done]. rewrite Hold; [done|]. injection 1. lia.
    + pose proof (parent_below _ _ _ I Hj). destruct (inv_birth _ I _ _ _ _ Hj Hr Hn Hb) as (p&Hp&?).
      exists p. split; [|done]. rewrite Hold; [done|]. injection 1. lia.
  - intros j c j' c' n nd Hj Hj' Hr Hr' Hn Hb Hb'. destruct (tidy_node _ _ _ _ (inv_tidy _ I) _ _ Hn).
    apply lookup_insert_Some in Hj as [[_ <-]|[_ Hj]]; [simpl in *; lia|].
    apply lookup_insert_Some in Hj' as [[_ <-]|[_ Hj']]; [simpl in *; lia|]. by eapply (inv_sibling _ I).
  - intros j c n Hj Hc. exists j, c. split; [|done]. rewrite Hold; [done|]. intros ->. congruence.
Qed.

Lemma inv_checkpoint s s' : inv s → apply Checkpoint s = Some s' → inv s'.
Proof.
  intros I. simpl. destruct (claims s !! View (epoch s)) as [l|] eqn:Hl; simpl; [|done]. intros [= <-].
  pose proof (fresh_view _ I) as Hf. set (cs := <[_ := _]> _).
  assert (∀ j c, cs !! j = Some c →
    ∃ j0, claims s !! j0 = Some c ∧ match j, j0 with
      View v, View v0 => v0 ≤ v ≤ S (epoch s) | Dying t, Dying t0 => t = t0 | _, _ => False end) as Hfrom.
  { intros j c [[<- <-]|[_ [_ Hj]%lookup_delete_Some]]%lookup_insert_Some.
    - exists (View (epoch s)). split; [done|lia].
    - exists j. split; [done|]. destruct j as [v|]; [|done]. apply (inv_view _ I) in Hj. lia. }
  assert (∀ j, j ≠ View (epoch s) → is_Some (claims s !! j) → cs !! j = claims s !! j) as Hto.
  { intros j Hj Hsome. unfold cs. rewrite lookup_insert_ne, lookup_delete_ne; [done|done|].
    intros <-. rewrite Hf in Hsome. by destruct Hsome. }
  assert (∀ j c, claims s !! j = Some c → ∃ j', cs !! j' = Some c) as Hkept.
  { intros j c Hj. destruct (decide (j = View (epoch s))) as [->|].
    - exists (View (S (epoch s))). assert (c = l) as -> by congruence. apply lookup_insert.
    - exists j. rewrite Hto; eauto. }
  apply inv_claims; try (done || lia).
  - unfold cs. rewrite lookup_insert. eauto.
  - intros v c Hv. destruct (Hfrom _ _ Hv) as ([v0|]&Hv0&?); [|done].
    destruct (inv_view _ I _ _ Hv0) as (?&?&_). split; [lia|]. split; [done|]. exists v0, c. split_and!; [done|lia|done].
  - intros t c Ht. destruct (Hfrom _ _ Ht) as ([|t0]&Ht0&Et); [done|]. cbn in Et. subst t0.
    destruct (inv_dying _ I _ _ Ht0) as (?&?&_). split; [done|]. split; [lia|]. by exists (Dying t), c.
  - intros j c Hj. destruct (Hfrom _ _ Hj) as (j0&Hj0&_). pose proof (parent_below _ _ _ I Hj0).
    destruct (inv_parent _ I _ _ Hj0) as [|Hp]; [by left|right]. rewrite Hto; [done| |done]. injection 1. lia.
  - intros j c n nd Hj Hr Hn Hb. destruct (Hfrom _ _ Hj) as (j0&Hj0&_). pose proof (parent_below _ _ _ I Hj0).
    destruct (inv_birth _ I _ _ _ _ Hj0 Hr Hn Hb) as (p&Hp&?). exists p. split; [|done].
    rewrite Hto; [done| |eauto]. injection 1. lia.
  - intros j c j' c' n nd Hj Hj'. destruct (Hfrom _ _ Hj) as (j0&Hj0&_), (Hfrom _ _ Hj') as (j0'&Hj0'&_).
    by eapply (inv_sibling _ I).
  - intros j c n Hj ?. destruct (Hkept _ _ Hj) as [j' ?]. eauto.
Qed.

Lemma inv_revert s s' v : inv s → apply (Revert v) s = Some s' → inv s'.
Proof.
  intros I. simpl. destruct (v =? epoch s) eqn:Hve; [done|]. apply Nat.eqb_neq in Hve.
  destruct (claims s !! View v) as [g|] eqn:Hg; simpl; [|done].
  destruct (claims s !! View (epoch s)) as [l|] eqn:Hl; simpl; [|done]. intros [= <-].
  pose proof (fresh_view _ I) as Hf. pose proof (fresh_ticket _ I) as Hft. set (cs := <[_ := _]> _).
  pose proof (inv_view _ I _ _ Hg) as (?&_). pose proof (parent_below _ _ _ I Hl).
  assert (∀ j c, cs !! j = Some c →
    (j = View (S (epoch s)) ∧ c = Claim v (root g) []) ∨ (j = Dying (next s) ∧ c = l) ∨
    (j ≠ View (epoch s) ∧ claims s !! j = Some c)) as Hfrom.
  { intros j c [[<- <-]|[_ [[<- <-]|[_ [? Hj]%lookup_delete_Some]]%lookup_insert_Some]]%lookup_insert_Some; naive_solver. }
  assert (∀ j, j ≠ View (epoch s) → is_Some (claims s !! j) → cs !! j = claims s !! j) as Hto.
  { intros j Hj Hsome. unfold cs. rewrite !lookup_insert_ne, lookup_delete_ne; [done|done| |].
    - intros <-. rewrite Hft in Hsome. by destruct Hsome.
    - intros <-. rewrite Hf in Hsome. by destruct Hsome. }
  assert (cs !! Dying (next s) = Some l) as Hdl.
  { unfold cs. rewrite lookup_insert_ne by done. apply lookup_insert. }
  assert (∀ j c, cs !! j = Some c → j ≠ View (S (epoch s)) → ∃ j0, claims s !! j0 = Some c) as Hfrom'.
  { intros j c [[-> _]|[[_ ->]|[_ ?]]]%Hfrom; naive_solver. }
  apply inv_claims; try (done || lia).
  - unfold cs. rewrite lookup_insert. eauto.
  - intros w c [[[= ->] ->]|[[[=] _]|[? Hw]]]%Hfrom.
    + simpl. split; [lia|]. split; [done|]. exists v, g. split_and!; [done|lia|done].
    + destruct (inv_view _ I _ _ Hw) as (?&?&_). split; [lia|]. split; [done|]. eauto.
  - intros t c [[[=] _]|[[[= ->] ->]|[_ Ht]]]%Hfrom.
    + split; [lia|]. split; [lia|]. exists (View (epoch s)), l. split_and!; [done|done|lia].
    + destruct (inv_dying _ I _ _ Ht) as (?&?&_). split; [lia|]. split; [lia|]. by exists (Dying t), c.
  - intros j c Hj. destruct (decide (j = View (S (epoch s)))) as [->|Hne].
    + destruct (Hfrom _ _ Hj) as [[_ ->]|[[[=] _]|[_ Hw]]]; [|congruence]. simpl. right.
      rewrite Hto; [eauto| |eauto]. by injection 1.
    + destruct (Hfrom' _ _ Hj Hne) as (j0&Hj0). pose proof (parent_below _ _ _ I Hj0).
      destruct (inv_parent _ I _ _ Hj0) as [|Hp]; [by left|right]. rewrite Hto; [done| |done]. injection 1. lia.
  - intros j c n nd Hj Hr Hn Hb. destruct (decide (j = View (S (epoch s)))) as [->|Hne].
    + destruct (Hfrom _ _ Hj) as [[_ ->]|[[[=] _]|[_ Hw]]]; [|congruence]. simpl in *. exists g. split; [|done].
      rewrite Hto; [done| |eauto]. by injection 1.
    + destruct (Hfrom' _ _ Hj Hne) as (j0&Hj0). pose proof (parent_below _ _ _ I Hj0).
      destruct (inv_birth _ I _ _ _ _ Hj0 Hr Hn Hb) as (p&Hp&?). exists p. split; [|done].
      rewrite Hto; [done| |eauto]. injection 1. lia.
  - assert (∀ j c n nd, cs !! j = Some c → reaches (nodes s) (root c) n → nodes s !! n = Some nd →
      parent c < birth nd → j ≠ View (S (epoch s))) as Hnew.
    { intros j c n nd Hj Hr Hn Hb ->. destruct (Hfrom _ _ Hj) as [[_ ->]|[[[=] _]|[_ Hw]]]; [|congruence].
      simpl in *. pose proof (view_birth _ _ _ _ _ I Hg Hr Hn). lia. }
    intros j c j' c' n nd Hj Hj' Hr Hr' Hn Hb Hb'.
    destruct (Hfrom' _ _ Hj) as (?&?); [by eapply Hnew|]. destruct (Hfrom' _ _ Hj') as (?&?); [by eapply Hnew|].
    by eapply (inv_sibling _ I).
  - intros j c n Hj ?. destruct (decide (j = View (epoch s))) as [->|].
    + assert (c = l) as -> by congruence. eauto.
    + exists j, c. rewrite Hto; eauto.
Qed.

Lemma inv_delete s s' v : inv s → apply (Delete v) s = Some s' → inv s'.
Proof.
  intros I. simpl. destruct (v =? epoch s) eqn:Hve; [done|]. apply Nat.eqb_neq in Hve.
  destruct (claims s !! View v) as [g|] eqn:Hg; simpl; [|done]. intros [= <-].
  pose proof (fresh_ticket _ I) as Hft. set (cs := <[_ := _]> _). set (P := parent g) in *.
  pose proof (inv_view _ I _ _ Hg) as (Hgv&Hgd&_). fold P in Hgv.
  (* Each claim that there is now, there was, under a parent that is now [P] if it was [v]. *)
  assert (∀ j c, cs !! j = Some c → ∃ j0 c0,
    claims s !! j0 = Some c0 ∧ root c = root c0 ∧ done c = done c0 ∧ parent c = (if parent c0 =? v then P else parent c0) ∧
    ((j = Dying (next s) ∧ j0 = View v) ∨ (j = j0 ∧ j ≠ View v))) as Hfrom.
  { intros j c [[<- <-]|[_ Hj]]%lookup_insert_Some.
    - exists (View v), g. split_and!; try done; [|naive_solver].
      change (parent g) with P. destruct (Nat.eqb_spec P v); [lia|done].
    - apply lookup_fmap_Some in Hj as (c0&<-&[? Hj]%lookup_delete_Some). exists j, c0. split_and!; try done. naive_solver. }
  assert (∀ j c0, claims s !! j = Some c0 → j ≠ View v → cs !! j = Some (reparent v P c0)) as Hto.
  { intros j c0 Hj Hne. unfold cs. rewrite lookup_insert_ne by (intros <-; congruence).
    rewrite lookup_fmap, lookup_delete_ne, Hj by done. done. }
  assert (∀ c0, (if parent c0 =? v then P else parent c0) ≠ v) as Hpv.
  { intros c0. destruct (Nat.eqb_spec (parent c0) v); lia. }
  apply inv_claims; try (done || lia).
  - destruct (inv_live _ I) as [l Hl]. erewrite Hto; [eauto|done|]. by injection 1.
  - intros w c Hw. destruct (Hfrom _ _ Hw) as (j0&c0&Hj0&Hroot&Hdone&Hpar&[[[=] _]|[<- _]]).
    destruct (inv_view _ I _ _ Hj0) as (?&?&_). split; [|split; [congruence|naive_solver]].
    rewrite Hpar. destruct (Nat.eqb_spec (parent c0) v); lia.
  - intros t c Ht. destruct (Hfrom _ _ Ht) as (j0&c0&Hj0&Hroot&Hdone&Hpar&Hj).
    assert (t < S (next s)).
    { destruct Hj as [[[= ->] _]|[<- _]]; [lia|]. apply (inv_dying _ I) in Hj0. lia. }
    pose proof (parent_below _ _ _ I Hj0). split; [done|]. split; [rewrite Hpar; destruct (_ =? _); lia|].
    exists j0, c0. split_and!; [done|done|]. destruct Hj as [[_ ->]|[<- _]]; [|done]. injection 1; intros; lia.
  - intros j c Hj. destruct (Hfrom _ _ Hj) as (j0&c0&Hj0&_&_&->&_).
    assert ((if parent c0 =? v then P else parent c0) = 0 ∨
            is_Some (claims s !! View (if parent c0 =? v then P else parent c0))) as [|[p Hp]]; [|by left|].
    + destruct (Nat.eqb_spec (parent c0) v); [apply (inv_parent _ I _ _ Hg)|apply (inv_parent _ I _ _ Hj0)].
    + right. erewrite Hto; [eauto|done|]. injection 1. apply Hpv.
  - intros j c n nd Hj Hr Hn Hb. destruct (Hfrom _ _ Hj) as (j0&c0&Hj0&Hroot&_&Hpar&_).
    rewrite Hroot in Hr. rewrite Hpar in *.
    assert (∃ p, claims s !! View (if parent c0 =? v then P else parent c0) = Some p ∧
                 reaches (nodes s) (root p) n) as (p&Hp&?).
    { destruct (Nat.eqb_spec (parent c0) v) as [E|]; [|by eapply (inv_birth _ I)].
      destruct (inv_birth _ I _ _ _ _ Hj0 Hr Hn) as (g'&Hg'&?); [lia|]. rewrite E in Hg'.
      assert (g' = g) as -> by congruence. by eapply (inv_birth _ I). }
    exists (reparent v P p). split; [|done]. apply Hto; [done|]. injection 1. apply Hpv.
  - assert (∀ j c n nd, cs !! j = Some c → reaches (nodes s) (root c) n → nodes s !! n = Some nd → parent c < birth nd →
      ∃ j0 c0, claims s !! j0 = Some c0 ∧ parent c = (if parent c0 =? v then P else parent c0) ∧
        parent c0 < birth nd ∧ reaches (nodes s) (root c0) n) as Htop.
    { intros j c n nd Hj Hr Hn Hb. destruct (Hfrom _ _ Hj) as (j0&c0&Hj0&Hroot&_&Hpar&_). rewrite Hroot in Hr.
      destruct (decide (birth nd ≤ parent c0)).
      - destruct (inv_birth _ I _ _ _ _ Hj0 Hr Hn) as (g'&Hg'&?); [lia|].
        destruct (Nat.eqb_spec (parent c0) v) as [E|]; [|lia]. rewrite E in Hg'.
        assert (g' = g) as -> by congruence. exists (View v), g. fold P. rewrite Hpar in *.
        split_and!; [done| |lia|done]. destruct (Nat.eqb_spec P v); lia.
      - exists j0, c0. split_and!; [done|done|lia|done]. }
    intros j c j' c' n nd Hj Hj' Hr Hr' Hn Hb Hb'.
    destruct (Htop _ _ _ _ Hj Hr Hn Hb) as (j0&c0&?&->&?&?), (Htop _ _ _ _ Hj' Hr' Hn Hb') as (j1&c1&?&->&?&?).
    by rewrite (inv_sibling _ I j0 c0 j1 c1 n nd).
  - intros j c n Hj Hc. destruct (decide (j = View v)) as [->|].
    + assert (c = g) as -> by congruence. exists (Dying (next s)), g. split; [apply lookup_insert|done].
    + exists j, (reparent v P c). split; [by apply Hto|done].
Qed.

Lemma inv_crash s s' t ps : inv s → apply (Crash t ps) s = Some s' → inv s'.
Proof.
  intros I. simpl. destruct (claims s !! Dying t) as [c|] eqn:Ht; simpl; [|done].
  destruct (forallb _ _) eqn:Hps; [|done]. intros [= <-]. unfold with_claims. set (cs := <[_ := _]> _).
  assert (∀ p, finished (Claim (parent c) (root c) ps) p → finished c p) as Hfin.
  { unfold finished. simpl. intros p. rewrite !Exists_exists. intros (q&Hq&?). exists q. split; [|done].
    rewrite forallb_forall in Hps. specialize (Hps q). rewrite bool_decide_eq_true in Hps.
    by apply Hps, elem_of_list_In. }
  assert (∀ j c', cs !! j = Some c' → ∃ c0, claims s !! j = Some c0 ∧ parent c' = parent c0 ∧ root c' = root c0 ∧
    (∀ v, j = View v → c' = c0)) as Hfrom.
  { intros j c' [[<- <-]|[_ Hj]]%lookup_insert_Some; [by exists c|by exists c']. }
  assert (∀ v, cs !! View v = claims s !! View v) as Hview by (intros; by apply lookup_insert_ne).
  apply inv_claims; try (done || lia).
  - rewrite Hview. apply (inv_live _ I).
  - intros v c' Hv. rewrite Hview in Hv. destruct (inv_view _ I _ _ Hv) as (?&?&_). naive_solver.
  - intros t' c' Ht'. destruct (Hfrom _ _ Ht') as (c0&Hc0&Hp&Hr0&_). rewrite ?Hp, ?Hr0.
    destruct (inv_dying _ I _ _ Hc0) as (?&?&_). split_and!; try done. by exists (Dying t'), c0.
  - intros j c' Hj. destruct (Hfrom _ _ Hj) as (c0&Hc0&Hp&Hr0&_). rewrite ?Hp, ?Hr0. rewrite Hview. by apply (inv_parent _ I j).
  - intros j c' n nd Hj. destruct (Hfrom _ _ Hj) as (c0&Hc0&Hp&Hr0&_). rewrite ?Hp, ?Hr0. rewrite Hview. by apply (inv_birth _ I j).
  - intros j c' j' c'' n nd Hj Hj'. destruct (Hfrom _ _ Hj) as (c0&Hc0&Hp&Hr0&_), (Hfrom _ _ Hj') as (c1&Hc1&Hp'&Hr1&_). rewrite Hp, Hp', Hr0, Hr1.
    by apply (inv_sibling _ I j _ j').
  - intros j c' n Hj [Hr (nd&Hn&Hnot)]. destruct (decide (j = Dying t)) as [->|].
    + assert (c' = c) as -> by congruence. eexists (Dying t), _. split; [apply lookup_insert|].
      split; [done|]. exists nd. split; [done|]. by intros ?%Hfin.
    + exists j, c'. split; [unfold cs; by rewrite lookup_insert_ne|]. split; [done|]. by exists nd.
Qed.
