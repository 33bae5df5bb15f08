//! Numbers and names of the core that Python uses too.

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString, PyTuple};

use crate::collectives::combining_tree;
use crate::observe::observer::MESSAGE_EVENTS;
use sfm_endpoint::directory::cleaning::SITES;
use sfm_endpoint::directory::client::{ANSWER, LARGEST_FRAME};
use sfm_endpoint::directory::table::MAX_DEPARTED;
use sfm_endpoint::endpoint::BUFFERING;
use sfm_native::combining_tree::fold::{CellKind, Op};
use sfm_native::frame::gateway_key::GATEWAY_KEY;
use sfm_native::gateway::handle::MOST_CONNECTIONS;
use sfm_native::gateway::schedule::Scheduler;
use sfm_native::main_thread::In;
use sfm_native::packet::{ANSWERS, COUNTED, LIBRARY};
use sfm_native::segment::{
    Activity, INBOX_IRRELEVANT, JUDGEMENT_BYTES, OBSERVER_SHIFT, OTHERS_BYTES, SLOTS, UNSETTLED,
};
use sfm_native::summary::{LONGEST, UNIT};

/// Add them to the module; `_native.pyi` describes each.
pub fn add_constants(module: &Bound<'_, PyModule>) -> PyResult<()> {
    for (name, number) in [
        ("ANSWERS", ANSWERS),
        ("BUFFERING", BUFFERING),
        ("COUNTED", COUNTED),
        ("GATEWAY_KEY_BYTES", GATEWAY_KEY as u64),
        ("JUDGEMENT_BYTES", JUDGEMENT_BYTES as u64),
        ("LIBRARY", LIBRARY),
        ("LARGEST_FRAME", LARGEST_FRAME as u64),
        ("MAX_DEPARTED", MAX_DEPARTED as u64),
        ("MAX_MEMBERS", SLOTS as u64),
        ("MOST_CONNECTIONS", u64::from(MOST_CONNECTIONS)),
        ("OBSERVER_SHIFT", OBSERVER_SHIFT.into()),
        ("OTHERS_BYTES", OTHERS_BYTES as u64),
        ("SHOWN_CHARACTERS", LONGEST as u64),
        ("UNSETTLED", UNSETTLED),
        ("INBOX_IRRELEVANT", INBOX_IRRELEVANT),
    ] {
        module.add(name, number)?;
    }
    let (text, number) = (module.py().get_type::<PyString>(), module.py().get_type::<PyInt>());
    module.add("Name", text.bitor(number)?)?;
    module.add("SITES", SITES)?;
    module.add("ANSWER_SECONDS", ANSWER.as_secs_f64())?;
    module.add("SUMMARY_UNIT", UNIT)?;
    for (name, texts) in [
        ("MAIN_THREAD_STATES", In::ALL.map(|(_, name)| name).to_vec()),
        ("MESSAGE_EVENTS", MESSAGE_EVENTS.to_vec()),
        ("SCHEDULERS", Scheduler::ALL.map(Scheduler::name).to_vec()),
        ("STATES", Activity::NAMES.to_vec()),
    ] {
        module.add(name, PyTuple::new(module.py(), texts)?)?;
    }
    Ok(())
}

/// The codes of the outcomes of a round.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Outcome;

#[pymethods]
impl Outcome {
    #[classattr]
    const NOTHING: u32 = CellKind::Nothing as u32;
    #[classattr]
    const INTS: u32 = CellKind::Ints as u32;
    #[classattr]
    const FLOATS: u32 = CellKind::Floats as u32;
    #[classattr]
    const BYTES: u32 = CellKind::Bytes as u32;
    #[classattr]
    const LARGE: u32 = CellKind::Large as u32;
    #[classattr]
    const MIXED: u32 = CellKind::Mixed as u32;
    #[classattr]
    const MISMATCH: u32 = CellKind::Mismatch as u32;
    #[classattr]
    const RESULT: u32 = CellKind::Result as u32;
    #[classattr]
    const FAILURE: u32 = CellKind::Failure as u32;
    #[classattr]
    const DUTY: u32 = combining_tree::DUTY;
    #[classattr]
    const BROKEN: u32 = combining_tree::BROKEN;
    #[classattr]
    const STRANGE: u32 = combining_tree::STRANGE;
}

/// The codes of the operations on numbers in a round.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Operation;

#[pymethods]
impl Operation {
    #[classattr]
    const KEEP: u32 = Op::Keep as u32;
    #[classattr]
    const ADD: u32 = Op::Add as u32;
    #[classattr]
    const MULTIPLY: u32 = Op::Multiply as u32;
    #[classattr]
    const MIN: u32 = Op::Min as u32;
    #[classattr]
    const MAX: u32 = Op::Max as u32;
    #[classattr]
    const MINIMUM: u32 = Op::Minimum as u32;
    #[classattr]
    const MAXIMUM: u32 = Op::Maximum as u32;
    #[classattr]
    const OTHER: u32 = Op::Other as u32;
}
