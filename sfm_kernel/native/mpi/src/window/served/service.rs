//! The thread that serves a window's memory while the program computes: it makes progress as an MPI
//! call would, and sleeps while no messages arrive. Each window that needs it has one.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::super::{lock, Window};
use crate::engine::engine;

/// The longest sleep without a ring.
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
    let (served, stop) = (window.clone(), stopped.clone());
    let work = move || {
        let (bell, shared) = (&served.control.block(served.rank()).bell, engine().core.shared());
        while !stop.load(SeqCst) {
            engine().advance();
            bell.sleep(PAUSE, || stop.load(SeqCst) || shared.has_arrivals());
        }
    };
    let thread = sfm_endpoint::network::helper("sfm-window", work).expect("a thread");
    lock(&RUNNING).push(Service { window: window.clone(), stopped, thread });
}

/// Stop serving this window, or all windows (None).
pub fn stop(window: Option<&Arc<Window>>) {
    let is_over =
        |service: &mut Service| window.is_none_or(|window| Arc::ptr_eq(&service.window, window));
    let over: Vec<_> = lock(&RUNNING).extract_if(.., is_over).collect();
    for Service { window, stopped, thread } in over {
        stopped.store(true, SeqCst);
        window.control.block(window.rank()).bell.ring();
        let _ = thread.join();
    }
}
