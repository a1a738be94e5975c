(** A lookup in the tree is a lookup in the map it stands for, whatever the history. *)
From LogDisk Require Export SharedTreeDeletion.

(** What the trees stand for: a map for the live view, and one for each snapshot, by the epoch that it ended.
*)
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
      rewrite update_shares by done. destruct (descend (nodes s) (root c) k') as [n|] eqn:Hn;
        [|done]. simpl. f_equal.
      destruct (descend_exists _ _ _ _ Hn) as [nd Hnd].
      destruct (put_frame _ _ _ _ _ _ _ _ _ _ _ _ P n) as [|(q&Hq&Hold&_)]; [done|exfalso].
      destruct Hold as [->|(nd'&Hnd'&_&Hp)]; [apply (tidy_node (inv_tidy I)) in Hnd; lia|].
      destruct (inv_view I (upd_live _ _ _ _ _ _ _ U)) as (_&_&_&rd&Hrd&Hroot&_).
      destruct (descend_place (inv_tidy I) _ _ _ _ _ Hn Hrd Hnd') as [Hp' _].
      rewrite Hroot in Hp'. simpl in Hp, Hp'. apply Hoff. by rewrite <- Hp', Hp.
  Qed.

  Lemma read_updated_other v k' : v ≠ epoch s → is_Some (claims s !! View v) → read s' v k' = read s v k'.
  Proof. intros Hv [c0 Hc0]. assert ((View v : nat + nat) ≠ View (epoch s)) by congruence. unfold read.
    rewrite (updated_other I U), Hc0 by eauto. simpl. rewrite (old_descend I U) by (by eapply (old_root I)).
    destruct (descend _ _ _) as [n|] eqn:Hn; [|done]. simpl. f_equal.
    apply (other_reaches I U _ _ n Hc0); [done|]. by exists k'. Qed.
End update.

(** * Each action, on the tree and on the map *)

Lemma stands_update s s' k x d m : inv s → length k = height s → update k x s = Some s' → stands_for s d →
  (∀ k', m !! k' = if decide (k' = k) then x else live d !! k') → stands_for s' (Disk (now d) m (snaps d)).
Proof.
  intros I Hk Hu (Hnow&Hlive&Hdom&Hread) Hm. destruct (update_spec _ _ _ _ I Hk Hu) as (c&r&dr&U).
  assert (height s' = height s ∧ epoch s' = epoch s) as [Hh He] by (by rewrite (upd_state _ _ _ _ _ _ _ U)).
  split_and!; rewrite ?Hh, ?He; simpl; [done| | |].
  - intros k' Hk'. rewrite (read_updated I U) by congruence. rewrite Hm. destruct (decide _);
    [done|]. by apply Hlive.
  - intros v. rewrite Hdom. split; intros [Hv [c' Hc']]; (split; [done|]).
    + rewrite (updated_other I U) by (congruence || eauto). eauto.
    + apply (updated_claims U) in Hc' as [[[=] _]|[[[=] _]|[_ ?]]]; [congruence|eauto].
  - intros v m' k' Hv Hk'. destruct (Hdom v) as [[Hne Hsome] _]; [eauto|].
    rewrite (read_updated_other I U) by done. by apply Hread.
Qed.

(** Nodes unchanged, and views that go on, one of them as live. *)
Lemma stands_views s s' d m sn v0 c0 c1 : stands_for s d → height s' = height s → nodes s' = nodes s →
  claims s !! View v0 = Some c0 → claims s' !! View (epoch s') = Some c1 → root c1 = root c0 →
  (∀ k, length k = height s → read s v0 k = m !! k) →
  (∀ v mv, sn !! v = Some mv → v ≠ epoch s' ∧ is_Some (claims s' !! View v)) →
  (∀ v c', v ≠ epoch s' → claims s' !! View v = Some c' → ∃ c, claims s !! View v = Some c ∧
    root c' = root c ∧
     (v ≠ epoch s ∧ sn !! v = snaps d !! v ∨ v = epoch s ∧ sn !! v = Some (live d))) →
  stands_for s' (Disk (epoch s') m sn).
Proof.
  intros (Hnow&Hlive&Hdom&Hread) Hh Hn Hv0 Hc1 Hr Hm Hsn Hback.
  assert (∀ v v' c c', claims s !! View v = Some c → claims s' !! View v' = Some c' → root c' = root c →
    ∀ k, read s' v' k = read s v k) as Hsame.
  { intros v v' c c' Hv Hv' E k. unfold read. rewrite Hv, Hv', Hn. simpl. by rewrite E. }
  split_and!; simpl; rewrite ?Hh; [done| | |].
  - intros k Hk. rewrite (Hsame _ _ _ _ Hv0 Hc1 Hr). by apply Hm.
  - intros v. split; [intros [mv Hv]; by apply (Hsn v mv)|]. intros [Hne [c' Hc']].
    destruct (Hback _ _ Hne Hc') as (c&Hc&_&[[? ->]|[-> ->]]); [apply Hdom; eauto|eauto].
  - intros v mv k Hv Hk. destruct (Hsn _ _ Hv) as [Hne [c' Hc']].
    destruct (Hback _ _ Hne Hc') as (c&Hc&E&Hcase).
    rewrite (Hsame _ _ _ _ Hc Hc' E). destruct Hcase as [[? Heq]|[-> Heq]]; rewrite Heq in Hv;
      [by apply Hread|].
    injection Hv as <-. by apply Hlive.
Qed.

Lemma read_reclaim s s' t n v k : inv s → reclaim t n s = Some s' → read s' v k = read s v k.
Proof.
  intros I Hs. unfold read. destruct (claims s !! View v) as [c|] eqn:Hv.
  - destruct (reclaim_spares_views _ _ _ _ _ _ I Hs Hv) as (->&Hd&Hsame). simpl. rewrite Hd.
    destruct (descend (nodes s) (root c) k) as [m|] eqn:Hm; [|done]. simpl. rewrite Hsame; [done|by exists k].
  - destruct (reclaim_same _ _ _ _ I Hs) as (_&Hother&_). by rewrite Hother, Hv.
Qed.

Lemma stands_step s s' a d : inv s → apply a s = Some s' → stands_for s d → stands_for s' (disk_apply a d).
Proof.
  intros I Ha St. pose proof St as (Hnow&Hlive&Hdom&Hread). pose proof (inv_live I) as [l Hl].
  pose proof (fresh_view _ I) as Hf.
  assert (∀ v mv, snaps d !! v = Some mv → v ≠ epoch s ∧ v ≠ S (epoch s) ∧
    is_Some (claims s !! View v)) as Hsnap.
  { intros v mv Hv. destruct (Hdom v) as [[? [c Hc]] _]; [eauto|]. split_and!; [done|intros ->;
    congruence|eauto]. }
  destruct a as [k x|k| |v|v| |t n|t ps]; simpl in Ha.
  - invert_apply. eapply stands_update; [done..|].
    intros k'. destruct (decide (k' = k)) as [->|]; [apply lookup_insert|by apply lookup_insert_ne].
  - invert_apply.
    + eapply stands_update; [done..|].
      intros k'. destruct (decide (k' = k)) as [->|]; [apply lookup_delete|by apply lookup_delete_ne].
    + simpl. rewrite delete_notin; [by destruct d|]. by rewrite <- Hlive.
  - rewrite Hl in Ha. simpl in Ha. injection Ha as <-. simpl. rewrite Hnow.
    apply (stands_views s (State _ _ _ (S _) _) d _ _ (epoch s) l (Claim (epoch s) (root l) [])); simpl;
      try done;
      [apply lookup_insert|..].
    + intros v mv [[<- <-]|[? (?&?&?)%Hsnap]]%lookup_insert_Some; (split; [lia|]);
      rewrite lookup_insert_ne by (injection 1; lia);
        eauto.
    + intros v c' Hne [[[= <-] _]|[_ Hc]]%lookup_insert_Some; [done|]. exists c'. split_and!; [done..|].
      destruct (decide (v = epoch s)) as [->|]; [right; by rewrite lookup_insert|left;
        by rewrite lookup_insert_ne].
  - invert_apply. simpl. rewrite Hnow.
    eapply (stands_views s (State _ _ _ (epoch s) _) d _ _ (epoch s) l (reparent v _ l)); simpl; try done.
    + by rewrite lookup_insert_ne, lookup_fmap, lookup_delete_ne, Hl by congruence.
    + intros w mv [? (?&_&?)%Hsnap]%lookup_delete_Some. split; [done|].
      by rewrite lookup_insert_ne, lookup_fmap, fmap_is_Some, lookup_delete_ne by congruence.
    + intros w c' Hne Hc'. rewrite lookup_insert_ne, lookup_fmap in Hc' by done.
      apply fmap_Some in Hc' as (c1&[? Hc]%lookup_delete_Some&->). exists c1. split_and!; [done..|left].
      by rewrite lookup_delete_ne by congruence.
  - invert_apply. simpl. rewrite Hnow. destruct (Hdom v) as [_ [m Hm]]; [eauto|]. rewrite Hm.
    eapply (stands_views s (State _ _ _ (S _) _) d _ _ v _ (Claim v _ [])); simpl; try done;
      [apply lookup_insert|by intros; apply Hread|..].
    + intros w mv (?&?&?)%Hsnap. split; [done|]. by rewrite !lookup_insert_ne, lookup_delete_ne by congruence.
    + intros w c' Hne [[[= <-] _]|[_ [[[=] _]|[_ [?
      Hc]%lookup_delete_Some]]%lookup_insert_Some]]%lookup_insert_Some; [done|].
      exists c'. split_and!; [done..|]. left. split; [congruence|done].
  - rewrite Hl in Ha. simpl in Ha. injection Ha as <-. simpl. rewrite Hnow.
    apply (stands_views s (State _ _ _ (S _) _) d _ _ (epoch s) l l); simpl; try done;
      [apply lookup_insert|..].
    + intros w mv (?&?&?)%Hsnap. split; [done|]. by rewrite !lookup_insert_ne, lookup_delete_ne by congruence.
    + intros w c' Hne [[[= <-] _]|[_ [? Hc]%lookup_delete_Some]]%lookup_insert_Some; [done|].
      exists c'. split_and!; [done..|]. left. split; [congruence|done].
  - destruct (reclaim_same _ _ _ _ I Ha) as ([= Hh _ He]&Hother&_).
    split_and!; rewrite ?He, ?Hh; [done|intros; rewrite (read_reclaim s s' t n) by done; by apply Hlive| |].
    + intros v. by rewrite Hother.
    + intros v m k Hv Hk. rewrite (read_reclaim s s' t n) by done. by apply Hread.
  - invert_apply. destruct d as [e m sn]. simpl in *. subst e.
    eapply (stands_views s (State _ _ _ (epoch s) _) _ _ _ (epoch s) l l); simpl;
      rewrite ?lookup_insert_ne by done; try done.
    + intros v mv (?&_&?)%Hsnap. by rewrite lookup_insert_ne.
    + intros v c' Hne. rewrite lookup_insert_ne by done. intros Hc. exists c'. split_and!; [done..|by left].
Qed.

Lemma stands_run levels history s : run (create levels) history = Some s → stands_for s (disk_run history).
Proof.
  assert (∀ s0 d, inv s0 → stands_for s0 d → run s0 history = Some s →
    stands_for s (foldl (λ d a, disk_apply a d) d history)) as Hrun.
  { induction history as [|a history IH]; intros s0 d I Hd Hs; simpl in *; invert_apply; [done|].
    eapply IH; [by eapply inv_step|by eapply stands_step|done]. }
  apply Hrun; [apply inv_create|]. split_and!; simpl; [done| | |].
  - intros [|d k] Hk; [done|]. unfold read. cbn. by rewrite lookup_empty.
  - intros v. rewrite lookup_empty. split; [by intros [? ?]|]. intros [? [c Hc]].
    apply lookup_singleton_Some in Hc as [[= <-] _]. done.
  - intros v m k Hv. by apply lookup_empty_Some in Hv.
Qed.
