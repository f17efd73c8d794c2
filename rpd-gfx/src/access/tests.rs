//! Writes and reads recordings of generated steps.

use std::sync::Mutex;

use super::*;
use crate::isa::{self, Kind as InstructionKind, Operation, Probe, Space, Transfer, Vmem};

/// A file in memory that accepts this many bytes.
struct File(Mutex<Vec<u8>>, usize);

impl Sink for File {
    fn write(&self, block: &[u8]) -> bool {
        let mut bytes = self.0.lock().expect("not poisoned");
        let fits = bytes.len() + block.len() <= self.1;
        if fits {
            bytes.extend_from_slice(block);
        }
        fits
    }
}

fn transfer(space: Space, lanes: u64, address: impl Fn(u64) -> u64) -> Transfer {
    let taken = |lane: usize| lanes >> lane & 1 != 0;
    Transfer {
        space,
        operation: Operation::Load,
        bytes: 4,
        lanes,
        addresses: std::array::from_fn(|lane| if taken(lane) { address(lane as u64) } else { 0 }),
    }
}

fn dispatch() -> Dispatch {
    Dispatch {
        number: 3,
        kernel: "_Z5scalePf".to_owned(),
        nth: 2,
        object: "object-1.co".to_owned(),
        first: 0x1900,
        grid: [256, 2, 1],
        workgroup: [64, 1, 1],
        level: Level::Memory,
        device: "gfx90a".to_owned(),
    }
}

/// Steps with every encoding of lane addresses.
fn steps() -> Vec<Step> {
    let base = 0x7f12_3456_7000;
    let scattered = |lane: u64| base + (lane * 7919 % 64) * 128;
    let with = |group, wave, offset, exec, transfers| Step {
        group,
        wave,
        offset,
        exec,
        transfers,
        scalar: Vec::new(),
    };
    vec![
        with(
            0,
            0,
            0x40,
            u64::MAX,
            vec![transfer(Space::Global, u64::MAX, |l| base + 4 * l)],
        ),
        with(
            0,
            1,
            0x40,
            0xff,
            vec![transfer(Space::Global, 0xff, |_| base)],
        ),
        with(
            5,
            1,
            0x20,
            0xff,
            vec![transfer(Space::Lds, 0x55, |l| 8 * l)],
        ),
        with(
            5,
            1,
            0x24,
            0xff,
            vec![transfer(Space::Global, 0xff, scattered)],
        ),
        with(
            5,
            1,
            0x28,
            u64::MAX,
            vec![transfer(Space::Scratch, u64::MAX, scattered); 5],
        ),
        with(5, 1, 0x2c, 0, vec![transfer(Space::Global, 0, |_| 0)]),
        Step {
            group: 6,
            scalar: vec![(base, 8), (base + 64, 16)],
            ..Step::default()
        },
    ]
}

fn record(file: &File, level: Level, steps: &[Step], times: usize) -> bool {
    let mut recorder = Recorder::new(file, 3, level);
    let kind = InstructionKind::Vmem(Vmem {
        flat: true,
        operation: Operation::Load,
        dwords: 1,
        coherent: false,
        streaming: false,
    });
    for step in std::iter::repeat_n(steps, times).flatten() {
        recorder.executed(&isa::Step {
            group: step.group,
            wave: step.wave as usize,
            offset: step.offset,
            length: 8,
            kind,
            lanes: step.exec.count_ones(),
            exec: step.exec,
            next: step.offset + 8,
            transfers: &step.transfers,
            scalar: &step.scalar,
        });
    }
    recorder.finish()
}

fn read(bytes: &[u8]) -> (Vec<Step>, Vec<Dispatch>, Vec<DispatchEnd>, bool) {
    let mut reader = Reader::new(bytes).expect("a recording");
    let (mut steps, mut dispatches, mut endings) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(item) = reader.next_item().expect("no damage") {
        match item {
            Item::Dispatch(one) => dispatches.push(one),
            Item::Steps(mut part) => {
                let mut step = Step::default();
                while part.next_step(&mut step).expect("no damage") {
                    steps.push(step.clone());
                }
            }
            Item::End { ending, .. } => endings.push(ending),
        }
    }
    (steps, dispatches, endings, reader.is_cut_off())
}

#[test]
fn recorded_accesses_are_read_again() {
    let file = File(Mutex::new(MAGIC.to_vec()), usize::MAX);
    assert!(file.write(dispatch().block().finish()));
    let all = steps();
    assert!(record(&file, Level::Memory, &all, 400));
    assert!(file.write(Block::end(3, DispatchEnd::Complete).finish()));
    let bytes = file.0.into_inner().expect("not poisoned");
    let (found, dispatches, endings, cut) = read(&bytes);
    assert_eq!(found.len(), 400 * all.len());
    assert!(found.chunks(all.len()).all(|chunk| chunk == all));
    assert_eq!(dispatches, [dispatch()]);
    assert_eq!(endings, [DispatchEnd::Complete]);
    assert!(!cut);
    // Wherever the file is cut off, the complete blocks are read, and the reader reports that the rest is missing.
    for end in (MAGIC.len() + 1..bytes.len()).step_by(997) {
        let (part, _, endings, cut) = read(&bytes[..end]);
        assert!(cut && endings.is_empty(), "{end}");
        assert_eq!(part[..], found[..part.len()], "{end}");
    }
}

#[test]
fn a_recorded_coalesced_load_takes_few_bytes() {
    let file = File(Mutex::default(), usize::MAX);
    let load = |wave: u64| Step {
        wave,
        offset: 0x40,
        exec: u64::MAX,
        transfers: vec![transfer(Space::Global, u64::MAX, |l| {
            0x7f00_0000 + 256 * wave + 4 * l
        })],
        ..Step::default()
    };
    let many: Vec<Step> = (0..1000).map(load).collect();
    assert!(record(&file, Level::Memory, &many, 1));
    let bytes = file.0.into_inner().expect("not poisoned").len();
    assert!(bytes < 10_000, "{bytes} bytes for 1000 loads");
}

#[test]
fn the_level_of_a_recording_decides_whether_it_has_other_instructions() {
    let plain = [Step {
        exec: 7,
        offset: 4,
        ..Step::default()
    }];
    for (level, count) in [(Level::Memory, 0), (Level::Instructions, 3)] {
        let file = File(Mutex::new(MAGIC.to_vec()), usize::MAX);
        assert!(record(&file, level, &plain, 3));
        let bytes = file.0.into_inner().expect("not poisoned");
        assert_eq!(read(&bytes).0.len(), count);
    }
}

#[test]
fn a_full_file_ends_the_recording_of_accesses() {
    let file = File(Mutex::new(MAGIC.to_vec()), 100_000);
    assert!(!record(&file, Level::Memory, &steps(), 4000));
    let bytes = file.0.into_inner().expect("not poisoned");
    assert!(!read(&bytes).0.is_empty());
}

#[test]
fn damaged_recordings_of_accesses_are_errors_without_a_panic() {
    assert!(matches!(
        Reader::new(&b"not a recording"[..]),
        Err(Problem::Damaged { at: 0, .. })
    ));
    let file = File(Mutex::new(MAGIC.to_vec()), usize::MAX);
    assert!(file.write(dispatch().block().finish()));
    assert!(record(&file, Level::Memory, &steps(), 20));
    let whole = file.0.into_inner().expect("not poisoned");
    let mut errors = 0;
    for at in MAGIC.len()..whole.len() {
        for value in [0, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let mut reader = Reader::new(bytes.as_slice()).expect("the start is sound");
            let mut totals = AccessTotals::default();
            let mut step = Step::default();
            loop {
                match reader.next_item() {
                    Ok(None) => break,
                    Err(_) => {
                        errors += 1;
                        break;
                    }
                    Ok(Some(Item::Steps(mut part))) => {
                        while let Ok(true) = part.next_step(&mut step) {
                            step.transfers.iter().for_each(|one| totals.add(one));
                            totals.add_scalar(&step.scalar);
                        }
                    }
                    Ok(Some(_)) => {}
                }
            }
        }
    }
    assert!(errors > 0);
}

fn totals(space: Space, lanes: u64, address: impl Fn(u64) -> u64) -> AccessTotals {
    let mut totals = AccessTotals::default();
    totals.executed(lanes);
    totals.add(&transfer(space, lanes, address));
    totals
}

#[test]
fn totals_distinguish_patterns_of_access() {
    let all = u64::MAX;
    let coalesced = totals(Space::Global, all, |l| 0x10000 + 4 * l);
    assert_eq!(
        (coalesced.bytes, coalesced.lines, coalesced.unique_lines()),
        (256, 4, 4)
    );
    assert_eq!(coalesced.coalescing(), Some(1.0));
    assert_eq!(coalesced.stride(), Some((Stride::Constant(4), 1.0)));

    let shifted = totals(Space::Global, all, |l| 0x10004 + 4 * l);
    assert_eq!((shifted.lines, shifted.ideal_lines), (5, 4));

    let strided = totals(Space::Global, all, |l| 0x10000 + 128 * l);
    assert_eq!((strided.lines, strided.ideal_lines), (64, 4));
    assert_eq!(strided.stride(), Some((Stride::Constant(128), 1.0)));

    let same = totals(Space::Global, all, |_| 0x10000);
    assert_eq!((same.bytes, same.lines, same.ideal_lines), (256, 1, 1));
    assert_eq!(same.stride(), Some((Stride::Constant(0), 1.0)));

    let scattered = totals(Space::Global, all, |l| 0x10000 + l * l * 64);
    assert_eq!(scattered.stride(), Some((Stride::Irregular, 1.0)));

    let conflicts = totals(Space::Lds, all, |l| 128 * l);
    assert_eq!((conflicts.lds_cycles, conflicts.conflict_cycles), (64, 62));
    assert_eq!(conflicts.coalescing(), None);
    let one = totals(Space::Global, 1 << 9, |_| 0x10000);
    assert_eq!((one.lanes, one.stride()), (1, None));
}
