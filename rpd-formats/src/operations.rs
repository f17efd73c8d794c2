//! Numbers of kinds and operations, to which records of JSON and Perfetto refer.

use std::collections::HashMap;

use rpd_core::domain::Kind;
use rpd_core::ids::OperationId;
use rpd_core::session::{Session, event_operation_name};
use rpd_core::spool::format::event_operation;

/// Names of a kind and of its operations.
type Names = (String, Vec<String>);

/// The numbers of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbers {
    /// Position of its kind in [`OperationNumbers::buffers`].
    pub(crate) kind: usize,
    /// Position of its name there.
    pub(crate) operation: usize,
}

/// Numbers of the operations of a session, and the tables of names that they are positions in.
pub(crate) struct OperationNumbers {
    /// Names by number of the provider's callback kinds.
    pub(crate) callbacks: Vec<Names>,
    /// Names by number of its buffer kinds, and of the other kinds in the session.
    pub(crate) buffers: Vec<Names>,
    /// Operations of a completed dispatch.
    pub(crate) dispatch: Numbers,
    /// Number of the kind of graph launches; 0 in a session without any.
    pub(crate) graph_launches: usize,
    /// Number of the kind of HIP events; 0 in a session without any.
    pub(crate) hip_events: usize,
    by_id: Vec<Numbers>,
    kinds: HashMap<Kind, usize>,
}

impl OperationNumbers {
    pub(crate) fn new(session: &Session) -> OperationNumbers {
        let at = session.callback_kinds.min(session.provider_names.len());
        let (callbacks, buffers) = session.provider_names.split_at(at);
        let mut numbers = OperationNumbers {
            callbacks: callbacks.to_vec(),
            buffers: buffers.to_vec(),
            dispatch: Numbers {
                kind: 0,
                operation: 0,
            },
            graph_launches: 0,
            hip_events: 0,
            by_id: Vec::with_capacity(session.operations.len()),
            kinds: HashMap::new(),
        };
        if numbers.buffers.is_empty() {
            // Not from a provider (a database): number 0 names no kind there either.
            numbers.buffers.push(("NONE".to_owned(), Vec::new()));
        }
        for operation in session.operations.iter() {
            let name = session.strings.get(operation.name);
            let found = numbers.find(operation.kind, operation.number, name);
            numbers.by_id.push(found);
        }
        numbers.dispatch = numbers.find(Kind::KernelDispatch, None, "KERNEL_DISPATCH_COMPLETE");
        if !session.graph_launches.is_empty() {
            numbers.graph_launches = numbers.named("HIP_GRAPH", &[]);
        }
        if !session.hip_events.is_empty() {
            // Those of CUDA only where there are some.
            let table = &session.hip_events;
            let last = table.indices().map(|index| table.operation[index]).max();
            let last = last.unwrap_or_default().max(event_operation::WAIT);
            let operations = (0..=last).map(event_operation_name);
            let operations: Vec<&str> = operations.collect();
            numbers.hip_events = numbers.named("HIP_EVENT", &operations);
        }
        numbers
    }

    /// The number of the buffer kind with this name, which is appended with its operations when the provider lacks it.
    fn named(&mut self, name: &str, operations: &[&str]) -> usize {
        let found = self.buffers.iter().position(|(other, _)| other == name);
        let number = found.unwrap_or_else(|| {
            self.buffers.push((name.to_owned(), Vec::new()));
            self.buffers.len() - 1
        });
        // The provider may have the kind, and not all of the operations.
        let known = &mut self.buffers[number].1;
        let others = operations.iter().skip(known.len());
        known.extend(others.map(|&operation| operation.to_owned()));
        number
    }

    /// The numbers of an operation, which must be one of the session's.
    #[inline]
    pub(crate) fn of(&self, operation: OperationId) -> Numbers {
        self.by_id[operation.0 as usize]
    }

    /// The numbers of all operations in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Numbers> {
        self.by_id.iter().copied()
    }

    fn find(&mut self, kind: Kind, number: Option<u32>, name: &str) -> Numbers {
        let kind = self.kind(kind);
        let names = &mut self.buffers[kind].1;
        // Both services of a provider number operations alike.
        let number = number.and_then(|number| usize::try_from(number).ok());
        let number = number.filter(|&number| names.get(number).is_some_and(|at| at == name));
        let operation = number
            .or_else(|| names.iter().position(|other| other == name))
            .unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            });
        Numbers { kind, operation }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_numbers_are_the_providers_where_it_has_them() {
        let mut session = Session::default();
        let ids = [
            (Kind::HipRuntime, "hipFree"),
            (Kind::HsaCore, "hsa_init"),
            (Kind::HipRuntime, "hipNew"),
            (Kind::HipCompiler, "hipFree"),
        ]
        .map(|(kind, name)| session.add_operation(kind, name));
        let names = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        session.provider_names = vec![
            ("CALLBACK".to_owned(), Vec::new()),
            ("NONE".to_owned(), Vec::new()),
            ("HSA_CORE_API".to_owned(), names(&["hsa_x", "hsa_init"])),
            ("HIP_RUNTIME_API".to_owned(), names(&["hipWrong"])),
            ("HIP_RUNTIME_API_EXT".to_owned(), names(&["a", "hipFree"])),
        ];
        session.callback_kinds = 1;
        let operations = OperationNumbers::new(&session);
        let of = |id| {
            let numbers = operations.of(id);
            (numbers.kind, numbers.operation)
        };
        assert_eq!(ids.map(of), [(3, 1), (1, 1), (3, 2), (4, 0)]);
        assert_eq!(operations.callbacks.len(), 1);
        assert_eq!(operations.buffers[5].0, "KERNEL_DISPATCH");
        let dispatch = operations.dispatch;
        assert_eq!((dispatch.kind, dispatch.operation), (5, 0));
    }
}
