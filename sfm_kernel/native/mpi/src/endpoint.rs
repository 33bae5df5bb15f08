//! This process's endpoint in its world, with the other processes by their numbers, as the engine
//! needs it.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{json, Value};
use sfm_endpoint::directory::cleaning::is_inhabited;
use sfm_endpoint::directory::is_alive;
use sfm_endpoint::guest::Guest;
use sfm_endpoint::{
    Endpoint as SfmEndpoint, JoinRequest, Member, Name, ProgramCall, Reduction, Result,
    Surroundings,
};
use sfm_native::calls::Channel;
use sfm_native::core::Core;
use sfm_native::sync::lock;

use crate::engine::text_of_loss;
use crate::errors::{fail, of_world, Answer};
use crate::handles::*;
use crate::membership::{Found, Membership};
use crate::process::{self, Identity};
use crate::{host, launcher};

pub struct Endpoint {
    inner: SfmEndpoint,
    identity: &'static Identity,
    /// The processes that this one has communicated with, by number.
    members: Mutex<HashMap<usize, Member>>,
    /// Other launches that it has met, by number.
    guests: Mutex<HashMap<usize, Arc<Guest>>>,
    met: Arc<AtomicBool>,
}

/// The program's surroundings, with a note about other launches.
struct Around {
    program: Box<dyn Surroundings>,
    /// True once it has met another launch.
    met: Arc<AtomicBool>,
}

impl Surroundings for Around {
    fn signals(&self) -> Result<()> {
        self.program.signals()
    }

    fn has_addresses(&self) -> bool {
        self.program.has_addresses()
    }

    fn call(&self) -> Option<ProgramCall> {
        self.program.call()
    }

    fn reduction(&self) -> Option<Reduction> {
        self.program.reduction()
    }

    fn expect_failure(&self, why: &dyn Fn() -> String) {
        self.program.expect_failure(why);
    }

    fn enter(&self) {
        self.program.enter();
    }

    fn site(&self) -> u32 {
        self.program.site()
    }

    fn examine(&self, core: &Arc<Core>) {
        self.program.examine(core);
    }

    /// An observer of one world cannot predict the processes of another: add that world as a
    /// bystander.
    fn bystanders(&self) -> String {
        let bystanders = self.program.bystanders();
        if !self.met.load(Ordering::Acquire) {
            return bystanders;
        }
        let mut bystanders: Vec<Value> = serde_json::from_str(&bystanders).unwrap_or_default();
        bystanders.push(json!(["world", "another launch", "", 0, null]));
        Value::from(bystanders).to_string()
    }
}

impl Endpoint {
    /// Join the world that the environment names; without a launcher, a world of one process.
    /// `times`: how often this process, like all others, has joined and left before.
    pub fn join(times: u32) -> Answer<Endpoint> {
        let identity = process::read()?;
        let world = match times {
            0 => identity.world.clone(),
            times => format!("{}.{times}", identity.world),
        };
        let nth = process::nth(identity.number() as usize).expect("of its own launch");
        let request = JoinRequest { rank: Some(nth), ..JoinRequest::default() };
        let size = Some(identity.launched() as u64);
        let met = Arc::new(AtomicBool::new(false));
        let around = Arc::new(Around { program: host::surroundings(), met: met.clone() });
        let inner = SfmEndpoint::join(&world, &request, size, around).map_err(of_world)?;
        let (members, guests) = Default::default();
        Ok(Endpoint { inner, identity, members, guests, met })
    }

    /// A process's entry in the directory; None if it has not joined, or has left.
    fn member(&self, process: usize) -> Option<Member> {
        if let Some(known) = lock(&self.members).get(&process) {
            return Some(known.clone());
        }
        let (launch, nth) = process::launch_and_index(process);
        let found = match process::nth(process) {
            Some(_) => self.inner.lookup(&process::shown(process)).ok()??,
            None => self.guest(launch)?.lookup(nth as i64)?,
        };
        lock(&self.members).insert(process, found.clone());
        Some(found)
    }

    /// Another launch; from now on this process is a guest in its world.
    fn guest(&self, launch: usize) -> Option<Arc<Guest>> {
        let mut all = lock(&self.guests);
        if let Some(known) = all.get(&launch) {
            return Some(known.clone());
        }
        let worlds = fs::read_dir(self.inner.folder().parent()?).ok()?.flatten();
        let is_it = |name: &str| process::is_world_of(name, launch);
        let mut worlds = worlds.filter(|world| world.file_name().to_str().is_some_and(is_it));
        let world = worlds.find(|world| is_inhabited(&world.path()))?.file_name();
        let made = Arc::new(Guest::visit(&self.inner, world.to_str()?).ok()?);
        all.insert(launch, made.clone());
        self.met.store(true, Ordering::Release);
        Some(made)
    }
}

impl Membership for Endpoint {
    fn core(&self) -> &Arc<Core> {
        self.inner.core()
    }

    fn surroundings(&self) -> &dyn Surroundings {
        self.inner.surroundings()
    }

    fn folder(&self) -> &Path {
        self.inner.folder()
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
            let launch = process::launch_and_index(process).0;
            let (guest, member) = (self.guest(launch), self.member(process));
            let made = guest.zip(member).map(|(guest, member)| guest.sender(&self.inner, &member));
            return made
                .and_then(Result::ok)
                .map_or(Found::Lost, |ring| Found::Channel(Channel::Ring(ring)));
        }
        let route = self.inner.route(&process::shown(process));
        route.map_or(Found::Lost, |route| Found::Channel(route.channel().clone()))
    }

    /// Another launch has a folder of its own.
    fn is_near(&self, process: usize) -> bool {
        process::nth(process).is_some()
    }

    fn has_lost(&self, process: usize) -> bool {
        match self.member(process) {
            Some(member) if process::nth(process).is_none() => {
                !is_alive(Path::new(&member.segment))
            }
            Some(member) => !self.inner.alive(&member),
            None if process::nth(process).is_none() => true,
            None => self.inner.departed(&process::shown(process)).is_some(),
        }
    }

    fn has_left(&self, process: usize) -> bool {
        self.member(process).is_none_or(|member| !Path::new(&member.segment).exists())
    }

    fn gather(&self) -> Answer {
        // Before waiting for the others: so the launcher can report that they wait for one that
        // never comes.
        launcher::report(launcher::STARTED, 0, "");
        let all: Vec<_> =
            self.identity.everybody().into_iter().map(|process| process as usize).collect();
        let names: Vec<Name> = all.iter().map(|process| process::shown(*process)).collect();
        self.inner.wait_for_start(&names).map_err(of_world)?;
        match all.into_iter().find(|process| self.has_lost(*process)) {
            Some(ended) => Err(fail(MPI_ERR_PROC_ABORTED, text_of_loss(ended))),
            None => Ok(()),
        }
    }

    fn is_program(&self) -> bool {
        true
    }

    /// Leave the world, and those in which this process is a guest.
    fn leave(&self) {
        self.inner.leave();
        let mut all = lock(&self.guests);
        for (_, guest) in all.drain() {
            if let Some(guest) = Arc::into_inner(guest) {
                guest.leave();
            }
        }
    }
}
