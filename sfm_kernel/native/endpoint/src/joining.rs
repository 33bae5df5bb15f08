//! Joining, and waiting for others to join.

use std::time::Duration;

use sfm_native::bell::Woken;
use sfm_native::calls::{Goal, WaitFacts};
use sfm_native::segment::{Activity, UNSETTLED};

use crate::directory::Member;
use crate::endpoint::Endpoint;
use crate::error::{Error, Kind, Result};
use crate::host::Around;
use crate::name::Name;
use crate::wait_facts;

/// Time of frequent checks, before they become as rare as those of other blocked calls.
pub const SOON: Duration = Duration::from_millis(500);

/// The goal that all of these have joined, and live.
pub struct Joined<'a> {
    endpoint: &'a Endpoint,
    names: &'a [Name],
    /// One that ends is the end of waiting, unless it had ended before: these had. None: another may
    /// take its name.
    before: Option<Vec<String>>,
    missing: Vec<Name>,
    version: u64,
}

impl<'a> Joined<'a> {
    pub fn new(endpoint: &'a Endpoint, names: &'a [Name]) -> Joined<'a> {
        Joined { endpoint, names, before: None, missing: names.to_vec(), version: 0 }
    }

    /// The goal that all have joined, or that one of them has ended since now.
    pub fn or_ended(endpoint: &'a Endpoint, names: &'a [Name]) -> Result<Joined<'a>> {
        let members = endpoint.members()?.into_iter();
        let before = members.filter(|member| !endpoint.alive(member)).map(|member| member.uid);
        Ok(Joined { before: Some(before.collect()), ..Joined::new(endpoint, names) })
    }

    pub fn is_reached(&mut self) -> Result<bool> {
        let members = self.endpoint.members()?;
        let is_alive = |member: &Member| self.endpoint.alive(member);
        let (living, ended): (Vec<_>, Vec<_>) = members.into_iter().partition(is_alive);
        let has = |members: &[Member], name: &Name| {
            let is_it = |member: &Member| {
                member.name == *name || member.rank.map(Name::Rank).as_ref() == Some(name)
            };
            members.iter().any(is_it)
        };
        self.missing = self.names.iter().filter(|name| !has(&living, name)).cloned().collect();
        let Some(before) = &self.before else { return Ok(self.missing.is_empty()) };
        let departed = self.missing.iter().filter_map(|name| self.endpoint.departed(name));
        let mut since: Vec<_> = ended.into_iter().chain(departed).collect();
        since.retain(|member| !before.contains(&member.uid));
        Ok(self.missing.is_empty() || self.missing.iter().any(|name| has(&since, name)))
    }

    fn text(&self) -> String {
        let names: Vec<_> = self.names.iter().map(Name::to_string).collect();
        format!("wait_for({})", names.join(", "))
    }
}

impl Goal<Around<'_>> for Joined<'_> {
    type Out = ();

    fn poll(&mut self, _host: &Around<'_>, _all: bool) -> Result<Option<()>> {
        self.version = self.endpoint.core().version();
        Ok(self.is_reached()?.then_some(()))
    }

    fn spin(&mut self, _host: &Around<'_>) -> bool {
        false
    }

    fn sleep(&mut self, _host: &Around<'_>, limit: Duration) -> Woken {
        self.endpoint.core().wait(self.version, limit)
    }

    fn examined(&self) -> u64 {
        UNSETTLED // a joining process sends nothing
    }

    fn facts(&mut self, _host: &Around<'_>) -> Result<Option<WaitFacts>> {
        let (activity, text, facts) = (Activity::Receiving, self.text(), String::new());
        Ok(Some(WaitFacts { activity, text, facts }))
    }

    fn tick(&mut self, _host: &Around<'_>) -> Result<Option<String>> {
        let facts = wait_facts::facts("join", Some(&self.missing), true, &[], "", &self.text());
        Ok(Some(facts.to_string()))
    }
}

/// Check that the environment asks for nothing that programs in C cannot do: to join a world that
/// spans machines, or to do without shared memory.
pub fn check_environment() -> Result<()> {
    if std::env::var_os("SFM_DIRECTORY").is_none_or(|url| url.is_empty()) {
        return check_transport();
    }
    let text = "SFM_DIRECTORY names the directory of a world that spans machines, which programs in C \
                cannot join yet: unset it, or let a Python process of this machine talk to the others";
    Err(Error::new(Kind::World, text))
}

fn check_transport() -> Result<()> {
    let chosen = std::env::var("SFM_TRANSPORT").unwrap_or_default();
    let mut transports =
        chosen.split(',').map(str::trim).filter(|name| !name.is_empty()).peekable();
    if transports.peek().is_none() || transports.any(|name| name == "shm") {
        return Ok(());
    }
    let text = format!(
        "SFM_TRANSPORT={chosen:?} leaves out shared memory, which is the only way that programs in C \
         have: unset it, or add shm, for all processes of the world"
    );
    Err(Error::new(Kind::World, text))
}
