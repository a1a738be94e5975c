(** The maps of the proved disk as shared trees: the views are roots in one heap of nodes, and the chunk at
the bottom names an MBA. Beside them stands the middle map.

Log records are those of [ProvedDisk.v]. An MBA is dropped from the middle map where a write changes a chunk
in place, and where a walk frees one. Nobody looks through all views. *)
From stdpp Require Import gmap strings.
From LogDisk Require ProvedDisk ProvedDiskInvariant ProvedDiskMaps.
From LogDisk Require Import TreeIndexMaps TreeIndexBounds.
Import LogStructuredDisk(record(..)).
Import ProvedDisk(log_record(..), put_from).

(** The middle map of [views] is empty: places are numbers here. *)
Record tree_maps := TreeMaps { views : index; places : gmap nat nat (* MBA -> place *) }.

Definition no_trees (levels : nat) : tree_maps := TreeMaps (no_index levels) ∅.
(** An epoch ends. *)
Definition end_epoch (t : tree_maps) : tree_maps :=
  TreeMaps (with_trees (act Checkpoint (trees (views t))) (views t)) (places t).

Section Definitions.
Context (bits : nat).

(** A write takes fresh MBAs, for these places. *)
Definition carry_out (r : record nat) (t : tree_maps) : tree_maps :=
  let '(i, dropped) := reindex bits r (views t) in
  TreeMaps i (drop_mbas dropped
    (match r with RWrite _ ps => put_from (next_mba (views t)) ps (places t) | _ => places t end)).

(** A log record as records of the trees. A snapshot takes the name from the one that has it. *)
Definition tree_records (r : log_record) : list (record nat) :=
  match r with
  | LogWrite lba ps => [RWrite lba ps]
  | LogUnmap lba count => [RUnmap lba count]
  | LogSnapshot n => [RDelete n; RSnapshot n]
  | LogDelete n => [RDelete n]
  | LogRevert n => [RRevert n]
  | LogMove _ | LogHead _ _ => []
  | LogGroup bs => (λ b, RWrite b.1 [b.2]) <$> bs
  end.

(** Of MBAs that are known. *)
Definition relocate (moves : list (nat * nat)) (mid : gmap nat nat) : gmap nat nat :=
  foldr (λ e mid, match mid !! e.1 with Some _ => <[e.1 := e.2]> mid | None => mid end) mid moves.

Definition apply_record (r : log_record) (t : tree_maps) : tree_maps :=
  let t := foldl (λ t r, carry_out r t) t (tree_records r) in
  match r with LogMove moves => TreeMaps (views t) (relocate moves (places t)) | _ => t end.

(** Where a view has its data: down the tree to the MBA, and through the middle map. *)
Definition place_at (t : tree_maps) (from : VirtualDisk.target) (lba : nat) : option nat :=
  v ← epoch_of (views t) from; x ← mba_of bits (views t) v lba; places t !! x.

(** A step of the walk [w], at node [n]. *)
Definition walk (w n : nat) (t : tree_maps) : option tree_maps :=
  s ← reclaim w n (trees (views t));
  Some (TreeMaps (with_trees s (views t)) (drop_mbas (freed_mba (trees (views t)) s n) (places t))).
End Definitions.

(** ** What the trees show *)

Notation disk_maps := ProvedDisk.maps.

Section Shows.
Context (bits : nat).
Implicit Types (t : tree_maps) (m : disk_maps) (r : record nat).

Definition views_of m : LogStructuredDisk.maps :=
  LogStructuredDisk.Maps (ProvedDisk.live_map m) (ProvedDisk.snap_maps m) ∅ (ProvedDisk.next_mba m).

(** The views are those of [m]. The places are those that [m] has, of the MBAs that a chunk of the trees
names. *)
Record trees_show t m : Prop := Shows {
  shows_views : represents bits (views t) (views_of m);
  shows_known x : is_Some (places t !! x) ↔ mapped (trees (views t)) x;
  shows_places : places t ⊆ ProvedDisk.middle m;
}.

Lemma shows_nothing levels : trees_show (no_trees levels) ProvedDisk.no_maps.
Proof.
  pose proof (represents_nothing bits levels) as Hr. split; [done| |done]. intros x. simpl.
  rewrite lookup_empty. split; [by intros [? ?]|]. intros Hx.
  pose proof (chunk_below _ _ _ (rep_chunks _ _ _ Hr) _ Hx) as Hlt. simpl in Hlt. lia.
Qed.

(** ** Reading *)

Lemma mba_known t m v l x : trees_show t m → mba_of bits (views t) v l = Some x → is_Some (places t !! x).
Proof.
  intros Ht Hx. apply (shows_known _ _ Ht).
  destruct (read_chunk (trees (views t)) v (key bits (height (trees (views t))) l) x) as [n Hn];
    [by apply (chunks_inv _ _ _ (rep_chunks _ _ _ (shows_views _ _ Ht)))|apply key_length|done|by eexists _,
      _].
Qed.

Lemma snap_shown t m n : trees_show t m →
  match named (views t) !! n, ProvedDisk.snap_maps m !! n with
  | Some v, Some vm => ∀ l, mba_of bits (views t) v l = vm !! l
  | None, None => True
  | _, _ => False
  end.
Proof. intros Ht. exact (represents_snap bits _ _ n (shows_views _ _ Ht)). Qed.

(** What a view refers to has a place. *)
Lemma reachable_known t m x : trees_show t m → ProvedDiskInvariant.reachable m x → is_Some (places t !! x).
Proof.
  intros Ht (vm & l & Hvm & Hl). destruct Hvm as [->|[n Hn]].
  - eapply mba_known; [done|]. rewrite (represents_live bits _ _ l (shows_views _ _ Ht)). exact Hl.
  - pose proof (snap_shown t m n Ht) as Hsnap. rewrite Hn in Hsnap.
    destruct (named (views t) !! n) as [v|]; [|done]. eapply mba_known; [done|]. by rewrite Hsnap.
Qed.

Theorem place_at_shown t m from l : trees_show t m →
  place_at bits t from l = ProvedDisk.place_of m (ProvedDisk.map_of m from) l.
Proof.
  intros Ht. unfold place_at, ProvedDisk.place_of.
  assert (∀ v (vm : gmap nat nat), mba_of bits (views t) v l = vm !! l →
    (x ← mba_of bits (views t) v l; places t !! x) = vm !! l ≫= λ x, ProvedDisk.middle m !! x) as Hv.
  { intros v vm E. rewrite <-E. destruct (mba_of bits (views t) v l) as [x|] eqn:Hx; simpl; [|done].
    destruct (mba_known t m v l x Ht Hx) as [p Hp]. rewrite Hp. symmetry.
    eapply lookup_weaken; [done|apply Ht]. }
  destruct from as [|n]; simpl.
  - apply (Hv _ (ProvedDisk.live_map m)), (represents_live bits _ _ l (shows_views _ _ Ht)).
  - pose proof (snap_shown t m n Ht) as Hn.
    destruct (named (views t) !! n) as [v|], (ProvedDisk.snap_maps m !! n) as [vm|]; try done; simpl.
    apply Hv, Hn.
Qed.

Lemma named_shown t m n : trees_show t m →
  is_Some (named (views t) !! n) ↔ is_Some (ProvedDisk.snap_maps m !! n).
Proof.
  intros Ht. pose proof (snap_shown t m n Ht) as Hn.
  destruct (named (views t) !! n), (ProvedDisk.snap_maps m !! n); try done;
    split; intros [? ?]; try done; by eexists.
Qed.

Lemma names_counted t m : trees_show t m → size (named (views t)) = size (ProvedDisk.snap_maps m).
Proof.
  intros Ht. rewrite <-!size_dom. f_equal. apply set_eq. intros n. rewrite !elem_of_dom. by apply named_shown.
Qed.

(** ** Records *)

Lemma lookup_drop_mbas {A} xs (f : gmap nat A) x :
  drop_mbas xs f !! x = if decide (x ∈ xs) then None else f !! x.
Proof.
  induction xs as [|y xs IH]; [by rewrite decide_False by apply not_elem_of_nil|].
  change (drop_mbas (y :: xs) f) with (delete y (drop_mbas xs f)).
  destruct (decide (x = y)) as [->|Hne]; [rewrite lookup_delete, decide_True; [done|by left]|].
  rewrite lookup_delete_ne, IH by done. destruct (decide (x ∈ xs)).
  - rewrite decide_True; [done|by right].
  - rewrite decide_False; [done|]. by rewrite elem_of_cons; intros [?|?].
Qed.

(** What each of them is in the log. *)
Definition logged_as r : log_record :=
  match r with
  | RWrite lba ps => LogWrite lba ps
  | RUnmap lba count => LogUnmap lba count
  | RSnapshot n => LogSnapshot n
  | RDelete n => LogDelete n
  | RRevert n => LogRevert n
  end.

Lemma views_remapped r m :
  LogStructuredDisk.remap r (views_of m) = views_of (ProvedDisk.apply (logged_as r) m).
Proof.
  destruct r as [lba ps|lba count|n|n|n]; unfold views_of; simpl; try done; f_equal; apply map_eq; intros l.
  - rewrite ProvedDiskMaps.lookup_put_from, seq_length, lookup_union, map_seq_range.
    destruct (decide (lba ≤ l < lba + length ps)) as [Hl|Hl].
    + rewrite lookup_seq_lt by lia. by destruct (_ !! l).
    + by destruct (_ !! l).
  - rewrite ProvedDiskMaps.lookup_remove_from. destruct (decide (lba ≤ l < lba + count)) as [Hl|Hl].
    + apply map_filter_lookup_None_2. right. intros x _. simpl. lia.
    + destruct (ProvedDisk.live_map m !! l) eqn:E.
      * transitivity (Some n); [by apply map_filter_lookup_Some_2|done].
      * transitivity (@None nat); [|done]. apply map_filter_lookup_None_2. by left.
Qed.

Lemma carry_out_shown r t m : trees_show t m → names_fresh r (views t) →
  trees_show (carry_out bits r t) (ProvedDisk.apply (logged_as r) m) ∧
  named (views (carry_out bits r t)) = names_after r (views t).
Proof.
  intros Ht Hfresh. pose proof (shows_views _ _ Ht) as Hi. pose proof (rep_chunks _ _ _ Hi) as Hs.
  pose proof (represents_record bits r _ _ Hi Hfresh) as Hrec.
  destruct (actions_proper bits r _ _ Hi) as [Hp Hused].
  pose proof (acts_acted _ _ _ _ Hs Hp) as [_ _ _ _ _ Hnew _]. rewrite Hused in Hnew.
  unfold carry_out. unfold reindex in *. destruct (acts (trees (views t)) (actions_of bits r (views t)))
    as [s' xs]. simpl in *. destruct Hrec as (Hi' & _ & Hgone & Hkept).
  split; [|done]. rewrite views_remapped in Hi'. split; simpl; [done|..].
  - intros x. rewrite lookup_drop_mbas. destruct (decide (x ∈ xs)) as [Hx|Hx].
    { split; [by intros [? ?]|]. intros Hm. by destruct (Hgone x Hx). }
    assert (is_Some ((match r with RWrite _ ps => put_from (next_mba (views t)) ps (places t)
      | _ => places t end) !! x) ↔ mapped (trees (views t)) x ∨
      next_mba (views t) ≤ x < next_mba (views t) + mbas_used r) as ->.
    { destruct r; simpl; try (rewrite (shows_known _ _ Ht); split; [by left|intros [?|?]; [done|lia]]).
      rewrite ProvedDiskMaps.lookup_put_from. case_decide as Hd.
      - split; [by right|]. intros _. apply lookup_lt_is_Some. lia.
      - rewrite (shows_known _ _ Ht). split; [by left|intros [?|?]; [done|lia]]. }
    split; [|apply Hnew]. intros Hm. by destruct (Hkept x Hm).
  - pose proof (rep_next _ _ _ Hi) as Hnext. simpl in Hnext. apply map_subseteq_spec. intros x p.
    rewrite lookup_drop_mbas. case_decide; [done|]. pose proof (shows_places _ _ Ht) as Hsub.
    destruct r; simpl; try (intros; by eapply lookup_weaken).
    rewrite !ProvedDiskMaps.lookup_put_from, Hnext. case_decide; [done|]. intros; by eapply lookup_weaken.
Qed.

Lemma relocate_shown moves (mid mid' : gmap nat nat) : mid ⊆ mid' →
  relocate moves mid ⊆ ProvedDisk.relocate moves mid' ∧
  ∀ x, is_Some (relocate moves mid !! x) ↔ is_Some (mid !! x).
Proof.
  intros Hsub. induction moves as [|[x p] moves [IH Hdom]]; simpl; [done|].
  destruct (relocate moves mid !! x) as [p0|] eqn:Hx.
  - split; [by apply insert_mono|]. intros y. destruct (decide (x = y)) as [->|Hne].
    + rewrite lookup_insert, <-Hdom, Hx. split; by eauto.
    + by rewrite lookup_insert_ne.
  - split; [|done]. apply map_subseteq_spec. intros y q Hy. rewrite lookup_insert_ne by congruence.
    by eapply lookup_weaken.
Qed.

(** A log record on the trees is the record on the maps. *)
Theorem apply_record_shown (r : log_record) t m : trees_show t m →
  trees_show (apply_record bits r t) (ProvedDisk.apply r m).
Proof.
  intros Ht. unfold apply_record. destruct r as [lba ps|lba count|n|n|n|moves|bs|k d]; simpl.
  - by apply (carry_out_shown (RWrite lba ps)).
  - by apply (carry_out_shown (RUnmap lba count)).
  - destruct (carry_out_shown (RDelete n) t m Ht I) as [Hdel Hnamed].
    pose proof (carry_out_shown (RSnapshot n) _ _ Hdel) as Hsnap. simpl in Hsnap. rewrite Hnamed in Hsnap.
    destruct Hsnap as [Hsnap _]; [apply lookup_delete|].
    by rewrite insert_delete_insert in Hsnap.
  - by apply (carry_out_shown (RDelete n)).
  - by apply (carry_out_shown (RRevert n)).
  - destruct (relocate_shown moves _ _ (shows_places _ _ Ht)) as [Hsub Hdom].
    split; simpl; [apply Ht| |done]. intros x. by rewrite Hdom, (shows_known _ _ Ht).
  - revert t m Ht. induction bs as [|b bs IH]; intros t m Ht; simpl; [done|].
    apply IH. by apply (carry_out_shown (RWrite b.1 [b.2])).
  - done.
Qed.

Lemma records_shown (rs : list (log_record * (nat * nat))) t m : trees_show t m →
  trees_show (foldl (λ t e, apply_record bits e.1 t) t rs) (foldl (λ m e, ProvedDisk.apply e.1 m) m rs).
Proof.
  revert t m. induction rs as [|r rs IH]; intros t m Ht; simpl; [done|]. by apply IH, apply_record_shown.
Qed.

(** ** Walks, and checkpoints *)

Theorem walk_shown w n t t' m : trees_show t m → walk w n t = Some t' → trees_show t' m.
Proof.
  intros Ht. unfold walk. destruct (reclaim w n (trees (views t))) as [s|] eqn:Hs; simpl; [|done].
  intros [= <-]. pose proof (shows_views _ _ Ht) as Hi.
  destruct (represents_reclaim bits _ _ _ _ _ Hi Hs) as (Hi' & _ & Hgone & Hkept).
  destruct (reclaim_acted bits _ _ _ _ _ (rep_chunks _ _ _ Hi) Hs) as [_ _ _ _ _ Hnew _].
  split; simpl; [done|..].
  - intros x. rewrite lookup_drop_mbas. case_decide as Hx.
    + split; [by intros [? ?]|]. intros Hm. by destruct (Hgone x Hx).
    + rewrite (shows_known _ _ Ht). split.
      * intros Hm. by destruct (Hkept x Hm).
      * intros Hm. destruct (Hnew x Hm); [done|lia].
  - apply map_subseteq_spec. intros x p. rewrite lookup_drop_mbas. case_decide; [done|].
    intros. eapply lookup_weaken; [done|apply Ht].
Qed.

Theorem end_epoch_shown t m : trees_show t m → trees_show (end_epoch t) m.
Proof.
  intros Ht. destruct (represents_checkpoint bits _ _ (shows_views _ _ Ht)) as (Hi & Hmapped & _).
  split; simpl; [done| |apply Ht]. intros x. by rewrite Hmapped, (shows_known _ _ Ht).
Qed.

(** [m] may forget what the trees do not name. *)
Lemma shows_forgetting t m : trees_show t m → trees_show t
  (ProvedDisk.Maps (ProvedDisk.live_map m) (ProvedDisk.snap_maps m) (places t) (ProvedDisk.next_mba m)).
Proof. by intros [Hi Hk _]. Qed.

(** ** Changes of the trees *)

(** The trees of [t'] come from those of [s] by changes that leave what is on pages as it is. *)
Definition changed (s : state) (t : tree_maps) : Prop :=
  ∃ history, Forall (of_record bits) history ∧ run s history = Some (trees (views t)).

Lemma changed_not t : changed (trees (views t)) t.
Proof. by exists []. Qed.

Lemma run_app s h1 h2 s1 s2 : run s h1 = Some s1 → run s1 h2 = Some s2 → run s (h1 ++ h2) = Some s2.
Proof.
  revert s. induction h1 as [|a h1 IH]; intros s; simpl; [by intros [= ->]|].
  destruct (apply a s); simpl; [apply IH|done].
Qed.

Lemma changed_more s t t' history : changed s t → Forall (of_record bits) history →
  run (trees (views t)) history = Some (trees (views t')) → changed s t'.
Proof.
  intros (h & Hh & Hrun) Hmore Hrun'. exists (h ++ history). split; [by apply Forall_app|].
  by eapply run_app.
Qed.

Lemma changed_kept levels s t : kept_trees bits levels s → changed s t →
  kept_trees bits levels (trees (views t)).
Proof.
  intros Hs (h & Hh & Hrun). revert s Hs Hrun. induction Hh as [|a h Ha _ IH]; intros s Hs Hrun; simpl in
    Hrun.
  - by injection Hrun as <-.
  - destruct (apply a s) as [s1|] eqn:E; simpl in Hrun; [|done]. apply (IH s1); [|done].
    pose proof (act_kept bits levels a s Hs Ha) as Hact. unfold act in Hact. by rewrite E in Hact.
Qed.

Section Keys.
Context (levels blocks : nat) (enough_keys : blocks ≤ 2 ^ (bits * levels)).

Lemma carry_out_changed s r t : kept_trees bits levels s → changed s t → within blocks r →
  changed s (carry_out bits r t).
Proof.
  intros Hs Hc Hr. pose proof (changed_kept _ _ _ Hs Hc) as Ht.
  destruct (kept_bounded _ _ _ Ht) as [Hheight _].
  destruct (reindex_run bits levels blocks r (views t) Hheight Hr enough_keys) as (history & Hh & Hrun).
  eapply changed_more; [done|exact Hh|]. rewrite Hrun. unfold carry_out.
  by destruct (reindex bits r (views t)).
Qed.

Lemma carry_all_changed s rs t : kept_trees bits levels s → changed s t → Forall (within blocks) rs →
  changed s (foldl (λ t r, carry_out bits r t) t rs).
Proof.
  intros Hs Hc Hrs. revert t Hc. induction Hrs as [|r rs Hr _ IH]; intros t Hc; simpl; [done|].
  by apply IH, carry_out_changed.
Qed.

Lemma apply_record_changed s g (r : log_record) t : kept_trees bits levels s → changed s t →
  ProvedDisk.disk_blocks g = blocks → ProvedDiskInvariant.in_bounds g r → changed s (apply_record bits r t).
Proof.
  intros Hs Hc Hg Hr. assert (Forall (within blocks) (tree_records r)) as Hrs.
  { unfold ProvedDiskInvariant.in_bounds in Hr. rewrite Hg in Hr.
    destruct r as [lba ps|lba count|n|n|n|moves|bs|k d]; simpl in *; repeat constructor; try done.
    apply Forall_forall. intros r (b & -> & Hb)%elem_of_list_fmap. simpl. specialize (Hr b Hb). lia. }
  pose proof (carry_all_changed s _ t Hs Hc Hrs) as Hall. unfold apply_record. by destruct r.
Qed.

Lemma records_changed s g (rs : list (log_record * (nat * nat))) t : kept_trees bits levels s → changed s t →
  ProvedDisk.disk_blocks g = blocks → (∀ i e, rs !! i = Some e → ProvedDiskInvariant.in_bounds g e.1) →
  changed s (foldl (λ t e, apply_record bits e.1 t) t rs).
Proof.
  intros Hs Hc Hg Hrs. revert t Hc. induction rs as [|r rs IH]; intros t Hc; simpl; [done|].
  apply IH; [intros i; apply (Hrs (S i))|]. eapply apply_record_changed; [done..|]. by apply (Hrs 0).
Qed.

Lemma walk_changed s w n t t' : changed s t → walk w n t = Some t' → changed s t'.
Proof.
  intros Hc. unfold walk. destruct (reclaim w n (trees (views t))) as [s'|] eqn:E; simpl; [|done].
  intros [= <-]. apply (changed_more s t _ [Reclaim w n]); [done|by repeat constructor|].
  simpl. by rewrite E.
Qed.
End Keys.
End Shows.
