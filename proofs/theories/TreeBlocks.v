(** Shared trees in blocks: an inner node is one block, a chunk stands in the blocks of its parents, and the
roots of the claims are all that is left to remember.

A block says of each kid of a node its digit, its number, the epoch of its birth, and where it is: a chunk's
MBA, or the page of an inner node. What else a node has is known from the way to it. A walk has freed kids of
nodes that are still there; it has finished their places, and reading goes no further there. *)
From LogDisk Require Import TreeIndexBounds.
From LogDisk Require TreeIndexLeaves TreeDiskPages.
From LogDisk Require Import Codec.
Import TreeIndexLeaves(spares_old).

(** The number of a node, its birth, and its MBA or its page. *)
Notation kid := (nat * (nat * nat))%type.
Definition kids_codec : codec (gmap nat kid) := finite_map number (both number (both number number)).

Lemma kids_round_trips : round_trips kids_codec.
Proof. by apply finite_map_round_trips; [|apply both_round_trips; [|apply both_round_trips]]. Qed.

(** What a parent, or the table of roots, says of node [m]; [on] has the pages of inner nodes. *)
Definition entry (s : state) (on : gmap nat nat) (m : id) : kid :=
  match nodes s !! m with
  | Some md => (m, (birth md, if length (place md) =? height s then data md else default 0 (on !! m)))
  | None => (m, (0, 0))
  end.

Definition kids_words (s : state) (on : gmap nat nat) (nd : node) : list nat :=
  put kids_codec (entry s on <$> kids nd).

Definition inner (s : state) (nd : node) : bool := bool_decide (length (place nd) < height s).

(** ** Reading *)

(** Nodes, each with its MBA or its page. *)
Notation found := (gmap id (node * nat)).

Section Loading.
Context `{!blocks} (f : nat → block).

Definition kids_at (p : nat) : gmap nat kid := default ∅ (unpack kids_codec (f p)).

(** The nodes from [k] down, which stands at [pl], but for the places that are to be skipped: each with its
MBA or its page. *)
Fixpoint found_below (skip : path → bool) (levels : nat) (pl : path) (k : kid) : found :=
  if skip pl then ∅ else
  match levels with
  | 0 => {[k.1 := (Node k.2.1 pl ∅ k.2.2, k.2.2)]}
  | S levels =>
      let ks := kids_at k.2.2 in
      foldr (λ e h, found_below skip levels (pl ++ [e.1]) e.2 ∪ h)
        {[k.1 := (Node k.2.1 pl (fst <$> ks) 0, k.2.2)]} (map_to_list ks)
  end.

(** A claim as the table of roots has it: with the place and the entry of its root, if that is still there. *)
Definition saved_claim : Type := claim * option (path * kid).

Definition found_by_claim (height : nat) (c : saved_claim) : found :=
  match c.2 with
  | Some (pl, k) => found_below (is_finished c.1) (height - length pl) pl k
  | None => ∅
  end.

Definition found_by (height : nat) (cs : gmap (nat + nat) saved_claim) : found :=
  foldr (λ e h, found_by_claim height e.2 ∪ h) ∅ (map_to_list cs).
End Loading.

(** The trees without their nodes. *)
Record roots := Roots {
  roots_height : nat;
  roots_next : nat;
  roots_epoch : nat;
  roots_claims : gmap (nat + nat) saved_claim;
}.

Definition roots_of (s : state) (on : gmap nat nat) : roots :=
  Roots (height s) (next s) (epoch s)
    ((λ c, (c, (λ nd, (place nd, entry s on (root c))) <$> nodes s !! root c)) <$> claims s).

(** The trees, and the pages of their inner nodes, of what was found. *)
Definition trees_found (r : roots) (h : found) : state * gmap nat nat :=
  (State (roots_height r) (fst <$> h) (roots_next r) (roots_epoch r) (fst <$> roots_claims r),
   snd <$> filter (λ e, length (place e.2.1) < roots_height r) h).

Definition trees_of `{!blocks} (f : nat → block) (r : roots) : state * gmap nat nat :=
  trees_found r (found_by f (roots_height r) (roots_claims r)).

(** ** What is read is what was written *)

Section Unions.
Context {A B : Type} (g : A → gmap id B) (h0 : gmap id B).

Lemma unions_within l h : (∀ x, x ∈ l → g x ⊆ h) → h0 ⊆ h → foldr (λ x h', g x ∪ h') h0 l ⊆ h.
Proof.
  intros Hl H0. induction l as [|x l IH]; simpl; [done|].
  apply map_union_least; [apply Hl; by left|apply IH; intros; apply Hl; by right].
Qed.

Lemma unions_base l n : is_Some (h0 !! n) → is_Some (foldr (λ x h', g x ∪ h') h0 l !! n).
Proof. intros H0. induction l as [|x l IH]; simpl; [done|]. rewrite lookup_union_is_Some. by right. Qed.

Lemma unions_some l x n : x ∈ l → is_Some (g x !! n) → is_Some (foldr (λ x h', g x ∪ h') h0 l !! n).
Proof.
  intros Hx Hn. induction Hx as [x l|x y l _ IH]; simpl; rewrite lookup_union_is_Some; [by left|right; auto].
Qed.
End Unions.

Section Blocks.
Context `{!blocks} `{!blocks_laws}.
Implicit Types (s : state) (on : gmap nat nat) (f : nat → block) (n m p d : nat).

(** A node stands in the block of page [p]. Of kids that were freed, only the number is known. *)
Definition in_block f s on nd p : Prop := ∃ ks, unpack kids_codec (f p) = Some ks ∧ fst <$> ks = kids nd ∧
  ∀ d m md, kids nd !! d = Some m → nodes s !! m = Some md →
    ks !! d = Some (entry s on m) ∧ (inner s md → is_Some (on !! m)).

(** Inner nodes that have a page are in it, and were born in an epoch that has ended. *)
Definition in_blocks f s on : Prop := ∀ n p, on !! n = Some p → n < next s ∧
  ∀ nd, nodes s !! n = Some nd → birth nd < epoch s ∧ in_block f s on nd p.

Lemma in_blocks_same f f' s on : (∀ n p, on !! n = Some p → f' p = f p) → in_blocks f s on →
  in_blocks f' s on.
Proof.
  intros Hf Hs n p Hn. destruct (Hs _ _ Hn) as [? Hnd]. split; [done|]. intros nd Hnd'.
  destruct (Hnd _ Hnd') as [? (ks & ? & ?)]. split; [done|]. exists ks. by rewrite (Hf _ _ Hn).
Qed.

(** No change of the trees but a checkpoint touches them. *)
Lemma in_blocks_spares f s s' on : inv s → spares_old s s' → height s' = height s →
  in_blocks f s on → in_blocks f s' on.
Proof.
  intros I (Hnext & Hepoch & Hold) Hh Hs n p Hn. destruct (Hs _ _ Hn) as [Hlt Hnd]. split; [lia|].
  intros nd' Hnd'. destruct (Hold _ _ Hlt Hnd') as (nd & Hsn & E).
  destruct (Hnd _ Hsn) as [Hb (ks & Hks & Hfst & Hkid)]. rewrite (E Hb). split; [lia|].
  exists ks. split_and!; [done..|]. intros d m md' Hd Hm'.
  destruct (tidy_edge (inv_tidy I) Hsn Hd) as [Hmlt _]. destruct (Hold _ _ Hmlt Hm') as (md & Hm & Em).
  destruct (tidy_kid (inv_tidy I) Hsn Hd Hm) as [_ Hmb]. assert (md' = md) as -> by (apply Em; lia).
  destruct (Hkid _ _ _ Hd Hm) as [Hks' Hin]. unfold entry, inner in *. rewrite Hm', Hh. by rewrite Hm in Hks'.
Qed.

(** All inner nodes have a page. *)
Definition all_in_blocks s on : Prop := ∀ n nd, nodes s !! n = Some nd → inner s nd → is_Some (on !! n).

Section Roots.
Context {bits levels : nat} {s : state} {on : gmap nat nat} {f : nat → block}.
Context (Hkept : kept_trees bits levels s) (Hin : in_blocks f s on) (Hall : all_in_blocks s on).
Let I : inv s := kept_inv _ _ _ Hkept.

Lemma entry_chunk n nd : nodes s !! n = Some nd → length (place nd) = height s →
  entry s on n = (n, (birth nd, data nd)) ∧ nd = Node (birth nd) (place nd) ∅ (data nd).
Proof.
  intros Hn Hl. unfold entry. rewrite Hn, (proj2 (Nat.eqb_eq _ _) Hl). split; [done|].
  destruct nd as [b pl ks x]. simpl in *. f_equal. apply map_empty. intros d.
  destruct (ks !! d) as [m|] eqn:Hd; [|done]. destruct (tidy_edge (inv_tidy I) (d := d) (m := m) Hn); [done|].
  simpl in *. lia.
Qed.

Lemma entry_inner n nd : nodes s !! n = Some nd → length (place nd) < height s →
  ∃ p ks, entry s on n = (n, (birth nd, p)) ∧ kids_at f p = ks ∧
    nd = Node (birth nd) (place nd) (fst <$> ks) 0 ∧ ∀ d k, ks !! d = Some k → kids nd !! d = Some k.1 ∧
    ∀ md, nodes s !! k.1 = Some md → k = entry s on k.1.
Proof.
  intros Hn Hl. destruct (Hall n nd) as [p Hp]; [done|by apply bool_decide_pack|].
  destruct (Hin _ _ Hp) as [_ Hnd]. destruct (Hnd _ Hn) as [_ (ks & Hks & Hfst & Hkid)].
  exists p, ks. unfold entry at 1, kids_at. rewrite Hn, Hp, Hks.
  rewrite (proj2 (Nat.eqb_neq (length (place nd)) (height s))) by lia. split_and!; [done..| |].
  - destruct (kept_bounded _ _ _ Hkept) as [Hh Hbound]. pose proof (bounded_data _ _ _ (Hbound _ _ Hn)) as Hd.
    rewrite Hfst. destruct nd; simpl in *. f_equal. apply Hd. lia.
  - intros d k Hd. assert (kids nd !! d = Some k.1) as Hd' by (rewrite <- Hfst; apply lookup_fmap_Some; by
    exists k).
    split; [done|]. intros md Hm. destruct (Hkid _ _ _ Hd' Hm) as [Hks' _]. congruence.
Qed.

Context (j : nat + nat) (c : claim) (Hj : claims s !! j = Some c).

(** Every node, with its MBA or its page. *)
Definition all_found : found := map_imap (λ n nd, Some (nd, (entry s on n).2.2)) (nodes s).

Lemma all_found_node n nd : nodes s !! n = Some nd → all_found !! n = Some (nd, (entry s on n).2.2).
Proof. intros Hn. unfold all_found. by rewrite map_lookup_imap, Hn. Qed.

Lemma below_within below n nd : reaches (nodes s) (root c) n → nodes s !! n = Some nd →
  length (place nd) + below = height s →
  found_below f (is_finished c) below (place nd) (entry s on n) ⊆ all_found.
Proof.
  revert n nd. induction below as [|below IH]; intros n nd Hr Hn Hl; simpl.
  - destruct (is_finished c (place nd)); [apply map_empty_subseteq|].
    pose proof (all_found_node n nd Hn) as Hfound. destruct (entry_chunk n nd Hn) as [Ek E]; [lia|].
    rewrite Ek in *. simpl in *. rewrite <- E. by apply map_singleton_subseteq_l.
  - destruct (is_finished c (place nd)); [apply map_empty_subseteq|].
    pose proof (all_found_node n nd Hn) as Hfound.
    destruct (entry_inner n nd Hn) as (p & ks & Ek & Eks & E & Hkid); [lia|]. rewrite Ek in *. simpl in *.
    rewrite Eks. apply unions_within; [|rewrite <- E; by apply map_singleton_subseteq_l].
    intros [d k] Hd%elem_of_map_to_list. simpl. destruct (Hkid _ _ Hd) as [Hd' Hk].
    destruct (nodes s !! k.1) as [md|] eqn:Hm.
    + rewrite (Hk md eq_refl). destruct (tidy_kid (inv_tidy I) Hn Hd' Hm) as [<- _].
      rewrite <- (Hk md eq_refl). rewrite (Hk md eq_refl). apply IH; [|done|].
      * eapply reaches_kid; eauto.
      * destruct (tidy_kid (inv_tidy I) Hn Hd' Hm) as [-> _]. rewrite app_length. simpl. lia.
    + pose proof (kept_edges _ _ _ Hkept _ _ _ _ _ _ Hj Hr Hn Hd' Hm) as Hf%is_finished_spec.
      destruct below; simpl; rewrite Hf; apply map_empty_subseteq.
Qed.

Lemma below_complete below n nd m md : nodes s !! n = Some nd →
  length (place nd) + below = height s → reaches (nodes s) n m → nodes s !! m = Some md →
  ¬ finished c (place md) → is_Some (found_below f (is_finished c) below (place nd) (entry s on n) !! m).
Proof.
  intros Hn Hl [q Hq] Hm Hnot. revert n nd q Hn Hl Hq.
  induction below as [|below IH]; intros n nd q Hn Hl Hq; simpl;
    (assert (is_finished c (place nd) = false) as ->;
      [destruct (is_finished c (place nd)) eqn:E; [|done]; apply is_finished_spec in E; destruct Hnot;
       eapply finished_below; [exact E|];
       destruct (descend_place (inv_tidy I) _ _ _ _ _ Hq Hn Hm) as [-> _]; by apply prefix_app_r|]).
  - destruct q as [|d q]; [|exfalso].
    + apply descend_nil in Hq as [-> _]. destruct (entry_chunk n nd Hn) as [-> E]; [lia|]. simpl.
      rewrite lookup_singleton. by eexists.
    + apply descend_cons_inv in Hq as (nd' & i & Hn' & Hd & _).
      destruct (tidy_edge (inv_tidy I) Hn' Hd). assert (nd' = nd) as -> by congruence. lia.
  - destruct (entry_inner n nd Hn) as (p & ks & -> & Eks & E & Hkid); [lia|]. simpl. rewrite Eks.
    destruct q as [|d q].
    + apply descend_nil in Hq as [-> _]. apply unions_base. rewrite lookup_singleton. by eexists.
    + apply descend_cons_inv in Hq as (nd' & i & Hn' & Hd & Hq). assert (nd' = nd) as -> by congruence.
      destruct (descend_root _ _ _ _ Hq) as [id Hi].
      assert (∃ k, ks !! d = Some k ∧ k.1 = i) as (k & Hk & <-).
      { rewrite E in Hd. simpl in Hd. by apply lookup_fmap_Some in Hd as (k & ? & ?); exists k. }
      apply unions_some with (d, k); [by apply elem_of_map_to_list|]. simpl.
      destruct (Hkid _ _ Hk) as [Hd' Hk']. rewrite (Hk' _ Hi).
      destruct (tidy_kid (inv_tidy I) Hn Hd' Hi) as [Hpl _]. rewrite <- Hpl. eapply IH; [done| |done].
      rewrite Hpl, app_length. simpl. lia.
Qed.
End Roots.

Lemma found_all bits levels s on f : kept_trees bits levels s → in_blocks f s on → all_in_blocks s on →
  found_by f (height s) (roots_claims (roots_of s on)) = all_found (s := s) (on := on).
Proof.
  intros Hkept Hin Hall. pose proof (kept_inv _ _ _ Hkept) as I. unfold roots_of. simpl.
  set (cs := _ <$> claims s).
  assert (∀ n nd, nodes s !! n = Some nd → length (place nd) ≤ height s) as Hlen.
  { destruct (kept_bounded _ _ _ Hkept) as [-> Hb]. intros n nd Hn.
    by apply (bounded_place _ _ _ (Hb _ _ Hn)). }
  assert (found_by f (height s) cs ⊆ all_found (s := s) (on := on)) as Hsub.
  { apply unions_within; [|apply map_empty_subseteq].
    intros [j [c o]] Hj%elem_of_map_to_list. simpl. unfold cs in Hj.
    apply lookup_fmap_Some in Hj as (c0 & E & Hj). injection E as -> <-. unfold found_by_claim. simpl.
    destruct (nodes s !! root c) as [nd|] eqn:Hr; simpl; [|apply map_empty_subseteq].
    eapply (below_within Hkept Hin Hall j c Hj); [apply reaches_refl; by eexists|done|].
    specialize (Hlen _ _ Hr). lia. }
  apply (anti_symm (⊆)); [done|]. apply map_subseteq_spec. intros m x Hm.
  assert (∃ md, nodes s !! m = Some md) as [md Hmd].
  { unfold all_found in Hm. rewrite map_lookup_imap in Hm. destruct (nodes s !! m) eqn:E; [by eexists|done]. }
  destruct (inv_held I (n := m)) as (j & c & Hj & [q Hq] & md' & Hm' & Hnot); [by eexists|].
  assert (md' = md) as -> by congruence. destruct (descend_root _ _ _ _ Hq) as [nd Hr].
  assert (is_Some (found_by f (height s) cs !! m)) as [x' Hx'].
  { unfold found_by. apply unions_some with (j, (c, Some (place nd, entry s on (root c)))).
    - apply elem_of_map_to_list. unfold cs. apply lookup_fmap_Some. exists c. by rewrite Hr.
    - unfold found_by_claim. simpl.
      eapply (below_complete Hkept Hin Hall c); [done| |by exists q|done|done].
      specialize (Hlen _ _ Hr). lia. }
  pose proof (lookup_weaken _ _ _ _ Hx' Hsub). congruence.
Qed.

(** The trees are read from the blocks as they were, with the pages of their nodes. *)
Theorem trees_of_roots bits levels s on f : kept_trees bits levels s → in_blocks f s on → all_in_blocks s on →
  ∃ on', on' ⊆ on ∧ trees_of f (roots_of s on) = (s, on') ∧ in_blocks f s on' ∧ all_in_blocks s on' ∧
    roots_of s on' = roots_of s on.
Proof.
  intros Hkept Hin Hall. unfold trees_of. change (roots_height (roots_of s on)) with (height s).
  rewrite (found_all bits levels) by done. unfold trees_found. simpl.
  set (on' := snd <$> _). exists on'.
  assert (fst <$> ((λ c, (c, (λ nd, (place nd, entry s on (root c))) <$> nodes s !! root c)) <$> claims s) =
    claims s) as ->.
  { rewrite <- map_fmap_compose. by apply map_fmap_id. }
  assert (fst <$> all_found (s := s) (on := on) = nodes s) as ->.
  { apply map_eq. intros n. unfold all_found. rewrite lookup_fmap, map_lookup_imap.
    by destruct (nodes s !! n). }
  assert (∀ n p, on' !! n = Some p ↔ ∃ nd, nodes s !! n = Some nd ∧ inner s nd ∧ on !! n = Some p) as Hon.
  { intros n p. unfold on'. rewrite lookup_fmap_Some. setoid_rewrite map_filter_lookup_Some. unfold inner.
    split.
    - intros ([nd v] & <- & Hf & Hl). simpl in *. unfold all_found in Hf. rewrite map_lookup_imap in Hf.
      destruct (nodes s !! n) as [nd'|] eqn:Hn; simpl in Hf; [|done]. injection Hf as -> Hv.
      exists nd. split; [done|]. split; [by apply bool_decide_pack|]. unfold entry in Hv. rewrite Hn in Hv.
      simpl in Hv. rewrite (proj2 (Nat.eqb_neq _ _)) in Hv by lia.
      destruct (Hall n nd) as [p Hp]; [done|by apply bool_decide_pack|]. rewrite Hp in *.
      by simpl in Hv; subst.
    - intros (nd & Hn & Hl%bool_decide_unpack & Hp). exists (nd, p). split; [done|]. simpl. split; [|done].
      rewrite (all_found_node n nd Hn). unfold entry. rewrite Hn, Hp. simpl.
      by rewrite (proj2 (Nat.eqb_neq _ _)) by lia. }
  assert (∀ m md, nodes s !! m = Some md → entry s on' m = entry s on m) as Hentry.
  { intros m md Hm. unfold entry. rewrite Hm.
    destruct (Nat.eqb_spec (length (place md)) (height s)) as [|Hne]; [done|].
    assert (inner s md) as Hi.
    { apply bool_decide_pack. destruct (kept_bounded _ _ _ Hkept) as [Hh Hbound].
      pose proof (bounded_place _ _ _ (Hbound _ _ Hm)). lia. }
    destruct (Hall m md Hm Hi) as [p Hp]. rewrite Hp. by rewrite (proj2 (Hon m p)) by by exists md. }
  split_and!; [|by destruct s|..].
  - apply map_subseteq_spec. by intros n p (nd & _ & _ & Hp)%Hon.
  - intros n p (nd & Hn & _ & Hp)%Hon. destruct (Hin _ _ Hp) as [Hlt Hnd]. split; [done|].
    intros nd' Hn'. destruct (Hnd _ Hn') as [Hb (ks & Hks & Hfst & Hkid)]. split; [done|].
    exists ks. split_and!; [done..|]. intros d m md Hd Hm. destruct (Hkid _ _ _ Hd Hm) as [-> Hpage].
    split; [by erewrite Hentry|]. intros Hi. destruct (Hpage Hi) as [p' Hp']. exists p'. apply Hon.
    by exists md.
  - intros n nd Hn Hi. destruct (Hall _ _ Hn Hi) as [p Hp]. exists p. apply Hon. by exists nd.
  - unfold roots_of. f_equal. apply map_fmap_ext. intros j c _. f_equal.
    destruct (nodes s !! root c) as [nd|] eqn:Hr; simpl; [|done]. by rewrite (Hentry _ _ Hr).
Qed.

(** ** Writing *)

(** The inner nodes that no page has. *)
Definition unwritten s on : list (nat * node) :=
  map_to_list (filter (λ e, on !! e.1 = None ∧ length (place e.2) < height s) (nodes s)).

(** Where nodes are, once these are in [places]. *)
Definition placed_on s on (places : list nat) : gmap nat nat :=
  list_to_map (zip (unwritten s on).*1 places) ∪ filter (λ e, is_Some (nodes s !! e.1)) on.

Lemma elem_of_unwritten s on n nd : (n, nd) ∈ unwritten s on ↔
  nodes s !! n = Some nd ∧ on !! n = None ∧ length (place nd) < height s.
Proof. unfold unwritten. by rewrite elem_of_map_to_list, map_filter_lookup_Some. Qed.

Lemma NoDup_unwritten s on : NoDup (unwritten s on).*1.
Proof. apply NoDup_fst_map_to_list. Qed.

Section Writing.
Context {bits levels : nat} {s : state} {on : gmap nat nat} {f f' : nat → block} {places : list nat}.
Context (Hkept : kept_trees bits levels s) (Hin : in_blocks f s on).
Context (Hlen : length places = length (unwritten s on)).
Context (Hfree : ∀ n p, on !! n = Some p → is_Some (nodes s !! n) → p ∉ places).
Context (Hwritten : ∀ k n nd p, unwritten s on !! k = Some (n, nd) → places !! k = Some p →
  unpack kids_codec (f' p) = Some (entry s (placed_on s on places) <$> kids nd)).
Context (Hother : ∀ p, p ∉ places → f' p = f p).
Let on' := placed_on s on places.
Let s' := act Checkpoint s.
Let I : inv s := kept_inv _ _ _ Hkept.

Lemma checkpointed : nodes s' = nodes s ∧ height s' = height s ∧ next s' = next s ∧ epoch s' = S (epoch s).
Proof. unfold s', act. simpl. destruct (inv_live I) as [l Hl]. by rewrite Hl. Qed.

Lemma placed_new n p : (list_to_map (zip (unwritten s on).*1 places) : gmap nat nat) !! n = Some p ↔
  ∃ k nd, unwritten s on !! k = Some (n, nd) ∧ places !! k = Some p.
Proof.
  rewrite TreeDiskPages.lookup_zip_map by (by rewrite ?fmap_length || apply NoDup_unwritten).
  split.
  - intros (k & Hk & Hp). rewrite list_lookup_fmap in Hk.
    destruct (unwritten s on !! k) as [[n' nd]|] eqn:E; [|done]. injection Hk as ->. by exists k, nd.
  - intros (k & nd & Hk & Hp). exists k. by rewrite list_lookup_fmap, Hk.
Qed.

Lemma placed_all n nd : nodes s !! n = Some nd → length (place nd) < height s → is_Some (on' !! n).
Proof.
  intros Hn Hl. unfold on', placed_on. rewrite lookup_union_is_Some. destruct (on !! n) as [p|] eqn:Hp.
  - right. exists p. apply map_filter_lookup_Some. split; [done|]. by eexists.
  - left. assert ((n, nd) ∈ unwritten s on) as [k Hk]%elem_of_list_lookup by by apply elem_of_unwritten.
    destruct (lookup_lt_is_Some_2 places k) as [p Hpk]; [rewrite Hlen; by eapply lookup_lt_Some|].
    exists p. apply placed_new. by exists k, nd.
Qed.

(** A node that is still there keeps its page. *)
Lemma placed_old n nd p : nodes s !! n = Some nd → on !! n = Some p → on' !! n = Some p.
Proof.
  intros Hn Hp. unfold on', placed_on. rewrite lookup_union_r.
  - apply map_filter_lookup_Some. split; [done|]. by eexists.
  - apply eq_None_not_Some. intros [p' (k & nd' & Hk & _)%placed_new].
    apply elem_of_list_lookup_2, elem_of_unwritten in Hk as (_ & ? & _). congruence.
Qed.

Theorem written_in_blocks : in_blocks f' s' on' ∧ all_in_blocks s' on'.
Proof.
  destruct checkpointed as (Enodes & Eheight & Enext & Eepoch).
  assert (∀ m, entry s' on' m = entry s on' m) as Eentry by (intros m; unfold entry; by rewrite Enodes,
    Eheight).
  split.
  - intros n p Hn. rewrite Enodes, Enext, Eepoch. unfold on', placed_on in Hn.
    assert (∃ nd, nodes s !! n = Some nd ∧ ∃ ks, unpack kids_codec (f' p) = Some ks ∧ fst <$> ks = kids nd ∧
      ∀ d m md, kids nd !! d = Some m → nodes s !! m = Some md → ks !! d = Some (entry s on' m)) as (nd &
      Hnd & ks & Hks & Hfst & Hkid).
    { apply lookup_union_Some_raw in Hn as [(k & nd & Hk & Hp)%placed_new|[_ Hn]].
      - pose proof (Hwritten _ _ _ _ Hk Hp) as Hks.
        apply elem_of_list_lookup_2, elem_of_unwritten in Hk as (Hnd & _ & _). exists nd. split; [done|].
        exists (entry s on' <$> kids nd). split_and!; [done| |].
        + rewrite <- map_fmap_compose. rewrite <- (map_fmap_id (kids nd)) at 2.
          apply map_fmap_ext. intros d m _. unfold entry. simpl. by destruct (nodes s !! m).
        + intros d m md Hd Hm. by rewrite lookup_fmap, Hd.
      - apply map_filter_lookup_Some in Hn as [Hp [nd Hnd]]. simpl in Hnd. exists nd. split; [done|].
        destruct (Hin _ _ Hp) as [_ Hb]. destruct (Hb _ Hnd) as [_ (ks & Hks & Hfst & Hkid)].
        exists ks. rewrite Hother by (eapply Hfree; [done|by eexists]). split_and!; [done..|].
        intros d m md Hd Hm. destruct (Hkid _ _ _ Hd Hm) as [-> Hpage]. f_equal. unfold entry. rewrite Hm.
        destruct (Nat.eqb_spec (length (place md)) (height s)) as [|Hne]; [done|].
        destruct (tidy_kid (inv_tidy I) Hnd Hd Hm) as [Hpl _].
        destruct (tidy_edge (inv_tidy I) Hnd Hd) as [_ Hl].
        destruct Hpage as [p' Hp']; [apply bool_decide_pack; rewrite Hpl, app_length in *; simpl in *; lia|].
        by rewrite Hp', (placed_old _ _ _ Hm Hp'). }
    pose proof (tidy_node (inv_tidy I) Hnd) as [Hlt [_ Hb]]. split; [done|].
    intros nd' Hnd'. assert (nd' = nd) as -> by congruence. split; [lia|].
    exists ks. split_and!; [done..|]. intros d m md Hd Hm. rewrite Enodes in Hm. rewrite Eentry.
    split; [by eapply Hkid|].
    intros Hl%bool_decide_unpack. rewrite Eheight in Hl. by eapply placed_all.
  - intros n nd. rewrite Enodes. intros Hn Hl%bool_decide_unpack. rewrite Eheight in Hl. by eapply placed_all.
Qed.
End Writing.

(** ** A node is one block *)

Lemma length_put_many {A} (a : codec A) k xs : (∀ x, length (put a x) = k) →
  length (put_many a xs) = k * length xs.
Proof.
  intros Ha. induction xs as [|x xs IH]; simpl; [lia|]. rewrite put_many_cons, app_length, Ha, IH. lia.
Qed.

Lemma Forall_put_many {A} (a : codec A) (P : nat → Prop) xs : (∀ x, x ∈ xs → Forall P (put a x)) →
  Forall P (put_many a xs).
Proof.
  intros Ha. induction xs as [|x xs IH]; [constructor|]. rewrite put_many_cons. apply Forall_app.
  split; [apply Ha; by left|apply IH; intros; apply Ha; by right].
Qed.

Lemma kids_words_length s on nd : length (kids_words s on nd) = 1 + 4 * size (kids nd).
Proof.
  unfold kids_words, kids_codec, finite_map. simpl. rewrite (length_put_many _ 4); [|by intros [? [? [? ?]]]].
  change (length (map_to_list _)) with (size (entry s on <$> kids nd)). by rewrite map_size_fmap.
Qed.

Lemma pack_small ws : length ws ≤ words → Forall (λ w, w < limit) ws → is_Some (pack ws).
Proof.
  intros Hlen Hws. unfold pack. rewrite bool_decide_true by done. simpl.
  assert (small ws = true) as ->; [|by eexists]. unfold small. apply forallb_forall. intros w Hw.
  apply bool_decide_true. rewrite Forall_forall in Hws. by apply Hws, elem_of_list_In.
Qed.

(** Every number of these trees is below the limit. *)
Record small_numbers s on : Prop := SmallNumbers {
  small_next : next s < limit;
  small_epoch : epoch s < limit;
  small_data n nd : nodes s !! n = Some nd → data nd < limit;
  small_pages n p : on !! n = Some p → p < limit;
}.

Theorem node_fits bits levels s on n nd : kept_trees bits levels s → small_numbers s on →
  1 + 4 * 2 ^ bits ≤ words → 2 ^ bits < limit → nodes s !! n = Some nd →
  ∃ b, pack (kids_words s on nd) = Some b ∧ unpack kids_codec b = Some (entry s on <$> kids nd).
Proof.
  intros Hkept [Hnext Hepoch Hdata Hpages] Hwords Hlimit Hn.
  destruct (kept_bounded _ _ _ Hkept) as [Hh Hbound]. pose proof (kept_inv _ _ _ Hkept) as I.
  pose proof (bounded_size _ _ _ (Hbound _ _ Hn)) as Hsize.
  destruct (pack_small (kids_words s on nd)) as [b Hb].
  - rewrite kids_words_length. lia.
  - unfold kids_words, kids_codec, finite_map. simpl. constructor.
    + change (size (entry s on <$> kids nd) < limit). rewrite map_size_fmap. lia.
    + apply Forall_put_many. intros [d k] Hd%elem_of_map_to_list.
      apply lookup_fmap_Some in Hd as (m & <- & Hd). simpl.
      destruct (bounded_kids _ _ _ (Hbound _ _ Hn) d) as [Hfan _]; [by eexists|].
      destruct (tidy_edge (inv_tidy I) Hn Hd) as [Hm _]. unfold entry.
      destruct (nodes s !! m) as [md|] eqn:Hmd; simpl; repeat constructor; try lia.
      * pose proof (tidy_node (inv_tidy I) Hmd). lia.
      * case_match; [by eapply Hdata|]. destruct (on !! m) as [p|] eqn:Hp; simpl; [by eapply Hpages|lia].
  - exists b. split; [done|]. by apply pack_unpack; [apply kids_round_trips|].
Qed.
End Blocks.
