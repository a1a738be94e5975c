(** Recovery brings back exactly what the durable log says, however often it is cut short. *)
From LogDisk Require Import LogStructuredDisk LogStructuredDiskReading LogStructuredDiskInvariant.

Section Recovery.
Context {V : Type} `{Value V}.
Implicit Types (K : design) (r : record V) (c : state V) (i : checkpoint).

(** ** A checkpoint and what the log holds behind it stand for the whole history *)

(** What checkpoint [i] alone reads as, from the segments. *)
Definition checkpoint_disk c i : disk V := disk_by (chunk ∅ (middle (saved i)) (segments (dev c))) (saved i).

Lemma effects_same (d e : disk V) h :
  same_disk d e → same_disk (foldl (λ d r, effect r d) d h) (foldl (λ d r, effect r d) e h).
Proof. revert d e. induction h as [|r h IH]; intros d e Hd; [done|]. by apply IH, effect_same. Qed.

Theorem checkpoint_and_suffix K c i :
  sound K → reached K c → newest (dev c) = Some i →
  same_disk (foldl (λ d r, effect r d) (checkpoint_disk c i) (drop (upto i - first c) (log (dev c))))
    (after (history c)).
Proof. intros HK Hc Hi.
  destruct (newest_holds _ _ (reached_invariant _ _ HK Hc)) as (j & Hj & Hup & [_ [_ Hd]] & _). simplify_eq.
  rewrite <-(take_drop (upto i) (history c)). unfold after at 1. rewrite foldl_app. unfold history at 2.
  rewrite drop_app_ge by (unfold first in Hup; lia). by apply effects_same. Qed.

(** ** Recovery cut short, any number of times *)

(** Steps up to the first state in which the disk runs again: loading, replaying, crashing, loading anew, and
whatever is destaged, cleaned or checkpointed meanwhile. *)
Inductive recovery K : state V → state V → Prop :=
  | recovery_nil c : recovery K c c
  | recovery_step c es c1 c2 : at_phase c ≠ Running → step K c es c1 → recovery K c1 c2 → recovery K c c2.

Lemma step_down_history K c es c' : invariant K c → at_phase c ≠ Running → step K c es c' →
  history c' = history c ∧ (at_phase c' = Running → pending c' = None).
Proof.
  intros Hinv Hp Hstep. pose proof (recovery_flushed _ _ Hinv Hp) as Hf.
  pose proof (log_flushed _ _ Hinv) as Hfl. destruct Hstep; try done.
  - unfold clean. by destruct (chunks_in _ _).
  - by destruct (commit_same i c) as (-> & _).
  - by rewrite history_truncate.
  - split; [|done]. rewrite history_crash by lia. apply take_ge. rewrite history_length. lia.
Qed.

Theorem recovery_brings_back K c c' : sound K → reached K c → at_phase c ≠ Running → recovery K c c' →
  history c' = history c ∧ (at_phase c' = Running → same_disk (seen c') (after (history c))).
Proof.
  intros HK Hc Hp Hrec. induction Hrec as [c|c es c1 c2 _ Hstep Hrec IH]; [done|].
  destruct (step_down_history _ _ _ _ (reached_invariant _ _ HK Hc) Hp Hstep) as [Hh Hq].
  pose proof (reached_step _ _ _ _ Hc Hstep) as Hc1. rewrite <- Hh.
  destruct (decide (at_phase c1 = Running)) as [Hp1|Hp1]; [|by apply IH].
  inversion Hrec as [|? ? ? ? Hno]; subst; [|done]. split; [done|]. intros _.
  by apply (seen_idle K); [apply reached_invariant| |apply Hq].
Qed.

(** It can always be brought to its end. *)
Theorem recovery_ends K c :
  sound K → reached K c → at_phase c ≠ Running → ∃ c', recovery K c c' ∧ at_phase c' = Running.
Proof.
  intros HK.
  assert (∀ n c, reached K c → at_phase c = Recovering → logged c - applied (mem c) = n →
    ∃ c', recovery K c c' ∧ at_phase c' = Running) as Hreplay.
  { clear c. induction n as [|n IH]; intros c Hc Hp Hn.
    - exists (State (size c) Running None (dev c) (mem c)). split; [|done].
      econstructor; [by rewrite Hp|apply Recover; [done|lia]|constructor].
    - destruct (newest_holds _ _ (reached_invariant _ _ HK Hc)) as (i & _ & Hup & _ & Happ).
      destruct Happ as [Happ _]; [by rewrite Hp|].
      destruct (lookup_lt_is_Some_2 (log (dev c)) (applied (mem c) - first c)) as [r Hr].
      { unfold first, logged in *. lia. }
      assert (step K c [] (replay r c)) as Hstep by (apply Replay; [done|lia|done]).
      destruct (IH (replay r c)) as (c' & Hrec & Hp'); [by eapply reached_step|done| |].
      { simpl. change (logged (replay r c)) with (logged c). lia. }
      exists c'. split; [|done]. econstructor; [by rewrite Hp|done|done]. }
  intros Hc Hp. destruct (at_phase c) eqn:E; [|by eapply Hreplay|done].
  destruct (newest_holds _ _ (reached_invariant _ _ HK Hc)) as (i & Hi & _).
  assert (step K c [] (load (if obeys K ReplayAfterCheckpoint then upto i else 0) i c)) as Hstep by (by
    apply Load). edestruct Hreplay as (c' & Hrec & Hp'); [by eapply reached_step|done|reflexivity|].
  exists c'. split; [|done]. econstructor; [by rewrite E|done|done].
Qed.

(** ** Replay is idempotent

However many records [rs] were replayed when power failed again, what is loaded then is what was loaded
before: the same checkpoint, the same memory and the same log. *)
Theorem load_again c n i rs keep garbage :
  let c1 := foldl (λ c r, replay r c) (load n i c) rs in
  let c2 := crash keep false garbage c1 in
  logged c1 ≤ keep →
  newest (dev c2) = newest (dev c) ∧ mem (load n i c2) = mem (load n i c) ∧ history c2 = history c.
Proof.
  intros c1 c2 Hkeep. assert (dev c1 = dev c) as Hdev.
  { unfold c1. clear. induction rs as [|r rs IH] using rev_ind; [done|by rewrite foldl_snoc]. }
  unfold c2, load, crash, first, history. simpl. rewrite Hdev. split_and!; [done|done|].
  rewrite take_ge; [done|]. unfold logged, first in *. rewrite Hdev in *. lia.
Qed.

End Recovery.
