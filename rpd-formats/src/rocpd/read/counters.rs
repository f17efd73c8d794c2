//! Counters, and what was counted. Columns of later schemas are used where they are.

use std::collections::{BTreeMap, HashMap, HashSet};

use rpd_core::ids::CounterId;
use rpd_core::session::{
    CountedTable, Counter, CounterDimension, CounterInstance, CounterValue, DispatchTable,
};
use rusqlite::types::ValueRef;
use rusqlite::{Result, Row};
use serde::Deserialize;
use serde_json::Value;

use super::super::sql::identifier;
use super::agent::number;
use super::info::{Info, json};
use super::scan::{Source, bits, bytes, integer, text};

/// Columns of later schemas that say where an instance is: name, and the dimension with the provider's number.
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

/// Instances behind it are those of a damaged database.
const LAST_INSTANCE: u32 = 1 << 20;

type Place = [Option<i64>; PLACES.len()];

/// Values as one thread reads them.
#[derive(Default)]
struct Piece {
    event: Vec<i64>,
    counter: Vec<i64>,
    value: Vec<f64>,
    instance: Vec<u32>,
    /// Empty when the database has no columns for it.
    place: Vec<Place>,
}

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

/// Reads counters and values. `events` are those of the session's dispatches. When these were counted and not traced
/// they move to where the session keeps counted ones.
pub(super) fn read(source: &Source<'_>, info: &mut Info, events: &[i64]) -> Result<()> {
    let numbers = describe(source, info)?;
    if !info.only_counted && !any(source)? {
        return Ok(());
    }
    let pieces = values(source)?;
    let dispatch_of: HashMap<i64, u32> = events.iter().copied().zip(0..).collect();
    let session = &mut info.session;
    let mut found = Found::default();
    for piece in &pieces {
        for index in 0..piece.event.len() {
            let dispatch = dispatch_of.get(&piece.event[index]);
            let counter = numbers.get(&piece.counter[index]);
            if let (Some(&dispatch), Some(&counter)) = (dispatch, counter) {
                let place = piece.place.get(index).copied().unwrap_or_default();
                found.add(dispatch, counter, piece.instance[index], place);
                found.value.push(piece.value[index]);
            }
        }
    }
    drop(pieces);
    found.settle(&mut session.counters);

    let all = found.key.len() as u32;
    let mut order: Vec<u32> = (0..all).collect();
    order.sort_by_key(|&index| found.key[index as usize]);
    let mut counted = CountedTable::default();
    let mut kept = Vec::new();
    for of_one in order.chunk_by(|&a, &b| found.dispatch(a) == found.dispatch(b)) {
        kept.push(found.dispatch(of_one[0]));
        let first = counted.values.len() as u64;
        counted.ranges.push((first, of_one.len() as u32));
        counted.values.extend(of_one.iter().map(|&index| {
            let (_, counter, instance) = found.key[index as usize];
            CounterValue {
                counter,
                instance,
                value: found.value[index as usize],
            }
        }));
    }
    if info.only_counted {
        let mut ranges = vec![(0, 0); session.dispatches.len()];
        for (&dispatch, &range) in kept.iter().zip(&counted.ranges) {
            ranges[dispatch as usize] = range;
        }
        counted.ranges = ranges;
        counted.dispatches = std::mem::take(&mut session.dispatches);
    } else {
        counted.dispatches = selected(&session.dispatches, &kept);
    }
    session.counted = counted;
    Ok(())
}

fn selected(table: &DispatchTable, kept: &[u32]) -> DispatchTable {
    macro_rules! columns {
        ($($column:ident)*) => {
            DispatchTable {
                $($column: kept.iter().map(|&index| table.$column[index as usize]).collect(),)*
            }
        };
    }
    columns!(start end thread correlation agent queue stream region kernel dispatch private_size group_size workgroup
        grid)
}

fn values(source: &Source<'_>) -> Result<Vec<Piece>> {
    let there = columns(source, "rocpd_pmc_event")?;
    let has = |name: &str| there.iter().any(|column| column == name);
    let column = |name: &'static str| if has(name) { name } else { "NULL" };
    let mut wanted = vec!["event_id", "pmc_id", "value", column("extdata")];
    wanted.push(column(SAMPLE));
    wanted.extend(PLACES.map(|(name, ..)| column(name)));
    let has_places = PLACES.iter().any(|(name, ..)| has(name));
    source.pieces(&wanted.join(", "), "rocpd_pmc_event", |rows| {
        let mut piece = Piece::default();
        while let Some(row) = rows.next()? {
            if !matches!(row.get_ref(4), Ok(ValueRef::Null)) {
                continue;
            }
            piece.event.push(integer(row, 0));
            piece.counter.push(integer(row, 1));
            piece.value.push(real(row, 2));
            let extdata = bytes(row, 3);
            let instance = match extdata.len() > 2 {
                true => serde_json::from_slice(extdata)
                    .ok()
                    .and_then(|data: Extdata| data.rpd_instance),
                false => None,
            };
            piece.instance.push(instance.unwrap_or(NEXT));
            if has_places {
                let place = std::array::from_fn(|index| match row.get_ref(5 + index) {
                    Ok(ValueRef::Integer(position)) => Some(position),
                    _ => None,
                });
                piece.place.push(place);
            }
        }
        Ok(piece)
    })
}

/// A number; none is stored as NULL.
fn real(row: &Row<'_>, column: usize) -> f64 {
    match row.get_ref(column) {
        Ok(ValueRef::Real(value)) => value,
        Ok(ValueRef::Integer(value)) => value as f64,
        _ => f64::NAN,
    }
}

/// Values of dispatches and counters that there are.
#[derive(Default)]
struct Found {
    /// Dispatch, counter, instance.
    key: Vec<(u32, u32, u32)>,
    value: Vec<f64>,
    /// The instance that comes next in a dispatch and counter.
    next: HashMap<(u32, u32), u32>,
    /// By counter: its places, each with the number of instances there.
    places: BTreeMap<u32, BTreeMap<Place, u32>>,
    place: Vec<Place>,
    /// Places by dispatch and counter, and the counters of which two values have the same.
    seen: HashSet<(u32, u32, Place)>,
    ambiguous: HashSet<u32>,
}

impl Found {
    fn dispatch(&self, index: u32) -> u32 {
        self.key[index as usize].0
    }

    fn add(&mut self, dispatch: u32, counter: u32, instance: u32, place: Place) {
        // Rows of a dispatch and counter mostly lie together, which spares the look-up.
        let follows = self
            .key
            .last()
            .filter(|last| (last.0, last.1) == (dispatch, counter))
            .map(|last| last.2.saturating_add(1));
        let instance = match instance {
            NEXT => follows.unwrap_or_else(|| {
                let next = self.next.get(&(dispatch, counter));
                next.copied().unwrap_or(0)
            }),
            known => known,
        };
        if let Some(&(last_dispatch, last_counter, last)) = self.key.last()
            && follows.is_none()
        {
            self.next
                .insert((last_dispatch, last_counter), last.saturating_add(1));
        }
        self.key.push((dispatch, counter, instance));
        if place.iter().any(Option::is_some) {
            self.places.entry(counter).or_default().insert(place, 0);
            if !self.seen.insert((dispatch, counter, place)) {
                self.ambiguous.insert(counter);
            }
            self.place.resize(self.key.len() - 1, Place::default());
            self.place.push(place);
        }
    }

    /// Adds the instances that a counter's values have and the counter lacks.
    fn settle(&mut self, counters: &mut [Counter]) {
        self.places
            .retain(|counter, _| !self.ambiguous.contains(counter));
        // Where the recording says more about its instances that counts.
        self.places
            .retain(|&counter, _| counters[counter as usize].instances.is_empty());
        for (&number, places) in &mut self.places {
            name_places(&mut counters[number as usize], places);
        }
        for (index, key) in self.key.iter_mut().enumerate() {
            let counter = &mut counters[key.1 as usize];
            let at = self.place.get(index);
            let places = self.places.get(&key.1);
            if let (Some(at), Some(places)) = (at, places)
                && let Some(&instance) = places.get(at)
            {
                key.2 = instance;
            }
            key.2 = key.2.min(LAST_INSTANCE);
            while counter.instances.len() <= key.2 as usize {
                counter.instances.push(CounterInstance {
                    id: 0,
                    positions: Vec::new(),
                });
            }
        }
    }
}

/// Gives a counter one instance for each position, in their order.
fn name_places(counter: &mut Counter, places: &mut BTreeMap<Place, u32>) {
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
