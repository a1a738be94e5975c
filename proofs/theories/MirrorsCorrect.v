(** Mirrors behave as one device does, whatever fails and whenever the power goes. Here: what the members hold
of that device, and reading, writing and flushing all of them. *)
From stdpp Require Import list.
From LogDisk Require Import Medium Mirrors.

Section Correct.
Context {B : Type} {torn : tearing}.
Implicit Types (x : array B) (d : device B) (m M : medium B) (ms todo kept T : list nat).

(** ** Whenever devices fail, [P] is true of the array; [Q] in the end; [S] where no member answers *)

Fixpoint array_safe {A} (P : array B → Prop) (Q : A → array B → Prop) (S : array B → Prop)
    (p : array_program B A) (x : array B) : Prop :=
  ∀ x1, fails x x1 → P x1 ∧
  match p with
  | Finish r => Q r x1
  | Stop => S x1
  | PastEnd => True
  | ReadFrom i a k => array_safe P Q S (k (answer_of_read x1 i a)) x1
  | WriteTo i a b k =>
      if up (device_at x1 i) then array_safe P Q S (k true) (written x1 i a b)
      else ∀ x2, maybe_written x1 i a b x2 → array_safe P Q S (k false) x2
  | FlushOf i k =>
      if up (device_at x1 i) then array_safe P Q S (k true) (flushed x1 i) else array_safe P Q S (k false) x1
  | SetMembers ms c k => array_safe P Q S k (Array (device_at x1) ms c)
  end.

Lemma survives_after f' m f : survives m f → survives (Medium f []) f' → survives m f'.
Proof. intros Hf Hf' a. rewrite (survives_stable f f') by done. apply Hf. Qed.

Lemma fails_refl x : fails x x.
Proof. split_and!; [done|done|by left]. Qed.

Lemma fails_trans x1 x2 x3 : fails x1 x2 → fails x2 x3 → fails x1 x3.
Proof.
  intros (Hm&Hc&Hd) (Hm'&Hc'&Hd'). split_and!; [congruence..|]. intros i.
  destruct (Hd' i) as [->|(f'&Hf'&->)]; [apply Hd|]. right. exists f'. split; [|done].
  destruct (Hd i) as [<-|(f&Hf&Heq)]; [done|]. rewrite Heq in Hf'. by eapply survives_after.
Qed.

Section Safe.
Context {A : Type} (P : array B → Prop) (Q : A → array B → Prop) (S : array B → Prop).

Lemma array_safe_fails (p : array_program B A) x x1 :
  array_safe P Q S p x → fails x x1 → array_safe P Q S p x1.
Proof. destruct p; simpl; intros Hp H1 x2 H2; apply Hp; by eapply fails_trans. Qed.

Lemma array_safe_now (p : array_program B A) x : array_safe P Q S p x → P x.
Proof. intros Hp. destruct p; apply (Hp x (fails_refl x)). Qed.

Lemma array_safe_io (p : array_program B A) x p' x' :
  array_safe P Q S p x → array_io p x p' x' → array_safe P Q S p' x'.
Proof.
  intros Hp Hio. destruct Hio as [i a k x|i a b k x Hup|i a b k x x' Hup Hx'|i k x Hup|i k x Hup|ms c k x];
    destruct (Hp x (fails_refl x)) as [_ Hk]; simpl in Hk; try rewrite Hup in Hk;
      first [exact Hk|by apply Hk].
Qed.

Lemma array_safe_complete (p : array_program B A) x r :
  array_safe P Q S p x → (complete p x).1 = Some r → Q r (complete p x).2.
Proof.
  revert x. induction p as [r'| | |i a k IH|i a b k IH|i k IH|ms c k IH]; simpl; intros x Hp Hr;
    destruct (Hp x (fails_refl x)) as [_ Hk]; try done.
  - by simplify_eq.
  - by apply IH.
  - destruct (up _); [by apply IH|]. apply IH; [|done]. apply Hk. by left.
  - destruct (up _); by apply IH.
  - by apply IH.
Qed.
End Safe.

Lemma array_safe_mono {A} (P P' : array B → Prop) (Q Q' : A → array B → Prop) (S S' : array B → Prop)
    (p : array_program B A) x :
  (∀ x, P x → P' x) → (∀ r x, Q r x → Q' r x) → (∀ x, S x → S' x) →
  array_safe P Q S p x → array_safe P' Q' S' p x.
Proof.
  intros HP HQ HS. revert x. induction p as [r'| | |i a k IH|i a b k IH|i k IH|ms c k IH]; simpl;
    intros x Hp x1 H1; destruct (Hp x1 H1) as [? Hk]; split; auto; by destruct (up _); auto.
Qed.

(** ** What the members hold, as one device *)

Variables (size count : nat).

Definition within M m : Prop := ∀ a b, a < size → may_hold m a b → may_hold M a b.
Definition reads_as (f : contents B) m : Prop := ∀ a, a < size → read_block m a = f a.
Definition holds_only (f : contents B) m : Prop := within (Medium f []) m.

(** Each of the devices that is up. *)
Definition each_up (L : list nat) (φ : medium B → Prop) x : Prop :=
  ∀ i, i ∈ L → up (device_at x i) = true → φ (store (device_at x i)).
(** Who is up is a member, or among [T]. *)
Definition members_but T x : Prop := ∀ i, i < count → up (device_at x i) = true → i ∈ members x ∨ i ∈ T.

(** Whatever the members are left with, the device [M] may be left with. *)
Record holds T M x : Prop := {
  holds_within i : i ∈ members x → within M (store (device_at x i));
  holds_clean : clean x = true → unflushed M = [];
  holds_members : members_but T x;
  holds_distinct : NoDup (members x);
  holds_down i : up (device_at x i) = false → unflushed (store (device_at x i)) = [];
}.

(** And who reads any member reads [M]. *)
Definition mirrors T M x : Prop := holds T M x ∧ each_up (members x) (reads_as (read_block M)) x.

Lemma may_hold_survives m f a b : survives m f → may_hold (Medium f []) a b → may_hold m a b.
Proof. intros Hf [->|Hin]; [|by apply elem_of_nil in Hin]. apply Hf. Qed.

Lemma within_survives M m f : within M m → survives m f → within M (Medium f []).
Proof. intros Hm Hf a b Ha Hb. apply Hm; [done|]. by eapply may_hold_survives. Qed.

Lemma each_up_fails L φ x x1 : fails x x1 → each_up L φ x → each_up L φ x1.
Proof.
  intros (_&_&Hd) HL i Hi. destruct (Hd i) as [->|(f&_&->)]; [by apply HL|done].
Qed.

Lemma each_up_sub L L' φ x : (∀ i, i ∈ L' → i ∈ L) → each_up L φ x → each_up L' φ x.
Proof. intros Hsub HL i Hi. by apply HL, Hsub. Qed.

Lemma holds_fails T M x x1 : fails x x1 → holds T M x → holds T M x1.
Proof.
  intros (Hm&Hc&Hd) [Hwithin Hclean HT Hdup Hdown]. split.
  - intros i. rewrite Hm. intros Hi. destruct (Hd i) as [->|(f&Hf&->)]; [by apply Hwithin|].
    simpl. eapply within_survives; [by apply Hwithin|done].
  - by rewrite Hc.
  - intros i Hi. rewrite Hm. destruct (Hd i) as [->|(f&Hf&->)]; [by apply HT|done].
  - by rewrite Hm.
  - intros i. destruct (Hd i) as [->|(f&Hf&->)]; [apply Hdown|done].
Qed.

Lemma holds_power T M x x1 : loses_power x x1 → holds T M x → holds T M x1.
Proof.
  intros (Hm&Hc&Hd) [Hwithin Hclean HT Hdup Hdown]. split.
  - intros i. rewrite Hm. intros Hi. destruct (Hd i) as (f&Hf&->). simpl.
    eapply within_survives; [by apply Hwithin|done].
  - by rewrite Hc.
  - intros i Hi. rewrite Hm. destruct (Hd i) as (f&Hf&->). simpl. by apply HT.
  - by rewrite Hm.
  - intros i. by destruct (Hd i) as (f&Hf&->).
Qed.

Lemma holds_more T T' M x : (∀ i, i < count → i ∈ T → i ∈ T') → holds T M x → holds T' M x.
Proof. intros HT [? ? Hmem ? ?]. split; try done. intros i Hi Hup. destruct (Hmem i Hi Hup); auto. Qed.

(** A member that does not answer is dropped. *)
Lemma holds_drop T M x i rest c :
  (∀ j, j ∈ members x ↔ j = i ∨ j ∈ rest) → NoDup rest → up (device_at x i) = false → clean x = c →
  holds T M x → holds T M (Array (device_at x) rest c).
Proof.
  intros Hrest Hdup Hup <- [Hwithin Hclean Hmem _ Hdown]. split; simpl.
  - intros j Hj. apply Hwithin, Hrest. by right.
  - done.
  - intros j Hj Hj'. destruct (Hmem j Hj Hj') as [Hin|]; [|by right]. apply Hrest in Hin as [->|]; [|by left].
    simpl in Hj'. congruence.
  - done.
  - done.
Qed.

(** No member answers, and there is at most one: what it holds is all there is. *)
Definition stopped T (R : contents B → Prop) x : Prop :=
  (∃ f, R f ∧ holds T (Medium f []) x) ∧ ∀ i, i ∈ members x → up (device_at x i) = false.

Lemma holds_stopped T M (R : contents B → Prop) x :
  safe R M → holds T M x → length (members x) ≤ 1 → (∀ i, i ∈ members x → up (device_at x i) = false) →
  stopped T R x.
Proof.
  intros HR [Hwithin Hclean Hmem Hdup Hdown] Hone Hup. split; [|done].
  destruct (members x) as [|i [|]] eqn:Hms; [| |simpl in *; lia].
  - exists (stable M). split; [apply HR, survives_leaves; intros a; by left|]. split;
      [by rewrite Hms; intros i ?%elem_of_nil|done|done|by rewrite Hms|done].
  - exists (λ a, if decide (a < size) then stable (store (device_at x i)) a else stable M a). split.
    + apply HR, survives_leaves. intros a. destruct (decide (a < size)) as [Ha|]; [|by left].
      apply (Hwithin i (elem_of_list_here _ _) a); [done|by left].
    + split; [|done|done|by rewrite Hms|done]. rewrite Hms.
      intros j ->%elem_of_list_singleton a b Ha [->|Hin].
      * left. simpl. by rewrite decide_True.
      * rewrite Hdown in Hin; [by apply elem_of_nil in Hin|]. apply Hup. by left.
Qed.

Lemma distinct_middle (kept : list nat) i rest :
  NoDup (kept ++ i :: rest) → i ∉ kept ∧ i ∉ rest ∧ NoDup (kept ++ rest).
Proof.
  rewrite !NoDup_app, NoDup_cons. intros (Hk&Hd&Hi&Hr). split_and!; try done.
  - intros Hin. by apply (Hd i Hin), elem_of_list_here.
  - intros j Hj Hj'. apply (Hd j Hj). by right.
Qed.

(** ** Reading, writing and flushing on all members *)

Section Ios.
Context {A : Type} (T : list nat) (P : array B → Prop) (Q : A → array B → Prop) (S : array B → Prop).

(** [E] is what else is known of the devices; it does not depend on the record. *)
Definition lasting (E : array B → Prop) : Prop :=
  (∀ x x1, fails x x1 → E x → E x1) ∧ (∀ x ms c, E x → E (Array (device_at x) ms c)).

Lemma each_up_lasting L φ : lasting (each_up L φ).
Proof. split; [intros; by eapply each_up_fails|done]. Qed.

Lemma lasting_and (E E' : array B → Prop) : lasting E → lasting E' → lasting (λ x, E x ∧ E' x).
Proof. intros [? ?] [? ?]. split; intros; naive_solver. Qed.

Lemma safe_without M (E : array B → Prop) i ms c x k :
  lasting E → (∀ x, holds T M x → P x) →
  (∀ x, holds T M x → length (members x) ≤ 1 → (∀ i, i ∈ members x → up (device_at x i) = false) → S x) →
  holds T M x → E x → clean x = c → (∀ j, j ∈ members x ↔ j = i ∨ j ∈ ms) → NoDup ms →
  (ms = [] → members x = [i]) →
  up (device_at x i) = false →
  (∀ x, holds T M x → E x → members x = ms → clean x = c → array_safe P Q S k x) →
  array_safe P Q S (without ms c k) x.
Proof.
  intros [HE HE'] HP HS Hx Ex Hc Hms Hdup Hone Hup Hk. destruct ms as [|j ms]; simpl; intros x1 H1.
  - assert (holds T M x1) as Hx1 by by eapply holds_fails. split; [by apply HP|]. destruct H1 as (Hm&_&Hd).
    rewrite Hone in Hm by done. apply HS; [done|by rewrite Hm|]. rewrite Hm.
      intros j ->%elem_of_list_singleton.
    destruct (Hd i) as [->|(f&_&->)]; done.
  - assert (holds T M x1) as Hx1 by by eapply holds_fails. split; [by apply HP|].
    destruct H1 as (Hm&Hc1&Hd) eqn:H1'. assert (up (device_at x1 i) = false) as Hup1.
    { destruct (Hd i) as [->|(f&_&->)]; done. }
    apply Hk; [|apply HE'; by eapply HE|done|done].
    eapply holds_drop; [|done|exact Hup1|congruence|done]. by rewrite Hm.
Qed.

Lemma safe_read_from M (E : array B → Prop) ms c a x k :
  lasting E → (∀ x, holds T M x → P x) →
  (∀ x, holds T M x → length (members x) ≤ 1 → (∀ i, i ∈ members x → up (device_at x i) = false) → S x) →
  holds T M x → E x → members x = ms → clean x = c →
  (∀ x i rest, holds T M x → E x → members x = i :: rest → i :: rest `suffix_of` ms → clean x = c →
     up (device_at x i) = true →
     array_safe P Q S (k (i :: rest) (read_block (store (device_at x i)) a)) x) →
  array_safe P Q S (read_from ms c a k) x.
Proof.
  intros HE HP HS. revert x. induction ms as [|i rest IH]; simpl; intros x Hx Ex Hms Hc Hk x1 H1.
  - assert (holds T M x1) as Hx1 by by eapply holds_fails. split; [by apply HP|]. destruct H1 as (Hm&_&_).
    rewrite Hms in Hm. apply HS; [done|rewrite Hm; simpl; lia|]. rewrite Hm. by intros i ?%elem_of_nil.
  - assert (holds T M x1) as Hx1 by by eapply holds_fails. split; [by apply HP|].
    assert (E x1) as Ex1 by by eapply HE. destruct H1 as (Hm&Hc1&_). rewrite Hms in Hm. rewrite Hc in Hc1.
    unfold answer_of_read. destruct (up (device_at x1 i)) eqn:Hup.
    + by apply Hk.
    + eapply (safe_without M E i); try done.
      * rewrite Hm. intros j. by rewrite elem_of_cons.
      * pose proof (holds_distinct _ _ _ Hx1) as Hdup. rewrite Hm in Hdup.
        by apply NoDup_cons in Hdup as [_ ?].
      * by intros ->.
      * intros x2 Hx2 Ex2 Hm2 Hc2. apply IH; try done. intros x3 j rest3 Hx3 Ex3 Hm3 Hsub. apply Hk; try done.
        by apply suffix_cons_r.
Qed.

Lemma may_hold_written m a b a' b' :
  may_hold (write_block m a b) a' b' → (a', b') = (a, b) ∨ may_hold m a' b'.
Proof.
  intros [->|Hin]; simpl in *; [right; by left|].
    apply elem_of_cons in Hin as [?|]; [by left|right; by right].
Qed.

Lemma holds_written M x i a b x' :
  may_hold M a b → (x' = written x i a b ∧ up (device_at x i) = true ∨
    up (device_at x i) = false ∧ maybe_written x i a b x') →
  holds T M x → holds T M x' ∧ members x' = members x ∧ clean x' = clean x ∧
    (∀ j, up (device_at x' j) = up (device_at x j)).
Proof.
  intros Hab Hx' Hx.
  assert (x' = x ∨ ∃ d, x' = put_device x i d ∧ up d = up (device_at x i) ∧
    (∀ a' b', may_hold (store d) a' b' → (a', b') = (a, b) ∨ may_hold (store (device_at x i)) a' b') ∧
    (up d = false → unflushed (store d) = [])) as [->|(d&->&Hup&Hd&Hdown)]; [|done|].
  { destruct Hx' as [[-> Hup]|[Hup [->| ->]]]; [|by left|]; right; eexists; (split; [done|]); simpl.
    - split_and!; [done| |done]. intros a' b'. apply may_hold_written.
    - split_and!; [done| |done]. intros a' b' [->|Hin]; simpl in *.
      + destruct (decide (a' = a)) as [->|]; [by left|right; by left].
      + by apply elem_of_nil in Hin. }
  destruct Hx as [Hwithin Hclean Hmem Hdup Hdown']. split_and!; [|done|done|].
  - split; simpl.
    + intros j Hj. destruct (decide (j = i)) as [->|]; [|by apply Hwithin].
      intros a' b' Ha' [[= -> ->]|?]%Hd; [done|].
      by apply (Hwithin i).
    + done.
    + intros j Hj. simpl. destruct (decide (j = i)) as [->|]; [rewrite Hup|]; by apply Hmem.
    + done.
    + intros j. destruct (decide (j = i)) as [->|]; [done|apply Hdown'].
  - intros j. simpl. by destruct (decide (j = i)) as [->|].
Qed.

(** [φ] of the members still to be written, [φ'] of those that are. *)
Lemma safe_write_to M (φ φ' : medium B → Prop) kept todo a b x k :
  (∀ x, holds T M x → P x) →
  (∀ x, holds T M x → length (members x) ≤ 1 → (∀ i, i ∈ members x → up (device_at x i) = false) → S x) →
  may_hold M a b → (∀ m, φ m → φ' (write_block m a b)) →
  holds T M x → each_up kept φ' x → each_up todo φ x → members x = kept ++ todo → clean x = false →
  (∀ x ms, holds T M x → each_up ms φ' x → members x = ms → clean x = false →
     array_safe P Q S (k ms) x) →
  array_safe P Q S (write_to kept todo a b k) x.
Proof.
  intros HP HS Hab Hφ Hx Hkept Htodo Hms Hc Hk. revert kept x Hx Hkept Htodo Hms Hc.
  induction todo as [|i rest IH]; simpl; intros kept x Hx Hkept Htodo Hms Hc.
  { apply Hk; rewrite ?app_nil_r in *; done. }
  intros x1 H1. assert (holds T M x1) as Hx1 by by eapply holds_fails. split; [by apply HP|].
  apply (each_up_fails _ _ _ _ H1) in Hkept, Htodo. destruct H1 as (Hm&Hc1&_). rewrite Hms in Hm.
    rewrite Hc in Hc1.
  pose proof (holds_distinct _ _ _ Hx1) as Hdup. rewrite Hm in Hdup.
    apply distinct_middle in Hdup as (Hi&Hi'&Hdup).
  destruct (up (device_at x1 i)) eqn:Hup.
  - destruct (holds_written M x1 i a b (written x1 i a b)) as (Hx2&Hm2&Hc2&_); [done|by left|done|].
    apply IH; try done.
    + intros j. rewrite elem_of_app, elem_of_list_singleton. unfold written. simpl.
      destruct (decide (j = i)) as [->|]; simpl; [|by intros [?|?]; [apply Hkept|]].
      intros _ _. apply Hφ, Htodo; [by left|done].
    + intros j Hj. simpl. rewrite decide_False by (by intros ->). apply Htodo. by right.
    + rewrite Hm2, Hm. by rewrite <-(assoc_L (++)).
  - intros x2 Hx2'. destruct (holds_written M x1 i a b x2) as (Hx2&Hm2&Hc2&Hups); [done|by right|done|].
    rewrite Hm in Hm2. assert (∀ j, j ≠ i → device_at x2 j = device_at x1 j) as Hsame.
    { intros j Hj. destruct Hx2' as [->| ->]; [done|]. simpl. by rewrite decide_False. }
    apply (safe_without M (λ x, each_up kept φ' x ∧ each_up rest φ x) i); try done.
    + apply lasting_and; apply each_up_lasting.
    + split; intros j Hj; rewrite (Hsame j) by (by intros ->); [by apply Hkept|apply Htodo; by right].
    + by rewrite Hc2.
    + rewrite Hm2. intros j. rewrite !elem_of_app, elem_of_cons. naive_solver.
    + intros [-> ->]%app_nil. done.
    + by rewrite Hups.
    + intros x3 Hx3 [Hkept3 Hrest3] Hm3 Hc3. by apply IH.
Qed.

(** What the members read as is flushed. *)
Lemma safe_flush_of M f c kept todo x k :
  (∀ x, holds T M x → P x) →
  (∀ x, holds T M x → length (members x) ≤ 1 → (∀ i, i ∈ members x → up (device_at x i) = false) → S x) →
  (∀ a, a < size → may_hold M a (f a)) →
  holds T M x → each_up (kept ++ todo) (reads_as f) x →
  (∀ i, i ∈ kept → holds_only f (store (device_at x i))) → members x = kept ++ todo → clean x = c →
  (∀ x ms, holds T (Medium f []) x → each_up ms (reads_as f) x → members x = ms → clean x = c →
     array_safe P Q S (k ms) x) →
  array_safe P Q S (flush_of kept todo c k) x.
Proof.
  intros HP HS Hf Hx Hall Hkept Hms Hc Hk. revert kept x Hx Hall Hkept Hms Hc.
  induction todo as [|i rest IH]; simpl; intros kept x Hx Hall Hkept Hms Hc.
  { rewrite app_nil_r in *. apply Hk; try done. destruct Hx as [_ Hclean Hmem Hdup Hdown]. split; [|done..].
    by rewrite Hms. }
  intros x1 H1. assert (holds T M x1) as Hx1 by by eapply holds_fails. split; [by apply HP|].
  assert (lasting (λ x, ∀ i, i ∈ kept → holds_only f (store (device_at x i)))) as Hlast.
  { split; [|done]. intros y y1 (_&_&Hd) Hy j Hj. destruct (Hd j) as [->|(f'&Hf'&->)]; [by apply Hy|]. simpl.
    eapply within_survives; [by apply Hy|done]. }
  apply (each_up_fails _ _ _ _ H1) in Hall. pose proof (proj1 Hlast _ _ H1 Hkept) as Hkept1. clear Hkept.
    rename Hkept1 into Hkept.
  destruct H1 as (Hm&Hc1&_). rewrite Hms in Hm. rewrite Hc in Hc1.
  pose proof (holds_distinct _ _ _ Hx1) as Hdup. rewrite Hm in Hdup.
    apply distinct_middle in Hdup as (Hi&Hi'&Hdup).
  destruct (up (device_at x1 i)) eqn:Hup.
  - assert (reads_as f (store (device_at x1 i))) as Hreads.
    { apply Hall; [|done]. rewrite elem_of_app, elem_of_cons. auto. }
    assert (holds_only f (flush_blocks (store (device_at x1 i)))) as Honly.
    { intros a b Ha [->|Hin]; [|by apply elem_of_nil in Hin]. left. simpl. by rewrite Hreads. }
    apply IH.
    + destruct Hx1 as [Hwithin Hclean Hmem Hdup1 Hdown]. split; simpl.
      * intros j Hj. destruct (decide (j = i)) as [->|]; [|by apply Hwithin]. simpl. intros a b Ha Hb.
        destruct (Honly a b Ha Hb) as [->|Hin%elem_of_nil]; [by apply Hf|done].
      * done.
      * intros j Hj. simpl. destruct (decide (j = i)) as [->|]; [|by apply Hmem]. intros _. by apply Hmem.
      * done.
      * intros j. destruct (decide (j = i)) as [->|]; [done|apply Hdown].
    + rewrite <-(assoc_L (++)). intros j Hj. simpl. destruct (decide (j = i)) as [->|]; [|by apply Hall].
      intros _ a Ha. simpl. by apply Hreads.
    + intros j. rewrite elem_of_app, elem_of_list_singleton. simpl.
      destruct (decide (j = i)) as [->|]; [done|]. intros [?|?]; [by apply Hkept|done].
    + simpl. by rewrite Hm, <-(assoc_L (++)).
    + done.
  - apply (safe_without M (λ x, each_up (kept ++ i :: rest) (reads_as f) x ∧
      ∀ i, i ∈ kept → holds_only f (store (device_at x i))) i); try done.
    + apply lasting_and; [apply each_up_lasting|done].
    + rewrite Hm. intros j. rewrite !elem_of_app, elem_of_cons. naive_solver.
    + intros [-> ->]%app_nil. done.
    + intros x3 Hx3 [Hall3 Hkept3] Hm3 Hc3. apply IH; try done.
      eapply each_up_sub; [|done]. intros j. rewrite !elem_of_app, elem_of_cons. naive_solver.
Qed.

End Ios.
End Correct.
