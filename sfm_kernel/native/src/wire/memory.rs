//! A carrier in memory, for tests: whoever plays the network takes the frames out, and decides what
//! becomes of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::send_queue::SendQueue;
use super::Wire;
use crate::sync::lock;

/// One end of a connection.
pub struct Memory {
    id: u64,
    shared: bool,
    pub confirmed: AtomicBool,
    broken: AtomicBool,
    queue: Mutex<SendQueue>,
}

impl Memory {
    pub fn new(id: u64, shared: bool) -> Arc<Memory> {
        let (confirmed, broken) = (AtomicBool::new(shared), AtomicBool::new(false));
        Arc::new(Memory { id, shared, confirmed, broken, queue: Mutex::default() })
    }

    /// The next frame that goes.
    pub fn pop(&self) -> Option<Vec<u8>> {
        Some(lock(&self.queue).pop()?.to_vec())
    }

    /// The number of frames that have not gone yet.
    pub fn waiting(&self) -> usize {
        lock(&self.queue).pieces().count()
    }

    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }
}

impl Wire for Memory {
    fn id(&self) -> u64 {
        self.id
    }

    fn is_shared(&self) -> bool {
        self.shared
    }

    fn is_confirmed(&self) -> bool {
        self.confirmed.load(Ordering::Relaxed)
    }

    fn with_queue(&self, change: impl FnOnce(&mut SendQueue)) {
        change(&mut lock(&self.queue));
    }

    fn break_off(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }
}
