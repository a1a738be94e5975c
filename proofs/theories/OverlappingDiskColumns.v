(** One block of a disk by itself, its column, and a disk without its data.

A column is the contract on a disk of one block, where each event does what it does to this block. A disk
without data has the values of type [unit]: it tells which snapshots there are, and what is refused. Each is
followed from the disk, step by step; and all columns together with the disk without data lead back to it, if
  a
power cut leaves each block by itself ([Ack], [Block]). *)
From LogDisk Require Import VirtualDisk VirtualDiskProperties RecordedTrace OverlappingDisk.

Definition no_data : Value unit := tt.
Local Existing Instance no_data.

Definition forget {V} (data : list V) : list unit := (λ _, tt) <$> data.

Definition without_data {V} (en : entry V) : entry unit :=
  match en with
  | Event (Create blocks) => Event (Create blocks)
  | Event (Write lba data r) => Event (Write lba (forget data) r)
  | Event (WriteThrough lba data told r) => Event (WriteThrough lba (forget data) told r)
  | Event (Unmap lba count r) => Event (Unmap lba count r)
  | Event (Snapshot n r) => Event (Snapshot n r)
  | Event (Delete n r) => Event (Delete n r)
  | Event (Revert n r) => Event (Revert n r)
  | Event (Flush r) => Event (Flush r)
  | Event (Restart r) => Event (Restart r)
  | Event (Read from lba count r data) => Event (Read from lba count r (forget data))
  | Event (Crash r) => Event (Crash r)
  | Fail d r => Fail d r
  | Return d r => Return d r
  | Replace d r => Replace d r
  | Settle r => Settle r
  | Hint r => Hint r
  end.

Section Columns.
Context {V : Type} `{Value V}.
Implicit Types (en : entry V) (s c : state V) (u : state unit) (d : disk V) (i j : image V)
  (m : gmap name (view V)).

(** What an event does to block [b], as an event of a disk of one block. *)
Definition on_block (b : nat) en : entry V :=
  match en with
  | Event (Write lba data Ok) =>
      match data_at lba data b with Some v => Event (Write 0 [v] Ok) | None => Hint Ok end
  | Event (WriteThrough lba data told Ok) =>
      match data_at lba data b with Some v => Event (WriteThrough 0 [v] told Ok) | None => Hint Ok end
  | Event (Unmap lba count Ok) => if decide (lba ≤ b < lba + count) then Event (Unmap 0 1 Ok) else Hint Ok
  | Event (Read from lba count Ok data) =>
      match data_at lba data b with Some v => Event (Read from 0 1 Ok [v]) | None => Hint Ok end
  | Event (Snapshot _ Ok) | Event (Delete _ Ok) | Event (Revert _ Ok) | Event (Flush _) | Event (Restart _)
    | Event (Crash _) | Event (Create _) => en
  | en => Hint (answer_of en)
  end.

(** Its outcome is the same for all blocks. *)
Definition is_whole en : Prop :=
  match en with
  | Event (Create _) => False
  | Event (Write _ _ r) | Event (WriteThrough _ _ _ r) | Event (Unmap _ _ r) | Event (Snapshot _ r)
    | Event (Delete _ r) | Event (Revert _ r) => sure r = true
  | _ => True
  end.

(** ** What is the case in every state *)

Definition steady (p : profile) s : Prop := current p s ∧ ∃ i, i ∈ survivors s ∧ resolves i (now s).

Lemma steady_created p blocks : steady p (created (V := V) blocks).
Proof. split; [apply current_exactly|]. exists (exactly blank). split; [left|apply resolves_exactly]. Qed.

Lemma steady_cut p s left : steady p s → steady p (cut s left).
Proof. intros [_ (i & Hi & Hr)]. split; [done|]. exists i. split; [apply elem_of_app; by right|done]. Qed.

Lemma steady_answered p s r faults excuses d left s' : answered s r faults excuses d left s' → current p s' →
  steady p s → power s = true → steady p s'.
Proof.
  intros [_ Ha] Hc Hs Hp. destruct r as [|c| |].
  - destruct Ha as [_ ->]. split; [done|]. by apply Hc.
  - by destruct Ha as [_ ->].
  - destruct Ha as [->|[_ ->]]; [done|]. split; [done|]. by apply Hc.
  - subst. by apply steady_cut.
Qed.

Lemma steady_step p s e s' : step p s e s' → steady p s → steady p s'.
Proof.
  intros Hs [Hc Hh]. pose proof (step_current _ _ _ _ Hc Hs) as Hc'. pose proof (conj Hc Hh : steady p s) as
    Hst.
  destruct e as [blocks|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r];
    cbn in Hs; try (eapply steady_answered; [exact Hs|done|done|by destruct Hs]).
  - subst. apply steady_created.
  - eapply steady_answered; [apply Hs|done|done|by destruct Hs as [[] _]].
  - destruct r; try done; [|subst; by apply steady_cut]. destruct Hs as (i & d & _ & _ & ->).
    split; [done|]. exists (exactly d). split; [left|apply resolves_exactly].
Qed.

Lemma steady_entry p tolerates v s en s' : entry_step p tolerates v s en s' → steady p s → steady p s'.
Proof.
  intros He Hs. destruct en as [e|? r|? r|? r|r|r]; cbn in He;
    try (by destruct He as [_ ->]; destruct r; [..|apply steady_cut]).
  destruct He as [He|Hl]; [by eapply steady_step|].
  destruct e as [| | | | | | | | |? ? ? [|[]| |] ?|]; try done. by destruct Hl as (_ & _ & ->).
Qed.

(** ** A disk without its data *)

Definition same_names {A B} (m : gmap name A) (m' : gmap name B) : Prop :=
  ∀ n, is_Some (m !! n) ↔ is_Some (m' !! n).
Definition images_named {A B} (is : list (image A)) (m : gmap name B) : Prop :=
  ∀ i : image A, i ∈ is → same_names (with_snaps i) m.

Definition forgets s u : Prop := size s = size u ∧ power s = power u ∧
  same_names (snaps (now s)) (snaps (now u)) ∧
  images_named (survivors s) (snaps (now u)) ∧ images_named (survivors u) (snaps (now u)).

Lemma missing_named d (d' : disk unit) n : same_names (snaps d) (snaps d') → missing d n = missing d' n.
Proof. intros Hn. unfold missing. destruct (valid_name n); [|done]. specialize (Hn n).
  repeat case_decide; naive_solver. Qed.
Lemma taken_named d (d' : disk unit) n : same_names (snaps d) (snaps d') →
  VirtualDisk.taken d n = VirtualDisk.taken d' n.
Proof. intros Hn. unfold VirtualDisk.taken. destruct (valid_name n); [|done]. specialize (Hn n).
  repeat case_decide; naive_solver. Qed.
Lemma view_named d (d' : disk unit) from : same_names (snaps d) (snaps d') →
  missing_view d from = missing_view d' from.
Proof. destruct from; [done|]. apply missing_named. Qed.

Lemma named_insert {A B} (m : gmap name A) (m' : gmap name B) n x y : same_names m m' →
  same_names (<[n := x]> m) (<[n := y]> m').
Proof. intros Hn a. destruct (decide (n = a)) as [->|?]; [rewrite !lookup_insert|rewrite !lookup_insert_ne by
  done; apply Hn]. split; eauto. Qed.
Lemma named_delete {A B} (m : gmap name A) (m' : gmap name B) n : same_names m m' →
  same_names (delete n m) (delete n m').
Proof. intros Hn a. destruct (decide (n = a)) as [->|?]; [rewrite !lookup_delete|rewrite !lookup_delete_ne by
  done; apply Hn]. split; intros [? ?]; done. Qed.

Lemma named_exactly {A B} (d : disk A) (m : gmap name B) : same_names (snaps d) m →
  images_named [exactly d] m.
Proof. by intros Hn i ->%elem_of_list_singleton. Qed.

End Columns.

Section Images.
Context {A B : Type} `{Value A}.
Implicit Types (s : state A) (d : disk A) (m : gmap name B).

Lemma named_buffered p s d m : p ≠ Prefix → same_names (snaps d) m → images_named (survivors s) m →
  images_named (buffered p s d) m.
Proof. intros Hp Hd Hi. destruct p; [by apply named_exactly|done|].
  intros i (j & -> & ?%Hi)%elem_of_list_fmap. done. Qed.
Lemma named_through p s told d lba data m : p ≠ Prefix → same_names (snaps d) m →
  images_named (survivors s) m → images_named (written_through p s told d lba data) m.
Proof. intros Hp Hd Hi. pose proof (named_buffered p s d m Hp Hd Hi). destruct p, told; try done.
  intros i (j & -> & ?%Hi)%elem_of_list_fmap. done. Qed.
Lemma named_recorded p s d m : p ≠ Prefix → same_names (snaps d) m → images_named (recorded p s d) m.
Proof. intros Hp Hd. destruct p; by try apply named_exactly. Qed.
End Images.

Ltac names := first
  [ done
  | apply named_exactly; names
  | apply named_buffered; [done|names|names]
  | apply named_through; [done|names|names]
  | apply named_recorded; [done|names]
  | apply named_insert; names
  | apply named_delete; names ].

Section Forgetting.
Context {V : Type} `{Value V}.
Implicit Types (en : entry V) (s : state V) (u : state unit) (d : disk V).

Lemma fits_forget s u lba count : size s = size u → out_of_range s lba count = out_of_range u lba count.
Proof. intros Hz. unfold out_of_range. by rewrite Hz. Qed.

Lemma forgets_happens s u d (du : disk unit) left left' : forgets s u → same_names (snaps d) (snaps du) →
  images_named left (snaps du) → images_named left' (snaps du) → forgets (happens s d left) (happens u du
    left').
Proof. intros (? & ? & _) ? ? ?. by split_and!. Qed.

Lemma forgets_cut s u left left' : forgets s u → images_named left (snaps (now u)) →
  images_named left' (snaps (now u)) → forgets (cut s left) (cut u left').
Proof. intros (? & ? & ? & Hi & Hi') Hl Hl'. split_and!; cbn; try done; intros i [?|?]%elem_of_app; auto. Qed.

Lemma named_nil {A B} (m : gmap name B) : images_named (A := A) [] m.
Proof. by intros i ?%elem_of_nil. Qed.

Lemma forgets_answered s u r faults excuses d du left left' s' : forgets s u →
  forgets (happens s d left) (happens u du left') →
  sure r = true ∨ images_named left (snaps (now u)) ∧ images_named left' (snaps (now u)) →
  answered s r faults excuses d left s' →
  ∃ u', answered u r faults excuses du left' u' ∧ forgets s' u'.
Proof.
  intros Hf Hh Hr [Hp Ha]. pose proof Hf as (_ & Hpw & _). rewrite Hp in Hpw. symmetry in Hpw.
  destruct r as [|c| |].
  - destruct Ha as [? ->]. by eexists.
  - destruct Ha as [? ->]. by exists u.
  - destruct Ha as [->|[? ->]]; [exists u; split; [split; [done|by left]|done]|].
    eexists. split; [split; [done|by right]|done].
  - destruct Hr as [?|[Hl Hl']]; [done|]. subst. eexists. split; [by split|].
    apply forgets_cut; [done|..]; destruct faults; try done; apply named_nil.
Qed.

Ltac follow du left' Hs :=
  eapply (forgets_answered _ _ _ _ _ _ du _ left') in Hs as (u' & Ha & ?);
  [|done|apply forgets_happens; [done|names..]|first [by left|right; split; names]].

Lemma forget_step p tolerates v s u en s' : p ≠ Prefix → is_whole en → forgets s u → steady p u →
  entry_step p tolerates v s en s' → ∃ u', entry_step p tolerates v u (without_data en) u' ∧ forgets s' u'.
Proof.
  intros Hpr Hw Hf Hst He. pose proof Hf as (Hz & Hpw & Hn & Hi & Hi').
  assert (∀ r, outside s r s' → ∃ u', outside u r u' ∧ forgets s' u') as Hout.
  { intros r [Hp ->]. rewrite Hp in Hpw. destruct r; eexists; (split; [by split|]); try done.
    }
  assert (same_names (snaps (now u)) (snaps (now u))) as Hu by done.
  destruct en as [e|? r|? r|? r|r|r]; try by apply Hout.
  destruct He as [Hs|Hl].
  - assert (∃ u', step p u (match without_data (Event e) with Event e => e | _ => Crash Ok end) u' ∧ forgets
    s' u')
      as (u' & ? & ?).
    { destruct e as [blocks|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r];
        cbn in Hs, Hw |- *; try done.
      - pose (du := written (now u) lba (forget data)).
        follow du (buffered p u du) Hs. exists u'. split; [|done].
        unfold forget. rewrite fmap_length. by rewrite <-(fits_forget s).
      - pose (du := written (now u) lba (forget data)).
        follow du (written_through p u told du lba (forget data)) Hs. exists u'. split; [|done].
        unfold forget. rewrite fmap_length. by rewrite <-(fits_forget s).
      - pose (du := unmapped (now u) lba count).
        follow du (buffered p u du) Hs. exists u'. split; [|done]. by rewrite <-(fits_forget s).
      - follow (snapshotted (now u) n) (recorded p u (snapshotted (now u) n)) Hs. exists u'. split; [|done].
        by rewrite <-(taken_named (now s)).
      - follow (deleted (now u) n) (recorded p u (deleted (now u) n)) Hs. exists u'. split; [|done].
        by rewrite <-(missing_named (now s)).
      - follow (reverted (now u) n) (recorded p u (reverted (now u) n)) Hs. exists u'. split; [|done].
        by rewrite <-(missing_named (now s)).
      - follow (now u) [exactly (now u)] Hs. by exists u'.
      - follow (now u) [exactly (now u)] Hs. by exists u'.
      - destruct Hs as [Hs Hr]. follow (now u) (survivors u) Hs. exists u'. split; [|done].
        split; [by rewrite <-(fits_forget s), <-(view_named (now s))|].
        intros Hok. destruct (Hr Hok) as (f & Hf' & ->).
        assert (∃ g, view_of (now u) from = Some g) as [g Hg].
        { destruct from as [|n]; [by eexists|]. cbn in *. apply Hn. by exists f. }
        exists g. split; [done|]. unfold forget. rewrite <-!list_fmap_compose. apply list_fmap_ext.
        intros ? ? ?. cbn. by destruct (g _).
      - destruct r; try done; [|subst; exists (cut u []); split; [done|]].
        2: by apply forgets_cut; [|apply named_nil..].
        destruct Hs as (i & d & Hi1 & [_ Hd] & ->). destruct Hst as (_ & j & Hj & Hr). eexists.
        split; [by exists j, (now u)|]. specialize (Hi _ Hi1). rewrite <-Hd in Hi. by split_and!; cbn; try
          names. }
    exists u'. split; [|done]. by destruct e; left.
  - destruct e as [| | | | | | | | |? ? ? [|[]| |] ?|]; try done. destruct Hl as (Hb & Hp & ->). exists u.
    split; [|done]. right. split; [done|]. split; [|done]. by rewrite <-Hpw.
Qed.

End Forgetting.

(** ** A column follows the disk *)

Section Following.
Context {V : Type} `{Value V}.
Implicit Types (en : entry V) (s c : state V) (d : disk V) (i j : image V) (is js : list (image V))
  (m : gmap name (view V)) (b lba count : nat) (data : list V).

Definition names_alike b m m' : Prop := ∀ n, (λ f : view V, f b) <$> m !! n = (λ f : view V, f 0) <$> m' !! n.
Definition disk_alike b d d' : Prop := live d b = live d' 0 ∧ names_alike b (snaps d) (snaps d').
Definition narrows b i j : Prop :=
  (∀ v, v ∈ may_hold i b → v ∈ may_hold j 0) ∧ names_alike b (with_snaps i) (with_snaps j).
Definition covers d j : Prop := ∀ l, live d l ∈ may_hold j l.

(** The disk [d'] is what the column may be. *)
Definition images_follow b d' is js : Prop := ∀ i, i ∈ is → ∃ j, j ∈ js ∧ narrows b i j ∧ covers d' j.
Definition follows b s c : Prop := size c = 1 ∧ power s = power c ∧ disk_alike b (now s) (now c) ∧
  images_follow b (now c) (survivors s) (survivors c).

Lemma data_at_replicate lba count b :
  data_at lba (replicate count zero) b = if decide (lba ≤ b < lba + count) then Some (zero : V) else None.
Proof. unfold data_at. repeat case_decide; try lia; try done.
  - rewrite lookup_replicate_2 by lia. done.
  - apply lookup_replicate_None. lia. Qed.

Lemma alike_written b d d' lba data v : disk_alike b d d' → data_at lba data b = Some v →
  disk_alike b (written d lba data) (written d' 0 [v]).
Proof. intros [Hl Hs] Hd. split; [|done]. cbn. by rewrite Hd. Qed.
Lemma alike_spared b d d' lba data : disk_alike b d d' → data_at lba data b = None →
  disk_alike b (written d lba data) d'.
Proof. intros [Hl Hs] Hd. split; [|done]. cbn. by rewrite Hd. Qed.
Lemma alike_snapshotted b d d' n : disk_alike b d d' → disk_alike b (snapshotted d n) (snapshotted d' n).
Proof. intros [Hl Hs]. split; [done|]. intros a. cbn. destruct (decide (n = a)) as [->|?].
  - rewrite !lookup_insert. cbn. by rewrite Hl.
  - rewrite !lookup_insert_ne by done. apply Hs. Qed.
Lemma alike_deleted b d d' n : disk_alike b d d' → disk_alike b (deleted d n) (deleted d' n).
Proof. intros [Hl Hs]. split; [done|]. intros a. cbn. destruct (decide (n = a)) as [->|?].
  - by rewrite !lookup_delete.
  - rewrite !lookup_delete_ne by done. apply Hs. Qed.
Lemma alike_reverted b d d' n : disk_alike b d d' → disk_alike b (reverted d n) (reverted d' n).
Proof. intros [Hl Hs]. split; [|done]. cbn. specialize (Hs n). by destruct (snaps d !! n), (snaps d' !! n);
  cbn in *; simplify_eq. Qed.

Lemma alike_some b d d' n : disk_alike b d d' → is_Some (snaps d !! n) ↔ is_Some (snaps d' !! n).
Proof. intros [_ Hs]. specialize (Hs n). destruct (snaps d !! n), (snaps d' !! n); cbn in *; try done.
Qed.
Lemma alike_missing b d d' n : disk_alike b d d' → missing d n = missing d' n.
Proof. intros Hd. unfold missing. destruct (valid_name n); [|done]. pose proof (alike_some _ _ _ n Hd).
  repeat case_decide; naive_solver. Qed.
Lemma alike_taken b d d' n : disk_alike b d d' → VirtualDisk.taken d n = VirtualDisk.taken d' n.
Proof. intros Hd. unfold VirtualDisk.taken. destruct (valid_name n); [|done].
  pose proof (alike_some _ _ _ n Hd). repeat case_decide; naive_solver. Qed.
Lemma alike_missing_view b d d' from : disk_alike b d d' → missing_view d from = missing_view d' from.
Proof. destruct from; [done|]. apply alike_missing. Qed.

Lemma fits_one c : size c = 1 → out_of_range c 0 1 = [].
Proof. intros Hz. unfold out_of_range, fits. rewrite Hz. case_decide; [done|lia]. Qed.

Lemma exactly_follows b d d' : disk_alike b d d' → images_follow b d' [exactly d] [exactly d'].
Proof. intros [Hl Hs] i ->%elem_of_list_singleton. exists (exactly d'). split_and!; [left| |by intros l;
  left].
  split; [|done]. intros v. cbn. by rewrite Hl. Qed.
Lemma more_follows b d' is js js' : images_follow b d' is js → images_follow b d' is (js' ++ js).
Proof. intros Hi i (j & ? & ?)%Hi. exists j. split; [apply elem_of_app; by right|done]. Qed.
Lemma app_follows b d' is1 is2 js1 js2 : images_follow b d' is1 js1 → images_follow b d' is2 js2 →
  images_follow b d' (is1 ++ is2) (js1 ++ js2).
Proof. intros H1 H2 i [(j & ? & ?)%H1|(j & ? & ?)%H2]%elem_of_app; exists j; rewrite elem_of_app; auto. Qed.
Lemma nil_follows b d' js : images_follow b d' [] js.
Proof. by intros i ?%elem_of_nil. Qed.

Lemma buffered_follows p b s c d d' : p ≠ Prefix → follows b s c → disk_alike b d d' →
  images_follow b d' (buffered p s d) (buffered p c d').
Proof.
  intros Hp (_ & _ & _ & Hi) Hd. destruct p; [by apply exactly_follows|done|].
  intros i (i0 & -> & (j & Hj & [Hm Hs] & Hc)%Hi)%elem_of_list_fmap. exists (may_also_hold d' j).
  split_and!; [apply elem_of_list_fmap; eauto| |by intros l; left].
  split; [|done]. intros v. cbn. destruct Hd as [-> _]. rewrite !elem_of_cons. intros [?|?]; auto.
Qed.
Lemma buffered_spared p b s c d : p ≠ Prefix → follows b s c → steady p c → disk_alike b d (now c) →
  images_follow b (now c) (buffered p s d) (survivors c).
Proof.
  intros Hp (_ & _ & _ & Hi) (_ & k & Hk & Hkc & Hks) [Hl Hn]. destruct p; [|done|].
  - intros i ->%elem_of_list_singleton. exists k. split_and!; [done| |done]. split.
    + cbn. intros v ->%elem_of_list_singleton. by rewrite Hl.
    + cbn. by rewrite <-Hks.
  - intros i (i0 & -> & (j & Hj & [Hm Hs] & Hc)%Hi)%elem_of_list_fmap. exists j. split_and!; [done| |done].
    split; [|done]. cbn. intros v [->|?]%elem_of_cons; [by rewrite Hl|auto].
Qed.

Lemma through_follows p told b s c lba data v : p ≠ Prefix → follows b s c → data_at lba data b = Some v →
  let d := written (now s) lba data in let d' := written (now c) 0 [v] in
  images_follow b d' (written_through p s told d lba data) (written_through p c told d' 0 [v]).
Proof.
  intros Hp Hf Hd d d'. pose proof Hf as (_ & _ & Ha & Hi).
  pose proof (buffered_follows p b s c d d' Hp Hf (alike_written _ _ _ _ _ _ Ha Hd)) as Hb.
  destruct p, told; try done.
  intros i (i0 & -> & (j & Hj & [Hm Hs] & Hc)%Hi)%elem_of_list_fmap. exists (forced 0 [v] j).
  split_and!; [apply elem_of_list_fmap; eauto| |].
  - split; [|done]. intros w. cbn. by rewrite Hd.
  - intros l. cbn. specialize (Hc l). unfold data_at. case_decide; [|lia].
    destruct ([v] !! (l - 0)); [left|done].
Qed.
Lemma through_spared p told b s c lba data : p ≠ Prefix → follows b s c → steady p c →
  data_at lba data b = None → let d := written (now s) lba data in
  images_follow b (now c) (written_through p s told d lba data) (survivors c).
Proof.
  intros Hp Hf Hc Hd d. pose proof Hf as (_ & _ & Ha & Hi).
  pose proof (buffered_spared p b s c d Hp Hf Hc (alike_spared _ _ _ _ _ Ha Hd)) as Hb.
  destruct p, told; try done.
  intros i (i0 & -> & (j & Hj & [Hm Hs] & Hcov)%Hi)%elem_of_list_fmap. exists j.
  split_and!; [done| |done]. split; [|done]. intros w. cbn. rewrite Hd. apply Hm.
Qed.
Lemma recorded_follows p b s c d d' : p ≠ Prefix → disk_alike b d d' →
  images_follow b d' (recorded p s d) (recorded p c d').
Proof. intros Hp Hd. destruct p; by try apply exactly_follows. Qed.

Lemma follows_cut b s c left left' : follows b s c → images_follow b (now c) left left' →
  follows b (cut s left) (cut c left').
Proof. intros (? & ? & ? & ?) ?. split_and!; cbn; try done. by apply app_follows. Qed.

Lemma follows_happens b s c d d' left left' : follows b s c → disk_alike b d d' →
  images_follow b d' left left' → follows b (happens s d left) (happens c d' left').
Proof. intros (? & ? & ? & ?) ? ?. by split_and!. Qed.

(** What the block does not see. *)
Lemma follows_idle b s c d left : follows b s c → disk_alike b d (now c) →
  images_follow b (now c) left (survivors c) → follows b (happens s d left) c.
Proof. intros (? & ? & ? & ?) ? ?. by split_and!. Qed.

Lemma hint_step p tolerates v c r : power c = true → sure r = true → entry_step p tolerates v c (Hint r) c.
Proof. intros Hp Hr. split; [done|]. by destruct r. Qed.

Lemma follows_answered b s c r faults excuses d d' left left' s' : follows b s c →
  follows b (happens s d left) (happens c d' left') → sure r = true ∨ images_follow b (now c) left left' →
  answered s r faults excuses d left s' → ∃ c', answered c r faults excuses d' left' c' ∧ follows b s' c'.
Proof.
  intros Hf Hh Hr [Hp Ha]. pose proof Hf as (_ & Hpw & _). rewrite Hp in Hpw. symmetry in Hpw.
  destruct r as [|k| |].
  - destruct Ha as [? ->]. by eexists.
  - destruct Ha as [? ->]. by exists c.
  - destruct Ha as [->|[? ->]]; [exists c; split; [split; [done|by left]|done]|].
    eexists. split; [split; [done|by right]|done].
  - destruct Hr as [?|Hl]; [done|]. subst. eexists. split; [by split|].
    apply follows_cut; [done|]. destruct faults; [done|apply nil_follows].
Qed.

Lemma data_at_read (f : view V) lba count b v : data_at lba (f <$> seq lba count) b = Some v → v = f b.
Proof.
  unfold data_at. case_decide; [|done]. rewrite list_lookup_fmap.
  destruct (seq lba count !! (b - lba)) as [l|] eqn:Hl; [|done]. apply lookup_seq in Hl as [-> _].
  cbn. intros [= <-]. f_equal. lia.
Qed.

Lemma alike_view b d d' from f : disk_alike b d d' → view_of d from = Some f →
  ∃ g, view_of d' from = Some g ∧ g 0 = f b.
Proof.
  intros [Hl Hs]. destruct from as [|n]; cbn; [intros [= <-]; by eexists|].
  specialize (Hs n). intros Hf. rewrite Hf in Hs. cbn in Hs. destruct (snaps d' !! n) as [g|]; [|done].
  cbn in Hs. injection Hs as ->. by exists g.
Qed.

Lemma column_step p tolerates v w b s c en s' : p ≠ Prefix → is_whole en → follows b s c → steady p c →
  entry_step p tolerates v s en s' → ∃ c', entry_step p tolerates w c (on_block b en) c' ∧ follows b s' c'.
Proof.
  intros Hpr Hw Hf Hst He. pose proof Hf as (Hz & Hpw & Ha & Hi).
  assert (∀ r, outside s r s' → ∃ c', entry_step p tolerates w c (Hint r) c' ∧ follows b s' c') as Hout.
  { intros r [Hp ->]. rewrite Hp in Hpw. eexists. split; [split; [done|reflexivity]|].
    by destruct r. }
  destruct en as [e|? r|? r|? r|r|r]; try by apply Hout.
  assert (∀ k, power s = true → s' = s → ∃ c', entry_step p tolerates w c (Hint (Refused k)) c' ∧ follows b
    s' c')
    as Hrefused.
  { intros k Hp ->. apply Hout. by split. }
  destruct He as [Hs|Hl].
  - destruct e as [blocks|lba data r|lba data told r|lba count r|n r|n r|n r|r|r|from lba count r data|r];
      cbn in Hs, Hw |- *; try done.
    + destruct r as [|k| |]; try done; [|by destruct Hs as [? [_ ->]]; apply Hrefused].
      destruct Hs as [Hp [_ ->]]. destruct (data_at lba data b) as [x|] eqn:Hd.
      * eexists. split; [left; split; [by rewrite <-Hpw|split; [by apply fits_one|done]]|].
        pose proof (alike_written _ _ _ _ _ _ Ha Hd). apply follows_happens; [done..|by apply
          buffered_follows].
      * exists c. split; [apply hint_step; by rewrite <-?Hpw|].
        pose proof (alike_spared _ _ _ _ _ Ha Hd). apply follows_idle; [done..|by apply buffered_spared].
    + destruct r as [|k| |]; try done; [|by destruct Hs as [? [_ ->]]; apply Hrefused].
      destruct Hs as [Hp [_ ->]]. destruct (data_at lba data b) as [x|] eqn:Hd.
      * eexists. split; [left; split; [by rewrite <-Hpw|split; [by apply fits_one|done]]|].
        pose proof (alike_written _ _ _ _ _ _ Ha Hd). apply follows_happens; [done..|by apply
          through_follows].
      * exists c. split; [apply hint_step; by rewrite <-?Hpw|].
        pose proof (alike_spared _ _ _ _ _ Ha Hd). apply follows_idle; [done..|by apply through_spared].
    + destruct r as [|k| |]; try done; [|by destruct Hs as [? [_ ->]]; apply Hrefused].
      destruct Hs as [Hp [_ ->]]. pose proof (data_at_replicate lba count b) as Hd. case_decide.
      * eexists. split; [left; split; [by rewrite <-Hpw|split; [by apply fits_one|done]]|].
        pose proof (alike_written _ _ _ _ _ _ Ha Hd). apply follows_happens; [done..|by apply
          buffered_follows].
      * exists c. split; [apply hint_step; by rewrite <-?Hpw|].
        pose proof (alike_spared _ _ _ _ _ Ha Hd). apply follows_idle; [done..|by apply buffered_spared].
    + destruct r as [|k| |]; try done; [|by destruct Hs as [? [_ ->]]; apply Hrefused].
      rewrite (alike_taken _ _ _ _ Ha) in Hs. pose proof (alike_snapshotted _ _ _ n Ha) as Hd.
      eapply follows_answered in Hs as (c' & Hc & ?); [by exists c'; split; [left|]|done| |by left].
      apply follows_happens; [done..|by apply recorded_follows].
    + destruct r as [|k| |]; try done; [|by destruct Hs as [? [_ ->]]; apply Hrefused].
      rewrite (alike_missing _ _ _ _ Ha) in Hs. pose proof (alike_deleted _ _ _ n Ha) as Hd.
      eapply follows_answered in Hs as (c' & Hc & ?); [by exists c'; split; [left|]|done| |by left].
      apply follows_happens; [done..|by apply recorded_follows].
    + destruct r as [|k| |]; try done; [|by destruct Hs as [? [_ ->]]; apply Hrefused].
      rewrite (alike_missing _ _ _ _ Ha) in Hs. pose proof (alike_reverted _ _ _ n Ha) as Hd.
      eapply follows_answered in Hs as (c' & Hc & ?); [by exists c'; split; [left|]|done| |by left].
      apply follows_happens; [done..|by apply recorded_follows].
    + pose proof (exactly_follows _ _ _ Ha).
      eapply follows_answered in Hs as (c' & Hc & ?); [by exists c'; split; [left|]|done| |by right].
      by apply follows_happens.
    + pose proof (exactly_follows _ _ _ Ha).
      eapply follows_answered in Hs as (c' & Hc & ?); [by exists c'; split; [left|]|done| |by right].
      by apply follows_happens.
    + destruct Hs as [[Hp Hs] Hr]. destruct r as [|k| |].
      * destruct Hs as [[_ Hv]%app_eq_nil ->]. destruct (Hr eq_refl) as (f & Hview & ->).
        destruct (data_at lba _ b) as [x|] eqn:Hd; [|exists c; split; [apply hint_step; by rewrite
          <-?Hpw|done]].
        apply data_at_read in Hd as ->. destruct (alike_view _ _ _ _ _ Ha Hview) as (g & Hg & Hx).
        exists (happens c (now c) (survivors c)). split; [|done]. left. split.
        { split; [by rewrite <-Hpw|]. split; [|done]. rewrite fits_one by done.
          by rewrite <-(alike_missing_view _ _ _ _ Ha). }
        intros _. exists g. split; [done|]. cbn. by rewrite Hx.
      * destruct Hs as [_ ->]. by apply Hrefused.
      * exists c. split; [by split; [rewrite <-Hpw|]|]. by destruct Hs as [->|[_ ->]].
      * subst s'. exists (cut c []). split; [by split; [rewrite <-Hpw|]|].
        split_and!; cbn; try done. intros i [Hin|?]%elem_of_app; [|by apply Hi].
        destruct (_ ++ _); [by apply Hi|by apply elem_of_nil in Hin].
    + destruct r; try done; [|subst; exists (cut c []); split; [by left|]].
      2: by apply follows_cut; [|apply nil_follows].
      destruct Hs as (i & d & (j & Hj & [Hm Hn] & Hc)%Hi & [Hd Hds] & ->).
      pose (d' := Disk (λ l, match l with 0 => live d b | S _ => live (now c) l end) (with_snaps j)).
      exists (State (size c) d' [exactly d'] true). split.
      { left. exists j, d'. split_and!; [done| |done]. split; [|done]. intros [|l]; [apply Hm, Hd|apply Hc]. }
      assert (disk_alike b d d') as Hdd by (split; [done|]; cbn; by rewrite Hds).
      split_and!; cbn; try done. by apply exactly_follows.
  - destruct e as [| | | | | | | | |? ? ? [|[]| |] ?|]; try done. destruct Hl as (_ & ? & ->). by apply
    Hrefused.
Qed.

End Following.
