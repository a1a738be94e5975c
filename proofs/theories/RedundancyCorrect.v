(** A leg is a reliable store. *)
From LogDisk Require Export Redundancy.

Lemma left_of_intro {V} (s : list (option V)) t :
  length s = length t -> (∀ i x, s !! i = Some (Some x) -> t !! i = Some x) -> left_of s t.
Proof.
  revert t. induction s as [|o s IH]; intros [|y t] E H; try done; constructor.
  - destruct o as [x|]; [|by left]. right. specialize (H 0 x eq_refl). simpl in H. congruence.
  - apply IH; [by injection E|]. intros i x. apply (H (S i)).
Qed.

Lemma mixture_intro {V} (s : list (option V)) t u :
  length s = length t -> length t = length u ->
  (∀ i x, s !! i = Some (Some x) -> t !! i = Some x \/ u !! i = Some x) -> mixture s t u.
Proof.
  revert t u. induction s as [|o s IH]; intros [|y t] [|z u] E F H; try done; constructor.
  - destruct o as [x|]; [|by left]. right.
    destruct (H 0 x eq_refl) as [G|G]; simpl in G; [left|right]; congruence.
  - apply IH; [by injection E|by injection F|]. intros i x. apply (H (S i)).
Qed.

(** Takes apart why a step could be taken. *)
Ltac invert_act := repeat match goal with
  | E : (_ ← ?o; _) = Some _ |- _ => destruct o eqn:?; simpl in E; [|done]
  | E : mguard _ _ = Some _ |- _ => case_option_guard; [|done]
  | E : match ?o with _ => _ end = Some _ |- _ => destruct o eqn:?; try done
  | E : Some _ = Some _ |- _ => injection E as <-
  end.

Section correct.
  Context {V : Type} (c : code V) (size repair_delay : nat) (G : good c).
  Implicit Types (i d s : nat) (x : component (V := V)) (l : leg (V := V)) (st : store (V := V)).

  Notation act := (act c size repair_delay). Notation run := (run c size repair_delay).
  Notation strip := (strip c).

  (** What component i holds is what the store holds, but for what it is known to have missed. *)
  Record faithful st i x : Prop := Faithful {
    same s : pending st !! s = None -> s ∉ missed x -> stripe c (stripe_of st s) !! i = Some (strip x s);
    same_written s n v : pending st !! s = Some (Attempt n (Some v)) -> s ∈ written x ->
      stripe c v !! i = Some (strip x s);
    same_torn s n w : whole c -> pending st !! s = Some (Attempt n w) -> s ∉ missed x ->
      stripe c (stripe_of st s) !! i = Some (strip x s) \/ stripe c n !! i = Some (strip x s);
    active_missed : state x = Active -> missed x = ∅;
    activated : working x -> missed x = ∅ -> state x = Active;
    missed_below s : s ∈ missed x -> s < size;
    written_open s : s ∈ written x -> ∃ n v, pending st !! s = Some (Attempt n (Some v));
  }.

  Definition same_request (r : option (request (V := V))) (t : option (attempt (V := V))) : Prop :=
    match r, t with
    | None, None => True
    | Some (Writing o), Some (Attempt n (Some v)) =>
        v = value c o /\ length v = data_count c /\ length n = data_count c
    | Some Torn, Some (Attempt n None) => length n = data_count c
    | _, _ => False
    end.

  Record refines l st : Prop := Refines {
    r_length : length (components l) = width c;
    r_component i x : components l !! i = Some x -> faithful st i x;
    r_request s : same_request (open l !! s) (pending st !! s);
    r_below s : is_Some (open l !! s) -> s < size;
    r_stripe_of s : length (stripe_of st s) = data_count c;
    r_blank s : size <= s -> stripe_of st s = blanks c;
    r_whole s n v : whole c -> pending st !! s = Some (Attempt n (Some v)) -> v = stripe_of st s \/ v = n;
  }.

  (** ** Reads *)

  Lemma seen_lookup l s i v : seen c l s !! i = Some (Some v) ->
    ∃ x, components l !! i = Some x /\ state x = Active /\ v = strip x s.
  Proof. unfold seen. rewrite list_lookup_fmap. destruct (components l !! i) as [x|]; simpl; [|done].
    case_decide; [|done]. intros [= <-]. eauto. Qed.

  Lemma seen_length l st s : refines l st -> length (seen c l s) = width c.
  Proof. intros R. unfold seen. by rewrite fmap_length, (r_length _ _ R). Qed.

  Lemma open_none l st s : refines l st -> open l !! s = None -> pending st !! s = None.
  Proof. intros R E. pose proof (r_request _ _ R s) as H. rewrite E in H. by destruct (pending st !! s). Qed.

  Lemma seen_left l st s : refines l st -> open l !! s = None ->
    left_of (seen c l s) (stripe c (stripe_of st s)).
  Proof.
    intros R E. apply left_of_intro.
    - by rewrite (seen_length l st s R), stripe_length by (done || apply (r_stripe_of _ _ R)).
    - intros i v (x & Hx & Ha & ->)%seen_lookup. pose proof (r_component _ _ R i x Hx) as F.
      apply (same _ _ _ F); [by apply (open_none l)|]. rewrite (active_missed _ _ _ F Ha). set_solver.
  Qed.

  Lemma seen_mixture l st s n w : refines l st -> whole c -> pending st !! s = Some (Attempt n w) ->
    length n = data_count c -> mixture (seen c l s) (stripe c (stripe_of st s)) (stripe c n).
  Proof.
    intros R W E L. apply mixture_intro.
    - by rewrite (seen_length l st s R), stripe_length by (done || apply (r_stripe_of _ _ R)).
    - by rewrite !stripe_length by (done || apply (r_stripe_of _ _ R)).
    - intros i v (x & Hx & Ha & ->)%seen_lookup. pose proof (r_component _ _ R i x Hx) as F.
      apply (same_torn _ _ _ F s n w W E). rewrite (active_missed _ _ _ F Ha). set_solver.
  Qed.

  Lemma lost_seen l s : lost (seen c l s) = inactive (components l).
  Proof. unfold seen, inactive. induction (components l) as [|x xs IH]; [done|]. rewrite fmap_cons. cbn.
    rewrite <-IH. by case_decide. Qed.

  (** However many components have failed, what a read returns is the last write. *)
  Theorem read_never_wrong l st s v : refines l st -> open l !! s = None -> read c l s = Some v ->
    v = stripe_of st s.
  Proof. intros R E D. by apply (good_sound c G (stripe_of st s) v (seen c l s));
    [apply (r_stripe_of _ _ R)|apply seen_left|]. Qed.

  Theorem read_available l st s : refines l st -> open l !! s = None -> tolerable c l ->
    read c l s = Some (stripe_of st s).
  Proof. intros R E T. apply (good_complete c G); [apply (r_stripe_of _ _ R)|by apply seen_left|].
    by rewrite lost_seen. Qed.

  (** ** Components *)

  Lemma strip_alter s s' o x : strip (with_strip s o x) s' = if decide (s = s') then default (blank c)
    o else strip x s'.
  Proof. unfold Redundancy.strip. simpl. case_decide; [subst; by rewrite lookup_partial_alter|].
    by rewrite lookup_partial_alter_ne. Qed.

  Lemma share_strip i o : i < width c -> length (value c o) = data_count c ->
    stripe c (value c o) !! i = Some (default (blank c) (d ← o; stripe c d !! i)).
  Proof.
    intros Hi L. destruct o as [v|]; simpl in *.
    - destruct (lookup_lt_is_Some_2 (stripe c v) i) as [y ->]; [by rewrite stripe_length|done].
    - rewrite stripe_blanks by done. by apply lookup_replicate_2.
  Qed.

  Lemma activate_same x :
    (∀ s, strip (activate x) s = strip x s) /\ missed (activate x) = missed x /\
      written (activate x) = written x.
  Proof. split_and!; intros; unfold activate; by case_decide. Qed.

  (** Only the first three clauses and the bounds need care in a component that is made active if it can be.
  *)
  Lemma faithful_activate st i x :
    (∀ s, pending st !! s = None -> s ∉ missed x -> stripe c (stripe_of st s) !! i = Some (strip x s)) ->
    (∀ s n v, pending st !! s = Some (Attempt n (Some v)) -> s ∈ written x ->
      stripe c v !! i = Some (strip x s)) ->
    (∀ s n w, whole c -> pending st !! s = Some (Attempt n w) -> s ∉ missed x ->
       stripe c (stripe_of st s) !! i = Some (strip x s) \/ stripe c n !! i = Some (strip x s)) ->
    (state x = Active -> missed x = ∅) ->
    (∀ s, s ∈ missed x -> s < size) ->
    (∀ s, s ∈ written x -> ∃ n v, pending st !! s = Some (Attempt n (Some v))) ->
    faithful st i (activate x).
  Proof.
    intros H1 H2 H3 H4 H5 H6. destruct (activate_same x) as (Es & Em & Ew).
    split; intros *; rewrite ?Es, ?Em, ?Ew; eauto.
    - unfold activate. case_decide as D; [by destruct D|done].
    - unfold activate, working. case_decide as D; simpl; [done|]. intros W E. destruct D. by split.
  Qed.

  Lemma refines_component l st i x x' : refines l st -> components l !! i = Some x -> faithful st i x' ->
    refines (with_component i x' l) st.
  Proof. intros R Hx F. split; simpl; try apply R; [by rewrite insert_length; apply R|]. intros j y Hy.
    apply list_lookup_insert_Some in Hy as [(-> & <- & _) | [_ Hy]]; [done|by apply R]. Qed.

  Lemma refines_spares l st ds : refines l st -> refines (with_spares ds l) st.
  Proof. intros R. split; apply R. Qed.

  Lemma index_below l st i x : refines l st -> components l !! i = Some x -> i < width c.
  Proof. intros R Hx%lookup_lt_Some. by rewrite (r_length _ _ R) in Hx. Qed.

  Lemma on_device_lookup l d i x : on_device l d = Some (i, x) ->
    components l !! i = Some x /\ home x = d /\ state x <> Degraded.
  Proof. intros (H & [E N] & _)%list_find_Some. done. Qed.

  (** ** The simulation *)

  (** A stripe comes to be written with [o]; if that is cut short, its data are what it held, or [n]. *)
  Lemma sim_start l st s o n : refines l st -> s < size -> length (value c o) = data_count c ->
    length n = data_count c ->
    (∀ m v, pending st !! s <> Some (Attempt m (Some v))) ->
      (whole c -> value c o = stripe_of st s \/ value c o = n) ->
    (∀ i x, components l !! i = Some x -> whole c -> s ∉ missed x ->
      stripe c (stripe_of st s) !! i = Some (strip x s) \/ stripe c n !! i = Some (strip x s)) ->
    refines (with_open (<[s := Writing o]> (open l)) l)
      (Store (stripe_of st) (<[s := Attempt n (Some (value c o))]> (pending st))).
  Proof.
    intros R Hs L Ln P W Torn. split; simpl; try apply R.
    - intros i x Hx. pose proof (r_component _ _ R i x Hx) as F. split; simpl; try apply F; intros s'.
      + intros [? _]%lookup_insert_None. by apply (same _ _ _ F).
      + intros m v [(<- & _)|[_ ?]]%lookup_insert_Some Hw; [|by eapply (same_written _ _ _ F)].
        apply (written_open _ _ _ F) in Hw as (? & ? & Q). by apply P in Q.
      + intros m w W' [(<- & [= <- <-])|[_ ?]]%lookup_insert_Some;
        [by apply Torn|by eapply (same_torn _ _ _ F)].
      + intros (m & v & Hn)%(written_open _ _ _ F). exists m, v. rewrite lookup_insert_ne;
        [done|]. intros <-. by apply P in Hn.
    - intros s'. destruct (decide (s = s')) as [<-|N]; rewrite ?lookup_insert, ?lookup_insert_ne by done;
      [done|apply R].
    - intros s'. destruct (decide (s = s')) as [<-|N]; [done|]. rewrite lookup_insert_ne by done. apply R.
    - intros s' m v W' [(<- & [= <- <-])|[_ ?]]%lookup_insert_Some; [by apply W|by eapply (r_whole _ _ R)].
  Qed.

  Lemma sim_write l st s o : refines l st -> s < size -> open l !! s = None ->
    length (value c o) = data_count c ->
    refines (with_open (<[s := Writing o]> (open l)) l)
      (Store (stripe_of st) (<[s := Attempt (value c o) (Some (value c o))]> (pending st))).
  Proof. intros R Hs E L. pose proof (open_none l st s R E) as P. apply sim_start; auto; [by rewrite P|].
    intros i x Hx _ Hm. left. by apply (same _ _ _ (r_component _ _ R i x Hx)). Qed.

  Lemma faithful_put l st s o i x : refines l st -> components l !! i = Some x ->
    open l !! s = Some (Writing o) ->
    faithful st i (put c s o i x).
  Proof.
    intros R Hx E. pose proof (r_component _ _ R i x Hx) as F.
    pose proof (r_request _ _ R s) as Q. rewrite E in Q.
    destruct (pending st !! s) as [[n [v|]]|] eqn:P; simpl in Q; try done. destruct Q as (-> & L & Ln).
    assert (∀ s', strip (put c s o i x) s' =
      if decide (s = s') then default (blank c) (d ← o; stripe c d !! i) else strip x s') as S.
    { intros s'. apply (strip_alter s s' _ x). }
    pose proof (share_strip i o (index_below _ _ _ _ R Hx) L) as Sh. split; simpl; try apply F.
    - intros s' P'. rewrite S. case_decide; [congruence|]. by apply (same _ _ _ F).
    - intros s' n' v' P'. rewrite S.
      case_decide; [subst s'; rewrite P in P'; injection P' as <- <-; by rewrite Sh|].
      intros [?%elem_of_singleton|]%elem_of_union; [by subst|by eapply (same_written _ _ _ F)].
    - intros s' n' w W P'. rewrite S. case_decide; [|by eapply (same_torn _ _ _ F)]. subst s'.
      rewrite P in P'. injection P' as <- <-.
      intros _. destruct (r_whole _ _ R s n (value c o) W P) as [Eq|Eq]; [left|right]; rewrite <-Eq; done.
    - intros s' [->%elem_of_singleton|]%elem_of_union; [eauto|by apply (written_open _ _ _ F)].
  Qed.

  Lemma sim_acknowledge l st s o n v : refines l st -> open l !! s = Some (Writing o) ->
    pending st !! s = Some (Attempt n (Some v)) ->
    Forall (fun x => working x -> s ∈ written x) (components l) ->
    refines (Leg (acknowledge s <$> components l) (spares l) (delete s (open l)))
      (Store (<[s := v]> (stripe_of st)) (delete s (pending st))).
  Proof.
    intros R E P A. pose proof (r_request _ _ R s) as Q. rewrite E, P in Q. simpl in Q.
    destruct Q as (Ev & L & Ln). assert (s < size) as Hs by (apply (r_below _ _ R); by rewrite E).
    assert (∀ s', delete s (pending st) !! s' = None -> s' = s \/ s' <> s /\
      pending st !! s' = None) as Dn.
    { intros s'. rewrite lookup_delete_None. destruct (decide (s' = s)); [by left|]. intros [->|]; auto. }
    split; simpl.
    - rewrite fmap_length. apply R.
    - intros i x'. rewrite list_lookup_fmap. intros (x & Hx & ->)%fmap_Some.
      pose proof (r_component _ _ R i x Hx) as F. rewrite Forall_lookup in A. specialize (A i x Hx).
      assert (∀ s', s' <> s -> s' ∉ (if decide (s ∈ written x)
        then missed x ∖ {[s]} else {[s]} ∪ missed x) ->
        s' ∉ missed x) as M by (intros s' ?; case_decide; set_solver). apply faithful_activate; simpl.
      + intros s' P' Hm. apply Dn in P' as [-> | [N P']].
        * rewrite fn_lookup_insert. case_decide as W; [|set_solver]. by eapply (same_written _ _ _ F).
        * rewrite fn_lookup_insert_ne by done. apply (same _ _ _ F); auto.
      + intros s' n' v' [N P']%lookup_delete_Some Hw. eapply (same_written _ _ _ F); [done|set_solver].
      + intros s' n' w W [N P']%lookup_delete_Some Hm. rewrite fn_lookup_insert_ne by done.
        eapply (same_torn _ _ _ F); eauto.
      + intros Ha. rewrite (active_missed _ _ _ F Ha). rewrite decide_True by (apply A; by left). set_solver.
      + intros s' Hm. pose proof (missed_below _ _ _ F s'). case_decide; [set_solver|].
        apply elem_of_union in Hm as [->%elem_of_singleton|]; auto.
      + intros s' [Hw N]%elem_of_difference. apply (written_open _ _ _ F) in Hw as (n' & v' & P').
        exists n', v'. rewrite lookup_delete_ne by set_solver. done.
    - intros s'. destruct (decide (s = s')) as [<-|N]; rewrite ?lookup_delete, ?lookup_delete_ne by done;
      [done|apply R].
    - intros s' [r [_ Hr]%lookup_delete_Some]. apply (r_below _ _ R). eauto.
    - intros s'. destruct (decide (s' = s)) as [->|N]; [by rewrite fn_lookup_insert|].
      rewrite fn_lookup_insert_ne by done. apply R.
    - intros s' Hb. rewrite fn_lookup_insert_ne by lia. by apply R.
    - intros s' n' v' W [N P']%lookup_delete_Some. rewrite fn_lookup_insert_ne by done. by apply R.
  Qed.

  Lemma sim_crash l st : refines l st ->
    refines (Leg (with_written ∅ <$> components l) (spares l) ((fun _ => Torn) <$> open l))
      (Store (stripe_of st) ((fun t => Attempt (intended t) None) <$> pending st)).
  Proof.
    intros R. split; simpl; try apply R.
    - rewrite fmap_length. apply R.
    - intros i x'. rewrite list_lookup_fmap. intros (x & Hx & ->)%fmap_Some.
      pose proof (r_component _ _ R i x Hx) as F. split; simpl; try apply F; intros s.
      + rewrite lookup_fmap. intros P%fmap_None. by apply (same _ _ _ F).
      + intros ?? _ ?. set_solver.
      + intros n w W. rewrite lookup_fmap. intros ([n' w'] & P & [= Hn Hw])%fmap_Some. simpl in Hn.
        subst n' w.
        by apply (same_torn _ _ _ F s n w').
      + intros ?. set_solver.
    - intros s. rewrite !lookup_fmap. pose proof (r_request _ _ R s) as Q.
      destruct (open l !! s) as [[o|]|], (pending st !! s) as [[n [v|]]|]; simpl in *; tauto.
    - intros s. rewrite lookup_fmap, fmap_is_Some. apply R.
    - intros s n v W. rewrite lookup_fmap. by intros ([n' w'] & P & [=])%fmap_Some.
  Qed.

  Lemma sim_recover l st s n v : refines l st -> open l !! s = Some Torn ->
    pending st !! s = Some (Attempt n None) ->
    length v = data_count c -> (whole c -> v = stripe_of st s \/ v = n) ->
    refines (with_open (<[s := Writing (Some v)]> (open l)) l)
      (Store (stripe_of st) (<[s := Attempt n (Some v)]> (pending st))).
  Proof. intros R E P L W. pose proof (r_request _ _ R s) as Q. rewrite E, P in Q. simpl in Q.
    apply (sim_start l st s (Some v)); auto; [apply (r_below _ _ R); by rewrite E|by rewrite P|].
    intros i x Hx W'. by apply (same_torn _ _ _ (r_component _ _ R i x Hx) s n None). Qed.

  Lemma faithful_fail st i x mode : mode = Absent \/ mode = Degraded -> faithful st i x ->
    faithful st i (fail mode x).
  Proof.
    intros Hm F. split; simpl; try apply F.
    - intros s n v _ ?. set_solver.
    - intros ->. by destruct Hm.
    - unfold working. simpl. intros [-> | [-> | ->]]; by destruct Hm.
    - intros s ?. set_solver.
  Qed.

  Lemma faithful_resync l st i x s v : refines l st -> components l !! i = Some x -> open l !! s = None ->
    read c l s = Some v -> faithful st i (resync s (stripe c v !! i) x).
  Proof.
    intros R Hx E D. pose proof (r_component _ _ R i x Hx) as F.
    pose proof (open_none _ _ _ R E) as P. pose proof (read_never_wrong l st s v R E D) as ->.
    pose proof (share_strip i (Some (stripe_of st s)) (index_below _ _ _ _ R Hx) (r_stripe_of _ _ R s)) as Sh.
    simpl in Sh.
    assert (∀ s', strip (with_state Resyncing (with_missed (missed x ∖ {[s]})
        (with_strip s (stripe c (stripe_of st s) !! i) x))) s' =
      if decide (s = s') then default (blank c) (stripe c (stripe_of st s) !! i) else strip x s') as S.
    { intros s'. apply (strip_alter s s' _ x). }
    apply faithful_activate; simpl; try done; try apply F.
    - intros s' P' Hm. rewrite S. case_decide; [by subst|]. apply (same _ _ _ F); [done|set_solver].
    - intros s' n' v' P' Hw. rewrite S. case_decide; [congruence|]. by eapply (same_written _ _ _ F).
    - intros s' n' w W P' Hm. rewrite S. case_decide; [congruence|].
      eapply (same_torn _ _ _ F); [done..|set_solver].
    - intros s' Hm. apply (missed_below _ _ _ F). set_solver.
  Qed.

  Lemma faithful_built l st i d : refines l st -> i < width c -> faithful st i (built_on size d).
  Proof.
    intros R Hi. assert (∀ s, pending st !! s <> None -> s < size) as B.
    { intros s N. apply (r_below _ _ R). pose proof (r_request _ _ R s) as Q.
      destruct (open l !! s) as [r|]; [eauto|]. by destruct (pending st !! s). }
    apply faithful_activate; simpl; try set_solver.
    - intros s P N. rewrite (r_blank _ _ R) by (rewrite elem_of_set_seq in N; lia).
      rewrite stripe_blanks by done. by apply lookup_replicate_2.
    - intros s n w W P N. assert (s < size) by (apply B; congruence). destruct N. apply elem_of_set_seq. lia.
  Qed.

  (** Every step of a leg, failures and crashes included, is a step of the reliable store. *)
  Theorem leg_step_refines l st a l' : refines l st -> act a l = Some l' ->
    ∃ st', store_step c st a st' /\ refines l' st'.
  Proof.
    intros R E. destruct a as [s v|s|i s|s| |s|d mode|d|d| |i s|i d]; simpl in E; unfold start in E;
      invert_act;
      destruct_and?; try (exists st; split; [by constructor|]); try (by apply refines_spares);
      try apply refines_spares;
      repeat match goal with H : on_device _ _ = Some _ |- _ => apply on_device_lookup in H as (Hx & _ & _)
        end;
      try (eapply refines_component; [done..|]);
      try (rename select (open l !! s = Some _) into E; pose proof (r_request _ _ R s) as Q; rewrite E in Q;
        destruct (pending st !! s) as [[n [v'|]]|] eqn:P; simpl in Q; try done).
    - eexists. split; [|by apply (sim_write l st s (Some v))]. constructor; [by apply (open_none l)|done].
    - eexists. split; [|by apply (sim_write l st s None)]. constructor. by apply (open_none l).
    - by eapply faithful_put.
    - eexists. split; [by econstructor|by eapply sim_acknowledge].
    - eexists. split; [constructor|by apply sim_crash].
    - match goal with D : read c l s = Some ?w |- _ => rename w into v end.
      assert (length v = data_count c) as L by (eapply (good_data c G); [by eapply seen_length|done]).
      assert (whole c -> v = stripe_of st s \/ v = n) as W.
      { intros W. apply (W _ _ (seen c l s) v);
          [apply (r_stripe_of _ _ R)|done|by eapply seen_mixture|done]. }
      eexists. split; [by econstructor|by apply sim_recover].
    - by apply faithful_fail, R.
    - pose proof (r_component _ _ R _ _ Hx) as F. apply faithful_activate; simpl; try done; apply F.
    - apply faithful_fail; [by right|by apply R].
    - split; simpl; try apply R; [rewrite fmap_length; apply R|]. intros i x'. rewrite list_lookup_fmap.
      intros (x & Hx & ->)%fmap_Some. pose proof (r_component _ _ R i x Hx) as F. split; apply F.
    - by eapply faithful_resync.
    - eapply faithful_built; [done|]. by eapply index_below.
  Qed.
End correct.
