(** What a hypothesis dropped lets the disk over its legs show. *)
From stdpp Require Import vector strings.
From LogDisk Require Import Composition LogStructuredDiskExecution CompositionExecution Parity.
From LogDisk Require Checker CheckerCorrect.
Import LogStructuredDisk.
Local Open Scope string_scope.

Lemma carried_is_refused {V} `{EqDecision V, Value V} K m room cc stripes_p stripes_c p blocks ks :
  match carry K m room cc stripes_p stripes_c 1 ks (new_disk m cc 0 blocks) with
  | Some (tr, _) => negb (Checker.check p (Create blocks :: tr)) | None => false end = true →
  ¬ implements (over_legs (RedundancyCode.mirror Blank m) cc stripes_p stripes_c 1 0
      (log_structured_client K cc room)) p.
Proof. destruct (carry _ _ _ _ _ _ _ _ _) as [[tr x]|] eqn:E; [|done]. intros Bad I.
  apply carry_sound with (spare_count := 0) in E.
  assert (admits p (Create blocks :: tr)) as A by (eapply (I blocks); [|exact E]; by split_and!).
  apply CheckerCorrect.check_correct in A. by rewrite A in Bad. Qed.

Section dropped.
  Local Instance zero_nat : Value nat := 0.
  Notation "'over' K cc" :=
    (over_legs (RedundancyCode.mirror Blank 0) cc 4 2 1 0 (log_structured_client K cc 1))
    (at level 10, K at level 9, cc at level 9).

  Definition answer (n : nat) (r : record nat) : list (command nat) :=
    [Step (DoSubmit r); Log; OnP (R.Put 0 (place_of 1 n)); Logged; Step DoLogAppend; Step DoAcknowledge].

  (** Over legs as over stores, a chunk that a snapshot still refers to must not be dropped ([sound]). *)
  Theorem disk_over_legs_needs_sound : RedundancyCode.good (RedundancyCode.mirror 0 0) ∧
    ¬ implements (over (breaking ReclaimUnreachable Ack 1) (RedundancyCode.mirror 0 0)) Ack.
  Proof.
    split; [apply RedundancyCode.mirror_good|].
    apply (carried_is_refused _ _ _ _ _ _ _ 1 (answer 0 (RWrite 0 [7]) ++ answer 1 (RSnapshot "s") ++
      [Step (DoReclaim 0); Step (DoRead (Named "s") 0 1)])).
    by vm_compute.
  Qed.

  (** A code that reads everything as zero is not [good]; what is destaged to its leg is lost. *)
  Definition forgetful : RedundancyCode.code nat := RedundancyCode.Code _ 1 0 0 (λ _, []) (λ _, Some [0]).

  Theorem disk_over_legs_needs_good : sound (by_the_rules Ack 1) ∧
    ¬ implements (over (by_the_rules Ack 1) forgetful) Ack.
  Proof.
    split; [by apply by_the_rules_sound|].
    apply (carried_is_refused _ _ _ _ _ _ _ 1 (answer 0 (RWrite 0 [7]) ++
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

(** With 256 data components the first and the last cannot both be lost: their powers of two are equal. *)
Section too_wide.
  Notation block := (vec byte 1).
  Local Instance zero_block : Value block := zeroes.

  Definition first_and_last_lost : list (CompositionExecution.command block) :=
    [Step (DoSubmit (RWrite 0 [byte_block Parity.one])); Log] ++ ((λ i, OnP (R.Put i 2)) <$> [0; 1; 2]) ++
    [Logged; Step DoLogAppend; Step DoAcknowledge; Step (DoDestage 0 [0])] ++
    ((λ i, OnC (R.Put i 0)) <$> seq 0 258) ++
    [Step (DoSeal 0); OnC (R.Fail 0 R.Absent); OnC (R.Fail 255 R.Absent); Step (DoRead Live 0 1)].

  Theorem disk_over_raid6_needs_255 : ¬ implements (over_legs (RedundancyCode.mirror Blank 2) (raid6 256)
    4 2 1 0 (log_structured_client (by_the_rules Ack 1) (raid6 256) 1)) Ack.
  Proof. apply (carried_is_refused _ _ _ _ _ _ _ 1 first_and_last_lost). vm_compute. reflexivity. Qed.
End too_wide.
