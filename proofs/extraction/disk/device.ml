(* A file as a device of blocks: what Medium.v says a device is. What is written stays in memory until a flush
   writes it to the file, so that a power cut can lose any part of it. A flush may begin and end (SplitFlush.v). *)

exception Power_cut
exception Busy
exception Cut_off  (* the file ends before the disk does *)

(* A flush that has begun: a thread waits for the medium. *)
type flight = {
  thread : Thread.t;
  landed : bool ref;
  failure : exn option ref;
  may : int -> bool;  (* where the next job may write meanwhile *)
  mutable followed : bool;  (* the next job has begun *)
  mutable later : (unit -> unit) list;  (* to do when the flush has ended, the last first *)
}

type t = {
  file : Unix.file_descr;
  extent : int -> int * int;  (* where a block starts in the file, and its bytes *)
  sync : bool;  (* a flush waits for the medium *)
  mutable unflushed : (int * Bytes.t) list;  (* newest first *)
  latest : (int, Bytes.t) Hashtbl.t;  (* the same, by address *)
  log : out_channel option;  (* what is written, in the format of Linux's dm-log-writes *)
  cut_after : int option ref;  (* I/Os until the power fails, of all devices that share it *)
  mutable flight : flight option;
  wake : (Unix.file_descr * Unix.file_descr) Lazy.t;  (* a byte comes out when a flush lands *)
  mutable reads : int; mutable writes : int; mutable flushes : int;
  mutable unreadable : int;  (* reads that found no block *)
}

let block_bytes = Bytes_blocks.block_bytes
let whole_blocks address = (address * block_bytes, block_bytes)

let sync_parent path =
  let folder = Unix.openfile (Filename.dirname path) [ Unix.O_RDONLY; Unix.O_CLOEXEC ] 0 in
  Fun.protect ~finally:(fun () -> Unix.close folder) (fun () -> Unix.fsync folder)

(* What another process wrote, and nobody flushed, may be read though it is not durable: so flush it.
   A new file is durable with its entry in the folder. *)
let settle file ~fresh path =
  Unix.fsync file;
  if fresh then sync_parent path

(* With [fresh], a new file of so many blocks. *)
let open_file ?(sync = true) ?(fresh = 0) ?log ?(cut_after = ref None) ?(extent = whole_blocks) path =
  let flags = if fresh > 0 then [ Unix.O_CREAT; Unix.O_EXCL ] else [] in
  let file = Unix.openfile path (Unix.O_RDWR :: Unix.O_CLOEXEC :: flags) 0o644 in
  (try Unix.lockf file Unix.F_TLOCK 0 with Unix.Unix_error ((EAGAIN | EACCES), _, _) -> Unix.close file; raise Busy);
  if fresh > 0 then (let at, n = extent (fresh - 1) in try Unix.ftruncate file (at + n) with e -> Unix.unlink path; raise e);
  if sync then settle file ~fresh:(fresh > 0) path;
  { file; extent; sync; unflushed = []; latest = Hashtbl.create 64; log; cut_after; flight = None;
    wake = lazy (Unix.pipe ~cloexec:true ()); reads = 0; writes = 0; flushes = 0; unreadable = 0 }

let close device = Unix.close device.file
let seek ?(from = 0) device at = ignore (Unix.lseek device.file (fst (device.extent at) + from) Unix.SEEK_SET)

let rec transfer operation file bytes from until =
  if from < until then
    match operation file bytes from (until - from) with
    | 0 -> raise Cut_off
    | n -> transfer operation file bytes (from + n) until

let tick device =
  match !(device.cut_after) with
  | None -> ()
  | Some n when n <= 1 -> raise Power_cut
  | Some n -> device.cut_after := Some (n - 1)

let read device address =
  device.reads <- device.reads + 1;
  tick device;
  match Hashtbl.find_opt device.latest address with
  | Some bytes -> bytes
  | None ->
      let bytes = Bytes.create (snd (device.extent address)) in
      seek device address;
      transfer Unix.read device.file bytes 0 (Bytes.length bytes);
      bytes

(* In this order, except that blocks which follow each other in the file are written together. *)
let run = Bytes.create 65536
let store device writes =
  let start = ref 0 and filled = ref 0 in
  let write_run () =
    ignore (Unix.lseek device.file !start Unix.SEEK_SET);
    transfer Unix.write device.file run 0 !filled in
  List.iter (fun (address, bytes) ->
      let at = fst (device.extent address) and length = Bytes.length bytes in
      if at <> !start + !filled || !filled + length > Bytes.length run then (write_run (); start := at; filled := 0);
      Bytes.blit bytes 0 run !filled length;
      filled := !filled + length) writes;
  write_run ()

let sector = 512

(* An entry of the log: a head of one sector, then the data. A flush is an entry without data, where it has
   ended; another one says where it began, if the next job may run meanwhile: a flag that Linux does not have. *)
let flushed, begun = 1, 32
let record device ?(flags = 0) address bytes =
  let entry log =
    let head = Bytes.make sector '\000' in
    List.iteri (fun i n -> Bytes.set_int64_le head (8 * i) (Int64.of_int n))
      [ address * block_bytes / sector; Bytes.length bytes / sector; flags; 0 ];
    output_bytes log head; output_bytes log bytes; Stdlib.flush log in
  Option.iter entry device.log

let end_flush device =
  let ended flight =
    Thread.join flight.thread;
    device.flight <- None;
    record device ~flags:flushed 0 Bytes.empty;
    Option.iter raise !(flight.failure);
    List.iter (fun act -> act ()) (List.rev flight.later) in
  Option.iter ended device.flight

(* One job begins. Only one may while a flush is under way: the one behind it waits for the end. *)
let next_job device =
  match device.flight with
  | Some { followed = true; _ } -> end_flush device
  | Some flight -> flight.followed <- true
  | None -> ()

let write device address bytes =
  (match device.flight with Some { may; _ } when not (may address) -> end_flush device | _ -> ());
  record device address bytes;
  device.writes <- device.writes + 1;
  device.unflushed <- (address, bytes) :: device.unflushed;
  Hashtbl.replace device.latest address bytes;
  tick device

let forget device = device.unflushed <- []; Hashtbl.reset device.latest

let store_unflushed device flags =
  end_flush device;
  record device ~flags 0 Bytes.empty;
  tick device;
  device.flushes <- device.flushes + 1;
  store device (List.rev device.unflushed);
  forget device

let flush device =
  store_unflushed device flushed;
  if device.sync then Unix.fsync device.file

let begin_flush device may =
  store_unflushed device begun;
  let landed = ref false and failure = ref None and _, wake = Lazy.force device.wake in
  let wait () =
    (try Unix.fsync device.file with problem -> failure := Some problem);
    landed := true;
    ignore (Unix.write wake (Bytes.make 1 '.') 0 1) in
  device.flight <-
    Some { thread = Thread.create wait (); landed; failure; may; followed = false; later = [] }

(* Once what is under way has ended; at once, if nothing is. *)
let afterwards device act =
  match device.flight with Some flight -> flight.later <- act :: flight.later | None -> act ()

(* What woke the process: a flush, which ends here, if it has landed. *)
let woken device =
  ignore (Unix.read (fst (Lazy.force device.wake)) (Bytes.create 64) 0 64);
  match device.flight with Some { landed = { contents = true }; _ } -> end_flush device; true | _ -> false

(* The power fails: of each block what was flushed or written since then survives; of each sector, if it tears. *)
let power_cut device choose =
  let survives address bytes =
    let written = List.filter_map (fun (a, b) -> if a = address then Some b else None) device.unflushed in
    let any () = List.nth_opt written (Random.State.int choose (1 + List.length written)) in
    let whole, tears = (any (), Random.State.bool choose) in
    for i = 0 to (Bytes.length bytes - 1) / sector do
      let from = i * sector in
      let keep b = seek ~from device address; Unix.write device.file b from (min sector (Bytes.length b - from)) in
      ignore (Option.map keep (if tears then any () else whole))
    done
  in
  Hashtbl.iter survives device.latest;
  forget device
