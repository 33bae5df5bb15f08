//! Sending to a peer that shares memory.

use std::time::{Duration, Instant};

use super::credit::{facts_of_send, Room};
use super::{wait, End, Goal, Host, Peer, WaitFacts};
use crate::bell::Woken;
use crate::packet::Gather;
use crate::ring_sender::{account_of, Progress, RingSender, Step, Writing};

/// Time that a peer may take to end, once its segment says that it has died: its memory goes first,
/// then its lock. A peer that holds the lock for longer lives, and its segment is damaged.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes from which on the host's lock is released while they are copied.
pub const RELEASE_FROM: usize = 1 << 18;

/// Write the packet; returns when it is in the ring, with `buffering` 0 when it was received.
pub fn send_through_ring<H: Host>(
    host: &H,
    sender: &RingSender,
    peer: &(impl Peer<H> + ?Sized),
    packet: &Gather<'_>,
    buffering: u64,
) -> Result<(), H::Error> {
    let core = &*sender.core;
    let mut guard = loop {
        if core.is_closed() {
            return Err(host.ended(End::Closed));
        }
        if let Some(writing) = sender.try_lock() {
            break writing;
        }
        if sender.holder.is_this_thread() {
            return Err(peer.failed(host, End::Reentered));
        }
        // Another thread of this process is sending to the same peer. Never wait for it while
        // holding what it may need to finish.
        host.release(|| std::thread::sleep(Duration::from_micros(50)));
        host.signals()?;
    };
    let writing = &mut *guard;
    if sender.peer_departed() || sender.doubts(writing) {
        let _held = sender.holder.enter();
        peer.check(host)?;
    }
    if sender.peer_died(writing) {
        wait_for_end(host, sender, peer, writing)?;
    }
    if sender.is_refused(writing) {
        let _held = sender.holder.enter();
        return Err(peer.failed(host, End::MessagesLost));
    }
    let mut progress = Progress::default();
    let step = if packet.len() < RELEASE_FROM {
        let step = sender.advance(writing, packet, &mut progress, buffering);
        // The peer is waking up, or reads already; meanwhile this thread does what only observers
        // need.
        let _held = sender.holder.enter();
        host.locate();
        if step == Step::Done {
            sender.record(writing, packet);
        }
        step
    } else {
        {
            let _held = sender.holder.enter();
            host.locate();
        }
        host.release(|| sender.step(writing, packet, &mut progress, buffering))
    };
    if step != Step::Done {
        let _held = sender.holder.enter();
        let mut goal = Written { sender, peer, writing, packet, progress, buffering, step };
        if let Err(failure) = wait(host, core, &mut goal, None) {
            let Written { writing, progress, .. } = goal;
            sender.abort(writing, progress);
            return Err(failure);
        }
    }
    if buffering == 0 {
        let _held = sender.holder.enter();
        let mut goal = Drained { sender, peer, writing, account: account_of(packet) };
        wait(host, core, &mut goal, None)?;
    }
    Ok(())
}

/// The peer's segment says that it has died: returns if that is not so.
#[cold]
fn wait_for_end<H: Host>(
    host: &H,
    sender: &RingSender,
    peer: &(impl Peer<H> + ?Sized),
    writing: &mut Writing,
) -> Result<(), H::Error> {
    let _held = sender.holder.enter();
    let patience = Instant::now() + PATIENCE;
    while Instant::now() < patience {
        peer.check(host)?; // fails as soon as the kernel has dropped the dead process's lock
        host.release(|| std::thread::sleep(Duration::from_micros(200)));
        host.signals()?;
    }
    writing.distrust();
    Ok(())
}

/// The goal: a packet is in the ring.
struct Written<'a, P: ?Sized> {
    sender: &'a RingSender,
    peer: &'a P,
    writing: &'a mut Writing,
    packet: &'a Gather<'a>,
    progress: Progress,
    buffering: u64,
    /// The result of the latest step.
    step: Step,
}

impl<H: Host, P: Peer<H> + ?Sized> Goal<H> for Written<'_, P> {
    type Out = ();

    fn poll(&mut self, host: &H, _all: bool) -> Result<Option<()>, H::Error> {
        match self.step {
            Step::Done => Ok(Some(())),
            Step::Refused => Err(self.peer.failed(host, End::TooLarge(self.packet.len()))),
            Step::Blocked if self.sender.is_refused(self.writing) => {
                Err(self.peer.failed(host, End::MessagesLost))
            }
            Step::Blocked => Ok(None),
        }
    }

    fn spin(&mut self, _host: &H) -> bool {
        false
    }

    /// Also goes on writing: the host's lock is released once for both.
    fn sleep(&mut self, host: &H, limit: Duration) -> Woken {
        let Written { sender, writing, packet, progress, buffering, .. } = self;
        let (step, woken) = host.release(|| {
            let woken = sender.wait(writing, packet, progress, *buffering, limit);
            (sender.step(writing, packet, progress, *buffering), woken)
        });
        self.step = step;
        woken
    }

    fn examined(&self) -> u64 {
        self.writing.seen
    }

    fn facts(&mut self, _host: &H) -> Result<Option<WaitFacts>, H::Error> {
        Ok(Some(facts_of_send(self.peer.shown(), &Room::For(self.packet.len()))))
    }

    fn tick(&mut self, host: &H) -> Result<Option<String>, H::Error> {
        self.peer.check(host).map(|()| None)
    }
}

/// The goal: all that was sent on an account was received.
struct Drained<'a, P: ?Sized> {
    sender: &'a RingSender,
    peer: &'a P,
    writing: &'a mut Writing,
    account: usize,
}

impl<H: Host, P: Peer<H> + ?Sized> Goal<H> for Drained<'_, P> {
    type Out = ();

    fn poll(&mut self, host: &H, _all: bool) -> Result<Option<()>, H::Error> {
        if self.sender.drained(self.writing, self.account) {
            return Ok(Some(()));
        }
        if self.sender.is_refused(self.writing) {
            return Err(self.peer.failed(host, End::MessagesLost));
        }
        Ok(None)
    }

    fn spin(&mut self, _host: &H) -> bool {
        false
    }

    fn sleep(&mut self, host: &H, limit: Duration) -> Woken {
        let Drained { sender, writing, account, .. } = self;
        host.release(|| sender.wait_drained(writing, *account, limit))
    }

    fn examined(&self) -> u64 {
        self.writing.seen
    }

    fn facts(&mut self, _host: &H) -> Result<Option<WaitFacts>, H::Error> {
        Ok(Some(facts_of_send(self.peer.shown(), &Room::Received)))
    }

    fn tick(&mut self, host: &H) -> Result<Option<String>, H::Error> {
        self.peer.check(host).map(|()| None)
    }
}
