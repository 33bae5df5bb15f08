//! Receiving by a template of values that can be compared here.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

use sfm_native::calls::{Deadline, Matcher, Search, Watch};
use sfm_native::matching::{self, Condition, Taken};
use sfm_native::packet::{u32_at, u64_at, Attribute, Kind as Value, Packet};
use sfm_native::value::{from_float, text, Native, Scalar};

use crate::directory::Member;
use crate::endpoint::Endpoint;
use crate::error::{Error, Kind, Result};
use crate::host::Around;
use crate::name::Name;
use crate::wait_facts;

/// Ticks, of 100 ms, between two checks that the awaited peer lives: waiting must cost no CPU.
const CHECK_EVERY: u32 = 10;

/// A condition on an attribute.
#[derive(Clone, Debug)]
pub enum Expected {
    Int(i64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// Present, and accepted by its kind.
    Any {
        shown: &'static str,
        accepts: fn(Value) -> bool,
    },
}

/// A receive's conditions: each attribute once. `src` is not among them.
#[derive(Clone, Debug, Default)]
pub struct Template {
    pub attributes: Vec<(String, Expected)>,
    pub src: Option<Name>,
}

impl Expected {
    fn shown(&self) -> String {
        match self {
            Expected::Int(number) => number.to_string(),
            Expected::Double(number) => format!("{number:?}"),
            Expected::Text(text) => wait_facts::short(wait_facts::quoted(text)),
            Expected::Bytes(bytes) => wait_facts::short(wait_facts::quoted_bytes(bytes)),
            Expected::Any { shown, .. } => format!("<{shown}>"),
        }
    }

    fn condition<'a>(&'a self, name: &'a str) -> Condition<'a> {
        let (expected, never_native) = match self {
            Expected::Int(number) => (Some(Scalar::Int(*number)), false),
            Expected::Text(text) => (Some(Scalar::Str(text)), false),
            Expected::Bytes(bytes) => (Some(Scalar::Bytes(bytes)), false),
            Expected::Double(number) => match from_float(*number) {
                Native::Scalar(scalar) => (Some(scalar), false),
                Native::Nothing => (None, true),
                Native::Opaque => (None, false),
            },
            Expected::Any { .. } => (None, false),
        };
        Condition { name, expected, never_native }
    }

    /// Whether a value meets the condition, if the core leaves that open: because it is large, or
    /// beyond 64 bits. A value that only Python can compare never does.
    fn is_met(&self, packet: &Packet, attribute: &Attribute<'_>) -> bool {
        let buffer = || packet.buffer_bytes(u32_at(attribute.value, 0) as usize);
        match (self, attribute.kind) {
            (Expected::Any { accepts, .. }, kind) => accepts(kind),
            (Expected::Text(text), Value::BigStr) => buffer() == text.as_bytes(),
            (Expected::Bytes(bytes), Value::BigBytes) => buffer() == &bytes[..],
            (Expected::Text(text), Value::Str) => attribute.value == text.as_bytes(),
            (Expected::Bytes(bytes), Value::Bytes) => attribute.value == &bytes[..],
            (Expected::Double(expected), Value::Float) => {
                f64::from_bits(u64_at(attribute.value, 0)) == *expected
            }
            (Expected::Int(expected), Value::Int) => u64_at(attribute.value, 0) as i64 == *expected,
            (Expected::Int(expected), Value::Float) => {
                matches!(from_float(f64::from_bits(u64_at(attribute.value, 0))),
                    Native::Scalar(Scalar::Int(number)) if number == *expected)
            }
            (Expected::Int(expected), Value::False) => *expected == 0,
            (Expected::Int(expected), Value::True) => *expected == 1,
            (Expected::Double(expected), Value::Int) => {
                matches!(from_float(*expected),
                    Native::Scalar(Scalar::Int(number)) if number == u64_at(attribute.value, 0) as i64)
            }
            _ => false,
        }
    }
}

impl Template {
    /// The conditions as observers see them.
    fn conditions(&self) -> Vec<wait_facts::Condition> {
        let src = self.src.iter().map(|name| ("src".to_owned(), name.to_string(), false));
        let others = self.attributes.iter().map(|(name, expected)| {
            (name.clone(), expected.shown(), matches!(expected, Expected::Any { .. }))
        });
        src.chain(others).collect()
    }

    fn text(&self, function: &str) -> String {
        wait_facts::call(function, &self.conditions())
    }

    fn facts(&self) -> String {
        let peers = self.src.as_ref().map(std::slice::from_ref);
        wait_facts::facts("recv", peers, false, &self.conditions(), "", "").to_string()
    }
}

/// Take the first match, if there is one.
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
                conditions: false,
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

/// The error of a `take` that found nothing.
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

/// Publish, for observers, a call that found nothing.
fn polled(endpoint: &Endpoint, template: &Template, function: &str) {
    let shared = endpoint.core().shared();
    if shared.polled() {
        shared.publish_polls(&wait_facts::for_poll(&template.text(function), &template.facts()));
    }
}

/// Run `work` with the search, and with the name that the expected sender sends under.
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
        let expected = src.as_ref().map(|name| match name {
            Name::Rank(rank) => Scalar::Int(*rank),
            Name::Text(text) => Scalar::Str(text),
        });
        conditions.push(Condition { name: "src", expected, never_native: false });
    }
    conditions.extend(template.attributes.iter().map(|(name, expected)| expected.condition(name)));
    let late = template.src.as_ref().filter(|_| src.is_none());
    let native = matching::Template { conditions, numbers: None };
    let matcher = Match { endpoint, template, late, native };
    let mut search = Search::new(endpoint.core(), 0, matcher);
    work(&mut search, src.as_ref())
}

/// A template whose remaining conditions are compared here.
struct Match<'a> {
    endpoint: &'a Endpoint,
    template: &'a Template,
    /// A rank that nobody had when the call began: it accepts messages of the process that gets it.
    late: Option<&'a Name>,
    native: matching::Template<'a>,
}

impl<'a> Matcher<'a, Around<'_>> for Match<'a> {
    fn native(&self) -> &matching::Template<'a> {
        &self.native
    }

    fn accepts(&self, _host: &Around<'_>, packet: &Arc<Packet>) -> Result<bool> {
        let met = |(name, expected): &(String, Expected)| {
            packet.find(name).is_some_and(|attribute| expected.is_met(packet, &attribute))
        };
        let Some(rank) = self.late else { return Ok(self.template.attributes.iter().all(met)) };
        let src = match packet.find("src") {
            Some(attribute) if attribute.kind == Value::Int => {
                Name::Rank(u64_at(attribute.value, 0) as i64)
            }
            Some(attribute) if attribute.kind == Value::Str => Name::from(text(attribute.value)),
            _ => return Ok(false),
        };
        let is_src =
            src == *rank || self.endpoint.lookup(rank)?.is_some_and(|member| member.name == src);
        Ok(is_src && self.template.attributes.iter().all(met))
    }
}

/// The checks of a waiting receive.
struct Watched<'a> {
    endpoint: &'a Endpoint,
    template: &'a Template,
    /// The sender's name in the search.
    src: Option<&'a Name>,
    /// Becomes true if the expected rank belongs to another process now.
    passed_on: &'a Cell<bool>,
    /// The member that the wait is for, as of its beginning.
    awaited: Option<Member>,
    ticks: u32,
    conditions: bool,
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

    /// A process that dies while a receive waits for it is lost for that wait, even if another
    /// takes its place at once: the new one does not know what was asked of the old one. The same
    /// holds for one that has left before, but since this endpoint joined; a name that nobody had
    /// is waited for.
    fn tick(&mut self, _host: &Around<'_>) -> Result<Option<String>> {
        self.ticks += 1;
        if let Some(src) =
            self.template.src.as_ref().filter(|_| self.ticks.is_multiple_of(CHECK_EVERY))
        {
            if self.awaited.is_none() {
                self.awaited = self.endpoint.lookup_now(src)?; // a late joiner
            }
            let lost = self.awaited.clone().or_else(|| self.endpoint.departed(src));
            if lost.is_some_and(|lost| !self.endpoint.alive(&lost)) {
                let (name, call) = (&self.endpoint.member().name, self.template.text("sfm_recv"));
                let detail = format!("while {name} waited for it in {call}");
                return Err(Error::peer_lost(&src.to_string(), &detail));
            }
        }
        Ok((!std::mem::replace(&mut self.conditions, true)).then(|| self.template.facts()))
    }
}
