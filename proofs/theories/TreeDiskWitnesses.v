(** The theorems of the disk with shared trees are not vacuous: an execution that does everything, computed;
and they need what they ask for: rules of the design and hypotheses dropped. *)
From stdpp Require Import strings.
From LogDisk Require Import TreeDisk TreeDiskTheorem.
From LogDisk Require TreeIndex Checker CheckerCorrect.
From LogDisk Require LogStructuredDiskWitnesses.
Import TreeIndex(index, trees, named, middle, next_mba).

Local Instance zero_nat : Value nat := 0.
Local Open Scope string_scope.
Local Open Scope list_scope.

(** ** Computing executions *)

(** The first pages that the design lets a checkpoint write to, one for each dirty node. *)
Definition first_places (K : design) (c : state nat) : list nat :=
  take (length (dirty (mem c))) (filter (λ p, p ∉ targets (page_of (mem c)) ∧
    (obeys K FreeAfterCheckpoint → p ∉ pinned_pages c)) (seq 0 100)).

(** Where a script says [CheckpointNodes []], the first places are taken. *)
Definition filled (K : design) (c : state nat) (a : action nat) : action nat :=
  match a with CheckpointNodes [] => CheckpointNodes (first_places K c) | a => a end.

Fixpoint perform_all (K : design) (bits levels : nat) (l : list (action nat)) (c : state nat) :
    option (list (event nat) * state nat) :=
  match l with
  | [] => Some ([], c)
  | a :: l =>
      '(es, c') ← perform K bits levels (filled K c a) c;
      '(tr, c'') ← perform_all K bits levels l c'; Some (es ++ tr, c'')
  end.

Lemma perform_all_shows K bits levels l c tr c' : perform_all K bits levels l c = Some (tr, c') →
  shows (tree_disk K bits levels) c tr c'.
Proof. revert c tr. induction l as [|a l IH]; intros c tr Hp; cbn [perform_all] in Hp;
    [simplify_eq; constructor|].
  destruct (perform K bits levels (filled K c a) c) as [[es c1]|] eqn:Ha; [|done].
  cbn [mbind option_bind] in Hp. destruct (perform_all K bits levels l c1) as [[tr1 c2]|] eqn:Hl; [|done].
  simpl in Hp. simplify_eq. econstructor; [by eexists|by apply IH]. Qed.

(** All steps of all walks, as far as [fuel] goes. *)
Fixpoint finish_walks (K : design) (fuel : nat) (c : state nat) : state nat :=
  let s := trees (current (mem c)) in
  let steps := jc ← map_to_list (SharedTree.claims s); nn ← map_to_list (SharedTree.nodes s);
    match jc.1 with
    | inr t => match perform K 1 1 (Reclaim t nn.1) c with Some (_, c') => [c'] | None => [] end
    | inl _ => []
    end in
  match fuel, steps with S fuel, c' :: _ => finish_walks K fuel c' | _, _ => c end.

Lemma finish_walks_shows K fuel c : shows (tree_disk K 1 1) c [] (finish_walks K fuel c).
Proof.
  revert c. induction fuel as [|fuel IH]; intros c; cbn [finish_walks]; [constructor|].
  set (steps := jc ← _; _). destruct steps as [|c' rest] eqn:Hsteps; [constructor|].
  assert (c' ∈ steps) as Hin by (rewrite Hsteps; by left).
  assert (∃ a, perform K 1 1 a c = Some ([], c')) as Ha.
  { unfold steps in Hin. apply elem_of_list_bind in Hin as ([j cl] & Hin & _).
    apply elem_of_list_bind in Hin as ([n nd] & Hin & _). destruct j as [|t]; [by apply elem_of_nil in Hin|].
    cbn [fst] in Hin. destruct (perform K 1 1 (Reclaim t n) c) as [[es c2]|] eqn:Hp;
      [|by apply elem_of_nil in Hin]. apply elem_of_list_singleton in Hin as ->. exists (Reclaim t n).
    rewrite Hp. simpl in Hp. destruct (reclaim _ _ _ _) as [c3|]; simpl in Hp; [|done].
    by apply when_Some in Hp as [_ [= <- _]]. }
  change [] with ([] ++ [] : list (event nat)). by econstructor; [exact Ha|].
Qed.

(** Parts of an execution; behind each, all walks are brought to their end. *)
Fixpoint perform_parts (K : design) (parts : list (list (action nat))) (c : state nat) :
    option (list (event nat) * state nat) :=
  match parts with
  | [] => Some ([], c)
  | l :: parts =>
      '(es, c') ← perform_all K 1 1 l c; '(tr, c'') ← perform_parts K parts (finish_walks K 100 c');
      Some (es ++ tr, c'')
  end.

Lemma shows_app {V} (M : implementation V) c tr1 c1 tr2 c2 :
  shows M c tr1 c1 → shows M c1 tr2 c2 → shows M c (tr1 ++ tr2) c2.
Proof. intros H1 H2. induction H1 as [|c es c' tr c'' Hm _ IH]; [done|]. rewrite <-(assoc_L (++)).
  econstructor; [done|by apply IH]. Qed.

Lemma perform_parts_shows K parts c tr c' : perform_parts K parts c = Some (tr, c') →
  shows (tree_disk K 1 1) c tr c'.
Proof.
  revert c tr. induction parts as [|l parts IH]; intros c tr Hp; cbn [perform_parts] in Hp;
    [simplify_eq; constructor|].
  destruct (perform_all K 1 1 l c) as [[es c1]|] eqn:Ha; cbn [mbind option_bind] in Hp; [|done].
  destruct (perform_parts K parts (finish_walks K 100 c1)) as [[tr1 c2]|] eqn:Hl; cbn in Hp; [|done].
  simplify_eq.
  eapply shows_app; [by eapply perform_all_shows|]. change tr1 with ([] ++ tr1).
  eapply shows_app; [apply finish_walks_shows|by apply IH].
Qed.

(** The end of an execution from a new disk, of keys of two bits, that meets a test. *)
Definition ends_with (test : list (event nat) → state nat → bool) (K : design) (blocks : nat)
    (parts : list (list (action nat))) : bool :=
  match perform_parts K parts (initial 1 blocks) with Some (tr, c') => test tr c' | None => false end.

Lemma ends_with_shows test K blocks parts : ends_with test K blocks parts = true →
  ∃ tr c, shows (tree_disk K 1 1) (initial 1 blocks) tr c ∧ test tr c = true.
Proof. unfold ends_with. destruct (perform_parts _ _ _) as [[tr c]|] eqn:Hl; [|done]. intros Htest.
  exists tr, c. split; [by apply (perform_parts_shows K parts)|done]. Qed.

Definition operation (r : record nat) : list (action nat) := [Submit r; LogAppend; Acknowledge].

Definition junk : SharedTree.node := SharedTree.Node 5 [1] ∅ 3.

(** ** An execution with power cuts in the middle of a write and of a checkpoint, a recovery cut short, a
cleaning, the deletion of a snapshot and a revert, between which walks free what nobody holds *)

Definition execution : list (list (action nat)) :=
  [operation (RWrite 0 [11; 12]) ++                         (* MBA 0, 1 *)
   operation (RSnapshot "a") ++
   operation (RWrite 1 [13]) ++                             (* MBA 2 *)
   [Destage 0 [0; 1]; Destage 1 [2]; Seal 0; Seal 1;
    CheckpointNodes []; CheckpointCommit; Truncate 2] ++
   operation (RWrite 2 [14; 15]) ++                         (* MBA 3, 4 *)
   operation (RSnapshot "b") ++
   operation (RDelete "a");                                 (* MBA 1, which "a" alone still held, goes *)
   [Clean {[0; 1]} 2; Destage 3 [3; 4]; Seal 2; Seal 3;
    CheckpointNodes [];
    Submit (RWrite 0 [16]);
    Crash 6 true {[7 := [99]]} {[0 := junk; 8 := junk]};    (* slot and pages are torn, the write is lost *)
    Load; Replay; Replay;
    Crash 6 false ∅ ∅;                                        (* recovery is cut short *)
    Load; Replay; Destage 2 [3; 4]; Replay; Replay; Recover;
    Read Live 0 4; Read (Named "b") 0 4];
   [Clean {[0; 1]} 3; Seal 2; Seal 3] ++
   operation (RWrite 0 [17]) ++                             (* MBA 5 *)
   operation (RRevert "b");
   [CheckpointNodes []; CheckpointCommit; Free 0; Restart; Load; Recover;
    Read Live 0 4; Read (Named "b") 0 4]].

Definition execution_shows : list (event nat) :=
  [Write 0 [11; 12] Ok; Snapshot "a" Ok; Write 1 [13] Ok;
   Write 2 [14; 15] Ok; Snapshot "b" Ok; Delete "a" Ok;
   Write 0 [16] CutShort; VirtualDisk.Crash CutShort; VirtualDisk.Crash Ok;
   VirtualDisk.Read Live 0 4 Ok [11; 13; 14; 15]; VirtualDisk.Read (Named "b") 0 4 Ok [11; 13; 14; 15];
   Write 0 [17] Ok; Revert "b" Ok; VirtualDisk.Restart Ok;
   VirtualDisk.Read Live 0 4 Ok [11; 13; 14; 15]; VirtualDisk.Read (Named "b") 0 4 Ok [11; 13; 14; 15]].

Local Instance event_eq_dec : EqDecision (event nat) := ltac:(solve_decision).

(** The MBAs that the disk keeps data of. *)
Definition kept_mbas (c : state nat) : gset nat := dom (bank (mem c)) ∪ dom (middle (current (mem c))).

(** At its end the disk keeps the data of four MBAs, though eight were used, and it has used 12 pages for the
21 nodes that were numbered. *)
Definition ends_small (c : state nat) : Prop :=
  kept_mbas c = {[0; 2; 3; 4]} ∧ base.size (pages (dev c)) = 12 ∧
  SharedTree.next (trees (current (mem c))) = 21.

Theorem execution_exists p : p = Ack ∨ p = Prefix →
  ∃ c, shows (tree_disk (by_the_rules p 2) 1 1) (initial 1 4) execution_shows c ∧ at_phase c = Running ∧
    ends_small c.
Proof.
  intros Hp.
  destruct (ends_with_shows (λ tr c, bool_decide (tr = execution_shows ∧ at_phase c = Running ∧
    kept_mbas c = {[0; 2; 3; 4]} ∧ base.size (pages (dev c)) = 12 ∧
    SharedTree.next (trees (current (mem c))) = 21)) (by_the_rules p 2) 4 execution)
    as (tr & c & Hsteps & Htest).
  { destruct Hp as [-> | ->]; by vm_compute. }
  apply bool_decide_eq_true in Htest as (-> & Hphase & Hkept). by exists c.
Qed.

(** ** Without one of its rules the design does not keep the contract *)

Definition refused (K : design) (p : profile) (blocks : nat) (l : list (action nat)) : bool :=
  ends_with (λ tr _, negb (Checker.check p (Create blocks :: tr))) K blocks [l].

Lemma shown_is_refused K p blocks l : refused K p blocks l = true → ¬ implements (tree_disk (V:=nat) K 1 1) p.
Proof. intros (tr & c & Hsteps & Hcheck)%ends_with_shows Himp.
  assert (admits p (Create blocks :: tr)) as Hadm by (by eapply Himp).
  apply CheckerCorrect.check_correct in Hadm. by rewrite Hadm in Hcheck. Qed.

(** A chunk of a snapshot is written anew; the walk of the old path frees the snapshot's chunk unasked. *)
Definition unasked : list (action nat) :=
  operation (RWrite 0 [7]) ++ [Read Live 0 1] ++ operation (RSnapshot "s") ++
  operation (RWrite 0 [8]) ++ [Reclaim 4 3; Read (Named "s") 0 1].

(** As [LogStructuredDiskWitnesses.goes_wrong]. *)
Definition goes_wrong (r : rule) : list (action nat) :=
  match r with
  | FlushBeforeAcknowledge =>
      [Submit (RWrite 0 [7]); Acknowledge; Crash 0 false ∅ ∅; Load; Recover; Read Live 0 1]
  | SealBeforeCheckpoint =>
      operation (RWrite 0 [7]) ++ [Destage 0 [0]; CheckpointNodes []; CheckpointCommit;
        Crash 1 false {[0 := [9]]} ∅; Load; Recover; Read Live 0 1]
  | LogBeforeCheckpoint =>
      [Submit (RWrite 0 [7]); Acknowledge; Destage 0 [0]; Seal 0;
        CheckpointNodes []; CheckpointCommit; Crash 0 false ∅ ∅; Load; Recover] ++
      operation (RWrite 0 [8]) ++ [Flush; Crash 1 false ∅ ∅; Load; Recover; Read Live 0 1]
  | TruncateAfterCommit =>
      operation (RWrite 0 [7]) ++ [Destage 0 [0]; Seal 0; CheckpointNodes []; Truncate 1;
        Crash 1 false ∅ ∅; Load; Recover; Read Live 0 1]
  | FreeAfterCheckpoint =>
      operation (RWrite 0 [7]) ++ [Destage 0 [0]; Seal 0] ++ operation (RWrite 1 [8]) ++
      [Destage 1 [1]; Seal 1; CheckpointNodes []; CheckpointCommit; Clean {[0; 1]} 2; Free 0] ++
      operation (RWrite 1 [9]) ++
      [Destage 0 [2]; Seal 0; Crash 3 false ∅ ∅; Load; Replay; Recover; Read Live 0 1]
  | ReplayAfterCheckpoint =>
      operation (RWrite 0 [7]) ++ [Destage 0 [0]; Seal 0; CheckpointNodes []; CheckpointCommit; Truncate 1] ++
      operation (RSnapshot "s") ++ operation (RWrite 0 [8]) ++
      [Destage 1 [1]; Seal 1; CheckpointNodes []; CheckpointCommit;
        Crash 3 false ∅ ∅; Load; Replay; Replay; Recover; Read (Named "s") 0 1]
  | ReclaimUnreachable => unasked
  | CleanGains => []            (* cleaning never ends: [clean_gains_needed] *)
  end.

Theorem tree_rules_needed r : r ≠ CleanGains →
  ∃ p, (p = Ack ∨ p = Prefix) ∧ ¬ implements (tree_disk (V:=nat) (breaking r p 2) 1 1) p.
Proof. intros Hr. exists (if decide (r = LogBeforeCheckpoint) then Prefix else Ack).
  split; [case_decide; auto|].
  apply (shown_is_refused _ _ 2 (goes_wrong r)). by destruct r; vm_compute. Qed.
(** The rule that a page is not written again while a checkpoint that may be loaded refers to it: without it,
a block that nobody wrote reads as zero after a power cut. *)
Definition reused_page : list (list (action nat)) :=
  [operation (RWrite 0 [7; 9]) ++ [Destage 0 [0; 1]; Seal 0; CheckpointNodes []; CheckpointCommit] ++
   operation (RWrite 0 [8]);
   [Destage 1 [2]; Seal 1; CheckpointNodes []] ++ operation (RWrite 0 [6]) ++
   [Destage 2 [3]; Seal 2; CheckpointNodes []; Crash 3 false ∅ ∅; Load; Replay; Replay; Recover;
    Read Live 0 2]].

Definition reused_page_shows (data : list nat) : list (event nat) :=
  [Write 0 [7; 9] Ok; Write 0 [8] Ok; Write 0 [6] Ok; VirtualDisk.Crash CutShort; VirtualDisk.Crash Ok;
   VirtualDisk.Read Live 0 2 Ok data].

Theorem tree_pages_needed :
  (∃ c, shows (tree_disk (by_the_rules Ack 2) 1 1) (initial 1 2) (reused_page_shows [6; 9]) c) ∧
  ∃ c, shows (tree_disk (breaking FreeAfterCheckpoint Ack 2) 1 1) (initial 1 2) (reused_page_shows [6; 0]) c.
Proof.
  split; [destruct (ends_with_shows (λ tr _, bool_decide (tr = reused_page_shows [6; 9]))
      (by_the_rules Ack 2) 2 reused_page) as (tr & c & Hs & ->%bool_decide_eq_true);
        [by vm_compute|by exists c]|].
  destruct (ends_with_shows (λ tr _, bool_decide (tr = reused_page_shows [6; 0]))
    (breaking FreeAfterCheckpoint Ack 2) 2 reused_page) as (tr & c & Hs & ->%bool_decide_eq_true);
    [by vm_compute|by exists c].
Qed.

(** ** Hypotheses dropped *)

Lemma reaches (test : state nat → bool) K blocks parts :
  ends_with (λ _ c, test c) K blocks parts = true → ∃ c, reached K 1 1 c ∧ test c = true.
Proof. intros (tr & c & Hs & Ht)%ends_with_shows. exists c. split; [by exists blocks, tr|done]. Qed.

(** [read_after_snapshot] without [sound], without a flush under [Prefix], and if somebody deletes. *)
Definition snapshot_changes (K : design) (allowed : list (event nat) → Prop) : Prop :=
  ∃ c before tr data data', allowed tr ∧ shows (tree_disk K 1 1) (initial 1 2)
    (before ++ VirtualDisk.Read Live 0 1 Ok data :: Snapshot "s" Ok ::
      tr ++ [VirtualDisk.Read (Named "s") 0 1 Ok data']) c ∧ data' ≠ data.

Lemma changes K l before tr data data' (allowed : list (event nat) → Prop) :
  ends_with (λ tr' _, bool_decide (tr' = before ++ VirtualDisk.Read Live 0 1 Ok data :: Snapshot "s" Ok ::
    tr ++ [VirtualDisk.Read (Named "s") 0 1 Ok data'])) K 2 [l] = true →
  allowed tr → data' ≠ data → snapshot_changes K allowed.
Proof. intros (tr' & c & Hs & ->%bool_decide_eq_true)%ends_with_shows ? ?.
  by exists c, before, tr, data, data'. Qed.

Theorem tree_snapshot_needs_rules :
  snapshot_changes (breaking ReclaimUnreachable Ack 2) (Forall (VirtualDiskProperties.keeps "s")).
Proof. apply (changes _ unasked [Write 0 [7] Ok] [Write 0 [8] Ok] [7] [0]); [by vm_compute| |done].
  by repeat constructor. Qed.

Theorem tree_snapshot_needs_flush :
  snapshot_changes (by_the_rules Prefix 2) (Forall (VirtualDiskProperties.keeps "s")).
Proof.
  apply (changes _ (operation (RWrite 0 [7]) ++ [Read Live 0 1; Submit (RSnapshot "s"); Acknowledge;
      Crash 1 false ∅ ∅; Load; Replay; Recover] ++
      operation (RWrite 0 [8]) ++ operation (RSnapshot "s") ++ [Read (Named "s") 0 1])
    [Write 0 [7] Ok] [VirtualDisk.Crash CutShort; VirtualDisk.Crash Ok; Write 0 [8] Ok;
      Snapshot "s" Ok] [7] [8]);
    [by vm_compute| |done]. by repeat constructor.
Qed.

Theorem tree_snapshot_needs_no_delete : snapshot_changes (by_the_rules Ack 2) (λ _, True).
Proof.
  apply (changes _ (operation (RWrite 0 [7]) ++ [Read Live 0 1] ++ operation (RSnapshot "s") ++
      operation (RDelete "s") ++ operation (RWrite 0 [8]) ++ operation (RSnapshot "s") ++ [Read (Named "s")
        0 1])
    [Write 0 [7] Ok] [Delete "s" Ok; Write 0 [8] Ok; Snapshot "s" Ok] [7] [8]); [by vm_compute|done|done].
Qed.

(** No view maps [x], on keys of two bits: computed. *)
Definition unmapped_by (c : state nat) (x v : nat) : bool :=
  let i := current (mem c) in let s := trees i in
  match SharedTree.claims s !! inl v with
  | Some cl => match SharedTree.nodes s !! SharedTree.root cl with
    | Some nd => (SharedTree.height s =? 2)%nat && forallb (λ dm, dm.1 <? 2)%nat (map_to_list
      (SharedTree.kids nd))
    | None => true end
  | None => true end && forallb (λ l, bool_decide (TreeIndex.mba_of 1 i v l ≠ Some x)) [0; 1; 2; 3].

Lemma unmapped_by_sound c x v l : unmapped_by c x v = true → TreeIndex.mba_of 1 (current (mem c)) v l ≠ Some
  x.
Proof.
  unfold unmapped_by. rewrite andb_true_iff. intros [Hroot Hall] Hl.
  assert (l < 4) as Hlt.
  { unfold TreeIndex.mba_of, SharedTree.read in Hl.
    destruct (SharedTree.claims _ !! inl v) as [cl|]; [|done]. simpl in Hl.
    destruct (SharedTree.nodes _ !! SharedTree.root cl) as [nd|] eqn:Hnd.
    - apply andb_true_iff in Hroot as [Hh%Nat.eqb_eq Hkids]. rewrite Hh in Hl.
      cbn [TreeIndex.key SharedTree.descend] in Hl.
      rewrite Hnd in Hl. cbn [mbind option_bind] in Hl.
      destruct (SharedTree.kids nd !! (l / 2 ^ (1 * 1))) as [m|] eqn:Hd; [|done].
      rewrite forallb_forall in Hkids. specialize (Hkids (l / 2 ^ (1 * 1), m)).
      rewrite <-elem_of_list_In, elem_of_map_to_list in Hkids. specialize (Hkids Hd).
      apply Nat.ltb_lt in Hkids. cbn [fst] in Hkids. change (2 ^ (1 * 1)) with 2 in Hkids.
      pose proof (Nat.div_mod l 2). pose proof (Nat.mod_upper_bound l 2). lia.
    - destruct (TreeIndex.key _ _ _); simpl in Hl; by rewrite Hnd in Hl. }
  rewrite forallb_forall in Hall. specialize (Hall l). apply bool_decide_eq_true in Hall; [done|].
  destruct l as [|[|[|[|]]]]; simpl; auto; lia.
Qed.

Definition unmapped (c : state nat) (x : nat) : bool :=
  unmapped_by c x (SharedTree.epoch (trees (current (mem c)))) &&
  forallb (λ nv, unmapped_by c x nv.2) (map_to_list (named (current (mem c)))).

Lemma unmapped_sound c x : unmapped c x = true → ¬ maps_to 1 c x.
Proof.
  unfold unmapped. rewrite andb_true_iff, forallb_forall. intros [Hlive Hnamed] ([|n] & v & l & Hv & Hl);
    simpl in Hv.
  - injection Hv as <-. by eapply unmapped_by_sound.
  - eapply unmapped_by_sound; [|exact Hl]. apply (Hnamed (n, v)). by apply elem_of_list_In,
    elem_of_map_to_list.
Qed.

(** [keeps_exactly] without [sound]: a chunk whose path was freed unasked is kept for ever. *)
Theorem tree_space_needs_rules : ∃ (c : state nat) x, reached (breaking ReclaimUnreachable Ack 2) 1 1 c ∧
  at_phase c = Running ∧ no_walks c ∧ keeps c x ∧ ¬ maps_to 1 c x.
Proof.
  destruct (reaches (λ c, bool_decide (at_phase c = Running ∧ is_Some (bank (mem c) !! 0)) &&
      forallb (λ jc, match jc.1 with inl _ => true | inr _ => false end)
        (map_to_list (SharedTree.claims (trees (current (mem c))))) && unmapped c 0)
    (breaking ReclaimUnreachable Ack 2) 2 [operation (RWrite 0 [7]) ++ operation (RSnapshot "s") ++
      operation (RWrite 0 [8]) ++ [Reclaim 4 1]]) as (c & Hc & [[Hb Hw]%andb_true_iff Hno]%andb_true_iff).
  { by vm_compute. }
  apply bool_decide_eq_true in Hb as [Hp Hb]. exists c, 0. split_and!;
    [done|done| |by left|by apply unmapped_sound].
  intros t. destruct (SharedTree.claims _ !! inr t) as [cl|] eqn:Ht; [|done].
  rewrite forallb_forall in Hw. specialize (Hw (inr t, cl)). rewrite <-elem_of_list_In, elem_of_map_to_list
    in Hw.
  by specialize (Hw Ht).
Qed.

(** And while a walk is left. *)
Theorem tree_space_needs_walks : ∃ (c : state nat) x, reached (by_the_rules Ack 2) 1 1 c ∧
  at_phase c = Running ∧ keeps c x ∧ ¬ maps_to 1 c x.
Proof.
  destruct (perform_all (by_the_rules Ack 2) 1 1 (operation (RWrite 0 [7]) ++ operation (RSnapshot "s") ++
      operation (RWrite 0 [8]) ++ operation (RDelete "s")) (initial 1 2)) as [[tr c]|] eqn:Hrun;
    [|by vm_compute in Hrun].
  assert (bool_decide (at_phase c = Running ∧ is_Some (bank (mem c) !! 0)) && unmapped c 0 = true) as Ht.
  { transitivity (from_option (λ x : list (event nat) * state nat,
      bool_decide (at_phase x.2 = Running ∧ is_Some (bank (mem x.2) !! 0)) && unmapped x.2 0) false
      (Some (tr, c))); [done|]. rewrite <-Hrun. by vm_compute. }
  apply andb_true_iff in Ht as [[Hp Hb]%bool_decide_eq_true Hno].
  exists c, 0. split_and!; [|done|by left|by apply unmapped_sound].
  exists 2, tr. by eapply perform_all_shows.
Qed.

(** Without a walk there is no step of one. *)
Theorem tree_walks_need_a_walk t n :
  perform (by_the_rules Ack 2) 1 1 (Reclaim (S t) n) (initial (V := nat) 1 2) = None.
Proof.
  assert (SharedTree.claims (trees (current (mem (initial (V := nat) 1 2)))) !! inr (S t) = None) as Hno by
    done.
  cbn [perform]. unfold reclaim. cbn [obeys by_the_rules]. unfold SharedTree.reclaim. by rewrite Hno.
Qed.
