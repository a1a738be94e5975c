(** An execution of a RAID-5 leg, computed, and what its theorem needs. *)
From stdpp Require Import list vector.
From LogDisk Require Import MirroredDiskExecution Medium Mirrors RedundancyCode Parity ParityLeg
  ParityLegCorrect ParityLegMachine ParityLegTheorem ParityLegCode.

Section Scripts.
Context {B C : Type} `{cutting B C} {torn : tearing}.
Variables (size count : nat).

(** Blocks to write, whether to flush then, and addresses to read. *)
Definition job : Type := list (nat * B) * bool * list nat.
Fixpoint read_all (addresses : list nat) (k : list B → program B (list B)) : program B (list B) :=
  match addresses with [] => k [] | a :: rest => ReadBlock a (λ b, read_all rest (λ bs, k (b :: bs))) end.
Definition program_of (j : job) : program B (list B) :=
  let rest := read_all j.2 Done in write_all j.1.1 (if j.1.2 then FlushBlocks rest else rest).

Inductive act :=
  | Does (j : job)
  | CutIn (j : job) (ios : nat)    (* the power fails after so many I/Os: device 0 keeps what it has *)
  | Opens
  | Settles
  | Loses (i : nat)
  | Gets (i : nat) (p : C)         (* another device, with [p] everywhere *)
  | Returns (i : nat).

Local Notation happening := (@ParityLegMachine.happening B (list B)).
Local Notation control := (@ParityLegMachine.control B C (list B)).

Definition acts (e : act) (c : control) (x : array C) : option (list happening * (control * array C)) :=
  match e, c with
  | Does j, Idle ms cl =>
      match ran (on_leg size ms cl (program_of j)) x with
      | (Finish (ms, cl, r), x) => Some ([Ran (program_of j) r], (Idle ms cl, x))
      | (Stop, x) => Some ([IsLost (Some (program_of j))], (Closed, x))
      | _ => None
      end
  | CutIn j ios, Idle ms cl =>
      Some ([PowerFails (Some (program_of j))],
        (Closed, powerless (ran_partly ios (on_leg size ms cl (program_of j)) x).2))
  | Opens, Closed =>
      match ran (open_leg size (members x) (clean x) (λ ms c, Finish (ms, c))) x with
      | (Finish (ms, cl), x) => Some ([Opened], (Idle ms cl, x))
      | (Stop, x) => Some ([IsLost None], (Closed, x))
      | _ => None
      end
  | Settles, Idle ms cl =>
      match ran (settle_leg size count ms cl) x with
      | (Finish (ms, cl), x) => Some ([Settled], (Idle ms cl, x))
      | _ => None
      end
  | Loses i, _ => if decide (i < count) then Some ([Fails i], (c, failing i x)) else None
  | Gets i p, Idle ms cl =>
      if decide (i < count ∧ fewest ≤ length (others i ms)) then
        Some ([ComesBack i], (Idle (others i ms) cl,
          put_device (Array (device_at x) (others i ms) cl) i (Device true (Medium (λ _, p) []))))
      else None
  | Returns i, Closed =>
      if decide (i < count) then
        Some ([ComesBack i], (Closed, put_device x i (Device true (store (device_at x i)))))
      else None
  | _, _ => None
  end.

Fixpoint life (es : list act) (c : control) (x : array C) : option (list happening) :=
  match es with
  | [] => Some []
  | e :: es => '(shown, (c, x)) ← acts e c x; rest ← life es c x; Some (shown ++ rest)
  end.

Local Notation lives := (@ParityLegMachine.lives B C (list B) _ size count).
Local Notation move := (@ParityLegMachine.move B C (list B) _ size count).

Lemma lives_app z tr z' tr' z'' : lives z tr z' → lives z' tr' z'' → lives z (tr ++ tr') z''.
Proof.
  intros H1. revert tr' z''. induction H1 as [|z es z' tr z'' Hm _ IH]; intros tr' y Hy; [done|].
  rewrite <-(assoc_L (++)). econstructor; [exact Hm|]. by apply IH.
Qed.

Lemma lives_one z es z' : move z es z' → lives z es z'.
Proof. intros Hm. rewrite <-(app_nil_r es). econstructor; [exact Hm|constructor]. Qed.

Lemma lives_quiet z z' tr z'' : move z [] z' → lives z' tr z'' → lives z tr z''.
Proof. intros Hm Htr. change tr with ([] ++ tr). by econstructor. Qed.

Lemma lives_ran {D} (into : array_program C D → control) (q : array_program C D) x :
  (∀ q x q' x', array_io q x q' x' → move (into q, x) [] (into q', x')) →
  lives (into q, x) [] (into (ran q x).1, (ran q x).2).
Proof.
  intros Hio. revert x. induction q as [r| | |i a k IH|i a b k IH|i k IH|ms c k IH]; intros x; simpl;
    try constructor; try destruct (up (device_at x i)) eqn:Hup;
    (eapply lives_quiet; [apply Hio|apply IH]); by constructor; auto; left.
Qed.

Lemma lives_ran_partly {D} (into : array_program C D → control) n (q : array_program C D) x :
  (∀ q x q' x', array_io q x q' x' → move (into q, x) [] (into q', x')) →
  lives (into q, x) [] (into (ran_partly n q x).1, (ran_partly n q x).2).
Proof.
  intros Hio. revert q x. induction n as [|n IH]; intros q x; [destruct q; constructor|].
  destruct q as [r| | |i a k|i a b k|i k|ms c k]; simpl; try constructor;
    try destruct (up (device_at x i)) eqn:Hup;
    (eapply lives_quiet; [apply Hio|apply IH]); by constructor; auto; left.
Qed.

Lemma acts_lives e c x shown c' x' : acts e c x = Some (shown, (c', x')) → lives (c, x) shown (c', x').
Proof.
  assert (∀ tr : list happening, tr = [] ++ tr) as Hnil by done.
  destruct e as [j|j ios| | |i|i p|i], c as [ms cl| | | |]; simpl; try done;
    try (destruct (decide _) as [Hd|]; [|done]; intros [= <- <- <-]; apply lives_one);
    try (by constructor; [done|]; eexists; split; [|done]; eexists; split; [|done]; intros a; by left);
    try by constructor.
  - pose proof (lives_ran (Busy (program_of j)) (on_leg size ms cl (program_of j)) x) as Hran.
    destruct (ran _ x) as [[[[ms1 c1] r]| | | | | |] x1]; try done; intros [= <- <- <-]; simpl in Hran;
      (eapply lives_quiet; [constructor|]); rewrite (Hnil [_]);
      (eapply lives_app; [apply Hran; by constructor|apply lives_one; constructor]).
  - intros [= <- <- <-]. eapply lives_quiet; [constructor|]. rewrite (Hnil [_]).
    eapply lives_app; [apply (lives_ran_partly (Busy (program_of j)) ios); by constructor|].
    apply lives_one. apply (PowerCut _ _ (Busy (program_of j) _)). apply loses_powerless.
  - pose proof (lives_ran Opening (open_leg size (members x) (clean x) (λ ms c, Finish (ms, c))) x) as Hran.
    destruct (ran _ x) as [[[ms1 c1]| | | | | |] x1]; try done; intros [= <- <- <-]; simpl in Hran;
      (eapply lives_quiet; [constructor|]); rewrite (Hnil [_]);
      (eapply lives_app; [apply Hran; by constructor|apply lives_one; constructor]).
  - pose proof (lives_ran Settling (settle_leg size count ms cl) x) as Hran.
    destruct (ran _ x) as [[[ms1 c1]| | | | | |] x1]; try done; intros [= <- <- <-]; simpl in Hran.
    eapply lives_quiet; [apply ParityLegMachine.Settle|]. rewrite (Hnil [_]).
    eapply lives_app; [apply Hran; by constructor|apply lives_one; constructor].
  - destruct Hd. by constructor.
Qed.

Lemma life_lives es c x tr : life es c x = Some tr → ∃ z, lives (c, x) tr z.
Proof.
  revert c x tr. induction es as [|e es IH]; simpl; intros c x tr; [intros [= <-]; eexists; constructor|].
  intros ([shown [c1 x1]]&Honce%acts_lives&Hrest)%bind_Some.
  apply bind_Some in Hrest as (rest&(z&Hz)%IH&[= <-]). exists z. by eapply lives_app.
Qed.
End Scripts.

(** ** RAID-5 over three devices: blocks of two pieces of a byte, of which those from address 2 on tear *)

Definition tears_from (a : nat) : tearing := le a.
Definition raid5_of_three : cutting _ _ :=
  raid_leg (torn := tears_from 2) (decided := le_dec 2) 1 2 1.

Definition piece_of (b : byte) : vec byte 1 := [#b].
Definition block_of (b b' : byte) : vec (vec byte 1) 2 := [#piece_of b; piece_of b'].
Definition nothing (a : nat) : vec (vec byte 1) 2 := block_of zero zero.

Definition much : list (@act (vec (vec byte 1) 2) (vec (vec byte 1) 2 + vec byte 1)) :=
  let reads := Does ([], false, [0; 2; 3]) in
  [Does ([(0, block_of one one); (2, block_of one one); (3, block_of two one)], true, []);
   CutIn ([(0, block_of two two); (2, block_of two two)], true, []) 4;    (* device 0 has a piece of each *)
   Opens; reads;                                                          (* block 2 is torn *)
   Loses 1; Does ([(2, block_of two two)], true, [0; 2; 3]);              (* degraded *)
   Gets 1 (inr (piece_of two)); reads; Settles;                           (* another device in its place *)
   Loses 0; reads;
   Loses 2; reads; Opens; Returns 2; Opens; reads].                       (* one too many; it comes back *)

Definition shown : Type :=
  list (@ParityLegMachine.happening (vec (vec byte 1) 2) (list (vec (vec byte 1) 2))).
Definition much_shows : shown :=
  let ran j := Ran (program_of j) in
  let reads := ([], false, [0; 2; 3]) in
  let found := [block_of two two; block_of two two; block_of two one] in
  [ran ([(0, block_of one one); (2, block_of one one); (3, block_of two one)], true, []) [];
   PowerFails (Some (program_of ([(0, block_of two two); (2, block_of two two)], true, []))); Opened;
   ran reads [block_of two two; block_of two one; block_of two one];
   ParityLegMachine.Fails 1; ran ([(2, block_of two two)], true, [0; 2; 3]) found;
   ComesBack 1; ran reads found; Settled; ParityLegMachine.Fails 0; ran reads found;
   ParityLegMachine.Fails 2; IsLost (Some (program_of reads)); IsLost None; ComesBack 2; Opened;
   ran reads found].

Theorem raid5_execution : ∃ z,
  ParityLegMachine.lives (H := raid5_of_three) 4 3 (new_leg (H := raid5_of_three) 3 nothing) much_shows z.
Proof. apply (life_lives (H := raid5_of_three) 4 3 much). vm_compute. reflexivity. Qed.

(** ** What the theorem needs *)

(** Parity that is not the sum of the data: without a device, what is read is not what was written. *)
Definition no_parity : code (vec byte 1) := {|
  data_count := 2; parity_count := 1; blank := zeroes; parity := λ _, [zeroes];
  decode := decode (raid 1 2) |}.
Definition leg_without_parity : cutting _ _ :=
  of_code (torn := tears_from 2) (decided := le_dec 2) no_parity vec_to_list (vector_of 1 2).

Lemma device_run_cons `{cutting B C} {A} {torn : tearing} n t v (e : @ParityLegMachine.happening B A) es v' :
  device_run n t v (e :: es) v' →
  ∃ v1, device_step n t v e v1 ∧ device_run n (standing_after t e) v1 es v'.
Proof. inversion 1; subst. eauto. Qed.

Definition write_one : @job (vec (vec byte 1) 2) := ([(2, block_of one two)], true, []).
Definition read_one : @job (vec (vec byte 1) 2) := ([], false, [2]).

Theorem code_needed : ∃ z (tr : shown),
  ParityLegMachine.lives (H := leg_without_parity) 4 3 (new_leg (H := leg_without_parity) 3 nothing) tr z ∧
  ¬ ∃ v, device_run (H := leg_without_parity) (torn := tears_from 2) 3 nobody (On (Medium nothing [])) tr v.
Proof.
  destruct (life_lives (H := leg_without_parity) 4 3 [Does write_one; Loses 0; Does read_one]
    (Idle (seq 0 3) true) (new_leg (H := leg_without_parity) (A := list (vec (vec byte 1) 2)) 3 nothing).2
    [Ran (program_of write_one) []; ParityLegMachine.Fails 0;
     Ran (program_of read_one) [block_of two two]]) as [z Hz]; [by vm_compute|].
  exists z. eexists. split; [exact Hz|]. intros [v Hrun].
  apply device_run_cons in Hrun as (v1&(M&[= <-]&_&->)&Hrun).
  apply device_run_cons in Hrun as (v1&Hv&Hrun). simpl in Hv. subst v1.
  apply device_run_cons in Hrun as (v1&(M&[= <-]&Hread&_)&_).
  apply (f_equal fst) in Hread. by vm_compute in Hread.
Qed.

(** Blocks of several pieces that do not tear: after a power cut between two pieces, what is read was never
written. *)
Theorem tearing_needed : ∃ z (tr : shown),
  ParityLegMachine.lives (H := raid5_of_three) 4 3 (new_leg (H := raid5_of_three) 3 nothing) tr z ∧
  ¬ ∃ v, device_run (H := raid5_of_three) (torn := λ _, False) 3 nobody (On (Medium nothing [])) tr v.
Proof.
  destruct (life_lives (H := raid5_of_three) 4 3 [CutIn write_one 2; Opens; Does read_one]
    (Idle (seq 0 3) true) (new_leg (H := raid5_of_three) (A := list (vec (vec byte 1) 2)) 3 nothing).2
    [PowerFails (Some (program_of write_one)); Opened;
     Ran (program_of read_one) [block_of one zero]]) as [z Hz]; [by vm_compute|].
  exists z. eexists. split; [exact Hz|]. intros [v Hrun].
  apply device_run_cons in Hrun as (v1&Hv&Hrun). simpl in Hv. subst v1.
  apply device_run_cons in Hrun as (v1&(R&f&[= <-]&(M&HM&Hf)&->)&Hrun).
  apply device_run_cons in Hrun as (v1&(M'&[= <-]&Hread&_)&_).
  apply (f_equal fst) in Hread. simpl in Hread. injection Hread as Hread.
  assert (f 2 = nothing 2 ∨ f 2 = block_of one two) as [Hf2|Hf2].
  { specialize (Hf 2). simpl in HM. destruct HM as [->|[->|[->|[]]]];
      destruct Hf as [[Hf|Hf]|[[] _]]; simpl in Hf;
      rewrite ?elem_of_nil, ?elem_of_list_singleton in Hf; try done; simplify_eq; auto. }
  all: unfold read_block in Hread; simpl in Hread; rewrite Hf2 in Hread; by vm_compute in Hread.
Qed.
