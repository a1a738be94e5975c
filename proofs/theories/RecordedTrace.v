(** A trace as it is recorded: the contract's events, and between them what the contract does not speak of.

Operations on devices, and hints such as [clean], need a disk that is open, and leave it as it is. They are
counted all the same, because a read may be answered [data-lost] while more devices than the layout tolerates
are not good for their data: a device is not from the time it fails until, returned or replaced, it has
settled. This is the rule of [conformance/contract/model.py]. *)
From LogDisk Require Import VirtualDisk.

Inductive entry {V : Type} :=
  | Event (e : event V)
  | Fail (device : nat) (r : answer)
  | Return (device : nat) (r : answer)
  | Replace (device : nat) (r : answer)
  | Settle (r : answer)
  | Hint (r : answer).          (** tick, clean, checkpoint, stats *)
Global Arguments entry : clear implicits.

(** [back]: of the [failed], those that were returned or replaced and have not settled. [asked]: those that
may be back, since the answer left it open. [lost]: one was replaced while too many had failed, so that some
data is gone for good. *)
Record devices := Devices { failed : list nat; back : list nat; asked : list nat; lost : bool }.
Definition all_good : devices := Devices [] [] [] false.

Definition beyond (tolerates : nat) (v : devices) : bool :=
  lost v || bool_decide (tolerates < length (failed v)).

Definition with_device (d : nat) (l : list nat) : list nat := if decide (d ∈ l) then l else d :: l.
Definition without_device (d : nat) (l : list nat) : list nat := filter (λ x, x ≠ d) l.

(** A device is asked to come back. It is back if the answer is ok. Within tolerance it is also back if that
is refused, but may have happened before: that is why it is refused then. *)
Definition brought (tolerates d : nat) (r : answer) (v : devices) : devices :=
  let is_back := Devices (failed v) (with_device d (back v)) (asked v) (lost v) in
  if decide (d ∉ failed v) then v
  else match r with
  | Ok => is_back
  | Refused _ => if decide (d ∈ asked v ∧ beyond tolerates v = false) then is_back else v
  | CutShort | UnknownOutcome => Devices (failed v) (back v) (with_device d (asked v)) (lost v)
  end.

(** What an operation makes of the devices. One that is told to fail counts as failed, whatever the answer. *)
Definition devices_after {V} (tolerates : nat) (v : devices) (en : entry V) : devices :=
  match en with
  | Event (Create _) => all_good
  | Event _ | Hint _ => v
  | Fail d _ =>
      Devices (with_device d (failed v)) (without_device d (back v)) (without_device d (asked v)) (lost v)
  | Return d r => brought tolerates d r v
  | Replace d (Refused _ as r) => brought tolerates d r v
  | Replace d r =>
      let bad := with_device d (failed v) in
      brought tolerates d r (Devices bad (back v) (asked v) (lost v || bool_decide (tolerates < length bad)))
  | Settle Ok => Devices (filter (λ d, d ∉ back v) (failed v)) [] (asked v) (lost v)
  | Settle _ => v
  end.

Lemma elem_of_with i j (l : list nat) : j ∈ with_device i l ↔ j = i ∨ j ∈ l.
Proof.
  unfold with_device. destruct (decide (i ∈ l)); [|by rewrite elem_of_cons]. naive_solver.
Qed.

Lemma replaced_ok {V} tolerates v i :
  devices_after tolerates v (Replace i Ok : entry V) =
  Devices (with_device i (failed v)) (with_device i (back v)) (asked v)
    (lost v || bool_decide (tolerates < length (with_device i (failed v)))).
Proof.
  simpl. unfold brought. simpl. rewrite decide_False; [done|]. intros Hi. apply Hi, elem_of_with. by left.
Qed.

Section RecordedTrace.
Context {V : Type} `{Value V}.

(** An operation that the contract does not speak of. *)
Definition outside (s : state V) (r : answer) (s' : state V) : Prop :=
  power s = true ∧ s' = match r with CutShort => cut s [] | _ => s end.

(** A read that finds its data lost. It may be of a view or a range that does not exist: a disk that cannot be
opened does not know. *)
Definition loses (s s' : state V) : Prop := power s = true ∧ s' = s.

Definition entry_step (p : profile) (tolerates : nat) (v : devices) (s : state V) (en : entry V)
  (s' : state V) : Prop :=
  match en with
  | Event e =>
      step p s e s' ∨
      match e with
      | Read from lba count (Refused DataLost) _ => beyond tolerates v = true ∧ loses s s'
      | _ => False
      end
  | Fail _ r | Return _ r | Replace _ r | Settle r | Hint r => outside s r s'
  end.

Inductive recorded_run (p : profile) (tolerates : nat) (v : devices) (s : state V) : list (entry V) →
  state V → Prop :=
  | recorded_nil : recorded_run p tolerates v s [] s
  | recorded_cons en s' tr s'' :
      entry_step p tolerates v s en s' → recorded_run p tolerates (devices_after tolerates v en) s' tr s'' →
      recorded_run p tolerates v s (en :: tr) s''.

(** The contract admits a recorded trace. *)
Definition admits_recorded (p : profile) (tolerates : nat) (tr : list (entry V)) : Prop :=
  ∃ blocks rest s, tr = Event (Create blocks) :: rest ∧
    recorded_run p tolerates all_good (created blocks) rest s.

(** No device fails in a trace of the contract's events alone: the two notions are one. *)
Lemma recorded_events p tolerates tr s s' :
  recorded_run p tolerates all_good s (Event <$> tr) s' ↔ run p s tr s'.
Proof.
  split.
  - revert s. induction tr as [|e tr IH]; intros s Hrun; inversion Hrun as [|? s1 ? ? Hstep Hrest]; subst.
    { constructor. }
    assert (devices_after tolerates all_good (Event e) = all_good) as Hv by (by destruct e).
    rewrite Hv in Hrest. econstructor; [|by apply IH]. destruct Hstep as [?|Hl]; [done|].
    destruct e as [| | | | | | | | |? ? ? [|[]| |] ?|]; try done. by destruct Hl as [? _].
  - induction 1 as [|s e s1 tr s2 Hstep Hrun IH]; cbn; [constructor|]. econstructor; [by left|].
    assert (devices_after tolerates all_good (Event e) = all_good) as -> by (by destruct e). done.
Qed.

Lemma admits_recorded_events p tolerates tr : admits_recorded p tolerates (Event <$> tr) ↔ admits p tr.
Proof.
  split.
  - intros (blocks & rest & s & Heq & Hrun). destruct tr as [|e tr]; [done|]. injection Heq as -> <-.
    apply recorded_events in Hrun. by exists blocks, tr, s.
  - intros (blocks & rest & s & -> & Hrun). exists blocks, (Event <$> rest), s. split; [done|].
    by apply recorded_events.
Qed.

End RecordedTrace.
