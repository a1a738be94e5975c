(** What a write, a read and a snapshot cost in device I/Os. *)
From LogDisk Require Import SharedTree SharedTreePaths SharedTreeUpdate SharedTreeInvariant SharedTreeWrite
  SharedTreeReclaim SharedTreeDeletion SharedTreeLookup.

(** The nodes that a walk down the path reads, the chunk at its end included; none is assumed to be cached. *)
Fixpoint path_nodes (h : heap) (n : id) (p : path) : list id :=
  match h !! n with
  | None => []
  | Some nd => n :: match p with
                    | [] => []
                    | d :: q => match kids nd !! d with Some m => path_nodes h m q | None => [] end
                    end
  end.

(** Device I/Os before the answer: nodes read, nodes written, records appended to the log.  A write changes nodes in
    memory; the copies it makes are written by the next checkpoint, and counted below ([update_copies]). *)
Record cost := Cost { node_reads : nat; node_writes : nat; appends : nat }.

Definition depth (s : state) (v : nat) (k : path) : nat :=
  match claims s !! View v with Some c => length (path_nodes (nodes s) (root c) k) | None => 0 end.

Definition read_cost (s : state) (v : nat) (k : path) : cost := Cost (depth s v k) 0 0.
Definition write_cost (s : state) (k : path) : cost := Cost (depth s (epoch s) k) 0 1.

(** * The accounts are complete *)

(** A lookup depends on no node but those of its path. *)
Lemma path_nodes_local h h' p : ∀ n, (∀ m, m ∈ path_nodes h n p → h' !! m = h !! m) → is_Some (h !! n) →
  (∀ m nd d i, m ∈ path_nodes h n p → h !! m = Some nd → kids nd !! d = Some i → is_Some (h !! i)) →
  path_nodes h' n p = path_nodes h n p ∧ descend h' n p = descend h n p.
Proof.
  induction p as [|d q IH]; intros n Hsame [nd Hn] Hclosed; simpl in *; rewrite Hn in *.
  - rewrite (Hsame n), Hn by (by left). done.
  - assert (h' !! n = Some nd) as Hn' by (rewrite <- Hn; apply Hsame; by left). rewrite Hn'. simpl.
    destruct (kids nd !! d) as [m|] eqn:Hd; simpl; [|done].
    destruct (IH m) as [-> ->]; [| |intros ? ? ? ? ?; eapply Hclosed; by right|done].
    + intros i Hi. apply Hsame. by right.
    + eapply (Hclosed n); [by left|done..].
Qed.

(** So does an update: on two heaps that agree on the path it takes the same numbers and writes the same nodes. *)
Lemma put_local since e nx h1 h2 x k : ∀ n pl, is_Some (h1 !! n) →
  (∀ m, m ∈ path_nodes h1 n k → h2 !! m = h1 !! m) →
  (∀ m nd d i, m ∈ path_nodes h1 n k → h1 !! m = Some nd → kids nd !! d = Some i → is_Some (h1 !! i)) →
  let '(h1', o1, d1) := put since e nx h1 (Some n) pl k x in
  let '(h2', o2, d2) := put since e nx h2 (Some n) pl k x in
  o1 = o2 ∧ d1 = d2 ∧ ∀ i, (h1' !! i = h1 !! i ∧ h2' !! i = h2 !! i) ∨ h1' !! i = h2' !! i.
Proof.
  assert (∀ k nx o pl, (o = None ∨ ∃ n, o = Some n ∧ is_Some (h1 !! n) ∧
      (∀ m, m ∈ path_nodes h1 n k → h2 !! m = h1 !! m) ∧
      (∀ m nd d i, m ∈ path_nodes h1 n k → h1 !! m = Some nd → kids nd !! d = Some i → is_Some (h1 !! i))) →
    let '(h1', o1, d1) := put since e nx h1 o pl k x in
    let '(h2', o2, d2) := put since e nx h2 o pl k x in
    o1 = o2 ∧ d1 = d2 ∧ ∀ i, (h1' !! i = h1 !! i ∧ h2' !! i = h2 !! i) ∨ h1' !! i = h2' !! i) as Hput.
  { clear k nx. intros k. induction k as [|d k IH]; intros nx o pl Ho.
    - assert (o ≫= (h2 !!.) = o ≫= (h1 !!.)) as Hold.
      { destruct Ho as [->|(n&->&[nd Hn]&Hsame&_)]; [done|]. simpl. apply Hsame. simpl. rewrite Hn. by left. }
      cbn [put]. unfold target, owned. rewrite Hold. destruct x as [v|]; (split_and!; [done|done|]); intros i;
        match goal with |- context [if ?b then ?a else ?c] => set (n := if b then a else c) end;
        destruct (decide (i = n)) as [->|].
      + right. by rewrite !lookup_insert.
      + left. by rewrite !lookup_insert_ne.
      + right. by rewrite !lookup_delete.
      + left. by rewrite !lookup_delete_ne.
    - assert (o ≫= (h2 !!.) = o ≫= (h1 !!.)) as Hold.
      { destruct Ho as [->|(n&->&[nd Hn]&Hsame&_)]; [done|]. simpl. apply Hsame. simpl. rewrite Hn. by left. }
      cbn [put]. assert (kids_of h2 o = kids_of h1 o) as -> by (unfold kids_of; by rewrite Hold).
      unfold target, owned. rewrite Hold. specialize (IH (S nx) (kids_of h1 o !! d) (pl ++ [d])).
      destruct (put since e (S nx) h1 _ _ k x) as [[h1' o1] d1], (put since e (S nx) h2 _ _ k x) as [[h2' o2] d2].
      destruct IH as (->&->&Hsame).
      { destruct (kids_of h1 o !! d) as [m|] eqn:Hd; [right|by left]. exists m. split; [done|].
        unfold kids_of in Hd. destruct Ho as [->|(n&->&[nd Hn]&Hsame&Hclosed)]; simpl in Hd; [by rewrite lookup_empty in Hd|].
        rewrite Hn in Hd. simpl in Hd. simpl in Hsame, Hclosed. rewrite Hn, Hd in *. split_and!.
        - eapply (Hclosed n); [by left|done..].
        - intros i Hi. apply Hsame. by right.
        - intros i nd' d' i' Hi. apply Hclosed. by right. }
      split_and!; [done|done|]. intros i. match goal with |- context [if ?b then ?a else ?c] => set (n := if b then a else c) end.
      destruct (decide (i = n)) as [->|].
      + right. by rewrite !lookup_insert.
      + rewrite !lookup_insert_ne by done. apply Hsame. }
  intros n pl Hn Hsame Hclosed. apply Hput. right. by exists n.
Qed.

(** * How much it is *)

Lemma path_nodes_length h p : ∀ n, length (path_nodes h n p) ≤ S (length p).
Proof.
  induction p as [|d q IH]; intros n; simpl; destruct (h !! n) as [nd|]; simpl; try lia.
  destruct (kids nd !! d) as [m|]; simpl; [|lia]. specialize (IH m). lia.
Qed.

Lemma path_nodes_found h p : ∀ n m, descend h n p = Some m → length (path_nodes h n p) = S (length p).
Proof.
  induction p as [|d q IH]; intros n m; simpl; destruct (h !! n) as [nd|]; simpl; [done..| |done].
  destruct (kids nd !! d) as [i|]; simpl; [|done]. intros Hm. by rewrite (IH _ _ Hm).
Qed.

Lemma descend_here h n : is_Some (h !! n) ↔ is_Some (descend h n []).
Proof. simpl. destruct (h !! n); simpl; split; intros [? ?]; eauto; done. Qed.

(** It is the number of nodes on the path that there are. *)
Lemma path_nodes_shape h h' p : ∀ n n',
  (∀ q, q `prefix_of` p → is_Some (descend h n q) ↔ is_Some (descend h' n' q)) →
  length (path_nodes h n p) = length (path_nodes h' n' p).
Proof.
  induction p as [|d q IH]; intros n n' Hshape.
  - specialize (Hshape [] ltac:(done)). rewrite <- !descend_here in Hshape. simpl.
    destruct (h !! n), (h' !! n'); try done; exfalso; destruct Hshape as [H1 H2]; [destruct H1|destruct H2]; eauto; done.
  - pose proof (Hshape [] ltac:(apply prefix_nil)) as Hr. rewrite <- !descend_here in Hr.
    assert (∀ q', q' `prefix_of` q → is_Some (descend h n (d :: q')) ↔ is_Some (descend h' n' (d :: q'))) as Hsub
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

(** A read of a mapped block, in any view of any state. *)
Lemma read_cost_mapped s v k x : inv s → read s v k = Some x → read_cost s v k = Cost (S (length k)) 0 0.
Proof.
  intros I. unfold read, read_cost, depth. destruct (claims s !! View v) as [c|]; simpl; [|done].
  destruct (descend (nodes s) (root c) k) as [m|] eqn:Hm; simpl; [|done]. intros _. by erewrite path_nodes_found.
Qed.

Lemma write_cost_mapped s k x : inv s → read s (epoch s) k = Some x → write_cost s k = Cost (S (length k)) 0 1.
Proof.
  intros I Hr. pose proof (read_cost_mapped _ _ _ _ I Hr) as [= Hd]. unfold write_cost. by rewrite Hd.
Qed.

Lemma cost_bound s v k : depth s v k ≤ S (length k).
Proof. unfold depth. destruct (claims s !! View v); [apply path_nodes_length|lia]. Qed.

(** A snapshot writes its record and nothing else, not even at the checkpoint. *)
Lemma snapshot_touches_nothing s s' : apply Snapshot s = Some s' → nodes s' = nodes s ∧ next s' = next s.
Proof. simpl. destruct (claims s !! View (epoch s)); simpl; [|done]. by intros [= <-]. Qed.

(** * Whatever snapshots there are *)

Definition shape (s : state) (q : path) : Prop :=
  ∃ c, claims s !! View (epoch s) = Some c ∧ is_Some (descend (nodes s) (root c) q).

Lemma shape_updated s s' k x q : inv s → length k = height s → length q ≤ height s → update k x s = Some s' →
  shape s' q ↔ if decide (q `prefix_of` k) then q ≠ k ∨ is_Some x else shape s q.
Proof.
  intros I Hk Hq Hu. destruct (update_spec _ _ _ _ I Hk Hu) as (c&r&dr&U). pose proof (upd_put _ _ _ _ _ _ _ U) as P.
  assert (epoch s' = epoch s) as He by (by rewrite (upd_state _ _ _ _ _ _ _ U)).
  assert (shape s' q ↔ is_Some (descend_from (nodes s') (Some r) q)) as ->.
  { unfold shape. rewrite He, (updated_live U). unfold descend_from. simpl. split; [by intros (?&[= <-]&?)|eauto]. }
  destruct (decide (q `prefix_of` k)) as [Hpre|Hoff].
  - destruct (decide (q = k)) as [->|Hne].
    + rewrite <- (put_here _ _ _ _ _ _ _ _ _ _ _ _ P). split.
      * intros [n Hn]. right. rewrite Hn. simpl. destruct (descend_exists _ _ _ _ Hn) as [nd ->]. simpl. eauto.
      * intros [?|[y Hy]]; [done|]. destruct (descend_from _ _ _); [eauto|done].
    + split; [by left|]. intros _. by apply (put_inner _ _ _ _ _ _ _ _ _ _ _ _ P).
  - rewrite (put_off_path _ _ _ _ _ _ _ _ _ _ _ _ P) by done. unfold shape. rewrite (upd_live _ _ _ _ _ _ _ U).
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
    (∀ c, claims s !! View (epoch s) = Some c → ∃ c', claims s' !! View (epoch s') = Some c' ∧ root c' = root c) →
    height s' = height s ∧ (∀ q, shape s' q ↔ shape s q) ∧ ∀ k, read s' (epoch s') k = read s (epoch s) k) as Hsame.
  { intros Hh Hn Hc. destruct (inv_live _ I) as [c Hl]. destruct (Hc _ Hl) as (c'&Hl'&Hroot). split; [done|]. split.
    - intros q. unfold shape. rewrite Hl, Hl', Hn. split; intros (c0&[= <-]&?); eexists; (split; [done|]); congruence.
    - intros k. unfold read. rewrite Hl, Hl', Hn. simpl. by rewrite Hroot. }
  destruct a as [k x|k| |v|v| |t n|t ps]; try done; simpl in Ha.
  - destruct (claims s !! View (epoch s)) as [l|] eqn:Hl; simpl in Ha; [|done]. injection Ha as <-. apply Hsame; try done.
    intros c [= <-]. simpl. rewrite lookup_insert. eauto.
  - destruct (Nat.eqb_spec v (epoch s)) as [|Hv]; [done|]. destruct (claims s !! View v); simpl in Ha; [|done]. injection Ha as <-.
    apply Hsame; try done. intros c1 Hc. simpl. rewrite lookup_insert_ne, lookup_fmap, lookup_delete_ne, Hc by congruence.
    simpl. eauto.
  - destruct (claims s !! View (epoch s)) as [l|] eqn:Hl; simpl in Ha; [|done]. injection Ha as <-. apply Hsame; try done.
    intros c [= <-]. simpl. rewrite lookup_insert. eauto.
  - destruct (inv_live _ I) as [c Hl].
    destruct (reads_as_reclaim _ _ _ _ (epoch s) I Ha) as (_&_&Hread); [eauto|].
    destruct (reclaim_cases _ _ _ _ I Ha) as (c0&Ht&[[_ ->]|(nd&Hn&[Hreach Hh]&[[_ ->]|(Htest&_&->)])]).
    + apply Hsame; try done. intros c1 Hc1. simpl. rewrite lookup_delete_ne by done. eauto.
    + apply Hsame; try done. intros c1 Hc1. simpl. rewrite lookup_insert_ne by done. eauto.
    + split; [done|]. split; [|done]. rewrite (reclaim_test _ _ _ _ _ I Ht Hreach Hn) in Htest.
      intros q. unfold shape. simpl. rewrite lookup_insert_ne by done. rewrite Hl.
      split; intros (c1&[= <-]&m&Hm); eexists; (split; [done|]); exists m.
      * by eapply descend_delete_inv.
      * apply descend_delete; [done|]. intros p1 p2 -> Hp1. eapply (Htest (View (epoch s))); [done..|].
        eapply view_holds; [done..|]. by exists p1.
  - destruct (claims s !! Dying t); simpl in Ha; [|done]. destruct (forallb _ _); [|done]. injection Ha as <-.
    apply Hsame; try done. intros c1 Hc. simpl. rewrite lookup_insert_ne by done. eauto.
Qed.

Definition alike (s s' : state) : Prop :=
  height s = height s' ∧ (∀ q, length q ≤ height s → shape s q ↔ shape s' q) ∧
  ∀ k, length k = height s → read s (epoch s) k = read s' (epoch s') k.

Lemma alike_update s1 s2 s1' k x : inv s1 → inv s2 → alike s1 s2 → length k = height s1 → update k x s1 = Some s1' →
  ∃ s2', update k x s2 = Some s2' ∧ alike s1' s2'.
Proof.
  intros I1 I2 (Hh&Hshape&Hread) Hk Hu1.
  assert (∃ s2', update k x s2 = Some s2') as [s2' Hu2].
  { unfold update, update_since. destruct (inv_live _ I2) as [c ->]. simpl.
    destruct (put _ _ _ _ _ _ _ _) as [[? ?] ?]. eauto. }
  exists s2'. split; [done|]. assert (length k = height s2) as Hk2 by congruence.
  destruct (update_spec _ _ _ _ I1 Hk Hu1) as (c1&r1&dr1&U1), (update_spec _ _ _ _ I2 Hk2 Hu2) as (c2&r2&dr2&U2).
  assert (height s1' = height s1 ∧ epoch s1' = epoch s1) as [Hh1 He1] by (by rewrite (upd_state _ _ _ _ _ _ _ U1)).
  assert (height s2' = height s2 ∧ epoch s2' = epoch s2) as [Hh2 He2] by (by rewrite (upd_state _ _ _ _ _ _ _ U2)).
  split_and!; rewrite ?Hh1, ?Hh2, ?He1, ?He2; [done| |].
  - intros q Hq. rewrite (shape_updated _ _ _ _ _ I1 Hk Hq Hu1).
    assert (length q ≤ height s2) as Hq2 by lia. rewrite (shape_updated _ _ _ _ _ I2 Hk2 Hq2 Hu2). destruct (decide _); [done|]. by apply Hshape.
  - intros k' Hk'. rewrite (read_updated I1 U1), (read_updated I2 U2) by congruence. destruct (decide _); [done|]. by apply Hread.
Qed.

Lemma alike_run history : ∀ s1 s2 s1', inv s1 → inv s2 → alike s1 s2 → Forall (λ a, no_revert a = true) history →
  run s1 history = Some s1' → ∃ s2', run s2 (filter (λ a, writes a = true) history) = Some s2' ∧ alike s1' s2'.
Proof.
  induction history as [|a history IH]; intros s1 s2 s1' I1 I2 Ha Hall; simpl; [intros [= <-]; eauto|].
  apply Forall_cons in Hall as [Hnr Hall]. destruct (apply a s1) as [s1a|] eqn:Hs1; simpl; [|done]. intros Hrun.
  pose proof (inv_step _ _ _ I1 Hs1) as I1a. destruct (writes a) eqn:Hw.
  - rewrite filter_cons_True by done.
    assert (∃ s2a, apply a s2 = Some s2a ∧ alike s1a s2a) as (s2a&Hs2&Ha').
    { pose proof Ha as (Hh&Hshape&Hread). destruct a as [k x|k| | | | | | ]; try done; revert Hs1; simpl; rewrite <- Hh;
        destruct (Nat.eqb_spec (length k) (height s1)) as [Hk|]; try done; [by eapply alike_update|].
      rewrite <- Hread by done. destruct (read s1 (epoch s1) k); [by eapply alike_update|]. intros [= <-]. eauto. }
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
  intros I1 I2 (Hh&Hshape&_) Hk. unfold depth. destruct (inv_live _ I1) as [c1 Hl1], (inv_live _ I2) as [c2 Hl2].
  rewrite Hl1, Hl2. apply path_nodes_shape. intros q [l Hq].
  assert (length q ≤ height s1) as Hlen by (rewrite <- Hk, Hq, app_length; lia). specialize (Hshape q Hlen).
  unfold shape in Hshape. rewrite Hl1, Hl2 in Hshape. split; intros Hsome.
  - destruct Hshape as [Hs _]. destruct Hs as (?&[= <-]&?); [eauto|done].
  - destruct Hshape as [_ Hs]. destruct Hs as (?&[= <-]&?); [eauto|done].
Qed.

(** * What a checkpoint has to write *)

(** An update copies at most the path, and only what live does not own. *)
Lemma update_copies s s' k x n : inv s → length k = height s → update k x s = Some s' →
  is_Some (nodes s' !! n) → nodes s !! n = None → ∃ i, i ≤ length k ∧ n = next s + i.
Proof.
  intros I Hk Hu Hn Hold. destruct (update_spec _ _ _ _ I Hk Hu) as (c&r&dr&U). pose proof (upd_put _ _ _ _ _ _ _ U) as P.
  destruct (put_frame _ _ _ _ _ _ _ _ _ _ _ _ P n) as [Hs|(q&Hq&[->|(nd&Hnd&_)]&_)]; [|exists (length q)|congruence].
  - rewrite Hs, Hold in Hn. by destruct Hn.
  - split; [by apply prefix_length|done].
Qed.

(** A second write of a block in the same epoch copies nothing. *)
Lemma second_write_copies_nothing s s1 s2 k x y n : inv s → length k = height s →
  update k (Some x) s = Some s1 → update k (Some y) s1 = Some s2 → is_Some (nodes s2 !! n) → is_Some (nodes s1 !! n).
Proof.
  intros I Hk Hu1 Hu2 Hn. pose proof (inv_update _ _ _ _ I Hk Hu1) as I1.
  destruct (update_spec _ _ _ _ I Hk Hu1) as (c&r&dr&U). pose proof (upd_put _ _ _ _ _ _ _ U) as P.
  assert (height s1 = height s ∧ epoch s1 = epoch s) as [Hh He] by (by rewrite (upd_state _ _ _ _ _ _ _ U)).
  assert (length k = height s1) as Hk1 by congruence.
  destruct (update_spec _ _ _ _ I1 Hk1 Hu2) as (c1&r1&dr1&U1). pose proof (upd_put _ _ _ _ _ _ _ U1) as P1.
  assert (c1 = Claim (parent c) r []) as ->.
  { pose proof (upd_live _ _ _ _ _ _ _ U1) as Hl. rewrite He, (updated_live U) in Hl. congruence. }
  destruct (decide (next s1 ≤ n)) as [Hge|Hlt].
  - exfalso. destruct (put_fresh _ _ _ _ _ _ _ _ _ _ _ _ P1 n Hge Hn) as [q Hq].
    assert (∃ m, descend_from (nodes s1) (Some r) q = Some m ∧ (descend_from (nodes s1) (Some r) q = Some n ∨
      q `prefix_of` k ∧ owned (pred (epoch s1)) (nodes s1) (Some m) = false)) as (m&Hm&Hm').
    { destruct (decide (q `prefix_of` k)) as [Hpre|Hoff].
      - assert (is_Some (descend_from (nodes s1) (Some r) q)) as [m Hm].
        { destruct (decide (q = k)) as [->|]; [|by apply (put_inner _ _ _ _ _ _ _ _ _ _ _ _ P)].
          pose proof (put_here _ _ _ _ _ _ _ _ _ _ _ _ P) as Hh'. destruct (descend_from (nodes s1) (Some r) k); [eauto|done]. }
        exists m. split; [done|].
        destruct (put_on_path _ _ _ _ _ _ _ _ _ _ _ _ P1 _ _ Hpre Hq) as [[_ Ho]|[Ho _]]; simpl in Ho; [right|by left].
        split; [done|]. simpl in Hm. by rewrite Hm in Ho.
      - rewrite (put_off_path _ _ _ _ _ _ _ _ _ _ _ _ P1) in Hq by done. simpl in Hq. exists n. split; [done|by left]. }
    destruct Hm' as [Hn'|[Hpre Ho]].
    + destruct (descend_exists _ _ _ _ Hn') as [nd Hnd]. apply (tidy_node _ _ _ _ (inv_tidy _ I1)) in Hnd. lia.
    + destruct (descend_exists _ _ _ _ Hm) as [md Hmd].
      assert (birth md = epoch s1) as Hb.
      { rewrite He. pose proof (put_on_path _ _ _ _ _ _ _ _ _ _ _ _ P _ _ Hpre Hm) as Hon.
        destruct (put_frame _ _ _ _ _ _ _ _ _ _ _ _ P m) as [Hs|(q'&_&_&Hnew)]; [|by apply Hnew].
        rewrite Hs in Hmd. destruct Hon as [[-> _]|[_ Hon]]; [apply (tidy_node _ _ _ _ (inv_tidy _ I)) in Hmd; lia|].
        apply (owned_true _ _ _ _ (inv_tidy _ I) (inv_epoch _ I)) in Hon as (m'&md'&[= <-]&Hmd'&?). congruence. }
      pose proof (owned_old (epoch s1) (nodes s1) (inv_epoch _ I1) _ _ Hmd Hb). congruence.
  - destruct (put_frame _ _ _ _ _ _ _ _ _ _ _ _ P1 n) as [Hs|(q&_&[?|(nd&Hnd&_)]&_)]; [by rewrite <- Hs|lia|eauto].
Qed.
