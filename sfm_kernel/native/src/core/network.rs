//! The network thread: callbacks, full rings, observers.

use std::sync::atomic::Ordering;
use std::sync::Weak;
use std::time::Duration;

use super::Core;
use crate::matching::Taken;
use crate::other_threads::has_only_served;
use crate::summary::summary;
use crate::sync::lock;

impl Core {
    /// Receive for callbacks from now on, or no longer.
    pub fn set_callbacks(&self, active: bool) {
        let state = self.lock();
        self.shared().callbacks.store(u32::from(active), Ordering::SeqCst);
        self.after_arrival(&state);
        self.shared().network.0.ring();
    }

    /// Messages that no callback has seen; takes the rings' packets in first.
    pub fn undecided(&self) -> Vec<Taken> {
        let mut state = self.lock();
        self.pump(&mut state, true);
        self.wake_senders(&mut state);
        state.deciding = state.undecided.len();
        state.undecided.drain(..).collect()
    }

    /// Whether callbacks have decided on the first `number` of the messages that came to them.
    pub fn is_decided(&self, number: u64) -> bool {
        let state = self.lock();
        state.undecided_total - (state.undecided.len() + state.deciding) as u64 >= number
    }

    /// Whether callbacks have returned for the first `number` of the messages that came to them.
    pub fn is_handled(&self, number: u64) -> bool {
        self.lock().handled >= number
    }

    /// Nothing more is to be done for a message of `undecided`.
    pub fn handled(&self) {
        self.lock().handled += 1;
    }

    /// No callback accepted it: it goes into the queue, as if it arrived now.
    pub fn decline(&self, news: Taken) {
        let mut state = self.lock();
        state.deciding -= 1;
        state.queue.push(news.packet, news.ticket);
        self.after_arrival(&state);
    }

    /// A callback consumed it.
    pub fn consumed(&self, news: &Taken) {
        let mut state = self.lock();
        state.deciding -= 1;
        self.account(&mut state, news);
        self.wake_senders(&mut state);
    }

    /// One round of the network thread without callbacks: make room in full rings, do what has come
    /// for a library, send what it holds back, and answer an observer's request, after calling
    /// `on_request()`. Sleeps for at most `limit`; false once the endpoint is closed.
    pub fn serve(&self, limit: Duration, seen: &mut u32, on_request: &dyn Fn()) -> bool {
        let shared = self.shared();
        let active = || shared.callbacks.load(Ordering::SeqCst) != 0;
        let driving = || shared.driving.load(Ordering::SeqCst) != 0;
        let requests = shared.requests.load(Ordering::SeqCst);
        if requests != *seen {
            on_request();
        }
        {
            let mut state = self.lock();
            if !active() && !state.undecided.is_empty() {
                while let Some(news) = state.undecided.pop_front() {
                    state.queue.push(news.packet, news.ticket);
                    state.handled += 1;
                }
                self.after_arrival(&state);
            }
            shared.pressure.store(0, Ordering::SeqCst);
            self.pump(&mut state, true);
            self.adopt_in_time(&mut state);
            self.wake_senders(&mut state);
            if requests != *seen {
                *seen = requests;
                let requested = lock(&self.requested);
                shared.summary.write(&summary(|| state.queue.iter(), requested.as_ref()));
            }
            if !state.undecided.is_empty() {
                return !self.is_closed();
            }
        }
        let limit = self.work_for_library(limit);
        self.tidy();
        if !self.is_closed() {
            if !active() {
                has_only_served();
            }
            shared.network.0.sleep(limit, || {
                self.is_closed()
                    || shared.requests.load(Ordering::SeqCst) != *seen
                    || ((active() || driving()) && shared.has_arrivals())
                    || shared.pressure.load(Ordering::SeqCst) != 0
                    || self.library_has_work()
            });
        }
        !self.is_closed()
    }

    fn tidy(&self) {
        let senders: Vec<_> = {
            let known = lock(&self.senders);
            known.iter().filter_map(Weak::upgrade).collect()
        };
        for sender in senders {
            sender.tidy();
        }
    }
}
