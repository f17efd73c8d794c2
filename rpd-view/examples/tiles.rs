//! How quickly tiles are made and read, and in how much memory, from records that are made up on the way:
//! `tiles RECORDS [FILE [PAGE]]` also keeps the tiles in a file, and writes the page as another one.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::time::Instant;

use rpd_analysis::classes::Class;
use rpd_analysis::records::{
    Allocation, Call, Each, Facts, Gpu, Launch, NONE, Op, Process, Range, Records, Style, Thread,
};
use rpd_view::export::{MOST_RECORDS, export};
use rpd_view::pyramid::{Key, Part, Pyramid, build};

/// Operations, each with a call, on four queues of two GPUs; a marker for a thousand of them.
struct Synthetic {
    facts: Facts,
    ops: u64,
}

const STEP: u64 = 2_500;
const KERNELS: u64 = 40;

fn mixed(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 29
}

impl Synthetic {
    fn new(records: u64) -> Synthetic {
        let mut names: Vec<String> = (0..KERNELS)
            .map(|number| {
                format!("void kernel_{number}<float, {number}>(float const*, float*, int)")
            })
            .collect();
        names.extend((0..8).map(|number| format!("hipFunction{number}")));
        names.extend((0..64).map(|number| format!("step {number}")));
        let gpu = |number| Gpu {
            number,
            arch: "gfx942".to_owned(),
            id: number.to_string(),
            ..Gpu::default()
        };
        Synthetic {
            facts: Facts {
                gpus: vec![gpu(0), gpu(1)],
                processes: vec![Process::default()],
                threads: (1..=4).map(|tid| Thread { process: 0, tid }).collect(),
                names,
                ..Facts::default()
            },
            ops: records / 2,
        }
    }

    fn call(number: u64) -> Call {
        let start = 1_000_000 + number * STEP;
        Call {
            start,
            end: start + 1_000 + mixed(number) % 6_000,
            thread: (number % 4) as u32,
            name: (KERNELS + mixed(number) % 8) as u32,
            id: number + 1,
            range: NONE,
        }
    }
}

impl Records for Synthetic {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn ops(&self) -> Each<'_, Op> {
        Box::new((0..self.ops).map(|number| {
            let call = Synthetic::call(number);
            let start = call.start + 12_000 + mixed(number) % 400;
            Op {
                id: number + 1,
                is_kernel: true,
                is_second: false,
                start,
                end: start + 2_000 + mixed(number + 7) % 7_000,
                gpu: (number % 2) as u32,
                process: 0,
                queue: (number % 4) as u32,
                stream: (number % 4) as u32,
                name: (mixed(number) % KERNELS) as u32,
                class: Class::Compute,
                kernel: NONE,
                bytes: 0,
                host_address: 0,
                grid: [1 << (10 + number % 8), 1, 1],
                group: [256, 1, 1],
                lds: 0,
                scratch: 0,
                launch: Some(Launch {
                    begin: call.start,
                    end: call.end,
                    thread: call.thread,
                    name: call.name,
                    call: call.id,
                    is_graph: false,
                    range: NONE,
                }),
            }
        }))
    }

    fn calls(&self) -> Each<'_, Call> {
        Box::new((0..self.ops).map(Synthetic::call))
    }

    fn ranges(&self) -> Each<'_, Range> {
        Box::new((0..self.ops / 1000).map(|number| Range {
            id: number as u32,
            start: 1_000_000 + number * 1000 * STEP,
            end: 1_000_000 + (number * 1000 + 990) * STEP,
            thread: 0,
            name: (KERNELS + 8 + number % 64) as u32,
            style: Style::Nested,
        }))
    }

    fn allocations(&self) -> Each<'_, Allocation> {
        Box::new(std::iter::empty())
    }
}

/// Greatest memory of this process in MB, from what the kernel counts.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1e3
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let records: u64 = arguments
        .next()
        .ok_or("expected a number of records")?
        .parse()?;
    let directory = tempfile::tempdir()?;
    let path = arguments.next().map(PathBuf::from);
    let page = arguments.next();
    let path = path.unwrap_or_else(|| directory.path().join("x.rpdview"));
    let synthetic = Synthetic::new(records);
    let begin = Instant::now();
    let mut count = 0_u64;
    synthetic.ops().for_each(|op| {
        black_box(op);
        count += 1;
    });
    let floor = begin.elapsed().as_secs_f64();
    let begin = Instant::now();
    let built = build(&synthetic, None, "", &path)?;
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "built {:.2} million records/s, {:.2} bytes a record, {:.0} MB at most (operations alone made up: {:.0} million/s)",
        built.records as f64 / seconds / 1e6,
        built.bytes as f64 / built.records as f64,
        peak(),
        count as f64 / floor / 1e6
    );
    // What the page asks for first: what there is, and the tiles of the whole time.
    let begin = Instant::now();
    let pyramid = Pyramid::open(&path)?;
    let meta = pyramid.meta()?;
    let tracks = meta["tracks"].as_array().map_or(0, Vec::len) as u32;
    let last = meta["length"].as_u64().unwrap_or(0);
    let level = (0..13)
        .find(|level| last >> (22 + 2 * level) == 0)
        .unwrap_or(12);
    for track in 0..tracks {
        black_box(pyramid.stored(Key {
            part: Part::Bins,
            track,
            level,
            number: 0,
        })?);
    }
    println!("{:.2} ms first", begin.elapsed().as_secs_f64() * 1e3);
    let keys: Vec<Key> = pyramid
        .keys()
        .filter(|key| key.part == Part::Records)
        .collect();
    let begin = Instant::now();
    let looked = keys.iter().step_by((keys.len() / 200).max(1));
    let mut count = 0;
    for key in looked {
        black_box(pyramid.tile(*key)?);
        count += 1;
    }
    println!(
        "{:.3} ms a tile",
        begin.elapsed().as_secs_f64() * 1e3 / f64::from(count)
    );
    if let Some(page) = page {
        let mut out = BufWriter::new(File::create(page)?);
        let exported = export(&pyramid, MOST_RECORDS, "rpd view", &mut out)??;
        out.flush()?;
        println!("{exported:?}");
    }
    Ok(())
}
