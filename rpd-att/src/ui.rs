//! The directory that the ROCprof Compute Viewer opens: JSON files about the waves of one dispatch, its code and its occupancy.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use rpd_core::spool::regular_file::{self, Links};
use serde_json::{Value, json};

use crate::code::CodeObjects;
use crate::listing::Listing;
use crate::record::{Occupancy, OtherSimd, Pc, PerfEvent, Realtime, ShaderData, State, Wave};
use crate::waits::waits;

/// Largest source file that is copied, in bytes.
const LARGEST_SOURCE: u64 = 8 << 20;

/// Version of the layout, which the viewer reads.
const VERSION: &str = "3.0.0";

/// A file name with the first and the last time in the file.
type Named = (String, i64, i64);

/// Names of the directory's wave files, by SIMD, slot and number of the wave.
type WaveFiles = BTreeMap<u8, BTreeMap<u8, BTreeMap<u32, Named>>>;

/// State of one shader engine.
#[derive(Debug, Default)]
struct Engine {
    waves: WaveFiles,
    occupancy: Vec<Occupancy>,
    perf: Vec<PerfEvent>,
    realtime: Vec<Realtime>,
    other: Vec<OtherSimd>,
    shader_data: Vec<ShaderData>,
}

/// Files for the viewer while they are written.
#[derive(Debug)]
pub struct Directory {
    directory: PathBuf,
    engines: BTreeMap<u32, Engine>,
    /// Changes of the number of waves in each state, by time.
    states: [BTreeMap<i64, i64>; State::ALL.len()],
    frequency: u64,
    major: u32,
    copies_sources: bool,
}

/// Source location of an instruction: `file:line`, with ` -> ` between a place and the place where it was inlined.
pub type Source<'a> = dyn Fn(Pc) -> String + 'a;

/// Makes a file in the directory, which gets its final name when it is complete.
#[expect(
    clippy::disallowed_methods,
    reason = "the directory is not complete yet"
)]
fn create(path: &Path) -> io::Result<File> {
    File::create(path)
}

fn write(path: &Path, value: &Value) -> io::Result<()> {
    let mut file = BufWriter::new(create(path)?);
    serde_json::to_writer(&mut file, value)?;
    file.flush()
}

impl Directory {
    /// A directory at `directory`, which must exist.
    pub fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            engines: BTreeMap::new(),
            states: Default::default(),
            frequency: 0,
            major: 9,
            copies_sources: true,
        }
    }

    /// Sets whether source files are copied into the directory; by default they are.
    pub fn copy_sources(&mut self, copy: bool) {
        self.copies_sources = copy;
    }

    /// Sets the hardware's major version.
    pub fn gfx(&mut self, major: u32) {
        self.major = major;
    }

    fn engine(&mut self, engine: u32) -> &mut Engine {
        self.engines.entry(engine).or_default()
    }

    /// Adds occupancy of a shader engine.
    pub fn occupancy(&mut self, engine: u32, records: &[Occupancy]) {
        self.engine(engine).occupancy.extend_from_slice(records);
    }

    /// Adds counter values of a shader engine.
    pub fn perf(&mut self, engine: u32, records: &[PerfEvent]) {
        self.engine(engine).perf.extend_from_slice(records);
    }

    /// Adds clocks of a shader engine.
    pub fn realtime(&mut self, engine: u32, records: &[Realtime]) {
        self.engine(engine).realtime.extend_from_slice(records);
    }

    /// Sets the ticks of the real-time clock in a second.
    pub fn frequency(&mut self, hertz: u64) {
        self.frequency = hertz;
    }

    /// Adds instructions of other SIMDs.
    pub fn other_simd(&mut self, engine: u32, records: &[OtherSimd]) {
        self.engine(engine).other.extend_from_slice(records);
    }

    /// Adds values that waves wrote.
    pub fn shader_data(&mut self, engine: u32, records: &[ShaderData]) {
        self.engine(engine).shader_data.extend_from_slice(records);
    }

    /// Writes a wave's file, unless the wave has neither states nor instructions. The instructions must be in `listing`
    /// already.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn wave(&mut self, engine: u32, wave: &Wave<'_>, listing: &Listing) -> io::Result<()> {
        // A wave that only began and ended has nothing that a viewer could show.
        if wave.instructions.is_empty() && wave.timeline.len() < 3 {
            return Ok(());
        }
        let slots = self.engine(engine).waves.entry(wave.simd).or_default();
        let numbers = slots.entry(wave.slot).or_default();
        // Slots are used again and again: the number tells the waves of one slot apart.
        let number = numbers.len() as u32;
        let name = format!("se{engine}_sm{}_sl{}_wv{number}.json", wave.simd, wave.slot);
        numbers.insert(number, (name.clone(), wave.begin, wave.end));
        let path = self.directory.join(name);
        let mut out = BufWriter::new(create(&path)?);
        let mut stitched = 0;
        write!(
            out,
            r#"{{"name":"SE{engine}","duration":{},"wave":{{"cu":{},"id":{number},"simd":{},"slot":{},"begin":{},"end":{},"instructions":["#,
            wave.end - wave.begin,
            wave.cu,
            wave.simd,
            wave.slot,
            wave.begin,
            wave.end,
        )?;
        for (index, instruction) in wave.instructions.iter().enumerate() {
            // Line 0 stands for an instruction that is not in the listing.
            let line = listing
                .line(instruction.pc)
                .filter(|_| instruction.pc.is_known());
            stitched += u64::from(line.is_some());
            let comma = if index == 0 { "" } else { "," };
            write!(
                out,
                "{comma}[{},{},{},{},{}]",
                instruction.time,
                instruction.category as u8,
                instruction.stall,
                instruction.duration,
                line.map_or(0, |line| line.number)
            )?;
        }
        out.write_all(b"],\"timeline\":[")?;
        let mut time = wave.begin;
        for (index, span) in wave.timeline.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(out, "{comma}[{},{}]", span.state as u8, span.duration)?;
            // Kept as changes, of which the sum up to a time is the number of waves in the state then.
            let states = &mut self.states[span.state as usize];
            *states.entry(time).or_default() += 1;
            time += i64::from(span.duration);
            *states.entry(time).or_default() -= 1;
        }
        out.write_all(b"],\"waitcnt\":[")?;
        for (index, (line, on)) in waits(wave, listing, self.major).iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(out, "{comma}[{line},[")?;
            for (index, line) in on.iter().enumerate() {
                let comma = if index == 0 { "" } else { "," };
                write!(out, "{comma}[{line},0]")?;
            }
            out.write_all(b"]]")?;
        }
        write!(
            out,
            "]}},\"num_stitched\":{stitched},\"num_insts\":{}}}",
            wave.instructions.len()
        )?;
        out.flush()
    }

    /// Writes the files that are about all waves together: code, occupancy, states, counters.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn finish(
        self,
        listing: &Listing,
        code: &CodeObjects,
        counters: &[String],
        source: &Source<'_>,
        demangle: &dyn Fn(&str) -> String,
    ) -> io::Result<()> {
        let sources = self.write_code(listing, source, demangle)?;
        if self.copies_sources {
            self.write_snapshots(&sources)?;
        }
        self.write_occupancy(code)?;
        for (state, changes) in self.states.iter().enumerate() {
            self.write_states(state, changes)?;
        }
        // Viewers look files up by the names listed here: an engine without records has no entry.
        let (mut waves, mut others, mut data) = (
            serde_json::Map::new(),
            serde_json::Map::new(),
            serde_json::Map::new(),
        );
        let mut clocks = serde_json::Map::new();
        for (number, engine) in &self.engines {
            if !engine.waves.is_empty() {
                waves.insert(number.to_string(), wave_names(&engine.waves));
            }
            if !engine.perf.is_empty() {
                let rows: Vec<Value> = (engine.perf.iter())
                    .map(|e| {
                        let [a, b, c, d] = e.values;
                        json!([e.time, a, b, c, d, e.cu, e.bank])
                    })
                    .collect();
                let name = format!("se{number}_perfcounter.json");
                write(&self.directory.join(name), &json!({ "data": rows }))?;
            }
            if !engine.realtime.is_empty() {
                let rows: Vec<Value> = (engine.realtime.iter())
                    .map(|clock| json!([clock.shader_clock, clock.realtime_clock]))
                    .collect();
                clocks.insert(format!("SE{number}"), rows.into());
            }
            if let Some(named) = self.write_other(*number, engine)? {
                others.insert(number.to_string(), json!([named]));
            }
            if let Some(named) = self.write_shader_data(*number, engine)? {
                data.insert(number.to_string(), json!([named]));
            }
        }
        if !clocks.is_empty() {
            clocks.insert("metadata".into(), json!({ "frequency": self.frequency }));
            write(&self.directory.join("realtime.json"), &clocks.into())?;
        }
        let mut names = json!({
            "global_begin_time": 0,
            "gfxv": if self.major > 9 { "navi" } else { "vega" },
            "gfxip": self.major,
            "version": VERSION,
            "counter_names": counters,
            "wave_filenames": waves,
            "thread_trace": true,
            "pc_sampling": false,
        });
        for (key, map) in [
            ("other_simd_filenames", others),
            ("shaderdata_filenames", data),
        ] {
            if !map.is_empty() {
                names[key] = map.into();
            }
        }
        // Written last: viewers take a directory with this file for complete.
        write(&self.directory.join("filenames.json"), &names)
    }

    /// Writes `code.json`; returns the source files that it names.
    fn write_code(
        &self,
        listing: &Listing,
        source: &Source<'_>,
        demangle: &dyn Fn(&str) -> String,
    ) -> io::Result<BTreeSet<String>> {
        let mut rows = Vec::new();
        let mut files = BTreeSet::new();
        for line in listing.lines() {
            let pc = line.pc;
            if let Some(name) = listing.label(pc) {
                // A label is a row of its own, with the number before that of its instruction.
                rows.push(json!([
                    format!("; {name}"),
                    0,
                    line.number - 1,
                    demangle(name),
                    pc.code_object,
                    pc.address,
                    0,
                    0,
                    0,
                    0
                ]));
            }
            let source = source(pc);
            // An inlined place is followed by those that it was inlined into, each in a file of its own.
            for place in source.split(" -> ") {
                if let Some((file, _)) = place.rsplit_once(':') {
                    files.insert(file.to_owned());
                }
            }
            rows.push(json!([
                line.text,
                0,
                line.number,
                source,
                pc.code_object,
                pc.address,
                line.hits,
                line.latency,
                line.stall,
                line.idle
            ]));
        }
        let code = json!({
            "code": rows,
            "version": VERSION,
            "header": "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle",
        });
        write(&self.directory.join("code.json"), &code)?;
        Ok(files)
    }

    /// Copies the source files that can be read, and writes a list of their names in the directory.
    fn write_snapshots(&self, files: &BTreeSet<String>) -> io::Result<()> {
        let mut tree = json!({});
        let mut copied = 0;
        for file in files {
            let path = Path::new(file);
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let name = format!("source_{copied}_{name}");
            let Ok(text) = regular_file::read(path, Links::Follow, LARGEST_SOURCE) else {
                continue;
            };
            create(&self.directory.join(&name))?.write_all(&text)?;
            copied += 1;
            let mut at = &mut tree;
            for part in path.components() {
                let part = part.as_os_str().to_string_lossy().into_owned();
                if !at.is_object() {
                    *at = json!({});
                }
                at = &mut at[part];
            }
            *at = name.into();
        }
        if copied == 0 {
            return Ok(());
        }
        write(&self.directory.join("snapshots.json"), &tree)
    }

    fn write_occupancy(&self, code: &CodeObjects) -> io::Result<()> {
        let mut ids: BTreeMap<Pc, u32> = BTreeMap::from([(Pc::default(), 0)]);
        let mut order = vec![Pc::default()];
        let mut occupancy = serde_json::Map::new();
        for (engine, of) in &self.engines {
            let mut rows = Vec::with_capacity(of.occupancy.len());
            for record in &of.occupancy {
                let id = *ids.entry(record.pc).or_insert_with(|| {
                    order.push(record.pc);
                    order.len() as u32 - 1
                });
                rows.push(json!([
                    record.time,
                    record.cu,
                    record.simd,
                    record.slot,
                    u8::from(record.start),
                    id
                ]));
            }
            occupancy.insert(engine.to_string(), rows.into());
        }
        let mut dispatches = serde_json::Map::new();
        for (id, pc) in order.iter().enumerate() {
            let name = match code.function(*pc).filter(|f| f.address == pc.address) {
                Some(function) => function.name.clone(),
                None => format!("{} / {:#x}", pc.code_object, pc.address),
            };
            dispatches.insert(id.to_string(), name.into());
        }
        occupancy.insert("dispatches".into(), dispatches.into());
        occupancy.insert("version".into(), VERSION.into());
        write(&self.directory.join("occupancy.json"), &occupancy.into())
    }

    fn write_states(&self, state: usize, changes: &BTreeMap<i64, i64>) -> io::Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut waves = 0;
        let counts: Vec<i64> = (changes.values())
            .map(|change| {
                waves += change;
                waves
            })
            .collect();
        let times: Vec<i64> = changes.keys().copied().collect();
        let name = format!("wstates{state}.json");
        let value = json!({ "time": times, "state": counts, "name": name });
        write(&self.directory.join(name), &value)
    }

    fn write_other(&self, number: u32, engine: &Engine) -> io::Result<Option<Named>> {
        let (Some(first), Some(last)) = (engine.other.first(), engine.other.last()) else {
            return Ok(None);
        };
        let (begin, end) = (first.time, last.time + i64::from(last.cycles));
        let rows: Vec<Value> = (engine.other.iter())
            .map(|other| json!([other.time, other.cycles, other.category as u8]))
            .collect();
        let name = format!("other_simd_se{number}_0.json");
        let value = json!({
            "begin_time": begin,
            "end_time": end,
            "instructions_schema": ["time", "duration", "category"],
            "instructions": rows,
        });
        write(&self.directory.join(&name), &value)?;
        Ok(Some((name, begin, end)))
    }

    fn write_shader_data(&self, number: u32, engine: &Engine) -> io::Result<Option<Named>> {
        let (Some(first), Some(last)) = (engine.shader_data.first(), engine.shader_data.last())
        else {
            return Ok(None);
        };
        let rows: Vec<Value> = (engine.shader_data.iter())
            .map(|data| {
                let flags = u8::from(data.immediate) | u8::from(data.privileged) << 1;
                json!([data.time, data.value, data.cu, data.simd, data.slot, flags])
            })
            .collect();
        let name = format!("shaderdata_{number}_0.json");
        let value = json!({
            "type": "shaderdata",
            "begin_time": first.time,
            "end_time": last.time,
            "records_schema": ["time", "value", "cu", "simd", "wave_id", "flags"],
            "records_count": rows.len(),
            "records": rows,
        });
        write(&self.directory.join(&name), &value)?;
        Ok(Some((name, first.time, last.time)))
    }
}

fn wave_names(waves: &WaveFiles) -> Value {
    let mut simds = serde_json::Map::new();
    for (simd, slots) in waves {
        let mut by_slot = serde_json::Map::new();
        for (slot, numbers) in slots {
            let by_number: serde_json::Map<String, Value> = (numbers.iter())
                .map(|(number, named)| (number.to_string(), json!(named)))
                .collect();
            by_slot.insert(slot.to_string(), by_number.into());
        }
        simds.insert(simd.to_string(), by_slot.into());
    }
    simds.into()
}
