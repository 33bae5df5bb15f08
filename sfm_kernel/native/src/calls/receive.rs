//! Finding the first match in an inbox, and waiting for it.

use std::sync::Arc;
use std::time::Duration;

use super::{wait, Deadline, End, Goal, Host, WaitFacts};
use crate::bell::Woken;
use crate::core::{Core, Found};
use crate::matching::{Taken, Template};
use crate::packet::{is_answer, Packet};
use crate::segment::Activity;
use crate::summary::RequestedTemplate;

/// A template as its host has it.
pub trait Matcher<'t, H: Host> {
    /// The part that can be compared without the host.
    fn native(&self) -> &Template<'t>;

    /// Decide what the native comparison could not. The queue is not locked meanwhile.
    fn accepts(&self, host: &H, packet: &Arc<Packet>) -> Result<bool, H::Error>;
}

/// A host's additions to a wait for a message: see `Goal::facts` and `Goal::tick`.
pub trait Watch<H: Host> {
    /// The text that observers see of this wait.
    fn text(&mut self, host: &H) -> Result<String, H::Error>;

    fn tick(&mut self, host: &H) -> Result<Option<String>, H::Error>;
}

/// A search that remembers what it has seen.
pub struct Search<'a, M> {
    core: &'a Core,
    context: u64,
    matcher: M,
    cursor: u64,
    /// The slot of the message number `cursor`.
    near: Option<u32>,
    rewinds: u64,
    version: u64,
    /// The number of arrivals when nothing was found.
    examined: u64,
}

impl<'a, M> Search<'a, M> {
    pub fn new(core: &'a Core, context: u64, matcher: M) -> Search<'a, M> {
        let rewinds = core.rewinds();
        Search { core, context, matcher, cursor: 0, near: None, rewinds, version: 0, examined: 0 }
    }

    /// Take the first match, if there is one.
    pub fn take<'t, H: Host>(&mut self, host: &H) -> Result<Option<Taken>, H::Error>
    where
        M: Matcher<'t, H>,
    {
        End::check(self.core).map_err(|why| host.ended(why))?;
        Ok(self.next(host, true, false)?.map(|taken| taken.expect("taken")))
    }

    /// Whether there is a match.
    pub fn peek<'t, H: Host>(&mut self, host: &H) -> Result<bool, H::Error>
    where
        M: Matcher<'t, H>,
    {
        End::check(self.core).map_err(|why| host.ended(why))?;
        Ok(self.next(host, false, false)?.is_some())
    }

    /// Take the first match, waiting for it; None when the time is up.
    pub fn wait<'t, H: Host, W: Watch<H>>(
        &mut self,
        host: &H,
        until: Deadline,
        watch: W,
    ) -> Result<Option<Taken>, H::Error>
    where
        M: Matcher<'t, H>,
    {
        let core = self.core;
        wait(host, core, &mut Receive { search: self, watch, shows: false }, until)
    }

    /// The first match among the messages that the search has not seen yet; `Ok(None)` if there is
    /// none. With `take` it leaves the queue.
    fn next<'t, H: Host>(
        &mut self,
        host: &H,
        take: bool,
        all: bool,
    ) -> Result<Option<Option<Taken>>, H::Error>
    where
        M: Matcher<'t, H>,
    {
        loop {
            let rewinds = self.core.rewinds();
            if rewinds != self.rewinds {
                (self.rewinds, self.cursor, self.near) = (rewinds, 0, None);
            }
            let (context, template) = (self.context, self.matcher.native());
            match self.core.find(context, template, self.cursor, self.near, take, all) {
                Found::Taken(taken) => return Ok(Some(Some(taken))),
                Found::Nothing { cursor, version, examined } => {
                    (self.cursor, self.version, self.examined) = (cursor, version, examined);
                    self.near = None;
                    // A predicate may have let another thread put a message back.
                    if self.core.rewinds() == self.rewinds {
                        return Ok(None);
                    }
                }
                Found::Ask(candidate) => {
                    if candidate.certain || self.matcher.accepts(host, &candidate.packet)? {
                        if !take {
                            return Ok(Some(None));
                        }
                        if let Some(taken) = self.core.take(&candidate) {
                            return Ok(Some(Some(taken)));
                        }
                    } else {
                        (self.cursor, self.near) = (candidate.seq, Some(candidate.slot));
                    }
                }
            }
        }
    }
}

/// The goal of a receive. While it is seen to wait, observers are shown the messages that nearly
/// fit.
struct Receive<'s, 'a, M, W> {
    search: &'s mut Search<'a, M>,
    watch: W,
    shows: bool,
}

impl<'t, H: Host, M: Matcher<'t, H>, W: Watch<H>> Goal<H> for Receive<'_, '_, M, W> {
    type Out = Taken;

    fn poll(&mut self, host: &H, all: bool) -> Result<Option<Taken>, H::Error> {
        End::check(self.search.core).map_err(|why| host.ended(why))?;
        Ok(self.search.next(host, true, all)?.map(|taken| taken.expect("taken")))
    }

    fn spin(&mut self, host: &H) -> bool {
        let Search { core, version, .. } = *self.search;
        // First so briefly that releasing and taking the host's lock would cost more.
        core.spin_briefly(version) || host.release(|| core.spin(version))
    }

    fn sleep(&mut self, host: &H, limit: Duration) -> Woken {
        let Search { core, version, .. } = *self.search;
        host.release(|| core.wait(version, limit))
    }

    fn examined(&self) -> u64 {
        self.search.examined
    }

    fn facts(&mut self, host: &H) -> Result<Option<WaitFacts>, H::Error> {
        let text = self.watch.text(host)?;
        let Search { core, context, .. } = *self.search;
        core.set_requested(Some(RequestedTemplate::of(context, self.search.matcher.native())));
        self.shows = true;
        let activity = if is_answer(context) { Activity::Sending } else { Activity::Receiving };
        Ok(Some(WaitFacts { activity, text, facts: String::new() }))
    }

    fn tick(&mut self, host: &H) -> Result<Option<String>, H::Error> {
        self.watch.tick(host)
    }

    fn outlives_peers(&self) -> bool {
        true
    }

    fn undo(&mut self, taken: Taken) -> Option<Taken> {
        self.search.core.put_back(taken);
        None
    }
}

impl<M, W> Drop for Receive<'_, '_, M, W> {
    fn drop(&mut self) {
        if self.shows {
            self.search.core.set_requested(None);
        }
    }
}
