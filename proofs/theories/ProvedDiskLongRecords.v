(** Executions in which records take several blocks of the log, computed; and what is assumed of the digests
of their bodies is needed. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Checker CheckerCorrect RecordedTrace Medium Codec ByteBlocks
  ProvedDisk ProvedDiskProgress ProvedDiskInvariant ProvedDiskRequests ProvedDiskMachine.
From LogDisk Require Export DiskMachineLives.

Local Open Scope string_scope.

(** Blocks of 27 words of one byte in nine sectors: six words of a record go into one block, and eight into a
body. So the record of two writes takes two blocks. Four blocks, a log of four, eight places. *)
Definition filled_with (b : nat) : list byte := Ascii.ascii_of_nat b :: replicate 26 Ascii.zero.
Definition shape_of_tiny : geometry := Geometry 4 4 4 8 2 2.

(** All lists of blocks have one digest. *)
Definition same : blocks := byte_blocks 1 27 9 (λ _, (0, 7)) (λ _, true).

(** The lists that are digested in the execution: data, bodies, and what a power cut leaves of them. Each has
its place in this list as its digest, and all others have the same one. *)
Definition bodies_of (r : log_record) : list (list byte) := default [] (@bodies same 1 (put record_codec r)).
Definition digested : list (list (list byte)) :=
  [[]; [filled_with 1; filled_with 2]; [filled_with 3; filled_with 4]; [filled_with 0; filled_with 0];
   [filled_with 5; filled_with 6; filled_with 7];
   bodies_of (LogGroup [(0, 0); (1, 1)]); bodies_of (LogGroup [(2, 2); (3, 3)]);
   bodies_of (LogWrite 0 [4; 5; 6]); [@blank_block same]].
Fixpoint index_of (xs : list (list byte)) (yss : list (list (list byte))) : option nat :=
  match yss with
  | [] => None
  | ys :: yss => if decide (xs = ys) then Some 0 else S <$> index_of xs yss
  end.
Definition digest_in (xs : list (list byte)) : nat * nat :=
  match index_of xs digested with Some i => (S i, 7) | None => (0, 7) end.
Definition tiny : blocks := byte_blocks 1 27 9 digest_in (λ xs, bool_decide (xs ∈ digested)).
Definition small_data (b : nat) : @block tiny := filled_with b.

Lemma index_of_some xs yss i : index_of xs yss = Some i → yss !! i = Some xs.
Proof.
  revert i. induction yss as [|ys yss IH]; intros i; simpl; [done|].
  destruct (decide (xs = ys)) as [->|]; [by intros [= <-]|].
  intros (j&Hj&->)%fmap_Some. by apply IH.
Qed.

Lemma index_of_in xs yss : xs ∈ yss → is_Some (index_of xs yss).
Proof.
  induction yss as [|ys yss IH]; [by intros ?%elem_of_nil|]. simpl. intros Hin.
  destruct (decide (xs = ys)); [by eexists|]. apply elem_of_cons in Hin as [|Hin]; [done|].
  destruct (IH Hin) as [i ->]. by eexists.
Qed.

Lemma tiny_laws : @blocks_laws tiny.
Proof.
  apply byte_blocks_laws; [lia|lia| |].
  - intros xs ys Hxs%bool_decide_eq_true Hys%bool_decide_eq_true. unfold digest_in.
    destruct (index_of_in _ _ Hxs) as [i Hi]. destruct (index_of_in _ _ Hys) as [j Hj]. rewrite Hi, Hj.
    intros [= <-]. apply index_of_some in Hi, Hj. congruence.
  - intros xs. unfold digest_in. destruct (index_of xs digested) as [i|] eqn:Hi; [|simpl; lia].
    apply index_of_some, lookup_lt_Some in Hi. simpl in *. lia.
Qed.

(** Anything may be left of data and of the maps of a checkpoint; of headers and records, what does not
unseal. *)
Local Instance behind_the_log `{blocks} : tearing block :=
  Tearing (le 7) (λ a b, 0 < a ∧ unsealed b = None).
Local Instance tears_dec `{blocks} a : Decision (tears a) := le_dec 7 a.
Local Instance zeroes `{blocks} : remains := zero_block.
Local Instance sealed_tears_dec `{blocks} a : Decision (tears_to a torn_block) := _ : Decision
    (0 < a ∧ _ = None).

(** The record of the second writes stands at addresses 6 and 3. *)
Definition long_life : list (@event_in_life tiny upkeep) :=
  let second := [(2, [small_data 3]); (3, [small_data 4])] in
  [AskGroup [(0, [small_data 1]); (1, [small_data 2])] [0; 1];
   CutInGroup second [2; 3] 6 LoseAll;      (* all is lost *)
   CutInGroup second [2; 3] 6 (LoseAt 3);   (* the data and the head survive, the body does not *)
   CutInGroup second [2; 3] 6 TearSealed;   (* head and body tear *)
   CutInGroup second [2; 3] 6 (LoseAt 6);   (* the data and the body survive, the head does not *)
   CutInGroup second [2; 3] 6 TearOnly;     (* the record survives, its data do not *)
   Ask (DoRead Live 0 4) [];
   CutInGroup second [2; 3] 6 KeepAll;      (* all survives, though it was not flushed *)
   Ask (DoRead Live 0 4) [];
   Ask (DoWrite 0 [small_data 5; small_data 6; small_data 7]) [4; 5; 6];    (* a checkpoint comes first *)
   Ask DoRestart []; Ask (DoRead Live 0 4) []].
Definition long_life_shows : list (event (@block tiny)) :=
  let cut := [Write 2 [small_data 3] UnknownOutcome; Write 3 [small_data 4] UnknownOutcome; Crash CutShort;
    Crash Ok] in
  [Write 0 [small_data 1] Ok; Write 1 [small_data 2] Ok] ++ cut ++ cut ++ cut ++ cut ++ cut ++
  [Read Live 0 4 Ok [small_data 1; small_data 2; small_data 0; small_data 0]] ++ cut ++
  [Read Live 0 4 Ok [small_data 1; small_data 2; small_data 3; small_data 4];
   Write 0 [small_data 5; small_data 6; small_data 7] Ok; Restart Ok;
   Read Live 0 4 Ok [small_data 5; small_data 6; small_data 7; small_data 4]].

Theorem long_life_exists : ∃ x x', fresh (@proved_disk tiny _) 4 x ∧ shows proved_disk x long_life_shows x'.
Proof.
  apply (life_shows (D := proved_programs) (0, 0) shape_of_tiny long_life); [|by vm_compute].
  intros a Ha. split; [simpl in *; lia|]. by intros b [_ ?].
Qed.

(** Where bodies have one digest, the body of an older record is taken for that of a newer one: writes come
back that were overwritten. *)
Local Instance same_eq_dec : EqDecision (@block same) := (_ : EqDecision (list byte)).
Definition same_data (b : nat) : @block same := filled_with b.

Definition stale_body_life : list (@event_in_life same upkeep) :=
  [AskGroup [(0, [same_data 1]); (1, [same_data 2])] [0; 1];
   AskGroup [(0, [same_data 3]); (1, [same_data 4])] [2; 3]; Keep Checkpoint;
   CutInGroup [(2, [same_data 5]); (3, [same_data 6])] [4; 5] 6 (LoseAt 5); Ask (DoRead Live 0 1) []].
Definition stale_body_shows : list (event (@block same)) :=
  [Write 0 [same_data 1] Ok; Write 1 [same_data 2] Ok; Write 0 [same_data 3] Ok;
   Write 1 [same_data 4] Ok; Write 2 [same_data 5] UnknownOutcome; Write 3 [same_data 6] UnknownOutcome;
   Crash CutShort; Crash Ok; Read Live 0 1 Ok [same_data 1]].

Theorem body_digest_needed : ¬ implements (@proved_disk same _) Ack.
Proof.
  intros Himp. destruct (@life_shows same _ _ _ _ _ _ proved_programs (0, 0) shape_of_tiny stale_body_life
    stale_body_shows) as (x&x'&Hx&Hshows); [|by vm_compute|].
  { intros a Ha. split; [simpl in *; lia|]. by intros b [_ ?]. }
  specialize (Himp _ _ _ _ Hx Hshows). apply check_correct in Himp. by vm_compute in Himp.
Qed.

(** A log that is shorter than the record refuses the writes; one that has room pays for its blocks. *)
Definition long_group (log : nat) : option (bool * (nat * nat * nat)) :=
  match execute (@format same (Geometry 4 log 4 8 2 2)) (Medium (λ _, zero_block) []) with
  | (Some y, m) =>
      let p := write_group y [0; 1] [(0, [same_data 1]); (1, [same_data 2])] in
      Some ((execute p m).1.2, cost p m)
  | _ => None
  end.
Definition long_write (log : nat) : option (answer * (nat * nat * nat)) :=
  match execute (@format same (Geometry 4 log 4 8 2 2)) (Medium (λ _, zero_block) []) with
  | (Some y, m) =>
      let p := perform y [0; 1; 2] (DoWrite 0 (same_data <$> [1; 2; 3])) in
      Some ((execute p m).1.1.2, cost p m)
  | _ => None
  end.
Theorem long_records_need_room :
  fst <$> long_group 1 = Some false ∧ long_group 2 = Some (true, (0, 4, 1)) ∧
  fst <$> long_write 1 = Some (Refused NoSpace) ∧ long_write 2 = Some (Ok, (0, 5, 1)).
Proof. by vm_compute. Qed.
