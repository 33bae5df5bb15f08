//! Threads that work for a call which another thread is in, and how observers see both.
//!
//! A process shows one wait, that of the thread whose call it is. A *helper*, such as a thread that
//! advances transfers while that call waits, belongs to it: the helper's waits are not shown, and
//! the process has examined what has arrived when the call and all its helpers have. A helper
//! publishes what it waits for through the call that waits for it, which reads it (`facts`); until
//! that call has published it too (`published`), nothing is known of the process. A helper that is
//! *apart* goes on beside calls that do not wait for it: they do not include it.

use std::sync::atomic::Ordering;
use std::sync::Mutex;

use super::Core;
use crate::segment::UNSETTLED;
use crate::sync::lock;

/// In `examined`: nothing that arrives in the inbox decides this wait.
pub const INBOX_IRRELEVANT: u64 = u64::MAX - 1;

struct Helper {
    id: u64,
    apart: bool,
    /// As in `Shared::examined`.
    examined: u64,
    /// The number of its last publication; 0 if it has none.
    version: u64,
    facts: String,
}

pub struct Helpers(Mutex<State>);

struct State {
    /// The extent of what the shown call has examined.
    shown: u64,
    version: u64,
    /// The last publication of a helper that the shown call includes.
    published: u64,
    /// The shown call includes helpers that are apart.
    includes_apart: bool,
    helpers: Vec<Helper>,
}

impl Default for Helpers {
    fn default() -> Helpers {
        Helpers(Mutex::new(State {
            shown: UNSETTLED,
            version: 0,
            published: 0,
            includes_apart: false,
            helpers: Vec::new(),
        }))
    }
}

impl State {
    fn all(&self) -> u64 {
        let helpers = || self.helpers.iter().filter(|helper| self.includes_apart || !helper.apart);
        let unknown =
            |helper: &Helper| helper.examined == UNSETTLED || helper.version > self.published;
        if self.shown == UNSETTLED || helpers().any(unknown) {
            return UNSETTLED;
        }
        helpers().map(|helper| helper.examined).fold(self.shown, u64::min)
    }

    fn change(&mut self, id: u64, change: impl FnOnce(&mut Helper)) {
        if let Some(helper) = self.helpers.iter_mut().find(|helper| helper.id == id) {
            change(helper);
        }
    }
}

impl Core {
    /// The shown call has examined this much; UNSETTLED when it begins and ends. `alone`: this is
    /// no number of arrivals.
    pub fn settle(&self, examined: u64, alone: bool) {
        let mut state = lock(&self.helpers.0);
        state.shown = if alone && !state.helpers.is_empty() { UNSETTLED } else { examined };
        self.shared().examined.store(state.all(), Ordering::Release);
    }

    fn with_helpers(&self, change: impl FnOnce(&mut State)) {
        let mut state = lock(&self.helpers.0);
        change(&mut state);
        if state.shown != UNSETTLED {
            self.shared().examined.store(state.all(), Ordering::Release);
        }
    }

    /// Register a thread as a helper.
    pub fn begin_help(&self, id: u64, apart: bool) {
        let helper = Helper { id, apart, examined: UNSETTLED, version: 0, facts: String::new() };
        self.with_helpers(|state| state.helpers.push(helper));
    }

    /// Remove a helper.
    pub fn end_help(&self, id: u64) {
        self.with_helpers(|state| state.helpers.retain(|helper| helper.id != id));
    }

    /// A helper sleeps, having examined this much; UNSETTLED: it works.
    pub fn settle_helper(&self, id: u64, examined: u64) {
        self.with_helpers(|state| state.change(id, |helper| helper.examined = examined));
    }

    /// Publish what a helper waits for.
    pub fn publish_helper(&self, id: u64, facts: &str) {
        self.with_helpers(|state| {
            state.version += 1;
            let version = state.version;
            state.change(id, |helper| {
                if helper.facts != facts {
                    helper.facts = facts.to_owned();
                    helper.version = version;
                }
            });
        });
    }

    /// The latest facts of this helper; None if there is no such helper, or it has published
    /// nothing.
    pub fn helper_facts(&self, id: u64) -> Option<String> {
        let state = lock(&self.helpers.0);
        let helper = state.helpers.iter().find(|helper| helper.id == id)?;
        (!helper.facts.is_empty()).then(|| helper.facts.clone())
    }

    /// The number of the latest publication: to be read before the helpers' facts are.
    pub fn helpers_version(&self) -> u64 {
        lock(&self.helpers.0).version
    }

    /// The shown call has published what its helpers had published up to `version`; None: the call
    /// is over.
    pub fn include_helpers(&self, version: Option<u64>) {
        self.with_helpers(|state| {
            (state.published, state.includes_apart) = (version.unwrap_or(0), version.is_some());
        });
    }
}
