------------------------------ MODULE typedefs ------------------------------
(* The types of the specs, for Apalache.  The prefix tells the module. *)

\* SharedTree
\* @typeAlias: stNode = { born: Int, kids: Int -> Int, data: Int };
\* @typeAlias: stView = { root: Int, parent: Int };
\* @typeAlias: stMaps = { live: Int, view: Int -> $stView, names: Str -> Int,
\*     queue: Seq(Int), cursor: Int, free: Set(Int) };
\* @typeAlias: stImage = { live: Int -> Set(Int), snaps: Str -> (Int -> Int) };

\* Redundancy
\* @typeAlias: rdDevice = DEVICE;
\* @typeAlias: rdCopy = { to: Int, stripe: Int, value: Int };

\* RedoLogChain
\* @typeAlias: rcJob = { way: Str, lower: Int, upper: Int, done: Set(Int) };

\* CachedDisk
\* @typeAlias: cdDisk = { live: Int -> Int, snaps: Str -> (Int -> Int) };
\* @typeAlias: cdCache = Int -> Set({ tag: Int, value: Int });

\* LogStructuredDisk
\* @typeAlias: lsdPlace = <<Int, Int>>;
\* @typeAlias: lsdViews = { live: Int -> Int, snaps: Str -> (Int -> Int) };
\* @typeAlias: lsdRecord = { op: Str, lba: Int, value: Int, name: Str, generation: Int, whole: Bool };
\* @typeAlias: lsdCheckpoint = { serial: Int, from: Int, generation: Int, maps: $lsdViews,
\*     middle: Int -> $lsdPlace, orphans: Set(Int) };

typedefs == TRUE
=============================================================================
