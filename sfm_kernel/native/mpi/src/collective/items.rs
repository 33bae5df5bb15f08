//! Items of a datatype in memory: the buffers of collectives, and their scratch memory.

use std::mem::MaybeUninit;

use super::mismatch::{fits, Caller};
use crate::checks;
use crate::data::{Data, UserBuffer};
use crate::datatype::{self, Held};
use crate::engine::engine;
use crate::errors::Answer;
use crate::handles::*;
use crate::op::Op;

/// `count` items in the user's memory or in a `Scratch`. The caller keeps the memory alive.
#[derive(Clone)]
pub struct Items {
    at: *mut u8,
    pub count: usize,
    pub datatype: Held,
    /// The datatype argument of a call to a user-defined operation.
    handle: MPI_Datatype,
}

impl UserBuffer {
    /// The buffer of a collective.
    pub fn items(&self) -> Answer<Items> {
        let count = checks::count("count", self.count)?;
        let items = Items { count, ..Items::base(self.name, self.at, count, self.datatype)? };
        items.check(self.name)?;
        Ok(items)
    }

    /// The same; None if the argument is MPI_IN_PLACE.
    pub fn items_unless_in_place(&self) -> Answer<Option<Items>> {
        match self.at as isize {
            MPI_IN_PLACE => Ok(None),
            _ => self.items().map(Some),
        }
    }
}

impl Items {
    /// An empty buffer, the base of blocks with at most `most` items each.
    pub fn base(name: &str, at: *const c_void, most: usize, handle: MPI_Datatype) -> Answer<Items> {
        let datatype = datatype::of_items(handle, most)?;
        checks::not_in_place(name, at)?;
        Ok(Items { at: at.cast_mut().cast(), count: 0, datatype, handle })
    }

    /// Memory of this library, as bytes. Unlike an argument's address it cannot mean MPI_IN_PLACE,
    /// not even if the slice is empty and its address happens to be that number.
    pub fn of_bytes<T: Copy>(all: &mut [T]) -> Answer<Items> {
        let (count, datatype) = (size_of_val(all), datatype::committed(MPI_BYTE)?);
        Ok(Items { at: all.as_mut_ptr().cast(), count, datatype, handle: MPI_BYTE })
    }

    /// True for MPI_DATATYPE_NULL, of which no item can exist and which no operation knows: a
    /// reduction then does nothing.
    pub fn are_of_nothing(&self) -> bool {
        self.handle == MPI_DATATYPE_NULL
    }

    /// Refuse a null pointer unless there are no items.
    pub fn check(&self, name: &str) -> Answer {
        let bytes = self.datatype.bytes(self.count)?;
        checks::buffer(name, self.at.cast(), bytes, self.datatype.basic.is_none())
    }

    /// `count` items of the same datatype, from `offset` bytes on.
    pub fn at(&self, offset: isize, count: usize) -> Items {
        Items { at: self.at.wrapping_offset(offset), count, ..self.clone() }
    }

    /// `count` items from index `first` on.
    pub fn slice(&self, first: usize, count: usize) -> Items {
        self.at((first as isize).wrapping_mul(self.datatype.extent), count)
    }

    /// Divide the items into contiguous blocks, one for each count.
    pub fn split(&self, counts: &[usize]) -> Vec<Items> {
        let mut first = 0;
        let block_of = |count: &usize| {
            let block = self.slice(first, *count);
            first += count;
            block
        };
        counts.iter().map(block_of).collect()
    }

    pub fn data(&self) -> Data {
        Data::items(self.at.cast(), self.count, &self.datatype)
    }

    pub fn bytes(&self) -> usize {
        self.datatype.size * self.count
    }

    /// True if the two share memory. If one has gaps, only the addresses of their beginnings are
    /// compared.
    pub fn share_memory(&self, other: &Items) -> bool {
        let (data, other_data) = (self.data(), other.data());
        if data.len() == 0 || other_data.len() == 0 {
            return false;
        }
        match (data.contiguous(), other_data.contiguous()) {
            (Some(at), Some(to)) => {
                at < to.wrapping_add(other_data.len()) && to < at.wrapping_add(data.len())
            }
            _ => self.at == other.at,
        }
    }

    /// Copy these items to `to`, which has room for at least as many.
    ///
    /// # Safety
    /// Both are valid memory, and do not overlap.
    pub unsafe fn copy_to(&self, to: &Items) {
        if self.bytes() > 0 {
            self.data().copy_to(&to.data()); // without bytes the address may be invalid
        }
    }

    /// The same, unless both are the same memory.
    ///
    /// # Safety
    /// As for `copy_to`.
    pub unsafe fn copy_unless_same(&self, to: &Items) {
        if self.at != to.at {
            self.copy_to(to);
        }
    }

    /// Copy this process's block of a collective to its receive position.
    ///
    /// # Safety
    /// As for `copy_to`, except that the sizes may differ, which is an error.
    pub unsafe fn hand_to(&self, to: &Items) -> Answer {
        fits(|| Caller::new(engine().rank, String::new()), self.bytes(), to.bytes())?;
        self.copy_to(to);
        Ok(())
    }

    /// Combine these items, as the left operand, with `into`, and store the result there.
    ///
    /// # Safety
    /// Both are valid memory, and do not overlap.
    pub unsafe fn combine_into(&self, into: &Items, op: &Op) -> Answer {
        let (from, to) = (self.at.cast_const().cast(), into.at.cast());
        op.combine(from, to, self.count, &self.datatype, self.handle)
    }
}

/// Memory for items, laid out as the datatype demands, because user-defined operations rely on the
/// layout.
pub struct Scratch {
    /// Words of 16 bytes, the largest alignment of any datatype.
    _memory: Box<[MaybeUninit<u128>]>,
    pub items: Items,
}

impl Scratch {
    /// Memory for as many items as `like` has.
    pub fn like(like: &Items) -> Scratch {
        let datatype = &like.datatype;
        let between = datatype.extent.unsigned_abs() * like.count.saturating_sub(1);
        let bytes = between + datatype.true_extent.unsigned_abs();
        let mut memory = Box::new_uninit_slice(bytes.div_ceil(16) + 1);
        let lowest = match datatype.extent < 0 {
            true => datatype.true_lb - between as isize,
            false => datatype.true_lb,
        };
        let at = memory.as_mut_ptr().cast::<u8>().wrapping_offset(-lowest);
        Scratch { _memory: memory, items: Items { at, ..like.clone() } }
    }

    /// # Safety
    /// They are valid memory.
    pub unsafe fn copy_of(items: &Items) -> Scratch {
        let scratch = Scratch::like(items);
        items.copy_to(&scratch.items);
        scratch
    }
}
