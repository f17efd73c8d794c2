//! Reads counters and counted values. Uses columns of later schema versions where the database has them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use rpd_core::ids::CounterId;
use rpd_core::session::{Counter, CounterDimension, CounterInstance, CounterValue, ValueRange};
use rpd_core::storage::column::{Column, Storage};
use rpd_core::storage::lookup::Lookup;
use rpd_core::storage::sorted::{Keyed, Sorted, Sorter};
use rusqlite::types::ValueRef;
use rusqlite::{Result, Row};
use serde::Deserialize;
use serde_json::Value as Json;
use zerocopy::{Immutable, IntoBytes};

use super::super::kfd;
use super::super::sql::identifier;
use super::agent::number;
use super::info::{Info, json};
use super::scan::{Source, bits, bytes, integer, text};

/// Columns of later schemas with the position of an instance: name, and the dimension with the provider's number.
pub(super) const PLACES: [(&str, u64, &str); 5] = [
    ("xcc", 1, "DIMENSION_XCC"),
    ("shader_engine", 3, "DIMENSION_SHADER_ENGINE"),
    ("shader_array", 5, "DIMENSION_SHADER_ARRAY"),
    ("wgp", 6, "DIMENSION_WGP"),
    ("instance", 7, "DIMENSION_INSTANCE"),
];
/// Column of later schemas that is set for what was sampled, which is not counted per dispatch.
pub(super) const SAMPLE: &str = "sample_id";
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
pub(super) fn columns(source: &Source<'_>, view: &str) -> Result<Vec<String>> {
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
        // Kinds of events of the kernel driver have rows here too, of no agent.
        let is_of_none = matches!(row.get_ref(1), Ok(ValueRef::Null));
        let is_driver = text(row, 4) == kfd::BLOCK && is_of_none;
        if !component.is_empty() && component != COMPONENT || is_driver {
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

fn list(value: &Json) -> &[Json] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn dimensions(value: &Json) -> Vec<CounterDimension> {
    list(value)
        .iter()
        .map(|dimension| CounterDimension {
            id: number(dimension, "id"),
            size: number(dimension, "instance_size"),
            name: dimension["name"].as_str().unwrap_or_default().to_owned(),
        })
        .collect()
}

fn instances(value: &Json, dimensions: &[CounterDimension]) -> Vec<CounterInstance> {
    let position = |position: &Json| {
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
pub(super) fn read(
    source: &Source<'_>,
    info: &mut Info,
    storage: &Storage,
) -> Result<Lookup<EventValues>> {
    let numbers = describe(source, info)?;
    if !any(source)? {
        return Ok(Lookup::default());
    }
    let there = columns(source, "rocpd_pmc_event")?;
    let values = Values {
        source,
        storage,
        numbers: &numbers,
        columns: &there,
    };
    if PLACES.iter().any(|(name, ..)| values.has(name)) {
        values.read::<PlacedRow>(info)
    } else {
        values.read::<ValueRow>(info)
    }
}

/// Where the values of an event are among those of the session.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
pub(super) struct EventValues {
    event: i64,
    pub(super) range: ValueRange,
}

impl Keyed for EventValues {
    type Key = i64;

    fn key(&self) -> i64 {
        self.event
    }
}

/// A value. Databases without columns for the place of its instance have no more, so that they take less memory.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct ValueRow {
    event: i64,
    counter: u32,
    instance: u32,
    value: f64,
}

/// A value with the place of its instance.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct PlacedRow {
    row: ValueRow,
    /// By [`PLACES`]; [`NOWHERE`] where the database has none.
    place: [i64; PLACES.len()],
}

impl Keyed for ValueRow {
    type Key = i64;

    fn key(&self) -> i64 {
        self.event
    }
}

impl Keyed for PlacedRow {
    type Key = i64;

    fn key(&self) -> i64 {
        self.row.event
    }
}

/// Either form of a value.
trait Value: Keyed<Key = i64> + Send {
    /// `place` is read where the form has one.
    fn new(row: ValueRow, place: impl FnOnce() -> [i64; PLACES.len()]) -> Self;
    fn row(&self) -> ValueRow;
    fn set_instance(&mut self, instance: u32);
    /// The place of its instance; `None` when the database does not give it.
    fn place(&self) -> Option<InstancePlace>;
}

impl Value for ValueRow {
    fn new(row: ValueRow, _: impl FnOnce() -> [i64; PLACES.len()]) -> ValueRow {
        row
    }

    fn row(&self) -> ValueRow {
        *self
    }

    fn set_instance(&mut self, instance: u32) {
        self.instance = instance;
    }

    fn place(&self) -> Option<InstancePlace> {
        None
    }
}

impl Value for PlacedRow {
    fn new(row: ValueRow, place: impl FnOnce() -> [i64; PLACES.len()]) -> PlacedRow {
        PlacedRow {
            row,
            place: place(),
        }
    }

    fn row(&self) -> ValueRow {
        self.row
    }

    fn set_instance(&mut self, instance: u32) {
        self.row.instance = instance;
    }

    fn place(&self) -> Option<InstancePlace> {
        let known = |position| Some(position).filter(|position| *position != NOWHERE);
        let place = self.place.map(known);
        place.iter().any(Option::is_some).then_some(place)
    }
}

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
    fn read<V: Value>(&self, info: &mut Info) -> Result<Lookup<EventValues>> {
        let values = self.values::<V>()?;
        let mut wanted = self.dispatch_events()?.peekable();
        let counters = &mut info.session.counters;
        let mut found = InstanceFinder::default();
        let mut kept: Column<V> = Column::new();
        let keep = || -> io::Result<()> {
            for mut value in values {
                let row = value.row();
                while wanted.next_if(|event| *event < row.event).is_some() {}
                if wanted.peek() == Some(&row.event) {
                    value.set_instance(found.add(row, value.place()));
                    kept.append(Some(self.storage), value)?;
                }
            }
            kept.seal(self.storage)
        };
        self.source.stored(keep())?;
        found.name_places(counters);
        let mut ranges = Lookup::default();
        let written = self.write(&found, &kept, info, &mut ranges);
        self.source.stored(written)?;
        Ok(ranges)
    }

    /// The events of dispatches, in order.
    fn dispatch_events(&self) -> Result<Sorted<i64>> {
        let mut events = Sorter::new(Some(self.storage));
        self.source.pieces(
            "event_id",
            "rocpd_kernel_dispatch",
            |piece: &mut Vec<i64>, row| piece.push(integer(row, 0)),
            |piece| {
                let mut ids = piece.into_iter();
                self.source
                    .stored(ids.try_for_each(|event| events.push(event)))
            },
        )?;
        self.source.stored(events.finish())
    }

    /// The values of known counters in the order of their events, and of their rows in each.
    fn values<V: Value>(&self) -> Result<Sorted<V>> {
        let column = |name: &'static str| if self.has(name) { name } else { "NULL" };
        let mut wanted = vec!["event_id", "pmc_id", "value", column("extdata")];
        wanted.push(column(SAMPLE));
        wanted.extend(PLACES.map(|(name, ..)| column(name)));
        let numbers = self.numbers;
        let mut values = Sorter::new(Some(self.storage));
        self.source.pieces(
            &wanted.join(", "),
            "rocpd_pmc_event",
            |piece: &mut Vec<V>, row| piece.extend(value_in::<V>(numbers, row)),
            |piece| {
                let mut rows = piece.into_iter();
                self.source
                    .stored(rows.try_for_each(|row| values.push(row)))
            },
        )?;
        self.source.stored(values.finish())
    }

    /// Puts values into the session, in the order of counters and instances for each event.
    fn write<V: Value>(
        &self,
        found: &InstanceFinder,
        kept: &Column<V>,
        info: &mut Info,
        ranges: &mut Lookup<EventValues>,
    ) -> io::Result<()> {
        let session = &mut info.session;
        let values = &mut session.counted.values;
        let mut of_one: Vec<CounterValue> = Vec::new();
        let mut rows = kept.iter().peekable();
        while let Some(value) = rows.next() {
            let row = value.row();
            let counter = &mut session.counters[row.counter as usize];
            let named = found.places.get(&row.counter).zip(value.place());
            let named = named.and_then(|(places, place)| places.get(&place).copied());
            let instance = named.unwrap_or(row.instance).min(LAST_INSTANCE);
            while counter.instances.len() <= instance as usize {
                counter.instances.push(CounterInstance {
                    id: 0,
                    positions: Vec::new(),
                });
            }
            of_one.push(CounterValue {
                counter: row.counter,
                instance,
                value: row.value,
            });
            if rows.peek().is_some_and(|next| next.key() == row.event) {
                continue;
            }
            of_one.sort_by_key(|value| (value.counter, value.instance));
            let of_event = EventValues {
                event: row.event,
                range: ValueRange {
                    first: values.total() as u64,
                    count: of_one.len() as u64,
                },
            };
            ranges.push(Some(self.storage), of_event)?;
            for value in of_one.drain(..) {
                values.append(Some(self.storage), value)?;
            }
        }
        values.seal(self.storage)?;
        ranges.seal(Some(self.storage))
    }
}

/// The value in a row; `None` when it is of no known counter or was sampled.
fn value_in<V: Value>(numbers: &HashMap<i64, u32>, row: &Row<'_>) -> Option<V> {
    if !matches!(row.get_ref(4), Ok(ValueRef::Null)) {
        return None;
    }
    let counter = *numbers.get(&integer(row, 1))?;
    let extdata = bytes(row, 3);
    let instance = if extdata.len() > 2 {
        serde_json::from_slice(extdata)
            .ok()
            .and_then(|data: Extdata| data.rpd_instance)
    } else {
        None
    };
    let value = ValueRow {
        event: integer(row, 0),
        counter,
        instance: instance.unwrap_or(NEXT),
        value: real(row, 2),
    };
    Some(V::new(value, || {
        std::array::from_fn(|index| match row.get_ref(5 + index) {
            Ok(ValueRef::Integer(position)) => position,
            _ => NOWHERE,
        })
    }))
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
    event: Option<i64>,
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
    fn add(&mut self, value: ValueRow, place: Option<InstancePlace>) -> u32 {
        let (counter, instance) = (value.counter, value.instance);
        if self.event != Some(value.event) {
            self.event = Some(value.event);
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
