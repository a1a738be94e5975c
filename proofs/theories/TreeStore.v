(** Shared trees on a device: checkpoint and recovery as programs over block I/O. All else that stands on the
device is left alone.

A checkpoint writes the inner nodes that no page has, one block each, to pages that the scheduler proposes and
that the newest checkpoint does not use; and the roots, with what the disk keeps beside its trees, to the slot
that is not in use. A flush; the header of that slot; a flush. Recovery reads the newer slot, then goes down
from the roots, page by page. *)
From LogDisk Require LogStructuredDiskReading.
From LogDisk Require Import TreeIndexBounds.
From LogDisk Require Import Medium Codec TreeBlocks TreeRoots.
Import LogStructuredDisk(targets).

(** Where things stand: the headers of the two slots, the blocks of their bodies, and the pages. *)
Record layout := Layout {
  header_at : bool → nat;
  body_at : bool → nat → nat;
  page_at : nat → nat;
  slot_blocks : nat;
}.

(** No two of them share an address. *)
Record apart (l : layout) : Prop := Apart {
  header_once a b : header_at l a = header_at l b → a = b;
  body_once a i b j : i < slot_blocks l → j < slot_blocks l → body_at l a i = body_at l b j → a = b ∧ i = j;
  page_once p q : page_at l p = page_at l q → p = q;
  body_no_header a i b : i < slot_blocks l → body_at l a i ≠ header_at l b;
  page_no_header p a : page_at l p ≠ header_at l a;
  page_no_body p a i : i < slot_blocks l → page_at l p ≠ body_at l a i;
}.

Record memory {A : Type} := Memory {
  trees : state;
  pages : gmap nat nat;      (* node -> page: what the newest checkpoint uses *)
  beside : A;                (* what the disk keeps beside its trees *)
  serial : nat;              (* of the newest checkpoint *)
  slot : bool;               (* where it is *)
}.
Global Arguments memory : clear implicits.

(** Serial number, and blocks of the body. *)
Definition header_codec : codec (nat * nat) := both number number.

Definition newer (a b : option (nat * nat)) : option (bool * (nat * nat)) :=
  match a, b with
  | Some a, Some b => if decide (a.1 < b.1) then Some (true, b) else Some (false, a)
  | Some a, None => Some (false, a)
  | None, Some b => Some (true, b)
  | None, None => None
  end.

Section Programs.
Context `{!blocks} {A : Type} (beside_codec : codec A) (l : layout).

Definition body_codec : codec (roots * A) := both roots_codec beside_codec.

Definition checkpointed (y : memory A) (places : list nat) : memory A :=
  Memory _ (act Checkpoint (trees y)) (placed_on (trees y) (pages y) places) (beside y) (S (serial y))
    (negb (slot y)).

(** [k] goes on with the memory, the old one if the proposal is not taken. *)
Definition checkpoint {B} (y : memory A) (places : list nat) (k : memory A → program block B) :
    program block B :=
  let y' := checkpointed y places in
  let new := unwritten (trees y) (pages y) in
  if decide (length places = length new ∧ NoDup places ∧ Forall (λ p, p ∉ targets (pages y)) places) then
    match mapM (λ e, pack (kids_words (trees y) (pages y') e.2)) new,
          pack_many (slot_blocks l) (put body_codec (roots_of (trees y') (pages y'), beside y)) with
    | Some nodes, Some body =>
        match seal (put header_codec (serial y', length body)) with
        | Some header =>
            write_all (zip ((page_at l <$> places) ++ (body_at l (slot y') <$> seq 0 (length body)))
                (nodes ++ body))
              (FlushBlocks (WriteBlock (header_at l (slot y')) header (FlushBlocks (k y'))))
        | None => k y
        end
    | _, _ => k y
    end
  else k y.

(** ** Recovery *)

Fixpoint read_all {B} (addresses : list nat) (k : list block → program block B) : program block B :=
  match addresses with
  | [] => k []
  | a :: addresses => ReadBlock a (λ b, read_all addresses (λ bs, k (b :: bs)))
  end.

(** What [read] finds for each, and [found], together. *)
Fixpoint read_each {B C} (read : C → (found → program block B) → program block B) (xs : list C) (h : found)
    (k : found → program block B) : program block B :=
  match xs with
  | [] => k h
  | x :: xs => read x (λ h1, read_each read xs h (λ h2, k (h1 ∪ h2)))
  end.

Fixpoint read_below {B} (skip : path → bool) (levels : nat) (pl : path) (e : nat * (nat * nat))
    (k : found → program block B) : program block B :=
  if skip pl then k ∅ else
  match levels with
  | 0 => k {[e.1 := (Node e.2.1 pl ∅ e.2.2, e.2.2)]}
  | S levels =>
      ReadBlock (page_at l e.2.2) (λ b,
        let ks := default ∅ (unpack kids_codec b) in
        read_each (λ x, read_below skip levels (pl ++ [x.1]) x.2) (map_to_list ks)
          {[e.1 := (Node e.2.1 pl (fst <$> ks) 0, e.2.2)]} k)
  end.

Definition read_claim {B} (height : nat) (c : saved_claim) (k : found → program block B) : program block B :=
  match c.2 with
  | Some (pl, e) => read_below (is_finished c.1) (height - length pl) pl e k
  | None => k ∅
  end.

(** [k] goes on with the memory; with nothing if there is no checkpoint. *)
Definition recover {B} (k : option (memory A) → program block B) : program block B :=
  ReadBlock (header_at l false) (λ a, ReadBlock (header_at l true) (λ b,
    match newer (unseal header_codec a) (unseal header_codec b) with
    | None => k None
    | Some (s, (n, len)) =>
        read_all (body_at l s <$> seq 0 len) (λ bs,
          match unpack_many body_codec bs with
          | None => k None
          | Some (r, x) =>
              read_each (λ e, read_claim (roots_height r) e.2) (map_to_list (roots_claims r)) ∅ (λ h,
                let '(t, on) := trees_found r h in k (Some (Memory _ t on x n s)))
          end)
    end)).
End Programs.

(** ** What is proved *)

(** What a power cut leaves of a torn header does not unseal. *)
Definition torn_headers_unread `{!blocks} {torn : tearing block} (l : layout) : Prop :=
  ∀ s, ¬ tears (header_at l s) ∧ ∀ b, tears_to (header_at l s) b → unsealed b = None.

Section Store.
Context `{!blocks} `{!blocks_laws} {torn : tearing block} {A : Type} (beside_codec : codec A) (l : layout).
Context (bits levels : nat).
Context (l_apart : apart l) (beside_round_trips : round_trips beside_codec).
Context (torn_unread : torn_headers_unread l).
Implicit Types (f : contents block) (s : state) (on : gmap nat nat) (x : A) (y : memory A).
Notation in_pages f := (in_blocks (λ p, f (page_at l p))).

(** The device holds a checkpoint of the trees [s], with [x] beside them. *)
Definition stored f s on x (n : nat) (sl : bool) : Prop :=
  (∃ len, len ≤ slot_blocks l ∧
    newer (unseal header_codec (f (header_at l false))) (unseal header_codec (f (header_at l true))) =
      Some (sl, (n, len)) ∧
    unpack_many (body_codec beside_codec) (f <$> (body_at l sl <$> seq 0 len)) = Some (roots_of s on, x)) ∧
  in_pages f s on ∧ all_in_blocks s on ∧ kept_trees bits levels s.

(** The addresses that a checkpoint does not touch, and the newest checkpoint needs. *)
Definition needed on (sl : bool) (a : nat) : Prop :=
  (∃ b, a = header_at l b) ∨ (∃ i, i < slot_blocks l ∧ a = body_at l sl i) ∨
  ∃ n p, on !! n = Some p ∧ a = page_at l p.

Lemma stored_same f f' s on x n sl : (∀ a, needed on sl a → f' a = f a) → stored f s on x n sl →
  stored f' s on x n sl.
Proof.
  intros Hsame [(len & Hlen & Hheader & Hbody) (Hin & Hall & Hkept)]. split; [|split_and!; [|done..]].
  - exists len. split; [done|]. split.
    + by rewrite !Hsame by (left; by eexists).
    + rewrite <- Hbody. f_equal. rewrite <- !list_fmap_compose. apply list_fmap_ext.
      intros _ i [? Hi]%elem_of_list_lookup_2%elem_of_seq. simpl. apply Hsame. right. left. exists i.
      split; [lia|done].
  - eapply in_blocks_same; [|done]. intros m p Hp. simpl. apply Hsame. right. right. by exists m, p.
Qed.

(** What a checkpoint writes. *)
Definition touched (places : list nat) (sl : bool) (a : nat) : Prop :=
  (∃ p, p ∈ places ∧ a = page_at l p) ∨ (∃ i, i < slot_blocks l ∧ a = body_at l sl i).

Lemma touched_not_needed places on sl a : (∀ n p, on !! n = Some p → p ∉ places) →
  touched places (negb sl) a → ¬ needed on sl a.
Proof.
  intros Hfree [(p & Hp & ->)|(i & Hi & ->)] [[b Hb]|[(j & Hj & Hb)|(n & q & Hq & Hb)]].
  - by apply (page_no_header _ l_apart) in Hb.
  - by apply (page_no_body _ l_apart) in Hb.
  - apply (page_once _ l_apart) in Hb as ->. by eapply Hfree.
  - by apply (body_no_header _ l_apart) in Hb.
  - apply (body_once _ l_apart) in Hb as [Hb _]; [|done..]. by destruct sl.
  - symmetry in Hb. by apply (page_no_body _ l_apart) in Hb.
Qed.

(** Of the newest checkpoint only the header of its slot counts. *)
Lemma newer_slot f sl n len :
  newer (unseal header_codec (f (header_at l false))) (unseal header_codec (f (header_at l true))) =
    Some (sl, (n, len)) →
  unseal header_codec (f (header_at l sl)) = Some (n, len).
Proof. unfold newer. repeat case_match; naive_solver. Qed.

Lemma newer_written f f' sl n len len' :
  unseal header_codec (f (header_at l sl)) = Some (n, len) → f' (header_at l sl) = f (header_at l sl) →
  unseal header_codec (f' (header_at l (negb sl))) = Some (S n, len') →
  newer (unseal header_codec (f' (header_at l false))) (unseal header_codec (f' (header_at l true))) =
    Some (negb sl, (S n, len')).
Proof.
  intros Hold Hsame Hnew. rewrite <- Hsame in Hold. unfold newer.
  destruct sl; simpl in *; rewrite Hold, Hnew; case_decide; simpl in *; done || lia.
Qed.

(** Where the other slot has no header, the newest checkpoint is what it was. *)
Lemma stored_without_header f f' s on x n sl :
  (∀ a, a ≠ header_at l (negb sl) → f' a = f a) → unseal header_codec (f' (header_at l (negb sl))) = None →
  stored f s on x n sl → stored f' s on x n sl.
Proof.
  intros Hsame Hnone [(len & Hlen & Hheader & Hbody) (Hin & Hall & Hkept)]. split; [|split_and!; [|done..]].
  - exists len. split; [done|]. apply newer_slot in Hheader. split.
    + assert (header_at l sl ≠ header_at l (negb sl)) as Hne
        by (intros E%(header_once _ l_apart); by destruct sl).
      rewrite <-(Hsame _ Hne) in Hheader. unfold newer. destruct sl; simpl in *; by rewrite Hheader, Hnone.
    + rewrite <-Hbody. f_equal. rewrite <-!list_fmap_compose. apply list_fmap_ext.
      intros _ i [_ Hi]%elem_of_list_lookup_2%elem_of_seq. simpl. apply Hsame, (body_no_header _ l_apart).
        lia.
  - eapply in_blocks_same; [|done]. intros m p _. apply Hsame, (page_no_header _ l_apart).
Qed.

(** All else is left alone: what is neither a page proposed nor of the slot [sl]. *)
Definition spared f (places : list nat) (sl : bool) f' : Prop :=
  ∀ a, ¬ touched places sl a → a ≠ header_at l sl → f' a = f a.

(** Whenever the power fails, the device holds the old checkpoint or the new one; and the memory is that of
the new one, unless the proposal was not taken. *)
Theorem checkpoint_safe {B} (P : contents block → Prop) (Q : B → medium block → Prop) y places k f s0 x0 :
  stored f s0 (pages y) x0 (serial y) (slot y) → in_pages f (trees y) (pages y) →
  kept_trees bits levels (trees y) →
  let y' := checkpointed y places in
  (∀ f', stored f' s0 (pages y) x0 (serial y) (slot y) → spared f places (slot y') f' → P f') →
  (∀ f', stored f' (trees y') (pages y') (beside y') (serial y') (slot y') → spared f places (slot y') f' →
    P f') →
  crash_safe P Q (k y) (Medium f []) →
  (∀ f', stored f' (trees y') (pages y') (beside y') (serial y') (slot y') → in_pages f' (trees y') (pages
  y') →
    spared f places (slot y') f' → crash_safe P Q (k y') (Medium f' [])) →
  crash_safe P Q (checkpoint beside_codec l y places k) (Medium f []).
Proof.
  intros Hstored Hin Hkept y' Hold Hnew Hno Hyes. unfold checkpoint. fold y'.
  case_decide as Hplaces; [|done]. destruct Hplaces as (Hlen & Hdup & Hfree).
  destruct (mapM _ _) as [nodes|] eqn:Hnodes; [|done].
  destruct (pack_many _ _) as [body|] eqn:Hbody; [|done].
  destruct (seal _) as [header|] eqn:Hheader; [|done].
  apply pack_many_unpack in Hbody as [Hblen Hbody];
    [|by apply both_round_trips; [apply roots_round_trips|]].
  apply seal_unseal in Hheader; [|by apply both_round_trips].
  apply mapM_Some in Hnodes. pose proof (Forall2_length _ _ _ Hnodes) as Hnlen.
  assert (∀ n p, pages y !! n = Some p → p ∉ places) as Hfree'.
  { intros n p Hn Hp. rewrite Forall_forall in Hfree. apply (Hfree _ Hp),
    LogStructuredDiskReading.elem_of_targets.
    by exists n. }
  assert (∀ a, touched places (slot y') a → ¬ needed (pages y) (slot y) a) as Hapart.
  { intros a. by apply touched_not_needed. }
  set (addresses := (page_at l <$> places) ++ (body_at l (slot y') <$> seq 0 (length body))).
  assert ((zip addresses (nodes ++ body)).*1 = addresses) as Haddresses.
  { apply fst_zip. unfold addresses. rewrite !app_length, !fmap_length, seq_length. lia. }
  assert (∀ a, a ∈ addresses → touched places (slot y') a) as Htouched.
  { intros a [(p & -> & Hp)%elem_of_list_fmap|(i & -> & [_ Hi]%elem_of_seq)%elem_of_list_fmap]%elem_of_app;
      [left; by exists p|right; exists i]. split; [lia|done]. }
  assert (NoDup addresses) as Honce.
  { apply NoDup_app. split_and!.
    - apply NoDup_fmap_2; [|done]. intros p q. apply (page_once _ l_apart).
    - intros a (p & -> & _)%elem_of_list_fmap (i & Ha & [_ Hi]%elem_of_seq)%elem_of_list_fmap.
      apply (page_no_body _ l_apart) in Ha; [done|lia].
    - apply NoDup_fmap_2_strong; [|apply NoDup_seq]. intros i j [_ Hi]%elem_of_seq [_ Hj]%elem_of_seq Ha.
      apply (body_once _ l_apart) in Ha; [by destruct Ha|lia..]. }
  apply crash_safe_write_flush with (S := touched places (slot y')).
  - intros f' Hf'. apply Hold; [|intros a ? _; by apply Hf'].
    eapply stored_same; [|done]. intros a Ha. apply Hf'. intros Ht. by apply (Hapart a).
  - by rewrite Haddresses.
  - by rewrite Haddresses.
  - rewrite Haddresses. intros f1 Hw Hother.
    assert (stored f1 s0 (pages y) x0 (serial y) (slot y)) as Hstored1.
    { eapply stored_same; [|done]. intros a Ha. apply Hother. intros Hin'%Htouched.
      by apply (Hapart a). }
    assert (∀ f2, (∀ a, a ≠ header_at l (slot y') → f2 a = f1 a) → spared f places (slot y') f2) as Hspared.
    { intros f2 Hsame a Ha Hah. rewrite Hsame by done. apply Hother. intros Hin'. by apply Ha, Htouched. }
    assert (∀ a b k, addresses !! k = Some a → (nodes ++ body) !! k = Some b → f1 a = b) as Hat.
    { intros a b i Ha Hb. apply Hw, elem_of_list_lookup. exists i.
      by rewrite lookup_zip_with, Ha; simpl; rewrite Hb. }
    assert (in_pages f1 (trees y') (pages y') ∧ all_in_blocks (trees y') (pages y')) as [Hin1 Hall1].
    { eapply (written_in_blocks (f := λ p, f (page_at l p))); [done|done|done| | |].
      - intros n p Hn _. by eapply Hfree'.
      - intros i n nd p Hi Hp. destruct (Forall2_lookup_l _ _ _ _ _ Hnodes Hi) as (b & Hb & Hpack).
        simpl in Hpack. rewrite (Hat (page_at l p) b i).
        + by apply pack_unpack in Hpack; [|apply kids_round_trips].
        + unfold addresses. rewrite lookup_app_l; [by rewrite list_lookup_fmap, Hp|].
          rewrite fmap_length. by eapply lookup_lt_Some.
        + rewrite lookup_app_l; [done|]. by eapply lookup_lt_Some.
      - intros p Hp. apply Hother. intros [(q & Hq & Hin')%elem_of_list_fmap|
          (i & Hi & [_ Hi']%elem_of_seq)%elem_of_list_fmap]%elem_of_app.
        + apply (page_once _ l_apart) in Hq as ->. done.
        + apply (page_no_body _ l_apart) in Hi; [done|lia]. }
    assert (f1 <$> (body_at l (slot y') <$> seq 0 (length body)) = body) as Hbody1.
    { apply list_eq. intros i. rewrite !list_lookup_fmap. destruct (body !! i) as [b|] eqn:Hb.
      - pose proof (lookup_lt_Some _ _ _ Hb) as Hi. rewrite lookup_seq_lt by done. simpl. f_equal.
        apply (Hat _ _ (length places + i)).
        + unfold addresses. rewrite lookup_app_r by (rewrite fmap_length; lia). rewrite fmap_length.
          replace (length places + i - length places) with i by lia.
          by rewrite list_lookup_fmap, lookup_seq_lt by done.
        + rewrite lookup_app_r by lia. by replace (length places + i - length nodes) with i by lia.
      - apply lookup_ge_None in Hb. by rewrite lookup_seq_ge by done. }
    destruct Hstored as [(len0 & _ & Hheader0%newer_slot & _) _].
    assert (header_at l (slot y) ≠ header_at l (slot y')) as Hne.
    { intros E%(header_once _ l_apart). simpl in E. by destruct (slot y). }
    assert (∀ f2, f2 (header_at l (slot y')) = header → (∀ a, a ≠ header_at l (slot y') → f2 a = f1 a) →
      stored f2 (trees y') (pages y') (beside y') (serial y') (slot y') ∧ in_pages f2 (trees y') (pages y'))
      as Hdone.
    { intros f2 Hhead Hsame. assert (in_pages f2 (trees y') (pages y')) as Hin2.
      { eapply in_blocks_same; [|exact Hin1]. intros n p _. apply Hsame, (page_no_header _ l_apart). }
      split; [|done]. split; [|split_and!; [done|done|by apply checkpoint_kept]].
      exists (length body). split; [done|]. split.
      - eapply (newer_written f); [exact Hheader0| |].
        + rewrite Hsame by done. apply Hother. intros Ha%Htouched.
          apply (Hapart _ Ha). left. by eexists.
        + change (negb (slot y)) with (slot y'). by rewrite Hhead.
      - etransitivity; [|exact Hbody]. f_equal. etransitivity; [|exact Hbody1]. rewrite <- !list_fmap_compose.
        apply list_fmap_ext. intros _ i [_ Hi]%elem_of_list_lookup_2%elem_of_seq. simpl. apply Hsame.
        apply (body_no_header _ l_apart). lia. }
    destruct (torn_unread (slot y')) as [Hwhole Htorn].
    apply crash_safe_commit; [done| |].
    + intros f2 Hsame [Hh|[Hh|Hh]].
      * apply Hold; [|by apply Hspared]. eapply stored_same; [|exact Hstored1]. intros a _.
        destruct (decide (a = header_at l (slot y'))) as [->|]; [done|by apply Hsame].
      * apply Hnew; [by apply Hdone|by apply Hspared].
      * apply Hold; [|by apply Hspared]. eapply stored_without_header; [exact Hsame| |exact Hstored1].
        by apply unread, Htorn.
    + intros f2 Hh Hsame. destruct (Hdone f2 Hh Hsame) as [Hs2 Hin2]. apply Hyes; [done|done|].
      by apply Hspared.
Qed.

(** ** Recovery *)

Section Reading.
Context {B : Type} (P : contents block → Prop) (Q : B → medium block → Prop) (f : contents block).
Context (safe_now : safe P (Medium f [])).
Notation crash_safe_at p := (crash_safe P Q p (Medium f [])).

Lemma read_each_safe {C} (read : C → (found → program block B) → program block B) (g : C → found) (xs : list
  C) h k :
  (∀ (z : C) k, z ∈ xs → crash_safe_at (k (g z)) → crash_safe_at (read z k)) →
  crash_safe_at (k (foldr (λ z h', g z ∪ h') h xs)) → crash_safe_at (read_each read xs h k).
Proof.
  revert k. induction xs as [|x xs IH]; intros k Hread Hk; simpl in *; [done|].
  apply Hread; [by left|]. apply IH; [|done]. intros; apply Hread; [by right|done].
Qed.

Lemma read_below_safe skip below pl e k :
  crash_safe_at (k (found_below (λ p, f (page_at l p)) skip below pl e)) →
  crash_safe_at (read_below l skip below pl e k).
Proof.
  revert pl e k. induction below as [|below IH]; intros pl e k Hk; simpl in *; destruct (skip pl); try done.
  split; [done|]. eapply read_each_safe; [|exact Hk]. intros x k' _. apply IH.
Qed.

Lemma read_claim_safe height c k : crash_safe_at (k (found_by_claim (λ p, f (page_at l p)) height c)) →
  crash_safe_at (read_claim l height c k).
Proof. unfold read_claim, found_by_claim. destruct c.2 as [[pl e]|]; [apply read_below_safe|done]. Qed.

Lemma read_all_safe addresses k : crash_safe_at (k (f <$> addresses)) → crash_safe_at (read_all addresses k).
Proof.
  revert k. induction addresses as [|a addresses IH]; intros k Hk; simpl in *; [done|].
  split; [done|]. by apply IH.
Qed.

(** Recovery finds the trees that the newest checkpoint saved, and where they stand. *)
Theorem recover_safe s on x n sl k : stored f s on x n sl →
  (∀ on', on' ⊆ on → stored f s on' x n sl → crash_safe_at (k (Some (Memory _ s on' x n sl)))) →
  crash_safe_at (recover beside_codec l k).
Proof.
  intros Hs Hk. pose proof Hs as [(len & Hlen & Hheader & Hbody) (Hin & Hall & Hkept)].
  unfold recover. split; [done|]. split; [done|]. unfold read_block. simpl. rewrite Hheader.
  apply read_all_safe. rewrite Hbody. apply (read_each_safe _
    (λ e : (nat + nat) * saved_claim, found_by_claim (λ p, f (page_at l p)) (height s) e.2));
    [intros e k' _; apply read_claim_safe|].
  destruct (trees_of_roots bits levels s on (λ p, f (page_at l p)) Hkept Hin Hall)
    as (on' & Hsub & E & Hin' & Hall' & Hroots). 
  change (crash_safe_at (let '(t, on0) := trees_of (λ p, f (page_at l p)) (roots_of s on) in
    k (Some (Memory _ t on0 x n sl)))). rewrite E. apply Hk; [done|].
  split; [|done]. exists len. by rewrite Hroots.
Qed.
End Reading.
End Store.
