//! NumPy arrays of numbers in contiguous memory, to packets and back without pickle.

use std::ffi::{c_char, c_int};

use numpy::npyffi::{
    npy_intp, PyArrayObject, NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_F_CONTIGUOUS, NPY_ARRAY_WRITEABLE,
    NPY_TYPES, PY_ARRAY_API,
};
use numpy::npyffi::{NpyTypes, PyArray_Descr};
use pyo3::exceptions::PyMemoryError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use smallvec::SmallVec;

use sfm_native::packet::{Shape, MAX_DIMENSIONS};

/// An array's memory and the fields of its `Shape`.
pub struct Numbers {
    pub from: *const u8,
    pub length: usize,
    pub writable: bool,
    /// kind, item size, order, dimensions
    pub front: [u8; 4],
    /// The extents, as the packet has them.
    pub extents: SmallVec<[u8; 64]>,
}

/// The type numpy.ndarray, if numpy was imported: otherwise no value is an array.
fn ndarray<'py>(py: Python<'py>) -> Option<&'py Bound<'py, PyType>> {
    static NDARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    if let Some(found) = NDARRAY.get(py) {
        return Some(found.bind(py));
    }
    let modules = py.import(intern!(py, "sys")).ok()?.getattr(intern!(py, "modules")).ok()?;
    let numpy = modules.get_item(intern!(py, "numpy")).ok()?;
    let found = numpy.getattr(intern!(py, "ndarray")).ok()?.cast_into::<PyType>().ok()?;
    Some(NDARRAY.get_or_init(py, || found.unbind()).bind(py))
}

/// The numbers of `value`, if it is exactly an ndarray, contiguous, in this machine's byte order.
/// Other values are pickled. Valid as long as `value` lives.
pub fn numbers(value: &Bound<'_, PyAny>) -> Option<Numbers> {
    if !value.get_type().is(ndarray(value.py())?) {
        return None;
    }
    // SAFETY: it is an ndarray, whose C structure has not changed since NumPy 1.
    unsafe {
        let array = &*value.as_ptr().cast::<PyArrayObject>();
        let order = match array.flags {
            flags if flags & NPY_ARRAY_C_CONTIGUOUS != 0 => b'C',
            flags if flags & NPY_ARRAY_F_CONTIGUOUS != 0 => b'F',
            _ => return None,
        };
        let dimensions = u8::try_from(array.nd).ok().filter(|nd| *nd <= MAX_DIMENSIONS)?;
        let (kind, item) = number(&*array.descr)?;
        let mut length = usize::from(item);
        let mut extents = SmallVec::new();
        for nth in 0..usize::from(dimensions) {
            let extent = *array.dimensions.add(nth);
            length = length.checked_mul(usize::try_from(extent).ok()?)?;
            extents.extend_from_slice(&(extent as u64).to_le_bytes());
        }
        let front = [kind, item, order, dimensions];
        let writable = array.flags & NPY_ARRAY_WRITEABLE != 0;
        Some(Numbers { from: array.data.cast(), length, writable, front, extents })
    }
}

/// Kind and size of an array's numbers; None if its items are no plain numbers.
fn number(descr: &PyArray_Descr) -> Option<(u8, u8)> {
    use NPY_TYPES::*;
    const NATIVE: [c_char; 3] = [b'=' as c_char, b'|' as c_char, b'<' as c_char];
    if cfg!(target_endian = "big") || !NATIVE.contains(&descr.byteorder) {
        return None; // packets are little-endian
    }
    let long = std::mem::size_of::<std::ffi::c_long>() as u8;
    let types: [(NPY_TYPES, u8, u8); 16] = [
        (NPY_BOOL, b'b', 1),
        (NPY_BYTE, b'i', 1),
        (NPY_UBYTE, b'u', 1),
        (NPY_SHORT, b'i', 2),
        (NPY_USHORT, b'u', 2),
        (NPY_INT, b'i', 4),
        (NPY_UINT, b'u', 4),
        (NPY_LONG, b'i', long),
        (NPY_ULONG, b'u', long),
        (NPY_LONGLONG, b'i', 8),
        (NPY_ULONGLONG, b'u', 8),
        (NPY_HALF, b'f', 2),
        (NPY_FLOAT, b'f', 4),
        (NPY_DOUBLE, b'f', 8),
        (NPY_CFLOAT, b'c', 8),
        (NPY_CDOUBLE, b'c', 16),
    ];
    let (_, kind, item) = types.iter().find(|(number, ..)| *number as c_int == descr.type_num)?;
    Some((*kind, *item))
}

/// NumPy's number for the type of a shape's items.
fn type_number(shape: &Shape<'_>) -> c_int {
    use NPY_TYPES::*;
    let long = std::mem::size_of::<std::ffi::c_long>() == 8;
    let number = match (shape.kind, shape.item) {
        (b'b', _) => NPY_BOOL,
        (b'i', 1) => NPY_BYTE,
        (b'i', 2) => NPY_SHORT,
        (b'i', 4) => NPY_INT,
        (b'i', _) if long => NPY_LONG,
        (b'i', _) => NPY_LONGLONG,
        (b'u', 1) => NPY_UBYTE,
        (b'u', 2) => NPY_USHORT,
        (b'u', 4) => NPY_UINT,
        (b'u', _) if long => NPY_ULONG,
        (b'u', _) => NPY_ULONGLONG,
        (b'f', 2) => NPY_HALF,
        (b'f', 4) => NPY_FLOAT,
        (b'f', _) => NPY_DOUBLE,
        (_, 8) => NPY_CFLOAT,
        _ => NPY_CDOUBLE,
    };
    number as c_int
}

/// The writable array of this shape at `memory`, which `owner` keeps alive.
///
/// # Safety
/// `memory` holds `shape.bytes()` bytes, aligned for any number, while `owner` lives, and nothing else
/// refers to them.
pub unsafe fn array<'py>(
    owner: Bound<'py, PyAny>,
    shape: &Shape<'_>,
    memory: *mut u8,
) -> PyResult<Bound<'py, PyAny>> {
    let py = owner.py();
    // Imported here, where Stop or an ImportError can end the call: the API below panics instead.
    static IMPORTED: PyOnceLock<()> = PyOnceLock::new();
    IMPORTED.get_or_try_init(py, || py.import("numpy").map(drop))?;
    let mut extents = [0 as npy_intp; MAX_DIMENSIONS as usize];
    let mut dimensions = 0;
    for (to, extent) in extents.iter_mut().zip(shape.extents()) {
        // Only an empty array can have an extent that does not fit: others would not fit in memory.
        *to = npy_intp::try_from(extent).map_err(|_| PyMemoryError::new_err("array too large"))?;
        dimensions += 1;
    }
    let order = if shape.order == b'F' { NPY_ARRAY_F_CONTIGUOUS } else { 0 };
    // SAFETY: the arguments are as NumPy requires; it takes over the reference to the descriptor
    // and, in SetBaseObject, the one to the owner.
    unsafe {
        let made = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            PY_ARRAY_API.get_type_object(py, NpyTypes::PyArray_Type),
            PY_ARRAY_API.PyArray_DescrFromType(py, type_number(shape)),
            dimensions,
            extents.as_mut_ptr(),
            std::ptr::null_mut(),
            memory.cast(),
            order | NPY_ARRAY_WRITEABLE,
            std::ptr::null_mut(),
        );
        let made = Bound::from_owned_ptr_or_err(py, made)?;
        if PY_ARRAY_API.PyArray_SetBaseObject(py, made.as_ptr().cast(), owner.into_ptr()) != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(made)
    }
}
