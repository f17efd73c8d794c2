//! Fields of events of the kernel driver, under the names that databases of the original have for them.

use std::collections::HashMap;

use rpd_core::domain::Kind;
use rpd_core::ids::AgentHandle;
use rpd_core::session::{KfdEventRow, Session};

/// What an event is about, which decides on its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    Migration,
    Fault,
    Queue,
    Unmap,
    Dropped,
}

/// A kind of events, and what databases say of it.
pub(crate) struct KfdKind {
    pub(crate) kind: Kind,
    pub(crate) subject: Subject,
    /// Description of the counter that has the values of its events.
    pub(crate) description: &'static str,
}

const fn kind(kind: Kind, subject: Subject, description: &'static str) -> KfdKind {
    KfdKind {
        kind,
        subject,
        description,
    }
}

/// The kinds in the order of the provider's numbers.
#[rustfmt::skip]
pub(crate) const KINDS: [KfdKind; 8] = [
    kind(Kind::KfdEventPageMigrate, Subject::Migration, "KFD page migration events"),
    kind(Kind::KfdEventPageFault, Subject::Fault, "KFD page fault events"),
    kind(Kind::KfdEventQueue, Subject::Queue, "KFD queue eviction/restore events"),
    kind(Kind::KfdEventUnmapFromGpu, Subject::Unmap, "KFD unmap from GPU events"),
    kind(Kind::KfdEventDroppedEvents, Subject::Dropped, "KFD dropped_events events"),
    kind(Kind::KfdPageMigrate, Subject::Migration, "KFD page migration paired records"),
    kind(Kind::KfdPageFault, Subject::Fault, "KFD page fault paired records"),
    kind(Kind::KfdQueue, Subject::Queue, "KFD queue eviction/restore paired records"),
];

/// Place of a kind in [`KINDS`]; `None` for kinds that are not the driver's.
pub(crate) fn place(kind: Kind) -> Option<usize> {
    KINDS.iter().position(|known| known.kind == kind)
}

/// What events of a kind are about; `None` for kinds that are not the driver's.
pub(crate) fn subject(kind: Kind) -> Option<Subject> {
    place(kind).map(|place| KINDS[place].subject)
}

/// The number that stands for an event among counters: bytes of a range, an address, 1 of queues, or a number of dropped events.
pub(crate) fn value(subject: Subject, event: &KfdEventRow) -> u64 {
    match subject {
        Subject::Migration | Subject::Unmap => event.end_address.saturating_sub(event.address),
        Subject::Fault => event.address,
        Subject::Queue => 1,
        Subject::Dropped => event.count.into(),
    }
}

/// The fields of an event, in the order of databases. `agent` numbers agents; -1 is none.
pub(crate) fn fields(
    subject: Subject,
    event: &KfdEventRow,
    agent: impl Fn(AgentHandle) -> i64,
) -> Vec<(&'static str, String)> {
    let agent = |handle| agent(handle).to_string();
    match subject {
        Subject::Migration => vec![
            ("start_address", event.address.to_string()),
            ("end_address", event.end_address.to_string()),
            ("src_agent_id", agent(event.agent)),
            ("dst_agent_id", agent(event.dst_agent)),
            ("prefetch_agent_id", agent(event.prefetch_agent)),
            ("preferred_agent_id", agent(event.preferred_agent)),
            ("error_code", event.error.to_string()),
        ],
        Subject::Fault => vec![
            ("agent_id", agent(event.agent)),
            ("address", event.address.to_string()),
        ],
        Subject::Queue => vec![("agent_id", agent(event.agent))],
        Subject::Unmap => vec![
            ("agent_id", agent(event.agent)),
            ("start_address", event.address.to_string()),
            ("end_address", event.end_address.to_string()),
        ],
        Subject::Dropped => vec![("count", event.count.to_string())],
    }
}

/// Sets a field of an event to a value of [`fields`]; `agent` has the handle of a number. Returns whether the event has such a field
/// and the value is one.
pub(crate) fn set_field(
    event: &mut KfdEventRow,
    key: &str,
    value: &str,
    agent: impl Fn(i64) -> AgentHandle,
) -> bool {
    fn put<T>(place: &mut T, value: Option<T>) -> bool {
        let is_value = value.is_some();
        if let Some(value) = value {
            *place = value;
        }
        is_value
    }
    let handle = || value.parse().ok().map(&agent);
    match key {
        "start_address" | "address" => put(&mut event.address, value.parse().ok()),
        "end_address" => put(&mut event.end_address, value.parse().ok()),
        "src_agent_id" | "agent_id" => put(&mut event.agent, handle()),
        "dst_agent_id" => put(&mut event.dst_agent, handle()),
        "prefetch_agent_id" => put(&mut event.prefetch_agent, handle()),
        "preferred_agent_id" => put(&mut event.preferred_agent, handle()),
        "error_code" => put(&mut event.error, value.parse().ok()),
        "count" => put(&mut event.count, value.parse().ok()),
        _ => false,
    }
}

/// Numbers of the nodes of agents, for [`fields`].
pub(crate) fn nodes(session: &Session) -> HashMap<AgentHandle, i64> {
    let agents = session.agents.iter();
    agents
        .map(|agent| (agent.handle, agent.node_id.into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_in_the_order_of_their_numbers_in_recordings() {
        assert!(
            KINDS
                .iter()
                .map(|of| of.kind)
                .eq(rpd_core::domain::KFD_KINDS)
        );
    }

    #[test]
    fn fields_are_set_from_their_texts() {
        let event = KfdEventRow {
            agent: AgentHandle(1),
            dst_agent: AgentHandle(2),
            preferred_agent: AgentHandle(3),
            address: u64::MAX - 1,
            end_address: u64::MAX,
            error: -12,
            ..KfdEventRow::default()
        };
        let number = |handle: AgentHandle| match handle.0 {
            0 => -1,
            handle => handle.cast_signed() - 1,
        };
        let mut read = KfdEventRow::default();
        for (key, value) in fields(Subject::Migration, &event, number) {
            let agent = |node: i64| AgentHandle((node + 1).cast_unsigned());
            assert!(set_field(&mut read, key, &value, agent), "{key}");
        }
        assert_eq!(read, event);
        assert!(!set_field(&mut read, "count", "many", |_| AgentHandle(0)));
        assert!(!set_field(&mut read, "colour", "1", |_| AgentHandle(0)));
    }
}
