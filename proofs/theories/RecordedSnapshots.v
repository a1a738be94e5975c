(** What a recorded trace says of snapshots: without its operations on devices it is one of the contract. *)
From LogDisk Require Import VirtualDisk VirtualDiskProperties RecordedTrace.

(** The events of the contract in an entry. A read that finds its data lost is none; an operation on devices
that is cut short is a power cut. *)
Definition contract_events {V} (en : entry V) : list (event V) :=
  match en with
  | Event (Read _ _ _ (Refused DataLost) _) => []
  | Event e => [e]
  | Fail _ CutShort | Return _ CutShort | Replace _ CutShort | Settle CutShort | Hint CutShort =>
      [Crash CutShort]
  | _ => []
  end.

(** An entry that does not delete the snapshot [n]. *)
Definition keeps_snapshot {V} n (en : entry V) : Prop := match en with Event e => keeps n e | _ => True end.

Section Recorded.
Context {V : Type} `{Value V}.
Implicit Types tr : list (entry V).

Lemma entry_events p tolerates v s (en : entry V) s' :
  entry_step p tolerates v s en s' → run p s (contract_events en) s'.
Proof.
  assert (∀ s s' e, step p s e s' → run p s [e] s') as Hone by (intros; econstructor; [done|constructor]).
  destruct en as [e|d r|d r|d r|r|r]; simpl;
    try (intros [Hp ->]; destruct r; by constructor || by apply Hone).
  intros [Hstep|Hlost].
  - destruct e as [| | | | | | | | |from lba count [|[]| |] data|]; try (by apply Hone).
    destruct Hstep as [[_ [_ ->]] _]. constructor.
  - destruct e as [| | | | | | | | |from lba count [|[]| |] data|]; try done. destruct Hlost as (_&_&->).
    constructor.
Qed.

Lemma recorded_contract p tolerates v s tr s' :
  recorded_run p tolerates v s tr s' → run p s (concat (contract_events <$> tr)) s'.
Proof.
  induction 1 as [|v s en s1 tr s2 Hstep _ IH]; simpl; [constructor|].
  apply run_app. exists s1. split; [by eapply entry_events|done].
Qed.

(** Whatever follows but its deletion, a snapshot that is read reads as the live disk read when it was taken:
also when devices fail, come back or are replaced. *)
Theorem recorded_snapshot_reads_for_ever p tolerates n lba count (data data' : list V) before tr :
  p ≠ Prefix → Forall (keeps_snapshot n) tr →
  admits_recorded p tolerates (before ++ Event (Read Live lba count Ok data) :: Event (Snapshot n Ok) ::
    tr ++ [Event (Read (Named n) lba count Ok data')]) →
  data' = data.
Proof.
  intros Hp Htr (blocks&rest&s&Heq&Hrun).
  apply (snapshot_reads_for_ever p n lba count data data' (concat (contract_events <$> before))
    (concat (contract_events <$> tr))); [by left|..].
  - rewrite Forall_concat, Forall_fmap. eapply Forall_impl; [exact Htr|].
    intros [e|d []|d []|d []|[]|[]] Hk; simpl; try (by repeat constructor).
    assert (Forall (keeps n) [e]) as He by (by apply Forall_singleton).
    destruct e as [| | | | | | | | |from l c [|[]| |] bs|]; first [exact He|constructor].
  - apply recorded_contract in Hrun. exists blocks, (concat (contract_events <$> rest)), s. split; [|done].
    change (Create blocks :: ?l) with (concat (contract_events <$> (Event (Create blocks) :: rest))).
    rewrite <-Heq. rewrite fmap_app, concat_app. f_equal. simpl. f_equal. f_equal.
    by rewrite fmap_app, concat_app.
Qed.
End Recorded.
