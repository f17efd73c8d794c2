//! Selection of the dispatches that are counted: those of kernels whose name passes the filters, in the selected
//! iterations.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::path::Path;

use rpd_spool::kernel_filter::Matcher;
use rpd_spool::kernel_name::{self, KernelNames};
use rpd_spool::options::{CounterOptions, IterationRange};
use rpd_spool::{EXCLUDE_FILE, INCLUDE_FILE};

use super::fork::ForkHook;

/// The name of kernels that were never registered.
const UNKNOWN: &str = "0";

static FORK: ForkHook = ForkHook::new();

/// A kernel that was registered or dispatched.
#[derive(Clone, Copy)]
struct KnownKernel {
    /// Whether the kernel's name passes the filters.
    selected: bool,
    /// Number of the kernel's dispatches so far, if it is selected.
    launches: u64,
}

/// The kernels and iterations that are counted.
pub(crate) struct Selection {
    include: Option<Matcher>,
    exclude: Option<Matcher>,
    names: KernelNames,
    iterations: Vec<IterationRange>,
    /// Whether kernels that were never registered are selected.
    unknown: bool,
    kernels: UnsafeCell<HashMap<u64, KnownKernel>>,
}

// SAFETY: `kernels` is only touched with the lock of [`FORK`] held.
unsafe impl Sync for Selection {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Selection {}

impl Selection {
    /// Reads the filters in the run's directory.
    ///
    /// # Errors
    /// The name of the filter that cannot be used.
    pub(crate) fn load(options: &CounterOptions, run: &Path) -> Result<Selection, &'static str> {
        let matcher = |wanted: bool, file: &'static str| {
            if wanted {
                std::fs::read(run.join(file))
                    .ok()
                    .and_then(Matcher::from_bytes)
                    .map(Some)
                    .ok_or(file)
            } else {
                Ok(None)
            }
        };
        let mut selection = Selection {
            include: matcher(options.include, INCLUDE_FILE)?,
            exclude: matcher(options.exclude, EXCLUDE_FILE)?,
            names: KernelNames {
                mangled: options.mangled,
                truncate: options.truncate,
                rename: false,
                original: options.original_names,
            },
            iterations: options.iterations.clone(),
            unknown: true,
            kernels: UnsafeCell::default(),
        };
        selection.unknown = selection.passes(UNKNOWN);
        Ok(selection)
    }

    /// Whether a kernel of this name, formatted, is counted.
    fn passes(&self, name: &str) -> bool {
        let included = self.include.as_ref().is_none_or(|only| only.is_match(name));
        included && !self.exclude.as_ref().is_some_and(|not| not.is_match(name))
    }

    /// Notes the name `raw` under which a kernel was registered: the one time that it is matched.
    pub(crate) fn registered(&self, id: u64, raw: &[u8]) {
        if self.include.is_none() && self.exclude.is_none() {
            return;
        }
        let raw = String::from_utf8_lossy(raw);
        let kernel = KnownKernel {
            selected: self.passes(&kernel_name::formatted(&raw, self.names)),
            launches: 0,
        };
        self.with(|kernels| kernels.insert(id, kernel));
    }

    /// Whether every dispatch is selected.
    pub(crate) fn selects_all(&self) -> bool {
        self.include.is_none() && self.exclude.is_none() && self.iterations.is_empty()
    }

    /// Whether this dispatch of a kernel is to be counted; it advances the kernel's iteration.
    pub(crate) fn selects(&self, kernel: u64) -> bool {
        if self.selects_all() {
            return true;
        }
        let iteration = self.with(|kernels| {
            let kernel = kernels.entry(kernel).or_insert(KnownKernel {
                selected: self.unknown,
                launches: 0,
            });
            kernel.launches += u64::from(kernel.selected);
            kernel.selected.then_some(kernel.launches)
        });
        let Some(iteration) = iteration.flatten() else {
            return false;
        };
        let within = |range: &IterationRange| (range.first..=range.last).contains(&iteration);
        self.iterations.is_empty() || self.iterations.iter().any(within)
    }

    /// `None` when this very thread holds the lock: a signal handler interrupted it.
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<u64, KnownKernel>) -> T) -> Option<T> {
        let _guard = FORK.lock()?;
        // SAFETY: the lock is held.
        Some(act(unsafe { &mut *self.kernels.get() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(iterations: &[(u64, u64)]) -> Selection {
        let options = CounterOptions {
            iterations: iterations
                .iter()
                .map(|&(first, last)| IterationRange { first, last })
                .collect(),
            ..CounterOptions::default()
        };
        Selection::load(&options, Path::new("/")).expect("no filters")
    }

    #[test]
    fn selection_counts_iterations_per_kernel() {
        let selection = selection(&[(2, 3), (5, 5), (9, 7)]);
        let selected: Vec<bool> = (0..9).map(|_| selection.selects(1)).collect();
        assert_eq!(
            selected,
            [false, true, true, false, true, false, false, false, false]
        );
        assert!(!selection.selects(2));
        assert!(selection.selects(2));
    }

    #[test]
    fn selection_without_filters_selects_all_dispatches() {
        let selection = selection(&[]);
        selection.registered(7, b"kernel.kd");
        assert!(selection.selects(7) && selection.selects(0));
    }

    #[test]
    fn selection_names_a_filter_that_cannot_be_read() {
        let options = CounterOptions {
            include: true,
            ..CounterOptions::default()
        };
        let error = Selection::load(&options, Path::new("/nowhere")).err();
        assert_eq!(error, Some(INCLUDE_FILE));
    }
}
