//! A process's site: see `sfm_kernel/directory/sites.py`, whose tests hold for both.

use crate::error::{Error, Kind, Result};

const VARIABLE: &str = "SFM_SITE";
const LONGEST: usize = 64;

/// The site in `SFM_SITE`, otherwise the machine's own.
pub fn this_site(host: &str) -> Result<String> {
    match std::env::var_os(VARIABLE) {
        Some(given) if !given.is_empty() => check(&given.to_string_lossy()),
        _ => Ok(from_host(host)),
    }
}

fn check(site: &str) -> Result<String> {
    let length = site.chars().count();
    if length <= LONGEST && site.chars().all(is_allowed) {
        return Ok(site.to_owned());
    }
    let text = format!(
        "{VARIABLE} is {site:?}, and the name of a site has at most {LONGEST} characters, no spaces \
         and nothing that cannot be printed: write it in one word, such as 'lyon' or 'lab-2'"
    );
    Err(Error::new(Kind::BadName, text))
}

/// The name of the machine, reduced to what a site's name may have.
fn from_host(host: &str) -> String {
    let allowed: String = host.chars().filter(|&c| is_allowed(c)).take(LONGEST).collect();
    if allowed.is_empty() {
        "localhost".to_owned()
    } else {
        allowed
    }
}

fn is_allowed(c: char) -> bool {
    !c.is_control() && !c.is_whitespace() && c != char::REPLACEMENT_CHARACTER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_one_word() {
        for site in ["lyon", "lab-2", "Zürich", &"x".repeat(64)] {
            assert_eq!(check(site).unwrap(), site);
        }
        for site in ["two words", "a\tb", "a\n", "\u{7}", &"x".repeat(65)] {
            assert_eq!(check(site).unwrap_err().kind, Kind::BadName, "{site:?}");
        }
    }

    #[test]
    fn every_host_name_gives_a_site() {
        assert_eq!(from_host("node-7"), "node-7");
        assert_eq!(from_host("a b\n"), "ab");
        assert_eq!(from_host(" "), "localhost");
        assert_eq!(from_host(&"x".repeat(100)).len(), 64);
    }
}
