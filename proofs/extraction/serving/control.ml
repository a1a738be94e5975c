(* Asks the process that serves a disk to perform a request: a line of the dialogue of the kit, on the socket
   `control` in the folder of the disk. *)

open Proved_core
module J = Yojson.Safe

let socket folder = Filename.concat folder "control"
let most_blocks = 1 lsl 14  (* of a write: a longer line is no request *)

let spelled request =
  let op name fields = `Assoc (("op", `String name) :: fields) in
  let range lba count = [ ("lba", `Int lba); ("count", `Int count) ] in
  let named name = [ ("name", `String name) ] in
  match request with
  | DoWrite (lba, data) ->
      op "write" [ ("lba", `Int lba); ("data", `String (Base64.encode_string (Words.joined data))) ]
  | DoRead (Live, lba, count) -> op "read" (range lba count)
  | DoRead (Named view, lba, count) -> op "read" (("view", `String view) :: range lba count)
  | DoUnmap (lba, count) -> op "unmap" (range lba count)
  | DoSnapshot name -> op "snapshot" (named name)
  | DoDelete name -> op "delete" (named name)
  | DoRevert name -> op "revert" (named name)
  | DoFlush | DoRestart -> op "flush" []

(* The data that was read, or why the request was refused. A request that is too long is not sent. Raises End_of_file if no answer came. *)
let ask folder request =
  match request with
  | DoWrite (_, data) when List.compare_length_with data most_blocks > 0 ->
      Result.Error (Printf.sprintf "bad-request: the disk is served, and takes at most %d blocks in a write" most_blocks)
  | _ ->
  let received, sent = Unix.open_connection (Unix.ADDR_UNIX (socket folder)) in
  Fun.protect ~finally:(fun () -> close_in_noerr received) (fun () ->
      output_string sent (J.to_string (spelled request) ^ "\n");
      flush sent;
      let answer = J.from_string (input_line received) in
      match J.Util.member "error" answer, J.Util.member "data" answer with
      | `String code, _ -> Result.Error (code ^ ": " ^ J.Util.(to_string (member "message" answer)))
      | _, `String data -> Result.Ok (Base64.decode_exn data)
      | _ -> Result.Ok "")
