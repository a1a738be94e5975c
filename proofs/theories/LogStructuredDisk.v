(** The log-structured disk: how the contract of [VirtualDisk] is kept.

An operation is a record of the durable log, and a record is carried out by one function, [carry_out], when
it is acknowledged and again when it is replayed.  Views are maps LBA -> MBA; the data of an MBA waits in the
bank or lies at the PBA that the middle map names.  A checkpoint saves the maps; then the log may forget.

What stands on the devices ([devices]) outlives a power cut, as far as it was flushed; what stands in [memory]
does not.  The rules that make this safe are named ([rule]), so that each can be dropped and seen to matter.

Left out: tree nodes and their sharing (SharedTree), components and their failures (Redundancy), and when the
disk runs out of space ([Refuse] may say so at any time that the contract lets it). *)
From LogDisk Require Export VirtualDisk.

(** ** Records, maps and checkpoints *)

Inductive record {V : Type} :=
  | RWrite (lba : nat) (data : list V)
  | RUnmap (lba count : nat)
  | RSnapshot (n : name)
  | RDelete (n : name)
  | RRevert (n : name).
Global Arguments record : clear implicits.

Notation lba_map := (gmap nat nat).               (* LBA -> MBA *)
Notation pba := (nat * nat)%type.                 (* segment, slot *)

Record maps := Maps {
  live_map : lba_map;
  snap_maps : gmap name lba_map;
  middle : gmap nat pba;                          (* MBA -> PBA *)
  next_mba : nat;                                 (* this MBA and all above it were never used *)
}.

Record checkpoint := Checkpoint {
  saved : maps;
  upto : nat;                                     (* the records before this one are in [saved] *)
  number : nat;                                   (* tells the newer slot from the older *)
}.

(** A segment that the usage table does not list is free. *)
Inductive usage := Open | Sealed | Dead.
Global Instance usage_eq_dec : EqDecision usage := ltac:(solve_decision).

Inductive phase := Off | Recovering | Running.
Global Instance phase_eq_dec : EqDecision phase := ltac:(solve_decision).

(** ** Designs: the parameters, and the rules that make them safe *)

Inductive rule :=
  | FlushBeforeAcknowledge    (* unless a crash may lose what was acknowledged since the last flush *)
  | SealBeforeCheckpoint      (* the data that a checkpoint refers to is durable before it *)
  | LogBeforeCheckpoint       (* so are the records that it covers *)
  | TruncateAfterCommit       (* the log forgets only what a durable checkpoint covers *)
  | FreeAfterCheckpoint       (* no segment is used again while a durable checkpoint refers to it *)
  | ReplayAfterCheckpoint     (* replay starts behind what the checkpoint covers *)
  | ReclaimUnreachable        (* a chunk is dropped only when no view refers to it *)
  | CleanGains.               (* cleaning leaves fewer segments in use *)
Global Instance rule_eq_dec : EqDecision rule := ltac:(solve_decision).

Record design := Design { promises : profile; width : nat; obeys : rule → bool }.

Definition sound (K : design) : Prop := (promises K = Ack ∨ promises K = Prefix) ∧ ∀ r, obeys K r.
Definition by_the_rules (p : profile) (w : nat) : design := Design p w (λ _, true).
Lemma by_the_rules_sound p w : p ≠ Block → sound (by_the_rules p w).
Proof. intros Hp. split; [|by intros r]. by destruct p; auto. Qed.

(** All rules but one. *)
Definition breaking (r : rule) (p : profile) (w : nat) : design := Design p w (λ r', bool_decide (r' ≠ r)).

Section LogStructuredDisk.
Context {V : Type} `{Value V}.
Implicit Types (r : record V) (m : maps) (g x : nat).

(** ** States *)

Record devices := Devices {
  past : list (record V);           (* what the log forgot: no step reads it, only its length counts, *)
  log : list (record V);            (* which is the sequence number of the log's first record *)
  flushed : nat;                    (* the records before this one are durable *)
  slot_a : option checkpoint;
  slot_b : option checkpoint;
  segments : gmap nat (list V);
}.

Record memory := Memory {
  current : maps;
  bank : gmap nat V;                (* MBA -> data that no segment holds yet *)
  table : gmap nat usage;
  applied : nat;                    (* the records before this one are in [current] *)
  nodes : option checkpoint;        (* written by a checkpoint that is not committed *)
}.

(** What has not been answered: an operation whose record was submitted, or a restart. *)
Inductive request := Operation r | Reopen.

Record state := State {
  size : nat;
  at_phase : phase;
  pending : option request;
  dev : devices;
  mem : memory;
}.

Definition no_maps : maps := Maps ∅ ∅ ∅ 0.
Definition no_memory : memory := Memory no_maps ∅ ∅ 0 None.
Definition initial (blocks : nat) : state :=
  State blocks Running None (Devices [] [] 0 (Some (Checkpoint no_maps 0 0)) None ∅) no_memory.

(** ** Reading *)

Definition stored (segs : gmap nat (list V)) (a : pba) : option V := segs !! a.1 ≫= (.!! a.2).

(** The data of an MBA, from the bank or from its segment. *)
Definition chunk (b : gmap nat V) (mid : gmap nat pba) (segs : gmap nat (list V)) x : option V :=
  match b !! x with Some v => Some v | None => mid !! x ≫= stored segs end.

Definition view_by (f : nat → option V) (vm : lba_map) : view V := λ l, default zero (vm !! l ≫= f).
Definition disk_by (f : nat → option V) m : disk V :=
  Disk (view_by f (live_map m)) (view_by f <$> snap_maps m).

Definition chunk_of (c : state) : nat → option V :=
  chunk (bank (mem c)) (middle (current (mem c))) (segments (dev c)).
(** What the disk reads as. *)
Definition seen (c : state) : disk V := disk_by (chunk_of c) (current (mem c)).

Definition same_view (v w : view V) : Prop := ∀ l, v l = w l.
Definition same_disk (d e : disk V) : Prop :=
  ∀ from, option_Forall2 same_view (view_of d from) (view_of e from).

(** ** What refers to what *)

Definition targets {A} `{Countable A} {K} `{Countable K} (f : gmap K A) : gset A :=
  list_to_set (map_to_list f).*2.
Definition reachable m : gset nat := targets (live_map m) ∪ ⋃ (targets <$> (map_to_list (snap_maps m)).*2).
Definition segments_of m : gset nat := set_map fst (targets (middle m)).

(** ** Records *)

(** What the contract makes of a disk for each record, and how it shows one. *)
Definition effect r (d : disk V) : disk V :=
  match r with
  | RWrite lba data => written d lba data
  | RUnmap lba count => unmapped d lba count
  | RSnapshot n => snapshotted d n
  | RDelete n => deleted d n
  | RRevert n => reverted d n
  end.

Definition faults (blocks : nat) (d : disk V) r : list code :=
  match r with
  | RWrite lba data => if decide (fits blocks lba (length data)) then [] else [OutOfRange]
  | RUnmap lba count => if decide (fits blocks lba count) then [] else [OutOfRange]
  | RSnapshot n => taken d n
  | RDelete n | RRevert n => missing d n
  end.

Definition excuses r : list code := match r with RDelete _ => [] | _ => [NoSpace] end.

Definition shown r (a : answer) : event V :=
  match r with
  | RWrite lba data => Write lba data a
  | RUnmap lba count => Unmap lba count a
  | RSnapshot n => Snapshot n a
  | RDelete n => Delete n a
  | RRevert n => Revert n a
  end.

(** The disk after a history. *)
Definition after (h : list (record V)) : disk V := foldl (λ d r, effect r d) blank h.

(** What carrying out a record makes of the maps: a write takes fresh MBAs. *)
Definition remap r m : maps :=
  match r with
  | RWrite lba data =>
      Maps (map_seq lba (seq (next_mba m) (length data)) ∪ live_map m) (snap_maps m) (middle m)
        (next_mba m + length data)
  | RUnmap lba count =>
      Maps (filter (λ e, ¬ (lba ≤ e.1 < lba + count)) (live_map m)) (snap_maps m) (middle m) (next_mba m)
  | RSnapshot n => Maps (live_map m) (<[n := live_map m]> (snap_maps m)) (middle m) (next_mba m)
  | RDelete n => Maps (live_map m) (delete n (snap_maps m)) (middle m) (next_mba m)
  | RRevert n => Maps (default (live_map m) (snap_maps m !! n)) (snap_maps m) (middle m) (next_mba m)
  end.

(** What it puts into the bank. *)
Definition banked r m : gmap nat V := match r with RWrite _ data => map_seq (next_mba m) data | _ => ∅ end.

Definition carry_out r (y : memory) : memory :=
  Memory (remap r (current y)) (banked r (current y) ∪ bank y) (table y) (S (applied y)) (nodes y).

(** ** The two slots *)

Definition newest (s : devices) : option checkpoint :=
  match slot_a s, slot_b s with
  | Some a, Some b => if decide (number a < number b) then Some b else Some a
  | Some a, None => Some a
  | None, b => b
  end.

(** The older slot now holds [i]: a checkpoint, or nothing valid. *)
Definition replace_older (i : option checkpoint) (s : devices) : devices :=
  match slot_a s, slot_b s with
  | Some a, Some b =>
      if decide (number a < number b) then Devices (past s) (log s) (flushed s) i (Some b) (segments s)
      else Devices (past s) (log s) (flushed s) (Some a) i (segments s)
  | Some a, None => Devices (past s) (log s) (flushed s) (Some a) i (segments s)
  | None, b => Devices (past s) (log s) (flushed s) i b (segments s)
  end.

(** ** Parts of steps *)

Definition history (c : state) : list (record V) := past (dev c) ++ log (dev c).
Definition first (c : state) : nat := length (past (dev c)).
Definition logged (c : state) : nat := length (past (dev c)) + length (log (dev c)).

Definition with_memory (c : state) (y : memory) : state := State (size c) (at_phase c) (pending c) (dev c) y.
Definition with_devices (c : state) (s : devices) : state :=
  State (size c) (at_phase c) (pending c) s (mem c).
Definition with_segments (s : devices) (segs : gmap nat (list V)) : devices :=
  Devices (past s) (log s) (flushed s) (slot_a s) (slot_b s) segs.
Definition with_table (y : memory) (t : gmap nat usage) : memory :=
  Memory (current y) (bank y) t (applied y) (nodes y).
Definition with_nodes (y : memory) (i : option checkpoint) : memory :=
  Memory (current y) (bank y) (table y) (applied y) i.
Definition with_middle m (mid : gmap nat pba) : maps := Maps (live_map m) (snap_maps m) mid (next_mba m).

Definition submit r (c : state) : state :=
  let s := dev c in
  State (size c) (at_phase c) (Some (Operation r))
    (Devices (past s) (log s ++ [r]) (flushed s) (slot_a s) (slot_b s) (segments s)) (mem c).

Definition log_append (c : state) : state :=
  let s := dev c in
  with_devices c (Devices (past s) (log s) (logged c) (slot_a s) (slot_b s) (segments s)).

Definition acknowledge r (c : state) : state :=
  State (size c) (at_phase c) None (dev c) (carry_out r (mem c)).

(** Segment [g], which is free, is written with the chunks [xs], and the middle map now finds them there. *)
Definition placed g (xs : list nat) : gmap nat pba := list_to_map (imap (λ i x, (x, (g, i))) xs).
Definition place g (xs : list nat) (c : state) : state :=
  let y := mem c in
  let data := (λ x, default zero (chunk_of c x)) <$> xs in
  State (size c) (at_phase c) (pending c)
    (with_segments (dev c) (<[g := data]> (segments (dev c))))
    (Memory (with_middle (current y) (placed g xs ∪ middle (current y)))
       (filter (λ e, e.1 ∉ xs) (bank y)) (<[g := Open]> (table y)) (applied y) (nodes y)).

(** What lives in the segments [vs]. *)
Definition chunks_in (vs : gset nat) (mid : gmap nat pba) : list nat :=
  (map_to_list (filter (λ e, e.2.1 ∈ vs) mid)).*1.

Definition bury (vs : gset nat) (c : state) : state :=
  with_memory c (with_table (mem c) (gset_to_gmap Dead vs ∪ table (mem c))).

(** The live chunks of the victims [vs] move to [g]; a victim is dead then. *)
Definition clean (vs : gset nat) g (c : state) : state :=
  match chunks_in vs (middle (current (mem c))) with
  | [] => bury vs c
  | xs => bury vs (place g xs c)
  end.

Definition reclaim x (c : state) : state :=
  let y := mem c in
  with_memory c (Memory (with_middle (current y) (delete x (middle (current y)))) (delete x (bank y))
    (table y) (applied y) (nodes y)).

(** The segments that a durable checkpoint refers to, or one that may become durable. *)
Definition pinned (c : state) : gset nat :=
  from_option (segments_of ∘ saved) ∅ (newest (dev c)) ∪ from_option (segments_of ∘ saved) ∅ (nodes (mem c)).

Definition write_nodes (c : state) : state :=
  let y := mem c in
  let i := Checkpoint (current y) (applied y) (S (from_option number 0 (newest (dev c)))) in
  with_memory c (with_nodes y (Some i)).

Definition commit (i : checkpoint) (c : state) : state :=
  State (size c) (at_phase c) (pending c) (replace_older (Some i) (dev c)) (with_nodes (mem c) None).

(** The log forgets the records before [n]. *)
Definition truncate (n : nat) (c : state) : state :=
  let s := dev c in
  with_devices c (Devices (take n (history c)) (drop n (history c)) (flushed s) (slot_a s) (slot_b s)
    (segments s)).

(** Power fails.  Of the log's unflushed tail the records before [keep] survive; a slot write in flight may
leave its slot [torn]; what an open segment holds, or a free one, is anybody's guess. *)
Definition crash (keep : nat) (torn : bool) (garbage : gmap nat (list V)) (c : state) : state :=
  let s := if torn then replace_older None (dev c) else dev c in
  State (size c) Off None
    (Devices (past s) (take (keep - first c) (log s)) keep (slot_a s) (slot_b s)
       (filter (λ e, table (mem c) !! e.1 ≠ Some Open) (segments s) ∪ garbage))
    no_memory.

Definition shown_by_crash (c : state) : event V :=
  match pending c with
  | None => Crash CutShort
  | Some (Operation r) => shown r CutShort
  | Some Reopen => Restart CutShort
  end.

Definition shown_by_recover (c : state) : event V :=
  match pending c with Some Reopen => Restart Ok | _ => Crash Ok end.

(** Memory after checkpoint [i] is loaded; replay goes on at record [n], or where the log starts. *)
Definition load (n : nat) (i : checkpoint) (c : state) : state :=
  State (size c) Recovering (pending c) (dev c)
    (Memory (saved i) ∅ (gset_to_gmap Sealed (segments_of (saved i))) (n `max` first c) None).

Definition replay r (c : state) : state := with_memory c (carry_out r (mem c)).

(** ** Steps

Each shows the events of the contract that it answers. *)
Inductive step (K : design) (c : state) : list (event V) → state → Prop :=
  (* operations *)
  | Submit r :                      (* the record goes to the log *)
      at_phase c = Running → pending c = None → faults (size c) (seen c) r = [] →
      step K c [] (submit r c)
  | LogAppend :                     (* what is in flight becomes durable *)
      at_phase c ≠ Off →
      step K c [] (log_append c)
  | Acknowledge r :
      at_phase c = Running → pending c = Some (Operation r) →
      (obeys K FlushBeforeAcknowledge → promises K ≠ Prefix → flushed (dev c) = logged c) →
      step K c [shown r Ok] (acknowledge r c)
  | Refuse r e :
      at_phase c = Running → pending c = None →
      e ∈ faults (size c) (seen c) r ∨ faults (size c) (seen c) r = [] ∧ e ∈ excuses r →
      step K c [shown r (Refused e)] c
  | Read from lba count v :
      at_phase c = Running → fits (size c) lba count →
      missing_view (seen c) from = [] → view_of (seen c) from = Some v →
      step K c [VirtualDisk.Read from lba count Ok (v <$> seq lba count)] c
  | RefuseRead from lba count e :
      at_phase c = Running →
      e ∈ (if decide (fits (size c) lba count) then [] else [OutOfRange]) ++ missing_view (seen c) from →
      step K c [VirtualDisk.Read from lba count (Refused e) []] c
  | Flush :
      at_phase c = Running → pending c = None →
      step K c [VirtualDisk.Flush Ok] (log_append c)
  (* data *)
  | Destage g xs :                  (* one segment write, full unless the bank holds no more *)
      at_phase c ≠ Off → table (mem c) !! g = None →
      NoDup xs → Forall (λ x, is_Some (bank (mem c) !! x)) xs → xs ≠ [] → length xs ≤ width K →
      length xs = width K ∨ length xs = base.size (bank (mem c)) →
      step K c [] (place g xs c)
  | Seal g :                        (* the write is durable *)
      at_phase c ≠ Off → table (mem c) !! g = Some Open →
      step K c [] (with_memory c (with_table (mem c) (<[g := Sealed]> (table (mem c)))))
  | Clean vs g :
      at_phase c ≠ Off → vs ≠ ∅ → set_Forall (λ v, table (mem c) !! v = Some Sealed) vs →
      (let xs := chunks_in vs (middle (current (mem c))) in
       xs = [] ∨ table (mem c) !! g = None ∧ length xs ≤ width K ∧ (obeys K CleanGains → 2 ≤ base.size vs)) →
      step K c [] (clean vs g c)
  | Free g :
      at_phase c ≠ Off → table (mem c) !! g = Some Dead → (obeys K FreeAfterCheckpoint → g ∉ pinned c) →
      step K c [] (with_memory c (with_table (mem c) (delete g (table (mem c)))))
  | Reclaim x :
      at_phase c ≠ Off → (obeys K ReclaimUnreachable → x ∉ reachable (current (mem c))) →
      step K c [] (reclaim x c)
  (* checkpoint *)
  | CheckpointNodes :               (* the bank has been destaged; the maps are written *)
      at_phase c ≠ Off → bank (mem c) = ∅ →
      (obeys K SealBeforeCheckpoint →
       set_Forall (λ g, table (mem c) !! g = Some Sealed) (segments_of (current (mem c)))) →
      step K c [] (write_nodes c)
  | CheckpointCommit i :            (* the slot is durable *)
      at_phase c ≠ Off → nodes (mem c) = Some i → (obeys K LogBeforeCheckpoint → upto i ≤ flushed (dev c)) →
      step K c [] (commit i c)
  | Truncate i n :
      at_phase c ≠ Off → newest (dev c) = Some i ∨ ¬ obeys K TruncateAfterCommit ∧ nodes (mem c) = Some i →
      first c ≤ n ≤ upto i →
      step K c [] (truncate n c)
  (* crash and recovery *)
  | Crash keep (torn : bool) garbage :      (* in any phase *)
      flushed (dev c) ≤ keep ≤ logged c → (torn → nodes (mem c) ≠ None) →
      step K c [shown_by_crash c] (crash keep torn garbage c)
  | Restart :                       (* a clean shutdown; memory is gone *)
      at_phase c = Running → pending c = None →
      step K c [] (State (size c) Off (Some Reopen) (dev (log_append c)) no_memory)
  | Load i :
      at_phase c = Off → newest (dev c) = Some i →
      step K c [] (load (if obeys K ReplayAfterCheckpoint then upto i else 0) i c)
  | Replay r :
      at_phase c = Recovering → first c ≤ applied (mem c) →
      log (dev c) !! (applied (mem c) - first c) = Some r →
      step K c [] (replay r c)
  | Recover :
      at_phase c = Recovering → logged c ≤ applied (mem c) →
      step K c [shown_by_recover c] (State (size c) Running None (dev c) (mem c)).

(** The log-structured disk as an implementation of the contract. *)
Definition log_structured_disk (K : design) : implementation V :=
  Implementation state (λ blocks c, c = initial blocks) (step K).

End LogStructuredDisk.

Global Arguments devices : clear implicits. Global Arguments memory : clear implicits.
Global Arguments request : clear implicits. Global Arguments state : clear implicits.

(** Takes a step apart; what it asked for is named. *)
Ltac step_cases Hstep := destruct Hstep as
  [r Hp Hq Hr|Hp|r Hp Hq Hf|r e Hp Hq He|from lba count v Hp Hfit Hmiss Hv|from lba count e Hp He|Hp Hq
  |g xs Hp Hg Hdup Hxs Hne Hw Hfull|g Hp Hg|vs g Hp Hne Hvs Hg|g Hp Hg Hfree|x Hp Hx|Hp Hb Hsealed
  |i Hp Hi Hupto|i m Hp Hi Hm|keep torn garbage Hk Htorn|Hp Hq|i Hp Hi|r Hp Hfi Hr|Hp Hall].

(** Runs, with the events they show. *)
Notation steps K := (shows (log_structured_disk K)).
