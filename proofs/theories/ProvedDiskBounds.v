(** How many block I/Os a request and recovery take at most, and that none is past the end of the device. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskProgress ProvedDiskAppend ProvedDiskRecovery ProvedDiskRequests LegProgress.

Section Bounds.
Context `{!blocks, !blocks_laws} {torn : tearing}.
Implicit Types (y : memory) (g : geometry) (q : request) (m : medium block) (f : contents block).
Variable size : nat.
Local Notation runs_within := (runs_within size).

(** The blocks that a disk takes of its device. *)
Definition device_blocks g : nat := 3 + log_blocks g + 2 * slot_blocks g + data_blocks g.

Definition recovery_ios g : nat := 3 + slot_blocks g + log_blocks g.
Definition request_ios g q : nat :=
  match q with
  | DoRead _ _ count => count
  | DoFlush => 0
  | DoRestart => recovery_ios g
  | _ => slot_blocks g + length (data_of q) + 6
  end.

Definition group_ios g (ws : list (nat * list block)) : nat := slot_blocks g + length (blocks_of ws) + 6.

Lemma within_write_all {A} n ws (k : program block A) m :
  (∀ a, a ∈ ws.*1 → a < size) → (∀ m, runs_within n k m) → runs_within (length ws + n) (write_all ws k) m.
Proof.
  intros Hws Hk. revert m. induction ws as [|[a b] ws IH]; intros m; simpl; [done|].
  split; [apply Hws; by left|]. apply IH. intros a' Ha'. apply Hws. by right.
Qed.

Lemma within_read_places {A} n g places (k : list block → program block A) m :
  (∀ p, Some p ∈ places → data_address g p < size) → (∀ bs, runs_within n (k bs) m) →
  runs_within (length places + n) (read_places g places k) m.
Proof.
  revert k. induction places as [|[p|] places IH]; intros k Hp Hk; simpl; [done|..].
  - split; [apply Hp; by left|]. apply (IH (λ bs, k (_ :: bs))); [|done]. intros p' Hp'. apply Hp. by right.
  - apply runs_within_more with (length places + n); [lia|].
    apply (IH (λ bs, k (_ :: bs))); [|done]. intros p' Hp'. apply Hp. by right.
Qed.

Section Changes.
Context (y0 : memory).
Hypothesis (Hsize : device_blocks (shape y0) ≤ size).
Hypothesis (Hbelow : ∀ p, is_Some (free y0 !! p) → p < data_blocks (shape y0)).

Lemma within_append {A} n y r places data (refused k : program block A) fr m :
  shape y = shape y0 → free y = free y0 → take_free places (free y) = Some fr →
  (∀ m, runs_within n refused m) → (∀ m, runs_within n k m) →
  runs_within (length data + 3 + n) (append y r places data refused k) m.
Proof.
  intros Hshape Hfree Hplaces Hrefused Hk. unfold append. unfold device_blocks in Hsize.
  destruct (pack _); [|eapply (runs_within_more _ n); [lia|done]].
  destruct (has_room y) eqn:Hroom; [|eapply (runs_within_more _ n); [lia|done]].
  apply bool_decide_eq_true_1 in Hroom. rewrite Hshape in *.
  assert (log_address (shape y0) (next_record y) < size) as Hlog.
  { pose proof (log_address_bound (shape y0) (next_record y)). lia. }
  rewrite Hfree in Hplaces. apply take_free_some in Hplaces as (_&Hin&_).
  destruct places as [|p places].
  { apply (runs_within_more _ (2 + n)); [lia|by simpl]. }
  apply runs_within_more with (length (zip (data_address (shape y0) <$> p :: places) data) + (3 + n)).
  { rewrite zip_with_length. lia. }
  apply within_write_all.
  - intros a Ha. apply elem_of_list_fmap in Ha as ([a' b']&->&Hab%elem_of_zip_l).
    apply elem_of_list_fmap in Hab as (p'&->&Hp'). destruct (Hin p' Hp') as [Hp%Hbelow _].
    unfold data_address. simpl. lia.
  - intros m'. by simpl.
Qed.

Lemma within_checkpoint {A} n y (k : memory → program block A) m :
  shape y = shape y0 → free y = free y0 →
  (∀ y m, shape y = shape y0 → free y = free y0 → runs_within n (k y) m) →
  runs_within (slot_blocks (shape y0) + 3 + n) (checkpoint y k) m.
Proof.
  intros Hshape Hfree Hk. unfold checkpoint. unfold device_blocks in Hsize.
  destruct (pack_many _ _) as [bs|] eqn:Hbs; [|eapply (runs_within_more _ n); [lia|by apply Hk]].
  apply pack_many_prefix in Hbs as [Hlen _]. rewrite Hshape in Hlen.
  destruct (pack _); [|eapply (runs_within_more _ n); [lia|by apply Hk]].
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
  destruct (record_of q places) as [r|]; [|done].
  destruct (take_free places (free y)) as [fr|] eqn:Hplaces; [|done].
  destruct (decide _) as [Hlen|]; [|done].
  rewrite <-(Nat.add_0_r (length (data_of q) + 3)). by eapply within_append.
Qed.

Lemma within_room {A} n (k : memory → program block A) m :
  (∀ y m, shape y = shape y0 → free y = free y0 → runs_within (n + 3) (k y) m) →
  runs_within (slot_blocks (shape y0) + n + 6) (with_room y0 k) m.
Proof.
  intros Hk. unfold with_room. destruct (has_room y0).
  - apply runs_within_more with (n + 3); [lia|by apply Hk].
  - apply runs_within_more with (slot_blocks (shape y0) + 3 + (n + 3)); [lia|]. by apply within_checkpoint.
Qed.

Lemma within_group places ws m : runs_within (group_ios (shape y0) ws) (write_group y0 places ws) m.
Proof.
  apply within_room. clear m. intros y m Hshape Hfree. cbv beta zeta.
  destruct (take_free _ (free y)) as [fr|] eqn:Hplaces; [|done]. destruct (decide _) as [Hlen|]; [|done].
  destruct (forallb _ _); [|done]. rewrite <-(Nat.add_0_r (length (blocks_of ws) + 3)).
  rewrite <-(fmap_length snd (blocks_of ws)) at 1. by eapply within_append.
Qed.
End Changes.

Lemma within_read_all {A} n addresses (k : list block → program block A) m :
  (∀ a, a ∈ addresses → a < size) → (∀ bs, runs_within n (k bs) m) →
  runs_within (length addresses + n) (read_all addresses k) m.
Proof.
  revert k. induction addresses as [|a addresses IH]; intros k Ha Hk; simpl; [done|].
  split; [apply Ha; by left|]. apply (IH (λ bs, k (_ :: bs))); [|done]. intros a' Ha'. apply Ha. by right.
Qed.

Lemma within_replay {A} n g fuel number maps (k : nat → ProvedDisk.maps → program block A) m :
  0 < log_blocks g → device_blocks g ≤ size → (∀ next found, runs_within n (k next found) m) →
  runs_within (fuel + n) (replay g fuel number maps k) m.
Proof.
  intros Hpos Hsize Hk. unfold device_blocks in Hsize. revert number maps.
  induction fuel as [|fuel IH]; intros number maps; simpl; [done|].
  split; [pose proof (log_address_bound g number Hpos); lia|].
  destruct (unpack _ _) as [[n' r]|]; [|eapply (runs_within_more _ n); [lia|done]].
  destruct (decide _); [done|]. eapply (runs_within_more _ n); [lia|done].
Qed.

(** The read that checkpoints and log can be trusted with: what it finds is what was put there. *)
Lemma within_recover {A} n y f d (k : option memory → program block A) :
  represents y f d → device_blocks (shape y) ≤ size → (∀ r, runs_within n (k r) (Medium f [])) →
  runs_within (recovery_ios (shape y) + n) (recover k) (Medium f []).
Proof.
  intros [(m0&rs&Hdur&_) _] Hsize Hk.
  pose proof Hdur as [Hsuper (len&Hlen&Hheader&Hbody) Hother _ _ _ Hpos _]. unfold device_blocks in Hsize.
  unfold recovery_ios. rewrite <-!Nat.add_assoc. simpl. unfold read_block at 1. simpl.
  split; [unfold superblock; lia|]. rewrite Hsuper. split; [lia|]. split; [lia|].
  unfold read_block. simpl. rewrite (newest_found _ _ _ _ _ _ _ _ Hdur Hheader).
  apply runs_within_more with (length (body_address (shape y) (slot y) <$> seq 0 len) + (log_blocks (shape
    y) + n)).
  { rewrite fmap_length, seq_length. lia. }
  apply within_read_all.
  - intros a (i&->&Hi%elem_of_seq)%elem_of_list_fmap. unfold body_address. destruct (slot y); lia.
  - intros bs. destruct (unpack_many _ bs); [|eapply (runs_within_more _ n); [lia|done]].
    by apply within_replay.
Qed.

(** ** Every request *)

Lemma within_perform y f d places q :
  represents y f d → device_blocks (shape y) ≤ size →
  runs_within (request_ios (shape y) q) (perform y places q) (Medium f []).
Proof.
  intros Hy Hsize. pose proof Hy as [(m0&rs&_&_&_&Hmid&Hbelow) _]. unfold perform.
  destruct (faults_of y q); [|by destruct (request_ios _ _)].
  destruct q as [lba data|lba count|n|n|n| | |from lba count];
    try (apply within_room; [done..|]; intros; by apply (within_update y)).
  - done.
  - cbn [request_ios]. rewrite <-(Nat.add_0_r (recovery_ios (shape y))). eapply within_recover; [done..|].
    done.
  - cbn [request_ios]. rewrite <-(Nat.add_0_r count) at 1.
    rewrite <-(seq_length count lba) at 1.
    rewrite <-(fmap_length (λ l, place_of (current y) (map_of (current y) from) l) (seq lba count)) at 1.
    apply within_read_places; [|done]. intros p (l&Hp&_)%elem_of_list_fmap. unfold place_of in Hp.
    symmetry in Hp. apply bind_Some in Hp as (x&_&Hp%Hmid). unfold data_address, device_blocks in *. lia.
Qed.

Lemma within_write_group y f d places ws :
  represents y f d → device_blocks (shape y) ≤ size →
  runs_within (group_ios (shape y) ws) (write_group y places ws) (Medium f []).
Proof.
  intros [(m0&rs&_&_&_&_&Hbelow) _] Hsize. by apply within_group.
Qed.
End Bounds.
