//! The data of a message: some memory, and the layout of its bytes.

use std::ops::Range;
use std::sync::Arc;

use sfm_native::core::Payload;

use crate::checks;
use crate::datatype::layout::{Layout, Visitor};
use crate::datatype::{self, copying, Held};
use crate::errors::Answer;
use crate::handles::*;

/// The memory of a message's data. It is the user's, who leaves it alone meanwhile.
#[derive(Clone)]
pub struct Data {
    at: *mut u8,
    /// Bytes of the message, without gaps.
    length: usize,
    /// The layout; None for contiguous bytes at `at`. In memory of its own: most data has none, and is
    /// moved through many functions.
    layout: Option<Arc<Layout>>,
    /// The offset of the message's first byte in the layout's bytes.
    first: usize,
}

// SAFETY: an address; each reader or writer gives its own reason.
unsafe impl Send for Data {}
// SAFETY: it is an address; each reader or writer gives its own reason.
unsafe impl Sync for Data {}

/// A buffer as a call's arguments describe it, before any check.
#[derive(Clone, Copy)]
pub struct UserBuffer {
    /// The name of the argument `at`, for failures.
    pub name: &'static str,
    pub at: *const c_void,
    pub count: MPI_Count,
    pub datatype: MPI_Datatype,
}

impl UserBuffer {
    pub fn new(
        name: &'static str,
        at: *const c_void,
        count: MPI_Count,
        datatype: MPI_Datatype,
    ) -> UserBuffer {
        UserBuffer { name, at, count, datatype }
    }

    /// Inlined: `Data` is built in words, and copied in larger pieces, for which a processor waits.
    #[inline(always)]
    pub fn data(&self) -> Answer<Data> {
        let count = checks::count("count", self.count)?;
        let datatype = datatype::of_items(self.datatype, count)?;
        checks::not_in_place(self.name, self.at)?;
        checks::buffer(self.name, self.at, datatype.bytes(count)?, datatype.basic.is_none())?;
        Ok(Data::items(self.at, count, &datatype))
    }

    /// The same; if the other end of the message is MPI_PROC_NULL, the datatype may be
    /// MPI_DATATYPE_NULL.
    #[inline(always)]
    pub fn data_unless_no_process(&self, no_process: bool) -> Answer<Data> {
        match self.datatype {
            MPI_DATATYPE_NULL if no_process => Ok(Data::nothing()),
            _ => self.data(),
        }
    }
}

impl Data {
    pub fn nothing() -> Data {
        Data::bytes(std::ptr::null_mut(), 0)
    }

    /// Contiguous bytes.
    pub fn bytes(at: *mut u8, length: usize) -> Data {
        Data { at, length, layout: None, first: 0 }
    }

    #[inline(always)] // see `UserBuffer::data`
    pub fn items(at: *const c_void, count: usize, datatype: &Held) -> Data {
        let at = at.cast_mut().cast::<u8>();
        match datatype.as_run(count) {
            Some((offset, length)) => Data::bytes(at.wrapping_offset(offset), length),
            None => Data::laid_out(at, datatype.layout_of(count)),
        }
    }

    /// Bytes laid out from `at` on.
    pub fn laid_out(at: *mut u8, layout: Layout) -> Data {
        match layout.as_run() {
            Some((offset, length)) => Data::bytes(at.wrapping_offset(offset), length),
            None => Data { at, length: layout.bytes(), layout: Some(Arc::new(layout)), first: 0 },
        }
    }

    pub fn slice(&self, range: Range<usize>) -> Data {
        let (length, first) = (range.len(), self.first + range.start);
        match &self.layout {
            None => Data::bytes(self.at.wrapping_add(range.start), length),
            Some(layout) => Data { at: self.at, length, layout: Some(layout.clone()), first },
        }
    }

    /// The number of bytes, without gaps.
    pub fn len(&self) -> usize {
        self.length
    }

    /// The address of the bytes, if they are contiguous.
    pub fn contiguous(&self) -> Option<*mut u8> {
        self.layout.is_none().then_some(self.at)
    }

    /// The bytes, packed.
    ///
    /// # Safety
    /// The memory is valid.
    pub unsafe fn pack(&self) -> Vec<u8> {
        let mut packed = Vec::new();
        self.pack_range(0..self.length, &mut packed);
        packed
    }

    /// Copy these bytes to `to`, which has room for at least as many.
    ///
    /// # Safety
    /// Both are valid memory.
    pub unsafe fn copy_to(&self, to: &Data) {
        match (self.contiguous(), to.contiguous()) {
            (Some(from), Some(to)) => to.copy_from(from, self.length),
            (Some(from), None) => to.unpack_at(0, std::slice::from_raw_parts(from, self.length)),
            (None, _) => to.unpack_at(0, &self.pack()),
        }
    }

    /// The layout's bytes of a range of ours.
    fn in_layout(&self, range: Range<usize>) -> Range<usize> {
        self.first + range.start..self.first + range.end
    }

    /// Unpack bytes from offset `first` on.
    ///
    /// # Safety
    /// As for `fill`; there is room for all.
    pub unsafe fn unpack_at(&self, first: usize, bytes: &[u8]) {
        let range = first..(first + bytes.len()).min(self.length);
        match &self.layout {
            None => self.at.wrapping_add(first).copy_from(bytes.as_ptr(), range.len()),
            Some(layout) => copying::unpack(layout, self.at, self.in_layout(range), bytes.as_ptr()),
        }
    }

    /// Pack a range of the bytes.
    ///
    /// # Safety
    /// The memory is valid.
    pub unsafe fn pack_range(&self, range: Range<usize>, packed: &mut Vec<u8>) {
        packed.reserve(range.len());
        let to = packed.as_mut_ptr().add(packed.len());
        let length = packed.len() + range.len();
        match &self.layout {
            None => to.copy_from_nonoverlapping(self.at.wrapping_add(range.start), range.len()),
            Some(layout) => copying::pack(layout, self.at, self.in_layout(range), to),
        }
        packed.set_len(length);
    }

    /// Visit the runs of a range of the bytes in order.
    pub fn visit(&self, range: Range<usize>, visitor: &mut impl Visitor) {
        match &self.layout {
            None => visitor.run(self.at as isize + range.start as isize, range.len()),
            Some(layout) => layout.visit(self.at as isize, self.in_layout(range), visitor),
        }
    }

    /// Unpack a message's bytes, as many as there is room for.
    ///
    /// # Safety
    /// The memory is valid, and only the caller uses it.
    pub unsafe fn fill(&self, payload: Payload<'_>) {
        let Payload(first, second) = payload;
        let middle = first.len().min(self.length);
        let end = payload.len().min(self.length);
        match &self.layout {
            None => {
                payload.copy(self.at, self.length);
            }
            Some(layout) => {
                let from = self.first;
                copying::unpack(layout, self.at, from..from + middle, first.as_ptr());
                copying::unpack(layout, self.at, from + middle..from + end, second.as_ptr());
            }
        }
    }
}
