//! The loop that executes the instructions of a wave.

use super::classify::kind;
use super::exec::{Exec, PAGE, WaveState};
use super::inst::Inst;
use super::{Fault, vop};

impl Exec<'_> {
    /// Executes at most `most` instructions of the wave; fewer if it stops before. Returns the number. `WATCHED`:
    /// reports to the probe.
    pub(super) fn run<const WATCHED: bool>(&mut self, most: u64) -> u64 {
        let mut budget = most;
        let program = self.d.program;
        let start = program.start();
        let mut page_number = usize::MAX;
        let mut page: &[Inst] = &[];
        while budget > 0 {
            budget -= 1;
            let index = (self.w.pc.wrapping_sub(start) >> 2) as usize;
            if index / PAGE != page_number {
                page_number = index / PAGE;
                page = program.page(page_number).unwrap_or_default();
            }
            let Some(inst) = page.get(index % PAGE) else {
                let site = self.site(self.w.pc, 0);
                self.fail(Fault::Jump { site });
                return most - budget;
            };
            if WATCHED {
                let (offset, exec) = (self.w.pc.wrapping_sub(start), self.exec());
                if let Some(trace) = &mut self.trace {
                    trace.begin(offset, exec);
                }
            }
            self.w.pc += u64::from(inst.words) * 4;
            self.stats.instructions[inst.class as usize] += 1;
            if self.w.index_mode == 0 {
                (inst.run)(self, inst);
            } else {
                let inst = vop::indexed(self, inst);
                (inst.run)(self, &inst);
            }
            if WATCHED {
                let next = self.w.pc.wrapping_sub(start);
                if let Some(trace) = &mut self.trace {
                    trace.end(kind(inst), u64::from(inst.words) * 4, next);
                }
            }
            if self.w.state != WaveState::Running {
                break;
            }
        }
        most - budget
    }
}
