(** Disks of one shape: what a new disk is like, it is like for ever.

[formatted] asks for some shape of a new disk, and some size of its trees. Progress of recovery counts I/Os
by both, also where nothing of memory is left; so here they are named. *)
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskRequests DiskMachine.

Local Instance geometry_eq_dec : EqDecision geometry.
Proof. solve_decision. Defined.

Section Shape.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : programs Y U) (size : nat * nat) (g : geometry).

(** A new disk of shape [g], with trees of this size. *)
Definition formatted_as (x : machine Y) : Prop := ∃ f y, torn_unread g ∧
  (execute (run_format D size g) (Medium f [])).1 = Some y ∧
  x = (Idle y, (execute (run_format D size g) (Medium f [])).2).

(** The same programs, which format no other disks. *)
Definition only : programs Y U :=
  Programs (run_request D) (run_group D) (run_upkeep D) (run_recovery D)
    (λ size' g', if decide (size' = size ∧ g' = g) then run_format D size' g' else Done None).

Lemma format_only : run_format only size g = run_format D size g.
Proof. simpl. by rewrite decide_True. Qed.

Lemma formatted_only x : formatted_as x → formatted only (disk_blocks g) x.
Proof. intros (f&y&Hwhole&Hy&->). exists size, g, f, y. by rewrite format_only. Qed.

Lemma move_only x es x' : move D x es x' → move only x es x'.
Proof.
  destruct 1; try (by constructor);
    [apply (Call only)|apply (CallGroup only)|apply (Maintain only)|apply (PowerOn only)].
Qed.

Lemma shows_only x tr x' : shows (disk_machine D) x tr x' → shows (disk_machine only) x tr x'.
Proof. induction 1; [constructor|]. econstructor; [by apply move_only|done]. Qed.

Context (shape : Y → geometry) (represents : Y → contents block → disk block → Prop)
  (recoverable : geometry → disk block → contents block → Prop).

Definition represents_as y f d : Prop := shape y = g ∧ represents y f d.
Definition recoverable_as g' d f : Prop := g' = g ∧ recoverable g' d f.

(** No program changes the shape. *)
Lemma only_safe : crash_safe_programs only shape represents recoverable →
  crash_safe_programs only shape represents_as recoverable_as.
Proof.
  intros Hsafe. split.
  - intros y f d [Hg Hy] f' Hf'. split; [done|]. by eapply (safe_idle _ _ _ _ Hsafe).
  - intros y f d places q [Hg Hy].
    eapply crash_safe_mono; [| |by apply (safe_request _ _ _ _ Hsafe)].
    + intros f' (d'&Hd'&Hf'). by exists d'.
    + intros o m (f'&d'&->&Hshape&Hy'&Hstep). exists f', d'. split_and!; [done|done| |done].
      split; [by rewrite Hshape|done].
  - intros y f d places ws [Hg Hy]. eapply crash_safe_mono; [| |by apply (safe_group _ _ _ _ Hsafe)].
    + intros f' [Hf'|[Hws Hf']]; [by left|by right].
    + intros o m (f'&->&Hshape&Hws&Hy'). exists f'. split_and!; [done..|].
      split; [by rewrite Hshape|done].
  - intros y f d u [Hg Hy]. eapply crash_safe_mono; [| |by apply (safe_upkeep _ _ _ _ Hsafe)].
    + intros f' Hf'. by split.
    + intros y' m (f'&->&Hshape&Hy'). exists f'. split_and!; [done..|]. split; [by rewrite Hshape|done].
  - intros g' f d [-> Hf]. eapply crash_safe_mono; [| |by apply (safe_recovery _ _ _ _ Hsafe)].
    + intros f' Hf'. by split.
    + intros r m (y&->&f'&->&Hshape&Hy). exists y. split; [done|]. by exists f'.
  - intros size' g' f y m Hwhole Hy. pose proof Hy as Hformat.
    destruct (safe_format _ _ _ _ Hsafe _ _ _ _ _ Hwhole Hy) as (f'&->&Hshape&Hrep).
    exists f'. split_and!; [done..|]. split; [|done]. simpl in Hformat.
    destruct (decide _) as [[_ ->]|]; done.
Qed.
End Shape.
