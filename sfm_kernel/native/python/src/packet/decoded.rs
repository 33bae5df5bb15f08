//! Values of a message that were decoded: who asks again gets the same objects.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use smallvec::SmallVec;

use sfm_native::packet::Attribute;

/// Objects by where their value stands in the packet. Mostly there is one: the data.
#[derive(Default)]
pub struct Kept(Mutex<Objects>);

type Objects = SmallVec<[(usize, Py<PyAny>); 1]>;

impl Kept {
    pub fn get<'py>(&self, py: Python<'py>, one: &Attribute<'_>) -> Option<Bound<'py, PyAny>> {
        let objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = place(one);
        objects.iter().find(|kept| kept.0 == place).map(|kept| kept.1.bind(py).clone())
    }

    /// Keep `value`; the one that is kept, should another thread have been faster.
    pub fn put<'py>(&self, one: &Attribute<'_>, value: Bound<'py, PyAny>) -> Bound<'py, PyAny> {
        let mut objects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = place(one);
        if let Some(kept) = objects.iter().find(|kept| kept.0 == place) {
            let kept = kept.1.bind(value.py()).clone();
            drop(objects); // before the value goes: that may run Python
            return kept;
        }
        objects.push((place, value.clone().unbind()));
        value
    }
}

/// No two values that are kept (none of them is empty) begin at the same byte of a packet.
fn place(one: &Attribute<'_>) -> usize {
    one.value.as_ptr() as usize
}
