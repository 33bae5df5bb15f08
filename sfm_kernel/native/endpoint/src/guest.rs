//! Other worlds of this machine. A process that talks to a member of one is a guest there: it has a
//! slot, and its segment a second name in that world's folder, so that both ends find in the
//! receiver's own folder what they need of each other.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sfm_native::ring_sender::RingSender;

use crate::directory::{is_alive, Directory, JoinRequest, Local, Member};
use crate::endpoint::Endpoint;
use crate::error::{Error, Result};
use crate::host::Signals;
use crate::name::Name;
use crate::route;

pub struct Guest {
    directory: Local,
    /// The second name of our segment.
    link: PathBuf,
    uid: String,
    slot: usize,
}

impl Guest {
    /// Become a guest in an existing world.
    pub fn visit(endpoint: &Endpoint, world: &str) -> Result<Guest> {
        let signals: Signals<'_> = &|| endpoint.surroundings().signals();
        let (member, directory) = (endpoint.member(), Local::open(world, false, signals)?);
        let link = directory.folder().join(format!("{}.guest", member.uid));
        let entered = fs::hard_link(&member.segment, &link)
            .map_err(|error| Error::system(&link.display().to_string(), &error))
            .and_then(|()| {
                let request = JoinRequest {
                    uid: member.uid.clone(),
                    pid: member.pid,
                    host: member.host.clone(),
                    segment: member.segment.clone(),
                    site: member.site.clone(),
                    name: Some(Name::Text(format!("guest-{}", member.uid))),
                    guest: true,
                    ..JoinRequest::default()
                };
                directory.join(&request, signals)
            });
        match entered {
            Ok(guest) => Ok(Guest { directory, link, uid: guest.uid, slot: guest.slot }),
            Err(failure) => {
                let _ = fs::remove_file(&link);
                directory.close();
                Err(failure)
            }
        }
    }

    /// The process of this rank, if there is one.
    pub fn lookup(&self, rank: i64) -> Option<Member> {
        let members = self.directory.seen(true, &|| Ok(())).ok()?.members;
        members
            .into_iter()
            .find(|member| member.rank == Some(rank) && is_alive(Path::new(&member.segment)))
    }

    /// A ring to one of its processes.
    pub fn sender(&self, endpoint: &Endpoint, peer: &Member) -> Result<Arc<RingSender>> {
        route::ring(endpoint, peer, self.directory.folder(), self.slot)
    }

    /// End the visit; what was sent is received.
    pub fn leave(self) {
        let _ = fs::remove_file(&self.link);
        let _ = self.directory.leave(&self.uid, &|| Ok(()));
        self.directory.close();
    }
}
