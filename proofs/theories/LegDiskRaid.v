(** Executions of the proved disk with whole maps on RAID-5 and RAID-6, computed, and what its theorem needs
of the code. *)
From stdpp Require Import gmap strings vector.
From LogDisk Require Import Parity RedundancyCode VirtualDisk RecordedTrace Checker CheckerCorrect Medium
  Codec ProvedDisk ProvedDiskRequests ProvedDiskInvariant ProvedDiskMachine ProvedDiskExecution.
From LogDisk Require Import Devices Leg LegCorrect LegCode LegDiskMachine LegDiskExecution.
Import DiskMachine(programs).
Local Open Scope string_scope.

(** ** Blocks of [k] pieces of [n] bytes: the words go round the pieces *)

Definition byte_of (w : nat) : byte := default Parity.zero (bytes !! w).
Definition nat_of (b : byte) : nat := default 0 (fst <$> list_find (b =.) bytes).

Definition striped_blocks (n k : nat) (d : list (vec (vec byte n) k) → nat * nat)
    (c : list (vec (vec byte n) k) → bool) : blocks := {|
  block := vec (vec byte n) k;
  words := n * k;
  sectors := 2;
  limit := 256;
  of_words ws := fun_to_vec (λ i, fun_to_vec (λ j,
    byte_of (default 0 (ws !! (fin_to_nat j * k + fin_to_nat i)))));
  to_words b := (λ a, nat_of (default Parity.zero
    (vec_to_list (default Parity.zeroes (vec_to_list b !! (a `mod` k))) !! (a / k)))) <$> seq 0 (n * k);
  zero_block := vreplicate k Parity.zeroes;
  digest := d;
  compared := c;
|}.

Lemma byte_round_trips w : w < 256 → nat_of (byte_of w) = w.
Proof.
  intros Hw. assert (Forall (λ w, nat_of (byte_of w) = w) (seq 0 256)) as Hall.
  { apply (bool_decide_eq_true_1 _). by vm_compute. }
  rewrite Forall_forall in Hall. apply Hall, elem_of_seq. lia.
Qed.

Lemma striped_blocks_laws n k d c : 0 < k → 6 ≤ n * k → collision_free d c → digests_below d 256 →
  @blocks_laws (striped_blocks n k d c).
Proof.
  intros Hk Hn Hfree Hbelow. split; [simpl; lia|simpl; lia| |done..]. intros ws Hlen Hws. simpl in *.
  apply list_eq. intros a. destruct (decide (a < length ws)) as [Ha|Ha].
  - rewrite lookup_take, list_lookup_fmap, lookup_seq_lt by lia. simpl.
    destruct (lookup_lt_is_Some_2 ws a Ha) as [w Hw]. rewrite Hw. f_equal.
    assert (a `mod` k < k) as Hmod by (apply Nat.mod_upper_bound; lia).
    assert (a / k < n) as Hdiv by (apply Nat.div_lt_upper_bound; lia).
    set (b := fun_to_vec _).
    assert (vec_to_list b !! (a `mod` k) = Some (b !!! nat_to_fin Hmod)) as ->.
    { apply vlookup_lookup'. exists Hmod. done. }
    simpl. set (p := b !!! _).
    assert (vec_to_list p !! (a / k) = Some (p !!! nat_to_fin Hdiv)) as ->.
    { apply vlookup_lookup'. exists Hdiv. done. }
    simpl. unfold p, b. rewrite !lookup_fun_to_vec, !fin_to_nat_to_fin.
    replace (a / k * k + a `mod` k) with a by (rewrite (Nat.div_mod a k) at 1; lia). rewrite Hw. simpl.
    apply byte_round_trips. rewrite Forall_forall in Hws. by eapply Hws, elem_of_list_lookup_2.
  - rewrite !(proj2 (lookup_ge_None _ _)); [done|lia|].
    rewrite take_length, fmap_length, seq_length. lia.
Qed.

(** ** A life with everything in it, on RAID-5: two pieces and their sum, on three devices *)

(** The first word of a block is digested. *)
Definition first_word (b : vec (vec byte 40) 2) : nat :=
  match vec_to_list b with p :: _ => match vec_to_list p with w :: _ => nat_of w | [] => 0 end | [] => 0 end.
Definition two_pieces : blocks := striped_blocks 40 2 (digest_by first_word) (λ _, true).
Definition content (b : nat) : @block two_pieces := @of_words two_pieces [b].
(** Anything may be left from address [a] on; of headers and records, what does not unseal. *)
Definition tears_from (a : nat) : tearing (@block two_pieces) :=
  Tearing (le a) (λ a b, 0 < a ∧ @unsealed two_pieces b = None).
(** Of the blocks from address [a] devices have pieces, of the others each has all. *)
Definition raid_of_two (m a : nat) : cutting (@block two_pieces) (@block two_pieces + vec byte 40) :=
  raid_leg (torn := tears_from a) (decided := le_dec a) 40 2 m id id.
Notation happening U := (@happening two_pieces (@block two_pieces + vec byte 40) U).
Local Notation D := proved_programs.
Local Notation shown := (list (entry (@block two_pieces))).

Definition everything_on_raid5 : list (happening upkeep) :=
  [Asks (DoWrite 0 [content 1; content 2]) [0; 1]; Asks (DoSnapshot "s") [];
   Cuts (DoWrite 0 [content 3]) [2] 2;         (* device 0 has a piece of a block of the checkpoint *)
   Asks (DoRead Live 0 2) [];
   Fails 0; Asks (DoWrite 0 [content 4]) [4]; Asks (DoRead Live 0 2) [];    (* degraded *)
   Breaks (DoWrite 1 [content 5]) [5] 6 2;
         (* device 2 loses its piece of the data: the record is dropped *)
   Asks (DoRead Live 0 2) []; Returns 0; Opens; Asks (DoRead Live 0 2) [];  (* what is back is stale *)
   Returns 2; Opens; Asks (DoRead Live 0 2) []; Settles;
   Gets 1 (inr Parity.zeroes); Asks (DoRead Live 0 2) []; Settles;
   Fails 2; Asks (DoRead Live 0 2) []; Asks (DoRead (Named "s") 0 2) []].

Definition everything_on_raid5_shows : shown :=
  [Event (Write 0 [content 1; content 2] Ok); Event (Snapshot "s" Ok);
   Event (Write 0 [content 3] CutShort); Event (Crash Ok);
   Event (Read Live 0 2 Ok [content 1; content 2]);
   Fail 0 Ok; Event (Write 0 [content 4] Ok); Event (Read Live 0 2 Ok [content 4; content 2]);
   Fail 2 Ok; Event (Write 1 [content 5] UnknownOutcome);
   Event (Read Live 0 2 (Refused DataLost) []); Return 0 Ok; Event (Read Live 0 2 (Refused DataLost) []);
   Return 2 Ok; Event (Read Live 0 2 Ok [content 4; content 2]); Settle Ok;
   Replace 1 Ok; Event (Read Live 0 2 Ok [content 4; content 2]); Settle Ok;
   Fail 2 Ok; Event (Read Live 0 2 Ok [content 4; content 2]);
   Event (Read (Named "s") 0 2 Ok [content 1; content 2])].

Lemma raid_of_two_laws m a : 1 ≤ m ≤ 2 → cutting_laws (H := raid_of_two m a) (torn := tears_from a) (2 + m).
Proof. intros Hm. by apply raid_leg_laws; [|lia|lia|lia]. Qed.

Lemma tears_from_unread a g : 3 + log_blocks g ≤ a → torn_unread (torn := tears_from a) g.
Proof.
  intros Hg a' Ha. split; [simpl; lia|]. by intros b [_ ?].
Qed.

(** Superblock, headers and a log of two records are below 5. *)
Lemma raid_life_lives {Y U} (D : programs Y U) m size trees g es (tr : shown) :
  log_blocks g = 2 → @leg_life two_pieces _ (raid_of_two m 5) _ _ D size (2 + m) trees g es = Some tr →
  ∃ z z', @formatted two_pieces _ (raid_of_two m 5) (tears_from 5) _ _ D size (2 + m) (disk_blocks g) z ∧
    @lives two_pieces _ (raid_of_two m 5) (tears_from 5) _ _ D size (2 + m) z tr z'.
Proof. intros Hg. apply leg_life_lives, tears_from_unread. lia. Qed.

Theorem raid5_life_exists : ∃ z z',
  @formatted two_pieces _ (raid_of_two 1 5) (tears_from 5) _ _ D 20 3 4 z ∧
  @lives two_pieces _ (raid_of_two 1 5) (tears_from 5) _ _ D 20 3 z everything_on_raid5_shows z'.
Proof. by apply (raid_life_lives D 1 20 (0, 0) shape_of_small everything_on_raid5); [|vm_compute]. Qed.

(** ** On RAID-6: P and Q, on four devices of which two fail at a time *)

Definition everything_on_raid6 {U} : list (happening U) :=
  [Asks (DoWrite 0 [content 1; content 2]) [0; 1]; Fails 0; Fails 1; Asks (DoRead Live 0 2) [];
   Asks (DoWrite 0 [content 3]) [2]; Asks (DoRead Live 0 2) []; Fails 2; Asks (DoRead Live 0 2) [];
   Returns 2; Opens; Returns 0; Gets 1 (inr Parity.zeroes); Settles; Fails 2; Fails 3;
   Asks (DoRead Live 0 2) []].
Definition everything_on_raid6_shows : shown :=
  [Event (Write 0 [content 1; content 2] Ok); Fail 0 Ok; Fail 1 Ok;
   Event (Read Live 0 2 Ok [content 1; content 2]); Event (Write 0 [content 3] Ok);
   Event (Read Live 0 2 Ok [content 3; content 2]); Fail 2 Ok; Event (Read Live 0 2 (Refused DataLost) []);
   Return 2 Ok; Return 0 Ok; Replace 1 Ok; Settle Ok; Fail 2 Ok; Fail 3 Ok;
   Event (Read Live 0 2 Ok [content 3; content 2])].

Theorem raid6_life_exists : ∃ z z',
  @formatted two_pieces _ (raid_of_two 2 5) (tears_from 5) _ _ D 20 4 4 z ∧
  @lives two_pieces _ (raid_of_two 2 5) (tears_from 5) _ _ D 20 4 z everything_on_raid6_shows z'.
Proof. by apply (raid_life_lives D 2 20 (0, 0) shape_of_small everything_on_raid6); [|vm_compute]. Qed.

(** ** What the theorem needs of the code *)

(** Parity that is not the sum of the data: without a device, what is read is not what was written. *)
Definition no_parity : RedundancyCode.code (vec byte 40) :=
  RedundancyCode.Code _ 2 1 Parity.zeroes (λ _, [Parity.zeroes]) (RedundancyCode.decode (raid 1 2)).
Definition without_parity : cutting (@block two_pieces) (@block two_pieces + vec byte 40) :=
  of_code (torn := tears_from 5) (decided := le_dec 5) no_parity vec_to_list (vector_of 40 2).

Definition one_fails {U} : list (happening U) :=
  [Asks (DoWrite 0 [content 1]) [0]; Fails 0; Asks (DoRead Live 0 1) []].
Definition wrong_without_parity : shown :=
  [Event (Write 0 [content 1] Ok); Fail 0 Ok; Event (Read Live 0 1 Ok [zero_block])].

Local Instance two_pieces_eq_dec : EqDecision (@block two_pieces) := (_ : EqDecision (vec (vec byte 40) 2)).

Lemma wrong_code {Y U} (D : programs Y U) size trees g : disk_blocks g = 4 → log_blocks g = 2 →
  @leg_life two_pieces _ without_parity _ _ D size 3 trees g one_fails = Some wrong_without_parity →
  ∃ z z', @formatted two_pieces _ without_parity (tears_from 5) _ _ D size 3 4 z ∧
    @lives two_pieces _ without_parity (tears_from 5) _ _ D size 3 z wrong_without_parity z' ∧
    ¬ admits_recorded Ack 1 (Event (Create 4) :: wrong_without_parity).
Proof.
  intros Hg Hlog Hlife. apply (leg_life_lives (torn := tears_from 5)) in Hlife as (z&z'&Hz&Hlives).
  2:{ apply tears_from_unread. lia. }
  rewrite Hg in Hz. exists z, z'. split_and!; [done..|]. intros Had%check_recorded_correct.
  by vm_compute in Had.
Qed.

Theorem code_needed : ∃ z z',
  @formatted two_pieces _ without_parity (tears_from 5) _ _ D 20 3 4 z ∧
  @lives two_pieces _ without_parity (tears_from 5) _ _ D 20 3 z wrong_without_parity z' ∧
  ¬ admits_recorded Ack 1 (Event (Create 4) :: wrong_without_parity).
Proof. by apply (wrong_code D 20 (0, 0) shape_of_small); [..|vm_compute]. Qed.

(** Blocks of several pieces that are thought not to tear: the log is of such. The record of a request that
the power cut has a piece of an older one, and so it unmaps another block. *)
Definition torn_record {U} (ios : nat) : list (happening U) :=
  [Asks (DoUnmap 0 1) []; Asks (DoWrite 0 [content 1; content 2]) [0; 1];
   Cuts (DoUnmap 2 1) [] ios; Asks (DoRead Live 0 2) []].
Definition torn_record_shows : shown :=
  [Event (Unmap 0 1 Ok); Event (Write 0 [content 1; content 2] Ok);
   Event (Unmap 2 1 CutShort); Event (Crash Ok); Event (Read Live 0 2 Ok [zero_block; content 2])].

Lemma torn_is_wrong {Y U} (D : programs Y U) size trees g ios : disk_blocks g = 4 →
  @leg_life two_pieces _ (raid_of_two 1 0) _ _ D size 3 trees g (torn_record ios) = Some torn_record_shows →
  ∃ z z', @formatted two_pieces _ (raid_of_two 1 0) untorn _ _ D size 3 4 z ∧
    @lives two_pieces _ (raid_of_two 1 0) untorn _ _ D size 3 z torn_record_shows z' ∧
    ¬ admits_recorded Ack 1 (Event (Create 4) :: torn_record_shows).
Proof.
  intros Hg Hlife. apply (leg_life_lives (torn := untorn)) in Hlife as (z&z'&Hz&Hlives);
    [|apply untorn_unread].
  rewrite Hg in Hz. exists z, z'. split_and!; [done..|]. intros Had%check_recorded_correct.
  by vm_compute in Had.
Qed.

Theorem tearing_needed : ∃ z z',
  @formatted two_pieces _ (raid_of_two 1 0) untorn _ _ D 20 3 4 z ∧
  @lives two_pieces _ (raid_of_two 1 0) untorn _ _ D 20 3 z torn_record_shows z' ∧
  ¬ admits_recorded Ack 1 (Event (Create 4) :: torn_record_shows).
Proof. by apply (torn_is_wrong D 20 (0, 0) shape_of_small 14); [|vm_compute]. Qed.
