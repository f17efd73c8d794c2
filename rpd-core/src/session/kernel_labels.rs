//! Names of a session's kernels in files.

use std::collections::HashMap;

use super::{DispatchTable, Session};
use crate::ids::KernelId;
use crate::options::KernelNames;
use crate::spool::kernel_name::{formatted, spellings, without_symbol};

/// The names of all kernels of a session, formatted as the options say.
#[derive(Debug)]
pub struct KernelLabels<'a> {
    session: &'a Session,
    rename: bool,
    formatted: HashMap<KernelId, String>,
}

impl<'a> KernelLabels<'a> {
    /// Formats the name of every kernel of `session`.
    pub fn new(session: &'a Session, names: KernelNames) -> KernelLabels<'a> {
        let form = |name: &str| formatted(name, names).into_owned();
        KernelLabels::in_form(session, names, form)
    }

    /// Labels that are the names of the symbols as rocprofv3 demangles them and nothing else: those of descriptors end
    /// in ` [clone .kd]`. No region renames a kernel.
    pub fn of_symbols(session: &'a Session) -> KernelLabels<'a> {
        let names = KernelNames {
            original: true,
            ..KernelNames::default()
        };
        KernelLabels::in_form(session, names, |name| spellings(name, names).demangled)
    }

    fn in_form(
        session: &'a Session,
        names: KernelNames,
        form: impl Fn(&str) -> String,
    ) -> KernelLabels<'a> {
        let symbols = session.kernel_symbols.iter();
        let mut formatted_names: HashMap<KernelId, String> = symbols
            .map(|symbol| (symbol.id, form(&symbol.name)))
            .collect();
        let counted = &session.counted.dispatches;
        for &kernel in session.dispatches.kernel.iter().chain(&counted.kernel) {
            formatted_names
                .entry(kernel)
                .or_insert_with(|| without_symbol(kernel.0, names));
        }
        KernelLabels {
            session,
            rename: names.rename,
            formatted: formatted_names,
        }
    }

    /// The formatted name of a kernel, whether or not the region it ran in renames it.
    pub fn formatted(&self, kernel: KernelId) -> &str {
        self.formatted.get(&kernel).map_or("", String::as_str)
    }

    /// The name of dispatch `index` of [`Session::dispatches`]: the message of its region, when kernels are renamed
    /// and it has one.
    pub fn dispatch(&self, index: usize) -> &str {
        self.of(&self.session.dispatches, index)
    }

    /// The name of dispatch `index` of [`Session::counted`], by the rule for traced dispatches.
    pub fn counted(&self, index: usize) -> &str {
        self.of(&self.session.counted.dispatches, index)
    }

    fn of(&self, dispatches: &DispatchTable, index: usize) -> &str {
        match self.region_of(dispatches, index) {
            Some(region) if self.rename => region,
            _ => self.formatted(dispatches.kernel[index]),
        }
    }

    /// The message of the region that dispatch `index` ran in; `None` when it ran in none.
    pub fn region(&self, index: usize) -> Option<&'a str> {
        self.region_of(&self.session.dispatches, index)
    }

    fn region_of(&self, dispatches: &DispatchTable, index: usize) -> Option<&'a str> {
        let number = dispatches.region[index].checked_sub(1)?;
        let region = self.session.regions.get(number as usize)?;
        Some(self.session.strings.get(region.message))
    }
}
