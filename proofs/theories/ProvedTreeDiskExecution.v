(** Executions of the proved disk with trees, computed: its theorems are not vacuous, and need their
hypotheses. *)
From stdpp Require Import gmap strings.
From LogDisk Require VirtualDiskProperties.
From LogDisk Require Import VirtualDisk Checker CheckerCorrect RecordedTrace Medium Codec ByteBlocks
    ProvedDisk
  ProvedDiskInvariant DiskMachine DiskMachineLives ProvedTreeDiskInvariant ProvedTreeDiskTheorem.
From LogDisk Require ProvedDiskExecution.
Import ProvedDiskExecution(small, data, behind_the_log, tears_dec, zeroes, sealed_tears_dec, small_unread,
    forgetful, one,
    colliding,
  seven, small_eq_dec, forgetful_eq_dec, colliding_eq_dec).

Local Open Scope string_scope.
#[local] Existing Instances behind_the_log tears_dec zeroes sealed_tears_dec.

(** Four blocks under two binary digits, a log of two records, eight places. *)
Definition shape_of_trees : geometry := Geometry 4 2 6 8 2 2.

(** Steps of walks: of which, and at which nodes. *)
Definition walked (l : list (nat * nat)) : list (@event_in_life small T.upkeep) :=
  (λ e, Keep (T.Walk e.1 e.2)) <$> l.
Definition to_the_end : list (nat * nat) :=
  [(1, 0); (1, 0); (7, 3); (7, 6); (7, 2); (7, 1); (7, 1); (10, 3); (10, 6); (10, 2); (10, 1); (10, 1)].

Definition everything : list (@event_in_life small T.upkeep) :=
  [Ask (DoWrite 0 [data 1; data 2]) [0; 1]; Ask (DoSnapshot "s") [];
   CutIn (DoWrite 0 [data 3]) [2] 9 LoseAll;     (* a checkpoint comes first; data and record are lost *)
   CutIn (DoWrite 0 [data 3]) [2] 3 TearOnly;    (* the record survives, its data do not: it is dropped *)
   CutIn (DoWrite 0 [data 3]) [2] 3 TearSealed;  (* the record tears, and is none *)
   CutIn (DoWrite 0 [data 4]) [2] 3 KeepAll;     (* both survive, though they were not flushed *)
   Ask (DoRead Live 0 2) []; Ask (DoRead (Named "s") 0 2) [];
   CutUpkeep (T.Keep Checkpoint) 3 KeepAll;      (* two nodes and a part of the roots *)
   CutUpkeep (T.Keep Checkpoint) 6 TearSealed;   (* the header tears, and is none *)
   CutUpkeep (T.Keep Checkpoint) 5 TearOnly; CutUpkeep (T.Keep Checkpoint) 6 KeepAll; CutRecovery 5 LoseAll;
   Ask (DoRead Live 0 2) []; Ask (DoDelete "s") []]
  ++ walked (take 4 to_the_end) ++ [CutUpkeep (T.Walk 7 2) 0 KeepAll]   (* the walks begin again *)
  ++ walked to_the_end ++
  [Keep (T.Keep Collect); Ask (DoWrite 1 [data 6]) [0];                 (* where the snapshot had its data *)
   Ask (DoRead Live 0 4) []; Keep (T.Keep (Clean [(2, 6)]));
   AskGroup [(2, [data 7]); (3, [data 8])] [4; 5];
   CutInGroup [(2, [data 9]); (3, [data 10])] [3; 7] 4 KeepAll;         (* in the checkpoint before it *)
   Ask DoRestart []; Ask (DoRead Live 0 4) []].

Definition everything_shows : list (event (@block small)) :=
  [Write 0 [data 1; data 2] Ok; Snapshot "s" Ok;
   Write 0 [data 3] CutShort; Crash Ok; Write 0 [data 3] CutShort; Crash Ok;
   Write 0 [data 3] CutShort; Crash Ok; Write 0 [data 4] CutShort; Crash Ok;
   Read Live 0 2 Ok [data 4; data 2]; Read (Named "s") 0 2 Ok [data 1; data 2];
   Crash CutShort; Crash Ok; Crash CutShort; Crash Ok; Crash CutShort; Crash Ok; Crash CutShort; Crash Ok;
   Crash CutShort; Crash CutShort; Crash Ok;
   Read Live 0 2 Ok [data 4; data 2]; Delete "s" Ok; Crash CutShort; Crash Ok;
   Write 1 [data 6] Ok; Read Live 0 4 Ok [data 4; data 6; data 0; data 0];
   Write 2 [data 7] Ok; Write 3 [data 8] Ok;
   Write 2 [data 9] UnknownOutcome; Write 3 [data 10] UnknownOutcome; Crash CutShort; Crash Ok;
   Restart Ok; Read Live 0 4 Ok [data 4; data 6; data 7; data 8]].

Theorem tree_life_exists : ∃ x x', fresh (@proved_tree_disk small _ 1) 4 x ∧
  shows (proved_tree_disk 1) x everything_shows x'.
Proof.
  apply (life_shows (D := tree_programs 1) (1, 15) shape_of_trees everything); [|by vm_compute].
  apply small_unread; simpl; lia.
Qed.

(** Once the walks are done, the disk keeps the nodes of the live view, and its data: of eight nodes and three
places, four and two. Before that, all. *)
Definition kept_after (es : list (@event_in_life small T.upkeep)) : option (nat * nat) :=
  match execute (@T.format small 1 (1, 15) shape_of_trees) (Medium (λ _, zero_block) []) with
  | (Some y, m) =>
      (λ x : T.memory * medium block, ((T.node_count x.1).1, length (T.in_use x.1))) <$>
        foldl (λ x e, '(y, m) ← x; '(_, x) ← live_once (tree_programs 1) e y m; Some x) (Some (y, m)) es
  | _ => None
  end.
Theorem walks_free_nodes :
  kept_after (take 15 everything) = Some (8, 3) ∧
  kept_after (take 15 everything ++ walked to_the_end)%list = Some (4, 2).
Proof. by vm_compute. Qed.

(** What is no walk has no step. *)
Theorem steps_need_a_walk :
  match execute (@T.format small 1 (1, 15) shape_of_trees) (Medium (λ _, zero_block) []) with
  | (Some y, _) => T.walks y = [] ∧ ProvedTreeMaps.walk 1 (T.next_step y 1) (T.current y) = None
  | _ => False
  end.
Proof. by vm_compute. Qed.

(** ** What costs depend on *)

(** Some requests on a new disk, then the cost of another program. *)
Definition tree_cost_after {A} (pages : nat) (g : geometry) (qs : list (@request small * list nat))
    (then_ : T.memory → program (@block small) A) : option (nat * nat * nat) :=
  match execute (@T.format small 1 (1, pages) g) (Medium (λ _, zero_block) []) with
  | (Some y, m) =>
      let '(y, m) := foldl (λ x q, let '(o, m) := execute (T.perform 1 x.1 q.2 q.1) x.2 in (o.1.1, m)) (y,
        m) qs in
      Some (ProvedDiskProgress.cost (then_ y) m)
  | _ => None
  end.

(** With a full log a write costs a checkpoint too: here of three nodes, and one block of roots. *)
Theorem full_log_writes_nodes :
  let qs := [(DoWrite 0 [data 1], [0])] in let write := λ y, T.perform 1 y [3] (DoWrite 0 [data 1]) in
  tree_cost_after 15 (Geometry 4 2 6 8 2 2) qs write = Some (0, 2, 1) ∧
  tree_cost_after 15 (Geometry 4 1 6 8 2 2) qs write = Some (0, 6, 3).
Proof. by vm_compute. Qed.

(** Roots that do not go into the slot: nothing is written. *)
Theorem small_slots_refuse :
  let qs := [(DoWrite 0 [data 1; data 2], [0; 1]); (DoSnapshot "s", []); (DoWrite 0 [data 3], [2]);
    (DoSnapshot "t", []); (DoWrite 0 [data 4], [3])] in
  tree_cost_after 15 (Geometry 4 8 6 8 2 2) qs (λ y, T.checkpoint y Done) = Some (0, 9, 2) ∧
  tree_cost_after 15 (Geometry 4 8 1 8 2 2) qs (λ y, T.checkpoint y Done) = Some (0, 0, 0).
Proof. by vm_compute. Qed.

(** Too few pages: nothing is written either. *)
Theorem few_pages_refuse :
  let qs := [(DoWrite 0 [data 1; data 2], [0; 1])] in
  tree_cost_after 3 (Geometry 4 8 6 8 2 2) qs (λ y, T.checkpoint y Done) = Some (0, 4, 2) ∧
  tree_cost_after 2 (Geometry 4 8 6 8 2 2) qs (λ y, T.checkpoint y Done) = Some (0, 0, 0).
Proof. by vm_compute. Qed.

(** ** Without the hypotheses *)

(** Blocks that do not give back what was put in: a nine comes back as an eight. *)
Theorem tree_round_trip_needed : ¬ implements (@proved_tree_disk forgetful _ 1) Ack.
Proof.
  intros Himp. destruct (@life_shows forgetful _ _ _ _ _ _ (tree_programs 1) (3, 15) (Geometry 10 4 4 6 2 2)
    [Ask (DoWrite 9 [one]) [0]; Ask DoRestart []; Ask (DoRead Live 9 1) []]
    [Write 9 [one] Ok; Restart Ok; Read Live 9 1 Ok [zero]]) as (x&x'&Hx&Hshows);
    [apply small_unread; simpl; lia|by vm_compute|].
  specialize (Himp _ _ _ _ Hx Hshows). apply check_correct in Himp. by vm_compute in Himp.
Qed.

(** Digests that collide: a record without its data is taken for one that has them. *)
Theorem tree_digest_needed : ¬ implements (@proved_tree_disk colliding _ 1) Ack.
Proof.
  intros Himp. destruct (@life_shows colliding _ _ _ _ _ _ (tree_programs 1) (1, 15) shape_of_trees
    [Ask (DoWrite 0 [seven]) [0]; CutIn (DoWrite 0 [seven; seven]) [1; 2] 4 TearOnly; Ask (DoRead Live 0 1)
      []]
    [Write 0 [seven] Ok; Write 0 [seven; seven] CutShort; Crash Ok; Read Live 0 1 Ok [zero_block]])
    as (x&x'&Hx&Hshows); [apply small_unread; simpl; lia|by vm_compute|].
  specialize (Himp _ _ _ _ Hx Hshows). apply check_correct in Himp. by vm_compute in Himp.
Qed.

(** A snapshot that is deleted, and taken again under its name, reads otherwise. *)
Theorem tree_machine_snapshot_needs_no_delete : ∃ x x', fresh (@proved_tree_disk small _ 1) 4 x ∧
  shows (proved_tree_disk 1) x ([] ++ Read Live 0 1 Ok [data 0] :: Snapshot "s" Ok ::
    [Delete "s" Ok; Write 0 [data 1] Ok; Snapshot "s" Ok] ++ [Read (Named "s") 0 1 Ok [data 1]]) x'.
Proof.
  apply (life_shows (D := tree_programs 1) (1, 15) shape_of_trees [Ask (DoRead Live 0 1) [];
    Ask (DoSnapshot "s") []; Ask (DoDelete "s") []; Ask (DoWrite 0 [data 1]) [0]; Ask (DoSnapshot "s") [];
    Ask (DoRead (Named "s") 0 1) []]); [|by vm_compute]. apply small_unread; simpl; lia.
Qed.
