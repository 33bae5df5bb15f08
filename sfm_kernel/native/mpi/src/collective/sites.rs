//! The sites of a communicator's processes: between them the way is long, inside of one it is short.
//!
//! Where a process is stands in the world's table, so that all know it alike and nobody asks across
//! the way. A communicator looks once.

use std::sync::Arc;

use super::team::Team;
use crate::comm::Comm;
use crate::engine::engine;
use crate::handles::*;

/// The sites, where there are several.
#[derive(Debug, PartialEq)]
pub struct Sites {
    /// The ranks of the processes at each, in their order; sites by their first process.
    ranks: Vec<Vec<usize>>,
    /// This process's.
    here: usize,
    /// One site after the other is the order of the ranks.
    are_in_order: bool,
}

impl Sites {
    /// None where all processes are at one site, and where one is not known.
    pub fn of(comm: &Comm) -> Option<Arc<Sites>> {
        if comm.remote.is_some() {
            return None; // what one side has goes straight to the other
        }
        let site = |process: &c_int| engine().endpoint.site(*process as usize);
        let names: Option<Vec<String>> = comm.group.members.iter().map(site).collect();
        Sites::named(&names?, comm.rank as usize).map(Arc::new)
    }

    /// Those of processes, whose sites have these names, for the one of rank `own`.
    fn named(names: &[String], own: usize) -> Option<Sites> {
        let mut ranks: Vec<Vec<usize>> = Vec::new();
        for (rank, name) in names.iter().enumerate() {
            match ranks.iter_mut().find(|site| names[site[0]] == *name) {
                Some(site) => site.push(rank),
                None => ranks.push(vec![rank]),
            }
        }
        let here = ranks.iter().position(|site| site.contains(&own))?;
        let are_in_order = ranks.concat().is_sorted();
        (ranks.len() > 1).then_some(Sites { ranks, here, are_in_order })
    }
}

/// A collective as a process sees it that is at one of several sites. At each site one process speaks
/// for it: the root at its own, the first one elsewhere.
pub struct View<'a> {
    pub team: &'a Team,
    sites: &'a Sites,
    /// The processes of this one's site.
    pub near: Team,
    /// The rank there of the one that speaks for it.
    pub speaker: usize,
    /// All that speak, by site, if this process is one of them.
    pub speakers: Option<Team>,
    /// The root's site.
    pub home: usize,
}

impl View<'_> {
    /// Where no process is the root, the first one takes its place.
    pub fn new<'a>(team: &'a Team, sites: &'a Sites, root: usize) -> View<'a> {
        let is_home = |site: &Vec<usize>| site.contains(&root);
        let home = sites.ranks.iter().position(is_home).expect("a rank of the communicator");
        let mut speaking: Vec<usize> = sites.ranks.iter().map(|site| site[0]).collect();
        speaking[home] = root;
        let (here, own) = (&sites.ranks[sites.here], speaking[sites.here]);
        let place = |rank| here.iter().position(|one| *one == rank).expect("it is here");
        let speakers = (own == team.rank).then(|| team.picked(&speaking, sites.here));
        let near = team.picked(here, place(team.rank));
        View { team, sites, near, speaker: place(own), speakers, home }
    }

    /// Whether operands may be combined site by site, without changing their order.
    pub fn is_in_order(&self) -> bool {
        self.sites.are_in_order
    }

    /// How many sites there are.
    pub fn number(&self) -> usize {
        self.sites.ranks.len()
    }

    /// This process's.
    pub fn here(&self) -> usize {
        self.sites.here
    }

    /// All but this process's.
    pub fn others(&self) -> Vec<usize> {
        (0..self.number()).filter(|site| *site != self.sites.here).collect()
    }

    /// Of something that each process of the communicator has, what those of a site have.
    pub fn at<T: Clone>(&self, site: usize, all: &[T]) -> Vec<T> {
        self.sites.ranks[site].iter().map(|rank| all[*rank].clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &str, own: usize) -> Option<Sites> {
        let names: Vec<String> = names.chars().map(String::from).collect();
        Sites::named(&names, own)
    }

    #[test]
    fn sites_are_counted_by_their_first_processes() {
        let sites = named("bcbac", 4).unwrap();
        assert_eq!(sites.ranks, [vec![0, 2], vec![1, 4], vec![3]]);
        assert_eq!(sites.here, 1);
    }

    #[test]
    fn one_site_is_as_none() {
        assert_eq!(named("aaa", 1), None);
    }

    #[test]
    fn sites_are_in_order_whose_processes_follow_each_other() {
        assert!(named("bbac", 0).unwrap().are_in_order);
        assert!(!named("aba", 0).unwrap().are_in_order);
    }
}
