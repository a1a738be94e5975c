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

(* `last_flush` of PipelinedMachine.v: with [ahead], the last flush of what is answered ok goes on. *)
let one ahead spare = if ahead then Some (function (y, Ok), _ -> Some (spare y) | _ -> None) else None
let all ahead spare = if ahead then Some (function y, true -> Some (spare y) | _ -> None) else None

let perform ~ahead medium memory places request =
  match memory with
  | Whole y -> let (y, r), data =
      medium.run ?last:(one ahead spare_address) (perform blocks y places request) in ((Whole y, r), data)
  | Trees y -> let (y, r), data =
      medium.run ?last:(one ahead tree_spare_address) (tree_perform blocks bits y places request) in
      ((Trees y, r), data)

let write_group ~ahead medium memory places writes =
  match memory with
  | Whole y -> let y, ok =
      medium.run ?last:(all ahead spare_address) (write_group blocks y places writes) in (Whole y, ok)
  | Trees y -> let y, ok =
      medium.run ?last:(all ahead tree_spare_address) (tree_group blocks bits y places writes) in (Trees y, ok)

let maintain medium memory upkeep =
  match memory with
  | Whole y -> Whole (medium.run (maintain blocks y upkeep))
  | Trees y -> Trees (medium.run (tree_maintain blocks bits y (Keep upkeep)))

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
