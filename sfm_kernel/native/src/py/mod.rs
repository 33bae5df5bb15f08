//! What Python sees of the core: `sfm_kernel._native`, documented in `_native.pyi`.

mod encode;
mod errors;
mod inbox;
mod message;
mod segment;
mod sender;
mod template;

use pyo3::prelude::*;

#[pymodule]
#[pyo3(name = "_native")]
mod native {
    #[pymodule_export]
    use super::encode::{decode, pack, PyPacket, Region};
    #[pymodule_export]
    use super::inbox::Inbox;
    #[pymodule_export]
    use super::message::Message;
    #[pymodule_export]
    use super::segment::{read_segment, PySegment};
    #[pymodule_export]
    use super::sender::{PyOutflow, RingSender};
    #[pymodule_export]
    use super::template::matches;
}
