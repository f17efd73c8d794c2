//! Register writes in a stream: code objects and clocks from the host, and the set-up of a dispatch.

use crate::record::{Dispatch, EventKind, Pc, Realtime};

/// Compute registers, as numbered in the stream.
mod compute {
    pub(super) const NUM_THREAD_X: u32 = 0x07;
    pub(super) const NUM_THREAD_Z: u32 = 0x09;
    pub(super) const PGM_LO: u32 = 0x0C;
    pub(super) const PGM_HI: u32 = 0x0D;
    pub(super) const PACKET_LO: u32 = 0x0E;
    pub(super) const PACKET_HI: u32 = 0x0F;
    pub(super) const RSRC1: u32 = 0x12;
    pub(super) const RSRC2: u32 = 0x13;
    pub(super) const RSRC3: u32 = 0x2D;
}

/// Register that begins a dispatch when bit 0 of its value is set.
pub(crate) const DISPATCH_INITIATOR: u32 = 0x00;
/// Register without an effect: the value written to it is the number of an event.
pub(crate) const NOWHERE: u32 = 0x7F;
/// Value of [`NOWHERE`]: compute work before it is complete.
pub(crate) const CS_PARTIAL_FLUSH: u32 = 7;

const USERDATA_2: u32 = 0xC342;
const USERDATA_3: u32 = 0xC343;
/// `\0ROC`: the word after which packets of the host follow.
const START_WORD: u32 = 0x434F_5200;

const OPCODE_CODE_OBJECT: u32 = 4;
const OPCODE_REALTIME: u32 = 5;
/// A packet with the low half of the real-time clock; the high half follows from the previous reading.
const OPCODE_REALTIME_LOW: u32 = 7;
const OPCODE_AGENT: u32 = 6;

/// Number of pipes of all micro engines: one bit for the engine, two for the pipe.
const PIPES: usize = 8;

/// Most code objects per stream; a stream that announces more is refused.
const MAX_CODE_OBJECTS: usize = 1 << 16;

/// A loaded code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Loaded {
    address: u64,
    size: u64,
    id: u64,
}

/// Loaded code objects by address.
#[derive(Debug, Default)]
struct Table {
    /// Loaded code objects in the order of their addresses.
    loaded: Vec<Loaded>,
    last: usize,
}

impl Table {
    fn insert(&mut self, object: Loaded) {
        if self.loaded.len() < MAX_CODE_OBJECTS {
            let at = self.loaded.partition_point(|o| o.address <= object.address);
            self.loaded.insert(at, object);
        }
    }

    fn contains(&self, id: u64) -> bool {
        self.loaded.iter().any(|object| object.id == id)
    }

    fn remove(&mut self, id: u64) {
        self.loaded.retain(|object| object.id != id);
    }

    fn find(&mut self, address: u64) -> Pc {
        let holds = |o: &Loaded| address >= o.address && address - o.address < o.size;
        let pc = |o: &Loaded| Pc {
            address: address - o.address,
            code_object: o.id,
        };
        if let Some(object) = self.loaded.get(self.last).filter(|o| holds(o)) {
            return pc(object);
        }
        let behind = self.loaded.partition_point(|o| o.address <= address);
        match behind.checked_sub(1).map(|at| (at, &self.loaded[at])) {
            Some((at, object)) if holds(object) => {
                self.last = at;
                pc(object)
            }
            _ => Pc {
                address,
                code_object: 0,
            },
        }
    }
}

/// Values that packets of one pipe have announced so far.
#[derive(Debug, Clone, Copy, Default)]
struct AnnouncedRegisters {
    address: u64,
    size: u64,
    id: u64,
    /// Type of a code object packet whose next word is due.
    due: Option<u32>,
}

/// Effect of a register write on code objects, whose loads and unloads the driver announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeObjectEffect {
    Nothing,
    Loaded(u64),
    Unloaded(u64),
}

impl CodeObjectEffect {
    pub(crate) fn event(self) -> Option<(EventKind, u64)> {
        match self {
            CodeObjectEffect::Nothing => None,
            CodeObjectEffect::Loaded(id) => Some((EventKind::CodeObjectLoad, id)),
            CodeObjectEffect::Unloaded(id) => Some((EventKind::CodeObjectUnload, id)),
        }
    }
}

/// A register write: its pipe, register and value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write {
    pub(crate) me: u8,
    pub(crate) pipe: u8,
    pub(crate) address: u32,
    pub(crate) data: u32,
}

impl Write {
    fn slot(self) -> usize {
        slot(self.me, self.pipe)
    }
}

fn slot(me: u8, pipe: u8) -> usize {
    usize::from(me & 1) * 4 + usize::from(pipe & 3)
}

fn set_low(word: &mut u64, data: u32) {
    *word = *word & !0xFFFF_FFFF | u64::from(data);
}

fn set_high(word: &mut u64, data: u32) {
    *word = *word & 0xFFFF_FFFF | u64::from(data) << 32;
}

/// State that register writes change.
#[derive(Debug, Default)]
pub(crate) struct Registers {
    /// Version of the stream; 0 for GFX9.
    version: u8,
    entry: [u64; PIPES],
    packet: [u64; PIPES],
    threads: [u32; 3],
    rsrc: [u32; 3],
    announced: [AnnouncedRegisters; PIPES],
    /// Code objects that are loaded at this point of the stream.
    table: Table,
    /// Code objects that were loaded at the start of the trace.
    from_start: Table,
    /// Number of code objects that the stream has named.
    pub(crate) named: u64,
    host_packets: bool,
    /// Number of words of a clock packet that are still to come, and the words that came.
    clock_due: u32,
    clock_words: u32,
    clock_known: bool,
    clock: [u32; 3],
    clock_high: u64,
    clock_low: u32,
    /// Ticks of the real-time clock in a second.
    pub(crate) realtime_frequency: u64,
    /// Cycles between counter samples.
    pub(crate) counter_interval: i64,
}

impl Registers {
    /// State at the beginning of a stream of this version, 0 for GFX9.
    pub(crate) fn new(version: u8) -> Self {
        Self {
            version,
            ..Self::default()
        }
    }

    /// Applies a write to a register of the compute pipe.
    pub(crate) fn write_compute(&mut self, write: Write) {
        let slot = write.slot();
        match write.address {
            compute::PGM_LO => set_low(&mut self.entry[slot], write.data),
            compute::PGM_HI => set_high(&mut self.entry[slot], write.data),
            compute::PACKET_LO => set_low(&mut self.packet[slot], write.data),
            compute::PACKET_HI => set_high(&mut self.packet[slot], write.data),
            compute::NUM_THREAD_X..=compute::NUM_THREAD_Z => {
                self.threads[(write.address - compute::NUM_THREAD_X) as usize] = write.data;
            }
            compute::RSRC1 => self.rsrc[0] = write.data,
            compute::RSRC2 => self.rsrc[1] = write.data,
            compute::RSRC3 => self.rsrc[2] = write.data,
            _ => {}
        }
    }

    /// Handles a write to any other register. One of them carries packets from the host; writes to the remaining ones
    /// have no effect.
    pub(crate) fn write_userdata(&mut self, write: Write) -> CodeObjectEffect {
        if write.address != USERDATA_2 {
            return CodeObjectEffect::Nothing;
        }
        // Until the host's start word the program may use the register for values of its own.
        if !self.host_packets {
            self.host_packets = write.data == START_WORD;
            return CodeObjectEffect::Nothing;
        }
        let announced = &mut self.announced[write.slot()];
        // An announcement takes two writes: the first says of which field the second is the value.
        let Some(kind) = announced.due.take() else {
            let opcode = write.data & 0xFF;
            let kind = write.data >> 8 & 0xF;
            let data = write.data >> 12;
            match (opcode, kind) {
                (OPCODE_CODE_OBJECT, 0..=6) if data == 0 => announced.due = Some(kind),
                (OPCODE_AGENT, 0) => self.realtime_frequency = u64::from(data) * 1000,
                (OPCODE_AGENT, 1) => self.counter_interval = i64::from(data),
                _ => {}
            }
            return CodeObjectEffect::Nothing;
        };
        match kind {
            1 => set_low(&mut announced.size, write.data),
            2 => set_low(&mut announced.address, write.data),
            3 => set_high(&mut announced.address, write.data),
            4 => set_high(&mut announced.size, write.data),
            5 => set_low(&mut announced.id, write.data),
            6 => set_high(&mut announced.id, write.data),
            _ => {
                // The last announcement has the flags and an id of 30 bits; a larger id was announced before, in two
                // halves.
                let (unload, from_start) = (write.data & 1 == 1, write.data & 2 == 2);
                let id = match u64::from(write.data >> 2) {
                    0 => announced.id,
                    id => id,
                };
                let object = Loaded {
                    address: announced.address,
                    size: announced.size,
                    id,
                };
                let known = self.table.contains(id);
                if unload && known {
                    self.table.remove(id);
                    return CodeObjectEffect::Unloaded(id);
                }
                if !unload && !known {
                    self.table.insert(object);
                    self.named += 1;
                    if from_start {
                        self.from_start.insert(object);
                    }
                    return CodeObjectEffect::Loaded(id);
                }
            }
        }
        CodeObjectEffect::Nothing
    }

    /// Whether a register carries the clocks.
    #[inline]
    pub(crate) fn is_clock(address: u32) -> bool {
        address == USERDATA_3
    }

    /// Handles a write at `time` to the register that carries the clocks.
    pub(crate) fn write_clock(&mut self, time: i64, data: u32) -> Option<Realtime> {
        if !self.host_packets {
            // The same start word as for the packets above, before which the values are the program's.
            return None;
        }
        if self.clock_due == 0 {
            let count = data >> 12;
            let opcode = data & 0xFF;
            self.clock_known =
                matches!(opcode, OPCODE_REALTIME | OPCODE_REALTIME_LOW) && count <= 3;
            // Unknown packets are stepped over by their own count; a real one is short.
            self.clock_due = match (opcode, count) {
                (OPCODE_REALTIME, 0) => 3,
                (OPCODE_REALTIME_LOW, 0) => 1,
                (_, count) => count.min(16),
            };
            self.clock_words = self.clock_due;
            return None;
        }
        self.clock_due -= 1;
        if !self.clock_known {
            return None;
        }
        self.clock.rotate_left(1);
        self.clock[2] = data;
        if self.clock_due > 0 {
            return None;
        }
        // The low and high half of a first reading, and the low half of a second one after it.
        let [low, high, now] = self.clock;
        let before = if self.clock_words == 3 {
            self.clock_high = u64::from(high);
            low
        } else {
            // A single word continues the reading before.
            self.clock_low
        };
        // The low half is smaller than before: it has wrapped.
        self.clock_high = (self.clock_high + u64::from(now < before)) & 0xFFFF_FFFF;
        self.clock_low = now;
        Some(Realtime {
            shader_clock: time,
            realtime_clock: self.clock_high << 32 | u64::from(now),
        })
    }

    /// The entry point of a pipe's next wave.
    #[inline]
    pub(crate) fn entry(&mut self, me: u8, pipe: u8) -> Pc {
        // The register has the address in units of 256 bytes.
        let address = (self.entry[slot(me, pipe)] << 8) & ((1 << 48) - 1);
        self.table.find(address)
    }

    /// The location of an address, in the code object that is loaded there.
    pub(crate) fn pc(&mut self, address: u64) -> Pc {
        self.table.find(address)
    }

    /// The location of an address that was in no code object when it was seen: announcements of objects that were
    /// loaded at the start can come later.
    pub(crate) fn late(&mut self, pc: Pc) -> Pc {
        if pc.code_object != 0 || pc.address == 0 {
            return pc;
        }
        self.from_start.find(pc.address)
    }

    /// The dispatch that begins now.
    pub(crate) fn dispatch(&mut self, time: i64, me: u8, pipe: u8, offset: u64) -> Dispatch {
        let [rsrc1, rsrc2, _] = self.rsrc;
        let bit = |word: u32, at: u32, flag: u32| (word >> at & 1) * flag;
        Dispatch {
            time,
            me,
            pipe,
            user_sgprs: (rsrc2 >> 1 & 0x1F) as u16,
            flags: bit(rsrc1, 10, 1) | bit(rsrc1, 11, 2) | bit(rsrc1, 14, 4) | bit(rsrc2, 0, 8),
            vgprs: (rsrc1 & 0x3F) * 8 + 8,
            sgprs: match self.version {
                0 | 1 => (rsrc1 >> 7 & 7) * 16 + 16,
                // Every wave has all of them.
                _ => 128,
            },
            lds: match self.version {
                1 => (rsrc2 >> 15 & 0x1FF) * 1280,
                _ => (rsrc2 >> 15 & 0x1FF) * 512,
            },
            threads: self.threads,
            packet: self.packet[slot(me, pipe)],
            offset,
            entry: self.entry(me, pipe),
        }
    }
}
