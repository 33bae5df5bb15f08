//! The sites of a communicator's processes: messages between sites are slow, messages inside a
//! site fast.
//!
//! The world's table has each process's site, so that all processes agree on it without a message.
//! A communicator reads it once.

use std::sync::Arc;

use super::Comm;
use crate::engine::engine;
use crate::handles::*;

/// The sites of a communicator that has several.
#[derive(Debug, PartialEq)]
pub struct Sites {
    /// The ranks of the processes at each site, in ascending order; sites in the order of their
    /// first process.
    pub ranks: Vec<Vec<usize>>,
    /// The site of this process.
    pub here: usize,
    /// True if listing the sites one after the other gives the rank order.
    pub are_in_order: bool,
}

impl Sites {
    /// None if all processes are at one site, or if a site is unknown.
    pub fn of(comm: &Comm) -> Option<Arc<Sites>> {
        if comm.remote.is_some() {
            return None; // one group sends directly to the other
        }
        let site = |process: &c_int| engine().endpoint.site(*process as usize);
        let names: Option<Vec<String>> = comm.group.members.iter().map(site).collect();
        Sites::named(&names?, comm.rank as usize).map(Arc::new)
    }

    /// The sites of processes with these site names, as rank `viewer` sees them.
    fn named(names: &[String], viewer: usize) -> Option<Sites> {
        let mut ranks: Vec<Vec<usize>> = Vec::new();
        for (rank, name) in names.iter().enumerate() {
            match ranks.iter_mut().find(|site| names[site[0]] == *name) {
                Some(site) => site.push(rank),
                None => ranks.push(vec![rank]),
            }
        }
        let here = ranks.iter().position(|site| site.contains(&viewer))?;
        let are_in_order = ranks.concat().is_sorted();
        (ranks.len() > 1).then_some(Sites { ranks, here, are_in_order })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &str, viewer: usize) -> Option<Sites> {
        let names: Vec<String> = names.chars().map(String::from).collect();
        Sites::named(&names, viewer)
    }

    #[test]
    fn sites_are_ordered_by_their_first_processes() {
        let sites = named("bcbac", 4).unwrap();
        assert_eq!(sites.ranks, [vec![0, 2], vec![1, 4], vec![3]]);
        assert_eq!(sites.here, 1);
    }

    #[test]
    fn a_single_site_counts_as_none() {
        assert_eq!(named("aaa", 1), None);
    }

    #[test]
    fn sites_with_consecutive_ranks_are_in_order() {
        assert!(named("bbac", 0).unwrap().are_in_order);
        assert!(!named("aba", 0).unwrap().are_in_order);
    }
}
