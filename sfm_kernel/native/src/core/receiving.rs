//! Finding, taking, waiting: what a receive does.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::driving::AT_ONCE;
use super::{Core, InboxState, Trouble, Via};
use crate::bell::{Bell, Woken};
use crate::matching::{Candidate, Taken, Template, Ticket};
use crate::packet::{account, Packet};
use crate::peers::bump;
use crate::summary::RequestedTemplate;
use crate::sync::lock;

/// Received bytes after which an inbound owes an acknowledgement that was not asked for.
const ACK_EVERY: u64 = 1 << 20;

/// The result of a search in the queue.
pub enum Found {
    Taken(Taken),
    /// Python has to compare the rest.
    Ask(Candidate),
    /// Nothing up to this sequence number.
    Nothing {
        cursor: u64,
        version: u64,
        /// Messages that had arrived by then, but for those that callbacks have not decided on.
        examined: u64,
    },
}

impl Core {
    /// Set the template of the receive that is blocked now; None: no receive is.
    pub fn set_requested(&self, requested: Option<RequestedTemplate>) {
        *lock(&self.requested) = requested;
    }

    /// Find the first match in a context after `cursor`; take it if it is certain. `near`: the slot
    /// of the message with the number `cursor`, if the caller knows it.
    pub fn find(
        &self,
        context: u64,
        template: &Template<'_>,
        cursor: u64,
        near: Option<u32>,
        take: bool,
        all: bool,
    ) -> Found {
        let find = |cursor, near| {
            let mut state = self.lock();
            if self.shared().callbacks.load(Ordering::SeqCst) == 0 {
                self.pump(&mut state, all);
            }
            let version = self.version.load(Ordering::SeqCst);
            let fits = match take {
                true => state.queue.find_or_take(context, template, cursor, near),
                false => state.queue.find(context, template, cursor, near).map(Err),
            };
            let found = match fits {
                None => {
                    let examined = self.decided(&state);
                    Found::Nothing { cursor: state.queue.latest(context), version, examined }
                }
                Some(Ok(taken)) => {
                    self.account(&mut state, &taken);
                    Found::Taken(taken)
                }
                Some(Err(candidate)) => Found::Ask(candidate),
            };
            self.wake_senders(&mut state);
            drop(state);
            self.pass_work_on();
            found
        };
        match find(cursor, near) {
            Found::Nothing { cursor, .. } if self.catch_up() => find(cursor, None),
            found => found,
        }
    }

    /// The first of several waiting receives, in this order, for which there is a message, and that
    /// message; it leaves the queue with `take`. All are tried at one instant: otherwise a message
    /// that arrives meanwhile could go to a later receive, although it fits an earlier one. Only
    /// matches that need no Python are found.
    pub fn find_any(
        &self,
        context: u64,
        templates: &[&Template<'_>],
        take: bool,
    ) -> Option<(usize, Arc<Packet>, Option<Taken>)> {
        let find = || {
            let mut state = self.lock();
            if self.shared().callbacks.load(Ordering::SeqCst) == 0 {
                self.pump(&mut state, false);
            }
            let found = templates.iter().enumerate().find_map(|(nth, template)| {
                let candidate = state.queue.find(context, template, 0, None);
                Some((nth, candidate.filter(|candidate| candidate.certain)?))
            });
            let found = found.map(|(nth, candidate)| {
                let taken = take.then(|| state.queue.take(&candidate).expect("under the lock"));
                if let Some(taken) = &taken {
                    self.account(&mut state, taken);
                }
                (nth, candidate.packet, taken)
            });
            self.wake_senders(&mut state);
            drop(state);
            self.pass_work_on();
            found
        };
        match find() {
            None if self.catch_up() => find(),
            found => found,
        }
    }

    /// The first result of `find` among all messages that have arrived and were not received.
    pub fn find_queued<T>(&self, find: impl FnMut(&Packet) -> Option<T>) -> Option<T> {
        self.lock().queue.iter().find_map(find)
    }

    /// Wake all threads that wait here, to search again.
    pub fn wake(&self) {
        self.version.fetch_add(1, Ordering::SeqCst);
        self.ring();
    }

    /// The number of arrived messages that callbacks have decided on.
    pub fn arrived(&self) -> u64 {
        let state = self.lock();
        self.decided(&state)
    }

    fn decided(&self, state: &InboxState) -> u64 {
        let open = (state.undecided.len() + state.deciding) as u64;
        self.shared().arrived.load(Ordering::Relaxed).wrapping_sub(open)
    }

    /// The version for `wait`, to be read before a search.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::SeqCst)
    }

    /// Take a candidate that Python has accepted; None if another thread was faster.
    pub fn take(&self, candidate: &Candidate) -> Option<Taken> {
        let mut state = self.lock();
        let taken = state.queue.take(candidate)?;
        self.account(&mut state, &taken);
        self.wake_senders(&mut state);
        Some(taken)
    }

    /// Undo a take: the receiver was interrupted before it could use the message.
    pub fn put_back(&self, mut taken: Taken) {
        let mut state = self.lock();
        taken.ticket.paid = true;
        let shared = self.shared();
        bump(&shared.received, 1u64.wrapping_neg());
        let uid = state.inbounds[taken.ticket.inbound as usize].uid as u64;
        bump(&shared.peers.of(uid).received, 1u64.wrapping_neg());
        state.queue.put_back(taken);
        self.rewinds.fetch_add(1, Ordering::SeqCst);
        self.after_arrival(&state);
    }

    pub fn rewinds(&self) -> u64 {
        self.rewinds.load(Ordering::SeqCst)
    }

    /// A message has gone to the user: its sender's credit grows.
    pub(super) fn account(&self, state: &mut InboxState, taken: &Taken) {
        let shared = self.shared();
        shared.set_depth(state.queue.len() + state.undecided.len(), state.queue.bytes());
        let Ticket { inbound, paid, number, .. } = taken.ticket;
        let uid = state.inbounds[inbound as usize].uid as u64;
        bump(&shared.peers.of(uid).received, 1);
        let context = taken.packet.context();
        shared.record_received(uid, number, taken.packet.len(), context);
        shared.polls.end();
        if !paid {
            self.credit(state, &taken.ticket, taken.packet.cost(), context);
        }
    }

    /// Give a sender the cost of its message back.
    pub(super) fn credit(&self, state: &mut InboxState, ticket: &Ticket, cost: u64, context: u64) {
        let (nth, account) = (ticket.inbound, account(context));
        let inbound = &mut state.inbounds[nth as usize];
        inbound.taken[account] += cost;
        let taken = inbound.taken[account];
        bump(&self.shared().peers.of(inbound.uid as u64).taken, cost);
        match &inbound.via {
            Via::Ring { reader, .. } => {
                reader.control().taken[account].0.store(taken, Ordering::Release);
                if state.to_wake.last() != Some(&nth) {
                    state.to_wake.push(nth);
                }
            }
            Via::Local(credit) => credit.credit(account, taken),
            Via::Remote => {
                if ticket.ack || inbound.asked || taken - inbound.acknowledged[account] >= ACK_EVERY
                {
                    self.owe(state, nth);
                }
            }
            Via::Closed => {}
        }
    }

    /// Whether something may have changed since `version`.
    fn has_news(&self, version: u64) -> bool {
        let shared = self.shared();
        self.version.load(Ordering::SeqCst) != version
            || (shared.has_arrivals() && shared.callbacks.load(Ordering::SeqCst) == 0)
    }

    /// A spin so short that the GIL need not be released for it.
    pub fn spin_briefly(&self, version: u64) -> bool {
        // Arrivals through sockets need other threads, which a spin would keep from the core.
        !self.remote.load(Ordering::Relaxed) && self.spin.spin_briefly(|| self.has_news(version))
    }

    /// Spin, then yield the core, until something may have changed since `version`; false if
    /// neither pays off.
    pub fn spin(&self, version: u64) -> bool {
        let news = || self.has_news(version);
        match self.drive_for_message(AT_ONCE, &news) {
            Some(woken) => woken == Woken::Rung,
            None => {
                let bell = &self.shared().bell.0;
                self.spin.until(news) || self.met(bell, self.spin.yield_until(news))
            }
        }
    }

    /// Sleep until something may have changed since `version`.
    pub fn wait(&self, version: u64, limit: Duration) -> Woken {
        let news = || self.has_news(version);
        self.drive_for_message(limit, &news).unwrap_or_else(|| self.sleep(limit, news))
    }

    /// Let other threads run if cores are short: for a caller that polls again and again.
    pub fn yield_core(&self) {
        self.spin.yield_core();
    }

    /// `spin` for `news()`, too, for a thread that waits for others which wait for each other.
    pub fn spin_for(&self, version: u64, news: impl Fn() -> bool) -> bool {
        let news: &dyn Fn() -> bool = &|| self.has_news(version) || news();
        let bell = &self.shared().bell.0;
        self.spin.until(news) || self.met(bell, self.spin.take_turns(news))
    }

    /// `wait` for `news()`, too, whose publisher rings.
    pub fn wait_for(&self, version: u64, limit: Duration, news: impl Fn() -> bool) -> Woken {
        let news = || self.has_news(version) || news();
        self.drive_for_message(limit, &news).unwrap_or_else(|| self.sleep(limit, news))
    }

    /// A spin so short that the GIL need not be released for it, for news in others' memory.
    pub fn spin_briefly_for(&self, news: impl Fn() -> bool) -> bool {
        self.spin.spin_briefly(news)
    }

    /// Spin, yield the core for a while, then sleep on `bell`: for threads that wait for each
    /// other.
    pub fn spin_then_sleep_on(
        &self,
        bell: &Bell,
        limit: Duration,
        news: impl Fn() -> bool,
    ) -> Woken {
        if self.spin.until(&news) || self.met(bell, self.spin.take_turns(&news)) {
            return Woken::Rung;
        }
        self.sleep_on(bell, limit, news)
    }

    /// Spin, yield the core for a while, then sleep on this process's bell.
    pub fn spin_then_sleep(&self, limit: Duration, news: impl Fn() -> bool) -> Woken {
        let bell = &self.shared().bell.0;
        if self.spin.until(&news) || self.met(bell, self.spin.yield_until(&news)) {
            return Woken::Rung;
        }
        self.sleep(limit, news)
    }

    fn sleep(&self, limit: Duration, news: impl Fn() -> bool) -> Woken {
        self.sleep_on(&self.shared().bell.0, limit, news)
    }

    fn sleep_on(&self, bell: &Bell, limit: Duration, news: impl Fn() -> bool) -> Woken {
        let start = Instant::now();
        let woken = bell.sleep(limit, news);
        if self.met(bell, woken == Woken::Rung) {
            self.spin.slept(start.elapsed());
        }
        woken
    }

    /// Note where news came from, if `came`; returns that. Not after a spin, whose news came from
    /// another core.
    fn met(&self, bell: &Bell, came: bool) -> bool {
        if came {
            self.spin.met(bell.was_rung_here());
        }
        came
    }

    /// A sender's trouble that a receive should report.
    pub fn trouble(&self) -> Option<Trouble> {
        if !self.troubled.load(Ordering::Acquire) {
            return None;
        }
        let mut state = self.lock();
        let trouble = state.troubles.pop();
        self.troubled.store(!state.troubles.is_empty(), Ordering::Release);
        trouble
    }
}
