(** The logical maps as one heap of shared tree nodes: definitions.

    The tree is a radix trie of fixed height: a key is a list of [height] digits, one for each level, and a
    chunk of data is the node at the bottom.  It keeps what matters of the engine's B+tree (path copying,
    shared subtrees, birth epochs) and leaves out splits and merges, which have nothing to do with sharing.

    Whatever refers to nodes is a claim.  A view (the live one, a snapshot) claims all that its root reaches.
    So does a subtree that no view needs as such any more (a deleted snapshot, the live view that a revert
    left, the old copies of an overwritten path), until a walk has been through it and has freed what nobody
    else holds.  Such a dying claim stands in the tree of views as a child of the view's parent.

    An epoch ends with each snapshot, revert and checkpoint.  A snapshot is named by the epoch it ended, so
    "born no later than the snapshot was taken" reads [birth <= snapshot]; epoch 0 is no snapshot. *)
From stdpp Require Export gmap.
From Coq Require Export PeanoNat.    (* last: extraction knows its names *)

Notation id := nat (only parsing). Notation path := (list nat).

(** [place] is where in the key space a node stands: the digits that lead to it from a view's root. *)
Record node := Node { birth : nat; place : path; kids : gmap nat id; data : nat }.
Notation heap := (gmap id node).

(** [done] is the cursor of the walk: the places it has finished, each with all below it. *)
Record claim := Claim { parent : nat; root : id; done : list path }.

Notation View v := (inl v). Notation Dying t := (inr t).

(** [next] numbers nodes and dying claims; no number is given out twice.  The live view is [View epoch]. *)
Record state := State {
  height : nat;
  nodes : heap;
  next : nat;
  epoch : nat;
  claims : gmap (nat + nat) claim;
}.

(** * Reading *)

Fixpoint descend (h : heap) (n : id) (p : path) : option id :=
  nd ← h !! n;
  match p with
  | [] => Some n
  | d :: q => m ← kids nd !! d; descend h m q
  end.

Definition reaches (h : heap) (r n : id) : Prop := ∃ p, descend h r p = Some n.

Definition finished (c : claim) (p : path) : Prop := Exists (λ q, q `prefix_of` p) (done c).

Definition has_node (h : heap) (c : claim) (n : id) : Prop :=
  reaches h (root c) n ∧ ∃ nd, h !! n = Some nd ∧ ¬ finished c (place nd).

Definition read (s : state) (v : nat) (k : path) : option nat :=
  c ← claims s !! View v; n ← descend (nodes s) (root c) k; data <$> nodes s !! n.

(** * Updating *)

Definition owned (since : nat) (h : heap) (o : option id) : bool :=
  match o ≫= (h !!.) with Some nd => since <? birth nd | None => false end.

(** The number of the node that is to stand where [o] stood. *)
Definition target (since nx : nat) (h : heap) (o : option id) : id :=
  if owned since h o then default nx o else nx.

Definition kids_of (h : heap) (o : option id) : gmap nat id := default ∅ (kids <$> (o ≫= (h !!.))).

(** Puts [x] (or nothing) under the key [k] of the subtree [o], which stands at [pl]: the new heap, the new
    subtree, and the topmost node that it no longer uses.  A node is changed in place iff it was born after
    epoch [since]; else a copy of it, born in [e], takes its place.  Numbers from [nx] on are fresh. *)
Fixpoint put (since e nx : nat) (h : heap) (o : option id) (pl k : path) (x : option nat)
    : heap * option id * option id :=
  let n := target since nx h o in
  match k with
  | [] =>
      match x with
      | Some v => (<[n := Node e pl ∅ v]> h, Some n, if owned since h o then None else o)
      | None => (delete n h, None, if owned since h o then None else o)
      end
  | d :: k' =>
      let ks := kids_of h o in
      let '(h', m, dropped) := put since e (S nx) h (ks !! d) (pl ++ [d]) k' x in
      (<[n := Node e pl (partial_alter (λ _, m) d ks) 0]> h', Some n, if owned since h o then dropped else o)
  end.

Definition bury (t : nat) (p : nat) (dropped : option id) (cs : gmap (nat + nat) claim) :=
  match dropped with
  | Some m => <[Dying t := Claim p m []]> cs
  | None => cs
  end.

Definition update_since (since : nat) (k : path) (x : option nat) (s : state) : option state :=
  c ← claims s !! View (epoch s);
  let '(h, r, dropped) := put since (epoch s) (next s) (nodes s) (Some (root c)) [] k x in
  Some (State (height s) h (next s + S (length k)) (epoch s)
          (bury (next s) (parent c) dropped
             (<[View (epoch s) := Claim (parent c) (default (root c) r) []]> (claims s)))).

(** The ownership rule: in place iff born in the current epoch. *)
Definition update (k : path) (x : option nat) (s : state) : option state :=
  update_since (pred (epoch s)) k x s.

(** * Reclaiming *)

(** The neighbour test: walk down from [r] to where [n] stands, and look whether it is [n]. *)
Definition meets (h : heap) (r n : id) : bool :=
  match h !! r, h !! n with
  | Some rd, Some nd => bool_decide (descend h r (drop (length (place rd)) (place nd)) = Some n)
  | _, _ => false
  end.

Definition is_finished (c : claim) (p : path) : bool := existsb (λ q, bool_decide (q `prefix_of` p)) (done c).

Definition is_held (h : heap) (c : claim) (n : id) : bool :=
  meets h (root c) n && match h !! n with Some nd => negb (is_finished c (place nd)) | None => false end.

Definition is_view (j : nat + nat) : bool := match j with View _ => true | Dying _ => false end.

Definition some_sibling (s : state) (j : nat + nat) (p : nat) (test : nat + nat → claim → bool) : bool :=
  existsb (λ jc, negb (bool_decide (jc.1 = j)) && (parent jc.2 =? p) && test jc.1 jc.2)
    (map_to_list (claims s)).

(** The birth test against the parent, and the neighbour test against the views beside it. *)
Definition kept (s : state) (t : nat) (c : claim) (n : id) (nd : node) : bool :=
  (birth nd <=? parent c)
  || some_sibling s (Dying t) (parent c) (λ j c', is_view j && meets (nodes s) (root c') n).

Definition disputed (s : state) (t : nat) (c : claim) (n : id) : bool :=
  some_sibling s (Dying t) (parent c) (λ j c', negb (is_view j) && is_held (nodes s) c' n).

Definition kids_finished (h : heap) (c : claim) (nd : node) : bool :=
  forallb (λ dm, negb (is_held h c dm.2)) (map_to_list (kids nd)).

Definition with_claims (s : state) (cs : gmap (nat + nat) claim) : state :=
  State (height s) (nodes s) (next s) (epoch s) cs.

(** What stands below the place is not named any more. *)
Definition finish (c : claim) (nd : node) : claim :=
  Claim (parent c) (root c) (place nd :: filter (λ q, ¬ place nd `prefix_of` q) (done c)).

(** One step of the walk of the dying claim [t], at node [n].  What the parent or a view beside it holds is
    left alone with all below it; else the kids come first, then [n] is left to another dying claim that
    holds it, or freed.  A claim that holds nothing any more is forgotten. *)
Definition reclaim (t : nat) (n : id) (s : state) : option state :=
  c ← claims s !! Dying t;
  if negb (is_held (nodes s) c (root c)) then Some (with_claims s (delete (Dying t) (claims s))) else
  nd ← nodes s !! n;
  if negb (is_held (nodes s) c n) then None else
  let cs := <[Dying t := finish c nd]> (claims s) in
  if kept s t c n nd then Some (with_claims s cs) else
  if negb (kids_finished (nodes s) c nd) then None else
  if disputed s t c n then Some (with_claims s cs) else
  Some (State (height s) (delete n (nodes s)) (next s) (epoch s) cs).

(** * Actions and histories *)

(** [Crash t ps]: after a crash the walk of [t] goes on from an older cursor, though what it freed since is
    freed; from [ps = []], from the beginning. *)
Inductive action :=
  | Write (k : path) (x : nat)
  | Unmap (k : path)
  | Snapshot
  | Delete (v : nat)
  | Revert (v : nat)
  | Checkpoint
  | Reclaim (t : nat) (n : id)
  | Crash (t : nat) (ps : list path).

Definition reparent (v p : nat) (c : claim) : claim :=
  Claim (if parent c =? v then p else parent c) (root c) (done c).

Definition apply (a : action) (s : state) : option state :=
  let e := epoch s in
  match a with
  | Write k x => if length k =? height s then update k (Some x) s else None
  | Unmap k =>
      if length k =? height s
      then match read s e k with Some _ => update k None s | None => Some s end
      else None
  | Snapshot =>
      c ← claims s !! View e;
      Some (State (height s) (nodes s) (next s) (S e) (<[View (S e) := Claim e (root c) []]> (claims s)))
  | Delete v =>
      if v =? e then None else
      c ← claims s !! View v;
      Some (State (height s) (nodes s) (S (next s)) e
              (<[Dying (next s) := c]> (reparent v (parent c) <$> delete (View v) (claims s))))
  | Revert v =>
      if v =? e then None else
      c ← claims s !! View v;
      l ← claims s !! View e;
      Some (State (height s) (nodes s) (S (next s)) (S e)
              (<[View (S e) := Claim v (root c) []]> (<[Dying (next s) := l]> (delete (View e) (claims s)))))
  | Checkpoint =>
      l ← claims s !! View e;
      Some (State (height s) (nodes s) (next s) (S e) (<[View (S e) := l]> (delete (View e) (claims s))))
  | Reclaim t n => reclaim t n s
  | Crash t ps =>
      c ← claims s !! Dying t;
      if forallb (λ p, bool_decide (p ∈ done c)) ps
      then Some (with_claims s (<[Dying t := Claim (parent c) (root c) ps]> (claims s)))
      else None
  end.

Fixpoint run (s : state) (history : list action) : option state :=
  match history with
  | [] => Some s
  | a :: rest => s' ← apply a s; run s' rest
  end.

(** An empty disk of keys of [S levels] digits. *)
Definition create (levels : nat) : state :=
  State (S levels) {[0 := Node 1 [] ∅ 0]} 1 1 {[View 1 := Claim 0 0 []]}.

Definition reachable (s : state) : Prop := ∃ levels history, run (create levels) history = Some s.

(** * What is to be proved of every reachable state *)

Definition no_dangling (s : state) : Prop :=
  ∀ v c, claims s !! View v = Some c →
    is_Some (nodes s !! root c) ∧
    ∀ n nd d m, reaches (nodes s) (root c) n → nodes s !! n = Some nd → kids nd !! d = Some m →
      is_Some (nodes s !! m).

Definition no_leak (s : state) : Prop :=
  ∀ n, is_Some (nodes s !! n) → ∃ j c, claims s !! j = Some c ∧ has_node (nodes s) c n.
