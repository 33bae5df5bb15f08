//! What is known, and chosen, of the kernel's side of a connection.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::Mutex;
use std::time::Duration;

use super::warmth::Warmth;
use crate::clock::monotonic as now;
use crate::sync::lock;
use crate::tcp_history::History;
use crate::tcp_info::TcpInfo;

pub struct TcpState {
    /// A `Warmth`.
    warmth: AtomicU8,
    seen: Mutex<Seen>,
}

/// What observers are told.
#[derive(Clone, Default)]
pub struct Seen {
    pub history: History,
    /// When something was last written, in nanoseconds; 0: never.
    pub wrote: u64,
    /// The congestion control that was requested and that the kernel refused; "" if none.
    pub refused: String,
}

impl Default for TcpState {
    fn default() -> TcpState {
        TcpState { warmth: AtomicU8::new(Warmth::Unknown as u8), seen: Mutex::default() }
    }
}

impl TcpState {
    /// Call `write`, which returns the number of bytes that it has written to this socket.
    pub fn watch<E>(
        &self,
        socket: RawFd,
        write: impl FnOnce() -> Result<usize, E>,
    ) -> Result<usize, E> {
        let mut seen = lock(&self.seen);
        let at = now();
        let silence = if seen.wrote == 0 { 0 } else { at.saturating_sub(seen.wrote) };
        let sent = seen.history.watch(socket, Duration::from_nanos(silence), write)?;
        seen.wrote = at;
        seen.history.wrote(sent as u64);
        Ok(sent)
    }

    /// Somebody is about to write so many bytes; `look` reads what the kernel reports.
    pub fn expect(&self, bytes: usize, look: impl FnOnce() -> Option<TcpInfo>) {
        let mut seen = lock(&self.seen);
        let at = now();
        let silence = if seen.wrote == 0 { 0 } else { at.saturating_sub(seen.wrote) };
        seen.history.expect(Duration::from_nanos(silence), look);
        seen.wrote = at;
        seen.history.wrote(bytes as u64);
    }

    /// That may have been written by now.
    pub fn look_after(&self, look: impl FnOnce() -> Option<TcpInfo>) {
        lock(&self.seen).history.look_after(look);
    }

    /// The connection's means to keep its congestion window.
    pub fn warmth(&self) -> Warmth {
        Warmth::from_u8(self.warmth.load(Ordering::Relaxed))
    }

    /// `refused`: the congestion control that the kernel refused; "" if none.
    pub(super) fn set_warmth(&self, warmth: Warmth, refused: &str) {
        self.warmth.store(warmth as u8, Ordering::Relaxed);
        lock(&self.seen).refused = refused.to_owned();
    }

    /// Record what the kernel reports now.
    pub fn sample(&self, info: &TcpInfo) {
        lock(&self.seen).history.sample(info);
    }

    pub fn seen(&self) -> Seen {
        lock(&self.seen).clone()
    }
}
