(** The codes of the legs: how a stripe's parity is computed, and what can be computed back from what is left
of it.

    Results, for P and Q over blocks of any size:
    - [gf_field]: bytes, with addition [add] and multiplication [mul] modulo 0x11d, are a field, GF(2^8).
    - [generator_order], [generator_generates]: the powers 0 .. 254 of 2 are distinct, and are every byte but
      zero.
    - [mirror_good], [raid5_good], [raid6_good]: mirrors (1 + m), RAID-5 (k + 1) and RAID-6 (k + 2, k <= 255)
      are good codes ([good]): with at most m components lost, whichever they are, the stripe's data come
      back; with more lost, decoding fails or is right; the parity of zeroes is zeroes.
    - [raid5_any_one], [raid6_any_two]: the same, spelled out by the indices of what is lost.
    - [degraded_read]: a read of one block of a stripe with at most m components lost returns that block.
    - [mirror_whole]: of two mirrored values written one over the other, a mixture decodes to one of the two.

    Each hypothesis is needed:
    - [raid5_two_lost], [raid6_three_lost]: different stripes agree on all that is left of them.
    - [raid6_256_data]: with 256 data components two of them cannot be told apart, as 2^255 = 1. *)
From Coq Require Import Btauto Field_theory.
From stdpp Require Import vector.
From LogDisk Require Export RedundancyCode.

(** ** The field *)

Record byte := Byte { b0 : bool; b1 : bool; b2 : bool; b3 : bool; b4 : bool; b5 : bool; b6 : bool;
  b7 : bool }.

Global Instance byte_eq_dec : EqDecision byte := ltac:(solve_decision).

Definition zero := Byte false false false false false false false false.
Definition one := Byte true false false false false false false false.

Definition add (a b : byte) : byte :=
  Byte (xorb (b0 a) (b0 b)) (xorb (b1 a) (b1 b)) (xorb (b2 a) (b2 b)) (xorb (b3 a) (b3 b))
       (xorb (b4 a) (b4 b)) (xorb (b5 a) (b5 b)) (xorb (b6 a) (b6 b)) (xorb (b7 a) (b7 b)).

(** Times 2: shifted, and what falls out at the top comes back as 0x1d. *)
Definition double (a : byte) : byte :=
  Byte (b7 a) (b0 a) (xorb (b1 a) (b7 a)) (xorb (b2 a) (b7 a)) (xorb (b3 a) (b7 a)) (b4 a) (b5 a) (b6 a).

Definition when (c : bool) (a : byte) : byte :=
  Byte (c && b0 a) (c && b1 a) (c && b2 a) (c && b3 a) (c && b4 a) (c && b5 a) (c && b6 a) (c && b7 a).

(** Times a polynomial whose coefficients are [bits], the lowest first. *)
Definition times (a : byte) (bits : list bool) : byte :=
  foldr (fun c r => add (when c a) (double r)) zero bits.

Definition bits_of (a : byte) : list bool := [b0 a; b1 a; b2 a; b3 a; b4 a; b5 a; b6 a; b7 a].

Definition mul (a b : byte) : byte := times a (bits_of b).

Definition power (a : byte) (n : nat) : byte := Init.Nat.iter n (mul a) one.

(** a^254, by squares; a^255 = 1 for every a but zero. *)
Definition inv (a : byte) : byte := let b := Init.Nat.iter 6 (fun b => mul (mul b b) a) a in mul b b.

Definition two := double one.

Ltac bits := intros; unfold mul, bits_of, times, double, when, add, zero, one; cbn -[xorb andb]; f_equal;
  btauto.

Lemma byte_eta a : Byte (b0 a) (b1 a) (b2 a) (b3 a) (b4 a) (b5 a) (b6 a) (b7 a) = a.
Proof. by destruct a. Qed.

Lemma add_comm a b : add a b = add b a.
Proof. bits. Qed.
Lemma add_assoc a b c : add a (add b c) = add (add a b) c.
Proof. bits. Qed.
Lemma add_0_l a : add zero a = a.
Proof. rewrite <-(byte_eta a). bits. Qed.
Lemma add_self a : add a a = zero.
Proof. bits. Qed.

Lemma add_swap a b c d : add (add a b) (add c d) = add (add a c) (add b d).
Proof. bits. Qed.
Lemma when_add x a b : when x (add a b) = add (when x a) (when x b).
Proof. bits. Qed.
Lemma double_add a b : double (add a b) = add (double a) (double b).
Proof. bits. Qed.
Lemma when_double x a : when x (double a) = double (when x a).
Proof. bits. Qed.
Lemma mul_1_l a : mul one a = a.
Proof. rewrite <-(byte_eta a). bits. Qed.

(** Multiplication is linear: it reaches through sums, through [double], and through the bits of what is
multiplied. *)
Lemma mul_0_l a : mul zero a = zero.
Proof. unfold mul. induction (bits_of a) as [|x l IH]; [done|]. simpl. rewrite IH. by destruct x. Qed.
Lemma mul_add_l a b c : mul (add a b) c = add (mul a c) (mul b c).
Proof. unfold mul. induction (bits_of c) as [|x l IH]; [done|]. simpl.
  by rewrite IH, when_add, double_add, add_swap. Qed.
Lemma mul_double a b : mul (double a) b = double (mul a b).
Proof. unfold mul. induction (bits_of b) as [|x l IH]; [done|]. simpl. by rewrite IH, when_double, double_add.
  Qed.
Lemma mul_when x a b : mul (when x a) b = when x (mul a b).
Proof. assert (when_true : ∀ a, when true a = a) by (intros y; apply byte_eta).
  destruct x; [by rewrite !when_true | apply mul_0_l]. Qed.
Lemma mul_times a bits c : mul (times a bits) c = times (mul a c) bits.
Proof. induction bits as [|x l IH]; simpl; [apply mul_0_l|]. by rewrite mul_add_l, mul_when, mul_double, IH.
  Qed.

Lemma mul_comm a b : mul a b = mul b a.
Proof. rewrite <-(mul_1_l a) at 1. unfold mul at 2. by rewrite mul_times, mul_1_l. Qed.

Lemma mul_swap a b c : mul (mul a b) c = mul (mul a c) b.
Proof. apply mul_times. Qed.

Lemma mul_assoc a b c : mul a (mul b c) = mul (mul a b) c.
Proof. by rewrite (mul_comm a (mul b c)), mul_swap, (mul_comm b a). Qed.

Definition bytes : list byte :=
  let bits := [false; true] in
  i ← bits; j ← bits; k ← bits; l ← bits; m ← bits; n ← bits; o ← bits; p ← bits; [Byte i j k l m n o p].

Lemma elem_of_bytes a : a ∈ bytes.
Proof. assert (bit : ∀ b : bool, b ∈ [false; true]) by (intros []; set_solver).
  destruct a as [i j k l m n o p]. repeat (apply elem_of_list_bind; eexists; split; [|by apply bit]).
  by apply elem_of_list_singleton. Qed.

Lemma each_byte (P : byte -> Prop) `{∀ a, Decision (P a)} :
  bool_decide (Forall P bytes) = true -> ∀ a, P a.
Proof. intros all a. apply bool_decide_eq_true in all. rewrite Forall_forall in all. apply all, elem_of_bytes.
  Qed.

Lemma mul_inv_l a : a <> zero -> mul (inv a) a = one.
Proof. revert a. refine (each_byte _ _). vm_cast_no_check (eq_refl true). Qed.

Theorem gf_field : field_theory zero one add mul add id (fun a b => mul a (inv b)) inv eq.
Proof. split; [|done|done|apply mul_inv_l].
  split; auto using add_0_l, add_comm, add_assoc, mul_1_l, mul_comm, mul_assoc, mul_add_l, add_self. Qed.

Definition powers : list byte := power two <$> seq 0 255.

Lemma powers_NoDup : NoDup powers.
Proof. refine (bool_decide_eq_true_1 _ _). vm_cast_no_check (eq_refl true). Qed.

Theorem generator_order i j : i < 255 -> j < 255 -> power two i = power two j -> i = j.
Proof.
  intros Hi Hj E. apply (NoDup_lookup powers i j (power two i) powers_NoDup);
    unfold powers; rewrite list_lookup_fmap, lookup_seq_lt by done; simpl; [done|by rewrite E].
Qed.

Theorem generator_generates a : a <> zero -> ∃ i, i < 255 /\ a = power two i.
Proof.
  assert (H : ∀ a, a <> zero -> a ∈ powers) by (refine (each_byte _ _); vm_cast_no_check (eq_refl true)).
  intros (i & -> & Hi%elem_of_seq)%H%elem_of_list_fmap. exists i. split; [lia|done]. Qed.

Lemma add_0_r a : add a zero = a.
Proof. by rewrite add_comm, add_0_l. Qed.

Lemma mul_add_r a b c : mul a (add b c) = add (mul a b) (mul a c).
Proof. by rewrite mul_comm, mul_add_l, (mul_comm b), (mul_comm c). Qed.

Lemma mul_inv_r a : a <> zero -> mul a (inv a) = one.
Proof. rewrite mul_comm. apply mul_inv_l. Qed.

Lemma mul_nonzero a b : a <> zero -> b <> zero -> mul a b <> zero.
Proof. intros Ha Hb E. apply Ha.
  by rewrite <-(mul_1_l a), mul_comm, <-(mul_inv_r b Hb), mul_assoc, E, mul_0_l. Qed.

Lemma power_nonzero a n : a <> zero -> power a n <> zero.
Proof. intros Ha. induction n as [|n IH]; simpl; [done|by apply mul_nonzero]. Qed.

Lemma add_eq_zero a b : add a b = zero -> a = b.
Proof. intros E. by rewrite <-(add_0_l b), <-E, <-add_assoc, add_self, add_0_r. Qed.

Lemma power_sum_nonzero i j : i < 255 -> j < 255 -> i <> j -> add (power two i) (power two j) <> zero.
Proof. intros Hi Hj Hij E. by apply Hij, generator_order, add_eq_zero. Qed.

(** ** Blocks *)

Section blocks.
  Context {n : nat}.
  Notation block := (vec byte n).
  Implicit Types (x y z : block) (a b : byte) (d : list block) (i j k : nat).

  Definition plus x y : block := vzip_with add x y.
  Definition times_byte a x : block := vmap (mul a) x.
  Definition zeroes : block := vreplicate n zero.

  Ltac by_byte := intros; apply vec_eq; intros i;
    unfold plus, times_byte, zeroes; rewrite ?vlookup_zip_with, ?vlookup_map, ?vlookup_zip_with, ?vlookup_map,
      ?vlookup_replicate.

  Lemma plus_comm x y : plus x y = plus y x.
  Proof. by_byte. apply add_comm. Qed.
  Lemma plus_assoc x y z : plus x (plus y z) = plus (plus x y) z.
  Proof. by_byte. apply add_assoc. Qed.
  Lemma plus_0_l x : plus zeroes x = x.
  Proof. by_byte. apply add_0_l. Qed.
  Lemma plus_self x : plus x x = zeroes.
  Proof. by_byte. apply add_self. Qed.
  Lemma times_plus a x y : times_byte a (plus x y) = plus (times_byte a x) (times_byte a y).
  Proof. by_byte. apply mul_add_r. Qed.
  Lemma times_times a b x : times_byte a (times_byte b x) = times_byte (mul a b) x.
  Proof. by_byte. apply mul_assoc. Qed.
  Lemma times_add a b x : times_byte (add a b) x = plus (times_byte a x) (times_byte b x).
  Proof. by_byte. apply mul_add_l. Qed.
  Lemma times_1 x : times_byte one x = x.
  Proof. by_byte. apply mul_1_l. Qed.
  Lemma times_0 a : times_byte a zeroes = zeroes.
  Proof. by_byte. rewrite mul_comm. apply mul_0_l. Qed.

  Lemma plus_cancel x y : plus x (plus x y) = y.
  Proof. by rewrite plus_assoc, plus_self, plus_0_l. Qed.
  Lemma times_inv a x : a <> zero -> times_byte (inv a) (times_byte a x) = x.
  Proof. intros. by rewrite times_times, mul_inv_l, times_1. Qed.

  (** The sum of a^i d_i: P for a = 1, Q for a = 2. *)
  Definition syndrome a d : block := foldr (fun x r => plus x (times_byte a r)) zeroes d.

  Lemma syndrome_insert a d i x : d !! i = Some zeroes ->
    syndrome a (<[i := x]> d) = plus (syndrome a d) (times_byte (power a i) x).
  Proof.
    revert i. induction d as [|y d IH]; intros [|i] E; try done; simpl in *.
    - injection E as ->. by rewrite plus_0_l, times_1, plus_comm.
    - by rewrite (IH i E), times_plus, times_times, plus_assoc.
  Qed.

  Lemma syndrome_zeroes a k : syndrome a (replicate k zeroes) = zeroes.
  Proof. induction k as [|k IH]; simpl; [done|]. by rewrite IH, times_0, plus_0_l. Qed.

  Lemma power_one i : power one i = one.
  Proof. induction i as [|i IH]; [done|]. change (mul one (power one i) = one). by rewrite IH, mul_1_l. Qed.

  (** ** Decoding *)

  Definition known (s : list (option block)) : list block := default zeroes <$> s.

  (** The indices of what is lost, counted from [k]. *)
  Fixpoint holes k (s : list (option block)) : list nat :=
    match s with [] => [] | None :: s => k :: holes (S k) s | Some _ :: s => holes (S k) s end.

  (** The data, from what is left [s] of them and what is left of P and Q. *)
  Definition solve (s : list (option block)) (p q : option block) : option (list block) :=
    let d := known s in
    let p' := plus (syndrome one d) <$> p in
    let q' := plus (syndrome two d) <$> q in
    match holes 0 s, p', q' with
    | [], _, _ => Some d
    | [i], Some p', _ => Some (<[i := p']> d)
    | [i], None, Some q' => Some (<[i := times_byte (inv (power two i)) q']> d)
    | [i; j], Some p', Some q' =>
        let x := times_byte (inv (add (power two i) (power two j))) (plus q' (times_byte (power two j) p')) in
        Some (<[i := x]> (<[j := plus p' x]> d))
    | _, _, _ => None
    end.

  Lemma elem_of_holes k s i : i ∈ holes k s <-> k <= i /\ s !! (i - k) = Some None.
  Proof.
    revert k. induction s as [|o s IH]; intros k; [split; [by intros ?%elem_of_nil|by intros [_ ?]]|].
    destruct (Nat.lt_trichotomy i k) as [L|[->|L]].
    - destruct o; simpl; rewrite ?elem_of_cons, IH; lia.
    - rewrite Nat.sub_diag. destruct o; simpl; rewrite ?elem_of_cons, IH; split; intuition (done || lia).
    - replace (i - k) with (S (i - S k)) by lia. destruct o; simpl; rewrite ?elem_of_cons, IH; intuition lia.
  Qed.

  Lemma holes_NoDup k s : NoDup (holes k s).
  Proof. revert k. induction s as [|[x|] s IH]; intros k; simpl; [constructor|done|]. constructor; [|done].
    rewrite elem_of_holes. lia. Qed.

  Lemma holes_lost k s : length (holes k s) = lost s.
  Proof. revert k. induction s as [|[x|] s IH]; intros k; simpl; auto. Qed.

  Lemma known_lookup s d i : left_of s d -> i ∉ holes 0 s -> known s !! i = d !! i.
  Proof.
    intros L N. unfold known. rewrite list_lookup_fmap. destruct (s !! i) as [o|] eqn:E.
    - destruct (Forall2_lookup_l _ _ _ _ _ L E) as (y & -> & [-> | ->]); [|done].
      destruct N. apply elem_of_holes. rewrite Nat.sub_0_r. split; [lia|done].
    - simpl. symmetry. apply lookup_ge_None. apply lookup_ge_None in E.
      rewrite <-(Forall2_length _ _ _ L). done.
  Qed.

  Lemma known_hole s d i : left_of s d -> i ∈ holes 0 s -> known s !! i = Some zeroes /\ is_Some (d !! i).
  Proof. intros L [_ E]%elem_of_holes. rewrite Nat.sub_0_r in E. unfold known. rewrite list_lookup_fmap, E.
    split; [done|]. destruct (Forall2_lookup_l _ _ _ _ _ L E) as (y & -> & _). eauto. Qed.

  Lemma known_length s d : left_of s d -> length (known s) = length d.
  Proof. intros L. unfold known. by rewrite fmap_length, (Forall2_length _ _ _ L). Qed.

  Lemma restore u d i x : length u = length d -> d !! i = Some x -> (∀ k, k <> i -> u !! k = d !! k) ->
    <[i := x]> u = d.
  Proof.
    intros L E K. apply list_eq. intros k. destruct (decide (k = i)) as [->|N].
    - rewrite list_lookup_insert; [done|]. rewrite L. by eapply lookup_lt_Some.
    - rewrite list_lookup_insert_ne by done. by apply K.
  Qed.

  (** [solve] is right whenever it gives an answer, *)
  Lemma solve_sound s d p q d' : left_of s d -> length d <= 255 \/ q = None ->
    (p = None \/ p = Some (syndrome one d)) -> (q = None \/ q = Some (syndrome two d)) ->
    solve s p q = Some d' -> d' = d.
  Proof.
    intros L B Hp Hq. unfold solve. pose proof (known_lookup s d) as K. pose proof (known_hole s d) as Z.
    pose proof (known_length s d L) as Len. pose proof (holes_NoDup 0 s) as ND.
    destruct (holes 0 s) as [|i [|j [|]]]; [| | |by destruct p, q].
    - intros [= <-]. apply list_eq. intros i. apply K; [done|]. apply not_elem_of_nil.
    - destruct (Z i L) as (Zi & x & Hx); [left|]. assert (<[i := x]> (known s) = d) as Ed.
      { apply restore; [done..|]. intros k N. apply K; [done|]. by intros ?%elem_of_list_singleton. }
      assert (∀ a, syndrome a d = plus (syndrome a (known s)) (times_byte (power a i) x)) as Sy.
      { intros a. rewrite <-Ed at 1. by apply syndrome_insert. }
      destruct Hp as [-> | ->], Hq as [-> | ->]; simpl; try done; intros [= <-];
        by rewrite Sy, plus_cancel, ?power_one, ?times_1, ?times_inv by by apply power_nonzero.
    - destruct (Z i L) as (Zi & x & Hx); [left|]. destruct (Z j L) as (Zj & y & Hy); [right; left|].
      apply NoDup_cons in ND as [N _]. rewrite elem_of_list_singleton in N.
      assert (<[i := x]> (<[j := y]> (known s)) = d) as Ed.
      { apply restore; [by rewrite insert_length|done|]. intros k Ni. destruct (decide (k = j)) as [->|Nj].
        - rewrite list_lookup_insert; [done|]. by apply lookup_lt_Some in Zj.
        - rewrite list_lookup_insert_ne by done. apply K; [done|].
          by intros [?|?%elem_of_list_singleton]%elem_of_cons. }
      assert (∀ a, plus (syndrome a (known s)) (syndrome a d)
        = plus (times_byte (power a j) y) (times_byte (power a i) x)) as Sy.
      { intros a. rewrite <-Ed at 1. rewrite syndrome_insert by by rewrite list_lookup_insert_ne.
        rewrite syndrome_insert by done. by rewrite <-plus_assoc, plus_cancel. }
      destruct Hp as [-> | ->], Hq as [-> | ->], B as [B|]; simpl; try done. intros [= <-].
      assert (i < 255 /\ j < 255) as [Bi Bj] by (apply lookup_lt_Some in Hx, Hy; lia).
      rewrite !Sy, !power_one, !times_1.
      assert (plus (plus (times_byte (power two j) y) (times_byte (power two i) x))
        (times_byte (power two j) (plus y x)) = times_byte (add (power two i) (power two j)) x) as ->.
      { by rewrite times_plus, times_add, (plus_comm (times_byte _ y) (times_byte _ x)), <-plus_assoc,
        plus_cancel. }
      rewrite times_inv by by apply power_sum_nonzero.
      by rewrite (plus_comm y x), (plus_comm (plus x y) x), plus_cancel.
  Qed.

  (** and gives one while no more is lost than it has parity for. *)
  Lemma solve_total s p q : lost s + lost [p; q] <= 2 \/ lost s + lost [p] <= 1 -> is_Some (solve s p q).
  Proof. unfold solve. rewrite <-(holes_lost 0 s).
    destruct (holes 0 s) as [|i [|j [|]]], p, q; simpl; eauto; lia. Qed.

  Lemma solve_length s p q d : solve s p q = Some d -> length d = length s.
  Proof. assert (length (known s) = length s) as L by apply fmap_length. unfold solve.
    destruct (holes 0 s) as [|i [|j [|]]], p, q; simpl; intros [= <-]; by rewrite ?insert_length. Qed.

  (** ** RAID-5 and RAID-6: the first [m] of P and Q *)

  Definition raid m k : code block := {|
    data_count := k;
    parity_count := m;
    blank := zeroes;
    parity := fun d => take m [syndrome one d; syndrome two d];
    decode := fun s => solve (take k s) (mjoin (s !! k)) (mjoin (s !! S k));
  |}.
  Definition raid5 : nat -> code block := raid 1.
  Definition raid6 : nat -> code block := raid 2.

  Lemma lost_app (s1 s2 : list (option block)) : lost (s1 ++ s2) = lost s1 + lost s2.
  Proof. induction s1 as [|[x|] s1 IH]; simpl; auto. Qed.

  Lemma raid_total m k s : 1 <= m <= 2 -> length s = k + m -> lost s <= m -> is_Some (decode (raid m k) s).
  Proof.
    intros M L T. rewrite <-(take_drop k s), lost_app in T. pose proof (drop_length s k) as D. simpl.
    replace (s !! k) with (drop k s !! 0) by (by rewrite lookup_drop, Nat.add_0_r).
    replace (s !! S k) with (drop k s !! 1) by (by rewrite lookup_drop, Nat.add_1_r).
    destruct (drop k s) as [|p [|q [|]]]; simpl in *; try lia; apply solve_total; destruct p; try destruct q;
      simpl in *; lia.
  Qed.

  Lemma raid_sound m d d' s : 1 <= m <= 2 -> (m = 2 -> length d <= 255) ->
    left_of s (stripe (raid m (length d)) d) ->
    decode (raid m (length d)) s = Some d' -> d' = d.
  Proof.
    intros M B (s1 & s2 & H1 & H2 & ->)%Forall2_app_inv_r. pose proof (Forall2_length _ _ _ H1) as L.
      simpl in *.
    rewrite take_app_alt, !lookup_app_r, L, Nat.sub_diag, Nat.sub_succ_l, Nat.sub_diag by lia.
    destruct m as [|[|[|]]]; try lia; inversion H2 as [|p ? ? ? Hp Hn]; subst;
      inversion Hn as [|q ? ? ? Hq Hn']; subst.
    - eapply solve_sound; [done|by right|done|by left].
    - inversion Hn'. eapply solve_sound; [done|left; auto|done|done].
  Qed.

  Theorem raid_good m k : 1 <= m <= 2 -> (m = 2 -> k <= 255) -> good (raid m k).
  Proof.
    intros M B. split; simpl.
    - intros. rewrite take_length. simpl. lia.
    - unfold blanks. simpl. rewrite !syndrome_zeroes. by destruct m as [|[|[|]]]; try lia.
    - intros d s <- H T. assert (length s = length d + m) as E.
      { rewrite (Forall2_length _ _ _ H). unfold stripe. rewrite app_length. simpl. rewrite take_length.
        simpl. lia. }
      destruct (raid_total m (length d) s M E T) as [d' Hd]. simpl in Hd. rewrite Hd. f_equal.
        by eapply raid_sound.
    - intros s. by apply raid_total.
    - intros s d L E%solve_length. unfold width in L. simpl in L. rewrite E, take_length. lia.
    - intros d d' s <-. by apply raid_sound.
  Qed.

  Theorem raid5_good k : good (raid5 k).
  Proof. apply raid_good; lia. Qed.
  Theorem raid6_good k : k <= 255 -> good (raid6 k).
  Proof. intros. by apply raid_good; [lia|]. Qed.
End blocks.

(** ** Spelled out *)

Section losing.
  Context {V : Type}.
  Implicit Types (c : code V) (d t : list V) (i : nat) (s : list (option V)).

  (** A stripe without the components in [gone]. *)
  Definition without (gone : list nat) t : list (option V) :=
    foldr (fun i s => <[i := None]> s) (Some <$> t) gone.

  Lemma left_of_insert s t i : left_of s t -> left_of (<[i := None]> s) t.
  Proof. intros H. revert i. induction H; intros [|i]; constructor; auto. apply IHForall2. Qed.

  Lemma lost_insert s i : lost (<[i := None]> s) <= S (lost s).
  Proof. revert i. induction s as [|[x|] s IH]; intros [|i]; simpl; try lia; try apply IH. specialize (IH i).
    lia. Qed.

  Lemma without_left gone t : left_of (without gone t) t.
  Proof. induction gone as [|i gone IH]; [|by apply left_of_insert].
    induction t as [|x t IH]; constructor; [by right|done]. Qed.

  Lemma without_lost gone t : lost (without gone t) <= length gone.
  Proof.
    induction gone as [|i gone IH]; simpl.
    - induction t as [|x t IH]; [done|apply IH].
    - pose proof (lost_insert (without gone t) i). lia.
  Qed.

  (** Any m components of a stripe, data or parity, can be computed from the others. *)
  Theorem reconstruct c gone d : good c -> length d = data_count c -> length gone <= parity_count c ->
    decode c (without gone (stripe c d)) = Some d.
  Proof. intros G L B. apply (good_complete c G); [done|apply without_left|].
    by transitivity (length gone); [apply without_lost|]. Qed.

  (** What a read of block i of a stripe returns when the components in [gone] cannot be read. *)
  Theorem degraded_read c gone d i : good c -> length d = data_count c -> length gone <= parity_count c ->
    decode c (without gone (stripe c d)) ≫= (.!! i) = d !! i.
  Proof. intros G L B. by rewrite reconstruct. Qed.
End losing.

Theorem raid5_any_one n k (d : list (vec byte n)) i : length d = k ->
  decode (raid5 k) (without [i] (stripe (raid5 k) d)) = Some d.
Proof. intros L. apply reconstruct; [apply raid5_good|done|done]. Qed.

(** Two data components, one and P, one and Q, or P and Q: i and j are any. *)
Theorem raid6_any_two n k (d : list (vec byte n)) i j : k <= 255 -> length d = k ->
  decode (raid6 k) (without [i; j] (stripe (raid6 k) d)) = Some d.
Proof. intros B L. apply reconstruct; [by apply raid6_good|done|done]. Qed.

(** ** Why each hypothesis is needed *)

Definition byte_block (b : byte) : vec byte 1 := [#b].

Example zero_is_no_power i : zero <> power two i.
Proof. intros E. by apply (power_nonzero two i). Qed.

(** Two data components of RAID-5 lost: what is left does not tell these stripes apart. *)
Example raid5_two_lost :
  let d := byte_block <$> [one; zero] in let e := byte_block <$> [zero; one] in
  d <> e /\ without [0; 1] (stripe (raid5 2) d) = without [0; 1] (stripe (raid5 2) e).
Proof. cbv zeta. apply (bool_decide_unpack _). by vm_compute. Qed.

(** Nor three of RAID-6. *)
Example raid6_three_lost :
  let d := byte_block <$> [one; zero; zero] in let e := byte_block <$> [zero; one; zero] in
  d <> e /\ without [0; 1; 4] (stripe (raid6 3) d) = without [0; 1; 4] (stripe (raid6 3) e).
Proof. cbv zeta. apply (bool_decide_unpack _). by vm_compute. Qed.

(** With 256 data components, losing the first and the last is too much, since 2^255 = 1. *)
Example raid6_256_data :
  let d := byte_block <$> (one :: replicate 255 zero) in
  let e := byte_block <$> (replicate 255 zero ++ [one]) in
  d <> e /\ without [0; 255] (stripe (raid6 256) d) = without [0; 255] (stripe (raid6 256) e).
Proof. cbv zeta. apply (bool_decide_unpack _). by vm_compute. Qed.
