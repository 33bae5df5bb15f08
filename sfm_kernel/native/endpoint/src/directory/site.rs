//! Sites: groups of processes that are near each other, with long paths between the groups.
//!
//! A process's site has the name of its host, unless the user names another one. Two machines are
//! therefore two sites, until the user gives them one name. Collectives cross between two sites
//! once.

use super::member::is_printable;
use crate::error::{Error, Kind, Result};
use crate::wait_facts::quoted;

/// The environment variable that names the site of the processes started with it.
pub const VARIABLE: &str = "SFM_SITE";

const LONGEST: usize = 64;

/// Check the name of a site: 1 to 64 printable characters, none of them a space. `given`: the
/// argument or variable that it comes from, for the error.
pub fn check_site(site: &str, given: &str) -> Result<()> {
    let length = site.chars().count();
    let text = if length == 0 {
        format!("{given} is empty: name the site, such as 'lyon', or leave it out")
    } else if length > LONGEST {
        let start: String = site.chars().take(LONGEST).collect();
        format!(
            "{given} has {length} characters, but the name of a site has at most {LONGEST}: choose \
             a shorter one than {}…",
            quoted(&start)
        )
    } else if !site.chars().all(is_allowed) {
        format!(
            "{given} is {}, but the name of a site has no spaces and only printable characters: \
             write it in one word, such as 'lyon' or 'lab-2'",
            quoted(site)
        )
    } else {
        return Ok(());
    };
    Err(Error::new(Kind::BadName, text))
}

/// The site that `SFM_SITE` requests. Empty: the machine's.
pub fn requested_site() -> Result<String> {
    let Some(named) = std::env::var_os(VARIABLE) else { return Ok(String::new()) };
    let named = named.to_string_lossy().into_owned();
    if !named.is_empty() {
        check_site(&named, VARIABLE)?;
    }
    Ok(named)
}

/// The default site of a machine: its name, without characters that a site's cannot have.
pub fn site_of_host(host: &str) -> String {
    let allowed: String = host.chars().filter(|&c| is_allowed(c)).take(LONGEST).collect();
    if allowed.is_empty() {
        "localhost".to_owned()
    } else {
        allowed
    }
}

fn is_allowed(c: char) -> bool {
    is_printable(c) && c != ' ' && c != char::REPLACEMENT_CHARACTER
}
