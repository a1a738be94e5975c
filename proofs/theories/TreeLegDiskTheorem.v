(** The theorem about the disk with trees on a leg: one machine with shared trees, mirrors and parity.

The machine of [LegDiskMachine.v] runs the programs of [ProvedTreeDisk.v] on [count] devices, any [fewest] of
which give back a disk of [size] blocks. What it may meet, and what is assumed, is as in [LegDiskTheorem.v];
pages of nodes may tear, as data may, so with parity they are stripes. A step of a walk may be asked for at
any time between two requests, or never. *)
From stdpp Require Import gmap strings.
From LogDisk Require SharedTreeDeletion.
From LogDisk Require Import VirtualDisk RecordedTrace RecordedSnapshots Medium Codec.
From LogDisk Require Import ProvedTreeMaps ProvedTreeDiskInvariant ProvedTreeDiskTheorem.
From LogDisk Require Import Leg LegCorrect LegDiskMachine LegDiskRefinement.

Section Machine.
Context `{!blocks} {C : Type} `{!cutting block C} {torn : tearing block} (bits size count : nat).
Local Notation D := (tree_programs bits).

Theorem tree_leg_disk_refines_contract n z tr z' :
  blocks_laws → cutting_laws count → formatted D size count n z → lives D size count z tr z' →
  admits_recorded Ack (count - fewest) (Event (Create n) :: tr).
Proof. intros laws code. eapply leg_disk_refines; [by apply tree_programs_safe|done]. Qed.

(** A snapshot reads as the live view read when it was taken, whatever follows but its deletion: through
copied paths, walks, checkpoints, power cuts and recoveries, while devices fail, come back, are replaced and
copied to. *)
Theorem tree_leg_disk_read_after_snapshot n z z' name lba count' (data data' : list block) before tr :
  blocks_laws → cutting_laws count → formatted D size count n z → Forall (keeps_snapshot name) tr →
  lives D size count z
    (before ++ Event (Read Live lba count' Ok data) :: Event (Snapshot name Ok) ::
     tr ++ [Event (Read (Named name) lba count' Ok data')]) z' →
  data' = data.
Proof.
  intros laws code Hz Htr Hlives.
  apply (recorded_snapshot_reads_for_ever Ack (count - fewest) name lba count' data data'
    (Event (Create n) :: before) tr); [done|done|].
  by apply (tree_leg_disk_refines_contract n z _ z').
Qed.

(** ** Space *)

(** A memory that the machine has when nothing is under way. *)
Definition idle_on_leg (y : T.memory) : Prop := ∃ n z tr ms c x h,
  formatted D size count n z ∧ lives D size count z tr (Idle y ms c, x, h).

Lemma idle_on_leg_shows y : blocks_laws → cutting_laws count → idle_on_leg y → shows_maps bits y.
Proof.
  intros laws code (n&z&tr&ms&c&x&h&Hz&Hlives).
  destruct (leg_idle_represents D size count _ _ _ (tree_programs_safe bits laws) _ _ _ _ _ _ _ _ Hz Hlives)
    as (f&d&Hy).
  by eapply represents_shows.
Qed.

(** What a view maps has a place. Once no walk is left, nothing else has. *)
Theorem tree_leg_disk_keeps_exactly y x : blocks_laws → cutting_laws count → idle_on_leg y →
  (view_maps bits y x → is_Some (places (T.current y) !! x)) ∧
  (T.walks y = [] → is_Some (places (T.current y) !! x) → view_maps bits y x).
Proof. intros laws code Hy%idle_on_leg_shows; [|done..]. by apply keeps_exactly. Qed.

(** The step that [next_step] proposes for a walk that is left can be taken; and each step, of whichever walk
and at whichever node, leaves less to do. *)
Theorem tree_leg_disk_walks_end y w : blocks_laws → cutting_laws count → idle_on_leg y → w ∈ T.walks y →
  is_Some (walk w (T.next_step y w) (T.current y)) ∧
  ∀ n t, walk w n (T.current y) = Some t →
    base.size (SharedTreeDeletion.work (TreeIndex.trees (views t))) <
    base.size (SharedTreeDeletion.work (TreeIndex.trees (views (T.current y)))).
Proof. intros laws code Hy%idle_on_leg_shows; [|done..]. by apply (walks_end bits). Qed.
End Machine.
