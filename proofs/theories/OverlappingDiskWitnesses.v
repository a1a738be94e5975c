(** The contract for requests that overlap, by examples: each clause once kept and once broken, judged by the
proved checker. *)
From stdpp Require Import strings.
From LogDisk Require Import VirtualDisk RecordedTrace RecordedImplementation CheckerCorrect
  VirtualDiskWitnesses.
From LogDisk Require Import OverlappingDisk OverlappingDiskChecker OverlappingDiskCorrect
  OverlappingDiskQueue OverlappingDiskColumns OverlappingDiskBlocks.

Definition plain_weight (_ : positive) (v : nat) : nat := v.
Definition call (id : nat) (e : event nat) : moment nat := Called id (Event e).
Definition created_disk (n : nat) : moment nat := Alone (Event (Create n)).
Definition power_cut : moment nat := Alone (Event (Crash Ok)).
Definition view_reads (n : name) (data : list nat) : event nat := Read (Named n) 0 (length data) Ok data.
Definition both (a b : event nat) : list (moment nat) := [call 0 a; call 1 b; Answered 0; Answered 1].
Definition after (a b : event nat) : list (moment nat) := [call 0 a; Answered 0; call 1 b; Answered 1].

Definition overlapping_examples : list (granularity * profile * list (moment nat) * bool) :=
  let w := write 0 [1; 2] Ok in
  let on p g blocks h verdict := (g, p, created_disk blocks :: h, verdict) in
  [ (* in flight together, in either order; one after the other, in that order *)
    on Ack ByRequest 2 (both w (sees [0; 0])) true; on Ack ByRequest 2 (both w (sees [1; 2])) true;
    on Ack ByRequest 2 (after w (sees [0; 0])) false; on Ack ByRequest 2 (after w (sees [1; 2])) true;
    (* a write of two blocks is one step, or two *)
    on Ack ByRequest 2 (both w (sees [1; 0])) false; on Ack ByBlock 2 (both w (sees [1; 0])) true;
    (* a snapshot holds what was answered before it was called, and half of nothing *)
    on Ack ByRequest 2 (after w (Snapshot s Ok) ++ [call 2 (view_reads s [0; 0]); Answered 2]) false;
    on Ack ByRequest 2 (both w (Snapshot s Ok) ++ [call 2 (view_reads s [0; 0]); Answered 2]) true;
    on Ack ByRequest 2 (both w (Snapshot s Ok) ++ [call 2 (view_reads s [1; 0]); Answered 2]) false;
    (* if it holds one write, it holds what had been answered when that one was called *)
    on Ack ByRequest 2 [call 0 (Snapshot s Ok); call 1 (write 0 [1] Ok); Answered 1; call 2 (write 1 [2] Ok);
      Answered 2; Answered 0; call 3 (view_reads s [0; 2]); Answered 3] false;
    on Ack ByRequest 2 [call 0 (Snapshot s Ok); call 1 (write 0 [1] Ok); Answered 1; call 2 (write 1 [2] Ok);
      Answered 2; Answered 0; call 3 (view_reads s [1; 0]); Answered 3] true;
    (* a flush covers what had been answered when it was called *)
    on Prefix ByRequest 2 (after w (Flush Ok) ++ [power_cut; call 2 (sees [0; 0]); Answered 2]) false;
    on Prefix ByRequest 2 (both w (Flush Ok) ++ [power_cut; call 2 (sees [0; 0]); Answered 2]) true;
    (* a write that is durable when it is answered, and nothing else that is in flight *)
    on Prefix ByRequest 2 (both w (WriteThrough 0 [3] true Ok) ++ [power_cut; call 2 (sees [0; 0]);
      Answered 2]) false;
    on Prefix ByRequest 2 (both w (WriteThrough 0 [3] true Ok) ++ [power_cut; call 2 (sees [3; 0]);
      Answered 2]) true;
    on Prefix ByRequest 2 [call 0 (write 0 [1] Ok); Answered 0;
      call 1 (WriteThrough 1 [3] false CutShort); power_cut;
      call 2 (sees [0; 3]); Answered 2] true;
    on Block ByBlock 2 (after w (WriteThrough 0 [3; 4] true Ok) ++ [power_cut; call 2 (sees [3; 2]);
      Answered 2]) false;
    (* a power cut ends what is in flight: it happened or it did not, and does not later *)
    on Ack ByRequest 2 [call 0 (write 0 [1; 2] CutShort); power_cut; call 1 (sees [1; 2]); Answered 1] true;
    on Ack ByRequest 2 [call 0 (write 0 [1; 2] CutShort); power_cut; call 1 (sees [1; 0]); Answered 1] false;
    on Ack ByRequest 2 [call 0 (write 0 [1; 2] CutShort); power_cut; call 1 (sees [0; 0]); Answered 1;
      call 2 (sees [1; 2]); Answered 2] false;
    (* what a read has shown, a cut does not take back under [Ack] *)
    on Ack ByRequest 1 [call 0 (write 0 [1] CutShort); call 1 (sees [1]); Answered 1; power_cut;
      call 2 (sees [0]); Answered 2] false;
    on Prefix ByRequest 1 [call 0 (write 0 [1] CutShort); call 1 (sees [1]); Answered 1; power_cut;
      call 2 (sees [0]); Answered 2] true;
    (* an unknown outcome may come to pass later *)
    on Ack ByRequest 1 [call 0 (write 0 [1] UnknownOutcome); Answered 0; call 1 (sees [0]); Answered 1;
      call 2 (sees [1]); Answered 2] true;
    on Ack ByRequest 1 [call 0 (write 0 [1] UnknownOutcome); Answered 0; call 1 (sees [1]); Answered 1;
      call 2 (sees [0]); Answered 2] false;
    (* a refusal is due when the order makes it so *)
    on Ack ByRequest 1 (both (Snapshot s Ok) (Snapshot s (Refused SnapshotExists))) true;
    on Ack ByRequest 1 (both (Snapshot s Ok) (Snapshot s Ok)) false ].

Lemma overlapping_examples_hold g p h verdict :
  (g, p, h, verdict) ∈ overlapping_examples → (admits_overlapping g p 0 h ↔ verdict = true).
Proof.
  rewrite <-(check_overlapping_correct plain_weight).
  assert (forallb (λ '(g, p, h, verdict), Bool.eqb (check_overlapping plain_weight g p 0 h) verdict)
    overlapping_examples = true) as Hall by (vm_compute; done).
  intros Hin%elem_of_list_In. rewrite forallb_forall in Hall. apply Hall, Bool.eqb_prop in Hin.
    by rewrite Hin.
Qed.

(** The limit on work is the only way to no verdict. *)
Lemma overlapping_limit_gives_up : ∃ i, judge_overlapping plain_weight ByRequest Ack 0 (Some 0)
  (created_disk 1 :: both (write 0 [1] Ok) (sees [1])) = Unknown i.
Proof. exists 3. vm_compute. reflexivity. Qed.

(** A disk that answers as it likes, behind a queue. *)
Definition liar : implementation nat := Implementation unit (λ _ _, True) (λ _ _ _, True).

Lemma queue_needs_contract : ∃ h tr (q : queue liar), queue_run liar (Queue (M := liar) tt [] []) h tr q ∧
  ¬ admits_overlapping ByRequest Ack 0 (created_disk 1 :: h).
Proof.
  exists [call 0 (sees [1]); Answered 0], [Event (sees [1])], (Queue (M := liar) tt [] []). split.
  - apply (queue_more _ _ [call 0 (sees [1])] [] (Queue (M := liar) tt [(0, sees [1])] [])
      [Answered 0] [Event (sees [1])]).
    { apply (queue_call liar tt [] [] 0); [done|by intros ?%elem_of_nil]. }
    apply (queue_more _ _ [] [Event (sees [1])] (Queue (M := liar) tt [] [0]) [Answered 0] []).
    { by apply (queue_serve liar tt tt [] [] [] 0); [|exists [sees [1]]]. }
    apply (queue_more _ _ [Answered 0] [] (Queue (M := liar) tt [] []) [] []); [|constructor].
    apply (queue_answer liar tt [] [] [] 0).
  - rewrite <-(check_overlapping_correct plain_weight). vm_compute. discriminate.
Qed.

(** Under [Prefix] blocks are not apart: after a power cut each block by itself may be as it was at any
moment, but both together as they were at one. *)
Definition block_reads (lba v : nat) : event nat := Read Live lba 1 Ok [v].
Definition older_and_newer : list (moment nat) := [call 0 (write 0 [1] Ok); Answered 0;
  call 1 (write 1 [2] Ok); Answered 1; power_cut; call 2 (block_reads 0 0); Answered 2;
  call 3 (block_reads 1 2); Answered 3].
Definition older_and_newer_line : list (instant nat) :=
  let one number e := Opens [Step number number true (Event e)] in
  [one 0 (write 0 [1] Ok); Closes 0; one 1 (write 1 [2] Ok); Closes 1; Fixed (Event (Crash Ok));
    one 2 (block_reads 0 0); Closes 2; one 3 (block_reads 1 2); Closes 3].

Local Ltac nothing_now := apply interleaves_open, interleaves_close; [constructor|].
Local Ltac taken_now n e := apply interleaves_open, (interleaves_take _ (Step n n true (Event e)) []);
  [done|apply interleaves_close; [constructor|]].

Lemma apart_needs_profile : Forall is_fair older_and_newer ∧
  fixes ByRequest 2 0 [] older_and_newer older_and_newer_line ∧
  @admits_recorded unit no_data Prefix 0 (Event (Create 2) :: shared_steps older_and_newer_line) ∧
  (∀ b, b < 2 → ∃ es, interleaves [] (column 2 b older_and_newer_line) es ∧
    admits_recorded Prefix 0 (Event (Create 1) :: es)) ∧
  ¬ admits_overlapping ByRequest Prefix 0 (created_disk 2 :: older_and_newer).
Proof.
  split_and!.
  - by repeat constructor.
  - repeat first [apply (fixes_call ByRequest 2 _ []) | apply (fixes_answer ByRequest 2 _ []); [constructor|]
      | apply (fixes_alone ByRequest 2 _ []) | constructor].
  - apply check_recorded_correct. vm_compute. done.
  - intros b Hb. assert (b = 0 ∨ b = 1) as [-> | ->] by lia.
    + exists (Event <$> [write 0 [1] Ok; Crash Ok; block_reads 0 0]).
      split; [vm_compute|by apply check_recorded_correct].
      taken_now 0 (write 0 [1] Ok). nothing_now. apply interleaves_fixed. taken_now 2 (block_reads 0 0).
      nothing_now. constructor.
    + exists (Event <$> [write 0 [2] Ok; Crash Ok; block_reads 0 2]).
      split; [vm_compute|by apply check_recorded_correct].
      nothing_now. taken_now 1 (write 0 [2] Ok). apply interleaves_fixed. nothing_now.
      taken_now 3 (block_reads 0 2). constructor.
  - rewrite <-(check_overlapping_correct plain_weight). vm_compute. discriminate.
Qed.
