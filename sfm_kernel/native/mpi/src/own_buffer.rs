//! The buffer of buffered sends: how much of what was sent may still be under way.
//!
//! The messages are copied into memory of our own; the program's buffer only says how many bytes
//! that may be, so that a program which relies on more fails here as it does elsewhere.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::data::Data;
use crate::engine::{engine, From, Mode, Sending, To};
use crate::errors::{fail, Answer};
use crate::handles::*;

#[derive(Default)]
struct Buffer {
    /// Address and size, as they were attached.
    attached: Option<(usize, MPI_Count)>,
    under_way: Vec<(Arc<Sending>, usize)>,
}

static BUFFER: Mutex<Buffer> = Mutex::new(Buffer { attached: None, under_way: Vec::new() });

fn buffer() -> MutexGuard<'static, Buffer> {
    BUFFER.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn attach(at: *mut c_void, size: MPI_Count) -> Answer {
    let mut buffer = buffer();
    if buffer.attached.is_some() {
        let text = "a buffer is attached already; MPI_Buffer_detach gives it back";
        return Err(fail(MPI_ERR_BUFFER, text));
    }
    buffer.attached = Some((at as usize, size));
    Ok(())
}

/// The buffered messages that are under way.
pub fn under_way() -> Vec<Arc<Sending>> {
    buffer().under_way.iter().map(|(sending, _)| sending.clone()).collect()
}

/// Wait until all buffered messages have gone.
pub fn flush() -> Answer {
    for sending in under_way() {
        engine().wait(From::One(sending.dest), || sending.end.is_done())?;
    }
    buffer().under_way.retain(|(sending, _)| !sending.end.is_done());
    Ok(())
}

/// The buffer, which is then no more attached.
pub fn detach() -> Answer<(*mut c_void, MPI_Count)> {
    flush()?;
    match buffer().attached.take() {
        Some((at, size)) => Ok((at as *mut c_void, size)),
        None => Err(fail(MPI_ERR_BUFFER, "no buffer is attached")),
    }
}

/// Send a copy of the data.
///
/// # Safety
/// The data is there.
pub unsafe fn send(to: To, data: &Data) -> Answer {
    engine().advance();
    let wanted = data.len() + MPI_BSEND_OVERHEAD as usize;
    {
        let mut buffer = buffer();
        buffer.under_way.retain(|(sending, _)| !sending.end.is_done());
        let taken: usize = buffer.under_way.iter().map(|(_, bytes)| bytes).sum();
        let Some((at, size)) = buffer.attached else {
            let text = "no buffer is attached; call MPI_Buffer_attach before the first MPI_Bsend";
            return Err(fail(MPI_ERR_BUFFER, text));
        };
        let is_automatic = at as isize == MPI_BUFFER_AUTOMATIC;
        if !is_automatic && taken + wanted > size as usize {
            let text = format!(
                "the attached buffer has {size} bytes, of which {taken} are in use; this message \
                 takes {wanted} with MPI_BSEND_OVERHEAD"
            );
            return Err(fail(MPI_ERR_BUFFER, text));
        }
    }
    // SAFETY: the copy belongs to the send.
    if let Some(sending) = unsafe { engine().send_copy(to, Mode::Standard, data) } {
        buffer().under_way.push((sending, wanted));
    }
    Ok(())
}
