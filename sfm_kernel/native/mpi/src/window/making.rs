//! Making a window: its processes exchange their arguments, and agree on a file of shared memory.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use sfm_native::shm::ShmError;

use super::control::{file_offsets, Control, MOST};
use super::route::Route;
use super::served::{service, Outgoing};
use super::{LocalMemory, Member, Memory, Window};
use crate::collective::presence::complete;
use crate::collective::team::Team;
use crate::collective::words;
use crate::comm::Comm;
use crate::engine::{engine, Collective, Proof};
use crate::errhandlers::Attached as Handler;
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::info::Hints;
use crate::making;

pub struct Arguments {
    pub flavor: c_int,
    /// The program's memory; 0 if the library allocates it.
    pub base: usize,
    pub size: usize,
    pub disp_unit: MPI_Aint,
    pub hints: Hints,
}

/// The first message of each process.
#[repr(C)]
#[derive(Clone, Copy)]
struct Declaration {
    flavor: u64,
    base: u64,
    size: u64,
    disp_unit: i64,
    proof: Proof,
}

/// The first process's message about the file.
#[repr(C)]
#[derive(Clone, Copy)]
struct Made {
    /// MPI_SUCCESS, or the error.
    code: u64,
    /// 1 if the file has the window's memory, too; 0 if there is too little shared memory.
    has_memory: u64,
    needed: u64,
    free: u64,
    path: [u8; 1024],
}

impl Made {
    fn nothing() -> Made {
        Made { code: 0, has_memory: 0, needed: 0, free: 0, path: [0; 1024] }
    }
}

/// The last message of each process.
#[repr(C)]
#[derive(Clone, Copy)]
struct Ready {
    code: u64,
    base: u64,
    /// 1 if it reaches the memory of all others without messages.
    reaches_all: u64,
}

fn is_ours(flavor: c_int) -> bool {
    [MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED].contains(&flavor)
}

/// Make a window together with all processes of `comm`.
pub fn make(comm: &Comm, arguments: Arguments) -> Answer<Arc<Window>> {
    let size = comm.group.members.len();
    if size > MOST {
        let text = format!("the window has {size} processes, more than the limit of {MOST}");
        return Err(fail(MPI_ERR_COMM, text));
    }
    let team = Team::of(comm, Collective::Window);
    complete(&team, made(comm, &team, arguments))
}

/// Serve messages; returns when all processes do.
pub fn start(window: &Arc<Window>) -> Answer {
    service::start(window);
    let team = Team::of(&window.comm, Collective::Window);
    complete(&team, words::first_knows_first(&team, ())).map(|_| ())
}

async fn made(comm: &Comm, team: &Team<'_>, arguments: Arguments) -> Answer<Arc<Window>> {
    let number = making::agree(team).await?;
    let declared = words::one_of_each(team, declared(&arguments)).await?;
    same_flavor(&declared, arguments.flavor)?;
    let sizes: Vec<usize> = declared.iter().map(|member| member.size as usize).collect();
    let (control, offsets) = share(team, number, &arguments, &sizes).await?;
    let rank_here = team.rank;
    let mut memory = None;
    let mapped = |rank: usize| offsets.as_ref().map(|all| control.at(all[rank]) as usize);
    let base = match mapped(rank_here) {
        Some(base) => base,
        None if is_ours(arguments.flavor) => {
            memory = allocated(arguments.size);
            memory.as_ref().map_or(0, |memory| memory.0 as usize)
        }
        None => arguments.base,
    };
    let routes: Vec<Route> = (0..team.size)
        .map(|rank| match mapped(rank) {
            Some(at) => Route::Here(at),
            None if rank == rank_here => {
                Route::Here(if arguments.flavor == MPI_WIN_FLAVOR_DYNAMIC { 0 } else { base })
            }
            None => reached(comm.group.members[rank] as usize, &declared[rank].proof),
        })
        .collect();
    let lacks_memory = base == 0 && arguments.size > 0 && is_ours(arguments.flavor);
    let ready = Ready {
        code: if lacks_memory { MPI_ERR_NO_MEM as u64 } else { 0 },
        base: base as u64,
        reaches_all: u64::from(!routes.contains(&Route::Served)),
    };
    let ready = words::first_knows_first(team, ready).await?;
    if ready.iter().any(|process| process.code != 0) {
        return Err(fail(MPI_ERR_NO_MEM, "a process of the window does not have enough memory"));
    }
    let member = |(declared, ready): (&Declaration, &Ready)| Member {
        size: declared.size as usize,
        disp_unit: declared.disp_unit as MPI_Aint,
        base: ready.base as usize,
    };
    let local = LocalMemory {
        base: if arguments.flavor == MPI_WIN_FLAVOR_DYNAMIC { 0 } else { base },
        size: arguments.size as MPI_Aint,
        disp_unit: arguments.disp_unit as c_int,
        flavor: arguments.flavor,
        model: MPI_WIN_UNIFIED,
    };
    let window = Window {
        comm: Comm::new(number, comm.group.clone(), comm.rank),
        members: declared.iter().zip(&ready).map(member).collect(),
        local,
        control,
        is_served: ready.iter().any(|process| process.reaches_all == 0),
        routes,
        _memory: memory,
        attached: Mutex::default(),
        epochs: Default::default(),
        completed: Mutex::default(),
        outgoing: Outgoing::of(team.size),
        errhandler: Handler::new(),
        attributes: Default::default(),
        hints: Mutex::new(arguments.hints),
        name: Mutex::default(),
        number: super::next(),
    };
    Ok(Arc::new(window))
}

fn declared(arguments: &Arguments) -> Declaration {
    Declaration {
        flavor: arguments.flavor as u64,
        base: arguments.base as u64,
        size: arguments.size as u64,
        disp_unit: arguments.disp_unit as i64,
        proof: Proof::of(engine()),
    }
}

/// Refuse a window whose processes call different functions.
fn same_flavor(declared: &[Declaration], flavor_here: c_int) -> Answer {
    let Some(rank) = declared.iter().position(|member| member.flavor != flavor_here as u64) else {
        return Ok(());
    };
    let name = |flavor: c_int| match flavor {
        MPI_WIN_FLAVOR_CREATE => "MPI_Win_create",
        MPI_WIN_FLAVOR_ALLOCATE => "MPI_Win_allocate",
        MPI_WIN_FLAVOR_DYNAMIC => "MPI_Win_create_dynamic",
        _ => "MPI_Win_allocate_shared",
    };
    let text = format!(
        "rank {rank} of the communicator calls {} where this process calls {}: all processes \
        make the same collective calls in the same order",
        name(declared[rank].flavor as c_int),
        name(flavor_here)
    );
    Err(fail(MPI_ERR_OTHER, text))
}

/// How the memory of another process is reached. `SFM_MPI_WINDOWS=served` forces messages, as if
/// the kernel refused access.
fn reached(process: usize, proof: &Proof) -> Route {
    let is_refused = std::env::var_os("SFM_MPI_WINDOWS").is_some_and(|value| value == "served");
    match !is_refused && engine().can_reach(process, proof) {
        true => Route::Kernel(*proof),
        false => Route::Served,
    }
}

fn allocated(size: usize) -> Option<Memory> {
    let mut memory = std::ptr::null_mut();
    // SAFETY: the call writes the address into a variable of this function.
    let code = unsafe { libc::posix_memalign(&mut memory, 4096, size.max(1)) };
    (code == 0).then_some(Memory(memory))
}

/// The file, mapped by all; and the offset of each process's memory in it, if it has the memory.
async fn share(
    team: &Team<'_>,
    number: u64,
    arguments: &Arguments,
    sizes: &[usize],
) -> Answer<(Control, Option<Vec<usize>>)> {
    let contiguous = arguments.flavor == MPI_WIN_FLAVOR_SHARED
        && !arguments.hints.is_set("alloc_shared_noncontig");
    let Some((offsets, total)) = file_offsets(sizes, contiguous) else {
        let text = "the sizes of all processes add up to more than any memory has";
        return Err(fail(MPI_ERR_SIZE, text));
    };
    let (_, least) = file_offsets(&vec![0; team.size], true).expect("nothing");
    let (mut file, mut control) = (Made::nothing(), None);
    if team.rank == 0 {
        (file, control) = create(number, arguments.flavor, team.size, least, total);
    }
    let file = words::from_root(team, file, 0).await?;
    if file.code != 0 {
        return Err(no_room(&file));
    }
    let end = file.path.iter().position(|byte| *byte == 0).unwrap_or(file.path.len());
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(&file.path[..end]));
    let bytes = if file.has_memory != 0 { total } else { least };
    let mut why = None;
    if control.is_none() {
        match Control::open(&path, team.size, bytes) {
            Ok(opened) => control = Some(opened),
            Err(failure) => why = Some(failure),
        }
    }
    let all = words::one_of_each(team, u64::from(control.is_some())).await;
    if team.rank == 0 {
        let _ = std::fs::remove_file(&path); // all have mapped it, or never will
    }
    match (control, all?.iter().position(|has_mapped| *has_mapped == 0)) {
        (Some(control), None) => Ok((control, (file.has_memory != 0).then_some(offsets))),
        (_, lacking) => {
            let why = why.map(|why| format!(" ({why:?})")).unwrap_or_default();
            let text = format!(
                "rank {} of the communicator cannot map the window's shared memory{why}; has it \
                 address space and descriptors left?",
                lacking.unwrap_or(team.rank)
            );
            Err(fail(MPI_ERR_NO_MEM, text))
        }
    }
}

/// Create the file, with the window's memory if this library allocates it and there is room.
fn create(
    number: u64,
    flavor: c_int,
    processes: usize,
    least: usize,
    total: usize,
) -> (Made, Option<Control>) {
    let mut made = Made::nothing();
    let uid = engine().core.shared().uid();
    let path = engine().endpoint.folder().join(format!("{uid:032x}-{number:032x}.win"));
    let text = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
    if text.as_bytes().is_empty() || text.as_bytes().len() >= made.path.len() {
        made.code = MPI_ERR_OTHER as u64;
        return (made, None);
    }
    made.path[..text.as_bytes().len()].copy_from_slice(text.as_bytes());
    let mut bytes = if is_ours(flavor) { total } else { least };
    loop {
        made.has_memory = u64::from(is_ours(flavor) && bytes == total);
        match Control::create(&path, processes, bytes) {
            Ok(control) => return (made, Some(control)),
            // Then each process gets memory that is not shared.
            Err(_) if flavor == MPI_WIN_FLAVOR_ALLOCATE && bytes > least => bytes = least,
            Err(ShmError::Full { needed, free, .. }) => {
                (made.needed, made.free) = (needed, free);
                break;
            }
            Err(_) => break,
        }
    }
    made.code = MPI_ERR_NO_MEM as u64;
    (made, None)
}

fn no_room(file: &Made) -> Failure {
    let (needed, free) = (file.needed, file.free);
    let text = match needed {
        0 => "the window's file cannot be made in the world's folder (SFM_DIR)".into(),
        _ => format!(
            "the window needs {needed} bytes of shared memory, of which {free} are free; request \
            less, or give the machine more (a container: --shm-size)"
        ),
    };
    fail(file.code as c_int, text)
}
