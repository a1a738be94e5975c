(** A flush that begins and ends, on a device of [Medium.v]. What was written before it began is durable once
it has ended. What is written meanwhile stays volatile: of all that, and of what the flush covers, any subset
survives a power cut before its end.

A program that waits for a flush may be followed meanwhile by the next one, as long as that one writes only
where the first one does not mind ([io_meanwhile]). [framed] says of the first program that it does not mind:
whatever stands at those addresses when the power fails, what is left is what the program promises. *)
From stdpp Require Import list.
From LogDisk Require Import Medium.

Section SplitFlush.
Context {B : Type} {torn : tearing B}.
Implicit Types (m : medium B) (f : contents B) (may : nat → bool).

(** While a flush is under way. *)
Record flushing := Flushing {
  held : contents B;            (* what the device holds for certain *)
  covered : list (nat * B);     (* what was written before the flush began, newest first *)
  later : list (nat * B);       (* what was written since *)
}.
Implicit Types w : flushing.

Definition begin_flush m : flushing := Flushing (stable m) (unflushed m) [].
Definition end_flush w : medium B := Medium (overlay (covered w) (held w)) (later w).
Definition write_later w (a : nat) (b : B) : flushing := Flushing (held w) (covered w) ((a, b) :: later w).
(** What reads see meanwhile, and what a power cut finds. *)
Definition meanwhile w : medium B := Medium (held w) (later w ++ covered w).

(** One step of the next program; [None] where it has to wait for the end of the flush, too. *)
Definition io_meanwhile {A} may (p : program B A) w : option (program B A * flushing) :=
  match p with
  | Done _ | FlushBlocks _ => None
  | ReadBlock a k => Some (k (read_block (meanwhile w) a), w)
  | WriteBlock a b k => if may a then Some (k, write_later w a b) else None
  | Assume φ k => if φ then Some (k, w) else None
  end.

(** Where nothing is written meanwhile, it is the flush of [Medium.v]. *)
Lemma flush_at_once m : end_flush (begin_flush m) = flush_blocks m.
Proof. done. Qed.

Lemma overlay_app ws ws' f a : overlay (ws ++ ws') f a = overlay ws (overlay ws' f) a.
Proof. induction ws as [|[a' b] ws IH]; simpl; [done|]. by rewrite IH. Qed.

(** Reads do not see whether it has ended. *)
Lemma read_meanwhile w a : read_block (meanwhile w) a = read_block (end_flush w) a.
Proof. apply overlay_app. Qed.

(** What was written before it began is durable once it has ended; *)
Lemma covered_durable w f a : a ∉ (later w).*1 → may_leave (end_flush w) f → f a = read_block (meanwhile w) a.
Proof.
  intros Ha Hf. rewrite read_meanwhile. unfold read_block. simpl. rewrite overlay_out by done.
  by destruct (may_be_in _ _ _ (Hf a)).
Qed.

(** and before, any subset of what was written survives. *)
Lemma meanwhile_volatile w f :
  (∀ a, f a = held w a ∨ (a, f a) ∈ covered w ∨ (a, f a) ∈ later w) → may_leave (meanwhile w) f.
Proof.
  intros Hf a. left. destruct (Hf a) as [?|[?|?]]; [by left|right..]; apply elem_of_app; [by right|by left].
Qed.

(** The next program runs as it would after the end of the flush. *)
Lemma io_meanwhile_later {A} may (p : program B A) w p' w' : io_meanwhile may p w = Some (p', w') →
  io p (end_flush w) = Some (p', end_flush w').
Proof.
  destruct p as [x|a k|a b k|k|φ k]; simpl; [done|by rewrite read_meanwhile; intros [= <- <-]| |done|].
  - destruct (may a); [|done]. by intros [= <- <-].
  - destruct φ; [|done]. by intros [= <- <-].
Qed.

(** It writes only where it may. *)
Definition only_at may w : Prop := ∀ a, a ∈ (later w).*1 → may a = true.

Lemma io_meanwhile_at {A} may (p : program B A) w p' w' : io_meanwhile may p w = Some (p', w') →
  held w' = held w ∧ covered w' = covered w ∧ (only_at may w → only_at may w').
Proof.
  destruct p as [x|a k|a b k|k|φ k]; simpl; [done|by intros [= _ <-]| |done|].
  - destruct (may a) eqn:Ha; [|done]. intros [= _ <-]. split_and!; [done..|].
    by intros Hw a' [->|?]%elem_of_cons; [|apply Hw].
  - destruct φ; [|done]. by intros [= _ <-].
Qed.

(** So a power cut leaves what it could leave of the first program alone, but for those addresses. *)
Lemma cut_meanwhile may w f : only_at may w → may_leave (meanwhile w) f →
  ∃ f0, may_leave (Medium (held w) (covered w)) f0 ∧ ∀ a, may a = false → f a = f0 a.
Proof.
  intros Hat Hf. exists (λ a, if may a then held w a else f a). split; [|intros a; by destruct (may a)].
  intros a. destruct (may a) eqn:Ha; [by left; left|].
  assert (∀ b, (a, b) ∈ later w ++ covered w → (a, b) ∈ covered w) as Hin.
  { intros b [Hb|Hb]%elem_of_app; [|done]. apply (elem_of_list_fmap_1 fst), Hat in Hb. simpl in Hb.
    congruence. }
  destruct (Hf a) as [[?|Hb]|[[Ht Hb]|(Ht&Hno&Hb)]].
  - by left; left.
  - left. right. by apply Hin.
  - right. left. split; [done|]. apply elem_of_list_fmap in Hb as ([a' b]&->&Hb%Hin).
    apply elem_of_list_fmap. by exists (a', b).
  - right. right. split_and!; [done..|]. intros Hall. apply Hb. intros b Hb'. by apply Hall, Hin.
Qed.

(** ** A program whose last flush others may overlap

Its result says which addresses are [spare]: while its last flush is under way, whatever is written there, a
power cut leaves [P]. *)
Section Framed.
Context {A : Type} (spare : A → nat → bool) (P : contents B → Prop).
Implicit Types p : program B A.

Fixpoint framed p m : Prop :=
  match p with
  | Done _ => True
  | ReadBlock a k => framed (k (read_block m a)) m
  | WriteBlock a b k => framed k (write_block m a b)
  | FlushBlocks k =>
      match k with
      | Done x => ∀ f f', may_leave m f → (∀ a, spare x a = false → f' a = f a) → P f'
      | _ => True
      end ∧ framed k (flush_blocks m)
  | Assume φ k => φ = true → framed k m
  end.

Lemma framed_io p m p' m' : framed p m → io p m = Some (p', m') → framed p' m'.
Proof.
  destruct p as [x|a k|a b k|k|φ k]; simpl; intros Hp; [done|by intros [= <- <-]..| |].
  - intros [= <- <-]. apply Hp.
  - destruct φ; [|done]. intros [= <- <-]. by apply Hp.
Qed.

(** It reads nothing, writes only at [W], and flushes once, at its end; what is spare then is none of [W], and
is one of [S]. *)
Fixpoint blind (S W : nat → Prop) p : Prop :=
  match p with
  | Done _ => True
  | ReadBlock _ _ => False
  | WriteBlock a _ k => W a ∧ blind S W k
  | FlushBlocks k => match k with Done x => ∀ a, spare x a = true → S a ∧ ¬ W a | _ => False end
  | Assume φ k => φ = true → blind S W k
  end.

Lemma blind_write_all (S W : nat → Prop) ws p :
  (∀ a, a ∈ ws.*1 → W a) → blind S W p → blind S W (write_all ws p).
Proof.
  intros Hws Hp. induction ws as [|[a b] ws IH]; [done|]. split; [apply Hws; by left|].
  apply IH. intros a' Ha'. apply Hws. by right.
Qed.

(** Such a program does not mind, if it is crash safe whatever stands at [S] when it begins. *)
Lemma framed_blind (S W : nat → Prop) Q p f u : blind S W p → (∀ a, a ∈ u.*1 → W a) →
  (∀ f', (∀ a, ¬ S a → f' a = f a) → crash_safe P Q p (Medium f' u)) → framed p (Medium f u).
Proof.
  revert u. induction p as [x|a k IH|a b k IH|k IH|φ k IH]; intros u Hp Hu Hsafe; simpl in *; try done.
  - destruct Hp as [Ha Hp]. apply (IH ((a, b) :: u)); [done| |].
    + by intros a' [->|?]%elem_of_cons; [|apply Hu].
    + intros f' Hf'. by destruct (Hsafe f' Hf') as [_ ?].
  - destruct k as [x| | | |]; try done. split; [|done]. intros f1 f2 Hf1 Hf2.
    set (f' := λ a, if spare x a then f2 a else f a).
    destruct (Hsafe f') as [Hleft _].
    { intros a Ha. unfold f'. destruct (spare x a) eqn:Hx; [|done]. by destruct (Hp a Hx) as [? _]. }
    apply Hleft. intros a. destruct (spare x a) eqn:Hx; [left; left; unfold f'; simpl; by rewrite Hx|].
    assert (f' a = f a) as Hsame by (unfold f'; by rewrite Hx). rewrite (Hf2 a Hx).
    destruct (Hf1 a) as [[Hb|Hb]|[Hb|(Ht&Hno&Hb)]]; simpl in *.
    + left. left. simpl. by rewrite Hsame.
    + left. by right.
    + right. by left.
    + right. right. split_and!; [done..|]. intros Hall. apply Hb. simpl in *. intros b Hin.
      rewrite (Hall b Hin). exact Hsame.
  - intros Hφ. apply IH; [by apply Hp|done|]. intros f' Hf'. by apply (Hsafe f' Hf').
Qed.

(** Where nothing is spare, there is nothing to mind. *)
Definition quiet p : Prop := match p with Done x => ∀ a, spare x a = false | _ => True end.
End Framed.

Lemma framed_mono {A} (spare : A → nat → bool) (P P' : contents B → Prop) (p : program B A) m :
  (∀ f, P f → P' f) → framed spare P p m → framed spare P' p m.
Proof.
  intros HP. revert m. induction p as [x|a k IH|a b k IH|k IH|φ k IH]; simpl; intros m Hp; auto.
  destruct Hp as [Hleft Hp]. split; [|by apply IH]. destruct k; try done. intros f f' Hf Hf'.
  by eapply HP, Hleft.
Qed.

(** ** One program after the other *)

Fixpoint then_ {A A'} (p : program B A) (k : A → program B A') : program B A' :=
  match p with
  | Done x => k x
  | ReadBlock a p => ReadBlock a (λ b, then_ (p b) k)
  | WriteBlock a b p => WriteBlock a b (then_ p k)
  | FlushBlocks p => FlushBlocks (then_ p k)
  | Assume φ p => Assume φ (then_ p k)
  end.

Lemma then_write_all {A A'} ws (p : program B A) (k : A → program B A') :
  then_ (write_all ws p) k = write_all ws (then_ p k).
Proof. induction ws as [|[a b] ws IH]; [done|]. simpl. by rewrite IH. Qed.

Lemma framed_then {A A'} spare (P P' : contents B → Prop) (Q : A → medium B → Prop)
    (Q' : A' → medium B → Prop) p (k : A → program B A') m :
  crash_safe P' Q p m → crash_safe P Q' (then_ p k) m → (∀ x m, Q x m → framed spare P (k x) m) →
  (∀ x, quiet spare (k x)) → framed spare P (then_ p k) m.
Proof.
  intros Hp Hall Hk Hquiet. revert m Hp Hall.
  induction p as [x|a p IH|a b p IH|p IH|φ p IH]; simpl; intros m [_ Hp] Hall; [by apply Hk|..].
  - destruct Hall as [_ Hall]. by apply IH.
  - destruct Hall as [_ Hall]. by apply IH.
  - destruct Hall as [Hleft Hall]. split; [|by apply IH].
    destruct p as [x|a p|a b p|p|φ p]; simpl; try done. pose proof (Hquiet x) as Hx.
    destruct (k x) as [x'| | | |]; try done. intros f f' Hf Hf'. apply Hleft. intros a.
    rewrite (Hf' a (Hx a)). apply Hf.
  - intros Hφ. destruct Hall as [_ Hall]. by apply IH; [apply Hp|apply Hall].
Qed.
End SplitFlush.
Global Arguments flushing : clear implicits.
