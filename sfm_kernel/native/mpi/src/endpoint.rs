//! This process's end of the world, as the engine needs it: the others by their numbers.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{json, Value};
use sfm_endpoint::directory::is_alive;
use sfm_endpoint::guest::{self, Guest};
use sfm_endpoint::{Endpoint as Whole, JoinRequest, Kind, Member, Name, Result, Surroundings};
use sfm_native::calls::Channel;
use sfm_native::core::Core;

use crate::errors::{self, fail, Answer, Failure};
use crate::handles::*;
use crate::home::{Found, Home};
use crate::process::{self, Own};
use crate::{host, launcher};

pub struct Endpoint {
    whole: Whole,
    own: &'static Own,
    /// Those that this process has had to do with, by number.
    members: Mutex<HashMap<usize, Member>>,
    /// Other launches that it has met, by number.
    guest: Mutex<HashMap<usize, Arc<Guest>>>,
    met: Arc<AtomicBool>,
}

/// The program around calls that wait.
struct Around {
    program: Box<dyn Surroundings>,
    /// It has to do with another launch.
    met: Arc<AtomicBool>,
}

impl Surroundings for Around {
    fn signals(&self) -> Result<()> {
        self.program.signals()
    }

    fn has_addresses(&self) -> bool {
        self.program.has_addresses()
    }

    fn call(&self) -> Option<String> {
        self.program.call()
    }

    fn enter(&self) {
        self.program.enter();
    }

    fn site(&self) -> u32 {
        self.program.site()
    }

    /// Nobody who sees one world alone can say what those of another one will do.
    fn bystanders(&self) -> String {
        let own = self.program.bystanders();
        if !self.met.load(Ordering::Acquire) {
            return own;
        }
        let mut told: Vec<Value> = serde_json::from_str(&own).unwrap_or_default();
        told.push(json!(["world", "another launch", "", 0, null]));
        Value::from(told).to_string()
    }
}

/// What went wrong with the world, as an error of MPI.
pub fn failure(error: sfm_endpoint::Error) -> Failure {
    let code = match error.kind {
        Kind::PeerLost | Kind::WorldGone | Kind::MessagesLost => MPI_ERR_PROC_ABORTED,
        Kind::SegmentFull | Kind::MessageTooLarge => MPI_ERR_NO_MEM,
        Kind::Interrupted => errors::INTERRUPTED,
        _ => MPI_ERR_OTHER,
    };
    fail(code, error.text)
}

impl Endpoint {
    /// Join the world that the environment names; without a launcher, be a world of one. `times`:
    /// how often this process has joined and left before, as all others have.
    pub fn join(times: u32) -> Answer<Endpoint> {
        let own = process::read()?;
        let world = match times {
            0 => own.world.clone(),
            times => format!("{}.{times}", own.world),
        };
        let nth = process::nth(own.number() as usize).expect("of its own launch");
        let request = JoinRequest { rank: Some(nth), ..JoinRequest::default() };
        let size = Some(own.launched() as u64);
        let met = Arc::new(AtomicBool::new(false));
        let around = Box::new(Around { program: host::surroundings(), met: met.clone() });
        let whole = Whole::join(&world, &request, size, around).map_err(failure)?;
        let (members, guest) = Default::default();
        Ok(Endpoint { whole, own, members, guest, met })
    }

    fn members(&self) -> MutexGuard<'_, HashMap<usize, Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A process as the directory knows it; None where it has not joined, or has left.
    fn member(&self, process: usize) -> Option<Member> {
        if let Some(known) = self.members().get(&process) {
            return Some(known.clone());
        }
        let (launch, nth) = process::parts(process);
        let found = match process::nth(process) {
            Some(_) => self.whole.lookup(&process::shown(process)).ok()??,
            None => self.guest(launch)?.lookup(nth as i64)?,
        };
        self.members().insert(process, found.clone());
        Some(found)
    }

    /// Another launch, in whose world this process is a guest from now on.
    fn guest(&self, launch: usize) -> Option<Arc<Guest>> {
        let mut all = self.guest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(&launch) {
            return Some(known.clone());
        }
        let worlds = fs::read_dir(self.whole.folder().parent()?).ok()?.flatten();
        let is_it = |name: &str| process::is_world_of(name, launch);
        let mut worlds = worlds.filter(|one| one.file_name().to_str().is_some_and(is_it));
        let world = worlds.find(|one| guest::is_inhabited(&one.path()))?.file_name();
        let made = Arc::new(Guest::visit(&self.whole, world.to_str()?).ok()?);
        all.insert(launch, made.clone());
        self.met.store(true, Ordering::Release);
        Some(made)
    }
}

impl Home for Endpoint {
    fn core(&self) -> &Arc<Core> {
        self.whole.core()
    }

    fn surroundings(&self) -> &dyn Surroundings {
        self.whole.surroundings()
    }

    fn folder(&self) -> &Path {
        self.whole.folder()
    }

    fn uid(&self, process: usize) -> u128 {
        let member = self.member(process);
        member.and_then(|member| u128::from_str_radix(&member.uid, 16).ok()).unwrap_or(0)
    }

    fn channel(&self, process: usize) -> Found {
        if self.member(process).is_none() && !self.has_lost(process) {
            return Found::NotYet;
        }
        if process::nth(process).is_none() {
            let launch = process::parts(process).0;
            let (guest, member) = (self.guest(launch), self.member(process));
            let made = guest.zip(member).map(|(guest, one)| guest.sender(&self.whole, &one));
            return made
                .and_then(Result::ok)
                .map_or(Found::Lost, |one| Found::Channel(Channel::Ring(one)));
        }
        let route = self.whole.route(&process::shown(process));
        route.map_or(Found::Lost, |route| Found::Channel(route.channel().clone()))
    }

    /// Those of another launch are in a folder of their own.
    fn is_near(&self, process: usize) -> bool {
        process::nth(process).is_some()
    }

    fn has_lost(&self, process: usize) -> bool {
        match self.member(process) {
            Some(member) if process::nth(process).is_none() => {
                !is_alive(Path::new(&member.segment))
            }
            Some(member) => !self.whole.alive(&member),
            None if process::nth(process).is_none() => true,
            None => self.whole.who_left(&process::shown(process)).is_some(),
        }
    }

    fn gather(&self) -> Answer {
        // Before the others are waited for: the launcher tells who waits for one that never comes.
        launcher::tell(launcher::STARTED, 0, "");
        let all: Vec<_> = self.own.everybody().into_iter().map(|one| one as usize).collect();
        let names: Vec<Name> = all.iter().map(|process| process::shown(*process)).collect();
        self.whole.wait_for(&names, None).map_err(failure)?;
        for (process, name) in all.into_iter().zip(names) {
            if self.member(process).is_none() {
                let text = format!("process {name} has ended before MPI_Init");
                return Err(fail(MPI_ERR_PROC_ABORTED, text));
            }
        }
        Ok(())
    }

    fn is_program(&self) -> bool {
        true
    }

    /// Leave the world, and those in which this process is a guest.
    fn leave(&self) {
        self.whole.leave();
        let mut all = self.guest.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, one) in all.drain() {
            if let Some(one) = Arc::into_inner(one) {
                one.leave();
            }
        }
    }
}
