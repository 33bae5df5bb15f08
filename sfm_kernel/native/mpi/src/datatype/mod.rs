//! Datatypes: what lies where, how it was described, and whether it may be used.

pub mod arrays;
pub mod contents;
pub mod copying;
pub mod external;
pub mod layout;
pub mod making;
pub mod named;
pub mod signature;
#[cfg(test)]
pub mod tests;

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

pub use contents::{made_large, Made};
pub use layout::Layout;
pub use named::Basic;
pub use signature::Signature;

use crate::attributes::Attributes;
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::table::Table;

pub struct Datatype {
    /// Bytes of data in one item.
    pub size: usize,
    pub lb: isize,
    /// From one item to the next.
    pub extent: isize,
    pub true_lb: isize,
    pub true_extent: isize,
    /// Of one item, shared with the types that are made of this one.
    pub layout: Arc<Layout>,
    pub signature: Arc<Signature>,
    /// The largest alignment of its elements.
    pub align: usize,
    /// Whether the lower and the upper bound were set, and win over what is computed.
    pub markers: (bool, bool),
    /// How it was made: MPI_Type_get_envelope and MPI_Type_get_contents.
    pub made: Made,
    /// Of a predefined datatype.
    pub handle: Option<MPI_Datatype>,
    pub basic: Option<Basic>,
    pub attributes: Attributes,
    committed: AtomicBool,
    name: Mutex<String>,
}

/// A datatype in use: one of the predefined, or one that the program made.
#[derive(Clone)]
pub enum Held {
    Named(&'static Datatype),
    Derived(Arc<Datatype>),
}

impl Deref for Held {
    type Target = Datatype;

    fn deref(&self) -> &Datatype {
        match self {
            Held::Named(datatype) => datatype,
            Held::Derived(datatype) => datatype,
        }
    }
}

static DERIVED: Table<Datatype> = Table::new(0x8c00_0000);

impl Datatype {
    pub fn new(
        layout: Layout,
        signature: Signature,
        lb: isize,
        extent: isize,
        align: usize,
    ) -> Datatype {
        let (low, high) = layout.bounds().unwrap_or((lb, lb));
        Datatype {
            size: layout.bytes(),
            lb,
            extent,
            true_lb: low,
            true_extent: high - low,
            layout: Arc::new(layout),
            signature: Arc::new(signature),
            align,
            markers: (false, false),
            made: Made::named(),
            handle: None,
            basic: None,
            attributes: Attributes::default(),
            committed: AtomicBool::new(false),
            name: Mutex::default(),
        }
    }

    fn named(&mut self, name: &str, handle: MPI_Datatype, basic: Basic) {
        self.set_name(name.into());
        self.handle = Some(handle);
        self.basic = Some(basic);
        self.commit();
    }

    /// Bytes of data in `count` items. An error where they, or the way from the first to the last, are
    /// more than any memory has.
    #[inline]
    pub fn bytes(&self, count: usize) -> Answer<usize> {
        let within =
            |each: usize| each.checked_mul(count).filter(|all| *all <= isize::MAX as usize);
        match (within(self.size), within(self.extent.unsigned_abs())) {
            (Some(bytes), Some(_)) => Ok(bytes),
            _ => Err(self.too_many(count)),
        }
    }

    #[cold]
    fn too_many(&self, count: usize) -> Failure {
        let text = format!("{count} items of {} are more bytes than any memory has", self.told());
        fail(MPI_ERR_COUNT, text)
    }

    pub fn ub(&self) -> isize {
        self.lb + self.extent
    }

    pub fn commit(&self) {
        self.committed.store(true, Relaxed);
    }

    pub fn is_committed(&self) -> bool {
        self.committed.load(Relaxed)
    }

    pub fn name(&self) -> String {
        self.name.lock().expect("no panic under the lock").clone()
    }

    pub fn set_name(&self, name: String) {
        *self.name.lock().expect("no panic under the lock") = name;
    }

    /// For error texts: `MPI_INT`, or what the program called it.
    pub fn told(&self) -> String {
        match self.name() {
            name if name.is_empty() => format!("a datatype of {} bytes", self.size),
            name => name,
        }
    }

    /// What all of its elements are, if they are the same.
    pub fn element(&self) -> Option<Basic> {
        self.basic.or_else(|| {
            let mut parts = self.made.types.iter().map(|one| one.element());
            let first = parts.next()??;
            parts.all(|one| one == Some(first)).then_some(first)
        })
    }

    /// Where `count` items lie.
    pub fn layout_of(&self, count: usize) -> Layout {
        Layout::repeated(&self.layout, 0, count, self.extent)
    }

    /// Offset and length if `count` items are one piece of memory.
    #[inline]
    pub fn as_run(&self, count: usize) -> Option<(isize, usize)> {
        match *self.layout {
            Layout::Run { at, bytes } if bytes as isize == self.extent || count == 1 => {
                Some((at, bytes * count))
            }
            _ => self.layout_of(count).as_run(),
        }
    }

    /// Copy this range of the packed bytes of `count` items at `from` to `to`.
    ///
    /// # Safety
    /// `from` has `count` items, and `range.len()` bytes can be written at `to`.
    pub unsafe fn pack(&self, from: *const c_void, count: usize, range: Range<usize>, to: *mut u8) {
        copying::pack(&self.layout_of(count), from.cast(), range, to);
    }

    /// Copy `range.len()` bytes at `from` to where this range of `count` items at `to` belongs.
    ///
    /// # Safety
    /// `to` has room for `count` items, and `range.len()` bytes can be read at `from`.
    pub unsafe fn unpack(
        &self,
        to: *mut c_void,
        count: usize,
        range: Range<usize>,
        from: *const u8,
    ) {
        copying::unpack(&self.layout_of(count), to.cast(), range, from);
    }
}

/// The datatype of a handle, committed or not.
pub fn get(handle: MPI_Datatype) -> Answer<Held> {
    if let Some(named) = named::get(handle) {
        return Ok(Held::Named(named));
    }
    DERIVED.get(handle).map(Held::Derived).ok_or_else(|| wrong(handle))
}

/// The datatype of a handle, for a function that moves data.
pub fn committed(handle: MPI_Datatype) -> Answer<Held> {
    let found = get(handle)?;
    if found.is_committed() {
        return Ok(found);
    }
    let text = format!(
        "argument datatype ({}) was not committed; call MPI_Type_commit after making it",
        found.told()
    );
    Err(fail(MPI_ERR_TYPE, text))
}

/// The same where `count` items are moved. No items may be of MPI_DATATYPE_NULL, as MPICH has it:
/// arrays of datatypes have it where nothing is sent. They are then no bytes.
pub fn of_items(handle: MPI_Datatype, count: usize) -> Answer<Held> {
    match handle {
        MPI_DATATYPE_NULL if count == 0 => committed(MPI_BYTE),
        _ => committed(handle),
    }
}

#[cold]
fn wrong(handle: MPI_Datatype) -> Failure {
    let text = match handle {
        MPI_DATATYPE_NULL => "argument datatype is MPI_DATATYPE_NULL".into(),
        _ => format!("argument datatype ({handle:#010x}) is no datatype, or one that was freed"),
    };
    fail(MPI_ERR_TYPE, text)
}

/// A handle for the program. A predefined datatype has its own.
pub fn open(datatype: Held) -> MPI_Datatype {
    match datatype {
        Held::Named(datatype) => datatype.handle.expect("predefined"),
        Held::Derived(datatype) => DERIVED.insert(datatype),
    }
}

/// Take the handle out of use. Who still holds the datatype (a pending operation) keeps it.
pub fn release(handle: MPI_Datatype) -> Answer<Arc<Datatype>> {
    if let Some(named) = named::get(handle) {
        let text = format!("{} is predefined, and cannot be freed", named.name());
        return Err(fail(MPI_ERR_TYPE, text));
    }
    DERIVED.release(handle).ok_or_else(|| wrong(handle))
}
