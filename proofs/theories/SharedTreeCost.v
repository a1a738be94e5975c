(** What a write, a read and a snapshot cost in device I/Os. *)
From LogDisk Require Export SharedTreeLookup.

(** The nodes that a walk down the path reads, the chunk at its end included; none is assumed to be cached. *)
Fixpoint path_nodes (h : heap) (n : id) (p : path) : list id :=
  match h !! n with
  | None => []
  | Some nd => n :: match p with
                    | [] => []
                    | d :: q => match kids nd !! d with Some m => path_nodes h m q | None => [] end
                    end
  end.

(** Device I/Os before the answer: nodes read, nodes written, records appended to the log. A write changes
nodes in memory; the copies it makes, at most its path, are written by the next checkpoint. *)
Record cost := Cost { node_reads : nat; node_writes : nat; appends : nat }.

Definition depth (s : state) (v : nat) (k : path) : nat :=
  match claims s !! View v with Some c => length (path_nodes (nodes s) (root c) k) | None => 0 end.

Definition read_cost (s : state) (v : nat) (k : path) : cost := Cost (depth s v k) 0 0.
Definition write_cost (s : state) (k : path) : cost := Cost (depth s (epoch s) k) 0 1.

(** * How much it is *)

Lemma path_nodes_found h p : ∀ n m, descend h n p = Some m → length (path_nodes h n p) = S (length p).
Proof. induction p as [|d q IH]; intros n m; simpl; destruct (h !! n) as [nd|]; simpl; [done..| |done].
  destruct (kids nd !! d) as [i|]; simpl; [|done]. intros Hm. by rewrite (IH _ _ Hm). Qed.

Lemma descend_here h n : is_Some (h !! n) ↔ is_Some (descend h n []).
Proof. simpl. destruct (h !! n); simpl; split; intros [? ?]; eauto; done. Qed.

(** It is the number of nodes on the path that there are. *)
Lemma path_nodes_shape h h' p : ∀ n n',
  (∀ q, q `prefix_of` p → is_Some (descend h n q) ↔ is_Some (descend h' n' q)) →
  length (path_nodes h n p) = length (path_nodes h' n' p).
Proof.
  induction p as [|d q IH]; intros n n' Hshape.
  - specialize (Hshape [] ltac:(done)). rewrite <- !descend_here in Hshape. simpl.
    destruct (h !! n), (h' !! n'); try done; exfalso; destruct Hshape as [H1 H2]; [destruct H1|destruct H2];
      eauto; done.
  - pose proof (Hshape [] ltac:(apply prefix_nil)) as Hr. rewrite <- !descend_here in Hr.
    assert (∀ q', q' `prefix_of` q → is_Some (descend h n (d :: q')) ↔
      is_Some (descend h' n' (d :: q'))) as Hsub
      by (intros; by apply Hshape, prefix_cons).
    simpl in Hsub |- *. destruct (h !! n) as [nd|], (h' !! n') as [nd'|]; simpl in *; [|exfalso..|done].
    + destruct (kids nd !! d) as [m|], (kids nd' !! d) as [m'|]; simpl in *.
      * f_equal. by apply IH.
      * f_equal. specialize (Hsub [] ltac:(apply prefix_nil)). rewrite <- descend_here in Hsub.
        destruct q; simpl; destruct (h !! m); try done; destruct Hsub as [[? ?] _]; eauto; done.
      * f_equal. specialize (Hsub [] ltac:(apply prefix_nil)). rewrite <- descend_here in Hsub.
        destruct q; simpl; destruct (h' !! m'); try done; destruct Hsub as [_ [? ?]]; eauto; done.
      * done.
    + destruct Hr as [[? ?] _]; [eauto|done].
    + destruct Hr as [_ [? ?]]; [eauto|done].
Qed.

(** The path of a mapped block, in any view of any state. *)
Lemma depth_mapped s v k x : read s v k = Some x → depth s v k = S (length k).
Proof. unfold read, depth. destruct (claims s !! View v) as [c|]; simpl; [|done].
  destruct (descend (nodes s) (root c) k) as [m|] eqn:Hm; simpl; [|done]. intros _.
  by erewrite path_nodes_found. Qed.

(** * Whatever snapshots there are *)

Definition shape (s : state) (q : path) : Prop :=
  ∃ c, claims s !! View (epoch s) = Some c ∧ is_Some (descend (nodes s) (root c) q).

Lemma shape_updated s s' k x q : inv s → length k = height s → length q ≤ height s → update k x s = Some s' →
  shape s' q ↔ if decide (q `prefix_of` k) then q ≠ k ∨ is_Some x else shape s q.
Proof.
  intros I Hk Hq Hu. destruct (update_spec _ _ _ _ I Hk Hu) as (c&r&dr&U).
    pose proof (upd_put _ _ _ _ _ _ _ U) as P.
  assert (epoch s' = epoch s) as He by (by rewrite (upd_state _ _ _ _ _ _ _ U)).
  assert (shape s' q ↔ is_Some (descend_from (nodes s') (Some r) q)) as ->.
  { unfold shape. rewrite He, (updated_live U). unfold descend_from. simpl. split;
    [by intros (?&[= <-]&?)|eauto]. }
  destruct (decide (q `prefix_of` k)) as [Hpre|Hoff].
  - destruct (decide (q = k)) as [->|Hne].
    + rewrite <- (put_here _ _ _ _ _ _ _ _ _ _ _ _ P). split.
      * intros [n Hn]. right. rewrite Hn. simpl. destruct (descend_exists _ _ _ _ Hn) as [nd ->]. simpl.
        eauto.
      * intros [?|[y Hy]]; [done|]. destruct (descend_from _ _ _); [eauto|done].
    + split; [by left|]. intros _. by apply (put_inner _ _ _ _ _ _ _ _ _ _ _ _ P).
  - rewrite (put_off_path _ _ _ _ _ _ _ _ _ _ _ _ P) by done. unfold shape.
    rewrite (upd_live _ _ _ _ _ _ _ U).
    unfold descend_from. simpl. split; [eauto|by intros (?&[= <-]&?)].
Qed.

(** The part of a history that writes. *)
Definition writes (a : action) : bool := match a with Write _ _ | Unmap _ => true | _ => false end.
Definition no_revert (a : action) : bool := match a with Revert _ => false | _ => true end.

Lemma quiet_step s s' a : inv s → apply a s = Some s' → writes a = false → no_revert a = true →
  height s' = height s ∧ (∀ q, shape s' q ↔ shape s q) ∧ ∀ k, read s' (epoch s') k = read s (epoch s) k.
Proof.
  intros I Ha Hw Hr.
  assert (height s' = height s → nodes s' = nodes s →
    (∀ c, claims s !! View (epoch s) = Some c → ∃ c', claims s' !! View (epoch s') = Some c' ∧
      root c' = root c) →
    height s' = height s ∧ (∀ q, shape s' q ↔ shape s q) ∧
      ∀ k, read s' (epoch s') k = read s (epoch s) k) as Hsame.
  { intros Hh Hn Hc. destruct (inv_live I) as [c Hl]. destruct (Hc _ Hl) as (c'&Hl'&Hroot). split;
    [done|]. split.
    - intros q. unfold shape. rewrite Hl, Hl', Hn. split; intros (c0&[= <-]&?); eexists; (split; [done|]);
      congruence.
    - intros k. unfold read. rewrite Hl, Hl', Hn. simpl. by rewrite Hroot. }
  destruct a as [k x|k| |v|v| |t n|t ps]; try done; simpl in Ha;
    try (invert_apply; apply Hsame; try done; intros c1 Hc; simpl).
  - rewrite lookup_insert. eexists. split; [done|]. simpl. congruence.
  - rewrite lookup_insert_ne, lookup_fmap, lookup_delete_ne, Hc by congruence. simpl. eauto.
  - rewrite lookup_insert. eexists. split; [done|]. congruence.
  - destruct (inv_live I) as [c Hl]. destruct (reclaim_same _ _ _ _ I Ha) as ([= Hh _ He]&_).
    destruct (reclaim_spares_views _ _ _ _ _ _ I Ha Hl) as (Hv&Hd&_). rewrite He. split; [done|].
    split; [|intros; by apply (read_reclaim s s' t n)]. intros q. unfold shape. rewrite He, Hv, Hl.
    split; intros (c1&[= <-]&?); exists c; (split; [done|]); [by rewrite <- Hd|by rewrite Hd].
  - rewrite lookup_insert_ne by done. eauto.
Qed.

Definition alike (s s' : state) : Prop :=
  height s = height s' ∧ (∀ q, length q ≤ height s → shape s q ↔ shape s' q) ∧
  ∀ k, length k = height s → read s (epoch s) k = read s' (epoch s') k.

Lemma alike_update s1 s2 s1' k x : inv s1 → inv s2 → alike s1 s2 → length k = height s1 →
  update k x s1 = Some s1' →
  ∃ s2', update k x s2 = Some s2' ∧ alike s1' s2'.
Proof.
  intros I1 I2 (Hh&Hshape&Hread) Hk Hu1. assert (∃ s2', update k x s2 = Some s2') as [s2' Hu2].
  { unfold update, update_since. destruct (inv_live I2) as [c ->]. simpl.
    destruct (put _ _ _ _ _ _ _ _) as [[? ?] ?]. eauto. }
  exists s2'. split; [done|]. assert (length k = height s2) as Hk2 by congruence.
  destruct (update_spec _ _ _ _ I1 Hk Hu1) as (c1&r1&dr1&U1),
    (update_spec _ _ _ _ I2 Hk2 Hu2) as (c2&r2&dr2&U2).
  assert (height s1' = height s1 ∧ epoch s1' = epoch s1) as [Hh1 He1]
    by (by rewrite (upd_state _ _ _ _ _ _ _ U1)).
  assert (height s2' = height s2 ∧ epoch s2' = epoch s2) as [Hh2 He2]
    by (by rewrite (upd_state _ _ _ _ _ _ _ U2)).
  split_and!; rewrite ?Hh1, ?Hh2, ?He1, ?He2; [done| |].
  - intros q Hq. rewrite (shape_updated _ _ _ _ _ I1 Hk Hq Hu1). assert (length q ≤ height s2) as Hq2 by lia.
    rewrite (shape_updated _ _ _ _ _ I2 Hk2 Hq2 Hu2). destruct (decide _); [done|]. by apply Hshape.
  - intros k' Hk'. rewrite (read_updated I1 U1), (read_updated I2 U2) by congruence.
    destruct (decide _); [done|]. by apply Hread.
Qed.

Lemma alike_run history : ∀ s1 s2 s1', inv s1 → inv s2 → alike s1 s2 →
  Forall (λ a, no_revert a = true) history →
  run s1 history = Some s1' → ∃ s2', run s2 (filter (λ a, writes a = true) history) = Some s2' ∧
    alike s1' s2'.
Proof.
  induction history as [|a history IH]; intros s1 s2 s1' I1 I2 Ha Hall; simpl; [intros [= <-]; eauto|].
  apply Forall_cons in Hall as [Hnr Hall]. destruct (apply a s1) as [s1a|] eqn:Hs1; simpl;
    [|done]. intros Hrun.
  pose proof (inv_step _ _ _ I1 Hs1) as I1a. destruct (writes a) eqn:Hw.
  - rewrite filter_cons_True by done. assert (∃ s2a, apply a s2 = Some s2a ∧ alike s1a s2a) as (s2a&Hs2&Ha').
    { pose proof Ha as (Hh&Hshape&Hread). destruct a as [k x|k| | | | | | ]; try done; revert Hs1; simpl;
      rewrite <- Hh;
        destruct (Nat.eqb_spec (length k) (height s1)) as [Hk|]; try done; [by eapply alike_update|].
      rewrite <- Hread by done. destruct (read s1 (epoch s1) k); [by eapply alike_update|]. intros [= <-].
        eauto. }
    simpl. rewrite Hs2. simpl. apply (IH s1a s2a s1'); [done|by apply (inv_step s2 _ a)|done|done|done].
  - rewrite filter_cons_False by congruence. eapply (IH s1a s2); [done|done| |done|done].
    destruct (quiet_step _ _ _ I1 Hs1 Hw Hnr) as (Hh&Hshape&Hread). destruct Ha as (Hh'&Hshape'&Hread').
    split_and!; rewrite ?Hh; [done| |].
    + intros q Hq. rewrite Hshape. by apply Hshape'.
    + intros k Hk. rewrite Hread. by apply Hread'.
Qed.

Lemma depth_alike s1 s2 k : inv s1 → inv s2 → alike s1 s2 → length k = height s1 →
  depth s1 (epoch s1) k = depth s2 (epoch s2) k.
Proof.
  intros I1 I2 (Hh&Hshape&_) Hk. unfold depth. destruct (inv_live I1) as [c1 Hl1], (inv_live I2) as [c2 Hl2].
  rewrite Hl1, Hl2. apply path_nodes_shape. intros q [l Hq].
  assert (length q ≤ height s1) as Hlen by (rewrite <- Hk, Hq, app_length; lia). specialize (Hshape q Hlen).
  unfold shape in Hshape. rewrite Hl1, Hl2 in Hshape. split; intros Hsome.
  - destruct Hshape as [Hs _]. destruct Hs as (?&[= <-]&?); [eauto|done].
  - destruct Hshape as [_ Hs]. destruct Hs as (?&[= <-]&?); [eauto|done].
Qed.

Lemma cost_ignores_snapshots levels history s k : run (create levels) history = Some s →
  Forall (λ a, no_revert a = true) history → length k = height s →
  ∃ s0, run (create levels) (filter (λ a, writes a = true) history) = Some s0 ∧
    write_cost s k = write_cost s0 k ∧ read_cost s (epoch s) k = read_cost s0 (epoch s0) k.
Proof.
  intros Hrun Hall Hk. pose proof (inv_create levels) as I0.
  assert (alike (create levels) (create levels)) as Ha by done.
  destruct (alike_run history _ _ _ I0 I0 Ha Hall Hrun) as (s0&Hrun0&Ha0). exists s0. split; [done|].
  pose proof (inv_run _ _ _ I0 Hrun) as I. pose proof (inv_run _ _ _ I0 Hrun0) as Is0.
  unfold write_cost, read_cost. by rewrite (depth_alike _ _ _ I Is0 Ha0 Hk).
Qed.
