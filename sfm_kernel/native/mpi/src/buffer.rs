//! Buffers of buffered sends: the limit of buffered bytes that are not sent yet.
//!
//! Each communicator, each session, and the process have one; a send takes the first of these three
//! that is attached. Messages are copied into memory of this library; the program's buffer only
//! sets the limit of bytes, so that a program which relies on more fails here as it does with other
//! MPI libraries.

use std::sync::{Arc, Mutex};

use sfm_native::sync::lock;

use crate::data::Data;
use crate::engine::{engine, From, Mode, Sending, To};
use crate::errors::{fail, Answer};
use crate::handles::*;

#[derive(Default)]
pub struct Buffer(Mutex<Attachment>);

#[derive(Default)]
struct Attachment {
    /// Address and size of the attached buffer.
    attached: Option<(usize, MPI_Count)>,
    under_way: Vec<(Arc<Sending>, usize)>,
}

pub static PROCESS: Buffer =
    Buffer(Mutex::new(Attachment { attached: None, under_way: Vec::new() }));

impl Buffer {
    pub fn is_attached(&self) -> bool {
        lock(&self.0).attached.is_some()
    }

    pub fn attach(&self, at: *mut c_void, size: MPI_Count) -> Answer {
        let mut state = lock(&self.0);
        if state.attached.is_some() {
            let text = "a buffer is attached already; detach it first";
            return Err(fail(MPI_ERR_BUFFER, text));
        }
        state.attached = Some((at as usize, size));
        Ok(())
    }

    /// The buffered messages that are not sent yet.
    pub fn under_way(&self) -> Vec<Arc<Sending>> {
        lock(&self.0).under_way.iter().map(|(sending, _)| sending.clone()).collect()
    }

    /// Wait until all buffered messages are sent.
    pub fn flush(&self) -> Answer {
        for sending in self.under_way() {
            engine().wait(From::One(sending.dest), || sending.end.is_done())?;
        }
        lock(&self.0).under_way.retain(|(sending, _)| !sending.end.is_done());
        Ok(())
    }

    /// Detach the buffer; returns its address and size.
    pub fn detach(&self) -> Answer<(*mut c_void, MPI_Count)> {
        self.flush()?;
        match lock(&self.0).attached.take() {
            Some((at, size)) => Ok((at as *mut c_void, size)),
            None => Err(fail(MPI_ERR_BUFFER, "no buffer is attached")),
        }
    }

    /// # Safety
    /// The data is valid.
    pub unsafe fn send(&self, to: To, data: &Data) -> Answer {
        let needed = data.len() + MPI_BSEND_OVERHEAD as usize;
        {
            let mut state = lock(&self.0);
            state.under_way.retain(|(sending, _)| !sending.end.is_done());
            let taken: usize = state.under_way.iter().map(|(_, bytes)| bytes).sum();
            let Some((at, size)) = state.attached else {
                let text = "no buffer is attached; call MPI_Buffer_attach before the first \
                            MPI_Bsend";
                return Err(fail(MPI_ERR_BUFFER, text));
            };
            let is_automatic = at as isize == MPI_BUFFER_AUTOMATIC;
            if !is_automatic && taken + needed > size as usize {
                let text = format!(
                    "the attached buffer has {size} bytes, of which {taken} are in use; this \
                     message takes {needed} with MPI_BSEND_OVERHEAD"
                );
                return Err(fail(MPI_ERR_BUFFER, text));
            }
        }
        if let Some(sending) = engine().send_copy(to, Mode::Standard, data) {
            lock(&self.0).under_way.push((sending, needed));
        }
        Ok(())
    }
}
