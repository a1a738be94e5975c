(** Every request, whenever the power fails in it: the device is the disk before it or after it. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskAppend
  ProvedDiskRecovery.

Section Requests.
Context `{!blocks, !blocks_laws} {torn : tearing block}.
Implicit Types (f : contents block) (d : disk block) (q : request).

(** ** What the contract makes of a request *)

(** How a request shows, with its answer and the data of a read. *)
Definition event_of q (r : answer) (data : list block) : event block :=
  match q with
  | DoWrite lba data => Write lba data r
  | DoUnmap lba count => Unmap lba count r
  | DoSnapshot n => Snapshot n r
  | DoDelete n => Delete n r
  | DoRevert n => Revert n r
  | DoFlush => Flush r
  | DoRestart => Restart r
  | DoRead from lba count => Read from lba count r data
  end.

Definition effect q d : disk block :=
  match q with
  | DoWrite lba data => written d lba data
  | DoUnmap lba count => unmapped d lba count
  | DoSnapshot n => snapshotted d n
  | DoDelete n => deleted d n
  | DoRevert n => reverted d n
  | DoFlush | DoRestart | DoRead _ _ _ => d
  end.

Definition faults (s : state block) q : list code :=
  match q with
  | DoWrite lba data => out_of_range s lba (length data)
  | DoUnmap lba count => out_of_range s lba count
  | DoSnapshot n => taken (now s) n
  | DoDelete n | DoRevert n => missing (now s) n
  | DoFlush | DoRestart => []
  | DoRead from lba count => out_of_range s lba count ++ missing_view (now s) from
  end.

Definition excuses q : list code :=
  match q with DoWrite _ _ | DoUnmap _ _ | DoSnapshot _ | DoRevert _ => [NoSpace] | _ => [] end.

(** A disk of [n] blocks on which nothing is under way. *)
Definition settled (n : nat) d : state block := State n d [exactly d] true.

Lemma step_answered n d q r data s' :
  answered (settled n d) r (faults (settled n d) q) (excuses q) (effect q d) [exactly (effect q d)] s' →
  (∀ from lba count, q = DoRead from lba count → r = Ok → ∃ v, view_of d from = Some v ∧
    data = v <$> seq lba count) →
  step Ack (settled n d) (event_of q r data) s'.
Proof. intros Hs Hdata. destruct q; simpl in *; try done. split; [done|]. intros ->. by eapply Hdata. Qed.

(** The disks that may be found after a power cut in a request. *)
Definition outcomes (s : state block) q : list (disk block) :=
  match faults s q with [] => [effect q (now s); now s] | _ => [now s] end.

Lemma step_cut_short n d d' q : d' ∈ outcomes (settled n d) q →
  ∃ s', step Ack (settled n d) (event_of q CutShort []) s' ∧ size s' = n ∧ exactly d' ∈ survivors s'.
Proof.
  intros Hd'. eexists. split; [apply step_answered; [by split|done]|]. split; [done|]. simpl.
  unfold outcomes in Hd'. simpl in Hd'. destruct (faults _ _); simpl in *.
  - apply elem_of_cons in Hd' as [->|Hd']; [by left|]. apply elem_of_list_singleton in Hd' as ->. right.
    by left.
  - apply elem_of_list_singleton in Hd' as ->. by left.
Qed.

(** ** What memory makes of it *)

Lemma snapshot_known g f m d n :
  agrees g f m d → (∃ vm v, snap_maps m !! n = Some vm ∧ snaps d !! n = Some v ∧ reads_as g f m vm v) ∨
  snap_maps m !! n = None ∧ snaps d !! n = None.
Proof. intros [_ Hsnaps]. destruct (Hsnaps n) as [vm v|]; eauto 6. Qed.

Lemma misses_missing g f m d n : agrees g f m d →
  match misses m n with e :: _ => e ∈ missing d n | [] => missing d n = [] end.
Proof.
  intros Hag. unfold misses, missing. destruct (valid_name n); [|by left].
  destruct (snapshot_known g f m d n Hag) as [(vm&v&->&->&_)|[-> ->]].
  - by rewrite decide_True.
  - rewrite decide_False by by intros [? ?]. by left.
Qed.

Lemma clashes_taken g f m d n : agrees g f m d →
  match clashes m n with e :: _ => e ∈ taken d n | [] => taken d n = [] end.
Proof.
  intros Hag. unfold clashes, taken. destruct (valid_name n); [|by left].
  destruct (snapshot_known g f m d n Hag) as [(vm&v&->&->&_)|[-> ->]].
  - rewrite decide_True by done. by left.
  - by rewrite decide_False by by intros [? ?].
Qed.

Lemma faults_exact y f d q : agrees (shape y) f (current y) d →
  let s := settled (disk_blocks (shape y)) d in
  match faults_of y q with e :: _ => e ∈ faults s q | [] => faults s q = [] end.
Proof.
  intros Hag. destruct q as [lba data|lba count|n|n|n| | |from lba count]; simpl;
    unfold exceeds, out_of_range; simpl;
    try (destruct (decide _); [done|by left]); try done;
    [by eapply clashes_taken|by eapply misses_missing..|].
  destruct (decide _); simpl; [|by left]. destruct from as [|n]; simpl; [done|]. by eapply misses_missing.
Qed.

(** ** Requests *)

Definition crash_outcome g (s : state block) q f : Prop := ∃ d', d' ∈ outcomes s q ∧ recoverable g d' f.
Definition answers g (s : state block) q (o : outcome) (m : medium block) : Prop :=
  ∃ f' d', m = Medium f' [] ∧ shape o.1.1 = g ∧ represents o.1.1 f' d' ∧
    step Ack s (event_of q o.1.2 o.2) (settled (size s) d').

Lemma outcomes_before s q : now s ∈ outcomes s q.
Proof. unfold outcomes. destruct (faults s q); [right|]; left. Qed.

Lemma refused_answers y f d q e data :
  represents y f d → e ∈ faults (settled (disk_blocks (shape y)) d) q →
  answers (shape y) (settled (disk_blocks (shape y)) d) q (y, Refused e, data) (Medium f []).
Proof.
  intros Hy He. exists f, d. split_and!; [done..|]. apply step_answered; [|done]. split; [done|]. split;
    [by left|done].
Qed.

Lemma no_room_answers y f d q data :
  represents y f d → faults (settled (disk_blocks (shape y)) d) q = [] → is_Some (record_of q []) →
  answers (shape y) (settled (disk_blocks (shape y)) d) q (y, no_room q, data) (Medium f []).
Proof.
  intros Hy Hnone Hq. exists f, d. split_and!; [done..|]. apply step_answered.
  - split; [done|]. destruct q; simpl in *; try by destruct Hq.
    all: try (split; [right; split; [done|by left]|done]). by left.
  - intros from lba count ->. by destruct Hq.
Qed.

(** What a record makes of the maps, the contract makes of the disk. *)
Lemma record_applied q g f f' m fr fr' d places r :
  record_of q places = Some r → length places = length (data_of q) → take_free places fr = Some fr' →
  well_formed m fr → agrees g f m d → (∀ p b, (p, b) ∈ zip places (data_of q) → f' (data_address g p) = b) →
  (∀ a, used_address g m a → f' a = f a) → well_formed (apply r m) fr' ∧ agrees g f' (apply r m) (effect q d).
Proof.
  intros Hr Hlen Hfree Hwf Hag Hnew Hold.
  assert (agrees g f' m d) as Hag' by by eapply agrees_frame.
  destruct q; simplify_eq/=; [by eapply write_applied|..]; (destruct places; [|done]); simplify_eq/=;
    [by eapply unmap_applied|by eapply snapshot_applied|by eapply delete_applied|by eapply revert_applied].
Qed.

(** It uses no other places. *)
Lemma record_places q places r m x p :
  record_of q places = Some r → middle (apply r m) !! x = Some p → middle m !! x = Some p ∨ p ∈ places.
Proof.
  destruct q; intros Hr; simplify_eq/=; try by left. rewrite lookup_put_from. destruct (decide _); [|by left].
  intros Hp. right. by eapply elem_of_list_lookup_2.
Qed.

(** They are those of its data. *)
Lemma record_data q places r :
  record_of q places = Some r → length places = length (data_of q) → places_of r = places.
Proof. intros Hr Hlen. destruct q; simplify_eq/=; try done; by destruct places. Qed.

Lemma group_places lbas places m x p :
  middle (apply (LogGroup (zip lbas places)) m) !! x = Some p → middle m !! x = Some p ∨ p ∈ places.
Proof.
  revert lbas m. induction places as [|p' places IH]; intros [|l lbas] m; simpl; try by left.
  intros [Hp|Hp]%IH; [|right; by right]. simpl in Hp. destruct (decide (x = next_mba m)) as [->|].
  - rewrite lookup_insert in Hp. simplify_eq. right. left.
  - rewrite lookup_insert_ne in Hp by done. by left.
Qed.

(** It stays on the disk. *)
Lemma record_bounded g d q places r : record_of q places = Some r → length places = length (data_of q) →
  faults (settled (disk_blocks g) d) q = [] → in_bounds g r.
Proof.
  intros Hr Hlen Hnone. destruct q; simplify_eq/=; try done; unfold out_of_range in Hnone; simpl in *;
    case_decide as Hfits; try done; unfold fits in Hfits; lia.
Qed.

Section Logging.
Context `{!checkpoint_format}.

(** A request that changes a view: whatever goes on then, [done], knows the disk after it. *)
Lemma crash_safe_update_log {A} (P : contents block → Prop) (Q : A → medium block → Prop) y f d places q
    refused done :
  represents y f d → faults (settled (disk_blocks (shape y)) d) q = [] →
  (∀ f, recoverable (shape y) d f → P f) → (∀ f, recoverable (shape y) (effect q d) f → P f) →
  crash_safe P Q refused (Medium f []) →
  (∀ r fr f', record_of q places = Some r → in_bounds (shape y) r →
    represents (logged y r fr) f' (effect q d) → crash_safe P Q (done r fr) (Medium f' [])) →
  crash_safe P Q (update_log (shape y) (next_record y) (room_for y) (free y) places q refused done)
    (Medium f []).
Proof.
  intros Hy Hnone HP HP' Hrefused Hdone. pose proof Hy as (_&Hwf&Hag). unfold update_log.
  destruct (record_of q places) as [r|] eqn:Hr; [|done].
  destruct (take_free places (free y)) as [fr|] eqn:Hfree; [|done].
  destruct (decide _) as [Hlen|]; [|done].
  pose proof (record_data q places r Hr Hlen) as Hplaces.
  pose proof (record_bounded _ _ _ _ _ Hr Hlen Hnone) as Hbounds.
  apply (crash_safe_append _ _ y r (data_of q) fr _ _ f d (effect q d)); rewrite ?Hplaces; try done.
  - intros x p. by apply record_places with q.
  - intros f2 Hnew Hold. by eapply record_applied.
  - intros f2 Hy2. by apply Hdone.
Qed.

(** So do several writes. *)
Definition in_range g (ws : list (nat * list block)) : Prop :=
  Forall (λ w, fits (disk_blocks g) w.1 (length w.2)) ws.

Lemma crash_safe_group_log {A} (P : contents block → Prop) (Q : A → medium block → Prop) y f d places ws
    none all :
  represents y f d → (∀ f, recoverable (shape y) d f → P f) →
  (in_range (shape y) ws → ∀ f, recoverable (shape y) (written_all d ws) f → P f) →
  crash_safe P Q none (Medium f []) →
  (∀ r fr f', in_bounds (shape y) r → in_range (shape y) ws →
    represents (logged y r fr) f' (written_all d ws) → crash_safe P Q (all r fr) (Medium f' [])) →
  crash_safe P Q (group_log (shape y) (next_record y) (room_for y) (free y) places ws none all) (Medium f []).
Proof.
  intros Hy HP HP' Hnone Hall. pose proof Hy as (_&Hwf&Hag). unfold group_log.
  set (bs := blocks_of ws). set (at_ := take (length bs) places). cbv zeta.
  destruct (take_free at_ (free y)) as [fr|] eqn:Hfree; [|done]. destruct (decide _) as [Hlen|]; [|done].
  destruct (forallb _ ws) eqn:Hfit; [|done].
  assert (in_range (shape y) ws) as Hrange.
  { apply Forall_forall. intros w Hw. rewrite forallb_forall in Hfit.
    apply (bool_decide_eq_true_1 _ (Hfit w (proj1 (elem_of_list_In _ _) Hw))). }
  assert (places_of (LogGroup (zip bs.*1 at_)) = at_) as Hplaces.
  { simpl. apply snd_zip. rewrite fmap_length. lia. }
  assert (in_bounds (shape y) (LogGroup (zip bs.*1 at_))) as Hbounds.
  { intros [l p] Hb%elem_of_zip_l. by eapply blocks_in_range. }
  apply (crash_safe_append _ _ y _ bs.*2 fr _ _ f d (written_all d ws)); rewrite ?Hplaces; try done.
  - by rewrite fmap_length.
  - intros x p Hp. by apply group_places with bs.*1.
  - by apply HP'.
  - intros f2 Hnew Hold.
    destruct (group_applied (shape y) f2 bs at_ (current y) (free y) fr d) as [Hwf2 Hag2]; try done.
    { by eapply agrees_frame. }
    split; [done|]. eapply agrees_alike; [|done]. by apply writes_are_singly.
  - intros f2 Hy2. by apply Hall.
Qed.

(** Moves change nothing. [mid] need not know the places of all MBAs. *)
Lemma crash_safe_move_log {A} (P : contents block → Prop) (Q : A → medium block → Prop) y f d mid moves
    refused done :
  represents y f d → mid ⊆ middle (current y) → (∀ f, recoverable (shape y) d f → P f) →
  crash_safe P Q refused (Medium f []) →
  (∀ fr f', represents (logged y (LogMove moves) fr) f' d →
    crash_safe P Q (done (LogMove moves) fr) (Medium f' [])) →
  crash_safe P Q (move_log (shape y) (next_record y) (room_for y) (free y) mid moves refused done)
    (Medium f []).
Proof.
  intros Hy Hmid HP Hrefused Hdone. pose proof Hy as (_&Hwf&Hag). unfold move_log.
  destruct (take_free moves.*2 (free y)) as [fr|] eqn:Hfree; [|done].
  destruct (forallb _ _) eqn:Hall; [|done]. rewrite forallb_forall in Hall.
  apply crash_safe_read_places; [by apply (safe_represents _ y f d)|].
  apply (crash_safe_append _ _ y _ _ fr _ _ f d d); try done.
  - simpl. by rewrite !fmap_length.
  - intros x p [Hp|[_ Hp]]%lookup_relocate; [right|by left]. apply elem_of_list_fmap. by exists (x, p).
  - intros f2 Hnew Hold. eapply move_applied; [done..| |done].
    intros x p (i&Hi)%elem_of_list_lookup.
    specialize (Hall (mid !! x)). destruct (mid !! x) as [p0|] eqn:Hx.
    + exists p0. split; [by eapply lookup_weaken|]. apply Hnew, elem_of_list_lookup. exists i.
      simpl. rewrite lookup_zip_with, !list_lookup_fmap, Hi. simpl. by rewrite Hx.
    + exfalso. assert (bool_decide (is_Some (@None nat)) = true) as Hno%bool_decide_eq_true_1;
      [|by destruct Hno].
      apply Hall, elem_of_list_In, elem_of_list_lookup. exists i.
      rewrite !list_lookup_fmap, Hi. simpl. by rewrite Hx.
  - intros f2 Hy2. by apply Hdone.
Qed.

(** A read finds what the view has. *)
Lemma crash_safe_read_view {A} (P : contents block → Prop) (Q : A → medium block → Prop) y f d from lba count
    k :
  represents y f d → faults (settled (disk_blocks (shape y)) d) (DoRead from lba count) = [] →
  safe P (Medium f []) →
  (∀ v, view_of d from = Some v → crash_safe P Q (k (v <$> seq lba count)) (Medium f [])) →
  crash_safe P Q (read_places (shape y) (place_of (current y) (map_of (current y) from) <$> seq lba count) k)
    (Medium f []).
Proof.
  intros (_&_&Hlive&Hsnaps) Hfaults Hsafe Hk. apply crash_safe_read_places; [done|].
  simpl in Hfaults. apply app_eq_nil in Hfaults as [_ Hview].
  assert (∃ v, view_of d from = Some v ∧ reads_as (shape y) f (current y) (map_of (current y) from) v)
    as (v&Hv&Hreads).
  { destruct from as [|n]; simpl in *; [by exists (live d)|]. unfold missing in Hview.
    destruct (valid_name n); [|done].
    destruct (Hsnaps n) as [vm v Hv|]; [|by rewrite decide_False in Hview by by intros [? ?]].
    by exists v. }
  specialize (Hk v Hv). rewrite <-list_fmap_compose.
  replace (_ <$> seq lba count) with (v <$> seq lba count); [done|].
  apply list_fmap_ext. intros i l _. simpl. by rewrite Hreads.
Qed.
End Logging.

Lemma crash_safe_with_room {A} (P : contents block → Prop) (Q : A → medium block → Prop) n y k f d :
  represents y f d → (∀ f, recoverable (shape y) d f → P f) →
  (∀ y' f', represents y' f' d → shape y' = shape y → crash_safe P Q (k y') (Medium f' [])) →
  crash_safe P Q (with_room n y k) (Medium f []).
Proof. intros Hy HP Hk. unfold with_room. destruct (room_for y n);
  [by apply Hk|by eapply crash_safe_checkpoint]. Qed.

Lemma crash_safe_update y f d places q :
  represents y f d → let s := settled (disk_blocks (shape y)) d in
  faults s q = [] → is_Some (record_of q places) →
  crash_safe (crash_outcome (shape y) s q) (answers (shape y) s q) (update y places q) (Medium f []).
Proof.
  intros Hy s Hnone [r0 Hr].
  assert (∀ d' f, d' = d ∨ d' = effect q d → recoverable (shape y) d' f →
    crash_outcome (shape y) s q f) as HP.
  { intros d' f' Hd' Hf'. exists d'. split; [|done]. unfold outcomes. rewrite Hnone. subst s. simpl.
    set_solver. }
  assert (crash_safe (crash_outcome (shape y) s q) (answers (shape y) s q) (Done (y, no_room q, []))
    (Medium f []))
    as Hrefused.
  { split; [apply (safe_represents _ y f d); eauto|]. apply no_room_answers; [done..|]. by destruct q. }
  unfold update. destruct (one_too_many y q); [done|].
  eapply crash_safe_update_log; eauto. intros r fr f2 _ _ Hy2.
  split; [apply (safe_represents _ (logged y r fr) f2 (effect q d)); eauto|].
  exists f2, (effect q d). split_and!; [done..|]. apply step_answered; [|by intros ??? ->]. by split.
Qed.

Lemma crash_safe_perform y f d places q :
  represents y f d → let s := settled (disk_blocks (shape y)) d in
  crash_safe (crash_outcome (shape y) s q) (answers (shape y) s q) (perform y places q) (Medium f []).
Proof.
  intros Hy s. pose proof Hy as (_&_&Hag).
  assert (∀ f, recoverable (shape y) d f → crash_outcome (shape y) s q f) as Hbefore.
  { intros f' Hf'. exists d. split; [apply (outcomes_before s q)|done]. }
  pose proof (safe_represents (crash_outcome (shape y) s q) y f d Hy Hbefore) as Hsafe.
  pose proof (faults_exact y f d q Hag) as Hfaults. fold s in Hfaults. simpl in Hfaults.
  unfold perform. destruct (faults_of y q) as [|e es] eqn:Hnone; [|split; [done|by apply refused_answers]].
  set (proposed := take (length (data_of q)) places).
  assert (is_Some (record_of q proposed) → crash_safe (crash_outcome (shape y) s q) (answers (shape y) s q)
    (with_room (size_for q proposed) y (λ y, update y proposed q)) (Medium f [])) as Hupdate.
  { intros Hr. eapply crash_safe_with_room; [done..|]. intros y1 f1 Hy1 Hshape.
    pose proof (crash_safe_update y1 f1 d proposed q Hy1) as Hu. rewrite Hshape in Hu. by apply Hu. }
  destruct q as [lba data|lba count|n|n|n| | |from lba count]; try (apply Hupdate; by eexists).
  - split; [done|]. exists f, d. split_and!; [done..|]. by apply step_answered.
  - eapply crash_safe_recover; [by apply recoverable_represents|done|]. intros y' f' Hy' Hshape.
    split; [apply (safe_represents _ y' f' d); [done|by rewrite Hshape]|]. exists f', d.
    split_and!; [done..|]. by apply step_answered.
  - apply crash_safe_read_view with d; try done. intros v Hv. split; [done|]. exists f, d.
    split_and!; [done..|].
    apply step_answered; [by split|]. intros ? ? ? [= <- <- <-] _. by exists v.
Qed.

(** ** Several writes in one record *)

(** A power cut leaves the disk before all of the writes, or after all. *)
Definition group_outcome g d ws f : Prop :=
  recoverable g d f ∨ in_range g ws ∧ recoverable g (written_all d ws) f.

(** How the writes show. *)
Definition writes_shown (ws : list (nat * list block)) (r : answer) : list (event block) :=
  (λ w, Write w.1 w.2 r) <$> ws.

Definition group_ends g d ws (o : memory * bool) (m : medium block) : Prop :=
  ∃ f', m = Medium f' [] ∧ shape o.1 = g ∧ (o.2 = true → in_range g ws) ∧
    represents o.1 f' (if o.2 then written_all d ws else d).

Lemma crash_safe_write_group y f d places ws : represents y f d →
  crash_safe (group_outcome (shape y) d ws) (group_ends (shape y) d ws) (write_group y places ws)
    (Medium f []).
Proof.
  intros Hy. unfold write_group. eapply crash_safe_with_room; [done|by left|].
  clear f Hy. intros y1 f Hy <-. pose proof Hy as (_&Hwf&Hag).
  assert (crash_safe (group_outcome (shape y1) d ws) (group_ends (shape y1) d ws) (Done (y1, false))
    (Medium f [])) as Hnone.
  { split; [apply (safe_represents _ y1 f d); [done|by left]|]. by exists f. }
  apply crash_safe_group_log with d; [done|by left|by right|done|]. intros r fr f2 _ Hrange Hy2. split.
  - apply (safe_represents _ (logged y1 r fr) f2 (written_all d ws)); [done|]. by right.
  - by exists f2.
Qed.

(** ** Upkeep *)

Definition keeps g d (y : memory) (m : medium block) : Prop :=
  ∃ f', m = Medium f' [] ∧ shape y = g ∧ represents y f' d.

Lemma keeps_done y f d : represents y f d → crash_safe (recoverable (shape y) d) (keeps (shape y) d) (Done y)
  (Medium f []).
Proof. intros Hy. split; [by apply (safe_represents _ y f d)|by exists f]. Qed.

Lemma crash_safe_clean y f d moves : represents y f d →
  crash_safe (recoverable (shape y) d) (keeps (shape y) d) (clean y moves) (Medium f []).
Proof.
  intros Hy. apply crash_safe_move_log with d; [done..|by apply keeps_done|].
  intros fr f2 Hy2. apply (keeps_done (logged y (LogMove moves) fr) f2 d Hy2).
Qed.

Lemma crash_safe_maintain y f d u :
  represents y f d → crash_safe (recoverable (shape y) d) (keeps (shape y) d) (maintain y u) (Medium f []).
Proof.
  intros Hy. destruct u as [| |moves]; simpl.
  - eapply crash_safe_checkpoint; [done..|]. intros y' f' Hy' <-. by apply keeps_done.
  - apply (keeps_done (collect y) f d). by apply represents_collected.
  - eapply crash_safe_with_room; [done..|]. intros y1 f1 Hy1 <-. by apply crash_safe_clean.
Qed.

End Requests.
