(** The proved disk on mirrors keeps the contract, and answers [DataLost] only when all devices failed. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec ProvedDisk ProvedDiskInvariant
  ProvedDiskMaps ProvedDiskAppend ProvedDiskRecovery ProvedDiskRequests ProvedDiskRefinement Mirrors
  MirrorsCorrect MirrorsRefine MirroredDiskMachine.

Section Refinement.
Context `{!blocks, !blocks_laws}.
Local Instance untorn : tearing := λ _, False.
Variables (size count : nat).
Implicit Types (x : array block) (d : disk block) (f : contents block) (s : state block).
Implicit Types (v : devices) (T h : list nat) (q : request).
Local Notation protects := (protects size count).
Local Notation stopped := (stopped size count).
Local Notation mirrors := (mirrors size count).
Local Notation holds := (holds size count).

(** ** What the machine's state stands for *)

(** A disk that the contract allows after the power cut. *)
Definition survivor g s f : Prop := ∃ d, exactly d ∈ survivors s ∧ recoverable g d f.
Definition recovered g s (r : option memory) (m : medium block) : Prop :=
  ∃ y d, r = Some y ∧ exactly d ∈ survivors s ∧ keeps g d y m.

(** [T]: who has failed, as far as the contract knows. *)
Definition runs {A} T (R : contents block → Prop) (Q : list nat → A → array block → Prop)
    (p : array_program block A) x : Prop :=
  ∃ T', (∀ i, i < count → i ∈ T' → i ∈ T) ∧ array_safe (protects T' R) (Q T') (stopped T' R) p x.

Definition serves T (c : control) x s : Prop :=
  match c with
  | Idle y ms c => ∃ f d, mirrors T (Medium f []) x ∧ members x = ms ∧ clean x = c ∧ represents y f d ∧
      s = settled (disk_blocks (shape y)) d
  | Busy q p => ∃ g d, s = settled (disk_blocks g) d ∧
      runs T (crash_outcome g s q) (λ T, mirrored_end size count T (answers g s q)) p x
  | Group ws p => ∃ g d, s = settled (disk_blocks g) d ∧
      runs T (group_outcome g d ws) (λ T, mirrored_end size count T (group_ends g d ws)) p x
  | Upkeep p => ∃ g d, s = settled (disk_blocks g) d ∧
      runs T (recoverable g d) (λ T, mirrored_end size count T (keeps g d)) p x
  | Settling y p => ∃ f d, s = settled (disk_blocks (shape y)) d ∧ represents y f d ∧
      runs T (recoverable (shape y) d) (λ _, settled_end size count f) p x
  | Lost => ∃ g f d, s = settled (disk_blocks g) d ∧ recoverable g d f ∧ holds T (Medium f []) x ∧
      ∀ i, i < count → i ∈ T
  | Off => ∃ g, VirtualDisk.size s = disk_blocks g ∧ power s = false ∧ protects T (survivor g s) x
  | Recovery true p => ∃ g d, s = settled (disk_blocks g) d ∧ (∀ i, i < count → i ∈ T) ∧
      runs T (recoverable g d) (λ T, mirrored_end size count T (λ r m, ∃ y, r = Some y ∧ keeps g d y m)) p x
  | Recovery false p => ∃ g, VirtualDisk.size s = disk_blocks g ∧ power s = false ∧
      runs T (survivor g s) (λ T, mirrored_end size count T (recovered g s)) p x
  end.

(** Who is down has failed; who came back is up. *)
Record fine v h x : Prop := {
  fine_down i : i < count → up (device_at x i) = false → i ∈ failed v ++ h;
  fine_back i : i ∈ back v → i ∉ h → up (device_at x i) = true;
}.

Definition related (z : machine) v s : Prop :=
  let '(c, x, h) := z in serves (failed v ++ h) c x s ∧ fine v h x ∧ (powered c = true → h = []).

(** ** What does not change it *)

Lemma protects_more T T' R x : (∀ i, i < count → i ∈ T → i ∈ T') → protects T R x → protects T' R x.
Proof. intros HT (M&HM&Hx). exists M. split; [done|]. by eapply holds_more. Qed.

Lemma mirrors_more T T' M x : (∀ i, i < count → i ∈ T → i ∈ T') → mirrors T M x → mirrors T' M x.
Proof. intros HT [Hx Hr]. split; [by eapply holds_more|done]. Qed.

Lemma runs_more {A} T T' R Q (p : array_program block A) x :
  (∀ i, i < count → i ∈ T → i ∈ T') → runs T R Q p x → runs T' R Q p x.
Proof. intros HT (T1&HT1&Hp). exists T1. split; [auto|done]. Qed.

Lemma runs_fails {A} T R Q (p : array_program block A) x x' : fails x x' → runs T R Q p x → runs T R Q p x'.
Proof. intros Hx (T1&HT1&Hp). exists T1. split; [done|]. by eapply array_safe_fails. Qed.

Lemma runs_io {A} T R Q (p p' : array_program block A) x x' :
  array_io p x p' x' → runs T R Q p x → runs T R Q p' x'.
Proof. intros Hio (T1&HT1&Hp). exists T1. split; [done|]. by eapply array_safe_io. Qed.

Lemma runs_now {A} T R Q (p : array_program block A) x : runs T R Q p x → protects T R x.
Proof. intros (T1&HT1&Hp%array_safe_now). by eapply protects_more. Qed.

Lemma runs_ends {A} T R Q (r : A) x : runs T R Q (Finish r) x → ∃ T', (∀ i, i < count → i ∈ T' →
  i ∈ T) ∧ Q T' r x.
Proof. intros (T1&HT1&Hp). exists T1. split; [done|]. apply (Hp x (fails_refl x)). Qed.

Lemma runs_stops {A} T R Q x : runs T R Q (Stop : array_program block A) x → stopped T R x.
Proof.
  intros (T1&HT1&Hp). destruct (Hp x (fails_refl x)) as (_&(f&Hf&Hx)&Hup). split; [|done].
  exists f. split; [done|]. by eapply holds_more.
Qed.

Lemma runs_start {A} T R (Q : list nat → A → array block → Prop) p x :
  array_safe (protects T R) (Q T) (stopped T R) p x → runs T R Q p x.
Proof. intros Hp. exists T. by split. Qed.

Lemma serves_more T T' c x s : (∀ i, i < count → i ∈ T → i ∈ T') → serves T c x s → serves T' c x s.
Proof.
  intros HT. destruct c as [y ms c|q p|ws p|p|y p| | |[] p]; simpl; intros Hs; destruct_and?;
    naive_solver eauto using
    mirrors_more, runs_more, protects_more, holds_more.
Qed.

Lemma protects_fails T R x x' : fails x x' → protects T R x → protects T R x'.
Proof. intros Hx (M&HM&Hh). exists M. split; [done|]. by eapply holds_fails. Qed.

Lemma serves_fails T c x x' s : fails x x' → serves T c x s → serves T c x' s.
Proof.
  intros Hx. destruct c as [y ms c|q p|ws p|p|y p| | |[] p]; simpl; intros Hs.
  - destruct Hs as (f&d&Hm&<-&<-&Hy). destruct (Hx) as (Hm'&Hc'&_). exists f, d.
    split; [by eapply mirrors_fails|done].
  - naive_solver eauto using runs_fails.
  - naive_solver eauto using runs_fails.
  - naive_solver eauto using runs_fails.
  - naive_solver eauto using runs_fails.
  - destruct Hs as (g&f&d&?&?&?&?). exists g, f, d. split_and!; try done. by eapply holds_fails.
  - destruct Hs as (g&?&?&?). exists g. split_and!; try done. by eapply protects_fails.
  - destruct Hs as (g&d&?&?&?). exists g, d. split_and!; try done. by eapply runs_fails.
  - destruct Hs as (g&?&?&?). exists g. split_and!; try done. by eapply runs_fails.
Qed.

Lemma device_fails_fails i x x' : device_fails i x x' → fails x x'.
Proof.
  intros (d&Hd&->). split_and!; [done|done|]. intros j. simpl.
    destruct (decide (j = i)) as [->|]; [by right|by left].
Qed.

Lemma array_io_up {A} (p p' : array_program block A) x x' i :
  array_io p x p' x' → up (device_at x' i) = up (device_at x i).
Proof.
  destruct 1 as [j a k x|j a b k x Hup|j a b k x x' Hup [->| ->]|j k x Hup|j k x Hup|ms c k x]; try done;
    simpl; by destruct (decide (i = j)) as [->|].
Qed.

Lemma fine_up v h x x' : (∀ i, up (device_at x' i) = up (device_at x i)) → fine v h x → fine v h x'.
Proof. intros Hup [Hdown Hback]. split; intros i; rewrite Hup; auto. Qed.

(** ** One step *)

Definition devices_by v (es : list (entry block)) : devices := foldl (devices_after (count - 1)) v es.

Lemma recorded_run_app v s es s1 es' s2 :
  recorded_run Ack (count - 1) v s es s1 → recorded_run Ack (count - 1) (devices_by v es) s1 es' s2 →
  recorded_run Ack (count - 1) v s (es ++ es') s2.
Proof. induction 1; simpl; [done|]. intros. econstructor; eauto. Qed.

Lemma recorded_one v s e s' : entry_step Ack (count - 1) v s e s' → recorded_run Ack (count - 1) v s [e] s'.
Proof. intros Hs. econstructor; [done|constructor]. Qed.

(** What a run from [s] shows. *)
Definition shows v s tr : Prop := ∃ s', recorded_run Ack (count - 1) v s tr s'.
(** Whatever is shown from [s'] may be shown from [s], behind [es]. *)
Definition leads v s es s' : Prop := ∀ tr, shows (devices_by v es) s' tr → shows v s (es ++ tr).

Lemma run_leads v s es s' : recorded_run Ack (count - 1) v s es s' → leads v s es s'.
Proof. intros Hrun tr [s'' Hrest]. exists s''. by eapply recorded_run_app. Qed.

Lemma devices_by_app v es es' : devices_by v (es ++ es') = devices_by (devices_by v es) es'.
Proof. apply foldl_app. Qed.

Lemma devices_by_writes v ws r : devices_by v (Event <$> writes_shown ws r) = v.
Proof. unfold devices_by. by induction ws. Qed.

Lemma recorded_writes v s ws r s' : run Ack s (writes_shown ws r) s' →
  recorded_run Ack (count - 1) v s (Event <$> writes_shown ws r) s'.
Proof.
  revert s. induction ws as [|w ws IH]; intros s Hrun; inversion Hrun; subst; [constructor|].
  econstructor; [by left|by apply IH].
Qed.

(** A run that begins with the power off goes on from one of the survivors, whatever the others were. *)
Lemma run_from_survivor tr v s s' :
  power s = false → survivors s ≠ [] → recorded_run Ack (count - 1) v s tr s' →
  ∃ o, o ∈ survivors s ∧
    ∀ s2, power s2 = false → VirtualDisk.size s2 = VirtualDisk.size s → o ∈ survivors s2 → shows v s2 tr.
Proof.
  revert v s. induction tr as [|en tr IH]; intros v s Hoff Hsome Hrun.
  { destruct (survivors s) as [|o os]; [done|]. exists o. split; [by left|]. intros. eexists. constructor. }
  inversion Hrun as [|? s1 ? ? Hstep Hrest]; subst.
  destruct en as [e| | | | |]; try (destruct Hstep as [Hon _]; congruence).
  destruct Hstep as [Hstep|Hlost].
  - destruct e as [b| | | | | | | | | |[]]; simpl in Hstep; try (destruct Hstep as [Hon _]; congruence);
      try (destruct Hstep as [[Hon _] _]; congruence); try done.
    + subst s1. destruct (survivors s) as [|o os]; [done|]. exists o. split; [by left|]. intros.
      exists s'. econstructor; [by left|exact Hrest].
    + destruct Hstep as (o&d&Ho&Hd&->). exists o. split; [done|]. intros s2 _ Hsize Ho2. exists s'.
      econstructor; [|exact Hrest]. left. exists o, d. split_and!; [done|done|by rewrite Hsize].
    + subst s1. destruct (IH _ (cut s []) eq_refl Hsome Hrest) as (o&Ho&Hall). exists o. split; [done|].
      intros s2 Hoff2 Hsize Ho2. destruct (Hall (cut s2 []) eq_refl Hsize Ho2) as [s3 Hs3]. exists s3.
      econstructor; [by left|exact Hs3].
  - destruct e; try done. destruct r as [|[]| |]; try done. destruct Hlost as (_&Hon&_). congruence.
Qed.

(** Of writes that the power cut, what comes later decides whether they were performed. *)
Lemma group_cut_leads g d ws L v :
  (∀ d', d' ∈ d :: L → run Ack (settled (disk_blocks g) d) (writes_shown ws UnknownOutcome)
    (settled (disk_blocks g) d')) →
  leads v (settled (disk_blocks g) d) ((Event <$> writes_shown ws UnknownOutcome) ++ [Event (Crash CutShort)])
    (cut (settled (disk_blocks g) d) (exactly <$> L)).
Proof.
  intros HL tr [s Hrun]. rewrite devices_by_app, devices_by_writes in Hrun.
  destruct (run_from_survivor _ _ (cut (settled (disk_blocks g) d) (exactly <$> L)) _ eq_refl
    ltac:(by destruct L) Hrun) as (o&Ho&Hall).
  assert (∃ d', o = exactly d' ∧ d' ∈ d :: L) as (d'&->&Hd').
  { simpl in Ho. apply elem_of_app in Ho as [(d'&->&?)%elem_of_list_fmap| ->%elem_of_list_singleton].
    - exists d'. split; [done|by right].
    - exists d. split; [done|by left]. }
  destruct (Hall (cut (settled (disk_blocks g) d') [])) as [s2 Hs2]; [done|done|by left|].
  exists s2. rewrite <-(assoc_L (++)). eapply recorded_run_app; [by apply recorded_writes, HL|].
  rewrite devices_by_writes. simpl. econstructor; [by left|exact Hs2].
Qed.

Lemma elem_of_with i j (l : list nat) : j ∈ with_device i l ↔ j = i ∨ j ∈ l.
Proof.
  unfold with_device. destruct (decide (i ∈ l)); [|by rewrite elem_of_cons]. naive_solver.
Qed.

(** All have failed: more than any mirrors tolerate. *)
Lemma all_beyond v : 0 < count → (∀ i, i < count → i ∈ failed v) → beyond (count - 1) v = true.
Proof.
  intros Hpos Hall. unfold beyond. apply orb_true_iff. right. apply bool_decide_eq_true.
  assert (seq 0 count ⊆+ failed v) as Hsub%submseteq_length.
  { apply NoDup_submseteq; [apply NoDup_seq|]. intros i Hi%elem_of_list_In%in_seq. apply Hall. lia. }
  rewrite seq_length in Hsub. lia.
Qed.

(** Those who failed while the power was off. *)
Lemma told_run h v s x :
  power s = true → fine v h x → ∃ v', v' = devices_by v (told h) ∧
    recorded_run Ack (count - 1) v s (told h) s ∧
    fine v' [] x ∧ ∀ i, i ∈ failed v ++ h → i ∈ failed v' ++ [].
Proof.
  intros Hs. revert v. induction h as [|i h IH]; simpl; intros v Hv.
  { exists v. split_and!; [done|constructor|done|]. done. }
  destruct (IH (devices_after (count - 1) v (Fail i Ok : entry block))) as (v'&->&Hrun&Hfine&Hin).
  { destruct Hv as [Hdown Hback]. split; simpl.
    - intros j Hj Hup. specialize (Hdown j Hj Hup). rewrite !elem_of_app, elem_of_cons, elem_of_with in *.
      tauto.
    - intros j [Hne Hj]%elem_of_list_filter Hno. apply Hback; [done|]. by rewrite not_elem_of_cons. }
  eexists. split_and!; [done| |done|].
  - econstructor; [|done]. by split.
  - intros j Hj. apply Hin. simpl. rewrite !elem_of_app, elem_of_cons, elem_of_with in *. tauto.
Qed.

(** No member answers: everybody has failed. *)
Lemma stopped_all T R x :
  stopped T R x → (∀ i, i < count → up (device_at x i) = false → i ∈ T) →
  (∀ i, i < count → i ∈ T) ∧ ∃ f, R f ∧ holds T (Medium f []) x.
Proof.
  intros [(f&Hf&Hx) Hup] Hdown. split; [|by exists f]. intros i Hi.
  destruct (up (device_at x i)) eqn:Hi'; [|by apply Hdown].
  destruct (holds_members _ _ _ _ _ Hx i Hi Hi') as [Hm|]; [|done]. by rewrite Hup in Hi'.
Qed.

Lemma recoverable_safe g d f : recoverable g d f → safe (recoverable g d) (Medium f []).
Proof. intros (y&<-&Hy). by apply (safe_represents _ y f d). Qed.

Lemma recover_on (R : contents block → Prop) (Q : option memory → medium block → Prop) g d f :
  recoverable g d f → (∀ f, recoverable g d f → R f) → (∀ y m, keeps g d y m → Q (Some y) m) →
  crash_safe R Q (recover Done) (Medium f []).
Proof.
  intros (y&<-&Hy) HR HQ. eapply crash_safe_recover; [done|by apply (safe_represents _ y f d)|].
  intros y' Hy' Hshape. split; [apply (safe_represents _ y' f d); [done|by rewrite Hshape]|].
  apply HQ. by exists f.
Qed.

Lemma holds_comes_back T M i x :
  (up (device_at x i) = false → i ∈ T) → holds T M x → holds T M (comes_back i x).
Proof.
  intros Hi [Hwithin Hclean Hmem Hdup Hdown]. split; simpl; try done.
  - intros j Hj. destruct (decide (j = i)) as [->|]; by apply Hwithin.
  - intros j Hj. simpl. destruct (decide (j = i)) as [->|]; [|by apply Hmem]. intros _.
    destruct (up (device_at x i)) eqn:Hup; [by apply Hmem|right; by apply Hi].
  - intros j. destruct (decide (j = i)); [done|apply Hdown].
Qed.

Lemma mirrors_settled T f x : holds T (Medium f []) x → mirrors T (Medium f []) x.
Proof.
  intros Hx. split; [done|]. intros i Hi Hup a Ha.
  destruct (holds_within _ _ _ _ _ Hx i Hi a _ Ha (read_may_hold _ a)) as [->|Hin%elem_of_nil]; done.
Qed.

Lemma holds_replaced T M i f c x :
  clean x = c → i ∈ T → holds T M x → holds T M (replaced i f (filter (λ j, j ≠ i) (members x)) c x).
Proof.
  intros <- Hi [Hwithin Hclean Hmem Hdup Hdown]. split; simpl; try done.
  - intros j [Hne Hj]%elem_of_list_filter. rewrite decide_False by done. by apply Hwithin.
  - intros j Hj. simpl. destruct (decide (j = i)) as [->|Hne]; [by right|]. intros Hup.
    destruct (Hmem j Hj Hup) as [|]; [left; by apply elem_of_list_filter|by right].
  - by apply NoDup_filter.
  - intros j. destruct (decide (j = i)); [done|apply Hdown].
Qed.

Lemma holds_failed v i M x :
  holds (failed v ++ []) M x → holds (failed (devices_after (count - 1) v (Replace i Ok : entry block)) ++
    []) M x.
Proof. apply holds_more. intros j _. simpl. rewrite !elem_of_app, elem_of_with. tauto. Qed.

Lemma fine_replaced v i f ms c x r : fine v [] x → r ≠ CutShort →
  fine (devices_after (count - 1) v (Replace i r : entry block)) [] (replaced i f ms c x).
Proof.
  intros [Hdown Hback] Hr. split; intros j; simpl.
  - destruct (decide (j = i)) as [->|]; [done|]. intros Hj Hup. specialize (Hdown j Hj Hup).
    destruct r; simpl; rewrite app_nil_r in *; try done; apply elem_of_with; by right.
  - destruct (decide (j = i)) as [->|Hne]; [done|]. intros Hj Hno. apply Hback; [|done].
    destruct r; simpl in *; try done; by apply elem_of_with in Hj as [->|].
Qed.

Lemma fine_comes_back v h i x : fine v h x → fine v h (comes_back i x).
Proof.
  intros [Hdown Hback]. split; intros j; simpl; (destruct (decide (j = i)); [done|]);
    [apply Hdown|apply Hback].
Qed.

Lemma fine_returned v i x :
  fine v [] x → fine (devices_after (count - 1) v (Return i Ok : entry block)) [] (comes_back i x).
Proof.
  intros [Hdown Hback]. simpl. destruct (decide (i ∈ failed v)) as [Hi|]; [|by apply fine_comes_back].
  split; intros j; simpl; (destruct (decide (j = i)) as [->|Hne]; [done|]); [apply Hdown|].
  intros [->|Hj]%elem_of_with; [done|by apply Hback].
Qed.

Lemma failed_returned v i : failed (devices_after (count - 1) v (Return i Ok : entry block)) = failed v.
Proof. simpl. by destruct (decide _). Qed.

(** The power fails. *)
Lemma serves_cut T c x x' s v :
  serves T c x s → powered c = true ∨ (∃ p, c = Recovery false p) → loses_power x x' →
  ∃ s', leads v s (when_cut c) s' ∧ serves T Off x' s'.
Proof.
  intros Hs Hc Hx. assert (∀ R, protects T R x → protects T R x') as Hcut.
  { intros R (M&HM&Hh). exists M. split; [done|]. by eapply holds_power. }
  assert (∀ g d e, s = settled (disk_blocks g) d → protects T (recoverable g d) x →
    e = Event (Crash CutShort) ∨ e = Settle CutShort →
    ∃ s', leads v s [e] s' ∧ serves T Off x' s') as Hquiet.
  { intros g d e -> Hp He. exists (cut (settled (disk_blocks g) d) []).
    split; [apply run_leads, recorded_one; destruct He as [->| ->]; [by left|by split]|].
    exists g. split_and!; [done..|]. apply Hcut.
    destruct Hp as (M&HM&Hh). exists M. split; [|done]. intros f Hf. exists d. split; [by left|by apply HM]. }
  destruct c as [y ms c|q p|ws p|p|y p| | |[] p]; simpl in Hs; cbn [when_cut].
  - destruct Hs as (f&d&[Hh _]&_&_&Hy&->). eapply Hquiet; [done| |by left]. exists (Medium f []).
    split; [|done].
    by apply (safe_represents _ y f d).
  - destruct Hs as (g&d&->&Hp%runs_now). eexists.
    split; [apply run_leads, recorded_one; left; apply step_answered; [by split|done]|].
    exists g. split_and!; [done..|]. apply Hcut. destruct Hp as (M&HM&Hh). exists M. split; [|done].
    intros f Hf. destruct (HM f Hf) as (d'&Hd'&Hr). exists d'. split; [|done].
    destruct (step_cut_short (disk_blocks g) d d' q Hd') as (s'&_&_&_). simpl. unfold outcomes in Hd'.
      simpl in Hd'.
    destruct (faults _ _); simpl in *.
    + apply elem_of_cons in Hd' as [->|Hd']; [by left|]. apply elem_of_list_singleton in Hd' as ->. right.
      by left.
    + apply elem_of_list_singleton in Hd' as ->. by left.
  - destruct Hs as (g&d&->&Hp%runs_now).
    set (L := if decide (Forall (λ w, fits (disk_blocks g) w.1 (length w.2)) ws) then [written_all d ws]
      else []).
    exists (cut (settled (disk_blocks g) d) (exactly <$> L)). split.
    + apply group_cut_leads. intros d' [->|Hd']%elem_of_cons; [apply group_idle|]. unfold L in Hd'.
      destruct (decide _); [|by apply elem_of_nil in Hd']. apply elem_of_list_singleton in Hd' as ->.
      apply group_run; by auto.
    + exists g. split_and!; [done..|]. apply Hcut. destruct Hp as (M&HM&Hh). exists M. split; [|done].
      intros f Hf. destruct (HM f Hf) as [Hr|[Hrange Hr]].
      * exists d. split; [|done]. apply elem_of_app. right. by left.
      * exists (written_all d ws). split; [|done]. apply elem_of_app. left. unfold L.
        rewrite decide_True by done. by left.
  - destruct Hs as (g&d&->&Hp%runs_now). eapply Hquiet; [done..|by left].
  - destruct Hs as (f&d&->&_&Hp%runs_now). eapply Hquiet; [done..|by right].
  - destruct Hs as (g&f&d&->&Hr&Hh&_). eapply Hquiet; [done| |by left]. exists (Medium f []). split; [|done].
    by apply recoverable_safe.
  - by destruct Hc as [|[? ?]].
  - destruct Hs as (g&d&->&_&Hp%runs_now). eapply Hquiet; [done..|by left].
  - destruct Hs as (g&Hsize&Hpower&Hp%runs_now). exists (cut s []).
    split; [apply run_leads, recorded_one; by left|]. exists g.
    split_and!; [done..|].
    by apply Hcut.
Qed.

(** What is answered while no member answers, of a disk that may be [d'] now. *)
Lemma lost_step v n d d' q :
  beyond (count - 1) v = true → d' ∈ outcomes (settled n d) q →
  entry_step Ack (count - 1) v (settled n d) (when_lost q) (settled n d').
Proof.
  intros Hb Hd'. assert (d' = d ∨ faults (settled n d) q = [] ∧ d' = effect q d) as Hd.
  { unfold outcomes in Hd'. destruct (faults _ _); [|left; by apply elem_of_list_singleton in Hd'].
    apply elem_of_cons in Hd' as [->|Hd']; [by right|left]. by apply elem_of_list_singleton in Hd'. }
  unfold when_lost. destruct q; try (left; apply step_answered; [|done]; split; [done|];
    destruct Hd as [->|[? ->]]; [by left|by right]).
  right. split; [done|]. split; [done|]. destruct Hd as [->|[_ ->]]; done.
Qed.

(** ** Every step

What the machine shows in a step, the contract admits; the machine is then related to the disk after it. *)

Definition simulated (z : machine) (es : list (entry block)) (z' : machine) : Prop := ∀ v s,
  0 < count → related z v s → ∃ s', recorded_run Ack (count - 1) v s es s' ∧ related z' (devices_by v es) s'.

(** Several writes were performed, *)
Lemma group_answers ws ms c y x h :
  simulated (Group ws (Finish (ms, c, (y, true))), x, h) (Event <$> writes_shown ws Ok) (Idle y ms c, x, h).
Proof.
  intros v s Hpos (Hs&Hfine&Hh). simpl in Hs.
  destruct Hs as (g&d&->&(T1&HT1&M&(f&->&<-&Hrange&Hrep)&Hm&Hms&Hc)%runs_ends). cbn [fst snd] in *.
  exists (settled (disk_blocks (shape y)) (written_all d ws)).
  split; [apply recorded_writes, group_run; [by apply Hrange|by left]|]. rewrite devices_by_writes.
  split; [|done]. exists f, (written_all d ws). split_and!; try done. by eapply mirrors_more.
Qed.

(** or no member answered in the middle of them. *)
Lemma group_stops ws x h :
  simulated (Group ws Stop, x, h) (Event <$> writes_shown ws UnknownOutcome) (Lost, x, h).
Proof.
  intros v s Hpos (Hs&Hfine&Hh). simpl in Hs. rewrite Hh in * by done. destruct Hs as (g&d&->&Hp%runs_stops).
  apply stopped_all in Hp as [Hall (f&(d'&Hrun&Hr)%group_unknown&Hx)]; [|apply Hfine].
  exists (settled (disk_blocks g) d'). split; [by apply recorded_writes|]. rewrite devices_by_writes.
  split; [|done]. by exists g, f, d'.
Qed.

(** A resync begins. *)
Lemma settle_starts y ms c x h :
  simulated (Idle y ms c, x, h) [] (Settling y (settle size count ms c), x, h).
Proof.
  intros v s Hpos (Hs&Hfine&Hh). simpl in Hs.
  destruct Hs as (f&d&Hm&<-&<-&Hy&->). eexists. split; [constructor|]. split; [|done]. exists f, d.
  split_and!; [done..|]. apply runs_start. apply safe_settle; try done;
    [by apply (safe_represents _ y f d)|].
  intros i Hi Hno. destruct (up (device_at x i)) eqn:Hup; [|by apply Hfine].
  destruct Hm as [Hm _]. by destruct (holds_members _ _ _ _ _ Hm i Hi Hup).
Qed.

(** It ends: what is up has all that was flushed. *)
Lemma settle_ends y ms c x h :
  simulated (Settling y (Finish (ms, c)), x, h) [Settle Ok] (Idle y ms c, x, h).
Proof.
  intros v s Hpos (Hs&Hfine&Hh). simpl in Hs.
  destruct Hs as (f&d&->&Hy&(T1&HT1&Hm&Hms&Hc)%runs_ends). simpl in *. rewrite Hh in * by done.
  exists (settled (disk_blocks (shape y)) d). split; [by apply recorded_one|]. split; [|split; [|done]].
  + exists f, d. split_and!; try done. eapply mirrors_more; [|done]. by intros i _ ?%elem_of_nil.
  + destruct Hfine as [Hdown Hback]. split; simpl; [|by intros i ?%elem_of_nil]. intros i Hi Hup.
    rewrite app_nil_r. apply elem_of_list_filter.
      split; [|by specialize (Hdown i Hi Hup); rewrite app_nil_r in Hdown].
    intros Hin. rewrite Hback in Hup; [done|done|apply not_elem_of_nil].
Qed.

(** Recovery ends. What failed meanwhile is told. *)
Lemma recovery_ends (on : bool) ms c y x h :
  simulated (Recovery on (Finish (ms, c, Some y)), x, h)
    ((if on then [] else [Event (Crash Ok)]) ++ told h) (Idle y ms c, x, []).
Proof.
  intros v s Hpos (Hs&Hfine&Hh). simpl in Hs.
  destruct on; simpl.
  + rewrite Hh in * by done. destruct Hs as (g&d&->&_&(T1&HT1&M&(y'&[=
    <-]&f'&->&<-&Hrep)&Hm&Hms&Hc)%runs_ends).
    simpl in *. eexists. split; [constructor|]. split; [|done]. exists f', d. split_and!; try done.
      by eapply mirrors_more.
  + destruct Hs as (g&Hsize&Hpower&(T1&HT1&M&(y'&d&[= <-]&Hd&f'&->&<-&Hrep)&Hm&Hms&Hc)%runs_ends).
    simpl in *.
    destruct (told_run h v (settled (disk_blocks (shape y)) d) x) as (v'&->&Hrun&Hfine'&Hin); [done..|].
    eexists. split.
    * change (Event (Crash Ok) :: told h) with ([Event (Crash Ok)] ++ told h).
      eapply recorded_run_app; [|exact Hrun]. apply recorded_one. left. exists (exactly d), d.
      split_and!; [done| |by rewrite Hsize]. split; [|done]. intros l. by left.
    * split; [|done]. exists f', d. split_and!; try done. eapply mirrors_more; [|done]. intros i Hi HT.
      apply Hin. by auto.
Qed.

(** No member answers: during a request, *)
Lemma request_stops q x h :
  simulated (Busy q Stop, x, h) [when_lost q] (Lost, x, h).
Proof.
  intros v s Hpos (Hs&Hfine&Hh). simpl in Hs.
  rewrite Hh in * by done. destruct Hs as (g&d&->&Hp%runs_stops).
  apply stopped_all in Hp as [Hall (f&(d'&Hd'&Hr)&Hx)];
    [|apply Hfine].
  assert (beyond (count - 1) v = true) as Hb.
  { apply all_beyond; [done|]. intros i Hi. specialize (Hall i Hi). by rewrite app_nil_r in Hall. }
  exists (settled (disk_blocks g) d'). split; [apply recorded_one; by apply lost_step|].
  assert (devices_by v [when_lost q] = v) as -> by by destruct q. split; [|done]. by exists g, f, d'.
Qed.

(** or during recovery. *)
Lemma recovery_stops (on : bool) x h :
  simulated (Recovery on Stop, x, h)
    ((if on then [] else [Event (Crash Ok)]) ++ told h) (Lost, x, []).
Proof.
  intros v s Hpos (Hs&Hfine&Hh). simpl in Hs.
  destruct on; simpl.
  + rewrite Hh in * by done. destruct Hs as (g&d&->&_&Hp%runs_stops).
    apply stopped_all in Hp as [Hall (f&Hr&Hx)]; [|apply Hfine].
    eexists. split; [constructor|]. split; [|done]. by exists g, f, d.
  + destruct Hs as (g&Hsize&Hpower&Hp%runs_stops).
    apply stopped_all in Hp as [Hall (f&(d&Hd&Hr)&Hx)]; [|apply Hfine].
    destruct (told_run h v (settled (disk_blocks g) d) x) as (v'&->&Hrun&Hfine'&Hin); [done..|].
    eexists. split.
    * change (Event (Crash Ok) :: told h) with ([Event (Crash Ok)] ++ told h).
      eapply recorded_run_app; [|exact Hrun]. apply recorded_one. left. exists (exactly d), d.
      split_and!; [done| |by rewrite Hsize]. split; [|done]. intros l. by left.
    * split; [|done]. exists g, f, d. split_and!; try done; [|intros i Hi; by apply Hin, Hall].
      eapply holds_more; [|done]. auto.
Qed.

(** A disk that is lost answers. *)
Lemma lost_answers q x h :
  simulated (Lost, x, h) [when_lost q] (Lost, x, h).
Proof.
  intros v s Hpos (Hs&Hfine&Hh). simpl in Hs.
  rewrite Hh in * by done. destruct Hs as (g&f&d&->&Hr&Hx&Hall). exists (settled (disk_blocks g) d). split.
  + apply recorded_one, lost_step; [|apply (outcomes_before (settled (disk_blocks g) d))].
    apply all_beyond; [done|]. intros i Hi. specialize (Hall i Hi). by rewrite app_nil_r in Hall.
  + assert (devices_by v [when_lost q] = v) as -> by by destruct q. split; [|done]. by exists g, f, d.
Qed.

(** It opens again. *)
Lemma lost_reopens x h :
  simulated (Lost, x, h) [] (Recovery true (reopen size x), x, h).
Proof.
  intros v s Hpos (Hs&Hfine&Hh). simpl in Hs.
  destruct Hs as (g&f&d&->&Hr&Hx&Hall). eexists. split; [constructor|]. split; [|done]. exists g, d.
  split_and!; [done..|]. apply runs_start. eapply safe_opened; [by apply recoverable_safe|done..|].
  intros f' x' ms c Hf' Hm <- <-. eapply safe_mirrored; [|done..]. eapply recover_on; [|done|].
  + apply (recoverable_safe g d f); [done|by apply survives_leaves].
  + intros y m Hk. by exists y.
Qed.

(** The power fails, and comes back. *)
Lemma power_is_cut c x x' h v s :
  powered c = true ∨ (∃ p, c = Recovery false p) → loses_power x x' → related (c, x, h) v s →
  ∃ s', leads v s (when_cut c) s' ∧ related (Off, x', h) (devices_by v (when_cut c)) s'.
Proof.
  intros Hc Hx' (Hs&Hfine&Hh). simpl in Hs.
  destruct (serves_cut _ c x x' s v Hs Hc Hx') as (s'&Hleads&Hs'). exists s'. split; [done|].
  assert (devices_by v (when_cut c) = v) as ->.
  { destruct c as [|q ?|ws ?| | | | |]; try done; [by destruct q|]. cbn [when_cut].
    by rewrite devices_by_app, devices_by_writes. }
  split; [done|]. split; [|done]. eapply fine_up; [|done]. intros i. destruct Hx' as (_&_&Hd).
  by destruct (Hd i) as (f&_&->).
Qed.

Lemma power_is_back x h :
  simulated (Off, x, h) [] (Recovery false (reopen size x), x, h).
Proof.
  intros v s Hpos (Hs&Hfine&Hh). simpl in Hs.
  destruct Hs as (g&Hsize&Hpower&(M&HM&Hx)). exists s. split; [constructor|]. split; [|done]. exists g.
  split_and!; [done..|]. apply runs_start. eapply safe_opened; [done..|]. intros f x' ms c Hf Hm <- <-.
  eapply safe_mirrored; [|done..]. destruct (HM f (survives_leaves _ _ Hf)) as (d&Hd&Hr).
  eapply recover_on; [done| |].
  + intros f' Hf'. by exists d.
  + intros y m Hk. by exists y, d.
Qed.

(** A device fails, at any moment. *)
Lemma a_device_fails c i x x' h :
  i < count → device_fails i x x' →
  simulated (c, x, h) (if powered c then [Fail i Ok] else [])
    (c, x', if powered c then h else i :: h).
Proof.
  intros Hi Hx' v s Hpos (Hs&Hfine&Hh). simpl in Hs.
  pose proof (device_fails_fails _ _ _ Hx') as Hfails. pose proof (serves_fails _ _ _ _ _ Hfails Hs) as Hs'.
  destruct Hfine as [Hdown Hback]. destruct Hx' as (dv&(f&_&->)&->). destruct (powered c) eqn:Hon; simpl.
  + exists s. assert (power s = true) as Hpower.
    { clear -Hs Hon. destruct c as [| | | | | | |[]]; simpl in *; try done; naive_solver. }
    split; [by apply recorded_one|]. split; [|split; [|intros _; by apply Hh]].
    * eapply serves_more; [|done]. intros j _. simpl. rewrite !elem_of_app, elem_of_with. tauto.
    * split; intros j; simpl; destruct (decide (j = i)) as [->|Hne].
      -- intros _ _. rewrite elem_of_app, elem_of_with. auto.
      -- intros Hj Hup. specialize (Hdown j Hj Hup). rewrite elem_of_app, elem_of_with in *. tauto.
      -- by intros [? _]%elem_of_list_filter.
      -- intros [_ Hj]%elem_of_list_filter. by apply Hback.
  + exists s. split; [constructor|]. split; [|split; [|by rewrite Hon]].
    * eapply serves_more; [|done]. intros j _. rewrite !elem_of_app, elem_of_cons. tauto.
    * split; intros j; simpl; destruct (decide (j = i)) as [->|Hne].
      -- intros _ _. rewrite elem_of_app, elem_of_cons. auto.
      -- intros Hj Hup. specialize (Hdown j Hj Hup). rewrite elem_of_app, elem_of_cons in *. tauto.
      -- rewrite not_elem_of_cons. naive_solver.
      -- rewrite not_elem_of_cons. intros ? [_ ?]. by apply Hback.
Qed.

(** The last member is replaced: all is lost. *)
Lemma last_is_replaced y ms c i f x h :
  i < count → filter (λ j, j ≠ i) ms = [] →
  simulated (Idle y ms c, x, h) [Replace i Ok]
    (Lost, replaced i f [] c x, h).
Proof.
  intros Hi Hms v s Hpos (Hs&Hfine&Hh). simpl in Hs.
  destruct Hs as (f'&d&[Hm _]&<-&<-&Hy&->). rewrite Hh in * by done. eexists.
  split; [by apply recorded_one|].
  split; [|split; [by apply fine_replaced|done]]. exists (shape y), f', d.
    split_and!; [done|by exists y| |].
  + assert (replaced i f [] (clean x) x = replaced i f (filter (λ j, j ≠ i) (members x)) (clean x) x) as ->
      by by rewrite Hms.
    apply holds_replaced; [done|apply elem_of_app; left; by apply elem_of_with; left|].
    by eapply holds_failed.
  + intros j Hj. rewrite elem_of_app. left. apply elem_of_with.
    destruct (decide (j = i)) as [|Hne]; [by left|right].
    destruct (up (device_at x j)) eqn:Hup.
    * destruct (holds_members _ _ _ _ _ Hm j Hj Hup) as [Hin|Hin]; [|by rewrite app_nil_r in Hin].
      assert (j ∈ filter (λ j, j ≠ i) (members x)) as Hf by by apply elem_of_list_filter.
      rewrite Hms in Hf. by apply elem_of_nil in Hf.
    * destruct Hfine as [Hdown _]. specialize (Hdown j Hj Hup). by rewrite app_nil_r in Hdown.
Qed.

(** A device of a lost disk is replaced. *)
Lemma lost_is_replaced i f x h :
  i < count →
  simulated (Lost, x, h) [Replace i Ok]
    (Lost, replaced i f (filter (λ j, j ≠ i) (members x)) (clean x) x, h).
Proof.
  intros Hi v s Hpos (Hs&Hfine&Hh). simpl in Hs.
  destruct Hs as (g&f'&d&->&Hr&Hm&Hall). rewrite Hh in * by done. eexists. split; [by apply recorded_one|].
  split; [|split; [by apply fine_replaced|done]]. exists g, f', d. split_and!; [done..| |].
  + apply holds_replaced; [done|apply elem_of_app; left; by apply elem_of_with; left|].
    by eapply holds_failed.
  + intros j Hj. specialize (Hall j Hj). rewrite elem_of_app in *.
    destruct Hall as [|Hn]; [|by apply elem_of_nil in Hn].
    left. apply elem_of_with. by right.
Qed.

Lemma related_move z es z' v s :
  0 < count → related z v s → move size count z es z' →
  ∃ s', leads v s es s' ∧ related z' (devices_by v es) s'.
Proof.
  intros Hpos Hz Hmove.
  assert ((∃ s', recorded_run Ack (count - 1) v s es s' ∧ related z' (devices_by v es) s') →
    ∃ s', leads v s es s' ∧ related z' (devices_by v es) s') as Hplain.
  { intros (s'&Hrun&Hrel). exists s'. split; [by apply run_leads|done]. }
  destruct Hmove as [y ms c q places x h|y ms c ws places x h|y ms c u x h|y ms c x h|y ms c x h
    |q p x p' x' h Hio|ws p x p' x' h Hio|p x p' x' h Hio|y p x p' x' h Hio|on p x p' x' h Hio
    |q ms c y r data x h|ws ms c y x h|ws ms c y x h|ms c y x h|y ms c x h|on ms c y x h
    |q x h|ws x h|x h|y x h|on x h|q x h|x h|x h|y ms c x h|x h|c x x' h Hc Hx'|x h
    |c i x x' h Hi Hx'|y ms c i x h Hi|i x h Hi|i x h Hi|y ms c i f x h Hi Hms|y ms c i f x h Hi Hms|i f x h
      Hi];
    match goal with
    | H : loses_power _ _ |- _ => by eapply power_is_cut
    | _ => apply Hplain; clear Hplain; pose proof Hz as (Hs&Hfine&Hh); simpl in Hs
    end.
  - destruct Hs as (f&d&Hm&<-&<-&Hy&->). eexists. split; [constructor|]. split; [|done]. exists (shape y), d.
    split; [done|]. apply runs_start. eapply safe_mirrored; [by apply crash_safe_perform|done..].
  - destruct Hs as (f&d&Hm&<-&<-&Hy&->). eexists. split; [constructor|]. split; [|done]. exists (shape y), d.
    split; [done|]. apply runs_start. eapply safe_mirrored; [by apply crash_safe_write_group|done..].
  - destruct Hs as (f&d&Hm&<-&<-&Hy&->). eexists. split; [constructor|]. split; [|done]. exists (shape y), d.
    split; [done|]. apply runs_start. eapply safe_mirrored; [by apply crash_safe_maintain|done..].
  - by apply settle_starts.
  - destruct Hs as (f&d&[[Hwithin Hclean Hmem Hdup Hdown] Hr]&<-&<-&Hy&->). eexists. split; [constructor|].
    split; [|split; [exact (fine_up v h x (Array (device_at x) (members x) true) (λ _,
      eq_refl) Hfine)|done]]. exists f, d. split; [|done].
    split; [by split|done].
  - destruct Hs as (g&d&->&Hp). eexists. split; [constructor|].
    split; [|split; [eapply fine_up; [by intros; eapply array_io_up|done]|done]]. exists g, d.
      split; [done|]. by eapply runs_io.
  - destruct Hs as (g&d&->&Hp). eexists. split; [constructor|].
    split; [|split; [eapply fine_up; [by intros; eapply array_io_up|done]|done]]. exists g, d.
      split; [done|]. by eapply runs_io.
  - destruct Hs as (g&d&->&Hp). eexists. split; [constructor|].
    split; [|split; [eapply fine_up; [by intros; eapply array_io_up|done]|done]]. exists g, d.
      split; [done|]. by eapply runs_io.
  - destruct Hs as (f&d&->&Hy&Hp). eexists. split; [constructor|].
    split; [|split; [eapply fine_up; [by intros; eapply array_io_up|done]|done]]. exists f, d.
      split_and!; [done..|].
    by eapply runs_io.
  - eexists. split; [constructor|]. split; [|split; [eapply fine_up; [by intros;
    eapply array_io_up|done]|done]].
    destruct on; [destruct Hs as (g&d&->&?&Hp); exists g, d|destruct Hs as (g&?&?&Hp); exists g];
      split_and!; try done; by eapply runs_io.
  - destruct Hs as (g&d&->&(T1&HT1&M&(f'&d'&->&<-&Hrep&Hstep)&Hm&Hms&Hc)%runs_ends). cbn [fst snd] in *.
    exists (settled (disk_blocks (shape y)) d'). split; [apply recorded_one; by left|].
    assert (devices_by v [Event (event_of q r data)] = v) as -> by by destruct q. split; [|done].
      exists f', d'. split_and!; try done.
    by eapply mirrors_more.
  - by apply group_answers.
  - destruct Hs as (g&d&->&(T1&HT1&M&(f&->&<-&_&Hrep)&Hm&Hms&Hc)%runs_ends). cbn [fst snd] in *.
    eexists. split; [constructor|]. split; [|done]. exists f, d. split_and!; try done. by eapply mirrors_more.
  - destruct Hs as (g&d&->&(T1&HT1&M&(f'&->&<-&Hrep)&Hm&Hms&Hc)%runs_ends). simpl in *.
    eexists. split; [constructor|]. split; [|done]. exists f', d. split_and!; try done.
      by eapply mirrors_more.
  - by apply settle_ends.
  - by apply recovery_ends.
  - by apply request_stops.
  - by apply group_stops.
  - destruct Hs as (g&d&->&Hp%runs_stops). apply stopped_all in Hp as [Hall (f&Hr&Hx)]; [|apply Hfine].
    eexists. split; [constructor|]. split; [|done]. by exists g, f, d.
  - destruct Hs as (f&d&->&Hy&Hp%runs_stops). apply stopped_all in Hp as [Hall (f'&Hr&Hx)]; [|apply Hfine].
    exists (settled (disk_blocks (shape y)) d). split; [by apply recorded_one|]. split; [|done].
    by exists (shape y), f', d.
  - by apply recovery_stops.
  - by apply lost_answers.
  - destruct Hs as (g&f&d&->&Hr&Hx&Hall). eexists. split; [by apply recorded_one|]. split; [|done].
    by exists g, f, d.
  - by apply lost_reopens.
  - destruct Hs as (f&d&?&?&?&?&->). eexists. split; [by apply recorded_one|]. split; [|done]. by exists f, d.
  - destruct Hs as (g&f&d&->&Hr&Hx&Hall). eexists. split; [by apply recorded_one|]. split; [|done].
    by exists g, f, d.
  - by apply power_is_back.
  - by apply (a_device_fails _ _ _ _ _ Hi Hx').
  - destruct Hs as (f&d&[Hm _]&<-&<-&Hy&->). rewrite Hh in * by done. eexists.
    split; [by apply recorded_one|].
    split; [|split; [by apply fine_returned|done]]. unfold devices_by. cbn [foldl]. rewrite failed_returned.
    exists f, d. split_and!; try done. apply mirrors_settled, holds_comes_back; [by apply Hfine|done].
  - destruct Hs as (g&f&d&->&Hr&Hm&Hall). rewrite Hh in * by done. eexists. split; [by apply recorded_one|].
    split; [|split; [by apply fine_returned|done]]. unfold devices_by. cbn [foldl]. rewrite failed_returned.
    exists g, f, d. split_and!; try done. apply holds_comes_back; [by apply Hfine|done].
  - destruct Hs as (g&Hsize&Hpower&(M&HM&Hx)). exists s. split; [constructor|].
    split; [|split; [by apply fine_comes_back|done]]. exists g. split_and!; [done..|]. exists M.
      split; [done|].
    apply holds_comes_back; [by apply Hfine|done].
  - destruct Hs as (f'&d&[Hm _]&<-&<-&Hy&->). rewrite Hh in * by done. eexists.
    split; [by apply recorded_one|].
    split; [|split; [by apply fine_replaced|done]]. exists f', d. split_and!; try done. apply mirrors_settled.
    apply holds_replaced; [done|apply elem_of_app; left; by apply elem_of_with; left|].
      by eapply holds_failed.
  - by apply (last_is_replaced y ms c _ _ _ _ Hi Hms).
  - by apply (lost_is_replaced _ _ _ _ Hi).
Qed.

(** ** A new disk *)

Lemma crash_safe_any {A} (Q : A → medium block → Prop) (p : program block A) m :
  Q (execute p m).1 (execute p m).2 → crash_safe (λ _, True) Q p m.
Proof. revert m. induction p; simpl; intros m HQ; (split; [done|]); auto. Qed.

Lemma complete_up {A} (p : array_program block A) x i :
  up (device_at (complete p x).2 i) = up (device_at x i).
Proof.
  revert x. induction p as [r| | |j a k IH|j a b k IH|j k IH|ms c k IH]; simpl; intros x; try done;
    [| |apply (IH (Array (device_at x) ms c))].
  - destruct (up (device_at x j)) eqn:Hup; rewrite IH; [|done]. simpl. by destruct (decide (i = j)) as [->|].
  - destruct (up (device_at x j)) eqn:Hup; rewrite IH; [|done]. simpl. by destruct (decide (i = j)) as [->|].
Qed.

Lemma formatted_related n z : formatted size count n z → related z all_good (created n).
Proof.
  intros (g&f&ms&c&y&x&<-&Hpos&Hend&->). split; [|split; [|done]].
  - assert (mirrors (failed all_good ++ []) (Medium f []) (Array (λ _,
    Device true (Medium f [])) (seq 0 count) false)) as Hx.
    { apply mirrors_settled. split; simpl; [by intros i _ a b _|done| |apply NoDup_seq|done].
      intros i Hi _. left. simpl. apply elem_of_list_In, in_seq. lia. }
    assert (crash_safe (λ _, True)
      (λ r m, ∀ y, r = Some y → ∃ f', m = Medium f' [] ∧ shape y = g ∧ represents y f' blank)
      (format g) (Medium f [])) as Hformat.
    { apply crash_safe_any. intros y' Hy'. destruct (execute (format g) _) as [r m] eqn:Hex. simpl in *.
      subst r.
      apply format_represents in Hex; [done|by intros a _ []]. }
    pose proof (safe_mirrored size count _ _ _ _ _ _ (seq 0 count) false Hformat Hx eq_refl eq_refl) as Hsafe.
    eapply array_safe_complete in Hsafe; [|by rewrite Hend]. rewrite Hend in Hsafe.
    destruct Hsafe as (M&Hq&Hm&Hms&Hc). simpl in *.
    destruct (Hq y eq_refl) as (f'&->&<-&Hrep). by exists f', blank.
  - split; [|by intros i ?%elem_of_nil]. intros i _. pose proof (complete_up
      (mirrored size (seq 0 count) false (format g)) (Array (λ _,
        Device true (Medium f [])) (seq 0 count) false) i) as Hup.
    rewrite Hend in Hup. simpl in Hup. by rewrite Hup.
Qed.

(** ** Every trace *)

Lemma mirrored_disk_refines n z tr z' :
  formatted size count n z → lives size count z tr z' →
    admits_recorded Ack (count - 1) (Event (Create n) :: tr).
Proof.
  intros Hz Hlives. assert (0 < count) as Hpos by by destruct Hz as (?&?&?&?&?&?&_&?&_).
  assert (∀ v s, related z v s → shows v s tr) as Hrun.
  { clear Hz. induction Hlives as [z|z es z1 tr z2 Hmove _ IH]; intros v s Hrel; [eexists; constructor|].
    destruct (related_move _ _ _ _ _ Hpos Hrel Hmove) as (s1&Hleads&Hrel1). by apply Hleads, IH. }
  destruct (Hrun all_good (created n)) as [s' Hs']; [by apply formatted_related|]. by exists n, tr, s'.
Qed.

End Refinement.
