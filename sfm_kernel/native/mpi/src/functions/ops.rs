//! Making operations, and reducing within one process.

use crate::checks::{self, put};
use crate::data::UserBuffer;
use crate::datatype;
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::op::{self, Function};

pub unsafe fn op_create(user_fn: MPI_User_function, commute: c_int, op: *mut MPI_Op) -> Answer {
    put("op", op, op::create(Function::Small(user_fn), commute != 0)?)
}

pub unsafe fn op_create_c(user_fn: MPI_User_function_c, commute: c_int, op: *mut MPI_Op) -> Answer {
    put("op", op, op::create(Function::Large(user_fn), commute != 0)?)
}

pub unsafe fn op_free(op: *mut MPI_Op) -> Answer {
    op::free(*op)?;
    *op = MPI_OP_NULL;
    Ok(())
}

pub unsafe fn op_commutative(op: MPI_Op, commute: *mut c_int) -> Answer {
    // The operations for windows select one operand, so the order matters.
    let of_windows = [MPI_REPLACE, MPI_NO_OP].contains(&op);
    put("commute", commute, c_int::from(!of_windows && op::get(op)?.commutes()))
}

pub unsafe fn reduce_local(inbuf: *const c_void, inoutbuf: UserBuffer, op: MPI_Op) -> Answer {
    let UserBuffer { at: inoutbuf, count, datatype, .. } = inoutbuf;
    let count = checks::count("count", count)?;
    let (found, op) = (datatype::committed(datatype)?, op::get(op)?);
    op.check(&found)?;
    let bytes = found.bytes(count)?;
    for (name, buffer) in [("inbuf", inbuf), ("inoutbuf", inoutbuf)] {
        checks::not_in_place(name, buffer)?;
        checks::buffer(name, buffer, bytes, found.basic.is_none())?;
    }
    if bytes > 0 && inbuf == inoutbuf {
        let text = "arguments inbuf and inoutbuf are the same memory";
        return Err(fail(MPI_ERR_BUFFER, text));
    }
    op.combine(inbuf, inoutbuf.cast_mut(), count, &found, datatype)
}
