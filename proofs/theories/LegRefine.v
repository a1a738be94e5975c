(** A program that is crash safe on one device is so on a leg, whatever fails, if it is crash safe
where blocks may tear; and so are opening and resync. *)
From stdpp Require Import list numbers list_numbers.
From LogDisk Require Import Medium Devices Leg LegCorrect.

Section Refine.
Context {B C : Type} `{cutting B C} {torn : tearing B}.
Variables (size count : nat).
Context {laws : cutting_laws count}.
Implicit Types (x : array C) (m : medium C) (M : medium B) (f : contents B) (ms todo T : list nat).
Local Notation holds := (holds size count).
Local Notation striped := (striped size count).
Local Notation protects := (protects size count).
Local Notation stopped := (stopped size count).
Local Notation reads_as := (reads_as size).

Lemma striped_fails T M x x1 : fails x x1 → striped T M x → striped T M x1.
Proof.
  intros H1 [Hx Hr]. split; [by eapply holds_fails|]. destruct (H1) as (->&_&_). by eapply each_up_fails.
Qed.

Lemma protects_fails T R x x1 : fails x x1 → protects T R x → protects T R x1.
Proof. intros H1 (M&HM&Hx). exists M. split; [done|]. by eapply holds_fails. Qed.

(** A power cut leaves what is protected. *)
Lemma protects_power T R x x1 : loses_power x x1 → protects T R x → protects T R x1.
Proof. intros H1 (M&HM&Hx). exists M. split; [done|]. by eapply holds_power. Qed.

Lemma protects_holds T R M x : safe R M → holds T M x → protects T R x.
Proof. intros HR Hx. by exists M. Qed.

Lemma stopped_holds T R M x : safe R M → holds T M x → length (up_members x) < fewest → stopped T R x.
Proof. intros HR Hx Hup. split; [by exists M|done]. Qed.

(** Pieces that are those of [M] give its blocks. *)
Definition is_piece M (a i : nat) (p : C) : Prop := p = piece a i (read_block M a).

Section Programs.
Context {A : Type} (R : contents B → Prop).

(** What is true when a program for one device ends, of the leg. *)
Definition leg_end (T : list nat) (Q : A → medium B → Prop) (r : list nat * bool * A) x : Prop :=
  ∃ M, Q r.2 M ∧ striped T M x ∧ members x = r.1.1 ∧ clean x = r.1.2.

Lemma safe_on_leg T (Q : A → medium B → Prop) (p : program B A) M x ms c :
  crash_safe R Q p M → striped T M x → members x = ms → clean x = c →
  array_safe (protects T R) (leg_end T Q) (stopped T R) (on_leg size ms c p) x.
Proof.
  revert M x ms c. induction p as [r|a k IH|a b k IH|k IH|φ k IH]; simpl;
    intros M x ms c [Hsafe Hp] [Hx Hr] Hms Hc.
  - intros x1 H1. split; [exists M; split; [done|by eapply holds_fails]|].
    exists M. split; [done|]. split; [eapply striped_fails; [done|by split]|].
    destruct H1 as (->&->&_). done.
  - destruct (decide _) as [Ha|]; [|by intros x1 H1; split; [exists M; split; [done|by eapply holds_fails]|]].
    apply (safe_read_from size count T _ _ _ M (λ y, protects_holds T R M y Hsafe)
      (λ y, stopped_holds T R M y Hsafe) (each_up ms (reads_as (read_block M))) (is_piece M a)); try done.
    + apply each_up_lasting.
    + by rewrite <-Hms.
    + intros y i Hy Ey _ Hi Hup. by apply Ey.
    + intros y ms' bad got Hy Ey Hm Hsub Hcy Hgot Hdup Hbound Hlen.
      rewrite (joined_got count M a got (read_block M a)) by done.
      apply (safe_repair size count T _ _ _ M (λ y, protects_holds T R M y Hsafe)
        (λ y, stopped_holds T R M y Hsafe) (reads_as (read_block M))); try done.
      * apply read_may_be.
      * intros i m Hi a' Ha'. unfold read_block. simpl. destruct (decide (a' = a)) as [->|]; [done|].
        by apply Hi.
      * eapply each_up_sub; [|exact Ey]. intros i Hi. by eapply sublist_in.
      * intros z ms2 Hz Ez Hmz _ Hcz. eapply IH; try done. split; [done|by rewrite Hmz].
  - destruct (decide _) as [Ha|]; [|by intros x1 H1; split; [exists M; split; [done|by eapply holds_fails]|]].
    assert (∀ x, holds T M x → each_up ms (reads_as (read_block M)) x → members x = ms →
      clean x = false →
      array_safe (protects T R) (leg_end T Q) (stopped T R)
        (write_to [] ms a b (λ ms, on_leg size ms false k)) x) as Hwrite.
    { clear x Hx Hr Hms Hc. intros x Hx Hr Hms Hc. pose proof (crash_safe_now _ _ _ _ Hp) as Hsafe'.
      apply (safe_write_to size count T _ _ _ (write_block M a b)
        (λ y, protects_holds T R _ y Hsafe') (λ y, stopped_holds T R _ y Hsafe')
        (reads_as (read_block M)) (reads_as (read_block (write_block M a b)))); try done.
      - left. right. by left.
      - intros i m Hm a' Ha'. unfold read_block. simpl. destruct (decide (a' = a)) as [->|]; [done|].
        by apply Hm.
      - eapply holds_mono; [|done|exact Hx]. intros i a' p. apply held_more.
      - by intros i ?%elem_of_nil.
      - intros y ms' Hy Ey Hm Hcy. eapply IH; try done. split; [done|by rewrite Hm]. }
    rewrite Hms in Hr. unfold unclean. destruct c; [|by apply Hwrite].
    intros x1 H1. split; [exists M; split; [done|by eapply holds_fails]|].
    assert (holds T M x1) as Hx1 by by eapply holds_fails.
    apply Hwrite; [|exact (each_up_fails _ _ _ _ H1 Hr)|done|done]. destruct H1 as (Hm&_&_).
    destruct Hx1 as [Hwithin Hclean Hmem Hdup Hbound Hdown]. rewrite Hm, Hms in Hwithin, Hdup, Hbound.
    split; try done. intros i Hi Hup. simpl. rewrite <-Hms, <-Hm. by apply Hmem.
  - apply (safe_flush_of size count T _ _ _ M (λ y, protects_holds T R M y Hsafe)
      (λ y, stopped_holds T R M y Hsafe) (read_block M)); try done.
    + intros a _. apply read_may_be.
    + by rewrite <-Hms.
    + by intros i ?%elem_of_nil.
    + intros y ms' Hy Ey Hm Hcy. eapply IH; try done. split; [done|by rewrite Hm].
  - intros x1 H1. split; [exists M; split; [done|by eapply holds_fails]|]. intros ->.
    destruct (H1) as (Hm1&Hc1&_). apply (IH M); [by apply Hp| |congruence|congruence].
    eapply striped_fails; [done|by split].
Qed.

(** ** Opening *)

Definition equal_from (n : nat) f i m : Prop := ∀ a, n ≤ a < size → read_block m a = piece a i (f a).

Lemma safe_equalize T M (Q : A → array C → Prop) n f x ms k :
  safe R M → may_leave M f → holds T M x → each_up ms (equal_from n f) x → members x = ms →
  clean x = false → n ≤ size →
  (∀ f x ms, may_leave M f → holds T M x → each_up ms (reads_as f) x → members x = ms →
     clean x = false → array_safe (protects T R) Q (stopped T R) (k ms) x) →
  array_safe (protects T R) Q (stopped T R) (equalize n ms k) x.
Proof.
  intros Hsafe Hf Hx Hr Hms Hc Hn Hk. revert f x ms Hf Hx Hr Hms Hc Hn.
  induction n as [|n IH]; simpl; intros f x ms Hf Hx Hr Hms Hc Hn.
  { apply (Hk f); try done. intros i Hi Hup a Ha. apply Hr; [done|done|lia]. }
  apply (safe_read_from size count T _ _ _ M (λ y, protects_holds T R M y Hsafe)
    (λ y, stopped_holds T R M y Hsafe) (each_up ms (equal_from (S n) f)) (λ i p, held M i n p)); try done.
  - apply each_up_lasting.
  - intros y i Hy Ey Hi _ Hup. apply (holds_within _ _ _ _ _ Hy i); [done|lia|apply read_may_hold].
  - intros y ms' bad got Hy Ey Hm Hsub Hcy Hgot Hdup Hbound Hlen. set (b := joined n got).
    assert (may_be M n b) as Hb by by apply (joined_may_be count).
    set (f' := λ a, if decide (a = n) then b else f a).
    assert (may_leave M f') as Hf'.
    { intros a. unfold f'. destruct (decide (a = n)) as [->|]; [done|apply Hf]. }
    apply (safe_write_to size count T _ _ _ M (λ y, protects_holds T R M y Hsafe)
      (λ y, stopped_holds T R M y Hsafe) (equal_from (S n) f) (equal_from n f')); try done.
    + intros i m Hm' a Ha. unfold f', read_block. simpl. destruct (decide (a = n)) as [->|]; [done|].
      apply Hm'. lia.
    + by intros i ?%elem_of_nil.
    + eapply each_up_sub; [|exact Ey]. intros i Hi.
      eapply elem_of_submseteq; [done|by apply sublist_submseteq].
    + intros z ms2 Hz Ez Hm' Hcz. apply (IH f'); try done. lia.
Qed.

(** Whatever the power left of [M]: the leg is opened as one device that holds it. *)
Lemma safe_opened T M (Q : A → array C → Prop) x ms c k :
  safe R M → holds T M x → members x = ms → clean x = c →
  (∀ f x ms c, may_leave M f → striped T (Medium f []) x → members x = ms → clean x = c →
     array_safe (protects T R) Q (stopped T R) (k ms c) x) →
  array_safe (protects T R) Q (stopped T R) (open_leg size ms c k) x.
Proof.
  intros Hsafe Hx Hms Hc Hk. unfold open_leg. destruct c.
  - pose proof Hx as [Hwithin Hclean Hmem Hdup Hbound Hdown]. specialize (Hclean Hc). destruct M as [f u].
    simpl in *. subst u.
    apply (Hk f); try done; [intros a; by left; left|]. split; [done|]. intros i Hi Hup.
    by apply only_reads, Hwithin.
  - apply (safe_equalize T M _ size (stable M)); try done; [intros a; by left; left|intros i _ _ a; lia|].
    clear x Hx Hms Hc. intros f x ms' Hf Hx Hr Hms Hc.
    apply (safe_flush_of size count T _ _ _ M (λ y, protects_holds T R M y Hsafe)
      (λ y, stopped_holds T R M y Hsafe) f); try done.
    + by intros i ?%elem_of_nil.
    + intros y ms1 Hy Ey Hm Hcy. apply (Hk f); try done. split; [done|by rewrite Hm].
Qed.
End Programs.

(** ** Resync *)

(** A device that is no member. *)
Lemma striped_other T M x i d :
  i ∉ members x → up d = up (device_at x i) → (up d = false → unflushed (store d) = []) →
  striped T M x → striped T M (put_device x i d).
Proof.
  intros Hi Hup Hd [[Hwithin Hclean Hmem Hdup Hbound Hdown] Hr]. split; [split|]; simpl; try done.
  - intros j Hj. rewrite decide_False by (by intros ->). by apply Hwithin.
  - intros j Hj. simpl. destruct (decide (j = i)) as [->|]; [rewrite Hup|]; by apply Hmem.
  - intros j. destruct (decide (j = i)) as [->|]; [done|apply Hdown].
  - intros j Hj. simpl. rewrite decide_False by (by intros ->). by apply Hr.
Qed.

Section Resync.
Context {A : Type} (R : contents B → Prop) (M : medium B) (Q : A → array C → Prop).
Variable (T0 : list nat).
Hypothesis HR : safe R M.

(** [M] may have more that is not flushed: a device that is made a member has what is read. *)
Lemma safe_copy_to T i n x ms c k :
  (∀ i, i < count → i ∈ T → i ∈ T0) →
  striped T M x → each_up [i] (equal_from n (read_block M)) x → members x = ms → clean x = c → i ∉ ms →
  n ≤ size →
  (∀ x ms' ok, striped T M x → members x = ms' → clean x = c → (∀ j, j ∈ ms' → j ∈ ms) →
     (if ok : bool then holds_only size (read_block M) i (store (device_at x i)) ∧
       each_up [i] (reads_as (read_block M)) x
      else up (device_at x i) = false) →
     array_safe (protects T0 R) Q (stopped T0 R) (k ms' ok) x) →
  array_safe (protects T0 R) Q (stopped T0 R) (copy_to i n ms c k) x.
Proof.
  intros HT. assert (∀ y, holds T M y → protects T0 R y) as HP.
  { intros y Hy. exists M. split; [done|]. by eapply holds_more. }
  assert (∀ y, holds T M y → length (up_members y) < fewest → stopped T0 R y) as HS by by intros y Hy; split;
    [apply HP|].
  revert x ms. induction n as [|n IH]; simpl; intros x ms Hx Hi Hms Hc Hno Hn Hk.
  - intros x1 H1. apply (each_up_fails _ _ _ _ H1) in Hi. apply (striped_fails _ _ _ _ H1) in Hx.
    destruct H1 as (Hm&Hc1&_). rewrite Hms in Hm. rewrite Hc in Hc1. split; [by apply HP, Hx|].
    destruct (up (device_at x1 i)) eqn:Hup; [|by apply Hk].
    assert (reads_as (read_block M) i (store (device_at x1 i))) as Hreads.
    { intros a Ha. apply Hi; [by left|done|lia]. }
    apply Hk; try done; [apply striped_other; [by rewrite Hm|done..]|]. simpl. rewrite decide_True by done.
    split; [by apply reads_only|]. intros j ->%elem_of_list_singleton. simpl. rewrite decide_True by done.
    intros _ a Ha. simpl. by apply Hreads.
  - destruct Hx as [Hx Hr].
    apply (safe_read_from size count T _ _ _ M HP HS (λ x, each_up ms (reads_as (read_block M)) x ∧
      each_up [i] (equal_from (S n) (read_block M)) x) (is_piece M n)); try done.
    + apply lasting_and; apply each_up_lasting.
    + split; [|done]. by rewrite <-Hms.
    + intros y j Hy [Ey _] _ Hj Hup. apply Ey; [done|done|lia].
    + intros y ms' bad got Hy [Ey Ei] Hm Hsub Hcy Hgot Hdup Hbound Hlen.
      rewrite (joined_got count M n got (read_block M n)) by done.
      assert (∀ j, j ∈ ms' → j ∈ ms) as Hin.
      { intros j Hj. eapply elem_of_submseteq; [done|by apply sublist_submseteq]. }
      assert (i ∉ ms') as Hno' by auto.
      assert (striped T M y) as Hmy. { split; [done|]. rewrite Hm. by eapply each_up_sub. }
      intros y1 H1. apply (each_up_fails _ _ _ _ H1) in Ei. apply (striped_fails _ _ _ _ H1) in Hmy.
      destruct H1 as (Hm1&Hc1&_). rewrite Hm in Hm1. rewrite Hcy in Hc1. split; [by apply HP, Hmy|].
      destruct (up (device_at y1 i)) eqn:Hupi.
      * apply IH; try done; [|..].
        -- apply striped_other; [by rewrite Hm1|done..].
        -- intros j' ->%elem_of_list_singleton. simpl. rewrite decide_True by done. intros _ a Ha.
           unfold read_block at 1. simpl. destruct (decide (a = n)) as [->|]; [done|].
           apply Ei; [by left|done|lia].
        -- lia.
        -- intros z ms2 ok Hz Hmz Hcz Hsz. apply Hk; try done. intros j' Hj'. by apply Hin, Hsz.
      * intros y2 Hy2. assert (striped T M y2 ∧ members y2 = members y1 ∧ clean y2 = clean y1 ∧
          up (device_at y2 i) = false) as (Hmy2&Hm2&Hc2&Hup2).
        { destruct Hy2 as [->|(f&_&->)]; [done|]. split_and!; [|done|done|simpl; by rewrite decide_True].
          apply striped_other; [by rewrite Hm1|done..]. }
        rewrite Hm1 in Hm2. rewrite Hc1 in Hc2. by apply Hk.
Qed.

Lemma safe_resync todo x ms c k :
  (∀ i, i < count → i ∈ todo → i ∈ T0) → striped todo M x → members x = ms → clean x = c → NoDup todo →
  (∀ i, i ∈ todo → i ∉ ms ∧ i < count) →
  (∀ x ms, striped [] M x → members x = ms → clean x = c →
     array_safe (protects T0 R) Q (stopped T0 R) (k ms) x) →
  array_safe (protects T0 R) Q (stopped T0 R) (resync size todo ms c k) x.
Proof.
  intros HT Hx Hms Hc Htodo Hno Hk. revert x ms HT Hx Hms Hc Htodo Hno.
  induction todo as [|i todo IH]; simpl; intros x ms HT Hx Hms Hc Htodo Hno; [by apply Hk|].
  apply NoDup_cons in Htodo as [Hi Htodo]. destruct (Hno i) as [Hnot Hlow]; [by left|].
  assert (∀ ms', (∀ j, j ∈ ms' → j ∈ ms) → ∀ j, j ∈ todo → j ∉ ms') as Hrest.
  { intros ms' Hsub j Hj Hin. destruct (Hno j) as [Hj' _]; [by right|]. by apply Hj', Hsub. }
  apply (safe_copy_to (i :: todo)); try done.
  - intros j _ _ a. lia.
  - intros y ms1 ok Hy Hm Hcy Hsub Hok. destruct ok.
    + destruct Hok as [Honly Hreads]. intros y1 H1. destruct Hy as [Hy Hr].
      assert (holds (i :: todo) M y1) as Hy1 by by eapply holds_fails.
      split; [exists M; split; [done|by eapply holds_more]|].
      assert (within size M i (store (device_at y1 i))) as Hwi.
      { assert (within size M i (store (device_at y i))) as Hwi.
        { intros a p Ha Hp. eapply held_only; [|done|by apply Honly]. intros ? _. apply read_may_be. }
        destruct H1 as (_&_&Hd). destruct (Hd i) as [->|(f'&Hf'&->)]; [done|]. simpl.
        by eapply within_survives. }
      apply (each_up_fails _ _ _ _ H1) in Hr, Hreads. destruct H1 as (Hm1&Hc1&_).
      rewrite Hm in Hm1, Hr. rewrite Hcy in Hc1. apply IH; try done.
      * intros j Hj Hin. apply HT; [done|by right].
      * destruct Hy1 as [Hwithin Hclean Hmem Hdup Hbound Hdown]. rewrite Hm1 in Hwithin, Hdup, Hbound.
        split; [split|]; simpl; try done.
        -- intros j. rewrite elem_of_app, elem_of_list_singleton. intros [Hj| ->]; [by apply Hwithin|done].
        -- by rewrite <-Hc1.
        -- intros j Hj Hup. simpl. rewrite elem_of_app, elem_of_list_singleton.
           destruct (Hmem j Hj Hup) as [Hin|[->|Hin]%elem_of_cons]; [|by left; right|by right].
           rewrite Hm1 in Hin. by left; left.
        -- apply NoDup_app. split_and!; [done| |apply NoDup_singleton].
           intros j Hj ->%elem_of_list_singleton. by apply Hnot, Hsub.
        -- intros j. rewrite elem_of_app, elem_of_list_singleton. intros [Hj| ->]; [by apply Hbound|done].
        -- intros j. rewrite elem_of_app, elem_of_list_singleton. intros [Hj| ->]; [by apply Hr|].
           apply Hreads. by left.
      * intros j Hj. split; [|by apply Hno; right]. rewrite elem_of_app, elem_of_list_singleton.
        intros [Hin| ->]; [|done]. by apply (Hrest ms1 Hsub j).
    + apply IH; try done.
      * intros j Hj Hin. apply HT; [done|by right].
      * destruct Hy as [[Hwithin Hclean Hmem Hdup Hbound Hdown] Hr]. split; [split|]; try done.
        intros j Hj Hup. destruct (Hmem j Hj Hup) as [Hin|[->|Hin]%elem_of_cons]; [by left| |by right].
        by rewrite Hup in Hok.
      * intros j Hj. split; [by apply (Hrest ms1 Hsub)|by apply Hno; right].
Qed.
End Resync.

(** Once the devices have settled, whoever is up is a member. *)
Definition settled_end M (r : list nat * bool) x : Prop :=
  striped [] M x ∧ members x = r.1 ∧ clean x = r.2.

Lemma safe_settle (R : contents B → Prop) T M x ms c :
  safe R M → striped T M x → members x = ms → clean x = c →
  (∀ i, i < count → i ∉ ms → i ∈ T) →
  array_safe (protects T R) (settled_end M) (stopped T R) (settle_leg size count ms c) x.
Proof.
  intros HR [Hx Hr] Hms Hc HT. unfold settle_leg.
  assert (∀ i, i < count → i ∈ filter (λ i, i ∉ ms) (seq 0 count) → i ∈ T) as Hfilter.
  { intros i Hi [Hno _]%elem_of_list_filter. by apply HT. }
  apply (safe_resync R M _ T HR); try done.
  - split; [|done]. destruct Hx as [Hwithin Hclean Hmem Hdup Hbound Hdown]. split; try done.
    intros i Hi Hup. destruct (decide (i ∈ members x)); [by left|right].
    apply elem_of_list_filter. split; [by rewrite <-Hms|apply elem_of_list_In, in_seq; lia].
  - apply NoDup_filter, NoDup_seq.
  - intros i [? Hi%elem_of_list_In%in_seq]%elem_of_list_filter. split; [done|lia].
  - clear x Hx Hr Hms Hc. intros x ms' [Hx Hr] Hms Hc x1 H1.
    assert (holds [] M x1) as Hx1 by by eapply holds_fails. split.
    + exists M. split; [done|]. eapply holds_more; [|done]. by intros i _ ?%elem_of_nil.
    + split; [by eapply striped_fails; [|split]|]. by destruct H1 as (->&->&_).
Qed.
End Refine.
