//! The kernels that files and tables show of a session, and their names.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{DispatchTable, Session};
use crate::ids::KernelId;
use crate::options::KernelNames;
use crate::spool::kernel_name::{formatted, spellings, without_symbol};

/// The dispatches that are shown as the kernels of a session, with their names.
#[derive(Debug)]
pub struct Kernels<'a> {
    /// The table that [`Session::kernel_dispatches`] chooses.
    pub dispatches: &'a DispatchTable,
    labels: KernelLabels<'a>,
}

impl Kernels<'_> {
    /// The name of dispatch `index`.
    pub fn name(&self, index: usize) -> &str {
        self.labels.of(self.dispatches, index)
    }

    /// What the name of dispatch `index` depends on: its kernel, and its region if that can rename it.
    #[inline]
    pub fn key(&self, index: usize) -> (KernelId, u32) {
        self.labels.key(self.dispatches, index)
    }
}

impl Session {
    /// The dispatches that were traced; where none was, those that were counted. A database has both in one table, so
    /// kernels are shown whichever of the two was requested.
    pub fn kernel_dispatches(&self) -> &DispatchTable {
        if self.dispatches.is_empty() {
            &self.counted.dispatches
        } else {
            &self.dispatches
        }
    }

    /// The kernels of this session, named as `names` says.
    pub fn kernels(&self, names: KernelNames) -> Kernels<'_> {
        Kernels {
            dispatches: self.kernel_dispatches(),
            labels: KernelLabels::new(self, names),
        }
    }

    /// The name of a kernel in the form that `names` selects, without regard to regions that rename it.
    pub fn kernel_name(&self, kernel: KernelId, names: KernelNames) -> Cow<'_, str> {
        match self.kernel_symbol(kernel) {
            Some(symbol) => formatted(&symbol.name, names),
            None => without_symbol(kernel.0, names).into(),
        }
    }
}

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
    pub fn from_symbols(session: &'a Session) -> KernelLabels<'a> {
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

    /// The name of dispatch `index` of a table of the session, by the same rule.
    pub fn of(&self, dispatches: &DispatchTable, index: usize) -> &str {
        match self.region_of(dispatches, index) {
            Some(region) if self.rename => region,
            _ => self.formatted(dispatches.kernel[index]),
        }
    }

    /// What the name of dispatch `index` of a table depends on: its kernel, and its region if that can rename it.
    #[inline]
    pub fn key(&self, dispatches: &DispatchTable, index: usize) -> (KernelId, u32) {
        let region = if self.rename {
            dispatches.region[index]
        } else {
            0
        };
        (dispatches.kernel[index], region)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::CorrelationId;
    use crate::session::{KernelSymbol, Region};

    /// Two dispatches of kernel 1, which has a symbol, and one of kernel 9, which has none; the second is in a region.
    fn dispatches() -> DispatchTable {
        let mut table = DispatchTable::default();
        for (kernel, region) in [(1, 0), (1, 1), (9, 0)] {
            table.kernel.push(KernelId(kernel));
            table.region.push(region);
            table.start.push(Default::default());
        }
        table
    }

    fn session() -> Session {
        let mut session = Session::default();
        session.strings.intern("");
        let message = session.strings.intern("solve");
        session.regions.push(Region {
            message,
            correlation: CorrelationId(1),
        });
        session.kernel_symbols.push(KernelSymbol {
            id: KernelId(1),
            name: "_Z3addPf.kd".to_owned(),
            ..KernelSymbol::default()
        });
        session
    }

    fn names(session: &Session, rename: bool) -> Vec<String> {
        let kernels = session.kernels(KernelNames {
            rename,
            ..KernelNames::default()
        });
        let indices = kernels.dispatches.indices();
        indices
            .map(|index| kernels.name(index).to_owned())
            .collect()
    }

    #[test]
    fn kernels_are_the_traced_dispatches_and_without_any_the_counted_ones() {
        let mut session = session();
        assert!(names(&session, false).is_empty());
        session.counted.dispatches = dispatches();
        assert_eq!(names(&session, false).len(), 3);
        session.dispatches.kernel.push(KernelId(1));
        session.dispatches.region.push(0);
        session.dispatches.start.push(Default::default());
        assert_eq!(names(&session, false), ["add(float*)"]);
    }

    #[test]
    fn kernels_are_named_by_region_then_symbol_then_number() {
        let mut session = session();
        session.dispatches = dispatches();
        let without_symbol = "kernel 9 (no symbol)";
        assert_eq!(
            names(&session, false),
            ["add(float*)", "add(float*)", without_symbol]
        );
        assert_eq!(
            names(&session, true),
            ["add(float*)", "solve", without_symbol]
        );
        let names = KernelNames::default();
        assert_eq!(session.kernel_name(KernelId(9), names), without_symbol);
        let key = |rename, index| {
            let kernels = session.kernels(KernelNames { rename, ..names });
            kernels.key(index)
        };
        assert_eq!(key(false, 0), key(false, 1));
        assert_ne!(key(true, 0), key(true, 1));
    }
}
