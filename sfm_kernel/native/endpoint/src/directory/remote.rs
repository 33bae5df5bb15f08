//! The directory of a world of several machines, which a server keeps.
//!
//! When the server has ended, lookups fail with `WorldGone`; `alive` keeps the last answer, so that
//! processes that know each other go on. The segment of a process on this machine shows its death at
//! once and without the server. The server sees the death of another machine's process at once, or
//! learns it within 1 s from that machine's relay; within 5 s it sees that the process no longer
//! answers, which is no proof of death.
//!
//! Once this process has joined, the server publishes every change to it. Cost: a request is one
//! round trip, 0.3 ms on one machine; without a subscription, `alive` asks at most every 0.1 s.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{json, Map, Value};

use sfm_native::sync::lock;
use sfm_native::wire::zmq::Library;

use super::cleaning::sweep;
use super::client::keys::{check_key, Secret};
use super::client::{Client, ANSWER};
use super::folder::{is_alive, Folder, Stamp};
use super::member::{Gateway, JoinRequest, Member};
use super::{Changes, Directory, Seen};
use crate::error::{Error, Kind, Result};
use crate::host::Signals;

/// Age of an answer about living processes up to which `alive` asks no more.
const FRESH: Duration = Duration::from_millis(100);
/// Time that `alive` and `leave` wait for a silent server; and before `alive` asks that one again.
const PATIENCE: Duration = Duration::from_millis(500);
const SILENCE: Duration = Duration::from_secs(2);
/// The pause before a request that the server could not decide yet is made again.
const MOMENT: Duration = Duration::from_millis(20);

/// A state of the server, as it describes it; only the version if the client knows it.
#[derive(Deserialize)]
struct Published {
    version: i64,
    #[serde(default)]
    members: Option<Vec<Member>>,
    #[serde(default)]
    departed: Vec<Member>,
    #[serde(default)]
    expelled: HashSet<String>,
    #[serde(default)]
    dead: HashSet<String>,
    #[serde(default)]
    gateways: Vec<Gateway>,
}

/// What this client knows.
struct Known {
    version: i64,
    members: Vec<Member>,
    departed: Vec<Member>,
    gateways: Vec<Gateway>,
    living: HashSet<String>,
    expelled: HashSet<String>,
    /// The uids under which this process has joined.
    own: HashSet<String>,
    is_out: bool,
    /// When `alive` may ask again.
    ask_from: Instant,
}

impl Known {
    /// Take in a state, unless a newer one was taken in before; what has changed for a watcher, and
    /// whether this process has just been put out.
    fn take(&mut self, state: Published) -> Option<(Changes, bool)> {
        let members = state.members.filter(|_| state.version >= self.version)?;
        let had_left: HashSet<_> = self.departed.iter().map(|left| left.uid.clone()).collect();
        let at_sites =
            |members: Vec<Member>| members.into_iter().map(Member::at_its_site).collect();
        self.members = at_sites(members);
        self.departed = at_sites(state.departed);
        self.gateways = state.gateways;
        let uids = self.members.iter().map(|member| member.uid.clone());
        let living = uids.filter(|uid| !state.dead.contains(uid)).collect();
        let lived = std::mem::replace(&mut self.living, living);
        (self.version, self.expelled) = (state.version, state.expelled);
        let is_put_out = !self.is_out && self.expelled.intersection(&self.own).next().is_some();
        self.is_out |= is_put_out;
        if self.is_out {
            self.living.clear();
        }
        // Some processes may have joined and left since the last state.
        let left = self.departed.iter().map(|left| left.uid.clone());
        let ended = lived.into_iter().chain(left);
        let ended = ended.filter(|uid| !had_left.contains(uid) && !self.living.contains(uid));
        let departed: HashMap<_, _> =
            ended.map(|uid| (uid.clone(), self.why(&uid).to_owned())).collect();
        let changes =
            Changes { gateways: self.gateways.clone(), members: self.members.clone(), departed };
        Some((changes, is_put_out))
    }

    fn why(&self, uid: &str) -> &'static str {
        match () {
            () if self.is_out => "(this process was put out of the world)",
            () if self.expelled.contains(uid) => "(it was put out of the world)",
            () => "",
        }
    }
}

/// Called with what has changed. In any thread; it must not ask the directory.
pub type Watcher = Box<dyn FnMut(&Changes) + Send>;
/// Tells the user something that no call of theirs has asked about.
pub type Notice = Box<dyn Fn(&str) + Send + Sync>;

struct Shared {
    world: String,
    known: Mutex<Known>,
    /// Held while a state is taken in: watchers get the states in their order.
    watcher: Mutex<Option<Watcher>>,
    is_subscribed: AtomicBool,
    notice: Notice,
}

impl Shared {
    fn take(&self, text: &[u8]) -> Result<()> {
        let state = serde_json::from_slice(text).map_err(|error| {
            Error::new(Kind::World, format!("the directory server's state is damaged: {error}"))
        })?;
        let mut watcher = lock(&self.watcher);
        let Some((changes, is_put_out)) = lock(&self.known).take(state) else { return Ok(()) };
        if is_put_out {
            (self.notice)(&format!("this process was put out of world '{}'", self.world));
        }
        if let Some(watcher) = &mut *watcher {
            watcher(&changes);
        }
        Ok(())
    }
}

pub struct Remote {
    folder: Folder,
    client: Arc<Client>,
    shared: Arc<Shared>,
}

impl Remote {
    /// Open the directory of a world with the server at `url`.
    ///
    /// `WorldGone`: the server does not answer, or keeps another world. `WorldAccess`: the key is not
    /// the server's; or the folder on this machine is not private.
    pub fn open(
        library: &'static Library,
        world: &str,
        url: &str,
        key: &[u8],
        notice: Notice,
        signals: Signals<'_>,
    ) -> Result<Remote> {
        check_key(key)?; // before a folder is made
        let folder = Folder::open(world, true, signals)?;
        let client = Client::open(library, world, url, Secret::World(key), ANSWER, signals)?;
        let known = Known {
            version: -1,
            members: Vec::new(),
            departed: Vec::new(),
            gateways: Vec::new(),
            living: HashSet::new(),
            expelled: HashSet::new(),
            own: HashSet::new(),
            is_out: false,
            ask_from: Instant::now(),
        };
        let shared = Shared {
            world: world.to_owned(),
            known: Mutex::new(known),
            watcher: Mutex::default(),
            is_subscribed: AtomicBool::new(false),
            notice,
        };
        Ok(Remote { folder, client: Arc::new(client), shared: Arc::new(shared) })
    }

    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Whether the server publishes every change to this client.
    fn is_subscribed(&self) -> bool {
        self.shared.is_subscribed.load(Ordering::Acquire)
    }

    fn subscribe(&self) -> Result<()> {
        if self.shared.is_subscribed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        self.client.subscribe(move |state| {
            // None: the server is silent, and the last state may be out of date.
            shared.is_subscribed.store(state.is_some(), Ordering::Release);
            let _ = state.map(|text| shared.take(text));
        })
    }

    /// Ask once more, while the server cannot decide it yet.
    fn decided(
        &self,
        kind: &str,
        details: Map<String, Value>,
        limit: Duration,
        signals: Signals<'_>,
    ) -> Result<Vec<u8>> {
        let details = Value::Object(details).to_string();
        loop {
            let (text, _) = self.client.ask(kind, &details, b"", limit, signals)?;
            let answer: Map<String, Value> = serde_json::from_slice(&text).unwrap_or_default();
            if !answer.contains_key("again") {
                return Ok(text);
            }
            std::thread::sleep(MOMENT);
        }
    }

    fn refresh(&self, limit: Duration, signals: Signals<'_>) -> Result<()> {
        let version = {
            let known = lock(&self.shared.known);
            if known.is_out {
                let text = format!(
                    "this process was put out of world '{}': ask those who have the world's key. To \
                     come back, it joins anew",
                    self.folder.world
                );
                return Err(Error::new(Kind::WorldAccess, text));
            }
            known.version
        };
        let details = json!({ "version": version }).to_string();
        let (text, _) = self.client.ask("state", &details, b"", limit, signals)?;
        self.shared.take(&text)?;
        lock(&self.shared.known).ask_from = Instant::now() + FRESH;
        Ok(())
    }

    /// The gateways of all sites, oldest first.
    pub fn gateways(&self, signals: Signals<'_>) -> Result<Vec<Gateway>> {
        if !self.is_subscribed() {
            self.refresh(ANSWER, signals)?;
        }
        Ok(lock(&self.shared.known).gateways.clone())
    }
}

impl Directory for Remote {
    fn world(&self) -> &str {
        &self.folder.world
    }

    fn folder(&self) -> &Path {
        &self.folder.path
    }

    fn key(&self) -> &[u8] {
        self.client.key()
    }

    /// Also removes dead processes' files on this machine.
    fn join(&self, request: &JoinRequest, signals: Signals<'_>) -> Result<Member> {
        request.check()?;
        let mut details = Map::new();
        details.insert("request".into(), json!(request));
        let text = self.decided("join", details, ANSWER, signals)?;
        #[derive(Deserialize)]
        struct Joined {
            member: Member,
        }
        let damaged = |error| Error::new(Kind::World, format!("no entry of a member: {error}"));
        let Joined { member } = serde_json::from_slice(&text).map_err(damaged)?;
        lock(&self.shared.known).own.insert(member.uid.clone());
        self.shared.take(&text)?;
        self.subscribe()?;
        let _locked = self.folder.locked(signals)?;
        let known = lock(&self.shared.known).members.iter().map(|one| one.uid.clone()).collect();
        sweep(&self.folder.path, &known);
        Ok(member.at_its_site())
    }

    fn leave(&self, uid: &str, signals: Signals<'_>) -> Result<()> {
        let mut details = Map::new();
        details.insert("uid".into(), uid.into());
        match self.decided("leave", details, PATIENCE, signals) {
            Err(failure) if matches!(failure.kind, Kind::WorldGone | Kind::Closed) => Ok(()),
            // This process may be out already.
            Err(failure)
                if failure.kind == Kind::WorldAccess
                    && lock(&self.shared.known).own.contains(uid) =>
            {
                Ok(())
            }
            left => left.map(|_| ()),
        }
    }

    fn stamp(&self) -> Option<Stamp> {
        Some((lock(&self.shared.known).version as u64, 0, 0))
    }

    fn seen(&self, fresh: bool, signals: Signals<'_>) -> Result<Seen> {
        if fresh || !self.is_subscribed() {
            self.refresh(ANSWER, signals)?;
        }
        let stamp = self.stamp();
        let known = lock(&self.shared.known);
        Ok(Seen { stamp, members: known.members.clone(), departed: known.departed.clone() })
    }

    /// Whether it runs and has not left; while the server is silent, its last answer.
    fn alive(&self, member: &Member, signals: Signals<'_>) -> bool {
        {
            let known = lock(&self.shared.known);
            if known.is_out || known.expelled.contains(&member.uid) {
                return false;
            }
        }
        let segment = self.folder.path.join(format!("{}.seg", member.uid));
        if Path::new(&member.segment) == segment && segment.exists() {
            // Such a name is unique in the world: it is a process of this machine.
            return is_alive(&segment);
        }
        let may_ask = || lock(&self.shared.known).ask_from < Instant::now();
        if !self.is_subscribed() && may_ask() && self.refresh(PATIENCE, signals).is_err() {
            lock(&self.shared.known).ask_from = Instant::now() + SILENCE;
        }
        lock(&self.shared.known).living.contains(&member.uid)
    }

    fn why_departed(&self, uid: &str) -> &'static str {
        lock(&self.shared.known).why(uid)
    }

    fn watch(&self, mut changed: Watcher) {
        let mut watcher = lock(&self.shared.watcher);
        let now = {
            let known = lock(&self.shared.known);
            Changes {
                gateways: known.gateways.clone(),
                members: known.members.clone(),
                departed: HashMap::new(),
            }
        };
        changed(&now);
        *watcher = Some(changed);
    }

    fn close(&self) {
        self.folder.close();
        self.client.close();
    }
}
