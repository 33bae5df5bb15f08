//! The names of a call's arguments as text.
//!
//! A program makes few kinds of calls and makes them again and again, with the same interned names.
//! To compare their addresses with those of an earlier call costs less than to ask the interpreter
//! for the text of each.

use std::cell::RefCell;
use std::rc::Rc;

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::packet::encode::text_of;

/// Kinds of calls that are kept, by some bits of their last name's address.
const KEPT: usize = 64;

pub struct Names {
    /// Where they were read: the same one at each call if they stand in the program's source.
    tuple: Py<PyTuple>,
    /// They keep the texts, and their addresses from being used again.
    objects: Vec<Py<PyString>>,
    texts: Vec<&'static str>,
}

thread_local! {
    /// Boxed, as in `location.rs`.
    static LATEST: Box<[RefCell<Option<Rc<Names>>>]> = (0..KEPT).map(|_| RefCell::default()).collect();
}

impl Names {
    /// The names in `tuple`, which is not empty.
    pub fn of(tuple: &Bound<'_, PyTuple>) -> PyResult<Rc<Names>> {
        let last = tuple.get_borrowed_item(tuple.len() - 1)?.as_ptr() as usize;
        LATEST.with(|latest| {
            let latest = &latest[(last >> 4) % KEPT];
            if let Some(known) = latest.borrow().as_ref().filter(|known| known.are(tuple)) {
                return Ok(known.clone());
            }
            let read = Rc::new(Names::read(tuple)?);
            let before = latest.replace(Some(read.clone()));
            drop(before); // not while the cell is borrowed: that may run Python
            Ok(read)
        })
    }

    fn read(tuple: &Bound<'_, PyTuple>) -> PyResult<Names> {
        let (mut objects, mut texts) = (Vec::new(), Vec::new());
        for name in tuple.iter() {
            let name = name.cast_into::<PyString>()?;
            // SAFETY: the text stays as it is as long as its object, which is kept beside it;
            // `texts` hands it out for no longer than that.
            texts.push(unsafe { &*(text_of(&name)? as *const str) });
            objects.push(name.unbind());
        }
        Ok(Names { tuple: tuple.clone().unbind(), objects, texts })
    }

    /// Whether `tuple` has these very objects.
    fn are(&self, tuple: &Bound<'_, PyTuple>) -> bool {
        let same = |(nth, name): (usize, &Py<PyString>)| {
            tuple.get_borrowed_item(nth).is_ok_and(|other| other.as_ptr() == name.as_ptr())
        };
        self.tuple.as_ptr() == tuple.as_ptr()
            || (self.objects.len() == tuple.len() && self.objects.iter().enumerate().all(same))
    }

    pub fn texts(&self) -> &[&str] {
        &self.texts
    }
}
