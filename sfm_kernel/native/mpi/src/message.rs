//! Messages that were probed and taken out of the queue, until they are received.

use std::sync::Arc;

use sfm_native::packet::Packet;

use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::table::Table;

pub struct Message {
    pub packet: Arc<Packet>,
    /// Whose error handler hears of a failure.
    pub comm: MPI_Comm,
}

static MESSAGES: Table<Message> = Table::new(0xa800_0000);

pub fn open(message: Message) -> MPI_Message {
    MESSAGES.insert(Arc::new(message))
}

/// The message, whose handle is then out of use.
pub fn release(handle: MPI_Message) -> Answer<Arc<Message>> {
    MESSAGES.release(handle).ok_or_else(|| {
        let text = format!("{handle:#010x} is no message, or one that was received before");
        fail(MPI_ERR_REQUEST, text)
    })
}

/// Those that were not received.
pub fn all() -> Vec<Arc<Message>> {
    MESSAGES.all()
}
