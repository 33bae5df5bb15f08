//! Spawning processes, and disconnecting from them.

use std::ffi::CStr;

use crate::checks::{self, array, put, text};
use crate::engine::{self, engine, report, About, From};
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::info;
use crate::spawning::{self, Program, Spawned};
use crate::{comm, ends};

pub unsafe fn comm_spawn(
    command: *const c_char,
    argv: *mut *mut c_char,
    maxprocs: c_int,
    info: MPI_Info,
    root: c_int,
    comm: MPI_Comm,
    intercomm: *mut MPI_Comm,
    array_of_errcodes: *mut c_int,
) -> Answer {
    let programs = || Ok(vec![program(command, argv, maxprocs, info)?]);
    spawn(programs, root, comm, intercomm, array_of_errcodes)
}

pub unsafe fn comm_spawn_multiple(
    count: c_int,
    array_of_commands: *mut *mut c_char,
    array_of_argv: *mut *mut *mut c_char,
    array_of_maxprocs: *const c_int,
    array_of_info: *const MPI_Info,
    root: c_int,
    comm: MPI_Comm,
    intercomm: *mut MPI_Comm,
    array_of_errcodes: *mut c_int,
) -> Answer {
    let programs = || {
        let count = checks::count("count", count)?;
        let commands = array("array_of_commands", array_of_commands, count)?;
        let most = array("array_of_maxprocs", array_of_maxprocs, count)?;
        let infos = array("array_of_info", array_of_info, count)?;
        let argv = match array_of_argv as isize {
            MPI_ARGVS_NULL => vec![std::ptr::null_mut(); count],
            _ => array("array_of_argv", array_of_argv, count)?.to_vec(),
        };
        (0..count).map(|nth| program(commands[nth], argv[nth], most[nth], infos[nth])).collect()
    };
    spawn(programs, root, comm, intercomm, array_of_errcodes)
}

/// One program; `argv` ends with a null, or is MPI_ARGV_NULL.
unsafe fn program(
    command: *const c_char,
    argv: *mut *mut c_char,
    maxprocs: c_int,
    info: MPI_Info,
) -> Answer<Program> {
    let command = text("command", command)?;
    let most = checks::count("maxprocs", maxprocs)?;
    if command.is_empty() {
        return Err(fail(MPI_ERR_ARG, "argument command is empty"));
    }
    let mut arguments = Vec::new();
    if argv as isize != MPI_ARGV_NULL {
        let mut at = argv;
        while !(*at).is_null() {
            arguments.push(CStr::from_ptr(*at).to_string_lossy().into_owned());
            at = at.add(1);
        }
    }
    Ok(Program { command, arguments, most, info: info::copy_or_empty(info)? })
}

unsafe fn spawn(
    programs: impl Fn() -> Answer<Vec<Program>>,
    root: c_int,
    comm: MPI_Comm,
    intercomm: *mut MPI_Comm,
    array_of_errcodes: *mut c_int,
) -> Answer {
    let parents = comm::intra(comm)?;
    ends::root(&parents, root)?;
    put("intercomm", intercomm, MPI_COMM_NULL)?;
    let programs = match parents.rank == root {
        true if crate::process::this().is_engine() => Err(fail(
            MPI_ERR_SPAWN,
            "engines cannot spawn processes: `%sfm scale` adds engines, and a program in a file, \
            which `%sfm run` starts, may spawn",
        )),
        true => programs().map(Some),
        false => Ok(None),
    };
    let Spawned { comm, sizes } = spawning::spawn(&parents, root as usize, programs)?;
    if array_of_errcodes as isize != MPI_ERRCODES_IGNORE {
        let codes = sizes.iter().flat_map(|(asked, started)| {
            (0..*asked).map(|nth| if nth < *started { MPI_SUCCESS } else { MPI_ERR_SPAWN })
        });
        codes.enumerate().for_each(|(nth, code)| *array_of_errcodes.add(nth) = code);
    }
    put("intercomm", intercomm, comm::open(comm?))
}

pub unsafe fn comm_get_parent(parent: *mut MPI_Comm) -> Answer {
    put("parent", parent, spawning::parent())
}

/// Like MPI_Comm_free, but after everything sent on it is received: the two sides no longer need
/// each other.
pub unsafe fn comm_disconnect(comm: *mut MPI_Comm) -> Answer {
    let old = comm::get(*comm)?;
    old.buffer.flush()?;
    let context = engine::messages(old.context);
    let receivers = || engine().receivers_in(context);
    let call = || report::some(vec![], From::Any(&old.peers().members));
    let about = About::collective(&receivers, &call);
    engine().wait(about, || engine().receivers_in(context).is_empty())?;
    super::communicators::comm_free(comm)
}
