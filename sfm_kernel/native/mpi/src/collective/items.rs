//! Items of a datatype in memory: what collectives are given, and what they keep meanwhile.

use super::team::fits;
use crate::checks;
use crate::data::Data;
use crate::datatype::{self, Held};
use crate::errors::Answer;
use crate::handles::*;
use crate::op::Op;

/// `count` items. The user's memory, or a scratch's, which whoever made this keeps.
#[derive(Clone)]
pub struct Items {
    at: *mut u8,
    pub count: usize,
    pub datatype: Held,
    /// What a program's own operation is called with.
    handle: MPI_Datatype,
}

impl Items {
    /// What the arguments of a call say.
    pub fn of(
        name: &str,
        at: *const c_void,
        count: impl Into<MPI_Count>,
        handle: MPI_Datatype,
    ) -> Answer<Items> {
        let count = checks::count("count", count)?;
        let items = Items { count, ..Items::base(name, at, count, handle)? };
        items.check(name)?;
        Ok(items)
    }

    /// None yet: where parts that have at most `most` items are counted from.
    pub fn base(name: &str, at: *const c_void, most: usize, handle: MPI_Datatype) -> Answer<Items> {
        let datatype = datatype::of_items(handle, most)?;
        checks::not_in_place(name, at)?;
        Ok(Items { at: at.cast_mut().cast(), count: 0, datatype, handle })
    }

    /// Memory of our own, as bytes. Its address means nothing else, as an argument's may: where
    /// nothing is in it, that may be the number of MPI_IN_PLACE.
    pub fn own<T: Copy>(all: &mut [T]) -> Answer<Items> {
        let (count, datatype) = (size_of_val(all), datatype::committed(MPI_BYTE)?);
        Ok(Items { at: all.as_mut_ptr().cast(), count, datatype, handle: MPI_BYTE })
    }

    /// As `of`, of an argument that may be MPI_IN_PLACE: then None.
    pub fn unless_in_place(
        name: &str,
        at: *const c_void,
        count: MPI_Count,
        handle: MPI_Datatype,
    ) -> Answer<Option<Items>> {
        match at as isize {
            MPI_IN_PLACE => Ok(None),
            _ => Items::of(name, at, count, handle).map(Some),
        }
    }

    /// MPI_DATATYPE_NULL, which no items may be of: no operation knows it, and none has anything to do.
    pub fn are_of_nothing(&self) -> bool {
        self.handle == MPI_DATATYPE_NULL
    }

    /// Refuse a null pointer where there are items.
    pub fn check(&self, name: &str) -> Answer {
        let bytes = self.datatype.bytes(self.count)?;
        checks::buffer(name, self.at.cast(), bytes, self.datatype.basic.is_none())
    }

    /// `count` of the same from `offset` bytes on.
    pub fn at(&self, offset: isize, count: usize) -> Items {
        Items { at: self.at.wrapping_offset(offset), count, ..self.clone() }
    }

    /// `count` of them from the `first` on.
    pub fn part(&self, first: usize, count: usize) -> Items {
        self.at((first as isize).wrapping_mul(self.datatype.extent), count)
    }

    /// So many for each of several processes, one behind the other.
    pub fn parts(&self, counts: &[usize]) -> Vec<Items> {
        let mut first = 0;
        let one = |count: &usize| {
            let part = self.part(first, *count);
            first += count;
            part
        };
        counts.iter().map(one).collect()
    }

    pub fn data(&self) -> Data {
        Data::items(self.at.cast(), self.count, &self.datatype)
    }

    pub fn bytes(&self) -> usize {
        self.datatype.size * self.count
    }

    /// Whether both are, at least in part, in the same memory. Of those that lie among gaps only the
    /// beginning is looked at.
    pub fn share_memory(&self, other: &Items) -> bool {
        let (own, others) = (self.data(), other.data());
        if own.len() == 0 || others.len() == 0 {
            return false;
        }
        match (own.contiguous(), others.contiguous()) {
            (Some(at), Some(to)) => {
                at < to.wrapping_add(others.len()) && to < at.wrapping_add(own.len())
            }
            _ => self.at == other.at,
        }
    }

    /// Copy these to others, which have at least as much room.
    ///
    /// # Safety
    /// Both are there, and do not overlap.
    pub unsafe fn copy_to(&self, to: &Items) {
        if self.bytes() > 0 {
            // SAFETY: as the caller promises; without bytes they may be nowhere.
            unsafe { self.data().copy_to(&to.data()) };
        }
    }

    /// Copy these, this process's own part of a collective, to where that goes.
    ///
    /// # Safety
    /// As of `copy_to`, but that there may be another number of bytes than they are.
    pub unsafe fn hand_to(&self, to: &Items) -> Answer {
        fits("this process", self.bytes(), to.bytes())?;
        // SAFETY: as the caller promises.
        unsafe { self.copy_to(to) };
        Ok(())
    }

    /// Make `into` what these and `into` come to, these being the left operand.
    ///
    /// # Safety
    /// Both are there, and do not overlap.
    pub unsafe fn combine_into(&self, into: &Items, op: &Op) -> Answer {
        let (from, to) = (self.at.cast_const().cast(), into.at.cast());
        // SAFETY: as the caller promises.
        unsafe { op.combine(from, to, self.count, &self.datatype, self.handle) }
    }
}

/// Memory for items, laid out as the datatype says: a program's own operation goes by that.
pub struct Scratch {
    /// In words of 16 bytes: no datatype is aligned to more.
    _memory: Vec<u128>,
    pub items: Items,
}

impl Scratch {
    /// Room for as many items as `like` has.
    pub fn like(like: &Items) -> Scratch {
        let datatype = &like.datatype;
        let between = datatype.extent.unsigned_abs() * like.count.saturating_sub(1);
        let bytes = between + datatype.true_extent.unsigned_abs();
        let mut memory = vec![0u128; bytes.div_ceil(16) + 1];
        let lowest = match datatype.extent < 0 {
            true => datatype.true_lb - between as isize,
            false => datatype.true_lb,
        };
        let at = memory.as_mut_ptr().cast::<u8>().wrapping_offset(-lowest);
        Scratch { _memory: memory, items: Items { at, ..like.clone() } }
    }

    /// A copy of them.
    ///
    /// # Safety
    /// They are there.
    pub unsafe fn copy_of(items: &Items) -> Scratch {
        let scratch = Scratch::like(items);
        // SAFETY: fresh memory of the same layout.
        unsafe { items.copy_to(&scratch.items) };
        scratch
    }
}
