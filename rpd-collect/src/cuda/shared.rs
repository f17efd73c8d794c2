//! What calls, device work and markers need of the recording; prepared by the first of CUPTI and NVTX that this process uses.

use std::sync::OnceLock;

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_tracing_kind_t as BufferKind,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
};
use rpd_spool::format::{PROVIDER_CUDA, space};
use rpd_spool::options::CollectorOptions;

use super::{flusher, sampling};
use crate::lifecycle::signals;
use crate::names::{self, Catalogue};
use crate::recording::kinds::{self, KindNames};
use crate::recording::process::Process;
use crate::recording::stacks::{self, Selection};
use crate::recording::switch::{self, Switched};

/// Distance of the numbers of CUDA's kinds from those of the SDK that this build knows: later SDKs have more.
const DISTANCE: u32 = 8;

/// Number of the operation in the kind MEMORY_COPY that fills memory; the SDK's own end before it.
pub(super) const MEMORY_SET: u32 = 5;

/// A kind of calls, with what is recorded of all of them.
pub(super) struct CallKind {
    /// Number of the kind in records.
    pub(super) number: u16,
    /// Operations by number.
    pub(super) names: KindNames,
    /// Operations whose stacks are recorded.
    pub(super) stacks: Option<Selection>,
}

/// What is known once this provider records the process.
pub(super) struct Shared {
    /// Calls of the runtime.
    pub(super) runtime: CallKind,
    /// Calls of the driver.
    pub(super) driver: CallKind,
    /// Marks and ranges.
    pub(super) markers: CallKind,
    /// Whether no other provider recorded the process when this one began.
    pub(super) alone: bool,
}

static SHARED: OnceLock<Shared> = OnceLock::new();

/// What was prepared; `None` before.
#[inline]
pub(super) fn get() -> Option<&'static Shared> {
    SHARED.get()
}

fn cuda_kind(number: u32, name: &'static str) -> KindNames {
    let operations = names::operations(name).lines().zip(1..);
    KindNames {
        number,
        name: name.into(),
        operations: operations
            .map(|(name, number)| (number, name.into()))
            .collect(),
    }
}

/// Prepares the recording of this process, once.
pub(super) fn prepare(process: &Process) -> &'static Shared {
    SHARED.get_or_init(|| {
        let options = &process.options;
        let alone = process.provider_version() == 0;
        let catalogue = Catalogue::new();
        if alone {
            process.set_provider_version(PROVIDER_CUDA);
            catalogue.record();
        }
        let first = CallbackKind::LAST.0 + DISTANCE;
        let runtime = cuda_kind(first, "CUDA_API");
        let driver = cuda_kind(first + 1, "CUDA_DRIVER_API");
        let memory_copy = catalogue.kind("MEMORY_COPY").map(|kind| KindNames {
            number: kind.number,
            name: "MEMORY_COPY".into(),
            operations: vec![(MEMORY_SET.cast_signed(), "MEMORY_SET".into())],
        });
        let own = [runtime, driver];
        kinds::record(space::CALLBACK, &own);
        kinds::record(space::CALLBACK, memory_copy.as_slice());
        let first = BufferKind::LAST.0 + DISTANCE;
        kinds::record(
            space::BUFFER,
            &[
                cuda_kind(first, "CUDA_API"),
                cuda_kind(first + 1, "CUDA_DRIVER_API"),
            ],
        );
        let [runtime, driver] = own;
        stacks::prepare(options);
        if alone {
            let operations = [&runtime, &driver]
                .into_iter()
                .flat_map(|kind| &kind.operations);
            let names = operations.map(|(_, name)| &**name);
            stacks::note_useless_globs(&options.stacks, names.chain(catalogue.operations()));
        }
        let markers = catalogue.kind("MARKER_CORE_RANGE_API").map_or_else(
            || cuda_kind(0, ""),
            |kind| KindNames {
                number: kind.number,
                name: kind.name.clone(),
                operations: kind.operations.clone(),
            },
        );
        let shared = Shared {
            runtime: with_stacks(options, runtime),
            driver: with_stacks(options, driver),
            markers: with_stacks(options, markers),
            alone,
        };
        switch::configure(options, Box::new(Traces));
        if alone {
            switch::begin();
        }
        signals::prepare();
        shared
    })
}

fn with_stacks(options: &CollectorOptions, names: KindNames) -> CallKind {
    CallKind {
        number: names.number as u16,
        stacks: Selection::from_options(&options.stacks, &names.operations),
        names,
    }
}

/// Callbacks look at the switch themselves, and device work at the call that submitted it.
struct Traces;

impl Switched for Traces {
    fn trace(&self, on: bool) {
        // What was sampled before the change belongs to the time before it.
        sampling::fetch(!on);
    }

    fn count_paused(&self, _on: bool) {}

    fn flush(&self) {
        flusher::flush();
    }
}
