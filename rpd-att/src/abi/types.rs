//! Structs and functions of the trace decoder's C interface, in the layout of its newest version.

use std::ffi::{c_char, c_void};

use crate::record;

/// Status of a call.
pub type Status = i32;
/// Success.
pub const SUCCESS: Status = 0;
/// Something failed.
pub const ERROR: Status = 1;
/// The caller's buffer is too small; the needed size is written.
pub const OUT_OF_RESOURCES: Status = 2;
/// An argument is not usable.
pub const INVALID_ARGUMENT: Status = 3;
/// The data is not a thread trace.
pub const INVALID_SHADER_DATA: Status = 4;
/// Not in this library.
pub const NOT_IMPLEMENTED: Status = 5;

/// Kinds of records.
pub mod kind {
    /// The hardware's major version, in the pointer.
    pub const GFXIP: i32 = 0;
    /// [`super::Occupancy`].
    pub const OCCUPANCY: i32 = 1;
    /// [`super::PerfEvent`].
    pub const PERFEVENT: i32 = 2;
    /// [`super::Wave`].
    pub const WAVE: i32 = 3;
    /// Numbers of notes.
    pub const INFO: i32 = 4;
    /// [`super::Event`].
    pub const EVENT: i32 = 5;
    /// [`super::ShaderData`].
    pub const SHADERDATA: i32 = 6;
    /// [`super::Realtime`].
    pub const REALTIME: i32 = 7;
    /// A number of ticks per second.
    pub const RT_FREQUENCY: i32 = 8;
    /// [`super::OtherSimd`].
    pub const INST_OTHER_SIMD: i32 = 9;
    /// [`super::Dispatch`].
    pub const DISPATCH: i32 = 10;
}

/// An address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Pc {
    /// Address in the code object's file, or in memory.
    pub address: u64,
    /// The code object, or 0.
    pub code_object_id: u64,
}

/// Four counter values.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PerfEvent {
    /// Cycles.
    pub time: i64,
    /// Values of the counters.
    pub events: [u16; 4],
    /// Compute unit.
    pub cu: u8,
    /// Bank.
    pub bank: u8,
}

/// A wave began or ended.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Occupancy {
    /// Entry point.
    pub pc: Pc,
    /// Cycles.
    pub time: u64,
    /// 0.
    pub reserved: u8,
    /// Compute unit.
    pub cu: u8,
    /// Number of the SIMD.
    pub simd: u8,
    /// Slot of the wave on its SIMD.
    pub slot: u8,
    /// start:1, me:3, pipe:4, is_ext:1, workgroup:7, cluster:5.
    pub bits: u32,
}

/// A span in a state.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct WaveState {
    /// State.
    pub state: i32,
    /// Cycles.
    pub duration: i32,
}

/// An instruction.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Instruction {
    /// category:8, stall:24.
    pub category_stall: u32,
    /// Cycles.
    pub duration: i32,
    /// Cycles.
    pub time: i64,
    /// Address.
    pub pc: Pc,
}

/// A wave.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Wave {
    /// Compute unit.
    pub cu: u8,
    /// Number of the SIMD.
    pub simd: u8,
    /// Slot of the wave on its SIMD.
    pub slot: u8,
    /// Saves and restores.
    pub contexts: u8,
    /// pipe:4, me:3.
    pub dispatcher: u8,
    /// Number of the workgroup.
    pub workgroup: u8,
    /// Number of the cluster.
    pub cluster: u8,
    /// 0.
    pub reserved: u8,
    /// Bytes of this struct.
    pub size: u64,
    /// Cycles.
    pub begin: i64,
    /// Cycles.
    pub end: i64,
    /// States.
    pub timeline_count: u64,
    /// Instructions.
    pub instruction_count: u64,
    /// States.
    pub timeline: *const WaveState,
    /// Instructions.
    pub instructions: *const Instruction,
}

/// Two clocks.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Realtime {
    /// Cycles.
    pub shader_clock: i64,
    /// Ticks.
    pub realtime_clock: u64,
    /// 0.
    pub reserved: u64,
}

/// A value that a wave wrote.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ShaderData {
    /// Cycles.
    pub time: i64,
    /// The value that the shader wrote.
    pub value: u64,
    /// Compute unit.
    pub cu: u8,
    /// Number of the SIMD.
    pub simd: u8,
    /// Slot of the wave on its SIMD.
    pub slot: u8,
    /// Immediate 1, privileged 2.
    pub flags: u8,
    /// 0.
    pub reserved: u32,
}

/// An instruction of another SIMD.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct OtherSimd {
    /// Bytes of this struct.
    pub size: u64,
    /// Cycles.
    pub time: i64,
    /// Cycles.
    pub cycles: u16,
    /// Number of the WGP.
    pub wgp: u8,
    /// Category.
    pub category: u8,
}

/// An event.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Event {
    /// Bytes of this struct.
    pub size: u64,
    /// Cycles.
    pub time: i64,
    /// Kind.
    pub kind: i32,
    /// Micro engine.
    pub me: u8,
    /// Number of the pipe.
    pub pipe: u8,
    /// Per pipe 1, bottom of the pipe 2.
    pub flags: u16,
    /// Id of a code object.
    pub payload: u64,
    /// Offset in the stream.
    pub offset: u64,
}

/// A dispatch.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Dispatch {
    /// Bytes of this struct.
    pub size: u64,
    /// Cycles.
    pub time: i64,
    /// Micro engine.
    pub me: u8,
    /// Number of the pipe.
    pub pipe: u8,
    /// Number of user SGPRs.
    pub user_sgprs: u16,
    /// Flags.
    pub flags: i32,
    /// Vector registers, as the descriptor's granule count.
    pub vgprs: u32,
    /// Scalar registers, as the descriptor's granule count.
    pub sgprs: u32,
    /// LDS of a workgroup, as the descriptor's granule count.
    pub lds: u32,
    /// Threads of a workgroup.
    pub threads: [u32; 3],
    /// Dispatch packet.
    pub packet: u64,
    /// Offset in the stream.
    pub offset: u64,
    /// Entry point.
    pub entry: Pc,
}

/// Delivers records; what it returns does not end decoding.
pub type TraceCallback = Option<
    unsafe extern "C" fn(kind: i32, events: *mut c_void, count: u64, user: *mut c_void) -> Status,
>;

/// Gives the text of an instruction and its bytes.
pub type IsaCallback = Option<
    unsafe extern "C" fn(
        text: *mut c_char,
        bytes: *mut u64,
        capacity: *mut u64,
        pc: Pc,
        user: *mut c_void,
    ) -> Status,
>;

/// Gives a piece of the stream.
pub type DataCallback =
    Option<unsafe extern "C" fn(buffer: *mut *mut u8, size: *mut u64, user: *mut c_void) -> u64>;

/// A decoder with code objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Handle {
    /// Which one; never 0.
    pub handle: u64,
}

macro_rules! sizes {
    ($($name:ident $size:literal;)*) => {
        $(const _: () = assert!(size_of::<$name>() == $size);)*
    };
}

sizes! {
    Pc 16;
    PerfEvent 24;
    Occupancy 32;
    WaveState 8;
    Instruction 32;
    Wave 64;
    Realtime 24;
    ShaderData 24;
    OtherSimd 24;
    Event 40;
    Dispatch 80;
}

impl From<record::Pc> for Pc {
    fn from(pc: record::Pc) -> Self {
        Self {
            address: pc.address,
            code_object_id: pc.code_object,
        }
    }
}

impl From<Pc> for record::Pc {
    fn from(pc: Pc) -> Self {
        Self {
            address: pc.address,
            code_object: pc.code_object_id,
        }
    }
}

impl From<&record::PerfEvent> for PerfEvent {
    fn from(event: &record::PerfEvent) -> Self {
        Self {
            time: event.time,
            events: event.values,
            cu: event.cu,
            bank: event.bank,
        }
    }
}

impl From<&record::Occupancy> for Occupancy {
    fn from(record: &record::Occupancy) -> Self {
        let bits = u32::from(record.start)
            | u32::from(record.me & 7) << 1
            | u32::from(record.pipe & 15) << 4
            | u32::from(record.extended) << 8
            | u32::from(record.workgroup & 0x7F) << 9;
        Self {
            pc: record.pc.into(),
            time: record.time.max(0).unsigned_abs(),
            reserved: 0,
            cu: record.cu,
            simd: record.simd,
            slot: record.slot,
            bits,
        }
    }
}

impl From<&record::Span> for WaveState {
    fn from(span: &record::Span) -> Self {
        Self {
            state: span.state as i32,
            duration: span.duration,
        }
    }
}

impl From<&record::Instruction> for Instruction {
    fn from(instruction: &record::Instruction) -> Self {
        Self {
            category_stall: instruction.category as u32 | instruction.stall << 8,
            duration: instruction.duration,
            time: instruction.time,
            pc: instruction.pc.into(),
        }
    }
}

impl From<&record::Realtime> for Realtime {
    fn from(pair: &record::Realtime) -> Self {
        Self {
            shader_clock: pair.shader_clock,
            realtime_clock: pair.realtime_clock,
            reserved: 0,
        }
    }
}

impl From<&record::ShaderData> for ShaderData {
    fn from(data: &record::ShaderData) -> Self {
        Self {
            time: data.time,
            value: data.value,
            cu: data.cu,
            simd: data.simd,
            slot: data.slot,
            flags: u8::from(data.immediate) | u8::from(data.privileged) << 1,
            reserved: 0,
        }
    }
}

impl From<&record::OtherSimd> for OtherSimd {
    fn from(other: &record::OtherSimd) -> Self {
        Self {
            size: size_of::<Self>() as u64,
            time: other.time,
            cycles: other.cycles,
            wgp: other.wgp,
            category: other.category as u8,
        }
    }
}

impl From<&record::Event> for Event {
    fn from(event: &record::Event) -> Self {
        Self {
            size: size_of::<Self>() as u64,
            time: event.time,
            kind: event.kind as i32,
            me: event.me,
            pipe: event.pipe,
            flags: u16::from(event.per_pipe) | u16::from(event.bottom) << 1,
            payload: event.payload,
            offset: event.offset,
        }
    }
}

impl From<&record::Dispatch> for Dispatch {
    fn from(dispatch: &record::Dispatch) -> Self {
        Self {
            size: size_of::<Self>() as u64,
            time: dispatch.time,
            me: dispatch.me,
            pipe: dispatch.pipe,
            user_sgprs: dispatch.user_sgprs,
            flags: dispatch.flags as i32,
            vgprs: dispatch.vgprs,
            sgprs: dispatch.sgprs,
            lds: dispatch.lds,
            threads: dispatch.threads,
            packet: dispatch.packet,
            offset: dispatch.offset,
            entry: dispatch.entry.into(),
        }
    }
}
