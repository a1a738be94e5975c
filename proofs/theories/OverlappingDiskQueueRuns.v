(** What a queue in front of a disk may show, computed from what the disk shows: a script says when requests
are called, which of those that wait is served next, and when it is answered. *)
From stdpp Require Import list.
From LogDisk Require Import VirtualDisk RecordedTrace RecordedImplementation OverlappingDisk
  OverlappingDiskQueue.

Global Instance event_eq_dec {V} `{EqDecision V} : EqDecision (event V) := ltac:(solve_decision).
Global Instance queues_up_dec {V} (e : event V) : Decision (queues_up e).
Proof. destruct e; apply _. Defined.

(** A request that waits, or was served, is named by its position. *)
Inductive queue_act {V : Type} :=
  | Calls (id : nat) (e : event V)
  | Serves (k : nat)
  | ServesUnanswered (k : nat)       (* and its answer is lost *)
  | CutsServing (k : nat)            (* the power fails while it is served *)
  | Answers (k : nat)
  | Tells.                           (* what is not called: the next entry that the disk shows *)
Global Arguments queue_act : clear implicits.

Section Acts.
Context {V : Type} `{EqDecision V, Value V}.
Implicit Types (e : event V) (w : list (nat * event V)) (d : list nat) (tr : list (entry V)).
Implicit Types (h : list (moment V)).

(** The history, if the disk shows [tr] meanwhile; nothing if the queue cannot do as the script says. *)
Fixpoint acted (acts : list (queue_act V)) w d tr : option (list (moment V)) :=
  match acts, tr with
  | [], [] => Some []
  | Calls id e :: acts, tr =>
      if decide (queues_up e ∧ id ∉ w.*1 ++ d) then
        (Called id (Event e) ::.) <$> acted acts (w ++ [(id, e)]) d tr
      else None
  | Serves k :: acts, Event e :: tr =>
      '(id, told) ← w !! k;
      if decide (told = e ∧ answer_of (Event e) ≠ CutShort) then acted acts (delete k w) (id :: d) tr
      else None
  | ServesUnanswered k :: acts, Event e :: tr =>
      '(id, told) ← w !! k;
      if decide (told = unanswered e ∧ answer_of (Event e) ≠ CutShort) then acted acts (delete k w) d tr
      else None
  | CutsServing k :: acts, Event e :: Event (Crash r) :: tr =>
      '(id, told) ← w !! k;
      if decide (told = e ∧ answer_of (Event e) = CutShort) then
        (Alone (Event (Crash r)) ::.) <$> acted acts [] [] tr
      else None
  | Answers k :: acts, tr => id ← d !! k; (Answered id ::.) <$> acted acts w (delete k d) tr
  | Tells :: acts, en :: tr =>
      (Alone en ::.) <$> (if ends en then acted acts [] [] tr else acted acts w d tr)
  | _, _ => None
  end.

Context (M : recorded_implementation V).
Local Notation told := (one_by_one M).
Local Notation waits x w d := (Queue (M := told) x w d).

Lemma told_shows c tr c' : recorded_shows M c tr c' → recorded_shows told (c, []) tr (c', []).
Proof.
  induction 1 as [c|c es c1 tr c2 Hm _ IH]; [constructor|].
  apply (recorded_shows_step told (c, []) [] (c1, es)); [by constructor|].
  clear Hm. induction es as [|en es IHes]; [done|].
  apply (recorded_shows_step told _ [en] (c1, es)); [constructor|done].
Qed.

(** The next entry that it shows, and what it does before. *)
Lemma next_told x en tr z : recorded_shows told x (en :: tr) z → ∃ x1 x2,
  recorded_shows told x [] x1 ∧ recorded_moves told x1 [en] x2 ∧ recorded_shows told x2 tr z.
Proof.
  intros Hs. remember (en :: tr) as tr0 eqn:Htr. revert Htr.
  induction Hs as [x|x es x1 tr1 z Hm Hs IH]; [done|]. intros Htr.
  assert (es = [] ∨ ∃ en1, es = [en1]) as [->|[en1 ->]] by (inversion Hm; eauto); simpl in Htr.
  - destruct (IH Htr) as (x2&x3&H1&H2&H3). exists x2, x3. split_and!; [|done..].
    by apply (recorded_shows_step told x [] x1).
  - injection Htr as -> ->. exists x, x1. split_and!; [constructor|done|done].
Qed.

Lemma queue_app q h tr q1 h' tr' q2 :
  queue_run told q h tr q1 → queue_run told q1 h' tr' q2 → queue_run told q (h ++ h') (tr ++ tr') q2.
Proof. induction 1; intros Hq; [done|]. rewrite <-!(assoc_L (++)). econstructor; [done|auto]. Qed.

Lemma quiet_run x x1 w d :
  recorded_shows told x [] x1 → queue_run told (waits x w d) [] [] (waits x1 w d).
Proof.
  intros Hs. remember [] as tr eqn:Htr. revert Htr. induction Hs as [x|x es x2 tr x3 Hm _ IH]; [constructor|].
  intros [-> ->]%app_eq_nil. apply (queue_more _ _ [] [] (waits x2 w d)); [by constructor|by apply IH].
Qed.

(** The queue can do as the script says. *)
Lemma acted_runs acts w d x tr z h : recorded_shows told x tr z → acted acts w d tr = Some h →
  ∃ q, queue_run told (waits x w d) h tr q.
Proof.
  revert w d x tr h. induction acts as [|a acts IH]; intros w d x tr h Hs.
  { destruct tr; [|done]. intros [= <-]. eexists. constructor. }
  assert (∀ en tr0, tr = en :: tr0 → ∃ x1 x2, recorded_moves told x1 [en] x2 ∧ recorded_shows told x2 tr0 z ∧
    ∀ w d h tr q, queue_run told (waits x1 w d) h tr q → queue_run told (waits x w d) h tr q) as Hnext.
  { intros en tr0 ->. apply next_told in Hs as (x1&x2&H1&H2&H3). exists x1, x2. split_and!; [done|done|].
    intros w0 d0 h0 tr1 q Hq. by eapply (queue_app _ [] []), Hq; apply quiet_run. }
  destruct a as [id e|k|k|k|k|]; simpl.
  - destruct (decide _) as [[He Hid]|]; [|done].
    intros (h1&Hh&->)%fmap_Some. destruct (IH _ _ _ _ _ Hs Hh) as [q Hq]. exists q.
    by eapply (queue_more _ _ [_] []), Hq; constructor.
  - destruct tr as [|[e|? ?|? ?|? ?|?|?] tr]; try done.
    intros ([id e0]&Hk&Hrest)%bind_Some. destruct (decide _) as [[-> Ha]|]; [|done].
    destruct (Hnext _ _ eq_refl) as (x1&x2&Hm&Hs2&Hrun). destruct (IH _ _ _ _ _ Hs2 Hrest) as [q Hq].
    exists q. apply Hrun. rewrite <-(take_drop_middle w k (id, e)) by done. rewrite delete_take_drop in Hq.
    by eapply (queue_more _ _ [] [_]), Hq; constructor.
  - destruct tr as [|[e|? ?|? ?|? ?|?|?] tr]; try done.
    intros ([id e0]&Hk&Hrest)%bind_Some. destruct (decide _) as [[-> Ha]|]; [|done].
    destruct (Hnext _ _ eq_refl) as (x1&x2&Hm&Hs2&Hrun). destruct (IH _ _ _ _ _ Hs2 Hrest) as [q Hq].
    exists q. apply Hrun. rewrite <-(take_drop_middle w k (id, unanswered e)) by done.
    rewrite delete_take_drop in Hq. by eapply (queue_more _ _ [] [_]), Hq; constructor.
  - destruct tr as [|[e|? ?|? ?|? ?|?|?] [|[[| | | | | | | | | |r]|? ?|? ?|? ?|?|?] tr]]; try done.
    intros ([id e0]&Hk&Hrest)%bind_Some. destruct (decide _) as [[-> Ha]|]; [|done].
    apply fmap_Some in Hrest as (h1&Hh&->).
    destruct (Hnext _ _ eq_refl) as (x1&x2&Hm&Hs2&Hrun).
    apply next_told in Hs2 as (x3&x4&H3&H4&Hs4). destruct (IH _ _ _ _ _ Hs4 Hh) as [q Hq].
    exists q. apply Hrun. eapply (queue_more _ _ [_] [_; _]), Hq.
    eapply queue_cut_serving; [by eapply elem_of_list_lookup_2|done|done|].
    change [Event (Crash r)] with ([] ++ [@Event V (Crash r)]).
    eapply recorded_shows_app; [exact H3|by apply recorded_shows_one].
  - intros (id&Hk&Hrest)%bind_Some. apply fmap_Some in Hrest as (h1&Hh&->).
    destruct (IH _ _ _ _ _ Hs Hh) as [q Hq]. exists q.
    rewrite <-(take_drop_middle d k id) by done. rewrite delete_take_drop in Hq.
    by eapply (queue_more _ _ [_] []), Hq; constructor.
  - destruct tr as [|en tr]; [done|]. intros (h1&Hh&->)%fmap_Some.
    destruct (Hnext _ _ eq_refl) as (x1&x2&Hm&Hs2&Hrun).
    pose proof (queue_alone told x1 x2 w d en Hm) as Halone.
    destruct (ends en); destruct (IH _ _ _ _ _ Hs2 Hh) as [q Hq]; exists q; apply Hrun;
      by eapply (queue_more _ _ [_] [_]), Hq.
Qed.

Lemma acted_in_front acts c tr c' h : recorded_shows M c tr c' → acted acts [] [] tr = Some h →
  ∃ tr' q, queue_run told (in_front M c) h tr' q.
Proof. intros Hs%told_shows Hh. destruct (acted_runs _ _ _ _ _ _ _ Hs Hh) as [q Hq]. by exists tr, q. Qed.

End Acts.
