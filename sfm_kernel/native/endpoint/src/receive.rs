//! Receiving by a native.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use sfm_native::calls::{Deadline, Matcher, Search, Watch};
use sfm_native::matching::{self, Condition, Taken};
use sfm_native::packet::{u32_at, u64_at, Attribute, Kind as Value, Packet};
use sfm_native::value::{of_float, text, Native, Scalar};

use crate::directory::Member;
use crate::endpoint::Endpoint;
use crate::error::{Error, Kind, Result};
use crate::host::Around;
use crate::name::Name;
use crate::wait_facts;

/// A blocked receive looks up every 100 ms, and so many times less often for the death of whom it
/// waits for: waiting must cost no CPU.
const LOOK_EVERY: u32 = 10;

/// What an attribute must be.
#[derive(Clone, Debug)]
pub enum Wanted {
    Int(i64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// There, and accepted by its kind.
    Any {
        shown: &'static str,
        accepts: fn(Value) -> bool,
    },
}

/// What a receive wants: each attribute once. `src` is not among them.
#[derive(Clone, Debug, Default)]
pub struct Template {
    pub attributes: Vec<(String, Wanted)>,
    pub src: Option<Name>,
}

impl Wanted {
    fn shown(&self) -> String {
        match self {
            Wanted::Int(number) => number.to_string(),
            Wanted::Double(number) => format!("{number:?}"),
            Wanted::Text(text) => wait_facts::short(wait_facts::quoted(text)),
            Wanted::Bytes(bytes) => wait_facts::short(wait_facts::quoted_bytes(bytes)),
            Wanted::Any { shown, .. } => format!("<{shown}>"),
        }
    }

    fn condition<'a>(&'a self, name: &'a str) -> Condition<'a> {
        let (wanted, never_native) = match self {
            Wanted::Int(number) => (Some(Scalar::Int(*number)), false),
            Wanted::Text(text) => (Some(Scalar::Str(text)), false),
            Wanted::Bytes(bytes) => (Some(Scalar::Bytes(bytes)), false),
            Wanted::Double(number) => match of_float(*number) {
                Native::Scalar(scalar) => (Some(scalar), false),
                Native::Nothing => (None, true),
                Native::Opaque => (None, false),
            },
            Wanted::Any { .. } => (None, false),
        };
        Condition { name, wanted, never_native }
    }

    /// Whether a value is the wanted one, where the core leaves that open: because it is large, or
    /// beyond 64 bits. What only Python can compare never is.
    fn is_met(&self, packet: &Packet, one: &Attribute<'_>) -> bool {
        let buffer = || packet.buffer_bytes(u32_at(one.value, 0) as usize);
        match (self, one.kind) {
            (Wanted::Any { accepts, .. }, kind) => accepts(kind),
            (Wanted::Text(text), Value::BigStr) => buffer() == text.as_bytes(),
            (Wanted::Bytes(bytes), Value::BigBytes) => buffer() == &bytes[..],
            (Wanted::Text(text), Value::Str) => one.value == text.as_bytes(),
            (Wanted::Bytes(bytes), Value::Bytes) => one.value == &bytes[..],
            (Wanted::Double(wanted), Value::Float) => {
                f64::from_bits(u64_at(one.value, 0)) == *wanted
            }
            (Wanted::Int(wanted), Value::Int) => u64_at(one.value, 0) as i64 == *wanted,
            (Wanted::Int(wanted), Value::Float) => {
                matches!(of_float(f64::from_bits(u64_at(one.value, 0))),
                    Native::Scalar(Scalar::Int(number)) if number == *wanted)
            }
            (Wanted::Int(wanted), Value::False) => *wanted == 0,
            (Wanted::Int(wanted), Value::True) => *wanted == 1,
            (Wanted::Double(wanted), Value::Int) => {
                matches!(of_float(*wanted),
                    Native::Scalar(Scalar::Int(number)) if number == u64_at(one.value, 0) as i64)
            }
            _ => false,
        }
    }
}

impl Template {
    /// As observers are told it.
    fn told(&self) -> Vec<wait_facts::Condition> {
        let src = self.src.iter().map(|name| ("src".to_owned(), name.to_string(), false));
        let others = self.attributes.iter().map(|(name, wanted)| {
            (name.clone(), wanted.shown(), matches!(wanted, Wanted::Any { .. }))
        });
        src.chain(others).collect()
    }

    fn text(&self, function: &str) -> String {
        wait_facts::call(function, &self.told())
    }

    fn facts(&self) -> String {
        let peers = self.src.clone().map(|src| [src]);
        wait_facts::of_receive(peers.as_ref().map(|peers| &peers[..]), &self.told(), "")
    }
}

/// Take the first match, if it is there.
pub fn take(endpoint: &Endpoint, template: &Template) -> Result<Option<Taken>> {
    let taken = searching(endpoint, template, |search, _| search.take(&Around(endpoint)))?;
    if taken.is_none() {
        polled(endpoint, template, "sfm_recv");
    }
    Ok(taken)
}

/// Whether there is a match.
pub fn peek(endpoint: &Endpoint, template: &Template) -> Result<bool> {
    let found = searching(endpoint, template, |search, _| search.peek(&Around(endpoint)))?;
    if found {
        endpoint.core().shared().polls.end();
    } else {
        polled(endpoint, template, "sfm_peek");
    }
    Ok(found)
}

/// Take the first match, waiting for it; None when the time is up.
pub fn wait(endpoint: &Endpoint, template: &Template, until: Deadline) -> Result<Option<Taken>> {
    let passed_on = Cell::new(false);
    loop {
        let taken = searching(endpoint, template, |search, src| {
            let passed_on = &passed_on;
            let watch = Watched {
                endpoint,
                template,
                src,
                passed_on,
                awaited: None,
                ticks: 0,
                told: false,
            };
            search.wait(&Around(endpoint), until, watch)
        });
        if passed_on.take() {
            continue;
        }
        let taken = taken?;
        if taken.is_none() {
            polled(endpoint, template, "sfm_recv");
        }
        return Ok(taken);
    }
}

/// The error of a `take` for which there was nothing.
pub fn would_block(template: &Template) -> Error {
    let text = format!("no queued message matches {}", template.text("sfm_recv"));
    Error::new(Kind::WouldBlock, text)
}

/// The error of a `wait` whose time is up.
pub fn timed_out(endpoint: &Endpoint, template: &Template, limit: Duration) -> Error {
    let depth = endpoint.core().shared().depth.load(Ordering::Relaxed);
    let (call, limit) = (template.text("sfm_recv"), limit.as_secs_f64());
    let text = format!("no message matched {call} within {limit} s; {depth} others are queued");
    Error::new(Kind::TimedOut, text)
}

/// For observers, of a call that found nothing.
fn polled(endpoint: &Endpoint, template: &Template, function: &str) {
    let shared = endpoint.core().shared();
    if shared.polled() {
        shared.tell_polls(&wait_facts::of_poll(&template.text(function), &template.facts()));
    }
}

/// `work` with the search, and with the name by which whoever is wanted signs its messages.
fn searching<T>(
    endpoint: &Endpoint,
    template: &Template,
    work: impl FnOnce(&mut Search<'_, Match<'_>>, Option<&Name>) -> Result<T>,
) -> Result<T> {
    let src = match &template.src {
        Some(Name::Rank(rank)) => endpoint.name_of_rank(*rank)?,
        other => other.clone(),
    };
    let mut conditions = SmallVec::new();
    if template.src.is_some() {
        let wanted = src.as_ref().map(|name| match name {
            Name::Rank(rank) => Scalar::Int(*rank),
            Name::Text(text) => Scalar::Str(text),
        });
        conditions.push(Condition { name: "src", wanted, never_native: false });
    }
    conditions.extend(template.attributes.iter().map(|(name, wanted)| wanted.condition(name)));
    let late = template.src.as_ref().filter(|_| src.is_none());
    let native = matching::Template { conditions, numbers: None };
    let matcher = Match { endpoint, template, late, native };
    let mut search = Search::new(endpoint.core(), 0, matcher);
    work(&mut search, src.as_ref())
}

/// A native whose last word is said here.
struct Match<'a> {
    endpoint: &'a Endpoint,
    template: &'a Template,
    /// A rank that nobody had when the call began: messages of whoever gets it are wanted.
    late: Option<&'a Name>,
    native: matching::Template<'a>,
}

impl<'a> Matcher<'a, Around<'_>> for Match<'a> {
    fn native(&self) -> &matching::Template<'a> {
        &self.native
    }

    fn accepts(&self, _host: &Around<'_>, packet: &Arc<Packet>) -> Result<bool> {
        let met = |(name, wanted): &(String, Wanted)| {
            packet.find(name).is_some_and(|one| wanted.is_met(packet, &one))
        };
        let Some(rank) = self.late else { return Ok(self.template.attributes.iter().all(met)) };
        let src = match packet.find("src") {
            Some(one) if one.kind == Value::Int => Name::Rank(u64_at(one.value, 0) as i64),
            Some(one) if one.kind == Value::Str => Name::from(text(one.value)),
            _ => return Ok(false),
        };
        let is_src = src == *rank || self.endpoint.lookup(rank)?.is_some_and(|one| one.name == src);
        Ok(is_src && self.template.attributes.iter().all(met))
    }
}

/// What goes with a receive that waits.
struct Watched<'a> {
    endpoint: &'a Endpoint,
    template: &'a Template,
    /// The name that the search looks for.
    src: Option<&'a Name>,
    /// Becomes true where the rank that is wanted belongs to somebody else by now.
    passed_on: &'a Cell<bool>,
    /// Whom the wait is for; as it was when it began.
    awaited: Option<Member>,
    ticks: u32,
    told: bool,
}

impl Watch<Around<'_>> for Watched<'_> {
    fn text(&mut self, _host: &Around<'_>) -> Result<String> {
        if let Some(src) = &self.template.src {
            // It may have been replaced before this wait began.
            self.awaited = self.endpoint.lookup_now(src).ok().flatten();
        }
        let call = self.template.text("sfm_recv");
        if let (Some(name), Some(awaited)) = (self.src, &self.awaited) {
            if awaited.name != *name {
                self.passed_on.set(true);
                return Err(Error::peer_lost(&name.to_string(), &format!("before {call}")));
            }
        }
        Ok(call)
    }

    /// A process that dies while somebody waits for it is lost for that wait, even if another takes
    /// its place at once: the new one does not know what was asked of the old one. So is one who
    /// has left before, but since this endpoint joined; a name that nobody had is waited for.
    fn tick(&mut self, _host: &Around<'_>) -> Result<Option<String>> {
        self.ticks += 1;
        if let Some(src) =
            self.template.src.as_ref().filter(|_| self.ticks.is_multiple_of(LOOK_EVERY))
        {
            if self.awaited.is_none() {
                self.awaited = self.endpoint.lookup_now(src)?; // a late joiner
            }
            let lost = self.awaited.clone().or_else(|| self.endpoint.who_left(src));
            if lost.is_some_and(|lost| !self.endpoint.alive(&lost)) {
                let (own, call) = (&self.endpoint.member().name, self.template.text("sfm_recv"));
                let what = format!("while {own} waited for it in {call}");
                return Err(Error::peer_lost(&src.to_string(), &what));
            }
        }
        Ok((!std::mem::replace(&mut self.told, true)).then(|| self.template.facts()))
    }
}
