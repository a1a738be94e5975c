(** The theorems are not vacuous: an execution that does everything, computed; and each rule of the design is
needed: dropped, it lets an execution show what the contract forbids.

The judge of what the contract forbids is the checker, which is proved exact. *)
From stdpp Require Import strings.
From LogDisk Require Import LogStructuredDisk LogStructuredDiskReading LogStructuredDiskInvariant
  LogStructuredDiskSnapshots LogStructuredDiskCleaning LogStructuredDiskRecovery LogStructuredDiskExecution.
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
   DoSubmit (RWrite 0 [16]);
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

Local Instance event_eq_dec : EqDecision (event nat) := ltac:(solve_decision).

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

Definition refused (K : design) (p : profile) (blocks : nat) (l : list (action nat)) : bool :=
  ends_with (λ tr _, negb (Checker.check p (Create blocks :: tr))) K l (initial blocks).

Lemma shown_is_refused K p blocks l : refused K p blocks l = true →
  ¬ implements (log_structured_disk (V:=nat) K) p.
Proof. intros (tr & c & Hsteps & Hcheck)%ends_with_sound Himp.
  assert (admits p (Create blocks :: tr)) as Hadm by (by eapply Himp).
  apply CheckerCorrect.check_correct in Hadm. by rewrite Hadm in Hcheck. Qed.

(** What a write that was acknowledged and not flushed comes to. *)
Definition unflushed : list (action nat) :=
  [DoSubmit (RWrite 0 [7]); DoAcknowledge; DoCrash 0 false ∅; DoLoad; DoRecover; DoRead Live 0 1].

(** A design that promises no more than [Prefix], and keeps it, does not keep [Ack]. *)
Theorem prefix_is_not_ack : ¬ implements (log_structured_disk (V:=nat) (by_the_rules Prefix 2)) Ack.
Proof. apply (shown_is_refused _ _ 2 unflushed). by vm_compute. Qed.

(** The rule is broken by a design that promises this, *)
Definition promised (r : rule) : profile := if decide (r = LogBeforeCheckpoint) then Prefix else Ack.

(** and what goes wrong then. *)
Definition goes_wrong (r : rule) : list (action nat) :=
  match r with
  | FlushBeforeAcknowledge => unflushed
  | SealBeforeCheckpoint =>     (* the checkpoint is loaded with garbage behind it *)
      operation (RWrite 0 [7]) ++ [DoDestage 0 [0]; DoCheckpointNodes; DoCheckpointCommit;
        DoCrash 1 false {[0 := [9]]}; DoLoad; DoRecover; DoRead Live 0 1]
  | LogBeforeCheckpoint =>      (* it hides the records that are written where the lost ones were *)
      [DoSubmit (RWrite 0 [7]); DoAcknowledge; DoDestage 0 [0]; DoSeal 0;
        DoCheckpointNodes; DoCheckpointCommit; DoCrash 0 false ∅; DoLoad; DoRecover] ++
      operation (RWrite 0 [8]) ++ [DoFlush; DoCrash 1 false ∅; DoLoad; DoRecover; DoRead Live 0 1]
  | TruncateAfterCommit =>      (* the log has forgotten what recovery needs *)
      operation (RWrite 0 [7]) ++ [DoDestage 0 [0]; DoSeal 0; DoCheckpointNodes; DoTruncate 1;
        DoCrash 1 false ∅; DoLoad; DoRecover; DoRead Live 0 1]
  | FreeAfterCheckpoint =>      (* a segment is overwritten under the durable checkpoint *)
      operation (RWrite 0 [7]) ++ [DoDestage 0 [0]; DoSeal 0] ++ operation (RWrite 1 [8]) ++
      [DoDestage 1 [1]; DoSeal 1; DoCheckpointNodes; DoCheckpointCommit; DoClean {[0; 1]} 2; DoFree 0] ++
      operation (RWrite 1 [9]) ++
      [DoDestage 0 [2]; DoSeal 0; DoCrash 3 false ∅; DoLoad; DoReplay; DoRecover; DoRead Live 0 1]
  | ReplayAfterCheckpoint =>    (* a snapshot's record takes it again, of what was written later *)
      operation (RWrite 0 [7]) ++ [DoDestage 0 [0]; DoSeal 0; DoCheckpointNodes; DoCheckpointCommit;
        DoTruncate 1] ++
      operation (RSnapshot "s") ++ operation (RWrite 0 [8]) ++
      [DoDestage 1 [1]; DoSeal 1; DoCheckpointNodes; DoCheckpointCommit;
        DoCrash 3 false ∅; DoLoad; DoReplay; DoReplay; DoRecover; DoRead (Named "s") 0 1]
  | ReclaimUnreachable =>       (* a chunk that a snapshot still refers to is gone *)
      operation (RWrite 0 [7]) ++ operation (RSnapshot "s") ++
      operation (RWrite 0 [8]) ++ [DoReclaim 0; DoRead (Named "s") 0 1]
  | CleanGains => []            (* see below: cleaning never ends *)
  end.

Theorem every_rule_needed r : r ≠ CleanGains →
  ∃ p, (p = Ack ∨ p = Prefix) ∧ ¬ implements (log_structured_disk (V:=nat) (breaking r p 2)) p.
Proof. intros Hr. exists (promised r). split; [unfold promised; case_decide; auto|].
  apply (shown_is_refused _ _ 2 (goes_wrong r)). by destruct r; vm_compute. Qed.

(** ** Read after snapshot needs what it asks for *)

Definition snapshot_lost (K : design) : Prop :=
  ∃ c0 c1 tr c2, reached K c0 ∧ step K c0 [Snapshot "s" Ok] c1 ∧ steps K c1 tr c2 ∧ at_phase c2 = Running ∧
    spares "s" tr ∧ ¬ reads_as c2 "s" (live (seen (V:=nat) c0)).

(** A run in two parts, between which the snapshot is taken. *)
Definition loses (K : design) (before behind : list (action nat)) : bool :=
  default false (
    '(_, c0) ← perform_all K before (initial 2); '(es, c1) ← perform K DoAcknowledge c0;
      '(tr, c2) ← perform_all K behind c1;
    Some (bool_decide (es = [Snapshot "s" Ok] ∧ at_phase c2 = Running ∧ spares "s" tr) &&
      match snaps (seen c2) !! "s" with Some v => bool_decide (v 0 ≠ live (seen c0) 0) | None => true end)).

Lemma loses_sound K before behind : loses K before behind = true → snapshot_lost K.
Proof.
  unfold loses. destruct (perform_all K before (initial 2)) as [[tr0 c0]|] eqn:H0;
    cbn [mbind option_bind from_option id]; [|done].
  destruct (perform K DoAcknowledge c0) as [[es c1]|] eqn:H1; cbn [mbind option_bind from_option id]; [|done].
  destruct (perform_all K behind c1) as [[tr c2]|] eqn:H2; cbn [mbind option_bind from_option id]; [|done].
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
  apply (loses_sound _ (operation (RWrite 0 [7]) ++ [DoSubmit (RSnapshot "s"); DoLogAppend])
    (operation (RWrite 0 [8]) ++ [DoReclaim 0])).
  by vm_compute.
Qed.

(** Under [Prefix] a snapshot that was not flushed need not survive, with every rule obeyed. *)
Theorem prefix_snapshot_needs_flush : snapshot_lost (by_the_rules Prefix 2).
Proof.
  apply (loses_sound _ (operation (RWrite 0 [7]) ++ [DoSubmit (RSnapshot "s")])
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

(** ** The other theorems

Each theorem is about states that a sound design reaches, and about steps that may be taken. *)

Lemma differ (d e : disk nat) : live d 0 ≠ live e 0 → ¬ same_disk d e.
Proof. intros Hne Hs. specialize (Hs Live). inversion Hs as [? ? Hv|]; subst. apply Hne, Hv. Qed.

Lemma reaches (test : state nat → bool) K blocks l :
  ends_with (λ _ c, test c) K l (initial blocks) = true → ∃ c, reached K c ∧ test c = true.
Proof. intros (tr & c & Hs & Ht)%ends_with_sound. exists c. split; [by exists blocks, tr|done]. Qed.

(** A flushed snapshot stays; another need not ([applied c ≤ flushed]). *)
Theorem unflushed_snapshot_goes : ∃ c c' tr v, reached (V:=nat) (by_the_rules Prefix 2) c ∧
  at_phase c = Running ∧
  reads_as c "s" v ∧ steps (by_the_rules Prefix 2) c tr c' ∧ spares "s" tr ∧ at_phase c' = Running ∧
    ¬ reads_as c' "s" v.
Proof.
  set (K := by_the_rules Prefix 2). set (l := [DoCrash (V:=nat) 0 false ∅; DoLoad; DoRecover]).
  destruct (reaches (λ c, bool_decide (at_phase c = Running ∧ is_Some (snaps (seen c) !! "s")) &&
    ends_with (λ tr c', bool_decide (spares "s" tr ∧ at_phase c' = Running ∧
      snaps (seen c') !! "s" = None)) K l c)
    K 1 [DoSubmit (RSnapshot "s"); DoAcknowledge]) as (c & Hc & [Hr He]%andb_true_iff).
  { unfold spares. by vm_compute. }
  apply bool_decide_eq_true in Hr as (Hp & v & Hv).
  apply ends_with_sound in He as (tr & c' & Hs & (Hsp & Hp' & Hn)%bool_decide_eq_true).
  exists c, c', tr, v. split_and!; try done; [by exists v|apply Hsp..|].
  intros (w & Hw & _). by pose proof (eq_trans (eq_sym Hn) Hw).
Qed.

(** A simulation has to follow every step: one that relates everything is none ([moves]). *)
Theorem simulation_needs_moves : ∃ (M : implementation nat) (R : inside M → VirtualDisk.state nat → Prop),
  (∀ blocks c, fresh M blocks c → R c (created blocks)) ∧ ¬ implements M Ack.
Proof. exists (log_structured_disk (by_the_rules Prefix 2)), (λ _ _, True).
split; [done|apply prefix_is_not_ack]. Qed.

(** With a checkpoint of data that is not durable, neither checkpoint and suffix nor recovery give the history
back. *)
Definition hollow : list (action nat) := operation (RWrite 0 [7]) ++
  [DoDestage 0 [0]; DoCheckpointNodes; DoCheckpointCommit; DoCrash 1 false {[0 := [9]]}].

Theorem checkpoint_needs_sound : ∃ K (c : state nat) i, reached K c ∧ newest (dev c) = Some i ∧
  ¬ same_disk (foldl (λ d r, effect r d) (checkpoint_disk c i) (drop (upto i - first c) (log (dev c))))
    (after (history c)).
Proof.
  exists (breaking SealBeforeCheckpoint Ack 2). destruct (reaches (λ c, match newest (dev c) with
    | Some i => bool_decide (live (foldl (λ d r, effect r d) (checkpoint_disk c i)
        (drop (upto i - first c) (log (dev c)))) 0
        ≠ live (after (history c)) 0)
    | None => false end) (breaking SealBeforeCheckpoint Ack 2) 1 hollow) as (c & Hc & Ht); [by vm_compute|].
  destruct (newest (dev c)) as [i|] eqn:Hi; [|done]. apply bool_decide_eq_true in Ht.
  exists c, i. split_and!; [done..|by apply differ].
Qed.

Theorem recovery_needs_sound : ∃ K (c c' : state nat), reached K c ∧ at_phase c ≠ Running ∧ recovery K c c' ∧
  at_phase c' = Running ∧ ¬ same_disk (seen c') (after (history c)).
Proof.
  set (K := breaking SealBeforeCheckpoint Ack 2). exists K.
    destruct (reaches (λ c, match perform K DoLoad c with
    | Some (_, c1) => match perform K DoRecover c1 with
      | Some (_, c2) => bool_decide (at_phase c ≠ Running ∧ at_phase c1 ≠ Running ∧ at_phase c2 = Running ∧
          live (seen c2) 0 ≠ live (after (history c)) 0)
      | None => false end
    | None => false end) K 1 hollow) as (c & Hc & Ht); [by vm_compute|].
  destruct (perform K DoLoad c) as [[es1 c1]|] eqn:H1; [|done].
  destruct (perform K DoRecover c1) as [[es2 c2]|] eqn:H2; [|done].
  apply bool_decide_eq_true in Ht as (? & ? & ? & Hd).
  exists c, c2. split_and!; [done..| |done|by apply differ]. apply perform_sound in H1, H2.
  eapply recovery_step; [done..|]. eapply recovery_step; [done..|constructor].
Qed.

(** Without a valid slot recovery cannot begin ([reached]). *)
Theorem recovery_needs_reached K : ∃ c : state nat, at_phase c ≠ Running ∧ ∀ c', recovery K c c' →
  at_phase c' ≠ Running.
Proof.
  set (P (c : state nat) := at_phase c = Off ∧ newest (dev c) = None ∧ nodes (mem c) = None).
  exists (State 1 Off None (Devices [] [] 0 None None ∅) no_memory). split; [done|].
  assert (∀ c c', recovery K c c' → P c → P c') as Hk.
  { induction 1 as [|c es c1 c2 _ Hs _ IH]; [done|]. intros (Hp & Hn & Hm). apply IH.
    destruct Hs as [| | | | | | | | | | | | | | |keep torn garbage Hk Ht| | | |]; try congruence.
    destruct torn; [by destruct (Ht I)|]. unfold P. simpl. by split_and!. }
  intros c' Hr. destruct (Hk _ _ Hr) as [-> _]; [|done]. by split_and!.
Qed.

(** Replay starts again from the same place, if the crash leaves the log alone ([logged c1 ≤ keep]). *)
Theorem replay_needs_log : ∃ (c : state nat) i,
  let c2 := crash 0 false ∅ (load 0 i c) in 0 < logged (load 0 i c) ∧ history c2 ≠ history c.
Proof. exists (submit (RWrite 0 [7]) (initial 1)), (Checkpoint no_maps 0 0). by vm_compute. Qed.

(** What dropping a chunk that a view refers to shows. *)
Theorem silent_step_needs_sound : ∃ K (c c' : state nat), reached K c ∧ at_phase c = Running ∧
  step K c [] c' ∧
  at_phase c' = Running ∧ ¬ same_disk (seen c') (seen c).
Proof.
  set (K := breaking ReclaimUnreachable Ack 2). exists K. destruct (reaches (λ c,
    bool_decide (at_phase c = Running ∧ live (seen (reclaim 0 c)) 0 ≠ live (seen c) 0))
      K 1 (operation (RWrite 0 [7])))
    as (c & Hc & (Hp & Hd)%bool_decide_eq_true); [by vm_compute|].
  exists c, (reclaim 0 c). split_and!; [done..| |done|by apply differ].
  apply Reclaim; [by rewrite Hp|by intros []].
Qed.

(** Two blocks, each alone in its segment, and a third in the bank. *)
Definition two_segments : list (action nat) := operation (RWrite 0 [7]) ++ [DoDestage 0 [0]; DoSeal 0] ++
  operation (RWrite 1 [8]) ++ [DoDestage 1 [1]; DoSeal 1] ++ operation (RWrite 2 [9]).

(** Destaged or cleaned into a segment that is in use, or cleaned into the victim itself, a chunk is lost; a
segment in use holds what is reachable. *)
Theorem segments_must_be_free : ∃ c : state nat, reached (by_the_rules Ack 2) c ∧
  ¬ same_disk (seen (place 0 [2] c)) (seen c) ∧ ¬ same_disk (seen (clean {[1]} 0 c)) (seen c) ∧
  (table (mem (clean {[0]} 0 c)) !! 0 = Some Dead ∧ 0 ∈ segments_of (current (mem (clean {[0]} 0 c)))) ∧
  table (mem c) !! 0 = Some Sealed ∧ 0 ∈ segments_of (current (mem c)).
Proof.
  destruct (reaches (λ c, bool_decide (live (seen (place 0 [2] c)) 0 ≠ live (seen c) 0 ∧
      live (seen (clean {[1]} 0 c)) 0 ≠ live (seen c) 0 ∧
      (table (mem (clean {[0]} 0 c)) !! 0 = Some Dead ∧ 0 ∈ segments_of (current (mem (clean {[0]} 0 c)))) ∧
      table (mem c) !! 0 = Some Sealed ∧ 0 ∈ segments_of (current (mem c))))
    (by_the_rules Ack 2) 3 two_segments) as (c & Hc & (? & ? & ?)%bool_decide_eq_true); [by vm_compute|].
  exists c. split_and!; [done|by apply differ..|apply H1|apply H1|apply H1|apply H1].
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
  intros (Hp & Hmid & Hg & Hfree). assert (chunks_in {[g]} (middle (current (mem c))) = [0]) as Hxs.
  { unfold chunks_in. rewrite Hmid, map_filter_singleton, decide_True by (simpl; set_solver).
    by rewrite map_to_list_singleton. }
  assert (clean {[g]} (S g) c = bury {[g]} (place (S g) [0] c)) as Hclean by (unfold clean; by rewrite Hxs).
  set (c1 := clean {[g]} (S g) c) in *. assert (table (mem c1) !! S g = Some Open) as Hopen.
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
    K (operation (RWrite 0 [7]) ++ [DoDestage 0 [0]; DoSeal 0]) (initial 1)) as (tr & c & Hsteps & Htest);
      [by vm_compute|].
  apply bool_decide_eq_true in Htest as (Hp & Hmid & Ht & Huse). exists c. split; [by exists 1, tr|].
  split; [done|]. intros n. apply (Hever n 0). split_and!; [done|done|by rewrite Ht, lookup_singleton|].
  intros g' Hg'. rewrite Ht. apply lookup_singleton_ne. lia.
Qed.
End CleaningForEver.
