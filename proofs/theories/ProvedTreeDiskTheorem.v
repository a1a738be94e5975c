(** The theorem about the disk that runs with its maps as shared trees.

[proved_tree_disk] is the machine of [DiskMachine.v] with the programs of [ProvedTreeDisk.v], on one device of
blocks. What it may meet, and what is assumed, is as in [ProvedDiskTheorem.v]: any requests and proposals, a
power cut between any two block I/Os, also in a checkpoint and in recovery; pages of nodes and roots may tear
to anything, as data may; headers and log records to what does not unseal; digests that are taken do not
collide. A step of a walk may be asked for at any time between two requests, or never. *)
From stdpp Require Import gmap strings.
From LogDisk Require VirtualDiskProperties LogStructuredDiskReading TreeIndexMaps SharedTreeDeletion.
From LogDisk Require Import SharedTreeReclaim.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant DiskMachine
  DiskMachineShape.
From LogDisk Require Import ProvedTreeMaps ProvedTreeDiskInvariant ProvedTreeDiskRecovery
  ProvedTreeDiskRequests.

(** ** Walks *)

(** [next_node] goes down to a node where the walk has a step. *)
Lemma next_node_taken (s : SharedTree.state) w c i n : inv s →
  SharedTree.height s ≤ i + match SharedTree.nodes s !! n with
    | Some nd => length (SharedTree.place nd) | None => 0 end →
  SharedTree.is_held (SharedTree.nodes s) c n = true →
  let n' := T.next_node s w c i n in ∃ nd, SharedTree.nodes s !! n' = Some nd ∧
    SharedTree.is_held (SharedTree.nodes s) c n' = true ∧
    (SharedTree.kept s w c n' nd = true ∨ SharedTree.kids_finished (SharedTree.nodes s) c nd = true).
Proof.
  intros I. pose proof (inv_tidy I) as tidy. revert n.
  induction i as [|i IH]; intros n Hi Hn; pose proof Hn as (Hr&nd&Hnd&_)%(is_held_spec tidy);
    rewrite Hnd in Hi.
  - exists nd. split_and!; [done|done|]. right.
    destruct (SharedTree.kids_finished (SharedTree.nodes s) c nd) eqn:Hk; [done|exfalso].
    destruct (SharedTreeDeletion.unfinished_kid _ _ _ Hk) as (d&m&Hd&_). destruct (tidy_edge tidy Hnd Hd).
      lia.
  - simpl. rewrite Hnd. destruct (SharedTree.kept s w c n nd) eqn:Hk; [exists nd; auto|].
    destruct (List.find _ _) as [[d m]|] eqn:Hf.
    + apply List.find_some in Hf as [Hin%elem_of_list_In%elem_of_map_to_list Hm]. simpl in *.
      apply IH; [|done]. pose proof Hm as (_&md&Hmd&_)%(is_held_spec tidy). rewrite Hmd.
      destruct (tidy_kid tidy Hnd Hin Hmd) as [-> _]. rewrite app_length. simpl. lia.
    + exists nd. split_and!; [done|done|]. right. unfold SharedTree.kids_finished. apply forallb_forall.
      intros e He. by rewrite (List.find_none _ _ Hf e He).
Qed.

Lemma next_step_taken (s : SharedTree.state) w c : inv s → SharedTree.claims s !! inr w = Some c →
  is_Some (SharedTree.reclaim w (T.next_node s w c (S (SharedTree.height s)) (SharedTree.root c)) s).
Proof.
  intros I Hc. pose proof (next_node_taken s w c (S (SharedTree.height s)) (SharedTree.root c) I) as Hnext.
  cbv zeta in Hnext. revert Hnext. generalize (T.next_node s w c (S (SharedTree.height s)) (SharedTree.root
    c)).
  intros n Hnext. unfold SharedTree.reclaim. rewrite Hc. simpl.
  destruct (SharedTree.is_held (SharedTree.nodes s) c (SharedTree.root c)); [|by eexists].
  destruct Hnext as (nd&Hnd&Hheld&Hstep); [lia|done|]. simpl. rewrite Hnd. simpl. rewrite Hheld. simpl.
  destruct (SharedTree.kept s w c n nd); [by eexists|]. destruct Hstep as [?|Hfin]; [done|].
  rewrite Hfin. simpl. case_match; by eexists.
Qed.

Section Machine.
Context `{!blocks} {torn : tearing block} (bits : nat).    (* of a digit of a key *)

Definition tree_programs : programs T.memory T.upkeep :=
  Programs (T.perform bits) (T.write_group bits) (T.maintain bits) (T.recover bits Done) (T.format bits).

Definition proved_tree_disk : implementation block := disk_machine tree_programs.

Lemma tree_programs_safe : blocks_laws →
  crash_safe_programs tree_programs T.shape (tree_represents bits) (tree_recoverable bits).
Proof.
  intros laws. split.
  - intros y f d Hy. eapply tree_safe; [done|]. intros f' Hf'. by exists (T.tree_size y).
  - intros y f d places q Hy.
    eapply crash_safe_mono; [| |by apply (crash_safe_tree_perform bits (T.tree_size y))].
    + intros f' (d'&Hd'&Hf'). exists d'. split; [done|]. by eexists.
    + intros o m (f'&d'&->&Hshape&[_ Hy']&Hstep). by exists f', d'.
  - intros y f d places ws Hy.
    eapply crash_safe_mono; [| |by apply (crash_safe_tree_group bits (T.tree_size y))].
    + intros f' [Hf'|[Hws Hf']]; [left; by eexists|right; split; [done|by eexists]].
    + intros o m (f'&->&Hshape&Hws&[_ Hy']). by exists f'.
  - intros y f d u Hy.
    eapply crash_safe_mono; [| |by apply (crash_safe_tree_maintain bits (T.tree_size y))].
    + intros f' Hf'. by eexists.
    + intros y' m (f'&->&Hshape&[_ Hy']). by exists f'.
  - intros g f d (size&Hf). eapply crash_safe_tree_recover; [done|intros f' Hf'; by exists size|].
    intros y f' Hy <- Hsize. split.
    + eapply tree_safe; [done|]. intros f1 Hf1. by eexists.
    + exists y. split; [done|]. by exists f'.
  - intros size g f y m Hwhole Hy. destruct (tree_format_represents _ _ _ _ _ _ Hwhole Hy) as (f'&?&?&_&?).
    by exists f'.
Qed.

(** And the size of its trees is that of the new disk for ever. *)
Lemma tree_programs_safe_of size g : blocks_laws →
  crash_safe_programs (only tree_programs size g) T.shape (tree_represents_of bits size)
    (tree_recoverable_of bits size).
Proof.
  intros laws. split.
  - intros y f d Hy. by eapply tree_safe_of.
  - intros y f d places q. apply crash_safe_tree_perform.
  - intros y f d places ws. apply crash_safe_tree_group.
  - intros y f d u. apply crash_safe_tree_maintain.
  - intros g' f d Hf. eapply crash_safe_tree_recover; [done..|]. intros y f' Hy <- Hsize.
    apply (conj Hsize) in Hy. split; [by eapply tree_safe_of|]. exists y. split; [done|]. by exists f'.
  - intros size' g' f y m Hwhole. simpl. destruct (decide _) as [[-> ->]|]; [|done].
    intros (f'&?&?&?&?)%tree_format_represents; [|done]. by exists f'.
Qed.

Theorem proved_tree_disk_refines_contract : blocks_laws → implements proved_tree_disk Ack.
Proof. intros laws. apply (disk_machine_refines _ _ _ _ (tree_programs_safe laws)). Qed.

(** A snapshot reads as the live view read when it was taken, whatever follows but its deletion: through
copied paths, walks, checkpoints, power cuts and recoveries. *)
Theorem proved_tree_disk_read_after_snapshot n x x' name lba count (data data' : list block) before tr :
  blocks_laws → fresh proved_tree_disk n x → Forall (VirtualDiskProperties.keeps name) tr →
  shows proved_tree_disk x
    (before ++ Read Live lba count Ok data :: Snapshot name Ok ::
     tr ++ [Read (Named name) lba count Ok data']) x' →
  data' = data.
Proof.
  intros laws Hx Htr Hshows.
  apply (VirtualDiskProperties.snapshot_reads_for_ever Ack name lba count data data' (Create n :: before) tr);
    [by left|done|]. by apply (proved_tree_disk_refines_contract laws _ _ _ _ Hx Hshows).
Qed.

(** ** Space *)

(** A memory whose trees show maps: one that represents a disk. *)
Definition shows_maps (y : T.memory) : Prop := ∃ m, trees_show bits (T.current y) m.

Lemma represents_shows y f d : tree_represents bits y f d → shows_maps y.
Proof. intros (s0&x0&m&_&_&Ht). by exists m. Qed.

(** A view maps a block to the MBA [x]. *)
Definition view_maps (y : T.memory) (x : nat) : Prop := ∃ from v l,
  TreeIndex.epoch_of (views (T.current y)) from = Some v ∧
  TreeIndex.mba_of bits (views (T.current y)) v l = Some x.

(** What a view maps has a place. Once no walk is left, nothing else has. *)
Lemma keeps_exactly y x : shows_maps y →
  (view_maps y x → is_Some (places (T.current y) !! x)) ∧
  (T.walks y = [] → is_Some (places (T.current y) !! x) → view_maps y x).
Proof.
  intros (m & Ht). split.
  - intros (from&v&l&_&Hl). by eapply mba_known.
  - intros Hnone Hx. pose proof (shows_views _ _ _ Ht) as Hi.
    assert (x ∈ LogStructuredDisk.reachable (views_of m)) as Hreach.
    { apply (TreeIndexMaps.represents_reachable bits (views (T.current y))); [done| |by apply Ht].
      intros w. destruct (SharedTree.claims _ !! inr w) as [c|] eqn:Hc; [exfalso|done].
      apply elem_of_map_to_list in Hc.
      assert (w ∈ T.walks y) as Hw by (apply elem_of_list_omap; by exists (inr w, c)).
      rewrite Hnone in Hw. by apply elem_of_nil in Hw. }
    apply LogStructuredDiskReading.elem_of_reachable in Hreach as [[l Hl]|(n&vm&l&Hn&Hl)].
    + exists Live, (SharedTree.epoch (TreeIndex.trees (views (T.current y)))), l. split; [done|].
      rewrite (TreeIndexMaps.represents_live bits _ _ l Hi). exact Hl.
    + pose proof (TreeIndexMaps.represents_snap bits _ _ n Hi) as Hsnap. rewrite Hn in Hsnap.
      destruct (TreeIndex.named (views (T.current y)) !! n) as [v|] eqn:Hv; [|done].
      exists (Named n), v, l. split; [done|]. by rewrite Hsnap.
Qed.

(** The step that [next_step] proposes for a walk that is left can be taken; and each step, of whichever walk
and at whichever node, leaves less to do. So steps that are asked for end the walks. *)
Lemma walks_end y w : shows_maps y → w ∈ T.walks y →
  is_Some (walk w (T.next_step y w) (T.current y)) ∧
  ∀ n t, walk w n (T.current y) = Some t →
    base.size (SharedTreeDeletion.work (TreeIndex.trees (views t))) <
    base.size (SharedTreeDeletion.work (TreeIndex.trees (views (T.current y)))).
Proof.
  intros (m & Ht) Hw.
  pose proof (TreeIndexLeaves.chunks_inv _ _ _ (TreeIndexMaps.rep_chunks _ _ _ (shows_views _ _ _ Ht))) as I.
  apply elem_of_list_omap in Hw as ([j c]&Hc%elem_of_map_to_list&Hj). simpl in Hj.
  destruct j as [v|w']; [done|]. injection Hj as ->. split.
  - destruct (next_step_taken _ w c I Hc) as [s Hs]. unfold walk, T.next_step. rewrite Hc, Hs. by eexists.
  - intros n t. unfold walk. destruct (SharedTree.reclaim w n _) as [s|] eqn:Hs; simpl; [|done].
    intros [= <-]. simpl. by eapply SharedTreeDeletion.reclaim_falls.
Qed.

(** A memory that the machine has when nothing is under way. *)
Definition idle_memory (y : T.memory) : Prop := ∃ n x tr m,
  fresh proved_tree_disk n x ∧ shows proved_tree_disk x tr (Idle y, m).

Lemma idle_shows y : blocks_laws → idle_memory y → shows_maps y.
Proof.
  intros laws (n&x&tr&m&Hx&Hshows).
  destruct (idle_represents _ _ _ _ (tree_programs_safe laws) n x tr y m Hx Hshows) as (f&d&_&Hy).
  by eapply represents_shows.
Qed.

Theorem proved_tree_disk_keeps_exactly y x : blocks_laws → idle_memory y →
  (view_maps y x → is_Some (places (T.current y) !! x)) ∧
  (T.walks y = [] → is_Some (places (T.current y) !! x) → view_maps y x).
Proof. intros laws Hy%idle_shows; [|done]. by apply keeps_exactly. Qed.

Theorem proved_tree_disk_walks_end y w : blocks_laws → idle_memory y → w ∈ T.walks y →
  is_Some (walk w (T.next_step y w) (T.current y)) ∧
  ∀ n t, walk w n (T.current y) = Some t →
    base.size (SharedTreeDeletion.work (TreeIndex.trees (views t))) <
    base.size (SharedTreeDeletion.work (TreeIndex.trees (views (T.current y)))).
Proof. intros laws Hy%idle_shows; [|done]. by apply walks_end. Qed.
End Machine.
