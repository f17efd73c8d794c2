//! Records of a decoder, with the meaning, units and numbers of the trace decoder's interface.

/// Location of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Pc {
    /// Virtual address in the code object's file, or the address in the GPU's memory when `code_object` is 0.
    pub address: u64,
    /// Id of the loaded code object; 0 when the address is in none of the trace's code objects.
    pub code_object: u64,
}

impl Pc {
    /// Whether the location is known: instructions that were not matched with code have none.
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
            /// All items, in the order of their numbers.
            pub const ALL: &'static [$name] = &[$($name::$item),*];

            /// Name of the item in outputs.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$item => $text,)*
                }
            }

            /// The item with a number; `None` for unknown numbers.
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
    /// Category of an instruction: the unit that executes it, or the kind of branch.
    Category {
        /// The category is not known.
        None = 0 => "NONE",
        /// Scalar memory.
        Smem = 1 => "SMEM",
        /// Scalar arithmetic.
        Salu = 2 => "SALU",
        /// Vector memory.
        Vmem = 3 => "VMEM",
        /// Memory through flat addresses.
        Flat = 4 => "FLAT",
        /// Local data share.
        Lds = 5 => "LDS",
        /// Vector arithmetic.
        Valu = 6 => "VALU",
        /// A branch that was taken.
        Jump = 7 => "JUMP",
        /// A branch that was not taken.
        Next = 8 => "NEXT",
        /// An instruction that the sequencer handles: a wait, a barrier, a nop.
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
    /// State of a wave in a span of time.
    State {
        /// The slot holds no wave.
        Empty = 0 => "EMPTY",
        /// The wave neither executes nor is known to wait.
        Idle = 1 => "IDLE",
        /// The wave executes an instruction.
        Exec = 2 => "EXEC",
        /// The wave waits for a counter or a barrier.
        Wait = 3 => "WAIT",
        /// The wave has an instruction that could not be issued.
        Stall = 4 => "STALL",
    }
}

numbered! {
    /// Notes about the quality of the decoded records.
    Info {
        /// No note; decoders do not report it.
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
    /// Kind of an event of the pipeline.
    EventKind {
        /// The kind is not known.
        None = 0 => "none",
        /// The pipe waits until earlier compute work is complete.
        CsPartialFlush = 1 => "cs partial flush",
        /// A time stamp at the bottom of the pipe.
        BottomOfPipe = 2 => "bottom of pipe",
        /// The waves of the shader engine are saved.
        SaveContext = 3 => "save context",
        /// All waves of a dispatch ended.
        DispatchEnd = 4 => "dispatch end",
        /// The command processor writes caches back.
        CacheFlush = 5 => "cache flush",
        /// The hardware dropped tokens.
        PacketLoss = 6 => "packet loss",
        /// The driver loaded a code object; `payload` has its id.
        CodeObjectLoad = 7 => "code object load",
        /// The driver unloaded a code object; `payload` has its id.
        CodeObjectUnload = 8 => "code object unload",
        /// The trace's buffers are full, and the shader engine stands still.
        StallBegin = 9 => "trace stall begin",
        /// The shader engine runs again.
        StallEnd = 10 => "trace stall end",
        /// The hardware writes the buffered part of the trace.
        Flush = 11 => "trace flush",
        /// The hardware begins to issue fewer instructions, to save power.
        ThrottleBegin = 12 => "throttle begin",
        /// The hardware issues at full rate again.
        ThrottleEnd = 13 => "throttle end",
        /// The workgroups of a cluster reached a barrier.
        ClusterBarrier = 14 => "cluster barrier",
        /// Number without a meaning so far.
        Reserved = 15 => "reserved",
        /// The hardware writes modified lines of a cache back, and keeps them.
        CacheRinse = 16 => "cache rinse",
        /// Counters of the streaming monitor were sampled.
        SpmSample = 17 => "spm sample",
    }
}

/// One executed instruction of a wave; times in shader clock cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Cycle of the shader clock at which the instruction could first have been issued.
    pub time: i64,
    /// Location of the instruction; all zero when it was not matched with code.
    pub pc: Pc,
    /// Cycles from `time` to the end of the issue (GFX9) or of the execution (later generations).
    pub duration: i32,
    /// Cycles of `duration` before the issue.
    pub stall: u32,
    /// Category of the instruction.
    pub category: Category,
}

/// A span of a wave's time in one state.
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
    /// Number of the SIMD in the compute unit, from 0.
    pub simd: u8,
    /// Number of the wave slot in the SIMD, from 0.
    pub slot: u8,
    /// Number of times that the wave was saved or restored.
    pub contexts: u8,
    /// Micro engine of the command processor that dispatched the wave.
    pub me: u8,
    /// Pipe of the micro engine that dispatched the wave.
    pub pipe: u8,
    /// Number that the hardware gave to the workgroup.
    pub workgroup: u8,
    /// Number of the part of the wave, from 0.
    pub part: u32,
    /// Whether the record is the last part of the wave.
    pub last: bool,
    /// Whether the trace has the end of the wave.
    pub complete: bool,
    /// First instruction of the kernel.
    pub entry: Pc,
    /// Cycle of the shader clock at which the wave began; for parts after the first: the end of the previous part.
    pub begin: i64,
    /// Cycle of the shader clock at which the wave, or this part of it, ended.
    pub end: i64,
    /// States in the order of time; the durations add up to `end - begin` for complete waves with instructions.
    pub timeline: &'a [Span],
    /// Executed instructions, in the order of time.
    pub instructions: &'a [Instruction],
}

/// A wave began or ended on some compute unit of the shader engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// First instruction of the kernel.
    pub pc: Pc,
    /// Cycle of the shader clock.
    pub time: i64,
    /// Compute unit, or shader array (bit 7) and WGP.
    pub cu: u8,
    /// Number of the SIMD in the compute unit, from 0.
    pub simd: u8,
    /// Number of the wave slot in the SIMD, from 0.
    pub slot: u8,
    /// True when the wave began, false when it ended.
    pub start: bool,
    /// Micro engine of the command processor that dispatched the wave.
    pub me: u8,
    /// Pipe of the micro engine that dispatched the wave.
    pub pipe: u8,
    /// Whether `workgroup` is valid.
    pub extended: bool,
    /// Number that the hardware gave to the workgroup.
    pub workgroup: u8,
}

/// Four counter values of one compute unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerfEvent {
    /// Cycle of the shader clock.
    pub time: i64,
    /// Values of the bank's counters since the previous sample.
    pub values: [u16; 4],
    /// Compute unit.
    pub cu: u8,
    /// Number of the bank, from 0: bank n has the requested counters 4n to 4n+3.
    pub bank: u8,
}

/// Values of the shader clock and the real-time clock at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Realtime {
    /// Cycles of the shader clock.
    pub shader_clock: i64,
    /// Ticks of the real-time clock; [`Record::RealtimeFrequency`] has their number per second.
    pub realtime_clock: u64,
}

/// Value that a wave wrote into the trace (`s_ttracedata`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShaderData {
    /// Cycle of the shader clock.
    pub time: i64,
    /// Content of the register or the immediate.
    pub value: u64,
    /// Compute unit, or shader array (bit 7) and WGP.
    pub cu: u8,
    /// Number of the SIMD in the compute unit, from 0.
    pub simd: u8,
    /// Number of the wave slot in the SIMD, from 0.
    pub slot: u8,
    /// Whether the value was an immediate of the instruction.
    pub immediate: bool,
    /// Whether the value was written by privileged code.
    pub privileged: bool,
}

/// An instruction of another SIMD of the traced WGP that kept a shared unit busy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OtherSimd {
    /// Cycle of the shader clock.
    pub time: i64,
    /// Number of cycles of the shader clock for which the unit was busy.
    pub cycles: u16,
    /// Shader array (bit 7) and WGP.
    pub wgp: u8,
    /// Category of the instruction.
    pub category: Category,
}

/// Event of the pipeline, other than a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Cycle of the shader clock.
    pub time: i64,
    /// Kind of the event.
    pub kind: EventKind,
    /// Micro engine of the command processor.
    pub me: u8,
    /// Pipe of the micro engine.
    pub pipe: u8,
    /// Whether `me` and `pipe` are valid.
    pub per_pipe: bool,
    /// Whether the event is one of the bottom of the pipe.
    pub bottom: bool,
    /// Id of the code object, for loads and unloads; 0 otherwise.
    pub payload: u64,
    /// Offset of the token in the stream, in bytes.
    pub offset: u64,
}

/// Begin of a dispatch, with the values of its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dispatch {
    /// Cycle of the shader clock.
    pub time: i64,
    /// Micro engine of the command processor.
    pub me: u8,
    /// Pipe of the micro engine.
    pub pipe: u8,
    /// Scalar registers that the dispatcher sets for each wave.
    pub user_sgprs: u16,
    /// Sum of `DISPATCH_*` bits.
    pub flags: u32,
    /// Vector registers of a wave.
    pub vgprs: u32,
    /// Scalar registers of a wave.
    pub sgprs: u32,
    /// Bytes of the local data share of a workgroup.
    pub lds: u32,
    /// Work items of a workgroup in each dimension.
    pub threads: [u32; 3],
    /// Address of the AQL packet in memory.
    pub packet: u64,
    /// Offset of the token in the stream, in bytes.
    pub offset: u64,
    /// First instruction of the kernel.
    pub entry: Pc,
}

/// A report of a decoder to a [`Sink`].
#[derive(Debug, Clone, Copy)]
pub enum Record<'a> {
    /// The hardware's major version: 9, 10, 11 or 12. The first record of a stream.
    Gfx(u32),
    /// Waves that began and ended.
    Occupancy(&'a [Occupancy]),
    /// Samples of counters.
    Perf(&'a [PerfEvent]),
    /// A wave of the traced compute unit, or a part of one.
    Wave(Wave<'a>),
    /// A note about the quality of the decoded records.
    Info(Info),
    /// Events of the pipeline, in the order of the stream.
    Events(&'a [Event]),
    /// Values that waves wrote into the trace.
    ShaderData(&'a [ShaderData]),
    /// Pairs of clock values.
    Realtime(&'a [Realtime]),
    /// Ticks of the real-time clock in a second.
    RealtimeFrequency(u64),
    /// Instructions of SIMDs that are not traced.
    OtherSimd(&'a [OtherSimd]),
    /// Dispatches that began.
    Dispatches(&'a [Dispatch]),
}

/// Receiver of the records of a decoder.
pub trait Sink {
    /// Takes one record, whose slices are valid during the call.
    fn record(&mut self, record: Record<'_>);
}

impl<F: FnMut(Record<'_>)> Sink for F {
    fn record(&mut self, record: Record<'_>) {
        self(record);
    }
}
