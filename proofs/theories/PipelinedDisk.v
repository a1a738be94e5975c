(** The proved disks with a pipeline: the data of the next writes go to their places while the flush of the
writes before is under way.

Spare are the places that were free before the first record, and that it does not use ([SparePlaces.v]).
Nothing that recovery may read is there: not the data of a view, and not those of the newest record, be it
the first job's or the one before it. So a crash in the first job leaves the same disk, whatever is written
there. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskAppend ProvedDiskRecovery ProvedDiskRequests ProvedDiskMachine ProvedDiskRefinement.
From LogDisk Require Import ProvedTreeDiskInvariant ProvedTreeDiskRecovery ProvedTreeDiskRequests
  ProvedTreeDiskTheorem SplitFlush PipelinedMachine.
From LogDisk Require Export SparePlaces.
From LogDisk Require TreeStore.

Lemma free_address_place g fr a : free_address g fr a = true → ∃ p, a = data_address g p ∧ is_Some (fr !! p).
Proof.
  unfold free_address. destruct (decide _) as [Ha|]; [|done]. intros Hp%bool_decide_eq_true_1.
  eexists. split; [|exact Hp]. unfold data_address in *. lia.
Qed.

Section Logging.
Context `{!blocks} {A : Type} (spare : A → nat → bool).

(** The addresses of so many places, and of the log. *)
Definition places_and_log (g : geometry) (places : list nat) (a : nat) : Prop :=
  (∃ p, p ∈ places ∧ a = data_address g p) ∨ ∃ n, a = log_address g n.

Lemma places_left g fr fr' places a : 0 < log_blocks g → take_free places fr = Some fr' →
  free_address g fr' a = true → free_address g fr a = true ∧ ¬ places_and_log g places a.
Proof.
  intros Hpos (_&Hin&Hless)%take_free_some Ha. pose proof Ha as (p&->&Hp)%free_address_place. split.
  - unfold free_address in *. destruct (decide _); [|done]. apply bool_decide_eq_true_1 in Ha.
    apply bool_decide_eq_true_2. destruct (fr !! _) eqn:Hnone; [by eexists|].
    rewrite (Hless _ Hnone) in Ha. by destruct Ha.
  - intros [(p'&Hp'&Heq)|[n Heq]]; [|by eapply data_not_log].
    apply data_address_inj in Heq as ->. destruct (Hin p' Hp') as [_ Hnone]. rewrite Hnone in Hp.
    by destruct Hp.
Qed.

Lemma blind_append_log g n room r data (z x : A) S places :
  places_of r = places → (∀ a, spare x a = true → S a ∧ ¬ places_and_log g places a) →
  blind spare S (places_and_log g places) (append_log g n room r data (Done z) (Done x)).
Proof.
  intros Hplaces Hx. unfold append_log. simpl. intros _. destruct (log_pieces _ _ _) as [[bs b]|]; [|done].
  assert (blind spare S (places_and_log g places)
    (if room (size_of r) then
       write_all (zip (data_address g <$> places_of r) data ++
         zip (log_address g <$> seq (PeanoNat.Nat.succ n) (length bs)) bs)
         (WriteBlock (log_address g n) b (FlushBlocks (Done x)))
     else Done z)) as Hall.
  { destruct (room _); [|done]. apply blind_write_all.
    - intros a. rewrite fmap_app. intros [Ha|Ha]%elem_of_app;
        apply elem_of_list_fmap in Ha as ([a1 b1]&->&Ha%elem_of_zip_l); simpl.
      + apply elem_of_list_fmap in Ha as (p&->&Hp). left. exists p. by rewrite <-Hplaces.
      + apply elem_of_list_fmap in Ha as (i&->&_). right. by eexists.
    - split; [right; by eexists|done]. }
  unfold vouched. destruct bs; [done|]. by intros _.
Qed.

Lemma blind_update_log g n room fr places q (z : A) done_ : 0 < log_blocks g →
  (∀ r fr', record_of q places = Some r → take_free places fr = Some fr' →
    ∃ x, done_ r fr' = Done x ∧ ∀ a, spare x a = true → free_address g fr' a = true) →
  blind spare (λ a, free_address g fr a = true) (places_and_log g places)
    (update_log g n room fr places q (Done z) done_).
Proof.
  intros Hpos Hdone. unfold update_log. destruct (record_of q places) as [r|] eqn:Hr; [|done].
  destruct (take_free places fr) as [fr'|] eqn:Hfree; [|done]. destruct (decide _) as [Hlen|]; [|done].
  destruct (Hdone r fr' eq_refl eq_refl) as (x&->&Hx). apply blind_append_log; [by eapply record_data|].
  intros a Ha%Hx. by eapply places_left.
Qed.

Lemma blind_group_log g n room fr places ws (z : A) all : 0 < log_blocks g →
  (∀ r fr', ∃ x, all r fr' = Done x ∧ ∀ a, spare x a = true → free_address g fr' a = true) →
  blind spare (λ a, free_address g fr a = true) (places_and_log g (take (length (blocks_of ws)) places))
    (group_log g n room fr places ws (Done z) all).
Proof.
  intros Hpos Hall. unfold group_log. cbv zeta. set (at_ := take _ places).
  destruct (take_free at_ fr) as [fr'|] eqn:Hfree; [|done]. destruct (decide _) as [Hlen|]; [|done].
  destruct (forallb _ ws); [|done]. destruct (Hall (LogGroup (zip (blocks_of ws).*1 at_)) fr') as (x&->&Hx).
  apply blind_append_log.
  - simpl. apply snd_zip. rewrite fmap_length. lia.
  - intros a Ha%Hx. by eapply places_left.
Qed.

Lemma framed_read_places {torn : tearing block} g places (x : list block → A) (P : contents block → Prop) m :
  framed spare P (read_places g places (λ bs, Done (x bs))) m.
Proof. revert x. induction places as [|[p|] places IH]; intros x; simpl; [done|apply IH|apply IH]. Qed.
End Logging.

(** ** Whole maps *)

Section Whole.
Context `{!blocks, !blocks_laws} {torn : tearing block}.
Implicit Types (f : contents block) (d : disk block) (q : request).

Definition pipelined_disk : implementation block := pipelined proved_programs spare_address.

(** What stands in free places does not matter. *)
Lemma represents_free_places y f f' d : represents y f d →
  (∀ a, ¬ free_address (shape y) (free y) a = true → f' a = f a) → represents y f' d.
Proof.
  intros Hy Hf. eapply represents_frame; [|done]. intros a Ha. apply Hf.
  intros (p&->&Hp)%free_address_place. by eapply free_not_needed.
Qed.

Lemma represents_positive y f d : represents y f d → 0 < log_blocks (shape y).
Proof. intros [(m0&rs&Hdur&_) _]. by eapply log_positive. Qed.

Lemma checkpoint_then {A} y (k : memory → program block A) : checkpoint y k = then_ (checkpoint y Done) k.
Proof.
  unfold checkpoint. destruct (pack_many _ _) as [bs|]; [|done]. destruct (seal _); [|done].
  by rewrite then_write_all.
Qed.

Lemma framed_with_room {A} (spare : A → nat → bool) (P : contents block → Prop) (Q : A → medium block → Prop)
    n y k f d :
  represents y f d → (∀ f, recoverable (shape y) d f → P f) →
  (∀ y' f', represents y' f' d → shape y' = shape y →
    framed spare P (k y') (Medium f' []) ∧ crash_safe P Q (k y') (Medium f' [])) →
  (∀ y', quiet spare (k y')) → framed spare P (with_room n y k) (Medium f []).
Proof.
  intros Hy HP Hk Hquiet. unfold with_room. destruct (room_for y n); [by apply Hk|].
  assert (crash_safe (recoverable (shape y) d) (λ y' m, ∃ f', m = Medium f' [] ∧ represents y' f' d ∧
    shape y' = shape y) (checkpoint y Done) (Medium f [])) as Hcheckpoint.
  { apply (crash_safe_checkpoint _ _ y Done f d); [done..|]. intros y' f' Hy' Hshape.
    split; [|by exists f']. apply (safe_represents _ y' f' d); [done|]. by rewrite Hshape. }
  rewrite checkpoint_then. eapply framed_then; [exact Hcheckpoint| | |exact Hquiet].
  - rewrite <-checkpoint_then. apply (crash_safe_checkpoint P Q y k f d); [done..|]. intros y' f' Hy' Hshape.
    by apply Hk.
  - intros y' m (f'&->&Hy'&Hshape). by apply Hk.
Qed.

Lemma framed_update y f d places q : represents y f d → let s := settled (disk_blocks (shape y)) d in
  faults s q = [] → is_Some (record_of q places) →
  framed (spare_when_ok spare_address) (crash_outcome (shape y) s q) (update y places q) (Medium f []).
Proof.
  intros Hy s Hnone Hr.
  apply framed_blind with (S := λ a, free_address (shape y) (free y) a = true)
    (W := places_and_log (shape y) places) (Q := answers (shape y) s q).
  - unfold update. destruct (one_too_many y q); [done|].
    apply blind_update_log; [by eapply represents_positive|].
    intros r fr' _ _. eexists. by split; [|intros a Ha].
  - by intros a ?%elem_of_nil.
  - intros f' Hf'. apply crash_safe_update; [by eapply represents_free_places|done..].
Qed.

Lemma quiet_update y places q : quiet (spare_when_ok spare_address) (update y places q).
Proof.
  unfold update, update_log. destruct (one_too_many y q); [by destruct q|].
  destruct (record_of q places); [|by destruct q]. destruct (take_free _ _); [|by destruct q].
  destruct (decide _); [done|by destruct q].
Qed.

Lemma framed_perform y f d places q : represents y f d → q ≠ DoRestart →
  let s := settled (disk_blocks (shape y)) d in
  framed (spare_when_ok spare_address) (crash_outcome (shape y) s q) (perform y places q) (Medium f []).
Proof.
  intros Hy Hq s. pose proof Hy as (_&_&Hag).
  pose proof (faults_exact y f d q Hag) as Hfaults. fold s in Hfaults. simpl in Hfaults.
  unfold perform. destruct (faults_of y q) as [|e es]; [|done].
  set (proposed := take (length (data_of q)) places).
  assert (is_Some (record_of q proposed) → framed (spare_when_ok spare_address) (crash_outcome (shape y) s q)
    (with_room (size_for q proposed) y (λ y, update y proposed q)) (Medium f [])) as Hupdate.
  { intros Hr. eapply (framed_with_room _ _ (answers (shape y) s q)); [done| | |intros; apply quiet_update].
    - intros f' Hf'. exists d. split; [apply (outcomes_before s q)|done].
    - intros y1 f1 Hy1 Hshape. pose proof (framed_update y1 f1 d proposed q Hy1) as Hu.
      pose proof (crash_safe_update y1 f1 d proposed q Hy1) as Hc. rewrite Hshape in Hu, Hc.
      split; [by apply Hu|by apply Hc]. }
  destruct q as [lba data|lba count|n|n|n| | |from lba count]; try (apply Hupdate; by eexists); try done.
  apply framed_read_places.
Qed.

Lemma framed_write_group y f d places ws : represents y f d →
  framed (spare_when_all spare_address) (group_outcome (shape y) d ws) (write_group y places ws)
    (Medium f []).
Proof.
  intros Hy. unfold write_group.
  set (k := λ y1, group_log (shape y1) (next_record y1) (room_for y1) (free y1) places ws (Done (y1, false))
    (λ r fr, Done (logged y1 r fr, true))).
  assert (∀ y1 f1, represents y1 f1 d → crash_safe (group_outcome (shape y1) d ws)
    (group_ends (shape y1) d ws) (k y1) (Medium f1 [])) as Hsafe.
  { intros y1 f1 Hy1. pose proof Hy1 as (_&Hwf&Hag).
    assert (crash_safe (group_outcome (shape y1) d ws) (group_ends (shape y1) d ws) (Done (y1, false))
      (Medium f1 [])) as Hnone.
    { split; [apply (safe_represents _ y1 f1 d); [done|by left]|]. by exists f1. }
    apply crash_safe_group_log with d; [done|by left|by right|done|]. intros r fr f2 _ Hrange Hy2. split.
    - apply (safe_represents _ (logged y1 r fr) f2 (written_all d ws)); [done|]. by right.
    - by exists f2. }
  eapply (framed_with_room _ _ (group_ends (shape y) d ws) _ y k); [done|by left| |].
  - intros y1 f1 Hy1 Hshape. rewrite <-Hshape. split; [|by apply Hsafe].
    apply framed_blind with (S := λ a, free_address (shape y1) (free y1) a = true)
      (W := places_and_log (shape y1) (take (length (blocks_of ws)) places))
      (Q := group_ends (shape y1) d ws).
    + apply blind_group_log; [by eapply represents_positive|]. intros r fr'. eexists.
      by split; [|intros a Ha].
    + by intros a ?%elem_of_nil.
    + intros f' Hf'. apply Hsafe. by eapply represents_free_places.
  - intros y1. unfold k, group_log. cbv zeta. destruct (take_free _ _); [|done]. destruct (decide _); [|done].
    by destruct (forallb _ ws).
Qed.

Lemma maps_framed : framed_programs proved_programs spare_address shape represents recoverable.
Proof.
  split.
  - intros y f d places q. apply framed_perform.
  - intros y f d places ws. apply framed_write_group.
Qed.

Theorem pipelined_disk_refines : implements pipelined_disk Ack.
Proof. apply (pipelined_refines _ _ shape represents recoverable proved_programs_safe maps_framed). Qed.
End Whole.

(** ** Trees *)

Section Trees.
Context `{!blocks, !blocks_laws} {torn : tearing block} (bits : nat).
Implicit Types (f : contents block) (d : disk block) (q : request) (y : T.memory).
Notation tree_represents := (tree_represents bits).
Notation held_by y s0 x0 := (trees_format bits (T.tree_size y) s0 (T.pages y) x0).

Definition pipelined_tree_disk : implementation block := pipelined (tree_programs bits) tree_spare_address.

Lemma tree_represents_free_places y f f' d : tree_represents y f d →
  (∀ a, ¬ free_address (T.shape y) (T.free y) a = true → f' a = f a) → tree_represents y f' d.
Proof.
  intros (s0&x0&m&Hy&Hc&Ht) Hf. exists s0, x0, m. split; [|done].
  eapply (@represents_frame _ (held_by y s0 x0)); [|done]. intros a Ha. apply Hf.
  intros (p&->&Hp)%free_address_place. by eapply (@free_not_needed _ (held_by y s0 x0)).
Qed.

Lemma tree_positive y f d : tree_represents y f d → 0 < log_blocks (T.shape y).
Proof. intros (s0&x0&m&[(m0&rs&Hdur&_) _]&_). by apply (log_positive _ _ _ _ _ _ _ Hdur). Qed.

Lemma tree_checkpoint_then {A} y (k : T.memory → program block A) :
  T.checkpoint y k = then_ (T.checkpoint y Done) k.
Proof.
  unfold T.checkpoint, TreeStore.checkpoint. cbv zeta. destruct (decide _); [|done].
  destruct (mapM _ _); [|done]. destruct (pack_many _ _); [|done]. destruct (seal _); [|done].
  by rewrite then_write_all.
Qed.

Section Size.
Context (size : nat * nat).
Notation tree_represents_of := (tree_represents_of bits size).
Notation tree_recoverable := (tree_recoverable_of bits size).

Lemma framed_tree_room {A} (spare : A → nat → bool) (P : contents block → Prop) (Q : A → medium block → Prop)
    n y k f d :
  tree_represents_of y f d → (∀ f, tree_recoverable (T.shape y) d f → P f) →
  (∀ y' f', tree_represents_of y' f' d → T.shape y' = T.shape y →
    framed spare P (k y') (Medium f' []) ∧ crash_safe P Q (k y') (Medium f' [])) →
  (∀ y', quiet spare (k y')) → framed spare P (T.with_room n y k) (Medium f []).
Proof.
  intros [Hsize Hy] HP Hk Hquiet. unfold T.with_room.
  destruct (T.room_for y n); [by apply Hk|].
  assert (crash_safe (tree_recoverable (T.shape y) d) (λ y' m, ∃ f', m = Medium f' [] ∧
    tree_represents_of y' f' d ∧ T.shape y' = T.shape y) (T.checkpoint y Done) (Medium f [])) as Hcheckpoint.
  { apply (crash_safe_tree_checkpoint bits _ _ y Done f d); [done|by rewrite Hsize|].
    intros y' f' Hy' Hshape Hsize'. rewrite Hsize in Hsize'. apply (conj Hsize') in Hy'.
    split; [|by exists f']. eapply tree_safe_of; [done|]. by rewrite Hshape. }
  rewrite tree_checkpoint_then. eapply framed_then; [exact Hcheckpoint| | |exact Hquiet].
  - rewrite <-tree_checkpoint_then. apply (crash_safe_tree_checkpoint bits P Q y k f d);
      [done|by rewrite Hsize|].
    intros y' f' Hy' Hshape Hsize'. rewrite Hsize in Hsize'. by apply Hk.
  - intros y' m (f'&->&Hy'&Hshape). by apply Hk.
Qed.

Lemma tree_of_free_places y f f' d : tree_represents_of y f d →
  (∀ a, ¬ free_address (T.shape y) (T.free y) a = true → f' a = f a) → tree_represents_of y f' d.
Proof. intros [? Hy] Hf. split; [done|]. by eapply tree_represents_free_places. Qed.

Lemma framed_tree_update y f d places q :
  tree_represents_of y f d → let s := settled (disk_blocks (T.shape y)) d in
  faults s q = [] → is_Some (record_of q places) →
  framed (spare_when_ok tree_spare_address) (outcome_left tree_recoverable (T.shape y) s q)
    (T.update bits y places q) (Medium f []).
Proof.
  intros Hy s Hnone Hr.
  apply framed_blind with (S := λ a, free_address (T.shape y) (T.free y) a = true)
    (W := places_and_log (T.shape y) places) (Q := answered_with T.shape tree_represents_of (T.shape y) s q).
  - unfold T.update. destruct (T.one_too_many y q); [done|].
    apply blind_update_log; [by eapply tree_positive, Hy|]. intros r fr' _ _. eexists.
    by split; [|intros a Ha].
  - by intros a ?%elem_of_nil.
  - intros f' Hf'. apply crash_safe_tree_update; [by eapply tree_of_free_places|done..].
Qed.

Lemma quiet_tree_update y places q : quiet (spare_when_ok tree_spare_address) (T.update bits y places q).
Proof.
  unfold T.update, update_log. destruct (T.one_too_many y q); [by destruct q|].
  destruct (record_of q places); [|by destruct q]. destruct (take_free _ _); [|by destruct q].
  destruct (decide _); [done|by destruct q].
Qed.

Lemma framed_tree_perform y f d places q : tree_represents_of y f d → q ≠ DoRestart →
  let s := settled (disk_blocks (T.shape y)) d in
  framed (spare_when_ok tree_spare_address) (outcome_left tree_recoverable (T.shape y) s q)
    (T.perform bits y places q) (Medium f []).
Proof.
  intros Hy Hq s. pose proof (tree_faults bits y f d q (proj2 Hy)) as Hfaults. fold s in Hfaults.
  simpl in Hfaults. unfold T.perform. destruct (T.faults_of y q) as [|e es]; [|done].
  set (proposed := take (length (data_of q)) places).
  assert (is_Some (record_of q proposed) → framed (spare_when_ok tree_spare_address)
    (outcome_left tree_recoverable (T.shape y) s q)
    (T.with_room (size_for q proposed) y (λ y, T.update bits y proposed q)) (Medium f [])) as Hupdate.
  { intros Hr. eapply (framed_tree_room _ _ (answered_with T.shape tree_represents_of (T.shape y) s q));
      [done| | |intros; apply quiet_tree_update].
    - intros f' Hf'. exists d. split; [apply (outcomes_now s q)|done].
    - intros y1 f1 Hy1 Hshape. pose proof (framed_tree_update y1 f1 d proposed q Hy1) as Hu.
      pose proof (crash_safe_tree_update bits size y1 f1 d proposed q Hy1) as Hc. rewrite Hshape in Hu, Hc.
      split; [by apply Hu|by apply Hc]. }
  destruct q as [lba data|lba count|n|n|n| | |from lba count]; try (apply Hupdate; by eexists); try done.
  apply framed_read_places.
Qed.

Lemma framed_tree_group y f d places ws : tree_represents_of y f d →
  framed (spare_when_all tree_spare_address) (writes_left tree_recoverable (T.shape y) d ws)
    (T.write_group bits y places ws) (Medium f []).
Proof.
  intros Hy. unfold T.write_group.
  set (k := λ y1, group_log (T.shape y1) (T.next_record y1) (T.room_for y1) (T.free y1) places ws
    (Done (y1, false)) (λ r fr, Done (T.logged bits y1 r fr, true))).
  assert (∀ y1 f1, tree_represents_of y1 f1 d → crash_safe (writes_left tree_recoverable (T.shape y1) d ws)
    (writes_end T.shape tree_represents_of (T.shape y1) d ws) (k y1) (Medium f1 [])) as Hsafe.
  { intros y1 f1 Hy1. by apply crash_safe_tree_group_log. }
  eapply (framed_tree_room _ _ (writes_end T.shape tree_represents_of (T.shape y) d ws) _ y k);
    [done|by left| |].
  - intros y1 f1 Hy1 Hshape. rewrite <-Hshape. split; [|by apply Hsafe].
    apply framed_blind with (S := λ a, free_address (T.shape y1) (T.free y1) a = true)
      (W := places_and_log (T.shape y1) (take (length (blocks_of ws)) places))
      (Q := writes_end T.shape tree_represents_of (T.shape y1) d ws).
    + apply blind_group_log; [by eapply tree_positive, Hy1|]. intros r fr'. eexists.
      by split; [|intros a Ha].
    + by intros a ?%elem_of_nil.
    + intros f' Hf'. apply Hsafe. by eapply tree_of_free_places.
  - intros y1. unfold k, group_log. cbv zeta. destruct (take_free _ _); [|done]. destruct (decide _); [|done].
    by destruct (forallb _ ws).
Qed.

Lemma trees_framed :
  framed_programs (tree_programs bits) tree_spare_address T.shape tree_represents_of tree_recoverable.
Proof.
  split.
  - intros y f d places q. apply framed_tree_perform.
  - intros y f d places ws. apply framed_tree_group.
Qed.
End Size.

Theorem pipelined_tree_disk_refines : implements pipelined_tree_disk Ack.
Proof.
  apply (pipelined_refines _ _ T.shape tree_represents (tree_recoverable bits) (tree_programs_safe bits _)).
  split.
  - intros y f d places q Hy Hq.
    eapply framed_mono; [|by apply (framed_tree_perform (T.tree_size y))].
    intros f' (d'&Hd'&Hf'). exists d'. split; [done|]. by eexists.
  - intros y f d places ws Hy. eapply framed_mono; [|by apply (framed_tree_group (T.tree_size y))].
    intros f' [Hf'|[Hws Hf']]; [left; by eexists|right; split; [done|by eexists]].
Qed.
End Trees.
