//! What observers see of a call that waits.

use std::time::{Duration, Instant};

use crate::core::Core;
use crate::segment::Doing;

/// How often a blocked call looks up: for signals that another thread took, and for dead peers.
pub const TICK: Duration = Duration::from_millis(100);

/// While it lives, observers see the process as blocked.
pub struct Blocked<'a> {
    core: &'a Core,
    ticked: Instant,
}

impl<'a> Blocked<'a> {
    pub fn enter(core: &'a Core, doing: Doing, text: &str) -> Blocked<'a> {
        core.shared().waits.write(text);
        core.shared().set_doing(doing);
        Blocked { core, ticked: Instant::now() }
    }

    /// True about every 100 ms (sooner where the whole wait is shorter), however often it is woken.
    pub fn ticks(&mut self, limit: Duration) -> bool {
        let due = self.ticked.elapsed() >= limit.min(TICK);
        if due {
            self.ticked = Instant::now();
        }
        due
    }
}

impl Drop for Blocked<'_> {
    fn drop(&mut self) {
        self.core.shared().set_doing(Doing::Running);
        self.core.shared().waits.write("");
    }
}
