(** What the search for an order does: merging, and how far steps lead.

Worlds differ in what a power cut would leave; [hangs y w w0]: they are alike but for that, and [w0] has the
leftover [y]. Each leftover of a world after an event comes from one leftover of the world before. *)
From stdpp Require Import pmap sorting.
From LogDisk Require Import VirtualDisk VirtualDiskProperties RecordedTrace Checker CheckerWorlds
    CheckerCorrect.
From LogDisk Require Import OverlappingDisk OverlappingDiskChecker.

Section OverlappingSearch.
Context {V : Type} `{EqDecision V, Value V} (weigh : positive → V → nat).
Implicit Types (w : @world V) (y : @leftover V) (c : @config V) (cs : list (@config V)) (x : step_of V)
  (en : entry V).

(** ** Each leftover by itself *)

Definition but_leftovers w w0 : Prop :=
  blocks_count w = blocks_count w0 ∧ seen w = seen w0 ∧ powered w = powered w0 ∧ choices w = choices w0 ∧
  next w = next w0.
Definition hangs y w w0 : Prop := but_leftovers w w0 ∧ y ∈ leftovers w0.

Lemma entry_leftovers p tolerates v en w w' :
  leftovers w ≠ [] → w' ∈ entry_worlds p tolerates v en w → leftovers w' ≠ [].
Proof.
  intros Hne. assert (∀ r, w' ∈ (if powered w then match r with CutShort => [cut_to w (leftovers w)] | _ =>
      [w]
    end else []) → leftovers w' ≠ []) as Hout.
  { intros r. destruct (powered w); [|by intros ?%elem_of_nil]. by destruct r;
    intros ->%elem_of_list_singleton. }
  assert (∀ r faults excuses f, leaves (f tt) ≠ [] → leaves_cut (f tt) ≠ [] →
    w' ∈ answering w r faults excuses f → leftovers w' ≠ []) as Hans.
  { intros r faults excuses f Hl Hcut [_ Hr]%answering_spec. destruct r; [naive_solver..|]. subst w'.
    by destruct faults. }
  assert (∀ q lba data, leaves (buffering q w lba data) ≠ [] ∧ leaves_cut (buffering q w lba data) ≠ []) as
      Hb.
  { intros [] lba data; cbn; [done..|]. by destruct (leftovers w). }
  assert (∀ q told lba data, leaves (writing_through q told w lba data) ≠ [] ∧
    leaves_cut (writing_through q told w lba data) ≠ []) as Hth.
  { intros [] [] lba data; cbn; try done; by destruct (leftovers w). }
  assert (∀ q z, leaves (recording q w z) ≠ [] ∧ leaves_cut (recording q w z) ≠ []) as Hr by (by intros []).
  destruct en as [e|d r|d r|d r|r|r]; try apply Hout.
  destruct e as [blocks|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r]; cbn;
    try (apply Hans; first [apply Hb|apply Hth|apply Hr]).
  - by intros ->%elem_of_list_singleton.
  - intros [_ Hl]%looking_spec. destruct r; [|naive_solver..].
    destruct Hl as [_ ->%elem_of_list_singleton]. done.
  - intros [_ Hl]%looking_spec. destruct r; [|naive_solver..].
    destruct Hl as [_ ->%elem_of_list_singleton]. done.
  - assert (w' ∈ advance_one p (Read from lba count r data) w → leftovers w' ≠ []) as Hread.
    { intros [_ Hl]%looking_spec. destruct r; [|naive_solver..].
      destruct Hl as [_ (m & ch & _ & _ & _ & ->)%reading_spec]. done. }
    destruct r as [|[]| |]; try apply Hread. destruct (powered w && beyond tolerates v);
      [by intros ->%elem_of_list_singleton|by intros ?%elem_of_nil].
  - destruct r; try (by intros ?%elem_of_nil).
    + intros (y & -> & Hy)%elem_of_list_fmap. done.
    + by intros ->%elem_of_list_singleton.
Qed.

Lemma hangs_same y w : y ∈ leftovers w → hangs y w w.
Proof. by split. Qed.

(** *** What one leftover is due to *)

Section Hanging.
Context (w : @world V) (ya : @leftover V) (Hya : ya ∈ leftovers w).

(** [w'] is what [step] makes of [w], and its leftover [y'] is due to one leftover of [w]. *)
Definition stems w' y' (step : world → list world) : Prop :=
  ∃ y, y ∈ leftovers w ∧ ∀ w0, hangs y w w0 → ∃ w0', w0' ∈ step w0 ∧ hangs y' w' w0'.
Definition stems_from w' y' (z : world → world) : Prop :=
  ∃ y, y ∈ leftovers w ∧ ∀ w0, hangs y w w0 → hangs y' w' (z w0).

(** Each of the leftovers that [f] gives is due to one leftover of [w]. *)
Definition traced (f : world → list leftover) : Prop :=
  ∀ y, y ∈ f w → ∃ y0, y0 ∈ leftovers w ∧ ∀ w0, hangs y0 w w0 → y ∈ f w0.
(** [g] depends on no leftover. *)
Definition independent {A} (g : world → A) : Prop := ∀ y0 w0, hangs y0 w w0 → g w0 = g w.
Record traced_effect (f : world → effect) : Prop := {
  makes_independent : independent (λ w, makes (f w));
  leaves_traced : traced (λ w, leaves (f w));
  cut_traced : traced (λ w, leaves_cut (f w));
}.

Lemma seen_independent : independent seen.
Proof. by intros ? ? [(?&?&?&?&?) ?]. Qed.

Lemma powered_independent : independent powered.
Proof. by intros ? ? [(?&?&?&?&?) ?]. Qed.

Lemma exists_snap_independent : independent exists_snap.
Proof. intros ? ? Hw0. unfold exists_snap. by rewrite (seen_independent _ _ Hw0). Qed.

Lemma range_independent lba count : independent (λ w, range_faults w lba count).
Proof. intros ? ? [(Hb&?&?&?&?) ?]. unfold range_faults. by rewrite Hb. Qed.

Lemma missing_independent n : independent (λ w, missing_faults w n).
Proof. intros ? ? Hw0. unfold missing_faults. by rewrite (exists_snap_independent _ _ Hw0). Qed.

Lemma taken_independent n : independent (λ w, taken_faults w n).
Proof. intros ? ? Hw0. unfold taken_faults. by rewrite (exists_snap_independent _ _ Hw0). Qed.

Lemma leftovers_traced : traced leftovers.
Proof. intros y Hy. exists y. split; [done|]. by intros w0 [_ ?]. Qed.

Lemma traced_app f g : traced f → traced g → traced (λ w, f w ++ g w).
Proof.
  intros Hf Hg y [(y0 & ? & Hall)%Hf|(y0 & ? & Hall)%Hg]%elem_of_app; exists y0; (split; [done|]);
    intros w0 Hw0; apply elem_of_app; auto.
Qed.

(** *** Effects *)

Lemma recording_traced q (x : world → shape) : independent x → traced_effect (λ w, recording q w (x w)).
Proof.
  intros Hx. assert (traced (λ w, Leftover (x w) ∅ :: leftovers w)) as Hcons.
  { intros y [->|Hy]%elem_of_cons; [exists ya|exists y]; (split; [done|]); intros w0 Hw0;
      rewrite (Hx _ _ Hw0); [left|right; by destruct Hw0]. }
  assert (traced (λ w, [Leftover (x w) ∅])) as Hone.
  { intros y ->%elem_of_list_singleton. exists ya. split; [done|]. intros w0 Hw0.
    rewrite (Hx _ _ Hw0). left. }
  by destruct q; split.
Qed.

Lemma buffering_traced q lba data : traced_effect (λ w, buffering q w lba data).
Proof.
  set (x w := Shape (put (key lba) data (live_blocks (seen w))) (snap_blocks (seen w))).
  assert (independent x) as Hx by (intros y0 w0 Hw0; unfold x; by rewrite (seen_independent _ _ Hw0)).
  destruct q; [exact (recording_traced Ack x Hx)|exact (recording_traced Prefix x Hx)|].
  assert (traced (λ w, (λ y, Leftover (kept y) (put_since (key lba) data (since y))) <$> leftovers w))
    as Hall.
  { intros y (z & -> & Hz)%elem_of_list_fmap. exists z. split; [done|]. intros w0 [_ Hw0].
    apply elem_of_list_fmap. by exists z. }
  by split.
Qed.

Lemma writing_through_traced q told lba data : traced_effect (λ w, writing_through q told w lba data).
Proof.
  destruct (buffering_traced q lba data) as [Hm Hl Hlc].
  assert (traced (λ w, force (key lba) data <$> leftovers w)) as Hf.
  { intros y (z & -> & Hz)%elem_of_list_fmap. exists z. split; [done|]. intros w0 [_ Hw0].
    apply elem_of_list_fmap. by exists z. }
  destruct q, told; try (split; [exact Hm|exact Hl|exact Hlc]); (split; [exact Hm|..]);
    first [exact Hf|exact (traced_app _ _ Hf leftovers_traced)|exact (traced_app _ _ Hf Hl)].
Qed.

(** *** Steps *)

Lemma stems_one w' y' step z :
  stems_from w' y' z → (∀ y w0, hangs y w w0 → z w0 ∈ step w0) → stems w' y' step.
Proof.
  intros (y & Hy & Hall) Hz. exists y. split; [done|]. intros w0 Hw0. exists (z w0).
  split; [by eapply Hz|by apply Hall].
Qed.

Lemma stems_stay w' y' : w' = w → y' ∈ leftovers w' → stems_from w' y' (λ w0, w0).
Proof. intros -> Hy'. exists y'. split; [done|]. by intros. Qed.

Lemma stems_cut w' y' f :
  traced f → w' = cut_to w (f w) → y' ∈ leftovers w' → stems_from w' y' (λ w0, cut_to w0 (f w0)).
Proof.
  intros Hf -> Hy'. destruct (Hf _ Hy') as (y0 & Hy0 & Hall). exists y0. split; [done|]. intros w0 Hw0.
  specialize (Hall _ Hw0). destruct Hw0 as [(?&?&?&?&?) ?]. split; [by split_and!|done].
Qed.

Lemma stems_happening w' y' f :
  traced_effect f → w' = happening w (f w) → y' ∈ leftovers w' →
  stems_from w' y' (λ w0, happening w0 (f w0)).
Proof.
  intros [Hm Hl _] -> Hy'. destruct (Hl _ Hy') as (y0 & Hy0 & Hall). exists y0. split; [done|].
  intros w0 Hw0. specialize (Hall _ Hw0). pose proof (Hm _ _ Hw0) as Heq. simpl in Heq.
  destruct Hw0 as [(?&?&?&?&?) ?]. split; [by split_and!|done].
Qed.

(** An operation on devices. *)
Lemma outside_stems r w' y' :
  let step w := if powered w then match r with CutShort => [cut_to w (leftovers w)] | _ => [w] end else [] in
  w' ∈ step w → y' ∈ leftovers w' → stems w' y' step.
Proof.
  intros step Hin Hy'. unfold step in Hin. destruct (powered w) eqn:Hp; [|by apply elem_of_nil in Hin].
  assert (∀ y w0, hangs y w w0 → powered w0 = true) as Hp0.
  { intros y w0 Hw0. by rewrite (powered_independent _ _ Hw0). }
  destruct r; apply elem_of_list_singleton in Hin;
    first [eapply stems_one; [by apply stems_stay|]
      |eapply stems_one; [by apply (stems_cut _ _ leftovers leftovers_traced)|]];
    intros y w0 Hw0; unfold step; rewrite (Hp0 _ _ Hw0); by apply elem_of_list_singleton.
Qed.

(** An operation that changes the disk. *)
Lemma answering_stems r faults excuses f w' y' :
  independent faults → traced_effect f →
  w' ∈ answering w r (faults w) excuses (λ _, f w) → y' ∈ leftovers w' →
  stems w' y' (λ w0, answering w0 r (faults w0) excuses (λ _, f w0)).
Proof.
  intros Hfs Hf [Hp Hr]%answering_spec Hy'.
  assert (∀ y w0, hangs y w w0 → powered w0 = true) as Hp0.
  { intros y w0 Hw0. by rewrite (powered_independent _ _ Hw0). }
  assert (∀ z, stems_from w' y' z → (∀ y w0, hangs y w w0 → z w0 ∈ answering w0 r (faults w) excuses
    (λ _, f w0)) → stems w' y' (λ w0, answering w0 r (faults w0) excuses (λ _, f w0))) as Hone.
  { intros z Hz Hin. apply (stems_one _ _ _ z Hz). intros y w0 Hw0. rewrite (Hfs _ _ Hw0). by eapply Hin. }
  destruct r as [|cd| |].
  - destruct Hr as [Hnil Heq]. apply (Hone _ (stems_happening _ _ _ Hf Heq Hy')). intros y w0 Hw0.
    apply answering_spec. eauto.
  - destruct Hr as [Hc Heq]. apply (Hone _ (stems_stay _ _ Heq Hy')). intros y w0 Hw0.
    apply answering_spec. eauto.
  - destruct Hr as [Heq|[Hnil Heq]]; [apply (Hone _ (stems_stay _ _ Heq Hy'))
      |apply (Hone _ (stems_happening _ _ _ Hf Heq Hy'))]; intros y w0 Hw0; apply answering_spec; eauto.
  - assert (traced (λ w0, match faults w with [] => leaves_cut (f w0) | _ => leftovers w0 end)) as Hcut.
    { destruct (faults w); [apply (cut_traced _ Hf)|apply leftovers_traced]. }
    apply (Hone _ (stems_cut _ _ _ Hcut Hr Hy')). intros y w0 Hw0. apply answering_spec. eauto.
Qed.

(** An operation that only looks. *)
Lemma looking_stems r faults g w' y' :
  independent faults → (w' ∈ g w → stems w' y' g) → w' ∈ looking w r (faults w) (λ _, g w) →
  y' ∈ leftovers w' → stems w' y' (λ w0, looking w0 r (faults w0) (λ _, g w0)).
Proof.
  intros Hfs Hg [Hp Hr]%looking_spec Hy'.
  assert (∀ y w0, hangs y w w0 → powered w0 = true) as Hp0.
  { intros y w0 Hw0. by rewrite (powered_independent _ _ Hw0). }
  destruct r as [|cd| |].
  - destruct Hr as [Hnil (y & Hy & Hall)%Hg]. exists y. split; [done|]. intros w0 Hw0.
    destruct (Hall w0 Hw0) as (w0' & ? & ?). exists w0'. split; [|done]. apply looking_spec.
    rewrite (Hfs _ _ Hw0). eauto.
  - destruct Hr as [Hc Heq]. apply (stems_one _ _ _ _ (stems_stay _ _ Heq Hy')). intros y w0 Hw0.
    apply looking_spec. rewrite (Hfs _ _ Hw0). eauto.
  - apply (stems_one _ _ _ _ (stems_stay _ _ Hr Hy')). intros y w0 Hw0. apply looking_spec. eauto.
  - apply (stems_one _ _ _ _ (stems_cut _ _ _ leftovers_traced Hr Hy')). intros y w0 Hw0.
    apply looking_spec. eauto.
Qed.

Lemma flushing_stems r w' y' :
  let flushed w := [leaving w (seen w) [Leftover (seen w) ∅]] in
  w' ∈ looking w r [] (λ _, flushed w) → y' ∈ leftovers w' →
  stems w' y' (λ w0, looking w0 r [] (λ _, flushed w0)).
Proof.
  intros flushed Hin Hy'. apply (looking_stems r (λ _, []) flushed); [by intros ? ?| |done|done].
  intros ->%elem_of_list_singleton. exists ya. split; [done|]. intros w0 Hw0.
  eexists. split; [left|]. rewrite (seen_independent _ _ Hw0). destruct Hw0 as [(?&?&?&?&?) ?]. by split.
Qed.

Lemma reading_stems from lba count data w' y' :
  w' ∈ reading w from lba count data → y' ∈ leftovers w' →
  stems w' y' (λ w0, reading w0 from lba count data).
Proof.
  intros Hr Hy'. exists y'. pose proof Hr as (m & ch & _ & _ & _ & Heq)%reading_spec.
  split; [by rewrite Heq in Hy'|]. intros w0 [(Hb&Hs&Hp&Hc&Hn) Hy0]. revert Hr.
  unfold reading. rewrite <-Hb, <-Hs, <-Hp, <-Hc, <-Hn.
  destruct (blocks_of _ _); [|by intros ?%elem_of_nil]. case_decide; [|by intros ?%elem_of_nil].
  destruct (all_decided _ _ _ _ _); [|by intros ?%elem_of_nil].
  intros ->%elem_of_list_singleton. eexists. split; [left|]. by split.
Qed.
End Hanging.

Lemma entry_hangs p tolerates v en w w' y' :
  leftovers w ≠ [] → w' ∈ entry_worlds p tolerates v en w → y' ∈ leftovers w' →
  ∃ y, y ∈ leftovers w ∧ ∀ w0, hangs y w w0 →
    ∃ w0', w0' ∈ entry_worlds p tolerates v en w0 ∧ hangs y' w' w0'.
Proof.
  intros Hne Hin Hy'. assert (∃ ya, ya ∈ leftovers w) as [ya Hya].
  { destruct (leftovers w); [done|]. eexists. left. }
  change (stems w w' y' (entry_worlds p tolerates v en)).
  destruct en as [e|d r|d r|d r|r|r]; try exact (outside_stems w r w' y' Hin Hy').
  destruct e as [blocks|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r];
    try exact (flushing_stems w ya Hya r w' y' Hin Hy').
  - apply elem_of_list_singleton in Hin as ->. exists ya. split; [done|]. intros w0 _.
    eexists. split; [left|]. by apply hangs_same.
  - exact (answering_stems w r _ _ _ w' y' (range_independent w lba (length data))
      (buffering_traced w ya Hya p lba data) Hin Hy').
  - exact (answering_stems w r _ _ _ w' y' (range_independent w lba (length data))
      (writing_through_traced w ya Hya p told lba data) Hin Hy').
  - exact (answering_stems w r _ _ _ w' y' (range_independent w lba count)
      (buffering_traced w ya Hya p lba (replicate count zero)) Hin Hy').
  - set (x w := Shape (live_blocks (seen w)) ((n, live_blocks (seen w)) :: snap_blocks (seen w))).
    assert (independent w x) as Hx by (intros y0 w0 Hw0; unfold x; by rewrite (seen_independent w _ _ Hw0)).
    exact (answering_stems w r _ _ _ w' y' (taken_independent w n)
      (recording_traced w ya Hya p x Hx) Hin Hy').
  - set (x w := Shape (live_blocks (seen w)) (drop_name n (snap_blocks (seen w)))).
    assert (independent w x) as Hx by (intros y0 w0 Hw0; unfold x; by rewrite (seen_independent w _ _ Hw0)).
    exact (answering_stems w r _ _ _ w' y' (missing_independent w n)
      (recording_traced w ya Hya p x Hx) Hin Hy').
  - set (x w := Shape (default (live_blocks (seen w)) (find n (snap_blocks (seen w))))
      (snap_blocks (seen w))).
    assert (independent w x) as Hx by (intros y0 w0 Hw0; unfold x; by rewrite (seen_independent w _ _ Hw0)).
    exact (answering_stems w r _ _ _ w' y' (missing_independent w n)
      (recording_traced w ya Hya p x Hx) Hin Hy').
  - assert (w' ∈ advance_one p (Read from lba count r data) w →
      stems w w' y' (advance_one p (Read from lba count r data))) as Hread.
    { intros Hr. assert (independent w (λ w, range_faults w lba count ++ view_faults w from)) as Hfs.
      { intros y0 w0 Hw0. cbn beta. f_equal; [exact (range_independent w lba count _ _ Hw0)|].
        destruct from as [|n]; [done|exact (missing_independent w n _ _ Hw0)]. }
      exact (looking_stems w r _ (λ w, reading w from lba count data) w' y' Hfs
        (λ Hin', reading_stems w from lba count data w' y' Hin' Hy') Hr Hy'). }
    destruct r as [|[]| |]; try exact (Hread Hin). cbn in Hin.
    destruct (powered w && beyond tolerates v) eqn:Hb; [|by apply elem_of_nil in Hin].
    apply elem_of_list_singleton in Hin. apply (stems_one w _ _ _ _ (stems_stay w _ _ Hin Hy')).
    intros y w0 Hw0. cbn. rewrite (powered_independent w _ _ Hw0), Hb. left.
  - destruct r; cbn in Hin; try (by apply elem_of_nil in Hin).
    + apply elem_of_list_fmap in Hin as (y & -> & Hy). exists y. split; [done|].
      intros w0 [(Hb&Hs&Hp&Hc&Hn) Hy0]. exists (resuming w0 y). split; [apply elem_of_list_fmap; eauto|].
      unfold resuming. rewrite <-Hb, <-Hc, <-Hn. by apply hangs_same.
    + apply elem_of_list_singleton in Hin.
      apply (stems_one w _ _ _ _ (stems_cut w _ _ _ (leftovers_traced w) Hin Hy')). intros y w0 _. left.
Qed.

(** ** Merging *)

Lemma has_spec n l : has n l = true ↔ n ∈ l.
Proof. induction l as [|m l IH]; cbn; [rewrite elem_of_nil; done|].
  rewrite orb_true_iff, elem_of_cons, IH, same_eq. done. Qed.
Lemma has_note n m l : has n (note m l) = same n m || has n l.
Proof. induction l as [|k l IH]; cbn [has note]; [done|].
  destruct (less k m); cbn [has]; [|done]. rewrite IH. by destruct (same n k), (same n m). Qed.
Lemma has_forget n m l : has n (forget m l) = negb (same n m) && has n l.
Proof. induction l as [|k l IH]; cbn [has forget]; [by rewrite andb_false_r|].
  destruct (same m k) eqn:Hk; cbn [has]; rewrite IH; destruct (same n m) eqn:Hn; cbn [negb andb];
    rewrite ?orb_false_r; try done.
  - apply same_eq in Hk as ->. by rewrite Hn.
  - apply same_eq in Hn as ->. by rewrite Hk.
Qed.

(** What the one world allows, the other does. *)
Definition more w w' : Prop := but_leftovers w w' ∧
  ∀ σ i, (∃ y, y ∈ leftovers w ∧ covers true σ y i) → ∃ y, y ∈ leftovers w' ∧ covers true σ y i.

Lemma but_leftovers_refl w : but_leftovers w w.
Proof. done. Qed.
Lemma more_refl w : more w w.
Proof. split; [done|]. auto. Qed.
Lemma more_trans w w' w'' : more w w' → more w' w'' → more w w''.
Proof. intros [(?&?&?&?&?) Hm1] [(?&?&?&?&?) Hm2]. split; [split_and!; congruence|auto]. Qed.

Lemma more_over σ w w' s : more w w' → beside true σ w s → beside true σ w' s.
Proof.
  intros [(Hb&Hs&Hp&_&_) Hm] [(Hz&Hpw&Hl) Hab]. split.
  - split_and!; [congruence|congruence|by rewrite <-Hs].
  - intros i Hi. apply Hm, Hab, Hi.
Qed.

Lemma within_covers σ y y' i : within y y' = true → covers true σ y i → covers true σ y' i.
Proof.
  intros [Hall Hk%bool_decide_eq_true]%andb_true_iff [Hm Hs]. split; [|by rewrite <-Hk].
  intros l v Hv. specialize (Hm l v Hv). unfold may in *. rewrite <-Hk.
  apply elem_of_cons in Hm as [->|Hm]; [left|right].
  rewrite forallb_forall in Hall. destruct (since y !! key l) as [vs|] eqn:Hy; [|by apply elem_of_nil in Hm].
  apply elem_of_map_to_list, elem_of_list_In, Hall in Hy. cbn in *. rewrite forallb_forall in Hy.
  apply elem_of_list_In, Hy in Hm. by apply bool_decide_eq_true in Hm.
Qed.

Lemma alike_spec c c' : alike c c' = true → taken c = taken c' ∧ but_leftovers (now_in c) (now_in c').
Proof. unfold alike, but_leftovers. rewrite !andb_true_iff, !bool_decide_eq_true. naive_solver. Qed.

(** What squashing keeps: a property of all, and that each is covered. *)
Lemma squash_forall {A} (P : A → Prop) (key_of : A → list nat) join (l : list A) :
  (∀ a g, P a → Forall P g → Forall P (join a g)) → Forall P l → Forall P (squash key_of join l).
Proof.
  intros Hjoin Hl. unfold squash. destruct l as [|a0 [|a1 l]]; [done|done|].
  set (sorted := merge_sort _ _). assert (Forall (λ ka, P ka.2) sorted) as Hs.
  { unfold sorted. rewrite merge_sort_Permutation. by apply Forall_fmap. }
  assert (Forall (λ kg, Forall P kg.2) (foldr (into_group join) [] sorted)) as Hg.
  { clearbody sorted. induction Hs as [|ka l0 Ha _ IH]; [constructor|]. cbn. unfold into_group at 1.
    destruct (foldr _ _ l0) as [|[k g] rest]; [by repeat constructor|].
    apply Forall_cons in IH as [? ?]. case_decide; repeat constructor; auto. by apply Hjoin. }
  apply Forall_forall. intros a (kg & Ha & Hkg)%elem_of_list_bind.
  pose proof (proj1 (Forall_forall _ _) Hg kg Hkg) as Hkg2. exact (proj1 (Forall_forall _ _) Hkg2 a Ha).
Qed.

Lemma squash_covers {A} (R : A → A → Prop) (key_of : A → list nat) join (l : list A) :
  (∀ a, R a a) → (∀ a a1 a2, R a a1 → R a1 a2 → R a a2) →
  (∀ a g a0, a0 ∈ a :: g → ∃ a', a' ∈ join a g ∧ R a0 a') →
  ∀ a, a ∈ l → ∃ a', a' ∈ squash key_of join l ∧ R a a'.
Proof.
  intros Hrefl Htrans Hjoin a Ha. unfold squash. destruct l as [|a0 [|a1 l]]; [eauto|eauto|].
  set (sorted := merge_sort _ _). assert (∃ k, (k, a) ∈ sorted) as [k Hk].
  { exists (key_of a). unfold sorted. rewrite merge_sort_Permutation. apply elem_of_list_fmap. eauto. }
  assert (∃ kg a', kg ∈ foldr (into_group join) [] sorted ∧ a' ∈ kg.2 ∧ R a a') as (kg & a' & Hkg & Ha' & HR).
  { clearbody sorted. clear Ha. induction sorted as [|ka l0 IH]; [by apply elem_of_nil in Hk|].
    cbn. unfold into_group at 1. apply elem_of_cons in Hk as [<-|Hk].
    - cbn. destruct (foldr _ _ l0) as [|[k' g] rest].
      { exists (k, [a]), a. split_and!; [left|left|done]. }
      case_decide.
      + destruct (Hjoin a g a) as (a' & ? & ?); [left|]. exists (k', join a g), a'. split_and!;
          [left|done|done].
      + exists (k, [a]), a. split_and!; [left|left|done].
    - destruct (IH Hk) as (kg & a' & Hkg & Ha' & HR).
      destruct (foldr _ _ l0) as [|[k' g] rest]; [by apply elem_of_nil in Hkg|].
      case_decide.
      + apply elem_of_cons in Hkg as [->|Hkg].
        * destruct (Hjoin ka.2 g a') as (a2 & ? & ?); [by right|].
          exists (k', join ka.2 g), a2. split_and!; [left|done|by eapply Htrans].
        * exists kg, a'. split_and!; [by right|done|done].
      + exists kg, a'. split_and!; [by right|done|done]. }
  exists a'. split; [|done]. apply elem_of_list_bind. eauto.
Qed.

Lemma gathered_from (ys : list (@leftover V)) y : y ∈ gathered weigh ys → y ∈ ys.
Proof.
  assert (Forall (λ y, y ∈ ys) (gathered weigh ys)) as Hall.
  { apply squash_forall; [|by apply Forall_forall]. intros a g Ha Hg. unfold with_leftover.
    destruct (existsb _ _); [done|by constructor]. }
  rewrite Forall_forall in Hall. auto.
Qed.
Lemma gathered_covers (ys : list (@leftover V)) y : y ∈ ys →
  ∃ y', y' ∈ gathered weigh ys ∧ ∀ σ i, covers true σ y i → covers true σ y' i.
Proof.
  intros Hy. apply (squash_covers (λ y y', ∀ σ i, covers true σ y i → covers true σ y' i)); auto.
  intros a g a0 [->|Ha]%elem_of_cons; unfold with_leftover; destruct (existsb (within a) g) eqn:He.
  - apply existsb_exists in He as (y' & Hy'%elem_of_list_In & Hw). exists y'. split; [done|].
    intros. by eapply within_covers.
  - exists a. split; [left|done].
  - eauto.
  - exists a0. split; [by right|done].
Qed.

Lemma merge_covers c cs c0 : c0 ∈ c :: cs →
  ∃ c', c' ∈ merge weigh c cs ∧ taken c0 = taken c' ∧ more (now_in c0) (now_in c').
Proof.
  revert c0. induction cs as [|c1 cs IH]; intros c0; cbn.
  { intros ->%elem_of_list_singleton. exists c. split; [left|]. split; [done|apply more_refl]. }
  destruct (alike c c1) eqn:Ha.
  - apply alike_spec in Ha as [Ht (?&?&?&?&?)].
    assert (∀ y, y ∈ leftovers (now_in c) ++ leftovers (now_in c1) → ∀ σ i, covers true σ y i →
      ∃ y', y' ∈ leftovers (union weigh (now_in c) (now_in c1)) ∧ covers true σ y' i) as Hu.
    { intros y (y' & Hy' & Hc)%gathered_covers σ i Hy. eauto. }
    intros [->|[->|Hc]%elem_of_cons]%elem_of_cons.
    + eexists. split; [left|]. split; [done|]. split; [done|].
      intros σ i (y & ? & ?). eapply Hu; [|done]. apply elem_of_app. by left.
    + eexists. split; [left|]. split; [done|]. split; [done|].
      intros σ i (y & ? & ?). eapply Hu; [|done]. apply elem_of_app. by right.
    + exists c0. split; [by right|]. split; [done|apply more_refl].
  - intros Hc. assert (c0 = c1 ∨ c0 ∈ c :: cs) as [->|Hc'].
    { apply elem_of_cons in Hc as [->|[->|?]%elem_of_cons]; [right; left|by left|right; by right]. }
    + exists c1. split; [left|]. split; [done|apply more_refl].
    + destruct (IH _ Hc') as (c' & ? & ?). exists c'. split; [by right|done].
Qed.

Lemma merged_covers cs c0 : c0 ∈ cs →
  ∃ c', c' ∈ merged weigh cs ∧ taken c' = taken c0 ∧ more (now_in c0) (now_in c').
Proof.
  intros Hc. destruct (squash_covers (λ c c', taken c = taken c' ∧ more (now_in c) (now_in c'))
    (λ c, digest weigh (seen (now_in c)) :: digest_of_choices weigh (choices (now_in c)) :: taken c)
    (merge weigh) cs) with c0 as (c' & Hc' & Ht & Hm).
  - intros. split; [done|apply more_refl].
  - intros a b c [? ?] [? ?]. split; [congruence|by eapply more_trans].
  - intros c g c1 Hc1. by apply merge_covers.
  - done.
  - exists c'. split_and!; [exact Hc'|done|done].
Qed.

(** A property that merging keeps: that each leftover is backed, and what holds of all alike. *)
Definition backed (B : list nat → world → Prop) c : Prop :=
  leftovers (now_in c) ≠ [] ∧ ∀ y, y ∈ leftovers (now_in c) → ∃ w0, hangs y (now_in c) w0 ∧ B (taken c) w0.
Definition sane (n : nat) c : Prop := wf (now_in c) ∧ ∀ m, has m (taken c) = true → m < n.

Lemma union_leftovers w w' y : y ∈ leftovers (union weigh w w') → y ∈ leftovers w ∨ y ∈ leftovers w'.
Proof. intros Hy%gathered_from. by apply elem_of_app. Qed.

Lemma merge_forall (P : config → Prop) :
  (∀ c c', alike c c' = true → P c → P c' → P (Config (taken c') (union weigh (now_in c) (now_in c')))) →
  ∀ cs, Forall P cs → Forall P (merged weigh cs).
Proof.
  intros HP cs Hcs. apply squash_forall; [|done].
  intros c g Hc. induction 1 as [|c' g Hc' Hg IH]; cbn; [by constructor|].
  destruct (alike c c') eqn:Ha; constructor; auto.
Qed.

Lemma merged_backed B cs : Forall (backed B) cs → Forall (backed B) (merged weigh cs).
Proof.
  apply merge_forall. intros c c' [Ht Hb]%alike_spec [Hne Hc] [Hne' Hc']. split.
  - destruct (leftovers (now_in c')) as [|y ys] eqn:Hl; [done|]. intros Heq.
    destruct (gathered_covers (leftovers (now_in c) ++ leftovers (now_in c')) y) as (y' & Hy' & _).
    { rewrite Hl. apply elem_of_app. right. left. }
    cbn in Heq. unfold gathered in *. rewrite Heq in Hy'. by apply elem_of_nil in Hy'.
  - intros y [Hy|Hy]%union_leftovers; cbn.
    + destruct (Hc y Hy) as (w0 & [(?&?&?&?&?) ?] & HB). exists w0. rewrite <-Ht. split; [|done].
      destruct Hb as (?&?&?&?&?). split; [split_and!; cbn; congruence|done].
    + destruct (Hc' y Hy) as (w0 & ? & HB). exists w0. by split.
Qed.

Lemma merged_sane n cs : Forall (sane n) cs → Forall (sane n) (merged weigh cs).
Proof.
  apply merge_forall. intros c c' [Ht (Hb&Hs&Hp&Hch&Hn)]%alike_spec [(Hw1&Hw2&Hw3) Hc] [(Hw1'&Hw2'&Hw3') Hc'].
  split; [|done]. split_and!; [done|done|]. intros y [Hy|Hy]%union_leftovers; [|by apply Hw3'].
  change (shape_below (next (now_in c')) (kept y)). rewrite <-Hn. by apply Hw3.
Qed.

(** ** How far steps lead *)

Section Reach.
Context (p : profile) (tolerates : nat) (v : devices).

Lemma taking_spec x c c' : c' ∈ taking p tolerates v x c ↔
  ∃ w', w' ∈ entry_worlds p tolerates v (takes x) (now_in c) ∧ c' = Config (note (number x) (taken c)) w'.
Proof. unfold taking. rewrite elem_of_list_fmap. naive_solver. Qed.

Lemma growing_spec xs c c' : c' ∈ growing p tolerates v xs c ↔ ∃ x, x ∈ xs ∧ has (number x) (taken c) =
    false ∧
  c' ∈ taking p tolerates v x c.
Proof. unfold growing. rewrite elem_of_list_bind. split.
  - intros (x & Hc & Hx). exists x. destruct (has _ _); [by apply elem_of_nil in Hc|]. done.
  - intros (x & Hx & Hh & Hc). exists x. by rewrite Hh.
Qed.

Lemma elem_of_keep {A} (f : A → bool) (l : list A) a : a ∈ base.filter f l ↔ f a = true ∧ a ∈ l.
Proof. rewrite elem_of_list_filter, Is_true_true. done. Qed.

Lemma reach_forall (P : config → Prop) xs keep stop :
  (∀ cs, Forall P cs → Forall P (merged weigh cs)) →
  (∀ c c', P c → c' ∈ growing p tolerates v xs c → P c') →
  ∀ fuel cs work out work', Forall P cs → reach weigh p tolerates fuel v xs keep stop cs work = Some (out,
      work') →
  Forall P out.
Proof.
  intros Hmerge Hgrow. induction fuel as [|fuel IH]; intros cs work out work' Hcs; cbn [reach].
  { intros [= <- _]. rewrite Forall_forall in *. intros c [_ ?]%elem_of_keep. auto. }
  set (going := base.filter _ _). assert (Forall P going) as Hgoing.
  { rewrite Forall_forall in *. intros c [_ ?]%elem_of_keep. auto. }
  assert (Forall P (base.filter keep cs)) as Hkept.
  { rewrite Forall_forall in *. intros c [_ ?]%elem_of_keep. auto. }
  clearbody going. destruct going as [|c0 going]; [by intros [= <- _]|].
  destruct (spend _ _) as [work1|]; [|done].
  destruct (reach _ _ _ fuel _ _ _ _ _ _) as [[more1 work2]|] eqn:Hr; [|done]. intros [= <- _].
  apply Forall_app. split; [done|]. eapply IH, Hr. apply Hmerge. rewrite Forall_forall in *.
  intros c (c1 & Hc & Hc1)%elem_of_list_bind. eauto.
Qed.

(** The search finds what a run of steps leads to. *)
Lemma reach_finds xs keep stop ys : ∀ fuel cs c work out work' n σ s s',
  reach weigh p tolerates fuel v xs keep stop cs work = Some (out, work') → length ys ≤ fuel →
  Forall (sane n) cs → (∀ x, x ∈ xs → number x < n) →
  c ∈ cs → current p s → suits σ (choices (now_in c)) → beside true σ (now_in c) s →
  (∀ x, x ∈ ys → x ∈ xs ∧ has (number x) (taken c) = false ∧ devices_after tolerates v (takes x) = v) →
  NoDup (number <$> ys) → recorded_run p tolerates v s (takes <$> ys) s' →
  (∀ c1, (∀ m, has m (taken c1) = has m (taken c) || has m (number <$> ys)) → keep c1 = true) →
  (∀ c1 zs1 zs2, ys = zs1 ++ zs2 → zs2 ≠ [] →
    (∀ m, has m (taken c1) = has m (taken c) || has m (number <$> zs1)) → stop c1 = false) →
  ∃ c' σ', c' ∈ out ∧ (∀ m, has m (taken c') = has m (taken c) || has m (number <$> ys)) ∧
    suits σ' (choices (now_in c')) ∧ beside true σ' (now_in c') s' ∧ current p s'.
Proof.
  induction ys as [|x ys IH]; intros fuel cs c work out work' n σ s s' Hr Hfuel Hsane Hnum Hc Hcur Hs Hov Hys
    Hnd Hrun Hkeep Hstop.
  - inversion Hrun; subst. exists c, σ. split_and!; try done; [|by intros; rewrite orb_false_r].
    assert (c ∈ base.filter keep cs) as Hin.
    { apply elem_of_keep. split; [|done]. apply Hkeep. intros. by rewrite orb_false_r. }
    destruct fuel as [|fuel]; cbn [reach] in Hr; [by injection Hr as <- _|].
    destruct (base.filter _ _) as [|c0 going] eqn:Hg in Hr; [by injection Hr as <- _|].
    destruct (spend _ _) as [work1|]; [|done].
    destruct (reach _ _ _ fuel _ _ _ _ _ _) as [[more1 work2]|]; [|done]. injection Hr as <- _.
    apply elem_of_app. by left.
  - destruct fuel as [|fuel]; [cbn in Hfuel; lia|]. cbn [reach] in Hr.
    destruct (Hys x) as (Hx & Hnot & Hdev); [left|].
    assert (stop c = false) as Hgo.
    { apply (Hstop c [] (x :: ys)); [done|done|]. intros. by rewrite orb_false_r. }
    inversion Hrun as [|? s1 ? ? Hstep Hrest]; subst. rewrite Hdev in Hrest.
    assert (wf (now_in c)) as Hwf by (rewrite Forall_forall in Hsane; by apply Hsane).
    destruct (entry_over p tolerates v σ (now_in c) s (takes x) s1) as (w1 & σ1 & Hw1 & Hs1 & Hov1);
        [done..|].
    set (c1 := Config (note (number x) (taken c)) w1).
    destruct (base.filter (λ c, negb (stop c)) cs) as [|c0 going] eqn:Hg.
    { assert (c ∈ base.filter (λ c, negb (stop c)) cs) as Hin by (apply elem_of_keep; by rewrite Hgo).
      rewrite Hg in Hin. by apply elem_of_nil in Hin. }
    rewrite <-Hg in Hr. set (grown := base.filter (λ c, negb (stop c)) cs ≫= growing p tolerates v xs) in *.
    assert (c1 ∈ grown) as Hc1.
    { apply elem_of_list_bind. exists c. split; [|apply elem_of_keep; by rewrite Hgo].
      apply growing_spec. exists x. split_and!; [done|done|]. apply taking_spec. eauto. }
    destruct (spend _ _) as [work1|]; [|done].
    destruct (reach _ _ _ fuel _ _ _ _ _ _) as [[more1 work2]|] eqn:Hr1; [|done]. injection Hr as <- _.
    destruct (merged_covers grown c1 Hc1) as (c2 & Hc2 & Ht2 & Hm2). cbn in Ht2, Hm2.
    pose proof Hm2 as [(_&_&_&Hch2&_) _].
    assert (∀ m, has m (taken c2) = has m (taken c) || has m [number x]) as Hhas.
    { intros m. rewrite Ht2, has_note. cbn. rewrite orb_false_r. apply orb_comm. }
    apply NoDup_cons in Hnd as [Hnx Hnd].
    destruct (IH fuel (merged weigh grown) c2 work1 more1 work2 n σ1 s1 s') as (c' & σ' & Hc' & Hhas' & ?).
    + done.
    + cbn in Hfuel. lia.
    + apply merged_sane. rewrite Forall_forall in *.
      intros c3 (c4 & (x3 & Hx3 & _ & (w3 & Hw3 & ->)%taking_spec)%growing_spec
        & [_ Hc4]%elem_of_keep)%elem_of_list_bind.
      destruct (Hsane _ Hc4) as [? Ht]. split; [by eapply entry_wf|]. cbn. intros m.
      rewrite has_note, orb_true_iff, same_eq. intros [->|?]; auto.
    + done.
    + done.
    + by eapply entry_current.
    + by rewrite <-Hch2.
    + by eapply more_over.
    + intros y Hy. destruct (Hys y) as (? & ? & ?); [by right|]. split_and!; [done| |done].
      rewrite Hhas. cbn. rewrite orb_false_r. apply orb_false_iff. split; [done|].
      apply same_neq. intros Heq. apply Hnx. rewrite <-Heq. apply elem_of_list_fmap. eauto.
    + done.
    + done.
    + intros c3 Hc3. apply Hkeep. intros m. rewrite Hc3, Hhas. cbn. rewrite orb_false_r. by rewrite orb_assoc.
    + intros c3 zs1 zs2 -> Hzs Hc3. apply (Hstop c3 (x :: zs1) zs2); [done|done|]. intros m.
      rewrite Hc3, Hhas. cbn. rewrite orb_false_r. by rewrite orb_assoc.
    + exists c', σ'. split; [apply elem_of_app; by right|]. split; [|done]. intros m.
      rewrite Hhas', Hhas. cbn. rewrite orb_false_r. by rewrite orb_assoc.
Qed.

End Reach.

(** ** What must be tried before a step *)

Lemma is_in_spec x xs : is_in x xs = true ↔ ∃ x', x' ∈ xs ∧ number x' = number x.
Proof. unfold is_in. rewrite existsb_exists. setoid_rewrite <-elem_of_list_In. setoid_rewrite same_eq.
  naive_solver. Qed.

Lemma ahead_spec p fuel (xs : list (step_of V)) : ∀ ys, (∀ x, x ∈ ys → x ∈ xs) →
  let zs := ahead fuel p xs ys in
  (∀ z, z ∈ zs → z ∈ xs) ∧ (∀ x, x ∈ ys → is_in x zs = true) ∧
  (∀ x, x ∈ xs → is_in x zs = true ∨ ∀ z, z ∈ zs → needs p (takes z) (takes x) = false).
Proof.
  assert (∀ ys : list (step_of V), (∀ x, x ∈ ys → x ∈ xs) → ∀ x, x ∈ ys → is_in x xs = true) as Hin.
  { intros ys Hys y Hy. apply is_in_spec. eauto. }
  induction fuel as [|fuel IH]; intros ys Hys; cbn [ahead].
  - destruct (forallb _ _) eqn:Hall.
    + split_and!; [done|by intros; apply is_in_spec; eauto|]. intros x Hx. rewrite forallb_forall in Hall.
      specialize (Hall x (proj1 (elem_of_list_In _ _) Hx)). apply orb_true_iff in Hall as [?|Hall]; [by
          left|].
      right. intros z Hz. apply negb_true_iff in Hall. destruct (needs _ _ _) eqn:Hc; [|done].
      rewrite <-Hall. symmetry. apply existsb_exists. exists z. by rewrite <-elem_of_list_In.
    + split_and!; [done|by eapply Hin|]. intros x Hx. left. apply is_in_spec. eauto.
  - destruct (forallb _ _) eqn:Hall.
    + split_and!; [done|by intros; apply is_in_spec; eauto|]. intros x Hx. rewrite forallb_forall in Hall.
      specialize (Hall x (proj1 (elem_of_list_In _ _) Hx)). apply orb_true_iff in Hall as [?|Hall]; [by
          left|].
      right. intros z Hz. apply negb_true_iff in Hall. destruct (needs _ _ _) eqn:Hc; [|done].
      rewrite <-Hall. symmetry. apply existsb_exists. exists z. by rewrite <-elem_of_list_In.
    + set (zs := base.filter _ xs). destruct (IH zs) as (Hz1 & Hz2 & Hz3).
      { intros y [_ ?]%elem_of_keep. done. }
      split_and!; [done| |done]. intros y Hy.
      assert (y ∈ zs) as Hyz.
      { apply elem_of_keep. split; [|auto]. apply orb_true_iff. left. apply is_in_spec. eauto. }
      by apply Hz2.
Qed.

End OverlappingSearch.
