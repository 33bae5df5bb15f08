//! Sending where the transport itself does not count: waiting for credit, and within a process.

use std::sync::Arc;
use std::time::Duration;

use super::ring::RELEASE_FROM;
use super::{wait, End, Goal, Host, Peer, WaitFacts};
use crate::bell::Woken;
use crate::core::Core;
use crate::core::SendCredit;
use crate::json::Json;
use crate::packet::{cost, Gather};
use crate::ring_sender::account_of;
use crate::segment::{Activity, UNSETTLED};

/// The condition that a send waits for.
pub enum Room {
    /// Room for a packet of this many bytes.
    For(usize),
    /// The receipt of the packet.
    Received,
}

/// The facts of a wait for this condition at `peer`, as its host writes its name.
pub fn facts_of_send(peer: &str, room: &Room) -> WaitFacts {
    let text = match room {
        Room::For(nbytes) => format!("room at {peer} for {nbytes} bytes"),
        Room::Received => format!("{peer} to receive it (buffering=0)"),
    };
    let mut quoted = Json::default();
    quoted.text(peer);
    let facts = format!("{{\"kind\": \"send\", \"peer\": {}}}", quoted.0);
    WaitFacts { activity: Activity::Sending, text, facts }
}

/// Wait until `ready()`, for a send to `peer`. `sleep` sleeps until then, for at most the given
/// time. `seen()`: what the peer had taken when it was not ready; None if the peer need not receive
/// anything for it to become so.
pub fn block_until<H: Host>(
    host: &H,
    core: &Core,
    peer: &(impl Peer<H> + ?Sized),
    room: Room,
    seen: impl Fn() -> Option<u64>,
    ready: impl FnMut() -> bool,
    sleep: impl FnMut(Duration) -> Woken + Send,
) -> Result<(), H::Error> {
    let mut goal = Ready { peer, room, seen, ready, sleep, examined: UNSETTLED };
    wait(host, core, &mut goal, None).map(|done| done.expect("no limit"))
}

struct Ready<'a, P: ?Sized, S, R, W> {
    peer: &'a P,
    room: Room,
    seen: S,
    ready: R,
    sleep: W,
    examined: u64,
}

impl<H, P, S, R, W> Goal<H> for Ready<'_, P, S, R, W>
where
    H: Host,
    P: Peer<H> + ?Sized,
    S: Fn() -> Option<u64>,
    R: FnMut() -> bool,
    W: FnMut(Duration) -> Woken + Send,
{
    type Out = ();

    fn poll(&mut self, _host: &H, _all: bool) -> Result<Option<()>, H::Error> {
        // Observers compare it with what the peer has taken: so it is not read after the check.
        self.examined = (self.seen)().unwrap_or(UNSETTLED);
        Ok((self.ready)().then_some(()))
    }

    fn spin(&mut self, _host: &H) -> bool {
        false
    }

    fn sleep(&mut self, host: &H, limit: Duration) -> Woken {
        host.release(|| (self.sleep)(limit))
    }

    fn examined(&self) -> u64 {
        self.examined
    }

    fn facts(&mut self, _host: &H) -> Result<Option<WaitFacts>, H::Error> {
        Ok(Some(facts_of_send(self.peer.shown(), &self.room)))
    }

    fn tick(&mut self, host: &H) -> Result<Option<String>, H::Error> {
        self.peer.check(host).map(|()| None)
    }
}

/// Put the packet into another inbox of this process; with `buffering` 0 returns when it was
/// received. The host's lock keeps another thread's packet from coming between counting and
/// delivery.
pub fn send_in_process<H: Host>(
    host: &H,
    credit: &SendCredit,
    (inbox, inbound): (&Core, u32),
    peer: &(impl Peer<H> + ?Sized),
    packet: &Gather<'_>,
    buffering: u64,
) -> Result<(), H::Error> {
    let core = credit.core();
    let (account, cost) = (account_of(packet), cost(packet.len()));
    if core.is_closed() {
        return Err(host.ended(End::Closed));
    }
    let copy = if packet.len() < RELEASE_FROM {
        packet.to_packet()
    } else {
        host.release(|| packet.to_packet())
    };
    let Some(copy) = copy else { return Err(host.ended(End::NoMemory)) };
    let seen = || Some(credit.all_taken());
    if !credit.try_acquire(account, cost, buffering) {
        let ready = || credit.try_acquire(account, cost, buffering);
        let sleep = |limit| {
            let over = || credit.may_acquire(account, cost, buffering) || core.is_closed();
            core.wait_as_sender(limit, over)
        };
        block_until(host, core, peer, Room::For(packet.len()), seen, ready, sleep)?;
    }
    if inbox.is_closed() {
        credit.release(account, cost);
        peer.check(host)?;
        return Err(host.ended(End::Closed));
    }
    inbox.deliver(inbound, Arc::new(copy), false);
    credit.count(packet.len(), packet.head());
    if buffering == 0 {
        let ready = || credit.waiting(account) == 0;
        let sleep = |limit| core.wait_as_sender(limit, || ready() || core.is_closed());
        block_until(host, core, peer, Room::Received, seen, ready, sleep)?;
    }
    Ok(())
}
