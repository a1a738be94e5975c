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
  pose proof (log_pieces_some _ _ _ _ _ Hpieces) as (Hsize&Hbodies&Hb).
  pose proof Hy as [(m0&rs&Hdur&Hnext&Hcur&[Hmid Hbelow]&Hconf) _].
  pose proof (log_positive _ _ _ _ _ _ _ Hdur) as Hpos.
  pose proof (log_numbered _ _ _ _ _ _ _ Hdur) as Hnum.
  assert (0 < next_record y) as Hnext_positive by lia.
  pose proof (bool_decide_eq_true_1 _ Hroom) as Hfits.
  assert (∀ i, ¬ tears (log_address (shape y) i) ∧
    ∀ b, tears_to (log_address (shape y) i) b → no_record b) as Hwhole.
  { intros i. destruct (log_unread _ _ _ _ _ _ _ Hdur (log_address (shape y) i)) as [? Hno];
      [by apply log_address_bound|]. split; [done|]. intros b' Hb'.
    pose proof (log_address_bound (shape y) i Hpos) as Hlow. apply unsealed_record, Hno; [done|].
    unfold superblock. lia. }
  pose proof (take_free_some _ _ _ Hfree) as (Hdup&Hin&Hless).
  assert (placed (logged y r fr)) as Hplaced.
  { split; simpl.
    - intros x p [Hp|Hp]%Hmoved; [by eapply Hmid|]. by apply Hbelow, Hin.
    - intros p Hp. apply Hbelow. destruct (free y !! p) eqn:Hnone; [by eexists|].
      rewrite (Hless p Hnone) in Hp. by destruct Hp. }
  assert (proper_places (shape y) places) as Hproper by (split; [done|]; intros p Hp; by apply Hbelow, Hin).
  set (g := shape y) in *. set (n := next_record y) in *. set (la := log_address g n) in *.
  set (ws := zip (data_address g <$> places) data).
  set (bws := zip (log_address g <$> seq (S n) (length bodies_)) bodies_).
  assert (ws.*1 = data_address g <$> places) as Haddresses by (apply fst_zip; rewrite fmap_length; lia).
  assert (bws.*1 = log_address g <$> seq (S n) (length bodies_)) as Hlogged
    by (apply fst_zip; rewrite fmap_length, seq_length; lia).
  assert (∀ a, a ∈ bws.*1 → ∃ j, 0 < j < size_of r ∧ a = log_address g (n + j)) as Hbehind.
  { intros a. rewrite Hlogged. intros (i&->&Hi%elem_of_seq)%elem_of_list_fmap. exists (i - n).
    split; [lia|]. by replace (n + (i - n)) with i by lia. }
  assert (∀ a, a ∈ bws.*1 → log_from g n (size_of r) a) as Hbody_from.
  { intros a (j&Hj&->)%Hbehind. exists j. split; [lia|done]. }
  assert (log_from g n (size_of r) la) as Hla_from.
  { exists 0. split; [lia|]. by rewrite Nat.add_0_r. }
  assert (∀ a, log_from g n (size_of r) a → a ≠ la → a ∈ bws.*1) as Hfrom.
  { intros a (j&Hj&->) Hne. rewrite Hlogged. apply elem_of_list_fmap. exists (n + j). split; [done|].
    apply elem_of_seq. destruct j as [|j]; [|lia]. destruct Hne. by rewrite Nat.add_0_r. }
  assert (la ∉ bws.*1) as Hla_body.
  { intros (j&Hj&Heq)%Hbehind. revert Heq. apply log_address_distinct. unfold n in *. lia. }
  assert (∀ a, a ∈ ws.*1 → ¬ needed y a ∧ ∀ i, a ≠ log_address g i) as Hunneeded.
  { intros a. rewrite Haddresses. intros (p&->&Hp)%elem_of_list_fmap.
    split; [|intros i; by apply data_not_log]. eapply free_not_needed; [done|]. by apply Hin. }
  assert ((ws ++ bws).*1 = ws.*1 ++ bws.*1) as Happ by apply fmap_app.
  assert (NoDup (ws ++ bws).*1) as Hdup_all.
  { rewrite Happ. apply NoDup_app. split_and!.
    - rewrite Haddresses. apply NoDup_fmap_2; [|done]. intros p1 p2. apply data_address_inj.
    - intros a [_ Ha]%Hunneeded (j&_&->)%Hbehind. by apply (Ha (n + j)).
    - rewrite Hlogged. apply NoDup_fmap_2_strong; [|apply NoDup_seq].
      intros i j Hi%elem_of_seq Hj%elem_of_seq Heq. destruct (decide (i = j)) as [|Hne]; [done|].
      exfalso. destruct (decide (i < j)) as [Hij|Hij].
      + revert Heq. apply log_address_distinct. unfold n in *. lia.
      + symmetry in Heq. revert Heq. apply log_address_distinct. unfold n in *. lia. }
  (* what is in the log where the record goes, as long as its first block is not there *)
  assert (∀ f', (∀ a, a ∉ ws.*1 → ¬ log_from g n (size_of r) a → f' a = f a) →
    (∀ a n' x, log_from g n (size_of r) a → unseal log_codec (f' a) = Some (n', x) → n' < n) →
    represents y f' d) as Hbefore.
  { intros f' Hf' Hnone. apply (represents_blanked y f f' d (size_of r)); try done.
    intros a Ha Hno. apply Hf'; [|done]. by intros [? _]%Hunneeded. }
  assert (∀ a n' x, log_from g n (size_of r) a → unseal log_codec (f a) = Some (n', x) → n' < n) as Hstale.
  { intros a n' x (j&_&->) Hn'. apply (at_stale _ _ _ _ _ _ _ Hdur) in Hn'. unfold n. lia. }
  assert (∀ f', (∀ a, a ∉ ws.*1 → ¬ log_from g n (size_of r) a → f' a = f a) →
    lies_at g f' n (r, digest data) →
    (∀ a n' x, log_from g n (size_of r) a → unseal log_codec (f' a) = Some (n', x) → n' ≤ n) →
    blocks_at g f' places = data → represents (logged y r fr) f' d') as Hafter.
  { intros f' Hold Hlies Hnone Hdata.
    assert (∀ a, needed y a → ¬ log_from g n (size_of r) a → f' a = f a) as Hneeded.
    { intros a Ha. apply Hold. by intros [? _]%Hunneeded. }
    destruct (Happly f') as [Hwf Hag].
    - intros p b' (i&(p'&b''&[= <- <-]&Hp&Hb')%lookup_zip_with_Some)%elem_of_list_lookup.
      rewrite <-Hdata in Hb'. unfold blocks_at in Hb'. rewrite !list_lookup_fmap, Hp in Hb'. by simplify_eq/=.
    - intros a Ha. apply Hneeded; [by right; left|]. destruct Ha as (x&p&_&_&->).
      intros (j&_&Heq). by eapply data_not_log.
    - apply (represents_logged y f f' d d' r fr (digest data)); try done;
        [intros p Hp; by apply Hin|]. fold g places. by rewrite Hdata. }
  (* what a power cut leaves before the flush *)
  assert (∀ u f', (∀ a b', (a, b') ∈ u → (a, b') ∈ ws ++ bws ∨ (a, b') = (la, b)) →
    may_leave (Medium f u) f' →
    (∀ a, a ∉ ws.*1 → ¬ log_from g n (size_of r) a → f' a = f a) ∧
    (∀ a n' x, a ∈ bws.*1 → unseal log_codec (f' a) = Some (n', x) → n' < n) ∧
    (f' la = b ∨ ∀ n' x, unseal log_codec (f' la) = Some (n', x) → n' < n)) as Hleft.
  { intros u f' Hu Hf'.
    assert (∀ a, a ∉ ws.*1 → ¬ log_from g n (size_of r) a → a ∉ u.*1) as Hout.
    { intros a Ha Hno ([a1 b1]&->&Hin1)%elem_of_list_fmap. apply Hu in Hin1 as [Hin1|[= -> ->]]; [|done].
      apply elem_of_app in Hin1 as [Hin1|Hin1].
      - apply Ha, elem_of_list_fmap. by exists (a1, b1).
      - apply Hno, Hbody_from, elem_of_list_fmap. by exists (a1, b1). }
    split_and!.
    - intros a Ha Hno. destruct (may_be_in _ _ _ (Hf' a)) as [|Hw]; [done|]. by destruct (Hout a Ha Hno).
    - intros a n' x Ha. pose proof (Hbehind a Ha) as (j&Hj&->).
      destruct (Hwhole (n + j)) as [Hno Htorn]. destruct (Hf' (log_address g (n + j))) as
        [[->|Hw]|[[? _]|[Ht _]]]; [|  |done|].
      + by apply Hstale, Hbody_from.
      + intros Hn'. apply Hu in Hw as [Hw|[Heq _]%pair_equal_spec].
        * apply elem_of_app in Hw as [Hw|Hw].
          -- destruct (Hunneeded (log_address g (n + j))) as [_ Hne]; [|by destruct (Hne (n + j))].
             by eapply elem_of_list_fmap_1_alt.
          -- apply elem_of_zip_r in Hw. apply (Hbodies _ _ _ Hw) in Hn' as ->. done.
        * destruct Hla_body. by rewrite <-Heq.
      + intros ->%(Htorn _ Ht). done.
    - destruct (Hwhole n) as [Hno Htorn]. destruct (Hf' la) as [[->|Hw]|[[? _]|[Ht _]]]; [| |done|].
      + right. intros n' x. by apply Hstale.
      + left. apply Hu in Hw as [Hw|[_ ->]%pair_equal_spec]; [|done]. apply elem_of_app in Hw as [Hw|Hw].
        * destruct (Hunneeded la) as [_ Hne]; [|by destruct (Hne n)]. by eapply elem_of_list_fmap_1_alt.
        * destruct Hla_body. by eapply elem_of_list_fmap_1_alt.
      + right. by intros n' x ->%(Htorn _ Ht). }
  assert (∀ u, (∀ a b', (a, b') ∈ u → (a, b') ∈ ws ++ bws) → safe P (Medium f u)) as Hsafe_before.
  { intros u Hu f' Hf'. destruct (Hleft u f') as (Hold&Hnone&_); [by left; apply Hu|done|].
    apply HP, recoverable_represents, Hbefore; [done|]. intros a n' x Ha.
    destruct (decide (a = la)) as [->|Hne]; [|by apply Hnone, Hfrom].
    destruct (may_be_in _ _ _ (Hf' la)) as [->|Hw]; [by apply Hstale|]. exfalso.
    apply elem_of_list_fmap in Hw as ([a1 b1]&Heq&Hw%Hu). simpl in Heq. rewrite <-Heq in Hw.
    apply elem_of_app in Hw as [Hw|Hw].
    - destruct (Hunneeded la) as [_ Hne]; [|by destruct (Hne n)]. by eapply elem_of_list_fmap_1_alt.
    - apply Hla_body. by eapply elem_of_list_fmap_1_alt. }
  assert (∀ todo done_, ws ++ bws = reverse done_ ++ todo →
    crash_safe P Q (WriteBlock la b (FlushBlocks k)) (Medium f (reverse (ws ++ bws))) →
    crash_safe P Q (write_all todo (WriteBlock la b (FlushBlocks k))) (Medium f done_)) as Hwrites.
  { induction todo as [|[a1 b1] todo IH]; intros done_ Hall Hend.
    - rewrite app_nil_r in Hall. cbn [write_all]. by rewrite Hall, reverse_involutive in Hend.
    - split.
      + apply Hsafe_before. intros a b' Hw. rewrite Hall. apply elem_of_app. left. by apply elem_of_reverse.
      + apply IH; [|done]. by rewrite reverse_cons, <-(assoc_L (++)). }
  apply (Hwrites _ []); [done|]. split; [|split].
  - apply Hsafe_before. intros a b'. by rewrite elem_of_reverse.
  - intros f' Hf'. destruct (Hleft ((la, b) :: reverse (ws ++ bws)) f') as (Hold&Hnone&Hla); [|exact Hf'|].
    { intros a b' [?|Hw]%elem_of_cons; [by right|]. left. by rewrite elem_of_reverse in Hw. }
    destruct Hla as [Hla|Hla].
    2:{ apply HP, recoverable_represents, Hbefore; [done|]. intros a n' x Ha.
        destruct (decide (a = la)) as [->|Hne]; [by apply Hla|by apply Hnone, Hfrom]. }
    assert (unconfirmed y f' d → P f') as Hunconfirmed.
    { intros Hu. apply HP. exists y. split; [done|by right]. }
    assert (represents y (blanked y f') d) as Hblanked.
    { apply Hbefore; unfold blanked; fold g n la.
      - intros a Ha Hno. rewrite decide_False; [by apply Hold|]. by intros ->.
      - intros a n' x Ha. destruct (decide (a = la)) as [->|Hne]; [|by apply Hnone, Hfrom].
        intros ->%blank_record. done. }
    assert (bodies_at g f' n (length bodies_) = bodies_ ∨ bodies_ ≠ [] ∧
      (compared (bodies_at g f' n (length bodies_)) = true →
       digest (bodies_at g f' n (length bodies_)) ≠ digest bodies_)) as [Hsame|[Hsome Hother]].
    { destruct (decide (bodies_ = [])) as [->|Hsome]; [by left|].
      destruct (compared (bodies_at g f' n (length bodies_))) eqn:Hc; [|by right].
      destruct (decide (digest (bodies_at g f' n (length bodies_)) = digest bodies_)); [left|by right].
      apply digest_injective; [done|by apply Hvouched|done]. }
    2:{ apply Hunconfirmed. split; [done|]. right. destruct bodies_ as [|b1 bs1] eqn:Hbs; [done|].
        destruct Hb as [Hb _]. exists (length (b1 :: bs1)), (digest (b1 :: bs1)), (digest data).
        fold g n la. rewrite Hla. split_and!; [done| |done]. by rewrite <-Hsize. }
    assert (lies_at g f' n (r, digest data)) as Hlies by by eapply pieces_lie.
    assert (∀ a n' x, log_from g n (size_of r) a → unseal log_codec (f' a) = Some (n', x) → n' ≤ n)
      as Hno_later.
    { intros a n' x Ha. destruct (decide (a = la)) as [->|Hne].
      - destruct (lies_number _ _ _ _ Hlies) as [x' Hx']. fold la in Hx'. rewrite Hx'. by intros [= <- _].
      - intros Hn'. apply Nat.lt_le_incl. by eapply Hnone; [apply Hfrom|]. }
    set (bs := blocks_at g f' places).
    assert (digest bs = digest data ∧ compared bs = true ∨
      (compared bs = true → digest bs ≠ digest data)) as [[Hthere Hbs]|Hother].
    { destruct (compared bs); [|by right]. destruct (decide (digest bs = digest data)); [by left|by right]. }
    + apply HP', (recoverable_represents (logged y r fr)), Hafter; try done. by apply digest_injective.
    + apply Hunconfirmed. split; [done|]. left. exists m0, rs, (r, digest data).
      split_and!; try done; [|by apply (newest_known _ _ _ Hconf)].
      fold g. apply (durable_logged _ f); try done; rewrite <-?Hnext; try done.
      * simpl. unfold g, n in *. lia.
      * intros a Ha Hno. apply Hold; [|done]. intros [Hneed _]%Hunneeded. apply Hneed. by left.
  - assert (∀ a b', (a, b') ∈ ws ++ bws → a ≠ la) as Hnot_la.
    { intros a b' [Hw|Hw]%elem_of_app ->.
      - destruct (Hunneeded la) as [_ Hne]; [|by destruct (Hne n)]. by eapply elem_of_list_fmap_1_alt.
      - apply Hla_body. by eapply elem_of_list_fmap_1_alt. }
    set (f' := read_block (write_block (Medium f (reverse (ws ++ bws))) la b)).
    assert (∀ a, a ≠ la → f' a = overlay (reverse (ws ++ bws)) f a) as Hread.
    { intros a Ha. unfold f', read_block. simpl. by rewrite decide_False. }
    assert (∀ a b', (a, b') ∈ ws ++ bws → f' a = b') as Hwritten.
    { intros a b' Hw. rewrite Hread by by eapply Hnot_la. apply overlay_in; [|by rewrite elem_of_reverse].
      by rewrite fmap_reverse, reverse_Permutation. }
    assert (f' la = b) as Hla by (unfold f', read_block; simpl; by rewrite decide_True).
    assert (bodies_at g f' n (length bodies_) = bodies_) as Hbodies_at.
    { unfold bodies_at. apply list_eq. intros i. rewrite !list_lookup_fmap.
      destruct (bodies_ !! i) as [b'|] eqn:Hb'.
      - pose proof (lookup_lt_Some _ _ _ Hb'). rewrite lookup_seq_lt by done. simpl. f_equal.
        apply Hwritten, elem_of_app. right. apply elem_of_list_lookup. exists i. unfold bws.
        by rewrite lookup_zip_with, list_lookup_fmap, lookup_seq_lt, Hb' by done.
      - apply lookup_ge_None in Hb'. by rewrite lookup_ge_None_2 by (by rewrite seq_length). }
    apply Hk, Hafter.
    + intros a Ha Hno. rewrite Hread by by intros ->. apply overlay_out.
      rewrite fmap_reverse, elem_of_reverse, Happ, elem_of_app. intros [?|?%Hbody_from]; done.
    + by eapply pieces_lie.
    + intros a n' x Ha. destruct (decide (a = la)) as [->|Hne].
      * assert (lies_at g f' n (r, digest data)) as Hlies by by eapply pieces_lie.
        destruct (lies_number _ _ _ _ Hlies) as [x' Hx']. fold la f' in Hx' |- *. rewrite Hx'.
        by intros [= <- _].
      * apply Hfrom in Ha; [|done]. apply elem_of_list_fmap in Ha as ([a1 b1]&->&Hw).
        fold f'. simpl. rewrite (Hwritten a1 b1) by (apply elem_of_app; by right).
        apply elem_of_zip_r in Hw. intros ->%(Hbodies _ _ _ Hw). lia.
    + unfold blocks_at. apply list_eq. intros i. rewrite !list_lookup_fmap.
      destruct (places !! i) as [p|] eqn:Hp; simpl.
      * destruct (lookup_lt_is_Some_2 data i) as [b' Hb'].
        { rewrite <-Hlen. by eapply lookup_lt_Some. }
        rewrite Hb'. f_equal. apply Hwritten, elem_of_app. left. apply elem_of_list_lookup. exists i.
        unfold ws. by rewrite lookup_zip_with, list_lookup_fmap, Hp, Hb'.
      * symmetry. apply lookup_ge_None. apply lookup_ge_None in Hp. lia.
Qed.

End Append.
