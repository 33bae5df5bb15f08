//! Templates: what a receive wants. The native part is compared without Python.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};

use super::errors::error;
use super::message::{shared_message, Message};
use crate::matching::{self, Condition};
use crate::packet::Packet;
use crate::value::{compare, float_key, Key, Keyed, Verdict};

pub struct Template<'py> {
    pub native: matching::Template,
    /// The wanted values, in the order of the native conditions.
    wanted: Vec<(Bound<'py, PyAny>, bool)>,
}

impl<'py> Template<'py> {
    pub fn new(attributes: &Bound<'py, PyDict>) -> PyResult<Template<'py>> {
        let mut template = Template { native: Default::default(), wanted: Vec::new() };
        for (name, value) in attributes.iter() {
            let keyed = key(&value)?;
            let predicate = matches!(keyed, Keyed::Opaque) && value.is_callable();
            template.native.conditions.push(Condition {
                name: name.cast::<PyString>()?.to_str()?.into(),
                never_native: matches!(keyed, Keyed::Nothing),
                key: if let Keyed::Key(key) = keyed { Some(key) } else { None },
            });
            template.wanted.push((value, predicate));
        }
        Ok(template)
    }

    /// Let Python decide what the native comparison could not. What a predicate raises is passed
    /// on; the queue is not locked meanwhile.
    pub fn accepts(&self, py: Python<'py>, packet: &Arc<Packet>) -> PyResult<bool> {
        let message = shared_message(py, packet)?;
        for (condition, (wanted, predicate)) in self.native.conditions.iter().zip(&self.wanted) {
            if let (Some(key), Some(one)) = (&condition.key, packet.find(&condition.name)) {
                match compare(key, &one) {
                    Verdict::Yes => continue,
                    Verdict::No => return Ok(false),
                    Verdict::Unknown => {}
                }
            }
            let Some(value) = message.get().value(py, &condition.name)? else { return Ok(false) };
            let agrees = if *predicate {
                wanted.call1((value,))?.is_truthy()?
            } else {
                equal(&value, wanted).map_err(|cause| {
                    if !cause.is_instance_of::<pyo3::exceptions::PyException>(py) {
                        return cause; // KeyboardInterrupt
                    }
                    let why = cause.value(py).to_string();
                    let failure = error(py, "MatchError", (&*condition.name, why));
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

fn equal(value: &Bound<'_, PyAny>, wanted: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.rich_compare(wanted, pyo3::basic::CompareOp::Eq)?.is_truthy()
}

fn key(value: &Bound<'_, PyAny>) -> PyResult<Keyed> {
    Ok(if value.is_none() {
        Keyed::Key(Key::None)
    } else if let Ok(value) = value.cast_exact::<PyInt>() {
        value.extract::<i64>().map_or(Keyed::Opaque, |value| Keyed::Key(Key::Int(value)))
    } else if let Ok(value) = value.cast_exact::<PyString>() {
        value.to_str().map_or(Keyed::Opaque, |text| Keyed::Key(Key::Str(text.into())))
    } else if let Ok(value) = value.cast_exact::<PyBool>() {
        Keyed::Key(Key::Int(i64::from(value.is_true())))
    } else if let Ok(value) = value.cast_exact::<PyFloat>() {
        float_key(value.value())
    } else if let Ok(value) = value.cast_exact::<PyBytes>() {
        Keyed::Key(Key::Bytes(value.as_bytes().into()))
    } else {
        Keyed::Opaque
    })
}

/// Whether `message` has every attribute of `template`.
#[pyfunction]
#[pyo3(signature = (message, template, /))]
pub fn matches(message: &Bound<'_, Message>, template: &Bound<'_, PyDict>) -> PyResult<bool> {
    let template = Template::new(template)?;
    let packet = &message.get().packet;
    match matching::matches(&template.native, packet) {
        None => Ok(false),
        Some(true) => Ok(true),
        Some(false) => template.accepts(message.py(), packet),
    }
}
