//! Names of services, under which ports are published for this user's programs on this machine.
//!
//! A name is a socket of its own, at which a thread of the publishing process returns the port. So
//! it ends with its process.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use sfm_endpoint::network;
use sfm_native::sync::lock;

use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::sockets;

/// A name that this process has published.
struct Published {
    port: String,
    withdrawn: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

static PUBLISHED: LazyLock<Mutex<HashMap<String, Published>>> = LazyLock::new(Mutex::default);
/// The time limit for an answer, because the publishing process may be stopped.
const PATIENCE: Duration = Duration::from_secs(5);

fn address(service: &str) -> std::io::Result<SocketAddr> {
    let mut hasher = DefaultHasher::new(); // gives the same hash in every process
    service.hash(&mut hasher);
    sockets::address(&format!("name-{:016x}", hasher.finish()))
}

fn failure(service: &str, error: &std::io::Error) -> Failure {
    let text = match error.kind() {
        ErrorKind::AddrInUse => "is published already, here or by another program".into(),
        _ => format!("cannot be published: {error}"),
    };
    fail(MPI_ERR_SERVICE, format!("service {service:?} {text}"))
}

pub fn publish(service: &str, port: &str) -> Answer {
    let listener = address(service).and_then(|address| UnixListener::bind_addr(&address));
    let listener = listener.map_err(|error| failure(service, &error))?;
    let (withdrawn, reply) = (Arc::new(AtomicBool::new(false)), format!("{service}\0{port}"));
    let ends = withdrawn.clone();
    let serve = move || {
        for stream in listener.incoming() {
            if ends.load(Ordering::Acquire) {
                return;
            }
            if let Some(mut stream) =
                stream.ok().filter(|stream| sockets::is_ours(stream.as_raw_fd()))
            {
                let _ = stream.write_all(reply.as_bytes());
            }
        }
    };
    let thread = network::helper("sfm-name", serve).map_err(|error| failure(service, &error))?;
    lock(&PUBLISHED).insert(service.into(), Published { port: port.into(), withdrawn, thread });
    Ok(())
}

pub fn unpublish(service: &str, port: &str) -> Answer {
    let mut all = lock(&PUBLISHED);
    if all.get(service).is_none_or(|published| published.port != port) {
        let text = format!("this process has not published service {service:?} with port {port:?}");
        return Err(fail(MPI_ERR_SERVICE, text));
    }
    let Published { withdrawn, thread, .. } = all.remove(service).expect("checked above");
    withdrawn.store(true, Ordering::Release);
    // The thread checks when a connection comes.
    if address(service).and_then(|address| UnixStream::connect_addr(&address)).is_ok() {
        let _ = thread.join();
    }
    Ok(())
}

pub fn lookup(service: &str) -> Answer<String> {
    let asked = || {
        let mut stream = UnixStream::connect_addr(&address(service)?)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        Ok::<_, std::io::Error>(reply)
    };
    let reply = asked().unwrap_or_default();
    match reply.split_once('\0') {
        Some((name, port)) if name == service => Ok(port.into()),
        _ => {
            let text = format!(
                "no service {service:?} is published by a program of this user on this machine"
            );
            Err(fail(MPI_ERR_NAME, text))
        }
    }
}
