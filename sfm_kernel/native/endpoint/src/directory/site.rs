//! Where a process is: see `sfm_kernel/directory/sites.py`, whose tests hold for both.

use crate::error::{Error, Kind, Result};

const VARIABLE: &str = "SFM_SITE";
const LONGEST: usize = 64;

/// What `SFM_SITE` says, else the machine's own site.
pub fn own(host: &str) -> Result<String> {
    match std::env::var_os(VARIABLE) {
        Some(told) if !told.is_empty() => check(&told.to_string_lossy()),
        _ => Ok(of_host(host)),
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

/// The name of the machine, or what of that a site's can be.
fn of_host(host: &str) -> String {
    let kept: String = host.chars().filter(|&one| is_allowed(one)).take(LONGEST).collect();
    if kept.is_empty() {
        "localhost".to_owned()
    } else {
        kept
    }
}

fn is_allowed(one: char) -> bool {
    !one.is_control() && !one.is_whitespace() && one != char::REPLACEMENT_CHARACTER
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
    fn every_machine_has_one() {
        assert_eq!(of_host("node-7"), "node-7");
        assert_eq!(of_host("a b\n"), "ab");
        assert_eq!(of_host(" "), "localhost");
        assert_eq!(of_host(&"x".repeat(100)).len(), 64);
    }
}
