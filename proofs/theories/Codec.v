(** Values as words, and words in blocks; each codec with its round trip.

A block holds [words] words below [limit], and what a reader finds behind the words that were put into it is
anybody's guess. How a block holds words is left to [blocks]: bytes are one way ([ByteBlocks.v]).

A power cut may tear a block: it leaves each of its [sectors] as it was or as it was written. So a block that
must be whole is sealed: each sector of it begins with the digest of the whole ([sealed]), and a block whose
sectors say different things, or another digest than it has, is not read ([unseal], [Sectors.v]).

A digest stands for a list of blocks. No digest that fits into a block is injective, so [compared] says of
which lists it is assumed to be: of those whose digest a disk takes. A machine goes on only as long as it
takes digests of such lists alone. So what is proved of it, for every set [compared], holds of every run in
which no two different lists of blocks whose digests were taken have the same one. *)
From stdpp Require Import gmap strings.
From Coq Require Import PeanoNat.    (* last: extraction knows its names *)

Class blocks := Blocks {
  block : Type;
  words : nat;
  sectors : nat;
  limit : nat;
  of_words : list nat → block;
  to_words : block → list nat;
  zero_block : block;
  digest : list block → nat * nat;
  compared : list block → bool;
}.

(** No two of these lists have the same digest. *)
Definition collision_free {B} (digest : list B → nat * nat) (compared : list B → bool) : Prop :=
  ∀ xs ys, compared xs = true → compared ys = true → digest xs = digest ys → xs = ys.
Definition digests_below {B} (digest : list B → nat * nat) (limit : nat) : Prop :=
  ∀ xs, (digest xs).1 < limit ∧ (digest xs).2 < limit.

Class blocks_laws `{blocks} : Prop := {
  sectors_positive : 0 < sectors;
  sectors_fit : 3 * sectors ≤ words;      (* a digest and a word go into each *)
  words_round_trip ws : length ws ≤ words → Forall (λ w, w < limit) ws →
    take (length ws) (to_words (of_words ws)) = ws;
  digest_injective : collision_free digest compared;
  digest_below : digests_below digest limit;
}.

(** ** Codecs *)

(** [put] makes words of a value; [get] takes a value off the front of words. *)
Record codec (A : Type) := Codec { put : A → list nat; get : list nat → option (A * list nat) }.
Global Arguments Codec {_} _ _. Global Arguments put {_} _ _. Global Arguments get {_} _ _.

Definition round_trips {A} (c : codec A) : Prop := ∀ x rest, get c (put c x ++ rest) = Some (x, rest).

Definition number : codec nat :=
  Codec (λ n, [n]) (λ ws, match ws with w :: ws => Some (w, ws) | [] => None end).

Definition both {A B} (a : codec A) (b : codec B) : codec (A * B) :=
  Codec (λ x, put a x.1 ++ put b x.2)
    (λ ws, match get a ws with
           | Some (x, ws) => match get b ws with Some (y, ws) => Some ((x, y), ws) | None => None end
           | None => None
           end).

(** A value is put as what it is made [into]; [of] is the way back. *)
Definition mapped {A B} (into : B → A) (of : A → option B) (a : codec A) : codec B :=
  Codec (λ y, put a (into y))
    (λ ws, match get a ws with
           | Some (x, ws) => match of x with Some y => Some (y, ws) | None => None end
           | None => None
           end).

Fixpoint get_times {A} (a : codec A) (n : nat) (done : list A) (ws : list nat) : option (list A * list nat) :=
  match n with
  | 0 => Some (rev_append done [], ws)
  | S n => match get a ws with Some (x, ws) => get_times a n (x :: done) ws | None => None end
  end.

(** From the last one to the first, so that the stack does not grow with the list. *)
Definition put_many {A} (a : codec A) (xs : list A) : list nat :=
  foldl (λ ws x, put a x ++ ws) [] (reverse xs).
Definition many {A} (a : codec A) : codec (list A) :=
  Codec (λ xs, length xs :: put_many a xs)
    (λ ws, match ws with n :: ws => get_times a n [] ws | [] => None end).

Fixpoint characters (s : string) : list nat :=
  match s with EmptyString => [] | String c s => Ascii.nat_of_ascii c :: characters s end.
Definition text_of (cs : list nat) : string := foldr (λ c s, String (Ascii.ascii_of_nat c) s) EmptyString cs.
Definition text : codec string := mapped characters (λ cs, Some (text_of cs)) (many number).

(** [list_to_map], in the same order. *)
Definition map_of {K A} `{Countable K} (l : list (K * A)) : gmap K A :=
  foldl (λ m e, <[e.1 := e.2]> m) ∅ (reverse l).
Definition finite_map {K A} `{Countable K} (k : codec K) (a : codec A) : codec (gmap K A) :=
  mapped map_to_list (λ l, Some (map_of l)) (many (both k a)).

Lemma number_round_trips : round_trips number.
Proof. done. Qed.

Lemma both_round_trips {A B} (a : codec A) (b : codec B) : round_trips a → round_trips b →
  round_trips (both a b).
Proof. intros Ha Hb [x y] rest. simpl. by rewrite <-(assoc_L (++)), Ha, Hb. Qed.

Lemma mapped_round_trips {A B} (into : B → A) of (a : codec A) :
  round_trips a → (∀ y, of (into y) = Some y) → round_trips (mapped into of a).
Proof. intros Ha Hof y rest. simpl. by rewrite Ha, Hof. Qed.

Lemma put_many_cons {A} (a : codec A) x xs : put_many a (x :: xs) = put a x ++ put_many a xs.
Proof. unfold put_many. by rewrite reverse_cons, foldl_app. Qed.

Lemma map_of_list {K A} `{Countable K} (l : list (K * A)) : map_of l = list_to_map l.
Proof.
  induction l as [|e l IH]; [done|]. unfold map_of in *. by rewrite reverse_cons, foldl_app, IH.
Qed.

Lemma many_round_trips {A} (a : codec A) : round_trips a → round_trips (many a).
Proof.
  intros Ha xs rest. simpl. assert (∀ done, get_times a (length xs) done (put_many a xs ++ rest)
    = Some (rev_append done [] ++ xs, rest)) as ->; [|done].
  induction xs as [|x xs IH]; intros done; simpl; [by rewrite app_nil_r|].
  rewrite put_many_cons, <-(assoc_L (++)), Ha, IH. do 2 f_equal. rewrite !rev_append_rev, !app_nil_r. simpl.
    by rewrite <-(assoc_L (++)).
Qed.

Lemma text_round_trips : round_trips text.
Proof.
  apply mapped_round_trips; [apply many_round_trips, number_round_trips|]. intros s. f_equal.
  induction s as [|c s IH]; [done|]. unfold text_of in *. simpl. by rewrite IH, Ascii.ascii_nat_embedding.
Qed.

Lemma finite_map_round_trips {K A} `{Countable K} (k : codec K) (a : codec A) :
  round_trips k → round_trips a → round_trips (finite_map k a).
Proof.
  intros. apply mapped_round_trips; [by apply many_round_trips, both_round_trips|].
  intros m. by rewrite map_of_list, list_to_map_to_list.
Qed.

(** ** Words in blocks *)

Section Packing.
Context `{blocks}.

Definition small (ws : list nat) : bool := forallb (λ w, bool_decide (w < limit)) ws.

(** The words as one block, if they go in. *)
Definition pack (ws : list nat) : option block :=
  if bool_decide (length ws ≤ words) && small ws then Some (of_words ws) else None.
Definition unpack {A} (c : codec A) (b : block) : option A := fst <$> get c (to_words b).

(** The words as so many blocks as it takes, at most [n]. *)
Fixpoint pack_many (n : nat) (ws : list nat) : option (list block) :=
  match ws, n with
  | [], _ => Some []
  | _, 0 => None
  | _, S n => match pack (take words ws), pack_many n (drop words ws) with
              | Some b, Some bs => Some (b :: bs)
              | _, _ => None
              end
  end.
Definition all_words (bs : list block) : list nat := foldr (λ b ws, take words (to_words b) ++ ws) [] bs.
Definition unpack_many {A} (c : codec A) (bs : list block) : option A := fst <$> get c (all_words bs).

(** *** Sealed blocks *)

(** Words of a sector beside the digest, and of a block. *)
Definition sector_words : nat := Nat.div words sectors - 2.
Definition sealed_words : nat := sectors * sector_words.

(** The words in [n] sectors, each behind the digest; and back, if each sector has it. *)
Fixpoint tagged (n : nat) (d : nat * nat) (ws : list nat) : list nat :=
  match n with
  | 0 => []
  | S n => d.1 :: d.2 :: take sector_words ws ++ tagged n d (drop sector_words ws)
  end.
Fixpoint untagged (n : nat) (d : nat * nat) (ws : list nat) : option (list nat) :=
  match n, ws with
  | 0, _ => Some []
  | S n, x :: y :: ws =>
      if decide ((x, y) = d) then
        match untagged n d (drop sector_words ws) with
        | Some ws' => Some (take sector_words ws ++ ws')
        | None => None
        end
      else None
  | _, _ => None
  end.

Definition filled (ws : list nat) : list nat := ws ++ replicate (sealed_words - length ws) 0.
Definition sealed (ws : list nat) : block :=
  let ws := filled ws in of_words (tagged sectors (digest [of_words ws]) ws).
(** If the words go in. *)
Definition seal (ws : list nat) : option block :=
  if bool_decide (length ws ≤ sealed_words) && small ws then Some (sealed ws) else None.

Definition unsealed (b : block) : option (list nat) :=
  match to_words b with
  | x :: y :: _ =>
      match untagged sectors (x, y) (to_words b) with
      | Some ws =>
          if bool_decide (length ws = sealed_words) && small ws then
            if decide (digest [of_words ws] = (x, y)) then Some ws else None
          else None
      | None => None
      end
  | _ => None
  end.
Definition unseal {A} (c : codec A) (b : block) : option A :=
  match unsealed b with Some ws => fst <$> get c ws | None => None end.

(** A block that holds the number 0, and so nothing with a larger one. *)
Definition blank_block : block := sealed [0].

Context `{!blocks_laws}.

Lemma words_positive : 0 < words.
Proof. pose proof sectors_positive. pose proof sectors_fit. lia. Qed.

Lemma limit_positive : 0 < limit.
Proof. destruct (digest_below []). lia. Qed.

Lemma small_below ws : small ws = true ↔ Forall (λ w, w < limit) ws.
Proof.
  unfold small. rewrite forallb_forall, Forall_forall.
  split; intros Hws w Hw; [eapply bool_decide_eq_true_1|apply bool_decide_eq_true_2]; by apply Hws,
    elem_of_list_In.
Qed.

Lemma pack_prefix ws b : pack ws = Some b → length ws ≤ words ∧ ∃ rest, to_words b = ws ++ rest.
Proof.
  unfold pack. destruct (bool_decide_reflect (length ws ≤ words)) as [Hlen|]; [|done].
  destruct (small ws) eqn:Hsmall; [|done]. intros [= <-]. split; [done|].
  exists (drop (length ws) (to_words (of_words ws))).
    rewrite <-(take_drop (length ws) (to_words (of_words ws))) at 1. f_equal.
  apply words_round_trip; [done|by apply small_below].
Qed.

Lemma pack_unpack {A} (c : codec A) x b : round_trips c → pack (put c x) = Some b → unpack c b = Some x.
Proof. intros Hc (_&rest&Hrest)%pack_prefix. unfold unpack. by rewrite Hrest, Hc. Qed.

Lemma pack_many_prefix n ws bs : pack_many n ws = Some bs → length bs ≤ n ∧ ∃ rest, all_words bs = ws ++ rest.
Proof.
  revert ws bs. induction n as [|n IH]; intros [|w ws] bs; simpl;
    try (intros [= <-]; simpl; split; [lia|by exists []]).
  { done. }
  pose proof words_positive as Hpos. set (all := w :: ws).
  destruct (pack (take words all)) as [b|] eqn:Hb; [|done].
  destruct (pack_many n (drop words all)) as [bs'|] eqn:Hbs; [|done]. intros [= <-].
  destruct (IH _ _ Hbs) as (Hlen&rest'&Hrest'). apply pack_prefix in Hb as (_&rest&Hrest). split; [simpl;
    lia|].
  simpl. rewrite Hrest, Hrest'. destruct (decide (words ≤ length all)) as [Hfull|Hpart].
  - exists rest'. rewrite take_app_le by (rewrite take_length; lia). rewrite take_take, Nat.min_id.
    by rewrite (assoc_L (++)), take_drop.
  - rewrite (take_ge all) by lia. rewrite drop_ge by lia. rewrite take_app_ge by lia.
    rewrite <-(assoc_L (++)). by eexists.
Qed.

Lemma pack_many_unpack {A} (c : codec A) x n bs :
  round_trips c → pack_many n (put c x) = Some bs → length bs ≤ n ∧ unpack_many c bs = Some x.
Proof.
  intros Hc (Hlen&rest&Hrest)%pack_many_prefix. split; [done|]. unfold unpack_many. by rewrite Hrest, Hc.
Qed.

(** *** Sealed blocks are read back *)

Lemma sector_words_fit : 0 < sector_words ∧ sectors * (2 + sector_words) ≤ words.
Proof.
  unfold sector_words. pose proof sectors_positive. pose proof sectors_fit.
  assert (3 ≤ words / sectors) by (apply Nat.div_le_lower_bound; lia).
  replace (2 + (words / sectors - 2)) with (words / sectors) by lia. split; [lia|]. apply Nat.mul_div_le. lia.
Qed.

Lemma two_words_fit : 4 ≤ words → 2 ≤ sealed_words.
Proof.
  intros Hwords. pose proof sector_words_fit as [Hsome _]. unfold sealed_words. pose proof sectors_positive.
  destruct (decide (sectors = 1)) as [E|]; [|nia]. unfold sector_words. rewrite E, Nat.div_1_r. lia.
Qed.

Lemma tagged_length n d ws : length ws = n * sector_words → length (tagged n d ws) = n * (2 + sector_words).
Proof.
  revert ws. induction n as [|n IH]; intros ws Hlen; simpl; [done|].
  rewrite app_length, take_length, IH by (rewrite drop_length; lia). lia.
Qed.

Lemma untagged_tagged n d ws rest : length ws = n * sector_words →
  untagged n d (tagged n d ws ++ rest) = Some ws.
Proof.
  revert ws. induction n as [|n IH]; intros ws Hlen; simpl in *; [by destruct ws|].
  rewrite decide_True by by destruct d. rewrite <-(assoc_L (++)).
  assert (length (take sector_words ws) = sector_words) as Htake by (rewrite take_length; lia).
  rewrite take_app_alt, drop_app_alt by done.
  rewrite IH by (rewrite drop_length; lia). by rewrite take_drop.
Qed.

Lemma tagged_below n d ws : d.1 < limit → d.2 < limit → Forall (λ w, w < limit) ws →
  Forall (λ w, w < limit) (tagged n d ws).
Proof.
  intros H1 H2. revert ws. induction n as [|n IH]; intros ws Hws; simpl; [constructor|].
  do 2 (constructor; [done|]). apply Forall_app. split; [by apply Forall_take|by apply IH, Forall_drop].
Qed.

Lemma filled_length ws : length ws ≤ sealed_words → length (filled ws) = sealed_words.
Proof. intros. unfold filled. rewrite app_length, replicate_length. lia. Qed.

Lemma filled_below ws : Forall (λ w, w < limit) ws → Forall (λ w, w < limit) (filled ws).
Proof.
  intros. apply Forall_app. split; [done|]. apply Forall_replicate. apply limit_positive.
Qed.

Lemma sealed_words_of ws : length ws ≤ sealed_words → Forall (λ w, w < limit) ws →
  ∃ rest, to_words (sealed ws) = tagged sectors (digest [of_words (filled ws)]) (filled ws) ++ rest.
Proof.
  intros Hlen Hws. pose proof sector_words_fit as [_ Hfit].
  set (d := digest _). set (ts := tagged _ _ _).
  exists (drop (length ts) (to_words (of_words ts))). change (sealed ws) with (of_words ts).
  rewrite <-(take_drop (length ts) (to_words (of_words ts))) at 1. f_equal. apply words_round_trip.
  - unfold ts. rewrite tagged_length by by apply filled_length. done.
  - apply tagged_below; [apply digest_below..|by apply filled_below].
Qed.

Lemma unsealed_sealed ws : length ws ≤ sealed_words → Forall (λ w, w < limit) ws →
  unsealed (sealed ws) = Some (filled ws).
Proof.
  intros Hlen Hws. destruct (sealed_words_of ws Hlen Hws) as [rest Hwords].
  pose proof (filled_length ws Hlen) as Hfilled. set (d := digest [of_words (filled ws)]) in *.
  unfold unsealed. rewrite Hwords.
  assert (∃ more, tagged sectors d (filled ws) ++ rest = d.1 :: d.2 :: more) as [more Hmore].
  { pose proof sectors_positive. destruct sectors as [|n]; [lia|]. simpl. by eexists. }
  rewrite Hmore, <-Hmore, <-surjective_pairing, untagged_tagged by done.
  rewrite bool_decide_eq_true_2 by done. rewrite (proj2 (small_below _)) by by apply filled_below. simpl.
  by rewrite decide_True.
Qed.

Lemma seal_some ws : length ws ≤ sealed_words → Forall (λ w, w < limit) ws → seal ws = Some (sealed ws).
Proof. intros. unfold seal. by rewrite bool_decide_eq_true_2, (proj2 (small_below ws)). Qed.

Lemma seal_words ws b : seal ws = Some b →
  b = sealed ws ∧ length ws ≤ sealed_words ∧ Forall (λ w, w < limit) ws.
Proof.
  unfold seal. destruct (bool_decide_reflect (length ws ≤ sealed_words)); [|done].
  destruct (small ws) eqn:Hsmall; [|done]. intros [= <-]. split_and!; [done..|by apply small_below].
Qed.

Lemma seal_unseal {A} (c : codec A) x b : round_trips c → seal (put c x) = Some b → unseal c b = Some x.
Proof.
  intros Hc (->&Hlen&Hws)%seal_words. unfold unseal. rewrite unsealed_sealed by done. unfold filled.
  by rewrite Hc.
Qed.

Lemma unread {A} (c : codec A) b : unsealed b = None → unseal c b = None.
Proof. intros Hb. unfold unseal. by rewrite Hb. Qed.

Lemma blank_sealed : length [0] ≤ sealed_words ∧ Forall (λ w, w < limit) [0].
Proof.
  pose proof sector_words_fit. pose proof sectors_positive. unfold sealed_words. simpl.
  split; [nia|]. apply Forall_singleton, limit_positive.
Qed.

Lemma blank_number {A} (c : codec A) n x : unseal (both number c) blank_block = Some (n, x) → n = 0.
Proof.
  unfold unseal, blank_block. rewrite unsealed_sealed by apply blank_sealed. simpl.
  destruct (get c _) as [[]|]; simpl; [|done]. by intros [= <- _].
Qed.

End Packing.
