//! What runs on a GPU at each instant: the algebra of intervals, by one pass over operations in the order of their starts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::classes::Class;

/// A time in which the same kinds of operations run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// First instant.
    pub start: u64,
    /// End, exclusive; after the start.
    pub end: u64,
    /// Bits of the classes of which at least one operation runs ([`Class::bit`]).
    pub classes: u8,
    /// Number of operations that run.
    pub ops: u32,
}

/// Time by what runs: the measure of each set of classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measure {
    /// Nanoseconds by the bits of the classes that run.
    by_classes: [u64; 16],
    /// Nanoseconds in which two or more operations run.
    pub several: u64,
    /// Durations added up, by class.
    pub sums: [u64; 4],
    /// Numbers of operations, by class.
    pub counts: [u64; 4],
}

impl Measure {
    /// Adds a time.
    pub fn add(&mut self, running: Running) {
        let length = running.end - running.start;
        self.by_classes[usize::from(running.classes & 15)] += length;
        if running.ops > 1 {
            self.several += length;
        }
    }

    /// Time in which at least one of these classes, and none of `without`, runs.
    pub fn of(&self, any: u8, without: u8) -> u64 {
        let all = self.by_classes.iter().zip(0_u8..);
        all.filter(|(_, bits)| bits & any != 0 && bits & without == 0)
            .map(|(length, _)| length)
            .sum()
    }

    /// Time in which anything runs.
    pub fn busy(&self) -> u64 {
        self.of(15, 0)
    }

    /// Length of the union of a class.
    pub fn union(&self, class: Class) -> u64 {
        self.of(class.bit(), 0)
    }

    /// Time of a class that none before it in [`Class::ALL`] covers.
    pub fn exposed(&self, class: Class) -> u64 {
        self.of(class.bit(), class.bit() - 1)
    }

    /// Time in which both classes run.
    pub fn overlap(&self, one: Class, other: Class) -> u64 {
        let both = one.bit() | other.bit();
        let all = self.by_classes.iter().zip(0_u8..);
        all.filter(|(_, bits)| bits & both == both)
            .map(|(length, _)| length)
            .sum()
    }

    /// Durations added up.
    pub fn sum(&self) -> u64 {
        self.sums.iter().sum()
    }

    /// Adds what another one measured.
    pub fn join(&mut self, other: &Measure) {
        let add = |to: &mut [u64], from: &[u64]| {
            for (to, from) in to.iter_mut().zip(from) {
                *to += from;
            }
        };
        add(&mut self.by_classes, &other.by_classes);
        add(&mut self.sums, &other.sums);
        add(&mut self.counts, &other.counts);
        self.several += other.several;
    }
}

/// A pass over the operations of one GPU. It holds those that run at an instant, no others.
#[derive(Debug, Default)]
pub struct Sweep {
    now: u64,
    ends: BinaryHeap<Reverse<(u64, Class)>>,
    running: [u32; 4],
}

impl Sweep {
    /// Adds an operation, whose start is not before that of any other before it, and calls `each` with the times that are then
    /// complete. An operation without a length runs at no time.
    pub fn add(&mut self, start: u64, end: u64, class: Class, mut each: impl FnMut(Running)) {
        if end <= start {
            return;
        }
        self.advance(start, &mut each);
        self.ends.push(Reverse((end, class)));
        self.running[class as usize] += 1;
    }

    /// Calls `each` with the times up to an instant.
    fn advance(&mut self, to: u64, each: &mut impl FnMut(Running)) {
        while let Some(Reverse((end, class))) = self.ends.peek().copied() {
            if end > to {
                break;
            }
            self.step(end, each);
            self.ends.pop();
            self.running[class as usize] -= 1;
        }
        self.step(to, each);
    }

    /// The time since the last instant, in which nothing changed.
    fn step(&mut self, to: u64, each: &mut impl FnMut(Running)) {
        let ops: u32 = self.running.iter().sum();
        if to > self.now && ops > 0 {
            let bits = Class::ALL
                .iter()
                .filter(|class| self.running[**class as usize] > 0);
            each(Running {
                start: self.now,
                end: to,
                classes: bits.map(|class| class.bit()).sum(),
                ops,
            });
        }
        self.now = self.now.max(to);
    }

    /// Calls `each` with the times that are left.
    pub fn finish(&mut self, mut each: impl FnMut(Running)) {
        while let Some(Reverse((end, _))) = self.ends.peek().copied() {
            self.advance(end, &mut each);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn measured(mut ops: Vec<(u64, u64, Class)>) -> (Measure, Vec<Running>) {
        ops.sort();
        let (mut sweep, mut measure, mut all) = (Sweep::default(), Measure::default(), Vec::new());
        let mut each = |running: Running| {
            measure.add(running);
            all.push(running);
        };
        for (start, end, class) in ops {
            sweep.add(start, end, class, &mut each);
        }
        sweep.finish(&mut each);
        (measure, all)
    }

    proptest! {
        // answers-2: parts add up, and equal those of a bitmap.
        #[test]
        fn measures_equal_those_of_a_bitmap(ops in prop::collection::vec((0_u64..120, 0_u64..30, 0_usize..4), 0..20)) {
            let ops: Vec<_> = ops.into_iter().map(|(start, length, class)| (start, start + length, Class::ALL[class])).collect();
            let (measure, all) = measured(ops.clone());
            let at = |time: u64| -> u8 {
                let here = ops.iter().filter(|op| op.0 <= time && time < op.1);
                here.fold(0, |bits, op| bits | op.2.bit())
            };
            let bitmap: Vec<u8> = (0..160).map(at).collect();
            let count = |wanted: &dyn Fn(u8) -> bool| bitmap.iter().filter(|bits| wanted(**bits)).count() as u64;
            prop_assert_eq!(measure.busy(), count(&|bits| bits != 0));
            for class in Class::ALL {
                prop_assert_eq!(measure.union(class), count(&|bits| bits & class.bit() != 0));
                prop_assert_eq!(measure.exposed(class), count(&|bits| bits & class.bit() != 0 && bits & (class.bit() - 1) == 0));
            }
            prop_assert_eq!(measure.overlap(Class::Comm, Class::Compute), count(&|bits| bits & 3 == 3));
            let exposed: u64 = Class::ALL.iter().map(|class| measure.exposed(*class)).sum();
            prop_assert_eq!(exposed, measure.busy());
            prop_assert!(all.windows(2).all(|pair| pair[0].end <= pair[1].start));
        }
    }

    // answers-3 and answers-9.
    #[test]
    fn touching_times_join_and_late_times_do_not_overflow() {
        let late = i64::MAX as u64;
        let (measure, _) = measured(vec![
            (late - 20, late - 10, Class::Compute),
            (late - 10, late, Class::Compute),
        ]);
        assert_eq!((measure.busy(), measure.several), (20, 0));
    }
}
