(** The theorems are not vacuous: an execution that does everything, computed; and each rule of the design is
needed: dropped, it lets an execution show what the contract forbids.

The judge of what the contract forbids is the checker, which is proved exact. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import LogStructuredDisk LogStructuredDiskReading LogStructuredDiskInvariant
  LogStructuredDiskSnapshots LogStructuredDiskCleaning LogStructuredDiskExecution.
From LogDisk Require Checker CheckerCorrect.

Local Instance zero_nat : Value nat := 0.
Local Open Scope string_scope.

(** ** An execution with a power cut in the middle of a write and of a checkpoint, a recovery cut short, a
cleaning and the deletion of a snapshot *)

Definition execution : list (action nat) :=
  operation (RWrite 0 [11; 12]) ++                          (* MBA 0, 1 *)
  operation (RSnapshot "a") ++
  operation (RWrite 1 [13]) ++                              (* MBA 2 *)
  [DoDestage 0 [0; 1]; DoDestage 1 [2]; DoSeal 0; DoSeal 1;
   DoCheckpointNodes; DoCheckpointCommit; DoTruncate 2] ++
  operation (RWrite 2 [14; 15]) ++                          (* MBA 3, 4 *)
  operation (RSnapshot "b") ++
  operation (RDelete "a") ++
  [DoReclaim 1;                                             (* which "a" alone still held *)
   DoClean {[0; 1]} 2; DoDestage 3 [3; 4]; DoSeal 2; DoSeal 3;
   DoCheckpointNodes;
   DoAppend (RWrite 0 [16]);
   DoCrash 6 true {[7 := [99]]};                            (* the slot is torn, the write is lost *)
   DoLoad; DoReplay; DoReplay;
   DoCrash 6 false ∅;                                       (* recovery is cut short *)
   DoLoad; DoReplay; DoDestage 2 [3; 4]; DoReplay; DoReplay; DoRecover;
   DoRead Live 0 4; DoRead (Named "b") 0 4;
   DoReclaim 1; DoClean {[0; 1]} 3; DoSeal 2; DoSeal 3; DoCheckpointNodes; DoCheckpointCommit; DoFree 0;
   DoRestart; DoLoad; DoRecover;
   DoRead Live 0 4; DoRead (Named "b") 0 4].

Definition execution_shows : list (event nat) :=
  [Write 0 [11; 12] Ok; Snapshot "a" Ok; Write 1 [13] Ok;
   Write 2 [14; 15] Ok; Snapshot "b" Ok; Delete "a" Ok;
   Write 0 [16] CutShort; VirtualDisk.Crash CutShort; VirtualDisk.Crash Ok;
   VirtualDisk.Read Live 0 4 Ok [11; 13; 14; 15]; VirtualDisk.Read (Named "b") 0 4 Ok [11; 13; 14; 15];
   VirtualDisk.Restart Ok;
   VirtualDisk.Read Live 0 4 Ok [11; 13; 14; 15]; VirtualDisk.Read (Named "b") 0 4 Ok [11; 13; 14; 15]].

Local Instance event_eq_dec : EqDecision (event nat).
Proof. solve_decision. Defined.

Theorem execution_exists p : p = Ack ∨ p = Prefix →
  ∃ c, steps (by_the_rules p 2) (initial 4) execution_shows c ∧ at_phase c = Running.
Proof.
  intros Hp.
  destruct (ends_with_sound (λ tr c, bool_decide (tr = execution_shows ∧ at_phase c = Running))
    (by_the_rules p 2) execution (initial 4)) as (tr & c & Hsteps & Htest).
  { destruct Hp as [-> | ->]; by vm_compute. }
  apply bool_decide_eq_true in Htest as [-> Hphase]. by exists c.
Qed.

(** ** Without one of its rules the design does not keep the contract *)

Lemma shown_is_refused K p blocks l :
  ends_with (λ tr _, negb (Checker.check p (Create blocks :: tr))) K l (initial blocks) = true →
  ¬ implements (log_structured_disk (V:=nat) K) p.
Proof.
  intros (tr & c & Hsteps & Hcheck)%ends_with_sound Himp.
  assert (admits p (Create blocks :: tr)) as Hadm by (by eapply Himp).
  apply CheckerCorrect.check_correct in Hadm. by rewrite Hadm in Hcheck.
Qed.

(** Acknowledged before it is flushed, a write is lost. *)
Theorem flush_before_acknowledge_needed :
  ¬ implements (log_structured_disk (V:=nat) (breaking FlushBeforeAcknowledge Ack 2)) Ack.
Proof.
  apply (shown_is_refused _ _ 2
    [DoAppend (RWrite 0 [7]); DoAcknowledge; DoCrash 0 false ∅; DoLoad; DoRecover; DoRead Live 0 1]).
  by vm_compute.
Qed.

(** A design that promises no more than [Prefix], and keeps it, does not keep [Ack]. *)
Theorem prefix_is_not_ack : ¬ implements (log_structured_disk (V:=nat) (by_the_rules Prefix 2)) Ack.
Proof.
  apply (shown_is_refused _ _ 2
    [DoAppend (RWrite 0 [7]); DoAcknowledge; DoCrash 0 false ∅; DoLoad; DoRecover; DoRead Live 0 1]).
  by vm_compute.
Qed.

(** A checkpoint of data that is not durable may be loaded with garbage behind it. *)
Theorem seal_before_checkpoint_needed :
  ¬ implements (log_structured_disk (V:=nat) (breaking SealBeforeCheckpoint Ack 2)) Ack.
Proof.
  apply (shown_is_refused _ _ 2 (operation (RWrite 0 [7]) ++
    [DoDestage 0 [0]; DoCheckpointNodes; DoCheckpointCommit;
     DoCrash 1 false {[0 := [9]]}; DoLoad; DoRecover; DoRead Live 0 1])).
  by vm_compute.
Qed.

(** A checkpoint ahead of the log hides the records that are written where the lost ones were. *)
Theorem log_before_checkpoint_needed :
  ¬ implements (log_structured_disk (V:=nat) (breaking LogBeforeCheckpoint Prefix 2)) Prefix.
Proof.
  apply (shown_is_refused _ _ 2
    ([DoAppend (RWrite 0 [7]); DoAcknowledge; DoDestage 0 [0]; DoSeal 0;
      DoCheckpointNodes; DoCheckpointCommit; DoCrash 0 false ∅; DoLoad; DoRecover] ++
     operation (RWrite 0 [8]) ++ [DoFlush; DoCrash 1 false ∅; DoLoad; DoRecover; DoRead Live 0 1])).
  by vm_compute.
Qed.

(** Truncated before the checkpoint is committed, the log has forgotten what recovery needs. *)
Theorem truncate_after_commit_needed :
  ¬ implements (log_structured_disk (V:=nat) (breaking TruncateAfterCommit Ack 2)) Ack.
Proof.
  apply (shown_is_refused _ _ 2 (operation (RWrite 0 [7]) ++
    [DoDestage 0 [0]; DoSeal 0; DoCheckpointNodes; DoTruncate 1;
     DoCrash 1 false ∅; DoLoad; DoRecover; DoRead Live 0 1])).
  by vm_compute.
Qed.

(** Freed while the durable checkpoint refers to it, a segment is overwritten under that checkpoint. *)
Theorem free_after_checkpoint_needed :
  ¬ implements (log_structured_disk (V:=nat) (breaking FreeAfterCheckpoint Ack 2)) Ack.
Proof.
  apply (shown_is_refused _ _ 2 (operation (RWrite 0 [7]) ++ [DoDestage 0 [0]; DoSeal 0] ++
    operation (RWrite 1 [8]) ++
    [DoDestage 1 [1]; DoSeal 1; DoCheckpointNodes; DoCheckpointCommit; DoClean {[0; 1]} 2; DoFree 0] ++
    operation (RWrite 1 [9]) ++
    [DoDestage 0 [2]; DoSeal 0; DoCrash 3 false ∅; DoLoad; DoReplay; DoRecover; DoRead Live 0 1])).
  by vm_compute.
Qed.

(** Replayed from before the checkpoint, a snapshot's record takes it again, of what was written later. *)
Theorem replay_after_checkpoint_needed :
  ¬ implements (log_structured_disk (V:=nat) (breaking ReplayAfterCheckpoint Ack 2)) Ack.
Proof.
  apply (shown_is_refused _ _ 2 (operation (RWrite 0 [7]) ++
    [DoDestage 0 [0]; DoSeal 0; DoCheckpointNodes; DoCheckpointCommit; DoTruncate 1] ++
    operation (RSnapshot "s") ++ operation (RWrite 0 [8]) ++
    [DoDestage 1 [1]; DoSeal 1; DoCheckpointNodes; DoCheckpointCommit;
     DoCrash 3 false ∅; DoLoad; DoReplay; DoReplay; DoRecover; DoRead (Named "s") 0 1])).
  by vm_compute.
Qed.

(** A chunk that a snapshot still refers to is gone. *)
Theorem reclaim_unreachable_needed :
  ¬ implements (log_structured_disk (V:=nat) (breaking ReclaimUnreachable Ack 2)) Ack.
Proof.
  apply (shown_is_refused _ _ 2 (operation (RWrite 0 [7]) ++ operation (RSnapshot "s") ++
    operation (RWrite 0 [8]) ++ [DoReclaim 0; DoRead (Named "s") 0 1])).
  by vm_compute.
Qed.

(** ** Read after snapshot needs what it asks for *)

Definition snapshot_lost (K : design) : Prop :=
  ∃ c0 c1 tr c2, reached K c0 ∧ step K c0 [Snapshot "s" Ok] c1 ∧ steps K c1 tr c2 ∧ at_phase c2 = Running ∧
    spares "s" tr ∧ ¬ reads_as c2 "s" (live (seen (V:=nat) c0)).

(** A run in two parts, between which the snapshot is taken. *)
Definition loses (K : design) (before behind : list (action nat)) : bool :=
  match perform_all K before (initial 2) with
  | Some (_, c0) =>
      match perform K DoAcknowledge c0 with
      | Some (es, c1) =>
          match perform_all K behind c1 with
          | Some (tr, c2) =>
              bool_decide (es = [Snapshot "s" Ok] ∧ at_phase c2 = Running ∧ spares "s" tr) &&
              match snaps (seen c2) !! "s" with
              | Some v => bool_decide (v 0 ≠ live (seen c0) 0)
              | None => true
              end
          | None => false
          end
      | None => false
      end
  | None => false
  end.

Lemma loses_sound K before behind : loses K before behind = true → snapshot_lost K.
Proof.
  unfold loses. destruct (perform_all K before (initial 2)) as [[tr0 c0]|] eqn:H0; [|done].
  destruct (perform K DoAcknowledge c0) as [[es c1]|] eqn:H1; [|done].
  destruct (perform_all K behind c1) as [[tr c2]|] eqn:H2; [|done].
  intros [(-> & Hp & Hsp)%bool_decide_eq_true Hlost]%andb_true_iff.
  exists c0, c1, tr, c2. split; [exists 2, tr0; by eapply perform_all_sound|].
  split; [by eapply perform_sound|]. split; [by eapply perform_all_sound|]. split_and!; [done|apply Hsp..|].
  intros (w & Hw & Hsame).
  destruct (snaps (seen c2) !! "s") as [v|] eqn:Hv; [|by pose proof (eq_trans (eq_sym Hv) Hw)].
  pose proof (eq_trans (eq_sym Hv) Hw). simplify_eq. apply bool_decide_eq_true in Hlost.
  by apply Hlost, Hsame.
Qed.

(** Chunks are dropped only when no view refers to them. *)
Theorem snapshot_needs_reclaim_unreachable : snapshot_lost (breaking ReclaimUnreachable Ack 2).
Proof.
  apply (loses_sound _ (operation (RWrite 0 [7]) ++ [DoAppend (RSnapshot "s"); DoSync])
    (operation (RWrite 0 [8]) ++ [DoReclaim 0])).
  by vm_compute.
Qed.

(** Under [Prefix] a snapshot that was not flushed need not survive, with every rule obeyed. *)
Theorem prefix_snapshot_needs_flush : snapshot_lost (by_the_rules Prefix 2).
Proof.
  apply (loses_sound _ (operation (RWrite 0 [7]) ++ [DoAppend (RSnapshot "s")])
    [DoCrash 1 false ∅; DoLoad; DoReplay; DoRecover]).
  by vm_compute.
Qed.

(** And it must not be deleted: [spares] is needed. *)
Theorem snapshot_needs_no_delete :
  ∃ c, steps (by_the_rules Ack 2) (initial 2) [Snapshot "s" Ok; Delete "s" Ok] c ∧
    snaps (seen (V:=nat) c) !! "s" = None.
Proof.
  destruct (ends_with_sound
    (λ tr c, bool_decide (tr = [Snapshot "s" Ok; Delete "s" Ok] ∧ snaps (seen c) !! "s" = None))
    (by_the_rules Ack 2) (operation (RSnapshot "s") ++ operation (RDelete "s")) (initial (V:=nat) 2))
    as (tr & c & Hsteps & Htest); [by vm_compute|].
  apply bool_decide_eq_true in Htest as [-> Hnone]. by exists c.
Qed.

(** ** Cleaning that gains nothing never ends

One segment with one live chunk: cleaned and cleaned again, it only moves on. *)
Section CleaningForEver.
Let K : design := breaking CleanGains Ack 2.

Definition one_chunk_in (g : nat) (c : state nat) : Prop :=
  at_phase c = Running ∧ middle (current (mem c)) = {[0 := (g, 0)]} ∧
  table (mem c) !! g = Some Sealed ∧ ∀ g', g < g' → table (mem c) !! g' = None.

Lemma moves_on g c :
  one_chunk_in g c → ∃ c', one_chunk_in (S g) c' ∧ ∀ n d c2, upkeep K n d c' c2 → upkeep K (S n) d c c2.
Proof.
  intros (Hp & Hmid & Hg & Hfree).
  assert (chunks_in {[g]} (middle (current (mem c))) = [0]) as Hxs.
  { unfold chunks_in. rewrite Hmid, map_filter_singleton, decide_True by (simpl; set_solver).
    by rewrite map_to_list_singleton. }
  assert (clean {[g]} (S g) c = bury {[g]} (place (S g) [0] c)) as Hclean by (unfold clean; by rewrite Hxs).
  set (c1 := clean {[g]} (S g) c) in *.
  assert (table (mem c1) !! S g = Some Open) as Hopen.
  { rewrite Hclean. simpl. rewrite lookup_union_r by (apply lookup_gset_to_gmap_None; set_solver by lia).
    by rewrite lookup_insert. }
  exists (with_memory c1 (with_table (mem c1) (<[S g := Sealed]> (table (mem c1))))). split.
  - rewrite Hclean. unfold one_chunk_in. simpl. split_and!; [done| |by rewrite lookup_insert|].
    + rewrite Hmid. unfold placed. simpl. by rewrite <- insert_union_l, (left_id_L ∅ (∪)), insert_singleton.
    + intros g' Hg'. rewrite lookup_insert_ne by lia.
      rewrite lookup_union_r by (apply lookup_gset_to_gmap_None; set_solver by lia).
      rewrite lookup_insert_ne by lia. apply Hfree. lia.
  - intros n d c2 Hrun. apply (upkeep_clean _ _ _ _ {[g]} (S g)).
    + by rewrite Hp.
    + split; [set_solver|]. split; [by apply set_Forall_singleton|]. right. rewrite Hxs. split_and!.
      * apply Hfree. lia.
      * simpl. lia.
      * by intros [].
    + assert (at_phase c1 ≠ Off) as Hon by (rewrite Hclean; simpl; by rewrite Hp).
      eapply upkeep_other; [by apply Seal| |done|done|exact Hrun].
      intros (g' & xs & Heq). apply (f_equal (λ c, table (mem c) !! S g)) in Heq as Heq'. simpl in Heq'.
      rewrite lookup_insert in Heq'. destruct (decide (g' = S g)) as [->|Hne].
      * by rewrite lookup_insert in Heq'.
      * rewrite lookup_insert_ne in Heq' by done. by pose proof (eq_trans Heq' Hopen).
Qed.

Theorem clean_gains_needed : ∃ c, reached K c ∧ in_use c = 1 ∧ ∀ n, ∃ c', upkeep K n 0 c c'.
Proof.
  assert (∀ n g c, one_chunk_in g c → ∃ c', upkeep K n 0 c c') as Hever.
  { induction n as [|n IH]; intros g c Hc; [eexists; constructor|].
    destruct (moves_on _ _ Hc) as (c1 & Hc1 & Hrun). destruct (IH _ _ Hc1) as (c' & Hc'). eauto. }
  destruct (ends_with_sound
    (λ _ c, bool_decide (at_phase c = Running ∧ middle (current (mem c)) = {[0 := (0, 0)]} ∧
      table (mem c) = {[0 := Sealed]} ∧ in_use c = 1))
    K (operation (RWrite 0 [7]) ++ [DoDestage 0 [0]; DoSeal 0]) (initial 1)) as (tr & c & Hsteps & Htest); [by vm_compute|].
  apply bool_decide_eq_true in Htest as (Hp & Hmid & Ht & Huse).
  exists c. split; [by exists 1, tr|]. split; [done|]. intros n. apply (Hever n 0).
  split_and!; [done|done|by rewrite Ht, lookup_singleton|].
  intros g' Hg'. rewrite Ht. apply lookup_singleton_ne. lia.
Qed.
End CleaningForEver.
