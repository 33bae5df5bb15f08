//! Sending to a peer over ZeroMQ.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::outflow::{block_until, Room};
use super::{End, Host, Peer};
use crate::packet::{cost, Gather};
use crate::sender::account_of;
use crate::zmq::{Link, WHOLE};

/// Hand the packet to ZeroMQ; with `buffering` 0 returns when it was received.
pub fn send_through_link<H: Host>(
    host: &H,
    link: &Link,
    peer: &(impl Peer<H> + ?Sized),
    packet: &Gather<'_>,
    buffering: u64,
) -> Result<(), H::Error> {
    let (outflow, core) = (&*link.outflow, link.outflow.core());
    if core.is_closed() {
        return Err(host.ended(End::Closed));
    }
    if !link.up.load(Ordering::Acquire) || link.lost().is_some() {
        peer.check(host)?;
    }
    let (account, cost) = (account_of(packet), cost(packet.len()));
    let seen = || Some(outflow.all_taken());
    if !outflow.try_acquire(account, cost, buffering) {
        let ready = || {
            let done = outflow.try_acquire(account, cost, buffering);
            if !done {
                link.ask();
            }
            done
        };
        let over = || outflow.may_acquire(account, cost, buffering) || link.lost().is_some();
        let sleep = |limit| core.drive_or_sleep(limit, || over() || core.is_closed());
        block_until(host, core, peer, Room::For(packet.len()), seen, ready, sleep)?;
    }
    let urgent = outflow.waiting(account) > buffering / 2;
    if packet.len() <= WHOLE {
        link.send(packet, urgent);
    } else if let Err(failure) = send_in_parts(host, link, peer, packet, urgent) {
        outflow.release(account, cost);
        return Err(failure);
    }
    outflow.count(packet.len(), packet.head());
    if link.lost().is_some() {
        peer.check(host)?; // lost meanwhile: it went nowhere
    }
    if buffering == 0 {
        let ready = || outflow.waiting(account) == 0;
        let sleep = |limit| core.drive_or_sleep(limit, || ready() || core.is_closed());
        block_until(host, core, peer, Room::Received, seen, ready, sleep)?;
    }
    Ok(())
}

/// Send a packet in parts, each when there is room for it. If it fails, the packet will not arrive.
fn send_in_parts<H: Host>(
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
        // Another thread of this process is at it. Never wait for it with what it may need to
        // finish.
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
        host.release(|| link.send_part(packet, &mut done, urgent));
    }
    Ok(())
}

/// Wait until the peer has taken in enough of the parts before.
fn wait_for_room<H: Host>(
    host: &H,
    link: &Link,
    peer: &(impl Peer<H> + ?Sized),
    length: usize,
) -> Result<(), H::Error> {
    let core = link.outflow.core();
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
