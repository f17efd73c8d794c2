//! Structs and functions of the trace decoder's C interface, in the layout of its newest version.

use std::ffi::{c_char, c_void};

use crate::record;

/// Result of a function of the decoder, a `rocprofiler_thread_trace_decoder_status_t`.
pub type Status = i32;
/// The function succeeded.
pub const SUCCESS: Status = 0;
/// A failure that no other status describes.
pub const ERROR: Status = 1;
/// The caller's buffer is too small; the needed size is written.
pub const OUT_OF_RESOURCES: Status = 2;
/// An argument is not usable.
pub const INVALID_ARGUMENT: Status = 3;
/// The data is not a thread trace.
pub const INVALID_SHADER_DATA: Status = 4;
/// This library does not implement the function.
pub const NOT_IMPLEMENTED: Status = 5;

/// Types of the records that a [`TraceCallback`] receives.
pub mod kind {
    /// The hardware's major version, in the pointer.
    pub const GFXIP: i32 = 0;
    /// Records are of type [`super::Occupancy`].
    pub const OCCUPANCY: i32 = 1;
    /// Records are of type [`super::PerfEvent`].
    pub const PERFEVENT: i32 = 2;
    /// Records are of type [`super::Wave`].
    pub const WAVE: i32 = 3;
    /// Records are numbers of [`Info`](crate::record::Info), as `i32`.
    pub const INFO: i32 = 4;
    /// Records are of type [`super::Event`].
    pub const EVENT: i32 = 5;
    /// Records are of type [`super::ShaderData`].
    pub const SHADERDATA: i32 = 6;
    /// Records are of type [`super::Realtime`].
    pub const REALTIME: i32 = 7;
    /// Records are numbers, as `u64`: the real-time clock's ticks per second.
    pub const RT_FREQUENCY: i32 = 8;
    /// Records are of type [`super::OtherSimd`].
    pub const INST_OTHER_SIMD: i32 = 9;
    /// Records are of type [`super::Dispatch`].
    pub const DISPATCH: i32 = 10;
}

/// Location of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Pc {
    /// Virtual address in the ELF of the code object; the address in memory when `code_object_id` is 0.
    pub address: u64,
    /// Id that the code object was registered with; 0 for code of no registered code object.
    pub code_object_id: u64,
}

/// Values of the four counters of a bank on one compute unit.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct PerfEvent {
    /// Cycle of the shader clock.
    pub time: i64,
    /// Values since the sample before.
    pub events: [u16; 4],
    /// Compute unit that was counted on.
    pub cu: u8,
    /// Number of the bank, from 0: bank n has the requested counters 4n to 4n+3.
    pub bank: u8,
}

/// A wave began or ended.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Occupancy {
    /// First instruction of the kernel.
    pub pc: Pc,
    /// Cycle of the shader clock.
    pub time: u64,
    /// Not used; 0.
    pub reserved: u8,
    /// Compute unit, or shader array (bit 7) and WGP.
    pub cu: u8,
    /// Number of the SIMD in the compute unit, from 0.
    pub simd: u8,
    /// Number of the wave slot in the SIMD, from 0.
    pub slot: u8,
    /// Bit fields from the lowest: start:1, me:3, pipe:4, is_ext:1 (whether the later ones are valid), workgroup:7,
    /// cluster:5.
    pub bits: u32,
}

/// Span of a wave's time in one state.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct WaveState {
    /// State of the wave, the number of a [`record::State`].
    pub state: i32,
    /// Length of the span in cycles of the shader clock.
    pub duration: i32,
}

/// Executed instruction of a wave.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Instruction {
    /// Bit fields from the lowest: category:8, a [`record::Category`]; stall:24, the part of `duration` before the
    /// issue.
    pub category_stall: u32,
    /// Cycles of the shader clock from `time` to the end of the issue (GFX9) or of the execution.
    pub duration: i32,
    /// Cycle at which the instruction could first have been issued.
    pub time: i64,
    /// Location of the instruction; all zero when it was not matched with code.
    pub pc: Pc,
}

/// A traced wave with its states and instructions.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Wave {
    /// Compute unit, or shader array (bit 7) and WGP.
    pub cu: u8,
    /// Number of the SIMD in the compute unit, from 0.
    pub simd: u8,
    /// Number of the wave slot in the SIMD, from 0.
    pub slot: u8,
    /// Number of times that the wave was saved and restored.
    pub contexts: u8,
    /// Bit fields from the lowest: pipe:4, me:3.
    pub dispatcher: u8,
    /// Number that the hardware gave to the workgroup.
    pub workgroup: u8,
    /// Number that the hardware gave to the cluster.
    pub cluster: u8,
    /// Not used; 0.
    pub reserved: u8,
    /// Size of this struct in bytes, by which callers tell its version.
    pub size: u64,
    /// Cycle of the shader clock at which the wave began.
    pub begin: i64,
    /// Cycle of the shader clock at which the wave ended.
    pub end: i64,
    /// Number of entries of `timeline`.
    pub timeline_count: u64,
    /// Number of entries of `instructions`.
    pub instruction_count: u64,
    /// States of the wave, in the order of time.
    pub timeline: *const WaveState,
    /// Instructions of the wave, in the order of time.
    pub instructions: *const Instruction,
}

/// Values of the shader clock and the real-time clock at one time.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Realtime {
    /// Cycles of the shader clock.
    pub shader_clock: i64,
    /// Ticks of the real-time clock; `RT_FREQUENCY` has their number per second.
    pub realtime_clock: u64,
    /// Not used; 0.
    pub reserved: u64,
}

/// Value that a wave wrote into the trace (`s_ttracedata`).
#[derive(Debug, Clone, Copy)]
#[repr(C)]
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
    /// 1: an immediate of the instruction; 2: written by privileged code.
    pub flags: u8,
    /// Not used; 0.
    pub reserved: u32,
}

/// Instruction of another SIMD of the traced WGP that kept a shared unit busy.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct OtherSimd {
    /// Size of this struct in bytes, by which callers tell its version.
    pub size: u64,
    /// Cycle of the shader clock.
    pub time: i64,
    /// Number of cycles of the shader clock for which the unit was busy.
    pub cycles: u16,
    /// Shader array (bit 7) and WGP.
    pub wgp: u8,
    /// Category of the instruction, the number of a [`record::Category`].
    pub category: u8,
}

/// Event of the pipeline, other than a dispatch.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Event {
    /// Size of this struct in bytes, by which callers tell its version.
    pub size: u64,
    /// Cycle of the shader clock.
    pub time: i64,
    /// Kind of the event, the number of a [`record::EventKind`].
    pub kind: i32,
    /// Micro engine of the command processor.
    pub me: u8,
    /// Pipe of the micro engine.
    pub pipe: u8,
    /// 1: `me` and `pipe` are valid; 2: an event of the bottom of the pipe.
    pub flags: u16,
    /// Id of the code object, for loads and unloads; 0 otherwise.
    pub payload: u64,
    /// Offset of the token in the stream, in bytes.
    pub offset: u64,
}

/// Begin of a dispatch, with the values of its registers.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Dispatch {
    /// Size of this struct in bytes, by which callers tell its version.
    pub size: u64,
    /// Cycle of the shader clock.
    pub time: i64,
    /// Micro engine of the command processor.
    pub me: u8,
    /// Pipe of the micro engine.
    pub pipe: u8,
    /// Scalar registers that the dispatcher sets for each wave.
    pub user_sgprs: u16,
    /// `DISPATCH_*` bits of the module `record`.
    pub flags: i32,
    /// Vector registers, as the descriptor's granule count.
    pub vgprs: u32,
    /// Scalar registers, as the descriptor's granule count.
    pub sgprs: u32,
    /// LDS of a workgroup, as the descriptor's granule count.
    pub lds: u32,
    /// Work items of a workgroup in each dimension.
    pub threads: [u32; 3],
    /// Address of the AQL packet.
    pub packet: u64,
    /// Offset of the token in the stream, in bytes.
    pub offset: u64,
    /// First instruction of the kernel.
    pub entry: Pc,
}

/// Delivers records; its result does not end decoding.
pub type TraceCallback = Option<
    unsafe extern "C" fn(kind: i32, events: *mut c_void, count: u64, user: *mut c_void) -> Status,
>;

/// Writes the text of the instruction at an address and the number of its bytes.
pub type IsaCallback = Option<
    unsafe extern "C" fn(
        text: *mut c_char,
        bytes: *mut u64,
        capacity: *mut u64,
        pc: Pc,
        user: *mut c_void,
    ) -> Status,
>;

/// Points to the next piece of the stream and returns the number of its bytes; 0 at the end.
pub type DataCallback =
    Option<unsafe extern "C" fn(buffer: *mut *mut u8, size: *mut u64, user: *mut c_void) -> u64>;

/// A decoder with the code objects that were registered with it; 0 is not a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Handle {
    /// Number of the decoder; never 0.
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
