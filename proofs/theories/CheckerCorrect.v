(** The checker is exact: [check] accepts a trace if and only if the contract admits it. *)
From stdpp Require Import pmap.
From LogDisk Require Import VirtualDisk VirtualDiskProperties RecordedTrace Checker CheckerWorlds.

Section CheckerCorrect.
Context {V : Type} `{EqDecision V, Value V}.
Implicit Types (σ : nat → V) (w : @world V) (s : state V).
Notation over := (beside true). Notation under := (beside false).

Lemma loses_over p tolerates v σ w s from lba count data s' :
  over σ w s → beyond tolerates v = true → loses s s' →
  ∃ w', w' ∈ entry_worlds p tolerates v (Event (Read from lba count (Refused DataLost) data)) w
        ∧ choices w' = choices w ∧ over σ w' s'.
Proof. intros Hov Hb (Hp & ->). pose proof Hov as [(? & Hpw & ?) _]. exists w. split; [|done]. cbn.
  rewrite <-Hpw, Hp, Hb. left. Qed.

Lemma entry_over p tolerates v σ w s en s' :
  wf w → current p s → suits σ (choices w) → over σ w s → entry_step p tolerates v s en s' →
  ∃ w' σ', w' ∈ entry_worlds p tolerates v en w ∧ suits σ' (choices w') ∧ over σ' w' s'.
Proof.
  intros Hwf Hcur Hs Hov Hstep.
  assert (∀ r, outside s r s' →
    ∃ w' σ', w' ∈ (if powered w then match r with CutShort => [cut_to w (leftovers w)] | _ => [w] end else [])
             ∧ suits σ' (choices w') ∧ over σ' w' s') as Hout.
  { intros r [Hp ->]. pose proof Hov as [(? & Hpw & ?) ?]. rewrite <-Hpw, Hp.
    destruct r; eexists _, σ; (split; [left|]); done. }
  destruct en as [e|d r|d r|d r|r|r]; cbn in Hstep; try (by apply Hout). destruct Hstep as [Hstep|Hl].
  - assert (entry_worlds p tolerates v (Event e) w = advance_one p e w) as ->.
    { destruct e as [| | | | | | | | |from lba count [|[]| |] data|]; try done. exfalso.
      destruct Hstep as [(_ & [Hc|[_ Hc]] & _) _]; [|by apply elem_of_nil in Hc].
      apply elem_of_app in Hc as [Hc|Hc]; revert Hc; unfold out_of_range, missing_view, missing;
        repeat case_match; rewrite ?elem_of_cons, ?elem_of_nil; naive_solver. }
    by eapply advance_over.
  - destruct e as [| | | | | | | | |from lba count [|[]| |] data|]; try done. destruct Hl as [Hb Hl].
    destruct (loses_over p _ _ _ _ _ from lba count data _ Hov Hb Hl) as (w' & ? & Heq & ?).
    exists w', σ. rewrite Heq. done.
Qed.

(** What a rejected [data-lost] leaves to a step of the contract: nothing. *)
Lemma entry_worlds_spec p tolerates v en w w' :
  w' ∈ entry_worlds p tolerates v en w →
  (∃ e, en = Event e ∧ w' ∈ advance_one p e w) ∨
  (∃ from lba count data, en = Event (Read from lba count (Refused DataLost) data) ∧ w' = w ∧
    powered w = true ∧ beyond tolerates v = true) ∨
  (∃ r, (w' = match r with CutShort => cut_to w (leftovers w) | _ => w end) ∧ powered w = true ∧
        ∀ s s', outside s r s' → entry_step p tolerates v s en s').
Proof.
  assert (∀ r, w' ∈ (if powered w then match r with CutShort => [cut_to w (leftovers w)] | _ => [w]
    end else []) →
    (w' = match r with CutShort => cut_to w (leftovers w) | _ => w end) ∧ powered w = true) as Hout.
  { intros r. destruct (powered w); [|by intros ?%elem_of_nil]. by destruct r;
    intros ->%elem_of_list_singleton. }
  destruct en as [e|d r|d r|d r|r|r]; cbn;
    try (intros [? ?]%Hout; right; right; exists r; split_and!; by auto).
  destruct e as [| | | | | | | | |from lba count [|[]| |] data|]; try (intros; left; eexists; by split).
  intros Hin. right; left. exists from, lba, count, data.
  destruct (powered w && beyond tolerates v) eqn:Hb; [|by apply elem_of_nil in Hin].
  apply andb_true_iff in Hb as [Hp Hb].
  apply elem_of_list_singleton in Hin as ->. done.
Qed.

Lemma entry_wf p tolerates v en w w' : wf w → w' ∈ entry_worlds p tolerates v en w → wf w'.
Proof.
  intros Hwf [(e & -> & Hin)|[(? & ? & ? & ? & ? & -> & _)|(r & -> & _)]]%entry_worlds_spec.
  - by eapply advance_wf.
  - done.
  - by destruct r.
Qed.

(** A valuation that suits the worlds after an entry can be had before it, and then the entry is a step. *)
Lemma entry_under p tolerates v σ w en w' :
  wf w → w' ∈ entry_worlds p tolerates v en w → suits σ (choices w') →
  ∃ σ0, suits σ0 (choices w) ∧ ∀ s, under σ0 w s → ∃ s', entry_step p tolerates v s en s' ∧ under σ w' s'.
Proof.
  intros Hwf [(e & -> & Hin)|[(from & lba & count & data & -> & -> & Hp & Hb)|(r & ->
    & Hp & Hstep)]]%entry_worlds_spec
    Hs.
  - assert ((∃ blocks, e = Create blocks) ∨ ∀ blocks, e ≠ Create blocks) as [[blocks ->]|Hne]
      by (destruct e; [left; eauto|right; done..]).
    + destruct (suits_some (next w) (choices w)) as [σ0 Hσ0]; [apply Hwf|]. exists σ0. split; [done|].
      apply elem_of_list_singleton in Hin as ->. intros s _. exists (created blocks).
      split; [by left|apply beside_fresh].
    + exists σ. split; [eapply advance_suits; eauto|]. intros s Hun.
      destruct (advance_under p σ w s e w') as (s' & ? & ?); [done..|]. exists s'. split; [by left|done].
  - exists σ. split; [done|]. intros s Hun. exists s. split; [|done]. right. split; [done|].
    pose proof Hun as [(? & Hpw & ?) _]. split; [by rewrite Hpw|done].
  - exists σ. split; [by destruct r|]. intros s Hun. pose proof Hun as [(? & Hpw & ?) _].
    eexists. split; [apply Hstep; split; [by rewrite Hpw|done]|]. destruct r; try done. by apply beside_cut.
Qed.

Lemma elem_of_distinct w (ws : list world) : w ∈ distinct ws ↔ w ∈ ws.
Proof. unfold distinct. repeat case_match; rewrite ?elem_of_remove_dups; done. Qed.

Lemma elem_of_advance p tolerates v en ws w' :
  w' ∈ advance p tolerates v en ws ↔ ∃ w, w ∈ ws ∧ w' ∈ entry_worlds p tolerates v en w.
Proof.
  unfold advance.
  assert (w' ∈ ws ≫= entry_worlds p tolerates v en ↔ ∃ w, w ∈ ws ∧
    w' ∈ entry_worlds p tolerates v en w) as Hbind.
  { rewrite elem_of_list_bind. naive_solver. }
  destruct ws as [|w [|w2 ws]]; rewrite elem_of_distinct; [done| |done].
  split; [intros ?; exists w; split; [left|done]|]. by intros (? & ->%elem_of_list_singleton & ?).
Qed.

Lemma entry_current p tolerates v s en s' : current p s → entry_step p tolerates v s en s' → current p s'.
Proof. intros Hcur. assert (∀ r, outside s r s' → current p s') as Hout by (intros r [_ ->]; by destruct r).
  destruct en as [e| | | | |]; cbn; eauto. intros [?|Hl]; [by eapply step_current|].
  destruct e as [| | | | | | | | |? ? ? [|[]| |] ?|]; try done. by destruct Hl as (_ & _ & ->). Qed.

(** The worlds after a trace: what [follow] goes through when it never gives up. *)
Fixpoint worlds_after (p : profile) (tolerates : nat) (v : devices) (ws : list world)
  (tr : list (entry V)) : list world :=
  match tr with
  | [] => ws
  | en :: tr => worlds_after p tolerates (devices_after tolerates v en) (advance p tolerates v en ws) tr
  end.

Lemma advance_forall_wf p tolerates v en ws : Forall wf ws → Forall wf (advance p tolerates v en ws).
Proof. rewrite !Forall_forall. intros Hwf w (w0 & ? & ?)%elem_of_advance. eapply entry_wf; eauto. Qed.

Lemma worlds_after_over p tolerates tr : ∀ v ws s s',
  Forall wf ws → current p s → (∃ w σ, w ∈ ws ∧ suits σ (choices w) ∧ over σ w s) →
  recorded_run p tolerates v s tr s' → worlds_after p tolerates v ws tr ≠ [].
Proof.
  induction tr as [|en tr IH]; intros v ws s s' Hwf Hcur (w & σ & Hw & Hs & Hov) Hrun.
  { cbn. by destruct ws; [apply elem_of_nil in Hw|]. }
  inversion Hrun as [|? s1 ? ? Hstep Hrest]; subst. pose proof Hwf as Hwf'. rewrite Forall_forall in Hwf'.
  destruct (entry_over p tolerates v σ w s en s1) as (w' & σ' & Hw' & Hs' & Hov'); auto.
  cbn. eapply (IH _ _ s1 s'); [by apply advance_forall_wf|by eapply entry_current| |done].
  exists w', σ'. split; [|done]. apply elem_of_advance. eauto.
Qed.

Lemma worlds_after_under p tolerates tr : ∀ v ws w' σ, Forall wf ws → w' ∈ worlds_after p tolerates v ws tr →
  suits σ (choices w') → ∃ w σ0, w ∈ ws ∧ suits σ0 (choices w) ∧ ∀ s, under σ0 w s →
  ∃ s', recorded_run p tolerates v s tr s' ∧ under σ w' s'.
Proof.
  induction tr as [|en tr IH]; intros v ws w' σ Hwf Hin Hs.
  { exists w', σ. split_and!; [done..|]. intros s ?. exists s. split; [constructor|done]. }
  destruct (IH _ _ _ _ (advance_forall_wf _ _ _ _ _ Hwf) Hin Hs) as (w1 & σ1 & Hw1 & Hs1 & Hrun).
  apply elem_of_advance in Hw1 as (w & Hw & Hw1). rewrite Forall_forall in Hwf.
  destruct (entry_under p tolerates v σ1 w en w1) as (σ0 & Hs0 & Hstep); auto.
  exists w, σ0. split_and!; [done..|]. intros s Hun. destruct (Hstep s Hun) as (s1 & ? & Hun1).
  destruct (Hrun s1 Hun1) as (s' & ? & ?). exists s'. split; [|done]. by econstructor.
Qed.

Theorem worlds_exact p tolerates blocks tr : worlds_after p tolerates all_good [fresh_world blocks] tr ≠ [] ↔
  ∃ s, recorded_run p tolerates all_good (created blocks) tr s.
Proof.
  assert (Forall wf [@fresh_world V blocks]) as Hwf by (constructor; [apply wf_fresh|done]). split.
  - intros Hne. destruct (worlds_after _ _ _ _ _) as [|w ws] eqn:Heq; [done|].
    assert (w ∈ worlds_after p tolerates all_good [fresh_world blocks] tr) as Hw by (rewrite Heq; left).
    assert (∃ σ, suits σ (choices w)) as [σ Hs].
    { apply (suits_some (next w)). assert (∀ v ws tr, Forall wf ws →
      Forall wf (worlds_after p tolerates v ws tr)) as Hall.
      { intros v ws0 tr0. revert v ws0. induction tr0; cbn; auto using advance_forall_wf. }
      specialize (Hall all_good _ tr Hwf). rewrite Forall_forall in Hall. by apply Hall. }
    destruct (worlds_after_under p tolerates tr _ _ _ _ Hwf Hw Hs)
      as (w0 & σ0 & ->%elem_of_list_singleton & _ & Hrun).
    destruct (Hrun (created blocks)) as (s & ? & _); [apply beside_fresh|]. by exists s.
  - intros [s Hrun]. eapply worlds_after_over; [done| | |done].
    + apply current_exactly.
    + exists (fresh_world blocks), (λ _, zero). split; [left|]. split; [|apply beside_fresh].
      intros j b vs. cbn. by rewrite lookup_empty.
Qed.

(** ** Verdicts *)

Lemma follow_spec p tolerates most tr : ∀ i v ws,
  ws ≠ [] →
  match follow p tolerates most i v ws tr with
  | Accepted ws' => ws' = worlds_after p tolerates v ws tr ∧ ws' ≠ []
  | Rejected j before =>
      ∃ n, j = i + n ∧ n < length tr ∧
        before = worlds_after p tolerates v ws (take n tr) ∧ before ≠ [] ∧
        worlds_after p tolerates v ws (take (S n) tr) = []
  | Undecided j => is_Some most
  end.
Proof.
  induction tr as [|en tr IH]; intros i v ws Hws; cbn [follow]; [done|].
  destruct (advance p tolerates v en ws) as [|w0 ws0] eqn:Hadv.
  - exists 0. split_and!; [lia|cbn; lia|done|done|]. cbn. by rewrite Hadv.
  - destruct (match most with Some n => _ | None => _ end) eqn:Hmost; [by destruct most|].
    specialize (IH (S i) (devices_after tolerates v en) (w0 :: ws0) ltac:(done)).
    destruct (follow _ _ _ _ _ _ _) as [|j before|].
    + cbn. by rewrite Hadv.
    + destruct IH as (n & -> & Hn & Hb & Hne & Hnil). exists (S n). cbn in *. rewrite Hadv.
      split_and!; [lia|lia|done|done|done].
    + done.
Qed.

Lemma admits_recorded_created p tolerates blocks tr :
  admits_recorded p tolerates (Event (Create blocks) :: tr) ↔
  worlds_after p tolerates all_good [fresh_world blocks] tr ≠ [].
Proof.
  rewrite worlds_exact. split.
  - intros (b & rest & s & Heq & Hrun). injection Heq as <- <-. by exists s.
  - intros [s Hrun]. by exists blocks, tr, s.
Qed.

(** An accepted trace is admitted; a rejected one is not, and is so up to, and not with, the event named. *)
Theorem judge_correct p tolerates most tr :
  match judge p tolerates most tr with
  | Accepted _ => admits_recorded p tolerates tr
  | Rejected i _ => ¬ admits_recorded p tolerates (take (S i) tr) ∧
      (0 < i → admits_recorded p tolerates (take i tr))
  | Undecided _ => is_Some most
  end.
Proof.
  assert (∀ tr, (∀ blocks rest, tr ≠ Event (Create blocks) :: rest) →
    ¬ admits_recorded p tolerates (take 1 tr) ∧
            (0 < 0 → admits_recorded p tolerates (take 0 tr))) as Hbad.
  { intros tr0 Htr. split; [|lia]. intros (blocks & rest & s & Heq & _). destruct tr0; [done|].
    injection Heq as -> _. by eapply Htr. }
  unfold judge. destruct tr as [|[[]|d r|d r|d r|r|r] tr]; try (by apply Hbad).
  pose proof (follow_spec p tolerates most tr 1 all_good [fresh_world blocks] ltac:(done)) as Hspec.
  destruct (follow _ _ _ _ _ _ _) as [ws|j before|j].
  - destruct Hspec as [-> ?]. by apply admits_recorded_created.
  - destruct Hspec as (n & -> & _ & -> & Hne & Hnil). split.
    + intros Had. apply admits_recorded_created in Had. by apply Had.
    + intros _. by apply admits_recorded_created.
  - done.
Qed.

(** A prefix of an admitted trace is admitted; so a rejected trace is not. *)
Lemma admits_recorded_take p tolerates n tr :
  0 < n → admits_recorded p tolerates tr → admits_recorded p tolerates (take n tr).
Proof.
  intros Hn (blocks & rest & s & -> & Hrun). destruct n as [|n]; [lia|]. cbn.
  assert (∃ s', recorded_run p tolerates all_good (created blocks) (take n rest) s') as [s' ?].
  { clear Hn. revert n. induction Hrun as [v s0|v s0 en s1 tr s2 Hstep _ IH]; intros [|n]; cbn;
    try by eexists; constructor.
    destruct (IH n) as [s' ?]. exists s'. by econstructor. }
  by exists blocks, (take n rest), s'.
Qed.

Theorem check_recorded_correct p tolerates tr :
  check_recorded p tolerates tr = true ↔ admits_recorded p tolerates tr.
Proof. unfold check_recorded. pose proof (judge_correct p tolerates None tr) as Hj.
  destruct (judge p tolerates None tr) as [ws|i before|i]; [done| |by destruct Hj]. split; [done|].
  intros Had. destruct Hj as [Hnot _]. destruct Hnot. by apply admits_recorded_take; [lia|]. Qed.

Theorem check_correct p tr : check p tr = true ↔ admits p tr.
Proof. unfold check. by rewrite check_recorded_correct, admits_recorded_events. Qed.

End CheckerCorrect.
