//! Starting processes: the launcher does it (sfm_kernel/mpi/launch/spawning.py), asked by the root.
//!
//! What it has started is told its parents: the number of the communicator between both, and who they
//! are. So both sides make the communicator by themselves.

use std::sync::atomic::Ordering;

use serde_json::{json, Value};

use crate::collective::bcast;
use crate::collective::team::{whole, Team};
use crate::comm::{self, Comm};
use crate::engine::What;
use crate::errors::{fail, Answer, Failure};
use crate::group::Group;
use crate::handles::*;
use crate::info::Info;
use crate::{launcher, making, process, world};

/// One of the programs that are to be started.
pub struct Program {
    pub command: String,
    pub arguments: Vec<String>,
    pub most: usize,
    pub info: Info,
}

/// What has become of it.
pub struct Spawned {
    pub comm: Answer<Comm>,
    /// Of each program, how many processes were asked for and how many were started.
    pub sizes: Vec<(usize, usize)>,
}

/// What the root says, known to all.
pub fn share(comm: &Comm, root: usize, said: &Value) -> Answer<Value> {
    let team = Team::of(comm, What::Making);
    let said = whole(&team, bcast::text(&team, said.to_string(), root))?;
    Ok(serde_json::from_str(&said).unwrap_or_default())
}

/// A failure of the root, which is everybody's: what `check` finds.
pub fn failed(failure: &Failure) -> Value {
    json!({"error": failure.text, "code": failure.code})
}

pub fn check(said: &Value, usual: c_int) -> Answer {
    let Some(text) = said["error"].as_str() else { return Ok(()) };
    let code = said["code"].as_i64().map_or(usual, |code| code as c_int);
    Err(fail(code, text))
}

/// Start them, as all processes of `comm` ask for it; only the root gives `programs`.
pub fn spawn(comm: &Comm, root: usize, programs: Answer<Option<Vec<Program>>>) -> Answer<Spawned> {
    let said = match programs {
        Ok(None) => Value::Null,
        Ok(Some(programs)) => ask(comm, &programs),
        Err(failure) => failed(&failure),
    };
    let said = share(comm, root, &said)?;
    let numbers = |name: &str| -> Vec<usize> {
        let all = said[name].as_array().into_iter().flatten();
        all.filter_map(Value::as_u64).map(|one| one as usize).collect()
    };
    let started = numbers("sizes").into_iter().chain(std::iter::repeat(0));
    let sizes = numbers("asked").into_iter().zip(started).collect();
    if let Err(failure) = check(&said, MPI_ERR_SPAWN) {
        return Ok(Spawned { comm: Err(failure), sizes });
    }
    let first = said["first"].as_u64().unwrap_or(0) as usize;
    let members = (first..first + numbers("sizes").iter().sum::<usize>())
        .map(|nth| process::own().of_launch(nth));
    let number = said["number"].as_u64().unwrap_or(0);
    let mut made = making::child(comm, number, comm.group.clone(), comm.rank as usize);
    made.remote = Some(Group::new(members.collect()));
    Ok(Spawned { comm: Ok(made), sizes })
}

/// Have the launcher start them; what it says, and what we say of them to the others.
fn ask(comm: &Comm, programs: &[Program]) -> Value {
    let number = making::next();
    let parents = [number].into_iter().chain(comm.group.members.iter().map(|one| *one as u64));
    let parents: Vec<String> = parents.map(|one| one.to_string()).collect();
    let one = |program: &Program| {
        let info: serde_json::Map<String, Value> =
            program.info.entries.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        json!({
            "command": program.command, "argv": program.arguments, "maxprocs": program.most,
            "info": info,
        })
    };
    let programs_ = programs.iter().map(one).collect::<Vec<_>>();
    let asked = json!({"parent": parents.join(" "), "programs": programs_}).to_string();
    let mut said = match launcher::ask(launcher::SPAWN, &asked) {
        Ok(Some(answer)) => serde_json::from_str(&answer).unwrap_or_default(),
        Ok(None) => json!({"error": "the launcher, which starts processes, has ended"}),
        Err(error) => json!({"error": format!("the launcher cannot be asked: {error}")}),
    };
    said["number"] = number.into();
    said["asked"] = programs.iter().map(|one| one.most).collect::<Vec<_>>().into();
    said
}

static PARENT: AtomicHandle = AtomicHandle::new(MPI_COMM_NULL);

/// The communicator to those who have spawned this world; MPI_COMM_NULL if it is freed, or nobody
/// has.
pub fn parent() -> MPI_Comm {
    let parent = PARENT.load(Ordering::Acquire);
    comm::get(parent).map_or(MPI_COMM_NULL, |_| parent)
}

/// Make it, where somebody has.
pub fn meet_parent() {
    let Ok(told) = std::env::var("SFM_MPI_PARENT") else { return };
    let mut numbers = told.split(' ').filter_map(|one| one.parse::<u64>().ok());
    let Some(number) = numbers.next() else { return };
    let mut made = Comm::new(number, world::everybody(), world::rank());
    made.remote = Some(Group::new(numbers.map(|one| one as c_int).collect()));
    made.set_name("MPI_COMM_PARENT".into());
    PARENT.store(comm::open(made), Ordering::Release);
}
