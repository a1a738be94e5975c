(** The checker as OCaml. Every mapping below is trusted: it says which OCaml value stands for which Coq one.

Numbers are OCaml's integers (63 bits): the reader refuses any that is negative or past 2^53, and no sum or
count that the checker makes of them comes near 2^62. Names are OCaml's strings. *)
From Coq Require Import Extraction ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZInt ExtrOcamlNativeString.
From stdpp Require Import strings numbers.
From LogDisk Require Import Checker OverlappingDiskChecker OverlappingDiskProposals.

Extract Inlined Constant Pos.succ => "Stdlib.succ".
Extract Inlined Constant Pos.of_succ_nat => "Stdlib.succ".
Extract Inlined Constant Compare_dec.le_dec => "(fun (a : int) b -> a <= b)".
Extract Inlined Constant Compare_dec.lt_dec => "(fun (a : int) b -> a < b)".
Extract Inlined Constant Nat.eq_dec => "Int.equal".
Extract Inlined Constant numbers.Nat.eq_dec => "Int.equal".
Extract Inlined Constant string_eq_dec => "Stdlib.String.equal".
Extract Inlined Constant Ascii.nat_of_ascii => "Stdlib.Char.code".
Extract Inlined Constant String.length => "Stdlib.String.length".
Extract Inlined Constant length => "Stdlib.List.length".

Extraction "checker.ml" judge clause_of judge_overlapping check_order.
