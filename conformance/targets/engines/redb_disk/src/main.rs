//! redb as a disk of blocks: a block is an entry of a table, a snapshot is a persistent savepoint.
//!
//! The dialogue is that of docs/traces.md. The argument is the durability of writes: `immediate`, `eventual` or `none`.

mod media;

use base64::{engine::general_purpose::STANDARD, Engine};
use media::Media;
use redb::{Database, Durability, ReadableTable, TableDefinition, TableError, WriteTransaction};
use serde_json::{json, Value};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::io::{stdin, stdout, BufRead, Write};

const BLOCK: usize = 512; // bytes
const BLOCKS: TableDefinition<u64, &[u8]> = TableDefinition::new("blocks");
const NAMES: TableDefinition<&str, u64> = TableDefinition::new("names"); // of snapshots -> their savepoints

/// Why there is no answer: the code of a refusal, or what redb said.
enum Trouble {
    Refused(&'static str),
    Failed(String),
}

impl<E: std::error::Error> From<E> for Trouble {
    fn from(error: E) -> Self {
        Trouble::Failed(error.to_string())
    }
}

use Trouble::Refused;
type Answer<T> = Result<T, Trouble>;

struct Disk {
    durability: Durability,
    media: Media,
    database: Option<Database>,
    blocks: u64,
    crashes: u64,
    seed: Option<u64>, // of the power cut that is not yet followed by a crash
}

impl Disk {
    /// Forget the database with its power off: what it writes on its way out goes nowhere, nor does a panic.
    fn abandon(&mut self) {
        self.media.power_off();
        let database = self.database.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(database)));
    }

    fn open(&mut self) -> Answer<()> {
        self.database = None;
        self.database = Some(Database::builder().create_with_backend(self.media.clone())?);
        Ok(())
    }

    fn change(&self, durability: Durability) -> Answer<WriteTransaction> {
        let mut change = self.database.as_ref().ok_or(Refused("bad-request"))?.begin_write()?;
        change.set_durability(durability);
        Ok(change)
    }

    fn within(&self, request: &Value, count: u64) -> Answer<u64> {
        let lba = request["lba"].as_u64().ok_or(Refused("bad-request"))?;
        if lba > self.blocks || count > self.blocks - lba {
            return Err(Refused("out-of-range"));
        }
        Ok(lba)
    }

    /// The savepoint that the snapshot is, if there is such a snapshot.
    fn savepoint(&self, name: &str) -> Answer<Option<u64>> {
        let reading = self.database.as_ref().ok_or(Refused("bad-request"))?.begin_read()?;
        match reading.open_table(NAMES) {
            Ok(names) => Ok(names.get(name)?.map(|found| found.value())),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn existing(&self, name: &str) -> Answer<u64> {
        self.savepoint(name)?.ok_or(Refused("no-such-snapshot"))
    }

    fn write(&self, request: &Value) -> Answer<()> {
        let data = STANDARD.decode(request["data"].as_str().ok_or(Refused("bad-request"))?)?;
        let lba = self.within(request, (data.len() / BLOCK) as u64)?;
        let change = self.change(self.durability)?;
        {
            let mut blocks = change.open_table(BLOCKS)?;
            for (index, block) in data.chunks(BLOCK).enumerate() {
                blocks.insert(lba + index as u64, block)?;
            }
        }
        Ok(change.commit()?)
    }

    fn unmap(&self, request: &Value) -> Answer<()> {
        let count = request["count"].as_u64().ok_or(Refused("bad-request"))?;
        let lba = self.within(request, count)?;
        let change = self.change(self.durability)?;
        change.open_table(BLOCKS)?.retain_in(lba..lba + count, |_, _| false)?;
        Ok(change.commit()?)
    }

    /// A change in which the database is as it was at the savepoint.
    ///
    /// Going back invalidates later savepoints until the database is opened again, even if the change is given up.
    fn gone_back(&mut self, savepoint: u64) -> Answer<WriteTransaction> {
        for _ in 0..2 {
            let mut change = self.change(Durability::Immediate)?;
            let gone = change.get_persistent_savepoint(savepoint).and_then(|found| change.restore_savepoint(&found));
            match gone {
                Ok(()) => return Ok(change),
                Err(redb::SavepointError::InvalidSavepoint) => {
                    change.abort()?;
                    self.open()?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Trouble::Failed("the savepoint is invalid".to_string()))
    }

    /// A view is read in a change that goes back to the savepoint and is then given up.
    fn read(&mut self, request: &Value) -> Answer<Value> {
        let count = request["count"].as_u64().ok_or(Refused("bad-request"))?;
        let change = match request["view"].as_str() {
            Some(view) => {
                let savepoint = self.existing(view)?;
                self.gone_back(savepoint)?
            }
            None => self.change(Durability::Immediate)?,
        };
        let lba = self.within(request, count)?;
        let mut data = vec![0; count as usize * BLOCK];
        {
            let blocks = change.open_table(BLOCKS)?;
            for entry in blocks.range(lba..lba + count)? {
                let (at, block) = entry?;
                let start = (at.value() - lba) as usize * BLOCK;
                data[start..start + BLOCK].copy_from_slice(block.value());
            }
        }
        change.abort()?;
        Ok(json!({"data": STANDARD.encode(data)}))
    }

    fn snapshot(&self, name: &str) -> Answer<()> {
        let sound = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > 64 || !name.chars().all(sound) {
            return Err(Refused("bad-request"));
        }
        if self.savepoint(name)?.is_some() {
            return Err(Refused("snapshot-exists"));
        }
        let change = self.change(Durability::Immediate)?;
        let savepoint = change.persistent_savepoint()?;
        change.open_table(NAMES)?.insert(name, savepoint)?;
        Ok(change.commit()?)
    }

    fn delete(&self, name: &str) -> Answer<()> {
        let savepoint = self.existing(name)?;
        let change = self.change(Durability::Immediate)?;
        change.delete_persistent_savepoint(savepoint)?;
        change.open_table(NAMES)?.remove(name)?;
        Ok(change.commit()?)
    }

    /// Recovery, in which the power fails again at the n-th write, if there is an n.
    fn crash(&mut self, cut: Option<u64>) -> Answer<()> {
        self.abandon();
        self.crashes += 1;
        self.media.power_on(self.seed.take().unwrap_or(self.crashes));
        self.media.cut_after(cut);
        self.open()
    }

    fn operate(&mut self, op: &str, request: &Value) -> Answer<Value> {
        let name = request["name"].as_str().unwrap_or("");
        match op {
            "crash" => self.crash(request["cut"]["after"].as_u64())?,
            "write" => self.write(request)?,
            "unmap" => self.unmap(request)?,
            "read" => return self.read(request),
            "flush" => self.change(Durability::Immediate)?.commit()?,
            "snapshot" => self.snapshot(name)?,
            "delete" => self.delete(name)?,
            "restart" => self.open()?,
            "clean" => match self.database.as_mut().ok_or(Refused("bad-request"))?.compact() {
                Err(redb::CompactionError::Storage(error)) => return Err(error.into()),
                _ => (), // it does not compact while there are savepoints
            },
            "checkpoint" => (),
            _ => return Err(Refused("unsupported")),
        }
        Ok(json!({}))
    }

    fn answer(&mut self, request: &Value) -> Answer<Value> {
        match request["op"].as_str().unwrap_or("") {
            "hello" => {
                let profile = if matches!(self.durability, Durability::Immediate) { "ack" } else { "prefix" };
                Ok(json!({"name": "redb", "version": "2.6.4", "block_size": BLOCK, "crash_profile": profile,
                    "cuts": true, "capabilities": ["unmap", "flush", "snapshot", "delete", "crash", "restart", "clean"]}))
            }
            "create" => {
                self.abandon();
                self.media = Media::default();
                self.blocks = request["blocks"].as_u64().ok_or(Refused("bad-request"))?;
                (self.crashes, self.seed) = (0, None);
                self.open()?;
                Ok(json!({}))
            }
            op => {
                if op != "crash" {
                    self.media.cut_after(request["cut"]["after"].as_u64());
                }
                let done = catch_unwind(AssertUnwindSafe(|| self.operate(op, request)));
                self.media.cut_after(None);
                if self.media.is_off() {
                    self.seed = request["cut"]["seed"].as_u64();
                    return Ok(json!({"ok": false, "error": "power-cut"}));
                }
                done.unwrap_or_else(|panic| resume_unwind(panic)) // with the power on it is redb's own
            }
        }
    }
}

fn main() {
    let durability = match std::env::args().nth(1).as_deref() {
        Some("eventual") => Durability::Eventual,
        Some("none") => Durability::None,
        _ => Durability::Immediate,
    };
    let mut disk = Disk { durability, media: Media::default(), database: None, blocks: 0, crashes: 0, seed: None };
    for line in stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.expect("a line of UTF-8")).expect("a JSON object");
        if request["op"] == "bye" {
            break;
        }
        let response = match disk.answer(&request) {
            Ok(mut result) => {
                if result.get("ok").is_none() {
                    result["ok"] = json!(true);
                }
                result
            }
            Err(Refused(code)) => json!({"ok": false, "error": code}),
            Err(Trouble::Failed(text)) if request["op"] == "crash" || request["op"] == "restart" => {
                json!({"ok": false, "error": "data-lost", "message": text})
            }
            Err(Trouble::Failed(text)) => panic!("{text}"),
        };
        let mut out = stdout().lock();
        writeln!(out, "{response}").and_then(|_| out.flush()).expect("somebody listens");
    }
}
