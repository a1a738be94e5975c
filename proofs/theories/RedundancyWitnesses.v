(** What goes wrong on a leg when a rule or a hypothesis is dropped, computed. *)
From LogDisk Require Import Parity RedundancyRepair RedundancyPlacement.

Section mirrors.
  Notation pair := (mirror 0 1). Notation go acts := (run pair 1 2 acts (new_leg pair 1)).
  Notation read_after acts := (l ← go acts; read pair l 0).

  Definition write (v : nat) : list action := [Write 0 [v]; Put 0 0; Put 1 0; Acknowledge 0].

  (** ** Hypotheses *)

  (** One failure more than m: data are lost, and the read says so. *)
  Example too_many_failures : read_after (write 1 ++ [Fail 0 Absent; Fail 1 Absent]) = None.
  Proof. by vm_compute. Qed.

  (** A second failure before the rebuild of the first has ended. *)
  Example failure_before_restored :
    read_after (write 1 ++ [Fail 1 Degraded; Rebuild 1 2; Fail 0 Degraded]) = None.
  Proof. by vm_compute. Qed.

  (** No spare ([enough]): nothing can be repaired. *)
  Example no_spare :
    ∃ l, run pair 1 2 [Fail 1 Degraded] (new_leg pair 0) = Some l /\ inactive (components l) = 1 /\
      ∀ a, repairs a -> act pair 1 2 a l = None.
  Proof. eexists. split; [done|]. split; [done|].
    intros [| | | | | | | | | |i s|i d]; try done; intros _; destruct i as [|[|]]; done. Qed.

  (** In a leg that no actions led to, a rebuild need not have waited, and a device may have two uses. *)
  Example unreached_rebuild :
    let l := with_components [new_component 0; Component Absent 1 ∅ ∅ ∅ 2] (new_leg pair 1) in
    run pair 1 2 [] l = Some l /\ is_Some (act pair 1 2 (Rebuild 1 2) l).
  Proof. split; [done|]. by eexists. Qed.

  Example unreached_placement : ~ placed (with_components [new_component 0;
    new_component 0] (new_leg pair 1)).
  Proof. intros [A _]. by specialize (A 0 1 _ _ eq_refl eq_refl ltac:(done) ltac:(done) eq_refl). Qed.

  (** A code that decodes everything to 0 ([good]): wrong data are read, and nothing says so. *)
  Example wrong_code_reads_wrong :
    let forgetful := Code _ 1 0 0 (fun _ => []) (fun _ => Some [0]) in
    (l ← run forgetful 1 2 [Write 0 [7]; Put 0 0; Acknowledge 0] (new_leg forgetful 0);
      read forgetful l 0) = Some [0].
  Proof. by vm_compute. Qed.

  (** What active components hold does make a difference. *)
  Example active_is_read :
    (l ← go (write 1); read pair (with_components (with_strip 0 (Some 2) <$> components l) l) 0) = Some [2].
  Proof. by vm_compute. Qed.

  (** ** A rule broken: a read returns something else than the last write. *)

  (** A component is active though it lacks writes. *)
  Definition trust i (l : leg (V := nat)) : leg :=
    with_components (alter (fun x => with_missed ∅ (with_state Active x)) i (components l)) l.

  (** A returned device is admitted without resync (md 8313b8e57f55). *)
  Example admitted_without_resync :
    (l ← go (write 1 ++ [Fail 1 Absent; Write 0 [2]; Put 0 0; Acknowledge 0; Return 1]);
     l ← run pair 1 2 [Fail 0 Absent] (trust 1 l); read pair l 0) = Some [1].
  Proof. by vm_compute. Qed.

End mirrors.

(** A code that is not good: RAID-5 taken for one that tolerates two. *)
Example not_good_enough : ~ good (Code _ 2 2 (blank (raid5 (n :=
  1) 2)) (fun d => parity (raid5 2) d ++ [blank (raid5 2)])
  (fun s => decode (raid5 2) (take 3 s))).
Proof.
  intros G. pose proof (good_complete _ G (byte_block <$> [one; one]) [None; None; Some (byte_block zero);
    Some (byte_block zero)]) as E.
  assert (2 <= 2) as L by done. specialize (fun A B => E A B L). discriminate E; [by vm_compute|].
  constructor; [by left|constructor; [by left|constructor; [by right|constructor; [by right|constructor]]]].
Qed.
