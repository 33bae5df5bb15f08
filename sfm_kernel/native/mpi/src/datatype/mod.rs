//! Datatypes: their type map, their description, and whether they are committed.

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

use sfm_native::sync::lock;

use crate::attributes::Attributes;
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::table::Table;

pub struct Datatype {
    /// Bytes of data in one item.
    pub size: usize,
    pub lb: isize,
    /// Bytes from one item to the next.
    pub extent: isize,
    pub true_lb: isize,
    pub true_extent: isize,
    /// The layout of one item, shared with the types that are made of this one.
    pub layout: Arc<Layout>,
    pub signature: Arc<Signature>,
    /// The largest alignment of its elements.
    pub align: usize,
    /// True if the lower and the upper bound were set explicitly, which overrides the computed
    /// ones.
    pub markers: (bool, bool),
    /// The construction, for MPI_Type_get_envelope and MPI_Type_get_contents.
    pub made: Made,
    /// Only for a predefined datatype.
    pub handle: Option<MPI_Datatype>,
    pub basic: Option<Basic>,
    pub attributes: Attributes,
    committed: AtomicBool,
    name: Mutex<String>,
}

/// A datatype in use: predefined, or made by the program.
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

    /// Bytes of data in `count` items. An error if the data, or the distance from the first item to
    /// the last, exceeds any memory.
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
        let text = format!("{count} items of {} are more bytes than any memory has", self.label());
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
        lock(&self.name).clone()
    }

    pub fn set_name(&self, name: String) {
        *lock(&self.name) = name;
    }

    /// For error texts: `MPI_INT`, or the name that the program gave.
    pub fn label(&self) -> String {
        match self.name() {
            name if name.is_empty() => format!("a datatype of {} bytes", self.size),
            name => name,
        }
    }

    /// The basic element, if all elements are the same.
    pub fn element(&self) -> Option<Basic> {
        self.basic.or_else(|| {
            let mut elements = self.made.types.iter().map(|element| element.element());
            let first = elements.next()??;
            elements.all(|element| element == Some(first)).then_some(first)
        })
    }

    pub fn layout_of(&self, count: usize) -> Layout {
        Layout::repeated(&self.layout, 0, count, self.extent)
    }

    /// Offset and length if `count` items are contiguous.
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

    /// Copy `range.len()` bytes at `from` into this range of the packed bytes of `count` items at
    /// `to`.
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
        found.label()
    );
    Err(fail(MPI_ERR_TYPE, text))
}

/// Like `committed`, for `count` items. MPI_DATATYPE_NULL is allowed for 0 items, as in MPICH,
/// because programs put it into arrays of datatypes for processes to which they send nothing.
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
        _ => format!("argument datatype ({handle:#010x}) is not a datatype, or was freed"),
    };
    fail(MPI_ERR_TYPE, text)
}

/// The program's handle. A predefined datatype always has the same.
pub fn open(datatype: Held) -> MPI_Datatype {
    match datatype {
        Held::Named(datatype) => datatype.handle.expect("predefined"),
        Held::Derived(datatype) => DERIVED.insert(datatype),
    }
}

/// Free the handle. A pending operation that uses the datatype keeps it alive.
pub fn release(handle: MPI_Datatype) -> Answer<Arc<Datatype>> {
    if let Some(named) = named::get(handle) {
        let text = format!("{} is predefined, and cannot be freed", named.name());
        return Err(fail(MPI_ERR_TYPE, text));
    }
    DERIVED.release(handle).ok_or_else(|| wrong(handle))
}
