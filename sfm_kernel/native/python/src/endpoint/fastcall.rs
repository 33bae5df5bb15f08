//! Methods that take the interpreter's vectors of arguments (METH_FASTCALL): making a tuple and a
//! dict of them would cost as much as a small message. PyO3 cannot define such methods.

use std::ffi::CStr;
use std::panic::{catch_unwind, AssertUnwindSafe};

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::host::gil::InCall;
use crate::packet::encode::text_of;

pub type Outcome<'py> = PyResult<Bound<'py, PyAny>>;
pub type Function = for<'py> fn(&Bound<'py, PyAny>, &Arguments<'_, 'py>) -> Outcome<'py>;

/// The arguments of a call, as the interpreter passes them.
pub struct Arguments<'a, 'py> {
    pub py: Python<'py>,
    pub positional: &'a [Bound<'py, PyAny>],
    pub names: Option<&'a Bound<'py, PyTuple>>,
    pub values: &'a [Bound<'py, PyAny>],
}

impl<'a, 'py> Arguments<'a, 'py> {
    pub fn named(
        &self,
    ) -> impl Iterator<Item = PyResult<(&'a str, &'a Bound<'py, PyAny>)>> + use<'a, 'py> {
        let names = self.names;
        self.values.iter().enumerate().map(move |(nth, value)| {
            let names = names.expect("as many names as values");
            let name = names.get_borrowed_item(nth)?;
            let name = name.cast::<PyString>()?;
            let name: &str = text_of(&name)?;
            // SAFETY: the tuple of names holds the text at least as long as 'a: for the call.
            Ok((unsafe { &*(name as *const str) }, value))
        })
    }

    /// The argument called `name`.
    pub fn find(&self, name: &Bound<'py, PyString>) -> PyResult<Option<&'a Bound<'py, PyAny>>> {
        let Some(names) = self.names else { return Ok(None) };
        // Names in a program's source are interned, as this one is: comparing pointers finds them.
        for (nth, value) in self.values.iter().enumerate() {
            if names.get_borrowed_item(nth)?.is(name) {
                return Ok(Some(value));
            }
        }
        let text = name.to_str()?;
        for pair in self.named() {
            let (name, value) = pair?;
            if name == text {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    pub fn dict(&self) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(self.py);
        for pair in self.named() {
            let (name, value) = pair?;
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
/// Called by the interpreter as a METH_FASTCALL | METH_KEYWORDS method.
pub unsafe fn enter(
    slf: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    positional: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
    call: Function,
) -> *mut ffi::PyObject {
    Python::attach(|py| {
        let _in_call = InCall::enter(py);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the interpreter keeps all of these during the call: `slf`, whose type the
            // method descriptor has checked; the tuple of names or null; and as many arguments as
            // positional ones and names together. `Bound` is a transparent pointer.
            unsafe {
                let slf = Bound::from_borrowed_ptr(py, slf);
                let names = Bound::from_borrowed_ptr_or_opt(py, names)
                    .map(|names| names.cast_into_unchecked::<PyTuple>());
                let named = names.as_ref().map_or(0, |names| names.len());
                let positional = positional as usize;
                let all: &[Bound<'_, PyAny>] = match positional + named {
                    0 => &[],
                    count => std::slice::from_raw_parts(arguments.cast(), count),
                };
                let (positional, values) = all.split_at(positional);
                call(&slf, &Arguments { py, positional, names: names.as_ref(), values })
            }
        }));
        match outcome {
            Ok(Ok(result)) => result.into_ptr(),
            Ok(Err(failure)) => {
                failure.restore(py);
                std::ptr::null_mut()
            }
            Err(_) => {
                PyRuntimeError::new_err("the native core panicked; see stderr").restore(py);
                std::ptr::null_mut()
            }
        }
    })
}

/// A method's name, its docstring (a file) and its entry: `method!("name", function, "file.txt")`.
macro_rules! method {
    ($name:literal, $function:path, $doc:literal) => {{
        unsafe extern "C" fn entry(
            slf: *mut pyo3::ffi::PyObject,
            arguments: *const *mut pyo3::ffi::PyObject,
            positional: pyo3::ffi::Py_ssize_t,
            names: *mut pyo3::ffi::PyObject,
        ) -> *mut pyo3::ffi::PyObject {
            // SAFETY: the interpreter calls it as `enter` requires.
            unsafe {
                $crate::endpoint::fastcall::enter(slf, arguments, positional, names, $function)
            }
        }
        let entry: pyo3::ffi::PyCFunctionFastWithKeywords = entry;
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
