//! Sending to a peer through a link.

use std::time::{Duration, Instant};

use super::credit::{block_until, Room};
use super::{End, Host, Peer};
use crate::net::Link;
use crate::packet::{cost, Gather};
use crate::ring_sender::account_of;

/// Time after which a sender that waits for room asks again.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// Hand the packet to the link; with `buffering` 0 returns when it was received.
pub fn send_through_link<H: Host>(
    host: &H,
    link: &Link,
    peer: &(impl Peer<H> + ?Sized),
    packet: &Gather<'_>,
    buffering: u64,
) -> Result<(), H::Error> {
    let (credit, core) = (&*link.credit, link.credit.core());
    if core.is_closed() {
        return Err(host.ended(End::Closed));
    }
    if !link.is_up() {
        peer.check(host)?;
    }
    let (account, cost) = (account_of(packet), cost(packet.len()));
    let seen = || Some(credit.all_taken());
    if !credit.try_acquire(account, cost, buffering) {
        // Each credit answers one question; and either may be lost with a connection.
        let mut asked: Option<(u64, Instant)> = None;
        let ready = || {
            let taken = credit.all_taken();
            let done = credit.try_acquire(account, cost, buffering);
            let waits = |(at, since): (u64, Instant)| at == taken && since.elapsed() < ASK_AGAIN;
            if !done && !asked.is_some_and(waits) {
                asked = Some((taken, Instant::now()));
                link.ask();
            }
            done
        };
        let over = || credit.may_acquire(account, cost, buffering) || link.lost().is_some();
        let sleep = |limit| core.drive_or_sleep(limit, || over() || core.is_closed());
        block_until(host, core, peer, Room::For(packet.len()), seen, ready, sleep)?;
    }
    let urgent = credit.waiting(account) > buffering / 2;
    let sent = if packet.len() > link.largest {
        send_in_chunks(host, link, peer, packet, urgent)
    } else if link.send(packet, urgent) {
        Ok(())
    } else {
        peer.check(host)
    };
    if let Err(failure) = sent {
        credit.release(account, cost);
        return Err(failure);
    }
    credit.count(packet.len(), packet.head());
    if buffering == 0 {
        let ready = || credit.waiting(account) == 0;
        let sleep = |limit| core.drive_or_sleep(limit, || ready() || core.is_closed());
        block_until(host, core, peer, Room::Received, seen, ready, sleep)?;
    }
    Ok(())
}

/// Send a packet in chunks, each when there is room for it. If it fails, the packet will not
/// arrive.
fn send_in_chunks<H: Host>(
    host: &H,
    link: &Link,
    peer: &(impl Peer<H> + ?Sized),
    packet: &Gather<'_>,
    urgent: bool,
) -> Result<(), H::Error> {
    let _turn = loop {
        if let Some(turn) = link.try_turn() {
            break turn;
        }
        if link.holder.is_this_thread() {
            return Err(peer.failed(host, End::Reentered));
        }
        // Another thread of this process is sending. Never wait for it while holding what it may
        // need to finish.
        host.release(|| std::thread::sleep(Duration::from_micros(50)));
        host.signals()?;
    };
    let _held = link.holder.enter();
    let mut done = 0;
    while done < packet.len() {
        let mut room = wait_for_room(host, link, peer, packet.len());
        if done > 0 && link.is_refused() {
            room = Err(peer.failed(host, End::TooLarge(packet.len())));
        }
        if let Err(failure) = room {
            if done > 0 {
                link.abort();
            }
            return Err(failure);
        }
        if !host.release(|| link.send_fragment(packet, &mut done, urgent)) {
            return peer.check(host);
        }
    }
    Ok(())
}

/// Wait until the peer has taken in enough of the earlier chunks.
fn wait_for_room<H: Host>(
    host: &H,
    link: &Link,
    peer: &(impl Peer<H> + ?Sized),
    length: usize,
) -> Result<(), H::Error> {
    let core = link.credit.core();
    if !link.has_room() {
        let ready = || link.has_room() || link.lost().is_some();
        let sleep = |limit| core.drive_or_sleep(limit, || ready() || core.is_closed());
        block_until(host, core, peer, Room::For(length), || None, ready, sleep)?;
    }
    if link.lost().is_some() {
        peer.check(host)?;
    }
    host.signals()
}
