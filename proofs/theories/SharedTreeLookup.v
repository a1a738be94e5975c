(** A lookup in the tree is a lookup in the map it stands for, whatever the history. *)
From LogDisk Require Import SharedTree SharedTreePaths SharedTreeUpdate SharedTreeInvariant SharedTreeWrite
  SharedTreeReclaim SharedTreeDeletion.

(** What the trees stand for: a map for the live view, and one for each snapshot, by the epoch that it ended. *)
Record disk := Disk { now : nat; live : gmap path nat; snaps : gmap nat (gmap path nat) }.

Definition disk_apply (a : action) (d : disk) : disk :=
  match a with
  | Write k x => Disk (now d) (<[k := x]> (live d)) (snaps d)
  | Unmap k => Disk (now d) (delete k (live d)) (snaps d)
  | Snapshot => Disk (S (now d)) (live d) (<[now d := live d]> (snaps d))
  | Delete v => Disk (now d) (live d) (delete v (snaps d))
  | Revert v => Disk (S (now d)) (default ∅ (snaps d !! v)) (snaps d)
  | Checkpoint => Disk (S (now d)) (live d) (snaps d)
  | Reclaim _ _ | Crash _ _ => d
  end.

Definition disk_run (history : list action) : disk := foldl (λ d a, disk_apply a d) (Disk 1 ∅ ∅) history.

Definition stands_for (s : state) (d : disk) : Prop :=
  now d = epoch s ∧
  (∀ k, length k = height s → read s (epoch s) k = live d !! k) ∧
  (∀ v, is_Some (snaps d !! v) ↔ v ≠ epoch s ∧ is_Some (claims s !! View v)) ∧
  ∀ v m k, snaps d !! v = Some m → length k = height s → read s v k = m !! k.

(** * Updates *)

Section update.
  Context {s s' : state} {c : claim} {k : path} {x : option nat} {r : id} {dropped : option id}.
  Context (I : inv s) (U : updated s s' c k x r dropped).

  (** Off the path of the key, the new live tree has the very nodes of the old one. *)
  Lemma update_shares q : ¬ q `prefix_of` k → descend (nodes s') r q = descend (nodes s) (root c) q.
  Proof. intros Hq. apply (put_off_path _ _ _ _ _ _ _ _ _ _ _ _ (upd_put _ _ _ _ _ _ _ U) _ Hq). Qed.

  Lemma read_updated k' : length k' = length k →
    read s' (epoch s) k' = if decide (k' = k) then x else read s (epoch s) k'.
  Proof.
    intros Hl. unfold read. rewrite (updated_live U), (upd_live _ _ _ _ _ _ _ U). simpl.
    pose proof (upd_put _ _ _ _ _ _ _ U) as P. destruct (decide (k' = k)) as [->|Hne].
    - apply (put_here _ _ _ _ _ _ _ _ _ _ _ _ P).
    - assert (¬ k' `prefix_of` k) as Hoff.
      { intros [l ->]. rewrite app_length in Hl. destruct l; [by rewrite app_nil_r in Hne|simpl in Hl; lia]. }
      rewrite update_shares by done. destruct (descend (nodes s) (root c) k') as [n|] eqn:Hn; [|done]. simpl. f_equal.
      destruct (descend_exists _ _ _ _ Hn) as [nd Hnd].
      destruct (put_frame _ _ _ _ _ _ _ _ _ _ _ _ P n) as [|(q&Hq&Hold&_)]; [done|exfalso].
      destruct Hold as [->|(nd'&Hnd'&_&Hp)]; [apply (tidy_node _ _ _ _ (inv_tidy _ I)) in Hnd; lia|].
      destruct (inv_view _ I _ _ (upd_live _ _ _ _ _ _ _ U)) as (_&_&_&rd&Hrd&Hroot&_).
      destruct (descend_place (inv_tidy _ I) _ _ _ _ _ Hn Hrd Hnd') as [Hp' _].
      rewrite Hroot in Hp'. simpl in Hp, Hp'. apply Hoff. by rewrite <- Hp', Hp.
  Qed.

  Lemma read_updated_other v k' : v ≠ epoch s → is_Some (claims s !! View v) → read s' v k' = read s v k'.
  Proof.
    intros Hv [c0 Hc0]. assert ((View v : nat + nat) ≠ View (epoch s)) by congruence.
    unfold read. rewrite (updated_other I U), Hc0 by eauto. simpl.
    rewrite (old_descend I U) by (by eapply (old_root I)).
    destruct (descend _ _ _) as [n|] eqn:Hn; [|done]. simpl. f_equal.
    apply (other_reaches I U _ _ n Hc0); [done|]. by exists k'.
  Qed.
End update.

(** * Each action, on the tree and on the map *)

Lemma stands_update s s' k x d m : inv s → length k = height s → update k x s = Some s' → stands_for s d →
  (∀ k', m !! k' = if decide (k' = k) then x else live d !! k') →
  stands_for s' (Disk (now d) m (snaps d)).
Proof.
  intros I Hk Hu (Hnow&Hlive&Hdom&Hread) Hm. destruct (update_spec _ _ _ _ I Hk Hu) as (c&r&dr&U).
  assert (height s' = height s ∧ epoch s' = epoch s) as [Hh He] by (by rewrite (upd_state _ _ _ _ _ _ _ U)).
  split_and!; rewrite ?Hh, ?He; simpl; [done| | |].
  - intros k' Hk'. rewrite (read_updated I U) by congruence. rewrite Hm. destruct (decide _); [done|]. by apply Hlive.
  - intros v. rewrite Hdom. split; intros [Hv [c' Hc']]; (split; [done|]).
    + rewrite (updated_other I U) by (congruence || eauto). eauto.
    + apply (updated_claims U) in Hc' as [[[=] _]|[[[=] _]|[_ ?]]]; [congruence|eauto].
  - intros v m' k' Hv Hk'. destruct (Hdom v) as [[Hne Hsome] _]; [eauto|].
    rewrite (read_updated_other I U) by done. by apply Hread.
Qed.

(** The view [v] of [s] is there in [s'] as [v'], and reads alike. *)
Definition reads_as (s s' : state) (v v' : nat) : Prop :=
  is_Some (claims s' !! View v') ∧ is_Some (claims s !! View v) ∧ ∀ k, read s' v' k = read s v k.

Lemma reads_as_same_nodes s s' v v' c c' :
  nodes s' = nodes s → claims s !! View v = Some c → claims s' !! View v' = Some c' → root c' = root c → reads_as s s' v v'.
Proof.
  intros Hn Hv Hv' Hr. split_and!; [eauto..|]. intros k. unfold read. rewrite Hv, Hv', Hn. simpl. by rewrite Hr.
Qed.

Lemma reads_as_reclaim s s' t n v : inv s → reclaim t n s = Some s' → is_Some (claims s !! View v) → reads_as s s' v v.
Proof.
  intros I Hs [c Hv].
  destruct (reclaim_cases _ _ _ _ I Hs) as (c0&Ht&[[_ ->]|(nd&Hn&[Hr Hh]&[[_ ->]|(Htest&_&->)])]).
  - apply (reads_as_same_nodes _ _ _ _ c c); try done. simpl. by rewrite lookup_delete_ne.
  - apply (reads_as_same_nodes _ _ _ _ c c); try done. simpl. by rewrite lookup_insert_ne.
  - rewrite (reclaim_test _ _ _ _ _ I Ht Hr Hn) in Htest. split_and!; [simpl; rewrite lookup_insert_ne by done; eauto|eauto|].
    intros k. unfold read. simpl. rewrite lookup_insert_ne, Hv by done. simpl.
    assert (¬ reaches (nodes s) (root c) n) as Hno.
    { intros Hr'. eapply (Htest (View v)); [done..|]. by eapply view_holds. }
    destruct (descend (nodes s) (root c) k) as [m|] eqn:Hm.
    + rewrite (descend_delete _ _ _ _ m); [|done|].
      * simpl. rewrite lookup_delete_ne; [done|]. intros <-. apply Hno. by exists k.
      * intros p1 p2 -> Hp1. apply Hno. by exists p1.
    + destruct (descend (delete n (nodes s)) (root c) k) as [m|] eqn:Hm'; [|done].
      apply descend_delete_inv in Hm'. congruence.
Qed.

Lemma stands_step s s' a d : inv s → apply a s = Some s' → stands_for s d → stands_for s' (disk_apply a d).
Proof.
  intros I Ha (Hnow&Hlive&Hdom&Hread). pose proof (inv_live _ I) as [l Hl].
  (* It is enough to say which view each view reads as. *)
  assert (∀ e' m sn, height s' = height s → epoch s' = e' →
    (∀ k, length k = height s → read s' e' k = m !! k) →
    (∀ v, is_Some (sn !! v) ↔ v ≠ e' ∧ is_Some (claims s' !! View v)) →
    (∀ v mv, sn !! v = Some mv → v ≠ e' →
      reads_as s s' v v ∧ (snaps d !! v = Some mv ∨ (v = epoch s ∧ mv = live d))) →
    stands_for s' (Disk e' m sn)) as Hstands.
  { intros e' m sn Hh He Hm Hsn Hv. split_and!; simpl; rewrite ?Hh, ?He; try done. intros v mv k Hmv Hk.
    destruct (Hsn v) as [[Hne _] _]; [eauto|]. destruct (Hv v mv Hmv Hne) as [(_&_&->) [?|[-> ->]]]; auto. }
  (* What only touches dying claims. *)
  assert (height s' = height s → epoch s' = epoch s →
    (∀ v, is_Some (claims s !! View v) → reads_as s s' v v) →
    (∀ v, is_Some (claims s' !! View v) → is_Some (claims s !! View v)) → stands_for s' d) as Hquiet.
  { intros Hh He Hsame Hback. destruct d as [n m sn]. simpl in *. subst n. apply Hstands; try done.
    - intros k Hk. rewrite <- Hlive by done. apply Hsame. eauto.
    - intros v. rewrite Hdom. split; intros [? Hv]; (split; [done|]); [by apply Hsame|by apply Hback].
    - intros v mv Hv Hne. split; [|by left]. apply Hsame. destruct (Hdom v) as [[_ ?] _]; eauto. }
  destruct a as [k x|k| |v|v| |t n|t ps]; simpl in Ha.
  - destruct (Nat.eqb_spec (length k) (height s)) as [Hk|]; [|done]. eapply stands_update; [done..|].
    intros k'. destruct (decide (k' = k)) as [->|]; [apply lookup_insert|by apply lookup_insert_ne].
  - destruct (Nat.eqb_spec (length k) (height s)) as [Hk|]; [|done].
    destruct (read s (epoch s) k) as [y|] eqn:Hy.
    + eapply stands_update; [done..|].
      intros k'. destruct (decide (k' = k)) as [->|]; [apply lookup_delete|by apply lookup_delete_ne].
    + injection Ha as <-. simpl. rewrite delete_notin; [by destruct d|]. by rewrite <- Hlive.
  - rewrite Hl in Ha. simpl in Ha. injection Ha as <-. simpl. rewrite Hnow. pose proof (fresh_view _ I) as Hf.
    set (s' := State _ _ _ _ _) in *.
    assert (∀ v, v ≠ S (epoch s) → claims s' !! View v = claims s !! View v) as Hto.
    { intros v Hv. simpl. by rewrite lookup_insert_ne by congruence. }
    apply Hstands; try done.
    + intros k Hk. rewrite <- Hlive by done. eapply reads_as_same_nodes; [done|done|simpl; apply lookup_insert|done].
    + intros v. destruct (decide (v = epoch s)) as [->|].
      * rewrite lookup_insert, Hto by lia. rewrite Hl. split; [|eauto]. intros _. split; [lia|eauto].
      * rewrite lookup_insert_ne, Hdom by done. split; intros [? Hv].
        -- assert (v ≠ S (epoch s)) by (intros ->; rewrite Hf in Hv; by destruct Hv). by rewrite Hto.
        -- by rewrite Hto in Hv.
    + intros v mv Hv Hne. assert (is_Some (claims s !! View v)) as [c Hc].
      { destruct (decide (v = epoch s)) as [->|]; [eauto|]. rewrite lookup_insert_ne in Hv by done. apply Hdom. eauto. }
      split; [apply (reads_as_same_nodes _ _ _ _ c c); try done; by rewrite Hto|].
      destruct (decide (v = epoch s)) as [->|].
      * rewrite lookup_insert in Hv. injection Hv as <-. by right.
      * rewrite lookup_insert_ne in Hv by done. by left.
  - destruct (Nat.eqb_spec v (epoch s)) as [|Hve]; [done|].
    destruct (claims s !! View v) as [g|] eqn:Hg; simpl in Ha; [|done]. injection Ha as <-. simpl. rewrite Hnow.
    set (s' := State _ _ _ _ _) in *.
    assert (∀ w c, w ≠ v → claims s !! View w = Some c → claims s' !! View w = Some (reparent v (parent g) c)) as Hto.
    { intros w c Hw Hc. simpl. rewrite lookup_insert_ne, lookup_fmap, lookup_delete_ne, Hc by congruence. done. }
    assert (∀ w c, w ≠ v → claims s !! View w = Some c → reads_as s s' w w) as Hreads.
    { intros w c Hw Hc. apply (reads_as_same_nodes _ _ _ _ c (reparent v (parent g) c)); auto. }
    assert (∀ w, is_Some (claims s' !! View w) ↔ w ≠ v ∧ is_Some (claims s !! View w)) as Hdom'.
    { intros w. simpl. rewrite lookup_insert_ne, lookup_fmap, fmap_is_Some by done. split.
      - intros [c [? ?]%lookup_delete_Some]. split; [congruence|eauto].
      - intros [? ?]. by rewrite lookup_delete_ne by congruence. }
    apply Hstands; try done.
    + intros k Hk. rewrite <- Hlive by done. by apply (Hreads _ l).
    + intros w. rewrite Hdom'. destruct (decide (w = v)) as [->|].
      * rewrite lookup_delete. split; [by intros [? ?]|by intros (?&?&?)].
      * rewrite lookup_delete_ne, Hdom by done. split; [intros [? ?]|intros (?&?&?)]; done.
    + intros w mv [Hwv Hw]%lookup_delete_Some Hne. split; [|by left].
      destruct (Hdom w) as [[_ [c Hc]] _]; [eauto|]. by apply (Hreads w c).
  - destruct (Nat.eqb_spec v (epoch s)) as [|Hve]; [done|].
    destruct (claims s !! View v) as [g|] eqn:Hg; simpl in Ha; [|done]. rewrite Hl in Ha. simpl in Ha.
    injection Ha as <-. simpl. rewrite Hnow. set (s' := State _ _ _ _ _) in *. pose proof (fresh_view _ I) as Hf.
    assert (∀ w, w ≠ S (epoch s) → w ≠ epoch s → claims s' !! View w = claims s !! View w) as Hto.
    { intros w Hw ?. simpl. by rewrite !lookup_insert_ne, lookup_delete_ne by congruence. }
    apply Hstands; try done.
    + intros k Hk. destruct (Hdom v) as [_ [m Hm]]; [eauto|]. rewrite Hm. simpl. rewrite <- (Hread v m) by done.
      eapply reads_as_same_nodes; [done|done|simpl; apply lookup_insert|done].
    + intros w. rewrite Hdom. destruct (decide (w = epoch s)) as [->|].
      * split; [by intros [? _]|]. intros [_ Hw]. simpl in Hw. rewrite !lookup_insert_ne, lookup_delete in Hw by (congruence || (injection 1; lia)).
        by destruct Hw.
      * split; intros [? Hw].
        -- assert (w ≠ S (epoch s)) by (intros ->; rewrite Hf in Hw; by destruct Hw). by rewrite Hto.
        -- by rewrite Hto in Hw.
    + intros w mv Hw Hne. split; [|by left]. destruct (Hdom w) as [[Hwe [c Hc]] _]; [eauto|].
      apply (reads_as_same_nodes _ _ _ _ c c); try done. by rewrite Hto.
  - rewrite Hl in Ha. simpl in Ha. injection Ha as <-. simpl. rewrite Hnow.
    set (s' := State _ _ _ _ _) in *. pose proof (fresh_view _ I) as Hf.
    assert (∀ w, w ≠ S (epoch s) → w ≠ epoch s → claims s' !! View w = claims s !! View w) as Hto.
    { intros w Hw ?. simpl. by rewrite !lookup_insert_ne, lookup_delete_ne by congruence. }
    apply Hstands; try done.
    + intros k Hk. rewrite <- Hlive by done. eapply reads_as_same_nodes; [done|done|simpl; apply lookup_insert|done].
    + intros w. rewrite Hdom. destruct (decide (w = epoch s)) as [->|].
      * split; [by intros [? _]|]. intros [_ Hw]. simpl in Hw. rewrite lookup_insert_ne, lookup_delete in Hw by (injection 1; lia).
        by destruct Hw.
      * split; intros [? Hw].
        -- assert (w ≠ S (epoch s)) by (intros ->; rewrite Hf in Hw; by destruct Hw). by rewrite Hto.
        -- by rewrite Hto in Hw.
    + intros w mv Hw Hne. split; [|by left]. destruct (Hdom w) as [[Hwe [c Hc]] _]; [eauto|].
      apply (reads_as_same_nodes _ _ _ _ c c); try done. by rewrite Hto.
  - simpl. assert (height s' = height s ∧ epoch s' = epoch s ∧ ∀ v, claims s' !! View v = claims s !! View v) as (Hh&He&Hv).
    { destruct (reclaim_cases _ _ _ _ I Ha) as (c0&Ht&[[_ ->]|(nd&Hn&Hh&[[_ ->]|(_&_&->)])]); split_and!; try done; intros v; simpl;
        by rewrite ?lookup_delete_ne, ?lookup_insert_ne. }
    apply Hquiet; [done|done| |intros v; by rewrite Hv]. intros v Hsome. by eapply reads_as_reclaim.
  - destruct (claims s !! Dying t) as [c|] eqn:Ht; simpl in Ha; [|done]. destruct (forallb _ _); [|done]. injection Ha as <-.
    apply Hquiet; try done; intros v; simpl; rewrite ?lookup_insert_ne by done; [|done]. intros [c' Hc'].
    apply (reads_as_same_nodes _ _ _ _ c' c'); try done. simpl. by rewrite lookup_insert_ne.
Qed.

Lemma stands_run levels history s : run (create levels) history = Some s → stands_for s (disk_run history).
Proof.
  assert (∀ s0 d, inv s0 → stands_for s0 d → run s0 history = Some s → stands_for s (foldl (λ d a, disk_apply a d) d history)) as Hrun.
  { induction history as [|a history IH]; intros s0 d I Hd; simpl; [by intros [= <-]|].
    destruct (apply a s0) as [s1|] eqn:Ha; simpl; [|done]. apply IH; [by eapply inv_step|by eapply stands_step]. }
  apply Hrun; [apply inv_create|]. split_and!; simpl; [done| | |].
  - intros [|d k] Hk; [done|]. unfold read. cbn. by rewrite lookup_empty.
  - intros v. rewrite lookup_empty. split; [by intros [? ?]|]. intros [? [c Hc]].
    apply lookup_singleton_Some in Hc as [[= <-] _]. done.
  - intros v m k Hv. by apply lookup_empty_Some in Hv.
Qed.
