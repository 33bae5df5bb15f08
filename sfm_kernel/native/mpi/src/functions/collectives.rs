//! The non-blocking and the persistent form of a collective.

use crate::checks::put;
use crate::collective::calls::Call;
use crate::collective::schedule::Schedule;
use crate::collective::team::Team;
use crate::comm;
use crate::errors::Answer;
use crate::handles::*;
use crate::request::{self, Partner, Work};

/// The team of the non-blocking form, and what its request waits for.
fn begun(comm: MPI_Comm, call: &Call) -> Answer<(Team<'static>, Partner)> {
    call.check()?;
    let comm = comm::get(comm)?;
    let team = Team::begun(&comm, call.what(), call.alike(&comm));
    let partner = Partner::All(team.number(), team.call().1);
    Ok((team, partner))
}

/// Run the non-blocking form.
fn begin(team: Team<'static>, call: Call) -> Work {
    let all = team.clone();
    let algorithm = async move { call.run(&team).await };
    Work::Schedule(Schedule::begin(all, algorithm))
}

/// Run the non-blocking form and store its request.
///
/// # Safety
/// `request` is null, which is refused, or may be written to.
pub(crate) unsafe fn open(comm: MPI_Comm, call: Call, request: *mut MPI_Request) -> Answer {
    let (team, partner) = begun(comm, &call)?;
    put("request", request, request::open(comm, partner, begin(team, call)))
}

/// Make the persistent request of a call, which begins it at each start.
///
/// # Safety
/// As for `open`.
pub(crate) unsafe fn prepare(comm: MPI_Comm, call: Call, request: *mut MPI_Request) -> Answer {
    // The call gets its number when the request is made, not when it is started, because processes
    // may start several requests in different orders. The starts of one request follow each other
    // at every process.
    let (team, partner) = begun(comm, &call)?;
    let start = Box::new(move || Ok(begin(team.clone(), call.clone())));
    put("request", request, request::persistent(comm, partner, start))
}
