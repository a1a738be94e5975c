(** The server's queue and its scheduler: which of the requests that wait are performed next, and why each of
them has its turn.

Requests wait in the order in which they arrived. The scheduler takes the oldest one ([next_job]). If that is
a short write, the short writes behind it are taken too, up to so many blocks ([most]), and all are performed
together. If they are refused together, each is performed alone. [build/proved-disk serve] runs
[next_job], which is extracted.

The disk behind the queue is any machine that ends each job in a bounded number of turns ([job_ends]);
[ServedDiskProgress.v] and [ServedLegProgress.v] have the disks. Between two turns requests may arrive, and
what the weather of the disk allows may happen. A request that waits is answered after a bounded number of
turns: those of the jobs that have begun, and those of the requests before it. *)
From stdpp Require Import list.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk Progress.

(** ** Which requests are performed next *)

Section Scheduler.
Context `{!blocks} {A : Type}.    (* how a request is answered: a number in the proofs, a function in OCaml *)
Implicit Types (q : request) (w : list (A * request)).

Inductive job :=
  | Single (id : A) (q : request)
  | Together (ws : list (A * (nat * list block))).

(** A write that may be performed together with others, of [room] blocks at most. *)
Definition short_write (room : nat) q : option (nat * list block) :=
  match q with
  | DoWrite lba data => if decide (0 < length data ≤ room) then Some (lba, data) else None
  | _ => None
  end.

(** The short writes that wait, as far as there is room for their blocks, and all other requests. *)
Fixpoint short_writes (room : nat) w : list (A * (nat * list block)) * list (A * request) :=
  match w with
  | [] => ([], [])
  | (id, q) :: w =>
      match short_write room q with
      | Some write =>
          let found := short_writes (room - length write.2) w in ((id, write) :: found.1, found.2)
      | None => let found := short_writes room w in (found.1, (id, q) :: found.2)
      end
  end.

(** The oldest request, or the writes that are performed together with it; and what waits then. *)
Definition next_job (most : nat) w : option (job * list (A * request)) :=
  match w with
  | [] => None
  | (id, q) :: rest =>
      match short_write most q with
      | None => Some (Single id q, rest)
      | Some write =>
          let found := short_writes (most - length write.2) rest in
          match found.1 with
          | [] => Some (Single id q, rest)
          | more => Some (Together ((id, write) :: more), found.2)
          end
      end
  end.

(** Whom it answers. *)
Definition requests_of (j : job) : list (A * request) :=
  match j with
  | Single id q => [(id, q)]
  | Together ws => (λ x : A * (nat * list block), (x.1, DoWrite x.2.1 x.2.2)) <$> ws
  end.
Definition blocks_of_job (j : job) : nat :=
  match j with Single _ q => length (data_of q) | Together ws => length (blocks_of ws.*2) end.
Definition each_alone (ws : list (A * (nat * list block))) : list job :=
  (λ x : A * (nat * list block), Single x.1 (DoWrite x.2.1 x.2.2)) <$> ws.

(** ** What it takes *)

Lemma short_write_some room q lba data : short_write room q = Some (lba, data) →
  q = DoWrite lba data ∧ 0 < length data ≤ room.
Proof.
  destruct q as [lba' data'| | | | | | |]; simpl; try done. by destruct (decide _); intros [= <- <-].
Qed.

Lemma blocks_of_cons (write : nat * list block) ws :
  length (blocks_of (write :: ws)) = length write.2 + length (blocks_of ws).
Proof.
  unfold blocks_of. rewrite fmap_cons. simpl. rewrite app_length, zip_with_length, seq_length. lia.
Qed.

Lemma short_writes_room room w : let ws := (short_writes room w).1 in
  length (blocks_of ws.*2) ≤ room ∧ length ws ≤ room ∧
  Forall (λ x : A * (nat * list block), 0 < length x.2.2 ≤ room) ws.
Proof.
  revert room. induction w as [|[id q] w IH]; intros room; cbn [short_writes]; [by split_and!; simpl;
    try lia|].
  destruct (short_write room q) as [[lba data]|] eqn:Hq; [|apply IH].
  apply short_write_some in Hq as [-> Hlen]. destruct (IH (room - length data)) as (Hb&Hn&Hall).
  cbn [fst snd]. rewrite fmap_cons, blocks_of_cons. cbn [fst snd length]. split_and!; [lia|lia|].
  constructor; [done|]. eapply Forall_impl; [exact Hall|]. cbn. lia.
Qed.

(** Nobody is left out, and nobody has more requests before it than it had. *)
Lemma short_writes_keep (cost : request → nat) room w i x : w !! i = Some x →
  x ∈ requests_of (Together (short_writes room w).1) ∨
  ∃ i', (short_writes room w).2 !! i' = Some x ∧
    sum_list (cost <$> (take (S i') (short_writes room w).2).*2) ≤ sum_list (cost <$> (take (S i) w).*2).
Proof.
  revert room i. induction w as [|[id q] w IH]; intros room i Hi; [done|].
  cbn [short_writes]. destruct (short_write room q) as [[lba data]|] eqn:Hq; cbn [fst snd].
  - apply short_write_some in Hq as [-> Hlen]. destruct i as [|i]; [injection Hi as <-; left; by left|].
    destruct (IH (room - length data) i Hi) as [Hin|(i'&Hi'&Hsum)]; [left; by right|right].
    exists i'. split; [done|]. exact (Nat.le_trans _ _ _ Hsum (Nat.le_add_l _ _)).
  - destruct i as [|i]; [injection Hi as <-; right; exists 0; split; [done|]; simpl; lia|].
    destruct (IH room i Hi) as [Hin|(i'&Hi'&Hsum)]; [by left|right].
    exists (S i'). split; [done|]. exact (proj1 (Nat.add_le_mono_l _ _ (cost q)) Hsum).
Qed.
End Scheduler.
Global Arguments job {_} _.

(** ** The server *)

Notation any_answer := (λ _ : answer, True).

Section Server.
Context `{!blocks} {Z : Type}.
Local Notation job := (job nat).
Implicit Types (z : Z) (j : job) (js : list job) (w : list (nat * request)) (id : nat) (q : request).

(** What was answered to a request. *)
Record reply := Reply { reply_to : nat; replied : request; reply_answer : answer; reply_data : list block }.

Record server := Server {
  disk_behind : Z;
  begun : list job;    (* the first one is performed *)
  waiting : list (nat * request);    (* in the order in which they arrived *)
  replies : list reply;    (* whatever was answered *)
}.
Implicit Types s : server.

(** What a job comes to: the answers of its requests, with the data that were read; or nothing, if writes are
refused together. *)
Definition outcome : Type := option (list (answer * list block)).
(** What the scheduler of the disk does next for a job; the outcome is shown by the last turn. *)
Context (job_turn : job → Z → list outcome → Z → Prop).
(** The scheduler of the queue: what is taken of the requests that wait. *)
Context (next : list (nat * request) → option (job * list (nat * request))).

Definition replies_of j (answers : list (answer * list block)) : list reply :=
  zip_with (λ x a, Reply x.1 x.2 a.1 a.2) (requests_of j) answers.

Inductive server_turn : server → list () → server → Prop :=
  | Takes z j w w' a : next w = Some (j, w') → server_turn (Server z [] w a) [] (Server z [j] w' a)
  | GoesOn z j js w a z' :
      job_turn j z [] z' → server_turn (Server z (j :: js) w a) [] (Server z' (j :: js) w a)
  | Replies z j js w a answers z' :
      job_turn j z [Some answers] z' →
      server_turn (Server z (j :: js) w a) [] (Server z' js w (a ++ replies_of j answers))
  | Parts z ws js w a z' :    (* refused together: each is performed alone *)
      job_turn (Together ws) z [None] z' →
      server_turn (Server z (Together ws :: js) w a) [] (Server z' (each_alone ws ++ js) w a).

(** Between two turns: what may happen to the disk; and requests arrive. Whatever is asked of the state then
is [within]. *)
Context (weather : Z → Z → Prop).
Inductive server_weather (within : server → Prop) : server → server → Prop :=
  | passes z z' js w more a :
      weather z z' → within (Server z' js (w ++ more) a) →
      server_weather within (Server z js w a) (Server z' js (w ++ more) a).

(** The request is answered, as it should be. *)
Definition is_answered (well : answer → Prop) id q (_ : list ()) (s : server) : Prop :=
  ∃ r data, well r ∧ Reply id q r data ∈ replies s.

(** Each request that waits at [i] is answered after at most [turns s i] turns, whatever it asks for; and
[Ok], as long as it is within the stated sizes when the disk begins it. If it is in a job that has begun, it
is answered after at most [turns_begun s] turns. *)
Definition replies_to_all (in_service : server → Prop) (sized : nat → request → server → Prop)
    (turns_begun : server → nat) (turns : server → nat → nat) : Prop := ∀ s id q, in_service s →
  (∀ i, waiting s !! i = Some (id, q) →
    ends_well (server_weather (λ _, True)) server_turn (is_answered (λ _, True) id q) (turns s i) s ∧
    ends_well (server_weather (sized id q)) server_turn (is_answered (λ r, r = Ok) id q) (turns s i) s) ∧
  ((id, q) ∈ concat (requests_of <$> begun s) →
    ends_well (server_weather (λ _, True)) server_turn (is_answered (λ _, True) id q) (turns_begun s) s).

(** ** Each request has its turn *)

Context (ready : Z → Prop).    (* the disk has nothing under way *)
(** The I/Os of a request, of writes of so many blocks together, and the turns of so many I/Os. *)
Context (ios : request → nat) (together : nat → nat) (on : nat → nat).

(** The most turns of a job: two to collect and to begin, one to end, and those of its I/Os. *)
Definition turns_alone q : nat := 3 + on (ios q).
Definition turns_together ws : nat := 3 + on (together (length (blocks_of ws))).
Local Arguments turns_alone : simpl never.
Local Arguments turns_together : simpl never.
Definition turns_of_job j : nat :=
  match j with
  | Single _ q => turns_alone q
  | Together ws =>
      turns_together ws.*2 +
      sum_list ((λ x : nat * (nat * list block), turns_alone (DoWrite x.2.1 x.2.2)) <$> ws)
  end.

(** How a job ends. *)
Definition ends_as (well : answer → Prop) j (os : list outcome) z : Prop := ready z ∧
  match j with
  | Single _ _ => ∃ r data, well r ∧ os = [Some [(r, data)]]
  | Together ws => os = [None] ∨ os = [Some (replicate (length ws) (Ok, []))]
  end.

Definition turns_to_end j : nat :=
  match j with Single _ q => turns_alone q | Together ws => turns_together ws.*2 end.
Context (job_ends : ∀ j z, ready z →
  ends_well weather (job_turn j) (ends_as any_answer j) (turns_to_end j) z).

Section Answered.
Context (within : server → Prop) (well : answer → Prop) (my_id : nat) (mine : request).
Local Notation W := (server_weather within).
Local Notation G := (is_answered well my_id mine).
Local Notation ends n s := (ends_well W server_turn G n s).

(** A job under way ends, and then the server goes on. *)
Lemma job_lifts (good : list outcome → Z → Prop) n k j js z w a :
  ends_well weather (job_turn j) good n z →
  (∀ os z', good os z' → (∃ answers, os = [Some answers]) ∨ os = [None] ∧ ∃ ws, j = Together ws) →
  (∀ answers z' w', good [Some answers] z' → w `prefix_of` w' →
    let s := Server z' js w' (a ++ replies_of j answers) in G [] s ∨ ends k s) →
  (∀ ws z' w', good [None] z' → j = Together ws → w `prefix_of` w' →
    ends k (Server z' (each_alone ws ++ js) w' a)) →
  ends (n + k) (Server z (j :: js) w a).
Proof.
  intros Hends Hgood Hreply Hparts. revert z w Hends Hreply Hparts.
  induction n as [|n IH]; intros z w Hends Hreply Hparts; [done|].
  intros s1 Hs1. inversion Hs1 as [? z1 ? ? more ? Hz1 Hwithin]; subst.
  destruct (Hends z1 Hz1) as [Hsome Hall].
  split.
  { destruct Hsome as (os&z2&Hturn). destruct (Hall _ _ Hturn) as [Hg|[-> _]].
    - destruct (Hgood _ _ Hg) as [[answers ->]|[-> [ws ->]]]; do 2 eexists; [by apply Replies|by apply Parts].
    - do 2 eexists. by apply GoesOn. }
  intros es s2 Hs2. inversion Hs2 as [|? ? ? ? ? z2 Hturn|? ? ? ? ? answers z2 Hturn|? ws ? ? ? z2 Hturn];
    subst.
  - destruct (Hall _ _ Hturn) as [Hg|[_ Hrest]].
    { by destruct (Hgood _ _ Hg) as [[? [=]]|[[=] _]]. }
    right. split; [done|]. apply IH; [done|..].
    + intros answers z' w' Hg Hw'. apply Hreply; [done|]. by eapply prefix_app_l.
    + intros ws z' w' Hg Hj Hw'. apply Hparts; [done..|]. by eapply prefix_app_l.
  - destruct (Hall _ _ Hturn) as [Hg|[[=] _]].
    destruct (Hreply answers z2 (w ++ more) Hg) as [?|?]; [by apply prefix_app_r| |].
    + by left.
    + right. split; [done|]. eapply ends_well_more; [|done]. lia.
  - destruct (Hall _ _ Hturn) as [Hg|[[=] _]]. right. split; [done|].
    eapply ends_well_more; [|apply (Hparts ws z2 (w ++ more) Hg); [done|by apply prefix_app_r]]. lia.
Qed.

(** What is asked of the state when it begins is enough for the answer to be what it should be. *)
Context (my_job_ends : ∀ z z1 js w a, ready z → weather z z1 →
  within (Server z1 (Single my_id mine :: js) w a) →
  ends_well weather (job_turn (Single my_id mine)) (ends_as well (Single my_id mine)) (turns_alone mine) z).
Context (well_ok : well Ok).
Context (ready_weather : ∀ z z', ready z → weather z z' → ready z').

Local Notation alone_for := (λ x : nat * (nat * list block), turns_alone (DoWrite x.2.1 x.2.2)).

Lemma ends_as_shown P j os z : ends_as P j os z →
  (∃ answers, os = [Some answers]) ∨ os = [None] ∧ ∃ ws, j = Together ws.
Proof.
  intros [_ Hj]. destruct j as [id q|ws]; [destruct Hj as (?&?&_&->)|destruct Hj as [->| ->]]; eauto.
Qed.

Lemma alones_end xs k js z w a :
  (∀ z' w' a', ready z' → w `prefix_of` w' → ends k (Server z' js w' a')) → ready z →
  ends (sum_list (alone_for <$> xs) + k) (Server z (each_alone xs ++ js) w a).
Proof.
  revert z w a. induction xs as [|[id [lba data]] xs IH]; intros z w a Hcont Hz; [by apply Hcont|].
  change (each_alone ((id, (lba, data)) :: xs) ++ js) with (Single id (DoWrite lba data) :: (each_alone xs
    ++ js)).
  cbn [fmap list_fmap sum_list fold_right fst snd]. rewrite <-Nat.add_assoc.
  eapply (job_lifts (ends_as any_answer (Single id (DoWrite lba data))));
    [by apply (job_ends (Single _ _))|..].
  - apply ends_as_shown.
  - intros answers z' w' [Hz' _] Hw'. right. apply IH; [|done].
    intros z2 w2 a2 Hz2 Hw2. apply Hcont; [done|]. by etrans.
  - intros ws z' w' [_ (?&?&_&[=])].
Qed.

(** Any job ends, however far it has come. *)
Lemma others_end j n k js z w a :
  (∀ z' w' a', ready z' → w `prefix_of` w' → ends k (Server z' js w' a')) →
  ends_well weather (job_turn j) (ends_as any_answer j) n z → n ≤ turns_to_end j →
  ends (turns_of_job j + k) (Server z (j :: js) w a).
Proof.
  intros Hcont Hj Hn.
  set (k' := match j with Single _ _ => k | Together ws => sum_list (alone_for <$> ws) + k end).
  apply ends_well_more with (n + k').
  { subst k'. destruct j as [|ws]; cbn [turns_of_job turns_to_end] in *; lia. }
  apply (job_lifts (ends_as any_answer j)); [done|apply ends_as_shown|..].
  - intros answers z' w' [Hz' _] Hw'. right. eapply ends_well_more; [|by apply Hcont].
    subst k'. destruct j; lia.
  - intros ws z' w' [Hz' _] -> Hw'. subst k'. apply alones_end; [|done].
    intros z2 w2 a2 Hz2 Hw2. apply Hcont; [done|]. by etrans.
Qed.

Lemma mine_alone_ends js z w a : ready z →
  ends (turns_alone mine) (Server z (Single my_id mine :: js) w a).
Proof.
  intros Hz s1 Hs1. refine ((_ : ends (turns_alone mine) (Server z _ w a)) s1 Hs1).
  inversion Hs1 as [? z1 ? ? more ? Hz1 Hwithin]; subst.
  rewrite <-(Nat.add_0_r (turns_alone mine)). eapply job_lifts;
    [by eapply my_job_ends|apply ends_as_shown|..].
  - intros answers z' w' [_ (r&data&Hr&[= ->])] _. left. exists r, data. split; [done|]. simpl.
    apply elem_of_app. right. by left.
  - intros ws z' w' _ [=].
Qed.

Lemma mine_among_ends xs js z w a : (my_id, mine) ∈ requests_of (Together xs) → ready z →
  ends (sum_list (alone_for <$> xs)) (Server z (each_alone xs ++ js) w a).
Proof.
  intros Hin. revert z w a.
  induction xs as [|[id [lba data]] xs IH]; intros z w a Hz; [by apply elem_of_nil in Hin|].
  change (each_alone ((id, (lba, data)) :: xs) ++ js) with (Single id (DoWrite lba data) :: (each_alone xs
    ++ js)).
  cbn [fmap list_fmap sum_list fold_right fst snd requests_of] in *.
    apply elem_of_cons in Hin as [[= <- <-]|Hin].
  { eapply ends_well_more; [apply (Nat.le_add_r (turns_alone mine))|by apply mine_alone_ends]. }
  apply (job_lifts (ends_as any_answer (Single id (DoWrite lba data))));
    [by apply (job_ends (Single _ _))|..].
  - apply ends_as_shown.
  - intros answers z' w' [Hz' _] _. right. by apply IH.
  - intros ws z' w' [_ (?&?&_&[=])].
Qed.

Lemma replied_together ws : (my_id, mine) ∈ requests_of (Together ws) →
  Reply my_id mine Ok [] ∈ replies_of (Together ws) (replicate (length ws) (Ok, [])).
Proof.
  intros (x&[= Hid Hq]&Hx)%elem_of_list_fmap. rewrite Hid, Hq. clear -Hx. unfold replies_of. simpl.
  induction ws as [|y ws IH]; [by apply elem_of_nil in Hx|].
  simpl. apply elem_of_cons in Hx as [->|Hx]; [by left|right; by apply IH].
Qed.

(** My job ends, and I am answered. *)
Lemma mine_ends j js z w a : (my_id, mine) ∈ requests_of j → ready z →
  ends (turns_of_job j) (Server z (j :: js) w a).
Proof.
  intros Hin Hz. destruct j as [id q|ws].
  { apply elem_of_list_singleton in Hin as [= <- <-]. by apply mine_alone_ends. }
  cbn [turns_of_job]. eapply job_lifts; [by apply job_ends|apply ends_as_shown|..].
  - intros answers z' w' [_ [[=]|[= ->]]] _. left. exists Ok, []. split; [done|]. cbn [replies].
    apply elem_of_app. right. by apply replied_together.
  - intros ws' z' w' [Hz' _] [= <-] _. by apply mine_among_ends.
Qed.

(** The scheduler of the queue is fair: whoever waits is taken, or has fewer turns before it than it had. *)
Context (turns_for : request → nat).
Definition turns_before w i : nat := sum_list (turns_for <$> (take (S i) w).*2).
Context (fair : ∀ w i x, w !! i = Some x → ∃ j w', next w = Some (j, w') ∧
  (x ∈ requests_of j ∧ turns_of_job j < turns_before w i ∨
   ∃ i', w' !! i' = Some x ∧ turns_of_job j + turns_before w' i' < turns_before w i)).

Lemma waiting_ends n w i z a : ready z → w !! i = Some (my_id, mine) → turns_before w i ≤ n →
  ends n (Server z [] w a).
Proof.
  revert w i z a. induction n as [n IH] using lt_wf_ind. intros w i z a Hz Hi Hn.
  destruct n as [|n].
  { destruct (fair w i _ Hi) as (j&w'&_&[[_ ?]|(i'&_&?)]); lia. }
  intros s1 Hs1. inversion Hs1 as [? z1 ? ? more ? Hz1 _]; subst.
  assert ((w ++ more) !! i = Some (my_id, mine)) as Hi1 by by apply lookup_app_l_Some.
  assert (turns_before (w ++ more) i = turns_before w i) as Hsame.
  { unfold turns_before. rewrite take_app_le; [done|]. by apply lookup_lt_Some in Hi. }
  destruct (fair _ _ _ Hi1) as (j&w'&Hnext&Hj). rewrite Hsame in Hj.
  split; [do 2 eexists; by apply Takes|].
  intros es s2 Hs2. right. inversion Hs2; subst. simplify_eq. split; [done|].
  assert (ready z1) as Hready by by eapply ready_weather.
  destruct Hj as [[Hin Hlt]|(i'&Hi'&Hlt)].
  - eapply ends_well_more; [|by apply mine_ends]. lia.
  - apply ends_well_more with (turns_of_job j + turns_before w' i'); [lia|].
    eapply others_end; [|by apply job_ends|done].
    intros z2 w2 a2 Hz2 [more2 ->]. apply (IH (turns_before w' i') ltac:(lia) _ i');
      [done|by apply lookup_app_l_Some|].
    unfold turns_before. rewrite take_app_le; [done|]. by apply lookup_lt_Some in Hi'.
Qed.

(** Also while jobs are under way. *)
Lemma begun_end js k z w a : ready z →
  (∀ z' w' a', ready z' → w `prefix_of` w' → ends k (Server z' [] w' a')) →
  ends (sum_list (turns_of_job <$> js) + k) (Server z js w a).
Proof.
  revert z w a. induction js as [|j js IH]; intros z w a Hz Hcont; [by apply Hcont|].
  cbn [fmap list_fmap sum_list fold_right]. rewrite <-Nat.add_assoc.
  eapply others_end; [|by apply job_ends|done]. intros z' w' a' Hz' Hw'. apply IH; [done|].
  intros z2 w2 a2 Hz2 Hw2. apply Hcont; [done|]. by etrans.
Qed.

(** My job has begun. *)
Lemma mine_begun_ends js z w a : (my_id, mine) ∈ concat (requests_of <$> js) → ready z →
  ends (sum_list (turns_of_job <$> js)) (Server z js w a).
Proof.
  revert z w a. induction js as [|j js IH]; intros z w a Hin Hz; [by apply elem_of_nil in Hin|].
  cbn [fmap list_fmap concat sum_list fold_right] in *. apply elem_of_app in Hin as [Hin|Hin].
  - eapply ends_well_more; [apply (Nat.le_add_r (turns_of_job j))|by apply mine_ends].
  - eapply others_end; [|by apply job_ends|done]. intros z' w' a' Hz' _. by apply IH.
Qed.

(** And is under way. *)
Lemma mine_under_way_ends (any : ∀ r, well r) n j js z w a : (my_id, mine) ∈ requests_of j →
  ends_well weather (job_turn j) (ends_as any_answer j) n z → n ≤ turns_to_end j →
  ends (turns_of_job j) (Server z (j :: js) w a).
Proof.
  intros Hin Hj Hn.
  set (k := match j with Single _ _ => 0 | Together ws => sum_list (alone_for <$> ws) end).
  apply ends_well_more with (n + k).
  { subst k. destruct j as [|ws]; cbn [turns_of_job turns_to_end] in *; lia. }
  apply (job_lifts (ends_as any_answer j)); [done|apply ends_as_shown|..].
  - intros answers z' w' [_ Hend] _. left. destruct j as [id q|ws].
    + apply elem_of_list_singleton in Hin as [= <- <-]. destruct Hend as (r&data&_&[= ->]).
      exists r, data. split; [apply any|]. apply elem_of_app. right. by left.
    + destruct Hend as [[=]|[= ->]]. exists Ok, []. split; [apply any|]. cbn [replies].
      apply elem_of_app. right. by apply replied_together.
  - intros ws z' w' [Hz' _] -> _. by apply mine_among_ends.
Qed.

(** The first of the jobs that have begun is under way, or they all are done. *)
Definition under_way s : Prop :=
  match begun s with
  | [] => ready (disk_behind s)
  | j :: _ => ∃ n, n ≤ turns_to_end j ∧
      ends_well weather (job_turn j) (ends_as any_answer j) n (disk_behind s)
  end.

Lemma under_way_ends s i : under_way s → waiting s !! i = Some (my_id, mine) →
  ends (sum_list (turns_of_job <$> begun s) + turns_before (waiting s) i) s.
Proof.
  destruct s as [z [|j js] w a]; cbn [begun waiting disk_behind]; intros Hs Hi; [by eapply waiting_ends|].
  assert (∀ z' w' a', ready z' → w `prefix_of` w' → ends (turns_before w i) (Server z' [] w' a')) as Hthen.
  { intros z' w' a' Hz' [more ->]. apply (waiting_ends _ _ i); [done|by apply lookup_app_l_Some|].
    unfold turns_before. rewrite take_app_le; [done|]. by apply lookup_lt_Some in Hi. }
  destruct Hs as (n&Hn&Hj). cbn [fmap list_fmap sum_list fold_right]. rewrite <-Nat.add_assoc.
  eapply others_end; [|exact Hj|done]. intros z' w' a' Hz' Hw'. apply begun_end; [done|].
  intros z2 w2 a2 Hz2 Hw2. apply Hthen; [done|]. by etrans.
Qed.

Lemma begun_under_way_ends (any : ∀ r, well r) s :
  under_way s → (my_id, mine) ∈ concat (requests_of <$> begun s) →
  ends (sum_list (turns_of_job <$> begun s)) s.
Proof.
  destruct s as [z [|j js] w a]; cbn [begun]; intros Hs Hin; [by apply elem_of_nil in Hin|].
  destruct Hs as (n&Hn&Hj). cbn [fmap list_fmap concat sum_list fold_right] in *.
  apply elem_of_app in Hin as [Hin|Hin].
  - eapply ends_well_more; [apply (Nat.le_add_r (turns_of_job j))|by eapply mine_under_way_ends].
  - eapply others_end; [|exact Hj|done]. intros z' w' a' Hz' _. by apply mine_begun_ends.
Qed.
End Answered.

(** What is served: the disk had nothing under way, then any turns, with whatever happens between them. *)
Inductive in_service : server → Prop :=
  | opens z w a : ready z → in_service (Server z [] w a)
  | meets s s1 : in_service s → server_weather (λ _, True) s s1 → in_service s1
  | works s s1 es s2 : in_service s → server_weather (λ _, True) s s1 → server_turn s1 es s2 → in_service s2.

Context (ready_weather : ∀ z z', ready z → weather z z' → ready z').
Context (weather_trans : ∀ z z1 z2, weather z z1 → weather z1 z2 → weather z z2).

Lemma ends_well_weather {E} (turn : Z → list E → Z → Prop) good n z z1 :
  weather z z1 → ends_well weather turn good n z → ends_well weather turn good n z1.
Proof. destruct n as [|n]; [done|]. intros Hz1 Hz z2 Hz2. apply Hz. by eapply weather_trans. Qed.

Lemma under_way_weather s s1 : under_way s → server_weather (λ _, True) s s1 → under_way s1.
Proof.
  intros Hs Hs1. destruct Hs1 as [z z1 [|j js] w more a Hz1 _]; unfold under_way in *; simpl in *;
    [by eapply ready_weather|].
  destruct Hs as (n&Hn&Hj). exists n. split; [done|]. by eapply ends_well_weather.
Qed.

Lemma ready_under_way z js w a : ready z → under_way (Server z js w a).
Proof.
  intros Hz. destruct js as [|j js]; [done|]. exists (turns_to_end j). split; [done|by apply job_ends].
Qed.

Lemma under_way_turn s s1 es s2 :
  under_way s → server_weather (λ _, True) s s1 → server_turn s1 es s2 → under_way s2.
Proof.
  intros Hs Hs1 Hs2. pose proof (under_way_weather _ _ Hs Hs1) as Hw.
  assert (∀ j js, begun s1 = j :: js → ∃ n, n ≤ turns_to_end j ∧ ∀ os z2, job_turn j (disk_behind s1) os z2 →
    ends_as any_answer j os z2 ∨ os = [] ∧ ends_well weather (job_turn j) (ends_as any_answer j) n z2) as
      Hall.
  { intros j js Hbegun. destruct Hs1 as [z z1 js1 w more a Hz1 _]. simpl in *. subst js1.
    unfold under_way in Hs. simpl in Hs. destruct Hs as ([|n]&Hn&Hj); [done|]. exists n. split; [lia|].
    intros os z2 Hturn. by apply (Hj z1 Hz1). }
  destruct Hs2 as [z j w w' a|z j js w a z' Hturn|z j js w a answers z' Hturn|z ws js w a z' Hturn];
    [by apply ready_under_way|..]; simpl in *;
    destruct (Hall _ _ eq_refl) as (n&Hn&Hj); destruct (Hj _ _ Hturn) as [Hend|[Hno Hrest]]; try done.
  - by apply ends_as_shown in Hend as [[? [=]]|[[=] _]].
  - by exists n.
  - apply ready_under_way. apply Hend.
  - apply ready_under_way. apply Hend.
Qed.

Lemma in_service_under_way s : in_service s → under_way s.
Proof.
  induction 1 as [z w a Hz|s s1 _ IH Hs1|s s1 es s2 _ IH Hs1 Hs2]; [done|by eapply under_way_weather|].
  by eapply under_way_turn.
Qed.
End Server.
Global Arguments server {_} _.

(** ** The scheduler of the queue is fair *)

Section Fair.
Context `{!blocks} (most : nat) (ios : request → nat) (together : nat → nat) (on : nat → nat).
Local Notation alone := (turns_alone ios on).
Local Notation of_job := (turns_of_job ios together on).
Implicit Types (q : request) (w : list (nat * request)) (ws : list (nat * (nat * list block))).

(** The most turns that a request costs those behind it: to take it, and its job. A short write may bring up
to [most] others with it, and each of them is performed alone if they are refused together. *)
Definition turns_for q : nat :=
  match short_write most q with
  | Some _ => 1 + S most * (3 + on (together most))
  | None => 1 + alone q
  end.

Context (write_ios : ∀ lba data, ios (DoWrite lba data) = together (length data)).
Context (together_more : ∀ n n', n ≤ n' → together n ≤ together n').
Context (on_more : ∀ n n', n ≤ n' → on n ≤ on n').

Lemma short_alone lba data : length data ≤ most → alone (DoWrite lba data) ≤ 3 + on (together most).
Proof.
  intros Hlen. unfold turns_alone. rewrite write_ios. apply Nat.add_le_mono_l, on_more, together_more, Hlen.
Qed.

Lemma together_turns ws :
  length (blocks_of ws.*2) ≤ most → length ws ≤ most →
  Forall (λ x : nat * (nat * list block), 0 < length x.2.2 ≤ most) ws →
  of_job (Together ws) < 1 + S most * (3 + on (together most)).
Proof.
  intros Hblocks Hlen Hall. cbn [turns_of_job].
  assert (turns_together together on ws.*2 ≤ 3 + on (together most)) as Htogether.
  { unfold turns_together. apply Nat.add_le_mono_l, on_more, together_more, Hblocks. }
  assert (sum_list ((λ x : nat * (nat * list block), alone (DoWrite x.2.1 x.2.2)) <$> ws) ≤
    length ws * (3 + on (together most))) as Halone.
  { clear -Hall write_ios together_more on_more. induction Hall as [|x ws Hx _ IH]; [done|].
    pose proof (short_alone x.2.1 x.2.2 ltac:(lia)).
    change (sum_list (?f <$> x :: ws)) with (f x + sum_list (f <$> ws)). simpl length. lia. }
  assert (length ws * (3 + on (together most)) ≤ most * (3 + on (together most))) by by apply
    Nat.mul_le_mono_r.
  lia.
Qed.

Lemma next_job_fair w i x : w !! i = Some x → ∃ j w', next_job most w = Some (j, w') ∧
  (x ∈ requests_of j ∧ of_job j < turns_before turns_for w i ∨
   ∃ i', w' !! i' = Some x ∧ of_job j + turns_before turns_for w' i' < turns_before turns_for w i).
Proof.
  destruct w as [|[id q] rest]; [done|]. intros Hi.
  assert (∀ i, turns_before turns_for ((id, q) :: rest) i =
    turns_for q + sum_list (turns_for <$> (take i rest).*2)) as Hsum by done.
  assert (alone q < turns_for q → ∃ j w', Some (Single id q, rest) = Some (j, w') ∧
    (x ∈ requests_of j ∧ of_job j < turns_before turns_for ((id, q) :: rest) i ∨
     ∃ i', w' !! i' = Some x ∧
       of_job j + turns_before turns_for w' i' < turns_before turns_for ((id, q) :: rest) i)) as Halone.
  { intros Hlt. do 2 eexists. split; [done|]. rewrite Hsum. cbn [turns_of_job]. destruct i as [|i].
    - left. injection Hi as <-. split; [by left|]. lia.
    - right. exists i. split; [done|]. unfold turns_before. lia. }
  cbn [next_job]. destruct (short_write most q) as [[lba data]|] eqn:Hq.
  - pose proof Hq as [-> Hlen]%short_write_some. cbn [snd].
    assert (turns_for (DoWrite lba data) = 1 + S most * (3 + on (together most))) as Hfor.
    { unfold turns_for. by rewrite Hq. }
    destruct (short_writes (most - length data) rest).1 as [|y more] eqn:Hmore.
    { apply Halone. rewrite Hfor. pose proof (short_alone lba data ltac:(lia)). lia. }
    destruct (short_writes_room (most - length data) rest) as (Hblocks&Hshort&Hall).
    rewrite Hmore in Hblocks, Hshort, Hall.
    assert (of_job (Together ((id, (lba, data)) :: y :: more)) < turns_for (DoWrite lba data)) as Hjob.
    { rewrite Hfor. apply together_turns.
      - rewrite fmap_cons, blocks_of_cons. cbn [snd]. lia.
      - cbn [length] in *. lia.
      - constructor; [done|]. eapply Forall_impl; [exact Hall|]. cbn. lia. }
    do 2 eexists. split; [done|]. rewrite Hsum. destruct i as [|i].
    + left. injection Hi as <-. split; [by left|]. lia.
    + destruct (short_writes_keep turns_for (most - length data) rest i x Hi) as [Hin|(i'&Hi'&Hless)].
      * left. rewrite Hmore in Hin. split; [by right|]. lia.
      * right. exists i'. split; [done|]. unfold turns_before. lia.
  - apply Halone. unfold turns_for. rewrite Hq. lia.
Qed.
End Fair.
