//! Operations as messages, for memory that can be reached in no other way.
//!
//! An operation goes in pieces, each of which says all that its target has to know (`message`): no
//! datatype of the origin's, no epoch. The target does them in the order in which they come, in
//! whatever call of MPI it is, or in a thread of its own that sleeps otherwise (`service`), and
//! answers each. Few are under way at a time.

pub mod message;
pub mod service;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering::*};
use std::sync::{Arc, Mutex};

use sfm_native::core::Payload;

use super::combining::Combining;
use super::operation::{Combined, Progress};
use super::target::{not_attached, Target};
use super::waiting::Look;
use super::way::Way;
use super::{lock, Window};
use crate::data::Data;
use crate::datatype::named;
use crate::engine::{self, engine, Engine, Note};
use crate::errors::{fail, Answer};
use crate::handles::*;
use message::{Kind, Message};

/// Bytes of an operation that one message has, at most: of memory in a row, and of other memory,
/// whose places take room, too.
const PIECE: usize = 32 << 10;
const SCATTERED: usize = 2 << 10;
/// Messages to one target that are not answered, at most.
const UNDER_WAY: usize = 64;

/// One operation: its messages that are not answered, and the first error.
#[derive(Default)]
pub struct Pieces {
    left: AtomicUsize,
    code: AtomicI32,
}

impl Pieces {
    /// Its error, when all have been answered.
    pub fn end(&self) -> Option<c_int> {
        (self.left.load(Acquire) == 0).then(|| self.code.load(Relaxed))
    }
}

/// What is under way to each rank of a window.
pub struct Outgoing(Vec<Pieces>);

impl Outgoing {
    pub fn of(size: usize) -> Outgoing {
        Outgoing((0..size).map(|_| Pieces::default()).collect())
    }

    fn look(&self, window: &Window, rank: usize, most: usize) -> Look {
        if self.0[rank].left.load(Acquire) <= most {
            return Ok(());
        }
        window.control.part(rank).bell.ring();
        Err(Some(rank))
    }

    /// Wait until all messages to this rank have been answered. An error of one is told here.
    pub fn flush(&self, window: &Window, rank: usize) -> Answer {
        if self.0[rank].left.load(Acquire) > 0 {
            window.wait(Some(rank), || self.look(window, rank, 0))?;
        }
        match self.0[rank].code.swap(MPI_SUCCESS, Relaxed) {
            MPI_SUCCESS => Ok(()),
            code => Err(fail(
                code,
                format!("rank {rank} has refused an operation: is its memory there?"),
            )),
        }
    }
}

/// A message that is not answered yet.
struct Pending {
    window: Arc<Window>,
    rank: usize,
    operation: Arc<Pieces>,
    /// Where its result goes: of these bytes, from the place on.
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
/// The memory of the result is there until it has ended.
pub unsafe fn issue(
    target: &Target,
    kind: Kind,
    op: MPI_Op,
    element: MPI_Datatype,
    origin: Option<&Data>,
    result: Option<&Data>,
) -> Answer<Progress> {
    let (window, rank) = (target.window, target.rank);
    let (outgoing, process) = (&window.outgoing.0[rank], window.process(rank));
    let unit = named::get(element).map_or(1, |element| element.size);
    let most = if target.data.contiguous().is_some() { PIECE } else { SCATTERED };
    let (most, total) = (most / unit * unit, target.data.len());
    let operation = Arc::new(Pieces::default());
    for first in (0..total).step_by(most) {
        let range = first..(first + most).min(total);
        let mut bytes = Vec::new();
        match (origin, kind) {
            (Some(both), Kind::Swap) => bytes = both.pack(),
            (Some(origin), _) => origin.pack_part(range.clone(), &mut bytes),
            (None, _) => {}
        }
        let wants = result.is_some();
        let message = Message::of(kind, op, element, wants, &target.data, range, bytes);
        operation.left.fetch_add(1, Relaxed);
        outgoing.left.fetch_add(1, Relaxed);
        let result = result.map(|result| (result.clone(), first));
        let (window_, operation) = (window.clone(), operation.clone());
        let pending = Pending { window: window_, rank, operation, result };
        let number = {
            let mut numbered = lock(&PENDING);
            numbered.last = numbered.last.wrapping_add(1);
            let number = numbered.last;
            numbered.all.get_or_insert_default().insert(number, pending);
            number
        };
        let kind = engine::Kind::Access;
        engine().say_more(kind, process, number, window.id(), message.encoded());
        window.control.part(rank).bell.ring();
        if outgoing.left.load(Relaxed) > UNDER_WAY {
            let look = || window.outgoing.look(window, rank, UNDER_WAY / 2);
            window.wait(Some(rank), look)?;
        }
    }
    Ok(Some(operation))
}

/// What has come: in the order in which it came.
static COME: Mutex<VecDeque<(Note, i64, Vec<u8>)>> = Mutex::new(VecDeque::new());
/// Held while one of them is done.
static DOING: Mutex<()> = Mutex::new(());

/// Something has come for a window. Under the core's lock.
pub fn arrive(note: Note, tag: i64, payload: Payload<'_>) {
    let mut bytes = payload.0.to_vec();
    bytes.extend_from_slice(payload.1);
    lock(&COME).push_back((note, tag, bytes));
}

/// Do what has come.
pub fn catch_up(engine: &Engine) {
    let _in_order = lock(&DOING);
    loop {
        let next = lock(&COME).pop_front();
        let Some((note, tag, bytes)) = next else { return };
        match note.kind {
            engine::Kind::Access => {
                let (code, bytes) = match serve(tag, &bytes) {
                    Ok(bytes) => (MPI_SUCCESS, bytes),
                    Err(failure) => (failure.code, Vec::new()),
                };
                let kind = engine::Kind::Accessed;
                engine.say_more(kind, note.rank, note.number, code.into(), bytes);
            }
            _ => answered(note.number, tag as c_int, &bytes),
        }
    }
}

fn answered(number: u32, code: c_int, bytes: &[u8]) {
    let pending = lock(&PENDING).all.as_mut().and_then(|all| all.remove(&number));
    let Some(Pending { window, rank, operation, result }) = pending else { return };
    if let (Some((data, first)), MPI_SUCCESS) = (result, code) {
        // SAFETY: the program leaves the memory to the operation until that has ended.
        unsafe { data.put_part(first, bytes) };
    }
    for pieces in [&*operation, &window.outgoing.0[rank]] {
        if code != MPI_SUCCESS {
            pieces.code.store(code, Relaxed);
        }
        pieces.left.fetch_sub(1, Release);
    }
}

/// Do an operation on this process's own memory; what is to be answered.
fn serve(id: i64, bytes: &[u8]) -> Answer<Vec<u8>> {
    let wrong = || fail(MPI_ERR_INTERN, "a message for a window makes no sense");
    let window = super::of_id(id).ok_or_else(wrong)?;
    let message = Message::decoded(bytes).ok_or_else(wrong)?;
    let layout = message.layout();
    let base = if window.is_dynamic() { 0 } else { window.own.base };
    if let Some((low, high)) = layout.bounds() {
        let is_inside = match window.is_dynamic() {
            true => lock(&window.attached).has(low as usize, (high - low) as usize),
            false => low >= 0 && high <= window.own.size,
        };
        if !is_inside {
            return Err(not_attached(low as usize, (high - low) as usize));
        }
    }
    let data = Data::laid_out(base as *mut u8, layout);
    let (way, rank, length) = (Way::Here(base), window.rank(), data.len());
    let target = Target { window: &window, rank, way, data };
    let mut result = vec![0; if message.wants { length } else { 0 }];
    let into = Data::bytes(result.as_mut_ptr(), length);
    let from = Data::bytes(message.bytes.as_ptr().cast_mut(), message.bytes.len());
    // SAFETY: inside the window's memory, as was just looked at; the rest is ours.
    unsafe {
        match message.kind {
            Kind::Put => target.put(&from)?,
            Kind::Get if message.wants => target.get(&into)?,
            Kind::Swap if message.wants && message.bytes.len() == 2 * length => {
                let compare = message.bytes.as_ptr();
                target.compare_and_swap(compare, compare.add(length), result.as_mut_ptr())?
            }
            Kind::Combine => {
                let combining = Combining::of_code(message.op, message.element)?;
                let origin = (from.len() > 0).then_some(&from);
                let result = message.wants.then_some(&into);
                target.accumulate(&Combined { combining, origin, result })?
            }
            _ => return Err(wrong()),
        }
    };
    Ok(result)
}
