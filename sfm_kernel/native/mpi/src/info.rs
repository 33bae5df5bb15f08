//! Info objects: keys and values as text, in the order in which they were set.

use std::sync::{Arc, Mutex};

use sfm_native::sync::lock;

use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::table::Table;

#[derive(Clone, Default, Debug)]
pub struct Info {
    pub entries: Vec<(String, String)>,
}

impl Info {
    pub fn get(&self, key: &str) -> Option<&str> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    pub fn set(&mut self, key: String, value: String) {
        match self.entries.iter_mut().find(|(name, _)| *name == key) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((key, value)),
        }
    }

    pub fn delete(&mut self, key: &str) -> bool {
        let before = self.entries.len();
        self.entries.retain(|(name, _)| name != key);
        self.entries.len() < before
    }
}

/// Keys of hints that an object has, each with its default value.
pub type Known = [(&'static str, &'static str)];

/// The hints of an object: the program's values, and defaults for the others. Unknown hints are
/// ignored, as the standard demands, and are not returned.
#[derive(Clone)]
pub struct Hints {
    known: &'static Known,
    given: Info,
}

impl Hints {
    pub const fn new(known: &'static Known) -> Hints {
        Hints { known, given: Info { entries: Vec::new() } }
    }

    pub fn of(known: &'static Known, given: &Info) -> Hints {
        let mut hints = Hints::new(known);
        hints.change(given);
        hints
    }

    pub fn change(&mut self, given: &Info) {
        for (key, _) in self.known {
            if let Some(value) = given.get(key) {
                self.given.set((*key).into(), value.into());
            }
        }
    }

    pub fn is_set(&self, key: &str) -> bool {
        self.given.get(key) == Some("true")
    }

    /// All hints, as the program may ask for them.
    pub fn info(&self) -> Info {
        let value = |(key, usual): &(&str, &'static str)| {
            ((*key).into(), self.given.get(key).unwrap_or(usual).into())
        };
        Info { entries: self.known.iter().map(value).collect() }
    }
}

static INFOS: Table<Mutex<Info>> = Table::new(0x9c00_0000);
static ENVIRONMENT: Mutex<Option<Info>> = Mutex::new(None);

pub fn open(info: Info) -> MPI_Info {
    INFOS.insert(Arc::new(Mutex::new(info)))
}

/// Read or change an info object under its lock. MPI_INFO_ENV is read-only: changes to it are lost.
pub fn with<T>(handle: MPI_Info, use_: impl FnOnce(&mut Info) -> T) -> Answer<T> {
    if handle == MPI_INFO_ENV {
        let mut environment = lock(&ENVIRONMENT);
        return Ok(use_(&mut environment.get_or_insert_with(environment_of_start).clone()));
    }
    match INFOS.get(handle) {
        Some(info) => Ok(use_(&mut lock(&info))),
        None => Err(wrong(handle)),
    }
}

/// A copy of an optional info argument; empty for MPI_INFO_NULL.
pub fn copy_or_empty(handle: MPI_Info) -> Answer<Info> {
    if handle == MPI_INFO_NULL {
        return Ok(Info::default());
    }
    with(handle, |info| info.clone())
}

pub fn free(handle: MPI_Info) -> Answer {
    match INFOS.release(handle) {
        Some(_) => Ok(()),
        None => Err(wrong(handle)),
    }
}

fn wrong(handle: MPI_Info) -> crate::errors::Failure {
    let text = match handle {
        MPI_INFO_NULL => "the info object is MPI_INFO_NULL".into(),
        MPI_INFO_ENV => "MPI_INFO_ENV cannot be freed".into(),
        _ => format!("{handle:#010x} is not an info object, or was freed"),
    };
    fail(MPI_ERR_INFO, text)
}

/// The known facts about the program's start.
fn environment_of_start() -> Info {
    let mut info = Info::default();
    let mut arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    if let Some(command) = arguments.next() {
        info.set("command".into(), command);
        // Ranks in Python are forks of the launcher, and have its arguments.
        let given = std::env::var("SFM_MPI_ARGV").ok().filter(|_| crate::process::is_rank());
        let argv = given.unwrap_or_else(|| arguments.collect::<Vec<_>>().join(" "));
        info.set("argv".into(), argv);
    }
    if let Ok(folder) = std::env::current_dir() {
        info.set("wdir".into(), folder.to_string_lossy().into_owned());
    }
    info.set("maxprocs".into(), crate::process::this().size.to_string());
    info.set("thread_level".into(), "MPI_THREAD_MULTIPLE".into());
    info
}
