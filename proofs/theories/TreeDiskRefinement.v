(** The log-structured disk with shared trees takes the steps of the one with maps that are functions, and
keeps no data that no chunk of its trees names. So it keeps the contract. *)
From LogDisk Require LogStructuredDiskReading LogStructuredDiskInvariant LogStructuredDiskRefinement.
From LogDisk Require TreeIndexMaps.
From LogDisk Require Import TreeDisk TreeDiskPages.
Import TreeIndex(index, trees, named, middle, next_mba, drop_mbas).
Import TreeIndexLeaves(mapped, spares_old) TreeIndexMaps(represents).

Section Refinement.
Context {V : Type} `{Value V} (K : design) (bits levels : nat).
Notation perform := (perform (V:=V) K bits levels).
Implicit Types (c : state V) (r : record V) (i : index) (x : nat) (m : maps).

(** Chunks of the trees name all data that the bank and the middle map know. *)
Definition names_all i (b : gmap nat V) : Prop :=
  ∀ x, is_Some (b !! x) ∨ is_Some (middle i !! x) → mapped (trees i) x.

(** What is loaded of checkpoint [i] from these pages represents the maps of [j]. *)
Record same_checkpoint (pgs : gmap nat SharedTree.node) (i : checkpoint) (j : LogStructuredDisk.checkpoint) :
    Prop := SameCheckpoint {
  same_maps : represents bits (loaded pgs i) (LogStructuredDisk.saved j);
  same_upto : upto i = LogStructuredDisk.upto j;
  same_number : number i = LogStructuredDisk.number j;
  same_names : names_all (loaded pgs i) ∅;
  same_paged : paged (trees (loaded pgs i)) pgs (saved_pages i);
  same_written p : p ∈ targets (saved_pages i) → is_Some (pgs !! p);
}.

(** Of the older slot only its number counts: its pages may have been written again. *)
Definition same_slot (i : checkpoint) (j : LogStructuredDisk.checkpoint) : Prop :=
  number i = LogStructuredDisk.number j.

Lemma same_checkpoint_pages pgs pgs' (i : checkpoint) j : (∀ p, p ∈ targets (saved_pages i) → pgs' !! p =
  pgs !! p) →
  same_checkpoint pgs i j → same_checkpoint pgs' i j.
Proof.
  intros Hsame [H1 H2 H3 H4 H5 H6]. pose proof (loaded_same _ _ _ Hsame) as E.
  split; rewrite ?E; try done.
  - intros n p Hn. destruct (H5 _ _ Hn) as [Hlt Hnd]. split; [done|]. intros nd Hs.
    rewrite Hsame; [by apply Hnd|]. apply LogStructuredDiskReading.elem_of_targets. by exists n.
  - intros p Hp. rewrite Hsame by done. by apply H6.
Qed.

(** The disk with functions that [c] stands for: [ps] are the records that the log forgot, [m] the maps that
the trees represent. *)
Definition with_functions c ps sa sb m ns : LogStructuredDisk.state V :=
  let s := dev c in let y := mem c in
  LogStructuredDisk.State (size c) (at_phase c) (pending c)
    (LogStructuredDisk.Devices ps (log s) (flushed s) sa sb (segments s))
    (LogStructuredDisk.Memory m (bank y) (table y) (applied y) ns).

Record matches c (a : LogStructuredDisk.state V) ps sa sb m ns : Prop := Matches {
  matches_state : a = with_functions c ps sa sb m ns;
  matches_past : length ps = begins (dev c);
  matches_a : option_Forall2 same_slot (slot_a (dev c)) sa;
  matches_b : option_Forall2 same_slot (slot_b (dev c)) sb;
  matches_newest : option_Forall2 (same_checkpoint (pages (dev c))) (newest (dev c))
    (LogStructuredDisk.newest (LogStructuredDisk.dev a));
  matches_current : represents bits (current (mem c)) m;
  matches_names : names_all (current (mem c)) (bank (mem c));
  matches_nodes : option_Forall2 (same_checkpoint (pages (dev c))) (nodes (mem c)) ns;
  matches_paged : paged (trees (current (mem c))) (pages (dev c)) (page_of (mem c));
}.

Definition stands_for c a : Prop := ∃ ps sa sb m ns, matches c a ps sa sb m ns.

(** ** What is the same *)

Lemma matches_seen c a ps sa sb m ns : matches c a ps sa sb m ns → same_disk (seen bits c)
  (LogStructuredDisk.seen a).
Proof.
  intros [-> _ _ _ _ Hm _ _ _]. apply LogStructuredDiskReading.same_disk_alt. simpl.
  assert (∀ x, chunk_of c x = LogStructuredDisk.chunk_of (with_functions c ps sa sb m ns) x) as Hchunk.
  { intros x. unfold chunk_of, LogStructuredDisk.chunk_of. simpl. by rewrite (TreeIndexMaps.rep_middle _ _ _
    Hm). }
  split.
  - intros l. unfold view_by_tree, view_by. rewrite (TreeIndexMaps.represents_live bits _ m) by done.
    destruct (live_map m !! l) as [x|]; [|done]. simpl. by rewrite Hchunk.
  - intros n. rewrite !lookup_fmap. pose proof (TreeIndexMaps.represents_snap bits _ _ n Hm) as Hn.
    destruct (named _ !! n) as [v|], (snap_maps m !! n) as [vm|]; try done; constructor. intros l.
    unfold view_by_tree, view_by. rewrite Hn. destruct (vm !! l) as [x|]; [|done]. simpl. by rewrite Hchunk.
Qed.

Lemma missing_view_same (d e : disk V) from : same_disk d e → missing_view d from = missing_view e from.
Proof. intros Hd. destruct from as [|n]; [done|].
  exact (LogStructuredDiskReading.faults_same 0 (RDelete n) _ _ Hd). Qed.

Lemma segments_same i m : represents bits i m → segments_in i = segments_of m.
Proof. intros Hi. unfold segments_in, segments_of. by rewrite (TreeIndexMaps.rep_middle _ _ _ Hi). Qed.

Lemma pinned_same c a ps sa sb m ns : matches c a ps sa sb m ns → pinned c = LogStructuredDisk.pinned a.
Proof.
  intros [-> _ _ _ Hn _ _ Hns _]. unfold pinned, LogStructuredDisk.pinned. simpl in *.
  f_equal; [destruct Hn as [i j [Hm _ _ _ _ _]|]|destruct Hns as [i j [Hm _ _ _ _ _]|]]; simpl; try done;
    by apply (segments_same (loaded (pages (dev c)) i)).
Qed.

Lemma newest_torn (s : devices V) : newest (replace_older None s) = newest s.
Proof. unfold newest, replace_older. destruct s as [be lo fl [a|] [b|] sg pg]; simpl; try done.
  by case_decide. Qed.

Lemma newest_committed (s : devices V) (i j : checkpoint) :
  newest s = Some j → number j < number i → newest (replace_older (Some i) s) = Some i.
Proof.
  unfold newest, replace_older. destruct s as [be lo fl [a|] [b|] sg pg]; simpl; intros Hj Hlt;
    try case_decide; simplify_eq; simpl; try case_decide; done || lia.
Qed.

Lemma replaced c sa sb o o' : option_Forall2 same_slot (slot_a (dev c)) sa →
  option_Forall2 same_slot (slot_b (dev c)) sb → option_Forall2 same_slot o o' → ∃ a b sa' sb',
    replace_older o (dev c) = with_slots (dev c) a b ∧
    (∀ ps lo fl sg, LogStructuredDisk.replace_older o' (LogStructuredDisk.Devices (V:=V) ps lo fl sa sb sg) =
      LogStructuredDisk.Devices ps lo fl sa' sb' sg) ∧
    option_Forall2 same_slot a sa' ∧ option_Forall2 same_slot b sb'.
Proof.
  intros Ha Hb Ho. unfold replace_older, LogStructuredDisk.replace_older. simpl.
  destruct Ha as [i i' Hi|], Hb as [j j' Hj|]; simpl.
  - unfold same_slot in Hi, Hj. rewrite <-Hi, <-Hj.
    case_decide; do 4 eexists; split_and!; try done; by constructor.
  - do 4 eexists; split_and!; try done; by constructor.
  - do 4 eexists; split_and!; try done; by constructor.
  - do 4 eexists; split_and!; try done; by constructor.
Qed.

Lemma names_nothing : names_all (TreeIndex.no_index levels) ∅.
Proof. intros x. simpl. rewrite !lookup_empty. intros [[? ?]|[? ?]]; done. Qed.

(** ** Dropping MBAs *)

Lemma lookup_drop {A} xs (f : gmap nat A) x : is_Some (drop_mbas xs f !! x) → x ∉ xs ∧ is_Some (f !! x).
Proof.
  induction xs as [|y xs IH]; simpl; [by intros ?; split; [apply not_elem_of_nil|]|].
  intros [v [Hne Hv]%lookup_delete_Some]. destruct IH as [Hx ?]; [by eexists|].
  split; [|done]. rewrite not_elem_of_cons. by split.
Qed.

Lemma steps_snoc (c0 c1 c2 : LogStructuredDisk.state V) tr es : steps K c0 tr c1 → step K c1 es c2 → steps K
  c0 (tr
  ++ es) c2.
Proof. intros Htr Hs. eapply LogStructuredDiskInvariant.steps_app; [done|].
  rewrite <-(app_nil_r es). econstructor; [exact Hs|constructor]. Qed.

(** What no view refers to may be dropped, one MBA after the other. *)
Lemma drop_steps sz ph q (s : LogStructuredDisk.devices V) m b t ap ns xs : ph ≠ Off → (∀ x, x ∈ xs → x ∉
  reachable
  m) →
  steps K (LogStructuredDisk.State sz ph q s (LogStructuredDisk.Memory m b t ap ns)) []
    (LogStructuredDisk.State sz ph q s
      (LogStructuredDisk.Memory (LogStructuredDisk.with_middle m (drop_mbas xs (LogStructuredDisk.middle
        m))) (drop_mbas xs b) t ap
        ns)).
Proof.
  intros Hp. induction xs as [|x xs IH]; intros Hxs; simpl.
  - destruct m. constructor.
  - change [] with ([] ++ [] : list (event V)). eapply steps_snoc; [apply IH; intros; apply Hxs; by right|].
    refine (LogStructuredDisk.Reclaim K (LogStructuredDisk.State sz ph q s (LogStructuredDisk.Memory
      (LogStructuredDisk.with_middle m (drop_mbas xs (LogStructuredDisk.middle m))) (drop_mbas xs b) t ap
        ns)) x Hp _).
    intros _. apply Hxs. by left.
Qed.

Lemma carry_out_steps sz ph q (s : LogStructuredDisk.devices V) m ns (y : memory V) r :
  ph ≠ Off → represents bits (current y) m → names_all (current y) (bank y) →
  TreeIndexMaps.names_fresh r (current y) →
  ∃ m', steps K
      (LogStructuredDisk.State sz ph q s (LogStructuredDisk.carry_out r (LogStructuredDisk.Memory m (bank y)
        (table y) (applied y)
        ns))) []
      (LogStructuredDisk.State sz ph q s
        (LogStructuredDisk.Memory m' (bank (carry_out bits r y)) (table y) (S (applied y)) ns)) ∧
    represents bits (current (carry_out bits r y)) m' ∧
    names_all (current (carry_out bits r y)) (bank (carry_out bits r y)) ∧
    spares_old (trees (current y)) (trees (current (carry_out bits r y))) ∧
    page_of (carry_out bits r y) = page_of y ∧ table (carry_out bits r y) = table y ∧ applied (carry_out
      bits r y) = S (applied y) ∧
    nodes (carry_out bits r y) = nodes y.
Proof.
  intros Hp Hm Hall Hfresh. pose proof (TreeIndexMaps.represents_record bits r _ _ Hm Hfresh) as Hrec.
  unfold carry_out. destruct (TreeIndex.reindex bits r (current y)) as [i' xs] eqn:Hi'.
  destruct Hrec as (Hm' & Hspares & Hdropped & Hkept).
  eexists. split; [|split_and!; [..|done|done|done|done|done]]; simpl.
  - unfold LogStructuredDisk.carry_out. simpl.
    assert (new_data r (current y) = banked r m) as ->.
    { destruct r; simpl; [|done..]. by rewrite (TreeIndexMaps.rep_next _ _ _ Hm). }
    apply drop_steps; [done|]. intros x Hx Hreach. by eapply Hdropped, TreeIndexMaps.represents_mapped.
  - unfold TreeIndex.forget. by apply (TreeIndexMaps.represents_middle bits _ _ (drop_mbas xs)).
  - assert (middle i' = middle (current y) ∧ next_mba i' = next_mba (current y) + TreeIndex.mbas_used r) as
    [Hmid Hnext].
    { unfold TreeIndex.reindex in Hi'. destruct (TreeIndex.acts _ _). by injection Hi' as <- _. }
    assert (∀ x, is_Some ((new_data r (current y) ∪ bank y) !! x) ∨ is_Some (middle i' !! x) →
      mapped (trees i') x ∨ x ∈ xs) as Hsome.
    { intros x. rewrite Hmid, lookup_union_is_Some. intros Hx. apply Hkept.
      destruct Hx as [[Hx|Hx]|Hx]; [right|left; apply Hall; auto..]. destruct r; simpl in Hx;
        try (rewrite lookup_empty in Hx; by destruct Hx).
      rewrite Hnext. simpl. destruct Hx as [v Hv]. apply lookup_map_seq_Some in Hv as [? Hv].
      apply lookup_lt_Some in Hv. lia. }
    intros x Hx. simpl in Hx.
    assert (x ∉ xs ∧ (is_Some ((new_data r (current y) ∪ bank y) !! x) ∨ is_Some (middle i' !! x))) as [Hno
      Hx'].
    { destruct Hx as [[? ?]%lookup_drop|[? ?]%lookup_drop]; auto. }
    destruct (Hsome _ Hx'); done.
Qed.

(** ** Each step *)

Lemma place_matches c ps sa sb m ns g xs : matches c (with_functions c ps sa sb m ns) ps sa sb m ns →
  (∀ x, x ∈ xs → mapped (trees (current (mem c))) x) →
  stands_for (place g xs c) (LogStructuredDisk.place g xs (with_functions c ps sa sb m ns)).
Proof.
  intros [_ Hlen Ha Hb Hnew Hm Hall Hns Hpg] Hxs.
  exists ps, sa, sb, (LogStructuredDisk.with_middle m (placed g xs ∪ LogStructuredDisk.middle m)), ns.
    split; simpl; try done.
  - unfold LogStructuredDisk.place, with_functions. simpl. do 3 f_equal. apply list_fmap_ext. intros _ x _.
    unfold chunk_of, LogStructuredDisk.chunk_of. simpl. by rewrite (TreeIndexMaps.rep_middle _ _ _ Hm).
  - by apply (TreeIndexMaps.represents_middle bits _ _ (λ f, placed g xs ∪ f)).
  - intros x. simpl. rewrite lookup_union_is_Some. intros [Hx|[Hx|Hx]].
    + apply Hall. left. destruct Hx as [v [? _]%map_filter_lookup_Some]. by exists v.
    + destruct (decide (x ∈ xs)) as [|Hno]; [by apply Hxs|].
      rewrite LogStructuredDiskReading.placed_None in Hx by done. by destruct Hx.
    + apply Hall. by right.
Qed.

(** The step that [act] is, the disk with functions takes too. *)
Definition followed (act : action V) : Prop := ∀ c a es c' ps sa sb m ns,
  sound K → matches c a ps sa sb m ns → LogStructuredDiskInvariant.invariant K a →
  perform act c = Some (es, c') → ∃ a', steps K a es a' ∧ stands_for c' a'.

Lemma one_step a es c' a' es' :
  step K a es' a' → es' = es → stands_for c' a' → ∃ a', steps K a es a' ∧ stands_for c' a'.
Proof.
  intros Hs -> Ha'. exists a'. split; [|done]. rewrite <-(app_nil_r es). econstructor; [done|constructor].
Qed.

Lemma matches_logged c a ps sa sb m ns : matches c a ps sa sb m ns →
  LogStructuredDisk.first a = begins (dev c) ∧ LogStructuredDisk.logged a = logged c.
Proof.
  intros [-> Hlen _ _ _ _ _ _ _]. unfold LogStructuredDisk.first, LogStructuredDisk.logged, logged. simpl.
  by rewrite Hlen.
Qed.

(** The next record of the log names no snapshot that there is. *)
Lemma next_fresh c a ps sa sb m ns r :
  matches c a ps sa sb m ns → LogStructuredDiskInvariant.invariant K a →
  LogStructuredDisk.history a !! applied (mem c) = Some r → at_phase c ≠ Off →
  TreeIndexMaps.names_fresh r (current (mem c)).
Proof.
  intros Hc Hinv Hr Hp. destruct r as [| |n| |]; try done. simpl.
  pose proof (matches_seen _ _ _ _ _ _ _ Hc) as Hseen. pose proof (matches_state _ _ _ _ _ _ _ Hc) as Ea.
  pose proof (LogStructuredDiskInvariant.log_valid _ _ Hinv _ _ Hr) as Hvalid.
  pose proof (LogStructuredDiskInvariant.seen_after K a Hinv ltac:(by subst a)) as Hafter.
  replace (applied (mem c)) with (LogStructuredDisk.applied (LogStructuredDisk.mem a)) in Hvalid
    by by subst a.
  rewrite <-(LogStructuredDiskReading.faults_same _ _ _ _ Hafter) in Hvalid.
  rewrite <-(LogStructuredDiskReading.faults_same _ _ _ _ Hseen) in Hvalid. simpl in Hvalid.
  unfold taken in Hvalid. destruct (valid_name n); [|done]. simpl in Hvalid.
  destruct (decide _) as [|Hno] in Hvalid; [done|]. rewrite lookup_fmap in Hno.
  destruct (named _ !! n); [|done]. destruct Hno. by eexists.
Qed.

(** What each of these proofs begins with. *)
Local Ltac prepare :=
  intros c a es c' ps sa sb m ns HK Hc Hinv Hact; simpl in Hact;
  pose proof (matches_seen _ _ _ _ _ _ _ Hc) as Hseen;
  pose proof (pinned_same _ _ _ _ _ _ _ Hc) as Hpinned;
  pose proof (matches_logged _ _ _ _ _ _ _ Hc) as [Hfirst Hlogged];
  pose proof (one_step a es c') as Hone;
  assert (∀ r, faults (size c) (seen bits c) r = faults (size c) (LogStructuredDisk.seen a) r) as Hfaults
    by (intros ?; by apply LogStructuredDiskReading.faults_same);
  pose proof Hc as [Ea Hlen Ha Hb Hnewest Hm Hall Hns Hpg].

Lemma submit_followed r : followed (Submit r).
Proof.
  prepare. apply when_Some in Hact as [(Hp & Hq & Hr) [= <- <-]]. rewrite Hfaults in Hr.
  eapply Hone; [|done|].
  + apply (LogStructuredDisk.Submit K a r); by subst a.
  + subst a. unfold LogStructuredDisk.submit. simpl. by exists ps, sa, sb, m, ns.
Qed.

Lemma log_append_followed : followed LogAppend.
Proof.
  prepare. apply when_Some in Hact as [Hp [= <- <-]]. eapply Hone; [|done|].
  + apply (LogStructuredDisk.LogAppend K a); by subst a.
  + unfold LogStructuredDisk.log_append. rewrite Hlogged. subst a. by exists ps, sa, sb, m, ns.
Qed.

Lemma acknowledge_followed : followed Acknowledge.
Proof.
  prepare. destruct (pending c) as [[r|]|] eqn:Hq; [|done..].
  apply when_Some in Hact as [(Hp & Hf) [= <- <-]].
  assert (at_phase c ≠ Off) as Hon by (by rewrite Hp).
  assert (TreeIndexMaps.names_fresh r (current (mem c))) as Hn.
  { pose proof (LogStructuredDiskInvariant.pending_is _ _ Hinv) as Hpend.
    eapply next_fresh; [exact Hc|done| |done]. subst a. simpl in Hpend.
    rewrite Hq in Hpend. by destruct Hpend as (_ & _ & Hr). }
  destruct (carry_out_steps (size c) (at_phase c) None (LogStructuredDisk.dev a) m ns (mem c) r Hon
    Hm Hall Hn) as (m' & Hdrop & Hm' & Hall' & Hspares & Epg & Et & Eap & Ens).
  eexists. split.
  + rewrite <-(app_nil_r [_]). econstructor; [|exact Hdrop].
    pose proof (LogStructuredDisk.Acknowledge K a r) as D. subst a. unfold LogStructuredDisk.acknowledge
      in D.
      simpl in D.
    apply D; [done..|]. by rewrite Hlogged.
  + subst a. exists ps, sa, sb, m', ns.
    split; simpl; try done; [|by rewrite Ens|rewrite Epg; by eapply paged_spares].
    unfold with_functions. simpl. by rewrite Et, Eap.
Qed.

Lemma refuse_followed r e : followed (Refuse r e).
Proof.
  prepare. apply when_Some in Hact as [(Hp & Hq & He) [= <- <-]]. rewrite !Hfaults in He.
  eapply Hone; [|done|by exists ps, sa, sb, m, ns]. apply (LogStructuredDisk.Refuse K a r); by subst a.
Qed.

Lemma read_followed from lba count : followed (Read from lba count).
Proof.
  prepare. destruct (view_of _ from) as [v|] eqn:Hv; [|done].
  apply when_Some in Hact as [(Hp & Hfit & Hmiss) [= <- <-]].
  pose proof (Hseen from) as Hfrom. rewrite Hv in Hfrom. inversion Hfrom as [? w Hvw Ew Ev|]; subst x.
  assert (v <$> seq lba count = w <$> seq lba count) as Hdata by (apply list_fmap_ext; by intros ? l _).
  apply (Hone a [VirtualDisk.Read from lba count Ok (w <$> seq lba count)]);
    [|by rewrite Hdata|by exists ps, sa, sb, m, ns].
  apply (LogStructuredDisk.Read K a from lba count w); [by subst a|by subst a| |done].
  by rewrite <-(missing_view_same _ _ from Hseen).
Qed.

Lemma refuse_read_followed from lba count e : followed (RefuseRead from lba count e).
Proof.
  prepare. apply when_Some in Hact as [(Hp & He) [= <- <-]].
  eapply Hone; [|done|by exists ps, sa, sb, m, ns].
  apply (LogStructuredDisk.RefuseRead K a from lba count e); [by subst a|].
  rewrite <-(missing_view_same _ _ from Hseen). by subst a.
Qed.

Lemma flush_followed : followed Flush.
Proof.
  prepare. apply when_Some in Hact as [[Hp Hq] [= <- <-]]. eapply Hone; [|done|].
  + apply (LogStructuredDisk.Flush K a); by subst a.
  + unfold LogStructuredDisk.log_append. rewrite Hlogged. subst a. by exists ps, sa, sb, m, ns.
Qed.

Lemma destage_followed g xs : followed (Destage g xs).
Proof.
  prepare. apply when_Some in Hact as [(Hp & Hg & Hdup & Hxs & Hne & Hw & Hfull) [= <- <-]].
  eapply Hone; [|done|].
  + apply (LogStructuredDisk.Destage K a g xs); by subst a.
  + subst a. apply place_matches; [done|]. intros x Hx. apply Hall. left.
    by apply (proj1 (Forall_forall _ _) Hxs).
Qed.

Lemma seal_followed g : followed (Seal g).
Proof.
  prepare. apply when_Some in Hact as [[Hp Hg] [= <- <-]]. eapply Hone; [|done|].
  + apply (LogStructuredDisk.Seal K a g); by subst a.
  + subst a. by exists ps, sa, sb, m, ns.
Qed.

Lemma clean_followed vs g : followed (Clean vs g).
Proof.
  prepare. apply when_Some in Hact as [(Hp & Hne & Hvs & Hg) [= <- <-]].
  rewrite (TreeIndexMaps.rep_middle _ _ _ Hm) in Hg. eapply Hone; [|done|].
  + apply (LogStructuredDisk.Clean K a vs g); by subst a.
  + subst a. unfold clean, LogStructuredDisk.clean. simpl. rewrite (TreeIndexMaps.rep_middle _ _ _ Hm).
    destruct (chunks_in vs _) as [|x xs] eqn:Hxs; [by exists ps, sa, sb, m, ns|].
    assert (stands_for (place g (x :: xs) c) (LogStructuredDisk.place g (x :: xs) (with_functions c ps sa
      sb m ns)))
      as (ps' & sa' & sb' & m' & ns' & [E ? ? ? Hnw ? ? ? ?]).
    { apply place_matches; [done|]. intros y Hy. apply Hall. right.
      rewrite (TreeIndexMaps.rep_middle _ _ _ Hm). rewrite <-Hxs in Hy.
      apply LogStructuredDiskReading.elem_of_chunks_in in Hy as (b & ? & _). by exists b. }
    rewrite E in Hnw |- *. by exists ps', sa', sb', m', ns'.
Qed.

Lemma free_followed g : followed (Free g).
Proof.
  prepare. apply when_Some in Hact as [(Hp & Hg & Hfree) [= <- <-]]. rewrite Hpinned in Hfree.
  eapply Hone; [|done|].
  + apply (LogStructuredDisk.Free K a g); by subst a.
  + subst a. by exists ps, sa, sb, m, ns.
Qed.

Lemma reclaim_followed t n : followed (Reclaim t n).
Proof.
  prepare. unfold reclaim in Hact. pose proof (proj2 HK ReclaimUnreachable) as Hrule.
  destruct (obeys K ReclaimUnreachable); [|done].
  destruct (SharedTree.reclaim t n (trees (current (mem c)))) as [s'|] eqn:Hs'; simpl in Hact; [|done].
  apply when_Some in Hact as [Hp [= <- <-]].
  destruct (TreeIndexMaps.represents_reclaim bits _ _ _ _ _ Hm Hs') as (Hm' & Hspares & Hgone & Hkept).
  set (xs := TreeIndex.freed_mba _ _ _) in *. eexists. split.
  + subst a. apply (drop_steps _ _ _ _ _ _ _ _ _ xs); [done|]. intros x Hx Hreach.
    eapply Hgone; [done|]. by eapply (TreeIndexMaps.represents_mapped bits _ m x Hm').
  + subst a. exists ps, sa, sb. do 2 eexists. split; simpl; try done.
    * by apply (TreeIndexMaps.represents_middle bits (TreeIndex.with_trees s' (current (mem c))) m
      (drop_mbas xs)).
    * intros x Hx. simpl in Hx.
      assert (x ∉ xs ∧ (is_Some (bank (mem c) !! x) ∨ is_Some (middle (current (mem c)) !! x))) as [Hno
        Hx'].
      { destruct Hx as [[? ?]%lookup_drop|[? ?]%lookup_drop]; auto. }
      destruct (Hkept _ (Hall _ Hx')); done.
    * by eapply paged_spares.
Qed.

Lemma checkpoint_nodes_followed places : followed (CheckpointNodes places).
Proof.
  prepare. apply when_Some in Hact as [(Hp & Hbank & Hsealed & Hdup & Hlen' & Hfree) [= <-
  <-]].
  rewrite (segments_same _ _ Hm) in Hsealed. rewrite Forall_forall in Hfree.
  destruct (TreeIndexMaps.represents_checkpoint bits _ _ Hm) as (Hm' & Hsame & Enodes & Eepoch & Enext).
  assert (from_option number 0 (newest (dev c)) =
    from_option LogStructuredDisk.number 0 (LogStructuredDisk.newest (LogStructuredDisk.dev a))) as Hnumber.
  { by destruct Hnewest as [i j [_ _ ? _ _ _]|]. }
  eapply Hone; [|done|]; [by apply (LogStructuredDisk.CheckpointNodes K a); subst a|].
  subst a. exists ps, sa, sb, m. eexists. unfold LogStructuredDisk.write_nodes, write_nodes. simpl.
  set (s := trees (current (mem c))) in *. set (i' := TreeIndex.with_trees _ _) in *.
  set (on := page_of (mem c)) in *. set (pgs := pages (dev c)) in *.
  set (on' := list_to_map _ ∪ filter _ _). set (pgs' := list_to_map _ ∪ pgs).
  assert (∀ p, p ∈ places → p ∉ targets on) as Hon by (intros p ?; by apply Hfree).
  assert (∀ n p nd, on !! n = Some p → SharedTree.nodes s !! n = Some nd → pgs !! p = Some nd) as Hin.
  { intros n p nd Hn Hnd. by apply (Hpg _ _ Hn). }
  assert (∀ n p, on' !! n = Some p → ∃ nd, SharedTree.nodes s !! n = Some nd ∧ pgs' !! p = Some nd) as Hw
    by exact (written_on (SharedTree.nodes s) pgs on places Hdup Hlen' Hon Hin).
  assert (omap (pgs' !!.) on' = SharedTree.nodes s) as Hl
    by exact (written_loads (SharedTree.nodes s) pgs on places Hdup Hlen' Hon Hin).
  assert (∀ p, p ∉ places → pgs' !! p = pgs !! p) as Hother
    by exact (written_other (SharedTree.nodes s) pgs on places Hlen').
  assert (names_all i' (bank (mem c))) as Hall' by (intros x Hx; by apply Hsame, Hall).
  assert (paged (trees i') pgs' on') as Hpg'.
  { intros n p Hn. destruct (Hw _ _ Hn) as (nd & Hnd & Hnp).
    pose proof (SharedTreePaths.tidy_node (SharedTreeInvariant.inv_tidy (TreeIndexLeaves.chunks_inv _ _ _
      (TreeIndexMaps.rep_chunks _ _ _ Hm))) Hnd) as [Hlt [_ Hle]].
    simpl. rewrite Enodes, Eepoch, Enext. split; [done|]. intros nd' Hnd'. fold s in Hnd'.
    assert (nd' = nd) as -> by congruence. split; [done|]. fold s. fold s in Hle. lia. }
  assert (∀ j, targets (saved_pages j) ⊆ pinned_pages c → ∀ p, p ∈ targets (saved_pages j) → pgs' !! p =
    pgs !! p) as Hpinned'.
  { intros j Hj p Hp'. apply Hother. intros Hpl. destruct (Hfree _ Hpl) as [_ Hrule].
    apply Hrule; [by apply (proj2 HK)|by apply Hj]. }
  split; try done; simpl.
  + change (option_Forall2 (same_checkpoint pgs') (newest (dev c))
      (LogStructuredDisk.newest (LogStructuredDisk.dev (with_functions c ps sa sb m ns)))).
    unfold pinned_pages in Hpinned'. inversion Hnewest as [i j Hij Ei Ej|Ei Ej];
      simpl; rewrite <-Ej; constructor.
    eapply same_checkpoint_pages; [|exact Hij]. apply Hpinned'. rewrite <-Ei. set_solver.
  + constructor. set (ck := Checkpoint _ _ _ _).
    assert (loaded pgs' ck = i') as Eload.
    { unfold loaded, ck. simpl. rewrite Hl, <-Enodes. unfold TreeIndex.without_nodes, TreeIndex.with_nodes.
      unfold i', TreeIndex.with_trees. simpl. by destruct (TreeIndex.act _ _). }
    split; rewrite ?Eload; try done.
    * simpl. by rewrite Hnumber.
    * by rewrite <-Hbank.
    * intros p [n Hn]%LogStructuredDiskReading.elem_of_targets. destruct (Hw _ _ Hn) as (nd & _ & ?). by
      exists nd.
Qed.

Lemma checkpoint_commit_followed : followed CheckpointCommit.
Proof.
  prepare. destruct (nodes (mem c)) as [i|] eqn:Hi; [|done].
  apply when_Some in Hact as [(Hp & Hupto) [= <- <-]]. inversion Hns as [x j Hij Ex Hj|]; subst x.
  pose proof Hij as [_ Eup Enum _ _ _]. rewrite Eup in Hupto.
  assert (∃ i0 : checkpoint, newest (dev c) = Some i0 ∧ number i0 < number i) as (i0 & Hi0 & Hlt).
  { destruct (LogStructuredDiskInvariant.newest_holds _ _ Hinv) as (j0 & Hj0 & _).
    destruct (LogStructuredDiskInvariant.nodes_hold _ _ Hinv j j0) as (Hlt & _); [by subst a|done|].
    rewrite Hj0 in Hnewest. inversion Hnewest as [i0 ? [_ _ E0 _ _ _] Ei0|]; subst. exists i0.
    split; [done|]. lia. }
  destruct (replaced c sa sb (Some i) (Some j) Ha Hb ltac:(by constructor)) as (a' & b' & sa' & sb' & E1 &
    E2 & Ha' & Hb').
  pose proof (newest_committed _ _ _ Hi0 Hlt) as Hnew'. rewrite E1 in Hnew'.
  eapply Hone; [|done|].
  + apply (LogStructuredDisk.CheckpointCommit K a j); [by subst a|by subst a|]. by subst a.
  + subst a. unfold LogStructuredDisk.commit, commit. rewrite E1. simpl. rewrite E2.
    exists ps, sa', sb', m, None. split; try done; [|constructor]. simpl.
    assert (LogStructuredDisk.newest (LogStructuredDisk.Devices ps (log (dev c)) (flushed (dev c)) sa' sb'
      (segments (dev c))) = Some j) as ->.
    { rewrite <-E2. destruct (LogStructuredDiskInvariant.newest_holds _ _ Hinv) as (j0 & Hj0 & _).
      eapply LogStructuredDiskInvariant.newest_replace_older; [exact Hj0|].
      by eapply (LogStructuredDiskInvariant.nodes_hold _ _ Hinv). }
    rewrite Hnew'. by constructor.
Qed.

Lemma truncate_followed n : followed (Truncate n).
Proof.
  prepare. pose proof (proj2 HK TruncateAfterCommit) as Hrule.
  destruct (obeys K TruncateAfterCommit); [|done]. destruct (newest (dev c)) as [i|] eqn:Hi; [|done].
  apply when_Some in Hact as [(Hp & Hn) [= <- <-]]. inversion Hnewest as [x j Hij Ex Hj|]; subst x.
  pose proof Hij as [_ Eup _ _ _ _]. rewrite Eup in Hn.
  assert (n ≤ LogStructuredDisk.logged a) as Hle.
  { destruct (LogStructuredDiskInvariant.newest_holds _ _ Hinv) as (j' & Hj' & Hup & _).
    pose proof (LogStructuredDiskInvariant.log_flushed _ _ Hinv). rewrite <-Hj in Hj'. simplify_eq. lia. }
  eapply Hone; [|done|].
  + apply (LogStructuredDisk.Truncate K a j n); [by subst a|by left|by rewrite Hfirst].
  + unfold LogStructuredDisk.truncate, truncate. subst a.
    rewrite <-LogStructuredDiskInvariant.history_length in Hle.
    unfold LogStructuredDisk.history in *. simpl in *. rewrite drop_app_ge by lia. rewrite Hlen.
    exists (take n (ps ++ log (dev c))), sa, sb, m, ns. split; try done.
    * simpl. rewrite take_length. lia.
    * change (newest _) with (newest (dev c)). rewrite Hi.
      change (option_Forall2 (same_checkpoint (pages (dev c))) (Some i) (LogStructuredDisk.newest
        (LogStructuredDisk.Devices ps (log (dev c)) (flushed (dev c)) sa sb (segments (dev c))))).
      rewrite <-Hj. by constructor.
Qed.

Lemma crash_followed keep torn garbage lost : followed (Crash keep torn garbage lost).
Proof.
  prepare. apply when_Some in Hact as [(Hk & Ht) [= <- <-]].
  assert (LogStructuredDisk.shown_by_crash a = shown_by_crash c) as Hshown by (by subst a).
  eapply Hone; [|exact (f_equal (λ e, [e]) Hshown)|].
  + apply (LogStructuredDisk.Crash K a keep torn garbage); [rewrite Hlogged; by subst a|]. intros Htorn.
    specialize (Ht Htorn). subst a. simpl. by destruct Hns.
  + unfold LogStructuredDisk.crash, crash. rewrite Hfirst.
    set (durable := from_option (targets ∘ saved_pages) ∅ (newest (dev c))).
    assert (option_Forall2 (same_checkpoint (filter (λ e, e.1 ∈ durable) (pages (dev c)) ∪ lost))
      (newest (dev c)) (LogStructuredDisk.newest (LogStructuredDisk.dev a))) as Hnewest'.
    { unfold durable. destruct Hnewest as [i j Hij|]; [|constructor]. constructor. simpl.
      eapply same_checkpoint_pages; [|exact Hij]. intros p Hp.
      destruct (same_written _ _ _ Hij _ Hp) as [nd Hnd]. rewrite Hnd.
      apply lookup_union_Some_l, map_filter_lookup_Some. done. }
    destruct (replaced c sa sb None None Ha Hb ltac:(by constructor)) as (a' & b' & sa' & sb' & E1 & E2 &
      Ha' & Hb').
    pose proof (newest_torn (dev c)) as Hnew'. rewrite E1 in Hnew'.
    pose proof (LogStructuredDiskInvariant.newest_torn (LogStructuredDisk.dev a)) as Hold'.
    destruct torn.
    * subst a. simpl in *. rewrite E1, E2 in *. exists ps, sa', sb', no_maps, None.
      split; try done; simpl; [|apply TreeIndexMaps.represents_nothing|apply names_nothing|constructor].
      change (newest _) with (newest (with_slots (dev c) a' b')). rewrite Hnew'.
      by rewrite <-Hold' in Hnewest'.
    * subst a. simpl in *. exists ps, sa, sb, no_maps, None.
      split; try done; simpl; [apply TreeIndexMaps.represents_nothing|apply names_nothing|constructor].
Qed.

Lemma restart_followed : followed Restart.
Proof.
  prepare. apply when_Some in Hact as [[Hp Hq] [= <- <-]]. eapply Hone; [|done|].
  + apply (LogStructuredDisk.Restart K a); by subst a.
  + unfold LogStructuredDisk.log_append. rewrite Hlogged. subst a. exists ps, sa, sb, no_maps, None.
    split; try done; simpl; [apply TreeIndexMaps.represents_nothing|apply names_nothing|constructor].
Qed.

Lemma load_followed : followed Load.
Proof.
  prepare. destruct (newest (dev c)) as [i|] eqn:Hi; [|done].
  apply when_Some in Hact as [Hp [= <- <-]]. inversion Hnewest as [x j Hij Ex Hj|]; subst x.
  pose proof Hij as [Hrep Eup _ Hn Hpaged _]. eapply Hone; [|done|].
  + apply (LogStructuredDisk.Load K a j); by subst a.
  + unfold LogStructuredDisk.load, load. rewrite Hfirst, <-Eup.
    change (segments_in (saved i)) with (segments_in (loaded (pages (dev c)) i)).
    rewrite (segments_same _ _ Hrep). subst a.
    exists ps, sa, sb, (LogStructuredDisk.saved j), None. split; try done; simpl; [|constructor].
    change (newest _) with (newest (dev c)). rewrite Hi. simpl in Hj. rewrite <-Hj. by constructor.
Qed.

Lemma replay_followed : followed Replay.
Proof.
  prepare. destruct (log (dev c) !! _) as [r|] eqn:Hr; [|done].
  apply when_Some in Hact as [[Hp Hle] [= <- <-]].
  assert (at_phase c ≠ Off) as Hon by (by rewrite Hp).
  assert (TreeIndexMaps.names_fresh r (current (mem c))) as Hn.
  { eapply next_fresh; [exact Hc|done| |done]. subst a. unfold LogStructuredDisk.history. simpl.
    rewrite lookup_app_r by lia. by rewrite Hlen. }
  destruct (carry_out_steps (size c) (at_phase c) (pending c) (LogStructuredDisk.dev a) m ns (mem c) r Hon
    Hm Hall Hn) as (m' & Hdrop & Hm' & Hall' & Hspares & Epg & Et & Eap & Ens).
  eexists. split.
  + change [] with ([] ++ [] : list (event V)). econstructor; [|exact Hdrop].
    pose proof (LogStructuredDisk.Replay K a r) as D. rewrite Hfirst in D. subst a.
    unfold LogStructuredDisk.replay, LogStructuredDisk.with_memory in D. simpl in D. by apply D.
  + subst a. exists ps, sa, sb, m', ns.
    split; simpl; try done; [|by rewrite Ens|rewrite Epg; by eapply paged_spares].
    unfold with_functions. simpl. by rewrite Et, Eap.
Qed.

Lemma recover_followed : followed Recover.
Proof.
  prepare. apply when_Some in Hact as [[Hp Hle] [= <- <-]].
  assert (LogStructuredDisk.shown_by_recover a = shown_by_recover c) as Hshown by (by subst a).
  eapply Hone; [|exact (f_equal (λ e, [e]) Hshown)|].
  + apply (LogStructuredDisk.Recover K a); [by subst a|]. rewrite Hlogged. by subst a.
  + subst a. by exists ps, sa, sb, m, ns.
Qed.

(** Whatever step it is. *)
Lemma matches_follows c a es c' : sound K → stands_for c a → LogStructuredDiskInvariant.invariant K a →
  (∃ act, perform act c = Some (es, c')) → ∃ a', steps K a es a' ∧ stands_for c' a'.
Proof.
  intros HK (ps & sa & sb & m & ns & Hc) Hinv [act Hact].
  assert (followed act) as Hfollowed; [|by eapply Hfollowed].
  destruct act; auto using submit_followed, log_append_followed, acknowledge_followed, refuse_followed,
    read_followed, refuse_read_followed, flush_followed, destage_followed, seal_followed,
    clean_followed, free_followed, reclaim_followed, checkpoint_nodes_followed,
    checkpoint_commit_followed, truncate_followed, crash_followed, restart_followed, load_followed,
    replay_followed, recover_followed.
Qed.
End Refinement.
