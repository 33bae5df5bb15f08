//! The arguments that determine the target memory of an operation.

use std::sync::Arc;

use super::route::Route;
use super::{lock, Window};
use crate::checks;
use crate::data::Data;
use crate::datatype::{self, Datatype, Held};
use crate::errors::{fail, Answer};
use crate::handles::*;

/// Some of a target's memory, in an epoch that allows access to it.
pub struct Target<'a> {
    pub window: &'a Arc<Window>,
    pub rank: usize,
    pub route: Route,
    /// Its layout: at addresses of this process or of the target's; at offsets in the window if
    /// messages are used.
    pub data: Data,
}

/// The arguments of an operation that name its target.
#[derive(Clone, Copy)]
pub struct Named {
    pub rank: c_int,
    pub disp: MPI_Aint,
    pub count: MPI_Count,
    pub datatype: MPI_Datatype,
    /// True for an operation with a request.
    pub by_request: bool,
}

impl Named {
    pub fn new(rank: c_int, disp: MPI_Aint, count: MPI_Count, datatype: MPI_Datatype) -> Named {
        Named { rank, disp, count, datatype, by_request: false }
    }

    /// The same, of an operation with a request.
    pub fn by_request(self) -> Named {
        Named { by_request: true, ..self }
    }
}

impl Window {
    /// None for MPI_PROC_NULL.
    #[inline(always)] // as `UserBuffer::data`
    pub fn target<'a>(self: &'a Arc<Window>, named: &Named) -> Answer<Option<(Target<'a>, Held)>> {
        let count = checks::count("target_count", named.count)?;
        if named.rank == MPI_PROC_NULL {
            return Ok(None);
        }
        let rank = self.checked("target_rank", named.rank)?;
        let datatype = datatype::committed(named.datatype)?;
        match named.by_request {
            false => self.epochs.access(rank)?,
            true => self.epochs().request(rank)?,
        }
        let at = self.offset_of(rank, named.disp, count, &datatype)?;
        let route = self.routes[rank];
        let base = match route {
            Route::Here(base) => base,
            Route::Kernel(_) => self.members[rank].base,
            Route::Served => 0,
        };
        let at = base.wrapping_add_signed(at) as *const c_void;
        let data = Data::items(at, count, &datatype);
        Ok(Some((Target { window: self, rank, route, data }, datatype)))
    }

    pub fn checked(&self, name: &str, rank: c_int) -> Answer<usize> {
        checks::rank(name, rank, self.size() as c_int, "the window")?;
        Ok(rank as usize)
    }

    /// The offset in the window's memory; an error if the target is not inside the window.
    fn offset_of(
        &self,
        rank: usize,
        disp: MPI_Aint,
        count: usize,
        datatype: &Datatype,
    ) -> Answer<isize> {
        let member = &self.members[rank];
        let between = datatype.extent.saturating_mul(count.saturating_sub(1) as isize);
        let low = datatype.true_lb.saturating_add(between.min(0));
        let length = datatype.true_extent.saturating_add(between.saturating_abs());
        let is_nothing = count == 0 || datatype.size == 0;
        if self.is_dynamic() {
            let first = disp.wrapping_add(low) as usize;
            let is_here = rank == self.rank();
            if is_here && !is_nothing && !lock(&self.attached).has(first, length as usize) {
                return Err(not_attached(first, length as usize));
            }
            return Ok(disp);
        }
        if disp < 0 {
            let text = format!("argument target_disp is {disp}, less than zero");
            return Err(fail(MPI_ERR_DISP, text));
        }
        let at = disp.saturating_mul(member.disp_unit);
        let (first, end) = (at.saturating_add(low), at.saturating_add(low).saturating_add(length));
        if !is_nothing && (first < 0 || end > member.size as isize) {
            let (size, unit) = (member.size, member.disp_unit);
            let text = format!(
                "the {length} bytes from byte {first} on are not inside the window of rank \
                {rank}, which has {size} (argument target_disp is {disp}, in units of {unit})"
            );
            return Err(fail(MPI_ERR_RMA_RANGE, text));
        }
        Ok(at)
    }
}

/// The error for memory of a dynamic window that cannot be reached.
#[cold]
pub fn not_attached(at: usize, bytes: usize) -> crate::errors::Failure {
    let text = format!(
        "the {bytes} bytes at {at:#x} are not attached to the window; the target calls \
         MPI_Win_attach, and target_disp is an address of MPI_Get_address"
    );
    fail(MPI_ERR_RMA_RANGE, text)
}
