(* A disk keeps its maps whole, or as trees: the proved programs of both, and what may be asked of them. *)

open Proved_core

type t = Whole of memory | Trees of tree_memory

(* What a new disk is to be. Without pages its maps are whole. *)
type form = { geometry : geometry; pages : int }

let blocks_of { geometry = g; pages } = 3 + g.log_blocks + (2 * g.slot_blocks) + g.data_blocks + pages

(* Whatever runs a program for one device. `last` says of a result that its last flush may go on while the next
   job runs, and where that one may write meanwhile. [pipeline] is the device, if it can do that. *)
type medium = {
  run : 'a. ?last:('a -> (int -> bool) option) -> (block, 'a) program -> 'a;
  pipeline : Device.t option;
}

let blocks = Bytes_blocks.blocks
let bits = 6  (* of a digit of a key: a node has at most 64 kids *)
let whole y = Whole y
let trees y = Trees y

(* The fewest levels whose keys are enough for so many blocks, less one. *)
let rec levels n = if n <= 1 lsl bits then 0 else 1 + levels ((n + (1 lsl bits) - 1) lsr bits)

(* Where there are no whole maps, trees are looked for. *)
let program_to_recover =
  recover blocks (function
    | Some y -> Done (Some (Whole y))
    | None -> tree_recover blocks bits (fun found -> Done (Option.map trees found)))
let format medium { geometry; pages } =
  if pages = 0 then Option.map whole (medium.run (format blocks geometry))
  else Option.map trees (medium.run (tree_format blocks bits (levels geometry.disk_blocks, pages) geometry))

(* The programs of both kinds, as those of one disk (DiskMachine.v). *)
let programs =
  let kept kind p = then_ p (fun y -> Done (kind y)) in
  let answered kind p = then_ p (fun ((y, r), data) -> Done ((kind y, r), data)) in
  let told kind p = then_ p (fun (y, all) -> Done (kind y, all)) in
  { run_request = (fun memory places request -> match memory with
      | Whole y -> answered whole (perform blocks y places request)
      | Trees y -> answered trees (tree_perform blocks bits y places request));
    run_group = (fun memory places writes -> match memory with
      | Whole y -> told whole (write_group blocks y places writes)
      | Trees y -> told trees (tree_group blocks bits y places writes));
    run_upkeep = (fun memory upkeep -> match memory with
      | Whole y -> kept whole (maintain blocks y upkeep)
      | Trees y -> kept trees (tree_maintain blocks bits y (Keep upkeep)));
    run_recovery = program_to_recover; run_format = (fun _ _ -> Done None) }

(* `last_flush` of PipelinedMachine.v: with [ahead], the last flush of what is answered ok goes on. *)
let spare = function Whole y -> spare_address y | Trees y -> tree_spare_address y
let perform ~ahead medium memory places request =
  let last = function (y, Ok), _ -> Some (spare y) | _ -> None in
  medium.run ?last:(if ahead then Some last else None) (programs.run_request memory places request)
let write_group ~ahead medium memory places writes =
  let last = function y, true -> Some (spare y) | _ -> None in
  medium.run ?last:(if ahead then Some last else None) (programs.run_group memory places writes)
let maintain medium memory upkeep = medium.run (programs.run_upkeep memory upkeep)

let shape = function Whole y -> y.shape | Trees y -> tree_shape y
let is_free = function Whole y -> is_free y | Trees y -> tree_is_free y
let first_free = function Whole y -> first_free y | Trees y -> tree_first_free y
let in_use = function Whole y -> in_use y | Trees y -> tree_in_use y
let listing = function Whole y -> listing y | Trees y -> tree_listing y
let live_blocks = function Whole y -> live_blocks y | Trees y -> tree_live_blocks y
(* The numbers of the first record behind the newest checkpoint, and of the next one. *)
let log = function Whole y -> (y.first_record, y.next_record) | Trees y -> tree_log y
let slot = function Whole y -> (y.serial, y.slot) | Trees y -> tree_slot y

(* Only trees have walks. A step needs no medium. *)
let walks = function Whole _ -> [] | Trees y -> walks y
let rec walk memory steps =
  match memory, walks memory with
  | Trees y, w :: _ when steps > 0 -> walk (Trees (walk_on y w (next_step y w))) (steps - 1)
  | _ -> memory
(* In memory, and in the newest checkpoint. *)
let nodes = function Whole _ -> None | Trees y -> Some (node_count y)

(* Write-back (WriteBack.v): at most so many blocks are delayed. *)
let most_delayed = 8192
let room = function
  | Whole y -> delay_room blocks most_delayed y | Trees y -> tree_delay_room blocks most_delayed y
let nothing_delayed = nothing_delayed blocks room
let may_delay = may_delay blocks shape
let delaying_request medium x places request =
  medium.run (delaying_request blocks programs shape room x places request)
let delaying_group medium x writes = medium.run (delaying_group blocks shape x [] writes)
let delaying_maintain medium x upkeep =
  medium.run (delaying_maintain blocks programs room spares_places x upkeep)
