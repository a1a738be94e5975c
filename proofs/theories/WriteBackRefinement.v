(** A disk whose programs are crash safe keeps the profiles [Prefix] and [Block] with write-back.

While writes are delayed, the contract's disk has them and the device does not: what is on the device is a
disk that may survive, and so is the disk with all delayed writes. A group is performed whole or not at all,
so a power cut in a drain leaves one of the two. Under [Block] any mixture of the two may survive, which is
more than this disk needs. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskRequests.
From LogDisk Require Import ProvedDiskRefinement ProvedTreeDiskTheorem.
From LogDisk Require Import SplitFlush DiskMachine WriteBack WriteBackDisk.

Lemma crash_safe_then {B A A'} {torn : tearing B} (P : contents B → Prop) (Q : A → medium B → Prop)
    (Q' : A' → medium B → Prop) p k m :
  crash_safe P Q p m → (∀ x m, safe P m → Q x m → crash_safe P Q' (k x) m) → crash_safe P Q' (then_ p k) m.
Proof.
  intros Hp Hk. revert m Hp. induction p as [x|a p IH|a b p IH|p IH|φ p IH]; simpl; intros m [Hleft Hp];
    [by apply Hk|(split; [done|by apply IH])..|]. split; [done|]. intros Hφ. by apply IH, Hp.
Qed.

(** ** The contract under [Prefix] and [Block] *)

Section Contract.
Context `{!blocks} (pf : profile) (buffers : pf ≠ Ack).
Implicit Types (s : state block) (d : disk block) (q : request) (ws : list (nat * list block)).

Lemma written_all_app d ws ws' : written_all d (ws ++ ws') = written_all (written_all d ws) ws'.
Proof. apply foldl_app. Qed.
Lemma written_all_snaps d ws : snaps (written_all d ws) = snaps d.
Proof. revert d. induction ws as [|w ws IH]; intros d; [done|]. simpl. by rewrite IH. Qed.

(** A power cut may leave [d]. *)
Definition leaves (left : list (image block)) d : Prop := ∃ i, i ∈ left ∧ resolves i d.
Definition may_survive s d : Prop := leaves (survivors s) d.

Lemma may_survive_more s s' d :
  (∀ i, i ∈ survivors s → i ∈ survivors s') → may_survive s d → may_survive s' d.
Proof. intros Hmore (i&Hi&?). exists i. auto. Qed.
Lemma exactly_resolves d : resolves (exactly d) d.
Proof. split; [|done]. intros l. by left. Qed.
Lemma leaves_exactly left d : exactly d ∈ left → leaves left d.
Proof. intros Hd. exists (exactly d). split; [done|apply exactly_resolves]. Qed.

(** After a write it may leave what it might have left before, and the disk with the write. *)
Lemma buffered_old s d e : may_survive s d → leaves (buffered pf s e) d.
Proof using buffers.
  intros (i&Hi&Hlive&Hsnaps). destruct pf; simpl; [done|by exists i; split; [right|]|].
  exists (may_also_hold e i). split; [by apply elem_of_list_fmap_1|]. split; [|done]. intros l. by right.
Qed.
Lemma buffered_new s d e : may_survive s d → snaps e = snaps d → leaves (buffered pf s e) e.
Proof using buffers.
  intros (i&Hi&_&Hsnaps) He. destruct pf; simpl; [done|apply leaves_exactly; by left|].
  exists (may_also_hold e i). split; [by apply elem_of_list_fmap_1|]. split; [|by rewrite He].
  intros l. by left.
Qed.
Lemma recorded_new s e : leaves (recorded pf s e) e.
Proof. clear buffers. apply leaves_exactly. destruct pf; by left. Qed.

(** Whatever happens to a disk of which nothing is delayed may happen under these profiles too. *)
Lemma step_buffered s n d d' q r data :
  size s = n → power s = true → now s = d → may_survive s d →
  step Ack (settled n d) (event_of q r data) (settled n d') →
  ∃ s', step pf s (event_of q r data) s' ∧ size s' = n ∧ power s' = true ∧ now s' = d' ∧
    may_survive s' d'.
Proof.
  destruct s as [n0 d0 left on]. simpl. intros -> -> -> Hd Hstep.
  assert (∀ faults excuses e l', leaves l' e →
    answered (settled n d) r faults excuses e [exactly e] (settled n d') →
    ∃ s', answered (State n d left true) r faults excuses e l' s' ∧ size s' = n ∧ power s' = true ∧
      now s' = d' ∧ may_survive s' d') as Hanswered.
  { intros fs es e l' He [_ Hr]. destruct r as [|c| |]; simpl in Hr.
    - destruct Hr as [-> [= <- _]]. eexists. by split; [split; [done|split; [done|reflexivity]]|].
    - destruct Hr as [Hc [= <- _]]. eexists. by split; [split; [done|split; [done|reflexivity]]|].
    - destruct Hr as [[= <- _]|[-> [= <- _]]]; eexists;
        [by split; [split; [done|left; reflexivity]|]|by split; [split; [done|right; by split]|]].
    - by destruct fs. }
  destruct q as [lba bs|lba count|n0|n0|n0| | |from lba count]; simpl in *;
    try (apply Hanswered; [by apply leaves_exactly; left|done]);
    try (apply Hanswered; [by eapply buffered_new|done]); try (apply Hanswered; [apply recorded_new|done]).
  destruct Hstep as [Hstep Hdata]. destruct (Hanswered _ _ d left Hd Hstep) as (s'&?&?).
  by exists s'.
Qed.

(** A power cut in a request leaves what survived before, and the disk after it, if it may happen. *)
Lemma step_cut_buffered s q : power s = true → may_survive s (now s) →
  ∃ s', step pf s (event_of q CutShort []) s' ∧ size s' = size s ∧
    (∀ i, i ∈ survivors s → i ∈ survivors s') ∧
    ∀ d', d' ∈ outcomes (settled (size s) (now s)) q → may_survive s' d'.
Proof.
  destruct s as [n d left on]. simpl. intros -> Hd.
  assert (∀ fs es e l, leaves l e → ∃ s', answered (State n d left true) CutShort fs es e l s' ∧
    size s' = n ∧ (∀ i, i ∈ left → i ∈ survivors s') ∧
    ∀ d', d' ∈ match fs with [] => [e; d] | _ => [d] end → may_survive s' d') as Hcut.
  { intros fs es e l (j&Hj&He). eexists. split; [split; [done|reflexivity]|]. split; [done|]. simpl.
    split; [intros i Hi; apply elem_of_app; by right|]. destruct Hd as (i&Hi&Hd).
    assert (∀ l', leaves (l' ++ left) d) as Hold
      by by (intros l'; exists i; split; [apply elem_of_app; by right|]).
    intros d' Hd'. destruct fs; [apply elem_of_cons in Hd' as [->|Hd']|]; simpl in *.
    - exists j. split; [apply elem_of_app; by left|done].
    - apply elem_of_list_singleton in Hd' as ->. apply Hold.
    - apply elem_of_list_singleton in Hd' as ->. apply (Hold []). }
  destruct q as [lba bs|lba count|n0|n0|n0| | |from lba count]; simpl; unfold outcomes; simpl;
    try (apply (Hcut [] [] d [exactly d]); apply leaves_exactly; by left);
    try (apply (Hcut _ _ _ _); by eapply buffered_new); try (apply (Hcut _ _ _ _), recorded_new).
  destruct (Hcut (out_of_range (settled n d) lba count ++ missing_view d from) [] d left Hd)
    as (s'&?&?). exists s'. split; [split; [done|by intros ?]|done].
Qed.
End Contract.

(** ** What is delayed *)

Section Refinement.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : programs Y U).
Context (shape_of : Y → geometry) (room_of : Y → nat) (spares_places : U → bool).
Context (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).
Context (programs_safe : crash_safe_programs D shape_of represents recoverable).
Context (pf : profile) (buffers : pf ≠ Ack).
Implicit Types (s : state block) (f : contents block) (d : disk block) (q : request) (y : Y) (z : delay).
Local Notation delaying := (write_back D shape_of room_of spares_places).

Lemma lookup_put_blocks lba bs m l :
  put_blocks lba bs m !! l = match data_at lba bs l with Some b => Some b | None => m !! l end.
Proof.
  unfold data_at. revert lba m. induction bs as [|b bs IH]; intros lba m; simpl; [by case_decide|].
  rewrite IH. repeat case_decide; try lia.
  - replace (l - lba) with (S (l - S lba)) by lia. simpl. destruct (bs !! _) eqn:Hb; [done|].
    by rewrite lookup_insert_ne by lia.
  - replace l with lba by lia. by rewrite Nat.sub_diag, lookup_insert.
  - by rewrite lookup_insert_ne by lia.
Qed.

(** The newest data are those that the delayed writes leave. *)
Definition newest_right z : Prop := ∀ d l,
  live (written_all d (reverse (delayed z))) l = default (live d l) (newest_data z !! l).

Lemma delayed_oldest_first d z lba bs : written_all d (reverse (delayed (delay_write z lba bs))) =
  written (written_all d (reverse (delayed z))) lba bs.
Proof. simpl. by rewrite reverse_cons, written_all_app. Qed.

Lemma delay_right z lba bs : newest_right z → newest_right (delay_write z lba bs).
Proof.
  intros Hz d l. rewrite delayed_oldest_first. simpl. rewrite Hz, lookup_put_blocks.
  by destruct (data_at lba bs l).
Qed.

Lemma with_newest_live z d lba count : newest_right z →
  with_newest z lba (live d <$> seq lba count) =
  live (written_all d (reverse (delayed z))) <$> seq lba count.
Proof.
  intros Hz. revert lba. induction count as [|count IH]; intros lba; [done|]. simpl. by rewrite IH, Hz.
Qed.

(** Memory, device and the contract's disk, when nothing is under way. *)
Definition idle (x : Y * delay) f s : Prop := ∃ d,
  represents x.1 f d ∧ size s = disk_blocks (shape_of x.1) ∧ power s = true ∧
  now s = written_all d (reverse (delayed x.2)) ∧ may_survive s d ∧ may_survive s (now s) ∧
  newest_right x.2.

(** What is on the device may survive. *)
Definition left_here s f : Prop :=
  ∃ g d, size s = disk_blocks g ∧ may_survive s d ∧ recoverable g d f.

Definition idle_then s (x : Y * delay) (m : medium block) : Prop := ∃ f, m = Medium f [] ∧ idle x f s.

Lemma idle_found x f s : idle x f s → safe (left_here s) (Medium f []).
Proof.
  intros (d&Hy&Hsize&_&_&Hd&_) f' Hf'. exists (shape_of x.1), d. split_and!; [done..|].
  by apply (safe_idle _ _ _ _ programs_safe _ _ _ Hy).
Qed.

Lemma idle_nothing y z f d s : delayed z = [] → newest_right z → represents y f d →
  size s = disk_blocks (shape_of y) → power s = true → now s = d → may_survive s d → idle (y, z) f s.
Proof.
  intros Hz Hright Hy Hsize Hon <- Hd. exists (now s). simpl. rewrite Hz. by split_and!.
Qed.

(** A drain: a power cut leaves what may survive; in the end the device has all delayed writes, or none. *)
Lemma crash_safe_drain {A} (P : contents block → Prop) (Q : A → medium block → Prop) y z places result f s :
  idle (y, z) f s → (∀ f, left_here s f → P f) →
  (∀ x all f, idle x f s → (all = true → delayed x.2 = []) → Q (result x all) (Medium f [])) →
  crash_safe P Q (drain D y z places result) (Medium f []).
Proof.
  intros Hz HP Hk. unfold drain.
  assert (safe P (Medium f [])) as Hidle.
  { intros f' Hf'. by apply HP, (idle_found (y, z) f s Hz). }
  destruct (delayed z) as [|w ws] eqn:Hws; [by split; [|apply Hk]|].
  destruct Hz as (d&Hy&Hsize&Hon&Hnow&Hd&Hd'&Hright). simpl in *. rewrite Hws in Hnow.
  eapply crash_safe_then.
  - eapply crash_safe_mono; [|intros ? ? HQ; exact HQ|by apply (safe_group _ _ _ _ programs_safe)].
    intros f' [Hf'|[_ Hf']]; apply HP; exists (shape_of y); [by exists d|exists (now s)].
    by rewrite Hnow in *.
  - intros [y' all] m Hleft (f'&->&Hshape&_&Hy'). simpl in *. split; [done|]. destruct all; apply Hk;
      try done.
    + apply (idle_nothing y' _ f' (now s)); [done|done|by rewrite Hnow|by rewrite Hshape|done..].
    + exists d. simpl. rewrite Hws, Hshape. split_and!; done.
Qed.

(** ** Requests *)

Definition cut_left s q f : Prop := ∃ s', step pf s (event_of q CutShort []) s' ∧ left_here s' f.
Definition answered_in s q (o : delayed_outcome) (m : medium block) : Prop := ∃ s',
  step pf s (event_of q o.1.2 o.2) s' ∧ idle_then s' o.1.1 m.

Lemma found_cut s q f : power s = true → may_survive s (now s) → left_here s f → cut_left s q f.
Proof.
  intros Hon Hnow (g&d&Hsize&Hd&Hf). destruct (step_cut_buffered pf buffers s q Hon Hnow)
    as (s'&Hstep&Hsize'&Hin&_).
  exists s'. split; [done|]. exists g, d. rewrite Hsize'. split_and!; [done| |done].
  by eapply may_survive_more.
Qed.

Lemma unknown_buffered s q : power s = true →
  step pf s (event_of q UnknownOutcome []) s ∨ ∃ from lba count, q = DoRead from lba count.
Proof.
  intros Hon. destruct q; try (left; split; [done|by left]). right. by do 3 eexists.
Qed.

Lemma performed_change y z q r data : (∀ from lba count, q ≠ DoRead from lba count) →
  performed_below room_of z q (y, r, data) =
  (y, if uses_places q then nothing_delayed room_of y else z, r, data).
Proof. intros Hq. destruct q as [| | | | | | |from lba count]; try done. by destruct (Hq from lba count). Qed.

Lemma crash_safe_when_drained y z places q f s : idle (y, z) f s →
  (∀ from lba count, q ≠ DoRead from lba count) →
  crash_safe (cut_left s q) (answered_in s q) (when_drained D room_of y z places q) (Medium f []).
Proof.
  intros Hz Hq. pose proof Hz as (d&Hy&Hsize&Hon&Heq&Hd&Hnow&Hright). simpl in *.
  unfold when_drained. destruct (delayed z) eqn:Hnone.
  2:{ split; [intros f' Hf'; apply found_cut; [done..|]; by eapply idle_found|].
      exists s. split; [|by exists f]. destruct (unknown_buffered s q Hon) as [?|(?&?&?&->)]; [done|].
      by destruct (Hq _ _ _ eq_refl). }
  simpl in Heq. eapply crash_safe_then.
  - eapply crash_safe_mono; [|intros ? ? HQ; exact HQ|by apply (safe_request _ _ _ _ programs_safe)].
    intros f' (d'&Hd'&Hf'). destruct (step_cut_buffered pf buffers s q Hon Hnow) as (s'&Hstep&Hsize'&_&Hin).
    exists s'. split; [done|]. exists (shape_of y), d'. split_and!; [by rewrite Hsize'| |done].
    apply Hin. by rewrite Hsize, Heq.
  - intros [[y2 r] data] m Hleft (f2&d2&->&Hshape&Hy2&Hstep). simpl in Hshape, Hy2, Hstep.
    destruct (step_buffered pf buffers s _ d d2 q r data Hsize Hon Heq Hd Hstep)
      as (s'&Hstep'&Hsize'&Hon'&Hnow'&Hd2).
    assert (idle (y2, if uses_places q then nothing_delayed room_of y2 else z) f2 s') as Hidle.
    { destruct (uses_places q); eapply idle_nothing; try done; by rewrite Hshape. }
    split; [done|]. rewrite performed_change by done. exists s'. split; [done|]. by exists f2.
Qed.

(** A read finds the newest data. *)
Lemma missing_view_alike d d' from : snaps d = snaps d' → missing_view d from = missing_view d' from.
Proof. intros Heq. destruct from; [done|]. simpl. unfold missing. by rewrite Heq. Qed.

Lemma step_read s d d' z from lba count r bs :
  power s = true → now s = written_all d (reverse (delayed z)) → newest_right z →
  step Ack (settled (size s) d) (Read from lba count r bs) (settled (size s) d') →
  d' = d ∧ step pf s
    (Read from lba count r (match r, from with Ok, Live => with_newest z lba bs | _, _ => bs end)) s.
Proof.
  intros Hon Hnow Hright [[_ Hr] Hdata]. simpl in *.
  assert (missing_view (now s) from = missing_view d from) as Hmissing.
  { apply missing_view_alike. by rewrite Hnow, written_all_snaps. }
  assert (∀ left, settled (size s) d' = happens (settled (size s) d) d left → d' = d) as Hsame
    by by intros left [= ->].
  unfold out_of_range in *. simpl in *. unfold answered. rewrite Hmissing.
  destruct r as [|c| |]; simpl in *.
  - destruct Hr as [Hnone ->%Hsame]. destruct (Hdata eq_refl) as (v&Hv&->). split; [done|]. split.
    + split; [done|]. split; [done|]. by destruct s.
    + intros _. destruct from as [|n]; simpl in *.
      * injection Hv as <-. eexists. split; [done|]. by rewrite with_newest_live, Hnow.
      * exists v. by rewrite Hnow, written_all_snaps.
  - destruct Hr as [Hc [= ->]]. by split; [|split].
  - split; [|by split; [split; [|left]|]]. destruct Hr as [[= ->]|[_ ->%Hsame]]; done.
  - by destruct (_ ++ _).
Qed.

Lemma crash_safe_delaying y z places q f s : idle (y, z) f s →
  crash_safe (cut_left s q) (answered_in s q) (delaying_request D shape_of room_of (y, z) places q)
    (Medium f []).
Proof.
  intros Hz. pose proof Hz as (d&Hy&Hsize&Hon&Hnow&Hd&Hin&Hright).
  destruct q as [lba bs|lba count|n|n|n| | |from lba count];
    try (by apply crash_safe_when_drained).
  - unfold delaying_request. destruct (may_delay _ _ _ _ _) eqn:Hmay; [|by apply crash_safe_when_drained].
    unfold may_delay in Hmay. apply andb_true_iff in Hmay as [Hfits%bool_decide_eq_true _].
    split; [intros f' Hf'; apply found_cut; [done..|]; by eapply idle_found|].
    exists (happens s (written (now s) lba bs) (buffered pf s (written (now s) lba bs))). split.
    + split; [done|]. split; [|done]. unfold out_of_range. by rewrite Hsize, decide_True.
    + exists f. split; [done|]. exists d. simpl in *. split_and!; try done.
      * by rewrite Hnow, <-delayed_oldest_first.
      * by apply buffered_old.
      * by eapply buffered_new.
      * by apply (delay_right z lba bs).
  - apply crash_safe_drain with s; [done|intros f'; by apply found_cut|]. intros [y1 z1] [] f1 Hx Hnone.
    + exists (happens s (now s) [exactly (now s)]). split; [done|]. exists f1. split; [done|].
      destruct Hx as (d1&Hy1&Hsize1&_&Hnow1&_&_&Hright1). simpl in *. rewrite (Hnone eq_refl) in Hnow1.
      simpl in Hnow1. apply (idle_nothing y1 z1 f1 d1); try done; [by apply Hnone|]. rewrite Hnow1.
      apply leaves_exactly. by left.
    + exists s. split; [|by exists f1]. by split; [|left].
  - eapply crash_safe_then.
    + eapply crash_safe_mono; [|intros ? ? HQ; exact HQ|by apply (safe_request _ _ _ _ programs_safe)].
      intros f' (d'&Hd'&Hf'). apply found_cut; [done..|]. exists (shape_of y), d'. split_and!; [done| |done].
      unfold outcomes in Hd'. simpl in Hd'. destruct (out_of_range _ _ _ ++ _); set_solver.
    + intros [[y2 r] bs] m Hleft (f2&d2&->&Hshape&Hy2&Hstep). simpl in *. split; [done|].
      rewrite <-Hsize in Hstep.
      destruct (step_read s d d2 z from lba count r bs Hon Hnow Hright Hstep) as [-> Hread].
      exists s. split; [done|]. exists f2. split; [done|]. exists d. simpl. by rewrite Hshape.
Qed.

(** ** Several writes at once, upkeep, and recovery *)

Lemma delay_all_idle y z z' ws f s : idle (y, z) f s → delay_all shape_of y z ws = Some z' →
  ∃ s', run pf s (writes_shown ws Ok) s' ∧ idle (y, z') f s'.
Proof.
  revert z s. induction ws as [|[lba bs] ws IH]; simpl; intros z s Hz.
  - intros [= <-]. exists s. split; [constructor|done].
  - destruct (may_delay _ _ _ _ _) eqn:Hmay; [|done].
    pose proof (crash_safe_delaying y z [] (DoWrite lba bs) f s Hz) as Hone.
    unfold delaying_request in Hone. rewrite Hmay in Hone. destruct Hone as (_&s1&Hstep&f1&[= ->]&Hz1).
    intros Hall. destruct (IH _ _ Hz1 Hall) as (s'&Hrun&Hz'). exists s'. split; [|done]. by econstructor.
Qed.

Definition group_end s ws (o : Y * delay * bool) (m : medium block) : Prop :=
  ∃ s', (if o.2 then run pf s (writes_shown ws Ok) s' else s' = s) ∧ idle_then s' o.1 m.

Lemma crash_safe_delaying_group x places ws f s : idle x f s →
  crash_safe (left_here s) (group_end s ws) (delaying_group shape_of x places ws) (Medium f []).
Proof.
  intros Hx. unfold delaying_group. destruct (delay_all _ _ _ _) as [z'|] eqn:Hall;
    (split; [by eapply idle_found|]).
  - destruct x as [y z]. destruct (delay_all_idle y z z' ws f s Hx Hall) as (s'&Hrun&Hz').
    exists s'. split; [done|]. by exists f.
  - exists s. split; [done|]. by exists f.
Qed.

Lemma crash_safe_delaying_maintain x v f s : idle x f s →
  crash_safe (left_here s) (idle_then s) (delaying_maintain D room_of spares_places x v) (Medium f []).
Proof.
  intros Hx. destruct x as [y z]. pose proof Hx as (d&Hy&Hsize&Hon&Hnow&Hd&Hin&Hright). simpl in *.
  assert (∀ y' f', represents y' f' d → shape_of y' = shape_of y →
    idle (y', counted_again room_of y' z) f' s) as Hagain.
  { intros y' f' Hy' Hshape. unfold counted_again. destruct (delayed z) as [|w ws] eqn:Hws.
    - apply (idle_nothing y' _ f' d); try done. by rewrite Hshape.
    - exists d. simpl. rewrite Hshape, Hws. by split_and!. }
  assert (safe (left_here s) (Medium f [])) as Hleft by by eapply idle_found.
  destruct v as [places|u]; simpl.
  - destruct (delayed z) eqn:Hws.
    + split; [done|]. exists f. split; [done|]. specialize (Hagain y f Hy eq_refl).
      unfold counted_again in Hagain. by rewrite Hws in Hagain.
    + apply crash_safe_drain with s; [done|done|]. intros x all f1 Hx1 _. by exists f1.
  - destruct (match delayed z with [] => true | _ => spares_places u end); [|split; [done|by exists f]].
    eapply crash_safe_then.
    + eapply crash_safe_mono; [|intros ? ? HQ; exact HQ|by apply (safe_upkeep _ _ _ _ programs_safe)].
      intros f' Hf'. by exists (shape_of y), d.
    + intros y' m Hm (f'&->&Hshape&Hy'). split; [done|]. exists f'. split; [done|]. by apply Hagain.
Qed.

(** ** Every step *)

Definition recovered_in s (r : option (Y * delay)) (m : medium block) : Prop :=
  ∃ x d, r = Some x ∧ may_survive s d ∧ idle_then (settled (size s) d) x m.

Lemma opened_idle g d y m : kept_as shape_of represents g d y m →
  idle_then (settled (disk_blocks g) d) (y, nothing_delayed room_of y) m.
Proof.
  intros (f&->&<-&Hy). exists f. split; [done|]. apply idle_nothing with d; try done.
  apply leaves_exactly. by left.
Qed.

Lemma crash_safe_opening f s : left_here s f →
  crash_safe (left_here s) (recovered_in s) (run_recovery delaying) (Medium f []).
Proof.
  intros (g&d&Hsize&Hd&Hf). simpl. eapply crash_safe_then.
  - eapply crash_safe_mono; [|intros ? ? HQ; exact HQ|by apply (safe_recovery _ _ _ _ programs_safe)].
    intros f' Hf'. by exists g, d.
  - intros r m Hleft (y&->&Hy). split; [done|]. exists (y, nothing_delayed room_of y), d. rewrite Hsize.
    split_and!; [done..|]. by apply opened_idle.
Qed.

Definition buffers_related (x : machine (Y * delay)) s : Prop :=
  let m := x.2 in
  match x.1 with
  | Idle z => idle_then s z m
  | Busy q p => crash_safe (cut_left s q) (answered_in s q) p m
  | Group ws p => power s = true ∧ crash_safe (left_here s) (group_end s ws) p m
  | Upkeep p => crash_safe (left_here s) (idle_then s) p m
  | Off => ∃ f, m = Medium f [] ∧ left_here s f
  | Recovery p => crash_safe (left_here s) (recovered_in s) p m
  end.

Lemma step_run p s s' e : step p s e s' → run p s [e] s'.
Proof. intros. econstructor; [done|constructor]. Qed.

(** Writes of unknown outcome that were not performed. *)
Lemma unknown_idle s ws : power s = true → run pf s (writes_shown ws UnknownOutcome) s.
Proof. intros Hon. induction ws; [constructor|]. econstructor; [|done]. split; [done|by left]. Qed.

Lemma found_later s f : left_here s f → ∃ s', run pf s [Crash CutShort] s' ∧ left_here s' f.
Proof. intros (g&d&?&?&?). exists (cut s []). split; [by apply step_run|]. by exists g, d. Qed.

Lemma buffers_related_cut c m s f : buffers_related (c, m) s → c ≠ Off → may_leave m f →
  ∃ s', run pf s (shown_by_cut c) s' ∧ buffers_related (Off, Medium f []) s'.
Proof.
  intros Hrel Hon Hf.
  assert (left_here s f →
    ∃ s', run pf s [Crash CutShort] s' ∧ buffers_related (Off, Medium f []) s') as Hleft.
  { intros (s'&?&?)%found_later. exists s'. split; [done|]. by exists f. }
  destruct c as [x|q p|ws p|p| |p]; unfold buffers_related in Hrel; simpl in *.
  - destruct Hrel as (f0&->&Hx). by apply Hleft, (idle_found x f0).
  - apply crash_safe_now in Hrel. destruct (Hrel f Hf) as (s'&?%step_run&?). exists s'. split; [done|].
    by exists f.
  - destruct Hrel as [Hpower Hp%crash_safe_now]. destruct (Hleft (Hp f Hf)) as (s'&Hrun&?). exists s'.
    split; [|done]. apply run_app. exists s. split; [by apply unknown_idle|done].
  - apply crash_safe_now in Hrel. by apply Hleft, Hrel.
  - done.
  - apply crash_safe_now in Hrel. by apply Hleft, Hrel.
Qed.

Lemma buffers_related_move x s es x' : buffers_related x s → move delaying x es x' →
  ∃ s', run pf s es s' ∧ buffers_related x' s'.
Proof.
  intros Hrel Hmove. destruct Hmove as [y m q places|y m ws places|y m u
    |q p m p' m' Hio|ws p m p' m' Hio|p m p' m' Hio|p m p' m' Hio|q y r data m|ws y m|ws y m|y m
    |c m f Hon Hf|m|y m]; unfold buffers_related in Hrel; simpl in Hrel.
  - destruct Hrel as (f&->&Hx). exists s. split; [constructor|]. destruct y. by apply crash_safe_delaying.
  - destruct Hrel as (f&->&Hx). exists s. split; [constructor|]. split; [by destruct Hx as (?&_&_&?&_)|].
    by apply crash_safe_delaying_group.
  - destruct Hrel as (f&->&Hx). exists s. split; [constructor|]. by apply crash_safe_delaying_maintain.
  - exists s. split; [constructor|]. by eapply crash_safe_io.
  - destruct Hrel as [Hpower Hp]. exists s. split; [constructor|]. split; [done|]. by eapply crash_safe_io.
  - exists s. split; [constructor|]. by eapply crash_safe_io.
  - exists s. split; [constructor|]. by eapply crash_safe_io.
  - destruct Hrel as (_&s'&Hstep&Hx). exists s'. split; [by apply step_run|done].
  - destruct Hrel as (_&_&s'&Hrun&Hx). by exists s'.
  - destruct Hrel as (_&_&s'&->&Hx). exists s. split; [constructor|done].
  - destruct Hrel as [_ Hx]. exists s. split; [constructor|done].
  - by eapply buffers_related_cut.
  - destruct Hrel as (f&->&Hf). exists s. split; [constructor|]. by apply crash_safe_opening.
  - destruct Hrel as (_&x&d&[= <-]&Hd&Hx). exists (settled (size s) d). split; [|done].
    apply step_run. destruct Hd as (i&Hi&?). by exists i, d.
Qed.

Lemma execute_then {A A'} (p : program block A) (k : A → program block A') m :
  execute (then_ p k) m = execute (k (execute p m).1) (execute p m).2.
Proof. revert m. induction p; simpl; auto. Qed.

Lemma formatted_idle n x : formatted delaying n x →
  ∃ z : Y * delay, x.1 = Idle z ∧ idle_then (settled n blank) z x.2.
Proof.
  intros (trees&g&f&x0&<-&Hwhole&Hx&->). simpl in *. rewrite execute_then in *.
  destruct (execute (run_format D trees g) (Medium f [])) as [[y|] m] eqn:Hex; [|done].
  simpl in *. injection Hx as <-. eexists. split; [done|].
  by eapply opened_idle, (safe_format _ _ _ _ programs_safe).
Qed.

(** A disk whose programs are crash safe keeps [Prefix] and [Block] with write-back. *)
Theorem write_back_refines : implements (disk_machine delaying) pf.
Proof.
  apply (forward_simulation (disk_machine delaying) pf buffers_related); [|apply buffers_related_move].
  intros n [c m] (z&Hc&Hz)%formatted_idle. simpl in *. by rewrite Hc.
Qed.
End Refinement.

(** ** Both disks *)

Section Disks.
Context `{!blocks} {torn : tearing block} (most : nat) (pf : profile) (buffers : pf ≠ Ack).

Theorem write_back_disk_refines : blocks_laws → implements (write_back_disk most) pf.
Proof using buffers. intros laws. by apply (write_back_refines _ _ _ _ _ _ proved_programs_safe). Qed.

Theorem write_back_tree_disk_refines bits : blocks_laws → implements (write_back_tree_disk most bits) pf.
Proof using buffers.
  intros laws. by apply (write_back_refines _ _ _ _ _ _ (tree_programs_safe bits laws)).
Qed.
End Disks.
