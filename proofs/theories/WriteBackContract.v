(** Write-back, as the contract has it: what a disk with delayed writes may show under [Prefix] or [Block], if
the disk below shows what the contract admits under [Ack].

The state [b] of the contract is that of the disk below, and [s] that of the disk with the delayed writes [z].
Two disks whose views read the same are one here: a group of writes of which nobody knows whether it happened
stays delayed, and is written again. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec.
From LogDisk Require Import LogStructuredDisk(same_view, same_disk) LogStructuredDiskReading(same_disk_alt).
From LogDisk Require LogStructuredDisk LogStructuredDiskReading.
From LogDisk Require Import ProvedDisk(request(..)).
From LogDisk Require Import ProvedDiskMaps ProvedDiskRequests DiskMachine WriteBack WriteBackRefinement.

Section Contract.
Context `{!blocks} (tolerates : nat) (pf : profile) (buffers : pf ≠ Ack).
Implicit Types (b s : state block) (d e : disk block) (q : request) (z : delay).
Implicit Types (ws : list (nat * list block)) (v : devices) (en : entry block).

(** ** Views that read the same *)

Definition same_snaps (m m' : gmap name (view block)) : Prop :=
  ∀ n, option_Forall2 same_view (m !! n) (m' !! n).
(** A power cut that leaves [j] may leave a disk that reads as [d]. *)
Definition reads_within d (j : image block) : Prop :=
  (∀ l, live d l ∈ VirtualDisk.may_hold j l) ∧ same_snaps (snaps d) (with_snaps j).
(** The newest data of [z] over [d]. *)
Definition reads_over z d e : Prop :=
  (∀ l, live e l = default (live d l) (newest_data z !! l)) ∧ same_snaps (snaps d) (snaps e).

Lemma within_resolves d e j : same_disk d e → resolves j e → reads_within d j.
Proof.
  intros [Hl Hs]%same_disk_alt [Hlive Hsnaps]. split; [intros l; by rewrite Hl|by rewrite <-Hsnaps].
Qed.
Lemma within_exactly d e : same_disk d e → reads_within d (exactly e).
Proof. intros Hde. by apply (within_resolves d e), exactly_resolves. Qed.
Lemma within_buffered s d e j :
  j ∈ survivors s → reads_within d j → ∃ j', j' ∈ buffered pf s e ∧ reads_within d j'.
Proof using buffers.
  intros Hj [Hlive Hsnaps]. destruct pf; simpl; [done|by exists j; split; [right|]|].
  exists (may_also_hold e j). split; [by apply elem_of_list_fmap_1|]. split; [|done]. intros l. by right.
Qed.

Lemma reads_over_nothing z d e : newest_data z = ∅ → reads_over z d e ↔ same_disk d e.
Proof.
  intros Hz. rewrite same_disk_alt. unfold reads_over. rewrite Hz.
  split; intros [Hl Hs]; (split; [|done]); intros l; specialize (Hl l); rewrite lookup_empty in *; simpl in *;
    congruence.
Qed.

(** ** The two states *)

Record covers z b s : Prop := Covers {
  covers_size : size s = size b;
  covers_power : power s = power b;
  (* below nothing is lost with the power *)
  covers_below : power b = true → survivors b = [exactly (now b)];
  covers_now : power b = true → reads_over z (now b) (now s);
  covers_all : power b = true → may_survive s (now s);
  covers_left i : i ∈ survivors b → ∃ d, i = exactly d ∧ ∃ j, j ∈ survivors s ∧ reads_within d j;
  (* what is delayed can be written *)
  covers_fits : power b = true → Forall (λ w, fits (size b) w.1 (length w.2)) (delayed z);
}.

Lemma covers_created n : covers no_delay (created n) (created n).
Proof.
  split; try done; [by intros _; apply reads_over_nothing|intros _; apply leaves_exactly; by left| |
    by constructor].
  intros i ->%elem_of_list_singleton. eexists. split; [done|]. eexists. split; [by left|].
  by apply within_exactly.
Qed.

(** ** What is asked of a disk of which nothing is delayed *)

Lemma missing_same d e n : same_snaps (snaps d) (snaps e) → missing d n = missing e n.
Proof.
  intros Hs. apply (LogStructuredDiskReading.faults_same 0 (LogStructuredDisk.RDelete n)
    (Disk (live d) (snaps d)) (Disk (live d) (snaps e))). by apply same_disk_alt.
Qed.
Lemma taken_same d e n : same_disk d e → taken d n = taken e n.
Proof. apply (LogStructuredDiskReading.faults_same 0 (LogStructuredDisk.RSnapshot n)). Qed.

(** The answers are those of the disk below; so is what survives, if it is more. *)
Lemma answered_covers z b s r faults excuses d e left left' b' :
  covers z b s → newest_data z = ∅ → answered b r faults excuses d left b' →
  left = [exactly d] → same_disk d e → leaves left' e →
  ∃ s', answered s r faults excuses e left' s' ∧ covers z b' s'.
Proof.
  intros Hc Hz [Hon Hr] -> Hsame He. pose proof Hc as [Hsize Hpower Hbelow Hnow Hall Hleft Hfits].
  assert (covers z (happens b d [exactly d]) (happens s e left')) as Hdone.
  { split; simpl; try done; [by intros _; apply reads_over_nothing|].
    intros i ->%elem_of_list_singleton. eexists. split; [done|]. destruct He as (j&Hj&?). exists j.
    split; [done|]. by eapply within_resolves. }
  destruct r as [|c| |]; simpl in Hr.
  - destruct Hr as [-> ->]. eexists. split; [split; [congruence|split; [done|reflexivity]]|done].
  - destruct Hr as [Hcode ->]. exists s. split; [split; [congruence|by split]|done].
  - destruct Hr as [->|[-> ->]].
    + exists s. split; [split; [congruence|by left]|done].
    + eexists. split; [split; [congruence|right; split; [done|reflexivity]]|done].
  - subst b'. eexists. split; [split; [congruence|reflexivity]|]. split; simpl; try done.
    intros i [Hi|Hi]%elem_of_app.
    + destruct faults; [|by apply elem_of_nil in Hi]. apply elem_of_list_singleton in Hi as ->.
      exists d. split; [done|]. destruct He as (j&Hj&?). exists j. split; [apply elem_of_app; by left|].
      by eapply within_resolves.
    + destruct (Hleft i Hi) as (d1&->&j&Hj&?). exists d1. split; [done|]. exists j. split; [|done].
      apply elem_of_app. by right.
Qed.

(** What changes a disk of which nothing is delayed. *)
Lemma step_covers z b s q r b' :
  covers z b s → newest_data z = ∅ → (∀ from lba count, q ≠ DoRead from lba count) →
  step Ack b (event_of q r []) b' → ∃ s', step pf s (event_of q r []) s' ∧ covers z b' s'.
Proof.
  intros Hc Hz Hq Hstep. pose proof Hc as [Hsize Hpower Hbelow Hnow Hall Hleft Hfits].
  assert (power b = true) as Hon.
  { destruct q as [lba bs|lba count|n|n|n| | |from lba count]; try (by destruct Hstep).
    by destruct (Hq from lba count). }
  assert (same_disk (now b) (now s)) as Hsame by by apply (reads_over_nothing z); auto.
  assert (∀ lba count, out_of_range s lba count = out_of_range b lba count) as Hrange.
  { intros. unfold out_of_range. by rewrite Hsize. }
  pose proof Hsame as [_ Hsnaps]%same_disk_alt.
  pose proof LogStructuredDiskReading.effect_same as Heffect.
  destruct q as [lba bs|lba count|n|n|n| | |from lba count]; simpl in Hstep |- *;
    rewrite ?Hrange, <-?(taken_same (now b) (now s)), <-?(missing_same (now b) (now s)) by done.
  - eapply answered_covers; try done; [by apply (Heffect (LogStructuredDisk.RWrite lba bs))|].
    apply (buffered_new pf buffers s (now s)); [by apply Hall|done].
  - eapply answered_covers; try done; [by apply (Heffect (LogStructuredDisk.RUnmap lba count))|].
    apply (buffered_new pf buffers s (now s)); [by apply Hall|done].
  - eapply answered_covers; try done; [by apply (Heffect (LogStructuredDisk.RSnapshot n))|
      apply recorded_new].
  - eapply answered_covers; try done; [by apply (Heffect (LogStructuredDisk.RDelete n))|
      apply recorded_new].
  - eapply answered_covers; try done; [by apply (Heffect (LogStructuredDisk.RRevert n))|
      apply recorded_new].
  - eapply answered_covers; try done. apply leaves_exactly. by left.
  - eapply answered_covers; try done. apply leaves_exactly. by left.
  - by destruct (Hq from lba count).
Qed.

(** ** Whatever is delayed *)

Lemma covers_cut z z' b s : covers z b s → covers z' (cut b []) (cut s []).
Proof. intros [Hsize Hpower Hbelow Hnow Hall Hleft Hfits]. by split. Qed.

Lemma outside_covers z b s r b' :
  covers z b s → outside b r b' → ∃ s', outside s r s' ∧ covers z b' s'.
Proof.
  intros Hc [Hon ->]. pose proof (covers_power _ _ _ Hc). destruct r;
    (eexists; split; [split; [congruence|reflexivity]|]); try done. by eapply covers_cut.
Qed.

(** The power returns. *)
Lemma crash_covers z z' b s b' :
  covers z b s → newest_data z' = ∅ → delayed z' = [] → step Ack b (Crash Ok) b' →
  ∃ s', step pf s (Crash Ok) s' ∧ covers z' b' s'.
Proof.
  intros [Hsize Hpower Hbelow Hnow Hall Hleft Hfits] Hz Hnone (i&d&Hi&[Hlive Hsnaps]&->).
  destruct (Hleft i Hi) as (d0&->&j&Hj&[Hhold Hsame]).
  set (e := Disk (live d) (with_snaps j)).
  assert (same_disk d e) as Hde by (apply same_disk_alt; split; [done|]; simpl; by rewrite Hsnaps).
  exists (State (size s) e [exactly e] true). split.
  - exists j, e. split_and!; [done| |done]. split; [|done]. intros l. simpl.
    specialize (Hlive l). apply elem_of_list_singleton in Hlive as ->. apply Hhold.
  - split; simpl; try done;
      [by intros _; apply reads_over_nothing|intros _; apply leaves_exactly; by left| |
       by rewrite Hnone; constructor].
    intros k ->%elem_of_list_singleton. eexists. split; [done|]. eexists. split; [by left|].
    by apply within_exactly.
Qed.

(** A read finds the newest data. *)
Lemma read_covers z v b s from lba count r bs b' :
  covers z b s → entry_step Ack tolerates v b (Event (Read from lba count r bs)) b' →
  ∃ s', entry_step pf tolerates v s (Event (Read from lba count r
    (match r, from with Ok, Live => with_newest z lba bs | _, _ => bs end))) s' ∧ covers z b' s'.
Proof.
  intros Hc Hstep. pose proof Hc as [Hsize Hpower Hbelow Hnow Hall Hleft Hfits].
  destruct Hstep as [[[Hon Hr] Hdata]|Hlost].
  2:{ exists s. destruct r as [|[]| |]; try done. destruct Hlost as [Hbeyond [Hon ->]]. split; [|done].
      right. split; [done|]. by split; [congruence|]. }
  destruct (Hnow Hon) as [Hlive Hsnaps].
  assert (out_of_range s lba count ++ missing_view (now s) from =
    out_of_range b lba count ++ missing_view (now b) from) as Hfaults.
  { unfold out_of_range. rewrite Hsize. f_equal. destruct from; [done|]. symmetry. by apply missing_same. }
  assert (covers z (happens b (now b) (survivors b)) (happens s (now s) (survivors s))) as Hsame
    by by destruct b, s.
  assert (∀ bs', r ≠ Ok → ∃ s', step pf s (Read from lba count r bs') s' ∧ covers z b' s') as Hother.
  { intros bs' Hnot. destruct r as [|c| |]; [done|..]; simpl in Hr; simpl; rewrite Hfaults.
    - destruct Hr as [? ->]. exists s. split; [|done]. split; [split; [congruence|by split]|done].
    - destruct Hr as [->|[? ->]]; eexists;
        (split; [split; [split; [congruence|]|done]|]); [by left|done|right; by split|done].
    - subst b'. eexists. split; [split; [split; [congruence|reflexivity]|done]|]. split; simpl; try done.
      intros i Hi. assert (i ∈ survivors b) as Hib.
      { apply elem_of_app in Hi as [Hi|]; [|done].
        destruct (out_of_range b lba count ++ missing_view (now b) from); [done|by apply elem_of_nil in Hi]. }
      destruct (Hleft i Hib) as (d&->&j&Hj&?). exists d. split; [done|]. exists j. split; [|done].
      apply elem_of_app. by right. }
  destruct r as [|c| |]; try (destruct (Hother bs) as (s'&?&?); [done|]; exists s'; split; [by left|done]).
  simpl in Hr. destruct Hr as [Hnone ->]. specialize (Hdata eq_refl) as (w&Hw&->).
  exists (happens s (now s) (survivors s)). split; [|done]. left. split.
  - split; [congruence|]. split; [by rewrite Hfaults|done].
  - intros _. destruct from as [|n]; simpl in *.
    + injection Hw as <-. exists (live (now s)). split; [done|]. clear -Hlive. revert lba.
      induction count as [|count IH]; intros lba; [done|]. simpl. by rewrite IH, Hlive.
    + destruct (Hsnaps n) as [w' w'' Hvw|]; [|done]. injection Hw as ->. exists w''.
      split; [done|]. by apply list_fmap_ext.
Qed.

(** A write is delayed. *)
Lemma delay_covers z v b s lba bs :
  covers z b s → power b = true → fits (size b) lba (length bs) →
  ∃ s', entry_step pf tolerates v s (Event (Write lba bs Ok)) s' ∧ covers (delay_write z lba bs) b s'.
Proof.
  intros [Hsize Hpower Hbelow Hnow Hall Hleft Hfits] Hon Hfits'.
  exists (happens s (written (now s) lba bs) (buffered pf s (written (now s) lba bs))). split.
  - left. split; [congruence|]. split; [|done]. unfold out_of_range. by rewrite Hsize, decide_True.
  - split; simpl; try done.
    + intros _. destruct (Hnow Hon) as [Hlive Hsnaps]. split; [|done]. intros l. simpl.
      rewrite Hlive, lookup_put_blocks. by destruct (data_at lba bs l).
    + intros _. apply (buffered_new pf buffers s (now s)); [by apply Hall|done].
    + intros i Hi. destruct (Hleft i Hi) as (d&->&j&?&?). exists d. split; [done|].
      by apply (within_buffered s d _ j).
    + constructor; auto.
Qed.

(** What did not happen may be answered so. *)
Lemma unknown_covers z v b s q :
  covers z b s → power b = true → entry_step pf tolerates v s (Event (event_of q UnknownOutcome [])) s.
Proof.
  intros Hc Hon. pose proof (covers_power _ _ _ Hc). left.
  destruct q; try (by split; [congruence|left]). split; [|done]. by split; [congruence|left].
Qed.

(** All delayed writes are on the disk below, or maybe they are. *)
Lemma drained_covers z z' b s :
  covers z b s → newest_right z → newest_data z' = ∅ → delayed z' = [] → power b = true →
  covers z' (settled (size b) (written_all (now b) (reverse (delayed z)))) s.
Proof.
  intros [Hsize Hpower Hbelow Hnow Hall Hleft Hfits] Hright Hz Hnone Hon.
  destruct (Hnow Hon) as [Hlive Hsnaps].
  assert (same_disk (written_all (now b) (reverse (delayed z))) (now s)) as Hsame.
  { apply same_disk_alt. split; [intros l; by rewrite Hright, Hlive|]. by rewrite written_all_snaps. }
  split; simpl; try done;
    [congruence|by intros _; apply reads_over_nothing|auto| |by rewrite Hnone; constructor].
  intros i ->%elem_of_list_singleton. eexists. split; [done|]. destruct (Hall Hon) as (j&Hj&?). exists j.
  split; [done|]. by eapply within_resolves.
Qed.

Lemma maybe_drained_covers z b s :
  covers z b s → newest_right z → power b = true →
  covers z (settled (size b) (written_all (now b) (reverse (delayed z)))) s.
Proof.
  intros Hc Hright Hon. pose proof (drained_covers z no_delay b s Hc Hright eq_refl eq_refl Hon) as Hd.
  destruct Hd as [Hsize Hpower Hbelow Hnow Hall Hleft _]. split; try done;
    [|intros _; by apply (covers_fits z b s)].
  intros _. destruct (Hnow eq_refl) as [_ Hsnaps]. split; [|done]. intros l. simpl. rewrite Hright.
  destruct (covers_now _ _ _ Hc Hon) as [Hlive _]. rewrite Hlive. by destruct (newest_data z !! l).
Qed.

(** A flush, when nothing is delayed. *)
Lemma flush_covers z v b s :
  covers z b s → newest_data z = ∅ → power b = true →
  ∃ s', entry_step pf tolerates v s (Event (Flush Ok)) s' ∧ covers z b s'.
Proof.
  intros [Hsize Hpower Hbelow Hnow Hall Hleft Hfits] Hz Hon.
  exists (happens s (now s) [exactly (now s)]). split; [left; by split; [congruence|]|].
  split; simpl; try done; [intros _; apply leaves_exactly; by left|]. intros i Hi.
  rewrite Hbelow in Hi by done.
  apply elem_of_list_singleton in Hi as ->. eexists. split; [done|]. eexists. split; [by left|].
  apply within_exactly. by apply (reads_over_nothing z); auto.
Qed.

(** A power cut while something is answered from memory. *)
Lemma cut_short_covers z b s q :
  covers z b s → power b = true →
  ∃ s', step pf s (event_of q CutShort []) s' ∧ covers z (cut b []) s'.
Proof.
  intros Hc Hon. pose proof Hc as [Hsize Hpower Hbelow Hnow Hall Hleft Hfits].
  assert (∀ left, covers z (cut b []) (cut s left)) as Hcut.
  { intros left. split; try done. intros i Hi. destruct (Hleft i Hi) as (d&->&j&?&?). exists d.
    split; [done|]. exists j. split; [|done]. apply elem_of_app. by right. }
  destruct q; try (eexists; split; [split; [congruence|reflexivity]|apply Hcut]).
  eexists. split; [split; [split; [congruence|reflexivity]|done]|apply Hcut].
Qed.

(** Only what is read counts. *)
Lemma covers_newest z z' b s :
  newest_data z = newest_data z' → delayed z' = [] ∨ delayed z' = delayed z → covers z b s → covers z' b s.
Proof.
  intros Hz Hd [Hsize Hpower Hbelow Hnow Hall Hleft Hfits]. split; try done; intros Hon.
  - unfold reads_over in *. rewrite <-Hz. auto.
  - destruct Hd as [->| ->]; [constructor|auto].
Qed.

(** When the power is off, nothing is delayed any more. *)
Lemma covers_off z z' b s : power b = false → covers z b s → covers z' b s.
Proof. intros Hoff [Hsize Hpower Hbelow Hnow Hall Hleft Hfits]. split; try done; congruence. Qed.

(** Writes of unknown outcome that did not happen, and operations on devices. *)
Lemma unknown_writes_covers z v b s ws : covers z b s → power b = true →
  recorded_run pf tolerates v s (Event <$> writes_shown ws UnknownOutcome) s.
Proof.
  intros Hc Hon. induction ws as [|[lba bs] ws IH]; [constructor|]. econstructor; [|exact IH].
  by apply (unknown_covers z v b s (DoWrite lba bs)).
Qed.

Definition of_devices en : Prop := match en with Event _ => False | _ => True end.

Lemma devices_covers z v es b s b' : Forall of_devices es → covers z b s →
  recorded_run Ack tolerates v b es b' → ∃ s', recorded_run pf tolerates v s es s' ∧ covers z b' s'.
Proof.
  intros Hes Hc Hrun. revert s Hc. induction Hrun as [v b|v b en b1 es b' Hstep _ IH]; intros s Hc.
  { exists s. split; [constructor|done]. }
  apply Forall_cons in Hes as [Hen Hes].
  assert (∃ s1, entry_step pf tolerates v s en s1 ∧ covers z b1 s1) as (s1&Hs1&Hc1).
  { destruct en; [done|..]; by eapply outside_covers. }
  destruct (IH Hes s1 Hc1) as (s'&Hs'&?). exists s'. split; [|done]. by econstructor.
Qed.
End Contract.
