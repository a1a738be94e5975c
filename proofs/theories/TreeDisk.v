(** The log-structured disk whose maps are shared trees: [LogStructuredDisk], with an index of trees
(TreeIndex.v) where that one has maps that are functions.

A write and an unmap copy the path that they change, a snapshot shares the root of the live view, a revert
makes the live view begin again at the root of a snapshot, a deletion leaves a root to a walk. A step of a
walk looks at one node, and asks the parent and the siblings of what was deleted who else holds it; a chunk
that nobody else holds is dropped from the bank and from the middle map. Nobody looks through all maps.

A step is a function: [perform] says what an action of the disk does, and when it may be taken. The actions
have the names of [LogStructuredDisk]. *)
From LogDisk Require Export LogStructuredDisk.
From LogDisk Require TreeIndex.
Import TreeIndex(index, trees, named, middle, next_mba).

(** A checkpoint has roots, names and tables; the nodes stand in pages of the device. *)
Record checkpoint := Checkpoint {
  saved : index;                                  (* without nodes *)
  saved_pages : gmap nat nat;                     (* node -> page *)
  upto : nat;                                     (* the records before this one are in [saved] *)
  number : nat;                                   (* tells the newer slot from the older *)
}.

Inductive action {V : Type} :=
  | Submit (r : record V) | LogAppend | Acknowledge
  | Refuse (r : record V) (e : code)
  | Read (from : target) (lba count : nat) | RefuseRead (from : target) (lba count : nat) (e : code) | Flush
  | Destage (g : nat) (xs : list nat) | Seal (g : nat) | Clean (vs : gset nat) (g : nat) | Free (g : nat)
  | Reclaim (t n : nat)
  | CheckpointNodes (places : list nat) | CheckpointCommit | Truncate (n : nat)
  | Crash (keep : nat) (torn : bool) (garbage : gmap nat (list V)) (lost : gmap nat SharedTree.node)
  | Restart | Load | Replay | Recover.
Global Arguments action : clear implicits.

Definition when (P : Prop) `{Decision P} {A} (x : A) : option A := if decide P then Some x else None.

Lemma when_Some (P : Prop) `{Decision P} {A} (x y : A) : when P x = Some y → P ∧ x = y.
Proof. unfold when. destruct (decide P); naive_solver. Qed.

Global Instance profile_eq_dec : EqDecision profile := ltac:(solve_decision).

Section TreeDisk.
Context {V : Type} `{Value V} (K : design) (bits levels : nat).
Implicit Types (r : record V) (i : index) (g x : nat).

(** ** States *)

Record devices := Devices {
  begins : nat;                     (* the number of the first record of the log *)
  log : list (record V);
  flushed : nat;                    (* the records before this one are durable *)
  slot_a : option checkpoint;
  slot_b : option checkpoint;
  segments : gmap nat (list V);
  pages : gmap nat SharedTree.node;
}.

Record memory := Memory {
  current : index;
  page_of : gmap nat nat;           (* node -> page, of nodes that a checkpoint has written *)
  bank : gmap nat V;                (* MBA -> data that no segment holds yet *)
  table : gmap nat usage;
  applied : nat;                    (* the records before this one are in [current] *)
  nodes : option checkpoint;        (* written by a checkpoint that is not committed *)
}.

Record state := State {
  size : nat;
  at_phase : phase;
  pending : option (request V);
  dev : devices;
  mem : memory;
}.

Definition no_memory : memory := Memory (TreeIndex.no_index levels) ∅ ∅ ∅ 0 None.
Definition first_node : SharedTree.node := SharedTree.Node 1 [] ∅ 0.
(** A new disk has its one node, the root of an empty tree, in page 0; the epoch in which it was written has
ended. *)
Definition first_index : index :=
  let i := TreeIndex.no_index levels in
  TreeIndex.with_trees (TreeIndex.act SharedTree.Checkpoint (trees i)) i.
Definition initial (blocks : nat) : state :=
  State blocks Running None
    (Devices 0 [] 0 (Some (Checkpoint (TreeIndex.without_nodes first_index) {[0 := 0]} 0 0)) None ∅
      {[0 := first_node]}) (Memory first_index {[0 := 0]} ∅ ∅ 0 None).

(** ** Reading *)

Definition chunk_of (c : state) : nat → option V :=
  chunk (bank (mem c)) (middle (current (mem c))) (segments (dev c)).

(** Down the tree to the MBA, and through the middle map to its data. *)
Definition view_by_tree (f : nat → option V) i (v : nat) : view V :=
  λ l, default zero (TreeIndex.mba_of bits i v l ≫= f).

(** What the disk reads as. *)
Definition seen (c : state) : disk V :=
  let i := current (mem c) in
  Disk (view_by_tree (chunk_of c) i (SharedTree.epoch (trees i))) (view_by_tree (chunk_of c) i <$> named i).

(** ** Parts of steps *)

Definition logged (c : state) : nat := begins (dev c) + length (log (dev c)).

Definition newest (s : devices) : option checkpoint :=
  match slot_a s, slot_b s with
  | Some a, Some b => if decide (number a < number b) then Some b else Some a
  | Some a, None => Some a
  | None, b => b
  end.

Definition with_slots (s : devices) (a b : option checkpoint) : devices :=
  Devices (begins s) (log s) (flushed s) a b (segments s) (pages s).

(** The older slot now holds [i]: a checkpoint, or nothing valid. *)
Definition replace_older (i : option checkpoint) (s : devices) : devices :=
  match slot_a s, slot_b s with
  | Some a, Some b => if decide (number a < number b) then with_slots s i (Some b) else with_slots s (Some
    a) i
  | Some a, None => with_slots s (Some a) i
  | None, b => with_slots s i b
  end.

Definition with_memory (c : state) (y : memory) : state := State (size c) (at_phase c) (pending c) (dev c) y.
Definition with_devices (c : state) (s : devices) : state :=
  State (size c) (at_phase c) (pending c) s (mem c).
Definition with_table (y : memory) (t : gmap nat usage) : memory :=
  Memory (current y) (page_of y) (bank y) t (applied y) (nodes y).
Definition with_middle i (mid : gmap nat pba) : index :=
  TreeIndex.Index (trees i) (named i) mid (next_mba i).
Definition segments_in i : gset nat := set_map fst (targets (middle i)).

(** Nothing refers to the MBAs [xs] any more. *)
Definition forget (xs : list nat) (y : memory) : memory :=
  Memory (TreeIndex.forget xs (current y)) (page_of y) (TreeIndex.drop_mbas xs (bank y)) (table y) (applied y)
    (nodes y).

Definition new_data r i : gmap nat V := match r with RWrite _ data => map_seq (next_mba i) data | _ => ∅ end.

Definition carry_out r (y : memory) : memory :=
  let '(i, dropped) := TreeIndex.reindex bits r (current y) in
  forget dropped (Memory i (page_of y) (new_data r (current y) ∪ bank y) (table y) (S (applied y)) (nodes y)).

Definition submit r (c : state) : state :=
  let s := dev c in
  State (size c) (at_phase c) (Some (Operation r))
    (Devices (begins s) (log s ++ [r]) (flushed s) (slot_a s) (slot_b s) (segments s) (pages s)) (mem c).

Definition log_append (c : state) : state :=
  let s := dev c in
  with_devices c (Devices (begins s) (log s) (logged c) (slot_a s) (slot_b s) (segments s) (pages s)).

(** Segment [g], which is free, is written with the chunks [xs], and the middle map now finds them there. *)
Definition place g (xs : list nat) (c : state) : state :=
  let y := mem c in let s := dev c in
  let data := (λ x, default zero (chunk_of c x)) <$> xs in
  State (size c) (at_phase c) (pending c)
    (Devices (begins s) (log s) (flushed s) (slot_a s) (slot_b s) (<[g := data]> (segments s)) (pages s))
    (Memory (with_middle (current y) (placed g xs ∪ middle (current y))) (page_of y)
       (filter (λ e, e.1 ∉ xs) (bank y)) (<[g := Open]> (table y)) (applied y) (nodes y)).

Definition bury (vs : gset nat) (c : state) : state :=
  with_memory c (with_table (mem c) (gset_to_gmap Dead vs ∪ table (mem c))).

(** The chunks in the victims [vs] move to [g]; a victim is dead then. *)
Definition clean (vs : gset nat) g (c : state) : state :=
  match chunks_in vs (middle (current (mem c))) with
  | [] => bury vs c
  | xs => bury vs (place g xs c)
  end.

(** A step of the walk [t], at node [n]: if the node is freed, and it is a chunk, its MBA is dropped. *)
Definition reclaim (t n : nat) (c : state) : option state :=
  let y := mem c in let s := trees (current y) in
  let step := if obeys K ReclaimUnreachable then SharedTree.reclaim else TreeIndex.free_unasked in
  s' ← step t n s;
  Some (with_memory c (forget (TreeIndex.freed_mba s s' n)
    (Memory (TreeIndex.with_trees s' (current y)) (page_of y) (bank y) (table y) (applied y) (nodes y)))).

(** The segments that a durable checkpoint refers to, or one that may become durable. *)
Definition pinned (c : state) : gset nat :=
  from_option (segments_in ∘ saved) ∅ (newest (dev c)) ∪ from_option (segments_in ∘ saved) ∅ (nodes (mem c)).

(** So with pages. *)
Definition pinned_pages (c : state) : gset nat :=
  from_option (targets ∘ saved_pages) ∅ (newest (dev c)) ∪ from_option (targets ∘ saved_pages) ∅ (nodes (mem
    c)).

(** The nodes that no page has. *)
Definition dirty (y : memory) : list (nat * SharedTree.node) :=
  map_to_list (filter (λ e, page_of y !! e.1 = None) (SharedTree.nodes (trees (current y)))).

(** A checkpoint writes the dirty nodes to [places], one page each, and ends an epoch: what has a page is not
changed in place any more. *)
Definition write_nodes (places : list nat) (c : state) : state :=
  let y := mem c in let s := dev c in
  let i := TreeIndex.with_trees (TreeIndex.act SharedTree.Checkpoint (trees (current y))) (current y) in
  let ns := dirty y in
  let on := list_to_map (zip ns.*1 places) ∪
    filter (λ e, is_Some (SharedTree.nodes (trees (current y)) !! e.1)) (page_of y) in
  State (size c) (at_phase c) (pending c)
    (Devices (begins s) (log s) (flushed s) (slot_a s) (slot_b s) (segments s)
      (list_to_map (zip places ns.*2) ∪ pages s))
    (Memory i on (bank y) (table y) (applied y)
      (Some (Checkpoint (TreeIndex.without_nodes i) on (applied y) (S (from_option number 0 (newest s)))))).

Definition commit (i : checkpoint) (c : state) : state :=
  let y := mem c in
  State (size c) (at_phase c) (pending c) (replace_older (Some i) (dev c))
    (Memory (current y) (page_of y) (bank y) (table y) (applied y) None).

(** The log forgets the records before [n]. *)
Definition truncate (n : nat) (c : state) : state :=
  let s := dev c in
  with_devices c
    (Devices n (drop (n - begins s) (log s)) (flushed s) (slot_a s) (slot_b s) (segments s) (pages s)).

(** Power fails. A page that no durable checkpoint refers to may hold anything then: what it held, or of
[lost]. *)
Definition crash (keep : nat) (torn : bool) (garbage : gmap nat (list V)) (lost : gmap nat SharedTree.node)
    (c : state) : state :=
  let s := if torn then replace_older None (dev c) else dev c in
  let durable := from_option (targets ∘ saved_pages) ∅ (newest (dev c)) in
  State (size c) Off None
    (Devices (begins s) (take (keep - begins s) (log s)) keep (slot_a s) (slot_b s)
       (filter (λ e, table (mem c) !! e.1 ≠ Some Open) (segments s) ∪ garbage)
       (filter (λ e, e.1 ∈ durable) (pages s) ∪ lost))
    no_memory.

Definition shown_by_crash (c : state) : event V :=
  match pending c with
  | None => VirtualDisk.Crash CutShort
  | Some (Operation r) => shown r CutShort
  | Some Reopen => VirtualDisk.Restart CutShort
  end.

Definition shown_by_recover (c : state) : event V :=
  match pending c with Some Reopen => VirtualDisk.Restart Ok | _ => VirtualDisk.Crash Ok end.

(** The trees of a checkpoint: its nodes are read from their pages. *)
Definition loaded (pgs : gmap nat SharedTree.node) (i : checkpoint) : index :=
  TreeIndex.with_nodes (omap (pgs !!.) (saved_pages i)) (saved i).

(** Memory after checkpoint [i] is loaded; replay goes on at record [n], or where the log starts. *)
Definition load (n : nat) (i : checkpoint) (c : state) : state :=
  State (size c) Recovering (pending c) (dev c)
    (Memory (loaded (pages (dev c)) i) (saved_pages i) ∅ (gset_to_gmap Sealed (segments_in (saved i)))
      (n `max` begins (dev c)) None).

(** ** Steps *)

Definition perform (a : action V) (c : state) : option (list (event V) * state) :=
  match a with
  (* operations *)
  | Submit r =>
      when (at_phase c = Running ∧ pending c = None ∧ faults (size c) (seen c) r = []) ([], submit r c)
  | LogAppend => when (at_phase c ≠ Off) ([], log_append c)
  | Acknowledge =>
      match pending c with
      | Some (Operation r) =>
          when (at_phase c = Running ∧
            (obeys K FlushBeforeAcknowledge → promises K ≠ Prefix → flushed (dev c) = logged c))
            ([shown r Ok], State (size c) (at_phase c) None (dev c) (carry_out r (mem c)))
      | _ => None
      end
  | Refuse r e =>
      when (at_phase c = Running ∧ pending c = None ∧
        (e ∈ faults (size c) (seen c) r ∨ faults (size c) (seen c) r = [] ∧ e ∈ excuses r))
        ([shown r (Refused e)], c)
  | Read from lba count =>
      match view_of (seen c) from with
      | Some v =>
          when (at_phase c = Running ∧ fits (size c) lba count ∧ missing_view (seen c) from = [])
            ([VirtualDisk.Read from lba count Ok (v <$> seq lba count)], c)
      | None => None
      end
  | RefuseRead from lba count e =>
      when (at_phase c = Running ∧
        e ∈ (if decide (fits (size c) lba count) then [] else [OutOfRange]) ++ missing_view (seen c) from)
        ([VirtualDisk.Read from lba count (Refused e) []], c)
  | Flush => when (at_phase c = Running ∧ pending c = None) ([VirtualDisk.Flush Ok], log_append c)
  (* data *)
  | Destage g xs =>
      when (at_phase c ≠ Off ∧ table (mem c) !! g = None ∧ NoDup xs ∧
        Forall (λ x, is_Some (bank (mem c) !! x)) xs ∧ xs ≠ [] ∧ length xs ≤ width K ∧
        (length xs = width K ∨ length xs = base.size (bank (mem c)))) ([], place g xs c)
  | Seal g =>
      when (at_phase c ≠ Off ∧ table (mem c) !! g = Some Open)
        ([], with_memory c (with_table (mem c) (<[g := Sealed]> (table (mem c)))))
  | Clean vs g =>
      let xs := chunks_in vs (middle (current (mem c))) in
      when (at_phase c ≠ Off ∧ vs ≠ ∅ ∧ set_Forall (λ v, table (mem c) !! v = Some Sealed) vs ∧
        (xs = [] ∨ table (mem c) !! g = None ∧ length xs ≤ width K ∧ (obeys K CleanGains → 2 ≤ base.size vs)))
        ([], clean vs g c)
  | Free g =>
      when (at_phase c ≠ Off ∧ table (mem c) !! g = Some Dead ∧ (obeys K FreeAfterCheckpoint → g ∉ pinned c))
        ([], with_memory c (with_table (mem c) (delete g (table (mem c)))))
  | Reclaim t n => c' ← reclaim t n c; when (at_phase c ≠ Off) ([], c')
  (* checkpoint *)
  | CheckpointNodes places =>
      when (at_phase c ≠ Off ∧ bank (mem c) = ∅ ∧ (obeys K SealBeforeCheckpoint →
          set_Forall (λ g, table (mem c) !! g = Some Sealed) (segments_in (current (mem c)))) ∧
        NoDup places ∧ length places = length (dirty (mem c)) ∧
        Forall (λ p, p ∉ targets (page_of (mem c)) ∧ (obeys K FreeAfterCheckpoint → p ∉ pinned_pages c))
          places)
        ([], write_nodes places c)
  | CheckpointCommit =>
      match nodes (mem c) with
      | Some i => when (at_phase c ≠ Off ∧ (obeys K LogBeforeCheckpoint → upto i ≤ flushed (dev c)))
          ([], commit i c)
      | None => None
      end
  | Truncate n =>
      match (if obeys K TruncateAfterCommit then newest (dev c) else nodes (mem c)) with
      | Some i => when (at_phase c ≠ Off ∧ begins (dev c) ≤ n ≤ upto i) ([], truncate n c)
      | None => None
      end
  (* crash and recovery *)
  | Crash keep torn garbage lost =>
      when (flushed (dev c) ≤ keep ≤ logged c ∧ (torn → nodes (mem c) ≠ None))
        ([shown_by_crash c], crash keep torn garbage lost c)
  | Restart =>
      when (at_phase c = Running ∧ pending c = None)
        ([], State (size c) Off (Some Reopen) (dev (log_append c)) no_memory)
  | Load =>
      match newest (dev c) with
      | Some i =>
          when (at_phase c = Off) ([], load (if obeys K ReplayAfterCheckpoint then upto i else 0) i c)
      | None => None
      end
  | Replay =>
      match log (dev c) !! (applied (mem c) - begins (dev c)) with
      | Some r =>
          when (at_phase c = Recovering ∧ begins (dev c) ≤ applied (mem c))
            ([], with_memory c (carry_out r (mem c)))
      | None => None
      end
  | Recover =>
      when (at_phase c = Recovering ∧ logged c ≤ applied (mem c))
        ([shown_by_recover c], State (size c) Running None (dev c) (mem c))
  end.

(** The disk as an implementation of the contract. *)
Definition tree_disk : implementation V :=
  Implementation state (λ blocks c, c = initial blocks) (λ c es c', ∃ a, perform a c = Some (es, c')).
End TreeDisk.

Global Arguments devices : clear implicits. Global Arguments memory : clear implicits.
Global Arguments state : clear implicits.
