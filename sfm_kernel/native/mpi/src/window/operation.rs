//! The operations. Where memory is reached without the target's help they are over when they return;
//! the end of those that go as messages is known later.

use std::sync::Arc;

use super::combining::Combining;
use super::served::{self, message::Kind, Pieces};
use super::target::{not_attached, Target};
use super::way::{transfer, Way};
use crate::data::Data;
use crate::engine::{engine, From};
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;

/// What is still to come of an operation, if anything is.
pub type Progress = Option<Arc<Pieces>>;

/// What an operation that combines elements is given.
pub struct Combined<'a> {
    pub combining: Combining,
    /// None where they stay as they are.
    pub origin: Option<&'a Data>,
    /// Where the elements go as they were before.
    pub result: Option<&'a Data>,
}

impl Target<'_> {
    /// # Safety
    /// The memory of the origin, here and below, and of the window is there.
    pub unsafe fn put(&self, origin: &Data) -> Answer<Progress> {
        self.fits("origin", origin)?;
        match self.way {
            Way::Here(_) => origin.copy_to(&self.data),
            Way::Kernel(pid) => match origin.contiguous() {
                Some(from) => self.moved(transfer(pid, from, &self.data, true))?,
                None => self.write(pid, &mut origin.pack())?,
            },
            Way::Served => return served::issue(self, Kind::Put, 0, 0, Some(origin), None),
        }
        Ok(None)
    }

    pub unsafe fn get(&self, result: &Data) -> Answer<Progress> {
        self.fits("origin", result)?;
        match self.way {
            Way::Here(_) => self.data.copy_to(result),
            Way::Kernel(pid) => match result.contiguous() {
                Some(to) => self.moved(transfer(pid, to, &self.data, false))?,
                None => result.put_part(0, &self.read(pid)?),
            },
            Way::Served => return served::issue(self, Kind::Get, 0, 0, None, Some(result)),
        }
        Ok(None)
    }

    pub unsafe fn accumulate(&self, what: &Combined) -> Answer<Progress> {
        let Combined { combining, origin, result } = what;
        if let Some(origin) = origin {
            self.fits("origin", origin)?;
        }
        if let Some(result) = result {
            self.fits("result", result)?;
        }
        let pid = match self.way {
            Way::Served => {
                let (op, element) = (combining.op, combining.code());
                return served::issue(self, Kind::Combine, op, element, *origin, *result);
            }
            Way::Kernel(pid) => Some(pid),
            Way::Here(_) => None,
        };
        let _turn = self.window.turn(self.rank)?;
        let (own, there) = (origin.map(Data::contiguous), self.data.contiguous());
        if let (None, Some(there), true) = (pid, there, combining.is_solid()) {
            // The usual case: no copy but the loop.
            if let Some(result) = result {
                self.data.copy_to(result);
            }
            match own {
                None => return Ok(None),
                Some(Some(own)) => {
                    combining.in_place(own, there, self.data.len());
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
            result.put_part(0, &elements);
        }
        if let Some(origin) = origin {
            combining.packed(&origin.pack(), &mut elements);
            match pid {
                Some(pid) => self.write(pid, &mut elements)?,
                None => self.data.put_part(0, &elements),
            }
        }
        Ok(None)
    }

    /// `compare`: as many bytes as the target's element, at most 16, and so are the others.
    pub unsafe fn compare_and_swap(
        &self,
        compare: *const u8,
        origin: *const u8,
        result: *mut u8,
    ) -> Answer<Progress> {
        let size = self.data.len();
        let [compare, origin] = [compare, origin].map(|at| std::slice::from_raw_parts(at, size));
        let result = Data::bytes(result, size);
        let pid = match self.way {
            Way::Served => {
                let mut both = [compare, origin].concat();
                let both = Data::bytes(both.as_mut_ptr(), both.len());
                return served::issue(self, Kind::Swap, 0, 0, Some(&both), Some(&result));
            }
            Way::Kernel(pid) => Some(pid),
            Way::Here(_) => None,
        };
        let _turn = self.window.turn(self.rank)?;
        let found = match pid {
            Some(pid) => self.read(pid)?,
            None => self.data.pack(),
        };
        if found == compare {
            match pid {
                Some(pid) => self.write(pid, &mut origin.to_vec())?,
                None => self.data.put_part(0, origin),
            }
        }
        result.put_part(0, &found);
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

    /// Whether the kernel has copied.
    fn moved(&self, worked: bool) -> Answer {
        if worked {
            return Ok(());
        }
        Err(self.unreachable())
    }

    #[cold]
    fn unreachable(&self) -> Failure {
        let (rank, bytes) = (self.rank, self.data.len());
        if engine().lost_of(From::One(self.window.process(rank))).is_some() {
            let text = format!("rank {rank} of the window has ended; its own output says why");
            return fail(MPI_ERR_PROC_ABORTED, text);
        }
        match self.data.contiguous() {
            Some(at) if self.window.is_dynamic() => not_attached(at as usize, bytes),
            _ => {
                let text = format!("the memory of rank {rank} is not there: was it freed?");
                fail(MPI_ERR_RMA_RANGE, text)
            }
        }
    }

    /// An origin has to have as many bytes as the target.
    fn fits(&self, name: &str, origin: &Data) -> Answer {
        if origin.len() == self.data.len() {
            return Ok(());
        }
        let (own, there) = (origin.len(), self.data.len());
        let text = format!(
            "the {name} has {own} bytes, the target {there}: give counts and datatypes that fit"
        );
        Err(fail(if own > there { MPI_ERR_TRUNCATE } else { MPI_ERR_COUNT }, text))
    }
}
