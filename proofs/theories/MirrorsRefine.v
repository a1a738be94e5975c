(** A program that is crash safe on one device is so on mirrors, whatever fails; so are opening and resync. *)
From stdpp Require Import list numbers list_numbers.
From LogDisk Require Import Medium Mirrors MirrorsCorrect.

Section Refine.
Context {B : Type} {torn : tearing}.
Implicit Types (x : array B) (m M : medium B) (f : contents B) (ms todo T : list nat).
Variables (size count : nat).
Let holds := @holds B size count.
Let mirrors := @mirrors B size count.
Let stopped := @stopped B size count.

(** If the power fails, [R] is true of whatever is left. *)
Definition protects T (R : contents B → Prop) x : Prop := ∃ M, safe R M ∧ holds T M x.

Lemma mirrors_fails T M x x1 : fails x x1 → mirrors T M x → mirrors T M x1.
Proof.
  intros H1 [Hx Hr]. split; [by eapply holds_fails|]. destruct (H1) as (->&_&_). by eapply each_up_fails.
Qed.

Lemma may_hold_mono M a b a' b' : may_hold M a' b' → may_hold (write_block M a b) a' b'.
Proof. intros [->|]; [by left|right; by right]. Qed.

Lemma reads_as_written f m a b :
  reads_as size f m → reads_as size (λ a', if decide (a' = a) then b else f a') (write_block m a b).
Proof.
  intros Hm a' Ha'. unfold read_block. simpl. destruct (decide (a' = a)); [done|]. by apply Hm.
Qed.

Section Programs.
Context {A : Type} (R : contents B → Prop).

(** What is true when a program for one device ends, of the mirrors. *)
Definition mirrored_end (T : list nat) (Q : A → medium B → Prop) (r : list nat * bool * A) x : Prop :=
  ∃ M, Q r.2 M ∧ mirrors T M x ∧ members x = r.1.1 ∧ clean x = r.1.2.

Lemma safe_mirrored T (Q : A → medium B → Prop) (p : program B A) M x ms c :
  crash_safe R Q p M → mirrors T M x → members x = ms → clean x = c →
  array_safe (protects T R) (mirrored_end T Q) (stopped T R) (mirrored size ms c p) x.
Proof.
  revert M x ms c. induction p as [r|a k IH|a b k IH|k IH]; simpl; intros M x ms c [Hsafe Hp] [Hx Hr] Hms Hc.
  - intros x1 H1. split; [exists M; split; [done|by eapply holds_fails]|].
    exists M. split; [done|]. split; [eapply mirrors_fails; [done|by split]|].
    destruct H1 as (->&->&_). done.
  - destruct (decide _) as [Ha|]; [|by intros x1 H1; split; [exists M; split; [done|by eapply holds_fails]|]].
    apply (safe_read_from size count T _ _ _ M (each_up ms (reads_as size (read_block M)))); try done.
    + apply each_up_lasting.
    + intros y Hy. by exists M.
    + intros y Hy. by eapply holds_stopped.
    + by rewrite <-Hms.
    + intros y i rest Hy Ey Hm Hsuf Hcy Hup.
      assert (∀ j, j ∈ i :: rest → j ∈ ms) as Hsub.
      { intros j Hj. destruct Hsuf as [l ->]. apply elem_of_app. by right. }
      rewrite (Ey i) by first [done|apply Hsub; by left]. eapply IH; try done.
      split; [done|]. rewrite Hm. by eapply each_up_sub.
  - destruct (decide _) as [Ha|]; [|by intros x1 H1; split; [exists M; split; [done|by eapply holds_fails]|]].
    assert (∀ x, holds T M x → each_up ms (reads_as size (read_block M)) x → members x = ms →
      clean x = false →
      array_safe (protects T R) (mirrored_end T Q) (stopped T R)
        (write_to [] ms a b (λ ms, mirrored size ms false k)) x) as Hwrite.
    { clear x Hx Hr Hms Hc. intros x Hx Hr Hms Hc. pose proof (crash_safe_now _ _ _ _ Hp) as Hsafe'.
      apply (safe_write_to size count T _ _ _ (write_block M a b) (reads_as size (read_block M))
        (reads_as size (read_block (write_block M a b)))); try done.
      - intros y Hy. by exists (write_block M a b).
      - intros y Hy. by eapply holds_stopped.
      - right. by left.
      - intros m Hm a' Ha'. unfold read_block. simpl. destruct (decide (a' = a)); [done|]. by apply Hm.
      - destruct Hx as [Hwithin Hclean Hmem Hdup Hdown]. split; [|by rewrite Hc|done..].
        intros i Hi a' b' Ha' Hb'. by eapply may_hold_mono, Hwithin.
      - by intros i ?%elem_of_nil.
      - intros y ms' Hy Ey Hm Hcy. eapply IH; try done. split; [done|by rewrite Hm]. }
    rewrite Hms in Hr. unfold unclean. destruct c; [|by apply Hwrite].
    intros x1 H1. split; [exists M; split; [done|by eapply holds_fails]|].
    assert (holds T M x1) as Hx1 by by eapply holds_fails.
    apply Hwrite; [|exact (each_up_fails _ _ _ _ H1 Hr)|done|done]. destruct H1 as (Hm&_&_).
    destruct Hx1 as [Hwithin Hclean Hmem Hdup Hdown]. rewrite Hm, Hms in Hwithin, Hdup.
    split; [done|done| |done|done]. intros i Hi Hup. simpl. rewrite <-Hms, <-Hm. by apply Hmem.
  - apply (safe_flush_of size count T _ _ _ M (read_block M)); try done.
    + intros y Hy. by exists M.
    + intros y Hy. by eapply holds_stopped.
    + intros a _. apply read_may_hold.
    + by rewrite <-Hms.
    + by intros i ?%elem_of_nil.
    + intros y ms' Hy Ey Hm Hcy. eapply IH; try done. split; [done|by rewrite Hm].
Qed.

(** ** Opening *)

Definition equal_from (n : nat) f m : Prop := ∀ a, n ≤ a < size → read_block m a = f a.

Lemma safe_equalize T M (Q : A → array B → Prop) n f x ms k :
  safe R M → survives M f → holds T M x → each_up ms (equal_from n f) x → members x = ms →
  clean x = false → n ≤ size →
  (∀ f x ms, survives M f → holds T M x → each_up ms (reads_as size f) x → members x = ms →
     clean x = false → array_safe (protects T R) Q (stopped T R) (k ms) x) →
  array_safe (protects T R) Q (stopped T R) (equalize n ms k) x.
Proof.
  intros Hsafe Hf Hx Hr Hms Hc Hn Hk. revert f x ms Hf Hx Hr Hms Hc Hn.
  induction n as [|n IH]; simpl; intros f x ms Hf Hx Hr Hms Hc Hn.
  { apply (Hk f); try done. intros i Hi Hup a Ha. apply Hr; [done|done|lia]. }
  apply (safe_read_from size count T _ _ _ M (each_up ms (equal_from (S n) f))); try done.
  - apply each_up_lasting.
  - intros y Hy. by exists M.
  - intros y Hy. by eapply holds_stopped.
  - intros y i rest Hy Ey Hm Hsuf Hcy Hup. set (b := read_block _ n).
    assert (may_hold M n b) as Hb.
    { destruct Hy as [Hwithin _ _ _ _]. apply (Hwithin i); [rewrite Hm; by left|lia|apply read_may_hold]. }
    assert (each_up (i :: rest) (equal_from (S n) f) y) as Ey'.
    { destruct Hsuf as [l ->]. eapply each_up_sub; [|done]. intros j. rewrite elem_of_app. by right. }
    set (f' := λ a, if decide (a = n) then b else f a).
    assert (survives M f') as Hf'. { intros a. unfold f'.
      destruct (decide (a = n)) as [->|]; [done|apply Hf]. }
    simpl. rewrite drop_0. apply (safe_write_to size count T _ _ _ M (equal_from (S n) f) (equal_from n f'));
      try done.
    + intros z Hz. by exists M.
    + intros z Hz. by eapply holds_stopped.
    + intros m Hm' a Ha. unfold f', read_block. simpl. destruct (decide (a = n)); [done|]. apply Hm'. lia.
    + intros j ->%elem_of_list_singleton Hj a Ha. unfold f'. destruct (decide (a = n)) as [->|]; [done|].
      apply Ey'; [by left|done|lia].
    + eapply each_up_sub; [|done]. intros j Hj. by right.
    + intros z ms' Hz Ez Hm' Hcz. apply (IH f'); try done. lia.
Qed.

Lemma safe_opened T M (Q : A → array B → Prop) x ms c k :
  safe R M → holds T M x → members x = ms → clean x = c →
  (∀ f x ms c, survives M f → mirrors T (Medium f []) x → members x = ms → clean x = c →
     array_safe (protects T R) Q (stopped T R) (k ms c) x) →
  array_safe (protects T R) Q (stopped T R) (opened size ms c k) x.
Proof.
  intros Hsafe Hx Hms Hc Hk. unfold opened. destruct c.
  - pose proof Hx as [Hwithin Hclean Hmem Hdup Hdown]. specialize (Hclean Hc). destruct M as [f u].
    simpl in *. subst u.
    apply (Hk f); try done; [intros a; by left|]. split; [done|]. intros i Hi Hup a Ha.
    destruct (Hwithin i Hi a _ Ha (read_may_hold _ a)) as [->|Hin]; [done|by apply elem_of_nil in Hin].
  - apply (safe_equalize T M _ size (stable M)); try done; [intros a; by left|intros i _ _ a; lia|].
    clear x Hx Hms Hc. intros f x ms' Hf Hx Hr Hms Hc.
    apply (safe_flush_of size count T _ _ _ M f); try done.
    + intros y Hy. by exists M.
    + intros y Hy. by eapply holds_stopped.
    + by intros i ?%elem_of_nil.
    + intros y ms1 Hy Ey Hm Hcy. apply (Hk f); try done. split; [done|by rewrite Hm].
Qed.
End Programs.

(** ** Resync *)

(** A device that is no member. *)
Lemma mirrors_other T M x i d :
  i ∉ members x → up d = up (device_at x i) → (up d = false → unflushed (store d) = []) →
  mirrors T M x → mirrors T M (put_device x i d).
Proof.
  intros Hi Hup Hd [[Hwithin Hclean Hmem Hdup Hdown] Hr]. split; [split|]; simpl.
  - intros j Hj. rewrite decide_False by (by intros ->). by apply Hwithin.
  - done.
  - intros j Hj. simpl. destruct (decide (j = i)) as [->|]; [rewrite Hup|]; by apply Hmem.
  - done.
  - intros j. destruct (decide (j = i)) as [->|]; [done|apply Hdown].
  - intros j Hj. simpl. rewrite decide_False by (by intros ->). by apply Hr.
Qed.

Section Resync.
Context {A : Type} (R : contents B → Prop) (f : contents B) (Q : A → array B → Prop).
Let M := Medium f [].
Variable (T0 : list nat).
Hypothesis HR : safe R M.

Lemma safe_copy_to T i n x ms c k :
  (∀ x, holds T M x → protects T0 R x) → (∀ x, stopped T R x → stopped T0 R x) →
  mirrors T M x → each_up [i] (equal_from n f) x → members x = ms → clean x = c → i ∉ ms → n ≤ size →
  (∀ x ms' ok, mirrors T M x → members x = ms' → clean x = c → (∀ j, j ∈ ms' → j ∈ ms) →
     (if ok : bool then holds_only size f (store (device_at x i)) ∧ each_up [i] (reads_as size f) x
      else up (device_at x i) = false) →
     array_safe (protects T0 R) Q (stopped T0 R) (k ms' ok) x) →
  array_safe (protects T0 R) Q (stopped T0 R) (copy_to i n ms c k) x.
Proof.
  intros HP HS. revert x ms. induction n as [|n IH]; simpl; intros x ms Hx Hi Hms Hc Hno Hn Hk.
  - intros x1 H1. apply (each_up_fails _ _ _ _ H1) in Hi. apply (mirrors_fails _ _ _ _ H1) in Hx.
    destruct H1 as (Hm&Hc1&_). rewrite Hms in Hm. rewrite Hc in Hc1. split; [by apply HP, Hx|].
    destruct (up (device_at x1 i)) eqn:Hup; [|by apply Hk].
    assert (reads_as size f (store (device_at x1 i))) as Hreads.
    { intros a Ha. apply Hi; [by left|done|lia]. }
    apply Hk; try done; [apply mirrors_other; [by rewrite Hm|done..]|]. simpl. rewrite decide_True by done.
      split.
    + intros a b Ha [->|Hin%elem_of_nil]; [|done]. left. simpl. by rewrite Hreads.
    + intros j ->%elem_of_list_singleton. simpl. rewrite decide_True by done. intros _ a Ha. simpl.
      by apply Hreads.
  - destruct Hx as [Hx Hr].
    apply (safe_read_from size count T _ _ _ M (λ x, each_up ms (reads_as size f) x ∧
      each_up [i] (equal_from (S n) f) x));
      try done.
    + apply (lasting_and (each_up ms (reads_as size f)) (each_up [i] (equal_from (S n) f)));
      apply each_up_lasting.
    + intros y Hy H1 H2. apply HS. by eapply holds_stopped.
    + split; [|done]. by rewrite <-Hms.
    + intros y j rest Hy [Ey Ei] Hm Hsuf Hcy Hup.
      assert (∀ j', j' ∈ j :: rest → j' ∈ ms) as Hsub.
      { intros j' Hj'. destruct Hsuf as [l ->]. apply elem_of_app. by right. }
      rewrite (Ey j) by first [done|apply Hsub; by left|lia].
      assert (i ∉ j :: rest) as Hno' by auto.
      assert (mirrors T M y) as Hmy. { split; [done|]. rewrite Hm. by eapply each_up_sub. }
      intros y1 H1. apply (each_up_fails _ _ _ _ H1) in Ei. apply (mirrors_fails _ _ _ _ H1) in Hmy.
      destruct H1 as (Hm1&Hc1&_). rewrite Hm in Hm1. rewrite Hcy in Hc1. split; [by apply HP, Hmy|].
      destruct (up (device_at y1 i)) eqn:Hupi.
      * apply IH; try done; [|..].
        -- apply mirrors_other; [by rewrite Hm1|done..].
        -- intros j' ->%elem_of_list_singleton. simpl. rewrite decide_True by done. intros _ a Ha.
           unfold read_block. simpl. destruct (decide (a = n)) as [->|]; [done|].
             apply Ei; [by left|done|lia].
        -- lia.
        -- intros z ms' ok Hz Hmz Hcz Hsz. apply Hk; try done. intros j' Hj'. by apply Hsub, Hsz.
      * intros y2 Hy2. assert (mirrors T M y2 ∧ members y2 = members y1 ∧ clean y2 = clean y1 ∧
          up (device_at y2 i) = false) as (Hmy2&Hm2&Hc2&Hup2).
        { destruct Hy2 as [->| ->]; [done|]. split_and!; [|done|done|simpl; by rewrite decide_True].
          apply mirrors_other; [by rewrite Hm1|done..]. }
        rewrite Hm1 in Hm2. rewrite Hc1 in Hc2. by apply Hk.
Qed.

Lemma safe_resync todo x ms c k :
  (∀ i, i < count → i ∈ todo → i ∈ T0) → mirrors todo M x → members x = ms → clean x = c → NoDup todo →
  (∀ i, i ∈ todo → i ∉ ms) →
  (∀ x ms, mirrors [] M x → members x = ms → clean x = c →
     array_safe (protects T0 R) Q (stopped T0 R) (k ms) x) →
  array_safe (protects T0 R) Q (stopped T0 R) (resync size todo ms c k) x.
Proof.
  intros HT Hx Hms Hc Htodo Hno Hk. revert x ms HT Hx Hms Hc Htodo Hno.
  induction todo as [|i todo IH]; simpl; intros x ms HT Hx Hms Hc Htodo Hno; [by apply Hk|].
  apply NoDup_cons in Htodo as [Hi Htodo].
  apply (safe_copy_to (i :: todo)); try done.
  - intros y Hy. exists M. split; [done|]. by eapply holds_more.
  - intros y [(f'&Hf'&Hy) Hup]. split; [|done]. exists f'. split; [done|]. by eapply holds_more.
  - intros j _ _ a. lia.
  - apply Hno. by left.
  - intros y ms1 ok Hy Hm Hcy Hsub Hok.
    destruct ok.
    + destruct Hok as [Honly Hreads]. intros y1 H1. destruct Hy as [Hy Hr].
      assert (holds (i :: todo) M y1) as Hy1 by by eapply holds_fails.
      split; [exists M; split; [done|by eapply holds_more]|].
      assert (holds_only size f (store (device_at y1 i))) as Honly1.
      { destruct H1 as (_&_&Hd). destruct (Hd i) as [->|(f'&Hf'&->)]; [done|]. simpl.
        by eapply within_survives. }
      apply (each_up_fails _ _ _ _ H1) in Hr, Hreads. destruct H1 as (Hm1&Hc1&_).
      rewrite Hm in Hm1, Hr. rewrite Hcy in Hc1. apply IH; try done.
      * intros j Hj Hin. apply HT; [done|by right].
      * destruct Hy1 as [Hwithin Hclean Hmem Hdup Hdown]. split; [split|]; simpl.
        -- intros j. rewrite elem_of_app, elem_of_list_singleton. intros [Hj| ->]; [|done].
           apply Hwithin. by rewrite Hm1.
        -- done.
        -- intros j Hj Hup. destruct (Hmem j Hj Hup) as [Hin|[->|Hin]%elem_of_cons]; simpl.
           ++ left. apply elem_of_app. left. by rewrite <-Hm1.
           ++ left. apply elem_of_app. right. by left.
           ++ by right.
        -- rewrite Hm1 in Hdup. apply NoDup_app. split_and!; [done| |apply NoDup_singleton].
           intros j Hj ->%elem_of_list_singleton. by apply (Hno i); [left|apply Hsub].
        -- done.
        -- intros j. rewrite elem_of_app, elem_of_list_singleton. intros [Hj| ->]; [by apply Hr|].
           apply Hreads. by left.
      * intros j Hj. rewrite elem_of_app, elem_of_list_singleton. intros [Hin| ->]; [|done].
        by apply (Hno j); [right|apply Hsub].
    + apply IH; try done.
      * intros j Hj Hin. apply HT; [done|by right].
      * destruct Hy as [[Hwithin Hclean Hmem Hdup Hdown] Hr]. split; [split|]; try done.
        intros j Hj Hup. destruct (Hmem j Hj Hup) as [Hin|[->|Hin]%elem_of_cons]; [by left| |by right].
        by rewrite Hup in Hok.
      * intros j Hj Hin. by apply (Hno j); [right|apply Hsub].
Qed.
End Resync.

(** Once the devices have settled, whoever is up is a member. *)
Definition settled_end f (r : list nat * bool) x : Prop :=
  mirrors [] (Medium f []) x ∧ members x = r.1 ∧ clean x = r.2.

Lemma safe_settle (R : contents B → Prop) T f x ms c :
  safe R (Medium f []) → mirrors T (Medium f []) x → members x = ms → clean x = c →
  (∀ i, i < count → i ∉ ms → i ∈ T) →
  array_safe (protects T R) (settled_end f) (stopped T R) (settle size count ms c) x.
Proof.
  intros HR [Hx Hr] Hms Hc HT. unfold settle.
  assert (∀ i, i < count → i ∈ filter (λ i, i ∉ ms) (seq 0 count) → i ∈ T) as Hfilter.
  { intros i Hi [Hno _]%elem_of_list_filter. by apply HT. }
  apply (safe_resync R f _ T HR); try done.
  - split; [|done]. destruct Hx as [Hwithin Hclean Hmem Hdup Hdown]. split; [done|done| |done|done].
    intros i Hi Hup. destruct (decide (i ∈ members x)); [by left|right].
    apply elem_of_list_filter. split; [by rewrite <-Hms|apply elem_of_list_In, in_seq; lia].
  - apply NoDup_filter, NoDup_seq.
  - by intros i [? _]%elem_of_list_filter.
  - clear x Hx Hr Hms Hc. intros x ms' [Hx Hr] Hms Hc x1 H1.
    assert (holds [] (Medium f []) x1) as Hx1 by by eapply holds_fails. split.
    + exists (Medium f []). split; [done|]. eapply holds_more; [|done]. by intros i _ ?%elem_of_nil.
    + split; [by eapply mirrors_fails; [|split]|]. by destruct H1 as (->&->&_).
Qed.
End Refine.
