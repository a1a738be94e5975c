(** What each log record makes of the maps is what the contract makes of the disk; what is collected is free.
*)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant.

(** ** Parts of the maps *)

Lemma lookup_put_from k xs m i :
  put_from k xs m !! i = if decide (k ≤ i < k + length xs) then xs !! (i - k) else m !! i.
Proof.
  revert k m. induction xs as [|x xs IH]; intros k m; simpl; [by rewrite decide_False by lia|].
  rewrite IH. destruct (decide (i = k)) as [->|].
  - rewrite decide_False, decide_True by lia. by rewrite lookup_insert, Nat.sub_diag.
  - destruct (decide (k ≤ i < k + S (length xs))).
    + rewrite decide_True by lia. replace (i - k) with (S (i - S k)) by lia. done.
    + rewrite decide_False by lia. by rewrite lookup_insert_ne.
Qed.

Lemma lookup_remove_from k count m i :
  remove_from k count m !! i = if decide (k ≤ i < k + count) then None else m !! i.
Proof.
  revert k m. induction count as [|count IH]; intros k m; simpl; [by rewrite decide_False by lia|].
  rewrite IH. destruct (decide (i = k)) as [->|].
  - rewrite decide_False, decide_True by lia. apply lookup_delete.
  - destruct (decide (k ≤ i < k + S count)).
    + by rewrite decide_True by lia.
    + rewrite decide_False by lia. by rewrite lookup_delete_ne.
Qed.

Lemma lookup_relocate moves mid x p :
  relocate moves mid !! x = Some p → (x, p) ∈ moves ∨ x ∉ moves.*1 ∧ mid !! x = Some p.
Proof.
  induction moves as [|[x' p'] moves IH]; simpl; [right; split; [apply not_elem_of_nil|done]|].
  destruct (decide (x = x')) as [->|].
  - rewrite lookup_insert. intros [= ->]. left. constructor.
  - rewrite lookup_insert_ne by done. intros [?|[??]]%IH; [left; by constructor|right].
    split; [by apply not_elem_of_cons|done].
Qed.

Lemma relocate_some moves mid x : is_Some (mid !! x) → is_Some (relocate moves mid !! x).
Proof.
  intros Hx. induction moves as [|[x' p'] moves IH]; simpl; [done|].
  destruct (decide (x = x')) as [->|]; [rewrite lookup_insert; eauto|by rewrite lookup_insert_ne].
Qed.

Lemma take_free_some places fr fr' : take_free places fr = Some fr' →
  NoDup places ∧ (∀ p, p ∈ places → is_Some (fr !! p) ∧ fr' !! p = None) ∧
  ∀ p, fr !! p = None → fr' !! p = None.
Proof.
  revert fr. induction places as [|p places IH]; simpl; intros fr.
  { intros [= <-]. split_and!; [constructor| |done]. by intros ? ?%elem_of_nil. }
  destruct (fr !! p) as [[]|] eqn:Hp; [|done]. intros (Hdup&Hin&Hout)%IH. split_and!.
  - constructor; [|done]. intros (Hsome&_)%Hin. rewrite lookup_delete in Hsome. by destruct Hsome.
  - intros p' [->|Hp']%elem_of_cons.
    + split; [by rewrite Hp|]. apply Hout, lookup_delete.
    + destruct (Hin _ Hp') as [Hsome ?]. split; [|done]. destruct (decide (p' = p)) as [->|].
      * by rewrite Hp.
      * by rewrite lookup_delete_ne in Hsome.
  - intros p' Hp'. apply Hout. destruct (decide (p' = p)) as [->|]; [by rewrite lookup_delete|].
    by rewrite lookup_delete_ne.
Qed.

(** ** What is in use *)

Lemma foldl_keeps {E A} (h : A → E → A) (R : A → Prop) es a :
  (∀ a e, R a → R (h a e)) → R a → R (foldl h a es).
Proof. intros Hh. revert a. induction es; simpl; auto. Qed.

Lemma foldl_in {E A} (h : A → E → A) (R : A → Prop) e es a :
  e ∈ es → (∀ a, R (h a e)) → (∀ a e, R a → R (h a e)) → R (foldl h a es).
Proof.
  intros He Hat Hh. revert a. induction He; intros a; simpl; [by apply foldl_keeps|auto].
Qed.

Lemma fold_views_in {A} (f : nat → A → A) (R : nat → A → Prop) m x a :
  (∀ x a, R x (f x a)) → (∀ x y a, R x a → R x (f y a)) → reachable m x → R x (fold_views f a m).
Proof.
  intros Hat Hafter (vm&l&Hvm&Hx%elem_of_map_to_list).
  assert (∀ vm a, R x a → R x (fold_view f a vm)) as Hkeep.
  { intros vm' a' Ha'. unfold fold_view. apply (foldl_keeps _ (R x)); auto. }
  assert (∀ a, R x (fold_view f a vm)) as Hview.
  { intros a'. unfold fold_view. apply (foldl_in _ (R x) (l, x)); auto. }
  unfold fold_views. destruct Hvm as [->|[n Hn%elem_of_map_to_list]].
  - apply (foldl_keeps _ (R x)); auto.
  - apply (foldl_in _ (R x) (n, vm)); auto.
Qed.

Lemma used_places_all m kept x p : reachable m x → middle m !! x = Some p → is_Some (used_places m kept !! p).
Proof.
  intros Hx. revert p. unfold used_places.
  apply fold_views_in with (R := λ x u, ∀ p, middle m !! x = Some p → is_Some (u !! p)); [| |done].
  - intros x' u p Hp. rewrite Hp, lookup_insert. eauto.
  - intros x' y u Hu p Hp%Hu. destruct (middle m !! y) as [p'|]; [|done].
    destruct (decide (p = p')) as [->|]; [rewrite lookup_insert; eauto|by rewrite lookup_insert_ne].
Qed.

Lemma used_places_kept m kept p : p ∈ kept → is_Some (used_places m kept !! p).
Proof.
  intros Hp. unfold used_places. set (R := λ u : gmap nat (), is_Some (u !! p)).
  set (use := λ x (u : gmap nat ()), match middle m !! x with Some p => <[p := ()]> u | None => u end).
  assert (∀ x u, R u → R (use x u)) as Huse.
  { intros x u Hu. unfold use, R in *. destruct (middle m !! x) as [p'|]; [|done].
    destruct (decide (p = p')) as [->|]; [rewrite lookup_insert; eauto|by rewrite lookup_insert_ne]. }
  assert (∀ vm u, R u → R (fold_view use u vm)) as Hview.
  { intros vm u Hu. unfold fold_view. apply (foldl_keeps _ R); auto. }
  change (R (fold_views use (foldr (λ p u, <[p := ()]> u) ∅ kept) m)). unfold fold_views.
  apply (foldl_keeps _ R); [auto|]. apply Hview. unfold R. clear -Hp.
  induction Hp as [p kept|p p' kept _ IH]; simpl; [rewrite lookup_insert; eauto|].
  destruct (decide (p = p')) as [->|]; [rewrite lookup_insert; eauto|by rewrite lookup_insert_ne].
Qed.

Lemma used_middle_all m x p : reachable m x → middle m !! x = Some p → used_middle m !! x = Some p.
Proof.
  intros Hx. revert p. unfold used_middle.
  apply fold_views_in with (R := λ x u, ∀ p, middle m !! x = Some p → u !! x = Some p); [| |done].
  - intros x' u p Hp. by rewrite Hp, lookup_insert.
  - intros x' y u Hu p Hp. destruct (middle m !! y) as [p'|] eqn:Hp'; [|by apply Hu].
    destruct (decide (x' = y)) as [->|]; [rewrite lookup_insert; congruence|].
    rewrite lookup_insert_ne by done. by apply Hu.
Qed.

Lemma used_middle_some m x p : used_middle m !! x = Some p → middle m !! x = Some p.
Proof.
  revert x p. set (R := λ u : gmap nat nat, ∀ x p, u !! x = Some p → middle m !! x = Some p).
  set (use := λ x (u : gmap nat nat), match middle m !! x with Some p => <[x := p]> u | None => u end).
  assert (∀ x u, R u → R (use x u)) as Huse.
  { intros x u Hu. unfold use. destruct (middle m !! x) as [p|] eqn:Hx; [|done]. intros x' p'.
    destruct (decide (x' = x)) as [->|]; [rewrite lookup_insert; by intros [= <-]|].
    rewrite lookup_insert_ne by done. apply Hu. }
  assert (∀ vm u, R u → R (fold_view use u vm)) as Hview.
  { intros vm u Hu. unfold fold_view. apply (foldl_keeps _ R); auto. }
  change (R (fold_views use ∅ m)). unfold fold_views. apply (foldl_keeps _ R); [auto|].
  apply Hview. intros ??. by rewrite lookup_empty.
Qed.

Lemma unused_below used n found p : is_Some (unused used n found !! p) → is_Some (found !! p) ∨ p < n.
Proof.
  revert found. induction n as [|n IH]; intros found; simpl; [by left|]. intros [Hp|?]%IH; [|right; lia].
  destruct (used !! n); [by left|]. destruct (decide (p = n)) as [->|]; [right; lia|].
  rewrite lookup_insert_ne in Hp by done. by left.
Qed.

Lemma collected_below g m kept p : is_Some (collected g m kept !! p) → p < data_blocks g.
Proof. intros [[? Hp]|?]%unused_below; [by rewrite lookup_empty in Hp|done]. Qed.

Lemma unused_free used n found p :
  is_Some (used !! p) → found !! p = None → unused used n found !! p = None.
Proof.
  intros [? Hp]. revert found. induction n as [|n IH]; simpl; intros found Hfound; [done|]. apply IH.
  destruct (used !! n) eqn:Hn; [done|]. rewrite lookup_insert_ne; [done|]. congruence.
Qed.

Lemma collected_kept g m kept p : p ∈ kept → collected g m kept !! p = None.
Proof. intros Hp. apply unused_free; [by apply used_places_kept|apply lookup_empty]. Qed.

Lemma collected_well_formed g m kept fr : well_formed m fr → well_formed m (collected g m kept).
Proof.
  intros Hwf x Hx. destruct (Hwf x Hx) as (?&p&Hp&_). split; [done|]. exists p. split; [done|].
  apply unused_free; [by eapply used_places_all|apply lookup_empty].
Qed.

Section Records.
Context `{blocks}.
Implicit Types f : contents block.

Lemma well_formed_less m fr fr' : (∀ p, fr !! p = None → fr' !! p = None) → well_formed m fr →
  well_formed m fr'.
Proof. intros Hfr Hwf x Hx. destruct (Hwf x Hx) as (?&p&?&?). eauto 6. Qed.

(** Views stay, though the middle map changes where nothing refers to. *)
Lemma value_same g f f' m m' vm l :
  is_view m vm → (∀ x, reachable m x → middle m' !! x = middle m !! x) →
  (∀ a, used_address g m a → f' a = f a) → value g f' m' vm l = value g f m vm l.
Proof.
  intros Hvm Hmid Hf. rewrite <-(value_frame g f f' m vm l) by done. unfold value, place_of.
  destruct (vm !! l) as [x|] eqn:Hx; simpl; [|done]. rewrite Hmid; [done|]. by exists vm, l.
Qed.

Lemma write_applied g f f' m fr fr' d lba places data :
  well_formed m fr → agrees g f m d → take_free places fr = Some fr' → length places = length data →
  (∀ p b, (p, b) ∈ zip places data → f' (data_address g p) = b) → (∀ a, used_address g m a → f' a = f a) →
  well_formed (apply (LogWrite lba places) m) fr' ∧
    agrees g f' (apply (LogWrite lba places) m) (written d lba data).
Proof.
  intros Hwf [Hlive Hsnaps] (Hdup&Hin&Hout)%take_free_some Hlen Hnew Hf.
  assert (∀ x, reachable m x → middle (apply (LogWrite lba places) m) !! x = middle m !! x) as Hmid.
  { intros x Hx. destruct (Hwf x Hx) as [? _]. simpl. by rewrite lookup_put_from, decide_False by lia. }
  assert (∀ i p, places !! i = Some p → middle (apply (LogWrite lba places) m) !! (next_mba m + i) = Some p)
    as Hfresh.
  { intros i p Hi. simpl. rewrite lookup_put_from, decide_True by (apply lookup_lt_Some in Hi; lia).
    by replace (next_mba m + i - next_mba m) with i by lia. }
  split.
  - intros x (vm&l&Hvm&Hx).
    assert (reachable m x ∨ ∃ i, i < length places ∧ x = next_mba m + i) as [Hold|(i&Hi&->)].
    { destruct Hvm as [->|[n Hn]]; [|left; exists vm, l; split; [right; eauto|done]]. simpl in Hx.
      rewrite lookup_put_from, seq_length in Hx. destruct (decide _) as [Hl|].
      - apply lookup_seq in Hx as [-> ?]. right. eauto.
      - left. exists (live_map m), l. split; [by left|done]. }
    + rewrite Hmid by done. destruct (Hwf x Hold) as (?&p&?&?). split; [simpl; lia|]. eauto.
    + split; [simpl; lia|]. destruct (lookup_lt_is_Some_2 places i Hi) as [p Hp]. exists p.
      split; [by apply Hfresh|]. eapply Hin, elem_of_list_lookup_2; done.
  - split.
    + intros l. simpl. unfold VirtualDisk.data_at. destruct (decide (lba ≤ l < lba + length data)) as [Hl|Hl].
      * rewrite decide_True by lia. unfold value, place_of. simpl. rewrite lookup_put_from, seq_length, Hlen.
        rewrite decide_True by done. rewrite lookup_seq_lt by lia. simpl.
        destruct (lookup_lt_is_Some_2 places (l - lba)) as [p Hp]; [lia|].
        destruct (lookup_lt_is_Some_2 data (l - lba)) as [b Hb]; [lia|].
        specialize (Hfresh _ _ Hp). simpl in Hfresh. rewrite Hfresh, Hb. simpl. symmetry. apply Hnew.
        apply elem_of_list_lookup_2 with (l - lba). by rewrite lookup_zip_with, Hp, Hb.
      * transitivity (live d l).
        { destruct (decide (lba ≤ l)); [|done]. by rewrite lookup_ge_None_2 by lia. }
        rewrite Hlive. rewrite <-(value_same g f f' m (apply (LogWrite lba places) m)); [|by left|done|done].
        unfold value, place_of. simpl. by rewrite (lookup_put_from lba), seq_length, decide_False by lia.
    + intros n. simpl. specialize (Hsnaps n). destruct (snap_maps m !! n) as [vm|] eqn:Hvm;
        inversion_clear Hsnaps as [? v Hv|]; constructor.
      intros l. rewrite Hv. symmetry. apply value_same; [right; eauto|done|done].
Qed.

(** Disks that read the same. *)
Definition alike (d d' : disk block) : Prop := (∀ l, live d l = live d' l) ∧ snaps d = snaps d'.

Definition written_all (d : disk block) (ws : list (nat * list block)) : disk block :=
  foldl (λ d w, written d w.1 w.2) d ws.
Definition written_singly (d : disk block) (bs : list (nat * block)) : disk block :=
  foldl (λ d b, written d b.1 [b.2]) d bs.

Lemma agrees_alike g f m d d' : alike d d' → agrees g f m d → agrees g f m d'.
Proof. intros [Hlive Hsnaps] [Hl Hs]. split; [intros l; by rewrite <-Hlive|by rewrite <-Hsnaps]. Qed.

(** A write of several blocks is a write of each. *)
Lemma write_is_singly lba data d d' : alike d d' →
  alike (written_singly d (zip (seq lba (length data)) data)) (written d' lba data).
Proof.
  revert lba d d'. induction data as [|b data IH]; intros lba d d' [Hlive Hsnaps].
  - split; [|done]. intros l. simpl. rewrite Hlive. unfold VirtualDisk.data_at. by destruct (decide _).
  - destruct (IH (S lba) (written d lba [b]) (written d' lba [b])) as [Hl Hs].
    { split; [|done]. intros l. simpl. by rewrite Hlive. }
    split; [|done]. intros l. etransitivity; [exact (Hl l)|]. simpl. unfold VirtualDisk.data_at.
    repeat case_decide; try lia; [|replace l with lba by lia; by rewrite Nat.sub_diag|done].
    destruct (l - lba) as [|n] eqn:Hn; [lia|]. simpl. by replace (l - S lba) with n by lia.
Qed.

Lemma writes_are_singly ws d d' : alike d d' → alike (written_singly d (blocks_of ws)) (written_all d' ws).
Proof.
  revert d d'. induction ws as [|[lba data] ws IH]; intros d d' Hd; [done|].
  unfold written_singly, blocks_of. simpl. rewrite foldl_app. by apply IH, write_is_singly.
Qed.

Lemma blocks_in_range n ws l : Forall (λ w, fits n w.1 (length w.2)) ws → l ∈ (blocks_of ws).*1 → l < n.
Proof.
  intros Hws Hl. apply elem_of_list_fmap in Hl as ([l' b]&->&Hl).
  apply elem_of_list_In in Hl. unfold blocks_of in Hl. apply in_concat in Hl as (xs&Hxs&Hl).
  apply elem_of_list_In, elem_of_list_fmap in Hxs as (w&->&Hw). apply elem_of_list_In in Hl.
  apply elem_of_zip_l, elem_of_seq in Hl. rewrite Forall_forall in Hws. destruct (Hws w Hw). simpl. lia.
Qed.

(** Blocks that are already in their places are mapped one after the other. *)
Lemma group_applied g f bs places m fr fr' d :
  well_formed m fr → agrees g f m d → take_free places fr = Some fr' → length places = length bs →
  (∀ p b, (p, b) ∈ zip places bs.*2 → f (data_address g p) = b) →
  well_formed (apply (LogGroup (zip bs.*1 places)) m) fr' ∧
    agrees g f (apply (LogGroup (zip bs.*1 places)) m) (written_singly d bs).
Proof.
  revert places m fr d. induction bs as [|[l b] bs IH]; intros [|p places] m fr d Hwf Hag Hfree Hlen Hnew;
    simplify_eq/=; [done|].
  destruct (fr !! p) as [[]|] eqn:Hp; [|done].
  destruct (write_applied g f f m fr (delete p fr) d l [p] [b]) as [Hwf1 Hag1]; try done.
  - simpl. by rewrite Hp.
  - intros p' b' [= -> ->]%elem_of_list_singleton. apply Hnew. by left.
  - apply (IH places (map_write l [p] m) (delete p fr) (written d l [b])); try done.
    intros p' b' Hin. apply Hnew. by right.
Qed.

(** A record that leaves the middle map alone and adds no reference. *)
Lemma well_formed_fewer m m' fr : next_mba m' = next_mba m → middle m' = middle m →
  (∀ x, reachable m' x → reachable m x) → well_formed m fr → well_formed m' fr.
Proof. intros Hnext Hmid Hless Hwf x Hx%Hless. rewrite Hnext, Hmid. by apply Hwf. Qed.

Lemma unmap_applied g f m fr d lba count : well_formed m fr → agrees g f m d →
  well_formed (apply (LogUnmap lba count) m) fr ∧
    agrees g f (apply (LogUnmap lba count) m) (unmapped d lba count).
Proof.
  intros Hwf [Hlive Hsnaps]. split.
  - apply (well_formed_fewer m); [done|done| |done]. intros x (vm&l&[->|[n Hn]]&Hx).
    + simpl in Hx. rewrite lookup_remove_from in Hx. destruct (decide _); [done|].
      exists (live_map m), l. split; [by left|done].
    + exists vm, l. split; [right; eauto|done].
  - split; [|exact Hsnaps]. intros l. unfold value, place_of. simpl. rewrite lookup_remove_from.
    unfold data_at.
    destruct (decide (lba ≤ l < lba + count)).
    + rewrite decide_True by lia. by rewrite lookup_replicate_2 by lia.
    + transitivity (live d l); [|by rewrite Hlive].
      destruct (decide (lba ≤ l)); [|done]. rewrite lookup_ge_None_2; [done|]. rewrite replicate_length. lia.
Qed.

Lemma snapshot_applied g f m fr d n : well_formed m fr → agrees g f m d →
  well_formed (apply (LogSnapshot n) m) fr ∧ agrees g f (apply (LogSnapshot n) m) (snapshotted d n).
Proof.
  intros Hwf [Hlive Hsnaps]. split.
  - apply (well_formed_fewer m); [done|done| |done]. intros x (vm&l&Hvm&Hx). exists vm, l. split; [|done].
    destruct Hvm as [->|[n' Hn]]; [by left|]. simpl in Hn. apply lookup_insert_Some in Hn as [[<- <-]|[? Hn]].
    + by left.
    + right. eauto.
  - split; [done|]. intros n'. simpl. destruct (decide (n' = n)) as [->|].
    + rewrite !lookup_insert. by constructor.
    + rewrite !lookup_insert_ne by done. apply Hsnaps.
Qed.

Lemma delete_applied g f m fr d n : well_formed m fr → agrees g f m d →
  well_formed (apply (LogDelete n) m) fr ∧ agrees g f (apply (LogDelete n) m) (deleted d n).
Proof.
  intros Hwf [Hlive Hsnaps]. split.
  - apply (well_formed_fewer m); [done|done| |done]. intros x (vm&l&Hvm&Hx). exists vm, l. split; [|done].
    destruct Hvm as [->|[n' Hn]]; [by left|]. simpl in Hn. apply lookup_delete_Some in Hn as [? Hn]. right.
      eauto.
  - split; [done|]. intros n'. simpl. destruct (decide (n' = n)) as [->|].
    + rewrite !lookup_delete. constructor.
    + rewrite !lookup_delete_ne by done. apply Hsnaps.
Qed.

Lemma revert_applied g f m fr d n : well_formed m fr → agrees g f m d →
  well_formed (apply (LogRevert n) m) fr ∧ agrees g f (apply (LogRevert n) m) (reverted d n).
Proof.
  intros Hwf [Hlive Hsnaps]. specialize (Hsnaps n) as Hn. split.
  - apply (well_formed_fewer m); [done|done| |done]. intros x (vm&l&Hvm&Hx). exists vm, l. split; [|done].
    destruct Hvm as [->|?]; [|by right]. simpl.
    destruct (snap_maps m !! n) as [vm|] eqn:Hvm; simpl; [|by left]. right. eauto.
  - split; [|exact Hsnaps]. simpl. destruct (snap_maps m !! n); inversion_clear Hn; simpl; done.
Qed.

Lemma move_applied g f f' m fr fr' d moves :
  well_formed m fr → agrees g f m d → take_free moves.*2 fr = Some fr' →
  (∀ x p, (x, p) ∈ moves → ∃ p0, middle m !! x = Some p0 ∧ f' (data_address g p) = f (data_address g p0)) →
  (∀ a, used_address g m a → f' a = f a) →
  well_formed (apply (LogMove moves) m) fr' ∧ agrees g f' (apply (LogMove moves) m) d.
Proof.
  intros Hwf [Hlive Hsnaps] (Hdup&Hin&Hout)%take_free_some Hnew Hf. split.
  - intros x (vm&l&Hvm&Hx). destruct (Hwf x) as (?&p&Hp&Hfree); [by exists vm, l|]. split; [done|]. simpl.
    destruct (relocate_some moves (middle m) x) as [p' Hp']; [eauto|]. exists p'. split; [done|].
    apply lookup_relocate in Hp' as [Hmove|[_ ?]].
    + apply Hin, elem_of_list_fmap. by exists (x, p').
    + simplify_eq. by apply Hout.
  - assert (∀ vm l, is_view m vm → value g f' (apply (LogMove moves) m) vm l = value g f m vm l) as Hvalue.
    { intros vm l Hvm. unfold value, place_of. simpl. destruct (vm !! l) as [x|] eqn:Hx; simpl; [|done].
      destruct (Hwf x) as (?&p&Hp&Hfree); [by exists vm, l|]. rewrite Hp.
      destruct (relocate_some moves (middle m) x) as [p' Hp']; [eauto|]. rewrite Hp'.
      apply lookup_relocate in Hp' as [(p0&?&Hp0)%Hnew|[_ ?]]; simplify_eq; [done|].
      apply Hf. exists x, p. split; [by exists vm, l|done]. }
    split.
    + intros l. rewrite Hlive. symmetry. apply Hvalue. by left.
    + intros n. simpl. specialize (Hsnaps n). destruct (snap_maps m !! n) as [vm|] eqn:Hvm;
        inversion_clear Hsnaps as [? v Hv|]; constructor.
      intros l. rewrite Hv. symmetry. apply Hvalue. right. eauto.
Qed.

(** A checkpoint forgets the MBAs that nothing refers to. *)
Definition forgotten (m : maps) : maps := Maps (live_map m) (snap_maps m) (used_middle m) (next_mba m).

Lemma forgotten_well_formed m fr : well_formed m fr → well_formed (forgotten m) fr.
Proof. intros Hwf x Hx. destruct (Hwf x Hx) as (?&p&?&?). split; [done|]. exists p. split;
  [|done]. by apply used_middle_all. Qed.

Lemma forgotten_agrees g f m fr d : well_formed m fr → agrees g f m d → agrees g f (forgotten m) d.
Proof.
  intros Hwf [Hlive Hsnaps].
  assert (∀ vm l, is_view m vm → value g f (forgotten m) vm l = value g f m vm l) as Hvalue.
  { intros vm l Hvm. apply value_same; [done| |done]. intros x Hx. destruct (Hwf x Hx) as (?&p&Hp&?). simpl.
    rewrite Hp. by apply used_middle_all. }
  split.
  - intros l. rewrite Hlive. symmetry. apply Hvalue. by left.
  - intros n. simpl. specialize (Hsnaps n). destruct (snap_maps m !! n) as [vm|] eqn:Hvm;
      inversion_clear Hsnaps as [? v Hv|]; constructor.
    intros l. rewrite Hv. symmetry. apply Hvalue. right. eauto.
Qed.

End Records.
