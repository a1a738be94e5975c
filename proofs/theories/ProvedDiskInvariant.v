(** What a device holds of a disk, and what memory knows of it. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk.
From LogDisk Require Export ProvedDiskRecords.

(** ** Reading the maps *)

Definition is_view (m : maps) (vm : lba_map) : Prop := vm = live_map m ∨ ∃ n, snap_maps m !! n = Some vm.
(** A view refers to the MBA. *)
Definition reachable (m : maps) (x : nat) : Prop := ∃ vm l, is_view m vm ∧ vm !! l = Some x.

(** Every MBA that a view refers to has a place, which is not free. *)
Definition well_formed (m : maps) (fr : gmap nat ()) : Prop :=
  ∀ x, reachable m x → x < next_mba m ∧ ∃ p, middle m !! x = Some p ∧ fr !! p = None.

(** A record changes no block past the end of the disk. It is not the head of another one. *)
Definition in_bounds (g : geometry) (r : log_record) : Prop :=
  match r with
  | LogWrite lba places => lba + length places ≤ disk_blocks g
  | LogUnmap lba count => lba + count ≤ disk_blocks g
  | LogGroup bs => ∀ b, b ∈ bs → b.1 < disk_blocks g
  | LogHead _ _ => False
  | _ => True
  end.

(** How a device holds a checkpoint: the maps, as number [ser] in slot [s], with the log going on at record
[fst]; and at which addresses. They are none of the log and none of data. *)
Class checkpoint_format `{blocks} := CheckpointFormat {
  holds_checkpoint : geometry → contents block → bool → nat → nat → maps → Prop;
  checkpoint_address : geometry → bool → nat → Prop;
  holds_same g f f' s ser fst m : (∀ a, checkpoint_address g s a → f' a = f a) →
    holds_checkpoint g f s ser fst m → holds_checkpoint g f' s ser fst m;
  checkpoint_no_log g s a n : checkpoint_address g s a → 0 < log_blocks g → a ≠ log_address g n;
  checkpoint_no_data g s a p : checkpoint_address g s a → p < data_blocks g → a ≠ data_address g p;
}.

Section Invariant.
Context `{!blocks, !checkpoint_format} {torn : tearing block}.
Implicit Types f : contents block.

Definition value (g : geometry) f (m : maps) (vm : lba_map) (l : nat) : block :=
  match place_of m vm l with Some p => f (data_address g p) | None => zero_block end.

Definition reads_as (g : geometry) f (m : maps) (vm : lba_map) (v : view block) : Prop :=
  ∀ l, v l = value g f m vm l.

(** Every view of the disk is what the maps and the data say. *)
Definition agrees (g : geometry) f (m : maps) (d : disk block) : Prop :=
  reads_as g f m (live_map m) (live d) ∧
  ∀ n, option_Forall2 (reads_as g f m) (snap_maps m !! n) (snaps d !! n).

(** What a power cut leaves of a torn header or record does not unseal. Of blocks behind the log anything may
be left. The superblock is not written again, so it does not matter how it tears. *)
Definition torn_unread (g : geometry) : Prop := ∀ a, a < 3 + log_blocks g → ¬ tears a ∧
  ∀ b, tears_to a b → a ≠ superblock → unsealed b = None.

(** The newest checkpoint, [m0], is in slot [s]; the log holds the records [rs] behind it, and no later one.
*)
Record durable (g : geometry) f (s : bool) (ser fst : nat) (m0 : maps) (rs : list logged_record) : Prop := {
  at_checkpoint : holds_checkpoint g f s ser fst m0;
  log_bounded : ∀ i r, rs !! i = Some r → in_bounds g r.1;
  at_log : ∀ old r rest, rs = old ++ r :: rest → lies_at g f (fst + total old) r;
  at_stale : ∀ i n r, unseal log_codec (f (log_address g i)) = Some (n, r) → n < fst + total rs;
  log_fits : total rs ≤ log_blocks g;
  log_positive : 0 < log_blocks g;
  log_unread : torn_unread g;
  log_numbered : 0 < fst;
}.

Definition replayed (m0 : maps) (rs : list logged_record) : maps := foldl (λ m r, apply r.1 m) m0 rs.
(** The places of the newest record, and its digest. *)
Definition newest_of (rs : list logged_record) : list nat :=
  match last rs with Some r => places_of r.1 | None => [] end.
Definition digest_of (rs : list logged_record) : nat * nat :=
  match last rs with Some r => r.2 | None => digest [] end.

Definition blocks_at (g : geometry) f (places : list nat) : list block := f <$> (data_address g <$> places).

(** Every place, used or free, is one of the device. *)
Definition placed (y : memory) : Prop :=
  (∀ x p, middle (current y) !! x = Some p → p < data_blocks (shape y)) ∧
  ∀ p, is_Some (free y !! p) → p < data_blocks (shape y).

(** Distinct places of the device. *)
Definition proper_places (g : geometry) (places : list nat) : Prop :=
  NoDup places ∧ ∀ p, p ∈ places → p < data_blocks g.
(** The places of the newest record are not free, and have its data. *)
Record confirmed (y : memory) f (rs : list logged_record) : Prop := {
  newest_known : newest y = newest_of rs;
  newest_proper : proper_places (shape y) (newest y);
  newest_kept p : p ∈ newest y → free y !! p = None;
  newest_there : digest (blocks_at (shape y) f (newest y)) = digest_of rs;
}.

(** Memory [y] and a device that holds [f] are the disk [d]. *)
Definition represents (y : memory) f (d : disk block) : Prop :=
  (∃ m0 rs, durable (shape y) f (slot y) (serial y) (first_record y) m0 rs ∧
     next_record y = first_record y + total rs ∧ current y = replayed m0 rs ∧ placed y ∧ confirmed y f rs) ∧
  well_formed (current y) (free y) ∧ agrees (shape y) f (current y) d.

(** [f] with a blank where the next record goes. *)
Definition blanked (y : memory) f (a : nat) : block :=
  if decide (a = log_address (shape y) (next_record y)) then blank_block else f a.
(** There is a next record, but it has not all of its data; *)
Definition without_data (y : memory) f : Prop := ∃ m0 rs r,
  durable (shape y) f (slot y) (serial y) (first_record y) m0 (rs ++ [r]) ∧
  next_record y = first_record y + total rs ∧ current y = replayed m0 rs ∧ newest y = newest_of rs ∧
  proper_places (shape y) (places_of r.1) ∧
  (compared (blocks_at (shape y) f (places_of r.1)) = true →
   digest (blocks_at (shape y) f (places_of r.1)) ≠ r.2).
(** or its head, but not all of its bodies. *)
Definition without_bodies (y : memory) f : Prop := ∃ k db dg,
  unseal log_codec (f (log_address (shape y) (next_record y))) = Some (next_record y, (LogHead k db, dg)) ∧
  room_for y (S k) = true ∧
  (compared (bodies_at (shape y) f (next_record y) k) = true →
   digest (bodies_at (shape y) f (next_record y) k) ≠ db).
(** Without it, they are the disk [d]. *)
Definition unconfirmed (y : memory) f (d : disk block) : Prop :=
  represents y (blanked y f) d ∧ (without_data y f ∨ without_bodies y f).

(** What recovery finds is the disk [d]. *)
Definition recoverable (g : geometry) (d : disk block) f : Prop :=
  ∃ y, shape y = g ∧ (represents y f d ∨ unconfirmed y f d).

(** ** Addresses *)

Definition fixed_address (g : geometry) (s : bool) (a : nat) : Prop :=
  (∃ n, a = log_address g n) ∨ checkpoint_address g s a.

Lemma log_address_bound g n : 0 < log_blocks g → 3 ≤ log_address g n < 3 + log_blocks g.
Proof. intros. unfold log_address. pose proof (Nat.mod_upper_bound n (log_blocks g)). lia. Qed.

Lemma header_address_bound s : 0 < header_address s < 3.
Proof. destruct s; simpl; lia. Qed.

Lemma data_not_log g p n : 0 < log_blocks g → data_address g p ≠ log_address g n.
Proof. intros Hpos. pose proof (log_address_bound g n Hpos). unfold data_address. lia. Qed.

Lemma data_not_fixed g s p : 0 < log_blocks g → p < data_blocks g → ¬ fixed_address g s (data_address g p).
Proof.
  intros Hpos Hp [[n Ha]|Ha]; [by eapply data_not_log|]. by apply (checkpoint_no_data _ _ _ p) in Ha.
Qed.

Lemma data_address_inj g p p' : data_address g p = data_address g p' → p = p'.
Proof. unfold data_address. lia. Qed.

Lemma log_address_distinct g n n' : n < n' < n + log_blocks g → log_address g n ≠ log_address g n'.
Proof.
  unfold log_address. intros Hn Heq. assert (n `mod` log_blocks g = n' `mod` log_blocks g) as Hmod by lia.
  pose proof (Nat.div_mod n (log_blocks g)). pose proof (Nat.div_mod n' (log_blocks g)).
  assert (n `div` log_blocks g < n' `div` log_blocks g) by nia. nia.
Qed.

(** ** What a device holds does not depend on the rest of it *)

Lemma durable_moved f f' g s ser fst m0 rs :
  holds_checkpoint g f' s ser fst m0 → (∀ n, f' (log_address g n) = f (log_address g n)) →
  durable g f s ser fst m0 rs → durable g f' s ser fst m0 rs.
Proof.
  intros Hheld Hf [_ Hin Hlog Hstale Hfits Hpos Hwhole Hnum]. split; try done.
  - intros old r rest Hrs. apply (lies_at_same g f); [by intros|by eapply Hlog].
  - intros i n r. rewrite Hf. apply Hstale.
Qed.

Lemma durable_frame g f f' s ser fst m0 rs :
  (∀ a, fixed_address g s a → f' a = f a) → durable g f s ser fst m0 rs → durable g f' s ser fst m0 rs.
Proof.
  intros Hf Hdur. apply (durable_moved f); [|intros n; apply Hf; left; by exists n|done].
  eapply holds_same; [|apply Hdur]. intros a Ha. apply Hf. by right.
Qed.

(** Data that a view refers to. *)
Definition used_address (g : geometry) (m : maps) (a : nat) : Prop :=
  ∃ x p, reachable m x ∧ middle m !! x = Some p ∧ a = data_address g p.

Lemma value_frame g f f' m vm l :
  is_view m vm → (∀ a, used_address g m a → f' a = f a) → value g f' m vm l = value g f m vm l.
Proof.
  intros Hvm Hf. unfold value, place_of. destruct (vm !! l) as [x|] eqn:Hx; simpl; [|done].
  destruct (middle m !! x) as [p|] eqn:Hp; [|done]. apply Hf. exists x, p. split; [by exists vm, l|done].
Qed.

Lemma agrees_frame g f f' m d : (∀ a, used_address g m a → f' a = f a) → agrees g f m d → agrees g f' m d.
Proof.
  intros Hf [Hlive Hsnaps]. split.
  - intros l. rewrite Hlive. symmetry. apply value_frame; [by left|done].
  - intros n. specialize (Hsnaps n). destruct (snap_maps m !! n) as [vm|] eqn:Hvm;
      inversion_clear Hsnaps as [? v Hv|]; constructor.
    intros l. rewrite Hv. symmetry. apply value_frame; [|done]. right. by exists n.
Qed.

Definition data_needed (y : memory) (a : nat) : Prop :=
  used_address (shape y) (current y) a ∨ ∃ p, p ∈ newest y ∧ a = data_address (shape y) p.
Definition needed (y : memory) (a : nat) : Prop :=
  fixed_address (shape y) (slot y) a ∨ data_needed y a.

Lemma blocks_at_frame g f f' places :
  (∀ p, p ∈ places → f' (data_address g p) = f (data_address g p)) →
    blocks_at g f' places = blocks_at g f places.
Proof.
  intros Hf. unfold blocks_at. apply list_fmap_ext. intros i a (p&Hp&->)%list_lookup_fmap_Some.
  by eapply Hf, elem_of_list_lookup_2.
Qed.

Lemma confirmed_frame y f f' rs :
  (∀ p, p ∈ newest y → f' (data_address (shape y) p) = f (data_address (shape y) p)) →
  confirmed y f rs → confirmed y f' rs.
Proof. intros Hf [? ? ? Hthere]. split; try done. by rewrite (blocks_at_frame _ f). Qed.

Lemma represents_moved y f f' d :
  (∀ m0, holds_checkpoint (shape y) f (slot y) (serial y) (first_record y) m0 →
    holds_checkpoint (shape y) f' (slot y) (serial y) (first_record y) m0) →
  (∀ n, f' (log_address (shape y) n) = f (log_address (shape y) n)) → (∀ a, data_needed y a → f' a = f a) →
  represents y f d → represents y f' d.
Proof.
  intros Hheld Hlog Hf [(m0&rs&Hdur&?&?&?&Hconf) [Hwf Hag]]. split; [|split; [done|]].
  - exists m0, rs. split_and!; try done.
    + apply (durable_moved f); [apply Hheld, Hdur|done|done].
    + eapply confirmed_frame; [|done]. intros p Hp. apply Hf. right. by exists p.
  - eapply agrees_frame; [|done]. intros a Ha. apply Hf. by left.
Qed.

Lemma represents_frame y f f' d :
  (∀ a, needed y a → f' a = f a) → represents y f d → represents y f' d.
Proof.
  intros Hf. apply represents_moved; [|intros n; apply Hf; left; left; by exists n|intros; apply Hf; by
    right].
  intros m0. apply holds_same. intros a Ha. apply Hf. left. by right.
Qed.

(** A free place is not needed. *)
Lemma free_not_needed y f d p : represents y f d → is_Some (free y !! p) →
  ¬ needed y (data_address (shape y) p).
Proof.
  intros [(m0&rs&Hdur&_&_&[_ Hbelow]&Hconf) [Hwf _]] Hp [Hfix|[(x&p'&Hx&Hp'&Heq)|(p'&Hp'&Heq)]];
    [by eapply data_not_fixed; [apply Hdur|by apply Hbelow|]|..]; apply data_address_inj in Heq as <-;
    destruct Hp as [[] Hp].
  - destruct (Hwf x Hx) as (_&p2&Hp2&Hfree). by simplify_eq.
  - apply (newest_kept _ _ _ Hconf) in Hp'. congruence.
Qed.

(** ** Codecs *)

Lemma header_round_trips : round_trips header_codec.
Proof. repeat apply both_round_trips; apply number_round_trips. Qed.

Lemma maps_round_trips : round_trips maps_codec.
Proof.
  apply mapped_round_trips; [|by intros []].
  repeat first [apply both_round_trips | apply finite_map_round_trips];
    auto using number_round_trips, text_round_trips.
Qed.

Lemma superblock_round_trips : round_trips superblock_codec.
Proof.
  apply mapped_round_trips.
  - apply both_round_trips; [apply text_round_trips|apply many_round_trips, number_round_trips].
  - by intros [].
Qed.

End Invariant.

(** Where all blocks are written whole, nothing torn is left. *)
Lemma untorn_unread `{!blocks} g : torn_unread (torn := untorn) g.
Proof. intros a _. split; [by intros []|by intros b []]. Qed.

(** ** The maps, whole *)

Section Whole.
Context `{!blocks}.

Record holds_maps (g : geometry) (f : contents block) (s : bool) (ser fst : nat) (m : maps) : Prop := {
  at_superblock : unpack superblock_codec (f superblock) = Some g;
  at_header : ∃ len, len ≤ slot_blocks g ∧
    unseal header_codec (f (header_address s)) = Some (ser, (fst, len)) ∧
    unpack_many maps_codec (f <$> (body_address g s <$> seq 0 len)) = Some m;
  at_other : ∀ h, unseal header_codec (f (header_address (negb s))) = Some h → h.1 < ser;
}.

Definition maps_address (g : geometry) (s : bool) (a : nat) : Prop :=
  a < 3 ∨ ∃ i, i < slot_blocks g ∧ a = body_address g s i.

Lemma holds_maps_same g f f' s ser fst m : (∀ a, maps_address g s a → f' a = f a) →
  holds_maps g f s ser fst m → holds_maps g f' s ser fst m.
Proof.
  intros Hf [Hsuper (len&Hlen&Hheader&Hbody) Hother]. split.
  - rewrite Hf; [done|left; unfold superblock; lia].
  - exists len. split; [done|]. rewrite Hf by (left; pose proof (header_address_bound s); lia). split;
    [done|].
    rewrite <-Hbody. f_equal. apply list_fmap_ext. intros i a (j&(->&Hj)%lookup_seq&->)%list_lookup_fmap_Some.
    apply Hf. right. eexists. split; [|done]. lia.
  - intros h. rewrite Hf by (left; pose proof (header_address_bound (negb s)); lia). apply Hother.
Qed.

Lemma maps_no_log g s a n : maps_address g s a → 0 < log_blocks g → a ≠ log_address g n.
Proof.
  intros Ha Hpos. pose proof (log_address_bound g n Hpos).
  destruct Ha as [?|(i&?&->)]; [lia|]. unfold body_address. lia.
Qed.

Lemma maps_no_data g s a p : maps_address g s a → p < data_blocks g → a ≠ data_address g p.
Proof. unfold data_address. intros [?|(i&?&->)] _; [lia|]. unfold body_address. destruct s; lia. Qed.

Global Instance maps_format : checkpoint_format :=
  CheckpointFormat _ holds_maps maps_address holds_maps_same maps_no_log maps_no_data.
End Whole.
