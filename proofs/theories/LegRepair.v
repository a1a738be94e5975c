(** Read-repair: a block of which members cannot read their pieces is put together from the pieces of others,
and who was asked for a piece and could not read it has it again, as long as no more pieces are unreadable
than the code can do without. *)
From stdpp Require Import list relations.
From LogDisk Require Import Medium Devices Leg LegCorrect.

(** ** Programs on devices that answer, and cannot read the blocks that are [rotten] *)

Section Runs.
Context {C A : Type} {shreds : torn_pieces C}.
Implicit Types (rotten : nat → nat → bool) (x : array C).

(** What is written to a block can be read. *)
Definition healed rotten i a : nat → nat → bool :=
  λ j b, if decide (j = i ∧ b = a) then false else rotten j b.

Fixpoint goes (p : array_program C A) rotten x : array_program C A * (nat → nat → bool) * array C :=
  match p with
  | ReadFrom i a k =>
      goes (k (if rotten i a then Some None else Some (Some (read_block (store (device_at x i)) a)))) rotten x
  | WriteTo i a b k => goes (k true) (healed rotten i a) (written x i a b)
  | FlushOf i k => goes (k true) rotten (flushed x i)
  | SetMembers ms c k => goes k rotten (Array (device_at x) ms c)
  | AssumeThat φ k => if φ then goes k rotten x else (p, rotten, x)
  | Finish _ | Stop | PastEnd => (p, rotten, x)
  end.

(** So the machine may go. *)
Lemma goes_by_ios p rotten x : (∀ i, up (device_at x i) = true) →
  rtc (λ z z', array_io z.1 z.2 z'.1 z'.2) (p, x) ((goes p rotten x).1.1, (goes p rotten x).2).
Proof.
  revert rotten x. induction p as [r| | |i a k IH|i a b k IH|i k IH|ms c k IH|[] k IH]; simpl;
    intros rotten x Hx;
    try apply rtc_refl; (eapply rtc_l; [|apply IH]); simpl; try done.
  - destruct (rotten i a); [by apply unread_io|]. pose proof (read_io i a k x) as Hio.
    unfold answer_of_read in Hio. by rewrite Hx in Hio.
  - by apply write_io.
  - intros j. simpl. by destruct (decide (j = i)).
  - by apply flush_io.
  - intros j. simpl. by destruct (decide (j = i)).
  - apply record_io.
  - apply assume_io.
Qed.
End Runs.

Section Repair.
Context {B C : Type} `{cutting B C} {torn : tearing B}.
Variables (size count : nat).
Context {laws : cutting_laws count}.
Implicit Types (rotten : nat → nat → bool) (x : array C) (ms todo kept bad : list nat).

(** Who is asked for a piece of the block at [a], until [n] pieces are read. *)
Fixpoint asked rotten a (n : nat) todo : list nat :=
  match n, todo with
  | 0, _ | _, [] => []
  | S n', i :: rest => i :: asked rotten a (if rotten i a then n else n') rest
  end.

Definition readable rotten a : list nat → list nat := filter (λ i, rotten i a = false).
Definition unreadable rotten a : list nat → list nat := filter (λ i, rotten i a = true).

Lemma asked_sublist rotten a n todo : asked rotten a n todo `sublist_of` todo.
Proof.
  revert n. induction todo as [|i todo IH]; intros [|n]; simpl; try apply sublist_nil_l. constructor. apply
    IH.
Qed.

Lemma readable_sublist rotten a todo : readable rotten a todo `sublist_of` todo.
Proof.
  unfold readable. induction todo as [|i todo IH]; [constructor|]. rewrite filter_cons.
  destruct (decide _); by constructor.
Qed.

Lemma asked_readable rotten a n todo : n ≤ length (readable rotten a todo) →
  length (readable rotten a (asked rotten a n todo)) = n.
Proof.
  unfold readable. revert n. induction todo as [|i todo IH]; intros [|n]; simpl; try done; [lia|].
  rewrite !filter_cons. destruct (rotten i a) eqn:Hi; simpl; intros Hn; [by apply IH|]. f_equal. apply IH.
    lia.
Qed.

Lemma goes_gather {A} rotten x a b n kept todo got bad c (lost : list nat → array_program C A) k :
  (∀ i, i ∈ todo → read_block (store (device_at x i)) a = piece a i b) →
  n ≤ length (readable rotten a todo) →
  goes (gather n kept todo got bad c a lost k) rotten x =
    goes (k (kept ++ todo) (bad ++ unreadable rotten a (asked rotten a n todo))
      (joined a (got ++ ((λ i, (i, piece a i b)) <$> readable rotten a (asked rotten a n todo))))) rotten x.
Proof.
  unfold readable, unreadable. revert n kept got bad. induction todo as [|i rest IH]; intros [|n] kept got bad
    Hx Hn; simpl; try (by rewrite !app_nil_r); [simpl in Hn; lia|].
  rewrite filter_cons in Hn. rewrite !filter_cons. destruct (rotten i a) eqn:Hi; simpl in *.
  - rewrite IH by (try done; intros j Hj; apply Hx; by right). by rewrite <-!(assoc_L (++)).
  - rewrite IH by (try lia; intros j Hj; apply Hx; by right). rewrite Hx by by left. by rewrite <-!(assoc_L
    (++)).
Qed.

Lemma goes_repair {A} rotten x a b bad kept todo c (k : list nat → array_program C A) :
  NoDup todo → (∀ i, i ∈ todo → read_block (store (device_at x i)) a = piece a i b) →
  ∃ rotten' x', goes (repair bad kept todo c a b k) rotten x = goes (k (kept ++ todo)) rotten' x' ∧
    (∀ i, i ∈ todo → i ∈ bad → rotten' i a = false) ∧
    (∀ i a', rotten i a' = false → rotten' i a' = false) ∧
    (∀ i a', read_block (store (device_at x' i)) a' = read_block (store (device_at x i)) a').
Proof.
  revert rotten x kept. induction todo as [|i rest IH]; intros rotten x kept Hdup Hx.
  { exists rotten, x. rewrite app_nil_r. split_and!; [done|by intros i ?%elem_of_nil|done|done]. }
  apply NoDup_cons in Hdup as [Hi Hdup]. assert ((kept ++ [i]) ++ rest = kept ++ i :: rest) as Happ
    by by rewrite <-(assoc_L (++)).
  simpl. destruct (decide (i ∈ bad)) as [Hin|Hin].
  - set (x1 := written x i a (piece a i b)).
    assert (∀ j a', read_block (store (device_at x1 j)) a' = read_block (store (device_at x j)) a') as Hsame.
    { intros j a'. unfold x1, written. simpl. destruct (decide (j = i)) as [->|]; [|done].
      unfold read_block at 1. simpl. destruct (decide (a' = a)) as [->|];
        [|done]. symmetry. apply Hx. by left. }
    destruct (IH (healed rotten i a) x1 (kept ++ [i])) as (rotten'&x'&Hgoes&Hbad&Hgood&Hread); [done| |].
    { intros j Hj. rewrite Hsame. apply Hx. by right. }
    exists rotten', x'. rewrite Happ in Hgoes. split_and!; [done| | |].
    + intros j [->|Hj]%elem_of_cons Hj'; [|by apply Hbad]. apply Hgood. unfold healed. by rewrite decide_True.
    + intros j a' Hj. apply Hgood. unfold healed. by case_decide.
    + intros j a'. by rewrite Hread.
  - destruct (IH rotten x (kept ++ [i])) as (rotten'&x'&Hgoes&Hbad&Hgood&Hread); [done| |].
    { intros j Hj. apply Hx. by right. }
    exists rotten', x'. rewrite Happ in Hgoes. split_and!; [done| |done|done].
    intros j [->|Hj]%elem_of_cons Hj'; [done|by apply Hbad].
Qed.

(** A read of a block by a disk on the leg: it goes on with the block, and whoever was asked can read its
piece again. *)
Theorem read_repairs {A} rotten x a b ms c (k : B → program B A) :
  a < size → NoDup ms → (∀ i, i ∈ ms → i < count) →
  (∀ i, i ∈ ms → read_block (store (device_at x i)) a = piece a i b) →
  needed a ≤ length (readable rotten a ms) →
  ∃ rotten' x', goes (on_leg size ms c (ReadBlock a k)) rotten x = goes (on_leg size ms c (k b)) rotten' x' ∧
    (∀ i, i ∈ asked rotten a (needed a) ms → rotten' i a = false) ∧
    (∀ i a', rotten i a' = false → rotten' i a' = false) ∧
    (∀ i a', read_block (store (device_at x' i)) a' = read_block (store (device_at x i)) a').
Proof.
  intros Ha Hdup Hbound Hx Hn. simpl. rewrite decide_True by done. unfold read_from.
  rewrite (goes_gather rotten x a b) by done. simpl. set (who := asked rotten a (needed a) ms).
  assert (readable rotten a who `sublist_of` ms) as Hsub.
  { etrans; [apply readable_sublist|apply asked_sublist]. }
  rewrite (joined_pieces (count := count)); [| |intros i Hi; by eapply Hbound, sublist_in|by apply
    asked_readable].
  2: { by eapply sublist_distinct. }
  destruct (goes_repair rotten x a b (unreadable rotten a who) [] ms c (λ ms, on_leg size ms c (k b)))
    as (rotten'&x'&Hgoes&Hbad&Hgood&Hread); [done|done|].
  exists rotten', x'. split_and!; [done| |done|done]. intros i Hi.
  destruct (rotten i a) eqn:Hr; [|by apply Hgood]. apply Hbad.
  - eapply sublist_in; [apply asked_sublist|done].
  - by apply elem_of_list_filter.
Qed.
End Repair.
