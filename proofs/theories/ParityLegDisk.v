(** The programs of the proved disk on a device of blocks that may tear, such as a leg with parity: what they
answer, and what they leave wherever they are interrupted. *)
From stdpp Require Import gmap strings.
From LogDisk Require Import VirtualDisk Medium Codec ProvedDisk ProvedDiskInvariant ProvedDiskAppend
  ProvedDiskRecovery ProvedDiskRequests ParityLegMachine.

Section Disk.
Context `{!blocks, !blocks_laws} {torn : tearing}.
Implicit Types (f : contents block) (d : disk block).

Lemma left_by_safe {A} R (Q : A → medium block → Prop) (p : program block A) m f :
  crash_safe R Q p m → left_by p m f → R f.
Proof.
  intros Hp (m'&Hm'&Hf). revert m Hp Hm'.
  induction p as [r|a k IH|a b k IH|k IH]; simpl; intros m [Hsafe Hp] [->|Hm']; eauto; done.
Qed.

Lemma request_on_device y f d places q : represents y f d →
  let s := settled (disk_blocks (shape y)) d in let p := perform y places q in
  (∀ f', left_by p (Medium f []) f' → crash_outcome (shape y) s q f') ∧
  answers (shape y) s q (execute p (Medium f [])).1 (execute p (Medium f [])).2.
Proof.
  intros Hy s p. pose proof (crash_safe_perform y f d places q Hy) as Hp. split.
  - intros f'. by eapply left_by_safe.
  - by apply crash_safe_execute in Hp.
Qed.

Lemma recovery_on_device g f d : recoverable g d f →
  let p := recover Done in
  (∀ f', left_by p (Medium f []) f' → recoverable g d f') ∧
  ∃ y, (execute p (Medium f [])).1 = Some y ∧ keeps g d y (execute p (Medium f [])).2.
Proof.
  intros (y&<-&Hy) p.
  assert (crash_safe (recoverable (shape y) d) (λ r m, ∃ y', r = Some y' ∧ keeps (shape y) d y' m) p
    (Medium f [])) as Hp.
  { eapply crash_safe_recover; [done|by apply (safe_represents _ y f d)|]. intros y' Hy' Hshape.
    split; [apply (safe_represents _ y' f d); [done|by rewrite Hshape]|].
    exists y'. split; [done|]. by exists f. }
  split; [intros f'; by eapply left_by_safe|by apply crash_safe_execute in Hp].
Qed.
End Disk.
