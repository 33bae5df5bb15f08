//! Spawning processes: the root asks the launcher to start them
//! (sfm_kernel/mpi/launch/spawning.py).
//!
//! The started processes get the context number of the communicator between both sides, and the
//! parents' numbers. So each side makes the communicator by itself.

use std::sync::atomic::Ordering;

use serde_json::{json, Value};

use crate::collective::bcast;
use crate::collective::presence::complete;
use crate::collective::team::Team;
use crate::comm::{self, Comm};
use crate::engine::Collective;
use crate::errors::{fail, Answer, Failure};
use crate::group::Group;
use crate::handles::*;
use crate::info::Info;
use crate::{launcher, making, process};

/// One of the programs to start.
pub struct Program {
    pub command: String,
    pub arguments: Vec<String>,
    pub most: usize,
    pub info: Info,
}

/// The result of spawning.
pub struct Spawned {
    pub comm: Answer<Comm>,
    /// For each program, the numbers of processes requested and started.
    pub sizes: Vec<(usize, usize)>,
}

/// Broadcast the root's value.
pub fn share(comm: &Comm, root: usize, answer: &Value) -> Answer<Value> {
    let team = Team::of(comm, Collective::Making);
    let answer = complete(&team, bcast::text(&team, answer.to_string(), root))?;
    Ok(serde_json::from_str(&answer).unwrap_or_default())
}

/// A failure of the root as a value, which `check` turns into a failure of all.
pub fn failed(failure: &Failure) -> Value {
    json!({"error": failure.text, "code": failure.code})
}

pub fn check(answer: &Value, usual: c_int) -> Answer {
    let Some(text) = answer["error"].as_str() else { return Ok(()) };
    let code = answer["code"].as_i64().map_or(usual, |code| code as c_int);
    Err(fail(code, text))
}

/// Start programs together with all processes of `comm`; only the root has `programs`.
pub fn spawn(comm: &Comm, root: usize, programs: Answer<Option<Vec<Program>>>) -> Answer<Spawned> {
    let answer = match programs {
        Ok(None) => Value::Null,
        Ok(Some(programs)) => ask(comm, &programs),
        Err(failure) => failed(&failure),
    };
    let answer = share(comm, root, &answer)?;
    let numbers = |name: &str| -> Vec<usize> {
        let all = answer[name].as_array().into_iter().flatten();
        all.filter_map(Value::as_u64).map(|number| number as usize).collect()
    };
    process::note_worlds(numbers("worlds").into_iter());
    let started = numbers("sizes").into_iter().chain(std::iter::repeat(0));
    let sizes = numbers("asked").into_iter().zip(started).collect();
    if let Err(failure) = check(&answer, MPI_ERR_SPAWN) {
        return Ok(Spawned { comm: Err(failure), sizes });
    }
    let first = answer["first"].as_u64().unwrap_or(0) as usize;
    let members = (first..first + numbers("sizes").iter().sum::<usize>())
        .map(|nth| process::this().of_launch(nth));
    let number = answer["number"].as_u64().unwrap_or(0);
    let made = making::child(comm, number, comm.group.clone(), comm.rank as usize);
    Ok(Spawned { comm: Ok(made.with_remote(Group::new(members.collect()))), sizes })
}

/// Ask the launcher to start them; returns its answer, with the facts for the other processes.
fn ask(comm: &Comm, programs: &[Program]) -> Value {
    let number = making::next();
    let parents =
        [number].into_iter().chain(comm.group.members.iter().map(|number| *number as u64));
    let parents: Vec<String> = parents.map(|number| number.to_string()).collect();
    let described = |program: &Program| {
        let info: serde_json::Map<String, Value> =
            program.info.entries.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        json!({
            "command": program.command, "argv": program.arguments, "maxprocs": program.most,
            "info": info,
        })
    };
    let described: Vec<_> = programs.iter().map(described).collect();
    let asked = json!({"parent": parents.join(" "), "programs": described}).to_string();
    let mut answer = match launcher::ask(launcher::SPAWN, &asked) {
        Ok(Some(answer)) => serde_json::from_str(&answer).unwrap_or_default(),
        Ok(None) => json!({"error": "the launcher, which starts processes, has ended"}),
        Err(error) => json!({"error": format!("the launcher cannot be asked: {error}")}),
    };
    answer["number"] = number.into();
    answer["asked"] = programs.iter().map(|program| program.most).collect::<Vec<_>>().into();
    answer
}

static PARENT: AtomicHandle = AtomicHandle::new(MPI_COMM_NULL);

/// The communicator with the processes that have spawned this world; MPI_COMM_NULL if it is freed,
/// or if there are none.
pub fn parent() -> MPI_Comm {
    let parent = PARENT.load(Ordering::Acquire);
    comm::get(parent).map_or(MPI_COMM_NULL, |_| parent)
}

/// Make that communicator, if this world was spawned.
pub fn meet_parent() {
    let Ok(parent_numbers) = std::env::var("SFM_MPI_PARENT") else { return };
    let mut numbers = parent_numbers.split(' ').filter_map(|number| number.parse::<u64>().ok());
    let Some(number) = numbers.next() else { return };
    let remote = Group::new(numbers.map(|number| number as c_int).collect());
    let made =
        Comm::new(number, Group::of_world(), process::this().rank as c_int).with_remote(remote);
    made.set_name("MPI_COMM_PARENT".into());
    PARENT.store(comm::open(made), Ordering::Release);
}
