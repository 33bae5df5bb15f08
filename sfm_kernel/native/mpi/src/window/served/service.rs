//! The thread that serves a window's memory while the program computes: it does what a call of MPI
//! would do, and sleeps when nothing has come. There is one for each window that needs it.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::super::{lock, Window};
use crate::engine::engine;

/// How long it sleeps when nobody rings.
const PAUSE: Duration = Duration::from_millis(500);

struct Service {
    window: Arc<Window>,
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

static RUNNING: Mutex<Vec<Service>> = Mutex::new(Vec::new());

/// Serve this process's memory from now on.
pub fn start(window: &Arc<Window>) {
    let stopped = Arc::new(AtomicBool::new(false));
    let (own, stop) = (window.clone(), stopped.clone());
    let work = move || {
        let (bell, shared) = (&own.control.part(own.rank()).bell, engine().core.shared());
        while !stop.load(SeqCst) {
            engine().advance();
            bell.sleep(PAUSE, || stop.load(SeqCst) || shared.has_arrivals());
        }
    };
    let thread = sfm_endpoint::network::helper("sfm-window", work).expect("a thread");
    lock(&RUNNING).push(Service { window: window.clone(), stopped, thread });
}

/// Nobody will reach the memory of this window any more; None: of any.
pub fn stop(window: Option<&Arc<Window>>) {
    let is_over = |one: &mut Service| window.is_none_or(|window| Arc::ptr_eq(&one.window, window));
    let over: Vec<_> = lock(&RUNNING).extract_if(.., is_over).collect();
    for Service { window, stopped, thread } in over {
        stopped.store(true, SeqCst);
        window.control.part(window.rank()).bell.ring();
        let _ = thread.join();
    }
}
