(** A proved disk on a leg keeps the contract if its programs are crash safe, and answers [DataLost] only when
more devices failed than the code can do without. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec.
From LogDisk Require Import ProvedDisk(geometry, disk_blocks, request(..)).
From LogDisk Require Import ProvedDiskMaps ProvedDiskRequests DiskMachine Devices Leg LegCorrect LegRefine
  LegDiskMachine.

Section Refinement.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type}.
Context (D : programs Y U) (size count : nat).
Context (shape : Y → geometry) (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).
Context (programs_safe : crash_safe_programs D shape represents recoverable) {laws : cutting_laws count}.
Implicit Types (x : array C) (d : disk block) (f : contents block) (s : state block).
Implicit Types (S : state block → Prop) (v : devices) (T h : list nat) (q : request).
Local Notation protects := (protects size count).
Local Notation stopped := (stopped size count).
Local Notation striped := (striped size count).
Local Notation holds := (holds size count).
Local Notation leg_end := (leg_end size count).
Local Notation spare := (count - fewest).
Local Notation control := (control C Y).
Local Notation machine := (machine C Y).
Local Notation outcome_left := (outcome_left recoverable).
Local Notation answered_with := (answered_with shape represents).
Local Notation writes_left := (writes_left recoverable).
Local Notation writes_end := (writes_end shape represents).
Local Notation kept_as := (kept_as shape represents).

(** ** What the machine's state stands for

[S]: the states that the contract may be in. Where writes of unknown outcome are under way, only what is found
later says in which. *)

(** A disk of these, *)
Definition remains g S f : Prop := ∃ d, S (settled (disk_blocks g) d) ∧ recoverable g d f.
Definition remembered g S (r : option Y) (m : medium block) : Prop :=
  ∃ y d, r = Some y ∧ S (settled (disk_blocks g) d) ∧ kept_as g d y m.
(** or one that a power cut may leave of them. *)
Definition left_of g S d : Prop :=
  ∃ s, S s ∧ VirtualDisk.size s = disk_blocks g ∧ power s = false ∧ exactly d ∈ survivors s.
Definition survivor g S f : Prop := ∃ d, left_of g S d ∧ recoverable g d f.
Definition recovered g S (r : option Y) (m : medium block) : Prop :=
  ∃ y d, r = Some y ∧ left_of g S d ∧ kept_as g d y m.

(** [T]: who has failed, as far as the contract knows. Of the others there are fewer than the code needs. *)
Definition too_many T : Prop := length (filter (λ i, i ∉ T) (seq 0 count)) < fewest.

Definition runs {A} T (R : contents block → Prop) (Q : A → medium block → Prop)
    (p : array_program C (list nat * bool * A)) x : Prop :=
  ∃ T', (∀ i, i < count → i ∈ T' → i ∈ T) ∧ array_safe (protects T' R) (leg_end T' Q) (stopped T' R) p x.

Definition serves T (c : control) x S : Prop :=
  match c with
  | Idle y ms c => ∃ f d, S (settled (disk_blocks (shape y)) d) ∧ striped T (Medium f []) x ∧
      members x = ms ∧ clean x = c ∧ represents y f d
  | Busy q p => ∃ g d, let s := settled (disk_blocks g) d in
      S s ∧ runs T (outcome_left g s q) (answered_with g s q) p x
  | Group ws p => ∃ g d, S (settled (disk_blocks g) d) ∧ runs T (writes_left g d ws) (writes_end g d ws) p x
  | Upkeep p => ∃ g d, S (settled (disk_blocks g) d) ∧ runs T (recoverable g d) (kept_as g d) p x
  | Settling y p => ∃ f d, S (settled (disk_blocks (shape y)) d) ∧ represents y f d ∧
      array_safe (protects T (recoverable (shape y) d)) (settled_end size count (Medium f []))
        (stopped T (recoverable (shape y) d)) p x
  | Lost => ∃ g, protects T (remains g S) x ∧ too_many T
  | Off => ∃ g, protects T (survivor g S) x
  | Recovery true p => ∃ g, runs T (remains g S) (remembered g S) p x
  | Recovery false p => ∃ g, runs T (survivor g S) (recovered g S) p x
  end.

(** Who is down has failed; who came back is up. *)
Record fine v h x : Prop := {
  fine_down i : i < count → up (device_at x i) = false → i ∈ failed v ++ h;
  fine_back i : i ∈ back v → i ∉ h → up (device_at x i) = true;
}.

Definition related (z : machine) v S : Prop :=
  let '(c, x, h) := z in serves (failed v ++ h) c x S ∧ fine v h x ∧ (powered c = true → h = []).

(** ** What does not change it *)

Lemma protects_more T T' R x : (∀ i, i < count → i ∈ T → i ∈ T') → protects T R x → protects T' R x.
Proof. intros HT (M&HM&Hx). exists M. split; [done|]. by eapply holds_more. Qed.

Lemma protects_mono T (R R' : contents block → Prop) x : (∀ f, R f → R' f) → protects T R x → protects T R' x.
Proof. intros HR (M&HM&Hx). exists M. split; [|done]. intros f Hf. by apply HR, HM. Qed.

Lemma stopped_mono T T' (R R' : contents block → Prop) x :
  (∀ i, i < count → i ∈ T → i ∈ T') → (∀ f, R f → R' f) → stopped T R x → stopped T' R' x.
Proof. intros HT HR [Hx Hup]. split; [|done]. by eapply protects_mono, protects_more. Qed.

Lemma striped_more T T' M x : (∀ i, i < count → i ∈ T → i ∈ T') → striped T M x → striped T' M x.
Proof. intros HT [Hx Hr]. split; [by eapply holds_more|done]. Qed.

Lemma striped_settled T f x : holds T (Medium f []) x → striped T (Medium f []) x.
Proof. intros Hx. split; [done|]. intros i Hi Hup. by apply only_reads, (holds_within _ _ _ _ _ Hx i). Qed.

Lemma too_many_more T T' : (∀ i, i < count → i ∈ T → i ∈ T') → too_many T → too_many T'.
Proof.
  intros HT. unfold too_many. apply Nat.le_lt_trans, submseteq_length, NoDup_submseteq.
  { apply NoDup_filter, NoDup_seq. }
  intros i [Hi Hlow]%elem_of_list_filter. apply elem_of_list_filter. split; [|done].
  apply elem_of_seq in Hlow. contradict Hi. apply HT; [lia|done].
Qed.

(** Whoever has not failed is among fewer than the code needs. *)
Lemma few_too_many T (l : list nat) :
  length l < fewest → (∀ i, i < count → i ∉ T → i ∈ l) → too_many T.
Proof.
  intros Hl Hall. eapply Nat.le_lt_trans; [|exact Hl].
  apply submseteq_length, NoDup_submseteq; [apply NoDup_filter, NoDup_seq|].
  intros i [Hi Hlow%elem_of_seq]%elem_of_list_filter. apply Hall; [lia|done].
Qed.

Lemma filter_both (P : nat → Prop) `{∀ i, Decision (P i)} (l : list nat) :
  length (filter P l) + length (filter (λ i, ¬ P i) l) = length l.
Proof.
  induction l as [|i l IH]; [done|]. rewrite !filter_cons.
  destruct (decide (P i)), (decide (¬ P i)); simpl; try done; lia.
Qed.

Lemma too_many_beyond v : too_many (failed v ++ []) → beyond spare v = true.
Proof.
  intros Hmany. unfold beyond. apply orb_true_iff. right. apply bool_decide_eq_true.
  rewrite app_nil_r in Hmany.
  unfold too_many in Hmany. pose proof (filter_both (λ i, i ∈ failed v) (seq 0 count)) as Hboth.
  rewrite seq_length in Hboth.
  assert (filter (λ i, i ∈ failed v) (seq 0 count) ⊆+ failed v) as Hsub%submseteq_length.
  { apply NoDup_submseteq; [apply NoDup_filter, NoDup_seq|]. by intros i [? _]%elem_of_list_filter. }
  pose proof (fewest_bound (count := count)). lia.
Qed.

Section Runs.
Context {A : Type} (R : contents block → Prop) (Q : A → medium block → Prop).
Implicit Types p : array_program C (list nat * bool * A).

Lemma runs_more T T' p x : (∀ i, i < count → i ∈ T → i ∈ T') → runs T R Q p x → runs T' R Q p x.
Proof. intros HT (T1&HT1&Hp). exists T1. split; [auto|done]. Qed.

Lemma runs_fails T p x x' : fails x x' → runs T R Q p x → runs T R Q p x'.
Proof. intros Hx (T1&HT1&Hp). exists T1. split; [done|]. by eapply array_safe_fails. Qed.

Lemma runs_io T p p' x x' : array_io p x p' x' → runs T R Q p x → runs T R Q p' x'.
Proof. intros Hio (T1&HT1&Hp). exists T1. split; [done|]. by eapply array_safe_io. Qed.

Lemma runs_now T p x : runs T R Q p x → protects T R x.
Proof. intros (T1&HT1&Hp%array_safe_now). by eapply protects_more. Qed.

Lemma runs_ends T r x : runs T R Q (Finish r) x →
  ∃ M, Q r.2 M ∧ striped T M x ∧ members x = r.1.1 ∧ clean x = r.1.2.
Proof.
  intros (T1&HT1&Hp). destruct (Hp x (fails_refl x)) as (_&M&HQ&Hx&Hm&Hc). exists M. split_and!; try done.
  by eapply striped_more.
Qed.

Lemma runs_stops T x : runs T R Q Stop x → stopped T R x.
Proof. intros (T1&HT1&Hp). destruct (Hp x (fails_refl x)) as [_ Hs]. by eapply stopped_mono. Qed.

Lemma runs_mono T (R' : contents block → Prop) (Q' : A → medium block → Prop) p x :
  (∀ f, R f → R' f) → (∀ r m, Q r m → Q' r m) → runs T R Q p x → runs T R' Q' p x.
Proof.
  intros HR HQ (T1&HT1&Hp). exists T1. split; [done|].
  eapply array_safe_mono, Hp; [by intros ?; apply protects_mono| |by intros ?; apply stopped_mono].
  intros r x1 (M&Hr&Hx). exists M. split; [by apply HQ|done].
Qed.

Lemma runs_start T M x ms c (p : program block A) :
  crash_safe R Q p M → striped T M x → members x = ms → clean x = c → runs T R Q (on_leg size ms c p) x.
Proof. intros. exists T. split; [done|]. by eapply safe_on_leg. Qed.

(** Whatever is found is opened, and [p] goes on. *)
Lemma runs_opened T x (p : program block A) :
  protects T R x → (∀ f, R f → crash_safe R Q p (Medium f [])) →
  runs T R Q (open_leg size (members x) (clean x) (λ ms c, on_leg size ms c p)) x.
Proof.
  intros (M&HM&Hx) Hp. exists T. split; [auto|]. apply (safe_opened size count R T M); try done.
  intros f x' ms c Hf Hx' Hm Hc. eapply safe_on_leg; try done. by apply Hp, HM.
Qed.
End Runs.

Lemma serves_more T T' c x S : (∀ i, i < count → i ∈ T → i ∈ T') → serves T c x S → serves T' c x S.
Proof.
  intros HT. destruct c as [y ms c|q p|ws p|p|y p| | |[] p]; simpl.
  2-4: intros (g&d&Hs&Hp); exists g, d; split; [done|]; by eapply runs_more.
  - intros (f&d&Hs&Hx&Hrest). exists f, d. split; [done|]. split; [by eapply striped_more|done].
  - intros (f&d&Hs&Hy&Hp). exists f, d. split; [done|]. split; [done|].
    eapply array_safe_mono, Hp; [by intros ?; apply protects_more|done|by intros ?; apply stopped_mono].
  - intros (g&Hp&Hmany). exists g. split; [by eapply protects_more|by eapply too_many_more].
  - intros (g&Hp). exists g. by eapply protects_more.
  - intros (g&Hp). exists g. by eapply runs_more.
  - intros (g&Hp). exists g. by eapply runs_more.
Qed.

Lemma serves_fails T c x x' S : fails x x' → serves T c x S → serves T c x' S.
Proof.
  intros Hx. destruct c as [y ms c|q p|ws p|p|y p| | |[] p]; simpl.
  2-4: intros (g&d&Hs&Hp); exists g, d; split; [done|]; by eapply runs_fails.
  - intros (f&d&Hs&Hm&<-&<-&Hy). destruct (Hx) as (Hm'&Hc'&_). exists f, d. split_and!; try done.
    by eapply striped_fails.
  - intros (f&d&Hs&Hy&Hp). exists f, d. split_and!; [done..|]. by eapply array_safe_fails.
  - intros (g&Hp&Hmany). exists g. split; [by eapply protects_fails|done].
  - intros (g&Hp). exists g. by eapply protects_fails.
  - intros (g&Hp). exists g. by eapply runs_fails.
  - intros (g&Hp). exists g. by eapply runs_fails.
Qed.

(** Of the contract's states, those count whose power is as the machine's. *)
Lemma serves_mono T c x S S' : (∀ s, S s → power s = powered c → S' s) → serves T c x S → serves T c x S'.
Proof.
  intros HS. assert (powered c = false → ∀ g d, left_of g S d → left_of g S' d) as Hleft.
  { intros Hc g d (s&Hs&Hsize&Hp&Hd). exists s. split_and!; try done. apply HS; [done|congruence]. }
  destruct c as [y ms c|q p|ws p|p|y p| | |[] p]; simpl.
  2-4: intros (g&d&Hs&Hp); exists g, d; split; [by apply HS|done].
  - intros (f&d&Hs&Hrest). exists f, d. split; [by apply HS|done].
  - intros (f&d&Hs&Hp). exists f, d. split; [by apply HS|done].
  - intros (g&Hp&Hmany). exists g. split; [|done]. eapply protects_mono; [|done].
    intros f (d&Hs&Hr). exists d. split; [by apply HS|done].
  - intros (g&Hp). exists g. eapply protects_mono; [|done]. intros f (d&Hd&Hr). exists d. auto.
  - intros (g&Hp). exists g. eapply runs_mono; [| |done].
    + intros f (d&Hs&Hr). exists d. split; [by apply HS|done].
    + intros r m (y&d&Hr&Hs&Hk). exists y, d. split_and!; [done|by apply HS|done].
  - intros (g&Hp). exists g. eapply runs_mono; [| |done].
    + intros f (d&Hd&Hr). exists d. auto.
    + intros r m (y&d&Hr&Hd&Hk). exists y, d. auto.
Qed.

Lemma device_fails_fails i x x' : device_fails i x x' → fails x x'.
Proof.
  intros (d&Hd&->). split_and!; [done|done|]. intros j. simpl.
    destruct (decide (j = i)) as [->|]; [by right|by left].
Qed.

Lemma array_io_up {A} (p p' : array_program C A) x x' i :
  array_io p x p' x' → up (device_at x' i) = up (device_at x i).
Proof.
  destruct 1 as [j a k x|j a k x Hup|j a b k x Hup|j a b k x x' Hup [->|(?&_&->)]|j k x Hup|j k x Hup|
    ms c k x|k x]; try done; simpl; by destruct (decide (i = j)) as [->|].
Qed.

Lemma fine_up v h x x' : (∀ i, up (device_at x' i) = up (device_at x i)) → fine v h x → fine v h x'.
Proof. intros Hup [Hdown Hback]. split; intros i; rewrite Hup; auto. Qed.

(** ** One step *)

Definition devices_by v (es : list (entry block)) : devices := foldl (devices_after spare) v es.
(** The states that the contract may be in, after [es]. *)
Definition after v S es s' : Prop := ∃ s, S s ∧ recorded_run Ack spare v s es s'.

Lemma recorded_run_app p v s es s1 es' s2 :
  recorded_run p spare v s es s1 → recorded_run p spare (devices_by v es) s1 es' s2 →
  recorded_run p spare v s (es ++ es') s2.
Proof. induction 1; simpl; [done|]. intros. econstructor; eauto. Qed.

Lemma after_quiet v S s : S s → after v S [] s.
Proof. intros Hs. exists s. split; [done|constructor]. Qed.

Lemma after_one v S s e s' : S s → entry_step Ack spare v s e s' → after v S [e] s'.
Proof. intros Hs Hstep. exists s. split; [done|]. econstructor; [done|constructor]. Qed.

Lemma devices_by_app v es es' : devices_by v (es ++ es') = devices_by (devices_by v es) es'.
Proof. apply foldl_app. Qed.

Lemma devices_by_writes v ws r : devices_by v (Event <$> writes_shown ws r) = v.
Proof. unfold devices_by. by induction ws. Qed.

Lemma recorded_writes v s ws r s' : run Ack s (writes_shown ws r) s' →
  recorded_run Ack spare v s (Event <$> writes_shown ws r) s'.
Proof.
  revert s. induction ws as [|w ws IH]; intros s Hrun; inversion Hrun; subst; [constructor|].
  econstructor; [by left|by apply IH].
Qed.

(** Those who failed while the power was off. *)
Lemma told_run h v s x :
  power s = true → fine v h x → recorded_run Ack spare v s (told h) s ∧
    fine (devices_by v (told h)) [] x ∧ ∀ i, i ∈ failed v ++ h → i ∈ failed (devices_by v (told h)) ++ [].
Proof.
  intros Hs. revert v. induction h as [|i h IH]; simpl; intros v Hv; [split_and!; [constructor|done..]|].
  destruct (IH (devices_after spare v (Fail i Ok : entry block))) as (Hrun&Hfine&Hin).
  { destruct Hv as [Hdown Hback]. split; simpl.
    - intros j Hj Hup. specialize (Hdown j Hj Hup). rewrite !elem_of_app, elem_of_cons, elem_of_with in *.
      tauto.
    - intros j [Hne Hj]%elem_of_list_filter Hno. apply Hback; [done|]. by rewrite not_elem_of_cons. }
  split_and!; [|done|].
  - econstructor; [|done]. by split.
  - intros j Hj. apply Hin. simpl. rewrite !elem_of_app, elem_of_cons, elem_of_with in *. tauto.
Qed.

(** Fewer members answer than are needed: too many have failed. *)
Lemma stopped_too_many v R x : stopped (failed v ++ []) R x → fine v [] x → too_many (failed v ++ []).
Proof.
  intros [(M&_&Hx) Hup] [Hdown _]. apply (few_too_many _ (up_members x)); [done|]. intros i Hi Hno.
  apply elem_of_list_filter. destruct (up (device_at x i)) eqn:Hup'.
  - split; [done|]. by destruct (holds_members _ _ _ _ _ Hx i Hi Hup').
  - by specialize (Hdown i Hi Hup').
Qed.

Lemma recover_on (R : contents block → Prop) (Q : option Y → medium block → Prop) g d f :
  recoverable g d f → (∀ f, recoverable g d f → R f) → (∀ y m, kept_as g d y m → Q (Some y) m) →
  crash_safe R Q (run_recovery D) (Medium f []).
Proof.
  intros Hf HR HQ. eapply crash_safe_mono, safe_recovery; [exact HR| |done|exact Hf].
  intros r m (y&->&Hk). by apply HQ.
Qed.

Lemma holds_comes_back T M i x :
  (up (device_at x i) = false → i ∈ T) → holds T M x → holds T M (comes_back i x).
Proof.
  intros Hi [Hwithin Hclean Hmem Hdup Hbound Hdown]. split; simpl; try done.
  - intros j Hj. destruct (decide (j = i)) as [->|]; by apply Hwithin.
  - intros j Hj. simpl. destruct (decide (j = i)) as [->|]; [|by apply Hmem]. intros _.
    destruct (up (device_at x i)) eqn:Hup; [by apply Hmem|right; by apply Hi].
  - intros j. destruct (decide (j = i)); [done|apply Hdown].
Qed.

Lemma holds_replaced v M i (f : contents C) x :
  holds (failed v ++ []) M x →
  holds (failed (devices_after spare v (Replace i Ok : entry block)) ++ []) M
    (replaced i f (others i (members x)) (clean x) x).
Proof.
  rewrite replaced_ok. intros [Hwithin Hclean Hmem Hdup Hbound Hdown].
  rewrite app_nil_r in Hmem. split; simpl; try done.
  - intros j [Hne Hj]%elem_of_list_filter. rewrite decide_False by done. by apply Hwithin.
  - intros j Hj. simpl. rewrite app_nil_r, elem_of_with.
    destruct (decide (j = i)) as [->|Hne]; [by right; left|]. intros Hup.
    destruct (Hmem j Hj Hup) as [|]; [left; by apply elem_of_list_filter|by right; right].
  - by apply NoDup_filter.
  - intros j [_ Hj]%elem_of_list_filter. by apply Hbound.
  - intros j. destruct (decide (j = i)); [done|apply Hdown].
Qed.

Lemma fine_replaced v i (f : contents C) ms c x : fine v [] x →
  fine (devices_after spare v (Replace i Ok : entry block)) [] (replaced i f ms c x).
Proof.
  rewrite replaced_ok. intros [Hdown Hback]. split; intros j; simpl.
  - destruct (decide (j = i)) as [->|]; [done|]. intros Hj Hup. specialize (Hdown j Hj Hup).
    rewrite app_nil_r in *. apply elem_of_with. by right.
  - destruct (decide (j = i)) as [->|Hne]; [done|]. intros Hj Hno. apply Hback; [|done].
    by apply elem_of_with in Hj as [->|].
Qed.

Lemma fine_comes_back v h i x : fine v h x → fine v h (comes_back i x).
Proof.
  intros [Hdown Hback]. split; intros j; simpl; (destruct (decide (j = i)); [done|]);
    [apply Hdown|apply Hback].
Qed.

Lemma fine_returned v i x :
  fine v [] x → fine (devices_after spare v (Return i Ok : entry block)) [] (comes_back i x).
Proof.
  intros [Hdown Hback]. simpl. unfold brought. destruct (decide (i ∉ failed v)); [by apply fine_comes_back|].
  split; intros j; simpl; (destruct (decide (j = i)) as [->|Hne]; [done|]); [apply Hdown|].
  intros [->|Hj]%elem_of_with; [done|by apply Hback].
Qed.

Lemma failed_returned v i : failed (devices_after spare v (Return i Ok : entry block)) = failed v.
Proof. simpl. unfold brought. by destruct (decide _). Qed.

(** The disks that a request of unknown outcome may leave, as the contract has them while data are lost, *)
Lemma lost_step v n d d' q :
  beyond spare v = true → d' ∈ outcomes (settled n d) q →
  entry_step Ack spare v (settled n d) (when_lost q) (settled n d').
Proof.
  intros Hb Hd'. assert (d' = d ∨ faults (settled n d) q = [] ∧ d' = effect q d) as Hd.
  { unfold outcomes in Hd'. destruct (faults _ _); [|left; by apply elem_of_list_singleton in Hd'].
    apply elem_of_cons in Hd' as [->|Hd']; [by right|left]. by apply elem_of_list_singleton in Hd'. }
  unfold when_lost. destruct q; try (left; apply step_answered; [|done]; split; [done|];
    destruct Hd as [->|[? ->]]; [by left|by right]).
  right. split; [done|]. split; [done|]. destruct Hd as [->|[_ ->]]; done.
Qed.

(** and after a power cut. *)
Lemma left_cut v S g d e (l : list (disk block)) d' :
  S (settled (disk_blocks g) d) →
  entry_step Ack spare v (settled (disk_blocks g) d) e (cut (settled (disk_blocks g) d) (exactly <$> l)) →
  d' = d ∨ d' ∈ l → left_of g (after v S [e]) d'.
Proof.
  intros Hs He Hd'. eexists. split; [by eapply after_one|]. split_and!; [done..|]. simpl.
  rewrite elem_of_app, elem_of_list_singleton, elem_of_list_fmap. destruct Hd' as [->|]; [by right|left].
  by exists d'.
Qed.

(** The power fails. *)
Lemma serves_cut T c x x' v S :
  serves T c x S → powered c = true ∨ (∃ p, c = Recovery false p) → loses_power x x' →
  serves T Off x' (after v S (when_cut c)).
Proof.
  intros Hs Hc Hx. assert (∀ g R, protects T R x → (∀ f, R f → survivor g (after v S (when_cut c)) f) →
    serves T Off x' (after v S (when_cut c))) as Hcut.
  { intros g R Hp HR. exists g. eapply protects_mono; [exact HR|]. by eapply protects_power. }
  assert (∀ g d f e, S (settled (disk_blocks g) d) → recoverable g d f →
    e = Event (Crash CutShort) ∨ e = Settle CutShort → survivor g (after v S [e]) f) as Hquiet.
  { intros g d f e Hd Hf He. exists d. split; [|done]. apply (left_cut v S g d e []); [done| |by left].
    destruct He as [->| ->]; [by left|by split]. }
  destruct c as [y ms c|q p|ws p|p|y p| | |[] p]; simpl in Hs; cbn [when_cut] in *.
  - destruct Hs as (f&d&Hs&[Hh _]&_&_&Hy). apply (Hcut (shape y) (recoverable (shape y) d)); [|by eauto].
    exists (Medium f []). split; [by eapply safe_idle|done].
  - destruct Hs as (g&d&Hs&Hp%runs_now). eapply (Hcut g); [exact Hp|]. intros f (d'&Hd'&Hr). exists d'.
    split; [|done].
    apply (left_cut v S g d _ (match faults (settled (disk_blocks g) d) q with
      [] => [effect q d] | _ => [] end)); [done| |].
    + left. apply step_answered; [|done]. split; [done|]. by destruct (faults _ q).
    + unfold outcomes in Hd'. simpl in Hd'. destruct (faults _ q);
        [apply elem_of_cons in Hd' as [->|Hd']; [right; by left|]|];
        apply elem_of_list_singleton in Hd'; by left.
  - destruct Hs as (g&d&Hs&Hp%runs_now). eapply (Hcut g); [exact Hp|]. intros f (d'&Hrun&Hr)%group_unknown.
    exists d'. split; [|done]. exists (cut (settled (disk_blocks g) d') []).
    split_and!; [|done|done|by left]. exists (settled (disk_blocks g) d). split; [done|].
    eapply recorded_run_app; [by apply recorded_writes|]. econstructor; [by left|constructor].
  - destruct Hs as (g&d&Hs&Hp%runs_now). eapply Hcut; [exact Hp|by eauto].
  - destruct Hs as (f&d&Hs&_&Hp%array_safe_now). eapply Hcut; [exact Hp|by eauto].
  - destruct Hs as (g&Hp&_). eapply Hcut; [exact Hp|]. intros f (d&?&?). eauto.
  - by destruct Hc as [|[? ?]].
  - destruct Hs as (g&Hp%runs_now). eapply Hcut; [exact Hp|]. intros f (d&?&?). eauto.
  - destruct Hs as (g&Hp%runs_now). eapply Hcut; [exact Hp|]. intros f (d&(s&Hs&Hsize&_&Hd)&Hr). exists d.
    split; [|done]. exists (cut s []). split_and!; [|done|done|done]. apply (after_one v S s); [done|by left].
Qed.

(** ** Every step *)

Definition simulated (z : machine) (es : list (entry block)) (z' : machine) : Prop :=
  ∀ v S, related z v S → related z' (devices_by v es) (after v S es).

(** What happens inside. *)
Lemma inside c x h c' x' :
  (∀ T S, serves T c x S → serves T c' x' S) → (∀ i, up (device_at x' i) = up (device_at x i)) →
  (powered c' = true → powered c = true) → simulated (c, x, h) [] (c', x', h).
Proof.
  intros Hserves Hup Hpower v S (Hs&Hfine&Hh). split; [|split; [by eapply fine_up|by auto]].
  eapply serves_mono; [|by apply Hserves]. intros s ? _. by apply after_quiet.
Qed.

(** Several writes were performed. *)
Lemma group_answers ws ms c y x h :
  simulated (Group ws (Finish (ms, c, (y, true))), x, h) (Event <$> writes_shown ws Ok) (Idle y ms c, x, h).
Proof.
  intros v S (Hs&Hfine&Hh). simpl in Hs.
  destruct Hs as (g&d&Hs&(M&(f&->&<-&Hrange&Hrep)&Hm&Hms&Hc)%runs_ends). cbn [fst snd] in *.
  rewrite devices_by_writes. split; [|done]. exists f, (written_all d ws). split_and!; try done.
  eexists. split; [exact Hs|]. apply recorded_writes, group_run; [by apply Hrange|by left].
Qed.

(** A resync begins. *)
Lemma settle_starts y ms c x h :
  simulated (Idle y ms c, x, h) [] (Settling y (settle_leg size count ms c), x, h).
Proof.
  intros v S (Hs&Hfine&Hh). simpl in Hs. destruct Hs as (f&d&Hs&Hm&<-&<-&Hy). split; [|done].
  exists f, d. split_and!; [by apply after_quiet|done|].
  apply (safe_settle size count _ _ (Medium f [])); try done; [by eapply safe_idle|].
  intros i Hi Hno. destruct (up (device_at x i)) eqn:Hup; [|by apply Hfine].
  destruct Hm as [Hm _]. by destruct (holds_members _ _ _ _ _ Hm i Hi Hup).
Qed.

(** It ends: what is up has all that was flushed. *)
Lemma settle_ends y ms c x h :
  simulated (Settling y (Finish (ms, c)), x, h) [Settle Ok] (Idle y ms c, x, h).
Proof.
  intros v S (Hs&Hfine&Hh). simpl in Hs. destruct Hs as (f&d&Hs&Hy&Hp).
  destruct (Hp x (fails_refl x)) as (_&Hm&Hms&Hc). simpl in *. rewrite Hh in * by done.
  split; [|split; [|done]].
  + exists f, d. split_and!; try done; [by apply (after_one v S (settled (disk_blocks (shape y)) d))|].
    eapply striped_more; [|done]. by intros i _ ?%elem_of_nil.
  + destruct Hfine as [Hdown Hback]. split; simpl; [|by intros i ?%elem_of_nil]. intros i Hi Hup.
    rewrite app_nil_r. apply elem_of_list_filter.
      split; [|by specialize (Hdown i Hi Hup); rewrite app_nil_r in Hdown].
    intros Hin. rewrite Hback in Hup; [done|done|apply not_elem_of_nil].
Qed.

(** The power came back: the contract's disk is the one that was found; what failed meanwhile is told. *)
Lemma after_recovery g v S h x d :
  left_of g S d → fine v h x →
  after v S (Event (Crash Ok) :: told h) (settled (disk_blocks g) d) ∧ fine (devices_by v (told h)) [] x ∧
    ∀ i, i ∈ failed v ++ h → i ∈ failed (devices_by v (told h)) ++ [].
Proof.
  intros (s&Hs&Hsize&Hpower&Hd) Hfine.
  destruct (told_run h v (settled (disk_blocks g) d) x) as (Hrun&Hfine'&Hin); [done..|].
  split_and!; try done. exists s. split; [done|]. econstructor; [|exact Hrun]. left. exists (exactly d), d.
  split_and!; [done| |by rewrite Hsize]. split; [|done]. intros l. by left.
Qed.

Lemma recovery_ends (on : bool) ms c y x h :
  simulated (Recovery on (Finish (ms, c, Some y)), x, h)
    ((if on then [] else [Event (Crash Ok)]) ++ told h) (Idle y ms c, x, []).
Proof.
  intros v S (Hs&Hfine&Hh). simpl in Hs. destruct on; simpl.
  + rewrite Hh in * by done.
    destruct Hs as (g&(M&(y'&d&[= <-]&Hd&f&->&<-&Hrep)&Hm&Hms&Hc)%runs_ends). simpl in *.
    split; [|done]. exists f, d. split_and!; try done. by apply after_quiet.
  + destruct Hs as (g&(M&(y'&d&[= <-]&Hd&f&->&<-&Hrep)&Hm&Hms&Hc)%runs_ends). simpl in *.
    destruct (after_recovery _ v S h x d Hd Hfine) as (Hafter&Hfine'&Hin).
    split; [|done]. exists f, d. split_and!; try done. eapply striped_more; [|done]. auto.
Qed.

(** Too few members answer: during a request, *)
Lemma request_stops q x h : simulated (Busy q Stop, x, h) [when_lost q] (Lost, x, h).
Proof.
  intros v S (Hs&Hfine&Hh). simpl in Hs. rewrite Hh in * by done.
  destruct Hs as (g&d&Hs&Hp%runs_stops). pose proof (stopped_too_many _ _ _ Hp Hfine) as Hmany.
  assert (devices_by v [when_lost q] = v) as -> by by destruct q. split; [|done]. exists g. split; [|done].
  eapply protects_mono; [|exact (proj1 Hp)]. intros f (d'&Hd'&Hr). exists d'. split; [|done].
  eapply after_one; [exact Hs|]. apply lost_step; [by apply too_many_beyond|done].
Qed.

(** several writes, *)
Lemma group_stops ws x h :
  simulated (Group ws Stop, x, h) (Event <$> writes_shown ws UnknownOutcome) (Lost, x, h).
Proof.
  intros v S (Hs&Hfine&Hh). simpl in Hs. rewrite Hh in * by done.
  destruct Hs as (g&d&Hs&Hp%runs_stops). pose proof (stopped_too_many _ _ _ Hp Hfine) as Hmany.
  rewrite devices_by_writes. split; [|done]. exists g. split; [|done].
  eapply protects_mono; [|exact (proj1 Hp)]. intros f (d'&Hrun&Hr)%group_unknown. exists d'. split; [|done].
  eexists. split; [exact Hs|]. by apply recorded_writes.
Qed.

(** upkeep, resync, *)
Lemma upkeep_stops x h : simulated (Upkeep Stop, x, h) [] (Lost, x, h).
Proof.
  intros v S (Hs&Hfine&Hh). simpl in Hs. rewrite Hh in * by done.
  destruct Hs as (g&d&Hs&Hp%runs_stops). pose proof (stopped_too_many _ _ _ Hp Hfine) as Hmany.
  split; [|done]. exists g. split; [|done]. eapply protects_mono; [|exact (proj1 Hp)].
  intros f Hr. exists d. split; [by apply after_quiet|done].
Qed.

Lemma settle_stops y x h : simulated (Settling y Stop, x, h) [Settle (Refused DataLost)] (Lost, x, h).
Proof.
  intros v S (Hs&Hfine&Hh). simpl in Hs. rewrite Hh in * by done.
  destruct Hs as (f&d&Hs&Hy&Hp). destruct (Hp x (fails_refl x)) as [_ Hstop].
  pose proof (stopped_too_many _ _ _ Hstop Hfine) as Hmany.
  split; [|done]. exists (shape y). split; [|done]. eapply protects_mono; [|exact (proj1 Hstop)].
  intros f' Hr. exists d. split; [by eapply after_one|done].
Qed.

(** or recovery. *)
Lemma recovery_stops (on : bool) x h :
  simulated (Recovery on Stop, x, h)
    ((if on then [] else [Event (Crash Ok)]) ++ told h) (Lost, x, []).
Proof.
  intros v S (Hs&Hfine&Hh). simpl in Hs. destruct on; simpl.
  + rewrite Hh in * by done. destruct Hs as (g&Hp%runs_stops).
    pose proof (stopped_too_many _ _ _ Hp Hfine) as Hmany. split; [|done]. exists g. split; [|done].
    eapply protects_mono; [|exact (proj1 Hp)]. intros f (d&Hs&Hr). exists d.
    split; [by apply after_quiet|done].
  + destruct Hs as (g&Hp%runs_stops). split; [|split; [|done]].
    * assert (∀ d, left_of g S d → ∀ i, i ∈ failed v ++ h → i ∈ failed (devices_by v (told h)) ++ []) as Hin.
      { intros d Hd. by eapply after_recovery. }
      destruct (Hp) as [(M&HM&Hx) Hup].
      destruct (HM _ (survives_leaves _ _ (λ a, read_may_hold M a))) as (d0&Hd0&_).
      specialize (Hin d0 Hd0). apply (stopped_mono _ _ _ _ _ (λ i _, Hin i) (λ f Hf, Hf)) in Hp.
      exists g. split.
      -- eapply protects_mono; [|exact (proj1 Hp)]. intros f (d&Hd&Hr). exists d. split; [|done].
         by apply (after_recovery g v S h x).
      -- eapply stopped_too_many; [exact Hp|]. by apply (after_recovery g v S h x d0).
    * destruct (Hp) as [(M&HM&Hx) Hup].
      destruct (HM _ (survives_leaves _ _ (λ a, read_may_hold M a))) as (d0&Hd0&_).
      by apply (after_recovery g v S h x d0).
Qed.

(** A disk that is lost answers, *)
Lemma lost_shows e x h :
  (∀ v s, beyond spare v = true → power s = true → (∃ n d, s = settled n d) → entry_step Ack spare v s e s) →
  (∀ v, devices_by v [e] = v) → simulated (Lost, x, h) [e] (Lost, x, h).
Proof.
  intros He Hv v S (Hs&Hfine&Hh). simpl in Hs. rewrite Hh in * by done. destruct Hs as (g&Hp&Hmany).
  rewrite Hv. split; [|done]. exists g. split; [|done]. eapply protects_mono; [|exact Hp].
  intros f (d&Hs&Hr). exists d. split; [|done]. eapply after_one; [exact Hs|].
  apply He; [by apply too_many_beyond|done|by eauto].
Qed.

(** and opens again. *)
Lemma lost_reopens x h : simulated (Lost, x, h) [] (Recovery true (reopen D size x), x, h).
Proof.
  apply inside; [|done..]. intros T S (g&Hp&_). exists g. apply runs_opened; [done|].
  intros f (d&Hs&Hr). eapply recover_on; [done|by exists d|]. intros y m Hk. by exists y, d.
Qed.

(** The power comes back. *)
Lemma power_is_back x h : simulated (Off, x, h) [] (Recovery false (reopen D size x), x, h).
Proof.
  apply inside; [|done..]. intros T S (g&Hp). exists g. apply runs_opened; [done|].
  intros f (d&Hs&Hr). eapply recover_on; [done|by exists d|]. intros y m Hk. by exists y, d.
Qed.

Lemma power_is_cut c x x' h :
  powered c = true ∨ (∃ p, c = Recovery false p) → loses_power x x' →
  simulated (c, x, h) (when_cut c) (Off, x', h).
Proof.
  intros Hc Hx' v S (Hs&Hfine&Hh).
  assert (devices_by v (when_cut c) = v) as ->.
  { destruct c as [|q ?|ws ?| | | | |]; try done; [by destruct q|]. cbn [when_cut].
    by rewrite devices_by_app, devices_by_writes. }
  split; [by eapply serves_cut|]. split; [|done]. eapply fine_up; [|done]. intros i.
  destruct Hx' as (_&_&Hd). by destruct (Hd i) as (f&_&->).
Qed.

(** A device fails, at any moment. *)
Lemma a_device_fails c i x x' h :
  device_fails i x x' →
  simulated (c, x, h) (if powered c then [Fail i Ok] else []) (c, x', if powered c then h else i :: h).
Proof.
  intros Hx' v S (Hs&Hfine&Hh).
  pose proof (device_fails_fails _ _ _ Hx') as Hfails. pose proof (serves_fails _ _ _ _ _ Hfails Hs) as Hs'.
  destruct Hfine as [Hdown Hback]. destruct Hx' as (dv&(f&_&->)&->). destruct (powered c) eqn:Hon; simpl.
  + split; [|split; [|intros _; by apply Hh]].
    * eapply serves_more, serves_mono; [| |exact Hs'].
      -- intros j _. simpl. rewrite !elem_of_app, elem_of_with. tauto.
      -- intros s Hs1 Hpower. rewrite Hon in Hpower. by eapply after_one.
    * split; intros j; simpl; destruct (decide (j = i)) as [->|Hne].
      -- intros _ _. rewrite elem_of_app, elem_of_with. auto.
      -- intros Hj Hup. specialize (Hdown j Hj Hup). rewrite elem_of_app, elem_of_with in *. tauto.
      -- by intros [? _]%elem_of_list_filter.
      -- intros [_ Hj]%elem_of_list_filter. by apply Hback.
  + split; [|split; [|by rewrite Hon]].
    * eapply serves_more, serves_mono; [| |exact Hs'].
      -- intros j _. rewrite !elem_of_app, elem_of_cons. tauto.
      -- intros s Hs1 _. by apply after_quiet.
    * split; intros j; simpl; destruct (decide (j = i)) as [->|Hne].
      -- intros _ _. rewrite elem_of_app, elem_of_cons. auto.
      -- intros Hj Hup. specialize (Hdown j Hj Hup). rewrite elem_of_app, elem_of_cons in *. tauto.
      -- rewrite not_elem_of_cons. naive_solver.
      -- rewrite not_elem_of_cons. intros ? [_ ?]. by apply Hback.
Qed.

(** It comes back, while the disk is open, *)
Lemma idle_returns y ms c i x h : i < count →
  simulated (Idle y ms c, x, h) [Return i Ok] (Idle y ms c, comes_back i x, h).
Proof.
  intros Hi v S (Hs&Hfine&Hh). simpl in Hs. destruct Hs as (f&d&Hs&[Hm _]&<-&<-&Hy). rewrite Hh in * by done.
  split; [|split; [by apply fine_returned|done]]. unfold devices_by. cbn [foldl]. rewrite failed_returned.
  exists f, d. split_and!; try done; [by eapply after_one|].
  apply striped_settled, holds_comes_back; [by apply Hfine|done].
Qed.

(** lost, *)
Lemma lost_returns i x h : i < count →
  simulated (Lost, x, h) [Return i Ok] (Lost, comes_back i x, h).
Proof.
  intros Hi v S (Hs&Hfine&Hh). simpl in Hs. destruct Hs as (g&(M&HM&Hx)&Hmany). rewrite Hh in * by done.
  split; [|split; [by apply fine_returned|done]]. unfold devices_by. cbn [foldl]. rewrite failed_returned.
  exists g. split; [|done]. exists M. split; [|apply holds_comes_back; [by apply Hfine|done]].
  intros f Hf. destruct (HM f Hf) as (d&Hs&Hr). exists d. split; [by eapply after_one|done].
Qed.

(** or off. *)
Lemma off_returns i x h : i < count → simulated (Off, x, h) [] (Off, comes_back i x, h).
Proof.
  intros Hi v S (Hs&Hfine&Hh). simpl in Hs. destruct Hs as (g&M&HM&Hx).
  split; [|split; [by apply fine_comes_back|done]].
  eapply (serves_mono _ Off); [intros s Hs _; by apply after_quiet|]. exists g, M. split; [done|].
  apply holds_comes_back; [by apply Hfine|done].
Qed.

(** Another one takes its place. *)
Lemma idle_is_replaced y ms c i (f : contents C) x h :
  simulated (Idle y ms c, x, h) [Replace i Ok] (Idle y (others i ms) c, replaced i f (others i ms) c x, h).
Proof.
  intros v S (Hs&Hfine&Hh). simpl in Hs. destruct Hs as (f'&d&Hs&[Hm _]&<-&<-&Hy). rewrite Hh in * by done.
  split; [|split; [by apply fine_replaced|done]].
  exists f', d. split_and!; try done; [by eapply after_one|]. by apply striped_settled, holds_replaced.
Qed.

(** Too few members are left: all is lost. *)
Lemma last_is_replaced y ms c i (f : contents C) x h :
  length (others i ms) < fewest →
  simulated (Idle y ms c, x, h) [Replace i Ok] (Lost, replaced i f (others i ms) c x, h).
Proof.
  intros Hms v S (Hs&Hfine&Hh). simpl in Hs. destruct Hs as (f'&d&Hs&[Hm _]&<-&<-&Hy).
  rewrite Hh in * by done. apply (holds_replaced v _ i f) in Hm as Hm'.
  pose proof (fine_replaced v i f (others i (members x)) (clean x) x Hfine) as Hfine'.
  split; [|split; [exact Hfine'|done]]. exists (shape y). split.
  - exists (Medium f' []). split; [|exact Hm']. intros f2 Hf2. exists d. split; [by eapply after_one|].
    by eapply safe_idle.
  - refine (stopped_too_many _ (λ _, True) _ _ Hfine'). split; [by exists (Medium f' [])|].
    eapply Nat.le_lt_trans; [apply filter_length|done].
Qed.

(** A device of a lost disk is replaced. *)
Lemma lost_is_replaced i (f : contents C) x h :
  simulated (Lost, x, h) [Replace i Ok] (Lost, replaced i f (others i (members x)) (clean x) x, h).
Proof.
  intros v S (Hs&Hfine&Hh). simpl in Hs. destruct Hs as (g&(M&HM&Hm)&Hmany). rewrite Hh in * by done.
  split; [|split; [by apply fine_replaced|done]]. exists g. split.
  - exists M. split; [|by apply holds_replaced]. intros f' Hf'. destruct (HM f' Hf') as (d&Hs&Hr).
    exists d. split; [by eapply after_one|done].
  - eapply too_many_more; [|exact Hmany]. intros j _. unfold devices_by. cbn [foldl].
    rewrite replaced_ok. simpl. rewrite !elem_of_app, elem_of_with. tauto.
Qed.

Local Ltac quiet := apply inside; [intros T S|by intros; first [done|eapply array_io_up]|done].

Lemma related_move z es z' : move D size count z es z' → simulated z es z'.
Proof.
  intros Hmove. destruct Hmove as [y ms c q places x h|y ms c ws places x h|y ms c u x h|y ms c x h|y ms c x h
    |q p x p' x' h Hio|ws p x p' x' h Hio|p x p' x' h Hio|y p x p' x' h Hio|on p x p' x' h Hio
    |q ms c y r data x h|ws ms c y x h|ws ms c y x h|ms c y x h|y ms c x h|on ms c y x h
    |q x h|ws x h|x h|y x h|on x h|q x h|x h|x h|y ms c x h|x h|c x x' h Hc Hx'|x h
    |c i x x' h Hi Hx'|y ms c i x h Hi|i x h Hi|i x h Hi|y ms c i f x h Hi Hms|y ms c i f x h Hi Hms
    |i f x h Hi].
  - quiet. intros (f&d&Hs&Hm&<-&<-&Hy). exists (shape y), d. split; [done|]. eapply runs_start; [|done..].
    by eapply safe_request.
  - quiet. intros (f&d&Hs&Hm&<-&<-&Hy). exists (shape y), d. split; [done|]. eapply runs_start; [|done..].
    by eapply safe_group.
  - quiet. intros (f&d&Hs&Hm&<-&<-&Hy). exists (shape y), d. split; [done|]. eapply runs_start; [|done..].
    by eapply safe_upkeep.
  - by apply settle_starts.
  - quiet. intros (f&d&Hs&[[Hwithin Hclean Hmem Hdup Hbound Hdown] Hr]&<-&<-&Hy). exists f, d.
    by split_and!.
  - quiet. intros (g&d&Hs&Hp). exists g, d. split; [done|]. by eapply runs_io.
  - quiet. intros (g&d&Hs&Hp). exists g, d. split; [done|]. by eapply runs_io.
  - quiet. intros (g&d&Hs&Hp). exists g, d. split; [done|]. by eapply runs_io.
  - quiet. intros (f&d&Hs&Hy&Hp). exists f, d. split_and!; [done..|]. by eapply array_safe_io.
  - quiet. destruct on; intros (g&Hp); exists g; by eapply runs_io.
  - intros v S (Hs&Hfine&Hh). simpl in Hs.
    destruct Hs as (g&d&Hs&(M&(f&d'&->&<-&Hrep&Hstep)&Hm&Hms&Hc)%runs_ends). cbn [fst snd] in *.
    assert (devices_by v [Event (event_of q r data)] = v) as -> by by destruct q. split; [|done].
    exists f, d'. split_and!; try done. eapply after_one; [exact Hs|]. by left.
  - by apply group_answers.
  - quiet. intros (g&d&Hs&(M&(f&->&<-&_&Hrep)&Hm&Hms&Hc)%runs_ends). by exists f, d.
  - quiet. intros (g&d&Hs&(M&(f&->&<-&Hrep)&Hm&Hms&Hc)%runs_ends). by exists f, d.
  - by apply settle_ends.
  - by apply recovery_ends.
  - by apply request_stops.
  - by apply group_stops.
  - by apply upkeep_stops.
  - by apply settle_stops.
  - by apply recovery_stops.
  - apply lost_shows; [|by destruct q]. intros v s Hb _ (n&d&->). apply lost_step; [done|].
    apply (outcomes_before (settled n d)).
  - by apply lost_shows.
  - by apply lost_reopens.
  - intros v S (Hs&Hfine&Hh). split; [|done]. eapply serves_mono; [|exact Hs].
    intros s Hs1 Hpower. by eapply after_one.
  - by apply lost_shows.
  - by apply power_is_cut.
  - by apply power_is_back.
  - by eapply a_device_fails.
  - by apply idle_returns.
  - by apply lost_returns.
  - by apply off_returns.
  - by apply idle_is_replaced.
  - by apply last_is_replaced.
  - by apply lost_is_replaced.
Qed.

(** ** A new disk *)

Lemma crash_safe_any {A} (Q : A → medium block → Prop) (p : program block A) m :
  Q (execute p m).1 (execute p m).2 → crash_safe (λ _, True) Q p m.
Proof. revert m. induction p; simpl; intros m HQ; (split; [done|]); auto. Qed.

Lemma complete_up {A} (p : array_program C A) x i :
  up (device_at (complete p x).2 i) = up (device_at x i).
Proof.
  revert x. induction p as [r| | |j a k IH|j a b k IH|j k IH|ms c k IH|[] k IH]; simpl; intros x; try done;
    [| |apply (IH (Array (device_at x) ms c))].
  - destruct (up (device_at x j)) eqn:Hup; rewrite IH; [|done]. simpl. by destruct (decide (i = j)) as [->|].
  - destruct (up (device_at x j)) eqn:Hup; rewrite IH; [|done]. simpl. by destruct (decide (i = j)) as [->|].
Qed.

Lemma formatted_related n z : formatted D size count n z → related z all_good (eq (created n)).
Proof.
  intros (trees&g&f&ms&c&y&x&<-&Hwhole&Hend&->). split; [|split; [|done]].
  - assert (striped [] (Medium f []) (whole count f)) as Hx.
    { apply striped_settled. split; simpl; try done.
      - intros i _ a p _ [->|?%elem_of_nil]; [|done]. apply held_may_be. by left; left.
      - intros i Hi _. left. apply elem_of_list_In, in_seq. lia.
      - apply NoDup_seq.
      - intros i Hi%elem_of_seq. lia. }
    assert (crash_safe (λ _, True)
      (λ r m, ∀ y, r = Some y → kept_as g blank y m) (run_format D trees g) (Medium f [])) as Hformat.
    { apply crash_safe_any. intros y' Hy'. destruct (execute (run_format D trees g) _) as [r m] eqn:Hex.
      simpl in *. subst r. by eapply safe_format in Hex. }
    pose proof (safe_on_leg size count _ _ _ _ _ _ (seq 0 count) false Hformat Hx eq_refl eq_refl) as Hsafe.
    eapply array_safe_complete in Hsafe; [|by rewrite Hend]. rewrite Hend in Hsafe.
    destruct Hsafe as (M&Hq&Hm&Hms&Hc). simpl in *.
    destruct (Hq y eq_refl) as (f'&->&<-&Hrep). by exists f', blank.
  - split; [|by intros i ?%elem_of_nil]. intros i _.
    pose proof (complete_up (on_leg size (seq 0 count) false (run_format D trees g)) (whole count f) i)
      as Hup.
    rewrite Hend in Hup. simpl in Hup. by rewrite Hup.
Qed.

(** ** Every trace *)

(** There is such a state. *)
Lemma serves_some T c x S : serves T c x S → ∃ s, S s.
Proof.
  assert (∀ R, protects T R x → (∀ f, R f → ∃ s, S s) → ∃ s, S s) as Hfound.
  { intros R (M&HM&_) HR. apply (HR (read_block M)), HM, survives_leaves. intros a. apply read_may_hold. }
  destruct c as [y ms c|q p|ws p|p|y p| | |[] p]; simpl.
  2-4: intros (g&d&Hs&_); eauto.
  - intros (f&d&Hs&_). eauto.
  - intros (f&d&Hs&_). eauto.
  - intros (g&Hp&_). eapply Hfound; [exact Hp|]. intros f (d&Hs&_). eauto.
  - intros (g&Hp). eapply Hfound; [exact Hp|]. intros f (d&(s&Hs&_)&_). eauto.
  - intros (g&Hp%runs_now). eapply Hfound; [exact Hp|]. intros f (d&Hs&_). eauto.
  - intros (g&Hp%runs_now). eapply Hfound; [exact Hp|]. intros f (d&(s&Hs&_)&_). eauto.
Qed.

Lemma lives_related z tr z' v S :
  lives D size count z tr z' → related z v S →
  ∃ v' S', related z' v' S' ∧ ∀ s', S' s' → ∃ s, S s ∧ recorded_run Ack spare v s tr s'.
Proof.
  intros Hlives. revert v S. induction Hlives as [z|z es z1 tr z2 Hmove _ IH]; intros v S Hrel.
  { exists v, S. split; [done|]. intros s Hs. exists s. split; [done|constructor]. }
  destruct (IH _ _ (related_move _ _ _ Hmove _ _ Hrel)) as (v'&S'&Hrel'&Hback). exists v', S'. split; [done|].
  intros s' (s1&(s&Hs&Hrun)&Hrest)%Hback. exists s. split; [done|]. by eapply recorded_run_app.
Qed.

Lemma leg_disk_refines n z tr z' :
  formatted D size count n z → lives D size count z tr z' →
  admits_recorded Ack spare (Event (Create n) :: tr).
Proof.
  intros Hz%formatted_related Hlives. destruct (lives_related _ _ _ _ _ Hlives Hz) as (v'&S'&Hrel&Hback).
  destruct z' as [[c x] h]. destruct Hrel as [[s' Hs']%serves_some _].
  destruct (Hback s' Hs') as (s&<-&Hrun). by exists n, tr, s'.
Qed.

Lemma reached_related n z tr z' :
  formatted D size count n z → lives D size count z tr z' → ∃ v S, related z' v S.
Proof.
  intros Hz%formatted_related Hlives. destruct (lives_related _ _ _ _ _ Hlives Hz) as (v&S&?&_).
  by exists v, S.
Qed.

(** When nothing is under way, memory and members are a disk. *)
Theorem leg_idle_represents n z tr y ms c x h :
  formatted D size count n z → lives D size count z tr (Idle y ms c, x, h) → ∃ f d, represents y f d.
Proof.
  intros Hz Hlives. destruct (reached_related _ _ _ _ Hz Hlives) as (v&S&(f&d&_&_&_&_&Hy)&_). by exists f, d.
Qed.

End Refinement.
