(** What a request costs, and when it is refused: every refusal has a reason that is named here. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ByteBlocks ProvedDisk.

Section Progress.
Context `{!blocks}.

(** The block I/Os of a program that no power cut ends: reads, writes, flushes. *)
Fixpoint cost {A} (p : program block A) (m : medium block) : nat * nat * nat :=
  match p with
  | Done _ => (0, 0, 0)
  | ReadBlock a k => let '(r, w, f) := cost (k (read_block m a)) m in (S r, w, f)
  | WriteBlock a b k => let '(r, w, f) := cost k (write_block m a b) in (r, S w, f)
  | FlushBlocks k => let '(r, w, f) := cost k (flush_blocks m) in (r, w, S f)
  end.

Lemma execute_write_all {A} ws (k : program block A) m : ∃ m',
  execute (write_all ws k) m = execute k m' ∧
  cost (write_all ws k) m = (let '(r, w, f) := cost k m' in (r, length ws + w, f)).
Proof.
  revert m. induction ws as [|[a b] ws IH]; intros m; simpl.
  - exists m. split; [done|]. by destruct (cost k m) as [[]].
  - destruct (IH (write_block m a b)) as (m'&->&->). exists m'. split;
    [done|]. by destruct (cost k m') as [[]].
Qed.

(** The log record of a request goes into a block. *)
Definition record_fits (y : memory) (r : log_record) : Prop :=
  is_Some (pack (put log_codec (next_record y, r))).

(** The log has room, or a checkpoint makes some. *)
Definition log_can_go_on (y : memory) : Prop :=
  has_room y = true ∨ 0 < log_blocks (shape y) ∧ ∃ bs,
    pack_many (slot_blocks (shape y)) (put maps_codec (Maps (live_map (current y)) (snap_maps (current y))
      (used_middle (current y)) (next_mba (current y)))) = Some bs ∧
    is_Some (pack (put header_codec (S (serial y), (next_record y, length bs)))).

Lemma execute_append {A} y r places data (refused k : program block A) m :
  record_fits y r → has_room y = true → length places = length data → ∃ m',
  execute (append y r places data refused k) m = execute k m' ∧
  (cost k m' = (0, 0, 0) → cost (append y r places data refused k) m =
    (0, S (length data), if decide (data = []) then 1 else 2)).
Proof.
  intros [b Hb] Hroom Hlen. unfold append. rewrite Hb, Hroom. destruct places as [|p places].
  - destruct data; [|done]. simpl. eexists. split; [done|]. intros ->. done.
  - destruct data as [|x data]; [done|].
    destruct (execute_write_all (zip (data_address (shape y) <$> p :: places) (x :: data)) (FlushBlocks
      (WriteBlock (log_address (shape y) (next_record y)) b (FlushBlocks k))) m) as (m'&->&->).
    simpl. eexists. split; [done|]. intros ->. rewrite zip_with_length, fmap_length. simpl in Hlen.
    f_equal. f_equal. lia.
Qed.

(** A request that changes a view is answered [Ok], but for these reasons: a fault of the request, a snapshot
too many, places that are not free, distinct and as many as the data, a record that is longer than a block,
and maps that do not go into a slot. *)
Theorem refusal_has_reason y places q r fr m :
  faults_of y q = [] → one_too_many y q = false → record_of q places = Some r →
  take_free places (free y) = Some fr → length places = length (data_of q) → record_fits y r →
    log_can_go_on y →
  (execute (perform y places q) m).1.1.2 = Ok.
Proof.
  intros Hfaults Hone Hr Hfree Hlen Hfits Hlog. unfold perform. rewrite Hfaults.
  assert (∀ y' m, free y' = free y → snap_maps (current y') = snap_maps (current y) → shape y' = shape y →
    next_record y' = next_record y → has_room y' = true →
      (execute (update y' places q) m).1.1.2 = Ok) as Hupdate.
  { intros y' m' Hfree' Hsnaps Hshape Hnext Hroom. unfold update.
    assert (one_too_many y' q = false) as -> by (destruct q; try done; simpl in *; by rewrite Hsnaps, Hshape).
    rewrite Hr, Hfree', Hfree, decide_True by done. cbv beta iota zeta.
    match goal with |- context [append _ _ _ _ ?refused ?k] =>
      destruct (execute_append y' r places (data_of q) refused k m') as (m1&Hex&_) end; [|done..|].
    - by unfold record_fits; rewrite Hnext.
    - unfold outcome in *. by rewrite Hex. }
  assert ((execute (with_room y (λ y, update y places q)) m).1.1.2 = Ok) as Hok.
  { unfold with_room. destruct (has_room y) eqn:Hroom; [by apply Hupdate|].
    destruct Hlog as [|(Hpos&bs&Hbs&header&Hheader)]; [by rewrite Hroom in *|]. unfold checkpoint.
    rewrite Hbs, Hheader.
    destruct (execute_write_all (zip (body_address (shape y) (negb (slot y)) <$> seq 0 (length bs)) bs)
      (FlushBlocks (WriteBlock (header_address (negb (slot y))) header (FlushBlocks (update (Memory (shape y)
        (Maps (live_map (current y)) (snap_maps (current y)) (used_middle (current y)) (next_mba (current y)))
        (free y) (next_record y) (next_record y) (S (serial y)) (negb (slot y))) places q)))) m) as (m'&->&_).
    simpl. apply Hupdate; try done. unfold has_room. simpl. apply bool_decide_eq_true_2. lia. }
  by destruct q; simplify_eq/=.
Qed.

(** With room in the log, a write of [n] blocks costs [n + 1] block writes and two flushes, whatever snapshots
there are and however large the disk is; another change costs one block write and one flush. *)
Theorem update_cost y places q r fr m :
  faults_of y q = [] → one_too_many y q = false → record_of q places = Some r →
  take_free places (free y) = Some fr → length places = length (data_of q) → record_fits y r →
    has_room y = true →
  cost (perform y places q) m = (0, S (length (data_of q)), if decide (data_of q = []) then 1 else 2).
Proof.
  intros Hfaults Hone Hr Hfree Hlen Hfits Hroom. unfold perform. rewrite Hfaults.
  assert (cost (with_room y (λ y, update y places q))
    m = (0, S (length (data_of q)), if decide (data_of q = []) then 1 else 2)) as Hcost.
  { unfold with_room. rewrite Hroom. unfold update. rewrite Hone, Hr, Hfree, decide_True by done.
    cbv beta iota zeta.
    match goal with |- context [append _ _ _ _ ?refused ?k] =>
      destruct (execute_append y r places (data_of q) refused k m) as (m'&_&Hcost) end; [done..|].
    unfold outcome in *. by apply Hcost. }
  by destruct q; simplify_eq/=.
Qed.

(** A read of [n] blocks costs at most [n] block reads, and nothing else. *)
Lemma read_places_cost {A} g places (k : list block → program block A) m :
  (∀ bs, cost (k bs) m = (0, 0, 0)) → ∃ n, n ≤ length places ∧ cost (read_places g places k) m = (n, 0, 0).
Proof.
  revert k. induction places as [|[p|] places IH]; intros k Hk; simpl; [by exists 0|..].
  - destruct (IH (λ bs, k (read_block m (data_address g p) :: bs))) as (n&?&->); [done|]. exists (S n).
    split; [lia|done].
  - destruct (IH (λ bs, k (zero_block :: bs))) as (n&?&->); [done|]. exists n. split; [lia|done].
Qed.

Theorem read_cost y places from lba count m :
  ∃ n, n ≤ count ∧ cost (perform y places (DoRead from lba count)) m = (n, 0, 0).
Proof.
  unfold perform. destruct (faults_of _ _); [|exists 0; split; [lia|done]].
  destruct (read_places_cost (shape y) (place_of (current y) (map_of (current y) from) <$> seq lba count)
    (λ bs, Done (y, Ok, bs)) m) as (n&Hn&Hcost); [done|]. exists n. rewrite fmap_length, seq_length in Hn.
  unfold outcome in *. by rewrite Hcost.
Qed.
End Progress.
