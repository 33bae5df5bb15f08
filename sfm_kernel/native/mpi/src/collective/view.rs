//! A collective as the processes of several sites see it.

use super::team::Team;
use crate::comm::sites::Sites;

/// A collective as seen by one process of several sites. One process speaks for each site: the root
/// for its site, the first process for the others.
pub struct View<'a> {
    pub team: &'a Team<'a>,
    sites: &'a Sites,
    /// The processes of this site.
    pub near: Team<'a>,
    /// The speaker's rank in `near`.
    pub speaker: usize,
    /// The speakers of all sites, in the order of sites, if this process is one of them.
    pub speakers: Option<Team<'a>>,
    /// The root's site.
    pub home: usize,
}

impl View<'_> {
    /// For a collective without root, `root` is 0.
    pub fn new<'a>(team: &'a Team<'a>, sites: &'a Sites, root: usize) -> View<'a> {
        let is_home = |site: &Vec<usize>| site.contains(&root);
        let home = sites.ranks.iter().position(is_home).expect("a rank of the communicator");
        let mut speaking: Vec<usize> = sites.ranks.iter().map(|site| site[0]).collect();
        speaking[home] = root;
        let (here, speaker_rank) = (&sites.ranks[sites.here], speaking[sites.here]);
        let rank_here = |rank| here.iter().position(|member| *member == rank).expect("it is here");
        let speakers = (speaker_rank == team.rank).then(|| team.select(&speaking, sites.here));
        let near = team.select(here, rank_here(team.rank));
        View { team, sites, near, speaker: rank_here(speaker_rank), speakers, home }
    }

    /// True if operands may be combined site by site without changing their order.
    pub fn is_in_order(&self) -> bool {
        self.sites.are_in_order
    }

    pub fn number(&self) -> usize {
        self.sites.ranks.len()
    }

    /// The site of this process.
    pub fn here(&self) -> usize {
        self.sites.here
    }

    /// All sites but this process's.
    pub fn others(&self) -> Vec<usize> {
        (0..self.number()).filter(|site| *site != self.sites.here).collect()
    }

    /// The entries of one site's processes, from a list with one entry for each process.
    pub fn at<T: Clone>(&self, site: usize, all: &[T]) -> Vec<T> {
        self.sites.ranks[site].iter().map(|rank| all[*rank].clone()).collect()
    }
}
