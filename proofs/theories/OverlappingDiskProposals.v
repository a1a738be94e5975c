(** A checker of a proposed order. The search for an order may be anybody's; what it proposes is checked here
in one pass along the history, with one world at a time. *)
From stdpp Require Import pmap sorting.
From LogDisk Require Import VirtualDisk RecordedTrace Checker CheckerWorlds CheckerCorrect.
From LogDisk Require Import OverlappingDisk OverlappingDiskChecker OverlappingDiskSearch
  OverlappingDiskOrders OverlappingDiskCorrect.

(** What comes next: a step in flight, by its number, or the next moment of the history. [world]: which of the
worlds that are possible after it is followed; there are several after a power cut. *)
Inductive proposal := TakeStep (number world : nat) | NextMoment (world : nat).

Section OverlappingProposals.
Context {V : Type} `{EqDecision V, Value V}.
Implicit Types (x : step_of V) (en : entry V) (w : @world V) (pending rest : list (step_of V))
  (h : list (moment V)) (es : list (entry V)) (todo : list proposal).

(** The step of that number, and the others. *)
Fixpoint pull (n : nat) pending : option (step_of V * list (step_of V)) :=
  match pending with
  | [] => None
  | x :: pending =>
      if same n (number x) then Some (x, pending)
      else match pull n pending with Some (y, rest) => Some (y, x :: rest) | None => None end
  end.

Definition is_settled (id : nat) pending : bool := forallb (λ x, negb (due x && same (of x) id)) pending.

Section Confirm.
Context (g : granularity) (p : profile) (tolerates : nat).

Fixpoint confirm (next : nat) pending (v : devices) w h todo : bool :=
  let follow_world en i k :=
    match entry_worlds p tolerates v en w !! i with Some w' => k w' | None => false end in
  match todo, h with
  | [], [] => true
  | [], _ :: _ | NextMoment _ :: _, [] => false
  | TakeStep n i :: todo, _ =>
      match pull n pending with
      | Some (x, rest) =>
          follow_world (takes x) i (λ w', confirm next rest (devices_after tolerates v (takes x)) w' h todo)
      | None => false
      end
  | NextMoment _ :: todo, Called id en :: h =>
      let called := steps_of g next id en in
      confirm (next + length called) (pending ++ called) v w h todo
  | NextMoment _ :: todo, Answered id :: h => is_settled id pending && confirm next pending v w h todo
  | NextMoment i :: todo, Alone en :: h =>
      follow_world en i (λ w',
        confirm next (if ends en then [] else pending) (devices_after tolerates v en) w' h todo)
  end.

End Confirm.

Definition check_order (g : granularity) (p : profile) (tolerates : nat) h todo : bool :=
  match h with
  | Alone (Event (Create blocks)) :: rest =>
      confirm g p tolerates 0 [] all_good (fresh_world blocks) rest todo
  | _ => false
  end.

(** ** It accepts nothing but orders *)

Lemma pull_spec n pending x rest : pull n pending = Some (x, rest) → pending ≡ₚ x :: rest ∧ number x = n.
Proof.
  revert rest. induction pending as [|y pending IH]; intros rest; cbn; [done|].
  destruct (same n (number y)) eqn:Hn.
  - intros [= -> ->]. split; [done|]. symmetry. by apply same_eq.
  - destruct (pull n pending) as [[z rest']|]; [|done]. intros [= -> <-].
    destruct (IH rest' eq_refl) as [-> ?]. split; [by constructor|done].
Qed.

Lemma is_settled_spec id pending : is_settled id pending = true ↔ settled id pending.
Proof.
  unfold is_settled, settled. rewrite forallb_forall, Forall_forall.
  split; intros Hall x Hx; specialize (Hall x).
  - intros Hd Ho. specialize (Hall ltac:(by apply elem_of_list_In)). rewrite Hd in Hall.
    assert (same (of x) id = true) as Hs by (by apply same_eq). by rewrite Hs in Hall.
  - apply elem_of_list_In in Hx. destruct (due x) eqn:Hd; [|done]. cbn.
    apply negb_true_iff, same_neq. auto.
Qed.

Section Exact.
Context (g : granularity) (p : profile) (tolerates : nat).

Lemma worlds_after_elem es : ∀ v (ws : list world) w', w' ∈ worlds_after p tolerates v ws es ↔
  ∃ w, w ∈ ws ∧ w' ∈ worlds_after p tolerates v [w] es.
Proof.
  induction es as [|en es IH]; intros v ws w'; cbn [worlds_after].
  - split; [intros ?; exists w'; split; [done|left]|]. by intros (w & ? & ->%elem_of_list_singleton).
  - rewrite IH. split.
    + intros (w1 & (w & Hw & Hw1)%elem_of_advance & Hw'). exists w. split; [done|].
      apply IH. exists w1. split; [|done]. apply elem_of_advance. exists w. split; [left|done].
    + intros (w & Hw & (w1 & (w0 & ->%elem_of_list_singleton & Hw1)%elem_of_advance & Hw')%IH).
      exists w1. split; [|done]. apply elem_of_advance. eauto.
Qed.

Lemma worlds_after_cons v w en es w' : w' ∈ worlds_after p tolerates v [w] (en :: es) ↔
  ∃ w1, w1 ∈ entry_worlds p tolerates v en w ∧
    w' ∈ worlds_after p tolerates (devices_after tolerates v en) [w1] es.
Proof.
  cbn [worlds_after]. rewrite worlds_after_elem. split; intros (w1 & Hw1 & ?); exists w1; (split; [|done]).
  - by apply elem_of_advance in Hw1 as (w0 & ->%elem_of_list_singleton & ?).
  - apply elem_of_advance. exists w. split; [left|done].
Qed.

Lemma confirm_sound todo : ∀ next pending v w h, confirm g p tolerates next pending v w h todo = true →
  ∃ es w', orders g next pending h es ∧ w' ∈ worlds_after p tolerates v [w] es.
Proof.
  induction todo as [|[n i|i] todo IH]; intros next pending v w h; cbn.
  - destruct h; [|done]. intros _. exists [], w. split; [constructor|left].
  - destruct (pull n pending) as [[x rest]|] eqn:Hp; [|done]. apply pull_spec in Hp as [Hp _].
    destruct (entry_worlds _ _ _ _ _ !! i) as [w1|] eqn:Hi; [|done]. apply elem_of_list_lookup_2 in Hi.
    intros (es & w' & ? & ?)%IH. exists (takes x :: es), w'. split; [by eapply orders_take|].
    apply worlds_after_cons. eauto.
  - destruct h as [|[id en|id|en] h]; [done| | |].
    + intros (es & w' & ? & ?)%IH. exists es, w'. split; [by apply orders_call|done].
    + intros [Hs (es & w' & ? & ?)%IH]%andb_true_iff. apply is_settled_spec in Hs.
      exists es, w'. split; [by apply orders_answer|done].
    + destruct (entry_worlds _ _ _ _ _ !! i) as [w1|] eqn:Hi; [|done]. apply elem_of_list_lookup_2 in Hi.
      intros (es & w' & ? & ?)%IH. exists (en :: es), w'. split; [by apply orders_alone|].
      apply worlds_after_cons. eauto.
Qed.

(** ** It accepts every order, well proposed *)

Lemma pull_found x pending rest : NoDup (number <$> pending) → pending ≡ₚ x :: rest →
  ∃ rest', pull (number x) pending = Some (x, rest') ∧ rest' ≡ₚ rest.
Proof.
  intros Hnd Hp. assert (x ∈ pending) as Hx by (rewrite Hp; left).
  assert (∃ y rest', pull (number x) pending = Some (y, rest')) as (y & rest' & Hy).
  { clear Hp Hnd. induction pending as [|z pending IH]; [by apply elem_of_nil in Hx|]. cbn.
    destruct (same (number x) (number z)) eqn:Hs; [eauto|].
    apply elem_of_cons in Hx as [->|Hx]; [by apply same_neq in Hs|].
    destruct (IH Hx) as (y & rest' & ->). eauto. }
  pose proof (pull_spec _ _ _ _ Hy) as [Hp' Hn].
  assert (y = x) as ->.
  { eapply (number_inj pending); [done| |done|done]. rewrite Hp'. left. }
  exists rest'. split; [done|]. apply (Permutation_cons_inv (a := x)). by rewrite <-Hp'.
Qed.

Lemma confirm_complete next pending h es : orders g next pending h es → ∀ pending', pending ≡ₚ pending' →
  NoDup (number <$> pending') → (∀ x, x ∈ pending' → number x < next) → ∀ v w w',
  w' ∈ worlds_after p tolerates v [w] es → ∃ todo, confirm g p tolerates next pending' v w h todo = true.
Proof.
  induction 1 as [next|next pending x rest h es Hp _ IH|next pending id en h es called _ IH|
    next pending id h es Hs _ IH|next pending en h es _ IH]; intros pending' Hperm Hnd Hlt v w w' Hw'.
  - by exists [].
  - apply worlds_after_cons in Hw' as (w1 & [i Hi]%elem_of_list_lookup & Hw').
    destruct (pull_found x pending' rest) as (rest' & Hpull & Hrest); [done|by rewrite <-Hperm|].
    assert (pending' ≡ₚ x :: rest') as Hp' by (by rewrite <-Hperm, Hp, Hrest).
    assert (NoDup (number <$> x :: rest')) as Hnd' by (by rewrite <-Hp').
    destruct (IH rest' (symmetry Hrest)) with (devices_after tolerates v (takes x)) w1 w' as [todo Htodo];
      [by apply NoDup_cons in Hnd' as [_ ?]|intros y Hy; apply Hlt; rewrite Hp'; by right|done|].
    exists (TakeStep (number x) i :: todo). cbn. by rewrite Hpull, Hi.
  - destruct (IH (pending' ++ called)) with v w w' as [todo Htodo]; [by rewrite Hperm| | |done|].
    + rewrite fmap_app. apply NoDup_app. split_and!; [done| |apply steps_nodup].
      intros n (x & -> & Hx)%elem_of_list_fmap (y & Heq & Hy%steps_numbers)%elem_of_list_fmap.
      specialize (Hlt x Hx). lia.
    + subst called. intros x [Hx|Hx%steps_numbers]%elem_of_app; [|lia]. specialize (Hlt x Hx). lia.
    + by exists (NextMoment 0 :: todo).
  - destruct (IH pending') with v w w' as [todo Htodo]; [done..|].
    exists (NextMoment 0 :: todo). cbn. rewrite Htodo, andb_true_r. apply is_settled_spec.
    unfold settled in *. by rewrite <-Hperm.
  - apply worlds_after_cons in Hw' as (w1 & [i Hi]%elem_of_list_lookup & Hw').
    destruct (IH (if ends en then [] else pending')) with (devices_after tolerates v en) w1 w'
      as [todo Htodo]; [by destruct (ends en)|by destruct (ends en); [constructor|]| |done|].
    { destruct (ends en); [by intros ? ?%elem_of_nil|done]. }
    exists (NextMoment i :: todo). cbn. by rewrite Hi.
Qed.

End Exact.

(** A history is admitted if and only if some proposal for it is confirmed. *)
Theorem check_order_correct g p tolerates h :
  (∃ todo, check_order g p tolerates h todo = true) ↔ admits_overlapping g p tolerates h.
Proof.
  split.
  - intros [todo Hc]. unfold check_order in Hc. destruct h as [|[id en|id|[[]| | | | |]] h]; try done.
    apply confirm_sound in Hc as (es & w' & Ho & Hw'). apply admits_created. exists es. split; [done|].
    apply worlds_exact. intros Heq. rewrite Heq in Hw'. by apply elem_of_nil in Hw'.
  - intros Hadm. pose proof Hadm as (blocks & rest & _ & -> & _).
    apply admits_created in Hadm as (es & Ho & Hr).
    assert (worlds_after p tolerates all_good [fresh_world blocks] es ≠ []) as Hne
      by (by apply worlds_exact).
    destruct (worlds_after _ _ _ _ _) as [|w' ws] eqn:Hws; [done|].
    apply (confirm_complete g p tolerates _ _ _ _ Ho []) with (w' := w');
      [done|constructor|by intros ? ?%elem_of_nil|]. rewrite Hws. left.
Qed.

End OverlappingProposals.
