(** Trees on a device, whatever happens to them: after any history of changes, a checkpoint that is cut
short at
any moment leaves a device from which recovery brings back what the newest checkpoint saved, or what this one
was to save. *)
From LogDisk Require Import TreeIndexBounds.
From LogDisk Require TreeIndexLeaves SharedTreeDeletion.
From LogDisk Require Import Medium Codec TreeBlocks TreeRoots TreeStore.
Import TreeIndexLeaves(spares_old).

(** What was born in an epoch that has ended is never changed. *)
Lemma apply_spares s s' a : inv s → apply a s = Some s' → spares_old s s'.
Proof.
  intros I Ha. destruct (SharedTreeDeletion.next_step _ _ _ I Ha) as [Hnext Hnew].
  assert (∀ k x, length k = height s → update k x s = Some s' → spares_old s s') as Hupdate.
  { intros k x Hk Hu. destruct (TreeIndexLeaves.update_same I Hk Hu) as [_ He].
    destruct (update_spec _ _ _ _ I Hk Hu) as (c&r&dr&U). split_and!; [done|lia|]. intros n nd' Hn Hn'.
    destruct (put_frame _ _ _ _ _ _ _ _ _ _ _ _ (upd_put _ _ _ _ _ _ _ U) n) as [E|(q&_&Hold&_)].
    - exists nd'. by rewrite <- E.
    - destruct Hold as [->|(nd&Hnd&Hb&_)]; [lia|]. exists nd. split; [done|]. lia. }
  assert (nodes s' = nodes s → epoch s ≤ epoch s' → spares_old s s') as Hsame.
  { intros Hn He. split_and!; [done|done|]. rewrite Hn. intros n nd _ Hnd. by exists nd. }
  destruct a as [k x|k| |v|v| |t n|t ps]; simpl in Ha.
  - destruct (Nat.eqb_spec (length k) (height s)); [|done]. by eapply Hupdate.
  - destruct (Nat.eqb_spec (length k) (height s)); [|done].
    destruct (read s (epoch s) k); [by eapply Hupdate|]. injection Ha as <-. by apply Hsame.
  - destruct (claims s !! _); simpl in Ha; [|done]. injection Ha as <-. apply Hsame; simpl; [done|lia].
  - destruct (v =? epoch s); [done|]. destruct (claims s !! _); simpl in Ha; [|done].
    injection Ha as <-. by apply Hsame.
  - destruct (v =? epoch s); [done|]. destruct (claims s !! View v); simpl in Ha; [|done].
    destruct (claims s !! _); simpl in Ha; [|done]. injection Ha as <-. apply Hsame; simpl; [done|lia].
  - destruct (claims s !! _); simpl in Ha; [|done]. injection Ha as <-. apply Hsame; simpl; [done|lia].
  - destruct (reclaim_same _ _ _ _ I Ha) as ([= _ _ He] & _ & Hn). split_and!; [done|lia|].
    intros m nd _ Hm. exists nd. split; [|done].
    destruct Hn as [E|E]; rewrite E in Hm; [done|]. by apply lookup_delete_Some in Hm as [_ ?].
  - destruct (claims s !! _); simpl in Ha; [|done]. destruct (forallb _ _); [|done].
    injection Ha as <-. by apply Hsame.
Qed.

Lemma apply_height s s' a : inv s → apply a s = Some s' → height s' = height s.
Proof.
  intros I Ha. destruct a as [k x|k| |v|v| |t n|t ps]; simpl in Ha.
  - destruct (Nat.eqb_spec (length k) (height s)); [|done]. by eapply TreeIndexLeaves.update_same.
  - destruct (Nat.eqb_spec (length k) (height s)); [|done].
    destruct (read s (epoch s) k); [by eapply TreeIndexLeaves.update_same|by injection Ha as <-].
  - destruct (claims s !! _); simpl in Ha; [|done]. by injection Ha as <-.
  - destruct (v =? epoch s); [done|]. destruct (claims s !! _); simpl in Ha; [|done]. by injection Ha as <-.
  - destruct (v =? epoch s); [done|]. destruct (claims s !! View v); simpl in Ha; [|done].
    destruct (claims s !! _); simpl in Ha; [|done]. by injection Ha as <-.
  - destruct (claims s !! _); simpl in Ha; [|done]. by injection Ha as <-.
  - by destruct (reclaim_same _ _ _ _ I Ha) as ([= ? _ _] & _).
  - destruct (claims s !! _); simpl in Ha; [|done]. destruct (forallb _ _); [|done]. by injection Ha as <-.
Qed.

Section Recovers.
Context `{!blocks} `{!blocks_laws} {torn : tearing block} {A : Type} (beside_codec : codec A) (l : layout).
Context (bits levels : nat).
Context (l_apart : apart l) (beside_round_trips : round_trips beside_codec).
Context (torn_unread : torn_headers_unread l).
Implicit Types (f : contents block) (s : state) (on : gmap nat nat) (x : A) (y : memory A).
Notation stored := (stored beside_codec l bits levels).

(** Changes of the trees leave their blocks as they are. *)
Lemma run_in_blocks f s s' on history : kept_trees bits levels s → in_blocks f s on →
  Forall (of_record bits) history → run s history = Some s' → kept_trees bits levels s' ∧ in_blocks f s' on.
Proof.
  intros Hkept Hin Hh. revert s Hkept Hin. induction Hh as [|a history Ha _ IH]; intros s Hkept Hin Hrun;
  simpl in Hrun.
  - by injection Hrun as <-.
  - destruct (apply a s) as [s1|] eqn:E; simpl in Hrun; [|done]. pose proof (kept_inv _ _ _ Hkept) as I.
    apply (IH s1); [| |done].
    + pose proof (act_kept bits levels a s Hkept Ha) as Hact. unfold act in Hact. by rewrite E in Hact.
    + eapply in_blocks_spares; [done|by eapply apply_spares|by eapply apply_height|done].
Qed.

(** ** The programs assume nothing. *)

Lemma granted_checkpoint {B} y places (k : memory A → program block B) m :
  (∀ y m, granted (k y) m) → granted (checkpoint beside_codec l y places k) m.
Proof.
  intros Hk. unfold checkpoint. destruct (decide _); [|done]. destruct (mapM _ _); [|done].
  destruct (pack_many _ _); [|done]. destruct (seal _); [|done]. apply granted_write_all. intros m'. apply Hk.
Qed.

Lemma granted_read_all {B} addresses (k : list block → program block B) m :
  (∀ bs m, granted (k bs) m) → granted (read_all addresses k) m.
Proof. revert k m. induction addresses as [|a addresses IH]; intros k m Hk; simpl; [done|]. by apply IH. Qed.

Lemma granted_read_each {B C} (read : C → (found → program block B) → program block B) xs h k m :
  (∀ c k m, (∀ h m, granted (k h) m) → granted (read c k) m) → (∀ h m, granted (k h) m) →
  granted (read_each read xs h k) m.
Proof.
  intros Hread. revert h k m. induction xs as [|c xs IH]; intros h k m Hk; simpl; [done|].
  apply Hread. intros h1 m1. by apply IH.
Qed.

Lemma granted_read_below {B} skip height pl e (k : found → program block B) m :
  (∀ h m, granted (k h) m) → granted (read_below l skip height pl e k) m.
Proof.
  revert pl e k m. induction height as [|height IH]; intros pl e k m Hk; simpl; destruct (skip pl); try done.
  apply granted_read_each; [|done]. intros c k' m' Hk'. by apply IH.
Qed.

Lemma granted_recover {B} (k : option (memory A) → program block B) m :
  (∀ found m, granted (k found) m) → granted (recover beside_codec l k) m.
Proof.
  intros Hk. simpl. destruct (newer _ _) as [[s [n len]]|]; [|done]. apply granted_read_all. intros bs m'.
  destruct (unpack_many _ _) as [[r x]|]; [|done]. apply granted_read_each; [|done].
  intros e k' m1 Hk'. unfold read_claim. destruct (e.2.2) as [[pl e']|]; [|done]. by apply granted_read_below.
Qed.

(** ** After any changes *)

(** Some I/Os of a program. *)
Definition goes_to {B} (p : program block B) m p' m' : Prop :=
  rtc (λ a b, io a.1 a.2 = Some b) (p, m) (p', m').

Lemma crash_safe_goes {B} P (Q : B → medium block → Prop) p m p' m' :
  crash_safe P Q p m → goes_to p m p' m' → crash_safe P Q p' m'.
Proof.
  intros Hp Hrun. unfold goes_to in Hrun. remember (p, m) as a eqn:Ea. remember (p', m') as b eqn:Eb.
  revert p m Hp Ea. induction Hrun as [a|a c b Hio _ IH]; intros p m Hp Ea; simplify_eq.
  - done.
  - destruct c as [p1 m1]. eapply IH; [done| |done]. by eapply crash_safe_io.
Qed.

(** Recovery brings back these trees, with what stood beside them, and is ready for the next checkpoint. *)
Definition recovers_to f s x n sl : Prop := ∃ on, stored f s on x n sl ∧
  execute (recover beside_codec l Done) (Medium f []) = (Some (Memory _ s on x n sl), Medium f []).

Lemma stored_recovers f s on x n sl : stored f s on x n sl → recovers_to f s x n sl.
Proof.
  intros Hs.
  assert (crash_safe (λ _, True) (λ r m, ∃ on', stored f s on' x n sl ∧ (r, m) =
    (Some (Memory _ s on' x n sl), Medium f [])) (recover beside_codec l Done) (Medium f [])) as Hsafe.
  { eapply recover_safe; [done|done|]. intros on' _ Hs'. split; [done|]. by exists on'. }
  apply crash_safe_execute in Hsafe as (on' & Hs' & E); [|by apply granted_recover].
  exists on'. split; [done|].
  rewrite <- E. by destruct (execute _ _).
Qed.

Theorem checkpoint_recovers f s0 on x0 n sl history s x places p m f' :
  stored f s0 on x0 n sl → Forall (of_record bits) history → run s0 history = Some s →
  goes_to (checkpoint beside_codec l (Memory _ s on x n sl) places Done) (Medium f []) p m → may_leave m f' →
  recovers_to f' s0 x0 n sl ∨ recovers_to f' (act Checkpoint s) x (S n) (negb sl).
Proof.
  intros Hs Hhistory Hrun Hgoes Hleft. pose proof Hs as (_ & Hin & _ & Hkept).
  destruct (run_in_blocks _ _ _ _ _ Hkept Hin Hhistory Hrun) as [Hkept' Hin'].
  set (P := λ f', recovers_to f' s0 x0 n sl ∨ recovers_to f' (act Checkpoint s) x (S n) (negb sl)).
  assert (crash_safe P (λ _ _, True) (checkpoint beside_codec l (Memory _ s on x n sl) places Done) (Medium
    f []))
    as Hsafe.
  { assert (∀ f1 : contents block, (∀ a, f1 a = f a) → P f1) as Hsame.
    { intros f1 E. left. eapply stored_recovers, stored_same; [|done]. intros a _. apply E. }
    eapply (checkpoint_safe beside_codec l bits levels); simpl; try done.
    - intros f1 H1 _. left. by eapply stored_recovers.
    - intros f1 H1 _. right. by eapply stored_recovers.
    - split; [|done]. intros f1 H1. apply Hsame. by apply leaves_stable.
    - intros f1 H1 _ _. split; [|done]. intros f2 H2. right.
      eapply stored_recovers, stored_same; [|exact H1]. intros a _. by apply leaves_stable. }
  apply (crash_safe_now P (λ _ _, True) p m); [|exact Hleft]. by eapply crash_safe_goes.
Qed.

(** A checkpoint that is not cut short: the proposal was refused and nothing has changed, or the device holds
the new one, all else as it was. *)
Theorem checkpoint_ends f s0 on x0 n sl history s x places :
  stored f s0 on x0 n sl → Forall (of_record bits) history → run s0 history = Some s →
  let y := Memory _ s on x n sl in let y' := checkpointed y places in
  let r := execute (checkpoint beside_codec l y places Done) (Medium f []) in
  r = (y, Medium f []) ∨
  r.1 = y' ∧ ∃ f', r.2 = Medium f' [] ∧ stored f' (act Checkpoint s) (pages y') x (S n) (negb sl) ∧
    ∀ a, ¬ touched l places (negb sl) a → a ≠ header_at l (negb sl) → f' a = f a.
Proof.
  intros Hs Hhistory Hrun y y' r. pose proof Hs as (_ & Hin & _ & Hkept).
  destruct (run_in_blocks _ _ _ _ _ Hkept Hin Hhistory Hrun) as [Hkept' Hin'].
  assert (crash_safe (λ _, True) (λ y1 m1, (y1, m1) = (y, Medium f []) ∨ y1 = y' ∧ ∃ f', m1 = Medium f' [] ∧
    stored f' (act Checkpoint s) (pages y') x (S n) (negb sl) ∧
    ∀ a, ¬ touched l places (negb sl) a → a ≠ header_at l (negb sl) → f' a = f a)
    (checkpoint beside_codec l y places Done) (Medium f [])) as Hsafe.
  { eapply (checkpoint_safe beside_codec l bits levels); simpl; try done.
    - split; [done|]. by left.
    - intros f1 H1 _ Hother. split; [done|]. right. split; [done|]. by exists f1. }
  apply crash_safe_execute in Hsafe; [|by apply granted_checkpoint]. fold r in Hsafe.
  destruct Hsafe as [E|?]; [left|by right]. rewrite <- E. by destruct r.
Qed.

(** ** A new device *)

(** The trees of a new disk: one node, in page 0, of an epoch that has ended. *)
Definition new_trees (k : nat) : state := act Checkpoint (create k).

(** Whatever the device held. A power cut meanwhile leaves anything. *)
Definition format (k : nat) (x : A) : program block (option (memory A)) :=
  let y := Memory _ (new_trees k) {[0 := 0]} x 1 false in
  match pack (put kids_codec ∅),
        pack_many (slot_blocks l) (put (body_codec beside_codec) (roots_of (trees y) (pages y), x)) with
  | Some node, Some body =>
      match seal (put header_codec (1, length body)) with
      | Some header =>
          write_all (zip (page_at l 0 :: header_at l true :: (body_at l false <$> seq 0 (length body)))
              (node :: blank_block :: body))
            (FlushBlocks (WriteBlock (header_at l false) header (FlushBlocks (Done (Some y)))))
      | None => Done None
      end
  | _, _ => Done None
  end.

Lemma new_trees_blocks f k : unpack kids_codec (f 0) = Some ∅ →
  in_blocks f (new_trees k) {[0 := 0]} ∧ all_in_blocks (new_trees k) {[0 := 0]}.
Proof.
  intros Hf. assert (next (new_trees k) = 1 ∧ epoch (new_trees k) = 2 ∧
    nodes (new_trees k) = {[0 := Node 1 [] ∅ 0]}) as (Enext & Eepoch & Enodes) by done.
  unfold in_blocks, all_in_blocks. rewrite Enext, Eepoch, Enodes. split.
  - intros n p [<- <-]%lookup_singleton_Some. split; [lia|]. intros nd Hn.
    apply lookup_singleton_Some in Hn as [_ <-]. split; [simpl; lia|]. exists ∅. split; [done|].
    split; [apply fmap_empty|]. intros d m md Hd. cbn in Hd. by rewrite lookup_empty in Hd.
  - intros n nd Hn _. apply lookup_singleton_Some in Hn as [<- _]. exists 0. apply lookup_singleton.
Qed.

(** What is formatted holds the trees of a new disk. *)
Theorem format_stores f k x y m : execute (format k x) (Medium f []) = (Some y, m) → ∃ f',
  m = Medium f' [] ∧ y = Memory _ (new_trees k) {[0 := 0]} x 1 false ∧
  TreeStore.stored beside_codec l bits (S k) f' (new_trees k) {[0 := 0]} x 1 false.
Proof.
  intros Hrun. unfold format in Hrun. simpl trees in Hrun. simpl pages in Hrun.
  destruct (pack (put kids_codec ∅)) as [node|] eqn:Hnode; [|done].
  destruct (pack_many _ _) as [body|] eqn:Hbody; [|done].
  destruct (seal (put header_codec _)) as [header|] eqn:Hheader; [|done].
  apply pack_unpack in Hnode; [|apply kids_round_trips].
  apply pack_many_unpack in Hbody as [Hblen Hbody]; [|by apply both_round_trips; [apply roots_round_trips|]].
  apply seal_unseal in Hheader; [|by apply both_round_trips].
  set (addresses := page_at l 0 :: header_at l true :: (body_at l false <$> seq 0 (length body))) in *.
  assert ((zip addresses (node :: blank_block :: body)).*1 = addresses) as Haddresses.
  { apply fst_zip. simpl. rewrite fmap_length, seq_length. lia. }
  assert (NoDup addresses) as Honce.
  { assert (∀ a, a ∈ body_at l false <$> seq 0 (length body) → ∃ i, i < slot_blocks l ∧ a = body_at l false i)
      as Hin by (intros a (i & -> & [_ ?]%elem_of_seq)%elem_of_list_fmap; exists i; split; [lia|done]).
    apply NoDup_cons. split; [|apply NoDup_cons; split].
    - rewrite elem_of_cons. intros [E|(i & Hi & E)%Hin]; [by apply (page_no_header _ l_apart) in E|].
      by apply (page_no_body _ l_apart) in E.
    - intros (i & Hi & E)%Hin. symmetry in E. by apply (body_no_header _ l_apart) in E.
    - apply NoDup_fmap_2_strong; [|apply NoDup_seq]. intros i j [_ Hi]%elem_of_seq [_ Hj]%elem_of_seq Ha.
      apply (body_once _ l_apart) in Ha; [by destruct Ha|lia..]. }
  set (y0 := Memory _ (new_trees k) {[0 := 0]} x 1 false) in *.
  match type of Hrun with execute ?p _ = _ => assert (crash_safe (λ _, True) (λ r m', ∃ f', m' = Medium f'
  [] ∧
    r = Some y0 ∧ TreeStore.stored beside_codec l bits (S k) f' (new_trees k) {[0 := 0]} x 1 false) p
    (Medium f []))
    as Hsafe end.
  { apply crash_safe_write_flush with (S := λ _, True); [done|done|by rewrite Haddresses|].
    rewrite Haddresses. intros f1 Hw _. apply crash_safe_commit; [apply torn_unread|done|]. intros f2 Hh
      Hsame.
    split; [done|]. exists f2. split; [done|]. split; [done|].
    assert (∀ a b i, addresses !! i = Some a → (node :: blank_block :: body) !! i = Some b → a ≠ header_at l
      false →
      f2 a = b) as Hat.
    { intros a b i Ha Hb Hne. rewrite Hsame by done. apply Hw, elem_of_list_lookup. exists i.
      by rewrite lookup_zip_with, Ha; simpl; rewrite Hb. }
    destruct (new_trees_blocks (λ p, f2 (page_at l p)) k) as [Hin Hall].
    { rewrite (Hat _ node 0); [done|done|done|]. by apply (page_no_header _ l_apart). }
    split; [|split_and!; [done|done|apply checkpoint_kept, kept_create]].
    exists (length body). split; [done|]. split.
    - rewrite Hh, Hheader, (Hat _ blank_block 1); [|done|done|by intros E%(header_once _ l_apart)].
      destruct (unseal _ blank_block) as [[n len]|] eqn:Hn; [|done]. by apply blank_number in Hn as ->.
    - etransitivity; [|exact Hbody]. f_equal. apply list_eq. intros i. rewrite !list_lookup_fmap.
      destruct (body !! i) as [b|] eqn:Hb.
      + pose proof (lookup_lt_Some _ _ _ Hb) as Hi. rewrite lookup_seq_lt by done. simpl. f_equal.
        apply (Hat _ _ (S (S i))); [|done|apply (body_no_header _ l_apart); lia]. simpl.
        by rewrite list_lookup_fmap, lookup_seq_lt by done.
      + apply lookup_ge_None in Hb. by rewrite lookup_seq_ge by done. }
  apply crash_safe_execute in Hsafe; [|by apply granted_write_all]. rewrite Hrun in Hsafe. simpl in Hsafe.
  destruct Hsafe as (f' & -> & [= ->] & Hs). by exists f'.
Qed.
End Recovers.
