(** What a request costs, and when it is refused: every refusal has a reason that is named here. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ByteBlocks ProvedDisk ProvedDiskInvariant ProvedDiskMaps.

Section Progress.
Context `{!blocks}.

(** The block I/Os of a program that no power cut ends: reads, writes, flushes. *)
Fixpoint cost {A} (p : program block A) (m : medium block) : nat * nat * nat :=
  match p with
  | Done _ => (0, 0, 0)
  | ReadBlock a k => let '(r, w, f) := cost (k (read_block m a)) m in (S r, w, f)
  | WriteBlock a b k => let '(r, w, f) := cost k (write_block m a b) in (r, S w, f)
  | FlushBlocks k => let '(r, w, f) := cost k (flush_blocks m) in (r, w, S f)
  | Assume _ k => cost k m
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

(** The log record of a request goes into a block, with the digest of its data. *)
Definition record_fits (y : memory) (r : log_record) (data : list block) : Prop :=
  is_Some (seal (put log_codec (next_record y, (r, digest data)))).

(** It goes into several blocks, or into one. *)
Definition record_goes (y : memory) (r : log_record) (data : list block) : Prop :=
  is_Some (log_pieces (next_record y) r (digest data)).

Lemma fits_goes y r data : record_fits y r data → size_of r = 1 ∧ record_goes y r data.
Proof.
  intros [b Hb]. assert (size_of r = 1) as Hsize.
  { unfold seal in Hb. rewrite put_log in Hb. unfold size_of, blocks_for.
    destruct (bool_decide_reflect (length (next_record y :: put record_codec r ++
      [(digest data).1; (digest data).2]) ≤ sealed_words)) as [Hlen|]; [|done].
    rewrite decide_True; [done|]. cbn [length] in Hlen. rewrite app_length in Hlen.
    cbn [length] in Hlen. lia. }
  split; [done|]. unfold record_goes, log_pieces. rewrite Hsize. cbn [pred]. rewrite Hb. by eexists.
Qed.

(** The log has room for so many blocks, or a checkpoint makes some; and for one. *)
Definition log_can_go_on_for (k : nat) (y : memory) : Prop :=
  room_for y k = true ∨ k ≤ log_blocks (shape y) ∧ ∃ bs,
    pack_many (slot_blocks (shape y)) (put maps_codec (Maps (live_map (current y)) (snap_maps (current y))
      (used_middle (current y)) (next_mba (current y)))) = Some bs ∧
    is_Some (seal (put header_codec (S (serial y), (next_record y, length bs)))).
Definition log_can_go_on (y : memory) : Prop := log_can_go_on_for 1 y.

Lemma execute_append {A} y r data (refused k : program block A) m :
  record_goes y r data → room_for y (size_of r) = true → length (places_of r) = length data → ∃ m',
  execute (append y r data refused k) m = execute k m' ∧
  (cost k m' = (0, 0, 0) → cost (append y r data refused k) m = (0, size_of r + length data, 1)).
Proof.
  intros [[bs b] Hb] Hroom Hlen. pose proof (log_pieces_size _ _ _ _ _ Hb) as Hsize.
  unfold append, append_log. cbn [execute cost]. rewrite Hb, Hroom.
  assert (∀ (p : program block A), execute (vouched bs p) m = execute p m ∧ cost (vouched bs p) m = cost p m)
    as Hvouched by by destruct bs.
  match goal with |- context [vouched bs ?p] => destruct (Hvouched p) as [-> ->] end.
  match goal with |- context [write_all ?ws ?p] => destruct (execute_write_all ws p m) as (m'&->&->) end.
  simpl. eexists. split; [done|]. intros ->. rewrite app_length, !zip_with_length, !fmap_length, seq_length.
  f_equal. f_equal. lia.
Qed.

(** Of a request's record, the places are those that were proposed. *)
Lemma record_length q places r : record_of q places = Some r → length places = length (data_of q) →
  length (places_of r) = length (data_of q).
Proof. intros Hr Hlen. by destruct q; simplify_eq/=. Qed.

(** A program that needs room in the log gets it, with nothing else changed that it looks at. *)
Lemma execute_with_room {A} n y (k : memory → program block A) m : log_can_go_on_for n y → ∃ y' m',
  execute (with_room n y k) m = execute (k y') m' ∧ room_for y' n = true ∧ shape y' = shape y ∧
  free y' = free y ∧
  snap_maps (current y') = snap_maps (current y) ∧ next_record y' = next_record y.
Proof.
  unfold with_room. destruct (room_for y n) eqn:Hroom; [by exists y, m|].
  intros [|(Hpos&bs&Hbs&header&Hheader)]; [congruence|]. unfold checkpoint. rewrite Hbs, Hheader.
  match goal with |- context [write_all ?ws ?p] => destruct (execute_write_all ws p m) as (m'&->&_) end.
  simpl. do 2 eexists. split; [done|]. split_and!; try done. apply bool_decide_eq_true_2. simpl. lia.
Qed.

(** A request that changes a view is answered [Ok], but for these reasons: a fault of the request, a snapshot
too many, places that are not free, distinct and as many as the data, a record that does not go into blocks,
and maps that do not go into a slot, or a log that is shorter than the record. *)
Theorem long_refusal_has_reason y places q r fr m :
  faults_of y q = [] → one_too_many y q = false → record_of q places = Some r →
  take_free places (free y) = Some fr → length places = length (data_of q) → record_goes y r (data_of q) →
  log_can_go_on_for (size_of r) y →
  (execute (perform y places q) m).1.1.2 = Ok.
Proof.
  intros Hfaults Hone Hr Hfree Hlen Hgoes Hlog. unfold perform. rewrite Hfaults, (take_ge places) by lia.
  assert (size_for q places = size_of r) as Hsize by (unfold size_for; by rewrite Hr).
  destruct (execute_with_room (size_for q places) y (λ y, update y places q) m)
    as (y'&m'&Hex&Hroom&Hshape&Hfree'&Hsnaps&Hnext); [by rewrite Hsize|].
  assert ((execute (with_room (size_for q places) y (λ y, update y places q)) m).1.1.2 = Ok) as Hok.
  { rewrite Hex. unfold update, update_log.
    assert (one_too_many y' q = false) as -> by (destruct q; try done; simpl in *; by rewrite Hsnaps, Hshape).
    rewrite Hr, Hfree', Hfree, decide_True by done. cbv beta iota zeta. rewrite Hsize in Hroom.
    match goal with |- context [append_log _ _ _ _ _ ?refused ?k] =>
      destruct (execute_append y' r (data_of q) refused k m') as (m1&Hex1&_) end; [|done|..].
    - by unfold record_goes; rewrite Hnext.
    - by eapply record_length.
    - unfold outcome, append in *. by rewrite Hex1. }
  by destruct q; simplify_eq/=.
Qed.

(** Where the record goes into one block it needs room for one. *)
Theorem refusal_has_reason y places q r fr m :
  faults_of y q = [] → one_too_many y q = false → record_of q places = Some r →
  take_free places (free y) = Some fr → length places = length (data_of q) → record_fits y r (data_of q) →
    log_can_go_on y →
  (execute (perform y places q) m).1.1.2 = Ok.
Proof.
  intros Hfaults Hone Hr Hfree Hlen [Hsize Hgoes]%fits_goes Hlog.
  eapply long_refusal_has_reason; try done. by rewrite Hsize.
Qed.

Lemma group_length {X} (bs : list (nat * X)) places : length places = length bs →
  length (places_of (LogGroup (zip bs.*1 places))) = length bs.*2.
Proof. intros Hlen. simpl. rewrite snd_zip; rewrite !fmap_length; [done|lia]. Qed.

(** Several writes are performed at once, but for these reasons: one that is out of range, places that are not
free, distinct and as many as the blocks, a record that does not go into blocks, and maps that do not go into
a slot, or a log that is shorter than the record. *)
Theorem long_group_refusal_has_reason y places ws fr m :
  let bs := blocks_of ws in let r := LogGroup (zip bs.*1 places) in
  Forall (λ w, fits (disk_blocks (shape y)) w.1 (length w.2)) ws → length places = length bs →
  take_free places (free y) = Some fr → record_goes y r bs.*2 → log_can_go_on_for (size_of r) y →
  (execute (write_group y places ws) m).1.2 = true.
Proof.
  intros bs r Hfit Hlen Hfree Hgoes Hlog. unfold write_group.
  assert (record_of_group places ws = r) as ->.
  { unfold record_of_group. fold bs. by rewrite (take_ge places) by lia. }
  match goal with |- context [with_room ?n y ?k] =>
    destruct (execute_with_room n y k m Hlog) as (y'&m'&->&Hroom&Hshape&Hfree'&_&Hnext) end.
  unfold group_log. fold bs. cbv zeta. rewrite (take_ge places), Hfree', Hfree, decide_True by (done || lia).
  assert (forallb (λ w, bool_decide (fits (disk_blocks (shape y')) w.1 (length w.2))) ws = true) as ->.
  { apply forallb_forall. intros w Hw%elem_of_list_In. apply bool_decide_eq_true_2.
    rewrite Forall_forall in Hfit. rewrite Hshape. by apply Hfit. }
  match goal with |- context [append_log _ _ _ ?r ?data ?refused ?k] =>
    destruct (execute_append y' r data refused k m') as (m1&Hex&_) end; [|done|by apply group_length|].
  - unfold record_goes. by rewrite Hnext.
  - unfold append in Hex. by rewrite Hex.
Qed.

Theorem group_refusal_has_reason y places ws fr m :
  let bs := blocks_of ws in
  Forall (λ w, fits (disk_blocks (shape y)) w.1 (length w.2)) ws → length places = length bs →
  take_free places (free y) = Some fr → record_fits y (LogGroup (zip bs.*1 places)) bs.*2 → log_can_go_on y →
  (execute (write_group y places ws) m).1.2 = true.
Proof.
  intros bs Hfit Hlen Hfree [Hsize Hgoes]%fits_goes Hlog.
  apply (long_group_refusal_has_reason y places ws fr); try done. fold bs. by rewrite Hsize.
Qed.

(** Of a proposal, no more counts than there are data to place: nothing for what is no write. *)
Lemma surplus_ignored y places q : perform y places q = perform y (take (length (data_of q)) places) q.
Proof. unfold perform. by rewrite take_take, Nat.min_id. Qed.

(** With room in the log, a write of [n] blocks costs [n] block writes, those of its record, and one flush,
whatever snapshots there are and however large the disk is; so does another change, without data. *)
Theorem long_update_cost y places q r fr m :
  faults_of y q = [] → one_too_many y q = false → record_of q places = Some r →
  take_free places (free y) = Some fr → length places = length (data_of q) →
  record_goes y r (data_of q) → room_for y (size_of r) = true →
  cost (perform y places q) m = (0, size_of r + length (data_of q), 1).
Proof.
  intros Hfaults Hone Hr Hfree Hlen Hgoes Hroom. unfold perform. rewrite Hfaults, (take_ge places) by lia.
  assert (size_for q places = size_of r) as Hsize by (unfold size_for; by rewrite Hr).
  assert (cost (with_room (size_for q places) y (λ y, update y places q)) m =
    (0, size_of r + length (data_of q), 1)) as Hcost.
  { unfold with_room. rewrite Hsize, Hroom. unfold update, update_log.
    rewrite Hone, Hr, Hfree, decide_True by done. cbv beta iota zeta.
    match goal with |- context [append_log _ _ _ _ _ ?refused ?k] =>
      destruct (execute_append y r (data_of q) refused k m) as (m'&_&Hcost) end;
      [done|done|by eapply record_length|].
    unfold outcome, append in *. by apply Hcost. }
  by destruct q; simplify_eq/=.
Qed.

Theorem update_cost y places q r fr m :
  faults_of y q = [] → one_too_many y q = false → record_of q places = Some r →
  take_free places (free y) = Some fr → length places = length (data_of q) →
  record_fits y r (data_of q) → has_room y = true →
  cost (perform y places q) m = (0, S (length (data_of q)), 1).
Proof.
  intros Hfaults Hone Hr Hfree Hlen [Hsize Hgoes]%fits_goes Hroom.
  rewrite (long_update_cost y places q r fr) by (by rewrite ?Hsize). by rewrite Hsize.
Qed.

(** So do several writes at once, of [n] blocks together: one record and one flush for all of them. *)
Theorem long_group_cost y places ws fr m :
  let bs := blocks_of ws in let r := LogGroup (zip bs.*1 places) in
  Forall (λ w, fits (disk_blocks (shape y)) w.1 (length w.2)) ws → length places = length bs →
  take_free places (free y) = Some fr → record_goes y r bs.*2 → room_for y (size_of r) = true →
  (execute (write_group y places ws) m).1.2 = true ∧
  cost (write_group y places ws) m = (0, size_of r + length bs, 1).
Proof.
  intros bs r Hfit Hlen Hfree Hgoes Hroom. unfold write_group, with_room.
  assert (record_of_group places ws = r) as ->.
  { unfold record_of_group. fold bs. by rewrite (take_ge places) by lia. }
  rewrite Hroom. unfold group_log. fold bs.
  cbv zeta. rewrite (take_ge places), Hfree, decide_True by (done || lia).
  assert (forallb (λ w, bool_decide (fits (disk_blocks (shape y)) w.1 (length w.2))) ws = true) as ->.
  { apply forallb_forall. intros w Hw%elem_of_list_In. apply bool_decide_eq_true_2.
    rewrite Forall_forall in Hfit. by apply Hfit. }
  destruct (execute_append y r bs.*2 (Done (y, false)) (Done (logged y r fr, true)) m) as (m'&Hex&Hcost);
    [done|done|by apply group_length|].
  unfold append in *. fold r. rewrite Hex. split; [done|]. by rewrite Hcost, fmap_length.
Qed.

Theorem group_cost y places ws fr m :
  let bs := blocks_of ws in
  Forall (λ w, fits (disk_blocks (shape y)) w.1 (length w.2)) ws → length places = length bs →
  take_free places (free y) = Some fr → record_fits y (LogGroup (zip bs.*1 places)) bs.*2 →
    has_room y = true →
  (execute (write_group y places ws) m).1.2 = true ∧
  cost (write_group y places ws) m = (0, S (length bs), 1).
Proof.
  intros bs Hfit Hlen Hfree [Hsize Hgoes]%fits_goes Hroom.
  destruct (long_group_cost y places ws fr m) as [Hall Hcost]; try done; [fold bs; by rewrite Hsize|].
  split; [done|]. fold bs in Hcost. by rewrite Hcost, Hsize.
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
(** ** No space only where there is none

Whatever the scheduler is, the proved code has a proposal of its own, which is taken as long as there is room:
the first free places, once they were collected. *)

Lemma unused_dom used n found p : p ∈ dom found ∨ p < n ∧ used !! p = None → p ∈ dom (unused used n found).
Proof.
  revert found. induction n as [|n IH]; intros found; simpl; [intros [?|[? _]]; [done|lia]|].
  intros Hp. apply IH. destruct (used !! n) eqn:Hn.
  - destruct Hp as [?|[? Hu]]; [by left|right]. split; [|done]. destruct (decide (p = n)); [congruence|lia].
  - destruct Hp as [?|[? Hu]]; [left; set_solver|]. destruct (decide (p = n)) as [->|]; [left; set_solver|].
    right. split; [lia|done].
Qed.

Lemma unused_size (used : gmap nat ()) n : n ≤ base.size (unused used n ∅) + base.size used.
Proof.
  rewrite <-!size_dom. set (places := set_seq 0 n : gset nat).
  assert (places ⊆ dom (unused used n ∅) ∪ dom used) as Hsub%subseteq_size.
  { intros p Hp%elem_of_set_seq. apply elem_of_union. destruct (used !! p) eqn:Hu.
    - right. by apply elem_of_dom_2 in Hu.
    - left. apply unused_dom. right. split; [lia|done]. }
  unfold places in Hsub. rewrite size_set_seq in Hsub.
  rewrite size_union_alt in Hsub. assert (dom used ∖ dom (unused used n ∅) ⊆ dom used) as
    Hless%subseteq_size by set_solver. lia.
Qed.

Lemma take_free_taken places fr : NoDup places → (∀ p, p ∈ places → is_Some (fr !! p)) →
  is_Some (take_free places fr).
Proof.
  revert fr. induction places as [|p places IH]; intros fr; simpl; [by eexists|].
  rewrite NoDup_cons. intros [Hp Hdup] Hin. destruct (Hin p) as [? ->]; [by left|]. apply IH; [done|].
  intros p' Hp'. rewrite lookup_delete_ne by (by intros ->). apply Hin. by right.
Qed.

Lemma first_free_taken y n : n ≤ base.size (free y) →
  length (first_free y n) = n ∧ is_Some (take_free (first_free y n) (free y)).
Proof.
  intros Hn. assert (length (map_to_list (free y)).*1 = base.size (free y)) as Hlen.
  { by rewrite fmap_length. }
  split; [unfold first_free; rewrite take_length; lia|]. apply take_free_taken.
  - pose proof (NoDup_fst_map_to_list (free y)) as Hdup. rewrite <-(take_drop n (map_to_list _).*1) in Hdup.
    by apply NoDup_app in Hdup as [? _].
  - intros p Hp. apply elem_of_take in Hp as (i&Hp&_). apply elem_of_list_lookup_2 in Hp.
    apply elem_of_list_fmap in Hp as ([p' u]&->&Hp%elem_of_map_to_list). by eexists.
Qed.

Lemma put_numbers xs : put_many number xs = xs.
Proof. induction xs as [|x xs IH]; [done|]. by rewrite put_many_cons, IH. Qed.

(** A record's words: the digest comes last. *)
Lemma seal_digest (ws : list nat) (data : list block) :
  digests_below digest limit → length ws + 2 ≤ sealed_words → (∀ w, w ∈ ws → w < limit) →
  is_Some (seal (ws ++ [(digest data).1; (digest data).2])).
Proof.
  intros Hdigest Hlen Hws. destruct (Hdigest data). unfold seal.
  rewrite bool_decide_eq_true_2 by (rewrite app_length; simpl; lia).
  match goal with |- context [small ?ws] => assert (small ws = true) as ->; [|by eexists] end.
  unfold small. apply forallb_forall. intros w Hw%elem_of_list_In. apply bool_decide_eq_true_2.
  rewrite elem_of_app, !elem_of_cons, elem_of_nil in Hw.
  destruct Hw as [Hw|[->|[->|[]]]]; [by apply Hws|done..].
Qed.

(** A write's record goes into a block that has room for its places. *)
Lemma write_record_fits y lba places data :
  digests_below digest limit → length places + 7 ≤ sealed_words → length places + 1 < limit → next_record y <
    limit →
  lba < limit → (∀ p, p ∈ places → p < limit) → record_fits y (LogWrite lba places) data.
Proof.
  intros Hdigest Hlen Hlimit Hnext Hlba Hplaces. unfold record_fits.
  assert (put log_codec (next_record y, (LogWrite lba places, digest data)) =
    (next_record y :: 1 :: S (length places) :: lba :: places ++ [0]) ++ [(digest data).1; (digest data).2])
    as ->.
  { simpl. by rewrite put_numbers. }
  apply seal_digest; [done|simpl; rewrite app_length; simpl; lia|]. intros w.
  rewrite !elem_of_cons, elem_of_app, elem_of_list_singleton.
  intros [->|[->|[->|[->|[Hin| ->]]]]]; [lia..| |lia]. by apply Hplaces.
Qed.

Lemma first_free_below y n p : p ∈ first_free (collect y) n → p < data_blocks (shape y).
Proof.
  intros Hp. apply elem_of_take in Hp as (i&Hp&_). apply elem_of_list_lookup_2 in Hp.
  apply elem_of_list_fmap in Hp as ([p' u]&->&Hp%elem_of_map_to_list). simpl in *.
  by apply (collected_below (shape y) (current y) (newest y)).
Qed.

(** A write is answered [Ok] if the places that views use leave room for it: after a collection, with the
first free places. A record must have room for the places, numbers must stay below the limit of words, and the
log must have room, or the maps go into a slot. *)
Theorem write_is_taken y lba data m :
  let n := length data in let g := shape y in let y' := collect y in
  digests_below digest limit → fits (disk_blocks g) lba n →
    base.size (used_places (current y) (newest y)) + n ≤ data_blocks g → n + 7 ≤ sealed_words →
  n + 1 < limit → disk_blocks g < limit → data_blocks g < limit → next_record y < limit → log_can_go_on y →
  (execute (perform y' (first_free y' n) (DoWrite lba data)) m).1.1.2 = Ok.
Proof.
  intros n g y' Hdigest Hfits Hroom Hwords Hn Hdisk Hdata Hnext Hlog.
  destruct (first_free_taken y' n) as [Hlen [fr Hfree]].
  { pose proof (unused_size (used_places (current y) (newest y)) (data_blocks g)).
    unfold collect, collected, g in *.
    simpl in *. lia. }
  apply (refusal_has_reason _ _ _ (LogWrite lba (first_free y' n)) fr); try done.
  - simpl. unfold exceeds. by rewrite decide_True.
  - apply write_record_fits; simpl; [done|lia|lia|done| |].
    + destruct Hfits. unfold g in *. lia.
    + intros p Hp%first_free_below. unfold g in *. lia.
Qed.

(** So does the record of several writes. *)
Lemma group_record_fits y blocks data :
  digests_below digest limit → 2 * length blocks + 6 ≤ sealed_words → 256 ≤ limit → 2 * length blocks < limit
    →
  next_record y < limit → (∀ b, b ∈ blocks → b.1 < limit ∧ b.2 < limit) →
  record_fits y (LogGroup blocks) data.
Proof.
  intros Hdigest Hlen Hlimit Hmany Hnext Hblocks. unfold record_fits.
  assert (length (flat blocks) = 2 * length blocks) as Hflat.
  { clear. induction blocks as [|[l p] blocks IH]; simpl; [done|]. lia. }
  assert (put log_codec (next_record y, (LogGroup blocks, digest data)) =
    (next_record y :: 7 :: length (flat blocks) :: flat blocks ++ [0]) ++ [(digest data).1; (digest data).2])
    as ->.
  { simpl. by rewrite put_numbers. }
  apply seal_digest; [done|simpl; rewrite app_length; simpl; lia|]. intros w.
  rewrite !elem_of_cons, elem_of_app, elem_of_list_singleton.
  intros [->|[->|[->|[Hin| ->]]]]; [lia..| |lia].
  clear -Hin Hblocks. induction blocks as [|[l p] blocks IH]; simpl in Hin; [by apply elem_of_nil in Hin|].
  destruct (Hblocks (l, p)) as [Hl Hp]; [by left|]. rewrite !elem_of_cons in Hin.
  destruct Hin as [->|[->|Hin]]; [done..|]. apply IH; [|done]. intros b Hb. apply Hblocks. by right.
Qed.

(** Several writes are performed if the places that views use leave room for all of them: after a collection,
with the first free places. Their record must have room for two numbers per block; the rest is as for one
write. *)
Theorem group_is_taken y ws m :
  let n := length (blocks_of ws) in let g := shape y in let y' := collect y in
  digests_below digest limit → Forall (λ w, fits (disk_blocks g) w.1 (length w.2)) ws →
  base.size (used_places (current y) (newest y)) + n ≤ data_blocks g → 2 * n + 6 ≤ sealed_words →
  256 ≤ limit → 2 * n < limit → disk_blocks g < limit → data_blocks g < limit → next_record y < limit →
  log_can_go_on y →
  (execute (write_group y' (first_free y' n) ws) m).1.2 = true.
Proof.
  intros n g y' Hdigest Hfits Hroom Hwords Hlimit Hn Hdisk Hdata Hnext Hlog.
  destruct (first_free_taken y' n) as [Hlen [fr Hfree]].
  { pose proof (unused_size (used_places (current y) (newest y)) (data_blocks g)).
    unfold collect, collected, g in *.
    simpl in *. lia. }
  apply (group_refusal_has_reason _ _ _ fr); try done. apply group_record_fits; try done.
  - rewrite zip_with_length, fmap_length. lia.
  - rewrite zip_with_length, fmap_length. lia.
  - intros [l p] Hb. split; simpl.
    + apply elem_of_zip_l in Hb. pose proof (blocks_in_range _ _ _ Hfits Hb). lia.
    + apply elem_of_zip_r, first_free_below in Hb. unfold g in *. lia.
Qed.

(** The record of so many blocks goes into the log, however many they are. *)
Lemma group_size blocks : size_of (LogGroup blocks) = blocks_for (2 * length blocks + 3).
Proof.
  unfold size_of. f_equal. simpl. rewrite app_length, put_numbers, flat_length. simpl. lia.
Qed.

Lemma group_record_goes y blocks data :
  digests_below digest limit → 9 ≤ sealed_words → 256 ≤ limit → 2 * length blocks < limit →
  next_record y < limit → blocks_for (2 * length blocks + 3) < limit →
  (∀ b, b ∈ blocks → b.1 < limit ∧ b.2 < limit) → record_goes y (LogGroup blocks) data.
Proof.
  intros Hdigest Hwords Hlimit Hmany Hnext Hsize Hblocks. destruct (Hdigest data).
  apply pieces_fit; try done; [lia|by rewrite group_size|]. intros w. simpl.
  rewrite put_numbers, !elem_of_cons, elem_of_app, elem_of_list_singleton.
  intros [->|[->|[Hin| ->]]]; [lia|rewrite flat_length; lia| |lia].
  clear -Hin Hblocks. induction blocks as [|[l p] blocks IH]; simpl in Hin; [by apply elem_of_nil in Hin|].
  destruct (Hblocks (l, p)) as [Hl Hp]; [by left|]. rewrite !elem_of_cons in Hin.
  destruct Hin as [->|[->|Hin]]; [done..|]. apply IH; [|done]. intros b Hb. apply Hblocks. by right.
Qed.

(** Writes of any number of blocks are performed at once, with one flush, if there is room for their data and
in the log: after a collection, with the first free places. *)
Theorem long_group_is_taken y ws m :
  let n := length (blocks_of ws) in let g := shape y in let y' := collect y in
  digests_below digest limit → Forall (λ w, fits (disk_blocks g) w.1 (length w.2)) ws →
  base.size (used_places (current y) (newest y)) + n ≤ data_blocks g → 9 ≤ sealed_words →
  256 ≤ limit → 2 * n < limit → disk_blocks g < limit → data_blocks g < limit → next_record y < limit →
  blocks_for (2 * n + 3) < limit → log_can_go_on_for (blocks_for (2 * n + 3)) y →
  (execute (write_group y' (first_free y' n) ws) m).1.2 = true.
Proof.
  intros n g y' Hdigest Hfits Hroom Hwords Hlimit Hn Hdisk Hdata Hnext Hsize Hlog.
  destruct (first_free_taken y' n) as [Hlen [fr Hfree]].
  { pose proof (unused_size (used_places (current y) (newest y)) (data_blocks g)).
    unfold collect, collected, g in *. simpl in *. lia. }
  assert (length (zip (blocks_of ws).*1 (first_free y' n)) = n) as Hpairs.
  { rewrite zip_with_length, fmap_length. unfold n in *. lia. }
  apply (long_group_refusal_has_reason _ _ _ fr); try done.
  - apply group_record_goes; rewrite ?Hpairs; try done. intros [l p] Hb. split; simpl.
    + apply elem_of_zip_l in Hb. pose proof (blocks_in_range _ _ _ Hfits Hb). lia.
    + apply elem_of_zip_r, first_free_below in Hb. unfold g in *. lia.
  - rewrite group_size, Hpairs. exact Hlog.
Qed.

(** No more places are in use than blocks are mapped, by all views together, and the newest record has. *)
Definition mapped (m : maps) : nat :=
  foldl (λ n e, n + base.size e.2) (base.size (live_map m)) (map_to_list (snap_maps m)).

Definition use_place (m : maps) (x : nat) (u : gmap nat ()) : gmap nat () :=
  match middle m !! x with Some p => <[p := ()]> u | None => u end.

Lemma used_by_view m (vm : lba_map) u :
  base.size (fold_view (use_place m) u vm) ≤ base.size u + base.size vm.
Proof.
  unfold fold_view. change (base.size vm) with (length (map_to_list vm)). revert u.
  induction (map_to_list vm) as [|[l x] es IH]; intros u; simpl; [lia|].
  etransitivity; [apply IH|]. unfold use_place. simpl. destruct (middle m !! x) as [p|]; [|lia].
  rewrite map_size_insert. destruct (u !! p); unfold id; lia.
Qed.

Lemma used_at_most_mapped m kept : base.size (used_places m kept) ≤ mapped m + length kept.
Proof.
  set (u0 := foldr (λ p u, <[p := ()]> u) ∅ kept : gmap nat ()).
  assert (base.size u0 ≤ length kept) as Hkept.
  { unfold u0. clear u0. induction kept as [|p kept IH]; simpl; [by rewrite map_size_empty|].
    rewrite map_size_insert. destruct (_ !! p); unfold id; lia. }
  change (used_places m kept) with (fold_views (use_place m) u0 m). unfold fold_views, mapped.
  assert (∀ (es : list (name * lba_map)) u n, base.size u ≤ n + length kept →
    base.size (foldl (λ a e, fold_view (use_place m) a e.2) u es) ≤
      foldl (λ n e, n + base.size e.2) n es + length kept) as Hes.
  { induction es as [|[n' vm] es IH]; intros u n Hu; simpl; [done|]. apply IH.
    pose proof (used_by_view m vm u). lia. }
  apply Hes. pose proof (used_by_view m (live_map m) u0). lia.
Qed.

End Progress.
