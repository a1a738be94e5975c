(** Which requests the disk with whole maps answers [Ok], on one device and on a leg: those within the stated
sizes, at the places that a scheduler plans. The scheduler is named: it proposes the first free places, and
asks for a collection first where they are too few. This is what [build/proved-disk] falls back on where its
own proposal is refused. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskAppend ProvedDiskRecovery ProvedDiskRequests ProvedDiskProgress ProvedDiskBounds RequestProgress
  ProvedDiskMachine ProvedDiskRefinement.

(** The blocks of the log that the record of a request takes at most, and that of several writes. *)
Definition request_blocks `{!blocks} (q : request) : nat := blocks_for (length (data_of q) + 69).
Definition writes_blocks `{!blocks} (ws : list (nat * list block)) : nat :=
  blocks_for (2 * length (blocks_of ws) + 3).

(** The record of a request goes into a block, or a head goes into one; numbers are below the limit of words.
*)
Record small_sizes `{!blocks} (g : geometry) (next : nat) (q : request) : Prop := {
  record_in_blocks : length (data_of q) + 72 ≤ sealed_words ∨ 9 ≤ sealed_words ∧ request_blocks q < limit;
  numbers_below : 256 ≤ limit ∧ length (data_of q) + 72 < limit ∧ disk_blocks g < limit ∧
    data_blocks g < limit ∧ next < limit;
}.

(** So does the record of so many blocks. *)
Record small_group `{!blocks} (g : geometry) (next : nat) (ws : list (nat * list block)) : Prop := {
  one_record : 2 * length (blocks_of ws) + 6 ≤ sealed_words ∨ 9 ≤ sealed_words ∧ writes_blocks ws < limit;
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
blocks, its record goes into blocks, numbers are below the limit of words, and the log has room for it or is
as long, and the maps go into a slot. *)
Record admissible y q : Prop := {
  no_fault : faults_of y q = [];
  snapshot_left : one_too_many y q = false;
  places_left : base.size (used_places (current y) (newest y)) + length (data_of q) ≤ data_blocks (shape y);
  sizes_small : small_sizes (shape y) (next_record y) q;
  log_goes_on : log_can_go_on_for (request_blocks q) y;
}.

Context `{!blocks_laws}.

Lemma characters_below n w : w ∈ characters n → w < 256.
Proof.
  induction n as [|c n IH]; simpl; [by intros ?%elem_of_nil|]. intros [->|?]%elem_of_cons; [|auto].
  apply Ascii.nat_ascii_bounded.
Qed.

(** *** The record goes into the log *)

Lemma blocks_for_more len len' : len ≤ len' → blocks_for len ≤ blocks_for len'.
Proof.
  intros Hlen. unfold blocks_for.
  destruct (decide (len + 3 ≤ sealed_words)), (decide (len' + 3 ≤ sealed_words)); try lia.
  destruct (decide (body_words = 0)) as [->|]; [simpl; lia|].
  pose proof (Nat.div_le_mono len len' body_words). lia.
Qed.

Lemma goes_on_less y k k' : k' ≤ k → log_can_go_on_for k y → log_can_go_on_for k' y.
Proof.
  intros Hk [Hroom%bool_decide_eq_true_1|[Hlog Hslot]]; [left; apply bool_decide_eq_true_2; lia|].
  right. split; [lia|done].
Qed.

Lemma request_words q places r : record_of q places = Some r → length places = length (data_of q) →
  named_well q → length (put record_codec r) ≤ length (data_of q) + 69.
Proof.
  intros Hr Hlen Hnamed. destruct q; simplify_eq/=; rewrite ?app_length, ?put_numbers; simpl;
    rewrite ?characters_length; try lia.
Qed.

Lemma record_blocks q places r : record_of q places = Some r → length places = length (data_of q) →
  named_well q → size_of r ≤ request_blocks q.
Proof. intros Hr Hlen Hnamed. apply blocks_for_more. by eapply request_words. Qed.

Lemma record_below q places r k : record_of q places = Some r → named_well q → 256 ≤ k →
  length places < k → (∀ w, w ∈ places → w < k) →
  (match q with DoWrite lba _ => lba < k ∧ S (length places) < k | DoUnmap lba count => lba < k ∧ count < k
    | _ => True end) → ∀ w, w ∈ put record_codec r → w < k.
Proof.
  intros Hr Hnamed Hk Hlen Hplaces Hq w. destruct q; simplify_eq/=;
    rewrite ?put_numbers, ?elem_of_cons, ?elem_of_app, ?elem_of_cons, ?elem_of_nil.
  - intros [->|[->|[[->|Hin]|[->|[]]]]]; [lia|lia|lia|by apply Hplaces|lia].
  - lia.
  - intros [->|[->|[->|Hw%characters_below]]]; rewrite ?characters_length; lia.
  - intros [->|[->|[->|Hw%characters_below]]]; rewrite ?characters_length; lia.
  - intros [->|[->|[->|Hw%characters_below]]]; rewrite ?characters_length; lia.
Qed.

Lemma record_goes_in y q places r :
  faults_of y q = [] → small_sizes (shape y) (next_record y) q → record_of q places = Some r →
  length places = length (data_of q) → (∀ p, p ∈ places → p < data_blocks (shape y)) →
  record_goes y r (data_of q).
Proof.
  intros Hfaults Hq Hr Hlen Hplaces. pose proof Hq as [Hwords (Hlimit&Hdata&Hdisk&Hall&Hnext)].
  pose proof (no_faults_named y q Hfaults) as Hnamed.
  pose proof (record_blocks q places r Hr Hlen Hnamed) as Hsize. destruct (digest_below (data_of q)).
  apply pieces_fit; try done; [apply digest_below|lia|lia| |].
  - destruct Hwords as [Hshort|[_ ?]]; [|lia].
    unfold request_blocks, blocks_for in Hsize. rewrite decide_True in Hsize by lia. lia.
  - eapply record_below; [done..| | | |]; [lia|lia| |].
    + intros p Hp%Hplaces. lia.
    + destruct q as [lba data|lba count'|n|n|n| | |]; try done; simpl in *;
        unfold exceeds in Hfaults; destruct (decide (fits _ _ _)) as [[Hlba Hcount]|]; try done; lia.
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
    pose proof Hq as [Hfaults ? _ ? Hlog]. apply (long_refusal_has_reason y _ q r fr); try done.
    - eapply record_goes_in; try done. intros p Hp. apply take_free_some in Hfr as (_&Hin&_). by apply Hbelow,
        Hin.
    - eapply goes_on_less; [|exact Hlog]. eapply record_blocks; [done..|by eapply no_faults_named]. }
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
  log_of_all : log_can_go_on_for (writes_blocks ws) y;
}.

(** Of places that are free the record goes into a block. *)
Lemma group_goes_in y ws places fr :
  in_range (shape y) ws → small_group (shape y) (next_record y) ws → length places = length (blocks_of ws) →
  take_free places (free y) = Some fr → (∀ p, is_Some (free y !! p) → p < data_blocks (shape y)) →
  record_goes y (LogGroup (zip (blocks_of ws).*1 places)) (blocks_of ws).*2 ∧
  size_of (LogGroup (zip (blocks_of ws).*1 places)) = writes_blocks ws.
Proof.
  intros Hrange [Hrecord (Hlimit&Hmany&Hdisk&Hdata&Hnext)] Hlen Hfree Hbelow.
  assert (length (zip (blocks_of ws).*1 places) = length (blocks_of ws)) as Hpairs.
  { rewrite zip_with_length, fmap_length. lia. }
  assert (∀ b, b ∈ zip (blocks_of ws).*1 places → b.1 < limit ∧ b.2 < limit) as Hblocks.
  { intros [l p] Hb. split; simpl.
    - apply elem_of_zip_l in Hb. pose proof (blocks_in_range _ _ _ Hrange Hb). lia.
    - apply elem_of_zip_r in Hb. apply take_free_some in Hfree as (_&Hin&_).
      pose proof (Hbelow p (proj1 (Hin p Hb))). lia. }
  split; [|by rewrite group_size, Hpairs]. destruct Hrecord as [Hshort|[Hwords Hlong]].
  - apply fits_goes, group_record_fits; rewrite ?Hpairs; try done. apply digest_below.
  - apply group_record_goes; rewrite ?Hpairs; try done. apply digest_below.
Qed.

Lemma maps_perform : performs_admissible D size places_for Collect represents
  (λ y ws, device_blocks (shape y) ≤ size ∧ admissible_group y ws) (λ y, group_ios (shape y)).
Proof.
  split.
  - intros y f d ws places Hy [Hsize _] _. by eapply within_write_group.
  - intros y f d ws places [(m0&rs&_&_&_&[_ Hbelow]&_) _] [_ [Hrange _ Hsmall Hlog]] Hplan.
    apply places_for_free in Hplan as (Hlen&fr&Hfree).
    destruct (group_goes_in y ws places fr Hrange Hsmall Hlen Hfree Hbelow) as [Hgoes Hsize].
    apply (long_group_refusal_has_reason _ _ _ fr); try done. by rewrite Hsize.
  - intros y f d ws Hy [Hsize [Hrange Hroom Hsmall Hlog]] _. exists (collect y).
    split_and!; [done|by apply represents_collected|done|by split|by apply places_after_collection|done].
Qed.
End Answers.
