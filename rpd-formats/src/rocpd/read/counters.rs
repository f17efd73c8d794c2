//! Reads counters and counted values. Uses columns of later schema versions where the database has them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use rpd_core::column::{Column, Storage};
use rpd_core::ids::CounterId;
use rpd_core::session::{Counter, CounterDimension, CounterInstance, CounterValue};
use rpd_core::sorted::{Sorted, Sorter};
use rusqlite::types::ValueRef;
use rusqlite::{Result, Row};
use serde::Deserialize;
use serde_json::Value;

use super::super::sql::identifier;
use super::agent::number;
use super::by_event::{ByEvent, key};
use super::info::{Info, json};
use super::scan::{Source, bits, bytes, integer, text};

/// Columns of later schemas with the position of an instance: name, and the dimension with the provider's number.
const PLACES: [(&str, u64, &str); 5] = [
    ("xcc", 1, "DIMENSION_XCC"),
    ("shader_engine", 3, "DIMENSION_SHADER_ENGINE"),
    ("shader_array", 5, "DIMENSION_SHADER_ARRAY"),
    ("wgp", 6, "DIMENSION_WGP"),
    ("instance", 7, "DIMENSION_INSTANCE"),
];
/// Column of later schemas that is set for what was sampled, which is not counted per dispatch.
const SAMPLE: &str = "sample_id";
/// The component of counters in rocprofv3's databases.
const COMPONENT: &str = "rocm";
/// An instance that follows the one before.
const NEXT: u32 = u32::MAX;

/// Instances after it are those of a damaged database.
const LAST_INSTANCE: u32 = 1 << 20;

type InstancePlace = [Option<i64>; PLACES.len()];

#[derive(Deserialize)]
struct Extdata {
    rpd_instance: Option<u32>,
}

/// Whether the database has any value of a counter.
pub(super) fn any(source: &Source<'_>) -> Result<bool> {
    if columns(source, "rocpd_pmc_event")?.is_empty() {
        return Ok(false);
    }
    let condition = source.condition();
    let sql = format!("SELECT EXISTS (SELECT 1 FROM rocpd_pmc_event WHERE {condition})");
    source.connection.query_row(&sql, [], |row| row.get(0))
}

/// The names of a view's columns; empty when the view does not exist.
fn columns(source: &Source<'_>, view: &str) -> Result<Vec<String>> {
    let sql = format!("PRAGMA table_info({})", identifier(view));
    let mut statement = source.connection.prepare(&sql)?;
    let names = statement.query_map([], |row| row.get(1))?;
    names.collect()
}

/// Reads the counters into the session, in the order of their ids, and their numbers by id in the database.
fn describe(source: &Source<'_>, info: &mut Info) -> Result<HashMap<i64, u32>> {
    let mut numbers = HashMap::new();
    if columns(source, "rocpd_info_pmc")?.is_empty() {
        return Ok(numbers);
    }
    let wanted = "id, agent_id, name, description, block, expression, is_constant, is_derived, component, extdata";
    let mut counters: Vec<(i64, Counter)> = Vec::new();
    let agents = &info.agents;
    source.each(wanted, "rocpd_info_pmc", |row| {
        let component = text(row, 8);
        // Events of the kernel driver have rows here too.
        if !component.is_empty() && component != COMPONENT {
            return Ok(());
        }
        let known = &json(&text(row, 9))["rpd_counter"];
        let id = known["id"]["handle"].as_u64();
        let dimensions = dimensions(&known["dimensions"]);
        counters.push((
            integer(row, 0),
            Counter {
                id: CounterId(id.unwrap_or_else(|| bits(row, 0))),
                agent: agents.get(&integer(row, 1)).copied().unwrap_or_default(),
                name: text(row, 2),
                description: text(row, 3),
                block: text(row, 4),
                expression: text(row, 5),
                is_constant: integer(row, 6) != 0,
                is_derived: integer(row, 7) != 0,
                instances: instances(&known["instances"], &dimensions),
                dimensions,
            },
        ));
        Ok(())
    })?;
    counters.sort_by_key(|(_, counter)| counter.id);
    for (number, (row, counter)) in (0..).zip(counters) {
        numbers.insert(row, number);
        info.session.counters.push(counter);
    }
    Ok(numbers)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn dimensions(value: &Value) -> Vec<CounterDimension> {
    list(value)
        .iter()
        .map(|dimension| CounterDimension {
            id: number(dimension, "id"),
            size: number(dimension, "instance_size"),
            name: dimension["name"].as_str().unwrap_or_default().to_owned(),
        })
        .collect()
}

fn instances(value: &Value, dimensions: &[CounterDimension]) -> Vec<CounterInstance> {
    let position = |position: &Value| {
        let name = position["dimension_name"].as_str()?;
        let found = dimensions.iter().find(|dimension| dimension.name == name)?;
        Some((found.id, number(position, "index")))
    };
    list(value)
        .iter()
        .map(|instance| CounterInstance {
            id: number(instance, "instance_id"),
            positions: list(&instance["dimensions"])
                .iter()
                .filter_map(position)
                .collect(),
        })
        .collect()
}

/// Reads counters into the session, and their values; the place of its values by the event of each dispatch that has some.
pub(super) fn read(source: &Source<'_>, info: &mut Info, storage: &Storage) -> Result<ByEvent<3>> {
    let numbers = describe(source, info)?;
    if !any(source)? {
        return Ok(ByEvent::default());
    }
    let there = columns(source, "rocpd_pmc_event")?;
    let values = Values {
        source,
        storage,
        numbers: &numbers,
        columns: &there,
    };
    match PLACES.iter().any(|(name, ..)| values.has(name)) {
        true => values.read::<WITH_PLACES>(info),
        false => values.read::<WITHOUT_PLACES>(info),
    }
}

/// A value: key of its event, counter and instance, value, then its place where the database has columns for it.
type ValueRow<const N: usize> = [u64; N];
const WITHOUT_PLACES: usize = 3;
const WITH_PLACES: usize = WITHOUT_PLACES + PLACES.len();

/// No position.
const NOWHERE: i64 = i64::MIN;

/// Source of values.
struct Values<'a> {
    source: &'a Source<'a>,
    storage: &'a Storage,
    /// Numbers of counters by their ids in the database.
    numbers: &'a HashMap<i64, u32>,
    /// Columns that the view has.
    columns: &'a [String],
}

impl Values<'_> {
    fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column == name)
    }

    /// Three passes: the values in the order of events, the places that instances of counters have, the values in the order
    /// of instances.
    fn read<const N: usize>(&self, info: &mut Info) -> Result<ByEvent<3>> {
        let values = self.values::<N>()?;
        let mut wanted = self.dispatch_events()?.peekable();
        let counters = &mut info.session.counters;
        let mut found = InstanceFinder::default();
        let mut kept: Column<ValueRow<N>> = Column::new();
        let keep = || -> io::Result<()> {
            for mut row in values {
                while wanted.next_if(|[event]| *event < row[0]).is_some() {}
                if wanted.peek() == Some(&[row[0]]) {
                    let instance =
                        found.add(row[0], counter_of(&row), instance_of(&row), place_of(&row));
                    row[1] = u64::from(counter_of(&row)) << 32 | u64::from(instance);
                    kept.append(Some(self.storage), row)?;
                }
            }
            kept.seal(self.storage)
        };
        self.source.stored(keep())?;
        found.name_places(counters);
        let mut ranges = ByEvent::default();
        let written = self.write(&found, &kept, info, &mut ranges);
        self.source.stored(written)?;
        Ok(ranges)
    }

    /// The keys of the events of dispatches, in order.
    fn dispatch_events(&self) -> Result<Sorted<1, 1>> {
        let mut events = Sorter::new(Some(self.storage));
        self.source.pieces(
            "event_id",
            "rocpd_kernel_dispatch",
            |piece: &mut Vec<i64>, row| piece.push(integer(row, 0)),
            |piece| {
                let mut keys = piece.into_iter().map(key);
                self.source
                    .stored(keys.try_for_each(|key| events.push([key])))
            },
        )?;
        self.source.stored(events.finish())
    }

    /// The values of known counters in the order of their events, and of their rows in each.
    fn values<const N: usize>(&self) -> Result<Sorted<N, 1>> {
        let column = |name: &'static str| if self.has(name) { name } else { "NULL" };
        let mut wanted = vec!["event_id", "pmc_id", "value", column("extdata")];
        wanted.push(column(SAMPLE));
        wanted.extend(PLACES.map(|(name, ..)| column(name)));
        let numbers = self.numbers;
        let mut values = Sorter::new(Some(self.storage));
        self.source.pieces(
            &wanted.join(", "),
            "rocpd_pmc_event",
            |piece: &mut Vec<ValueRow<N>>, row| piece.extend(value_in(numbers, row)),
            |piece| {
                let mut rows = piece.into_iter();
                self.source
                    .stored(rows.try_for_each(|row| values.push(row)))
            },
        )?;
        self.source.stored(values.finish())
    }

    /// Puts values into the session, in the order of counters and instances for each event.
    fn write<const N: usize>(
        &self,
        found: &InstanceFinder,
        kept: &Column<ValueRow<N>>,
        info: &mut Info,
        ranges: &mut ByEvent<3>,
    ) -> io::Result<()> {
        let session = &mut info.session;
        let values = &mut session.counted.values;
        let mut of_one: Vec<CounterValue> = Vec::new();
        let mut rows = kept.iter().peekable();
        while let Some(row) = rows.next() {
            let number = counter_of(row);
            let counter = &mut session.counters[number as usize];
            let named = found.places.get(&number).zip(place_of(row));
            let named = named.and_then(|(places, place)| places.get(&place).copied());
            let instance = named.unwrap_or(instance_of(row)).min(LAST_INSTANCE);
            while counter.instances.len() <= instance as usize {
                counter.instances.push(CounterInstance {
                    id: 0,
                    positions: Vec::new(),
                });
            }
            of_one.push(CounterValue {
                counter: number,
                instance,
                value: f64::from_bits(row[2]),
            });
            if rows.peek().is_some_and(|next| next[0] == row[0]) {
                continue;
            }
            of_one.sort_by_key(|value| (value.counter, value.instance));
            let place = [row[0], values.total() as u64, of_one.len() as u64];
            ranges.push(self.storage, place)?;
            for value in of_one.drain(..) {
                values.append(Some(self.storage), value)?;
            }
        }
        values.seal(self.storage)?;
        ranges.seal(self.storage)
    }
}

/// The value in a row; `None` when it is of no known counter or was sampled.
fn value_in<const N: usize>(numbers: &HashMap<i64, u32>, row: &Row<'_>) -> Option<ValueRow<N>> {
    if !matches!(row.get_ref(4), Ok(ValueRef::Null)) {
        return None;
    }
    let counter = *numbers.get(&integer(row, 1))?;
    let extdata = bytes(row, 3);
    let instance = match extdata.len() > 2 {
        true => serde_json::from_slice(extdata)
            .ok()
            .and_then(|data: Extdata| data.rpd_instance),
        false => None,
    };
    let mut value = [0; N];
    value[0] = key(integer(row, 0));
    value[1] = u64::from(counter) << 32 | u64::from(instance.unwrap_or(NEXT));
    value[2] = real(row, 2).to_bits();
    for (index, position) in value[WITHOUT_PLACES..].iter_mut().enumerate() {
        *position = match row.get_ref(5 + index) {
            Ok(ValueRef::Integer(position)) => position.cast_unsigned(),
            _ => NOWHERE.cast_unsigned(),
        };
    }
    Some(value)
}

const fn counter_of(row: &[u64]) -> u32 {
    (row[1] >> 32) as u32
}

const fn instance_of(row: &[u64]) -> u32 {
    row[1] as u32
}

/// Hardware instance of the value; `None` when the database does not give it.
fn place_of(row: &[u64]) -> Option<InstancePlace> {
    let mut place = InstancePlace::default();
    for (position, stored) in place.iter_mut().zip(&row[WITHOUT_PLACES..]) {
        *position = Some(stored.cast_signed()).filter(|position| *position != NOWHERE);
    }
    place.iter().any(Option::is_some).then_some(place)
}

/// A number; none is stored as NULL.
fn real(row: &Row<'_>, column: usize) -> f64 {
    match row.get_ref(column) {
        Ok(ValueRef::Real(value)) => value,
        Ok(ValueRef::Integer(value)) => value as f64,
        _ => f64::NAN,
    }
}

/// The instances that values are of. Values come in the order of events.
#[derive(Default)]
struct InstanceFinder {
    /// Event of the last value.
    event: u64,
    /// Counter and instance of the last value of this event.
    last: Option<(u32, u32)>,
    /// The instance that comes next for a counter of this event.
    next: HashMap<u32, u32>,
    /// Counters and places of this event.
    seen: HashSet<(u32, InstancePlace)>,
    /// By counter: its places, each with the number of the instance there.
    places: BTreeMap<u32, BTreeMap<InstancePlace, u32>>,
    /// Counters of which two values of an event have the same place.
    ambiguous: HashSet<u32>,
}

impl InstanceFinder {
    /// The instance of a value.
    fn add(
        &mut self,
        event: u64,
        counter: u32,
        instance: u32,
        place: Option<InstancePlace>,
    ) -> u32 {
        if event != self.event {
            self.event = event;
            self.last = None;
            self.next.clear();
            self.seen.clear();
        }
        // Rows of a counter mostly lie together, which spares the look-up.
        let follows = self.last.filter(|last| last.0 == counter);
        let instance = match instance {
            NEXT => match follows {
                Some((_, last)) => last.saturating_add(1),
                None => self.next.get(&counter).copied().unwrap_or(0),
            },
            known => known,
        };
        if let Some((counter, last)) = self.last
            && follows.is_none()
        {
            self.next.insert(counter, last.saturating_add(1));
        }
        self.last = Some((counter, instance));
        if let Some(place) = place {
            self.places.entry(counter).or_default().insert(place, 0);
            if !self.seen.insert((counter, place)) {
                self.ambiguous.insert(counter);
            }
        }
        instance
    }

    /// Names the instances of counters after the places of their values, where these are clear.
    fn name_places(&mut self, counters: &mut [Counter]) {
        self.places
            .retain(|counter, _| !self.ambiguous.contains(counter));
        // If the recording describes more instances, its description is used.
        self.places
            .retain(|&counter, _| counters[counter as usize].instances.is_empty());
        for (&number, places) in &mut self.places {
            name_places(&mut counters[number as usize], places);
        }
    }
}

/// Gives a counter one instance for each position, in their order.
fn name_places(counter: &mut Counter, places: &mut BTreeMap<InstancePlace, u32>) {
    for (index, (_, dimension, name)) in PLACES.into_iter().enumerate() {
        let last = places.keys().filter_map(|place| place[index]).max();
        if let Some(last) = last {
            counter.dimensions.push(CounterDimension {
                id: dimension,
                size: last.max(0).cast_unsigned() + 1,
                name: name.to_owned(),
            });
        }
    }
    for (number, (place, instance)) in (0..).zip(places) {
        *instance = number;
        let positions = PLACES.into_iter().zip(place);
        counter.instances.push(CounterInstance {
            id: 0,
            positions: positions
                .filter_map(|((_, dimension, _), position)| {
                    Some((dimension, position.as_ref()?.cast_unsigned()))
                })
                .collect(),
        });
    }
}
