(** The machine that runs the programs of a disk, and its power. What is not on the device is lost with the
power: memory, and what a program was about.

The programs are any: of a disk whose maps are whole ([ProvedDiskMachine.v]), or are trees
([ProvedTreeDiskMachine.v]). If each of them is crash safe, the machine keeps the contract. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskRequests.

Section Machine.
Context `{!blocks} {torn : tearing block} {Y U : Type}.    (* memory, and what the scheduler may ask for *)

Record programs := Programs {
  run_request : Y → list nat → request → program block (Y * answer * list block);
  run_group : Y → list nat → list (nat * list block) → program block (Y * bool);
  run_upkeep : Y → U → program block Y;
  run_recovery : program block (option Y);
  run_format : nat * nat → geometry → program block (option Y);
    (* a new disk; of trees, so many levels and pages *)
}.

Inductive control :=
  | Idle (y : Y)
  | Busy (q : request) (p : program block (Y * answer * list block))   (* a request is under way *)
  | Group (ws : list (nat * list block)) (p : program block (Y * bool))        (* several writes are *)
  | Upkeep (p : program block Y)
  | Off
  | Recovery (p : program block (option Y)).

Definition machine : Type := control * medium block.

(** What a power cut shows: the request that it cut short, if there is one. Of several writes the outcome is
unknown. *)
Definition shown_by_cut (c : control) : list (event block) :=
  match c with
  | Busy q _ => [event_of q CutShort []]
  | Group ws _ => writes_shown ws UnknownOutcome ++ [Crash CutShort]
  | _ => [Crash CutShort]
  end.

Context (D : programs).

Inductive move : machine → list (event block) → machine → Prop :=
  | Call y m q places :                     (* any request, with any proposal of the scheduler *)
      move (Idle y, m) [] (Busy q (run_request D y places q), m)
  | CallGroup y m ws places :               (* any writes at once, with any proposal *)
      move (Idle y, m) [] (Group ws (run_group D y places ws), m)
  | Maintain y m u :
      move (Idle y, m) [] (Upkeep (run_upkeep D y u), m)
  | BusyIo q p m p' m' :                    (* one block I/O *)
      io p m = Some (p', m') → move (Busy q p, m) [] (Busy q p', m')
  | GroupIo ws p m p' m' :
      io p m = Some (p', m') → move (Group ws p, m) [] (Group ws p', m')
  | UpkeepIo p m p' m' :
      io p m = Some (p', m') → move (Upkeep p, m) [] (Upkeep p', m')
  | RecoveryIo p m p' m' :
      io p m = Some (p', m') → move (Recovery p, m) [] (Recovery p', m')
  | Answer q y r data m :
      move (Busy q (Done (y, r, data)), m) [event_of q r data] (Idle y, m)
  | GroupAnswer ws y m :
      move (Group ws (Done (y, true)), m) (writes_shown ws Ok) (Idle y, m)
  | GroupRefused ws y m :                   (* none was performed: they may be called one by one *)
      move (Group ws (Done (y, false)), m) [] (Idle y, m)
  | UpkeepEnds y m :
      move (Upkeep (Done y), m) [] (Idle y, m)
  | PowerCut c m f :                        (* at any moment *)
      c ≠ Off → may_leave m f → move (c, m) (shown_by_cut c) (Off, Medium f [])
  | PowerOn m :
      move (Off, m) [] (Recovery (run_recovery D), m)
  | Recovered y m :
      move (Recovery (Done (Some y)), m) [Crash Ok] (Idle y, m).

(** A new disk of so many blocks: a device that held anything, formatted. What is left of
torn headers and records does not unseal. *)
Definition formatted (n : nat) (x : machine) : Prop :=
  ∃ trees g f y, disk_blocks g = n ∧ torn_unread g ∧
    (execute (run_format D trees g) (Medium f [])).1 = Some y ∧
    x = (Idle y, (execute (run_format D trees g) (Medium f [])).2).

Definition disk_machine : implementation block := Implementation machine formatted move.

(** ** What the programs are to do

[represents y f d]: memory [y] and a device that holds [f] are the disk [d], of shape [shape y].
[recoverable g d f]: what recovery finds on such a device is [d]. *)

Section Refinement.
Context (shape : Y → geometry) (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).
Implicit Types (f : contents block) (d : disk block) (q : request).

Definition outcome_left g (s : state block) q f : Prop := ∃ d', d' ∈ outcomes s q ∧ recoverable g d' f.
Definition answered_with g (s : state block) q (o : Y * answer * list block) (m : medium block) : Prop :=
  ∃ f' d', m = Medium f' [] ∧ shape o.1.1 = g ∧ represents o.1.1 f' d' ∧
    step Ack s (event_of q o.1.2 o.2) (settled (size s) d').
Definition writes_left g d ws f : Prop :=
  recoverable g d f ∨ in_range g ws ∧ recoverable g (written_all d ws) f.
Definition writes_end g d ws (o : Y * bool) (m : medium block) : Prop :=
  ∃ f', m = Medium f' [] ∧ shape o.1 = g ∧ (o.2 = true → in_range g ws) ∧
    represents o.1 f' (if o.2 then written_all d ws else d).
Definition kept_as g d (y : Y) (m : medium block) : Prop := ∃ f', m = Medium f' [] ∧ shape y = g ∧
  represents y f' d.

Record crash_safe_programs : Prop := CrashSafePrograms {
  safe_idle y f d : represents y f d → safe (recoverable (shape y) d) (Medium f []);
  safe_request y f d places q : represents y f d → let s := settled (disk_blocks (shape y)) d in
    crash_safe (outcome_left (shape y) s q) (answered_with (shape y) s q) (run_request D y places q)
      (Medium f []);
  safe_group y f d places ws : represents y f d →
    crash_safe (writes_left (shape y) d ws) (writes_end (shape y) d ws) (run_group D y places ws)
      (Medium f []);
  safe_upkeep y f d u : represents y f d →
    crash_safe (recoverable (shape y) d) (kept_as (shape y) d) (run_upkeep D y u) (Medium f []);
  safe_recovery g f d : recoverable g d f →
    crash_safe (recoverable g d) (λ r m, ∃ y, r = Some y ∧ kept_as g d y m) (run_recovery D) (Medium f []);
  safe_format trees g f y m : torn_unread g →
    execute (run_format D trees g) (Medium f []) = (Some y, m) → kept_as g blank y m;
}.

(** ** Every step *)

Definition related (x : machine) (s : state block) : Prop :=
  let m := x.2 in
  match x.1 with
  | Idle y => ∃ f d, m = Medium f [] ∧ represents y f d ∧ s = settled (disk_blocks (shape y)) d
  | Busy q p => ∃ g d, s = settled (disk_blocks g) d ∧
      crash_safe (outcome_left g s q) (answered_with g s q) p m
  | Group ws p => ∃ g d, s = settled (disk_blocks g) d ∧
      crash_safe (writes_left g d ws) (writes_end g d ws) p m
  | Upkeep p => ∃ g d, s = settled (disk_blocks g) d ∧ crash_safe (recoverable g d) (kept_as g d) p m
  | Off => ∃ g f d, m = Medium f [] ∧ size s = disk_blocks g ∧ exactly d ∈ survivors s ∧ recoverable g d f
  | Recovery p => ∃ g d, size s = disk_blocks g ∧ exactly d ∈ survivors s ∧
      crash_safe (recoverable g d) (λ r m, ∃ y, r = Some y ∧ kept_as g d y m) p m
  end.

(** Writes of a group, performed. *)
Lemma group_run g d ws r : in_range g ws → r = Ok ∨ r = UnknownOutcome →
  run Ack (settled (disk_blocks g) d) (writes_shown ws r) (settled (disk_blocks g) (written_all d ws)).
Proof.
  intros Hws Hr. revert d. induction Hws as [|[lba data] ws Hfit _ IH]; intros d; [constructor|].
  econstructor; [|apply IH]. split; [done|]. unfold out_of_range. simpl. rewrite decide_True by done.
  destruct Hr as [->| ->]; [done|by right].
Qed.

(** Not performed. *)
Lemma group_idle n d ws : run Ack (settled n d) (writes_shown ws UnknownOutcome) (settled n d).
Proof. induction ws; [constructor|]. econstructor; [|done]. split; [done|by left]. Qed.

(** Performed or not, as what survived of them says. *)
Lemma group_unknown g d ws f : writes_left g d ws f → ∃ d',
  run Ack (settled (disk_blocks g) d) (writes_shown ws UnknownOutcome) (settled (disk_blocks g) d') ∧
  recoverable g d' f.
Proof.
  intros [?|[? ?]]; [exists d|exists (written_all d ws)]; split; try done;
    [apply group_idle|apply group_run; by auto].
Qed.

Context (programs_safe : crash_safe_programs).

Lemma related_cut c m s f : related (c, m) s → c ≠ Off → may_leave m f →
  ∃ s', run Ack s (shown_by_cut c) s' ∧ related (Off, Medium f []) s'.
Proof.
  assert (∀ s s' e, step Ack s e s' → run Ack s [e] s') as Hone by (intros; econstructor; [done|constructor]).
  destruct c as [y|q p|ws p|p| |p]; unfold related; simpl; intros Hrel Hon Hf.
  - destruct Hrel as (f0&d&->&Hy&->). eexists. split; [by apply Hone|].
    exists (shape y), f, d. split_and!; [done|done|by left|]. by eapply safe_idle.
  - destruct Hrel as (g&d&->&Hp%crash_safe_now). destruct (Hp f Hf) as (d'&Hd'&Hrec).
    destruct (step_cut_short _ _ _ _ Hd') as (s'&?&?&?). exists s'. split;
      [by apply Hone|]. by exists g, f, d'.
  - destruct Hrel as (g&d&->&Hp%crash_safe_now).
    destruct (group_unknown _ _ _ _ (Hp f Hf)) as (d'&Hrun&Hrec).
    exists (cut (settled (disk_blocks g) d') []).
    split; [apply run_app; eexists; split; [done|by apply Hone]|].
    exists g, f, d'. split_and!; [done|done|by left|done].
  - destruct Hrel as (g&d&->&Hp%crash_safe_now). eexists. split; [by apply Hone|].
    exists g, f, d. split_and!; [done|done|by left|by apply Hp].
  - done.
  - destruct Hrel as (g&d&Hsize&Hd&Hp%crash_safe_now). eexists. split; [by apply Hone|].
    exists g, f, d. split_and!; [done|done|done|by apply Hp].
Qed.

Lemma related_move x s es x' : related x s → move x es x' → ∃ s', run Ack s es s' ∧ related x' s'.
Proof.
  assert (∀ s s' e, step Ack s e s' → run Ack s [e] s') as Hone by (intros; econstructor; [done|constructor]).
  intros Hrel Hmove. destruct Hmove as [y m q places|y m ws places|y m u
    |q p m p' m' Hio|ws p m p' m' Hio|p m p' m' Hio|p m p' m' Hio|q y r data m|ws y m|ws y m|y m
    |c m f Hon Hf|m|y m]; unfold related in Hrel; simpl in Hrel.
  - destruct Hrel as (f&d&->&Hy&->). eexists. split; [constructor|]. exists (shape y), d. split; [done|].
    by apply safe_request.
  - destruct Hrel as (f&d&->&Hy&->). eexists. split; [constructor|]. exists (shape y), d. split; [done|].
    by apply safe_group.
  - destruct Hrel as (f&d&->&Hy&->). eexists. split; [constructor|]. exists (shape y), d. split; [done|].
    by apply safe_upkeep.
  - destruct Hrel as (g&d&->&Hp). eexists. split; [constructor|]. exists g, d. split; [done|].
    by eapply crash_safe_io.
  - destruct Hrel as (g&d&->&Hp). eexists. split; [constructor|]. exists g, d. split; [done|].
    by eapply crash_safe_io.
  - destruct Hrel as (g&d&->&Hp). eexists. split; [constructor|]. exists g, d. split; [done|].
    by eapply crash_safe_io.
  - destruct Hrel as (g&d&?&?&Hp). eexists. split; [constructor|]. exists g, d. split_and!; [done..|].
    by eapply crash_safe_io.
  - destruct Hrel as (g&d&->&_&f'&d'&->&<-&Hrep&Hstep). eexists. split; [by apply Hone|]. by exists f', d'.
  - destruct Hrel as (g&d&->&_&f'&->&<-&Hall&Hrep). eexists.
    split; [apply group_run; [by apply Hall|by left]|]. by exists f', (written_all d ws).
  - destruct Hrel as (g&d&->&_&f'&->&<-&_&Hrep). eexists. split; [constructor|]. by exists f', d.
  - destruct Hrel as (g&d&->&_&f'&->&<-&Hrep). eexists. split; [constructor|]. by exists f', d.
  - by eapply related_cut.
  - destruct Hrel as (g&f&d&->&Hsize&Hd&Hf). exists s. split; [constructor|]. exists g, d.
    split_and!; [done..|]. by apply safe_recovery.
  - destruct Hrel as (g&d&Hsize&Hd&_&y'&[= <-]&f&->&<-&Hy). exists (settled (disk_blocks (shape y)) d).
    split.
    + apply Hone. exists (exactly d), d. split_and!; [done| |by rewrite Hsize]. split;
      [|done]. intros l. by left.
    + by exists f, d.
Qed.

(** A new one is blank. *)
Lemma formatted_blank n x : formatted n x →
  ∃ y f, x = (Idle y, Medium f []) ∧ disk_blocks (shape y) = n ∧ represents y f blank.
Proof.
  intros (trees&g&f&y&Hn&Hwhole&Hy&->). destruct (execute _ _) as [r m] eqn:Hex. simpl in *. subst r.
  apply (safe_format programs_safe) in Hex as (f'&->&Hshape&Hrep); [|done]. exists y, f'. by rewrite Hshape.
Qed.

(** A disk whose programs are crash safe keeps the contract. *)
Theorem disk_machine_refines : implements disk_machine Ack.
Proof.
  apply (forward_simulation disk_machine Ack related).
  - intros n x (y&f&->&Hn&Hrep)%formatted_blank. exists f, blank. split; [done|]. split; [done|].
    by rewrite Hn.
  - apply related_move.
Qed.

(** In every state that is reached, they are those of some state of the contract. *)
Lemma reached_related n x tr x' : formatted n x → shows disk_machine x tr x' → ∃ s, related x' s.
Proof.
  intros (y0&f0&->&Hn&Hrep)%formatted_blank Hshows.
  assert (related (Idle y0, Medium f0 []) (settled (disk_blocks (shape y0)) blank)) as Hrel
    by by exists f0, blank.
  revert Hrel. generalize (settled (disk_blocks (shape y0)) blank). clear Hn Hrep.
  assert (∀ x tr x' s, shows disk_machine x tr x' → related x s → ∃ s', related x' s') as Hall.
  { intros x1 tr1 x2 s Hs. revert s. induction Hs as [z|z es z1 tr2 z2 Hmove _ IH];
      intros s Hrel.
    - by exists s.
    - destruct (related_move _ _ _ _ Hrel Hmove) as (s1&_&Hrel1). by eapply IH. }
  intros s Hrel. by eapply Hall.
Qed.

(** When nothing is under way, memory and device are a disk. *)
Theorem idle_represents n x tr y m : formatted n x → shows disk_machine x tr (Idle y, m) →
  ∃ f d, m = Medium f [] ∧ represents y f d.
Proof.
  intros Hx Hshows. destruct (reached_related _ _ _ _ Hx Hshows) as (s&f&d&Hm&Hy&_). simpl in Hm. subst m.
  by exists f, d.
Qed.
End Refinement.
End Machine.
Global Arguments programs {_} _ _. Global Arguments control {_} _. Global Arguments machine {_} _.
