//! `MPI_Status` in MPICH's layout of 20 bytes, or in the 32 bytes of the standard's ABI.

use super::*;

#[cfg(not(abi))]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(non_camel_case_types, non_snake_case)]
pub struct MPI_Status {
    count_lo: c_int,
    count_hi_and_cancelled: c_int,
    pub MPI_SOURCE: c_int,
    pub MPI_TAG: c_int,
    pub MPI_ERROR: c_int,
}

#[cfg(abi)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(non_camel_case_types, non_snake_case)]
pub struct MPI_Status {
    pub MPI_SOURCE: c_int,
    pub MPI_TAG: c_int,
    pub MPI_ERROR: c_int,
    count_lo: c_int,
    count_hi_and_cancelled: c_int,
    reserved: [c_int; 3],
}

const _: () =
    assert!(size_of::<MPI_Status>() == MPI_F_STATUS_SIZE as usize * size_of::<MPI_Fint>());

impl MPI_Status {
    pub fn new(source: c_int, tag: c_int, bytes: u64) -> MPI_Status {
        let mut status = MPI_Status { MPI_SOURCE: source, MPI_TAG: tag, ..Default::default() };
        status.set_bytes(bytes);
        status
    }

    /// The status of a receive from MPI_PROC_NULL.
    pub fn of_no_process() -> MPI_Status {
        MPI_Status::new(MPI_PROC_NULL, MPI_ANY_TAG, 0)
    }

    /// The status of a request that is null or inactive.
    pub fn empty() -> MPI_Status {
        MPI_Status::new(MPI_ANY_SOURCE, MPI_ANY_TAG, 0)
    }

    /// Write an empty status with MPI_SUCCESS, unless the caller ignores it.
    ///
    /// # Safety
    /// As for `put`.
    pub unsafe fn put_empty(to: *mut MPI_Status) {
        if is_requested(to) {
            *to = MPI_Status::empty();
        }
    }

    pub fn bytes(&self) -> u64 {
        let high = (self.count_hi_and_cancelled as u32 >> 1) as u64;
        high << 32 | self.count_lo as u32 as u64
    }

    pub fn set_bytes(&mut self, bytes: u64) {
        self.count_lo = bytes as u32 as c_int;
        let high = (bytes >> 32) as c_int;
        self.count_hi_and_cancelled = high << 1 | (self.count_hi_and_cancelled & 1);
    }

    pub fn is_cancelled(&self) -> bool {
        self.count_hi_and_cancelled & 1 != 0
    }

    pub fn set_cancelled(&mut self, cancelled: bool) {
        self.count_hi_and_cancelled = self.count_hi_and_cancelled & !1 | c_int::from(cancelled);
    }

    /// Write the status, unless the caller passed MPI_STATUS_IGNORE. As the standard demands, calls
    /// that complete one operation do not change the field MPI_ERROR.
    ///
    /// # Safety
    /// `to` is MPI_STATUS_IGNORE or points to a status.
    pub unsafe fn put(&self, to: *mut MPI_Status) {
        if is_requested(to) {
            self.put_with_error((*to).MPI_ERROR, to);
        }
    }

    /// Write the status with this error, in a call that completes several operations.
    ///
    /// # Safety
    /// As for `put`.
    pub unsafe fn put_with_error(&self, error: c_int, to: *mut MPI_Status) {
        if is_requested(to) {
            *to = MPI_Status { MPI_ERROR: error, ..*self };
        }
    }
}

/// True unless it is MPI_STATUS_IGNORE, or null, which some programs pass.
pub fn is_requested(to: *const MPI_Status) -> bool {
    to as isize != MPI_STATUS_IGNORE && !to.is_null()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_of_63_bits_and_the_cancelled_flag_do_not_touch_each_other() {
        let mut status = MPI_Status::new(3, 7, 0x7fff_ffff_ffff_fffe);
        status.set_cancelled(true);
        assert_eq!((status.bytes(), status.is_cancelled()), (0x7fff_ffff_ffff_fffe, true));
        status.set_bytes(5);
        assert_eq!((status.bytes(), status.is_cancelled()), (5, true));
        status.set_cancelled(false);
        assert_eq!((status.bytes(), status.is_cancelled()), (5, false));
    }

    #[test]
    fn completing_one_operation_leaves_the_error_field_alone() {
        let mut status = MPI_Status { MPI_ERROR: 99, ..Default::default() };
        // SAFETY: `status` is a status, which lives until the call returns.
        unsafe { MPI_Status::new(1, 2, 3).put(&mut status) };
        assert_eq!((status.MPI_SOURCE, status.MPI_TAG, status.MPI_ERROR), (1, 2, 99));
    }
}
