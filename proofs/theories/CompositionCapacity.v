(** The log-structured disk over its capacity leg: its segments are the stripes.

    What is being written to an open segment is still in memory; everything else it has to read. *)
From LogDisk Require Export CompositionLegs.
From LogDisk Require LogStructuredDisk LogStructuredDiskReading LogStructuredDiskInvariant
  LogStructuredDiskRefinement.
From LogDisk Require CompositionSegments.
Import Redundancy RedundancyCorrect.

Section log_structured_disk.
  Import LogStructuredDisk LogStructuredDiskReading LogStructuredDiskInvariant LogStructuredDiskRefinement.
  Import CompositionSegments.
  Context {V : Type} `{Value V} (K : design) (cc : RedundancyCode.code V).
  Implicit Types (c d e : state V) (st : store (V := V)) (g : nat) (data : list V) (S rd : gmap nat (list V)).

  (** A segment is written as a full stripe. *)
  Definition full_stripe data : list V :=
    data ++ replicate (data_count cc - length data) (RedundancyCode.blank cc).

  Definition keep_open c : state V :=
    on_segments (filter (fun gd => table (mem c) !! gd.1 = Some Open) (segments (dev c))) c.

  (** What a step from c to c' asks of the capacity leg. *)
  Inductive asks c c' : list (io V) -> Prop :=
    | asks_nothing : at_phase c' <> Off -> (∀ h, is_open c' h <-> is_open c h) -> asks c c' []
    | asks_write g data : at_phase c' <> Off -> ~ is_open c g ->
        (∀ h, is_open c' h <-> h = g \/ is_open c h) ->
        segments (dev c') !! g = Some data -> asks c c' [Does (Redundancy.Write g (full_stripe data))]
    | asks_acknowledge g : at_phase c' <> Off -> is_open c g ->
        (∀ h, is_open c' h <-> h <> g /\ is_open c h) ->
        asks c c' [Does (Redundancy.Acknowledge g)]
    | asks_crash : at_phase c' = Off -> asks c c' [Does Redundancy.Crash].

  Definition reads rd : list (io V) := (fun gd => Sees gd.1 gd.2) <$> map_to_list rd.

  (** A step on what is in memory and what it reads. *)
  Inductive disk_does c (es : list (event V)) : list (io V) -> state V -> Prop :=
    | disk_step rd c' qs :
        (at_phase c' <> Off -> ∀ g, g ∈ segments_of (current (mem c)) ->
          is_open c g \/ is_Some (rd !! g)) ->
        step K (on_segments (segments (dev c) ∪ rd) c) es c' ->
        (at_phase c' = Off -> es = [] -> ∀ g, ~ is_open c g) ->
          (* a clean shutdown waits for its writes *)
        asks c c' qs -> disk_does c es (reads rd ++ qs) (keep_open c').

  (** A stripe whose write was cut short is made one again, and that write ends. *)
  Inductive tidies c : list (io V) -> Prop :=
    | recovers g : tidies c [Does (Redundancy.Recover g)]
    | settles g : ~ is_open c g -> tidies c [Does (Redundancy.Acknowledge g)].
End log_structured_disk.
