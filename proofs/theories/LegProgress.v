(** A program for one device ends on a leg as it does on one device, after a bounded number of I/Os, while
devices fail between any two of them and cannot read blocks, as long as enough members answer, and what is
assumed is true: that of no block more pieces are unreadable than the code can do without ([Leg.v]). *)
From stdpp Require Import list numbers list_numbers.
From LogDisk Require Import Medium Devices Leg LegCorrect LegRefine RequestProgress.

Section Progress.
Context {B C : Type} `{cutting B C} {torn : tearing B}.
Variables (size count : nat).
Context {laws : cutting_laws count}.
Implicit Types (x : array C) (m : medium C) (M : medium B) (f : contents B) (ms kept todo : list nat).
Local Notation reads_as := (reads_as size).

(** Devices that there are, each once. *)
Definition proper ms : Prop := NoDup ms ∧ ∀ i, i ∈ ms → i < count.

Lemma sublist_proper l l' : l `sublist_of` l' → proper l' → proper l.
Proof.
  intros Hs [Hdup Hbound]. split; [by eapply sublist_distinct|]. intros i Hi. by eapply Hbound, sublist_in.
Qed.

(** As many members answer as are needed. *)
Definition enough x : Prop := fewest ≤ length (up_members x).
Definition tolerable x x1 : Prop := fails x x1 ∧ enough x1.

(** It ends after at most [n] steps, and with [Q], as long as what it assumes is true. *)
Fixpoint array_ends {A} (n : nat) (Q : A → array C → Prop) (p : array_program C A) (x : array C)
    {struct p} : Prop :=
  ∀ x1, tolerable x x1 →
  match p, n with
  | Finish r, _ => Q r x1
  | ReadFrom i a k, S n => array_ends n Q (k (answer_of_read x1 i a)) x1 ∧
      (up (device_at x1 i) = true → array_ends n Q (k (Some None)) x1)
  | WriteTo i a b k, S n =>
      if up (device_at x1 i) then array_ends n Q (k true) (written x1 i a b)
      else ∀ x2, maybe_written x1 i a b x2 → array_ends n Q (k false) x2
  | FlushOf i k, S n =>
      if up (device_at x1 i) then array_ends n Q (k true) (flushed x1 i) else array_ends n Q (k false) x1
  | SetMembers ms c k, S n => array_ends n Q k (Array (device_at x1) ms c)
  | AssumeThat φ k, S n => φ = true → array_ends n Q k x1
  | _, _ => False
  end.

Section Ends.
Context {A : Type} (Q : A → array C → Prop).
Implicit Types p : array_program C A.

Lemma array_ends_more n n' p x : n ≤ n' → array_ends n Q p x → array_ends n' Q p x.
Proof.
  revert n n' x. induction p as [r| | |i a k IH|i a b k IH|i k IH|ms c k IH|φ k IH]; 
    intros [|n] [|n'] x Hn Hp x1 H1;
    specialize (Hp x1 H1); simpl in Hp |- *; try done; try lia.
  - destruct Hp as [Hp Hp']. split; [|intros Hup; specialize (Hp' Hup)]; (eapply IH; [|eassumption]; lia).
  - destruct (up _); [eapply IH; [|exact Hp]; lia|]. intros x2 Hx2. eapply IH; [|by apply Hp]. lia.
  - destruct (up _); (eapply IH; [|exact Hp]; lia).
  - eapply IH; [|exact Hp]. lia.
  - intros Hφ. eapply IH; [|by apply Hp]. lia.
Qed.

(** Enough members are left without the one that did not answer. *)
Lemma ends_without n kept i rest c p x :
  up (device_at x i) = false → members x = kept ++ i :: rest →
  (∀ x1, tolerable x x1 → array_ends n Q p (Array (device_at x1) (kept ++ rest) c)) →
  array_ends (S n) Q (without (kept ++ rest) c p) x.
Proof.
  intros Hup Hms Hp. unfold without. destruct (decide _) as [|Hfew]; intros x1 H1; [by apply Hp|].
  destruct H1 as [(Hm&_&Hd) Henough]. unfold enough, up_members in Henough.
  rewrite Hm, Hms, filter_app, filter_cons_False, <-filter_app in Henough.
  - pose proof (filter_length (λ i, up (device_at x1 i) = true) (kept ++ rest)). lia.
  - destruct (Hd i) as [->|(f&_&->)]; [by rewrite Hup|done].
Qed.

(** [D] is what is known of the devices, as in [LegCorrect.v]; [G] is true of each piece that is read. *)
Lemma ends_gather n (D : array C → Prop) (G : nat → C → Prop) j kept todo got bad c a x lost k :
  lasting D → D x → members x = kept ++ todo → got.*1 `sublist_of` kept → j + length got = needed a →
  Forall (λ e, G e.1 e.2) got →
  (∀ x i, D x → i ∈ todo → up (device_at x i) = true → G i (read_block (store (device_at x i)) a)) →
  (∀ x ms bad got, D x → members x = ms → ms `sublist_of` kept ++ todo → Forall (λ e, G e.1 e.2) got →
     got.*1 `sublist_of` ms → length got = needed a → array_ends n Q (k ms bad (joined a got)) x) →
  array_ends (2 * length todo + S n) Q (gather j kept todo got bad c a lost k) x.
Proof.
  intros HD. revert j kept got bad x. induction todo as [|i rest IH]; intros j kept got bad x Dx Hms Hgot
    Hj HG Hread Hk.
  { destruct j as [|j]; cbn [gather length Nat.mul Nat.add].
    - apply array_ends_more with n; [lia|]. apply Hk; rewrite ?app_nil_r in *; done.
    - destruct (decide _); [|by intros x1 _]. intros x1 [(Hm&_) Henough].
      pose proof (filter_length (λ i, up (device_at x1 i) = true) (members x1)) as Hlen.
      unfold enough, up_members in Henough. rewrite Hm, Hms, app_nil_r in *. lia. }
  destruct j as [|j]; simpl gather.
  { apply array_ends_more with n; [lia|]. apply Hk; try done. by apply sublist_inserts_r. }
  replace (2 * length (i :: rest) + S n) with (S (S (2 * length rest + S n))) by (simpl; lia).
  intros x1 H1. pose proof H1 as [Hf _]. assert (D x1) as Dx1 by by eapply HD.
  pose proof Hf as (Hm&_&_). rewrite Hms in Hm. unfold answer_of_read.
  destruct (up (device_at x1 i)) eqn:Hup; split; try done.
  - apply array_ends_more with (2 * length rest + S n); [lia|].
    apply IH; try done; rewrite <-?(assoc_L (++)); try done.
    + rewrite fmap_app. by apply sublist_app.
    + rewrite app_length. simpl. lia.
    + apply Forall_app. split; [done|]. apply Forall_singleton. apply Hread; [done|by left|done].
    + intros y i' Dy Hi'. apply Hread; [done|by right].
  - intros _. apply array_ends_more with (2 * length rest + S n); [lia|].
    apply IH; try done; rewrite <-?(assoc_L (++)); try done.
    + by apply sublist_inserts_r.
    + intros y i' Dy Hi'. apply Hread; [done|by right].
  - apply (ends_without _ kept i); [done|done|]. intros x2 [Hf2 _].
    assert (kept ++ rest `sublist_of` kept ++ i :: rest) as Hsub
      by (apply sublist_app; [done|by apply sublist_cons]).
    apply IH; try done.
    + apply HD. by eapply HD.
    + intros y i' Dy Hi'. apply Hread; [done|by right].
    + intros y ms bad' got' Dy Hmy Hs. apply Hk; try done. by etrans.
Qed.

Lemma ends_read_from n (D : array C → Prop) (G : nat → C → Prop) ms c a x lost k :
  lasting D → D x → members x = ms → proper ms →
  (∀ x i, D x → i ∈ ms → up (device_at x i) = true → G i (read_block (store (device_at x i)) a)) →
  (∀ x ms' bad got, D x → members x = ms' → ms' `sublist_of` ms → Forall (λ e, G e.1 e.2) got →
     NoDup got.*1 → (∀ i, i ∈ got.*1 → i < count) → length got = needed a →
     array_ends n Q (k ms' bad (joined a got)) x) →
  array_ends (2 * length ms + S n) Q (read_from ms c a lost k) x.
Proof.
  intros HD Dx Hms Hproper HG Hk. apply (ends_gather n D G); rewrite ?Nat.add_0_r; try done.
  intros y ms' bad got Dy Hm Hs HGs Hgot Hlen.
  destruct (sublist_proper got.*1 ms) as [? ?]; [by etrans|done|]. by apply Hk.
Qed.

(** [φ] of the members still to be written, [φ'] of those that are; [D] of all. *)
Lemma ends_write_to n (D : array C → Prop) (φ φ' : nat → medium C → Prop) kept todo a b x k :
  lasting D →
  (∀ x i x', D x → i ∈ kept ++ todo →
     x' = written x i a (piece a i b) ∨ maybe_written x i a (piece a i b) x' → D x') →
  (∀ i m, φ i m → φ' i (write_block m a (piece a i b))) →
  D x → NoDup (kept ++ todo) → each_up kept φ' x → each_up todo φ x → members x = kept ++ todo →
  (∀ x ms, D x → each_up ms φ' x → members x = ms → ms `sublist_of` kept ++ todo → array_ends n Q (k ms) x) →
  array_ends (2 * length todo + n) Q (write_to kept todo a b k) x.
Proof.
  intros HD Hwrite Hφ. revert kept x Hwrite.
  induction todo as [|i rest IH]; intros kept x Hwrite Dx Hdup Hkept Htodo Hms Hk.
  { apply Hk; rewrite ?app_nil_r in *; done. }
  replace (2 * length (i :: rest) + n) with (S (S (2 * length rest + n))) by (simpl; lia).
  simpl write_to. intros x1 [H1 _]. apply (each_up_fails _ _ _ _ H1) in Hkept, Htodo.
  assert (D x1) as Dx1 by by eapply HD.
  destruct H1 as (Hm&_&_). rewrite Hms in Hm. pose proof (distinct_middle _ _ _ Hdup) as (Hi&Hi'&Hdup').
  destruct (up (device_at x1 i)) eqn:Hup.
  - apply array_ends_more with (2 * length rest + n); [lia|].
    apply IH; rewrite <-?(assoc_L (++)); simpl; try done.
    + eapply Hwrite; [done| |by left]. apply elem_of_app. right. by left.
    + intros j. rewrite elem_of_app, elem_of_list_singleton. unfold written. simpl.
      destruct (decide (j = i)) as [->|]; simpl; [|by intros [?|?]; [apply Hkept|]].
      intros _ _. apply Hφ, Htodo; [by left|done].
    + intros j Hj. simpl. rewrite decide_False by (by intros ->). apply Htodo. by right.
  - intros x2 Hx2. assert (D x2) as Dx2.
    { eapply Hwrite; [exact Dx1| |by right]. apply elem_of_app. right. by left. }
    assert (∀ j, j ≠ i → device_at x2 j = device_at x1 j) as Hsame.
    { intros j Hj. destruct Hx2 as [->|(?&_&->)]; [done|]. simpl. by rewrite decide_False. }
    assert (up (device_at x2 i) = false ∧ members x2 = members x1) as [Hup2 Hm2].
    { destruct Hx2 as [->|(?&_&->)]; [done|]. simpl. by rewrite decide_True. }
    apply (ends_without _ kept i); [done|by rewrite Hm2|]. intros x3 [H3 _].
    assert (kept ++ rest `sublist_of` kept ++ i :: rest) as Hsub
      by (apply sublist_app; [done|by apply sublist_cons]).
    apply IH; try done.
    * intros y j y' Dy Hj. apply Hwrite; [done|]. by eapply sublist_in.
    * apply HD. by eapply HD.
    * refine (each_up_fails kept φ' _ _ H3 _). intros j Hj. rewrite (Hsame j) by (by intros ->).
      by apply Hkept.
    * refine (each_up_fails rest φ _ _ H3 _). intros j Hj. rewrite (Hsame j) by (by intros ->).
      apply Htodo. by right.
    * intros y ms Dy Ey Hmy Hs. apply Hk; try done. by etrans.
Qed.

(** [φ] of all members: those in [bad] get what they have. *)
Lemma ends_repair n (φ : nat → medium C → Prop) bad kept todo c a b x k :
  (∀ i m, φ i m → φ i (write_block m a (piece a i b))) →
  each_up (kept ++ todo) φ x → members x = kept ++ todo →
  (∀ x ms, each_up ms φ x → members x = ms → ms `sublist_of` kept ++ todo → array_ends n Q (k ms) x) →
  array_ends (2 * length todo + n) Q (repair bad kept todo c a b k) x.
Proof.
  intros Hφ. revert kept x. induction todo as [|i rest IH]; intros kept x Hall Hms Hk.
  { rewrite app_nil_r in *. by apply Hk. }
  assert ((kept ++ [i]) ++ rest = kept ++ i :: rest) as Happ by by rewrite <-(assoc_L (++)).
  simpl repair. destruct (decide (i ∈ bad)).
  2: { apply array_ends_more with (2 * length rest + n); [simpl; lia|]. by apply IH; rewrite ?Happ. }
  replace (2 * length (i :: rest) + n) with (S (S (2 * length rest + n))) by (simpl; lia).
  intros x1 [H1 _]. apply (each_up_fails _ _ _ _ H1) in Hall. destruct H1 as (Hm&_&_). rewrite Hms in Hm.
  destruct (up (device_at x1 i)) eqn:Hup.
  - apply array_ends_more with (2 * length rest + n); [lia|]. apply IH; rewrite ?Happ; try done.
    intros j Hj. unfold written. simpl. destruct (decide (j = i)) as [->|]; [|by apply Hall].
    intros _. by apply Hφ, Hall.
  - intros x2 Hx2. assert (∀ j, j ≠ i → device_at x2 j = device_at x1 j) as Hsame.
    { intros j Hj. destruct Hx2 as [->|(?&_&->)]; [done|]. simpl. by rewrite decide_False. }
    assert (up (device_at x2 i) = false ∧ members x2 = members x1) as [Hup2 Hm2].
    { destruct Hx2 as [->|(?&_&->)]; [done|]. simpl. by rewrite decide_True. }
    apply (ends_without _ kept i); [done|by rewrite Hm2|]. intros x3 [H3 _].
    assert (kept ++ rest `sublist_of` kept ++ i :: rest) as Hsub
      by (apply sublist_app; [done|by apply sublist_cons]).
    apply IH; try done.
    + refine (each_up_fails (kept ++ rest) φ _ _ H3 _). intros j Hj Hupj.
      assert (j ≠ i) as Hne by (intros ->; congruence). rewrite (Hsame j Hne) in *.
      apply Hall; [by eapply sublist_in|done].
    + intros y ms Ey Hmy Hs. apply Hk; try done. by etrans.
Qed.

Lemma ends_flush_of n f kept todo c x k :
  NoDup (kept ++ todo) → each_up (kept ++ todo) (reads_as f) x → members x = kept ++ todo →
  (∀ x ms, each_up ms (reads_as f) x → members x = ms → ms `sublist_of` kept ++ todo →
     array_ends n Q (k ms) x) →
  array_ends (2 * length todo + n) Q (flush_of kept todo c k) x.
Proof.
  revert kept x. induction todo as [|i rest IH]; intros kept x Hdup Hall Hms Hk.
  { apply Hk; rewrite ?app_nil_r in *; done. }
  replace (2 * length (i :: rest) + n) with (S (S (2 * length rest + n))) by (simpl; lia).
  simpl flush_of. intros x1 [H1 _]. apply (each_up_fails _ _ _ _ H1) in Hall.
  destruct H1 as (Hm&_&_). rewrite Hms in Hm. pose proof (distinct_middle _ _ _ Hdup) as (Hi&Hi'&Hdup').
  destruct (up (device_at x1 i)) eqn:Hup.
  - apply array_ends_more with (2 * length rest + n); [lia|].
    apply IH; rewrite <-?(assoc_L (++)); simpl; try done.
    intros j Hj. simpl. destruct (decide (j = i)) as [->|]; [|by apply Hall].
    intros _ a Ha. simpl. by apply Hall.
  - apply (ends_without _ kept i); [done|done|]. intros x3 [H3 _].
    assert (kept ++ rest `sublist_of` kept ++ i :: rest) as Hsub
      by (apply sublist_app; [done|by apply sublist_cons]).
    apply IH; try done.
    * refine (each_up_fails _ _ _ _ H3 _). eapply each_up_sub; [|exact Hall]. intros j Hj.
      by eapply sublist_in.
    * intros y ms Ey Hmy Hs. apply Hk; try done. by etrans.
Qed.

(** ** Opening *)

Definition all_within M ms x : Prop := ∀ i, i ∈ ms → within size M i (store (device_at x i)).

Lemma all_within_lasting M ms : lasting (all_within M ms).
Proof.
  split; [|done]. intros x x1 (_&_&Hd) Hx i Hi. destruct (Hd i) as [->|(f&Hf&->)]; [by apply Hx|].
  simpl. eapply within_survives; [by apply Hx|done].
Qed.

Lemma all_within_written M ms x i a b x' :
  may_be M a b → all_within M ms x → x' = written x i a (piece a i b) ∨ maybe_written x i a (piece a i b) x' →
  all_within M ms x'.
Proof.
  intros Hb Hx Hx' j Hj. pose proof (Hx j Hj) as Hwithin.
  destruct Hx' as [->|[->|(f&Hf&->)]]; [|done|]; simpl; (destruct (decide (j = i)) as [->|]; [|done]).
  - by apply within_written.
  - by eapply within_maybe.
Qed.

Lemma ends_equalize w n M j f x ms k :
  may_leave M f → all_within M ms x → each_up ms (equal_from size j f) x → members x = ms →
  proper ms → length ms ≤ w → j ≤ size →
  (∀ f x ms', may_leave M f → each_up ms' (reads_as f) x → members x = ms' → ms' `sublist_of` ms →
     array_ends n Q (k ms') x) →
  array_ends (j * (4 * w + 1) + n) Q (equalize j ms k) x.
Proof.
  revert f x ms. induction j as [|j IH]; intros f x ms Hf Hx Hr Hms Hproper Hw Hj Hk.
  { apply (Hk f); try done. intros i Hi Hup a Ha. apply Hr; [done|done|lia]. }
  apply array_ends_more with (2 * length ms + S (2 * length ms + (j * (4 * w + 1) + n))).
  { simpl. lia. }
  apply (ends_read_from _ (λ x, all_within M ms x ∧ each_up ms (equal_from size (S j) f) x)
    (λ i, held M i j)); try done.
  - apply (lasting_and (all_within M ms) (each_up ms (equal_from size (S j) f)));
      [apply all_within_lasting|apply each_up_lasting].
  - intros y i [Hy _] Hi _. apply (Hy i Hi); [lia|apply read_may_hold].
  - intros y ms' bad got [Hy Ey] Hm Hsub Hgot Hdup Hbound Hlen. set (b := joined j got).
    assert (may_be M j b) as Hb by by apply (joined_may_be count).
    assert (∀ i, i ∈ ms' → i ∈ ms) as Hin by (intros i ?; by eapply sublist_in).
    pose proof (sublist_proper _ _ Hsub Hproper) as Hproper'. pose proof (sublist_length _ _ Hsub) as Hless.
    set (f' := λ a, if decide (a = j) then b else f a).
    assert (may_leave M f') as Hf'.
    { intros a. unfold f'. destruct (decide (a = j)) as [->|]; [done|apply Hf]. }
    apply array_ends_more with (2 * length ms' + (j * (4 * w + 1) + n)); [lia|].
    apply (ends_write_to _ (all_within M ms') (equal_from size (S j) f) (equal_from size j f')); try done.
    + apply all_within_lasting.
    + intros z i z' Hz _. by apply all_within_written.
    + intros i m Hm' a Ha. unfold f', read_block. simpl. destruct (decide (a = j)) as [->|]; [done|].
      apply Hm'. lia.
    + intros i Hi. by apply Hy, Hin.
    + apply Hproper'.
    + by intros i ?%elem_of_nil.
    + by eapply each_up_sub.
    + intros z ms2 Hz Ez Hm' Hs. pose proof (sublist_length _ _ Hs) as Hlen'. simpl in Hs, Hlen'.
      apply (IH f'); try done.
      * intros i Hi. apply Hz. by eapply sublist_in.
      * by eapply sublist_proper.
      * lia.
      * lia.
      * intros f2 z2 ms3 Hf2 Ez2 Hm2 Hs2. apply (Hk f2); try done. etrans; [done|]. by etrans.
Qed.

Definition opening_ios (w : nat) : nat := size * (4 * w + 1) + 2 * w.

Lemma ends_opened w n M x ms c k :
  all_within M ms x → (c = true → unflushed M = []) → members x = ms → proper ms → length ms ≤ w →
  (∀ f x ms' c, may_leave M f → each_up ms' (reads_as f) x → members x = ms' → ms' `sublist_of` ms →
     array_ends n Q (k ms' c) x) →
  array_ends (opening_ios w + n) Q (open_leg size ms c k) x.
Proof.
  intros Hx Hclean Hms Hproper Hw Hk. unfold open_leg, opening_ios. destruct c.
  - specialize (Hclean eq_refl). destruct M as [f u]. simpl in *. subst u.
    apply array_ends_more with n; [lia|]. apply (Hk f); try done; [intros a; by left; left|].
    intros i Hi Hup. by apply only_reads, Hx.
  - rewrite <-Nat.add_assoc. apply (ends_equalize w _ M size (stable M)); try done.
    + intros a. by left; left.
    + intros i _ _ a. lia.
    + intros f y ms' Hf Hy Hm Hs. pose proof (sublist_length _ _ Hs) as Hlen.
      apply array_ends_more with (2 * length ms' + n); [lia|]. apply (ends_flush_of _ f); try done.
      * by eapply sublist_proper.
      * intros z ms2 Hz Hm2 Hs2. apply (Hk f); try done. by etrans.
Qed.
End Ends.

(** ** Programs for one device *)

Definition ios_on (w n : nat) : nat := n * (4 * w + 1).

Lemma ends_on_leg {A} (Q : list nat * bool * A → array C → Prop) w n (p : program B A) M x ms c :
  runs_within size n p M → each_up ms (reads_as (read_block M)) x → members x = ms → proper ms →
  length ms ≤ w → (∀ x ms c, granted p M → members x = ms → Q (ms, c, (execute p M).1) x) →
  array_ends (ios_on w n) Q (on_leg size ms c p) x.
Proof.
  unfold ios_on. revert n M x ms c.
  induction p as [r|a k IH|a b k IH|k IH|φ k IH]; intros n M x ms c Hp Hx Hms Hproper Hw HQ; simpl in *.
  - intros x1 [(Hm&_) _]. apply HQ; [done|congruence].
  - destruct n as [|n]; [done|]. destruct Hp as [Ha Hp]. rewrite decide_True by done.
    apply array_ends_more with (2 * length ms + S (2 * length ms + n * (4 * w + 1))); [lia|].
    apply (ends_read_from _ _ (each_up ms (reads_as (read_block M))) (is_piece M a)); try done.
    + apply each_up_lasting.
    + intros y i Ey Hi Hup. by apply Ey.
    + intros y ms' bad got Ey Hm Hsub Hgot Hdup Hbound Hlen.
      rewrite (joined_got count M a got (read_block M a)) by done. pose proof (sublist_length _ _ Hsub).
      apply array_ends_more with (2 * length ms' + n * (4 * w + 1)); [lia|].
      apply (ends_repair Q _ (reads_as (read_block M))); try done.
      * intros i m Hi a' Ha'. unfold read_block. simpl. destruct (decide (a' = a)) as [->|]; [done|].
        by apply Hi.
      * eapply each_up_sub; [|exact Ey]. intros j Hj. by eapply sublist_in.
      * intros z ms2 Ez Hmz Hs2. pose proof (sublist_length _ _ Hs2) as Hless. simpl in Hs2, Hless.
        assert (ms2 `sublist_of` ms) as Hs3 by by etrans.
        eapply IH; try done; [by eapply sublist_proper|lia].
  - destruct n as [|n]; [done|]. destruct Hp as [Ha Hp]. rewrite decide_True by done.
    assert (∀ x, each_up ms (reads_as (read_block M)) x → members x = ms →
      array_ends (2 * length ms + n * (4 * w + 1)) Q (write_to [] ms a b (λ ms, on_leg size ms false k)) x)
      as Hwrite.
    { clear x Hx Hms. intros x Hx Hms.
      apply (ends_write_to _ _ (λ _, True) (reads_as (read_block M))
        (reads_as (read_block (write_block M a b)))); try done.
      - intros i m Hm a' Ha'. unfold read_block. simpl. destruct (decide (a' = a)) as [->|]; [done|].
        by apply Hm.
      - apply Hproper.
      - by intros i ?%elem_of_nil.
      - intros y ms' _ Ey Hm Hs. pose proof (sublist_length _ _ Hs). eapply IH; try done;
          [by eapply sublist_proper|simpl in *; lia]. }
    unfold unclean. destruct c.
    + apply array_ends_more with (S (2 * length ms + n * (4 * w + 1))); [lia|].
      intros x1 [H1 _]. apply Hwrite; [|done]. exact (each_up_fails _ _ _ _ H1 Hx).
    + eapply array_ends_more; [|by apply Hwrite]. lia.
  - destruct n as [|n]; [done|].
    apply array_ends_more with (2 * length ms + n * (4 * w + 1)); [lia|].
    apply (ends_flush_of _ _ (read_block M)); try done; [apply Hproper|].
    intros y ms' Ey Hm Hs. pose proof (sublist_length _ _ Hs). eapply IH; try done;
      [by eapply sublist_proper|simpl in *; lia].
  - destruct n as [|n]; [done|].
    apply (array_ends_more Q (S (n * (4 * w + 1))) _ (AssumeThat φ (on_leg size ms c k))); [lia|].
    intros x1 [H1 _] Hφ. apply (each_up_fails _ _ _ _ H1) in Hx. destruct H1 as (Hm&_&_).
    apply IH with M; [by apply Hp|done|congruence|done|done|]. intros. by apply HQ.
Qed.
End Progress.
