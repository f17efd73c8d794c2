//! A workgroup in execution: initial state of its waves, and the order of their turns.

use super::exec::{Exec, Wave, WaveState};
use super::inst::{EXEC, FLAT_SCRATCH};
use super::schedule::Schedule;
use super::{Dispatch, Extent, Fault, Workgroup};

/// Properties that all workgroups of a dispatch share.
pub(super) struct Layout {
    /// Address of the kernel's first instruction.
    pub(super) entry: u64,
    /// Number of workgroups.
    pub(super) groups: u64,
    /// Workgroups in each dimension.
    counts: [u32; 3],
    /// Size of the scratch memory of a wave in bytes.
    scratch: u64,
    /// Size of the LDS of a workgroup in bytes.
    lds: usize,
    /// Number of vector and accumulation registers to clear when a wave starts.
    registers: [usize; 2],
}

impl Layout {
    pub(super) fn new(d: &Dispatch<'_>) -> Result<Self, Fault> {
        let refuse = |why: String| {
            Err(Fault::Launch {
                kernel: d.kernel.to_owned(),
                why,
            })
        };
        let size: u32 = d.workgroup.iter().map(|s| u32::from(*s)).product();
        let max_work_items = d.device.code.max_work_items;
        if size == 0 || size > max_work_items {
            return refuse(format!(
                "workgroups of {}x{}x{} work-items; 1 to {max_work_items} are possible",
                d.workgroup[0], d.workgroup[1], d.workgroup[2]
            ));
        }
        let lds = d.group_segment_size.max(d.descriptor.group_segment_size);
        let lds_bytes = d.device.layout.lds_bytes;
        if lds > lds_bytes {
            return refuse(format!(
                "{lds} bytes of LDS; a workgroup can have {lds_bytes}"
            ));
        }
        if d.descriptor.properties >> 10 & 1 != 0 {
            return refuse("compiled for waves of 32 lanes; this device has 64".into());
        }
        let counts: [u32; 3] =
            std::array::from_fn(|n| d.grid[n].div_ceil(u32::from(d.workgroup[n])));
        let groups = counts
            .iter()
            .try_fold(1u64, |product, n| product.checked_mul(u64::from(*n)));
        let Some(groups) = groups else {
            return refuse("its grid has too many workgroups".into());
        };
        let private = d
            .private_segment_size
            .max(d.descriptor.private_segment_size);
        let scratch = if d.descriptor.uses_scratch() || private != 0 {
            (u64::from(private) * 64).next_multiple_of(1024)
        } else {
            0
        };
        if scratch > 64 * (8 << 20) {
            return refuse(format!("{private} bytes of scratch for a work-item"));
        }
        let vgprs = d.descriptor.vgprs().min(d.device.layout.vector_registers) as usize;
        let split = (d.descriptor.accum_offset() as usize).min(vgprs);
        Ok(Self {
            entry: d.entry(),
            groups,
            counts,
            scratch,
            // A kernel can access the whole allocated granule, not only what it requested.
            lds: lds.next_multiple_of(d.device.layout.lds_granule) as usize,
            registers: [split.min(256), (vgprs - split).min(256)],
        })
    }
}

/// A workgroup and the memory of its waves, which is reused for the next one.
#[expect(
    clippy::vec_box,
    reason = "waves are swapped in and out of execution at every turn"
)]
pub(super) struct Group {
    id: u64,
    waves: Vec<Box<Wave>>,
    /// Number of waves that the workgroup has.
    count: usize,
    lds: Vec<u8>,
    scratch: Vec<u8>,
    fresh: bool,
    /// Whether the probe observes the workgroup.
    followed: bool,
    /// Number of instructions that each wave has executed, if the probe observes the workgroup.
    executed: Vec<u64>,
}

impl Group {
    pub(super) fn new() -> Self {
        Self {
            id: 0,
            waves: Vec::new(),
            count: 0,
            lds: Vec::new(),
            scratch: Vec::new(),
            fresh: true,
            followed: false,
            executed: Vec::new(),
        }
    }

    /// Initialises workgroup `id`.
    pub(super) fn start(&mut self, layout: &Layout, d: &Dispatch<'_>, id: u64, x: &mut Exec<'_>) {
        self.id = id;
        let [columns, rows, _] = layout.counts.map(u64::from);
        let at = [
            (id % columns) as u32,
            (id / columns % rows) as u32,
            (id / columns / rows) as u32,
        ];
        // The last workgroups of a dimension may be smaller.
        let size: [u32; 3] = std::array::from_fn(|n| {
            let full = u32::from(d.workgroup[n]);
            full.min(d.grid[n] - at[n] * full)
        });
        let items = size[0] * size[1] * size[2];
        self.count = items.div_ceil(64) as usize;
        // Waves are kept from earlier workgroups, which are as large in nearly all dispatches.
        while self.waves.len() < self.count {
            self.waves.push(Box::new(Wave::new()));
        }
        // The hardware does not clear LDS; kernels must not depend on that, but runs must give the same results.
        self.lds.clear();
        self.lds.resize(layout.lds, 0);
        let scratch = layout.scratch as usize * self.count;
        if self.scratch.len() < scratch {
            self.scratch.resize(scratch, 0);
        }
        let scratch = self.scratch.as_ptr() as u64;
        for (n, wave) in self.waves[..self.count].iter_mut().enumerate() {
            start_wave(wave, layout, d, at, size, n as u32, scratch);
        }
        self.fresh = true;
        x.stats.workgroups += 1;
        x.stats.waves += self.count as u64;
        x.stats.work_items += u64::from(items);
        self.followed = false;
        // A probe decides for each workgroup, because watching makes execution several times slower.
        if let Some(trace) = &mut x.trace {
            let group = Workgroup { id, items };
            self.followed = trace.probe.follows(&group);
            if self.followed {
                trace.probe.started(&group);
                self.executed.clear();
                self.executed.resize(self.count, 0);
            }
        }
    }

    /// Gives the waves turns until all have ended (returns true), or until a fault or the end of the workgroup's own
    /// turn (returns false).
    pub(super) fn run(&mut self, x: &mut Exec<'_>, schedule: &mut Schedule) -> bool {
        // The execution state owns LDS while the workgroup runs, which saves an indirection in each access.
        std::mem::swap(&mut self.lds, &mut x.lds);
        // Scratch and LDS are not allocations of the device, so that their ranges come first in the cache.
        let own = [&self.scratch, &x.lds].map(|bytes| {
            let range = bytes.as_ptr_range();
            Extent {
                start: range.start as u64,
                end: range.end as u64,
                writable: true,
                fine_grained: false,
            }
        });
        let first = self.fresh;
        x.mem.reset(&own, first);
        x.group = self.id;
        self.fresh = false;
        // Instructions that the probe may observe are executed by another function.
        let mut resting = None;
        if !self.followed {
            resting = x.trace.take();
        }
        if let Some(trace) = &mut x.trace {
            trace.group = self.id;
        }
        let mut left = schedule.group_turn(first) as i64;
        let ended = loop {
            let mut idle = true;
            for nth in 0..self.count {
                let number = schedule.wave(nth, self.count);
                let wave = &mut self.waves[number];
                // A wave that waits for other workgroups holds no turn until its condition is met.
                if wave.state == WaveState::Global
                    && wave
                        .wait
                        .is_none_or(|wait| x.mem.memory().wave_sync().is_over(wait))
                {
                    wave.state = WaveState::Running;
                }
                if wave.state == WaveState::Running {
                    idle = false;
                    if let Some(trace) = &mut x.trace {
                        trace.wave = number;
                    }
                    x.wave = number as u32;
                    let turn = schedule.turn(self.count);
                    // The wave is moved into the execution state, so that instructions reach its registers without
                    // another pointer.
                    std::mem::swap(wave, &mut x.w);
                    if self.followed {
                        follow(x, number, &mut self.executed[number], turn);
                    } else {
                        x.run::<false>(turn);
                    }
                    std::mem::swap(wave, &mut x.w);
                    left -= turn as i64;
                }
                match wave.state {
                    // `s_sleep` gives up one turn.
                    WaveState::Yield => wave.state = WaveState::Running,
                    // The other waves must not run on: what they do after a fault would depend on the order of
                    // execution.
                    WaveState::Faulted => break,
                    WaveState::Running
                    | WaveState::Barrier
                    | WaveState::Global
                    | WaveState::Ended => {}
                }
            }
            if x.fault.is_some() {
                break false;
            }
            let (mut waiting, mut ended, mut global) = (0, 0, 0);
            for wave in &self.waves[..self.count] {
                waiting += usize::from(wave.state == WaveState::Barrier);
                ended += usize::from(wave.state == WaveState::Ended);
                global += usize::from(wave.state == WaveState::Global);
            }
            if ended == self.count {
                break true;
            }
            // The barrier does not wait for waves that have ended.
            if waiting + ended == self.count {
                for wave in &mut self.waves[..self.count] {
                    if wave.state == WaveState::Barrier {
                        wave.state = WaveState::Running;
                    }
                }
                if let Some(trace) = &mut x.trace
                    && waiting != 0
                {
                    trace.probe.released(self.id);
                }
            }
            // When all waves wait for other workgroups, those must run next.
            if left < 0 || idle && global != 0 {
                break false;
            }
        };
        std::mem::swap(&mut self.lds, &mut x.lds);
        if let Some(trace) = &mut x.trace
            && ended
        {
            for (wave, &executed) in self.executed.iter().enumerate() {
                trace.probe.retired(self.id, wave, executed);
            }
            trace.probe.ended(self.id);
        }
        if resting.is_some() {
            x.trace = resting;
        }
        ended
    }
}

/// Executes a turn of a wave that the probe observes. The probe selects the instructions that are reported.
fn follow(x: &mut Exec<'_>, number: usize, executed: &mut u64, turn: u64) {
    let mut left = turn;
    while left > 0 && x.w.state == WaveState::Running {
        // Taken out, so that instructions that are not reported run without a test for the probe.
        let Some(trace) = x.trace.take() else {
            return;
        };
        let (reported, until) = trace.probe.window(trace.group, number, *executed);
        let most = left.min(until.max(1));
        let done = if reported {
            x.trace = Some(trace);
            x.run::<true>(most)
        } else {
            let done = x.run::<false>(most);
            x.trace = Some(trace);
            done
        };
        *executed += done;
        if x.w.state == WaveState::Barrier {
            // The program counter is after the barrier.
            let offset = x.w.pc.wrapping_sub(4).wrapping_sub(x.d.program.base());
            let exec = x.exec();
            if let Some(trace) = &mut x.trace {
                trace.probe.waits(trace.group, number, offset, exec);
            }
        }
        left -= done.min(left);
        // The wave stopped at once, such as at a barrier: the turn is over.
        if done == 0 {
            return;
        }
    }
}

/// The initial state of a wave according to the kernel descriptor.
fn start_wave(
    wave: &mut Wave,
    layout: &Layout,
    d: &Dispatch<'_>,
    at: [u32; 3],
    size: [u32; 3],
    number: u32,
    scratch: u64,
) {
    let descriptor = &d.descriptor;
    // A wave's memory is used again: everything that a kernel could read of the last one is set.
    wave.s = [0; 129];
    wave.scc = false;
    wave.pc = layout.entry;
    wave.set_mode(descriptor.float_mode());
    wave.index_mode = 0;
    wave.state = WaveState::Running;
    wave.wait = None;
    // Only the registers that the kernel has; clearing all 512 would cost more than a short kernel.
    let [vector, accumulation] = layout.registers;
    wave.v[..vector].fill([0; 64]);
    wave.v[256..256 + accumulation].fill([0; 64]);

    // The last wave of a workgroup may have fewer lanes.
    let first = number * 64;
    let lanes = (size[0] * size[1] * size[2] - first).min(64);
    let exec = u64::MAX >> (64 - lanes);
    wave.s[usize::from(EXEC)] = exec as u32;
    wave.s[usize::from(EXEC) + 1] = (exec >> 32) as u32;
    // gfx90a packs the three ids of a work-item into one register.
    let (mut x, rest) = (first % size[0], first / size[0]);
    let (mut y, mut z) = (rest % size[1], rest / size[1]);
    for l in 0..lanes {
        wave.v[0][l as usize] = x | y << 10 | z << 20;
        x += 1;
        if x == size[0] {
            (x, y) = (0, y + 1);
            if y == size[1] {
                (y, z) = (0, z + 1);
            }
        }
    }

    // User SGPRs in the order of the descriptor's property bits, as the command processor writes them.
    let wave_scratch = layout.scratch * u64::from(number);
    let mut next = 0;
    let mut push = |value: u32| {
        // A malformed descriptor may request more registers than there are.
        if next < 102 {
            wave.s[next] = value;
            next += 1;
        }
    };
    let mut push64 = |value: u64| {
        push(value as u32);
        push((value >> 32) as u32);
    };
    let enabled = |bit: u32| descriptor.properties >> bit & 1 != 0;
    if enabled(0) {
        // Swizzled by lane: element size 4, index stride 64.
        push64(scratch & 0xffff_ffff_ffff | 1 << 63);
        push64(0xffff_ffff | (1 << 23 | 3 << 21 | 1 << 19 | 4 << 15) << 32);
    }
    if enabled(1) {
        push64(d.packet);
    }
    if enabled(2) {
        push64(d.queue);
    }
    if enabled(3) {
        push64(d.kernarg);
    }
    if enabled(4) {
        push64(d.dispatch_id);
    }
    if enabled(5) {
        push64(scratch);
    }
    if enabled(6) {
        push((layout.scratch / 64) as u32);
    }
    // Kernel arguments that the hardware loads into registers before the wave starts.
    let preload = u64::from(descriptor.preload & 0x7f);
    let preload_offset = u64::from(descriptor.preload >> 7);
    for n in 0..preload {
        let address = d.kernarg + 4 * (preload_offset + n);
        // SAFETY: the dispatch's kernel arguments have the size that its descriptor states.
        push(unsafe { (address as *const u32).read_unaligned() });
    }
    let user = descriptor.user_sgprs() as usize;
    // The descriptor may reserve more user SGPRs than its properties fill.
    next = next.max(user);
    let mut push = |value: u32| {
        if next < 102 {
            wave.s[next] = value;
            next += 1;
        }
    };
    for (n, id) in at.into_iter().enumerate() {
        if descriptor.rsrc2 >> (7 + n) & 1 != 0 {
            push(id);
        }
    }
    if descriptor.rsrc2 >> 10 & 1 != 0 {
        // Workgroup information: first wave in bit 31, waves in the low bits.
        push((size[0] * size[1] * size[2]).div_ceil(64) | u32::from(number == 0) << 31);
    }
    if descriptor.uses_scratch() && !d.device.code.architected_scratch {
        push(wave_scratch as u32);
    }
    // The scratch base of devices that set it themselves, and what other kernels would find.
    let base = scratch + wave_scratch;
    wave.s[usize::from(FLAT_SCRATCH)] = base as u32;
    wave.s[usize::from(FLAT_SCRATCH) + 1] = (base >> 32) as u32;
}
