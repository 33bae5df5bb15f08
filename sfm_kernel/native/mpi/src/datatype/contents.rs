//! The construction of a datatype, as MPI_Type_get_envelope and MPI_Type_get_contents return it.
//!
//! MPI 4.1, section 5.1.13: a constructor with large counts (`MPI_Type_vector_c`) records its
//! counts, lengths, strides and displacements as large counts, in the order of the arguments.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::Held;
use crate::errors::{fail, Answer};
use crate::handles::*;

pub struct Made {
    pub combiner: c_int,
    /// In the order of the constructor with small counts.
    pub integers: Vec<MPI_Count>,
    pub addresses: Vec<MPI_Aint>,
    pub types: Vec<Held>,
    pub is_large: AtomicBool,
}

pub struct Contents {
    pub integers: Vec<MPI_Count>,
    pub addresses: Vec<MPI_Aint>,
    pub counts: Vec<MPI_Count>,
}

impl Made {
    pub fn named() -> Made {
        Made {
            combiner: MPI_COMBINER_NAMED,
            integers: Vec::new(),
            addresses: Vec::new(),
            types: Vec::new(),
            is_large: AtomicBool::new(false),
        }
    }

    /// For MPI_Type_get_envelope_c and MPI_Type_get_contents_c.
    pub fn contents(&self) -> Contents {
        let (mut integers, mut addresses) = (self.integers.clone(), self.addresses.clone());
        let mut counts = Vec::new();
        if self.is_large.load(Relaxed) {
            match self.combiner {
                MPI_COMBINER_SUBARRAY => {
                    let dimensions = integers[0] as usize;
                    counts.extend(integers.drain(1..=3 * dimensions));
                }
                MPI_COMBINER_DARRAY => {
                    let dimensions = integers[2] as usize;
                    counts.extend(integers.drain(3..3 + dimensions));
                }
                _ => {
                    counts.append(&mut integers);
                    counts.extend(addresses.drain(..).map(|address| address as MPI_Count));
                }
            }
        }
        Contents { integers, addresses, counts }
    }

    /// The same for the functions without large counts; an error if the datatype has any.
    pub fn small_contents(&self) -> Answer<Contents> {
        let contents = self.contents();
        if contents.counts.is_empty() {
            return Ok(contents);
        }
        let text = "the datatype was made with large counts; MPI_Type_get_envelope_c and \
            MPI_Type_get_contents_c return them";
        Err(fail(MPI_ERR_TYPE, text))
    }
}

/// Record that a constructor with large counts made the datatype.
pub fn made_large(handle: MPI_Datatype) -> Answer {
    super::get(handle)?.made.is_large.store(true, Relaxed);
    Ok(())
}
