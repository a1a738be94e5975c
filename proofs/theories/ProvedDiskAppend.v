(** Reading, and putting a record into the log: whenever the power fails, the disk is as before or as after.
*)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps.

Section Append.
Context `{!blocks, !blocks_laws, !checkpoint_format} {torn : tearing block}.
Implicit Types (f : contents block) (d : disk block) (P : contents block → Prop).

Lemma crash_safe_read_all {A} P (Q : A → medium block → Prop) addresses f k :
  safe P (Medium f []) → crash_safe P Q (k (f <$> addresses)) (Medium f []) →
  crash_safe P Q (read_all addresses k) (Medium f []).
Proof. intros HP. revert k. induction addresses; simpl; intros k Hk; [done|]. split;
  [done|]. by apply IHaddresses. Qed.

Definition read_from (g : geometry) f (p : option nat) : block :=
  match p with Some p => f (data_address g p) | None => zero_block end.

Lemma crash_safe_read_places {A} P (Q : A → medium block → Prop) g places f k :
  safe P (Medium f []) → crash_safe P Q (k (read_from g f <$> places)) (Medium f []) →
  crash_safe P Q (read_places g places k) (Medium f []).
Proof.
  intros HP. revert k. induction places as [|[p|] places IH]; simpl; intros k Hk; [done| |by apply IH].
  split; [done|]. by apply IH.
Qed.

Lemma represents_ext y f f' d : (∀ a, f' a = f a) → represents y f d → represents y f' d.
Proof. intros Hf. by apply represents_frame. Qed.

Lemma recoverable_represents y f d : represents y f d → recoverable (shape y) d f.
Proof. intros Hy. exists y. split; [done|by left]. Qed.

Lemma unconfirmed_ext y f f' d : (∀ a, f' a = f a) → unconfirmed y f d → unconfirmed y f' d.
Proof.
  intros Hf [Hy Hwithout]. split.
  { eapply represents_ext; [|done]. intros a. unfold blanked. by destruct (decide _). }
  destruct Hwithout as [(m0&rs&r&Hdur&?&?&?&?&Hno)|(k&db&dg&Hhead&Hroom&Hno)]; [left|right].
  - exists m0, rs, r. rewrite (blocks_at_frame _ f) by (by intros; apply Hf).
    split_and!; try done. apply (durable_frame _ f); [by intros; apply Hf|done].
  - exists k, db, dg. rewrite Hf, (bodies_at_same _ f) by (by intros; apply Hf). by split_and!.
Qed.

Lemma recoverable_ext g f f' d : (∀ a, f' a = f a) → recoverable g d f → recoverable g d f'.
Proof.
  intros Hf (y&Hg&[Hy|Hy]); exists y; (split; [done|]); [left|right];
    [by eapply represents_ext|by eapply unconfirmed_ext].
Qed.

Lemma safe_recoverable g d P f : recoverable g d f → (∀ f, recoverable g d f → P f) → safe P (Medium f []).
Proof. intros Hf HP f' Hf'. apply HP. eapply recoverable_ext; [|done]. by apply leaves_stable. Qed.

Lemma safe_represents P y f d :
  represents y f d → (∀ f, recoverable (shape y) d f → P f) → safe P (Medium f []).
Proof. intros Hy. apply safe_recoverable. by apply recoverable_represents. Qed.

(** ** A record goes into the log *)

(** The addresses of [k] blocks of the log, from number [n] on. *)
Definition log_from (g : geometry) (n k : nat) (a : nat) : Prop := ∃ j, j < k ∧ a = log_address g (n + j).

Lemma log_from_dec g n k a : log_from g n k a ∨ ¬ log_from g n k a.
Proof.
  destruct (decide (a ∈ log_address g <$> seq n k)) as [Hin|Hno]; [left|right].
  - apply elem_of_list_fmap in Hin as (i&->&Hi%elem_of_seq). exists (i - n). split; [lia|].
    by replace (n + (i - n)) with i by lia.
  - intros (j&Hj&->). apply Hno, elem_of_list_fmap. exists (n + j). split; [done|]. apply elem_of_seq. lia.
Qed.

(** What stands in the log stays there if only blocks behind it change. *)
Lemma lies_before g f f' fst rs k old r rest : rs = old ++ r :: rest → total rs + k ≤ log_blocks g →
  (∀ i, ¬ log_from g (fst + total rs) k (log_address g i) → f' (log_address g i) = f (log_address g i)) →
  lies_at g f (fst + total old) r → lies_at g f' (fst + total old) r.
Proof.
  intros -> Hroom Hold. rewrite total_app, total_cons in *. apply lies_at_same. intros j Hj. apply Hold.
  intros (j'&Hj'&Heq). symmetry in Heq. revert Heq. apply not_eq_sym, log_address_distinct. lia.
Qed.

(** Nothing but the blocks behind the newest record change, and no record gets there. *)
Lemma durable_next g f f' s ser fst m0 rs k :
  let n := fst + total rs in
  (∀ a n' r, log_from g n k a → unseal log_codec (f' a) = Some (n', r) → n' < n) →
  total rs + k ≤ log_blocks g → (∀ a', fixed_address g s a' → ¬ log_from g n k a' → f' a' = f a') →
  durable g f s ser fst m0 rs → durable g f' s ser fst m0 rs.
Proof.
  intros n Hnew Hroom Hold [Hheld Hin Hlog Hstale Hfits Hpos Hwhole Hnum]. split; try done.
  - eapply holds_same; [|done]. intros a' Ha'. apply Hold; [by right|].
    intros (j&_&Heq). by eapply checkpoint_no_log.
  - intros old r rest Hrs. eapply lies_before; [done..| |by eapply Hlog].
    intros i Hi. apply Hold; [left; by eexists|done].
  - intros i n' r. destruct (log_from_dec g n k (log_address g i)) as [Hi|Hi]; [by apply Hnew|].
    rewrite Hold; [by apply Hstale|left; by eexists|done].
Qed.

Lemma durable_logged g f f' s ser fst m0 rs r :
  let n := fst + total rs in let k := size_of r.1 in
  lies_at g f' n r → in_bounds g r.1 →
  (∀ a n' x, log_from g n k a → unseal log_codec (f' a) = Some (n', x) → n' ≤ n) →
  total rs + k ≤ log_blocks g → (∀ a', fixed_address g s a' → ¬ log_from g n k a' → f' a' = f a') →
  durable g f s ser fst m0 rs → durable g f' s ser fst m0 (rs ++ [r]).
Proof.
  intros n k Hnew Hbounds Hnone Hroom Hold [Hheld Hin Hlog Hstale Hfits Hpos Hwhole Hnum].
  pose proof (size_positive r.1) as Hsize. split; try done.
  - eapply holds_same; [|done]. intros a' Ha'. apply Hold; [by right|].
    intros (j&_&Heq). by eapply checkpoint_no_log.
  - intros i r'. rewrite lookup_app_Some. intros [?|[_ [_ ->]%list_lookup_singleton_Some]]; [by eapply
    Hin|done].
  - intros old r' rest Hrs. destruct rest as [|r1 rest _] using rev_ind.
    + apply app_inj_tail in Hrs as [-> ->]. done.
    + rewrite app_comm_cons, (assoc_L (++)) in Hrs. apply app_inj_tail in Hrs as [Hrs ->].
      eapply lies_before; [done..| |by eapply Hlog]. intros i Hi. apply Hold; [left; by eexists|done].
  - intros i n' r'. rewrite total_snoc. fold k.
    destruct (log_from_dec g n k (log_address g i)) as [Hi|Hi].
    + intros Hn'. pose proof (Hnone _ _ _ Hi Hn'). unfold n, k in *. lia.
    + rewrite Hold; [|left; by eexists|done]. intros ?%Hstale. lia.
  - rewrite total_snoc. done.
Qed.

(** A block that holds no record of the log, and cannot be taken for one. *)
Definition no_record (b : block) : Prop := ∀ n r, unseal log_codec b = Some (n, r) → n = 0.

Lemma blank_record : no_record blank_block.
Proof. intros n r. apply blank_number. Qed.

Lemma unsealed_record b : unsealed b = None → no_record b.
Proof. intros Hb n r. by rewrite unread. Qed.

(** All but blocks behind the newest record is as it was, and no record is there. *)
Lemma represents_blanked y f f' d k :
  represents y f d → room_for y k = true →
  (∀ a, needed y a → ¬ log_from (shape y) (next_record y) k a → f' a = f a) →
  (∀ a n r, log_from (shape y) (next_record y) k a → unseal log_codec (f' a) = Some (n, r) →
    n < next_record y) →
  represents y f' d.
Proof.
  intros [(m0&rs&Hdur&Hnext&Hcur&Hplaced&Hconf) [Hwf Hag]] Hroom%bool_decide_eq_true_1 Hold Hblank.
  pose proof (log_positive _ _ _ _ _ _ _ Hdur) as Hpos.
  assert (∀ p, ¬ log_from (shape y) (next_record y) k (data_address (shape y) p)) as Hdata.
  { intros p (j&_&Heq). by eapply data_not_log. }
  split; [|split; [done|]].
  - exists m0, rs. split_and!; try done.
    + rewrite Hnext in *. apply (durable_next _ f _ _ _ _ _ _ k); [done|lia| |done].
      intros a ? ?. apply Hold; [by left|done].
    + eapply confirmed_frame; [|done]. intros p Hp. apply Hold; [right; right; by exists p|done].
  - eapply agrees_frame; [|done]. intros a (x&p&Hx&Hp&->).
    apply Hold; [right; left; by exists x, p|done].
Qed.

(** The block of the next record is the first of them. *)
Lemma represents_no_record y f f' d :
  represents y f d → has_room y = true →
  (∀ a, needed y a → a ≠ log_address (shape y) (next_record y) → f' a = f a) →
  no_record (f' (log_address (shape y) (next_record y))) → represents y f' d.
Proof.
  intros Hy Hroom Hold Hnone. assert (0 < next_record y) as Hnum.
  { destruct Hy as [(m0&rs&Hdur&Hnext&_) _]. pose proof (log_numbered _ _ _ _ _ _ _ Hdur). lia. }
  apply (represents_blanked y f f' d 1); [done..| |].
  - intros a Ha Hfrom. apply Hold; [done|]. intros ->. apply Hfrom. exists 0. split; [lia|].
    by rewrite Nat.add_0_r.
  - intros a n r (j&Hj&->) Hn. replace (next_record y + j) with (next_record y) in Hn by lia.
    apply Hnone in Hn as ->. done.
Qed.

(** A record with all of its data. *)
Lemma represents_logged y f f' d d' r fr dg :
  represents y f d → room_for y (size_of r) = true →
  well_formed (apply r (current y)) fr → agrees (shape y) f' (apply r (current y)) d' →
  placed (logged y r fr) → proper_places (shape y) (places_of r) → (∀ p, p ∈ places_of r → fr !! p = None) →
  digest (blocks_at (shape y) f' (places_of r)) = dg → in_bounds (shape y) r →
  lies_at (shape y) f' (next_record y) (r, dg) →
  (∀ a n x, log_from (shape y) (next_record y) (size_of r) a → unseal log_codec (f' a) = Some (n, x) →
    n ≤ next_record y) →
  (∀ a, needed y a → ¬ log_from (shape y) (next_record y) (size_of r) a → f' a = f a) →
  represents (logged y r fr) f' d'.
Proof.
  intros [(m0&rs&Hdur&Hnext&Hcur&_) _] Hroom%bool_decide_eq_true_1 Hwf Hag Hplaced Hproper Hkept Hthere
    Hbounds Hnew Hnone Hold.
  split; [|by split]. exists m0, (rs ++ [(r, dg)]). split_and!.
  - simpl. rewrite Hnext in *. apply (durable_logged _ f); try done; [simpl; lia|].
    intros a Ha. apply Hold. by left.
  - simpl. rewrite total_snoc. simpl. lia.
  - simpl. unfold replayed. rewrite foldl_app. simpl. by rewrite Hcur.
  - done.
  - split; simpl; try done; [by unfold newest_of; rewrite last_snoc|].
    unfold digest_of. by rewrite last_snoc.
Qed.

Lemma crash_safe_vouched {A} P (Q : A → medium block → Prop) bs (k : program block A) m :
  safe P m → ((bs ≠ [] → compared bs = true) → crash_safe P Q k m) → crash_safe P Q (vouched bs k) m.
Proof.
  intros HP Hk. destruct bs as [|b bs]; simpl; [by apply Hk|]. split; [done|]. intros Hbs. by apply Hk.
Qed.

(** ** The blocks of a record, written in any order, then flushed *)

Section Record.
Context (P : contents block → Prop) (y : memory) (r : log_record) (data : list block) (fr : gmap nat unit).
Context (f : contents block) (d d' : disk block).
Let g := shape y.
Let n := next_record y.
Let la := log_address g n.
Let places := places_of r.
Context (Hy : represents y f d) (Hfree : take_free places (free y) = Some fr).
Context (Hlen : length places = length data) (Hbounds : in_bounds g r).
Context (Hmoved : ∀ x p, middle (apply r (current y)) !! x = Some p →
  middle (current y) !! x = Some p ∨ p ∈ places).
Context (HP : ∀ f, recoverable g d f → P f) (HP' : ∀ f, recoverable g d' f → P f).
Context (Happly : ∀ f', (∀ p b, (p, b) ∈ zip places data → f' (data_address g p) = b) →
  (∀ a, used_address g (current y) a → f' a = f a) →
  well_formed (apply r (current y)) fr ∧ agrees g f' (apply r (current y)) d').

Lemma log_positive_here : 0 < log_blocks g ∧ 0 < n.
Proof.
  destruct Hy as [(m0&rs&Hdur&Hnext&_) _]. split; [by eapply log_positive|].
  pose proof (log_numbered _ _ _ _ _ _ _ Hdur). unfold n. lia.
Qed.

(** Tearing leaves no record in the log. *)
Lemma torn_no_record i :
  ¬ tears (log_address g i) ∧ ∀ b, tears_to (log_address g i) b → no_record b.
Proof.
  pose proof log_positive_here as [Hpos _]. destruct Hy as [(m0&rs&Hdur&_) _].
  destruct (log_unread _ _ _ _ _ _ _ Hdur (log_address g i)) as [? Hno]; [by apply log_address_bound|].
  split; [done|]. intros b Hb. pose proof (log_address_bound g i Hpos) as Hlow.
  apply unsealed_record, Hno; [done|]. unfold superblock. lia.
Qed.

Lemma placed_after : placed (logged y r fr).
Proof.
  destruct Hy as [(m0&rs&_&_&_&[Hmid Hbelow]&_) _].
  pose proof (take_free_some _ _ _ Hfree) as (_&Hin&Hless). split; simpl.
  - intros x p [Hp|Hp]%Hmoved; [by eapply Hmid|]. by apply Hbelow, Hin.
  - intros p Hp. apply Hbelow. destruct (free y !! p) eqn:Hnone; [by eexists|].
    rewrite (Hless p Hnone) in Hp. by destruct Hp.
Qed.

Lemma places_proper : proper_places g places.
Proof.
  destruct Hy as [(m0&rs&_&_&_&[_ Hbelow]&_) _].
  pose proof (take_free_some _ _ _ Hfree) as (Hdup&Hin&_). split; [done|]. intros p Hp. by apply Hbelow, Hin.
Qed.

(** Its blocks: the data in their places, the bodies behind the head, and the head. *)
Context (bodies_ : list block) (b : block).
Context (Hpieces : log_pieces n r (digest data) = Some (bodies_, b)) (Hcompared : compared data = true).
Context (Hvouched : bodies_ ≠ [] → compared bodies_ = true) (Hroom : room_for y (size_of r) = true).
Let ws := zip (data_address g <$> places) data.
Let bws := zip (log_address g <$> seq (S n) (length bodies_)) bodies_.

Lemma size_of_pieces : size_of r = S (length bodies_).
Proof. by destruct (log_pieces_some _ _ _ _ _ Hpieces). Qed.

Lemma bodies_no_record b' n' x : b' ∈ bodies_ → unseal log_codec b' = Some (n', x) → n' = 0.
Proof. pose proof (log_pieces_some _ _ _ _ _ Hpieces) as (_&Hbodies&_). apply Hbodies. Qed.

Lemma data_addresses : ws.*1 = data_address g <$> places.
Proof. apply fst_zip. rewrite fmap_length. lia. Qed.

Lemma body_addresses : bws.*1 = log_address g <$> seq (S n) (length bodies_).
Proof. apply fst_zip. rewrite fmap_length, seq_length. lia. Qed.

Lemma body_behind a : a ∈ bws.*1 → ∃ j, 0 < j < size_of r ∧ a = log_address g (n + j).
Proof.
  rewrite body_addresses, size_of_pieces. intros (i&->&Hi%elem_of_seq)%elem_of_list_fmap. exists (i - n).
  split; [lia|]. by replace (n + (i - n)) with i by lia.
Qed.

Lemma body_from a : a ∈ bws.*1 → log_from g n (size_of r) a.
Proof. intros (j&Hj&->)%body_behind. exists j. split; [lia|done]. Qed.

Lemma head_from : log_from g n (size_of r) la.
Proof. exists 0. rewrite size_of_pieces. split; [lia|]. by rewrite Nat.add_0_r. Qed.

Lemma from_body a : log_from g n (size_of r) a → a ≠ la → a ∈ bws.*1.
Proof.
  intros (j&Hj&->) Hne. rewrite size_of_pieces in Hj. rewrite body_addresses.
  apply elem_of_list_fmap. exists (n + j). split; [done|]. apply elem_of_seq.
  destruct j as [|j]; [|lia]. destruct Hne. unfold la. by rewrite Nat.add_0_r.
Qed.

Lemma apart_in_log i j : i ≤ j < i + size_of r → log_address g i = log_address g j → i = j.
Proof.
  intros Hij Heq. destruct (decide (i = j)) as [|Hne]; [done|]. exfalso. revert Heq.
  pose proof log_positive_here as [Hpos _]. pose proof (bool_decide_eq_true_1 _ Hroom).
  apply log_address_distinct. unfold g, n in *. lia.
Qed.

Lemma head_no_body : la ∉ bws.*1.
Proof.
  intros (j&Hj&Heq)%body_behind. apply apart_in_log in Heq; lia.
Qed.

Lemma data_unneeded a : a ∈ ws.*1 → ¬ needed y a ∧ ∀ i, a ≠ log_address g i.
Proof.
  pose proof log_positive_here as [Hpos _]. pose proof (take_free_some _ _ _ Hfree) as (_&Hin&_).
  rewrite data_addresses. intros (p&->&Hp)%elem_of_list_fmap. split; [|intros i; by apply data_not_log].
  eapply free_not_needed; [done|]. by apply Hin.
Qed.

Lemma written_apart : NoDup (ws ++ bws).*1.
Proof.
  rewrite fmap_app. apply NoDup_app. split_and!.
  - rewrite data_addresses. apply NoDup_fmap_2; [intros p1 p2; apply data_address_inj|].
    by destruct (take_free_some _ _ _ Hfree).
  - intros a [_ Ha]%data_unneeded (j&_&->)%body_behind. by apply (Ha (n + j)).
  - rewrite body_addresses. apply NoDup_fmap_2_strong; [|apply NoDup_seq].
    pose proof size_of_pieces. intros i j Hi%elem_of_seq Hj%elem_of_seq Heq.
    destruct (decide (i ≤ j)); [|symmetry; symmetry in Heq]; apply apart_in_log in Heq; lia.
Qed.

Lemma written_not_head a b' : (a, b') ∈ ws ++ bws → a ≠ la.
Proof.
  intros [Hw|Hw]%elem_of_app ->.
  - destruct (data_unneeded la) as [_ Hne]; [|by destruct (Hne n)]. by eapply elem_of_list_fmap_1_alt.
  - apply head_no_body. by eapply elem_of_list_fmap_1_alt.
Qed.

(** *** What there is with the record, and without it *)

Definition else_same (f' : contents block) : Prop :=
  ∀ a, a ∉ ws.*1 → ¬ log_from g n (size_of r) a → f' a = f a.

(** No block of the record's part of the log says that it is a record of number [m] or later. *)
Definition none_from (f' : contents block) (m : nat) : Prop :=
  ∀ a n' x, log_from g n (size_of r) a → unseal log_codec (f' a) = Some (n', x) → n' < m.

Lemma none_before : none_from f n.
Proof.
  destruct Hy as [(m0&rs&Hdur&Hnext&_) _]. intros a n' x (j&_&->) Hn'.
  apply (at_stale _ _ _ _ _ _ _ Hdur) in Hn'. unfold n. lia.
Qed.

Lemma needed_same f' a : else_same f' → needed y a → ¬ log_from g n (size_of r) a → f' a = f a.
Proof. intros Hsame Ha. apply Hsame. by intros [? _]%data_unneeded. Qed.

Lemma without_record f' : else_same f' → none_from f' n → represents y f' d.
Proof.
  intros Hsame Hnone. apply (represents_blanked y f f' d (size_of r)); try done.
  intros a. by apply needed_same.
Qed.

Lemma with_record f' : else_same f' → none_from f' (S n) → lies_at g f' n (r, digest data) →
  blocks_at g f' places = data → represents (logged y r fr) f' d'.
Proof.
  intros Hsame Hnone Hlies Hdata. pose proof log_positive_here as [Hpos _].
  pose proof (take_free_some _ _ _ Hfree) as (_&Hin&_).
  assert (∀ a, needed y a → ¬ log_from g n (size_of r) a → f' a = f a) as Hneeded
    by (intros a; by apply needed_same).
  destruct (Happly f') as [Hwf Hag].
  - intros p b' (i&(p'&b''&[= <- <-]&Hp&Hb')%lookup_zip_with_Some)%elem_of_list_lookup.
    rewrite <-Hdata in Hb'. unfold blocks_at in Hb'. rewrite !list_lookup_fmap, Hp in Hb'. by simplify_eq/=.
  - intros a Ha. apply Hneeded; [by right; left|]. destruct Ha as (x&p&_&_&->).
    intros (j&_&Heq). by eapply data_not_log.
  - apply (represents_logged y f f' d d' r fr (digest data)); try done.
    + apply placed_after.
    + apply places_proper.
    + intros p Hp. by apply Hin.
    + fold g places. by rewrite Hdata.
    + intros a n' x Ha Hn'. apply Nat.lt_succ_r. by eapply Hnone.
Qed.

(** *** What a power cut leaves before the flush *)

Lemma power_cut_leaves u f' : (∀ a b', (a, b') ∈ u → (a, b') ∈ ws ++ bws ∨ (a, b') = (la, b)) →
  may_leave (Medium f u) f' → else_same f' ∧
  (∀ a n' x, a ∈ bws.*1 → unseal log_codec (f' a) = Some (n', x) → n' < n) ∧
  (f' la = b ∨ ∀ n' x, unseal log_codec (f' la) = Some (n', x) → n' < n).
Proof.
  intros Hu Hf'. pose proof log_positive_here as [_ Hnum].
  assert (∀ a, a ∉ ws.*1 → ¬ log_from g n (size_of r) a → a ∉ u.*1) as Hout.
  { intros a Ha Hno ([a1 b1]&->&Hin1)%elem_of_list_fmap.
    apply Hu in Hin1 as [Hin1|[= -> ->]]; [|by destruct Hno; apply head_from].
    apply elem_of_app in Hin1 as [Hin1|Hin1].
    - apply Ha, elem_of_list_fmap. by exists (a1, b1).
    - apply Hno, body_from, elem_of_list_fmap. by exists (a1, b1). }
  split_and!.
  - intros a Ha Hno. destruct (may_be_in _ _ _ (Hf' a)) as [|Hw]; [done|]. by destruct (Hout a Ha Hno).
  - intros a n' x Ha. pose proof (body_behind a Ha) as (j&Hj&->).
    destruct (torn_no_record (n + j)) as [Hno Htorn].
    destruct (Hf' (log_address g (n + j))) as [[->|Hw]|[[? _]|[Ht _]]]; [| |done|].
    + by apply none_before, body_from.
    + intros Hn'. apply Hu in Hw as [Hw|[Heq _]%pair_equal_spec].
      * apply elem_of_app in Hw as [Hw|Hw].
        -- destruct (data_unneeded (log_address g (n + j))) as [_ Hne]; [|by destruct (Hne (n + j))].
           by eapply elem_of_list_fmap_1_alt.
        -- apply elem_of_zip_r in Hw. apply (bodies_no_record _ _ _ Hw) in Hn' as ->. done.
      * destruct head_no_body. by rewrite <-Heq.
    + intros ->%(Htorn _ Ht). done.
  - destruct (torn_no_record n) as [Hno Htorn]. destruct (Hf' la) as [[->|Hw]|[[? _]|[Ht _]]]; [| |done|].
    + right. intros n' x. by apply none_before, head_from.
    + left. apply Hu in Hw as [Hw|[_ ->]%pair_equal_spec]; [|done]. by apply written_not_head in Hw.
    + right. by intros n' x ->%(Htorn _ Ht).
Qed.

Lemma none_unless_head f' :
  (∀ a n' x, a ∈ bws.*1 → unseal log_codec (f' a) = Some (n', x) → n' < n) →
  (∀ n' x, unseal log_codec (f' la) = Some (n', x) → n' < n) → none_from f' n.
Proof.
  intros Hbody Hhead a n' x Ha. destruct (decide (a = la)) as [->|Hne]; [apply Hhead|].
  by apply Hbody, from_body.
Qed.

Lemma safe_before_head u : (∀ a b', (a, b') ∈ u → (a, b') ∈ ws ++ bws) → safe P (Medium f u).
Proof.
  intros Hu f' Hf'. destruct (power_cut_leaves u f') as (Hsame&Hnone&_); [by left; apply Hu|done|].
  apply HP, recoverable_represents, without_record; [done|]. apply none_unless_head; [done|].
  intros n' x. destruct (may_be_in _ _ _ (Hf' la)) as [->|Hw]; [by apply none_before, head_from|].
  apply elem_of_list_fmap in Hw as ([a1 b1]&Heq&Hw%Hu%written_not_head). by destruct Hw.
Qed.

(** With the head in flight: the disk is as before, or as after, or recovery will see that data or bodies are
not there. *)
Lemma safe_with_head : safe P (Medium f ((la, b) :: reverse (ws ++ bws))).
Proof.
  intros f' Hf'. destruct (power_cut_leaves ((la, b) :: reverse (ws ++ bws)) f') as (Hsame&Hnone&Hla);
    [|exact Hf'|].
  { intros a b' [?|Hw]%elem_of_cons; [by right|]. left. by rewrite elem_of_reverse in Hw. }
  destruct Hla as [Hla|Hla].
  2:{ apply HP, recoverable_represents, without_record; [done|]. by apply none_unless_head. }
  pose proof log_positive_here as [_ Hnum]. pose proof size_of_pieces as Hsize.
  pose proof (log_pieces_some _ _ _ _ _ Hpieces) as (_&_&Hb).
  assert (unconfirmed y f' d → P f') as Hunconfirmed.
  { intros Hu. apply HP. exists y. split; [done|by right]. }
  assert (represents y (blanked y f') d) as Hblanked.
  { apply without_record; unfold blanked; fold g n la.
    - intros a Ha Hno. rewrite decide_False; [by apply Hsame|]. intros ->. apply Hno, head_from.
    - apply none_unless_head; fold g n la.
      + intros a n' x Ha. rewrite decide_False; [by apply Hnone|]. intros ->. by apply head_no_body.
      + intros n' x. rewrite decide_True by done. by intros ->%blank_record. }
  assert (bodies_at g f' n (length bodies_) = bodies_ ∨ bodies_ ≠ [] ∧
    (compared (bodies_at g f' n (length bodies_)) = true →
     digest (bodies_at g f' n (length bodies_)) ≠ digest bodies_)) as [Hbodies|[Hsome Hother]].
  { destruct (decide (bodies_ = [])) as [->|Hsome]; [by left|].
    destruct (compared (bodies_at g f' n (length bodies_))) eqn:Hc; [|by right].
    destruct (decide (digest (bodies_at g f' n (length bodies_)) = digest bodies_)); [left|by right].
    apply digest_injective; [done|by apply Hvouched|done]. }
  2:{ apply Hunconfirmed. split; [done|]. right. clear Hvouched. destruct bodies_ as [|b1 bs1]; [done|].
      destruct Hb as [Hb _]. exists (length (b1 :: bs1)), (digest (b1 :: bs1)), (digest data).
      fold g n la. rewrite Hla. split_and!; [done| |done]. by rewrite <-Hsize. }
  assert (lies_at g f' n (r, digest data)) as Hlies by by eapply pieces_lie.
  assert (none_from f' (S n)) as Hno_later.
  { intros a n' x Ha. destruct (decide (a = la)) as [->|Hne].
    - destruct (lies_number _ _ _ _ Hlies) as [x' Hx']. fold la in Hx'. rewrite Hx'. intros [= <- _]. lia.
    - intros Hn'. apply Nat.lt_lt_succ_r. by eapply Hnone; [apply from_body|]. }
  set (bs := blocks_at g f' places).
  assert (digest bs = digest data ∧ compared bs = true ∨
    (compared bs = true → digest bs ≠ digest data)) as [[Hthere Hbs]|Hother].
  { destruct (compared bs); [|by right]. destruct (decide (digest bs = digest data)); [by left|by right]. }
  - apply HP', (recoverable_represents (logged y r fr)), with_record; try done. by apply digest_injective.
  - pose proof (bool_decide_eq_true_1 _ Hroom) as Hfits. pose proof places_proper as Hproper.
    destruct Hy as [(m0&rs&Hdur&Hnext&Hcurrent&_&Hconf) _].
    apply Hunconfirmed. split; [done|]. left. exists m0, rs, (r, digest data).
    split_and!; try done; [|by apply (newest_known _ _ _ Hconf)].
    fold g. apply (durable_logged _ f); try done; rewrite <-?Hnext; try done.
    + intros a n' x Ha Hn'. apply Nat.lt_succ_r. by eapply Hno_later.
    + simpl. unfold g, n in *. lia.
    + intros a Ha Hno. apply Hsame; [|done]. intros [Hneed _]%data_unneeded. apply Hneed. by left.
Qed.

(** Once all is flushed, the record is there. *)
Lemma with_all_written :
  represents (logged y r fr) (read_block (write_block (Medium f (reverse (ws ++ bws))) la b)) d'.
Proof.
  pose proof log_positive_here as [_ Hnum].
  set (f' := read_block (write_block (Medium f (reverse (ws ++ bws))) la b)).
  assert (∀ a, a ≠ la → f' a = overlay (reverse (ws ++ bws)) f a) as Hread.
  { intros a Ha. unfold f', read_block. simpl. by rewrite decide_False. }
  assert (∀ a b', (a, b') ∈ ws ++ bws → f' a = b') as Hwritten.
  { intros a b' Hw. rewrite Hread by by eapply written_not_head.
    apply overlay_in; [|by rewrite elem_of_reverse].
    rewrite fmap_reverse, reverse_Permutation. apply written_apart. }
  assert (f' la = b) as Hla by (unfold f', read_block; simpl; by rewrite decide_True).
  assert (bodies_at g f' n (length bodies_) = bodies_) as Hbodies_at.
  { unfold bodies_at. apply list_eq. intros i. rewrite !list_lookup_fmap.
    destruct (bodies_ !! i) as [b'|] eqn:Hb'.
    - pose proof (lookup_lt_Some _ _ _ Hb'). rewrite lookup_seq_lt by done. simpl. f_equal.
      apply Hwritten, elem_of_app. right. apply elem_of_list_lookup. exists i. unfold bws.
      by rewrite lookup_zip_with, list_lookup_fmap, lookup_seq_lt, Hb' by done.
    - apply lookup_ge_None in Hb'. by rewrite lookup_ge_None_2 by (by rewrite seq_length). }
  assert (lies_at g f' n (r, digest data)) as Hlies by by eapply pieces_lie.
  apply with_record; [|  |done|].
  - intros a Ha Hno. rewrite Hread by (intros ->; apply Hno, head_from). apply overlay_out.
    rewrite fmap_reverse, elem_of_reverse, fmap_app, elem_of_app. intros [?|?%body_from]; done.
  - intros a n' x Ha. destruct (decide (a = la)) as [->|Hne].
    + destruct (lies_number _ _ _ _ Hlies) as [x' Hx']. fold la in Hx'. rewrite Hx'. intros [= <- _]. lia.
    + apply from_body in Ha; [|done]. apply elem_of_list_fmap in Ha as ([a1 b1]&->&Hw). simpl.
      rewrite (Hwritten a1 b1) by (apply elem_of_app; by right).
      apply elem_of_zip_r in Hw. intros ->%(bodies_no_record _ _ _ Hw). lia.
  - unfold blocks_at. apply list_eq. intros i. rewrite !list_lookup_fmap.
    destruct (places !! i) as [p|] eqn:Hp; simpl.
    + destruct (lookup_lt_is_Some_2 data i) as [b' Hb'].
      { rewrite <-Hlen. by eapply lookup_lt_Some. }
      rewrite Hb'. f_equal. apply Hwritten, elem_of_app. left. apply elem_of_list_lookup. exists i.
      unfold ws. by rewrite lookup_zip_with, list_lookup_fmap, Hp, Hb'.
    + symmetry. apply lookup_ge_None. apply lookup_ge_None in Hp. lia.
Qed.

Lemma crash_safe_written {A} (Q : A → medium block → Prop) k :
  (∀ f', represents (logged y r fr) f' d' → crash_safe P Q k (Medium f' [])) →
  crash_safe P Q (write_all (ws ++ bws) (WriteBlock la b (FlushBlocks k))) (Medium f []).
Proof.
  intros Hk.
  assert (∀ todo done_, ws ++ bws = reverse done_ ++ todo →
    crash_safe P Q (WriteBlock la b (FlushBlocks k)) (Medium f (reverse (ws ++ bws))) →
    crash_safe P Q (write_all todo (WriteBlock la b (FlushBlocks k))) (Medium f done_)) as Hwrites.
  { induction todo as [|[a1 b1] todo IH]; intros done_ Hall Hend.
    - rewrite app_nil_r in Hall. cbn [write_all]. by rewrite Hall, reverse_involutive in Hend.
    - split.
      + apply safe_before_head. intros a b' Hw. rewrite Hall. apply elem_of_app. left.
        by apply elem_of_reverse.
      + apply IH; [|done]. by rewrite reverse_cons, <-(assoc_L (++)). }
  apply (Hwrites _ []); [done|]. split; [|split].
  - apply safe_before_head. intros a b'. by rewrite elem_of_reverse.
  - apply safe_with_head.
  - apply Hk, with_all_written.
Qed.
End Record.

Lemma crash_safe_append {A} P (Q : A → medium block → Prop) y r data fr refused k f d d' :
  let places := places_of r in
  represents y f d → take_free places (free y) = Some fr → length places = length data →
  in_bounds (shape y) r →
  (∀ x p, middle (apply r (current y)) !! x = Some p → middle (current y) !! x = Some p ∨ p ∈ places) →
  (∀ f, recoverable (shape y) d f → P f) → (∀ f, recoverable (shape y) d' f → P f) →
  (∀ f', (∀ p b, (p, b) ∈ zip places data → f' (data_address (shape y) p) = b) →
     (∀ a, used_address (shape y) (current y) a → f' a = f a) →
     well_formed (apply r (current y)) fr ∧ agrees (shape y) f' (apply r (current y)) d') →
  crash_safe P Q refused (Medium f []) →
  (∀ f', represents (logged y r fr) f' d' → crash_safe P Q k (Medium f' [])) →
  crash_safe P Q (append y r data refused k) (Medium f []).
Proof.
  intros places Hy Hfree Hlen Hbounds Hmoved HP HP' Happly Hrefused Hk. unfold append, append_log.
  pose proof (safe_represents _ y f d Hy HP) as Hsafe. split; [done|]. intros Hcompared.
  destruct (log_pieces _ _ _) as [[bodies_ b]|] eqn:Hpieces; [|done].
  apply crash_safe_vouched; [done|]. intros Hvouched. destruct (room_for y _) eqn:Hroom; [|done].
  by eapply crash_safe_written.
Qed.

End Append.
