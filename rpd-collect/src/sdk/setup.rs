//! Helpers with which services configure themselves.

use rocprofiler_sdk_sys::{Functions, rocprofiler_context_id_t, rocprofiler_status_t};
use rpd_spool::options::CollectorOptions;

use super::names::Catalogue;
use super::provider::describe;
use crate::recording::kinds::KindNames;
use crate::recording::meta;

/// Kinds of libraries that most programs do not use and of which providers of the same ABI version have some or none.
/// The aggregate options include them, so their absence is not reported here; the front end reports it to users who request
/// one by name, from the names of all kinds, which are recorded.
const OPTIONAL: [&str; 3] = ["RCCL_API", "ROCDECODE_API", "ROCJPEG_API"];

/// Inputs of services during set-up.
pub(super) struct Setup<'a> {
    /// The SDK's functions.
    pub(super) functions: &'static Functions,
    /// Recording options.
    pub(super) options: &'a CollectorOptions,
    /// Names and numbers of kinds and operations.
    pub(super) names: Catalogue,
    /// The context of all traces; recording starts and stops it.
    pub(super) client: rocprofiler_context_id_t,
    /// The context that counts, if anything is counted.
    pub(super) counting: Option<rocprofiler_context_id_t>,
    /// Whether the provider will report that the HSA runtime is initialised, before that has any queue.
    pub(super) announces_hsa: bool,
}

impl Setup<'_> {
    /// Whether anything is recorded while recording is on.
    pub(super) fn records_anything(&self) -> bool {
        self.options.traces_anything() || self.options.counters.any()
    }

    /// Makes a context; notes the failure of `purpose` otherwise.
    pub(super) fn context(&self, purpose: &str) -> Option<rocprofiler_context_id_t> {
        let mut context = rocprofiler_context_id_t::default();
        // SAFETY: `context` is valid and holds handle 0.
        let status = unsafe { (self.functions.rocprofiler_create_context)(&mut context) };
        self.succeeded(status, purpose).then_some(context)
    }

    /// Starts a context.
    pub(super) fn start(&self, context: rocprofiler_context_id_t, purpose: &str) -> bool {
        // SAFETY: a context made by this provider.
        let status = unsafe { (self.functions.rocprofiler_start_context)(context) };
        self.succeeded(status, purpose)
    }

    /// Whether `status` is success; otherwise notes that `purpose` is not recorded.
    pub(super) fn succeeded(&self, status: rocprofiler_status_t, purpose: &str) -> bool {
        if status == rocprofiler_status_t::SUCCESS {
            return true;
        }
        let text = describe(self.functions, status);
        meta::note(&format!(
            "{purpose} is not recorded: the provider reports: {text}"
        ));
        false
    }

    /// The callback kind `name`, which the SDK has from the version `since` on. Notes its absence if the kind was requested by its
    /// own option: aggregates include it, and older providers are in use.
    pub(super) fn newer_callback_kind(&self, name: &str, since: &str) -> Option<&KindNames> {
        let found = self.names.callback(name);
        if found.is_none() && self.options.newer_sdk {
            note_newer(name, since);
        }
        found
    }

    /// The callback kind `name`; notes its absence, unless it is one of [`OPTIONAL`].
    pub(super) fn callback_kind(&self, name: &str) -> Option<&KindNames> {
        let found = self.names.callback(name);
        if found.is_none() && !OPTIONAL.contains(&name) {
            note_missing(name);
        }
        found
    }
}

/// Notes that this provider does not have `kind`, and the first version of the SDK that has it.
pub(super) fn note_newer(kind: &str, since: &str) {
    meta::note(&format!(
        "{kind} is not recorded: this provider does not have it; ROCprofiler-SDK {since} and later do"
    ));
}

/// Notes that this provider does not have `kind`.
pub(super) fn note_missing(kind: &str) {
    meta::note(&format!(
        "{kind} is not recorded: this provider does not have it"
    ));
}
