(** All columns together with the disk without data lead back to the disk, step by step. *)
From LogDisk Require Import VirtualDisk VirtualDiskProperties RecordedTrace OverlappingDisk
  OverlappingDiskColumns.

Local Existing Instance no_data.

Section Rebuild.
Context {V : Type} `{Value V}.
Implicit Types (en : entry V) (s c : state V) (u : state unit) (d : disk V) (i j : image V)
  (b lba count : nat) (data : list V) (columns : nat → state V).

(** The image [i] may be whatever a power cut may leave of the column. *)
Definition widens b i j : Prop :=
  (∀ v, v ∈ may_hold j 0 → v ∈ may_hold i b) ∧ names_alike b (with_snaps i) (with_snaps j).
Definition matches b s i c : Prop := size c = 1 ∧ power c = power s ∧ disk_alike b (now s) (now c) ∧
  ∀ j, j ∈ survivors c → widens b i j.
Definition rebuilds (blocks : nat) s columns : Prop :=
  ∃ i, i ∈ survivors s ∧ resolves i (now s) ∧ ∀ b, b < blocks → matches b s i (columns b).

Lemma widens_exactly b i d d' : (∀ l, live d l ∈ may_hold i l) → snaps d = with_snaps i → disk_alike b d d' →
  widens b i (exactly d').
Proof. intros Hl Hs [Ha Hn]. split; [|by rewrite <-Hs]. cbn. intros v ->%elem_of_list_singleton.
  rewrite <-Ha. apply Hl. Qed.

(** ** What a power cut may leave once the disk is [d] *)

Definition left_by (p : profile) d i : image V := match p with Ack => exactly d | _ => may_also_hold d i end.
Definition left_through (p : profile) (told : bool) d lba data i : image V :=
  match p, told with Ack, _ | _, false => left_by p d i | _, true => forced lba data i end.

Lemma left_by_in p s d i : p ≠ Prefix → i ∈ survivors s → left_by p d i ∈ buffered p s d.
Proof. intros Hp Hi. destruct p; [left|done|]. cbn. apply elem_of_list_fmap. eauto. Qed.
Lemma left_through_in p told s d lba data i : p ≠ Prefix → i ∈ survivors s →
  left_through p told d lba data i ∈ written_through p s told d lba data.
Proof. intros Hp Hi. pose proof (left_by_in p s d i Hp Hi). destruct p, told; try done.
  cbn. apply elem_of_list_fmap. eauto. Qed.
Lemma left_by_resolves p d d0 i : resolves i d0 → snaps d = snaps d0 → resolves (left_by p d i) d.
Proof. intros [_ Hs] Hd. destruct p; (split; [intros l; left|]); cbn; try done; by rewrite Hd. Qed.
Lemma left_through_resolves p told d lba data i : resolves i d →
  resolves (left_through p told (written d lba data) lba data i) (written d lba data).
Proof. intros Hr. pose proof (left_by_resolves p (written d lba data) d i Hr eq_refl).
  destruct p, told; try done; destruct Hr as [Hl Hs]; (split; [|done]); intros l;
    by apply (written_held (State 0 d [] true)). Qed.

Lemma matches_written p b s c i d d' left : p ≠ Prefix → matches b s i c → disk_alike b d d' →
  matches b (happens s d left) (left_by p d i) (happens c d' (buffered p c d')).
Proof.
  intros Hp (? & ? & Ha & Hi) Hd. split_and!; cbn; try done. destruct p; [|done|].
  - intros j ->%elem_of_list_singleton. by apply (widens_exactly _ _ d); [intros l; cbn; left| |].
  - intros j (j0 & -> & [Hm Hn]%Hi)%elem_of_list_fmap. split; [|done]. destruct Hd as [Hl _]. intros v. cbn.
    rewrite Hl, !elem_of_cons. intros [?|?]; auto.
Qed.
Lemma matches_spared p b s c i d left : p ≠ Prefix → matches b s i c → steady p c → power c = true →
  disk_alike b d (now c) → matches b (happens s d left) (left_by p d i) c.
Proof.
  intros Hp (? & ? & Ha & Hi) [Hc _] Hpw Hd. split_and!; cbn; try done. destruct p; [|done|].
  - destruct (Hc Hpw) as (Heq & _). rewrite Heq by done. intros j ->%elem_of_list_singleton.
    by apply (widens_exactly _ _ d); [intros l; cbn; left| |].
  - intros j [Hm Hn]%Hi. split; [|done]. intros v. cbn. rewrite !elem_of_cons. auto.
Qed.
Lemma matches_through p told b s c i lba data v left : p ≠ Prefix → matches b s i c →
  data_at lba data b = Some v → let d := written (now s) lba data in let d' := written (now c) 0 [v] in
  matches b (happens s d left) (left_through p told d lba data i)
    (happens c d' (written_through p c told d' 0 [v])).
Proof.
  intros Hp Hm Hd d d'. pose proof Hm as (? & ? & Ha & Hi). pose proof (alike_written _ _ _ _ _ _ Ha Hd) as
    Ha'.
  pose proof (matches_written p b s c i d d' left Hp Hm Ha') as Hb. destruct p, told; try done.
  split_and!; cbn; try done. intros j (j0 & -> & [Hm0 Hn]%Hi)%elem_of_list_fmap. split; [|done].
  intros w. cbn. by rewrite Hd.
Qed.
Lemma matches_through_spared p told b s c i lba data left : p ≠ Prefix → matches b s i c → steady p c →
  power c = true → data_at lba data b = None → let d := written (now s) lba data in
  matches b (happens s d left) (left_through p told d lba data i) c.
Proof.
  intros Hp Hm Hc Hpw Hd d. pose proof Hm as (? & ? & Ha & Hi). pose proof (alike_spared _ _ _ _ _ Ha Hd) as
    Ha'.
  pose proof (matches_spared p b s c i d left Hp Hm Hc Hpw Ha') as Hb. destruct p, told; try done.
  split_and!; cbn; try done. intros j [Hm0 Hn]%Hi. split; [|done]. intros w. cbn. rewrite Hd. apply Hm0.
Qed.
Lemma matches_recorded p b s c i d d' left : p ≠ Prefix → matches b s i c → disk_alike b d d' →
  matches b (happens s d left) (exactly d) (happens c d' (recorded p c d')).
Proof.
  intros Hp (? & ? & Ha & Hi) Hd. split_and!; cbn; try done. intros j Hj.
  assert (j = exactly d') as -> by (destruct p; [|done|]; by apply elem_of_list_singleton in Hj).
  by apply (widens_exactly _ _ d); [intros l; cbn; left| |].
Qed.
Lemma matches_cut b s c i left left' : matches b s i c → (∀ j, j ∈ left' → widens b i j) →
  matches b (cut s left) i (cut c left').
Proof. intros (? & ? & ? & Hi) Hl. split_and!; cbn; try done. intros j [?|?]%elem_of_app; auto. Qed.
Lemma recorded_in p s d : p ≠ Prefix → exactly d ∈ recorded p s d.
Proof. intros Hp. destruct p; [left|done|left]. Qed.

(** ** One step: what the columns and the disk without data do, the disk does *)

Lemma data_at_lookup lba data k : data_at lba data (lba + k) = data !! k.
Proof. unfold data_at. case_decide; [|lia]. f_equal. lia. Qed.

(** What is outside of the contract, and what is refused: nothing changes but maybe the power. *)
Lemma rebuild_outside blocks s u columns r u' columns' : forgets s u → rebuilds blocks s columns →
  outside u r u' → (∀ b, b < blocks → outside (columns b) r (columns' b)) →
  ∃ s', outside s r s' ∧ forgets s' u' ∧ rebuilds blocks s' columns'.
Proof.
  intros Hf (i & Hi & Hr & Hm) [Hp ->] Hco. pose proof Hf as (Hz & Hpw & Hn & Hns & Hnu).
  rewrite <-Hpw in Hp. eexists. split; [split; [done|reflexivity]|]. split; [by destruct r|].
  exists i. split; [by destruct r|]. split; [by destruct r|]. intros b Hb. destruct (Hco b Hb) as [_ ->].
  specialize (Hm b Hb). destruct r; try done. by apply matches_cut; [|intros j ?%elem_of_nil].
Qed.

Lemma rebuild_refused blocks s u columns k u' columns' : forgets s u → rebuilds blocks s columns →
  power u = true → u' = u → (∀ b, b < blocks → outside (columns b) (Refused k) (columns' b)) →
  power s = true ∧ forgets s u' ∧ rebuilds blocks s columns'.
Proof.
  intros Hf Hre Hp -> Hco.
  by destruct (rebuild_outside blocks s u columns (Refused k) u columns') as (s' & [? ->] & ? & ?).
Qed.

(** A flush, and a restart. *)
Lemma rebuild_flush blocks s u columns r u' columns' : forgets s u → rebuilds blocks s columns →
  answered u r [] [] (now u) [exactly (now u)] u' → (∀ b, b < blocks → answered (columns b) r [] []
    (now (columns b)) [exactly (now (columns b))] (columns' b)) →
  ∃ s', answered s r [] [] (now s) [exactly (now s)] s' ∧ forgets s' u' ∧ rebuilds blocks s' columns'.
Proof.
  intros Hf (i & Hi & Hr & Hm) [Hp Ha] Hco. pose proof Hf as (Hz & Hpw & Hn & Hns & Hnu).
  assert (same_names (snaps (now u)) (snaps (now u))) as Hnn by done.
  rewrite <-Hpw in Hp. destruct r as [|k| |].
  - destruct Ha as [_ ->]. exists (happens s (now s) [exactly (now s)]). split; [done|].
    split; [apply forgets_happens; [done|names..]|]. exists (exactly (now s)).
    split; [left|]. split; [apply resolves_exactly|]. intros b Hb. destruct (Hco b Hb) as [_ [_ ->]].
    pose proof (Hm b Hb) as (? & ? & ? & _). split_and!; cbn; try done.
    intros j ->%elem_of_list_singleton. by apply (widens_exactly _ _ (now s)); [intros l; cbn; left| |].
  - by destruct Ha as [[?%elem_of_nil|[_ ?%elem_of_nil]] _].
  - exists s. split; [split; [done|by left]|]. split.
    { destruct Ha as [->|[_ ->]]; [done|]. split_and!; try done. by apply named_exactly. }
    exists i. split_and!; try done. intros b Hb. destruct (Hco b Hb) as [_ [->|[_ ->]]]; [by apply Hm|].
    pose proof (Hm b Hb) as (? & ? & ? & _). split_and!; cbn; try done. destruct Hr as [Hl Hs].
    intros j ->%elem_of_list_singleton. by apply (widens_exactly _ _ (now s)).
  - subst u'. exists (cut s [exactly (now s)]). split; [done|].
    split; [apply forgets_cut; [done|names..]|]. exists i. split; [cbn; by right|]. split; [done|].
    intros b Hb. destruct (Hco b Hb) as [_ ->]. apply matches_cut; [by apply Hm|].
    pose proof (Hm b Hb) as (_ & _ & ? & _). destruct Hr as [Hl Hs].
    intros j ->%elem_of_list_singleton. by apply (widens_exactly _ _ (now s)).
Qed.

(** A read returns what each column returned. *)
Lemma rebuild_read p tolerates v w blocks s u columns from lba count r data u' columns' :
  let en := Event (Read from lba count r data) in size s = blocks → forgets s u → rebuilds blocks s columns →
  entry_step p tolerates v u (without_data en) u' →
  (∀ b, b < blocks → entry_step p tolerates w (columns b) (on_block b en) (columns' b)) →
  ∃ s', entry_step p tolerates v s en s' ∧ forgets s' u' ∧ rebuilds blocks s' columns'.
Proof.
  intros en Hsize Hf Hre Hu Hc. pose proof Hre as (i & Hi & Hr & Hm).
  pose proof Hf as (Hz & Hpw & Hn & Hns & Hnu).
  assert (same_names (snaps (now u)) (snaps (now u))) as Hnn by done.
  pose proof (λ k, rebuild_refused blocks s u columns k u' columns' Hf Hre) as Hrefused.
  cbn in Hu, Hc |- *. destruct Hu as [Hu|Hl].
  - destruct Hu as [[Hp Hu] Hread]. rewrite <-(fits_forget s), <-(view_named (now s)) in Hu by done.
    destruct r as [|k| |].
    + destruct Hu as [Hk ->]. exists (happens s (now s) (survivors s)). split; [|split].
      2: by split_and!.
      2: { exists i. split_and!; [done..|]. intros b Hb. specialize (Hm b Hb). specialize (Hc b Hb).
        destruct (data_at lba data b); [|by destruct Hc as [_ ->]].
        by destruct Hc as [[[_ [_ ->]] _]|[]]. }
      left. split; [by split; [rewrite Hpw|]|]. intros _. destruct (Hread eq_refl) as (g & Hg & Hdata).
      assert (∃ f, view_of (now s) from = Some f) as [f Hf'].
      { destruct from as [|n]; [by eexists|]. cbn in *. apply Hn. by exists g. }
      exists f. split; [done|]. apply list_eq. intros k. rewrite list_lookup_fmap.
      assert (length data = count) as Hlen.
      { apply (f_equal length) in Hdata. unfold forget in Hdata. by rewrite !fmap_length, seq_length in
        Hdata. }
      destruct (decide (k < count)) as [Hkc|Hkc].
      2: { rewrite !lookup_ge_None_2; [done|rewrite seq_length; lia|lia]. }
      rewrite lookup_seq_lt by done. cbn. destruct (lookup_lt_is_Some_2 data k) as [x Hx]; [lia|]. rewrite Hx.
      apply app_eq_nil in Hk as [Hfit _]. unfold out_of_range, fits in Hfit. case_decide as Hfits; [|done].
      assert (lba + k < blocks) as Hb by lia. specialize (Hm _ Hb). specialize (Hc _ Hb).
      rewrite data_at_lookup, Hx in Hc. destruct Hc as [[_ Hc]|[]]. destruct (Hc eq_refl) as (g' & Hg' & [=
        ->]).
      destruct Hm as (_ & _ & Ha & _). destruct (alike_view _ _ _ _ _ Ha Hf') as (g'' & Hg'' & Heq).
        congruence.
    + destruct Hu as [Hk ->]. destruct (Hrefused k) as (? & ? & ?); [done..|]. exists s.
      split; [|done]. left. by split.
    + exists s. split; [left; split; [split; [by rewrite Hpw|by left]|done]|].
      split; [by destruct Hu as [->|[_ ->]]|]. exists i. split_and!; [done..|]. intros b Hb.
      destruct (Hc b Hb) as [_ ->]. by apply Hm.
    + subst u'. eexists. split; [left; split; [split; [by rewrite Hpw|reflexivity]|done]|]. split.
      { apply forgets_cut; [done|destruct (_ ++ _); [done|apply named_nil]..]. }
      exists i. split; [cbn; apply elem_of_app; by right|]. split; [done|]. intros b Hb.
      destruct (Hc b Hb) as [_ ->]. by apply matches_cut; [apply Hm|intros j ?%elem_of_nil].
  - destruct r as [|[]| |]; try done. destruct Hl as (? & Hp & ->).
    destruct (Hrefused DataLost) as (? & ? & ?); [done..|]. exists s. by split; [right|].
Qed.

(** A power cut leaves each column something, and the disk what all of them have. *)
Lemma rebuild_crash p tolerates v w blocks s u columns r u' columns' :
  forgets s u → rebuilds blocks s columns →
  entry_step p tolerates v u (Event (Crash r)) u' →
  (∀ b, b < blocks → entry_step p tolerates w (columns b) (Event (Crash r)) (columns' b)) →
  ∃ s', entry_step p tolerates v s (Event (Crash r)) s' ∧ forgets s' u' ∧ rebuilds blocks s' columns'.
Proof.
  intros Hf (i & Hi & Hr & Hm) Hu Hc. pose proof Hf as (Hz & Hpw & Hn & Hns & Hnu).
  cbn in Hu, Hc |- *. destruct Hu as [Hu|Hl]; [|by destruct Hl].
  destruct r; try done.
  - destruct Hu as (iu & du & Hiu & [_ Hdu] & ->).
    pose (d := Disk (λ l, if decide (l < blocks) then live (now (columns' l)) 0 else live (now s) l)
      (with_snaps i)).
    destruct Hr as [Hl Hs]. exists (State (size s) d [exactly d] true).
    assert (∀ b, b < blocks → matches b (State (size s) d [exactly d] true) (exactly d) (columns' b) ∧
      live d b ∈ may_hold i b) as Hall.
    { intros b Hb. destruct (Hc b Hb) as [(j & dj & Hj & [Hlj Hsj] & Heq)|[]].
      destruct (Hm b Hb) as (Hsz & _ & _ & Hw').  destruct (Hw' j Hj) as [Hv Hn'].
      assert (live d b = live dj 0) as Hd by (cbn; rewrite decide_True, Heq by done; done).
      assert (disk_alike b d dj) as Ha by (split; [done|]; cbn; by rewrite Hsj).
      split; [|rewrite Hd; by apply Hv, Hlj]. rewrite Heq. split_and!; cbn; try done.
      intros j' ->%elem_of_list_singleton. by apply (widens_exactly _ _ d); [intros l; cbn; left| |]. }
    split; [|split].
    + left. exists i, d. split_and!; [done| |done]. split; [|done]. intros l.
      destruct (decide (l < blocks)) as [Hlt|?]; [by apply Hall|]. cbn. by rewrite decide_False.
    + assert (same_names (with_snaps i) (snaps du)) as Hnd.
      { rewrite Hdu, <-Hs. intros n. rewrite (Hn n). symmetry. by apply Hnu. }
      by split_and!; cbn; [..|apply named_exactly|apply named_exactly].
    + exists (exactly d). split; [left|]. split; [apply resolves_exactly|]. intros b Hb. by apply Hall.
  - subst u'. exists (cut s []). split; [by left|]. split; [done|]. exists i. split_and!; [done..|].
    intros b Hb. destruct (Hc b Hb) as [Hcb|[]]. cbn in Hcb. rewrite Hcb.
    by apply matches_cut; [apply Hm|intros j ?%elem_of_nil].
Qed.

Lemma rebuild_step p tolerates v w blocks s u columns en u' columns' : p ≠ Prefix → is_whole en →
  size s = blocks → forgets s u → rebuilds blocks s columns → steady p u →
  (∀ b, b < blocks → steady p (columns b)) →
  entry_step p tolerates v u (without_data en) u' →
  (∀ b, b < blocks → entry_step p tolerates w (columns b) (on_block b en) (columns' b)) →
  ∃ s', entry_step p tolerates v s en s' ∧ forgets s' u' ∧ rebuilds blocks s' columns'.
Proof.
  intros Hpr Hw Hsize Hf Hre Hstu Hstc Hu Hc. pose proof Hre as (i & Hi & Hr & Hm).
  pose proof Hf as (Hz & Hpw & Hn & Hns & Hnu).
  assert (same_names (snaps (now u)) (snaps (now u))) as Hnn by done.
  pose proof (λ k, rebuild_refused blocks s u columns k u' columns' Hf Hre) as Hrefused.
  destruct en as [e|? r|? r|? r|r|r]; try by eapply rebuild_outside.
  destruct e as [n|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r];
    try (by eapply rebuild_read); try (by eapply rebuild_crash);
    cbn in Hu, Hw, Hc |- *; try done; (destruct Hu as [Hu|Hl]; [|try by destruct Hl]).
  - unfold forget in Hu. rewrite fmap_length, <-(fits_forget s) in Hu by done. destruct Hu as [Hp Hu].
    destruct r as [|k| |]; try done; [|destruct Hu as [Hk ->]; exists s;
      destruct (Hrefused k) as (? & ? & ?); [done..|by split; [left|]]].
    destruct Hu as [Hk ->]. pose (d := written (now s) lba data). exists (happens s d (buffered p s d)).
    split; [left; by split; [rewrite Hpw|]|]. split; [apply forgets_happens; [done|names..]|].
    exists (left_by p d i). split; [by apply left_by_in|]. split; [by eapply left_by_resolves|].
    intros b Hb. specialize (Hm b Hb). specialize (Hstc b Hb). specialize (Hc b Hb).
    pose proof Hm as (_ & _ & Ha & _). destruct (data_at lba data b) eqn:Hd.
    + destruct Hc as [[Hcp [_ ->]]|[]]. by apply matches_written, alike_written.
    + destruct Hc as [Hcp ->]. by apply matches_spared, alike_spared.
  - unfold forget in Hu. rewrite fmap_length, <-(fits_forget s) in Hu by done. destruct Hu as [Hp Hu].
    destruct r as [|k| |]; try done; [|destruct Hu as [Hk ->]; exists s;
      destruct (Hrefused k) as (? & ? & ?); [done..|by split; [left|]]].
    destruct Hu as [Hk ->]. pose (d := written (now s) lba data).
    exists (happens s d (written_through p s told d lba data)).
    split; [left; by split; [rewrite Hpw|]|]. split; [apply forgets_happens; [done|names..]|].
    exists (left_through p told d lba data i). split; [by apply left_through_in|].
    split; [by apply left_through_resolves|].
    intros b Hb. specialize (Hm b Hb). specialize (Hstc b Hb). specialize (Hc b Hb).
    destruct (data_at lba data b) eqn:Hd.
    + destruct Hc as [[Hcp [_ ->]]|[]]. by apply matches_through.
    + destruct Hc as [Hcp ->]. by apply matches_through_spared.
  - rewrite <-(fits_forget s) in Hu by done. destruct Hu as [Hp Hu].
    destruct r as [|k| |]; try done; [|destruct Hu as [Hk ->]; exists s;
      destruct (Hrefused k) as (? & ? & ?); [done..|by split; [left|]]].
    destruct Hu as [Hk ->]. pose (d := unmapped (now s) lba count). exists (happens s d (buffered p s d)).
    split; [left; by split; [rewrite Hpw|]|]. split; [apply forgets_happens; [done|names..]|].
    exists (left_by p d i). split; [by apply left_by_in|]. split; [by eapply left_by_resolves|].
    intros b Hb. specialize (Hm b Hb). specialize (Hstc b Hb). specialize (Hc b Hb).
    pose proof Hm as (_ & _ & Ha & _). pose proof (data_at_replicate lba count b) as Hd. case_decide.
    + destruct Hc as [[Hcp [_ ->]]|[]]. by apply matches_written, alike_written.
    + destruct Hc as [Hcp ->]. by apply matches_spared, alike_spared.
  - rewrite <-(taken_named (now s)) in Hu by done. destruct Hu as [Hp Hu].
    destruct r as [|k| |]; try done; [|destruct Hu as [Hk ->]; exists s;
      destruct (Hrefused k) as (? & ? & ?); [done..|by split; [left|]]].
    destruct Hu as [Hk ->]. pose (d := snapshotted (now s) n). exists (happens s d (recorded p s d)).
    split; [left; by split; [rewrite Hpw|]|]. split; [apply forgets_happens; [done|names..]|].
    exists (exactly d). split; [by apply recorded_in|]. split; [apply resolves_exactly|].
    intros b Hb. specialize (Hm b Hb). destruct (Hc b Hb) as [[Hcp [_ ->]]|[]].
    eapply matches_recorded; [done|exact Hm|]. apply alike_snapshotted, Hm.
  - rewrite <-(missing_named (now s)) in Hu by done. destruct Hu as [Hp Hu].
    destruct r as [|k| |]; try done; [|destruct Hu as [Hk ->]; exists s;
      destruct (Hrefused k) as (? & ? & ?); [done..|by split; [left|]]].
    destruct Hu as [Hk ->]. pose (d := deleted (now s) n). exists (happens s d (recorded p s d)).
    split; [left; by split; [rewrite Hpw|]|]. split; [apply forgets_happens; [done|names..]|].
    exists (exactly d). split; [by apply recorded_in|]. split; [apply resolves_exactly|].
    intros b Hb. specialize (Hm b Hb). destruct (Hc b Hb) as [[Hcp [_ ->]]|[]].
    eapply matches_recorded; [done|exact Hm|]. apply alike_deleted, Hm.
  - rewrite <-(missing_named (now s)) in Hu by done. destruct Hu as [Hp Hu].
    destruct r as [|k| |]; try done; [|destruct Hu as [Hk ->]; exists s;
      destruct (Hrefused k) as (? & ? & ?); [done..|by split; [left|]]].
    destruct Hu as [Hk ->]. pose (d := reverted (now s) n). exists (happens s d (recorded p s d)).
    split; [left; by split; [rewrite Hpw|]|]. split; [apply forgets_happens; [done|names..]|].
    exists (exactly d). split; [by apply recorded_in|]. split; [apply resolves_exactly|].
    intros b Hb. specialize (Hm b Hb). destruct (Hc b Hb) as [[Hcp [_ ->]]|[]].
    eapply matches_recorded; [done|exact Hm|]. apply alike_reverted, Hm.
  - destruct (rebuild_flush blocks s u columns r u' columns') as (s' & ? & ? & ?); [done..| |by exists s';
      split; [left|]]. intros b Hb. by destruct (Hc b Hb) as [?|[]].
  - destruct (rebuild_flush blocks s u columns r u' columns') as (s' & ? & ? & ?); [done..| |by exists s';
      split; [left|]]. intros b Hb. by destruct (Hc b Hb) as [?|[]].
Qed.

End Rebuild.
