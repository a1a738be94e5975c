(** Devices of blocks, and programs that use nothing but block I/O.

A write is volatile until a flush. A power cut leaves each block as the last flush left it, or as any write
since then left it, each block on its own: any subset of the unflushed blocks survives. A block that tears is
not written whole: once it was written, a power cut before the flush leaves anything ([tears]), or one of the
blocks that tearing may make there ([tears_to]), if what was written is not what was there. [Sectors.v] says
what that is where sectors are written whole.

A program may [Assume] something: it goes on only if that is true. This is where a hypothesis about digests
stands ([Codec.v]); whoever runs a program takes it as granted. *)
From stdpp Require Import list.

(** The addresses of the blocks of which anything may be left; and what may be left of others. *)
Class tearing {B : Type} := Tearing { tears : nat → Prop; tears_to : nat → B → Prop }.
Global Arguments tearing : clear implicits. Global Arguments Tearing {_} _ _.

(** Blocks that are written whole. *)
Definition untorn {B} : tearing B := Tearing (λ _, False) (λ _ _, False).

Section Medium.
Context {B : Type} {torn : tearing B}.

Definition contents := nat → B.

(** What the device holds for certain, and what was written since the last flush, newest first. *)
Record medium := Medium { stable : contents; unflushed : list (nat * B) }.

Fixpoint overlay (ws : list (nat * B)) (f : contents) (a : nat) : B :=
  match ws with
  | [] => f a
  | (a', b) :: ws => if decide (a = a') then b else overlay ws f a
  end.

Definition read_block (m : medium) (a : nat) : B := overlay (unflushed m) (stable m) a.
Definition write_block (m : medium) (a : nat) (b : B) : medium := Medium (stable m) ((a, b) :: unflushed m).
Definition flush_blocks (m : medium) : medium := Medium (read_block m) [].

(** What a power cut may leave: at an address, and everywhere, if all blocks are written whole; *)
Definition may_hold (m : medium) (a : nat) (b : B) : Prop := b = stable m a ∨ (a, b) ∈ unflushed m.
Definition survives (m : medium) (f : contents) : Prop := ∀ a, may_hold m a (f a).
(** and if some tear. *)
(** Something else was written there than what is there. *)
Definition rewritten (m : medium) (a : nat) : Prop := ¬ ∀ b, (a, b) ∈ unflushed m → b = stable m a.
Definition may_be (m : medium) (a : nat) (b : B) : Prop :=
  may_hold m a b ∨ tears a ∧ a ∈ (unflushed m).*1 ∨ tears_to a b ∧ ¬ tears a ∧ rewritten m a.
Definition may_leave (m : medium) (f : contents) : Prop := ∀ a, may_be m a (f a).

(** ** Programs *)

Inductive program {A : Type} :=
  | Done (x : A)
  | ReadBlock (a : nat) (k : B → program)
  | WriteBlock (a : nat) (b : B) (k : program)
  | FlushBlocks (k : program)
  | Assume (φ : bool) (k : program).
Arguments program : clear implicits.

Fixpoint write_all {A} (ws : list (nat * B)) (k : program A) : program A :=
  match ws with [] => k | (a, b) :: ws => WriteBlock a b (write_all ws k) end.

(** One step of a program, which is a block I/O or an assumption; [None] when it is done, and where it assumes
what is false. *)
Definition io {A} (p : program A) (m : medium) : option (program A * medium) :=
  match p with
  | Done _ => None
  | ReadBlock a k => Some (k (read_block m a), m)
  | WriteBlock a b k => Some (k, write_block m a b)
  | FlushBlocks k => Some (k, flush_blocks m)
  | Assume φ k => if φ then Some (k, m) else None
  end.

(** The whole program, with no power cut. *)
Fixpoint execute {A} (p : program A) (m : medium) : A * medium :=
  match p with
  | Done x => (x, m)
  | ReadBlock a k => execute (k (read_block m a)) m
  | WriteBlock a b k => execute k (write_block m a b)
  | FlushBlocks k => execute k (flush_blocks m)
  | Assume _ k => execute k m
  end.

(** What the program assumes on its way is true. *)
Fixpoint granted {A} (p : program A) (m : medium) : Prop :=
  match p with
  | Done _ => True
  | ReadBlock a k => granted (k (read_block m a)) m
  | WriteBlock a b k => granted k (write_block m a b)
  | FlushBlocks k => granted k (flush_blocks m)
  | Assume φ k => φ = true ∧ granted k m
  end.

Lemma granted_write_all {A} ws (k : program A) m : (∀ m, granted k m) → granted (write_all ws k) m.
Proof. intros Hk. revert m. induction ws as [|[a b] ws IH]; simpl; auto. Qed.

(** ** Crash safety: whenever the power fails, [P] is true of what is left; in the end, [Q]. *)

Definition safe (P : contents → Prop) (m : medium) : Prop := ∀ f, may_leave m f → P f.

Fixpoint crash_safe {A} (P : contents → Prop) (Q : A → medium → Prop) (p : program A) (m : medium) : Prop :=
  safe P m ∧
  match p with
  | Done x => Q x m
  | ReadBlock a k => crash_safe P Q (k (read_block m a)) m
  | WriteBlock a b k => crash_safe P Q k (write_block m a b)
  | FlushBlocks k => crash_safe P Q k (flush_blocks m)
  | Assume φ k => φ = true → crash_safe P Q k m
  end.

Lemma crash_safe_now {A} P (Q : A → medium → Prop) p m : crash_safe P Q p m → safe P m.
Proof. destruct p; by intros [? _]. Qed.

Lemma crash_safe_io {A} P (Q : A → medium → Prop) p m p' m' :
  crash_safe P Q p m → io p m = Some (p', m') → crash_safe P Q p' m'.
Proof.
  destruct p as [| | | |φ k]; simpl; intros [_ Hp]; [by intros [= <- <-]..|]. destruct φ; [|done].
  intros [= <- <-]. by apply Hp.
Qed.

Lemma crash_safe_execute {A} P (Q : A → medium → Prop) p m :
  crash_safe P Q p m → granted p m → Q (execute p m).1 (execute p m).2.
Proof.
  revert m. induction p as [|a k IH|a b k IH|k IH|φ k IH]; simpl; intros m [_ Hp]; auto.
  intros [-> ?]. by apply IH; [apply Hp|].
Qed.

Lemma crash_safe_mono {A} (P P' : contents → Prop) (Q Q' : A → medium → Prop) p m :
  (∀ f, P f → P' f) → (∀ x m, Q x m → Q' x m) → crash_safe P Q p m → crash_safe P' Q' p m.
Proof. intros HP HQ. revert m. induction p; simpl; intros m [? ?]; unfold safe in *; split; auto. Qed.

Lemma read_may_hold m a : may_hold m a (read_block m a).
Proof.
  unfold may_hold, read_block. induction (unflushed m) as [|[a' b] u IH]; simpl; [by left|].
  destruct (decide (a = a')) as [->|]; [right; by left|]. destruct IH as [IH|IH]; [by left|right; by right].
Qed.

Lemma rewritten_in m a : rewritten m a → a ∈ (unflushed m).*1.
Proof.
  intros Hm. destruct (decide (a ∈ (unflushed m).*1)) as [|Hno]; [done|]. destruct Hm. intros b Hb.
  destruct Hno. apply elem_of_list_fmap. by exists (a, b).
Qed.

Lemma not_rewritten f a : ¬ rewritten (Medium f []) a.
Proof. intros Hm. apply Hm. by intros b ?%elem_of_nil. Qed.

Lemma may_be_stable f a b : may_be (Medium f []) a b → b = f a.
Proof. by intros [[|?%elem_of_nil]|[[_ ?%elem_of_nil]|(_&_&?%not_rewritten)]]. Qed.

(** Whatever is left at an address is as it was, or was written. *)
Lemma may_be_in m a b : may_be m a b → b = stable m a ∨ a ∈ (unflushed m).*1.
Proof.
  intros [[|Hin]|[[_ ?]|(_&_&?%rewritten_in)]]; [by left| |by right..].
  right. apply elem_of_list_fmap. by exists (a, b).
Qed.

Lemma survives_leaves m f : survives m f → may_leave m f.
Proof. intros Hf a. by left. Qed.

Lemma leaves_stable f f' : may_leave (Medium f []) f' → ∀ a, f' a = f a.
Proof. intros Hs a. apply may_be_stable, Hs. Qed.

Lemma survives_stable f f' : survives (Medium f []) f' → ∀ a, f' a = f a.
Proof. intros Hf a. by destruct (Hf a) as [|?%elem_of_nil]. Qed.

Lemma overlay_out ws f a : a ∉ ws.*1 → overlay ws f a = f a.
Proof.
  induction ws as [|[a' b] ws IH]; [done|]. simpl. rewrite not_elem_of_cons. intros [Ha Hws].
  rewrite decide_False by done. by apply IH.
Qed.

Lemma overlay_in ws f a b : NoDup ws.*1 → (a, b) ∈ ws → overlay ws f a = b.
Proof.
  induction ws as [|[a' b'] ws IH]; simpl; [by intros _ ?%elem_of_nil|].
  rewrite NoDup_cons, elem_of_cons. intros [Ha' Hdup] [[= <- <-]|Hin]; [by rewrite decide_True|].
  rewrite decide_False; [by apply IH|]. intros <-. apply Ha', elem_of_list_fmap. by exists (a, b).
Qed.

Lemma safe_within (P : contents → Prop) (S : nat → Prop) u f :
  (∀ f', (∀ a, ¬ S a → f' a = f a) → P f') → (∀ a, a ∈ u.*1 → S a) → safe P (Medium f u).
Proof.
  intros HP Hu f' Hf'. apply HP. intros a Ha. destruct (may_be_in _ _ _ (Hf' a)) as [|Hin]; [done|].
  destruct Ha. by apply Hu.
Qed.

Lemma crash_safe_write_all {A} (P : contents → Prop) (Q : A → medium → Prop) (S : nat → Prop) ws u f k :
  (∀ f', (∀ a, ¬ S a → f' a = f a) → P f') → (∀ a, a ∈ ws.*1 → S a) → (∀ a, a ∈ u.*1 → S a) →
  crash_safe P Q k (Medium f (reverse ws ++ u)) → crash_safe P Q (write_all ws k) (Medium f u).
Proof.
  intros HP. revert u. induction ws as [|[a b] ws IH]; simpl; intros u Hws Hu Hk; [done|].
  split; [by eapply safe_within|].
  apply IH; [intros a' ?; apply Hws; by constructor| |by rewrite reverse_cons, <-(assoc_L (++)) in Hk].
  simpl. intros a' [->|?]%elem_of_cons; [|by apply Hu]. apply Hws. by constructor.
Qed.

(** Blocks that nothing refers to ([S]) are written and flushed. *)
Lemma crash_safe_write_flush {A} (P : contents → Prop) (Q : A → medium → Prop) (S : nat → Prop) ws f k :
  (∀ f', (∀ a, ¬ S a → f' a = f a) → P f') → (∀ a, a ∈ ws.*1 → S a) → NoDup ws.*1 →
  (∀ f', (∀ a b, (a, b) ∈ ws → f' a = b) → (∀ a, a ∉ ws.*1 → f' a = f a) → crash_safe P Q k (Medium f' [])) →
  crash_safe P Q (write_all ws (FlushBlocks k)) (Medium f []).
Proof.
  intros HP Hws Hdup Hk.
  apply crash_safe_write_all with (S := S); [done|done|by intros ? ?%elem_of_nil|].
  rewrite app_nil_r. split.
  - eapply safe_within; [done|]. intros a. rewrite fmap_reverse, elem_of_reverse. apply Hws.
  - apply Hk; unfold read_block; simpl.
    + intros a b Hin. apply overlay_in; [|by rewrite elem_of_reverse].
      by rewrite fmap_reverse, reverse_Permutation.
    + intros a Ha. apply overlay_out. by rewrite fmap_reverse, elem_of_reverse.
Qed.

(** One block is written and flushed: until then either content may survive, or what tearing makes of it. *)
Lemma crash_safe_commit {A} (P : contents → Prop) (Q : A → medium → Prop) a b f k :
  ¬ tears a →
  (∀ f', (∀ a', a' ≠ a → f' a' = f a') → f' a = f a ∨ f' a = b ∨ tears_to a (f' a) → P f') →
  (∀ f', f' a = b → (∀ a', a' ≠ a → f' a' = f a') → crash_safe P Q k (Medium f' [])) →
  crash_safe P Q (WriteBlock a b (FlushBlocks k)) (Medium f []).
Proof.
  intros Ha HP Hk. simpl. split; [|split].
  - intros f' Hf'. apply HP; intros; [|left]; by apply leaves_stable.
  - intros f' Hf'. apply HP.
    + intros a' Ha'. destruct (may_be_in _ _ _ (Hf' a')) as [|Hin]; [done|].
      by apply elem_of_list_singleton in Hin.
    + destruct (Hf' a) as [[|[[= ->]|?%elem_of_nil]%elem_of_cons]|[[Ht _]|[Ht _]]];
        [by left|by right; left|done..|by right; right].
  - apply Hk; unfold read_block; simpl; [by rewrite decide_True|intros; by rewrite decide_False].
Qed.

End Medium.

Arguments medium : clear implicits. Arguments program : clear implicits. Arguments contents : clear implicits.
