//! What a message is made of: some memory, and where its bytes lie there.

use std::ops::Range;

use sfm_native::core::Payload;

use crate::checks;
use crate::datatype::layout::{Layout, Visitor};
use crate::datatype::{self, copying, Held};
use crate::errors::Answer;
use crate::handles::*;

/// Memory that a message comes from or goes to. The user's, who leaves it alone meanwhile.
#[derive(Clone)]
pub struct Data {
    at: *mut u8,
    /// Bytes of the message, without gaps.
    length: usize,
    /// Where they lie, if not in a row from `at` on.
    layout: Option<Layout>,
    /// Of the layout's bytes, the first of the message.
    first: usize,
}

// SAFETY: an address; who reads or writes there says why it may.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl Data {
    /// Bytes in a row.
    pub fn bytes(at: *mut u8, length: usize) -> Data {
        Data { at, length, layout: None, first: 0 }
    }

    /// `count` items of a datatype.
    pub fn items(at: *const c_void, count: usize, datatype: &Held) -> Data {
        let at = at.cast_mut().cast::<u8>();
        match datatype.as_run(count) {
            Some((offset, length)) => Data::bytes(at.wrapping_offset(offset), length),
            None => Data::laid_out(at, datatype.layout_of(count)),
        }
    }

    /// What lies as a layout says, from `at` on.
    pub fn laid_out(at: *mut u8, layout: Layout) -> Data {
        match layout.as_run() {
            Some((offset, length)) => Data::bytes(at.wrapping_offset(offset), length),
            None => Data { at, length: layout.bytes(), layout: Some(layout), first: 0 },
        }
    }

    /// What the arguments of a call say.
    pub fn of(
        name: &str,
        at: *const c_void,
        count: MPI_Count,
        datatype: MPI_Datatype,
    ) -> Answer<Data> {
        let count = checks::count("count", count)?;
        let datatype = datatype::of_items(datatype, count)?;
        checks::not_in_place(name, at)?;
        checks::buffer(name, at, datatype.bytes(count)?, datatype.basic.is_none())?;
        Ok(Data::items(at, count, &datatype))
    }

    /// The same where the message may have nobody at its other end: then it needs no datatype.
    pub fn unless_nobody(
        name: &str,
        at: *const c_void,
        count: MPI_Count,
        datatype: MPI_Datatype,
        nobody: bool,
    ) -> Answer<Data> {
        match datatype {
            MPI_DATATYPE_NULL if nobody => Ok(Data::bytes(std::ptr::null_mut(), 0)),
            _ => Data::of(name, at, count, datatype),
        }
    }

    /// This range of its bytes.
    pub fn part(&self, range: Range<usize>) -> Data {
        let (length, first) = (range.len(), self.first + range.start);
        match &self.layout {
            None => Data::bytes(self.at.wrapping_add(range.start), length),
            Some(layout) => Data { at: self.at, length, layout: Some(layout.clone()), first },
        }
    }

    /// Bytes that it holds, without gaps.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Where they are, if they lie in a row.
    pub fn contiguous(&self) -> Option<*mut u8> {
        self.layout.is_none().then_some(self.at)
    }

    /// The bytes in a row.
    ///
    /// # Safety
    /// The memory is there.
    pub unsafe fn pack(&self) -> Vec<u8> {
        let mut packed = Vec::new();
        // SAFETY: as the caller promises.
        unsafe { self.pack_part(0..self.length, &mut packed) };
        packed
    }

    /// Copy these bytes to where others are to be, which have at least as much room.
    ///
    /// # Safety
    /// Both are there.
    pub unsafe fn copy_to(&self, to: &Data) {
        // SAFETY: as the caller promises.
        unsafe {
            match (self.contiguous(), to.contiguous()) {
                (Some(from), Some(to)) => to.copy_from(from, self.length),
                (Some(from), None) => to.put_part(0, std::slice::from_raw_parts(from, self.length)),
                (None, _) => to.put_part(0, &self.pack()),
            }
        }
    }

    /// Which of the layout's bytes a range of ours is.
    fn placed(&self, range: Range<usize>) -> Range<usize> {
        self.first + range.start..self.first + range.end
    }

    /// Put bytes to the places that those from `first` on have.
    ///
    /// # Safety
    /// As of `fill`; there are as many.
    pub unsafe fn put_part(&self, first: usize, bytes: &[u8]) {
        let range = first..(first + bytes.len()).min(self.length);
        // SAFETY: as the caller promises.
        unsafe {
            match &self.layout {
                None => self.at.wrapping_add(first).copy_from(bytes.as_ptr(), range.len()),
                Some(layout) => {
                    copying::unpack(layout, self.at, self.placed(range), bytes.as_ptr());
                }
            }
        }
    }

    /// The bytes of a range in a row.
    ///
    /// # Safety
    /// The memory is there.
    pub unsafe fn pack_part(&self, range: Range<usize>, packed: &mut Vec<u8>) {
        packed.reserve(range.len());
        // SAFETY: as the caller promises; there is room, and all of it is written.
        unsafe {
            let to = packed.as_mut_ptr().add(packed.len());
            let length = packed.len() + range.len();
            match &self.layout {
                None => to.copy_from_nonoverlapping(self.at.wrapping_add(range.start), range.len()),
                Some(layout) => copying::pack(layout, self.at, self.placed(range.clone()), to),
            }
            packed.set_len(length);
        }
    }

    /// Where the bytes of a range lie, told to `visitor` in their order.
    pub fn visit(&self, range: Range<usize>, visitor: &mut impl Visitor) {
        match &self.layout {
            None => visitor.run(self.at as isize + range.start as isize, range.len()),
            Some(layout) => layout.visit(self.at as isize, self.placed(range), visitor),
        }
    }

    /// Put a message's bytes to their places, as many as there is room for.
    ///
    /// # Safety
    /// The memory is there, and nobody else uses it.
    pub unsafe fn fill(&self, payload: Payload<'_>) {
        let Payload(first, second) = payload;
        let middle = first.len().min(self.length);
        let end = payload.len().min(self.length);
        // SAFETY: as the caller promises; no more bytes are read than the payload has.
        unsafe {
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
}
