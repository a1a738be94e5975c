//! The media under redb: memory that knows what was synced, and what a power cut may leave of the rest.

use redb::StorageBackend;
use std::io::{Error, Result};
use std::sync::{Arc, Mutex};

const SECTOR: usize = 512; // bytes; what a power cut tears a write at

#[derive(Debug)]
enum Step {
    Write(usize, Vec<u8>),
    Resize(usize),
    Barrier,
}

#[derive(Debug, Default)]
struct State {
    stable: Vec<u8>,
    now: Vec<u8>,
    pending: Vec<Step>,
    left: Option<u64>, // writes until the power fails
    off: bool,
}

/// A disk in memory; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Media(Arc<Mutex<State>>);

impl Media {
    /// The power fails at the n-th write from now on; never, if there is no n.
    pub fn cut_after(&self, writes: Option<u64>) {
        self.0.lock().unwrap().left = writes;
    }

    pub fn is_off(&self) -> bool {
        self.0.lock().unwrap().off
    }

    /// From now on nothing is written any more.
    pub fn power_off(&self) {
        self.0.lock().unwrap().off = true;
    }

    /// The power comes back: what was synced is there, and of the rest what `seed` says.
    ///
    /// All before one barrier, and some of the writes between it and the next, each whole or torn.
    pub fn power_on(&self, seed: u64) {
        let mut state = self.0.lock().unwrap();
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let barriers = state.pending.iter().filter(|step| matches!(step, Step::Barrier)).count() as u64;
        let reached = random.below(barriers + 1);
        let odds = [0, 2, 5, 8, 10][random.below(5) as usize];
        let mut passed = 0;
        for step in std::mem::take(&mut state.pending) {
            let certain = passed < reached;
            match step {
                Step::Barrier if passed == reached => break,
                Step::Barrier => passed += 1,
                Step::Resize(length) => state.stable.resize(length, 0),
                Step::Write(at, data) => {
                    let survives = certain || random.below(10) < odds;
                    let torn = !certain && random.below(4) == 0;
                    for (index, sector) in data.chunks(SECTOR).enumerate() {
                        if survives && !(torn && random.below(2) == 0) {
                            put(&mut state.stable, at + index * SECTOR, sector);
                        }
                    }
                }
            }
        }
        state.now = state.stable.clone();
        state.left = None;
        state.off = false;
    }

    fn write_counts(state: &mut State) {
        if let Some(left) = state.left.as_mut() {
            *left -= 1;
            if *left == 0 {
                state.off = true;
            }
        }
    }
}

fn put(content: &mut Vec<u8>, at: usize, data: &[u8]) {
    if content.len() < at + data.len() {
        content.resize(at + data.len(), 0);
    }
    content[at..at + data.len()].copy_from_slice(data);
}

fn lost() -> Error {
    Error::other("the power is off")
}

impl StorageBackend for Media {
    fn len(&self) -> Result<u64> {
        Ok(self.0.lock().unwrap().now.len() as u64)
    }

    fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        Ok(self.0.lock().unwrap().now[offset as usize..offset as usize + len].to_vec())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let mut state = self.0.lock().unwrap();
        if state.off {
            return Err(lost());
        }
        state.now.resize(len as usize, 0);
        state.pending.push(Step::Resize(len as usize));
        Ok(())
    }

    fn sync_data(&self, eventual: bool) -> Result<()> {
        let mut state = self.0.lock().unwrap();
        if state.off {
            return Err(lost());
        }
        if eventual {
            state.pending.push(Step::Barrier);
        } else {
            state.stable = state.now.clone();
            state.pending.clear();
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut state = self.0.lock().unwrap();
        if state.off {
            return Err(lost());
        }
        put(&mut state.now, offset as usize, data);
        state.pending.push(Step::Write(offset as usize, data.to_vec()));
        Media::write_counts(&mut state);
        Ok(())
    }
}

/// Marsaglia's xorshift64*: enough to choose by.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % limit
    }
}
