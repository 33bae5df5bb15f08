//! Operations as messages, for memory that cannot be reached otherwise.
//!
//! An operation is sent in fragments, each of which contains everything that its target needs
//! (`message`): no datatype of the origin, no epoch. The target executes them in the order of
//! arrival, in any MPI call, or in a thread of its own that otherwise sleeps (`service`), and
//! answers each. Only a limited number is in transit at a time.

pub mod message;
pub mod service;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex};

use sfm_native::core::Payload;

use super::combining::Combining;
use super::operation::{Combined, Progress};
use super::route::Route;
use super::target::{not_attached, Target};
use super::waiting::Checked;
use super::{lock, Window};
use crate::data::Data;
use crate::datatype::named;
use crate::engine::{self, engine, Engine, Note};
use crate::errors::{fail, Answer};
use crate::handles::*;
use message::{AccessKind, Message};

/// The largest number of bytes in one message: for contiguous memory, and for other memory, whose
/// runs take room, too. Fewer if the ring is small.
const CONTIGUOUS: usize = 32 << 10;
const SCATTERED: usize = 2 << 10;
/// The largest number of unanswered messages to one target.
const UNDER_WAY: usize = 64;

/// The number of unanswered messages of one operation, and the first error.
#[derive(Default)]
pub struct Fragments {
    unanswered: AtomicUsize,
    code: AtomicI32,
}

impl Fragments {
    /// Its error code, after all messages are answered.
    pub fn end(&self) -> Option<c_int> {
        (self.unanswered.load(Acquire) == 0).then(|| self.code.load(Relaxed))
    }
}

/// The unanswered messages to each rank of a window.
pub struct Outgoing(Vec<Fragments>);

impl Outgoing {
    pub fn of(size: usize) -> Outgoing {
        Outgoing((0..size).map(|_| Fragments::default()).collect())
    }

    fn check(&self, window: &Window, rank: usize, most: usize) -> Checked {
        if self.0[rank].unanswered.load(Acquire) <= most {
            return Ok(());
        }
        window.control.block(rank).bell.ring();
        Err(Some(rank))
    }

    /// Wait until all messages to this rank are answered. Returns the error of one of them.
    pub fn flush(&self, window: &Window, rank: usize) -> Answer {
        if self.0[rank].unanswered.load(Acquire) > 0 {
            window.wait(Some(rank), || self.check(window, rank, 0))?;
        }
        let code = &self.0[rank].code;
        // Without a locked instruction in the usual case.
        if code.load(Relaxed) == MPI_SUCCESS {
            return Ok(());
        }
        match code.swap(MPI_SUCCESS, Relaxed) {
            MPI_SUCCESS => Ok(()),
            code => Err(fail(
                code,
                format!("rank {rank} has refused an operation: does its memory exist?"),
            )),
        }
    }
}

/// A message that is not answered yet.
struct Pending {
    window: Arc<Window>,
    rank: usize,
    operation: Arc<Fragments>,
    /// The result buffer, and the offset of this message's result in it.
    result: Option<(Data, usize)>,
}

struct Numbered {
    last: u32,
    all: Option<HashMap<u32, Pending>>,
}

static PENDING: Mutex<Numbered> = Mutex::new(Numbered { last: 0, all: None });

/// Begin an operation.
///
/// # Safety
/// The result's memory is valid until the operation has ended.
pub unsafe fn issue(
    target: &Target,
    kind: AccessKind,
    op: MPI_Op,
    element: MPI_Datatype,
    origin: Option<&Data>,
    result: Option<&Data>,
) -> Answer<Progress> {
    let (window, rank) = (target.window, target.rank);
    let (outgoing, process) = (&window.outgoing.0[rank], window.process(rank));
    let unit = named::get(element).map_or(1, |element| element.size);
    let room = engine().longest(process) - message::HEAD;
    let most = match target.data.contiguous() {
        Some(_) => CONTIGUOUS.min(room - message::RUN),
        None => SCATTERED.min(room / (message::RUN + 1)), // each byte may be a run
    };
    let (most, total) = (most / unit * unit, target.data.len());
    let operation = Arc::new(Fragments::default());
    for first in (0..total).step_by(most) {
        let range = first..(first + most).min(total);
        let mut bytes = Vec::new();
        match (origin, kind) {
            (Some(both), AccessKind::Swap) => bytes = both.pack(),
            (Some(origin), _) => origin.pack_range(range.clone(), &mut bytes),
            (None, _) => {}
        }
        let expects_result = result.is_some();
        let message = Message::of(kind, op, element, expects_result, &target.data, range, bytes);
        operation.unanswered.fetch_add(1, Relaxed);
        outgoing.unanswered.fetch_add(1, Relaxed);
        let result = result.map(|result| (result.clone(), first));
        let operation = operation.clone();
        let pending = Pending { window: window.clone(), rank, operation, result };
        let number = {
            let mut numbered = lock(&PENDING);
            numbered.last = numbered.last.wrapping_add(1);
            let number = numbered.last;
            numbered.all.get_or_insert_default().insert(number, pending);
            number
        };
        let kind = engine::MessageKind::Access;
        engine().send_large_control(kind, process, number, window.id(), message.encoded());
        window.control.block(rank).bell.ring();
        if outgoing.unanswered.load(Relaxed) > UNDER_WAY {
            let check = || window.outgoing.check(window, rank, UNDER_WAY / 2);
            window.wait(Some(rank), check)?;
        }
    }
    Ok(Some(operation))
}

/// Arrived messages, in the order of arrival.
static ARRIVED: Mutex<VecDeque<(Note, i64, Vec<u8>)>> = Mutex::new(VecDeque::new());
/// Held while a message is executed.
static EXECUTING: Mutex<()> = Mutex::new(());

/// Queue a message for a window. The caller holds the core's lock.
pub fn arrive(note: Note, tag: i64, payload: Payload<'_>) {
    let mut bytes = payload.0.to_vec();
    bytes.extend_from_slice(payload.1);
    lock(&ARRIVED).push_back((note, tag, bytes));
}

/// Execute the queued messages.
pub fn catch_up(engine: &Engine) {
    let _in_order = lock(&EXECUTING);
    loop {
        let next = lock(&ARRIVED).pop_front();
        let Some((note, tag, bytes)) = next else { return };
        match note.kind {
            engine::MessageKind::Access => {
                let (code, bytes) = match serve(tag, &bytes) {
                    Ok(bytes) => (MPI_SUCCESS, bytes),
                    Err(failure) => (failure.code, Vec::new()),
                };
                let kind = engine::MessageKind::Accessed;
                engine.send_large_control(kind, note.rank, note.number, code.into(), bytes);
            }
            _ => answered(note.number, tag as c_int, &bytes),
        }
    }
}

fn answered(number: u32, code: c_int, bytes: &[u8]) {
    let pending = lock(&PENDING).all.as_mut().and_then(|all| all.remove(&number));
    let Some(Pending { window, rank, operation, result }) = pending else { return };
    if let (Some((data, first)), MPI_SUCCESS) = (result, code) {
        // SAFETY: the program leaves the memory to the operation until it has ended.
        unsafe { data.unpack_at(first, bytes) };
    }
    for fragments in [&*operation, &window.outgoing.0[rank]] {
        if code != MPI_SUCCESS {
            fragments.code.store(code, Relaxed);
        }
        fragments.unanswered.fetch_sub(1, Release);
    }
}

/// Execute an operation on this process's memory; returns the answer.
fn serve(id: i64, bytes: &[u8]) -> Answer<Vec<u8>> {
    let wrong = || fail(MPI_ERR_INTERN, "a message for a window is invalid");
    let window = super::of_id(id).ok_or_else(wrong)?;
    let message = Message::decoded(bytes).ok_or_else(wrong)?;
    let layout = message.layout();
    let base = if window.is_dynamic() { 0 } else { window.local.base };
    if let Some((low, high)) = layout.bounds() {
        let is_inside = match window.is_dynamic() {
            true => lock(&window.attached).has(low as usize, (high - low) as usize),
            false => low >= 0 && high <= window.local.size,
        };
        if !is_inside {
            return Err(not_attached(low as usize, (high - low) as usize));
        }
    }
    let data = Data::laid_out(base as *mut u8, layout);
    let (route, rank, length) = (Route::Here(base), window.rank(), data.len());
    let target = Target { window: &window, rank, route, data };
    let mut result = vec![0; if message.expects_result { length } else { 0 }];
    let into = Data::bytes(result.as_mut_ptr(), length);
    let from = Data::bytes(message.bytes.as_ptr().cast_mut(), message.bytes.len());
    // SAFETY: checked to be inside the window's memory; the rest is ours.
    unsafe {
        match message.kind {
            AccessKind::Put => target.put(&from)?,
            AccessKind::Get if message.expects_result => target.get(&into)?,
            AccessKind::Swap if message.expects_result && message.bytes.len() == 2 * length => {
                let compare = message.bytes.as_ptr();
                target.compare_and_swap(compare, compare.add(length), result.as_mut_ptr())?
            }
            AccessKind::Combine => {
                let combining = Combining::of_code(message.op, message.element)?;
                let origin = (from.len() > 0).then_some(&from);
                let result = message.expects_result.then_some(&into);
                target.accumulate(&Combined { combining, origin, result })?
            }
            _ => return Err(wrong()),
        }
    };
    Ok(result)
}
