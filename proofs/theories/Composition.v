(** The log-structured disk over legs that lose devices refines the contract: its log and slots on a
performance leg (CompositionPerformance.v), its segments on a capacity leg (CompositionCapacity.v), whatever
happens to their devices (CompositionLegs.v). *)
From stdpp Require Import vector.
From LogDisk Require Export CompositionRefinement.
From LogDisk Require Parity.
Import LogStructuredDisk LogStructuredDiskInvariant LogStructuredDiskRefinement CompositionSegments.

Section whole.
  Context {V : Type} `{Value V} (K : design) (m room : nat) (cc : RedundancyCode.code V).
  Notation cp := (RedundancyCode.mirror (Blank (V := V)) m).
  Notation client := (log_structured_client K cc room).

  Theorem disk_over_stores : sound K → implements (over_stores cp cc client) (promises K).
  Proof.
    intros HK blocks [[c sp] st] tr [[c' sp'] st'] (Fc & Ep & Es) T. simpl in Fc, Ep, Es. subst c sp st.
    assert (∀ x y : inside (over_stores cp cc client), ∀ tr0, shows (over_stores cp cc client) x tr y →
      follows K cc room blocks tr0 x.1.1 x.1.2 x.2 →
        follows K cc room blocks (tr0 ++ tr) y.1.1 y.1.2 y.2) as Sim.
    { clear -HK. intros x y tr0 T. revert tr0. induction T as [x|x es x1 tr y M _ IH]; intros tr0 F.
      - by rewrite app_nil_r.
      - destruct M as (ps & cs & D & Sp & Sc). rewrite (assoc_L (++)).
        apply IH. eapply (follows_step K cp cc room HK (RedundancyCode.mirror_whole _ m)); done. }
    destruct (Sim _ _ [] T) as [_ (S & ps & _ & Sh & _) _|
      Off _ Al].
    - apply follows_on; [done| |split; simpl; try done; lia]. exists ∅, [].
      split; [done|]. split; [constructor|].
      split; simpl; [apply initial_invariant|intros g O..|]; unfold is_open in *; simpl in *.
      + by rewrite lookup_empty in O.
      + by intros ?; rewrite lookup_empty.
      + by intros ??; rewrite lookup_empty.
    - by eapply (refines_contract K HK).
    - destruct (Al (Redundancy.stripe_of sp')) as (c & _ & _ & (S & ps & _ & Sh & _) & _); [by left|].
      by eapply (refines_contract K HK).
  Qed.

  Theorem disk_over_legs stripes_p stripes_c repair_delay spare_count : sound K → RedundancyCode.good cc →
    implements (over_legs cp cc stripes_p stripes_c repair_delay spare_count client) (promises K).
  Proof. intros HK Gc. apply legs_suffice; [apply RedundancyCode.mirror_good|done|by apply disk_over_stores].
    Qed.
End whole.

(** Three mirrors and RAID-6 of k + 2, with whatever number of devices, failures and repairs. *)
Corollary raid6_disk {n} (w k room stripes_p stripes_c repair_delay spare_count : nat) (p : profile) :
  p = Ack ∨ p = Prefix → k ≤ 255 →
  let zeroes := Parity.zeroes : vec Parity.byte n in
  implements (H := zeroes) (over_legs (RedundancyCode.mirror Blank 2) (Parity.raid6 k)
    stripes_p stripes_c repair_delay
    spare_count (log_structured_client (H := zeroes) (by_the_rules p w) (Parity.raid6 k) room)) p.
Proof. intros Hp B zeroes. apply disk_over_legs; [by split|by apply Parity.raid6_good]. Qed.
