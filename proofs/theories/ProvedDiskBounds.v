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

(** Recovery reads the data of the newest record, which are at most all, assumes something, and may drop the
record. *)
Definition recovery_ios g : nat := 6 + slot_blocks g + log_blocks g + data_blocks g.
Definition request_ios g q : nat :=
  match q with
  | DoRead _ _ count => count
  | DoFlush => 0
  | DoRestart => recovery_ios g
  | _ => slot_blocks g + length (data_of q) + 6
  end.

(** What is moved is read, and written. *)
Definition upkeep_ios g (u : upkeep) : nat :=
  match u with
  | Checkpoint => slot_blocks g + 3
  | Collect => 0
  | Clean moves => slot_blocks g + 2 * length moves + 6
  end.

Definition group_ios g (ws : list (nat * list block)) : nat := slot_blocks g + length (blocks_of ws) + 6.

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
Context {A : Type} (g : geometry) (next : nat) (room : bool) (free : gmap nat ()).
Hypothesis (Hsize : device_blocks g ≤ size).
Hypothesis (Hbelow : ∀ p, is_Some (free !! p) → p < data_blocks g).
Hypothesis (Hroom : room = true → 0 < log_blocks g).

Lemma within_append n r data (refused k : program block A) fr m :
  take_free (places_of r) free = Some fr → (∀ m, runs_within n refused m) → (∀ m, runs_within n k m) →
  runs_within (length data + 3 + n) (append_log g next room r data refused k) m.
Proof.
  intros Hplaces Hrefused Hk. unfold append_log. unfold device_blocks in Hsize.
  replace (length data + 3 + n) with (S (length data + 2 + n)) by lia. intros _.
  destruct (seal _); [|eapply (runs_within_more _ n); [lia|done]].
  destruct room; [|eapply (runs_within_more _ n); [lia|done]].
  pose proof (log_address_bound g next (Hroom eq_refl)) as Hlog.
  apply take_free_some in Hplaces as (_&Hin&_).
  apply runs_within_more with (length (zip (data_address g <$> places_of r) data) + (2 + n)).
  { rewrite zip_with_length. lia. }
  apply within_write_all.
  - intros a Ha. apply elem_of_list_fmap in Ha as ([a' b']&->&Hab%elem_of_zip_l).
    apply elem_of_list_fmap in Hab as (p'&->&Hp'). destruct (Hin p' Hp') as [Hp%Hbelow _].
    unfold data_address. simpl. lia.
  - intros m'. simpl. split; [lia|done].
Qed.

Lemma within_update_log n places q (refused : program block A) done m :
  (∀ m, runs_within n refused m) → (∀ r fr m, runs_within n (done r fr) m) →
  runs_within (length (data_of q) + 3 + n) (update_log g next room free places q refused done) m.
Proof.
  intros Hrefused Hdone. unfold update_log.
  assert (runs_within (length (data_of q) + 3 + n) refused m) as Hno.
  { eapply runs_within_more; [|done]. lia. }
  destruct (record_of q places) as [r|] eqn:Hr; [|done].
  destruct (take_free places free) as [fr|] eqn:Hplaces; [|done].
  destruct (decide _) as [Hlen|]; [|done].
  rewrite <-(record_data q places r) in Hplaces by done. by eapply within_append.
Qed.

Lemma within_move_log n mid moves (refused : program block A) done m :
  (∀ x p, mid !! x = Some p → p < data_blocks g) →
  (∀ m, runs_within n refused m) → (∀ r fr m, runs_within n (done r fr) m) →
  runs_within (2 * length moves + 3 + n) (move_log g next room free mid moves refused done) m.
Proof.
  intros Hmid Hrefused Hdone. unfold move_log.
  assert (runs_within (2 * length moves + 3 + n) refused m) as Hno.
  { eapply runs_within_more; [|done]. lia. }
  destruct (take_free moves.*2 free) as [fr|] eqn:Hplaces; [|done]. destruct (forallb _ _); [|done].
  set (from := (λ x, mid !! x) <$> moves.*1).
  assert (length from = length moves) as Hlen by (unfold from; by rewrite !fmap_length).
  apply runs_within_more with (length from + (length moves + 3 + n)); [lia|]. apply within_read_places.
  - intros p Hp. apply elem_of_list_fmap in Hp as (x&Hx&_). symmetry in Hx. apply Hmid in Hx.
    unfold data_address, device_blocks in *. lia.
  - intros bs Hbs. rewrite <-Hlen, <-Hbs. by apply (within_append n (LogMove moves) bs refused _ fr).
Qed.

Lemma within_group_log n places ws (none : program block A) all m :
  (∀ m, runs_within n none m) → (∀ r fr m, runs_within n (all r fr) m) →
  runs_within (length (blocks_of ws) + 3 + n) (group_log g next room free places ws none all) m.
Proof.
  intros Hnone Hall. unfold group_log. cbv beta zeta.
  assert (runs_within (length (blocks_of ws) + 3 + n) none m) as Hno.
  { eapply runs_within_more; [|done]. lia. }
  destruct (take_free _ free) as [fr|] eqn:Hplaces; [|done]. destruct (decide _) as [Hlen|]; [|done].
  destruct (forallb _ _); [|done]. rewrite <-(fmap_length snd (blocks_of ws)) at 1.
  eapply within_append; try done.
  replace (places_of _) with (take (length (blocks_of ws)) places); [done|]. simpl.
  symmetry. apply snd_zip. rewrite fmap_length. lia.
Qed.
End Appending.

Section Changes.
Context (y0 : memory).
Hypothesis (Hsize : device_blocks (shape y0) ≤ size).
Hypothesis (Hbelow : ∀ p, is_Some (free y0 !! p) → p < data_blocks (shape y0)).

Lemma room_positive y : has_room y = true → 0 < log_blocks (shape y).
Proof. unfold has_room. rewrite bool_decide_eq_true. lia. Qed.

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
  shape y = shape y0 → free y = free y0 →
  runs_within (length (data_of q) + 3) (update y places q) m.
Proof.
  intros Hshape Hfree. unfold update. destruct (one_too_many y q); [done|].
  rewrite <-(Nat.add_0_r (length (data_of q) + 3)).
  apply within_update_log; try done; rewrite ?Hshape, ?Hfree; try done.
  rewrite <-Hshape. apply room_positive.
Qed.

Lemma within_room {A} n (k : memory → program block A) m :
  (∀ y m, shape y = shape y0 → free y = free y0 → middle (current y) ⊆ middle (current y0) →
    runs_within (n + 3) (k y) m) →
  runs_within (slot_blocks (shape y0) + n + 6) (with_room y0 k) m.
Proof.
  intros Hk. unfold with_room. destruct (has_room y0).
  - apply runs_within_more with (n + 3); [lia|by apply Hk].
  - apply runs_within_more with (slot_blocks (shape y0) + 3 + (n + 3)); [lia|]. by apply within_checkpoint.
Qed.

Lemma within_group places ws m : runs_within (group_ios (shape y0) ws) (write_group y0 places ws) m.
Proof.
  apply within_room. clear m. intros y m Hshape Hfree _.
  rewrite <-(Nat.add_0_r (length (blocks_of ws) + 3)).
  apply within_group_log; try done; rewrite ?Hshape, ?Hfree; try done.
  rewrite <-Hshape. apply room_positive.
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

(** The read that checkpoints and log can be trusted with: what it finds is what was put there. *)
Lemma within_replay {F : checkpoint_format} {M A} n g f s ser fst (m0 : maps) rs (step : log_record → M → M) x
    (k : found M → found M → nat * nat → program block A) :
  durable g f s ser fst m0 rs → device_blocks g ≤ size →
  runs_within n (k (found_of step fst x (without_last rs)) (found_of step fst x rs) (digest_of rs))
    (Medium f []) →
  ∀ rest old fuel, rs = old ++ rest → fuel = log_blocks g - length old →
  runs_within (fuel + n)
    (replay step g fuel (found_of step fst x (without_last old)) (found_of step fst x old) (digest_of old) k)
    (Medium f []).
Proof.
  intros Hdur Hsize Hk. pose proof (log_positive _ _ _ _ _ _ _ Hdur) as Hpos. unfold device_blocks in Hsize.
  assert (∀ n, log_address g n < size) as Hlow.
  { intros a. pose proof (log_address_bound g a Hpos). lia. }
  induction rest as [|r rest IH]; intros old fuel Hrs Hfuel.
  - rewrite app_nil_r in Hrs. subst old. destruct fuel as [|fuel]; simpl; [done|]. split; [apply Hlow|].
    unfold read_block. simpl.
    destruct (unseal _ _) as [[n' [r dg]]|] eqn:Hn; [|eapply (runs_within_more _ n); [lia|done]].
    rewrite decide_False; [eapply (runs_within_more _ n); [lia|done]|].
    apply (at_stale _ _ _ _ _ _ _ Hdur) in Hn. lia.
  - pose proof (log_fits _ _ _ _ _ _ _ Hdur) as Hfits. rewrite Hrs, app_length in Hfits. simpl in Hfits.
    destruct fuel as [|fuel]; [lia|]. simpl. split; [apply Hlow|]. unfold read_block. simpl.
    rewrite (at_log _ _ _ _ _ _ _ Hdur (length old) r) by by rewrite Hrs, list_lookup_middle.
    destruct r as [r dg]. rewrite decide_True by done. specialize (IH (old ++ [(r, dg)]) fuel).
    rewrite found_snoc, before_snoc, digest_snoc in IH. apply IH; [by rewrite Hrs, <-(assoc_L (++))|].
    rewrite app_length. simpl. lia.
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

Lemma within_recover {A} n g d f (k : option memory → program block A) :
  recoverable g d f → device_blocks g ≤ size → (∀ r m, runs_within n (k r) m) →
  runs_within (recovery_ios g + n) (recover k) (Medium f []).
Proof.
  intros Hrec Hsize Hk.
  assert (∃ s ser fst (m0 : maps) rs, durable g f s ser fst m0 rs ∧ proper_places g (newest_of rs)) as
    (s&ser&fst&m0&rs&Hdur&Hproper).
  { destruct Hrec as (y&<-&[[(m0&rs&Hdur&_&_&_&[Hnewest Hproper _ _]) _]|[_ (m0&rs&r&Hdur&_&_&_&Hproper&_)]]).
    - rewrite Hnewest in Hproper. by do 5 eexists.
    - do 5 eexists. split; [exact Hdur|]. unfold newest_of. by rewrite last_snoc. }
  pose proof Hdur as [Hheld _ _ _ _ Hpos _ _]. pose proof Hheld as [Hsuper (len&Hlen&Hheader&Hbody) Hother].
  pose proof Hsize as Hblocks. unfold device_blocks in Hblocks.
  unfold recovery_ios.
  replace (6 + slot_blocks g + log_blocks g + data_blocks g + n)
    with (S (S (S (slot_blocks g + (log_blocks g + (3 + data_blocks g + n)))))) by lia.
  simpl. unfold read_block at 1. simpl.
  split; [unfold superblock; lia|]. rewrite Hsuper. split; [lia|]. split; [lia|].
  unfold read_block. simpl. rewrite (newer_found _ _ _ _ _ _ _ Hheld Hheader).
  apply runs_within_more with
    (length (body_address g s <$> seq 0 len) + (log_blocks g + (3 + data_blocks g + n))).
  { rewrite fmap_length, seq_length. lia. }
  apply within_read_these.
  - intros a (i&->&Hi%elem_of_seq)%elem_of_list_fmap. unfold body_address. destruct s; lia.
  - rewrite Hbody. pose proof (within_replay (3 + data_blocks g + n) g f s ser fst m0 rs apply m0 (λ before
      now dg,
      confirm g before now dg (λ z, let 'Found n m ps := z in
        k (Some (Memory g m (collected g m ps) n fst ser s ps)))) Hdur Hsize) as Hreplay.
    destruct (start_found apply fst m0) as [-> Heq]. rewrite Heq at 1.
    apply Hreplay with (rest := rs); [|done|simpl; lia].
    apply within_confirm; try done. by intros [? ? ?].
Qed.

(** ** Every request *)

Lemma within_perform y f d places q :
  represents y f d → device_blocks (shape y) ≤ size →
  runs_within (request_ios (shape y) q) (perform y places q) (Medium f []).
Proof.
  intros Hy Hsize. pose proof Hy as [(m0&rs&_&_&_&[Hmid Hbelow]&_) _]. unfold perform.
  destruct (faults_of y q); [|by destruct (request_ios _ _)].
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
    rewrite <-(Nat.add_0_r (2 * length moves + 3)).
    apply within_move_log; rewrite ?Hshape, ?Hfree; try done.
    + rewrite <-Hshape. by apply (room_positive y).
    + intros x p Hp. eapply Hmid, lookup_weaken, Hsub. exact Hp.
Qed.

Lemma within_write_group y f d places ws :
  represents y f d → device_blocks (shape y) ≤ size →
  runs_within (group_ios (shape y) ws) (write_group y places ws) (Medium f []).
Proof.
  intros [(m0&rs&_&_&_&[_ Hbelow]&_) _] Hsize. by apply within_group.
Qed.
End Bounds.
