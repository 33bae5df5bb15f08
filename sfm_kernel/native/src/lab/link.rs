//! A thread that carries packets between two devices, through a pipe for each direction.
//!
//! It sleeps until a packet comes from a device or is due at the other. It records how late it
//! delivers each packet; how late it fetches one is unknown, since devices give no times. But the
//! kernel knows how long the thread was ready to run and had no processor (`waited`), which causes
//! both.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::firewall::Firewall;
use super::late::Late;
use super::pipe::{Counts, Pipe, Settings};
use crate::clock::monotonic;
use crate::event_fd::{drain, EventFd};
use crate::sync::lock;

/// The longest packet of a device, in bytes: its MTU.
pub const MTU: usize = 1500;
/// Packets that are fetched, or delivered, before the other direction has its turn.
const BATCH: usize = 32;
/// Minimum nanoseconds between two wake-ups under load: a wake-up costs more than a packet.
const PAUSE: u64 = 50_000;
/// Buffers that are kept for later packets.
const MAX_SPARE: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Forward,
    Backward,
}

/// Counts since the link was made, or since `clear`.
pub struct Report {
    /// Forward, backward.
    pub counts: [Counts; 2],
    pub late: Late,
    /// Nanoseconds for which the thread was ready to run and had no processor; None if the kernel
    /// does not say.
    pub waited: Option<u64>,
    /// Packets of connections that the firewall has reset.
    pub reset: u64,
    /// Packets that a device refused.
    pub refused: u64,
    /// Why the thread has ended by itself.
    pub failure: Option<String>,
}

struct LinkState {
    pipes: [Pipe<Vec<u8>>; 2],
    firewall: Firewall,
    late: Late,
    refused: u64,
    failure: Option<String>,
    waited_before: u64,
    stop: bool,
}

pub struct Link {
    state: Arc<Mutex<LinkState>>,
    bell: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
    thread_id: Arc<AtomicI32>,
}

impl Link {
    /// Carry packets between two devices (`open_tun`) until this is dropped.
    pub fn start(devices: [OwnedFd; 2], settings: [Settings; 2], seed: u64) -> io::Result<Link> {
        let bell = Arc::new(EventFd::new()?);
        let now = monotonic();
        let pipes = [(0, settings[0]), (1, settings[1])]
            .map(|(number, settings)| Pipe::new(settings, seed.wrapping_mul(2) + number, now));
        let state = Arc::new(Mutex::new(LinkState {
            pipes,
            firewall: Firewall::default(),
            late: Late::default(),
            refused: 0,
            failure: None,
            waited_before: 0,
            stop: false,
        }));
        let thread_id = Arc::new(AtomicI32::new(0));
        let carrier = Carrier {
            devices: devices.map(File::from),
            state: state.clone(),
            bell: bell.clone(),
            spare: Vec::new(),
        };
        let id = thread_id.clone();
        let body = move || carrier.run(&id);
        let thread = std::thread::Builder::new().name("sfm-lab-link".into()).spawn(body)?;
        Ok(Link { state, bell, thread: Some(thread), thread_id })
    }

    pub fn settings(&self, direction: Direction) -> Settings {
        lock(&self.state).pipes[direction as usize].settings()
    }

    /// Applies to packets that come from now on; see `pipe`.
    pub fn set(&self, direction: Direction, settings: Settings) {
        lock(&self.state).pipes[direction as usize].set(settings, monotonic());
        self.bell.ring();
    }

    /// Reset existing connections when one of their packets comes; new connections pass.
    pub fn forget(&self) {
        lock(&self.state).firewall.forget();
    }

    pub fn report(&self) -> Report {
        let waited = self.waited();
        let state = lock(&self.state);
        Report {
            counts: [state.pipes[0].counts, state.pipes[1].counts],
            late: state.late.clone(),
            waited: waited.map(|waited| waited.saturating_sub(state.waited_before)),
            reset: state.firewall.dropped,
            refused: state.refused,
            failure: state.failure.clone(),
        }
    }

    /// Count from 0 again.
    pub fn clear(&self) {
        let waited = self.waited();
        let mut state = lock(&self.state);
        state.pipes.iter_mut().for_each(|pipe| pipe.counts = Counts::default());
        state.late = Late::default();
        state.firewall.dropped = 0;
        state.refused = 0;
        state.waited_before = waited.unwrap_or(0);
    }

    /// The thread's nanoseconds on a run queue: the second number of schedstat.
    fn waited(&self) -> Option<u64> {
        let path = format!("/proc/self/task/{}/schedstat", self.thread_id.load(Ordering::Relaxed));
        std::fs::read_to_string(path).ok()?.split_whitespace().nth(1)?.parse().ok()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        lock(&self.state).stop = true;
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Carrier {
    devices: [File; 2],
    state: Arc<Mutex<LinkState>>,
    bell: Arc<EventFd>,
    spare: Vec<Vec<u8>>,
}

impl Carrier {
    fn run(mut self, thread_id: &AtomicI32) {
        // SAFETY: the calls concern this thread alone, and what they read lives until they return.
        unsafe {
            let thread = libc::syscall(libc::SYS_gettid) as libc::pid_t;
            thread_id.store(thread, Ordering::Relaxed);
            raise_priority(thread);
            // By default the kernel may wake it up to 50 us late.
            libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        }
        let mut woken = monotonic();
        loop {
            match self.step() {
                Ok(Some(until)) => woken = self.sleep(until, woken),
                Ok(None) => return,
                Err(failure) => {
                    lock(&self.state).failure = Some(failure.to_string());
                    return;
                }
            }
        }
    }

    /// Deliver and fetch some packets; returns when to wake up. None: the thread ends.
    fn step(&mut self) -> io::Result<Option<u64>> {
        let state = self.state.clone();
        let mut state = lock(&state);
        let mut full = false;
        for direction in [0, 1] {
            self.deliver(&mut state, direction);
            full |= self.fetch(&mut state, direction)?;
        }
        let due = state.pipes.iter().filter_map(Pipe::due).min().unwrap_or(u64::MAX);
        Ok((!state.stop).then_some(if full { 0 } else { due }))
    }

    fn deliver(&mut self, state: &mut LinkState, direction: usize) {
        let device = &self.devices[1 - direction];
        for _ in 0..BATCH {
            let now = monotonic();
            let Some((due, packet)) = state.pipes[direction].take(now) else { return };
            let packet = match packet {
                Ok(packet) => {
                    state.late.add(now - due);
                    // The device may be down, or the kernel without memory: packets can get lost.
                    state.refused += u64::from((&mut &*device).write(&packet).is_err());
                    packet
                }
                Err(packet) => packet,
            };
            recycle(&mut self.spare, packet);
        }
    }

    /// Returns whether there may be more packets.
    fn fetch(&mut self, state: &mut LinkState, direction: usize) -> io::Result<bool> {
        for _ in 0..BATCH {
            let mut packet = self.spare.pop().unwrap_or_else(|| vec![0; MTU]);
            packet.resize(MTU, 0);
            match (&mut &self.devices[direction]).read(&mut packet) {
                Ok(length) => packet.truncate(length),
                Err(error) => {
                    recycle(&mut self.spare, packet);
                    return match error.kind() {
                        io::ErrorKind::WouldBlock => Ok(false),
                        io::ErrorKind::Interrupted => Ok(true),
                        _ => Err(error),
                    };
                }
            }
            let now = monotonic();
            let mut offer = |pipe: usize, packet: Vec<u8>| {
                let length = packet.len();
                if let Some(dropped) = state.pipes[pipe].offer(now, length, packet) {
                    recycle(&mut self.spare, dropped);
                }
            };
            match state.firewall.inspect(&packet) {
                None => offer(direction, packet),
                Some([backward, forward]) => {
                    offer(1 - direction, backward.to_vec());
                    offer(direction, forward.to_vec());
                }
            }
        }
        Ok(true)
    }

    /// Sleep until `until`, a packet, or the bell; but not so short that the thread does nothing
    /// but sleep and wake up. Returns when it woke up.
    fn sleep(&self, until: u64, woken: u64) -> u64 {
        let mut now = monotonic();
        if until > now && now < woken + PAUSE {
            let rest = duration(woken + PAUSE - now);
            // SAFETY: the time is ours; the remaining time is not needed.
            unsafe { libc::nanosleep(&rest, std::ptr::null_mut()) };
            return monotonic();
        }
        if until > now {
            let readable = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
            let [first, second] =
                self.devices.each_ref().map(|device| readable(device.as_raw_fd()));
            let mut awaited = [first, second, readable(self.bell.as_raw_fd())];
            let time = duration(until - now);
            // SAFETY: the array and the time are ours; no signals are changed.
            unsafe {
                libc::ppoll(awaited.as_mut_ptr(), awaited.len() as _, &time, std::ptr::null())
            };
            if awaited[2].revents != 0 {
                drain(&*self.bell);
            }
            now = monotonic();
        }
        now
    }
}

fn duration(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000).min(3600) as _,
        tv_nsec: (ns % 1_000_000_000) as _,
    }
}

/// Ask to be woken before other threads, as far as this user may: root always; anyone, for short
/// turns (Linux 6.12). The recorded lateness shows the effect.
fn raise_priority(thread: libc::pid_t) {
    const TURN: u64 = 100_000; // ns
    let sched_attr: [u64; 6] = [48, 0, 0, TURN, 0, 0]; // length, ordinary policy, turn
    let first = libc::sched_param { sched_priority: 1 };
    // SAFETY: both structs are as long as the kernel expects.
    unsafe {
        if libc::sched_setscheduler(thread, libc::SCHED_FIFO, &first) != 0 {
            libc::syscall(libc::SYS_sched_setattr, thread, sched_attr.as_ptr(), 0);
        }
    }
}

fn recycle(spare: &mut Vec<Vec<u8>>, packet: Vec<u8>) {
    if spare.len() < MAX_SPARE {
        spare.push(packet);
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
