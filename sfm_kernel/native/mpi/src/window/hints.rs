//! The hints of a window, among those that the standard defines for windows.

use crate::info::Info;

/// Key and default value.
const KNOWN: [(&str, &str); 7] = [
    ("no_locks", "false"),
    ("accumulate_ordering", "rar,raw,war,waw"),
    ("accumulate_ops", "same_op_no_op"),
    ("mpi_accumulate_granularity", "0"),
    ("alloc_shared_noncontig", "false"),
    ("same_size", "false"),
    ("same_disp_unit", "false"),
];

/// The program's values, and defaults for the others; unknown keys are omitted.
pub struct Hints(Info);

impl Hints {
    pub fn of(given: &Info) -> Hints {
        let all = KNOWN.iter().map(|(key, usual)| ((*key).into(), (*usual).into()));
        let mut hints = Hints(Info { entries: all.collect() });
        hints.change(given);
        hints
    }

    pub fn change(&mut self, given: &Info) {
        for (key, value) in &mut self.0.entries {
            if let Some(other) = given.get(key) {
                *value = other.into();
            }
        }
    }

    pub fn is_set(&self, key: &str) -> bool {
        self.0.get(key) == Some("true")
    }

    pub fn info(&self) -> Info {
        self.0.clone()
    }
}
