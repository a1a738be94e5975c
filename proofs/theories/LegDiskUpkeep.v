(** Progress of upkeep on a leg: whatever a scheduler asks for between two requests (a checkpoint, a
collection, a cleaning with any moves, a step of a walk), it ends after a bounded number of turns, while other
devices fail between any two I/Os and enough members are left. No I/O of it is past the end of the devices. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec ProvedDisk ProvedDiskInvariant
  ProvedDiskBounds ProvedDiskMachine ProvedDiskRefinement.
From LogDisk Require Import ProvedTreeDiskInvariant ProvedTreeDiskBounds ProvedTreeDiskTheorem.
From LogDisk Require Import Devices Leg LegCorrect RequestProgress LegProgress LegDiskMachine
  LegDiskRefinement LegDiskProgress Progress.
Import DiskMachine(programs, crash_safe_programs, run_upkeep).

Section Upkeep.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type} (D : programs Y U).
Variables (size count : nat).
Local Notation machine := (machine C Y).
Implicit Types (x : array C) (y : Y) (u : U) (ms h : list nat) (z : machine).

Inductive upkeep_turn u : machine → list (entry block) → machine → Prop :=
  | Undertakes y ms c x h :
      upkeep_turn u (Idle y ms c, x, h) [] (Upkeep (on_leg size ms c (run_upkeep D y u)), x, h)
  | Maintains p x p' x' h : array_io p x p' x' → upkeep_turn u (Upkeep p, x, h) [] (Upkeep p', x', h)
  | Maintained ms c y x h : upkeep_turn u (Upkeep (Finish (ms, c, y)), x, h) [] (Idle y ms c, x, h).

Lemma upkeep_turn_is_move u z es z' : upkeep_turn u z es z' → move D size count z es z'.
Proof. destruct 1; by constructor. Qed.

Definition idle_again (es : list (entry block)) z : Prop := es = [] ∧ ∃ y ms c x h, z = (Idle y ms c, x, h).

(** Two turns, and those of [n] I/Os. *)
Definition upkeep_turns (w n : nat) : nat := 2 + ios_on w n.

Context {laws : cutting_laws count}.

Theorem upkeep_is_finished (shape : Y → geometry) represents recoverable ios n z tr y ms c x h u :
  crash_safe_programs D shape represents recoverable →
  (∀ f d, represents y f d → runs_within size ios (run_upkeep D y u) (Medium f [])) →
  formatted D size count n z → lives D size count z tr (Idle y ms c, x, h) →
  ends_well (weather count) (upkeep_turn u) idle_again (upkeep_turns (length ms) ios) (Idle y ms c, x, h).
Proof.
  intros Hsafe Hwithin Hz Hlives.
  destruct (reached_related D size count _ _ _ Hsafe _ _ _ _ Hz Hlives) as (v&S&Hserves&_).
  destruct Hserves as (f&d&_&[Hholds Hx]&<-&_&Hy). apply holds_proper in Hholds as Hproper.
  intros [[c1 x1] h1] [Hc [H1 _]]%weather_tolerable. simpl in Hc, H1. subst c1.
  apply (each_up_fails _ _ _ _ H1) in Hx. destruct H1 as (Hm1&_&_).
  split; [do 2 eexists; apply Undertakes|]. intros es z1 Hz1. right. inversion Hz1; simplify_eq.
  split; [done|]. rewrite (Nat.add_comm 1).
  apply (machine_ends count (upkeep_turn u) idle_again Upkeep _ _ (λ _ _, True)); [done| | | |lia|].
  - intros. by apply Maintains.
  - intros p x2 h2 es z2 Hstep. destruct p; [done|..]; inversion Hstep; subst; eauto.
  - intros [[ms2 c2] y2] x2 h2 _ [[c3 x3] h3] [Hc3 _]%weather_tolerable. simpl in Hc3. subst c3.
    split; [do 2 eexists; apply Maintained|].
    intros es z2 Hstep. left. inversion Hstep; subst; [|by split; [|do 5 eexists]].
    match goal with H : array_io (Finish _) _ _ _ |- _ => inversion H end.
  - eapply (ends_on_leg size count _ _ _ _ (Medium f [])); [by eapply Hwithin|done..].
Qed.
End Upkeep.

Section Disks.
Context `{!blocks, !blocks_laws} {C : Type} `{!cutting block C} {torn : tearing block} (size count : nat).
Context {laws : cutting_laws count}.

(** With whole maps, *)
Theorem whole_map_upkeep_is_finished n z tr y ms c x h u :
  formatted proved_programs size count n z → lives proved_programs size count z tr (Idle y ms c, x, h) →
  device_blocks (shape y) ≤ size →
  ends_well (weather count) (upkeep_turn proved_programs size u) idle_again
    (upkeep_turns (length ms) (upkeep_ios (shape y) u)) (Idle y ms c, x, h).
Proof.
  intros Hz Hlives Hsize. eapply upkeep_is_finished; [done|by apply proved_programs_safe| |done..].
  intros f d Hy. by eapply within_maintain.
Qed.

(** and with trees. *)
Theorem tree_upkeep_is_finished bits n z tr y ms c x h u :
  formatted (tree_programs bits) size count n z →
  lives (tree_programs bits) size count z tr (Idle y ms c, x, h) →
  tree_device_blocks (T.shape y) (T.tree_size y) ≤ size →
  ends_well (weather count) (upkeep_turn (tree_programs bits) size u) idle_again
    (upkeep_turns (length ms) (tree_upkeep_ios y u)) (Idle y ms c, x, h).
Proof.
  intros Hz Hlives Hsize. eapply upkeep_is_finished; [done|by apply tree_programs_safe| |done..].
  intros f d Hy. by eapply within_tree_maintain.
Qed.
End Disks.
