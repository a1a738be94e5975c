(** Blocks are made of sectors, and a power cut leaves each of them as it was, or as it was written. What it
leaves of a sealed block is the block that was there, the one that was written, or none that unseals: if no
two of the compared blocks have one digest.

The block that was there may be anything, also what an earlier power cut left. Each sector carries the digest,
so a new sector completes a new block only, and never the rest of one that was torn before. *)
From stdpp Require Import list list_numbers.
From LogDisk Require Import Medium Codec ProvedDisk ProvedDiskInvariant.

Section Sectors.
Context `{!blocks}.
Implicit Types (b old new : block) (news : list block).

Definition sector b (i : nat) : list nat := take (words / sectors)
    (drop (i * (words / sectors)) (to_words b)).
Definition same_sectors b b' : Prop := ∀ i, i < sectors → sector b i = sector b' i.

(** Each sector of [b] is that of [old], or that of a block that was written. *)
Definition torn_between old news b : Prop :=
  ∀ i, i < sectors → sector b i = sector old i ∨ ∃ new, new ∈ news ∧ sector b i = sector new i.

(** What is in the block is one of the things whose digests are compared. *)
Definition comparable b : Prop := ∀ ws, unsealed b = Some ws → compared [of_words ws] = true.

Context `{!blocks_laws}.

Lemma untagged_sectors n d ws ws' : untagged n d ws = Some ws' → length ws' = n * sector_words → ∀ i, i < n →
  take (2 + sector_words) (drop (i * (2 + sector_words)) ws) =
    d.1 :: d.2 :: take sector_words (drop (i * sector_words) ws').
Proof.
  revert ws ws'. induction n as [|n IH]; intros ws ws' Hws Hlen i Hi; [lia|]. simpl in Hws.
  destruct ws as [|x [|y ws]]; [done..|]. destruct (decide ((x, y) = d)) as [<-|]; [|done].
  destruct (untagged n (x, y) (drop sector_words ws)) as [rest|] eqn:Hrest; [|done]. injection Hws as <-.
  rewrite app_length, take_length in Hlen. simpl in Hlen.
  assert (length rest ≤ n * sector_words) as Hmost.
  { clear -Hrest. revert ws rest Hrest. induction n as [|n IH]; intros ws rest; simpl; [by intros [= <-]|].
    destruct (drop sector_words ws) as [|x' [|y' ws']]; [done..|]. destruct (decide _); [|done].
    destruct (untagged n (x, y) (drop sector_words ws')) as [rest'|] eqn:E; [|done]. intros [= <-].
    apply IH in E. rewrite app_length, take_length. lia. }
  assert (length (take sector_words ws) = sector_words) as Htake by (rewrite take_length; lia).
  destruct i as [|i]; simpl.
  - rewrite drop_0, take_app_le by lia. by rewrite take_take, Nat.min_id.
  - rewrite <-!drop_drop, (drop_app_alt (take sector_words ws) rest) by done. apply (IH _ _ Hrest); lia.
Qed.

(** A block that unseals is determined by what is in it. *)
Lemma unsealed_sectors b ws : unsealed b = Some ws → length ws = sealed_words ∧
  Forall (λ w, w < limit) ws ∧ ∀ i, i < sectors → sector b i = (digest [of_words ws]).1 ::
    (digest [of_words ws]).2 :: take sector_words (drop (i * sector_words) ws).
Proof.
  unfold unsealed. destruct (to_words b) as [|x [|y rest]] eqn:Hwords; [done..|]. rewrite <-Hwords.
  destruct (untagged _ _ _) as [ws'|] eqn:Htags; [|done].
  destruct (bool_decide_reflect (length ws' = sealed_words)) as [Hlen|]; [|done].
  destruct (small ws') eqn:Hsmall; [|done]. simpl.
  destruct (decide (digest [of_words ws'] = (x, y))) as [Hd|]; [|done]. intros [= <-].
  split; [done|]. split; [by apply small_below|]. intros i Hi. rewrite Hd.
  rewrite <-(untagged_sectors _ _ _ _ Htags Hlen i Hi). unfold sector.
  pose proof sector_words_fit as [Hsome _]. unfold sector_words in *.
  by replace (2 + (words / sectors - 2)) with (words / sectors) by lia.
Qed.

Lemma of_words_inj ws ws' : length ws = sealed_words → length ws' = sealed_words →
  Forall (λ w, w < limit) ws → Forall (λ w, w < limit) ws' → of_words ws = of_words ws' → ws = ws'.
Proof.
  intros Hlen Hlen' Hws Hws' Heq. pose proof sector_words_fit as [_ Hfit].
  assert (sealed_words ≤ words) by (unfold sealed_words; nia).
  rewrite <-(words_round_trip ws), <-(words_round_trip ws') by (done || lia). by rewrite Heq, Hlen, Hlen'.
Qed.

(** What a power cut leaves of sealed blocks. *)
Theorem torn_sealed old news b :
  (∀ new, new ∈ news → is_Some (unsealed new) ∧ comparable new) → comparable b → torn_between old news b →
  same_sectors b old ∨ (∃ new, new ∈ news ∧ same_sectors b new) ∨ unsealed b = None.
Proof.
  intros Hnews Hb Htorn. destruct (unsealed b) as [ws|] eqn:Hws; [|by right; right].
  destruct (decide (Forall (λ i, sector b i = sector old i) (seq 0 sectors))) as [Hall|Hsome].
  { left. intros i Hi. rewrite Forall_forall in Hall. apply Hall, elem_of_seq. lia. }
  apply not_Forall_Exists, Exists_exists in Hsome as (i&Hi%elem_of_seq&Hne); [|intros i; apply _].
  assert (i < sectors) as Hlow by lia.
  destruct (Htorn i Hlow) as [|(new&Hin&Heq)]; [done|]. right. left. exists new. split; [done|].
  destruct (Hnews new Hin) as [[ws' Hws'] Hcompared].
  destruct (unsealed_sectors b ws Hws) as (Hlen&Hbelow&Hsectors).
  destruct (unsealed_sectors new ws' Hws') as (Hlen'&Hbelow'&Hsectors').
  rewrite Hsectors, Hsectors' in Heq by done. injection Heq as H1 H2 _.
  assert (ws = ws') as <-.
  { apply of_words_inj; try done. assert ([of_words ws] = [of_words ws']) as [= ->]; [|done].
    apply digest_injective; [by apply Hb|by apply Hcompared|]. by apply injective_projections. }
  intros j Hj. by rewrite Hsectors, Hsectors'.
Qed.

(** Sectors tear as that says; of the blocks at [data] anything may be left. *)
Definition sectors_tear (data : nat → Prop) : tearing block := Tearing data (λ _ b, ∃ old news,
  (∀ new, new ∈ news → is_Some (unsealed new) ∧ comparable new) ∧ comparable b ∧ torn_between old news b ∧
  ¬ same_sectors b old ∧ ¬ ∃ new, new ∈ news ∧ same_sectors b new).

Theorem sectors_tear_unread (data : nat → Prop) g :
  (∀ a, data a → 3 + log_blocks g ≤ a) → torn_unread (torn := sectors_tear data) g.
Proof.
  intros Hdata a Ha. split; [intros ?%Hdata; lia|].
  intros b (old&news&Hnews&Hb&Htorn&Hold&Hnew) _.
  by destruct (torn_sealed old news b Hnews Hb Htorn) as [|[|]].
Qed.
End Sectors.
