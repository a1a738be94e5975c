(** Histories of a leg: writes, failures, crashes, resyncs and rebuilds in any order and of any length.

    Results, for any code that is [good] (Parity.v: mirrors, RAID-5, RAID-6):
    - [any_m_failures]: with at most m failures, at any steps, every stripe that is not being written reads as
      the reliable store says; [any_failures]: with more, it does, or the read says that data are lost.
    - [stale_never_read]: what components hold that are not active makes no difference to any read.

    The simulation behind them is [RedundancyCorrect.leg_step_refines]. *)
From LogDisk Require Export RedundancyCorrect.

Section history.
  Context {V : Type} (c : code V) (size repair_delay : nat) (G : good c).
  Implicit Types (i d s : nat) (x y : component (V := V)) (l : leg (V := V)) (st : store (V := V)).

  Notation act := (act c size repair_delay). Notation run := (run c size repair_delay).
  Notation refines := (refines c size).

  (** ** Histories *)

  Lemma new_leg_refines n : refines (new_leg c n) (new_store c).
  Proof.
    assert (length (blanks c) = data_count c) as L by apply replicate_length. split; simpl; try done.
    - by rewrite fmap_length, seq_length.
    - intros i x. rewrite list_lookup_fmap. intros (j & [-> Hj]%lookup_seq & ->)%fmap_Some.
      split; simpl; try set_solver. intros s _ _. rewrite stripe_blanks by done. by apply lookup_replicate_2.
    - intros s [? ?]. set_solver.
  Qed.

  Theorem leg_run_refines l st acts l' : refines l st -> run acts l = Some l' ->
    ∃ st', store_run c st acts st' /\ refines l' st'.
  Proof.
    revert l st. induction acts as [|a acts IH]; simpl; intros l st R.
    - intros [= ->]. exists st. split; [constructor|done].
    - destruct (act a l) as [l1|] eqn:E; simpl; [|done]. intros H.
      destruct (leg_step_refines c size repair_delay G l st a l1 R E) as (st1 & S1 & R1).
      destruct (IH l1 st1 R1 H) as (st2 & S2 & R2). exists st2. split; [by econstructor|done].
  Qed.

  Definition is_failure (a : action (V := V)) : bool := match a with Fail _ _ => true | _ => false end.
  Definition failures (acts : list action) : nat :=
    sum_list_with (fun a => if is_failure a then 1 else 0) acts.

  Lemma sum_insert {A} (f : A -> nat) xs i (x y : A) :
    xs !! i = Some x -> sum_list_with f (<[i := y]> xs) + f x = sum_list_with f xs + f y.
  Proof. revert i. induction xs as [|z xs IH]; intros [|i] E; simpl in *; try done; [injection E as ->; lia|].
    specialize (IH i E). lia. Qed.

  (** ** What a step does to the components *)

  (** What becomes of a component that a step neither takes down nor rebuilds. *)
  Definition carried (a : action (V := V)) x y : Prop :=
    home y = home x /\ (state x = Active -> state y = Active) /\
      (state y <> Degraded -> state x <> Degraded) /\
    (state y = Absent -> state x = Absent /\ clock y = clock x + match a with Tick => 1 | _ => 0 end).

  Inductive changes (a : action (V := V)) l : leg -> Prop :=
    | changes_requests rs : changes a l (with_open rs l)
    | changes_each f rs : (∀ x, carried a x (f x)) ->
        changes a l (Leg (f <$> components l) (spares l) rs)
    | changes_one i x y : components l !! i = Some x -> carried a x y -> changes a l (with_component i y l)
    | changes_fail i x mode : components l !! i = Some x -> state x <> Degraded -> a = Fail (home x) mode ->
        changes a l (with_component i (fail mode x) l)
    | changes_replace i x : components l !! i = Some x -> state x = Absent ->
        changes a l (with_spares ({[home x]} ∪ spares l) (with_component i (fail Degraded x) l))
    | changes_rebuild i x d : components l !! i = Some x -> state x <> Active -> d ∈ spares l ->
        changes a l (with_spares (spares l ∖ {[d]}) (with_component i (built_on size d) l))
    | changes_spares ds : (∀ d, d ∈ ds -> d ∈ spares l \/ ∀ i x, components l !! i = Some x ->
        state x <> Degraded ->
        home x <> d) -> changes a l (with_spares ds l).

  Lemma carried_activate a x y : carried a x y -> carried a x (activate y).
  Proof. unfold activate. case_decide as D; [|done]. intros (? & ? & S & _). split_and!; [done..| |done].
    intros _. apply S. by destruct D as [[-> | [-> | ->]] _]. Qed.

  Lemma act_changes l a l' : act a l = Some l' -> changes a l l'.
  Proof.
    clear G. assert (∀ d, on_device l d = None -> ∀ i x, components l !! i = Some x ->
      state x <> Degraded -> home x <> d) as Free.
    { intros d N i x Hx D Hd. apply list_find_None in N. rewrite Forall_lookup in N. by apply (N i x Hx). }
    intros E. destruct a as [s v|s|i s|s| |s|d mode|d|d| |i s|i d]; simpl in E; unfold start in E; invert_act;
      repeat match goal with H : on_device _ _ = Some _ |- _ => apply on_device_lookup in H as (Hx & <- & D)
        end;
      try (apply changes_requests); try (apply changes_each; intros x); try (apply changes_spares);
      try (by apply changes_fail); try (by apply changes_replace);
      try (eapply changes_rebuild; [done| |naive_solver]; unfold due in *; intuition congruence);
      try (eapply changes_one; [done|]); try (apply carried_activate); unfold carried; simpl;
      try (split_and!; intuition (congruence || lia));
      try (intros d' [->%elem_of_singleton|]%elem_of_union; [right; by apply Free|by left]).
    - set_solver.
    - split_and!; try done. intros A. rewrite decide_True by done. split; [done|lia].
  Qed.

  (** ** Failures *)

  Lemma inactive_step l a l' : act a l = Some l' ->
    inactive (components l') <= inactive (components l) + (if is_failure a then 1 else 0).
  Proof.
    clear G. assert (∀ i x y, components l !! i = Some x -> (state x = Active -> state y = Active) ->
      inactive (<[i := y]> (components l)) <= inactive (components l)) as Ins.
    { intros i x y E A. unfold inactive.
      pose proof (sum_insert (fun x => if decide (state x = Active) then 0 else 1) _ i x y E).
      simpl in *. repeat case_decide; tauto || lia. }
    intros [rs|f rs F|i x y Hx (_ & F & _)|i x mode Hx D ->|i x Hx A|i x d Hx A _|ds _]%act_changes; simpl;
      try lia.
    - apply Nat.le_trans with (inactive (components l)); [|lia]. unfold inactive. clear Ins.
      induction (components l) as [|x xs IH]; [done|]. cbn. destruct (F x) as (_ & A & _).
      repeat case_decide; tauto || lia.
    - specialize (Ins i x y Hx F). lia.
    - pose proof (sum_insert (fun x => if decide (state x = Active) then 0 else 1) _ i x (fail mode x) Hx)
      as Q.
      unfold inactive. simpl in *. repeat case_decide; lia.
    - specialize (Ins i x (fail Degraded x) Hx ltac:(congruence)). lia.
    - specialize (Ins i x (built_on size d) Hx ltac:(congruence)). lia.
  Qed.

  Lemma inactive_run l acts l' : run acts l = Some l' ->
    inactive (components l') <= inactive (components l) + failures acts.
  Proof. revert l. induction acts as [|a acts IH]; simpl; intros l; [intros [= ->]; lia|].
    destruct (act a l) as [l1|] eqn:E; simpl; [|done]. intros H%IH. apply inactive_step in E.
    unfold failures in *. simpl. lia. Qed.

  Lemma new_leg_inactive n : inactive (components (new_leg c n)) = 0.
  Proof. unfold new_leg. simpl.
    assert (∀ w j, inactive (new_component (V := V) <$> seq j w) = 0) as H; [|apply H].
    induction w as [|w IH]; intros j; [done|apply (IH (S j))]. Qed.

  (** With at most m failures, at any steps, every read returns the last write. *)
  Theorem any_m_failures n acts l : run acts (new_leg c n) = Some l -> failures acts <= parity_count c ->
    ∃ st, store_run c (new_store c) acts st /\
      ∀ s, open l !! s = None -> read c l s = Some (stripe_of st s).
  Proof. intros H F. destruct (leg_run_refines _ _ _ _ (new_leg_refines n) H) as (st & S & R). exists st.
    split; [done|]. intros s E. apply (read_available c size G); [done..|]. apply inactive_run in H.
    rewrite new_leg_inactive in H. unfold tolerable. lia. Qed.

  (** While at most m components are not active, every read returns the last write, whatever failed and was
  repaired before. *)
  Theorem read_available_now n acts l : run acts (new_leg c n) = Some l ->
    inactive (components l) <= parity_count c ->
    ∃ st, store_run c (new_store c) acts st /\
      ∀ s, open l !! s = None -> read c l s = Some (stripe_of st s).
  Proof. intros H F. destruct (leg_run_refines _ _ _ _ (new_leg_refines n) H) as (st & S & R). exists st.
    split; [done|]. intros s E. by apply (read_available c size G). Qed.

  (** With any number of failures, a read returns the last write or says that data are lost. *)
  Theorem any_failures n acts l : run acts (new_leg c n) = Some l ->
    ∃ st, store_run c (new_store c) acts st /\
      ∀ s, open l !! s = None -> read c l s = Some (stripe_of st s) \/ read c l s = None.
  Proof. intros H. destruct (leg_run_refines _ _ _ _ (new_leg_refines n) H) as (st & S & R). exists st.
    split; [done|]. intros s E. destruct (read c l s) as [v|] eqn:D; [|by right]. left. f_equal.
    by eapply (read_never_wrong c size G). Qed.

  (** ** What is read *)

  (** A component that is not active is never read: what it holds makes no difference. *)
  Theorem stale_never_read l l' s :
    Forall2 (fun x y => state x = state y /\ (state x = Active -> strip c x s = strip c y s))
      (components l) (components l') ->
    read c l s = read c l' s.
  Proof. intros H. unfold read. f_equal. unfold seen. induction H as [|x y xs ys [E S] _ IH]; [done|].
    rewrite !fmap_cons, IH. f_equal. rewrite <-E. case_decide; [by rewrite S|done]. Qed.
End history.
