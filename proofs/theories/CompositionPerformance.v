(** The log-structured disk over its performance leg, a mirror: its two slots and its durable log are the
stripes.

    The log is a ring, one record a stripe; records are written one at a time. All that a power cut leaves of
    log and slots is what the leg holds, and recovery reads it back from there: where the log begins, from the
    newest slot.

    Left out: a record or a checkpoint is one block of the performance leg, whatever its size. *)
From LogDisk Require Export CompositionCapacity.
Import LogStructuredDisk CompositionSegments.

(** A block of the performance leg: a record says its number, which tells it from what the ring held before.
*)
Inductive page {V : Type} := Blank | Slot (i : checkpoint) | Entry (n : nat) (r : record V).
Global Arguments page : clear implicits.

Section performance_leg.
  Context {V : Type} `{Value V} (K : design) (cp : RedundancyCode.code (page V)) (cc : RedundancyCode.code V).
  Context (room : nat).     (* the log has room for one record more *)
  Notation ring := (S room). Notation store := (Redundancy.store (V := page V)).
  Implicit Types (c : state V) (sp : store) (h : nat → list (page V)) (i : checkpoint) (r : record V).

  Definition place_of (n : nat) : nat := 2 + n `mod` ring.

  (** The slot that the next checkpoint goes to: that of [replace_older]. *)
  Definition older (s : devices V) : nat :=
    match slot_a s, slot_b s with
    | Some a, Some b => if decide (number a < number b) then 0 else 1
    | Some _, None => 1
    | None, _ => 0
    end.

  (** What a slot is read as; on a new disk the first is an empty checkpoint. *)
  Definition slot_in (s : nat) (v : list (page V)) : option checkpoint :=
    match v, s with [Slot i], _ => Some i | _, 0 => Some (Checkpoint no_maps 0 0) | _, _ => None end.

  (** Where the log begins: behind what the newest checkpoint covers. *)
  Definition log_begins h : nat :=
    from_option upto 0 (newest (Devices (V := V) [] [] 0 (slot_in 0 (h 0)) (slot_in 1 (h 1)) ∅)).

  (** The log that the ring holds from record [n] on. *)
  Definition found h (n : nat) (rs : list (record V)) : Prop :=
    (∀ k r, rs !! k = Some r → h (place_of (n + k)) = [Entry (n + k) r]) ∧
    ∀ r, h (place_of (n + length rs)) ≠ [Entry (n + length rs) r].

  (** ** The disk *)

  Record host := Host {
    disk : state V;         (* what it knows; when it is off, nothing of its log, slots and segments *)
    durable : nat;          (* the records before this one have reached the leg *)
    logging : bool;         (* this one is being written *)
    saving : bool;          (* so is the checkpoint [nodes] *)
  }.
  Implicit Types (m : host).

  (** Nothing survives but what the legs hold. The size never changes; [q] is what clients wait for. *)
  Definition powered_off (q : option (request V)) c : state V :=
    State (size c) Off q (Devices [] [] 0 None None ∅) no_memory.

  (** What it knows once it has read its performance leg. Of the records before the log nothing is known but
  how many they are: any [ps] may stand for them. *)
  Definition loaded c (ps : list (record V)) h rs : state V :=
    with_devices c (Devices ps rs (length ps + length rs) (slot_in 0 (h 0)) (slot_in 1 (h 1)) ∅).

  Inductive host_does m : list (event V) → list (io (page V)) → list (io V) → host → Prop :=
    | does_step es cs c' :      (* the log counts as flushed once all of it has reached the leg *)
        at_phase (disk m) ≠ Off → at_phase c' ≠ Off → disk_does K cc (disk m) es cs c' →
        slot_a (dev c') = slot_a (dev (disk m)) → slot_b (dev c') = slot_b (dev (disk m)) →
        (flushed (dev c') = flushed (dev (disk m)) ∨ durable m = logged (disk m)) →
        (saving m → nodes (mem c') = nodes (mem (disk m))) →
        host_does m es [] cs (Host c' (durable m) (logging m) (saving m))
    | does_log r :
        at_phase (disk m) ≠ Off → logging m = false → history (disk m) !! durable m = Some r →
        durable m < first (disk m) + ring →
        host_does m [] [Does (Redundancy.Write (place_of (durable m)) [Entry (durable m) r])] []
          (Host (disk m) (durable m) true (saving m))
    | does_logged :
        at_phase (disk m) ≠ Off → logging m →
        host_does m [] [Does (Redundancy.Acknowledge (place_of (durable m)))] []
          (Host (disk m) (S (durable m)) false (saving m))
    | does_save i :
        at_phase (disk m) ≠ Off → nodes (mem (disk m)) = Some i → upto i ≤ flushed (dev (disk m)) →
        host_does m [] [Does (Redundancy.Write (older (dev (disk m))) [Slot i])] []
          (Host (disk m) (durable m) (logging m) true)
    | does_commit i :
        at_phase (disk m) ≠ Off → saving m → nodes (mem (disk m)) = Some i →
        host_does m [] [Does (Redundancy.Acknowledge (older (dev (disk m))))] []
          (Host (commit i (disk m)) (durable m) (logging m) false)
    | does_crash :
        host_does m [shown_by_crash (disk m)] [Does Redundancy.Crash] [Does Redundancy.Crash]
          (Host (powered_off None (disk m)) 0 false false)
    | does_restart :            (* a clean shutdown waits for what is being written *)
        at_phase (disk m) = Running → pending (disk m) = None → durable m = logged (disk m) →
        saving m = false → (∀ g, ¬ is_open (disk m) g) →
        host_does m [] [Does Redundancy.Crash] [Does Redundancy.Crash]
          (Host (powered_off (Some Reopen) (disk m)) 0 false false)
    | does_recover s :          (* a stripe whose write was cut short is made one again,
        and that write ends *)
        at_phase (disk m) = Off → host_does m [] [Does (Redundancy.Recover s)] [] m
    | does_settle s : at_phase (disk m) = Off → host_does m [] [Does (Redundancy.Acknowledge s)] [] m
    | does_tidy cs : tidies (disk m) cs → host_does m [] [] cs m
    | does_load h ps rs cs c' : (* the whole leg is read, then the newest checkpoint is loaded *)
        at_phase (disk m) = Off → at_phase c' ≠ Off →
        length ps = log_begins h → found h (log_begins h) rs →
        disk_does K cc (loaded (disk m) ps h rs) [] cs c' →
        host_does m [] ((λ s, Sees s (h s)) <$> seq 0 (2 + ring))
          cs (Host c' (log_begins h + length rs) false false).

  Definition log_structured_client : client :=
    {| within := host; starts := λ blocks m, m = Host (initial blocks) 0 false false; does := host_does |}.
End performance_leg.
