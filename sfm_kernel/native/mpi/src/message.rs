//! Messages that a matched probe has taken out of the inbox, until they are received.

use std::sync::{Arc, OnceLock};

use sfm_native::core::{Payload, Receiver};
use sfm_native::packet::Envelope;

use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::table::Table;

pub struct Message {
    /// The communicator whose error handler gets a failure.
    pub comm: MPI_Comm,
    /// The envelope and the bytes, once it has come.
    come: OnceLock<(Envelope, Vec<u8>)>,
}

static MESSAGES: Table<Message> = Table::new(0xa800_0000);

impl Message {
    /// A message that has not come yet.
    pub fn to_come(comm: MPI_Comm) -> Arc<Message> {
        Arc::new(Message { comm, come: OnceLock::new() })
    }

    /// The envelope and the bytes; None before it has come.
    pub fn get(&self) -> Option<(&Envelope, &[u8])> {
        self.come.get().map(|(envelope, bytes)| (envelope, &bytes[..]))
    }
}

impl Receiver for Message {
    fn receive(self: Arc<Self>, envelope: &Envelope, Payload(first, second): Payload<'_>) {
        let _ = self.come.set((*envelope, [first, second].concat())); // it comes once
    }
}

pub fn open(message: Arc<Message>) -> MPI_Message {
    MESSAGES.insert(message)
}

/// Take the message; its handle is freed.
pub fn release(handle: MPI_Message) -> Answer<Arc<Message>> {
    MESSAGES.release(handle).ok_or_else(|| {
        let text = format!("{handle:#010x} is not a message, or was received before");
        fail(MPI_ERR_REQUEST, text)
    })
}

/// The messages that were not received.
pub fn all() -> Vec<Arc<Message>> {
    MESSAGES.all()
}
