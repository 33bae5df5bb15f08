//! One process's end of a world.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::json;
use sfm_native::calls::{self, Deadline, Goal, Host};
use sfm_native::core::Core;
use sfm_native::segment;
use sfm_native::sync::lock;

use crate::callers;
use crate::directory::site::requested_site;
use crate::directory::{self, cleaning, Directory, JoinRequest, Local, Member};
use crate::error::{Error, Kind, Result};
use crate::host::{Around, Signals, Surroundings};
use crate::joining::{check_environment, Joined, SOON};
use crate::name::Name;
use crate::network::serve;
use crate::peers::Peers;
use crate::random;
use crate::route::Route;

/// Bytes of unreceived messages that one sender may leave in one inbox before a send waits.
pub const BUFFERING: u64 = 64 << 20;

/// One process's end of a world; may be used from any thread. Leaves the world when dropped.
pub struct Endpoint {
    core: Arc<Core>,
    member: Member,
    folder: PathBuf,
    surroundings: Arc<dyn Surroundings>,
    /// None after leaving the world.
    directory: Mutex<Option<Arc<dyn Directory>>>,
    others: Mutex<Others>,
    /// Held while a route is made.
    making: Mutex<()>,
    network: Mutex<Option<JoinHandle<()>>>,
    size: Option<u64>,
    pub buffering: AtomicU64,
    interrupted: AtomicBool,
    /// The number of senders when ranks were last refreshed.
    senders_at_refresh: AtomicU64,
    process: u32,
}

struct Others {
    peers: Peers,
    /// By uid: the same process may be known by name and by rank, and has one channel, or order
    /// would be lost.
    routes: Vec<Arc<Route>>,
    /// The uids to which a channel has failed.
    given_up: Vec<String>,
}

impl Endpoint {
    /// Become a process of `world`, with the name or rank of the request; the rest of it is found
    /// out here. On an error nothing is left behind. `size`: the number of ranked processes there
    /// will be, if that is known.
    pub fn join(
        world: &str,
        request: &JoinRequest,
        size: Option<u64>,
        surroundings: Arc<dyn Surroundings>,
    ) -> Result<Endpoint> {
        check_environment()?;
        if surroundings.has_addresses() {
            callers::install();
        }
        let signals: Signals<'_> = &|| surroundings.signals();
        let uid = random()
            .map_err(|error| Error::system("the system gives no random numbers", &error))?;
        let request = JoinRequest {
            uid: format!("{uid:032x}"),
            pid: std::process::id().into(),
            host: directory::host(),
            site: requested_site()?,
            ..request.clone()
        };
        request.check()?;
        cleaning::remove_dead()?;
        let directory: Arc<dyn Directory> = Arc::new(Local::open(world, true, signals)?);
        let folder = directory.folder().to_owned();
        let path = folder.join(format!("{uid:032x}.seg"));
        let request = JoinRequest { segment: path.to_string_lossy().into_owned(), ..request };
        let joined = Endpoint::enter(&*directory, &path, uid, &request, signals);
        let (core, member, peers) = match joined {
            Ok(joined) => joined,
            Err(failure) => {
                let _ = fs::remove_file(&path);
                directory.close();
                return Err(failure);
            }
        };
        crate::fork::watch(Arc::downgrade(&core));
        let (routes, given_up) = Default::default();
        let endpoint = Endpoint {
            network: Mutex::new(Some(serve(core.clone(), surroundings.clone(), &member))),
            core,
            folder,
            surroundings,
            directory: Mutex::new(Some(directory)),
            others: Mutex::new(Others { peers, routes, given_up }),
            making: Mutex::default(),
            member,
            size,
            buffering: AtomicU64::new(BUFFERING),
            interrupted: AtomicBool::new(false),
            senders_at_refresh: AtomicU64::new(0),
            process: std::process::id(),
        };
        endpoint.describe("process");
        Ok(endpoint)
    }

    fn enter(
        directory: &dyn Directory,
        path: &Path,
        uid: u128,
        request: &JoinRequest,
        signals: Signals<'_>,
    ) -> Result<(Arc<Core>, Member, Peers)> {
        let folder = directory.folder();
        let mapped =
            segment::create(path, uid, "").map_err(|failure| Error::shared(failure, folder))?;
        let core = Core::new(Some(mapped), Some(folder.to_owned()));
        let core = Arc::new(core.map_err(|error| Error::system("no descriptor is left", &error))?);
        if std::env::var_os("SFM_TRACE").is_some_and(|value| value == "0") {
            core.shared().trace.switch_off();
        }
        let member = directory.join(request, signals)?;
        match Peers::new(directory) {
            Ok(peers) => Ok((core, member, peers)),
            Err(failure) => {
                let _ = directory.leave(&member.uid, signals);
                Err(failure)
            }
        }
    }

    /// Publish a description of this process; `kind`: as in Python's `Endpoint.describe`.
    pub fn describe(&self, kind: &str) {
        let Member { name, rank, pid, host, site, uid, .. } = &self.member;
        let about = json!({
            "name": name, "rank": rank, "pid": pid, "host": host, "site": site, "uid": uid,
            "kind": kind, "size": self.size,
        });
        self.core.shared().info.write(&about.to_string());
    }

    // ---- members ----

    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// This process as the directory knows it.
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// The world's folder in shared memory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn surroundings(&self) -> &dyn Surroundings {
        &*self.surroundings
    }

    /// The number of ranked processes of the world: as given at joining, otherwise those that live
    /// now.
    pub fn size(&self) -> Result<u64> {
        if let Some(size) = self.size {
            return Ok(size);
        }
        let ranked = self.members()?.into_iter().filter(|member| member.rank.is_some());
        Ok(ranked.filter(|member| self.alive(member)).count() as u64)
    }

    /// All members of the world, including the dead that nobody has replaced.
    pub fn members(&self) -> Result<Vec<Member>> {
        self.with_directory(|others, directory| Ok(others.peers.refresh(directory)?.to_vec()))
    }

    /// Whether this incarnation lives. Takes about 10 µs.
    pub fn alive(&self, member: &Member) -> bool {
        if member.uid == self.member.uid {
            return !self.core.is_closed();
        }
        self.with_directory(|others, directory| {
            // If the table can no longer be read, the earlier knowledge counts.
            let _ = others.peers.refresh(directory);
            Ok(directory.alive(member, &|| Ok(())))
        })
        .unwrap_or(false)
    }

    /// The member with this name or rank; None if there is none, or has been none.
    pub fn lookup(&self, name: &Name) -> Result<Option<Member>> {
        self.with_directory(|others, directory| others.peers.lookup(name, directory))
    }

    /// The same, as of now.
    pub fn lookup_now(&self, name: &Name) -> Result<Option<Member>> {
        self.with_directory(|others, directory| {
            others.peers.refresh(directory)?;
            Ok(others.peers.known(name).cloned())
        })
    }

    /// The name that the process of this rank sends under; None if nobody has had the rank yet.
    pub(crate) fn name_of_rank(&self, rank: i64) -> Result<Option<Name>> {
        self.check_open()?; // in a forked child the locks are the parent's
        if self.core.shared().has_arrivals() {
            self.core.take_in();
        }
        // Has a new process sent something? It may have a dead one's rank now.
        let senders = self.core.senders_total();
        let news = self.senders_at_refresh.swap(senders, Ordering::Relaxed) != senders;
        self.with_directory(|others, directory| {
            let rank = Name::Rank(rank);
            if news || others.peers.known(&rank).is_none() {
                others.peers.refresh(directory)?;
            }
            Ok(others.peers.known(&rank).map(|member| member.name.clone()))
        })
    }

    /// The member that had this name or rank and has left since this process joined.
    pub fn departed(&self, name: &Name) -> Option<Member> {
        lock(&self.others).peers.departed(name).cloned()
    }

    /// Return when all of these have joined and live; false when the time is up.
    pub fn wait_for(&self, names: &[Name], until: Deadline) -> Result<bool> {
        self.wait_until_joined(Joined::new(self, names), until)
    }

    /// Return when all of these have joined and live, or one of them has ended since the call.
    pub fn wait_for_start(&self, names: &[Name]) -> Result<()> {
        self.wait_until_joined(Joined::or_ended(self, names)?, None).map(|_| ())
    }

    fn wait_until_joined(&self, mut goal: Joined<'_>, until: Deadline) -> Result<bool> {
        // The others usually begin at the same time.
        let soon = Instant::now() + SOON;
        while Instant::now() < soon {
            if goal.is_reached()? {
                return Ok(true);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(false);
            }
            thread::sleep(Duration::from_millis(2));
            Around(self).signals()?;
            self.check_open()?;
        }
        Ok(self.wait(&mut goal, until)?.is_some())
    }

    /// Wait until the goal is reached; None when the time is up. See `sfm_native::calls`.
    pub fn wait<'a, G: Goal<Around<'a>>>(
        &'a self,
        goal: &mut G,
        until: Deadline,
    ) -> Result<Option<G::Out>> {
        calls::wait(&Around(self), &self.core, goal, until)
    }

    pub fn check_open(&self) -> Result<()> {
        if self.core.is_closed() {
            Err(Error::closed())
        } else {
            Ok(())
        }
    }

    fn with_directory<T>(
        &self,
        ask: impl FnOnce(&mut Others, &dyn Directory) -> Result<T>,
    ) -> Result<T> {
        self.check_open()?; // in a forked child the locks are the parent's
        let mut others = lock(&self.others);
        let directory = lock(&self.directory);
        ask(&mut others, directory.as_deref().ok_or_else(Error::closed)?)
    }

    // ---- routes ----

    /// The route to the process with this name or rank; made if there is none.
    pub fn route(&self, dest: &Name) -> Result<Arc<Route>> {
        self.check_open()?;
        let known = {
            let others = lock(&self.others);
            let uid = others.peers.known(dest).map(|member| &member.uid);
            others.routes.iter().find(|route| Some(&route.peer().uid) == uid).cloned()
        };
        known.map_or_else(|| self.make_route(dest), Ok)
    }

    fn make_route(&self, dest: &Name) -> Result<Arc<Route>> {
        let member = self.with_directory(|others, directory| {
            // A process that was replaced, or has left, gets nothing more.
            let members = others.peers.refresh(directory)?;
            others.routes.retain(|route| members.iter().any(|other| other.uid == route.peer().uid));
            others.peers.living(dest, directory)
        })?;
        // One at a time: of two routes to the same process the receiver would see only the first.
        let _making = lock(&self.making);
        if let Some(known) =
            lock(&self.others).routes.iter().find(|route| route.peer().uid == member.uid)
        {
            return Ok(known.clone());
        }
        let route = Arc::new(Route::make(self, member)?);
        lock(&self.others).routes.push(route.clone());
        Ok(route)
    }

    /// After a failure of kind PeerLost: the route to the process that has replaced the lost one;
    /// None if there is none. The next message gets a new route in any case.
    pub fn successor(&self, dest: &Name, failed: &Arc<Route>) -> Result<Option<Arc<Route>>> {
        let member = self.with_directory(|others, directory| {
            others.routes.retain(|route| !Arc::ptr_eq(route, failed));
            others.given_up.push(failed.peer().uid.clone());
            others.peers.refresh(directory)?;
            let member = others.peers.known(dest).cloned();
            let new = member.filter(|member| !others.given_up.contains(&member.uid));
            Ok(new.filter(|member| directory.alive(member, &|| Ok(()))))
        })?;
        member.map(|_| self.route(dest)).transpose()
    }

    // ---- interruption ----

    /// End the call that waits now, or the next one, with `Interrupted`. May be called from a
    /// handler of a signal.
    pub fn interrupt(&self) {
        self.interrupted.store(true, Ordering::Release);
        self.core.wake();
    }

    pub(crate) fn check_interrupt(&self) -> Result<()> {
        if !self.interrupted.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let text = "the program has interrupted this call; no message was lost";
        Err(Error::new(Kind::Interrupted, text))
    }

    // ---- end ----

    /// Leave the world. Blocked calls end with `Closed`; what was sent is delivered. Idempotent.
    pub fn leave(&self) {
        if self.process != std::process::id() {
            return; // a forked child: all of this is its parent's
        }
        let Some(directory) = lock(&self.directory).take() else {
            return;
        };
        self.core.close();
        let network = lock(&self.network).take();
        if let Some(network) = network {
            let _ = network.join();
        }
        // A ring that was never opened has no receiver any more; rings that lead to others stay
        // until their reader opens them: what was sent is received.
        let incoming = format!("-{}.ring", self.member.uid);
        let rings = fs::read_dir(&self.folder).into_iter().flatten().filter_map(|entry| entry.ok());
        for ring in rings.filter(|ring| ring.file_name().to_string_lossy().ends_with(&incoming)) {
            let _ = fs::remove_file(ring.path());
        }
        let _ = fs::remove_file(self.folder.join(format!("{}.seg", self.member.uid)));
        lock(&self.others).routes.clear();
        let _ = directory.leave(&self.member.uid, &|| Ok(())); // the world may be gone
        directory.close();
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.leave();
    }
}
