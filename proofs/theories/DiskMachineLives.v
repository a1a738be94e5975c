(** Lives of the machine of [DiskMachine.v], computed: what happens to it, and what it shows then. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskRequests
  DiskMachine.

(** What a power cut leaves of a block that tears. *)
Class remains `{blocks} := torn_block : block.

Section Scripts.
Context `{!blocks} {torn : tearing block} {decided : ∀ a, Decision (tears a)} {left_over : remains}.
Context {sealed_tears : ∀ a, Decision (tears_to a torn_block)}.
Context {Y U : Type}.

(** What a power cut does to the unflushed blocks: it keeps them all, or loses them all and tears those that
tear, or tears those that tear and keeps the others, or it tears headers and records and keeps the others, or
it loses the one at an address and keeps the others. *)
Inductive loss := KeepAll | LoseAll | TearOnly | TearSealed | LoseAt (lost : nat).

(** What happens to a machine that is idle. *)
Inductive event_in_life :=
  | Ask (q : request) (places : list nat)
  | AskGroup (ws : list (nat * list block)) (places : list nat)
  | Keep (u : U)
  | CutIn (q : request) (places : list nat) (ios : nat) (l : loss)    (* after so many block I/Os *)
  | CutInGroup (ws : list (nat * list block)) (places : list nat) (ios : nat) (l : loss)
  | CutUpkeep (u : U) (ios : nat) (l : loss)
  | CutRecovery (ios : nat) (l : loss).

Fixpoint partly {A} (ios : nat) (p : program block A) (m : medium block) : medium block * program block A :=
  match ios with
  | 0 => (m, p)
  | S ios => match io p m with Some (p, m) => partly ios p m | None => (m, p) end
  end.

(** A block that was written has other words than it had. *)
Definition other_words (m : medium block) (a : nat) : bool :=
  existsb (λ e, bool_decide (e.1 = a ∧ to_words e.2 ≠ to_words (stable m a))) (unflushed m).

Definition left_by (l : loss) (m : medium block) : medium block :=
  let with_torn (f : contents block) (a : nat) :=
    if decide (tears a ∧ a ∈ (unflushed m).*1) then torn_block else f a in
  Medium (match l with
          | KeepAll => read_block m | LoseAll => with_torn (stable m) | TearOnly => with_torn (read_block m)
          | TearSealed => λ a,
              if other_words m a then
                if decide (tears_to a torn_block ∧ ¬ tears a) then torn_block else read_block m a
              else read_block m a
          | LoseAt lost => λ a, if decide (a = lost) then stable m a else read_block m a
          end) [].

(** The whole program; nothing, if what it assumes is not true. *)
Fixpoint ended {A} (p : program block A) (m : medium block) : option (A * medium block) :=
  match p with
  | Done x => Some (x, m)
  | ReadBlock a k => ended (k (read_block m a)) m
  | WriteBlock a b k => ended k (write_block m a b)
  | FlushBlocks k => ended k (flush_blocks m)
  | Assume φ k => if φ then ended k m else None
  end.

Section Computing.
Context (D : programs Y U).

(** The machine after it is switched on, and what recovery answers. *)
Definition switched_on (m : medium block) : option (Y * medium block) :=
  match ended (run_recovery D) m with Some (Some y, m) => Some (y, m) | _ => None end.

Definition live_once (e : event_in_life) (y : Y) (m : medium block) :
    option (list (event block) * (Y * medium block)) :=
  match e with
  | Ask q places => '(o, m) ← ended (run_request D y places q) m; Some ([event_of q o.1.2 o.2], (o.1.1, m))
  | AskGroup ws places => '(y, all, m) ← ended (run_group D y places ws) m;
      Some (if all : bool then writes_shown ws Ok else [], (y, m))
  | Keep u => x ← ended (run_upkeep D y u) m; Some ([], x)
  | CutIn q places ios l =>
      x ← switched_on (left_by l (partly ios (run_request D y places q) m).1);
      Some ([event_of q CutShort []; Crash Ok], x)
  | CutInGroup ws places ios l =>
      x ← switched_on (left_by l (partly ios (run_group D y places ws) m).1);
      Some (writes_shown ws UnknownOutcome ++ [Crash CutShort; Crash Ok], x)
  | CutUpkeep u ios l =>
      x ← switched_on (left_by l (partly ios (run_upkeep D y u) m).1); Some ([Crash CutShort; Crash Ok], x)
  | CutRecovery ios l =>
      x ← switched_on (left_by l (partly ios (run_recovery D) (left_by LoseAll m)).1);
      Some ([Crash CutShort; Crash CutShort; Crash Ok], x)
  end.

Fixpoint live_on (es : list event_in_life) (y : Y) (m : medium block) : option (list (event block)) :=
  match es with
  | [] => Some []
  | e :: es => '(shown, (y, m)) ← live_once e y m; rest ← live_on es y m; Some (shown ++ rest)
  end.

End Computing.

Context {D : programs Y U}.
Notation disk := (disk_machine D).

Lemma shows_quiet (x x' : inside disk) tr x'' :
  move D x [] x' → shows disk x' tr x'' → shows disk x tr x''.
Proof. intros Hm Htr. change tr with ([] ++ tr). by econstructor. Qed.

(** A program runs to its end, or partly, without showing anything. *)
Lemma shows_ended {A} (into : program block A → control Y) (p : program block A) m x m' :
  (∀ p m p' m', io p m = Some (p', m') → move D (into p, m) [] (into p', m')) →
  ended p m = Some (x, m') → shows disk (into p, m) [] (into (Done x), m').
Proof.
  intros Hio. revert m. induction p as [x1|a k IH|a b k IH|k IH|[] k IH]; intros m; simpl;
    [intros [= -> ->]; constructor|..|done]; intros Hp; (eapply shows_quiet; [by apply Hio|by apply IH]).
Qed.

Lemma shows_partly {A} (into : program block A → control Y) ios (p : program block A) m :
  (∀ p m p' m', io p m = Some (p', m') → move D (into p, m) [] (into p', m')) →
  shows disk (into p, m) [] (into (partly ios p m).2, (partly ios p m).1).
Proof.
  intros Hio. revert p m. induction ios as [|ios IH]; intros p m; simpl; [constructor|].
  destruct (io p m) as [[p' m']|] eqn:Hp; [|constructor]. eapply shows_quiet; [by apply Hio|apply IH].
Qed.

Lemma survives_left l m : may_leave m (stable (left_by l m)).
Proof.
  intros a. destruct l; simpl; [left; apply read_may_hold|..].
  - destruct (decide _); [by right; left|by left; left].
  - destruct (decide _); [by right; left|left; apply read_may_hold].
  - destruct (other_words m a) eqn:Hother; [|left; apply read_may_hold].
    destruct (decide _) as [(Ht&Hno)|]; [|left; apply read_may_hold]. right. right.
    split_and!; [done..|]. intros Hall. unfold other_words in Hother.
    apply existsb_exists in Hother as ([a' b]&Hin%elem_of_list_In&[Ha Hb]%bool_decide_eq_true).
    simpl in *. subst a'. by rewrite (Hall b) in Hb.
  - left. destruct (decide _); [by left|apply read_may_hold].
Qed.

Lemma cut c m l : c ≠ Off → move D (c, m) (shown_by_cut c) (Off, left_by l m).
Proof. intros Hc. pose proof (survives_left l m). by destruct l; apply PowerCut. Qed.

Lemma shows_switched_on m y m' : switched_on D m = Some (y, m') →
  shows disk (Off, m) [Crash Ok] (Idle y, m').
Proof.
  unfold switched_on. destruct (ended _ _) as [[[y1|] m1]|] eqn:Hex; try done. intros [= -> ->].
  eapply shows_quiet; [constructor|]. change [Crash Ok] with ([] ++ [@Crash block Ok]). eapply shows_app.
  - eapply (shows_ended Recovery); [by constructor|exact Hex].
  - apply shows_one. constructor.
Qed.

Lemma live_once_shows e y m tr y' m' :
  live_once D e y m = Some (tr, (y', m')) → shows disk (Idle y, m) tr (Idle y', m').
Proof.
  destruct e as [q places|ws places|u|q places ios l|ws places ios l|u ios l|ios l]; simpl.
  - intros ([[[y1 r] data] m1]&Hex&[= <- <- <-])%bind_Some.
    eapply shows_quiet; [constructor|]. change [event_of q r data] with ([] ++ [event_of q r data]).
      eapply shows_app.
    + eapply (shows_ended (Busy q)); [by constructor|exact Hex].
    + apply shows_one. constructor.
  - intros ([[y1 all] m1]&Hex&[= <- <- <-])%bind_Some.
    eapply shows_quiet; [by apply (CallGroup _ _ _ ws places)|].
    match goal with |- shows _ _ ?es _ => change es with ([] ++ es) end. eapply shows_app.
    + eapply (shows_ended (Group ws)); [by constructor|exact Hex].
    + apply shows_one. destruct all; constructor.
  - intros ([y1 m1]&Hex&[= <- <- <-])%bind_Some.
    eapply shows_quiet; [by apply (Maintain _ _ _ u)|]. change [] with ([] ++ @nil (event block)).
      eapply shows_app.
    + eapply (shows_ended Upkeep); [by constructor|exact Hex].
    + apply shows_one. constructor.
  - intros ([y1 m1]&Hon&[= <- <- <-])%bind_Some. eapply shows_quiet; [by apply (Call _ _ _ q places)|].
    change [event_of q CutShort []; Crash Ok] with ([] ++ [event_of q CutShort []] ++ [Crash Ok]).
      eapply shows_app.
    + apply (shows_partly (Busy q) ios). by constructor.
    + eapply shows_app; [by eapply shows_one, cut|by apply shows_switched_on].
  - intros ([y1 m1]&Hon&[= <- <- <-])%bind_Some.
    eapply shows_quiet; [by apply (CallGroup _ _ _ ws places)|].
    change (writes_shown ws UnknownOutcome ++ [Crash CutShort; Crash Ok])
      with ([] ++ writes_shown ws UnknownOutcome ++ [Crash CutShort] ++ [Crash Ok]). eapply shows_app.
    + apply (shows_partly (Group ws) ios). by constructor.
    + rewrite (assoc_L (++)).
      eapply shows_app; [by eapply shows_one, (cut (Group ws _))|by apply shows_switched_on].
  - intros ([y1 m1]&Hon&[= <- <- <-])%bind_Some. eapply shows_quiet; [by apply (Maintain _ _ _ u)|].
    change [Crash CutShort; Crash Ok] with ([] ++ [@Crash block CutShort] ++ [Crash Ok]). eapply shows_app.
    + apply (shows_partly Upkeep ios). by constructor.
    + eapply shows_app; [by eapply shows_one, (cut (Upkeep _))|by apply shows_switched_on].
  - intros ([y1 m1]&Hon&[= <- <- <-])%bind_Some.
    change [Crash CutShort; Crash CutShort; Crash Ok]
      with ([@Crash block CutShort] ++ [] ++ [Crash CutShort] ++ [Crash Ok]).
    eapply shows_app; [by eapply shows_one, (cut (Idle y) m LoseAll)|].
    eapply shows_quiet; [constructor|]. eapply shows_app; [apply (shows_partly Recovery ios);
      by constructor|].
    eapply shows_app; [by eapply shows_one, (cut (Recovery _))|by apply shows_switched_on].
Qed.

Lemma live_on_shows es y m tr : live_on D es y m = Some tr → ∃ x, shows disk (Idle y, m) tr x.
Proof.
  revert y m tr. induction es as [|e es IH]; simpl; intros y m tr; [intros [= <-]; eexists; constructor|].
  intros ([shown [y1 m1]]&Honce%live_once_shows&Hrest)%bind_Some.
  apply bind_Some in Hrest as (rest&(x&Hx)%IH&[= <-]). exists x. by eapply shows_app.
Qed.

(** A life from a device that held nothing but zeroes. *)
Definition life (trees : nat * nat) (g : geometry) (es : list event_in_life) : option (list (event block)) :=
  match execute (run_format D trees g) (Medium (λ _, zero_block) []) with
  | (Some y, m) => live_on D es y m
  | _ => None
  end.

Lemma life_shows trees g es tr :
  torn_unread g → life trees g es = Some tr →
  ∃ x x', fresh disk (disk_blocks g) x ∧ shows disk x tr x'.
Proof.
  unfold life. intros Hg. destruct (execute _ _) as [[y|] m] eqn:Hex; [|done].
  intros (x'&Hx)%live_on_shows. exists (Idle y, m), x'. split; [|done].
  exists trees, g, (λ _, zero_block), y. by rewrite Hex.
Qed.

End Scripts.
Global Arguments life {_ _ _ _ _ _ _} _ _ _ _.
