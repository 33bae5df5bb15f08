//! One connection over ZeroMQ: sends frames in order.
//!
//! libzmq gets a frame only while it has little: what waits here can still be passed by a frame that
//! reports a state, or be withdrawn. A frame is lent, not copied, and counts until libzmq drops it.

use std::io::Result;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::context::Context;
use super::curve::{Key, Pair};
use super::descriptor::Descriptor;
use super::message::Message;
use super::monitor::{Event, Monitored};
use super::router::Router;
use super::socket::{Number, Socket, SocketKind};
use super::watch::{Watch, Watched};
use crate::sync::lock;
use crate::tcp_info::TcpInfo;
use crate::wire::forked::{note_port, Note};
use crate::wire::send_queue::SendQueue;
use crate::wire::tcp_state::TcpState;
use crate::wire::Wire;

/// Bytes that libzmq may have of a connection: enough to keep it busy.
const MOST_UNDER_WAY: usize = 4 << 20;

/// Thread-safe.
pub struct Connection {
    pub id: u64,
    end: End,
    ended: AtomicBool,
    confirmed: AtomicBool,
    pub tcp: TcpState,
    out: Mutex<Out>,
    under_way: Arc<InFlight>,
    descriptor: OnceLock<(Descriptor, Note)>,
    /// Looks since its end was noted: see `is_over`.
    over: AtomicU8,
}

enum End {
    /// This process has dialed: a DEALER, whose only connection this is; None once it is closed.
    Dialed(Mutex<Option<Watched>>),
    /// A connection of this process's ROUTER, by its routing id.
    Accepted(Arc<Router>, Vec<u8>),
}

#[derive(Default)]
struct Out {
    queue: SendQueue,
    /// libzmq has refused a frame: nothing can follow it.
    failed: bool,
}

/// The bytes of a connection that libzmq has.
struct InFlight {
    id: u64,
    bytes: AtomicUsize,
    /// Frames wait until it has fewer.
    waited_for: AtomicBool,
    watch: Arc<Watch>,
}

impl InFlight {
    fn has_room(&self) -> bool {
        let has_room = || self.bytes.load(Ordering::SeqCst) < MOST_UNDER_WAY;
        if has_room() {
            return true;
        }
        self.waited_for.store(true, Ordering::SeqCst);
        has_room() // since the last look libzmq may have dropped the last of them
    }
}

/// A frame that libzmq has.
struct Lent {
    frame: Arc<Vec<u8>>,
    under_way: Arc<InFlight>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.frame
    }
}

impl Drop for Lent {
    /// In libzmq's thread, or in a call of its functions: no call to libzmq here.
    fn drop(&mut self) {
        let left = self.under_way.bytes.fetch_sub(self.frame.len(), Ordering::SeqCst);
        let left = left - self.frame.len();
        if left < MOST_UNDER_WAY && self.under_way.waited_for.swap(false, Ordering::SeqCst) {
            self.under_way.watch.look_at(self.under_way.id);
        }
    }
}

impl Connection {
    /// Begin to connect to the server with this public key, which sends no message above `largest`
    /// bytes: whoever listens there has not shown the key yet. `watch` reports what happens as `id`.
    pub fn dial(
        context: &Arc<Context>,
        watch: &Arc<Watch>,
        id: u64,
        address: &str,
        pair: &Pair,
        server: &Key,
        largest: usize,
    ) -> Result<Connection> {
        let mut dealer = Socket::new(context, SocketKind::Dealer)?;
        pair.connect(&mut dealer, server)?;
        // The link above resumes: what libzmq would send on another connection may be too late.
        dealer.set(Number::ReconnectInterval, -1)?;
        // A process that is stopped shakes hands when it goes on.
        dealer.set(Number::HandshakeInterval, 0)?;
        dealer.keep_alive()?;
        dealer.limit_frames(largest as u64)?;
        let mut dealer = Watched::new(Monitored::new(dealer)?, watch, id)?;
        dealer.socket().connect(address)?;
        Ok(Connection::new(id, End::Dialed(Mutex::new(Some(dealer))), watch))
    }

    /// A connection of the ROUTER, from whose first message its descriptor comes.
    pub fn accepted(router: &Arc<Router>, id: u64, route: &[u8], first: &Message) -> Connection {
        let end = End::Accepted(Arc::clone(router), route.to_vec());
        let connection = Connection::new(id, end, router.watch());
        if let Some(fd) = first.source() {
            connection.connected(fd);
        }
        connection
    }

    fn new(id: u64, end: End, watch: &Arc<Watch>) -> Connection {
        let (bytes, waited_for) = Default::default();
        Connection {
            id,
            end,
            ended: AtomicBool::new(false),
            confirmed: AtomicBool::new(false),
            tcp: TcpState::default(),
            out: Mutex::default(),
            under_way: Arc::new(InFlight { id, bytes, waited_for, watch: Arc::clone(watch) }),
            descriptor: OnceLock::new(),
            over: AtomicU8::new(0),
        }
    }

    // ---- sending ----

    /// Hand over queued frames, as far as there is room.
    pub fn flush(&self) {
        self.write(&mut lock(&self.out));
    }

    fn write(&self, out: &mut Out) {
        while !self.has_ended() && self.under_way.has_room() {
            let Some(frame) = out.queue.pop() else { return };
            if !self.send(frame).unwrap_or(false) {
                out.failed = true;
                out.queue.clear();
                return self.note_end(); // whatever the reason
            }
        }
    }

    /// What the kernel reports now.
    fn info(&self) -> Option<TcpInfo> {
        self.descriptor()?.with(|fd| TcpInfo::read(fd).ok())?
    }

    /// To be called from time to time: what was sent last may have been written.
    pub fn look_after_writing(&self) {
        self.tcp.look_after(|| self.info());
    }

    fn send(&self, frame: Arc<Vec<u8>>) -> Result<bool> {
        self.look_after_writing();
        self.tcp.expect(frame.len(), || self.info());
        let watch = &self.under_way.watch;
        let lend = |context: &Context| {
            self.under_way.bytes.fetch_add(frame.len(), Ordering::SeqCst);
            let under_way = Arc::clone(&self.under_way);
            Message::lend(context.library, Lent { frame, under_way })
        };
        match &self.end {
            End::Dialed(dealer) => {
                let mut dealer = lock(dealer);
                let Some(dealer) = dealer.as_mut() else { return Ok(false) };
                let frame = lend(&dealer.socket().context)?;
                let sent = dealer.socket().send(&mut [frame]);
                // No descriptor signals what came during the call, even if that has failed.
                if dealer.socket().is_readable()? {
                    watch.look_at(self.id);
                }
                sent
            }
            End::Accepted(router, route) => router.send(route, lend),
        }
    }

    /// Whether libzmq has taken everything and dropped it.
    pub fn is_flushed(&self) -> bool {
        let is_queued = !lock(&self.out).queue.is_empty();
        !is_queued && self.under_way.bytes.load(Ordering::SeqCst) == 0
    }

    // ---- receiving ----

    /// The next frame of a connection that this process has dialed, if one has come.
    pub fn receive(&self) -> Option<Message> {
        let End::Dialed(dealer) = &self.end else { return None };
        let mut dealer = lock(dealer);
        let socket = dealer.as_mut()?.socket();
        let mut frame = Message::empty(socket.context.library);
        let came = socket.receive(&mut frame).unwrap_or(false);
        came.then_some(frame)
    }

    /// What has become of a connection that this process has dialed.
    pub fn event(&self) -> Option<Event> {
        let End::Dialed(dealer) = &self.end else { return None };
        lock(dealer).as_mut()?.event().unwrap_or(None)
    }

    // ---- the connection ----

    /// TCP has connected: this is its descriptor.
    pub fn connected(&self, fd: RawFd) {
        if let Some(descriptor) = Descriptor::of(fd) {
            let _ = self.descriptor.set((descriptor, note_port(descriptor.local.port())));
        }
    }

    /// The descriptor; None until TCP has connected.
    pub fn descriptor(&self) -> Option<&Descriptor> {
        self.descriptor.get().map(|(descriptor, _)| descriptor)
    }

    pub fn confirm(&self, is_confirmed: bool) {
        self.confirmed.store(is_confirmed, Ordering::Relaxed);
    }

    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// It has ended. What came before may still be under way in libzmq.
    pub fn note_end(&self) {
        let _ = self.over.compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed);
        self.under_way.watch.look_at(self.id);
    }

    /// Whether its end was noted, and all has come in that came before: to be asked once in each
    /// look, after what has come was received. libzmq reports an end a moment before it hands over
    /// the last frames.
    pub fn is_over(&self) -> bool {
        match self.over.load(Ordering::SeqCst) {
            0 => false,
            1 => {
                self.over.store(2, Ordering::SeqCst);
                self.under_way.watch.look_at(self.id);
                false
            }
            _ => true,
        }
    }

    /// The routing id of an accepted connection.
    pub fn route(&self) -> Option<&[u8]> {
        match &self.end {
            End::Accepted(_, route) => Some(route),
            End::Dialed(_) => None,
        }
    }

    /// Stop using it. The peer sees its end.
    pub fn end(&self) {
        let mut out = lock(&self.out);
        if !self.ended.swap(true, Ordering::AcqRel) {
            out.queue.clear();
            match &self.end {
                End::Dialed(dealer) => drop(lock(dealer).take()),
                End::Accepted(..) => self.break_off(),
            }
        }
    }
}

impl Wire for Connection {
    fn id(&self) -> u64 {
        self.id
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn is_confirmed(&self) -> bool {
        self.confirmed.load(Ordering::Relaxed)
    }

    fn with_queue(&self, change: impl FnOnce(&mut SendQueue)) {
        let mut out = lock(&self.out);
        if self.has_ended() || out.failed {
            return;
        }
        change(&mut out.queue);
        self.write(&mut out);
    }

    fn break_off(&self) {
        match self.descriptor() {
            Some(descriptor) => descriptor.shut_down(),
            None if matches!(self.end, End::Dialed(_)) => self.end(),
            None => {}
        }
    }
}
