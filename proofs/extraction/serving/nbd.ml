(* One NBD client: fixed newstyle, simple replies (doc/proto.md of the project NetworkBlockDevice/nbd). The
   live view is the default export, each snapshot is a read-only one. Reads, and writes of whole blocks, wait
   for [commit], which performs them as `next_job` of ServedDiskScheduler.v says; any other command is
   performed after all that wait. Each is answered when it is durable: on one device, writes may be performed
   while the flush of those before is under way (PipelinedServer.v). *)

open Proved_core

exception Hang_up
exception Failed of int  (* an error of the protocol: Linux's number *)

let eperm, eio, einval, enospc, eshutdown = 1, 5, 22, 28, 108

type export = { view : target; writable : bool; stays : unit -> bool  (* its snapshot is still there *) }
type phase = Greeted | Choosing of { no_zeroes : bool } | Chosen of export
(* Requests that wait, the newest first, each with who is told its error, or 0, and what was read; their bytes. *)
type served = { engine : Engine.t; mutable waiting : ((int -> block list -> unit) * request) list; mutable bytes : int }
type t = { disk : served; mutable phase : phase; out : Outbox.t }

let size = Bytes_blocks.block_bytes
let longest = 32 lsl 20  (* bytes of a read or a write *)
let bytes_of disk = (Maps.shape disk.engine.memory).disk_blocks * size
(* Blocks of writes that are one step. Of 245 the log record is one block, and of so many it goes into the log. *)
let most_written disk = max 245 (min (longest / size) (245 * ((Maps.shape disk.engine.memory).log_blocks - 2)))

(* ** Numbers, big end first *)

let u16 = Bytes.get_uint16_be
let u32 bytes at = Int32.to_int (Bytes.get_int32_be bytes at) land 0xFFFFFFFF
let u64 bytes at =
  let n = Bytes.get_int64_be bytes at in
  if Int64.compare n 0L < 0 || Int64.compare n 0x1000000000000000L > 0 then max_int lsr 1 else Int64.to_int n

(* ** Data *)

let perform ?ahead disk request =
  match Engine.perform ?ahead disk.engine request with
  | exception (Mirror_set.Lost | Device.Cut_off) -> raise (Failed eio)
  | Ok, data -> data
  | Refused NoSpace, _ -> raise (Failed enospc)
  | Refused NoSuchSnapshot, _ -> raise (Failed eshutdown)
  | Refused (OutOfRange | BadRequest), _ -> raise (Failed einval)
  | _ -> raise (Failed eio)

(* The block [lba] once [data], from [at] on, is written to the bytes from [from] to [until] of the disk. *)
let block_written disk lba data at from until =
  let start = max from (lba * size) and stop = min until ((lba + 1) * size) in
  let block = if stop - start = size then Bytes.create size
    else Bytes.copy (Bytes_blocks.of_block (List.hd (perform disk (DoRead (Live, lba, 1))))) in
  Bytes.blit data (at + start - from) block (start - (lba * size)) (stop - start);
  block

(* Performs the requests that wait. *)
let perform_waiting disk =
  let pipeline f = Option.iter f disk.engine.medium.pipeline in
  let later act = match disk.engine.medium.pipeline with
    | Some device -> Device.afterwards device act | None -> act () in
  let alone answered request =
    pipeline Device.next_job;
    let error, data = match perform ~ahead:true disk request with
      | data -> (0, data) | exception Failed error -> (error, []) in
    later (fun () -> answered error data) in
  let together writes =
    pipeline Device.next_job;
    let all error = later (fun () -> List.iter (fun (answered, _) -> answered error []) writes) in
    match Engine.write_group ~ahead:true disk.engine (List.map snd writes) with
    | true -> all 0
    | false -> List.iter (fun (answered, (lba, data)) -> alone answered (DoWrite (lba, data))) writes
    | exception (Mirror_set.Lost | Device.Cut_off) -> all eio in
  let rec go waiting = match next_job Bytes_blocks.blocks (most_written disk) waiting with
    | None -> ()
    | Some (Single (answered, request), rest) -> alone answered request; go rest
    | Some (Together writes, rest) -> together writes; go rest in
  let waiting = List.rev disk.waiting in disk.waiting <- []; disk.bytes <- 0; go waiting

(* While a flush is under way, requests wait for its end, so that more of them share the next one, unless there
   is much to do meanwhile. *)
let much = 1 lsl 22
let go_on disk =
  match disk.engine.medium.pipeline with
  | Some { Device.flight = Some _; _ } when disk.bytes < much -> ()
  | _ -> perform_waiting disk

(* And waits until all are answered. *)
let commit disk = perform_waiting disk; Option.iter Device.end_flush disk.engine.medium.pipeline

let wait disk length request answered =
  if disk.bytes + length > longest then perform_waiting disk;
  disk.bytes <- disk.bytes + max size length;
  disk.waiting <- (answered, request) :: disk.waiting

(* Long requests are several steps of the disk, and a request of no bytes is none. *)
let write disk data at from length =
  let until = from + length in
  let rec step lba =
    if lba * size < until then begin
      let count = min (most_written disk) ((until + size - 1) / size - lba) in
      let block i = Bytes_blocks.to_block (block_written disk (lba + i) data at from until) in
      ignore (perform disk (DoWrite (lba, List.init count block)));
      step (lba + count)
    end in
  step (from / size)

(* Whole blocks are unmapped; parts of blocks are overwritten, unless they may stay as they are. *)
let unmap disk ~parts from length =
  let until = from + length in
  let first = (from + size - 1) / size and last = until / size in
  let zero start stop = if parts && stop > start then write disk Bytes_blocks.zero 0 start (stop - start) in
  zero from (min until (first * size));
  if last > first then ignore (perform disk (DoUnmap (first, last - first)));
  zero (max from (max first last * size)) until

(* The bytes that were read, as parts of blocks: each with where it begins, and its length. *)
let parts from length i block =
  let start = max from ((from / size + i) * size) and stop = min (from + length) ((from / size + i + 1) * size) in
  (Bytes_blocks.of_block block, start - ((from / size + i) * size), stop - start)

(* ** Transmission *)

let write_command, trim_command, zeroes_command = 1, 4, 6
let changes kind = kind = write_command || kind = trim_command || kind = zeroes_command

let command client export kind data at from length reply =
  let inside = from <= bytes_of client.disk && length <= bytes_of client.disk - from in
  if not (export.stays ()) then raise (Failed eshutdown);
  if changes kind && not export.writable then raise (Failed eperm);
  if not inside && kind <> 3 then raise (Failed (if kind = write_command then enospc else einval));
  let block i = Bytes_blocks.to_block (Bytes.sub data (at + (i * size)) size) and first = from / size in
  match kind with
  | 0 when 0 < length && length <= longest ->
      wait client.disk length (DoRead (export.view, first, (from + length + size - 1) / size - first))
        (fun error blocks -> reply error (List.mapi (parts from length) blocks))
  | 1 when from mod size = 0 && length mod size = 0 && length > 0 && length <= most_written client.disk * size ->
      wait client.disk length (DoWrite (first, List.init (length / size) block)) (fun error _ -> reply error [])
  | 1 -> commit client.disk; write client.disk data at from length; reply 0 []
  | 0 when length = 0 -> reply 0 []
  | 3 when client.disk.engine.delay <> None ->
      commit client.disk; ignore (perform client.disk DoFlush); reply 0 []
  | 3 -> reply 0 []  (* without write-back whatever is answered is durable: so are FUA and flush *)
  | 4 | 6 -> commit client.disk; unmap client.disk ~parts:(kind = zeroes_command) from length; reply 0 []
  | _ -> raise (Failed einval)

let reply client cookie error parts =
  Outbox.put32 client.out 0x67446698;
  Outbox.put32 client.out error;
  Outbox.put_text client.out cookie;
  List.iter (fun (block, start, length) -> Outbox.put client.out block start length) parts

(* With write-back FUA is a flush, before the answer leaves the outbox. *)
let force disk = commit disk; try ignore (perform disk DoFlush) with Failed _ -> raise Hang_up

let request client export bytes at filled =
  if filled - at < 28 then 0 else begin
    let kind = u16 bytes (at + 6) and reply = reply client (Bytes.sub_string bytes (at + 8) 8) in
    let from = u64 bytes (at + 16) and length = u32 bytes (at + 24) in
    let payload = if kind = write_command then length else 0 in
    if u32 bytes at <> 0x25609513 || payload > longest || kind = 2 then raise Hang_up;
    if filled - at < 28 + payload then 0 else begin
      (try command client export kind bytes (at + 28) from length reply with Failed error -> reply error []);
      if u16 bytes (at + 4) land 1 = 1 && changes kind && client.disk.engine.delay <> None then force client.disk;
      28 + payload
    end
  end

(* ** Negotiation *)

let greet disk =
  let out = Outbox.create () in
  Outbox.put_text out "NBDMAGICIHAVEOPT";
  Outbox.put16 out 3;  (* fixed newstyle, no zeroes *)
  { disk; phase = Greeted; out }

let export_of disk name =
  let count () = List.length (Hashtbl.find_all disk.engine.deleted name) in
  let then_ = count () in
  if name = "" then Some { view = Live; writable = true; stays = (fun () -> true) }
  else if List.mem_assoc name (Maps.listing disk.engine.memory) then
    Some { view = Named name; writable = false; stays = (fun () -> count () = then_) }
  else None

(* Flush, multi-conn; and for the live view FUA, trim and write zeroes; for a snapshot read-only. *)
let flags export = if export.writable then 0b101101101 else 0b100000111

let describe disk export out = Outbox.put64 out (bytes_of disk); Outbox.put16 out (flags export)

(* An answer of so many bytes, which [add] adds. *)
let answer_option client option kind length add =
  Outbox.put64 client.out 0x3e889045565a9;
  List.iter (Outbox.put32 client.out) [ option; kind; length ];
  add client.out

let answer client option kind = answer_option client option kind 0 ignore
let ack, server, info, unsupported, invalid, unknown = 1, 2, 3, 0x80000001, 0x80000003, 0x80000006

(* GO and INFO: a name, and what the client wants to know. *)
let go client option bytes at length =
  let named = if length < 6 then max_int else u32 bytes at in
  if named > length - 6 then answer client option invalid
  else
    match export_of client.disk (Bytes.sub_string bytes (at + 4) named) with
    | None -> answer client option unknown
    | Some export ->
        answer_option client option info 12 (fun out ->
            Outbox.put16 out 0; describe client.disk export out);
        answer_option client option info 14 (fun out ->
            Outbox.put16 out 3; List.iter (Outbox.put32 out) [ 1; size; longest ]);
        answer client option ack;
        if option = 7 then client.phase <- Chosen export

let listed client option =
  List.iter (fun name ->
      answer_option client option server (4 + String.length name) (fun out ->
          Outbox.put32 out (String.length name); Outbox.put_text out name))
    ("" :: List.sort compare (List.map fst (Maps.listing client.disk.engine.memory)));
  answer client option ack

let option client no_zeroes bytes at filled =
  if filled - at < 16 then 0 else begin
    let option = u32 bytes (at + 8) and length = u32 bytes (at + 12) in
    if Bytes.sub_string bytes at 8 <> "IHAVEOPT" || length > 65536 then raise Hang_up;
    if filled - at < 16 + length then 0 else begin
      (match option with
      | 1 -> (match export_of client.disk (Bytes.sub_string bytes (at + 16) length) with
          | None -> raise Hang_up
          | Some export ->
              describe client.disk export client.out;
              if not no_zeroes then Outbox.put client.out Bytes_blocks.zero 0 124;
              client.phase <- Chosen export)
      | 2 -> raise Hang_up
      | 3 -> if length = 0 then listed client option else answer client option invalid
      | 6 | 7 -> go client option bytes (at + 16) length
      | _ -> answer client option unsupported);
      16 + length
    end
  end

(* The length of the message at [at], once it was taken; 0 if it has not arrived whole. *)
let message client bytes at filled =
  match client.phase with
  | Chosen export -> request client export bytes at filled
  | Choosing { no_zeroes } -> option client no_zeroes bytes at filled
  | Greeted when filled - at < 4 -> 0
  | Greeted ->
      let asked = u32 bytes at in
      if asked land lnot 3 <> 0 then raise Hang_up;
      client.phase <- Choosing { no_zeroes = asked land 2 <> 0 };
      4
