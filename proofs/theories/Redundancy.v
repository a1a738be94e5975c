(** A leg: stripes of k + m components on as many devices, of which any m may fail; [specs/Redundancy.tla].

    A mirrored leg is the case k = 1, the capacity leg the case of full stripes under RAID-5 or RAID-6. A
    write reaches the devices one at a time, and a failure or a crash may come between any two of them. A
    component that is away misses writes; which, is recorded in [missed] as the write is acknowledged. A
    rebuild is a resync of a component that has missed everything.

    Where this departs from the TLA+: a write, an unmap and a recovery reach the devices in steps ([Put], then
    [Acknowledge]) that failures and crashes interrupt; a step of [Resync] fetches and stores a stripe that
    nobody writes meanwhile; a resyncing component is read only once it lacks nothing.

    Left out: silent corruption of what a device holds, and where a leg keeps its own records ([components]
    without [strips], and which stripes are [open]): a real leg keeps them on all its devices. *)
From LogDisk Require Export RedundancyCode.

Inductive condition := Active | Absent | Degraded | Stale | Resyncing.
Global Instance condition_eq_dec : EqDecision condition := ltac:(solve_decision).

Section Redundancy.
  Context {V : Type} (c : code V).
  Context (size : nat).         (* stripes *)
  Context (repair_delay : nat). (* how long a component may be absent before it is rebuilt elsewhere,
    in ticks *)
  Implicit Types (i d s : nat).

  Record component := Component {
    state : condition;
    home : nat;             (* its device *)
    strips : gmap nat V;    (* what it holds of each stripe; a strip that is not there reads as blank *)
    missed : gset nat;      (* the stripes where that is not to be trusted *)
    written : gset nat;     (* the open stripes that have reached it *)
    clock : nat;            (* ticks since it went absent *)
  }.

  (** What a write stores; [None] is an unmap. *)
  Notation content := (option (list V)).

  Inductive request :=
    | Writing (o : content)
    | Torn.                 (* cut short by a crash *)

  Record leg := Leg {
    components : list component;
    spares : gset nat;      (* devices that work and have no component *)
    open : gmap nat request;
  }.

  Inductive action :=
    | Write s (v : list V)                      (* a request arrives *)
    | Unmap s
    | Put i s                                   (* its share reaches component i *)
    | Acknowledge s
    | Crash
    | Recover s                                 (* what a torn stripe reads as is written to it again *)
    | Fail d (mode : condition)
    | Return d
    | Replace d                                 (* a blank device in the place of d *)
    | Tick
    | Resync i s                                (* one step: a stripe *)
    | Rebuild i d.                              (* component i starts anew on d; Resync does the rest *)

  (** ** Reading *)

  Definition strip (x : component) s : V := default (blank c) (strips x !! s).

  (** Only an active component is ever read. *)
  Definition seen (l : leg) s : list (option V) :=
    (fun x => if decide (state x = Active) then Some (strip x s) else None) <$> components l.

  (** None is data-lost. *)
  Definition read (l : leg) s : option (list V) := decode c (seen l s).

  (** How many components are not active. *)
  Definition inactive (xs : list component) : nat :=
    sum_list_with (fun x => if decide (state x = Active) then 0 else 1) xs.
  Definition tolerable (l : leg) : Prop := inactive (components l) <= parity_count c.

  (** ** Components *)

  Definition working (x : component) : Prop := state x = Active \/ state x = Stale \/ state x = Resyncing.
  Global Instance working_dec x : Decision (working x) := ltac:(unfold working; apply _).

  Definition with_state y (x : component) := Component y (home x) (strips x) (missed x) (written x) (clock x).
  Definition with_strip s (o : option V) (x : component) :=
    Component (state x) (home x) (partial_alter (fun _ => o) s (strips x)) (missed x) (written x) (clock x).
  Definition with_missed ms (x : component) :=
    Component (state x) (home x) (strips x) ms (written x) (clock x).
  Definition with_written ws (x : component) :=
    Component (state x) (home x) (strips x) (missed x) ws (clock x).

  (** A component that is there and has missed nothing is active. *)
  Definition activate (x : component) : component :=
    if decide (working x /\ missed x = ∅) then with_state Active x else x.

  Definition put s (o : content) i (x : component) : component :=
    with_written ({[s]} ∪ written x) (with_strip s (d ← o; stripe c d !! i) x).

  Definition acknowledge s (x : component) : component :=
    activate (with_written (written x ∖ {[s]})
      (with_missed (if decide (s ∈ written x) then missed x ∖ {[s]} else {[s]} ∪ missed x) x)).

  Definition fail (mode : condition) (x : component) : component :=
    Component mode (home x) (strips x) (missed x) ∅ 0.

  Definition tick (x : component) : component :=
    Component (state x) (home x) (strips x) (missed x) (written x)
      (if decide (state x = Absent) then S (clock x) else clock x).

  Definition resync s (o : option V) (x : component) : component :=
    activate (with_state Resyncing (with_missed (missed x ∖ {[s]}) (with_strip s o x))).

  Definition built_on d : component := activate (Component Resyncing d ∅ (set_seq 0 size) ∅ 0).

  (** ** Steps *)

  Definition with_components xs (l : leg) := Leg xs (spares l) (open l).
  Definition with_spares ds (l : leg) := Leg (components l) ds (open l).
  Definition with_open rs (l : leg) := Leg (components l) (spares l) rs.
  Definition with_component i x (l : leg) := with_components (<[i := x]> (components l)) l.

  (** The component that lives on a device. *)
  Definition on_device (l : leg) d : option (nat * component) :=
    list_find (fun x => home x = d /\ state x <> Degraded) (components l).

  Definition due (x : component) : Prop := state x = Degraded \/ state x = Absent /\ repair_delay <= clock x.
  Global Instance due_dec x : Decision (due x) := ltac:(unfold due; apply _).

  (** What a stripe reads as once it was written. *)
  Definition value (o : content) : list V := default (blanks c) o.

  Definition start s (o : content) (l : leg) : option leg :=
    guard (s < size /\ open l !! s = None /\ length (value o) = data_count c);
    Some (with_open (<[s := Writing o]> (open l)) l).

  Definition act (a : action) (l : leg) : option leg :=
    match a with
    | Write s v => start s (Some v) l
    | Unmap s => start s None l
    | Put i s =>
        x ← components l !! i; guard (working x);
        match open l !! s with
        | Some (Writing o) => Some (with_component i (put s o i x) l)
        | _ => None
        end
    | Acknowledge s =>
        guard (tolerable l /\ Forall (fun x => working x -> s ∈ written x) (components l));
        match open l !! s with
        | Some (Writing _) => Some (Leg (acknowledge s <$> components l) (spares l) (delete s (open l)))
        | _ => None
        end
    | Crash => Some (Leg (with_written ∅ <$> components l) (spares l) ((fun _ => Torn) <$> open l))
    | Recover s =>
        match open l !! s with
        | Some Torn => d ← read l s; Some (with_open (<[s := Writing (Some d)]> (open l)) l)
        | _ => None
        end
    | Fail d mode =>
        guard (mode = Absent \/ mode = Degraded);
        match on_device l d with
        | Some (i, x) => guard (working x \/ mode = Degraded); Some (with_component i (fail mode x) l)
        | None => guard (d ∈ spares l); Some (with_spares (spares l ∖ {[d]}) l)
        end
    | Return d =>
        match on_device l d with
        | Some (i, x) => guard (state x = Absent); Some (with_component i (activate (with_state Stale x)) l)
        | None => Some (with_spares ({[d]} ∪ spares l) l)
        end
    | Replace d =>
        match on_device l d with
        | Some (i, x) =>
            guard (state x = Absent);
            Some (with_spares ({[d]} ∪ spares l) (with_component i (fail Degraded x) l))
        | None => Some (with_spares ({[d]} ∪ spares l) l)
        end
    | Tick => Some (with_components (tick <$> components l) l)
    | Resync i s =>
        x ← components l !! i; guard ((state x = Stale \/ state x = Resyncing) /\ s ∈ missed x /\
          open l !! s = None);
        d ← read l s; Some (with_component i (resync s (stripe c d !! i) x) l)
    | Rebuild i d =>
        x ← components l !! i; guard (due x /\ d ∈ spares l);
        Some (with_spares (spares l ∖ {[d]}) (with_component i (built_on d) l))
    end.

  Fixpoint run (acts : list action) (l : leg) : option leg :=
    match acts with [] => Some l | a :: acts => act a l ≫= run acts end.

  Definition new_component i : component := Component Active i ∅ ∅ ∅ 0.
  Definition new_leg (spare_count : nat) : leg :=
    Leg (new_component <$> seq 0 (width c)) (set_seq (width c) spare_count) ∅.

  (** ** The reliable store, which a leg is to whoever uses it *)

  Record attempt := Attempt {
    intended : list V;              (* what the write was to leave *)
    writing : option (list V);      (* what it will leave; None: cut short *)
  }.

  Record store := Store { stripe_of : nat -> list V; pending : gmap nat attempt }.

  Definition new_store : store := Store (fun _ => blanks c) ∅.

  (** Devices and their failures are not seen here. A write cut short leaves the old stripe or the new one if
  the code is whole (a mirror), else anything; either way all who read it then read the same. *)
  Inductive store_step (st : store) : action -> store -> Prop :=
    | store_write s v : pending st !! s = None -> length v = data_count c ->
        store_step st (Write s v) (Store (stripe_of st) (<[s := Attempt v (Some v)]> (pending st)))
    | store_unmap s : pending st !! s = None ->
        store_step st (Unmap s) (Store (stripe_of st) (<[s :=
          Attempt (blanks c) (Some (blanks c))]> (pending st)))
    | store_acknowledge s n v : pending st !! s = Some (Attempt n (Some v)) ->
        store_step st (Acknowledge s) (Store (<[s := v]> (stripe_of st)) (delete s (pending st)))
    | store_crash : store_step st Crash (Store (stripe_of st)
        ((fun t => Attempt (intended t) None) <$> pending st))
    | store_recover s n v : pending st !! s = Some (Attempt n None) -> length v = data_count c ->
        (whole c -> v = stripe_of st s \/ v = n) ->
        store_step st (Recover s) (Store (stripe_of st) (<[s := Attempt n (Some v)]> (pending st)))
    | store_other a :
        match a with Write _ _ | Unmap _ | Acknowledge _ | Crash | Recover _ => False | _ => True end ->
          store_step st a st.

  Inductive store_run (st : store) : list action -> store -> Prop :=
    | store_nil : store_run st [] st
    | store_cons a st' acts st'' : store_step st a st' -> store_run st' acts st'' ->
        store_run st (a :: acts) st''.
End Redundancy.
