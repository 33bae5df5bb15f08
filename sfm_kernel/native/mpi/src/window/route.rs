//! The route by which the memory of a target is reached.

use std::ffi::c_void;

use crate::data::Data;
use crate::datatype::layout::Visitor;
use crate::engine::{copy, Proof};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The target's memory is mapped in this process and begins at this address.
    Here(usize),
    /// The kernel copies to and from the memory of this process.
    Kernel(Proof),
    /// Messages.
    Served,
}

/// The largest number of runs that one system call copies: IOV_MAX.
const RUNS: usize = 1024;

/// Copies between contiguous bytes of ours and runs of another process's memory.
struct Copying {
    pid: u64,
    here: *mut u8,
    write: bool,
    /// The runs of the other process's memory.
    runs: Vec<libc::iovec>,
    bytes: usize,
    worked: bool,
}

/// Copy the packed bytes of `there`, which is in another process, from or to `here`; false if the
/// kernel does not, because there is no such memory or no such process.
///
/// # Safety
/// `here` has as many bytes as `there`.
pub unsafe fn transfer(pid: u64, here: *mut u8, there: &Data, write: bool) -> bool {
    if let Some(at) = there.contiguous() {
        return copy(pid, here, at as usize, there.len(), write);
    }
    let runs = Vec::with_capacity(RUNS);
    let mut copying = Copying { pid, here, write, runs, bytes: 0, worked: true };
    there.visit(0..there.len(), &mut copying);
    copying.flush();
    copying.worked
}

impl Visitor for Copying {
    fn run(&mut self, at: isize, bytes: usize) {
        if self.runs.len() == RUNS {
            self.flush();
        }
        self.runs.push(libc::iovec { iov_base: at as *mut c_void, iov_len: bytes });
        self.bytes += bytes;
    }
}

impl Copying {
    fn flush(&mut self) {
        if !self.worked || self.runs.is_empty() {
            return;
        }
        let local = libc::iovec { iov_base: self.here.cast(), iov_len: self.bytes };
        let (there, count) = (self.runs.as_ptr(), self.runs.len() as libc::c_ulong);
        let pid = self.pid as libc::pid_t;
        // SAFETY: the caller of `transfer` promises that these bytes are ours; the kernel checks
        // the other process's.
        let copied = unsafe {
            match self.write {
                false => libc::process_vm_readv(pid, &local, 1, there, count, 0),
                true => libc::process_vm_writev(pid, &local, 1, there, count, 0),
            }
        };
        self.worked = copied == self.bytes as isize;
        self.here = self.here.wrapping_add(self.bytes);
        self.bytes = 0;
        self.runs.clear();
    }
}
