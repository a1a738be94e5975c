(** What a leg asks of its code: k data blocks are stored as k + m components, and any k of them give the data
back. A mirror is the code with k = 1. RAID-5 and RAID-6 are in Parity.v. *)
From stdpp Require Export prelude functions gmap.

Record code (V : Type) := Code {
  data_count : nat;                               (* k *)
  parity_count : nat;                             (* m *)
  blank : V;                                      (* what an unmapped block reads as *)
  parity : list V -> list V;
  decode : list (option V) -> option (list V);    (* None stands for a component that cannot be read *)
}.
Arguments data_count {V}. Arguments parity_count {V}. Arguments blank {V}. Arguments parity {V}.
Arguments decode {V}.

Section code.
  Context {V : Type}.
  Implicit Types (c : code V) (d : list V) (s : list (option V)).

  Definition width c : nat := data_count c + parity_count c.
  Definition stripe c d : list V := d ++ parity c d.
  Definition blanks c : list V := replicate (data_count c) (blank c).

  Fixpoint lost s : nat :=
    match s with [] => 0 | None :: s => S (lost s) | Some _ :: s => lost s end.

  (** What is left of a stripe. *)
  Definition left_of s (t : list V) : Prop := Forall2 (fun o x => o = None \/ o = Some x) s t.

  (** What is left of one stripe written over another, component by component. *)
  Definition mixture s (t u : list V) : Prop :=
    Forall3 (fun o x y => o = None \/ o = Some x \/ o = Some y) s t u.

  Record good c : Prop := Good {
    good_length d : length d = data_count c -> length (parity c d) = parity_count c;
    good_blank : parity c (blanks c) = replicate (parity_count c) (blank c);
    good_complete d s : length d = data_count c -> left_of s (stripe c d) -> lost s <= parity_count c ->
      decode c s = Some d;
    good_total s : length s = width c -> lost s <= parity_count c -> is_Some (decode c s);
    good_data s d : length s = width c -> decode c s = Some d -> length d = data_count c;
    good_sound d d' s : length d = data_count c -> left_of s (stripe c d) -> decode c s = Some d' -> d' = d;
  }.

  (** A write cut short leaves the old stripe or the new one, and never a third. *)
  Definition whole c : Prop := ∀ old new s d,
    length old = data_count c -> length new = data_count c ->
    mixture s (stripe c old) (stripe c new) -> decode c s = Some d -> d = old \/ d = new.

  (** ** Mirrors *)

  Definition mirror (zero : V) (m : nat) : code V := {|
    data_count := 1;
    parity_count := m;
    blank := zero;
    parity := fun d => match d with [x] => replicate m x | _ => [] end;
    decode := fun s => match omap id s with [] => None | x :: _ => Some [x] end;
  |}.

  Lemma stripe_blanks c : good c -> stripe c (blanks c) = replicate (width c) (blank c).
  Proof. intros G. unfold stripe. rewrite (good_blank c G). unfold blanks. by rewrite <-replicate_add. Qed.

  Lemma stripe_length c d : good c -> length d = data_count c -> length (stripe c d) = width c.
  Proof. intros G E. unfold stripe, width. rewrite app_length, (good_length c G d E). lia. Qed.

  Lemma left_of_mirror s n x : left_of s (replicate n x) -> omap id s = replicate (n - lost s) x /\
    lost s <= n.
  Proof. revert s.
    induction n as [|n IH]; simpl; intros s H; inversion H as [|o ? s' ? Ho Hs]; subst; [done|].
    destruct (IH s' Hs) as [E L]. destruct Ho as [-> | ->]; cbn -[minus]; rewrite E; split; try lia; [done|].
    by replace (S n - lost s') with (S (n - lost s')) by lia. Qed.

  Theorem mirror_good zero m : good (mirror zero m).
  Proof.
    split; simpl.
    - intros [|x [|]]; simpl; intros; try done. by rewrite replicate_length.
    - done.
    - intros [|x [|]] s E H L; try done. apply (left_of_mirror s (S m) x) in H as [-> _].
      by replace (S m - lost s) with (S (m - lost s)) by lia.
    - intros s E L. assert (length (omap id s) = length s - lost s /\ lost s <= length s) as [F _].
      { clear. induction s as [|[x|] s [IH L]]; cbn -[minus]; [done|rewrite IH; lia..]. }
      destruct (omap id s); [simpl in F; unfold width in E; simpl in E; lia|eauto].
    - intros s d _. destruct (omap id s); [done|]. by intros [= <-].
    - intros [|x [|]] d s E H; try done. apply (left_of_mirror s (S m) x) in H as [-> _].
      destruct (S m - lost s); simpl; congruence.
  Qed.

  Lemma mixture_mirror s n x y :
    mixture s (replicate n x) (replicate n y) -> Forall (fun z => z = x \/ z = y) (omap id s).
  Proof. revert s.
    induction n as [|n IH]; simpl; intros s H; inversion H as [|o ?? s' ?? Ho Hs]; subst; [constructor|].
    destruct Ho as [-> | [-> | ->]]; cbn; [|constructor; [auto|]..]; by apply IH. Qed.

  Theorem mirror_whole zero m : whole (mirror zero m).
  Proof. intros [|x [|]] [|y [|]] s d Ex Ey; try done. intros H%(mixture_mirror s (S m)). simpl.
    destruct H as [|z ? [-> | ->]]; [done|..]; intros [= <-]; auto. Qed.
End code.
