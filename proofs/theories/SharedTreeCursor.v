(** How long the cursor of a walk is. One that goes through one subtree after the other, from the bottom up,
has at most one place for each digit of each level. *)
From LogDisk Require Import SharedTreeReclaim.

Lemma hanging_length fan (way : path) (ps : list path) : NoDup ps →
  (∀ q, q ∈ ps → ∃ above d, q = above ++ [d] ∧ d < fan ∧ above `prefix_of` way) →
  length ps ≤ S (length way) * fan.
Proof.
  intros Hdup Hps.
  set (slots := (λ ld, take ld.1 way ++ [ld.2]) <$> list_prod (seq 0 (S (length way))) (seq 0 fan)).
  assert (length slots = S (length way) * fan) as <-.
  { unfold slots. by rewrite fmap_length, prod_length, !seq_length. }
  apply submseteq_length, NoDup_submseteq; [done|]. intros q Hq.
  destruct (Hps q Hq) as (above & d & -> & Hd & [rest ->]). apply elem_of_list_fmap.
  exists (length above, d). cbn [fst snd]. rewrite take_app. split; [done|].
  apply elem_of_list_In, in_prod_iff. split; apply elem_of_list_In, elem_of_seq; [rewrite app_length|]; lia.
Qed.

(** A walk goes on at [nd], having finished the kids of nodes on the way to it, and what stands below it. *)
Definition goes_deep (fan : nat) (c : claim) (nd : node) : Prop := NoDup (done c) ∧
  ∀ q, q ∈ done c → place nd `prefix_of` q ∨
    ∃ above d, q = above ++ [d] ∧ d < fan ∧ above `prefix_of` place nd.

Theorem cursor_bounded fan c nd : goes_deep fan c nd →
  NoDup (done (finish c nd)) ∧ length (done (finish c nd)) ≤ S (S (length (place nd)) * fan).
Proof.
  intros [Hdup Hway]. unfold finish. simpl. set (others := filter (λ q, ¬ place nd `prefix_of` q) (done c)).
  assert (NoDup others) as Hothers by by apply NoDup_filter. split.
  - apply NoDup_cons. split; [|done]. by intros [Hno _]%elem_of_list_filter.
  - apply le_n_S, hanging_length; [done|]. intros q [Hno Hq]%elem_of_list_filter. by destruct (Hway q Hq).
Qed.

(** Where a walk goes from one subtree to another before it has finished the first, cursors grow. *)
Definition wide (ps : list path) : claim := foldl (λ c p, finish c (Node 1 p ∅ 0)) (Claim 0 0 []) ps.

(** [cursor_bounded] for such a walk, through the 16 places of a tree of 4 binary digits: the cursor has 16
places, and the bound is 11. *)
Theorem wide_walks_have_long_cursors : let c := wide [
    [0; 0; 0; 0]; [0; 0; 0; 1]; [0; 0; 1; 0]; [0; 0; 1; 1]; [0; 1; 0; 0]; [0; 1; 0; 1]; [0; 1; 1; 0];
    [0; 1; 1; 1]; [1; 0; 0; 0]; [1; 0; 0; 1]; [1; 0; 1; 0]; [1; 0; 1; 1]; [1; 1; 0; 0]; [1; 1; 0; 1];
    [1; 1; 1; 0]; [1; 1; 1; 1]] in
  S (S 4 * 2) < length (done c).
Proof. vm_compute. lia. Qed.
