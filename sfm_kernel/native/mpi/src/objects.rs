//! Objects that mpi4py pickles, which the buffers of MPI do not tell from other bytes: what `send`
//! sends is received by `recv`, and what `Send` sends by `Recv`.

use sfm_endpoint::sites;

use crate::collective::mismatch;
use crate::data::{Data, UserBuffer};
use crate::datatype;
use crate::engine::{self, engine, report, Receiving};
use crate::errors::{fail, Answer};
use crate::handles::*;

/// The beginning of a pickle of protocol 4 or later: PROTO, and FRAME with a length.
const FRAMED: usize = 11;

/// True if `length` bytes that begin so are a pickled object, or the beginning of one: no number is
/// likely to have these eleven bytes. Shorter pickles are not recognized.
fn is_pickled(start: &[u8], length: usize) -> bool {
    let Some((head, begun)) = start.split_at_checked(3) else { return false };
    // What is longer than its buffer may end in the length, whose highest bytes are 0.
    let mut frame = [0; 8];
    frame[..begun.len()].copy_from_slice(begun);
    let frame = u64::from_le_bytes(frame);
    matches!(head, [0x80, 4 | 5, 0x95]) && frame >= 4 && frame <= (length - FRAMED) as u64
}

/// The first bytes of contiguous data.
///
/// # Safety
/// The memory is valid.
unsafe fn start<'a>(data: &Data, most: usize) -> Option<&'a [u8]> {
    let length = data.len().min(most);
    data.contiguous().filter(|_| length > 0).map(|at| std::slice::from_raw_parts(at, length))
}

/// The message of a receive, in words: where it comes from.
fn origin_of(receiving: &Receiving) -> String {
    let status = receiving.end.get().map(|end| end.status).unwrap_or_else(MPI_Status::empty);
    let (rank, tag) = (status.MPI_SOURCE, status.MPI_TAG);
    format!("rank {rank} has sent with tag {tag}{}", mismatch::origin_of(receiving, &status))
}

/// Refuse a pickled object in a buffer of numbers. Bytes, also of a datatype made of them, may be what
/// the program has pickled itself: mpi4py.util.pkl5 does.
///
/// # Safety
/// The receive has ended, and its memory is valid.
pub unsafe fn refuse_object(receiving: &Receiving, buffer: &UserBuffer) -> Answer {
    let is_it = || {
        let start = start(receiving.data(), FRAMED)?;
        let length = receiving.end.get()?.status.bytes().max(receiving.sent()) as usize;
        let datatype = datatype::committed(buffer.datatype).ok()?;
        let are_numbers = datatype.basic.is_some() && datatype.size > 1;
        Some(length > FRAMED && is_pickled(start, length) && are_numbers && engine::is_python())
    };
    if !is_it().unwrap_or(false) {
        return Ok(());
    }
    let text = format!(
        "the message that {} is a pickled object: recv receives what send has sent, and Recv what \
         Send has sent",
        origin_of(receiving)
    );
    Err(fail(MPI_ERR_TYPE, text))
}

/// Called when bytes have come for the call of this number (`unfinished`). If it is one for objects
/// and they are none, the program will raise an exception: say why.
///
/// # Safety
/// As above.
pub unsafe fn expect_object(receiving: &Receiving, site: u32) {
    let length = receiving.end.get().map_or(0, |end| end.status.bytes() as usize);
    let Some(bytes) = start(receiving.data(), length) else { return };
    // Every pickle of protocol 2 or later begins and ends so.
    if matches!(bytes, [0x80, .., b'.']) || !engine::is_python() {
        return;
    }
    if sites::get(site).is_some_and(|site| report::is_of_objects(&site.call)) {
        engine().endpoint.surroundings().expect_failure(&|| {
            format!(
                "the {length} bytes that {} are no pickled object: recv receives what send has \
                 sent, and Recv what Send has sent",
                origin_of(receiving)
            )
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pickle_is_recognized_by_its_frame() {
        let pickle = b"\x80\x05\x95\x0c\0\0\0\0\0\0\0\x8c\x08a string\x94.";
        assert!(is_pickled(&pickle[..FRAMED], pickle.len()));
        assert!(is_pickled(&pickle[..8], pickle.len()), "cut");
        assert!(!is_pickled(&pickle[..FRAMED], 20), "the frame is longer");
        assert!(!is_pickled(&1.5f64.to_le_bytes(), 80) && !is_pickled(&[0x80; 11], 80));
    }
}
