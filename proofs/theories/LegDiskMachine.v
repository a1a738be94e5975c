(** A proved disk on a leg: its programs ([DiskMachine.v]), each block I/O on the members. Devices fail
between any two I/Os, also when the power is off; they come back, or are replaced, between two requests.

While fewer members answer than the code needs the disk is [Lost]: a read is answered [DataLost], and nothing
else succeeds. It opens again when enough of them are back. *)
From stdpp Require Import gmap strings.
From LogDisk Require DiskMachine.
From LogDisk Require Import VirtualDisk RecordedTrace Medium Codec ProvedDisk ProvedDiskInvariant
  ProvedDiskRequests.
From LogDisk Require Import Devices Leg.
Import DiskMachine(programs, run_request, run_group, run_upkeep, run_recovery, run_format).

Section LegDisk.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} {Y U : Type} (D : programs Y U).
Variables (size count : nat).    (* blocks of the leg, devices *)

Inductive control :=
  | Idle (y : Y) (ms : list nat) (c : bool)
  | Busy (q : request) (p : array_program C (list nat * bool * (Y * answer * list block)))
  | Group (ws : list (nat * list block)) (p : array_program C (list nat * bool * (Y * bool)))
  | Upkeep (p : array_program C (list nat * bool * Y))
  | Settling (y : Y) (p : array_program C (list nat * bool))
  | Lost
  | Off
  | Recovery (on : bool) (p : array_program C (list nat * bool * option Y)).
      (* [on]: the power is back, as far as anybody was told *)

Definition powered (c : control) : bool := match c with Off | Recovery false _ => false | _ => true end.

(** The last component: who failed since the power cut that nobody was told of yet. *)
Definition machine : Type := control * array C * list nat.

Definition when_cut (c : control) : list (entry block) :=
  match c with
  | Busy q _ => [Event (event_of q CutShort [])]
  | Group ws _ => (Event <$> writes_shown ws UnknownOutcome) ++ [Event (Crash CutShort)]
  | Settling _ _ => [Settle CutShort]
  | _ => [Event (Crash CutShort)]
  end.

(** What is answered when too few members answer. *)
Definition when_lost (q : request) : entry block :=
  Event (event_of q (match q with DoRead _ _ _ => Refused DataLost | _ => UnknownOutcome end) []).

Definition told (h : list nat) : list (entry block) := (λ i, Fail i Ok) <$> h.

Definition device_fails (i : nat) (x x' : array C) : Prop :=
  ∃ d, down i (device_at x i) d ∧ x' = put_device x i d.
Definition comes_back (i : nat) (x : array C) : array C :=
  put_device x i (Device true (store (device_at x i))).
Definition others (i : nat) (ms : list nat) : list nat := filter (λ j, j ≠ i) ms.
(** Another device, whatever is on it. *)
Definition replaced (i : nat) (f : contents C) (ms : list nat) (c : bool) (x : array C) : array C
  :=
  put_device (Array (device_at x) ms c) i (Device true (Medium f [])).

Definition reopen (x : array C) : array_program C (list nat * bool * option Y) :=
  open_leg size (members x) (clean x) (λ ms c, on_leg size ms c (run_recovery D)).

Inductive move : machine → list (entry block) → machine → Prop :=
  | Call y ms c q places x h :
      move (Idle y ms c, x, h) [] (Busy q (on_leg size ms c (run_request D y places q)), x, h)
  | CallGroup y ms c ws places x h :
      move (Idle y ms c, x, h) [] (Group ws (on_leg size ms c (run_group D y places ws)), x, h)
  | Maintain y ms c u x h :
      move (Idle y ms c, x, h) [] (Upkeep (on_leg size ms c (run_upkeep D y u)), x, h)
  | StartSettle y ms c x h :
      move (Idle y ms c, x, h) [] (Settling y (settle_leg size count ms c), x, h)
  | Rest y ms c x h :                       (* nothing is unflushed: the next opening need not compare *)
      move (Idle y ms c, x, h) [] (Idle y ms true, Array (device_at x) ms true, h)
  (* one I/O *)
  | BusyIo q p x p' x' h : array_io p x p' x' → move (Busy q p, x, h) [] (Busy q p', x', h)
  | GroupIo ws p x p' x' h : array_io p x p' x' → move (Group ws p, x, h) [] (Group ws p', x', h)
  | UpkeepIo p x p' x' h : array_io p x p' x' → move (Upkeep p, x, h) [] (Upkeep p', x', h)
  | SettleIo y p x p' x' h : array_io p x p' x' → move (Settling y p, x, h) [] (Settling y p', x', h)
  | RecoveryIo on p x p' x' h : array_io p x p' x' → move (Recovery on p, x, h) [] (Recovery on p', x', h)
  (* the end of a program *)
  | Answer q ms c y r data x h :
      move (Busy q (Finish (ms, c, (y, r, data))), x, h) [Event (event_of q r data)] (Idle y ms c, x, h)
  | GroupAnswer ws ms c y x h :
      move (Group ws (Finish (ms, c, (y, true))), x, h) (Event <$> writes_shown ws Ok) (Idle y ms c, x, h)
  | GroupRefused ws ms c y x h :            (* none was performed *)
      move (Group ws (Finish (ms, c, (y, false))), x, h) [] (Idle y ms c, x, h)
  | UpkeepEnds ms c y x h : move (Upkeep (Finish (ms, c, y)), x, h) [] (Idle y ms c, x, h)
  | Settled y ms c x h : move (Settling y (Finish (ms, c)), x, h) [Settle Ok] (Idle y ms c, x, h)
  | Recovered (on : bool) ms c y x h :
      move (Recovery on (Finish (ms, c, Some y)), x, h)
        ((if on then [] else [Event (Crash Ok)]) ++ told h) (Idle y ms c, x, [])
  (* too few members answer *)
  | BusyStops q x h : move (Busy q Stop, x, h) [when_lost q] (Lost, x, h)
  | GroupStops ws x h : move (Group ws Stop, x, h) (Event <$> writes_shown ws UnknownOutcome) (Lost, x, h)
  | UpkeepStops x h : move (Upkeep Stop, x, h) [] (Lost, x, h)
  | SettleStops y x h : move (Settling y Stop, x, h) [Settle (Refused DataLost)] (Lost, x, h)
  | RecoveryStops (on : bool) x h :
      move (Recovery on Stop, x, h) ((if on then [] else [Event (Crash Ok)]) ++ told h) (Lost, x, [])
  | LostAnswer q x h : move (Lost, x, h) [when_lost q] (Lost, x, h)
  | LostSettle x h : move (Lost, x, h) [Settle (Refused DataLost)] (Lost, x, h)
  | Reopen x h : move (Lost, x, h) [] (Recovery true (reopen x), x, h)
  | IdleHint y ms c x h : move (Idle y ms c, x, h) [Hint Ok] (Idle y ms c, x, h)
  | LostHint x h : move (Lost, x, h) [Hint Ok] (Lost, x, h)
  (* the power, at any moment *)
  | PowerCut c x x' h : powered c = true ∨ (∃ p, c = Recovery false p) → loses_power x x' →
      move (c, x, h) (when_cut c) (Off, x', h)
  | PowerOn x h : move (Off, x, h) [] (Recovery false (reopen x), x, h)
  (* devices *)
  | DeviceFails c i x x' h : i < count → device_fails i x x' →
      move (c, x, h) (if powered c then [Fail i Ok] else []) (c, x', if powered c then h else i :: h)
  | IdleReturn y ms c i x h : i < count →
      move (Idle y ms c, x, h) [Return i Ok] (Idle y ms c, comes_back i x, h)
  | LostReturn i x h : i < count → move (Lost, x, h) [Return i Ok] (Lost, comes_back i x, h)
  | OffReturn i x h : i < count → move (Off, x, h) [] (Off, comes_back i x, h)
  | IdleReplace y ms c i f x h :            (* the record goes first *)
      i < count → fewest ≤ length (others i ms) →
      move (Idle y ms c, x, h) [Replace i Ok] (Idle y (others i ms) c, replaced i f (others i ms) c x, h)
  | LastReplace y ms c i f x h :            (* too few members are left: data are lost for good *)
      i < count → length (others i ms) < fewest →
      move (Idle y ms c, x, h) [Replace i Ok] (Lost, replaced i f (others i ms) c x, h)
  | LostReplace i f x h :
      i < count →
      move (Lost, x, h) [Replace i Ok] (Lost, replaced i f (others i (members x)) (clean x) x, h).

(** Devices that have the pieces of the same blocks, formatted. *)
Definition whole (f : contents block) : array C :=
  Array (λ i, Device true (Medium (λ a, piece a i (f a)) [])) (seq 0 count) false.
Definition formatted (n : nat) (s : machine) : Prop :=
  ∃ trees g f ms c y x, disk_blocks g = n ∧ torn_unread g ∧
    complete (on_leg size (seq 0 count) false (run_format D trees g)) (whole f) =
      (Some (ms, c, Some y), x) ∧ s = (Idle y ms c, x, []).

(** What the machine shows. *)
Inductive lives : machine → list (entry block) → machine → Prop :=
  | lives_nil s : lives s [] s
  | lives_step s es s' tr s'' : move s es s' → lives s' tr s'' → lives s (es ++ tr) s''.

Lemma lives_app s tr s' tr' s'' : lives s tr s' → lives s' tr' s'' → lives s (tr ++ tr') s''.
Proof.
  intros H1. revert tr' s''. induction H1 as [|s es s' tr s'' Hm _ IH]; intros tr' y Hy; [done|].
  rewrite <-(assoc_L (++)). econstructor; [exact Hm|]. by apply IH.
Qed.

Lemma lives_one s es s' : move s es s' → lives s es s'.
Proof. intros Hm. rewrite <-(app_nil_r es). econstructor; [exact Hm|constructor]. Qed.

End LegDisk.
Global Arguments control {_} _ _. Global Arguments machine {_} _ _.
