//! Waiting for others to join.

use std::time::Duration;

use sfm_native::bell::Woken;
use sfm_native::calls::{Goal, WaitFacts};
use sfm_native::segment::{Activity, UNSETTLED};

use crate::endpoint::Endpoint;
use crate::error::Result;
use crate::host::Around;
use crate::name::Name;
use crate::wait_facts;

/// Time of frequent checks, before they become as rare as those of other blocked calls.
pub const SOON: Duration = Duration::from_millis(500);

/// The goal that all of these have joined and live.
pub struct Joined<'a> {
    endpoint: &'a Endpoint,
    names: &'a [Name],
    missing: Vec<Name>,
    version: u64,
}

impl<'a> Joined<'a> {
    pub fn new(endpoint: &'a Endpoint, names: &'a [Name]) -> Joined<'a> {
        Joined { endpoint, names, missing: names.to_vec(), version: 0 }
    }

    pub fn is_reached(&mut self) -> Result<bool> {
        let members = self.endpoint.members()?;
        let living: Vec<_> = members.iter().filter(|member| self.endpoint.alive(member)).collect();
        let has_joined = |name: &Name| {
            living.iter().any(|member| {
                member.name == *name || member.rank.map(Name::Rank).as_ref() == Some(name)
            })
        };
        self.missing = self.names.iter().filter(|name| !has_joined(name)).cloned().collect();
        Ok(self.missing.is_empty())
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
