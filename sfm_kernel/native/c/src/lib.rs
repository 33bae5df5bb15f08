//! libsfm.so: the functions of sfm.h (sfm_kernel/c/include), on an endpoint without Python.
//!
//! ```text
//! codes                          error codes, and the latest error of a thread
//! arguments, types               the caller's arguments; the types of attributes
//! endpoint, packet, message, calls   the functions
//! ```
//! A module uses only those above it.
//!
//! No function ends the process: `codes::answer` catches panics.

mod arguments;
mod calls;
mod codes;
mod endpoint;
mod message;
mod packet;
mod types;

use sfm_endpoint::entry;

sfm_endpoint::at_load!();

entry!(sfm_error_text => crate::codes::error_text);

entry!(sfm_join => crate::endpoint::join);
entry!(sfm_leave => crate::endpoint::leave);
entry!(sfm_rank => crate::endpoint::rank);
entry!(sfm_size => crate::endpoint::size);
entry!(sfm_name => crate::endpoint::this_name);
entry!(sfm_wait_for => crate::endpoint::wait_for);
entry!(sfm_set_buffering => crate::endpoint::set_buffering);
entry!(sfm_interrupt => crate::endpoint::interrupt);

entry!(sfm_packet_new => crate::packet::new);
entry!(sfm_packet_clear => crate::packet::clear);
entry!(sfm_packet_free => crate::packet::free);
entry!(sfm_set_int => crate::packet::set_int);
entry!(sfm_set_double => crate::packet::set_double);
entry!(sfm_set_text => crate::packet::set_text);
entry!(sfm_set_bytes => crate::packet::set_bytes);
entry!(sfm_set_array => crate::packet::set_array);
entry!(sfm_set_any => crate::packet::set_any);

entry!(sfm_send => crate::calls::send);
entry!(sfm_send_to => crate::calls::send_to);
entry!(sfm_recv => crate::calls::recv);
entry!(sfm_peek => crate::calls::peek);

entry!(sfm_get_int => crate::message::get_int);
entry!(sfm_get_double => crate::message::get_double);
entry!(sfm_get_text => crate::message::get_text);
entry!(sfm_get_bytes => crate::message::get_bytes);
entry!(sfm_get_array => crate::message::get_array);
entry!(sfm_type_of => crate::message::type_of);
entry!(sfm_attribute => crate::message::attribute_name);
entry!(sfm_src => crate::message::src);
entry!(sfm_release => crate::message::release);
