//! Data representations: the format of elements in the file.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sfm_endpoint::callers::kept;
use sfm_native::sync::lock;

use super::sizes;
use crate::datatype::{Datatype, Held, Signature};
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;

#[derive(Clone)]
pub enum Representation {
    Native,
    /// Readable by this library on all machines that it supports: the same as `native`.
    Internal,
    External32,
    User(Arc<Registered>),
}

/// A representation of MPI_Register_datarep.
pub struct Registered {
    name: String,
    pub read: Conversion,
    pub write: Conversion,
    extent: unsafe extern "C" fn(MPI_Datatype, *mut MPI_Aint, *mut c_void) -> c_int,
    /// The program's extra state, passed to all three functions; an address, so that it may cross
    /// threads.
    extra: usize,
}

/// A program's function that converts items, from MPI_Register_datarep or its large-count variant;
/// null if the file has items in the format of memory.
#[derive(Clone, Copy)]
pub enum Conversion {
    Small(MPI_Datarep_conversion_function),
    Large(MPI_Datarep_conversion_function_c),
}

static REGISTERED: Mutex<BTreeMap<String, Arc<Registered>>> = Mutex::new(BTreeMap::new());

/// Register a representation by its name.
pub fn register(
    name: String,
    read: Conversion,
    write: Conversion,
    extent: MPI_Datarep_extent_function,
    extra: *mut c_void,
) -> Answer {
    if name.len() > MPI_MAX_DATAREP_STRING as usize {
        let text = format!(
            "argument datarep has {} characters; it may have {MPI_MAX_DATAREP_STRING}",
            name.len()
        );
        return Err(fail(MPI_ERR_ARG, text));
    }
    let Some(extent) = extent else {
        let text =
            "argument dtype_file_extent_fn is a null pointer; it must return the size of an \
            element in the file";
        return Err(fail(MPI_ERR_ARG, text));
    };
    let mut all = lock(&REGISTERED);
    if predefined(&name).is_some() || all.contains_key(&name) {
        let text = format!("a representation called {name:?} exists; choose another name");
        return Err(fail(MPI_ERR_DUP_DATAREP, text));
    }
    let registered = Registered { name: name.clone(), read, write, extent, extra: extra as usize };
    all.insert(name, Arc::new(registered));
    Ok(())
}

fn predefined(name: &str) -> Option<Representation> {
    match name.to_ascii_lowercase().as_str() {
        "native" => Some(Representation::Native),
        "internal" => Some(Representation::Internal),
        "external32" => Some(Representation::External32),
        _ => None,
    }
}

impl Representation {
    pub fn of(name: &str) -> Answer<Representation> {
        if let Some(found) = predefined(name) {
            return Ok(found);
        }
        let all = lock(&REGISTERED);
        all.get(name).cloned().map(Representation::User).ok_or_else(|| {
            let text = format!(
                "argument datarep is {name:?}; give \"native\", \"internal\", \"external32\", or \
                one that this process has registered with MPI_Register_datarep"
            );
            fail(MPI_ERR_UNSUPPORTED_DATAREP, text)
        })
    }

    pub fn name(&self) -> &str {
        match self {
            Representation::Native => "native",
            Representation::Internal => "internal",
            Representation::External32 => "external32",
            Representation::User(registered) => &registered.name,
        }
    }

    /// The datatype with the sizes that its elements have in the file.
    pub fn in_file(&self, datatype: &Held) -> Answer<Held> {
        match self {
            Representation::Native | Representation::Internal => Ok(datatype.clone()),
            Representation::External32 => {
                sizes::with(datatype, &|element| Ok(element.signature.external_bytes()))
            }
            Representation::User(one) => sizes::with(datatype, &|element| one.bytes(element)),
        }
    }
}

impl Conversion {
    pub fn is_null(self) -> bool {
        matches!(self, Conversion::Small(None) | Conversion::Large(None))
    }
}

impl Registered {
    /// The size of an element in the file.
    fn bytes(&self, element: &Datatype) -> Answer<usize> {
        let Some(handle) = element.handle else { return Ok(element.size) };
        let mut bytes: MPI_Aint = 0;
        // SAFETY: the program gave this function for this use.
        let code = unsafe { kept(|| (self.extent)(handle, &mut bytes, self.extra as *mut c_void)) };
        match usize::try_from(bytes) {
            Ok(bytes) if code == MPI_SUCCESS => Ok(bytes),
            _ => Err(self.failed("dtype_file_extent_fn", code)),
        }
    }

    /// Let the program convert `count` items between `user` (the entire buffer; item number
    /// `position` is the first) and `row`.
    ///
    /// # Safety
    /// Both are as large as the program expects.
    pub unsafe fn convert(
        &self,
        conversion: Conversion,
        user: *mut c_void,
        datatype: MPI_Datatype,
        count: usize,
        row: *mut u8,
        position: usize,
    ) -> Answer {
        let (row, at, extra) = (row.cast(), position as MPI_Offset, self.extra as *mut c_void);
        let code = kept(|| match conversion {
            Conversion::Small(Some(convert)) => {
                convert(user, datatype, count as c_int, row, at, extra)
            }
            Conversion::Large(Some(convert)) => {
                convert(user, datatype, count as MPI_Count, row, at, extra)
            }
            Conversion::Small(None) | Conversion::Large(None) => MPI_SUCCESS,
        });
        match code {
            MPI_SUCCESS => Ok(()),
            _ => Err(self.failed("conversion function", code)),
        }
    }

    fn failed(&self, function: &str, code: c_int) -> Failure {
        let text = format!(
            "the {function} of the representation {:?} which the program has defined, has failed \
            with code {code}",
            self.name
        );
        fail(MPI_ERR_CONVERSION, text)
    }
}

/// Convert `row` from external32, complete items and the complete elements that follow, to the
/// native representation.
pub fn from_external(signature: &Signature, mut row: &[u8]) -> Vec<u8> {
    let mut here = Vec::with_capacity(row.len());
    while !row.is_empty() {
        signature.read_external(&mut row, &mut here);
    }
    here
}
