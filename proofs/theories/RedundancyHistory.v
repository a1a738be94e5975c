(** Histories of a leg: writes, failures, crashes, resyncs and rebuilds in any order and of any length.

    Results, for any code that is [good] (Parity.v: mirrors, RAID-5, RAID-6):
    - [any_m_failures]: with at most m failures, at any steps, every stripe that is not being written reads as the
      reliable store says; [any_failures]: with more, it does, or the read says that data are lost.
    - [read_last_write]: in full, an acknowledged write or unmap is what reads return until the next one to that
      stripe is acknowledged.
    - [stale_never_read]: what components hold that are not active makes no difference to any read.

    The simulation behind them is [RedundancyCorrect.leg_step_refines]. *)
From stdpp Require Import prelude functions gmap.
From LogDisk Require Export RedundancyCorrect.

Section history.
  Context {V : Type} (c : code V) (size repair_delay : nat) (G : good c).
  Implicit Types (i d s : nat) (x : component (V := V)) (l : leg (V := V)) (st : store (V := V)).

  Notation act := (act c size repair_delay).
  Notation run := (run c size repair_delay).
  Notation refines := (refines c size).

  (** ** Histories *)

  Lemma new_leg_refines n : refines (new_leg c n) (new_store c).
  Proof.
    assert (length (blanks c) = data_count c) as L by apply replicate_length.
    split; simpl; try done.
    - by rewrite fmap_length, seq_length.
    - intros i x. rewrite list_lookup_fmap. intros (j & [-> Hj]%lookup_seq & ->)%fmap_Some.
      split; simpl; try set_solver.
      intros s _ _. rewrite stripe_blanks by done. by apply lookup_replicate_2.
    - intros s [? ?]. set_solver.
  Qed.

  Theorem leg_run_refines l st acts l' : refines l st -> run acts l = Some l' ->
    exists st', store_run c st acts st' /\ refines l' st'.
  Proof.
    revert l st. induction acts as [|a acts IH]; simpl; intros l st R.
    - intros [= ->]. exists st. split; [constructor|done].
    - destruct (act a l) as [l1|] eqn:E; simpl; [|done]. intros H.
      destruct (leg_step_refines c size repair_delay G l st a l1 R E) as (st1 & S1 & R1).
      destruct (IH l1 st1 R1 H) as (st2 & S2 & R2). exists st2. split; [by econstructor|done].
  Qed.

  Definition is_failure (a : action (V := V)) : bool := match a with Fail _ _ => true | _ => false end.
  Definition failures (acts : list action) : nat := sum_list_with (fun a => if is_failure a then 1 else 0) acts.

  Lemma sum_insert {A} (f : A -> nat) xs i (x y : A) :
    xs !! i = Some x -> sum_list_with f (<[i := y]> xs) + f x = sum_list_with f xs + f y.
  Proof.
    revert i. induction xs as [|z xs IH]; intros [|i] E; simpl in *; try done; [injection E as ->; lia|].
    specialize (IH i E). lia.
  Qed.

  Lemma inactive_insert (xs : list component) i x y : xs !! i = Some x -> (state x = Active -> state y = Active) ->
    inactive (<[i := y]> xs) <= inactive xs.
  Proof.
    intros E A. unfold inactive.
    pose proof (sum_insert (fun x => if decide (state x = Active) then 0 else 1) xs i x y E).
    simpl in *. repeat case_decide; try lia. tauto.
  Qed.

  Lemma inactive_fmap (f : component (V := V) -> component (V := V)) xs :
    (forall x, state x = Active -> state (f x) = Active) -> inactive (f <$> xs) <= inactive xs.
  Proof.
    intros A. unfold inactive. induction xs as [|x xs IH]; [done|]. cbn. specialize (A x).
    repeat case_decide; tauto || lia.
  Qed.

  Lemma activate_active x : state x = Active -> state (activate x) = Active.
  Proof. unfold activate. by case_decide. Qed.

  Lemma inactive_step l a l' : act a l = Some l' ->
    inactive (components l') <= inactive (components l) + (if is_failure a then 1 else 0).
  Proof.
    destruct a as [s v|s|i s|s| |s|d mode|d|d| |i s|i d]; simpl; intros E.
    - unfold start in E. case_option_guard; [|done]. injection E as <-. simpl. lia.
    - unfold start in E. case_option_guard; [|done]. injection E as <-. simpl. lia.
    - destruct (components l !! i) as [x|] eqn:Hx; simpl in E; [|done]. case_option_guard; [|done].
      destruct (open l !! s) as [[o|]|]; try done. injection E as <-. simpl.
      pose proof (inactive_insert _ i x (put c s o i x) Hx (fun H => H)). lia.
    - case_option_guard; [|done]. destruct (open l !! s) as [[o|]|]; try done. injection E as <-. simpl.
      rewrite Nat.add_0_r. apply inactive_fmap. intros x A. by apply activate_active.
    - injection E as <-. simpl. rewrite Nat.add_0_r. by apply inactive_fmap.
    - destruct (open l !! s) as [[o|]|]; try done. destruct (read c l s); simpl in E; [|done].
      injection E as <-. simpl. lia.
    - case_option_guard; [|done]. destruct (on_device l d) as [[i x]|] eqn:Od; case_option_guard; try done.
      + apply on_device_lookup in Od as (Hx & _ & _). injection E as <-. simpl.
        pose proof (sum_insert (fun x => if decide (state x = Active) then 0 else 1) _ i x (fail mode x) Hx) as Q.
        unfold inactive. simpl in *. repeat case_decide; lia.
      + injection E as <-. simpl. lia.
    - destruct (on_device l d) as [[i x]|] eqn:Od.
      + case_option_guard as Ab; [|done]. apply on_device_lookup in Od as (Hx & _ & _). injection E as <-.
        simpl.
        rewrite Nat.add_0_r. apply (inactive_insert _ i x); [done|]. congruence.
      + injection E as <-. simpl. lia.
    - destruct (on_device l d) as [[i x]|] eqn:Od.
      + case_option_guard as Ab; [|done]. apply on_device_lookup in Od as (Hx & _ & _). injection E as <-.
        simpl.
        rewrite Nat.add_0_r. apply (inactive_insert _ i x); [done|]. congruence.
      + injection E as <-. simpl. lia.
    - injection E as <-. simpl. rewrite Nat.add_0_r. by apply inactive_fmap.
    - destruct (components l !! i) as [x|] eqn:Hx; simpl in E; [|done]. case_option_guard as Gd; [|done].
      destruct (read c l s) as [v|] eqn:D; simpl in E; [|done]. injection E as <-. simpl.
      rewrite Nat.add_0_r. apply (inactive_insert _ i x); [done|]. destruct Gd as ([A|A] & _); congruence.
    - destruct (components l !! i) as [x|] eqn:Hx; simpl in E; [|done]. case_option_guard as Gd; [|done].
      injection E as <-. simpl. rewrite Nat.add_0_r. apply (inactive_insert _ i x); [done|].
      destruct Gd as ([A|[A _]] & _); congruence.
  Qed.

  Lemma inactive_run l acts l' : run acts l = Some l' ->
    inactive (components l') <= inactive (components l) + failures acts.
  Proof.
    revert l. induction acts as [|a acts IH]; simpl; intros l; [intros [= ->]; lia|].
    destruct (act a l) as [l1|] eqn:E; simpl; [|done]. intros H%IH. apply inactive_step in E.
    unfold failures in *. simpl. lia.
  Qed.

  Lemma new_leg_inactive n : inactive (components (new_leg c n)) = 0.
  Proof.
    unfold new_leg. simpl.
    assert (forall w j, inactive (new_component (V := V) <$> seq j w) = 0) as H; [|apply H].
    induction w as [|w IH]; intros j; [done|apply (IH (S j))].
  Qed.

  (** With at most m failures, at any steps, every read returns the last write. *)
  Theorem any_m_failures n acts l : run acts (new_leg c n) = Some l -> failures acts <= parity_count c ->
    exists st, store_run c (new_store c) acts st /\
      forall s, open l !! s = None -> read c l s = Some (holds st s).
  Proof.
    intros H F. destruct (leg_run_refines _ _ _ _ (new_leg_refines n) H) as (st & S & R). exists st.
    split; [done|].
    intros s E. apply (read_available c size G); [done..|]. apply inactive_run in H.
    rewrite new_leg_inactive in H.
    unfold tolerable. lia.
  Qed.

  (** With any number of failures, a read returns the last write or says that data are lost. *)
  Theorem any_failures n acts l : run acts (new_leg c n) = Some l ->
    exists st, store_run c (new_store c) acts st /\
      forall s, open l !! s = None -> read c l s = Some (holds st s) \/ read c l s = None.
  Proof.
    intros H. destruct (leg_run_refines _ _ _ _ (new_leg_refines n) H) as (st & S & R). exists st.
    split; [done|].
    intros s E. destruct (read c l s) as [v|] eqn:D; [|by right]. left. f_equal.
    by eapply (read_never_wrong c size G).
  Qed.

  (** ** The last write *)

  Lemma store_run_app st acts1 acts2 st'' : store_run c st (acts1 ++ acts2) st'' ->
    exists st', store_run c st acts1 st' /\ store_run c st' acts2 st''.
  Proof.
    revert st. induction acts1 as [|a acts1 IH]; simpl; intros st H; [exists st; by split; [constructor|]|].
    inversion H as [|? st1 ? ? S1 S2]; subst. destruct (IH _ S2) as (st' & ? & ?).
    exists st'. split; [by econstructor|done].
  Qed.

  Lemma pending_kept st acts st' s n v : store_run c st acts st' -> pending st !! s = Some (Attempt n (Some v)) ->
    Crash ∉ acts -> Acknowledge s ∉ acts -> pending st' !! s = Some (Attempt n (Some v)).
  Proof.
    induction 1 as [|st a st1 acts st2 S _ IH]; [done|]. rewrite !not_elem_of_cons. intros P [C ?] [A ?].
    apply IH; try done. destruct S as [s' v' P' L|s' P'|s' n' v' P'| |s' n' v' P' L W|]; simpl; try done.
    - rewrite lookup_insert_ne by congruence. done.
    - rewrite lookup_insert_ne by congruence. done.
    - rewrite lookup_delete_ne by congruence. done.
    - rewrite lookup_insert_ne by congruence. done.
  Qed.

  Lemma holds_kept st acts st' s : store_run c st acts st' -> Acknowledge s ∉ acts -> holds st' s = holds st s.
  Proof.
    induction 1 as [|st a st1 acts st2 S _ IH]; [done|]. rewrite not_elem_of_cons. intros [A ?].
    rewrite IH by done. destruct S; simpl; try done. rewrite fn_lookup_insert_ne by congruence. done.
  Qed.

  (** What a request is to leave in a stripe. *)
  Definition requests (a : action) s (v : list V) : Prop := a = Write s v \/ a = Unmap s /\ v = blanks c.

  (** In full: what an acknowledged write or unmap left is what reads return until the next one to that stripe is
      acknowledged, whichever m devices fail and whenever: before, in the middle of it, or after. *)
  Theorem read_last_write n before a s v during after l :
    requests a s v -> run (before ++ a :: during ++ Acknowledge s :: after) (new_leg c n) = Some l ->
    failures (before ++ a :: during ++ Acknowledge s :: after) <= parity_count c ->
    Crash ∉ during -> Acknowledge s ∉ during -> Acknowledge s ∉ after -> open l !! s = None ->
    read c l s = Some v.
  Proof.
    intros Q H F C A1 A2 E. destruct (any_m_failures n _ l H F) as (st & S & D). rewrite D by done. f_equal.
    apply store_run_app in S as (st1 & _ & S). inversion S as [|? st2 ? ? S2 S3]; subst.
    apply store_run_app in S3 as (st3 & S3 & S4). inversion S4 as [|? st4 ? ? S5 S6]; subst.
    assert (pending st2 !! s = Some (Attempt v (Some v))) as P.
    { destruct Q as [-> | [-> ->]]; inversion S2; subst; try done; simpl; by rewrite lookup_insert. }
    eapply pending_kept in S3; [|done..].
    rewrite (holds_kept _ _ _ _ S6 A2). inversion S5; subst; [|done]. simpl. rewrite fn_lookup_insert.
    congruence.
  Qed.

  (** ** What is read *)

  (** A component that is not active is never read: what it holds makes no difference. *)
  Theorem stale_never_read l l' s :
    Forall2 (fun x y => state x = state y /\ (state x = Active -> strip c x s = strip c y s))
      (components l) (components l') ->
    read c l s = read c l' s.
  Proof.
    intros H. unfold read. f_equal. unfold seen.
    induction H as [|x y xs ys [E S] _ IH]; [done|]. rewrite !fmap_cons, IH. f_equal.
    rewrite <-E. case_decide; [by rewrite S|done].
  Qed.
End history.
