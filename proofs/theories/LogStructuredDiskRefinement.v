(** The log-structured disk keeps the contract: forward simulation, for [Ack] and for [Prefix]. *)
From LogDisk Require Import LogStructuredDisk LogStructuredDiskReading LogStructuredDiskInvariant.

Section Refinement.
Context {V : Type} `{Value V}.
Implicit Types (K : design) (r : record V) (c : state V) (s : VirtualDisk.state V).

(** While the disk runs, the contract's disk is what the applied records make, and each prefix of them that a
crash may leave is among the survivors.  While it is down, the whole log is what recovery will bring back. *)
Record simulates K c s : Prop := Simulates {
  sim_invariant : invariant K c;
  sim_size : VirtualDisk.size s = size c;
  sim_running : at_phase c = Running →
    power s = true ∧ now s = after (take (applied (mem c)) (history c)) ∧
    ∀ k, flushed (dev c) ≤ k ≤ applied (mem c) → exactly (after (take k (history c))) ∈ survivors s;
  sim_down : at_phase c ≠ Running →
    match pending c with
    | Some _ => power s = true ∧ now s = after (history c)
    | None => power s = false ∧ exactly (after (history c)) ∈ survivors s
    end;
}.

(** What survives once record [r] has been answered. *)
Definition left_by (p : profile) s r : list (image V) :=
  match r with
  | RWrite _ _ | RUnmap _ _ => buffered p s (effect r (now s))
  | _ => recorded p s (effect r (now s))
  end.

Lemma step_shown p s r a s' : VirtualDisk.step p s (shown r a) s' ↔
  answered s a (faults (VirtualDisk.size s) (now s) r) (excuses r) (effect r (now s)) (left_by p s r) s'.
Proof. by destruct r. Qed.

Lemma left_by_new p s r : p ≠ Block → exactly (effect r (now s)) ∈ left_by p s r.
Proof. intros Hp. destruct p; [| |done]; destruct r; simpl; by left. Qed.

Lemma left_by_old s r i : i ∈ survivors s → i ∈ left_by Prefix s r.
Proof. intros Hi. destruct r; simpl; by right. Qed.

Lemma missing_view_same (d e : disk V) from : same_disk d e → missing_view d from = missing_view e from.
Proof. intros Hd. destruct from as [|n]; [done|]. exact (faults_same 0 (RDelete n) _ _ Hd). Qed.

(** A step that shows nothing and leaves phase, request, history and the applied records as they are, and
flushes no less, changes nothing for the contract. *)
Lemma simulates_silent K c c' s : simulates K c s → invariant K c' → size c' = size c →
  at_phase c' = at_phase c → pending c' = pending c → history c' = history c →
  applied (mem c') = applied (mem c) → flushed (dev c) ≤ flushed (dev c') → simulates K c' s.
Proof. intros [_ Hsize Hrun Hdown] Hinv' Hs Hp Hq Hh Ha Hf. split; rewrite ?Hs, ?Hp, ?Hq, ?Hh, ?Ha; try done.
  intros Hphase. destruct (Hrun Hphase) as (? & ? & Hk). split_and!; try done. intros k ?. apply Hk. lia. Qed.

Lemma simulates_step K c s es c' :
  sound K → simulates K c s → step K c es c' → ∃ s', VirtualDisk.run (promises K) s es s' ∧ simulates K c' s'.
Proof.
  intros HK Hsim Hstep. pose proof (step_invariant _ _ _ _ HK (sim_invariant _ _ _ Hsim) Hstep) as Hinv'.
  assert (∀ e s', VirtualDisk.step (promises K) s e s' → simulates K c' s' →
    ∃ s', VirtualDisk.run (promises K) s [e] s' ∧ simulates K c' s') as Hone.
  { intros e s' ??. exists s'. split; [|done]. econstructor; [done|constructor]. }
  assert (simulates K c' s → ∃ s', VirtualDisk.run (promises K) s [] s' ∧ simulates K c' s') as Hnone.
  { intros ?. exists s. split; [constructor|done]. }
  assert (promises K ≠ Block) as Hblock by (destruct HK as [[-> | ->] _]; done).
  pose proof Hsim as [Hinv Hsize Hrun Hdown].
  pose proof (pending_is _ _ Hinv) as Hpend. pose proof (log_flushed _ _ Hinv) as Hfl.
  assert (at_phase c = Running → same_disk (seen c) (now s)) as Hseen.
  { intros Hp. destruct (Hrun Hp) as (_ & -> & _). apply (seen_after K); [done|by rewrite Hp]. }
  step_cases Hstep; try (apply Hnone; by apply (simulates_silent _ c)).
    (* what is inside changes nothing *)
  - (* Submit *) apply Hnone. rewrite Hq in Hpend. specialize (Hpend Hp).
    destruct (Hrun Hp) as (Hpow & Hnow & Hsurv). split; [done|done| |simpl; by rewrite Hp]. intros _. simpl.
    rewrite history_submit. split_and!; [done|rewrite take_app_le by (rewrite history_length; lia); done|].
    intros k ?. rewrite take_app_le by (rewrite history_length; lia). by apply Hsurv.
  - (* LogAppend *) apply Hnone. apply (simulates_silent _ c); try done. simpl. lia.
  - (* Acknowledge *)
    rewrite Hq in Hpend. destruct Hpend as (_ & Hl & Hr). destruct (Hrun Hp) as (Hpow & Hnow & Hsurv).
    pose proof (log_valid _ _ Hinv _ _ Hr) as Hfault. rewrite <- Hnow in Hfault.
    eapply Hone; [apply step_shown|]. { split; [done|]. rewrite Hsize. split; [exact Hfault|reflexivity]. }
    assert (after (take (S (applied (mem c))) (history c)) = effect r (now s)) as Hafter
      by (by rewrite (after_take_S _ _ _ Hr), Hnow). split; [done|done| |simpl; by rewrite Hp]. intros _.
    simpl. change (history (acknowledge r c)) with (history c). split_and!; [done|done|]. intros k Hk.
    destruct (decide (k = S (applied (mem c)))) as [->|]. { rewrite Hafter. by apply left_by_new. }
    destruct HK as [[Hack|Hpre] Hrules].
    + rewrite Hf in Hk; [lia|apply Hrules|by rewrite Hack].
    + rewrite Hpre. apply left_by_old, Hsurv. lia.
  - (* Refuse *)
    destruct (Hrun Hp) as (Hpow & Hnow & _). rewrite (faults_same _ r _ _ (Hseen Hp)) in He.
    eapply Hone; [apply step_shown|exact Hsim]. split; [done|]. by rewrite Hsize.
  - (* Read *)
    specialize (Hseen Hp). destruct (Hrun Hp) as (Hpow & Hnow & _).
    rewrite (missing_view_same _ _ from Hseen) in Hmiss. specialize (Hseen from). rewrite Hv in Hseen.
    inversion Hseen as [? w Hvw Hv' Hw|]; subst. eapply Hone; [|exact Hsim]. simpl. split.
    + split; [done|]. unfold out_of_range. rewrite Hsize, decide_True, Hmiss by done. split; [done|].
      by destruct s.
    + intros _. exists w. split; [done|]. apply list_fmap_ext. intros _ l _. apply Hvw.
  - (* RefuseRead *)
    specialize (Hseen Hp). destruct (Hrun Hp) as (Hpow & Hnow & _).
    rewrite (missing_view_same _ _ from Hseen) in He. eapply Hone; [|exact Hsim]. simpl. split; [|done].
    split; [done|]. unfold out_of_range. rewrite Hsize. auto.
  - (* Flush *)
    rewrite Hq in Hpend. specialize (Hpend Hp). destruct (Hrun Hp) as (Hpow & Hnow & _).
    eapply Hone; [simpl; split; [done|]; split; [done|reflexivity]|].
    split; [done|done| |simpl; by rewrite Hp]. intros _. simpl. split_and!; [done|done|].
    intros k Hk. change (history (log_append c)) with (history c).
    replace k with (applied (mem c)) by lia. rewrite Hnow. by left.
  - (* Clean *) apply Hnone. apply (simulates_silent _ c); try done; unfold clean in *;
      destruct (chunks_in _ _); done.
  - (* CheckpointCommit *)
    destruct (commit_same i c) as (Hh & _ & _ & Efl & _). apply Hnone, (simulates_silent _ c);
      try done. by rewrite Efl.
  - (* Truncate *) apply Hnone, (simulates_silent _ c); try done. apply history_truncate.
  - (* Crash *)
    assert (history (crash keep torn garbage c) = take keep (history c)) as Hh by (apply history_crash; lia).
    unfold shown_by_crash. pose proof (recovery_flushed _ _ Hinv) as Hrec.
    assert (∀ s', power s' = false → VirtualDisk.size s' = size c →
      exactly (after (take keep (history c))) ∈ survivors s' →
        simulates K (crash keep torn garbage c) s') as Hend.
    { intros s' Hpow' Hsize' Hin. split; [done|done|done|]. intros _. simpl. by rewrite Hh. }
    destruct (decide (at_phase c = Running)) as [Hp|Hp].
    + destruct (Hrun Hp) as (Hpow & Hnow & Hsurv). destruct (pending c) as [[r|]|].
      * destruct Hpend as (_ & Hl & Hr). pose proof (log_valid _ _ Hinv _ _ Hr) as Hfault.
        rewrite <- Hnow in Hfault. eapply Hone; [apply step_shown; split; [done|reflexivity]|].
        rewrite Hsize, Hfault. apply Hend; [done..|]. simpl. apply elem_of_app.
        destruct (decide (keep = logged c)) as [->|].
        -- left. rewrite Hl, (after_take_S _ _ _ Hr), <- Hnow. by apply left_by_new.
        -- right. apply Hsurv. lia.
      * done.
      * eapply Hone; [reflexivity|]. apply Hend; [done..|]. simpl. apply Hsurv. specialize (Hpend Hp). lia.
    + specialize (Hdown Hp). specialize (Hrec Hp).
      assert (take keep (history c) = history c) as Htake by (apply take_ge; rewrite history_length; lia).
      rewrite Htake in Hend. destruct (pending c) as [[r|]|].
      * by destruct Hpend.
      * destruct Hdown as [Hpow Hnow]. eapply Hone; [simpl; split; [done|reflexivity]|].
        apply Hend; [done..|]. simpl. rewrite Hnow. by left.
      * destruct Hdown as [Hpow Hin]. eapply Hone; [reflexivity|]. by apply Hend.
  - (* Restart *)
    apply Hnone. rewrite Hq in Hpend. specialize (Hpend Hp). destruct (Hrun Hp) as (Hpow & Hnow & _).
    split; [done|done|done|]. intros _. simpl. split; [done|]. rewrite Hnow, take_ge; [done|].
    rewrite history_length. lia.
  - (* Load *)
    apply Hnone. specialize (Hdown ltac:(by rewrite Hp)). split; done.
  - (* Replay *)
    apply Hnone. specialize (Hdown ltac:(by rewrite Hp)). split; [done|done| |done]. simpl. by rewrite Hp.
  - (* Recover *)
    unfold shown_by_recover. specialize (Hdown ltac:(by rewrite Hp)).
    pose proof (recovery_flushed _ _ Hinv ltac:(by rewrite Hp)) as Hf.
    assert (take (applied (mem c)) (history c) = history c) as Htake by (apply take_ge;
      by rewrite history_length).
    assert (∀ s', power s' = true → VirtualDisk.size s' = size c → now s' = after (history c) →
      survivors s' = [exactly (after (history c))] →
      simulates K (State (size c) Running None (dev c) (mem c)) s') as Hend.
    { intros s' Hpow' Hsize' Hnow' Hs'. split; [done|done| |done]. intros _. simpl. rewrite Hs'.
      change (history (State _ _ _ (dev c) _)) with (history c). rewrite Htake. split_and!; [done|done|].
      intros k Hk. rewrite take_ge by (rewrite history_length; lia). by left. }
    destruct (pending c) as [[r|]|].
    + destruct Hpend. congruence.
    + destruct Hdown as [Hpow Hnow]. eapply Hone; [simpl; split; [done|]; split; [done|reflexivity]|].
      apply Hend; try done. simpl. by rewrite Hnow.
    + destruct Hdown as [Hpow Hin]. eapply Hone; [|apply (Hend (VirtualDisk.State (size c) (after (history c))
        [exactly (after (history c))] true)); done].
      exists (exactly (after (history c))), (after (history c)). split; [done|]. split; [|by rewrite Hsize].
      split; [|done]. intros l. simpl. by left.
Qed.

Theorem refines_contract K : sound K → implements (log_structured_disk (V:=V) K) (promises K).
Proof.
  intros HK. apply (forward_simulation (log_structured_disk K) _ (simulates K)).
  - intros blocks c ->. split; [apply initial_invariant|done| |done]. intros _. simpl.
    split_and!; [done|done|]. intros k Hk. replace k with 0 by lia. by left.
  - intros c s es c' Hsim Hstep. by eapply simulates_step.
Qed.

End Refinement.
