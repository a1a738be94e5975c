(** The contract of a virtual disk with snapshots: [specs/VirtualDisk.tla], name for name.

A disk is what its live view and each of its snapshots read as.  Every event carries its answer: [Ok], a
refusal, [UnknownOutcome] (it happened whole or not at all, and nobody knows), or [CutShort] (the power failed
before it answered).  What a power cut may leave behind is a set of images; in an image a block holds any one
of a set of values, each block its own.

[WriteThrough] is a write with [fua]: if somebody was [told] that it happened, a power cut does not take it
back; else it may be durable or not.  Nothing else becomes durable by it.

Where this departs from the TLA+, and why it does not matter: a set is a list (only membership counts), a view
is a total function that reads as zero past the end of the disk, and the size stands once, in the state. *)
From stdpp Require Export gmap.
From stdpp Require Import strings.

Class Value (V : Type) := zero : V.

Definition name := string.
Definition view (V : Type) := nat → V.

Inductive profile := Ack | Prefix | Block.

(** Why an operation is refused. [DataLost] and [Unsupported] are codes of the protocol that the contract
never allows: it speaks of a disk that has what is asked of it and whose devices work. *)
Inductive code := OutOfRange | NoSuchSnapshot | SnapshotExists | BadRequest | NoSpace | DataLost |
  Unsupported.
Inductive answer := Ok | Refused (c : code) | UnknownOutcome | CutShort.

Inductive target := Live | Named (n : name).

Inductive event {V : Type} :=
  | Create (blocks : nat)
  | Write (lba : nat) (data : list V) (r : answer)
  | WriteThrough (lba : nat) (data : list V) (told : bool) (r : answer)
  | Unmap (lba count : nat) (r : answer)
  | Snapshot (n : name) (r : answer)
  | Delete (n : name) (r : answer)
  | Revert (n : name) (r : answer)
  | Flush (r : answer)
  | Restart (r : answer)
  | Read (from : target) (lba count : nat) (r : answer) (data : list V)
  | Crash (r : answer).
Global Arguments event : clear implicits.

Global Instance code_eq_dec : EqDecision code := ltac:(solve_decision).
Global Instance answer_eq_dec : EqDecision answer := ltac:(solve_decision).
Global Instance target_eq_dec : EqDecision target := ltac:(solve_decision).

(** The names that a snapshot may have: 1 to 64 of letters, digits, [.], [_] and [-]. *)
Definition name_char (c : Ascii.ascii) : bool :=
  let n := Ascii.nat_of_ascii c in
  bool_decide (48 ≤ n ≤ 57 ∨ 65 ≤ n ≤ 90 ∨ 97 ≤ n ≤ 122 ∨ n = 45 ∨ n = 46 ∨ n = 95).
Fixpoint name_chars (n : name) : bool :=
  match n with EmptyString => true | String c n => name_char c && name_chars n end.
Definition valid_name (n : name) : bool := bool_decide (1 ≤ String.length n ≤ 64) && name_chars n.

Section VirtualDisk.
Context {V : Type} `{Value V}.
Implicit Types (lba count l : nat) (data : list V) (n : name) (r : answer).

(** ** Disks, and what each operation makes of one *)

Record disk := Disk { live : view V; snaps : gmap name (view V) }.
Record image := Image { may_hold : nat → list V; with_snaps : gmap name (view V) }.
Record state := State { size : nat; now : disk; survivors : list image; power : bool }.

Definition blank : disk := Disk (λ _, zero) ∅.

Definition fits (blocks lba count : nat) : Prop := lba < blocks ∧ 0 < lba + count ≤ blocks.
Global Instance fits_dec blocks lba count : Decision (fits blocks lba count) := ltac:(unfold fits; apply _).

Definition view_of (d : disk) (from : target) : option (view V) :=
  match from with Live => Some (live d) | Named n => snaps d !! n end.

(** The value written at [l], for [l] in [lba .. lba + length data - 1]; else [None]. *)
Definition data_at lba data l : option V := if decide (lba ≤ l) then data !! (l - lba) else None.

Definition written (d : disk) lba data : disk :=
  Disk (λ l, default (live d l) (data_at lba data l)) (snaps d).
Definition unmapped (d : disk) lba count : disk := written d lba (replicate count zero).
Definition snapshotted (d : disk) n : disk := Disk (live d) (<[n := live d]> (snaps d)).
Definition deleted (d : disk) n : disk := Disk (live d) (delete n (snaps d)).
Definition reverted (d : disk) n : disk := Disk (default (live d) (snaps d !! n)) (snaps d).

(** ** What survives a power cut *)

Definition exactly (d : disk) : image := Image (λ l, [live d l]) (snaps d).

Definition resolves (i : image) (d : disk) : Prop := (∀ l, live d l ∈ may_hold i l) ∧ snaps d = with_snaps i.

Definition may_also_hold (d : disk) (i : image) : image :=
  Image (λ l, live d l :: may_hold i l) (with_snaps i).

(** The survivors once the disk is [d] by a write or an unmap. *)
Definition buffered (p : profile) (s : state) (d : disk) : list image :=
  match p with
  | Ack => [exactly d]
  | Prefix => exactly d :: survivors s
  | Block => may_also_hold d <$> survivors s
  end.

(** The image, once data is durable in it. *)
Definition forced (lba : nat) (data : list V) (i : image) : image :=
  Image (λ l, match data_at lba data l with Some v => [v] | None => may_hold i l end) (with_snaps i).

(** The survivors once the disk is [d] by a write that is durable in all of them, if [told],
  or maybe in some. *)
Definition written_through (p : profile) (s : state) (told : bool) (d : disk) lba data : list image :=
  match p, told with
  | Ack, _ | Block, false => buffered p s d
  | _, true => forced lba data <$> survivors s
  | Prefix, false => (forced lba data <$> survivors s) ++ buffered p s d
  end.

(** The survivors once the disk is [d] by a snapshot operation. *)
Definition recorded (p : profile) (s : state) (d : disk) : list image :=
  match p with Prefix => exactly d :: survivors s | _ => [exactly d] end.

(** ** Answers

A refusal changes nothing.  It is due, with one of the faults of the request as its code, if and only if there
is a fault; only the codes in [excuses] may come without one. *)

Definition happens (s : state) (d : disk) (left : list image) : state := State (size s) d left (power s).
Definition cut (s : state) (left : list image) : state := State (size s) (now s) (left ++ survivors s) false.

Definition answered (s : state) r (faults excuses : list code) (d : disk) (left : list image)
  (s' : state) : Prop :=
  power s = true ∧
  match r with
  | Ok => faults = [] ∧ s' = happens s d left
  | Refused c => (c ∈ faults ∨ faults = [] ∧ c ∈ excuses) ∧ s' = s
  | UnknownOutcome => s' = s ∨ faults = [] ∧ s' = happens s d left
  | CutShort => s' = cut s (match faults with [] => left | _ => [] end)
  end.

Definition out_of_range (s : state) lba count : list code :=
  if decide (fits (size s) lba count) then [] else [OutOfRange].

Definition missing (d : disk) n : list code :=
  if valid_name n then (if decide (is_Some (snaps d !! n)) then [] else [NoSuchSnapshot])
  else [BadRequest; NoSuchSnapshot].

Definition taken (d : disk) n : list code :=
  if valid_name n then (if decide (is_Some (snaps d !! n)) then [SnapshotExists] else []) else [BadRequest].

Definition missing_view (d : disk) (from : target) : list code :=
  match from with Live => [] | Named n => missing d n end.

(** ** The operations *)

Definition created (blocks : nat) : state := State blocks blank [exactly blank] true.

Definition step (p : profile) (s : state) (e : event V) (s' : state) : Prop :=
  match e with
  | Create blocks => s' = created blocks
  | Write lba data r =>
      let d := written (now s) lba data in
      answered s r (out_of_range s lba (length data)) [NoSpace] d (buffered p s d) s'
  | WriteThrough lba data told r =>
      let d := written (now s) lba data in
      answered s r (out_of_range s lba (length data)) [NoSpace] d (written_through p s told d lba data) s'
  | Unmap lba count r =>
      let d := unmapped (now s) lba count in
      answered s r (out_of_range s lba count) [NoSpace] d (buffered p s d) s'
  | Snapshot n r =>
      let d := snapshotted (now s) n in
      answered s r (taken (now s) n) [NoSpace] d (recorded p s d) s'
  | Delete n r =>
      let d := deleted (now s) n in
      answered s r (missing (now s) n) [] d (recorded p s d) s'
  | Revert n r =>
      let d := reverted (now s) n in
      answered s r (missing (now s) n) [NoSpace] d (recorded p s d) s'
  | Flush r | Restart r => answered s r [] [] (now s) [exactly (now s)] s'
  | Read from lba count r data =>
      answered s r (out_of_range s lba count ++ missing_view (now s) from) [] (now s) (survivors s) s'
      ∧ (r = Ok → ∃ v, view_of (now s) from = Some v ∧ data = v <$> seq lba count)
  | Crash Ok =>
      ∃ i d, i ∈ survivors s ∧ resolves i d ∧ s' = State (size s) d [exactly d] true
  | Crash CutShort => s' = cut s []
  | Crash _ => False
  end.

(** ** Traces *)

Inductive run (p : profile) (s : state) : list (event V) → state → Prop :=
  | run_nil : run p s [] s
  | run_cons e s' tr s'' : step p s e s' → run p s' tr s'' → run p s (e :: tr) s''.

(** The contract admits a trace: it starts with [Create], and some run of states has these events. *)
Definition admits (p : profile) (tr : list (event V)) : Prop :=
  ∃ blocks rest s, tr = Create blocks :: rest ∧ run p (created blocks) rest s.

Lemma run_app p s tr1 tr2 s'' : run p s (tr1 ++ tr2) s'' ↔ ∃ s', run p s tr1 s' ∧ run p s' tr2 s''.
Proof.
  split.
  - revert s. induction tr1 as [|e tr1 IH]; intros s Hrun; [by exists s; split; [constructor|]|].
    inversion Hrun as [|? s1 ? ? Hstep Hrest]; subst. destruct (IH _ Hrest) as (s' & ? & ?).
    exists s'. split; [by econstructor|done].
  - intros (s' & H1 & H2). induction H1; [done|]. econstructor; eauto.
Qed.

End VirtualDisk.

Global Arguments disk : clear implicits. Global Arguments image : clear implicits.
Global Arguments state : clear implicits.

(** ** Implementing the contract

An implementation is a transition system whose steps show events: none for what happens inside, one for an
operation that is answered or cut short.  It implements the contract if the contract admits every trace that
it shows. *)
Record implementation (V : Type) := Implementation {
  inside : Type;
  fresh : nat → inside → Prop;                              (** what [Create blocks] may build *)
  moves : inside → list (event V) → inside → Prop;
}.
Global Arguments Implementation {_} _ _ _. Global Arguments inside {_} _.
Global Arguments fresh {_} _ _ _. Global Arguments moves {_} _ _ _ _.

Inductive shows {V} (M : implementation V) (c : inside M) : list (event V) → inside M → Prop :=
  | shows_nil : shows M c [] c
  | shows_step es c' tr c'' : moves M c es c' → shows M c' tr c'' → shows M c (es ++ tr) c''.

Lemma shows_app {V} (M : implementation V) c tr c' tr' c'' :
  shows M c tr c' → shows M c' tr' c'' → shows M c (tr ++ tr') c''.
Proof.
  intros H1. revert tr' c''. induction H1 as [|c es c' tr c'' Hm _ IH]; intros tr' y Hy; [done|].
  rewrite <-(assoc_L (++)). econstructor; [exact Hm|]. by apply IH.
Qed.

Lemma shows_one {V} (M : implementation V) c es c' : moves M c es c' → shows M c es c'.
Proof. intros Hm. rewrite <-(app_nil_r es). econstructor; [exact Hm|constructor]. Qed.

Definition implements {V} `{Value V} (M : implementation V) (p : profile) : Prop :=
  ∀ blocks c tr c', fresh M blocks c → shows M c tr c' → admits p (Create blocks :: tr).

(** Forward simulation is a proof of it. *)
Lemma forward_simulation {V} `{Value V} (M : implementation V) (p : profile) (R : inside M → state V → Prop) :
  (∀ blocks c, fresh M blocks c → R c (created blocks)) →
  (∀ c s es c', R c s → moves M c es c' → ∃ s', run p s es s' ∧ R c' s') → implements M p.
Proof.
  intros Hfresh Hmoves blocks c tr c' Hc Htr. assert (∀ s, R c s → ∃ s', run p s tr s') as Hsim.
  { clear Hc. induction Htr as [c|c es c1 tr c2 Hm _ IH]; intros s HR; [exists s; constructor|].
    destruct (Hmoves _ _ _ _ HR Hm) as (s1 & Hrun1 & HR1). destruct (IH _ HR1) as (s2 & Hrun2).
    exists s2. apply run_app. eauto. }
  destruct (Hsim _ (Hfresh _ _ Hc)) as (s' & Hrun). by exists blocks, tr, s'.
Qed.
