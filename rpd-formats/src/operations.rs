//! Numbers of kinds and operations, as records of JSON and Perfetto refer to them.

use std::collections::HashMap;

use rpd_core::domain::Kind;
use rpd_core::ids::StringId;
use rpd_core::session::Session;

/// An operation that occurs in a session.
pub(crate) struct Operation {
    pub(crate) kind: Kind,
    pub(crate) name: StringId,
    /// Position of its kind in [`Operations::buffers`].
    pub(crate) kind_number: usize,
    /// Position of its name there.
    pub(crate) number: usize,
}

/// Names of a kind and of its operations.
type Names = (String, Vec<String>);

/// All operations of a session, and the tables of names in which they are numbered.
pub(crate) struct Operations {
    /// The operations that occur.
    pub(crate) list: Vec<Operation>,
    /// Names by number of the provider's callback kinds.
    pub(crate) callbacks: Vec<Names>,
    /// Names by number of its buffer kinds, and of whatever else occurs.
    pub(crate) buffers: Vec<Names>,
    /// Kind and operation of a completed dispatch.
    pub(crate) dispatch: (usize, usize),
    /// By name: index into `list` plus 1.
    by_name: Vec<u32>,
    /// For names that occur in several kinds.
    others: HashMap<(Kind, StringId), u32>,
    kinds: HashMap<Kind, usize>,
}

impl Operations {
    pub(crate) fn new(session: &Session) -> Operations {
        let at = session.callback_kinds.min(session.provider_names.len());
        let (callbacks, buffers) = session.provider_names.split_at(at);
        let mut operations = Operations {
            list: Vec::new(),
            callbacks: callbacks.to_vec(),
            buffers: buffers.to_vec(),
            dispatch: (0, 0),
            by_name: vec![0; session.strings.len()],
            others: HashMap::new(),
            kinds: HashMap::new(),
        };
        if operations.buffers.is_empty() {
            // Not from a provider (a database): number 0 names no kind there either.
            operations.buffers.push(("NONE".to_owned(), Vec::new()));
        }
        let api = &session.api;
        for (&kind, &name) in api.kind.iter().zip(&api.operation) {
            operations.add(session, kind, name);
        }
        for (kind, names) in [
            (Kind::MemoryCopy, &session.copies.operation),
            (Kind::MemoryAllocation, &session.allocations.operation),
            (Kind::ScratchMemory, &session.scratch.operation),
        ] {
            for &name in names {
                operations.add(session, kind, name);
            }
        }
        let kind = operations.kind(Kind::KernelDispatch);
        operations.dispatch = (kind, operations.number(kind, "KERNEL_DISPATCH_COMPLETE"));
        operations
    }

    /// Index into [`Operations::list`]. The operation must be one of the session's.
    #[inline]
    pub(crate) fn index(&self, kind: Kind, name: StringId) -> usize {
        self.find(kind, name).unwrap_or(0)
    }

    #[inline]
    fn find(&self, kind: Kind, name: StringId) -> Option<usize> {
        let index = (*self.by_name.get(name.0 as usize)?).checked_sub(1)? as usize;
        if self.list[index].kind == kind {
            return Some(index);
        }
        self.others.get(&(kind, name)).map(|&index| index as usize)
    }

    #[inline]
    fn add(&mut self, session: &Session, kind: Kind, name: StringId) {
        if self.find(kind, name).is_none() {
            self.add_new(session, kind, name);
        }
    }

    #[cold]
    fn add_new(&mut self, session: &Session, kind: Kind, name: StringId) {
        let kind_number = self.kind(kind);
        let number = self.number(kind_number, session.strings.get(name));
        let index = self.list.len() as u32;
        self.list.push(Operation {
            kind,
            name,
            kind_number,
            number,
        });
        let slot = name.0 as usize;
        if self.by_name.len() <= slot {
            self.by_name.resize(slot + 1, 0);
        }
        match &mut self.by_name[slot] {
            free @ 0 => *free = index + 1,
            _ => {
                self.others.insert((kind, name), index);
            }
        }
    }

    /// The number of a kind: that of the buffer service, by the name in files or else the provider's; appended when
    /// the provider has neither.
    fn kind(&mut self, kind: Kind) -> usize {
        if let Some(&number) = self.kinds.get(&kind) {
            return number;
        }
        let position = |name: &str| self.buffers.iter().position(|(other, _)| other == name);
        let number = position(kind.file_name())
            .or_else(|| position(kind.provider_name()))
            .unwrap_or_else(|| {
                self.buffers.push((kind.file_name().to_owned(), Vec::new()));
                self.buffers.len() - 1
            });
        self.kinds.insert(kind, number);
        number
    }

    fn number(&mut self, kind: usize, name: &str) -> usize {
        let names = &mut self.buffers[kind].1;
        names
            .iter()
            .position(|other| other == name)
            .unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpd_core::ids::Nanoseconds;

    fn session(calls: &[(Kind, &str)]) -> Session {
        let mut session = Session::default();
        session.strings.intern("");
        for (kind, name) in calls {
            let name = session.strings.intern(name);
            session.api.kind.push(*kind);
            session.api.operation.push(name);
            session.api.start.push(Nanoseconds(0));
        }
        session
    }

    #[test]
    fn numbers_are_the_providers_where_it_has_them() {
        let mut session = session(&[
            (Kind::HipRuntime, "hipFree"),
            (Kind::HsaCore, "hsa_init"),
            (Kind::HipRuntime, "hipNew"),
            (Kind::HipCompiler, "hipFree"),
        ]);
        let names = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        session.provider_names = vec![
            ("CALLBACK".to_owned(), Vec::new()),
            ("NONE".to_owned(), Vec::new()),
            ("HSA_CORE_API".to_owned(), names(&["hsa_x", "hsa_init"])),
            ("HIP_RUNTIME_API".to_owned(), names(&["hipWrong"])),
            ("HIP_RUNTIME_API_EXT".to_owned(), names(&["a", "hipFree"])),
        ];
        session.callback_kinds = 1;
        let operations = Operations::new(&session);
        let of = |index: usize| {
            let (kind, name) = (session.api.kind[index], session.api.operation[index]);
            let found = &operations.list[operations.index(kind, name)];
            (found.kind_number, found.number)
        };
        assert_eq!(
            [of(0), of(1), of(2), of(3)],
            [(3, 1), (1, 1), (3, 2), (4, 0)]
        );
        assert_eq!(operations.callbacks.len(), 1);
        assert_eq!(operations.buffers[5].0, "KERNEL_DISPATCH");
        assert_eq!(operations.dispatch, (5, 0));
    }
}
