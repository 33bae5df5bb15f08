//! Operations that the program has begun and not ended when it comes to MPI_Finalize: the launcher
//! reports them with the source lines that began them (sfm_kernel/mpi/launch/wording.py).
//!
//! Only its sender knows the line that sent a message; the message carries the number of the call,
//! so a process that has never received it asks the sender to report it.

use std::collections::BTreeMap;

use serde_json::json;
use sfm_endpoint::calltext::shown;
use sfm_endpoint::sites::{self, Site};
use sfm_native::packet::Envelope;

use crate::engine::report::Arguments;
use crate::engine::{self, engine, Collective, MessageKind, Note};
use crate::handles::*;
use crate::request::{self, partitioned};
use crate::{comm, launcher, message, process};

/// Report an unfinished operation. `receiver`: the number of the process that has never received a
/// message; None if the operation is this process's.
fn report(receiver: Option<usize>, event: &str, arguments: &str, site: u32) {
    let site = sites::get(site);
    let call = site.map_or("", |site| &site.call);
    let call = if arguments.is_empty() { call.into() } else { format!("{call}({arguments})") };
    if !launcher::find() {
        eprintln!("MPI_Finalize: the program {event}: {call}");
        return;
    }
    let this = process::this().number() as usize;
    let Some(nth) = process::nth(receiver.unwrap_or(this)) else { return }; // another launcher's
    let (code, line) = site.map_or(("", 0), |site| (&site.code, site.line));
    let text = json!([nth, event, receiver.is_some(), call, code, line]).to_string();
    launcher::report(launcher::UNFINISHED, 0, &text);
}

/// Report the program's requests that are not complete, grouped by the calls that have begun them,
/// with the arguments that all of a group have in common.
pub fn report_requests() {
    let mut found: BTreeMap<u32, (usize, Arguments)> = BTreeMap::new();
    for request in request::all() {
        let site = request.site();
        if !request.is_unfinished(is_dropped_when_over(site)) {
            continue;
        }
        let arguments = request.arguments();
        let (count, same) = found.entry(site).or_insert_with(|| (0, arguments.clone()));
        *count += 1;
        same.retain(|argument| arguments.contains(argument));
    }
    for (site, (count, arguments)) in found {
        let requests = if count == 1 { "request" } else { "requests" };
        let event = format!("ended with {count} unfinished {requests}");
        report(None, &event, &shown(&arguments), site);
    }
}

/// True if the program drops the requests of complete sends on purpose: Python programs do, because
/// mpi4py returns an object that the program need not keep. A send that was not complete at once
/// needs its request nevertheless, since the object keeps the sent memory alive.
fn is_dropped_when_over(site: u32) -> bool {
    let is_mpi4py = |site: &Site| site.code.contains("/mpi4py/");
    !engine().endpoint.surroundings().has_addresses() || sites::get(site).is_some_and(is_mpi4py)
}

/// Report an epoch of a window that was not ended.
pub fn report_epoch(window: &str, open: &str, site: u32) {
    report(None, &format!("ended with {window} in use ({open})"), "", site);
}

/// Ask the senders to report messages here that were never received. All processes have come to
/// MPI_Finalize.
pub fn ask_senders() {
    engine().core.take_in_all();
    engine().advance();
    let mut found: BTreeMap<(usize, u32, u64), (usize, i64)> = BTreeMap::new();
    let mut count = |envelope: &Envelope| {
        let note = Note::of(envelope);
        let context = engine::messages_beside(envelope.context);
        if let Some(context) = context {
            let site = match (note.kind, note.what) {
                (MessageKind::Plain, Collective::Message) => note.number,
                (MessageKind::Plain, _) => engine::site_of(note.number),
                _ => sites::NOWHERE,
            };
            let key = (note.rank, site, context);
            let (count, tag) = found.entry(key).or_insert((0, envelope.tag));
            *count += 1;
            if *tag != envelope.tag {
                *tag = MPI_ANY_TAG.into(); // several
            }
        }
    };
    engine().core.find_queued(|packet| {
        packet.envelope().iter().for_each(&mut count);
        None::<()>
    });
    for (envelope, _) in message::all().iter().filter_map(|message| message.get()) {
        count(envelope);
    }
    for ((sender, site, context), (count, tag)) in found {
        let comm = comm::of_messages(context);
        let mut arguments: Arguments =
            comm.iter().map(|comm| ("dest", comm.rank.to_string())).collect();
        arguments.extend((tag != i64::from(MPI_ANY_TAG)).then(|| ("tag", tag.to_string())));
        arguments.extend(comm.iter().filter_map(|comm| comm::shown::communicator(comm)));
        let arguments = shown(&arguments);
        if sender == engine().rank {
            never_received(sender, site, count, &arguments);
        } else {
            let bytes = arguments.into_bytes();
            engine().send_large_control(MessageKind::Unreceived, sender, site, count as i64, bytes);
        }
    }
}

/// Report that `receiver` has never received `count` messages that this process has sent in one
/// call.
pub fn never_received(receiver: usize, site: u32, count: usize, arguments: &str) {
    // What a partitioned send announces when it is made becomes a message when it is started.
    let count = count.saturating_sub(partitioned::never_started(receiver, site));
    if count == 0 {
        return;
    }
    let messages = if count == 1 { "message" } else { "messages" };
    report(Some(receiver), &format!("never received {count} {messages}"), arguments, site);
}
