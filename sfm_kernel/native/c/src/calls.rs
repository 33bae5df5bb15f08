//! Sending and receiving.

use std::ffi::{c_char, c_int};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use sfm_endpoint::receive::{self, Template};
use sfm_endpoint::{Endpoint, Kind, Name, Route};
use sfm_native::calls::deadline;

use crate::arguments::{limit, name, required, text, writable};
use crate::codes::{answer, Failure, Result};
use crate::endpoint::{endpoint, Handle};
use crate::message::Message;
use crate::packet::Packet;

pub unsafe extern "C" fn send(handle: *const Handle, rank: c_int, packet: *const Packet) -> c_int {
    answer(|| {
        if rank < 0 {
            return Err(Failure::argument(format!("rank {rank}: ranks are not negative")));
        }
        deliver(&*endpoint(handle)?, &Name::Rank(rank.into()), required(packet, "the packet")?)
    })
}

pub unsafe extern "C" fn send_to(
    handle: *const Handle,
    to: *const c_char,
    packet: *const Packet,
) -> c_int {
    answer(|| {
        let dest = name(text(to, "the destination")?);
        deliver(&*endpoint(handle)?, &dest, required(packet, "the packet")?)
    })
}

fn deliver(endpoint: &Endpoint, dest: &Name, packet: &Packet) -> Result {
    let buffering = endpoint.buffering.load(Ordering::Relaxed);
    let send_on = |route: &Arc<Route>| -> Result<sfm_endpoint::Result<()>> {
        let mut builder = packet.encode(route)?;
        // SAFETY: the packet owns its texts and bytes, and the caller keeps the arrays that it has
        // set.
        let gather = unsafe { builder.finish() };
        Ok(route.send(endpoint, &gather, buffering))
    };
    let route = endpoint.route(dest)?;
    let Err(lost) = send_on(&route)? else { return Ok(()) };
    if lost.kind != Kind::PeerLost {
        return Err(lost.into());
    }
    // Another process may have taken over the name.
    match endpoint.successor(dest, &route) {
        Ok(Some(successor)) => Ok(send_on(&successor)??),
        _ => Err(lost.into()),
    }
}

unsafe fn template_of(template: *const Packet) -> Result<Template> {
    template.as_ref().map_or_else(|| Ok(Template::default()), Packet::template)
}

pub unsafe extern "C" fn recv(
    handle: *const Handle,
    template: *const Packet,
    seconds: f64,
    message: *mut *mut Message,
) -> c_int {
    answer(|| {
        let to = writable(message, "the pointer to the message")?;
        let (endpoint, template, limit) =
            (endpoint(handle)?, template_of(template)?, limit(seconds)?);
        let taken = if limit == Some(Duration::ZERO) {
            receive::take(&endpoint, &template)?.ok_or_else(|| receive::would_block(&template))?
        } else {
            let taken = receive::wait(&endpoint, &template, deadline(limit))?;
            let limit = limit.unwrap_or_default();
            taken.ok_or_else(|| receive::timed_out(&endpoint, &template, limit))?
        };
        *to = Box::into_raw(Box::new(Message::new(taken.packet)));
        Ok(())
    })
}

pub unsafe extern "C" fn peek(
    handle: *const Handle,
    template: *const Packet,
    found: *mut c_int,
) -> c_int {
    answer(|| {
        let to = writable(found, "the pointer to the answer")?;
        let (endpoint, template) = (endpoint(handle)?, template_of(template)?);
        *to = c_int::from(receive::peek(&endpoint, &template)?);
        Ok(())
    })
}
