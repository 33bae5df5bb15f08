//! Starts, controls and ends a gateway: the interface for the program around it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use ::ring::rand::{SecureRandom, SystemRandom};

use super::engine::Engine;
use super::schedule::{Scheduler, Weights};
use crate::event_fd::EventFd;
use crate::frame::gateway_key::GATEWAY_KEY;
use crate::signals::Unsignalled;
use crate::sync::lock;
use crate::tcp_info;

/// The maximum number of connections between two gateways.
pub const MOST_CONNECTIONS: u8 = 64;
/// Connections with the kernel's default algorithm if it has no BBR: after a loss a single one
/// would halve its window for every flow. Measured: 451 ms for one against 41 for four.
const WITHOUT_BBR: u8 = 4;

#[derive(Clone)]
pub struct Options {
    /// Name of the site.
    pub site: String,
    /// The gateway key.
    pub key: [u8; GATEWAY_KEY],
    pub address: SocketAddr,
    /// TCP's congestion control between gateways; None: the best available.
    pub algorithm: Option<String>,
    /// Connections to each other gateway; None: as many as the algorithm needs.
    pub connections: Option<u8>,
    pub mptcp: bool,
    /// Limit in bytes per second to each other gateway, by pacing.
    pub pacing: Option<u64>,
    pub scheduler: Scheduler,
    /// One-way delay of the emulated path to other sites.
    pub delay: Duration,
    /// Rate of the emulated path, in bytes per second, for all frames to other sites.
    pub limit: Option<u64>,
}

/// Another gateway, as the directory lists it.
#[derive(Clone, Debug)]
pub struct Listed {
    pub uid: u128,
    pub site: String,
    pub address: SocketAddr,
}

/// Why the gateway could not start, in a sentence.
#[derive(Debug)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        Refused(format!("no gateway: {error}"))
    }
}

/// The connections between gateways, and the reason for the choice.
#[derive(Clone, Debug)]
pub struct Choice {
    pub algorithm: String,
    pub connections: u8,
    pub why: String,
}

/// The requested congestion control, or the best one; `socket` is any TCP socket.
pub fn choose(socket: &impl AsRawFd, options: &Options) -> Result<Choice, Refused> {
    let fd = socket.as_raw_fd();
    let usual = tcp_info::congestion(fd)?;
    let connections = options.connections.map(|connections| connections.clamp(1, MOST_CONNECTIONS));
    let try_out = |name: &str| -> io::Result<()> {
        tcp_info::set_congestion(fd, name)?;
        // Accepted connections, processes' ones too, would inherit it from the listening socket.
        let _ = tcp_info::set_congestion(fd, &usual);
        Ok(())
    };
    let (algorithm, why) = if let Some(name) = &options.algorithm {
        try_out(name).map_err(|error| {
            let read = |kind: &str| {
                let file = format!("/proc/sys/net/ipv4/tcp_{kind}_congestion_control");
                std::fs::read_to_string(file)
                    .map_or("unknown".into(), |text| text.trim().to_owned())
            };
            Refused(format!(
                "the kernel refuses the congestion control {name:?} ({error}). It has: {}. Users \
                 other than root may choose: {}",
                read("available"),
                read("allowed")
            ))
        })?;
        (name.as_str(), "asked for")
    } else if try_out("bbr").is_ok() {
        ("bbr", "bbr, which bears loss and silence on one connection")
    } else {
        let connections = connections.unwrap_or(WITHOUT_BBR);
        let why = format!("the kernel gives no bbr here: {connections} connections with {usual}");
        return Ok(Choice { algorithm: usual, connections, why });
    };
    let (algorithm, why) = (algorithm.to_owned(), why.to_owned());
    Ok(Choice { algorithm, connections: connections.unwrap_or(1), why })
}

pub enum Command {
    Peers(Vec<Listed>),
    Weights(Weights),
    Status(Sender<String>),
    Close,
}

/// Commands of other threads to the gateway's thread.
pub struct Mailbox {
    commands: Mutex<Vec<Command>>,
    alarm: Arc<EventFd>,
}

impl Mailbox {
    pub fn new(alarm: Arc<EventFd>) -> Mailbox {
        Mailbox { commands: Mutex::default(), alarm }
    }

    fn put(&self, command: Command) {
        lock(&self.commands).push(command);
        self.alarm.ring();
    }

    pub fn take(&self) -> Vec<Command> {
        std::mem::take(&mut *lock(&self.commands))
    }
}

/// A running gateway, until it is closed or dropped.
pub struct Gateway {
    pub uid: u128,
    /// The address at which it listens.
    pub address: SocketAddr,
    pub choice: Choice,
    mailbox: Arc<Mailbox>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// A forked child has no such thread, and everything else belongs to the parent.
    pid: u32,
}

impl Gateway {
    pub fn start(options: Options) -> Result<Gateway, Refused> {
        let mut uid = [0; 16];
        SystemRandom::new().fill(&mut uid).expect("the kernel has random numbers");
        let engine = Engine::new(options, u128::from_le_bytes(uid))?;
        let (mailbox, address) = (engine.mailbox.clone(), engine.address);
        let choice = engine.choice.clone();
        let unsignalled = Unsignalled::enter();
        let thread = std::thread::Builder::new()
            .name("sfm-gateway".into())
            .spawn(move || engine.run())
            .map_err(Refused::from);
        drop(unsignalled);
        let thread = Mutex::new(Some(thread?));
        let (uid, pid) = (u128::from_le_bytes(uid), std::process::id());
        Ok(Gateway { uid, address, choice, mailbox, thread, pid })
    }

    /// Replace the list of all sites' gateways, which may include this one.
    pub fn peers(&self, listed: Vec<Listed>) {
        self.mailbox.put(Command::Peers(listed));
    }

    /// Give senders a weight other than 1.
    pub fn weights(&self, weights: Weights) {
        self.mailbox.put(Command::Weights(weights));
    }

    /// The gateway's status, as JSON; "{}" once it is closed.
    pub fn status(&self) -> String {
        let (sender, receiver) = channel();
        if self.pid != std::process::id() {
            return "{}".into();
        }
        self.mailbox.put(Command::Status(sender));
        if lock(&self.thread).is_none() {
            self.mailbox.take();
        }
        receiver.recv().unwrap_or_else(|_| "{}".into())
    }

    /// End the gateway and all its connections. Idempotent.
    pub fn close(&self) {
        if self.pid != std::process::id() {
            return;
        }
        self.mailbox.put(Command::Close);
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            let _ = thread.join(); // a panic is already on stderr
        }
        self.mailbox.take();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.close();
    }
}
