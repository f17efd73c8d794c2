//! Records of counters, their instances and counted values.

use std::collections::HashMap;
use std::io;

use zerocopy::FromBytes;

use super::super::{Counter, CounterDimension, CounterInstance, CounterValue, Session, ValueRange};
use super::note_damage;
use super::records::push_dispatch;
use crate::ids::{AgentHandle, CounterId};
use crate::spool::format::{self, CountedValue};
use crate::spool::reader::{ByteStrings, Record};
use crate::storage::column::{BATCH, Column, Storage};
use crate::storage::sorted::Sorter;

/// Counters, their instances and counted values as they were read. They are joined at the end, because the record of
/// a counter may follow its values.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Counters by agent and the provider's number of the counter, which agents of one architecture may share.
    counters: HashMap<(u64, u64), Counter>,
    /// Instances by the provider's number: the number of the instance's counter, and its positions.
    instances: HashMap<u64, (u64, Vec<(u64, u64)>)>,
    values: Column<CountedValue>,
    /// Ids of dispatches that were selected for counting.
    selected: Column<u64>,
}

impl Counters {
    pub(super) fn load_counter(&mut self, record: &Record<'_>) -> Option<()> {
        let (fixed, tail) = record.parse::<format::Counter>()?;
        let mut parts = ByteStrings(tail).map(Option::unwrap_or_default);
        let mut text = || Some(String::from_utf8_lossy(parts.next()?).into_owned());
        let (name, description, block, expression) = (text()?, text()?, text()?, text()?);
        let mut dimensions = Vec::new();
        // Dimensions follow in pairs until the record ends; a pair that is cut off is left out.
        while let (Some(numbers), Some(name)) = (parts.next(), parts.next()) {
            let [id, size] = <[u64; 2]>::read_from_bytes(numbers).ok()?;
            dimensions.push(CounterDimension {
                id,
                size,
                name: String::from_utf8_lossy(name).into_owned(),
            });
        }
        // A counter may be described more than once, always alike: the first record counts.
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

    pub(super) fn load_instance(&mut self, record: &Record<'_>) -> Option<()> {
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

    pub(super) fn load_counted(
        &mut self,
        record: &Record<'_>,
        session: &mut Session,
    ) -> Option<()> {
        let (fixed, tail) = record.parse::<format::CountedDispatch>()?;
        let values = tail.get(..(fixed.count as usize).checked_mul(size_of::<CountedValue>())?)?;
        push_dispatch(&mut session.counted.dispatches, &fixed.dispatch);
        session.counted.ranges.push(ValueRange {
            first: self.values.total() as u64,
            count: u64::from(fixed.count),
        });
        let values = values.chunks_exact(size_of::<CountedValue>());
        let values = values.filter_map(|value| CountedValue::read_from_bytes(value).ok());
        for value in values {
            self.values.push(value);
        }
        Some(())
    }

    /// Writes values to a file when there are many. To be called after each record.
    #[inline]
    pub(super) fn taken(&mut self, storage: &Storage) -> io::Result<()> {
        if self.values.len() >= storage.rows() {
            self.values.spill(storage)?;
        }
        if self.selected.len() >= storage.rows() {
            self.selected.spill(storage)?;
        }
        Ok(())
    }

    pub(super) fn load_selected(&mut self, record: &Record<'_>) -> Option<()> {
        let (fixed, _) = record.parse::<format::Selected>()?;
        self.selected.push(fixed.dispatch);
        Some(())
    }

    /// Moves counters, their instances and values to the session, each ordered by id. To be called when the counted
    /// dispatches can be read.
    pub(super) fn finish(mut self, session: &mut Session, storage: &Storage) -> io::Result<()> {
        let mut counters: Vec<Counter> = self.counters.into_values().collect();
        // In this order a counter's index in the session follows from its id and agent, and values can be sorted by it.
        counters.sort_by_key(|counter| (counter.id, counter.agent));
        let mut instances: Vec<_> = self.instances.into_iter().collect();
        instances.sort_by_key(|&(id, _)| id);
        let mut places: HashMap<(AgentHandle, u64), (u32, u32)> = HashMap::new();
        for (id, (counter, positions)) in instances {
            // The provider gives instances per architecture, so an instance belongs to the counter of every agent with
            // its id.
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
        // Values refer to instances by number, and those are only known when all records have been read: hence a second
        // pass.
        self.values.seal(storage)?;
        let recorded = self.values;
        let mut unknown = 0;
        let counted = &mut session.counted;
        let (mut ranges, mut values) = (Column::new(), Column::new());
        let mut of_one: Vec<CounterValue> = Vec::new();
        let mut until_release = BATCH;
        for (agent, range) in counted.dispatches.agent.iter().zip(&counted.ranges) {
            of_one.clear();
            for value in &recorded[range.first as usize..][..range.count as usize] {
                match places.get(&(*agent, value.instance)) {
                    Some(&(counter, instance)) => of_one.push(CounterValue {
                        counter,
                        instance,
                        value: value.value,
                    }),
                    None => unknown += 1,
                }
            }
            // The order in which the provider delivers values is not defined; readers rely on counter, then instance.
            of_one.sort_by_key(|value| (value.counter, value.instance));
            let range = ValueRange {
                first: values.total() as u64,
                count: of_one.len() as u64,
            };
            ranges.append(Some(storage), range)?;
            for value in &of_one {
                values.append(Some(storage), *value)?;
            }
            // Values are read in step with dispatches; what lies behind is not needed again and would count as memory.
            until_release = until_release.saturating_sub(of_one.len());
            if until_release == 0 {
                recorded.release();
                until_release = BATCH;
            }
        }
        ranges.seal(storage)?;
        values.seal(storage)?;
        counted.ranges = ranges;
        counted.values = values;
        // A dispatch that was selected and has no values was lost by the provider, which reports no error for it.
        self.selected.seal(storage)?;
        let came = counted.dispatches.dispatch.iter().map(|id| id.0);
        session.ledger.uncounted = missing(storage, self.selected.iter().copied(), came)?;
        if unknown > 0 {
            note_damage(
                &mut session.ledger.damage,
                format!(
                    "{unknown} counted values belong to counters that the recording does not describe"
                ),
            );
        }
        Ok(())
    }
}

/// Number of elements of `wanted` that are not in `found`.
fn missing(
    storage: &Storage,
    wanted: impl Iterator<Item = u64>,
    found: impl Iterator<Item = u64>,
) -> io::Result<u64> {
    let mut sorters = [Sorter::new(Some(storage)), Sorter::new(Some(storage))];
    for id in wanted {
        sorters[0].push(id)?;
    }
    for id in found {
        sorters[1].push(id)?;
    }
    let [wanted, found] = sorters;
    let mut found = found.finish()?.peekable();
    let mut missing = 0;
    for id in wanted.finish()? {
        while found.next_if(|next| *next < id).is_some() {}
        // A dispatch that runs several times was selected, and comes, as often.
        missing += u64::from(found.next_if_eq(&id).is_none());
    }
    Ok(missing)
}
