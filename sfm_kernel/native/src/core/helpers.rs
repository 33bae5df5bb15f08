//! Threads that work for a call which another thread is in, and what observers see of both.
//!
//! A process shows one wait, that of the thread whose call it is. A *helper*, such as a thread that
//! moves transfers on while that call waits, is one with it: its own waits are not shown, and the
//! process has looked at what has come when all of them have. What a helper waits for reaches
//! observers through the call that waits for it, which asks for it (`facts`); until that has been
//! written down (`heard`), nothing is known of the process. One that is *apart* goes on beside calls
//! that do not wait for it: those have nothing to do with it.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Core;
use crate::segment::UNSETTLED;

/// Nothing that arrives in the inbox decides this wait.
pub const WHATEVER: u64 = u64::MAX - 1;

struct Helper {
    id: u64,
    apart: bool,
    /// As `Shared::examined` has it.
    examined: u64,
    /// Which of all tellings its last one was; 0 where it has nothing to tell.
    told: u64,
    facts: String,
}

pub struct Helpers(Mutex<State>);

struct State {
    /// What the call that is shown has looked at.
    own: u64,
    told: u64,
    /// The last telling that the call that is shown has taken into account.
    heard: u64,
    /// It tells of helpers that are apart.
    hears: bool,
    ones: Vec<Helper>,
}

impl Default for Helpers {
    fn default() -> Helpers {
        Helpers(Mutex::new(State {
            own: UNSETTLED,
            told: 0,
            heard: 0,
            hears: false,
            ones: Vec::new(),
        }))
    }
}

impl State {
    fn all(&self) -> u64 {
        let ones = || self.ones.iter().filter(|one| self.hears || !one.apart);
        let unknown = |one: &Helper| one.examined == UNSETTLED || one.told > self.heard;
        if self.own == UNSETTLED || ones().any(unknown) {
            return UNSETTLED;
        }
        ones().map(|one| one.examined).fold(self.own, u64::min)
    }

    fn change(&mut self, id: u64, change: impl FnOnce(&mut Helper)) {
        if let Some(one) = self.ones.iter_mut().find(|one| one.id == id) {
            change(one);
        }
    }
}

impl Core {
    fn helpers(&self) -> MutexGuard<'_, State> {
        self.helpers.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call that is shown has looked at so much; UNSETTLED where it begins and ends. `alone`:
    /// what it has looked at is no number of arrivals.
    pub fn settle(&self, examined: u64, alone: bool) {
        let mut state = self.helpers();
        state.own = if alone && !state.ones.is_empty() { UNSETTLED } else { examined };
        self.shared().examined.store(state.all(), Ordering::Release);
    }

    fn with_helpers(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.helpers();
        change(&mut state);
        if state.own != UNSETTLED {
            self.shared().examined.store(state.all(), Ordering::Release);
        }
    }

    /// A thread helps from now on.
    pub fn begin_help(&self, id: u64, apart: bool) {
        let one = Helper { id, apart, examined: UNSETTLED, told: 0, facts: String::new() };
        self.with_helpers(|state| state.ones.push(one));
    }

    /// It helps no more.
    pub fn end_help(&self, id: u64) {
        self.with_helpers(|state| state.ones.retain(|one| one.id != id));
    }

    /// A helper sleeps, and has looked at so much; UNSETTLED: it is at work.
    pub fn settle_helper(&self, id: u64, examined: u64) {
        self.with_helpers(|state| state.change(id, |one| one.examined = examined));
    }

    /// What a helper waits for, as observers are told it.
    pub fn tell_of_helper(&self, id: u64, facts: &str) {
        self.with_helpers(|state| {
            state.told += 1;
            let told = state.told;
            state.change(id, |one| {
                if one.facts != facts {
                    one.facts = facts.to_owned();
                    one.told = told;
                }
            });
        });
    }

    /// What this helper has told last; None if it is none, or has not told yet.
    pub fn facts_of_helper(&self, id: u64) -> Option<String> {
        let state = self.helpers();
        let one = state.ones.iter().find(|one| one.id == id)?;
        (!one.facts.is_empty()).then(|| one.facts.clone())
    }

    /// How much helpers have told so far: to be asked for before their facts are.
    pub fn told_by_helpers(&self) -> u64 {
        self.helpers().told
    }

    /// The call that is shown has told observers what its helpers had told up to there; None: it
    /// is over.
    pub fn heard_helpers(&self, told: Option<u64>) {
        self.with_helpers(|state| {
            (state.heard, state.hears) = (told.unwrap_or(0), told.is_some());
        });
    }
}
