(** No device has two uses ([one_use_per_device]), so that the failure of a device is that of at most one component. *)
From stdpp Require Import prelude functions gmap.
From LogDisk Require Export RedundancyHistory.

Section placement.
  Context {V : Type} (c : code V) (size repair_delay : nat).
  Implicit Types (i d s : nat) (x y : component (V := V)) (l : leg (V := V)).

  Notation act := (act c size repair_delay).
  Notation run := (run c size repair_delay).

  Record placed l : Prop := Placed {
    apart i j x y : components l !! i = Some x -> components l !! j = Some y ->
      state x <> Degraded -> state y <> Degraded -> home x = home y -> i = j;
    spares_apart i x : components l !! i = Some x -> state x <> Degraded -> home x ∉ spares l;
  }.

  Lemma placed_insert l i x y : placed l -> components l !! i = Some x ->
    (state y <> Degraded -> home y = home x /\ state x <> Degraded) -> placed (with_component i y l).
  Proof.
    intros [A S] Hx Hy.
    assert (forall j z, <[i := y]> (components l) !! j = Some z -> state z <> Degraded ->
      exists z', components l !! j = Some z' /\ state z' <> Degraded /\ home z = home z') as Old.
    { intros j z [(<- & <- & _)|[_ Hz]]%list_lookup_insert_Some D; [|by exists z].
      destruct (Hy D). by exists x. }
    split; simpl.
    - intros j k z w Hz Hw Dz Dw E.
      destruct (Old j z Hz Dz) as (z' & ? & ? & ?), (Old k w Hw Dw) as (w' & ? & ? & ?).
      apply (A j k z' w'); congruence.
    - intros j z Hz D. destruct (Old j z Hz D) as (z' & ? & ? & ->). by apply (S j).
  Qed.

  Lemma placed_fmap l f rs : (forall x, home (f x) = home x /\ (state (f x) <> Degraded -> state x <> Degraded)) ->
    placed l -> placed (Leg (f <$> components l) (spares l) rs).
  Proof.
    intros F [A S].
    assert (forall j z, (f <$> components l) !! j = Some z -> state z <> Degraded ->
      exists z', components l !! j = Some z' /\ state z' <> Degraded /\ home z = home z') as Old.
    { intros j z. rewrite list_lookup_fmap. intros (z' & Hz & ->)%fmap_Some D. destruct (F z'). exists z'.
      auto. }
    split; simpl.
    - intros j k z w Hz Hw Dz Dw E.
      destruct (Old j z Hz Dz) as (z' & ? & ? & ?), (Old k w Hw Dw) as (w' & ? & ? & ?).
      apply (A j k z' w'); congruence.
    - intros j z Hz D. destruct (Old j z Hz D) as (z' & ? & ? & ->). by apply (S j).
  Qed.

  Lemma placed_spares l ds : placed l ->
    (forall i x, components l !! i = Some x -> state x <> Degraded -> home x ∉ ds) -> placed (with_spares ds l).
  Proof. intros [A S] N. split; [apply A|apply N]. Qed.

  Lemma activate_placed x : home (activate x) = home x /\ (state (activate x) <> Degraded -> state x <> Degraded).
  Proof.
    unfold activate. case_decide as D; [|done]. split; [done|]. intros _.
    destruct D as [[-> | [-> | ->]] _]; done.
  Qed.

  Lemma placed_step l a l' : placed l -> act a l = Some l' -> placed l'.
  Proof.
    intros Pl E. pose proof Pl as [A S].
    assert (forall d, on_device l d = None -> forall i x, components l !! i = Some x -> state x <> Degraded -> home x <> d) as Free.
    { intros d N i x Hx D Hd. apply list_find_None in N. rewrite Forall_lookup in N. by apply (N i x Hx). }
    destruct a as [s v|s|i s|s| |s|d mode|d|d| |i s|i d]; simpl in E.
    - unfold start in E. case_option_guard; [|done]. injection E as <-. by split.
    - unfold start in E. case_option_guard; [|done]. injection E as <-. by split.
    - destruct (components l !! i) as [x|] eqn:Hx; simpl in E; [|done]. case_option_guard; [|done].
      destruct (open l !! s) as [[o|]|]; try done. injection E as <-. by eapply placed_insert.
    - case_option_guard; [|done]. destruct (open l !! s) as [[o|]|]; try done. injection E as <-.
      apply placed_fmap; [|done]. intros x. unfold acknowledge.
      match goal with |- context [activate ?z] => exact (activate_placed z) end.
    - injection E as <-. by apply placed_fmap.
    - destruct (open l !! s) as [[o|]|]; try done. destruct (read c l s); simpl in E; [|done].
      injection E as <-. by split.
    - case_option_guard as Md; [|done]. destruct (on_device l d) as [[i x]|] eqn:Od.
      + apply on_device_lookup in Od as (Hx & Hd & D). case_option_guard; [|done]. injection E as <-.
        by eapply placed_insert.
      + case_option_guard; [|done]. injection E as <-. apply placed_spares; [done|].
        intros i x Hx D. pose proof (S i x Hx D). set_solver.
    - destruct (on_device l d) as [[i x]|] eqn:Od.
      + apply on_device_lookup in Od as (Hx & Hd & D). case_option_guard; [|done]. injection E as <-.
        eapply placed_insert; [done..|]. intros _. split; [|done]. apply (activate_placed (with_state Stale x)).
      + injection E as <-. apply placed_spares; [done|]. intros i x Hx D.
        pose proof (S i x Hx D). pose proof (Free d Od i x Hx D). set_solver.
    - destruct (on_device l d) as [[i x]|] eqn:Od.
      + apply on_device_lookup in Od as (Hx & Hd & D). case_option_guard; [|done]. injection E as <-.
        apply placed_spares; [by eapply placed_insert|]. simpl. intros j y Hy Dy.
        apply list_lookup_insert_Some in Hy as [(-> & <- & _)|[N Hy]]; [done|].
        pose proof (S j y Hy Dy). assert (home y <> d); [|set_solver]. intros Hh. apply N.
        apply (A i j x y); congruence.
      + injection E as <-. apply placed_spares; [done|]. intros i x Hx D.
        pose proof (S i x Hx D). pose proof (Free d Od i x Hx D). set_solver.
    - injection E as <-. by apply (placed_fmap l tick (open l)).
    - destruct (components l !! i) as [x|] eqn:Hx; simpl in E; [|done]. case_option_guard as Gd; [|done].
      destruct (read c l s) as [v|]; simpl in E; [|done]. injection E as <-. eapply placed_insert; [done..|].
      intros _. unfold resync.
      split; [match goal with |- context [activate ?z] => apply (activate_placed z) end|].
      destruct Gd as ([-> | ->] & _); done.
    - destruct (components l !! i) as [x|] eqn:Hx; simpl in E; [|done]. case_option_guard as Gd; [|done].
      destruct Gd as [_ Hd]. injection E as <-.
      assert (home (built_on (V := V) size d) = d) as Hb by apply (activate_placed (Component Resyncing d ∅ _ ∅ 0)).
      split; simpl.
      + intros j k z w Hz Hw Dz Dw Eq.
        apply list_lookup_insert_Some in Hz as [(-> & <- & _)|[Nz Hz]];
          apply list_lookup_insert_Some in Hw as [(-> & <- & _)|[Nw Hw]]; try done.
        * rewrite Hb in Eq. subst d. by apply S in Hw.
        * rewrite Hb in Eq. subst d. by apply S in Hz.
        * by apply (A j k z w).
      + intros j z Hz Dz. apply list_lookup_insert_Some in Hz as [(-> & <- & _)|[_ Hz]].
        * rewrite Hb. set_solver.
        * pose proof (S j z Hz Dz). set_solver.
  Qed.

  Theorem one_use_per_device n acts l : run acts (new_leg c n) = Some l -> placed l.
  Proof.
    assert (placed (new_leg (V := V) c n)) as P0.
    { assert (forall j x, (new_component (V := V) <$> seq 0 (width c)) !! j = Some x -> home x = j /\ j < width c) as N.
      { intros j x. rewrite list_lookup_fmap. by intros (k & [-> ?]%lookup_seq & ->)%fmap_Some. }
      split; simpl.
      - intros i j x y [? _]%N [? _]%N _ _ E. congruence.
      - intros i x [-> L]%N _. rewrite elem_of_set_seq. lia. }
    revert P0. generalize (new_leg (V := V) c n).
    induction acts as [|a acts IH]; simpl; intros l0 P0 H; [by injection H as <-|].
    destruct (act a l0) as [l1|] eqn:E; simpl in H; [|done]. apply (IH l1); [by eapply placed_step|done].
  Qed.
End placement.
