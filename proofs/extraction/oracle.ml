(* oracle TRACE...: judges recorded traces by the proved checker (checker.ml, extracted from proofs/theories).

   This file and the mappings of Extract.v are all that is trusted: it reads JSON Lines and prints one JSON
   object a trace, {"trace":...,"accepted":...,"at":...,"clause":...}; "accepted" is null, with an "error", where
   there is no verdict. Where requests overlap, an order that Propose finds is confirmed, or all are searched. Exit
   status: 0 all accepted, 1 one is rejected, 3 none is but one is undecided, 2 one is no trace, or wrong usage. *)

module J = Yojson.Safe
open Checker
exception Bad of string
exception Too_long

let most_worlds = 10_000
let most_work = 400_000 (* steps tried, and images made, for one trace whose requests overlap *)
let most_seconds = 3. (* of processor time, for one such trace *)
let weigh block tag = ((tag + (31 * block)) * 40503) land 0xffffff
let most_blocks = 1 lsl 20 (* of one request, where each block is a step *)
let largest = 1 lsl 53

(* What was read may be in a message: as printable ASCII, on one line. *)
let error text = ("error", `String (String.map (function ' ' .. '~' as c -> c | _ -> '?') text))

let bad format = Printf.ksprintf (fun text -> raise (Bad text)) format

(* The value of a key; the last one where it is repeated. *)
let rec field key value = function
  | [] -> value
  | (k, v) :: rest -> field key (if String.equal k key then v else value) rest

let find key members = field key `Null members

let rec integer ?(least = 0) key = function
  | `Int n when n >= least && n <= largest -> n
  | `Float x when Float.is_integer x && Float.abs x < 1e16 -> integer ~least key (`Int (Float.to_int x))
  | _ -> bad "%s must be an integer from %d to 2^53" key least

let text key = function `String s -> s | _ -> bad "%s must be a string" key

let tags least = function
  | `List values -> List.rev (List.rev_map (integer ~least "a tag") values)
  | _ -> bad "tags must be a list"

let code = function
  | "out-of-range" -> OutOfRange
  | "no-such-snapshot" -> NoSuchSnapshot
  | "snapshot-exists" -> SnapshotExists
  | "bad-request" -> BadRequest
  | "no-space" -> NoSpace
  | "data-lost" -> DataLost
  | "unsupported" -> Unsupported
  | other -> bad "%s is no error code" other

let answer = function
  | `Null -> CutShort
  | `Assoc members -> (
      match find "ok" members with
      | `Bool true -> Ok
      | `Bool false when find "error" members = `String "unknown-outcome" -> UnknownOutcome
      | `Bool false -> Refused (code (text "error" (find "error" members)))
      | _ -> bad "result.ok must be true or false")
  | _ -> bad "result must be an object or null"

(* What a read returned; only a read that is answered ok returns anything. *)
let returned r result =
  match (r, result) with
  | Ok, `Assoc members -> tags (-1) (find "tags" members)
  | _ -> []

(* An event that the contract never admits: a disk that is not created is no disk. *)
let never = Event (Crash (Refused Unsupported))

let entry capabilities members =
  let get key = find key members in
  let number key = integer key (get key) and name () = text "name" (get "name") in
  let result = match field "result" `Missing (members :> (string * [ J.t | `Missing ]) list) with
    | `Missing -> bad "there is no result"
    | #J.t as value -> value
  in
  let r = answer result in
  match text "op" (get "op") with
  | op when r = Refused Unsupported && not (List.mem op ("create" :: "write" :: "read" :: capabilities)) -> Hint r
  | "create" ->
      let blocks = integer ~least:1 "blocks" (get "blocks") in
      (match r with Ok -> Event (Create blocks) | _ -> never)
  | "write" when get "fua" = `Bool true -> Event (WriteThrough (number "lba", tags 0 (get "tags"), r = Ok, r))
  | "write" -> Event (Write (number "lba", tags 0 (get "tags"), r))
  | "unmap" -> Event (Unmap (number "lba", number "count", r))
  | "snapshot" -> Event (Snapshot (name (), r))
  | "delete" -> Event (Delete (name (), r))
  | "revert" -> Event (Revert (name (), r))
  | "flush" -> Event (Flush r)
  | "restart" -> Event (Restart r)
  | "crash" -> Event (Crash r)
  | "read" ->
      let view = match get "view" with `Null -> Live | value -> Named (text "view" value) in
      Event (Read (view, number "lba", number "count", r, returned r result))
  | "fail" -> Fail (number "device", r)
  | "return" -> Return (number "device", r)
  | "replace" -> Replace (number "device", r)
  | "settle" -> Settle r
  | "tick" | "clean" | "checkpoint" | "stats" -> Hint r
  | other -> bad "%s is no operation" other

let header members =
  (match find "trace" members with
   | `Int (1 | 2) -> ()
   | _ -> bad "the first line must be a header with \"trace\":1 or 2");
  match find "hello" members with
  | `Assoc hello ->
      let profile = match find "crash_profile" hello with
        | `Null | `String "ack" -> Ack
        | `String "prefix" -> Prefix
        | `String "block" -> Block
        | _ -> bad "crash_profile must be ack, prefix, block or null"
      in
      let tolerates = match find "tolerates" hello with `Null -> 0 | value -> integer "tolerates" value in
      let capabilities = match find "capabilities" hello with
        | `Null -> []
        | `List names -> List.map (text "a capability") names
        | _ -> bad "capabilities must be a list"
      in
      let granularity = match find "atomic" hello with
        | `Null | `String "request" -> ByRequest
        | `String "block" -> ByBlock
        | _ -> bad "atomic must be request or block"
      in
      (granularity, profile, tolerates, capabilities)
  | _ -> bad "hello must be an object"

let members line =
  match J.from_string line with
  | `Assoc members -> members
  | _ -> bad "not a JSON object"
  | exception Yojson.Json_error message -> bad "not JSON: %s" message

(* The entries of the lines that follow the header, and whether a failure of the target ends them. *)
let rec entries channel number capabilities trace =
  incr number;
  match input_line channel with
  | exception End_of_file -> (List.rev trace, false)
  | line ->
      let line = members line in
      if List.exists (fun (key, _) -> String.equal key "failure") line then (List.rev trace, true)
      else entries channel number capabilities (entry capabilities line :: trace)

let clause = function
  | ReadClause -> "Read: a view reads as the operations before it left it"
  | SnapshotClause -> "Snapshot: a snapshot reads for ever as the live disk read when it was taken"
  | AnswerClause -> "Answer: a request is refused if and only if it has a fault, with that fault's code"
  | OpenClause -> "Crash: after a power cut, as after a restart, the disk opens again"
  | CreateClause -> "Create: a disk is created first"

let accepted counted = (0, [ ("accepted", `Bool true); ("at", `Null); ("clause", `Null); counted ])
let rejected at clause counted = (1, [ ("accepted", `Bool false); ("at", `Int at); ("clause", `String clause); counted ])
let undecided at text counted = (3, [ ("accepted", `Null); ("at", `Int at); error text; counted ])

(* One request at a time. *)
let in_order channel number profile tolerates capabilities =
  let trace, failed = entries channel number capabilities [] in
  let counted = ("operations", `Int (List.length trace)) in
  if failed && trace = [] then accepted counted
  else
    match judge Int.equal 0 profile tolerates (Some most_worlds) trace with
    | Accepted _ -> accepted counted
    | Rejected (at, worlds) ->
        let why = match List.nth_opt trace at with Some e -> clause_of worlds e | None -> CreateClause in
        rejected at (clause why) counted
    | Undecided at ->
        undecided at (Printf.sprintf "operation %d: more than %d disks are possible here" at most_worlds) counted

(* A call or an answer: its position in their one count, the operation that it is of, and what it says. *)
type placed = { position : int; answers : bool; index : int; moment : int moment }

let overlapping = [ "read"; "write"; "unmap"; "flush"; "snapshot"; "delete"; "revert" ]

let size = function
  | Event (Write (_, data, _)) | Event (WriteThrough (_, data, _, _)) -> List.length data
  | Event (Unmap (_, count, _)) | Event (Read (_, _, count, _, _)) -> count
  | _ -> 1

(* The calls and answers of the lines that follow the header, and where a failure of the target ends them. *)
let rec placed channel number capabilities last over moments =
  incr number;
  match input_line channel with
  | exception End_of_file -> (moments, over)
  | line ->
      let line = members line in
      let index = !number - 2 in
      let called, answered = match (find "called" line, find "answered" line) with
        | `Null, _ -> (last + 1, Some (last + 2))
        | called, `Null -> (integer "called" called, None)
        | called, answered ->
            let called = integer "called" called in
            (called, Some (integer ~least:(called + 1) "answered" answered))
      in
      let last = max last (Option.value answered ~default:called) in
      if List.exists (fun (key, _) -> String.equal key "failure") line then
        placed channel number capabilities last (min over (Option.value answered ~default:called)) moments
      else
        let en = entry capabilities line in
        if size en > most_blocks then bad "a request of more than %d blocks" most_blocks;
        let call = { position = called; answers = false; index; moment = Called (index, en) } in
        let here = match answered with
          | _ when not (List.mem (text "op" (find "op" line)) overlapping) ->
              [ { call with position = Option.value answered ~default:last; answers = true; moment = Alone en } ]
          | None -> [ call ]
          | Some position -> [ { position; answers = true; index; moment = Answered index }; call ]
        in
        placed channel number capabilities last over (here @ moments)

(* Whether the operations say when they were called; the first one tells. *)
let overlap channel =
  let start = pos_in channel in
  Fun.protect ~finally:(fun () -> seek_in channel start) @@ fun () ->
  try List.mem_assoc "called" (members (input_line channel)) with End_of_file | Bad _ -> false

let at_most seconds judge =
  let set it_value = ignore (Unix.setitimer ITIMER_VIRTUAL { it_interval = 0.; it_value }) in
  Sys.set_signal Sys.sigvtalrm (Signal_handle (fun _ -> raise Too_long));
  set seconds;
  Fun.protect ~finally:(fun () -> set 0.) judge

(* Requests that overlap. *)
let in_flight channel number granularity profile tolerates capabilities =
  let moments, over = placed channel number capabilities (-1) max_int [] in
  let moments =
    List.sort (fun a b -> compare (a.position, a.answers, a.index) (b.position, b.answers, b.index)) moments
    |> List.filter (fun m -> m.position < over)
  in
  let counted = ("operations", `Int (!number - 2)) in
  if over < max_int && moments = [] then accepted counted
  else
    let at moment = match List.nth_opt moments moment with Some m -> m.index | None -> 0 in
    let history = List.map (fun m -> m.moment) moments in
    let judged () =
      let order = Propose.order granularity profile tolerates history in
      if check_order Int.equal 0 granularity profile tolerates history order then Fit
      else judge_overlapping Int.equal 0 weigh granularity profile tolerates (Some most_work) history
    in
    match at_most most_seconds judged with
    | Fit -> accepted counted
    | Unfit moment ->
        rejected (at moment) "Order: what overlapping requests answered fits one order of their effects" counted
    | Unknown moment ->
        let text = Printf.sprintf "operation %d: too many orders are possible: use fewer in flight" (at moment) in
        undecided (at moment) text counted

(* The verdict on a trace, and the exit status that it asks for. *)
let verdict path =
  let channel = open_in_bin path in
  Fun.protect ~finally:(fun () -> close_in_noerr channel) @@ fun () ->
  let number = ref 1 in
  match
    let granularity, profile, tolerates, capabilities = header (members (input_line channel)) in
    if overlap channel then in_flight channel number granularity profile tolerates capabilities
    else in_order channel number profile tolerates capabilities
  with
  | exception End_of_file -> (2, [ ("accepted", `Null); error "empty: a trace starts with a header" ])
  | exception Bad text -> (2, [ ("accepted", `Null); error (Printf.sprintf "line %d: %s" !number text) ])
  | verdict -> verdict

let judged path =
  try verdict path with
  | Sys_error message -> (2, [ ("accepted", `Null); error message ])
  | Stack_overflow | Out_of_memory -> (3, [ ("accepted", `Null); error "too large to judge here" ])
  | Too_long -> (3, [ ("accepted", `Null); error (Printf.sprintf "no order was found in %.0f s" most_seconds) ])

let () =
  Gc.set { (Gc.get ()) with space_overhead = 1000 };
  match List.tl (Array.to_list Sys.argv) with
  | [] | [ "--help" ] ->
      prerr_endline "usage: oracle TRACE...   judges recorded traces; prints one JSON line each";
      exit (if Array.length Sys.argv > 1 then 0 else 2)
  | paths ->
      let report path =
        let status, members = judged path in
        print_endline (J.to_string (`Assoc (("trace", `String path) :: members))); status
      in
      let statuses = List.map report paths in
      exit (match List.find_opt (fun s -> List.mem s statuses) [ 2; 1; 3 ] with Some s -> s | None -> 0)
