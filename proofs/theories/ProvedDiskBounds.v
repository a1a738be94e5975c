(** How many block I/Os a request, upkeep and recovery take at most, and that none is past the end of the
device. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskProgress ProvedDiskAppend ProvedDiskRecovery ProvedDiskRequests RequestProgress.

Section Bounds.
Context `{!blocks, !blocks_laws} {torn : tearing block}.
Implicit Types (y : memory) (g : geometry) (q : request) (m : medium block) (f : contents block).
Variable size : nat.
Local Notation runs_within := (runs_within size).

(** The blocks that a disk takes of its device. *)
Definition device_blocks g : nat := 3 + log_blocks g + 2 * slot_blocks g + data_blocks g.

(** Recovery assumes something of each record that has bodies, and may drop one that has not all of them. It
reads the data of the newest record, which are at most all, assumes something, and may drop the record. *)
Definition log_ios g : nat := 2 * log_blocks g + 4.
Definition recovery_ios g : nat := 6 + slot_blocks g + log_ios g + data_blocks g.
(** The bodies of a record of so many words, and what is assumed of them. *)
Definition body_ios (len : nat) : nat := match pred (blocks_for len) with 0 => 0 | k => S k end.
(** A change of so many blocks: their data, and a record. *)
Definition data_ios (n : nat) : nat := n + body_ios (2 * n + 72).
Definition request_ios g q : nat :=
  match q with
  | DoRead _ _ count => count
  | DoFlush => 0
  | DoRestart => recovery_ios g
  | _ => slot_blocks g + data_ios (length (data_of q)) + 6
  end.

(** What is moved is read, and written. *)
Definition upkeep_ios g (u : upkeep) : nat :=
  match u with
  | Checkpoint => slot_blocks g + 3
  | Collect => 0
  | Clean moves => slot_blocks g + (length moves + data_ios (length moves)) + 6
  end.

Definition group_ios g (ws : list (nat * list block)) : nat :=
  slot_blocks g + data_ios (length (blocks_of ws)) + 6.

Lemma body_ios_more len len' : len ≤ len' → body_ios len ≤ body_ios len'.
Proof.
  intros Hlen. unfold body_ios, blocks_for.
  destruct (decide (len + 3 ≤ sealed_words)), (decide (len' + 3 ≤ sealed_words)); simpl; try lia.
  destruct (decide (body_words = 0)) as [->|]; [simpl; lia|].
  pose proof (Nat.div_le_mono len len' body_words). lia.
Qed.

Lemma data_ios_more n n' : n ≤ n' → data_ios n ≤ data_ios n'.
Proof.
  intros Hn. unfold data_ios. pose proof (body_ios_more (2 * n + 72) (2 * n' + 72)). lia.
Qed.

Lemma characters_length n : length (characters n) = String.length n.
Proof. induction n as [|c n IH]; simpl; congruence. Qed.

(** The words of a record. *)
Definition named_well q : Prop :=
  match q with DoSnapshot n | DoDelete n | DoRevert n => String.length n ≤ 64 | _ => True end.

Lemma valid_length n : valid_name n = true → String.length n ≤ 64.
Proof. unfold valid_name. intros [Hn%bool_decide_eq_true_1 _]%andb_true_iff. lia. Qed.

Lemma record_words q places r : record_of q places = Some r → length places = length (data_of q) →
  named_well q → length (put record_codec r) ≤ 2 * length (data_of q) + 72.
Proof.
  intros Hr Hlen Hnamed. destruct q; simplify_eq/=; rewrite ?app_length, ?put_numbers; simpl;
    rewrite ?characters_length; try lia.
Qed.

Lemma group_words (bs : list (nat * nat)) n : length bs ≤ n →
  length (put record_codec (LogGroup bs)) ≤ 2 * n + 72.
Proof.
  intros Hn. simpl. rewrite app_length, put_numbers, flat_length. simpl. lia.
Qed.

Lemma move_words moves : length (put record_codec (LogMove moves)) ≤ 2 * length moves + 72.
Proof. simpl. rewrite app_length, put_numbers, flat_length. simpl. lia. Qed.

Lemma within_write_all {A} n ws (k : program block A) m :
  (∀ a, a ∈ ws.*1 → a < size) → (∀ m, runs_within n k m) → runs_within (length ws + n) (write_all ws k) m.
Proof.
  intros Hws Hk. revert m. induction ws as [|[a b] ws IH]; intros m; simpl; [done|].
  split; [apply Hws; by left|]. apply IH. intros a' Ha'. apply Hws. by right.
Qed.

Lemma within_read_places {A} n g places (k : list block → program block A) m :
  (∀ p, Some p ∈ places → data_address g p < size) →
  (∀ bs, length bs = length places → runs_within n (k bs) m) →
  runs_within (length places + n) (read_places g places k) m.
Proof.
  revert k. induction places as [|[p|] places IH]; intros k Hp Hk; simpl; [by apply Hk|..].
  - split; [apply Hp; by left|]. apply (IH (λ bs, k (_ :: bs))); [intros p' Hp'; apply Hp; by right|].
    intros bs Hbs. apply Hk. simpl. by rewrite Hbs.
  - apply runs_within_more with (length places + n); [lia|].
    apply (IH (λ bs, k (_ :: bs))); [intros p' Hp'; apply Hp; by right|].
    intros bs Hbs. apply Hk. simpl. by rewrite Hbs.
Qed.

(** ** Putting a record into the log, whatever the maps are *)

Section Appending.
Context {A : Type} (g : geometry) (next : nat) (room : nat → bool) (free : gmap nat ()).
Hypothesis (Hsize : device_blocks g ≤ size).
Hypothesis (Hbelow : ∀ p, is_Some (free !! p) → p < data_blocks g).
Hypothesis (Hroom : ∀ k, room k = true → k ≤ log_blocks g).

Lemma within_append n w r data (refused k : program block A) fr m :
  take_free (places_of r) free = Some fr → length (put record_codec r) ≤ w →
  (∀ m, runs_within n refused m) → (∀ m, runs_within n k m) →
  runs_within (length data + body_ios w + 3 + n) (append_log g next room r data refused k) m.
Proof.
  intros Hplaces Hwords Hrefused Hk. unfold append_log. unfold device_blocks in Hsize.
  apply body_ios_more in Hwords.
  apply runs_within_more with (S (length data + body_ios (length (put record_codec r)) + 2 + n)); [lia|].
  intros _. destruct (log_pieces _ _ _) as [[bs b]|] eqn:Hpieces;
    [|eapply (runs_within_more _ n); [lia|done]].
  apply log_pieces_size in Hpieces as Hlen.
  assert (∀ m, runs_within (length data + length bs + 2 + n) (if room (size_of r) then
      write_all (zip (data_address g <$> places_of r) data ++
        zip (log_address g <$> seq (S next) (length bs)) bs)
        (WriteBlock (log_address g next) b (FlushBlocks k)) else refused) m) as Hwrites.
  { intros m'. destruct (room (size_of r)) eqn:Hr; [|eapply (runs_within_more _ n); [lia|done]].
    apply Hroom in Hr. assert (0 < log_blocks g) as Hpos by lia.
    apply take_free_some in Hplaces as (_&Hin&_).
    match goal with |- runs_within _ (write_all ?ws _) _ => apply runs_within_more with (length ws + (2 + n))
      end.
    { rewrite app_length, !zip_with_length. lia. }
    apply within_write_all.
    - intros a Ha. rewrite fmap_app in Ha. apply elem_of_app in Ha as [Ha|Ha];
        apply elem_of_list_fmap in Ha as ([a' b']&->&Hab%elem_of_zip_l);
        apply elem_of_list_fmap in Hab as (p'&->&Hp').
      + destruct (Hin p' Hp') as [Hp%Hbelow _]. unfold data_address. simpl. lia.
      + pose proof (log_address_bound g p' Hpos). simpl. lia.
    - intros m2. pose proof (log_address_bound g next Hpos). simpl. split; [lia|done]. }
  unfold body_ios. unfold size_of in Hlen. rewrite Hlen. simpl. destruct bs as [|b1 bs]; simpl in *.
  - eapply runs_within_more; [|apply Hwrites]. lia.
  - replace (length data + S (S (length bs)) + 2 + n) with (S (length data + S (length bs) + 2 + n)) by lia.
    intros _. apply Hwrites.
Qed.

Lemma within_update_log n places q (refused : program block A) done m : named_well q →
  (∀ m, runs_within n refused m) → (∀ r fr m, runs_within n (done r fr) m) →
  runs_within (data_ios (length (data_of q)) + 3 + n)
    (update_log g next room free places q refused done) m.
Proof.
  intros Hnamed Hrefused Hdone. unfold update_log.
  assert (runs_within (data_ios (length (data_of q)) + 3 + n) refused m) as Hno.
  { eapply runs_within_more; [|done]. lia. }
  destruct (record_of q places) as [r|] eqn:Hr; [|done].
  destruct (take_free places free) as [fr|] eqn:Hplaces; [|done].
  destruct (decide _) as [Hlen|]; [|done].
  rewrite <-(record_data q places r) in Hplaces by done. eapply within_append; [done| |done|done].
  by eapply record_words.
Qed.

Lemma within_move_log n mid moves (refused : program block A) done m :
  (∀ x p, mid !! x = Some p → p < data_blocks g) →
  (∀ m, runs_within n refused m) → (∀ r fr m, runs_within n (done r fr) m) →
  runs_within (length moves + data_ios (length moves) + 3 + n)
    (move_log g next room free mid moves refused done) m.
Proof.
  intros Hmid Hrefused Hdone. unfold move_log.
  assert (runs_within (length moves + data_ios (length moves) + 3 + n) refused m) as Hno.
  { eapply runs_within_more; [|done]. lia. }
  destruct (take_free moves.*2 free) as [fr|] eqn:Hplaces; [|done]. destruct (forallb _ _); [|done].
  set (from := (λ x, mid !! x) <$> moves.*1).
  assert (length from = length moves) as Hlen by (unfold from; by rewrite !fmap_length).
  apply runs_within_more with (length from + (data_ios (length moves) + 3 + n)); [lia|].
  apply within_read_places.
  - intros p Hp. apply elem_of_list_fmap in Hp as (x&Hx&_). symmetry in Hx. apply Hmid in Hx.
    unfold data_address, device_blocks in *. lia.
  - intros bs Hbs. unfold data_ios. rewrite <-Hlen at 1. rewrite <-Hbs at 1.
    apply (within_append n _ (LogMove moves) bs refused _ fr); [done|apply move_words|done|done].
Qed.

Lemma within_group_log n places ws (none : program block A) all m :
  (∀ m, runs_within n none m) → (∀ r fr m, runs_within n (all r fr) m) →
  runs_within (data_ios (length (blocks_of ws)) + 3 + n) (group_log g next room free places ws none all) m.
Proof.
  intros Hnone Hall. unfold group_log. cbv beta zeta.
  assert (runs_within (data_ios (length (blocks_of ws)) + 3 + n) none m) as Hno.
  { eapply runs_within_more; [|done]. lia. }
  destruct (take_free _ free) as [fr|] eqn:Hplaces; [|done]. destruct (decide _) as [Hlen|]; [|done].
  destruct (forallb _ _); [|done]. unfold data_ios. rewrite <-(fmap_length snd (blocks_of ws)) at 1.
  eapply within_append; [|apply group_words|done|done].
  - replace (places_of _) with (take (length (blocks_of ws)) places); [done|]. simpl.
    symmetry. apply snd_zip. rewrite fmap_length. lia.
  - rewrite zip_with_length, fmap_length. lia.
Qed.
End Appending.

Section Changes.
Context (y0 : memory).
Hypothesis (Hsize : device_blocks (shape y0) ≤ size).
Hypothesis (Hbelow : ∀ p, is_Some (free y0 !! p) → p < data_blocks (shape y0)).

Lemma room_within y k : room_for y k = true → k ≤ log_blocks (shape y).
Proof. unfold room_for. rewrite bool_decide_eq_true. lia. Qed.

Lemma within_checkpoint {A} n y (k : memory → program block A) m :
  shape y = shape y0 → free y = free y0 →
  (∀ y' m, shape y' = shape y0 → free y' = free y0 → middle (current y') ⊆ middle (current y) →
    runs_within n (k y') m) →
  runs_within (slot_blocks (shape y0) + 3 + n) (checkpoint y k) m.
Proof.
  intros Hshape Hfree Hk. unfold checkpoint. unfold device_blocks in Hsize.
  destruct (pack_many _ _) as [bs|] eqn:Hbs; [|eapply (runs_within_more _ n); [lia|by apply Hk]].
  assert (used_middle (current y) ⊆ middle (current y)) as Hused.
  { apply map_subseteq_spec. apply used_middle_some. }
  apply pack_many_prefix in Hbs as [Hlen _]. rewrite Hshape in Hlen.
  destruct (seal _); [|eapply (runs_within_more _ n); [lia|by apply Hk]].
  match goal with |- runs_within _ (write_all ?ws _) _ => apply runs_within_more with (length ws + (3 + n))
    end.
  { rewrite zip_with_length, fmap_length, seq_length. lia. }
  apply within_write_all.
  - intros a Ha. apply elem_of_list_fmap in Ha as ([a' b']&->&Hab%elem_of_zip_l).
    apply elem_of_list_fmap in Hab as (i&->&Hi%elem_of_seq). simpl. rewrite Hshape. unfold body_address.
    destruct (negb _); lia.
  - intros m'. simpl. split; [pose proof (header_address_bound (negb (slot y))); lia|]. by apply Hk.
Qed.

Lemma within_update y places q m :
  shape y = shape y0 → free y = free y0 → named_well q →
  runs_within (data_ios (length (data_of q)) + 3) (update y places q) m.
Proof.
  intros Hshape Hfree Hnamed. unfold update. destruct (one_too_many y q); [done|].
  rewrite <-(Nat.add_0_r (data_ios (length (data_of q)) + 3)).
  apply within_update_log; try done; rewrite ?Hshape, ?Hfree; try done.
  rewrite <-Hshape. apply room_within.
Qed.

Lemma within_room {A} n room (k : memory → program block A) m :
  (∀ y m, shape y = shape y0 → free y = free y0 → middle (current y) ⊆ middle (current y0) →
    runs_within (n + 3) (k y) m) →
  runs_within (slot_blocks (shape y0) + n + 6) (with_room room y0 k) m.
Proof.
  intros Hk. unfold with_room. destruct (room_for y0 room).
  - apply runs_within_more with (n + 3); [lia|by apply Hk].
  - apply runs_within_more with (slot_blocks (shape y0) + 3 + (n + 3)); [lia|]. by apply within_checkpoint.
Qed.

Lemma within_group places ws m : runs_within (group_ios (shape y0) ws) (write_group y0 places ws) m.
Proof.
  apply within_room. clear m. intros y m Hshape Hfree _.
  rewrite <-(Nat.add_0_r (data_ios (length (blocks_of ws)) + 3)).
  apply within_group_log; try done; rewrite ?Hshape, ?Hfree; try done.
  rewrite <-Hshape. apply room_within.
Qed.
End Changes.

Lemma within_read_these {A} n addresses f (k : list block → program block A) :
  (∀ a, a ∈ addresses → a < size) → runs_within n (k (f <$> addresses)) (Medium f []) →
  runs_within (length addresses + n) (read_all addresses k) (Medium f []).
Proof.
  revert k. induction addresses as [|a addresses IH]; intros k Ha Hk; simpl; [done|].
  split; [apply Ha; by left|]. apply (IH (λ bs, k (_ :: bs))); [|done]. intros a' Ha'. apply Ha. by right.
Qed.

Lemma within_read_all {A} n addresses (k : list block → program block A) m :
  (∀ a, a ∈ addresses → a < size) → (∀ bs, runs_within n (k bs) m) →
  runs_within (length addresses + n) (read_all addresses k) m.
Proof.
  revert k. induction addresses as [|a addresses IH]; intros k Ha Hk; simpl; [done|].
  split; [apply Ha; by left|]. apply (IH (λ bs, k (_ :: bs))); [|done]. intros a' Ha'. apply Ha. by right.
Qed.

(** Replay comes to the end of the records that stand in the log. *)
Lemma within_replay {M A} n g f fst rs (step : log_record → M → M) x
    (k : found M → found M → nat * nat → program block A) :
  stand g f fst rs → device_blocks g ≤ size → 0 < log_blocks g →
  runs_within n (replay step g (log_blocks g - length rs) (found_of step fst x (without_last rs))
    (found_of step fst x rs) (digest_of rs) k) (Medium f []) →
  ∀ rest old fuel, rs = old ++ rest → fuel = log_blocks g - length old →
  runs_within (2 * total rest + n)
    (replay step g fuel (found_of step fst x (without_last old)) (found_of step fst x old) (digest_of old) k)
    (Medium f []).
Proof.
  intros [Hstand Hfits] Hsize Hpos Hk. unfold device_blocks in Hsize.
  assert (∀ n, log_address g n < size) as Hlow.
  { intros a. pose proof (log_address_bound g a Hpos). lia. }
  induction rest as [|r rest IH]; intros old fuel Hrs Hfuel.
  - rewrite app_nil_r in Hrs. by subst.
  - pose proof (length_total rs) as Hlen. rewrite Hrs, app_length in Hlen at 1. simpl in Hlen.
    destruct (Hstand _ _ _ Hrs) as [Hlies Hbounds].
    specialize (IH (old ++ [r]) (pred fuel)). rewrite before_snoc in IH.
    destruct fuel as [|fuel]; [lia|]. destruct r as [r dg]. rewrite digest_snoc in IH.
    pose proof (size_positive r) as Hpositive. rewrite total_cons. cbn [Datatypes.fst].
    unfold lies_at in Hlies. cbn [Datatypes.fst snd] in Hlies, Hbounds.
    destruct (pred (size_of r)) as [|bodies] eqn:Hbodies.
    + apply runs_within_more with (S (2 * total rest + n)); [lia|]. split; [apply Hlow|].
      unfold read_block. cbn [unflushed overlay stable found_of found_next].
      rewrite Hlies, decide_True, (no_head _ _ Hbounds) by done.
      rewrite (found_snoc step fst x old r dg 1) in IH by lia. apply IH; [by rewrite Hrs, <-(assoc_L (++))|].
      rewrite app_length. simpl. lia.
    + destruct Hlies as [Hlies Hgathered].
      apply runs_within_more with
        (S (length (log_address g <$> seq (S (fst + total old)) (S bodies)) + S (2 * total rest + n))).
      { rewrite fmap_length, seq_length. lia. }
      split; [apply Hlow|]. unfold read_block. cbn [unflushed overlay stable found_of found_next].
      rewrite Hlies, decide_True by done. cbn [head_of].
      apply within_read_these.
      { intros a (i&->&_)%elem_of_list_fmap. apply Hlow. }
      intros _. fold (bodies_at g f (fst + total old) (S bodies)). rewrite decide_True, Hgathered by done.
      rewrite (found_snoc step fst x old r dg (S (S bodies))) in IH by lia.
      apply IH; [by rewrite Hrs, <-(assoc_L (++))|]. rewrite app_length. simpl. lia.
Qed.

(** Places of the device are at most all. *)
Lemma proper_places_length g places : proper_places g places → length places ≤ data_blocks g.
Proof.
  intros [Hdup Hbelow]. rewrite <-(seq_length (data_blocks g) 0).
  apply submseteq_length, NoDup_submseteq; [done|].
  intros p Hp%Hbelow. apply elem_of_seq. lia.
Qed.

Lemma within_confirm {M A} n g f (before now : found M) dg (k : found M → program block A) :
  proper_places g (found_newest now) → device_blocks g ≤ size → 0 < log_blocks g →
  (∀ z m, runs_within n (k z) m) →
  runs_within (3 + data_blocks g + n) (confirm g before now dg k) (Medium f []).
Proof.
  intros Hproper Hsize Hpos Hk. pose proof (proper_places_length g _ Hproper) as Hlen.
  unfold device_blocks in Hsize. unfold confirm.
  apply runs_within_more with (length (data_address g <$> found_newest now) + (3 + n)).
  { rewrite fmap_length. lia. }
  apply within_read_all.
  - intros a (p&->&Hp%Hproper)%elem_of_list_fmap. unfold data_address. lia.
  - intros bs. simpl. intros _. destruct (decide _); [eapply (runs_within_more _ n); [lia|done]|]. simpl.
    split; [|done]. pose proof (log_address_bound g (found_next before) Hpos). lia.
Qed.

(** Whatever a power cut left, the log is replayed, and its newest record confirmed or dropped. *)
Lemma within_log {F : checkpoint_format} {M A} n y d f (step : log_record → M → M) x
    (k : found M → program block A) :
  represents y f d ∨ unconfirmed y f d → device_blocks (shape y) ≤ size → (∀ z m, runs_within n (k z) m) →
  let g := shape y in let start := Found (first_record y) x [] in
  runs_within (log_ios g + (3 + data_blocks g + n))
    (replay step g (log_blocks g) start start (digest []) (λ before now dg, confirm g before now dg k))
    (Medium f []).
Proof.
  intros Hy Hsize Hk. cbv zeta. set (g := shape y) in *. set (c := 3 + data_blocks g + n).
  set (confirming := λ before now dg, confirm g before now dg k).
  assert (∀ rs n', stand g f (first_record y) rs → 0 < log_blocks g → 2 * total rs + n' ≤ log_ios g + c →
    runs_within n' (replay step g (log_blocks g - length rs)
      (found_of step (first_record y) x (without_last rs)) (found_of step (first_record y) x rs)
      (digest_of rs) confirming) (Medium f []) →
    runs_within (log_ios g + c) (replay step g (log_blocks g) (Found (first_record y) x [])
      (Found (first_record y) x []) (digest []) confirming) (Medium f [])) as Hstart.
  { intros rs n' Hstand Hpos Hless Hend. apply runs_within_more with (2 * total rs + n'); [done|].
    pose proof (within_replay n' g f _ rs step x confirming Hstand Hsize Hpos Hend rs [] (log_blocks g)
      eq_refl) as Hreplay.
    destruct (start_found step (first_record y) x) as [-> Heq]. rewrite Heq at 1. apply Hreplay. simpl. lia. }
  assert (∀ (m0 : maps) rs, durable g f (slot y) (serial y) (first_record y) m0 rs →
    proper_places g (newest_of rs) →
    runs_within (log_ios g + c) (replay step g (log_blocks g) (Found (first_record y) x [])
      (Found (first_record y) x []) (digest []) confirming) (Medium f [])) as Hends.
  { intros m0 rs Hdur Hproper. pose proof (log_positive _ _ _ _ _ _ _ Hdur) as Hpos.
    pose proof (log_fits _ _ _ _ _ _ _ Hdur) as Hfits.
    apply (Hstart rs (S c)); [by eapply durable_stand|done|unfold log_ios; lia|].
    assert (runs_within c (confirming (found_of step (first_record y) x (without_last rs))
      (found_of step (first_record y) x rs) (digest_of rs)) (Medium f [])) as Hc by by apply within_confirm.
    destruct (log_blocks g - length rs) as [|fuel]; [eapply runs_within_more; [|exact Hc]; lia|].
    split; [unfold device_blocks in Hsize; cbn [found_of found_next];
      pose proof (log_address_bound g (first_record y + total rs) Hpos); lia|].
    unfold read_block. cbn [unflushed overlay stable found_of found_next].
    destruct (unseal _ _) as [[n' [r dg]]|] eqn:Hn; [|done].
    rewrite decide_False; [done|]. apply (at_stale _ _ _ _ _ _ _ Hdur) in Hn. lia. }
  destruct Hy as [[(m0&rs&Hdur&_&_&_&[Hnewest Hproper _ _]) _]|[Hblanked
    [(m0&rs&r&Hdur&_&_&_&Hproper&_)|(bodies&db&dg&Hhead&Hroom&Hno)]]].
  - rewrite Hnewest in Hproper. by eapply Hends.
  - eapply Hends; [done|]. unfold newest_of. by rewrite last_snoc.
  - pose proof Hblanked as [(m0&rs&Hdur&Hnext&_&_&[Hnewest Hproper _ _]) _].
    rewrite Hnewest in Hproper. pose proof (log_positive _ _ _ _ _ _ _ Hdur) as Hpos.
    apply bool_decide_eq_true_1 in Hroom. pose proof (length_total rs) as Hlen.
    apply (Hstart rs (S (bodies + S (2 + c)))); [|done|unfold log_ios, g in *; lia|].
    { destruct (durable_stand _ _ _ _ _ _ _ Hdur) as [Hstand Hfits]. split; [|done].
      intros old r rest Hrs. destruct (Hstand _ _ _ Hrs) as [Hlies ?]. split; [|done].
      eapply (lies_before _ _ _ _ rs 1); [done|unfold g in *; lia| |done]. intros i Hi.
      unfold blanked. fold g. rewrite decide_False; [done|]. intros Heq. apply Hi. exists 0.
      split; [lia|]. by rewrite Nat.add_0_r, <-Hnext. }
    destruct (log_blocks g - length rs) as [|fuel] eqn:Hfuel; [unfold g in *; lia|].
    assert (∀ i, log_address g i < size) as Hlow.
    { intros i. pose proof (log_address_bound g i Hpos). unfold device_blocks in Hsize. lia. }
    split; [apply Hlow|]. unfold read_block. cbn [unflushed overlay stable found_of found_next].
    rewrite <-Hnext. fold g in Hhead. rewrite Hhead, decide_True by done. cbn [head_of].
    apply runs_within_more with
      (length (log_address g <$> seq (S (next_record y)) bodies) + S (2 + c)).
    { rewrite fmap_length, seq_length. lia. }
    apply within_read_these; [intros a (i&->&_)%elem_of_list_fmap; apply Hlow|].
    fold (bodies_at g f (next_record y) bodies). intros Hc. rewrite decide_False by by apply Hno.
    split; [apply Hlow|]. by apply within_confirm.
Qed.

Lemma within_recover {A} n g d f (k : option memory → program block A) :
  recoverable g d f → device_blocks g ≤ size → (∀ r m, runs_within n (k r) m) →
  runs_within (recovery_ios g + n) (recover k) (Medium f []).
Proof.
  intros (y&<-&Hy) Hsize Hk. destruct (recoverable_holds _ _ _ Hy) as [m0 Hheld].
  pose proof Hheld as [Hsuper (len&Hlen&Hheader&Hbody) Hother]. set (g := shape y) in *.
  pose proof Hsize as Hblocks. unfold device_blocks in Hblocks. unfold recovery_ios.
  replace (6 + slot_blocks g + log_ios g + data_blocks g + n)
    with (S (S (S (slot_blocks g + (log_ios g + (3 + data_blocks g + n)))))) by lia.
  simpl. unfold read_block at 1. simpl.
  split; [unfold superblock; lia|]. rewrite Hsuper. split; [lia|]. split; [lia|].
  unfold read_block. simpl. rewrite (newer_found _ _ _ _ _ _ _ Hheld Hheader).
  apply runs_within_more with
    (length (body_address g (slot y) <$> seq 0 len) + (log_ios g + (3 + data_blocks g + n))).
  { rewrite fmap_length, seq_length. lia. }
  apply within_read_these.
  - intros a (i&->&Hi%elem_of_seq)%elem_of_list_fmap. unfold body_address. destruct (slot y); lia.
  - rewrite Hbody. apply (within_log _ y d f); [done|done|]. by intros [? ? ?].
Qed.

(** ** Every request *)

Lemma no_faults_named y q : faults_of y q = [] → named_well q.
Proof.
  destruct q as [lba data|lba count|n|n|n| | |from lba count]; simpl; try done;
    unfold clashes, misses; destruct (valid_name n) eqn:Hn; try done; intros _; by apply valid_length.
Qed.

Lemma within_perform y f d places q :
  represents y f d → device_blocks (shape y) ≤ size →
  runs_within (request_ios (shape y) q) (perform y places q) (Medium f []).
Proof.
  intros Hy Hsize. pose proof Hy as [(m0&rs&_&_&_&[Hmid Hbelow]&_) _]. unfold perform.
  destruct (faults_of y q) eqn:Hfaults; [|by destruct (request_ios _ _)].
  pose proof (no_faults_named y q Hfaults) as Hnamed.
  destruct q as [lba data|lba count|n|n|n| | |from lba count];
    try (apply within_room; [done..|]; intros; by apply (within_update y)).
  - done.
  - cbn [request_ios]. rewrite <-(Nat.add_0_r (recovery_ios (shape y))).
    eapply within_recover; [by apply recoverable_represents|done|].
    done.
  - cbn [request_ios]. rewrite <-(Nat.add_0_r count) at 1.
    rewrite <-(seq_length count lba) at 1.
    rewrite <-(fmap_length (λ l, place_of (current y) (map_of (current y) from) l) (seq lba count)) at 1.
    apply within_read_places; [|done]. intros p (l&Hp&_)%elem_of_list_fmap. unfold place_of in Hp.
    symmetry in Hp. apply bind_Some in Hp as (x&_&Hp%Hmid). unfold data_address, device_blocks in *. lia.
Qed.

(** ** Upkeep *)

Lemma within_maintain y f d u :
  represents y f d → device_blocks (shape y) ≤ size →
  runs_within (upkeep_ios (shape y) u) (maintain y u) (Medium f []).
Proof.
  intros [(m0&rs&_&_&_&[Hmid Hbelow]&_) _] Hsize. destruct u as [| |moves]; cbn [upkeep_ios maintain].
  - rewrite <-(Nat.add_0_r (slot_blocks (shape y) + 3)). by apply within_checkpoint.
  - done.
  - apply within_room; [done|]. intros y1 m Hshape Hfree Hsub. unfold clean.
    rewrite <-(Nat.add_0_r (length moves + data_ios (length moves) + 3)).
    apply within_move_log; rewrite ?Hshape, ?Hfree; try done.
    + rewrite <-Hshape. by apply (room_within y).
    + intros x p Hp. eapply Hmid, lookup_weaken, Hsub. exact Hp.
Qed.

Lemma within_write_group y f d places ws :
  represents y f d → device_blocks (shape y) ≤ size →
  runs_within (group_ios (shape y) ws) (write_group y places ws) (Medium f []).
Proof.
  intros [(m0&rs&_&_&_&[_ Hbelow]&_) _] Hsize. by apply within_group.
Qed.
End Bounds.
