//! ZmqSender: the way to a peer over ZeroMQ.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;

use super::blocked::TICK;
use super::detached::{without_gil, InCall};
use super::encode::{Encoder, PyPacket};
use super::errors::{closed, reentered, too_large};
use super::here;
use super::outflow::block_until;
use super::zmq::Link;
use crate::core::Core;
use crate::packet::{cost, Gather};
use crate::segment::UNSETTLED;
use crate::sender::account_of;
use crate::zmq::{self, WHOLE};

/// The way to a peer through its link.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct ZmqSender {
    link: Arc<zmq::Link>,
    /// The peer's name, and how it is shown.
    name: Py<PyAny>,
    peer: String,
    /// The attributes `dest` and `src` of every message that goes this way, encoded.
    ends: Vec<u8>,
    /// Raises if nothing can arrive.
    check: Py<PyAny>,
}

#[pymethods]
impl ZmqSender {
    #[new]
    fn new(
        link: &Bound<'_, Link>,
        dest: &Bound<'_, PyAny>,
        src: &Bound<'_, PyAny>,
        check: Py<PyAny>,
    ) -> PyResult<ZmqSender> {
        let mut encoder = Encoder::new();
        encoder.add("dest", dest)?;
        encoder.add("src", src)?;
        let (link, peer) = (link.get().link.clone(), dest.repr()?.to_string());
        let (ends, name) = (encoder.entries().to_vec(), dest.clone().unbind());
        Ok(ZmqSender { link, name, peer, ends, check })
    }

    /// Send the packet; see `Route.send`.
    fn send(&self, py: Python<'_>, packet: &Bound<'_, PyPacket>, buffering: u64) -> PyResult<()> {
        let _in_call = InCall::enter(py);
        here::mark(py)?;
        let bytes = packet.get().packet.whole().expect("packed into one place");
        self.write(py, &Gather::of(bytes), buffering)
    }
}

impl ZmqSender {
    /// The attributes `dest` and `src`, two of them.
    pub fn ends(&self) -> &[u8] {
        &self.ends
    }

    fn core(&self) -> &Core {
        self.link.outflow.core()
    }

    /// Hand the packet to ZeroMQ; with `buffering` 0 returns when it was received.
    pub fn write(&self, py: Python<'_>, packet: &Gather<'_>, buffering: u64) -> PyResult<()> {
        let link = &*self.link;
        if self.core().is_closed() {
            return Err(closed(py));
        }
        if !link.up.load(Ordering::Acquire) || link.lost().is_some() {
            self.check.call0(py)?;
        }
        let (account, cost) = (account_of(packet), cost(packet.len()));
        if !link.outflow.try_acquire(account, cost, buffering) {
            self.wait_for_credit(py, account, packet.len(), buffering)?;
        }
        let urgent = link.outflow.waiting(account) > buffering / 2;
        if packet.len() <= WHOLE {
            link.send(packet, urgent);
        } else if let Err(failure) = self.write_parts(py, packet, urgent) {
            link.outflow.release(account, cost);
            return Err(failure);
        }
        link.outflow.count(packet.len(), packet.head());
        if link.lost().is_some() {
            self.check.call0(py)?; // lost meanwhile: it went nowhere
        }
        if buffering == 0 {
            self.wait_until_received(py, account)?;
        }
        Ok(())
    }

    /// Wait until a packet of `length` bytes may go, and count it.
    fn wait_for_credit(
        &self,
        py: Python<'_>,
        account: usize,
        length: usize,
        buffering: u64,
    ) -> PyResult<()> {
        let (link, core, cost) = (&*self.link, self.core(), cost(length));
        let ready = || {
            let done = link.outflow.try_acquire(account, cost, buffering);
            if !done {
                link.ask();
            }
            done.then_some(())
        };
        let over = || link.outflow.may_acquire(account, cost, buffering) || link.lost().is_some();
        let wait = || core.drive_or_sleep(TICK, || over() || core.is_closed());
        let (text, check) = (self.room_for(length), self.check.bind(py));
        block_until(py, core, &text, &self.peer, check, || link.outflow.all_taken(), ready, wait)
    }

    fn wait_until_received(&self, py: Python<'_>, account: usize) -> PyResult<()> {
        let (link, core) = (&*self.link, self.core());
        let text = format!("{} to receive it (buffering=0)", self.peer);
        let over = || link.outflow.waiting(account) == 0;
        let wait = || core.drive_or_sleep(TICK, || over() || core.is_closed());
        let (ready, check) = (|| over().then_some(()), self.check.bind(py));
        block_until(py, core, &text, &self.peer, check, || link.outflow.all_taken(), ready, wait)
    }

    /// Send a packet in parts, each when there is room for it. If it fails, the packet will not
    /// arrive.
    fn write_parts(&self, py: Python<'_>, packet: &Gather<'_>, urgent: bool) -> PyResult<()> {
        let link = &*self.link;
        let _turn = loop {
            if let Some(turn) = link.try_turn() {
                break turn;
            }
            if link.holder.is_this_thread() {
                return Err(reentered(py, &self.peer));
            }
            // Another thread of this process is at it. Never wait for it with the GIL, which it
            // may need to finish.
            without_gil(py, || std::thread::sleep(Duration::from_micros(50)));
            py.check_signals()?;
        };
        let _held = link.holder.enter();
        let mut done = 0;
        while done < packet.len() {
            let mut room = self.wait_for_room(py, packet.len());
            if done > 0 && link.is_refused() {
                room = Err(too_large(py, &self.name, packet.len()));
            }
            if let Err(failure) = room {
                if done > 0 {
                    link.abort();
                }
                return Err(failure);
            }
            without_gil(py, || link.send_part(packet, &mut done, urgent));
        }
        Ok(())
    }

    /// Wait until the peer has taken in enough of the parts before.
    fn wait_for_room(&self, py: Python<'_>, length: usize) -> PyResult<()> {
        let (link, core) = (&*self.link, self.core());
        if !link.has_room() {
            let over = || link.has_room() || link.lost().is_some();
            let wait = || core.drive_or_sleep(TICK, || over() || core.is_closed());
            let ready = || over().then_some(());
            let (text, check) = (self.room_for(length), self.check.bind(py));
            block_until(py, core, &text, &self.peer, check, || UNSETTLED, ready, wait)?;
        }
        if link.lost().is_some() {
            self.check.call0(py)?;
        }
        py.check_signals()
    }

    fn room_for(&self, length: usize) -> String {
        format!("room at {} for {length} bytes", self.peer)
    }
}
