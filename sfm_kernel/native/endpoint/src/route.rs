//! Routes: a peer and the channel to it, through a ring in shared memory or into this process's
//! inbox.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sfm_native::calls::{Channel, End, Host, Peer};
use sfm_native::packet::{Builder, Gather, Kind as Value};
use sfm_native::ring_sender::{is_arena_size, is_ring_size, RingSender, ARENA_BYTES, RING_BYTES};
use sfm_native::segment::{self, Segment};
use sfm_native::shm::room;

use crate::directory::Member;
use crate::endpoint::Endpoint;
use crate::error::{Error, Kind, Result};
use crate::host::Around;
use crate::name::Name;
use crate::wait_facts::quoted;

/// Time that a peer may take to read what another process has sent it before.
const OPENING: Duration = Duration::from_secs(10);

/// A folder with fewer bytes than this, such as a container's 64 MiB, gets rings of a quarter of the
/// usual size: sixteen processes that all talk to each other then need 17 MiB, and not all of it.
const SMALL: u64 = 1 << 28;

/// A route to one incarnation of a peer.
pub struct Route {
    peer: Member,
    /// Its name, as observers are shown it.
    shown: String,
    channel: Channel,
    /// The attributes `dest` and `src` of every message on this channel, encoded.
    ends: Vec<u8>,
}

impl Route {
    pub(crate) fn make(endpoint: &Endpoint, peer: Member) -> Result<Route> {
        let (core, member) = (endpoint.core(), endpoint.member());
        let channel = if peer.uid == member.uid {
            let uid = core.shared().uid();
            Channel::local(core, uid, core, uid)
        } else {
            Channel::Ring(ring(endpoint, &peer, endpoint.folder(), member.slot)?)
        };
        let mut builder = Builder::new();
        add_name(&mut builder, "dest", &peer.name);
        add_name(&mut builder, "src", &member.name);
        Ok(Route { shown: peer.name.to_string(), peer, channel, ends: builder.entries().to_vec() })
    }

    pub fn peer(&self) -> &Member {
        &self.peer
    }

    /// The attributes `dest` and `src`, two of them, with which a message begins.
    pub fn ends(&self) -> &[u8] {
        &self.ends
    }

    /// The channel, for callers that step through a send themselves.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Send a packet; returns when its bytes are copied, with `buffering` 0 when it was received.
    /// Blocks while more than `buffering` bytes to this peer were not received.
    pub fn send(&self, endpoint: &Endpoint, packet: &Gather<'_>, buffering: u64) -> Result<()> {
        self.channel.send(&Around(endpoint), self, packet, buffering)
    }
}

impl Peer<Around<'_>> for Route {
    fn shown(&self) -> &str {
        &self.shown
    }

    fn check(&self, host: &Around<'_>) -> Result<()> {
        if host.0.alive(&self.peer) {
            return Ok(());
        }
        Err(Error::peer_lost(&self.shown, "and did not receive this message"))
    }

    fn failed(&self, host: &Around<'_>, why: End) -> Error {
        match why {
            End::MessagesLost => Error::messages_lost(&self.shown),
            End::TooLarge(bytes) => Error::too_large(&self.shown, bytes),
            why => host.ended(why),
        }
    }
}

/// A ring to a process of the world in `folder`, in which this process has this slot.
pub(crate) fn ring(
    endpoint: &Endpoint,
    peer: &Member,
    folder: &Path,
    slot: usize,
) -> Result<Arc<RingSender>> {
    let core = endpoint.core();
    let uid = u128::from_str_radix(&peer.uid, 16);
    let uid = uid.map_err(|_| Error::new(Kind::World, format!("uid {:?} is none", peer.uid)))?;
    let segment = open(endpoint, peer, folder, uid)?;
    let patience = Instant::now() + OPENING;
    while RingSender::slot_is_taken(&segment, folder, core.shared().uid(), slot) {
        endpoint.check_open()?;
        if Instant::now() > patience {
            let text = format!(
                "{} has not read the messages that another process sent before: is it stopped?",
                peer.name
            );
            return Err(Error::new(Kind::System, text));
        }
        std::thread::sleep(Duration::from_micros(500));
        Around(endpoint).signals()?;
    }
    let (capacity, arena) = (ring_bytes(folder)?, arena_bytes()?);
    RingSender::create(core.clone(), segment, folder, slot, capacity, arena)
        .map_err(|failure| Error::shared(failure, folder))
}

/// Map the peer's segment. Success, and the right uid in it, prove that memory is shared.
fn open(endpoint: &Endpoint, peer: &Member, folder: &Path, uid: u128) -> Result<Segment> {
    segment::open(&folder.join(format!("{uid:032x}.seg")), Some(uid)).map_err(|failure| {
        if Path::new(&peer.segment).parent() != Some(folder) {
            let text =
                format!("process {} of {} shares no memory with this one", peer.name, peer.host);
            return Error::new(Kind::World, text);
        }
        match endpoint.alive(peer) {
            true => Error::shared(failure, folder),
            false => Error::peer_lost(&peer.name.to_string(), "and did not receive this message"),
        }
    })
}

/// The size of a ring in this folder, in bytes: `SFM_RING_BYTES`, a power of two, or the default,
/// which is less if there is little room.
pub fn ring_bytes(folder: &Path) -> Result<usize> {
    let usual = match room(folder) {
        Ok((_, total)) if total < SMALL => RING_BYTES / 4,
        _ => RING_BYTES,
    };
    bytes("SFM_RING_BYTES", usual, is_ring_size, "a power of two from 4096 to 2**30")
}

/// The arena's size in bytes: `SFM_ARENA_BYTES`, 0 for none, or the default.
pub fn arena_bytes() -> Result<usize> {
    let rule = "a multiple of 4096 up to 2**40, or 0";
    bytes("SFM_ARENA_BYTES", ARENA_BYTES, is_arena_size, rule)
}

/// A size from the environment.
fn bytes(variable: &str, usual: usize, fits: impl Fn(usize) -> bool, rule: &str) -> Result<usize> {
    let Some(text) = std::env::var_os(variable).filter(|text| !text.is_empty()) else {
        return Ok(usual);
    };
    let size = text.to_str().and_then(|text| text.parse().ok()).filter(|size| fits(*size));
    let given = quoted(&text.to_string_lossy());
    size.ok_or_else(|| Error::new(Kind::Argument, format!("{variable}={given}: give {rule}")))
}

fn add_name(builder: &mut Builder, key: &str, name: &Name) {
    let added = match name {
        Name::Rank(rank) => builder.attribute(key, Value::Int, &[&rank.to_le_bytes()]),
        Name::Text(text) => builder.attribute(key, Value::Str, &[text.as_bytes()]),
    };
    added.expect("a short name");
}
