(** Executions of the proved disk, computed: the theorem is not vacuous, and it needs its hypothesis. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Checker CheckerCorrect RecordedTrace Medium Codec ByteBlocks
  ProvedDisk
  ProvedDiskProgress ProvedDiskInvariant ProvedDiskRequests ProvedDiskMachine Sectors.
From LogDisk Require Export DiskMachineLives.

Local Open Scope string_scope.

(** ** A life with everything in it *)

(** Blocks of 80 words of one byte; four blocks, a log of two records, six places. Whatever may tear does, and
reads as zeroes then. Of a block that is digested only the first byte is not zero, and below fifteen; so a
number is a digest of three blocks. *)
Definition first_byte (b : list byte) : nat :=
  match b with [] => 0 | c :: _ => Ascii.nat_of_ascii c end.
Definition padded_byte (b : nat) : list byte := Ascii.ascii_of_nat b :: replicate 79 Ascii.zero.
Definition number_of {B} (first : B → nat) (bs : list B) : nat := foldr (λ b n, S (first b) + 16 * n) 0 bs.
Definition digest_by {B} (first : B → nat) (bs : list B) : nat * nat :=
  let n := number_of first bs in (n `mod` 256, n `div` 256 `mod` 256).
Definition few_bytes (bs : list (list byte)) : bool :=
  bool_decide (length bs ≤ 3) &&
  forallb (λ b, bool_decide (first_byte b < 15) && bool_decide (b = padded_byte (first_byte b))) bs.
Definition small : blocks := byte_blocks 1 80 2 (digest_by first_byte) few_bytes.
Definition data (b : nat) : @block small := padded_byte b.

Lemma number_below {B} (first : B → nat) bs :
  Forall (λ b, first b < 15) bs → length bs ≤ 3 → number_of first bs < 4096.
Proof.
  intros Hbs Hlen. assert (number_of first bs < 16 ^ length bs) as Hless.
  { clear Hlen. induction Hbs as [|b bs Hb _ IH]; simpl in *; lia. }
  pose proof (Nat.pow_le_mono_r 16 (length bs) 3). simpl in *. lia.
Qed.

Lemma number_injective {B} (first : B → nat) xs ys :
  Forall (λ b, first b < 15) xs → Forall (λ b, first b < 15) ys →
  number_of first xs = number_of first ys → first <$> xs = first <$> ys.
Proof.
  intros Hxs. revert ys. induction Hxs as [|x xs Hx _ IH]; intros [|y ys] Hys; simpl; try done; try lia.
  apply Forall_cons in Hys as [Hy Hys]. intros Heq.
  assert (first x = first y ∧ number_of first xs = number_of first ys) as [-> ?] by lia.
  f_equal. by apply IH.
Qed.

Lemma digest_by_injective {B} (first : B → nat) xs ys :
  Forall (λ b, first b < 15) xs → Forall (λ b, first b < 15) ys → length xs ≤ 3 → length ys ≤ 3 →
  digest_by first xs = digest_by first ys → first <$> xs = first <$> ys.
Proof.
  unfold digest_by. cbv zeta. intros Hxs Hys Hx Hy [Hlow Hhigh]%pair_equal_spec.
  apply number_injective; [done..|].
  pose proof (number_below first xs Hxs Hx) as Hnx. pose proof (number_below first ys Hys Hy) as Hny.
  set (n := number_of first xs) in *. set (m := number_of first ys) in *.
  assert (n `div` 256 < 256 ∧ m `div` 256 < 256) as [? ?] by (split; apply Nat.div_lt_upper_bound; lia).
  rewrite !(Nat.mod_small (_ `div` _)) in Hhigh by done.
  rewrite (Nat.div_mod n 256), (Nat.div_mod m 256) by done. congruence.
Qed.

Lemma small_laws : @blocks_laws small.
Proof.
  assert (∀ bs, few_bytes bs = true → length bs ≤ 3 ∧ Forall (λ b, first_byte b < 15) bs ∧
    bs = padded_byte <$> (first_byte <$> bs)) as Hfew.
  { intros bs [Hlen%bool_decide_eq_true Hbs]%andb_true_iff. split; [done|]. clear Hlen.
    induction bs as [|b bs IH]; [done|]. cbn [forallb] in Hbs.
    apply andb_true_iff in Hbs as [[Hb%bool_decide_eq_true Heq%bool_decide_eq_true]%andb_true_iff Hbs].
    destruct (IH Hbs) as [Hall Heqs]. split; [by constructor|]. rewrite !fmap_cons. by f_equal. }
  apply byte_blocks_laws; [lia|lia| |].
  - intros xs ys (Hx&Hxs&Heqx)%Hfew (Hy&Hys&Heqy)%Hfew Hd.
    apply digest_by_injective in Hd; [|done..]. by rewrite Heqx, Heqy, Hd.
  - intros bs. split; apply Nat.mod_upper_bound; done.
Qed.

(** Anything may be left from address 7 on; of headers and records, what does not unseal. *)
Local Instance behind_the_log `{blocks} : tearing block :=
  Tearing (le 7) (λ a b, 0 < a ∧ unsealed b = None).
Local Instance tears_dec `{blocks} a : Decision (tears a) := le_dec 7 a.
Local Instance zeroes `{blocks} : remains := zero_block.
Local Instance sealed_tears_dec `{blocks} a : Decision (tears_to a torn_block) := _ : Decision
    (0 < a ∧ _ = None).
Definition shape_of_small : geometry := Geometry 4 2 2 6 2 2.
Lemma small_unread `{blocks} g : log_blocks g ≤ 4 → torn_unread g.
Proof. intros Hg a Ha. split; [simpl; lia|]. by intros b [_ ?]. Qed.

Definition everything : list (@event_in_life small upkeep) :=
  [Ask (DoWrite 0 [data 1; data 2]) [0; 1]; Ask (DoSnapshot "s") [];
   CutIn (DoWrite 0 [data 3]) [2] 6 LoseAll;     (* a checkpoint comes first; data and record are lost *)
   CutIn (DoWrite 0 [data 3]) [2] 3 TearOnly;    (* the record survives, its data do not: it is dropped *)
   CutIn (DoWrite 0 [data 3]) [2] 3 TearSealed;  (* the record tears, and is none *)
   CutIn (DoWrite 0 [data 4]) [2] 3 KeepAll;     (* both survive, though they were not flushed *)
   Ask (DoRead Live 0 2) []; Ask (DoRead (Named "s") 0 2) [];
   CutUpkeep Checkpoint 3 TearSealed;            (* the header tears, and is none *)
   CutUpkeep Checkpoint 2 KeepAll; CutUpkeep Checkpoint 3 KeepAll; CutRecovery 3 LoseAll;
   Keep (Clean [(0, 5)]); Ask (DoRead (Named "s") 0 1) []; Ask (DoDelete "s") []; Keep Collect;
   Ask (DoWrite 1 [data 6; data 7; data 8]) [0; 5; 3];
   Ask (DoWrite 1 [data 9]) [0];               (* the scheduler is wrong: the place is in use *)
   Ask (DoWrite 1 [data 9]) [4]; Keep Collect;
   AskGroup [(0, [data 10]); (1, [data 11])] [1; 3];           (* a place in use: none is performed *)
   AskGroup [(0, [data 10]); (1, [data 11])] [1; 0]; Keep Collect;
   CutInGroup [(2, [data 12]); (0, [data 13])] [4; 2] 4 LoseAll;  (* they are lost *)
   CutInGroup [(2, [data 12]); (0, [data 13])] [4; 2] 4 TearOnly; (* without their data *)
   Ask (DoRead Live 0 4) [];
   CutInGroup [(2, [data 12]); (0, [data 13])] [4; 2] 4 KeepAll; (* they survive *)
   Ask DoRestart []; Ask (DoRead Live 0 4) []].

Definition everything_shows : list (event (@block small)) :=
  [Write 0 [data 1; data 2] Ok; Snapshot "s" Ok;
   Write 0 [data 3] CutShort; Crash Ok; Write 0 [data 3] CutShort; Crash Ok;
   Write 0 [data 3] CutShort; Crash Ok; Write 0 [data 4] CutShort; Crash Ok;
   Read Live 0 2 Ok [data 4; data 2]; Read (Named "s") 0 2 Ok [data 1; data 2];
   Crash CutShort; Crash Ok;
   Crash CutShort; Crash Ok; Crash CutShort; Crash Ok; Crash CutShort; Crash CutShort; Crash Ok;
   Read (Named "s") 0 1 Ok [data 1]; Delete "s" Ok;
   Write 1 [data 6; data 7; data 8] Ok;
   Write 1 [data 9] (Refused NoSpace);
   Write 1 [data 9] Ok; Write 0 [data 10] Ok; Write 1 [data 11] Ok;
   Write 2 [data 12] UnknownOutcome; Write 0 [data 13] UnknownOutcome; Crash CutShort; Crash Ok;
   Write 2 [data 12] UnknownOutcome; Write 0 [data 13] UnknownOutcome; Crash CutShort; Crash Ok;
   Read Live 0 4 Ok [data 10; data 11; data 7; data 8];
   Write 2 [data 12] UnknownOutcome; Write 0 [data 13] UnknownOutcome; Crash CutShort; Crash Ok;
   Restart Ok; Read Live 0 4 Ok [data 13; data 11; data 12; data 8]].

Theorem life_exists : ∃ x x', fresh (@proved_disk small _) 4 x ∧ shows proved_disk x everything_shows x'.
Proof.
  apply (life_shows (D := proved_programs) (0, 0) shape_of_small everything); [|by vm_compute].
  apply small_unread; simpl; lia.
Qed.

(** ** Blocks that do not give back what was put in *)

(** A nine comes back as an eight. *)
Definition forgetful : blocks :=
  {| block := list nat; words := 80; sectors := 2; limit := 256; of_words := fmap
    (λ w, if decide (w = 9) then 8 else w);
     to_words := id; zero_block := []; digest := λ bs, (length bs, 0);
     compared := λ bs, bool_decide (bs = [] ∨ bs = [[1]]) |}.

Definition one : @block forgetful := [1].
Local Instance forgetful_eq_dec : EqDecision (@block forgetful) := (_ : EqDecision (list nat)).

Definition forgotten_life : list (@event_in_life forgetful upkeep) :=
  [Ask (DoWrite 9 [one]) [0]; Ask DoRestart []; Ask (DoRead Live 9 1) []].
Definition forgotten_shows : list (event (@block forgetful)) :=
  [Write 9 [one] Ok; Restart Ok; Read Live 9 1 Ok [zero]].

Lemma forgotten_life_shows :
  ∃ x x', fresh (@proved_disk forgetful _) 10 x ∧ shows proved_disk x forgotten_shows x'.
Proof.
  apply (life_shows (D := proved_programs) (0, 0) (Geometry 10 4 2 6 2 2) forgotten_life); [|by vm_compute].
  apply small_unread; simpl; lia.
Qed.

Theorem round_trip_needed : ¬ implements (@proved_disk forgetful _) Ack.
Proof.
  intros Himp. destruct forgotten_life_shows as (x&x'&Hx&Hshows).
  specialize (Himp _ _ _ _ Hx Hshows). apply check_correct in Himp. by vm_compute in Himp.
Qed.

(** ** Digests that collide, or a record that is dropped but not for good *)

(** Every list of blocks has the same digest: nothing is verified. *)
Definition colliding : blocks := byte_blocks 1 80 2 (λ _, (0, 0)) (λ _, true).
Local Instance colliding_eq_dec : EqDecision (@block colliding) := (_ : EqDecision (list byte)).
Definition seven : @block colliding := padded_byte 7.

Definition unverified_life : list (@event_in_life colliding upkeep) :=
  [Ask (DoWrite 0 [seven]) [0]; CutIn (DoWrite 0 [seven; seven]) [1; 2] 4 TearOnly;
   Ask (DoRead Live 0 1) []].
Definition unverified_shows : list (event (@block colliding)) :=
  [Write 0 [seven] Ok; Write 0 [seven; seven] CutShort; Crash Ok; Read Live 0 1 Ok [zero_block]].

(** A record without its data is taken for one that has them. *)
Theorem digest_needed : ¬ implements (@proved_disk colliding _) Ack.
Proof.
  intros Himp. destruct (@life_shows colliding _ _ _ _ _ _ proved_programs (0, 0) shape_of_small
    unverified_life
    unverified_shows)
    as (x&x'&Hx&Hshows); [apply small_unread; simpl; lia|by vm_compute|].
  specialize (Himp _ _ _ _ Hx Hshows). apply check_correct in Himp. by vm_compute in Himp.
Qed.

(** A recovery that writes nothing. *)
Fixpoint reading_only {A} (p : program (@block small) A) : program (@block small) A :=
  match p with
  | Done x => Done x
  | ReadBlock a k => ReadBlock a (λ b, reading_only (k b))
  | WriteBlock _ _ k => reading_only k
  | FlushBlocks k => reading_only k
  | Assume φ k => Assume φ (reading_only k)
  end.
Definition reads_on (m : medium (@block small)) : option (memory * medium (@block small)) :=
  match ended (reading_only (recover Done)) m with Some (Some y, m) => Some (y, m) | _ => None end.

(** A write loses its data, and so its record is dropped. Another one puts the same data into the same place,
and loses its record. *)
Definition dropped_in_memory : option (list (event (@block small))) :=
  match execute (format shape_of_small) (Medium (λ _, zero_block) []) with
  | (Some y, m) =>
      '(y, m) ← reads_on (left_by TearOnly (partly 3 (perform y [0] (@DoWrite small 0 [data 7])) m).1);
      '(o, m') ← ended (perform y [] (DoRead Live 0 1)) m;
      '(y, m) ← reads_on (left_by KeepAll (partly 2 (perform y [0] (DoWrite 1 [data 7])) m).1);
      '(o', _) ← ended (perform y [] (DoRead Live 0 1)) m;
      Some [Write 0 [data 7] CutShort; Crash Ok; Read Live 0 1 o.1.2 o.2;
        Write 1 [data 7] CutShort; Crash Ok; Read Live 0 1 o'.1.2 o'.2]
  | _ => None
  end.
Definition revived : list (event (@block small)) :=
  [Write 0 [data 7] CutShort; Crash Ok; Read Live 0 1 Ok [data 0];
   Write 1 [data 7] CutShort; Crash Ok; Read Live 0 1 Ok [data 7]].
Local Instance small_eq_dec : EqDecision (@block small) := (_ : EqDecision (list byte)).

(** The first write comes to life. *)
Theorem durable_drop_needed : dropped_in_memory = Some revived ∧ ¬ admits Ack (Create 4 :: revived).
Proof. split; [by vm_compute|]. intros Had%check_correct. by vm_compute in Had. Qed.

(** ** A torn record that unseals: the power leaves half of the new record and half of an older one *)

(** All blocks have one digest. Only the empty list of blocks may be compared, so no two lists collide. *)
Definition one_digest : blocks := byte_blocks 1 80 2 (λ _, (0, 0)) (λ bs, bool_decide (bs = [])).
Lemma one_digest_laws : @blocks_laws one_digest.
Proof.
  apply byte_blocks_laws; [lia|lia| |intros bs; simpl; lia].
  by intros xs ys ->%bool_decide_eq_true ->%bool_decide_eq_true.
Qed.

Section Torn.
Local Instance one_digest_eq_dec : EqDecision (@block one_digest) := (_ : EqDecision (list byte)).
Definition name_of (cs : list nat) : name := string_of_list_ascii (Ascii.ascii_of_nat <$> cs).
Definition long_name (c : nat) : name := name_of (replicate 64 c).
Definition record_of_snapshot (n : nat) (s : name) : @block one_digest :=
  default zero_block (seal (put log_codec (n, (LogSnapshot s, @digest one_digest [])))).
(** The first sector of one block, and the second one of another. *)
Definition halves (b b' : @block one_digest) : @block one_digest := (take 40 b ++ drop 40 b')%list.
Local Instance half_of_each : @remains one_digest :=
  halves (record_of_snapshot 3 (long_name 98)) (record_of_snapshot 1 (long_name 97)).
Local Instance torn_into_halves : tearing (@block one_digest) :=
  Tearing (le 7) (λ a b, 0 < a ∧ b = half_of_each).
Local Instance halves_dec a : Decision (tears_to a torn_block) :=
  and_dec (lt_dec 0 a) (one_digest_eq_dec _ _).
Local Instance behind_dec a : Decision (tears a) := le_dec 7 a.

Definition mixed_name : name := name_of (replicate 34 98 ++ replicate 30 97).
Definition torn_life : list (@event_in_life one_digest upkeep) :=
  [Ask (DoSnapshot (long_name 97)) []; Ask (DoDelete (long_name 97)) [];
   CutIn (DoSnapshot (long_name 98)) [] 6 TearSealed; Ask (DoRead (Named mixed_name) 0 1) []].
Definition torn_shows : list (event (@block one_digest)) :=
  [Snapshot (long_name 97) Ok; Delete (long_name 97) Ok; Snapshot (long_name 98) CutShort; Crash Ok;
   Read (Named mixed_name) 0 1 Ok [zero_block]].

(** The power leaves a sector of each. The machine is a new disk but for that, and has a snapshot that nobody
took. *)
Theorem seal_needed : @blocks_laws one_digest ∧
  torn_between (record_of_snapshot 1 (long_name 97)) [record_of_snapshot 3 (long_name 98)] half_of_each ∧
  ∃ y m x, execute (format shape_of_small) (Medium (λ _, zero_block) []) = (Some y, m) ∧
  shows proved_disk (Idle y, m) torn_shows x ∧
  ¬ admits Ack (Create (disk_blocks shape_of_small) :: torn_shows).
Proof.
  split; [apply one_digest_laws|]. split.
  { intros [|[|i]] Hi; [right|left; by vm_compute|simpl in Hi; lia].
    eexists. split; [by left|]. by vm_compute. }
  assert (life proved_programs (0, 0) shape_of_small torn_life = Some torn_shows) as Hlife by by vm_compute.
  unfold life in Hlife. destruct (execute _ _) as [[y|] m] eqn:Hex; [|done].
  apply live_on_shows in Hlife as [x Hx]. exists y, m, x. split_and!; [done|done|].
  intros Had%check_correct. by vm_compute in Had.
Qed.
End Torn.

(** ** What refusals and costs depend on *)

Definition device_of (g : geometry) : option memory * medium (@block small) :=
  execute (@format small g) (Medium (λ _, zero_block) []).

Definition answer_on (g : geometry) (places : list nat) (q : @request small) : option answer :=
  match device_of g with (Some y, m) => Some (execute (perform y places q) m).1.1.2 | _ => None end.
Definition cost_on {A} g (places : list nat) (q : @request small) (then_ : memory → program block A) :
    option (nat * nat * nat) :=
  match device_of g with
  | (Some y, m) => let '(o, m') := execute (perform y places q) m in Some (cost (then_ o.1.1) m')
  | _ => None
  end.

(** A place that does not exist, where another one would do, and a snapshot too many. *)
Theorem refusals_happen :
  answer_on shape_of_small [7] (DoWrite 0 [data 1]) = Some (Refused NoSpace) ∧
  answer_on shape_of_small [0] (DoWrite 0 [data 1]) = Some Ok ∧
  answer_on (Geometry 4 2 2 6 2 0) [] (DoSnapshot "s") = Some (Refused NoSpace).
Proof. by vm_compute. Qed.

(** One place, and two blocks to write: the first free places are not enough. *)
Theorem full_disk_refuses :
  match device_of (Geometry 4 2 2 1 2 2) with
  | (Some y, m) =>
      (execute (perform (collect y) (first_free (collect y) 2) (@DoWrite small 0 [data 1; data 2])) m).1.1.2 =
      Refused NoSpace ∧
      (execute (write_group (collect y) (first_free (collect y) 2) [(0, [data 1]); (2, [data 2])]) m).1.2 =
      false
  | _ => False
  end.
Proof. by vm_compute. Qed.

(** With a full log a write costs a checkpoint too, and so do several at once. *)
Theorem full_log_costs_more :
  let one := λ y, perform y [3] (DoWrite 0 [data 1]) in
  let two := λ y, write_group y [3; 4] [(0, [data 1]); (2, [data 2])] in
  cost_on (Geometry 4 2 2 6 2 2) [0] (DoWrite 0 [data 1]) one = Some (0, 2, 1) ∧
  cost_on (Geometry 4 2 2 6 2 2) [0] (DoWrite 0 [data 1]) two = Some (0, 3, 1) ∧
  cost_on (Geometry 4 1 2 6 2 2) [0] (DoWrite 0 [data 1]) one = Some (0, 4, 3) ∧
  cost_on (Geometry 4 1 2 6 2 2) [0] (DoWrite 0 [data 1]) two = Some (0, 5, 3).
Proof. by vm_compute. Qed.
