(* The shape of a new disk. A wrong shape costs space, or requests that are refused; never data. *)

open Proved_core

(* A checkpoint writes all maps: the larger they are, the more records come between two. *)
let default_records blocks = max 1024 (min 65536 (blocks / 2))
let default_snapshots = 256

(* The words of the largest checkpoint: every view full, every name as long as names may be. *)
let most_words blocks snapshots =
  let view = 1 + (2 * blocks) in
  view + 1 + (snapshots * (65 + view)) + 1 + (2 * blocks * (snapshots + 1)) + 1

(* With trees: 64 walks that have begun beside the views, cursors of 16 of them, and the middle map. *)
let most_tree_words blocks snapshots places =
  let levels = 1 + Maps.levels blocks in
  4 + ((snapshots + 65) * (10 + levels)) + (16 * 64 * levels * (levels + 1)) + 2 + (66 * snapshots)
  + 3 + (4 * places)

(* Pages for the nodes of a checkpoint and of the one before: of so many views and 64 walks, each with a whole
   tree. On legs every page takes place, and a node of its own has data of its own: as many as there are places,
   and a few trees. *)
let pages ~on_legs blocks snapshots places =
  let rec tree blocks = let nodes = (blocks + 63) / 64 in if nodes <= 1 then 1 else nodes + tree nodes in
  let most = 2 * (snapshots + 65) * tree blocks in
  if on_legs then min most (places + (4 * tree blocks) + 64) else most

let form ~trees ~on_legs ~blocks ~segment_blocks ~segments ~records ~snapshots =
  let segments = match segments with Some n -> n | None ->
    (((2 * blocks) + segment_blocks - 1) / segment_blocks) + 4 in
  let words = if trees then most_tree_words blocks snapshots (segments * segment_blocks)
    else most_words blocks snapshots in
  let places = segments * segment_blocks in
  { Maps.pages = (if trees then pages ~on_legs blocks snapshots places else 0); geometry = {
    disk_blocks = blocks; log_blocks = records; data_blocks = places; segment_blocks;
    most_snapshots = snapshots;
    slot_blocks = (words + Bytes_blocks.words - 1) / Bytes_blocks.words } }
