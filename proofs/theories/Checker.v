(** A checker of traces, efficient enough to judge long ones and exact ([CheckerCorrect.v]).

It follows the set of states that the contract allows, as a list of worlds.  A world stands for many states: a
block that a crash left open holds [Open i], and the choice [i] says what it may turn out to be: what [base]
is, or one of [others].  Whoever copies the block (a snapshot, a revert) copies the name [i], so that a read
which decides it decides it for all of them.  A world branches only at a write of unknown outcome and at the
crash of a disk with several surviving images. *)
From stdpp Require Import pmap.
From LogDisk Require Import VirtualDisk RecordedTrace.

Section Checker.
Context {V : Type} `{EqDecision V, Value V}.

Inductive cell := Known (v : V) | Open (i : nat).
Record choice := Choice { base : cell; others : list V }.

(** LBA -> cell; a block that is not in the map is zero. *)
Notation blocks := (Pmap cell).

Record shape := Shape { live_blocks : blocks; snap_blocks : list (name * blocks) }.
(** An image: a block of the shape, or one of those in [since]. *)
Record leftover := Leftover { kept : shape; since : Pmap (list V) }.
Record world := World {
  blocks_count : nat;
  seen : shape;
  leftovers : list leftover;
  powered : bool;
  choices : Pmap choice;
  next : nat;                 (** every choice is below it *)
}.

Global Instance cell_eq_dec : EqDecision cell := ltac:(solve_decision).
Global Instance choice_eq_dec : EqDecision choice := ltac:(solve_decision).
Global Instance shape_eq_dec : EqDecision shape := ltac:(solve_decision).
Global Instance leftover_eq_dec : EqDecision leftover := ltac:(solve_decision).
Global Instance world_eq_dec : EqDecision world := ltac:(solve_decision).

Definition key (l : nat) : positive := Pos.of_succ_nat l.
Definition cell_at (m : blocks) (k : positive) : cell := default (Known zero) (m !! k).

(** ** Snapshots, by name *)

Fixpoint find {A} (n : name) (l : list (name * A)) : option A :=
  match l with
  | [] => None
  | (n', x) :: l => if decide (n = n') then Some x else find n l
  end.
Fixpoint drop_name {A} (n : name) (l : list (name * A)) : list (name * A) :=
  match l with
  | [] => []
  | (n', x) :: l => if decide (n = n') then drop_name n l else (n', x) :: drop_name n l
  end.

Definition exists_snap (w : world) (n : name) : bool :=
  match find n (snap_blocks (seen w)) with Some _ => true | None => false end.

(** ** What the operations make of a world *)

(** A zero is not stored, so that worlds that read the same are equal where no block is open. *)
Definition put_one (k : positive) (v : V) (m : blocks) : blocks :=
  if decide (v = zero) then delete k m else <[k := Known v]> m.
Fixpoint put (k : positive) (data : list V) (m : blocks) : blocks :=
  match data with [] => m | v :: data => put (Pos.succ k) data (put_one k v m) end.

Fixpoint put_since (k : positive) (data : list V) (m : Pmap (list V)) : Pmap (list V) :=
  match data with
  | [] => m
  | v :: data => put_since (Pos.succ k) data (partial_alter (λ vs, Some (v :: default [] vs)) k m)
  end.

Fixpoint drop_since (k : positive) (data : list V) (m : Pmap (list V)) : Pmap (list V) :=
  match data with [] => m | _ :: data => drop_since (Pos.succ k) data (delete k m) end.

Definition leaving (w : world) (x : shape) (left : list leftover) : world :=
  World (blocks_count w) x left (powered w) (choices w) (next w).
Definition cut_to (w : world) (left : list leftover) : world :=
  World (blocks_count w) (seen w) left false (choices w) (next w).

(** An operation that happens: the shape that it makes, what survives it, and what survives if the power
fails before its answer. *)
Record effect := Effect { makes : shape; leaves : list leftover; leaves_cut : list leftover }.

Definition buffering (p : profile) (w : world) (lba : nat) (data : list V) : effect :=
  let k := key lba in
  let x := Shape (put k data (live_blocks (seen w))) (snap_blocks (seen w)) in
  match p with
  | Ack => Effect x [Leftover x ∅] (Leftover x ∅ :: leftovers w)
  | Prefix => let left := Leftover x ∅ :: leftovers w in Effect x left left
  | Block =>
      let left := (λ y, Leftover (kept y) (put_since k data (since y))) <$> leftovers w in Effect x left left
  end.

Definition force (k : positive) (data : list V) (y : leftover) : leftover :=
  Leftover (Shape (put k data (live_blocks (kept y))) (snap_blocks (kept y))) (drop_since k data (since y)).

Definition writing_through (p : profile) (told : bool) (w : world) (lba : nat) (data : list V) : effect :=
  let f := buffering p w lba data in
  let left := force (key lba) data <$> leftovers w in
  match p, told with
  | Ack, _ | Block, false => f
  | _, true => Effect (makes f) left (left ++ leftovers w)
  | Prefix, false => Effect (makes f) (left ++ leaves f) (left ++ leaves f)
  end.

Definition recording (p : profile) (w : world) (x : shape) : effect :=
  let left := Leftover x ∅ :: leftovers w in
  match p with Prefix => Effect x left left | _ => Effect x [Leftover x ∅] left end.

Definition happening (w : world) (f : effect) : world := leaving w (makes f) (leaves f).

(** ** Answers *)

Definition allowed (faults excuses : list code) (c : code) : bool :=
  bool_decide (c ∈ faults) || (match faults with [] => bool_decide (c ∈ excuses) | _ => false end).

(** The worlds after an operation that changes the disk. *)
Definition answering (w : world) (r : answer) (faults excuses : list code) (f : unit → effect) : list world :=
  if powered w then
    match r, faults with
    | Ok, [] => [happening w (f tt)]
    | Ok, _ => []
    | Refused c, _ => if allowed faults excuses c then [w] else []
    | UnknownOutcome, [] => [happening w (f tt); w]
    | UnknownOutcome, _ => [w]
    | CutShort, [] => [cut_to w (leaves_cut (f tt))]
    | CutShort, _ => [cut_to w (leftovers w)]
    end
  else [].

(** The worlds after an operation that does not; a world where a flush did not happen allows whatever one
where it did allows. *)
Definition looking (w : world) (r : answer) (faults : list code) (f : unit → list world) : list world :=
  if powered w then
    match r, faults with
    | Ok, [] => f tt
    | Ok, _ => []
    | Refused c, _ => if allowed faults [] c then [w] else []
    | UnknownOutcome, _ => [w]
    | CutShort, _ => [cut_to w (leftovers w)]
    end
  else [].

Definition range_faults (w : world) (lba count : nat) : list code :=
  if bool_decide (fits (blocks_count w) lba count) then [] else [OutOfRange].
Definition missing_faults (w : world) (n : name) : list code :=
  if valid_name n then (if exists_snap w n then [] else [NoSuchSnapshot]) else [BadRequest; NoSuchSnapshot].
Definition taken_faults (w : world) (n : name) : list code :=
  if valid_name n then (if exists_snap w n then [SnapshotExists] else []) else [BadRequest].
Definition view_faults (w : world) (from : target) : list code :=
  match from with Live => [] | Named n => missing_faults w n end.

(** ** Reads *)

(** The choices once [c] was read as [v]; [None] if it cannot be.  Deciding the least loses nothing: where [v]
is one of [others], a base that could be [v] as well stays free. *)
Fixpoint decided (fuel : nat) (ch : Pmap choice) (c : cell) (v : V) : option (Pmap choice) :=
  match c with
  | Known u => if decide (u = v) then Some ch else None
  | Open i =>
      match fuel, ch !! key i with
      | S fuel, Some (Choice b vs) =>
          if decide (v ∈ vs) then Some (<[key i := Choice (Known v) []]> ch)
          else decided fuel (match vs with [] => ch | _ => <[key i := Choice b []]> ch end) b v
      | _, _ => None
      end
  end.

Fixpoint all_decided (fuel : nat) (m : blocks) (k : positive) (data : list V) (ch : Pmap choice)
    : option (Pmap choice) :=
  match data with
  | [] => Some ch
  | v :: data =>
      match decided fuel ch (cell_at m k) v with
      | Some ch => all_decided fuel m (Pos.succ k) data ch
      | None => None
      end
  end.

Definition blocks_of (x : shape) (from : target) : option blocks :=
  match from with Live => Some (live_blocks x) | Named n => find n (snap_blocks x) end.

Definition reading (w : world) (from : target) (lba count : nat) (data : list V) : list world :=
  match blocks_of (seen w) from with
  | Some m =>
      if decide (length data = count) then
        match all_decided (next w) m (key lba) data (choices w) with
        | Some ch => [World (blocks_count w) (seen w) (leftovers w) (powered w) ch (next w)]
        | None => []
        end
      else []
  | None => []
  end.

(** ** Crashes *)

(** The blocks that an image leaves open get a choice each. *)
Record opening := Opening { opened : blocks; made : Pmap choice; upto : nat }.
Definition open_block (kvs : positive * list V) (o : opening) : opening :=
  let b := cell_at (opened o) kvs.1 in
  if forallb (λ v, bool_decide (b = Known v)) kvs.2 then o
  else Opening (<[kvs.1 := Open (upto o)]> (opened o)) (<[key (upto o) :=
    Choice b kvs.2]> (made o)) (S (upto o)).

Definition resuming (w : world) (y : leftover) : world :=
  let o := foldr open_block (Opening (live_blocks (kept y)) (choices w) (next w)) (map_to_list (since y)) in
  let x := Shape (opened o) (snap_blocks (kept y)) in
  World (blocks_count w) x [Leftover x ∅] true (made o) (upto o).

(** ** One event *)

Definition fresh_world (size : nat) : world := let x := Shape ∅ [] in World size x [Leftover x ∅] true ∅ 0.

Definition advance_one (p : profile) (e : event V) (w : world) : list world :=
  match e with
  | Create size => [fresh_world size]
  | Write lba data r =>
      answering w r (range_faults w lba (length data)) [NoSpace] (λ _, buffering p w lba data)
  | WriteThrough lba data told r =>
      answering w r (range_faults w lba (length data)) [NoSpace] (λ _, writing_through p told w lba data)
  | Unmap lba count r =>
      answering w r (range_faults w lba count) [NoSpace] (λ _, buffering p w lba (replicate count zero))
  | Snapshot n r =>
      let x := seen w in
      answering w r (taken_faults w n) [NoSpace] (λ _,
        recording p w (Shape (live_blocks x) ((n, live_blocks x) :: snap_blocks x)))
  | Delete n r =>
      let x := seen w in
      answering w r (missing_faults w n) [] (λ _,
        recording p w (Shape (live_blocks x) (drop_name n (snap_blocks x))))
  | Revert n r =>
      let x := seen w in
      answering w r (missing_faults w n) [NoSpace] (λ _,
        recording p w (Shape (default (live_blocks x) (find n (snap_blocks x))) (snap_blocks x)))
  | Flush r | Restart r => looking w r [] (λ _, [leaving w (seen w) [Leftover (seen w) ∅]])
  | Read from lba count r data =>
      looking w r (range_faults w lba count ++ view_faults w from) (λ _, reading w from lba count data)
  | Crash Ok => resuming w <$> leftovers w
  | Crash CutShort => [cut_to w (leftovers w)]
  | Crash _ => []
  end.

(** ** Traces *)

Definition entry_worlds (p : profile) (tolerates : nat) (v : devices) (en : entry V)
  (w : world) : list world :=
  match en with
  | Event (Read from lba count (Refused DataLost) _) =>
      if powered w && beyond tolerates v then [w] else []
  | Event e => advance_one p e w
  | Fail _ r | Return _ r | Replace _ r | Settle r | Hint r =>
      if powered w then match r with CutShort => [cut_to w (leftovers w)] | _ => [w] end else []
  end.

(** Worlds that are alike are one; looking for them is worth it where there are a few. *)
Definition distinct (ws : list world) : list world :=
  match ws with
  | [] | [_] => ws
  | _ => if bool_decide (length ws ≤ 64) then remove_dups ws else ws
  end.

Definition advance (p : profile) (tolerates : nat) (v : devices) (en : entry V)
  (ws : list world) : list world :=
  match ws with
  | [w] => distinct (entry_worlds p tolerates v en w)
  | _ => distinct (ws ≫= entry_worlds p tolerates v en)
  end.

(** What the trace leads to: an admitted trace leaves worlds; another has a first event [at] that none of the
worlds [before] it allows.  [Undecided]: more than [most] worlds, too many to go on. *)
Inductive verdict :=
  | Accepted (ws : list world)
  | Rejected (at_event : nat) (before : list world)
  | Undecided (at_event : nat).

Fixpoint follow (p : profile) (tolerates : nat) (most : option nat) (i : nat) (v : devices) (ws : list world)
    (tr : list (entry V)) : verdict :=
  match tr with
  | [] => Accepted ws
  | en :: tr =>
      match advance p tolerates v en ws with
      | [] => Rejected i ws
      | ws' =>
          if match most with Some n => bool_decide (n < length ws') | None => false end then Undecided i
          else follow p tolerates most (S i) (devices_after tolerates v en) ws' tr
      end
  end.

Definition judge (p : profile) (tolerates : nat) (most : option nat) (tr : list (entry V)) : verdict :=
  match tr with
  | Event (Create blocks) :: tr => follow p tolerates most 1 all_good [fresh_world blocks] tr
  | _ => Rejected 0 []
  end.

Definition check_recorded (p : profile) (tolerates : nat) (tr : list (entry V)) : bool :=
  match judge p tolerates None tr with Accepted _ => true | _ => false end.

Definition check (p : profile) (tr : list (event V)) : bool := check_recorded p 0 (Event <$> tr).

(** ** Why an event is rejected *)

Inductive clause := ReadClause | SnapshotClause | AnswerClause | OpenClause | CreateClause.

(** The clause of the contract that an event breaks which none of the worlds allows. *)
Definition clause_of (ws : list world) (en : entry V) : clause :=
  match en with
  | Event (Create _) => CreateClause
  | Event (Crash _) => OpenClause
  | Event (Read from lba count Ok _) =>
      if existsb (λ w, powered w && match range_faults w lba count ++ view_faults w from with []
        => true | _ => false end) ws
      then match from with Live => ReadClause | Named _ => SnapshotClause end
      else AnswerClause
  | _ => match ws with [] => CreateClause | _ => AnswerClause end
  end.

End Checker.
