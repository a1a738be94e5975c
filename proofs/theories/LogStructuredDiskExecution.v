(** Executions of the log-structured disk, computed: [perform] carries out a list of steps,
each if it may be taken. *)
From LogDisk Require Import LogStructuredDisk LogStructuredDiskInvariant.

Inductive action {V : Type} :=
  | DoSubmit (r : record V) | DoLogAppend | DoAcknowledge
  | DoRead (from : target) (lba count : nat) | DoFlush
  | DoDestage (g : nat) (xs : list nat) | DoSeal (g : nat) | DoClean (vs : gset nat) (g : nat)
  | DoFree (g : nat) | DoReclaim (x : nat)
  | DoCheckpointNodes | DoCheckpointCommit | DoTruncate (n : nat)
  | DoCrash (keep : nat) (torn : bool) (garbage : gmap nat (list V))
  | DoRestart | DoLoad | DoReplay | DoRecover.
Global Arguments action : clear implicits.

(** An operation from request to answer, its record flushed in between. *)
Definition operation {V} (r : record V) : list (action V) := [DoSubmit r; DoLogAppend; DoAcknowledge].

Section Execution.
Context {V : Type} `{EqDecision V, Value V}.
Implicit Types (K : design) (c : state V) (a : action V).

Local Instance profile_eq_dec : EqDecision profile := ltac:(solve_decision).

Definition when (P : Prop) `{Decision P} {A} (x : A) : option A := if decide P then Some x else None.

Definition perform K a c : option (list (event V) * state V) :=
  match a with
  | DoSubmit r =>
      when (at_phase c = Running ∧ pending c = None ∧ faults (size c) (seen c) r = []) ([], submit r c)
  | DoLogAppend => when (at_phase c ≠ Off) ([], log_append c)
  | DoAcknowledge =>
      match pending c with
      | Some (Operation r) =>
          when (at_phase c = Running ∧
            (obeys K FlushBeforeAcknowledge → promises K ≠ Prefix → flushed (dev c) = logged c))
            ([shown r Ok], acknowledge r c)
      | _ => None
      end
  | DoRead from lba count =>
      match view_of (seen c) from with
      | Some v =>
          when (at_phase c = Running ∧ fits (size c) lba count ∧ missing_view (seen c) from = [])
            ([VirtualDisk.Read from lba count Ok (v <$> seq lba count)], c)
      | None => None
      end
  | DoFlush => when (at_phase c = Running ∧ pending c = None) ([VirtualDisk.Flush Ok], log_append c)
  | DoDestage g xs =>
      when (at_phase c ≠ Off ∧ table (mem c) !! g = None ∧ NoDup xs ∧
        Forall (λ x, is_Some (bank (mem c) !! x)) xs ∧ xs ≠ [] ∧ length xs ≤ width K ∧
        (length xs = width K ∨ length xs = base.size (bank (mem c)))) ([], place g xs c)
  | DoSeal g =>
      when (at_phase c ≠ Off ∧ table (mem c) !! g = Some Open)
        ([], with_memory c (with_table (mem c) (<[g := Sealed]> (table (mem c)))))
  | DoClean vs g =>
      let xs := chunks_in vs (middle (current (mem c))) in
      when (at_phase c ≠ Off ∧ vs ≠ ∅ ∧ set_Forall (λ v, table (mem c) !! v = Some Sealed) vs ∧
        (xs = [] ∨ table (mem c) !! g = None ∧ length xs ≤ width K ∧ (obeys K CleanGains → 2 ≤ base.size vs)))
        ([], clean vs g c)
  | DoFree g =>
      when (at_phase c ≠ Off ∧ table (mem c) !! g = Some Dead ∧ (obeys K FreeAfterCheckpoint → g ∉ pinned c))
        ([], with_memory c (with_table (mem c) (delete g (table (mem c)))))
  | DoReclaim x =>
      when (at_phase c ≠ Off ∧ (obeys K ReclaimUnreachable →
        x ∉ reachable (current (mem c)))) ([], reclaim x c)
  | DoCheckpointNodes =>
      when (at_phase c ≠ Off ∧ bank (mem c) = ∅ ∧ (obeys K SealBeforeCheckpoint →
        set_Forall (λ g, table (mem c) !! g = Some Sealed) (segments_of (current (mem c))))) ([],
          write_nodes c)
  | DoCheckpointCommit =>
      match nodes (mem c) with
      | Some i => when (at_phase c ≠ Off ∧ (obeys K LogBeforeCheckpoint →
        upto i ≤ flushed (dev c))) ([], commit i c)
      | None => None
      end
  | DoTruncate n =>
      match (if obeys K TruncateAfterCommit then newest (dev c) else nodes (mem c)) with
      | Some i => when (at_phase c ≠ Off ∧ first c ≤ n ≤ upto i) ([], truncate n c)
      | None => None
      end
  | DoCrash keep torn garbage =>
      when (flushed (dev c) ≤ keep ≤ logged c ∧ (torn → nodes (mem c) ≠ None))
        ([shown_by_crash c], crash keep torn garbage c)
  | DoRestart =>
      when (at_phase c = Running ∧ pending c = None)
        ([], State (size c) Off (Some Reopen) (dev (log_append c)) no_memory)
  | DoLoad =>
      match newest (dev c) with
      | Some i =>
          when (at_phase c = Off) ([], load (if obeys K ReplayAfterCheckpoint then upto i else 0) i c)
      | None => None
      end
  | DoReplay =>
      match log (dev c) !! (applied (mem c) - first c) with
      | Some r => when (at_phase c = Recovering ∧ first c ≤ applied (mem c)) ([], replay r c)
      | None => None
      end
  | DoRecover =>
      when (at_phase c = Recovering ∧ logged c ≤ applied (mem c))
        ([shown_by_recover c], State (size c) Running None (dev c) (mem c))
  end.

Lemma when_Some (P : Prop) `{Decision P} {A} (x y : A) : when P x = Some y → P ∧ x = y.
Proof. unfold when. destruct (decide P); naive_solver. Qed.

Lemma Load_at K c i b : obeys K ReplayAfterCheckpoint = b → at_phase c = Off → newest (dev c) = Some i →
  step K c [] (load (if b then upto i else 0) i c).
Proof. intros <-. apply Load. Qed.

Lemma perform_sound K a c es c' : perform K a c = Some (es, c') → step K c es c'.
Proof.
  intros Hp. destruct a; simpl in Hp; repeat case_match; simplify_eq;
    apply when_Some in Hp as [Hg Hp]; simplify_eq; destruct_and?; try (by constructor);
    try first [by apply (Load_at _ _ _ true)|by apply (Load_at _ _ _ false)|by eapply Truncate; [|left|]].
  eapply Truncate; [done|right; split; [|done]|done]. intros ?%Is_true_true; congruence.
Qed.

Fixpoint perform_all K (l : list (action V)) c : option (list (event V) * state V) :=
  match l with
  | [] => Some ([], c)
  | a :: l =>
      '(es, c') ← perform K a c; '(tr, c'') ← perform_all K l c'; Some (es ++ tr, c'')
  end.

Lemma perform_all_sound K l c tr c' : perform_all K l c = Some (tr, c') → steps K c tr c'.
Proof. revert c tr. induction l as [|a l IH]; intros c tr Hp; simpl in Hp; [simplify_eq; constructor|].
  destruct (perform K a c) as [[es c1]|] eqn:Ha; [|done]. simpl in Hp.
  destruct (perform_all K l c1) as [[tr1 c2]|] eqn:Hl; [|done]. simpl in Hp. simplify_eq.
  econstructor; [by apply perform_sound in Ha|by apply IH]. Qed.

(** The end of an execution that meets a test. *)
Definition ends_with (test : list (event V) → state V → bool) K (l : list (action V)) c : bool :=
  match perform_all K l c with Some (tr, c') => test tr c' | None => false end.

Lemma ends_with_sound test K l c : ends_with test K l c = true → ∃ tr c', steps K c tr c' ∧ test tr c' = true.
Proof. unfold ends_with. destruct (perform_all K l c) as [[tr c']|] eqn:Hl; [|done]. intros Htest.
  exists tr, c'. split; [by eapply perform_all_sound|done]. Qed.

End Execution.
