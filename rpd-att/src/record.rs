//! Records of a decoder, with the meaning, units and numbers of the trace decoder's interface.

/// An instruction's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pc {
    /// Virtual address in the code object's file, or the address in the GPU's memory when `code_object` is 0.
    pub address: u64,
    /// The loaded code object; 0 when the address is in none of the trace's code objects.
    pub code_object: u64,
}

impl Pc {
    /// Whether this is an address at all: instructions that were not matched with code have none.
    #[inline]
    pub fn is_known(self) -> bool {
        (self.address | self.code_object) != 0
    }
}

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$item_doc:meta])* $item:ident = $value:literal => $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$item_doc])* $item = $value,)*
        }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [$name] = &[$($name::$item),*];

            /// The word for it in outputs.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$item => $text,)*
                }
            }

            /// The item with this number.
            pub fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($value => Some($name::$item),)*
                    _ => None,
                }
            }
        }
    };
}

numbered! {
    /// Category of the instruction of a token.
    Category {
        /// Not known.
        None = 0 => "NONE",
        /// Scalar memory.
        Smem = 1 => "SMEM",
        /// Scalar arithmetic.
        Salu = 2 => "SALU",
        /// Vector memory.
        Vmem = 3 => "VMEM",
        /// Flat memory.
        Flat = 4 => "FLAT",
        /// Local data share.
        Lds = 5 => "LDS",
        /// Vector arithmetic.
        Valu = 6 => "VALU",
        /// A branch that was taken.
        Jump = 7 => "JUMP",
        /// A branch that was not taken.
        Next = 8 => "NEXT",
        /// Handled in the sequencer: a wait, a barrier, a nop.
        Immed = 9 => "IMMED",
        /// Trap or context switch.
        Context = 10 => "CONTEXT",
        /// A message, such as the end of the program.
        Message = 11 => "MESSAGE",
        /// Ray intersection.
        Bvh = 12 => "BVH",
    }
}

numbered! {
    /// State of a wave.
    State {
        /// No wave.
        Empty = 0 => "EMPTY",
        /// Neither executes nor is known to wait.
        Idle = 1 => "IDLE",
        /// Executes an instruction.
        Exec = 2 => "EXEC",
        /// Waits for a counter or a barrier.
        Wait = 3 => "WAIT",
        /// Has an instruction that could not be issued.
        Stall = 4 => "STALL",
    }
}

numbered! {
    /// Notes about the quality of what was decoded.
    Info {
        /// Nothing.
        None = 0 => "none",
        /// The hardware dropped tokens.
        DataLost = 1 => "data lost",
        /// Some instructions could not be matched with the code.
        StitchIncomplete = 2 => "stitch incomplete",
        /// The trace ends before some waves do.
        WaveIncomplete = 3 => "wave incomplete",
    }
}

numbered! {
    /// Kind of an event token.
    EventKind {
        /// Nothing.
        None = 0 => "none",
        /// Compute work before it is complete.
        CsPartialFlush = 1 => "cs partial flush",
        /// A time stamp at the bottom of the pipe.
        BottomOfPipe = 2 => "bottom of pipe",
        /// Waves are saved.
        SaveContext = 3 => "save context",
        /// A dispatch ended.
        DispatchEnd = 4 => "dispatch end",
        /// Caches are flushed.
        CacheFlush = 5 => "cache flush",
        /// Tokens were dropped.
        PacketLoss = 6 => "packet loss",
        /// A code object was loaded.
        CodeObjectLoad = 7 => "code object load",
        /// A code object was unloaded.
        CodeObjectUnload = 8 => "code object unload",
        /// The trace stalled the shader engine.
        StallBegin = 9 => "trace stall begin",
        /// The stall of the shader engine ended.
        StallEnd = 10 => "trace stall end",
        /// The trace is flushed.
        Flush = 11 => "trace flush",
        /// Power throttling begins.
        ThrottleBegin = 12 => "throttle begin",
        /// Power throttling ends.
        ThrottleEnd = 13 => "throttle end",
        /// A barrier of a cluster.
        ClusterBarrier = 14 => "cluster barrier",
        /// Not used.
        Reserved = 15 => "reserved",
        /// A cache rinse.
        CacheRinse = 16 => "cache rinse",
        /// Counters of the streaming monitor were sampled.
        SpmSample = 17 => "spm sample",
    }
}

/// One executed instruction of a wave; times in shader clock cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Time at which it could first have been issued.
    pub time: i64,
    /// Its address; 0 when it was not matched.
    pub pc: Pc,
    /// From `time` to its end: of issue on GFX9, of execution later.
    pub duration: i32,
    /// The part of `duration` before it was issued.
    pub stall: u32,
    /// Kind of instruction.
    pub category: Category,
}

/// A span of a wave's time in one state; cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// State of the wave during the span.
    pub state: State,
    /// Length of the span in cycles.
    pub duration: i32,
}

/// A traced wave, or a part of one: a wave with very many instructions is reported in parts, so that memory stays bounded.
#[derive(Debug, Clone, Copy)]
pub struct Wave<'a> {
    /// Compute unit, or shader array (bit 7) and WGP.
    pub cu: u8,
    /// Number of the SIMD.
    pub simd: u8,
    /// Slot in the SIMD.
    pub slot: u8,
    /// Number of saves and restores.
    pub contexts: u8,
    /// Micro engine that dispatched it.
    pub me: u8,
    /// Pipe that dispatched it.
    pub pipe: u8,
    /// Workgroup number in hardware.
    pub workgroup: u8,
    /// Which part of the wave this is, from 0.
    pub part: u32,
    /// Whether it is the last part.
    pub last: bool,
    /// Whether its end is in the trace.
    pub complete: bool,
    /// Entry point.
    pub entry: Pc,
    /// Begin in cycles. For parts after the first: the end of the previous part.
    pub begin: i64,
    /// End in cycles.
    pub end: i64,
    /// Its states in order; the durations add up to `end - begin` for complete waves with instructions.
    pub timeline: &'a [Span],
    /// Its instructions, in order.
    pub instructions: &'a [Instruction],
}

/// A wave began or ended on some compute unit of the shader engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// The wave's entry point.
    pub pc: Pc,
    /// Time, in cycles.
    pub time: i64,
    /// Compute unit, or shader array (bit 7) and WGP.
    pub cu: u8,
    /// Number of the SIMD.
    pub simd: u8,
    /// Slot in the SIMD.
    pub slot: u8,
    /// Begin or end.
    pub start: bool,
    /// Micro engine that dispatched it.
    pub me: u8,
    /// Pipe that dispatched it.
    pub pipe: u8,
    /// Whether the fields after it are valid.
    pub extended: bool,
    /// Workgroup number in hardware.
    pub workgroup: u8,
}

/// Four counter values of one compute unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerfEvent {
    /// Time, in cycles.
    pub time: i64,
    /// Values since the sample before, of the counters of this bank.
    pub values: [u16; 4],
    /// Compute unit.
    pub cu: u8,
    /// Which four of the requested counters.
    pub bank: u8,
}

/// A pair of clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Realtime {
    /// Shader clock, in cycles.
    pub shader_clock: i64,
    /// Real-time clock, in its ticks.
    pub realtime_clock: u64,
}

/// A value that a wave wrote into the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShaderData {
    /// Time, in cycles.
    pub time: i64,
    /// The value that the shader wrote.
    pub value: u64,
    /// Compute unit, or shader array (bit 7) and WGP.
    pub cu: u8,
    /// Number of the SIMD.
    pub simd: u8,
    /// Slot in the SIMD.
    pub slot: u8,
    /// Whether it was an immediate of the instruction.
    pub immediate: bool,
    /// Whether it was written by privileged code.
    pub privileged: bool,
}

/// An instruction of another SIMD of the traced WGP that kept a shared unit busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherSimd {
    /// Time, in cycles.
    pub time: i64,
    /// Duration in cycles.
    pub cycles: u16,
    /// Shader array (bit 7) and WGP.
    pub wgp: u8,
    /// Kind of instruction.
    pub category: Category,
}

/// Something that happened in the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time, in cycles.
    pub time: i64,
    /// Kind of event.
    pub kind: EventKind,
    /// Micro engine.
    pub me: u8,
    /// Number of the pipe.
    pub pipe: u8,
    /// Whether `me` and `pipe` are valid.
    pub per_pipe: bool,
    /// Whether it is an event of the bottom of the pipe.
    pub bottom: bool,
    /// The code object's id, for loads and unloads.
    pub payload: u64,
    /// Offset of the token in the stream, in bytes.
    pub offset: u64,
}

/// A dispatch began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dispatch {
    /// Time, in cycles.
    pub time: i64,
    /// Micro engine.
    pub me: u8,
    /// Number of the pipe.
    pub pipe: u8,
    /// Scalar registers set by the dispatcher.
    pub user_sgprs: u16,
    /// `DISPATCH_*` bits.
    pub flags: u32,
    /// Vector registers of a wave.
    pub vgprs: u32,
    /// Scalar registers of a wave.
    pub sgprs: u32,
    /// Bytes of the local data share of a workgroup.
    pub lds: u32,
    /// Threads of a workgroup.
    pub threads: [u32; 3],
    /// Address of the dispatch packet.
    pub packet: u64,
    /// Offset of the token in the stream, in bytes.
    pub offset: u64,
    /// The kernel's entry point.
    pub entry: Pc,
}

/// One report of a decoder.
#[derive(Debug, Clone, Copy)]
pub enum Record<'a> {
    /// The hardware's major version: 9, 10, 11 or 12. Always the first.
    Gfx(u32),
    /// Waves that began and ended.
    Occupancy(&'a [Occupancy]),
    /// Counter values.
    Perf(&'a [PerfEvent]),
    /// A wave of the target.
    Wave(Wave<'a>),
    /// A note.
    Info(Info),
    /// Events.
    Events(&'a [Event]),
    /// Values that waves wrote.
    ShaderData(&'a [ShaderData]),
    /// Pairs of clocks.
    Realtime(&'a [Realtime]),
    /// Ticks of the real-time clock in a second.
    RealtimeFrequency(u64),
    /// Instructions of other SIMDs.
    OtherSimd(&'a [OtherSimd]),
    /// Dispatches.
    Dispatches(&'a [Dispatch]),
}

/// Takes the records of a decoder.
pub trait Sink {
    /// One report. Its slices are valid during the call.
    fn record(&mut self, record: Record<'_>);
}

impl<F: FnMut(Record<'_>)> Sink for F {
    fn record(&mut self, record: Record<'_>) {
        self(record);
    }
}
