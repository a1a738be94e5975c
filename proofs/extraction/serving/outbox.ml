(* What waits to be sent to a client. *)

type t = { mutable bytes : Bytes.t; mutable filled : int; mutable sent : int }

let create () = { bytes = Bytes.create 65536; filled = 0; sent = 0 }
let unsent out = out.filled - out.sent

let room out length =
  if out.filled + length > Bytes.length out.bytes then
    out.bytes <- Bytes.extend out.bytes 0 (out.filled + length);
  out.filled <- out.filled + length;
  out.filled - length

let put out bytes from length = let at = room out length in Bytes.blit bytes from out.bytes at length
let put_text out text = put out (Bytes.unsafe_of_string text) 0 (String.length text)
let put16 out n = let at = room out 2 in Bytes.set_uint16_be out.bytes at n
let put32 out n = let at = room out 4 in Bytes.set_int32_be out.bytes at (Int32.of_int n)
let put64 out n = let at = room out 8 in Bytes.set_int64_be out.bytes at (Int64.of_int n)

(* Sends what the socket takes. *)
let rec send out socket =
  if unsent out > 0 then
    match Unix.single_write socket out.bytes out.sent (unsent out) with
    | n -> out.sent <- out.sent + n; send out socket
    | exception Unix.Unix_error ((EAGAIN | EWOULDBLOCK | EINTR), _, _) -> ()
  else begin
    out.filled <- 0;
    out.sent <- 0
  end
