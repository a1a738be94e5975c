(** A queue: whatever implements the contract, run one request at a time behind a queue, implements the
contract for requests that overlap. Servers need this, and nothing more, of the disk that they serve.

A request that is called waits; the disk serves one that waits; then it may be answered. What is sent alone is
sent when nothing waits. When the power fails, the disk was serving a request, or none; those that wait are
lost. As everywhere, a call says already how it will be answered.

A disk may perform several requests at once, and then show several events in one step. [one_by_one] tells them
one after the other, so the queue is in front of such disks too. *)
From LogDisk Require Import VirtualDisk VirtualDiskProperties RecordedTrace.
From LogDisk Require Import OverlappingDisk OverlappingDiskChecker OverlappingDiskSwaps OverlappingDiskOrders.

Section Queue.
Context {V : Type} `{EqDecision V, Value V}.
Implicit Types (e : event V) (s : state V) (h : list (moment V)) (tr : list (event V)).

(** A request that may be in flight together with others. *)
Definition queues_up e : Prop :=
  match e with Create _ | Crash _ | Restart _ => False | _ => True end.

Record queue (M : implementation V) := Queue {
  serving : inside M;
  waiting : list (nat * event V);
  served : list nat;
}.
Global Arguments Queue {M} _ _ _. Global Arguments serving {M} _.
Global Arguments waiting {M} _. Global Arguments served {M} _.

(** One step of the queue: what it shows outside, and what the disk behind it shows to the queue. *)
Inductive queue_step (M : implementation V) : queue M → list (moment V) → list (event V) → queue M → Prop :=
  | queue_inside c c' w d : moves M c [] c' → queue_step M (Queue c w d) [] [] (Queue c' w d)
  | queue_call c w d id e : queues_up e → id ∉ w.*1 ++ d →
      queue_step M (Queue c w d) [Called id (Event e)] [] (Queue c (w ++ [(id, e)]) d)
  | queue_serve c c' w1 w2 d id e : answer_of (Event e) ≠ CutShort → moves M c [e] c' →
      queue_step M (Queue c (w1 ++ (id, e) :: w2) d) [] [e] (Queue c' (w1 ++ w2) (id :: d))
  | queue_answer c w d1 d2 id :
      queue_step M (Queue c w (d1 ++ id :: d2)) [Answered id] [] (Queue c w (d1 ++ d2))
  | queue_alone c c' d e : ends (Event e) = false → moves M c [e] c' →
      queue_step M (Queue c [] d) [Alone (Event e)] [e] (Queue c' [] d)
  | queue_cut c c' w d r : moves M c [Crash r] c' →
      queue_step M (Queue c w d) [Alone (Event (Crash r))] [Crash r] (Queue c' [] [])
  | queue_cut_serving c c1 c2 w d id e r : (id, e) ∈ w → answer_of (Event e) = CutShort →
      moves M c [e] c1 → shows M c1 [Crash r] c2 →
      queue_step M (Queue c w d) [Alone (Event (Crash r))] [e; Crash r] (Queue c2 [] []).

Inductive queue_run (M : implementation V) (q : queue M) : list (moment V) → list (event V) → queue M → Prop
    :=
  | queue_idle : queue_run M q [] [] q
  | queue_more h1 tr1 q1 h tr q2 : queue_step M q h1 tr1 q1 → queue_run M q1 h tr q2 →
      queue_run M q (h1 ++ h) (tr1 ++ tr) q2.

(** What waits, as steps; and steps of unknown outcome that were not taken. *)
Definition stands (w : list (nat * event V)) (pending : list (step_of V)) : Prop :=
  ∃ xss rest, Forall2 (λ we xs, ∃ n, xs = steps_of ByRequest n we.1 (Event we.2)) w xss ∧
    Forall (λ x, due x = false) rest ∧ pending ≡ₚ concat xss ++ rest.

Definition goes p s tr : Prop := ∃ s', run p s tr s'.

Lemma goes_cons p s e tr : goes p s (e :: tr) ↔ ∃ s1, step p s e s1 ∧ goes p s1 tr.
Proof. split; [intros [s' Hr]; inversion Hr; subst; eexists; split; [done|by eexists]|].
  intros (s1 & ? & s' & ?). exists s'. by econstructor. Qed.

(** A power cut that cuts a request short: it happened or it did not, and one of the two explains the rest. *)
Lemma cut_resolves p tr : ∀ a b c, power a = false → size a = size b → size a = size c →
  (∀ i d, i ∈ survivors a → resolves i d →
    (∃ j, j ∈ survivors b ∧ resolves j d) ∨ (∃ j, j ∈ survivors c ∧ resolves j d)) →
  goes p a tr → (∀ e tr', tr = e :: tr' → ∃ r, e = Crash r) → goes p b tr ∨ goes p c tr.
Proof.
  induction tr as [|e tr IH]; intros a b c Hp Hzb Hzc Hi Hg Hcr; [left; eexists; constructor|].
  apply goes_cons in Hg as (s1 & Hs & Hg). destruct (Hcr e tr eq_refl) as [r ->]. clear Hcr.
  rewrite !goes_cons. destruct r; cbn in Hs; try done.
  - destruct Hs as (i & d & Hin & Hr & ->).
    destruct (Hi i d Hin Hr) as [(j & ? & ?)|(j & ? & ?)];
      [left|right]; eexists; (split; [|exact Hg]); exists j, d; [by rewrite Hzb|by rewrite Hzc].
  - subst s1. destruct tr as [|e2 tr2]; [left; eexists; split; [done|by eexists; constructor]|].
    assert ((∃ r, e2 = Crash r) ∨ ∃ n, e2 = Create n) as He2.
    { apply goes_cons in Hg as (s2 & Hs2 & _). destruct e2; cbn in Hs2; eauto;
        try (by destruct Hs2 as [[=] _]); by destruct Hs2 as [[[=] _] _]. }
    destruct He2 as [[r2 ->]|[n ->]].
    + assert (goes p (cut b []) (Crash r2 :: tr2) ∨ goes p (cut c []) (Crash r2 :: tr2)) as [?|?].
      { apply (IH (cut a [])); try done. intros e tr' [= <- _]. eauto. }
      * left. eexists. by split.
      * right. eexists. by split.
    + left. eexists. split; [done|]. apply goes_cons in Hg as (s2 & Hs2 & Hg). cbn in Hs2.
      apply goes_cons. exists s2. split; [exact Hs2|done].
Qed.

Lemma one_step next id e : queues_up e → sure (answer_of (Event e)) = true →
  steps_of ByRequest next id (Event e) = [Step (next + 0) id true (Event e)].
Proof. intros Hq Hs. unfold steps_of, parts. rewrite Hs. destruct e as [| | | | | | |r|r|? ? ? r ?|r];
  try done;
  by destruct r. Qed.

(** A request of unknown outcome happened, or what followed may follow as well without it. *)
Lemma unknown_step p next id e s s1 : queues_up e → current p s → answer_of (Event e) = UnknownOutcome →
  step p s e s1 → allows s1 s ∧ Forall (λ x, due x = false) (steps_of ByRequest next id (Event e)) ∨
    ∃ a, steps_of ByRequest next id (Event e) = [Step (next + 0) id false (Event a)] ∧ step p s a s1 ∧
      devices_after 0 all_good (Event a) = all_good.
Proof.
  intros Hq Hc Ha Hs.
  destruct e as [|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r]; try done;
    cbn in Ha; subst;
    cbn in Hs.
  - destruct Hs as [Hp [->|[Hf ->]]]; [left; split; [apply allows_refl|by repeat constructor]|].
    right. eexists. split_and!; [done|by split|done].
  - destruct Hs as [Hp [->|[Hf ->]]]; [left; split; [apply allows_refl|by repeat constructor]|].
    right. eexists. split_and!; [done|by split|done].
  - destruct Hs as [Hp [->|[Hf ->]]]; [left; split; [apply allows_refl|by repeat constructor]|].
    right. eexists. split_and!; [done|by split|done].
  - destruct Hs as [Hp [->|[Hf ->]]]; [left; split; [apply allows_refl|by repeat constructor]|].
    right. eexists. split_and!; [done|by split|done].
  - destruct Hs as [Hp [->|[Hf ->]]]; [left; split; [apply allows_refl|by repeat constructor]|].
    right. eexists. split_and!; [done|by split|done].
  - destruct Hs as [Hp [->|[Hf ->]]]; [left; split; [apply allows_refl|by repeat constructor]|].
    right. eexists. split_and!; [done|by split|done].
  - left. split; [|by repeat constructor]. destruct Hs as [Hp [->|[Hf ->]]]; [apply allows_refl|].
    destruct (Hc Hp) as (_ & _ & i & Hi & Hl & Hsn). split_and!; [done|done|apply same_disk_refl|].
    intros j ->%elem_of_list_singleton. exists i. split; [done|]. split.
    + intros l v ->%elem_of_list_singleton. apply Hl.
    + cbn. rewrite Hsn. apply same_snaps_refl.
  - left. split; [|by repeat constructor].
    destruct Hs as [[Hp [->|[Hf ->]]] _]; [|rewrite happens_same]; apply allows_refl.
Qed.

(** So too for a request that was cut short. *)
Lemma cut_step p next id e s s1 tr : queues_up e → current p s → answer_of (Event e) = CutShort →
  step p s e s1 → goes p s1 tr → (∀ e tr', tr = e :: tr' → ∃ r, e = Crash r) → goes p s tr ∨
    ∃ a c, steps_of ByRequest next id (Event e) = [Step (next + 0) id false (Event a)] ∧ step p s a c ∧
      devices_after 0 all_good (Event a) = all_good ∧ goes p c tr.
Proof.
  intros Hq Hc Ha Hs Hg Hcr.
  assert (∀ (faults : list code) d (left : list (image V)), power s = true → s1 = cut s (match faults with
      [] => left | _ => [] end) →
    goes p s tr ∨ faults = [] ∧ goes p (happens s d left) tr) as Hres.
  { intros faults d left Hp ->. destruct faults as [|f fs].
    - destruct (cut_resolves p tr (cut s left) s (happens s d left)) as [?|?]; try done; [|by left|by right].
      cbn. intros i d' [Hi|Hi]%elem_of_app Hr; [right|left]; eauto.
    - left. destruct (cut_resolves p tr (cut s []) s s) as [?|?]; try done. cbn. eauto. }
  destruct e as [|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r]; try done;
    cbn in Ha; subst;
    cbn in Hs.
  - destruct Hs as [Hp Heq]. destruct (Hres _ (written (now s) lba data) _ Hp Heq) as [?|[Hf ?]]; [by
      left|right].
    eexists _, _; split_and!; [done| |done|done]. by split.
  - destruct Hs as [Hp Heq]. destruct (Hres _ (written (now s) lba data) _ Hp Heq) as [?|[Hf ?]]; [by
      left|right].
    eexists _, _; split_and!; [done| |done|done]. by split.
  - destruct Hs as [Hp Heq]. destruct (Hres _ (unmapped (now s) lba count) _ Hp Heq) as [?|[Hf ?]]; [by
      left|right].
    eexists _, _; split_and!; [done| |done|done]. by split.
  - destruct Hs as [Hp Heq]. destruct (Hres _ (snapshotted (now s) n) _ Hp Heq) as [?|[Hf ?]]; [by
      left|right].
    eexists _, _; split_and!; [done| |done|done]. by split.
  - destruct Hs as [Hp Heq]. destruct (Hres _ (deleted (now s) n) _ Hp Heq) as [?|[Hf ?]]; [by left|right].
    eexists _, _; split_and!; [done| |done|done]. by split.
  - destruct Hs as [Hp Heq]. destruct (Hres _ (reverted (now s) n) _ Hp Heq) as [?|[Hf ?]]; [by left|right].
    eexists _, _; split_and!; [done| |done|done]. by split.
  - left. destruct Hs as [Hp ->]. destruct (Hc Hp) as (_ & _ & i & Hi & Hl & Hsn).
    destruct (cut_resolves p tr (cut s [exactly (now s)]) s s) as [?|?]; try done. cbn.
    intros j d [->|Hj]%elem_of_cons Hr; left; [|eauto]. exists i. split; [done|].
    destruct Hr as [Hl' Hs']. split; [|by rewrite Hs', <-Hsn].
    intros l. specialize (Hl' l). apply elem_of_list_singleton in Hl' as ->. apply Hl.
  - left. destruct Hs as [[Hp Heq] _].
    destruct (Hres _ (now s) _ Hp Heq) as [?|[_ Hg2]]; [done|]. by rewrite happens_same in Hg2.
Qed.

Lemma stands_none : stands [] [].
Proof. exists [], []. by split_and!. Qed.

Lemma queue_orders M p q h tr q' : queue_run M q h tr q' → ∀ next pending s,
  stands (waiting q) pending → NoDup ((waiting q).*1 ++ served q) → Forall (λ we, queues_up we.2) (waiting
      q) →
  current p s → goes p s tr →
  ∃ es, orders ByRequest next pending h es ∧ runs p 0 all_good s es.
Proof.
  induction 1 as [q|q h1 tr1 q1 h tr q2 Hstep Hrun IH]; intros next pending s Hst Hnd Hq Hc Hg.
  { exists []. split; [constructor|]. eexists. constructor. }
  destruct Hstep as [c c' w d _|c w d id e He Hid|c c' w1 w2 d id e Ha _|c w d1 d2 id|c c' d e Hends _|
    c c' w d r _|c c1 c2 w d id e r Hw Ha _ _]; cbn [serving waiting served app] in *.
  - by apply IH.
  - destruct (IH (next + length (steps_of ByRequest next id (Event e)))
      (pending ++ steps_of ByRequest next id (Event e)) s) as (es & ? & ?); try done.
    + destruct Hst as (xss & rest & Hall & Hrest & Hp).
      exists (xss ++ [steps_of ByRequest next id (Event e)]), rest. split_and!; [|done|].
      * apply Forall2_app; [done|]. repeat constructor. by exists next.
      * rewrite concat_app. cbn. rewrite app_nil_r, Hp. solve_Permutation.
    + rewrite fmap_app. cbn. rewrite <-(assoc_L app). cbn. rewrite <-Permutation_middle.
      by apply NoDup_cons.
    + apply Forall_app. split; [done|]. by constructor.
    + exists es. split; [by apply orders_call|done].
  - apply goes_cons in Hg as (s1 & Hs & Hg).
    apply Forall_app in Hq as [Hq1 [He Hq2]%Forall_cons]. cbn in He.
    assert (current p s1) as Hc1 by (by eapply step_current).
    destruct Hst as (xss & rest & Hall & Hrest & Hp).
    apply Forall2_app_inv_l in Hall as (xss1 & xss' & Hall1 & Hall' & ->).
    apply Forall2_cons_inv_l in Hall' as (xs & xss2 & [n Hxs] & Hall2 & ->). cbn [fst snd] in Hxs.
    assert (NoDup ((w1 ++ w2).*1 ++ id :: d)) as Hnd'.
    { rewrite !fmap_app in *. cbn in Hnd. rewrite <-Permutation_middle in Hnd.
      rewrite <-!(assoc_L app) in *. cbn in Hnd. by rewrite <-!Permutation_middle, (assoc_L app). }
    assert (∀ more, Forall (λ x, due x = false) more →
      stands (w1 ++ w2) (concat (xss1 ++ xss2) ++ rest ++ more)) as Hst'.
    { intros more Hmore. exists (xss1 ++ xss2), (rest ++ more). split_and!; [by apply Forall2_app| |done].
      by apply Forall_app. }
    assert (pending ≡ₚ xs ++ concat (xss1 ++ xss2) ++ rest) as Hpend.
    { rewrite Hp, !concat_app. cbn. solve_Permutation. }
    assert (Forall (λ we : nat * event V, queues_up we.2) (w1 ++ w2)) as Hqw by (by apply Forall_app).
    assert (∀ x a, xs = [x] → takes x = Event a → step p s a s1 →
      devices_after 0 all_good (Event a) = all_good →
      ∃ es, orders ByRequest next pending h es ∧ runs p 0 all_good s es) as Htake.
    { intros x a Hx Hta Hsa Hdev.
      destruct (IH next (concat (xss1 ++ xss2) ++ rest ++ []) s1) as (es & Ho & Hr); try done; [by apply
          Hst'|].
      rewrite app_nil_r in Ho. exists (takes x :: es). split.
      - eapply orders_take; [|done]. by rewrite Hpend, Hx.
      - rewrite Hta. apply runs_cons. exists s1. split; [by left|]. by rewrite Hdev. }
    destruct (sure (answer_of (Event e))) eqn:Hsure.
    + rewrite (one_step n id e) in Hxs by done. eapply Htake; [done|done|done|]. by destruct e.
    + assert (answer_of (Event e) = UnknownOutcome) as Hu by (by destruct (answer_of (Event e))).
      destruct (unknown_step p n id e s s1 He Hc Hu Hs) as [[Hal Hdue]|(a & Hx & Hsa & Hdev)].
      * destruct (IH next (concat (xss1 ++ xss2) ++ rest ++ xs) s1) as (es & Ho & Hr); try done.
        { apply Hst'. by rewrite Hxs. }
        exists es. split; [|by eapply runs_mono]. eapply orders_perm; [done|].
        rewrite Hpend. solve_Permutation.
      * eapply Htake; [by rewrite Hxs|done|done|done].
  - destruct (IH next pending s) as (es & ? & ?); try done.
    { rewrite (assoc_L app), <-Permutation_middle, <-(assoc_L app) in Hnd. by apply NoDup_cons in Hnd as [_
        ?]. }
    exists es. split; [|done]. apply orders_answer; [|done]. unfold settled. rewrite Forall_forall.
    intros x Hx Hdue Hof. destruct Hst as (xss & rest & Hall & Hrest & Hp). rewrite Hp in Hx.
    apply elem_of_app in Hx as [Hx|Hx]; [|rewrite Forall_forall in Hrest; specialize (Hrest x Hx);
        congruence].
    apply elem_of_list_In, in_concat in Hx as (xs & Hxs%elem_of_list_In & Hx%elem_of_list_In).
    apply elem_of_list_lookup in Hxs as [i Hxs].
    destruct (Forall2_lookup_r _ _ _ _ _ Hall Hxs) as ([id' e] & Hw & n & ->). cbn [fst snd] in *.
    assert (of x = id') as Hid.
    { unfold steps_of in Hx. destruct e; try (by apply elem_of_nil in Hx);
        by apply elem_of_lookup_imap in Hx as (? & ? & -> & _). }
    rewrite Hof in Hid. subst id'. apply NoDup_app in Hnd as (_ & Hdis & _). apply (Hdis id).
    + apply elem_of_list_fmap. exists (id, e). split; [done|]. by eapply elem_of_list_lookup_2.
    + apply elem_of_app. right. left.
  - apply goes_cons in Hg as (s1 & Hs & Hg).
    destruct (IH next pending s1) as (es & ? & ?); try done; [by eapply step_current|].
    exists (Event e :: es). split.
    + apply orders_alone. by rewrite Hends.
    + apply runs_cons. exists s1. split; [by left|]. by destruct e.
  - apply goes_cons in Hg as (s1 & Hs & Hg).
    destruct (IH next [] s1) as (es & ? & ?); try done;
      [apply stands_none|constructor|by eapply step_current|].
    exists (Event (Crash r) :: es). split; [by apply orders_alone|].
    apply runs_cons. exists s1. split; [by left|done].
  - apply goes_cons in Hg as (s1 & Hs & Hg).
    assert (queues_up e) as He by (rewrite Forall_forall in Hq; by eapply (Hq (id, e))).
    destruct Hst as (xss & rest & Hall & Hrest & Hp).
    apply elem_of_list_split in Hw as (w1 & w2 & ->).
    apply Forall2_app_inv_l in Hall as (xss1 & xss' & Hall1 & Hall' & ->).
    apply Forall2_cons_inv_l in Hall' as (xs & xss2 & [n Hxs] & Hall2 & ->). cbn [fst snd] in Hxs.
    assert (∀ t, current p t → goes p t (Crash r :: tr) →
      ∀ pending', ∃ es, orders ByRequest next pending' (Alone (Event (Crash r)) :: h) es ∧
        runs p 0 all_good t es) as Hcrash.
    { intros t Ht (t1 & Hs1 & Hg1)%goes_cons pending'.
      destruct (IH next [] t1) as (es & ? & ?); try done;
        [apply stands_none|constructor|by eapply step_current|].
      exists (Event (Crash r) :: es). split; [by apply orders_alone|].
      apply runs_cons. exists t1. split; [by left|done]. }
    destruct (cut_step p n id e s s1 (Crash r :: tr)) as [Hgo|(a & c0 & Hx & Hsa & Hdev & Hgo)]; try done.
    { intros e' tr' [= <- _]. eauto. }
    + by apply Hcrash.
    + destruct (Hcrash c0 ltac:(by eapply step_current) Hgo (concat (xss1 ++ xss2) ++ rest)) as (es & Ho &
        Hr).
      exists (Event a :: es). split.
      * change (Event a) with (takes (Step (n + 0) id false (Event a))). eapply orders_take; [|done].
        rewrite Hp, !concat_app. cbn. rewrite Hxs, Hx. solve_Permutation.
      * apply runs_cons. exists c0. split; [by left|]. by rewrite Hdev.
Qed.

Lemma queue_shows M q h tr q' : queue_run M q h tr q' → shows M (serving q) tr (serving q').
Proof.
  assert (∀ c tr c' tr' c'', shows M c tr c' → shows M c' tr' c'' → shows M c (tr ++ tr') c'') as Happ.
  { induction 1 as [|c es c1 tr0 c2 Hm _ IH]; [done|]. intros Hs. rewrite <-(assoc_L app).
    econstructor; [done|]. by apply IH. }
  induction 1 as [q|q h1 tr1 q1 h tr q2 Hstep _ IH]; [constructor|]. eapply Happ; [|exact IH].
  destruct Hstep; cbn; try constructor; try (rewrite <-(app_nil_r [_]); econstructor; [done|constructor]).
  - rewrite <-(app_nil_r []). econstructor; [done|constructor].
  - change [e; Crash r] with ([e] ++ [Crash r]). by econstructor.
Qed.

(** Whatever implements the contract, behind a queue, implements the contract for requests that overlap. *)
Theorem queue_implements M p blocks c h tr q : implements M p → fresh M blocks c →
  queue_run M (Queue c [] []) h tr q → admits_overlapping ByRequest p 0 (Alone (Event (Create blocks)) :: h).
Proof.
  intros HM Hc Hrun. destruct (HM _ _ _ _ Hc (queue_shows _ _ _ _ _ Hrun)) as (b & rest & s & Heq & Hr).
  injection Heq as <- <-.
  destruct (queue_orders M p _ _ _ _ Hrun 0 [] (created blocks)) as (es & Ho & s' & Hes);
    [apply stands_none|constructor|constructor|apply current_exactly|by eexists|].
  exists blocks, h, (Event (Create blocks) :: es). split_and!; [done|by apply orders_alone|].
  by exists blocks, es, s'.
Qed.

(** ** Several events in one step *)

(** Where the power cuts several writes, they show as of unknown outcome. In a history this is the same as cut
short: it gives the same steps. *)
Lemma unknown_is_cut g next id lba data :
  steps_of g next id (Event (Write (V := V) lba data UnknownOutcome)) =
  steps_of g next id (Event (Write lba data CutShort)).
Proof. done. Qed.

Inductive one_move (M : implementation V) : inside M * list (event V) → list (event V) →
    inside M * list (event V) → Prop :=
  | goes_on c es c' : moves M c es c' → one_move M (c, []) [] (c', es)
  | tells c e es : one_move M (c, e :: es) [e] (c, es).

Definition one_by_one (M : implementation V) : implementation V :=
  Implementation (inside M * list (event V)) (λ n x, fresh M n x.1 ∧ x.2 = []) (one_move M).

(** The queue in front of a disk. *)
Definition in_front (M : implementation V) (c : inside M) : queue (one_by_one M) :=
  Queue (M := one_by_one M) (c, []) [] [].

(** What is not told yet could be told. *)
Lemma one_by_one_shows M x tr x' : shows (one_by_one M) x tr x' →
  ∃ tr', shows M x.1 tr' x'.1 ∧ x.2 ++ tr' = tr ++ x'.2.
Proof.
  induction 1 as [x|x es x1 tr x2 Hm _ (tr'&Hs&Heq)]; [exists []; split; [constructor|by rewrite app_nil_r]|].
  destruct Hm as [c es c1 Hm|c e es]; simpl in *.
  - exists (es ++ tr'). split; [by econstructor|done].
  - exists tr'. split; [done|]. by rewrite Heq.
Qed.

Lemma one_by_one_implements M p : implements M p → implements (one_by_one M) p.
Proof.
  intros HM n [c es] tr x' [Hc Hes] (tr'&Hs&Heq)%one_by_one_shows. simpl in *. subst es.
  destruct (HM n c tr' _ Hc Hs) as (n'&rest&s&[= <- <-]&Hrun). simpl in Heq. rewrite Heq in Hrun.
  apply run_app in Hrun as (s'&Hrun&_). by exists n, tr, s'.
Qed.

End Queue.
