//! The client of a directory server (`sfm_kernel/directory/server.py`): requests with their answers,
//! and the states that the server publishes. For every language: Python's client is this one.
//!
//! ```text
//! address     the server's address, with its key
//! keys        the world's key, and the pairs that are derived from it
//! connection  the connection to the server: up, broken, refused
//! shared      what the threads share that ask, and that which listens
//! ```

mod address;
mod connection;
pub mod keys;
mod shared;
#[cfg(test)]
mod tests;

use std::io;
use std::mem;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Map, Value};

use self::address::ServerAddress;
pub use self::connection::LARGEST_FRAME;
use self::keys::Secret;
use self::shared::{closed, Shared, SIGNALS_EVERY};
use crate::error::{Error, Kind, Result};
use crate::host::Signals;
use crate::network::helper;
use crate::wait_facts::quoted;
use sfm_native::sync::lock;
use sfm_native::wire::zmq::{Context, Library, Pair};

/// Time in which a server must answer. A server that has ended is noticed much earlier.
pub const ANSWER: Duration = Duration::from_secs(10);

/// Asks the directory server of a world, and receives its updates. Thread-safe.
///
/// It says hello with a pair that is derived from the key, and its own pair's public half, and asks
/// with its own pair from then on: see `sfm_kernel/directory/clients.py`.
pub struct Client {
    key: Vec<u8>,
    pair: Pair,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// An answer: the text of a JSON object, or that object; and the bytes that came with it.
pub type Answer<Object = Vec<u8>> = (Object, Vec<Vec<u8>>);

impl Client {
    /// The client of the server at `url`, which keeps this world.
    ///
    /// `patience`: for the first answer. Errors: `WorldGone` if the server does not answer, or keeps
    /// another world; `WorldAccess` if the key is not the server's; `World` if the url is invalid.
    pub fn open(
        library: &'static Library,
        world: &str,
        url: &str,
        secret: Secret,
        patience: Duration,
        signals: Signals,
    ) -> Result<Client> {
        let address = ServerAddress::parse(url)?;
        let key = secret.key()?;
        let newcomer = secret.pair(library, &key)?;
        let failed = |error: io::Error| Error::system("no client of the directory server", &error);
        let pair = Pair::new(library).map_err(failed)?;
        let context = Context::new(library).map_err(failed)?;
        let shared = Shared::new(world, address).map_err(failed)?;
        let client = Client { key, pair, shared: Arc::new(shared), thread: Mutex::default() };
        client.shared.dial(&context, &newcomer)?;
        let mut hello = Map::new();
        hello.insert("public".into(), hexadecimal(&client.pair.public).into());
        let (answer, _) = client.exchange("hello", hello, b"", patience, signals)?;
        let served = answer.get("world").and_then(Value::as_str).unwrap_or_default();
        if served != world {
            let text = format!(
                "the directory server at {} keeps world {}, not {}",
                client.shared.address.place,
                quoted(served),
                quoted(world)
            );
            return Err(Error::new(Kind::WorldGone, text));
        }
        client.shared.dial(&context, &client.pair)?;
        Ok(client)
    }

    pub fn world(&self) -> &str {
        &self.shared.world
    }

    /// The world's key, or the gateways'; see `keys::stretched`.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// This client's own pair, by which the server knows it.
    pub fn pair(&self) -> &Pair {
        &self.pair
    }

    /// The context of its socket, whose thread can serve others' sockets, too. It ends with the last
    /// that holds it.
    pub fn context(&self) -> Result<Arc<Context>> {
        self.shared.check_process()?;
        lock(&self.shared.state)
            .open
            .as_ref()
            .map(|(_, context)| context.clone())
            .ok_or_else(closed)
    }

    /// How often the connection was up and came down.
    pub fn breaks(&self) -> u64 {
        self.shared.monitor(|monitor| monitor.breaks).unwrap_or(0)
    }

    /// Whether the server does not admit this client's pair any longer.
    pub fn is_refused(&self) -> bool {
        self.shared.monitor(|monitor| monitor.is_refused).unwrap_or(false)
    }

    /// The answer to a request with a body, and the bodies of the answer; see `ask`.
    pub fn exchange(
        &self,
        kind: &str,
        details: Map<String, Value>,
        body: &[u8],
        limit: Duration,
        signals: Signals,
    ) -> Result<Answer<Map<String, Value>>> {
        let (text, bodies) =
            self.ask(kind, &Value::Object(details).to_string(), body, limit, signals)?;
        let answer = serde_json::from_slice(&text).map_err(|error| {
            Error::new(Kind::World, format!("the directory server's answer is no JSON: {error}"))
        })?;
        Ok((answer, bodies))
    }

    /// The same for a host with a JSON of its own; `details` is an object.
    ///
    /// Waits until the answer comes, `signals` ends the call, or `limit` is over: that is
    /// `WorldGone`. `Closed` if this client was closed, or is the parent process's; other kinds if the
    /// server refuses the request.
    pub fn ask(
        &self,
        kind: &str,
        details: &str,
        body: &[u8],
        limit: Duration,
        signals: Signals,
    ) -> Result<Answer> {
        self.shared.ask(kind, details, body, limit, signals)
    }

    /// Call `on_update`, in a thread, with each state that the server publishes from now on, a JSON
    /// object; and with None when the server falls silent: then the last state may be out of date.
    pub fn subscribe(&self, on_update: impl FnMut(Option<&[u8]>) + Send + 'static) -> Result<()> {
        self.shared.check_process()?;
        let mut thread = lock(&self.thread);
        self.shared.check_open()?;
        if mem::replace(&mut lock(&self.shared.state).is_subscribed, true) {
            return Err(Error::new(Kind::Argument, "this directory client has a subscriber"));
        }
        let shared = Arc::clone(&self.shared);
        match helper("sfm-directory", move || shared.listen(on_update)) {
            Ok(started) => *thread = Some(started),
            Err(error) => {
                lock(&self.shared.state).is_subscribed = false;
                return Err(Error::system("no thread for the directory's updates", &error));
            }
        }
        Ok(())
    }

    /// Release the connection. Idempotent; does nothing in a forked child.
    pub fn close(&self) {
        if self.shared.check_process().is_err() {
            return;
        }
        self.shared.is_closing.store(true, Ordering::SeqCst);
        self.shared.wake.ring();
        let thread = lock(&self.thread).take();
        // The subscriber may close the client itself.
        if let Some(thread) = thread.filter(|its| its.thread().id() != thread::current().id()) {
            let _ = thread.join();
        }
        let mut state = lock(&self.shared.state);
        while state.is_read {
            state = self.shared.sleep(state, SIGNALS_EVERY);
        }
        let open = state.open.take();
        self.shared.changed.notify_all();
        drop(state);
        drop(open); // which waits for libzmq's threads
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close();
        if self.shared.check_process().is_err() {
            // There is no such thread in this process.
            mem::forget(lock(&self.thread).take());
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
