//! A virtual disk with snapshots in memory, as a target of the conformance kit.
//!
//!     cargo build --release --manifest-path conformance/examples/rust_disk/Cargo.toml
//!     conformance run --target exec:conformance/examples/rust_disk/target/release/rust-disk

use base64::{engine::general_purpose::STANDARD, Engine};
use serde_json::{json, Value};
use std::collections::HashMap;
use std::io::{stdin, stdout, BufRead, Write};

const BLOCK: usize = 512; // bytes

/// The code with which a request is refused.
type Refusal = &'static str;

#[derive(Default)]
struct Disk {
    live: Vec<u8>,
    snapshots: HashMap<String, Vec<u8>>,
}

impl Disk {
    /// The bytes that a request is about, if they lie within the disk.
    fn range(&self, lba: u64, length: usize) -> Result<std::ops::Range<usize>, Refusal> {
        let start = (lba as u128) * BLOCK as u128;
        if start + length as u128 > self.live.len() as u128 {
            return Err("out-of-range");
        }
        Ok(start as usize..start as usize + length)
    }

    fn snapshot(&mut self, name: &str) -> Result<(), Refusal> {
        let sound = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > 64 || !name.chars().all(sound) {
            return Err("bad-request");
        }
        if self.snapshots.contains_key(name) {
            return Err("snapshot-exists");
        }
        self.snapshots.insert(name.to_string(), self.live.clone());
        Ok(())
    }

    fn existing(&self, name: &str) -> Result<&Vec<u8>, Refusal> {
        self.snapshots.get(name).ok_or("no-such-snapshot")
    }

    /// What the response holds besides `ok`, or the code of a refusal.
    fn answer(&mut self, request: &Value) -> Result<Value, Refusal> {
        let lba = request["lba"].as_u64().unwrap_or(0);
        let length = request["count"].as_u64().unwrap_or(0) as usize * BLOCK;
        let name = request["name"].as_str().unwrap_or("");
        match request["op"].as_str().unwrap_or("") {
            "hello" => {
                return Ok(json!({"name": "rust-disk", "version": "1", "block_size": BLOCK, "crash_profile": "ack",
                    "capabilities": ["unmap", "flush", "snapshot", "delete", "revert", "crash", "restart"]}))
            }
            "create" => {
                let blocks = request["blocks"].as_u64().ok_or("bad-request")? as usize;
                *self = Disk { live: vec![0; blocks * BLOCK], ..Disk::default() };
            }
            "write" => {
                let encoded = request["data"].as_str().ok_or("bad-request")?;
                let data = STANDARD.decode(encoded).map_err(|_| "bad-request")?;
                let range = self.range(lba, data.len())?;
                self.live[range].copy_from_slice(&data);
            }
            "unmap" => {
                let range = self.range(lba, length)?;
                self.live[range].fill(0);
            }
            "read" => {
                let view = match request["view"].as_str() {
                    Some(view) => self.existing(view)?,
                    None => &self.live,
                };
                return Ok(json!({"data": STANDARD.encode(&view[self.range(lba, length)?])}));
            }
            "snapshot" => self.snapshot(name)?,
            "delete" => {
                self.existing(name)?;
                self.snapshots.remove(name);
            }
            "revert" => self.live = self.existing(name)?.clone(),
            "flush" | "restart" | "crash" => {} // nothing to lose: it all stays in memory
            _ => return Err("unsupported"),
        }
        Ok(json!({}))
    }
}

fn main() {
    let mut disk = Disk::default();
    for line in stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.expect("a line of UTF-8")).expect("a JSON object");
        if request["op"] == "bye" {
            break;
        }
        let response = match disk.answer(&request) {
            Ok(mut result) => {
                result["ok"] = json!(true);
                result
            }
            Err(code) => json!({"ok": false, "error": code}),
        };
        let mut out = stdout().lock();
        writeln!(out, "{response}").and_then(|_| out.flush()).expect("somebody listens");
    }
}
