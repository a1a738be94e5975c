(** What is proved of the shared tree, for every tree height and every history of writes, unmaps, snapshots, deletes,
    reverts, checkpoints, steps of reclaim and crashes in the middle of it.

    Theorem 5, deletion:
    - [dangling_free]: from a view's root no walk ever meets a number that is no node.
    - [leak_free]: every node is reached by a view, or held by a deleted one that still waits for its walk.
    - [birth_test_exact]: a node of a view was born no later than the parent was taken iff the parent reaches it.
    - [neighbour_test_exact]: nobody else reaches a node of a view iff it passes the birth test and neither a child
      nor a sibling reaches it.  On a chain, that is with no revert, siblings may be left out: [chain_test_exact].
      [one_successor_is_not_enough] and [children_are_not_enough]: after a revert they may not.
    - [reclaim_exact]: a step of a walk frees a node iff no other claim holds it, and frees nothing else.
    - [reclaim_falls]: each step leaves less to do.  [deletion_exact]: in the end, just what the views reach is left.
    - [frees_once]: what was freed is never freed again, though crashes set walks back to any earlier point.
    Theorem 6, copy-on-write:
    - [update_spares_others]: an update changes no node that another claim reaches, and no path to one.
    - [update_shares_rest]: off the path of its key, the new live tree has the very nodes of the old.
    - [lookup_exact]: after any history, reading a view is looking up in the map that the history makes of it.
    Theorem 7, cost ([SharedTreeCost] defines it):
    - [read_cost_constant], [write_cost_constant]: height + 1 nodes read, no node written, one append for a write; of a
      block that is mapped, in every state.  For any block, the same with and without snapshots: [cost_ignores_snapshots].
    - [snapshot_constant]: a snapshot touches no node and uses no number: all it writes is its record.
    Theorem 12: [execution] in SharedTreeExamples; and there, a rule dropped: [ownership_by_older_snapshot],
    [ownership_by_parent], [root_first_leaks], [unburied_leaks], and the two named above.

    Left out: numbers are never given out twice; the disk gives them out again after a checkpoint
    ([LogStructuredDisk]).  Here a live write leaves its replaced path to a walk; the engine frees it at once where the
    tests allow, which on a disk with deleted forks reads siblings in the foreground. *)
From LogDisk Require Import SharedTree SharedTreePaths SharedTreeUpdate SharedTreeInvariant SharedTreeWrite
  SharedTreeReclaim SharedTreeDeletion SharedTreeLookup SharedTreeCost SharedTreeExamples.

(** * Deletion *)

Theorem dangling_free s : reachable s → no_dangling s.
Proof. intros I%reachable_inv v c Hv. by destruct (inv_view _ I _ _ Hv) as (_&_&[? ?]&_). Qed.

Theorem leak_free s : reachable s → no_leak s.
Proof. intros I%reachable_inv. apply (inv_held _ I). Qed.

Theorem birth_test_exact s v c p n nd : reachable s → claims s !! View v = Some c →
  claims s !! View (parent c) = Some p → reaches (nodes s) (root c) n → nodes s !! n = Some nd →
  birth nd ≤ parent c ↔ reaches (nodes s) (root p) n.
Proof.
  intros I%reachable_inv Hv Hp Hr Hn. split.
  - intros Hb. destruct (inv_birth _ I _ _ _ _ Hv Hr Hn Hb) as (p'&Hp'&?). by assert (p' = p) as -> by congruence.
  - intros Hr'. by eapply view_birth.
Qed.

Theorem neighbour_test_exact s v c n nd : reachable s → claims s !! View v = Some c →
  reaches (nodes s) (root c) n → nodes s !! n = Some nd →
  (∀ j c', claims s !! j = Some c' → j ≠ View v → ¬ reaches (nodes s) (root c') n) ↔
  parent c < birth nd ∧
  ∀ j c', claims s !! j = Some c' → j ≠ View v → parent c' = v ∨ parent c' = parent c →
    ¬ reaches (nodes s) (root c') n.
Proof. intros I%reachable_inv. by apply delete_test. Qed.

Theorem chain_test_exact levels history s v c n nd :
  run (create levels) history = Some s → (∀ w, Revert w ∉ history) →
  claims s !! View v = Some c → reaches (nodes s) (root c) n → nodes s !! n = Some nd →
  (∀ w c', claims s !! View w = Some c' → w ≠ v → ¬ reaches (nodes s) (root c') n) ↔
  parent c < birth nd ∧
  ∀ w c', claims s !! View w = Some c' → parent c' = v → ¬ reaches (nodes s) (root c') n.
Proof.
  intros Hrun Hnot. apply chain_test; [|by eapply chain_run]. eapply inv_run; [apply inv_create|done].
Qed.

Theorem reclaim_exact s s' t c n : reachable s → apply (Reclaim t n) s = Some s' → claims s !! Dying t = Some c →
  holds (nodes s) c n →
  (freed s s' n ↔ ∀ j c', claims s !! j = Some c' → j ≠ Dying t → ¬ holds (nodes s) c' n) ∧
  ∀ m, freed s s' m → m = n.
Proof.
  intros I%reachable_inv Hs Ht Hh. split; [split|].
  - intros Hf. by destruct (reclaim_frees _ _ _ _ _ I Hs Hf) as (_&?&_&_&?).
  - by eapply reclaim_frees_alone.
  - intros m Hf. by destruct (reclaim_frees _ _ _ _ _ I Hs Hf).
Qed.

Theorem reclaim_falls s s' t n : reachable s → apply (Reclaim t n) s = Some s' → size (work s') < size (work s).
Proof. intros I%reachable_inv. by apply SharedTreeDeletion.reclaim_falls. Qed.

Theorem deletion_exact s s1 v : reachable s → apply (Delete v) s = Some s1 →
  ∃ history s2, run s1 history = Some s2 ∧ (∀ a, a ∈ history → ∃ t n, a = Reclaim t n) ∧
    (∀ t, claims s2 !! Dying t = None) ∧
    ∀ n, is_Some (nodes s2 !! n) ↔
      ∃ w c, w ≠ v ∧ claims s !! View w = Some c ∧ reaches (nodes s) (root c) n.
Proof.
  intros I%reachable_inv Hs. pose proof (inv_step _ _ _ I Hs) as I1. simpl in Hs.
  destruct (v =? epoch s); [done|]. destruct (claims s !! View v) as [g|] eqn:Hg; simpl in Hs; [|done].
  injection Hs as <-. destruct (reclaim_ends _ I1) as (history&s2&Hrun&Hall&Hend&_&Hexact).
  exists history, s2. split_and!; try done. intros n. rewrite Hexact. simpl. split.
  - intros (w&c&[[[=] _]|[_ Hw]]%lookup_insert_Some&Hr). apply lookup_fmap_Some in Hw as (c0&<-&[? Hw]%lookup_delete_Some).
    exists w, c0. split_and!; [congruence|done|done].
  - intros (w&c&Hne&Hw&Hr). exists w, (reparent v (parent g) c). split; [|done].
    by rewrite lookup_insert_ne, lookup_fmap, lookup_delete_ne, Hw by congruence.
Qed.

Theorem frees_once s a s1 history s2 b s3 n : reachable s → apply a s = Some s1 → freed s s1 n →
  run s1 history = Some s2 → apply b s2 = Some s3 → ¬ freed s2 s3 n.
Proof. intros I%reachable_inv. by apply freed_once. Qed.

(** * Copy-on-write *)

Theorem update_spares_others s s' k x j c n : reachable s → length k = height s → update k x s = Some s' →
  claims s !! j = Some c → j ≠ View (epoch s) →
  (reaches (nodes s') (root c) n ↔ reaches (nodes s) (root c) n) ∧
  (reaches (nodes s) (root c) n → nodes s' !! n = nodes s !! n).
Proof.
  intros I%reachable_inv Hk Hu. destruct (update_spec _ _ _ _ I Hk Hu) as (c0&r&dr&U). by apply (other_reaches I U).
Qed.

Theorem update_shares_rest s s' k x c c' q : reachable s → length k = height s → update k x s = Some s' →
  claims s !! View (epoch s) = Some c → claims s' !! View (epoch s) = Some c' → ¬ q `prefix_of` k →
  descend (nodes s') (root c') q = descend (nodes s) (root c) q.
Proof.
  intros I%reachable_inv Hk Hu Hc Hc' Hq. destruct (update_spec _ _ _ _ I Hk Hu) as (c0&r&dr&U).
  rewrite (updated_live U) in Hc'. injection Hc' as <-. rewrite (upd_live _ _ _ _ _ _ _ U) in Hc. injection Hc as <-.
  by apply (update_shares U).
Qed.

Theorem lookup_exact levels history s : run (create levels) history = Some s →
  let d := disk_run history in
  (∀ k, length k = height s → read s (epoch s) k = live d !! k) ∧
  ∀ v m k, snaps d !! v = Some m → length k = height s → read s v k = m !! k.
Proof. intros (_&?&_&?)%stands_run. done. Qed.

(** * Cost *)

Theorem read_cost_constant s v k x : reachable s → read s v k = Some x → read_cost s v k = Cost (S (length k)) 0 0.
Proof. intros I%reachable_inv. by apply read_cost_mapped. Qed.

Theorem write_cost_constant s k x : reachable s → read s (epoch s) k = Some x →
  write_cost s k = Cost (S (length k)) 0 1.
Proof. intros I%reachable_inv. by apply write_cost_mapped. Qed.

Theorem cost_ignores_snapshots levels history s k : run (create levels) history = Some s →
  Forall (λ a, no_revert a = true) history → length k = height s →
  ∃ s0, run (create levels) (filter (λ a, writes a = true) history) = Some s0 ∧
    write_cost s k = write_cost s0 k ∧ read_cost s (epoch s) k = read_cost s0 (epoch s0) k.
Proof.
  intros Hrun Hall Hk. pose proof (inv_create levels) as I0. assert (alike (create levels) (create levels)) as Ha by done.
  destruct (alike_run history _ _ _ I0 I0 Ha Hall Hrun) as (s0&Hrun0&Ha0). exists s0. split; [done|].
  pose proof (inv_run _ _ _ I0 Hrun) as I. pose proof (inv_run _ _ _ I0 Hrun0) as Is0.
  unfold write_cost, read_cost. by rewrite (depth_alike _ _ _ I Is0 Ha0 Hk).
Qed.

Theorem snapshot_constant s s' : apply Snapshot s = Some s' →
  nodes s' = nodes s ∧ next s' = next s.
Proof. apply snapshot_touches_nothing. Qed.
