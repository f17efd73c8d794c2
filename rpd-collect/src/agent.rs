//! The record of an agent: the SDK's struct as bytes, so that a later reader may use more of its fields.

use std::ffi::c_void;
use std::mem::offset_of;

use rocprofiler_sdk_sys::{
    rocprofiler_agent_cache_t, rocprofiler_agent_io_link_t, rocprofiler_agent_mem_bank_t,
    rocprofiler_agent_v0_t,
};
use rpd_spool::format::AgentRecord;
use rpd_spool::record::RecordKind;

use crate::recording::meta;
use crate::recording::text::text;

/// No agent struct is this large; a larger size is not used.
const LARGEST: usize = 4096;

/// Writes an agent to the meta stream.
///
/// # Safety
///
/// `agent` points to an agent struct of version 0, and `known` is its part in the layout of this build; what it points to is valid.
pub(crate) unsafe fn record(agent: *const c_void, known: &rocprofiler_agent_v0_t) {
    let mut tail = Vec::new();
    let mut put = |bytes: &[u8]| {
        tail.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        tail.extend_from_slice(bytes);
    };
    let size = usize::try_from(known.size).unwrap_or(0).min(LARGEST);
    // SAFETY: the struct has the bytes that its size states; the arrays have the lengths in the fields beside them; texts
    // are valid like the struct. Fields that the size does not cover are null or 0 in `known`.
    unsafe {
        put(bytes_of(agent.cast::<u8>(), size));
        put(bytes_of(known.mem_banks, known.mem_banks_count as usize));
        put(bytes_of(known.caches, known.caches_count as usize));
        put(bytes_of(known.io_links, known.io_links_count as usize));
        for string in [
            known.name,
            known.vendor_name,
            known.product_name,
            known.model_name,
        ] {
            put(text(string));
        }
    }
    let record = AgentRecord {
        header: RecordKind::Agent.head(tail.len()),
        handle: known.id.handle,
    };
    meta::write(&record, &tail);
}

// The structs are stored as bytes; this is where their readers look for what.
const _: () = {
    use rpd_spool::agent;
    assert!(offset_of!(rocprofiler_agent_v0_t, r#type) == agent::TYPE_OFFSET);
    assert!(offset_of!(rocprofiler_agent_v0_t, uuid) == agent::UUID_OFFSET);
    assert!(size_of::<rocprofiler_agent_mem_bank_t>() == agent::MEMORY_BANK_SIZE);
    assert!(size_of::<rocprofiler_agent_cache_t>() == agent::CACHE_SIZE);
    assert!(size_of::<rocprofiler_agent_io_link_t>() == agent::IO_LINK_SIZE);
};

#[expect(non_camel_case_types, reason = "as the lists of properties spell it")]
type dim3 = [u32; 3];

/// The size of a field.
const fn size_of_field<T, F>(_: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// Checks a list of properties.
macro_rules! check {
    ($name:ident { $($field:ident: $type:ident = $offset:literal,)* }) => {
        const _: () = {
            $(
                assert!(offset_of!($name, $field) == $offset);
                assert!(size_of_field(|of: &$name| &of.$field) == size_of::<$type>());
            )*
        };
    };
}

rpd_spool::agent_properties!(check, rocprofiler_agent_v0_t);
rpd_spool::memory_bank_properties!(check, rocprofiler_agent_mem_bank_t);
rpd_spool::cache_properties!(check, rocprofiler_agent_cache_t);
rpd_spool::io_link_properties!(check, rocprofiler_agent_io_link_t);

/// The bytes of an array.
///
/// # Safety
///
/// `array` is null or points to `count` elements without padding.
unsafe fn bytes_of<'a, T>(array: *const T, count: usize) -> &'a [u8] {
    if array.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: as this function demands.
    unsafe { std::slice::from_raw_parts(array.cast(), count * size_of::<T>()) }
}
