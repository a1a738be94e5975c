(* Serves a disk on sockets: NBD clients, and clients that speak the dialogue of the kit, a line per request.
   One process: whoever has sent something is served, message by message. A thread waits for flushes. *)

exception Already of string

type connection = {
  socket : Unix.file_descr;
  take : Bytes.t -> int -> int -> int;  (* bytes, from, until: the length of the message taken, or 0 *)
  out : Outbox.t;
  mutable inbox : Bytes.t;
  mutable filled : int;
  mutable open_ : bool;
}

let read_at_once = 1 lsl 16
let most_unsent = 1 lsl 22  (* a client that does not take its answers is not read from *)
let most_clients = 64
let unsent c = Outbox.unsent c.out

let hang_up c = if c.open_ then begin c.open_ <- false; Unix.close c.socket end

let send c = if c.open_ then try Outbox.send c.out c.socket with Unix.Unix_error _ -> hang_up c

(* Takes the messages that have arrived whole. *)
let serve c =
  let rec messages at =
    if unsent c > most_unsent then send c;
    match if unsent c > most_unsent then 0 else c.take c.inbox at c.filled with
    | 0 -> at
    | length -> messages (at + length)
  in
  match messages 0 with
  | at -> if at > 0 then (Bytes.blit c.inbox at c.inbox 0 (c.filled - at); c.filled <- c.filled - at)
  | exception Nbd.Hang_up -> send c; hang_up c

let rec receive c =
  if Bytes.length c.inbox - c.filled < read_at_once then
    c.inbox <- Bytes.extend c.inbox 0 (max read_at_once (Bytes.length c.inbox));
  match Unix.read c.socket c.inbox c.filled read_at_once with
  | 0 -> hang_up c
  | n -> c.filled <- c.filled + n; if n = read_at_once && c.filled < Nbd.longest then receive c
  | exception Unix.Unix_error ((EAGAIN | EWOULDBLOCK | EINTR), _, _) -> ()
  | exception Unix.Unix_error _ -> hang_up c

(* A socket that a process left behind is removed; one on which another process listens is not, nor is a file. *)
let listen path = try
  let address = Unix.ADDR_UNIX path in
  let probe = Unix.socket Unix.PF_UNIX Unix.SOCK_STREAM 0 in
  (match Unix.connect probe address with
  | () -> Unix.close probe; raise (Already path)
  | exception Unix.Unix_error (ECONNREFUSED, _, _) ->
      if (Unix.lstat path).st_kind = S_SOCK then Unix.unlink path
  | exception Unix.Unix_error (ENOENT, _, _) -> ());
  Unix.close probe;
  let socket = Unix.socket ~cloexec:true Unix.PF_UNIX Unix.SOCK_STREAM 0 in
  Unix.bind socket address;
  Unix.listen socket 64;
  Unix.set_nonblock socket;
  socket
  with Unix.Unix_error (error, _, _) -> raise (Sys_error ("cannot listen at " ^ path ^ ": " ^ Unix.error_message error))

let accept socket talk =
  match Unix.accept ~cloexec:true socket with
  | exception Unix.Unix_error ((EAGAIN | EWOULDBLOCK | EINTR | ECONNABORTED), _, _) -> []
  | client, _ ->
      Unix.set_nonblock client;
      let out, take = talk () in
      let c = { socket = client; take; out; inbox = Bytes.empty; filled = 0; open_ = true } in
      send c;
      [ c ]

let talk_nbd disk () = let client = Nbd.greet disk in (client.out, Nbd.message client)

let talk_lines disk answer () =
  let out = Outbox.create () in
  let take bytes at filled =
    match Bytes.index_from_opt bytes at '\n' with
    | Some until when until < filled ->
        Outbox.put_text out (Nbd.commit disk; answer (Bytes.sub_string bytes at (until - at)) ^ "\n");
        until - at + 1
    | _ -> if filled - at > 1 lsl 27 then raise Nbd.Hang_up else 0
  in
  (out, take)

(* Until [stopped]: whoever sends is served. Requests that arrive in one turn wait until it ends. *)
let run disk ~nbd ~control ~answer ~stopped =
  let pipeline = disk.Engine.medium.pipeline in
  let wake = Option.map (fun device -> fst (Lazy.force device.Device.wake)) pipeline in
  let disk = { Nbd.engine = disk; waiting = []; bytes = 0 } and connections = ref [] and hurry = ref false in
  while not !stopped do
    let sockets choose = List.filter_map (fun c -> if choose c then Some c.socket else None) !connections in
    let doors = if List.length !connections < most_clients then [ nbd; control ] else [] in
    let reads = Option.to_list wake @ doors @ sockets (fun c -> unsent c <= most_unsent) in
    match Unix.select reads (sockets (fun c -> unsent c > 0)) [] (if !hurry then 0. else -1.) with
    | exception Unix.Unix_error (EINTR, _, _) -> ()
    | readable, writable, _ ->
        let landed = match pipeline, wake with
          | Some device, Some wake -> List.memq wake readable && Device.woken device | _ -> false in
        List.iter (fun c ->
            if List.memq c.socket writable then send c;
            if c.open_ && List.memq c.socket readable then receive c;
            if c.open_ then serve c) !connections;
        hurry := landed;  (* who is answered now may have more that shares the next flush *)
        if not landed then Nbd.go_on disk;
        List.iter send !connections;
        let come socket talk = if List.memq socket readable then accept socket talk else [] in
        let late = come nbd (talk_nbd disk) @ come control (talk_lines disk answer) in
        connections := List.filter (fun c -> c.open_) (late @ !connections)
  done;
  Nbd.commit disk;
  Engine.drain disk.engine;
  List.iter send !connections;
  List.iter hang_up !connections

let serve ~folder ~socket ~answer ~close disk =
  let nbd = listen socket in let control = listen (Control.socket folder) in
  let stopped = ref false in
  List.iter (fun signal -> Sys.set_signal signal (Signal_handle (fun _ -> stopped := true)))
    [ Sys.sigterm; Sys.sigint ];
  Sys.set_signal Sys.sigpipe Signal_ignore;
  Gc.set { (Gc.get ()) with space_overhead = 1000; minor_heap_size = 1 lsl 20; max_overhead = 1_000_000 };
  Printf.eprintf "proved-disk: serving %s at nbd+unix:///?socket=%s\n%!" folder socket;
  let answer line = Yojson.Safe.to_string (Adapter.understood answer line) in
  Fun.protect ~finally:(fun () -> List.iter Unix.unlink [ socket; Control.socket folder ]; close ())
    (fun () -> run disk ~nbd ~control ~answer ~stopped)
