(** Over reliable stores the disk shows what the disk shows that has its log, slots and segments at hand
([follows_step]): what the legs hold of it while it is on, and when its power is off. *)
From LogDisk Require Export CompositionPerformance CompositionCapacityCorrect.
Import LogStructuredDisk LogStructuredDiskReading LogStructuredDiskInvariant LogStructuredDiskRefinement.
Import CompositionSegments. Import Redundancy(Attempt, intended, writing).

Section performance_leg.
  Context {V : Type} `{Value V} (K : design) (cp : RedundancyCode.code (page V)) (cc : RedundancyCode.code V).
  Context (room : nat).
  Notation ring := (S room). Notation store := (Redundancy.store (V := page V)).
  Notation disk := CompositionPerformance.disk.
  Notation place_of := (place_of room). Notation found := (found room).
  Notation host_does := (host_does K cc room).
  Implicit Types (c : state V) (sp : store) (h : nat → list (page V)) (i : checkpoint) (r : record V).
  Implicit Types (m : host (V := V)).

  (** ** What the leg holds *)

  (** While the disk is on. *)
  Record kept_on m sp : Prop := KeptOn {
    on_records n r : first (disk m) ≤ n < durable m → history (disk m) !! n = Some r →
      Redundancy.stripe_of sp (place_of n) = [Entry n r];
    on_room : durable m ≤ first (disk m) + ring;
    on_durable : flushed (dev (disk m)) ≤ durable m ≤ logged (disk m);
    on_none_later s n r : Redundancy.stripe_of sp s = [Entry n r] → n < durable m;
    on_slot_a : slot_in 0 (Redundancy.stripe_of sp 0) = slot_a (dev (disk m));
    on_slot_b : slot_in 1 (Redundancy.stripe_of sp 1) = slot_b (dev (disk m));
    on_pending s a : Redundancy.pending sp !! s = Some a →
      (logging m ∧ s = place_of (durable m) ∧ ∃ r, history (disk m) !! durable m = Some r ∧
        durable m < first (disk m) + ring ∧ a = Attempt [Entry (durable m) r] (Some [Entry (durable m) r])) ∨
      (saving m ∧ s = older (dev (disk m)) ∧ ∃ i, nodes (mem (disk m)) = Some i ∧
        upto i ≤ flushed (dev (disk m)) ∧ a = Attempt [Slot i] (Some [Slot i]));
  }.

  (** What the stripes may read as once every write that was cut short has ended. *)
  Definition settles sp h : Prop :=
    ∀ s, h s = Redundancy.stripe_of sp s ∨ ∃ a, Redundancy.pending sp !! s = Some a ∧ h s = intended a.

  (** A disk that is off, were its stripes to read as [h]. *)
  Record kept_off c h : Prop := KeptOff {
    off_begins : first c = log_begins h;
    off_records k r : log (dev c) !! k = Some r → h (place_of (first c + k)) = [Entry (first c + k) r];
    off_room : length (log (dev c)) ≤ ring;
    off_none_later s n r : h s = [Entry n r] → n < logged c;
    off_slot_a : slot_in 0 (h 0) = slot_a (dev c);
    off_slot_b : slot_in 1 (h 1) = slot_b (dev c);
  }.

  Definition settling sp : Prop := ∀ s a, Redundancy.pending sp !! s = Some a →
    s < 2 + ring ∧ ∀ v, writing a = Some v → v = Redundancy.stripe_of sp s ∨ v = intended a.

  (** The disk that has its log, slots and segments at hand, and the records that its log forgot, shows the
  same; which of them it is when power has
  failed, only the writes that were cut short will tell. *)
  Definition shown (blocks : nat) tr c st : Prop :=
    ∃ S ps, length ps = first c ∧
      shows (log_structured_disk K) (initial blocks) tr (on_segments S (with_past ps c)) ∧
      stands_for K cc (with_past ps c) st S.

  Inductive follows (blocks : nat) tr m sp st : Prop :=
    | follows_on : at_phase (disk m) ≠ Off → shown blocks tr (disk m) st → kept_on m sp →
        follows blocks tr m sp st
    | follows_off : at_phase (disk m) = Off → settling sp →
        (∀ h, settles sp h → ∃ c, at_phase c = Off ∧ disk m = powered_off (pending c) c ∧
          shown blocks tr c st ∧ kept_off c h) →
        follows blocks tr m sp st.

  Lemma place_inj n k : n < k + ring → k < n + ring → place_of n = place_of k → n = k.
  Proof. unfold place_of. intros L1 L2 M%Nat.add_cancel_l. pose proof (Nat.div_mod n ring ltac:(lia)) as Hn.
    pose proof (Nat.div_mod k ring ltac:(lia)) as Hk. rewrite M in Hn. generalize dependent (k `mod` ring).
    intros x _ Hn Hk.
    destruct (lt_eq_lt_dec (n `div` ring) (k `div` ring)) as [[?|E]|?]; [nia|rewrite E in Hn; lia|nia]. Qed.

  Lemma place_lt n : 2 ≤ place_of n < 2 + ring.
  Proof. unfold place_of. pose proof (Nat.mod_upper_bound n ring). lia. Qed.

  Lemma older_two (s : devices V) : older s = 0 ∨ older s = 1.
  Proof. unfold older. repeat case_match; auto. Qed.

  Lemma found_unique h n rs rs' : found h n rs → found h n rs' → rs = rs'.
  Proof.
    intros [F L] [F' L']. assert (length rs = length rs') as E.
    { destruct (lt_eq_lt_dec (length rs) (length rs')) as [[C|]|C]; [|done|]; exfalso.
      - destruct (lookup_lt_is_Some_2 rs' _ C) as [r Hr]. by apply (L r), F'.
      - destruct (lookup_lt_is_Some_2 rs _ C) as [r Hr]. by apply (L' r), F. }
    apply list_eq. intros k. destruct (rs !! k) as [r|] eqn:Hr.
    - apply F in Hr as Hh. destruct (rs' !! k) as [r'|] eqn:Hr'; [apply F' in Hr'; congruence|].
      apply lookup_ge_None in Hr'. apply lookup_lt_Some in Hr. lia.
    - symmetry. apply lookup_ge_None. apply lookup_ge_None in Hr. lia.
  Qed.

  Lemma log_only_grows c es c' : step K c es c' → at_phase c' ≠ Off →
    first c ≤ first c' ∧ (∀ n r, history c !! n = Some r → history c' !! n = Some r) ∧ logged c ≤ logged c' ∧
    (flushed (dev c') = flushed (dev c) ∨ flushed (dev c') = logged c).
  Proof.
    intros D On. destruct D; try done; simpl; try (by split_and!; auto).
    - rewrite history_submit. unfold logged. simpl. rewrite app_length. split_and!; [done| |lia|by left].
      intros n r' E. by apply lookup_app_l_Some.
    - unfold clean. destruct (chunks_in _ _); by split_and!; auto.
    - destruct (commit_same i c) as (-> & -> & -> & Efl & _). simpl in Efl. rewrite Efl. by split_and!; auto.
    - rewrite <-!history_length, history_truncate. split_and!; auto. unfold first. simpl.
      rewrite take_length, history_length. unfold logged, first in *. lia.
  Qed.

  Lemma disk_grows c es cs c' : disk_does K cc c es cs c' → at_phase c' ≠ Off →
    first c ≤ first c' ∧ (∀ n r, history c !! n = Some r → history c' !! n = Some r) ∧ logged c ≤ logged c' ∧
    (flushed (dev c') = flushed (dev c) ∨ flushed (dev c') = logged c) ∧
    (at_phase c = Off → with_segments (dev c') ∅ = with_segments (dev c) ∅).
  Proof. intros [rd c1 qs _ D _ _] On. destruct (log_only_grows _ _ _ D On) as (G1 & G2 & G3 & G4).
    split_and!; try done. intros Off. simpl in On. inversion D; subst; simpl in *; congruence || done. Qed.

  (** ** Each step *)

  Context (HK : sound K).

  Lemma disk_with_past ps c es cs c' : disk_does K cc c es cs c' → length ps = first c →
    ∃ ps', length ps' = first c' ∧ disk_does K cc (with_past ps c) es cs (with_past ps' c').
  Proof.
    intros [rd c1 qs Hall D Clean A] L. destruct (step_with_past K ps _ _ _ D L) as (ps' & L' & D').
    exists ps'. split; [done|]. apply (disk_step K cc (with_past ps c) es rd (with_past ps' c1) qs); try done.
    destruct A; by constructor.
  Qed.

  Lemma shown_step blocks tr c st es cs c' st' :
    shown blocks tr c st → disk_does K cc c es cs c' → store_does cc st cs st' →
      shown blocks (tr ++ es) c' st'.
  Proof.
    intros (S & ps & L & T & St) D Sd. destruct (disk_with_past ps _ _ _ _ D L) as (ps' & L' & D').
    destruct (capacity_step K cc _ st S es cs _ st' HK St D' Sd) as (S' & D1 & St').
    exists S', ps'. split; [done|]. split; [|done]. eapply steps_app; [done|]. rewrite <-(app_nil_r es).
    econstructor; [done|constructor].
  Qed.

  (** A step that concerns no segment. *)
  Lemma shown_own blocks tr c st c' : shown blocks tr c st →
    (∀ S, step K (on_segments S c) [] (on_segments S c')) →
    segments (dev c') = segments (dev c) → table (mem c') = table (mem c) → shown blocks tr c' st.
  Proof.
    intros (S & ps & L & T & [I So Sm Ss]) D Sg Tb. destruct (step_with_past K ps _ _ _ (D S) L)
      as (ps' & L' & D').
    exists S, ps'. split; [done|]. split.
    - rewrite <-(app_nil_r tr). eapply steps_app; [done|].
      apply (shows_step (log_structured_disk K) _ [] _ [] _ D'); constructor.
    - split; [by eapply step_invariant|..]; unfold is_open in *; simpl in *; rewrite ?Sg, ?Tb; done.
  Qed.

  Lemma shown_commit blocks tr c st i : shown blocks tr c st → at_phase c ≠ Off → nodes (mem c) = Some i →
    upto i ≤ flushed (dev c) → shown blocks tr (commit i c) st.
  Proof.
    intros Sh On Hi U. destruct (replace_older_same (Some i) (dev c)) as (_ & _ & _ & Seg).
    apply (shown_own _ _ _ _ _ Sh); [|done..]. intros S.
    rewrite <-on_segments_commit. by apply (CheckpointCommit K (on_segments S c) i).
  Qed.

  Lemma shown_truncate blocks tr c st i : shown blocks tr c st → at_phase c ≠ Off →
    newest (dev c) = Some i → first c ≤ upto i → shown blocks tr (truncate (upto i) c) st.
  Proof.
    intros Sh On Hi U. apply (shown_own _ _ _ _ _ Sh); [|done..]. intros S.
    apply (Truncate K (on_segments S c) i); [done|by left|done].
  Qed.

  (** What the invariant says of the log. *)
  Lemma shown_log blocks tr c st : shown blocks tr c st → first c ≤ flushed (dev c) ≤ logged c ∧
    (∃ i, newest (dev c) = Some i ∧ first c ≤ upto i ≤ flushed (dev c)) ∧
    (at_phase c = Off → mem c = no_memory ∧ flushed (dev c) = logged c).
  Proof.
    intros (S & ps & L & _ & [I _ _ _]). assert (logged (with_past ps c) = logged c) as Lg.
    { unfold logged, first in *. simpl. lia. }
    pose proof (log_flushed _ _ I) as LF. destruct (newest_holds _ _ I) as (i & Ni & Ui & _).
    change (length ps ≤ flushed (dev c) ≤ logged (with_past ps c)) in LF. rewrite L, Lg in LF.
    change (length ps ≤ upto i ≤ flushed (dev c)) in Ui. rewrite L in Ui.
    split_and!; [lia..|by exists i|]. intros Off. split; [by apply (memory_lost _ _ I)|].
    rewrite <-Lg. apply (recovery_flushed _ _ I). simpl. by rewrite Off.
  Qed.

  Lemma log_begins_newest h c i : slot_in 0 (h 0) = slot_a (dev c) → slot_in 1 (h 1) = slot_b (dev c) →
    newest (dev c) = Some i → log_begins h = upto i.
  Proof. unfold log_begins. intros -> -> N. unfold newest in *. simpl. by rewrite N. Qed.

  Definition crashed keep c : state V :=
    keep_open (crash keep false ∅ (on_segments (segments (dev c) ∪ ∅) c)).

  Lemma crash_does keep c : flushed (dev c) ≤ keep ≤ logged c →
    disk_does K cc c [shown_by_crash c] [Does Redundancy.Crash] (crashed keep c).
  Proof.
    intros L. replace [Does Redundancy.Crash] with (reads (V := V) ∅ ++ [Does Redundancy.Crash])
      by (unfold reads; by rewrite map_to_list_empty).
    apply (disk_step K cc c _ ∅ (crash keep false ∅ (on_segments (segments (dev c) ∪ ∅) c))
      [Does Redundancy.Crash]); try done.
    - by apply (Crash K (on_segments (segments (dev c) ∪ ∅) c)).
    - by constructor.
  Qed.

  Lemma crashed_kept keep c h : flushed (dev c) ≤ keep ≤ logged c → first c ≤ keep → first c = log_begins h →
    (∀ n r, first c ≤ n < keep → history c !! n = Some r → h (place_of n) = [Entry n r]) →
      keep ≤ first c + ring →
    (∀ s n r, h s = [Entry n r] → n < keep) →
    slot_in 0 (h 0) = slot_a (dev c) → slot_in 1 (h 1) = slot_b (dev c) → kept_off (crashed keep c) h.
  Proof.
    intros L F Be Rec Room Later A B. assert (first (crashed keep c) = first c) as E by done.
    assert (length (take (keep - first c) (log (dev c))) = keep - first c) as Len.
    { rewrite take_length. unfold logged, first in *. lia. }
    split; rewrite ?E; simpl; try done.
    - intros k r Hk. change (take (keep - first c) (log (dev c)) !! k = Some r) in Hk.
      pose proof (lookup_lt_Some _ _ _ Hk) as Lt. rewrite Len in Lt.
      rewrite lookup_take in Hk by done. apply Rec; [lia|]. unfold history, first.
      rewrite lookup_app_r by lia. by replace (_ + k - _) with k by lia.
    - change (length (take (keep - first c) (log (dev c))) ≤ ring). lia.
    - intros s n r Hn%Later. unfold logged. simpl.
      change (n < first c + length (take (keep - first c) (log (dev c)))). lia.
  Qed.

  (** Power fails: what every write that was under way leaves says which of the disks this was. *)
  Lemma power_fails blocks tr m sp st st' h : at_phase (disk m) ≠ Off → shown blocks tr (disk m) st →
    kept_on m sp →
    settles sp h → store_does cc st [Does Redundancy.Crash] st' →
    ∃ c, at_phase c = Off ∧ powered_off None (disk m) = powered_off (pending c) c ∧
      shown blocks (tr ++ [shown_by_crash (disk m)]) c st' ∧ kept_off c h.
  Proof.
    intros On Sh [Rec Room [Fl Dl] Later A B Pend] Hh Cr.
    assert (∃ c, shown blocks tr c st ∧ shown_by_crash c = shown_by_crash (disk m) ∧
      size c = size (disk m) ∧ history c = history (disk m) ∧ first c = first (disk m) ∧
      at_phase c ≠ Off ∧ flushed (dev c) = flushed (dev (disk m)) ∧
      slot_in 0 (h 0) = slot_a (dev c) ∧ slot_in 1 (h 1) = slot_b (dev c))
        as (c & Sc & Ec & Po & Hi & Fi & Onc & Fc & Ac & Bc).
    { assert (∀ s, s < 2 → h s = Redundancy.stripe_of sp s ∨ saving m ∧ s = older (dev (disk m)) ∧
      ∃ i, nodes (mem (disk m)) = Some i ∧
        upto i ≤ flushed (dev (disk m)) ∧ h s = [Slot i]) as Slots.
      { intros s Ls. destruct (Hh s) as [?|(a & Pa & Ia)]; [by left|].
        destruct (Pend _ _ Pa) as [(_ & -> & _)|(Sv & Es & i & Ni & Ui & ->)].
        - pose proof (place_lt (durable m)). lia.
        - right. split_and!; [done..|]. by exists i. }
      destruct (Slots 0 ltac:(lia)) as [E0|(_ & E0 & i & Ni & Ui & H0)],
        (Slots 1 ltac:(lia)) as [E1|(_ & E1 & j & Nj & Uj & H1)].
      - exists (disk m). rewrite E0, E1. by split_and!.
      - exists (commit j (disk m)). split; [by apply shown_commit|].
        destruct (replace_older_same (Some j) (dev (disk m))) as (Ep & El & Ef & _).
        unfold history, first. simpl. rewrite Ep, El, Ef.
        split_and!; try done; rewrite ?E0, ?H1, ?A; simpl;
          revert E1; unfold older, replace_older; repeat case_match; done.
      - exists (commit i (disk m)). split; [by apply shown_commit|].
        destruct (replace_older_same (Some i) (dev (disk m))) as (Ep & El & Ef & _).
        unfold history, first. simpl. rewrite Ep, El, Ef.
        split_and!; try done; rewrite ?E1, ?H0, ?B; simpl;
          revert E0; unfold older, replace_older; repeat case_match; done.
      - congruence. }
    destruct (shown_log _ _ _ _ Sc) as (_ & (i & Ni & Ui) & _).
    (* where the log of this disk begins is read from its slots *)
    assert (∃ c, shown blocks tr c st ∧ shown_by_crash c = shown_by_crash (disk m) ∧
      size c = size (disk m) ∧ history c = history (disk m) ∧ first (disk m) ≤ first c ∧
      first c = log_begins h ∧ flushed (dev c) = flushed (dev (disk m)) ∧
      slot_in 0 (h 0) = slot_a (dev c) ∧ slot_in 1 (h 1) = slot_b (dev c)) as Tr.
    { exists (truncate (upto i) c). split; [apply shown_truncate; [done..|lia]|].
      assert (first (truncate (upto i) c) = upto i) as Ft.
      { unfold first at 1. simpl. rewrite take_length, history_length.
        destruct (shown_log _ _ _ _ Sc) as (LF & _). lia. }
      rewrite history_truncate, Ft, (log_begins_newest h c i) by done. split_and!; try done; lia. }
    clear c Sc Ec Po Hi Fi Onc Fc Ac Bc i Ni Ui.
    destruct Tr as (c & Sc & Ec & Po & Hi & Fi & Be & Fc & Ac & Bc).
    destruct (shown_log _ _ _ _ Sc) as (LF & _).
    assert (logged c = logged (disk m)) as Lc by (by rewrite <-!history_length, Hi).
    assert (∃ keep, durable m ≤ keep ≤ logged c ∧ keep ≤ first c + ring ∧
      (∀ n r, first c ≤ n < keep → history c !! n = Some r → h (place_of n) = [Entry n r]) ∧
      (∀ s n r, h s = [Entry n r] → n < keep)) as (keep & [Lk Uk] & Rk & Reck & Laterk).
    { assert (∀ s n r, h s = [Entry n r] → n < durable m ∨ n = durable m ∧ s = place_of n ∧
      is_Some (Redundancy.pending sp !! s)) as Which.
      { intros s n r Hn. destruct (Hh s) as [E|(a & Pa & Ia)]; [left; eapply Later; by rewrite <-E|].
        destruct (Pend _ _ Pa) as [(_ & -> & r' & _ & _ & ->)|(_ & _ & i & _ & _ & ->)]; simpl in Ia;
          [|congruence].
        assert (durable m = n) as <- by congruence. right. by split_and!. }
      assert (∀ n r, first c ≤ n < durable m → history c !! n = Some r → h (place_of n) = [Entry n r]) as Old.
      { intros n r Hn Hr. rewrite Hi in Hr. destruct (Hh (place_of n)) as [->|(a & Pa & _)];
        [apply Rec; [lia|done]|].
        destruct (Pend _ _ Pa) as [(_ & E & r' & _ & Rm & _)|(_ & E & _)].
        - apply place_inj in E; lia.
        - pose proof (place_lt n). destruct (older_two (dev (disk m))); lia. }
      destruct (Hh (place_of (durable m))) as [E|(a & Pa & Ia)].
      - exists (durable m). split; [lia|]. split; [lia|]. split; [done|]. intros s n r Hn.
        destruct (Which s n r Hn) as [?|(-> & -> & _)]; [done|]. rewrite E in Hn. by apply Later in Hn.
      - destruct (Pend _ _ Pa) as [(_ & _ & r & Hr & Rm & ->)|(_ & E & _)];
          [|pose proof (place_lt (durable m)); destruct (older_two (dev (disk m))); lia].
        exists (S (durable m)). pose proof (lookup_lt_Some _ _ _ Hr) as Lr. rewrite history_length in Lr.
        split; [lia|]. split; [lia|]. split.
        + intros n r' Hn Hr'. destruct (decide (n = durable m)) as [->|]; [|apply Old; [lia|done]].
          rewrite Ia. simpl. congruence.
        + intros s n r' Hn. destruct (Which s n r' Hn) as [?|(-> & _)]; lia. }
    exists (crashed keep c). split; [done|]. split; [by unfold powered_off; rewrite <-Po|]. split.
    - rewrite <-Ec. eapply shown_step; [done|apply crash_does|done]. lia.
    - apply crashed_kept; try done; lia.
  Qed.

  Context (W : RedundancyCode.whole cp).

  Lemma does_one {B} (c : RedundancyCode.code B) (st st' : Redundancy.store (V := B)) a :
    store_does c st [Does a] st' → Redundancy.store_step c st a st'.
  Proof. intros D. inversion D as [|? ? ? ? _ S E|]; subst. by inversion E; subst. Qed.

  Lemma crash_settling sp sp' : settling sp → store_does cp sp [Does Redundancy.Crash] sp' →
    settling sp' ∧ ∀ h, settles sp' h → settles sp h.
  Proof.
    intros F D%does_one. inversion D; subst; [|done]. unfold settling, settles. simpl.
    setoid_rewrite lookup_fmap. split.
    - intros s a (b & Hb & ->)%fmap_Some. simpl. split; [by apply (F s b)|done].
    - intros h Hh s. destruct (Hh s) as [?|(a & (b & Hb & ->)%fmap_Some & Ia)];
      [by left|]. right. by exists b.
  Qed.

  (** Whatever the host was before the step, the disk that has everything at hand follows it. *)
  Definition followed m es ps cs m' : Prop := ∀ blocks tr sp st sp' st',
    follows blocks tr m sp st → store_does cp sp ps sp' → store_does cc st cs st' →
    follows blocks (tr ++ es) m' sp' st'.

  (** A step of the disk itself. *)
  Lemma follows_disk m es cs c' :
    at_phase (disk m) ≠ Off → at_phase c' ≠ Off → disk_does K cc (disk m) es cs c' →
    slot_a (dev c') = slot_a (dev (disk m)) → slot_b (dev c') = slot_b (dev (disk m)) →
    (flushed (dev c') = flushed (dev (disk m)) ∨ durable m = logged (disk m)) →
    (saving m → nodes (mem c') = nodes (mem (disk m))) →
    followed m es [] cs (Host c' (durable m) (logging m) (saving m)).
  Proof.
    intros On On' D Ea Eb Ef En blocks tr sp st sp' st' F Sp Sc.
    inversion Sp; subst. destruct F as [_ Sh [Rec Room [Fl Dl] Later A B Pend]|]; [|done].
    destruct (disk_grows _ _ _ _ D On') as (G1 & G2 & G3 & G4 & _).
    apply follows_on; [done|by eapply shown_step|]. split; simpl; try done.
    + intros n r Hn Hr. destruct (lookup_lt_is_Some_2 (history (disk m)) n) as [r' Hr'].
      { rewrite history_length. lia. }
      pose proof (G2 n r' Hr') as E. assert (r' = r) as ->
        by (rewrite <-(inj Some _ _ (eq_trans (eq_sym Hr) E)); done).
      apply Rec; [lia|done].
    + lia.
    + lia.
    + by rewrite A, <-Ea.
    + by rewrite B, <-Eb.
    + intros s a Pa. destruct (Pend s a Pa) as [(L & -> & r & Hr & Rm & ->)|(Sv & -> & i & Hi & U & ->)];
      [left|right].
      * split_and!; [done..|]. exists r. split_and!; [by apply G2|lia|done].
      * split; [done|]. split; [unfold older; by rewrite Ea, Eb|]. exists i. rewrite En by done.
        split_and!; [done|lia|done].
  Qed.

  (** A record is written. *)
  Lemma follows_log m r :
    at_phase (disk m) ≠ Off → logging m = false → history (disk m) !! durable m = Some r →
    durable m < first (disk m) + ring →
    followed m [] [Does (Redundancy.Write (place_of (durable m)) [Entry (durable m) r])] []
      (Host (disk m) (durable m) true (saving m)).
  Proof.
    intros On Lo Hr Rm blocks tr sp st sp' st' F Sp Sc.
    inversion Sc; subst. apply does_one in Sp. destruct F as [_ Sh [Rec Room [Fl Dl] Later A B Pend]|];
      [|done].
    rewrite app_nil_r. inversion Sp as [? ? Pn Ln| | | | |]; subst; [|done]. apply follows_on; [done..|].
    split; simpl; try done. intros s a [[<- <-]|[N Pa]]%lookup_insert_Some; [left|right].
    + split_and!; [done..|]. by exists r.
    + destruct (Pend s a Pa) as [(L & _)|?]; [by rewrite Lo in L|done].
  Qed.

  (** It has reached the leg. *)
  Lemma follows_logged m :
    at_phase (disk m) ≠ Off → logging m →
    followed m [] [Does (Redundancy.Acknowledge (place_of (durable m)))] []
      (Host (disk m) (S (durable m)) false (saving m)).
  Proof.
    intros On Lo blocks tr sp st sp' st' F Sp Sc.
    inversion Sc; subst. apply does_one in Sp.
    destruct F as [_ Sh [Rec Room [Fl Dl] Later A B Pend]|]; [|done]. rewrite app_nil_r.
    inversion Sp as [| |? n v Pa| | |]; subst; [|done]. pose proof (place_lt (durable m)) as Lt.
    destruct (Pend _ _ Pa) as [(_ & _ & r & Hr & Rm & [= -> ->])|(_ & E & _)];
      [|destruct (older_two (dev (disk m))); lia]. pose proof (lookup_lt_Some _ _ _ Hr) as Lr.
    rewrite history_length in Lr. apply follows_on; [done..|]. split; simpl; try done; try lia.
    + intros n r' Hn Hr'. destruct (decide (n = durable m)) as [->|N].
      * rewrite fn_lookup_insert. congruence.
      * rewrite fn_lookup_insert_ne; [apply Rec; [lia|done]|]. intros E%place_inj; lia.
    + intros s n r'. destruct (decide (s = place_of (durable m))) as [->|N].
      * rewrite fn_lookup_insert. intros [= <- _]. lia.
      * rewrite fn_lookup_insert_ne by done. intros ?%Later. lia.
    + intros s a [N Ps]%lookup_delete_Some. destruct (Pend s a Ps) as [(_ & -> & _)|?]; [done|by right].
  Qed.

  (** A checkpoint is written. *)
  Lemma follows_save m i :
    at_phase (disk m) ≠ Off → nodes (mem (disk m)) = Some i → upto i ≤ flushed (dev (disk m)) →
    followed m [] [Does (Redundancy.Write (older (dev (disk m))) [Slot i])] []
      (Host (disk m) (durable m) (logging m) true).
  Proof.
    intros On Hi U blocks tr sp st sp' st' F Sp Sc.
    inversion Sc; subst. apply does_one in Sp. destruct F as [_ Sh [Rec Room [Fl Dl] Later A B Pend]|];
      [|done].
    rewrite app_nil_r. inversion Sp as [? ? Pn Ln| | | | |]; subst; [|done]. apply follows_on; [done..|].
    split; simpl; try done. intros s a [[<- <-]|[N Pa]]%lookup_insert_Some; [right|].
    + split_and!; [done..|]. by exists i.
    + destruct (Pend s a Pa) as [?|(_ & E & _)]; [by left|done].
  Qed.

  (** It is the newest. *)
  Lemma follows_commit m i :
    at_phase (disk m) ≠ Off → saving m → nodes (mem (disk m)) = Some i →
    followed m [] [Does (Redundancy.Acknowledge (older (dev (disk m))))] []
      (Host (commit i (disk m)) (durable m) (logging m) false).
  Proof.
    intros On Sv Hi blocks tr sp st sp' st' F Sp Sc.
    inversion Sc; subst. apply does_one in Sp. destruct F as [_ Sh [Rec Room [Fl Dl] Later A B Pend]|];
      [|done].
    rewrite app_nil_r. inversion Sp as [| |? n v Pa| | |]; subst; [|done].
    destruct (Pend _ _ Pa) as [(_ & E & _)|(_ & _ & j & Hj & U & [= -> ->])];
      [pose proof (place_lt (durable m)); destruct (older_two (dev (disk m))); lia|].
    assert (j = i) as -> by congruence. destruct (replace_older_same (Some i) (dev (disk m)))
      as (Ep & El & Ef & _).
    assert (∀ n, place_of n ≠ older (dev (disk m))) as Ne.
    { intros n. pose proof (place_lt n). destruct (older_two (dev (disk m))); lia. }
    apply follows_on; [done|by apply shown_commit|].
    split; unfold first, history, logged in *; simpl; rewrite ?Ep, ?El, ?Ef; try done.
    + intros n r Hn Hr. rewrite fn_lookup_insert_ne by done. by apply Rec.
    + intros s n r. destruct (decide (s = older (dev (disk m)))) as [->|N].
      * by rewrite fn_lookup_insert.
      * rewrite fn_lookup_insert_ne by done. apply Later.
    + revert A. unfold older, replace_older. destruct (slot_a (dev (disk m))) as [a|] eqn:Sa,
        (slot_b (dev (disk m))) as [b|] eqn:Sb; try case_decide; simpl;
          rewrite ?fn_lookup_insert, ?fn_lookup_insert_ne by done; try done;
        by rewrite ?Sa.
    + revert B. unfold older, replace_older. destruct (slot_a (dev (disk m))) as [a|] eqn:Sa,
        (slot_b (dev (disk m))) as [b|] eqn:Sb; try case_decide; simpl;
          rewrite ?fn_lookup_insert, ?fn_lookup_insert_ne by done; try done;
        by rewrite ?Sb.
    + intros s a [N Ps]%lookup_delete_Some. destruct (Pend s a Ps) as [?|(_ & -> & _)]; [by left|done].
  Qed.

  (** Power fails. *)
  Lemma follows_crash m :
    followed m [shown_by_crash (disk m)] [Does Redundancy.Crash] [Does Redundancy.Crash]
      (Host (powered_off None (disk m)) 0 false false).
  Proof.
    intros blocks tr sp st sp' st' F Sp Sc.
    destruct F as [On Sh Kp|Off Se Al].
    + assert (settling sp) as Se.
      { intros s a Pa. destruct Kp as [_ _ _ _ _ _ Pend].
        destruct (Pend s a Pa) as [(_ & -> & r & _ & _ & ->)|(_ & -> & i & _ & _ & ->)]; simpl;
          (split; [|by intros ? [= <-]; right]).
        - pose proof (place_lt (durable m)). lia.
        - destruct (older_two (dev (disk m))); lia. }
      destruct (crash_settling _ _ Se Sp) as [Se' Hs]. apply follows_off; [done..|].
      intros h Hh. destruct (power_fails blocks tr m sp st st' h) as (c & Oc & Po & Shc & Kc); auto.
      exists c. by split_and!.
    + destruct (crash_settling _ _ Se Sp) as [Se' Hs]. apply follows_off; [done..|].
      intros h Hh. destruct (Al h (Hs h Hh)) as (c & Oc & E & Shc & [Be Rec Room Later A B]).
      destruct (shown_log _ _ _ _ Shc) as (LF & _).
      exists (crashed (logged c) c). split; [done|]. split; [by rewrite E|]. split.
      * rewrite E. change (shown_by_crash (powered_off (pending c) c)) with (shown_by_crash c).
        eapply shown_step; [done|apply crash_does; lia|done].
      * apply crashed_kept; try done; try lia; [|unfold logged, first in *; lia].
        intros n r Hn Hr. unfold history in Hr. rewrite lookup_app_r in Hr by (unfold first in Hn; lia).
        apply Rec in Hr. unfold first in *.
        by replace (length (past (dev c)) + (n - length (past (dev c)))) with n in Hr by lia.
  Qed.

  (** A clean shutdown. *)
  Lemma follows_restart m :
    at_phase (disk m) = Running → pending (disk m) = None → durable m = logged (disk m) →
    saving m = false → (∀ g, ¬ is_open (disk m) g) →
    followed m [] [Does Redundancy.Crash] [Does Redundancy.Crash]
      (Host (powered_off (Some Reopen) (disk m)) 0 false false).
  Proof.
    intros Run Pn Du Sv Op blocks tr sp st sp' st' F Sp Sc.
    destruct F as [On Sh Kp|Off]; [|congruence]. assert (∀ s, Redundancy.pending sp !! s = None) as None.
    { intros s. destruct (Redundancy.pending sp !! s) as [a|] eqn:Pa; [|done]. exfalso.
      destruct (on_pending _ _ Kp s a Pa) as [(_ & _ & r & Hr & _)|(Q & _)]; [|by rewrite Sv in Q].
      apply lookup_lt_Some in Hr. rewrite history_length in Hr. lia. }
    destruct (crash_settling sp sp') as [Se Hs]; [intros s a; by rewrite None|done|]. apply follows_off;
      [done..|].
    intros h Hh%Hs. assert (∀ s, h s = Redundancy.stripe_of sp s) as Eh.
    { intros s. destruct (Hh s) as [?|(a & Pa & _)]; [done|by rewrite None in Pa]. }
    destruct (shown_log _ _ _ _ Sh) as (LF & (i & Ni & Ui) & _).
    set (c0 := truncate (upto i) (disk m)).
    assert (first c0 = upto i) as Fc.
    { unfold c0, first at 1. simpl. rewrite take_length, history_length. lia. }
    assert (history c0 = history (disk m)) as Hc by apply history_truncate.
    assert (logged c0 = logged (disk m)) as Lc by (by rewrite <-!history_length, Hc).
    assert (logged c0 = first c0 + length (log (dev c0))) as Lg by done.
    set (c := keep_open (State (size (disk m)) Off (Some Reopen)
      (dev (log_append (on_segments (segments (dev (disk m)) ∪ ∅) c0))) no_memory)).
    exists c. split; [done|]. split; [done|]. split.
    + eapply shown_step; [apply (shown_truncate _ _ _ _ i Sh); [done..|lia]| |done].
      replace [Does Redundancy.Crash] with (reads (V := V) ∅ ++ [Does Redundancy.Crash])
        by (unfold reads; by rewrite map_to_list_empty).
      apply (disk_step K cc c0 [] ∅ (State _ Off _ _ _) [Does Redundancy.Crash]); try done.
      * by apply (Restart K (on_segments (segments (dev c0) ∪ ∅) c0)).
      * by constructor.
    + destruct Kp as [Rec Room [Fl Dl] Later A B _]. split; rewrite ?Eh; simpl; try done.
      * change (first c) with (first c0). rewrite Fc. symmetry.
        by apply (log_begins_newest h (disk m)); rewrite ?Eh.
      * intros k r Hk. rewrite Eh. change (log (dev c0) !! k = Some r) in Hk.
        change (first c) with (first c0). pose proof (lookup_lt_Some _ _ _ Hk) as Lk. apply Rec.
        -- lia.
        -- rewrite <-Hc. unfold history. fold (first c0). rewrite lookup_app_r by (unfold first; lia).
           by replace (first c0 + k - length (past (dev c0))) with k by (unfold first; lia).
      * change (length (log (dev c0)) ≤ ring). lia.
      * intros s n r. rewrite Eh. intros ?%Later. change (n < logged c0). lia.
  Qed.

  (** A stripe that was torn is recovered. *)
  Lemma follows_recover m s :
    at_phase (disk m) = Off →
    followed m [] [Does (Redundancy.Recover s)] [] m.
  Proof.
    intros Off blocks tr sp st sp' st' F Sp Sc.
    inversion Sc; subst. apply does_one in Sp. destruct F as [|_ Se Al]; [done|]. rewrite app_nil_r.
    inversion Sp as [| | | |? n v Pa Lv Wv|]; subst; [|done]. destruct (Se s _ Pa) as [Ls _].
    apply follows_off; [done| |].
    + unfold settling. simpl. intros s' a [[<- <-]|[N Ps]]%lookup_insert_Some; [|by apply Se].
      split; [done|]. intros ? [= <-]. by apply Wv.
    + intros h Hh. apply Al. intros s'. specialize (Hh s'). simpl in Hh.
      destruct Hh as [?|(a & [[<- <-]|[N Ps]]%lookup_insert_Some & Ia)]; [by left|right..]; eauto.
  Qed.

  (** It is settled. *)
  Lemma follows_settle m s :
    at_phase (disk m) = Off →
    followed m [] [Does (Redundancy.Acknowledge s)] [] m.
  Proof.
    intros Off blocks tr sp st sp' st' F Sp Sc.
    inversion Sc; subst. apply does_one in Sp. destruct F as [|_ Se Al]; [done|]. rewrite app_nil_r.
    inversion Sp as [| |? n v Pa| | |]; subst; [|done]. destruct (Se s _ Pa) as [Ls Lv].
      specialize (Lv v eq_refl).
    simpl in Lv. apply follows_off; [done| |].
    + unfold settling. simpl. intros s' a [N Ps]%lookup_delete_Some. rewrite fn_lookup_insert_ne by done.
      by apply Se.
    + intros h Hh. apply Al. intros s'. specialize (Hh s'). simpl in Hh.
      destruct (decide (s' = s)) as [->|N].
      * rewrite fn_lookup_insert, lookup_delete in Hh. destruct Hh as [->|(? & [=] & _)].
        destruct Lv as [->| ->]; [by left|right; eauto].
      * rewrite fn_lookup_insert_ne, lookup_delete_ne in Hh by done. done.
  Qed.

  (** A segment is tidied away on the capacity leg. *)
  Lemma follows_tidy m cs :
    tidies (disk m) cs →
    followed m [] [] cs m.
  Proof.
    intros Ti blocks tr sp st sp' st' F Sp Sc.
    inversion Sp; subst. rewrite app_nil_r. destruct F as [On (S & ps & L & T & St) Kp|Off Se Al].
    + apply follows_on; [done| |done]. exists S, ps. split_and!; [done..|].
      eapply tidied; [done| |done]. by destruct Ti; constructor.
    + apply follows_off; [done..|]. intros h Hh. destruct (Al h Hh) as (c & Oc & E & Sh & Kc).
      destruct (shown_log _ _ _ _ Sh) as (_ & _ & Me). destruct (Me Oc) as [Me' _].
      destruct Sh as (S & ps & L & T & St).
      exists c. split_and!; [done..| |done]. exists S, ps. split_and!; [done..|].
      eapply tidied; [done| |done]. rewrite E in Ti.
      destruct Ti; constructor. unfold is_open. simpl. by rewrite Me'.
  Qed.

  (** Recovery begins: the whole leg is read. *)
  Lemma follows_load m h ps rs cs c' :
    at_phase (disk m) = Off → at_phase c' ≠ Off →
    length ps = log_begins h → found h (log_begins h) rs →
    disk_does K cc (loaded (disk m) ps h rs) [] cs c' →
    followed m [] ((λ s, Sees s (h s)) <$> seq 0 (2 + ring)) cs
      (Host c' (log_begins h + length rs) false false).
  Proof.
    intros Off On' Lp Fo D blocks tr sp st sp' st' F Sp Sc.
    destruct F as [|_ Se Al]; [done|].
    assert (sp' = sp ∧ ∀ s, s < 2 + ring → Redundancy.pending sp !! s = None ∧
      h s = Redundancy.stripe_of sp s) as [-> Hs].
    { clear -Sp. assert (sp' = sp ∧ ∀ s, s ∈ seq 0 (2 + ring) → Redundancy.pending sp !! s = None ∧
      h s = Redundancy.stripe_of sp s) as [? Q].
      { revert Sp. generalize (seq 0 (2 + ring)). intros l. induction l as [|s l IH]; simpl; intros Sp;
        inversion Sp; subst.
        - split; [done|]. by intros ? ?%not_elem_of_nil.
        - destruct IH as [-> IH]; [done|]. split; [done|]. intros s' [->|?]%elem_of_cons;
          [done|by apply IH]. }
      split; [done|]. intros s L. apply Q, elem_of_seq. lia. }
    destruct (Al (Redundancy.stripe_of sp)) as (c & Oc & E & Sh & [Be Rec Room Later A B]); [by left|].
    assert (log_begins h = first c) as Bh.
    { rewrite Be. unfold log_begins. by rewrite (proj2 (Hs 0 ltac:(lia))), (proj2 (Hs 1 ltac:(lia))). }
    rewrite Bh in *.
    assert (found (Redundancy.stripe_of sp) (first c) (log (dev c))) as Fc.
    { split; [done|]. intros r Hr%Later. unfold logged, first in *. lia. }
    assert (rs = log (dev c)) as ->.
    { apply (found_unique (Redundancy.stripe_of sp) (first c)); [|done].
      destruct Fo as [F1 F2]. split.
      - intros k r Hk. rewrite <-(proj2 (Hs _ (proj2 (place_lt (first c + k))))). by apply F1.
      - intros r. rewrite <-(proj2 (Hs _ (proj2 (place_lt (first c + length rs))))). by apply F2. }
    destruct (shown_log _ _ _ _ Sh) as (_ & _ & Me). destruct (Me Oc) as [Me' Fl].
    assert (loaded (disk m) ps h (log (dev c)) = with_past ps c) as Ec.
    { rewrite E. unfold loaded, with_past, with_devices, powered_off. simpl.
      rewrite (proj2 (Hs 0 ltac:(lia))), (proj2 (Hs 1 ltac:(lia))), A, B.
      assert (segments (dev c) = ∅) as Sg.
      { destruct Sh as (S & ps' & _ & _ & St). apply map_empty. intros g.
        destruct (segments (dev c) !! g) as [data|] eqn:Hg; [|done].
        apply (stands_memory _ _ _ _ _ St g data) in Hg. unfold is_open in Hg. simpl in Hg.
        by rewrite Me' in Hg. }
      unfold logged, first in *. destruct c as [sz ph pe [pa lo fl sa sb sg] me]. simpl in *. subst.
      by rewrite Lp. }
    rewrite Ec in D. assert (shown blocks tr (with_past ps c) st) as Shp.
    { destruct Sh as (S & ps' & L' & T & St). exists S, ps'. split; [|done]. by rewrite L', <-Lp. }
    apply follows_on; [done|by eapply shown_step|].
    destruct (disk_grows _ _ _ _ D On') as (_ & _ & _ & _ & Dv). specialize (Dv Oc).
      injection Dv as Dp Dl Df Da Db.
    assert (logged c = first c + length (log (dev c))) as Lg by done.
    assert (first c' = first c) as Fi by (unfold first; by rewrite Dp).
    assert (logged c' = logged c) as Lc by (unfold logged; by rewrite Dp, Dl, Lp).
    split; cbn [disk durable logging saving]; rewrite ?Da, ?Db; try done.
    + intros n r Hn Hr. rewrite Fi in Hn. unfold history in Hr. rewrite Dp, Dl in Hr.
      rewrite lookup_app_r in Hr by lia. apply Rec in Hr.
      by replace (first c + (n - length ps)) with n in Hr by lia.
    + lia.
    + rewrite Lc, Df. lia.
    + intros s a Pa. destruct (Se s a Pa) as [Ls _]. destruct (Hs s Ls) as [N _]. congruence.
  Qed.

  Lemma follows_step blocks tr m sp st es ps cs m' sp' st' : follows blocks tr m sp st →
    host_does m es ps cs m' →
    store_does cp sp ps sp' → store_does cc st cs st' → follows blocks (tr ++ es) m' sp' st'.
  Proof.
    intros F D. revert F. destruct D.
    - by apply follows_disk.
    - by apply follows_log.
    - by apply follows_logged.
    - by apply follows_save.
    - by apply follows_commit.
    - by apply follows_crash.
    - by apply follows_restart.
    - by apply follows_recover.
    - by apply follows_settle.
    - by apply follows_tidy.
    - by eapply follows_load.
  Qed.
End performance_leg.
