//! Methods that take the interpreter's vectors of arguments (METH_FASTCALL): making a tuple and a
//! dict of them would cost as much as a small message. PyO3 has no attribute for such methods; its
//! own glue for them is used without it.

use std::ffi::CStr;

use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::calls::{Calls, Me};
use super::names::Names;
use crate::host::gil::InCall;

pub type Outcome<'py> = PyResult<Bound<'py, PyAny>>;
pub type Function = for<'py> fn(Me<'_, 'py>, &Arguments<'_, 'py>) -> Outcome<'py>;

/// The arguments of a call, as the interpreter passes them.
pub struct Arguments<'a, 'py> {
    pub py: Python<'py>,
    pub positional: &'a [Bound<'py, PyAny>],
    names: &'a [&'a str],
    values: &'a [Bound<'py, PyAny>],
}

impl<'a, 'py> Arguments<'a, 'py> {
    pub fn named(&self) -> impl Iterator<Item = (&'a str, &'a Bound<'py, PyAny>)> + use<'a, 'py> {
        self.names.iter().copied().zip(self.values)
    }

    /// The argument called `name`.
    pub fn find(&self, name: &str) -> Option<&'a Bound<'py, PyAny>> {
        self.named().find(|argument| argument.0 == name).map(|argument| argument.1)
    }

    pub fn dict(&self) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(self.py);
        for (name, value) in self.named() {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }

    pub fn no_positional(&self, call: &str) -> PyResult<()> {
        match self.positional {
            [] => Ok(()),
            _ => Err(PyTypeError::new_err(format!(
                "{call} takes attributes by name only: {call}(tag='x', ...)"
            ))),
        }
    }
}

/// Convert the interpreter's arguments, call the method, and convert its result.
///
/// # Safety
/// Called by the interpreter as a METH_FASTCALL | METH_KEYWORDS method, through PyO3's glue.
pub unsafe fn enter(
    py: Python<'_>,
    slf: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
    call: Function,
) -> PyResult<*mut ffi::PyObject> {
    let _in_call = InCall::enter(py);
    // SAFETY: the interpreter keeps all of these during the call: `slf`, whose type the method
    // descriptor has checked; the tuple of names or null; and as many arguments as positional ones
    // and names together. `Bound` is a transparent pointer.
    let (slf, names) = unsafe {
        let names = Bound::from_borrowed_ptr_or_opt(py, names);
        (Bound::from_borrowed_ptr(py, slf).cast_into_unchecked::<Calls>(), names)
    };
    // SAFETY: as above: a tuple.
    let names = names.map(|names| unsafe { names.cast_into_unchecked::<PyTuple>() });
    let names = match names.filter(|names| !names.is_empty()) {
        Some(names) => Some(Names::of(&names)?),
        None => None,
    };
    let names = names.as_ref().map_or(&[][..], |names| names.texts());
    let positional = positional as usize;
    let all: &[Bound<'_, PyAny>] = match positional + names.len() {
        0 => &[],
        // SAFETY: as above.
        count => unsafe { std::slice::from_raw_parts(arguments.cast(), count) },
    };
    let (positional, values) = all.split_at(positional);
    call(&slf, &Arguments { py, positional, names, values }).map(Bound::into_ptr)
}

/// A method's name, its docstring (a file) and its entry: `method!("name", function, "file.txt")`.
macro_rules! method {
    ($name:literal, $function:path, $doc:literal) => {{
        unsafe fn entry(
            py: Python<'_>,
            slf: *mut pyo3::ffi::PyObject,
            arguments: *const *mut pyo3::ffi::PyObject,
            positional: pyo3::ffi::Py_ssize_t,
            names: *mut pyo3::ffi::PyObject,
        ) -> PyResult<*mut pyo3::ffi::PyObject> {
            // SAFETY: the interpreter calls it as `enter` requires.
            unsafe {
                let (slf, function) = (slf, $function);
                $crate::endpoint::fastcall::enter(py, slf, arguments, positional, names, function)
            }
        }
        let entry: pyo3::ffi::PyCFunctionFastWithKeywords =
            pyo3::impl_::trampoline::get_trampoline_function!(
                fastcall_cfunction_with_keywords,
                entry
            );
        (concat!($name, "\0"), concat!(include_str!($doc), "\0"), entry)
    }};
}
pub(super) use method;

pub type Method = (&'static str, &'static str, ffi::PyCFunctionFastWithKeywords);

/// Add these methods of `class` to `module`, as the method descriptors of the class.
pub fn add_methods(
    module: &Bound<'_, PyModule>,
    class: &Bound<'_, PyType>,
    methods: &[Method],
) -> PyResult<()> {
    let py = class.py();
    for (name, doc, function) in methods {
        let text =
            |text: &'static str| CStr::from_bytes_with_nul(text.as_bytes()).expect("one NUL");
        // The interpreter refers to it until the process ends.
        let definition = Box::leak(Box::new(ffi::PyMethodDef {
            ml_name: text(name).as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: *function },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: text(doc).as_ptr(),
        }));
        // SAFETY: a type object and a definition that stays.
        let method = unsafe {
            let made = ffi::PyDescr_NewMethod(class.as_type_ptr(), definition);
            Bound::from_owned_ptr_or_err(py, made)?
        };
        module.add(text(name).to_str().expect("ASCII"), method)?;
    }
    Ok(())
}
