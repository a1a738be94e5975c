(** Over a reliable store of stripes the disk over its capacity leg takes the steps of the disk that has its
segments at hand ([capacity_step]). *)
From LogDisk Require Export CompositionCapacity.
From LogDisk Require LogStructuredDisk LogStructuredDiskReading LogStructuredDiskInvariant
  LogStructuredDiskRefinement.
From LogDisk Require CompositionSegments.
Import Redundancy RedundancyCorrect.

Section log_structured_disk.
  Import LogStructuredDisk LogStructuredDiskReading LogStructuredDiskInvariant LogStructuredDiskRefinement.
  Import CompositionSegments.
  Context {V : Type} `{Value V} (K : design) (cc : RedundancyCode.code V).
  Implicit Types (c d e : state V) (st : store (V := V)) (g : nat) (data : list V) (S rd : gmap nat (list V)).
  Notation full_stripe := (full_stripe cc). Notation disk_does := (disk_does K cc).

  (** Over a reliable store it is the log-structured disk whose segments are S. *)
  Record stands_for c st S : Prop := StandsFor {
    stands_invariant : invariant K (on_segments S c);
    stands_open g : is_open c g -> ∃ data, segments (dev c) !! g = Some data /\ S !! g = Some data /\
      Redundancy.pending st !! g = Some (Attempt (full_stripe data) (Some (full_stripe data)));
    stands_memory g data : segments (dev c) !! g = Some data -> is_open c g;
    stands_stored g data : S !! g = Some data -> ~ is_open c g ->
      Redundancy.pending st !! g = None /\ data `prefix_of` Redundancy.stripe_of st g;
  }.

  Lemma reads_are_right rd qs st st' : store_does cc st (reads rd ++ qs) st' ->
    (∀ g v, rd !! g = Some v -> v = Redundancy.stripe_of st g) /\ store_does cc st qs st'.
  Proof.
    intros D. assert (Forall (fun gd => gd.2 = Redundancy.stripe_of st gd.1) (map_to_list rd) /\
      store_does cc st qs st') as [F ?].
    { unfold reads in D. induction (map_to_list rd) as [|gd l IH]; simpl in D; [done|].
      inversion D; subst. destruct IH; [done|]. split; [by constructor|done]. }
    split; [|done]. intros g v E%elem_of_map_to_list. rewrite Forall_forall in F. by apply (F _ E).
  Qed.

  Lemma read_chunks c st S rd : stands_for c st S ->
    (∀ g v, rd !! g = Some v -> v = Redundancy.stripe_of st g) ->
    (∀ g, g ∈ segments_of (current (mem c)) -> is_open c g \/ is_Some (rd !! g)) ->
    same_chunks (segments (dev c) ∪ rd) S c.
  Proof.
    intros [I So Sm Ss] Hrd Hall x. unfold chunk_of, chunk. simpl. destruct (bank (mem c) !! x); [done|].
    destruct (middle (current (mem c)) !! x) as [[g i]|] eqn:E; simpl; [|done].
    destruct (decide (at_phase c = Off)) as [Off|On].
    { pose proof (memory_lost _ _ I Off) as M. simpl in M. rewrite M in E. done. }
    destruct (current_holds _ _ I On) as (_ & [W _] & _).
      destruct (whole_stored _ _ _ W x (g, i) E) as [v Hv].
    simpl in Hv. unfold stored in *. simpl in *. rewrite Hv.
    destruct (S !! g) as [data|] eqn:Sg; simpl in Hv; [|done]. destruct (decide (is_open c g)) as [O|O].
    - destruct (So g O) as (data' & F & S' & _). rewrite (lookup_union_Some_l _ _ _ _ F). simpl. congruence.
    - destruct (Ss g data Sg O) as [_ [rest Pre]].
      destruct (Hall g) as [?|[w Hw]]; [apply elem_of_segments_of; eauto|done|].
      rewrite lookup_union_r; [|destruct (segments (dev c) !! g) eqn:F; [by apply Sm in F|done]].
      rewrite Hw. simpl. rewrite (Hrd g w Hw), Pre. by apply lookup_app_l_Some.
  Qed.

  Lemma kept_open c g data : segments (dev (keep_open c)) !! g = Some data <->
    segments (dev c) !! g = Some data /\ is_open c g.
  Proof. simpl. by rewrite map_filter_lookup_Some. Qed.

  Lemma capacity_step c st S es cs c' st' : sound K -> stands_for c st S -> disk_does c es cs c' ->
    store_does cc st cs st' -> ∃ S', step K (on_segments S c) es (on_segments S' c') /\
      stands_for c' st' S'.
  Proof.
    intros HK Hst D Sd. pose proof Hst as [I So Sm Ss]. destruct D as [rd c1 qs Hall Hstep Hclean A].
    - apply reads_are_right in Sd as [Hrd Sd]. destruct (decide (at_phase c1 = Off)) as [Off|On].
      + destruct (off_on_segments K _ S c es c1 Hstep Off (Hclean Off)) as (e & A' & B' & -> & Hd & T & HB).
        exists B'. split; [done|]. assert (∀ h, ~ is_open (keep_open (on_segments A' e)) h) as None.
        { intros h. unfold is_open. simpl. by rewrite T, lookup_empty. }
        inversion A; subst; try done. inversion Sd as [|? ? ? ? _ Sc Rest|]; subst. inversion Rest; subst.
        inversion Sc; subst; [|done].
        split; [by apply (step_invariant K _ _ _ HK I Hd)|by intros h ?%None|by intros h data [_
          ?]%kept_open|].
        intros h data HS _. apply HB in HS as [HS Ho]. destruct (Ss h data HS Ho) as [Pn ?]. simpl.
        by rewrite lookup_fmap, Pn.
      + specialize (Hall On). pose proof (read_chunks c st S rd Hst Hrd Hall) as Same.
        assert (∀ h data, segments (dev c) !! h = Some data ->
          (segments (dev c) ∪ rd) !! h = Some data) as Mem.
        { intros h data. apply lookup_union_Some_l. }
        destruct (step_on_segments K _ S c es c1 Same Hstep On) as
          [(e & -> & Hd & Op)|(e & g & data & -> & Hd & L & Tn & Op)].
        * exists S. split; [done|]. pose proof (step_invariant K _ _ _ HK I Hd) as I'.
          inversion A as [_ Eq|g data _ No Eq|g _ O Eq|]; subst; try done.
          -- inversion Sd; subst. split; [done| |by intros ? ? [_ ?]%kept_open|].
             ++ intros h Ho. destruct (So h) as (data & F & ? & ?); [by apply Eq|].
                exists data. split_and!; [|done..]. apply kept_open. split; [by apply Mem|done].
             ++ intros h data HS Ho. apply Ss; [done|]. intros Hc. by apply Ho, Eq.
          -- exfalso. apply No, Op. apply (Eq g). by left.
          -- inversion Sd as [|? ? ? ? _ Sc Rest|]; subst. inversion Rest; subst.
             destruct (So g O) as (data & F & SF & Pg). inversion Sc as [| |? n v P'| | |]; subst; [|done].
             rewrite Pg in P'. injection P' as <- <-. split; [done| |by intros ? ? [_ ?]%kept_open|].
             ++ intros h Ho. pose proof (proj1 (Eq h) Ho) as [N Hc].
                destruct (So h Hc) as (data' & F' & ? & ?).
                exists data'. split_and!; [|done|simpl; by rewrite lookup_delete_ne].
                apply kept_open. split; [by apply Mem|done].
             ++ intros h data' HS Ho. simpl. destruct (decide (h = g)) as [->|N].
                ** rewrite lookup_delete, fn_lookup_insert. split; [done|].
                   assert (data' = data) as -> by congruence. by eexists.
                ** rewrite lookup_delete_ne, fn_lookup_insert_ne by done. apply Ss; [done|].
                   intros Hc. by apply Ho, Eq.
        * exists (<[g := data]> S). split; [done|]. pose proof (step_invariant K _ _ _ HK I Hd) as I'.
          assert (~ is_open c g) as Ng by (unfold is_open; congruence).
          inversion A as [_ Eq|g' data' _ No Eq F|g' _ O Eq|]; subst; try done.
          -- exfalso. apply Ng, Eq, Op. by left.
          -- assert (g' = g) as ->. { destruct (proj1 (Op g')) as [?|?]; [apply (Eq g'); by left|done|done]. }
             simpl in F. rewrite lookup_insert in F. injection F as <-.
             inversion Sd as [|? ? ? ? _ Sc Rest|]; subst. inversion Rest; subst.
             inversion Sc as [? ? P' L'| | | | |]; subst; [|done]. split;
               [done| |by intros ? ? [_ ?]%kept_open|].
             ++ intros h Ho. destruct (decide (h = g)) as [->|N].
                ** exists data. split_and!; [|by rewrite lookup_insert|simpl; by rewrite lookup_insert].
                   apply kept_open. split; [simpl; by rewrite lookup_insert|done].
                ** destruct (proj1 (Op h) Ho) as [?|Hc]; [done|]. destruct (So h Hc) as (data' & F' & ? & ?).
                   exists data'. split_and!; [|by rewrite lookup_insert_ne|simpl;
                     by rewrite lookup_insert_ne].
                   apply kept_open. split; [simpl; rewrite lookup_insert_ne by done; by apply Mem|done].
             ++ intros h data' HS Ho. assert (h <> g) as N by (intros ->; apply Ho, Op; by left).
                rewrite lookup_insert_ne in HS by done. simpl. rewrite lookup_insert_ne by done.
                apply Ss; [done|]. intros Hc. apply Ho, Op. by right.
          -- exfalso. apply Ng. apply (Eq g), Op. by left.
  Qed.

  Lemma tidied c st S cs st' : stands_for c st S -> tidies c cs -> store_does cc st cs st' ->
    stands_for c st' S.
  Proof.
    intros [I So Sm Ss] [g|g O] Sd; inversion Sd as [|? ? ? ? _ Sc Rest|]; subst; inversion Rest; subst.
    - inversion Sc as [| | | |? n v P' Lv Wv|]; subst; [|done]. split; [done| |done|].
      + intros h O. destruct (So h O) as (data & ? & ? & Ph). exists data. split_and!; [done..|].
        simpl. rewrite lookup_insert_ne by congruence. done.
      + intros h data HS Ho. destruct (Ss h data HS Ho) as [Ph ?]. simpl.
        rewrite lookup_insert_ne by congruence. done.
    - inversion Sc as [| |? n v P'| | |]; subst; [|done]. split; [done| |done|].
      + intros h Oh. destruct (So h Oh) as (data & ? & ? & Ph). exists data. split_and!; [done..|].
        simpl. rewrite lookup_delete_ne by congruence. done.
      + intros h data HS Ho. destruct (Ss h data HS Ho) as [Ph ?]. simpl.
        rewrite lookup_delete_ne, fn_lookup_insert_ne by congruence. done.
  Qed.
End log_structured_disk.
