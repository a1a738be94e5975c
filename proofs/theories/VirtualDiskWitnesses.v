(** The promises of [VirtualDiskProperties.v] are not empty, and each hypothesis is needed: concrete traces,
judged by the proved checker. A hypothesis dropped lets the contract admit a trace that breaks the conclusion.
*)
From stdpp Require Import strings.
From LogDisk Require Import VirtualDisk VirtualDiskProperties RecordedTrace Checker CheckerCorrect.

#[global] Instance nat_value : Value nat := 0.

Definition s : name := "s".
Definition write (lba : nat) (data : list nat) (r : answer) : event nat := Write lba data r.
Definition through (lba : nat) (data : list nat) (told : bool) (r : answer) : event nat :=
  WriteThrough lba data told r.
Definition sees (data : list nat) : event nat := Read Live 0 (length data) Ok data.
Ltac contract_admits := apply check_correct; vm_compute; reflexivity.
Ltac contract_rejects := rewrite <-check_correct; vm_compute; discriminate.

(** ** Read after snapshot *)

Lemma snapshot_is_used : ∃ before tr data, Forall (keeps s) tr ∧ data ≠ [0; 0] ∧
  admits Ack (before ++ Read Live 0 2 Ok data :: Snapshot s Ok :: tr ++ [Read (Named s) 0 2 Ok data]).
Proof.
  exists [Create 2; write 0 [1; 2] Ok],
    [write 0 [3] Ok; Unmap 1 1 Ok; Snapshot "t" Ok; Crash Ok; Revert s Ok; Delete "t" Ok; write 1 [4] Ok;
      Restart Ok],
    [1; 2].
  split; [repeat (apply Forall_cons_2; [first [done|by left]|]); done|split; [done|contract_admits]].
Qed.

Lemma snapshot_needs_no_delete : ∃ before tr data data',
  admits Ack (before ++ Read Live 0 1 Ok data :: Snapshot s Ok :: tr ++ [Read (Named s) 0 1 Ok data'])
  ∧ data' ≠ data.
Proof. exists [Create 1; write 0 [1] Ok], [Delete s Ok; write 0 [2] Ok; Snapshot s Ok], [1], [2].
  split; [contract_admits|done]. Qed.

Lemma snapshot_needs_profile : ∃ before tr data data', Forall (keeps s) tr ∧
  admits Prefix (before ++ Read Live 0 1 Ok data :: Snapshot s Ok :: tr ++ [Read (Named s) 0 1 Ok data'])
  ∧ data' ≠ data.
Proof.
  exists [Create 1; write 0 [1] Ok; Snapshot s Ok; Flush Ok; write 0 [2] Ok;
    Delete s Ok], [Crash Ok], [2], [1].
  split; [by repeat constructor|]. split; [contract_admits|done].
Qed.

(** ** Frame, and read after write *)

Lemma frame_needs_spares : ∃ before tr v v',
  admits Ack (before ++ Read Live 0 1 Ok [v] :: tr ++ [Read Live 0 1 Ok [v']]) ∧ v' ≠ v.
Proof. exists [Create 1], [write 0 [2] Ok], 0, 2. split; [contract_admits|done]. Qed.

Lemma frame_needs_profile : ∀ p, p ≠ Ack → ∃ before tr v v', Forall (spares Live 0) tr ∧
  admits p (before ++ Read Live 0 1 Ok [v] :: tr ++ [Read Live 0 1 Ok [v']]) ∧ v' ≠ v.
Proof. intros p Hp. exists [Create 1; write 0 [1] Ok], [Crash Ok], 1, 0. split; [by repeat constructor|].
  split; [|done]. destruct p; [done|contract_admits|contract_admits]. Qed.

Lemma read_after_write_needs_spares : ∃ before tr v v',
  admits Ack (before ++ Write 0 [v] Ok :: tr ++ [Read Live 0 1 Ok [v']]) ∧ v' ≠ v.
Proof. exists [Create 1], [Unmap 0 1 Ok], 1, 0. split; [contract_admits|done]. Qed.

Lemma read_after_write_needs_profile : ∀ p, p ≠ Ack → ∃ before tr v v', Forall (spares Live 0) tr ∧
  admits p (before ++ Write 0 [v] Ok :: tr ++ [Read Live 0 1 Ok [v']]) ∧ v' ≠ v.
Proof. intros p Hp. exists [Create 1], [Crash Ok], 1, 0. split; [by repeat constructor|]. split; [|done].
  destruct p; [done|contract_admits|contract_admits]. Qed.

Lemma flushed_needs_spares : ∃ before tr v v',
  admits Block (before ++ Read Live 0 1 Ok [v] :: Flush Ok :: tr ++ [Read Live 0 1 Ok [v']]) ∧ v' ≠ v.
Proof. exists [Create 1], [write 0 [2] Ok; Crash Ok], 0, 2. split; [contract_admits|done]. Qed.

(** ** What the three profiles allow, and do not *)

Definition rolled_back : list (event nat) := [Create 1; write 0 [1] Ok; write 0 [2] Ok; Crash Ok; sees [1]].
Lemma rolled_back_by_prefix : admits Prefix rolled_back. Proof. contract_admits. Qed.
Lemma rolled_back_not_by_ack : ¬ admits Ack rolled_back. Proof. contract_rejects. Qed.

(** ** The checker's limit on worlds is the only way to no verdict *)

Lemma limit_gives_up : ∃ i, judge Prefix 0 (Some 1) (Event <$> rolled_back) = Undecided i.
Proof. exists 3. vm_compute. reflexivity. Qed.

(** ** The contract, by examples: each operation's answers, and what a power cut may leave *)

Definition name_of (length : nat) : name := String.concat "" (replicate length "x").

Definition examples : list (profile * list (event nat) * bool) :=
  let refuses e := (Ack, [Create 2; write 0 [1] Ok; Snapshot s Ok; e], true) in
  let never e := (Ack, [Create 2; write 0 [1] Ok; Snapshot s Ok; e], false) in
  let reads n data := Read (Named n) 0 (length data) Ok data in
  [ (* faults: refused with their code, and never otherwise *)
    refuses (write 1 [2; 3] (Refused OutOfRange)); never (write 1 [2; 3] Ok);
      never (write 1 [2] (Refused OutOfRange));
    refuses (write 1 [2] Ok); refuses (Unmap 2 1 (Refused OutOfRange)); never (Unmap 2 0 Ok);
      refuses (Unmap 1 0 Ok);
    never (Unmap 0 0 Ok); refuses (Read Live 0 3 (Refused OutOfRange) []);
      never (Read Live 0 1 (Refused OutOfRange) []);
    refuses (Snapshot s (Refused SnapshotExists)); never (Snapshot s Ok);
      never (Snapshot s (Refused NoSpace));
    refuses (Snapshot "" (Refused BadRequest)); refuses (Snapshot "a b" (Refused BadRequest));
      never (Snapshot "a b" Ok);
    refuses (Snapshot "Az09._-" Ok); refuses (Snapshot (name_of 64) Ok); never (Snapshot (name_of 65) Ok);
    refuses (Delete "t" (Refused NoSuchSnapshot)); never (Delete "t" (Refused BadRequest));
      never (Delete "t" Ok);
    refuses (Delete "a b" (Refused BadRequest)); refuses (Revert "a b" (Refused NoSuchSnapshot));
    refuses (Read (Named "t") 0 1 (Refused NoSuchSnapshot) []);
    refuses (Read (Named "t") 2 1 (Refused OutOfRange) []);
    (* no fault: only for want of space, and not where space is made or nothing is written *)
    refuses (write 0 [2] (Refused NoSpace)); refuses (Unmap 0 1 (Refused NoSpace));
      refuses (Snapshot "t" (Refused NoSpace));
    refuses (Revert s (Refused NoSpace)); never (Delete s (Refused NoSpace)); never (Flush (Refused NoSpace));
    never (Restart (Refused NoSpace)); never (Read Live 0 1 (Refused NoSpace) []);
      never (Read Live 0 1 (Refused DataLost) []);
    never (write 0 [2] (Refused Unsupported)); never (Crash (Refused NoSpace)); never (Crash UnknownOutcome);
    (* a refusal changes nothing; an unknown outcome is one of two *)
    (Ack, [Create 1; write 0 [1] (Refused NoSpace); sees [0]], true);
    (Ack, [Create 1; write 0 [1] (Refused NoSpace); sees [1]], false);
    (Ack, [Create 1; write 1 [1] UnknownOutcome; sees [0]], true);
    (Ack, [Create 1; Snapshot s UnknownOutcome; Snapshot s Ok], true);
    (Ack, [Create 1; Snapshot s UnknownOutcome; Snapshot s (Refused SnapshotExists); Delete s Ok], true);
    (Ack, [Create 1; Snapshot s UnknownOutcome; Snapshot s (Refused SnapshotExists);
      Delete s (Refused NoSuchSnapshot)],
       false);
    (* what a read returns *)
    (Ack, [Create 3; write 1 [1; 2] Ok; sees [0; 1; 2]; Unmap 1 1 Ok; sees [0; 0; 2]], true);
    (Ack, [Create 2; sees [0]; Read Live 0 2 Ok [0]], false);
    (Ack, [Create 2; write 0 [1; 2] Ok; Snapshot s Ok; write 0 [3] Ok; Revert s Ok; sees [1; 2]; reads s [1;
      2]], true);
    (Ack, [Create 2; write 0 [1] Ok; Snapshot s Ok; Delete s Ok; reads s [1]], false);
    (* power *)
    (Ack, [Create 1; Flush CutShort; sees [0]], false);
    (Ack, [Create 1; Crash CutShort; Crash CutShort; Crash Ok; sees [0]], true);
    (Ack, [Create 1; write 0 [1] Ok; Create 1; sees [0]], true);
    (Ack, [write 0 [1] Ok], false);
    (* what is cut short happens whole or not at all, or block by block *)
    (Ack, [Create 2; write 0 [1; 2] CutShort; Crash Ok; sees [1; 0]], false);
    (Prefix, [Create 2; write 0 [1; 2] CutShort; Crash Ok; sees [1; 0]], false);
    (Block, [Create 2; write 0 [1; 2] CutShort; Crash Ok; sees [1; 0]], true);
    (Ack, [Create 2; write 5 [1] CutShort; Crash Ok; sees [0; 0]], true);
    (Ack, [Create 1; Snapshot s CutShort; Crash Ok; Delete s Ok], true);
    (Ack, [Create 1; Snapshot s CutShort; Crash Ok; Snapshot s Ok], true);
    (Block, [Create 1; write 0 [1] Ok; write 0 [2] Ok; Snapshot s CutShort; Crash Ok; sees [1];
      Snapshot s Ok], true);
    (Block, [Create 1; write 0 [1] Ok; write 0 [2] Ok; Snapshot s CutShort; Crash Ok; reads s [1]], false);
    (* what a flush, a restart or a snapshot operation makes durable *)
    (Prefix, [Create 1; write 0 [1] Ok; Flush Ok; write 0 [2] Ok; Crash Ok; sees [0]], false);
    (Prefix, [Create 1; write 0 [1] Ok; Restart Ok; Crash Ok; sees [0]], false);
    (Prefix, [Create 1; write 0 [1] Ok; Flush UnknownOutcome; Crash Ok; sees [0]], true);
    (Prefix, [Create 1; Snapshot s Ok; Crash Ok; Delete s (Refused NoSuchSnapshot)], true);
    (Prefix, [Create 1; write 0 [1] Ok; Snapshot s Ok; Crash Ok; reads s [1]; sees [0]], false);
    (Block, [Create 1; write 0 [1] Ok; Snapshot s Ok; Crash Ok; sees [0]], false);
    (Block, [Create 1; Snapshot s Ok; Crash Ok; Delete s (Refused NoSuchSnapshot)], false);
    (Block, [Create 1; write 0 [1] Ok; Flush Ok; write 0 [2] Ok; write 0 [3] Ok; Crash Ok; sees [2];
      sees [2]], true);
    (Block, [Create 1; write 0 [1] Ok; Flush Ok; write 0 [2] Ok; Crash Ok; sees [0]], false);
    (* a write that is durable by itself, if somebody was told so, and nothing else becomes so *)
    (Prefix, [Create 2; write 0 [1] Ok; through 1 [2] true Ok; Crash Ok; sees [0; 2]], true);
    (Prefix, [Create 2; write 0 [1] Ok; through 1 [2] true Ok; Crash Ok; sees [1; 2]], true);
    (Prefix, [Create 2; write 0 [1] Ok; through 1 [2] true Ok; Crash Ok; sees [0; 0]], false);
    (Prefix, [Create 2; write 0 [1] Ok; through 0 [2] true Ok; Crash Ok; sees [1]], false);
    (Prefix, [Create 1; write 0 [1] Ok; Snapshot s Ok; through 0 [2] true Ok; Crash Ok; Delete s Ok], true);
    (Prefix, [Create 1; write 0 [1] Ok; Snapshot s Ok; through 0 [2] true Ok; Crash Ok;
      Delete s (Refused NoSuchSnapshot)], true);
    (Prefix, [Create 2; write 0 [1] Ok; through 1 [2] false CutShort; Crash Ok; sees [0; 2]], true);
    (Prefix, [Create 2; write 0 [1] Ok; through 1 [2] false UnknownOutcome; Crash Ok; sees [1; 0]], true);
    (Prefix, [Create 2; through 0 [1; 2] false CutShort; Crash Ok; sees [1; 0]], false);
    (Block, [Create 2; write 0 [1; 1] Ok; through 0 [2] true Ok; write 0 [3] Ok; Crash Ok; sees [2;
      0]], true);
    (Block, [Create 2; write 0 [1; 1] Ok; through 0 [2] true Ok; write 0 [3] Ok; Crash Ok; sees [1;
      0]], false);
    (Block, [Create 2; write 0 [1; 1] Ok; through 0 [2; 2] false CutShort; Crash Ok; sees [2; 0]], true);
    (Ack, [Create 1; through 0 [1] true Ok; Crash Ok; sees [0]], false);
    (Ack, [Create 1; through 1 [1] false (Refused OutOfRange); through 0 [1] false (Refused NoSpace);
      sees [0]],
      true);
    (* recovery settles what is there *)
    (Prefix, [Create 1; write 0 [1] Ok; Crash Ok; sees [1]; Crash Ok; sees [0]], false);
    (Block, [Create 1; write 0 [1] Ok; Crash Ok; sees [1]; Crash Ok; sees [0]], false) ] ++
  (* a write may be torn under block alone *)
  ((λ '(p, verdict), (p, [Create 2; write 0 [1; 2] Ok; Flush Ok; write 0 [3; 4] Ok; Crash Ok; sees [3;
    2]], verdict)) <$>
    [(Ack, false); (Prefix, false); (Block, true)]) ++
  (* cut short, or of unknown outcome, it happened or not: what was read once stays so *)
  ((λ '(doubt, reads, verdict), (Ack, [Create 1;
    write 0 [1] Ok] ++ doubt ++ ((λ v, sees [v]) <$> reads), verdict)) <$>
    (d ← [[write 0 [2] UnknownOutcome]; [write 0 [2] CutShort; Crash CutShort; Crash Ok]];
     [(d, [1; 1], true); (d, [2; 2], true); (d, [1; 2], false)])) ++
  (* a block that a crash left open is one block in the live view and in the snapshots that copy it *)
  ((λ '(v, v', verdict), (Block, [Create 1; write 0 [1] Ok; Crash Ok; Snapshot s Ok; write 0 [5] Ok; Crash Ok;
    sees [v];
      Read (Named s) 0 1 Ok [v']], verdict)) <$> [(0, 0, true); (1, 1, true); (0, 1, false); (5, 0, true);
        (5, 1, true)]).

Lemma examples_hold p tr verdict : (p, tr, verdict) ∈ examples → (admits p tr ↔ verdict = true).
Proof.
  rewrite <-check_correct.
  assert (forallb (λ '(p, tr, verdict), Bool.eqb (check p tr) verdict) examples = true)
    as Hall by (vm_compute; done).
  intros Hin%elem_of_list_In. rewrite forallb_forall in Hall. apply Hall, Bool.eqb_prop in Hin.
    by rewrite Hin.
Qed.

(** Operations on devices are seen, and change no data; more lost than the layout tolerates excuses a read. *)
Definition device_examples : list (nat * list (entry nat) * bool) :=
  let lost := Event (Read Live 0 1 (Refused DataLost) []) in
  let fine := Event (sees [1]) in
  let start := [Event (Create 1); Event (write 0 [1] Ok)] in
  [ (1, start ++ [Fail 0 Ok; fine], true); (1, start ++ [Fail 0 Ok; lost], false);
    (1, start ++ [Fail 0 Ok; Fail 0 Ok; lost], false); (1, start ++ [Fail 0 Ok; Fail 1 Ok; lost; fine], true);
    (* a disk that cannot be opened does not know its size *)
    (1, start ++ [Fail 0 Ok; Fail 1 Ok; Event (Read Live 1 1 (Refused DataLost) [])], true);
    (1, start ++ [Fail 0 Ok; Event (Read Live 1 1 (Refused DataLost) [])], false);
    (1, start ++ [Fail 0 Ok; Return 0 Ok; Fail 1 Ok; lost], true);
    (1, start ++ [Fail 0 Ok; Return 0 Ok; Settle Ok; Fail 1 Ok; lost], false);
    (1, start ++ [Fail 0 Ok; Settle Ok; Fail 1 Ok; lost], true);
    (0, start ++ [Replace 0 Ok; Settle Ok; lost], true); (1, start ++ [Replace 0 Ok; Settle Ok; lost], false);
    (1, start ++ [Fail 0 CutShort; fine], false); (1, start ++ [Hint CutShort; Event (Crash Ok); fine], true);
    (1, start ++ [Fail 0 (Refused BadRequest); Hint (Refused Unsupported); fine], true);
    (1, start ++ [Fail 0 Ok; Fail 1 Ok; Event (Create 1); lost], false); (1, [Hint Ok], false) ].

Lemma device_examples_hold tolerates tr verdict :
  (tolerates, tr, verdict) ∈ device_examples → (admits_recorded Ack tolerates tr ↔ verdict = true).
Proof.
  rewrite <-check_recorded_correct.
  assert (forallb (λ '(t, tr, verdict), Bool.eqb (check_recorded Ack t tr) verdict) device_examples = true)
    as Hall
    by (vm_compute; done).
  intros Hin%elem_of_list_In. rewrite forallb_forall in Hall. apply Hall, Bool.eqb_prop in Hin.
    by rewrite Hin.
Qed.
