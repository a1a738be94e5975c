(** A leg behaves as one device does whose blocks may tear, whatever fails and whenever the power
goes. Here: what the members hold of that device, and reading, writing and flushing it. *)
From stdpp Require Import list.
From LogDisk Require Import Medium Devices Leg.

(** What a leg asks of its code. *)
Class cutting_laws {B C} `{cutting B C} {torn : tearing B} (count : nat) := {
  needed_bounds a : 0 < needed a ≤ fewest;
  fewest_bound : fewest ≤ count;
  (** of a block of several pieces anything may be left *)
  tears_or_whole a : tears a ∨ needed a = 1;
  joined_pieces a b is : NoDup is → (∀ i, i ∈ is → i < count) → length is = needed a →
    joined a ((λ i, (i, piece a i b)) <$> is) = b;
}.

Section Correct.
Context {B C : Type} `{cutting B C} {torn : tearing B}.
Variables (size count : nat).
Context {laws : cutting_laws count}.
Implicit Types (x : array C) (m : medium C) (M : medium B) (f : contents B) (ms todo kept T : list nat).

(** ** What the members hold, as one device *)

(** [p] may be what device [i] has of the block at [a]. *)
Definition held M (i a : nat) (p : C) : Prop :=
  (tears a ∧ a ∈ (unflushed M).*1) ∨ ∃ b, may_be M a b ∧ p = piece a i b.

Definition within M i m : Prop := ∀ a p, a < size → may_hold m a p → held M i a p.
Definition reads_as (f : contents B) i m : Prop := ∀ a, a < size → read_block m a = piece a i (f a).
Definition holds_only (f : contents B) i m : Prop := within (Medium f []) i m.

(** Each of the devices that is up. *)
Definition each_up (L : list nat) (φ : nat → medium C → Prop) x : Prop :=
  ∀ i, i ∈ L → up (device_at x i) = true → φ i (store (device_at x i)).
(** Who is up is a member, or among [T]. *)
Definition members_but T x : Prop := ∀ i, i < count → up (device_at x i) = true → i ∈ members x ∨ i ∈ T.

(** Whatever the members are left with, the device [M] may be left with. *)
Record holds T M x : Prop := {
  holds_within i : i ∈ members x → within M i (store (device_at x i));
  holds_clean : clean x = true → unflushed M = [];
  holds_members : members_but T x;
  holds_distinct : NoDup (members x);
  holds_bound i : i ∈ members x → i < count;
  holds_down i : up (device_at x i) = false → unflushed (store (device_at x i)) = [];
}.

(** And who reads enough members reads [M]. *)
Definition striped T M x : Prop := holds T M x ∧ each_up (members x) (reads_as (read_block M)) x.

(** If the power fails, [R] is true of whatever is left. *)
Definition protects T (R : contents B → Prop) x : Prop := ∃ M, safe R M ∧ holds T M x.
(** And fewer members answer than are needed. *)
Definition up_members x : list nat := filter (λ i, up (device_at x i) = true) (members x).
Definition stopped T (R : contents B → Prop) x : Prop := protects T R x ∧ length (up_members x) < fewest.

Lemma sublist_in (i : nat) l l' : l `sublist_of` l' → i ∈ l → i ∈ l'.
Proof. intros Hs Hi. eapply elem_of_submseteq; [done|by apply sublist_submseteq]. Qed.

Lemma sublist_distinct (l l' : list nat) : l `sublist_of` l' → NoDup l' → NoDup l.
Proof.
  intros Hs. induction Hs as [|j l l' Hs IH|j l l' Hs IH]; [done|..]; rewrite ?NoDup_cons; intros [Hj Hdup];
    [|by apply IH].
  split; [|by apply IH]. intros Hin. by eapply Hj, sublist_in.
Qed.

Lemma read_may_be M a : may_be M a (read_block M a).
Proof. left. apply read_may_hold. Qed.

Lemma may_be_more M a b a' b' : may_be M a' b' → may_be (write_block M a b) a' b'.
Proof.
  intros [[->|]|[[? ?]|(?&?&Hre)]]; [by left; left|left; right; by right|right; left; split;
    [done|by right]|].
  right. right. split_and!; [done..|]. intros Hall. apply Hre. intros b1 Hb. apply Hall. by right.
Qed.

Lemma held_may_be M i a b : may_be M a b → held M i a (piece a i b).
Proof. right. by exists b. Qed.

Lemma held_more M i a p a' b : held M i a p → held (write_block M a' b) i a p.
Proof.
  intros [[? ?]|(b'&Hb&->)]; [left; split; [done|by right]|]. apply held_may_be. by apply may_be_more.
Qed.

Lemma held_only f M i a p : (∀ a, a < size → may_be M a (f a)) → a < size →
  held (Medium f []) i a p → held M i a p.
Proof.
  intros Hf Ha [[_ ?%elem_of_nil]|(b&Hb%may_be_stable&->)]; [done|]. subst b. apply held_may_be. by apply Hf.
Qed.

(** What was not written is the same everywhere. *)
Lemma held_stable M i a p : a ∉ (unflushed M).*1 → held M i a p → p = piece a i (stable M a).
Proof. intros Hno [[_ ?]|(b&[->|?]%may_be_in&->)]; done. Qed.

(** A piece tears only where the block of [M] may tear. *)
Lemma within_torn M i m a p :
  within M i m → a < size → torn_piece i a p → rewritten m a → held M i a p.
Proof.
  intros Hm Ha Ht Hre. assert (∀ p', (a, p') ∈ unflushed m → held M i a p') as Hheld.
  { intros p' Hp. apply Hm; [done|by right]. }
  assert (held M i a (stable m a)) as Hstable by (apply Hm; [done|by left]).
  destruct Ht as [Ht|(Hno&b&Hb&->)].
  - destruct (decide (a ∈ (unflushed M).*1)) as [|Hnot]; [by left|]. destruct Hre. intros p' Hp'%Hheld.
    by rewrite (held_stable M i a p'), (held_stable M i a (stable m a)).
  - apply held_may_be. right. right. split_and!; [done..|]. intros Hall. apply Hre.
    assert (∀ p', held M i a p' → p' = piece a i (stable M a)) as Hsame.
    { intros p' [[? _]|(b'&[[->|Hin]|[[? _]|(_&_&Hr)]]&->)]; [done..|by rewrite (Hall b')|done|].
      by destruct Hr. }
    intros p' Hp'%Hheld. by rewrite (Hsame p'), (Hsame (stable m a)).
Qed.

Lemma within_survives M i m (c : contents C) : within M i m → may_keep i m c → within M i (Medium c []).
Proof.
  intros Hm Hf a p Ha [->|?%elem_of_nil]; [|done]. simpl.
  destruct (Hf a) as [|[? ?]]; [by apply Hm|by eapply within_torn].
Qed.

Lemma within_written M i m a b : may_be M a b → within M i m → within M i (write_block m a (piece a i b)).
Proof.
  intros Hb Hm a' p Ha [->|[[= -> ->]|?]%elem_of_cons]; [by apply Hm; [|left]|by apply held_may_be|].
  apply Hm; [done|by right].
Qed.

(** A write that was not answered. *)
Lemma within_maybe M i m a b (f : contents C) : may_be M a b → within M i m →
  may_keep i (Medium (stable m) [(a, piece a i b)]) f → within M i (Medium f []).
Proof.
  intros Hb Hm Hf. eapply within_survives; [|exact Hf]. apply (within_written M i (Medium (stable m) []));
    [done|].
  intros a' p Ha [->|?%elem_of_nil]; [|done]. apply Hm; [done|by left].
Qed.

Lemma reads_only f i m : reads_as f i m → holds_only f i (flush_blocks m).
Proof.
  intros Hm a p Ha [->|?%elem_of_nil]; [|done]. simpl. rewrite Hm by done. apply held_may_be. by left; left.
Qed.

Lemma only_reads f i m : holds_only f i m → reads_as f i m.
Proof.
  intros Hm a Ha. destruct (Hm a _ Ha (read_may_hold _ a)) as [[_ ?%elem_of_nil]|(b&Hb%may_be_stable&->)];
    [done|by subst].
Qed.

Lemma each_up_fails L φ x x1 : fails x x1 → each_up L φ x → each_up L φ x1.
Proof. intros (_&_&Hd) HL i Hi. destruct (Hd i) as [->|(c&_&->)]; [by apply HL|done]. Qed.

Lemma each_up_sub L L' φ x : (∀ i, i ∈ L' → i ∈ L) → each_up L φ x → each_up L' φ x.
Proof. intros Hsub HL i Hi. by apply HL, Hsub. Qed.

Lemma holds_fails T M x x1 : fails x x1 → holds T M x → holds T M x1.
Proof.
  intros (Hm&Hc&Hd) [Hwithin Hclean HT Hdup Hbound Hdown]. split; rewrite ?Hm, ?Hc; try done.
  - intros i Hi. destruct (Hd i) as [->|(f&Hf&->)]; [by apply Hwithin|].
    simpl. eapply within_survives; [by apply Hwithin|done].
  - intros i Hi. rewrite Hm. destruct (Hd i) as [->|(f&Hf&->)]; [by apply HT|done].
  - intros i. destruct (Hd i) as [->|(f&Hf&->)]; [apply Hdown|done].
Qed.

Lemma holds_power T M x x1 : loses_power x x1 → holds T M x → holds T M x1.
Proof.
  intros (Hm&Hc&Hd) [Hwithin Hclean HT Hdup Hbound Hdown]. split; rewrite ?Hm, ?Hc; try done.
  - intros i Hi. destruct (Hd i) as (f&Hf&->). simpl. eapply within_survives; [by apply Hwithin|done].
  - intros i Hi. rewrite Hm. destruct (Hd i) as (f&Hf&->). simpl. by apply HT.
  - intros i. by destruct (Hd i) as (f&Hf&->).
Qed.

Lemma holds_more T T' M x : (∀ i, i < count → i ∈ T → i ∈ T') → holds T M x → holds T' M x.
Proof. intros HT [? ? Hmem ? ? ?]. split; try done. intros i Hi Hup. destruct (Hmem i Hi Hup); auto. Qed.

(** Any write that [M] may be left with keeps it. *)
Lemma holds_mono T M M' x :
  (∀ i a p, held M i a p → held M' i a p) → clean x = false → holds T M x → holds T M' x.
Proof.
  intros HM Hc [Hwithin Hclean Hmem Hdup Hbound Hdown]. split; try done; [|by rewrite Hc].
  intros i Hi a p Ha Hp. by apply HM, (Hwithin i).
Qed.

(** A member that does not answer is dropped. *)
Lemma holds_drop T M x kept i rest c :
  members x = kept ++ i :: rest → up (device_at x i) = false → clean x = c →
  holds T M x → holds T M (Array (device_at x) (kept ++ rest) c).
Proof.
  intros Hm Hup <- [Hwithin Hclean Hmem Hdup Hbound Hdown]. rewrite Hm in Hdup, Hwithin, Hbound.
  pose proof (distinct_middle _ _ _ Hdup) as (Hi&Hi'&Hdup').
  assert (∀ j, j ∈ kept ++ rest → j ∈ kept ++ i :: rest) as Hsub.
  { intros j. rewrite !elem_of_app, elem_of_cons. tauto. }
  split; simpl; auto.
  intros j Hj Hj'. destruct (Hmem j Hj Hj') as [Hin|]; [|by right]. simpl in Hj'. left. simpl.
  rewrite Hm, elem_of_app, elem_of_cons in Hin. rewrite elem_of_app.
  destruct Hin as [?|[->|?]]; [by left|congruence|by right].
Qed.

(** ** The block that pieces give *)

Lemma joined_got M a (got : list (nat * C)) b :
  Forall (λ e, e.2 = piece a e.1 b) got → NoDup got.*1 → (∀ i, i ∈ got.*1 → i < count) →
  length got = needed a → joined a got = b.
Proof.
  intros Hgot Hdup Hbound Hlen. trans (joined a ((λ i, (i, piece a i b)) <$> got.*1)).
  - f_equal. clear -Hgot. induction Hgot as [|[i p] got Hp _ IH]; [done|].
    simpl in *. subst p. f_equal. exact IH.
  - apply (joined_pieces (count := count)); [done|done|by rewrite fmap_length].
Qed.

Lemma joined_may_be M a (got : list (nat * C)) :
  Forall (λ e, held M e.1 a e.2) got → NoDup got.*1 → (∀ i, i ∈ got.*1 → i < count) →
  length got = needed a → may_be M a (joined a got).
Proof.
  intros Hgot Hdup Hbound Hlen. destruct (decide (a ∈ (unflushed M).*1)) as [Hin|Hnot].
  - destruct (tears_or_whole (count := count) a) as [Ht|Hone]; [by right; left|]. rewrite Hone in Hlen.
    destruct got as [|[i p] [|]]; try done.
    apply Forall_singleton in Hgot as [[Ht _]|(b&Hb&Hp)]; [by right; left|].
    simpl in Hp. subst p. by rewrite (joined_got M a _ b) by
      first [done|by apply Forall_singleton|by rewrite Hone].
  - assert (Forall (λ e, e.2 = piece a e.1 (stable M a)) got) as Hall.
    { eapply Forall_impl; [exact Hgot|]. intros [i p]. by apply held_stable. }
    rewrite (joined_got M a _ _ Hall) by done. by left; left.
Qed.

(** ** Reading, writing and flushing the leg *)

Section Ios.
Context {A : Type} (T : list nat) (P : array C → Prop) (Q : A → array C → Prop) (S : array C → Prop).
Variable M : medium B.
Hypothesis HP : ∀ x, holds T M x → P x.
Hypothesis HS : ∀ x, holds T M x → length (up_members x) < fewest → S x.

Lemma each_up_lasting L φ : lasting (each_up L φ).
Proof. split; [intros; by eapply each_up_fails|done]. Qed.

Lemma safe_stop x : holds T M x → length (members x) < fewest → array_safe P Q S Stop x.
Proof.
  intros Hx Hfew x1 H1. assert (holds T M x1) as Hx1 by by eapply holds_fails. split; [by apply HP|].
  apply HS; [done|]. destruct H1 as (Hm&_). eapply Nat.le_lt_trans; [|exact Hfew]. rewrite <-Hm.
  apply filter_length.
Qed.

Lemma safe_without (E : array C → Prop) kept i rest c x k :
  lasting E → holds T M x → E x → members x = kept ++ i :: rest → clean x = c → up (device_at x i) = false →
  (∀ x, holds T M x → E x → members x = kept ++ rest → clean x = c → array_safe P Q S k x) →
  array_safe P Q S (without (kept ++ rest) c k) x.
Proof.
  intros [HE HE'] Hx Ex Hms Hc Hup Hk. unfold without.
  assert (∀ x1, fails x x1 → holds T M x1 ∧ members x1 = kept ++ i :: rest ∧ clean x1 = c ∧
    up (device_at x1 i) = false) as Hfails.
  { intros x1 H1. split; [by eapply holds_fails|]. destruct H1 as (->&->&Hd). split_and!; [done|done|].
    by destruct (Hd i) as [->|(f&_&->)]. }
  destruct (decide _) as [|Hfew]; intros x1 H1; destruct (Hfails x1 H1) as (Hx1&Hm1&Hc1&Hup1);
    (split; [by apply HP|]).
  - apply Hk; [by eapply holds_drop|apply HE'; by eapply HE|done|done].
  - apply HS; [done|]. unfold up_members. rewrite Hm1, filter_app, filter_cons_False by by rewrite Hup1.
    rewrite <-filter_app. pose proof (filter_length (λ i, up (device_at x1 i) = true) (kept ++ rest)). lia.
Qed.

(** [G] is true of each piece that is read. *)
Lemma safe_gather (E : array C → Prop) (G : nat → C → Prop) n kept todo got bad c a x lost k :
  lasting E → holds T M x → E x → members x = kept ++ todo → clean x = c →
  got.*1 `sublist_of` kept → n + length got = needed a → Forall (λ e, G e.1 e.2) got →
  (∀ x i, holds T M x → E x → i ∈ members x → i ∈ todo → up (device_at x i) = true →
     G i (read_block (store (device_at x i)) a)) →
  (∀ x ms bad got, holds T M x → E x → members x = ms → ms `sublist_of` kept ++ todo → clean x = c →
     Forall (λ e, G e.1 e.2) got → NoDup got.*1 → (∀ i, i ∈ got.*1 → i < count) → length got = needed a →
     array_safe P Q S (k ms bad (joined a got)) x) →
  array_safe P Q S (gather n kept todo got bad c a lost k) x.
Proof.
  intros HE. assert (∀ x ms (got : list (nat * C)), holds T M x → members x = ms → got.*1 `sublist_of` ms →
    NoDup got.*1 ∧ ∀ i, i ∈ got.*1 → i < count) as Hproper.
  { intros y ms got' Hy <- Hsub. split; [eapply sublist_distinct; [done|by eapply holds_distinct]|].
    intros i Hi. eapply holds_bound; [done|]. by eapply sublist_in. }
  revert n kept got bad x. induction todo as [|i rest IH]; intros n kept got bad x Hx Ex Hms Hc Hgot
    Hn HG Hread Hk.
  { destruct n as [|n]; simpl.
    - rewrite app_nil_r in *. destruct (Hproper x kept got) as [? ?]; [done..|]. by apply Hk.
    - destruct (decide _); [apply safe_stop; [done|by rewrite Hms, app_nil_r]|].
      intros x1 H1. split; [by apply HP; eapply holds_fails|done]. }
  destruct n as [|n]; simpl.
  - destruct (Hproper x (kept ++ i :: rest) got) as [? ?]; [done|done|by apply sublist_inserts_r|].
    by apply Hk.
  - intros x1 H1. assert (holds T M x1) as Hx1 by by eapply holds_fails. split; [by apply HP|].
    assert (E x1) as Ex1 by by eapply HE. destruct H1 as (Hm1&Hc1&_). rewrite Hms in Hm1. rewrite Hc in Hc1.
    unfold answer_of_read. destruct (up (device_at x1 i)) eqn:Hup; split; try done.
    + apply IH; try done.
      * by rewrite <-(assoc_L (++)).
      * rewrite fmap_app. by apply sublist_app.
      * rewrite app_length. simpl. lia.
      * apply Forall_app. split; [done|]. apply Forall_singleton. simpl. apply Hread; try done; [|by left].
        rewrite Hm1. apply elem_of_app. right. by left.
      * intros y j Hy Ey Hj Hj'. apply Hread; try done. by right.
      * by rewrite <-(assoc_L (++)).
    + intros _. apply IH; try done.
      * by rewrite <-(assoc_L (++)).
      * by apply sublist_inserts_r.
      * intros y j Hy Ey Hj Hj'. apply Hread; try done. by right.
      * by rewrite <-(assoc_L (++)).
    + apply (safe_without E _ i); try done. intros x2 Hx2 Ex2 Hm2 Hc2. apply IH; try done.
      * intros y j Hy Ey Hj Hj'. apply Hread; try done. by right.
      * intros y ms bad' got' Hy Ey Hmy Hsub. apply Hk; try done. etrans; [done|].
        apply sublist_app; [done|by apply sublist_cons].
Qed.

Lemma safe_read_from (E : array C → Prop) (G : nat → C → Prop) ms c a x lost k :
  lasting E → holds T M x → E x → members x = ms → clean x = c →
  (∀ x i, holds T M x → E x → i ∈ members x → i ∈ ms → up (device_at x i) = true →
     G i (read_block (store (device_at x i)) a)) →
  (∀ x ms' bad got, holds T M x → E x → members x = ms' → ms' `sublist_of` ms → clean x = c →
     Forall (λ e, G e.1 e.2) got → NoDup got.*1 → (∀ i, i ∈ got.*1 → i < count) → length got = needed a →
     array_safe P Q S (k ms' bad (joined a got)) x) →
  array_safe P Q S (read_from ms c a lost k) x.
Proof.
  intros HE Hx Ex Hms Hc HG Hk. apply (safe_gather E G); try done; simpl; by rewrite ?Nat.add_0_r.
Qed.

Lemma holds_written i a b x x' :
  may_be M a b → (x' = written x i a (piece a i b) ∧ up (device_at x i) = true ∨
    up (device_at x i) = false ∧ maybe_written x i a (piece a i b) x') →
  holds T M x → holds T M x' ∧ members x' = members x ∧ clean x' = clean x ∧
    (∀ j, up (device_at x' j) = up (device_at x j)).
Proof.
  intros Hab Hx' Hx.
  assert (x' = x ∨ ∃ d, x' = put_device x i d ∧ up d = up (device_at x i) ∧
    (within M i (store (device_at x i)) → within M i (store d)) ∧
    (up d = false → unflushed (store d) = [])) as [->|(d&->&Hup&Hd&Hdown)]; [|done|].
  { destruct Hx' as [[-> Hup]|[Hup [->|(f&Hf&->)]]]; [|by left|]; right; eexists; (split; [done|]); simpl.
    - split_and!; [done| |done]. by apply within_written.
    - split_and!; [done| |done]. intros Hm. by eapply within_maybe. }
  destruct Hx as [Hwithin Hclean Hmem Hdup Hbound Hdown']. split_and!; [|done|done|].
  - split; simpl; try done.
    + intros j Hj. destruct (decide (j = i)) as [->|]; [|by apply Hwithin]. by apply Hd, Hwithin.
    + intros j Hj. simpl. destruct (decide (j = i)) as [->|]; [rewrite Hup|]; by apply Hmem.
    + intros j. destruct (decide (j = i)) as [->|]; [done|apply Hdown'].
  - intros j. simpl. by destruct (decide (j = i)) as [->|].
Qed.

(** [φ] of the members still to be written, [φ'] of those that are. *)
Lemma safe_write_to (φ φ' : nat → medium C → Prop) kept todo a b x k :
  may_be M a b → (∀ i m, φ i m → φ' i (write_block m a (piece a i b))) →
  holds T M x → each_up kept φ' x → each_up todo φ x → members x = kept ++ todo → clean x = false →
  (∀ x ms, holds T M x → each_up ms φ' x → members x = ms → clean x = false →
     array_safe P Q S (k ms) x) →
  array_safe P Q S (write_to kept todo a b k) x.
Proof.
  intros Hab Hφ Hx Hkept Htodo Hms Hc Hk. revert kept x Hx Hkept Htodo Hms Hc.
  induction todo as [|i rest IH]; simpl; intros kept x Hx Hkept Htodo Hms Hc.
  { apply Hk; rewrite ?app_nil_r in *; done. }
  intros x1 H1. assert (holds T M x1) as Hx1 by by eapply holds_fails. split; [by apply HP|].
  apply (each_up_fails _ _ _ _ H1) in Hkept, Htodo. destruct H1 as (Hm&Hc1&_). rewrite Hms in Hm.
  rewrite Hc in Hc1. pose proof (holds_distinct _ _ _ Hx1) as Hdup. rewrite Hm in Hdup.
  apply distinct_middle in Hdup as (Hi&Hi'&Hdup).
  destruct (up (device_at x1 i)) eqn:Hup.
  - destruct (holds_written i a b x1 (written x1 i a (piece a i b))) as (Hx2&Hm2&Hc2&_);
      [done|by left|done|].
    apply IH; try done.
    + intros j. rewrite elem_of_app, elem_of_list_singleton. unfold written. simpl.
      destruct (decide (j = i)) as [->|]; simpl; [|by intros [?|?]; [apply Hkept|]].
      intros _ _. apply Hφ, Htodo; [by left|done].
    + intros j Hj. simpl. rewrite decide_False by (by intros ->). apply Htodo. by right.
    + rewrite Hm2, Hm. by rewrite <-(assoc_L (++)).
  - intros x2 Hx2'. destruct (holds_written i a b x1 x2) as (Hx2&Hm2&Hc2&Hups); [done|by right|done|].
    rewrite Hm in Hm2. assert (∀ j, j ≠ i → device_at x2 j = device_at x1 j) as Hsame.
    { intros j Hj. destruct Hx2' as [->|(?&_&->)]; [done|]. simpl. by rewrite decide_False. }
    apply (safe_without (λ x, each_up kept φ' x ∧ each_up rest φ x) _ i); try done.
    + apply lasting_and; apply each_up_lasting.
    + split; intros j Hj; rewrite (Hsame j) by (by intros ->); [by apply Hkept|apply Htodo; by right].
    + by rewrite Hc2.
    + by rewrite Hups.
    + intros x3 Hx3 [Hkept3 Hrest3] Hm3 Hc3. by apply IH.
Qed.

(** The same for those that could not read: they get what they have. *)
Lemma safe_repair (φ : nat → medium C → Prop) bad kept todo c a b x k :
  may_be M a b → (∀ i m, φ i m → φ i (write_block m a (piece a i b))) →
  holds T M x → each_up (kept ++ todo) φ x → members x = kept ++ todo → clean x = c →
  (∀ x ms, holds T M x → each_up ms φ x → members x = ms → ms `sublist_of` kept ++ todo → clean x = c →
     array_safe P Q S (k ms) x) →
  array_safe P Q S (repair bad kept todo c a b k) x.
Proof.
  intros Hab Hφ. revert kept x. induction todo as [|i rest IH]; simpl; intros kept x Hx Hall Hms Hc Hk.
  { rewrite app_nil_r in *. by apply Hk. }
  assert ((kept ++ [i]) ++ rest = kept ++ i :: rest) as Happ by by rewrite <-(assoc_L (++)).
  destruct (decide (i ∈ bad)); [|by apply IH; rewrite ?Happ].
  intros x1 H1. assert (holds T M x1) as Hx1 by by eapply holds_fails. split; [by apply HP|].
  apply (each_up_fails _ _ _ _ H1) in Hall. destruct H1 as (Hm&Hc1&_). rewrite Hms in Hm. rewrite Hc in Hc1.
  destruct (up (device_at x1 i)) eqn:Hup.
  - destruct (holds_written i a b x1 (written x1 i a (piece a i b))) as (Hx2&Hm2&Hc2&_);
      [done|by left|done|].
    apply IH; rewrite ?Happ; try done. intros j Hj. unfold written. simpl.
    destruct (decide (j = i)) as [->|]; [|by apply Hall]. intros _. by apply Hφ, Hall.
  - intros x2 Hx2'. destruct (holds_written i a b x1 x2) as (Hx2&Hm2&Hc2&Hups); [done|by right|done|].
    assert (∀ j, j ≠ i → device_at x2 j = device_at x1 j) as Hsame.
    { intros j Hj. destruct Hx2' as [->|(?&_&->)]; [done|]. simpl. by rewrite decide_False. }
    assert (kept ++ rest `sublist_of` kept ++ i :: rest) as Hsub
      by (apply sublist_app; [done|by apply sublist_cons]).
    apply (safe_without (each_up (kept ++ rest) φ) _ i); try done.
    + apply each_up_lasting.
    + intros j Hj Hupj. assert (j ≠ i) as Hne by (intros ->; congruence). rewrite (Hsame j Hne) in *.
      apply Hall; [by eapply sublist_in|done].
    + by rewrite Hm2.
    + by rewrite Hc2.
    + by rewrite Hups.
    + intros x3 Hx3 Hall3 Hm3 Hc3. apply IH; try done. intros y ms Hy Ey Hmy Hs. apply Hk;
      try done. by etrans.
Qed.

(** What the members read as is flushed. *)
Lemma safe_flush_of f c kept todo x k :
  (∀ a, a < size → may_be M a (f a)) →
  holds T M x → each_up (kept ++ todo) (reads_as f) x →
  (∀ i, i ∈ kept → holds_only f i (store (device_at x i))) → members x = kept ++ todo → clean x = c →
  (∀ x ms, holds T (Medium f []) x → each_up ms (reads_as f) x → members x = ms → clean x = c →
     array_safe P Q S (k ms) x) →
  array_safe P Q S (flush_of kept todo c k) x.
Proof.
  intros Hf Hx Hall Hkept Hms Hc Hk. revert kept x Hx Hall Hkept Hms Hc.
  induction todo as [|i rest IH]; simpl; intros kept x Hx Hall Hkept Hms Hc.
  { rewrite app_nil_r in *. apply Hk; try done. destruct Hx as [_ Hclean Hmem Hdup Hbound Hdown].
    split; try done. by rewrite Hms. }
  intros x1 H1. assert (holds T M x1) as Hx1 by by eapply holds_fails. split; [by apply HP|].
  assert (lasting (λ x, ∀ i, i ∈ kept → holds_only f i (store (device_at x i)))) as Hlast.
  { split; [|done]. intros y y1 (_&_&Hd) Hy j Hj. destruct (Hd j) as [->|(f'&Hf'&->)]; [by apply Hy|]. simpl.
    eapply within_survives; [by apply Hy|done]. }
  apply (each_up_fails _ _ _ _ H1) in Hall. pose proof (proj1 Hlast _ _ H1 Hkept) as Hkept1. clear Hkept.
  rename Hkept1 into Hkept. destruct H1 as (Hm&Hc1&_). rewrite Hms in Hm. rewrite Hc in Hc1.
  pose proof (holds_distinct _ _ _ Hx1) as Hdup. rewrite Hm in Hdup.
  apply distinct_middle in Hdup as (Hi&Hi'&Hdup).
  destruct (up (device_at x1 i)) eqn:Hup.
  - assert (reads_as f i (store (device_at x1 i))) as Hreads.
    { apply Hall; [|done]. rewrite elem_of_app, elem_of_cons. auto. }
    pose proof (reads_only _ _ _ Hreads) as Honly.
    apply IH.
    + destruct Hx1 as [Hwithin Hclean Hmem Hdup1 Hbound Hdown]. split; simpl; try done.
      * intros j Hj. destruct (decide (j = i)) as [->|]; [|by apply Hwithin]. intros a p Ha Hp.
        apply (held_only f); [done|done|by apply Honly].
      * intros j Hj. simpl. destruct (decide (j = i)) as [->|]; [|by apply Hmem]. intros _. by apply Hmem.
      * intros j. destruct (decide (j = i)) as [->|]; [done|apply Hdown].
    + rewrite <-(assoc_L (++)). intros j Hj. simpl. destruct (decide (j = i)) as [->|]; [|by apply Hall].
      intros _ a Ha. simpl. by apply Hreads.
    + intros j. rewrite elem_of_app, elem_of_list_singleton. simpl.
      destruct (decide (j = i)) as [->|]; [done|]. intros [?|?]; [by apply Hkept|done].
    + simpl. by rewrite Hm, <-(assoc_L (++)).
    + done.
  - apply (safe_without (λ x, each_up (kept ++ i :: rest) (reads_as f) x ∧
      ∀ i, i ∈ kept → holds_only f i (store (device_at x i))) _ i); try done.
    + exact (lasting_and _ _ (each_up_lasting _ _) Hlast).
    + intros x3 Hx3 [Hall3 Hkept3] Hm3 Hc3. apply IH; try done.
      eapply each_up_sub; [|done]. intros j. rewrite !elem_of_app, elem_of_cons. naive_solver.
Qed.
End Ios.
End Correct.
