(** Nodes are bounded: a node stands at most as many digits down as the tree is high, and has at most one kid
for each digit. *)
From stdpp Require Import strings.
From LogDisk Require LogStructuredDisk.
From LogDisk Require Export TreeIndex SharedTreeEdges.
Import LogStructuredDisk(record(..)).

(** A node of a tree of [levels] levels whose digits are below [fan]. *)
Record bounded_node (fan levels : nat) (nd : node) : Prop := BoundedNode {
  bounded_place : length (place nd) ≤ levels ∧ Forall (λ d, d < fan) (place nd);
  bounded_kids d : is_Some (kids nd !! d) → d < fan ∧ length (place nd) < levels;
  bounded_data : length (place nd) < levels → data nd = 0;
}.

Definition bounded_heap (fan levels : nat) (h : heap) : Prop :=
  ∀ n nd, h !! n = Some nd → bounded_node fan levels nd.

Definition bounded (bits levels : nat) (s : state) : Prop :=
  height s = levels ∧ bounded_heap (2 ^ bits) levels (nodes s).

Lemma bounded_heap_delete fan levels n h : bounded_heap fan levels h → bounded_heap fan levels (delete n h).
Proof. intros Hh m nd [_ Hm]%lookup_delete_Some. by eapply Hh. Qed.

Lemma bounded_heap_insert fan levels n nd h :
  bounded_node fan levels nd → bounded_heap fan levels h → bounded_heap fan levels (<[n := nd]> h).
Proof. intros Hnd Hh m nd' [[<- <-]|[_ Hm]]%lookup_insert_Some; [done|by eapply Hh]. Qed.

(** At most one kid for each digit. *)
Lemma bounded_size fan levels nd : bounded_node fan levels nd → size (kids nd) ≤ fan.
Proof.
  intros [_ Hkids _]. rewrite <- size_dom, <- (size_set_seq (C := gset nat) 0 fan).
  apply subseteq_size. intros d Hd%elem_of_dom. apply elem_of_set_seq. destruct (Hkids d Hd). lia.
Qed.

(** ** Keys *)

Lemma key_digits bits height lba :
  lba < 2 ^ (bits * height) → Forall (λ d, d < 2 ^ bits) (key bits height lba).
Proof.
  revert lba. induction height as [|h IH]; intros lba Hlba; simpl; [done|].
  assert (2 ^ (bits * h) ≠ 0) as Hne by (by apply Nat.pow_nonzero).
  constructor; [|by apply IH, Nat.mod_upper_bound]. apply Nat.div_lt_upper_bound; [done|].
  rewrite <- Nat.pow_add_r. by replace (bits * h + bits) with (bits * S h) by lia.
Qed.

(** ** Updates *)

Section put.
Context (fan levels since e : nat) (x : option nat).

(** The kids that a node of this subtree may have. *)
Lemma kids_of_bounded h o pl d : bounded_heap fan levels h → (∀ r nd, o = Some r → h !! r = Some nd → place nd
  = pl) →
  is_Some (kids_of h o !! d) → d < fan ∧ length pl < levels.
Proof.
  intros Hh Hpl. unfold kids_of. destruct o as [r|]; simpl; [|by rewrite lookup_empty; intros [? ?]].
  destruct (h !! r) as [nd|] eqn:Hr; simpl; [|by rewrite lookup_empty; intros [? ?]].
  intros Hd. rewrite <-(Hpl r nd eq_refl Hr). by eapply (bounded_kids _ _ _ (Hh _ _ Hr)).
Qed.

Lemma put_bounded k : ∀ nx h o pl, bounded_heap fan levels h →
  Forall (λ d, d < fan) (pl ++ k) → length (pl ++ k) = levels →
  (∀ d, is_Some (kids_of h o !! d) → d < fan) →
  bounded_heap fan levels (put since e nx h o pl k x).1.1.
Proof.
  induction k as [|d k IH]; intros nx h o pl Hh Hdigits Hlen Hkids; simpl.
  - rewrite app_nil_r in *. destruct x as [v|]; simpl; [|by apply bounded_heap_delete].
    apply bounded_heap_insert; [|done]. split; simpl; [by rewrite Hlen| |lia].
    intros d. rewrite lookup_empty. by intros [? ?].
  - assert (d < fan) as Hd by (rewrite Forall_app, Forall_cons in Hdigits; naive_solver).
    rewrite cons_middle, (assoc_L (++)) in Hdigits, Hlen.
    specialize (IH (S nx) h (kids_of h o !! d) (pl ++ [d]) Hh Hdigits Hlen).
    destruct (put since e (S nx) h _ _ k x) as [[h' m] dropped] eqn:Hput. simpl in *.
    rewrite <-!(assoc_L (++)) in Hdigits, Hlen. rewrite app_length in Hlen. simpl in Hlen.
    apply bounded_heap_insert.
    + split; simpl.
      * split; [lia|]. by apply Forall_app in Hdigits as [? _].
      * intros d'. destruct (decide (d' = d)) as [->|Hne]; [lia|].
        rewrite lookup_partial_alter_ne by done. intros ?%Hkids. lia.
      * done.
    + apply IH. intros d' Hd'. unfold kids_of in Hd'.
      destruct (_ !! d) as [m'|]; simpl in Hd'; [|by rewrite lookup_empty in Hd'; destruct Hd'].
      destruct (h !! m') as [nd|] eqn:Hm; simpl in Hd'; [|by rewrite lookup_empty in Hd'; destruct Hd'].
      by eapply (bounded_kids _ _ _ (Hh _ _ Hm)).
Qed.
End put.

Section steps.
Context (bits levels : nat).

Lemma update_bounded k x s s' : bounded bits levels s → length k = levels → Forall (λ d, d < 2 ^ bits) k →
  update k x s = Some s' → bounded bits levels s'.
Proof.
  intros [Hheight Hh] Hlen Hk. unfold update, update_since.
  destruct (claims s !! View (epoch s)) as [c|]; simpl; [|done].
  pose proof (put_bounded (2 ^ bits) levels (pred (epoch s)) (epoch s) x k (next s) (nodes s) (Some (root c))
    [] Hh Hk Hlen) as Hput.
  destruct (put _ _ _ _ _ _ _ _) as [[h r] dropped]. intros [= <-]. split; [done|]. apply Hput.
  intros d. unfold kids_of. simpl. destruct (nodes s !! root c) as [nd|] eqn:Hr; simpl;
    [|by rewrite lookup_empty; intros [? ?]].
  intros ?. by eapply (bounded_kids _ _ _ (Hh _ _ Hr)).
Qed.

Definition digits_in (a : action) : Prop :=
  match a with Write k _ | Unmap k => Forall (λ d, d < 2 ^ bits) k | _ => True end.

Lemma reclaim_bounded t n s s' : bounded bits levels s → reclaim t n s = Some s' → bounded bits levels s'.
Proof.
  intros [Hheight Hh]. unfold reclaim. destruct (claims s !! Dying t) as [c|]; simpl; [|done].
  destruct (negb _); [by intros [= <-]|]. destruct (nodes s !! n) as [nd|]; simpl; [|done].
  destruct (negb _); [done|]. destruct (kept _ _ _ _ _); [by intros [= <-]|].
  destruct (negb _); [done|]. destruct (disputed _ _ _ _); [by intros [= <-]|].
  intros [= <-]. split; [done|]. by apply bounded_heap_delete.
Qed.

Lemma apply_bounded a s s' : bounded bits levels s → digits_in a → apply a s = Some s' →
  bounded bits levels s'.
Proof.
  intros Hs Ha. pose proof Hs as [Hheight Hh]. destruct a as [k x|k| |v|v| |t n|t ps]; simpl in *.
  - destruct (Nat.eqb_spec (length k) (height s)) as [Hk|]; [|done]. rewrite Hheight in Hk.
    by apply update_bounded.
  - destruct (Nat.eqb_spec (length k) (height s)) as [Hk|]; [|done]. rewrite Hheight in Hk.
    destruct (read s (epoch s) k); [by apply update_bounded|by intros [= <-]].
  - destruct (claims s !! _); simpl; [|done]. by intros [= <-].
  - destruct (v =? epoch s); [done|]. destruct (claims s !! _); simpl; [|done]. by intros [= <-].
  - destruct (v =? epoch s); [done|]. destruct (claims s !! View v); simpl; [|done].
    destruct (claims s !! _); simpl; [|done]. by intros [= <-].
  - destruct (claims s !! _); simpl; [|done]. by intros [= <-].
  - by apply reclaim_bounded.
  - destruct (claims s !! _); simpl; [|done]. destruct (forallb _ _); [|done]. by intros [= <-].
Qed.

(** What holds of trees that the disk keeps. *)
Record kept_trees (s : state) : Prop := KeptTrees {
  kept_inv : inv s;
  kept_edges : edges_finished s;
  kept_bounded : bounded bits levels s;
}.

Definition of_record (a : action) : Prop := digits_in a ∧ ∀ t ps, a ≠ Crash t ps.

Lemma act_kept a s : kept_trees s → of_record a → kept_trees (act a s).
Proof.
  intros Hs [Hd Hc]. unfold act. destruct (apply a s) as [s'|] eqn:E; simpl; [|done].
  destruct Hs as [HI He Hb].
  split; [by eapply inv_step|by eapply edges_step|by eapply apply_bounded].
Qed.

Lemma acts_kept l s : kept_trees s → Forall of_record l → kept_trees (acts s l).1.
Proof.
  intros Hs Hl. revert s Hs. induction Hl as [|a l Ha _ IH]; intros s Hs; simpl; [done|].
  specialize (IH _ (act_kept _ _ Hs Ha)). by destruct (acts (act a s) l).
Qed.

(** Actions, one after the other, those that cannot be taken left out, are a history. *)
Lemma acts_run l s : Forall of_record l →
  ∃ history, Forall of_record history ∧ run s history = Some (acts s l).1.
Proof.
  intros Hl. revert s. induction Hl as [|a l Ha _ IH]; intros s; simpl; [by exists []|].
  destruct (IH (act a s)) as (history & Hh & Hrun). destruct (acts (act a s) l) as [s' xs]. simpl in *.
  unfold act in Hrun. destruct (apply a s) as [s1|] eqn:E; simpl in Hrun; [|by exists history].
  exists (a :: history). split; [by constructor|]. simpl. by rewrite E.
Qed.

Lemma checkpoint_kept s : kept_trees s → kept_trees (act Checkpoint s).
Proof. intros Hs. by apply act_kept. Qed.

Lemma reclaim_kept t n s s' : kept_trees s → reclaim t n s = Some s' → kept_trees s'.
Proof. intros [HI He Hb] Ha. split; [by eapply inv_reclaim|by eapply edges_reclaim|by eapply reclaim_bounded].
Qed.

(** A record that keeps within a disk of so many blocks. *)
Definition within {V} (blocks : nat) (r : record V) : Prop :=
  match r with
  | RWrite lba data => lba + length data ≤ blocks
  | RUnmap lba count => lba + count ≤ blocks
  | _ => True
  end.

Lemma actions_of_record {V} blocks (r : record V) i : height (trees i) = levels → within blocks r →
  blocks ≤ 2 ^ (bits * levels) → Forall of_record (actions_of bits r i).
Proof.
  intros Hheight Hr Hblocks. apply Forall_forall. intros a. destruct r as [lba data|lba count|n|n|n].
    - intros (j & -> & [_ ?]%elem_of_seq)%elem_of_list_fmap. simpl in *. split; [|done]. simpl.
      rewrite Hheight. apply key_digits. lia.
    - intros (j & -> & [_ ?]%elem_of_seq)%elem_of_list_fmap. simpl in *. split; [|done]. simpl.
      rewrite Hheight. apply key_digits. lia.
    - by intros ->%elem_of_list_singleton.
    - simpl. destruct (named i !! n); simpl; [by intros ->%elem_of_list_singleton|by intros ?%elem_of_nil].
    - simpl. destruct (named i !! n); simpl; [by intros ->%elem_of_list_singleton|by intros ?%elem_of_nil].
Qed.

Lemma reindex_kept {V} blocks (r : record V) i : kept_trees (trees i) → within blocks r →
  blocks ≤ 2 ^ (bits * levels) → kept_trees (trees (reindex bits r i).1).
Proof.
  intros Hi Hr Hblocks. pose proof (kept_bounded _ Hi) as [Hheight _]. unfold reindex.
  pose proof (acts_kept _ _ Hi (actions_of_record _ r i Hheight Hr Hblocks)). by destruct (acts _ _).
Qed.

Lemma reindex_run {V} blocks (r : record V) i : height (trees i) = levels → within blocks r →
  blocks ≤ 2 ^ (bits * levels) →
  ∃ history, Forall of_record history ∧ run (trees i) history = Some (trees (reindex bits r i).1).
Proof.
  intros Hheight Hr Hblocks.
  destruct (acts_run _ (trees i) (actions_of_record _ r i Hheight Hr Hblocks)) as (history & Hh & Hrun).
  exists history. split; [done|]. unfold reindex. by destruct (acts _ _).
Qed.

End steps.

Lemma kept_create bits levels : kept_trees bits (S levels) (create levels).
Proof.
  split; [apply inv_create|apply edges_create|]. split; [done|]. intros n nd Hn. cbn in Hn.
  apply lookup_singleton_Some in Hn as [_ <-]. split; simpl; [|intros d|done].
  - split; [lia|done].
  - rewrite lookup_empty. by intros [? ?].
Qed.
