//! Split collectives: one call begins, another one ends; one at a time for each file.

use sfm_native::sync::lock;

use super::access::{Access, Direction};
use super::{get, tally, File};
use crate::engine;
use crate::errors::{fail, Answer};
use crate::handles::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitKind {
    AtAll,
    All,
    Ordered,
}

/// A split collective in progress. Its data has moved already, as the standard allows.
pub struct Split {
    direction: Direction,
    kind: SplitKind,
    buf: usize,
    status: MPI_Status,
    /// The call that has begun it (`unfinished`).
    site: u32,
}

impl Split {
    /// The name without `_begin` or `_end`, such as `MPI_File_read_at_all`.
    fn name(direction: Direction, kind: SplitKind) -> String {
        let direction = if direction == Direction::Read { "read" } else { "write" };
        let kind = match kind {
            SplitKind::AtAll => "at_all",
            SplitKind::All => "all",
            SplitKind::Ordered => "ordered",
        };
        format!("MPI_File_{direction}_{kind}")
    }
}

impl File {
    /// Note for the end of the program that a split collective is open when the file is closed.
    pub fn note_open_split(&self) {
        let split = lock(&self.split);
        if let Some(Split { direction, kind, site, .. }) = &*split {
            let name = Split::name(*direction, *kind);
            let begun = tally::shown(&format!("{name}_begin"), *site);
            tally::note(format!(
                "{begun} is not ended by {name}_end before {:?} is closed",
                self.name
            ));
        }
    }
}

/// # Safety
/// As for `Access::perform`.
pub unsafe fn begin(kind: SplitKind, access: Access) -> Answer {
    let file = get(access.fh)?;
    let split = || lock(&file.split);
    if let Some(open) = &*split() {
        let name = Split::name(open.direction, open.kind);
        let text = format!(
            "{name}_begin was called on {:?}, and a file has at most one split collective; call \
            {name}_end first",
            file.name
        );
        return Err(fail(MPI_ERR_IO, text));
    }
    let site = engine::site();
    let (status, buf) = (access.perform()?, access.buffer.at as usize);
    *split() = Some(Split { direction: access.direction, kind, buf, status, site });
    Ok(())
}

/// # Safety
/// `status` is MPI_STATUS_IGNORE or may be written to.
pub unsafe fn end(
    fh: MPI_File,
    (direction, kind): (Direction, SplitKind),
    buf: *const c_void,
    status: *mut MPI_Status,
) -> Answer {
    let file = get(fh)?;
    let mut split = lock(&file.split);
    let name = Split::name(direction, kind);
    let text = match &*split {
        None => format!("no split collective is open on {:?}; call {name}_begin first", file.name),
        Some(open) if (open.direction, open.kind) != (direction, kind) => format!(
            "the open split collective was begun by {}_begin; call the corresponding function \
            with _end",
            Split::name(open.direction, open.kind)
        ),
        Some(open) if open.buf != buf as usize && open.status.bytes() > 0 => {
            format!("argument buf differs from that of {name}_begin; give the same")
        }
        Some(open) => {
            open.status.put(status);
            *split = None;
            return Ok(());
        }
    };
    Err(fail(MPI_ERR_IO, text))
}
