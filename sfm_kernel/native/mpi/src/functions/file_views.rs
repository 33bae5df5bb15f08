//! Views of files, data representations, and the positions of the file pointers.

use crate::checks::{array_mut, put, put_text, text, Results};
use crate::datatype;
use crate::errors::{fail, Answer};
use crate::file::representation::{self, Conversion, Representation};
use crate::file::view::View;
use crate::file::{self, agreeing, File};
use crate::handles::*;
use crate::info;

pub unsafe fn file_set_view(
    fh: MPI_File,
    disp: MPI_Offset,
    etype: MPI_Datatype,
    filetype: MPI_Datatype,
    datarep: *const c_char,
    info: MPI_Info,
) -> Answer {
    let file = file::get(fh)?;
    let ready = view(&file, disp, etype, filetype, datarep)
        .and_then(|view| Ok((view, info::copy_or_empty(info)?)));
    // All processes arrive before the shared pointer moves, and none continues before it has moved.
    let unit = ready.as_ref().map_or(0, |(view, _)| view.unit as MPI_Offset);
    let all = agreeing::all(&file.comm, unit)?;
    agreeing::from_first(&file.comm, || file.move_shared(0))?;
    let (view, hints) = ready?;
    if let Some(rank) = all.iter().position(|other| ![0, unit].contains(other)) {
        let text = format!(
            "an etype has {unit} bytes here and {} in process {rank} of the file's communicator; \
            etypes must have the same extent at all processes",
            all[rank]
        );
        return Err(fail(MPI_ERR_NOT_SAME, text));
    }
    file.take_hints(&hints);
    file.take_view(view);
    Ok(())
}

unsafe fn view(
    file: &File,
    disp: MPI_Offset,
    etype: MPI_Datatype,
    filetype: MPI_Datatype,
    datarep: *const c_char,
) -> Answer<View> {
    let representation = Representation::of(&text("datarep", datarep)?)?;
    let (etype, filetype) = (datatype::committed(etype)?, datatype::committed(filetype)?);
    let is_sequential = file.amode.has(MPI_MODE_SEQUENTIAL);
    let displacement = match disp {
        MPI_DISPLACEMENT_CURRENT if is_sequential => {
            file.view().position_of(file.shared_position())
        }
        _ if is_sequential => {
            let text =
                "the file was opened with MPI_MODE_SEQUENTIAL, where argument disp has to be \
                        MPI_DISPLACEMENT_CURRENT";
            return Err(fail(MPI_ERR_ARG, text));
        }
        MPI_DISPLACEMENT_CURRENT => {
            let text = "argument disp is MPI_DISPLACEMENT_CURRENT, which is for files that were \
                        opened with MPI_MODE_SEQUENTIAL";
            return Err(fail(MPI_ERR_ARG, text));
        }
        0.. => disp,
        _ => {
            return Err(fail(MPI_ERR_ARG, format!("argument disp is {disp}, less than zero")));
        }
    };
    let is_written = !file.amode.has(MPI_MODE_RDONLY);
    View::new(displacement, etype, filetype, representation, is_written)
}

/// The datatypes are new handles, which the program frees unless they are predefined.
pub unsafe fn file_get_view(
    fh: MPI_File,
    disp: *mut MPI_Offset,
    etype: *mut MPI_Datatype,
    filetype: *mut MPI_Datatype,
    datarep: *mut c_char,
) -> Answer {
    let view = file::get(fh)?.view();
    array_mut("datarep", datarep, 1)?;
    put("disp", disp, view.displacement)?;
    put("etype", etype, datatype::open(view.etype.clone()))?;
    put("filetype", filetype, datatype::open(view.filetype.clone()))?;
    let name = view.representation.name();
    put_text("datarep", datarep, MPI_MAX_DATAREP_STRING, name, std::ptr::null_mut())
}

pub unsafe fn file_get_byte_offset(
    fh: MPI_File,
    offset: MPI_Offset,
    disp: *mut MPI_Offset,
) -> Answer {
    let file = file::get(fh)?;
    file.must_have_positions()?;
    let view = file.view();
    let at = view.bytes_to(offset)?;
    view.check_reach(at, 1)?;
    put("disp", disp, view.position_of(at))
}

pub unsafe fn file_get_type_extent(
    fh: MPI_File,
    datatype: MPI_Datatype,
    extent: Results,
) -> Answer {
    let view = file::get(fh)?.view();
    let in_file = view.representation.in_file(&datatype::get(datatype)?)?;
    extent.put("extent", in_file.extent as MPI_Count)
}

/// The new position of a file pointer, in bytes of the view's data.
fn target(file: &File, position: usize, offset: MPI_Offset, whence: c_int) -> Answer<usize> {
    let view = file.view();
    let from = match whence {
        MPI_SEEK_SET => 0,
        MPI_SEEK_CUR => position / view.unit,
        // The first etype that lies, at least partly, behind the file's last byte.
        MPI_SEEK_END => view.data_before(file.size()? as MPI_Offset).div_ceil(view.unit),
        _ => {
            let text = format!(
                "argument whence is {whence}; give MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END"
            );
            return Err(fail(MPI_ERR_ARG, text));
        }
    };
    match (from as MPI_Offset).checked_add(offset) {
        Some(etypes @ 0..) => view.bytes_to(etypes),
        _ => {
            let text = format!(
                "argument offset is {offset}, which leads before the view's beginning: it is \
                relative to etype {from}"
            );
            Err(fail(MPI_ERR_ARG, text))
        }
    }
}

pub unsafe fn file_seek(fh: MPI_File, offset: MPI_Offset, whence: c_int) -> Answer {
    let file = file::get(fh)?;
    file.must_have_positions()?;
    let mut position = file.position();
    *position = target(&file, *position, offset, whence)?;
    Ok(())
}

pub unsafe fn file_get_position(fh: MPI_File, offset: *mut MPI_Offset) -> Answer {
    let file = file::get(fh)?;
    file.must_have_positions()?;
    let position = *file.position();
    put("offset", offset, (position / file.view().unit) as MPI_Offset)
}

pub unsafe fn file_seek_shared(fh: MPI_File, offset: MPI_Offset, whence: c_int) -> Answer {
    let file = file::get(fh)?;
    file.must_have_positions()?;
    // All processes arrive before it moves, and none continues before it has moved.
    agreeing::same(&file.comm, "offset", offset)?;
    agreeing::same(&file.comm, "whence", whence.into())?;
    let seek = || target(&file, file.shared_position(), offset, whence);
    let has_moved = agreeing::from_first(&file.comm, || match seek() {
        Ok(target) => {
            file.move_shared(target);
            true
        }
        Err(_) => false,
    })?;
    match has_moved {
        true => Ok(()),
        false => seek().map(|_| ()), // the error is the same at all processes
    }
}

pub unsafe fn file_get_position_shared(fh: MPI_File, offset: *mut MPI_Offset) -> Answer {
    let file = file::get(fh)?;
    file.must_have_positions()?;
    put("offset", offset, (file.shared_position() / file.view().unit) as MPI_Offset)
}

pub unsafe fn register_datarep(
    datarep: *const c_char,
    read_conversion_fn: MPI_Datarep_conversion_function,
    write_conversion_fn: MPI_Datarep_conversion_function,
    dtype_file_extent_fn: MPI_Datarep_extent_function,
    extra_state: *mut c_void,
) -> Answer {
    let (read, write) =
        (Conversion::Small(read_conversion_fn), Conversion::Small(write_conversion_fn));
    let name = text("datarep", datarep)?;
    representation::register(name, read, write, dtype_file_extent_fn, extra_state)
}

pub unsafe fn register_datarep_c(
    datarep: *const c_char,
    read_conversion_fn: MPI_Datarep_conversion_function_c,
    write_conversion_fn: MPI_Datarep_conversion_function_c,
    dtype_file_extent_fn: MPI_Datarep_extent_function,
    extra_state: *mut c_void,
) -> Answer {
    let (read, write) =
        (Conversion::Large(read_conversion_fn), Conversion::Large(write_conversion_fn));
    let name = text("datarep", datarep)?;
    representation::register(name, read, write, dtype_file_extent_fn, extra_state)
}
