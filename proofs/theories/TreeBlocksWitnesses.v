(** What the theorems of trees on blocks need: hypotheses dropped, computed. *)
From stdpp Require Import strings.
From LogDisk Require SharedTreeDeletion TreeDiskBounds.
From LogDisk Require Import TreeDisk TreeDiskTheorem TreeDiskWitnesses.
Import TreeIndex(trees, named).

Local Instance zero_nat : Value nat := 0.
Local Open Scope string_scope.
Local Open Scope list_scope.

Notation K := (by_the_rules Ack 2).

(** A state that is reached by a script, and meets a test. *)
Lemma script_reaches (test : state nat → bool) bits levels blocks l :
  from_option (λ x, test x.2) false (perform_all K bits levels l (initial levels blocks)) = true →
  ∃ tr c, shows (tree_disk K bits levels) (initial levels blocks) tr c ∧ test c = true.
Proof.
  destruct (perform_all K bits levels l _) as [[tr c]|] eqn:Hl; [|done]. intros Ht. exists tr, c.
  split; [by eapply perform_all_shows|done].
Qed.

(** [nodes_fit] with more blocks than keys: a tree of one binary digit, on a disk of three blocks. *)
Theorem nodes_need_keys : ∃ tr c n nd, shows (tree_disk K 1 0) (initial (V := nat) 0 3) tr c ∧
  SharedTree.nodes (trees (current (mem c))) !! n = Some nd ∧ 2 ^ 1 < base.size (SharedTree.kids nd).
Proof.
  destruct (script_reaches (λ c, from_option (λ nd, (2 <? base.size (SharedTree.kids nd))%nat) false
    (SharedTree.nodes (trees (current (mem c))) !! 1)) 1 0 3
    (operation (RWrite 0 [7; 8]) ++ operation (RWrite 2 [9]))) as (tr & c & Hc & Ht); [by vm_compute|].
  destruct (SharedTree.nodes (trees (current (mem c))) !! 1) as [nd|] eqn:Hn; [|done].
  exists tr, c, 1, nd. split_and!; [done..|]. by apply Nat.ltb_lt in Ht.
Qed.

(** [roots_bounded] while a walk is left: there are more claims than views. *)
Theorem roots_need_walks_done : ∃ tr c, shows (tree_disk K 1 1) (initial (V := nat) 1 2) tr c ∧
  1 + base.size (named (current (mem c))) < base.size (SharedTree.claims (trees (current (mem c)))).
Proof.
  destruct (script_reaches (λ c, (1 + base.size (named (current (mem c))) <?
      base.size (SharedTree.claims (trees (current (mem c)))))%nat) 1 1 2
    (operation (RWrite 0 [7]) ++ operation (RSnapshot "s") ++ operation (RWrite 0 [8])))
    as (tr & c & Hc & Ht); [by vm_compute|].
  exists tr, c. split; [done|]. by apply Nat.ltb_lt in Ht.
Qed.

Lemma run_next s s' history : SharedTreeInvariant.inv s → SharedTree.run s history = Some s' →
  SharedTree.next s ≤ SharedTree.next s'.
Proof.
  revert s. induction history as [|a history IH]; intros s I Hrun; simpl in Hrun; [by injection Hrun as <-|].
  destruct (SharedTree.apply a s) as [s1|] eqn:E; simpl in Hrun; [|done].
  destruct (SharedTreeDeletion.next_step _ _ _ I E) as [Hle _].
  specialize (IH s1 (SharedTreeReclaim.inv_step _ _ _ I E) Hrun). lia.
Qed.

(** [steps_are_changes] for a power cut: no history of changes leads to what it leaves in memory. *)
Theorem cuts_are_no_changes : ∃ tr c a es c', shows (tree_disk K 1 1) (initial (V := nat) 1 2) tr c ∧
  perform K 1 1 a c = Some (es, c') ∧
  ∀ history, SharedTree.run (trees (current (mem c))) history ≠ Some (trees (current (mem c'))).
Proof.
  destruct (script_reaches (λ c, (1 <? SharedTree.next (trees (current (mem c))))%nat &&
    match perform K 1 1 (Crash 1 false ∅ ∅) c with Some _ => true | None => false end) 1 1 2
    (operation (RWrite 0 [7]))) as (tr & c & Hc & Ht); [by vm_compute|].
  apply andb_true_iff in Ht as [Hnext%Nat.ltb_lt Hcrash].
  destruct (perform K 1 1 (Crash 1 false ∅ ∅) c) as [[es c']|] eqn:E; [|done].
  exists tr, c, (Crash 1 false ∅ ∅), es, c'. split_and!; [done..|]. intros history Hrun.
  destruct (TreeDiskBounds.reached_kept K 1 1 2 tr c) as [_ _ _ Hkept _ _];
    [by apply by_the_rules_sound|simpl; lia|done|].
  pose proof (run_next _ _ _ (TreeIndexBounds.kept_inv _ _ _ Hkept) Hrun) as Hle.
  apply when_Some in E as [_ [= _ <-]]. simpl in Hle. lia.
Qed.
