(** Write-back: a disk that answers writes before they are on the device. It keeps the profiles
[Prefix] and [Block].

The programs of a disk ([programs] of [DiskMachine.v]) become those of the same disk with delayed writes. A
write goes into memory and is answered. A drain gives all delayed writes to the disk below as one group, which
is one log record: a power cut leaves all of them or none. A read finds the newest data in memory, the others
below.

A flush drains. Everything else that changes something is performed while nothing is delayed: an unmap, a
snapshot, a deletion, a revert, a restart, and a write for which there is no room in memory. Whoever asks for
it drains first; while writes are delayed it does not happen, and is answered with an unknown outcome. So a
snapshot has every write that was answered before it, and what is on the device is always what some number of
the operations made, in their order, and no fewer than the last flush covers. And each of these programs is
one program of the disk below, or none: so it is known what is on the device if it ends anywhere.

How many blocks may be delayed is [room_of] the memory below, so that the drain finds places for them. It is
counted when nothing is delayed, and each delayed block takes one of it. A drain that fails leaves the writes
delayed, and a flush that needed it has an unknown outcome. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk SplitFlush DiskMachine.

(** The delayed writes, the newest first; what they write; and how many more blocks may be delayed. *)
Record delay `{blocks} := Delay {
  delayed : list (nat * list block);
  newest_data : gmap nat block;
  room : nat;
}.

Section WriteBack.
Context `{!blocks} {Y U : Type} (D : programs Y U).
Context (shape_of : Y → geometry) (room_of : Y → nat).
Context (spares_places : U → bool).    (* upkeep that leaves the free places as they are *)
Implicit Types (y : Y) (places : list nat).

Fixpoint put_blocks (lba : nat) (data : list block) (m : gmap nat block) : gmap nat block :=
  match data with [] => m | b :: data => put_blocks (S lba) data (<[lba := b]> m) end.

Definition no_delay : delay := Delay _ [] ∅ 0.
Definition nothing_delayed y : delay := Delay _ [] ∅ (room_of y).
(** What was delayed is still delayed; no more is until it was drained. *)
Definition delayed_again (k z : delay) : delay :=
  match delayed k with [] => z | _ => Delay _ (delayed k) (newest_data k) 0 end.
Definition delay_write (z : delay) (lba : nat) (data : list block) : delay :=
  Delay _ ((lba, data) :: delayed z) (put_blocks lba data (newest_data z)) (room z - length data).

(** It fits on the disk, and there is room. *)
Definition may_delay y (z : delay) (lba : nat) (data : list block) : bool :=
  bool_decide (fits (disk_blocks (shape_of y)) lba (length data)) && bool_decide (length data ≤ room z).

(** What is read below, and the newest data over it. *)
Fixpoint with_newest (z : delay) (lba : nat) (bs : list block) : list block :=
  match bs with [] => [] | b :: bs => default b (newest_data z !! lba) :: with_newest z (S lba) bs end.

(** Blocks of the delayed writes. *)
Definition blocks_delayed (z : delay) : nat := length (blocks_of (delayed z)).

(** All delayed writes go to the disk below, the oldest first. The result is made of memory and of whether
they did. *)
Definition drain {A} y (z : delay) places (result : Y * delay → bool → A) : program block A :=
  match delayed z with
  | [] => Done (result (y, z) true)
  | ws =>
      then_ (run_group D y places (reverse ws)) (λ o,
        Done (result (o.1, if o.2 : bool then Delay _ [] ∅ (room z) else z) o.2))
  end.

Definition delayed_outcome : Type := Y * delay * answer * list block.

(** Requests after which fewer places may be free. *)
Definition uses_places (q : request) : bool :=
  match q with DoWrite _ _ | DoRestart => true | _ => false end.

Definition performed_below (z : delay) (q : request) (o : Y * answer * list block) : delayed_outcome :=
  let '(y, r, bs) := o in
  match q with
  | DoRead from lba _ => (y, z, r, match r, from with Ok, Live => with_newest z lba bs | _, _ => bs end)
  | _ => (y, if uses_places q then nothing_delayed y else z, r, bs)
  end.
Definition below y (z : delay) places (q : request) : program block delayed_outcome :=
  then_ (run_request D y places q) (λ o, Done (performed_below z q o)).

(** What changes something below, in an order with the delayed writes, waits for a drain: it does not happen
while writes are delayed. *)
Definition when_drained y (z : delay) places (q : request) : program block delayed_outcome :=
  match delayed z with [] => below y z places q | _ => Done (y, z, UnknownOutcome, []) end.

Definition delaying_request (x : Y * delay) places (q : request) : program block delayed_outcome :=
  let '(y, z) := x in
  match q with
  | DoRead _ _ _ => below y z places q
  | DoWrite lba data =>
      if may_delay y z lba data then Done (y, delay_write z lba data, Ok, []) else when_drained y z places q
  | DoFlush => drain y z places (λ x all, (x, if all : bool then Ok else UnknownOutcome, []))
  | _ => when_drained y z places q
  end.

(** Several writes at once are all delayed, or called one by one. *)
Fixpoint delay_all y (z : delay) (ws : list (nat * list block)) : option delay :=
  match ws with
  | [] => Some z
  | w :: ws => if may_delay y z w.1 w.2 then delay_all y (delay_write z w.1 w.2) ws else None
  end.
Definition delaying_group (x : Y * delay) (_ : list nat) (ws : list (nat * list block)) :
    program block (Y * delay * bool) :=
  match delay_all x.1 x.2 ws with Some z => Done (x.1, z, true) | None => Done (x, false) end.

(** The scheduler may ask for a drain, which counts the free places again if nothing is delayed, and for the
upkeep of the disk below. While writes are delayed, only for upkeep that leaves the free places as they
are. *)
Inductive delaying_upkeep :=
  | Drain (places : list nat)
  | Below (u : U).

(** What is free is counted again when nothing is delayed. *)
Definition counted_again y (z : delay) : delay :=
  match delayed z with [] => nothing_delayed y | _ => z end.

Definition delaying_maintain (x : Y * delay) (v : delaying_upkeep) : program block (Y * delay) :=
  let '(y, z) := x in
  match v with
  | Drain places =>
      match delayed z with
      | [] => Done (y, nothing_delayed y)
      | _ => drain y z places (λ x _, x)
      end
  | Below u =>
      if match delayed z with [] => true | _ => spares_places u end
      then then_ (run_upkeep D y u) (λ y, Done (y, counted_again y z))
      else Done x
  end.

Definition opened (r : option Y) : option (Y * delay) :=
  match r with Some y => Some (y, nothing_delayed y) | None => None end.

Definition write_back : programs (Y * delay) delaying_upkeep :=
  Programs delaying_request delaying_group delaying_maintain
    (then_ (run_recovery D) (λ r, Done (opened r)))
    (λ trees g, then_ (run_format D trees g) (λ r, Done (opened r))).

End WriteBack.
