(** Which requests the disk with whole maps answers [Ok], on one device and on a leg: those within the stated
sizes, at the places that a scheduler plans. The scheduler is named: it proposes the first free places, and
asks for a collection first where they are too few. This is what [build/proved-disk] falls back on where its
own proposal is refused. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskAppend ProvedDiskRecovery ProvedDiskRequests ProvedDiskProgress ProvedDiskBounds RequestProgress
  ProvedDiskMachine ProvedDiskRefinement.

(** The record of a request goes into a block, and numbers are below the limit of words. *)
Record small_sizes `{!blocks} (g : geometry) (next : nat) (q : request) : Prop := {
  record_in_block : length (data_of q) + 72 ≤ sealed_words;
  numbers_below : 256 ≤ limit ∧ length (data_of q) + 72 < limit ∧ disk_blocks g < limit ∧
    data_blocks g < limit ∧ next < limit;
}.

(** The record of so many blocks goes into a block, and numbers are below the limit of words. *)
Record small_group `{!blocks} (g : geometry) (next : nat) (ws : list (nat * list block)) : Prop := {
  one_record : 2 * length (blocks_of ws) + 6 ≤ sealed_words;
  numbers_small : 256 ≤ limit ∧ 2 * length (blocks_of ws) < limit ∧ disk_blocks g < limit ∧
    data_blocks g < limit ∧ next < limit;
}.

Section Answers.
Context `{!blocks} {torn : tearing block} (size : nat).
Local Notation D := proved_programs.
Implicit Types (y : memory) (q : request) (ws : list (nat * list block)).

(** *** The scheduler *)

(** Where [n] blocks go; nothing, if places must be collected first. *)
Definition places_for y (n : nat) : option (list nat) :=
  let places := first_free y n in if decide (length places = n) then Some places else None.
Notation plan := (planned places_for).

Lemma places_for_free y n places :
  places_for y n = Some places → length places = n ∧ is_Some (take_free places (free y)).
Proof.
  unfold places_for. destruct (decide _) as [Hlen|]; [|done]. intros [= <-]. split; [done|].
  apply first_free_taken. unfold first_free in Hlen. rewrite take_length, fmap_length in Hlen.
  unfold base.size, map_size. lia.
Qed.

Lemma places_after_collection y n :
  base.size (used_places (current y) (newest y)) + n ≤ data_blocks (shape y) →
    is_Some (places_for (collect y) n).
Proof.
  intros Hroom. unfold places_for.
  destruct (first_free_taken (collect y) n) as [-> _]; [|by rewrite decide_True].
  pose proof (unused_size (used_places (current y) (newest y)) (data_blocks (shape y))).
  simpl. unfold collected. lia.
Qed.

(** *** Requests *)

(** The stated sizes: the request has no fault, there is a snapshot left for it and a place for each of its
blocks, its record goes into a block, numbers are below the limit of words, and the log has room or the maps
  go
into a slot. *)
Record admissible y q : Prop := {
  no_fault : faults_of y q = [];
  snapshot_left : one_too_many y q = false;
  places_left : base.size (used_places (current y) (newest y)) + length (data_of q) ≤ data_blocks (shape y);
  sizes_small : small_sizes (shape y) (next_record y) q;
  log_goes_on : log_can_go_on y;
}.

Context `{!blocks_laws}.

Lemma characters_length n : length (characters n) = String.length n.
Proof. induction n as [|c n IH]; simpl; congruence. Qed.

Lemma characters_below n w : w ∈ characters n → w < 256.
Proof.
  induction n as [|c n IH]; simpl; [by intros ?%elem_of_nil|]. intros [->|?]%elem_of_cons; [|auto].
  apply Ascii.nat_ascii_bounded.
Qed.

Lemma name_fits y q k n r data :
  small_sizes (shape y) (next_record y) q → valid_name n = true → k < 256 →
    put log_codec (next_record y, (r, digest data)) =
    (next_record y :: k :: 0 :: length (characters n) :: characters n) ++ [(digest data).1; (digest data).2] →
  record_fits y r data.
Proof.
  intros [Hwords (Hlimit&_&_&_&Hnext)] Hn Hk Hput. unfold record_fits. rewrite Hput.
  assert (String.length n ≤ 64) as Hlen.
  { unfold valid_name in Hn. apply andb_true_iff in Hn as [Hn%bool_decide_eq_true_1 _]. lia. }
  pose proof (characters_length n). apply seal_digest; [apply digest_below|simpl; lia|].
  intros w. rewrite !elem_of_cons. intros [->|[->|[->|[->|?%characters_below]]]]; lia.
Qed.

Lemma record_goes_in y q places r :
  faults_of y q = [] → small_sizes (shape y) (next_record y) q → record_of q places = Some r →
  length places = length (data_of q) → (∀ p, p ∈ places → p < data_blocks (shape y)) →
  record_fits y r (data_of q).
Proof.
  intros Hfaults Hq Hr Hlen Hplaces. pose proof Hq as [Hwords (Hlimit&Hdata&Hdisk&Hall&Hnext)].
  assert (∀ n, misses (current y) n = [] → valid_name n = true) as Hmisses.
  { unfold misses. intros n. by destruct (valid_name n). }
  destruct q as [lba data|lba count'|n|n|n| | |]; simplify_eq/=.
  - unfold exceeds in Hfaults. destruct (decide (fits _ _ _)) as [[Hlba _]|]; [|done].
    apply write_record_fits; try lia; [apply digest_below|]. intros p Hp%Hplaces. lia.
  - unfold exceeds in Hfaults. destruct (decide (fits _ _ _)) as [[Hlba Hcount]|]; [|done].
    apply (seal_digest [next_record y; 2; 2; lba; count'; 0]); simpl; [apply digest_below|lia|].
    intros w. rewrite !elem_of_cons, elem_of_nil. lia.
  - unfold clashes in Hfaults. eapply (name_fits _ _ 3 n); [exact Hq| |lia|simpl; by rewrite put_numbers].
    by destruct (valid_name n).
  - eapply (name_fits _ _ 4 n); [exact Hq|by apply Hmisses|lia|simpl; by rewrite put_numbers].
  - eapply (name_fits _ _ 5 n); [exact Hq|by apply Hmisses|lia|simpl; by rewrite put_numbers].
Qed.

Lemma execute_read_places {A} g places (k : list block → program block A) m :
  ∃ bs, execute (read_places g places k) m = execute (k bs) m.
Proof.
  revert k. induction places as [|[p|] places IH]; intros k; simpl; [by eexists|..].
  - destruct (IH (λ bs, k (read_block m (data_address g p) :: bs))) as [bs ->]. by eexists.
  - destruct (IH (λ bs, k (zero_block :: bs))) as [bs ->]. by eexists.
Qed.

Lemma recover_finds g f d : recoverable g d f → granted (recover Done) (Medium f []) →
  ∃ y', (execute (recover Done) (Medium f [])).1 = Some y'.
Proof.
  intros Hf. apply (crash_safe_execute (λ _, True) (λ r _, ∃ y', r = Some y')).
  eapply crash_safe_recover; [done|done|]. intros y' f' _ _. split; [done|by exists y'].
Qed.

(** What [plan] proposes is taken. *)
Lemma plan_answered y f d q places :
  represents y f d → admissible y q → plan y q = Some places → granted (perform y places q) (Medium f []) →
  (execute (perform y places q) (Medium f [])).1.1.2 = Ok.
Proof.
  intros Hy Hq Hplan Hgranted. pose proof Hy as [(m0&rs&_&_&_&[_ Hbelow]&_) _].
  apply places_for_free in Hplan as (Hlen&fr&Hfr).
  assert (∀ r, record_of q places = Some r →
    (execute (perform y places q) (Medium f [])).1.1.2 = Ok) as Hchange.
  { intros r Hr.
    pose proof Hq as [? ? _ ? ?]. apply (refusal_has_reason y _ q r fr); try done.
    eapply record_goes_in; try done. intros p Hp. apply take_free_some in Hfr as (_&Hin&_). by apply Hbelow,
      Hin. }
  destruct q as [lba data|lba count'|n|n|n| | |from lba count']; try (by eapply Hchange).
  - done.
  - unfold perform. simpl.
    pose proof (crash_safe_recover (λ _, True) (λ (o : outcome) _, o.1.2 = Ok) (shape y) f d
      (λ r, Done (match r with Some y' => (y', Ok, []) | None => (y, UnknownOutcome, []) end))
      (recoverable_represents y f d Hy)) as Hrec.
    apply (crash_safe_execute (λ _, True) (λ (o : outcome) _, o.1.2 = Ok)); [|exact Hgranted].
    apply Hrec; [done|]. by intros y'.
  - unfold perform. rewrite (no_fault _ _ Hq).
    destruct (execute_read_places (shape y) (place_of (current y) (map_of (current y) from) <$> seq lba
      count')
      (λ bs, Done (y, Ok, bs)) (Medium f [])) as [bs Hbs].
    unfold outcome in *. by rewrite Hbs.
Qed.

Lemma admissible_collected y q : admissible y q → admissible (collect y) q ∧ is_Some (plan (collect y) q).
Proof.
  intros [Hfaults Hone Hroom Hsizes Hlog]. split; [by split|]. by apply places_after_collection.
Qed.

(** On devices that are large enough. *)
Definition fits_here y q : Prop := device_blocks (shape y) ≤ size ∧ admissible y q.

Lemma answers_here : answers_admissible D size places_for Collect represents fits_here
  (λ y, request_ios (shape y)).
Proof.
  split.
  - intros y f d q places Hy [Hsize _] _. by eapply within_perform.
  - intros y f d q places Hy [_ Hq] Hplan. by eapply plan_answered.
  - intros y f d q Hy [Hsize Hq] _. destruct (admissible_collected y q Hq) as [Hq' Hplaces].
    exists (collect y). split_and!; [done|by apply represents_collected|done|done|done].
Qed.

(** *** Several writes at once *)

Local Notation plan_group := (planned_group places_for).

(** The stated sizes: all writes are in range, there is a place for each of their blocks, their record goes
into a block, numbers are below the limit of words, and the log has room or the maps go into a slot. *)
Record admissible_group y ws : Prop := {
  all_in_range : in_range (shape y) ws;
  places_for_all : base.size (used_places (current y) (newest y)) + length (blocks_of ws) ≤
    data_blocks (shape y);
  group_small : small_group (shape y) (next_record y) ws;
  log_of_all : log_can_go_on y;
}.

(** Of places that are free the record goes into a block. *)
Lemma group_goes_in y ws places fr :
  in_range (shape y) ws → small_group (shape y) (next_record y) ws → length places = length (blocks_of ws) →
  take_free places (free y) = Some fr → (∀ p, is_Some (free y !! p) → p < data_blocks (shape y)) →
  record_fits y (LogGroup (zip (blocks_of ws).*1 places)) (blocks_of ws).*2.
Proof.
  intros Hrange [Hrecord (Hlimit&Hmany&Hdisk&Hdata&Hnext)] Hlen Hfree Hbelow.
  apply group_record_fits; try done; [apply digest_below|..].
  - rewrite zip_with_length, fmap_length. lia.
  - rewrite zip_with_length, fmap_length. lia.
  - intros [l p] Hb. split; simpl.
    + apply elem_of_zip_l in Hb. pose proof (blocks_in_range _ _ _ Hrange Hb). lia.
    + apply elem_of_zip_r in Hb. apply take_free_some in Hfree as (_&Hin&_).
      pose proof (Hbelow p (proj1 (Hin p Hb))). lia.
Qed.

Lemma maps_perform : performs_admissible D size places_for Collect represents
  (λ y ws, device_blocks (shape y) ≤ size ∧ admissible_group y ws) (λ y, group_ios (shape y)).
Proof.
  split.
  - intros y f d ws places Hy [Hsize _] _. by eapply within_write_group.
  - intros y f d ws places [(m0&rs&_&_&_&[_ Hbelow]&_) _] [_ [Hrange _ Hsmall Hlog]] Hplan.
    apply places_for_free in Hplan as (Hlen&fr&Hfree).
    apply (group_refusal_has_reason _ _ _ fr); try done. by eapply group_goes_in.
  - intros y f d ws Hy [Hsize [Hrange Hroom Hsmall Hlog]] _. exists (collect y).
    split_and!; [done|by apply represents_collected|done|by split|by apply places_after_collection|done].
Qed.
End Answers.
