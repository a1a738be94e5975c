(** The log-structured disk knows its segments only by the chunks that it reads from them: a step can be taken
on any segments that give the same chunks, to the same end. What its log forgot it knows
only by its length. *)
From LogDisk Require Import LogStructuredDisk LogStructuredDiskReading LogStructuredDiskInvariant
  LogStructuredDiskRefinement.

Section segments.
Context {V : Type} `{Value V}.
Implicit Types (K : design) (c e : state V) (A B : gmap nat (list V)) (g x : nat).

Definition on_segments A c : state V := with_devices c (with_segments (dev c) A).

Definition is_open c g : Prop := table (mem c) !! g = Some Open.
Global Instance is_open_dec c g : Decision (is_open c g) := ltac:(unfold is_open; apply _).

Definition same_chunks A B c : Prop := ∀ x, chunk_of (on_segments A c) x = chunk_of (on_segments B c) x.

Lemma same_seen A B c : same_chunks A B c → same_disk (seen (on_segments A c)) (seen (on_segments B c)).
Proof. intros Hs. unfold seen. apply (disk_by_ext (chunk_of (on_segments B c)) (chunk_of (on_segments A c))).
  done. Qed.

Lemma on_segments_place A g xs c : place g xs (on_segments A c) =
  on_segments (<[g := (λ x, default zero (chunk_of (on_segments A c) x)) <$> xs]> A) (place g xs c).
Proof. done. Qed.

Lemma on_segments_commit A i c : commit i (on_segments A c) = on_segments A (commit i c).
Proof. unfold on_segments, commit, replace_older, with_devices, with_segments. simpl.
  destruct (slot_a (dev c)), (slot_b (dev c)); simpl; try case_decide; done. Qed.

Lemma same_data A B c (xs : list nat) : same_chunks A B c →
  (λ x, default zero (chunk_of (on_segments A c) x))
    <$> xs = (λ x, default zero (chunk_of (on_segments B c) x)) <$> xs.
Proof. intros Hs. apply list_fmap_ext. intros ? x _. by rewrite Hs. Qed.

(** What a step of a disk that stays on does to its segments: nothing, or one segment is written. *)
Lemma step_on_segments K A B c es c1 : same_chunks A B c → step K (on_segments A c) es c1 →
  at_phase c1 ≠ Off →
  (∃ e, c1 = on_segments A e ∧ step K (on_segments B c) es (on_segments B e) ∧ ∀ g, is_open e g →
    is_open c g) ∨
  (∃ e g data, c1 = on_segments (<[g :=
    data]> A) e ∧ step K (on_segments B c) es (on_segments (<[g := data]> B) e) ∧
     length data ≤ width K ∧ table (mem c) !! g = None ∧ ∀ h, is_open e h ↔ h = g ∨ is_open c h).
Proof.
  intros Hs Hstep Hon. pose proof (same_seen A B c Hs) as Hseen. step_cases Hstep; simpl in *.
  - left. exists (submit r c). split_and!; [done| |done]. apply (Submit K (on_segments B c) r); [done..|].
    simpl. by rewrite <- (faults_same _ _ _ _ Hseen).
  - left. exists (log_append c). split_and!; [done| |done]. by apply (LogAppend K (on_segments B c)).
  - left. exists (acknowledge r c). split_and!; [done| |done]. by apply (Acknowledge K (on_segments B c) r).
  - left. exists c. split_and!; [done| |done]. apply (Refuse K (on_segments B c) r); [done..|].
    simpl. by rewrite <- (faults_same _ _ _ _ Hseen).
  - left. exists c. split_and!; [done| |done].
    pose proof (Hseen from) as Hfrom. rewrite Hv in Hfrom. inversion Hfrom as [? w Hvw Ew Ev|]; subst.
    assert (v <$> seq lba count = w <$> seq lba count) as -> by (apply list_fmap_ext; by intros ? l _).
    apply (Read K (on_segments B c) from lba count w); [done..| |done].
    simpl. by rewrite <- (missing_view_same _ _ _ Hseen).
  - left. exists c. split_and!; [done| |done]. apply (RefuseRead K (on_segments B c) from lba count e);
    [done|].
    simpl. by rewrite <- (missing_view_same _ _ _ Hseen).
  - left. exists (log_append c). split_and!; [done| |done]. by apply (Flush K (on_segments B c)).
  - right. eexists (place g xs c), g, _. split_and!.
    + apply on_segments_place.
    + rewrite (same_data A B) by done. rewrite <- on_segments_place.
      by apply (Destage K (on_segments B c) g xs).
    + by rewrite fmap_length.
    + done.
    + intros h. unfold is_open. simpl. rewrite lookup_insert_Some. naive_solver.
  - left. exists (with_memory c (with_table (mem c) (<[g := Sealed]> (table (mem c))))). split_and!;
    [done| |].
    + by apply (Seal K (on_segments B c) g).
    + intros h. unfold is_open. simpl. rewrite lookup_insert_Some. naive_solver.
  - assert (∀ t h, (gset_to_gmap Dead vs ∪ t) !! h = Some Open ↔ h ∉ vs ∧ t !! h = Some Open) as Hbury.
    { intros t h. rewrite lookup_union_Some_raw, lookup_gset_to_gmap_Some, lookup_gset_to_gmap_None.
      naive_solver. }
    assert (∀ h, table (mem c) !! h = Some Open → h ∉ vs) as Hnot.
    { intros h Ho Hin. rewrite (Hvs h Hin) in Ho. done. }
    unfold clean. simpl. destruct (chunks_in vs (middle (current (mem c)))) as [|x xs] eqn:Hc.
    + left. exists (bury vs c). split_and!; [done| |].
      * pose proof (Clean K (on_segments B c) vs g Hp Hne Hvs) as Hcl. unfold clean in Hcl. simpl in Hcl.
        rewrite Hc in Hcl. apply Hcl. by left.
      * intros h. unfold is_open. simpl. rewrite Hbury. naive_solver.
    + destruct Hg as [?|(Hg & Hlen & Hgain)]; [done|].
      right. eexists (bury vs (place g (x :: xs) c)), g, _. split_and!.
      * rewrite on_segments_place. done.
      * rewrite (same_data A B) by done. pose proof (Clean K (on_segments B c) vs g Hp Hne Hvs) as Hcl.
        unfold clean in Hcl. simpl in Hcl. rewrite Hc in Hcl. apply Hcl. by right.
      * by rewrite fmap_length.
      * done.
      * intros h. unfold is_open. simpl. rewrite Hbury, lookup_insert_Some. split; [naive_solver|].
        intros [->|Ho]; [|].
        -- split; [|by left]. intros Hin. rewrite (Hvs g Hin) in Hg. done.
        -- split; [by apply Hnot|]. right. split; [congruence|done].
  - left. exists (with_memory c (with_table (mem c) (delete g (table (mem c))))). split_and!; [done| |].
    + by apply (Free K (on_segments B c) g).
    + intros h. unfold is_open. simpl. rewrite lookup_delete_Some. naive_solver.
  - left. exists (reclaim x c). split_and!; [done| |done]. by apply (Reclaim K (on_segments B c) x).
  - left. exists (write_nodes c). split_and!; [done| |done]. by apply (CheckpointNodes K (on_segments B c)).
  - left. exists (commit i c). split_and!; [apply on_segments_commit| |done]. rewrite <- on_segments_commit.
    by apply (CheckpointCommit K (on_segments B c) i).
  - left. exists (truncate m c). split_and!; [done| |done]. by apply (Truncate K (on_segments B c) i m).
  - done.
  - done.
  - left. exists (load (if obeys K ReplayAfterCheckpoint then upto i else 0) i c). split_and!; [done| |].
    + by apply (Load K (on_segments B c) i).
    + intros g. unfold is_open. simpl. rewrite lookup_gset_to_gmap_Some. naive_solver.
  - left. exists (replay r c). split_and!; [done| |done]. by apply (Replay K (on_segments B c) r).
  - left. exists (State (size c) Running None (dev c) (mem c)). split_and!; [done| |done].
    by apply (Recover K (on_segments B c)).
Qed.

(** Any records may stand for those that the log forgot, if they are as many. *)
Definition with_past (ps : list (record V)) c : state V :=
  let s := dev c in with_devices c (Devices ps (log s) (flushed s) (slot_a s) (slot_b s) (segments s)).

Lemma replace_older_past ps (o : option checkpoint) c :
  replace_older o (dev (with_past ps c)) = dev (with_past ps (with_devices c (replace_older o (dev c)))).
Proof. unfold replace_older. simpl. destruct (slot_a (dev c)), (slot_b (dev c)); simpl; try done.
  by case_decide. Qed.

Lemma step_with_past K ps c es c1 : step K c es c1 → length ps = first c →
  ∃ ps1, length ps1 = first c1 ∧ step K (with_past ps c) es (with_past ps1 c1).
Proof.
  intros Hstep L.
  assert (logged (with_past ps c) = logged c) as Lg by (unfold logged, first in *; simpl; lia).
  step_cases Hstep.
  - exists ps. split; [done|]. by apply (Submit K (with_past ps c) r).
  - exists ps. split; [done|]. pose proof (LogAppend K (with_past ps c) Hp) as D.
    unfold log_append in D. by rewrite Lg in D.
  - exists ps. split; [done|]. apply (Acknowledge K (with_past ps c) r); [done..|]. by rewrite Lg.
  - exists ps. split; [done|]. by apply (Refuse K (with_past ps c) r).
  - exists ps. split; [done|]. by apply (Read K (with_past ps c) from lba count v).
  - exists ps. split; [done|]. by apply (RefuseRead K (with_past ps c) from lba count e).
  - exists ps. split; [done|]. pose proof (Flush K (with_past ps c) Hp Hq) as D.
    unfold log_append in D. by rewrite Lg in D.
  - exists ps. split; [done|]. by apply (Destage K (with_past ps c) g xs).
  - exists ps. split; [done|]. by apply (Seal K (with_past ps c) g).
  - pose proof (Clean K (with_past ps c) vs g Hp Hne Hvs Hg) as D. exists ps. revert D. unfold clean. simpl.
    by destruct (chunks_in _ _).
  - exists ps. split; [done|]. by apply (Free K (with_past ps c) g).
  - exists ps. split; [done|]. by apply (Reclaim K (with_past ps c) x).
  - exists ps. split; [done|]. by apply (CheckpointNodes K (with_past ps c)).
  - exists ps. destruct (replace_older_same (Some i) (dev c)) as (Ep & _).
    split; [unfold first; simpl; by rewrite Ep|].
    pose proof (CheckpointCommit K (with_past ps c) i Hp Hi Hupto) as D. unfold commit in D.
    by rewrite replace_older_past in D.
  - exists (take m (ps ++ log (dev c))). pose proof (Truncate K (with_past ps c) i m Hp Hi) as D.
    change (first (with_past ps c)) with (length ps) in D. rewrite L in D. specialize (D Hm).
    unfold truncate, history in *. simpl in *. unfold first in *. simpl in *.
    rewrite !drop_app_ge, L in D by lia. rewrite drop_app_ge by lia.
    split; [by rewrite !take_length, !app_length, L|done].
  - exists ps. destruct (replace_older_same None (dev c)) as (Ep & _).
    pose proof (Crash K (with_past ps c) keep torn garbage) as D. rewrite Lg in D. specialize (D Hk Htorn).
    unfold crash in *. change (first (with_past ps c)) with (length ps) in D. rewrite L in D.
    destruct torn; [rewrite replace_older_past in D|]; (split; [|done]); unfold first; simpl;
      [by rewrite Ep|done].
  - exists ps. split; [done|]. pose proof (Restart K (with_past ps c) Hp Hq) as D.
    unfold log_append in D. by rewrite Lg in D.
  - exists ps. split; [done|]. pose proof (Load K (with_past ps c) i Hp Hi) as D. unfold load in *.
    change (first (with_past ps c)) with (length ps) in D. by rewrite L in D.
  - exists ps. split; [done|]. apply (Replay K (with_past ps c) r); [done|simpl..];
      change (first (with_past ps c)) with (length ps); by rewrite L.
  - exists ps. split; [done|]. apply (Recover K (with_past ps c)); [done|]. by rewrite Lg.
Qed.

(** When it goes off, whatever is open may be lost; a clean shutdown loses nothing. *)
Lemma off_on_segments K A B c es c1 : step K (on_segments A c) es c1 → at_phase c1 = Off →
  (es = [] → ∀ g, ¬ is_open c g) →
  ∃ e A' B', c1 = on_segments A' e ∧ step K (on_segments B c) es (on_segments B' e) ∧ table (mem e) = ∅ ∧
    ∀ g data, B' !! g = Some data → B !! g = Some data ∧ ¬ is_open c g.
Proof.
  intros Hstep Hoff Hclean. step_cases Hstep; simpl in *; try congruence.
  - by unfold clean in Hoff; destruct (chunks_in _ _).
  - exists (crash keep torn ∅ c), (filter (λ gd, table (mem c) !! gd.1 ≠ Some Open) A ∪ garbage),
      (filter (λ gd, table (mem c) !! gd.1 ≠ Some Open) B ∪ ∅).
    assert (∀ C G, crash keep torn G (on_segments C c) =
      on_segments (filter (λ gd, table (mem c) !! gd.1 ≠ Some Open) C ∪ G) (crash keep torn ∅ c)) as Hcr.
    { intros C G. unfold on_segments, crash, replace_older, with_devices, with_segments. simpl.
      destruct torn, (slot_a (dev c)), (slot_b (dev c)); simpl; try case_decide; done. }
    split_and!; [by apply Hcr| |done|].
    + rewrite <- Hcr. by apply (Crash K (on_segments B c) keep torn ∅).
    + intros g data. rewrite map_union_empty. by intros [? ?]%map_filter_lookup_Some.
  - exists (State (size c) Off (Some Reopen) (dev (log_append c)) no_memory), A, B. split_and!;
    [done| |done|].
    + by apply (Restart K (on_segments B c)).
    + intros g data ?. split; [done|]. by apply Hclean.
Qed.
End segments.
