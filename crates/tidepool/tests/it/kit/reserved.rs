//! What tests that run at once must not share: ports here, and blocks of ports on a host. Reserved until this process ends.

use std::fs::{self, File};
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};

/// The files whose locks say what this process has.
static HELD: Mutex<Vec<File>> = Mutex::new(vec![]);

/// Assistants on a host have ports ten apart, from the first of a block on.
const FIRST: u16 = 2_000;
pub const BLOCK: u16 = 290;
const BLOCKS: u16 = 100;

/// Not one that the kernel gives to whoever asks for any: it would have given it away again before it is used here.
pub fn free_port() -> u16 {
    loop {
        let port = 10_000 + random() % 22_000;
        if reserve(&port.to_string()) && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// The first port of a block on a machine that cases share.
pub fn block_of_ports(machine: &str) -> u16 {
    loop {
        let block = random() % BLOCKS;
        if reserve(&format!("{machine}-{block}")) {
            return FIRST + block * BLOCK;
        }
    }
}

fn random() -> u16 {
    u16::from_le_bytes(base::secret::random_bytes::<2>().unwrap())
}

/// False where another test, or this one, has it.
fn reserve(name: &str) -> bool {
    let folder = std::env::temp_dir().join("tidepool-ports");
    fs::create_dir_all(&folder).unwrap();
    let file = File::create(folder.join(name)).unwrap();
    let free = file.try_lock().is_ok();
    if free {
        HELD.lock().unwrap_or_else(PoisonError::into_inner).push(file);
    }
    free
}
