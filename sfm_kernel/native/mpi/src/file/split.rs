//! Split collectives: begun by one call, ended by another; one at a time on each file.

use super::access::{Access, Way};
use super::get;
use crate::errors::{fail, Answer};
use crate::handles::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    AtAll,
    All,
    Ordered,
}

/// One that was begun. Its data has moved then, as the standard allows.
pub struct Split {
    way: Way,
    kind: Kind,
    buf: usize,
    status: MPI_Status,
}

impl Split {
    /// `MPI_File_read_at_all`
    fn name(way: Way, kind: Kind) -> String {
        let way = if way == Way::Read { "read" } else { "write" };
        let kind = match kind {
            Kind::AtAll => "at_all",
            Kind::All => "all",
            Kind::Ordered => "ordered",
        };
        format!("MPI_File_{way}_{kind}")
    }
}

/// Begin one.
///
/// # Safety
/// As of `Access::perform`.
pub unsafe fn begin(kind: Kind, access: Access) -> Answer {
    let file = get(access.fh)?;
    let split = || file.split.lock().expect("no panic under the lock");
    if let Some(open) = &*split() {
        let name = Split::name(open.way, open.kind);
        let text = format!(
            "{name}_begin was called on {:?} before, and a file has one split collective at a \
             time; call {name}_end first",
            file.name
        );
        return Err(fail(MPI_ERR_IO, text));
    }
    let status = access.perform()?;
    *split() = Some(Split { way: access.way, kind, buf: access.buf as usize, status });
    Ok(())
}

/// End it.
///
/// # Safety
/// `status` is MPI_STATUS_IGNORE or a place for one.
pub unsafe fn end(
    fh: MPI_File,
    (way, kind): (Way, Kind),
    buf: *const c_void,
    status: *mut MPI_Status,
) -> Answer {
    let file = get(fh)?;
    let mut split = file.split.lock().expect("no panic under the lock");
    let name = Split::name(way, kind);
    let text = match &*split {
        None => format!("no split collective is open on {:?}; call {name}_begin first", file.name),
        Some(open) if (open.way, open.kind) != (way, kind) => format!(
            "{}_begin has begun what is to be ended here; call the function of that name with _end",
            Split::name(open.way, open.kind)
        ),
        Some(open) if open.buf != buf as usize && open.status.bytes() > 0 => {
            format!("argument buf is another than {name}_begin was given; give the same")
        }
        Some(open) => {
            open.status.put(status);
            *split = None;
            return Ok(());
        }
    };
    Err(fail(MPI_ERR_IO, text))
}
