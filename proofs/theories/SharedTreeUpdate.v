(** What an update does to the heap: path copying with the ownership rule. *)
From LogDisk Require Export SharedTreePaths.

Definition descend_from (h : heap) (o : option id) (q : path) : option id := o ≫= λ r, descend h r q.

Definition closed (h : heap) (r : id) : Prop :=
  is_Some (h !! r) ∧
  ∀ n nd d m, reaches h r n → h !! n = Some nd → kids nd !! d = Some m → is_Some (h !! m).

Lemma closed_kid h r nd d m : closed h r → h !! r = Some nd → kids nd !! d = Some m → closed h m.
Proof. intros [_ Hc] Hr Hd. assert (reaches h r r) by (apply reaches_refl; eauto).
  assert (is_Some (h !! m)) by eauto. split; [done|]. intros n nd' d' m' Hn. eapply Hc, reaches_trans, Hn.
  by eapply reaches_kid. Qed.

Lemma descend_from_nil h o n : descend_from h o [] = Some n ↔ o = Some n ∧ is_Some (h !! n).
Proof. unfold descend_from. destruct o as [r|]; cbn [mbind option_bind]; [|naive_solver]. rewrite descend_nil.
  naive_solver. Qed.

Lemma descend_from_cons h o d q : descend_from h o (d :: q) = descend_from h (kids_of h o !! d) q.
Proof. unfold descend_from, kids_of. destruct o as [r|]; simpl; [|by rewrite lookup_empty].
  destruct (h !! r) as [nd|]; simpl; [done|by rewrite lookup_empty]. Qed.

Section put.
  Context (H e b : nat) (h : heap) (x : option nat) (T : tidy H e b h) (He : 1 ≤ e).

  Definition placed (o : option id) (pl : path) : Prop :=
    ∀ r, o = Some r → closed h r ∧ ∀ nd, h !! r = Some nd → place nd = pl.

  Record put_ok (nx : nat) (o : option id) (pl k : path) (h' : heap) (o' dropped : option id) : Prop :=
    PutOk {
    (** Only fresh nodes and owned nodes on the path change. *)
    put_frame n : h' !! n = h !! n ∨
      ∃ q, q `prefix_of` k ∧
        (n = nx + length q ∨ ∃ nd, h !! n = Some nd ∧ birth nd = e ∧ place nd = pl ++ q) ∧
        ∀ nd', h' !! n = Some nd' → birth nd' = e ∧ place nd' = pl ++ q;
    put_tidy : tidy H e (nx + S (length k)) h';
    put_edge n nd d m : h' !! n = Some nd → kids nd !! d = Some m → m < b ∨ nx ≤ m;
    put_top : match o' with
              | Some r => ∃ nd, h' !! r = Some nd ∧ birth nd = e ∧ place nd = pl
              | None => k = [] ∧ x = None
              end;
    put_closed r : o' = Some r → closed h' r;
    (** Off the path the new tree is the old one. *)
    put_off_path q : ¬ q `prefix_of` k → descend_from h' o' q = descend_from h o q;
    (** On the path it has the old node where that is owned, else a fresh one. *)
    put_on_path q n : q `prefix_of` k → descend_from h' o' q = Some n →
      (n = nx + length q ∧ owned (pred e) h (descend_from h o q) = false) ∨
      (descend_from h o q = Some n ∧ owned (pred e) h (Some n) = true);
    put_fresh n : nx ≤ n → is_Some (h' !! n) → ∃ q, descend_from h' o' q = Some n;
    put_inner q : q `prefix_of` k → q ≠ k → is_Some (descend_from h' o' q);
    put_here : (n ← descend_from h' o' k; data <$> h' !! n) = x;
    (** What the new tree no longer has, the dropped subtree has, or it is gone. *)
    put_lost q n : descend_from h o q = Some n →
      descend_from h' o' q = Some n ∨ h' !! n = None ∨
      ∃ m q1 q2, dropped = Some m ∧ q = q1 ++ q2 ∧ descend_from h o q1 = Some m ∧ descend h m q2 = Some n;
    put_dropped m : dropped = Some m →
      (∃ q, descend_from h o q = Some m) ∧ ∃ nd, h !! m = Some nd ∧ birth nd < e;
  }.

  Lemma owned_true o : owned (pred e) h o = true → ∃ r nd, o = Some r ∧ h !! r = Some nd ∧ birth nd = e.
  Proof. unfold owned. destruct o as [r|]; simpl; [|done]. destruct (h !! r) as [nd|] eqn:E; [|done].
    intros ?%Nat.ltb_lt. destruct (tidy_node T E). exists r, nd. repeat split; auto. lia. Qed.

  Lemma owned_false r nd : owned (pred e) h (Some r) = false → h !! r = Some nd → birth nd < e.
  Proof. unfold owned. simpl. intros Ho E. rewrite E in Ho. apply Nat.ltb_ge in Ho. lia. Qed.

  Lemma owned_old r nd : h !! r = Some nd → birth nd = e → owned (pred e) h (Some r) = true.
  Proof. unfold owned. simpl. intros -> ->. apply Nat.ltb_lt. lia. Qed.

  Notation top nx o := (target (pred e) nx h o).

  Lemma top_cases nx o pl : b ≤ nx → placed o pl →
    (owned (pred e) h o = false ∧ top nx o = nx ∧ h !! nx = None) ∨
    (owned (pred e) h o = true ∧
     ∃ r nd, o = Some r ∧ top nx o = r ∧ h !! r = Some nd ∧ birth nd = e ∧ place nd = pl ∧ r < b).
  Proof.
    intros Hb Ho. unfold target. destruct (owned _ _ _) eqn:E; [right|left].
    - apply owned_true in E as (r&nd&->&Hr&?). destruct (Ho r eq_refl) as [_ Hp]. split; [done|].
      exists r, nd. repeat split; auto. by apply (tidy_node T) in Hr as [? _].
    - repeat split; auto. destruct (h !! nx) eqn:E'; [|done]. apply (tidy_node T) in E'. lia.
  Qed.

  Lemma dropped_top o pl m (dr : option id) : placed o pl → owned (pred e) h o = false → o = Some m →
    (∃ q, descend_from h o q = Some m) ∧ ∃ nd, h !! m = Some nd ∧ birth nd < e.
  Proof.
    intros Ho Hf ->. destruct (Ho m eq_refl) as [[[nd Hm] _] _]. split.
    - exists []. apply descend_from_nil. eauto.
    - exists nd. split; [done|]. by eapply owned_false.
  Qed.

  Lemma bottom_kids o pl d : placed o pl → length pl = H → kids_of h o !! d = None.
  Proof.
    intros Ho Hl. unfold kids_of. destruct o as [r|]; simpl; [|apply lookup_empty].
    destruct (h !! r) as [nd|] eqn:E; simpl; [|apply lookup_empty]. destruct (kids nd !! d) eqn:E'; [|done].
    destruct (tidy_edge T E E') as [_ Hlt]. destruct (Ho r eq_refl) as [_ Hp]. rewrite (Hp _ E) in Hlt. lia.
  Qed.

  Lemma tidy_insert nx o pl nd :
    b ≤ nx → placed o pl → place nd = pl → birth nd = e → kids nd = ∅ → tidy H e (S nx) (<[top nx o :=
      nd]> h).
  Proof.
    intros Hb Ho Hpl Hbirth Hkids.
    destruct (top_cases nx o pl Hb Ho) as [(_&->&Hnx)|(_&r&rd&->&->&Hr&Hrb&Hrp&Hlt)]; split;
      try (intros n md [[<- <-]|[? [? ?]%(tidy_node T)]]%lookup_insert_Some; lia); intros n md d m;
        [|intros kd| |intros kd];
      (intros [[<- <-]|[? Hn]]%lookup_insert_Some Hd; [by rewrite Hkids, lookup_empty in Hd|]);
      destruct (tidy_edge T Hn Hd); try lia;
        (intros [[<- Hm]|[? Hm]]%lookup_insert_Some; [|by eapply (tidy_kid T)]); [lia|].
    subst kd. destruct (tidy_kid T Hn Hd Hr). rewrite Hpl, <- Hrp, Hbirth, <- Hrb. done.
  Qed.

  Lemma tidy_delete n : tidy H e b (delete n h).
  Proof.
    split.
    - intros m md [_ Hm]%lookup_delete_Some. by apply (tidy_node T).
    - intros m md d k [_ Hm]%lookup_delete_Some. by eapply (tidy_edge T).
    - intros m md d k kd [_ Hm]%lookup_delete_Some Hd [_ Hk]%lookup_delete_Some. by eapply (tidy_kid T).
  Qed.

  Lemma put_ok_chunk nx o pl : b ≤ nx → placed o pl → length pl = H →
    let '(h', o', dropped) := put (pred e) e nx h o pl [] x in put_ok nx o pl [] h' o' dropped.
  Proof.
    intros Hb Ho Hl. cbn [put]. assert (∀ d q, descend_from h o (d :: q) = None) as Hnone.
    { intros d q. rewrite descend_from_cons, (bottom_kids _ _ _ Ho Hl). done. }
    assert (∀ q : path, ¬ q `prefix_of` [] → ∃ d q', q = d :: q') as Hcons.
    { intros [|d q] Hq; [by destruct Hq; apply prefix_nil|eauto]. }
    pose proof (top_cases nx o pl Hb Ho) as Hcases. destruct x as [v|] eqn:Ex.
    - set (n := top nx o) in *. set (h' := <[n := Node e pl ∅ v]> h).
      assert (h' !! n = Some (Node e pl ∅ v)) as Hn by apply lookup_insert.
      assert (∀ d q, descend_from h' (Some n) (d :: q) = None) as Hnone'.
      { intros d q. rewrite descend_from_cons. unfold kids_of. simpl. rewrite Hn. simpl.
        by rewrite lookup_empty. }
      assert (tidy H e (S nx) h') as T' by (by apply (tidy_insert nx o pl)).
      split; try (by intros q ->%prefix_nil_inv).
      + intros m. destruct (decide (m = n)) as [->|]; [right|left; by apply lookup_insert_ne].
        exists []. split; [done|]. rewrite Hn, app_nil_r. split; [|by intros ? [= <-]]. simpl.
        destruct Hcases as [(_&->&_)|(_&r&rd&_&->&?)]; [left; lia|right; naive_solver].
      + by rewrite Nat.add_comm.
      + intros m md d k [[<- <-]|[? Hm]]%lookup_insert_Some Hd; [by cbn in Hd; rewrite lookup_empty in Hd|].
        left. by apply (tidy_edge T Hm Hd).
      + by eexists.
      + intros r [= <-]. split; [by eexists|]. intros m md d k [q Hq] Hm Hd. exfalso. destruct q as [|d' q].
        * apply descend_nil in Hq as [-> _]. rewrite Hn in Hm. injection Hm as <-.
          by cbn in Hd; rewrite lookup_empty in Hd.
        * by assert (None = Some m) by (by rewrite <- (Hnone' d' q)).
      + intros q (d&q'&->)%Hcons. by rewrite Hnone, Hnone'.
      + intros q m ->%prefix_nil_inv [[= <-] _]%descend_from_nil. simpl.
        destruct Hcases as [(?&->&?)|(?&r&rd&->&->&?&?&?)]; [left|right].
        * split; [lia|]. destruct (descend_from h o []) as [r|] eqn:E; [|done].
          by apply descend_from_nil in E as [<- _].
        * split; [|by eapply owned_old]. apply descend_from_nil. eauto.
      + intros m Hm Hsome. exists []. apply descend_from_nil. split; [|done]. f_equal.
        destruct (decide (m = n)) as [->|]; [done|exfalso]. unfold h' in Hsome.
        rewrite lookup_insert_ne in Hsome by done. destruct Hsome as [md Hmd]. apply (tidy_node T) in Hmd.
          lia.
      + assert (descend_from h' (Some n) [] = Some n) as ->; [apply descend_from_nil;
        eauto|]. simpl. by rewrite Hn.
      + intros [|d q] m Hq; [|by rewrite Hnone in Hq]. pose proof Hq as [-> ?]%descend_from_nil.
        destruct Hcases as [(->&_)|(_&r&rd&[= ->]&E&?)].
        * right. right. exists m, [], []. repeat split; done || by apply descend_nil.
        * left. rewrite E. apply descend_from_nil. rewrite <- E. eauto.
      + intros m. destruct (owned _ _ _) eqn:Hf; [done|]. by apply (dropped_top _ pl).
    - set (n := top nx o) in *. split; try done; try (by intros q ->%prefix_nil_inv).
      + intros m. destruct (decide (m = n)) as [->|]; [|left; by apply lookup_delete_ne].
        destruct Hcases as [(_&->&?)|(_&r&rd&_&->&?&?&?&?)]; [left; by rewrite lookup_delete|right].
        exists []. rewrite lookup_delete, app_nil_r. naive_solver.
      + eapply tidy_mono; [apply tidy_delete|done|simpl; lia].
      + intros m md d k [_ Hm]%lookup_delete_Some Hd. left. by apply (tidy_edge T Hm Hd).
      + intros q (d&q'&->)%Hcons. by rewrite Hnone.
      + intros m Hm [md [_ Hmd]%lookup_delete_Some]. apply (tidy_node T) in Hmd. lia.
      + intros [|d q] m Hq; [|by rewrite Hnone in Hq]. pose proof Hq as [-> ?]%descend_from_nil.
        destruct Hcases as [(->&_)|(_&r&rd&[= ->]&E&?)].
        * right. right. exists m, [], []. repeat split; done || by apply descend_nil.
        * right. left. rewrite E. apply lookup_delete.
      + intros m. destruct (owned _ _ _) eqn:Hf; [done|]. by apply (dropped_top _ pl).
  Qed.

  Lemma kid_of_cases o pl : placed o pl → ∀ d r, kids_of h o !! d = Some r →
    r < b ∧ closed h r ∧ ∀ nd, h !! r = Some nd → place nd = pl ++ [d] ∧ birth nd ≤ e.
  Proof.
    intros Ho d r. unfold kids_of. destruct o as [t|]; simpl; [|by rewrite lookup_empty].
    destruct (h !! t) as [td|] eqn:Et; simpl; [|by rewrite lookup_empty]. intros Hd.
    destruct (Ho t eq_refl) as [Hc Hp]. rewrite <- (Hp _ Et). split; [by eapply (tidy_edge T)|].
    split; [by eapply closed_kid|]. intros nd Hr. destruct (tidy_kid T Et Hd Hr) as [-> ?]. split; [done|].
    pose proof (tidy_node T Et). lia.
  Qed.

  Section step.
    Context (nx : nat) (o : option id) (pl : path) (d : nat) (k : path).
    Context (Hb : b ≤ nx) (Ho : placed o pl) (Hl : length pl + S (length k) = H).
    Context (h1 : heap) (m dr : option id).
    Let ks := kids_of h o.
    Context (IH : put_ok (S nx) (ks !! d) (pl ++ [d]) k h1 m dr).
    Let n := top nx o. Let nd0 := Node e pl (partial_alter (λ _, m) d ks) 0. Let h' := <[n := nd0]> h1.

    Let kid_cases := kid_of_cases o pl Ho.

    Lemma new_top : h' !! n = Some nd0.
    Proof. apply lookup_insert. Qed.

    Lemma old_top : h1 !! n = h !! n.
    Proof.
      destruct (put_frame _ _ _ _ _ _ _ IH n) as [|(q&_&Hq&_)]; [done|exfalso].
      destruct (top_cases nx o pl Hb Ho) as [(_&Hn&Hnx)|(_&r&rd&_&Hn&Hr&_&Hp&?)]; fold n in Hn.
      - destruct Hq as [|(nd&Hn'&_)]; [lia|]. congruence.
      - destruct Hq as [|(nd&Hn'&_&Hq)]; [lia|]. rewrite Hn in Hn'.
        assert (nd = rd) as -> by congruence. rewrite Hp, <- app_assoc in Hq.
        apply (f_equal length) in Hq. rewrite app_length in Hq. simpl in Hq. lia.
    Qed.

    (** Nodes that stand beside the path are spared. *)
    Let beside (d' : nat) (i : id) : Prop := i < b ∧ ∀ nd, h !! i = Some nd → ∃ q, place nd = pl ++ d' :: q.

    Lemma beside_kid d' i nd d1 i' : beside d' i → h !! i = Some nd → kids nd !! d1 = Some i' → beside d' i'.
    Proof. intros [_ Hp] Hi Hd. destruct (Hp _ Hi) as [q Hq]. split; [by eapply (tidy_edge T)|].
      intros nd' Hi'. destruct (tidy_kid T Hi Hd Hi') as [-> _]. rewrite Hq. exists (q ++ [d1]).
      by rewrite <- app_assoc. Qed.

    Lemma beside_same d' i : d' ≠ d → beside d' i → h' !! i = h !! i.
    Proof.
      intros Hd [Hi Hp]. unfold h'. rewrite lookup_insert_ne.
      - destruct (put_frame _ _ _ _ _ _ _ IH i) as [|(q&_&[?|(nd&Hi'&_&Hq)]&_)]; [done|lia|].
        destruct (Hp _ Hi') as [q' Hq']. rewrite Hq, <- app_assoc in Hq'. apply app_inv_head in Hq'.
          by injection Hq'.
      - intros <-. destruct (top_cases nx o pl Hb Ho) as [(_&Hn&_)|(_&r&rd&_&Hn&Hr&_&Hp'&_)]; fold n in Hn;
        [lia|].
        rewrite Hn in Hp. destruct (Hp _ Hr) as [q Hq]. rewrite Hp' in Hq.
        apply (f_equal length) in Hq. rewrite app_length in Hq. simpl in Hq. lia.
    Qed.

    Lemma beside_start d' r : ks !! d' = Some r → beside d' r.
    Proof. intros Hr. destruct (kid_cases _ _ Hr) as (?&_&Hp). split; [done|]. intros nd Hn.
      destruct (Hp _ Hn) as [-> _]. by exists []. Qed.

    Lemma beside_reaches d' r i : ks !! d' = Some r → reaches h r i → beside d' i.
    Proof. intros Hr [q Hq]. destruct (kid_cases _ _ Hr) as (_&[[rd Hrd] _]&Hp).
      destruct (descend_exists _ _ _ _ Hq) as [nd Hi]. split; [by apply (tidy_node T Hi)|]. intros nd' Hi'.
      destruct (descend_place T _ _ _ _ _ Hq Hrd Hi') as [-> _]. destruct (Hp _ Hrd) as [-> _]. exists q.
      by rewrite <- app_assoc. Qed.

    Lemma descend_beside d' q : d' ≠ d → descend_from h' (ks !! d') q = descend_from h (ks !! d') q.
    Proof. intros Hd. destruct (ks !! d') as [r|] eqn:E; [|done].
      apply (descend_agree (beside d')); [by intros; eapply beside_kid|by intros; apply (beside_same d')|].
      by apply beside_start. Qed.

    Lemma sub_not_top r : m = Some r → ¬ reaches h1 r n.
    Proof.
      intros Hm Hn. pose proof (put_top _ _ _ _ _ _ _ IH) as Ht. rewrite Hm in Ht.
        destruct Ht as (rd&Hr&_&Hp).
      destruct (reaches_exists _ _ _ Hn) as [nd Hnd].
      destruct (reaches_place (put_tidy _ _ _ _ _ _ _ IH) _ _ _ _ Hn Hr Hnd) as [q Hq].
      rewrite old_top in Hnd.
      destruct (top_cases nx o pl Hb Ho) as [(_&Hn'&Hnx)|(_&r'&rd'&_&Hn'&Hr'&_&Hp'&_)]; fold n in Hn';
        [congruence|].
      assert (nd = rd') as -> by congruence. rewrite Hp', Hp, <- app_assoc in Hq.
      apply (f_equal length) in Hq. rewrite !app_length in Hq. simpl in Hq. lia.
    Qed.

    Lemma descend_sub q : descend_from h' m q = descend_from h1 m q.
    Proof.
      assert (m = None ∨ ∃ r, m = Some r) as [Hm|[r Hm]]; [destruct m; eauto|by rewrite Hm|]. rewrite Hm.
      destruct (put_closed _ _ _ _ _ _ _ IH r Hm) as [? Hc].
      apply (descend_agree (reaches h1 r)); [| |by apply reaches_refl].
      - intros i nd d1 i' Hi Hnd Hd1. eapply reaches_kid; eauto.
      - intros i Hi. apply lookup_insert_ne. intros <-. by apply (sub_not_top r).
    Qed.

    Lemma descend_top_same q : descend_from h' (Some n) (d :: q) = descend_from h1 m q.
    Proof. rewrite descend_from_cons. unfold kids_of. simpl. rewrite new_top. simpl.
      rewrite lookup_partial_alter. apply descend_sub. Qed.

    Lemma descend_top_other d' q : d' ≠ d → descend_from h' (Some n) (d' :: q) = descend_from h o (d' :: q).
    Proof. intros Hd. rewrite !descend_from_cons, <- descend_beside by done. unfold kids_of at 1. simpl.
      rewrite new_top. simpl. by rewrite lookup_partial_alter_ne. Qed.

    Lemma sub_bound r : m = Some r → r < nx + S (length (d :: k)).
    Proof. intros Hm. pose proof (put_top _ _ _ _ _ _ _ IH) as Ht. rewrite Hm in Ht. destruct Ht as (rd&Hr&_).
      apply (tidy_node (put_tidy _ _ _ _ _ _ _ IH)) in Hr. simpl. lia. Qed.

    Lemma edge_bound i nd d' i' : h' !! i = Some nd → kids nd !! d' = Some i' → i' < b ∨ nx ≤ i'.
    Proof.
      unfold h'. intros [[<- <-]|[_ Hi]]%lookup_insert_Some Hd; cbn in Hd.
      - destruct (decide (d' = d)) as [->|].
        + rewrite lookup_partial_alter in Hd. pose proof (put_top _ _ _ _ _ _ _ IH) as Ht. rewrite Hd in Ht.
          destruct Ht as (rd&Hr&Hbirth&Hp).
          destruct (put_frame _ _ _ _ _ _ _ IH i') as [Hs|(q&_&[->|(nd&Hr'&_)]&_)].
          * left. rewrite Hs in Hr. by apply (tidy_node T Hr).
          * right. lia.
          * left. by apply (tidy_node T Hr').
        + rewrite lookup_partial_alter_ne in Hd by done. left. by destruct (kid_cases _ _ Hd).
      - destruct (put_edge _ _ _ _ _ _ _ IH _ _ _ _ Hi Hd); [by left|right; lia].
    Qed.

    Lemma step_tidy : tidy H e (nx + S (length (d :: k))) h'.
    Proof.
      pose proof (put_tidy _ _ _ _ _ _ _ IH) as T1. split.
      - intros i nd [[<- <-]|[_ Hi]]%lookup_insert_Some.
        + destruct (top_cases nx o pl Hb Ho) as [(_&Hn&_)|(_&r&rd&_&Hn&_&_&_&?)]; fold n in Hn; simpl; lia.
        + apply (tidy_node T1) in Hi. simpl. lia.
      - intros i nd d' i' [[<- <-]|[_ Hi]]%lookup_insert_Some Hd; cbn in Hd.
        + split; [|simpl; lia]. destruct (decide (d' = d)) as [->|].
          * rewrite lookup_partial_alter in Hd. by apply sub_bound.
          * rewrite lookup_partial_alter_ne in Hd by done. destruct (kid_cases _ _ Hd). lia.
        + destruct (tidy_edge T1 Hi Hd). simpl. lia.
      - intros i nd d' i' nd' Hi Hd Hi'. unfold h' in Hi.
        apply lookup_insert_Some in Hi as [[<- <-]|[Hne Hi]]; cbn in Hd.
        + simpl. destruct (decide (d' = d)) as [->|].
          * rewrite lookup_partial_alter in Hd. pose proof (put_top _ _ _ _ _ _ _ IH) as Ht. rewrite Hd in Ht.
            destruct Ht as (rd&Hr&Hbirth&Hp). unfold h' in Hi'. rewrite lookup_insert_ne in Hi'.
            -- assert (nd' = rd) as -> by congruence. split; [done|lia].
            -- intros <-. eapply sub_not_top; [done|]. apply reaches_refl. eauto.
          * rewrite lookup_partial_alter_ne in Hd by done.
            rewrite (beside_same d') in Hi' by (done || by apply beside_start).
            destruct (kid_cases _ _ Hd) as (_&_&?). eauto.
        + unfold h' in Hi'. apply lookup_insert_Some in Hi' as [[<- <-]|[_ Hi']]; [|by eapply (tidy_kid T1)].
          simpl. destruct (top_cases nx o pl Hb Ho) as [(_&Hn&_)|(_&r&rd&_&Hn&Hr&Hbirth&Hp&_)]; fold n in Hn.
          * destruct (put_edge _ _ _ _ _ _ _ IH _ _ _ _ Hi Hd); lia.
          * rewrite <- Hn, <- old_top in Hr. destruct (tidy_kid T1 Hi Hd Hr). by rewrite <- Hp, <- Hbirth.
    Qed.

    Lemma step_closed : closed h' n.
    Proof.
      split; [rewrite new_top; eauto|]. intros i nd d' i' [[|d1 q] Hq] Hi Hd.
      - apply descend_nil in Hq as [-> _]. rewrite new_top in Hi. injection Hi as <-. cbn in Hd.
        destruct (decide (d' = d)) as [->|].
        + rewrite lookup_partial_alter in Hd. destruct (put_closed _ _ _ _ _ _ _ IH _ Hd) as [? _].
          unfold h'. by apply lookup_insert_is_Some'; right.
        + rewrite lookup_partial_alter_ne in Hd by done.
          rewrite (beside_same d') by (done || by apply beside_start).
            by destruct (kid_cases _ _ Hd) as (_&[? _]&_).
      - change (descend_from h' (Some n) (d1 :: q) = Some i) in Hq. destruct (decide (d1 = d)) as [->|].
        + rewrite descend_top_same in Hq.
          assert (∃ r, m = Some r ∧ reaches h1 r i) as (r&E&Hr) by (destruct m as [r|]; [by exists r; split;
            [|exists q]|done]).
          assert (i ≠ n) by (intros ->; by eapply sub_not_top). unfold h' in Hi.
          rewrite lookup_insert_ne in Hi by done. destruct (put_closed _ _ _ _ _ _ _ IH _ E) as [_ Hc].
          unfold h'. apply lookup_insert_is_Some'; right. eauto.
        + rewrite descend_top_other, descend_from_cons in Hq by done. fold ks in Hq.
          destruct (ks !! d1) as [r|] eqn:E; [|done]. assert (reaches h r i) as Hr by by exists q.
          pose proof (beside_reaches _ _ _ E Hr) as Hbi. rewrite (beside_same d1) in Hi by done.
          rewrite (beside_same d1) by (done || by eapply beside_kid).
          destruct (kid_cases _ _ E) as (_&[_ Hc]&_). eauto.
    Qed.

    Lemma put_ok_step : put_ok nx o pl (d :: k) h' (Some n) (if owned (pred e) h o then dr else o).
    Proof.
      pose proof (top_cases nx o pl Hb Ho) as Hcases. fold n in Hcases. split.
      - intros i. destruct (decide (i = n)) as [->|Hi]; [right|].
        + exists []. split; [apply prefix_nil|]. rewrite new_top, app_nil_r. split; [|by intros ? [= <-]].
          simpl.
          destruct Hcases as [(_&->&_)|(_&r&rd&_&->&?)]; [left; lia|right; naive_solver].
        + unfold h'. rewrite lookup_insert_ne by done.
          destruct (put_frame _ _ _ _ _ _ _ IH i) as [|(q&Hq&Hi'&Hn)]; [by left|right].
          exists (d :: q). split; [by apply prefix_cons|]. rewrite <- app_assoc in Hi', Hn. split; [|done].
          destruct Hi' as [->|]; [left; simpl; lia|by right].
      - apply step_tidy.
      - apply edge_bound.
      - exists nd0. split; [apply new_top|done].
      - intros ? [= <-]. apply step_closed.
      - intros [|d' q] Hq; [by destruct Hq; apply prefix_nil|]. destruct (decide (d' = d)) as [->|].
        + rewrite descend_top_same, descend_from_cons. fold ks.
          apply (put_off_path _ _ _ _ _ _ _ IH). intros ?. by apply Hq, prefix_cons.
        + by apply descend_top_other.
      - intros [|d' q] i Hq Hi.
        + apply descend_from_nil in Hi as [[= <-] _]. simpl.
          destruct Hcases as [(?&->&?)|(?&r&rd&->&->&?&?&?)]; [left|right].
          * split; [lia|]. destruct (descend_from h o []) as [r|] eqn:E; [|done].
            by apply descend_from_nil in E as [<- _].
          * split; [|by eapply owned_old]. apply descend_from_nil. eauto.
        + pose proof (prefix_cons_inv_1 _ _ _ _ Hq) as ->. apply prefix_cons_inv_2 in Hq.
          rewrite descend_top_same in Hi. rewrite descend_from_cons. fold ks.
          destruct (put_on_path _ _ _ _ _ _ _ IH _ _ Hq Hi) as [[-> ?]|]; [left|by right].
          split; [simpl; lia|done].
      - intros i Hi Hsome. destruct (decide (i = n)) as [->|]. { exists []. apply descend_from_nil. done. }
        unfold h' in Hsome. rewrite lookup_insert_ne in Hsome by done. destruct (decide (i = nx)) as [->|].
        { exfalso. destruct (put_frame _ _ _ _ _ _ _ IH nx) as [E|(q&_&[?|(nd&Hnd&_)]&_)]; [|lia|].
          - rewrite E in Hsome. destruct Hsome as [nd Hnd]. apply (tidy_node T) in Hnd. lia.
          - apply (tidy_node T) in Hnd. lia. }
        destruct (put_fresh _ _ _ _ _ _ _ IH i) as [q Hq]; [lia|done|]. exists (d :: q).
          by rewrite descend_top_same.
      - intros [|d' q] Hq Hne.
        + exists n. apply descend_from_nil. rewrite new_top. eauto.
        + pose proof (prefix_cons_inv_1 _ _ _ _ Hq) as ->. apply prefix_cons_inv_2 in Hq.
          rewrite descend_top_same. apply (put_inner _ _ _ _ _ _ _ IH); [done|]. by intros ->.
      - rewrite descend_top_same. rewrite <- (put_here _ _ _ _ _ _ _ IH).
        destruct (descend_from h1 m k) as [i|] eqn:E; [|done]. simpl. unfold h'. rewrite lookup_insert_ne;
          [done|].
        intros <-. assert (∃ r, m = Some r ∧ reaches h1 r n) as (r&Hm&?); [|by eapply sub_not_top].
        destruct m as [r|]; [by exists r; split; [|exists k]|done].
      - intros q i Hq. destruct (owned (pred e) h o) eqn:Hf.
        + destruct Hcases as [[? _]|(_&r&rd&Eo&Hn&Hr&_)]; [done|]. destruct q as [|d' q].
          { apply descend_from_nil in Hq as [Eo' _]. assert (i = r) as -> by congruence. left. rewrite <- Hn.
            apply descend_from_nil. rewrite new_top. eauto. }
          destruct (decide (d' = d)) as [->|]; [|by left; rewrite descend_top_other].
          rewrite descend_from_cons in Hq. fold ks in Hq.
          destruct (put_lost _ _ _ _ _ _ _ IH _ _ Hq) as [?|[Hi|(t&q1&q2&?&->&?&?)]].
          * left. by rewrite descend_top_same.
          * right. left. unfold h'. rewrite lookup_insert_ne; [done|]. intros E.
            rewrite <- E, old_top, Hn in Hi. congruence.
          * right. right. exists t, (d :: q1), q2. rewrite descend_from_cons. done.
        + right. right. destruct o as [r|] eqn:Eo; [|done]. exists r, [], q. repeat split; [|done].
          apply descend_from_nil. split; [done|]. by apply (Ho r).
      - intros t Ht. destruct (owned (pred e) h o) eqn:Hf; [|by eapply dropped_top].
        destruct (put_dropped _ _ _ _ _ _ _ IH _ Ht) as [[q Hq] ?]. split; [|done].
        exists (d :: q). by rewrite descend_from_cons.
    Qed.
  End step.

  Lemma put_spec k : ∀ nx o pl, b ≤ nx → placed o pl → length pl + length k = H →
    let '(h', o', dropped) := put (pred e) e nx h o pl k x in put_ok nx o pl k h' o' dropped.
  Proof.
    induction k as [|d k IH]; intros nx o pl Hb Ho Hl; [apply put_ok_chunk; [done..|simpl in Hl; lia]|].
    cbn [put]. specialize (IH (S nx) (kids_of h o !! d) (pl ++ [d])).
    destruct (put _ _ _ _ _ _ _ _) as [[h1 m] dr]. apply put_ok_step; [done..|].
    apply IH; [lia| |rewrite app_length; simpl in *; lia].
    intros r Hr. destruct (kid_of_cases o pl Ho _ _ Hr) as (_&?&Hp). split; [done|]. intros nd Hn.
      by apply Hp.
  Qed.
End put.
