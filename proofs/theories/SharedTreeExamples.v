(** What goes wrong when a rule is dropped, computed. *)
From LogDisk Require Import SharedTreeCost.

Definition ran (s : option state) : bool := match s with Some _ => true | None => false end.
Definition final (s : option state) : state := default (create 1) s.

Lemma run_reachable history : ran (run (create 1) history) = true →
  reachable (final (run (create 1) history)).
Proof. intros Hran. exists 1, history. by destruct (run (create 1) history). Qed.

(** The disk has two digits. Snapshots 1, 2 and 3 are a chain, until live goes back to 2; then 2 has two
children, 3 and the live view 5. *)
Definition fork : list action :=
  [Write [0; 0] 1; Snapshot; Write [0; 0] 2; Write [0; 1] 7; Snapshot; Write [0; 0] 3; Snapshot; Revert 2].

Definition forked : state := final (run (create 1) fork).

(** Snapshot 2 deleted: 3 and live share what was born between 1 and 2, and their common parent, 1, has none
of it. *)
Definition cut : state := final (run (create 1) (fork ++ [Delete 2])).

Lemma forked_reachable : reachable forked.
Proof. apply run_reachable. by vm_compute. Qed.

Lemma cut_reachable : reachable cut.
Proof. apply run_reachable. by vm_compute. Qed.

Lemma node_born s n b : birth <$> nodes s !! n = Some b → ∃ nd, nodes s !! n = Some nd ∧ birth nd = b.
Proof. destruct (nodes s !! n) as [nd|]; simpl; [|done]. intros [= <-]. eauto. Qed.

Lemma reaches_dec s r n : reachable s → meets (nodes s) r n = true ↔ reaches (nodes s) r n.
Proof. intros I%reachable_inv. apply (meets_spec (inv_tidy I)). Qed.

Lemma no_claim s (P : nat + nat → claim → bool) :
  forallb (λ jc, negb (P jc.1 jc.2)) (map_to_list (claims s)) = true → ∀ j c, claims s !! j = Some c →
    P j c = false.
Proof. rewrite forallb_forall. intros Hall j c Hj. apply negb_true_iff. apply (Hall (j, c)).
  by apply elem_of_list_In, elem_of_map_to_list. Qed.

(** Off a chain, parent and one successor do not tell: [chain_test_exact] without its hypothesis. In [forked]
the successor 3 of snapshot 2 does not reach node 4, and the live view does. *)
Example one_successor_is_not_enough : reachable forked ∧
  ∃ c n nd successor other, claims forked !! View 2 = Some c ∧ reaches (nodes forked) (root c) n ∧
  nodes forked !! n = Some nd ∧ parent c < birth nd ∧ claims forked !! View 3 = Some successor ∧
  parent successor = 2 ∧ ¬ reaches (nodes forked) (root successor) n ∧ claims forked !! View 5 = Some other ∧
  reaches (nodes forked) (root other) n.
Proof. split; [apply forked_reachable|]. destruct (node_born forked 4 2) as (nd&Hn&Hb); [by vm_compute|].
  exists (Claim 1 4 []), 4, nd, (Claim 2 10 []), (Claim 2 4 []).
  rewrite <- !(reaches_dec _ _ _ forked_reachable).
  split_and!; [by vm_compute|by vm_compute|exact Hn|simpl; lia|by vm_compute..]. Qed.

(** Parent and all children do not tell either: [delete_test] without the siblings. In [cut] no view descends
from snapshot 3, and the live view reaches node 9 of it, which their parent does not. *)
Example children_are_not_enough : reachable cut ∧ ∃ c n nd other, claims cut !! View 3 = Some c ∧
  reaches (nodes cut) (root c) n ∧ nodes cut !! n = Some nd ∧ parent c < birth nd ∧
  (∀ v c', claims cut !! View v = Some c' → parent c' ≠ 3) ∧ claims cut !! View 5 = Some other ∧
  reaches (nodes cut) (root other) n.
Proof.
  split; [apply cut_reachable|]. destruct (node_born cut 9 2) as (nd&Hn&Hb); [by vm_compute|].
  exists (Claim 1 10 []), 9, nd, (Claim 1 4 []). rewrite <- !(reaches_dec _ _ _ cut_reachable).
  split_and!; [by vm_compute|by vm_compute|exact Hn|simpl; lia| |by vm_compute|by vm_compute].
  intros v c' Hv. pose proof (no_claim cut (λ j c', is_view j && (parent c' =? 3)) ltac:(by vm_compute)
    _ _ Hv) as Hno.
  simpl in Hno. by apply Nat.eqb_neq in Hno.
Qed.

(** Ownership that compares with an older snapshot than the newest ancestor changes what the newest reads. *)
Definition two_snapshots : state :=
  final (run (create 1) [Write [0; 0] 1; Snapshot; Write [0; 0] 2; Snapshot]).

Example ownership_by_older_snapshot : read two_snapshots 2 [0; 0] = Some 2 ∧
  (λ s, read s 2 [0; 0]) <$> update [0; 0] (Some 3) two_snapshots = Some (Some 2) ∧
  (λ s, read s 2 [0; 0]) <$> update_since 1 [0; 0] (Some 3) two_snapshots = Some (Some 3).
Proof. by vm_compute. Qed.

(** Not even the newest ancestor will do: in [cut] that is 1, and what was born since is not live's alone. *)
Example ownership_by_parent : parent <$> claims cut !! View (epoch cut) = Some 1 ∧
  read cut 3 [0; 1] = Some 7 ∧ (λ s, read s 3 [0; 1]) <$> update [0; 1] (Some 8) cut = Some (Some 7) ∧
  (λ s, read s 3 [0; 1]) <$> update_since 1 [0; 1] (Some 8) cut = Some (Some 8).
Proof. by vm_compute. Qed.

(** A node that no claim holds is a leak. *)
Lemma unheld_leaks s n : tidy (height s) (epoch s) (next s) (nodes s) →
  bool_decide (is_Some (nodes s !! n)) &&
  forallb (λ jc, negb (is_held (nodes s) jc.2 n)) (map_to_list (claims s)) = true → ¬ no_leak s.
Proof. intros T [Hn%bool_decide_eq_true Hno]%andb_true_iff Hleak.
  destruct (Hleak n Hn) as (j&c&Hj&Hh%(is_held_spec T)).
  pose proof (no_claim s (λ _ c, is_held (nodes s) c n) Hno _ _ Hj). simpl in *. congruence. Qed.

(** A walk that frees a node before its kids leaks them when it is cut short. *)
Definition one_deleted : state := final (run (create 1) [Write [0; 0] 1; Snapshot; Write [0; 0] 2; Delete 1]).

Definition root_first : state :=
  State (height one_deleted) (delete 0 (nodes one_deleted)) (next one_deleted) (epoch one_deleted)
    (claims one_deleted).

Example root_first_leaks : no_leak one_deleted ∧ ¬ no_leak root_first.
Proof. assert (reachable one_deleted) as I%reachable_inv by (apply run_reachable; by vm_compute).
  split; [exact (@inv_held _ I)|]. apply (unheld_leaks root_first 2); [|by vm_compute]. unfold root_first.
  simpl. generalize (inv_tidy I). generalize one_deleted. intros s T. by apply tidy_delete. Qed.

(** What an update no longer uses has to go to a dying claim, or it leaks. *)
Definition rewritten : state := final (run (create 1) [Write [0; 0] 1; Checkpoint; Write [0; 0] 2]).

Definition unburied : state := with_claims rewritten (filter (λ jc, is_view jc.1 = true) (claims rewritten)).

Example unburied_leaks : no_leak rewritten ∧ ¬ no_leak unburied.
Proof. assert (reachable rewritten) as I%reachable_inv by (apply run_reachable; by vm_compute).
  split; [exact (@inv_held _ I)|]. apply (unheld_leaks unburied 0); [apply (inv_tidy I)|by vm_compute]. Qed.

(** The birth stamp: the live view's root passes the neighbour test without it, and the snapshot before
reaches it. *)
Definition snapped : state := final (run (create 1) [Write [0; 0] 1; Snapshot]).

Example birth_stamp_needed : reachable snapped ∧ ∃ c n other,
  claims snapped !! View 2 = Some c ∧ reaches (nodes snapped) (root c) n ∧
  (∀ j c', claims snapped !! j = Some c' → j ≠ View 2 → parent c' = 2 ∨ parent c' = parent c →
    ¬ reaches (nodes snapped) (root c') n) ∧
  claims snapped !! View 1 = Some other ∧ reaches (nodes snapped) (root other) n.
Proof.
  split; [apply run_reachable; by vm_compute|]. exists (Claim 1 0 []), 0, (Claim 0 0 []).
  split_and!; [by vm_compute|by exists []| |by vm_compute|by exists []].
  intros j c' Hj Hne Hp. pose proof (no_claim snapped (λ j c', negb (bool_decide (j = View 2)) &&
    ((parent c' =? 2) || (parent c' =? 1))) ltac:(by vm_compute) _ _ Hj) as Hno.
  cbv beta in Hno. rewrite bool_decide_false in Hno by done. by destruct Hp as [Hp|Hp]; rewrite Hp in Hno.
Qed.

(** Not every heap is without dangling references ([reachable]). *)
Example dangling_needs_reachable : ¬ no_dangling (State 2 ∅ 1 1 {[View 1 := Claim 0 0 []]}).
Proof. intros Hno. destruct (Hno 1 (Claim 0 0 [])) as [[? [=]] _]. by vm_compute. Qed.

(** A step at a node that the walk does not hold frees nothing, though nobody else holds it either
([has_node]). *)
Definition walked : state := final (run (create 1) [Snapshot; Delete 1; Reclaim 1 0]).

Example reclaim_needs_held : reachable walked ∧ is_Some (apply (Reclaim 1 9) walked) ∧
  is_Some (claims walked !! Dying 1) ∧
  nodes walked !! 9 = None.
Proof. split_and!; [apply run_reachable|apply (bool_decide_unpack _)..|]; by vm_compute. Qed.

(** Were a crash to bring back nodes, and not only cursors ([run]), what was freed would be freed again. *)
Definition one_walk_left : state := final (run (create 1)
  [Write [0; 0] 1; Snapshot; Write [0; 0] 2; Delete 1; Reclaim 7 3; Reclaim 7 2; Reclaim 7 0; Reclaim 7 0]).

Example freed_again_needs_run : reachable one_walk_left ∧
  ∃ s1 s2, apply (Reclaim 4 3) one_walk_left = Some s1 ∧
  freed one_walk_left s1 3 ∧ s2 = one_walk_left ∧ apply (Reclaim 4 3) s2 = Some s1 ∧ freed s2 s1 3.
Proof.
  split; [apply run_reachable; by vm_compute|]. set (s :=
    one_walk_left). assert (match apply (Reclaim 4 3) s with
    | Some s1 => bool_decide (is_Some (nodes s !! 3) ∧
        nodes s1 !! 3 = None) | None => false end = true) as F by by vm_compute.
  clearbody s. destruct (apply (Reclaim 4 3) s) as [s1|] eqn:E; [|done]. apply bool_decide_eq_true in F.
  by exists s1, s.
Qed.

(** On the path of its key, an update does not share ([q] off the path). *)
Example update_copies_path : (λ s, root <$> claims s !! View 3) <$> update [0; 0] (Some 3) two_snapshots ≠
  Some (root <$> claims two_snapshots !! View 3).
Proof. by vm_compute. Qed.

(** A key too short names a node inside, which is no block; a key that is not mapped costs less; after a
revert the costs are those of what was reverted to; and other actions than a snapshot do write. *)
Example lookup_needs_length : read (create 1) 1 [] = Some 0 ∧ live (disk_run []) !! [] = None.
Proof. by vm_compute. Qed.

Example cost_needs_mapped : read_cost snapped 2 [0; 0] = Cost 3 0 0 ∧ read_cost snapped 2 [1; 0] = Cost 1 0 0.
Proof. by vm_compute. Qed.

Example cost_needs_no_revert :
  let history := [Snapshot; Write [0; 0] 1; Revert 1] in let of s := write_cost s [0; 0] in
  of <$> run (create 1) history = Some (Cost 1 0 1) ∧
  of <$> run (create 1) (filter (λ a, writes a = true) history) = Some (Cost 3 0 1).
Proof. by vm_compute. Qed.

Example write_touches_nodes : (λ s, next s) <$> apply (Write [0; 0] 2) snapped ≠ Some (next snapped).
Proof. by vm_compute. Qed.
