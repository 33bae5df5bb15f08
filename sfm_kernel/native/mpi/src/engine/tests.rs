//! Threads of one process that wait for each other's progress.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;
use std::{hint, thread};

use sfm_endpoint::Surroundings;
use sfm_native::bell::Woken;
use sfm_native::calls::TICK;
use sfm_native::core::Core;

use super::control::Todo;
use super::peers::Peers;
use super::wait::Until;
use super::{Collective, Engine, Mode, Note, To, Upper};
use crate::data::Data;
use crate::errors::Answer;
use crate::membership::{Found, Membership};

/// A process whose peers have not joined.
struct Alone(Arc<Core>);

impl Membership for Alone {
    fn core(&self) -> &Arc<Core> {
        &self.0
    }
    fn surroundings(&self) -> &dyn Surroundings {
        unreachable!()
    }
    fn folder(&self) -> &Path {
        unreachable!()
    }
    fn uid(&self, _: usize) -> u128 {
        0
    }
    fn channel(&self, _: usize) -> Found {
        Found::NotYet
    }
    fn is_near(&self, _: usize) -> bool {
        true
    }
    fn has_lost(&self, _: usize) -> bool {
        false
    }
    fn gather(&self) -> Answer {
        Ok(())
    }
    fn is_program(&self) -> bool {
        true
    }
    fn leave(&self) {}
}

#[test]
fn a_thread_that_ends_another_ones_operation_wakes_it() {
    let core = Arc::new(Core::new(None, None).unwrap());
    let upper = Upper {
        window_message: |_, _, _| (),
        window_work: |_| (),
        never_received: |_, _, _, _| (),
    };
    let engine = Engine::new(Box::new(Alone(core)), 0, Peers::new(None, 0), upper);
    let to = To { context: 1, rank: 1, source: 0, tag: 0, what: Collective::Message, mark: 0 };
    let data = Data::bytes(std::ptr::null_mut(), 0);
    // SAFETY: the message has no bytes, so no memory has to stay valid.
    let sending = unsafe { engine.send(to, Mode::Synchronous, &data) }.expect("nobody answers");
    let woken = thread::scope(|scope| {
        let resting = scope.spawn(|| {
            let mut is_done = || sending.end.is_done();
            engine.rest(engine.core.version(), TICK * 100, &Until::new(&mut is_done))
        });
        while engine.resting.load(Ordering::SeqCst) == 0 {
            hint::spin_loop();
        }
        thread::sleep(Duration::from_millis(20)); // it sleeps now
        engine.carry_out(Todo::Received(Note::of(&sending.envelope).number), &mut Vec::new());
        resting.join().unwrap()
    });
    assert_eq!((woken, sending.end.is_done()), (Woken::Rung, true));
}
