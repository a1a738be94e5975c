(** Executions of the log-structured disk over its legs, computed: [carry] takes a list of commands, each if
it may be. *)
From LogDisk Require Import CompositionPerformance LogStructuredDiskExecution.
Import LogStructuredDisk CompositionSegments.
Module R := Redundancy.

(** A step of the disk; of the disk with its performance leg; a step of a leg of its own. *)
Inductive command {V : Type} :=
  | Step (a : action V)
  | Log | Logged | Save | Commit | PowerOff | ShutDown | Recovered (s : nat) | Settled (s : nat) | LoadAll
  | Tidy (g : nat) | Tidied (g : nat)
  | OnP (a : R.action (V := page V)) | OnC (a : R.action (V := V)).
Global Arguments command : clear implicits.

Global Instance maps_eq_dec : EqDecision maps := ltac:(solve_decision).
Global Instance checkpoint_eq_dec : EqDecision checkpoint := ltac:(solve_decision).

Section execution.
  Context {V : Type} `{EqDecision V, Value V} (K : design) (m room : nat) (cc : RedundancyCode.code V).
  Context (stripes_p stripes_c repair_delay spare_count : nat).
  Notation cp := (RedundancyCode.mirror (Blank (V := V)) m). Notation ring := (S room).
  Notation whole_disk :=
    (over_legs cp cc stripes_p stripes_c repair_delay spare_count (log_structured_client K cc room)).
  Notation whole_state := (host (V := V) * R.leg (V := page V) * R.leg (V := V))%type.
  Implicit Types (x : whole_state).

  Section leg.
    Context {B : Type} (code : RedundancyCode.code B) (size : nat).
    Implicit Types (l : R.leg (V := B)) (a : R.action (V := B)).

    Definition asked_for a : bool :=
      match a with R.Write _ _ | R.Unmap _ | R.Acknowledge _ | R.Crash | R.Recover _ => true | _ => false end.

    Definition readable l s : option (list B) := guard (R.open l !! s = None); R.read code l s.

    (** What of the stripes [ss] can be read. *)
    Definition read_of l (ss : list nat) : gmap nat (list B) :=
      list_to_map (omap (λ s, v ← readable l s; Some (s, v)) ss).

    Lemma does_request a l l' : asked_for a = true → R.act code size repair_delay a l = Some l' →
      leg_does repair_delay code size l [Does a] l'.
    Proof. intros Q A. econstructor; [by destruct a|done|constructor]. Qed.

    Lemma does_reads l l' ios (rd : list (nat * list B)) : Forall (λ sv, readable l sv.1 = Some sv.2) rd →
      leg_does repair_delay code size l ios l' →
      leg_does repair_delay code size l (((λ sv, Sees sv.1 sv.2) <$> rd) ++ ios) l'.
    Proof. induction 1 as [|[s v] rd F _ IH]; [done|]. intros D. simpl. unfold readable in F. simpl in F.
      case_option_guard; [|done]. constructor; [done..|by apply IH]. Qed.

    Lemma read_of_right l ss : Forall (λ sv, readable l sv.1 = Some sv.2) (map_to_list (read_of l ss)).
    Proof. apply Forall_forall. intros [s v] E%elem_of_map_to_list%elem_of_list_to_map_2. simpl.
      apply elem_of_list_omap in E as (s' & _ & Q).
      destruct (readable l s') as [w|] eqn:Rd; simpl in Q; congruence. Qed.
  End leg.

  Definition opens (c : state V) : gset nat := dom (filter (λ e, e.2 = Open) (table (mem c))).

  Lemma elem_of_opens c g : g ∈ opens c ↔ is_open c g.
  Proof.
    unfold opens, is_open. rewrite elem_of_dom. split.
    - intros [u [E Q]%map_filter_lookup_Some]. simpl in Q. by subst.
    - intros E. exists Open. by apply map_filter_lookup_Some.
  Qed.

  (** What a step from c to c' asks of the capacity leg. *)
  Definition asking (c c' : state V) : option (list (R.action (V := V))) :=
    match elements (opens c' ∖ opens c), elements (opens c ∖ opens c') with
    | [], [] => guard (opens c' = opens c); Some []
    | [g], [] => data ← segments (dev c') !! g; guard (opens c' = {[g]} ∪ opens c ∧ g ∉ opens c);
        Some [R.Write g (full_stripe cc data)]
    | [], [g] => guard (opens c' = opens c ∖ {[g]} ∧ g ∈ opens c); Some [R.Acknowledge g]
    | _, _ => None
    end.

  Lemma asking_sound c c' qs : asking c c' = Some qs → at_phase c' ≠ Off → asks cc c c' (Does <$> qs) ∧
    Forall (λ a, asked_for a = true) qs.
  Proof.
    unfold asking. intros E On.
    destruct (elements (opens c' ∖ opens c)) as [|g [|]], (elements (opens c ∖ opens c')) as [|g' [|]];
      try done.
    - case_option_guard as Eq; [|done]. injection E as <-. split; [|done]. constructor; [done|].
      intros h. by rewrite <-!elem_of_opens, Eq.
    - case_option_guard as Eq; [|done]. destruct Eq as [Eq I]. injection E as <-. split;
      [|by repeat constructor].
      constructor; [done|by apply elem_of_opens|]. intros h. rewrite <-!elem_of_opens, Eq. set_solver.
    - destruct (segments (dev c') !! g) as [data|] eqn:Sg; simpl in E; [|done].
      case_option_guard as Eq; [|done]. destruct Eq as [Eq I]. injection E as <-. split;
        [|by repeat constructor].
      constructor; [done|by rewrite <-elem_of_opens| |done]. intros h. rewrite <-!elem_of_opens, Eq.
        set_solver.
  Qed.

  (** The log that the ring holds. *)
  Fixpoint scan (h : nat → list (page V)) (n fuel : nat) : list (record V) :=
    match fuel with
    | 0 => []
    | S fuel =>
        match h (place_of room n) with
        | [Entry k r] => if decide (k = n) then r :: scan h (S n) fuel else []
        | _ => []
        end
    end.

  Lemma scan_sound h n fuel k r : scan h n fuel !! k = Some r → h (place_of room (n + k)) = [Entry (n + k) r].
  Proof. revert n k. induction fuel as [|fuel IH]; intros n k; simpl; [done|].
    destruct (h (place_of room n)) as [|[|i|k' r'] [|]] eqn:E; try done. case_decide as D; [|done].
    destruct k as [|k]; simpl; [intros [= <-]; by rewrite Nat.add_0_r, E, D|]. intros Q%IH.
    by rewrite Nat.add_succ_r. Qed.

  Definition is_entry (n : nat) (v : list (page V)) : bool :=
    match v with [Entry k _] => bool_decide (k = n) | _ => false end.

  (** A step of the disk with everything that it could read. *)
  Definition disk_steps (a : action V) (c : state V) (lc : R.leg (V := V)) :
      option (list (event V) * state V * R.leg (V := V)) :=
    let rd := read_of cc lc (elements (segments_of (current (mem c)) ∖ opens c)) in
    '(es, c1) ← perform K a (on_segments (segments (dev c) ∪ rd) c);
    qs ← asking c c1; lc' ← R.run cc stripes_c repair_delay qs lc;
    guard (at_phase c1 ≠ Off ∧ set_Forall (λ g, is_open c g ∨
      is_Some (rd !! g)) (segments_of (current (mem c))));
    Some (es, keep_open c1, lc').

  Definition carry_out_one (k : command V) (x : whole_state) : option (list (event V) * whole_state) :=
    let '(Host c n logging saving, lp, lc) := x in
    let to_p (a : R.action) h := lp' ← R.act cp stripes_p repair_delay a lp; Some ([], (h, lp', lc)) in
    let on {A} (o : option A) := guard (at_phase c ≠ Off); o in
    let off {A} (o : option A) := guard (at_phase c = Off); o in
    match k with
    | Step a => on (
        '(es, c', lc') ← disk_steps a c lc;
        guard (slot_a (dev c') = slot_a (dev c) ∧ slot_b (dev c') = slot_b (dev c) ∧
          (flushed (dev c') = flushed (dev c) ∨ n = logged c) ∧ (saving → nodes (mem c') = nodes (mem c)));
        Some (es, (Host c' n logging saving, lp, lc')))
    | Log => on (r ← history c !! n; guard (logging = false ∧ n < first c + ring);
        to_p (R.Write (place_of room n) [Entry n r]) (Host c n true saving))
    | Logged => on (guard (Is_true logging);
        to_p (R.Acknowledge (place_of room n)) (Host c (S n) false saving))
    | Save => on (i ← nodes (mem c); guard (upto i ≤ flushed (dev c));
        to_p (R.Write (older (dev c)) [Slot i]) (Host c n logging true))
    | Commit => on (i ← nodes (mem c); guard (Is_true saving);
        to_p (R.Acknowledge (older (dev c))) (Host (commit i c) n logging false))
    | PowerOff =>
        lp' ← R.act cp stripes_p repair_delay R.Crash lp; lc' ← R.act cc stripes_c repair_delay R.Crash lc;
        Some ([shown_by_crash c], (Host (powered_off None c) 0 false false, lp', lc'))
    | ShutDown =>
        guard (at_phase c = Running ∧ n = logged c ∧ saving = false ∧ opens c = ∅);
        guard (match pending c with None => true | _ => false end = true);
        lp' ← R.act cp stripes_p repair_delay R.Crash lp; lc' ← R.act cc stripes_c repair_delay R.Crash lc;
        Some ([], (Host (powered_off (Some Reopen) c) 0 false false, lp', lc'))
    | Recovered s => off (to_p (R.Recover s) x.1.1)
    | Settled s => off (to_p (R.Acknowledge s) x.1.1)
    | LoadAll => off (
        let h s := default [] (readable cp lp s) in
        let n := log_begins h in let rs := scan h n ring in
        guard (Forall (λ s, is_Some (readable cp lp s)) (seq 0 (2 + ring)) ∧
          is_entry (n + length rs) (h (place_of room (n + length rs))) = false);
        '(es, c', lc') ← disk_steps DoLoad (loaded c (replicate n (RUnmap 0 0)) h rs) lc;
        match es with [] => Some ([], (Host c' (n + length rs) false false, lp, lc')) | _ => None end)
    | Tidy g => lc' ← R.act cc stripes_c repair_delay (R.Recover g) lc; Some ([], (x.1.1, lp, lc'))
    | Tidied g => guard (g ∉ opens c); lc' ← R.act cc stripes_c repair_delay (R.Acknowledge g) lc;
        Some ([], (x.1.1, lp, lc'))
    | OnP a => guard (asked_for a = false); to_p a x.1.1
    | OnC a => guard (asked_for a = false); lc' ← R.act cc stripes_c repair_delay a lc;
        Some ([], (x.1.1, lp, lc'))
    end.

  Local Arguments R.act : simpl never.

  Lemma requests_sound {B} (code : RedundancyCode.code B) size l qs l' : Forall (λ a, asked_for a = true) qs →
    R.run code size repair_delay qs l = Some l' → leg_does repair_delay code size l (Does <$> qs) l'.
  Proof. intros F. revert l.
    induction F as [|a qs Q _ IH]; simpl; intros l E; [injection E as <-; constructor|].
    destruct (R.act code size repair_delay a l) as [l1|] eqn:A; simpl in E; [|done].
    econstructor; [by destruct a|done|by apply IH]. Qed.

  Lemma disk_steps_sound a c lc es c' lc' : disk_steps a c lc = Some (es, c', lc') →
    ∃ cs, disk_does K cc c es cs c' ∧ leg_does repair_delay cc stripes_c lc cs lc' ∧ at_phase c' ≠ Off.
  Proof.
    unfold disk_steps. set (rd := read_of _ _ _). intros E.
    destruct (perform K a _) as [[es1 c1]|] eqn:P; simpl in E; [|done].
    destruct (asking c c1) as [qs|] eqn:A; simpl in E; [|done].
    destruct (R.run _ _ _ _ _) as [lc1|] eqn:Rq; simpl in E; [|done].
    case_option_guard as G; [|done]. destruct G as [On Hall]. injection E as <- <- <-.
    apply perform_sound in P. apply asking_sound in A as [A F]; [|done].
    exists (reads rd ++ (Does <$> qs)). split_and!; [|apply does_reads;
      [apply read_of_right|by apply requests_sound]|done].
    by apply (disk_step K cc c es1 rd c1).
  Qed.

  (** Takes apart why a command was carried out. *)
  Ltac taken := repeat match goal with
    | E : (_ ← ?o; _) = Some _ |- _ => destruct o eqn:?; simpl in E; [|done]
    | E : mguard _ _ = Some _ |- _ => case_option_guard; [|done]
    | E : match ?o with _ => _ end = Some _ |- _ => destruct o eqn:?; try done
    | E : Some _ = Some _ |- _ => injection E as <- <- <- <-
    end.
  Ltac by_request H := left; eexists _, []; split_and!; [by apply H|by apply does_request|constructor].

  Lemma carry_out_one_sound k x es x' : carry_out_one k x = Some (es, x') → moves whole_disk x es x'.
  Proof.
    assert (∀ a, asked_for (B := page V) a = false → ¬ request_of a) as NP by (by intros [] ? ?).
    assert (∀ a, asked_for (B := V) a = false → ¬ request_of a) as NC by (by intros [] ? ?).
    destruct x as [[[c n logging saving] lp] lc], x' as [[h' lp'] lc']. intros E.
    destruct k as [a| | | | | | |s|s| |g|g|a|a]; simpl in E; taken; destruct_and?; subst.
    - rename select (disk_steps _ _ _ = _) into D. apply disk_steps_sound in D as (cs & D & L & On).
      left. exists [], cs. split_and!; [by apply
        (does_step K cc room (Host c n logging saving))|constructor|done].
    - by_request (does_log K cc room (Host c n false saving)).
    - by_request (does_logged K cc room (Host c n logging saving)).
    - by_request (does_save K cc room (Host c n logging saving)).
    - by_request (does_commit K cc room (Host c n logging saving)).
    - left. eexists _, _. split_and!; [apply (does_crash K cc room (Host c n logging saving))|by apply
      does_request..].
    - left. exists [Does R.Crash], [Does R.Crash]. split_and!; [|by apply does_request..].
      apply (does_restart K cc room (Host c (logged c) logging false)); try done; [simpl;
        by destruct (pending c)|].
      intros g. rewrite <-elem_of_opens. set_solver.
    - by_request (does_recover K cc room (Host c n logging saving)).
    - by_request (does_settle K cc room (Host c n logging saving)).
    - rename select (Forall _ _) into F. rename select (is_entry _ _ = false) into Z.
      rename select (disk_steps _ _ _ = _) into D. apply disk_steps_sound in D as (cs & D & L & On).
      set (h := λ s, default [] (readable cp lp s)) in *. set (b := log_begins h) in *.
      set (rs := scan h b ring) in *. left. eexists _, cs. split_and!; [|simpl|done].
      + apply (does_load K cc room (Host c n logging saving) h (replicate b (RUnmap 0 0)) rs);
          [done..|by rewrite replicate_length| |done]. split.
        * intros k r. apply scan_sound.
        * intros r Q. change (h (place_of room (b + length rs)) = [Entry (b + length rs) r]) in Q.
          change (is_entry (b + length rs) (h (place_of room (b + length rs))) = false) in Z.
          rewrite Q in Z. simpl in Z. by case_bool_decide.
      + rewrite <-(app_nil_r (_ <$> _)). rewrite <-(list_fmap_id (seq 0 _)), <-list_fmap_compose.
        pose proof (does_reads cp stripes_p lp lp [] ((λ s, (s, h s)) <$> seq 0 (2 + ring))) as Q.
        rewrite <-list_fmap_compose in Q. apply Q; [|constructor]. apply Forall_fmap. eapply Forall_impl;
          [exact F|].
        intros s' [v Hv]. simpl. unfold h. by rewrite Hv.
    - left. eexists [], _. split_and!; [apply (does_tidy K cc room (Host c n logging saving));
      constructor|simpl; constructor|].
      by apply does_request.
    - left. eexists [], _. split_and!; [apply (does_tidy K cc room (Host c n logging saving)),
      CompositionCapacity.settles|simpl; constructor|].
      + by rewrite <-elem_of_opens.
      + by apply does_request.
    - right. split_and!; [done..|]. left. split; [|done]. exists a. by split; [apply NP|].
    - right. split_and!; [done..|]. right. split; [|done]. exists a. by split; [apply NC|].
  Qed.

  Fixpoint carry (ks : list (command V)) (x : whole_state) : option (list (event V) * whole_state) :=
    match ks with
    | [] => Some ([], x)
    | k :: ks => '(es, x1) ← carry_out_one k x; '(tr, x2) ← carry ks x1; Some (es ++ tr, x2)
    end.

  Definition new_disk blocks : whole_state :=
    (Host (initial blocks) 0 false false, R.new_leg cp spare_count, R.new_leg cc spare_count).

  Lemma carry_sound ks x tr x' : carry ks x = Some (tr, x') → shows whole_disk x tr x'.
  Proof.
    revert x tr. induction ks as [|k ks IH]; intros x tr E; simpl in E; [injection E as <- <-; constructor|].
    destruct (carry_out_one k x) as [[es x1]|] eqn:A; [|done]. simpl in E.
    destruct (carry ks x1) as [[tr1 x2]|] eqn:C; [|done]. simpl in E. injection E as <- <-.
    econstructor; [by apply (carry_out_one_sound k)|by apply IH].
  Qed.
End execution.
