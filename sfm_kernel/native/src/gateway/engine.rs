//! The gateway's thread: waits, reads, has frames routed, writes.

use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connection::{Connection, Delays, Outcome, Whose, BATCH};
use super::emulation::Emulation;
use super::flow::{Flows, Frame};
use super::handle::{choose, Choice, Command, Mailbox, Options, Refused};
use super::peers::Peer;
use super::poll::{Event, Id, Poll};
use super::routing::Counts;
use super::schedule::Weights;
use super::sockets;
use super::strangers::{most, Strangers};
use super::FOR_PROCESS;
use crate::net::control::{ControlVoice, Counters};
use crate::net::frame::{site_number, Kind, FRAME};

/// Between two looks at the clock, while there are other gateways; and without.
const TICK: Duration = Duration::from_millis(50);
const SLOW_TICK: Duration = Duration::from_millis(500);
const SWEEP: Duration = Duration::from_secs(1);
/// Connections that are accepted before others have their turn.
const ACCEPTED: usize = 16;
/// Bytes that are read at once: four large frames.
const ROOM: usize = 256 << 10;

/// All connections, by place. A place is used again, an Id is not.
#[derive(Default)]
pub struct Table {
    places: Vec<(u32, Option<Box<Connection>>)>,
    free: Vec<usize>,
}

impl Table {
    pub fn insert(&mut self, make: impl FnOnce(Id) -> Connection) -> Id {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() - 1
        });
        let id = Id::new(place, self.places[place].0);
        self.places[place].1 = Some(Box::new(make(id)));
        id
    }

    pub fn get(&self, id: Id) -> Option<&Connection> {
        self.places.get(id.place())?.1.as_deref().filter(|one| one.id == id)
    }

    pub fn get_mut(&mut self, id: Id) -> Option<&mut Connection> {
        self.places.get_mut(id.place())?.1.as_deref_mut().filter(|one| one.id == id)
    }

    pub fn remove(&mut self, id: Id) -> Option<Box<Connection>> {
        self.get(id)?;
        let (generation, place) = &mut self.places[id.place()];
        // Those with the highest bits are no connections (`Id::NONE` and others).
        *generation = (*generation + 1) & 0x7fff_ffff;
        self.free.push(id.place());
        place.take()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Connection> {
        self.places.iter().filter_map(|(_, one)| one.as_deref())
    }

    /// The ids of those that `which` chooses.
    pub fn ids(&self, which: impl Fn(&Connection) -> bool) -> Vec<Id> {
        self.iter().filter(|one| which(one)).map(|one| one.id).collect()
    }
}

pub struct Engine {
    pub options: Options,
    pub choice: Choice,
    pub mailbox: Arc<Mailbox>,
    pub address: SocketAddr,
    pub voice: ControlVoice,
    pub poll: Poll,
    pub connections: Table,
    pub processes: HashMap<u128, Id>,
    pub peers: HashMap<u128, Peer>,
    pub flows: Flows,
    pub strangers: Strangers,
    pub counters: Counters,
    pub weights: Weights,
    pub emulation: Option<Emulation>,
    pub counts: Counts,
    pub delays: Delays,
    pub started: Instant,
    listener: TcpListener,
    /// Somebody may be waiting to be accepted.
    knocking: bool,
    /// More were waiting than were accepted at once.
    crowded: bool,
    ready: VecDeque<Id>,
    /// Those that have something new to write.
    dirty: Vec<Id>,
    room: Vec<u8>,
    frames: Vec<Frame>,
    over: bool,
}

impl Engine {
    pub fn new(options: Options, uid: u128) -> Result<Engine, Refused> {
        let most = most();
        let listener = sockets::listen(&options.address, options.mptcp, most as i32)
            .map_err(|error| Refused(format!("no gateway at {}: {error}", options.address)))?;
        let choice = choose(&listener, &options)?;
        let poll = Poll::new()?;
        poll.add(listener.as_raw_fd(), Id::LISTENER, libc::EPOLLIN)?;
        let emulated = !options.delay.is_zero() || options.limit.is_some();
        Ok(Engine {
            address: listener.local_addr()?,
            mailbox: Arc::new(Mailbox::new(poll.alarm()?)),
            voice: ControlVoice::new(&options.key, uid, site_number(&options.site)),
            emulation: emulated.then(|| Emulation::new(options.delay, options.limit)),
            options,
            choice,
            poll,
            connections: Table::default(),
            processes: HashMap::new(),
            peers: HashMap::new(),
            flows: Flows::default(),
            strangers: Strangers::new(most),
            counters: Counters::default(),
            weights: Weights::new(),
            counts: Counts::default(),
            delays: Delays::default(),
            started: Instant::now(),
            listener,
            knocking: false,
            crowded: false,
            ready: VecDeque::new(),
            dirty: Vec::new(),
            room: vec![0; ROOM],
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
                tick = now + SLOW_TICK;
            }
            if !self.peers.is_empty() {
                tick = tick.min(now + TICK);
            }
            if now >= sweep {
                self.flows.sweep(now);
                sweep = now + SWEEP;
            }
            self.write_all();
            let left = tick.saturating_duration_since(now).as_millis() as i32 + 1;
            let idle = self.ready.is_empty() && !std::mem::take(&mut self.crowded);
            self.poll.wait(if idle { left } else { 0 }, &mut events);
            for event in &events {
                self.told(*event);
            }
            if self.knocking {
                self.accept();
            }
            self.read_all();
        }
    }

    fn told(&mut self, event: Event) {
        match event.id {
            Id::LISTENER => self.knocking = true,
            Id::ALARM => self.obey(),
            Id::CLOCK => {} // `write_all` looks at the emulated path
            id => {
                let Some(one) = self.connections.get_mut(id) else { return };
                if let (Whose::Dialed { .. }, Ok(Some(error))) =
                    (one.whose, one.stream.take_error())
                {
                    return self.end(id, &error.to_string());
                }
                one.readable |= event.readable;
                if event.writable && !one.writable {
                    one.writable = true;
                    self.dirty.push(id);
                }
                if event.readable {
                    self.read_later(id);
                }
            }
        }
    }

    fn obey(&mut self) {
        for command in self.mailbox.take() {
            match command {
                Command::Peers(listed) => self.list(listed),
                Command::Weights(weights) => self.weights = weights,
                Command::Status(answer) => {
                    let _ = answer.send(self.status()); // who asked may be gone
                }
                Command::Close => self.over = true,
            }
        }
    }

    fn tick(&mut self, now: Instant) {
        for id in self.strangers.late(now) {
            self.end(id, "said nothing");
        }
        self.tend(now);
        for (pair, reason) in self.flows.owed(now) {
            self.say_dropped(pair, reason);
        }
        self.beat_to_paused();
    }

    /// What a process asks that is held up does not come here: it is to see that this gateway lives.
    fn beat_to_paused(&mut self) {
        for id in self.connections.ids(|one| one.paused && one.waiting() == 0) {
            if let Some(Whose::Process(uid)) = self.connections.get(id).map(|one| one.whose) {
                let beat = self.voice.say(Kind::Beat, uid, self.voice.site, 0, b"");
                self.queue(id, beat);
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED {
            match self.listener.accept() {
                Ok((stream, address)) => {
                    sockets::prepare(&stream);
                    if stream.set_nonblocking(true).is_ok() {
                        let id = self.enter(stream, address, Whose::Stranger);
                        self.strangers.come(id, Instant::now());
                    }
                }
                Err(error) => {
                    let code = error.raw_os_error();
                    // No descriptor is left: somebody has to go, and the next tick tries again.
                    if matches!(code, Some(libc::EMFILE | libc::ENFILE)) {
                        if let Some(id) = self.strangers.any() {
                            self.end(id, "no descriptor is left");
                        }
                    }
                    if matches!(code, Some(libc::EINTR | libc::ECONNABORTED)) {
                        continue;
                    }
                    // Only then the kernel tells of those who come next.
                    self.knocking = error.kind() != ErrorKind::WouldBlock;
                    return self.turn_away();
                }
            }
        }
        self.crowded = true;
        self.turn_away();
    }

    fn turn_away(&mut self) {
        for id in self.strangers.too_many() {
            self.end(id, "too many strangers");
        }
    }

    /// A connection is one of ours from now on.
    pub fn enter(&mut self, stream: std::net::TcpStream, address: SocketAddr, whose: Whose) -> Id {
        let fd = stream.as_raw_fd();
        let id = self.connections.insert(|id| Connection::new(id, stream, address, whose));
        let events = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP;
        if self.poll.add(fd, id, events).is_err() {
            self.end(id, "no memory is left");
        }
        id
    }

    pub fn read_later(&mut self, id: Id) {
        let Some(one) = self.connections.get_mut(id) else { return };
        if one.readable && !one.paused && !one.in_turn {
            one.in_turn = true;
            self.ready.push_back(id);
        }
    }

    /// Read each connection that has something once, so that none has to wait for another one's end.
    fn read_all(&mut self) {
        let mut room = std::mem::take(&mut self.room);
        let mut frames = std::mem::take(&mut self.frames);
        for _ in 0..self.ready.len() {
            let Some(id) = self.ready.pop_front() else { break };
            let Some(one) = self.connections.get_mut(id) else { continue };
            one.in_turn = false;
            if one.paused {
                continue;
            }
            let outcome = one.read(&mut room, &mut frames);
            if let (Some(wide), false) = (&mut one.wide, frames.is_empty()) {
                wide.heard = frames[0].came;
            }
            for frame in frames.drain(..) {
                self.take(id, frame);
            }
            match outcome {
                Outcome::Open => self.read_later(id),
                Outcome::Over => self.end(id, "it has hung up"),
            }
        }
        (self.room, self.frames) = (room, frames);
    }

    pub fn write_later(&mut self, id: Id) {
        self.dirty.push(id);
    }

    fn write_all(&mut self) {
        // What is freed, or ends, may make others dirty.
        while !self.dirty.is_empty() || self.pump() {
            for id in std::mem::take(&mut self.dirty) {
                self.write(id);
            }
        }
    }

    /// Write to a connection as much as goes.
    pub fn write(&mut self, id: Id) {
        let plays = self.emulation.is_some();
        let mut freed = Vec::new();
        let mut outcome = Outcome::Open;
        let Some(one) = self.connections.get_mut(id) else { return };
        while outcome == Outcome::Open {
            while one.writable && one.waiting() < BATCH {
                let direct = one.wide.as_mut().filter(|wide| wide.sibling || !plays);
                let Some(frame) = direct.and_then(|wide| wide.schedule.pop(&self.weights)) else {
                    break;
                };
                freed.push((frame.from, frame.size()));
                one.queue(frame);
            }
            if !one.writable || one.waiting() == 0 {
                break;
            }
            let delays = &mut self.delays;
            outcome = match one.wide.take() {
                None => one.write(delays),
                Some(mut wide) => {
                    let fd = one.stream.as_raw_fd();
                    let waited = one.waiting();
                    let silence = wide.wrote.elapsed();
                    let outcome = wide.past.watch(fd, silence, || one.write(delays));
                    wide.past.wrote((waited - one.waiting()) as u64);
                    wide.wrote = Instant::now();
                    one.wide = Some(wide);
                    outcome
                }
            };
        }
        let has_room = one.overflowed && one.waiting() < FOR_PROCESS / 2;
        let whose = one.whose;
        if has_room {
            one.overflowed = false;
        }
        for (from, bytes) in freed {
            self.release(from, bytes);
        }
        if outcome == Outcome::Over {
            self.end(id, "it broke");
        } else if let (true, Whose::Process(uid)) = (has_room, whose) {
            self.open_to(uid);
        }
    }

    /// So many bytes of a connection's frames do not wait any more.
    pub fn release(&mut self, from: Id, bytes: usize) {
        let most = self.may_hold();
        let Some(one) = self.connections.get_mut(from) else { return };
        one.held = one.held.saturating_sub(bytes);
        // As soon as there is room for more: what it acknowledges waits among what it sends.
        if one.paused && one.held + FRAME <= most {
            one.paused = false;
            self.read_later(from);
        }
    }
}
