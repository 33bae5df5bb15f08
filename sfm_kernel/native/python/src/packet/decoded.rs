//! The decoded values of a message: each read of an attribute gives the same object.

use std::sync::Mutex;

use pyo3::prelude::*;
use smallvec::SmallVec;

use sfm_native::packet::Attribute;
use sfm_native::sync::lock;

/// Objects by the address of their value in the packet. Mostly there is one: the data.
#[derive(Default)]
pub struct DecodedValues(Mutex<Objects>);

type Objects = SmallVec<[(usize, Py<PyAny>); 1]>;

impl DecodedValues {
    pub fn get<'py>(
        &self,
        py: Python<'py>,
        attribute: &Attribute<'_>,
    ) -> Option<Bound<'py, PyAny>> {
        let objects = lock(&self.0);
        let address = address(attribute);
        objects.iter().find(|object| object.0 == address).map(|object| object.1.bind(py).clone())
    }

    /// Store `value` and return it; or the object that another thread has stored before.
    pub fn put<'py>(
        &self,
        attribute: &Attribute<'_>,
        value: Bound<'py, PyAny>,
    ) -> Bound<'py, PyAny> {
        let mut objects = lock(&self.0);
        let address = address(attribute);
        if let Some(stored) = objects.iter().find(|object| object.0 == address) {
            let stored = stored.1.bind(value.py()).clone();
            drop(objects); // before `value` is dropped: that may run Python
            return stored;
        }
        objects.push((address, value.clone().unbind()));
        value
    }
}

/// It identifies the value: no stored value is empty, so no two begin at the same byte.
fn address(attribute: &Attribute<'_>) -> usize {
    attribute.value.as_ptr() as usize
}
