//! The checker on generated sequences of accesses.

use std::cell::RefCell;
use std::collections::HashSet;

use super::*;
use crate::isa::Vmem;

/// One allocation of 4096 bytes at 0x10000, and one that was freed at 0x20000.
#[derive(Default)]
struct Memory(RefCell<HashSet<u64>>);

impl Heap for Memory {
    fn place(&self, address: u64) -> Place {
        match address {
            0x10000..0x11000 => Place::Inside {
                base: 0x10000,
                size: 0x1000,
                tracked: true,
            },
            0x20000..0x21000 => Place::Freed {
                base: 0x20000,
                size: 0x1000,
            },
            _ => Place::Outside {
                nearest: Some((0x10000, 0x1000)),
            },
        }
    }

    fn is_written(&self, address: u64, bytes: u32) -> bool {
        let written = self.0.borrow();
        (address..address + u64::from(bytes)).all(|byte| written.contains(&byte))
    }

    fn wrote(&self, address: u64, bytes: u32) {
        self.0
            .borrow_mut()
            .extend(address..address + u64::from(bytes));
    }
}

const LOAD: Operation = Operation::Load;
const STORE: Operation = Operation::Store;
const ATOMIC: Operation = Operation::Atomic(true);
/// Waits for all vector memory instructions.
const WAIT: Kind = Kind::Wait(0, 15);

/// Memory in which the words at 0x10000 and 0x10100 have been written.
fn written() -> Memory {
    let memory = Memory::default();
    memory.wrote(0x10000, 4);
    memory.wrote(0x10100, 4);
    memory
}

struct Run<'h> {
    checker: Checker<'h>,
    offset: u64,
}

impl<'h> Run<'h> {
    /// Two workgroups of two waves.
    fn new(memory: &'h Memory) -> Self {
        let mut checker = Checker::new(memory, 64, 4096);
        for id in 0..2 {
            checker.started(&Workgroup { id, items: 128 });
        }
        Self { checker, offset: 0 }
    }

    fn step(&mut self, (group, wave): (u64, usize), kind: Kind, exec: u64, transfers: &[Transfer]) {
        self.offset += 4;
        self.checker.executed(&Step {
            group,
            wave,
            offset: self.offset,
            length: 4,
            kind,
            lanes: exec.count_ones(),
            exec,
            next: self.offset + 4,
            transfers,
            scalar: &[],
        });
    }

    /// An access of lane 3 to four bytes.
    fn access(&mut self, who: (u64, usize), space: Space, operation: Operation, address: u64) {
        let kind = Kind::Vmem(Vmem {
            flat: true,
            operation,
            dwords: 1,
            coherent: false,
            streaming: false,
        });
        let transfer = Transfer {
            space,
            operation,
            bytes: 4,
            lanes: 8,
            addresses: [address; 64],
        };
        self.step(who, kind, u64::MAX, &[transfer]);
    }

    /// An instruction without accesses.
    fn plain(&mut self, who: (u64, usize), kind: Kind) {
        self.step(who, kind, u64::MAX, &[]);
    }

    /// A load of lane 3 that bypasses the first-level cache.
    fn load_past_cache(&mut self, who: (u64, usize), address: u64) {
        let kind = Kind::Vmem(Vmem {
            flat: true,
            operation: LOAD,
            dwords: 1,
            coherent: true,
            streaming: false,
        });
        let transfer = Transfer {
            space: Space::Global,
            operation: LOAD,
            bytes: 4,
            lanes: 8,
            addresses: [address; 64],
        };
        self.step(who, kind, u64::MAX, &[transfer]);
    }

    fn kinds(self) -> Vec<FindingKind> {
        self.checker
            .findings()
            .iter()
            .map(|finding| finding.kind)
            .collect()
    }
}

#[test]
fn the_checker_takes_barriers_as_order_within_a_workgroup() {
    let memory = Memory::default();
    let mut run = Run::new(&memory);
    run.access((0, 0), Space::Lds, STORE, 16);
    run.checker.released(0);
    run.access((0, 1), Space::Lds, LOAD, 16);
    run.access((0, 1), Space::Lds, STORE, 20);
    run.access((0, 0), Space::Lds, LOAD, 20);
    let findings = run.checker.findings();
    assert_eq!(findings.len(), 1, "{findings:?}");
    let race = findings[0];
    assert_eq!(
        (race.kind, race.lanes, race.writes),
        (FindingKind::LdsRace, 8, false)
    );
    let other = race.other.expect("a race has two sides");
    assert_eq!(
        (other.group, other.wave, other.offset, other.writes),
        (0, 1, 12, true)
    );
}

#[test]
fn the_checker_reports_a_write_that_races_with_a_read() {
    let memory = Memory::default();
    let mut run = Run::new(&memory);
    run.access((0, 0), Space::Lds, STORE, 0);
    run.checker.released(0);
    run.access((0, 1), Space::Lds, LOAD, 0);
    run.access((0, 0), Space::Lds, STORE, 0);
    assert_eq!(run.kinds(), [FindingKind::LdsRace]);
}

#[test]
fn the_checker_keeps_the_local_memory_of_workgroups_apart() {
    let memory = Memory::default();
    let mut run = Run::new(&memory);
    run.access((0, 0), Space::Lds, STORE, 0);
    run.access((1, 0), Space::Lds, LOAD, 0);
    assert_eq!(run.kinds(), [FindingKind::UninitialisedLds]);
}

#[test]
fn the_checker_takes_no_barrier_as_order_between_workgroups() {
    let memory = Memory::default();
    let mut run = Run::new(&memory);
    run.access((0, 0), Space::Global, STORE, 0x10000);
    run.checker.released(0);
    run.checker.released(1);
    run.access((1, 0), Space::Global, LOAD, 0x10000);
    assert_eq!(run.kinds(), [FindingKind::GlobalRace]);
}

/// A wave stores and then adds to a counter; a wave of another workgroup adds to the counter and then loads.
/// `release` are instructions before the first addition, `acquire` those after the second.
fn passed_on(release: &[Kind], acquire: &[Kind]) -> Vec<FindingKind> {
    let memory = written();
    let mut run = Run::new(&memory);
    run.access((0, 0), Space::Global, STORE, 0x10000);
    release.iter().for_each(|&kind| run.plain((0, 0), kind));
    run.access((0, 0), Space::Global, ATOMIC, 0x10100);
    run.access((1, 0), Space::Global, ATOMIC, 0x10100);
    acquire.iter().for_each(|&kind| run.plain((1, 0), kind));
    run.access((1, 0), Space::Global, LOAD, 0x10000);
    run.kinds()
}

#[test]
fn the_checker_takes_release_and_acquire_as_order() {
    assert_eq!(passed_on(&[WAIT], &[WAIT, Kind::Invalidate]), []);
    for (release, acquire) in [
        (&[][..], &[WAIT, Kind::Invalidate][..]),
        (&[WAIT], &[WAIT]),
        (&[], &[]),
        // One access may still be outstanding.
        (&[Kind::Wait(1, 15)], &[Kind::Invalidate]),
    ] {
        assert_eq!(passed_on(release, acquire), [FindingKind::GlobalRace]);
    }
    // What the first workgroup does after its atomic is not ordered.
    let memory = written();
    let mut run = Run::new(&memory);
    run.access((0, 0), Space::Global, ATOMIC, 0x10100);
    run.access((1, 0), Space::Global, ATOMIC, 0x10100);
    run.plain((1, 0), Kind::Invalidate);
    run.access((1, 0), Space::Global, LOAD, 0x10000);
    run.access((0, 0), Space::Global, STORE, 0x10000);
    assert_eq!(run.kinds(), [FindingKind::GlobalRace]);
}

#[test]
fn the_checker_accepts_loads_past_the_cache_without_invalidation() {
    let memory = written();
    let mut run = Run::new(&memory);
    run.access((0, 0), Space::Global, STORE, 0x10000);
    run.plain((0, 0), WAIT);
    run.access((0, 0), Space::Global, ATOMIC, 0x10100);
    run.access((1, 0), Space::Global, ATOMIC, 0x10100);
    run.load_past_cache((1, 0), 0x10000);
    run.access((1, 0), Space::Global, STORE, 0x10004);
    assert_eq!(run.kinds(), []);
}

#[test]
fn the_checker_knows_that_waves_of_a_workgroup_share_a_cache() {
    let memory = written();
    let mut run = Run::new(&memory);
    run.access((0, 0), Space::Global, STORE, 0x10000);
    run.access((0, 0), Space::Global, ATOMIC, 0x10100);
    run.access((0, 1), Space::Global, ATOMIC, 0x10100);
    run.access((0, 1), Space::Global, LOAD, 0x10000);
    assert_eq!(run.kinds(), []);
}

#[test]
fn the_checker_accepts_a_wave_that_polls_for_a_plain_store() {
    for (looks, expected) in [(1, &[FindingKind::GlobalRace][..]), (2, &[])] {
        let memory = written();
        let mut run = Run::new(&memory);
        run.load_past_cache((0, 0), 0x10100);
        run.access((1, 0), Space::Global, STORE, 0x10000);
        run.plain((1, 0), WAIT);
        run.access((1, 0), Space::Global, STORE, 0x10100);
        if looks == 2 {
            run.load_past_cache((0, 0), 0x10100);
            run.plain((0, 0), Kind::Invalidate);
            run.access((0, 0), Space::Global, LOAD, 0x10000);
        }
        assert_eq!(run.kinds(), expected);
    }
}

#[test]
fn the_checker_takes_barriers_of_the_grid_as_order_between_workgroups() {
    let memory = written();
    let mut run = Run::new(&memory);
    run.access((0, 0), Space::Global, STORE, 0x10000);
    run.plain((0, 0), Kind::Gds);
    run.plain((1, 0), Kind::Gds);
    run.plain((1, 0), WAIT);
    run.access((1, 0), Space::Global, LOAD, 0x10000);
    assert_eq!(run.kinds(), []);
}

#[test]
fn the_checker_ends_local_memory_at_its_declared_size() {
    let memory = Memory::default();
    let mut run = Run::new(&memory);
    run.access((0, 0), Space::Lds, STORE, 4092);
    run.access((0, 0), Space::Lds, STORE, 4094);
    run.access((0, 0), Space::Lds, STORE, 4096);
    let findings = run.checker.findings();
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert!(
        findings
            .iter()
            .all(|finding| finding.kind == FindingKind::LdsOutOfBounds)
    );
}

#[test]
fn the_checker_reports_no_race_between_different_bytes() {
    let memory = Memory::default();
    let mut run = Run::new(&memory);
    run.access((0, 0), Space::Global, STORE, 0x10000);
    run.access((1, 0), Space::Global, STORE, 0x10004);
    run.access((1, 1), Space::Global, STORE, 0x10008);
    assert_eq!(run.kinds(), []);
}

#[test]
fn the_checker_distinguishes_misaligned_outside_freed_and_uninitialised_memory() {
    let memory = Memory::default();
    let mut run = Run::new(&memory);
    run.access((0, 0), Space::Global, LOAD, 0x10000);
    run.access((0, 0), Space::Global, STORE, 0x10ffe);
    run.access((0, 0), Space::Global, STORE, 0x20000);
    run.access((0, 0), Space::Global, ATOMIC, 0x10002);
    use FindingKind::{MisalignedAtomic, OutOfBounds, UninitialisedRead, UseAfterFree};
    let kinds = run.kinds();
    assert_eq!(
        kinds[..4],
        [
            UninitialisedRead,
            OutOfBounds,
            UseAfterFree,
            MisalignedAtomic
        ]
    );
}

#[test]
fn the_checker_reports_lanes_that_skip_a_barrier() {
    let memory = Memory::default();
    let mut run = Run::new(&memory);
    run.step((0, 0), Kind::Barrier, 0xff, &[]);
    run.step((0, 0), Kind::Salu, 0x0f, &[]);
    run.step((0, 1), Kind::Barrier, 0xff, &[]);
    run.step((0, 1), Kind::Salu, 0x1ff, &[]);
    let findings = run.checker.findings();
    assert_eq!(findings.len(), 1);
    assert_eq!(
        (findings[0].kind, findings[0].wave),
        (FindingKind::BarrierDivergence, 1)
    );
    assert_eq!((findings[0].offset, findings[0].lanes), (12, 0xff));
}
