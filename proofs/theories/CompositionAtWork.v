(** The disk over its legs at work, computed from its definitions: no proof that it is right is needed. *)
From stdpp Require Import vector strings.
From LogDisk Require Import CompositionPerformance LogStructuredDiskExecution CompositionExecution Parity.
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

  Notation composed_by p :=
    (carry (by_the_rules p 2) 2 3 (raid6 2) 6 6 2 composed (new_disk 2 (raid6 2) 1 4)).

  Lemma composed_computed p : p = Ack ∨ p = Prefix → fst <$> composed_by p = Some composed_shows.
  Proof. intros [-> | ->]; vm_compute; reflexivity. Qed.

  Theorem composed_execution p : p = Ack ∨ p = Prefix →
    ∃ x, shows (over_legs (RedundancyCode.mirror Blank 2) (raid6 2) 6 6 2 1
      (log_structured_client (by_the_rules p 2) (raid6 2) 3)) (new_disk 2 (raid6 2) 1 4) composed_shows x.
  Proof.
    intros Hp%composed_computed. destruct (composed_by p) as [[tr x]|] eqn:E; [|discriminate].
    injection Hp as <-. exists x. by eapply carry_sound.
  Qed.
End at_work.

(** ** Two mirrors that take turns

Power fails on a new disk. A segment is read while it is written. A mirror misses a record, comes back, and
is not read before it is made equal; then the other one goes. *)
Section taking_turns.
  Local Instance zero_nat : Value nat := 0.
  Notation command := (CompositionExecution.command nat).

  Definition record_on (on : list nat) (n : nat) (r : record nat) : list command :=
    [Step (DoSubmit r); Log] ++ ((λ i, OnP (R.Put i (place_of 1 n))) <$> on) ++
    [Logged; Step DoLogAppend; Step DoAcknowledge].
  Definition power_cut (replays : nat) : list command :=
    [PowerOff; LoadAll] ++ replicate replays (Step DoReplay) ++
    [Step DoRecover; Step (DoRead Live 0 1)].

  Definition turns : list command :=
    power_cut 0 ++ record_on [0; 1] 0 (RWrite 0 [7]) ++
    [Step (DoDestage 0 [0]); Step (DoRead Live 0 1); OnC (R.Put 0 0); OnC (R.Put 1 0); Step (DoSeal 0);
     OnP (R.Fail 0 R.Absent); OnC (R.Fail 0 R.Absent); Step (DoRead Live 0 1)] ++
    record_on [1] 1 (RWrite 0 [8]) ++
    [OnP (R.Return 0); OnC (R.Return 0)] ++ power_cut 2 ++
    [OnP (R.Resync 0 3); OnP (R.Fail 1 R.Degraded)] ++ power_cut 2.

  Definition turns_show : list (event nat) :=
    let cut v := [VirtualDisk.Crash CutShort; VirtualDisk.Crash Ok; VirtualDisk.Read Live 0 1 Ok [v]] in
    cut 0 ++ [Write 0 [7] Ok; VirtualDisk.Read Live 0 1 Ok [7]; VirtualDisk.Read Live 0 1 Ok [7];
      Write 0 [8] Ok] ++ cut 8 ++ cut 8.

  Example turns_are_taken :
    fst <$> carry (by_the_rules Ack 1) 1 1 (RedundancyCode.mirror 0 1) 4 2 1 turns
      (new_disk 1 (RedundancyCode.mirror 0 1) 0 1) = Some turns_show.
  Proof. vm_compute. reflexivity. Qed.
End taking_turns.

(** ** Codes

Whatever two components are lost, RAID-6 has the data; whatever single one, RAID-5. *)
Section codes.
  Notation block := (vec byte 1).
  Let data : list block := (λ i, byte_block (Parity.power two i)) <$> [3; 50; 200].

  Example raid6_at_work : Forall (λ i, Forall (λ j,
    RedundancyCode.decode (raid6 3) (without [i; j] (RedundancyCode.stripe (raid6 3) data)) = Some data)
    (seq 0 5)) (seq 0 5).
  Proof. apply (bool_decide_unpack _). vm_compute. exact I. Qed.

  Example raid5_at_work : Forall (λ i,
    RedundancyCode.decode (raid5 3) (without [i] (RedundancyCode.stripe (raid5 3) data)) = Some data)
    (seq 0 4).
  Proof. apply (bool_decide_unpack _). vm_compute. exact I. Qed.
End codes.
