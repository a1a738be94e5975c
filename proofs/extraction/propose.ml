(* Looks for an order of requests that overlap. Nothing here is trusted: [Checker.check_order]
   confirms what is proposed, or does not (OverlappingDiskProposals.v). So this may be wrong, and
   may give up. It follows one possible world, and goes back where it gets stuck:

   - A step that changes the disk is taken when an answer asks for it. Before it, those in flight
     that it may need are tried.
   - A read or a refusal that fits is taken at once; a flush is taken when it is called.
   - A step after which a later answer cannot come true is not taken. What that answer reads must be
     on the live disk, or in a snapshot that may be reverted to, or in what a power cut may leave,
     or it must still be written.
   - Where two orders of some steps lead to the same, it goes on from there once. *)

open Checker
open Facts
open Lookahead
open Tried

(* Steps that a search tries, at most. A history of 1,000 requests takes 1,200 at the median. *)
let least_work = 10_000
let work_per_moment = 10

exception Gave_up

(* Which of several possibilities comes first. *)
type arrangement = { arrange : 'a. 'a list -> 'a list }

(* One search; no order is found if there is none, as far as one looks. Raises Gave_up. *)
let search_order { arrange } ~most facts granularity profile tolerates blocks =
  let names = names facts in
  let tried = nothing () in
  let last = Array.length facts.moments in
  let work = ref 0 in
  let worlds node entry =
    incr work;
    if !work > most then raise Gave_up;
    entry_worlds Int.equal 0 profile tolerates node.devices entry node.world
  in
  let without x = List.filter (fun y -> y.step.number <> x.step.number) in
  let took x i world node =
    {
      node with
      world;
      flight = without x node.flight;
      trail = TakeStep (x.step.number, i) :: node.trail;
    }
  in
  (* What looks at the disk, and fits it as it is. *)
  let rec looked node =
    let fitting x =
      deed_of x.step.takes = Looks
      && match worlds node x.step.takes with
         | [ world ] -> world.choices == node.world.choices
         | _ -> false
    in
    match List.find_opt fitting node.flight with
    | None -> node
    | Some x -> looked (took x 0 node.world node)
  in
  let take node x () =
    List.to_seq (List.mapi (fun i world -> (i, world)) (worlds node x.step.takes))
    |> Seq.filter_map (fun (i, world) ->
           let next = readied facts node (took x i world node) x.step.takes in
           if not (fits facts names node next x.step.takes) then None
           else
             let next = looked next in
             if is_new facts tried next then Some next else None)
    |> fun seq -> seq ()
  in
  let passed node = { node with at = node.at + 1; trail = NextMoment 0 :: node.trail } in
  let alone node entry () =
    List.to_seq (arrange (List.mapi (fun i world -> (i, world)) (worlds node entry)))
    |> Seq.filter_map (fun (i, world) ->
           let next =
             {
               at = node.at + 1;
               world;
               devices = devices_after tolerates node.devices entry;
               flight = (if ends entry then [] else node.flight);
               ready = false;
               trail = NextMoment i :: node.trail;
             }
           in
           let next = readied facts node next entry in
           let agrees =
             match Hashtbl.find_opt facts.images node.at with
             | Some image -> List.exists (agrees world image) world.leftovers
             | None -> true
           in
           if agrees && fits facts names node next entry then Some next else None)
    |> fun seq -> seq ()
  in
  (* One of these steps is taken next: first those that may mend what did not fit. *)
  let helping node steps () =
    let first, rest = List.partition helps steps in
    Seq.flat_map (take node) (List.to_seq (first @ rest)) ()
  in
  let by_answer a b = compare a.answered b.answered in
  let children node =
    match facts.moments.(node.at) with
    | Called (_, entry) ->
        let steps = facts.called_at.(node.at) in
        let next = passed { node with flight = node.flight @ steps } in
        let next =
          match steps with
          | [ x ] when is_flush entry -> (
              match worlds next x.step.takes with [ world ] ->
                  readied facts next (took x 0 world next) x.step.takes
              | _ -> next)
          | _ -> next
        in
        Seq.return (looked next)
    | Answered id -> (
        match List.find_opt (fun x -> x.step.due && x.step.of0 = id) node.flight with
        | None -> Seq.return (passed node)
        | Some x ->
            let steps = List.map (fun y -> y.step) node.flight in
            let needed = ahead (List.length steps) profile steps [ x.step ] in
            let others =
              List.filter
                (fun y ->
                  y.step.number <> x.step.number
                  && List.exists (fun z -> z.number = y.step.number) needed)
                node.flight
              |> List.stable_sort by_answer |> arrange
            in
            conflict := Nothing;
            Seq.append (take node x) (helping node others))
    | Alone entry ->
        let others = arrange (List.stable_sort by_answer node.flight) in
        let more = if quiet entry (List.map (fun y -> y.step.takes) node.flight) then [] else others in
        conflict := Nothing;
        Seq.append (alone node entry) (helping node more)
  in
  let rec search = function
    | [] -> []
    | seq :: rest -> (
        match seq () with
        | Seq.Nil -> search rest
        | Seq.Cons (node, _) when node.at = last -> List.rev node.trail
        | Seq.Cons (node, more) -> search (children node :: more :: rest))
  in
  let world = fresh_world blocks in
  let start = { at = 0; flight = []; world; devices = all_good; ready = false; trail = [] } in
  let start = readied facts start start (Event (Create blocks)) in
  if last = 0 then [] else search [ Seq.return start ]

let shuffled seed =
  let chance = Random.State.make [| seed |] in
  let arrange items =
    List.map (fun item -> (Random.State.bits chance, item)) items
    |> List.stable_sort (fun (a, _) (b, _) -> compare a b)
    |> List.map snd
  in
  { arrange }

(* An order of the history that starts with [Create]; an empty one if none was found. A search that
   went wrong early seldom gets out of it: so there are several. *)
let order granularity profile tolerates history =
  match history with
  | Alone (Event (Create blocks)) :: rest ->
      let facts = facts granularity profile rest in
      let most = least_work + (work_per_moment * List.length rest) in
      let rec first = function
        | [] -> []
        | arrangement :: others -> (
            try search_order arrangement ~most facts granularity profile tolerates blocks
            with Gave_up | Stack_overflow -> first others)
      in
      first [ { arrange = Fun.id }; { arrange = List.rev }; shuffled 1; shuffled 2 ]
  | _ -> []
