------------------------------ MODULE TraceFile ------------------------------
(***************************************************************************)
(* Recorded traces as values.  TLC takes these operators from              *)
(* java/TraceFile.java, which reads JSON Lines: a line that has the field  *)
(* "trace" is the header of one, and the events that follow it are its     *)
(* own.  An object is a record, without the fields that are null; a list   *)
(* is a sequence.  The Java property "traces" names the file.              *)
(***************************************************************************)

Traces == CHOOSE traces : TRUE      \* <<[header |-> record, events |-> <<record, ...>>], ...>>

LegalNames == CHOOSE names : TRUE   \* Those strings in the traces that may be a snapshot's name.

Reached(trace, next) == TRUE        \* Notes how far a trace was followed; reported when TLC ends.
                                    \* FALSE once the trace has more states than the property "most" says.
=============================================================================
