//! What the threads share that ask a directory server, and that which listens to it.
//!
//! One thread at a time reads what has arrived: one of those that wait for an answer, or that of
//! `subscribe`. It holds no lock while it sleeps, or while it calls the host.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use super::address::ServerAddress;
use super::connection::{frames, Connection, ConnectionMonitor};
use super::Answer;
use crate::error::{Error, Kind, Result};
use crate::host::Signals;
use crate::wait_facts::quoted;
use sfm_native::clock::monotonic;
use sfm_native::event_fd::{drain, EventFd};
use sfm_native::sync::lock;
use sfm_native::wire::zmq::{Context, Pair};

/// Time between two checks of the program's signals, at most, while a call waits.
pub(super) const SIGNALS_EVERY: Duration = Duration::from_millis(50);
/// Time between two checks of a connection that is down.
const CHECK_EVERY: Duration = Duration::from_millis(250);

/// What an object of JSON from the server is.
#[derive(Deserialize)]
struct Head {
    number: Option<u64>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

/// What threads share that ask, and that which listens.
pub struct Shared {
    pub world: String,
    pub address: ServerAddress,
    /// The process that may use it: a forked child has its parent's sockets.
    process: u32,
    pub state: Mutex<State>,
    pub changed: Condvar,
    /// Wakes the thread that reads: no descriptor signals what arrives during a send.
    pub wake: EventFd,
    pub is_closing: AtomicBool,
}

#[derive(Default)]
pub struct State {
    /// None when it is closed.
    pub open: Option<(Connection, Arc<Context>)>,
    /// The number of the last request.
    last: u64,
    /// The requests that are waited for, and their answers: an answer that comes too late, or twice,
    /// is skipped.
    awaited: HashMap<u64, Option<Answer>>,
    /// States that the server has published, and the subscriber has not got yet.
    published: VecDeque<Vec<u8>>,
    pub is_subscribed: bool,
    /// A thread that waits for an answer reads what arrives.
    pub is_read: bool,
}

pub fn closed() -> Error {
    Error::new(Kind::Closed, "this directory was closed")
}

impl State {
    /// Take in what has arrived.
    fn read(&mut self) {
        let Some((connection, _)) = &mut self.open else { return };
        while let Some(message) = connection.receive() {
            let mut parts = message.iter().map(|frame| frame.bytes().to_vec());
            let Some(text) = parts.next() else { continue };
            match serde_json::from_slice::<Head>(&text).map(|head| head.number) {
                Ok(None) if self.is_subscribed => self.published.push_back(text),
                Ok(Some(number)) => {
                    if let Some(answer) = self.awaited.get_mut(&number) {
                        *answer = Some((text, parts.collect()));
                    }
                }
                _ => {}
            }
        }
        let has_come_up = connection.look(monotonic());
        if has_come_up && connection.monitor.breaks > 0 && self.is_subscribed {
            // For the server a new connection is a new client.
            let _ = connection.send(&[br#"{"number": null, "ask": "subscribe"}"#]);
            // The send may have taken the descriptors' signal of what came meanwhile.
            self.read();
        }
    }
}

impl Shared {
    pub fn new(world: &str, address: ServerAddress) -> io::Result<Shared> {
        Ok(Shared {
            world: world.to_owned(),
            address,
            process: std::process::id(),
            state: Mutex::default(),
            changed: Condvar::new(),
            wake: EventFd::new()?,
            is_closing: AtomicBool::new(false),
        })
    }

    pub fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let text = "this directory belongs to the parent process: join for yourself";
        Err(Error::new(Kind::Closed, text))
    }

    pub fn check_open(&self) -> Result<()> {
        match self.is_closing.load(Ordering::SeqCst) {
            true => Err(closed()),
            false => Ok(()),
        }
    }

    /// Begin to connect, and show this pair, in place of the present connection.
    pub fn dial(&self, context: &Arc<Context>, pair: &Pair) -> Result<()> {
        let ServerAddress { place, public } = &self.address;
        let connection = Connection::dial(context, place, public, pair).map_err(|error| {
            let text = format!("{} is no address of a directory server: {error}", quoted(place));
            Error::new(Kind::World, text)
        })?;
        lock(&self.state).open = Some((connection, context.clone()));
        Ok(())
    }

    /// What is known of the connection; None when it is closed.
    pub fn monitor<T>(&self, read: impl Fn(&ConnectionMonitor) -> T) -> Option<T> {
        lock(&self.state).open.as_ref().map(|(connection, _)| read(&connection.monitor))
    }

    // ---- asking ----

    pub fn ask(
        &self,
        kind: &str,
        details: &str,
        body: &[u8],
        limit: Duration,
        signals: Signals,
    ) -> Result<Answer> {
        self.check_process()?;
        let deadline = Instant::now().checked_add(limit);
        let mut state = lock(&self.state);
        self.check_open()?;
        state.last += 1;
        let number = state.last;
        let members = details.trim().strip_prefix('{').unwrap_or_default().trim_start();
        let (kind, comma) = (Value::from(kind), if members == "}" { "" } else { ", " });
        let request = format!(r#"{{"number": {number}, "ask": {kind}{comma}{members}"#);
        let frames = frames(request.as_bytes(), body);
        state.awaited.insert(number, None);
        let answer = self.answer(state, number, &frames, deadline, signals);
        lock(&self.state).awaited.remove(&number);
        let (text, bodies) = answer?;
        match serde_json::from_slice::<Head>(&text) {
            Ok(Head { error: Some(error), .. }) => {
                let refusal = serde_json::from_slice(&text).map(|Refusal { message }| message);
                let said = refusal.unwrap_or_else(|_| String::from_utf8_lossy(&text).into_owned());
                Err(Error::new(Kind::named(&error), said))
            }
            _ => Ok((text, bodies)),
        }
    }

    /// Send a request, and return when its answer has arrived.
    fn answer<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        number: u64,
        request: &[&[u8]],
        deadline: Option<Instant>,
        signals: Signals,
    ) -> Result<Answer> {
        let mut breaks = None; // that were known when it was sent last
        let mut checked = Instant::now();
        loop {
            if !state.is_subscribed && !state.is_read {
                state.read();
                self.changed.notify_all(); // others' answers may have come, or nobody reads now
            }
            if let Some(answer) = state.awaited.get_mut(&number).and_then(Option::take) {
                return Ok(answer);
            }
            self.check_open()?;
            let Some((connection, _)) = &mut state.open else { return Err(closed()) };
            let (monitor, now) = (&connection.monitor, monotonic());
            // A connection that breaks loses what is under way. Repeating a request does no harm.
            let is_due = breaks
                .map_or(!monitor.is_dead(now), |before| monitor.is_up && monitor.breaks != before);
            if is_due {
                breaks = Some(monitor.breaks);
                let failed = |error| Error::system("no request to the directory server", &error);
                connection.send(request).map_err(failed)?;
                if state.is_subscribed || state.is_read {
                    self.wake.ring();
                }
                continue; // no descriptor signals what arrived during the send
            }
            let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if monitor.is_refused || monitor.is_dead(now) || is_over {
                return Err(self.gone(monitor.is_refused, monitor.is_rejected(now)));
            }
            let left = deadline.map_or(SIGNALS_EVERY, |deadline| deadline - Instant::now());
            let left = left.min(SIGNALS_EVERY);
            let is_interrupted;
            (state, is_interrupted) = if state.is_subscribed || state.is_read {
                (self.sleep(state, left), false)
            } else {
                self.sleep_as_reader(state, left)
            };
            if is_interrupted || checked.elapsed() >= SIGNALS_EVERY {
                drop(state);
                signals()?;
                checked = Instant::now();
                state = lock(&self.state);
            }
        }
    }

    fn gone(&self, is_refused: bool, is_rejected: bool) -> Error {
        let (world, place) = (quoted(&self.world), &self.address.place);
        if is_refused {
            let text = format!(
                "the directory server at {place} refuses the key: it is not the key of world \
                 {world}, or a process with it was put out of the world"
            );
            return Error::new(Kind::WorldAccess, text);
        }
        let why = match is_rejected {
            true => "what listens there is not the server with the key in this address",
            false => "processes that know each other go on",
        };
        let text = format!(
            "the directory server of world {world} does not answer at {place}: {why}. Start the \
             cluster (or the server) again to join or find others, with the address that it then \
             prints"
        );
        Error::new(Kind::WorldGone, text)
    }

    // ---- reading ----

    /// Sleep until another thread has read something.
    pub fn sleep<'a>(
        &self,
        state: MutexGuard<'a, State>,
        limit: Duration,
    ) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Sleep until something may have arrived, for this thread and for others that wait. Whether a
    /// signal has come.
    fn sleep_as_reader<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        limit: Duration,
    ) -> (MutexGuard<'a, State>, bool) {
        let descriptors = self.descriptors(&mut state);
        state.is_read = true;
        drop(state);
        let is_interrupted = poll(&descriptors, Some(limit));
        drain(&self.wake); // before the state is read: what comes then rings again
        let mut state = lock(&self.state);
        state.is_read = false;
        (state, is_interrupted)
    }

    fn descriptors(&self, state: &mut State) -> Vec<RawFd> {
        let open = state.open.as_mut().and_then(|(connection, _)| connection.descriptors().ok());
        open.into_iter().flatten().chain([self.wake.as_raw_fd()]).collect()
    }

    /// The thread of `subscribe`. From its beginning no other one reads.
    pub fn listen(&self, mut on_update: impl FnMut(Option<&[u8]>)) {
        let mut was_up = true;
        self.wake.ring(); // for a thread that reads
        let mut state = lock(&self.state);
        while state.is_read {
            state = self.sleep(state, SIGNALS_EVERY);
        }
        drop(state);
        loop {
            // From here on nobody else drains it.
            drain(&self.wake);
            if self.check_open().is_err() {
                return; // looked at after `drain`, or the ring of `close` could be lost
            }
            let mut state = lock(&self.state);
            state.read();
            self.changed.notify_all();
            let updates = mem::take(&mut state.published);
            let Some((connection, _)) = &state.open else { return };
            let is_up = connection.monitor.is_up;
            let descriptors = self.descriptors(&mut state);
            drop(state);
            updates.iter().for_each(|state| on_update(Some(state)));
            if was_up && !is_up {
                on_update(None);
            }
            was_up = is_up;
            // The descriptors signal everything on a connection that is up.
            poll(&descriptors, (!is_up).then_some(CHECK_EVERY));
        }
    }
}

/// Sleep until one of them is readable, or a signal comes: that is true.
fn poll(descriptors: &[RawFd], limit: Option<Duration>) -> bool {
    let readable = |&fd: &RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut polled: Vec<libc::pollfd> = descriptors.iter().map(readable).collect();
    let limit = limit.map_or(-1, |limit| limit.as_micros().div_ceil(1000) as i32);
    // SAFETY: an array of this length.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, limit) };
    ready < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
}
