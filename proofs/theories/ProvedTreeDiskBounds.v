(** How many block I/Os a request, upkeep and recovery of the disk with trees take at most, and that none is
past the end of the device. *)
From stdpp Require Import gmap strings.
From LogDisk Require TreeStore TreeBlocks TreeRoots TreeIndexBounds SharedTree SharedTreePaths
  SharedTreeInvariant.
From LogDisk Require Import VirtualDisk Medium Codec ProvedTreeMaps.
From LogDisk Require Import ProvedDisk ProvedDiskInvariant ProvedDiskMaps ProvedDiskAppend ProvedDiskRecovery
  ProvedDiskRequests ProvedDiskBounds RequestProgress.
From LogDisk Require Import ProvedTreeDiskInvariant ProvedTreeDiskRecovery ProvedTreeDiskRequests.
Import ProvedTreeDisk(page_address, layout_of, beside, beside_codec, beside_of, maps_of, tree_superblock).
Import TreeIndex(trees).

(** ** A claim takes a word at least *)

Definition takes {A} (n : nat) (c : codec A) : Prop :=
  ∀ ws x rest, get c ws = Some (x, rest) → n + length rest ≤ length ws.

Lemma number_takes : takes 1 number.
Proof. by intros [|w ws] x rest; [|intros [= <- <-]]. Qed.

Lemma both_takes {A B} (a : codec A) (b : codec B) n m : takes n a → takes m b → takes (n + m) (both a b).
Proof.
  intros Ha Hb ws [x y] rest. simpl. destruct (get a ws) as [[x' ws']|] eqn:Hx; [|done].
  destruct (get b ws') as [[y' rest']|] eqn:Hy; [|done]. intros [= <- <- <-]. apply Ha in Hx. apply Hb in Hy.
  lia.
Qed.

Lemma mapped_takes {A B} (into : B → A) of (a : codec A) n : takes n a → takes n (mapped into of a).
Proof.
  intros Ha ws y rest. simpl. destruct (get a ws) as [[x ws']|] eqn:Hx; [|done].
  destruct (of x); [|done]. intros [= <- <-]. by apply Ha in Hx.
Qed.

Lemma times_taken {A} (a : codec A) n k done ws xs rest : takes n a →
  get_times a k done ws = Some (xs, rest) → length xs = length done + k ∧ n * k + length rest ≤ length ws.
Proof.
  intros Ha. revert done ws. induction k as [|k IH]; intros done ws; simpl.
  - intros [= <- <-]. rewrite rev_append_rev, app_length, rev_length. simpl. lia.
  - destruct (get a ws) as [[x ws']|] eqn:Hx; [|done]. apply Ha in Hx. intros [Hlen Hws]%IH. simpl in Hlen.
    lia.
Qed.

Lemma many_takes {A} (a : codec A) : takes 0 a → takes 1 (many a).
Proof.
  intros Ha [|k ws] xs rest; simpl; [done|]. intros [_ ?]%(times_taken a 0); [lia|done].
Qed.

Lemma list_to_map_size {K A} `{Countable K} (l : list (K * A)) :
  base.size (list_to_map l : gmap K A) ≤ length l.
Proof.
  induction l as [|[k x] l IH]; simpl; [by rewrite map_size_empty|]. rewrite map_size_insert.
  destruct (_ !! k); simpl; lia.
Qed.

Lemma map_at_most {K A} `{Countable K} (k : codec K) (a : codec A) ws m rest : takes 1 (both k a) →
  get (finite_map k a) ws = Some (m, rest) → base.size m ≤ length ws.
Proof.
  intros Hone. destruct ws as [|n ws]; cbn [finite_map mapped many get]; [done|].
  destruct (get_times (both k a) n [] ws) as [[l ws']|] eqn:Hl; [|done]. intros [= <- <-].
  apply (times_taken _ 1) in Hl as [Hlen Hws]; [|done]. rewrite map_of_list.
  pose proof (list_to_map_size l). simpl in *. lia.
Qed.

Lemma takes_less {A} (c : codec A) n m : m ≤ n → takes n c → takes m c.
Proof. intros Hn Hc ws x rest Hx. apply Hc in Hx. lia. Qed.

Lemma claims_take : takes 1 (both TreeRoots.claimant_codec TreeRoots.saved_claim_codec).
Proof.
  pose proof number_takes as H1. assert (takes 0 number) as H0 by (eapply takes_less, H1; lia).
  pose proof (both_takes _ _ _ _ H1 H1) as H2. pose proof (many_takes _ H0) as Hpath.
  assert (takes 0 (many number)) as Hpath0 by (eapply takes_less, Hpath; lia).
  pose proof (many_takes _ Hpath0) as Hpaths. eapply takes_less; [|apply both_takes].
  2:{ apply mapped_takes, H2. }
  2:{ apply both_takes; apply mapped_takes; [exact (both_takes _ _ _ _ H1 (both_takes _ _ _ _ H1 Hpaths))|].
      apply many_takes. eapply takes_less, (both_takes _ _ _ _ Hpath (both_takes _ _ _ _ H1 H2)). lia. }
  lia.
Qed.

Lemma roots_at_most ws r rest : get TreeRoots.roots_codec ws = Some (r, rest) →
  base.size (TreeBlocks.roots_claims r) ≤ length ws.
Proof.
  unfold TreeRoots.roots_codec. destruct ws as [|a [|b [|c ws]]]; cbn [mapped both number get]; try done.
  destruct (get (finite_map _ _) ws) as [[m ws']|] eqn:Hm; [|done]. intros [= <- <-]. simpl.
  apply map_at_most in Hm; [|apply claims_take]. lia.
Qed.

Section Claims.
Context `{!blocks}.

Lemma all_words_length bs : length (all_words bs) ≤ length bs * words.
Proof. induction bs as [|b bs IH]; simpl; [lia|]. rewrite app_length, take_length. lia. Qed.

Lemma claims_at_most {A} (c : codec A) bs r x : unpack_many (TreeStore.body_codec c) bs = Some (r, x) →
  base.size (TreeBlocks.roots_claims r) ≤ length bs * words.
Proof.
  unfold unpack_many, TreeStore.body_codec. cbn [both get].
  destruct (get TreeRoots.roots_codec _) as [[r' ws]|] eqn:Hr; [|done].
  destruct (get c ws) as [[x' rest]|]; [|done]. intros [= -> _].
  apply roots_at_most in Hr. pose proof (all_words_length bs). lia.
Qed.
End Claims.

(** ** Reading trees *)

(** The inner nodes of a tree with so many kids per node. *)
Fixpoint tree_reads (fan levels : nat) : nat :=
  match levels with 0 => 0 | S levels => S (fan * tree_reads fan levels) end.

Lemma tree_reads_more fan n m : n ≤ m → tree_reads fan n ≤ tree_reads fan m.
Proof.
  revert m. induction n as [|n IH]; intros [|m] Hn; simpl; [lia..|].
  assert (tree_reads fan n ≤ tree_reads fan m) by (apply IH; lia). nia.
Qed.

Section Reading.
Context `{!blocks, !blocks_laws} (size : nat) (l : TreeStore.layout) (f : contents block).
Local Notation within n p := (runs_within size n p (Medium f [])).
Local Notation at_page := (λ p, f (TreeStore.page_at l p)).

Lemma within_read_each {B C} c N (read : C → (TreeBlocks.found → program block B) → program block B)
    (g : C → TreeBlocks.found) xs h k :
  (∀ z k N, z ∈ xs → within N (k (g z)) → within (c + N) (read z k)) →
  within N (k (foldr (λ z h', g z ∪ h') h xs)) →
  within (length xs * c + N) (TreeStore.read_each read xs h k).
Proof.
  revert k N. induction xs as [|x xs IH]; intros k N Hread Hk; simpl in *; [done|].
  rewrite <-Nat.add_assoc. apply Hread; [by left|]. apply IH; [|done]. intros; apply Hread; [by right|done].
Qed.

Lemma within_tree_read_all {B} N addresses (k : list block → program block B) :
  (∀ a, a ∈ addresses → a < size) → within N (k (f <$> addresses)) →
  within (length addresses + N) (TreeStore.read_all addresses k).
Proof.
  revert k. induction addresses as [|a addresses IH]; intros k Ha Hk; simpl; [done|].
  split; [apply Ha; by left|]. apply (IH (λ bs, k (_ :: bs))); [|done]. intros a' Ha'. apply Ha. by right.
Qed.

Section Below.
Context {bits levels : nat} {s : SharedTree.state} {on : gmap nat nat}.
Context (Hkept : TreeIndexBounds.kept_trees bits levels s) (Hin : TreeBlocks.in_blocks at_page s on).
Context (Hall : TreeBlocks.all_in_blocks s on).
Context (Hpages : ∀ n p, on !! n = Some p → TreeStore.page_at l p < size).
Let I := TreeIndexBounds.kept_inv _ _ _ Hkept.

Lemma within_read_below {B} j c below n nd N (k : TreeBlocks.found → program block B) :
  SharedTree.claims s !! j = Some c →
  SharedTree.reaches (SharedTree.nodes s) (SharedTree.root c) n → SharedTree.nodes s !! n = Some nd →
  length (SharedTree.place nd) + below = SharedTree.height s →
  within N (k (TreeBlocks.found_below at_page (SharedTree.is_finished c) below (SharedTree.place nd)
    (TreeBlocks.entry s on n))) →
  within (tree_reads (2 ^ bits) below + N)
    (TreeStore.read_below l (SharedTree.is_finished c) below (SharedTree.place nd) (TreeBlocks.entry s on
      n) k).
Proof.
  intros Hj. revert n nd N k. induction below as [|below IH]; intros n nd N k Hr Hn Hl Hk; simpl in *;
    (destruct (SharedTree.is_finished c (SharedTree.place nd)); [eapply runs_within_more, Hk; lia|]).
  { done. }
  destruct (TreeBlocks.entry_inner Hkept Hin Hall n nd Hn) as (p & ks & Ek & Eks & E & Hkid); [lia|].
  assert (TreeStore.page_at l p < size) as Hp.
  { destruct (Hall n nd Hn) as [p' Hp']; [apply bool_decide_pack; lia|]. unfold TreeBlocks.entry in Ek.
    rewrite Hn, Hp', (proj2 (Nat.eqb_neq _ _)) in Ek by lia. injection Ek as <-. by eapply Hpages. }
  assert (length (map_to_list ks) ≤ 2 ^ bits) as Hfan.
  { destruct (TreeIndexBounds.kept_bounded _ _ _ Hkept) as [_ Hbound].
    pose proof (TreeIndexBounds.bounded_size _ _ _ (Hbound _ _ Hn)) as Hsize. rewrite E in Hsize.
    simpl in Hsize.
    rewrite map_size_fmap in Hsize. exact Hsize. }
  rewrite Ek in *. simpl in *. split; [done|]. unfold TreeBlocks.kids_at in *. unfold read_block. simpl.
  rewrite Eks in *. apply runs_within_more with (length (map_to_list ks) * tree_reads (2 ^ bits) below + N).
  { nia. }
  eapply within_read_each; [|exact Hk]. intros [d e] k' N' Hd%elem_of_map_to_list Hk'. simpl in *.
  destruct (Hkid _ _ Hd) as [Hd' He]. destruct (SharedTree.nodes s !! e.1) as [md|] eqn:Hm.
  - pose proof (He md eq_refl) as Ee. assert (∃ m, e = TreeBlocks.entry s on m ∧ e.1 = m) as (m & -> & Em)
      by by exists e.1.
    rewrite Em in Hd', Hm. clear He Ee.
    destruct (SharedTreePaths.tidy_kid (SharedTreeInvariant.inv_tidy I) Hn Hd' Hm) as [Hpl _].
    rewrite <-Hpl in *. apply IH; [|done|rewrite Hpl, app_length; simpl; lia|done].
    eapply SharedTreePaths.reaches_kid; eauto.
  - pose proof (TreeIndexBounds.kept_edges _ _ _ Hkept _ _ _ _ _ _ Hj Hr Hn Hd' Hm) as
      Hf%SharedTreePaths.is_finished_spec.
    destruct below; simpl in *; rewrite Hf in *; eapply runs_within_more, Hk'; lia.
Qed.

Lemma within_read_claim {B} j c N (k : TreeBlocks.found → program block B) :
  SharedTree.claims s !! j = Some c →
  let saved := (c, (λ nd, (SharedTree.place nd, TreeBlocks.entry s on (SharedTree.root c))) <$>
    SharedTree.nodes s !! SharedTree.root c) in
  within N (k (TreeBlocks.found_by_claim at_page (SharedTree.height s) saved)) →
  within (tree_reads (2 ^ bits) (SharedTree.height s) + N)
    (TreeStore.read_claim l (SharedTree.height s) saved k).
Proof.
  intros Hj. unfold TreeStore.read_claim, TreeBlocks.found_by_claim. simpl.
  destruct (SharedTree.nodes s !! SharedTree.root c) as [nd|] eqn:Hr; simpl;
    [|intros Hk; eapply runs_within_more, Hk; lia].
  destruct (TreeIndexBounds.kept_bounded _ _ _ Hkept) as [Hh Hbound].
  destruct (TreeIndexBounds.bounded_place _ _ _ (Hbound _ _ Hr)) as [Hplace _]. intros Hk.
  apply runs_within_more with
    (tree_reads (2 ^ bits) (SharedTree.height s - length (SharedTree.place nd)) + N).
  { apply Nat.add_le_mono_r, tree_reads_more. lia. }
  eapply within_read_below; [exact Hj| |exact Hr|lia|exact Hk]. apply SharedTreePaths.reaches_refl.
  by eexists.
Qed.
End Below.

(** Two headers, the body of the newer slot, and the nodes of each claim: of no more claims than words. *)
Definition store_reads (fan levels : nat) : nat :=
  2 + TreeStore.slot_blocks l + TreeStore.slot_blocks l * words * tree_reads fan levels.

Lemma within_store_recover {A B} (c : codec A) bits levels s on x n sl N
    (k : option (TreeStore.memory A) → program block B) :
  TreeStore.stored c l bits levels f s on x n sl →
  (∀ b, TreeStore.header_at l b < size) →
  (∀ i, i < TreeStore.slot_blocks l → TreeStore.body_at l sl i < size) →
  (∀ m p, on !! m = Some p → TreeStore.page_at l p < size) →
  (∀ on', on' ⊆ on → TreeStore.stored c l bits levels f s on' x n sl →
     within N (k (Some (TreeStore.Memory _ s on' x n sl)))) →
  within (store_reads (2 ^ bits) (SharedTree.height s) + N) (TreeStore.recover c l k).
Proof.
  intros Hs Hheaders Hbody Hpages Hk. pose proof Hs as [(len & Hlen & Hheader & Hroots) (Hin & Hall & Hkept)].
  unfold TreeStore.recover, store_reads. simpl. split; [done|]. split; [done|].
  unfold read_block. simpl. rewrite Hheader.
  set (bs := TreeStore.body_at l sl <$> seq 0 len) in *.
  set (reads := tree_reads (2 ^ bits) (SharedTree.height s)).
  assert (length bs = len) as Hbs by (unfold bs; by rewrite fmap_length, seq_length).
  apply runs_within_more with (length bs + (TreeStore.slot_blocks l * words * reads + N)); [lia|].
  apply within_tree_read_all.
  { intros a (i&->&Hi%elem_of_seq)%elem_of_list_fmap. apply Hbody. lia. }
  rewrite Hroots. apply claims_at_most in Hroots as Hclaims. rewrite fmap_length, Hbs in Hclaims.
  set (cs := TreeBlocks.roots_claims (TreeBlocks.roots_of s on)) in *.
  apply runs_within_more with (length (map_to_list cs) * reads + N).
  { change (length (map_to_list cs)) with (base.size cs).
    apply Nat.add_le_mono_r, Nat.mul_le_mono_r. etrans; [exact Hclaims|]. by apply Nat.mul_le_mono_r. }
  apply (within_read_each reads N
    (λ e, TreeStore.read_claim l (TreeBlocks.roots_height (TreeBlocks.roots_of s on)) e.2)
    (λ e, TreeBlocks.found_by_claim at_page (SharedTree.height s) e.2)).
  - intros [j saved] k' N' Hj%elem_of_map_to_list Hk'. apply lookup_fmap_Some in Hj as (c0 & <- & Hj).
    by eapply within_read_claim.
  - destruct (TreeBlocks.trees_of_roots bits levels s on at_page Hkept Hin Hall)
      as (on' & Hsub & E & Hin' & Hall' & Hsame).
    change (within N (let '(t, on0) := TreeBlocks.trees_of at_page (TreeBlocks.roots_of s on) in
      k (Some (TreeStore.Memory _ t on0 x n sl)))). rewrite E. apply Hk; [done|].
    split; [|done]. exists len. by rewrite Hsame.
Qed.
End Reading.

(** ** The programs *)

Section Bounds.
Context `{!blocks, !blocks_laws} {torn : tearing block} (bits size : nat).
Implicit Types (y : T.memory) (g : geometry) (f : contents block) (ts : nat * nat).
Local Notation runs_within := (runs_within size).

(** The blocks that the disk takes of its device: pages stand behind the others. *)
Definition tree_device_blocks g ts : nat := device_blocks g + ts.2.

Definition tree_recovery_ios g ts : nat :=
  1 + (store_reads (layout_of g) (2 ^ bits) (S ts.1) + (log_ios g + (3 + data_blocks g))).
Definition tree_change_ios y : nat := T.page_blocks y + slot_blocks (T.shape y) + 6.
Definition tree_request_ios y (q : request) : nat :=
  match q with
  | DoRead _ _ count => count
  | DoFlush => 0
  | DoRestart => tree_recovery_ios (T.shape y) (T.tree_size y)
  | _ => tree_change_ios y + data_ios (length (data_of q))
  end.
Definition tree_upkeep_ios y (u : T.upkeep) : nat :=
  match u with
  | T.Keep Checkpoint => T.page_blocks y + slot_blocks (T.shape y) + 3
  | T.Keep (Clean moves) => tree_change_ios y + (length moves + data_ios (length moves))
  | T.Keep Collect | T.Walk _ _ => 0
  end.
Definition tree_group_ios y (ws : list (nat * list block)) : nat :=
  tree_change_ios y + data_ios (length (blocks_of ws)).

(** ** Recovery *)

Lemma within_tree_recover {A} n g ts s0 on x0 d f (k : option T.memory → program block A) :
  @recoverable _ (trees_format bits ts s0 on x0) torn g d f → tree_device_blocks g ts ≤ size →
  (∀ r m, runs_within n (k r) m) →
  runs_within (tree_recovery_ios g ts + n) (T.recover bits k) (Medium f []).
Proof.
  intros (z&<-&Hz) Hsize Hk. unfold tree_device_blocks in Hsize.
  destruct (@recoverable_holds _ (trees_format bits ts s0 on x0) torn z f d Hz) as [m0 Hheld].
  pose proof Hheld as [Hsuper Hstored Hfirst _ _ Hheight Hpages]. pose proof Hsize as Hblocks.
  unfold device_blocks in Hblocks. unfold tree_recovery_ios, T.recover. rewrite <-Hheight.
  set (reads := store_reads _ _ _). set (others := log_ios (shape z) + (3 + data_blocks (shape z))).
  replace (1 + (reads + others) + n) with (S (reads + (others + n))) by lia.
  split; [unfold superblock; lia|]. unfold read_block. simpl. rewrite Hsuper.
  eapply within_store_recover; [exact Hstored| | | |]; simpl; unfold others.
  - intros b. pose proof (header_address_bound b). lia.
  - intros i Hi. unfold body_address. destruct (slot z); lia.
  - intros m p Hp%Hpages. unfold page_address, data_address. lia.
  - intros on' Hsub Hstored'. simpl. rewrite Hfirst, <-Nat.add_assoc.
    apply (within_log (F := trees_format bits ts s0 on x0) size n z d f); [done|lia|]. by intros [? ? ?].
Qed.

(** ** Checkpoints, and what needs room in the log *)

Section Changes.
Context (y0 : T.memory) (Hsize : tree_device_blocks (T.shape y0) (T.tree_size y0) ≤ size).

Lemma within_tree_checkpoint {A} n (k : T.memory → program block A) m :
  (∀ y m, T.shape y = T.shape y0 → T.free y = T.free y0 →
    places (T.current y) = places (T.current y0) → runs_within n (k y) m) →
  runs_within (T.page_blocks y0 + slot_blocks (T.shape y0) + 3 + n) (T.checkpoint y0 k) m.
Proof.
  intros Hk. unfold tree_device_blocks, device_blocks in Hsize. unfold T.checkpoint, TreeStore.checkpoint.
  set (places := T.free_pages _ _ _).
  set (k' := λ z : TreeStore.memory beside,
    k (if decide (TreeStore.serial z = T.serial y0) then y0 else T.committed y0 z)).
  assert (∀ z m, runs_within n (k' z) m) as Hk'.
  { intros z m'. unfold k'. by destruct (decide _); apply Hk. }
  assert (runs_within (T.page_blocks y0 + slot_blocks (T.shape y0) + 3 + n) (k' (T.store_of y0)) m) as Hno.
  { eapply runs_within_more; [|apply Hk']. lia. }
  assert (Forall (λ p, p < T.page_blocks y0) places) as Hplaces by apply free_pages_below.
  destruct (decide _) as [(Hlen&Hdup&_)|]; [|done].
  destruct (mapM _ _) as [nodes|] eqn:Hnodes; [|done].
  destruct (pack_many _ _) as [body|] eqn:Hbody; [|done].
  destruct (seal _) as [header|]; [|done].
  apply pack_many_prefix in Hbody as [Hblen _]. simpl in Hblen.
  rewrite Forall_forall in Hplaces. assert (length places ≤ T.page_blocks y0) as Hfew.
  { rewrite <-(seq_length (T.page_blocks y0) 0). apply submseteq_length, NoDup_submseteq; [done|].
    intros p Hp%Hplaces. apply elem_of_seq. lia. }
  match goal with |- runs_within _ (write_all ?ws _) _ => apply runs_within_more with (length ws + (3 + n))
    end.
  { rewrite zip_with_length, !app_length, !fmap_length, seq_length. lia. }
  apply within_write_all.
  - intros a Ha. apply elem_of_list_fmap in Ha as ([a' b']&->&Hab%elem_of_zip_l). simpl.
    apply elem_of_app in Hab as [(p&->&Hp%Hplaces)%elem_of_list_fmap|(i&->&Hi%elem_of_seq)%elem_of_list_fmap].
    + unfold T.page_blocks in Hp. simpl. unfold page_address, data_address. lia.
    + simpl. unfold body_address. destruct (negb _); lia.
  - intros m'. split; [simpl; pose proof (header_address_bound (negb (T.slot y0))); lia|].
    apply (Hk' _ (flush_blocks _)).
Qed.

Lemma within_tree_room {A} n room (k : T.memory → program block A) m :
  (∀ y m, T.shape y = T.shape y0 → T.free y = T.free y0 →
    places (T.current y) = places (T.current y0) → runs_within (n + 3) (k y) m) →
  runs_within (tree_change_ios y0 + n) (T.with_room room y0 k) m.
Proof.
  intros Hk. unfold T.with_room, tree_change_ios. destruct (T.room_for y0 room).
  - apply runs_within_more with (n + 3); [lia|by apply Hk].
  - apply runs_within_more with (T.page_blocks y0 + slot_blocks (T.shape y0) + 3 + (n + 3)); [lia|].
    by apply within_tree_checkpoint.
Qed.
End Changes.

Lemma tree_room_within y k : T.room_for y k = true → k ≤ log_blocks (T.shape y).
Proof. unfold T.room_for. rewrite bool_decide_eq_true. lia. Qed.

Lemma tree_no_faults_named y q : T.faults_of y q = [] → named_well q.
Proof.
  destruct q as [lba data|lba count|n|n|n| | |from lba count]; simpl; try done;
    unfold T.clashes, T.misses; destruct (valid_name n) eqn:Hn; try done; intros _; by apply valid_length.
Qed.

(** ** Every request, and several writes at once *)

Lemma tree_free_below y f d p : tree_represents bits y f d → is_Some (T.free y !! p) →
  p < data_blocks (T.shape y).
Proof. intros (s0&x0&m&[(m0&rs&_&_&_&[_ Hbelow]&_) _]&_). apply Hbelow. Qed.

Lemma within_tree_perform y f d places q :
  tree_represents bits y f d → tree_device_blocks (T.shape y) (T.tree_size y) ≤ size →
  runs_within (tree_request_ios y q) (T.perform bits y places q) (Medium f []).
Proof.
  intros Hy Hsize. pose proof (λ p, tree_free_below _ _ _ p Hy) as Hbelow. unfold T.perform.
  destruct (T.faults_of y q) eqn:Hfaults; [|by destruct (tree_request_ios _ _)].
  pose proof (tree_no_faults_named y q Hfaults) as Hnamed.
  assert (∀ places room, runs_within (tree_change_ios y + data_ios (length (data_of q)))
    (T.with_room room y (λ y, T.update bits y places q)) (Medium f [])) as Hchange.
  { intros ps room. apply within_tree_room; [done|]. intros y1 m Hshape Hfree _. unfold T.update.
    destruct (T.one_too_many y1 q); [done|]. rewrite <-(Nat.add_0_r (data_ios (length (data_of q)) + 3)).
    unfold tree_device_blocks in Hsize.
    apply within_update_log; rewrite ?Hshape, ?Hfree; [lia|done| |done|done|done].
    rewrite <-Hshape. apply tree_room_within. }
  destruct q as [lba data|lba count|n|n|n| | |from lba count]; try (by apply Hchange).
  - done.
  - cbn [tree_request_ios]. rewrite <-(Nat.add_0_r (tree_recovery_ios _ _)).
    destruct Hy as (s0&x0&m&Hy&_). eapply within_tree_recover; [|done|done].
    by apply (@recoverable_represents _ (trees_format bits (T.tree_size y) s0 (T.pages y) x0) torn
      (with_maps y m)).
  - destruct Hy as (s0&x0&m&[(m0&rs&_&_&_&[Hmid _]&_) _]&_&Ht). cbn [tree_request_ios].
    assert (place_at bits (T.current y) from <$> seq lba count =
      place_of m (map_of m from) <$> seq lba count) as ->.
    { apply list_fmap_ext. intros i l _. by apply place_at_shown. }
    rewrite <-(Nat.add_0_r count) at 1. rewrite <-(seq_length count lba) at 1.
    rewrite <-(fmap_length (λ l, place_of m (map_of m from) l) (seq lba count)) at 1.
    apply within_read_places; [|done]. intros p (l&Hp&_)%elem_of_list_fmap. unfold place_of in Hp.
    symmetry in Hp. apply bind_Some in Hp as (x&_&Hp%Hmid).
    unfold data_address, tree_device_blocks, device_blocks in *.
    simpl in *. lia.
Qed.

Lemma within_tree_group y f d places ws :
  tree_represents bits y f d → tree_device_blocks (T.shape y) (T.tree_size y) ≤ size →
  runs_within (tree_group_ios y ws) (T.write_group bits y places ws) (Medium f []).
Proof.
  intros Hy Hsize. pose proof (λ p, tree_free_below _ _ _ p Hy) as Hbelow.
  unfold T.write_group, tree_group_ios.
  apply within_tree_room; [done|]. intros y1 m Hshape Hfree _.
  rewrite <-(Nat.add_0_r (data_ios (length (blocks_of ws)) + 3)). unfold tree_device_blocks in Hsize.
  apply within_group_log; rewrite ?Hshape, ?Hfree; [lia|done| |done|done].
  rewrite <-Hshape. apply tree_room_within.
Qed.

Lemma within_tree_maintain y f d u :
  tree_represents bits y f d → tree_device_blocks (T.shape y) (T.tree_size y) ≤ size →
  runs_within (tree_upkeep_ios y u) (T.maintain bits y u) (Medium f []).
Proof.
  intros Hy Hsize. pose proof (λ p, tree_free_below _ _ _ p Hy) as Hbelow.
  destruct Hy as (s0&x0&m&[(m0&rs&_&_&_&[Hmid _]&_) _]&_&Ht).
  destruct u as [[| |moves]|w n]; cbn [tree_upkeep_ios T.maintain]; try done.
  - rewrite <-(Nat.add_0_r (_ + 3)). by apply within_tree_checkpoint.
  - apply within_tree_room; [done|]. intros y1 m1 Hshape Hfree Hplaces.
    rewrite <-(Nat.add_0_r (length moves + data_ios (length moves) + 3)).
    unfold tree_device_blocks in Hsize.
    apply within_move_log; rewrite ?Hshape, ?Hfree, ?Hplaces; try done; [lia|..].
    + rewrite <-Hshape. apply tree_room_within.
    + intros x p Hp. eapply Hmid, lookup_weaken, Ht. exact Hp.
Qed.
End Bounds.
