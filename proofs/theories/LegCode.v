(** Legs over the codes of [RedundancyCode.v] and [Parity.v]: blocks of which anything may be left are cut
into data components, and parity is added; every device has each other block whole. *)
From stdpp Require Import list.
From LogDisk Require Import Medium RedundancyCode Parity Leg LegCorrect.

Section Code.
Context {B V : Type} {torn : tearing B} {decided : ∀ a, Decision (tears a)}.
Variables (c : code V) (cut : B → list V) (glue : list V → B).
Implicit Types got : list (nat * (B + V)).

Fixpoint component got (i : nat) : option V :=
  match got with
  | [] => None
  | (j, p) :: got =>
      if decide (j = i) then match p with inr v => Some v | inl _ => None end else component got i
  end.

Definition of_code : cutting B (B + V) := {|
  piece a i b :=
    if decide (tears a) then match stripe c (cut b) !! i with Some v => inr v | None => inl b end else inl b;
  needed a := if decide (tears a) then data_count c else 1;
  joined a got :=
    if decide (tears a) then glue (default [] (decode c (component got <$> seq 0 (width c))))
    else match got with (_, inl b) :: _ => b | _ => glue [] end;
  fewest := data_count c;
|}.

Hypothesis Hgood : good c.
Hypothesis Hcut : ∀ b, length (cut b) = data_count c ∧ glue (cut b) = b.
Hypothesis Hsome : 1 ≤ data_count c.

Lemma component_pieces b is i a : tears a → i < width c →
  component ((λ i, (i, piece (cutting := of_code) a i b)) <$> is) i =
    if decide (i ∈ is) then stripe c (cut b) !! i else None.
Proof.
  intros Ha Hi. assert (is_Some (stripe c (cut b) !! i)) as [v Hv].
  { apply lookup_lt_is_Some. rewrite stripe_length; [done|done|apply Hcut]. }
  induction is as [|j is IH]; [done|]. cbn [fmap list_fmap component]. destruct (decide (j = i)) as [->|Hne].
  - rewrite decide_True by by left. simpl. rewrite decide_True by done. by rewrite Hv.
  - rewrite IH. apply decide_ext. rewrite elem_of_cons. naive_solver.
Qed.

Lemma lost_but (g : nat → option V) (is l : list nat) : (∀ i, i ∈ l → i ∈ is → is_Some (g i)) →
  lost (g <$> l) + length (filter (λ i, i ∈ is) l) ≤ length l.
Proof.
  induction l as [|i l IH]; intros Hg; [done|].
  assert (lost (g <$> l) + length (filter (λ i, i ∈ is) l) ≤ length l) as Hl.
  { apply IH. intros j Hj. apply Hg. by right. }
  rewrite filter_cons, fmap_cons. destruct (decide (i ∈ is)) as [Hi|].
  - destruct (Hg i (elem_of_list_here _ _) Hi) as [v ->]. cbn [lost length]. lia.
  - destruct (g i); cbn [lost length]; lia.
Qed.

Lemma of_code_laws : cutting_laws (H := of_code) (width c).
Proof.
  split; simpl.
  - intros a. destruct (decide _); lia.
  - unfold width. lia.
  - intros a. destruct (decide _); [by left|by right].
  - intros a b is Hdup Hbound. generalize (λ i, component_pieces b is i a). simpl.
    destruct (decide (tears a)) as [Ha|]; intros Hpieces Hlen.
    + destruct (Hcut b) as [Hb Hglue]. pose proof (stripe_length c (cut b) Hgood Hb) as Hwidth.
      set (s := component _ <$> _).
      assert (∀ i, i < width c →
        s !! i = Some (if decide (i ∈ is) then stripe c (cut b) !! i else None)) as Hs.
      { intros i Hi. unfold s. rewrite list_lookup_fmap, lookup_seq_lt by done. simpl. f_equal.
        by apply Hpieces. }
      assert (decode c s = Some (cut b)) as ->; [|by simpl].
      apply good_complete; [done|done| |].
      * apply Forall2_same_length_lookup. split; [unfold s; by rewrite fmap_length, seq_length|].
        intros i o v Ho Hv. rewrite Hs in Ho by (rewrite <-Hwidth; by eapply lookup_lt_Some).
        injection Ho as <-. rewrite Hv. destruct (decide (i ∈ is)); [by right|by left].
      * assert (lost s + length (filter (λ i, i ∈ is) (seq 0 (width c))) ≤ length (seq 0 (width c))) as Hlost.
        { apply lost_but. intros i Hi%elem_of_seq Hin. rewrite Hpieces by (done || lia).
          rewrite decide_True by done. apply lookup_lt_is_Some. lia. }
        assert (is ⊆+ filter (λ i, i ∈ is) (seq 0 (width c))) as Hsub%submseteq_length.
        { apply NoDup_submseteq; [done|]. intros i Hi. apply elem_of_list_filter. split; [done|].
          apply elem_of_seq. specialize (Hbound i Hi). lia. }
        rewrite seq_length in Hlost. unfold width in *. lia.
    + by destruct is as [|i [|]].
Qed.
End Code.

(** RAID-5 ([m] = 1) and RAID-6 ([m] = 2): blocks that are cut into [k] pieces of [n] bytes. *)
Section Raid.
Context {B : Type} {torn : tearing B} {decided : ∀ a, Decision (tears a)}.
Variables (n k m : nat) (cut : B → vec (vec byte n) k) (glue : vec (vec byte n) k → B).

Definition vector_of (l : list (vec byte n)) : vec (vec byte n) k :=
  fun_to_vec (λ i, default zeroes (l !! fin_to_nat i)).
Definition raid_leg : cutting B (B + vec byte n) :=
  of_code (raid m k) (vec_to_list ∘ cut) (glue ∘ vector_of).

Lemma raid_leg_laws :
  (∀ b, glue (cut b) = b) → 1 ≤ k → 1 ≤ m ≤ 2 → (m = 2 → k ≤ 255) → cutting_laws (H := raid_leg) (k + m).
Proof.
  intros Hglue Hk Hm Hb.
  apply (of_code_laws (raid m k) (vec_to_list ∘ cut) (glue ∘ vector_of)); [by apply raid_good| |done].
  intros b. split; [apply vec_to_list_length|]. simpl. rewrite <-(Hglue b) at 2. f_equal. apply vec_eq.
  intros i. unfold vector_of. rewrite lookup_fun_to_vec.
  by rewrite (proj1 (vlookup_lookup (cut b) i _) eq_refl).
Qed.
End Raid.

(** Mirrors: every device has each block whole. *)
Definition mirrors {B} (nothing : B) : cutting B B := {|
  piece _ _ b := b;
  needed _ := 1;
  joined _ got := match got with [] => nothing | e :: _ => e.2 end;
  fewest := 1;
|}.

Lemma mirrors_laws {B} (nothing : B) {torn : tearing B} count :
  0 < count → cutting_laws (H := mirrors nothing) count.
Proof. intros Hcount. split; simpl; [lia|lia|by right|]. by intros a b [|i [|]]. Qed.
