(** The proved disk: a log-structured disk as programs over block I/O, which is what [build/proved-disk] runs.

On the device stand a superblock, the headers of two checkpoint slots, the log, the bodies of the slots, and
the data. A write puts its data into free places and its record into the log, then flushes once. Several
writes may share a record, and a record may take several blocks of the log. Every map is in memory; a
checkpoint writes all of them into the slot that is not in use, flushes, then writes the header of that slot
and flushes. The log holds what came after the newest checkpoint.

A power cut may tear a record or a header: of each sector the old or the new content is left. So these blocks
are sealed with a digest of themselves ([Codec.v]). Recovery reads a torn one as none: the log ends there, and
the other slot counts.

A power cut may leave a record without all of its blocks. So its first block has a digest of the others, and
recovery drops it where they have another one. A power cut may leave a record without all of its data. So a
record has a digest of its data, and recovery compares it. Every record was flushed before the next one was
begun, so only the newest can be without its data: recovery drops it, and makes that durable before anything
else happens, so that no later write of the same data to the same places brings it back. The places of the
newest record are not used again before there is a newer one or a checkpoint, since recovery reads them.

Where data goes, and when to checkpoint, to clean and to collect, is proposed by a scheduler that nobody needs
to trust: these programs check what it proposes. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec.

(** ** What stands in memory *)

(** LBA to MBA, in each view. *)
Definition lba_map := gmap nat nat.

(** The maps: of the views, and the middle map, MBA to place. *)
Record maps := Maps { live_map : lba_map; snap_maps : gmap name lba_map; middle : gmap nat nat;
  next_mba : nat }.

Record geometry := Geometry {
  disk_blocks : nat;      (* of the virtual disk *)
  log_blocks : nat;       (* records in the log *)
  slot_blocks : nat;      (* of the body of a checkpoint *)
  data_blocks : nat;      (* places *)
  segment_blocks : nat;   (* places that the scheduler fills together *)
  most_snapshots : nat;   (* so that a checkpoint fits into its slot *)
}.

Record memory := Memory {
  shape : geometry;
  current : maps;
  free : gmap nat ();     (* places that nothing refers to: not all of them, until they are collected *)
  next_record : nat;      (* the number of the next log record *)
  first_record : nat;     (* of the first behind the newest checkpoint *)
  serial : nat;           (* of the newest checkpoint *)
  slot : bool;            (* where it is *)
  newest : list nat;      (* the places of the newest record in the log *)
}.

(** ** Where things stand *)

Definition superblock : nat := 0.
Definition header_address (s : bool) : nat := if s then 2 else 1.
Definition log_address (g : geometry) (n : nat) : nat := 3 + n `mod` log_blocks g.
Definition body_address (g : geometry) (s : bool) (i : nat) : nat :=
  3 + log_blocks g + (if s then slot_blocks g else 0) + i.
Definition data_address (g : geometry) (p : nat) : nat := 3 + log_blocks g + 2 * slot_blocks g + p.

(** ** Log records *)

Inductive log_record :=
  | LogWrite (lba : nat) (places : list nat)
  | LogUnmap (lba count : nat)
  | LogSnapshot (n : name)
  | LogDelete (n : name)
  | LogRevert (n : name)
  | LogMove (moves : list (nat * nat))      (* MBAs, and their new places *)
  | LogGroup (blocks : list (nat * nat))    (* of several writes: LBAs, and the places of their data *)
  | LogHead (bodies : nat) (d : nat * nat). (* of a record in so many more blocks, with their digest *)

(** [xs] for the keys from [k] on. *)
Fixpoint put_from (k : nat) (xs : list nat) (m : gmap nat nat) : gmap nat nat :=
  match xs with [] => m | x :: xs => put_from (S k) xs (<[k := x]> m) end.
Fixpoint remove_from (k count : nat) (m : gmap nat nat) : gmap nat nat :=
  match count with 0 => m | S count => remove_from (S k) count (delete k m) end.
Definition relocate (moves : list (nat * nat)) (mid : gmap nat nat) : gmap nat nat :=
  foldr (λ e mid, <[e.1 := e.2]> mid) mid moves.

(** A write takes fresh MBAs. *)
Definition map_write (lba : nat) (places : list nat) (m : maps) : maps :=
  let x := next_mba m in
  Maps (put_from lba (seq x (length places)) (live_map m)) (snap_maps m) (put_from x places (middle m))
    (x + length places).

(** What a record makes of the maps. *)
Definition apply (r : log_record) (m : maps) : maps :=
  match r with
  | LogWrite lba places => map_write lba places m
  | LogUnmap lba count => Maps (remove_from lba count (live_map m)) (snap_maps m) (middle m) (next_mba m)
  | LogSnapshot n => Maps (live_map m) (<[n := live_map m]> (snap_maps m)) (middle m) (next_mba m)
  | LogDelete n => Maps (live_map m) (delete n (snap_maps m)) (middle m) (next_mba m)
  | LogRevert n => Maps (default (live_map m) (snap_maps m !! n)) (snap_maps m) (middle m) (next_mba m)
  | LogMove moves => Maps (live_map m) (snap_maps m) (relocate moves (middle m)) (next_mba m)
  | LogGroup bs => foldl (λ m b, map_write b.1 [b.2] m) m bs
  | LogHead _ _ => m
  end.

(** ** Codecs of what stands on the device *)

Fixpoint flat (xs : list (nat * nat)) : list nat :=
  match xs with [] => [] | (a, b) :: xs => a :: b :: flat xs end.
Fixpoint paired (ws : list nat) : list (nat * nat) :=
  match ws with a :: b :: ws => (a, b) :: paired ws | _ => [] end.

Definition log_record_into (r : log_record) : nat * (list nat * name) :=
  match r with
  | LogWrite lba places => (1, (lba :: places, ""%string))
  | LogUnmap lba count => (2, ([lba; count], ""%string))
  | LogSnapshot n => (3, ([], n))
  | LogDelete n => (4, ([], n))
  | LogRevert n => (5, ([], n))
  | LogMove moves => (6, (flat moves, ""%string))
  | LogGroup bs => (7, (flat bs, ""%string))
  | LogHead k d => (8, ([k; d.1; d.2], ""%string))
  end.
Definition log_record_of (x : nat * (list nat * name)) : option log_record :=
  match x with
  | (1, (lba :: places, _)) => Some (LogWrite lba places)
  | (2, ([lba; count], _)) => Some (LogUnmap lba count)
  | (3, (_, n)) => Some (LogSnapshot n)
  | (4, (_, n)) => Some (LogDelete n)
  | (5, (_, n)) => Some (LogRevert n)
  | (6, (ws, _)) => Some (LogMove (paired ws))
  | (7, (ws, _)) => Some (LogGroup (paired ws))
  | (8, ([k; a; b], _)) => Some (LogHead k (a, b))
  | _ => None
  end.

Definition record_codec : codec log_record :=
  mapped log_record_into log_record_of (both number (both (many number) text)).
(** A record with its number, and the digest of its data. *)
Definition log_codec : codec (nat * (log_record * (nat * nat))) :=
  both number (both record_codec (both number number)).

(** Where its data are. *)
Definition places_of (r : log_record) : list nat :=
  match r with LogWrite _ places => places | LogMove moves => moves.*2 | LogGroup bs => bs.*2 | _ => [] end.

(** A checkpoint's header: its serial number, the first record behind it, blocks of its body. *)
Definition header_codec : codec (nat * (nat * nat)) := both number (both number number).

Definition maps_codec : codec maps :=
  mapped (λ m, (live_map m, (snap_maps m, (middle m, next_mba m))))
    (λ '(l, (s, (mid, n))), Some (Maps l s mid n))
    (both (finite_map number number)
       (both (finite_map text (finite_map number number)) (both (finite_map number number) number))).

(** The superblock says what it is, in letters, then the geometry. *)
Definition superblock_codec_of (magic : name) : codec geometry :=
  mapped (λ g, (magic, [disk_blocks g; log_blocks g; slot_blocks g; data_blocks g; segment_blocks g;
    most_snapshots g]))
    (λ x, match x with
          | (n, [d; l; s; c; w; k]) => if decide (n = magic) then Some (Geometry d l s c w k) else None
          | _ => None
          end)
    (both text (many number)).
Definition magic : name := "proved-disk 6"%string.
Definition superblock_codec : codec geometry := superblock_codec_of magic.

(** ** Which places are in use *)

Definition fold_view {A} (f : nat → A → A) (a : A) (vm : lba_map) : A :=
  foldl (λ a e, f e.2 a) a (map_to_list vm).
(** [f] over every MBA that a view refers to. *)
Definition fold_views {A} (f : nat → A → A) (a : A) (m : maps) : A :=
  foldl (λ a e, fold_view f a e.2) (fold_view f a (live_map m)) (map_to_list (snap_maps m)).

(** Those that views use, and those of the newest record. *)
Definition used_places (m : maps) (kept : list nat) : gmap nat () :=
  fold_views (λ x u, match middle m !! x with Some p => <[p := ()]> u | None => u end)
    (foldr (λ p u, <[p := ()]> u) ∅ kept) m.
(** The middle map of the MBAs that a view refers to. *)
Definition used_middle (m : maps) : gmap nat nat :=
  fold_views (λ x u, match middle m !! x with Some p => <[x := p]> u | None => u end) ∅ m.

Fixpoint unused (used : gmap nat ()) (n : nat) (found : gmap nat ()) : gmap nat () :=
  match n with
  | 0 => found
  | S n => unused used n (match used !! n with Some _ => found | None => <[n := ()]> found end)
  end.
Definition collected (g : geometry) (m : maps) (kept : list nat) : gmap nat () :=
  unused (used_places m kept) (data_blocks g) ∅.

(** What is left of [free] without [places]; nothing if they are not all free, or one comes twice. *)
Fixpoint take_free (places : list nat) (fr : gmap nat ()) : option (gmap nat ()) :=
  match places with
  | [] => Some fr
  | p :: places => match fr !! p with Some _ => take_free places (delete p fr) | None => None end
  end.

(** ** Programs *)

Global Instance zero_of_blocks `{blocks} : Value block := zero_block.

Section Programs.
Context `{blocks}.

(** Each goes on with [k]. *)
Fixpoint read_all {A} (addresses : list nat) (k : list block → program block A) : program block A :=
  match addresses with
  | [] => k []
  | a :: addresses => ReadBlock a (λ b, read_all addresses (λ bs, k (b :: bs)))
  end.

(** The blocks at the places; zeroes where there is none. *)
Fixpoint read_places {A} (g : geometry) (places : list (option nat)) (k : list block → program block A) :
    program block A :=
  match places with
  | [] => k []
  | None :: places => read_places g places (λ bs, k (zero_block :: bs))
  | Some p :: places => ReadBlock (data_address g p) (λ b, read_places g places (λ bs, k (b :: bs)))
  end.

(** The maps go into the slot that is not in use; [k] goes on with the memory, the old one if they do not fit.
*)
Definition checkpoint {A} (y : memory) (k : memory → program block A) : program block A :=
  let g := shape y in
  let m := Maps (live_map (current y)) (snap_maps (current y)) (used_middle (current y))
    (next_mba (current y)) in
  match pack_many (slot_blocks g) (put maps_codec m) with
  | Some bs =>
      match seal (put header_codec (S (serial y), (next_record y, length bs))) with
      | Some header =>
          let s := negb (slot y) in
          write_all (zip (body_address g s <$> seq 0 (length bs)) bs)
            (FlushBlocks (WriteBlock (header_address s) header (FlushBlocks
              (k (Memory g m (free y) (next_record y) (next_record y) (S (serial y)) s [])))))
      | None => k y
      end
  | None => k y
  end.

(** *** Records that are longer than a block

The words of such a record are the bodies: blocks behind its head, which has their digest. Each body begins
with the number 0, and no record has that number. So a body is never taken for a record, and a power cut that
leaves no head leaves no record. *)

Definition body_words : nat := sealed_words - 1.
(** Bodies that all words go into. *)
Fixpoint bodies (k : nat) (ws : list nat) : option (list block) :=
  match k with
  | 0 => match ws with [] => Some [] | _ => None end
  | S k =>
      match seal (0 :: take body_words ws), bodies k (drop body_words ws) with
      | Some b, Some bs => Some (b :: bs)
      | _, _ => None
      end
  end.
Definition body_of (b : block) : list nat := match unsealed b with Some ws => drop 1 ws | None => [] end.
Definition gathered (bs : list block) : option log_record :=
  match get record_codec (concat (body_of <$> bs)) with Some (r, _) => Some r | None => None end.

(** The blocks of the log that a record of so many words takes; with its number and the digest of its data it
has three more. *)
Definition blocks_for (len : nat) : nat :=
  if decide (len + 3 ≤ sealed_words) then 1 else S (S (PeanoNat.Nat.div len body_words)).
Definition size_of (r : log_record) : nat := blocks_for (length (put record_codec r)).

(** Its bodies, and its first block, number [n]. *)
Definition log_pieces (n : nat) (r : log_record) (dg : nat * nat) : option (list block * block) :=
  match pred (size_of r) with
  | 0 => match seal (put log_codec (n, (r, dg))) with Some b => Some ([], b) | None => None end
  | k =>
      match bodies k (put record_codec r) with
      | Some bs =>
          match seal (put log_codec (n, (LogHead k (digest bs), dg))) with
          | Some b => Some (bs, b)
          | None => None
          end
      | None => None
      end
  end.
Definition head_of (r : log_record) : option (nat * (nat * nat)) :=
  match r with LogHead k d => Some (k, d) | _ => None end.

(** *** Putting a record into the log *)

(** There is room for so many blocks. *)
Definition room_for (y : memory) (k : nat) : bool :=
  bool_decide (k + (next_record y - first_record y) ≤ log_blocks (shape y)).
Definition has_room (y : memory) : bool := room_for y 1.
Definition with_room {A} (k : nat) (y : memory) (then_ : memory → program block A) : program block A :=
  if room_for y k then then_ y else checkpoint y then_.

(** The memory once [r] is in the log; [fr] is free then. *)
Definition logged (y : memory) (r : log_record) (fr : gmap nat ()) : memory :=
  Memory (shape y) (apply r (current y)) fr (size_of r + next_record y) (first_record y) (serial y) (slot y)
    (places_of r).

(** Bodies are digested, too. *)
Definition vouched {A} (bs : list block) (k : program block A) : program block A :=
  match bs with [] => k | _ => Assume (compared bs) k end.

(** The data goes into its places and the record, number [n], into the log, in any order, and all is flushed
together; [refused] if it does not go in. What ends with "_log" does not look at maps: a disk with trees does
the same ([ProvedTreeDisk.v]). *)
Definition append_log {A} (g : geometry) (n : nat) (room : nat → bool) (r : log_record) (data : list block)
    (refused done : program block A) : program block A :=
  Assume (compared data)
    match log_pieces n r (digest data) with
    | Some (bs, b) =>
        vouched bs
          (if room (size_of r) then
             write_all (zip (data_address g <$> places_of r) data ++
                 zip (log_address g <$> seq (S n) (length bs)) bs)
               (WriteBlock (log_address g n) b (FlushBlocks done))
           else refused)
    | None => refused
    end.
Definition append {A} (y : memory) : log_record → list block → program block A → program block A →
    program block A := append_log (shape y) (next_record y) (room_for y).

(** ** Recovery *)

(** What the checkpoint and some records of the log say: the number of the next record, the maps, and the
places of the newest one. *)
Record found {M : Type} := Found { found_next : nat; found_maps : M; found_newest : list nat }.
Global Arguments found : clear implicits. Global Arguments Found {_} _ _ _.
Global Arguments found_next {_} _. Global Arguments found_maps {_} _. Global Arguments found_newest {_} _.

(** [k] goes on with what there is before the newest record and after it, and with its digest; [step] says
what a record makes of the maps. A head whose bodies are not there is dropped, durably. *)
Fixpoint replay {M A} (step : log_record → M → M) (g : geometry) (fuel : nat) (before now : found M)
    (d : nat * nat) (k : found M → found M → nat * nat → program block A) : program block A :=
  match fuel with
  | 0 => k before now d
  | S fuel =>
      let n := found_next now in
      ReadBlock (log_address g n) (λ b,
        match unseal log_codec b with
        | Some (n', (r, d')) =>
            if decide (n' = n) then
              match head_of r with
              | None => replay step g fuel now (Found (S n) (step r (found_maps now)) (places_of r)) d' k
              | Some (bodies, db) =>
                  read_all (log_address g <$> seq (S n) bodies) (λ bs,
                    Assume (compared bs)
                      match (if decide (digest bs = db) then gathered bs else None) with
                      | Some r =>
                          replay step g fuel now
                            (Found (S bodies + n) (step r (found_maps now)) (places_of r)) d' k
                      | None => WriteBlock (log_address g n) blank_block (FlushBlocks (k before now d))
                      end)
              end
            else k before now d
        | None => k before now d
        end)
  end.

(** The newest record counts if its data are there. Else it is dropped, durably. *)
Definition confirm {M A} (g : geometry) (before now : found M) (d : nat * nat)
    (k : found M → program block A) : program block A :=
  read_all (data_address g <$> found_newest now) (λ bs,
    Assume (compared bs)
      (if decide (digest bs = d) then k now
       else WriteBlock (log_address g (found_next before)) blank_block (FlushBlocks (k before)))).

Definition newer (a b : option (nat * (nat * nat))) : option (bool * (nat * (nat * nat))) :=
  match a, b with
  | Some a, Some b => if decide (a.1 < b.1) then Some (true, b) else Some (false, a)
  | Some a, None => Some (false, a)
  | None, Some b => Some (true, b)
  | None, None => None
  end.

(** [k] goes on with the memory; with nothing if this is no disk. *)
Definition recover {A} (k : option memory → program block A) : program block A :=
  ReadBlock superblock (λ b,
    match unpack superblock_codec b with
    | None => k None
    | Some g =>
        ReadBlock (header_address false) (λ a, ReadBlock (header_address true) (λ b,
          match newer (unseal header_codec a) (unseal header_codec b) with
          | None => k None
          | Some (s, (ser, (fst, len))) =>
              read_all (body_address g s <$> seq 0 len) (λ bs,
                match unpack_many maps_codec bs with
                | None => k None
                | Some m =>
                    let start := Found fst m [] in
                    replay apply g (log_blocks g) start start (digest []) (λ before now d,
                      confirm g before now d (λ z, let 'Found n m ps := z in
                        k (Some (Memory g m (collected g m ps) n fst ser s ps))))
                end)
          end))
    end).

(** ** Requests *)

Inductive request :=
  | DoWrite (lba : nat) (data : list block)
  | DoUnmap (lba count : nat)
  | DoSnapshot (n : name)
  | DoDelete (n : name)
  | DoRevert (n : name)
  | DoFlush
  | DoRestart
  | DoRead (from : target) (lba count : nat).

Definition outcome : Type := memory * answer * list block.

Definition misses (m : maps) (n : name) : list code :=
  if valid_name n then match snap_maps m !! n with Some _ => [] | None => [NoSuchSnapshot] end
  else [BadRequest].
Definition clashes (m : maps) (n : name) : list code :=
  if valid_name n then match snap_maps m !! n with Some _ => [SnapshotExists] | None => [] end
  else [BadRequest].
Definition exceeds (g : geometry) (lba count : nat) : list code :=
  if decide (fits (disk_blocks g) lba count) then [] else [OutOfRange].

Definition faults_of (y : memory) (q : request) : list code :=
  match q with
  | DoWrite lba data => exceeds (shape y) lba (length data)
  | DoUnmap lba count => exceeds (shape y) lba count
  | DoSnapshot n => clashes (current y) n
  | DoDelete n | DoRevert n => misses (current y) n
  | DoFlush | DoRestart => []
  | DoRead from lba count =>
      exceeds (shape y) lba count ++ match from with Live => [] | Named n => misses (current y) n end
  end.

Definition map_of (m : maps) (from : target) : lba_map :=
  match from with Live => live_map m | Named n => default ∅ (snap_maps m !! n) end.
Definition place_of (m : maps) (vm : lba_map) (l : nat) : option nat := vm !! l ≫= λ x, middle m !! x.

(** The record of a request that changes a view. *)
Definition record_of (q : request) (places : list nat) : option log_record :=
  match q with
  | DoWrite lba _ => Some (LogWrite lba places)
  | DoUnmap lba count => Some (LogUnmap lba count)
  | DoSnapshot n => Some (LogSnapshot n)
  | DoDelete n => Some (LogDelete n)
  | DoRevert n => Some (LogRevert n)
  | _ => None
  end.
Definition data_of (q : request) : list block := match q with DoWrite _ data => data | _ => [] end.

(** No room: a deletion may not be refused, so its outcome is unknown then. *)
Definition no_room (q : request) : answer :=
  match q with DoDelete _ => UnknownOutcome | _ => Refused NoSpace end.

Definition one_too_many (y : memory) (q : request) : bool :=
  match q with
  | DoSnapshot _ => bool_decide (most_snapshots (shape y) ≤ length (map_to_list (snap_maps (current y))))
  | _ => false
  end.

(** A request that changes a view goes into the log; [places] are for its data, of those that are free ([fr]).
[done] goes on with its record and what is free then. *)
Definition update_log {A} (g : geometry) (n : nat) (room : nat → bool) (fr : gmap nat ()) (places : list nat)
    (q : request) (refused : program block A) (done : log_record → gmap nat () → program block A) :
    program block A :=
  match record_of q places, take_free places fr with
  | Some r, Some fr =>
      if decide (length places = length (data_of q)) then
        append_log g n room r (data_of q) refused (done r fr)
      else refused
  | _, _ => refused
  end.
Definition update (y : memory) (places : list nat) (q : request) : program block outcome :=
  let refused := Done (y, no_room q, []) in
  if one_too_many y q then refused else
  update_log (shape y) (next_record y) (room_for y) (free y) places q refused
    (λ r fr, Done (logged y r fr, Ok, [])).

(** The blocks of its record. *)
Definition size_for (q : request) (places : list nat) : nat :=
  match record_of q places with Some r => size_of r | None => 1 end.

(** A request; [places] is where the scheduler proposes that its data go. More than it has data for are left
aside. *)
Definition perform (y : memory) (places : list nat) (q : request) : program block outcome :=
  match faults_of y q with
  | e :: _ => Done (y, Refused e, [])
  | [] =>
      match q with
      | DoRead from lba count =>
          read_places (shape y) (place_of (current y) (map_of (current y) from) <$> seq lba count)
            (λ bs, Done (y, Ok, bs))
      | DoFlush => Done (y, Ok, [])
      | DoRestart =>
          recover (λ r, Done (match r with Some y' => (y', Ok, []) | None => (y, UnknownOutcome, []) end))
      | _ =>
          let places := take (length (data_of q)) places in
          with_room (size_for q places) y (λ y, update y places q)
      end
  end.

(** ** Several writes in one record *)

(** The blocks of writes, one after the other. *)
Definition blocks_of (ws : list (nat * list block)) : list (nat * block) :=
  concat ((λ w, zip (seq w.1 (length w.2)) w.2) <$> ws).

Definition record_of_group (places : list nat) (ws : list (nat * list block)) : log_record :=
  let bs := blocks_of ws in LogGroup (zip bs.*1 (take (length bs) places)).

Definition group_log {A} (g : geometry) (n : nat) (room : nat → bool) (fr : gmap nat ()) (places : list nat)
    (ws : list (nat * list block)) (none : program block A)
    (all : log_record → gmap nat () → program block A) : program block A :=
  let bs := blocks_of ws in
  let places := take (length bs) places in
  match take_free places fr with
  | Some fr =>
      if decide (length places = length bs) then
        if forallb (λ w, bool_decide (fits (disk_blocks g) w.1 (length w.2))) ws then
          let r := LogGroup (zip bs.*1 places) in append_log g n room r bs.*2 none (all r fr)
        else none
      else none
  | None => none
  end.

(** All the writes, or none of them: the memory, and whether it was all. *)
Definition write_group (y : memory) (places : list nat) (ws : list (nat * list block)) :
    program block (memory * bool) :=
  with_room (size_of (record_of_group places ws)) y (λ y,
    group_log (shape y) (next_record y) (room_for y) (free y) places ws (Done (y, false))
      (λ r fr, Done (logged y r fr, true))).

(** ** Upkeep, which the scheduler asks for *)

Inductive upkeep :=
  | Checkpoint
  | Collect                             (* find what is free *)
  | Clean (moves : list (nat * nat)).   (* MBAs, and free places that they should move to *)

Definition collect (y : memory) : memory :=
  Memory (shape y) (current y) (collected (shape y) (current y) (newest y)) (next_record y) (first_record y)
    (serial y) (slot y) (newest y).

Definition move_log {A} (g : geometry) (n : nat) (room : nat → bool) (fr : gmap nat ()) (mid : gmap nat nat)
    (moves : list (nat * nat)) (refused : program block A)
    (done : log_record → gmap nat () → program block A) : program block A :=
  match take_free moves.*2 fr with
  | Some fr =>
      let from := (λ x, mid !! x) <$> moves.*1 in
      if forallb (λ p, bool_decide (is_Some p)) from then
        read_places g from (λ bs,
          append_log g n room (LogMove moves) bs refused (done (LogMove moves) fr))
      else refused
  | None => refused
  end.
Definition clean (y : memory) (moves : list (nat * nat)) : program block memory :=
  move_log (shape y) (next_record y) (room_for y) (free y) (middle (current y)) moves (Done y)
    (λ r fr, Done (logged y r fr)).

Definition maintain (y : memory) (u : upkeep) : program block memory :=
  match u with
  | Checkpoint => checkpoint y Done
  | Collect => Done (collect y)
  | Clean moves => with_room (size_of (LogMove moves)) y (λ y, clean y moves)
  end.

(** ** What the scheduler may ask *)

Definition is_free (y : memory) (p : nat) : bool := bool_decide (is_Some (free y !! p)).
(** The first [n] free places, in no order: a proposal that is always taken. *)
Definition first_free (y : memory) (n : nat) : list nat := take n (map_to_list (free y)).*1.
(** The MBAs that a view refers to, with their places. *)
Definition in_use (y : memory) : list (nat * nat) := map_to_list (used_middle (current y)).

(** For whoever lists the disk: the snapshots, and how many blocks each maps. *)
Definition listing (y : memory) : list (name * nat) :=
  (λ e, (e.1, length (map_to_list e.2))) <$> map_to_list (snap_maps (current y)).
Definition live_blocks (y : memory) : nat := length (map_to_list (live_map (current y))).

(** ** A new disk, whatever the device held *)

Definition no_maps : maps := Maps ∅ ∅ ∅ 0.

Definition format (g : geometry) : program block (option memory) :=
  match pack (put superblock_codec g), pack_many (slot_blocks g) (put maps_codec no_maps) with
  | Some super, Some bs =>
      match seal (put header_codec (1, (1, length bs))) with
      | Some header =>
          if decide (0 < log_blocks g) then
            let image := super :: header :: blank_block :: replicate (log_blocks g) blank_block ++ bs in
            write_all (zip (seq 0 (length image)) image)
              (FlushBlocks (Done (Some (Memory g no_maps (collected g no_maps []) 1 1 1 false []))))
          else Done None
      | None => Done None
      end
  | _, _ => Done None
  end.

End Programs.
