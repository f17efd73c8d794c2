//! Recordings of memory accesses: any bytes can be read and summed up, or give an error.

use std::sync::Mutex;

use rpd_gfx::access::{
    AccessTotals, Block, Dispatch, DispatchEnd, Item, Level, MAGIC, Problem, Reader, Recorder,
    Sink, Step,
};
use rpd_gfx::isa::{self, Kind, Operation, Probe, Space, Transfer};

use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "accesses",
    run,
    seeds,
    longest: 8 << 10,
    mutations: 4000,
};

#[derive(Default)]
struct File(Mutex<Vec<u8>>);

impl Sink for File {
    fn write(&self, block: &[u8]) -> bool {
        self.0.lock().is_ok_and(|mut bytes| {
            bytes.extend_from_slice(block);
            true
        })
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let file = File(Mutex::new(MAGIC.to_vec()));
    let dispatch = Dispatch {
        number: 1,
        kernel: "_Z5scalePf".to_owned(),
        nth: 1,
        object: "object-1.co".to_owned(),
        first: 0x1900,
        grid: [256, 1, 1],
        workgroup: [64, 1, 1],
        level: Level::Memory,
        device: "gfx90a".to_owned(),
    };
    file.write(dispatch.block().finish());
    let mut recorder = Recorder::new(&file, 1, Level::Memory);
    for (nth, space) in [Space::Global, Space::Scratch, Space::Lds]
        .into_iter()
        .enumerate()
    {
        for step in [0, 4, 0x101] {
            let transfer = Transfer {
                space,
                operation: Operation::Load,
                bytes: 4,
                lanes: u64::MAX,
                addresses: std::array::from_fn(|lane| {
                    lane as u64 * step * (1 + step / 256 * lane as u64)
                }),
            };
            recorder.executed(&isa::Step {
                group: nth as u64,
                wave: nth,
                offset: 8 * step,
                length: 8,
                kind: Kind::Other,
                lanes: 64,
                exec: u64::MAX,
                next: 8 * step + 8,
                transfers: &[transfer],
                scalar: &[(0x1000, 8)],
            });
        }
    }
    recorder.finish();
    file.write(Block::end(1, DispatchEnd::Complete).finish());
    vec![file.0.into_inner().unwrap_or_default()]
}

fn run(data: &[u8]) {
    // An error names the position in the file.
    let _ = read(data).map_err(|problem| problem.to_string());
}

fn read(data: &[u8]) -> Result<(), Problem> {
    let mut reader = Reader::new(data)?;
    let mut totals = AccessTotals::default();
    let mut step = Step::default();
    while let Some(item) = reader.next_item()? {
        let Item::Steps(mut steps) = item else {
            continue;
        };
        while steps.next_step(&mut step)? {
            totals.executed(step.exec);
            totals.add_scalar(&step.scalar);
            step.transfers.iter().for_each(|one| totals.add(one));
        }
    }
    assert!(totals.ideal_lines <= totals.lines);
    let _ = (totals.unique_lines(), totals.stride());
    Ok(())
}
