(** Chunks at the bottom of the trees: no two name the same MBA, an action names new ones only, and an MBA
that is overwritten in place or freed by a walk is named by none. *)
From LogDisk Require Export SharedTreeLookup.
From LogDisk Require Export TreeIndex.

(** ** Keys *)

Lemma key_length bits h lba : length (key bits h lba) = h.
Proof. revert lba. induction h as [|h IH]; intros lba; simpl; [done|]. by rewrite IH. Qed.

Lemma key_inj bits h lba lba' : 0 < h → key bits h lba = key bits h lba' → lba = lba'.
Proof.
  revert lba lba'. induction h as [|h IH]; intros lba lba' Hh; [lia|]. simpl. intros [= Hq Hk].
  assert (2 ^ (bits * h) ≠ 0) as Hf by (by apply Nat.pow_nonzero).
  rewrite (Nat.div_mod lba (2 ^ (bits * h))), (Nat.div_mod lba' (2 ^ (bits * h))), Hq by done. f_equal.
  destruct h as [|h]; [|by apply IH; [lia|]]. rewrite Nat.mul_0_r. simpl. done.
Qed.

(** ** Chunks *)

Definition chunk_at (s : state) (n : id) (k : path) (x : nat) : Prop :=
  length k = height s ∧ ∃ nd, nodes s !! n = Some nd ∧ place nd = k ∧ data nd = x.
Definition mapped (s : state) (x : nat) : Prop := ∃ n k, chunk_at s n k x.

Section chunks.
Context (bits : nat).

(** The trees name MBAs below [b] only, each in one chunk, which stands under the key of an LBA. *)
Record sound_chunks (s : state) (b : nat) : Prop := SoundChunks {
  chunks_inv : inv s;
  chunk_once n n' k k' x : chunk_at s n k x → chunk_at s n' k' x → n = n';
  chunk_below x : mapped s x → x < b;
  chunk_key n k x : chunk_at s n k x → ∃ l, k = key bits (height s) l;
}.

Lemma read_chunk s v k x : inv s → length k = height s → read s v k = Some x → ∃ n, chunk_at s n k x.
Proof.
  intros I Hk. unfold read. destruct (claims s !! View v) as [c|] eqn:Hv; simpl; [|done].
  destruct (descend (nodes s) (root c) k) as [n|] eqn:Hn; simpl; [|done].
  intros (nd & Hnd & ->)%fmap_Some. exists n. split; [done|]. exists nd. split_and!; [done| |done].
  destruct (inv_view I Hv) as (_ & _ & _ & rd & Hrd & Hroot & _).
  destruct (descend_place (inv_tidy I) _ _ _ _ _ Hn Hrd Hnd) as [-> _]. by rewrite Hroot.
Qed.

(** What was born in the current epoch is the live view's. *)
Lemma live_born s n nd : inv s → nodes s !! n = Some nd → birth nd = epoch s → leaf_of s (place nd) = Some n.
Proof.
  intros I Hn Hb. destruct (inv_held I (n := n)) as (j & c & Hj & [p Hp] & _); [by exists nd|].
  destruct (descend_root _ _ _ _ Hp) as [rd Hrd].
  destruct (descend_place (inv_tidy I) _ _ _ _ _ Hp Hrd Hn) as [Hplace Hle]. destruct j as [v|t].
  - destruct (inv_view I Hj) as ([_ Hv] & _ & _ & rd' & Hrd' & Hroot & Hbirth). simplify_eq.
    assert (v = epoch s) as -> by lia. unfold leaf_of. rewrite Hj. simpl. by rewrite Hplace, Hroot.
  - destruct (inv_dying I Hj) as (_ & _ & _ & Hlt). specialize (Hlt _ Hrd). lia.
Qed.

Lemma leaf_of_node s k n : leaf_of s k = Some n → is_Some (nodes s !! n).
Proof. unfold leaf_of. destruct (claims s !! _); simpl; [|done]. apply descend_exists. Qed.

Lemma leaf_of_read s k : read s (epoch s) k = (n ← leaf_of s k; data <$> nodes s !! n).
Proof. unfold read, leaf_of. by destruct (claims s !! View (epoch s)). Qed.

Section update.
Context {s s' : state} {k : path} {x : option nat}.
Context (I : inv s) (Hk : length k = height s) (Hu : update k x s = Some s').

Lemma update_same : height s' = height s ∧ epoch s' = epoch s.
Proof. destruct (update_spec _ _ _ _ I Hk Hu) as (c & r & dr & U). by rewrite (upd_state _ _ _ _ _ _ _ U).
  Qed.

Lemma update_read : (n ← leaf_of s' k; data <$> nodes s' !! n) = x.
Proof. destruct update_same as [_ He]. rewrite <- leaf_of_read, He.
  destruct (update_spec _ _ _ _ I Hk Hu) as (c & r & dr & U).
  rewrite (read_updated I U) by done. by rewrite decide_True. Qed.

(** A chunk is as it was, or it is the one that was put. *)
Lemma update_chunk n nd : nodes s' !! n = Some nd → length (place nd) = height s →
  nodes s !! n = Some nd ∨ place nd = k ∧ leaf_of s' k = Some n ∧ x = Some (data nd).
Proof.
  intros Hn Hl. destruct (update_spec _ _ _ _ I Hk Hu) as (c & r & dr & U).
  destruct (put_frame _ _ _ _ _ _ _ _ _ _ _ _ (upd_put _ _ _ _ _ _ _ U) n) as [Hs|(q & Hq & _ & Hnew)].
  { left. by rewrite <- Hs. }
  right. destruct (Hnew _ Hn) as [Hb Hp]. simpl in Hp. assert (q = k) as ->.
  { destruct Hq as [[|? l] ->]; [by rewrite app_nil_r|]. rewrite app_length in Hk. rewrite Hp in Hl.
    simpl in Hk. lia. }
  pose proof (live_born s' n nd (inv_update _ _ _ _ I Hk Hu) Hn) as Hleaf. rewrite Hp in Hleaf.
  split; [done|]. assert (leaf_of s' k = Some n) as E by (apply Hleaf; rewrite Hb; symmetry;
    apply update_same).
  split; [done|]. rewrite <- update_read, E. simpl. by rewrite Hn.
Qed.

(** What it no longer has was the live view's own. *)
Lemma update_lost n nd : nodes s !! n = Some nd → length (place nd) = height s →
  nodes s' !! n = Some nd ∨ place nd = k ∧ leaf_of s k = Some n ∧ owned (pred (epoch s)) (nodes s) (Some n)
    = true.
Proof.
  intros Hn Hl. destruct (update_spec _ _ _ _ I Hk Hu) as (c & r & dr & U).
  destruct (put_frame _ _ _ _ _ _ _ _ _ _ _ _ (upd_put _ _ _ _ _ _ _ U) n) as [Hs|(q & Hq & Hold & _)].
  { left. by rewrite Hs. }
  right. destruct Hold as [->|(nd' & Hn' & Hb & Hp)]; [apply (tidy_node (inv_tidy I)) in Hn; lia|].
  simpl in Hp. assert (nd' = nd) as -> by congruence. assert (place nd = k) as Hpk.
  { rewrite Hp. destruct Hq as [[|? l] ->]; [by rewrite app_nil_r|]. rewrite app_length in Hk.
    rewrite Hp in Hl. simpl in Hk. lia. }
  split; [done|]. rewrite <- Hpk. split; [by apply live_born|]. unfold owned. simpl. rewrite Hn.
  apply Nat.ltb_lt. pose proof (inv_epoch I). lia.
Qed.

(** A chunk that is the live view's own is changed in place, or goes. *)
Lemma update_owned n nd : leaf_of s k = Some n → owned (pred (epoch s)) (nodes s) (Some n) = true →
  nodes s !! n = Some nd → ∀ nd', nodes s' !! n = Some nd' → x = Some (data nd').
Proof.
  intros Hleaf Hown Hn nd' Hn'. destruct (update_spec _ _ _ _ I Hk Hu) as (c & r & dr & U).
  pose proof (upd_put _ _ _ _ _ _ _ U) as P. pose proof (upd_live _ _ _ _ _ _ _ U) as Hc.
  unfold leaf_of in Hleaf. rewrite Hc in Hleaf. simpl in Hleaf.
  pose proof update_read as Hx. destruct update_same as [_ He]. unfold leaf_of in Hx.
  rewrite He, (updated_live U) in Hx. simpl in Hx.
  assert (leaf_of s' (place nd') = Some n ∧ place nd' = k) as [Hleaf' Hpk].
  { assert (birth nd = epoch s ∧ place nd = k) as [Hb Hp].
    { unfold owned in Hown. simpl in Hown. rewrite Hn in Hown. apply Nat.ltb_lt in Hown.
      destruct (tidy_node (inv_tidy I) Hn) as [_ ?]. split; [lia|].
      destruct (inv_view I Hc) as (_ & _ & _ & rd & Hrd & Hroot & _).
      destruct (descend_place (inv_tidy I) _ _ _ _ _ Hleaf Hrd Hn) as [-> _]. by rewrite Hroot. }
    assert (birth nd' = epoch s' ∧ place nd' = k) as [Hb' Hp'].
    { rewrite He. destruct (put_frame _ _ _ _ _ _ _ _ _ _ _ _ P n) as [Hs|(q & Hq & Hold & Hnew)].
      - rewrite Hs in Hn'. by simplify_eq.
      - destruct (Hnew _ Hn') as [-> ->]. split; [done|].
        destruct Hold as [->|(nd0 & Hn0 & _ & Hp0)]; [apply (tidy_node (inv_tidy I)) in Hn; lia|].
        simpl in Hp0 |- *. by simplify_eq. }
    split; [|done]. apply live_born; [exact (inv_update _ _ _ _ I Hk Hu)|done|done]. }
  unfold leaf_of in Hleaf'. rewrite He, (updated_live U), Hpk in Hleaf'. simpl in Hleaf'.
  rewrite Hleaf' in Hx. simpl in Hx. by rewrite Hn' in Hx.
Qed.
End update.

(** ** Actions *)

(** An action that a record may ask for, when [b] is the next MBA. *)
Definition proper (s : state) (b : nat) (a : action) : Prop :=
  match a with
  | Write k x => x = b ∧ ∃ l, k = key bits (height s) l
  | Unmap k => ∃ l, k = key bits (height s) l
  | Snapshot | Checkpoint => True
  | Delete v | Revert v => v ≠ epoch s ∧ is_Some (claims s !! View v)
  | _ => False
  end.

Definition takes_mba (a : action) : nat := match a with Write _ _ => 1 | _ => 0 end.

Fixpoint mbas_taken (l : list action) : nat :=
  match l with [] => 0 | a :: l => takes_mba a + mbas_taken l end.

(** What was born in an epoch that has ended is never changed, only freed;
and no number is given out twice. *)
Definition spares_old (s s' : state) : Prop :=
  next s ≤ next s' ∧ epoch s ≤ epoch s' ∧ ∀ n nd', n < next s → nodes s' !! n = Some nd' →
    ∃ nd, nodes s !! n = Some nd ∧ (birth nd < epoch s → nd' = nd).

Lemma spares_refl s : spares_old s s.
Proof. split_and!; [done|done|]. intros n nd _ Hn. by exists nd. Qed.

Lemma spares_trans s s1 s2 : spares_old s s1 → spares_old s1 s2 → spares_old s s2.
Proof.
  intros (Hn1 & He1 & H1) (Hn2 & He2 & H2). split_and!; [lia|lia|]. intros n nd2 Hn Hnd2.
  destruct (H2 n nd2) as (nd1 & Hnd1 & E2); [lia|done|]. destruct (H1 n nd1 Hn Hnd1) as (nd & Hnd & E1).
  exists nd. split; [done|]. intros Hb. pose proof (E1 Hb) as ->. apply E2. lia.
Qed.

(** What one action, or several, do to trees that are [sound_chunks]. *)
Record acted (s : state) (b : nat) (l : list action) (s' : state) (b' : nat) (xs : list nat) : Prop := Acted {
  acted_chunks : sound_chunks s' b';
  acted_height : height s' = height s;
  acted_stands d : stands_for s d → stands_for s' (foldl (λ d a, disk_apply a d) d l);
  acted_dropped x : x ∈ xs → ¬ mapped s' x ∧ x < b';
  acted_kept x : mapped s x ∨ b ≤ x < b' → mapped s' x ∨ x ∈ xs;
  acted_new x : mapped s' x → mapped s x ∨ b ≤ x < b';
  acted_spares : spares_old s s';
}.

Lemma mapped_nodes s s' x : nodes s' = nodes s → height s' = height s → mapped s' x ↔ mapped s x.
Proof. intros Hn Hh. unfold mapped, chunk_at. by rewrite Hn, Hh. Qed.

(** Actions that leave the nodes alone. *)
Lemma acted_same s b a s' : sound_chunks s b → apply a s = Some s' → nodes s' = nodes s →
  height s' = height s → epoch s ≤ epoch s' → acted s b [a] s' b [].
Proof.
  intros [I Honce Hbelow Hkey] Ha Hn Hh He. split; [|done|..].
  - split; [by eapply inv_step|..].
    + intros n n' k k' x. unfold chunk_at. rewrite Hn, Hh. apply Honce.
    + intros x. rewrite (mapped_nodes s) by done. apply Hbelow.
    + intros n k x. unfold chunk_at. rewrite Hn, Hh. apply Hkey.
  - intros d Hd. simpl. by eapply stands_step.
  - by intros x ?%elem_of_nil.
  - intros x [Hx|?]; [left; by rewrite (mapped_nodes s)|lia].
  - intros x. rewrite (mapped_nodes s) by done. by left.
  - destruct (next_step _ _ _ I Ha) as [? _]. split_and!;
    [done|done|]. rewrite Hn. intros n nd ??. by exists nd.
Qed.

Lemma update_acted s b k x a s' : sound_chunks s b → (∃ l, k = key bits (height s) l) →
  a = (match x with Some y => Write k y | None => Unmap k end) → (∀ y, x = Some y → y = b) →
  apply a s = Some s' → update k x s = Some s' →
  acted s b [a] s' (b + takes_mba a) (overwritten s a).
Proof.
  intros Hs [l Hl] Ha Hx Happly Hu. pose proof Hs as [I Honce Hbelow Hkey].
  assert (length k = height s) as Hk by (rewrite Hl; apply key_length).
  destruct (update_same I Hk Hu) as [Hh He].
  assert (overwritten s a = if owned (pred (epoch s)) (nodes s) (leaf_of s k)
      then option_list (n ← leaf_of s k; data <$> nodes s !! n) else []) as Hover by (subst a; by destruct x).
  assert (∀ n k' y, chunk_at s' n k' y → chunk_at s n k' y ∨
    k' = k ∧ leaf_of s' k = Some n ∧ x = Some y ∧ y = b ∧ takes_mba a = 1) as Hnew.
  { intros n k' y (Hlen & nd & Hn & <- & <-). rewrite Hh in Hlen.
    destruct (update_chunk I Hk Hu n nd Hn Hlen) as [Hold|(Hp & Hleaf & Hy)]; [left; split; eauto|right].
    split_and!; [done..|by apply Hx|]. by rewrite Ha, Hy. }
  assert (∀ y, y ∈ overwritten s a → ∃ n nd, nodes s !! n = Some nd ∧ data nd = y ∧
    leaf_of s k = Some n ∧ owned (pred (epoch s)) (nodes s) (Some n) = true ∧ chunk_at s n k y) as Hdrop.
  { intros y. rewrite Hover. destruct (leaf_of s k) as [n|] eqn:Hleaf; [|by intros ?%elem_of_nil].
    destruct (owned _ _ _) eqn:Hown; [|by intros ?%elem_of_nil]. simpl.
    destruct (nodes s !! n) as [nd|] eqn:Hn; simpl; [|by intros ?%elem_of_nil].
    intros ->%elem_of_list_singleton. exists n, nd. split_and!; [done..|]. split; [done|].
    exists nd. split_and!; [done| |done]. unfold leaf_of in Hleaf.
    destruct (claims s !! View (epoch s)) as [c|] eqn:Hc; [|done]. simpl in Hleaf.
    destruct (inv_view I Hc) as (_ & _ & _ & rd & Hrd & Hroot & _).
    destruct (descend_place (inv_tidy I) _ _ _ _ _ Hleaf Hrd Hn) as [-> _]. by rewrite Hroot. }
  split; [split|..].
  - exact (inv_update _ _ _ _ I Hk Hu).
  - intros n n' k1 k2 y H1 H2.
    destruct (Hnew _ _ _ H1) as [H1'|(_ & Hn & _ & Hb & _)], (Hnew _ _ _ H2) as [H2'|(_ & Hn' & _ & Hb' & _)].
    + by eapply Honce.
    + assert (y < b); [apply Hbelow; by eexists _, _|lia].
    + assert (y < b); [apply Hbelow; by eexists _, _|lia].
    + congruence.
  - intros y (n & k' & Hy). destruct (Hnew _ _ _ Hy) as [Hy'|(_ & _ & _ & -> & ->)]; [|lia].
    assert (y < b) by (apply Hbelow; by eexists _, _). lia.
  - rewrite Hh. intros n k' y Hy. destruct (Hnew _ _ _ Hy) as [Hy'|(-> & _)]; [by eapply Hkey|by exists l].
  - done.
  - intros d Hd. simpl. by eapply stands_step.
  - intros y Hy. destruct (Hdrop _ Hy) as (n & nd & Hn & Hdata & Hleaf & Hown & Hch).
    assert (y < b) as Hlt by (apply Hbelow; by exists n, k). split; [|lia]. intros (n' & k' & Hch').
    destruct (Hnew _ _ _ Hch') as [Hold|(_ & _ & _ & -> & _)]; [|lia].
    assert (n' = n) as -> by (by eapply Honce). destruct Hch' as (_ & nd' & Hn' & _ & Hd').
    pose proof (Hx _ (update_owned I Hk Hu n nd Hleaf Hown Hn nd' Hn')). lia.
  - intros y [(n & k' & Hlen & nd & Hn & <- & <-)|Hy].
    + destruct (update_lost I Hk Hu n nd Hn Hlen) as [Hn'|(Hp & Hleaf & Hown)].
      * left. exists n, (place nd). split; [by rewrite Hh|]. by exists nd.
      * right. rewrite Hover, Hleaf, Hown. simpl. rewrite Hn. by apply elem_of_list_singleton.
    + left. destruct x as [y'|]; [|subst a; simpl in Hy; lia]. pose proof (Hx y' eq_refl) as ->.
      assert (y = b) as -> by (subst a; simpl in Hy; lia). pose proof (update_read I Hk Hu) as Hread.
      rewrite <- leaf_of_read in Hread. apply read_chunk in Hread as [n Hn];
        [by exists n, k|exact (inv_update _ _ _ _ I Hk Hu)|by rewrite Hh].
  - intros y (n & k' & Hy). destruct (Hnew _ _ _ Hy) as [Hy'|(_ & _ & _ & -> & ->)]; [left; by eexists _, _|].
    right. lia.
  - destruct (next_step _ _ _ I Happly) as [? _]. split_and!; [done|by rewrite He|]. intros n nd' Hn Hn'.
    destruct (update_spec _ _ _ _ I Hk Hu) as (c & r & dr & U).
    destruct (put_frame _ _ _ _ _ _ _ _ _ _ _ _ (upd_put _ _ _ _ _ _ _ U) n) as [Es|(q & _ & Hold & _)].
    + exists nd'. by rewrite <-Es.
    + destruct Hold as [->|(nd & Hnd & Hb & _)]; [lia|]. exists nd. split; [done|]. lia.
Qed.

Lemma update_some s k x : inv s → is_Some (update k x s).
Proof. intros I. unfold update, update_since. destruct (inv_live I) as [c ->]. simpl.
  destruct (put _ _ _ _ _ _ _ _) as [[h o] dr]. eauto. Qed.

Lemma act_acted s b a : sound_chunks s b → proper s b a →
  acted s b [a] (act a s) (b + takes_mba a) (overwritten s a).
Proof.
  intros Hs Ha. pose proof (chunks_inv _ _ Hs) as I. unfold act.
  destruct a as [k x|k| |v|v| |t n|t ps]; simpl in Ha; try done.
  - destruct Ha as [-> [l Hl]]. assert (length k = height s) as Hk by (rewrite Hl; apply key_length).
    destruct (update_some s k (Some b) I) as [s' Hu].
    assert (apply (Write k b) s = Some s') as Happly by (simpl; by rewrite Hk, Nat.eqb_refl).
    rewrite Happly. eapply (update_acted s b k (Some b)); [done|by exists l|done|congruence|done|done].
  - destruct Ha as [l Hl]. assert (length k = height s) as Hk by (rewrite Hl; apply key_length).
    destruct (read s (epoch s) k) as [y|] eqn:Hread.
    + destruct (update_some s k None I) as [s' Hu].
      assert (apply (Unmap k) s = Some s') as Happly by (simpl; by rewrite Hk, Nat.eqb_refl, Hread).
      rewrite Happly. eapply (update_acted s b k None); [done|by exists l|done|done|done|done].
    + assert (apply (Unmap k) s = Some s) as Happly by (simpl; by rewrite Hk, Nat.eqb_refl, Hread).
      rewrite Happly. simpl. rewrite Nat.add_0_r. rewrite leaf_of_read in Hread.
      destruct (leaf_of s k) as [n|] eqn:Hleaf; [|by apply acted_same].
      destruct (leaf_of_node _ _ _ Hleaf) as [nd Hn]. simpl in Hread. by rewrite Hn in Hread.
  - destruct (inv_live I) as [l Hl]. simpl. rewrite Hl, Nat.add_0_r. simpl.
    apply acted_same; [done| |done|done|simpl; lia]. simpl. by rewrite Hl.
  - destruct Ha as [Hv [c Hc]]. simpl. rewrite (proj2 (Nat.eqb_neq _ _) Hv), Hc, Nat.add_0_r. simpl.
    apply acted_same; [done| |done|done|simpl; lia]. simpl. by rewrite (proj2 (Nat.eqb_neq _ _) Hv), Hc.
  - destruct Ha as [Hv [c Hc]], (inv_live I) as [l Hl]. simpl.
    rewrite (proj2 (Nat.eqb_neq _ _) Hv), Hc, Nat.add_0_r. simpl. rewrite Hl. simpl.
    apply acted_same; [done| |done|done|simpl;
      lia]. simpl. rewrite (proj2 (Nat.eqb_neq _ _) Hv), Hc. simpl. by rewrite Hl.
  - destruct (inv_live I) as [l Hl]. simpl. rewrite Hl, Nat.add_0_r. simpl.
    apply acted_same; [done| |done|done|simpl; lia]. simpl. by rewrite Hl.
Qed.

Fixpoint all_proper (s : state) (b : nat) (l : list action) : Prop :=
  match l with [] => True | a :: l => proper s b a ∧ all_proper (act a s) (b + takes_mba a) l end.

Lemma acts_acted l : ∀ s b, sound_chunks s b → all_proper s b l →
  acted s b l (acts s l).1 (b + mbas_taken l) (acts s l).2.
Proof.
  induction l as [|a l IH]; intros s b Hs Hl; simpl.
  - rewrite Nat.add_0_r. split; [done|done|by intros d| | | |apply spares_refl].
    + by intros x ?%elem_of_nil.
    + intros x [?|?]; [by left|lia].
    + by left.
  - destruct Hl as [Ha Hl]. pose proof (act_acted _ _ _ Hs Ha) as [Hs1 Hh1 Hd1 Hx1 Hk1 Hn1 Ho1].
    specialize (IH _ _ Hs1 Hl). destruct (acts (act a s) l) as [s' xs]. simpl in *.
    destruct IH as [Hs2 Hh2 Hd2 Hx2 Hk2 Hn2 Ho2].
    rewrite Nat.add_assoc. split; [done|congruence|..].
    + intros d Hd. by apply Hd2, Hd1.
    + intros x [Hx|Hx]%elem_of_app; [|by apply Hx2]. destruct (Hx1 _ Hx) as [Hno Hlt].
      split; [|lia]. intros [?|?]%Hn2; [done|lia].
    + intros x Hx. rewrite elem_of_app.
      assert (mapped (act a s) x ∨ x ∈ overwritten s a ∨
        b + takes_mba a ≤ x < b + takes_mba a + mbas_taken l) as [Hx'|[?|Hx']].
      { destruct Hx as [Hx|Hx]; [destruct (Hk1 x (or_introl Hx)); auto|].
        destruct (decide (x < b + takes_mba a)) as [Hlt|]; [|right; right; lia].
        destruct (Hk1 x (or_intror (conj (proj1 Hx) Hlt))); auto. }
      * destruct (Hk2 x (or_introl Hx')); auto.
      * auto.
      * destruct (Hk2 x (or_intror Hx')); auto.
    + intros x [Hx|?]%Hn2; [|right; lia]. destruct (Hn1 _ Hx); [by left|right; lia].
    + by eapply spares_trans.
Qed.

(** A step of a walk. *)
Lemma reclaim_acted s b t n s' : sound_chunks s b → reclaim t n s = Some s' →
  acted s b [Reclaim t n] s' b (freed_mba s s' n).
Proof.
  intros [I Honce Hbelow Hkey] Ha. destruct (reclaim_same _ _ _ _ I Ha) as ([= Hh Hnx He] & _ & Hnodes).
  assert (∀ n' k x, chunk_at s' n' k x → chunk_at s n' k x) as Hold.
  { intros n' k x (Hk & nd & Hn & ?). split; [by rewrite <- Hh|]. exists nd. split; [|done].
    destruct Hnodes as [E|E]; rewrite E in Hn; [done|]. by apply lookup_delete_Some in Hn as [_ ?]. }
  assert (∀ n' k x, chunk_at s n' k x → chunk_at s' n' k x ∨ n' = n ∧ x ∈ freed_mba s s' n) as Hkept.
  { intros n' k x (Hk & nd & Hn & <- & <-). destruct (nodes s' !! n') as [nd'|] eqn:Hn'.
    - left. split; [by rewrite Hh|]. exists nd. destruct Hnodes as [E|E]; rewrite E in *; [done|].
      by apply lookup_delete_Some in Hn' as [? ?]; rewrite lookup_delete_ne.
    - right. destruct Hnodes as [E|E]; rewrite E in Hn'; [congruence|].
      apply lookup_delete_None in Hn' as [->|?]; [|congruence]. split; [done|]. unfold freed_mba.
      rewrite Hn, E, lookup_delete, Hk, Nat.eqb_refl. by apply elem_of_list_singleton. }
  assert (∀ x, x ∈ freed_mba s s' n → ∃ k, chunk_at s n k x ∧ nodes s' !! n = None) as Hfreed.
  { intros x. unfold freed_mba. destruct (nodes s !! n) as [nd|] eqn:Hn; [|by intros ?%elem_of_nil].
    destruct (nodes s' !! n); [by intros ?%elem_of_nil|].
    destruct (Nat.eqb_spec (length (place nd)) (height s)); [|by intros ?%elem_of_nil].
    intros ->%elem_of_list_singleton. exists (place nd). split; [|done]. split; [done|]. by exists nd. }
  split; [split|..].
  - by eapply inv_reclaim.
  - intros ? ? ? ? ? ?%Hold ?%Hold. by eapply Honce.
  - intros x (n' & k & Hx%Hold). apply Hbelow. by exists n', k.
  - rewrite Hh. intros ? ? ? ?%Hold. by eapply Hkey.
  - done.
  - intros d Hd. simpl. by eapply (stands_step _ _ (Reclaim t n)).
  - intros x (k & Hx & Hgone)%Hfreed. split; [|apply Hbelow; by exists n, k].
    intros (n' & k' & Hx'). assert (n' = n) as -> by (eapply Honce; [by apply Hold|done]).
    destruct Hx' as (_ & nd & ? & _). congruence.
  - intros x [(n' & k & Hx)|?]; [|lia]. destruct (Hkept _ _ _ Hx) as [?|[_ ?]]; [left;
    by eexists _, _|by right].
  - intros x (n' & k & Hx%Hold). left. by eexists _, _.
  - split_and!; [lia|lia|]. intros n' nd _ Hn'. exists nd. split; [|done].
    destruct Hnodes as [E|E]; rewrite E in Hn'; [done|]. by apply lookup_delete_Some in Hn' as [_ ?].
Qed.

Lemma create_chunks levels : sound_chunks (create levels) 0.
Proof.
  assert (∀ n k x, ¬ chunk_at (create levels) n k x) as Hno.
  { intros n k x (Hk & nd & Hn & Hp & _). cbn in Hn. apply lookup_singleton_Some in Hn as [_ <-]. by subst
    k. }
  split; [apply inv_create|..].
  - intros ? ? ? ? ? []%Hno.
  - intros x (n & k & []%Hno).
  - intros ? ? ? []%Hno.
Qed.
End chunks.
