(** Blocks are judged apart: a history has an order that the contract admits if and only if instants can be
fixed for the steps that blocks share, so that each block by itself has an order of its own steps between
  them.

This is why [conformance/judging/orders] searches in each block alone, and multiplies nothing out. It holds
  for
[Ack] and [Block], where a power cut leaves each block by itself. Under [Prefix] it does not, as
[apart_needs_profile] shows: there a power cut leaves the disk as it was at one moment. *)
From LogDisk Require Import VirtualDisk VirtualDiskProperties RecordedTrace OverlappingDisk
  OverlappingDiskOrders OverlappingDiskCorrect OverlappingDiskColumns OverlappingDiskRebuild.

Local Existing Instance no_data.

(** The steps of one block come and go; an instant is fixed for everything else. *)
Inductive instant {V : Type} :=
  | Opens (xs : list (step_of V))
  | Closes (id : nat)
  | Fixed (en : entry V).
Global Arguments instant : clear implicits.

Section Blocks.
Context {V : Type} `{EqDecision V, Value V}.
Implicit Types (en : entry V) (x y : step_of V) (h : list (moment V)) (es : list (entry V))
  (pending rest xs : list (step_of V)) (line : list (instant V)) (b blocks : nat).

(** The block of a step that is of one block; every other step is shared. *)
Definition home blocks en : option nat :=
  match en with
  | Event (Write l [_] Ok) | Event (WriteThrough l [_] _ Ok) | Event (Unmap l 1 Ok)
    | Event (Read _ l 1 Ok [_]) => if decide (l < blocks) then Some l else None
  | _ => None
  end.
Definition is_shared blocks x : bool := bool_decide (home blocks (takes x) = None).
Definition is_local blocks x : bool := negb (is_shared blocks x).
Definition is_at blocks b x : bool := bool_decide (home blocks (takes x) = Some b).

(** An order of the steps of one block, around the instants that are fixed. *)
Inductive interleaves pending : list (instant V) → list (entry V) → Prop :=
  | interleaves_end : interleaves pending [] []
  | interleaves_take x rest line es :
      pending ≡ₚ x :: rest → interleaves rest line es → interleaves pending line (takes x :: es)
  | interleaves_open xs line es :
      interleaves (pending ++ xs) line es → interleaves pending (Opens xs :: line) es
  | interleaves_close id line es :
      settled id pending → interleaves pending line es → interleaves pending (Closes id :: line) es
  | interleaves_fixed en line es :
      interleaves (if ends en then [] else pending) line es → interleaves pending (Fixed en :: line) (en ::
        es).

(** The history with an instant for each shared step. *)
Inductive fixes (g : granularity) blocks (next : nat) pending : list (moment V) → list (instant V) → Prop :=
  | fixes_end : fixes g blocks next pending [] []
  | fixes_take x rest h line :
      pending ≡ₚ x :: rest → fixes g blocks next rest h line →
      fixes g blocks next pending h (Fixed (takes x) :: line)
  | fixes_call id en h line :
      let called := steps_of g next id en in
      fixes g blocks (next + length called) (pending ++ base.filter (is_shared blocks) called) h line →
      fixes g blocks next pending (Called id en :: h) (Opens (base.filter (is_local blocks) called) :: line)
  | fixes_answer id h line :
      settled id pending → fixes g blocks next pending h line →
      fixes g blocks next pending (Answered id :: h) (Closes id :: line)
  | fixes_alone en h line :
      fixes g blocks next (if ends en then [] else pending) h line →
      fixes g blocks next pending (Alone en :: h) (Fixed en :: line).

(** What a block sees of it, and what is left without data. *)
Definition step_on b x : step_of V := Step (number x) (of x) (due x) (on_block b (takes x)).
Definition steps_on blocks b xs : list (step_of V) := step_on b <$> base.filter (is_at blocks b) xs.
Definition instant_on blocks b (m : instant V) : instant V :=
  match m with
  | Opens xs => Opens (steps_on blocks b xs)
  | Closes id => Closes id
  | Fixed en => Fixed (on_block b en)
  end.
Definition column blocks b line : list (instant V) := instant_on blocks b <$> line.

Fixpoint shared_steps line : list (entry unit) :=
  match line with
  | [] => []
  | Fixed en :: line => without_data en :: shared_steps line
  | _ :: line => shared_steps line
  end.

(** What may be in flight is a request; what is sent alone has one outcome for all blocks. *)
Definition is_fair (m : moment V) : Prop :=
  match m with
  | Called _ (Event (Restart _)) | Called _ (Event (Crash _)) => False
  | Alone en => is_whole en
  | _ => True
  end.

(** ** Instants are fixed *)

Definition steps_fair x : Prop := is_whole (takes x) ∧ ends (takes x) = false.
Definition line_fair blocks (m : instant V) : Prop :=
  match m with
  | Opens xs => Forall (λ x, is_local blocks x = true) xs
  | Closes _ => True
  | Fixed en => is_whole en
  end.

Lemma called_fair g next id en : is_fair (Called id en) → Forall steps_fair (steps_of g next id en).
Proof.
  intros Hf. rewrite Forall_forall. intros x Hx. unfold steps_of in Hx.
  destruct en as [e| | | | |r]; try (by apply elem_of_nil in Hx).
  - set (P := λ e : event V, is_whole (Event e) ∧ ends (Event e) = false).
    assert (∀ e, P e → answer_of (Event e) = Ok → Forall P (by_blocks g e)) as Hb.
    { intros e0 He0 Hok. apply by_blocks_keeps; [done|..]; intros; subst; cbn in Hok; subst; done. }
    assert (Forall P (parts g e) ∨ ∃ n, e = Create n) as [Hp|[n ->]]; [| |by apply elem_of_nil in Hx].
    { unfold parts. destruct e as [n|? ? r|? ? ? r|? ? r|? r|? r|? r|r|r|? ? ? r ?|r]; [by right; exists
      n|left..];
        try done; destruct r; cbn; try (by constructor); try (by repeat constructor); by apply Hb. }
    assert (x ∈ imap (λ i e', Step (next + i) id (sure (answer_of (Event e))) (Event e')) (parts g e) ∨ x ∈
      [])
      as [(i & e' & -> & Hi)%elem_of_lookup_imap|?%elem_of_nil] by (destruct e; auto); [|done].
    rewrite Forall_lookup in Hp. by apply (Hp i).
  - destruct (sure _) eqn:Hs; [|by apply elem_of_nil in Hx]. apply elem_of_list_singleton in Hx as ->.
    split; [done|]. by destruct r.
Qed.

Lemma settled_filter id (f : step_of V → bool) pending : settled id pending → settled id (base.filter f
  pending).
Proof. unfold settled. rewrite !Forall_forall. intros Hs x [_ Hx]%elem_of_list_filter. by apply Hs. Qed.

Lemma split_shared blocks pending :
  pending ≡ₚ base.filter (is_shared blocks) pending ++ base.filter (is_local blocks) pending.
Proof.
  induction pending as [|x pending IH]; [done|]. rewrite !filter_cons. unfold is_local.
  destruct (is_shared blocks x); cbn; rewrite IH at 1; [done|]. by rewrite Permutation_middle.
Qed.

Lemma interleaves_perm pending line es : interleaves pending line es → ∀ pending', pending ≡ₚ pending' →
  interleaves pending' line es.
Proof.
  induction 1 as [|pending x rest line es Hp _ IH|pending xs line es _ IH|pending id line es Hs _ IH|
    pending en line es _ IH]; intros pending' Hperm.
  - constructor.
  - eapply interleaves_take; [by rewrite <-Hperm|]. by apply IH.
  - apply interleaves_open, IH. by rewrite Hperm.
  - apply interleaves_close; [unfold settled; by rewrite <-Hperm|by apply IH].
  - apply interleaves_fixed, IH. by destruct (ends en).
Qed.

Lemma fixes_perm g blocks next pending h line : fixes g blocks next pending h line →
  ∀ pending', pending ≡ₚ pending' → fixes g blocks next pending' h line.
Proof.
  induction 1 as [|next pending x rest h line Hp _ IH|next pending id en h line called _ IH|
    next pending id h line Hs _ IH|next pending en h line _ IH]; intros pending' Hperm.
  - constructor.
  - eapply fixes_take; [by rewrite <-Hperm|]. by apply IH.
  - apply fixes_call, IH. by rewrite Hperm.
  - apply fixes_answer; [unfold settled; by rewrite <-Hperm|by apply IH].
  - apply fixes_alone, IH. by destruct (ends en).
Qed.

Lemma orders_fixes g blocks next pending h es : orders g next pending h es → Forall is_fair h →
  Forall steps_fair pending → ∃ line, fixes g blocks next (base.filter (is_shared blocks) pending) h line ∧
    interleaves (base.filter (is_local blocks) pending) line es.
Proof.
  induction 1 as [next|next pending x rest h es Hp _ IH|next pending id en h es called _ IH|
    next pending id h es Hs _ IH|next pending en h es _ IH]; intros Hh Hpe.
  - exists []. split; constructor.
  - rewrite Hp in Hpe. apply Forall_cons in Hpe as [[_ Hx] Hpe]. destruct IH as (line & Hf & Hi); [done..|].
    destruct (is_shared blocks x) eqn:Hsh.
    + exists (Fixed (takes x) :: line). split.
      * apply (fixes_take _ _ _ _ x (base.filter (is_shared blocks) rest)); [|done].
        rewrite Hp, filter_cons_True; [done|by rewrite Hsh].
      * apply interleaves_fixed. rewrite Hx. eapply interleaves_perm; [done|].
        rewrite Hp, filter_cons_False; [done|]. unfold is_local. rewrite Hsh. by intros [].
    + exists line. split.
      * eapply fixes_perm; [exact Hf|]. rewrite Hp, filter_cons_False; [done|]. rewrite Hsh. by intros [].
      * eapply interleaves_take; [|done]. rewrite Hp, filter_cons_True; [done|].
        unfold is_local. by rewrite Hsh.
  - apply Forall_cons in Hh as [Hm Hh]. destruct IH as (line & Hf & Hi); [done| |].
    { apply Forall_app. split; [done|by apply called_fair]. }
    rewrite !filter_app in Hf, Hi. eexists. split; [by apply fixes_call|by apply interleaves_open].
  - apply Forall_cons in Hh as [_ Hh]. destruct IH as (line & Hf & Hi); [done..|].
    exists (Closes id :: line). split; [apply fixes_answer|apply interleaves_close]; try done;
    by apply settled_filter.
  - apply Forall_cons in Hh as [_ Hh]. destruct IH as (line & Hf & Hi); [done|by destruct (ends en)|].
    exists (Fixed en :: line). split; [apply fixes_alone|apply interleaves_fixed]; by destruct (ends en).
Qed.

Lemma shuffled {A} (k l m n all : list A) : all ≡ₚ l ++ n → (k ++ l) ++ (m ++ n) ≡ₚ (k ++ m) ++ all.
Proof. intros ->. rewrite <-!(assoc_L (++)). f_equiv. rewrite !(assoc_L (++)). f_equiv. apply
  Permutation_app_comm.
Qed.

Lemma fixes_orders g blocks loc line es : interleaves loc line es → ∀ next pending h,
  fixes g blocks next pending h line → Forall is_fair h → Forall steps_fair pending →
  orders g next (pending ++ loc) h es.
Proof.
  induction 1 as [loc|loc x rest line es Hp _ IH|loc xs line es _ IH|loc id line es Hs _ IH|loc en line es _
    IH];
    intros next pending h Hf Hh Hpe.
  - inversion Hf; subst. constructor.
  - apply (orders_take _ _ _ x (pending ++ rest)); [by rewrite Hp, Permutation_middle|]. by apply IH.
  - inversion Hf; subst. subst called. apply Forall_cons in Hh as [Hm Hh]. apply orders_call.
    pose proof (called_fair g next _ _ Hm) as Hc.
    eapply orders_perm; [apply IH; [done..|]|].
    + apply Forall_app. split; [done|]. rewrite Forall_forall in Hc |- *.
      intros x [_ Hx]%elem_of_list_filter. by apply Hc.
    + apply shuffled, split_shared.
  - inversion Hf; subst. apply Forall_cons in Hh as [_ Hh]. apply orders_answer; [|by apply IH].
    by apply Forall_app.
  - inversion Hf as [|x rest ? ? Hp Hf'| | |]; subst.
    + rewrite Hp in Hpe. apply Forall_cons in Hpe as [[_ Hx] Hpe]. rewrite Hx in IH.
      apply (orders_take _ _ _ x (rest ++ loc)); [by rewrite Hp|]. by apply IH.
    + apply Forall_cons in Hh as [_ Hh]. apply orders_alone.
      destruct (ends en); [apply (IH _ []); try done|by apply IH].
Qed.

Lemma fixes_fair g blocks next pending h line : fixes g blocks next pending h line → Forall is_fair h →
  Forall steps_fair pending → Forall (line_fair blocks) line.
Proof.
  induction 1 as [|next pending x rest h line Hp _ IH|next pending id en h line called _ IH|
    next pending id h line _ _ IH|next pending en h line _ IH]; intros Hh Hpe.
  - constructor.
  - rewrite Hp in Hpe. apply Forall_cons in Hpe as [[Hx _] Hpe]. constructor; [done|by apply IH].
  - apply Forall_cons in Hh as [Hm Hh]. constructor.
    + cbn. rewrite Forall_forall. intros x [Hx _]%elem_of_list_filter. by apply Is_true_true.
    + apply IH; [done|]. apply Forall_app. split; [done|]. pose proof (called_fair g next _ _ Hm) as Hc.
      rewrite Forall_forall in Hc |- *. intros x [_ Hx]%elem_of_list_filter. by apply Hc.
  - apply Forall_cons in Hh as [_ Hh]. constructor; [done|by apply IH].
  - apply Forall_cons in Hh as [Hm Hh]. constructor; [done|]. apply IH; [done|by destruct (ends en)].
Qed.

(** ** From all steps to those of one block *)

Lemma home_cases blocks b en : home blocks en = Some b → b < blocks ∧
  ((∃ v, en = Event (Write b [v] Ok)) ∨ (∃ v told, en = Event (WriteThrough b [v] told Ok)) ∨
   en = Event (Unmap b 1 Ok) ∨ ∃ from v, en = Event (Read from b 1 Ok [v])).
Proof.
  intros Hh. destruct en as [[|l [|v [|]] []|l [|v [|]] told []|l [|[|]] []| | | | | |from l [|[|]] [] [|v
    [|]]|]| | | | |];
    cbn in Hh; try done; case_decide; try done; injection Hh as ->; (split; [done|]); eauto 8.
Qed.

Lemma data_at_one b (v : V) b' : data_at b [v] b' = if decide (b' = b) then Some v else None.
Proof. unfold data_at. repeat case_decide; try lia; try done; subst.
  - by rewrite Nat.sub_diag.
  - by destruct (b' - b) as [|k] eqn:Hk; [lia|]. Qed.

Lemma home_elsewhere blocks b b' en : home blocks en = Some b → b' ≠ b → on_block b' en = Hint Ok.
Proof.
  intros [_ Hc]%home_cases Hne.
  destruct Hc as [(v & ->)|[(v & told & ->)|[->|(from & v & ->)]]]; cbn; rewrite ?data_at_one;
    by rewrite decide_False by lia.
Qed.

Lemma home_whole blocks b en : home blocks en = Some b → is_whole en.
Proof. by intros [_ [(v & ->)|[(v & told & ->)|[->|(from & v & ->)]]]]%home_cases. Qed.
Lemma home_devices blocks b en tolerates v : home blocks en = Some b → devices_after tolerates v en = v.
Proof. by intros [_ [(w & ->)|[(w & told & ->)|[->|(from & w & ->)]]]]%home_cases. Qed.

Lemma local_home blocks x : is_local blocks x = true → ∃ b, home blocks (takes x) = Some b.
Proof. unfold is_local, is_shared. intros Hl%negb_true_iff%bool_decide_eq_false. by apply not_eq_None_Some.
  Qed.

Lemma on_block_ends b en : is_whole en → ends (on_block b en) = ends en.
Proof.
  intros Hw. destruct en as [e|? r|? r|? r|r|r]; try done.
  destruct e as [n|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r]; try done;
    destruct r; cbn; try done; by repeat case_match.
Qed.
Lemma on_block_devices b en tolerates v : is_whole en → devices_after tolerates v (on_block b en) = v.
Proof.
  intros Hw. destruct en as [e|? r|? r|? r|r|r]; try done.
  destruct e as [n|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r]; try done;
    destruct r; cbn; try done; by repeat case_match.
Qed.
Lemma without_data_devices en tolerates v :
  devices_after tolerates v (without_data en) = devices_after tolerates v en.
Proof. by destruct en as [[]|? []|? []|? []|[]|[]]. Qed.

Global Instance steps_on_perm blocks b : Proper ((≡ₚ) ==> (≡ₚ)) (steps_on blocks b).
Proof. intros xs ys Hp. unfold steps_on. by rewrite Hp. Qed.
Lemma steps_on_here blocks b x rest : home blocks (takes x) = Some b →
  steps_on blocks b (x :: rest) = step_on b x :: steps_on blocks b rest.
Proof. intros Hh. unfold steps_on. rewrite filter_cons_True; [done|]. unfold is_at. by rewrite
  bool_decide_true. Qed.
Lemma steps_on_elsewhere blocks b b' x rest : home blocks (takes x) = Some b' → b ≠ b' →
  steps_on blocks b (x :: rest) = steps_on blocks b rest.
Proof. intros Hh Hne. unfold steps_on. rewrite filter_cons_False; [done|]. unfold is_at.
  rewrite bool_decide_false; [by intros []|]. rewrite Hh. congruence. Qed.
Lemma steps_on_app blocks b xs ys : steps_on blocks b (xs ++ ys) = steps_on blocks b xs ++ steps_on blocks b
  ys.
Proof. unfold steps_on. by rewrite filter_app, fmap_app. Qed.
Lemma steps_on_settled blocks b id pending : settled id pending → settled id (steps_on blocks b pending).
Proof. unfold settled, steps_on. rewrite Forall_fmap, !Forall_forall. intros Hs x [_ Hx]%elem_of_list_filter.
  exact (Hs x Hx). Qed.

Section Runs.
Context (p : profile) (tolerates : nat) (blocks : nat).

Lemma interleaves_column b pending line es : interleaves pending line es → ∀ v s c s',
  p ≠ Prefix → Forall (line_fair blocks) line → Forall (λ x, is_local blocks x = true) pending →
  follows b s c → steady p c → recorded_run p tolerates v s es s' → ∃ es' c',
    interleaves (steps_on blocks b pending) (column blocks b line) es' ∧
    recorded_run p tolerates all_good c es' c'.
Proof.
  induction 1 as [pending|pending x rest line es Hp _ IH|pending xs line es _ IH|pending id line es Hs _ IH|
    pending en line es _ IH]; intros v s c s' Hpr Hl Hpe Hf Hst Hrun.
  - exists [], c. split; constructor.
  - inversion Hrun as [|? s1 ? ? Hstep Hrest]; subst. rewrite Hp in Hpe. apply Forall_cons in Hpe as [Hx Hpe].
    destruct (local_home _ _ Hx) as [b' Hh].
    destruct (column_step p tolerates v all_good b s c _ s1 Hpr (home_whole _ _ _ Hh) Hf Hst Hstep)
      as (c1 & Hc1 & Hf1). destruct (decide (b = b')) as [<-|Hne].
    + destruct (IH _ _ _ _ Hpr Hl Hpe Hf1 (steady_entry _ _ _ _ _ _ Hc1 Hst) Hrest) as (es' & c' & Hi & Hr).
      exists (on_block b (takes x) :: es'), c'. split.
      * eapply (interleaves_take _ (step_on b x)); [|done]. by rewrite Hp, steps_on_here.
      * econstructor; [done|]. by rewrite on_block_devices by (by eapply home_whole).
    + rewrite (home_elsewhere blocks b' b) in Hc1 by done. destruct Hc1 as [_ ->].
      destruct (IH _ _ _ _ Hpr Hl Hpe Hf1 Hst Hrest) as (es' & c' & Hi & Hr). exists es', c'. split; [|done].
      eapply interleaves_perm; [done|]. by rewrite Hp, (steps_on_elsewhere blocks b b').
  - apply Forall_cons in Hl as [Hx Hl].
    destruct (IH v s c s') as (es' & c' & Hi & ?); [done..|by apply Forall_app|done|done|done|].
    exists es', c'. split; [|done]. apply interleaves_open. by rewrite <-steps_on_app.
  - apply Forall_cons in Hl as [_ Hl].
    destruct (IH v s c s') as (es' & c' & Hi & ?); [done..|]. exists es', c'. split; [|done].
    apply interleaves_close; [by apply steps_on_settled|done].
  - apply Forall_cons in Hl as [Hw Hl]. inversion Hrun as [|? s1 ? ? Hstep Hrest]; subst.
    destruct (column_step p tolerates v all_good b s c _ s1 Hpr Hw Hf Hst Hstep) as (c1 & Hc1 & Hf1).
    pose proof (steady_entry _ _ _ _ _ _ Hc1 Hst) as Hst1.
    destruct (IH _ _ _ _ Hpr Hl ltac:(by destruct (ends en)) Hf1 Hst1 Hrest) as (es' & c' & Hi & Hr).
    exists (on_block b en :: es'), c'. split.
    + apply interleaves_fixed. rewrite on_block_ends by done. by destruct (ends en).
    + econstructor; [done|]. by rewrite on_block_devices.
Qed.

(** ** From all steps to a disk without data *)

Lemma local_forget b en v (u u1 : state unit) : home blocks en = Some b →
  entry_step p tolerates v u (without_data en) u1 →
  size u1 = size u ∧ power u1 = power u ∧ snaps (now u1) = snaps (now u).
Proof.
  intros [_ [(w & ->)|[(w & told & ->)|[->|(from & w & ->)]]]]%home_cases Hs; cbn in Hs;
    (destruct Hs as [Hs|[]]); [| | |destruct Hs as [Hs _]]; by destruct Hs as [_ [_ ->]].
Qed.

Lemma forgets_back (s1 : state V) (s : state V) (u u1 : state unit) : forgets s u → forgets s1 u1 →
  size u1 = size u ∧ power u1 = power u ∧ snaps (now u1) = snaps (now u) → forgets s1 u.
Proof.
  intros (_ & _ & _ & _ & Hu) (? & ? & Hn & Hi & _) (? & ? & Heq). rewrite Heq in Hn, Hi.
  split_and!; try done; congruence.
Qed.

Lemma interleaves_forget pending line es : interleaves pending line es → ∀ v (s : state V) u s',
  p ≠ Prefix → Forall (line_fair blocks) line → Forall (λ x, is_local blocks x = true) pending →
  forgets s u → steady p u → recorded_run p tolerates v s es s' →
  ∃ u', recorded_run p tolerates v u (shared_steps line) u'.
Proof.
  induction 1 as [pending|pending x rest line es Hp _ IH|pending xs line es _ IH|pending id line es Hs _ IH|
    pending en line es _ IH]; intros v s u s' Hpr Hl Hpe Hf Hst Hrun.
  - exists u. constructor.
  - inversion Hrun as [|? s1 ? ? Hstep Hrest]; subst. rewrite Hp in Hpe. apply Forall_cons in Hpe as [Hx Hpe].
    destruct (local_home _ _ Hx) as [b Hh]. rewrite (home_devices blocks b) in Hrest by done.
    destruct (forget_step p tolerates v s u _ s1 Hpr (home_whole _ _ _ Hh) Hf Hst Hstep) as (u1 & Hu1 & Hf1).
    eapply IH; [done..| |done|exact Hrest]. eapply forgets_back; [exact Hf|done|by eapply local_forget].
  - apply Forall_cons in Hl as [Hx Hl]. eapply IH; [done..|by apply Forall_app|done|done|exact Hrun].
  - apply Forall_cons in Hl as [_ Hl]. by eapply IH.
  - apply Forall_cons in Hl as [Hw Hl]. inversion Hrun as [|? s1 ? ? Hstep Hrest]; subst.
    destruct (forget_step p tolerates v s u _ s1 Hpr Hw Hf Hst Hstep) as (u1 & Hu1 & Hf1).
    destruct (IH _ _ _ _ Hpr Hl ltac:(by destruct (ends en)) Hf1 (steady_entry _ _ _ _ _ _ Hu1 Hst) Hrest)
      as (u' & Hu'). exists u'. econstructor; [done|]. by rewrite without_data_devices.
Qed.

(** ** From every block by itself to all steps *)

Lemma answered_size {A} `{Value A} (s : state A) r faults excuses d left s' :
  answered s r faults excuses d left s' → size s' = size s.
Proof. intros [_ Ha]. destruct r; [by destruct Ha as [_ ->]|by destruct Ha as [_ ->]| |by subst].
  by destruct Ha as [->|[_ ->]]. Qed.
Lemma entry_size v (s : state V) en s' : is_whole en → entry_step p tolerates v s en s' → size s' = size s.
Proof.
  intros Hw He. destruct en as [e|? r|? r|? r|r|r]; cbn in He; try (destruct He as [_ ->]; by destruct r).
  destruct He as [Hs|Hl].
  - destruct e as [n|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r];
      cbn in Hs, Hw; try done; try (by eapply answered_size).
    + destruct Hs as [Hs _]. by eapply answered_size.
    + destruct r; try done; [|by subst]. by destruct Hs as (? & ? & _ & _ & ->).
  - destruct e as [| | | | | | | | |? ? ? [|[]| |] ?|]; try done. by destruct Hl as (_ & _ & ->).
Qed.

Lemma local_any b en v w (s s1 : state V) : home blocks en = Some b →
  entry_step p tolerates v s en s1 → entry_step p tolerates w s en s1.
Proof.
  intros [_ [(x & ->)|[(x & told & ->)|[->|(from & x & ->)]]]]%home_cases Hs; (destruct Hs as [Hs|[]]); by
    left.
Qed.

Definition stands s (u : state unit) (columns : nat → state V) pending : Prop :=
  size s = blocks ∧ forgets s u ∧ rebuilds blocks s columns ∧ steady p u ∧
  (∀ b, b < blocks → steady p (columns b)) ∧ Forall (λ x, is_local blocks x = true) pending.

Lemma local_able b en v s u columns pending c1 : stands s u columns pending → home blocks en = Some b →
  entry_step p tolerates all_good (columns b) (on_block b en) c1 →
  power (columns b) = true ∧ ∃ u1, entry_step p tolerates v u (without_data en) u1.
Proof.
  intros (Hsz & Hf & (i & _ & _ & Hm) & _) [Hb Hc]%home_cases Hs. destruct (Hm b Hb) as (_ & Hpw & Ha & _).
  pose proof Hf as (Hz & Hpu & Hn & _). assert (out_of_range u b 1 = []) as Hfit.
  { unfold out_of_range, fits. rewrite <-Hz, Hsz. case_decide; [done|lia]. }
  destruct Hc as [(x & ->)|[(x & told & ->)|[->|(from & x & ->)]]]; cbn in Hs;
    rewrite ?data_at_one, ?decide_True in Hs by lia; (destruct Hs as [Hs|[]]); [| | |destruct Hs as [Hs _]];
    destruct Hs as [Hp [Hk _]]; (split; [done|]); assert (power u = true) as Hpu' by congruence.
  1-3: eexists; left; split; [done|]; by split; [rewrite ?Hfit|].
  apply app_eq_nil in Hk as [_ Hk]. rewrite <-(alike_missing_view _ _ _ _ Ha), (view_named _ _ _ Hn) in Hk.
  eexists. left. split; [split; [done|]; by split; [rewrite Hfit, Hk|]|]. intros _.
  destruct from as [|n]; cbn in Hk |- *.
  { exists (live (now u)). split; [done|]. by destruct (live (now u) b). }
  unfold missing in Hk. destruct (valid_name n); [|done]. case_decide as Hsome; [|done].
  destruct Hsome as [g Hg]. exists g. split; [done|]. by destruct (g b).
Qed.

Lemma local_step b x s u columns pending rest c1 : p ≠ Prefix → stands s u columns pending →
  pending ≡ₚ x :: rest → home blocks (takes x) = Some b →
  entry_step p tolerates all_good (columns b) (on_block b (takes x)) c1 →
  ∃ s1, (∀ v, entry_step p tolerates v s (takes x) s1) ∧
    stands s1 u (λ b', if decide (b' = b) then c1 else columns b') rest.
Proof.
  intros Hpr Hst Hp Hh Hc. destruct (local_able b _ all_good s u columns pending c1 Hst Hh Hc) as (Hpw & u1 &
    Hu1).
  pose proof Hst as (Hsz & Hf & Hre & Hu & Hcs & Hpe). pose proof (home_whole _ _ _ Hh) as Hw.
  assert (b < blocks) as Hb by by apply home_cases in Hh as [? _].
  assert (∀ b', b' < blocks → entry_step p tolerates all_good (columns b') (on_block b' (takes x))
    (if decide (b' = b) then c1 else columns b')) as Hall.
  { intros b' Hb'. case_decide as Heq; [by subst|]. rewrite (home_elsewhere blocks b) by done.
    split; [|done]. destruct Hre as (i & _ & _ & Hm). destruct (Hm b Hb) as (_ & Hp1 & _).
    destruct (Hm b' Hb') as (_ & Hp2 & _). congruence. }
  destruct (rebuild_step p tolerates all_good all_good blocks s u columns (takes x) u1
    (λ b', if decide (b' = b) then c1 else columns b')) as (s1 & Hs1 & Hf1 & Hre1); [done..|].
  exists s1. split; [intros v; by eapply local_any|]. split_and!; [|  |done|done| |].
  - by rewrite (entry_size _ _ _ _ Hw Hs1).
  - eapply forgets_back; [exact Hf|done|by eapply local_forget].
  - intros b' Hb'. eapply steady_entry; [by apply Hall|by apply Hcs].
  - rewrite Hp in Hpe. by apply Forall_cons in Hpe as [_ ?].
Qed.

(** By steps of pending requests, none of which is shared. *)
Definition leads s pending s2 pending2 : Prop := ∀ line es v s3, interleaves pending2 line es →
  recorded_run p tolerates v s2 es s3 → ∃ es', interleaves pending line es' ∧ recorded_run p tolerates v s
    es' s3.

Lemma leads_step b x s pending rest s1 s2 pending2 : pending ≡ₚ x :: rest → home blocks (takes x) = Some b →
  (∀ v, entry_step p tolerates v s (takes x) s1) → leads s1 rest s2 pending2 → leads s pending s2 pending2.
Proof.
  intros Hp Hh Hs Hl line es v s3 Hi Hr. destruct (Hl line es v s3 Hi Hr) as (es' & Hi' & Hr').
  exists (takes x :: es'). split; [by eapply interleaves_take|]. econstructor; [apply Hs|].
  by rewrite (home_devices blocks b).
Qed.

Definition goes_on (c : state V) pending line : Prop :=
  ∃ es c', interleaves pending line es ∧ recorded_run p tolerates all_good c es c'.
Definition ready (c : state V) pending (m : instant V) line : Prop :=
  match m with
  | Opens xs => goes_on c (pending ++ xs) line
  | Closes id => settled id pending ∧ goes_on c pending line
  | Fixed en => ∃ c1, entry_step p tolerates all_good c en c1 ∧ ∃ es c',
      interleaves (if ends en then [] else pending) line es ∧
      recorded_run p tolerates (devices_after tolerates all_good en) c1 es c'
  end.

Lemma goes_on_perm c pending pending' line : pending ≡ₚ pending' → goes_on c pending line →
  goes_on c pending' line.
Proof. intros Hp (es & c' & ? & ?). exists es, c'. split; [by eapply interleaves_perm|done]. Qed.
Lemma ready_perm c pending pending' m line : pending ≡ₚ pending' → ready c pending m line →
  ready c pending' m line.
Proof.
  intros Hp. destruct m as [xs|id|en]; cbn.
  - apply goes_on_perm. by rewrite Hp.
  - intros [? ?]. split; [unfold settled; by rewrite <-Hp|by eapply goes_on_perm].
  - intros (c1 & ? & es & c' & ? & ?). exists c1. split; [done|]. exists es, c'. split; [|done].
    eapply interleaves_perm; [done|]. by destruct (ends en).
Qed.

Lemma steps_on_take b pending y rest : steps_on blocks b pending ≡ₚ y :: rest → ∃ x pending',
  pending ≡ₚ x :: pending' ∧ y = step_on b x ∧ home blocks (takes x) = Some b ∧
  rest ≡ₚ steps_on blocks b pending'.
Proof.
  intros Hp. assert (y ∈ steps_on blocks b pending) as Hy by (rewrite Hp; left).
  apply elem_of_list_fmap in Hy as (x & -> & [Hx Hin]%elem_of_list_filter).
  apply Is_true_true, bool_decide_eq_true in Hx. apply elem_of_Permutation in Hin as [k Hk].
  exists x, k. split_and!; [done..|]. rewrite Hk, steps_on_here in Hp by done. by apply Permutation_cons_inv
    in Hp.
Qed.

(** What the block does before the next instant is done. *)
Lemma drain_one b m line pend es : b < blocks → p ≠ Prefix → interleaves pend (m :: line) es →
  ∀ s u columns pending c', stands s u columns pending → steps_on blocks b pending ≡ₚ pend →
  recorded_run p tolerates all_good (columns b) es c' → ∃ s2 columns2 pending2,
    leads s pending s2 pending2 ∧ stands s2 u columns2 pending2 ∧
    ready (columns2 b) (steps_on blocks b pending2) m line ∧
    ∀ b', b' ≠ b → columns2 b' = columns b' ∧ steps_on blocks b' pending2 ≡ₚ steps_on blocks b' pending.
Proof.
  intros Hb Hpr Hi. remember (m :: line) as ml eqn:Hml.
  induction Hi as [pend|pend y rest line' es Hp Hi IH|pend xs line' es Hi _|pend id line' es Hs Hi _|
    pend en line' es Hi _]; intros s u columns pending c' Hst Hpend Hrun; simplify_eq.
  - inversion Hrun as [|? c1 ? ? Hstep Hrest]; subst.
    assert (steps_on blocks b pending ≡ₚ y :: rest) as (x & pending' & Hpx & -> & Hh & Hrest')%steps_on_take
      by (by rewrite Hpend).
    destruct (local_step b x s u columns pending pending' c1) as (s1 & Hs1 & Hst1); [done..|].
    cbn in Hrest. rewrite on_block_devices in Hrest by (by eapply home_whole).
    destruct (IH eq_refl s1 u _ pending' c' Hst1) as (s2 & columns2 & pending2 & Hl & ? & ? & Hsame);
      [done|by rewrite decide_True|]. exists s2, columns2, pending2. split_and!; [by eapply
        leads_step|done..|].
    intros b' Hne. destruct (Hsame b' Hne) as [Hc' Hs']. rewrite decide_False in Hc' by done. split; [done|].
    by rewrite Hs', Hpx, (steps_on_elsewhere blocks b' b).
  - exists s, columns, pending. split_and!; [by intros ?; eauto|done| |done].
    exists es, c'. split; [|done]. eapply interleaves_perm; [done|]. by rewrite Hpend.
  - exists s, columns, pending. split_and!; [by intros ?; eauto|done| |done].
    split; [unfold settled; by rewrite Hpend|]. exists es, c'. split; [|done]. by eapply interleaves_perm.
  - exists s, columns, pending. split_and!; [by intros ?; eauto|done| |done].
    inversion Hrun as [|? c1 ? ? Hstep Hrest]; subst. exists c1. split; [done|]. exists es, c'. split;
      [|done].
    eapply interleaves_perm; [done|]. by destruct (ends en).
Qed.

Lemma drain_all m line n : n ≤ blocks → p ≠ Prefix → ∀ s u columns pending, stands s u columns pending →
  (∀ b, b < blocks → goes_on (columns b) (steps_on blocks b pending) (column blocks b (m :: line))) →
  ∃ s2 columns2 pending2, leads s pending s2 pending2 ∧ stands s2 u columns2 pending2 ∧
    ∀ b, b < blocks → (b < n → ready (columns2 b) (steps_on blocks b pending2) (instant_on blocks b m)
      (column blocks b line)) ∧
      (n ≤ b → goes_on (columns2 b) (steps_on blocks b pending2) (column blocks b (m :: line))).
Proof.
  intros Hn Hpr s u columns pending Hst Hall. induction n as [|n IH].
  - exists s, columns, pending. split_and!; [by intros ?; eauto|done|]. intros b Hb. split; [lia|auto].
  - destruct IH as (s1 & columns1 & pending1 & Hl & Hst1 & Hb1); [lia|].
    destruct (Hb1 n) as [_ Hg]; [lia|]. destruct (Hg ltac:(lia)) as (es & c' & Hi & Hr).
    destruct (drain_one n _ _ _ _ ltac:(lia) Hpr Hi s1 u columns1 pending1 c' Hst1 ltac:(done) Hr)
      as (s2 & columns2 & pending2 & Hl2 & Hst2 & Hready & Hsame).
    exists s2, columns2, pending2. split_and!; [|done|].
    { intros l es' v s3 Hi' Hr'. destruct (Hl2 _ _ _ _ Hi' Hr') as (es2 & ? & ?). by eapply Hl. }
    intros b Hb. destruct (decide (b = n)) as [->|Hne]; [split; [done|lia]|].
    destruct (Hsame b Hne) as [-> Hp]. destruct (Hb1 b Hb) as [Hlow Hhigh]. split.
    + intros ?. eapply ready_perm; [symmetry; exact Hp|]. apply Hlow. lia.
    + intros ?. eapply goes_on_perm; [symmetry; exact Hp|]. apply Hhigh. lia.
Qed.

Lemma finite_choice {A} (a : A) (P : nat → A → Prop) n : (∀ b, b < n → ∃ w, P b w) →
  ∃ f, ∀ b, b < n → P b (f b).
Proof.
  induction n as [|n IH]; intros Hall; [by exists (λ _, a); intros ? ?%Nat.nlt_0_r|].
  destruct IH as [f Hf]; [by intros; apply Hall; lia|]. destruct (Hall n ltac:(lia)) as [w Hw].
  exists (λ b, if decide (b = n) then w else f b). intros b Hb. case_decide; [by subst|]. apply Hf. lia.
Qed.

Lemma interleaves_all line : p ≠ Prefix → Forall (line_fair blocks) line →
  ∀ v s u u' columns pending, stands s u columns pending → recorded_run p tolerates v u (shared_steps line)
    u' →
  (∀ b, b < blocks → goes_on (columns b) (steps_on blocks b pending) (column blocks b line)) →
  ∃ es s', interleaves pending line es ∧ recorded_run p tolerates v s es s'.
Proof.
  intros Hpr. induction line as [|m line IH]; intros Hl v s u u' columns pending Hst Hu Hall.
  { exists [], s. split; constructor. }
  apply Forall_cons in Hl as [Hm Hl].
  destruct (drain_all m line blocks (le_n _) Hpr s u columns pending Hst Hall)
    as (s2 & columns2 & pending2 & Hleads & Hst2 & Hready).
  assert (∃ es s', interleaves pending2 (m :: line) es ∧ recorded_run p tolerates v s2 es s')
    as (es & s' & Hi & Hr).
  2: { destruct (Hleads _ _ _ _ Hi Hr) as (es' & ? & ?). eauto. }
  destruct m as [xs|id|en]; cbn in Hu, Hm.
  - destruct (IH Hl v s2 u u' columns2 (pending2 ++ xs)) as (es & s' & ? & ?); [|done| |].
    + destruct Hst2 as (? & ? & ? & ? & ? & ?). split_and!; try done. by apply Forall_app.
    + intros b Hb. destruct (Hready b Hb) as [Hr _]. specialize (Hr Hb). cbn in Hr. by rewrite steps_on_app.
    + exists es, s'. split; [by apply interleaves_open|done].
  - destruct (IH Hl v s2 u u' columns2 pending2) as (es & s' & ? & ?); [done..| |].
    + intros b Hb. destruct (Hready b Hb) as [Hr _]. by destruct (Hr Hb).
    + exists es, s'. split; [|done]. apply interleaves_close; [|done].
      destruct Hst2 as (_ & _ & _ & _ & _ & Hpe). unfold settled. rewrite Forall_forall in Hpe |- *. intros x
        Hx.
      destruct (local_home _ _ (Hpe x Hx)) as [b Hh]. assert (b < blocks) as Hb by by apply home_cases in Hh
        as [? _].
      destruct (Hready b Hb) as [Hr _]. destruct (Hr Hb) as [Hs _]. unfold settled in Hs.
      rewrite Forall_forall in Hs. apply (Hs (step_on b x)). apply elem_of_list_fmap. exists x. split;
        [done|].
      apply elem_of_list_filter. split; [|done]. apply Is_true_true, bool_decide_eq_true. done.
  - inversion Hu as [|? u1 ? ? Hu1 Hrest]; subst. rewrite without_data_devices in Hrest.
    pose proof Hst2 as (Hsz & Hf & Hre & Hstu & Hstc & Hpe).
    destruct (finite_choice s2 (λ b c1, entry_step p tolerates all_good (columns2 b) (on_block b en) c1 ∧
      goes_on c1 (if ends en then [] else steps_on blocks b pending2) (column blocks b line)) blocks)
      as [columns3 Hc3].
    { intros b Hb. destruct (Hready b Hb) as [Hr _]. destruct (Hr Hb) as (c1 & Hc1 & es & c' & Hi & Hr').
      exists c1. split; [done|]. rewrite on_block_devices in Hr' by done. rewrite on_block_ends in Hi by done.
      by exists es, c'. }
    destruct (rebuild_step p tolerates v all_good blocks s2 u columns2 en u1 columns3)
      as (s3 & Hs3 & Hf3 & Hre3); [done..|by apply Hc3|].
    destruct (IH Hl (devices_after tolerates v en) s3 u1 u' columns3 (if ends en then [] else pending2))
      as (es & s' & ? & ?); [|done| |].
    + split_and!; [|done|done|by eapply steady_entry| |by destruct (ends en)].
      * by rewrite (entry_size _ _ _ _ Hm Hs3).
      * intros b Hb. eapply steady_entry; [by apply Hc3|by apply Hstc].
    + intros b Hb. destruct (Hc3 b Hb) as [_ ?]. by destruct (ends en).
    + exists (en :: es), s'. split; [by apply interleaves_fixed|by econstructor].
Qed.

End Runs.

(** ** The theorem *)

Lemma created_alike b : disk_alike b (@blank V _) blank.
Proof. split; [done|]. intros n. cbn. by rewrite !lookup_empty. Qed.
Lemma forgets_created blocks : forgets (created (V := V) blocks) (created blocks).
Proof.
  assert (∀ A B : Type, same_names (∅ : gmap name A) (∅ : gmap name B)) as Hn.
  { intros A B n. rewrite !lookup_empty. by split; intros [? ?]. }
  split; [done|]. split; [done|]. split; [apply Hn|]. by split; apply named_exactly, Hn.
Qed.
Lemma follows_created b blocks : follows b (created (V := V) blocks) (created 1).
Proof. split; [done|]. split; [done|]. split; [apply created_alike|]. apply exactly_follows, created_alike.
  Qed.
Lemma rebuilds_created blocks : rebuilds blocks (created (V := V) blocks) (λ _, created 1).
Proof.
  exists (exactly blank). split; [left|]. split; [apply resolves_exactly|]. intros b _.
  split; [done|]. split; [done|]. split; [apply created_alike|].
  intros j ->%elem_of_list_singleton. apply (widens_exactly _ _ blank); [intros l; left|done|apply
    created_alike].
Qed.

Lemma admits_from {A} `{Value A} p tolerates blocks (es : list (entry A)) :
  admits_recorded p tolerates (Event (Create blocks) :: es) ↔
  ∃ s, recorded_run p tolerates all_good (created blocks) es s.
Proof. split; [intros (? & ? & s & [= <- <-] & ?); eauto|intros (s & ?); by exists blocks, es, s]. Qed.

Theorem blocks_apart g p tolerates blocks h : p ≠ Prefix → Forall is_fair h →
  admits_overlapping g p tolerates (Alone (Event (Create blocks)) :: h) ↔
  ∃ line, fixes g blocks 0 [] h line ∧
    admits_recorded p tolerates (Event (Create blocks) :: shared_steps line) ∧
    ∀ b, b < blocks → ∃ es, interleaves [] (column blocks b line) es ∧
      admits_recorded p tolerates (Event (Create 1) :: es).
Proof.
  intros Hpr Hh. rewrite admits_created. split.
  - intros (es & Ho & s' & Hr).
    destruct (orders_fixes g blocks 0 [] h es Ho Hh) as (line & Hf & Hi); [constructor|].
    pose proof (fixes_fair _ _ _ _ _ _ Hf Hh (Forall_nil_2 _)) as Hl. exists line. split_and!; [done| |].
    + apply admits_from. eapply interleaves_forget; [exact Hi|done|done|constructor|apply forgets_created|
        apply steady_created|exact Hr].
    + intros b Hb. destruct (interleaves_column p tolerates blocks b _ _ _ Hi all_good (created blocks)
        (created 1) s') as (es' & c' & Hi' & Hr'); [done|done|constructor|apply follows_created|
        apply steady_created|done|].
      exists es'. split; [done|]. apply admits_from. eauto.
  - intros (line & Hf & [u' Hu]%admits_from & Hc).
    pose proof (fixes_fair _ _ _ _ _ _ Hf Hh (Forall_nil_2 _)) as Hl.
    destruct (interleaves_all p tolerates blocks line Hpr Hl all_good (created blocks) (created blocks) u'
      (λ _, created 1) []) as (es & s' & Hi & Hr); [|done| |].
    + split_and!; [done|apply forgets_created|apply rebuilds_created|apply steady_created|
        intros; apply steady_created|constructor].
    + intros b Hb. destruct (Hc b Hb) as (es & Hi & [c' Hr]%admits_from). by exists es, c'.
    + exists es. split; [|by exists s'].
      by apply (fixes_orders g blocks [] line es Hi 0 [] h Hf Hh (Forall_nil_2 _)).
Qed.

End Blocks.
