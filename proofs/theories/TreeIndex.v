(** The maps of the log-structured disk as shared trees: one heap of nodes, the root of the live view, the
roots of the snapshots. The chunk at the bottom of a tree names an MBA.

A record of the log is a list of actions on the trees. An update that changes a chunk in place, because no
snapshot was taken since it was written, leaves an MBA that nothing refers to; what a walk frees leaves
others. Only these two drop an MBA from the bank and from the middle map. *)
From stdpp Require Import strings.
From LogDisk Require LogStructuredDisk.
From LogDisk Require Export SharedTree.
Import LogStructuredDisk(record(..)).

Record index := Index {
  trees : state;
  named : gmap VirtualDisk.name nat;              (* the epoch that each snapshot ended *)
  middle : gmap nat LogStructuredDisk.pba;        (* MBA -> PBA *)
  next_mba : nat;                                 (* this MBA and all above it were never used *)
}.

Definition no_index (levels : nat) : index := Index (create levels) ∅ ∅ 0.

Definition with_trees (s : state) (i : index) : index := Index s (named i) (middle i) (next_mba i).

Definition with_nodes (h : heap) (i : index) : index :=
  let s := trees i in with_trees (State (height s) h (next s) (epoch s) (claims s)) i.
Definition without_nodes (i : index) : index := with_nodes ∅ i.

(** ** Reading *)

(** An LBA as digits of [bits] bits, the highest first. *)
Fixpoint key (bits height lba : nat) : path :=
  match height with
  | 0 => []
  | S h => lba / 2 ^ (bits * h) :: key bits h (lba mod 2 ^ (bits * h))
  end.

Definition mba_of (bits : nat) (i : index) (v lba : nat) : option nat :=
  read (trees i) v (key bits (height (trees i)) lba).

(** The view of the trees that a client names. *)
Definition epoch_of (i : index) (from : VirtualDisk.target) : option nat :=
  match from with VirtualDisk.Live => Some (epoch (trees i)) | VirtualDisk.Named n => named i !! n end.

(** ** Records *)

Definition leaf_of (s : state) (k : path) : option id :=
  c ← claims s !! View (epoch s); descend (nodes s) (root c) k.

(** The MBA that an action overwrites in place. *)
Definition overwritten (s : state) (a : action) : list nat :=
  match a with
  | Write k _ | Unmap k =>
      if owned (pred (epoch s)) (nodes s) (leaf_of s k)
      then option_list (n ← leaf_of s k; data <$> nodes s !! n) else []
  | _ => []
  end.

Definition act (a : action) (s : state) : state := default s (apply a s).

(** The trees after some actions, and the MBAs that were overwritten in place. *)
Fixpoint acts (s : state) (l : list action) : state * list nat :=
  match l with
  | [] => (s, [])
  | a :: l => let '(s', xs) := acts (act a s) l in (s', overwritten s a ++ xs)
  end.

Definition actions_of {V} (bits : nat) (r : record V) (i : index) : list action :=
  let at_lba := key bits (height (trees i)) in
  match r with
  | RWrite lba data => (λ j, Write (at_lba (lba + j)) (next_mba i + j)) <$> seq 0 (length data)
  | RUnmap lba count => (λ j, Unmap (at_lba (lba + j))) <$> seq 0 count
  | RSnapshot _ => [Snapshot]
  | RDelete n => option_list (Delete <$> named i !! n)
  | RRevert n => option_list (Revert <$> named i !! n)
  end.

Definition names_after {V} (r : record V) (i : index) : gmap VirtualDisk.name nat :=
  match r with
  | RSnapshot n => <[n := epoch (trees i)]> (named i)
  | RDelete n => delete n (named i)
  | _ => named i
  end.

Definition mbas_used {V} (r : record V) : nat := match r with RWrite _ data => length data | _ => 0 end.

(** What carrying out a record makes of the maps, and the MBAs that nothing refers to then. *)
Definition reindex {V} (bits : nat) (r : record V) (i : index) : index * list nat :=
  let '(s, dropped) := acts (trees i) (actions_of bits r i) in
  (Index s (names_after r i) (middle i) (next_mba i + mbas_used r), dropped).

Definition drop_mbas {A} (xs : list nat) (f : gmap nat A) : gmap nat A := foldr delete f xs.

Definition forget (xs : list nat) (i : index) : index :=
  Index (trees i) (named i) (drop_mbas xs (middle i)) (next_mba i).

(** ** Reclaiming *)

(** A walk that does not ask who else holds a node: [SharedTree.reclaim] without its questions. *)
Definition free_unasked (t : nat) (n : id) (s : state) : option state :=
  c ← claims s !! Dying t;
  if negb (is_held (nodes s) c (root c)) then Some (with_claims s (delete (Dying t) (claims s))) else
  nd ← nodes s !! n;
  if is_held (nodes s) c n
  then Some (State (height s) (delete n (nodes s)) (next s) (epoch s) (<[Dying t := finish c nd]> (claims s)))
  else None.

(** The MBA of the chunk [n], if [s'] is [s] without it. *)
Definition freed_mba (s s' : state) (n : id) : list nat :=
  match nodes s !! n, nodes s' !! n with
  | Some nd, None => if length (place nd) =? height s then [data nd] else []
  | _, _ => []
  end.
