(** Orders of what took effect: how they are put together, and which steps of one may come later. *)
From stdpp Require Import pmap sorting.
From LogDisk Require Import VirtualDisk VirtualDiskProperties RecordedTrace Checker CheckerWorlds
    CheckerCorrect.
From LogDisk Require Import OverlappingDisk OverlappingDiskChecker OverlappingDiskSwaps OverlappingDiskSearch.

Section OverlappingOrders.
Context {V : Type} `{EqDecision V, Value V}.
Implicit Types (x : step_of V) (en : entry V) (s : state V)
  (xs ys zs ts pending : list (step_of V)) (es : list (entry V)) (h : list (moment V)).

(** ** Steps of a run in another order *)

Section Moving.
Context (p : profile) (tolerates : nat) (v : devices).

Definition still x : Prop := ∀ v, devices_after tolerates v (takes x) = v.

Lemma needs_not_other (a b : entry V) : needs p a b = false → deed_of a ≠ Other ∧ deed_of b ≠ Other.
Proof. unfold needs. intros [_ Hc]%orb_false_iff. split; intros Heq; rewrite Heq in Hc; [done|].
  by destruct (deed_of a). Qed.

Lemma runs_takes ys es : ∀ s, Forall still ys →
  runs p tolerates v s ((takes <$> ys) ++ es) ↔
  ∃ s1, recorded_run p tolerates v s (takes <$> ys) s1 ∧ runs p tolerates v s1 es.
Proof.
  induction ys as [|y ys IH]; intros s Hst; cbn.
  - split; [intros Hr; exists s; split; [constructor|done]|].
    intros (s1 & Hr & ?). by inversion Hr; subst.
  - apply Forall_cons in Hst as [Hy Hst]. rewrite runs_cons, (Hy v). split.
    + intros (s1 & Hs & (s2 & ? & ?)%IH); [|done]. exists s2. split; [|done]. econstructor; [done|by rewrite
        Hy].
    + intros (s2 & Hr & ?). inversion Hr as [|? s1 ? ? Hs Hrest]; subst. rewrite Hy in Hrest.
      exists s1. split; [done|]. apply IH; [done|]. eauto.
Qed.

Lemma recorded_current ys : ∀ s s', Forall still ys → current p s →
  recorded_run p tolerates v s (takes <$> ys) s' → current p s'.
Proof.
  induction ys as [|y ys IH]; intros s s' Hst Hc Hr; inversion Hr as [|? s1 ? ? Hs Hrest]; subst; [done|].
  apply Forall_cons in Hst as [Hy Hst]. rewrite Hy in Hrest. eapply IH; [done| |done].
  by eapply entry_current.
Qed.

Lemma runs_move x ys es : ∀ s, still x → Forall still ys → current p s →
  (∀ y, y ∈ ys → needs p (takes y) (takes x) = false) →
  runs p tolerates v s (takes x :: (takes <$> ys) ++ es) →
  runs p tolerates v s ((takes <$> ys) ++ takes x :: es).
Proof.
  induction ys as [|y ys IH]; intros s Hx Hst Hc Hcon Hr; [done|]. cbn in Hr |- *.
  apply Forall_cons in Hst as [Hy Hst].
  apply runs_cons in Hr as (s1 & Hs1 & Hr). rewrite Hx in Hr.
  apply runs_cons in Hr as (s2 & Hs2 & Hr). rewrite Hy in Hr.
  assert (needs p (takes y) (takes x) = false) as Hxy by (apply Hcon; left).
  destruct (needs_not_other _ _ Hxy) as [? ?].
  destruct (swap p tolerates v s (takes x) (takes y) s1 s2) as (t1 & t2 & Ht1 & Ht2 & Ha); [done..|].
  apply runs_cons. exists t1. split; [done|]. rewrite Hy. apply IH; [done|done| |by intros; apply Hcon;
      right|].
  - by eapply entry_current.
  - apply runs_cons. exists t2. split; [done|]. rewrite Hx. by eapply runs_mono.
Qed.

(** First those of [zs], then [x], then the others. *)
Lemma runs_partition (f : step_of V → bool) x l es : ∀ s, still x → Forall still l → current p s →
  (∀ a b, a ∈ l → f a = false → b ∈ l ∧ f b = true ∨ b = x → needs p (takes b) (takes a) = false) →
  runs p tolerates v s ((takes <$> l) ++ takes x :: es) →
  runs p tolerates v s ((takes <$> base.filter f l) ++ takes x ::
    (takes <$> base.filter (λ a, negb (f a)) l) ++ es).
Proof.
  induction l as [|a l IH]; intros s Hx Hst Hc Hcon Hr; [done|]. apply Forall_cons in Hst as [Ha Hst].
  cbn in Hr. apply runs_cons in Hr as (s1 & Hs1 & Hr). rewrite Ha in Hr.
  apply IH in Hr; [|done|done|by eapply entry_current|].
  2:{ intros b b' ? ? [[? ?]| ->]; apply Hcon; try done; [by right|left; split; [by right|done]|by right|by
      right]. }
  destruct (f a) eqn:Hf.
  - rewrite filter_cons_True by (by rewrite Hf). rewrite filter_cons_False by (rewrite Hf; auto). cbn.
    apply runs_cons. exists s1. by rewrite Ha.
  - rewrite filter_cons_False by (rewrite Hf; auto). rewrite filter_cons_True by (by rewrite Hf).
    assert (runs p tolerates v s (takes a :: (takes <$> base.filter f l ++ [x]) ++
      (takes <$> base.filter (λ a, negb (f a)) l) ++ es)) as Hr1.
    { apply runs_cons. exists s1. split; [done|]. rewrite Ha, fmap_app, <-(assoc_L app). done. }
    apply runs_move in Hr1; [|done| |done|].
    + rewrite fmap_app, <-(assoc_L app) in Hr1. done.
    + apply Forall_app. split; [|by constructor]. rewrite Forall_forall in *.
      intros b [_ ?]%elem_of_keep. auto.
    + intros b Hb. apply Hcon; [left|done|].
      apply elem_of_app in Hb as [[? ?]%elem_of_keep| ->%elem_of_list_singleton]; [|by right].
      left. split; [by right|done].
Qed.

(** An operation sent alone that may come first. *)
Lemma runs_quiet en ts es : ∀ s, quiet en (takes <$> ts) = true → Forall still ts → current p s →
  runs p tolerates v s ((takes <$> ts) ++ en :: es) →
  ∃ s1, entry_step p tolerates v s en s1 ∧ current p s1 ∧
    runs p tolerates (devices_after tolerates v en) s1 ((takes <$> ts) ++ es).
Proof.
  intros s Hq Hst.
  assert (Forall (λ x, calm (takes x) = true) ts) as Hcalm.
  { unfold quiet in Hq. assert (forallb calm (takes <$> ts) = true) as Hall.
    { destruct en as [[| | | | | | | |[]| |]|? []|? []|? []|[]|[]]; done. }
    rewrite Forall_forall. intros x Hx. rewrite forallb_forall in Hall. apply Hall, elem_of_list_In,
      elem_of_list_fmap. eauto. }
  assert ((∀ s s', entry_step p tolerates v s en s' ↔ power s = true ∧ s' = s) ∨ en = Event (Restart Ok))
    as Hen.
  { destruct en as [[| | | | | | | |[]| |]|? []|? []|? []|[]|[]]; try done; try (by right); left; done. }
  clear Hq. revert s. induction ts as [|x ts IH]; intros s Hc Hr; cbn in Hr |- *.
  { apply runs_cons in Hr as (s1 & ? & ?). exists s1. split_and!; [done|by eapply entry_current|done]. }
  apply Forall_cons in Hst as [Hx Hst], Hcalm as [Hcx Hcalm].
  apply runs_cons in Hr as (s1 & Hs1 & Hr). rewrite Hx in Hr.
  assert (current p s1) as Hc1 by (by eapply entry_current).
  destruct (IH Hst Hcalm s1 Hc1 Hr) as (s2 & Hs2 & Hc2 & Hr2).
  assert (deed_of (takes x) ≠ Other) as Hd by (unfold calm in Hcx; by destruct (deed_of (takes x))).
  assert (∀ t t', entry_step p tolerates v t (takes x) t' →
    entry_step p tolerates (devices_after tolerates v en) t (takes x) t') as Hdev.
  { intros t t'. destruct (takes x) as [e|d r|d r|d r|r|r]; try done. cbn.
    destruct e as [| | | | | | | | |? ? ? [|[]| |] ?|]; try done. }
  destruct Hen as [Hen| ->].
  - apply Hen in Hs2 as [Hp1 ->]. exists s.
    assert (power s = true) as Hp by (apply entry_act in Hs1 as (? & _); done).
    split_and!; [by apply Hen|done|]. apply runs_cons. exists s1. split; [by apply Hdev|]. by rewrite Hx.
  - apply entry_act in Hs1 as (Hp & Hsu & ->); [|done].
    apply (entry_act _ _ _ _ (Event (Restart Ok))) in Hs2 as (_ & _ & ->); [|done].
    assert (current p (act p s (Event (Restart Ok)))) as Hcr by apply current_exactly.
    exists (act p s (Event (Restart Ok))). split_and!; [by apply entry_act|done|].
    cbn [devices_after] in *. apply runs_cons. exists (act p (act p s (Event (Restart Ok))) (takes x)).
    split; [|rewrite Hx; eapply runs_mono; [|done]; by apply act_flush].
    apply entry_act; [done|]. split_and!; [done| |done].
    eapply suited_alike; [done| |done]. by apply act_alike.
Qed.

End Moving.

(** ** Orders *)

Section Orders.
Context (g : granularity).

Lemma orders_perm next pending h es : orders g next pending h es → ∀ pending', pending ≡ₚ pending' →
  orders g next pending' h es.
Proof.
  induction 1 as [next|next pending x rest h es Hp _ IH|next pending id en h es called _ IH|
    next pending id h es Hs _ IH|next pending en h es _ IH]; intros pending' Hperm.
  - constructor.
  - eapply orders_take; [by rewrite <-Hperm|]. by apply IH.
  - apply orders_call. apply IH. by rewrite Hperm.
  - apply orders_answer; [unfold settled; by rewrite <-Hperm|by apply IH].
  - apply orders_alone. destruct (ends en); by apply IH.
Qed.

Lemma orders_takes next pending ts pending2 h es : pending ≡ₚ ts ++ pending2 →
  orders g next pending2 h es → orders g next pending h ((takes <$> ts) ++ es).
Proof.
  revert pending. induction ts as [|x ts IH]; intros pending Hp Ho; cbn in *.
  - by eapply orders_perm.
  - eapply orders_take; [done|]. by apply IH.
Qed.

(** What is taken before the next moment, and how the order goes on. *)
Definition at_moment next pending (m : moment V) h es : Prop :=
  match m with
  | Called id en =>
      orders g (next + length (steps_of g next id en)) (pending ++ steps_of g next id en) h es
  | Answered id => settled id pending ∧ orders g next pending h es
  | Alone en => ∃ es', es = en :: es' ∧ orders g next (if ends en then [] else pending) h es'
  end.

Lemma orders_split next pending m h es : orders g next pending (m :: h) es →
  ∃ ts pending2 es2, pending ≡ₚ ts ++ pending2 ∧ es = (takes <$> ts) ++ es2 ∧ at_moment next pending2 m h es2.
Proof.
  remember (m :: h) as mh eqn:Hmh. induction 1 as [next|next pending x rest h' es Hp _ IH|
    next pending id en h' es called Ho _|next pending id h' es Hs Ho _|next pending en h' es Ho _];
    simplify_eq.
  - destruct (IH eq_refl) as (ts & pending2 & es2 & Hp2 & -> & ?). exists (x :: ts), pending2, es2.
    split_and!; [by rewrite Hp, Hp2|done|done].
  - by exists [], pending, es.
  - by exists [], pending, es.
  - exists [], pending, (en :: es). split_and!; [done|done|]. by exists es.
Qed.

End Orders.

(** An order of a history begins with one of each prefix. *)
Lemma orders_prefix g next pending h es : orders g next pending h es → ∀ n, ∃ es1 es2,
  es = es1 ++ es2 ∧ orders g next pending (take n h) es1.
Proof.
  induction 1 as [next|next pending x rest h es Hp _ IH|next pending id en h es called _ IH|
    next pending id h es Hs _ IH|next pending en h es _ IH]; intros n.
  - exists [], []. split; [done|]. destruct n; constructor.
  - destruct (IH n) as (es1 & es2 & -> & ?). exists (takes x :: es1), es2. split; [done|].
    by eapply orders_take.
  - destruct n as [|n]; [exists [], es; split; [done|constructor]|].
    destruct (IH n) as (es1 & es2 & -> & ?). exists es1, es2. split; [done|]. by apply orders_call.
  - destruct n as [|n]; [exists [], es; split; [done|constructor]|].
    destruct (IH n) as (es1 & es2 & -> & ?). exists es1, es2. split; [done|]. by apply orders_answer.
  - destruct n as [|n]; [exists [], (en :: es); split; [done|constructor]|].
    destruct (IH n) as (es1 & es2 & -> & ?). exists (en :: es1), es2. split; [done|]. by apply orders_alone.
Qed.

Lemma runs_prefix p tolerates es1 es2 : ∀ v s, runs p tolerates v s (es1 ++ es2) → runs p tolerates v s es1.
Proof.
  induction es1 as [|en es1 IH]; intros v s Hr; [exists s; constructor|]. cbn in Hr.
  apply runs_cons in Hr as (s1 & ? & ?). apply runs_cons. eauto.
Qed.

(** ** What has not been taken *)

Definition left_of xs (tk : list nat) : list (step_of V) := base.filter (λ x, negb (has (number x) tk)) xs.

Lemma elem_of_left x xs tk : x ∈ left_of xs tk ↔ x ∈ xs ∧ has (number x) tk = false.
Proof. unfold left_of. rewrite elem_of_keep. destruct (has _ _); naive_solver. Qed.

Lemma number_inj xs x y : NoDup (number <$> xs) → x ∈ xs → y ∈ xs → number x = number y → x = y.
Proof.
  induction xs as [|z xs IH]; cbn; [by intros _ ?%elem_of_nil|]. intros [Hz Hnd]%NoDup_cons.
  assert (∀ u, u ∈ xs → number z ≠ number u) as Hne.
  { intros u Hu Heq. apply Hz. rewrite Heq. apply elem_of_list_fmap. eauto. }
  intros [->|Hx]%elem_of_cons [->|Hy]%elem_of_cons Heq; auto; [by destruct (Hne y)|by destruct (Hne x)].
Qed.

Lemma numbers_nodup xs ys : NoDup (number <$> xs) → NoDup ys → (∀ y, y ∈ ys → y ∈ xs) → NoDup (number <$> ys).
Proof. intros Hnd Hys Hsub. apply NoDup_fmap_2_strong; [|done]. intros. by eapply (number_inj xs); auto. Qed.

Lemma has_numbers ys m : has m (number <$> ys) = true ↔ ∃ y, y ∈ ys ∧ number y = m.
Proof. rewrite has_spec, elem_of_list_fmap. naive_solver. Qed.

Lemma left_after xs tk tk' ys rest : NoDup (number <$> xs) → left_of xs tk ≡ₚ ys ++ rest →
  (∀ m, has m tk' = has m tk || has m (number <$> ys)) → left_of xs tk' ≡ₚ rest.
Proof.
  intros Hnd Hp Htk. assert (NoDup xs) as Hxs by (by eapply NoDup_fmap_1).
  assert (NoDup (ys ++ rest)) as Hyr by (rewrite <-Hp; by apply NoDup_filter).
  pose proof Hyr as (_ & Hdis & Hrest)%NoDup_app.
  apply NoDup_Permutation; [by apply NoDup_filter|done|]. intros x. rewrite elem_of_left, Htk, orb_false_iff.
  assert (∀ y, y ∈ ys → y ∈ xs) as Hys.
  { intros y Hy. assert (y ∈ left_of xs tk) as Hl by (rewrite Hp; apply elem_of_app; by left).
    by apply elem_of_left in Hl as [? _]. }
  split.
  - intros (Hx & Hn & Hny). assert (x ∈ ys ++ rest) as Hin by (rewrite <-Hp; by apply elem_of_left).
    apply elem_of_app in Hin as [Hin|?]; [|done]. exfalso.
    assert (has (number x) (number <$> ys) = true) as Ht by (apply has_numbers; eauto). congruence.
  - intros Hx. assert (x ∈ left_of xs tk) as [? ?]%elem_of_left by (rewrite Hp; apply elem_of_app; by right).
    split_and!; [done|done|]. destruct (has _ (_ <$> _)) eqn:Ht; [|done]. exfalso.
    apply has_numbers in Ht as (y & Hy & Heq). assert (y = x) as -> by (eapply number_inj; eauto).
    by eapply Hdis.
Qed.

Definition without x xs : list (step_of V) := base.filter (λ y, negb (same (number x) (number y))) xs.

Lemma elem_of_without x y xs : y ∈ without x xs ↔ y ∈ xs ∧ number x ≠ number y.
Proof. unfold without. rewrite elem_of_keep, negb_true_iff, same_neq. naive_solver. Qed.

Lemma left_forget x xs tk : has (number x) tk = true →
  left_of (without x xs) (forget (number x) tk) = left_of xs tk.
Proof.
  intros Hx. unfold left_of, without. induction xs as [|y xs IH]; [done|].
  rewrite !filter_cons. destruct (same (number x) (number y)) eqn:Hxy; cbn [negb].
  - apply same_eq in Hxy. rewrite decide_False by auto. rewrite <-Hxy, Hx. cbn.
    rewrite decide_False by auto. done.
  - rewrite decide_True by done. rewrite filter_cons, has_forget.
    rewrite (same_sym (number y)), Hxy. cbn [negb andb]. by rewrite IH.
Qed.

Lemma filter_partition {A} (f : A → bool) (l : list A) :
  l ≡ₚ base.filter f l ++ base.filter (λ a, negb (f a)) l.
Proof.
  induction l as [|a l IH]; [done|]. rewrite !filter_cons. destruct (f a) eqn:Hf; cbn.
  - rewrite decide_True by done. rewrite decide_False by auto. cbn. by rewrite <-IH.
  - rewrite decide_False by auto. rewrite decide_True by done. rewrite <-Permutation_middle. by rewrite <-IH.
Qed.

Lemma left_app xs ys tk : left_of (xs ++ ys) tk = left_of xs tk ++ left_of ys tk.
Proof. apply filter_app. Qed.
Lemma left_all ys tk : (∀ y, y ∈ ys → has (number y) tk = false) → left_of ys tk = ys.
Proof.
  induction ys as [|y ys IH]; intros Hys; [done|]. unfold left_of. rewrite filter_cons_True.
  - f_equal. apply IH. intros; apply Hys; by right.
  - rewrite Hys by left. done.
Qed.

(** ** The steps of a request *)

Definition not_create (e : event V) : Prop := match e with Create _ => False | _ => True end.

Lemma by_blocks_keeps g (P : event V → Prop) e : P e →
  (∀ lba data r, e = Write lba data r → ∀ l v, P (Write l [v] r)) →
  (∀ lba data told r, e = WriteThrough lba data told r → ∀ l v, P (WriteThrough l [v] told r)) →
  (∀ lba count r, e = Unmap lba count r → ∀ l, P (Unmap l 1 r)) →
  (∀ from lba count r data, e = Read from lba count r data → ∀ l v, P (Read from l 1 r [v])) →
  Forall P (by_blocks g e).
Proof.
  intros He Hw Ht Hu Hr. unfold by_blocks.
  destruct g, e as [|lba data r|lba data told r|lba count r| | | | | |from lba count r data|];
    try (by constructor).
  - rewrite Forall_forall. intros e (i & v & -> & _)%elem_of_lookup_imap. by eapply Hw.
  - rewrite Forall_forall. intros e (i & v & -> & _)%elem_of_lookup_imap. by eapply Ht.
  - rewrite Forall_forall. intros e (l & -> & _)%elem_of_list_fmap. by eapply Hu.
  - case_decide; [|by constructor]. rewrite Forall_forall. intros e (i & v & -> & _)%elem_of_lookup_imap.
    by eapply Hr.
Qed.

Lemma takes_steps g next next' id en : takes <$> steps_of g next id en = takes <$> steps_of g next' id en.
Proof. destruct en as [[]| | | | |]; cbn; rewrite ?fmap_imap; try done. by destruct (sure _). Qed.

Lemma answered_first_take g id h n : answered_first g id h = true → answered_first g id (take n h) = true.
Proof.
  revert n. induction h as [|[id' en|id'|en] h IH]; intros [|n]; cbn; try done.
  - rewrite !andb_true_iff. intros [? ?]. auto.
  - rewrite !orb_true_iff. intros [?|?]; auto.
Qed.

Lemma yields_spec (a : entry V) : yields a = true ↔ deed_of a ≠ Other.
Proof. unfold yields. by destruct (deed_of a). Qed.

Lemma flush_needs p (a : entry V) : deed_of a ≠ Other → needs p (Event (Flush Ok)) a = false.
Proof. intros Ha. unfold needs. cbn. by destruct (deed_of a). Qed.

(** ** Without a power cut the profile does not matter *)

Definition calm_event (e : event V) : Prop := match e with Crash _ => False | _ => True end.
Definition calm_entry en : Prop := match en with Event e => calm_event e | _ => True end.

Lemma answered_like s t r faults excuses d left left' s' :
  size s = size t → now s = now t → power s = power t → answered s r faults excuses d left s' →
  ∃ t', answered t r faults excuses d left' t' ∧ size s' = size t' ∧ now s' = now t' ∧ power s' = power t'.
Proof.
  intros Hz Hn Hp [Hpw Ha]. rewrite Hp in Hpw. destruct r.
  - destruct Ha as [? ->]. exists (happens t d left'). by split_and!.
  - destruct Ha as [? ->]. exists t. by split_and!.
  - destruct Ha as [->|[? ->]]; [exists t|exists (happens t d left')]; split_and!; try done; split; auto.
  - subst s'. eexists. by split_and!.
Qed.

Lemma calm_step p q tolerates v s t en s' : calm_entry en →
  size s = size t → now s = now t → power s = power t → entry_step p tolerates v s en s' →
  ∃ t', entry_step q tolerates v t en t' ∧ size s' = size t' ∧ now s' = now t' ∧ power s' = power t'.
Proof.
  intros Hcalm Hz Hn Hp Hstep.
  assert (∀ lba count, out_of_range s lba count = out_of_range t lba count) as Hr.
  { intros. unfold out_of_range. by rewrite Hz. }
  assert (∀ r, outside s r s' → ∃ t', outside t r t' ∧ size s' = size t' ∧ now s' = now t' ∧ power s' =
      power t')
    as Hout.
  { intros r [Hpw ->]. exists (match r with CutShort => cut t [] | _ => t end). unfold outside.
    rewrite <-Hp. split_and!; try done; by destruct r. }
  assert (∀ r faults excuses d left left', answered s r faults excuses d left s' →
    ∃ t', answered t r faults excuses d left' t' ∧ size s' = size t' ∧ now s' = now t' ∧ power s' = power t')
    as Hans by (intros; by eapply answered_like).
  destruct en as [e|d r|d r|d r|r|r]; cbn in Hstep |- *; try (by apply Hout).
  destruct Hstep as [Hstep|Hl].
  - assert (∃ t', step q t e t' ∧ size s' = size t' ∧ now s' = now t' ∧ power s' = power t')
      as (t' & ? & ?); [|exists t'; split; [by left|done]].
    destruct e as [blocks|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r];
      try done; cbn in *;
      rewrite <-?Hn, <-?Hr; try (by eapply Hans).
    + subst. eexists. by split_and!.
    + destruct Hstep as [Ha Hok]. destruct (Hans _ _ _ _ _ (survivors t) Ha) as (t' & ? & ?).
      exists t'. by split.
  - destruct e as [| | | | | | | | |? ? ? [|[]| |] ?|]; try done. destruct Hl as (Hb & Hpw & ->).
    exists t. split; [right; split; [done|split; [by rewrite <-Hp|done]]|done].
Qed.

Lemma calm_runs p q tolerates es : ∀ v s t, Forall calm_entry es →
  size s = size t → now s = now t → power s = power t → runs p tolerates v s es → runs q tolerates v t es.
Proof.
  induction es as [|en es IH]; intros v s t Hcalm Hz Hn Hp Hr.
  { exists t. constructor. }
  apply Forall_cons in Hcalm as [Hen Hcalm]. apply runs_cons in Hr as (s1 & Hs & Hr).
  destruct (calm_step p q tolerates v s t en s1) as (t1 & ? & ? & ? & ?); [done..|].
  apply runs_cons. eauto.
Qed.

End OverlappingOrders.
