//! Operations of several steps, which go on beside the program, such as non-blocking collectives.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::{lock, Engine};

pub trait Stepwise: Send + Sync {
    /// Continue as far as possible without waiting; true if it has ended.
    fn poll(&self) -> bool;

    /// End it if it has lost a participant.
    fn give_up_if_lost(&self);
}

impl Engine {
    pub fn add_stepwise(&self, operation: Arc<dyn Stepwise>) {
        lock(&self.stepwise).push(operation);
        self.running.fetch_add(1, Ordering::Release);
    }

    /// End the operations that have lost a participant.
    pub(super) fn give_up_stepwise(&self) {
        let all = lock(&self.stepwise).clone();
        all.iter().for_each(|operation| operation.give_up_if_lost());
    }

    /// Continue all operations that have not ended.
    pub(super) fn poll_stepwise(&self) {
        let all = lock(&self.stepwise).clone();
        for operation in all {
            if operation.poll() {
                let mut running = lock(&self.stepwise);
                let length = running.len();
                running.retain(|other| !Arc::ptr_eq(other, &operation));
                self.running.fetch_sub(length - running.len(), Ordering::Release);
                drop(running);
                self.wake_resting();
            }
        }
    }
}
