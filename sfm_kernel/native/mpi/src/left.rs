//! What the program has begun and not ended when it comes to MPI_Finalize: the launcher tells it with
//! the lines that have begun it (sfm_kernel/mpi/launch/left.py).
//!
//! The line that sent a message is known to its sender only, by the number of the call that the
//! message carries: who has never received it asks the sender to tell.

use std::collections::BTreeMap;

use serde_json::json;
use sfm_endpoint::calltext::shown;
use sfm_endpoint::sites::{self, Site};
use sfm_native::packet::Envelope;

use crate::engine::told::Arguments;
use crate::engine::{self, engine, told, Kind, Note, What};
use crate::handles::*;
use crate::{comm, launcher, message, process, request};

/// The number of the call that the program is in, for what it begins there.
pub fn site() -> u32 {
    engine().endpoint.surroundings().site()
}

/// Say that something is left. `who`: the number of the process that has left it, if it is not this
/// one, which has sent it a message then.
fn tell(who: Option<usize>, what: &str, arguments: &str, site: u32) {
    let site = sites::get(site);
    let call = site.map_or("", |site| &site.call);
    let call = if arguments.is_empty() { call.into() } else { format!("{call}({arguments})") };
    if !launcher::find() {
        eprintln!("MPI_Finalize: the program {what}: {call}");
        return;
    }
    let own = process::own().number() as usize;
    let Some(nth) = process::nth(who.unwrap_or(own)) else { return }; // another launcher's
    let (code, line) = site.map_or(("", 0), |site| (&site.code, site.line));
    let text = json!([nth, what, who.is_some(), call, code, line]).to_string();
    launcher::tell(launcher::LEFT, 0, &text);
}

/// The program's requests that are not complete, by the calls that have begun them; of arguments
/// those that are the same in all.
pub fn tell_requests() {
    let mut found: BTreeMap<u32, (usize, Arguments)> = BTreeMap::new();
    for one in request::all() {
        let site = one.site();
        if !one.is_left(is_dropped_when_over(site)) {
            continue;
        }
        let arguments = one.arguments();
        let (count, same) = found.entry(site).or_insert_with(|| (0, arguments.clone()));
        *count += 1;
        same.retain(|argument| arguments.contains(argument));
    }
    for (site, (count, arguments)) in found {
        let requests = if count == 1 { "request" } else { "requests" };
        let what = format!("ended with {count} unfinished {requests}");
        tell(None, &what, &shown(&arguments), site);
    }
}

/// Whether a program lets go of its sends' requests and means nothing by it: Python's do, where
/// mpi4py has returned an object that nobody keeps. One that was not over at once needs it, all the
/// same, since the object keeps the memory that is sent.
fn is_dropped_when_over(site: u32) -> bool {
    let is_mpi4py = |site: &Site| site.code.contains("/mpi4py/");
    !engine().endpoint.surroundings().has_addresses() || sites::get(site).is_some_and(is_mpi4py)
}

/// An epoch of a window that was not ended.
pub fn tell_epoch(window: &str, open: &str, site: u32) {
    tell(None, &format!("ended with {window} in use ({open})"), "", site);
}

/// Have those tell who have sent a message here that was never received. All have come to
/// MPI_Finalize.
pub fn ask_senders() {
    engine().core.take_in_all();
    engine().advance();
    let mut found: BTreeMap<(usize, u32, u64), (usize, i64)> = BTreeMap::new();
    let mut count = |envelope: &Envelope| {
        let note = Note::of(envelope);
        let context = engine::messages_beside(envelope.context);
        if let Some(context) = context.filter(|_| note.what == What::Message) {
            let site = if note.kind == Kind::Plain { note.number } else { sites::NOWHERE };
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
    for (envelope, _) in message::all().iter().filter_map(|one| one.get()) {
        count(envelope);
    }
    for ((sender, site, context), (count, tag)) in found {
        let comm = comm::of_messages(context);
        let mut arguments: Arguments =
            comm.iter().map(|comm| ("dest", comm.rank.to_string())).collect();
        arguments.extend((tag != i64::from(MPI_ANY_TAG)).then(|| ("tag", tag.to_string())));
        arguments.extend(comm.iter().filter_map(|comm| told::communicator(comm)));
        let arguments = shown(&arguments);
        if sender == engine().rank {
            never_received(sender, site, count, &arguments);
        } else {
            let bytes = arguments.into_bytes();
            engine().say_more(Kind::Unreceived, sender, site, count as i64, bytes);
        }
    }
}

/// Of messages that this process has sent in one call, `receiver` has never received so many.
pub fn never_received(receiver: usize, site: u32, count: usize, arguments: &str) {
    let messages = if count == 1 { "message" } else { "messages" };
    tell(Some(receiver), &format!("never received {count} {messages}"), arguments, site);
}
