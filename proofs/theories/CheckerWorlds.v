(** What the checker's worlds stand for, and that each event takes them exactly where it takes the contract.

A world [w] and a valuation [σ] of its choices stand for contract states. [over σ w s]: what the state [s]
allows, [w] allows; [under σ w s]: the other way about; [beside up] is one or the other.
Every step of a state over which [w] lies is followed by
one of [w]'s successors, and every successor of [w] by a step of any state under which [w] lies; choices are
never taken back, so a valuation of the last world's choices suits every world that led to it. *)
From stdpp Require Import pmap.
From LogDisk Require Import VirtualDisk VirtualDiskProperties Checker.

Section CheckerWorlds.
Context {V : Type} `{EqDecision V, Value V}.
Implicit Types (σ : nat → V) (w : @world V) (s : state V) (x : @shape V) (y : @leftover V) (d : disk V)
  (i : image V) (m : Pmap (@cell V)) (data : list V).

(** ** What a world stands for *)

Definition value σ (c : cell) : V := match c with Known v => v | Open i => σ i end.
Definition reads σ m (l : nat) : V := value σ (cell_at m (key l)).

Definition suits σ (ch : Pmap (@choice V)) : Prop :=
  ∀ j b vs, ch !! key j = Some (Choice b vs) → σ j = value σ b ∨ σ j ∈ vs.

Definition like_snaps σ (xs : list (name * Pmap (@cell V))) (sn : gmap name (view V)) : Prop :=
  ∀ n, option_Forall2 (λ m (v : view V), ∀ l, reads σ m l = v l) (find n xs) (sn !! n).
Definition like σ x d : Prop :=
  (∀ l, reads σ (live_blocks x) l = live d l) ∧ like_snaps σ (snap_blocks x) (snaps d).

Definition may σ y (l : nat) : list V := reads σ (live_blocks (kept y)) l :: default [] (since y !! key l).
Definition covers (up : bool) σ y i : Prop :=
  (∀ l v, if up then v ∈ may_hold i l → v ∈ may σ y l else v ∈ may σ y l → v ∈ may_hold i l) ∧
  like_snaps σ (snap_blocks (kept y)) (with_snaps i).

Definition agree σ w s : Prop := size s = blocks_count w ∧ power s = powered w ∧ like σ (seen w) (now s).
Definition lies (up : bool) σ (ys : list leftover) (is : list (image V)) : Prop :=
  if up then ∀ i, i ∈ is → ∃ y, y ∈ ys ∧ covers up σ y i else ∀ y, y ∈ ys → ∃ i, i ∈ is ∧ covers up σ y i.
Definition beside (up : bool) σ w s : Prop := agree σ w s ∧ lies up σ (leftovers w) (survivors s).
Notation over := (beside true). Notation under := (beside false).

(** ** Choices are made in order *)

Definition below (n : nat) (c : @cell V) : Prop := match c with Known _ => True | Open j => j < n end.
Definition choices_below (n : nat) (ch : Pmap (@choice V)) : Prop :=
  (∀ j, j < n ↔ is_Some (ch !! key j)) ∧ (∀ j b vs, ch !! key j = Some (Choice b vs) → below j b).
Definition blocks_below (n : nat) m : Prop := ∀ k, below n (cell_at m k).
Definition shape_below (n : nat) x : Prop :=
  blocks_below n (live_blocks x) ∧ ∀ a m, find a (snap_blocks x) = Some m → blocks_below n m.
Definition wf w : Prop :=
  choices_below (next w) (choices w) ∧ shape_below (next w) (seen w) ∧
  ∀ y, y ∈ leftovers w → shape_below (next w) (kept y).

(** ** Maps *)

Lemma key_inj l l' : key l = key l' → l = l'.
Proof. apply SuccNat2Pos.inj. Qed.
Lemma lookup_key {A} (m : Pmap A) j j' (a : A) :
  <[key j := a]> m !! key j' = if decide (j = j') then Some a else m !! key j'.
Proof. case_decide; subst; [apply lookup_insert|]. apply lookup_insert_ne. by intros ?%key_inj. Qed.
Lemma key_S l : Pos.succ (key l) = key (S l).
Proof. unfold key. lia. Qed.

Lemma data_at_cons lba v data l :
  data_at lba (v :: data) l = if decide (l = lba) then Some v else data_at (S lba) data l.
Proof.
  unfold data_at. repeat case_decide; subst; try lia; try done.
  - by rewrite Nat.sub_diag.
  - by replace (l - lba) with (S (l - S lba)) by lia.
Qed.
Lemma data_at_before lba l data : l < lba → data_at lba data l = None.
Proof. intros. unfold data_at. case_decide; [lia|done]. Qed.

Lemma cell_at_put_one k v m k' :
  cell_at (put_one k v m) k' = if decide (k' = k) then Known v else cell_at m k'.
Proof.
  unfold put_one, cell_at. destruct (decide (v = zero)) as [->|]; case_decide; subst.
  - by rewrite lookup_delete.
  - by rewrite lookup_delete_ne.
  - by rewrite lookup_insert.
  - by rewrite lookup_insert_ne.
Qed.

Lemma cell_at_put lba data m l :
  cell_at (put (key lba) data m) (key l) =
  match data_at lba data l with Some v => Known v | None => cell_at m (key l) end.
Proof.
  revert lba m. induction data as [|v data IH]; intros lba m; cbn [put].
  - unfold data_at. case_decide; by rewrite ?lookup_nil.
  - rewrite key_S, IH, data_at_cons. case_decide as Hl; subst.
    + rewrite data_at_before by lia. rewrite cell_at_put_one. by case_decide.
    + destruct (data_at (S lba) data l); [done|]. rewrite cell_at_put_one.
      case_decide as Heq; [by apply key_inj in Heq|done].
Qed.

Lemma since_put lba data (m : Pmap (list V)) l :
  default [] (put_since (key lba) data m !! key l) =
  match data_at lba data l with Some v => [v] | None => [] end ++ default [] (m !! key l).
Proof.
  revert lba m. induction data as [|v data IH]; intros lba m; cbn [put_since].
  - unfold data_at. case_decide; by rewrite ?lookup_nil.
  - rewrite key_S, IH, data_at_cons. case_decide as Hl; subst.
    + rewrite data_at_before by lia. by rewrite lookup_partial_alter.
    + rewrite lookup_partial_alter_ne; [done|]. intros ?%key_inj. done.
Qed.

Lemma since_drop lba data (m : Pmap (list V)) l :
  drop_since (key lba) data m !! key l = match data_at lba data l with Some _ => None
    | None => m !! key l end.
Proof.
  revert lba m. induction data as [|v data IH]; intros lba m; cbn [drop_since].
  - unfold data_at. case_decide; by rewrite ?lookup_nil.
  - rewrite key_S, IH, data_at_cons. case_decide as Hl; subst.
    + rewrite data_at_before by lia. by rewrite lookup_delete.
    + destruct (data_at (S lba) data l); [done|]. rewrite lookup_delete_ne; [done|]. intros ?%key_inj. done.
Qed.

Lemma find_drop_name {A} n n' (l : list (name * A)) :
  find n (drop_name n' l) = if decide (n = n') then None else find n l.
Proof. induction l as [|[a b] l IH]; cbn; [by case_decide|].
  repeat (case_decide; subst; cbn); try done; rewrite ?IH; case_decide; done. Qed.

(** ** Disks alike *)

Lemma like_written σ x d lba data :
  like σ x d → like σ (Shape (put (key lba) data (live_blocks x)) (snap_blocks x)) (written d lba data).
Proof. intros [Hl Hs]. split; [|done]. intros l. cbn. unfold reads. rewrite cell_at_put, <-Hl.
  by destruct (data_at lba data l). Qed.

Lemma like_snapshotted σ x d n :
  like σ x d → like σ (Shape (live_blocks x) ((n, live_blocks x) :: snap_blocks x)) (snapshotted d n).
Proof.
  intros [Hl Hs]. split; [done|]. intros a. cbn. case_decide; subst.
  - rewrite lookup_insert. by constructor.
  - rewrite lookup_insert_ne by done. apply Hs.
Qed.

Lemma like_deleted σ x d n :
  like σ x d → like σ (Shape (live_blocks x) (drop_name n (snap_blocks x))) (deleted d n).
Proof.
  intros [Hl Hs]. split; [done|]. intros a. cbn. rewrite find_drop_name. case_decide; subst.
  - rewrite lookup_delete. constructor.
  - rewrite lookup_delete_ne by done. apply Hs.
Qed.

Lemma like_reverted σ x d n : like σ x d →
  like σ (Shape (default (live_blocks x) (find n (snap_blocks x))) (snap_blocks x)) (reverted d n).
Proof. intros [Hl Hs]. split; [|done]. intros l. cbn. destruct (Hs n); cbn; auto. Qed.

Lemma exists_snap_like σ w s n : like σ (seen w) (now s) →
  exists_snap w n = bool_decide (is_Some (snaps (now s) !! n)).
Proof.
  intros [_ Hs]. unfold exists_snap. destruct (Hs n); symmetry.
  - apply bool_decide_eq_true_2. eauto.
  - apply bool_decide_eq_false_2. intros [? ?]; done.
Qed.

Lemma range_faults_agree σ w s lba count : agree σ w s → range_faults w lba count = out_of_range s lba count.
Proof.
  intros (Hz & _ & _). unfold range_faults, out_of_range. rewrite Hz. case_bool_decide; by case_decide.
Qed.
Lemma missing_faults_agree σ w s n : agree σ w s → missing_faults w n = missing (now s) n.
Proof. intros (_ & _ & Hl). unfold missing_faults, missing. rewrite (exists_snap_like _ _ _ _ Hl).
  destruct (valid_name n); [|done]. case_bool_decide; by case_decide. Qed.
Lemma taken_faults_agree σ w s n : agree σ w s → taken_faults w n = taken (now s) n.
Proof. intros (_ & _ & Hl). unfold taken_faults, taken. rewrite (exists_snap_like _ _ _ _ Hl).
  destruct (valid_name n); [|done]. case_bool_decide; by case_decide. Qed.
Lemma view_faults_agree σ w s from : agree σ w s → view_faults w from = missing_view (now s) from.
Proof. destruct from; [done|]. apply missing_faults_agree. Qed.

(** ** Survivors *)

Lemma covers_exactly up σ x d : like σ x d → covers up σ (Leftover x ∅) (exactly d).
Proof. intros [Hl Hs]. split; [|done]. intros l v. cbn. unfold may. cbn. rewrite Hl, lookup_empty.
  by destruct up. Qed.

Lemma lies_nil up σ : lies up σ [] [].
Proof. by destruct up; intros ? ?%elem_of_nil. Qed.
Lemma lies_cons up σ y i ys is : covers up σ y i → lies up σ ys is → lies up σ (y :: ys) (i :: is).
Proof.
  intros Hy Hys. destruct up; intros z [->|Hz]%elem_of_cons; [exists y|destruct (Hys _ Hz) as (u & ? & ?);
    exists u
    |exists i|destruct (Hys _ Hz) as (u & ? & ?); exists u]; (split; [by constructor|done]).
Qed.
Lemma lies_one up σ y i : covers up σ y i → lies up σ [y] [i].
Proof. intros. apply lies_cons; [done|apply lies_nil]. Qed.
Lemma lies_app up σ ys is is' : lies up σ ys is → (up = true → lies up σ ys is') → lies up σ ys (is ++ is').
Proof. intros H1 H2. destruct up; [intros i [?|?]%elem_of_app; [by apply H1|by apply H2]|].
  intros y (i & ? & ?)%H1. exists i. split; [apply elem_of_app; by left|done]. Qed.
Lemma over_more σ y ys is : lies true σ ys is → lies true σ (y :: ys) is.
Proof. intros Hys i (z & ? & ?)%Hys. exists z. split; [by right|done]. Qed.

(** What an effect must be over, or under, of. *)
Definition effect_beside up σ (f : effect) s d (left : list (image V)) : Prop :=
  like σ (makes f) d ∧ lies up σ (leaves f) left ∧ lies up σ (leaves_cut f) (left ++ survivors s).

Lemma since_covers up σ y i lba data d : (up = true → ∀ l, live d l ∈ may_hold i l) → covers up σ y i →
  covers up σ (Leftover (kept y) (put_since (key lba) data (since y))) (may_also_hold (written d lba data) i).
Proof.
  intros Hd [Hm Hs]. split; [|done]. intros l v. unfold may. cbn [may_hold may_also_hold kept since].
  rewrite since_put. cbn [live written]. pose proof (Hm l v) as Hv. unfold may in Hv. destruct up.
  - intros [->|[->|?]%Hv%elem_of_cons]%elem_of_cons; [|left|right; by apply elem_of_app; right].
    destruct (data_at lba data l) as [u|]; cbn [default from_option]; [right; left|]. by apply (Hm l), Hd.
  - intros [->|[Hin|?]%elem_of_app]%elem_of_cons; [right; apply Hv; left| |right; apply Hv; by right].
    destruct (data_at lba data l); [|by apply elem_of_nil in Hin]. apply elem_of_list_singleton in Hin as ->.
      left.
Qed.

Lemma since_covers_before σ y i lba data :
  covers true σ y i → covers true σ (Leftover (kept y) (put_since (key lba) data (since y))) i.
Proof. intros [Hm Hs]. split; [|done]. intros l v Hv. specialize (Hm _ _ Hv). unfold may in *.
  cbn [kept since]. rewrite since_put. apply elem_of_cons in Hm as [->|Hm]; [left|right].
  by apply elem_of_app; right. Qed.

Lemma buffering_beside up p σ w s lba data :
  beside up σ w s → (up = true → current p s ∧ power s = true) →
  effect_beside up σ (buffering p w lba data) s (written (now s) lba data)
    (buffered p s (written (now s) lba data)).
Proof.
  intros [(_ & _ & Hl) Hab] Hcur. pose proof (like_written _ _ _ lba data Hl) as Hw.
  pose proof (covers_exactly up _ _ _ Hw) as Hx. destruct p; (split; [done|]); cbn.
  - split; [by apply lies_one|by apply lies_cons].
  - split; [by apply lies_cons|]. apply (lies_app _ _ _ (_ :: _)); [by apply lies_cons|]. intros ->.
    by apply over_more.
  - assert (lies up σ ((λ y, Leftover (kept y) (put_since (key lba) data (since y))) <$> leftovers w)
              (may_also_hold (written (now s) lba data) <$> survivors s)) as Hb.
    { destruct up; intros z (u & -> & Hu)%elem_of_list_fmap; destruct (Hab u Hu) as (v & Hv & ?);
        (eexists; split; [apply elem_of_list_fmap; by exists v|]); apply since_covers; try done.
      intros _. destruct (Hcur eq_refl) as [Hc Hp]. by apply (Hc Hp). }
    split; [done|]. apply lies_app; [done|]. intros -> i Hi. destruct (Hab i Hi) as (y & Hy & ?).
    eexists. split; [apply elem_of_list_fmap; by exists y|]. by apply since_covers_before.
Qed.

Lemma force_covers up σ y i lba data :
  covers up σ y i → covers up σ (force (key lba) data y) (forced lba data i).
Proof.
  intros [Hm Hs]. split; [|done]. intros l v. specialize (Hm l v). unfold may, reads in *. cbn.
  rewrite cell_at_put, since_drop. by destruct (data_at lba data l), up.
Qed.

Lemma lies_both up σ ys ys' is is' : lies up σ ys is → lies up σ ys' is' → lies up σ (ys ++ ys') (is ++ is').
Proof.
  intros H1 H2. destruct up; intros z [Hz|Hz]%elem_of_app; [destruct (H1 z Hz)|destruct (H2 z Hz)|
    destruct (H1 z Hz)|destruct (H2 z Hz)]; setoid_rewrite elem_of_app; naive_solver.
Qed.

Lemma writing_through_beside up p told σ w s lba data :
  beside up σ w s → (up = true → current p s ∧ power s = true) →
  effect_beside up σ (writing_through p told w lba data) s (written (now s) lba data)
    (written_through p s told (written (now s) lba data) lba data).
Proof.
  intros Hb Hcur. pose proof (buffering_beside up p σ w s lba data Hb Hcur) as (Hl & Hleft & Hcut).
  destruct Hb as [_ Hab]. assert (lies up σ (force (key lba) data <$> leftovers w)
    (forced lba data <$> survivors s)) as Hf.
  { destruct up; intros z (u & -> & Hu)%elem_of_list_fmap; destruct (Hab u Hu) as (x & Hx & ?);
      (eexists; split; [apply elem_of_list_fmap; by exists x|]); by apply force_covers. }
  destruct p, told; (split; [done|]); try done; (split; [by try apply lies_both|]);
    try (by apply lies_both).
  cbn [written_through]. rewrite <-(assoc_L app). by apply lies_both.
Qed.

Lemma recording_beside up p σ w s x d :
  beside up σ w s → like σ x d → effect_beside up σ (recording p w x) s d (recorded p s d).
Proof.
  intros [_ Hab] Hx. pose proof (covers_exactly up _ _ _ Hx) as Hc.
  destruct p; (split; [done|]); cbn; (split; [first [by apply lies_one|by apply lies_cons]|]);
    try by apply lies_cons.
  apply (lies_app _ _ _ (_ :: _)); [by apply lies_cons|]. intros ->. by apply over_more.
Qed.

(** ** Answers *)

Lemma allowed_spec faults excuses c : allowed faults excuses c = true ↔ c ∈ faults ∨ faults = [] ∧
  c ∈ excuses.
Proof. unfold allowed. rewrite orb_true_iff, bool_decide_eq_true. destruct faults;
  rewrite ?bool_decide_eq_true; naive_solver. Qed.

(** What [answered] is to a state. *)
Lemma answering_spec w r faults excuses f w' : w' ∈ answering w r faults excuses f ↔ powered w = true ∧
  match r with
  | Ok => faults = [] ∧ w' = happening w (f tt)
  | Refused c => (c ∈ faults ∨ faults = [] ∧ c ∈ excuses) ∧ w' = w
  | UnknownOutcome => w' = w ∨ faults = [] ∧ w' = happening w (f tt)
  | CutShort => w' = cut_to w (match faults with [] => leaves_cut (f tt) | _ => leftovers w end)
  end.
Proof.
  unfold answering. destruct (powered w); [|set_solver]. destruct r as [|c| |]; [..|destruct faults;
    set_solver].
  - destruct faults; set_solver.
  - rewrite <-allowed_spec. destruct (allowed faults excuses c); set_solver.
  - destruct faults; set_solver.
Qed.

Lemma looking_spec w r faults f w' : w' ∈ looking w r faults f ↔ powered w = true ∧
  match r with
  | Ok => faults = [] ∧ w' ∈ f tt
  | Refused c => c ∈ faults ∧ w' = w
  | UnknownOutcome => w' = w
  | CutShort => w' = cut_to w (leftovers w)
  end.
Proof. unfold looking. destruct (powered w); [|set_solver].
  destruct r as [|c| |]; [destruct faults; set_solver| |set_solver..]. pose proof (allowed_spec faults [] c).
  destruct (allowed faults [] c); set_solver. Qed.

Lemma beside_cut up σ w s : beside up σ w s → beside up σ (cut_to w (leftovers w)) (cut s []).
Proof. by intros [(? & ? & ?) ?]. Qed.

Lemma beside_fresh up σ blocks : beside up σ (fresh_world blocks) (created blocks).
Proof.
  assert (like σ (seen (fresh_world blocks)) blank) as Hlike.
  { split; [done|]. intros n. cbn. rewrite lookup_empty. constructor. }
  split; [done|]. by apply lies_one, covers_exactly.
Qed.

(** The worlds [ws] after [w] match the states [after] that follow one which [w] is beside of; no choice is
made. *)
Definition matched (up : bool) σ w (ws : list world) (after : state V → Prop) : Prop :=
  if up then ∀ s', after s' → ∃ w', w' ∈ ws ∧ choices w' = choices w ∧ over σ w' s'
  else ∀ w', w' ∈ ws → ∃ s', after s' ∧ under σ w' s'.

Lemma answering_matched up σ w s r faults excuses f d left : beside up σ w s →
  (power s = true → faults = [] → effect_beside up σ (f tt) s d left) →
  matched up σ w (answering w r faults excuses f) (answered s r faults excuses d left).
Proof.
  intros Hb Hf. pose proof Hb as [(? & Hpw & ?) Hab].
  assert (power s = true → faults = [] → beside up σ (happening w (f tt)) (happens s d left)) as Hhap.
  { intros Hp Hfs. destruct (Hf Hp Hfs) as (? & ? & _). done. }
  assert (power s = true →
    beside up σ (cut_to w (match faults with [] => leaves_cut (f tt) | _ => leftovers w end))
    (cut s (match faults with [] => left | _ => [] end))) as Hcut.
  { intros Hp. destruct faults; split; try done. by apply Hf. }
  destruct up; [intros s' [Hp Ha]; setoid_rewrite answering_spec|intros w' [Hp Ha]%answering_spec;
    unfold answered];
    rewrite <-?Hpw, ?Hp in *; destruct r; naive_solver.
Qed.

(** ** Operations that change nothing *)

Lemma like_snaps_resolves σ y i d : covers true σ y i → resolves i d → covers true σ y (exactly d).
Proof. intros [Hm Hs] [Hl Heq]. split; cbn; [|by rewrite Heq]. intros l v ->%elem_of_list_singleton.
  apply Hm, Hl. Qed.

Lemma above_now p σ w s : over σ w s → current p s → power s = true →
  lies true σ (leftovers w) [exactly (now s)].
Proof. intros [_ Hab] Hcur Hp i ->%elem_of_list_singleton. destruct (Hcur Hp) as (_ & _ & j & Hj & Hr).
  destruct (Hab j Hj) as (y & Hy & Hc). exists y. split; [done|]. by eapply like_snaps_resolves. Qed.

(** Where nothing changes it may be that a flush did: then a crash leaves no more than before. *)
Lemma looking_matched up σ w s r faults f left : beside up σ w s →
  (up = true → lies true σ (leftovers w) left) →
  r ≠ Ok → matched up σ w (looking w r faults f) (answered s r faults [] (now s) left).
Proof.
  intros Hb Hleft Hr. pose proof Hb as [(? & Hpw & ?) Hab].
  assert (up = true → beside up σ w (happens s (now s) left)) as Hhap by (intros ->; split; [done|auto]).
  assert (beside up σ (cut_to w (leftovers w)) (cut s (match faults with [] => left | _ => [] end))) as Hcut.
  { split; [done|]. destruct faults, up; try done; [by apply lies_app; auto|].
    intros y (i & ? & ?)%Hab. exists i. split; [apply elem_of_app; by right|done]. }
  destruct up; [intros s' [Hp Ha]; setoid_rewrite looking_spec|intros w' [Hp Ha]%looking_spec;
    unfold answered];
    rewrite <-?Hpw, ?Hp in *; destruct r; rewrite ?elem_of_nil in *; naive_solver.
Qed.

(** ** Reads decide choices *)

Lemma below_mono n n' c : below n c → n ≤ n' → below n' c.
Proof. destruct c; cbn; [done|lia]. Qed.

Lemma choices_below_insert n ch j b vs vs' b' : choices_below n ch → ch !! key j = Some (Choice b vs) →
  below j b' → choices_below n (<[key j := Choice b' vs']> ch).
Proof.
  intros [Hdom Hb] Hj Hb'. split; intros j'; rewrite lookup_key; case_decide; subst; [|apply Hdom| |apply Hb].
  - rewrite Hdom, Hj. split; eauto.
  - by intros ? ? [= <- <-].
Qed.

Lemma suits_narrowed σ ch j b vs b' vs' :
  ch !! key j = Some (Choice b vs) → (σ j = value σ b' ∨ σ j ∈ vs' → σ j = value σ b ∨ σ j ∈ vs) →
  suits σ (<[key j := Choice b' vs']> ch) → suits σ ch.
Proof. intros Hj Himp Hs j0 b0 vs0 H0. specialize (Hs j0). rewrite lookup_key in Hs.
  case_decide; [|by apply Hs]. subst. rewrite Hj in H0. injection H0 as <- <-. by apply Himp, Hs. Qed.

Lemma suits_insert σ ch j b vs :
  suits σ ch → σ j = value σ b ∨ σ j ∈ vs → suits σ (<[key j := Choice b vs]> ch).
Proof. intros Hs Hj j0 b0 vs0. rewrite lookup_key. case_decide; [subst; by intros [= <- <-]|apply Hs]. Qed.

Lemma decided_below n fuel ch c v ch' :
  choices_below n ch → decided fuel ch c v = Some ch' → choices_below n ch'.
Proof.
  revert ch c. induction fuel as [|fuel IH]; intros ch [u|j] Hch; cbn; [by case_decide; intros;
    simplify_eq|done|
    by case_decide; intros; simplify_eq|].
  destruct (ch !! key j) as [[b vs]|] eqn:Hj; [|done]. case_decide.
  - intros [= <-]. by eapply choices_below_insert.
  - apply IH. destruct vs; [done|]. eapply choices_below_insert; [done..|]. by eapply Hch.
Qed.

Lemma decided_over σ n fuel ch c v : choices_below n ch → fuel ≤ n → below fuel c → suits σ ch →
  value σ c = v → ∃ ch', decided fuel ch c v = Some ch' ∧ suits σ ch'.
Proof.
  revert ch c. induction fuel as [|fuel IH]; intros ch [u|j] Hch Hn Hb Hs Hv; cbn in *;
    [rewrite decide_True by done; eauto|lia|rewrite decide_True by done; eauto|].
  assert (is_Some (ch !! key j)) as [[b vs] Hj] by (apply Hch; lia). rewrite Hj. case_decide as Hin.
  - eexists. split; [done|]. apply suits_insert; [done|]. by left.
  - destruct (Hs _ _ _ Hj) as [Heq|?]; [|by subst v]. assert (below j b) as Hbj by (by eapply Hch).
    assert (below fuel b) by (eapply below_mono; [done|lia]). apply IH; [|lia|done| |congruence].
    + destruct vs; [done|]. by eapply choices_below_insert.
    + destruct vs; [done|]. apply suits_insert; [done|by left].
Qed.

Lemma decided_under σ fuel ch c v ch' :
  decided fuel ch c v = Some ch' → suits σ ch' → suits σ ch ∧ value σ c = v.
Proof.
  revert ch c. induction fuel as [|fuel IH]; intros ch [u|j]; cbn; [by case_decide; intros; simplify_eq|done|
    by case_decide; intros; simplify_eq|].
  destruct (ch !! key j) as [[b vs]|] eqn:Hj; [|done]. case_decide as Hin.
  - intros [= <-] Hs. destruct (Hs j (Known v) []) as [Hv|?%elem_of_nil]; [by rewrite lookup_insert| |done].
    cbn in Hv. split; [|done]. eapply suits_narrowed; [done| |exact Hs]. intros _. right. by rewrite Hv.
  - intros Hd Hs. destruct (IH _ _ Hd Hs) as [Hs1 Hv]. destruct vs as [|v0 vs].
    + split; [done|]. destruct (Hs1 _ _ _ Hj) as [?|?%elem_of_nil]; [congruence|done].
    + destruct (Hs1 j b []) as [Hjb|?%elem_of_nil]; [by rewrite lookup_insert| |done].
      split; [|congruence]. eapply suits_narrowed; [done| |exact Hs1]. by left.
Qed.

Lemma all_decided_below n fuel m k data ch ch' :
  choices_below n ch → all_decided fuel m k data ch = Some ch' → choices_below n ch'.
Proof. revert k ch. induction data as [|v data IH]; cbn; intros k ch Hch Hd; [by simplify_eq|].
  destruct (decided _ _ _ _) eqn:?; [|done]. eauto using decided_below. Qed.

Lemma all_decided_over σ n m lba data ch :
  choices_below n ch → blocks_below n m → suits σ ch → data = reads σ m <$> seq lba (length data) →
  ∃ ch', all_decided n m (key lba) data ch = Some ch' ∧ suits σ ch'.
Proof. revert lba ch. induction data as [|v data IH]; cbn; intros lba ch Hch Hm Hs Hd; [eauto|].
  injection Hd as Hv Hd.
  destruct (decided_over σ n n ch (cell_at m (key lba)) v) as (ch1 & Hd1 & Hs1); [done..|].
  rewrite Hd1, key_S. apply IH; eauto using decided_below. Qed.

Lemma all_decided_under σ fuel m lba data ch ch' : all_decided fuel m (key lba) data ch = Some ch' →
  suits σ ch' → suits σ ch ∧ data = reads σ m <$> seq lba (length data).
Proof. revert lba ch. induction data as [|v data IH]; cbn; intros lba ch Hd Hs; [by simplify_eq|].
  destruct (decided _ _ _ _) eqn:Hd1; [|done]. rewrite key_S in Hd. destruct (IH _ _ Hd Hs) as [Hs1 Heq].
  destruct (decided_under σ _ _ _ _ _ Hd1 Hs1) as [Hs0 Hv]. split; [done|]. f_equal; done. Qed.

Lemma view_like σ x d from :
  like σ x d → option_Forall2 (λ m (v : view V), ∀ l, reads σ m l = v l) (blocks_of x from) (view_of d from).
Proof. intros [Hl Hs]. destruct from; cbn; [by constructor|apply Hs]. Qed.

Lemma blocks_of_below n x from m : shape_below n x → blocks_of x from = Some m → blocks_below n m.
Proof. intros [Hl Hs]. destruct from; cbn; [by intros [= <-]|apply Hs]. Qed.

(** ** Crashes open choices *)

Notation cells := (Pmap (@cell V)).

Lemma choices_below_new n ch b vs :
  choices_below n ch → below n b → choices_below (S n) (<[key n := Choice b vs]> ch).
Proof.
  intros [Hdom Hb] Hbn. split; intros j; rewrite lookup_key; case_decide; subst; [| | |apply Hb].
  - split; [eauto|lia].
  - rewrite <-Hdom. lia.
  - by intros ? ? [= <- <-].
Qed.

Lemma choices_below_fresh n ch : choices_below n ch → ch !! key n = None.
Proof. intros [Hdom _]. apply eq_None_not_Some. rewrite <-Hdom. lia. Qed.

Lemma value_ext σ σ' n c : (∀ j, j < n → σ' j = σ j) → below n c → value σ' c = value σ c.
Proof. destruct c; cbn; auto. Qed.

Lemma cell_at_insert m k c k' : cell_at (<[k := c]> m) k' = if decide (k = k') then c else cell_at m k'.
Proof. unfold cell_at. case_decide; subst; by rewrite ?lookup_insert, ?lookup_insert_ne by done. Qed.

Definition opens (L : list (positive * list V)) (m : cells) (ch : Pmap choice) (n : nat) : opening :=
  foldr open_block (Opening m ch n) L.

Lemma opens_wf L m ch n :
  choices_below n ch → blocks_below n m → NoDup L.*1 →
  let o := opens L m ch n in
  choices_below (upto o) (made o) ∧ blocks_below (upto o) (opened o) ∧ n ≤ upto o ∧
  (∀ k, k ∉ L.*1 → cell_at (opened o) k = cell_at m k).
Proof.
  intros Hch Hm. induction L as [|[k vs] L IH]; cbn; [done|]. intros [Hk HL]%NoDup_cons.
  destruct (IH HL) as (Hch' & Hm' & Hn & Hsame). fold (opens L m ch n). unfold open_block. cbn.
  destruct (forallb _ _); cbn.
  - split_and!; try done. intros k' Hk'. apply Hsame. intros ?. apply Hk'. by right.
  - split_and!.
    + apply choices_below_new; [done|]. apply Hm'.
    + intros k'. rewrite cell_at_insert. case_decide; cbn; [lia|]. eapply below_mono; [apply Hm'|lia].
    + lia.
    + intros k' Hk'. rewrite cell_at_insert. case_decide; [subst; destruct Hk'; left|].
      apply Hsame. intros ?. apply Hk'. by right.
Qed.

Lemma forallb_known (b : @cell V) vs v : forallb (λ u, bool_decide (b = Known u)) vs = true → v ∈ vs →
  b = Known v.
Proof. rewrite forallb_forall. intros Hall Hv. apply elem_of_list_In, Hall in Hv.
  by apply bool_decide_eq_true in Hv. Qed.

Lemma opens_over σ L m ch n (f : positive → V) :
  choices_below n ch → blocks_below n m → NoDup L.*1 → suits σ ch →
  (∀ k vs, (k, vs) ∈ L → f k ∈ value σ (cell_at m k) :: vs) →
  let o := opens L m ch n in
  ∃ σ', (∀ j, j < n → σ' j = σ j) ∧ suits σ' (made o) ∧
        (∀ k, k ∈ L.*1 → value σ' (cell_at (opened o) k) = f k).
Proof.
  intros Hch Hm Hnd Hs. induction L as [|[k vs] L IH]; intros Hf; cbn.
  { exists σ. split_and!; [done..|]. by intros k ?%elem_of_nil. }
  apply NoDup_cons in Hnd as [Hk HL].
  destruct (IH HL) as (σ' & Hσ & Hs' & Hval); [intros; apply Hf; by right|].
  destruct (opens_wf L m ch n Hch Hm HL) as (Hch' & Hm' & Hn & Hsame).
  fold (opens L m ch n). set (o := opens L m ch n) in *.
  specialize (Hf k vs (elem_of_list_here _ _)). unfold open_block. cbn. destruct (forallb _ _) eqn:Hall.
  - exists σ'. split_and!; [done..|]. intros k' [->|?]%elem_of_cons; [|auto]. rewrite Hsame by done.
    rewrite (Hsame k) in Hall by done. rewrite (value_ext σ σ' n) by done.
    apply elem_of_cons in Hf as [->|Hin]; [done|]. by rewrite (forallb_known _ _ _ Hall Hin).
  - set (σ'' := λ j, if decide (j = upto o) then f k else σ' j).
    assert (∀ j, j < upto o → σ'' j = σ' j) as Hσ''.
    { intros j Hj. unfold σ''. rewrite decide_False by lia. done. }
    assert (σ'' (upto o) = f k) as Hnew by (unfold σ''; by rewrite decide_True). exists σ''. cbn. split_and!.
    + intros j Hj. rewrite Hσ'' by lia. auto.
    + intros j b0 vs0. rewrite lookup_key. case_decide; subst.
      * intros [= <- <-]. rewrite Hnew, Hsame by done.
        rewrite (value_ext σ' σ'' (upto o)), (value_ext σ σ' n); [|done..| |].
        -- by apply elem_of_cons in Hf.
        -- done.
        -- eapply below_mono; [apply Hm|done].
      * intros Hj. assert (j < upto o) by (apply Hch'; eauto). rewrite Hσ'' by done.
        rewrite (value_ext σ' σ'' (upto o)); [by apply (Hs' j)|done|].
        eapply below_mono; [by eapply Hch'|lia].
    + intros k' Hk'. rewrite cell_at_insert. case_decide; [by subst|].
      apply elem_of_cons in Hk' as [?|Hk']; [done|].
      rewrite (value_ext σ' σ'' (upto o)); [auto|done|apply Hm'].
Qed.

Lemma opens_under σ L m ch n :
  choices_below n ch → blocks_below n m → NoDup L.*1 →
  let o := opens L m ch n in
  suits σ (made o) →
  suits σ ch ∧ ∀ k vs, (k, vs) ∈ L → value σ (cell_at (opened o) k) ∈ value σ (cell_at m k) :: vs.
Proof.
  intros Hch Hm Hnd. induction L as [|[k vs] L IH]; cbn; intros Hs.
  { split; [done|]. by intros k vs ?%elem_of_nil. }
  apply NoDup_cons in Hnd as [Hk HL]. destruct (opens_wf L m ch n Hch Hm HL) as (Hch' & Hm' & Hn & Hsame).
  fold (opens L m ch n) in *. set (o := opens L m ch n) in *. unfold open_block in *. cbn in *.
  destruct (forallb _ _) eqn:Hall.
  - destruct (IH HL Hs) as [Hs0 Hval]. split; [done|]. intros k' vs' [Heq|?]%elem_of_cons; [|auto].
    injection Heq as -> ->. rewrite Hsame by done. left.
  - cbn in Hs. assert (suits σ (made o)) as Hso.
    { intros j b0 vs0 Hj. apply (Hs j). rewrite lookup_insert_ne; [done|]. intros Heq.
      rewrite <-Heq, choices_below_fresh in Hj by done. done. }
    destruct (IH HL Hso) as [Hs0 Hval]. split; [done|]. intros k' vs' Hin. cbn. rewrite cell_at_insert.
    apply elem_of_cons in Hin as [Heq|Hin].
    + injection Heq as -> ->. rewrite decide_True by done. cbn.
      rewrite <-(Hsame k) by done. apply elem_of_cons. apply (Hs (upto o)). by rewrite lookup_insert.
    + rewrite decide_False; [auto|]. intros ->. apply Hk. apply elem_of_list_fmap. by exists (k', vs').
Qed.

Lemma like_snaps_ext σ σ' n (xs : list (name * cells)) sn : (∀ j, j < n → σ' j = σ j) →
  (∀ a m, find a xs = Some m → blocks_below n m) → like_snaps σ xs sn → like_snaps σ' xs sn.
Proof. intros Hσ Hbelow Hs a. specialize (Hs a). specialize (Hbelow a). destruct Hs as [m v Hv|]; constructor.
  intros l. rewrite <-Hv. apply (value_ext σ σ' n); [done|]. by apply Hbelow. Qed.

Lemma since_fst (m : Pmap (list V)) k : k ∈ (map_to_list m).*1 ↔ is_Some (m !! k).
Proof.
  split.
  - intros ([k' vs] & -> & Hin)%elem_of_list_fmap. apply elem_of_map_to_list in Hin. by eexists.
  - intros [vs Hin]. apply elem_of_list_fmap. exists (k, vs). by rewrite elem_of_map_to_list.
Qed.

Lemma resuming_over σ w s i d :
  over σ w s → wf w → suits σ (choices w) → i ∈ survivors s → resolves i d →
  ∃ w' σ', w' ∈ resuming w <$> leftovers w ∧ suits σ' (choices w') ∧
    over σ' w' (State (size s) d [exactly d] true).
Proof.
  intros [(Hz & _ & _) Hab] (Hch & _ & Hys) Hs Hi [Hl Heq]. destruct (Hab i Hi) as (y & Hy & Hm & Hsn).
  specialize (Hys y Hy) as [Hlive Hsnaps]. set (f := λ k, live d (pred (Pos.to_nat k))).
  assert (∀ l, f (key l) = live d l) as Hfk by (intros l; unfold f, key; f_equal; lia).
  destruct (opens_over σ (map_to_list (since y)) (live_blocks (kept y)) (choices w) (next w) f)
    as (σ' & Hσ & Hs' & Hval); [done|done|apply NoDup_fst_map_to_list|done| |].
  { intros k vs Hin%elem_of_map_to_list. specialize (Hm _ _ (Hl (pred (Pos.to_nat k)))).
    unfold may, reads in Hm. replace (key _) with k in Hm by (unfold key; lia). by rewrite Hin in Hm. }
  destruct (opens_wf (map_to_list (since y)) (live_blocks (kept y)) (choices w) (next w))
    as (_ & _ & _ & Hsame); [done|done|apply NoDup_fst_map_to_list|].
  exists (resuming w y), σ'. split; [apply elem_of_list_fmap; by exists y|]. split; [done|].
  assert (like σ' (seen (resuming w y)) d) as Hlike.
  { split.
    - intros l.
      change (value σ' (cell_at (opened (opens (map_to_list (since y)) (live_blocks (kept y)) (choices w)
        (next w))) (key l)) = live d l).
      destruct (since y !! key l) as [vs|] eqn:Hk.
      + rewrite Hval; [done|]. apply since_fst. by rewrite Hk.
      + rewrite Hsame by (rewrite since_fst, Hk; by intros []). specialize (Hm _ _ (Hl l)). unfold may in Hm.
        rewrite Hk in Hm. apply elem_of_list_singleton in Hm. rewrite Hm. by apply (value_ext σ σ' (next w)).
    - cbn. rewrite Heq. by eapply like_snaps_ext. }
  split; [done|]. by apply lies_one, covers_exactly.
Qed.

Lemma resuming_under σ w y s : under σ w s → wf w → y ∈ leftovers w → suits σ (choices (resuming w y)) →
  ∃ i d, i ∈ survivors s ∧ resolves i d ∧ under σ (resuming w y) (State (size s) d [exactly d] true).
Proof.
  intros [(Hz & _ & _) Hbe] (Hch & _ & Hys) Hy Hs. destruct (Hbe y Hy) as (i & Hi & Hm & Hsn).
  specialize (Hys y Hy) as [Hlive Hsnaps].
  destruct (opens_under σ (map_to_list (since y)) (live_blocks (kept y)) (choices w) (next w))
    as (_ & Hval); [done|done|apply NoDup_fst_map_to_list|done|].
  destruct (opens_wf (map_to_list (since y)) (live_blocks (kept y)) (choices w) (next w))
    as (_ & _ & _ & Hsame); [done|done|apply NoDup_fst_map_to_list|].
  set (o := opens (map_to_list (since y)) (live_blocks (kept y)) (choices w) (next w)) in *.
  set (d := Disk (reads σ (opened o)) (with_snaps i)).
  assert (like σ (seen (resuming w y)) d) as Hlike by done. exists i, d. split_and!; [done| |].
  - split; [|done]. intros l. apply Hm. unfold may. cbn. unfold reads.
    destruct (since y !! key l) as [vs|] eqn:Hk.
    + apply Hval. by apply elem_of_map_to_list.
    + rewrite Hsame by (rewrite since_fst, Hk; by intros []). left.
  - split; [done|]. by apply lies_one, covers_exactly.
Qed.

(** ** One event *)

Lemma reading_over σ w s from lba count data : over σ w s → wf w → suits σ (choices w) →
  (∃ v, view_of (now s) from = Some v ∧ data = v <$> seq lba count) →
  ∃ w', w' ∈ reading w from lba count data ∧ suits σ (choices w') ∧ over σ w' s.
Proof.
  intros [(Hz & Hpw & Hl) Hab] (Hch & Hseen & _) Hs (v & Hv & ->). unfold reading.
  pose proof (view_like _ _ _ from Hl) as Hfrom. rewrite Hv in Hfrom.
  destruct (blocks_of (seen w) from) as [m|] eqn:Hm; inversion Hfrom as [? ? Hreads|]; subst.
  rewrite fmap_length, seq_length. rewrite decide_True by done.
  destruct (all_decided_over σ (next w) m lba (v <$> seq lba count) (choices w)) as (ch & Hall & Hs');
    [done|by eapply blocks_of_below|done| |].
  { rewrite fmap_length, seq_length. apply list_fmap_ext. by intros. }
  rewrite Hall. eexists. split; [left|]. by split.
Qed.

(** What a read that is answered makes of a world. *)
Lemma reading_spec w from lba count data w' : w' ∈ reading w from lba count data → ∃ m ch,
  blocks_of (seen w) from = Some m ∧ length data = count ∧
    all_decided (next w) m (key lba) data (choices w) = Some ch ∧
  w' = World (blocks_count w) (seen w) (leftovers w) (powered w) ch (next w).
Proof. unfold reading. repeat case_match; set_solver. Qed.

Lemma reading_under σ w s from lba count data w' : under σ w s → w' ∈ reading w from lba count data →
  suits σ (choices w') → under σ w' s ∧ ∃ v, view_of (now s) from = Some v ∧ data = v <$> seq lba count.
Proof.
  intros [(Hz & Hpw & Hl) Hbe] (m & ch & Hm & <- & Hall & ->)%reading_spec Hs.
  pose proof (view_like _ _ _ from Hl) as Hfrom. rewrite Hm in Hfrom. inversion Hfrom as [? v Hreads Heq Hv|];
    subst.
  destruct (all_decided_under σ _ _ _ _ _ _ Hall Hs) as [_ Hdata]. split; [by split|].
  exists v. split; [done|]. rewrite Hdata at 1. apply list_fmap_ext. by intros.
Qed.

Lemma happens_nothing s : happens s (now s) (survivors s) = s.
Proof. by destruct s. Qed.

(** An event that no read or crash or [Create] is. *)
Definition plain (e : event V) : Prop :=
  match e with Create _ | Read _ _ _ _ _ | Crash _ => False | _ => True end.

Lemma flush_matched up p σ w s r : beside up σ w s → (up = true → current p s) →
  matched up σ w (looking w r [] (λ _, [leaving w (seen w) [Leftover (seen w) ∅]]))
    (answered s r [] [] (now s) [exactly (now s)]).
Proof.
  intros Hb Hcur. destruct (decide (r = Ok)) as [->|Hr].
  - pose proof Hb as [(? & Hpw & ?) _].
    assert (beside up σ (leaving w (seen w) [Leftover (seen w) ∅]) (happens s (now s) [exactly (now s)])).
    { split; [done|]. by apply lies_one, covers_exactly. }
    destruct up; [intros s' [Hp [_ ->]]|intros w' (Hp & _ & ->%elem_of_list_singleton)%looking_spec]; eexists.
    + rewrite looking_spec, <-Hpw. split; [split_and!; [done..|left]|done].
    + rewrite <-Hpw in Hp. split; [by split|done].
  - destruct (power s) eqn:Hp.
    + apply looking_matched; [done| |done]. intros ->. by eapply above_now; auto.
    + destruct up; [intros s' [? _]; congruence|].
      intros w' [? _]%looking_spec. destruct Hb as [(? & ? & ?) _]. congruence.
Qed.

Lemma advance_matched up p σ w s e : beside up σ w s → (up = true → current p s) → plain e →
  matched up σ w (advance_one p e w) (step p s e).
Proof.
  intros Hb Hcur He. pose proof Hb as [Hag _]. pose proof Hag as (_ & _ & Hl).
  destruct e as [| | | | | | | | | |]; try done; cbn;
    rewrite ?(range_faults_agree σ w s), ?(taken_faults_agree σ w s), ?(missing_faults_agree σ w s) by done;
    try (by eapply flush_matched); apply answering_matched; try done; intros;
    first [by apply buffering_beside; auto|by apply writing_through_beside; auto|apply recording_beside;
      [done|]].
  - by apply like_snapshotted.
  - by apply like_deleted.
  - by apply like_reverted.
Qed.

Lemma advance_over p σ w s e s' : wf w → current p s → suits σ (choices w) → over σ w s → step p s e s' →
  ∃ w' σ', w' ∈ advance_one p e w ∧ suits σ' (choices w') ∧ over σ' w' s'.
Proof.
  intros Hwf Hcur Hs Hov Hstep. pose proof Hov as [Hag Hab].
  assert (∀ ws (after : state V → Prop), matched true σ w ws after → after s' →
    ∃ w' σ', w' ∈ ws ∧ suits σ' (choices w') ∧ over σ' w' s') as Hmatch.
  { intros ws after Hm Ha. destruct (Hm _ Ha) as (w' & ? & Heq & ?). exists w', σ. by rewrite Heq. }
  destruct e as [blocks| | | | | | | | |from lba count r data|r];
    try (by eapply Hmatch, Hstep; apply advance_matched); cbn in Hstep |- *.
  - subst s'. exists (fresh_world blocks), σ. split_and!; [left| |apply beside_fresh].
    intros j b vs. cbn. by rewrite lookup_empty.
  - destruct Hstep as [Ha Hread]. rewrite (range_faults_agree σ w s), (view_faults_agree σ w s) by done.
    destruct (decide (r = Ok)) as [->|Hr]; [|eapply Hmatch, Ha; by apply looking_matched].
    destruct Ha as [Hp [Hf ->]], Hag as (_ & Hpw & _). setoid_rewrite looking_spec. rewrite happens_nothing.
    destruct (reading_over σ w s from lba count data) as (w' & ? & ? & ?); [done..|by apply Hread|].
    exists w', σ. rewrite <-Hpw. by split_and!.
  - destruct r; try done.
    + destruct Hstep as (i & d & Hi & Hr & ->). by eapply resuming_over.
    + subst s'. exists (cut_to w (leftovers w)), σ. split_and!; [left|done|by apply beside_cut].
Qed.

(** Nothing is undecided again. *)
Lemma advance_suits p σ w e w' :
  wf w → w' ∈ advance_one p e w → suits σ (choices w') → (∀ blocks, e ≠ Create blocks) → suits σ (choices w).
Proof.
  intros Hwf Hin Hs Hnew.
  assert (∀ r faults excuses f, w' ∈ answering w r faults excuses f → suits σ (choices w)) as Hans.
  { intros r faults excuses f [_ Hr]%answering_spec. destruct r; naive_solver. }
  destruct e as [blocks| | | | | | |r|r|from lba count r data|r]; cbn in Hin; try (by eapply Hans);
    try (by edestruct Hnew).
  - apply looking_spec in Hin as [_ Hr]. destruct r; set_solver.
  - apply looking_spec in Hin as [_ Hr]. destruct r; set_solver.
  - apply looking_spec in Hin as [_ Hr]. destruct r; [|naive_solver..].
    destruct Hr as [_ (m & ch & _ & _ & Hall & ->)%reading_spec]. by edestruct all_decided_under.
  - destruct r; [|set_solver..]. apply elem_of_list_fmap in Hin as (y & -> & Hy).
    destruct Hwf as (Hch & _ & Hys). specialize (Hys y Hy) as [? ?].
    by destruct (opens_under σ (map_to_list (since y)) (live_blocks (kept y)) (choices w) (next w))
      as (? & _); [done|done|apply NoDup_fst_map_to_list|done|].
Qed.

Lemma advance_under p σ w s e w' : wf w → w' ∈ advance_one p e w → suits σ (choices w') → under σ w s →
  ∃ s', step p s e s' ∧ under σ w' s'.
Proof.
  intros Hwf Hin Hs Hun. pose proof Hun as [Hag Hbe]. pose proof Hag as (_ & Hpw & _).
  destruct e as [blocks| | | | | | | | |from lba count r data|r];
    try (by eapply (advance_matched false p); [done|done|done|exact Hin]); cbn in *.
  - apply elem_of_list_singleton in Hin as ->. eexists. split; [done|apply beside_fresh].
  - rewrite (range_faults_agree σ w s), (view_faults_agree σ w s) in Hin by done.
    destruct (decide (r = Ok)) as [->|Hr].
    + apply looking_spec in Hin as (Hp & Hf & Hin).
      destruct (reading_under _ _ _ _ _ _ _ _ Hun Hin Hs) as (? & ?).
      exists s. rewrite <-Hpw in Hp. by split; [split; [split_and!; [..|rewrite happens_nothing]|]|].
    + destruct (looking_matched false σ w s r _ (λ _, reading w from lba count data) (survivors s)
      Hun ltac:(done) Hr _ Hin)
        as (s' & ? & ?). by exists s'.
  - destruct r; try (by apply elem_of_nil in Hin).
    + apply elem_of_list_fmap in Hin as (y & -> & Hy).
      destruct (resuming_under _ _ _ _ Hun Hwf Hy Hs) as (i & d & ? & ? & ?). eauto 10.
    + apply elem_of_list_singleton in Hin as ->. eexists. split; [done|by apply beside_cut].
Qed.

End CheckerWorlds.
