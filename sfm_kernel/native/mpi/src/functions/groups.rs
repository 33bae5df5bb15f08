//! Groups: sets of processes, derived from each other without communication.

use std::sync::Arc;

use crate::checks::{self, array, array_mut, put, put_new};
use crate::errors::{fail, Answer};
use crate::group::{self, Group};
use crate::handles::*;

unsafe fn give(newgroup: *mut MPI_Group, made: Arc<Group>) -> Answer {
    put_new("newgroup", newgroup, || group::open(made))
}

pub unsafe fn group_size(group: MPI_Group, size: *mut c_int) -> Answer {
    put("size", size, group::get(group)?.size())
}

pub unsafe fn group_rank(group: MPI_Group, rank: *mut c_int) -> Answer {
    put("rank", rank, group::get(group)?.calling_rank().unwrap_or(MPI_UNDEFINED))
}

pub unsafe fn group_translate_ranks(
    group1: MPI_Group,
    n: c_int,
    ranks1: *const c_int,
    group2: MPI_Group,
    ranks2: *mut c_int,
) -> Answer {
    let (first, second) = (group::get(group1)?, group::get(group2)?);
    let n = checks::count("n", n)?;
    let targets = array_mut("ranks2", ranks2, n)?;
    for (target, &rank) in targets.iter_mut().zip(array("ranks1", ranks1, n)?) {
        *target = match rank {
            MPI_PROC_NULL => MPI_PROC_NULL,
            _ => {
                checks::rank("ranks1", rank, first.size(), "group1")?;
                second.rank_of(first.members[rank as usize]).unwrap_or(MPI_UNDEFINED)
            }
        };
    }
    Ok(())
}

pub unsafe fn group_compare(group1: MPI_Group, group2: MPI_Group, result: *mut c_int) -> Answer {
    put("result", result, group::get(group1)?.compare(&*group::get(group2)?))
}

pub unsafe fn group_union(
    group1: MPI_Group,
    group2: MPI_Group,
    newgroup: *mut MPI_Group,
) -> Answer {
    give(newgroup, group::get(group1)?.union(&*group::get(group2)?))
}

pub unsafe fn group_intersection(
    group1: MPI_Group,
    group2: MPI_Group,
    newgroup: *mut MPI_Group,
) -> Answer {
    let second = group::get(group2)?;
    give(newgroup, group::get(group1)?.filtered(|member| second.rank_of(member).is_some()))
}

pub unsafe fn group_difference(
    group1: MPI_Group,
    group2: MPI_Group,
    newgroup: *mut MPI_Group,
) -> Answer {
    let second = group::get(group2)?;
    give(newgroup, group::get(group1)?.filtered(|member| second.rank_of(member).is_none()))
}

pub unsafe fn group_incl(
    group: MPI_Group,
    n: c_int,
    ranks: *const c_int,
    newgroup: *mut MPI_Group,
) -> Answer {
    let ranks = array("ranks", ranks, checks::count("n", n)?)?;
    give(newgroup, group::get(group)?.including("ranks", ranks)?)
}

pub unsafe fn group_excl(
    group: MPI_Group,
    n: c_int,
    ranks: *const c_int,
    newgroup: *mut MPI_Group,
) -> Answer {
    let ranks = array("ranks", ranks, checks::count("n", n)?)?;
    give(newgroup, group::get(group)?.excluding("ranks", ranks)?)
}

pub unsafe fn group_range_incl(
    group: MPI_Group,
    n: c_int,
    ranges: *mut [c_int; 3],
    newgroup: *mut MPI_Group,
) -> Answer {
    let ranks = listed(n, ranges)?;
    give(newgroup, group::get(group)?.including("ranges", &ranks)?)
}

pub unsafe fn group_range_excl(
    group: MPI_Group,
    n: c_int,
    ranges: *mut [c_int; 3],
    newgroup: *mut MPI_Group,
) -> Answer {
    let ranks = listed(n, ranges)?;
    give(newgroup, group::get(group)?.excluding("ranges", &ranks)?)
}

/// The ranks of all ranges: first, last, stride.
unsafe fn listed(n: c_int, ranges: *const [c_int; 3]) -> Answer<Vec<c_int>> {
    let ranges = array("ranges", ranges, checks::count("n", n)?)?;
    let mut ranks = Vec::new();
    for (nth, [first, last, stride]) in ranges.iter().enumerate() {
        let away = (i64::from(*last) - i64::from(*first)) * i64::from(*stride) < 0;
        if *stride == 0 || away {
            let text = format!(
                "ranges[{nth}] goes from {first} to {last} with stride {stride}, which never \
                reaches it"
            );
            return Err(fail(MPI_ERR_ARG, text));
        }
        let steps = (i64::from(*last) - i64::from(*first)) / i64::from(*stride);
        if steps > i64::from(u16::MAX) * 16 {
            let text = format!("ranges[{nth}] has {} ranks, more than any group", steps + 1);
            return Err(fail(MPI_ERR_ARG, text));
        }
        ranks.extend((0..=steps as c_int).map(|step| first + step * stride));
    }
    Ok(ranks)
}

pub unsafe fn group_free(group: *mut MPI_Group) -> Answer {
    group::free(*group)?;
    *group = MPI_GROUP_NULL;
    Ok(())
}
