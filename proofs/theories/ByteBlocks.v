(** Blocks of bytes: [words] words of so many bytes each, little end first. *)
From stdpp Require Import list strings.
From LogDisk Require Import Codec.

Definition byte := Ascii.ascii.

Fixpoint bytes_of (width w : nat) : list byte :=
  match width with
  | 0 => []
  | S width => Ascii.ascii_of_nat (w `mod` 256) :: bytes_of width (w / 256)
  end.
Definition word_of (bs : list byte) : nat := foldr (λ b w, Ascii.nat_of_ascii b + 256 * w) 0 bs.

Fixpoint words_of (width n : nat) (bs : list byte) : list nat :=
  match n with 0 => [] | S n => word_of (take width bs) :: words_of width n (drop width bs) end.

Definition padded (n : nat) (bs : list byte) : list byte := bs ++ replicate (n - length bs) Ascii.zero.

(** Blocks of [n] words of [width] bytes in [s] sectors, with the digest [d] of the lists [c]. *)
Definition byte_blocks (width n s : nat) (d : list (list byte) → nat * nat) (c : list (list byte) → bool) :
    blocks :=
  {| block := list byte;
     words := n;
     sectors := s;
     limit := 256 ^ width;
     of_words := λ ws, padded (width * n) (ws ≫= bytes_of width);
     to_words := words_of width n;
     zero_block := replicate (width * n) Ascii.zero;
     digest := d;
     compared := c |}.

Lemma length_bytes_of width w : length (bytes_of width w) = width.
Proof. revert w. induction width as [|width IH]; intros w; simpl; [done|by rewrite IH]. Qed.

Lemma word_of_bytes_of width w : w < 256 ^ width → word_of (bytes_of width w) = w.
Proof.
  revert w. induction width as [|width IH]; intros w Hw; [simpl in *; lia|].
  cbn [bytes_of word_of foldr]. fold (word_of (bytes_of width (w / 256))). rewrite IH.
  - rewrite Ascii.nat_ascii_embedding by (by apply Nat.mod_upper_bound). rewrite Nat.add_comm.
    symmetry. by apply Nat.div_mod.
  - apply Nat.div_lt_upper_bound; [done|]. by rewrite Nat.pow_succ_r' in Hw.
Qed.

Lemma words_of_bytes width n ws rest : length ws ≤ n → Forall (λ w, w < 256 ^ width) ws →
  take (length ws) (words_of width n ((ws ≫= bytes_of width) ++ rest)) = ws.
Proof.
  revert n. induction ws as [|w ws IH]; intros n Hlen Hws; [done|].
  apply Forall_cons in Hws as [Hw Hws]. destruct n as [|n]; simpl in Hlen; [lia|]. simpl.
  rewrite <-(assoc_L (++)), take_app_alt, drop_app_alt by by rewrite length_bytes_of.
  rewrite word_of_bytes_of by done. f_equal. apply IH; [lia|done].
Qed.

Lemma byte_blocks_laws width n s d c :
  0 < s → 3 * s ≤ n → collision_free d c → digests_below d (256 ^ width) →
  @blocks_laws (byte_blocks width n s d c).
Proof.
  intros Hs Hn Hfree Hbelow. split; [done|done| |done..]. intros ws Hlen Hws. simpl. unfold padded.
  by apply words_of_bytes.
Qed.

(** Without a sector the law fails, without room in a sector, for a word past the limit, and with a collision.
*)
Lemma no_sectors width n d c : ¬ @blocks_laws (byte_blocks width n 0 d c).
Proof. intros [Hpos _ _ _ _]. simpl in Hpos. lia. Qed.

Lemma no_words width s d c : ¬ @blocks_laws (byte_blocks width 0 s d c).
Proof. intros [Hpos Hfit _ _ _]. simpl in *. lia. Qed.

Lemma word_too_large d c : @to_words (byte_blocks 1 1 1 d c) (@of_words (byte_blocks 1 1 1 d c) [256]) = [0].
Proof. reflexivity. Qed.

Lemma collision width n s c : c [[Ascii.zero]] = true → c [] = true →
  ¬ @blocks_laws (byte_blocks width n s (λ _, (0, 0)) c).
Proof. intros H1 H0 [_ _ _ Hfree _]. by specialize (Hfree [[Ascii.zero]] [] H1 H0 eq_refl). Qed.
