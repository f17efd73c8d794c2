//! Counters: what they are, and what was counted.

use std::collections::{HashMap, HashSet};

use zerocopy::{FromBytes, IntoBytes};

use super::super::{Counter, CounterDimension, CounterInstance, CounterValue, Session};
use super::note_damage;
use super::records::push_dispatch;
use crate::ids::{AgentHandle, CounterId, DispatchId};
use crate::spool::format::{self, CountedValue};
use crate::spool::reader::{Counted, Record};

/// Counters of the meta stream, and values until both are loaded: a counter's record may follow its values.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// By agent and the provider's id, which GPUs of one architecture may share.
    counters: HashMap<(u64, u64), Counter>,
    /// By the provider's id: counter id and positions.
    instances: HashMap<u64, (u64, Vec<(u64, u64)>)>,
    values: Vec<CountedValue>,
    /// Dispatches that were to be counted.
    selected: Vec<u64>,
}

impl Counters {
    pub(super) fn take_counter(&mut self, record: &Record<'_>) -> Option<()> {
        let (fixed, tail) = record.parse::<format::Counter>()?;
        let mut parts = Counted(tail).map(Option::unwrap_or_default);
        let mut text = || Some(String::from_utf8_lossy(parts.next()?).into_owned());
        let (name, description, block, expression) = (text()?, text()?, text()?, text()?);
        let mut dimensions = Vec::new();
        while let (Some(numbers), Some(name)) = (parts.next(), parts.next()) {
            let [id, size] = <[u64; 2]>::read_from_bytes(numbers).ok()?;
            dimensions.push(CounterDimension {
                id,
                size,
                name: String::from_utf8_lossy(name).into_owned(),
            });
        }
        self.counters
            .entry((fixed.agent, fixed.id))
            .or_insert(Counter {
                id: CounterId(fixed.id),
                agent: AgentHandle(fixed.agent),
                name,
                description,
                block,
                expression,
                is_constant: record.header.aux & 1 != 0,
                is_derived: record.header.aux & 2 != 0,
                dimensions,
                instances: Vec::new(),
            });
        Some(())
    }

    pub(super) fn take_instance(&mut self, record: &Record<'_>) -> Option<()> {
        let (fixed, tail) = record.parse::<format::CounterInstance>()?;
        let pairs = tail.get(..(fixed.count as usize).checked_mul(16)?)?;
        let positions = pairs
            .chunks_exact(16)
            .filter_map(|pair| <[u64; 2]>::read_from_bytes(pair).ok())
            .map(|[dimension, position]| (dimension, position))
            .collect();
        self.instances
            .entry(fixed.id)
            .or_insert((fixed.counter, positions));
        Some(())
    }

    pub(super) fn take_counted(
        &mut self,
        record: &Record<'_>,
        session: &mut Session,
    ) -> Option<()> {
        let (fixed, tail) = record.parse::<format::Counted>()?;
        let values = tail.get(..(fixed.count as usize).checked_mul(size_of::<CountedValue>())?)?;
        push_dispatch(&mut session.counted.dispatches, &fixed.dispatch);
        let first = self.values.len();
        self.values.resize(
            first + fixed.count as usize,
            CountedValue {
                instance: 0,
                value: 0.0,
            },
        );
        self.values[first..].as_mut_bytes().copy_from_slice(values);
        session.counted.ranges.push((first as u64, fixed.count));
        Some(())
    }

    pub(super) fn take_selected(&mut self, record: &Record<'_>) -> Option<()> {
        let (fixed, _) = record.parse::<format::Selected>()?;
        self.selected.push(fixed.dispatch);
        Some(())
    }

    /// Moves counters, their instances and the values to the session, each in the order of ids.
    pub(super) fn finish(self, session: &mut Session) {
        let mut counters: Vec<Counter> = self.counters.into_values().collect();
        counters.sort_by_key(|counter| (counter.id, counter.agent));
        let mut instances: Vec<_> = self.instances.into_iter().collect();
        instances.sort_by_key(|&(id, _)| id);
        let mut places: HashMap<(AgentHandle, u64), (u32, u32)> = HashMap::new();
        for (id, (counter, positions)) in instances {
            let first = counters.partition_point(|known| known.id.0 < counter);
            let of_agents = counters.iter_mut().zip(0..).skip(first);
            for (known, index) in of_agents.take_while(|(known, _)| known.id.0 == counter) {
                let instance = known.instances.len() as u32;
                places.insert((known.agent, id), (index, instance));
                known.instances.push(CounterInstance {
                    id,
                    positions: positions.clone(),
                });
            }
        }
        session.counters = counters;
        let mut unknown = 0;
        let counted = &mut session.counted;
        for (agent, (first, count)) in counted.dispatches.agent.iter().zip(&mut counted.ranges) {
            let from = counted.values.len();
            for value in &self.values[*first as usize..][..*count as usize] {
                match places.get(&(*agent, value.instance)) {
                    Some(&(counter, instance)) => counted.values.push(CounterValue {
                        counter,
                        instance,
                        value: value.value,
                    }),
                    None => unknown += 1,
                }
            }
            counted.values[from..].sort_by_key(|value| (value.counter, value.instance));
            *first = from as u64;
            *count = (counted.values.len() - from) as u32;
        }
        let came: HashSet<DispatchId> = counted.dispatches.dispatch.iter().copied().collect();
        let selected = self.selected.into_iter();
        session.ledger.uncounted = selected
            .filter(|id| !came.contains(&DispatchId(*id)))
            .count() as u64;
        if unknown > 0 {
            note_damage(
                &mut session.ledger.damage,
                format!(
                    "{unknown} counted values are of a counter that the recording does not name"
                ),
            );
        }
    }
}
