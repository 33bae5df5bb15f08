//! Making a window: all its processes say what is theirs, and agree on a file of shared memory.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use sfm_native::shm::ShmError;

use super::control::{places, Control, MOST};
use super::hints::Hints;
use super::served::{service, Outgoing};
use super::way::Way;
use super::{Member, Memory, Own, Window};
use crate::collective::items::Items;
use crate::collective::team::{whole, Team};
use crate::collective::{bcast, words};
use crate::comm::Comm;
use crate::engine::{engine, Proof, What};
use crate::errhandlers::Attached as Handler;
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::making;

/// What a process wants.
pub struct Wish {
    pub flavor: c_int,
    /// Of the program's memory; 0 where the library gets it.
    pub base: usize,
    pub size: usize,
    pub disp_unit: MPI_Aint,
    pub hints: Hints,
}

/// What each process says first.
#[repr(C)]
#[derive(Clone, Copy)]
struct Said {
    flavor: u64,
    base: u64,
    size: u64,
    disp_unit: i64,
    proof: Proof,
}

/// What the first one says of the file.
#[repr(C)]
#[derive(Clone, Copy)]
struct Made {
    /// MPI_SUCCESS, or why there is none.
    code: u64,
    /// Whether it has the memory, too: there may be too little to share.
    has_memory: u64,
    needed: u64,
    free: u64,
    path: [u8; 1024],
}

/// What each says at last.
#[repr(C)]
#[derive(Clone, Copy)]
struct Ready {
    code: u64,
    base: u64,
    /// Whether it reaches the memory of all others.
    reaches_all: u64,
}

fn is_ours(flavor: c_int) -> bool {
    [MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_SHARED].contains(&flavor)
}

/// Make a window; all processes of `comm` do.
pub fn make(comm: &Comm, wish: Wish) -> Answer<Arc<Window>> {
    let size = comm.group.members.len();
    if size > MOST {
        let text = format!("{size} processes share the window, and {MOST} can at most");
        return Err(fail(MPI_ERR_COMM, text));
    }
    let team = Team::of(comm, What::Window);
    whole(&team, made(comm, &team, wish))
}

/// Serve messages; returns when all do.
pub fn start(window: &Arc<Window>) -> Answer {
    service::start(window);
    let team = Team::of(&window.comm, What::Window);
    whole(&team, words::first_knows_first(&team, ())).map(|_| ())
}

async fn made(comm: &Comm, team: &Team, wish: Wish) -> Answer<Arc<Window>> {
    let number = making::agree(team).await?;
    let said = words::one_of_each(team, said(&wish)).await?;
    same_kind(&said, wish.flavor)?;
    let sizes: Vec<usize> = said.iter().map(|one| one.size as usize).collect();
    let (control, file_places) = share(team, number, &wish, &sizes).await?;
    let own = team.rank;
    let mut memory = None;
    let mapped = |rank: usize| file_places.as_ref().map(|all| control.at(all[rank]) as usize);
    let base = match mapped(own) {
        Some(base) => base,
        None if is_ours(wish.flavor) => {
            memory = allocated(wish.size);
            memory.as_ref().map_or(0, |memory| memory.0 as usize)
        }
        None => wish.base,
    };
    let ways: Vec<Way> = (0..team.size)
        .map(|rank| match mapped(rank) {
            Some(at) => Way::Here(at),
            None if rank == own => {
                Way::Here(if wish.flavor == MPI_WIN_FLAVOR_DYNAMIC { 0 } else { base })
            }
            None => reached(comm.group.members[rank] as usize, &said[rank].proof),
        })
        .collect();
    let lacks_memory = base == 0 && wish.size > 0 && is_ours(wish.flavor);
    let ready = Ready {
        code: if lacks_memory { MPI_ERR_NO_MEM as u64 } else { 0 },
        base: base as u64,
        reaches_all: u64::from(!ways.contains(&Way::Served)),
    };
    let ready = words::first_knows_first(team, ready).await?;
    if ready.iter().any(|one| one.code != 0) {
        return Err(fail(MPI_ERR_NO_MEM, "a process of the window has not so much memory"));
    }
    let member = |(said, ready): (&Said, &Ready)| Member {
        size: said.size as usize,
        disp_unit: said.disp_unit as MPI_Aint,
        base: ready.base as usize,
    };
    let own = Own {
        base: if wish.flavor == MPI_WIN_FLAVOR_DYNAMIC { 0 } else { base },
        size: wish.size as MPI_Aint,
        disp_unit: wish.disp_unit as c_int,
        flavor: wish.flavor,
        model: MPI_WIN_UNIFIED,
    };
    let window = Window {
        comm: Comm::new(number, comm.group.clone(), comm.rank),
        members: said.iter().zip(&ready).map(member).collect(),
        own,
        control,
        is_served: ready.iter().any(|one| one.reaches_all == 0),
        ways,
        _memory: memory,
        attached: Mutex::default(),
        epochs: Mutex::default(),
        completed: Mutex::default(),
        outgoing: Outgoing::of(team.size),
        errhandler: Handler::new(),
        attributes: Default::default(),
        hints: Mutex::new(wish.hints),
        name: Mutex::default(),
        number: super::next(),
    };
    Ok(Arc::new(window))
}

fn said(wish: &Wish) -> Said {
    Said {
        flavor: wish.flavor as u64,
        base: wish.base as u64,
        size: wish.size as u64,
        disp_unit: wish.disp_unit as i64,
        proof: Proof::own(engine()),
    }
}

/// All make the same kind of window.
fn same_kind(said: &[Said], own: c_int) -> Answer {
    let Some(rank) = said.iter().position(|one| one.flavor != own as u64) else { return Ok(()) };
    let name = |flavor: c_int| match flavor {
        MPI_WIN_FLAVOR_CREATE => "MPI_Win_create",
        MPI_WIN_FLAVOR_ALLOCATE => "MPI_Win_allocate",
        MPI_WIN_FLAVOR_DYNAMIC => "MPI_Win_create_dynamic",
        _ => "MPI_Win_allocate_shared",
    };
    let text = format!(
        "rank {rank} of the communicator calls {} where this process calls {}: all make the same \
         collective calls in the same order",
        name(said[rank].flavor as c_int),
        name(own)
    );
    Err(fail(MPI_ERR_OTHER, text))
}

/// How the memory of another process is reached. With `SFM_MPI_WINDOWS=served` by messages only, as
/// where the kernel refuses.
fn reached(process: usize, proof: &Proof) -> Way {
    let is_refused = std::env::var_os("SFM_MPI_WINDOWS").is_some_and(|value| value == "served");
    match !is_refused && engine().can_reach(process, proof) {
        true => Way::Kernel(proof.pid),
        false => Way::Served,
    }
}

fn allocated(size: usize) -> Option<Memory> {
    let mut memory = std::ptr::null_mut();
    // SAFETY: a place for the address.
    let code = unsafe { libc::posix_memalign(&mut memory, 4096, size.max(1)) };
    (code == 0).then_some(Memory(memory))
}

/// The file, mapped by all; and where in it is the memory of each, if it is there.
async fn share(
    team: &Team,
    number: u64,
    wish: &Wish,
    sizes: &[usize],
) -> Answer<(Control, Option<Vec<usize>>)> {
    let contiguous =
        wish.flavor == MPI_WIN_FLAVOR_SHARED && !wish.hints.is_set("alloc_shared_noncontig");
    let Some((inside, whole)) = places(sizes, contiguous) else {
        return Err(fail(
            MPI_ERR_SIZE,
            "the sizes of all processes come to more than any memory has",
        ));
    };
    let (_, least) = places(&vec![0; team.size], true).expect("nothing");
    let mut word = [Made { code: 0, has_memory: 0, needed: 0, free: 0, path: [0; 1024] }];
    let mut control = None;
    if team.rank == 0 {
        (word[0], control) = create(number, wish.flavor, team.size, least, whole);
    }
    bcast::bcast(team, &Items::own(&mut word)?, 0).await?;
    let [word] = word;
    if word.code != 0 {
        return Err(no_room(&word));
    }
    let end = word.path.iter().position(|byte| *byte == 0).unwrap_or(word.path.len());
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(&word.path[..end]));
    let bytes = if word.has_memory != 0 { whole } else { least };
    let mut why = None;
    if control.is_none() {
        match Control::open(&path, team.size, bytes) {
            Ok(opened) => control = Some(opened),
            Err(failure) => why = Some(failure),
        }
    }
    let all = words::one_of_each(team, u64::from(control.is_some())).await;
    if team.rank == 0 {
        let _ = std::fs::remove_file(&path); // all have it, or will not
    }
    match (control, all?.iter().position(|one| *one == 0)) {
        (Some(control), None) => Ok((control, (word.has_memory != 0).then_some(inside))),
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

/// Make the file; with its memory, if that is ours to choose and there is room.
fn create(
    number: u64,
    flavor: c_int,
    processes: usize,
    least: usize,
    whole: usize,
) -> (Made, Option<Control>) {
    let mut made = Made { code: 0, has_memory: 0, needed: 0, free: 0, path: [0; 1024] };
    let uid = engine().core.shared().uid();
    let path = engine().endpoint.folder().join(format!("{uid:032x}-{number:032x}.win"));
    let text = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
    if text.as_bytes().is_empty() || text.as_bytes().len() >= made.path.len() {
        made.code = MPI_ERR_OTHER as u64;
        return (made, None);
    }
    made.path[..text.as_bytes().len()].copy_from_slice(text.as_bytes());
    let mut bytes = if is_ours(flavor) { whole } else { least };
    loop {
        made.has_memory = u64::from(is_ours(flavor) && bytes == whole);
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

fn no_room(word: &Made) -> Failure {
    let (needed, free) = (word.needed, word.free);
    let text = match needed {
        0 => "the window's file cannot be made in the world's folder (SFM_DIR)".into(),
        _ => format!(
            "the window takes {needed} bytes of shared memory, of which {free} are free; ask for \
             less, or let the machine (of a container: --shm-size) have more"
        ),
    };
    fail(word.code as c_int, text)
}
