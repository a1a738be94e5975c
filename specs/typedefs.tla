------------------------------ MODULE typedefs ------------------------------
(* The types of the specs, for Apalache.  The prefix tells the module. *)

\* VirtualDisk: a disk, and what a power cut may leave of one.
\* @typeAlias: disk = { live: Int -> Int, snaps: Str -> (Int -> Int) };
\* @typeAlias: image = { live: Int -> Set(Int), snaps: Str -> (Int -> Int) };

\* SharedTree
\* @typeAlias: stNode = { born: Int, kids: Int -> Int, data: Int };
\* @typeAlias: stView = { root: Int, parent: Int };
\* @typeAlias: stMaps = { live: Int, view: Int -> $stView, names: Str -> Int,
\*     queue: Seq(Int), cursor: Int, free: Set(Int) };
\* @typeAlias: stHeld = { view: Int, last: Int, height: Int, node: Int, born: Int, over: Int, parent: Int };

\* Redundancy
\* @typeAlias: rdDevice = DEVICE;
\* @typeAlias: rdCopy = { to: Int, stripe: Int, value: Int };

\* RedoLogChain
\* @typeAlias: rcJob = { way: Str, lower: Int, upper: Int, done: Set(Int) };

\* CachedDisk
\* @typeAlias: cdCache = Int -> Set({ tag: Int, value: Int });

\* LogStructuredDisk
\* @typeAlias: lsdPlace = <<Int, Int>>;
\* @typeAlias: lsdRecord = { op: Str, lba: Int, value: Int, name: Str, generation: Int, whole: Bool };
\* @typeAlias: lsdRead = { place: $lsdPlace, value: Int };
\* @typeAlias: lsdCheckpoint = { serial: Int, from: Int, generation: Int, maps: $disk,
\*     middle: Int -> $lsdPlace, orphans: Set(Int) };

typedefs == TRUE
=============================================================================
