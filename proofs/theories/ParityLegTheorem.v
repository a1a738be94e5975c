(** A leg with parity is a device of blocks, of which blocks of several pieces may tear: what is read is what
was written, also while devices are absent or stale, after power cuts anywhere, and after resync; and the leg
is lost only while more devices are absent or stale than the code can do without. *)
From stdpp Require Import list numbers list_numbers.
From LogDisk Require Import Medium Mirrors MirrorsCorrect ParityLeg ParityLegCorrect ParityLegRefine
  ParityLegMachine.

Section Refinement.
Context {B C A : Type} `{cutting B C} {torn : tearing}.
Variables (size count : nat).
Context {laws : cutting_laws count}.
Implicit Types (x : array C) (M : medium B) (R : contents B → Prop) (T : list nat).
Local Notation holds := (holds size count).
Local Notation striped := (striped size count).
Local Notation protects := (protects size count).
Local Notation stopped := (stopped size count).

Lemma begun_first (p : program B A) M : begun p M M.
Proof. destruct p; by left. Qed.

Lemma crash_safe_begun R (p : program B A) M :
  (∀ M', begun p M M' → safe R M') → crash_safe R (λ r M', execute p M = (r, M')) p M.
Proof.
  revert M. induction p as [r|a k IH|a b k IH|k IH]; simpl; intros M HR; (split; [by apply HR; left|]).
  - done.
  - apply IH. intros M' HM'. apply HR. by right.
  - apply IH. intros M' HM'. apply HR. by right.
  - apply IH. intros M' HM'. apply HR. by right.
Qed.

(** ** What the machine's state stands for *)

(** [T]: who may be absent or stale. *)
Definition runs {D} T R (Q : list nat → D → array C → Prop) (q : array_program C D) x : Prop :=
  ∃ T', (∀ i, i < count → i ∈ T' → i ∈ T) ∧ array_safe (protects T' R) (Q T') (stopped T' R) q x.

Definition opens T R (r : list nat * bool) x : Prop :=
  ∃ f, R f ∧ striped T (Medium f []) x ∧ members x = r.1 ∧ clean x = r.2.

Definition serves T (c : @control B C A) x (v : @block_device B) : Prop :=
  match c with
  | Idle ms c => ∃ M, v = On M ∧ striped T M x ∧ members x = ms ∧ clean x = c
  | Busy p q => ∃ M, v = On M ∧
      runs T (left_by p M) (λ T, leg_end size count T (λ r M', execute p M = (r, M'))) q x
  | Settling q => ∃ M, v = On M ∧ runs T (may_leave M) (λ _, settled_end size count M) q x
  | Closed => ∃ R, v = Down R ∧ protects T R x
  | Opening q => ∃ R, v = Down R ∧ runs T R (λ T, opens T R) q x
  end.

Definition related (z : @machine B C A) (t : standing) (v : @block_device B) : Prop :=
  serves (absent t ++ stale t) z.1 z.2 v ∧
  ∀ i, i < count → up (device_at z.2 i) = false → i ∈ absent t.

(** ** What does not change it *)

Lemma protects_more T T' R x : (∀ i, i < count → i ∈ T → i ∈ T') → protects T R x → protects T' R x.
Proof. intros HT (M&HM&Hx). exists M. split; [done|]. by eapply holds_more. Qed.

Lemma striped_more T T' M x : (∀ i, i < count → i ∈ T → i ∈ T') → striped T M x → striped T' M x.
Proof. intros HT [Hx Hr]. split; [by eapply holds_more|done]. Qed.

Lemma runs_now {D} T R Q (q : array_program C D) x : runs T R Q q x → protects T R x.
Proof. intros (T1&HT1&Hp%array_safe_now). by eapply protects_more. Qed.

Lemma runs_io {D} T R Q (q q' : array_program C D) x x' :
  array_io q x q' x' → runs T R Q q x → runs T R Q q' x'.
Proof. intros Hio (T1&HT1&Hp). exists T1. split; [done|]. by eapply array_safe_io. Qed.

Lemma runs_ends {D} T R Q (r : D) x :
  runs T R Q (Finish r) x → ∃ T', (∀ i, i < count → i ∈ T' → i ∈ T) ∧ Q T' r x.
Proof. intros (T1&HT1&Hp). exists T1. split; [done|]. apply (Hp x (fails_refl x)). Qed.

Lemma runs_stops {D} T R Q x :
  runs T R Q (Stop : array_program C D) x → protects T R x ∧ length (up_members x) < fewest.
Proof.
  intros (T1&HT1&Hp). destruct (Hp x (fails_refl x)) as (_&?&?). split; [by eapply protects_more|done].
Qed.

Lemma serves_more T T' c x v : (∀ i, i < count → i ∈ T → i ∈ T') → serves T c x v → serves T' c x v.
Proof.
  intros HT. assert (∀ D R Q (q : array_program C D), runs T R Q q x → runs T' R Q q x) as Hruns.
  { intros D R Q q (T1&HT1&Hp). exists T1. split; [auto|done]. }
  destruct c as [ms c|p q|q| |q]; simpl.
  - intros (M&->&Hx&?&?). exists M. split; [done|]. split; [by apply (striped_more T)|done].
  - intros (M&->&Hq). exists M. auto.
  - intros (M&->&Hq). exists M. auto.
  - intros (R&->&Hq). exists R. split; [done|]. by eapply protects_more.
  - intros (R&->&Hq). exists R. auto.
Qed.

Lemma serves_fails T c x x' v : fails x x' → serves T c x v → serves T c x' v.
Proof.
  intros Hx. destruct c as [ms c|p q|q| |q]; simpl.
  - intros (M&->&Hs&<-&<-). exists M. destruct (Hx) as (->&->&_). split_and!; [done| |done..].
    by eapply striped_fails.
  - intros (M&->&T1&HT1&Hp). exists M. split; [done|]. exists T1. split; [done|]. by eapply array_safe_fails.
  - intros (M&->&T1&HT1&Hp). exists M. split; [done|]. exists T1. split; [done|]. by eapply array_safe_fails.
  - intros (R&->&Hp). exists R. split; [done|]. by eapply protects_fails.
  - intros (R&->&T1&HT1&Hp). exists R. split; [done|]. exists T1. split; [done|]. by eapply array_safe_fails.
Qed.

(** When it is interrupted, what may be found is protected. *)
Lemma serves_protects T c x v :
  serves T c x v → ∃ R, interrupted v (under_way c) = Down R ∧ protects T R x.
Proof.
  destruct c as [ms c|p q|q| |q]; simpl.
  - intros (M&->&[Hx _]&_). exists (may_leave M). split; [done|].
    exists M. by split; [intros f|].
  - intros (M&->&Hq%runs_now). by eexists.
  - intros (M&->&Hq%runs_now). by eexists.
  - intros (R&->&Hq). by eexists.
  - intros (R&->&Hq%runs_now). by eexists.
Qed.

Lemma array_io_up {D} (q q' : array_program C D) x x' i :
  array_io q x q' x' → up (device_at x' i) = up (device_at x i).
Proof.
  destruct 1 as [j a k x|j a b k x Hup|j a b k x x' Hup [->| ->]|j k x Hup|j k x Hup|ms c k x]; try done;
    simpl; by destruct (decide (i = j)) as [->|].
Qed.

Lemma filter_both (P : nat → Prop) `{∀ i, Decision (P i)} (l : list nat) :
  length (filter P l) + length (filter (λ i, ¬ P i) l) = length l.
Proof.
  induction l as [|i l IH]; [done|]. rewrite !filter_cons.
  destruct (decide (P i)), (decide (¬ P i)); simpl; try done; lia.
Qed.

(** Fewer members answer than are needed: too many are absent or stale. *)
Lemma few_too_many t R x :
  protects (absent t ++ stale t) R x → (∀ i, i < count → up (device_at x i) = false → i ∈ absent t) →
  length (up_members x) < fewest → too_many count t.
Proof.
  intros (M&_&Hx) Hdown Hfew. unfold too_many. set (T := absent t ++ stale t) in *.
  assert (filter (λ i, ¬ i ∈ T) (seq 0 count) ⊆+ up_members x) as Hsub%submseteq_length.
  { apply NoDup_submseteq; [apply NoDup_filter, NoDup_seq|].
    intros i [Hi Hlow%elem_of_seq]%elem_of_list_filter. destruct (up (device_at x i)) eqn:Hup.
    - apply elem_of_list_filter. split; [done|].
      destruct (holds_members _ _ _ _ _ Hx i) as [|]; [lia|done|done|done].
    - destruct Hi. apply elem_of_app. left. apply Hdown; [lia|done]. }
  pose proof (filter_both (λ i, i ∈ T) (seq 0 count)) as Hall. rewrite seq_length in Hall. lia.
Qed.

(** A device is put in the place of one that is no member, or no member any more. *)
Lemma striped_replaced T M i f x :
  i ∈ T → striped T M x →
  striped T M
    (put_device (Array (device_at x) (others i (members x)) (clean x)) i (Device true (Medium f []))).
Proof.
  intros Hi [[Hwithin Hclean Hmem Hdup Hbound Hdown] Hr]. split; [split|]; simpl; try done.
  - intros j [Hne Hj]%elem_of_list_filter. rewrite decide_False by done. by apply Hwithin.
  - intros j Hj. simpl. destruct (decide (j = i)) as [->|Hne]; [by right|]. intros Hup.
    destruct (Hmem j Hj Hup) as [|]; [left; by apply elem_of_list_filter|by right].
  - by apply NoDup_filter.
  - intros j [_ Hj]%elem_of_list_filter. by apply Hbound.
  - intros j. destruct (decide (j = i)); [done|apply Hdown].
  - intros j [Hne Hj]%elem_of_list_filter. simpl. rewrite decide_False by done. by apply Hr.
Qed.

(** It is as it was when it failed. *)
Lemma holds_returned T M i x :
  (up (device_at x i) = false → i ∈ T) → holds T M x →
  holds T M (put_device x i (Device true (store (device_at x i)))).
Proof.
  intros Hi [Hwithin Hclean Hmem Hdup Hbound Hdown]. split; simpl; try done.
  - intros j Hj. destruct (decide (j = i)) as [->|]; by apply Hwithin.
  - intros j Hj. simpl. destruct (decide (j = i)) as [->|]; [|by apply Hmem]. intros _.
    destruct (up (device_at x i)) eqn:Hup; [by apply Hmem|right; by apply Hi].
  - intros j. destruct (decide (j = i)); [done|apply Hdown].
Qed.

(** ** Every step *)

Lemma related_move z es z' t v :
  related z t v → move size count z es z' →
  match es with
  | [] => related z' t v
  | e :: es => es = [] ∧ ∃ v', device_step count t v e v' ∧ related z' (standing_after t e) v'
  end.
Proof.
  intros [Hs Hdown] Hmove.
  assert (∀ R x, protects (absent t ++ stale t) R x → ∀ x', loses_power x x' →
    protects (absent t ++ stale t) R x') as Hpower by by intros; eapply protects_power.
  destruct Hmove as [ms c p x|ms c x|x|p q x q' x' Hio|q x q' x' Hio|q x q' x' Hio|p ms c r x|ms c x|ms c x
    |p x|x|x|c x x' Hx|c i x x' Hi Hx|ms c i f x Hi Hms|i x Hi]; simpl in Hs, Hdown.
  - destruct Hs as (M&->&Hx&<-&<-). split; [|done]. exists M. split; [done|]. exists (absent t ++ stale t).
    split; [done|]. apply safe_on_leg with M; try done. apply crash_safe_begun. intros M' HM' f Hf.
    by exists M'.
  - destruct Hs as (M&->&Hx&<-&<-). split; [|done]. exists M. split; [done|]. exists (absent t ++ stale t).
    split; [done|]. apply (safe_settle size count (may_leave M) _ M); try done; [by intros f|].
    intros i Hi Hno. apply elem_of_app.
    destruct (up (device_at x i)) eqn:Hup; [|left; by apply Hdown].
    destruct Hx as [Hx _]. apply elem_of_app. by destruct (holds_members _ _ _ _ _ Hx i Hi Hup).
  - destruct Hs as (R&->&M&HM&Hx). split; [|done]. exists R. split; [done|]. exists (absent t ++ stale t).
    split; [done|]. apply (safe_opened size count R _ M); try done. intros f y ms c Hf Hy Hm Hc y1 H1.
    split; [exists (Medium f []); split|].
    + intros f' Hf'. assert (may_leave M f') as HM'.
      { intros a. rewrite (leaves_stable f f' Hf' a). apply Hf. }
      by apply HM.
    + eapply holds_fails; [done|apply Hy].
    + exists f. split; [by apply HM|]. split; [by eapply striped_fails|]. by destruct H1 as (->&->&_).
  - destruct Hs as (M&->&Hq). split; [|intros i; rewrite (array_io_up _ _ _ _ _ Hio); apply Hdown].
    exists M. split; [done|]. by eapply runs_io.
  - destruct Hs as (M&->&Hq). split; [|intros i; rewrite (array_io_up _ _ _ _ _ Hio); apply Hdown].
    exists M. split; [done|]. by eapply runs_io.
  - destruct Hs as (R&->&Hq). split; [|intros i; rewrite (array_io_up _ _ _ _ _ Hio); apply Hdown].
    exists R. split; [done|]. by eapply runs_io.
  - destruct Hs as (M&->&(T1&HT1&M'&Hr&Hx&Hm&Hc)%runs_ends). simpl in *. split; [done|].
    exists (On M'). split; [exists M; by rewrite Hr|]. split; [|done]. exists M'.
    split_and!; try done. by eapply striped_more.
  - destruct Hs as (M&->&(T1&HT1&Hx&Hm&Hc)%runs_ends). simpl in *. split; [done|].
    exists (On M). split; [done|]. split; [|done]. exists M. split_and!; try done.
    eapply striped_more; [|done]. by intros i _ ?%elem_of_nil.
  - destruct Hs as (R&->&(T1&HT1&f&Hf&Hx&Hm&Hc)%runs_ends). simpl in *. split; [done|].
    exists (On (Medium f [])). split; [by exists R, f|]. split; [|done]. eexists. split_and!; try done.
    by eapply striped_more.
  - destruct Hs as (M&->&[Hp Hfew]%runs_stops). split; [done|]. eexists.
    split; [split; [by eapply few_too_many|done]|]. split; [by eexists|done].
  - destruct Hs as (M&->&[Hp Hfew]%runs_stops). split; [done|]. eexists.
    split; [split; [by eapply few_too_many|done]|]. split; [by eexists|done].
  - destruct Hs as (R&->&[Hp Hfew]%runs_stops). split; [done|]. eexists.
    split; [split; [by eapply few_too_many|done]|]. split; [by eexists|done].
  - apply serves_protects in Hs as (R&Hv&Hp). split; [done|]. exists (Down R). split; [by simpl|].
    split; [exists R; split; [done|by eapply Hpower]|].
    intros i. simpl. destruct Hx as (_&_&Hd). destruct (Hd i) as (f&_&->). apply Hdown.
  - split; [done|]. exists v. split; [done|]. destruct Hx as (d&Hd&->). split.
    + simpl. eapply serves_more, (serves_fails _ _ x); [|  |done].
      * intros j _ Hj. by right.
      * split_and!; [done|done|]. intros j. simpl. destruct (decide (j = i)) as [->|]; [by right|by left].
    + intros j Hj. simpl. destruct (decide (j = i)) as [->|]; [by left|]. intros Hup. right. by apply Hdown.
  - split; [done|]. exists v. split; [done|]. destruct Hs as (M&->&Hx&<-&<-). split.
    + exists M. split_and!; try done. apply striped_replaced; [simpl; apply elem_of_app; right; by left|].
      eapply striped_more; [|done]. intros j _. simpl.
      rewrite !elem_of_app, elem_of_cons, elem_of_list_filter.
      destruct (decide (j = i)); tauto.
    + intros j Hj. simpl. destruct (decide (j = i)) as [->|]; [done|]. intros Hup.
      apply elem_of_list_filter. split; [done|]. by apply Hdown.
  - split; [done|]. exists v. split; [done|]. destruct Hs as (R&->&M&HM&Hx). split.
    + exists R. split; [done|]. exists M. split; [done|].
      apply holds_returned; [intros _; simpl; apply elem_of_app; right; by left|].
      eapply holds_more; [|done]. intros j _. simpl. rewrite !elem_of_app, elem_of_cons, elem_of_list_filter.
      destruct (decide (j = i)); tauto.
    + intros j Hj. simpl. destruct (decide (j = i)) as [->|]; [done|]. intros Hup.
      apply elem_of_list_filter. split; [done|]. by apply Hdown.
Qed.

Lemma new_leg_related f : related (new_leg count f) nobody (On (Medium f [])).
Proof.
  split; [|done]. exists (Medium f []). split_and!; try done. split; [split|]; simpl; try done.
  - intros i _ a p _ [->|?%elem_of_nil]; [|done]. apply held_may_be. by left; left.
  - intros i Hi _. left. apply elem_of_list_In, in_seq. lia.
  - apply NoDup_seq.
  - intros i Hi%elem_of_seq. lia.
Qed.

(** Every trace of the leg is one of a device of blocks. *)
Theorem leg_refines_device f (tr : list (@happening B A)) z :
  lives size count (new_leg count f) tr z → ∃ v, device_run count nobody (On (Medium f [])) tr v.
Proof.
  intros Hlives. pose proof (new_leg_related f) as Hrel. revert Hrel.
  generalize nobody, (On (Medium f [])). induction Hlives as [z|z es z' tr z'' Hmove _ IH]; intros t v Hrel.
  { exists v. constructor. }
  pose proof (related_move _ _ _ _ _ Hrel Hmove) as Hstep. destruct es as [|e es]; [by apply IH|].
  destruct Hstep as (->&v'&Hstep&Hrel'). destruct (IH _ _ Hrel') as [v'' Hrun]. exists v''. by econstructor.
Qed.
End Refinement.
