(* The command line of the proved disk: one operation per call on a disk that lasts, a server, an adapter. *)

open Cmdliner
open Proved_core
let refused, wrong_usage, busy, damaged = 1, 2, 4, 5
let fail status = Printf.ksprintf (fun text -> prerr_endline ("proved-disk: " ^ text); exit status)
let file folder = Filename.concat folder "blocks"

(* Whatever a command does, a mistake of the user's is one line and a status. *)
let guarded folder action =
  try action () with
  | Device.Busy -> fail busy "%s: another process has the disk open" folder
  | Engine.Not_a_disk -> fail damaged "%s holds no proved disk" folder
  | Mirror_set.Damaged reason -> fail damaged "%s" reason
  | Mirror_set.Older folder -> fail wrong_usage "%s is a disk of an older program" folder
  | Adapter.Bad reason -> fail refused "bad-request: %s" reason
  | Device.Cut_off -> fail damaged "data-lost: the file of %s ends before the disk does" folder
  | Unix.Unix_error ((ENOENT | ENOTDIR), "open", _) -> fail wrong_usage "there is no disk in %s" folder
  | Unix.Unix_error (error, _, _) -> fail refused "%s: %s" folder (Unix.error_message error)
  | Server.Already path -> fail busy "%s: another process listens there" path
  | Mirror_set.Lost -> fail damaged "data-lost: no device that has all data answers"

let opened ?(sync = true) ?(pipeline = false) ?(profile = "ack") ?log folder action =
  guarded folder (fun () -> Mirror_commands.opened ~sync ~pipeline ~profile ?log ~file:(file folder) folder action)
let with_disk folder action =
  opened folder (fun ~answer:_ ~close disk -> Fun.protect ~finally:close (fun () -> action disk))

(* A request may depend on how many blocks it may have at most. *)
let perform_here folder request =
  with_disk folder (fun disk ->
      match Engine.perform disk (request (Maps.shape disk.memory).disk_blocks) with
      | Ok, data -> Words.joined data
      | Refused code, _ -> fail refused "%s: %s" (Words.code code) (Words.explained code)
      | (UnknownOutcome | CutShort), _ -> fail refused "it may have happened, or not")

(* The data that was read. A process that serves the disk is asked to perform the request. *)
let perform folder request =
  if Sys.file_exists (Control.socket folder) then
    match Control.ask folder (request Control.most_blocks) with
    | Result.Ok data -> data
    | Result.Error reason -> fail refused "%s" reason
    | exception End_of_file -> fail refused "the server ended: it may have happened, or not"
    | exception Unix.Unix_error (ECONNREFUSED, _, _) -> perform_here folder request
  else perform_here folder request

(* Nothing stays of a disk that could not be made. *)
let create folder blocks segment_blocks segments records snapshots trees layout =
  guarded folder (fun () ->
      let absent = not (Sys.file_exists folder) in
      if absent then Unix.mkdir folder 0o755
      else if Array.length (Sys.readdir folder) > 0 then fail refused "%s is not empty" folder;
      let undo () =
        Array.iter (fun name -> Sys.remove (Filename.concat folder name)) (Sys.readdir folder);
        if absent then Unix.rmdir folder in
      let records = Option.value ~default:(Plan.default_records blocks) records in
      try
        if absent then Device.sync_parent folder;
        let form = Plan.form ~trees ~on_legs:(layout <> None) ~blocks ~segment_blocks ~segments ~records ~snapshots in
        match layout with
        | Some (count, parity) -> Mirror_set.close (fst (Mirror_set.create ~parity folder ~count form))
        | None -> ignore (Engine.format (Engine.on (Device.open_file ~fresh:(Maps.blocks_of form) (file folder))) form)
      with problem -> undo (); raise problem)

(* The data in whole blocks, the last one filled up with zeroes. *)
let whole text =
  if text = "" then fail refused "bad-request: there is nothing to write";
  let size = Bytes_blocks.block_bytes and length = String.length text in
  text ^ String.make ((size - (length mod size)) mod size) '\000'

let rest_of channel =
  let read = Buffer.create 65536 in
  (try while true do Buffer.add_channel read channel 65536 done with End_of_file -> ());
  Buffer.contents read

let write folder lba text fill count =
  let given text = let blocks = Words.split (whole text) in fun _ -> blocks in
  let data =
    match text, fill with
    | Some _, Some _ -> fail wrong_usage "--text and --fill exclude each other"
    | Some text, None -> given text
    | None, Some byte ->  (* one more than there may be is refused, as any larger number is *)
        let block = Bytes_blocks.(to_block (Bytes.make block_bytes (Char.chr byte))) in
        fun most -> List.init (min count (most + 1)) (fun _ -> block)
    | None, None -> set_binary_mode_in stdin true; given (rest_of stdin)
  in
  ignore (perform folder (fun most -> DoWrite (lba, data most)))

let read folder lba count view =
  let from = match view with Some name -> Named name | None -> Live in
  set_binary_mode_out stdout true;
  print_string (perform folder (fun _ -> DoRead (from, lba, count)))

let change request folder = ignore (perform folder (fun _ -> request))
let ls folder =
  with_disk folder (fun disk -> List.iter (fun (name, mapped) -> Printf.printf "%s %d\n" name mapped)
    (List.sort compare (Maps.listing disk.memory)))

let inspect folder =
  with_disk folder (fun disk ->
      let y = disk.memory in
      let g = Maps.shape y and first, next = Maps.log y and serial, slot = Maps.slot y in
      Printf.printf "disk: %d blocks of %d bytes\n" g.disk_blocks Bytes_blocks.block_bytes;
      Printf.printf "log: records %d to %d, of at most %d\n" first (next - 1) g.log_blocks;
      Printf.printf "checkpoint: number %d, in slot %s\n" serial (if slot then "b" else "a");
      Printf.printf "live: %d blocks mapped\n" (Maps.live_blocks y);
      Option.iter (fun (now, saved) -> Printf.printf "trees: %d nodes, %d pages\n" now saved) (Maps.nodes y);
      List.iter (fun (name, mapped) -> Printf.printf "snapshot %s: %d blocks mapped\n" name mapped)
        (Maps.listing y);
      let used = Maps.in_use y in
      Printf.printf "data: %d of %d blocks in use\n" (List.length used) g.data_blocks;
      let segments = Hashtbl.create 64 in
      List.iter (fun (_, place) ->
          let s = place / max 1 g.segment_blocks in
          Hashtbl.replace segments s (1 + Option.value ~default:0 (Hashtbl.find_opt segments s))) used;
      List.iter (fun (s, n) -> Printf.printf "segment %d: %d of %d blocks in use\n" s n g.segment_blocks)
        (List.sort compare (List.of_seq (Hashtbl.to_seq segments))))

(* The log of writes begins with a sector that says what it is. *)
let log_of path =
  let log = open_out_bin path in
  let head = Bytes.make Device.sector '\000' in
  List.iteri (fun i n -> Bytes.set_int64_le head (8 * i) n) [ 0x6A736677736872L; 1L; 0L;
    Int64.of_int Device.sector ];
  output_bytes log head;
  flush log;
  log

let adapter disk log folder records seed trees profile layout =
  let shared = if Sys.file_exists "/dev/shm" then "/dev/shm" else Filename.get_temp_dir_name () in
  let folder = Option.value ~default:shared folder in
  guarded (Option.value ~default:folder disk) (fun () ->
    match layout with
    | Some (count, parity) -> Mirror_adapter.serve ~folder ~records ~trees ~profile ~seed ~parity ~count
    | None -> Adapter.serve ~disk:(Option.map file disk) ~log:(Option.map log_of log) ~folder ~records ~trees ~profile ~seed)

let serve folder socket no_sync no_pipeline profile log =
  let sync = not no_sync in
  let pipeline = sync && not (no_pipeline || profile <> "ack") in
  opened ~sync ~pipeline ~profile ?log:(Option.map log_of log) folder (Server.serve ~folder ~socket)

(* ** Arguments *)

let at_least ?(most = (1 lsl 40) - 1) least =
  let parse text =
    match int_of_string_opt text with
    | Some n when least <= n && n <= most -> Result.Ok n
    | _ -> Result.Error (`Msg (Printf.sprintf "%S is not an integer from %d to %d" text least most))
  in
  Arg.conv (parse, Format.pp_print_int)

let disk = Arg.(required & pos 0 (some string) None & info [] ~docv:"DIR" ~doc:"The folder of the disk.")
let lba = Arg.(required & pos 1 (some (at_least 0)) None & info [] ~docv:"LBA" ~doc:"LBA of the first block.")
let count = Arg.(value & pos 2 (at_least 0) 1 & info [] ~docv:"COUNT" ~doc:"Number of blocks.")
let named = Arg.(required & pos 1 (some string) None & info [] ~docv:"NAME" ~doc:"Name of the snapshot.")
let optional kind option docv doc = Arg.(value & opt (some kind) None & info [ option ] ~docv ~doc)
let number ?most option default doc = Arg.(value & opt (at_least ?most 1) default & info [ option ] ~docv:"N" ~doc)

let trees = Arg.(value & flag & info [ "trees" ] ~doc:"Keep the maps as shared trees.")
let profile =
  let choice = Arg.enum (List.map (fun name -> (name, name)) [ "ack"; "prefix"; "block" ]) in
  Arg.(value & opt choice "ack" & info [ "profile" ] ~docv:"PROFILE"
    ~doc:"What survives a power cut: ack, all that was answered; prefix, all that was answered before some moment, \
          which is no earlier than the last flush; block, the same disk as prefix, which promises less.")
let exits =
  Cmd.Exit.[ info 0 ~doc:"done";
    info refused ~doc:"refused; a message says so if it may have happened. After status, scrub and settle: not all devices are members";
    info wrong_usage ~doc:"wrong usage, or there is no disk, or it is one of an older program";
    info busy ~doc:"another process has the disk open"; info damaged ~doc:"data is lost or damaged" ]
let command name doc term = Cmd.v (Cmd.info name ~doc ~exits) term

let commands =
  let open Term in
  [ command "create" "Make a new disk in an empty or absent folder."
      (const create $ disk
       $ Arg.(required & opt (some (at_least 1)) None & info [ "blocks" ] ~docv:"N" ~doc:"Size, in blocks.")
       $ number ~most:(1 lsl 20) "segment-blocks" 128 "Blocks per segment."
       $ optional (at_least 1) "segments" "N" "Segments for data; by default twice the blocks, and four."
       $ optional (at_least 1) "log-records" "N"
         "Records in the log; by default half the blocks (1,024 to 65,536)."
       $ number ~most:(1 lsl 16) "snapshots" Plan.default_snapshots "Largest number of snapshots." $ trees $ Mirror_commands.layout);
    command "write" "Write whole blocks from LBA on: stdin, filled up with zeroes, or what an option says."
      (const write $ disk $ lba
       $ optional Arg.string "text" "TEXT" "Write this text, in place of stdin."
       $ optional (at_least ~most:255 0) "fill" "BYTE" "Write COUNT blocks of this byte."
       $ number "count" 1 "With --fill: number of blocks.");
    command "read" "Read COUNT blocks from LBA on to stdout."
      (const read $ disk $ lba $ count
       $ optional Arg.string "view" "NAME" "Read this snapshot in place of the live view.");
    command "unmap" "Unmap COUNT blocks from LBA on: they read as zeroes."
      (const (fun folder lba count -> change (DoUnmap (lba, count)) folder) $ disk $ lba $ count);
    command "flush" "Do nothing: every acknowledged operation is durable." (const (change DoFlush) $ disk);
    command "snapshot" "Take a snapshot of the live view, with this NAME."
      (const (fun folder name -> change (DoSnapshot name) folder) $ disk $ named);
    command "delete" "Delete a snapshot." (const (fun dir n -> change (DoDelete n) dir) $ disk $ named);
    command "revert" "Make the live view equal to a snapshot; all snapshots stay."
      (const (fun folder name -> change (DoRevert name) folder) $ disk $ named);
    command "ls" "List the snapshots by name, with the number of blocks that each maps." (const ls $ disk);
    command "inspect" "Describe the log, the views and the segments." (const inspect $ disk);
    command "clean" "Clean the segment with the fewest blocks in use."
      (const (fun folder -> with_disk folder Engine.clean) $ disk);
    command "checkpoint" "Write a checkpoint, so that the log can be truncated."
      (const (fun folder -> with_disk folder (fun d -> Engine.maintain d Checkpoint)) $ disk);
    command "serve" "Serve over NBD until SIGTERM or SIGINT: the live view, and each snapshot by its name."
      (const serve $ disk
       $ Arg.(required & opt (some string) None & info [ "socket" ] ~docv:"PATH" ~doc:"Socket to listen on.")
       $ Arg.(value & flag & info [ "no-sync" ]
         ~doc:"Do not wait at a flush until the medium has the data. For tests and benchmarks only.")
       $ Arg.(value & flag & info [ "no-pipeline" ] ~doc:"Perform nothing while a flush is under way.")
       $ profile
       $ optional Arg.string "log-writes" "FILE" "On one device: log what is written, as dm-log-writes does.");
    command "adapter" "Answer requests of the conformance kit on stdin and stdout."
      (const adapter
       $ optional Arg.string "disk" "DIR" "A disk that lasts, in place of a temporary one."
       $ optional Arg.string "log-writes" "FILE" "With --disk: log what is written, as dm-log-writes does."
       $ optional Arg.string "folder" "DIR" "Where the file of the disk is kept while it runs."
       $ number "log-records" 16 "Records in the log."
       $ Arg.(value & opt int 0 & info [ "seed" ] ~docv:"N" ~doc:"Seed of what power cuts leave.")
       $ trees $ profile $ Mirror_commands.layout) ]
  @ List.map (fun (name, doc, act) -> command name doc (Mirror_commands.term_of_one guarded act)) Mirror_commands.of_one
  @ List.map (fun (name, doc, act) -> command name doc (Mirror_commands.term_of_all guarded act)) Mirror_commands.of_all

let () =
  let doc = "A log-structured virtual disk with snapshots, extracted from its proof" in
  let group = Cmd.group (Cmd.info "proved-disk" ~version:("proved-disk " ^ Version.version) ~doc ~exits) commands in
  match let result = Cmd.eval_value ~catch:false group in flush stdout; result with
  | result -> exit (if Result.is_ok result then 0 else wrong_usage)
  | exception Out_of_memory -> fail refused "there is not enough memory for this"
  | exception Sys_error reason -> Unix.(dup2 (openfile "/dev/null" [ O_WRONLY ] 0) stdout); fail refused "%s" reason
