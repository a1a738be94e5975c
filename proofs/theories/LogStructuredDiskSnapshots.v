(** Read after snapshot, over whole runs of the log-structured disk. *)
From LogDisk Require Import LogStructuredDisk LogStructuredDiskReading LogStructuredDiskInvariant.

Section Snapshots.
Context {V : Type} `{Value V}.
Implicit Types (K : design) (r : record V) (c : state V) (h : list (record V)) (n : name).

(** ** In a history *)

Lemma snapshot_stays blocks h n v k1 k2 :
  valid blocks h → k1 ≤ k2 ≤ length h → (∀ k, k1 ≤ k < k2 → h !! k ≠ Some (RDelete n)) →
  snaps (after (take k1 h)) !! n = Some v → snaps (after (take k2 h)) !! n = Some v.
Proof.
  intros Hvalid [Hle Hlen] Hno Hn. induction Hle as [|k2 Hle IH]; [done|].
  destruct (lookup_lt_is_Some_2 h k2) as [r Hr]; [lia|].
  rewrite (after_take_S _ _ _ Hr). specialize (IH ltac:(lia) ltac:(intros k ?; apply Hno; lia)).
  pose proof (Hvalid _ _ Hr) as Hfault. specialize (Hno k2 ltac:(lia)). rewrite Hr in Hno.
  destruct r as [| |n'|n'|n']; try done; simpl in *; destruct (decide (n' = n)) as [->|]; try done.
  - unfold taken in Hfault. destruct (valid_name n); [|done].
    by rewrite IH, decide_True in Hfault by by eexists.
  - by rewrite lookup_insert_ne.
  - by rewrite lookup_delete_ne.
Qed.

(** ** In a run *)

(** A run all of whose states satisfy [P]. *)
Inductive steps_within K (P : state V → Prop) c : list (event V) → state V → Prop :=
  | within_nil : P c → steps_within K P c [] c
  | within_cons es c1 tr c2 :
      P c → step K c es c1 → steps_within K P c1 tr c2 → steps_within K P c (es ++ tr) c2.

(** How far the history is told: a record that was submitted and not answered is not in it yet. *)
Definition told c : nat := if decide (at_phase c = Running) then applied (mem c) else logged c.

Definition since (h1 : list (record V)) n c : Prop :=
  take (length h1) (history c) = h1 ∧ length h1 ≤ told c ∧
  ∀ k, length h1 ≤ k < told c → history c !! k ≠ Some (RDelete n).

Definition spares n (es : list (event V)) : Prop := Delete n Ok ∉ es ∧ Delete n CutShort ∉ es.

Lemma told_history K c : invariant K c → told c ≤ logged c.
Proof. intros Hinv. unfold told. destruct (decide _) as [Hp|]; [|done].
  destruct (current_holds _ _ Hinv) as [? _]; [by rewrite Hp|done]. Qed.

Lemma since_same h1 n c c' : since h1 n c → history c' = history c → told c' = told c → since h1 n c'.
Proof. unfold since. by intros ? -> ->. Qed.

Lemma since_step K h1 n c es c' :
  invariant K c → since h1 n c → step K c es c' → spares n es → length h1 ≤ logged c' → since h1 n c'.
Proof.
  intros Hinv Hsince Hstep [Hok Hcut] Hkeep. pose proof (told_history _ _ Hinv) as Htold.
  pose proof (pending_is _ _ Hinv) as Hpend. pose proof (log_flushed _ _ Hinv) as Hfl.
  pose proof Hsince as (Htake & Hle & Hno). step_cases Hstep; try done;
    try (apply (since_same _ _ c); [done..|]; unfold told; by rewrite !decide_False by (simpl; congruence)).
      (* Load, Replay *)
  - (* Submit *)
    assert (told (submit r c) = told c) as Ht by (unfold told; by rewrite !decide_True).
    unfold since. rewrite history_submit, Ht. split_and!; [|done|].
    + rewrite take_app_le; [done|]. rewrite history_length. lia.
    + intros k ?. rewrite lookup_app_l by (rewrite history_length; lia). by apply Hno.
  - (* Acknowledge *)
    rewrite Hq in Hpend. destruct Hpend as (_ & Hl & Hr).
    assert (told c = applied (mem c)) as Ht by (unfold told; by rewrite decide_True).
    assert (told (acknowledge r c) = S (applied (mem c))) as Ht' by (unfold told; by rewrite decide_True).
    unfold since. rewrite Ht'. change (history (acknowledge r c)) with (history c). split_and!; [done|lia|].
    intros k ?. destruct (decide (k = applied (mem c))) as [->|]; [|apply Hno; lia].
    rewrite Hr. intros [= ->]. apply Hok. by left.
  - (* Clean *) apply (since_same _ _ c); [done|..]; unfold clean; by destruct (chunks_in _ _).
  - (* CheckpointCommit *)
    destruct (commit_same i c) as (? & _ & Hl & _). apply (since_same _ _ c); [done..|]. unfold told.
      by rewrite Hl.
  - (* Truncate *)
    apply (since_same _ _ c); [done|apply history_truncate|]. unfold told.
      by rewrite <-!history_length, history_truncate.
  - (* Crash *)
    assert (history (crash keep torn garbage c) = take keep (history c)) as Hh by (apply history_crash; lia).
    assert (told (crash keep torn garbage c) = logged (crash keep torn garbage c)) as Ht by done.
    unfold since. rewrite Ht. split_and!; [|done|].
    + rewrite Hh. rewrite <- history_length, Hh, take_length in Hkeep. rewrite take_take, Nat.min_l by lia.
      done.
    + rewrite Hh. intros k Hk' Hdel. apply lookup_take_Some in Hdel as [Hdel Hlt].
      destruct (decide (k < told c)) as [|Hge]; [exact (Hno k ltac:(lia) Hdel)|]. unfold told in *.
      destruct (decide (at_phase c = Running)) as [Hp|]; [|lia]. unfold shown_by_crash in Hcut.
      destruct (pending c) as [[r|]|]; [|done|rewrite Hpend in Hge by done; lia].
      destruct Hpend as (_ & Hl & Hr). replace k with (applied (mem c)) in Hdel by lia. rewrite Hr in Hdel.
      injection Hdel as ->. apply Hcut. by left.
  - (* Restart *)
    rewrite Hq in Hpend. apply (since_same _ _ c); [done..|]. unfold told. simpl.
    rewrite (decide_True (P := at_phase c = Running)) by done. symmetry. by apply Hpend.
  - (* Recover *)
    destruct (current_holds _ _ Hinv) as [Happ _]; [by rewrite Hp|]. apply (since_same _ _ c); [done..|].
    unfold told. simpl. rewrite (decide_False (P := at_phase c = Running)) by (by rewrite Hp). lia.
Qed.

Lemma since_steps K (P : state V → Prop) h1 n c tr c' : sound K → invariant K c → since h1 n c →
  (∀ c, P c → length h1 ≤ logged c) → steps_within K P c tr c' → spares n tr → since h1 n c'.
Proof.
  intros HK Hinv Hsince HP Hsteps. induction Hsteps as [|c es c1 tr c2 _ Hstep Hrest IH]; intros Hsp; [done|].
  destruct Hsp as [H1 H2]. rewrite elem_of_app in H1, H2. assert (P c1) as Hc1 by (by inversion Hrest).
  apply IH; [by eapply step_invariant| |by split; auto].
  eapply since_step; [done|done|done|split; auto|by apply HP].
Qed.

(** What a snapshot of a running disk reads as. *)
Definition reads_as c n (v : view V) : Prop := ∃ w, snaps (seen c) !! n = Some w ∧ same_view w v.

Lemma since_here K c n : invariant K c → at_phase c = Running →
  since (take (applied (mem c)) (history c)) n c.
Proof. intros Hinv Hp. destruct (current_holds _ _ Hinv) as [Happ _]; [by rewrite Hp|]. unfold since, told.
  rewrite decide_True, take_length, history_length, Nat.min_l by done. split_and!; [done|done|lia]. Qed.

Lemma since_reads K c c' n v : invariant K c → invariant K c' → at_phase c = Running → at_phase c' = Running →
  since (take (applied (mem c)) (history c)) n c' → reads_as c n v → reads_as c' n v.
Proof.
  intros Hinv Hinv' Hp Hp' (Htake & Hle & Hno) (w & Hw & Hwv).
  destruct (current_holds _ _ Hinv) as [Happ _]; [by rewrite Hp|].
  destruct (current_holds _ _ Hinv') as [Happ' _]; [by rewrite Hp'|].
  pose proof (seen_after _ _ Hinv ltac:(by rewrite Hp)) as Hseen. apply same_disk_alt in Hseen as [_ Hseen].
  pose proof (seen_after _ _ Hinv' ltac:(by rewrite Hp')) as Hseen'.
  apply same_disk_alt in Hseen' as [_ Hseen']. specialize (Hseen n). rewrite Hw in Hseen.
  inversion Hseen as [? u Hu Hu' Hafter|]; subst. unfold told in *. rewrite decide_True in * by done.
  rewrite take_length, history_length, Nat.min_l in * by done.
  assert (snaps (after (take (applied (mem c')) (history c'))) !! n = Some u) as Hkept.
  { eapply snapshot_stays; [apply (log_valid _ _ Hinv')| |exact Hno|]; [rewrite history_length; lia|].
    by rewrite Htake. }
  specialize (Hseen' n). rewrite Hkept in Hseen'. inversion Hseen' as [w' ? Hw' Hs|]; subst.
  exists w'. split; [done|]. etrans; [exact Hw'|]. trans w; [by symmetry|done].
Qed.

(** Whatever a run does, as long as no state of it has lost records that were applied at its start (which is
what "the snapshot survives" means where a crash may lose what was acknowledged) and it deletes no snapshot
[n], that snapshot reads at its end as it did at its start. *)
Theorem snapshot_unchanged K c tr c' n v : sound K → reached K c → at_phase c = Running → reads_as c n v →
  steps_within K (λ c', applied (mem c) ≤ logged c') c tr c' → spares n tr → at_phase c' = Running →
  reads_as c' n v.
Proof.
  intros HK Hc Hp Hn Hsteps Hsp Hp'. pose proof (reached_invariant _ _ HK Hc) as Hinv.
  assert (steps K c tr c') as Hrun. { clear -Hsteps. induction Hsteps; [constructor|by econstructor]. }
  pose proof (steps_invariant _ _ _ _ HK Hinv Hrun) as Hinv'. eapply (since_reads K c); [done..| |done].
  apply (since_steps K (λ c', applied (mem c) ≤ logged c') _ _ c tr);
    [done|done|by eapply since_here| |done|done]. intros c1 Hc1. rewrite take_length. lia.
Qed.

(** What is flushed is never lost. *)
Lemma flushed_stays K k c tr c' : sound K → invariant K c → k ≤ flushed (dev c) → steps K c tr c' →
  steps_within K (λ c', k ≤ logged c') c tr c'.
Proof.
  intros HK Hinv Hk Hsteps. revert Hinv Hk. induction Hsteps as [c|c es c1 tr c2 Hstep _ IH]; intros Hinv Hk.
  - constructor. pose proof (log_flushed _ _ Hinv). lia.
  - pose proof (log_flushed _ _ Hinv) as Hfl. pose proof (step_invariant _ _ _ _ HK Hinv Hstep) as Hinv1.
    econstructor; [lia|done|]. apply IH; [done|]. destruct Hstep; try done; simpl in *; try lia.
    + unfold clean. by destruct (chunks_in _ _).
    + by destruct (replace_older_same (Some i) (dev c)) as (_ & _ & -> & _).
Qed.

(** So a snapshot that was flushed needs no such condition. *)
Theorem durable_snapshot_unchanged K c tr c' n v :
  sound K → reached K c → at_phase c = Running → applied (mem c) ≤ flushed (dev c) → reads_as c n v →
  steps K c tr c' → spares n tr → at_phase c' = Running → reads_as c' n v.
Proof. intros HK Hc Hp Hf Hn Hsteps. eapply snapshot_unchanged; [done..|].
  apply flushed_stays; [done|by apply reached_invariant|done|done]. Qed.

(** A snapshot reads, as soon as it is taken, as the live disk did. *)
Lemma snapshot_taken K c n c' : sound K → reached K c → step K c [Snapshot n Ok] c' → at_phase c = Running ∧
  at_phase c' = Running ∧ reads_as c' n (live (seen c)) ∧
  (promises K = Ack → applied (mem c') ≤ flushed (dev c')).
Proof.
  intros HK Hc Hstep. assert (reached K c') as Hc' by (by eapply reached_step).
  apply (reached_invariant _ _ HK) in Hc. apply (reached_invariant _ _ HK) in Hc'.
  remember [Snapshot n Ok] as es eqn:Hes.
  destruct Hstep as [|?|r Hp Hq Hf|r| | | | | | | | | | | | | | | |]; try done.
  - injection Hes as Hr. destruct r; try done. injection Hr as ->.
    split_and!; [done|done| |intros Hack; apply (acknowledged_flushed _ _ Hc'); by rewrite ?Hack].
    pose proof (pending_is _ _ Hc) as Hpend. rewrite Hq in Hpend. destruct Hpend as (_ & _ & Hr).
    pose proof (seen_after _ _ Hc ltac:(by rewrite Hp)) as Hseen.
    pose proof (seen_after _ _ Hc' ltac:(simpl; by rewrite Hp)) as Hseen'. simpl in Hseen'.
    change (history (acknowledge _ c)) with (history c) in Hseen'. rewrite (after_take_S _ _ _ Hr) in Hseen'.
    apply same_disk_alt in Hseen as [Hseen _]. apply same_disk_alt in Hseen' as [_ Hseen'].
    specialize (Hseen' n). set (d := after (take (applied (mem c)) (history c))) in *.
    change (snaps (effect (RSnapshot n) d)) with (<[n := live d]> (snaps d)) in Hseen'.
    rewrite lookup_insert in Hseen'. inversion Hseen' as [w ? Hw Hs|]; subst. exists w. split; [done|].
    etrans; [exact Hw|]. by symmetry.
  - by destruct r.
  - unfold shown_by_crash in Hes. by destruct (pending c) as [[[]|]|].
  - unfold shown_by_recover in Hes. by destruct (pending c) as [[]|].
Qed.

(** Read after snapshot, where what is acknowledged is durable. *)
Theorem read_after_snapshot_ack K c0 c1 tr c2 n :
  sound K → promises K = Ack → reached K c0 → step K c0 [Snapshot n Ok] c1 →
  steps K c1 tr c2 → spares n tr → at_phase c2 = Running → reads_as c2 n (live (seen c0)).
Proof. intros HK Hack Hc Hstep Hsteps Hsp Hp2.
  destruct (snapshot_taken _ _ _ _ HK Hc Hstep) as (_ & Hp1 & Hn & Hf).
  eapply durable_snapshot_unchanged; [done|by eapply reached_step|done|by apply Hf|done..]. Qed.

(** Read after snapshot in general: as long as the snapshot survives. *)
Theorem read_after_snapshot K c0 c1 tr c2 n : sound K → reached K c0 → step K c0 [Snapshot n Ok] c1 →
  steps_within K (λ c, applied (mem c1) ≤ logged c) c1 tr c2 → spares n tr → at_phase c2 = Running →
  reads_as c2 n (live (seen c0)).
Proof. intros HK Hc Hstep Hsteps Hsp Hp2. destruct (snapshot_taken _ _ _ _ HK Hc Hstep) as (_ & Hp1 & Hn & _).
  eapply snapshot_unchanged; [done|by eapply reached_step|done..]. Qed.

End Snapshots.
