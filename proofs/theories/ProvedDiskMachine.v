(** The machine that runs the programs of the proved disk, and its power. What is not on the device is lost
with the power: memory, and what a program was about. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskMaps
  ProvedDiskAppend
  ProvedDiskRecovery ProvedDiskRequests.

Section Machine.
Context `{!blocks} {torn : tearing}.

Inductive control :=
  | Idle (y : memory)
  | Busy (q : request) (p : program block outcome)     (* a request is under way *)
  | Group (ws : list (nat * list block)) (p : program block (memory * bool))   (* several writes are *)
  | Upkeep (p : program block memory)
  | Off
  | Recovery (p : program block (option memory)).

Definition machine : Type := control * medium block.

(** What a power cut shows: the request that it cut short, if there is one. Of several writes the outcome is
unknown. *)
Definition shown_by_cut (c : control) : list (event block) :=
  match c with
  | Busy q _ => [event_of q CutShort []]
  | Group ws _ => writes_shown ws UnknownOutcome ++ [Crash CutShort]
  | _ => [Crash CutShort]
  end.

Inductive move : machine → list (event block) → machine → Prop :=
  | Call y m q places :                     (* any request, with any proposal of the scheduler *)
      move (Idle y, m) [] (Busy q (perform y places q), m)
  | CallGroup y m ws places :               (* any writes at once, with any proposal *)
      move (Idle y, m) [] (Group ws (write_group y places ws), m)
  | Maintain y m u :
      move (Idle y, m) [] (Upkeep (maintain y u), m)
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
      move (Off, m) [] (Recovery (recover Done), m)
  | Recovered y m :
      move (Recovery (Done (Some y)), m) [Crash Ok] (Idle y, m).

(** A new disk of so many blocks: a device that held anything, formatted. Its records do not tear. *)
Definition formatted (n : nat) (x : machine) : Prop :=
  ∃ g f y, disk_blocks g = n ∧ whole_records g ∧ (execute (format g) (Medium f [])).1 = Some y ∧
    x = (Idle y, (execute (format g) (Medium f [])).2).

Definition proved_disk : implementation block := Implementation machine formatted move.
End Machine.
