(** Whatever disk implements the contract over two reliable stores implements it over a performance leg and a
capacity leg, however their devices fail, return, are replaced and rebuilt, at any steps ([legs_suffice]).

    A step that needs what cannot be read does not take place: the disk never shows wrong data, and by
    [RedundancyHistory.any_m_failures] nothing is unreadable while at most m devices have failed. *)
From stdpp Require Export functions.
From LogDisk Require Export VirtualDisk.
From LogDisk Require Redundancy RedundancyCorrect RedundancyHistory.
Import Redundancy RedundancyCorrect.

Section over_legs.
  Context {V P C : Type} `{Value V}.       (* a block of the disk, of the performance leg,
    of the capacity leg *)
  Context (cp : code P) (cc : code C) (stripes_p stripes_c repair_delay : nat).

  (** What a disk does with a leg: it sends a request, or has a stripe read and gets an answer. *)
  Inductive io (B : Type) :=
    | Does (a : action (V := B))
    | Sees (s : nat) (v : list B).
  Global Arguments Does {B}. Global Arguments Sees {B}.

  Definition request_of {B} (a : action (V := B)) : Prop :=
    match a with
    | Redundancy.Write _ _ | Redundancy.Unmap _ | Acknowledge _ | Redundancy.Crash | Recover _ => True
    | _ => False
    end.

  Inductive store_does {B} (c : code B) (st : store (V := B)) : list (io B) -> store (V := B) -> Prop :=
    | store_idle : store_does c st [] st
    | store_does_request a st' ios st'' : request_of a -> store_step c st a st' ->
        store_does c st' ios st'' ->
        store_does c st (Does a :: ios) st''
    | store_reads s ios st' : pending st !! s = None -> store_does c st ios st' ->
        store_does c st (Sees s (stripe_of st s) :: ios) st'.

  Inductive leg_does {B} (c : code B) size (l : leg (V := B)) : list (io B) -> leg (V := B) -> Prop :=
    | leg_idle : leg_does c size l [] l
    | leg_does_request a l' ios l'' : request_of a -> act c size repair_delay a l = Some l' ->
        leg_does c size l' ios l'' -> leg_does c size l (Does a :: ios) l''
    | leg_reads s v ios l' : open l !! s = None -> read c l s = Some v -> leg_does c size l ios l' ->
        leg_does c size l (Sees s v :: ios) l'.

  (** A disk that knows its legs only by what they answer. *)
  Record client := Client {
    within : Type;
    starts : nat -> within -> Prop;
    does : within -> list (event V) -> list (io P) -> list (io C) -> within -> Prop;
  }.

  Definition over_stores (D : client) : implementation V := {|
    inside := within D * store (V := P) * store (V := C);
    VirtualDisk.fresh blocks m := starts D blocks m.1.1 /\ m.1.2 = new_store cp /\ m.2 = new_store cc;
    moves m es m' := ∃ ps cs, does D m.1.1 es ps cs m'.1.1 /\
      store_does cp m.1.2 ps m'.1.2 /\ store_does cc m.2 cs m'.2;
  |}.

  (** Components are written, fail, come back and are repaired behind its back, at any time. *)
  Definition over_legs (spare_count : nat) (D : client) : implementation V := {|
    inside := within D * leg (V := P) * leg (V := C);
    VirtualDisk.fresh blocks m :=
      starts D blocks m.1.1 /\ m.1.2 = new_leg cp spare_count /\ m.2 = new_leg cc spare_count;
    moves m es m' :=
      (∃ ps cs, does D m.1.1 es ps cs m'.1.1 /\
         leg_does cp stripes_p m.1.2 ps m'.1.2 /\ leg_does cc stripes_c m.2 cs m'.2) \/
      es = [] /\ m'.1.1 = m.1.1 /\
        ((∃ a, ~ request_of a /\ act cp stripes_p repair_delay a m.1.2 = Some m'.1.2) /\ m'.2 = m.2 \/
         (∃ a, ~ request_of a /\ act cc stripes_c repair_delay a m.2 = Some m'.2) /\ m'.1.2 = m.1.2);
  |}.

  Lemma leg_does_refines {B} (c : code B) size (G : good c) l ios l' st :
    refines c size l st -> leg_does c size l ios l' -> ∃ st', store_does c st ios st' /\
      refines c size l' st'.
  Proof.
    intros R D. revert st R. induction D as [l|l a l1 ios l2 Q E _ IH|l s v ios l1 E Rd _ IH]; intros st R.
    - exists st. split; [constructor|done].
    - destruct (leg_step_refines c size repair_delay G l st a l1 R E) as (st1 & S & R1).
      destruct (IH st1 R1) as (st2 & D2 & R2). exists st2. split; [by econstructor|done].
    - destruct (IH st R) as (st1 & D1 & R1). exists st1. split; [|done].
      rewrite (read_never_wrong c size G l st s v R E Rd). constructor; [by eapply open_none|done].
  Qed.

  Lemma own_step_refines {B} (c : code B) size (G : good c) l a l' st :
    refines c size l st -> ~ request_of a -> act c size repair_delay a l = Some l' -> refines c size l' st.
  Proof. intros R Q E. destruct (leg_step_refines c size repair_delay G l st a l' R E) as (st' & S & R').
    destruct S; simpl in Q; tauto. Qed.

  (** A disk that implements the contract over reliable stores implements it over legs, whatever happens to
  their devices. *)
  Theorem legs_suffice spare_count D p :
    good cp -> good cc -> implements (over_stores D) p -> implements (over_legs spare_count D) p.
  Proof.
    intros Gp Gc I blocks [[c lp] lc] tr [[c' lp'] lc'] (Fc & Ep & Ec) Tr. simpl in Fc, Ep, Ec. subst lp lc.
    assert (∀ (m m' : inside (over_legs spare_count D)) sp sc, shows (over_legs spare_count D) m tr m' ->
      refines cp stripes_p m.1.2 sp -> refines cc stripes_c m.2 sc ->
      ∃ sp' sc', shows (over_stores D) (m.1.1, sp, sc) tr (m'.1.1, sp', sc')) as Sim.
    { clear -Gp Gc. intros m m' sp sc T. revert sp sc.
      induction T as [m|m es m1 tr m2 M _ IH]; intros sp sc Rp Rc.
      - exists sp, sc. constructor.
      - destruct M as [(ps & cs & Dm & Lp & Lc)|(-> & E & [((a & Q & A) & F)|((a & Q & A) & F)])].
        + destruct (leg_does_refines cp stripes_p Gp _ _ _ sp Rp Lp) as (sp1 & Sp & Rp1).
          destruct (leg_does_refines cc stripes_c Gc _ _ _ sc Rc Lc) as (sc1 & Sc & Rc1).
          destruct (IH sp1 sc1 Rp1 Rc1) as (sp2 & sc2 & T2). exists sp2, sc2.
          econstructor; [|exact T2]. by exists ps, cs.
        + rewrite <-E. apply IH; [by eapply own_step_refines|by rewrite F].
        + rewrite <-E. apply IH; [by rewrite F|by eapply own_step_refines]. }
    destruct (Sim _ _ (new_store cp) (new_store cc) Tr) as (sp' & sc' & T).
    - by apply RedundancyHistory.new_leg_refines.
    - by apply RedundancyHistory.new_leg_refines.
    - eapply I; [|exact T]. by split_and!.
  Qed.
End over_legs.
