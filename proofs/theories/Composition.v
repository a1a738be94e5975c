(** A disk over legs that lose devices.

    Results:
    - [legs_suffice]: whatever disk implements the contract over two reliable stores implements it over a performance
      leg and a capacity leg, however their devices fail, return, are replaced and rebuilt, at any steps.
    - [disk_over_stores]: the log-structured disk, its segments written to and read from a reliable store of stripes,
      implements the contract ([Ack] and [Prefix]).
    - [disk_over_legs]: so it does over legs; [raid6_disk] says it of three mirrors and RAID-6.

    Of the log-structured disk only the segments stand on a leg here, the capacity leg; what its log and slots need of
    the performance leg, that a write cut short leaves the old block or the new one, is [mirror_whole].

    A step that needs what cannot be read does not take place: the disk never shows wrong data, and by
    [RedundancyHistory.any_m_failures] nothing is unreadable while at most m devices have failed. *)
From stdpp Require Import prelude functions gmap vector.
From LogDisk Require Import VirtualDisk.
From LogDisk Require Redundancy RedundancyCorrect RedundancyHistory.
From LogDisk Require LogStructuredDisk LogStructuredDiskReading LogStructuredDiskInvariant LogStructuredDiskRefinement.
From LogDisk Require Parity CompositionSegments.
Import Redundancy RedundancyCorrect.

(** ** Any disk over a performance leg and a capacity leg *)

Section over_legs.
  Context {V P C : Type} `{Value V}.       (* a block of the disk, of the performance leg, of the capacity leg *)
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
    | store_does_request a st' ios st'' : request_of a -> store_step c st a st' -> store_does c st' ios st'' ->
        store_does c st (Does a :: ios) st''
    | store_reads s ios st' : pending st !! s = None -> store_does c st ios st' ->
        store_does c st (Sees s (holds st s) :: ios) st'.

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
    fresh blocks m := starts D blocks m.1.1 /\ m.1.2 = new_store cp /\ m.2 = new_store cc;
    moves m es m' := exists ps cs, does D m.1.1 es ps cs m'.1.1 /\
      store_does cp m.1.2 ps m'.1.2 /\ store_does cc m.2 cs m'.2;
  |}.

  (** Components are written, fail, come back and are repaired behind its back, at any time. *)
  Definition over_legs (spare_count : nat) (D : client) : implementation V := {|
    inside := within D * leg (V := P) * leg (V := C);
    fresh blocks m := starts D blocks m.1.1 /\ m.1.2 = new_leg cp spare_count /\ m.2 = new_leg cc spare_count;
    moves m es m' :=
      (exists ps cs, does D m.1.1 es ps cs m'.1.1 /\
         leg_does cp stripes_p m.1.2 ps m'.1.2 /\ leg_does cc stripes_c m.2 cs m'.2) \/
      es = [] /\ m'.1.1 = m.1.1 /\
        ((exists a, ~ request_of a /\ act cp stripes_p repair_delay a m.1.2 = Some m'.1.2) /\ m'.2 = m.2 \/
         (exists a, ~ request_of a /\ act cc stripes_c repair_delay a m.2 = Some m'.2) /\ m'.1.2 = m.1.2);
  |}.

  Lemma leg_does_refines {B} (c : code B) size (G : good c) l ios l' st :
    refines c size l st -> leg_does c size l ios l' -> exists st', store_does c st ios st' /\ refines c size l' st'.
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
  Proof.
    intros R Q E. destruct (leg_step_refines c size repair_delay G l st a l' R E) as (st' & S & R').
    destruct S; simpl in Q; tauto.
  Qed.

  (** A disk that implements the contract over reliable stores implements it over legs, whatever happens to their
      devices. *)
  Theorem legs_suffice spare_count D p :
    good cp -> good cc -> implements (over_stores D) p -> implements (over_legs spare_count D) p.
  Proof.
    intros Gp Gc I blocks [[c lp] lc] tr [[c' lp'] lc'] (Fc & Ep & Ec) Tr. simpl in Fc, Ep, Ec. subst lp lc.
    assert (forall (m m' : inside (over_legs spare_count D)) sp sc, shows (over_legs spare_count D) m tr m' ->
      refines cp stripes_p m.1.2 sp -> refines cc stripes_c m.2 sc ->
      exists sp' sc', shows (over_stores D) (m.1.1, sp, sc) tr (m'.1.1, sp', sc')) as Sim.
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

(** ** The log-structured disk over its legs

    Its segments are the stripes of the capacity leg.  What is being written to an open segment is still in memory;
    everything else it has to read.  Left out: how its log and slots are laid out on the performance leg; they are
    taken to be as durable as [LogStructuredDisk] has them. *)

Section log_structured_disk.
  Import LogStructuredDisk LogStructuredDiskReading LogStructuredDiskInvariant LogStructuredDiskRefinement.
  Import CompositionSegments.
  Context {V P : Type} `{Value V} (K : design) (cp : RedundancyCode.code P) (cc : RedundancyCode.code V).
  Implicit Types (c d e : state V) (st : store (V := V)) (g : nat) (data : list V) (S rd : gmap nat (list V)).

  (** A segment is written as a full stripe. *)
  Definition full_stripe data : list V := data ++ replicate (data_count cc - length data) (RedundancyCode.blank cc).

  Definition keep_open c : state V :=
    on_segments (filter (fun gd => table (mem c) !! gd.1 = Some Open) (segments (dev c))) c.

  (** What a step from c to c' asks of the capacity leg. *)
  Inductive asks c c' : list (io V) -> Prop :=
    | asks_nothing : at_phase c' <> Off -> (forall h, is_open c' h <-> is_open c h) -> asks c c' []
    | asks_write g data : at_phase c' <> Off -> ~ is_open c g -> (forall h, is_open c' h <-> h = g \/ is_open c h) ->
        segments (dev c') !! g = Some data -> asks c c' [Does (Redundancy.Write g (full_stripe data))]
    | asks_acknowledge g : at_phase c' <> Off -> is_open c g -> (forall h, is_open c' h <-> h <> g /\ is_open c h) ->
        asks c c' [Does (Redundancy.Acknowledge g)]
    | asks_crash : at_phase c' = Off -> asks c c' [Does Redundancy.Crash].

  Definition reads rd : list (io V) := (fun gd => Sees gd.1 gd.2) <$> map_to_list rd.

  Inductive disk_does c (es : list (event V)) : list (io P) -> list (io V) -> state V -> Prop :=
    | disk_step rd c' qs :      (* a step on what is in memory and what it reads *)
        (at_phase c' <> Off -> forall g, g ∈ segments_of (current (mem c)) -> is_open c g \/ is_Some (rd !! g)) ->
        step K (on_segments (segments (dev c) ∪ rd) c) es c' ->
        (at_phase c' = Off -> es = [] -> forall g, ~ is_open c g) ->    (* a clean shutdown waits for its writes *)
        asks c c' qs -> disk_does c es [] (reads rd ++ qs) (keep_open c')
    | disk_recovers g :         (* a stripe whose write was cut short is made one again, *)
        es = [] -> disk_does c es [] [Does (Redundancy.Recover g)] c
    | disk_settles g :          (* and that write ends *)
        es = [] -> ~ is_open c g -> disk_does c es [] [Does (Redundancy.Acknowledge g)] c.

  Definition log_structured_client : client :=
    {| within := state V; starts := fun blocks c => c = initial blocks; does := disk_does |}.

  (** Over a reliable store it is the log-structured disk whose segments are S. *)
  Record stands_for c st S : Prop := StandsFor {
    stands_invariant : invariant K (on_segments S c);
    stands_open g : is_open c g -> exists data, segments (dev c) !! g = Some data /\ S !! g = Some data /\
      Redundancy.pending st !! g = Some (Attempt (full_stripe data) (Some (full_stripe data)));
    stands_memory g data : segments (dev c) !! g = Some data -> is_open c g;
    stands_stored g data : S !! g = Some data -> ~ is_open c g ->
      Redundancy.pending st !! g = None /\ data `prefix_of` Redundancy.holds st g;
  }.

  Lemma reads_are_right rd qs st st' : store_does cc st (reads rd ++ qs) st' ->
    (forall g v, rd !! g = Some v -> v = Redundancy.holds st g) /\ store_does cc st qs st'.
  Proof.
    intros D. assert (Forall (fun gd => gd.2 = Redundancy.holds st gd.1) (map_to_list rd) /\ store_does cc st qs st') as [F ?].
    { unfold reads in D. induction (map_to_list rd) as [|gd l IH]; simpl in D; [done|].
      inversion D; subst. destruct IH; [done|]. split; [by constructor|done]. }
    split; [|done]. intros g v E%elem_of_map_to_list. rewrite Forall_forall in F. by apply (F _ E).
  Qed.

  Lemma read_chunks c st S rd : stands_for c st S ->
    (forall g v, rd !! g = Some v -> v = Redundancy.holds st g) ->
    (forall g, g ∈ segments_of (current (mem c)) -> is_open c g \/ is_Some (rd !! g)) ->
    same_chunks (segments (dev c) ∪ rd) S c.
  Proof.
    intros [I So Sm Ss] Hrd Hall x. unfold chunk_of, chunk. simpl.
    destruct (bank (mem c) !! x); [done|].
    destruct (middle (current (mem c)) !! x) as [[g i]|] eqn:E; simpl; [|done].
    destruct (decide (at_phase c = Off)) as [Off|On].
    { pose proof (memory_lost _ _ I Off) as M. simpl in M. rewrite M in E. done. }
    destruct (current_holds _ _ I On) as (_ & [W _] & _). destruct (whole_stored _ _ _ W x (g, i) E) as [v Hv].
    simpl in Hv. unfold stored in *. simpl in *. rewrite Hv.
    destruct (S !! g) as [data|] eqn:Sg; simpl in Hv; [|done].
    destruct (decide (is_open c g)) as [O|O].
    - destruct (So g O) as (data' & F & S' & _). rewrite (lookup_union_Some_l _ _ _ _ F). simpl. congruence.
    - destruct (Ss g data Sg O) as [_ [rest Pre]].
      destruct (Hall g) as [?|[w Hw]]; [apply elem_of_segments_of; eauto|done|].
      rewrite lookup_union_r; [|destruct (segments (dev c) !! g) eqn:F; [by apply Sm in F|done]].
      rewrite Hw. simpl. rewrite (Hrd g w Hw), Pre. by apply lookup_app_l_Some.
  Qed.

  Lemma kept_open c g data : segments (dev (keep_open c)) !! g = Some data <->
    segments (dev c) !! g = Some data /\ is_open c g.
  Proof. simpl. by rewrite map_filter_lookup_Some. Qed.

  Lemma full_stripe_prefix data : data `prefix_of` full_stripe data.
  Proof. by eexists. Qed.

  Lemma client_step c st S es ps cs c' st' : sound K -> stands_for c st S -> disk_does c es ps cs c' ->
    store_does cc st cs st' -> exists S', (step K (on_segments S c) es (on_segments S' c') \/
      es = [] /\ on_segments S' c' = on_segments S c) /\ stands_for c' st' S'.
  Proof.
    intros HK Hst D. pose proof Hst as [I So Sm Ss].
    destruct D as [rd c1 qs Hall Hstep Hclean A|g ->|g -> O]; intros Sd.
    - apply reads_are_right in Sd as [Hrd Sd]. destruct (decide (at_phase c1 = Off)) as [Off|On].
      + destruct (off_on_segments K _ S c es c1 Hstep Off (Hclean Off)) as (e & A' & B' & -> & Hd & T & HB).
        exists B'. split; [by left|].
        assert (forall h, ~ is_open (keep_open (on_segments A' e)) h) as None.
        { intros h. unfold is_open. simpl. by rewrite T, lookup_empty. }
        inversion A; subst; try done. inversion Sd as [|? ? ? ? _ Sc Rest|]; subst. inversion Rest; subst.
        inversion Sc; subst; [|done]. split.
        * by apply (step_invariant K _ _ _ HK I Hd).
        * by intros h ?%None.
        * intros h data [_ Ho]%kept_open. done.
        * intros h data HS _. apply HB in HS as [HS Ho]. destruct (Ss h data HS Ho) as [Pn ?]. simpl.
          by rewrite lookup_fmap, Pn.
      + specialize (Hall On). pose proof (read_chunks c st S rd Hst Hrd Hall) as Same.
        assert (forall h data, segments (dev c) !! h = Some data -> (segments (dev c) ∪ rd) !! h = Some data) as Mem.
        { intros h data. apply lookup_union_Some_l. }
        destruct (step_on_segments K _ S c es c1 Same Hstep On) as
          [(e & -> & Hd & Op)|(e & g & data & -> & Hd & L & Tn & Op)].
        * exists S. split; [by left|]. pose proof (step_invariant K _ _ _ HK I Hd) as I'.
          inversion A as [_ Eq|g data _ No Eq|g _ O Eq|]; subst; try done.
          -- inversion Sd; subst. split; [done| | |].
             ++ intros h Ho. destruct (So h) as (data & F & ? & ?); [by apply Eq|].
                exists data. split_and!; [|done..]. apply kept_open. split; [by apply Mem|done].
             ++ intros h data [_ Ho]%kept_open. done.
             ++ intros h data HS Ho. apply Ss; [done|]. intros Hc. by apply Ho, Eq.
          -- exfalso. apply No, Op. apply (Eq g). by left.
          -- inversion Sd as [|? ? ? ? _ Sc Rest|]; subst. inversion Rest; subst.
             destruct (So g O) as (data & F & SF & Pg). inversion Sc as [| |? n v P'| | |]; subst; [|done].
             rewrite Pg in P'. injection P' as <- <-. split; [done| | |].
             ++ intros h Ho. pose proof (proj1 (Eq h) Ho) as [N Hc]. destruct (So h Hc) as (data' & F' & ? & ?).
                exists data'. split_and!; [|done|simpl; by rewrite lookup_delete_ne].
                apply kept_open. split; [by apply Mem|done].
             ++ intros h data' [_ Ho]%kept_open. done.
             ++ intros h data' HS Ho. simpl. destruct (decide (h = g)) as [->|N].
                ** rewrite lookup_delete, fn_lookup_insert. split; [done|].
                   assert (data' = data) as -> by congruence. apply full_stripe_prefix.
                ** rewrite lookup_delete_ne, fn_lookup_insert_ne by done. apply Ss; [done|].
                   intros Hc. by apply Ho, Eq.
        * exists (<[g := data]> S). split; [by left|]. pose proof (step_invariant K _ _ _ HK I Hd) as I'.
          assert (~ is_open c g) as Ng by (unfold is_open; congruence).
          inversion A as [_ Eq|g' data' _ No Eq F|g' _ O Eq|]; subst; try done.
          -- exfalso. apply Ng, Eq, Op. by left.
          -- assert (g' = g) as ->.
             { destruct (proj1 (Op g')) as [?|?]; [apply (Eq g'); by left|done|done]. }
             simpl in F. rewrite lookup_insert in F. injection F as <-.
             inversion Sd as [|? ? ? ? _ Sc Rest|]; subst. inversion Rest; subst.
             inversion Sc as [? ? P' L'| | | | |]; subst; [|done]. split; [done| | |].
             ++ intros h Ho. destruct (decide (h = g)) as [->|N].
                ** exists data. split_and!; [|by rewrite lookup_insert|simpl; by rewrite lookup_insert].
                   apply kept_open. split; [simpl; by rewrite lookup_insert|done].
                ** destruct (proj1 (Op h) Ho) as [?|Hc]; [done|]. destruct (So h Hc) as (data' & F' & ? & ?).
                   exists data'. split_and!; [|by rewrite lookup_insert_ne|simpl; by rewrite lookup_insert_ne].
                   apply kept_open. split; [simpl; rewrite lookup_insert_ne by done; by apply Mem|done].
             ++ intros h data' [_ Ho]%kept_open. done.
             ++ intros h data' HS Ho. assert (h <> g) as N by (intros ->; apply Ho, Op; by left).
                rewrite lookup_insert_ne in HS by done. simpl. rewrite lookup_insert_ne by done.
                apply Ss; [done|]. intros Hc. apply Ho, Op. by right.
          -- exfalso. apply Ng. apply (Eq g), Op. by left.
    - exists S. split; [by right|]. inversion Sd as [|? ? ? ? _ Sc Rest|]; subst. inversion Rest; subst.
      inversion Sc as [| | | |? n v P' Lv Wv|]; subst; [|done]. split; [done| |done|].
      + intros h O. destruct (So h O) as (data & ? & ? & Ph). exists data. split_and!; [done..|].
        simpl. rewrite lookup_insert_ne by congruence. done.
      + intros h data HS Ho. destruct (Ss h data HS Ho) as [Ph ?]. simpl.
        rewrite lookup_insert_ne by congruence. done.
    - exists S. split; [by right|]. inversion Sd as [|? ? ? ? _ Sc Rest|]; subst. inversion Rest; subst.
      inversion Sc as [| |? n v P'| | |]; subst; [|done]. split; [done| |done|].
      + intros h Oh. destruct (So h Oh) as (data & ? & ? & Ph). exists data. split_and!; [done..|].
        simpl. rewrite lookup_delete_ne by congruence. done.
      + intros h data HS Ho. destruct (Ss h data HS Ho) as [Ph ?]. simpl.
        rewrite lookup_delete_ne, fn_lookup_insert_ne by congruence. done.
  Qed.

  Theorem disk_over_stores : sound K -> implements (over_stores cp cc log_structured_client) (promises K).
  Proof.
    intros HK blocks [[c sp] st] tr [[c' sp'] st'] (Fc & _ & Es) T. simpl in Fc, Es. subst c st.
    assert (forall (m m' : inside (over_stores cp cc log_structured_client)) S,
      shows (over_stores cp cc log_structured_client) m tr m' -> stands_for m.1.1 m.2 S ->
      exists S', shows (log_structured_disk K) (on_segments S m.1.1) tr (on_segments S' m'.1.1)) as Sim.
    { clear -HK. intros m m' S T. revert S. induction T as [m|m es m1 tr m2 M _ IH]; intros S R.
      - exists S. constructor.
      - destruct M as (ps & cs & Dm & _ & Sd).
        destruct (client_step _ _ S es ps cs _ _ HK R Dm Sd) as (S1 & [St|[-> Eq]] & R1);
          destruct (IH S1 R1) as (S2 & T2); exists S2; [by econstructor|]. by rewrite <-Eq. }
    destruct (Sim _ _ ∅ T) as (S' & T').
    - split; simpl; [apply initial_invariant|intros g O..|]; unfold is_open in *; simpl in *.
      + by rewrite lookup_empty in O.
      + by intros ?; rewrite lookup_empty.
      + by intros ??; rewrite lookup_empty.
    - by eapply (refines_contract K HK).
  Qed.

  Theorem disk_over_legs stripes_p stripes_c repair_delay spare_count : sound K -> good cp -> good cc ->
    implements (over_legs cp cc stripes_p stripes_c repair_delay spare_count log_structured_client) (promises K).
  Proof. intros HK Gp Gc. by apply legs_suffice, disk_over_stores. Qed.
End log_structured_disk.

(** On three mirrors and RAID-6 of k + 2, with whatever number of devices, failures and repairs. *)
Corollary raid6_disk {n} (w k stripes_p stripes_c repair_delay spare_count : nat) (p : profile) :
  p = Ack \/ p = Prefix -> k <= 255 ->
  let zeroes := Parity.zeroes : vec Parity.byte n in
  implements (H := zeroes) (over_legs (mirror zeroes 2) (Parity.raid6 k) stripes_p stripes_c repair_delay spare_count
    (log_structured_client (H := zeroes) (P := vec Parity.byte n) (LogStructuredDisk.by_the_rules p w) (Parity.raid6 k))) p.
Proof.
  intros Hp B zeroes. apply disk_over_legs; [by split|apply mirror_good|by apply Parity.raid6_good].
Qed.
