(** Progress of a disk on one device: requests are answered and recovery ends after a bounded number of turns,
as long as what programs assume of digests is true ([Codec.v]). The power stays on meanwhile.
[LegDiskProgress.v] proves the same of a disk on a leg. *)
From stdpp Require Import list.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskRequests DiskMachine RequestProgress Progress.

Section Machine.
Context `{!blocks} {torn : tearing block} {Y U : Type} (D : programs Y U).
Local Notation machine := (machine Y).
Implicit Types (y : Y) (q : request) (m : medium block) (f : contents block) (z : machine).

(** Nothing happens between two turns. What is assumed next is true. *)
Definition agreed {A} (p : program block A) : Prop := match p with Assume φ _ => φ = true | _ => True end.
Definition all_agreed (c : control Y) : Prop :=
  match c with
  | Busy _ p => agreed p
  | Group _ p => agreed p
  | Upkeep p => agreed p
  | Recovery p => agreed p
  | Idle _ | Off => True
  end.
Definition assumed z z' : Prop := z' = z ∧ all_agreed z.1.

(** A program that is under way ends, and then the machine does. *)
Lemma machine_ends {A E} (step : machine → list E → machine → Prop) good
    (under_way : program block A → control Y) size n n' (p : program block A) m :
  (∀ p, all_agreed (under_way p) → agreed p) →
  (∀ p m p' m', io p m = Some (p', m') → step (under_way p, m) [] (under_way p', m')) →
  (∀ p m es z, step (under_way p, m) es z → match p with
     | Done _ => True
     | _ => ∃ p' m', io p m = Some (p', m') ∧ es = [] ∧ z = (under_way p', m') end) →
  (granted p m → ends_well assumed step good n' (under_way (Done (execute p m).1), (execute p m).2)) →
  runs_within size n p m → ends_well assumed step good (n + n') (under_way p, m).
Proof.
  intros Hagreed Hgo Hstep. revert n m. induction p as [r|a k IH|a b k IH|k IH|φ k IH];
    intros n m Hend Hp; [eapply ends_well_more; [|by apply Hend]; lia|..];
    (destruct n as [|n]; [done|]; intros z1 [-> Ha]; apply Hagreed in Ha; simpl in Ha);
    [..|subst φ]; (split; [do 2 eexists; by apply Hgo|]); intros es z (p'&m'&[= <- <-]&->&->)%Hstep; right;
    (split; [done|]); apply IH; try done; try (by apply Hp); intros; by apply Hend.
Qed.

(** ** Requests *)

Section Requests.
Context (places_for : Y → nat → option (list nat)) (collecting : U).
Local Notation planned := (planned places_for).

(** What the scheduler does with the request [q]. *)
Inductive turn q : machine → list (event block) → machine → Prop :=
  | Collects y m : planned y q = None → turn q (Idle y, m) [] (Upkeep (run_upkeep D y collecting), m)
  | Collected y m : turn q (Upkeep (Done y), m) [] (Idle y, m)
  | Calls y m places :
      planned y q = Some places → turn q (Idle y, m) [] (Busy q (run_request D y places q), m)
  | Performs p m p' m' : io p m = Some (p', m') → turn q (Busy q p, m) [] (Busy q p', m')
  | Answers y r data m : turn q (Busy q (Done (y, r, data)), m) [event_of q r data] (Idle y, m).

Lemma turn_is_move q z es z' : turn q z es z' → move D z es z'.
Proof. destruct 1; by constructor. Qed.

Definition answered_ok q (es : list (event block)) (_ : machine) : Prop := ∃ data, es = [event_of q Ok data].

Context (represents : Y → contents block → disk block → Prop) (admissible : Y → request → Prop)
  (size : nat) (ios : Y → request → nat).
Context (answers : answers_admissible D size places_for collecting represents admissible ios).

Lemma planned_ends y f d q places :
  represents y f d → admissible y q → planned y q = Some places →
  ends_well assumed (turn q) (answered_ok q) (S (ios y q + 1)) (Idle y, Medium f []).
Proof.
  intros Hy Hq Hplan z1 [-> _]. split; [do 2 eexists; by apply Calls|]. intros es z Hz. right.
  inversion Hz; simplify_eq. split; [done|].
  apply (machine_ends (turn q) (answered_ok q) (Busy q) size); [done| | | |by eapply planned_within].
  - intros. by apply Performs.
  - intros p m2 es z2 Hstep. destruct p; [done|..]; inversion Hstep; subst; eauto.
  - intros Hgranted z2 [-> _]. pose proof (planned_answered _ _ _ _ _ _ _ answers y f d q places Hy Hq Hplan
      Hgranted) as Hok.
    destruct (execute _ _) as [[[y2 r] data] m2]. simpl in *. subst r.
    split; [do 2 eexists; by apply Answers|].
    intros es z3 Hstep. left. inversion Hstep; subst; [done|by eexists].
Qed.

(** Four turns, and one for each I/O. *)
Lemma request_ends y f d q :
  represents y f d → admissible y q →
  ends_well assumed (turn q) (answered_ok q) (4 + ios y q) (Idle y, Medium f []).
Proof.
  intros Hy Hq. destruct (planned y q) as [places|] eqn:Hplan.
  { eapply ends_well_more; [|by eapply planned_ends]. lia. }
  destruct (collected_planned _ _ _ _ _ _ _ answers y f d q Hy Hq Hplan)
    as (y'&Hcollect&Hy'&Hq'&[places Hplaces]&Hios).
  intros z1 [-> _]. split; [do 2 eexists; by apply Collects|]. intros es z Hz. right.
  inversion Hz; simplify_eq. split; [done|]. rewrite Hcollect.
  intros z2 [-> _]. split; [do 2 eexists; apply Collected|]. intros es z Hz2. right.
  inversion Hz2; simplify_eq. split; [done|].
  eapply ends_well_more; [|by eapply (planned_ends y')]. rewrite Hios. lia.
Qed.
End Requests.

(** ** Recovery: the power returns *)

Inductive recovery_turn : machine → list (event block) → machine → Prop :=
  | Begins m : recovery_turn (Off, m) [] (Recovery (run_recovery D), m)
  | Recovers p m p' m' : io p m = Some (p', m') → recovery_turn (Recovery p, m) [] (Recovery p', m')
  | Opens y m : recovery_turn (Recovery (Done (Some y)), m) [Crash Ok] (Idle y, m).

Lemma recovery_turn_is_move z es z' : recovery_turn z es z' → move D z es z'.
Proof. destruct 1; by constructor. Qed.

Definition open_again (es : list (event block)) z : Prop := es = [Crash Ok] ∧ ∃ y m, z = (Idle y, m).

(** Two turns, and one for each I/O. *)
Lemma recovery_ends size n f : recovers_within D size n f →
  ends_well assumed recovery_turn open_again (2 + n) (Off, Medium f []).
Proof.
  intros [Hn Hfound] z1 [-> _]. split; [do 2 eexists; apply Begins|]. intros es z Hz. right.
  inversion Hz; subst. split; [done|]. replace (1 + n) with (n + 1) by lia.
  apply (machine_ends recovery_turn open_again Recovery size n 1); [done| | | |done].
  - intros. by apply Recovers.
  - intros p m2 es z2 Hstep. destruct p; [done|..]; inversion Hstep; subst; eauto.
  - intros [y Hy]%Hfound z2 [-> _]. rewrite Hy. split; [do 2 eexists; apply Opens|].
    intros es z3 Hstep. left. inversion Hstep; subst; [done|]. split; [done|by do 2 eexists].
Qed.

(** What is left once it is off. *)
Lemma off_recoverable shape represents recoverable n x tr m :
  crash_safe_programs D shape represents recoverable →
  formatted D n x → shows (disk_machine D) x tr (Off, m) →
  ∃ f g d, m = Medium f [] ∧ recoverable g d f.
Proof.
  intros Hsafe Hx Hshows. destruct (reached_related D _ _ _ Hsafe _ _ _ _ Hx Hshows) as (s&g&f&d&?&_&_&?).
  by exists f, g, d.
Qed.
End Machine.
