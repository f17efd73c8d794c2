//! Kinds and operations under the numbers that the SDK gives them, so that outputs do not depend on the provider.

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_tracing_kind_t as BufferKind,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
};
use rpd_spool::format::space;

use crate::recording::kinds::{self, KindNames};

mod generated {
    include!(concat!(env!("OUT_DIR"), "/operations.rs"));

    /// The operations of a kind, a line each from its first number.
    pub(super) fn operations(kind: &str) -> &'static str {
        // Extended kinds share the operations of the plain ones.
        let plain = kind.strip_suffix("_EXT").unwrap_or(kind);
        let find = |name: &str| KINDS.iter().find(|(kind, _)| *kind == name);
        find(kind)
            .or_else(|| find(plain))
            .map_or("", |found| found.1)
    }
}

/// The operations of a kind, a line each from its first number, which is 1 for CUDA and 0 for others.
pub(crate) fn operations(kind: &str) -> &'static str {
    generated::operations(kind)
}

fn kind(number: u32, c_name: &'static std::ffi::CStr, prefix: &str) -> Option<KindNames> {
    let name = c_name.to_str().ok()?.strip_prefix(prefix)?;
    let operations = generated::operations(name).lines().zip(0..);
    Some(KindNames {
        number,
        name: name.into(),
        operations: operations
            .map(|(name, number)| (number, name.into()))
            .collect(),
    })
}

/// Every kind of the callback service.
pub(super) struct Catalogue(Vec<KindNames>);

impl Catalogue {
    pub(super) fn new() -> Catalogue {
        let known = CallbackKind::ALL.iter();
        let known = known.filter(|(kind, _)| *kind != CallbackKind::LAST);
        Catalogue(
            known
                .filter_map(|(number, name)| kind(number.0, name, "ROCPROFILER_CALLBACK_TRACING_"))
                .collect(),
        )
    }

    /// The kind called `name`.
    pub(super) fn kind(&self, name: &str) -> Option<&KindNames> {
        self.0.iter().find(|kind| kind.name == name)
    }

    /// The names of all operations.
    pub(super) fn operations(&self) -> impl Iterator<Item = &str> + Clone {
        let operations = self.0.iter().flat_map(|kind| &kind.operations);
        operations.map(|(_, name)| &**name)
    }

    /// Writes all names to the meta stream, including those of the buffer service: outputs list both.
    pub(super) fn record(&self) {
        kinds::record(space::CALLBACK, &self.0);
        let known = BufferKind::ALL.iter();
        let buffer: Vec<KindNames> = known
            .filter(|(kind, _)| *kind != BufferKind::LAST)
            .filter_map(|(number, name)| kind(number.0, name, "ROCPROFILER_BUFFER_TRACING_"))
            .collect();
        kinds::record(space::BUFFER, &buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogue_numbers_kinds_and_operations_as_the_sdk_does() {
        let names = Catalogue::new();
        let hip = names.kind("HIP_RUNTIME_API").expect("known");
        assert_eq!(hip.number, CallbackKind::HIP_RUNTIME_API.0);
        assert_eq!(hip.operation("hipApiName"), Some(0));
        let dispatches = names.kind("KERNEL_DISPATCH").expect("known");
        assert_eq!(dispatches.operation("KERNEL_DISPATCH_COMPLETE"), Some(2));
        assert!(names.kind("FROM_THE_FUTURE").is_none());
    }
}
