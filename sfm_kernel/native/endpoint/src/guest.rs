//! Worlds of this machine beside the own one. A process that has to do with one of its members is a
//! guest there: it has a slot, and its segment a second name in that world's folder, so that both
//! ends find what they need of each other in the receiver's own folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sfm_native::ring_sender::RingSender;

use crate::directory::{is_alive, Directory, JoinRequest, Member};
use crate::endpoint::Endpoint;
use crate::error::{Error, Result};
use crate::route;

pub struct Guest {
    directory: Directory,
    /// The second name of our segment.
    link: PathBuf,
    uid: String,
    slot: usize,
}

/// Whether somebody lives in a world's folder.
pub fn is_inhabited(folder: &Path) -> bool {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|one| one.path());
    files
        .filter(|path| path.extension().is_some_and(|kind| kind == "seg"))
        .any(|one| is_alive(&one))
}

impl Guest {
    /// Be a guest in a world that is there.
    pub fn visit(endpoint: &Endpoint, world: &str) -> Result<Guest> {
        let (own, directory) = (endpoint.member(), Directory::open(world)?);
        let link = directory.path().join(format!("{}.guest", own.uid));
        let entered = fs::hard_link(&own.segment, &link)
            .map_err(|error| Error::system(&link.display().to_string(), &error))
            .and_then(|()| {
                let name = Some(format!("guest-{}", own.uid));
                let request = JoinRequest { name, guest: true, ..JoinRequest::default() };
                directory.join(
                    endpoint.core().shared().uid(),
                    PathBuf::from(&own.segment),
                    &request,
                )
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

    /// The process of this rank, should it be there.
    pub fn lookup(&self, rank: i64) -> Option<Member> {
        let members = self.directory.seen().ok()?.members;
        members.into_iter().find(|one| one.rank == Some(rank) && is_alive(Path::new(&one.segment)))
    }

    /// Whether this incarnation lives, and has not left.
    pub fn alive(&self, member: &Member) -> bool {
        is_alive(Path::new(&member.segment))
    }

    /// A way to one of its processes.
    pub fn sender(&self, endpoint: &Endpoint, peer: &Member) -> Result<Arc<RingSender>> {
        route::ring(endpoint, peer, self.directory.path(), self.slot)
    }

    /// Be no guest any more; what was sent is received.
    pub fn leave(self) {
        let _ = fs::remove_file(&self.link);
        let _ = self.directory.leave(&self.uid);
        self.directory.close();
    }
}
