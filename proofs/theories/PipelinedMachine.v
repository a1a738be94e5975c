(** The machine of [DiskMachine.v] with a pipeline: while the last flush of a request, or of several writes,
is under way, the next job runs. It reads anywhere, and writes where nothing of the first job is in danger
([spare], of the memory that the first one leaves). For anything else it waits for the end of the flush. The
first job is answered then, and the next one goes on.

A log record of the next job is none of what it may write meanwhile: its payload is in flight together with
the payload and the record of the first job, its record is written when the flush has ended. So recovery
finds the records as it would without a pipeline: those that were answered, and then that of the first job,
or none. What else the power left stands in places that nothing refers to.

If a power cut comes before the end of the flush, the next job has not happened, and it shows nothing. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskRequests
  DiskMachine SplitFlush.

Section Machine.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : programs Y U) (spare : Y → nat → bool).

(** A job that has nothing left to do but a flush: what it shows then, and the memory that it leaves. *)
Definition last_flush (c : control Y) : option (list (event block) * Y) :=
  match c with
  | Busy DoRestart _ => None
  | Busy q (FlushBlocks (Done (y, Ok, data))) => Some ([event_of q Ok data], y)
  | Group ws (FlushBlocks (Done (y, true))) => Some (writes_shown ws Ok, y)
  | _ => None
  end.

Inductive pipeline :=
  | OneJob (x : machine Y)                                   (* one job at a time, as in [DiskMachine.v] *)
  | TwoJobs (c : control Y) (y : Y) (next : control Y) (w : flushing block).
      (* the last flush of [c] is under way, and leaves the memory [y]; [next] is what comes next *)

(** The next job, one block I/O. *)
Inductive next_io (may : nat → bool) : control Y → flushing block → control Y → flushing block → Prop :=
  | next_busy q p p' w w' :
      io_meanwhile may p w = Some (p', w') → next_io may (Busy q p) w (Busy q p') w'
  | next_group ws p p' w w' :
      io_meanwhile may p w = Some (p', w') → next_io may (Group ws p) w (Group ws p') w'
  | next_upkeep p p' w w' :
      io_meanwhile may p w = Some (p', w') → next_io may (Upkeep p) w (Upkeep p') w'.

Inductive pipeline_move : pipeline → list (event block) → pipeline → Prop :=
  | Moves x es x' : move D x es x' → pipeline_move (OneJob x) es (OneJob x')
  | FlushBegins c m es y :
      last_flush c = Some (es, y) → pipeline_move (OneJob (c, m)) [] (TwoJobs c y (Idle y) (begin_flush m))
  | NextTurns c y next next' w :      (* it begins, or ends: no I/O, and nothing is shown *)
      (∀ m, move D (next, m) [] (next', m)) → pipeline_move (TwoJobs c y next w) [] (TwoJobs c y next' w)
  | NextIo c y next next' w w' :
      next_io (spare y) next w next' w' → pipeline_move (TwoJobs c y next w) [] (TwoJobs c y next' w')
  | FlushEnds c y next w es :
      last_flush c = Some (es, y) → pipeline_move (TwoJobs c y next w) es (OneJob (next, end_flush w))
  | CutMeanwhile c y next w f :
      may_leave (meanwhile w) f →
      pipeline_move (TwoJobs c y next w) (shown_by_cut c) (OneJob (Off, Medium f [])).

Definition pipeline_formatted (n : nat) (x : pipeline) : Prop := ∃ x0, x = OneJob x0 ∧ formatted D n x0.
Definition pipelined : implementation block := Implementation pipeline pipeline_formatted pipeline_move.

(** Whatever a disk shows without a pipeline, it shows with one. *)
Lemma shows_pipelined x tr x' : shows (disk_machine D) x tr x' → shows pipelined (OneJob x) tr (OneJob x').
Proof.
  induction 1 as [|x es x1 tr x2 Hmove _ IH]; [constructor|]. eapply (shows_step pipelined); [|exact IH].
  by constructor.
Qed.

Lemma pipelined_implements : implements pipelined Ack → implements (disk_machine D) Ack.
Proof.
  intros Hall n x tr x' Hx Htr%shows_pipelined. apply (Hall n (OneJob x) tr (OneJob x')); [|done].
  by exists x.
Qed.

(** ** What the programs are to do *)

Definition spare_when_ok (o : Y * answer * list block) : nat → bool :=
  match o.1.2 with Ok => spare o.1.1 | _ => λ _, false end.
Definition spare_when_all (o : Y * bool) : nat → bool := if o.2 then spare o.1 else λ _, false.

Section Refinement.
Context (shape : Y → geometry) (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).
Implicit Types (f : contents block) (d : disk block) (q : request).
Local Notation related := (related shape represents recoverable).

Record framed_programs : Prop := FramedPrograms {
  framed_request y f d places q : represents y f d → q ≠ DoRestart →
    let s := settled (disk_blocks (shape y)) d in
    framed spare_when_ok (outcome_left recoverable (shape y) s q) (run_request D y places q) (Medium f []);
  framed_group y f d places ws : represents y f d →
    framed spare_when_all (writes_left recoverable (shape y) d ws) (run_group D y places ws) (Medium f []);
}.

Context (programs_safe : crash_safe_programs D shape represents recoverable).
Context (programs_framed : framed_programs).

Definition minds_nothing (x : machine Y) (s : state block) : Prop :=
  match x.1 with
  | Busy q p => q ≠ DoRestart → ∃ g d, s = settled (disk_blocks g) d ∧
      framed spare_when_ok (outcome_left recoverable g s q) p x.2
  | Group ws p => ∃ g d, s = settled (disk_blocks g) d ∧
      framed spare_when_all (writes_left recoverable g d ws) p x.2
  | _ => True
  end.

Definition cut_explained (c : control Y) (s : state block) f : Prop :=
  ∃ s', run Ack s (shown_by_cut c) s' ∧ related (Off, Medium f []) s'.

Definition pipeline_related (x : pipeline) (s : state block) : Prop :=
  match x with
  | OneJob x => related x s ∧ minds_nothing x s
  | TwoJobs c y next w => ∃ es s', last_flush c = Some (es, y) ∧ run Ack s es s' ∧
      related (next, end_flush w) s' ∧ minds_nothing (next, end_flush w) s' ∧ only_at (spare y) w ∧
      ∀ f f', may_leave (Medium (held w) (covered w)) f → (∀ a, spare y a = false → f' a = f a) →
        cut_explained c s f'
  end.

Lemma run_nothing (s s' : state block) : run Ack s [] s' → s' = s.
Proof. by inversion 1. Qed.

Lemma run_single (s s' : state block) e : step Ack s e s' → run Ack s [e] s'.
Proof. intros. econstructor; [done|constructor]. Qed.

(** ** Every step *)

Lemma minds_nothing_move x es x' s s' :
  related x s → minds_nothing x s → move D x es x' → run Ack s es s' → minds_nothing x' s'.
Proof.
  intros Hrel Hx Hmove Hrun. unfold DiskMachine.related, minds_nothing in *.
  destruct Hmove; simpl in *; try done; apply run_nothing in Hrun as ->.
  - destruct Hrel as (f&d&->&Hy&->). intros Hq. exists (shape y), d. split; [done|].
    by apply (framed_request programs_framed).
  - destruct Hrel as (f&d&->&Hy&->). exists (shape y), d. split; [done|].
    by apply (framed_group programs_framed).
  - intros (g&d&Hs&Hp)%Hx. exists g, d. split; [done|]. by eapply framed_io.
  - destruct Hx as (g&d&Hs&Hp). exists g, d. split; [done|]. by eapply framed_io.
Qed.

(** The flush, as one step, and the answer. *)
Lemma last_flush_moves c m es y : last_flush c = Some (es, y) → ∃ c', c ≠ Off ∧
  move D (c, m) [] (c', flush_blocks m) ∧ move D (c', flush_blocks m) es (Idle y, flush_blocks m).
Proof.
  destruct c as [|q p|ws p| | |]; simpl; try done.
  - intros Hlast. assert (∃ data, p = FlushBlocks (Done (y, Ok, data)) ∧ es = [event_of q Ok data])
      as (data&->&->).
    { destruct q, p as [|?|?|[[[? []] ?]| | | |]|]; try done; injection Hlast as <- ->; by eexists. }
    exists (Busy q (Done (y, Ok, data))). split_and!; [done|by apply BusyIo|apply Answer].
  - destruct p as [|?|?|[[? []]| | | |]|]; try done. intros [= <- ->].
    exists (Group ws (Done (y, true))). split_and!; [done|by apply GroupIo|apply GroupAnswer].
Qed.

(** What may be left while it is under way, whatever stands at spare addresses. *)
Lemma last_flush_cut c m es y s : related (c, m) s → minds_nothing (c, m) s → last_flush c = Some (es, y) →
  ∀ f f', may_leave m f → (∀ a, spare y a = false → f' a = f a) → cut_explained c s f'.
Proof.
  intros Hrel Hx Hlast f f' Hf Hf'. destruct c as [|q p|ws p| | |]; simpl in Hlast; try done; simpl in Hx.
  - assert (q ≠ DoRestart ∧ ∃ data, p = FlushBlocks (Done (y, Ok, data))) as (Hq&data&->).
    { split; [by intros ->|].
      destruct q, p as [|?|?|[[[? []] ?]| | | |]|]; try done; injection Hlast as <- ->; by eexists. }
    destruct (Hx Hq) as (g&d&->&Hleft&_). destruct (Hleft f f' Hf Hf') as (d'&Hd'&Hrec).
    destruct (step_cut_short _ _ _ _ Hd') as (s'&?&?&?). exists s'. split; [by apply run_single|].
    by exists g, f', d'.
  - destruct p as [|?|?|[[? []]| | | |]|]; try done. injection Hlast as <- ->.
    destruct Hx as (g&d&->&Hleft&_).
    destruct (group_unknown _ _ _ _ _ (Hleft f f' Hf Hf')) as (d'&Hrun&Hrec).
    exists (cut (settled (disk_blocks g) d') []).
    split; [apply run_app; eexists; split; [done|by apply run_single]|].
    exists g, f', d'. split_and!; [done|done|by left|done].
Qed.

Lemma next_io_move may next w next' w' : next_io may next w next' w' →
  move D (next, end_flush w) [] (next', end_flush w') ∧ held w' = held w ∧ covered w' = covered w ∧
  (only_at may w → only_at may w').
Proof.
  destruct 1 as [q p p' w w' Hio|ws p p' w w' Hio|p p' w w' Hio]; pose proof (io_meanwhile_at _ _ _ _ _ Hio);
    apply io_meanwhile_later in Hio; (split; [|done]); [by apply BusyIo|by apply GroupIo|by apply UpkeepIo].
Qed.

Lemma pipeline_related_move x s es x' :
  pipeline_related x s → pipeline_move x es x' → ∃ s', run Ack s es s' ∧ pipeline_related x' s'.
Proof.
  assert (∀ x es x' s, related x s → minds_nothing x s → move D x es x' →
    ∃ s', run Ack s es s' ∧ related x' s' ∧ minds_nothing x' s') as Hstep.
  { intros x1 es1 x2 s1 Hrel Hx Hmove.
    destruct (related_move D shape represents recoverable programs_safe _ _ _ _ Hrel Hmove)
      as (s2&Hrun&Hrel2).
    exists s2. split_and!; [done..|].
    exact (minds_nothing_move _ _ _ _ _ Hrel Hx Hmove Hrun). }
  intros Hrel Hmove. destruct Hmove as [x es x' Hmove|c m es y Hlast|c y next next' w Hmove
    |c y next next' w w' Hio|c y next w es Hlast|c y next w f Hf].
  - destruct Hrel as [Hrel Hx]. by eapply Hstep.
  - destruct Hrel as [Hrel Hx]. exists s. split; [constructor|].
    destruct (last_flush_moves c m es y Hlast) as (c'&Hon&Hmove1&Hmove2).
    destruct (Hstep _ _ _ _ Hrel Hx Hmove1) as (s1&->%run_nothing&Hrel1&Hx1).
    destruct (Hstep _ _ _ _ Hrel1 Hx1 Hmove2) as (s2&Hrun2&Hrel2&Hx2).
    exists es, s2. split_and!; [done..| |].
    + by intros a ?%elem_of_nil.
    + destruct m. by eapply last_flush_cut.
  - destruct Hrel as (es&s'&Hlast&Hrun&Hrel&Hx&Hat&Hcut). exists s. split; [constructor|].
    destruct (Hstep _ _ _ _ Hrel Hx (Hmove (end_flush w))) as (s2&->%run_nothing&Hrel2&Hx2).
    by exists es, s'.
  - destruct Hrel as (es&s'&Hlast&Hrun&Hrel&Hx&Hat&Hcut). exists s. split; [constructor|].
    apply next_io_move in Hio as (Hmove&Hheld&Hcovered&Hat').
    destruct (Hstep _ _ _ _ Hrel Hx Hmove) as (s2&->%run_nothing&Hrel2&Hx2).
    exists es, s'. rewrite Hheld, Hcovered. split_and!; auto.
  - destruct Hrel as (es'&s'&Hlast'&Hrun&Hrel&Hx&_). rewrite Hlast in Hlast'. injection Hlast' as <-.
    by exists s'.
  - destruct Hrel as (es&s'&Hlast&Hrun&Hrel&Hx&Hat&Hcut).
    destruct (cut_meanwhile _ _ _ Hat Hf) as (f0&Hf0&Hsame).
    destruct (Hcut f0 f Hf0 Hsame) as (s2&Hrun2&Hrel2). by exists s2.
Qed.

(** A disk whose programs are crash safe, and mind nothing that is written at spare addresses during their
last flush, keeps the contract with a pipeline. *)
Theorem pipelined_refines : implements pipelined Ack.
Proof.
  apply (forward_simulation pipelined Ack pipeline_related).
  - intros n x (x0&->&(y&f&->&Hn&Hrep)%(formatted_blank _ _ _ _ programs_safe)). split; [|done].
    exists f, blank. split; [done|]. split; [done|]. by rewrite Hn.
  - apply pipeline_related_move.
Qed.
End Refinement.
End Machine.
Global Arguments pipeline {_} _.
