//! The tool information interface: categories.

use crate::checks::{array_mut, count, put, text};
use crate::errors::Answer;
use crate::handles::*;
use crate::tool;
use crate::tool::categories::{indices, Entries, ALL};
use crate::tool::texts::{give, offer};

/// Variables and categories never change.
pub unsafe fn t_category_changed(update_number: *mut c_int) -> Answer {
    put("update_number", update_number, 0)
}

pub unsafe fn t_category_get_num(num_cat: *mut c_int) -> Answer {
    put("num_cat", num_cat, ALL.len() as c_int)
}

fn category(index: c_int) -> Answer<(usize, &'static (&'static str, &'static str))> {
    Ok((index as usize, tool::nth(&ALL, index, "category")?))
}

pub unsafe fn t_category_get_info(
    cat_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    desc: *mut c_char,
    desc_len: *mut c_int,
    num_cvars: *mut c_int,
    num_pvars: *mut c_int,
    num_categories: *mut c_int,
) -> Answer {
    let (index, (its_name, about)) = category(cat_index)?;
    give(its_name, name, name_len);
    give(about, desc, desc_len);
    offer(num_cvars, indices(index, Entries::Control).len() as c_int);
    offer(num_pvars, indices(index, Entries::Performance).len() as c_int);
    offer(num_categories, indices(index, Entries::Categories).len() as c_int);
    Ok(())
}

pub unsafe fn t_category_get_num_events(cat_index: c_int, num_events: *mut c_int) -> Answer {
    put("num_events", num_events, indices(category(cat_index)?.0, Entries::Events).len() as c_int)
}

pub unsafe fn t_category_get_index(name: *const c_char, cat_index: *mut c_int) -> Answer {
    let name = text("name", name)?;
    let index = tool::index_of(&ALL, |(known, _)| *known == name, "category", &name)?;
    put("cat_index", cat_index, index)
}

pub unsafe fn t_category_get_cvars(cat_index: c_int, len: c_int, at: *mut c_int) -> Answer {
    list(cat_index, Entries::Control, len, at)
}

pub unsafe fn t_category_get_pvars(cat_index: c_int, len: c_int, at: *mut c_int) -> Answer {
    list(cat_index, Entries::Performance, len, at)
}

pub unsafe fn t_category_get_events(cat_index: c_int, len: c_int, at: *mut c_int) -> Answer {
    list(cat_index, Entries::Events, len, at)
}

pub unsafe fn t_category_get_categories(cat_index: c_int, len: c_int, at: *mut c_int) -> Answer {
    list(cat_index, Entries::Categories, len, at)
}

/// As many as there are and as there is room for.
unsafe fn list(cat_index: c_int, entries: Entries, len: c_int, at: *mut c_int) -> Answer {
    let all = indices(category(cat_index)?.0, entries);
    let room = count("len", len)?.min(all.len());
    array_mut("indices", at, room)?.copy_from_slice(&all[..room]);
    Ok(())
}
