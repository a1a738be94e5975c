(** The checker is exact: [check] accepts a trace if and only if the contract admits it. *)
From stdpp Require Import pmap.
From LogDisk Require Import VirtualDisk VirtualDiskProperties RecordedTrace Checker CheckerWorlds.

Section CheckerCorrect.
Context {V : Type} `{EqDecision V, Value V}.
Implicit Types (σ : nat → V) (w : @world V) (s : state V) (x : @shape V) (y : @leftover V)
  (m : Pmap (@cell V)) (data : list V).
Notation over := (beside true). Notation under := (beside false).

(** ** Worlds stay well formed *)

Lemma find_drop_some {A} n n' (l : list (name * A)) a : find n (drop_name n' l) = Some a → find n l = Some a.
Proof. rewrite find_drop_name. by case_decide. Qed.

Lemma below_put n k data m : blocks_below n m → blocks_below n (put k data m).
Proof. revert k m. induction data as [|v data IH]; intros k m Hm; cbn; [done|]. apply IH. intros k'.
  rewrite cell_at_put_one. by case_decide. Qed.

Lemma wf_cut w ys : wf w → (∀ y, y ∈ ys → shape_below (next w) (kept y)) → wf (cut_to w ys).
Proof. by intros (? & ? & ?) ?. Qed.
Lemma wf_leaving w x ys :
  wf w → shape_below (next w) x → (∀ y, y ∈ ys → shape_below (next w) (kept y)) → wf (leaving w x ys).
Proof. by intros (? & ? & ?) ? ?. Qed.

Definition effect_below (n : nat) (f : effect) : Prop :=
  shape_below n (makes f) ∧ ∀ y : leftover, y ∈ leaves f ∨ y ∈ leaves_cut f → shape_below n (kept y).

Lemma answering_wf w r faults excuses f w' :
  wf w → effect_below (next w) (f tt) → w' ∈ answering w r faults excuses f → wf w'.
Proof. intros Hwf [Hx Hys] [_ Hr]%answering_spec.
  assert (wf (happening w (f tt))) by (apply wf_leaving; auto). destruct r; [naive_solver..|]. subst w'.
  destruct faults; apply wf_cut; try done; [auto|apply Hwf]. Qed.

Lemma looking_wf w r faults f w' : wf w → (∀ w', w' ∈ f tt → wf w') → w' ∈ looking w r faults f → wf w'.
Proof. intros Hwf Hf [_ Hr]%looking_spec. destruct r; [naive_solver..|]. subst w'. apply wf_cut;
  [done|apply Hwf]. Qed.

Lemma buffering_below p w lba data : wf w → effect_below (next w) (buffering p w lba data).
Proof.
  intros (Hch & [Hl Hs] & Hys).
  assert (shape_below (next w) (Shape (put (key lba) data (live_blocks (seen w))) (snap_blocks (seen w))))
    as Hx.
  { split; [by apply below_put|done]. }
  unfold effect_below. destruct p; (split; [done|]); cbn; intros y; rewrite ?elem_of_cons, ?elem_of_nil.
  1,2: naive_solver. intros [(z & -> & ?)%elem_of_list_fmap|(z & -> & ?)%elem_of_list_fmap]; cbn; auto.
Qed.

Lemma writing_through_below p told w lba data : wf w → effect_below (next w) (writing_through p told w lba
  data).
Proof.
  intros Hwf. pose proof (buffering_below p w lba data Hwf) as Hb. pose proof Hwf as (_ & _ & Hys).
  assert (∀ y, y ∈ force (key lba) data <$> leftovers w → shape_below (next w) (kept y)) as Hf.
  { intros y (z & -> & Hz)%elem_of_list_fmap. destruct (Hys z Hz). split; [by apply below_put|done]. }
  destruct Hb as [Hx Hb]. destruct p, told; try (by split); (split; [done|]); intros y; cbn in Hb |- *;
    rewrite !elem_of_app; intros Hy; try specialize (Hb y); naive_solver.
Qed.

Lemma recording_below p w x : wf w → shape_below (next w) x → effect_below (next w) (recording p w x).
Proof. intros (Hch & _ & Hys) Hx. unfold effect_below.
  destruct p; (split; [done|]); cbn; intros y; rewrite ?elem_of_cons, ?elem_of_nil; naive_solver. Qed.

Lemma wf_fresh blocks : wf (fresh_world blocks).
Proof.
  assert (shape_below 0 (Shape (∅ : Pmap (@cell V)) [])) by done.
  split_and!; [|done|by intros y ->%elem_of_list_singleton]. split; cbn.
  - intros j. rewrite lookup_empty. split; [lia|by intros []].
  - intros j b vs. by rewrite lookup_empty.
Qed.

Lemma advance_wf p w e w' : wf w → w' ∈ advance_one p e w → wf w'.
Proof.
  intros Hwf. pose proof Hwf as (Hch & [Hl Hsn] & Hys).
  assert (∀ r, w' ∈ looking w r [] (λ _, [leaving w (seen w) [Leftover (seen w) ∅]]) → wf w') as Hflush.
  { intros r. apply looking_wf; [done|]. intros w0 ->%elem_of_list_singleton. apply wf_leaving; [done|done|].
    by intros y ->%elem_of_list_singleton. }
  destruct e as [blocks|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r]; cbn;
    try (apply answering_wf; [done|]).
  - intros ->%elem_of_list_singleton. apply wf_fresh.
  - by apply buffering_below.
  - by apply writing_through_below.
  - by apply buffering_below.
  - apply recording_below; [done|]. split; [done|]. cbn. intros a m. case_decide;
    [by intros [= <-]|apply Hsn].
  - apply recording_below; [done|]. split; [done|]. cbn. intros a m ?%find_drop_some. by eapply Hsn.
  - apply recording_below; [done|]. split; [|done]. cbn. destruct (find n _) eqn:?; cbn; [by eapply Hsn|done].
  - apply Hflush.
  - apply Hflush.
  - apply looking_wf; [done|]. intros w0 (m & ch & _ & _ & Hall & ->)%reading_spec.
    split_and!; [|done|done]. by eapply all_decided_below.
  - destruct r; try (by intros ?%elem_of_nil).
    + intros (y & -> & Hy)%elem_of_list_fmap. specialize (Hys y Hy) as [Hyl Hysn].
      destruct (opens_wf (map_to_list (since y)) (live_blocks (kept y)) (choices w) (next w))
        as (? & ? & ? & _); [done|done|apply NoDup_fst_map_to_list|].
      assert (shape_below (next (resuming w y)) (seen (resuming w y))).
      { split; [done|]. intros a m Ha k. eapply below_mono; [by eapply Hysn|done]. }
      split_and!; [done|done|]. by intros z ->%elem_of_list_singleton.
    + intros ->%elem_of_list_singleton. by apply wf_cut.
Qed.

(** Some valuation suits the choices of a well-formed world: that nothing but bases is taken. *)
Fixpoint from_bases (ch : Pmap (@choice V)) (fuel : nat) (c : @cell V) : V :=
  match c, fuel with
  | Known v, _ => v
  | Open j, S fuel => match ch !! key j with Some (Choice b _) => from_bases ch fuel b | None => zero end
  | Open _, O => zero
  end.

Lemma from_bases_fuel n ch f1 f2 c :
  choices_below n ch → below f1 c → below f2 c → from_bases ch f1 c = from_bases ch f2 c.
Proof. intros Hch. revert f2 c.
  induction f1 as [|f1 IH]; intros f2 [u|j] H1 H2; cbn in *; [by destruct f2|lia|by destruct f2|].
  destruct f2 as [|f2]; [lia|]. cbn. destruct (ch !! key j) as [[b vs]|] eqn:Hj; [|done].
  assert (below j b) by (by eapply Hch). apply IH; (eapply below_mono; [done|lia]). Qed.

Lemma suits_some n ch : choices_below n ch → ∃ σ, suits σ ch.
Proof. intros Hch. exists (λ j, from_bases ch (S j) (Open j)). intros j b vs Hj. left.
  assert (below j b) as Hb by (by eapply Hch). cbn. rewrite Hj. destruct b as [u|k]; [by destruct j|].
  cbn in Hb. change (from_bases ch j (Open k) = from_bases ch (S k) (Open k)).
  eapply from_bases_fuel; [done|cbn; lia..]. Qed.

(** ** Every recorded event *)

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
