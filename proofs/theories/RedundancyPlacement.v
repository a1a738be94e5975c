(** No device has two uses ([one_use_per_device]), so that the failure of a device is that of at most one
component. *)
From LogDisk Require Export RedundancyHistory.

Section placement.
  Context {V : Type} (c : code V) (size repair_delay : nat).
  Implicit Types (i d s : nat) (x y : component (V := V)) (l : leg (V := V)).

  Notation act := (act c size repair_delay). Notation run := (run c size repair_delay).

  Record placed l : Prop := Placed {
    apart i j x y : components l !! i = Some x -> components l !! j = Some y ->
      state x <> Degraded -> state y <> Degraded -> home x = home y -> i = j;
    spares_apart i x : components l !! i = Some x -> state x <> Degraded -> home x ∉ spares l;
  }.

  (** Homes stay, and what works now worked before. *)
  Lemma placed_from l l' : placed l -> spares l' = spares l ->
    (∀ j z, components l' !! j = Some z -> state z <> Degraded ->
      ∃ z', components l !! j = Some z' /\ state z' <> Degraded /\ home z = home z') -> placed l'.
  Proof.
    intros [A S] Es Old. split; [|rewrite Es].
    - intros j k z w Hz Hw Dz Dw E. destruct (Old j z Hz Dz) as (z' & ? & ? & ?),
      (Old k w Hw Dw) as (w' & ? & ? & ?).
      apply (A j k z' w'); congruence.
    - intros j z Hz D. destruct (Old j z Hz D) as (z' & ? & ? & ->). by apply (S j).
  Qed.

  Lemma placed_insert l i x y : placed l -> components l !! i = Some x ->
    (state y <> Degraded -> home y = home x /\ state x <> Degraded) -> placed (with_component i y l).
  Proof.
    intros Pl Hx Hy. apply (placed_from l); [done..|]. simpl.
    intros j z [(<- & <- & _)|[_ Hz]]%list_lookup_insert_Some D; [|by exists z]. destruct (Hy D). by exists x.
  Qed.

  Lemma placed_fmap l f rs : (∀ x, home (f x) = home x /\
    (state (f x) <> Degraded -> state x <> Degraded)) ->
    placed l -> placed (Leg (f <$> components l) (spares l) rs).
  Proof. intros F Pl. apply (placed_from l); [done..|]. simpl. intros j z. rewrite list_lookup_fmap.
    intros (z' & Hz & ->)%fmap_Some D. destruct (F z'). exists z'. auto. Qed.

  Lemma placed_step l a l' : placed l -> act a l = Some l' -> placed l'.
  Proof.
    intros Pl E. pose proof Pl as [A S].
    apply act_changes in E as [rs|f rs F|i x y Hx (? & _ & ? & _)|i x mode Hx D ->|i x Hx Ab|i x d Hx _ Hd|ds
      F].
    - by split.
    - apply placed_fmap; [|done]. intros x. destruct (F x) as (? & _ & ? & _). done.
    - apply (placed_insert l i x); auto.
    - by apply (placed_insert l i x).
    - destruct (placed_insert l i x (fail Degraded x) Pl Hx) as [A' S']; [done|]. split; [done|]. simpl.
      intros j y Hy Dy [Hh%elem_of_singleton|]%elem_of_union; [|by apply (S' j y)].
      apply list_lookup_insert_Some in Hy as [(-> & <- & _)|[N Hy]]; [done|]. apply N. apply (A i j x y);
        congruence.
    - assert (home (built_on (V := V) size d) = d) as Hb by (unfold built_on, activate; by case_decide).
      split; simpl.
      + intros j k z w Hz Hw Dz Dw Eq.
        apply list_lookup_insert_Some in Hz as [(-> & <- & _)|[Nz Hz]], Hw as [(-> & <- & _)|[Nw Hw]];
          try done.
        * rewrite Hb in Eq. subst d. by apply S in Hw.
        * rewrite Hb in Eq. subst d. by apply S in Hz.
        * by apply (A j k z w).
      + intros j z Hz Dz. apply list_lookup_insert_Some in Hz as [(-> & <- & _)|[_ Hz]]; [set_solver|].
        pose proof (S j z Hz Dz). set_solver.
    - split; [done|]. intros i x Hx D [Hd|Hd]%F; [by apply (S i x)|by apply (Hd i x)].
  Qed.

  Theorem one_use_per_device n acts l : run acts (new_leg c n) = Some l -> placed l.
  Proof.
    assert (placed (new_leg (V := V) c n)) as P0.
    { assert (∀ j x, (new_component (V := V) <$> seq 0 (width c)) !! j = Some x -> home x = j /\
      j < width c) as N.
      { intros j x. rewrite list_lookup_fmap. by intros (k & [-> ?]%lookup_seq & ->)%fmap_Some. }
      split; simpl.
      - intros i j x y [? _]%N [? _]%N _ _ E. congruence.
      - intros i x [-> L]%N _. rewrite elem_of_set_seq. lia. }
    revert P0. generalize (new_leg (V := V) c n).
    induction acts as [|a acts IH]; simpl; intros l0 P0 H; [by injection H as <-|].
    destruct (act a l0) as [l1|] eqn:E; simpl in H; [|done]. apply (IH l1); [by eapply placed_step|done].
  Qed.
End placement.
