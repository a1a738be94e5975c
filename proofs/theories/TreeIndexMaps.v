(** Shared trees that represent the maps of the log-structured disk: a record on the trees is the record on
the maps. *)
From stdpp Require Import strings.
From LogDisk Require LogStructuredDiskReading.
From LogDisk Require Export TreeIndexLeaves.
Import LogStructuredDisk(record(..), maps, Maps, live_map, snap_maps, lba_map, remap, reachable, with_middle).
Notation disk_of_trees := SharedTreeLookup.disk.

Section maps.
Context (bits : nat).
Implicit Types (s : state) (d : disk_of_trees) (i : index) (m : maps).

(** What the trees stand for, path by path, is what the maps say, LBA by LBA; each snapshot has one name. *)
Record agrees (height : nat) d (names : gmap VirtualDisk.name nat) m : Prop := Agrees {
  agrees_live l : live_map m !! l = live d !! key bits height l;
  agrees_snap n v : names !! n = Some v → ∃ vm vd, snap_maps m !! n = Some vm ∧ snaps d !! v = Some vd ∧
    ∀ l, vm !! l = vd !! key bits height l;
  agrees_none n : names !! n = None → snap_maps m !! n = None;
  agrees_once n n' v : names !! n = Some v → names !! n' = Some v → n = n';
  agrees_named v : is_Some (snaps d !! v) → ∃ n, names !! n = Some v;
}.

Record represents i m : Prop := Represents {
  rep_chunks : sound_chunks bits (trees i) (next_mba i);
  rep_disk : ∃ d, stands_for (trees i) d ∧ agrees (height (trees i)) d (named i) m;
  rep_middle : middle i = LogStructuredDisk.middle m;
  rep_next : next_mba i = LogStructuredDisk.next_mba m;
}.

Lemma represents_nothing levels : represents (no_index levels) LogStructuredDisk.no_maps.
Proof.
  split; [apply create_chunks| |done|done]. exists (SharedTreeLookup.Disk 1 ∅ ∅).
  split; [by apply (stands_run levels [])|].
  split; intros; simpl in *; rewrite ?lookup_empty in *; try done. by destruct H.
Qed.

(** ** Reading *)

Lemma represents_live i m l : represents i m → mba_of bits i (epoch (trees i)) l = live_map m !! l.
Proof. intros [Hs (d & (_ & Hlive & _) & Hd) _ _]. rewrite (agrees_live _ _ _ _ Hd).
  apply Hlive, key_length. Qed.

Lemma represents_snap i m n : represents i m →
  match named i !! n, snap_maps m !! n with
  | Some v, Some vm => ∀ l, mba_of bits i v l = vm !! l
  | None, None => True
  | _, _ => False
  end.
Proof.
  intros [Hs (d & (_ & _ & _ & Hread) & Hd) _ _]. destruct (named i !! n) as [v|] eqn:Hv.
  - destruct (agrees_snap _ _ _ _ Hd _ _ Hv) as (vm & vd & -> & Hvd & Hl). intros l. rewrite Hl.
    eapply Hread; [done|apply key_length].
  - by rewrite (agrees_none _ _ _ _ Hd _ Hv).
Qed.

(** What a view refers to stands in a chunk of the trees. *)
Lemma represents_mapped i m x : represents i m → x ∈ reachable m → mapped (trees i) x.
Proof.
  intros Hi Hx. pose proof (chunks_inv _ _ _ (rep_chunks _ _ Hi)) as I.
  assert (∃ v l, mba_of bits i v l = Some x) as (v & l & Hl).
  { apply LogStructuredDiskReading.elem_of_reachable in Hx as [[l Hl]|(n & vm & l & Hn & Hl)].
    - exists (epoch (trees i)), l. by rewrite (represents_live _ m).
    - pose proof (represents_snap _ _ n Hi) as Hsnap. rewrite Hn in Hsnap.
      destruct (named i !! n) as [v|]; [|done]. exists v, l. by rewrite Hsnap. }
  destruct (read_chunk _ _ _ _ I (key_length _ _ _) Hl) as [c Hc]. by eexists _, _.
Qed.

(** Where no walk is left, views refer to every chunk. *)
Lemma represents_reachable i m x : represents i m → (∀ t, claims (trees i) !! Dying t = None) →
  mapped (trees i) x → x ∈ reachable m.
Proof.
  intros Hi Hnone (n & k & Hch). pose proof (rep_chunks _ _ Hi) as Hs. pose proof (chunks_inv _ _ _ Hs) as I.
  destruct (chunk_key _ _ _ Hs _ _ _ Hch) as [l ->]. destruct Hch as (_ & nd & Hn & Hp & <-).
  destruct (proj1 (reclaimed_exact _ I Hnone n)) as (v & c & Hv & [p Hreach]); [by eexists|].
  assert (mba_of bits i v l = Some (data nd)) as Hl.
  { unfold mba_of, read. rewrite Hv. simpl. destruct (inv_view I Hv) as (_ & _ & _ & rd & Hrd & Hroot & _).
    destruct (descend_place (inv_tidy I) _ _ _ _ _ Hreach Hrd Hn) as [Hp' _]. rewrite Hroot, Hp in Hp'.
    simpl in Hp'. by rewrite Hp', Hreach; simpl; rewrite Hn. }
  apply LogStructuredDiskReading.elem_of_reachable. destruct (decide (v = epoch (trees i))) as [->|Hne].
  - left. exists l. by rewrite <- (represents_live i).
  - right. pose proof (rep_disk _ _ Hi) as (d & (_ & _ & Hdom & _) & Hd).
    destruct (agrees_named _ _ _ _ Hd v) as [n' Hn']; [apply Hdom; by eauto|].
    pose proof (represents_snap _ _ n' Hi) as Hsnap. rewrite Hn' in Hsnap.
    destruct (snap_maps m !! n') as [vm|] eqn:Hvm; [|done]. exists n', vm, l. by rewrite <- Hsnap.
Qed.

(** ** Records *)

Lemma disk_writes h d lba x count :
  let d' := foldl (λ d a, disk_apply a d) d ((λ j, Write (key bits h (lba + j)) (x + j)) <$> seq 0 count) in
  now d' = now d ∧ snaps d' = snaps d ∧ (0 < h → ∀ l, live d' !! key bits h l =
    if decide (lba ≤ l < lba + count) then Some (x + (l - lba)) else live d !! key bits h l).
Proof.
  induction count as [|count IH]; cbv zeta in *.
  - split_and!; [done..|]. intros _ l. by rewrite decide_False by lia.
  - rewrite seq_S, fmap_app, foldl_app. simpl. destruct IH as (-> & -> & Hl). split_and!; [done..|].
    intros Hh l. destruct (decide (l = lba + count)) as [->|Hne].
    + rewrite lookup_insert, decide_True by lia. f_equal. lia.
    + rewrite lookup_insert_ne by (intros E; apply key_inj in E; [done|lia]). rewrite Hl by done.
      destruct (decide (lba ≤ l < lba + count)), (decide (lba ≤ l < lba + S count)); done || lia.
Qed.

Lemma disk_unmaps h d lba count :
  let d' := foldl (λ d a, disk_apply a d) d ((λ j, Unmap (key bits h (lba + j))) <$> seq 0 count) in
  now d' = now d ∧ snaps d' = snaps d ∧ (0 < h → ∀ l, live d' !! key bits h l =
    if decide (lba ≤ l < lba + count) then None else live d !! key bits h l).
Proof.
  induction count as [|count IH]; cbv zeta in *.
  - split_and!; [done..|]. intros _ l. by rewrite decide_False by lia.
  - rewrite seq_S, fmap_app, foldl_app. simpl. destruct IH as (-> & -> & Hl). split_and!; [done..|].
    intros Hh l. destruct (decide (l = lba + count)) as [->|Hne].
    + by rewrite lookup_delete, decide_True by lia.
    + rewrite lookup_delete_ne by (intros E; apply key_inj in E; [done|lia]). rewrite Hl by done.
      destruct (decide (lba ≤ l < lba + count)), (decide (lba ≤ l < lba + S count)); done || lia.
Qed.

Lemma map_seq_range lba x count l : (map_seq lba (seq x count) : gmap nat nat) !! l =
  if decide (lba ≤ l < lba + count) then Some (x + (l - lba)) else None.
Proof.
  rewrite lookup_map_seq. destruct (decide (lba ≤ l < lba + count)) as [Hl|Hl].
  - rewrite option_guard_True by lia. apply lookup_seq_lt. lia.
  - case_option_guard; [|done]. apply lookup_seq_ge. lia.
Qed.

Lemma proper_writes h lba x count : ∀ s j, sound_chunks bits s (x + j) → height s = h →
  all_proper bits s (x + j) ((λ j, Write (key bits h (lba + j)) (x + j)) <$> seq j count).
Proof.
  induction count as [|count IH]; intros s j Hs Hh; simpl; [done|].
  assert (proper bits s (x + j) (Write (key bits h (lba + j)) (x + j))) as Hp by (split; [done|rewrite Hh;
    eauto]).
  destruct (act_acted _ _ _ _ Hs Hp) as [Hs1 Hh1 _ _ _ _ _]. split; [done|].
  simpl in Hs1 |- *. rewrite Nat.add_1_r, <- Nat.add_succ_r in *. apply IH; [done|congruence].
Qed.

Lemma proper_unmaps h b lba count : ∀ s j, sound_chunks bits s b → height s = h →
  all_proper bits s b ((λ j, Unmap (key bits h (lba + j))) <$> seq j count).
Proof.
  induction count as [|count IH]; intros s j Hs Hh; simpl; [done|].
  assert (proper bits s b (Unmap (key bits h (lba + j)))) as Hp by (rewrite <- Hh; simpl; eauto).
  destruct (act_acted _ _ _ _ Hs Hp) as [Hs1 Hh1 _ _ _ _ _]. split; [done|].
  simpl in Hs1 |- *. rewrite Nat.add_0_r in *. apply IH; [done|congruence].
Qed.

Lemma mbas_of_writes h lba x count : ∀ j,
  mbas_taken ((λ j, Write (key bits h (lba + j)) (x + j)) <$> seq j count) = count.
Proof. induction count as [|count IH]; intros j; simpl; [done|]. by rewrite IH. Qed.

Lemma mbas_of_unmaps h lba count : ∀ j, mbas_taken ((λ j, Unmap (key bits h (lba + j))) <$> seq j count) = 0.
Proof. induction count as [|count IH]; intros j; simpl; [done|]. by rewrite IH. Qed.

(** A snapshot takes a name that is free. *)
Definition names_fresh {V} (r : record V) i : Prop :=
  match r with RSnapshot n => named i !! n = None | _ => True end.

Lemma actions_proper {V} (r : record V) i m : represents i m →
  all_proper bits (trees i) (next_mba i) (actions_of bits r i) ∧ mbas_taken (actions_of bits r i) =
    mbas_used r.
Proof.
  intros Hi. pose proof (rep_chunks _ _ Hi) as Hs.
  assert (∀ n v, named i !! n = Some v → v ≠ epoch (trees i) ∧ is_Some (claims (trees i) !! View v)) as Hview.
  { intros n v Hn. destruct (rep_disk _ _ Hi) as (d & (_ & _ & Hdom & _) & Hd).
    destruct (agrees_snap _ _ _ _ Hd _ _ Hn) as (_ & vd & _ & Hvd & _). apply Hdom. eauto. }
  destruct r as [lba data|lba count|n|n|n]; simpl.
  - split; [|apply mbas_of_writes]. pose proof (proper_writes (height (trees i)) lba (next_mba i) (length
    data)
      (trees i) 0) as Hp. rewrite Nat.add_0_r in Hp. by apply Hp.
  - split; [|apply mbas_of_unmaps]. by apply proper_unmaps.
  - done.
  - destruct (named i !! n) as [v|] eqn:Hn; simpl; [|done]. by split_and!; try eapply Hview.
  - destruct (named i !! n) as [v|] eqn:Hn; simpl; [|done]. by split_and!; try eapply Hview.
Qed.

Lemma agrees_record {V} (r : record V) i m d : represents i m → names_fresh r i →
  stands_for (trees i) d → agrees (height (trees i)) d (named i) m →
  agrees (height (trees i)) (foldl (λ d a, disk_apply a d) d (actions_of bits r i)) (names_after r i) (remap
    r m).
Proof.
  intros Hi Hfresh (Hnow & _ & Hdom & _) Hd. pose proof Hd as [Hl Hsn Hnone Honce Hnamed].
  pose proof (inv_height (chunks_inv _ _ _ (rep_chunks _ _ Hi))) as Hh.
  pose proof (rep_next _ _ Hi) as Hnext.
  destruct r as [lba data|lba count|n|n|n]; simpl.
  - pose proof (disk_writes (height (trees i)) d lba (next_mba i) (length data)) as Hw.
    simpl in Hw. destruct Hw as (_ & Hsn' & Hl'). specialize (Hl' Hh).
    split; rewrite ?Hsn'; simpl; try done. intros l. rewrite Hl', lookup_union, map_seq_range, Hnext, Hl.
    by destruct (decide _), (live d !! _).
  - pose proof (disk_unmaps (height (trees i)) d lba count) as Hw.
    simpl in Hw. destruct Hw as (_ & Hsn' & Hl'). specialize (Hl' Hh).
    split; rewrite ?Hsn'; simpl; try done. intros l. rewrite Hl'. destruct (decide (lba ≤ l < lba + count)).
    + apply map_filter_lookup_None_2. right. intros x _. simpl. lia.
    + rewrite <- Hl. destruct (live_map m !! l) eqn:E.
      * by apply map_filter_lookup_Some_2.
      * apply map_filter_lookup_None_2. by left.
  - assert (snaps d !! epoch (trees i) = None) as Hno.
    { destruct (snaps d !! epoch (trees i)) eqn:E; [|done]. destruct (Hdom (epoch (trees i))) as [[? _] _];
      eauto. done. }
    assert (∀ n' v, named i !! n' = Some v → v ≠ epoch (trees i)) as Hother.
    { intros n' v Hn' ->. destruct (Hsn _ _ Hn') as (_ & ? & _ & ? & _). congruence. }
    rewrite Hnow. split; simpl; [done|..].
    + intros n' v [[<- <-]|[Hne Hn']]%lookup_insert_Some.
      * exists (live_map m), (live d). by rewrite !lookup_insert.
      * rewrite lookup_insert_ne by done. rewrite lookup_insert_ne by (intros E;
        by eapply Hother). by apply Hsn.
    + intros n' [Hn' Hne]%lookup_insert_None. rewrite lookup_insert_ne by done. by apply Hnone.
    + intros n1 n2 v [[<- <-]|[_ H1]]%lookup_insert_Some [[<- Hv]|[_ H2]]%lookup_insert_Some; try done.
      * by destruct (Hother _ _ H2).
      * subst v. by destruct (Hother _ _ H1).
      * by eapply Honce.
    + intros v [vm [[<- _]|[Hne Hv]]%lookup_insert_Some]; [exists n; by rewrite lookup_insert|].
      destruct (Hnamed v) as [n' Hn']; [by eexists|]. exists n'. rewrite lookup_insert_ne; [done|].
      intros <-. simpl in Hfresh. congruence.
  - destruct (named i !! n) as [v|] eqn:Hn; simpl.
    + split; simpl; [done|..].
      * intros n' v' [Hne Hn']%lookup_delete_Some. rewrite lookup_delete_ne by done.
        rewrite lookup_delete_ne by (intros ->; by eapply Hne, Honce). by apply Hsn.
      * intros n'. destruct (decide (n = n')) as [->|]; [by rewrite !lookup_delete|].
        rewrite !lookup_delete_ne by done. apply Hnone.
      * intros n1 n2 v' [_ ?]%lookup_delete_Some [_ ?]%lookup_delete_Some. by eapply Honce.
      * intros v' [vm [Hne Hv']%lookup_delete_Some]. destruct (Hnamed v') as [n' Hn']; [by eexists|].
        exists n'. rewrite lookup_delete_ne; [done|]. intros <-. congruence.
    + rewrite (delete_notin (named i)) by done.
      assert (delete n (snap_maps m) = snap_maps m) as -> by (apply delete_notin; by apply Hnone).
      by destruct m.
  - destruct (named i !! n) as [v|] eqn:Hn; simpl.
    + destruct (Hsn _ _ Hn) as (vm & vd & Hvm & Hvd & Hlv). rewrite Hvm, Hvd. simpl. by split.
    + rewrite (Hnone _ Hn). simpl. by destruct m.
Qed.

(** A record on the trees is the record on the maps; an MBA that is dropped no view refers to. *)
Lemma represents_record {V} (r : record V) i m : represents i m → names_fresh r i →
  let '(i', xs) := reindex bits r i in represents i' (remap r m) ∧ spares_old (trees i) (trees i') ∧
    (∀ x, x ∈ xs → ¬ mapped (trees i') x) ∧
    (∀ x, mapped (trees i) x ∨ next_mba i ≤ x < next_mba i' → mapped (trees i') x ∨ x ∈ xs).
Proof.
  intros Hi Hfresh. pose proof (rep_chunks _ _ Hi) as Hs. destruct (actions_proper r _ _ Hi) as [Hp Hused].
  pose proof (acts_acted _ _ _ _ Hs Hp) as [Hs' Hh' Hd' Hx' Hk' _ Ho']. unfold reindex.
  destruct (acts (trees i) (actions_of bits r i)) as [s' xs]. simpl in *. rewrite Hused in *.
  split_and!; [|done|intros x Hx; by apply (Hx' x)|done]. destruct (rep_disk _ _ Hi) as (d & Hd & Ha). split;
    simpl; [done|..].
  - eexists. split; [by apply Hd'|]. rewrite Hh'. by apply agrees_record.
  - rewrite LogStructuredDiskReading.middle_remap. apply (rep_middle _ _ Hi).
  - rewrite (rep_next _ _ Hi). destruct r; simpl; done || lia.
Qed.

(** ** What is not a record *)

(** A checkpoint ends an epoch. *)
Lemma represents_checkpoint i m : represents i m → represents (with_trees (act Checkpoint (trees i)) i) m ∧
  (∀ x, mapped (act Checkpoint (trees i)) x ↔ mapped (trees i) x) ∧
  nodes (act Checkpoint (trees i)) = nodes (trees i) ∧
  epoch (act Checkpoint (trees i)) = S (epoch (trees i)) ∧ next (act Checkpoint (trees i)) = next (trees i).
Proof.
  intros Hi. pose proof (rep_chunks _ _ Hi) as Hs.
  destruct (act_acted _ _ _ Checkpoint Hs I) as [Hs' Hh' Hd' Hx' Hk' Hn' _]. simpl in *. rewrite Nat.add_0_r
    in *.
  split_and!.
  - destruct (rep_disk _ _ Hi) as (d & Hd & [? ? ? ? ?]). split; simpl; [done| |apply Hi..].
    exists (disk_apply Checkpoint d). split; [by apply Hd'|]. rewrite Hh'. by split.
  - intros x. split; [intros [?|?]%Hn'; [done|lia]|intros Hx].
    destruct (Hk' x (or_introl Hx)) as [?|?%elem_of_nil]; done.
  - unfold act. simpl. by destruct (inv_live (chunks_inv _ _ _ Hs)) as [l ->].
  - unfold act. simpl. by destruct (inv_live (chunks_inv _ _ _ Hs)) as [l ->].
  - unfold act. simpl. by destruct (inv_live (chunks_inv _ _ _ Hs)) as [l ->].
Qed.

Lemma represents_reclaim i m t n s' : represents i m → reclaim t n (trees i) = Some s' →
  represents (with_trees s' i) m ∧ spares_old (trees i) s' ∧ (∀ x, x ∈ freed_mba (trees i) s' n → ¬ mapped
    s' x) ∧
    ∀ x, mapped (trees i) x → mapped s' x ∨ x ∈ freed_mba (trees i) s' n.
Proof.
  intros Hi Ha. destruct (reclaim_acted _ _ _ _ _ _ (rep_chunks _ _ Hi) Ha) as [Hs' Hh' Hd' Hx' Hk' _ Ho'].
  split_and!; [|done|intros x Hx; by apply (Hx' x)|intros x Hx; by apply Hk'; left].
  destruct (rep_disk _ _ Hi) as (d & Hd & Hagree). split; simpl; [done| |apply Hi..].
  exists d. rewrite Hh'. split; [by apply (Hd' d)|done].
Qed.

Lemma represents_middle i m f : represents i m →
  represents (Index (trees i) (named i) (f (middle i)) (next_mba i)) (with_middle m (f
    (LogStructuredDisk.middle m))).
Proof. intros [Hs (d & Hd & [? ? ? ? ?]) Hmid Hnext]. split; simpl; [done| |by rewrite Hmid|done].
  exists d. by split. Qed.
End maps.
