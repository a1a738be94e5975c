(** The checker of requests that overlap is exact: it accepts a history if and only if an order of what took
effect exists in which the contract admits it.

Whatever it keeps comes from an order ([backs]); and of every order that the contract admits it keeps one that
goes as far ([goes_on]), because a step may come after whatever does not need it, and a flush before all. *)
From stdpp Require Import pmap sorting.
From LogDisk Require Import VirtualDisk VirtualDiskProperties RecordedTrace Checker CheckerWorlds
    CheckerCorrect.
From LogDisk Require Import OverlappingDisk OverlappingDiskChecker OverlappingDiskSwaps OverlappingDiskSearch
  OverlappingDiskOrders.

Section OverlappingCorrect.
Context {V : Type} `{EqDecision V, Value V} (weigh : positive → V → nat).
Implicit Types (c : @config V) (x : step_of V) (en : entry V) (s : state V) (z : @search V)
  (xs ys zs ts pending : list (step_of V)) (es : list (entry V)) (h : list (moment V)) (σ : nat → V).

(** ** What holds along a search *)

Section Along.
Context (g : granularity) (p : profile) (tolerates : nat) (blocks : nat).

Definition fit z : Prop :=
  NoDup (number <$> flight z) ∧ (∀ x, x ∈ flight z → number x < next_number z ∧ still tolerates x) ∧
  Forall (sane (next_number z)) (configs z).

Definition worlds_of es : list (@world V) := worlds_after p tolerates all_good [fresh_world blocks] es.
Definition devices_of es : devices := foldl (devices_after tolerates) all_good es.

(** The world is one of those after an order of the history so far, which may go on as any order does of what
is left. *)
Definition backs h xs next (v : devices) (tk : list nat) (w : @world V) : Prop := ∃ es,
  w ∈ worlds_of es ∧ devices_of es = v ∧
  ∀ h2 es2, orders g next (left_of xs tk) h2 es2 → orders g 0 [] (h ++ h2) (es ++ es2).
Definition sound h z : Prop :=
  Forall (backed (backs h (flight z) (next_number z) (broken z))) (configs z).

Definition goes_on h z : Prop := ∃ c σ s es, c ∈ configs z ∧ current p s ∧ suits σ (choices (now_in c)) ∧
  beside true σ (now_in c) s ∧ orders g (next_number z) (left_of (flight z) (taken c)) h es ∧
  runs p tolerates (broken z) s es.

Lemma worlds_snoc es en w : w ∈ worlds_of (es ++ [en]) ↔
  ∃ w0, w0 ∈ worlds_of es ∧ w ∈ entry_worlds p tolerates (devices_of es) en w0.
Proof.
  unfold worlds_of, devices_of. generalize (@all_good), [@fresh_world V blocks].
  induction es as [|en0 es IH]; intros v ws; cbn; [apply elem_of_advance|apply IH].
Qed.

Lemma devices_snoc es en : devices_of (es ++ [en]) = devices_after tolerates (devices_of es) en.
Proof. unfold devices_of. by rewrite foldl_app. Qed.

Lemma backed_step (B B' : list nat → world → Prop) (f : list nat → list nat) v en c w' :
  (∀ w0 w1, B (taken c) w0 → w1 ∈ entry_worlds p tolerates v en w0 → B' (f (taken c)) w1) →
  backed B c → w' ∈ entry_worlds p tolerates v en (now_in c) → backed B' (Config (f (taken c)) w').
Proof.
  intros HB [Hne Hy] Hw. split; [by eapply entry_leftovers|]. cbn. intros y' Hy'.
  destruct (entry_hangs p tolerates v en _ _ _ Hne Hw Hy') as (y & Hyl & Hall).
  destruct (Hy y Hyl) as (w0 & Hw0 & HB0). destruct (Hall w0 Hw0) as (w1 & ? & ?). eauto.
Qed.

Lemma backed_weaken (B B' : list nat → world → Prop) (f : list nat → list nat) c :
  (∀ w0, B (taken c) w0 → B' (f (taken c)) w0) → backed B c → backed B' (Config (f (taken c)) (now_in c)).
Proof. intros HB [Hne Hy]. split; [done|]. intros y (w0 & ? & ?)%Hy. eauto. Qed.

Lemma left_note xs x tk : NoDup (number <$> xs) → x ∈ xs → has (number x) tk = false →
  left_of xs tk ≡ₚ x :: left_of xs (note (number x) tk).
Proof.
  intros Hnd Hx Hh. assert (x ∈ left_of xs tk) as [rest Hrest]%elem_of_Permutation by (by apply elem_of_left).
  rewrite Hrest. constructor. symmetry. eapply (left_after xs tk _ [x]); [done|done|].
  intros m. rewrite has_note. cbn. rewrite orb_false_r. apply orb_comm.
Qed.

Lemma backs_take h xs next v tk w x w' : NoDup (number <$> xs) → x ∈ xs → has (number x) tk = false →
  still tolerates x → backs h xs next v tk w → w' ∈ entry_worlds p tolerates v (takes x) w →
  backs h xs next v (note (number x) tk) w'.
Proof.
  intros Hnd Hx Hh Hst (es & Hw & Hv & Ho) Hw'. exists (es ++ [takes x]). split_and!.
  - apply worlds_snoc. exists w. by rewrite Hv.
  - by rewrite devices_snoc, Hv.
  - intros h2 es2 Ho2. rewrite <-(assoc_L app). apply Ho. cbn.
    eapply orders_take; [by apply left_note|done].
Qed.

Lemma reach_sound h z xs keep stop fuel out work' :
  fit z → sound h z → (∀ x, x ∈ xs → x ∈ flight z) →
  reach weigh p tolerates fuel (broken z) xs keep stop (configs z) (work z) = Some (out, work') →
  Forall (backed (backs h (flight z) (next_number z) (broken z))) out ∧ Forall (sane (next_number z)) out.
Proof.
  intros (Hnd & Hfl & Hsane) Hsound Hxs Hr. split.
  - eapply reach_forall, Hr; [apply merged_backed| |done].
    intros c c' Hc Hgrow. apply growing_spec in Hgrow as (x & Hx & Hh & Htake).
    apply taking_spec in Htake as (w' & Hw' & ->).
    apply (backed_step (backs h (flight z) (next_number z) (broken z)) _ (note (number x)) (broken z) (takes
        x));
      [|done|done].
    intros w0 w1 HB Hw1. eapply backs_take; [done|by apply Hxs|done| |done|done]. by apply Hfl, Hxs.
  - eapply reach_forall, Hr; [apply merged_sane| |done].
    intros c c' [Hwf Hc] Hgrow. apply growing_spec in Hgrow as (x & Hx & Hh & Htake).
    apply taking_spec in Htake as (w' & Hw' & ->).
    split; [by eapply entry_wf|]. cbn. intros m. rewrite has_note, orb_true_iff, same_eq.
    intros [->|?]; [by apply Hfl, Hxs|auto].
Qed.

Lemma reach_kept v xs keep stop : ∀ fuel cs work out work',
  reach weigh p tolerates fuel v xs keep stop cs work = Some (out, work') → Forall (λ c, keep c = true) out.
Proof.
  induction fuel as [|fuel IH]; intros cs work out work'; cbn [reach].
  { intros [= <- _]. rewrite Forall_forall. by intros c [? _]%elem_of_keep. }
  assert (Forall (λ c, keep c = true) (base.filter keep cs)) as Hk.
  { rewrite Forall_forall. by intros c [? _]%elem_of_keep. }
  destruct (base.filter (λ c, negb (stop c)) cs); [by intros [= <- _]|].
  destruct (spend _ _); [|done]. destruct (reach _ _ _ fuel _ _ _ _ _ _) as [[? ?]|] eqn:Hr; [|done].
  intros [= <- _]. apply Forall_app. eauto.
Qed.

(** ** A step is settled *)

Lemma ahead_in x xs : x ∈ xs → let ys := ahead (length xs) p xs [x] in
  (∀ y, y ∈ ys → y ∈ xs) ∧ is_in x ys = true ∧
  (∀ a, a ∈ xs → is_in a ys = true ∨ ∀ y, y ∈ ys → needs p (takes y) (takes a) = false).
Proof.
  intros Hx. destruct (ahead_spec p (length xs) xs [x]) as (Ha & Hb & Hc).
  { by intros y ->%elem_of_list_singleton. }
  split_and!; [done|apply Hb; left|done].
Qed.

Lemma settle_fit h x z z' : x ∈ flight z → fit z → sound h z → settle weigh p tolerates x z = Some z' →
  fit z' ∧ sound h z' ∧ next_number z' = next_number z ∧ broken z' = broken z ∧
  flight z' = without x (flight z).
Proof.
  intros Hx Hfit Hsound Hset. unfold settle in Hset. destruct (ahead_in x (flight z) Hx) as (Hsub & _ & _).
  destruct (reach _ _ _ _ _ _ _ _ _ _) as [[cs work']|] eqn:Hr; [|done]. injection Hset as <-.
  destruct (reach_sound h z _ _ _ _ _ _ Hfit Hsound Hsub Hr) as [Hback Hsane].
  pose proof (reach_kept _ _ _ _ _ _ _ _ _ Hr) as Hkept. destruct Hfit as (Hnd & Hfl & _).
  split_and!; cbn; try done.
  - split_and!; cbn.
    + fold (without x (flight z)). eapply numbers_nodup; [done| |].
      * apply NoDup_filter. by eapply NoDup_fmap_1.
      * by intros y [? _]%elem_of_without.
    + intros y [? _]%elem_of_without. auto.
    + apply merged_sane. rewrite Forall_forall in *. intros c' (c & -> & Hc)%elem_of_list_fmap.
      destruct (Hsane c Hc) as [Hwf Ht]. split; [done|]. cbn. intros m. rewrite has_forget, andb_true_iff.
      intros [_ ?]. auto.
  - apply merged_backed. rewrite Forall_forall in *. intros c' (c & -> & Hc)%elem_of_list_fmap.
    specialize (Hkept c Hc). apply (backed_weaken (backs h (flight z) (next_number z) (broken z)) _
      (forget (number x))); [|by apply Hback].
    intros w0 (es & ? & ? & Ho). exists es. split_and!; [done|done|]. intros h2 es2 Ho2. apply Ho.
    rewrite <-(left_forget x) by done. exact Ho2.
Qed.

(** The order goes on; everything that [id] must have done is done when [ts] are taken. *)
Definition due_soon (id : nat) h z : Prop := ∃ c σ s ts pending2 es, c ∈ configs z ∧ current p s ∧
  suits σ (choices (now_in c)) ∧ beside true σ (now_in c) s ∧
  left_of (flight z) (taken c) ≡ₚ ts ++ pending2 ∧ settled id pending2 ∧
  orders g (next_number z) pending2 h es ∧ runs p tolerates (broken z) s ((takes <$> ts) ++ es).

Lemma settle_due id h x z z' : x ∈ flight z → due x = true → of x = id → fit z →
  settle weigh p tolerates x z = Some z' → due_soon id h z → due_soon id h z'.
Proof.
  intros Hx Hdue Hof Hfit Hset (c & σ & s & ts & pending2 & es & Hc & Hcur & Hs & Hov & Hleft & Hset2 & Ho &
      Hr).
  destruct (ahead_in x (flight z) Hx) as (Hsub & Hxin & Hahead). unfold settle in Hset.
  set (zs := ahead (length (flight z)) p (flight z) [x]) in *.
  pose proof Hfit as (Hnd & Hfl & Hsane).
  destruct (reach _ _ _ _ _ _ _ _ _ _) as [[cs work']|] eqn:Hreach; [|done]. injection Hset as <-.
  assert (NoDup (ts ++ pending2)) as Hndl.
  { rewrite <-Hleft. apply NoDup_filter. by eapply NoDup_fmap_1. }
  assert (∀ y, y ∈ ts → y ∈ flight z ∧ has (number y) (taken c) = false) as Hts.
  { intros y Hy. apply elem_of_left. rewrite Hleft. apply elem_of_app. by left. }
  assert (∃ ys ts', ts ≡ₚ ys ++ ts' ∧ (∀ y, y ∈ ys → y ∈ zs) ∧
    (has (number x) (taken c) = true ∨ has (number x) (number <$> ys) = true) ∧
    (∀ zs1 zs2, ys = zs1 ++ zs2 → zs2 ≠ [] →
      has (number x) (taken c) = false ∧ has (number x) (number <$> zs1) = false) ∧
    runs p tolerates (broken z) s ((takes <$> ys) ++ (takes <$> ts') ++ es))
    as (ys & ts' & Hperm & Hys & Hhas & Hstop & Hr').
  { destruct (has (number x) (taken c)) eqn:Hxc.
    { exists [], ts. split_and!; try done; [by intros ? ?%elem_of_nil|by left|].
      intros [|? ?] zs2 Heq Hne; [|done]. by destruct zs2. }
    assert (x ∈ ts) as Hxts.
    { assert (x ∈ left_of (flight z) (taken c)) as Hin by (by apply elem_of_left). rewrite Hleft in Hin.
      apply elem_of_app in Hin as [?|Hin]; [done|]. unfold settled in Hset2. rewrite Forall_forall in Hset2.
      by destruct (Hset2 x Hin Hdue). }
    apply elem_of_list_split in Hxts as (l1 & l2 & ->).
    assert (∀ y, y ∈ l1 → y ∈ flight z) as Hl1 by (intros; apply Hts, elem_of_app; by left).
    exists (base.filter (λ y, is_in y zs) l1 ++ [x]), (base.filter (λ y, negb (is_in y zs)) l1 ++ l2).
    assert (∀ y, y ∈ flight z → is_in y zs = true → y ∈ zs) as Hinz.
    { intros y Hy (y' & Hy' & Heq)%is_in_spec.
      assert (y' = y) as -> by (eapply (number_inj (flight z)); eauto). done. }
    split_and!.
    - rewrite (filter_partition (λ y, is_in y zs) l1) at 1. rewrite <-!(assoc_L app). cbn.
      rewrite <-!Permutation_middle. solve_Permutation.
    - intros y [[? ?]%elem_of_keep| ->%elem_of_list_singleton]%elem_of_app; auto.
    - right. apply has_numbers. exists x. split; [apply elem_of_app; right; left|done].
    - intros zs1 zs2 Heq Hne. split; [done|]. apply not_true_is_false. intros (y & Hy & Hn)%has_numbers.
      destruct zs2 as [|y2 zs2 _] using rev_ind; [done|].
      rewrite (assoc_L app) in Heq. apply app_inj_tail in Heq as [Hl <-].
      assert (y ∈ l1) as Hyl.
      { assert (y ∈ zs1 ++ zs2) as Hyz by (apply elem_of_app; by left). rewrite <-Hl in Hyz.
        by apply elem_of_keep in Hyz as [_ ?]. }
      assert (y = x) as -> by (eapply (number_inj (flight z)); eauto).
      apply NoDup_app in Hndl as (Hndt & _ & _). apply NoDup_app in Hndt as (_ & Hdis & _).
      apply (Hdis x Hyl). left.
    - rewrite fmap_app, <-(assoc_L app). cbn. rewrite fmap_app in Hr |- *. rewrite <-(assoc_L app) in Hr |- *.
      cbn in Hr. apply runs_partition; [by apply Hfl| | | |done].
      + rewrite Forall_forall. intros y Hy. by apply Hfl, Hl1.
      + done.
      + intros a b Ha Hfa Hb. destruct (Hahead a (Hl1 a Ha)) as [?|Hno]; [congruence|].
        apply Hno. destruct Hb as [[? ?]| ->]; auto. }
  assert (Forall (still tolerates) ys) as Hstill.
  { rewrite Forall_forall. intros y Hy. by apply Hfl, Hsub, Hys. }
  apply runs_takes in Hr' as (s1 & Hrun & Hr'); [|done].
  assert (NoDup (ys ++ ts' ++ pending2)) as Hndys by (rewrite (assoc_L app), <-Hperm; done).
  assert (NoDup (number <$> ys)) as Hndn.
  { eapply numbers_nodup; [done| |by auto]. by apply NoDup_app in Hndys as [? _]. }
  destruct (reach_finds weigh p tolerates (broken z) zs _ _ ys (length zs) (configs z) c (work z) cs work'
    (next_number z) σ s s1 Hreach) as (c' & σ' & Hc' & Hhas' & Hs' & Hov' & Hcur'); try done.
  - apply submseteq_length, NoDup_submseteq; [by apply NoDup_app in Hndys as [? _]|done].
  - intros y Hy. by apply Hfl, Hsub.
  - intros y Hy. split_and!; [auto| |by rewrite Forall_forall in Hstill; apply Hstill].
    apply Hts. rewrite Hperm. apply elem_of_app. by left.
  - intros c1 Hc1. rewrite Hc1. apply orb_true_iff. done.
  - intros c1 zs1 zs2 Heq Hne Hc1. rewrite Hc1. apply orb_false_iff. by apply Hstop in Heq.
  - assert (has (number x) (taken c') = true) as Hxc' by (rewrite Hhas'; apply orb_true_iff; done).
    destruct (merged_covers weigh ((λ c, Config (forget (number x) (taken c)) (now_in c)) <$> cs)
      (Config (forget (number x) (taken c')) (now_in c'))) as (c2 & Hc2 & Ht2 & Hm2).
    { apply elem_of_list_fmap. eauto. }
    cbn in Ht2, Hm2. pose proof Hm2 as [(_&_&_&Hch2&_) _].
    exists c2, σ', s1, ts', pending2, es. cbn. split_and!; try done.
    + by rewrite <-Hch2.
    + by eapply more_over.
    + rewrite Ht2. change (left_of (without x (flight z)) (forget (number x) (taken c')) ≡ₚ ts' ++ pending2).
      rewrite left_forget by done. eapply (left_after _ (taken c) _ ys); [done| |done]. by rewrite Hleft,
          Hperm, (assoc_L app).
Qed.

Lemma settle_all_spec id h hs xs : ∀ z z', NoDup (number <$> xs) →
  (∀ x, x ∈ xs → x ∈ flight z ∧ due x = true ∧ of x = id) → fit z → sound hs z →
  settle_all weigh p tolerates xs z = Some z' →
  fit z' ∧ sound hs z' ∧ next_number z' = next_number z ∧ broken z' = broken z ∧
  (∀ x, x ∈ flight z' → x ∈ flight z ∧ ∀ y, y ∈ xs → number y ≠ number x) ∧
  (due_soon id h z → due_soon id h z').
Proof.
  induction xs as [|x xs IH]; intros z z' Hnd Hxs Hfit Hsound; cbn [settle_all].
  { intros [= <-]. split_and!; try done. intros x ?. split; [done|]. by intros ? ?%elem_of_nil. }
  destruct (settle _ _ _ x z) as [z1|] eqn:Hset; [|done]. intros Hall. cbn in Hnd.
  apply NoDup_cons in Hnd as [Hnx Hnd]. destruct (Hxs x) as (Hx & Hdue & Hof); [left|].
  destruct (settle_fit hs x z z1) as (Hfit1 & Hsound1 & Hnext1 & Hdev1 & Hfl1); [done..|].
  destruct (IH z1 z') as (Hfit' & Hsound' & Hnext' & Hdev' & Hfl' & Hdue'); try done.
  { intros y Hy. destruct (Hxs y) as (? & ? & ?); [by right|]. split_and!; [|done|done].
    rewrite Hfl1. apply elem_of_without. split; [done|]. intros Heq. apply Hnx. rewrite Heq.
    apply elem_of_list_fmap. eauto. }
  split_and!; try done; [congruence|congruence| |].
  - intros y (Hy & Hne)%Hfl'. rewrite Hfl1 in Hy. apply elem_of_without in Hy as [? ?]. split; [done|].
    intros u [->|?]%elem_of_cons; auto.
  - intros Hd. apply Hdue'. by eapply (settle_due id h x z z1).
Qed.

(** ** A moment passes *)

Lemma steps_numbers next id en x : x ∈ steps_of g next id en →
  next ≤ number x < next + length (steps_of g next id en).
Proof.
  assert (∀ es : list (event V), x ∈ imap (λ i e, Step (next + i) id (sure (answer_of en)) (Event e)) es →
    next ≤ number x < next + length (imap (λ i e, Step (next + i) id (sure (answer_of en)) (Event e)) es))
        as Hi.
  { intros l (i & e & -> & Hi)%elem_of_lookup_imap. rewrite imap_length. apply lookup_lt_Some in Hi.
    cbn. lia. }
  unfold steps_of. destruct en as [[]| | | | |]; try (by intros ?%elem_of_nil); try apply Hi.
  destruct (sure _); [|by intros ?%elem_of_nil]. intros ->%elem_of_list_singleton. cbn. lia.
Qed.

Lemma steps_nodup next id en : NoDup (number <$> steps_of g next id en).
Proof.
  assert (∀ es : list (event V), NoDup (number <$> imap (λ i e, Step (next + i) id (sure (answer_of en))
    (Event e)) es)) as Hi.
  { intros l. rewrite fmap_imap. apply NoDup_alt. intros i j n Hni Hnj.
    rewrite list_lookup_imap in Hni, Hnj. destruct (l !! i), (l !! j); cbn in *; simplify_eq. lia. }
  unfold steps_of. destruct en as [[]| | | | |]; try constructor; try apply Hi.
  destruct (sure _); [apply NoDup_singleton|constructor].
Qed.

Lemma steps_keep (P : event V → Prop) next id en :
  (∀ r, en = Hint r → True) →
  (∀ e, en = Event e → not_create e → Forall P (parts g e)) →
  Forall (λ x, (∃ e, takes x = Event e ∧ P e) ∨ ∃ r, takes x = Hint r) (steps_of g next id en).
Proof.
  intros _ He. rewrite Forall_forall. intros x Hx. unfold steps_of in Hx.
  destruct en as [e| | | | |r]; try (by apply elem_of_nil in Hx).
  - assert (not_create e → x ∈ imap (λ i e', Step (next + i) id (sure (answer_of (Event e))) (Event e'))
      (parts g e)
      → (∃ e, takes x = Event e ∧ P e) ∨ ∃ r, takes x = Hint r) as Hi.
    { intros Hn (i & e' & -> & Hi%elem_of_list_lookup_2)%elem_of_lookup_imap. left. exists e'.
      split; [done|]. specialize (He e eq_refl Hn). rewrite Forall_forall in He. by apply He. }
    destruct e; [by apply elem_of_nil in Hx|..]; by apply Hi.
  - destruct (sure _); [|by apply elem_of_nil in Hx]. apply elem_of_list_singleton in Hx as ->. eauto.
Qed.

Lemma steps_still next id en x : x ∈ steps_of g next id en → still tolerates x.
Proof.
  intros Hx. pose proof (steps_keep not_create next id en ltac:(done)) as Hk. rewrite Forall_forall in Hk.
  destruct (λ H, Hk H x Hx) as [(e & Ht & He)|(r & Ht)].
  - intros e -> He. assert (∀ e : event V, not_create e → Forall not_create (by_blocks g e)) as Hb.
    { intros e' He'. by apply by_blocks_keeps. }
    unfold parts. destruct (answer_of (Event e)); [by apply Hb|by constructor| |];
      destruct e; try (by constructor); by apply Hb.
  - intros v. rewrite Ht. by destruct e.
  - intros v. by rewrite Ht.
Qed.

(** *** A flush that is taken when it is called *)

Lemma flush_first v id f next pending h es : orders g next pending h es →
  takes f = Event (Flush Ok) → due f = true → of f = id → ∀ rest s, pending ≡ₚ f :: rest →
  answered_first g id h = true → Forall (λ x, still tolerates x ∧ deed_of (takes x) ≠ Other) rest →
  current p s → power s = true → runs p tolerates v s es →
  ∃ s1 es', entry_step p tolerates v s (Event (Flush Ok)) s1 ∧ orders g next rest h es' ∧
    runs p tolerates v s1 es'.
Proof.
  intros Ho Htf Hdf Hof.
  induction Ho as [next|next pending x rest0 h es Hp Ho IH|next pending id0 en h es called _ IH|
    next pending id0 h es Hs _ IH|next pending en h es _ IH]; intros rest s Hperm Hfirst Hrest Hc Hpw Hr.
  - exists (act p s (Event (Flush Ok))), []. split_and!; [by apply entry_act|constructor|].
    eexists. constructor.
  - apply runs_cons in Hr as (s2 & Hs2 & Hr). assert (f ∈ x :: rest0) as Hf.
    { rewrite <-Hp, Hperm. left. }
    apply elem_of_cons in Hf as [<-|[rest1 Hf]%elem_of_Permutation].
    + exists s2, es. rewrite Htf in Hs2, Hr. split_and!; [done| |done]. eapply orders_perm; [done|].
      apply (Permutation_cons_inv (a := f)). by rewrite <-Hp.
    + assert (rest ≡ₚ x :: rest1) as Hrest1.
      { apply (Permutation_cons_inv (a := f)). rewrite <-Hperm, Hp, Hf. constructor. }
      rewrite Hrest1 in Hrest. apply Forall_cons in Hrest as [[Hst Hd] Hrest]. rewrite Hst in Hr.
      destruct (IH rest1 s2) as (s3 & es' & Hs3 & Ho' & Hr'); [done..|by eapply entry_current| |done|].
      { apply entry_act in Hs2 as (_ & _ & ->); [|done]. by rewrite act_power. }
      destruct (swap p tolerates v s (takes x) (Event (Flush Ok)) s2 s3) as (t1 & t2 & Ht1 & Ht2 & Ha);
        [by apply flush_needs|done..|].
      exists t1, (takes x :: es'). split_and!; [done|by eapply orders_take|].
      apply runs_cons. exists t2. split; [done|]. rewrite Hst. by eapply runs_mono.
  - cbn in Hfirst. apply andb_true_iff in Hfirst as [Hcalled Hfirst].
    destruct (IH (rest ++ called) s) as (s1 & es' & ? & ? & ?); try done.
    + by rewrite Hperm.
    + apply Forall_app. split; [done|]. rewrite (takes_steps g 0 next), forallb_forall in Hcalled.
      apply Forall_forall. intros x Hx. split; [by eapply steps_still|]. apply yields_spec, Hcalled.
      apply elem_of_list_In, elem_of_list_fmap. eauto.
    + exists s1, es'. split_and!; [done|by apply orders_call|done].
  - assert (id0 ≠ id) as Hne.
    { intros ->. unfold settled in Hs. rewrite Hperm in Hs. apply Forall_cons in Hs as [Hs _]. by apply Hs. }
    cbn in Hfirst. apply orb_true_iff in Hfirst as [Heq%same_eq|Hfirst]; [by destruct Hne|].
    destruct (IH rest s) as (s1 & es' & ? & ? & ?); try done.
    exists s1, es'. split_and!; [done| |done]. apply orders_answer; [|done]. unfold settled in *.
    rewrite Hperm in Hs. by apply Forall_cons in Hs as [_ ?].
  - done.
Qed.

Lemma flush_spec h1 h2 id z : fit z → sound h1 z → forallb (λ c, powered (now_in c)) (configs z) = true →
  forallb yields (takes <$> flight z) = true → answered_first g id h2 = true →
  let z' := flush_now weigh p tolerates z in
  fit z' ∧ sound (h1 ++ [Called id (Event (Flush Ok))]) z' ∧
  (goes_on (Called id (Event (Flush Ok)) :: h2) z → goes_on h2 z').
Proof.
  intros (Hnd & Hfl & Hsane) Hsound Hpow Hmoves Hfirst. rewrite !forallb_forall in Hpow, Hmoves.
  unfold flush_now. set (f := Step (next_number z + 0) id true (Event (Flush Ok)) : step_of V).
  assert (steps_of g (next_number z) id (Event (Flush Ok)) = [f]) as Hf by (by destruct g). split_and!.
  - split_and!; cbn; [done|intros x Hx; destruct (Hfl x Hx); split; [lia|done]|].
    apply merged_sane. rewrite Forall_forall in *.
    intros c' (c & (w' & -> & Hw')%elem_of_list_fmap & Hc)%elem_of_list_bind.
    destruct (Hsane c Hc) as [? Ht]. split; [by apply (entry_wf p tolerates (broken z) (Event (Flush Ok))
      (now_in c))|].
    cbn. intros n Hn. specialize (Ht n Hn). lia.
  - apply merged_backed. cbn. unfold sound in Hsound. rewrite Forall_forall in *.
    intros c' (c & (w' & -> & Hw')%elem_of_list_fmap & Hc)%elem_of_list_bind.
    apply (backed_step (backs h1 (flight z) (next_number z) (broken z)) _ (λ tk, tk)
      (broken z) (Event (Flush Ok))); [|by apply Hsound|done].
    intros w0 w1 (es & Hw & Hv & Ho) Hw1. exists (es ++ [Event (Flush Ok)]). split_and!.
    + apply worlds_snoc. exists w0. by rewrite Hv.
    + by rewrite devices_snoc, Hv.
    + intros h3 es3 Ho3. rewrite <-!(assoc_L app). apply Ho. cbn. apply orders_call. rewrite Hf. cbn [length].
      eapply (orders_take _ _ _ f); [by rewrite <-Permutation_cons_append|]. by rewrite Nat.add_1_r.
  - intros (c & σ & s & es & Hc & Hcur & Hs & Hov & Ho & Hr).
    apply orders_split in Ho as (ts & pending2 & es2 & Hp & -> & Ho).
    unfold at_moment in Ho. rewrite Hf in Ho. cbn [length] in Ho. rewrite Nat.add_1_r in Ho.
    assert (powered (now_in c) = true) as Hpc by (by apply Hpow, elem_of_list_In).
    pose proof Hov as [(_ & Hps & _) _].
    destruct (flush_first (broken z) id f (S (next_number z)) (f :: left_of (flight z) (taken c)) h2
      ((takes <$> ts) ++ es2)) with (left_of (flight z) (taken c)) s as (s1 & es' & Hs1 & Ho' & Hr');
        try done.
    + eapply orders_takes; [|done]. by rewrite Hp, (assoc_L app), <-Permutation_cons_append.
    + apply Forall_forall. intros x [Hx _]%elem_of_left. split; [by apply Hfl|].
      apply yields_spec, Hmoves, elem_of_list_In, elem_of_list_fmap. eauto.
    + congruence.
    + assert (wf (now_in c)) as Hwf by (rewrite Forall_forall in Hsane; by apply Hsane).
      destruct (entry_over p tolerates (broken z) σ (now_in c) s (Event (Flush Ok)) s1)
        as (w1 & σ1 & Hw1 & Hs1' & Hov1); [done..|].
      destruct (merged_covers weigh (configs z ≫= λ c, Config (taken c) <$>
        entry_worlds p tolerates (broken z) (Event (Flush Ok)) (now_in c)) (Config (taken c) w1))
        as (c2 & Hc2 & Ht2 & Hm2).
      { apply elem_of_list_bind. exists c. split; [|done]. apply elem_of_list_fmap. eauto. }
      pose proof Hm2 as [(_&_&_&Hch2&_) _]. cbn in Ht2, Hm2, Hch2.
      exists c2, σ1, s1, es'. cbn. split_and!; try done.
      * by eapply entry_current.
      * by rewrite <-Hch2.
      * by eapply more_over.
      * by rewrite Ht2.
Qed.

Lemma call_spec h1 h2 n id en z z' : fit z → sound h1 z →
  pass weigh p tolerates g h2 (Called id en) z = Some z' →
  fit z' ∧ sound (h1 ++ [Called id en]) z' ∧ (goes_on (Called id en :: take n h2) z → goes_on (take n h2) z').
Proof.
  intros Hfit Hsound. pose proof Hfit as (Hnd & Hfl & Hsane). cbn.
  destruct (is_flush en && _ && _ && _) eqn:Hnow.
  { apply andb_true_iff in Hnow as [[[Hen ?]%andb_true_iff ?]%andb_true_iff Hfirst]. intros [= <-].
    destruct en as [[| | | | | | |[]| | |]| | | | |]; try done. by apply flush_spec, answered_first_take. }
  clear Hnow. generalize (take n h2). clear h2 n. intros h2.
  set (called := steps_of g (next_number z) id en). intros [= <-].
  assert (∀ x, x ∈ called → next_number z ≤ number x < next_number z + length called) as Hcalled
    by (intros; by apply steps_numbers).
  assert (∀ c, c ∈ configs z → left_of (flight z ++ called) (taken c) = left_of (flight z) (taken c) ++
      called)
    as Hleft.
  { intros c Hc. rewrite left_app. f_equal. apply left_all. intros y Hy. apply not_true_is_false.
    rewrite Forall_forall in Hsane. intros Ht%(Hsane c Hc). specialize (Hcalled y Hy). lia. }
  split_and!.
  - split_and!; cbn.
    + rewrite fmap_app. apply NoDup_app. split_and!; [done| |apply steps_nodup].
      intros n (x & -> & Hx)%elem_of_list_fmap (y & Heq & Hy)%elem_of_list_fmap.
      specialize (Hcalled y Hy). destruct (Hfl x Hx). lia.
    + intros x [Hx|Hx]%elem_of_app; [destruct (Hfl x Hx); split; [lia|done]|].
      split; [specialize (Hcalled x Hx); lia|by eapply steps_still].
    + rewrite Forall_forall in *. intros c Hc. destruct (Hsane c Hc) as [? Ht]. split; [done|].
      intros m Hm. specialize (Ht m Hm). lia.
  - unfold sound in *. rewrite Forall_forall in *. intros c Hc. cbn in Hc |- *.
    pose proof (backed_weaken (backs h1 (flight z) (next_number z) (broken z))
      (backs (h1 ++ [Called id en]) (flight z ++ called) (next_number z + length called) (broken z)) (λ l,
          l) c)
      as Hw. destruct c as [tk w]. apply Hw; [|by apply Hsound].
    intros w0 (es & ? & ? & Ho). exists es. split_and!; [done|done|]. intros h3 es3 Ho3.
    rewrite <-(assoc_L app). apply Ho. cbn. apply orders_call. rewrite (Hleft _ Hc) in Ho3. exact Ho3.
  - intros (c & σ & s & es & Hc & Hcur & Hs & Hov & Ho & Hr).
    apply orders_split in Ho as (ts & pending2 & es2 & Hp & -> & Ho). cbn in Ho.
    exists c, σ, s, ((takes <$> ts) ++ es2). split_and!; try done. cbn [flight next_number]. rewrite Hleft
        by done.
    eapply orders_takes; [|done]. by rewrite Hp, (assoc_L app).
Qed.

Lemma answer_spec h1 h2 rest id z z' : fit z → sound h1 z →
  pass weigh p tolerates g rest (Answered id) z = Some z' →
  fit z' ∧ sound (h1 ++ [Answered id]) z' ∧ (goes_on (Answered id :: h2) z → goes_on h2 z').
Proof.
  intros Hfit Hsound. cbn. set (xs := base.filter _ (flight z)). intros Hall.
  assert (∀ x, x ∈ xs ↔ x ∈ flight z ∧ due x = true ∧ of x = id) as Hxs.
  { intros x. unfold xs. rewrite elem_of_keep, andb_true_iff, same_eq. naive_solver. }
  destruct (settle_all_spec id h2 h1 xs z z') as (Hfit' & Hsound' & Hnext & Hdev & Hfl & Hdue); try done.
  { eapply numbers_nodup; [apply Hfit| |intros y Hy; by apply Hxs in Hy as [? _]].
    apply NoDup_filter. eapply NoDup_fmap_1, Hfit. }
  { intros x Hx. by apply Hxs in Hx. }
  split_and!; [done| |].
  - unfold sound in *. rewrite Forall_forall in *. intros c Hc.
    pose proof (backed_weaken (backs h1 (flight z') (next_number z') (broken z'))
      (backs (h1 ++ [Answered id]) (flight z') (next_number z') (broken z')) (λ l, l) c) as Hw.
    destruct c as [tk w]. apply Hw; [|by apply Hsound'].
    intros w0 (es & ? & ? & Ho). exists es. split_and!; [done|done|]. intros h3 es3 Ho3.
    rewrite <-(assoc_L app). apply Ho. cbn. apply orders_answer; [|done].
    unfold settled. rewrite Forall_forall. intros x [Hx _]%elem_of_left Hd Hof.
    apply Hfl in Hx as [Hx Hne]. by apply (Hne x); [apply Hxs|].
  - intros (c & σ & s & es & Hc & Hcur & Hs & Hov & Ho & Hr).
    apply orders_split in Ho as (ts & pending2 & es2 & Hp & -> & Hset & Ho).
    destruct Hdue as (c' & σ' & s' & ts' & pending' & es' & Hc' & Hcur' & Hs' & Hov' & Hp' & _ & Ho' & Hr').
    { exists c, σ, s, ts, pending2, es2. done. }
    exists c', σ', s', ((takes <$> ts') ++ es'). split_and!; try done. by eapply orders_takes.
Qed.

Lemma quiet_goes_on en l : quiet en l = true → ends en = false.
Proof. by destruct en as [[| | | | | | | |[]| |]|? []|? []|? []|[]|[]]. Qed.

Lemma alone_spec h1 h2 rest en z z' : fit z → sound h1 z → pass weigh p tolerates g rest (Alone en) z =
  Some z' →
  fit z' ∧ sound (h1 ++ [Alone en]) z' ∧ (goes_on (Alone en :: h2) z → goes_on h2 z').
Proof.
  intros Hfit Hsound. cbn. unfold alone. set (xs := if quiet _ _ then [] else flight z).
  assert (∀ x, x ∈ xs → x ∈ flight z) as Hsub.
  { unfold xs. by destruct (quiet _ _); [intros ? ?%elem_of_nil|]. }
  destruct (reach _ _ _ _ _ _ _ _ _ _) as [[cs work']|] eqn:Hreach; [|done].
  destruct (spend _ _) as [work1|]; [|done]. intros [= <-].
  destruct (reach_sound h1 z _ _ _ _ _ _ Hfit Hsound Hsub Hreach) as [Hback Hsane].
  apply (merged_backed weigh) in Hback. apply (merged_sane weigh) in Hsane. destruct Hfit as (Hnd & Hfl &
      Hsane0).
  assert (∀ tk, left_of (if ends en then [] else flight z) (if ends en then [] else tk) =
    if ends en then [] else left_of (flight z) tk) as Hleft by (intros; by destruct (ends en)).
  split_and!.
  - split_and!; cbn.
    + destruct (ends en); [constructor|done].
    + destruct (ends en); [by intros ? ?%elem_of_nil|done].
    + apply merged_sane. rewrite Forall_forall in *.
      intros c' (c & (w' & -> & Hw')%elem_of_list_fmap & Hc)%elem_of_list_bind.
      destruct (Hsane c Hc) as [? Ht]. split; [by eapply entry_wf|]. cbn. intros m.
      destruct (ends en); [done|apply Ht].
  - apply merged_backed. cbn. rewrite Forall_forall in *.
    intros c' (c & (w' & -> & Hw')%elem_of_list_fmap & Hc)%elem_of_list_bind.
    apply (backed_step (backs h1 (flight z) (next_number z) (broken z)) _ (λ tk, if ends en then [] else tk)
      (broken z) en); [|by apply Hback|done].
    intros w0 w1 (es & Hw & Hv & Ho) Hw1. exists (es ++ [en]). split_and!.
    + apply worlds_snoc. exists w0. by rewrite Hv.
    + by rewrite devices_snoc, Hv.
    + intros h3 es3 Ho3. rewrite Hleft in Ho3. rewrite <-!(assoc_L app). apply Ho. cbn.
      by apply orders_alone.
  - intros (c & σ & s & es & Hc & Hcur & Hs & Hov & Ho & Hr).
    apply orders_split in Ho as (ts & pending2 & es2 & Hp & -> & es3 & -> & Ho).
    assert (∀ y, y ∈ ts → y ∈ flight z ∧ has (number y) (taken c) = false) as Hts.
    { intros y Hy. apply elem_of_left. rewrite Hp. apply elem_of_app. by left. }
    assert (Forall (still tolerates) ts) as Hstill.
    { rewrite Forall_forall. intros y Hy. by apply Hfl, Hts. }
    assert (NoDup ts) as Hndts.
    { assert (NoDup (ts ++ pending2)) as Hnd2 by (rewrite <-Hp; apply NoDup_filter; by eapply NoDup_fmap_1).
      by apply NoDup_app in Hnd2 as [? _]. }
    assert (∃ ys s1 ts', ts = ys ++ ts' ∧ (∀ y, y ∈ ys → y ∈ xs) ∧ (ends en = true → ts' = []) ∧
      recorded_run p tolerates (broken z) s (takes <$> ys) s1 ∧ current p s1 ∧
      ∃ s2, entry_step p tolerates (broken z) s1 en s2 ∧ current p s2 ∧
        runs p tolerates (devices_after tolerates (broken z) en) s2 ((takes <$> ts') ++ es3))
      as (ys & s1 & ts' & -> & Hys & Hends & Hrun & Hc1 & s2 & Hs2 & Hc2 & Hr2).
    { unfold xs. destruct (quiet en _) eqn:Hq.
      - exists [], s, ts. split_and!; [done|by intros ? ?%elem_of_nil| |constructor|done|].
        { apply quiet_goes_on in Hq. by rewrite Hq. }
        apply runs_quiet; try done. unfold quiet in *.
        assert (forallb calm (takes <$> flight z) = true → forallb calm (takes <$> ts) = true) as Hcalm.
        { rewrite !forallb_forall. intros Hall a (y & -> & Hy)%elem_of_list_In%elem_of_list_fmap.
          apply Hall, elem_of_list_In, elem_of_list_fmap. exists y. split; [done|]. by apply Hts. }
        destruct en as [[| | | | | | | |[]| |]|? []|? []|? []|[]|[]]; try done; by apply Hcalm.
      - apply runs_takes in Hr as (s1 & Hrun & Hr); [|done].
        apply runs_cons in Hr as (s2 & Hs2 & Hr2).
        assert (current p s1) by (by eapply recorded_current).
        exists ts, s1, []. rewrite app_nil_r. split_and!; try done.
        { intros y Hy. by apply Hts. }
        exists s2. split_and!; [done|by eapply entry_current|done]. }
    rewrite fmap_app in *. apply Forall_app in Hstill as [Hstill1 Hstill2].
    destruct (reach_finds weigh p tolerates (broken z) xs _ _ ys (length xs) (configs z) c (work z) cs work'
      (next_number z) σ s s1 Hreach) as (c' & σ' & Hc' & Hhas' & Hs' & Hov' & Hcur'); try done.
    + apply submseteq_length, NoDup_submseteq; [by apply NoDup_app in Hndts as [? _]|done].
    + intros y Hy. by apply Hfl, Hsub.
    + intros y Hy. split_and!; [auto|apply Hts, elem_of_app; by left|].
      rewrite Forall_forall in Hstill1. by apply Hstill1.
    + eapply numbers_nodup; [done|by apply NoDup_app in Hndts as [? _]|]. intros y Hy. by apply Hsub, Hys.
    + destruct (merged_covers weigh cs c' Hc') as (c1 & Hc1' & Ht1 & Hm1). pose proof Hm1 as [(_&_&_&Hch1&_)
        _].
      assert (wf (now_in c1)) as Hwf1 by (rewrite Forall_forall in Hsane; by apply Hsane).
      destruct (entry_over p tolerates (broken z) σ' (now_in c1) s1 en s2) as (w2 & σ2 & Hw2 & Hs2' & Hov2);
        [done|done|by rewrite <-Hch1|by eapply more_over|done|].
      set (c2 := Config (if ends en then [] else taken c1) w2).
      destruct (merged_covers weigh (merged weigh cs ≫= λ c,
        Config (if ends en then [] else taken c) <$> entry_worlds p tolerates (broken z) en (now_in c)) c2)
        as (c3 & Hc3 & Ht3 & Hm3).
      { apply elem_of_list_bind. exists c1. split; [|done]. apply elem_of_list_fmap. by exists w2. }
      pose proof Hm3 as [(_&_&_&Hch3&_) _]. cbn in *.
      exists c3, σ2, s2, ((takes <$> ts') ++ es3).
      cbn [flight next_number configs broken]. split_and!; try done.
      * by rewrite <-Hch3.
      * by eapply more_over.
      * rewrite Ht3, Ht1, Hleft. destruct (ends en).
        -- by rewrite Hends.
        -- eapply orders_takes; [|done]. eapply (left_after _ (taken c) _ ys); [done| |done].
           by rewrite Hp, <-(assoc_L app).
Qed.

Lemma pass_spec h1 h2 n m z z' : fit z → sound h1 z → pass weigh p tolerates g h2 m z = Some z' →
  fit z' ∧ sound (h1 ++ [m]) z' ∧ (goes_on (m :: take n h2) z → goes_on (take n h2) z').
Proof. destruct m; [apply call_spec|apply answer_spec|apply alone_spec]. Qed.

(** An order of the history, after the disk was created, that the contract admits. *)
Definition admitted h : Prop := ∃ es, orders g 0 [] h es ∧ runs p tolerates all_good (created blocks) es.

Lemma sound_admitted h z : fit z → sound h z → configs z ≠ [] → admitted h.
Proof.
  intros (_ & _ & Hsane) Hsound Hne. destruct (configs z) as [|c cs] eqn:Hcs; [done|].
  unfold sound in Hsound. rewrite Hcs in Hsound. apply Forall_cons in Hsound as [[Hl Hy] _].
  destruct (leftovers (now_in c)) as [|y ys] eqn:Hly; [done|].
  destruct (Hy y) as (w0 & _ & es & Hw & _ & Ho); [left|].
  exists es. split.
  - specialize (Ho [] [] (orders_end _ _ _)). by rewrite !app_nil_r in Ho.
  - apply worlds_exact. unfold worlds_of in Hw. intros Heq. rewrite Heq in Hw. by apply elem_of_nil in Hw.
Qed.

(** Only a limit on work makes the search give up. *)
Lemma reach_free v xs keep stop : ∀ fuel cs,
  ∃ out, reach weigh p tolerates fuel v xs keep stop cs None = Some (out, None).
Proof.
  induction fuel as [|fuel IH]; intros cs; cbn [reach]; [by eexists|].
  destruct (base.filter (λ c, negb (stop c)) cs); [by eexists|]. cbn [spend].
  match goal with |- context [reach _ _ _ _ _ _ _ _ ?l None] => destruct (IH l) as [out ->] end. by eexists.
Qed.

Lemma settle_all_free xs : ∀ z, work z = None →
  ∃ z', settle_all weigh p tolerates xs z = Some z' ∧ work z' = None.
Proof.
  induction xs as [|x xs IH]; intros z Hz; cbn [settle_all]; [by exists z|]. unfold settle. rewrite Hz.
  match goal with |- context [reach _ ?a ?b ?c ?d ?e ?f ?k ?l None] =>
    destruct (reach_free d e f k c l) as [out ->] end. by apply IH.
Qed.

Lemma pass_free rest m z : work z = None → ∃ z', pass weigh p tolerates g rest m z = Some z' ∧ work z' = None.
Proof.
  intros Hz. destruct m as [id en|id|en]; cbn; [destruct (_ && _);
    by eexists|by apply settle_all_free|]. unfold alone. rewrite
      Hz.
  match goal with |- context [reach _ ?a ?b ?c ?d ?e ?f ?k ?l None] =>
    destruct (reach_free d e f k c l) as [out ->] end. cbn [spend]. by eexists.
Qed.

Lemma pass_all_free h : ∀ i z, work z = None →
  match pass_all weigh g p tolerates i z h with Unknown _ => False | _ => True end.
Proof.
  induction h as [|m h IH]; intros i z Hz; cbn; [done|]. destruct (pass_free h m z Hz) as (z' & -> & Hz').
  destruct (configs z'); [done|]. by apply IH.
Qed.

Lemma pass_all_spec h2 : ∀ h1 z i, fit z → sound h1 z → configs z ≠ [] →
  match pass_all weigh g p tolerates i z h2 with
  | Fit => admitted (h1 ++ h2)
  | Unfit j => ∃ n, j = i + n ∧ n < length h2 ∧ admitted (h1 ++ take n h2) ∧ ¬ goes_on (take (S n) h2) z
  | Unknown _ => is_Some (work z)
  end.
Proof.
  assert (∀ h i z, match pass_all weigh g p tolerates i z h with Unknown _ => is_Some (work z) | _ => True
      end) as Hlim.
  { intros h i z. pose proof (pass_all_free h i z) as Hfree. destruct (work z) as [n|] eqn:Hz.
    - destruct (pass_all _ _ _ _ _ _ _); eauto.
    - specialize (Hfree eq_refl). by destruct (pass_all _ _ _ _ _ _ _). }
  induction h2 as [|m h2 IH]; intros h1 z i Hfit Hsound Hne; [|specialize (Hlim (m :: h2) i z)];
    cbn [pass_all] in *.
  { rewrite app_nil_r. by apply (sound_admitted _ z). }
  destruct (pass weigh p tolerates g h2 m z) as [z'|] eqn:Hpass.
  2:{ done. }
  pose proof (pass_spec h1 h2 0 m z z' Hfit Hsound Hpass) as (Hfit' & Hsound' & Hgo0).
  destruct (configs z') as [|c cs] eqn:Hcs.
  - exists 0. split_and!; [lia|cbn; lia|cbn [take]; rewrite app_nil_r; by apply (sound_admitted _ z)|].
    cbn. intros (c & σ & s & es & Hc & _)%Hgo0. rewrite Hcs in Hc. by apply elem_of_nil in Hc.
  - specialize (IH (h1 ++ [m]) z' (S i) Hfit' Hsound'). rewrite Hcs in IH. specialize (IH ltac:(done)).
    destruct (pass_all _ _ _ _ _ _ _) as [|j|j].
    + by rewrite <-(assoc_L app) in IH.
    + destruct IH as (n & -> & Hn & Had & Hno). exists (S n). split_and!; [lia|cbn; lia| |].
      * by rewrite <-(assoc_L app) in Had.
      * intros Hgo. apply Hno. by apply (pass_spec h1 h2 (S n) m z z').
    + done.
Qed.

End Along.

(** ** Without a power cut the profile does not matter *)

Lemma orders_calm g next pending h es : orders g next pending h es →
  Forall (λ x, calm_entry (takes x)) pending → existsb crashes h = false → Forall calm_entry es.
Proof.
  induction 1 as [next|next pending x rest h es Hp _ IH|next pending id en h es called _ IH|
    next pending id h es Hs _ IH|next pending en h es _ IH]; cbn; intros Hpend Hcr.
  - constructor.
  - rewrite Hp in Hpend. apply Forall_cons in Hpend as [? ?]. constructor; auto.
  - apply orb_false_iff in Hcr as [Hc Hcr]. apply IH; [|done]. apply Forall_app. split; [done|].
    pose proof (steps_keep g calm_event next id en ltac:(done)) as Hk. eapply Forall_impl; [apply Hk|].
    + intros e -> _. assert (calm_event e) as He by (by destruct e).
      assert (∀ e : event V, calm_event e → Forall calm_event (by_blocks g e)) as Hb.
      { intros e' He'. by apply by_blocks_keeps. }
      unfold parts. destruct (answer_of (Event e)); [by apply Hb|by constructor| |];
        destruct e; try (by constructor); by apply Hb.
    + cbn. intros x [(e & -> & ?)|(r & ->)]; done.
  - auto.
  - apply orb_false_iff in Hcr as [Hc Hcr]. constructor; [by destruct en as [[]| | | | |]|].
    apply IH; [|done]. by destruct (ends en).
Qed.

Lemma admitted_profile g p tolerates blocks h (rest : list (moment V)) : (existsb crashes rest = false →
    existsb crashes h = false) →
  admitted g (profile_for p rest) tolerates blocks h ↔ admitted g p tolerates blocks h.
Proof.
  intros Hh. unfold profile_for. destruct (existsb crashes rest) eqn:Hc; [done|].
  specialize (Hh eq_refl). split; intros (es & Ho & Hr); exists es; (split; [done|]);
    (eapply calm_runs; [|done..]); by eapply orders_calm.
Qed.

(** ** Verdicts *)

Lemma admits_created g p tolerates blocks h :
  admits_overlapping g p tolerates (Alone (Event (Create blocks)) :: h) ↔ admitted g p tolerates blocks h.
Proof.
  split.
  - intros (? & ? & es & _ & Ho & (blocks' & rest & s & -> & Hrun)).
    apply orders_split in Ho as (ts & pending2 & es2 & Hp & Heq & es3 & -> & Ho).
    apply Permutation_nil_l in Hp. symmetry in Hp. apply app_eq_nil in Hp as [-> ->]. cbn in *.
    injection Heq as <- <-. exists rest. split; [done|]. by exists s.
  - intros (es & Ho & s & Hrun). exists blocks, h, (Event (Create blocks) :: es).
    split_and!; [done|by apply orders_alone|]. by exists blocks, es, s.
Qed.

Lemma begin_fit tolerates blocks work : fit tolerates (@begin V blocks work).
Proof. split_and!; cbn; [constructor|by intros ? ?%elem_of_nil|]. constructor; [|done].
  split; [apply wf_fresh|done]. Qed.
Lemma begin_sound g p tolerates blocks work : sound g p tolerates blocks [] (@begin V blocks work).
Proof.
  constructor; [|done]. split; [done|]. cbn. intros y Hy. exists (fresh_world blocks). split; [by split|].
  exists []. split_and!; [left|done|]. by intros.
Qed.
Lemma begin_goes_on g p tolerates blocks work h : admitted g p tolerates blocks h →
  goes_on g p tolerates h (@begin V blocks work).
Proof.
  intros (es & Ho & Hr). exists (Config [] (fresh_world blocks)), (λ _, zero), (created blocks), es.
  split_and!; [left|apply current_exactly| |apply beside_fresh|done|done].
  intros j b vs. cbn. by rewrite lookup_empty.
Qed.

Lemma crashes_take (rest : list (moment V)) n :
  existsb crashes rest = false → existsb crashes (take n rest) = false.
Proof. revert n. induction rest as [|m rest IH]; intros [|n]; cbn; [done..|].
  rewrite !orb_false_iff. intros [? ?]. auto. Qed.

(** A history that fits has an order that the contract admits. One that does not has none, has none up to the
moment named, and has one up to the moment before. *)
Theorem judge_overlapping_correct g p tolerates work h :
  match judge_overlapping weigh g p tolerates work h with
  | Fit => admits_overlapping g p tolerates h
  | Unfit i => ¬ admits_overlapping g p tolerates (take (S i) h) ∧
      (0 < i → admits_overlapping g p tolerates (take i h))
  | Unknown _ => is_Some work
  end.
Proof.
  assert (∀ h : list (moment V), (∀ blocks rest, h ≠ Alone (Event (Create blocks)) :: rest) →
    ¬ admits_overlapping g p tolerates (take 1 h) ∧ (0 < 0 → admits_overlapping g p tolerates (take 0 h)))
        as Hbad.
  { intros h0 Hh. split; [|lia]. intros (blocks & rest & es & Heq & _). destruct h0; [done|].
    injection Heq as -> _. by eapply Hh. }
  unfold judge_overlapping. destruct h as [|[id en|id|[[]| | | | |]] h]; try (by apply Hbad).
  set (q := profile_for p h).
  pose proof (pass_all_spec g q tolerates blocks h [] (begin blocks work) 1 (begin_fit tolerates _ _)
    (begin_sound _ _ _ _ _) ltac:(done)) as Hspec.
  destruct (pass_all _ _ _ _ _ _ _) as [|j|j].
  - apply admits_created, (admitted_profile g p tolerates blocks h h); done.
  - destruct Hspec as (n & -> & Hn & Had & Hno). split.
    + intros Hadm%admits_created. apply Hno, begin_goes_on.
      apply (admitted_profile g p tolerates blocks _ h); [by apply crashes_take|done].
    + intros _. apply admits_created, (admitted_profile g p tolerates blocks _ h); [by apply
        crashes_take|done].
  - done.
Qed.

Lemma admits_overlapping_prefix g p tolerates n h : 0 < n →
  admits_overlapping g p tolerates h → admits_overlapping g p tolerates (take n h).
Proof.
  intros Hn Hadm. pose proof Hadm as (blocks & rest & _ & -> & _).
  destruct n as [|n]; [lia|]. cbn. apply admits_created. apply admits_created in Hadm as (es & Ho & Hr).
  destruct (orders_prefix _ _ _ _ _ Ho n) as (es1 & es2 & -> & ?). exists es1. split; [done|].
  by eapply runs_prefix.
Qed.

Theorem check_overlapping_correct g p tolerates h :
  check_overlapping weigh g p tolerates h = true ↔ admits_overlapping g p tolerates h.
Proof.
  unfold check_overlapping. pose proof (judge_overlapping_correct g p tolerates None h) as Hj.
  destruct (judge_overlapping weigh g p tolerates None h) as [|i|i]; [done| |by destruct Hj].
  split; [done|]. intros Hadm. destruct Hj as [Hno _]. destruct Hno.
  apply admits_overlapping_prefix; [lia|done].
Qed.

End OverlappingCorrect.
