(** A queue: whatever implements the contract, run one request at a time behind a queue, implements the
contract for requests that overlap. Servers need this, and nothing more, of the disk that they serve.

A request that is called waits; the disk serves one that waits; then it may be answered. Whatever is not
called takes effect when the disk shows it, while others may wait: a power cut, an operation on a device, or a
request that is sent alone. When the power fails, the disk was serving a request, or none; those that wait are
lost. The answer of a request that was served may be lost too. As everywhere, a call says already how it will
be answered.

A disk may perform several requests at once, and then show several entries in one step. [one_by_one] tells
them one after the other, so the queue is in front of such disks too.

The disk is any [recorded_implementation]: one device, or a leg of several that fail meanwhile. *)
From LogDisk Require Import VirtualDisk VirtualDiskProperties RecordedTrace RecordedImplementation
  CheckerCorrect.
From LogDisk Require Import OverlappingDisk OverlappingDiskChecker OverlappingDiskSwaps OverlappingDiskOrders.

Section Queue.
Context {V : Type} `{EqDecision V, Value V}.
Implicit Types (e : event V) (en : entry V) (s : state V) (v : devices).
Implicit Types (h : list (moment V)) (tr : list (entry V)).

(** A request that may be in flight together with others. *)
Definition queues_up e : Prop :=
  match e with Create _ | Crash _ | Restart _ => False | _ => True end.

(** The request, as it is called if it is never answered. *)
Definition unanswered e : event V :=
  match e with
  | Write lba data _ => Write lba data CutShort
  | WriteThrough lba data told _ => WriteThrough lba data told CutShort
  | Unmap lba count _ => Unmap lba count CutShort
  | Snapshot n _ => Snapshot n CutShort
  | Delete n _ => Delete n CutShort
  | Revert n _ => Revert n CutShort
  | Flush _ => Flush CutShort
  | Read from lba count _ _ => Read from lba count CutShort []
  | e => e
  end.

Record queue (M : recorded_implementation V) := Queue {
  serving : recorded_inside M;
  waiting : list (nat * event V);
  served : list nat;
}.
Global Arguments Queue {M} _ _ _. Global Arguments serving {M} _.
Global Arguments waiting {M} _. Global Arguments served {M} _.

(** One step of the queue: what it shows outside, and what the disk behind it shows to the queue. *)
Inductive queue_step (M : recorded_implementation V) :
    queue M → list (moment V) → list (entry V) → queue M → Prop :=
  | queue_inside c c' w d : recorded_moves M c [] c' → queue_step M (Queue c w d) [] [] (Queue c' w d)
  | queue_call c w d id e : queues_up e → id ∉ w.*1 ++ d →
      queue_step M (Queue c w d) [Called id (Event e)] [] (Queue c (w ++ [(id, e)]) d)
  | queue_serve c c' w1 w2 d id e : answer_of (Event e) ≠ CutShort → recorded_moves M c [Event e] c' →
      queue_step M (Queue c (w1 ++ (id, e) :: w2) d) [] [Event e] (Queue c' (w1 ++ w2) (id :: d))
  | queue_serve_unanswered c c' w1 w2 d id e :
      answer_of (Event e) ≠ CutShort → recorded_moves M c [Event e] c' →
      queue_step M (Queue c (w1 ++ (id, unanswered e) :: w2) d) [] [Event e] (Queue c' (w1 ++ w2) d)
  | queue_answer c w d1 d2 id :
      queue_step M (Queue c w (d1 ++ id :: d2)) [Answered id] [] (Queue c w (d1 ++ d2))
  | queue_alone c c' w d en : recorded_moves M c [en] c' →
      queue_step M (Queue c w d) [Alone en] [en] (if ends en then Queue c' [] [] else Queue c' w d)
  | queue_cut_serving c c1 c2 w d id e r : (id, e) ∈ w → answer_of (Event e) = CutShort →
      recorded_moves M c [Event e] c1 → recorded_shows M c1 [Event (Crash r)] c2 →
      queue_step M (Queue c w d) [Alone (Event (Crash r))] [Event e; Event (Crash r)] (Queue c2 [] []).

Inductive queue_run (M : recorded_implementation V) (q : queue M) :
    list (moment V) → list (entry V) → queue M → Prop :=
  | queue_idle : queue_run M q [] [] q
  | queue_more h1 tr1 q1 h tr q2 : queue_step M q h1 tr1 q1 → queue_run M q1 h tr q2 →
      queue_run M q (h1 ++ h) (tr1 ++ tr) q2.

(** What waits, as steps; and steps of unknown outcome that were not taken. *)
Definition stands (w : list (nat * event V)) (pending : list (step_of V)) : Prop :=
  ∃ xss rest, Forall2 (λ we xs, ∃ n, xs = steps_of ByRequest n we.1 (Event we.2)) w xss ∧
    Forall (λ x, due x = false) rest ∧ pending ≡ₚ concat xss ++ rest.

(** A power cut that cuts a request short: it happened or it did not, and one of the two explains the rest. *)
Lemma cut_resolves p t v tr : ∀ a b c, power a = false → size a = size b → size a = size c →
  (∀ i d, i ∈ survivors a → resolves i d →
    (∃ j, j ∈ survivors b ∧ resolves j d) ∨ (∃ j, j ∈ survivors c ∧ resolves j d)) →
  runs p t v a tr → (∀ en tr', tr = en :: tr' → ∃ r, en = Event (Crash r)) →
  runs p t v b tr ∨ runs p t v c tr.
Proof.
  induction tr as [|en tr IH]; intros a b c Hp Hzb Hzc Hi Hg Hcr; [left; eexists; constructor|].
  apply runs_cons in Hg as (s1 & Hs & Hg). destruct (Hcr en tr eq_refl) as [r ->]. clear Hcr.
  destruct Hs as [Hs|[]]. rewrite !runs_cons. destruct r; cbn in Hs; try done.
  - destruct Hs as (i & d & Hin & Hr & ->).
    destruct (Hi i d Hin Hr) as [(j & ? & ?)|(j & ? & ?)];
      [left|right]; eexists; (split; [|exact Hg]); left; exists j, d; [by rewrite Hzb|by rewrite Hzc].
  - subst s1. cbn in Hg. destruct tr as [|en2 tr2].
    { left. eexists. split; [by left|]. by eexists; constructor. }
    assert ((∃ r, en2 = Event (Crash r)) ∨ ∃ n, en2 = Event (Create n)) as Hen2.
    { apply runs_cons in Hg as (s2 & Hs2 & _). destruct en2 as [e2|? ?|? ?|? ?|?|?];
        [|by destruct Hs2 as [[=] _]..].
      destruct Hs2 as [Hs2|Hl].
      - destruct e2; cbn in Hs2; eauto; try (by destruct Hs2 as [[=] _]); by destruct Hs2 as [[[=] _] _].
      - destruct e2 as [| | | | | | | | |? ? ? [|[]| |] ?|]; try done. by destruct Hl as (_ & [=] & _). }
    destruct Hen2 as [[r2 ->]|[n ->]].
    + assert (runs p t v (cut b []) (Event (Crash r2) :: tr2) ∨
        runs p t v (cut c []) (Event (Crash r2) :: tr2)) as [?|?].
      { apply (IH (cut a [])); try done. intros en tr' [= <- _]. eauto. }
      * left. eexists. split; [by left|done].
      * right. eexists. split; [by left|done].
    + left. eexists. split; [by left|]. apply runs_cons in Hg as (s2 & Hs2 & Hg).
      apply runs_cons. exists s2. split; [exact Hs2|done].
Qed.

Lemma one_step next id e : queues_up e → sure (answer_of (Event e)) = true →
  steps_of ByRequest next id (Event e) = [Step (next + 0) id true (Event e)].
Proof. intros Hq Hs. unfold steps_of, parts. rewrite Hs. destruct e as [| | | | | | |r|r|? ? ? r ?|r];
  try done;
  by destruct r. Qed.

(** A request that was served, and whose call says that it is never answered: it happened, or what followed
may follow as well without it. *)
Lemma unanswered_step p t v next id e s s1 : queues_up e → current p s → answer_of (Event e) ≠ CutShort →
  entry_step p t v s (Event e) s1 → let called := steps_of ByRequest next id (Event (unanswered e)) in
  allows s1 s ∧ Forall (λ x, due x = false) called ∨
    ∃ a, called = [Step (next + 0) id false (Event a)] ∧ entry_step p t v s (Event a) s1 ∧
      devices_after t v (Event a) = v.
Proof.
  intros Hq Hc Ha Hs called.
  assert (s1 = s → Forall (λ x, due x = false) called →
    allows s1 s ∧ Forall (λ x, due x = false) called) as Hstay
    by (intros ->; split; [apply allows_refl|done]).
  destruct e as [|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r]; try done;
    subst called; cbn in Ha.
  1-6: destruct Hs as [Hs|[]]; destruct r as [|f| |];
    [right; eexists; split_and!; [done|left; exact Hs|done]
    |left; apply Hstay; [by destruct Hs as [_ [_ ?]]|by repeat constructor]
    |destruct Hs as [Hp [->|[Hf ->]]];
      [left; apply Hstay; [done|by repeat constructor]
      |right; eexists; split_and!; [done|left; by split|done]]
    |done].
  - left. destruct Hs as [[Hp Hs]|[]].
    assert (s1 = s ∨ s1 = happens s (now s) [exactly (now s)]) as [->| ->]
      by (destruct r; naive_solver); [apply Hstay; [done|by repeat constructor]|].
    split; [|by repeat constructor]. destruct (Hc Hp) as (_ & _ & i & Hi & Hl & Hsn).
    split_and!; [done|done|apply same_disk_refl|].
    intros j ->%elem_of_list_singleton. exists i. split; [done|]. split.
    + intros l w ->%elem_of_list_singleton. apply Hl.
    + cbn. rewrite Hsn. apply same_snaps_refl.
  - left. apply Hstay; [|by repeat constructor]. destruct Hs as [[[Hp Hs] _]|Hs].
    + rewrite happens_same in Hs. destruct r; naive_solver.
    + destruct r as [|[]| |]; try done. by destruct Hs as (_ & _ & ->).
Qed.

(** In a history an unknown outcome is the same as no answer: it gives the same steps. *)
Lemma unknown_is_unanswered g next id e : answer_of (Event e) = UnknownOutcome →
  queues_up e → steps_of g next id (Event e) = steps_of g next id (Event (unanswered e)).
Proof. intros Ha Hq. destruct e; try done; cbn in Ha; by subst. Qed.

(** So too for a request that was cut short. *)
Lemma cut_step p t v next id e s s1 tr : queues_up e → current p s → answer_of (Event e) = CutShort →
  entry_step p t v s (Event e) s1 → runs p t v s1 tr →
  (∀ en tr', tr = en :: tr' → ∃ r, en = Event (Crash r)) → runs p t v s tr ∨
    ∃ a c, steps_of ByRequest next id (Event e) = [Step (next + 0) id false (Event a)] ∧ step p s a c ∧
      devices_after t v (Event a) = v ∧ runs p t v c tr.
Proof.
  intros Hq Hc Ha Hs Hg Hcr.
  assert (step p s e s1) as Hs' by (destruct Hs as [?|?]; [done|]; destruct e; try done; cbn in Ha; by subst).
  clear Hs. rename Hs' into Hs.
  assert (∀ (faults : list code) d (left : list (image V)), power s = true → s1 = cut s (match faults with
      [] => left | _ => [] end) →
    runs p t v s tr ∨ faults = [] ∧ runs p t v (happens s d left) tr) as Hres.
  { intros faults d left Hp ->. destruct faults as [|f fs].
    - destruct (cut_resolves p t v tr (cut s left) s (happens s d left)) as [?|?]; try done;
      [|by left|by right].
      cbn. intros i d' [Hi|Hi]%elem_of_app Hr; [right|left]; eauto.
    - left. destruct (cut_resolves p t v tr (cut s []) s s) as [?|?]; try done. cbn. eauto. }
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
    destruct (cut_resolves p t v tr (cut s [exactly (now s)]) s s) as [?|?]; try done. cbn.
    intros j d [->|Hj]%elem_of_cons Hr; left; [|eauto]. exists i. split; [done|].
    destruct Hr as [Hl' Hs']. split; [|by rewrite Hs', <-Hsn].
    intros l. specialize (Hl' l). apply elem_of_list_singleton in Hl' as ->. apply Hl.
  - left. destruct Hs as [[Hp Heq] _].
    destruct (Hres _ (now s) _ Hp Heq) as [?|[_ Hg2]]; [done|]. by rewrite happens_same in Hg2.
Qed.

Lemma stands_none : stands [] [].
Proof. exists [], []. by split_and!. Qed.

Lemma queue_orders M p t q h tr q' : queue_run M q h tr q' → ∀ next pending v s,
  stands (waiting q) pending → NoDup ((waiting q).*1 ++ served q) → Forall (λ we, queues_up we.2) (waiting
      q) →
  current p s → runs p t v s tr → ∃ es, orders ByRequest next pending h es ∧ runs p t v s es.
Proof.
  induction 1 as [q|q h1 tr1 q1 h tr q2 Hstep Hrun IH]; intros next pending v s Hst Hnd Hq Hc Hg.
  { exists []. split; [constructor|]. eexists. constructor. }
  (* A request that waits, called as [told], is served as [e]. *)
  assert (∀ c c' w1 w2 d d' id e told, q = Queue c (w1 ++ (id, told) :: w2) d → q1 = Queue c' (w1 ++ w2) d' →
    h1 = [] → tr1 = [Event e] → answer_of (Event e) ≠ CutShort → queues_up e →
    told = e ∨ told = unanswered e → NoDup ((w1 ++ w2).*1 ++ d') →
    ∃ es, orders ByRequest next pending (h1 ++ h) es ∧ runs p t v s es) as Hserve.
  { clear Hstep. intros c c' w1 w2 d d' id e told -> -> -> -> Ha He Htold Hnd'.
    cbn [serving waiting served app] in *. apply runs_cons in Hg as (s1 & Hs & Hg).
    replace (devices_after t v (Event e)) with v in Hg by (by destruct e).
    apply Forall_app in Hq as [Hq1 [_ Hq2]%Forall_cons].
    assert (current p s1) as Hc1 by (by eapply entry_current).
    destruct Hst as (xss & rest & Hall & Hrest & Hp).
    apply Forall2_app_inv_l in Hall as (xss1 & xss' & Hall1 & Hall' & ->).
    apply Forall2_cons_inv_l in Hall' as (xs & xss2 & [n Hxs] & Hall2 & ->). cbn [fst snd] in Hxs.
    assert (∀ more, Forall (λ x, due x = false) more →
      stands (w1 ++ w2) (concat (xss1 ++ xss2) ++ rest ++ more)) as Hst'.
    { intros more Hmore. exists (xss1 ++ xss2), (rest ++ more). split_and!; [by apply Forall2_app| |done].
      by apply Forall_app. }
    assert (pending ≡ₚ xs ++ concat (xss1 ++ xss2) ++ rest) as Hpend.
    { rewrite Hp, !concat_app. cbn. solve_Permutation. }
    assert (Forall (λ we : nat * event V, queues_up we.2) (w1 ++ w2)) as Hqw by (by apply Forall_app).
    assert (∀ x a, xs = [x] → takes x = Event a → entry_step p t v s (Event a) s1 →
      devices_after t v (Event a) = v →
      ∃ es, orders ByRequest next pending h es ∧ runs p t v s es) as Htake.
    { intros x a Hx Hta Hsa Hdev.
      destruct (IH next (concat (xss1 ++ xss2) ++ rest ++ []) v s1) as (es & Ho & Hr); try done; [by apply
          Hst'|].
      rewrite app_nil_r in Ho. exists (takes x :: es). split.
      - eapply orders_take; [|done]. by rewrite Hpend, Hx.
      - rewrite Hta. apply runs_cons. exists s1. by rewrite Hdev. }
    assert (told = e ∧ sure (answer_of (Event e)) = true ∨
      xs = steps_of ByRequest n id (Event (unanswered e))) as [[-> Hsure]|Hxs'].
    { destruct Htold as [->| ->]; [|by right]. destruct (answer_of (Event e)) eqn:Hans; try done; try by left.
      right. rewrite Hxs. by apply unknown_is_unanswered. }
    { rewrite (one_step n id e) in Hxs by done. eapply Htake; [done|done|done|]. by destruct e. }
    destruct (unanswered_step p t v n id e s s1 He Hc Ha Hs) as [[Hal Hdue]|(a & Hx & Hsa & Hdev)].
    - destruct (IH next (concat (xss1 ++ xss2) ++ rest ++ xs) v s1) as (es & Ho & Hr); try done.
      { apply Hst'. by rewrite Hxs'. }
      exists es. split; [|by eapply runs_mono]. eapply orders_perm; [done|].
      rewrite Hpend. solve_Permutation.
    - eapply Htake; [by rewrite Hxs'|done|done|done]. }
  destruct Hstep as [c c' w d _|c w d id e He Hid|c c' w1 w2 d id e Ha _|c c' w1 w2 d id e Ha _
    |c w d1 d2 id|c c' w d en _|c c1 c2 w d id e r Hw Ha _ _]; cbn [serving waiting served app] in *.
  - by apply IH.
  - destruct (IH (next + length (steps_of ByRequest next id (Event e)))
      (pending ++ steps_of ByRequest next id (Event e)) v s) as (es & ? & ?); try done.
    + destruct Hst as (xss & rest & Hall & Hrest & Hp).
      exists (xss ++ [steps_of ByRequest next id (Event e)]), rest. split_and!; [|done|].
      * apply Forall2_app; [done|]. repeat constructor. by exists next.
      * rewrite concat_app. cbn. rewrite app_nil_r, Hp. solve_Permutation.
    + rewrite fmap_app. cbn. rewrite <-(assoc_L app). cbn. rewrite <-Permutation_middle.
      by apply NoDup_cons.
    + apply Forall_app. split; [done|]. by constructor.
    + exists es. split; [by apply orders_call|done].
  - apply (Hserve c c' w1 w2 d (id :: d) id e e); try done; [|by left|].
    + by apply Forall_app in Hq as [_ [? _]%Forall_cons].
    + rewrite !fmap_app in *. cbn in Hnd. rewrite <-Permutation_middle in Hnd.
      rewrite <-!(assoc_L app) in *. cbn in Hnd. by rewrite <-!Permutation_middle, (assoc_L app).
  - apply (Hserve c c' w1 w2 d d id e (unanswered e)); try done; [|by right|].
    + apply Forall_app in Hq as [_ [He _]%Forall_cons]. by destruct e.
    + rewrite !fmap_app in *. cbn in Hnd. rewrite <-Permutation_middle in Hnd.
      by apply NoDup_cons in Hnd as [_ ?].
  - destruct (IH next pending v s) as (es & ? & ?); try done.
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
  - apply runs_cons in Hg as (s1 & Hs & Hg). assert (current p s1) by (by eapply entry_current).
    assert (∃ es, orders ByRequest next (if ends en then [] else pending) h es ∧
      runs p t (devices_after t v en) s1 es) as (es & Ho & Hr).
    { destruct (ends en); [|by apply IH]. apply IH; try done; [apply stands_none|constructor|constructor]. }
    exists (en :: es). split; [by apply orders_alone|]. apply runs_cons. by exists s1.
  - apply runs_cons in Hg as (s1 & Hs & Hg).
    assert (queues_up e) as He by (rewrite Forall_forall in Hq; by eapply (Hq (id, e))).
    replace (devices_after t v (Event e)) with v in Hg by (by destruct e).
    destruct Hst as (xss & rest & Hall & Hrest & Hp).
    apply elem_of_list_split in Hw as (w1 & w2 & ->).
    apply Forall2_app_inv_l in Hall as (xss1 & xss' & Hall1 & Hall' & ->).
    apply Forall2_cons_inv_l in Hall' as (xs & xss2 & [n Hxs] & Hall2 & ->). cbn [fst snd] in Hxs.
    assert (∀ s0, current p s0 → runs p t v s0 (Event (Crash r) :: tr) →
      ∀ pending', ∃ es, orders ByRequest next pending' (Alone (Event (Crash r)) :: h) es ∧
        runs p t v s0 es) as Hcrash.
    { intros s0 Hs0 (s2 & Hs2 & Hg2)%runs_cons pending'.
      destruct (IH next [] v s2) as (es & ? & ?); try done;
        [apply stands_none|constructor|by eapply entry_current|].
      exists (Event (Crash r) :: es). split; [by apply orders_alone|]. apply runs_cons. by exists s2. }
    destruct (cut_step p t v n id e s s1 (Event (Crash r) :: tr)) as [Hgo|(a & c0 & Hx & Hsa & Hdev & Hgo)];
      try done.
    { intros en tr' [= <- _]. eauto. }
    + by apply Hcrash.
    + destruct (Hcrash c0 ltac:(by eapply step_current) Hgo (concat (xss1 ++ xss2) ++ rest)) as (es & Ho &
        Hr).
      exists (Event a :: es). split.
      * change (Event a) with (takes (Step (n + 0) id false (Event a))). eapply orders_take; [|done].
        rewrite Hp, !concat_app. cbn. rewrite Hxs, Hx. solve_Permutation.
      * apply runs_cons. exists c0. split; [by left|]. by rewrite Hdev.
Qed.

Lemma queue_shows M q h tr q' : queue_run M q h tr q' → recorded_shows M (serving q) tr (serving q').
Proof.
  induction 1 as [q|q h1 tr1 q1 h tr q2 Hstep _ IH]; [constructor|].
  eapply recorded_shows_app; [|exact IH]. destruct Hstep as [| | | | |c c' w d en Hm|]; cbn;
    try constructor; try by apply recorded_shows_one.
  - destruct (ends en); by apply recorded_shows_one.
  - change [Event e; Event (Crash r)] with ([Event e] ++ [Event (Crash r)]). by econstructor.
Qed.

(** Whatever implements the contract, behind a queue, implements the contract for requests that overlap. *)
Theorem queue_implements M p tolerates blocks c h tr q :
  implements_recorded M p tolerates → recorded_fresh M blocks c → queue_run M (Queue c [] []) h tr q →
  admits_overlapping ByRequest p tolerates (Alone (Event (Create blocks)) :: h).
Proof.
  intros HM Hc Hrun. destruct (HM _ _ _ _ Hc (queue_shows _ _ _ _ _ Hrun)) as (b & rest & s & Heq & Hr).
  injection Heq as <- <-.
  destruct (queue_orders M p tolerates _ _ _ _ Hrun 0 [] all_good (created blocks)) as (es & Ho & s' & Hes);
    [apply stands_none|constructor|constructor|apply current_exactly|by eexists|].
  exists blocks, h, (Event (Create blocks) :: es). split_and!; [done|by apply orders_alone|].
  by exists blocks, es, s'.
Qed.

(** ** Several entries in one step *)

Inductive one_move (M : recorded_implementation V) : recorded_inside M * list (entry V) → list (entry V) →
    recorded_inside M * list (entry V) → Prop :=
  | goes_on c es c' : recorded_moves M c es c' → one_move M (c, []) [] (c', es)
  | tells c en es : one_move M (c, en :: es) [en] (c, es).

Definition one_by_one (M : recorded_implementation V) : recorded_implementation V :=
  RecordedImplementation (recorded_inside M * list (entry V)) (λ n x, recorded_fresh M n x.1 ∧ x.2 = [])
    (one_move M).

(** The queue in front of a disk. *)
Definition in_front (M : recorded_implementation V) (c : recorded_inside M) : queue (one_by_one M) :=
  Queue (M := one_by_one M) (c, []) [] [].

(** What is not told yet could be told. *)
Lemma one_by_one_shows M x tr x' : recorded_shows (one_by_one M) x tr x' →
  ∃ tr', recorded_shows M x.1 tr' x'.1 ∧ x.2 ++ tr' = tr ++ x'.2.
Proof.
  induction 1 as [x|x es x1 tr x2 Hm _ (tr'&Hs&Heq)]; [exists []; split; [constructor|by rewrite app_nil_r]|].
  destruct Hm as [c es c1 Hm|c en es]; simpl in *.
  - exists (es ++ tr'). split; [by econstructor|done].
  - exists tr'. split; [done|]. by rewrite Heq.
Qed.

Lemma recorded_run_begins p t v s tr tr' s' :
  recorded_run p t v s (tr ++ tr') s' → ∃ s1, recorded_run p t v s tr s1.
Proof.
  revert v s. induction tr as [|en tr IH]; intros v s Hrun; [eexists; constructor|].
  inversion Hrun as [|? ? ? ? Hs Hr]; subst. destruct (IH _ _ Hr) as [s1 ?]. exists s1. by econstructor.
Qed.

Lemma one_by_one_implements M p t : implements_recorded M p t → implements_recorded (one_by_one M) p t.
Proof.
  intros HM n [c es] tr x' [Hc Hes] (tr'&Hs&Heq)%one_by_one_shows. simpl in *. subst es.
  destruct (HM n c tr' _ Hc Hs) as (n'&rest&s&[= <- <-]&Hrun). simpl in Heq. rewrite Heq in Hrun.
  apply recorded_run_begins in Hrun as [s' ?]. by exists n, tr, s'.
Qed.

(** ** Exactly what implements the contract *)

Definition implements_overlapping (M : recorded_implementation V) p tolerates : Prop :=
  ∀ blocks c h tr q, recorded_fresh M blocks c → queue_run (one_by_one M) (in_front M c) h tr q →
    admits_overlapping ByRequest p tolerates (Alone (Event (Create blocks)) :: h).

(** Requests that are sent alone have one order. *)
Lemma alone_orders g next (es es' : list (entry V)) : orders g next [] (Alone <$> es) es' → es' = es.
Proof.
  revert es'. induction es as [|en es IH]; intros es' Ho; inversion Ho as
    [|x rest h es1 Hx|id en1 h es1|id h es1|en1 h es1 Hrest]; subst; try done;
    try by apply Permutation_nil_cons in Hx.
  f_equal. apply IH. by destruct (ends en).
Qed.

Lemma admits_alone g p tolerates tr :
  admits_overlapping g p tolerates (Alone <$> tr) → admits_recorded p tolerates tr.
Proof. intros (blocks&rest&es&_&Ho&Had). by apply alone_orders in Ho as ->. Qed.

Lemma alone_run M c tr c' : recorded_shows M c tr c' →
  queue_run (one_by_one M) (in_front M c) (Alone <$> tr) tr (in_front M c').
Proof.
  induction 1 as [c|c es c1 tr c2 Hm _ IH]; [constructor|]. rewrite fmap_app.
  apply (queue_more _ _ [] [] (Queue (M := one_by_one M) (c1, es) [] [])); [by constructor; constructor|].
  clear Hm. induction es as [|en es IHes]; [done|].
  apply (queue_more _ _ [Alone en] [en] (Queue (M := one_by_one M) (c1, es) [] [])); [|done].
  pose proof (queue_alone (one_by_one M) (c1, en :: es) (c1, es) [] [] en (tells _ _ _ _)) as Halone.
  by destruct (ends en).
Qed.

(** Behind a queue a disk implements the contract for requests that overlap if and only if it implements the
contract. *)
Theorem queue_exact M p tolerates : implements_overlapping M p tolerates ↔ implements_recorded M p tolerates.
Proof.
  split.
  - intros Hall blocks c tr c' Hc Htr%alone_run.
    apply (admits_alone ByRequest). by apply (Hall _ _ _ _ _ Hc Htr).
  - intros HM blocks c h tr q Hc. by apply queue_implements; [apply one_by_one_implements|].
Qed.

End Queue.
