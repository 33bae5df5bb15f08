//! The operations. If the target's help is not needed they are complete when they return; those
//! sent as messages complete later.

use std::sync::Arc;

use super::combining::Combining;
use super::route::{transfer, Route};
use super::served::{self, message::AccessKind, Fragments};
use super::target::{not_attached, Target};
use crate::data::Data;
use crate::engine::{engine, Proof};
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;

/// The unfinished messages of an operation, if there are any.
pub type Progress = Option<Arc<Fragments>>;

/// The arguments of an operation that combines elements.
pub struct Combined<'a> {
    pub combining: Combining,
    /// None with MPI_NO_OP.
    pub origin: Option<&'a Data>,
    /// The buffer for the elements' previous values.
    pub result: Option<&'a Data>,
}

impl Target<'_> {
    /// # Safety
    /// The memory of the origin, here and below, and of the window is valid.
    pub unsafe fn put(&self, origin: &Data) -> Answer<Progress> {
        self.fits("origin", origin)?;
        match self.route {
            Route::Here(_) => origin.copy_to(&self.data),
            Route::Kernel(Proof { pid, .. }) => match origin.contiguous() {
                Some(from) => self.moved(transfer(pid, from, &self.data, true))?,
                None => self.write(pid, &mut origin.pack())?,
            },
            Route::Served => return served::issue(self, AccessKind::Put, 0, 0, Some(origin), None),
        }
        Ok(None)
    }

    pub unsafe fn get(&self, result: &Data) -> Answer<Progress> {
        self.fits("origin", result)?;
        match self.route {
            Route::Here(_) => self.data.copy_to(result),
            Route::Kernel(Proof { pid, .. }) => match result.contiguous() {
                Some(to) => self.moved(transfer(pid, to, &self.data, false))?,
                None => result.unpack_at(0, &self.read(pid)?),
            },
            Route::Served => return served::issue(self, AccessKind::Get, 0, 0, None, Some(result)),
        }
        Ok(None)
    }

    pub unsafe fn accumulate(&self, operands: &Combined) -> Answer<Progress> {
        let Combined { combining, origin, result } = operands;
        if let Some(origin) = origin {
            self.fits("origin", origin)?;
        }
        if let Some(result) = result {
            self.fits("result", result)?;
        }
        let pid = match self.route {
            Route::Served => {
                let (op, element) = (combining.op, combining.code());
                return served::issue(self, AccessKind::Combine, op, element, *origin, *result);
            }
            Route::Kernel(Proof { pid, .. }) => Some(pid),
            Route::Here(_) => None,
        };
        let _turn = self.window.turn(self.rank)?;
        let (operand, there) = (origin.map(Data::contiguous), self.data.contiguous());
        if let (None, Some(there), true) = (pid, there, combining.is_solid()) {
            // The usual case: no copy besides the loop.
            if let Some(result) = result {
                self.data.copy_to(result);
            }
            match operand {
                None => return Ok(None),
                Some(Some(operand)) => {
                    combining.in_place(operand, there, self.data.len());
                    return Ok(None);
                }
                Some(None) => {}
            }
        }
        let mut elements = match pid {
            Some(pid) => self.read(pid)?,
            None => self.data.pack(),
        };
        if let Some(result) = result {
            result.unpack_at(0, &elements);
        }
        if let Some(origin) = origin {
            combining.packed(&origin.pack(), &mut elements);
            match pid {
                Some(pid) => self.write(pid, &mut elements)?,
                None => self.data.unpack_at(0, &elements),
            }
        }
        Ok(None)
    }

    /// `compare`, `origin` and `result` all have the size of the target's element, at most 16
    /// bytes.
    pub unsafe fn compare_and_swap(
        &self,
        compare: *const u8,
        origin: *const u8,
        result: *mut u8,
    ) -> Answer<Progress> {
        let size = self.data.len();
        let [compare, origin] = [compare, origin].map(|at| std::slice::from_raw_parts(at, size));
        let result = Data::bytes(result, size);
        let pid = match self.route {
            Route::Served => {
                let mut both = [compare, origin].concat();
                let both = Data::bytes(both.as_mut_ptr(), both.len());
                return served::issue(self, AccessKind::Swap, 0, 0, Some(&both), Some(&result));
            }
            Route::Kernel(Proof { pid, .. }) => Some(pid),
            Route::Here(_) => None,
        };
        let _turn = self.window.turn(self.rank)?;
        let found = match pid {
            Some(pid) => self.read(pid)?,
            None => self.data.pack(),
        };
        if found == compare {
            match pid {
                Some(pid) => self.write(pid, &mut origin.to_vec())?,
                None => self.data.unpack_at(0, origin),
            }
        }
        result.unpack_at(0, &found);
        Ok(None)
    }

    unsafe fn read(&self, pid: u64) -> Answer<Vec<u8>> {
        let mut packed = Vec::with_capacity(self.data.len());
        self.moved(transfer(pid, packed.as_mut_ptr(), &self.data, false))?;
        packed.set_len(self.data.len());
        Ok(packed)
    }

    unsafe fn write(&self, pid: u64, packed: &mut [u8]) -> Answer {
        self.moved(transfer(pid, packed.as_mut_ptr(), &self.data, true))
    }

    /// Err unless the kernel has copied.
    fn moved(&self, worked: bool) -> Answer {
        if worked {
            return Ok(());
        }
        Err(self.unreachable())
    }

    #[cold]
    fn unreachable(&self) -> Failure {
        let (rank, bytes) = (self.rank, self.data.len());
        // The end of a process comes before any other reason. Its memory vanishes first, and a
        // little later the locks by which everybody else learns that it has ended.
        let has_ended = match self.route {
            Route::Kernel(proof) => !proof.holds(),
            Route::Here(_) | Route::Served => false,
        };
        if has_ended || engine().has_lost(self.window.process(rank)) {
            let text = format!("rank {rank} of the window has ended; its own output says why");
            return fail(MPI_ERR_PROC_ABORTED, text);
        }
        match self.data.contiguous() {
            Some(at) if self.window.is_dynamic() => not_attached(at as usize, bytes),
            _ => {
                let text = format!("the memory of rank {rank} does not exist: was it freed?");
                fail(MPI_ERR_RMA_RANGE, text)
            }
        }
    }

    /// Err unless the origin has as many bytes as the target.
    fn fits(&self, name: &str, origin: &Data) -> Answer {
        if origin.len() == self.data.len() {
            return Ok(());
        }
        let (operand, there) = (origin.len(), self.data.len());
        let text = format!(
            "the {name} has {operand} bytes, the target {there}: give matching counts and \
            datatypes"
        );
        Err(fail(if operand > there { MPI_ERR_TRUNCATE } else { MPI_ERR_COUNT }, text))
    }
}
