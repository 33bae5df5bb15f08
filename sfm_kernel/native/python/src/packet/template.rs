//! Templates of receives. Native values are compared without Python.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};
use smallvec::SmallVec;

use crate::errors::error;
use crate::host::gil::InCall;
use crate::packet::message::{queued_message, Message};
use sfm_native::matching::{self, Condition};
use sfm_native::packet::Packet;
use sfm_native::value::{compare, from_float, Native, Scalar, Verdict};

/// A template; borrows names and values from Python's objects.
pub struct Template<'a, 'py> {
    pub native: matching::Template<'a>,
    /// The expected values, in the order of the native conditions.
    values: SmallVec<[&'a Bound<'py, PyAny>; 4]>,
}

impl<'a, 'py> Template<'a, 'py> {
    pub fn new(
        attributes: impl Iterator<Item = PyResult<(&'a str, &'a Bound<'py, PyAny>)>>,
    ) -> PyResult<Template<'a, 'py>> {
        let mut template = Template { native: Default::default(), values: SmallVec::new() };
        for pair in attributes {
            let (name, value) = pair?;
            let (expected, never_native) = match expected(value) {
                Native::Scalar(scalar) => (Some(scalar), false),
                Native::Nothing => (None, true),
                Native::Opaque => (None, false),
            };
            template.native.conditions.push(Condition { name, expected, never_native });
            template.values.push(value);
        }
        Ok(template)
    }

    /// Compare in Python the conditions that the native comparison could not decide. Errors of
    /// predicates are passed on; the queue is not locked meanwhile.
    pub fn accepts(&self, py: Python<'py>, packet: &Arc<Packet>) -> PyResult<bool> {
        let _in_call = InCall::enter(py);
        let message = queued_message(packet);
        for (condition, value) in self.native.conditions.iter().zip(&self.values) {
            let attribute = packet.find(condition.name);
            if let (Some(expected), Some(attribute)) = (&condition.expected, attribute) {
                match compare(expected, &attribute) {
                    Verdict::Yes => continue,
                    Verdict::No => return Ok(false),
                    Verdict::Unknown => {}
                }
            }
            let Some(actual) = message.value(py, condition.name)? else { return Ok(false) };
            let predicate = condition.expected.is_none() && value.is_callable();
            let agrees = if predicate {
                value.call1((actual,))?.is_truthy()?
            } else {
                equal(&actual, value).map_err(|cause| {
                    if !cause.is_instance_of::<pyo3::exceptions::PyException>(py) {
                        return cause; // KeyboardInterrupt
                    }
                    let why = cause.value(py).to_string();
                    let failure = error(py, "MatchError", (condition.name, why));
                    failure.set_cause(py, Some(cause));
                    failure
                })?
            };
            if !agrees {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn equal(actual: &Bound<'_, PyAny>, expected: &Bound<'_, PyAny>) -> PyResult<bool> {
    actual.rich_compare(expected, pyo3::basic::CompareOp::Eq)?.is_truthy()
}

/// A template's value, for native comparisons.
fn expected<'a>(value: &'a Bound<'_, PyAny>) -> Native<'a> {
    let found = if let Ok(value) = value.cast_exact::<PyInt>() {
        value.extract::<i64>().ok().map(Scalar::Int)
    } else if let Ok(value) = value.cast_exact::<PyString>() {
        value.to_str().ok().map(Scalar::Str)
    } else if value.is_none() {
        Some(Scalar::None)
    } else if let Ok(value) = value.cast_exact::<PyBool>() {
        Some(Scalar::Int(i64::from(value.is_true())))
    } else if let Ok(value) = value.cast_exact::<PyFloat>() {
        return from_float(value.value());
    } else if let Ok(value) = value.cast_exact::<PyBytes>() {
        Some(Scalar::Bytes(value.as_bytes()))
    } else {
        None
    };
    found.map_or(Native::Opaque, Native::Scalar)
}

/// Whether `message` has every attribute of `template`.
#[pyfunction]
#[pyo3(signature = (message, template, /))]
pub fn matches(message: &Bound<'_, Message>, template: &Bound<'_, PyDict>) -> PyResult<bool> {
    let pairs: Vec<_> = template.iter().collect();
    let pairs = pairs.iter().map(|(name, value)| Ok((name.cast::<PyString>()?.to_str()?, value)));
    let template = Template::new(pairs)?;
    let packet = &message.get().packet;
    match matching::matches(&template.native, packet) {
        None => Ok(false),
        Some(true) => Ok(true),
        Some(false) => template.accepts(message.py(), packet),
    }
}
