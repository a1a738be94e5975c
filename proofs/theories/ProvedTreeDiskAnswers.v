(** Which requests the disk with trees answers [Ok], on one device and on a leg: those within the stated
sizes, at the places that a scheduler plans, as in [ProvedDiskAnswers.v]; and what recovery finds. *)
From stdpp Require Import gmap strings.
From LogDisk Require TreeStore TreeStoreCost TreeIndexBounds.
From LogDisk Require Import VirtualDisk Medium Codec ProvedTreeMaps.
From LogDisk Require Import ProvedDisk ProvedDiskInvariant ProvedDiskMaps ProvedDiskAppend ProvedDiskRecovery
  ProvedDiskRequests ProvedDiskProgress ProvedDiskBounds RequestProgress ProvedDiskAnswers.
From LogDisk Require Import ProvedTreeDiskInvariant ProvedTreeDiskRecovery ProvedTreeDiskRequests
  ProvedTreeDiskCost ProvedTreeDiskBounds ProvedTreeDiskTheorem.
Import ProvedTreeDisk(layout_of, beside, beside_codec).
Import TreeIndex(trees).

(** ** Programs that are taken *)

Section Taken.
Context `{!blocks, !blocks_laws} (bits : nat).
Implicit Types (y : T.memory) (q : request).

(** The log has room for so many blocks, or a checkpoint makes some; and for one. *)
Definition tree_log_can_go_on_for (k : nat) y : Prop :=
  T.room_for y k = true ∨ k ≤ log_blocks (T.shape y) ∧ goes_into_slot bits y.
Definition tree_log_can_go_on y : Prop := tree_log_can_go_on_for 1 y.

Lemma execute_store_checkpoint {A B} (c : codec A) l (z : TreeStore.memory A) places
    (k : TreeStore.memory A → program block B) m : ∃ m',
  execute (TreeStore.checkpoint c l z places k) m =
    execute (k (execute (TreeStore.checkpoint c l z places Done) m).1) m'.
Proof.
  unfold TreeStore.checkpoint. repeat case_match; try (by exists m).
  match goal with
  | |- context [execute (write_all ?ws (FlushBlocks (WriteBlock ?a ?b (FlushBlocks (k ?z'))))) m] =>
    destruct (execute_write_all ws (FlushBlocks (WriteBlock a b (FlushBlocks (k z')))) m) as (m1&->&_);
    destruct (execute_write_all ws (FlushBlocks (WriteBlock a b (FlushBlocks (Done z')))) m) as (m2&->&_)
  end.
  simpl. by eexists.
Qed.

Lemma execute_tree_room {A} n y (k : T.memory → program block A) m : tree_log_can_go_on_for n y → ∃ y' m',
  execute (T.with_room n y k) m = execute (k y') m' ∧ T.room_for y' n = true ∧ T.shape y' = T.shape y ∧
  T.free y' = T.free y ∧ T.next_record y' = T.next_record y ∧
  TreeIndex.named (views (T.current y')) = TreeIndex.named (views (T.current y)).
Proof.
  unfold T.with_room. destruct (T.room_for y n) eqn:Hroom; [by exists y, m|].
  intros [|[Hpos [Hkept [Hwords Hlimit] Hsmall [Hserial Hslot] Hws Hfits Hpages]]]; [congruence|].
  unfold T.checkpoint.
  match goal with |- context [TreeStore.checkpoint ?c ?l ?z ?places ?k'] =>
    destruct (execute_store_checkpoint c l z places k' m) as (m'&->) end.
  destruct (TreeStoreCost.checkpoint_cost beside_codec (layout_of (T.shape y)) bits _ (T.store_of y)
    (T.free_pages (T.page_blocks y) (T.pages y) (length (new_nodes y))) m Hkept Hwords Hlimit) as (Hex&_);
    try done; [by apply free_pages_proper|].
  unfold new_nodes in Hex. rewrite Hex. simpl. rewrite decide_False by lia.
  do 2 eexists. split; [done|]. split_and!; try done. apply bool_decide_eq_true_2. simpl. lia.
Qed.

(** A request that changes a view is answered [Ok], but for the reasons of [long_refusal_has_reason]. *)
Theorem tree_long_refusal_has_reason y places q r fr m :
  T.faults_of y q = [] → T.one_too_many y q = false → record_of q places = Some r →
  take_free places (T.free y) = Some fr → length places = length (data_of q) →
  record_goes (with_maps y no_maps) r (data_of q) → tree_log_can_go_on_for (size_of r) y →
  (execute (T.perform bits y places q) m).1.1.2 = Ok.
Proof.
  intros Hfaults Hone Hr Hfree Hlen Hgoes Hlog. unfold T.perform. rewrite Hfaults, (take_ge places) by lia.
  assert (size_for q places = size_of r) as Hsize by (unfold size_for; by rewrite Hr).
  destruct (execute_tree_room (size_for q places) y (λ y, T.update bits y places q) m)
    as (y'&m'&Hex&Hroom&Hshape&Hfree'&Hnext&Hnamed); [by rewrite Hsize|].
  assert ((execute (T.with_room (size_for q places) y (λ y, T.update bits y places q)) m).1.1.2 = Ok) as Hok.
  { rewrite Hex. unfold T.update, update_log.
    assert (T.one_too_many y' q = false) as ->
      by (destruct q; try done; simpl in *; by rewrite Hnamed, Hshape).
    rewrite Hr, Hfree', Hfree, decide_True by done. cbv beta iota zeta. rewrite Hsize in Hroom.
    destruct (execute_append (with_maps y' no_maps) r (data_of q) (Done (y', no_room q, []) : program block
      T.outcome) (Done (T.logged bits y' r fr, Ok, [])) m') as (m1&Hex1&_); [|done|by eapply record_length|].
    - unfold record_goes in *. simpl in *. by rewrite Hnext.
    - unfold append in Hex1. cbn [with_maps shape next_record] in Hex1.
      change (room_for (with_maps y' no_maps)) with (T.room_for y') in Hex1.
      unfold T.outcome in *. by rewrite Hex1. }
  by destruct q; simplify_eq/=.
Qed.

Theorem tree_refusal_has_reason y places q r fr m :
  T.faults_of y q = [] → T.one_too_many y q = false → record_of q places = Some r →
  take_free places (T.free y) = Some fr → length places = length (data_of q) →
  record_fits (with_maps y no_maps) r (data_of q) → tree_log_can_go_on y →
  (execute (T.perform bits y places q) m).1.1.2 = Ok.
Proof.
  intros Hfaults Hone Hr Hfree Hlen [Hsize Hgoes]%fits_goes Hlog.
  eapply tree_long_refusal_has_reason; try done. by rewrite Hsize.
Qed.

(** Several writes are performed at once, but for the reasons of [long_group_refusal_has_reason]. *)
Theorem tree_long_group_refusal_has_reason y places ws fr m :
  let bs := blocks_of ws in let r := LogGroup (zip bs.*1 places) in
  in_range (T.shape y) ws → length places = length bs → take_free places (T.free y) = Some fr →
  record_goes (with_maps y no_maps) r bs.*2 → tree_log_can_go_on_for (size_of r) y →
  (execute (T.write_group bits y places ws) m).1.2 = true.
Proof.
  intros bs r Hfit Hlen Hfree Hgoes Hlog. unfold T.write_group.
  assert (record_of_group places ws = r) as ->.
  { unfold record_of_group. fold bs. by rewrite (take_ge places) by lia. }
  match goal with |- context [T.with_room ?n y ?k] =>
    destruct (execute_tree_room n y k m Hlog) as (y'&m'&->&Hroom&Hshape&Hfree'&Hnext&_) end.
  unfold group_log. fold bs. cbv zeta. rewrite (take_ge places), Hfree', Hfree, decide_True by (done || lia).
  assert (forallb (λ w, bool_decide (fits (disk_blocks (T.shape y')) w.1 (length w.2))) ws = true) as ->.
  { apply forallb_forall. intros w Hw%elem_of_list_In. apply bool_decide_eq_true_2.
    unfold in_range in Hfit. rewrite Forall_forall in Hfit. rewrite Hshape. by apply Hfit. }
  match goal with |- context [append_log _ _ _ ?r ?data ?refused ?k] =>
    destruct (execute_append (with_maps y' no_maps) r data refused k m') as (m1&Hex&_) end;
    [|done|by apply group_length|].
  - unfold record_goes in *. simpl in *. by rewrite Hnext.
  - unfold append in Hex. cbn [with_maps shape next_record] in Hex.
    change (room_for (with_maps y' no_maps)) with (T.room_for y') in Hex. by rewrite Hex.
Qed.

Theorem tree_group_refusal_has_reason y places ws fr m :
  let bs := blocks_of ws in
  in_range (T.shape y) ws → length places = length bs → take_free places (T.free y) = Some fr →
  record_fits (with_maps y no_maps) (LogGroup (zip bs.*1 places)) bs.*2 → tree_log_can_go_on y →
  (execute (T.write_group bits y places ws) m).1.2 = true.
Proof.
  intros bs Hfit Hlen Hfree [Hsize Hgoes]%fits_goes Hlog.
  apply (tree_long_group_refusal_has_reason y places ws fr); try done. fold bs. by rewrite Hsize.
Qed.
End Taken.

(** ** Requests within the stated sizes *)

Section Answers.
Context `{!blocks} {torn : tearing block} (bits size : nat).
Implicit Types (y : T.memory) (q : request).
Local Notation D := (tree_programs bits).

(** The first free places, as for whole maps. *)
Definition tree_places_for y (n : nat) : option (list nat) := places_for (with_maps y no_maps) n.

(** The stated sizes: the request has no fault, there is a snapshot left for it and a place for each of its
blocks, its record goes into blocks, numbers are below the limit of words, the log has room for it or is as
long, and new nodes go into pages and roots into a slot, and the devices are large enough. *)
Record tree_admissible y q : Prop := {
  tree_no_fault : T.faults_of y q = [];
  tree_snapshot_left : T.one_too_many y q = false;
  tree_places_left :
    base.size (T.used_places (T.current y) (T.newest y)) + length (data_of q) ≤ data_blocks (T.shape y);
  tree_sizes_small : small_sizes (T.shape y) (T.next_record y) q;
  tree_log_goes_on : tree_log_can_go_on_for bits (request_blocks q) y;
  tree_devices : tree_device_blocks (T.shape y) (T.tree_size y) ≤ size;
}.

(** The same of several writes. *)
Record tree_admissible_group y (ws : list (nat * list block)) : Prop := {
  tree_all_in_range : in_range (T.shape y) ws;
  tree_places_for_all :
    base.size (T.used_places (T.current y) (T.newest y)) + length (blocks_of ws) ≤ data_blocks (T.shape y);
  tree_group_small : small_group (T.shape y) (T.next_record y) ws;
  tree_log_of_all : tree_log_can_go_on_for bits (writes_blocks ws) y;
  tree_devices_of_all : tree_device_blocks (T.shape y) (T.tree_size y) ≤ size;
}.

Context `{!blocks_laws}.

Lemma tree_goes_on_less y k k' : k' ≤ k → tree_log_can_go_on_for bits k y → tree_log_can_go_on_for bits k' y.
Proof.
  intros Hk [Hroom%bool_decide_eq_true_1|[Hlog Hslot]]; [left; apply bool_decide_eq_true_2; lia|].
  right. split; [lia|done].
Qed.

Lemma tree_plan_answered y f d q places :
  tree_represents bits y f d → tree_admissible y q → planned tree_places_for y q = Some places →
  granted (T.perform bits y places q) (Medium f []) →
  (execute (T.perform bits y places q) (Medium f [])).1.1.2 = Ok.
Proof.
  intros Hy Hq Hplan Hgranted. pose proof (λ p, tree_free_below bits y f d p Hy) as Hbelow.
  apply places_for_free in Hplan as (Hlen&fr&Hfr). simpl in Hfr.
  assert (∀ r, record_of q places = Some r →
    (execute (T.perform bits y places q) (Medium f [])).1.1.2 = Ok) as Hchange.
  { intros r Hr. pose proof Hq as [Hfaults ? _ Hsizes Hlog _].
    apply (tree_long_refusal_has_reason bits y _ q r fr); try done.
    - destruct Hy as (s0&x0&m&_&_&Ht). rewrite (faults_shown bits y m q Ht) in Hfaults.
      apply (record_goes_in (with_maps y m) q places r); try done.
      intros p Hp. apply take_free_some in Hfr as (_&Hin&_). by apply Hbelow, Hin.
    - eapply tree_goes_on_less; [|exact Hlog].
      eapply record_blocks; [done..|by eapply tree_no_faults_named]. }
  destruct q as [lba data|lba count'|n|n|n| | |from lba count']; try (by eapply Hchange).
  - done.
  - apply (crash_safe_execute (λ _, True) (λ (o : T.outcome) _, o.1.2 = Ok)); [|exact Hgranted].
    unfold T.perform. cbn [T.faults_of].
    eapply (crash_safe_tree_recover bits _ _ (T.tree_size y) (T.shape y) f d);
      [by apply tree_recoverable_represents|by intros|].
    intros y' f' _ _ _. split; [by intros|done].
  - unfold T.perform. rewrite (tree_no_fault _ _ Hq).
    destruct (execute_read_places (T.shape y) (place_at bits (T.current y) from <$> seq lba count')
      (λ bs, Done (y, Ok, bs)) (Medium f [])) as [bs Hbs].
    unfold T.outcome in *. by rewrite Hbs.
Qed.

(** Places are found once they are collected. *)
Lemma tree_places_after_collection y n :
  base.size (T.used_places (T.current y) (T.newest y)) + n ≤ data_blocks (T.shape y) →
  is_Some (tree_places_for (T.collect y) n).
Proof.
  intros Hroom. unfold tree_places_for, places_for.
  destruct (first_free_taken (with_maps (T.collect y) no_maps) n) as [-> _]; [|by rewrite decide_True].
  pose proof (unused_size (T.used_places (T.current y) (T.newest y)) (data_blocks (T.shape y))).
  simpl. unfold T.collected. lia.
Qed.

Lemma collected_goes_on k y : tree_log_can_go_on_for bits k y → tree_log_can_go_on_for bits k (T.collect y).
Proof. intros [?|[? []]]; [by left|right]. by split. Qed.

Lemma trees_answer : answers_admissible D size tree_places_for (T.Keep Collect) (tree_represents bits)
  tree_admissible (tree_request_ios bits).
Proof.
  split.
  - intros y f d q places Hy Hq _. eapply within_tree_perform; [done|]. apply Hq.
  - intros y f d q places. apply tree_plan_answered.
  - intros y f d q Hy [Hfaults Hone Hroom Hsizes Hlog Hsize] _. exists (T.collect y).
    split; [done|]. split; [by apply tree_represents_collected|].
    split; [split; try done; by apply collected_goes_on|].
    split; [by apply tree_places_after_collection|done].
Qed.

Lemma trees_perform : performs_admissible D size tree_places_for (T.Keep Collect) (tree_represents bits)
  tree_admissible_group tree_group_ios.
Proof.
  split.
  - intros y f d ws places Hy Hws _. eapply within_tree_group; [done|]. apply Hws.
  - intros y f d ws places Hy [Hrange _ Hsmall Hlog _] Hplan.
    apply places_for_free in Hplan as (Hlen&fr&Hfree).
    destruct (group_goes_in (with_maps y no_maps) ws places fr Hrange Hsmall Hlen Hfree
      (λ p, tree_free_below bits y f d p Hy)) as [Hgoes Hsize].
    apply (tree_long_group_refusal_has_reason bits y places ws fr); try done. by rewrite Hsize.
  - intros y f d ws Hy [Hrange Hroom Hsmall Hlog Hsize] _. exists (T.collect y).
    split; [done|]. split; [by apply tree_represents_collected|].
    split; [split; try done; by apply collected_goes_on|].
    split; [by apply tree_places_after_collection|done].
Qed.

(** ** Recovery *)

Lemma tree_recovers ts g' d f : tree_recoverable_of bits ts g' d f → tree_device_blocks g' ts ≤ size →
  recovers_within D size (tree_recovery_ios bits g' ts) f.
Proof.
  intros Hf Hsize. split.
  - destruct Hf as (s0&on&x0&Hf). rewrite <-(Nat.add_0_r (tree_recovery_ios _ _ _)).
    by eapply within_tree_recover.
  - intros Hgranted. apply (crash_safe_execute (λ _, True) (λ r _, is_Some r)) in Hgranted; [done|].
    eapply crash_safe_tree_recover; [done..|]. intros y f' _ _ _. split; [by intros|by eexists].
Qed.
End Answers.
