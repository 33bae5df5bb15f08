//! How the memory of a target is reached.

use std::ffi::c_void;

use crate::data::Data;
use crate::datatype::layout::Visitor;
use crate::engine::copy;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is mapped here: the target's memory begins at this address.
    Here(usize),
    /// The kernel copies to and from the memory of this process.
    Kernel(u64),
    /// By messages.
    Served,
}

/// Pieces of a process's memory that one call of the kernel copies, at most: IOV_MAX.
const PIECES: usize = 1024;

/// Copies between a row of bytes of ours and pieces of another process's memory.
struct Copying {
    pid: u64,
    here: *mut u8,
    write: bool,
    there: Vec<libc::iovec>,
    bytes: usize,
    worked: bool,
}

/// Copy the packed bytes of what lies at `there` in another process from or to `here`; false where
/// the kernel does not: there is no such memory, or no such process.
///
/// # Safety
/// `here` has as many bytes as `there`.
pub unsafe fn transfer(pid: u64, here: *mut u8, there: &Data, write: bool) -> bool {
    if let Some(at) = there.contiguous() {
        // SAFETY: as the caller promises.
        return unsafe { copy(pid, here, at as usize, there.len(), write) };
    }
    let there_ = Vec::with_capacity(PIECES);
    let mut copying = Copying { pid, here, write, there: there_, bytes: 0, worked: true };
    there.visit(0..there.len(), &mut copying);
    copying.flush();
    copying.worked
}

impl Visitor for Copying {
    fn run(&mut self, at: isize, bytes: usize) {
        if self.there.len() == PIECES {
            self.flush();
        }
        self.there.push(libc::iovec { iov_base: at as *mut c_void, iov_len: bytes });
        self.bytes += bytes;
    }
}

impl Copying {
    fn flush(&mut self) {
        if !self.worked || self.there.is_empty() {
            return;
        }
        let own = libc::iovec { iov_base: self.here.cast(), iov_len: self.bytes };
        let (there, count) = (self.there.as_ptr(), self.there.len() as libc::c_ulong);
        let pid = self.pid as libc::pid_t;
        // SAFETY: `transfer` is promised that so many bytes are ours; the kernel checks the others.
        let copied = unsafe {
            match self.write {
                false => libc::process_vm_readv(pid, &own, 1, there, count, 0),
                true => libc::process_vm_writev(pid, &own, 1, there, count, 0),
            }
        };
        self.worked = copied == self.bytes as isize;
        self.here = self.here.wrapping_add(self.bytes);
        self.bytes = 0;
        self.there.clear();
    }
}
