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

let shape ?(trees = false) ~blocks ~segment_blocks ~segments ~records ~snapshots =
  let segments = match segments with Some n -> n | None ->
    (((2 * blocks) + segment_blocks - 1) / segment_blocks) + 4 in
  let words = if trees then most_tree_words blocks snapshots (segments * segment_blocks)
    else most_words blocks snapshots in
  { disk_blocks = blocks; log_blocks = records; data_blocks = segments * segment_blocks; segment_blocks;
    most_snapshots = snapshots;
    slot_blocks = (words + Bytes_blocks.words - 1) / Bytes_blocks.words }
