(** A checker of histories of requests that overlap, exact as [OverlappingDiskCorrect.v] proves.

It walks along the calls and answers and keeps every configuration that is still possible: which steps in
flight were taken, and a world ([Checker.v]) after them. Three things keep these few and lose nothing. A step
is taken no sooner than an answer asks for it. Before it only those are tried that it needs, directly or
through others: the rest can come later. A flush is taken when it is called, because the sooner it is, the
more a power cut may leave. Configurations that differ only in what a power cut would leave are
one, with what either would leave. *)
From stdpp Require Import pmap sorting.
From LogDisk Require Import VirtualDisk RecordedTrace Checker OverlappingDisk.

Definition same (n m : nat) : bool := bool_decide (n = m).
Definition less (n m : nat) : bool := bool_decide (n < m).
Global Arguments same : simpl never.
Global Arguments less : simpl never.

Lemma same_eq n m : same n m = true ↔ n = m.
Proof. apply bool_decide_eq_true. Qed.
Lemma same_neq n m : same n m = false ↔ n ≠ m.
Proof. apply bool_decide_eq_false. Qed.
Lemma same_sym n m : same n m = same m n.
Proof. by apply bool_decide_ext. Qed.
Lemma less_lt n m : less n m = true ↔ n < m.
Proof. apply bool_decide_eq_true. Qed.

(** ** Which steps may change places *)

(** What a step does. [Other]: whatever may not change places with anything. *)
Inductive deed := Looks | Flushes | Sets (lba count : nat) | Snaps (n : name) | Drops (n : name) | Reverts |
    Other.
Global Instance deed_eq_dec : EqDecision deed := ltac:(solve_decision).

Definition meets (lba count lba' count' : nat) : bool :=
  less lba (lba' + count') && less lba' (lba + count).

Section Conflicts.
Context {V : Type}.
Implicit Types (a b : entry V).

Definition deed_of a : deed :=
  match a with
  | Event (Write lba data Ok) | Event (WriteThrough lba data _ Ok) => Sets lba (length data)
  | Event (Unmap lba count Ok) => Sets lba count
  | Event (Snapshot n Ok) => Snaps n
  | Event (Delete n Ok) => Drops n
  | Event (Revert n Ok) => Reverts
  | Event (Flush Ok) | Event (Restart Ok) => Flushes
  | Event (Read _ _ _ Ok _) | Event (Read _ _ _ (Refused _) _) | Event (Write _ _ (Refused _))
  | Event (WriteThrough _ _ _ (Refused _))
  | Event (Unmap _ _ (Refused _)) | Event (Snapshot _ (Refused _)) | Event (Delete _ (Refused _))
  | Event (Revert _ (Refused _)) | Event (Flush (Refused _)) | Event (Restart (Refused _))
  | Hint Ok | Hint (Refused _) => Looks
  | _ => Other
  end.

(** The blocks of the live disk, and the snapshot, on which its answer depends. *)
Definition sees_live a : option (nat * nat) :=
  match a with Event (Read Live lba count Ok _) => Some (lba, count) | _ => None end.
Definition sees_name a : option name :=
  match a with
  | Event (Read (Named n) _ _ _ _) | Event (Snapshot n _) | Event (Delete n _) | Event (Revert n _) => Some n
  | _ => None
  end.

(** The deed may change what the step sees. *)
Definition spoils (d : deed) b : bool :=
  match d with
  | Looks | Flushes => false
  | Sets lba count =>
      match sees_live b with Some (lba', count') => meets lba count lba' count' | None => false end
  | Snaps n | Drops n =>
      match sees_name b with Some n' => if decide (n = n') then true else false | None => false end
  | Reverts => match sees_live b with Some _ => true | None => false end
  | Other => true
  end.

(** The disk may be another, or a power cut may leave less, if [d] comes sooner, before [d'] and not after. *)
Definition hurries (p : profile) (d d' : deed) : bool :=
  match d, d' with
  | Other, _ | _, Other => true
  | Looks, _ | _, Looks | Flushes, _ => false
  | Sets lba count, Sets lba' count' =>
      match p with Prefix => true | _ => meets lba count lba' count' end
  | Drops _, Sets _ _ => match p with Prefix => true | _ => false end
  | Sets _ _, Drops _ | Sets _ _, Flushes => match p with Ack => false | _ => true end
  | _, Flushes => match p with Prefix => true | _ => false end
  | _, _ => true
  end.

(** It may be that [a] has to come after [b]. *)
Definition needs (p : profile) a b : bool :=
  let d := deed_of a in let d' := deed_of b in spoils d b || spoils d' a || hurries p d d'.

(** An operation sent alone before which nothing in flight needs to be tried. *)
Definition calm a : bool :=
  match deed_of a, a with
  | Other, _ | _, Event (Read _ _ _ (Refused DataLost) _) => false
  | _, _ => true
  end.
Definition quiet (en : entry V) (steps : list (entry V)) : bool :=
  match en with
  | Event (Restart Ok) | Fail _ Ok | Return _ Ok | Replace _ Ok | Settle Ok | Hint Ok
  | Fail _ (Refused _) | Return _ (Refused _) | Replace _ (Refused _) | Settle (Refused _) | Hint (Refused
      _) =>
      forallb calm steps
  | _ => false
  end.

(** It may come after a flush instead of before it. *)
Definition yields a : bool := match deed_of a with Other => false | _ => true end.
Definition is_flush (en : entry V) : bool := match en with Event (Flush Ok) => true | _ => false end.

End Conflicts.

(** ** Elements that may be one are found by a key *)

Fixpoint before (k k' : list nat) : bool :=
  match k, k' with
  | [], _ => true
  | _, [] => false
  | n :: k, n' :: k' => less n n' || same n n' && before k k'
  end.

Section Squash.
Context {A : Type} (key_of : A → list nat) (join : A → list A → list A).

Definition into_group (ka : list nat * A) (groups : list (list nat * list A)) : list (list nat * list A) :=
  match groups with
  | (k, g) :: rest => if decide (ka.1 = k) then (k, join ka.2 g) :: rest else (ka.1, [ka.2]) :: groups
  | [] => [(ka.1, [ka.2])]
  end.
Definition squash (l : list A) : list A :=
  match l with
  | [] | [_] => l
  | _ => foldr into_group [] (merge_sort (λ ka ka', before ka.1 ka'.1) ((λ a, (key_of a, a)) <$> l)) ≫= snd
  end.
End Squash.

Section OverlappingChecker.
Context {V : Type} `{EqDecision V, Value V}.
(** A small number that tells most values apart, and most blocks that hold them. *)
Context (weigh : positive → V → nat).
Notation step := (step_of V).
Notation world := (@world V).

(** ** Configurations *)

(** [taken]: the numbers of the steps in flight that were taken, in ascending order. *)
Record config := Config { taken : list nat; now_in : world }.

Fixpoint has (n : nat) (l : list nat) : bool :=
  match l with [] => false | m :: l => same n m || has n l end.
Fixpoint note (n : nat) (l : list nat) : list nat :=
  match l with [] => [n] | m :: l' => if less m n then m :: note n l' else n :: l end.
Fixpoint forget (n : nat) (l : list nat) : list nat :=
  match l with [] => [] | m :: l => if same n m then forget n l else m :: forget n l end.

(** What the one image may be, the other may be. *)
Definition within (y y' : @leftover V) : bool :=
  forallb (λ kvs, forallb (λ v, bool_decide (v ∈ default [] (since y' !! kvs.1))) kvs.2) (map_to_list (since
      y))
  && bool_decide (kept y = kept y').
Definition with_leftover (y : leftover) (ys : list leftover) : list leftover :=
  if existsb (within y) ys then ys else y :: ys.

Definition weight (k : positive) (c : cell) (n : nat) : nat :=
  match c with Known v => weigh k v + n | Open i => i + n end.
Definition digest (x : @shape V) : nat :=
  foldr (λ nm n, map_fold weight n nm.2) (map_fold weight 0 (live_blocks x)) (snap_blocks x).
Definition digest_of_choices (ch : Pmap (@choice V)) : nat :=
  map_fold (λ k c n, foldr (λ v n, weigh k v + n) (weight k (base c) n) (others c)) 0 ch.
Definition gathered (ys : list leftover) : list leftover := squash (λ y, [digest (kept y)]) with_leftover ys.

Definition alike (c c' : config) : bool :=
  bool_decide (taken c = taken c') &&
  let w := now_in c in let w' := now_in c' in
  bool_decide (next w = next w') && bool_decide (powered w = powered w') &&
  bool_decide (blocks_count w = blocks_count w') &&
  bool_decide (seen w = seen w') && bool_decide (choices w = choices w').
Definition union (w w' : world) : world := leaving w' (seen w') (gathered (leftovers w ++ leftovers w')).

Fixpoint merge (c : config) (cs : list config) : list config :=
  match cs with
  | [] => [c]
  | c' :: cs =>
      if alike c c' then Config (taken c') (union (now_in c) (now_in c')) :: cs else c' :: merge c cs
  end.
Definition merged (cs : list config) : list config :=
  squash (λ c, digest (seen (now_in c)) :: digest_of_choices (choices (now_in c)) :: taken c) merge cs.

(** ** Taking steps *)

Definition is_in (x : step) (xs : list step) : bool := existsb (λ y, same (number x) (number y)) xs.

(** Of the steps in flight [xs], those that must be tried before one of [ys], and [ys]. *)
Fixpoint ahead (fuel : nat) (p : profile) (xs ys : list step) : list step :=
  let touched x := existsb (λ y, needs p (takes y) (takes x)) ys in
  if forallb (λ x, is_in x ys || negb (touched x)) xs then ys
  else match fuel with
       | O => xs
       | S fuel => ahead fuel p xs (base.filter (λ x, is_in x ys || touched x) xs)
       end.

Section Search.
Context (p : profile) (tolerates : nat).

Definition taking (v : devices) (x : step) (c : config) : list config :=
  Config (note (number x) (taken c)) <$> entry_worlds p tolerates v (takes x) (now_in c).
Definition growing (v : devices) (xs : list step) (c : config) : list config :=
  xs ≫= λ x, if has (number x) (taken c) then [] else taking v x c.

Definition effort (cs : list config) : nat := foldr (λ c n, S (length (leftovers (now_in c)) + n)) 0 cs.

(** How much more work may be done; [None]: any. *)
Definition spend (work : option nat) (cost : nat) : option (option nat) :=
  match work with
  | None => Some None
  | Some n => if less n cost then None else Some (Some (n - cost))
  end.

(** The configurations that are to be kept of those that steps of [xs] lead to from [cs], level by level; from
those at which it stops none goes on. [None]: it would be too much work. *)
Fixpoint reach (fuel : nat) (v : devices) (xs : list step) (keep stop : config → bool) (cs : list config)
    (work : option nat) : option (list config * option nat) :=
  let kept := base.filter keep cs in
  match fuel, base.filter (λ c, negb (stop c)) cs with
  | O, _ | _, [] => Some (kept, work)
  | S fuel, going =>
      let grown := going ≫= growing v xs in
      let level := merged grown in
      match spend work (effort grown) with
      | None => None
      | Some work =>
          match reach fuel v xs keep stop level work with
          | Some (more, work) => Some (kept ++ more, work)
          | None => None
          end
      end
  end.

(** ** Along a history *)

(** Nothing comes before the answer of [id] but what may come after a flush. *)
Fixpoint answered_first (g : granularity) (id : nat) (h : list (moment V)) : bool :=
  match h with
  | [] => true
  | Answered id' :: h => same id id' || answered_first g id h
  | Called id' en :: h => forallb yields (takes <$> steps_of g 0 id' en) && answered_first g id h
  | Alone _ :: _ => false
  end.

Record search := Search {
  flight : list step;            (** what was called and may still take effect *)
  next_number : nat;
  configs : list config;
  broken : devices;
  work : option nat;
}.

(** The step has been taken by now, and is settled. *)
Definition settle (x : step) (z : search) : option search :=
  let xs := ahead (length (flight z)) p (flight z) [x] in
  let done c := has (number x) (taken c) in
  match reach (length xs) (broken z) xs done done (configs z) (work z) with
  | None => None
  | Some (cs, work) => Some (Search
      (base.filter (λ y, negb (same (number x) (number y))) (flight z)) (next_number z)
      (merged ((λ c, Config (forget (number x) (taken c)) (now_in c)) <$> cs)) (broken z) work)
  end.
Fixpoint settle_all (xs : list step) (z : search) : option search :=
  match xs with
  | [] => Some z
  | x :: xs => match settle x z with Some z => settle_all xs z | None => None end
  end.

Definition alone (en : entry V) (z : search) : option search :=
  let xs := if quiet en (takes <$> flight z) then [] else flight z in
  match reach (length xs) (broken z) xs (λ _, true) (λ _, false) (configs z) (work z) with
  | None => None
  | Some (cs, work) =>
      let after := merged cs ≫= λ c,
        Config (if ends en then [] else taken c) <$> entry_worlds p tolerates (broken z) en (now_in c) in
      match spend work (effort after) with
      | None => None
      | Some work => Some (Search (if ends en then [] else flight z) (next_number z) (merged after)
          (devices_after tolerates (broken z) en) work)
      end
  end.

(** A flush that is called now, in every configuration. *)
Definition flush_now (z : search) : search := Search (flight z) (S (next_number z))
  (merged (configs z ≫= λ c,
    Config (taken c) <$> entry_worlds p tolerates (broken z) (Event (Flush Ok)) (now_in c)))
  (broken z) (work z).

(** [rest]: what comes after the moment. *)
Definition pass (g : granularity) (rest : list (moment V)) (m : moment V) (z : search) : option search :=
  match m with
  | Called id en =>
      let called := steps_of g (next_number z) id en in
      if is_flush en && forallb (λ c, powered (now_in c)) (configs z) &&
        forallb yields (takes <$> flight z) &&
        answered_first g id rest then Some (flush_now z)
      else Some (Search (flight z ++ called) (next_number z + length called) (configs z) (broken z) (work z))
  | Answered id => settle_all (base.filter (λ x, due x && same (of x) id) (flight z)) z
  | Alone en => alone en z
  end.

End Search.

(** ** Verdicts *)

(** [Unfit]: no order exists up to this moment, though one does up to the moment before. *)
Inductive finding := Fit | Unfit (at_moment : nat) | Unknown (at_moment : nat).

Fixpoint pass_all (g : granularity) (p : profile) (tolerates i : nat) (z : search)
    (h : list (moment V)) : finding :=
  match h with
  | [] => Fit
  | m :: h =>
      match pass p tolerates g h m z with
      | None => Unknown i
      | Some z => match configs z with [] => Unfit i | _ => pass_all g p tolerates (S i) z h end
      end
  end.

(** Without a power cut nobody sees what one would leave. *)
Definition crashes (m : moment V) : bool :=
  match m with Called _ (Event (Crash _)) | Alone (Event (Crash _)) => true | _ => false end.
Definition profile_for (p : profile) (h : list (moment V)) : profile :=
  if existsb crashes h then p else Ack.

Definition begin (blocks : nat) (work : option nat) : search :=
  Search [] 0 [Config [] (fresh_world blocks)] all_good work.

Definition judge_overlapping (g : granularity) (p : profile) (tolerates : nat) (work : option nat)
    (h : list (moment V)) : finding :=
  match h with
  | Alone (Event (Create blocks)) :: rest =>
      pass_all g (profile_for p rest) tolerates 1 (begin blocks work) rest
  | _ => Unfit 0
  end.

Definition check_overlapping (g : granularity) (p : profile) (tolerates : nat) (h : list (moment V)) : bool :=
  match judge_overlapping g p tolerates None h with Fit => true | _ => false end.

End OverlappingChecker.
