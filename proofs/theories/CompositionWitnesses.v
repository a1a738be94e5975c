(** The disk over its legs at work, computed; and what a hypothesis dropped lets it show. *)
From stdpp Require Import vector strings.
From LogDisk Require Import Composition LogStructuredDiskExecution CompositionExecution Parity.
From LogDisk Require Checker CheckerCorrect.
Import LogStructuredDisk.
Local Open Scope string_scope.

(** ** An execution over three mirrors and RAID-6 of 2 + 2, each leg with a spare device

A device fails in the middle of a write of each leg; the one comes back and is resynced, the other is rebuilt
on the spare. Segments are cleaned, a snapshot is deleted, and the power fails in the middle of a write and
again in the middle of recovery. In the end the capacity leg has lost two devices more, and everything reads
as it was written. *)
Section at_work.
  Notation block := (vec byte 1).
  Local Instance zero_block : Value block := zeroes.
  Let a (i : nat) : block := byte_block (Parity.power two i).
  Notation command := (CompositionExecution.command block).

  (** A record is written by the mirrors [on]; it is record [n]. *)
  Definition log_on (on : list nat) (n : nat) : list command :=
    [Log] ++ ((λ i, OnP (R.Put i (place_of 3 n))) <$> on) ++ [Logged].
  Definition operate (n : nat) (r : record block) : list command :=
    [Step (DoSubmit r)] ++ log_on [0; 1; 2] n ++ [Step DoLogAppend; Step DoAcknowledge].
  Definition put_on (on : list nat) (g : nat) : list command := (λ i, OnC (R.Put i g)) <$> on.
  Definition destage (g : nat) (xs : list nat) : list command :=
    [Step (DoDestage g xs)] ++ put_on [0; 1; 2; 3] g ++ [Step (DoSeal g)].
  Definition checkpoint_on (on : list nat) (slot : nat) : list command :=
    [Step DoCheckpointNodes; Save] ++ ((λ i, OnP (R.Put i slot)) <$> on) ++ [Commit].

  Definition composed : list command :=
    operate 0 (RWrite 0 [a 0; a 1]) ++                          (* MBA 0, 1 *)
    operate 1 (RSnapshot "s") ++
    [Step (DoSubmit (RWrite 1 [a 2])); Log; OnP (R.Put 0 4);    (* MBA 2 *)
     OnP (R.Fail 1 R.Absent); OnP (R.Put 2 4); Logged; Step DoLogAppend; Step DoAcknowledge] ++
    [Step (DoDestage 0 [0; 1])] ++ put_on [0; 1] 0 ++ [OnC (R.Fail 2 R.Degraded); OnC (R.Put 3 0);
      Step (DoSeal 0)] ++
    [Step (DoDestage 1 [2])] ++ put_on [0; 1;
      3] 1 ++ [OnC (R.Rebuild 2 4)] ++ put_on [2] 1 ++ [Step (DoSeal 1)] ++
    ((λ s, OnC (R.Resync 2 s)) <$> [0; 2; 3; 4; 5]) ++
    checkpoint_on [0; 2] 1 ++ [Step (DoTruncate 3); OnP (R.Return 1); OnP (R.Resync 1 4);
      OnP (R.Resync 1 1)] ++
    operate 3 (RWrite 0 [a 3]) ++                               (* MBA 3 *)
    operate 4 (RDelete "s") ++
    [Step (DoReclaim 0); Step (DoReclaim 1); Step (DoClean {[0; 1]} 2)] ++ put_on [0; 1; 2;
      3] 2 ++ [Step (DoSeal 2)] ++
    [Step (DoSubmit (RWrite 2 [a 4; a 5])); Log; OnP (R.Put 0 3); PowerOff;
      (* MBA 4, 5; one mirror has the record *)
     Recovered 3; OnP (R.Put 0 3); OnP (R.Put 1 3); OnP (R.Put 2 3); Settled 3; LoadAll; Step DoReplay;
       PowerOff;
     LoadAll; Step DoReplay; Step DoReplay; Step DoReplay; Step DoRecover; Step (DoRead Live 0 4);
     Step (DoReclaim 0); Step (DoReclaim 1)] ++
    destage 2 [3; 4] ++ destage 3 [5] ++ [Step (DoClean {[0; 1]} 4)] ++ put_on [0; 1; 2;
      3] 4 ++ [Step (DoSeal 4)] ++
    checkpoint_on [0; 1; 2] 0 ++ [Step (DoFree 0); Step (DoFree 1);
     OnC (R.Fail 0 R.Absent); OnC (R.Fail 4 R.Degraded); Step (DoRead Live 0 4)].

  Definition composed_shows : list (event block) :=
    [Write 0 [a 0; a 1] Ok; Snapshot "s" Ok; Write 1 [a 2] Ok; Write 0 [a 3] Ok; Delete "s" Ok;
     Write 2 [a 4; a 5] CutShort; VirtualDisk.Crash CutShort; VirtualDisk.Crash Ok;
       VirtualDisk.Read Live 0 4 Ok [a 3; a 2; a 4; a 5];
     VirtualDisk.Read Live 0 4 Ok [a 3; a 2; a 4; a 5]].

  Local Instance event_eq_dec : EqDecision (event block) := ltac:(solve_decision).

  Theorem composed_execution p : p = Ack ∨ p = Prefix →
    ∃ x, shows (over_legs (RedundancyCode.mirror Blank 2) (raid6 2) 6 6 2 1
      (log_structured_client (by_the_rules p 2) (raid6 2) 3)) (new_disk 2 (raid6 2) 1 4) composed_shows x.
  Proof.
    intros Hp. destruct (carry (by_the_rules p 2) 2 3 (raid6 2) 6 6 2 composed (new_disk 2 (raid6 2) 1 4))
      as [[tr x]|] eqn:E.
    - exists x. assert (tr = composed_shows) as <-; [|by eapply carry_sound].
      assert (bool_decide (Some composed_shows = fst <$> Some (tr, x)) = true) as Eq%bool_decide_eq_true.
      { rewrite <-E. destruct Hp as [-> | ->]; by vm_compute. }
      by injection Eq.
    - exfalso.
      assert (is_Some (carry (by_the_rules p 2) 2 3 (raid6 2) 6 6 2 composed (new_disk 2 (raid6 2) 1 4)))
        as [? S].
      { apply (bool_decide_unpack _). destruct Hp as [-> | ->]; by vm_compute. }
      congruence.
  Qed.
End at_work.

(** ** Hypotheses *)

Section dropped.
  Local Instance zero_nat : Value nat := 0.
  Notation "'over' K cc" :=
    (over_legs (RedundancyCode.mirror Blank 0) cc 4 2 1 0 (log_structured_client K cc 1))
    (at level 10, K at level 9, cc at level 9).

  Definition answer (n : nat) (r : record nat) : list (command nat) :=
    [Step (DoSubmit r); Log; OnP (R.Put 0 (place_of 1 n)); Logged; Step DoLogAppend; Step DoAcknowledge].

  Lemma carried_is_refused K cc p ks :
    match carry K 0 1 cc 4 2 1 ks (new_disk 0 cc 0 1) with
    | Some (tr, _) => negb (Checker.check p (Create 1 :: tr)) | None => false end = true →
    ¬ implements (over K cc) p.
  Proof. destruct (carry _ _ _ _ _ _ _ _ _) as [[tr x]|] eqn:E; [|done]. intros Bad I.
    apply carry_sound with (spare_count := 0) in E.
    assert (admits p (Create 1 :: tr)) as A by (eapply (I 1); [|exact E]; by split_and!).
    apply CheckerCorrect.check_correct in A. by rewrite A in Bad. Qed.

  (** Over legs as over stores, a chunk that a snapshot still refers to must not be dropped ([sound]). *)
  Theorem disk_over_legs_needs_sound : RedundancyCode.good (RedundancyCode.mirror 0 0) ∧
    ¬ implements (over (breaking ReclaimUnreachable Ack 1) (RedundancyCode.mirror 0 0)) Ack.
  Proof.
    split; [apply RedundancyCode.mirror_good|].
    apply (carried_is_refused _ _ _ (answer 0 (RWrite 0 [7]) ++ answer 1 (RSnapshot "s") ++
      [Step (DoReclaim 0); Step (DoRead (Named "s") 0 1)])).
    by vm_compute.
  Qed.

  (** A code that reads everything as zero is not [good]; what is destaged to its leg is lost. *)
  Definition forgetful : RedundancyCode.code nat := RedundancyCode.Code _ 1 0 0 (λ _, []) (λ _, Some [0]).

  Theorem disk_over_legs_needs_good : sound (by_the_rules Ack 1) ∧
    ¬ implements (over (by_the_rules Ack 1) forgetful) Ack.
  Proof.
    split; [by apply by_the_rules_sound|]. apply (carried_is_refused _ _ _ (answer 0 (RWrite 0 [7]) ++
      [Step (DoDestage 0 [0]); OnC (R.Put 0 0); Step (DoSeal 0); Step (DoRead Live 0 1)])).
    by vm_compute.
  Qed.

  (** Though over stores, which need no code, the same disk keeps the contract. *)
  Theorem legs_suffice_needs_good :
    implements (over_stores (RedundancyCode.mirror Blank 0) forgetful
      (log_structured_client (by_the_rules Ack 1) forgetful 1)) Ack ∧
    ¬ implements (over (by_the_rules Ack 1) forgetful) Ack.
  Proof. split; [apply (disk_over_stores (by_the_rules Ack 1)); by apply by_the_rules_sound|].
    apply disk_over_legs_needs_good. Qed.
End dropped.
