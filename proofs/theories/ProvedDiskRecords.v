(** Log records as blocks: a record that is longer than a block is read back from its head and its bodies. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk.

(** A record in the log has the digest of its data. *)
Notation logged_record := (log_record * (nat * nat))%type.

(** ** Codecs *)

Lemma flat_paired xs : paired (flat xs) = xs.
Proof. induction xs as [|[a b] xs IH]; simpl; [done|by rewrite IH]. Qed.

Lemma flat_length (bs : list (nat * nat)) : length (flat bs) = 2 * length bs.
Proof. induction bs as [|[a b] bs IH]; simpl; [done|]. lia. Qed.

Lemma record_round_trips : round_trips record_codec.
Proof.
  apply mapped_round_trips.
  - repeat apply both_round_trips; try apply many_round_trips;
    auto using number_round_trips, text_round_trips.
  - intros []; simpl; rewrite ?flat_paired; try done. by repeat match goal with d : nat * nat |- _ =>
      destruct d end.
Qed.

Lemma log_round_trips : round_trips log_codec.
Proof. repeat (apply both_round_trips; try apply number_round_trips). apply record_round_trips. Qed.

Section Records.
Context `{!blocks}.
Implicit Types f : contents block.

Lemma put_log n r dg : put log_codec (n, (r, dg)) = n :: put record_codec r ++ [dg.1; dg.2].
Proof. done. Qed.

(** ** The blocks of a record *)

Lemma size_positive r : 0 < size_of r.
Proof. unfold size_of, blocks_for. destruct (decide _); lia. Qed.

Definition total (rs : list logged_record) : nat := sum_list ((λ r : logged_record, size_of r.1) <$> rs).

Lemma total_nil : total [] = 0.
Proof. done. Qed.

Lemma total_app rs rs' : total (rs ++ rs') = total rs + total rs'.
Proof. unfold total. rewrite fmap_app. induction (_ <$> rs) as [|n ns IH]; simpl; lia. Qed.

Lemma total_cons r rs : total (r :: rs) = size_of r.1 + total rs.
Proof. done. Qed.

Lemma total_snoc rs r : total (rs ++ [r]) = total rs + size_of r.1.
Proof. rewrite total_app, total_cons. change (total []) with 0. lia. Qed.

Lemma length_total rs : length rs ≤ total rs.
Proof.
  induction rs as [|r rs IH]; [done|]. rewrite total_cons. pose proof (size_positive r.1). simpl. lia.
Qed.

Definition bodies_at (g : geometry) f (n k : nat) : list block := f <$> (log_address g <$> seq (S n) k).

(** A record stands at number [n]: in one block, or in a head with its bodies behind it. *)
Definition lies_at (g : geometry) f (n : nat) (lr : logged_record) : Prop :=
  match pred (size_of lr.1) with
  | 0 => unseal log_codec (f (log_address g n)) = Some (n, lr)
  | k =>
      unseal log_codec (f (log_address g n)) = Some (n, (LogHead k (digest (bodies_at g f n k)), lr.2)) ∧
      gathered (bodies_at g f n k) = Some lr.1
  end.

Lemma bodies_at_same g f f' n k :
  (∀ j, 0 < j ≤ k → f' (log_address g (n + j)) = f (log_address g (n + j))) →
  bodies_at g f' n k = bodies_at g f n k.
Proof.
  intros Hf. unfold bodies_at. apply list_fmap_ext. intros i a (j&Hj&->)%list_lookup_fmap_Some.
  apply lookup_seq in Hj as [-> Hi]. replace (S n + i) with (n + S i) by lia. apply Hf. lia.
Qed.

Lemma bodies_at_length g f n k : length (bodies_at g f n k) = k.
Proof. unfold bodies_at. by rewrite !fmap_length, seq_length. Qed.

Lemma lies_at_same g f f' n lr :
  (∀ j, j < size_of lr.1 → f' (log_address g (n + j)) = f (log_address g (n + j))) →
  lies_at g f n lr → lies_at g f' n lr.
Proof.
  intros Hf. pose proof (size_positive lr.1) as Hpos. unfold lies_at.
  assert (f' (log_address g n) = f (log_address g n)) as ->.
  { rewrite <-(Nat.add_0_r n). by apply Hf. }
  destruct (pred (size_of lr.1)) as [|k] eqn:Hk; [done|].
  rewrite (bodies_at_same g f f' n (S k)); [done|]. intros j Hj. apply Hf. lia.
Qed.

Lemma lies_number g f n lr : lies_at g f n lr → ∃ x, unseal log_codec (f (log_address g n)) = Some (n, x).
Proof. unfold lies_at. destruct (pred _); [by eexists|]. intros [? _]. by eexists. Qed.

Lemma bodies_length k ws bs : bodies k ws = Some bs → length bs = k.
Proof.
  revert ws bs. induction k as [|k IH]; intros ws bs; simpl.
  { destruct ws; [|done]. by intros [= <-]. }
  destruct (seal _); [|done]. destruct (bodies k _) as [bs'|] eqn:Hbs; [|done]. intros [= <-]. simpl.
  f_equal. by eapply IH.
Qed.

Lemma log_pieces_size n r dg bs b : log_pieces n r dg = Some (bs, b) → size_of r = S (length bs).
Proof.
  unfold log_pieces. pose proof (size_positive r). destruct (pred (size_of r)) as [|k] eqn:Hk.
  - destruct (seal _); [|done]. intros [= <- _]. simpl. lia.
  - destruct (bodies _ _) as [bs'|] eqn:Hbs; [|done]. destruct (seal _); [|done]. intros [= <- _].
    apply bodies_length in Hbs. lia.
Qed.

(** *** Which records go into the log *)

Lemma bodies_some k ws : 0 < body_words → length ws ≤ k * body_words → 0 < limit →
  Forall (λ w, w < limit) ws → is_Some (bodies k ws).
Proof.
  intros Hsome. revert ws. induction k as [|k IH]; intros ws Hlen Hlimit Hws; simpl in *.
  { destruct ws; [by eexists|simpl in Hlen; lia]. }
  rewrite (seal_some (0 :: take body_words ws)).
  - destruct (IH (drop body_words ws)) as [bs ->]; [rewrite drop_length; lia|done|by apply Forall_drop|].
    by eexists.
  - simpl. rewrite take_length. unfold body_words in *. lia.
  - constructor; [done|by apply Forall_take].
Qed.

(** Any record, if numbers are below the limit of words, and a head goes into a block. *)
Lemma pieces_fit n r dg : digests_below digest limit → 9 ≤ sealed_words → 9 ≤ limit → n < limit →
  dg.1 < limit → dg.2 < limit → size_of r < limit → (∀ w, w ∈ put record_codec r → w < limit) →
  is_Some (log_pieces n r dg).
Proof.
  intros Hdigest Hwords Hlimit Hn H1 H2 Hsize Hr.
  assert (∀ r', length (put log_codec (n, (r', dg))) ≤ sealed_words →
    (∀ w, w ∈ put record_codec r' → w < limit) → is_Some (seal (put log_codec (n, (r', dg))))) as Hseal.
  { intros r' Hlen Hr'. eexists. apply seal_some; [done|]. rewrite put_log. apply Forall_forall.
    intros w. rewrite elem_of_cons, elem_of_app, !elem_of_cons, elem_of_nil.
    intros [->|[?|[->|[->|[]]]]]; [done|by apply Hr'|done..]. }
  assert (0 < body_words) as Hsome by (unfold body_words; lia).
  unfold log_pieces. unfold size_of, blocks_for in *.
  destruct (decide (length (put record_codec r) + 3 ≤ sealed_words)) as [Hshort|Hlong]; cbn [pred].
  - destruct (Hseal r) as [b ->]; [|done|by eexists].
    rewrite put_log. cbn [length]. rewrite app_length. cbn [length]. lia.
  - set (k := length (put record_codec r) / body_words) in *.
    destruct (bodies_some (S k) (put record_codec r)) as [bs Hbs]; [done| |lia|by apply Forall_forall|].
    { assert (body_words ≠ 0) as Hne by lia.
      pose proof (Nat.div_mod (length (put record_codec r)) body_words Hne) as Hdiv.
      pose proof (Nat.mod_upper_bound (length (put record_codec r)) body_words Hne). fold k in Hdiv. nia. }
    rewrite Hbs. destruct (Hdigest bs). destruct (Hseal (LogHead (S k) (digest bs))) as [b ->];
      [simpl; lia| |by eexists].
    intros w. simpl. rewrite !elem_of_cons, elem_of_nil. lia.
Qed.

Context `{!blocks_laws}.

(** ** Bodies *)

Lemma bodies_words k ws bs : bodies k ws = Some bs → length bs = k ∧
  (∃ rest, concat (body_of <$> bs) = ws ++ rest) ∧
  ∀ b, b ∈ bs → ∃ ws', b = sealed (0 :: ws') ∧ length (0 :: ws') ≤ sealed_words ∧
    Forall (λ w, w < limit) (0 :: ws').
Proof.
  revert ws bs. induction k as [|k IH]; intros ws bs; simpl.
  { destruct ws as [|w ws]; [|done]. intros [= <-].
    split_and!; [done|by exists []|by intros ? ?%elem_of_nil]. }
  destruct (seal _) as [b|] eqn:Hb; [|done]. destruct (bodies k _) as [bs'|] eqn:Hbs; [|done].
  intros [= <-]. destruct (IH _ _ Hbs) as (Hlen&[rest Hrest]&Hall).
  pose proof (seal_words _ _ Hb) as (Heq&Hless&Hbelow). split_and!; [simpl; lia| |].
  - assert (body_of b = take body_words ws ++ replicate (body_words - length (take body_words ws)) 0)
      as Hbody.
    { unfold body_of. rewrite Heq, unsealed_sealed by done. unfold filled, body_words. simpl.
      rewrite drop_0. do 2 f_equal. lia. }
    change (concat (body_of <$> b :: bs')) with (body_of b ++ concat (body_of <$> bs')).
    rewrite Hbody, Hrest. destruct (decide (body_words ≤ length ws)) as [Hfull|Hpart].
    + rewrite take_length, Nat.min_l, Nat.sub_diag by done. simpl. rewrite app_nil_r. exists rest.
      by rewrite (assoc_L (++)), take_drop.
    + rewrite (take_ge ws), (drop_ge ws) by lia. rewrite <-(assoc_L (++)). by eexists.
  - intros b' [->|Hin]%elem_of_cons; [by eauto|by apply Hall].
Qed.

Lemma zero_number {A} (c : codec A) ws n x : length (0 :: ws) ≤ sealed_words →
  Forall (λ w, w < limit) (0 :: ws) → unseal (both number c) (sealed (0 :: ws)) = Some (n, x) → n = 0.
Proof.
  intros Hlen Hws. unfold unseal. rewrite unsealed_sealed by done. simpl.
  destruct (get c _) as [[]|]; simpl; [|done]. by intros [= <- _].
Qed.

Lemma gathered_bodies k r bs : bodies k (put record_codec r) = Some bs → gathered bs = Some r.
Proof.
  intros (_&[rest Hrest]&_)%bodies_words. unfold gathered. by rewrite Hrest, record_round_trips.
Qed.

(** What is put into the log: the first block has the number, the bodies have none. *)
Lemma log_pieces_some n r dg bs b : log_pieces n r dg = Some (bs, b) →
  size_of r = S (length bs) ∧
  (∀ b' n' x, b' ∈ bs → unseal log_codec b' = Some (n', x) → n' = 0) ∧
  match bs with
  | [] => unseal log_codec b = Some (n, (r, dg))
  | _ => unseal log_codec b = Some (n, (LogHead (length bs) (digest bs), dg)) ∧ gathered bs = Some r
  end.
Proof.
  unfold log_pieces. pose proof (size_positive r) as Hpos.
  destruct (pred (size_of r)) as [|k] eqn:Hk.
  - destruct (seal _) as [b'|] eqn:Hb; [|done]. intros [= <- <-]. split_and!; [simpl; lia| |].
    + by intros ? ? ? ?%elem_of_nil.
    + by apply (seal_unseal log_codec), Hb; apply log_round_trips.
  - destruct (bodies _ _) as [bs'|] eqn:Hbs; [|done]. destruct (seal _) as [b'|] eqn:Hb; [|done].
    intros [= <- <-]. pose proof (bodies_words _ _ _ Hbs) as (Hlen&_&Hall). split_and!; [lia| |].
    + intros b1 n1 x Hin Hn. destruct (Hall b1 Hin) as (ws&->&Hless&Hbelow).
      by apply (zero_number (both record_codec (both number number)) ws n1 x).
    + destruct bs' as [|b1 bs1]; [simpl in Hlen; lia|]. rewrite Hlen. split.
      * by apply (seal_unseal log_codec), Hb; apply log_round_trips.
      * by eapply gathered_bodies.
Qed.

Lemma pieces_lie g f n r dg bs b : log_pieces n r dg = Some (bs, b) →
  f (log_address g n) = b → bodies_at g f n (length bs) = bs → lies_at g f n (r, dg).
Proof.
  intros (Hsize&_&Hb)%log_pieces_some Hhead Hbodies. unfold lies_at. cbn [fst snd]. rewrite Hsize.
  cbn [pred]. destruct bs as [|b1 bs]; cbn [length] in *; [by rewrite Hhead|].
  by rewrite Hhead, Hbodies.
Qed.

End Records.
