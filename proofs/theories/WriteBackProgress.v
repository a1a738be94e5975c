(** A drain finds places for what is delayed: so a flush is answered [Ok].

Whenever nothing is under way, no more blocks are delayed than there are free places, and than go into the
log. A write is delayed only while that is so; what leaves fewer places drains first; and while writes are
delayed the disk below does no upkeep that uses places. *)
From stdpp Require Import gmap strings.
From LogDisk Require ProvedTreeDisk.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskRequests ProvedDiskProgress ProvedDiskBounds ProvedDiskAnswers ProvedDiskMachine
  ProvedDiskRefinement.
From LogDisk Require ProvedTreeDiskAnswers ProvedTreeDiskInvariant ProvedTreeDiskTheorem.
From LogDisk Require Import SplitFlush DiskMachine WriteBack WriteBackPlaces WriteBackRefinement
  WriteBackDisk.

(** ** What a program ends with, whatever it reads *)

Section Ends.
Context {B : Type} {torn : tearing B}.

Fixpoint ends_in {A} (R : A → Prop) (p : program B A) : Prop :=
  match p with
  | Done x => R x
  | ReadBlock _ k => ∀ b, ends_in R (k b)
  | WriteBlock _ _ k | FlushBlocks k | Assume _ k => ends_in R k
  end.

Lemma ends_in_mono {A} (R R' : A → Prop) p : (∀ x, R x → R' x) → ends_in R p → ends_in R' p.
Proof. intros HR. induction p; simpl; auto. Qed.

Lemma ends_in_then {A A'} (R : A → Prop) (R' : A' → Prop) p k :
  ends_in R p → (∀ x, R x → ends_in R' (k x)) → ends_in R' (then_ p k).
Proof. intros Hp Hk. induction p; simpl in *; auto. Qed.

Lemma ends_anyhow {A} (p : program B A) : ends_in (λ _, True) p.
Proof. induction p; simpl; auto. Qed.

Lemma ends_in_io {A} (R : A → Prop) p m p' m' : ends_in R p → io p m = Some (p', m') → ends_in R p'.
Proof.
  destruct p as [| | | |φ p]; simpl; intros Hp; [done|by intros [= <- <-]..|].
  destruct φ; [|done]. by intros [= <- <-].
Qed.

Lemma ends_in_write_all {A} (R : A → Prop) ws (p : program B A) : ends_in R p → ends_in R (write_all ws p).
Proof. intros Hp. by induction ws as [|[a b] ws IH]. Qed.
End Ends.

(** ** The room for delayed writes is there *)

Section Room.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : programs Y U).
Context (shape_of : Y → geometry) (room_of : Y → nat) (spares_places : U → bool).
Context (bound : Y → nat).    (* how many blocks a drain finds places for *)
Implicit Types (y : Y) (z : delay).
Local Notation delaying := (write_back D shape_of room_of spares_places).

(** No fewer places. *)
Definition as_many y y' : Prop := shape_of y' = shape_of y ∧ bound y ≤ bound y'.

Record keeps_places : Prop := KeepsPlaces {
  kept_at_first y : room_of y ≤ bound y;
  kept_by_request y places q : uses_places q = false →
    ends_in (λ o, as_many y o.1.1) (run_request D y places q);
  used_by_group y places ws : ends_in (λ o : Y * bool, shape_of o.1 = shape_of y ∧
    bound y ≤ bound o.1 + if o.2 then length (blocks_of ws) else 0) (run_group D y places ws);
  kept_by_upkeep y u : spares_places u = true → ends_in (as_many y) (run_upkeep D y u);
}.
Context (kept : keeps_places).

Definition roomy (x : Y * delay) : Prop :=
  in_range (shape_of x.1) (delayed x.2) ∧ blocks_delayed x.2 + room x.2 ≤ bound x.1.

Lemma roomy_nothing y : roomy (y, nothing_delayed room_of y).
Proof. split; [constructor|]. simpl. apply (kept_at_first kept). Qed.

Lemma roomy_as_many y y' z : as_many y y' → roomy (y, z) → roomy (y', z).
Proof.
  intros [Hshape Hbound] [Hrange Hroom]. unfold roomy in *. simpl in *. rewrite Hshape. split; [done|lia].
Qed.

Lemma blocks_delayed_more z lba bs :
  blocks_delayed (delay_write z lba bs) = length bs + blocks_delayed z.
Proof.
  unfold blocks_delayed, blocks_of. simpl. rewrite app_length, zip_with_length, seq_length. f_equal. lia.
Qed.

Lemma roomy_delay y z lba bs : may_delay shape_of y z lba bs = true → roomy (y, z) →
  roomy (y, delay_write z lba bs).
Proof.
  intros [Hfits%bool_decide_eq_true Hlen%bool_decide_eq_true]%andb_true_iff [Hrange Hroom].
  split; [by constructor|]. simpl in *. rewrite blocks_delayed_more. lia.
Qed.

Lemma blocks_reversed (ws : list (nat * list block)) :
  length (blocks_of (reverse ws)) = length (blocks_of ws).
Proof. unfold blocks_of. rewrite fmap_reverse. apply Permutation_length. by rewrite reverse_Permutation. Qed.

Lemma roomy_drain {A} (R : A → Prop) y z places result : roomy (y, z) →
  (∀ x all, roomy x → R (result x all)) → ends_in R (drain D y z places result).
Proof.
  intros Hz Hk. unfold drain. destruct (delayed z) as [|w ws] eqn:Hws; [by apply Hk|].
  eapply ends_in_then; [apply (used_by_group kept)|]. intros [y' []] [Hshape Hbound]; simpl in *; apply Hk.
  - destruct Hz as [_ Hroom]. unfold blocks_delayed in Hroom. simpl in *. rewrite Hws in Hroom.
    rewrite blocks_reversed in Hbound. split; [constructor|]. unfold blocks_delayed. simpl. lia.
  - eapply roomy_as_many; [|done]. split; [done|lia].
Qed.

Lemma roomy_request x places q : roomy x →
  ends_in (λ o, roomy o.1.1) (delaying_request D shape_of room_of x places q).
Proof.
  destruct x as [y z]. intros Hz.
  assert (ends_in (λ o, roomy o.1.1) (below D room_of y z places q)) as Hbelow.
  { unfold below. destruct (uses_places q) eqn:Hq.
    - eapply ends_in_then; [apply ends_anyhow|]. intros [[y' r] data] _.
      by destruct q; try done; apply roomy_nothing.
    - eapply ends_in_then; [by apply (kept_by_request kept)|]. intros [[y' r] data] Hy'.
      destruct q; try done; by eapply roomy_as_many. }
  assert (ends_in (λ o, roomy o.1.1) (when_drained D room_of y z places q)) as Hdrained.
  { unfold when_drained. by destruct (delayed z). }
  destruct q as [lba bs|lba count|n|n|n| | |from lba count]; try done.
  - simpl. destruct (may_delay _ _ _ _ _) eqn:Hmay; [|done]. by apply roomy_delay.
  - by apply roomy_drain.
Qed.

Lemma roomy_group x places ws : roomy x → ends_in (λ o, roomy o.1) (delaying_group shape_of x places ws).
Proof.
  destruct x as [y z]. intros Hz. unfold delaying_group. simpl.
  destruct (delay_all _ _ _ _) as [z'|] eqn:Hall; [|done]. simpl. revert z Hz Hall.
  induction ws as [|[lba bs] ws IH]; simpl; intros z Hz; [by intros [= <-]|].
  destruct (may_delay _ _ _ _ _) eqn:Hmay; [|done]. intros Hall. by eapply IH, Hall; apply roomy_delay.
Qed.

Lemma roomy_maintain x v : roomy x → ends_in roomy (delaying_maintain D room_of spares_places x v).
Proof.
  destruct x as [y z], v as [places|u]; simpl; intros Hz.
  - destruct (delayed z) eqn:Hws; [apply roomy_nothing|]. by apply roomy_drain.
  - unfold counted_again. destruct (delayed z).
    + eapply ends_in_then; [apply ends_anyhow|]. intros y' _. apply roomy_nothing.
    + destruct (spares_places u) eqn:Hu; [|done].
      eapply ends_in_then; [by apply (kept_by_upkeep kept)|]. intros y' Hy'. by eapply roomy_as_many.
Qed.

Definition roomy_machine (x : machine (Y * delay)) : Prop :=
  match x.1 with
  | Idle x => roomy x
  | Busy _ p => ends_in (λ o, roomy o.1.1) p
  | Group _ p => ends_in (λ o, roomy o.1) p
  | Upkeep p => ends_in roomy p
  | Off => True
  | Recovery p => ends_in (λ r, ∀ x, r = Some x → roomy x) p
  end.

Lemma roomy_opened r x : opened room_of r = Some x → roomy x.
Proof. destruct r; simpl; [|done]. intros [= <-]. apply roomy_nothing. Qed.

Lemma roomy_move x es x' : roomy_machine x → move delaying x es x' → roomy_machine x'.
Proof.
  unfold roomy_machine. intros Hx Hmove. destruct Hmove; simpl in *; try done.
  - by apply roomy_request.
  - by apply roomy_group.
  - by apply roomy_maintain.
  - by eapply ends_in_io.
  - by eapply ends_in_io.
  - by eapply ends_in_io.
  - by eapply ends_in_io.
  - eapply ends_in_then; [apply ends_anyhow|]. intros r _ x. apply roomy_opened.
  - by apply Hx.
Qed.

Context (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).
Context (programs_safe : crash_safe_programs D shape_of represents recoverable).

(** Whenever nothing is under way. *)
Theorem always_roomy n c tr x m : formatted delaying n c → shows (disk_machine delaying) c tr (Idle x, m) →
  roomy x ∧ ∃ f d, represents x.1 f d.
Proof.
  intros Hc Hs.
  assert (∀ c tr c' s, shows (disk_machine delaying) c tr c' → roomy_machine c →
    buffers_related shape_of represents recoverable Prefix c s → roomy_machine c' ∧ ∃ s',
      buffers_related shape_of represents recoverable Prefix c' s') as Hall.
  { clear c tr x m Hc Hs. intros c tr c' s Hs. revert s.
    induction Hs as [c|c es c1 tr c2 Hmove _ IH]; intros s Hc Hrel; [by eauto|].
    destruct (buffers_related_move D shape_of room_of spares_places represents recoverable programs_safe
      Prefix ltac:(done) _ _ _ _ Hrel Hmove) as (s1&_&Hrel1). eapply IH; [by eapply roomy_move|done]. }
  pose proof Hc as (z&Hz&Hidle)%(formatted_idle D shape_of room_of spares_places represents recoverable
    programs_safe).
  destruct (Hall _ _ _ (settled n blank) Hs) as [Hx (s'&f&_&d&Hy&_)].
  - destruct Hc as (trees&g&f&x0&_&_&Hx&->). unfold roomy_machine. simpl in *. injection Hz as <-.
    rewrite execute_then in Hx. simpl in Hx. by apply roomy_opened with (execute (run_format D trees g)
      (Medium f [])).1.
  - unfold buffers_related. by rewrite Hz.
  - split; [done|]. by exists f, d.
Qed.
End Room.

(** ** Both disks *)

Section Bound.
Context `{!blocks}.

(** So many free places, and so much room in the log. *)
Definition drainable (g : geometry) (fr : gmap nat ()) : nat :=
  min (most_in_log g) (length (map_to_list fr)).

Lemma delayed_go_into_log g k : 1 ≤ log_blocks g → 6 ≤ sealed_words → k ≤ most_in_log g →
  blocks_for (2 * k + 3) ≤ log_blocks g.
Proof.
  intros Hlog Hwords. unfold most_in_log, blocks_for.
  destruct (decide (2 * k + 3 + 3 ≤ sealed_words)) as [|Hlong]; [lia|]. intros Hk.
  destruct (decide (log_blocks g ≤ 2)).
  - pose proof (Nat.mul_div_le (sealed_words - 6) 2). unfold PeanoNat.Nat.div in *. lia.
  - pose proof (Nat.mul_div_le ((log_blocks g - 2) * body_words) 2) as Hhalf.
    assert (2 * k + 3 < body_words * (log_blocks g - 2)) as Hless by lia.
    assert ((2 * k + 3) `div` body_words < log_blocks g - 2); [|lia].
    apply Nat.div_lt_upper_bound; [|done]. intros Hnone. rewrite Hnone in Hless. lia.
Qed.
End Bound.

Section Whole.
Context `{!blocks} {torn : tearing block} (most : nat).

Definition drainable_now (y : memory) : nat := drainable (shape y) (free y).
Local Notation as_many := (as_many shape drainable_now).

Lemma ends_in_append_log {A} (R : A → Prop) g n room r bs refused (done : program block A) :
  ends_in R refused → ends_in R done → ends_in R (append_log g n room r bs refused done).
Proof.
  intros Hrefused Hdone. unfold append_log. simpl. destruct (log_pieces _ _ _) as [[body head]|]; [|done].
  assert (ends_in R (if room (size_of r) then write_all (zip (data_address g <$> places_of r) bs ++
    zip (log_address g <$> seq (S n) (length body)) body) (WriteBlock (log_address g n) head
    (FlushBlocks done)) else refused)) as Hall.
  { destruct (room _); [|done]. by apply ends_in_write_all. }
  by destruct body.
Qed.

Lemma take_free_size places fr fr' : take_free places fr = Some fr' →
  base.size fr = length places + base.size fr'.
Proof.
  revert fr. induction places as [|p places IH]; intros fr; simpl; [by intros [= ->]|].
  destruct (fr !! p) eqn:Hp; [|done]. intros Hfree. rewrite <-(IH _ Hfree).
  rewrite <-(insert_delete _ _ _ Hp), map_size_insert, lookup_delete. simpl.
  by rewrite delete_insert by apply lookup_delete.
Qed.

Lemma ends_in_group_log {A} (R : A → Prop) g n room fr places ws none all :
  ends_in R none →
  (∀ r fr', base.size fr = length (blocks_of ws) + base.size fr' → ends_in R (all r fr' : program block A)) →
  ends_in R (group_log g n room fr places ws none all).
Proof.
  intros Hnone Hall. unfold group_log. cbv zeta. destruct (take_free _ _) as [fr'|] eqn:Hfree; [|done].
  destruct (decide _) as [Hlen|]; [|done]. destruct (forallb _ _); [|done].
  apply ends_in_append_log; [done|]. apply Hall. apply take_free_size in Hfree. lia.
Qed.

(** Of a request that has no data. *)
Lemma ends_in_update_log {A} (R : A → Prop) g n room fr places q refused done_ :
  uses_places q = false → ends_in R refused → (∀ r, ends_in R (done_ r fr : program block A)) →
  ends_in R (update_log g n room fr (take (length (data_of q)) places) q refused done_).
Proof.
  intros Hq Hrefused Hdone. unfold update_log.
  assert (take (length (data_of q)) places = []) as -> by by destruct q.
  destruct (record_of q []); [|done]. simpl. destruct (decide _); [|done]. by apply ends_in_append_log.
Qed.

Lemma ends_in_read_places {A} (R : A → Prop) g places (k : list block → program block A) :
  (∀ bs, ends_in R (k bs)) → ends_in R (read_places g places k).
Proof. intros Hk. revert k Hk. induction places as [|[p|] places IH]; intros k Hk; simpl; auto. Qed.

Lemma ends_in_checkpoint {A} (R : A → Prop) y (k : memory → program block A) :
  (∀ y', as_many y y' → ends_in R (k y')) → ends_in R (checkpoint y k).
Proof.
  intros Hk. unfold checkpoint. cbv zeta. destruct (pack_many _ _); [|by apply Hk].
  destruct (seal _); [|by apply Hk]. apply ends_in_write_all. simpl. by apply Hk.
Qed.

Lemma whole_keeps_places :
  keeps_places proved_programs shape (delay_room most) spares_places drainable_now.
Proof.
  split.
  - intros y. unfold delay_room, delay_room_of, drainable_now, drainable. lia.
  - intros y places q Hq. simpl. unfold perform. destruct (faults_of _ _); [|done].
    assert (ends_in (λ o : outcome, as_many y o.1.1) (with_room (size_for q (take (length (data_of q))
      places)) y (λ y, update y (take (length (data_of q)) places) q))) as Hupdate.
    { assert (∀ y', as_many y y' → ends_in (λ o : outcome, as_many y o.1.1)
        (update y' (take (length (data_of q)) places) q)) as Hone.
      { intros y' Hy'. unfold update. destruct (one_too_many _ _); [done|]. by apply ends_in_update_log. }
      unfold with_room. destruct (room_for _ _); [by apply Hone|]. by apply ends_in_checkpoint. }
    destruct q; try done. by apply ends_in_read_places.
  - intros y places ws. simpl. unfold write_group, with_room.
    assert (∀ y', as_many y y' → ends_in (λ o : memory * bool, shape o.1 = shape y ∧
      drainable_now y ≤ drainable_now o.1 + if o.2 then length (blocks_of ws) else 0)
      (group_log (shape y') (next_record y') (room_for y') (free y') places ws (Done (y', false))
        (λ r fr, Done (logged y' r fr, true)))) as Hgroup.
    { intros y' [Hshape Hbound]. apply ends_in_group_log; simpl.
      - split; [done|lia].
      - intros r fr' Hsize. split; [done|]. unfold drainable_now, drainable in *. simpl in *.
        rewrite Hshape in *. unfold base.size, map_size in Hsize. lia. }
    destruct (room_for _ _); [by apply Hgroup|]. by apply ends_in_checkpoint.
  - intros y [] Hu; try done. by apply ends_in_checkpoint.
Qed.

(** The maps go into a slot. *)
Definition maps_fit (y : memory) : Prop := ∃ bs,
  pack_many (slot_blocks (shape y)) (put maps_codec (Maps (live_map (current y)) (snap_maps (current y))
    (used_middle (current y)) (next_mba (current y)))) = Some bs ∧
  is_Some (seal (put header_codec (S (serial y), (next_record y, length bs)))).

(** If there are places for all that is delayed, a flush writes it and is answered [Ok], with the first free
places. Numbers are below the limit of words, and the maps go into a slot. *)
Lemma roomy_flush y z f d m :
  blocks_laws → represents y f d → in_range (shape y) (delayed z) → blocks_delayed z ≤ drainable_now y →
  small_group (shape y) (next_record y) (reverse (delayed z)) → maps_fit y →
  let o := (execute (run_request (write_back_programs most) (y, z) (first_free y (blocks_delayed z)) DoFlush)
    m).1 in o.1.2 = Ok ∧ delayed o.1.1.2 = [].
Proof.
  intros laws ((m0&rs&Hdur&_&_&[_ Hbelow]&_)&_) Hrange Hroom Hsmall Hfit. simpl in *.
  unfold drain.
  destruct (delayed z) as [|w ws'] eqn:Hws; [done|]. rewrite <-Hws in *. set (ws := reverse (delayed z)) in *.
  assert (length (blocks_of ws) = blocks_delayed z) as Hlen.
  { apply blocks_reversed. }
  assert (in_range (shape y) ws) as Hin by by apply Forall_reverse.
  unfold drainable_now, drainable in Hroom.
  destruct (first_free_taken y (blocks_delayed z)) as [Hfirst [fr Hfree]];
    [unfold base.size, map_size; lia|].
  destruct (group_goes_in y ws (first_free y (blocks_delayed z)) fr) as [Hgoes Hsize]; try done;
    [by rewrite Hlen|].
  pose proof (long_group_refusal_has_reason y (first_free y (blocks_delayed z)) ws fr m Hin) as Hall.
  rewrite execute_then. cbn [proved_programs run_group].
  destruct (execute (write_group y (first_free y (blocks_delayed z)) ws) m) as [[y' all] m'] eqn:Hex.
  assert (all = true) as ->.
  { change all with (y', all, m').1.2. rewrite Hall; [done|by rewrite Hlen|done|done|].
    right. split; [|exact Hfit]. rewrite Hsize. unfold writes_blocks. rewrite Hlen.
    pose proof (log_positive _ _ _ _ _ _ _ Hdur). destruct Hsmall as [Hone _].
    apply delayed_go_into_log; lia. }
  done.
Qed.

(** Whatever happened to the disk: if nothing is under way, there are. *)
Theorem flush_is_answered n c tr y z m :
  blocks_laws → fresh (write_back_disk most) n c → shows (write_back_disk most) c tr (Idle (y, z), m) →
  small_group (shape y) (next_record y) (reverse (delayed z)) → maps_fit y →
  let o := (execute (run_request (write_back_programs most) (y, z) (first_free y (blocks_delayed z)) DoFlush)
    m).1 in o.1.2 = Ok ∧ delayed o.1.1.2 = [].
Proof.
  intros laws Hc Hs. destruct (always_roomy _ _ _ _ _ whole_keeps_places _ _ proved_programs_safe
    _ _ _ _ _ Hc Hs) as [[Hrange Hroom] (f&d&Hy)]. simpl in *.
  apply roomy_flush with f d; [done..|lia].
Qed.
End Whole.

Import ProvedTreeDiskInvariant.

Section Trees.
Context `{!blocks} {torn : tearing block} (most bits : nat).

Definition tree_drainable_now (y : T.memory) : nat := drainable (T.shape y) (T.free y).
Local Notation as_many := (as_many T.shape tree_drainable_now).

Lemma ends_in_tree_checkpoint {A} (R : A → Prop) y (k : T.memory → program block A) :
  (∀ y', as_many y y' → ends_in R (k y')) → ends_in R (T.checkpoint y k).
Proof.
  intros Hk. unfold T.checkpoint, TreeStore.checkpoint. cbv zeta.
  assert (∀ z, ends_in R (k (if decide (TreeStore.serial z = T.serial y) then y else T.committed y z)))
    as Hall by by (intros z; apply Hk; destruct (decide _)).
  destruct (decide _); [|apply Hall]. destruct (mapM _ _); [|apply Hall].
  destruct (pack_many _ _); [|apply Hall]. destruct (seal _); [|apply Hall].
  apply ends_in_write_all, Hall.
Qed.

Lemma trees_keep_places : keeps_places (ProvedTreeDiskTheorem.tree_programs bits) T.shape
  (tree_delay_room most) tree_spares_places tree_drainable_now.
Proof.
  split.
  - intros y. unfold tree_delay_room, delay_room_of, tree_drainable_now, drainable. lia.
  - intros y places q Hq. simpl. unfold T.perform. destruct (T.faults_of _ _); [|done].
    assert (ends_in (λ o : T.outcome, as_many y o.1.1) (T.with_room (size_for q (take (length (data_of q))
      places)) y (λ y, T.update bits y (take (length (data_of q)) places) q))) as Hupdate.
    { assert (∀ y', as_many y y' → ends_in (λ o : T.outcome, as_many y o.1.1)
        (T.update bits y' (take (length (data_of q)) places) q)) as Hone.
      { intros y' Hy'. unfold T.update. destruct (T.one_too_many _ _); [done|].
        by apply ends_in_update_log. }
      unfold T.with_room. destruct (T.room_for _ _); [by apply Hone|]. by apply ends_in_tree_checkpoint. }
    destruct q; try done. by apply ends_in_read_places.
  - intros y places ws. simpl. unfold T.write_group, T.with_room.
    assert (∀ y', as_many y y' → ends_in (λ o : T.memory * bool, T.shape o.1 = T.shape y ∧
      tree_drainable_now y ≤ tree_drainable_now o.1 + if o.2 then length (blocks_of ws) else 0)
      (group_log (T.shape y') (T.next_record y') (T.room_for y') (T.free y') places ws (Done (y', false))
        (λ r fr, Done (T.logged bits y' r fr, true)))) as Hgroup.
    { intros y' [Hshape Hbound]. apply ends_in_group_log; simpl.
      - split; [done|lia].
      - intros r fr' Hsize. split; [done|]. unfold tree_drainable_now, drainable in *. simpl in *.
        rewrite Hshape in *. unfold base.size, map_size in Hsize. lia. }
    destruct (T.room_for _ _); [by apply Hgroup|]. by apply ends_in_tree_checkpoint.
  - intros y [[]|] Hu; try done; [by apply ends_in_tree_checkpoint|].
    simpl. unfold T.walk_on. by destruct (ProvedTreeMaps.walk _ _ _).
Qed.

Lemma roomy_tree_flush y z f d m :
  blocks_laws → tree_represents bits y f d → in_range (T.shape y) (delayed z) →
  blocks_delayed z ≤ tree_drainable_now y → small_group (T.shape y) (T.next_record y) (reverse (delayed z)) →
  ProvedTreeDiskCost.goes_into_slot bits y →
  let o := (execute (run_request (write_back_tree_programs most bits) (y, z)
    (T.first_free y (blocks_delayed z)) DoFlush) m).1 in o.1.2 = Ok ∧ delayed o.1.1.2 = [].
Proof.
  intros laws Hy Hrange Hroom Hsmall Hfit. simpl in *.
  unfold drain.
  destruct (delayed z) as [|w ws'] eqn:Hws; [done|]. rewrite <-Hws in *. set (ws := reverse (delayed z)) in *.
  assert (length (blocks_of ws) = blocks_delayed z) as Hlen.
  { apply blocks_reversed. }
  assert (in_range (T.shape y) ws) as Hin by by apply Forall_reverse.
  unfold tree_drainable_now, drainable in Hroom.
  destruct (first_free_taken (with_maps y no_maps) (blocks_delayed z))
    as [Hfirst [fr Hfree]]; [simpl; unfold base.size, map_size; lia|].
  destruct (group_goes_in (with_maps y no_maps) ws (T.first_free y (blocks_delayed z))
    fr) as [Hgoes Hsize]; try done;
    [by rewrite Hlen|intros p; by eapply ProvedTreeDiskBounds.tree_free_below|].
  pose proof (ProvedTreeDiskAnswers.tree_long_group_refusal_has_reason bits y
    (T.first_free y (blocks_delayed z)) ws fr m Hin) as Hall.
  rewrite execute_then. cbn [ProvedTreeDiskTheorem.tree_programs run_group].
  destruct (execute (T.write_group bits y (T.first_free y (blocks_delayed z)) ws) m) as [[y' all] m'] eqn:Hex.
  assert (all = true) as ->.
  { change all with (y', all, m').1.2. rewrite Hall; [done|by rewrite Hlen|done|done|].
    right. split; [|exact Hfit]. rewrite Hsize. unfold writes_blocks. rewrite Hlen.
    assert (0 < log_blocks (T.shape y)) as Hlog.
    { destruct Hy as (s0&x0&m1&[(m0&rs&Hdur&_) _]&_). by apply (log_positive _ _ _ _ _ _ _ Hdur). }
    destruct Hsmall as [Hone _]. apply delayed_go_into_log; lia. }
  done.
Qed.

Theorem tree_flush_is_answered n c tr y z m :
  blocks_laws → fresh (write_back_tree_disk most bits) n c →
  shows (write_back_tree_disk most bits) c tr (Idle (y, z), m) →
  small_group (T.shape y) (T.next_record y) (reverse (delayed z)) → ProvedTreeDiskCost.goes_into_slot bits y →
  let o := (execute (run_request (write_back_tree_programs most bits) (y, z)
    (T.first_free y (blocks_delayed z)) DoFlush) m).1 in o.1.2 = Ok ∧ delayed o.1.1.2 = [].
Proof.
  intros laws Hc Hs.
  destruct (always_roomy _ _ _ _ _ trees_keep_places _ _ (ProvedTreeDiskTheorem.tree_programs_safe bits laws)
    _ _ _ _ _ Hc Hs) as [[Hrange Hroom] (f&d&Hy)]. simpl in *.
  apply roomy_tree_flush with f d; [done..|lia].
Qed.
End Trees.
