(** The table of roots in words. It grows with the views, the walks and how far these have come, and not with
what the trees map. *)
From LogDisk Require Import TreeIndexBounds.
From LogDisk Require TreeIndexMaps.
From LogDisk Require Import Codec TreeBlocks.

(** ** The codec *)

Definition optional {A} (a : codec A) : codec (option A) :=
  mapped (λ o, match o with Some x => [x] | None => [] end) (λ l, Some (head l)) (many a).

Definition claimant_codec : codec (nat + nat) :=
  mapped (λ j, match j with View v => (0, v) | Dying t => (1, t) end)
    (λ x, Some (match x.1 with 0 => View x.2 | _ => Dying x.2 end)) (both number number).

Definition claim_codec : codec claim :=
  mapped (λ c, (parent c, (root c, done c))) (λ x, Some (Claim x.1 x.2.1 x.2.2))
    (both number (both number (many (many number)))).

Definition saved_claim_codec : codec saved_claim :=
  both claim_codec (optional (both (many number) (both number (both number number)))).

Definition roots_codec : codec roots :=
  mapped (λ r, (roots_height r, (roots_next r, (roots_epoch r, roots_claims r))))
    (λ x, Some (Roots x.1 x.2.1 x.2.2.1 x.2.2.2))
    (both number (both number (both number (finite_map claimant_codec saved_claim_codec)))).

Lemma optional_round_trips {A} (a : codec A) : round_trips a → round_trips (optional a).
Proof. intros Ha. apply mapped_round_trips; [by apply many_round_trips|]. by intros [x|]. Qed.

Lemma roots_round_trips : round_trips roots_codec.
Proof.
  apply mapped_round_trips; [|by intros []]. apply both_round_trips; [apply number_round_trips|].
  apply both_round_trips; [apply number_round_trips|].
  apply both_round_trips; [apply number_round_trips|]. apply finite_map_round_trips.
  - apply mapped_round_trips; [by apply both_round_trips|by intros []].
  - apply both_round_trips.
    + apply mapped_round_trips; [|by intros []].
      apply both_round_trips; [done|]. apply both_round_trips; [done|].
      by apply many_round_trips, many_round_trips.
    + apply optional_round_trips, both_round_trips; [by apply many_round_trips|].
      by apply both_round_trips, both_round_trips.
Qed.

(** ** How long it is *)

Definition path_words (p : path) : nat := 1 + length p.
(** The words that the cursor of a walk takes. *)
Definition cursor_words (c : claim) : nat := sum_list (path_words <$> done c).
Definition cursors (s : state) : nat := sum_list ((λ e, cursor_words e.2) <$> map_to_list (claims s)).

Lemma put_many_sum {A} (a : codec A) xs : length (put_many a xs) = sum_list ((λ x, length (put a x)) <$> xs).
Proof. induction xs as [|x xs IH]; [done|]. rewrite put_many_cons, app_length, IH. done. Qed.

Lemma many_number_length xs : length (put (many number) xs) = path_words xs.
Proof. simpl. rewrite put_many_sum. unfold path_words. f_equal. induction xs; simpl in *; [done|]. by f_equal.
Qed.

Lemma sum_bound {A} (g h : A → nat) k xs : (∀ x, x ∈ xs → g x ≤ k + h x) →
  sum_list (g <$> xs) ≤ length xs * k + sum_list (h <$> xs).
Proof.
  intros Hg. induction xs as [|x xs IH]; [simpl; lia|]. rewrite !fmap_cons. simpl sum_list. simpl length.
  assert (g x ≤ k + h x) by (apply Hg; by left).
  assert (sum_list (g <$> xs) ≤ length xs * k + sum_list (h <$> xs)) by (apply IH; intros; apply Hg; by
    right).
  lia.
Qed.

Lemma cursor_length c : length (put_many (many number) (done c)) = cursor_words c.
Proof.
  rewrite put_many_sum. unfold cursor_words. f_equal. apply list_fmap_ext. intros _ p _.
  apply many_number_length.
Qed.

Lemma saved_claim_words s on c k :
  (∀ n nd, nodes s !! n = Some nd → length (place nd) ≤ k) →
  length (put saved_claim_codec (c, (λ nd, (place nd, entry s on (root c))) <$> nodes s !! root c)) ≤
  8 + k + cursor_words c.
Proof.
  intros Hk. assert (∀ o, length (put saved_claim_codec (c, o)) =
    4 + cursor_words c + match o with Some (pl, _) => path_words pl + 3 | None => 0 end) as ->.
  { intros o. change (put saved_claim_codec (c, o)) with
      (parent c :: root c :: length (done c) :: put_many (many number) (done c) ++
       put (optional (both (many number) (both number (both number number)))) o).
    simpl length at 1. rewrite app_length, cursor_length. destruct o as [[pl k']|]; simpl; [|lia].
    rewrite !app_length. simpl. pose proof (many_number_length pl) as Hpl. simpl in Hpl.
    unfold path_words in Hpl. lia. }
  destruct (nodes s !! root c) as [nd|] eqn:Hr; simpl; [|lia].
  specialize (Hk _ _ Hr). unfold path_words. lia.
Qed.

Theorem roots_words bits levels s on : kept_trees bits levels s →
  length (put roots_codec (roots_of s on)) ≤ 4 + size (claims s) * (10 + levels) + cursors s.
Proof.
  intros Hkept. destruct (kept_bounded _ _ _ Hkept) as [Hh Hbound].
  assert (∀ n nd, nodes s !! n = Some nd → length (place nd) ≤ levels) as Hk.
  { intros n nd Hn. by apply (bounded_place _ _ _ (Hbound _ _ Hn)). }
  unfold roots_codec, finite_map. simpl. rewrite put_many_sum.
  rewrite map_to_list_fmap, <- list_fmap_compose.
  unfold cursors. do 4 apply le_n_S. apply sum_bound. intros [j c] _.
  pose proof (saved_claim_words s on c levels Hk) as Hc. unfold compose, prod_map, both. simpl put.
  simpl in Hc |- *. lia.
Qed.

(** Views have no cursors: where no walk is left, the table grows with the number of views alone. *)
Lemma no_cursors s : inv s → (∀ t, claims s !! Dying t = None) → cursors s = 0.
Proof.
  intros I Hnone. unfold cursors. assert (∀ e, e ∈ map_to_list (claims s) → cursor_words e.2 = 0) as Hz.
  { intros [[v|t] c] He%elem_of_map_to_list; simpl; [|by rewrite Hnone in He].
    unfold cursor_words. by destruct (inv_view I He) as (_ & -> & _). }
  induction (map_to_list (claims s)) as [|e l IH]; [done|]. rewrite fmap_cons. simpl.
  rewrite (Hz e) by (by left). apply IH. intros e' He'. apply Hz. by right.
Qed.
