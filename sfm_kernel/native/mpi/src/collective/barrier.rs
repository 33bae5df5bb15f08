//! Barrier: dissemination.
//!
//! Source: D. Hensgen, R. Finkel, U. Manber, Two algorithms for barrier synchronization,
//! International Journal of Parallel Programming 17 (1988).

use super::team::Team;
use crate::data::Data;
use crate::errors::Answer;

/// After each of log2 n rounds every process knows, through others, of the arrival of twice as
/// many.
pub async fn barrier(team: &Team<'_>) -> Answer {
    let mut distance = 1;
    while distance < team.size {
        let next = (team.rank + distance) % team.size;
        let last = (team.rank + team.size - distance) % team.size;
        team.exchange(next, &Data::nothing(), last, Data::nothing()).await?;
        distance *= 2;
    }
    Ok(())
}
