(** Repair of a leg: when it may begin, that it ends, and what it restores.

    Results:
    - [repair_stops_restored]: from any state of a leg, with at most m components not active, nothing being
      written, and a spare for each component that is down and due, any steps of repair that can go no
      further, in whatever order, have made every component active, in at most [work_left] steps, and no
      stripe changes.
    - [redundancy_restored]: after that, any m more failures are tolerated.
    - [rebuild_waits]: whenever a rebuild begins, the component is degraded, or its device went absent and the
      repair timer has run out since.
    - [degraded_at_once]: a component whose device dies can be rebuilt in the next step. *)
From LogDisk Require Export RedundancyHistory.

Section repair.
  Context {V : Type} (c : code V) (size repair_delay : nat) (G : good c).
  Implicit Types (i d s : nat) (x : component (V := V)) (l : leg (V := V)) (st : store (V := V)).

  Notation act := (act c size repair_delay). Notation run := (run c size repair_delay).
  Notation refines := (refines c size). Notation due := (due repair_delay).

  Definition repairs (a : action (V := V)) : Prop :=
    match a with Resync _ _ | Rebuild _ _ => True | _ => False end.

  (** How many steps of repair are left, at most. *)
  Definition work x : nat := if decide (working x) then base.size (missed x) else S size.
  Definition work_left l : nat := sum_list_with work (components l).

  Definition down l : nat := sum_list_with (fun x => if decide (working x) then 0 else 1) (components l).

  (** Nothing is being written, and what is down may be rebuilt, each on a spare of its own. *)
  Record repairable l : Prop := Repairable {
    quiet : open l = ∅;
    within : tolerable c l;
    all_due : Forall (fun x => working x \/ due x) (components l);
    enough : down l <= base.size (spares l);
  }.

  Lemma activate_working x : working x -> working (activate x).
  Proof. unfold activate. case_decide; [by left|done]. Qed.

  Lemma work_activate x : work (activate x) = work x.
  Proof. unfold activate. case_decide as D; [|done]. unfold work. destruct D as [W _].
    rewrite (decide_True (P := working x)) by done. by rewrite decide_True by by left. Qed.

  (** Each step of repair leaves less to do. *)
  Theorem repair_works l a l' : repairs a -> act a l = Some l' -> work_left l' < work_left l.
  Proof.
    unfold work_left. destruct a as [s v|s|i s|s| |s|d mode|d|d| |i s|i d]; try done; intros _; simpl;
      destruct (components l !! i) as [x|] eqn:Hx; simpl; try done; case_option_guard as Gd; try done.
    - destruct Gd as (St & Hm & _). destruct (read c l s) as [v|]; simpl; [|done]. intros [= <-]. simpl.
      pose proof (sum_insert work _ i x (resync s (stripe c v !! i) x) Hx) as Q.
      assert (work (resync s (stripe c v !! i) x) < work x); [|lia].
      unfold resync. rewrite work_activate. unfold work at 1. rewrite decide_True by (by right; right). simpl.
      unfold work. rewrite decide_True by (unfold working; tauto). apply subset_size. set_solver.
    - destruct Gd as (Du & Hd). intros [= <-]. simpl.
      pose proof (sum_insert work _ i x (built_on size d) Hx) as Q.
      assert (work (built_on (V := V) size d) < work x); [|lia]. unfold built_on. rewrite work_activate.
      unfold work at 1. rewrite decide_True by (by right; right). simpl. rewrite size_set_seq. unfold work.
      rewrite decide_False; [lia|]. unfold working. destruct Du as [E|[E _]]; rewrite E; naive_solver.
  Qed.

  (** No step of repair is lost or harmful: what it finds repairable it leaves so, and no contents change. *)
  Lemma repair_keeps l st a l' : repairs a -> refines l st -> repairable l -> act a l = Some l' ->
    refines l' st /\ repairable l'.
  Proof.
    intros Ra R Rp E. split.
    { destruct (leg_step_refines c size repair_delay G l st a l' R E) as (st' & S & R').
      by destruct S. }
    pose proof (inactive_step c size repair_delay l a l' E) as I. destruct Rp as [Q W D N].
    assert (∀ i x y ds, components l !! i = Some x -> working y ->
      inactive (<[i := y]> (components l)) <= inactive (components l) + 0 ->
      (if decide (working x) then 0 else 1) + base.size ds >= base.size (spares l) ->
      repairable (Leg (<[i := y]> (components l)) ds (open l))) as Keep.
    { intros i x y ds Hx Wy I' Sz. split; simpl; [done|unfold tolerable in *; simpl; lia| |].
      - apply Forall_insert; [done|by left].
      - unfold down in *. simpl.
        pose proof (sum_insert (fun x => if decide (working x) then 0 else 1) _ i x y Hx) as Sm. simpl in Sm.
        rewrite (decide_True (P := working y)) in Sm by done. lia. }
    destruct a as [s v|s|i s|s| |s|d mode|d|d| |i s|i d]; try done; simpl in E, I; invert_act;
      (eapply Keep; [done|apply activate_working; by right; right|done|]).
    - case_decide; simpl; lia.
    - rewrite decide_False by (unfold working, due, Redundancy.due in *; intuition congruence).
      rewrite size_difference, size_singleton by set_solver. simpl. lia.
  Qed.

  (** While redundancy is not full there is a step of repair to do. *)
  Lemma repair_goes_on l st : refines l st -> repairable l -> inactive (components l) <> 0 ->
    ∃ a l', repairs a /\ act a l = Some l'.
  Proof.
    intros R [Q W D N] I.
    assert (∃ i x, components l !! i = Some x /\ state x <> Active) as (i & x & Hx & A).
    { clear -I. unfold inactive in I. induction (components l) as [|x xs IH]; [done|]. simpl in I.
      case_decide as E.
      - destruct (IH I) as (i & y & ? & ?). by exists (S i), y.
      - by exists 0, x. }
    pose proof (r_component _ _ _ _ R i x Hx) as F. destruct (decide (working x)) as [Wx|Wx].
    - destruct (decide (missed x = ∅)) as [M|M]; [by destruct A; apply (activated _ _ _ _ _ F)|].
      apply set_choose_L in M as [s Hs]. eexists (Resync i s), _. split; [done|]. simpl. rewrite Hx. simpl.
      rewrite option_guard_True by (split_and!; [destruct Wx as [?|?]; done|done|by rewrite Q]).
      rewrite (read_available c size G l st s R); [done|by rewrite Q|done].
    - assert (due x) as Du by (rewrite Forall_lookup in D; by destruct (D i x Hx)). assert (0 < down l) as Dp.
      { unfold down. clear -Hx Wx. revert i Hx.
        induction (components l) as [|y ys IH]; intros [|i] E; try done; simpl in *.
        - injection E as ->. rewrite decide_False by done. lia.
        - specialize (IH i E). lia. }
      destruct (set_choose_or_empty (spares l)) as [[d Hd]|E].
      + eexists (Rebuild i d), _. split; [done|]. simpl. rewrite Hx. simpl. by rewrite option_guard_True.
      + apply size_empty_iff in E. lia.
  Qed.

  (** Any run of repair that can go no further has restored everything. *)
  Theorem repair_stops_restored l st acts l' : refines l st -> repairable l -> Forall repairs acts ->
    run acts l = Some l' -> (∀ a, repairs a -> act a l' = None) ->
    inactive (components l') = 0 /\ refines l' st /\ length acts <= work_left l.
  Proof.
    revert l. induction acts as [|a acts IH]; simpl; intros l R Rp Fa E Stop.
    - injection E as <-. split_and!; [|done|lia].
      destruct (decide (inactive (components l) = 0)) as [I|I]; [done|].
      destruct (repair_goes_on l st R Rp I) as (a & l1 & Ra & Ea). by rewrite Stop in Ea.
    - apply Forall_cons in Fa as [Ra Fa]. destruct (act a l) as [l1|] eqn:Ea; simpl in E; [|done].
      destruct (repair_keeps l st a l1 Ra R Rp Ea) as [R1 Rp1].
      destruct (IH l1 R1 Rp1 Fa E Stop) as (I & R' & L). split_and!; [done..|].
      pose proof (repair_works l a l1 Ra Ea). lia.
  Qed.

  (** With redundancy full again, any m more failures are tolerated, with whatever else happens. *)
  Theorem redundancy_restored l st acts l' : refines l st -> inactive (components l) = 0 ->
    run acts l = Some l' -> failures acts <= parity_count c ->
    ∃ st', store_run c st acts st' /\ ∀ s, open l' !! s = None -> read c l' s = Some (stripe_of st' s).
  Proof. intros R I H F. destruct (leg_run_refines c size repair_delay G l st acts l' R H) as (st' & S & R').
    exists st'. split; [done|]. intros s E. apply (read_available c size G); [done..|].
    apply (inactive_run c size repair_delay) in H. unfold tolerable. lia. Qed.

  (** ** When a rebuild begins *)

  Definition ticks (acts : list (action (V := V))) : nat :=
    sum_list_with (fun a => match a with Tick => 1 | _ => 0 end) acts.

  (** A component that is absent has been so since a failure of its device, for as many ticks as its clock
  says. *)
  Lemma absent_step l a l' i y : act a l = Some l' -> components l' !! i = Some y -> state y = Absent ->
    a = Fail (home y) Absent /\ clock y = 0 \/
    ∃ x, components l !! i = Some x /\ state x = Absent /\ home x = home y /\
      clock y = clock x + match a with Tick => 1 | _ => 0 end.
  Proof.
    intros E Hy A. assert (a = Tick \/ match a with Tick => 1 | _ => 0 end = 0) as [->|T] by (destruct a;
      auto).
    { injection E as <-. right. simpl in Hy. rewrite list_lookup_fmap in Hy.
      apply fmap_Some in Hy as (x & Hx & ->).
      simpl in A. exists x. split_and!; [done..|]. simpl. rewrite decide_True by done. lia. }
    assert (∀ j z, <[j := z]> (components l) !! i = Some y ->
      y = z /\ i = j \/ ∃ x, components l !! i = Some x /\ state x = Absent /\ home x = home y /\
        clock y = clock x + 0) as Ins.
    { intros j z [(-> & <- & _)|[_ Hx]]%list_lookup_insert_Some; [by left|right].
      exists y. split_and!; [done..|lia]. }
    assert (∀ x, state (activate x) = Absent -> state x = Absent) as Act by (intros x; unfold activate;
      by case_decide).
    rewrite T. revert Hy. apply act_changes in E as [rs|f rs F|j x z Hx (Hh & _ & _ & F)|j x mode Hx D ->|j x
      Hx Ab|j x d Hx _ _|ds _];
      simpl; intros Hy; try (apply Ins in Hy as [[-> ->]|?]; [|by right]).
    - right. exists y. split_and!; [done..|lia].
    - rewrite list_lookup_fmap in Hy. apply fmap_Some in Hy as (x & Hx & ->). right. exists x.
      destruct (F x) as (Hh & _ & _ & C). rewrite T in C. by destruct (C A).
    - right. exists x. rewrite T in F. by destruct (F A).
    - left. simpl in *. by rewrite A.
    - done.
    - by apply Act in A.
    - right. exists y. split_and!; [done..|lia].
  Qed.

  Lemma run_app acts1 acts2 l : run (acts1 ++ acts2) l = run acts1 l ≫= run acts2.
  Proof. revert l. induction acts1 as [|a acts1 IH]; intros l; simpl; [done|].
    destruct (act a l); simpl; [apply IH|done]. Qed.

  (** What is absent waits for the repair timer; what is degraded does not wait. *)
  Theorem rebuild_waits n acts l i d l' : run acts (new_leg c n) = Some l -> act (Rebuild i d) l = Some l' ->
    ∃ x, components l !! i = Some x /\
      (state x = Degraded \/
       state x = Absent /\ ∃ before after, acts = before ++ Fail (home x) Absent :: after /\
         repair_delay <= ticks after).
  Proof.
    intros H E. simpl in E. destruct (components l !! i) as [x|] eqn:Hx; simpl in E; [|done].
    case_option_guard as Gd; [|done].
    destruct Gd as [[Dg|[A T]] _]; exists x; (split; [done|]); [by left|right]. split; [done|]. clear E l'.
    assert (∃ before after, acts = before ++ Fail (home x) Absent :: after /\ clock x = ticks after) as
      (before & after & ? & ?); [|exists before, after; split; [done|lia]]. clear T d. revert l x H Hx A.
    induction acts as [|a acts IH] using rev_ind; intros l x H Hx A.
    - injection H as <-. simpl in Hx. rewrite list_lookup_fmap in Hx.
      by apply fmap_Some in Hx as (j & _ & ->).
    - rewrite run_app in H. destruct (run acts (new_leg c n)) as [l1|] eqn:H1; simpl in H; [|done].
      destruct (act a l1) as [l2|] eqn:E; simpl in H; [|done]. injection H as ->.
      destruct (absent_step l1 a l i x E Hx A) as [[-> C]|(y & Hy & Ay & Hh & C)].
      + exists acts, []. split; [done|]. by rewrite C.
      + destruct (IH l1 y eq_refl Hy Ay) as (before & after & -> & Cy). exists before, (after ++ [a]).
        rewrite <-app_assoc, <-Hh. split; [done|]. unfold ticks in *. rewrite sum_list_with_app. simpl. lia.
  Qed.

  Theorem degraded_at_once l i x d e l1 : components l !! i = Some x -> on_device l d = Some (i, x) ->
    e ∈ spares l ->
    act (Fail d Degraded) l = Some l1 -> is_Some (act (Rebuild i e) l1).
  Proof. intros Hx Od He E. simpl in E. rewrite Od in E. repeat (case_option_guard; [|done]).
    injection E as <-. simpl. rewrite list_lookup_insert by (by eapply lookup_lt_Some). simpl.
    rewrite option_guard_True by (split; [by left|done]). eauto. Qed.
End repair.
