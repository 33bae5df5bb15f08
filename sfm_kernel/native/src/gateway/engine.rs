//! The gateway's thread: waits, reads, routes and writes.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connection::{Connection, Delays, Outcome, Remote, BATCH};
use super::emulation::Emulation;
use super::flow::{Flows, Frame};
use super::handle::{choose, Choice, Command, Mailbox, Options, Refused};
use super::peers::Peer;
use super::poll::{Event, Id, Poll};
use super::routing::Counts;
use super::schedule::Weights;
use super::sockets;
use super::strangers::{limit, Strangers};
use super::table::Table;
use super::FOR_PROCESS;
use crate::frame::control::{ControlCodec, ControlFrame, Counters};
use crate::frame::{site_number, Foreign, FrameKind, Header, FRAME};

/// Time between two ticks with other gateways, and without any.
const TICK: Duration = Duration::from_millis(50);
const IDLE_TICK: Duration = Duration::from_millis(500);
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Connections that are accepted before others have their turn.
const ACCEPTS_PER_TURN: usize = 16;
/// Bytes of one read: four large frames.
const READ_SIZE: usize = 256 << 10;

pub struct Engine {
    pub options: Options,
    pub choice: Choice,
    pub mailbox: Arc<Mailbox>,
    pub address: SocketAddr,
    pub codec: ControlCodec,
    pub poll: Poll,
    pub connections: Table,
    pub processes: HashMap<u128, Id>,
    pub peers: HashMap<u128, Peer>,
    pub flows: Flows,
    pub strangers: Strangers,
    /// Of the Hellos of processes, and of gateways: these sign nothing.
    pub counters: (Counters, Counters),
    pub weights: Weights,
    pub emulation: Option<Emulation>,
    pub counts: Counts,
    pub delays: Delays,
    pub started: Instant,
    listener: TcpListener,
    /// A connection may be waiting to be accepted.
    accept_pending: bool,
    /// More connections were waiting than one turn accepts.
    accept_more: bool,
    to_read: VecDeque<Id>,
    /// Connections that have something new to write.
    to_write: Vec<Id>,
    buffer: Vec<u8>,
    frames: Vec<Frame>,
    over: bool,
}

impl Engine {
    pub fn new(options: Options, uid: u128) -> Result<Engine, Refused> {
        let limit = limit();
        let listener = sockets::listen(&options.address, options.mptcp, limit as i32)
            .map_err(|error| Refused(format!("no gateway at {}: {error}", options.address)))?;
        let choice = choose(&listener, &options)?;
        let poll = Poll::new()?;
        poll.add(listener.as_raw_fd(), Id::LISTENER, libc::EPOLLIN)?;
        let emulated = !options.delay.is_zero() || options.limit.is_some();
        Ok(Engine {
            address: listener.local_addr()?,
            mailbox: Arc::new(Mailbox::new(poll.alarm.clone())),
            codec: ControlCodec::of_gateway(&options.key, uid, site_number(&options.site)),
            emulation: emulated.then(|| Emulation::new(options.delay, options.limit)),
            options,
            choice,
            poll,
            connections: Table::default(),
            processes: HashMap::new(),
            peers: HashMap::new(),
            flows: Flows::default(),
            strangers: Strangers::new(limit),
            counters: Default::default(),
            weights: Weights::new(),
            counts: Counts::default(),
            delays: Delays::default(),
            started: Instant::now(),
            listener,
            accept_pending: false,
            accept_more: false,
            to_read: VecDeque::new(),
            to_write: Vec::new(),
            buffer: vec![0; READ_SIZE],
            frames: Vec::new(),
            over: false,
        })
    }

    pub fn run(mut self) {
        let mut events = Vec::new();
        let (mut tick, mut sweep) = (Instant::now(), Instant::now());
        while !self.over {
            let now = Instant::now();
            if now >= tick {
                self.tick(now);
                tick = now + IDLE_TICK;
            }
            if !self.peers.is_empty() {
                tick = tick.min(now + TICK);
            }
            if now >= sweep {
                self.flows.sweep(now);
                sweep = now + SWEEP_EVERY;
            }
            self.write_all();
            let remaining = tick.saturating_duration_since(now).as_millis() as i32 + 1;
            let idle = self.to_read.is_empty() && !std::mem::take(&mut self.accept_more);
            self.poll.wait(if idle { remaining } else { 0 }, &mut events);
            for event in &events {
                self.handle(*event);
            }
            if self.accept_pending {
                self.accept();
            }
            self.read_all();
        }
    }

    fn handle(&mut self, event: Event) {
        match event.id {
            Id::LISTENER => self.accept_pending = true,
            Id::ALARM => self.run_commands(),
            Id::CLOCK => {} // `write_all` moves the emulated path
            id => {
                let Some(connection) = self.connections.get_mut(id) else { return };
                if let (Remote::Dialed { .. }, Ok(Some(error))) =
                    (connection.remote, connection.stream.take_error())
                {
                    return self.end(id, &error.to_string());
                }
                connection.readable |= event.readable;
                connection.ends |= event.ends;
                if event.writable && !connection.writable {
                    connection.writable = true;
                    self.to_write.push(id);
                }
                if event.readable {
                    self.read_later(id);
                }
            }
        }
    }

    fn run_commands(&mut self) {
        for command in self.mailbox.take() {
            match command {
                Command::Peers(listed) => self.set_peers(listed),
                Command::Weights(weights) => self.weights = weights,
                Command::Status(answer) => {
                    let _ = answer.send(self.status()); // the asking thread may have ended
                }
                Command::Close => self.over = true,
            }
        }
    }

    fn tick(&mut self, now: Instant) {
        for id in self.strangers.take_late(now) {
            self.end(id, "it sent nothing");
        }
        self.check_peers(now);
        for (pair, reason) in self.flows.owed(now) {
            self.send_dropped(pair, reason);
        }
        self.beat_to_paused();
    }

    /// A gateway does not read the questions of a paused process: beats show that it is alive.
    fn beat_to_paused(&mut self) {
        let quiet = |connection: &Connection| connection.paused && connection.waiting() == 0;
        for id in self.connections.ids(quiet) {
            let remote = self.connections.get(id).map(|connection| connection.remote);
            if let Some(Remote::Process(uid)) = remote {
                let beat = self.codec.seal(FrameKind::Beat, uid, self.codec.site, 0, b"");
                self.send_control(id, beat);
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS_PER_TURN {
            match self.listener.accept() {
                Ok((stream, address)) => {
                    sockets::prepare(&stream);
                    if stream.set_nonblocking(true).is_ok() {
                        let id = self.add_connection(stream, address, Remote::Stranger);
                        self.strangers.add(id, Instant::now());
                    }
                }
                Err(error) => {
                    let code = error.raw_os_error();
                    // No descriptor is left: evict a stranger; the next tick tries again.
                    if matches!(code, Some(libc::EMFILE | libc::ENFILE)) {
                        if let Some(id) = self.strangers.evict_one() {
                            self.end(id, "no descriptor is left");
                        }
                    }
                    if matches!(code, Some(libc::EINTR | libc::ECONNABORTED)) {
                        continue;
                    }
                    // The kernel reports later connections only after WouldBlock.
                    self.accept_pending = error.kind() != ErrorKind::WouldBlock;
                    return self.turn_away();
                }
            }
        }
        self.accept_more = true;
        self.turn_away();
    }

    fn turn_away(&mut self) {
        for id in self.strangers.evict_excess() {
            self.end(id, "too many strangers");
        }
    }

    /// Take a connection into the table.
    pub fn add_connection(
        &mut self,
        stream: std::net::TcpStream,
        address: SocketAddr,
        remote: Remote,
    ) -> Id {
        let fd = stream.as_raw_fd();
        let id = self.connections.insert(|id| Connection::new(id, stream, address, remote));
        let events = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP;
        if self.poll.add(fd, id, events).is_err() {
            self.end(id, "no memory is left");
        }
        id
    }

    pub fn read_later(&mut self, id: Id) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if connection.readable && !connection.paused && !connection.in_turn {
            connection.in_turn = true;
            self.to_read.push_back(id);
        }
    }

    /// Read each ready connection once, so that none waits for the end of another one.
    fn read_all(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut frames = std::mem::take(&mut self.frames);
        for _ in 0..self.to_read.len() {
            let Some(id) = self.to_read.pop_front() else { break };
            let Some(connection) = self.connections.get_mut(id) else { continue };
            connection.in_turn = false;
            if connection.paused {
                continue;
            }
            let outcome = connection.read(&mut buffer, &mut frames);
            if let (Some(wide), false) = (&mut connection.wide, frames.is_empty()) {
                wide.received_at = frames[0].arrived_at;
            }
            for frame in frames.drain(..) {
                self.receive(id, frame);
            }
            match outcome {
                Outcome::Open => self.read_later(id),
                Outcome::Ended => self.end(id, "it has hung up"),
                Outcome::Foreign(foreign) => self.end_foreign(id, foreign),
            }
        }
        (self.buffer, self.frames) = (buffer, frames);
    }

    /// The other end hears which version this gateway speaks, and this gateway's status says why.
    fn end_foreign(&mut self, id: Id, foreign: Foreign) {
        let bytes = foreign.answer();
        let header = Header::read(&bytes).expect("just written");
        self.send_control(id, ControlFrame { header, bytes });
        self.write(id);
        self.end(id, &foreign.to_string());
    }

    pub fn write_later(&mut self, id: Id) {
        self.to_write.push(id);
    }

    fn write_all(&mut self) {
        // Released frames and ended connections may give others something to write.
        while !self.to_write.is_empty() || self.pump() {
            for id in std::mem::take(&mut self.to_write) {
                self.write(id);
            }
        }
    }

    /// Write to a connection as much as the kernel takes.
    pub fn write(&mut self, id: Id) {
        let emulates = self.emulation.is_some();
        let mut freed = Vec::new();
        let mut outcome = Outcome::Open;
        let Some(connection) = self.connections.get_mut(id) else { return };
        while outcome == Outcome::Open {
            while connection.writable && connection.waiting() < BATCH {
                let direct = connection.wide.as_mut().filter(|wide| wide.sibling || !emulates);
                let Some(frame) = direct.and_then(|wide| wide.schedule.pop(&self.weights)) else {
                    break;
                };
                freed.push((frame.from, frame.size()));
                connection.queue(frame);
            }
            if !connection.writable || connection.waiting() == 0 {
                break;
            }
            let delays = &mut self.delays;
            outcome = match connection.wide.take() {
                None => connection.write(delays),
                Some(mut wide) => {
                    let fd = connection.stream.as_raw_fd();
                    let waited = connection.waiting();
                    let silence = wide.wrote.elapsed();
                    let outcome = wide.history.watch(fd, silence, || connection.write(delays));
                    wide.history.wrote((waited - connection.waiting()) as u64);
                    wide.wrote = Instant::now();
                    connection.wide = Some(wide);
                    outcome
                }
            };
        }
        let has_room = connection.overflowed && connection.waiting() < FOR_PROCESS / 2;
        let remote = connection.remote;
        if has_room {
            connection.overflowed = false;
        }
        for (from, bytes) in freed {
            self.release(from, bytes);
        }
        if outcome == Outcome::Ended {
            self.end(id, "it broke");
        } else if let (true, Remote::Process(uid)) = (has_room, remote) {
            self.resume_to(uid);
        }
    }

    /// `bytes` of a connection's frames no longer wait.
    pub fn release(&mut self, from: Id, bytes: usize) {
        let limit = self.hold_limit();
        let Some(connection) = self.connections.get_mut(from) else { return };
        connection.held = connection.held.saturating_sub(bytes);
        // Read again as soon as there is room: its acknowledgements wait among its messages.
        if connection.paused && connection.held + FRAME <= limit {
            connection.paused = false;
            self.read_later(from);
        }
    }
}
