(** A leg: one device of blocks made of several, of which some may fail.

A block is cut into pieces, one for each device, so that each block is a full stripe of its own and no write
reads what it does not write. From any [needed] pieces the block is put together again: one piece where every
device has the whole block (mirrors), all but one with RAID-5, all but two with RAID-6. A power cut between
the writes of two pieces leaves a block that is neither the old nor the new one: so of a block of more than
one piece anything may be left ([tears], [Medium.v]). The pieces themselves tear too.

A block is read from the first members that answer, and written and flushed on all of them. A piece that a
member cannot read is left out: the block is put together from pieces of others, and the member, which stays
one, gets its piece again. It is assumed that of no block more pieces are unreadable than the code can do
without ([AssumeThat]). Where they are, a read stops, and opening the leg leaves that block as it is. A member
that does not answer is dropped from the record before anything else happens, but never so that fewer than
[fewest] members are left: then the leg stops. Between a power cut and a flush, the pieces of a block may be
of different writes; so whoever opens the leg first makes them those of one block, unless the record says that
they were left [clean]. *)
From stdpp Require Import list.
From LogDisk Require Import Medium Devices.

(** How blocks [B] are cut into pieces [C]. *)
Class cutting (B C : Type) := Cutting {
  piece : nat → nat → B → C;              (* of the block at an address, for a device *)
  needed : nat → nat;                     (* pieces that give back the block at an address *)
  joined : nat → list (nat * C) → B;      (* the block, from pieces of some devices *)
  fewest : nat;                           (* members without which the leg stops *)
}.

(** What tearing leaves on a device: where anything may be left of blocks, anything; else a piece of what is
left of a block. *)
Global Instance pieces_of_torn {B C} `{cutting B C} {torn : tearing B} : torn_pieces C :=
  λ i a p, tears a ∨ ¬ tears a ∧ ∃ b, tears_to a b ∧ p = piece a i b.

Section Leg.
Context {B C A : Type} `{cutting B C}.
Implicit Types k : list nat → array_program C A.

(** [k] goes on with the members that are left. *)
Definition without (ms : list nat) (c : bool) (k : array_program C A) : array_program C A :=
  if decide (fewest ≤ length ms) then SetMembers ms c k else Stop.

(** So many more pieces of the block at [a], from the members in [todo]; those in [kept] were asked, those in
[bad] could not read theirs. [lost] goes on where not enough members can. *)
Fixpoint gather (n : nat) (kept todo : list nat) (got : list (nat * C)) (bad : list nat) (c : bool) (a : nat)
    (lost : list nat → array_program C A) (k : list nat → list nat → B → array_program C A) :
    array_program C A :=
  match n, todo with
  | 0, _ => k (kept ++ todo) bad (joined a got)
  | S _, [] => if decide (length kept < fewest) then Stop else AssumeThat false (lost kept)
  | S n', i :: rest =>
      ReadFrom i a (λ r,
        match r with
        | Some (Some p) => gather n' (kept ++ [i]) rest (got ++ [(i, p)]) bad c a lost k
        | Some None => gather n (kept ++ [i]) rest got (bad ++ [i]) c a lost k
        | None => without (kept ++ rest) c (gather n kept rest got bad c a lost k)
        end)
  end.

(** [k] goes on with the members that are left, those that could not read their piece, and the block. *)
Definition read_from (ms : list nat) (c : bool) (a : nat) (lost : list nat → array_program C A)
    (k : list nat → list nat → B → array_program C A) : array_program C A :=
  gather (needed a) [] ms [] [] c a lost k.

(** The members in [bad] get their piece of the block again. It is what they had, so nothing is said of it in
the record. *)
Fixpoint repair (bad kept todo : list nat) (c : bool) (a : nat) (b : B) k : array_program C A :=
  match todo with
  | [] => k kept
  | i :: rest =>
      if decide (i ∈ bad) then
        WriteTo i a (piece a i b) (λ ok, if ok then repair bad (kept ++ [i]) rest c a b k
          else without (kept ++ rest) c (repair bad kept rest c a b k))
      else repair bad (kept ++ [i]) rest c a b k
  end.

Fixpoint write_to (kept todo : list nat) (a : nat) (b : B) k : array_program C A :=
  match todo with
  | [] => k kept
  | i :: rest =>
      WriteTo i a (piece a i b) (λ ok, if ok then write_to (kept ++ [i]) rest a b k
        else without (kept ++ rest) false (write_to kept rest a b k))
  end.

Fixpoint flush_of (kept todo : list nat) (c : bool) k : array_program C A :=
  match todo with
  | [] => k kept
  | i :: rest =>
      FlushOf i (λ ok, if ok then flush_of (kept ++ [i]) rest c k
        else without (kept ++ rest) c (flush_of kept rest c k))
  end.
End Leg.

(** Before the first write the record says that pieces may differ. *)
Definition unclean {C A} (ms : list nat) (c : bool) (k : array_program C A) : array_program C A :=
  if c then SetMembers ms false k else k.

Section Programs.
Context {B C : Type} `{cutting B C}.
Variable size : nat.    (* blocks of the leg *)

(** A program for one device, on a leg with the members [ms]. *)
Fixpoint on_leg {A} (ms : list nat) (c : bool) (p : program B A) : array_program C (list nat * bool * A) :=
  match p with
  | Done r => Finish (ms, c, r)
  | ReadBlock a k =>
      if decide (a < size) then
        read_from ms c a (λ _, Stop) (λ ms bad b, repair bad [] ms c a b (λ ms, on_leg ms c (k b)))
      else PastEnd
  | WriteBlock a b k =>
      if decide (a < size) then unclean ms c (write_to [] ms a b (λ ms, on_leg ms false k)) else PastEnd
  | FlushBlocks k => flush_of [] ms c (λ ms, on_leg ms c k)
  | Assume φ k => AssumeThat φ (on_leg ms c k)
  end.

(** The pieces of each block below [n] are made those of one block: what they give is written again. *)
Fixpoint equalize {A} (n : nat) (ms : list nat) (k : list nat → array_program C A) : array_program C A :=
  match n with
  | 0 => k ms
  | S n =>
      read_from ms false n (λ ms, equalize n ms k) (λ ms _ b, write_to [] ms n b (λ ms, equalize n ms k))
  end.

(** The power is back, and the record read. *)
Definition open_leg {A} (ms : list nat) (c : bool) (k : list nat → bool → array_program C A) :
    array_program C A :=
  if c then k ms true else equalize size ms (λ ms, flush_of [] ms false (λ ms, k ms false)).

(** Device [i] gets its pieces of all blocks below [n]; [k] goes on with what is recorded, and whether it has
them. *)
Fixpoint copy_to {A} (i n : nat) (ms : list nat) (c : bool) (k : list nat → bool → array_program C A) :
    array_program C A :=
  match n with
  | 0 => FlushOf i (λ ok, k ms ok)
  | S n =>
      read_from ms c n (λ _, Stop) (λ ms _ b,
        WriteTo i n (piece n i b) (λ ok, if ok then copy_to i n ms c k else k ms false))
  end.

(** Every device that is no member becomes one, if it answers. *)
Fixpoint resync {A} (todo : list nat) (ms : list nat) (c : bool) (k : list nat → array_program C A) :
    array_program C A :=
  match todo with
  | [] => k ms
  | i :: todo =>
      copy_to i size ms c (λ ms ok,
        if ok then SetMembers (ms ++ [i]) c (resync todo (ms ++ [i]) c k) else resync todo ms c k)
  end.

Definition settle_leg (count : nat) (ms : list nat) (c : bool) : array_program C (list nat * bool) :=
  resync (filter (λ i, i ∉ ms) (seq 0 count)) ms c (λ ms, Finish (ms, c)).
End Programs.
