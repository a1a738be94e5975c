(** The contract for requests that overlap: [specs/OverlappingDisk.tla], over [VirtualDisk.v].

A request is called, is in flight, and is answered. What it answers is right if and only if there is an order
of what took effect in which the contract admits the answers, and in which each request stands between its
call and its answer. A history is what a target was asked and answered, in time order. The entry of a call
says already how the request will be answered, as a line of a trace does: [CutShort] where it never is. *)
From LogDisk Require Import VirtualDisk RecordedTrace.

(** One step of the order: a request, or one block of it. [due]: it has happened when the request [of] is
answered. [number] tells the steps of a history apart. *)
Record step_of {V : Type} := Step { number : nat; of : nat; due : bool; takes : entry V }.
Global Arguments step_of : clear implicits. Global Arguments Step {_} _ _ _ _.

Inductive moment {V : Type} :=
  | Called (id : nat) (en : entry V)
  | Answered (id : nat)
  | Alone (en : entry V).        (** answered at once: sent when nothing is in flight, a power cut, or a
                                     failure of a device, which may come at any time *)
Global Arguments moment : clear implicits.

(** What is one step of the order; a disk declares which. *)
Inductive granularity := ByRequest | ByBlock.

Section OverlappingDisk.
Context {V : Type} `{Value V}.
Implicit Types (en : entry V) (h : list (moment V)) (es : list (entry V)) (pending : list (step_of V)).

(** ** The steps of a request *)

Definition answer_of en : answer :=
  match en with
  | Event (Write _ _ r) | Event (WriteThrough _ _ _ r) | Event (Unmap _ _ r) | Event (Snapshot _ r)
    | Event (Delete _ r)
  | Event (Revert _ r) | Event (Flush r) | Event (Restart r) | Event (Read _ _ _ r _) | Event (Crash r)
  | Fail _ r | Return _ r | Replace _ r | Settle r | Hint r => r
  | Event (Create _) => Ok
  end.

Definition by_blocks (g : granularity) (e : event V) : list (event V) :=
  match g, e with
  | ByBlock, Write lba data r => imap (λ i v, Write (lba + i) [v] r) data
  | ByBlock, WriteThrough lba data told r => imap (λ i v, WriteThrough (lba + i) [v] told r) data
  | ByBlock, Unmap lba count r => (λ l, Unmap l 1 r) <$> seq lba count
  | ByBlock, Read from lba count r data =>
      if decide (length data = count) then imap (λ i v, Read from (lba + i) 1 r [v]) data else [e]
  | _, _ => [e]
  end.

(** The request as if it were acknowledged. *)
Definition acknowledged (e : event V) : event V :=
  match e with
  | Write lba data _ => Write lba data Ok
  | WriteThrough lba data told _ => WriteThrough lba data told Ok
  | Unmap lba count _ => Unmap lba count Ok
  | Snapshot n _ => Snapshot n Ok
  | Delete n _ => Delete n Ok
  | Revert n _ => Revert n Ok
  | e => e
  end.

(** The events that a request comes to. A refusal is one step of the whole request. A request that is never
answered, or whose outcome is unknown, may have happened, step by step; if it is a read or a flush, nobody
sees whether it did. *)
Definition parts (g : granularity) (e : event V) : list (event V) :=
  match answer_of (Event e), e with
  | Ok, _ => by_blocks g e
  | Refused _, _ => [e]
  | _, Read _ _ _ _ _ | _, Flush _ => []
  | _, _ => by_blocks g (acknowledged e)
  end.

Definition sure (r : answer) : bool := match r with Ok | Refused _ => true | _ => false end.

(** A hint that is called is what was not declared, and refused. Everything else is sent alone: a call
of it takes no step. *)
Definition steps_of (g : granularity) (next id : nat) en : list (step_of V) :=
  let due := sure (answer_of en) in
  match en with
  | Event (Create _) => []
  | Event e => imap (λ i e, Step (next + i) id due (Event e)) (parts g e)
  | Hint r => if due then [Step next id due (Hint r)] else []
  | _ => []
  end.

(** ** Orders *)

(** A power cut ends what is in flight; so does a new disk. *)
Definition ends en : bool :=
  match en with
  | Event (Create _) | Event (Crash _) => true
  | en => match answer_of en with CutShort => true | _ => false end
  end.

Definition settled (id : nat) pending : Prop := Forall (λ x, due x = true → of x ≠ id) pending.

(** [es] is an order of what took effect in the history [h]: a step is taken while its request is in flight,
at once when it is called or later, and before the answer. *)
Inductive orders (g : granularity) (next : nat) pending : list (moment V) → list (entry V) → Prop :=
  | orders_end : orders g next pending [] []
  | orders_take x rest h es :
      pending ≡ₚ x :: rest → orders g next rest h es → orders g next pending h (takes x :: es)
  | orders_call id en h es :
      let called := steps_of g next id en in
      orders g (next + length called) (pending ++ called) h es →
      orders g next pending (Called id en :: h) es
  | orders_answer id h es :
      settled id pending → orders g next pending h es → orders g next pending (Answered id :: h) es
  | orders_alone en h es :
      orders g next (if ends en then [] else pending) h es →
      orders g next pending (Alone en :: h) (en :: es).

(** The contract admits a history: a disk is created first, and an order exists in which it admits the trace
of what took effect. *)
Definition admits_overlapping (g : granularity) (p : profile) (tolerates : nat) h : Prop :=
  ∃ blocks rest es, h = Alone (Event (Create blocks)) :: rest ∧ orders g 0 [] h es ∧
    admits_recorded p tolerates es.

End OverlappingDisk.
